"""`Batch`: many worlds of one structure, advanced by one compiled call."""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.controllers import Controller, ControlLevel
from musls_control.estimate import Estimate
from musls_control.mission.phase_end import DIVERGED, at_the_end
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import CompiledStage
from musls_description.numerics.layout import TABLES, Gathered
from musls_description.numerics.records import TiedToMemory, distance
from musls_sim.batch.host import Decided, Host
from musls_sim.scenario.scenario import Scenario, Tracker
from musls_sim.session.compiled_stages.control import ask_for_places
from musls_sim.session.compiled_stages.fields import LAYOUT, WORLD
from musls_sim.session.compiled_stages.noise import begin_gust, streams_of
from musls_sim.session.compiled_stages.session_memory import parts_of
from musls_sim.session.compiled_stages.world import (
    COMMAND_COLUMNS,
    PIECE,
    advance_worlds,
    come_down,
    end_flight,
    end_period,
    play_plan,
)
from musls_sim.session.loop import Parts
from musls_sim.session.session import Session
from musls_sim.session.stages import asks_for_python

CHUNKS = 32
"""Parts for each thread; whichever is free takes the next, so that none waits for a slow one."""

LEVELS = (
    ControlLevel.DRONE_SETPOINTS,
    ControlLevel.FORCES,
    ControlLevel.THRUST_MOMENT,
    ControlLevel.THRUST_RATES,
    ControlLevel.ROTOR_SPEEDS,
)
"""Levels that may be commanded from outside."""

SHARED = "reference", "rig_numbers"
"""Arrays that worlds share, besides those of their plans."""

Worlds = NDArray[Any] | int | Sequence[int] | Sequence[bool]
"""Numbers of worlds, or a mask of all."""


class _Part:
    """Array of all worlds; what is assigned to a `writable` one is written into its memory."""

    def __init__(self, *, writable: bool = False) -> None:
        self._writable = writable

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, batch: Batch, owner: type) -> NDArray[Any]:
        return batch.parts[self._name]

    def __set__(self, batch: Batch, values: Any) -> None:
        if not self._writable:
            raise ConfigError(f"{self._name}: is read only: restore a snapshot, or reset")
        part = batch.parts[self._name]
        try:
            if values is None:  # NumPy makes NaN of it
                raise TypeError
            part[...] = values
        except (OverflowError, TypeError, ValueError):
            raise ConfigError(
                f"{self._name}: shape {np.shape(values)}, must be numbers {part.shape}"
            ) from None


class Batch(TiedToMemory):
    """Worlds of one structure: same bodies, cables and segments; every number may differ.

    Each world is one flight of its scenario, the same to the last bit as flown alone, with noise of
    its own. A world that has finished or failed rests; the others go on. What it is made of lies in
    arrays whose first axis counts the worlds; they are views that keep their memory, so they
    change with every call, and what may be commanded is written into them. For the same reason a
    batch is neither copied nor pickled; `snapshot` copies a world.

        batch = Batch(scenario, worlds=4096)
        batch.advance(250)
        batch.position_enu_m[:, 0]  # of all loads

    Attributes:
        worlds: Number of worlds.
        n_drones: Drones of each.
        period_s: Control period.
        motion: True motion of load and drones, columns as `BodyMotion.data`, (worlds, 1 + n, 16).
        estimate: Estimated motion that the drones have, (worlds, 1 + n, 16).
        tension_n: Tension of each cable at the load and at the drone, (worlds, n, 2).
        largest_tension_n: Largest tension of each cable so far, (worlds, n).
        rotor_speed_rad_s: (worlds, n, rotors).
        setpoint: Set-points of the autopilots, columns as `DroneSetpoints.data`, (worlds, n, 12).
        command: Commands from outside, or from the scenario's controller, at the level of
            the batch: place and yaw [m, rad, ENU] (worlds, n, 4), NaN for the mission's; force
            [N, ENU], yaw [rad] (NaN for the mission's) and moment that is added [N m, body]
            (worlds, n, 7), with `autopilot.tracker: indi` also the force that is counted on
            [N, ENU] (NaN for none) (worlds, n, 10); thrust and moment, or body rates
            [N, N m, rad/s, body] (worlds, n, 4); rotor speeds [rad/s] (worlds, n, rotors).
        motors: Share of their commanded speed that the motors of each drone turn at, (worlds, n);
            0 is a drone that is lost.
        wrench_enu: Moment and force on load and drones from outside, world,
            (worlds, 1 + n, 6) [N m, N].
        parts: Arrays by name, these and others: `batteries` are records, see `power.BATTERY`.
    """

    motion = _Part()
    estimate = _Part()
    setpoint = _Part()
    tension_n = _Part()
    largest_tension_n = _Part()
    rotor_speed_rad_s = _Part()
    command = _Part(writable=True)
    motors = _Part(writable=True)
    wrench_enu = _Part(writable=True)

    def __init__(
        self,
        scenario: Scenario | Sequence[Scenario],
        worlds: int | None = None,
        *,
        level: ControlLevel | str = ControlLevel.DRONE_SETPOINTS,
        seeds: Sequence[int] | None = None,
        threads: int | None = None,
        mission: bool = True,
    ) -> None:
        """Build all worlds in their starts.

        Args:
            scenario: Scenario of all worlds, or several that take turns: world i begins as
                scenario i modulo their number.
            worlds: Number of worlds; by default as many as there are scenarios.
            level: Level of `command`: drone_setpoints, with which the built-in autopilot flies the
                mission by default; forces, thrust_moment, thrust_rates or rotor_speeds.
            seeds: Noise seeds of the worlds; by default those of the scenarios, or for a single
                scenario its seed and the numbers that follow.
            threads: Threads that share the work; by default one a core.
            mission: Whether the mission is flown; if not, its first set-points hold for ever, no
                world finishes, and motion capture sees the load as it does for a controller.

        Raises:
            ConfigError: The scenario cannot be flown in a batch, names the key; structures differ;
                more worlds than memory.
        """
        scenarios = [scenario] if isinstance(scenario, Scenario) else list(scenario)
        if not all(isinstance(one, Scenario) for one in scenarios):
            raise TypeError(f"Batch: scenario must be a Scenario or several, not {scenario!r:.60}")
        self.worlds = len(scenarios) if worlds is None else operator.index(worlds)
        if not scenarios or self.worlds < len(scenarios):
            raise ConfigError(f"worlds = {self.worlds}: must be at least {max(len(scenarios), 1)}")
        if threads is not None and threads < 1:
            raise ConfigError(f"threads = {threads}: must be at least 1")
        if seeds is None:
            first = scenarios[0].seed
            several = not isinstance(scenario, Scenario)
            each = several and self.worlds == len(scenarios)
            seeds = [s.seed for s in scenarios] if each else range(first, first + self.worlds)
        else:
            _check_seeds(seeds, self.worlds)
        self.level = _level(level)
        start = _Start(scenarios[0], self.level, mission)
        _check_memory(self.worlds, start.memory.nbytes)
        self._starts = [start, *(_Start(s, self.level, mission, start) for s in scenarios[1:])]
        self.level = start.level
        self._decides = any(one.host.decides for one in self._starts)
        self._start_of = np.arange(self.worlds) % len(scenarios)
        for i, other in enumerate(self._starts):
            if other.structure != start.structure:
                raise ConfigError(
                    f"scenario of world {i} ({other.scenario.name}): its structure differs from "
                    f"that of world 0 ({start.scenario.name}): cable model, bodies, cables, "
                    "segments, surfaces, sensors and latencies must be the same"
                )
        self._stages = np.array([stage.address for stage in start.stages])
        self._memory = np.zeros((self.worlds, len(start.memory)))
        self._first = self._memory.ctypes.data + self._memory.strides[0] * np.arange(self.worlds)
        self._decided = np.empty(self.worlds, object)  # `Decided` of each
        self._threads = min(threads or os.cpu_count() or 1, self.worlds)
        self._pool: ThreadPoolExecutor | None = None
        self._pool_of = 0  # process that its threads are in
        self._view()
        self.reset(seeds=seeds)

    def _view(self) -> None:
        start = self._starts[0]
        system = self._starts[0].scenario.system
        parts = start.parts
        self.n_drones = system.n_drones
        self.period_s = start.plant.period_s
        self.records: NDArray[np.void] = self._of(start.record)[:, 0]
        incremental = start.scenario.autopilot.tracker is Tracker.INDI
        forces = COMMAND_COLUMNS if incremental else 7
        wide = {ControlLevel.FORCES: forces, ControlLevel.ROTOR_SPEEDS: system.n_rotors}
        columns = wide.get(self.level, 4)
        self.parts = {name: self._of(part) for name, part in parts.items()} | {
            "rotor_speed_rad_s": self._of(parts["speed"]),
            "tension_n": self._of(parts["force"])[:, :, :, 0],
            "largest_tension_n": self._of(parts["largest"]),
            "command": self._of(parts["asked"])[..., :columns],
        }
        self._streams = self.parts["streams"]
        self._ending = self.parts["ending"][:, 0]

    def _of(self, part: NDArray[Any]) -> NDArray[Any]:
        """Array of a name in the start's memory, in all worlds, (worlds, ...)."""
        offset = distance(self._starts[0].memory, part)
        return np.ndarray(
            (self.worlds, *part.shape),
            part.dtype,
            self._memory.data,
            offset if part.size else 0,
            (self._memory.strides[0], *part.strides),
        )

    # ------------------------------------------------------------------------------- what is read

    @property
    def position_enu_m(self) -> Array:
        """Centres of mass, world, (worlds, 1 + n, 3)."""
        return self.motion[..., 0:3]

    @property
    def velocity_enu_m_s(self) -> Array:
        """Velocities of the centres of mass, world, (worlds, 1 + n, 3)."""
        return self.motion[..., 3:6]

    @property
    def orientation_wxyz(self) -> Array:
        """Unit quaternions, body FLU to world ENU, (worlds, 1 + n, 4)."""
        return self.motion[..., 6:10]

    @property
    def omega_body_rad_s(self) -> Array:
        """Body rates, body frame, (worlds, 1 + n, 3)."""
        return self.motion[..., 10:13]

    @property
    def time_s(self) -> Array:
        """Simulated time of each world, (worlds,)."""
        return self.records["tick"] * self.period_s

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Whether a world's mission is over, (worlds,)."""
        return self.records["finished"] != 0

    @property
    def landed(self) -> NDArray[np.bool_]:
        """Whether the drones of each world had landed when its mission ended, (worlds,)."""
        return self._ending["landed"] != 0

    @property
    def reasons(self) -> list[str]:
        """Why the flight of each world ended, "" where it goes on, (worlds,)."""
        reasons = []
        for i, record in enumerate(self.records):
            over = at_the_end(landed=bool(self.landed[i]), lands=bool(record["lands"]))
            reasons.append(DIVERGED if self.failed[i] else over.why * bool(self.finished[i]))
        return reasons

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Whether a world stopped because its physics failed (`SimulationDiverged`), (worlds,)."""
        return self.records["failed"] != 0

    # ------------------------------------------------------------------------------- what is done

    def advance(self, periods: int = 1) -> None:
        """Advance all worlds that have not finished or failed by a number of control periods.

        Ctrl-C ends it after at most 50 of them, with all worlds at the same time.

        Raises:
            ConfigError: A negative number.
            TypeError: It is no whole number.
        """
        periods = operator.index(periods)
        if periods < 0:
            raise ConfigError(f"periods = {periods}: a flight does not go back")
        for offset in range(0, periods, PIECE):
            if offset and (self.finished | self.failed).all():
                break
            self._run(min(periods - offset, PIECE))

    def _run(self, periods: int) -> None:
        if self._threads == 1:
            self._run_part(0, self.worlds, periods)
            return
        if self._pool is None or self._pool_of != os.getpid():  # a fork takes no threads along
            self._pool = ThreadPoolExecutor(self._threads)
            self._pool_of = os.getpid()
        borders = np.linspace(0, self.worlds, CHUNKS * self._threads + 1).astype(int).tolist()
        parts = iter([(low, high) for low, high in pairwise(borders) if high > low])

        def take_turns() -> None:
            for low, high in parts:  # of a list: one thread at a time gets the next
                self._run_part(low, high, periods)

        work = [self._pool.submit(take_turns) for _ in range(self._threads)]
        try:
            for part in work:
                part.result()
        finally:  # after Ctrl-C, too
            wait(work)

    def _run_part(self, low: int, high: int, periods: int) -> None:
        """Advance some of the worlds."""
        first = int(self._first[low])
        apart = self._memory.strides[0]
        ends = self.records["tick"][low:high] + periods
        advance_worlds(self._stages, first, apart, high - low, periods)
        if not self._decides:
            return
        for i, end in enumerate(ends.tolist(), start=low):
            world = self.records[i : i + 1]
            while world["tick"][0] < end and not (world["finished"][0] or world["failed"][0]):
                decision: Decided = self._decided[i]
                self._decided[i] = decision.host.decide(decision, self._memory[i], world)
                remainder = end - int(world["tick"][0])
                advance_worlds(self._stages, int(self._first[i]), 0, 1, remainder)

    def reset(
        self,
        worlds: Worlds | None = None,
        seeds: Sequence[int] | None = None,
        scenarios: Sequence[int] | None = None,
    ) -> None:
        """Bring worlds back to their starts.

        Args:
            worlds: Numbers of the worlds, or a mask, (worlds,); default all.
            seeds: New ones, one for each of these; by default their noise goes on where it was.
            scenarios: Numbers of the scenarios that these begin anew as; needs seeds.

        Raises:
            ConfigError: No such world or scenario, or not one seed or scenario for each.
        """
        selection = self._chosen(worlds)
        if seeds is not None:
            _check_seeds(seeds, len(selection))
        if scenarios is not None:
            if seeds is None or len(scenarios) != len(selection):
                raise ConfigError(f"scenarios: one and a seed for each of {len(selection)} worlds")
            for k in scenarios:
                if not 0 <= k < len(self._starts):
                    raise ConfigError(f"scenarios: {k}, must be 0 to {len(self._starts) - 1}")
            self._start_of[selection] = scenarios
        streams = self._streams[selection]
        if seeds is not None:
            streams[...] = [streams_of(seed) for seed in seeds]
        for k in set(self._start_of[selection].tolist()):
            start = self._starts[k]
            its = self._start_of[selection] == k
            begins = selection[its]
            self._memory[begins] = start.memory
            self._decided[begins] = start.host.first
            self._streams[begins] = streams[its]
            self._lead_to_tables(begins)
            for address in self._first[begins].tolist():
                begin_gust(address)

    def snapshot(self, worlds: Worlds) -> Snapshot:
        """All of a world, or of several, as they are now (raises ConfigError)."""
        selection = self._chosen(worlds)
        return Snapshot(self, self._memory[selection], self._decided[selection])

    def restore(self, worlds: Worlds, snapshot: Snapshot) -> None:
        """Make worlds what those of a snapshot were, their noise to come included.

        Args:
            worlds: Numbers of the worlds, or a mask, (worlds,).
            snapshot: Snapshot of any world of this batch, or of as many as there are numbers.

        Raises:
            ConfigError: No such world, or a snapshot of another batch, or of another number.
        """
        if snapshot.batch is not self:
            raise ConfigError("the snapshot is of another batch")
        selection = self._chosen(worlds)
        count = len(snapshot.memory)
        if count not in (1, len(selection)):
            raise ConfigError(f"snapshot: of {count} worlds, must be of one or {len(selection)}")
        self._memory[selection] = snapshot.memory
        self._decided[selection] = snapshot.decided
        self._lead_to_tables(selection)

    def _lead_to_tables(self, worlds: NDArray[np.intp]) -> None:
        """Write into worlds how far from them the tables are that they share."""
        begin = self._starts[0].memory.ctypes.data
        self.records[TABLES][worlds] = begin - self._first[worlds]

    def _chosen(self, worlds: Worlds | None) -> NDArray[np.intp]:
        selection = np.arange(self.worlds) if worlds is None else np.atleast_1d(np.asarray(worlds))
        if selection.dtype == bool and selection.shape == (self.worlds,):
            return np.flatnonzero(selection)
        if selection.size and (selection.dtype.kind not in "iu" or selection.ndim != 1):
            raise ConfigError(f"worlds: must be numbers or a mask of {self.worlds}")
        if selection.size and not (selection.min() >= 0 and selection.max() < self.worlds):
            raise ConfigError(
                f"worlds: {selection.min()} to {selection.max()}, must be 0 to {self.worlds - 1}"
            )
        return selection.astype(np.intp)


@dataclass(frozen=True)
class Snapshot:
    """Worlds at one time, see `Batch.snapshot`.

    Attributes:
        memory: All numbers, (worlds, words).
        decided: Decisions of Python for each world, `Decided`, which is never changed.
    """

    batch: Batch
    memory: Array
    decided: NDArray[np.object_]


# ---------- The start of a world: the memory of a session that is ready to fly


class _Commanded(Controller):
    """Placeholder for commands that are set from outside once the session is built."""

    def __init__(self, level: ControlLevel) -> None:
        self.level = level  # type: ignore[misc]  # a class variable of `Controller`

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Never called: its stage is compiled."""
        raise NotImplementedError


class _Start:
    """Memory of a world at its start: that of a session, its arrays in one piece.

    Attributes:
        memory: All of it, (words,).
        record: The record with which it begins, (1,) of `WORLD`.
        parts: Arrays by name.
        stages: Stages of a period.
        structure: Structure that must be the same in all worlds of a batch.
        host: Session that decides for the worlds.
    """

    def __init__(
        self, scenario: Scenario, level: ControlLevel, mission: bool, like: _Start | None = None
    ) -> None:
        _check(scenario, level, mission)
        by_mission = level is ControlLevel.DRONE_SETPOINTS and mission
        with Session(scenario, controller=None if by_mission else _Commanded(level)) as session:
            self.scenario = scenario
            self.plant = session.components.plant
            control = session.control
            if session.flying is not None:
                control.take_over(0.0)
            self.level = control.level
            arrays, numbers = parts_of(session, alone=False)
            self.shared = {name: arrays.pop(name) for name in SHARED if name in arrays}
            gathered = Gathered({"record": np.zeros(1, WORLD)} | arrays)
            self.memory = gathered.memory
            self.parts = gathered.views
            self.record = self.parts.pop("record")
            self.host = Host(session, gathered, flies=mission)
            self._share(like)
            self.stages = self._stages(session, mission)
            plan_values = self.host.first.flown
            values = numbers | self.parts | self.shared | plan_values
            begin = self.memory if like is None else like.memory
            values[TABLES] = distance(self.memory, begin)
            LAYOUT.fill(self.record, values | {"due": self.host.due(0)})
            if not mission:
                self.parts["sent"][:] = self.parts["setpoint"][:] = plan_values["table"][0]
        self.structure = (
            scenario.cable_model,
            [(name, part.shape) for name, part in self.parts.items()],
            self.plant.record[self.plant.layout.sizes].tolist(),
            [int(self.record[name][0]) for name in ("latency", "steady", "first", "way_size")],
            [stage.address for stage in self.stages],
        )

    def _share(self, like: _Start | None) -> None:
        """Take over tables that are the same: those of scenarios that differ in a mass."""
        if like is None:
            return
        for mine, its in (
            (self.host.first.flown, like.host.first.flown),
            (self.shared, like.shared),
        ):
            for name in {"table", *SHARED} & mine.keys() & its.keys():
                if mine[name].tobytes() == its[name].tobytes():
                    mine[name] = its[name]

    def _stages(self, session: Session, mission: bool) -> Parts:
        """Compiled stages of a period: those of the session, and what a batch does for Python."""
        played: Parts = (play_plan, come_down, end_flight) if mission else ()
        requests: Parts = (ask_for_places,) if self.level is ControlLevel.DRONE_SETPOINTS else ()
        own: dict[str, Parts] = {
            "plan": (*played, *requests),
            "rows": (),
            "collisions": (),
        }
        parts: list[CompiledStage] = []
        for stage in session.stages:
            if stage.name in own:
                parts += own[stage.name]
            else:
                parts += stage.compiled if stage.choose is None else stage.choose(0)
        return (*parts, end_period)


# ---------- What cannot be flown in a batch


def _level(level: ControlLevel | str) -> ControlLevel:
    with contextlib.suppress(ValueError):
        if (choice := ControlLevel(level)) in LEVELS:
            return choice
    names = ", ".join(able.value for able in LEVELS)
    raise ConfigError(f"level = {level}: must be one of {names}") from None


def _check_seeds(seeds: Sequence[int], worlds: int) -> None:
    if len(seeds) != worlds:
        raise ConfigError(f"seeds: {len(seeds)} of them for {worlds} worlds")
    if worlds and min(seeds) < 0:
        raise ConfigError(f"seeds: {min(seeds)} is among them, must be at least 0")


def _check_memory(worlds: int, bytes_each: int) -> None:
    """Refuse more worlds than fit into memory, which Linux would grant all the same."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # no Linux: memory that is not there is not given out
        return
    available = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}["MemAvailable"]
    if worlds * bytes_each > available:
        raise ConfigError(
            f"worlds = {worlds}: they need {worlds * bytes_each / 1e9:.3g} GB of memory, of which "
            f"{available / 1e9:.3g} GB are available"
        )


def _refuse(scenario: Scenario, what: str) -> None:
    raise ConfigError(f"a batch of {scenario.name}: {what}")


def _check(scenario: Scenario, level: ControlLevel, mission: bool) -> None:
    """Refuse scenarios that a batch cannot fly, before anything is built."""
    if feature := asks_for_python(scenario):
        _refuse(scenario, f"{feature}, which a batch has not")
    kind = scenario.controller.kind
    by_mission = level is ControlLevel.DRONE_SETPOINTS and mission
    if kind != "formation" and not by_mission:
        what = "must be formation where commands come from outside"
        _refuse(scenario, f"controller.kind = {kind}: {what}")
    if scenario.contingency is not None and not by_mission:
        _refuse(scenario, "contingency: must be null where commands come from outside")
    ground = scenario.start.kind == "ground"
    if ground and (level is not ControlLevel.DRONE_SETPOINTS or kind != "formation"):
        choices = "air or state with a controller, or commands below setpoints"
        _refuse(scenario, f"start.kind = ground: must be {choices}")
