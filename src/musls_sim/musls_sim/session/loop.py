"""The loop: stages in their order, run once per control period. There is no other one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any, ClassVar

import numpy as np
from typing_extensions import Self

from musls_control.reference import Reference
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import CompiledStage
from musls_sim.plants.interface import Plant
from musls_sim.power import Power

NEVER = float("inf")

# ---------- Observers: they watch a run without having a part in it


class Observer:
    """Base of all observers; every method may be left out.

    Attributes:
        every: Control periods between two calls of `observe`.
        recalls: Control periods between two calls of `recall`, a whole number of `every`; 0 for
            none.
        by_rows: Whether `record` and `recall` are called instead of `observe`, up to a second
            later: for an observer that only looks, at a tenth of the time. After an interrupt they
            may be called again with what they had.
        held: Whether a snapshot of the session holds its state.
    """

    every: int = 1
    recalls: int = 0
    by_rows: bool = False
    held: ClassVar[bool] = False

    def start(self, loop: Loop) -> None:
        """The run begins; nothing has moved yet."""

    def observe(self, time_s: float, loop: Loop) -> None:
        """Look at the state at a time, and at the set-points that hold from then on."""

    def next_look(self, tick: int) -> float:
        """First period, from one on, in which `observe` is to be called."""
        return NEVER if self.by_rows else -(-tick // self.every) * self.every

    def record(self, times_s: Sequence[float], seen: Any) -> None:
        """Look at a session whose arrays have these times as their first axis."""

    def recall(self, times_s: Sequence[float], plant: Any) -> None:
        """Look at the cables' shapes at these times: see `Plant.recalled`."""

    def on_setpoint(self, time_s: float, position_enu_m: Array, orientation_wxyz: Array) -> None:
        """New set-points of load and drones hold from now on, (1 + n, 3), (1 + n, 4)."""

    def on_acceleration(self, time_s: float, acceleration_enu_m_s2: Array) -> None:
        """A controller asks these accelerations of the autopilots, (n, 3), NaN for none; 50 Hz."""

    def on_reference(self, time_s: float, reference: Reference, begin_s: float) -> None:
        """The load follows a reference, which began at a time, from now on."""

    def on_stage(self, time_s: float, name: str) -> None:
        """A phase or stage of the mission begins."""

    def on_phase_end(self, time_s: float, what: str) -> None:
        """A phase of the mission ended: which one, and why."""

    def on_event(self, time_s: float, kind: str, what: str) -> None:
        """Something happened to the system: a motor failed, a cable broke, ..."""

    def close(self) -> None:
        """The run is over, or has failed, even before `start`."""


class Progress(Observer):
    """Reports a run's progress about ten times a second of wall time."""

    _PERIOD_S = 0.1

    def __init__(self, report: Callable[[float, Any], None]) -> None:
        """Keep the function, which gets the simulated time and the session."""
        self._report = report
        self._next_s = 0.0

    def observe(self, time_s: float, loop: Loop) -> None:
        """Report if it is time to."""
        now_s = perf_counter()
        if now_s >= self._next_s:
            self._next_s = now_s + self._PERIOD_S
            self._report(time_s, loop)

    def next_look(self, tick: int) -> float:
        """See `Observer`: no run of periods ends for it, it looks before each."""
        return NEVER


class Pace(Observer):
    """Keeps a run from going faster than real time."""

    every = 10

    _begin_s: float | None = None

    def observe(self, time_s: float, loop: Loop) -> None:
        """Wait if the run is ahead of real time, which starts with its first periods.

        They may compile; what that takes is not made good by flying faster.
        """
        if time_s == 0.0:
            return
        if self._begin_s is None:
            self._begin_s = perf_counter() - time_s
        ahead_s = time_s - (perf_counter() - self._begin_s)
        if ahead_s > 0.0:
            sleep(ahead_s)


# ---------- Stages of a control period

Step = Callable[[int], None]
"""A function of a stage in Python, told the number of the control period (tick), from 0."""

Parts = tuple[CompiledStage, ...]
"""Compiled functions of a stage; none where Python's is to be called."""


def always(tick: int) -> float:
    """Next due period of a stage that runs in every period."""
    return tick


def never(tick: int) -> float:
    """Next due period of a stage that never runs."""
    return NEVER


@dataclass(frozen=True)
class Stage:
    """A stage of the control period: a name, and a function in Python or in compiled code.

    Attributes:
        step: Function in Python; None where compiled code does everything.
        due: Next period, from a given one on, in which that function has something to do. In
            others it may be called, too.
        compiled: Compiled functions that run instead of it.
        choose: Says, before each run, what compiled code does; None where that is `compiled`.
        tells: The function is called after a period, when compiled code says that it has something
            to do, or when it is due.
        changes: Whether it may change the structure of the plant; what was recorded is handed out
            before it is due.
    """

    name: str
    step: Step | None = None
    due: Callable[[int], float] = always
    compiled: Parts = ()
    choose: Callable[[int], Parts] | None = None
    tells: bool = False
    changes: bool = False

    @property
    def may_be_compiled(self) -> bool:
        """Whether compiled code may do it, now or later."""
        return bool(self.compiled) or self.choose is not None


class Loop:
    """Runs the stages of a control period; a context manager that starts and closes its parts.

    Attributes:
        tick: Control periods so far.
        power: Motors and batteries; None where there are none.
        compiles: Whether it runs compiled stages.
    """

    power: Power | None = None
    compiles: ClassVar[bool] = False
    not_kept: ClassVar[frozenset[str]] = frozenset({"_closing", "_stages", "_begin_s", "_end_s"})

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self.observers: list[Observer] = []
        self.tick = 0
        self._stages: list[Stage] = []
        self._stopped = self._started = False
        self._begin_s = perf_counter()
        self._end_s = 0.0
        self._closing = ExitStack()

    @property
    def step_names(self) -> tuple[str, ...]:
        """Names of the stages, in their order."""
        return tuple(stage.name for stage in self._stages)

    def set_steps(self, steps: Mapping[str, Step]) -> None:
        """Set stages in Python, by name and in their order; `look` is that of the observers."""
        self.set_stages([Stage(name, step) for name, step in steps.items()])

    def set_stages(self, stages: Sequence[Stage]) -> None:
        """Set the stages, in their order."""
        self._stages = list(stages)

    def insert_before(self, name: str, new: str, step: Step | CompiledStage) -> None:
        """Insert your own stage before another one.

        Args:
            name: The other one, see `step_names`.
            new: Name of the new one.
            step: Called in every control period with its number, from 0; or a `CompiledStage`,
                called by compiled code with the address of the world.

        Raises:
            ConfigError: There is no such step, or there is one of the new name already.
        """
        self._insert(name, 0, new, step)

    def insert_after(self, name: str, new: str, step: Step | CompiledStage) -> None:
        """Insert your own stage after another one, see `insert_before`."""
        self._insert(name, 1, new, step)

    def _insert(self, name: str, behind: int, new: str, step: Step | CompiledStage) -> None:
        names = self.step_names
        if name not in names:
            raise ConfigError(f"no step '{name}' in this loop: it has {', '.join(names)}")
        if new in names:
            raise ConfigError(f"there is a step '{new}' already: choose another name")
        place = names.index(name) + behind
        if not isinstance(step, CompiledStage):
            stage = Stage(new, step)
        elif self.compiles:
            stage = Stage(new, compiled=(step,))
        else:
            raise ConfigError(f"step '{new}' is a CompiledStage: this loop calls Python alone")
        self.set_stages([*self._stages[:place], stage, *self._stages[place:]])

    def observe_with(self, observer: Observer) -> None:
        """Add an observer before the start; it is closed with the loop, started or not."""
        self.observers.append(observer)
        self._closing.callback(observer.close)

    def look(self, tick: int) -> None:
        """Call the observers with the present state and set-points; a stage of the loop."""
        for observer in self.observers:
            if tick % observer.every == 0 and not observer.by_rows:
                observer.observe(tick * self.plant.period_s, self)

    @property
    def time_s(self) -> float:
        """Simulated time."""
        return self.tick * self.plant.period_s

    @property
    def graph_time_s(self) -> float:
        """Time of what is sent to a ROS graph: simulated time, with real PX4s theirs."""
        return self.time_s

    @property
    def elapsed_s(self) -> float:
        """Wall time since the start, up to the end."""
        return (self._end_s or perf_counter()) - self._begin_s

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self._stopped

    @property
    def stopped(self) -> bool:
        """Whether the run was ended before its end."""
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
        """Run a number of control periods, from 0; it ends where the run is `finished`, and rests.

        Raises:
            TypeError: It is no whole number.
            ConfigError: It is below 0.
        """
        if not isinstance(periods, (int, np.integer)):
            raise TypeError(f"advance: periods must be a whole number, not {periods!r}")
        if periods < 0:
            raise ConfigError(f"advance: periods = {periods}: a flight does not go back")
        if not self._started:
            self.start()
        end = self.tick + periods
        while self.tick < end and not self.finished:
            self._run(end)

    def _run(self, end: int) -> None:
        """Run a period, or several up to the one of this number."""
        for stage in self._stages:
            if stage.step is not None:
                stage.step(self.tick)
        self.tick += 1

    def close(self) -> None:
        """End everything that takes part; further calls do nothing."""
        self._closing.close()
        self._end_s = self._end_s or perf_counter()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
