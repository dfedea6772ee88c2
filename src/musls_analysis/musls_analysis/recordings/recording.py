"""Everything recorded of one flight, whatever it was read from: memory, bag, flight log or table.

All parts carry their own sample times, because bodies, set-points and cables come at different
rates. World frame ENU, quaternions [w, x, y, z], cable and drone numbers from 1. Times count from
the start of the recording's clock (simulated time for simulations)::

    run.time_s, run.body("load").position_enu_m, run.cable(1).tension_n, run.events
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from musls_control.phases import PHASES
from musls_description.errors import ConfigError
from musls_description.rotations import slerp

Array = NDArray[np.float64]
_Part = TypeVar("_Part")

LOAD = "load"
"""Name of the load among the bodies; without a load, of what a rig shows instead."""

ANCHOR = "anchor_"
"""Begin of the names of anchors."""

# ---------- Tracks


@dataclass(frozen=True, eq=False)
class PoseTrack:
    """Poses over time.

    Attributes:
        time_s: Not decreasing (T,).
        position_enu_m: (T, 3).
        orientation_wxyz: Unit quaternions body to world (T, 4).
    """

    time_s: Array
    position_enu_m: Array
    orientation_wxyz: Array

    def __post_init__(self) -> None:
        """Check the shapes."""
        n = len(self.time_s)
        shapes = (self.time_s.shape, self.position_enu_m.shape, self.orientation_wxyz.shape)
        if shapes != ((n,), (n, 3), (n, 4)):
            raise ValueError(f"a pose track needs shapes (T,), (T, 3), (T, 4), not {shapes}")

    def held_at(self, time_s: Array) -> PoseTrack:
        """Each pose held until the next one, at the times (K,); NaN before the first one."""
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


@dataclass(frozen=True, eq=False)
class TwistTrack:
    """Velocities over time.

    Attributes:
        time_s: Not decreasing (T,).
        velocity_enu_m_s: Of the centre of mass, world (T, 3).
        omega_body_rad_s: Angular velocity, body frame (T, 3).
    """

    time_s: Array
    velocity_enu_m_s: Array
    omega_body_rad_s: Array

    def __post_init__(self) -> None:
        """Check the shapes."""
        n = len(self.time_s)
        shapes = (self.time_s.shape, self.velocity_enu_m_s.shape, self.omega_body_rad_s.shape)
        if shapes != ((n,), (n, 3), (n, 3)):
            raise ValueError(f"a twist track needs shapes (T,), (T, 3), (T, 3), not {shapes}")

    def at(self, time_s: Array) -> TwistTrack:
        """Interpolate linearly at times (K,); NaN before the first sample and after the last."""
        if np.array_equal(time_s, self.time_s):
            return self
        velocity, omega = (
            np.stack([np.interp(time_s, self.time_s, c, np.nan, np.nan) for c in values.T], axis=-1)
            for values in (self.velocity_enu_m_s, self.omega_body_rad_s)
        )
        return TwistTrack(time_s, velocity, omega)


@dataclass(frozen=True, eq=False)
class AccelerationTrack:
    """Accelerations that a controller asks of a drone's autopilot, while it does.

    Attributes:
        time_s: When each was asked for (T,).
        acceleration_enu_m_s2: World, gravity not in it: at rest it is zero (T, 3).
    """

    time_s: Array
    acceleration_enu_m_s2: Array


@dataclass(frozen=True, eq=False)
class WrenchTrack:
    """Force and moment over time (T,), world frame, (T, 3) each."""

    time_s: Array
    force_enu_n: Array
    moment_enu_n_m: Array


@dataclass(frozen=True, eq=False)
class CableTrack:
    """What is known of one cable.

    Attributes:
        time_s: Sample times of the tension (T,).
        tension_n: Tension at the load end and at the drone end (T, 2).
        shape_time_s: Sample times of the shape (S,).
        shape_enu_m: Points from the load to the drone per sample, S arrays (points, 3).
        free_length_time_s: Sample times of the free length, where it changes (F,).
        free_length_m: Unstretched length that is not on a winch (F,).
    """

    time_s: Array
    tension_n: Array
    shape_time_s: Array
    shape_enu_m: Sequence[Array] = ()
    free_length_time_s: Array = field(default_factory=lambda: np.zeros(0))
    free_length_m: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class RotorTrack:
    """Rotor speeds (T, rotors) of one drone over time (T,)."""

    time_s: Array
    speed_rad_s: Array


@dataclass(frozen=True, eq=False)
class BatteryTrack:
    """A drone's battery over time, all (T,).

    Attributes:
        voltage_v: At the battery, under load.
        current_a: What it gives.
        charge: Share of its capacity that is left.
    """

    time_s: Array
    voltage_v: Array
    current_a: Array
    charge: Array

    @property
    def power_w(self) -> Array:
        """What it gives (T,)."""
        return self.voltage_v * self.current_a


@dataclass(frozen=True, eq=False)
class SignalTrack:
    """A recorded signal as it was recorded, see `musls_sim.recording.signals.SIGNALS`.

    Attributes:
        time_s: Sample times (T,).
        columns: Arrays by name, (T, ...); lists of T arrays where the shape changes.
    """

    time_s: Array
    columns: Mapping[str, Any]

    @property
    def parts(self) -> tuple[Any, ...]:
        """The columns in their order."""
        return tuple(self.columns.values())


@dataclass(frozen=True)
class Stage:
    """A stage of the mission: start <= time < end; names are unique within a recording."""

    name: str
    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """Length in time [s]."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Event:
    """Something that happened suddenly.

    Attributes:
        kind: E.g. "cable_broken".
        what: To what it happened, or details.
    """

    time_s: float
    kind: str
    what: str


@dataclass(frozen=True, eq=False)
class Body:
    """All that was recorded of the load or of a drone ("load", "drone_1", ...).

    Velocities and rotor speeds are given at the times of the poses; simulated ones were recorded
    at these, others are interpolated. They and the set-points, each held until the next, are None
    if they were not recorded.
    """

    name: str
    pose: PoseTrack
    twist: TwistTrack | None = None
    rotors: RotorTrack | None = None
    setpoint: PoseTrack | None = None

    @property
    def time_s(self) -> Array:
        """Sample times (T,)."""
        return self.pose.time_s

    @property
    def position_enu_m(self) -> Array:
        """Centre of mass, world (T, 3)."""
        return self.pose.position_enu_m

    @property
    def orientation_wxyz(self) -> Array:
        """Unit quaternions, body to world (T, 4)."""
        return self.pose.orientation_wxyz

    @property
    def velocity_enu_m_s(self) -> Array:
        """Velocity of the centre of mass, world (T, 3).

        Raises:
            ConfigError: It was not recorded.
        """
        return self._have(self.twist, "velocity").at(self.time_s).velocity_enu_m_s

    @property
    def omega_body_rad_s(self) -> Array:
        """Angular velocity, body frame (T, 3).

        Raises:
            ConfigError: It was not recorded.
        """
        return self._have(self.twist, "velocity").at(self.time_s).omega_body_rad_s

    @property
    def rotor_speed_rad_s(self) -> Array:
        """Rotor speeds (T, rotors).

        Raises:
            ConfigError: They were not recorded, or the body has no rotors.
        """
        rotors = self._have(self.rotors, "rotor speed")
        if np.array_equal(rotors.time_s, self.time_s):
            return rotors.speed_rad_s
        columns = [
            np.interp(self.time_s, rotors.time_s, c, np.nan, np.nan) for c in rotors.speed_rad_s.T
        ]
        return np.stack(columns, axis=-1)

    def _have(self, part: _Part | None, what: str) -> _Part:
        if part is None:
            raise ConfigError(f"no {what} of {self.name} in this recording")
        return part


# ---------- Stages of a mission


def stages_from_changes(
    time_s: Sequence[float], names: Sequence[str], start_s: float, end_s: float
) -> tuple[Stage, ...]:
    """Cut a flight into stages where the stage's name was announced, at times (K,) not decreasing.

    An announcement that repeats the current name changes nothing. A name that comes again later
    gets a number ("engage", "hold", "engage_2"), so that names stay unique. Without any
    announcement the whole flight is one stage "flight".
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


# ---------- A flight


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
        signals: What has no field of its own here, by body or cable and by name.
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
    signals: Mapping[str, Mapping[str, SignalTrack]] = field(default_factory=dict)

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
        """All that was recorded of "load", "drone_1", ...

        Raises:
            ConfigError: There is no such body.
        """
        pose = _entry(self.bodies, name, "body")
        parts = (self.twists.get(name), self.rotors.get(name), self.setpoints.get(name))
        return Body(name, pose, *parts)

    def drone(self, number: int) -> Body:
        """All that was recorded of a drone, numbered from 1.

        Raises:
            ConfigError: There is no such drone.
        """
        return self.body(f"drone_{number}")

    def anchor(self, number: int) -> Body:
        """All that was recorded of an anchor, numbered from 1; its force and moment: `wrench`.

        Raises:
            ConfigError: There is no such anchor.
        """
        return self.body(f"{ANCHOR}{number}")

    def wrench(self, number: int) -> WrenchTrack:
        """Force and moment that hold, move or push an anchor, numbered from 1.

        Raises:
            ConfigError: There is no such anchor, or it was not recorded.
        """
        return _entry(self.wrenches, f"{ANCHOR}{number}", "wrench of")

    def cable(self, number: int) -> CableTrack:
        """All that was recorded of a cable, numbered from 1.

        Raises:
            ConfigError: There is no such cable, or nothing was recorded of it.
        """
        return _entry(self.cables, f"cable_{number}", "cable")

    def setpoint_acceleration(self, number: int) -> AccelerationTrack:
        """Accelerations that a controller asked of a drone's autopilot, drones numbered from 1.

        Raises:
            ConfigError: There is no such drone, or nobody asked it for accelerations.
        """
        return _entry(self.setpoint_accelerations, f"drone_{number}", "acceleration set-points of")

    def battery(self, number: int) -> BatteryTrack:
        """Recorded battery of a drone, drones numbered from 1.

        Raises:
            ConfigError: There is no such drone, or it has no battery.
        """
        return _entry(self.batteries, f"drone_{number}", "battery of")

    def signal(self, owner: str, name: str) -> SignalTrack:
        """A recorded signal without a field of its own, of "load", "drone_1", "cable_1", ...

        Raises:
            ConfigError: It was not recorded.
        """
        return _entry(self.signals.get(owner, {}), name, f"signal of {owner}:")

    def stage_mask(self, stage: Stage, time_s: Array) -> np.ndarray:
        """Which samples (T,) fall into a stage; the last stage includes its end."""
        if self.stages and stage == self.stages[-1]:
            return (time_s >= stage.start_s) & (time_s <= stage.end_s)
        return (time_s >= stage.start_s) & (time_s < stage.end_s)

    def __repr__(self) -> str:
        """One line."""
        facts = ", ".join(f"{value} {name}".strip() for name, value in self._facts())
        return f"<Recording {self.source}: {facts}>" if self.source else f"<Recording: {facts}>"

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


# ---------- Poses between the samples of a track

DEFAULT_GAP_LIMIT_S = 0.5
"""Longer gaps are not bridged: the seed paper's flights were logged every 0.1 to 0.4 s."""

_ROWS_BRIDGED = 1.6
"""Share of the usual distance of rows that is no gap yet; a lost row is one."""


def bridged_s(times_s: Iterable[np.ndarray]) -> float:
    """Gap up to which rows of several logs are bridged: of sparse ones more than usual."""
    usual = [float(np.median(np.diff(t))) for t in times_s if len(t) > 1]
    return max(DEFAULT_GAP_LIMIT_S, _ROWS_BRIDGED * max(usual, default=0.0))


def resample(track: PoseTrack, time_s: np.ndarray, gap_limit_s: float) -> PoseTrack:
    """Interpolate positions linearly and turn between orientations at constant rate.

    Poses at the times (K,); NaN before the first sample, after the last and inside gaps longer than
    the limit. The track's times must increase strictly.
    """
    t = track.time_s
    if len(t) > 1 and np.any(np.diff(t) <= 0.0):
        raise ValueError("times must increase strictly")
    below = np.clip(np.searchsorted(t, time_s, side="right") - 1, 0, len(t) - 1)
    above = np.minimum(below + 1, len(t) - 1)
    span = t[above] - t[below]
    share = (time_s - t[below]) / np.where(span > 0.0, span, 1.0)
    p = track.position_enu_m
    position = p[below] + share[:, None] * (p[above] - p[below])
    orientation = slerp(track.orientation_wxyz[below], track.orientation_wxyz[above], share)
    outside = (time_s < t[0]) | (time_s > t[-1])
    nothing = outside | ((span > gap_limit_s) & (share != 0.0))
    position[nothing] = np.nan
    orientation[nothing] = np.nan
    return PoseTrack(np.asarray(time_s, float), position, orientation)


def gaps(track: PoseTrack, start_s: float, end_s: float, gap_limit_s: float) -> int:
    """Number of gaps longer than a limit that reach into a span of time."""
    t = track.time_s
    long = np.diff(t) > gap_limit_s
    return int(np.count_nonzero(long & (t[1:] > start_s) & (t[:-1] < end_s)))


# ---------- Cables that were cut, broke or were let go

PARTS = frozenset({"cable_cut", "cable_broken", "release", "hook_opened"})
"""Kinds of events after which a cable may be in pieces."""

GAP = 1.3
"""A segment of such a cable that is longer than the others by this factor is not there."""


def parted_s(events: Iterable[Event]) -> float:
    """Time from which cables may be in pieces; infinite if nothing has happened to one."""
    return min((event.time_s for event in events if event.kind in PARTS), default=np.inf)


def pieces_of(points_enu_m: np.ndarray) -> list[np.ndarray]:
    """Lines of the pieces of a cable that may have parted, from its recorded shape (points, 3)."""
    if len(points_enu_m) < 3:
        return [points_enu_m]
    lengths = np.linalg.norm(np.diff(points_enu_m, axis=0), axis=1)
    gaps = np.flatnonzero(lengths > GAP * np.median(lengths)) + 1
    return [piece for piece in np.split(points_enu_m, gaps) if len(piece) > 1]
