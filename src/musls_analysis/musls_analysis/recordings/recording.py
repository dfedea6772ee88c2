"""Everything recorded of one flight, from any source: memory, bag, flight log or table.

All parts carry their own sample times, because bodies, set-points and cables come at different
rates. World frame ENU, quaternions [w, x, y, z], cable and drone numbers from 1. Times
are relative to the start of the recording's clock (simulated time for simulations)::

    run.time_s, run.body("load").position_enu_m, run.cable(1).tension_n, run.events
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from musls_control.mission.spec import GROUND_PHASES, PHASES
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import slerp
from musls_description.tables import Rows, ShownResult, Table, arrays_of

if TYPE_CHECKING:  # it imports compiled code
    from musls_description.system.obstacles import AnyObstacle

_Part = TypeVar("_Part")

LOAD = "load"
"""Name of the load among the bodies; without a load, of what a rig shows instead."""

ANCHOR = "anchor_"
"""Begin of the names of anchors."""


def in_order(names: Iterable[str]) -> list[str]:
    """Bodies or cables by their numbers, the load first."""
    return sorted(names, key=lambda name: (name != LOAD, len(name), name))


# ---------- Tracks


def interpolated(at_s: Array, time_s: Array, values: Array) -> Array:
    """Columns of values (T, k) between their times (T,), (K, k); NaN before the first and after."""
    columns = [np.interp(at_s, time_s, column, np.nan, np.nan) for column in values.T]
    return np.stack(columns, axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class PoseTrack(ShownResult):
    """Poses over time.

    Attributes:
        time_s: Times of the samples, not decreasing, (T,).
        position_enu_m: (T, 3).
        orientation_wxyz: Unit quaternions body to world (T, 4); all NaN of a body of which only
            the place was measured.
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

    @property
    def has_attitude(self) -> bool:
        """Whether attitudes are known; all or none of the poses of a track have one."""
        return bool(np.isfinite(self.orientation_wxyz).all(axis=1).any())

    def or_level(self) -> PoseTrack:
        """The track, with a level attitude if it has none, where a place alone does not do."""
        if self.has_attitude:
            return self
        upright = np.tile([1.0, 0.0, 0.0, 0.0], (len(self.time_s), 1))
        return replace(self, orientation_wxyz=upright)

    def held_at(self, time_s: Array) -> PoseTrack:
        """Each pose held until the next one, at the times (K,); NaN before the first one."""
        index = np.searchsorted(self.time_s, time_s, side="right") - 1
        poses = np.hstack([self.position_enu_m, self.orientation_wxyz])
        rows = np.vstack([poses, np.full(7, np.nan)])[index]  # -1: the last row
        return PoseTrack(time_s, rows[:, :3], rows[:, 3:])

    def at(self, time_s: Array) -> PoseTrack:
        """Interpolate linearly at times (K,); NaN before the first pose and after the last."""
        if np.array_equal(time_s, self.time_s):
            return self
        position = interpolated(time_s, self.time_s, self.position_enu_m)
        same_way = self.orientation_wxyz.copy()
        flips = np.sum(same_way[1:] * same_way[:-1], axis=1) < 0.0
        same_way[1:][np.cumsum(flips) % 2 == 1] *= -1.0
        orientation = interpolated(time_s, self.time_s, same_way)
        orientation /= np.linalg.norm(orientation, axis=1, keepdims=True)
        return PoseTrack(time_s, position, orientation)

    def part(self, which: np.ndarray | slice) -> PoseTrack:
        """Some samples."""
        position = self.position_enu_m[which]
        orientation = self.orientation_wxyz[which]
        return PoseTrack(self.time_s[which], position, orientation)

    def changes(self) -> PoseTrack:
        """The first pose and those that differ from the one before, e.g. of a held set-point."""
        values = np.column_stack([self.position_enu_m, self.orientation_wxyz])
        keep = np.ones(len(values), bool)
        keep[1:] = np.any(values[1:] != values[:-1], axis=1)
        return self.part(keep)


@dataclass(frozen=True, eq=False, repr=False)
class TwistTrack(ShownResult):
    """Velocities over time.

    Attributes:
        time_s: Times of the samples, not decreasing, (T,).
        velocity_enu_m_s: Velocity of the centre of mass, world (T, 3).
        omega_body_rad_s: Angular velocity, body frame (T, 3).
    """

    time_s: Array
    velocity_enu_m_s: Array
    omega_body_rad_s: Array

    def at(self, time_s: Array) -> TwistTrack:
        """Interpolate linearly at times (K,); NaN before the first sample and after the last."""
        if np.array_equal(time_s, self.time_s):
            return self
        velocity = interpolated(time_s, self.time_s, self.velocity_enu_m_s)
        omega = interpolated(time_s, self.time_s, self.omega_body_rad_s)
        return TwistTrack(time_s, velocity, omega)


@dataclass(frozen=True, eq=False, repr=False)
class CableTrack(ShownResult):
    """Tension, shape and free length of one cable over time.

    Attributes:
        time_s: Sample times of the tension (T,).
        tension_n: Tension at the load end and at the drone end (T, 2).
        shape_time_s: Sample times of the shape (S,).
        shape_enu_m: Points from the load to the drone per sample, S arrays (points, 3).
        free_length_time_s: Sample times of the free length, where it changes (F,).
        free_length_m: Unstretched length that is not on a winch (F,).
        peak_time_s: Ends of the intervals of `peak_n` (P,).
        peak_n: Largest tension of all steps of a simulation since the sample before (P,); empty
            where nobody knew.
    """

    time_s: Array
    tension_n: Array
    shape_time_s: Array
    shape_enu_m: Sequence[Array] = ()
    free_length_time_s: Array = field(default_factory=lambda: np.zeros(0))
    free_length_m: Array = field(default_factory=lambda: np.zeros(0))
    peak_time_s: Array = field(default_factory=lambda: np.zeros(0))
    peak_n: Array = field(default_factory=lambda: np.zeros(0))

    def largest(self) -> tuple[Array, Array]:
        """Times and largest tensions of both ends: of all steps if known, else of the samples."""
        if len(self.peak_time_s) > 1:
            middle_s = self.peak_time_s - np.diff(self.peak_time_s, prepend=np.nan) / 2.0
            return middle_s[1:], self.peak_n[1:]
        return self.time_s, self.tension_n.max(axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class SignalTrack(ShownResult):
    """A recorded signal, see `musls_sim.recording.signals.SIGNALS`; its columns are attributes.

    Attributes:
        time_s: Sample times (T,).
        columns: Arrays by name, (T, ...); lists of T arrays where the shape changes.
    """

    time_s: Array
    columns: Mapping[str, Any]

    def shown(self) -> Iterable[str | Table]:
        """Shapes and ranges of the columns."""
        yield "SignalTrack"
        yield arrays_of({"time_s": self.time_s, **self.columns})

    def __getattr__(self, name: str) -> Any:
        """A column."""
        columns = vars(self).get("columns", {})
        if name not in columns:
            raise AttributeError(f"no column {name} of this signal; it has {', '.join(columns)}")
        return columns[name]

    @property
    def parts(self) -> tuple[Any, ...]:
        """The columns in their order."""
        return tuple(self.columns.values())


@dataclass(frozen=True)
class RecordedStage:
    """A stage of the mission: start <= time < end; names are unique within a recording.

    Attributes:
        end_reason: Why it ended, "lift ended: after its planned 7.2 s"; empty where it was not
            recorded.
    """

    name: str
    start_s: float
    end_s: float
    end_reason: str = ""

    @property
    def duration_s(self) -> float:
        """Length in time [s]."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class RecordedEvent:
    """Something that happened suddenly.

    Attributes:
        kind: E.g. "cable_broken".
        what: Object of the event, or details.
    """

    time_s: float
    kind: str
    what: str


@dataclass(frozen=True, eq=False, repr=False)
class Body(ShownResult):
    """All that was recorded of the load or of a drone ("load", "drone_1", ...).

    Velocities and rotor speeds are given at the times of the poses; simulated ones were recorded
    at these, others are interpolated. A track that was not recorded is None, and asking for its
    arrays a ConfigError. A set-point is held until the next one.
    """

    name: str
    pose: PoseTrack
    twist: TwistTrack | None = None
    rotors: SignalTrack | None = None
    setpoint: PoseTrack | None = None

    def shown(self) -> Iterable[str | Table]:
        """Shapes and ranges of what was recorded."""
        names = ["time_s", "position_enu_m", "orientation_wxyz"]
        names += ["velocity_enu_m_s", "omega_body_rad_s"] if self.twist else []
        names += ["rotor_speed_rad_s"] if self.rotors else []
        yield f"Body {self.name}"
        yield arrays_of({name: getattr(self, name) for name in names})

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
        """Velocity of the centre of mass, world (T, 3)."""
        return self._have(self.twist, "velocity").at(self.time_s).velocity_enu_m_s

    @property
    def omega_body_rad_s(self) -> Array:
        """Angular velocity, body frame (T, 3)."""
        return self._have(self.twist, "velocity").at(self.time_s).omega_body_rad_s

    @property
    def rotor_speed_rad_s(self) -> Array:
        """Rotor speeds (T, rotors)."""
        rotors = self._have(self.rotors, "rotor speed")
        return interpolated(self.time_s, rotors.time_s, rotors.speed_rad_s)

    def _have(self, part: _Part | None, what: str) -> _Part:
        if part is None:
            raise ConfigError(f"no {what} of {self.name} in this recording")
        return part


# ---------- Stages of a mission


SAME_END_S = 0.5
"""Largest difference in time between the end of a stage and the line that says why."""


def stages_from_changes(
    time_s: Sequence[float],
    names: Sequence[str],
    start_s: float,
    end_s: float,
    reasons: Sequence[tuple[float, str]] = (),
) -> tuple[RecordedStage, ...]:
    """Cut a flight into stages where the stage's name was announced, at times (K,) not decreasing.

    An announcement that repeats the current name changes nothing. A name that comes again later
    gets a number ("engage", "hold", "engage_2"), so that names stay unique. Without any
    announcement the whole flight is one stage "flight".

    `reasons`: times and lines that say why a stage ended, each within `SAME_END_S` of its end.
    """
    if not names:
        return (RecordedStage("flight", start_s, end_s),)
    starts: list[float] = []
    stage_names: list[str] = []
    for moment, name in zip(time_s, names, strict=True):
        if stage_names and name == stage_names[-1]:
            continue
        if starts and moment == starts[-1]:  # replaced before it lasted
            starts.pop()
            stage_names.pop()
        starts.append(float(moment))
        stage_names.append(name)
    ends = [*starts[1:], max(end_s, starts[-1])]
    counts = [stage_names[: k + 1].count(name) for k, name in enumerate(stage_names)]
    unique = [f"{name}_{n}" if n > 1 else name for name, n in zip(stage_names, counts, strict=True)]
    own = [_reason_of(name, end, reasons) for name, end in zip(stage_names, ends, strict=True)]
    return tuple(map(RecordedStage, unique, starts, ends, own))


def _reason_of(name: str, end_s: float, reasons: Sequence[tuple[float, str]]) -> str:
    """The line that says why a stage ended at a time; empty if there is none."""
    near = [what for time_s, what in reasons if abs(time_s - end_s) < SAME_END_S]
    return next((what for what in near if what.split(" ")[0] == name), "")


def without_number(stage: str) -> str:
    """Name of a stage without the number that makes it unique: "shm" of "shm_2"."""
    head, _, tail = stage.rpartition("_")
    return head if head and tail.isdigit() else stage


def main_stages(stages: Sequence[RecordedStage]) -> list[RecordedStage]:
    """Stages that a mission is about; else those in the air, or all of them."""
    named = [s for s in stages if without_number(s.name) not in PHASES]
    in_air = [s for s in stages if without_number(s.name) not in GROUND_PHASES]
    return named or in_air or list(stages)


# ---------- A flight


@dataclass(frozen=True, repr=False, eq=False)
class Recording:
    """One flight; what was not recorded of it is a ConfigError that says what was.

    Attributes:
        bodies: Measured poses by body: "load", "drone_1", ...
        setpoints: Held set-points by body; a body may have none.
        cables: Cables by name: "cable_1", ...
        rotors: `speed_rad_s` (T, rotors) by drone.
        stages: Stages in time order, without gaps.
        source: Origin of the recording, for people.
        warnings: Samples dropped or repaired while reading, one line each.
        twists: Velocities by body; a body may have none.
        events: Sudden events in time order.
        batteries: `voltage_v` under load, `current_a` and `power_w` that it gives, `charge` (share
            of its capacity that is left), (T,) each, by drone; only of those that have one.
        wrenches: `force_enu_n` and `moment_enu_n_m` (T, 3) that hold, move or push each anchor.
        sampled_setpoints: Whether set-points were logged with the poses, row by row, so that a
            change is seen up to one row late; else they carry the time of the change.
        setpoint_accelerations: `acceleration_enu_m_s2` (T, 3) that a controller asks of the
            autopilots, gravity not in it, by drone; only of those that are flown so.
        signals: Signals that have no field of their own here, by body or cable and by name.
        references: Continuous reference of the load, not held as its set-points are; empty if
            not known.
        obstacles: Obstacles that stand in the world.
        notation: Names of the bodies in the file, and its format, units and axes, for
            people; empty for recordings of this project.
    """

    bodies: Mapping[str, PoseTrack]
    setpoints: Mapping[str, PoseTrack] = field(default_factory=dict)
    cables: Mapping[str, CableTrack] = field(default_factory=dict)
    rotors: Mapping[str, SignalTrack] = field(default_factory=dict)
    stages: Sequence[RecordedStage] = ()
    source: str = ""
    warnings: Sequence[str] = ()
    twists: Mapping[str, TwistTrack] = field(default_factory=dict)
    events: Sequence[RecordedEvent] = ()
    batteries: Mapping[str, SignalTrack] = field(default_factory=dict)
    wrenches: Mapping[str, SignalTrack] = field(default_factory=dict)
    sampled_setpoints: bool = False
    setpoint_accelerations: Mapping[str, SignalTrack] = field(default_factory=dict)
    signals: Mapping[str, Mapping[str, SignalTrack]] = field(default_factory=dict)
    references: Mapping[str, PoseTrack] = field(default_factory=dict)
    obstacles: Sequence[AnyObstacle] = ()
    notation: str = ""

    def __post_init__(self) -> None:
        """Check that there is something to look at."""
        if not self.bodies or any(len(track.time_s) == 0 for track in self.bodies.values()):
            raise ConfigError(f"{self.source or 'recording'}: a body without poses")
        object.__setattr__(self, "stages", Rows(self.stages))  # frozen; shown as tables
        object.__setattr__(self, "events", Rows(self.events))

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

    def between(self, start_s: float, end_s: float) -> Recording:
        """The flight from one time to another; set-points that were held at its start hold there.

        Raises:
            ConfigError: Nothing was recorded then.
        """
        if not start_s < end_s or end_s <= self.start_s or start_s >= self.end_s:
            raise ConfigError(
                f"{self.source}: nothing from {start_s:g} to {end_s:g} s; it lasts from "
                f"{self.start_s:.2f} to {self.end_s:.2f} s"
            )
        setpoints = {
            name: PoseTrack(
                np.maximum(track.time_s, start_s), track.position_enu_m, track.orientation_wxyz
            ).part(slice(max(np.searchsorted(track.time_s, start_s, side="right") - 1, 0), None))
            for name, track in self.setpoints.items()
        }
        parts: dict[str, Any] = {
            name: _between(
                setpoints if name == "setpoints" else getattr(self, name), start_s, end_s
            )
            for name in (
                "bodies",
                "setpoints",
                "cables",
                "rotors",
                "twists",
                "batteries",
                "wrenches",
                "setpoint_accelerations",
                "signals",
                "references",
            )
        }
        stages = [
            replace(stage, start_s=max(stage.start_s, start_s), end_s=min(stage.end_s, end_s))
            for stage in self.stages
            if stage.start_s < end_s and stage.end_s > start_s
        ]
        events = [event for event in self.events if start_s <= event.time_s <= end_s]
        return replace(self, stages=stages, events=events, **parts)

    @property
    def drones(self) -> list[str]:
        """Names of the drones, in order."""
        return [n for n in self.bodies if n != LOAD and not n.startswith(ANCHOR)]

    def body(self, name: str) -> Body:
        """All that was recorded of "load", "drone_1", ..."""
        pose = _entry(self.bodies, name, "body")
        parts = (self.twists.get(name), self.rotors.get(name), self.setpoints.get(name))
        return Body(name, pose, *parts)

    def drone(self, number: int) -> Body:
        """All that was recorded of a drone, numbered from 1."""
        return self.body(f"drone_{number}")

    def anchor(self, number: int) -> Body:
        """All that was recorded of an anchor, numbered from 1; its force and moment: `wrench`."""
        return self.body(f"{ANCHOR}{number}")

    def wrench(self, number: int) -> SignalTrack:
        """Force and moment that hold, move or push an anchor, numbered from 1."""
        return _entry(self.wrenches, f"{ANCHOR}{number}", "wrench of")

    def cable(self, number: int) -> CableTrack:
        """All that was recorded of a cable, numbered from 1."""
        return _entry(self.cables, f"cable_{number}", "cable")

    def setpoint_acceleration(self, number: int) -> SignalTrack:
        """Accelerations that a controller asked of a drone's autopilot, drones numbered from 1."""
        return _entry(self.setpoint_accelerations, f"drone_{number}", "acceleration set-points of")

    def battery(self, number: int) -> SignalTrack:
        """Recorded battery of a drone, drones numbered from 1."""
        return _entry(self.batteries, f"drone_{number}", "battery of")

    def signal(self, owner: str, name: str) -> SignalTrack:
        """A recorded signal without a field of its own, of "load", "drone_1", "cable_1", ..."""
        return _entry(self.signals.get(owner, {}), name, f"signal of {owner}:")

    def stage_mask(self, stage: RecordedStage, time_s: Array) -> np.ndarray:
        """Mask (T,) of the samples in a stage; the last stage includes its end."""
        if self.stages and stage == self.stages[-1]:
            return (time_s >= stage.start_s) & (time_s <= stage.end_s)
        return (time_s >= stage.start_s) & (time_s < stage.end_s)

    def __repr__(self) -> str:
        """One line."""
        counts = {
            "drone": len(self.drones),
            "cable": len(self.cables),
            "stage": len(self.stages),
            "event": len(self.events),
            "warning": len(self.warnings),
        }
        facts = [f"{n} {name}{'s' * (n > 1)}" for name, n in counts.items() if n]
        span = f"{self.end_s - self.start_s:.2f} s"
        return f"<{f'Recording {self.source}'.strip()}: {', '.join([span, *facts])}>"


def _between(thing: Any, start_s: float, end_s: float) -> Any:
    """A track, or tracks by name, from one time to another; empty ones are left out."""
    if isinstance(thing, Mapping):
        parts = {name: _between(part, start_s, end_s) for name, part in thing.items()}
        return {
            name: part
            for name, part in parts.items()
            if isinstance(part, Mapping) or len(part.time_s)
        }
    fields = {}
    rows = np.zeros(0, bool)
    for name, values in vars(thing).items():
        if name.endswith("time_s"):  # the values that follow were recorded then
            rows = (values >= start_s) & (values <= end_s)
        fields[name] = _some(values, rows)
    return type(thing)(**fields)


def _some(values: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, of a list of arrays, or of each column."""
    if isinstance(values, Mapping):
        return {name: _some(column, rows) for name, column in values.items()}
    if isinstance(values, np.ndarray):
        return values[rows]
    return [value for value, inside in zip(values, rows, strict=True) if inside]


def _entry(parts: Mapping[str, _Part], name: str, what: str) -> _Part:
    try:
        return parts[name]
    except KeyError:
        choices = ", ".join(parts) or "none"
        raise ConfigError(f"no {what} {name} in this recording; it has {choices}") from None


# ---------- Poses between the samples of a track

DEFAULT_GAP_LIMIT_S = 0.5
"""Longer gaps are not bridged: the seed paper's flights were logged every 0.1 to 0.4 s."""

_ROWS_BRIDGED = 1.6
"""Share of the usual distance of rows that is no gap yet; a lost row is one."""


def bridged_s(times_s: Iterable[np.ndarray]) -> float:
    """Longest gap between rows of logs that is interpolated [s], for their times (T,) [s].

    0.5 s, or 1.6 times the usual distance of rows in the log that has the fewest.
    """
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


def parted_s(events: Iterable[RecordedEvent]) -> float:
    """Time from which cables may be in pieces; infinite if nothing has happened to one."""
    return min((event.time_s for event in events if event.kind in PARTS), default=np.inf)


def pieces_of(points_enu_m: np.ndarray) -> list[np.ndarray]:
    """Lines of the pieces of a cable that may have parted, from its recorded shape (points, 3)."""
    if len(points_enu_m) < 3:
        return [points_enu_m]
    lengths = np.linalg.norm(np.diff(points_enu_m, axis=0), axis=1)
    gaps = np.flatnonzero(lengths > GAP * np.median(lengths)) + 1
    return [piece for piece in np.split(points_enu_m, gaps) if len(piece) > 1]
