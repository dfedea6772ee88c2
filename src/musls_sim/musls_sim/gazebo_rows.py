"""Gazebo's odometry as rows of state: all bodies at one time, seen in the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from musls_description.arrays import Array
from musls_description.rotations import rotate

WAITING_ROWS = 10
"""Times that may be incomplete at once, 0.2 s; older ones are given up."""


@dataclass(frozen=True)
class BodyState:
    """Pose (body FLU to world) and twist of a body in the world frame (ENU), vectors (3,)."""

    position_enu_m: Array
    orientation_wxyz: Array
    velocity_enu_m_s: Array
    omega_enu_rad_s: Array


def state_from_odometry(
    position_enu_m: Array, orientation: Array, velocity_flu_m_s: Array, omega_flu_rad_s: Array
) -> BodyState:
    """Turn an odometry message, whose twist is seen in the body's frame, vectors (3,).

    `orientation` is body to world, [w, x, y, z].
    """
    return BodyState(
        position_enu_m,
        orientation,
        rotate(orientation, velocity_flu_m_s),
        rotate(orientation, omega_flu_rad_s),
    )


class RowCollector:
    """Puts the bodies' odometry, which comes one by one, together by its time stamp.

    Attributes:
        lost: Rows that stayed incomplete.
    """

    def __init__(self, bodies: Sequence[str]) -> None:
        self._bodies = tuple(bodies)
        self._rows: dict[int, dict[str, BodyState]] = {}
        self._done_ns = -1
        self.lost = 0

    def take(self, body: str, time_ns: int, state: BodyState) -> dict[str, BodyState] | None:
        """Add one body's state; returns the row, in the order of the bodies, if it is whole."""
        if time_ns <= self._done_ns:
            return None
        row = self._rows.setdefault(time_ns, {})
        row[body] = state
        if len(row) == len(self._bodies):
            del self._rows[time_ns]
            self._give_up(time_ns)
            return {name: row[name] for name in self._bodies}
        if len(self._rows) > WAITING_ROWS:
            self._give_up(min(self._rows))
        return None

    def _give_up(self, until_ns: int) -> None:
        """Lose the incomplete rows up to a time."""
        late = [time for time in self._rows if time <= until_ns]
        for time in late:
            del self._rows[time]
        self.lost += len(late)
        self._done_ns = until_ns
