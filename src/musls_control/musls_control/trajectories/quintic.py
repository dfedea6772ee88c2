"""Straight lines from rest to rest."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
from numpy.polynomial import Polynomial

from musls_control.trajectories.base import ORDERS, Array, Once
from musls_control.trajectories.waypoints import Points, check_distinct
from musls_description.schema import Positive, spec

_SHARE = Polynomial([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
"""Way against time, both from 0 to 1: velocity and acceleration are zero at both ends."""

PEAK_SPEED = 1.875
"""Greatest speed times duration per distance: 15 / 8."""

PEAK_ACCELERATION = 10.0 / float(np.sqrt(3.0))
"""Greatest acceleration times squared duration per distance."""


@spec
class Quintic(Once):
    """Straight lines between points, from rest to rest by a polynomial of degree five.

    The duration of each line keeps both limits: greatest speed 1.875 d / T, greatest acceleration
    5.774 d / T^2 for a distance d in a time T.

    Attributes:
        kind: "quintic".
        points: At least two, each [x, y, z], [x, y, z, yaw] or a mapping with hold_s.
        speed_m_s: Greatest speed.
        acceleration_m_s2: Greatest acceleration.
        yaw_rate_rad_s: Greatest turn rate.
        segment_s: Times of the lines instead of the limits.
    """

    kind: Literal["quintic"] = "quintic"
    points: Points
    speed_m_s: Positive = 1.0
    acceleration_m_s2: Positive = 1.0
    yaw_rate_rad_s: Positive = 0.5
    segment_s: tuple[Positive, ...] | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        check_distinct(self.points)
        if self.segment_s is not None and len(self.segment_s) != len(self.points) - 1:
            raise ValueError(
                f"segment_s has {len(self.segment_s)} times for {len(self.points) - 1} lines"
            )

    @cached_property
    def poses(self) -> Array:
        """x, y, z [m], yaw [rad] of the points, (m, 4)."""
        return np.array([[*point.position_m, point.yaw_rad] for point in self.points])

    @cached_property
    def line_s(self) -> Array:
        """Time of each line, (m - 1,)."""
        if self.segment_s is not None:
            return np.array(self.segment_s)
        way = np.abs(np.diff(self.poses, axis=0))
        distance_m = np.linalg.norm(way[:, :3], axis=1)
        times: Array = np.maximum.reduce(
            [
                PEAK_SPEED * distance_m / self.speed_m_s,
                np.sqrt(PEAK_ACCELERATION * distance_m / self.acceleration_m_s2),
                PEAK_SPEED * way[:, 3] / self.yaw_rate_rad_s,
            ]
        )
        return times

    @cached_property
    def start_s(self) -> Array:
        """Time at which each line begins, after the hold at its first point, (m - 1,)."""
        holds = np.array([point.hold_s for point in self.points[:-1]])
        starts: Array = np.cumsum(holds) + np.concatenate([[0.0], np.cumsum(self.line_s[:-1])])
        return starts

    @property
    def duration_s(self) -> float:
        """How long it takes, holds included."""
        return float(self.start_s[-1] + self.line_s[-1]) + self.points[-1].hold_s

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        line = np.clip(np.searchsorted(self.start_s, time_s, "right") - 1, 0, len(self.line_s) - 1)
        duration = self.line_s[line]
        share = (time_s - self.start_s[line]) / duration
        moving = (share >= 0.0) & (share <= 1.0)
        share = np.clip(share, 0.0, 1.0)
        begin, way = self.poses[line], np.diff(self.poses, axis=0)[line]
        found = np.zeros((len(time_s), ORDERS, 4))
        found[:, 0] = begin + _SHARE(share)[:, None] * way
        for order in range(1, ORDERS):
            rate = np.where(moving, _SHARE.deriv(order)(share) / duration**order, 0.0)
            found[:, order] = rate[:, None] * way
        return found
