"""What was recorded of one flight, whatever it was read from: memory, bag, flight log or table.

All parts carry their own sample times, because bodies, set-points and cables come at different
rates. World frame ENU, quaternions [w, x, y, z], cable and drone numbers from 1. Times count from
the start of the recording's clock (simulated time for simulations)::

    run.time_s, run.body("load").position_enu_m, run.cable(1).tension_n, run.events, run.errors()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from musls_analysis.recordings.stages import main_stages, stages_from_changes
from musls_analysis.recordings.tracks import (
    AccelerationTrack,
    Array,
    BatteryTrack,
    Body,
    CableTrack,
    Event,
    PoseTrack,
    RotorTrack,
    Stage,
    TwistTrack,
    WrenchTrack,
)
from musls_description.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from musls_analysis.comparison.error_table import ErrorTable

__all__ = [
    "LOAD", "AccelerationTrack", "BatteryTrack", "Body", "CableTrack", "Event", "PoseTrack",
    "Recording", "RotorTrack", "Stage", "TwistTrack", "WrenchTrack", "main_stages",
    "stages_from_changes",
]  # fmt: skip

_Part = TypeVar("_Part")

LOAD = "load"
"""Name of the load among the bodies; without a load, of what a rig shows instead."""

ANCHOR = "anchor_"
"""Begin of the names of anchors."""


@dataclass(frozen=True, repr=False, eq=False)
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
        twists: Velocities by body; a body may have none.
        events: What happened suddenly, in time order.
        batteries: By drone; only of those that have one.
        wrenches: What holds, moves or pushes each anchor, by anchor.
        sampled_setpoints: Whether set-points were logged with the poses, row by row, so that a
            change is seen up to one row late; else they carry the time of the change.
        setpoint_accelerations: What a controller asks of the autopilots, by drone; only of those
            that are flown so.
    """

    bodies: Mapping[str, PoseTrack]
    setpoints: Mapping[str, PoseTrack] = field(default_factory=dict)
    cables: Mapping[str, CableTrack] = field(default_factory=dict)
    rotors: Mapping[str, RotorTrack] = field(default_factory=dict)
    stages: Sequence[Stage] = ()
    source: str = ""
    warnings: Sequence[str] = ()
    twists: Mapping[str, TwistTrack] = field(default_factory=dict)
    events: Sequence[Event] = ()
    batteries: Mapping[str, BatteryTrack] = field(default_factory=dict)
    wrenches: Mapping[str, WrenchTrack] = field(default_factory=dict)
    sampled_setpoints: bool = False
    setpoint_accelerations: Mapping[str, AccelerationTrack] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that there is something to look at."""
        if not self.bodies or any(len(track.time_s) == 0 for track in self.bodies.values()):
            raise ConfigError(f"{self.source or 'recording'}: a body without poses")

    @property
    def time_s(self) -> Array:
        """Times of the load's poses, or of the first body's if there is no load (T,)."""
        return self.bodies.get(LOAD, next(iter(self.bodies.values()))).time_s

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
        return [n for n in self.bodies if n != LOAD and not n.startswith(ANCHOR)]

    def body(self, name: str) -> Body:
        """All that was recorded of one body.

        Args:
            name: "load", "drone_1", ...

        Raises:
            ConfigError: There is no such body.
        """
        pose = _entry(self.bodies, name, "body")
        parts = (self.twists.get(name), self.rotors.get(name), self.setpoints.get(name))
        return Body(name, pose, *parts)

    def drone(self, number: int) -> Body:
        """All that was recorded of a drone.

        Args:
            number: From 1.

        Raises:
            ConfigError: There is no such drone.
        """
        return self.body(f"drone_{number}")

    def anchor(self, number: int) -> Body:
        """All that was recorded of an anchor; what it took to hold or move it is in `wrench`.

        Args:
            number: From 1.

        Raises:
            ConfigError: There is no such anchor.
        """
        return self.body(f"{ANCHOR}{number}")

    def wrench(self, number: int) -> WrenchTrack:
        """Force and moment that hold, move or push an anchor.

        Args:
            number: From 1.

        Raises:
            ConfigError: There is no such anchor, or it was not recorded.
        """
        return _entry(self.wrenches, f"{ANCHOR}{number}", "wrench of")

    def cable(self, number: int) -> CableTrack:
        """All that was recorded of a cable.

        Args:
            number: From 1.

        Raises:
            ConfigError: There is no such cable, or nothing was recorded of it.
        """
        return _entry(self.cables, f"cable_{number}", "cable")

    def setpoint_acceleration(self, number: int) -> AccelerationTrack:
        """Accelerations that a controller asked of a drone's autopilot.

        Args:
            number: Of the drone, from 1.

        Raises:
            ConfigError: There is no such drone, or nobody asked it for accelerations.
        """
        return _entry(self.setpoint_accelerations, f"drone_{number}", "acceleration set-points of")

    def battery(self, number: int) -> BatteryTrack:
        """What was recorded of a drone's battery.

        Args:
            number: Of the drone, from 1.

        Raises:
            ConfigError: There is no such drone, or it has no battery.
        """
        return _entry(self.batteries, f"drone_{number}", "battery of")

    def stage_mask(self, stage: Stage, time_s: Array) -> np.ndarray:
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

    def errors(self) -> ErrorTable:
        """Distance and angle of each body to its set-point in each stage.

        Returns:
            One row per body and stage, see `musls_analysis.comparison.error_table.StageError`.
        """
        from musls_analysis.comparison.error_table import error_table

        return error_table(self)

    def plot(self, name: str = "paths_3d") -> Figure:
        """Draw one of the report's figures.

        Args:
            name: As the report's PNG files: "paths_3d", "top_view", "stage_errors", "pose_load",
                "pose_drone_1", ..., "tensions", "rotors", "batteries".

        Returns:
            A matplotlib figure, which notebooks show; `savefig` writes it.

        Raises:
            ConfigError: The recording has no such figure.
        """
        from musls_analysis.figures.plot import plot

        return plot(self, name)

    def __repr__(self) -> str:
        """One line."""
        facts = ", ".join(f"{value} {name}".strip() for name, value in self._facts())
        return f"<Recording {self.source}: {facts}>" if self.source else f"<Recording: {facts}>"

    def __rich__(self) -> RenderableType:
        """Facts, then errors per body and stage, for a terminal."""
        from rich.console import Group

        return Group(repr(self), *self.warnings, self.errors().__rich__())

    def _repr_html_(self) -> str:
        """Facts, then errors per body and stage, for a notebook."""
        from html import escape

        lines = "".join(f"<p>{escape(line)}</p>" for line in (repr(self)[1:-1], *self.warnings))
        return lines + self.errors()._repr_html_()

    def _facts(self) -> list[tuple[str, str]]:
        counts = (
            ("drone", len(self.drones)), ("cable", len(self.cables)), ("stage", len(self.stages)),
            ("event", len(self.events)), ("warning", len(self.warnings)),
        )  # fmt: skip
        return [("", f"{self.end_s - self.start_s:.2f} s")] + [
            (name if count == 1 else f"{name}s", str(count)) for name, count in counts if count
        ]


def _entry(parts: Mapping[str, _Part], name: str, what: str) -> _Part:
    try:
        return parts[name]
    except KeyError:
        known = ", ".join(parts) or "none"
        raise ConfigError(f"no {what} {name} in this recording; it has {known}") from None
