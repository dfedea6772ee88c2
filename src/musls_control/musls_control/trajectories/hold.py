"""A rest at one pose, and a jump from one to another."""

from __future__ import annotations

from typing import Literal

import numpy as np

from musls_control.trajectories.base import AT_A_CORNER_S, ORDERS, Array, Once, at_rest
from musls_control.trajectories.circle import check_rotation
from musls_description.schema import Finite, NonNegative, Positive, Vector3, spec


@spec
class Hold(Once):
    """Stay at one pose.

    Attributes:
        kind: "hold".
        duration_s: Duration.
        position_m: Place of the load.
        yaw_rad: Yaw of the load.
    """

    kind: Literal["hold"] = "hold"
    duration_s: Positive = 10.0
    position_m: Vector3 = (0.0, 0.0, 1.0)
    yaw_rad: Finite = 0.0

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        return at_rest(np.tile([*self.position_m, self.yaw_rad], (len(time_s), 1)))


@spec
class Step(Once):
    """The set-point jumps, for step responses; the jump itself has no derivative.

    Attributes:
        kind: "step".
        start_m: Place of the load before the jump.
        end_m: Place after it.
        start_rotation_rad: Roll, pitch and yaw before the jump.
        end_rotation_rad: Roll, pitch and yaw after it.
        wait_s: Time before the jump.
        hold_s: Time after it.
    """

    kind: Literal["step"] = "step"
    start_m: Vector3 = (0.0, 0.0, 1.0)
    end_m: Vector3 = (0.5, 0.0, 1.0)
    start_rotation_rad: tuple[Finite, Finite, Finite] = (0.0, 0.0, 0.0)
    end_rotation_rad: tuple[Finite, Finite, Finite] = (0.0, 0.0, 0.0)
    wait_s: NonNegative = 2.0
    hold_s: Positive = 10.0

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        for rotation in (self.start_rotation_rad, self.end_rotation_rad):
            check_rotation(rotation)

    @property
    def duration_s(self) -> float:
        """Before and after the jump."""
        return self.wait_s + self.hold_s

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        before = np.array([*self.start_m, self.start_rotation_rad[2]])
        after = np.array([*self.end_m, self.end_rotation_rad[2]])
        return at_rest(np.where(self._jumped(time_s)[:, None], after, before))

    def tilt(self, time_s: Array) -> Array:
        """Roll and pitch with derivatives, see `StageTraits.tilt`."""
        found = np.zeros((len(time_s), ORDERS, 2))
        found[:, 0] = np.where(
            self._jumped(time_s)[:, None], self.end_rotation_rad[:2], self.start_rotation_rad[:2]
        )
        return found

    def _jumped(self, time_s: Array) -> Array:
        return np.asarray(time_s >= self.wait_s - AT_A_CORNER_S)
