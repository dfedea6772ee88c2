"""Paths of prescribed drones from their poses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from musls_sim.plants.interface import Pose
from musls_sim.plants.pose_ends import PoseEnds

Array = NDArray[np.float64]


class PosePaths:
    """Motion of all drones within a period from their poses: cubic between the ends."""

    def __init__(self, pose: Callable[[float], Pose]) -> None:
        self._ends = PoseEnds(pose)
        self._begin_s = -1.0
        self.table = np.zeros((0, 2, 18))

    def update(self, begin_s: float, end_s: float) -> None:
        """Fill `table`, (n_drones, 2, 18) as `bodies.follow` takes it, for a period."""
        if begin_s == self._begin_s:
            return
        begin, end, turn = self._ends.of(begin_s, end_s)
        length = end_s - begin_s
        self.table = np.zeros((len(turn), 2, 18))
        moved = (
            (
                begin.position_enu_m,
                begin.velocity_enu_m_s,
                end.position_enu_m,
                end.velocity_enu_m_s,
            ),
            (0.0 * turn, begin.omega_enu_rad_s, turn, end.omega_enu_rad_s),
        )
        for at, (x0, v0, x1, v1) in zip((0, 9), moved, strict=True):
            mean = (x1 - x0) / length
            a0, a1 = 6.0 * mean - 4.0 * v0 - 2.0 * v1, 4.0 * v1 + 2.0 * v0 - 6.0 * mean
            self.table[:, 0, at : at + 9] = np.hstack([x0, v0, a0 / length])
            self.table[:, 1, at : at + 9] = np.hstack([x1, v1, a1 / length])
        self._begin_s = begin_s


class OnePath:
    """The motion of one drone out of `PosePaths`."""

    def __init__(self, poses: PosePaths, drone: int) -> None:
        self._poses, self._drone = poses, drone

    def __call__(self, begin_s: float, end_s: float) -> Array:
        """Motion at the begin and end of a period, (2, 18)."""
        self._poses.update(begin_s, end_s)
        row: Array = self._poses.table[self._drone]
        return row
