"""A formation for the drones that are left: cable forces that hold the load, and places for them.

Unknown are the force of each remaining cable on the load and the load's tilt. They hold its weight
(and what hangs from it) without moment; the places of the drones follow from them, as each cable
lies along its force. First the forces are found for which the rotor that works hardest keeps the
largest thrust margin; then, with half of what that leaves above the margin to keep, those for which
the drones move least. Straight cables are taken for the search; the places that come out are those
of the exact chains (`drones_above`). A load that would not stay in this attitude is no solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from musls_description.hanging.cone import Cone
from musls_description.hanging.equilibrium import drones_above
from musls_description.hanging.straight_cables import StraightCables
from musls_description.hanging.tree import level_rotation
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_rotation_vector, from_yaw, rotate
from musls_description.system.drone import rotor_efforts, tip_radius_m
from musls_description.system.slung_system import SlungLoadSystem

STEEPEST_LOAD_RAD = np.deg2rad(30.0)
"""Tilt of the load that a formation may ask for."""

LEAN_M = 1.0
"""Distance that drones move to spare the load a tilt of one radian."""

STEEPEST_CABLE = np.tan(np.deg2rad(35.0))
"""Horizontal over vertical force of a cable at most."""

MIN_SHARE = 0.1
"""Least force of each cable, as a share of an even part of the weight: none goes slack."""

RESERVE_GIVEN = 0.5
SLIGHTLY = 0.002
"""Share of the thrust margin above the one to keep that is given for moving less, and the least."""

MISSED = 1e-4
"""Largest error of a formation, over the weight and over limits."""

ASTRAY_M = 0.3
"""Distance from its place at which a drone that leaves a moving formation may stop: it follows
late."""


@dataclass(frozen=True)
class Reallocation:
    """Formation of the drones that are left, carrying the load.

    Attributes:
        offsets_m: Places in the frame of the load's set-point, (n, 3); NaN for those lost.
        thrust_margins: Full over needed thrust of the rotor of each remaining drone that works
            hardest, in their order.
        tension_n: Tensions of their cables at the load.
    """

    offsets_m: Array
    thrust_margins: Array
    tension_n: Array
    load_tilt_deg: float

    @property
    def thrust_margin(self) -> float:
        """Least thrust margin."""
        return float(self.thrust_margins.min())


def reallocate(
    system: SlungLoadSystem,
    formation: Cone,
    gravity_m_s2: float,
    lost: Sequence[int],
    *,
    margin: float,
    clearance_m: float,
    hanging: Sequence[int] = (),
    hovering: Sequence[int] = (),
) -> Reallocation | None:
    """Find a formation for the drones that are left, see `Hanging.without`."""
    n = system.n_drones
    survivors = [i for i in range(n) if i + 1 not in lost]
    few = system.carried_by(survivors)
    drones = few.drones
    ropes = few.cables
    at_load = np.array(system.load.cable_attachments_m)
    offsets = formation.offsets_m(n)
    yaws = formation.azimuths_rad(n) + np.pi
    hung = [
        (system.drones[i - 1].mass_kg + system.cables[i - 1].mass_kg, at_load[i - 1])
        for i in hanging
    ]
    cables = StraightCables(
        few,
        gravity_m_s2,
        clearance_m=clearance_m,
        steepest=STEEPEST_CABLE,
        shares=(MIN_SHARE, float(len(survivors))),
        lean_rad=STEEPEST_LOAD_RAD,
        hung=hung,
        hooks_m=rotate(from_yaw(yaws[survivors]), np.array([d.cable_attachment_m for d in drones])),
    )
    own = np.array([d.mass_kg + c.mass_kg for d, c in zip(drones, ropes, strict=True)])
    own = np.outer(own * gravity_m_s2, [0.0, 0.0, 1.0])
    rotors = np.array([rotor_efforts(drone) for drone in drones])
    hooks = np.array([drone.cable_attachment_m for drone in drones])
    stays = [number - 1 for number in hovering]
    tips, others = (
        np.array([tip_radius_m(drone) for drone in group])
        for group in (drones, tuple(system.drones[i] for i in stays))
    )
    clear_m = tips[:, None] + others + clearance_m + ASTRAY_M

    def efforts(x: Array) -> Array:  # needed over full thrust of all rotors
        pulls = cables.weight_n * cables.forces(x)
        sizes = np.linalg.norm(pulls + own, axis=1)
        ups = (pulls + own) / sizes[:, None]
        turns = np.array(
            [level_rotation(up, yaw) for up, yaw in zip(ups, yaws[survivors], strict=True)]
        )
        moments = np.cross(hooks, np.einsum("ni,nij->nj", pulls, turns))
        wrenches = np.column_stack([sizes, moments])
        return np.einsum("nrk,nk->nr", rotors, wrenches).ravel()

    def away(x: Array) -> Array:
        beside = cables.drones_at(x)[:, None, :2] - offsets[stays, :2]
        return np.asarray((np.linalg.norm(beside, axis=2) - clear_m).ravel())

    def way(x: Array) -> float:
        aside = (cables.drones_at(x) - offsets[survivors])[:, :2]
        return float((aside**2).sum() + LEAN_M**2 * (x[-2] ** 2 + x[-1] ** 2))

    along = offsets[survivors] - at_load[survivors]
    even = cables.unknowns(along[:, :2] / along[:, 2:], np.ones(len(survivors)))
    strongest, miss = cables.search(
        lambda y: float(y[-1]),
        np.append(even, efforts(even).max()),
        away,
        lambda y: y[-1] - efforts(y[:-1]),
    )
    if miss > MISSED or strongest[-1] <= 0.0:
        return None
    most = 1.0 / strongest[-1]
    best = strongest[:-1]
    target = most - max(RESERVE_GIVEN * (most - margin), SLIGHTLY)
    nearest, miss = cables.search(way, best, away, lambda x: 1.0 / target - efforts(x))
    best = best if miss > MISSED else nearest
    if not _stable(cables, best):
        return None
    places = np.full((n, 3), np.nan)
    turn = cables.turn(best)
    forces_n = cables.forces(best)
    forces_n = cables.weight_n * forces_n
    places[survivors] = drones_above(few, turn, forces_n, gravity_m_s2, yaws[survivors])
    tilt = float(np.degrees(np.arccos(np.clip(turn[2, 2], -1.0, 1.0))))
    margins = 1.0 / efforts(best).reshape(len(survivors), -1).max(axis=1)
    return Reallocation(places, margins, np.linalg.norm(forces_n, axis=1), tilt)


def _stable(cables: StraightCables, x: Array) -> bool:
    """Whether the load comes back when it is moved a little while the drones stay.

    The second variation of the potential energy plus the cables' tensions times their lengths
    (Lagrange), over the weight, must be positive for every motion that stretches no cable.
    """
    forces = cables.forces(x)
    turn = cables.turn(x)
    anchors = cables.at_load @ turn.T
    centre = turn @ cables.centre_m
    tension = np.linalg.norm(forces, axis=1)
    ends = anchors + cables.length_m[:, None] * forces / tension[:, None]

    def lengths(q: Array) -> Array:
        arms = rotate(from_rotation_vector(q[3:]), anchors)
        return np.asarray(np.linalg.norm(ends - q[:3] - arms, axis=1))

    def energy(q: Array) -> float:
        lift = q[2] + rotate(from_rotation_vector(q[3:]), centre)[2]
        return float(lift + tension @ lengths(q))

    step = 1e-3 * np.eye(6)
    slope = np.array([(lengths(h) - lengths(-h)) / 2e-3 for h in step]).T
    bend = (
        np.array(
            [
                [energy(h + k) - energy(h - k) - energy(k - h) + energy(-h - k) for k in step]
                for h in step
            ]
        )
        / 4e-6
    )
    free = scipy.linalg.null_space(slope, rcond=1e-6)
    if free.shape[1] == 0:
        return True
    return bool(np.linalg.eigvalsh(free.T @ bend @ free).min() > 0.0)
