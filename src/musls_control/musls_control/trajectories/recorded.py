"""Set-points from a file: a table (CSV) or the poses of a topic in a bag."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from musls_control.trajectories.base import ORDERS, Once
from musls_control.trajectories.splines import Spline, least_derivative
from musls_description.config.errors import ConfigError, near_names
from musls_description.config.schema import Finite, spec
from musls_description.config.strict_yaml import shown
from musls_description.config.text_tables import read_table
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import roll_pitch_yaw

POSE_STAMPED = "geometry_msgs/msg/PoseStamped"


def read_bag_poses(path: str, topic: str) -> tuple[NDArray[np.int64], Array]:
    """Read a topic of `POSE_STAMPED`: stamps [ns]; x, y, z [m], yaw, roll, pitch [rad], (m, 6)."""
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_typestore

    folder = Path(path)
    if not os.path.isfile(folder / "metadata.yaml"):
        raise ConfigError(
            f"{shown(path, 200)}: neither a .csv file nor the folder of a bag (with metadata.yaml)"
        )
    store = get_typestore(Stores.ROS2_JAZZY)
    times = []
    rows = []
    try:
        with Reader(folder) as reader:
            connections = [c for c in reader.connections if c.topic == topic]
            types = {c.topic: c.msgtype for c in reader.connections}
            for connection, _, data in reader.messages(connections) if connections else ():
                if connection.msgtype == POSE_STAMPED:
                    message: Any = store.deserialize_cdr(data, POSE_STAMPED)
                    stamp = message.header.stamp
                    pose = message.pose
                    times.append(1_000_000_000 * stamp.sec + stamp.nanosec)
                    p = pose.position
                    q = pose.orientation
                    rows.append([p.x, p.y, p.z, q.w, q.x, q.y, q.z])
    except Exception as error:  # what rosbags, struct, zstd and sqlite3 raise has no common base
        raise ConfigError(f"{path}: the bag cannot be read: {error}") from error
    if types.get(topic) != POSE_STAMPED:
        poses = sorted(name for name, kind in types.items() if kind == POSE_STAMPED)
        raise ConfigError(f"{path}: no poses on '{shown(topic)}': {near_names(topic, poses)}")
    stamps = np.array(times, np.int64)
    table = np.array(rows).reshape(-1, 7)
    if (np.diff(stamps) <= 0).any():
        late = 1e-9 * stamps[1:][np.diff(stamps) <= 0][0]
        raise ConfigError(f"{path}: the stamps of {topic} do not ascend at {late:g} s")
    roll, pitch, yaw = roll_pitch_yaw(table[:, 3:]).T
    return stamps, np.column_stack([table[:, :3], yaw, roll, pitch])


LEAST_STEP_S = 1e-4
"""Time between two samples, below which splines through them are ill-posed."""

_ORDER = {"linear": 1, "spline": 3}
"""Order of the derivative that is minimised between the samples: polygon, quintic spline."""


@spec
class RecordedTrajectory(Once):
    """Set-points from a CSV file or from the poses of a topic in a bag.

    Time is relative to the first sample that is used. "spline" goes through all samples with four
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
        "time_s",
        "x_m",
        "y_m",
        "z_m",
        "yaw_rad",
    )
    topic: str = "/load/setpoint"
    interpolation: Literal["spline", "linear"] = "spline"
    from_s: Finite | None = None
    until_s: Finite | None = None

    def __post_init__(self) -> None:
        if len(self.columns) == 6:
            raise ValueError(
                "columns must be 4 (time, x, y, z), 5 (with yaw) or 7 (with yaw, roll, pitch)"
            )
        _ = self.samples

    @cached_property
    def samples(self) -> tuple[Array, Array]:
        """Times from zero, (m,), and x, y, z [m], yaw, roll, pitch [rad], (m, 6)."""
        if self.path.lower().endswith(".csv"):
            table = read_table(self.path, self.columns)
            times = table[:, 0]
            poses = np.zeros((len(table), 6))
            poses[:, : table.shape[1] - 1] = table[:, 1:]
        else:
            stamps_ns, poses = read_bag_poses(self.path, self.topic)
            times = 1e-9 * stamps_ns.astype(np.float64)
        inside = np.ones(len(times), bool)
        if self.from_s is not None:
            inside &= times >= self.from_s
        if self.until_s is not None:
            inside &= times <= self.until_s
        if inside.sum() < 2:
            raise ConfigError(
                f"{self.path}: {inside.sum()} set-points between from_s and until_s, at least two "
                "are needed"
            )
        times = times[inside]
        poses = poses[inside]
        if (steps := np.diff(times)).min() < LEAST_STEP_S:
            k = int(np.argmax(steps < LEAST_STEP_S))
            raise ConfigError(
                f"{self.path}: set-points at {times[k]:.9g} and {times[k + 1]:.9g} s: must be at "
                f"least {LEAST_STEP_S:g} s apart (times are in seconds)"
            )
        poses[:, 3:] = np.unwrap(poses[:, 3:], axis=0)
        return times - times[0], poses

    @property
    def duration_s(self) -> float:
        """Time from the first to the last sample."""
        return float(self.samples[0][-1])

    def derivatives(self, time_s: Array) -> Array:
        return self._spline.derivatives(time_s, ORDERS)[:, :, :4]

    def tilt(self, time_s: Array) -> Array:
        return self._spline.derivatives(time_s, ORDERS)[:, :, 4:]

    @cached_property
    def _spline(self) -> Spline:
        times, poses = self.samples
        order = _ORDER[self.interpolation]
        free = np.full((order - 1, poses.shape[1]), np.nan)
        return least_derivative(poses, np.diff(times), order, free, free)
