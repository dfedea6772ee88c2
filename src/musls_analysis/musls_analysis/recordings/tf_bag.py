"""Reads bags that hold no more than TF, as the recordings of real flights do.

Poses count at the stamps of the transforms. Where a body's parent hangs on the world by static
transforms, these are applied; all bodies must end at the same root.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musls_analysis.recordings.cdr import decode
from musls_analysis.recordings.cleaning import Notes, ReadOptions, cleaned
from musls_analysis.recordings.raw_bag import Log
from musls_analysis.recordings.recording import LOAD, PoseTrack, Recording, stages_from_changes
from musls_description.errors import ConfigError
from musls_description.rotations import product, rotate

# ---------- Frames of the bodies

_ENDING = r"(?:[_/](?:base_link|base|link|body|marker|pose|gt|mocap|measured))*"
_DESIRED = r"[_/](?:des|desired|sp|setpoint|ref|reference|target)"
_LOAD = re.compile(rf"(?:slung_?)?(?:load|payload)_?1?{_ENDING}(?P<desired>{_DESIRED})?")
_DRONE = re.compile(
    r"(?:drone|px4|uav|quad|quadrotor|quadcopter|copter|vehicle|mav|x500|cf|agent)[_/]?"
    rf"(?P<number>[0-9]{{1,9}}){_ENDING}(?P<desired>{_DESIRED})?"
)


def bodies_of_frames(
    parents: Mapping[str, str], given: Mapping[str, str], source: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Frame by body, measured and set-points; the load first, then the drones in order.

    Frames are chosen by their names, `given` ones (frame by body) before any guess. `parents` holds
    the parent of each frame that moves.

    Raises:
        ConfigError: A given frame does not exist, several frames look like one body, or the load
            or all drones are missing.
    """
    for body, frame in given.items():
        if not (body == LOAD or re.fullmatch(r"drone_[1-9][0-9]{0,8}", body)):
            raise ConfigError(
                f"frames: '{body}' is no body; bodies are load, drone_1, drone_2, ..."
            )
        if frame not in parents:
            raise ConfigError(
                f"{source}: no TF frame '{frame}' (for {body}); it has {_few(parents)}"
            )
    measured, wanted = _guesses(set(parents) - set(given.values()))
    measured = {body: frames for body, frames in measured.items() if body not in given}
    chosen = {body: _one(body, frames, parents, source) for body, frames in measured.items()}
    chosen |= given
    if LOAD not in chosen or len(chosen) < 2:
        body = "drone_1" if LOAD in chosen else LOAD
        raise ConfigError(
            f"{source}: no TF frame looks like {body}; name it with --frames {body}=FRAME: "
            f"it has {_few(parents)}"
        )
    setpoints = {body: _one(body, frames, parents, source) for body, frames in wanted.items()}
    return _ordered(chosen), _ordered({b: f for b, f in setpoints.items() if b in chosen})


def _guesses(frames: Iterable[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Frames that look like each body, measured and set-points; drones counted from 1."""
    found: list[tuple[int | None, bool, str]] = []  # None: the load
    for frame in sorted(frames):
        name = frame.strip("/").lower()
        if match := _LOAD.fullmatch(name):
            found.append((None, bool(match["desired"]), frame))
        elif match := _DRONE.fullmatch(name):
            found.append((int(match["number"]), bool(match["desired"]), frame))
    first = min((key for key, _, _ in found if key is not None), default=1)
    shift = 1 if first == 0 else 0
    measured: dict[str, list[str]] = {}
    wanted: dict[str, list[str]] = {}
    for key, desired, frame in found:
        body = LOAD if key is None else f"drone_{key + shift}"
        (wanted if desired else measured).setdefault(body, []).append(frame)
    return measured, wanted


def _one(body: str, frames: list[str], parents: Mapping[str, str], source: str) -> str:
    """The frame of a body; of a chain such as drone_1 -> drone_1/base_link its root."""
    roots = [frame for frame in frames if parents[frame] not in frames]
    if len(roots) != 1:
        raise ConfigError(
            f"{source}: TF frames {_few(frames)} all look like {body}; name one with "
            f"--frames {body}=FRAME"
        )
    return roots[0]


def _ordered(frames: dict[str, str]) -> dict[str, str]:
    def key(body: str) -> int:
        return 0 if body == LOAD else int(body.rsplit("_", 1)[1])

    return {body: frames[body] for body in sorted(frames, key=key)}


def _few(names: Iterable[str]) -> str:
    names = sorted(names)
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


# ---------- Their poses


class _Transforms(NamedTuple):
    """Transforms of all frames.

    Attributes:
        time_s: Stamps (T,).
        parent: Frames as bytes (T,).
        child: Frames as bytes (T,).
        position_m: In the parent (T, 3).
        orientation_wxyz: To the parent (T, 4).
    """

    time_s: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    position_m: np.ndarray
    orientation_wxyz: np.ndarray


def read_tf_bag(path: Path, moving: Log, static: Log | None, options: ReadOptions) -> Recording:
    """Make a recording of the messages of /tf and /tf_static; the path is for messages.

    Raises:
        ConfigError: Frames are missing or ambiguous, or nothing usable is in them.
    """
    tf = _decoded(path, moving)
    fixed = _decoded(path, static) if static else None
    frames, inverse = np.unique(tf.child, return_inverse=True)
    parents = {}
    for k, frame in enumerate(frames):
        its = np.unique(tf.parent[inverse == k])
        parents[frame.decode()] = its[0].decode()
    measured, wanted = bodies_of_frames(parents, options.frames, str(path))
    rows = {frame.decode(): inverse == k for k, frame in enumerate(frames)}
    notes = Notes()
    bodies, roots = {}, {}
    for body, frame in measured.items():
        track, roots[body] = _track(path, tf, fixed, rows[frame], frame)
        bodies[body] = cleaned(track, body, str(path), notes, options.drop_stale)
    _same_root(path, roots)
    setpoints = {}
    for body, frame in wanted.items():
        track, root = _track(path, tf, fixed, rows[frame], frame)
        _same_root(path, {**roots, f"{body}'s set-point": root})
        setpoints[body] = cleaned(track, f"{body}'s set-points", str(path), notes).changes()
    first_s = float(min(track.time_s[0] for track in bodies.values()))
    last_s = float(max(track.time_s[-1] for track in bodies.values()))
    return Recording(
        bodies, setpoints, stages=stages_from_changes([], [], first_s, last_s), source=str(path),
        warnings=tuple(notes.lines),
    )  # fmt: skip


def _decoded(path: Path, log: Log) -> _Transforms:
    parts: list[tuple[np.ndarray, ...]] = []
    try:
        for _, fields in decode(log.data, "tf2_msgs/msg/TFMessage"):
            for one in fields["transforms"]:
                header, pose = one["header"], one["transform"]
                stamp_ns = header["stamp"]["sec"].astype(np.int64) * 1_000_000_000
                time_s = (stamp_ns + header["stamp"]["nanosec"]) / 1e9
                frames = header["frame_id"], one["child_frame_id"]
                parts.append((time_s, *frames, pose["translation"], pose["rotation"]))
    except ValueError as error:
        raise ConfigError(f"{path}: TF messages cannot be decoded: {error}") from error
    if not parts:
        raise ConfigError(f"{path}: no transforms in the TF messages")
    columns = _Transforms(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    order = np.argsort(columns.time_s, kind="stable")
    return _Transforms(*(column[order] for column in columns))


def _track(
    path: Path, tf: _Transforms, fixed: _Transforms | None, rows: np.ndarray, frame: str
) -> tuple[PoseTrack, str]:
    """Poses of a frame in its root, and the root."""
    parents = np.unique(tf.parent[rows])
    if len(parents) > 1:
        names = ", ".join(p.decode() for p in parents)
        raise ConfigError(f"{path}: TF frame {frame} has several parents: {names}")
    position, q = tf.position_m[rows], tf.orientation_wxyz[rows]
    parent = parents[0]
    seen = {frame.encode()}
    while fixed is not None and np.any(fixed.child == parent) and parent not in seen:
        seen.add(parent)
        k = int(np.flatnonzero(fixed.child == parent)[-1])
        turn, shift = fixed.orientation_wxyz[k], fixed.position_m[k]
        position = shift + rotate(np.broadcast_to(turn, q.shape), position)
        q = product(np.broadcast_to(turn, q.shape), q)
        parent = fixed.parent[k]
    return PoseTrack(tf.time_s[rows], position, q), parent.decode()


def _same_root(path: Path, roots: dict[str, str]) -> None:
    if len({root.strip("/") for root in roots.values()}) > 1:
        which = ", ".join(f"{body} in {root}" for body, root in roots.items())
        raise ConfigError(f"{path}: poses in different frames: {which}; name others with --frames")
