"""Observers: what watches a run without having a part in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from musls_sim.plants.interface import Plant

if TYPE_CHECKING:
    from musls_sim.session.loop import Loop

Array = NDArray[np.float64]


class Recorder(Protocol):
    """What keeps a flight: see `musls_sim.recording`.

    Attributes:
        every: Control periods between two records.
    """

    every: int

    def record(self, time_s: float, plant: Plant) -> None:
        """Record the state of the plant."""

    def record_batteries(self, time_s: float, state: Array) -> None:
        """Record the batteries, `Power.state`."""

    def record_setpoint(
        self,
        time_s: float,
        load_position_enu_m: Array,
        load_orientation_wxyz: Array,
        drone_position_enu_m: Array,
        drone_orientation_wxyz: Array,
    ) -> None:
        """Record new set-points."""

    def record_acceleration(self, time_s: float, acceleration_enu_m_s2: Array) -> None:
        """Record accelerations that a controller asks of the drones."""

    def record_stage(self, time_s: float, name: str) -> None:
        """Record the beginning of a stage."""

    def record_event(self, time_s: float, kind: str, what: str) -> None:
        """Record something that happened."""

    def close(self) -> None:
        """Finish."""


class Observer:
    """Base of all observers; every method may be left out.

    Attributes:
        every: Control periods between two calls of `observe`.
    """

    every: int = 1

    def start(self, loop: Loop) -> None:
        """The run begins; nothing has moved yet."""

    def observe(self, time_s: float, loop: Loop) -> None:
        """Look at the state at a time, and at the set-points that hold from then on."""

    def on_setpoint(
        self,
        time_s: float,
        load_position_enu_m: Array,
        load_orientation_wxyz: Array,
        drone_position_enu_m: Array,
        drone_orientation_wxyz: Array,
    ) -> None:
        """New set-points hold from now on, (3,), (4,), (n, 3), (n, 4)."""

    def on_acceleration(self, time_s: float, acceleration_enu_m_s2: Array) -> None:
        """A controller asks these accelerations of the autopilots, (n, 3), NaN for none; 50 Hz."""

    def on_stage(self, time_s: float, name: str) -> None:
        """A phase or stage of the mission begins."""

    def on_event(self, time_s: float, kind: str, what: str) -> None:
        """Something happened to the system: a motor failed, a cable broke, ..."""

    def close(self) -> None:
        """The run is over, or has failed, even before `start`."""


class Announcer:
    """Tells all observers."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        """Keep the list; observers that are added later are told too."""
        self._observers = observers

    def setpoint(self, time_s: float, *poses: Array) -> None:
        """See `Observer.on_setpoint`."""
        for observer in self._observers:
            observer.on_setpoint(time_s, *poses)

    def acceleration(self, time_s: float, asked: Array) -> None:
        """See `Observer.on_acceleration`."""
        for observer in self._observers:
            observer.on_acceleration(time_s, asked)

    def stage(self, time_s: float, name: str) -> None:
        """See `Observer.on_stage`."""
        for observer in self._observers:
            observer.on_stage(time_s, name)

    def event(self, time_s: float, kind: str, what: str) -> None:
        """See `Observer.on_event`."""
        for observer in self._observers:
            observer.on_event(time_s, kind, what)


class RecorderObserver(Observer):
    """Hands everything to a recorder: a bag, or arrays in memory."""

    def __init__(self, recorder: Recorder) -> None:
        """Watch at the recorder's rate."""
        self.recorder, self.every = recorder, recorder.every
        # Straight to the recorder, without a call in between: what mypy would rather not see.
        self.on_setpoint = recorder.record_setpoint  # type: ignore[method-assign]
        self.on_acceleration = recorder.record_acceleration  # type: ignore[method-assign]
        self.on_stage = recorder.record_stage  # type: ignore[method-assign]
        self.on_event = recorder.record_event  # type: ignore[method-assign]

    def observe(self, time_s: float, loop: Loop) -> None:
        """Record the plant's state."""
        self.recorder.record(time_s, loop.plant)
        if loop.power is not None:
            self.recorder.record_batteries(time_s, loop.power.state)

    def close(self) -> None:
        """Finish the recording."""
        self.recorder.close()


class Progress(Observer):
    """Reports a run's progress about ten times a second of wall time."""

    every = 10
    _PERIOD_S = 0.1

    def __init__(self, report: Callable[[float, Any], None]) -> None:
        """Keep the function, which is told the simulated time and the session."""
        self._report, self._next_s = report, 0.0

    def observe(self, time_s: float, loop: Loop) -> None:
        """Report if it is time to."""
        now_s = perf_counter()
        if now_s >= self._next_s:
            self._next_s = now_s + self._PERIOD_S
            self._report(time_s, loop)


class Pace(Observer):
    """Keeps a run from going faster than real time."""

    every = 10

    def start(self, loop: Loop) -> None:
        """Remember when and where the run begins."""
        self._begin_s = perf_counter() - loop.time_s

    def observe(self, time_s: float, loop: Loop) -> None:
        """Wait if the run is ahead of real time."""
        ahead_s = time_s - (perf_counter() - self._begin_s)
        if ahead_s > 0.0:
            sleep(ahead_s)
