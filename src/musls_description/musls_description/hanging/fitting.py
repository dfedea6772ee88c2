"""The formation that follows from a system: the load hangs level at its set-point, in even shares.

The paper's cone (radius 1.0 m, height 2.2962 m) is kept wherever it fits. Elsewhere each drone
flies in the direction of its cable's attachment, with the cable inclined as in the paper and rotor
tips apart, and so high that the load hangs at its set-point. Where that does not hold the load
level with tensions that are balanced, or brings rotors together (a beam, an L), places are proposed
that do: `proposed_places_m`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import Cone, with_places
from musls_description.hanging.equilibrium import drones_above, freed, hanging_equilibrium
from musls_description.hanging.straight_cables import StraightCables, even_shares, share_balance
from musls_description.hanging.tree import cable_azimuths_rad, tips_apart_m
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import from_yaw, rotate, wrapped
from musls_description.system.drone import tip_radius_m
from musls_description.system.slung_system import SlungLoadSystem

INCLINATION_RAD = 0.363
"""Angle of the paper's cables from the vertical, 20.8 degrees."""

STEEPEST_RAD = 1.0
"""Inclination beyond which rotors would mostly pull at each other."""

FITTING_SAG_M = 0.2
"""The load may hang so far from its set-point in a formation that counts as fitting."""

FITTING_RAD = np.radians(5.0)
"""The attachments may point so far off the drones in a formation that counts as fitting."""

TIPS_APART_M = 0.4
"""Least distance of the rotor tips of neighbours."""

FITTING_TIPS_M = 0.2
"""Least distance of the rotor tips in a formation that counts as fitting."""

CENTRAL_M = 0.02
"""An attachment nearer to the load's axis has no direction."""

LEVEL_M = 0.02
"""Drones whose heights differ by less fly at one height."""

BALANCE = 0.01
"""Force and moment that straight cables may miss, over the weight, in a formation that fits."""

SHARES = 0.3, 2.5
"""Least and largest force that a cable carries if possible, as shares of an even part of the
weight."""

SLACK_SHARE = 0.05
"""Force below which a cable counts as slack, as a share of an even part of the weight."""

STARTS = 4
"""Starting points of the search for places, for each distance of rotor tips."""

MOST_AT_ONCE = 24
"""Drones for which places are proposed; the search grows with the cube of their number."""


def fitting_formation(system: SlungLoadSystem, formation: Mapping[str, Any]) -> Cone:
    """Complete a formation from the system.

    `formation`: keys of `formation` that the scenario gives; they are kept.
    """
    if formation.get("places_m") is not None:
        return Cone(**formation)
    azimuths, even = _azimuths_rad(system)
    first = formation.get("first_azimuth_rad")
    if first is None:
        first = float(azimuths[0]) if even else 0.0
    cone = Cone(**{"first_azimuth_rad": first, **formation})
    shape = [key for key in ("radius_m", "height_m") if formation.get(key) is not None]
    if len(shape) == 2 or _fits(system, cone, formation):
        return cone
    if even or "first_azimuth_rad" in formation:
        azimuths = cone.azimuths_rad(system.n_drones)
    radius = np.full(system.n_drones, formation.get("radius_m", np.nan))
    if np.isnan(radius).any():
        radius = _radii_m(system, azimuths)
    heights = np.full(system.n_drones, formation.get("height_m", np.nan))
    if np.isnan(heights).any():
        heights = _heights_m(system, azimuths, radius)
    x, y = radius * np.cos(azimuths), radius * np.sin(azimuths)
    places = np.column_stack([x, y, heights])
    if not formation and not holds(system, places):
        proposed = proposed_places_m(system)
        if proposed is not None:
            return with_places(proposed)
        places = _at_height(system, places)
        heights = places[:, 2]
    if even and max(np.ptp(heights), np.ptp(radius)) < LEVEL_M:
        return Cone(
            radius_m=float(radius.mean()),
            height_m=float(heights.mean()),
            first_azimuth_rad=float(first),
        )
    return with_places(places)


def _at_height(system: SlungLoadSystem, places_m: Array) -> Array:
    """Places, (n, 3), so high that a load that does not hang level is at its set-point."""
    try:
        rest = hanging_equilibrium(freed(system), places_m)
    except ConfigError:
        return places_m  # the checks before the flight say why
    return np.asarray(places_m - [0.0, 0.0, rest.load_position_enu_m[2]])


def _azimuths_rad(system: SlungLoadSystem) -> tuple[Array, bool]:
    """Direction of each drone in the load's frame, (n,), and whether they are evenly spaced."""
    n = system.n_drones
    even = 2.0 * np.pi * np.arange(n) / n
    places = np.array(system.load.cable_attachments_m)[:, :2]
    if (np.linalg.norm(places, axis=1) < CENTRAL_M).any():
        return even, True
    azimuths = np.arctan2(places[:, 1], places[:, 0])
    off = wrapped(azimuths - even)
    mean = float(np.angle(np.exp(1j * off).mean()))
    spread = np.abs(wrapped(off - mean)).max()
    if spread < FITTING_RAD:
        return even + (0.0 if abs(mean) < FITTING_RAD else mean), True
    gaps = np.diff(np.sort(np.mod(azimuths, 2.0 * np.pi)), append=np.nan)
    if n > 1 and np.nanmin(gaps) < np.pi / n / 2.0:  # too close to each other
        return even, True
    return azimuths, False


def _ends(system: SlungLoadSystem, azimuths: Array, radius_m: Array) -> tuple[Array, Array]:
    """Vectors of straight cables from attachment to drone.

    Returns:
        Distance aside, (n,), and what is to be added to the cable's upright part for the height of
        the drone's place over the load's, (n,).
    """
    at_load = np.array(system.load.cable_attachments_m)
    hook = np.array([drone.cable_attachment_m for drone in system.drones])
    # Horizontal places as complex numbers; each drone faces the load's axis.
    place = (radius_m - (hook[:, 0] + 1j * hook[:, 1])) * np.exp(1j * azimuths)
    return np.abs(place - (at_load[:, 0] + 1j * at_load[:, 1])), at_load[:, 2] - hook[:, 2]


def _heights_m(system: SlungLoadSystem, azimuths: Array, radius_m: Array) -> Array:
    """Heights over the load's set-point at which straight cables hold it there, (n,)."""
    aside, extra_m = _ends(system, azimuths, radius_m)
    lengths = np.array([cable.length_m for cable in system.cables])
    # A radius beyond the cables is refused by the checks before the flight, which say why.
    upright = np.sqrt(np.maximum(lengths**2 - aside**2, (0.1 * lengths) ** 2))
    return np.asarray(upright + extra_m)


def _fits(system: SlungLoadSystem, cone: Cone, formation: Mapping[str, Any]) -> bool:
    """Whether the load hangs near its set-point, level and unturned in a formation."""
    if system.n_drones == 1 and cone.radius_m > 0.0:  # its cable hangs straight down
        return False
    azimuths, even = _azimuths_rad(system)
    off = wrapped(azimuths - cone.azimuths_rad(system.n_drones))
    if not even or ("first_azimuth_rad" not in formation and np.abs(off).max() > FITTING_RAD):
        return False
    radius = np.full(system.n_drones, cone.radius_m)
    aside, _ = _ends(system, azimuths, radius)
    if (aside >= [cable.length_m for cable in system.cables]).any():
        return False
    if system.n_drones > 1:
        tips = max(tip_radius_m(drone) for drone in system.drones)
        neighbours = 2.0 * cone.radius_m * np.sin(np.pi / system.n_drones)
        if neighbours < 2.0 * tips + FITTING_TIPS_M:
            return False
    heights = _heights_m(system, azimuths, radius)
    level = np.ptp(heights) < LEVEL_M
    return bool(level and np.abs(heights - cone.height_m).max() <= FITTING_SAG_M)


def _radii_m(system: SlungLoadSystem, azimuths: Array) -> Array:
    """Radii with cables inclined alike, as in the paper, and rotor tips apart, (n,)."""
    if system.n_drones == 1:
        return np.zeros(1)
    inner = np.linalg.norm(np.array(system.load.cable_attachments_m)[:, :2], axis=1)
    inner += np.array([drone.cable_attachment_m[0] for drone in system.drones])
    lengths = np.array([cable.length_m for cable in system.cables])
    around = np.sort(np.mod(azimuths, 2.0 * np.pi))
    gap = float(np.diff(around, append=around[0] + 2.0 * np.pi).min())
    tips = max(tip_radius_m(drone) for drone in system.drones)
    apart = (2.0 * tips + TIPS_APART_M) / (2.0 * np.sin(min(gap, np.pi) / 2.0))
    angle_rad = np.arcsin(np.clip((apart - inner.min()) / lengths.min(), 0.0, 1.0))
    inclination = min(max(INCLINATION_RAD, float(angle_rad)), STEEPEST_RAD)
    return np.asarray(inner + lengths * np.sin(inclination))


# ---------- Places that hold any load: straight cables first, then the exact chains


@dataclass(frozen=True)
class Shares:
    """Pulls that each cable can carry of a level load, over an even share of its weight.

    Attributes:
        even: Most even upright pulls, (n,).
        least: Least that a cable may carry in a formation.
        most: Most that a cable may carry in a formation.
        lowest: Largest pull that the weakest cable can carry.
    """

    even: Array
    least: float
    most: float
    lowest: float


def upright_shares(system: SlungLoadSystem) -> Shares | None:
    """Find how upright cables can hold the level load; None where they cannot."""
    at_load = np.array(system.load.cable_attachments_m)
    n = system.n_drones
    balance = share_balance(at_load, np.tile([0.0, 0.0, 1.0], (n, 1)))
    # Shares `lowest` + what is more: the largest lowest one.
    columns = np.column_stack([balance, balance.sum(axis=1)])
    moments = columns[3:5]
    result = scipy.optimize.linprog(
        -np.eye(n + 1)[n],
        A_ub=np.vstack([moments, -moments]),
        b_ub=np.full(4, 0.5 * BALANCE),
        A_eq=columns[2:3],
        b_eq=[1.0],
    )
    if result.status != 0:
        return None
    lowest = float(result.x[n])
    least = min(SHARES[0], 0.5 * lowest)
    even, _ = even_shares(balance, least)
    return Shares(even, least, max(SHARES[1], 1.5 * float(even.max())), lowest)


def holds(system: SlungLoadSystem, places_m: Array) -> bool:
    """Whether drones at places (n, 3) hold the level load in balanced shares, rotors apart.

    Cables are taken as straight, and the drones as facing the load's axis.
    """
    can = upright_shares(system)
    if can is None or tips_apart_m(system, places_m) < FITTING_TIPS_M:
        return False
    at_load = np.array(system.load.cable_attachments_m)
    yaws = np.arctan2(places_m[:, 1], places_m[:, 0]) + np.pi
    hooks = rotate(from_yaw(yaws), np.array([d.cable_attachment_m for d in system.drones]))
    along = places_m + hooks - at_load
    if (np.linalg.norm(along[:, :2], axis=1) > np.tan(1.01 * STEEPEST_RAD) * along[:, 2]).any():
        return False
    balance = share_balance(at_load, along / along[:, 2:])
    shares, miss = even_shares(balance, 0.8 * can.least)
    return bool(miss < BALANCE and shares.max() < 1.2 * can.most)


@lru_cache(maxsize=8)
def proposed_places_m(system: SlungLoadSystem) -> Array | None:
    """Places of the drones that hold a level load in balanced shares, rotors apart, (n, 3).

    Found are the slopes of the cables and the weight that each carries: as even as can be, inclined
    outwards as in the paper where the attachments are far out, such that forces and moments on the
    load balance and rotor discs stay apart seen from above. None where that is not possible.
    """
    if system.n_drones > MOST_AT_ONCE:
        return None
    for clearance_m in (TIPS_APART_M, 1.1 * FITTING_TIPS_M):
        for turn_rad in 2.0 * np.pi * np.arange(STARTS) / STARTS:
            places = _search(system, clearance_m, turn_rad)
            if places is not None:
                return places
    return None


def _search(system: SlungLoadSystem, clearance_m: float, turn_rad: float) -> Array | None:
    """Places with rotor tips so far apart, (n, 3), or None; the turn gives another start."""
    can = upright_shares(system)
    if can is None:
        return None
    n = system.n_drones
    at_load = np.array(system.load.cable_attachments_m)
    cables = StraightCables(
        system,
        STANDARD_GRAVITY_M_S2,
        clearance_m=clearance_m,
        steepest=np.tan(STEEPEST_RAD),
        shares=(can.least, can.most),
    )
    largest_m = 2.0 * max(tip_radius_m(drone) for drone in system.drones)
    first_rad = cable_azimuths_rad(system) + turn_rad
    start = _spread(at_load[:, :2], largest_m + clearance_m, first_rad)
    outwards = at_load[:, :2] if np.ptp(at_load[:, :2]) > CENTRAL_M else start - start.mean(axis=0)
    farthest = max(float(np.linalg.norm(outwards, axis=1).max()), CENTRAL_M)
    target = np.tan(INCLINATION_RAD) * outwards / farthest * (n > 1)

    def uneven(x: Array) -> float:
        off = cables.slopes(x) - target
        return float(((x[2 * n :] - can.even) ** 2).sum() + 0.1 * (off * off).sum())

    aside = start - at_load[:, :2]
    lengths = cables.length_m
    upright = np.sqrt(np.maximum(lengths**2 - (aside * aside).sum(axis=1), (0.5 * lengths) ** 2))
    solution, _ = cables.search(uneven, cables.unknowns(aside / upright[:, None], can.even))
    places = cables.drones_at(solution)
    for _ in range(3):  # each drone faces the load's axis, and its hook turns with it
        yaws = np.arctan2(places[:, 1], places[:, 0]) + np.pi
        forces_n = cables.weight_n * cables.forces(solution)
        places = drones_above(system, np.eye(3), forces_n, STANDARD_GRAVITY_M_S2, yaws)
    return places if holds(system, places) else None


def why_none(system: SlungLoadSystem) -> str | None:
    """Why no formation holds the load level; None if one does."""
    can = upright_shares(system)
    if can is None:
        return (
            "the load's centre of mass is not between its cable_attachments_m, so that no "
            "formation holds it level"
        )
    if can.lowest < SLACK_SHARE:
        return (
            "the load's centre of mass is on the edge of its cable_attachments_m: a level load "
            f"leaves a cable with {100.0 * can.lowest:.2g} % of an even share at most"
        )
    if proposed_places_m(system) is None:
        disc_m = 2.0 * max(tip_radius_m(drone) for drone in system.drones)
        longest_m = max(cable.length_m for cable in system.cables)
        return (
            f"no places side by side were found for {system.n_drones} rotor discs of {disc_m:.2f} "
            f"m, {FITTING_TIPS_M:g} m apart, above these attachments on cables of {longest_m:g} m"
        )
    return None


def _spread(places_m: Array, apart_m: float, first_rad: Array) -> Array:
    """Points near given ones, (n, 2), pushed apart until none is nearer than asked for.

    Each begins a little aside in a direction of its own, (n,), so that no two start in one place.
    """
    n = len(places_m)
    if n == 1:
        return places_m
    aside = 0.02 * apart_m * (1.0 + 0.01 * np.arange(n))[:, None]
    place = places_m + aside * np.column_stack([np.cos(first_rad), np.sin(first_rad)])
    for _ in range(1000):
        gap = place[:, None] - place[None]
        distance = np.linalg.norm(gap, axis=2) + np.eye(n)
        short = np.triu(np.maximum(apart_m - distance, 0.0), 1)
        short += short.T
        if short.max(initial=0.0) < 1e-3 * apart_m:
            break
        place = place + 0.3 * (short[..., None] / distance[..., None] * gap).sum(axis=1)
    return np.asarray(place)
