"""Bags that were not recorded here: transforms on /tf, or topics of poses of any common driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from musls_analysis.recordings.bag import Log, Topic, decode
from musls_analysis.recordings.capture import Capture, RawTrack
from musls_analysis.recordings.recording import PoseTrack, resample
from musls_control.px4.frames import orientation_enu_ned, world_enu_ned
from musls_description.config.errors import ConfigError
from musls_description.numerics.rotations import product, rotate

TF_TYPE = "tf2_msgs/msg/TFMessage"


class Transforms(NamedTuple):
    """Poses of many frames, a row each.

    Attributes:
        stamp_s: (T,).
        log_s: Time when each was logged (T,).
        parent: Frames as bytes (T,); empty where none was said.
        child: Frames, or topics, as bytes (T,).
        position_m: Position in the parent (T, 3).
        orientation_wxyz: Rotation to the parent (T, 4).
    """

    stamp_s: np.ndarray
    log_s: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    position_m: np.ndarray
    orientation_wxyz: np.ndarray


def _stamp_s(stamp: Mapping[str, np.ndarray]) -> np.ndarray:
    nanoseconds = np.asarray(stamp["sec"], np.int64) * 1_000_000_000 + stamp["nanosec"]
    return np.asarray(nanoseconds / 1e9)


def _constant(text: str, n: int) -> np.ndarray:
    return np.full(n, text.encode())


# ---------- Messages, decoded many at once, to rows

Fields = Mapping[str, Any]
Rows = Iterable[Transforms]


def _of_tf(topic: str, log_s: np.ndarray, fields: Fields) -> Rows:
    for one in fields["transforms"]:
        header = one["header"]
        pose = one["transform"]
        yield Transforms(
            _stamp_s(header["stamp"]),
            log_s,
            header["frame_id"],
            one["child_frame_id"],
            pose["translation"],
            pose["rotation"],
        )


def _of_pose(*path: str) -> Callable[[str, np.ndarray, Fields], Rows]:
    """A message with a header and one pose, which is named by its topic."""

    def rows(topic: str, log_s: np.ndarray, fields: Fields) -> Rows:
        header = fields["header"]
        pose = fields
        for part in path:
            pose = pose[part]
        position, turn = list(pose.values())[:2]
        name = _constant(topic, len(log_s))
        yield Transforms(_stamp_s(header["stamp"]), log_s, header["frame_id"], name, position, turn)

    return rows


def _of_point(topic: str, log_s: np.ndarray, fields: Fields) -> Rows:
    """geometry_msgs/PointStamped: a place without attitude."""
    header = fields["header"]
    point = fields["point"]
    name = _constant(topic, len(log_s))
    turn = np.full((len(log_s), 4), np.nan)
    yield Transforms(_stamp_s(header["stamp"]), log_s, header["frame_id"], name, point, turn)


def _of_named(bodies: str, name: str) -> Callable[[str, np.ndarray, Fields], Rows]:
    """A message with a header and many poses with names."""

    def rows(topic: str, log_s: np.ndarray, fields: Fields) -> Rows:
        header = fields["header"]
        for one in fields[bodies]:
            pose = one["pose"]
            yield Transforms(
                _stamp_s(header["stamp"]),
                log_s,
                header["frame_id"],
                one[name],
                pose["position"],
                pose["orientation"],
            )

    return rows


def _of_vicon(topic: str, log_s: np.ndarray, fields: Fields) -> Rows:
    """vicon_receiver/Position: millimetres, no stamp."""
    position = np.column_stack([fields[f"{axis}_trans"] for axis in "xyz"]) / 1000.0
    turn = np.column_stack([fields["w"], *(fields[f"{axis}_rot"] for axis in "xyz")])
    empty = _constant("", len(log_s))
    yield Transforms(np.zeros(len(log_s)), log_s, empty, fields["subject_name"], position, turn)


def _of_px4_odometry(topic: str, log_s: np.ndarray, fields: Fields) -> Rows:
    """px4_msgs/VehicleOdometry: NED and FRD, microseconds of the autopilot's clock."""
    stamp_s = 1e-6 * fields["timestamp_sample"].astype(float)
    position = world_enu_ned(fields["position"])
    turn = orientation_enu_ned(fields["q"])
    name = _constant(topic, len(log_s))
    empty = _constant("", len(log_s))
    yield Transforms(stamp_s, log_s, empty, name, position, turn)


def _of_px4_position(topic: str, log_s: np.ndarray, fields: Fields) -> Rows:
    """px4_msgs/VehicleLocalPosition; its attitude is on a topic of its own."""
    stamp_s = 1e-6 * fields["timestamp_sample"].astype(float)
    position = world_enu_ned(np.column_stack([fields[axis] for axis in "xyz"]))
    name = _constant(topic, len(log_s))
    empty = _constant("", len(log_s))
    yield Transforms(stamp_s, log_s, empty, name, position, np.full((len(log_s), 4), np.nan))


def _of_px4_attitude(topic: str, log_s: np.ndarray, fields: Fields) -> Rows:
    stamp_s = 1e-6 * fields["timestamp_sample"].astype(float)
    name = _constant(topic, len(log_s))
    empty = _constant("", len(log_s))
    zero = np.zeros((len(log_s), 3))
    yield Transforms(stamp_s, log_s, empty, name, zero, orientation_enu_ned(fields["q"]))


_PX4_POSITION = "vehicle_local_position"
_PX4_ATTITUDE = "vehicle_attitude"

POSES: Mapping[str, Callable[[str, np.ndarray, Fields], Rows]] = {
    "geometry_msgs/msg/PoseStamped": _of_pose("pose"),
    "geometry_msgs/msg/PoseWithCovarianceStamped": _of_pose("pose", "pose"),
    "geometry_msgs/msg/TransformStamped": _of_pose("transform"),
    "geometry_msgs/msg/PointStamped": _of_point,
    "nav_msgs/msg/Odometry": _of_pose("pose", "pose"),
    "motion_capture_tracking_interfaces/msg/NamedPoseArray": _of_named("poses", "name"),
    "mocap4r2_msgs/msg/RigidBodies": _of_named("rigidbodies", "rigid_body_name"),
    "vicon_receiver/msg/Position": _of_vicon,
    "px4_msgs/msg/VehicleOdometry": _of_px4_odometry,
    "px4_msgs/msg/VehicleLocalPosition": _of_px4_position,
    "px4_msgs/msg/VehicleAttitude": _of_px4_attitude,
}
"""Functions that read the poses of a message, by message type."""


def _rows(msgtype: str, topic: str, log: Log) -> list[Transforms]:
    reader = _of_tf if msgtype == TF_TYPE else POSES[msgtype]
    log_s = np.array(log.time_ns, np.int64) / 1e9
    try:
        stacks = decode(log.data, msgtype)
        return [row for indices, fields in stacks for row in reader(topic, log_s[indices], fields)]
    except (ValueError, KeyError) as error:
        raise ConfigError(f"{topic} ({msgtype}) cannot be decoded: {error}") from error


# ---------- To a capture


def transforms_of(logs: Mapping[Topic, Log]) -> Transforms:
    """All poses in the logs, by message type and topic, in the order of their stamps."""
    parts = [row for (msgtype, topic), log in logs.items() for row in _rows(msgtype, topic, log)]
    if not parts:
        raise ConfigError("no transforms in the TF messages")
    columns = Transforms(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    order = np.argsort(columns.stamp_s, kind="stable")
    return Transforms(*(column[order] for column in columns))


def capture_of(moving: Transforms, fixed: Transforms | None, format: str) -> Capture:
    """Make a capture of transforms that move, in the root of those that do not."""
    notes: list[str] = []
    pairs = set(zip(moving.child.tolist(), moving.parent.tolist(), strict=True))
    parents = {child.decode(): parent.decode() for child, parent in sorted(pairs, reverse=True)}
    rows = {name: moving.child == name.encode() for name in parents}
    times_s = _times(moving, rows, notes)
    tracks = {}
    roots = {}
    for name in parents:
        position, turn, roots[name] = _in_root(moving, fixed, name, rows[name])
        tracks[name] = RawTrack(times_s[name], position, turn)
    tracks = _with_attitudes(tracks)
    parents = {name: parents[name] for name in tracks}
    known_quantities = frozenset({"length", "time", "axes"})
    return Capture(
        tracks, stated=known_quantities, format=format, parents=parents, roots=roots, notes=notes
    )


LARGEST_CLOCK_ERROR_S = 1.0
"""Stamps of two topics that are farther apart, as logged at one time, are of two clocks."""


def _times(
    moving: Transforms, rows: Mapping[str, np.ndarray], notes: list[str]
) -> dict[str, np.ndarray]:
    """Times of each body: its stamps, on one clock; where they tell nothing, the times of logging.

    A PX4's clock begins at its start; a driver may leave its stamps empty.
    """
    times_s = {}
    late_s = {}
    for name, which in rows.items():
        stamp_s = moving.stamp_s[which]
        log_s = moving.log_s[which]
        if len(stamp_s) > 2 and np.ptp(stamp_s) == 0.0:
            notes.append(f"stamps of {name} are all {stamp_s[0]:g}: its times of logging are used")
            stamp_s = log_s
        times_s[name] = stamp_s
        late_s[name] = float(np.median(log_s - stamp_s))
    usual_s = min(late_s.values(), key=abs)  # the clock of the logging, or the nearest to it
    for name, its_s in late_s.items():
        if abs(its_s - usual_s) > LARGEST_CLOCK_ERROR_S:
            notes.append(
                f"stamps of {name} are of another clock, {its_s - usual_s:.3f} s away: put on the "
                "others' by the times of logging"
            )
            times_s[name] = times_s[name] + its_s - usual_s
    return times_s


def _in_root(
    moving: Transforms, static: Transforms | None, name: str, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, str]:
    """Poses of a frame in its root, and the root."""
    parents = np.unique(moving.parent[rows])
    if len(parents) > 1:
        names = ", ".join(p.decode() for p in parents)
        raise ConfigError(f"{name} has several parents: {names}")
    position = moving.position_m[rows]
    q = moving.orientation_wxyz[rows]
    parent = parents[0]
    visited = {name.encode()}
    while static is not None and np.any(static.child == parent) and parent not in visited:
        visited.add(parent)
        k = int(np.flatnonzero(static.child == parent)[-1])
        turn = np.broadcast_to(static.orientation_wxyz[k], q.shape)
        position = static.position_m[k] + rotate(turn, position)
        q = product(turn, q)
        parent = static.parent[k]
    return position, q, parent.decode()


def _with_attitudes(tracks: Mapping[str, RawTrack]) -> dict[str, RawTrack]:
    """Local positions of PX4s joined with the attitudes on other topics."""
    result = {}
    for name, track in tracks.items():
        space, _, last = name.rpartition("/")
        if last.startswith(_PX4_ATTITUDE):
            continue
        if last.startswith(_PX4_POSITION):
            beside = name.replace(_PX4_POSITION, _PX4_ATTITUDE)
            attitude = tracks.get(beside) or tracks.get(f"{space}/{_PX4_ATTITUDE}")
            if attitude is None:
                continue
            track = track._replace(rotation=_resampled(attitude, track.time))
        result[name] = track
    return result


def _resampled(attitude: RawTrack, time_s: np.ndarray) -> np.ndarray:
    _, first = np.unique(attitude.time, return_index=True)
    poses = PoseTrack(*(column[first] for column in attitude))
    return resample(poses, time_s, np.inf).orientation_wxyz
