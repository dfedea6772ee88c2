"""Python's part in a batch: events, and answers to losses, in the worlds in which they are due.

Both are decided by a session, the one whose memory the worlds begin with. Its arrays take what a
world's have, `EventQueue` and `FlightGuidance` act on them as in any flight, and the world gets
back what has become of them.
"""

from __future__ import annotations

import copy
import functools
import threading
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.mission.guidance import FlightGuidance
from musls_control.mission.plan import FlightPlan
from musls_control.mission.rows import ASIDE, CARRIES, SPREADS
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.layout import Gathered
from musls_sim.plants.interface import SimulationDiverged
from musls_sim.session.compiled_stages.fields import LAYOUT
from musls_sim.session.compiled_stages.session_memory import rows_of
from musls_sim.session.compiled_stages.world import NEVER, advance_worlds, come_down, play_plan
from musls_sim.session.event_queue import EventQueue
from musls_sim.session.guidance import ROUNDING_S, MissionGuidance
from musls_sim.session.session import Session


@functools.cache
def _follow() -> NDArray[np.int64]:
    """Addresses of the stages that go to the row of a plan that is due."""
    return np.array([play_plan.address, come_down.address])


@dataclass
class Decided:
    """Decisions of Python for one world.

    Attributes:
        host: Host of the batch, which decides.
        flight: Plan and losses of the world.
        events: Events that wait, and those that have happened.
        plan: Plan that is flown.
        flown: Plan as the world's memory has it.
    """

    host: Host
    flight: FlightGuidance
    events: EventQueue
    plan: FlightPlan
    flown: dict[str, Any]


def flown(plan: FlightPlan, events: EventQueue, gone: NDArray[np.bool_]) -> dict[str, Any]:
    """See `rows_of`: worlds ask when stages begin or end that events wait for."""
    named, begins = np.isin(plan.stage_names, events.stages)[plan.stage], plan.begins
    made = rows_of(plan, gone, begins & (named | np.roll(named, 1)))
    if gone.any():  # what lies on the ground is Python's
        rows = made["plan_rows"]
        rows["asks"] |= begins & (rows["phase"] == SPREADS)
        rows["phase"] = CARRIES
    return made


class Host:
    """A session that decides for worlds.

    Attributes:
        first: State of a world before any decision.
    """

    def __init__(self, session: Session, arrays: Gathered, *, flies: bool) -> None:
        """`arrays`: its own, as a world has them in one piece; `flies`: the mission's plan."""
        guidance, period_s = session.guidance, session.plant.period_s
        assert isinstance(guidance, MissionGuidance)
        self._guidance, self._plant, self._period_s = guidance, session.plant, period_s
        self._record, self._flies, self._lock = session.plant.record, flies, threading.Lock()
        self._arrays = arrays
        flight, events = guidance.flight, session.events
        gone, plan = np.zeros(len(guidance.setpoint.data), bool), guidance.plan
        self.first = Decided(self, flight, events, plan, flown(plan, events, gone))
        scenario = session.scenario
        shared = events.context, flight.known, *guidance.arrays.values(), *scenario.events
        shared = self, *shared, scenario.mission, scenario.formation
        self._shared = {id(one): one for one in shared}

    @property
    def decides(self) -> bool:
        """Whether it has anything to decide."""
        return self.first.events.waits or self.first.flight.contingency is not None

    def due(self, known: Decided, tick: int) -> int:
        """Period, from one on, in which something is to be decided as far as time tells."""
        if not self._flies and tick == 0 and known.events.waits:
            return 0
        next_s = min(known.events.next_s, known.flight.next_reaction_s - ROUNDING_S)
        return NEVER if np.isinf(next_s) else max(tick, ceil(next_s / self._period_s))

    def decide(self, known: Decided, memory: Array, record: NDArray[np.void]) -> Decided:
        """Decide what is due in a world; returns what is known then."""
        with self._lock:
            known = copy.deepcopy(known, self._shared | {id(known.flown): known.flown})
            try:
                self._decide(known, memory, record)
            except SimulationDiverged:
                record["failed"] = 1
        return known

    def _decide(self, known: Decided, memory: Array, record: NDArray[np.void]) -> None:
        flight, tick = known.flight, int(record["tick"][0])
        time_s, way, record["due"] = tick * self._period_s, flight.contingency, NEVER
        self._take(memory)
        if way is not None and (way.has_news or flight.next_reaction_s - ROUNDING_S <= time_s):
            flight.look(time_s)
            self._give(known, memory, record)
        if self._flies:
            self._follow(memory, record)
            spreads = flight.player.plan.rows["phase"][flight.player.row] == SPREADS
            if way is not None and way.gone.any() and spreads and flight.down["spread_from"] < 0:
                flight.come_down(time_s)
                flight.found[:, ASIDE:] = 0.0  # is in the plan now
                self._put(memory)
                self._give(known, memory, record)
                self._follow(memory, record)
        self._guidance.stage = flight.player.stage
        known.events.step(tick)
        if self._plant.record is not self._record:
            raise ConfigError("events: one has changed the structure of a world of a batch")
        self._put(memory)
        record["due"] = self.due(known, tick + 1)

    def _follow(self, memory: Array, record: NDArray[np.void]) -> None:
        """Have compiled code go to the row that is due."""
        advance_worlds(_follow(), record.ctypes.data, 0, 1, 1)
        self._take(memory)

    def _take(self, memory: Array) -> None:
        """Take over the arrays of a world."""
        for own, its in self._arrays.pairs(memory):
            own[:] = its

    def _put(self, memory: Array) -> None:
        """Give the world its arrays back."""
        for own, its in self._arrays.pairs(memory):
            its[:] = own

    def _give(self, known: Decided, memory: Array, record: NDArray[np.void]) -> None:
        """Give the world another plan, if there is one."""
        player, way = known.flight.player, known.flight.contingency
        assert way is not None
        if player.plan is known.plan:
            return
        known.plan = player.plan
        known.flown = flown(player.plan, known.events, way.gone)
        self._put(memory)
        LAYOUT.fill(record, known.flown)
