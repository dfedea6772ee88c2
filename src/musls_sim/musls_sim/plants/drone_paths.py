"""Motion of prescribed drones at the ends of a control period, from their poses over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import product, rotation_vector
from musls_sim.plants.interface import Pose

DIFFERENCE_S = 1e-4
"""Time over which the velocity of a pose is taken."""


class PoseEnd(NamedTuple):
    """Motion of all drones at one time, world.

    Attributes:
        position_enu_m: (n, 3).
        velocity_enu_m_s: (n, 3).
        orientation_wxyz: Unit quaternions, body to world, (n, 4).
        omega_enu_rad_s: (n, 3).
    """

    position_enu_m: Array
    velocity_enu_m_s: Array
    orientation_wxyz: Array
    omega_enu_rad_s: Array


class PoseEnds:
    """Motion of the drones at both ends of consecutive periods."""

    def __init__(self, pose: Callable[[float], Pose]) -> None:
        self._pose = pose
        self._end_s = -1.0
        self._end: PoseEnd | None = None
        self._rows_s = -1.0
        self._rows = np.zeros((0, 2, 18))

    def of(self, begin_s: float, end_s: float) -> tuple[PoseEnd, PoseEnd, Array]:
        """Motion at the begin and at the end of a period, and how far the drones turn in it.

        The turns are rotation vectors from one to the other, world, (n, 3) [rad].
        """
        begin = self._end
        if begin is None or begin_s != self._end_s:
            begin = self._at(begin_s)
        end = self._at(end_s)
        self._end_s = end_s
        self._end = end
        return begin, end, _turn(begin.orientation_wxyz, end.orientation_wxyz)

    def cubics(self, begin_s: float, end_s: float) -> tuple[Array, Array, Array]:
        """Position, rotation vector since the begin of a period (world), and the attitude there.

        Two sets of coefficients of cubics in the time since the begin, (n_drones, 4, 3), and unit
        quaternions, (n_drones, 4).
        """
        begin, end, turn = self.of(begin_s, end_s)
        # Rate of the rotation vector at the end: the inverse of omega = r + p x r / 2 + ...
        omega = end.omega_enu_rad_s
        rate = omega - np.cross(turn, omega) / 2.0 + np.cross(turn, np.cross(turn, omega)) / 12.0
        length_s = end_s - begin_s
        (x0, v0) = begin[:2]
        (x1, v1) = end[:2]
        path = _cubic(x0, v0, x1, v1, length_s)
        turning = _cubic(0.0 * turn, begin.omega_enu_rad_s, turn, rate, length_s)
        return path, turning, begin.orientation_wxyz

    def ends(self, drone: int, begin_s: float, end_s: float) -> Array:
        """The cubics of a drone (from 0) as values at begin and end of the period, (2, 18).

        Position, velocity, acceleration; rotation vector and its two rates.
        """
        if begin_s != self._rows_s:
            self._rows_s = begin_s
            t = np.array([[0.0], [end_s - begin_s]])
            values = []
            for cubic in self.cubics(begin_s, end_s)[:2]:
                x, v, a, b = np.moveaxis(cubic, 1, 0)[:, :, None]
                values += [x + t * (v + t * (a + t * b)), v + t * (2.0 * a + 3.0 * t * b)]
                values.append(2.0 * a + 6.0 * t * b)
            self._rows = np.concatenate(values, axis=-1)
        row: Array = self._rows[drone]
        return row

    def _at(self, time_s: float) -> PoseEnd:
        low_s = max(time_s - DIFFERENCE_S, 0.0)
        (p0, r0), (p, r), (p1, r1) = (self._read(t) for t in (low_s, time_s, time_s + DIFFERENCE_S))
        span_s = time_s + DIFFERENCE_S - low_s
        return PoseEnd(p, (p1 - p0) / span_s, r, _turn(r0, r1) / span_s)

    def _read(self, time_s: float) -> tuple[Array, Array]:
        position, quaternion = self._pose(time_s)
        unit = np.asarray(quaternion, float)
        unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
        return np.array(position, float), unit


def _turn(begin_wxyz: Array, end_wxyz: Array) -> Array:
    """Rotation vectors from one attitude to another, world, (n, 3) [rad]."""
    return rotation_vector(product(end_wxyz, begin_wxyz * [1.0, -1.0, -1.0, -1.0]))


def _cubic(x0: Array, v0: Array, x1: Array, v1: Array, length_s: float) -> Array:
    """Coefficients of cubics from values and rates at both ends, (n, 4, 3)."""
    mean = (x1 - x0) / length_s
    second = (3.0 * mean - 2.0 * v0 - v1) / length_s
    third = (v0 + v1 - 2.0 * mean) / length_s**2
    return np.stack([x0, v0, second, third], axis=1)
