"""A formation for the drones that are left: cable forces that hold the load, and places for them.

Unknown are the force of each remaining cable on the load and the load's tilt. They hold its weight
(and what hangs from it) without moment; the places of the drones follow from them, as each cable
lies along its force. First the forces are found for which the drone that works hardest keeps the
largest thrust margin; then, with half of what that leaves above the margin to keep, those for which
the drones move least. Straight cables are taken for the search; the places that come out are those
of the exact chains (`drones_above`). A load that would not stay in this attitude is no solution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import minimize

from musls_description.hanging.cone import Cone
from musls_description.hanging.equilibrium import drones_above, freed
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_rotation_vector, from_yaw, matrix, rotate
from musls_description.system.drone import tip_radius_m
from musls_description.system.slung_system import SlungLoadSystem

STEEPEST_LOAD_RAD = np.deg2rad(30.0)
"""Tilt of the load that a formation may ask for."""

LEAN_M = 1.0
"""So far drones move to spare the load a radian of tilt."""

STEEPEST_CABLE = np.tan(np.deg2rad(35.0))
"""Horizontal over vertical force of a cable at most."""

MIN_SHARE = 0.1
"""Of an even share of the weight that each cable carries at least: none goes slack."""

RESERVE_GIVEN, SLIGHTLY = 0.5, 0.002
"""Share of the thrust margin above the one to keep that is given for moving less, and the least."""


ASTRAY_M = 0.3
"""So far from its place a drone may stop that leaves a moving formation: it follows late."""


@dataclass(frozen=True)
class Reallocation:
    """Formation of the drones that are left, carrying the load.

    Attributes:
        offsets_m: Places in the frame of the load's set-point, (n, 3); NaN for those lost.
        thrust_margins: Full thrust over needed thrust of each remaining drone, in their order.
        tension_n: Of their cables at the load.
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
    problem = _Problem(system, formation, gravity_m_s2, lost, hanging, hovering, clearance_m)
    best, share = problem.strongest()
    if best is None or share <= 0.0:
        return None
    most = 1.0 / share
    wanted = most - max(RESERVE_GIVEN * (most - margin), SLIGHTLY)
    nearest = problem.nearest(best, 1.0 / wanted)
    best = best if nearest is None else nearest
    return problem.solution(best) if problem.stable(best) else None


class _Problem:
    """Unknowns x: forces on the load (m, 3) over the weight, then roll and pitch of the load."""

    def __init__(
        self,
        system: SlungLoadSystem,
        formation: Cone,
        g: float,
        lost: Sequence[int],
        hanging: Sequence[int],
        hovering: Sequence[int],
        clearance_m: float,
    ) -> None:
        n, load = system.n_drones, system.load
        self.gravity = g
        self.left = left = [i for i in range(n) if i + 1 not in lost]
        self.count = len(left)
        self.azimuths = formation.azimuths_rad(n)
        self.places = formation.offsets_m(n)[left]
        self.weight_n, self.moment_n_m = load.mass_kg * g, np.zeros(3)
        for number in hanging:
            hung = (system.drones[number - 1].mass_kg + system.cables[number - 1].mass_kg) * g
            self.weight_n += hung
            self.moment_n_m += hung * np.array(load.cable_attachments_m[number - 1])
        self.drones = drones = tuple(system.drones[i] for i in left)
        cables = tuple(system.cables[i] for i in left)
        attachments = tuple(load.cable_attachments_m[i] for i in left)
        self.system = replace(
            system,
            load=replace(load, cable_attachments_m=attachments),
            drones=drones,
            cables=cables,
        )
        self.anchors = np.array(attachments)
        hooks = np.array([drone.cable_attachment_m for drone in drones])
        self.hooks = rotate(from_yaw(self.azimuths[left] + np.pi), hooks)
        self.length_m = np.array([cable.length_m for cable in cables])
        self.half_cable_n = np.array([[0.0, 0.0, 0.5 * cable.mass_kg * g] for cable in cables])
        self.own_n = g * np.array(
            [d.mass_kg + c.mass_kg for d, c in zip(drones, cables, strict=True)]
        )
        self.full_n = np.array([drone.max_thrust_n for drone in drones])
        tips = np.array([tip_radius_m(drone) for drone in drones])
        self.apart_m = tips[:, None] + tips[None] + clearance_m
        stays = [number - 1 for number in hovering]
        self.obstacles = formation.offsets_m(n)[stays, :2]
        others = np.array([tip_radius_m(system.drones[i]) for i in stays])
        self.clear_m = tips[:, None] + others[None] + clearance_m + ASTRAY_M

    def forces(self, x: Array) -> Array:
        """Of the cables on the load, (m, 3) [N]."""
        return x[: 3 * self.count].reshape(-1, 3) * self.weight_n

    def tilted(self, x: Array) -> Array:
        """Rotation of the load by its tilt, (3, 3)."""
        found: Array = matrix(from_rotation_vector(np.array([x[-2], x[-1], 0.0])))
        return found

    def turned(self, x: Array) -> Array:
        """Attachment points about the load's centre, (m, 3) [m]."""
        return self.anchors @ self.tilted(x).T

    def drones_at(self, x: Array) -> Array:
        """Places of the drones about the load's centre for straight cables, (m, 3) [m]."""
        middle = self.forces(x) + self.half_cable_n
        along = middle / np.linalg.norm(middle, axis=1, keepdims=True)
        return self.turned(x) + self.length_m[:, None] * along - self.hooks

    def thrusts(self, x: Array) -> Array:
        """Of the drones, (m, 3) [N]."""
        return self.forces(x) + self.own_n[:, None] * np.array([0.0, 0.0, 1.0])

    def balance(self, x: Array) -> Array:
        """Force and moment on the load, zero in equilibrium, (6,)."""
        forces = self.forces(x) / self.weight_n
        total = forces.sum(axis=0) - [0.0, 0.0, 1.0]
        hung = self.tilted(x) @ self.moment_n_m / self.weight_n
        moment = np.cross(self.turned(x), forces).sum(axis=0) + np.cross(hung, [0.0, 0.0, -1.0])
        return np.concatenate([total, 5.0 * moment])

    def room(self, x: Array) -> Array:
        """Constraints g >= 0: distances of the drones, tensions, slopes of the cables."""
        forces = self.forces(x) / self.weight_n
        drones = self.drones_at(x)
        i, j = np.triu_indices(self.count, 1)
        apart = np.linalg.norm(drones[i] - drones[j], axis=1) - self.apart_m[i, j]
        flat = (STEEPEST_CABLE * forces[:, 2]) ** 2 - (forces[:, :2] ** 2).sum(axis=1)
        lean = STEEPEST_LOAD_RAD**2 - x[-2] ** 2 - x[-1] ** 2
        away = np.linalg.norm(drones[:, None, :2] - self.obstacles[None], axis=2) - self.clear_m
        carries = forces[:, 2] - MIN_SHARE / self.count
        return np.concatenate([apart, flat, carries, [lean], away.ravel()])

    def first_guess(self) -> Array:
        """Even shares, along the present places."""
        along = self.places - self.anchors
        forces = along / along[:, 2:] / self.count
        return np.concatenate([forces.ravel(), np.zeros(2)])

    def strongest(self) -> tuple[Array | None, float]:
        """Forces with the largest thrust margin, and the share of the thrust they take."""
        start = self.first_guess()
        most = (np.linalg.norm(self.thrusts(start), axis=1) / self.full_n).max()

        def spare(y: Array) -> Array:
            shares = np.linalg.norm(self.thrusts(y[:-1]), axis=1) / self.full_n
            return y[-1] - shares

        found = self._solve(
            lambda y: float(y[-1]), np.append(start, most),
            [("eq", lambda y: self.balance(y[:-1])), ("ineq", lambda y: self.room(y[:-1])),
             ("ineq", spare)],
        )  # fmt: skip
        return (None, 0.0) if found is None else (found[:-1], float(found[-1]))

    def nearest(self, start: Array, share: float) -> Array | None:
        """Forces for which the drones move least, with at most a share of their thrust."""

        def way(x: Array) -> float:
            aside = (self.drones_at(x) - self.places)[:, :2]
            lean = x[-2] ** 2 + x[-1] ** 2
            return float((aside**2).sum() + LEAN_M**2 * lean)

        return self._solve(
            way, start,
            [("eq", self.balance), ("ineq", self.room),
             ("ineq", lambda x: share - np.linalg.norm(self.thrusts(x), axis=1) / self.full_n)],
        )  # fmt: skip

    @staticmethod
    def _solve(
        cost: Callable[[Array], float],
        start: Array,
        constraints: Sequence[tuple[str, Callable[[Array], Array]]],
    ) -> Array | None:
        limits: list[Any] = [{"type": kind, "fun": what} for kind, what in constraints]
        found = minimize(
            cost, start, method="SLSQP", constraints=limits, options={"maxiter": 200, "ftol": 1e-9}
        )
        kept = all(
            (np.abs(what(found.x)) if kind == "eq" else -what(found.x)).max() < 1e-4
            for kind, what in constraints
        )
        return found.x if kept else None

    def solution(self, x: Array) -> Reallocation:
        """Places of the drones by the exact shapes of the chains, and what is left of thrusts."""
        rotation, forces = self.tilted(x), self.forces(x)
        offsets = np.full((len(self.azimuths), 3), np.nan)
        offsets[self.left] = drones_above(
            freed(self.system), np.zeros(3), rotation, forces, self.gravity,
            self.azimuths[self.left] + np.pi,
        )  # fmt: skip
        margins = self.full_n / np.linalg.norm(self.thrusts(x), axis=1)
        tilt = float(np.degrees(np.arccos(np.clip(rotation[2, 2], -1.0, 1.0))))
        return Reallocation(offsets, margins, np.linalg.norm(forces, axis=1), tilt)

    def stable(self, x: Array) -> bool:
        """Whether the load comes back when it is moved a little while the drones stay.

        The second variation of the potential energy plus the cables' tensions times their lengths
        (Lagrange) must be positive for every motion that stretches no cable.
        """
        forces, anchors, pose = self.forces(x), self.turned(x), self.tilted(x)
        tension = np.linalg.norm(forces, axis=1)
        ends = anchors + self.length_m[:, None] * forces / tension[:, None]
        hung = pose @ self.moment_n_m  # weight of what hangs times where

        def lengths(q: Array) -> Array:
            turn = from_rotation_vector(q[3:])
            return np.linalg.norm(ends - q[:3] - rotate(turn, anchors), axis=1)

        def energy(q: Array) -> float:
            lift = self.weight_n * q[2] + rotate(from_rotation_vector(q[3:]), hung)[2]
            return float(lift + tension @ lengths(q))

        step = 1e-3 * np.eye(6)
        slope = np.array([(lengths(h) - lengths(-h)) / 2e-3 for h in step]).T
        bend = np.array([
            [energy(h + k) - energy(h - k) - energy(k - h) + energy(-h - k) for k in step]
            for h in step
        ]) / 4e-6  # fmt: skip
        free = null_space(slope, rcond=1e-6)
        if free.shape[1] == 0:
            return True
        return bool(np.linalg.eigvalsh(free.T @ bend @ free).min() > 0.0)
