"""Recordings of any kind as they are shown, read from their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from musls_analysis.recordings.readers import ReadOptions, folder_of_run, read_recording
from musls_analysis.scene import Subject
from musls_description.system.system_files import load_system
from musls_sim.scenario.scenario import load_scenario

DEFAULT_SYSTEM = "x500_trio"


def open_subject(
    path: Path,
    system: str | None = None,
    reading: ReadOptions | None = None,
    offsets_m: Mapping[str, Sequence[float]] | None = None,
) -> Subject:
    """Read a recording; its geometry is the system's or else that of the scenario beside it.

    Offsets are the recorded points by body or of all "drones".
    """
    recording = read_recording(path, reading)
    places = [body for body, track in recording.bodies.items() if not track.has_attitude]
    if places:
        warnings = (*recording.warnings, f"attitude of {', '.join(places)} unknown: drawn level")
        recording = replace(recording, warnings=warnings)
    offsets = dict(offsets_m or {})
    if "drones" in offsets:
        common = offsets.pop("drones")
        offsets = dict.fromkeys(recording.drones, common) | offsets
    folder = folder_of_run(path)
    scenario = folder / "scenario.yaml"
    if system or not scenario.is_file():
        rig = load_system(system or DEFAULT_SYSTEM)
    else:
        rig = load_scenario(scenario).system
    return Subject(recording, rig, folder.stem, offsets)
