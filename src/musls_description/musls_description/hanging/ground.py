"""Places on the ground: load flat, drones standing around it, cables slack between them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from musls_description.config.errors import ConfigError
from musls_description.hanging.configuration import (
    Configuration,
    configuration_from_directions,
)
from musls_description.hanging.tree import SLACK_RATIO, cable_azimuths_rad
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import SlungLoadSystem


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
    directions, yaws = [], []
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


def highest_rise_m(system: SlungLoadSystem) -> Array:
    """Height above where it stands on the ground at which each drone's cable is taut, (n,) [m]."""
    highest = []
    for i, (drone, cable) in enumerate(zip(system.drones, system.cables, strict=True)):
        load_end_m = system.load.cable_attachments_m[i][2] - system.load.collision.bottom_m
        drone_end_m = drone.cable_attachment_m[2] - drone.collision.bottom_m
        reach_m = np.sqrt(max(cable.length_m**2 - ground_radius_m(system, i) ** 2, 0.0))
        highest.append(load_end_m + reach_m - drone_end_m)
    return np.array(highest)


def _slope_on_ground(system: SlungLoadSystem, index: int) -> float:
    """Rise of a cable over its length where load and drones stand on the ground."""
    drone, load, cable = system.drones[index], system.load, system.cables[index]
    end = drone.cable_attachment_m[2] - drone.collision.bottom_m
    start = load.cable_attachments_m[index][2] - load.collision.bottom_m
    if abs(end - start) >= cable.length_m:
        raise ConfigError(
            f"cable {index + 1} of {cable.length_m:g} m does not reach from the load to its drone "
            f"where both stand on the ground: its ends are {start:.3g} m and {end:.3g} m high; "
            "choose a longer cable, lower attachments or a start in the air"
        )
    return float((end - start) / cable.length_m)


def _bow(links: int, azimuth_rad: float, slope: float) -> Array:
    """Unit directions of the links of a cable that lies in a bow along an azimuth, (links, 3).

    `slope` is the rise over the length of the cable, the same for every link.
    """
    flat = np.sqrt(1.0 - slope**2)
    heading = azimuth_rad + _bend_rad(links) * _bow_shape(links)
    return np.column_stack([flat * np.cos(heading), flat * np.sin(heading), np.full(links, slope)])


@lru_cache
def _bend_rad(links: int) -> float:
    """How far a bow turns from the straight line, so that its ends are `SLACK_RATIO` apart."""
    if links == 1:
        return 0.0
    shape = _bow_shape(links)
    return float(brentq(lambda a: np.mean(np.cos(a * shape)) - SLACK_RATIO, 0.0, 2.0, xtol=1e-15))


def _bow_shape(links: int) -> Array:
    """Heading of each link over the largest one, (links,).

    An S leaves load and drone straight along the azimuth: the drone, which a chain without twist
    turns with its last link, then faces the load. Fewer links only make a simple arc.
    """
    place = np.linspace(0.0, 1.0, links)
    shape: Array = np.sin(2.0 * np.pi * place) if links > 3 else place - 0.5
    return shape
