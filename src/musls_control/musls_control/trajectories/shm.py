"""Simple harmonic motion."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from musls_control.trajectories.base import Array, CycleRule, Periodic, Point2, Repetitions, at_rest
from musls_description.schema import Finite, Positive, spec


@spec
class Shm(Periodic):
    """Simple harmonic motion along a horizontal line: center + amplitude sin(omega t) axis.

    Attributes:
        kind: "shm".
        amplitude_m: Amplitude.
        omega_rad_s: Angular frequency.
        axis_yaw_rad: Direction of the line from the x axis (pi/2: along y).
        yaw_rad: Yaw of the load throughout.
        height_m: Height of the load.
        center_m: Middle of the line, x and y.
        repetitions: Number of full periods.
    """

    kind: Literal["shm"] = "shm"
    amplitude_m: Positive = 1.0
    omega_rad_s: Positive = 2.0
    axis_yaw_rad: Finite = float(np.pi / 2.0)
    yaw_rad: Finite = float(np.pi / 2.0)
    height_m: Positive = 1.0
    center_m: Point2 = (0.0, 0.0)
    repetitions: Repetitions = 1

    cycle_rule: ClassVar[CycleRule] = CycleRule.OSCILLATION

    @property
    def period_s(self) -> float:
        """Time of one period."""
        return 2.0 * np.pi / self.omega_rad_s

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        middle = [*self.center_m, self.height_m, self.yaw_rad]
        found = at_rest(np.tile(middle, (len(time_s), 1)))
        sin, cos = np.sin(self.omega_rad_s * time_s), np.cos(self.omega_rad_s * time_s)
        for order, wave in enumerate((sin, cos, -sin, -cos, sin)):
            along = self.amplitude_m * self.omega_rad_s**order * wave
            found[:, order, 0] += along * np.cos(self.axis_yaw_rad)
            found[:, order, 1] += along * np.sin(self.axis_yaw_rad)
        return found
