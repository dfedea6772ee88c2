"""A configuration of the whole tree: pose of the load and the angles of every joint."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.rotations import from_matrix, intrinsic_xyz, rotation_vector
from musls_description.system import SlungLoadSystem
from musls_description.tree import (
    JOINT_IN_DRONE,
    QUARTER_TURN,
    cable_azimuth_rad,
    joint_in_load,
)

Array = NDArray[np.float64]


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


def universal_angles(direction: Array) -> Array:
    """Angles (about y, then z) that turn the x axis into a unit direction, (2,) [rad]."""
    x, y, z = direction
    return np.array([np.arctan2(-z, x), np.arcsin(np.clip(y, -1.0, 1.0))])


def universal_rotation(angles_rad: Array) -> Array:
    """Rotation Ry(first angle) Rz(second angle) of a universal joint, (3, 3)."""
    (ca, cb), (sa, sb) = np.cos(angles_rad), np.sin(angles_rad)
    return np.array([[ca * cb, -ca * sb, sa], [sb, cb, 0.0], [-sa * cb, sa * sb, ca]])


def level_rotation(z_axis: Array, yaw_rad: float) -> Array:
    """Rotation with a given z axis whose x axis, seen from above, points along a yaw, (3, 3)."""
    (zx, zy, zz), c, s = z_axis, math.cos(yaw_rad), math.sin(yaw_rad)
    across = math.sqrt(zz * zz + (zx * s - zy * c) ** 2)  # y = z x (c, s, 0), normalised
    yx, yy, yz = -zz * s / across, zz * c / across, (zx * s - zy * c) / across
    x = (yy * zz - yz * zy, yz * zx - yx * zz, yx * zy - yy * zx)
    return np.array([[x[0], yx, zx], [x[1], yy, zy], [x[2], yz, zz]], dtype=float)


def universal_chain(rotation: Array, directions: Array) -> tuple[list[float], Array]:
    """Angles of universal joints that point one body after the other in given directions.

    Args:
        rotation: Frame of the first joint in the world, (3, 3).
        directions: World directions of the bodies' x axes, (k, 3).

    Returns:
        Angles (2 k) and the last body's frame, (3, 3).
    """
    # In plain numbers: with arrays of three, a start in the air would take half a second.
    angles: list[float] = []
    columns = np.asarray(rotation, float).T.tolist()
    for dx, dy, dz in np.asarray(directions, float).tolist():
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = columns
        along = min(max(yx * dx + yy * dy + yz * dz, -1.0), 1.0)
        first = math.atan2(-(zx * dx + zy * dy + zz * dz), xx * dx + xy * dy + xz * dz)
        second = math.asin(along)
        ca, sa, cb, sb = math.cos(first), math.sin(first), math.cos(second), math.sin(second)
        # Columns of R Ry(first) Rz(second), see `universal_rotation`.
        turned = (ca * xx - sa * zx, ca * xy - sa * zy, ca * xz - sa * zz)  # x after the first turn
        columns = [
            [cb * turned[0] + sb * yx, cb * turned[1] + sb * yy, cb * turned[2] + sb * yz],
            [cb * yx - sb * turned[0], cb * yy - sb * turned[1], cb * yz - sb * turned[2]],
            [sa * xx + ca * zx, sa * xy + ca * zy, sa * xz + ca * zz],
        ]
        angles += [first, second]
    return angles, np.array(columns).T


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

    Raises:
        ConfigError: No twist of the cable lets the drone look there (a drone that stands upright
            on a lying cable can only look along it).
    """
    if drone_yaw_rad is None:
        angles, rotation = universal_chain(start_rotation, directions)
        return np.array(angles), rotation @ JOINT_IN_DRONE.T
    _, straight = universal_chain(start_rotation, directions[:1])
    wanted = level_rotation(directions[-1], drone_yaw_rad)

    def twisted(twist_rad: float) -> tuple[Array, list[float], Array]:
        c, s = math.cos(twist_rad), math.sin(twist_rad)
        first = straight @ np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        angles, rotation = universal_chain(first, directions[1:])
        return first, angles, rotation @ JOINT_IN_DRONE.T

    def yaw_error(twist_rad: float) -> float:
        x, y, _ = wanted.T @ twisted(twist_rad)[2][:, 0]
        return float(np.arctan2(y, x))

    first, angles, drone = twisted(_solve_twist(yaw_error))
    relative = QUARTER_TURN.T @ start_rotation.T @ first @ QUARTER_TURN
    return np.array([*intrinsic_xyz(relative), *angles]), drone


def _solve_twist(yaw_error: Callable[[float], float]) -> float:
    """Twist at which the drone's yaw is right: it goes about one to one into the yaw."""
    twist, error, slope = 0.0, yaw_error(0.0), 1.0
    for _ in range(50):
        if abs(error) < 1e-12:
            return twist
        step = np.clip(-error / slope, -1.0, 1.0)
        new_error = yaw_error(twist + step)
        # The secant, kept away from the turning points that a strongly bent joint makes.
        slope = np.clip((new_error - error) / step, 0.2, 5.0)
        twist, error = twist + step, new_error
    raise ConfigError(
        f"no twist of the cable gives its drone the yaw that is asked for (error {error:.3g} rad)"
    )


def configuration_from_directions(
    system: SlungLoadSystem,
    load_position_enu_m: Array,
    load_rotation: Array,
    directions: Sequence[Array],
    drone_yaws_rad: Array,
) -> Configuration:
    """Configuration in which the links (and the drones' z axes) point in given directions.

    Args:
        system: The system.
        load_position_enu_m: (3,).
        load_rotation: Load frame to world, (3, 3).
        directions: Per cable (links + 1, 3) as for `chain_from_directions`.
        drone_yaws_rad: Yaws of the drones, (n_drones,); only free cables follow them.
    """
    angles = []
    for i, chain in enumerate(directions):
        start = load_rotation @ joint_in_load(cable_azimuth_rad(system, i))
        yaw = drone_yaws_rad[i] if system.cables[i].twist == "free" else None
        angles.append(chain_from_directions(start, chain, yaw)[0])
    return Configuration(np.asarray(load_position_enu_m, float), load_rotation, tuple(angles))
