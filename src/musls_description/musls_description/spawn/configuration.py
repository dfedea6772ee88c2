"""A configuration of the whole tree: pose of the load and the two angles of every joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_description.system import SlungLoadSystem
from musls_description.tree import JOINT_IN_DRONE, cable_azimuth_rad, joint_in_load

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Configuration:
    """Pose of every body by generalised coordinates.

    Attributes:
        load_position_enu_m: (3,).
        load_rotation: Load frame to world, (3, 3).
        joint_angles_rad: Per cable (links + 1, 2): angles about the joint's y and z axes, from
            the load to the drone.
    """

    load_position_enu_m: Array
    load_rotation: Array
    joint_angles_rad: tuple[Array, ...]

    @property
    def coordinates(self) -> Array:
        """All coordinates in the order of the tree: rotation vector, position, joint angles."""
        rotation = Rotation.from_matrix(self.load_rotation).as_rotvec()
        angles = [cable.ravel() for cable in self.joint_angles_rad]
        return np.concatenate([rotation, self.load_position_enu_m, *angles])


def universal_angles(direction: Array) -> Array:
    """Angles (about y, then z) that turn the x axis into a unit direction, (2,) [rad]."""
    x, y, z = direction
    return np.array([np.arctan2(-z, x), np.arcsin(np.clip(y, -1.0, 1.0))])


def universal_rotation(angles_rad: Array) -> Array:
    """Rotation Ry(first angle) Rz(second angle) of a universal joint, (3, 3)."""
    (ca, cb), (sa, sb) = np.cos(angles_rad), np.sin(angles_rad)
    return np.array([[ca * cb, -ca * sb, sa], [sb, cb, 0.0], [-sa * cb, sa * sb, ca]])


def chain_from_directions(start_rotation: Array, directions: Array) -> tuple[Array, Array]:
    """Joint angles of one cable from the world directions of its links and the drone's z axis.

    Args:
        start_rotation: Frame of the first joint in the world, (3, 3).
        directions: Unit vectors of the links from the load upwards, then the drone's z, (n + 1, 3).

    Returns:
        Angles (n + 1, 2) and the drone's rotation (3, 3). The drone's yaw follows: universal
        joints do not twist.
    """
    rotation = start_rotation
    angles = np.empty((len(directions), 2))
    for j, direction in enumerate(directions):
        angles[j] = universal_angles(rotation.T @ direction)
        rotation = rotation @ universal_rotation(angles[j])
    return angles, rotation @ JOINT_IN_DRONE.T


def configuration_from_directions(
    system: SlungLoadSystem,
    load_position_enu_m: Array,
    load_rotation: Array,
    directions: Sequence[Array],
) -> Configuration:
    """Configuration in which the links (and the drones' z axes) point in given directions.

    Args:
        system: The system.
        load_position_enu_m: (3,).
        load_rotation: Load frame to world, (3, 3).
        directions: Per cable (links + 1, 3) as for `chain_from_directions`.
    """
    angles = []
    for i, chain in enumerate(directions):
        start = load_rotation @ joint_in_load(cable_azimuth_rad(system, i))
        angles.append(chain_from_directions(start, chain)[0])
    return Configuration(np.asarray(load_position_enu_m, float), load_rotation, tuple(angles))
