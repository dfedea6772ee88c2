"""Recorders of a flight: in memory, and as a rosbag2 bag.

While flying only numbers are copied. For a bag, every `buffer_s` of flight, and at least once a
second of real time, they become messages all at once (see `rows`) and go into the file as one
chunk, in the order of time. So a process that is killed leaves a file that is readable up to there.
Stamps (headers, log and publish times) are simulated time.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from musls_description.errors import ConfigError
from musls_description.system import RigSystem
from musls_sim.recording.bag_file import (
    BagFile,
    Chunk,
    RecordingError,
    Rendered,
    RowTemplate,
    merge,
    render_each,
)
from musls_sim.recording.messages import serialize, string
from musls_sim.recording.signals import (
    EVENTS,
    STAGE,
    Columns,
    Rate,
    Row,
    event_text,
    recorded_topics,
)
from musls_sim.session.loop import Loop, Observer

Array = NDArray[np.float64]

KEEP_BYTES = 256 * 2**20
"""Rows kept in memory, about two hours of three drones."""

WRITE_EVERY_S = 1.0
"""Longest real time between two chunks while something is recorded."""

_FIRST_ROWS = 64


class RowStore:
    """Copies rows of numbers into contiguous arrays that grow."""

    def __init__(
        self, shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str] | None = None
    ) -> None:
        """Allocate room for the first rows.

        Args:
            shapes: Of the columns of a row by name, in the order of `append`.
            dtypes: Of the columns; float64 if none are given.
        """
        self.rows = 0
        self._stamps = np.zeros(_FIRST_ROWS, np.int64)
        self._columns = {
            name: np.zeros((_FIRST_ROWS, *shape), dtypes[name] if dtypes else float)
            for name, shape in shapes.items()
        }
        self._arrays = tuple(self._columns.values())

    def append(self, stamp_ns: int, *values: Array) -> None:
        """Copy a row, one value per column."""
        row = self.rows
        if row == len(self._stamps):
            self._grow()
        self._stamps[row] = stamp_ns
        for column, value in zip(self._arrays, values, strict=True):
            column[row] = value
        self.rows = row + 1

    def stamps_ns(self, first: int = 0) -> NDArray[np.int64]:
        """Times of the rows from `first` on, a view (rows - first,)."""
        return self._stamps[first : self.rows]

    def columns(self, first: int = 0) -> dict[str, Array]:
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
        self._stamps = np.concatenate([self._stamps, np.zeros_like(self._stamps)])
        self._columns = {k: np.concatenate([c, np.empty_like(c)]) for k, c in self._columns.items()}
        self._arrays = tuple(self._columns.values())


class RecordedText(NamedTuple):
    """Something in words."""

    stamp_ns: int
    text: str


class RecordedEvent(NamedTuple):
    """Something that happened suddenly.

    Attributes:
        kind: What sort of thing, e.g. "cable_broken".
    """

    stamp_ns: int
    kind: str
    what: str


class MemoryRecorder(Observer):
    """Copies the signals of a flight into arrays; a context manager.

    `musls_analysis.recordings.bag.recording_from` makes a `Recording` of it.

    Attributes:
        every: Control steps per record: record when `step_index % every == 0`.
        layouts: Its signals, by the rate at which they are recorded.
        rows: Their numbers, see `Row.shapes`.
        whole: Whether everything recorded is still there.
    """

    def __init__(
        self,
        system: RigSystem,
        *,
        step_period_s: float,
        rate_hz: float = 50.0,
        shape_rate_hz: float = 10.0,
    ) -> None:
        """Prepare (raises ConfigError where a rate does not fit).

        `rate_hz`: records per second, a whole number of steps apart.
        `shape_rate_hz`: cable shapes per second, a whole number of records apart.
        """
        self.system, self.whole = system, True
        self.every = _whole_ratio(1.0 / step_period_s, rate_hz, "rate_hz", "the control rate")
        self._shape_every = _whole_ratio(rate_hz, shape_rate_hz, "shape_rate_hz", "rate_hz")
        self._until_shape = 0
        self.layouts = {rate: Row(system, rate) for rate in Rate}
        self.rows = {rate: RowStore(row.shapes, row.dtypes) for rate, row in self.layouts.items()}
        self.stages: list[RecordedText] = []
        self.events: list[RecordedEvent] = []
        self._stage: str | None = None
        self._position = np.zeros((1 + system.n_drones, 3))
        self._orientation = np.zeros((1 + system.n_drones, 4))

    def due(self, step_index: int) -> bool:
        """Whether a control step is to be recorded."""
        return step_index % self.every == 0

    def observe(self, time_s: float, loop: Loop) -> None:
        """Record what the session is like, and the shape of the cables when that is due."""
        self._append(Rate.STATE, time_s, *self.layouts[Rate.STATE].values(loop))
        if self._until_shape == 0:
            self._append(Rate.SHAPE, time_s, *self.layouts[Rate.SHAPE].values(loop))
            self._until_shape = self._shape_every
        self._until_shape -= 1

    def _append(self, rate: Rate, time_s: float, *values: Array) -> None:
        if self.layouts[rate].shapes:
            self.rows[rate].append(round(time_s * 1e9), *values)

    def on_setpoint(
        self,
        time_s: float,
        load_position_enu_m: Array,
        load_orientation_wxyz: Array,
        drone_position_enu_m: Array,
        drone_orientation_wxyz: Array,
    ) -> None:
        """Record the set-points; only changes become part of a bag or a `Recording`."""
        self._position[0], self._position[1:] = load_position_enu_m, drone_position_enu_m
        self._orientation[0], self._orientation[1:] = load_orientation_wxyz, drone_orientation_wxyz
        self._append(Rate.SETPOINT, time_s, self._position, self._orientation)

    def on_acceleration(self, time_s: float, acceleration_enu_m_s2: Array) -> None:
        """Record accelerations that a controller asks of the drones, (n, 3); NaN is left out."""
        self._append(Rate.ACCELERATION, time_s, acceleration_enu_m_s2)

    def on_stage(self, time_s: float, name: str) -> None:
        """Record the mission's stage; nothing happens if it is the same as before."""
        if name != self._stage:
            self._stage = name
            self.stages.append(RecordedText(round(time_s * 1e9), name))

    def on_event(self, time_s: float, kind: str, what: str = "") -> None:
        """Record something that happens suddenly.

        Raises:
            ValueError: The kind is empty or holds a colon, which ends it in a bag.
        """
        if not kind or ":" in kind:
            raise ValueError(f"kind of event is {kind!r}, must be a word without a colon")
        self.events.append(RecordedEvent(round(time_s * 1e9), kind, what))

    @property
    def nbytes(self) -> int:
        """Memory that the rows take."""
        return sum(store.nbytes for store in self.rows.values())

    def forget(self) -> None:
        """Drop everything recorded so far, not the rhythm of recording."""
        for store in self.rows.values():
            store.forget()
        self.stages.clear()
        self.events.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _whole_ratio(fast_hz: float, slow_hz: float, name: str, of: str) -> int:
    ratio = fast_hz / slow_hz if slow_hz > 0.0 else 0.0
    if ratio < 0.5 or abs(ratio - round(ratio)) > 1e-6 * ratio:
        raise ConfigError(
            f"{name} is {slow_hz:g} Hz, must be {of} ({fast_hz:g} Hz) divided by a whole number"
        )
    return round(ratio)


class BagRecorder(MemoryRecorder):
    """Writes the signals into a bag as well.

    What is written stays in memory, so that it need not be read back, until it would take more
    than `keep_bytes`. Recording raises `RecordingError` when the disk does not take the data, or
    the recorder is closed.

    Attributes:
        topics: Message type of each topic.
        messages: Number of messages in the file so far; those still in memory do not count.
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

        `rate_hz`: records per second, a whole number of steps apart.
        `shape_rate_hz`: cable shapes per second, a whole number of records apart.
        `buffer_s`: flight time of a chunk: what a killed process loses.
        `compress`: zstd: less than half the size for twice the time.
        `keep_bytes`: memory for what is written; 0 keeps nothing.

        Raises:
            RecordingError: The folder exists or cannot be made.
            ConfigError: A rate does not fit.
        """
        super().__init__(
            system, step_period_s=step_period_s, rate_hz=rate_hz, shape_rate_hz=shape_rate_hz
        )
        if not buffer_s > 0.0:
            raise ConfigError(f"buffer_s is {buffer_s}, must be positive")
        self.topics = recorded_topics(system)
        self._channel_of = {topic: k for k, topic in enumerate(self.topics, start=1)}
        self._unwritten = {
            rate: _Unwritten(row, self.rows[rate], RowTemplate(row, self._channel_of))
            for rate, row in self.layouts.items()
            if row.shapes
        }
        self._stages_written = self._events_written = 0
        self._buffer_ns = round(buffer_s * 1e9)
        self._write_at_ns, self._write_at_wall_s = 0, 0.0
        self._keep_bytes = keep_bytes
        self.folder, self.messages = Path(folder), 0
        # Last, so that nothing is left behind if something above fails.
        self._bag: BagFile | None = BagFile(self.folder, self.topics, compress)

    def _append(self, rate: Rate, time_s: float, *values: Array) -> None:
        self._write_if_due(time_s)
        super()._append(rate, time_s, *values)

    def on_stage(self, time_s: float, name: str) -> None:
        """Record the mission's stage; nothing is written if it is the same as before."""
        self._write_if_due(time_s)
        super().on_stage(time_s, name)

    def on_event(self, time_s: float, kind: str, what: str = "") -> None:
        """Record something that happens suddenly."""
        self._write_if_due(time_s)
        super().on_event(time_s, kind, what)

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
        stages = [(STAGE, t, name) for t, name in self.stages[self._stages_written :]]
        events = [
            (EVENTS, t, event_text(kind, what))
            for t, kind, what in self.events[self._events_written :]
        ]
        texts = (
            render_each(
                [(t, self._channel_of[topic], serialize(string(x))) for topic, t, x in part]
            )
            for part in (stages, events)
        )
        order = (Rate.SETPOINT, Rate.STATE, Rate.SHAPE, Rate.ACCELERATION)
        parts = (self._unwritten[rate].render() for rate in order if rate in self._unwritten)
        return merge([*texts, *parts])

    def _count_as_written(self) -> None:
        """Not before the file has it: after Ctrl-C the next chunk begins where this one did."""
        for part in self._unwritten.values():
            part.count_as_written()
        self._stages_written, self._events_written = len(self.stages), len(self.events)


class _Unwritten:
    """Rows of a store that are not in the file yet."""

    def __init__(self, row: Row, store: RowStore, template: RowTemplate) -> None:
        self._row, self._store, self._template = row, store, template
        self._first, self._before = 0, row.nothing()

    def _columns(self) -> Columns:
        return self._row.written(self._store.columns(self._first))

    def render(self) -> Rendered:
        """Make their bytes."""
        columns = self._columns()
        stamps_ns = self._store.stamps_ns(self._first)
        return self._template.render(stamps_ns, columns, self._row.kept(columns, self._before))

    def count_as_written(self) -> None:
        """All rows are in the file, or forgotten."""
        if self._store.rows > self._first:
            last = self._store.columns(self._store.rows - 1)
            self._before = {key: values.copy() for key, values in last.items()}
        self._first = self._store.rows
