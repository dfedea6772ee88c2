"""Reads our rosbag2 bags (MCAP or SQLite), from the embedded simulator and from Gazebo alike.

Messages with a header count at its stamp. The mission stage has none: the difference between
stamp and log time of the load's poses places it on the same clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from musls_analysis.recordings.cdr import CdrStack, decode, decode_columns
from musls_analysis.recordings.raw_bag import Log, read_messages
from musls_analysis.recordings.recording import (
    LOAD,
    CableTrack,
    PoseTrack,
    Recording,
    RotorTrack,
    Stage,
    stages_from_changes,
)
from musls_description.errors import ConfigError

_STAGE = "/mission/stage"
_TYPES = {
    "pose": "geometry_msgs/msg/PoseStamped",
    "setpoint": "geometry_msgs/msg/PoseStamped",
    "tension": "geometry_msgs/msg/WrenchStamped",
    "shape": "visualization_msgs/msg/Marker",
    "rotors": "sensor_msgs/msg/JointState",
    "stage": "std_msgs/msg/String",
}
_TOPIC = re.compile(r"/(load|drone_\d+|cable_\d+|mission)/(\w+)")


def read_bag(path: Path) -> Recording:
    """Read a bag with the topics of this project.

    Args:
        path: Folder of the bag.

    Raises:
        ConfigError: No bag, damaged, empty, or without the poses of the load and of a drone.
    """
    return recording_of_logs(path, read_messages(path, lambda t: keys_of_topics(path, t)))


def recording_of_logs(path: Path, logs: Mapping[tuple[str, str], Log]) -> Recording:
    """Make a recording of the messages of a bag.

    Args:
        path: Bag, for messages.
        logs: Messages by name and kind.

    Raises:
        ConfigError: The poses of the load or of a drone are missing, or a message is damaged.
    """
    names = sorted({n for n, _ in logs}, key=lambda n: (len(n), n))
    drones = [n for n in names if n.startswith("drone_")]
    for name in [LOAD, *(drones or ["drone_1"])]:
        if (name, "pose") not in logs:
            raise ConfigError(f"{path}: the bag has no messages on /{name}/pose")
    poses = {n: _decoded(path, n, "pose", logs, _poses) for n in [LOAD, *drones]}
    setpoints = {
        n: _decoded(path, n, "setpoint", logs, _poses)
        for n in [LOAD, *drones]
        if (n, "setpoint") in logs
    }
    cables = {n: _cable(path, n, logs) for n in names if n.startswith("cable_")}
    rotors = {
        n: _decoded(path, n, "rotors", logs, _rotors) for n in drones if (n, "rotors") in logs
    }
    stages = _stages(path, logs, poses)
    return Recording(poses, setpoints, cables, rotors, stages, str(path))


def keys_of_topics(path: Path, topics: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Name and kind, e.g. ("load", "pose"), of each topic of this project.

    Args:
        path: Bag, for messages.
        topics: Message type by topic.

    Raises:
        ConfigError: One of them has another type.
    """
    keys = {}
    for topic, msgtype in topics.items():
        match = _TOPIC.fullmatch(topic)
        if not match or match[2] not in _TYPES:
            continue
        if msgtype != _TYPES[match[2]]:
            raise ConfigError(f"{path}: {topic} has type {msgtype}, must be {_TYPES[match[2]]}")
        keys[topic] = (match[1], match[2])
    return keys


def _decoded(path: Path, name: str, kind: str, logs: dict, decoder: Callable) -> object:
    try:
        return decoder(logs[name, kind].data)
    except ValueError as error:
        raise ConfigError(f"{path}: /{name}/{kind} cannot be decoded: {error}") from error


def _header(stack: CdrStack) -> tuple[np.ndarray, np.ndarray]:
    """Stamp [s] and frame (n,)."""
    sec = stack.numbers("i4")[:, 0].astype(np.int64)
    nanosec = stack.numbers("u4")[:, 0]
    return _seconds(sec * 1_000_000_000 + nanosec), stack.string()


def _seconds(time_ns: np.ndarray) -> np.ndarray:
    """One formula for stamps and log times, so that equal times stay equal."""
    return time_ns / 1e9


def _poses(messages: list[bytes]) -> PoseTrack:
    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        return _header(stack)[0], stack.numbers("f8", 7)

    time_s, pose = decode_columns(messages, walk)
    order = np.argsort(time_s, kind="stable")
    return PoseTrack(time_s[order], pose[order, :3], pose[order][:, [6, 3, 4, 5]])


def _rotors(messages: list[bytes]) -> RotorTrack:
    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        time_s, _ = _header(stack)
        for _ in range(stack.length()):
            stack.string()
        stack.numbers("f8", stack.length())
        return time_s, stack.numbers("f8", stack.length())

    return RotorTrack(*decode_columns(messages, walk))


def _tensions(messages: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Times (T,) and tensions at load and drone (T, 2) where both ends have a sample."""

    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        time_s, frame = _header(stack)
        at_drone = np.char.endswith(frame, b"/drone_end")
        if not np.all(at_drone | np.char.endswith(frame, b"/load_end")):
            raise ValueError("frame_id must end in /load_end or /drone_end")
        return time_s, at_drone, stack.numbers("f8", 6)[:, 0]

    time_s, at_drone, tension_n = decode_columns(messages, walk)
    both, load, drone = np.intersect1d(time_s[~at_drone], time_s[at_drone], return_indices=True)
    return both, np.stack([tension_n[~at_drone][load], tension_n[at_drone][drone]], axis=1)


def _shapes(messages: list[bytes]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Times (S,) and S arrays of points (points, 3)."""

    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        time_s, _ = _header(stack)
        stack.string()  # ns
        stack.numbers("i4", 3)  # id, type, action
        stack.numbers("f8", 10)  # pose, scale
        stack.numbers("f4", 4)  # colour
        stack.numbers("i4", 2)  # lifetime
        stack.numbers("u1")  # frame_locked
        count = stack.length()
        return time_s, stack.numbers("f8", 3 * count).reshape(-1, count, 3)

    _, results = decode(messages, walk)
    pairs = [(t, p) for times, points in results for t, p in zip(times, points, strict=True)]
    pairs.sort(key=lambda pair: pair[0])
    return np.array([t for t, _ in pairs]), [p for _, p in pairs]


def _cable(path: Path, name: str, logs: dict) -> CableTrack:
    tension = np.empty(0), np.empty((0, 2))
    shape = np.empty(0), []
    if (name, "tension") in logs:
        tension = _decoded(path, name, "tension", logs, _tensions)
    if (name, "shape") in logs:
        shape = _decoded(path, name, "shape", logs, _shapes)
    return CableTrack(*tension, *shape)


def _stages(path: Path, logs: dict, poses: dict[str, PoseTrack]) -> tuple[Stage, ...]:
    start_s = float(min(track.time_s[0] for track in poses.values()))
    end_s = float(max(track.time_s[-1] for track in poses.values()))
    log = logs.get(("mission", "stage"))
    if log is None:
        return stages_from_changes([], [], start_s, end_s)
    logged_s = _seconds(np.array(logs[LOAD, "pose"].time_ns))
    lag_s = poses[LOAD].time_s - logged_s
    announced_s = _seconds(np.array(log.time_ns))
    announced_s = announced_s + np.interp(announced_s, logged_s, lag_s)

    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        return (stack.string(),)

    names = _decoded(path, "mission", "stage", logs, lambda data: decode_columns(data, walk)[0])
    return stages_from_changes(list(announced_s), [n.decode() for n in names], start_s, end_s)
