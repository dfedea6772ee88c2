"""The loop: an ordered list of steps, run once per control period. There is no other one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from time import perf_counter, sleep
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from musls_sim.plants.interface import Plant
from musls_sim.power import Power

# ---------- Observers: they watch a run without having a part in it

Array = NDArray[np.float64]


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


Step = Callable[[int], None]
"""A step of the loop, told the number of the control period (tick), from 0."""


class Loop:
    """Runs steps in their order; a context manager that starts and closes what takes part.

    Attributes:
        plant: The physics.
        observers: What watches the run.
        announce: Tells the observers what happens.
        tick: Control periods so far.
        power: Motors and batteries; None where there are none.
    """

    power: Power | None = None

    def __init__(self, plant: Plant, observers: Sequence[Observer] = ()) -> None:
        """Prepare; the steps are set by the subclass or by `set_steps`.

        Args:
            plant: The physics.
            observers: What watches the run.
        """
        self.plant = plant
        self.observers: list[Observer] = []
        self.announce = Announcer(self.observers)
        self.tick = 0
        self._steps: tuple[Step, ...] = ()
        self._before: tuple[Step, ...] = ()
        self._after: tuple[Step, ...] = ()
        self._stopped = self._started = False
        self._begin_s = perf_counter()
        self._closing = ExitStack()
        for observer in observers:
            self.observe_with(observer)

    def set_steps(self, before: Sequence[Step], after: Sequence[Step]) -> None:
        """Set the steps: those before the observers look, the observers, those after.

        Args:
            before: They decide what is asked for from now on.
            after: They move the system to the end of the period.
        """
        self._before, self._after = tuple(before), tuple(after)
        self._steps = (*self._before, *map(self._observing, self.observers), *self._after)

    def observe_with(self, observer: Observer) -> None:
        """Add an observer before the start; it is closed with the loop, started or not."""
        self.observers.append(observer)
        self._closing.callback(observer.close)
        self.set_steps(self._before, self._after)

    @property
    def time_s(self) -> float:
        """Simulated time."""
        return self.tick * self.plant.period_s

    @property
    def elapsed_s(self) -> float:
        """Wall time since the start."""
        return perf_counter() - self._begin_s

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self._stopped

    @property
    def stopped(self) -> bool:
        """Whether somebody ended the run before its end."""
        return self._stopped

    def stop(self) -> None:
        """End the run after the present period; may be called by a signal handler."""
        self._stopped = True

    def start(self) -> None:
        """Start what takes part; `advance` does it if it has not been done."""
        if self._started:
            return
        self._started = True
        for observer in self.observers:
            observer.start(self)
        self._begin_s = perf_counter()

    def advance(self, periods: int = 1) -> None:
        """Run a number of control periods."""
        if not self._started:
            self.start()
        for tick in range(self.tick, self.tick + periods):
            for step in self._steps:
                step(tick)
            self.tick = tick + 1

    def close(self) -> None:
        """End everything that takes part; further calls do nothing."""
        self._closing.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.__exit__(kind, error, trace)

    def _observing(self, observer: Observer) -> Step:
        every, observe, period_s = observer.every, observer.observe, self.plant.period_s

        def look(tick: int) -> None:
            if tick % every == 0:
                observe(tick * period_s, self)

        return look
