"""What was recorded of one flight, whatever it was read from: bag, flight log or table.

All parts carry their own sample times, because bodies, set-points and cables come at different
rates. World frame ENU, quaternions [w, x, y, z], cable and drone numbers from 1. Times count from
the start of the recording's clock (simulated time for simulations).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from musls_control.phases import PHASES
from musls_description.errors import ConfigError

LOAD = "load"
"""Name of the load among the bodies."""


@dataclass(frozen=True)
class PoseTrack:
    """Poses over time.

    Attributes:
        time_s: Sample times, not decreasing (T,).
        position_enu_m: Positions (T, 3).
        orientation_wxyz: Unit quaternions body to world (T, 4).
    """

    time_s: np.ndarray
    position_enu_m: np.ndarray
    orientation_wxyz: np.ndarray

    def __post_init__(self) -> None:
        """Check the shapes."""
        n = len(self.time_s)
        shapes = (self.time_s.shape, self.position_enu_m.shape, self.orientation_wxyz.shape)
        if shapes != ((n,), (n, 3), (n, 4)):
            raise ValueError(f"a pose track needs shapes (T,), (T, 3), (T, 4), not {shapes}")

    def held_at(self, time_s: np.ndarray) -> PoseTrack:
        """Hold each pose until the next one, as a set-point is held.

        Args:
            time_s: Times asked for (K,).

        Returns:
            Poses at these times; NaN before the first one.
        """
        index = np.searchsorted(self.time_s, time_s, side="right") - 1
        if len(self.time_s) == 0:
            nothing = np.full((len(time_s), 7), np.nan)
            return PoseTrack(time_s, nothing[:, :3], nothing[:, 3:])
        position = self.position_enu_m[index]
        orientation = self.orientation_wxyz[index]
        position[index < 0] = np.nan
        orientation[index < 0] = np.nan
        return PoseTrack(time_s, position, orientation)

    def changes(self) -> PoseTrack:
        """The first pose and those that differ from the one before, e.g. of a held set-point."""
        values = np.column_stack([self.position_enu_m, self.orientation_wxyz])
        keep = np.ones(len(values), bool)
        keep[1:] = np.any(values[1:] != values[:-1], axis=1)
        return PoseTrack(self.time_s[keep], self.position_enu_m[keep], self.orientation_wxyz[keep])


@dataclass(frozen=True)
class CableTrack:
    """What is known of one cable.

    Attributes:
        time_s: Sample times of the tension (T,).
        tension_n: Tension at the load end and at the drone end (T, 2).
        shape_time_s: Sample times of the shape (S,).
        shape_enu_m: Points from the load to the drone per sample, S arrays (points, 3).
    """

    time_s: np.ndarray
    tension_n: np.ndarray
    shape_time_s: np.ndarray
    shape_enu_m: Sequence[np.ndarray] = ()


@dataclass(frozen=True)
class RotorTrack:
    """Rotor speeds of one drone.

    Attributes:
        time_s: Sample times (T,).
        speed_rad_s: Speeds (T, rotors).
    """

    time_s: np.ndarray
    speed_rad_s: np.ndarray


@dataclass(frozen=True)
class Stage:
    """A stage of the mission: start <= time < end.

    Attributes:
        name: Unique within a recording.
        start_s: First moment.
        end_s: First moment of the next stage, or the end of the recording.
    """

    name: str
    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """Length in time [s]."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Recording:
    """One flight.

    Attributes:
        bodies: Measured poses by body: "load", "drone_1", ...
        setpoints: Held set-points by body; a body may have none.
        cables: By name: "cable_1", ...
        rotors: Rotor speeds by drone.
        stages: In time order, without gaps.
        source: Where it came from, for people.
        warnings: What was dropped or repaired while reading, one line each.
    """

    bodies: Mapping[str, PoseTrack]
    setpoints: Mapping[str, PoseTrack] = field(default_factory=dict)
    cables: Mapping[str, CableTrack] = field(default_factory=dict)
    rotors: Mapping[str, RotorTrack] = field(default_factory=dict)
    stages: Sequence[Stage] = ()
    source: str = ""
    warnings: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check that there is something to look at."""
        if not self.bodies or any(len(track.time_s) == 0 for track in self.bodies.values()):
            raise ConfigError(f"{self.source or 'recording'}: a body without poses")

    @property
    def start_s(self) -> float:
        """Time of the first pose [s]."""
        return float(min(track.time_s[0] for track in self.bodies.values()))

    @property
    def end_s(self) -> float:
        """Time of the last pose [s]."""
        return float(max(track.time_s[-1] for track in self.bodies.values()))

    @property
    def drones(self) -> list[str]:
        """Names of the drones, in order."""
        return [name for name in self.bodies if name != LOAD]

    def stage_mask(self, stage: Stage, time_s: np.ndarray) -> np.ndarray:
        """Which samples fall into a stage; the last stage includes its end.

        Args:
            stage: One of the stages.
            time_s: Sample times (T,).

        Returns:
            Truth values (T,).
        """
        if self.stages and stage == self.stages[-1]:
            return (time_s >= stage.start_s) & (time_s <= stage.end_s)
        return (time_s >= stage.start_s) & (time_s < stage.end_s)


def stages_from_changes(
    time_s: Sequence[float], names: Sequence[str], start_s: float, end_s: float
) -> tuple[Stage, ...]:
    """Cut a flight into stages where the stage's name was announced.

    An announcement that repeats the current name changes nothing. A name that comes again later
    gets a number ("engage", "hold", "engage_2"), so that names stay unique. Without any
    announcement the whole flight is one stage "flight".

    Args:
        time_s: When each name was announced, not decreasing (K,).
        names: The names (K,).
        start_s: Start of the recording.
        end_s: End of the recording, where the last stage ends.
    """
    if not names:
        return (Stage("flight", start_s, end_s),)
    starts: list[float] = []
    kept: list[str] = []
    for moment, name in zip(time_s, names, strict=True):
        if kept and name == kept[-1]:
            continue
        if starts and moment == starts[-1]:  # replaced before it lasted
            starts.pop()
            kept.pop()
        starts.append(float(moment))
        kept.append(name)
    ends = [*starts[1:], max(end_s, starts[-1])]
    return tuple(map(Stage, _unique(kept), starts, ends))


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique


def main_stages(stages: Sequence[Stage]) -> list[Stage]:
    """Stages that a mission is about; all of them if no name tells."""
    chosen = [s for s in stages if not PHASES & {s.name, s.name.rsplit("_", 1)[0]}]
    return chosen or list(stages)
