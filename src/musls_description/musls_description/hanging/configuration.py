"""Configuration of the tree: pose of the load and the angles of every joint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from musls_description.hanging.tree import (
    JOINT_IN_DRONE,
    QUARTER_TURN,
    build_tree,
    cable_azimuths_rad,
    joint_in_load,
)
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_matrix, intrinsic_xyz, rotation_vector
from musls_description.system.slung_system import SlungLoadSystem


@dataclass(frozen=True)
class Configuration:
    """Pose of every body by generalised coordinates.

    Attributes:
        load_position_enu_m: (3,).
        load_rotation: Load frame to world, (3, 3).
        joint_angles_rad: Per cable: angles about the axes of its joints, from the load to the
            drone, (2 links + 2,), or one more where the cable is free to twist.
    """

    load_position_enu_m: Array
    load_rotation: Array
    joint_angles_rad: tuple[Array, ...]

    @property
    def coordinates(self) -> Array:
        """All coordinates in the order of the tree: rotation vector, position, joint angles."""
        rotation = rotation_vector(from_matrix(self.load_rotation))
        return np.concatenate([rotation, self.load_position_enu_m, *self.joint_angles_rad])

    def bodies(self, system: SlungLoadSystem) -> tuple[Array, Array]:
        """Place (1 + n, 3) and orientation [w, x, y, z] (1 + n, 4) of load and drones."""
        tree = build_tree(system)
        rotations, positions = tree.poses(self.coordinates)
        rows = [0, *tree.drone]
        return positions[rows], from_matrix(rotations[rows])


def level_rotation(z_axis: Array, yaw_rad: float) -> Array:
    """Rotation with a given z axis whose x axis, seen from above, points along a yaw, (3, 3)."""
    (zx, zy, zz), c, s = z_axis, math.cos(yaw_rad), math.sin(yaw_rad)
    across = math.sqrt(zz * zz + (zx * s - zy * c) ** 2)  # y = z x (c, s, 0), normalised
    yx, yy, yz = -zz * s / across, zz * c / across, (zx * s - zy * c) / across
    x = (yy * zz - yz * zy, yz * zx - yx * zz, yx * zy - yy * zx)
    return np.array([[x[0], yx, zx], [x[1], yy, zy], [x[2], yz, zz]], dtype=float)


def universal_chain(rotation: Array, directions: Array) -> tuple[list[float], Array]:
    """Angles of universal joints that point one body after the other in given directions.

    From the frame of the first joint in the world, (3, 3), and world directions of the bodies' x
    axes, (k, 3): angles (2 k) and the last body's frame, (3, 3).
    """
    angles: list[float] = []
    for direction in directions:
        x, y, z = direction @ rotation
        first, second = math.atan2(-z, x), math.asin(min(max(y, -1.0), 1.0))
        ca, sa, cb, sb = math.cos(first), math.sin(first), math.cos(second), math.sin(second)
        rotation = rotation @ [[ca * cb, -ca * sb, sa], [sb, cb, 0.0], [-sa * cb, sa * sb, ca]]
        angles += [first, second]
    return angles, rotation


def chain_from_directions(
    start_rotation: Array, directions: Array, drone_yaw_rad: float | None = None
) -> tuple[Array, Array]:
    """Joint angles of one cable from the world directions of its links and the drone's z axis.

    Args:
        start_rotation: Frame of the first joint in the world at zero angles, (3, 3).
        directions: Unit vectors of the links from the load upwards, then the drone's z, (n + 1, 3).
        drone_yaw_rad: Yaw of the drone on a cable that is free to twist; None for one that is
            not: the drone's yaw then follows from the chain.

    Returns:
        Angles (2 n + 2,), or one more with free twist, and the drone's rotation (3, 3).
    """
    if drone_yaw_rad is None:
        angles, rotation = universal_chain(start_rotation, directions)
        return np.array(angles), rotation @ JOINT_IN_DRONE.T
    # Back from the drone: a universal joint takes the y axis of the link before to (d x y) x d, see
    # `write_gaps`; so y lies in the plane of that and of d, and across the link before.
    y = -level_rotation(directions[-1], drone_yaw_rad)[:, 1]
    for link, before in pairwise(directions[::-1]):
        along = link @ before
        y = math.copysign(1.0, along) * (along * y - (y @ before) * link)
        y /= np.linalg.norm(y)
    x = directions[0]
    first = np.column_stack([x, y, np.cross(x, y)])
    angles, rotation = universal_chain(first, directions[1:])
    relative = QUARTER_TURN.T @ start_rotation.T @ first @ QUARTER_TURN
    return np.array([*intrinsic_xyz(relative), *angles]), rotation @ JOINT_IN_DRONE.T


def configuration_from_directions(
    system: SlungLoadSystem,
    load_position_enu_m: Array,
    load_rotation: Array,
    directions: Sequence[Array],
    drone_yaws_rad: Array,
) -> Configuration:
    """Configuration in which the links (and the drones' z axes) point in given directions.

    Directions are per cable (links + 1, 3) as for `chain_from_directions`; the load's rotation is
    to the world, (3, 3). Only free cables follow the drones' yaws, (n_drones,).
    """
    angles = []
    for i, azimuth_rad in enumerate(cable_azimuths_rad(system)):
        chain, start = directions[i], load_rotation @ joint_in_load(azimuth_rad)
        yaw = drone_yaws_rad[i] if system.cables[i].twist == "free" else None
        angles.append(chain_from_directions(start, chain, yaw)[0])
    return Configuration(np.asarray(load_position_enu_m, float), load_rotation, tuple(angles))
