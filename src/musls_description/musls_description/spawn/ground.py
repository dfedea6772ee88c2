"""Start on the ground: load flat, drones standing around it, cables slack between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.roots import bisected
from musls_description.spawn.configuration import Configuration, configuration_from_directions
from musls_description.system import SlungLoadSystem
from musls_description.tree import cable_azimuth_rad

Array = NDArray[np.float64]

SLACK_RATIO = 0.9
"""Distance of the cable's ends over its length."""


def ground_spawn(
    system: SlungLoadSystem,
    load_position_enu_m: tuple[float, float] = (0.0, 0.0),
    load_yaw_rad: float = 0.0,
    ground_height_enu_m: float = 0.0,
) -> Configuration:
    """Put load and drones on the ground with each cable in a flat S between them.

    The S lies on its side, not upright, so nothing falls far when the run starts. It turns by less
    than 45 degrees from the straight line, far from the joints' singularity at 90 degrees.

    Args:
        system: The system.
        load_position_enu_m: Where the load stands, (2,).
        load_yaw_rad: Heading of the load.
        ground_height_enu_m: Height of the ground.
    """
    c, s = np.cos(load_yaw_rad), np.sin(load_yaw_rad)
    rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    height = ground_height_enu_m - system.load.collision.bottom_m
    position = np.array([*load_position_enu_m, height])
    directions, yaws = [], []
    for i in range(system.n_drones):
        azimuth = load_yaw_rad + cable_azimuth_rad(system, i)
        start = position[2] + system.load.cable_attachments_m[i][2]
        drone = system.drones[i]
        end = ground_height_enu_m - drone.collision.bottom_m + drone.cable_attachment_m[2]
        links = _bow(system.cables[i].links, azimuth, (end - start) / system.cables[i].length_m)
        directions.append(np.vstack([links, [0.0, 0.0, 1.0]]))
        yaws.append(azimuth + np.pi)
    return configuration_from_directions(system, position, rotation, directions, np.array(yaws))


def ground_radius_m(system: SlungLoadSystem, index: int) -> float:
    """Horizontal distance between a cable's ends in `ground_spawn` [m]."""
    drone, cable = system.drones[index], system.cables[index]
    rise = (drone.cable_attachment_m[2] - drone.collision.bottom_m) - (
        system.load.cable_attachments_m[index][2] - system.load.collision.bottom_m
    )
    links = _bow(cable.links, 0.0, rise / cable.length_m)
    return float(np.hypot(*(links[:, :2].sum(axis=0) * cable.link_length_m)))


def _bow(links: int, azimuth_rad: float, slope: float) -> Array:
    """Unit directions of the links of a cable that lies in a bow along an azimuth, (links, 3).

    `slope` is the rise over the length of the cable, the same for every link.
    """
    flat = np.sqrt(1.0 - slope**2)
    place = np.linspace(0.0, 1.0, links)
    # An S leaves load and drone straight along the azimuth: the drone, which a chain without
    # twist turns with its last link, then faces the load. Fewer links only make a simple arc.
    shape = np.sin(2.0 * np.pi * place) if links > 3 else place - 0.5
    bend = 0.0
    if links > 1:
        bend = bisected(lambda a: float(np.mean(np.cos(a * shape))) - SLACK_RATIO, 0.0, 2.0)
    heading = azimuth_rad + bend * shape
    return np.column_stack([flat * np.cos(heading), flat * np.sin(heading), np.full(links, slope)])
