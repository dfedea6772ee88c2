"""Places on the ground: load flat, drones standing around it, cables slack between them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy

from musls_description.config.errors import ConfigError
from musls_description.hanging.tree import (
    GROUND_TIPS_M,
    SLACK_RATIO,
    Configuration,
    cable_azimuths_rad,
    configuration_from_directions,
    tips_apart_m,
)
from musls_description.numerics.arrays import Array
from musls_description.system.drone import tip_radius_m
from musls_description.system.slung_system import SlungLoadSystem

LANDING_RATIO = 0.75
"""Distance of a cable's ends over its length where a drone lands beside a load that was flown.

The load may lie a little aside, turned or leaning, and no cable is to come taut by that.
"""

LEAST_RISE_M = 0.01
"""Height by which a drone may rise on a cable of one link, which is taut on the ground but pulls
nothing."""

BESIDE_LOAD_M = 0.1
"""Rotors keep so far from the load, at least, where a drone comes down nearer than it stood."""


def ground_spawn(
    system: SlungLoadSystem,
    load_position_enu_m: tuple[float, float] = (0.0, 0.0),
    load_yaw_rad: float = 0.0,
    ground_height_enu_m: float = 0.0,
) -> Configuration:
    """Put load and drones on the ground with each cable in a flat S between them.

    The S lies on its side, not upright, so nothing falls far when the run starts. It turns by less
    than 45 degrees from the straight line, far from the joints' singularity at 90 degrees.
    """
    c, s = np.cos(load_yaw_rad), np.sin(load_yaw_rad)
    rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    height = ground_height_enu_m - system.load.collision.bottom_m
    position = np.array([*load_position_enu_m, height])
    directions = []
    yaws = []
    for i, azimuth in enumerate(load_yaw_rad + cable_azimuths_rad(system)):
        links = _bow(system.cables[i].links, azimuth, _slope_on_ground(system, i))
        directions.append(np.vstack([links, [0.0, 0.0, 1.0]]))
        yaws.append(azimuth + np.pi)
    return configuration_from_directions(system, position, rotation, directions, np.array(yaws))


def ground_radius_m(system: SlungLoadSystem, index: int) -> float:
    """Horizontal distance between a cable's ends in `ground_spawn` [m]."""
    cable = system.cables[index]
    links = _bow(cable.links, 0.0, _slope_on_ground(system, index))
    return float(np.hypot(*(links[:, :2].sum(axis=0) * cable.link_length_m)))


def landing_places_m(system: SlungLoadSystem, standing_m: Array) -> Array:
    """Places to land with slack cables round a load that was flown, in its frame, (n, 3) [m].

    `standing_m`, (n, 3): where the drones stood before; they land in the same directions, nearer
    to the load where there is room for all rotors, and nowhere farther away.
    """
    load = system.load
    (ahead_m, aside_m) = standing_m[:, :2].T
    hooks = np.array(load.cable_attachments_m)[:, :2]
    out = np.column_stack([ahead_m, aside_m]) - hooks
    stood_m = np.linalg.norm(out, axis=1)
    out /= np.maximum(stood_m, 1e-9)[:, None]
    corners_m = np.array([corner[:2] for corner in load.collision.corners_m])
    edge_m = (np.einsum("ik,jk->ij", out, corners_m) - (out * hooks).sum(axis=1)[:, None]).max(1)
    rotors_m = np.array([tip_radius_m(drone) for drone in system.drones])
    slack_m = np.array([LANDING_RATIO * cable.length_m for cable in system.cables])
    near_m = np.minimum(np.maximum(slack_m, edge_m + rotors_m + BESIDE_LOAD_M), stood_m)
    least_m = min(GROUND_TIPS_M, tips_apart_m(system, standing_m))
    places = standing_m.copy()
    for share in np.linspace(0.0, 1.0, 11):
        far_m = near_m + share * (stood_m - near_m)
        places[:, :2] = hooks + far_m[:, None] * out
        if tips_apart_m(system, places) >= least_m - 1e-9:
            break
    return places


def highest_rise_m(system: SlungLoadSystem) -> Array:
    """Height above where it stands on the ground at which each drone's cable pulls, (n,) [m]."""
    highest = []
    for i, (drone, cable) in enumerate(zip(system.drones, system.cables, strict=True)):
        load_end_m = system.load.cable_attachments_m[i][2] - system.load.collision.bottom_m
        drone_end_m = drone.cable_attachment_m[2] - drone.collision.bottom_m
        reach_m = np.sqrt(max(cable.length_m**2 - ground_radius_m(system, i) ** 2, 0.0))
        highest.append(max(load_end_m + reach_m - drone_end_m, LEAST_RISE_M))
    return np.array(highest)


def _slope_on_ground(system: SlungLoadSystem, index: int) -> float:
    """Rise of a cable over its length where load and drones stand on the ground."""
    drone = system.drones[index]
    load = system.load
    cable = system.cables[index]
    end = drone.cable_attachment_m[2] - drone.collision.bottom_m
    start = load.cable_attachments_m[index][2] - load.collision.bottom_m
    if abs(end - start) >= cable.length_m:
        raise ConfigError(
            f"cable {index + 1} of {cable.length_m:g} m does not reach from the load to its drone "
            f"where both stand on the ground: its ends are {start:.3g} m and {end:.3g} m high; "
            "choose a longer cable, lower attachments or a start in the air"
        )
    return float((end - start) / cable.length_m)


def bow(links: int, chord_m: Array, length_m: float) -> Array:
    """Places of the nodes of a slack cable in a bow, from its first end, (links + 1, 3) [m].

    `chord_m` is the way to its other end, (3,), shorter than the cable.
    """
    slope = float(chord_m[2]) / length_m
    ratio = float(np.hypot(*chord_m[:2])) / (length_m * np.sqrt(1.0 - slope**2))
    azimuth = float(np.arctan2(chord_m[1], chord_m[0]))
    links_m = _bow(links, azimuth, slope, _bend_rad(links, ratio)) * length_m / links
    nodes = np.vstack([np.zeros(3), np.cumsum(links_m, axis=0)])
    nodes += np.linspace(0.0, 1.0, links + 1)[:, None] * (chord_m - nodes[-1])  # of one link
    return nodes


def _bow(links: int, azimuth_rad: float, slope: float, bend_rad: float | None = None) -> Array:
    """Unit directions of the links of a cable that lies in a bow along an azimuth, (links, 3).

    `slope` is the rise over the length of the cable, the same for every link.
    """
    flat = np.sqrt(1.0 - slope**2)
    bend_rad = _bend_rad(links) if bend_rad is None else bend_rad
    heading = azimuth_rad + bend_rad * _bow_shape(links)
    return np.column_stack([flat * np.cos(heading), flat * np.sin(heading), np.full(links, slope)])


@lru_cache
def _bend_rad(links: int, ratio: float = SLACK_RATIO) -> float:
    """Angle at which a bow's ends are a share of its length apart."""
    if links == 1:
        return 0.0
    shape = _bow_shape(links)
    largest = 2.0 if ratio == SLACK_RATIO else np.pi
    return float(
        scipy.optimize.brentq(
            lambda a: np.mean(np.cos(a * shape)) - ratio, 0.0, largest, xtol=1e-15
        )
    )


def _bow_shape(links: int) -> Array:
    """Heading of each link over the largest one, (links,).

    An S leaves load and drone straight along the azimuth: the drone, which a chain without twist
    turns with its last link, then faces the load. Fewer links only make a simple arc.
    """
    place = np.linspace(0.0, 1.0, links)
    shape: Array = np.sin(2.0 * np.pi * place) if links > 3 else place - 0.5
    return shape
