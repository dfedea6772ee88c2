"""The formation that follows from a system where the scenario gives none.

The paper's cone (radius 1.0 m, height 2.2962 m) is kept wherever it fits. Elsewhere each drone
flies in the direction of its cable's attachment, with the cable inclined as in the paper and rotor
tips apart, and so high that the load hangs at its set-point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.formation import Cone
from musls_description.rotor_reach import tip_radius_m
from musls_description.system import SlungLoadSystem

Array = NDArray[np.float64]

INCLINATION_RAD = 0.363
"""Of the paper's cables from the vertical, 20.8 degrees."""

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


def fitting_formation(system: SlungLoadSystem, given: Mapping[str, Any]) -> Cone:
    """Complete a formation from the system.

    Args:
        system: Load, drones and cables.
        given: Keys of `formation` that the scenario gives; they are kept.
    """
    if given.get("places_m") is not None:
        return Cone(**given)
    azimuths, even = _azimuths_rad(system)
    first = given.get("first_azimuth_rad")
    if first is None:
        first = float(azimuths[0]) if even else 0.0
    asked = Cone(**{"first_azimuth_rad": first, **given})
    shape = [key for key in ("radius_m", "height_m") if given.get(key) is not None]
    if len(shape) == 2 or _fits(system, asked, given):
        return asked
    if even or "first_azimuth_rad" in given:
        azimuths = asked.azimuths_rad(system.n_drones)
    radius = np.full(system.n_drones, given.get("radius_m", np.nan))
    if np.isnan(radius).any():
        radius = _radii_m(system, azimuths)
    heights = np.full(system.n_drones, given.get("height_m", np.nan))
    if np.isnan(heights).any():
        heights = _heights_m(system, azimuths, radius)
    if even and max(np.ptp(heights), np.ptp(radius)) < LEVEL_M:
        return Cone(
            radius_m=float(radius.mean()),
            height_m=float(heights.mean()),
            first_azimuth_rad=float(first),
        )
    x, y = radius * np.cos(azimuths), radius * np.sin(azimuths)
    places = tuple((float(a), float(b), float(c)) for a, b, c in zip(x, y, heights, strict=True))
    return Cone(
        radius_m=float(radius.mean()), height_m=float(heights.mean()),
        first_azimuth_rad=float(azimuths[0]), places_m=places,
    )  # fmt: skip


def _azimuths_rad(system: SlungLoadSystem) -> tuple[Array, bool]:
    """Direction of each drone in the load's frame, (n,), and whether they are evenly spaced."""
    n = system.n_drones
    even = 2.0 * np.pi * np.arange(n) / n
    places = np.array(system.load.cable_attachments_m)[:, :2]
    if (np.linalg.norm(places, axis=1) < CENTRAL_M).any():
        return even, True
    azimuths = np.arctan2(places[:, 1], places[:, 0])
    off = np.angle(np.exp(1j * (azimuths - even)))
    mean = float(np.angle(np.exp(1j * off).mean()))
    spread = np.abs(np.angle(np.exp(1j * (off - mean)))).max()
    if spread < FITTING_RAD:
        return even + (0.0 if abs(mean) < FITTING_RAD else mean), True
    gaps = np.diff(np.sort(np.mod(azimuths, 2.0 * np.pi)), append=np.nan)
    if n > 1 and np.nanmin(gaps) < np.pi / n / 2.0:  # too close to each other
        return even, True
    return azimuths, False


def _ends(system: SlungLoadSystem, azimuths: Array, radius_m: Array) -> tuple[Array, Array]:
    """How straight cables run from attachment to drone.

    Returns:
        Distance aside, (n,), and what is to be added to the cable's upright part for the height of
        the drone's place over the load's, (n,).
    """
    aside, added = [], []
    for i, drone in enumerate(system.drones):
        at_load = np.array(system.load.cable_attachments_m[i])
        facing = azimuths[i] + np.pi
        cos, sin = np.cos(facing), np.sin(facing)
        x, y, z = drone.cable_attachment_m
        end = [cos * x - sin * y, sin * x + cos * y]
        place = radius_m[i] * np.array([np.cos(azimuths[i]), np.sin(azimuths[i])])
        aside.append(np.linalg.norm(place + end - at_load[:2]))
        added.append(at_load[2] - z)
    return np.array(aside), np.array(added)


def _heights_m(system: SlungLoadSystem, azimuths: Array, radius_m: Array) -> Array:
    """Heights over the load's set-point at which straight cables hold it there, (n,)."""
    aside, added = _ends(system, azimuths, radius_m)
    lengths = np.array([cable.length_m for cable in system.cables])
    # A radius beyond the cables is refused by the checks before the flight, which say why.
    upright = np.sqrt(np.maximum(lengths**2 - aside**2, (0.1 * lengths) ** 2))
    return np.asarray(upright + added)


def _fits(system: SlungLoadSystem, cone: Cone, given: Mapping[str, Any]) -> bool:
    """Whether the load hangs near its set-point and unturned in a formation."""
    azimuths, even = _azimuths_rad(system)
    off = np.angle(np.exp(1j * (azimuths - cone.azimuths_rad(system.n_drones))))
    if not even or ("first_azimuth_rad" not in given and np.abs(off).max() > FITTING_RAD):
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
    return bool(np.abs(heights - cone.height_m).max() <= FITTING_SAG_M)


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
    needed = np.arcsin(np.clip((apart - inner.min()) / lengths.min(), 0.0, 1.0))
    inclination = min(max(INCLINATION_RAD, float(needed)), STEEPEST_RAD)
    return np.asarray(inner + lengths * np.sin(inclination))
