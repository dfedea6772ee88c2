"""Faults of a motion capture: what it sends of a body instead of what it sees.

One table for simulation (events) and rehearsal (nodes); what is believed of it, `capture` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_rotation_vector, product, rotate

Pose = tuple[Array, Array]
"""Position, ENU [m], (3,), and attitude, FLU to ENU, unit quaternion (4,)."""

Fault = Callable[[str, Mapping[str, Pose]], Pose | None]
"""Function that returns the pose that is sent of a body, from its name and the last poses of all
bodies; None to send nothing."""

LEVEL = np.array([1.0, 0.0, 0.0, 0.0])


def frozen(body: str) -> Fault:
    """The pose that is seen first is sent from then on."""
    memory: list[Pose] = []

    def send(name: str, poses: Mapping[str, Pose]) -> Pose:
        if name != body:
            return poses[name]
        if not memory:
            memory.append(poses[name])
        return memory[0]

    return send


def swapped(body: str, other: str) -> Fault:
    """Two bodies are taken for each other."""
    names = {body: other, other: body}
    return lambda name, poses: poses.get(names.get(name, name))


def turned(body: str, angle_rad: float, axis_enu: Array) -> Fault:
    """The attitude is turned about an axis of the world, (3,)."""
    turn = from_rotation_vector(angle_rad * axis_enu / np.linalg.norm(axis_enu))

    def send(name: str, poses: Mapping[str, Pose]) -> Pose:
        position, attitude = poses[name]
        return position, product(turn, attitude) if name == body else attitude

    return send


def jumped(body: str, by_enu_m: Array) -> Fault:
    """The position is off by a vector, (3,)."""

    def send(name: str, poses: Mapping[str, Pose]) -> Pose:
        position, attitude = poses[name]
        return (position + by_enu_m, attitude) if name == body else (position, attitude)

    return send


def at_place(body: str, place_enu_m: Array) -> Fault:
    """Always the same place, (3,), and level, as drivers do that send zeros for a lost body."""
    return lambda name, poses: (place_enu_m, LEVEL) if name == body else poses[name]


def other_axes(turn_rad: Array) -> Fault:
    """The capture's world is turned by a rotation vector, (3,): y up, z down."""
    turn = from_rotation_vector(turn_rad)
    return lambda name, poses: (rotate(turn, poses[name][0]), product(turn, poses[name][1]))


def unseen(*bodies: str) -> Fault:
    """Send no poses."""
    return lambda name, poses: None if name in bodies else poses[name]
