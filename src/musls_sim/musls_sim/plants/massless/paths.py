"""Prescribed drones: their poses as cubics in time within a control period."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_sim.plants.interface import Pose

Array = NDArray[np.float64]

DIFFERENCE_S = 1e-4
"""Time over which the velocity of a pose is taken."""


class DronePaths:
    """Turns poses over time into the tables that `bodies.follow` takes."""

    def __init__(self, pose: Callable[[float], Pose]) -> None:
        """Keep the function."""
        self._pose = pose
        self._end_s = -1.0
        self._end: tuple[Array, Array, Rotation, Array] | None = None

    def table(self, begin_s: float, end_s: float) -> Array:
        """Cubics of a period: position, rotation vector since its begin, and the quaternion there.

        Args:
            begin_s: Begin of the period.
            end_s: Its end.

        Returns:
            (n_drones, 10, 3).
        """
        begin = self._end
        if begin is None or begin_s != self._end_s:
            begin = self._ends(begin_s)
        end = self._ends(end_s)
        turn = (end[2] * begin[2].inv()).as_rotvec()
        # Rate of the rotation vector at the end: the inverse of omega = r + p x r / 2 + ...
        rate = end[3] - np.cross(turn, end[3]) / 2.0
        rate += np.cross(turn, np.cross(turn, end[3])) / 12.0
        length = end_s - begin_s
        out = np.zeros((len(turn), 10, 3))
        moved = (begin[0], begin[1], end[0], end[1]), (0.0 * turn, begin[3], turn, rate)
        for at, (x0, v0, x1, v1) in zip((0, 4), moved, strict=True):
            mean = (x1 - x0) / length
            out[:, at], out[:, at + 1] = x0, v0
            out[:, at + 2] = (3.0 * mean - 2.0 * v0 - v1) / length
            out[:, at + 3] = (v0 + v1 - 2.0 * mean) / length**2
        out[:, 8:].reshape(len(turn), 6)[:, :4] = begin[2].as_quat(scalar_first=True)
        self._end_s, self._end = end_s, end
        return out

    def _ends(self, time_s: float) -> tuple[Array, Array, Rotation, Array]:
        """Positions, velocities, rotations and angular velocities (world) at a time."""
        low = max(time_s - DIFFERENCE_S, 0.0)
        (p0, r0), (p, r), (p1, r1) = (self._at(t) for t in (low, time_s, time_s + DIFFERENCE_S))
        span = time_s + DIFFERENCE_S - low
        return p, (p1 - p0) / span, r, (r1 * r0.inv()).as_rotvec() / span

    def _at(self, time_s: float) -> tuple[Array, Rotation]:
        position, quaternion = self._pose(time_s)
        return np.array(position, float), Rotation.from_quat(quaternion, scalar_first=True)
