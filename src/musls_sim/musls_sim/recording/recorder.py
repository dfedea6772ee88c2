"""Recorders of a flight: in memory, and as a rosbag2 bag.

While flying only numbers are copied. For a bag, every `buffer_s` of flight, and every second of it
where that is slow, they become messages all at once and go into the file as one chunk, in the order
of time. So a process that is killed leaves a file that is readable up to there.
Stamps (headers, log and publish times) are simulated time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.mission.phase_end import PHASE
from musls_control.reference import Reference
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_roll_pitch_yaw
from musls_description.system.slung_system import RigSystem
from musls_sim.recording.bag_file import (
    BagFile,
    RecordingError,
    Rendered,
    RowTemplate,
    render_each,
)
from musls_sim.recording.messages import serialize, string
from musls_sim.recording.signals import (
    EVENTS,
    NOTHING,
    ROWS,
    STAGE,
    Asked,
    Rate,
    Row,
    event_text,
    recorded_topics,
)
from musls_sim.session.loop import Loop, Observer

WRITE_EVERY_S = 1.0
"""Longest real time between two chunks while something is recorded."""

_FIRST_ROWS = 64

Counts = dict[Rate | str, int]
"""Numbers of rows by their rate, and of texts by their topic."""


class RowStore:
    """Copies rows of numbers into contiguous arrays that grow.

    A row counts when it is whole: whatever line an interrupt breaks off, the rows that count are
    those of before, or all of them.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str]) -> None:
        """`shapes`: of the columns of a row by name, in the order of `append`."""
        self.rows = 0
        columns = {
            name: np.zeros((_FIRST_ROWS, *shape), dtypes[name]) for name, shape in shapes.items()
        }
        self._arrays = (
            np.zeros(_FIRST_ROWS, np.int64),
            columns,
        )  # one name, so that all grow at once

    @property
    def last_ns(self) -> int:
        """Time of the last row; before any time without rows."""
        return int(self._arrays[0][self.rows - 1]) if self.rows else -(2**63)

    def append(self, stamp_ns: int, *values: Array) -> None:
        """Copy a row, one value per column."""
        row = self.rows
        stamps, columns = self._with_room(row + 1)
        stamps[row] = stamp_ns
        for column, value in zip(columns.values(), values, strict=True):
            column[row] = value
        self.rows = row + 1

    def extend(self, stamps_ns: Sequence[int], *values: Array) -> None:
        """Copy rows, the values of each column one after another."""
        begin, end = self.rows, self.rows + len(stamps_ns)
        stamps, columns = self._with_room(end)
        stamps[begin:end] = stamps_ns
        for column, rows in zip(columns.values(), values, strict=True):
            column[begin:end] = rows
        self.rows = end

    def stamps_ns(self, first: int = 0) -> NDArray[np.int64]:
        """Times of the rows from `first` on, a view (rows - first,)."""
        return self._arrays[0][first : self.rows]

    def columns(self, first: int = 0) -> dict[str, Array]:
        """Columns of the rows from `first` on, views (rows - first, ...)."""
        return {name: column[first : self.rows] for name, column in self._arrays[1].items()}

    def _with_room(self, rows: int) -> tuple[NDArray[np.int64], dict[str, Array]]:
        """Stamps and columns with room for so many rows."""
        stamps, columns = self._arrays
        if rows > len(stamps):
            room = max(rows, 2 * len(stamps))
            larger = {name: _grown(column, room) for name, column in columns.items()}
            self._arrays = _grown(stamps, room), larger
        return self._arrays


def _grown(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """The array, with room for so many rows."""
    larger = np.empty((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


class MemoryRecorder(Observer):
    """Copies the signals of a flight into arrays.

    `musls_analysis.recordings.bag.recording_from` makes a `Recording` of it. What it is told again
    after an interrupt it has once.

    Attributes:
        every: Control steps per record: record when `step_index % every == 0`.
        layouts: Layouts of the signals, by the rate at which they are recorded.
        rows: Rows of their numbers, see `Row.shapes`.
        texts: Stages and events by their topics, times [ns] with them.
    """

    held = True

    def __init__(
        self,
        system: RigSystem,
        *,
        step_period_s: float,
        rate_hz: float = 50.0,
        shape_rate_hz: float | None = 10.0,
        asked: Asked = NOTHING,
    ) -> None:
        """`rate_hz`: records per second, a whole number of steps apart.

        `shape_rate_hz`: cable shapes per second, a whole number of records apart; None for none.
        """
        self.system = system
        self.every = round(1.0 / (step_period_s * rate_hz))
        self._shape_every = 0 if shape_rate_hz is None else round(rate_hz / shape_rate_hz)
        self._until_shape = 0 if self._shape_every else -1
        self.layouts = {rate: Row(system, rate, asked) for rate in Rate}
        self.rows = {rate: RowStore(row.shapes, row.dtypes) for rate, row in self.layouts.items()}
        self.texts: dict[str, list[tuple[int, str]]] = {STAGE: [], EVENTS: []}
        self._references: list[tuple[float, Reference, float]] = []
        self._asked: list[tuple[float, Reference, float]] = []

    def observe(self, time_s: float, loop: Loop) -> None:
        """Record the session's state, and the cables' shapes at their rate."""
        self._append(Rate.STATE, time_s, *self.layouts[Rate.STATE].values(loop))
        if self._until_shape == 0:
            self._append(Rate.SHAPE, time_s, *self.layouts[Rate.SHAPE].values(loop))
            self._until_shape = self._shape_every
        self._until_shape -= 1
        self._refer([time_s])

    def start(self, loop: Loop) -> None:
        """Take rows if nothing is recorded but what they have, and a plant's memory."""
        own = type(self).observe is not MemoryRecorder.observe
        shapes = self._shape_every and loop.plant.compiled_step is None
        whole = self.layouts[Rate.STATE].signals <= ROWS
        self.by_rows = loop.compiles and whole and not (own or shapes)
        has_shapes = self.by_rows and self.layouts[Rate.SHAPE].shapes
        self.recalls = self.every * self._shape_every if has_shapes else 0

    def recall(self, times_s: Sequence[float], plant: Any) -> None:
        """See `Observer`: record the cables' shapes."""
        self._extend(Rate.SHAPE, times_s, SimpleNamespace(plant=plant))

    def record(self, times_s: Sequence[float], seen: Any) -> None:
        """See `Observer`; without cable shapes, which come before."""
        self._extend(Rate.STATE, times_s, seen)
        self._refer(times_s)
        self._write_if_due(times_s[-1])

    def _refer(self, times_s: Sequence[float]) -> None:
        """Note that the load's reference of these times is to be recorded, which is set before."""
        set_s = self._references
        for time_s in times_s:
            if self._asked and time_s <= self._asked[-1][0]:
                continue  # noted before an interrupt
            while len(set_s) > 1 and set_s[1][0] <= time_s:
                del set_s[0]
            if set_s:
                _, reference, begin_s = set_s[0]
                self._asked.append((time_s, reference, time_s - begin_s))

    def _extend(self, rate: Rate, times_s: Sequence[float], source: Any) -> None:
        values = self.layouts[rate].values(source, len(times_s))
        stamps_ns = [round(time_s * 1e9) for time_s in times_s]
        new = bisect_right(stamps_ns, self.rows[rate].last_ns)
        self.rows[rate].extend(stamps_ns[new:], *(rows[new:] for rows in values))

    def _append(self, rate: Rate, time_s: float, *values: Array) -> None:
        self._write_before(time_s)
        stamp_ns = round(time_s * 1e9)
        last_ns = self.rows[rate].last_ns
        again = stamp_ns < last_ns or (stamp_ns == last_ns and rate is not Rate.SETPOINT)
        if self.layouts[rate].shapes and not again:
            self.rows[rate].append(stamp_ns, *values)

    def _write_before(self, time_s: float) -> None:
        """Called before a signal of a time is recorded; rows come later than others, and write."""
        if not self.by_rows:
            self._write_if_due(time_s)

    def _write_if_due(self, time_s: float) -> None:
        """Memory alone has nothing to write."""

    def on_setpoint(self, time_s: float, position_enu_m: Array, orientation_wxyz: Array) -> None:
        """Record the set-points; only changes become part of a bag or a `Recording`."""
        self._append(Rate.SETPOINT, time_s, position_enu_m, orientation_wxyz)

    def on_acceleration(self, time_s: float, acceleration_enu_m_s2: Array) -> None:
        """Record accelerations that a controller asks of the drones, (n, 3); NaN is left out."""
        self._append(Rate.ACCELERATION, time_s, acceleration_enu_m_s2)

    def on_reference(self, time_s: float, reference: Reference, begin_s: float) -> None:
        """Record from now on the load's reference over time."""
        if self.layouts[Rate.REFERENCE].shapes:
            self._references.append((time_s, reference, begin_s))

    def evaluate_references(self) -> None:
        """Make rows of the load's reference, all at once: a single time costs far more."""
        store = self.rows[Rate.REFERENCE]
        requests = [entry for entry in self._asked if round(entry[0] * 1e9) > store.last_ns]
        for _, group in groupby(requests, key=lambda entry: id(entry[1])):
            times_s, (reference, *_), since_s = zip(*group, strict=True)
            since = np.array(since_s)
            place, tilt = (f(since)[:, None, 0] for f in (reference.samples, reference.tilts))
            turns = from_roll_pitch_yaw(np.concatenate([tilt, place[..., 3:]], axis=-1))
            stamps_ns = [round(time_s * 1e9) for time_s in times_s]
            store.extend(stamps_ns, place[..., :3], turns)
        self._asked = []

    def on_stage(self, time_s: float, name: str) -> None:
        """Record the mission's stage; nothing happens if it is the same as before."""
        self._write_before(time_s)
        stages = self.texts[STAGE]
        if not stages or name != stages[-1][1]:
            stages.append((round(time_s * 1e9), name))

    def on_phase_end(self, time_s: float, what: str) -> None:
        """Record why a phase ended, among the events."""
        self.on_event(time_s, PHASE, what)

    def on_event(self, time_s: float, kind: str, what: str = "") -> None:
        """Record something that happens suddenly.

        Raises:
            ValueError: The kind is empty or holds a colon, which ends it in a bag.
        """
        if not kind or ":" in kind:
            raise ValueError(f"kind of event is {kind!r}, must be a word without a colon")
        self._write_before(time_s)
        self.texts[EVENTS].append((round(time_s * 1e9), event_text(kind, what)))


class BagRecorder(MemoryRecorder):
    """Writes the signals into a bag as well, which cannot go back in time: no snapshots.

    What is written stays in memory, too, so that it need not be read back. Recording raises
    `RecordingError` when the disk does not take the data, or the recorder is closed.

    Attributes:
        topics: Message type of each topic.
    """

    def __init__(
        self,
        folder: Path,
        system: RigSystem,
        *,
        step_period_s: float,
        rate_hz: float = 50.0,
        shape_rate_hz: float = 10.0,
        asked: Asked = NOTHING,
        buffer_s: float = 5.0,
    ) -> None:
        """Create the bag; the rates are those of `MemoryRecorder`.

        `buffer_s`: flight time of a chunk: what a killed process loses.
        """
        super().__init__(
            system,
            step_period_s=step_period_s,
            rate_hz=rate_hz,
            shape_rate_hz=shape_rate_hz,
            asked=asked,
        )
        self.topics = recorded_topics(system, asked)
        self._channel_of = {topic: k for k, topic in enumerate(self.topics, start=1)}
        self._templates = {
            rate: RowTemplate(row, self._channel_of)
            for rate, row in self.layouts.items()
            if row.shapes
        }
        self._buffer_ns = round(buffer_s * 1e9)
        self._write_at_ns = 0
        self._write_at_wall_s = 0.0
        self.folder = Path(folder)
        self._nothing: Counts = dict.fromkeys([*self._templates, *self.texts], 0)
        # Last, so that nothing is left behind if something above fails.
        self._bag = BagFile(self.folder, self.topics)

    @property
    def messages(self) -> int:
        """Number of messages in the file so far; those still in memory do not count."""
        return self._bag.messages

    def flush(self) -> None:
        """Write what is not in the file yet.

        Raises:
            RecordingError: The disk does not take it (what the bag had before stays readable), or
                the recorder is closed.
        """
        if self._bag.closed:
            raise RecordingError(f"bag {self.folder} is closed")
        self.evaluate_references()
        counts: Counts = {rate: self.rows[rate].rows for rate in self._templates}
        counts |= {topic: len(texts) for topic, texts in self.texts.items()}
        self._bag.write(self._parts(self._bag.mark or self._nothing), mark=counts)

    def close(self) -> None:
        """Write the rest and finish the bag; further calls do nothing, or go on after Ctrl-C."""
        if not self._bag.closed:
            self.flush()
            self._bag.close()

    def _write_if_due(self, time_s: float) -> None:
        time_ns = round(time_s * 1e9)
        now_s = perf_counter()
        if time_ns >= self._write_at_ns or now_s >= self._write_at_wall_s or self._bag.closed:
            self.flush()
            self._write_at_ns = time_ns + self._buffer_ns
            self._write_at_wall_s = now_s + WRITE_EVERY_S

    def _parts(self, in_file: Counts) -> list[Rendered]:
        """Messages after those in the file; at equal times set-points precede states."""
        texts = [
            (stamp_ns, self._channel_of[topic], serialize(string(text)))
            for topic, entries in self.texts.items()
            for stamp_ns, text in entries[in_file[topic] :]
        ]
        order = (Rate.SETPOINT, Rate.STATE, Rate.SHAPE, Rate.ACCELERATION, Rate.REFERENCE)
        rows = (self._rendered(rate, in_file[rate]) for rate in order if rate in self._templates)
        return [render_each(texts), *rows]

    def _rendered(self, rate: Rate, first: int) -> Rendered:
        """The rows of a rate from one on."""
        row = self.layouts[rate]
        store = self.rows[rate]
        columns = row.written(store.columns(first))
        before = {k: v[:1] for k, v in store.columns(first - 1).items()} if first else row.nothing()
        mask = row.kept(columns, before)
        return self._templates[rate].render(store.stamps_ns(first), columns, mask)
