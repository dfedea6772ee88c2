"""The loop: an ordered list of steps, run once per control period. There is no other one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from time import perf_counter
from types import TracebackType

from typing_extensions import Self

from musls_sim.plants.interface import Plant
from musls_sim.power import Power
from musls_sim.session.observer import Announcer, Observer

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
