"""Rows of numbers in contiguous arrays that grow."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.system import RigSystem
from musls_sim.plants.interface import Plant
from musls_sim.recording import signals
from musls_sim.recording.bag_file import BagFile, RecordingError
from musls_sim.recording.messages import serialize, string
from musls_sim.recording.rows import (
    Chunk,
    Rendered,
    RowTemplate,
    merge,
    render_each,
    render_rows,
    row_template,
)

_FIRST_ROWS = 64


Scalar = TypeVar("Scalar", bound=np.generic)


class RowStore:
    """Copies rows of numbers as they come.

    Attributes:
        rows: Number of rows.
    """

    def __init__(self, columns: Mapping[str, tuple[int, ...]]) -> None:
        """Allocate room for the first rows.

        Args:
            columns: Name and shape of the arrays of a row, in the order of `append`.
        """
        self.rows = 0
        self._capacity = _FIRST_ROWS
        self._stamps = np.zeros(_FIRST_ROWS, np.int64)
        self._columns = {name: np.zeros((_FIRST_ROWS, *shape)) for name, shape in columns.items()}
        self._arrays = tuple(self._columns.values())

    def append(self, stamp_ns: int, *values: NDArray[np.float64]) -> None:
        """Copy a row.

        Args:
            stamp_ns: Time of the row.
            values: One per column.
        """
        row = self.rows
        if row == self._capacity:
            self._grow()
        self._stamps[row] = stamp_ns
        for column, value in zip(self._arrays, values, strict=True):
            column[row] = value
        self.rows = row + 1

    def stamps_ns(self, first: int = 0) -> NDArray[np.int64]:
        """Times of the rows from `first` on, a view (rows - first,)."""
        return self._stamps[first : self.rows]

    def columns(self, first: int = 0) -> dict[str, NDArray[np.float64]]:
        """Columns of the rows from `first` on, views (rows - first, ...)."""
        return {name: column[first : self.rows] for name, column in self._columns.items()}

    def forget(self) -> None:
        """Drop all rows; the memory is used again."""
        self.rows = 0

    @property
    def nbytes(self) -> int:
        """Memory that the rows take."""
        row_bytes: int = 8 + sum(array[0].nbytes for array in self._arrays)
        return self.rows * row_bytes

    def _grow(self) -> None:
        self._capacity *= 2
        self._stamps = _longer(self._stamps, self._capacity)
        self._columns = {k: _longer(column, self._capacity) for k, column in self._columns.items()}
        self._arrays = tuple(self._columns.values())


def _longer(array: NDArray[Scalar], rows: int) -> NDArray[Scalar]:
    longer: NDArray[Scalar] = np.empty((rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


# ---------- Records a flight in memory, as arrays.

Array = NDArray[np.float64]


class RecordedText(NamedTuple):
    """Something in words.

    Attributes:
        stamp_ns: When [ns].
        text: The words.
    """

    stamp_ns: int
    text: str


class RecordedEvent(NamedTuple):
    """Something that happened suddenly.

    Attributes:
        stamp_ns: When [ns].
        kind: What sort of thing, e.g. "cable_broken".
        what: To what it happened, or details.
    """

    stamp_ns: int
    kind: str
    what: str


class MemoryRecorder:
    """Copies what is recorded into arrays; called as `BagRecorder` is, writes nothing.

    `musls_analysis.recordings.memory.recording_from` makes a `Recording` of it.

    Attributes:
        system: What is recorded.
        every: Control steps per record: record when `step_index % every == 0`.
        state: Rows with the columns `topics.state_columns`.
        shape: Rows with the columns `topics.shape_columns`.
        setpoint: Rows with the columns `topics.setpoint_columns`, as handed in.
        acceleration: Rows with the columns `topics.acceleration_columns`.
        battery: Rows with the columns `topics.battery_columns`.
        stages: Beginnings of stages.
        events: What happened.
        whole: Whether everything recorded is still there.
    """

    whole = True

    def __init__(
        self,
        system: RigSystem,
        *,
        step_period_s: float,
        rate_hz: float = 50.0,
        shape_rate_hz: float = 10.0,
    ) -> None:
        """Prepare.

        Args:
            system: What will be recorded.
            step_period_s: Time between two control steps.
            rate_hz: Records per second, a whole number of steps apart.
            shape_rate_hz: Cable shapes per second, a whole number of records apart.

        Raises:
            ConfigError: A rate does not fit.
        """
        self.system = system
        self.every = _whole_ratio(1.0 / step_period_s, rate_hz, "rate_hz", "the control rate")
        self._shape_every = _whole_ratio(rate_hz, shape_rate_hz, "shape_rate_hz", "rate_hz")
        self._until_shape = 0
        self.state = RowStore(signals.state_columns(system))
        self.shape = RowStore(signals.shape_columns(system))
        self.setpoint = RowStore(signals.setpoint_columns(system))
        self.acceleration = RowStore(signals.acceleration_columns(system))
        self.battery = RowStore(signals.battery_columns(system))
        self._batteries = signals.battery_rows(system)
        self._capacity_ah = np.array([_capacity_ah(system, i) for i in self._batteries])
        self.stages: list[RecordedText] = []
        self.events: list[RecordedEvent] = []
        self._stage: str | None = None
        self._position = np.zeros((1 + system.n_drones, 3))
        self._orientation = np.zeros((1 + system.n_drones, 4))

    def due(self, step_index: int) -> bool:
        """Whether a control step is to be recorded."""
        return step_index % self.every == 0

    def record(self, time_s: float, plant: Plant) -> None:
        """Record the state of the plant, and the shape of the cables when that is due.

        Args:
            time_s: Simulated time.
            plant: The plant at that time.
        """
        stamp_ns = round(time_s * 1e9)
        self.state.append(stamp_ns, *signals.state_values(plant.state))
        if self._until_shape == 0:
            self.shape.append(stamp_ns, *signals.shape_values(plant, self.system))
            self._until_shape = self._shape_every
        self._until_shape -= 1

    def record_batteries(self, time_s: float, state: Array) -> None:
        """Record the batteries; nothing happens where no drone has one.

        Args:
            time_s: Simulated time.
            state: `Power.state`, (n, 7).
        """
        if self._batteries:
            values = state[self._batteries, :4].copy()
            values[:, 1] *= -1.0
            values[:, 3] = values[:, 2]
            values[:, 2] *= self._capacity_ah
            self.battery.append(round(time_s * 1e9), values)

    def record_setpoint(
        self,
        time_s: float,
        load_position: Array,
        load_quaternion: Array,
        drone_positions: Array,
        drone_quaternions: Array,
    ) -> None:
        """Record the set-points; only changes become part of a bag or a `Recording`.

        Args:
            time_s: Simulated time from which they hold.
            load_position: World, (3,) [m].
            load_quaternion: [w, x, y, z], (4,).
            drone_positions: World, (n, 3) [m].
            drone_quaternions: [w, x, y, z], (n, 4).
        """
        self._position[0], self._position[1:] = load_position, drone_positions
        self._orientation[0], self._orientation[1:] = load_quaternion, drone_quaternions
        self.setpoint.append(round(time_s * 1e9), self._position, self._orientation)

    def record_acceleration(self, time_s: float, acceleration_enu_m_s2: Array) -> None:
        """Record accelerations that a controller asks of the drones.

        Args:
            time_s: Simulated time from which they hold.
            acceleration_enu_m_s2: (n, 3); NaN where nothing is asked of a drone.
        """
        self.acceleration.append(round(time_s * 1e9), acceleration_enu_m_s2)

    def record_stage(self, time_s: float, name: str) -> None:
        """Record the mission's stage; nothing happens if it is the same as before.

        Args:
            time_s: Simulated time at which it begins.
            name: Name of the stage.
        """
        if name != self._stage:
            self._stage = name
            self.stages.append(RecordedText(round(time_s * 1e9), name))

    def record_event(self, time_s: float, kind: str, what: str = "") -> None:
        """Record something that happens suddenly.

        Args:
            time_s: Simulated time.
            kind: What sort of thing, without a colon, e.g. "cable_broken".
            what: To what it happens, or details.

        Raises:
            ValueError: The kind is empty or holds a colon, which ends it in a bag.
        """
        if not kind or ":" in kind:
            raise ValueError(f"kind of event is {kind!r}, must be a word without a colon")
        self.events.append(RecordedEvent(round(time_s * 1e9), kind, what))

    @property
    def _stores(self) -> tuple[RowStore, ...]:
        return self.state, self.shape, self.setpoint, self.acceleration, self.battery

    @property
    def nbytes(self) -> int:
        """Memory that the rows take."""
        return sum(store.nbytes for store in self._stores)

    def forget(self) -> None:
        """Drop everything recorded so far, not the rhythm of recording."""
        for store in self._stores:
            store.forget()
        self.stages.clear()
        self.events.clear()

    def close(self) -> None:
        """Do nothing: there is nothing to finish."""

    def __enter__(self) -> MemoryRecorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _capacity_ah(system: RigSystem, index: int) -> float:
    propulsion = system.drones[index].propulsion
    assert propulsion is not None and propulsion.battery is not None  # see `battery_rows`
    return propulsion.battery.capacity_ah


def _whole_ratio(fast_hz: float, slow_hz: float, name: str, of: str) -> int:
    ratio = fast_hz / slow_hz if slow_hz > 0.0 else 0.0
    if ratio < 0.5 or abs(ratio - round(ratio)) > 1e-6 * ratio:
        raise ConfigError(
            f"{name} is {slow_hz:g} Hz, must be {of} ({fast_hz:g} Hz) divided by a whole number"
        )
    return round(ratio)


# ---------- Records a flight of the embedded simulator as a rosbag2 bag.

KEEP_BYTES = 256 * 2**20
"""Rows kept in memory, about two hours of three drones."""

WRITE_EVERY_S = 1.0
"""Longest real time between two chunks while something is recorded."""


class BagRecorder(MemoryRecorder):
    """Writes the topics of `musls_sim.recording.signals`; a context manager.

    What is written stays in memory as well, so that it need not be read back, until it would take
    more than `keep_bytes`.

    Attributes:
        folder: Folder of the bag.
        topics: Message type of each topic.
        whole: Whether everything recorded is still in memory.
    """

    def __init__(
        self,
        folder: Path,
        system: RigSystem,
        *,
        step_period_s: float,
        rate_hz: float = 50.0,
        shape_rate_hz: float = 10.0,
        buffer_s: float = 2.0,
        compress: bool = False,
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        """Create the bag.

        Args:
            folder: Folder of the bag, must not exist.
            system: What will be recorded.
            step_period_s: Time between two control steps.
            rate_hz: Records per second, a whole number of steps apart.
            shape_rate_hz: Cable shapes per second, a whole number of records apart.
            buffer_s: Flight time of a chunk: what a killed process loses.
            compress: zstd: less than half the size for twice the time.
            keep_bytes: Memory for what is written; 0 keeps nothing.

        Raises:
            RecordingError: The folder exists or cannot be made.
            ConfigError: A rate does not fit.
        """
        super().__init__(
            system, step_period_s=step_period_s, rate_hz=rate_hz, shape_rate_hz=shape_rate_hz
        )
        if not buffer_s > 0.0:
            raise ConfigError(f"buffer_s is {buffer_s}, must be positive")
        self.topics = signals.recorded_topics(system)
        channel_of = {topic: k for k, topic in enumerate(self.topics, start=1)}
        self._state_rows, self._shape_rows, self._setpoint_rows = (
            _Unwritten(store, row_template(*kind, channel_of))
            for store, kind in zip(
                (self.state, self.shape, self.setpoint), signals.row_kinds(system), strict=True
            )
        )
        batteries = signals.battery_kind(system)
        self._battery_rows = batteries and _Unwritten(
            self.battery, row_template(*batteries, channel_of)
        )
        accelerations = signals.acceleration_kind(system)
        self._acceleration_rows = accelerations and _Unwritten(
            self.acceleration, row_template(*accelerations, channel_of)
        )
        self._stage_channel = channel_of[signals.STAGE]
        self._event_channel = channel_of[signals.EVENTS]
        self._stages_written = self._events_written = 0
        # NaN differs from everything: the first set-point is a change.
        self._last_setpoint = np.full((1, 1 + system.n_drones, 7), np.nan)
        self._buffer_ns = round(buffer_s * 1e9)
        self._write_at_ns, self._write_at_wall_s = 0, 0.0
        self._keep_bytes, self.whole = keep_bytes, True
        self.folder = Path(folder)
        # Last, so that nothing is left behind if something above fails.
        self._bag: BagFile | None = BagFile(self.folder, self.topics, compress)
        self.messages = 0
        """Number of messages in the file so far; those still in memory do not count."""

    def record(self, time_s: float, plant: Plant) -> None:
        """Record the state of the plant, and the shape of the cables when that is due.

        Args:
            time_s: Simulated time.
            plant: The plant at that time.

        Raises:
            RecordingError: The disk does not take the data, or the recorder is closed.
        """
        self._write_if_due(time_s)
        super().record(time_s, plant)

    def record_setpoint(
        self,
        time_s: float,
        load_position: Array,
        load_quaternion: Array,
        drone_positions: Array,
        drone_quaternions: Array,
    ) -> None:
        """Record the set-points; of a body whose set-point has not changed nothing is written.

        Args:
            time_s: Simulated time from which they hold.
            load_position: World, (3,) [m].
            load_quaternion: [w, x, y, z], (4,).
            drone_positions: World, (n, 3) [m].
            drone_quaternions: [w, x, y, z], (n, 4).

        Raises:
            RecordingError: The disk does not take the data, or the recorder is closed.
        """
        self._write_if_due(time_s)
        super().record_setpoint(
            time_s, load_position, load_quaternion, drone_positions, drone_quaternions
        )

    def record_acceleration(self, time_s: float, acceleration_enu_m_s2: Array) -> None:
        """Record accelerations that a controller asks of the drones.

        Args:
            time_s: Simulated time from which they hold.
            acceleration_enu_m_s2: (n, 3); of a drone with NaN nothing is written.

        Raises:
            RecordingError: The disk does not take the data, or the recorder is closed.
        """
        self._write_if_due(time_s)
        super().record_acceleration(time_s, acceleration_enu_m_s2)

    def record_stage(self, time_s: float, name: str) -> None:
        """Record the mission's stage; nothing is written if it is the same as before.

        Args:
            time_s: Simulated time at which it begins.
            name: Name of the stage.

        Raises:
            RecordingError: The disk does not take the data, or the recorder is closed.
        """
        self._write_if_due(time_s)
        super().record_stage(time_s, name)

    def record_event(self, time_s: float, kind: str, what: str = "") -> None:
        """Record something that happens suddenly.

        Args:
            time_s: Simulated time.
            kind: What sort of thing, without a colon, e.g. "cable_broken".
            what: To what it happens, or details.

        Raises:
            ValueError: The kind is empty or holds a colon, which ends it in a bag.
            RecordingError: The disk does not take the data, or the recorder is closed.
        """
        self._write_if_due(time_s)
        super().record_event(time_s, kind, what)

    def flush(self) -> None:
        """Write what is not in the file yet.

        Raises:
            RecordingError: The disk does not take it (what the bag had before stays readable), or
                the recorder is closed.
        """
        if self._bag is None:
            raise RecordingError(f"bag {self.folder} is closed")
        chunk = self._next_chunk()
        if chunk is None:
            return
        try:
            self._bag.write(chunk)
        except RecordingError:
            self._bag = None  # closed with what it had before
            raise
        self.messages = self._bag.messages
        self._count_as_written()
        if self.nbytes > self._keep_bytes:
            self.whole = False
            self.forget()

    def forget(self) -> None:
        """Drop everything recorded so far, written or not."""
        super().forget()
        self._count_as_written()

    def close(self) -> None:
        """Write the rest and finish the bag; further calls do nothing.

        Raises:
            RecordingError: The disk does not take it.
        """
        if self._bag is None:
            return
        self.flush()
        bag, self._bag = self._bag, None
        bag.close()

    def __enter__(self) -> BagRecorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the bag, also after an error in the flight, which then is the one that counts."""
        try:
            self.close()
        except RecordingError as failure:
            if error is None:
                raise
            warnings.warn(str(failure), stacklevel=2)

    def _write_if_due(self, time_s: float) -> None:
        time_ns, now_s = round(time_s * 1e9), perf_counter()
        if time_ns >= self._write_at_ns or now_s >= self._write_at_wall_s or self._bag is None:
            self.flush()
            self._write_at_ns = time_ns + self._buffer_ns
            self._write_at_wall_s = now_s + WRITE_EVERY_S

    def _next_chunk(self) -> Chunk | None:
        """What is not in the file yet; at equal times set-points precede states."""
        stages, events = self.stages[self._stages_written :], self.events[self._events_written :]
        return merge([
            render_each(
                self._stage_channel, [(t, serialize(string(name))) for t, name in stages]
            ),
            render_each(
                self._event_channel,
                [(t, serialize(string(signals.event_text(*event)))) for t, *event in events],
            ),
            self._render_setpoints(),
            self._state_rows.render(signals.published),
            self._shape_rows.render(),
            *([self._battery_rows.render()] if self._battery_rows else []),
            *([self._render_accelerations()] if self._acceleration_rows else []),
        ])  # fmt: skip

    def _render_setpoints(self) -> Rendered:
        """Of each body the set-points that differ from the one before."""
        history = np.concatenate([self._last_setpoint, self._unwritten_setpoints()])
        return self._setpoint_rows.render(wanted=(history[1:] != history[:-1]).any(axis=2))

    def _render_accelerations(self) -> Rendered:
        """Of each drone those that are asked of it."""
        assert self._acceleration_rows is not None  # whoever calls has looked
        (asked,) = self._acceleration_rows.columns().values()
        return self._acceleration_rows.render(wanted=np.isfinite(asked.sum(axis=2)))

    def _unwritten_setpoints(self) -> Array:
        """Positions and quaternions, (rows, 1 + n, 7)."""
        return np.concatenate(list(self._setpoint_rows.columns().values()), axis=2)

    def _count_as_written(self) -> None:
        """Not before the file has it: after Ctrl-C the next chunk begins where this one did."""
        if len(setpoints := self._unwritten_setpoints()):
            self._last_setpoint = setpoints[-1:].copy()
        parts = [self._state_rows, self._shape_rows, self._setpoint_rows]
        parts += [rows for rows in (self._battery_rows, self._acceleration_rows) if rows]
        for part in parts:
            part.first = part.store.rows
        self._stages_written, self._events_written = len(self.stages), len(self.events)


class _Unwritten:
    """Rows of a store that are not in the file yet.

    Attributes:
        store: Where they are.
        first: The first of them.
    """

    def __init__(self, store: RowStore, template: RowTemplate) -> None:
        self.store, self.first, self._template = store, 0, template

    def columns(self) -> dict[str, Array]:
        """Their columns, (rows, ...) each."""
        return self.store.columns(self.first)

    def render(
        self,
        derive: Callable[[signals.Row], signals.Row] = dict,
        wanted: NDArray[np.bool_] | None = None,
    ) -> Rendered:
        """Make their bytes; `derive` turns columns into those of the messages."""
        stamps_ns = self.store.stamps_ns(self.first)
        return render_rows(self._template, stamps_ns, derive(self.columns()), wanted)
