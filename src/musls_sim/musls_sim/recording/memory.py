"""Records a flight in memory, as arrays."""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.system import RigSystem
from musls_sim.plants.interface import Plant
from musls_sim.recording import topics
from musls_sim.recording.row_store import RowStore

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
        self.state = RowStore(topics.state_columns(system))
        self.shape = RowStore(topics.shape_columns(system))
        self.setpoint = RowStore(topics.setpoint_columns(system))
        self.acceleration = RowStore(topics.acceleration_columns(system))
        self.battery = RowStore(topics.battery_columns(system))
        self._batteries = topics.battery_rows(system)
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
        self.state.append(stamp_ns, *topics.state_values(plant.state))
        if self._until_shape == 0:
            self.shape.append(stamp_ns, *topics.shape_values(plant, self.system))
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
