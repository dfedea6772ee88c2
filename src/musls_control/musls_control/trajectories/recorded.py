"""Set-points from a file: a table (CSV) or the poses of a topic in a bag."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from musls_control.trajectories.base import ORDERS, Array, Once
from musls_control.trajectories.setpoint_files import read_bag_poses, read_table
from musls_control.trajectories.splines import EndConditions, Spline, least_derivative
from musls_description.errors import ConfigError
from musls_description.schema import Finite, spec

_ORDER = {"linear": 1, "spline": 3}
"""Of the derivative that is least between the samples: polygon, quintic spline."""


@spec
class Recorded(Once):
    """Set-points from a CSV file or from the poses of a topic in a bag.

    Time counts from the first sample that is used. "spline" goes through all samples with four
    continuous derivatives; noise of the samples is amplified in them. "linear" moves evenly from
    sample to sample.

    Attributes:
        kind: "recorded".
        path: CSV file, or folder of a rosbag2 bag; relative to the scenario's folder.
        columns: Names of the columns of a CSV file: time [s], x, y, z [m, ENU], optionally yaw
            [rad], and optionally roll and pitch [rad] after it.
        topic: Poses (geometry_msgs/msg/PoseStamped) to read from a bag.
        interpolation: "spline" or "linear".
        from_s: First time of the file that is used, in its own time; default all.
        until_s: Last time of the file that is used; default all.
    """

    kind: Literal["recorded"] = "recorded"
    path: Annotated[str, Field(min_length=1)]
    columns: Annotated[tuple[str, ...], Field(min_length=4, max_length=7)] = (
        "time_s", "x_m", "y_m", "z_m", "yaw_rad",
    )  # fmt: skip
    topic: str = "/load/setpoint"
    interpolation: Literal["spline", "linear"] = "spline"
    from_s: Finite | None = None
    until_s: Finite | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field, and the file."""
        if len(self.columns) == 6:
            raise ValueError(
                "columns must be 4 (time, x, y, z), 5 (with yaw) or 7 (with yaw, roll, pitch)"
            )
        _ = self.samples

    @cached_property
    def samples(self) -> tuple[Array, Array]:
        """Times from zero, (m,), and x, y, z [m], yaw, roll, pitch [rad], (m, 6).

        Raises:
            ConfigError: The file is missing, damaged or too short, or its times do not ascend.
        """
        if self.path.lower().endswith(".csv"):
            table = read_table(self.path, self.columns)
            times, poses = table[:, 0], np.zeros((len(table), 6))
            poses[:, : table.shape[1] - 1] = table[:, 1:]
        else:
            times, poses = read_bag_poses(self.path, self.topic)
        used = np.ones(len(times), bool)
        if self.from_s is not None:
            used &= times >= self.from_s
        if self.until_s is not None:
            used &= times <= self.until_s
        if used.sum() < 2:
            raise ConfigError(
                f"{self.path}: {used.sum()} set-points between from_s and until_s, at least two "
                "are needed"
            )
        times, poses = times[used], poses[used]
        poses[:, 3:] = np.unwrap(poses[:, 3:], axis=0)
        return times - times[0], poses

    @property
    def duration_s(self) -> float:
        """Time from the first to the last sample."""
        return float(self.samples[0][-1])

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        return self._spline.derivatives(time_s, ORDERS)[:, :, :4]

    def tilt(self, time_s: Array) -> Array:
        """Roll and pitch with derivatives, see `StageTraits.tilt`."""
        return self._spline.derivatives(time_s, ORDERS)[:, :, 4:]

    @cached_property
    def _spline(self) -> Spline:
        times, poses = self.samples
        order = _ORDER[self.interpolation]
        free = EndConditions(np.full((order - 1, poses.shape[1]), np.nan))
        return least_derivative(poses, np.diff(times), order, free, free)
