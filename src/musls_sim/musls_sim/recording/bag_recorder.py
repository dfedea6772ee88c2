"""Records a flight of the embedded simulator as a rosbag2 bag.

While flying only numbers are copied; every `buffer_s` of flight they become messages all at once
(see `row_template` and `row_buffer`) and go into the file as one chunk, in the order of time.
Stamps (headers, log and publish times) are simulated time.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.system import SlungLoadSystem
from musls_sim.plants.interface import Plant
from musls_sim.recording import topics
from musls_sim.recording.bag_file import BagFile
from musls_sim.recording.chunk import merge
from musls_sim.recording.errors import RecordingError
from musls_sim.recording.messages import serialize, string
from musls_sim.recording.row_buffer import Rendered, RowBuffer
from musls_sim.recording.row_template import message_record, probe_row, row_template

Array = NDArray[np.float64]


class BagRecorder:
    """Writes the topics of `musls_sim.recording.topics`; a context manager.

    Attributes:
        folder: Folder of the bag.
        every: Control steps per record: record when `step_index % every == 0`.
        topics: Message type of each topic.
    """

    def __init__(
        self,
        folder: Path,
        system: SlungLoadSystem,
        *,
        step_period_s: float,
        rate_hz: float = 50.0,
        shape_rate_hz: float = 10.0,
        buffer_s: float = 10.0,
        compress: bool = False,
    ) -> None:
        """Create the bag.

        Args:
            folder: Folder of the bag, must not exist.
            system: What will be recorded.
            step_period_s: Time between two control steps.
            rate_hz: Records per second, a whole number of steps apart.
            shape_rate_hz: Cable shapes per second, a whole number of records apart.
            buffer_s: Flight time kept in memory before it is written.
            compress: zstd: less than half the size for twice the time.

        Raises:
            RecordingError: The folder exists or cannot be made.
            ConfigError: A rate does not fit.
        """
        self.every = _whole_ratio(1.0 / step_period_s, rate_hz, "rate_hz", "the control rate")
        self._shape_every = _whole_ratio(rate_hz, shape_rate_hz, "shape_rate_hz", "rate_hz")
        if not buffer_s > 0.0:
            raise ConfigError(f"buffer_s is {buffer_s}, must be positive")

        kinds = [
            (topics.state_messages(system), topics.state_columns(system)),
            (topics.shape_messages(system), topics.shape_columns(system)),
            (topics.setpoint_messages(system), topics.setpoint_columns(system)),
        ]
        probes = [pair for kind in kinds for pair in probe_row(*kind)[0]]
        probes.append((topics.STAGE, string("")))
        self.topics = {topic: message.__msgtype__ for topic, message in probes}
        channel_of = {topic: k for k, topic in enumerate(self.topics, start=1)}

        capacity = max(1, round(buffer_s * rate_hz))
        # Set-points may come at every control step.
        capacities = (capacity, -(-capacity // self._shape_every), capacity * self.every)
        self._state, self._shape, self._setpoint = (
            RowBuffer(row_template(build, columns, channel_of), columns, rows)
            for (build, columns), rows in zip(kinds, capacities, strict=True)
        )
        self._stages: list[tuple[int, bytes]] = []
        self._stage: str | None = None
        self._stage_channel = channel_of[topics.STAGE]
        self._stages_limit = capacity
        # NaN differs from everything: the first set-point is a change.
        self._last_setpoint = np.full((1, 1 + system.n_drones, 7), np.nan)
        self._cables = range(system.n_drones)
        self._until_shape = 0
        self._messages = 0
        self.folder = Path(folder)
        # Last, so that nothing is left behind if something above fails.
        self._bag: BagFile | None = BagFile(self.folder, self.topics, compress)

    @property
    def messages(self) -> int:
        """Number of messages in the file so far; those still in memory do not count."""
        return self._messages

    def due(self, step_index: int) -> bool:
        """Whether a control step is to be recorded."""
        return step_index % self.every == 0

    def record(self, time_s: float, plant: Plant) -> None:
        """Record the state of the plant, and the shape of the cables when that is due.

        Args:
            time_s: Simulated time.
            plant: The plant at that time.

        Raises:
            RecordingError: The disk does not take the data, or the recorder is closed.
        """
        buffer = self._state
        if buffer.rows == buffer.capacity or self._bag is None:
            self.flush()
        time_ns = round(time_s * 1e9)
        state = plant.state
        # The rates go into the world frame only when they are written, all at once.
        buffer.append(
            time_ns, state.position_enu_m, state.orientation_wxyz, state.velocity_enu_m_s,
            state.omega_body_rad_s, state.rotor_speed_rad_s, state.cable_force_n,
        )  # fmt: skip
        if self._until_shape == 0:
            self._shape.append(time_ns, *[plant.cable_nodes_enu_m(i) for i in self._cables])
            self._until_shape = self._shape_every
        self._until_shape -= 1

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
        buffer = self._setpoint
        if buffer.rows == buffer.capacity or self._bag is None:
            self.flush()
        row = buffer.rows
        position, orientation = buffer.columns.values()
        position[row, 0], position[row, 1:] = load_position, drone_positions
        orientation[row, 0], orientation[row, 1:] = load_quaternion, drone_quaternions
        buffer.stamps_ns[row] = round(time_s * 1e9)
        buffer.rows = row + 1

    def record_stage(self, time_s: float, name: str) -> None:
        """Record the mission's stage; nothing is written if it is the same as before.

        Args:
            time_s: Simulated time at which it begins.
            name: Name of the stage.

        Raises:
            RecordingError: The disk does not take the data, or the recorder is closed.
        """
        if len(self._stages) == self._stages_limit or self._bag is None:
            self.flush()
        if name != self._stage:
            self._stage = name
            time_ns = round(time_s * 1e9)
            data = message_record(self._stage_channel, time_ns, serialize(string(name)))
            self._stages.append((time_ns, data))

    def flush(self) -> None:
        """Write what is in memory.

        Raises:
            RecordingError: The disk does not take it (what the bag had before stays readable), or
                the recorder is closed.
        """
        if self._bag is None:
            raise RecordingError(f"bag {self.folder} is closed")
        # At equal times: what is wanted, then what is.
        chunk = merge([
            self._render_stages(),
            self._setpoint.render(self._changed_setpoints()),
            self._state.render(derived={"omega_enu_rad_s": omega_enu(self._state)}),
            self._shape.render(),
        ])  # fmt: skip
        if chunk is None:
            return
        try:
            self._bag.write(chunk)
        except RecordingError:
            self._bag = None  # closed with what it had before
            raise
        self._messages = self._bag.messages

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

    def _render_stages(self) -> Rendered:
        stages, self._stages = self._stages, []
        n = len(stages)
        bounds = np.cumsum([0, *(len(data) for _, data in stages)])
        return Rendered(
            memoryview(b"".join(data for _, data in stages)),
            np.array([time for time, _ in stages], np.int64),
            bounds, np.full(n, self._stage_channel), np.arange(n), bounds[:-1],
        )  # fmt: skip

    def _changed_setpoints(self) -> NDArray[np.bool_]:
        """Which set-points differ from those before, (rows, 1 + n)."""
        rows = self._setpoint.rows
        now = np.concatenate([c[:rows] for c in self._setpoint.columns.values()], axis=2)
        history = np.concatenate([self._last_setpoint, now])
        self._last_setpoint = history[-1:]
        return (history[1:] != history[:-1]).any(axis=2)


def omega_enu(state: RowBuffer) -> Array:
    """Angular velocities in the world from those in the body frames, (rows, 3 + 3 n)."""
    omega = state.columns["omega_enu_rad_s"][: state.rows]  # as recorded: body frames
    q = state.columns["orientation_wxyz"][: state.rows]
    t = 2.0 * np.cross(q[..., 1:], omega)
    world = omega + q[..., :1] * t + np.cross(q[..., 1:], t)
    return world.reshape(len(world), 3 * world.shape[1])


def _whole_ratio(fast_hz: float, slow_hz: float, name: str, of: str) -> int:
    ratio = fast_hz / slow_hz if slow_hz > 0.0 else 0.0
    if ratio < 0.5 or abs(ratio - round(ratio)) > 1e-6 * ratio:
        raise ConfigError(
            f"{name} is {slow_hz:g} Hz, must be {of} ({fast_hz:g} Hz) divided by a whole number"
        )
    return round(ratio)
