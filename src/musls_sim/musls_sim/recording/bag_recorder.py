"""Records a flight of the embedded simulator as a rosbag2 bag.

While flying only numbers are copied; every `buffer_s` of flight, and at least once a second of real
time, they become messages all at once (see `row_template` and `row_renderer`) and go into the file
as one chunk, in the order of time. So a process that is killed leaves a file that is readable up
to there. Stamps (headers, log and publish times) are simulated time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.system import RigSystem
from musls_sim.plants.interface import Plant
from musls_sim.recording import topics
from musls_sim.recording.bag_file import BagFile
from musls_sim.recording.chunk import Chunk, merge
from musls_sim.recording.errors import RecordingError
from musls_sim.recording.memory import MemoryRecorder
from musls_sim.recording.messages import serialize, string
from musls_sim.recording.row_renderer import Rendered, render_each, render_rows
from musls_sim.recording.row_store import RowStore
from musls_sim.recording.row_template import RowTemplate, row_template

Array = NDArray[np.float64]

KEEP_BYTES = 256 * 2**20
"""Rows kept in memory, about two hours of three drones."""

WRITE_EVERY_S = 1.0
"""Longest real time between two chunks while something is recorded."""


class BagRecorder(MemoryRecorder):
    """Writes the topics of `musls_sim.recording.topics`; a context manager.

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
        self.topics = topics.recorded_topics(system)
        channel_of = {topic: k for k, topic in enumerate(self.topics, start=1)}
        self._state_rows, self._shape_rows, self._setpoint_rows = (
            _Unwritten(store, row_template(*kind, channel_of))
            for store, kind in zip(
                (self.state, self.shape, self.setpoint), topics.row_kinds(system), strict=True
            )
        )
        batteries = topics.battery_kind(system)
        self._battery_rows = batteries and _Unwritten(
            self.battery, row_template(*batteries, channel_of)
        )
        accelerations = topics.acceleration_kind(system)
        self._acceleration_rows = accelerations and _Unwritten(
            self.acceleration, row_template(*accelerations, channel_of)
        )
        self._stage_channel = channel_of[topics.STAGE]
        self._event_channel = channel_of[topics.EVENTS]
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
                [(t, serialize(string(topics.event_text(*event)))) for t, *event in events],
            ),
            self._render_setpoints(),
            self._state_rows.render(topics.published),
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
        derive: Callable[[topics.Row], topics.Row] = dict,
        wanted: NDArray[np.bool_] | None = None,
    ) -> Rendered:
        """Make their bytes; `derive` turns columns into those of the messages."""
        stamps_ns = self.store.stamps_ns(self.first)
        return render_rows(self._template, stamps_ns, derive(self.columns()), wanted)
