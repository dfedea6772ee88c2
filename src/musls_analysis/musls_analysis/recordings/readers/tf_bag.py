"""Reads bags that hold no more than TF, as the recordings of real flights do.

Poses count at the stamps of the transforms. Where a body's parent hangs on the world by static
transforms, these are applied; all bodies must end at the same root.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from musls_analysis.recordings.cdr import CdrStack, decode
from musls_analysis.recordings.raw_bag import Log
from musls_analysis.recordings.readers.clean import Notes, cleaned
from musls_analysis.recordings.readers.frames import bodies_of_frames
from musls_analysis.recordings.readers.options import ReadOptions
from musls_analysis.recordings.recording import PoseTrack, Recording, stages_from_changes
from musls_description.errors import ConfigError
from musls_description.rotations import product, rotate


class _Transforms(NamedTuple):
    """Transforms of all frames.

    Attributes:
        time_s: Stamps (T,).
        parent: Frames as bytes (T,).
        child: Frames as bytes (T,).
        pose: x y z, quaternion x y z w (T, 7).
    """

    time_s: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    pose: np.ndarray


def read_tf_bag(path: Path, moving: Log, static: Log | None, options: ReadOptions) -> Recording:
    """Make a recording of TF messages.

    Args:
        path: Bag, for messages.
        moving: Messages of /tf.
        static: Messages of /tf_static.
        options: Which frame is which body, and whether stale samples stay.

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
    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        parts = []
        for _ in range(stack.length()):
            sec = stack.numbers("i4")[:, 0].astype(np.int64)
            stamp_ns = sec * 1_000_000_000 + stack.numbers("u4")[:, 0]
            parts.append((stamp_ns / 1e9, stack.string(), stack.string(), stack.numbers("f8", 7)))
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))

    try:
        results = [result for result in decode(log.data, walk)[1] if result]
    except ValueError as error:
        raise ConfigError(f"{path}: TF messages cannot be decoded: {error}") from error
    if not results:
        raise ConfigError(f"{path}: no transforms in the TF messages")
    columns = _Transforms(*(np.concatenate(parts) for parts in zip(*results, strict=True)))
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
    position, q = tf.pose[rows, :3], tf.pose[rows][:, [6, 3, 4, 5]]
    parent = parents[0]
    seen = {frame.encode()}
    while fixed is not None and np.any(fixed.child == parent) and parent not in seen:
        seen.add(parent)
        k = int(np.flatnonzero(fixed.child == parent)[-1])
        turn, shift = fixed.pose[k, [6, 3, 4, 5]], fixed.pose[k, :3]
        position = shift + rotate(np.broadcast_to(turn, q.shape), position)
        q = product(np.broadcast_to(turn, q.shape), q)
        parent = fixed.parent[k]
    return PoseTrack(tf.time_s[rows], position, q), parent.decode()


def _same_root(path: Path, roots: dict[str, str]) -> None:
    if len({root.strip("/") for root in roots.values()}) > 1:
        which = ", ".join(f"{body} in {root}" for body, root in roots.items())
        raise ConfigError(f"{path}: poses in different frames: {which}; name others with --frames")
