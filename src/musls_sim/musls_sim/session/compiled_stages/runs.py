"""Runs: compiled stages one after another, for as many periods as nothing in Python is due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_sim.session.compiled_stages.session_memory import World
from musls_sim.session.compiled_stages.world import end_period
from musls_sim.session.flight import Flight
from musls_sim.session.loop import Parts, Stage, Step, always

PLANT = "plant"
"""Name of the stage whose outcome has to be looked at before anything else."""


class _Run(NamedTuple):
    """Compiled stages between two in Python: their addresses, and whether the plant is in it."""

    addresses: NDArray[np.int64]
    moves: bool


class Runs:
    """Calls the stages of a session, compiled ones in runs.

    Stages before the first one that compiled code may do are called at the begin of each run, the
    others are either compiled, or cut the run in the periods in which they are due.
    """

    def __init__(self, session: Flight, world: World, stages: Sequence[Stage]) -> None:
        """Sort the stages of a `Session`, in their order."""
        self._session = session
        self._world = world
        first = next((i for i, s in enumerate(stages) if s.may_be_compiled), len(stages))
        self._leading = [stage for stage in stages[:first] if stage.step is not None]
        self._rest = stages[first:]
        self._choosing = [stage for stage in self._rest if stage.choose is not None]
        self._chosen: list[Parts] | None = None

    def _arrange(self, choices: list[Parts]) -> None:
        """Sort out what is compiled from now on."""
        self._world.read_rows()
        self._chosen = choices
        parts_of = dict(zip(map(id, self._choosing), choices, strict=True))
        self._order: list[tuple[Stage, Parts]] = []
        self._due: list[Callable[[int], float]] = []
        self._telling: list[Stage] = []
        for stage in self._rest:
            parts = parts_of.get(id(stage), stage.compiled)
            self._order.append((stage, parts))
            if stage.step is not None and stage.tells:
                self._telling.append(stage)
            elif stage.step is not None and not parts:
                self._due.append(stage.due)
        self._cuts: dict[tuple[bool, ...], list[_Run | Step]] = {}
        (whole,) = self._cut_by((False,) * len(self._due))
        assert isinstance(whole, _Run)
        self._whole = whole.addresses
        self._moves = whole.moves
        self._always_cut = not self._moves or always in self._due
        self._world.find()

    def _cut_by(self, due: tuple[bool, ...]) -> list[_Run | Step]:
        """Runs of compiled stages, and between them the stages in Python that are due."""
        if due not in self._cuts:
            parts = list[_Run | Step]()
            run = list[int]()
            moves = False
            is_due = iter(due)
            for stage, compiled in self._order:
                run += [part.address for part in compiled]
                moves |= bool(compiled) and stage.name == PLANT
                if stage.step is None or stage.tells or compiled or not next(is_due):
                    continue
                if run:
                    parts.append(_Run(np.array(run), moves))
                parts.append(stage.step)
                run = []
                moves = False
            self._cuts[due] = [*parts, _Run(np.array([*run, end_period.address]), moves)]
        return self._cuts[due]

    def run(self, end: int) -> None:
        """Run some periods, at most up to the one of this number."""
        session = self._session
        world = self._world
        try:
            has_news = self._run(end)
            session.tick += 1
            if has_news or session.tick >= end or session.finished:
                world.read_rows()
        except BaseException as error:
            if not isinstance(error, Exception):  # an interrupt, after any line
                session.tick = int(world.now["tick"][0])
            world.read_rows()
            raise

    def _run(self, end: int) -> bool:
        """Run up to the last period, which `tick` then is; whether it has something to tell."""
        session = self._session
        world = self._world
        tick = self._session.tick
        world.tell_played()
        for stage in self._leading:
            if stage.changes and stage.due(tick) <= tick:
                world.read_rows()
            if stage.step is not None:
                stage.step(tick)
        choices = [stage.choose(tick) for stage in self._choosing if stage.choose is not None]
        if choices != self._chosen:
            self._arrange(choices)
        room = world.prepare(tick)
        periods = 0 if self._always_cut else self._free_periods(tick, min(end, tick + room))
        begin_s = perf_counter()
        if periods > 0:
            world.advance(self._whole, periods)
            now = world.now
            session.tick = int(now["tick"][0]) - 1 + int(now["failed"][0])
            ran = session.tick + 1 - tick
            has_news = ran > 0 and self._account(ran)
        else:
            has_news = self._cut(tick)
        if tick:  # the first period may have compiled what it calls
            session.plant_s += perf_counter() - begin_s
        for stage in self._telling:
            if stage.step is not None and (has_news or stage.due(tick) <= session.tick):
                stage.step(session.tick)
        return has_news

    def _free_periods(self, tick: int, end: int) -> int:
        """Periods from now on in which no stage in Python has anything to do; 0 if one has now."""
        limits = [due(tick) for due in self._due]
        if limits and min(limits) <= tick:
            return 0
        limits += [stage.due(tick) + 1 for stage in self._telling]
        limits += [stage.due(tick + 1) for stage in self._leading]
        last = tick + 1 if self._session.finished else end
        return max(ceil(min(last, *limits)) - tick, 1)

    def _account(self, periods: int) -> bool:
        """Take note of periods in which the plant moved; whether there is something to tell."""
        now = self._world.now
        verdict = int(now["verdict"][0])
        if verdict != 0:
            self._world.read_rows()  # the plant may change what its shapes are made of
        self._session.plant.account(verdict, self._session.inputs, periods)
        return verdict != 0 or bool(now["touches"][0] or now["emptied"][0])

    def _cut(self, tick: int) -> bool:
        """Run one period, stages in Python between compiled ones."""
        world = self._world
        has_news = not self._moves
        now = self._world.now
        for part in self._cut_by(tuple([due(tick) <= tick for due in self._due])):
            if not isinstance(part, _Run):
                part(tick)
                continue
            world.advance(part.addresses, 1)
            if part.moves:
                has_news = self._account(1)
        return has_news or bool(now["touches"][0] or now["emptied"][0])
