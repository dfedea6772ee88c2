"""Drives anchors and winches: a step of the session that writes into the plant's inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from musls_description.errors import ConfigError
from musls_description.rotations import rotate
from musls_description.system import RigSystem
from musls_sim.plants.interface import PlantInputs, PlantState
from musls_sim.scenario.rig import (
    AnchorForce,
    AnchorPath,
    AnchorRecording,
    AnchorThrust,
    RigSpec,
)

if TYPE_CHECKING:
    from scipy.interpolate import PPoly


# ---------- The way of a body in a bag, for an anchor that moves as recorded


def bag_of(file: str) -> Path | None:
    """The bag's folder that a file name stands for: itself, or the one in a result of `fly`."""
    path = Path(file)
    return next((p for p in (path, path / "bag") if (p / "metadata.yaml").is_file()), None)


def read_path(bag: Path, body: str | None) -> tuple[Array, Array]:
    """Times from the first pose on (k,) [s], and positions (k, 3) [m, ENU].

    `body`: "load", "drone_1", "anchor_1": topic /BODY/pose, geometry_msgs/msg/PoseStamped.

    Raises:
        ConfigError: Not a bag, or no such poses in it.
    """
    from rosbags.highlevel import AnyReader, AnyReaderError
    from rosbags.rosbag2 import ReaderError
    from rosbags.typesys import Stores, get_typestore

    rows = []
    try:
        with AnyReader([bag], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
            poses = [c for c in reader.connections if c.msgtype == "geometry_msgs/msg/PoseStamped"]
            chosen = [c for c in poses if c.topic == f"/{body}/pose"]
            if not chosen:
                has = [c.topic[1:-5] for c in poses if c.topic.endswith("/pose")]
                raise ConfigError(
                    f"{bag}: body must be one of {', '.join(sorted(has)) or 'none'}, not {body!r}"
                )
            for connection, _, raw in reader.messages(connections=chosen):
                message: Any = reader.deserialize(raw, connection.msgtype)
                stamp, at = message.header.stamp, message.pose.position
                rows.append([stamp.sec, stamp.nanosec, at.x, at.y, at.z])
    except (AnyReaderError, ReaderError, OSError) as error:
        raise ConfigError(f"{bag}: {error}") from None
    table = np.array(rows, float).reshape(-1, 5)
    time: Array = (table[:, 0] - table[:1, 0]) + 1e-9 * (table[:, 1] - table[:1, 1])
    return time, table[:, 2:]


# ---------- Paths and inputs over time, evaluated for many control periods at once

ROUNDING_S = 1e-9

COLUMNS = ("time_s", "x_enu_m", "y_enu_m", "z_enu_m")
"""Of a recorded motion."""


class PathMotion:
    """Position, velocity and acceleration of a place along piecewise polynomials."""

    def __init__(self, pieces: PPoly, offset_m: Array) -> None:
        """Keep the polynomials.

        Args:
            pieces: Position over time, (3,) each.
            offset_m: Added to it, (3,).
        """
        self._derivatives = [pieces.derivative(order) for order in range(3)]
        self._knots, self._offset = pieces.x, offset_m

    def ends(self, time_s: Array) -> Array:
        """Position, velocity, acceleration at both ends of periods with k + 1 borders, (k, 2, 9).

        At a knot where the acceleration jumps, each end takes the side within the period. Before
        the first knot and after the last the place is at rest.
        """
        return np.stack([self._at(time_s[:-1], 1.0), self._at(time_s[1:], -1.0)], axis=1)

    def _at(self, time_s: Array, side: float) -> Array:
        knots = self._knots
        beside = time_s + side * ROUNDING_S
        piece = np.searchsorted(knots, beside, side="right") - 1
        moving = (beside > knots[0]) & (beside < knots[-1])
        piece = np.clip(piece, 0, len(knots) - 2)
        since = (np.clip(time_s, knots[0], knots[-1]) - knots[piece])[:, None]
        found = np.zeros((len(time_s), 3, 3))
        for order, part in enumerate(self._derivatives):
            for coefficient in part.c:  # Horner, in the piece of the side
                found[:, order] = found[:, order] * since + coefficient[piece]
        found[~moving, 1:] = 0.0
        found[:, 0] += self._offset
        return found.reshape(-1, 9)


def path_motion(drive: AnchorPath | AnchorRecording, place_m: Sequence[float]) -> PathMotion:
    """Make the motion of an anchor.

    `place_m`: where it is at the start, (3,).

    Raises:
        ConfigError: A file that cannot be read.
    """
    offset = np.array(place_m, float) if drive.relative else np.zeros(3)
    if isinstance(drive, AnchorRecording):
        bag = bag_of(drive.file)
        if bag is None:
            return PathMotion(_read_spline(drive.file), offset)
        return PathMotion(_spline(drive.file, *read_path(bag, drive.body)), offset)
    from scipy.interpolate import BPoly, CubicHermiteSpline, PPoly

    time, position = np.array(drive.time_s), np.array(drive.position_enu_m)
    if len(time) == 1:
        time, position = np.array([time[0], time[0] + 1.0]), np.repeat(position, 2, axis=0)
        return PathMotion(CubicHermiteSpline(time, position, 0.0 * position), offset)
    velocity = np.zeros_like(position)
    if drive.velocity_enu_m_s is not None:
        velocity = np.array(drive.velocity_enu_m_s)
    if drive.acceleration_enu_m_s2 is None:
        return PathMotion(CubicHermiteSpline(time, position, velocity), offset)
    knots = np.stack([position, velocity, np.array(drive.acceleration_enu_m_s2)], axis=1)
    return PathMotion(PPoly.from_bernstein_basis(BPoly.from_derivatives(time, knots)), offset)


def _read_spline(file: str) -> PPoly:
    try:
        with open(file, encoding="utf-8") as stream:
            names = [name.strip() for name in stream.readline().split(",")]
            rows = np.loadtxt(stream, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: {error}") from None
    missing = [name for name in COLUMNS if name not in names]
    if missing or rows.shape[1:] != (len(names),):
        raise ConfigError(f"{file}: needs the columns {', '.join(COLUMNS)}, has {', '.join(names)}")
    time, *position = (rows[:, names.index(name)] for name in COLUMNS)
    return _spline(file, time, np.column_stack(position))


def _spline(file: str, time: Array, position: Array) -> PPoly:
    finite = np.isfinite(time).all() and np.isfinite(position).all()
    if len(time) < 4 or (np.diff(time) <= 0.0).any() or not finite:
        raise ConfigError(f"{file}: needs at least 4 rows of finite numbers, time_s increasing")
    from scipy.interpolate import CubicSpline

    return CubicSpline(time, position)


class Signal:
    """Numbers over time, straight between knots, held before the first and after the last."""

    def __init__(self, time_s: Sequence[float], values: ArrayLike) -> None:
        """Prepare.

        Args:
            time_s: Ascending; a time that stands twice is a jump, (k,).
            values: (k,) or (k, columns).
        """
        self._time = np.array(time_s, float)
        self._value = np.array(values, float).reshape(len(self._time), -1)
        steps, means = np.diff(self._time)[:, None], (self._value[1:] + self._value[:-1]) / 2.0
        zero = np.zeros((1, self._value.shape[1]))
        self._area = np.concatenate([zero, np.cumsum(steps * means, axis=0)])

    def means(self, time_s: Array) -> Array:
        """Exact means over consecutive periods with k + 1 borders, (k, columns)."""
        means: Array = np.diff(self._integral(time_s), axis=0) / np.diff(time_s)[:, None]
        return means

    def ends(self, time_s: Array) -> Array:
        """Values at both ends of periods with k + 1 borders, (k, 2, columns).

        At a jump each end takes the side within its period.
        """
        begin = self._at(time_s[:-1], np.searchsorted(self._time, time_s[:-1] + ROUNDING_S) - 1)
        end = self._at(time_s[1:], np.searchsorted(self._time, time_s[1:] - ROUNDING_S) - 1)
        return np.stack([begin, end], axis=1)

    def _at(self, time_s: Array, k: NDArray[np.int64]) -> Array:
        """Values at times in the pieces behind knots `k`."""
        time, value, last = self._time, self._value, len(self._time) - 1
        low, high = np.clip(k, 0, last), np.clip(k + 1, 0, last)
        inside = (k >= 0) & (k < last) & (time[high] > time[low])
        span = np.where(inside, time[high] - time[low], np.inf)
        share = (time_s - time[low]) / span
        at: Array = value[low] + share[:, None] * (value[high] - value[low])
        return at

    def held(self, time_s: Array) -> Array:
        """Values of the last knot at or before each time, (k, columns)."""
        k = np.searchsorted(self._time, time_s + ROUNDING_S, side="right") - 1
        values: Array = self._value[np.maximum(k, 0)]
        return values

    def _integral(self, time_s: Array) -> Array:
        time, value = self._time, self._value
        last = len(time) - 1
        k = np.searchsorted(time, time_s, side="right") - 1
        low, high = np.clip(k, 0, last), np.clip(k + 1, 0, last)
        since = time_s - time[low]
        span = np.where((k >= 0) & (k < last), time[high] - time[low], np.inf)
        here = value[low] + (since / span)[:, None] * (value[high] - value[low])
        area: Array = self._area[low] + since[:, None] * (value[low] + here) / 2.0
        return area


Array = NDArray[np.float64]

BLOCK = 1000
"""Periods that are evaluated at once."""

_Rows = Callable[[Array], Array]
"""Rows of an input over consecutive periods, from their borders."""


class RigDriver:
    """Writes what a scenario's `rig` asks for the coming period."""

    def __init__(
        self,
        rig: RigSpec,
        system: RigSystem,
        inputs: PlantInputs,
        state: PlantState,
        period_s: float,
    ) -> None:
        """Prepare all paths and inputs.

        `state`: of the plant; a thrust acts along an anchor's z axis.

        Raises:
            ConfigError: A recorded motion cannot be read.
        """
        self._inputs, self._period_s = inputs, period_s
        self._orientation = state.anchor_motion[:, 6:10]
        self._targets: list[tuple[NDArray[Any], _Rows]] = []
        self._winch_of: dict[int, int] = {}
        self._thrusts: dict[int, Array] = {}
        moved: dict[int, PathMotion] = {}
        for i, anchor in enumerate(system.anchors):
            drive = rig.anchors.get(f"anchor_{i + 1}")
            wrench = inputs.anchor_wrench_enu[i]
            if isinstance(drive, AnchorForce):
                force = Signal(drive.time_s, drive.force_enu_n)
                self._targets.append((wrench[3:], force.means))
            elif isinstance(drive, AnchorThrust):
                moments = drive.moment_body_n_m or ((0.0, 0.0, 0.0),) * len(drive.time_s)
                values = np.column_stack([moments, np.array(drive.thrust_n)])
                self._thrusts[i] = np.zeros(4)
                self._targets.append((self._thrusts[i], Signal(drive.time_s, values).means))
            elif drive is not None:
                moved[i] = path_motion(drive, anchor.position_enu_m)
        for first, motions in _neighbours(moved):
            target = inputs.anchor_motion[first : first + len(motions), :, :9]
            self._targets.append((target, _ends(motions)))
        for i in range(len(system.winches)):
            winch = rig.winches.get(f"winch_{i + 1}")
            if winch is not None:
                signal = Signal(winch.time_s, winch.value)
                self._winch_of[len(self._targets)] = i
                self._targets.append((inputs.winch[i], _pairs(signal)))
            if winch is not None and winch.brake is not None:
                closed = Signal(winch.time_s, winch.brake)
                self._winch_of[len(self._targets)] = i
                self._targets.append((inputs.winch_brake[i : i + 1], _begins(closed)))
        self._block: list[Array] = []

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._targets

    def step(self, tick: int) -> None:
        """Write the inputs of the period that begins; ticks follow each other."""
        row = tick % BLOCK
        if row == 0 or not self._block:
            ticks = np.arange(tick - row, tick - row + BLOCK + 1, dtype=np.float64)
            self._block = [rows(ticks * self._period_s) for _, rows in self._targets]
        taken = self._inputs.winch_taken
        for k, ((target, _), rows) in enumerate(zip(self._targets, self._block, strict=True)):
            if k not in self._winch_of or not taken[self._winch_of[k]]:
                target[:] = rows[row]
        for i, values in self._thrusts.items():
            pair: Array = np.zeros((2, 3))
            pair[0], pair[1, 2] = values[:3], values[3]
            turns: Array = np.repeat(self._orientation[i : i + 1], 2, axis=0)
            self._inputs.anchor_wrench_enu[i] = rotate(turns, pair).ravel()


def _neighbours(moved: Mapping[int, PathMotion]) -> list[tuple[int, list[PathMotion]]]:
    """Motions of anchors with consecutive numbers, which are written at once."""
    groups: list[tuple[int, list[PathMotion]]] = []
    for i, motion in moved.items():
        if groups and i == groups[-1][0] + len(groups[-1][1]):
            groups[-1][1].append(motion)
        else:
            groups.append((i, [motion]))
    return groups


def _ends(motions: Sequence[PathMotion]) -> _Rows:
    """Motion of several anchors at begin and end of each period, (k, anchors, 2, 9)."""
    return lambda borders: np.stack([motion.ends(borders) for motion in motions], axis=1)


def _pairs(signal: Signal) -> _Rows:
    """Values at begin and end of each period."""
    return lambda borders: signal.ends(borders)[:, :, 0]


def _begins(signal: Signal) -> _Rows:
    """Values at the begin of each period."""
    return lambda borders: signal.held(borders[:-1])
