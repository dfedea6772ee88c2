"""Paths of prescribed drones from their poses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_sim.plants.interface import Pose

Array = NDArray[np.float64]

DIFFERENCE_S = 1e-4
"""Time over which the velocity of a prescribed pose is taken."""


class PosePaths:
    """Motion of all drones within a period from their poses: cubic between the ends."""

    def __init__(self, pose: Callable[[float], Pose]) -> None:
        self._pose = pose
        self._begin_s = self._end_s = -1.0
        self._end: tuple[Array, Array, Rotation, Array] | None = None
        self.table = np.zeros((0, 2, 18))

    def update(self, begin_s: float, end_s: float) -> None:
        """Fill `table`, (n_drones, 2, 18) as `bodies.follow` takes it, for a period."""
        if begin_s == self._begin_s:
            return
        begin = self._end
        if begin is None or begin_s != self._end_s:
            begin = self._ends(begin_s)
        end = self._ends(end_s)
        turn = (end[2] * begin[2].inv()).as_rotvec()
        length = end_s - begin_s
        self.table = np.zeros((len(turn), 2, 18))
        moved = (begin[0], begin[1], end[0], end[1]), (0.0 * turn, begin[3], turn, end[3])
        for at, (x0, v0, x1, v1) in zip((0, 9), moved, strict=True):
            mean = (x1 - x0) / length
            a0, a1 = 6.0 * mean - 4.0 * v0 - 2.0 * v1, 4.0 * v1 + 2.0 * v0 - 6.0 * mean
            self.table[:, 0, at : at + 9] = np.hstack([x0, v0, a0 / length])
            self.table[:, 1, at : at + 9] = np.hstack([x1, v1, a1 / length])
        self._begin_s, self._end_s, self._end = begin_s, end_s, end

    def _ends(self, time_s: float) -> tuple[Array, Array, Rotation, Array]:
        """Positions, velocities, rotations and angular velocities at a time."""
        low = max(time_s - DIFFERENCE_S, 0.0)
        (p0, r0), (p, r), (p1, r1) = (self._at(t) for t in (low, time_s, time_s + DIFFERENCE_S))
        span = time_s + DIFFERENCE_S - low
        return p, (p1 - p0) / span, r, (r1 * r0.inv()).as_rotvec() / span

    def _at(self, time_s: float) -> tuple[Array, Rotation]:
        position, quaternion = self._pose(time_s)
        return np.array(position, float), Rotation.from_quat(quaternion, scalar_first=True)


class OnePath:
    """The motion of one drone out of `PosePaths`."""

    def __init__(self, poses: PosePaths, drone: int) -> None:
        self._poses, self._drone = poses, drone

    def __call__(self, begin_s: float, end_s: float) -> Array:
        """Motion at the begin and end of a period, (2, 18)."""
        self._poses.update(begin_s, end_s)
        row: Array = self._poses.table[self._drone]
        return row
