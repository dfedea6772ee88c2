"""A recording to look at, with what its bodies look like and where it is placed in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from musls_analysis.recordings.bag import STORAGE_SUFFIXES
from musls_analysis.recordings.readers import ReadOptions, read_recording
from musls_analysis.recordings.recording import LOAD, PoseTrack, Recording
from musls_analysis.view.shapes import ANCHOR, DroneShape, LoadShape
from musls_description.errors import ConfigError
from musls_description.library import load_system
from musls_description.rotations import rotate
from musls_description.system import RigSystem

DEFAULT_SYSTEM = "x500_trio"
SCENARIO = "scenario.yaml"


@dataclass(frozen=True)
class Subject:
    """One recording as it is shown.

    Attributes:
        recording: The flight.
        system: Geometry of load, drones and cables; as many drones as were recorded.
        name: Short name for people.
        offsets_m: Recorded point of a body in its frame, from its centre of mass, by body.
        shift_s: Added to the recording's times to get the times shown.
    """

    recording: Recording
    system: RigSystem
    name: str
    offsets_m: Mapping[str, Sequence[float]] = field(default_factory=dict)
    shift_s: float = 0.0

    def __post_init__(self) -> None:
        """Check that the recording, the system and the offsets belong together."""
        drones = self.recording.drones
        if len(drones) != self.system.n_drones:
            raise ConfigError(
                f"{self.recording.source}: {len(drones)} drones recorded, but system "
                f"{self.system.name} has {self.system.n_drones}; choose one with --system"
            )
        for body in self.offsets_m:
            if body not in self.recording.bodies:
                has = ", ".join(self.recording.bodies)
                raise ConfigError(f"{self.recording.source}: no body '{body}' in it; it has {has}")

    @property
    def start_s(self) -> float:
        """Shown time of the first pose [s]."""
        return self.recording.start_s + self.shift_s

    @property
    def end_s(self) -> float:
        """Shown time of the last pose [s]."""
        return self.recording.end_s + self.shift_s

    def boxes(self) -> dict[str, LoadShape]:
        """Shapes of load, if there is one, and anchors, by name."""
        shapes = {f"anchor_{i + 1}": ANCHOR for i in range(len(self.system.anchors))}
        if self.system.load is not None:
            shapes[LOAD] = LoadShape.of(self.system.load)
        return shapes

    def drone_shapes(self) -> dict[str, DroneShape]:
        """Shape of each drone, by name."""
        shapes = map(DroneShape.of, self.system.drones)
        return dict(zip(self.recording.drones, shapes, strict=True))

    def named(self, tracks: Mapping[str, PoseTrack]) -> dict[str, PoseTrack]:
        """Tracks of bodies by the names that the system gives them."""
        drones = {drone: f"drone_{i}" for i, drone in enumerate(self.recording.drones, start=1)}
        return {drones.get(body, body): track for body, track in tracks.items()}

    def origin_enu_m(self, body: str, position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
        """Centre of mass of a body from where its recorded point is.

        Args:
            body: Name.
            position: Recorded point (T, 3).
            orientation: Quaternions wxyz (T, 4).
        """
        offset = np.asarray(self.offsets_m.get(body, (0.0, 0.0, 0.0)), float)
        if not offset.any():
            return position
        return position - rotate(orientation, np.broadcast_to(offset, position.shape))


def open_subject(
    path: Path,
    system: str | None = None,
    frames: Mapping[str, str] | None = None,
    offsets_m: Mapping[str, Sequence[float]] | None = None,
) -> Subject:
    """Read a recording; its geometry is that of the scenario saved beside it, if there is one.

    Args:
        path: Anything that `read_recording` accepts.
        system: Shipped system or YAML file that overrides the scenario's.
        frames: TF frames by body, for bags that hold only TF.
        offsets_m: Recorded point by body; "drones" stands for all drones.

    Raises:
        ConfigError: Not a recording, or it does not fit the system or the offsets.
    """
    recording = read_recording(path, ReadOptions(frames=dict(frames or {})))
    offsets = dict(offsets_m or {})
    if "drones" in offsets:
        common = offsets.pop("drones")
        offsets = dict.fromkeys(recording.drones, common) | offsets
    return Subject(recording, _system_of(path, system), _run_folder(path).stem, offsets)


def _system_of(path: Path, system: str | None) -> RigSystem:
    scenario = _run_folder(path) / SCENARIO
    if system or not scenario.is_file():
        return load_system(system or DEFAULT_SYSTEM)
    from musls_sim.scenario.scenario import load_scenario

    return load_scenario(scenario).system


def _run_folder(path: Path) -> Path:
    """The folder that `musls fly` wrote, of the folder itself, its bag or the bag's file."""
    folder = path.resolve()
    if folder.suffix in STORAGE_SUFFIXES:
        folder = folder.parent
    return folder.parent if folder.name == "bag" else folder


def bodies_of(subjects: Sequence[Subject]) -> list[str]:
    """Bodies that all subjects have, the load first."""
    shared = set.intersection(*(set(s.recording.bodies) for s in subjects))
    return [LOAD, *(d for d in subjects[0].recording.drones if d in shared)]
