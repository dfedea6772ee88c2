"""A circle at constant speed."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from musls_control.trajectories.base import (
    Array,
    CycleRule,
    Periodic,
    Point2,
    Repetitions,
    at_rest,
)
from musls_description.schema import Positive, spec


@spec
class Circle(Periodic):
    """Horizontal circle, counter-clockwise, the load's x axis pointing radially outwards.

    Attributes:
        kind: "circle".
        radius_m: Radius.
        speed_m_s: Speed along the circle.
        height_m: Height of the load.
        center_m: Centre, x and y.
        repetitions: Number of full circles.
    """

    kind: Literal["circle"] = "circle"
    radius_m: Positive = 1.5
    speed_m_s: Positive = 0.3
    height_m: Positive = 1.0
    center_m: Point2 = (0.0, 0.0)
    repetitions: Repetitions = 1

    cycle_rule: ClassVar[CycleRule] = CycleRule.ANGLE

    @property
    def period_s(self) -> float:
        """Time of one circle."""
        return 2.0 * np.pi * self.radius_m / self.speed_m_s

    def pose(self, time_s: Array) -> Array:
        """Poses at times, see `Trajectory.pose`."""
        angle = time_s * self.speed_m_s / self.radius_m
        x = self.center_m[0] + self.radius_m * np.cos(angle)
        y = self.center_m[1] + self.radius_m * np.sin(angle)
        return np.column_stack([x, y, np.full_like(angle, self.height_m), angle])

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        found = at_rest(self.pose(time_s))
        omega = self.speed_m_s / self.radius_m
        angle = time_s * self.speed_m_s / self.radius_m
        cos, sin = np.cos(angle), np.sin(angle)
        for order, (x, y) in enumerate(((-sin, cos), (-cos, -sin), (sin, -cos), (cos, sin)), 1):
            found[:, order, 0] = self.radius_m * omega**order * x
            found[:, order, 1] = self.radius_m * omega**order * y
        found[:, 1, 3] = omega
        return found
