"""The way of a body in a bag, for an anchor that moves as recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError

Array = NDArray[np.float64]


def bag_of(file: str) -> Path | None:
    """The bag's folder that a file name stands for: itself, or the one in a result of `fly`."""
    path = Path(file)
    return next((p for p in (path, path / "bag") if (p / "metadata.yaml").is_file()), None)


def read_path(bag: Path, body: str | None) -> tuple[Array, Array]:
    """Times from the first pose on (k,) [s], and positions (k, 3) [m, ENU].

    Args:
        bag: Folder of the bag (MCAP or SQLite, ROS 2).
        body: "load", "drone_1", "anchor_1": topic /BODY/pose, geometry_msgs/msg/PoseStamped.

    Raises:
        ConfigError: Not a bag, or no such poses in it.
    """
    from rosbags.highlevel import AnyReader, AnyReaderError
    from rosbags.rosbag2 import ReaderError
    from rosbags.typesys import Stores, get_typestore

    rows = []
    try:
        with AnyReader([bag], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
            poses = [c for c in reader.connections if c.msgtype == "geometry_msgs/msg/PoseStamped"]
            chosen = [c for c in poses if c.topic == f"/{body}/pose"]
            if not chosen:
                has = [c.topic[1:-5] for c in poses if c.topic.endswith("/pose")]
                raise ConfigError(
                    f"{bag}: body must be one of {', '.join(sorted(has)) or 'none'}, not {body!r}"
                )
            for connection, _, raw in reader.messages(connections=chosen):
                message: Any = reader.deserialize(raw, connection.msgtype)
                stamp, at = message.header.stamp, message.pose.position
                rows.append([stamp.sec, stamp.nanosec, at.x, at.y, at.z])
    except (AnyReaderError, ReaderError, OSError) as error:
        raise ConfigError(f"{bag}: {error}") from None
    table = np.array(rows, float).reshape(-1, 5)
    time: Array = (table[:, 0] - table[:1, 0]) + 1e-9 * (table[:, 1] - table[:1, 1])
    return time, table[:, 2:]
