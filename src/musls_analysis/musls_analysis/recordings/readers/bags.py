"""Tells our bags and Gazebo's (poses on topics of their own) from those that hold only TF."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from musls_analysis.recordings.bag import Topic, keys_of_topics, recording_of_bag
from musls_analysis.recordings.raw_bag import RawBag, read_messages
from musls_analysis.recordings.readers.clean import Notes, cleaned
from musls_analysis.recordings.readers.options import ReadOptions
from musls_analysis.recordings.readers.tf_bag import read_tf_bag
from musls_analysis.recordings.recording import Recording
from musls_description.errors import ConfigError

_TF_TYPES = ("tf2_msgs/msg/TFMessage", "tf2_msgs/TFMessage")


def read_bag_of_any_kind(path: Path, options: ReadOptions) -> Recording:
    """Read a bag, MCAP or SQLite.

    Frames named in the options make it read TF even where there are poses.

    Raises:
        ConfigError: Damaged, empty, or with neither poses nor TF in it.
    """
    kinds: list[str] = []

    def choose(topics: Mapping[str, str]) -> Mapping[str, Hashable]:
        ours = keys_of_topics(path, topics)
        if any(kind == "pose" for _, kind in ours.values()) and not options.frames:
            kinds.append("poses")
            return ours
        keys = {
            topic: "static" if topic.endswith("tf_static") else "moving"
            for topic, msgtype in topics.items()
            if msgtype in _TF_TYPES
        }
        if "moving" not in keys.values():
            names = ", ".join(sorted(topics)[:8])
            raise ConfigError(f"{path}: neither /load/pose nor /tf in the bag; it has {names}")
        return keys

    bag = read_messages(path, choose)
    if kinds:
        return _cleaned(recording_of_bag(path, cast(RawBag[Topic], bag)))
    if "moving" not in bag.logs:
        raise ConfigError(f"{path}: no messages on /tf in the bag")
    recording = read_tf_bag(path, bag.logs["moving"], bag.logs.get("static"), options)
    return replace(recording, warnings=(*bag.warnings, *recording.warnings))


def _cleaned(recording: Recording) -> Recording:
    """Simulated bodies at rest repeat their poses, so nothing is taken for stale."""
    notes = Notes()
    bodies = {b: cleaned(t, b, recording.source, notes) for b, t in recording.bodies.items()}
    setpoints = {
        body: cleaned(track, f"{body}'s set-points", recording.source, notes)
        for body, track in recording.setpoints.items()
    }
    warnings = (*recording.warnings, *notes.lines)
    return replace(recording, bodies=bodies, setpoints=setpoints, warnings=warnings)
