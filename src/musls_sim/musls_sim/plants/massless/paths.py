"""Prescribed drones: their poses as cubics in time within a control period."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from musls_sim.plants.interface import Pose
from musls_sim.plants.pose_ends import PoseEnds

Array = NDArray[np.float64]


class DronePaths:
    """Turns poses over time into the tables that `bodies.follow` takes."""

    def __init__(self, pose: Callable[[float], Pose]) -> None:
        """Keep the function."""
        self._ends = PoseEnds(pose)

    def table(self, begin_s: float, end_s: float) -> Array:
        """Cubics of a period: position, rotation vector since its begin, and the quaternion there.

        Args:
            begin_s: Begin of the period.
            end_s: Its end.

        Returns:
            (n_drones, 10, 3).
        """
        begin, end, turn = self._ends.of(begin_s, end_s)
        # Rate of the rotation vector at the end: the inverse of omega = r + p x r / 2 + ...
        omega = end.omega_enu_rad_s
        rate = omega - np.cross(turn, omega) / 2.0 + np.cross(turn, np.cross(turn, omega)) / 12.0
        length = end_s - begin_s
        out = np.zeros((len(turn), 10, 3))
        moved = (
            (
                begin.position_enu_m,
                begin.velocity_enu_m_s,
                end.position_enu_m,
                end.velocity_enu_m_s,
            ),
            (0.0 * turn, begin.omega_enu_rad_s, turn, rate),
        )
        for at, (x0, v0, x1, v1) in zip((0, 4), moved, strict=True):
            mean = (x1 - x0) / length
            out[:, at], out[:, at + 1] = x0, v0
            out[:, at + 2] = (3.0 * mean - 2.0 * v0 - v1) / length
            out[:, at + 3] = (v0 + v1 - 2.0 * mean) / length**2
        out[:, 8:].reshape(len(turn), 6)[:, :4] = begin.orientation_wxyz
        return out
