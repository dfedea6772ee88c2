"""A rest at one pose."""

from __future__ import annotations

from typing import Literal

import numpy as np

from musls_control.trajectories.base import (
    Array,
    Once,
    at_rest,
)
from musls_description.schema import Finite, Positive, Vector3, spec


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

    def pose(self, time_s: Array) -> Array:
        """Poses at times, see `Trajectory.pose`."""
        return np.tile([*self.position_m, self.yaw_rad], (len(time_s), 1))

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        return at_rest(self.pose(time_s))
