"""Python's part in a batch: events, and answers to losses, in the worlds in which they are due.

Both are decided by a session, the one whose memory the worlds begin with. It becomes what a world
is, its arrays and its state in Python, `EventQueue` and `FlightGuidance` act as in any flight, and
the world gets back what has become of them.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.mission.plan import FlightPlan
from musls_control.mission.rows import ASIDE, CARRIES, SPREADS
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.layout import Gathered
from musls_description.numerics.snapshots import Keeper, Kept
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


@dataclass(frozen=True)
class Decided:
    """Decisions of Python for one world.

    Attributes:
        host: Host of the batch, which decides.
        kept: State of plan, losses and events.
        flown: Plan as the world's memory has it.
    """

    host: Host
    kept: Kept
    flown: dict[str, Any]


def flown(plan: FlightPlan, events: EventQueue, gone: NDArray[np.bool_]) -> dict[str, Any]:
    """See `rows_of`: worlds ask when stages begin or end that events wait for."""
    has_event = np.isin(plan.stage_names, events.stages)[plan.stage]
    begins = plan.begins
    values = rows_of(plan, gone, begins & (has_event | np.roll(has_event, 1)))
    if gone.any():  # what lies on the ground is Python's
        rows = values["plan_rows"]
        rows["asks"] |= begins & (rows["phase"] == SPREADS)
        rows["phase"] = CARRIES
    return values


class Host:
    """A session that decides for worlds.

    Attributes:
        first: State of a world before any decision.
    """

    def __init__(self, session: Session, arrays: Gathered, *, flies: bool) -> None:
        """`arrays`: its own, as a world has them in one piece; `flies`: the mission's plan."""
        guidance = session.guidance
        assert isinstance(guidance, MissionGuidance)
        self._guidance = guidance
        self._plant = session.plant
        self._period_s = session.plant.period_s
        self._record = session.plant.record
        self._flies = flies
        self._lock = threading.Lock()
        self._arrays = arrays
        self._flight = guidance.flight
        self._events = session.events
        objects = {"flight": self._flight, "events": self._events}
        alike = {"scenario": session.scenario, "plan": guidance.plan}
        others = session, guidance, self._events.context, self._flight.known, session.observers
        roots = (root for root, _ in arrays.roots.values())
        self._keeper = Keeper(objects, alike, (*others, *roots))
        nobody = np.zeros(len(guidance.setpoint.data), bool)
        self.first = Decided(
            self, self._keeper.keep(), flown(guidance.plan, session.events, nobody)
        )

    @property
    def decides(self) -> bool:
        """Whether it has anything to decide."""
        return self._events.waits or self._flight.contingency is not None

    def due(self, tick: int) -> int:
        """Period, from one on, in which something is to be decided as far as time tells."""
        if not self._flies and tick == 0 and self._events.waits:
            return 0
        next_s = min(self._events.next_s, self._flight.next_reaction_s - ROUNDING_S)
        return NEVER if np.isinf(next_s) else max(tick, ceil(next_s / self._period_s))

    def decide(self, known: Decided, memory: Array, record: NDArray[np.void]) -> Decided:
        """Decide what is due in a world; returns what is known then."""
        with self._lock:
            self._keeper.put_back(known.kept)
            plan = known.flown
            try:
                plan = self._decide(known.flown, memory, record)
            except SimulationDiverged:
                record["failed"] = 1
            return Decided(self, self._keeper.keep(), plan)

    def _decide(
        self, now: dict[str, Any], memory: Array, record: NDArray[np.void]
    ) -> dict[str, Any]:
        """Decide what is due; returns the plan that is flown then."""
        flight = self._flight
        tick = int(record["tick"][0])
        time_s = tick * self._period_s
        way = flight.contingency
        record["due"] = NEVER
        before = flight.player.plan
        self._arrays.write(memory)
        if way is not None and (way.has_news or flight.next_reaction_s - ROUNDING_S <= time_s):
            flight.look(time_s)
            now, before = self._give(now, before, memory, record)
        if self._flies:
            self._follow(memory, record)
            spreads = flight.player.plan.rows["phase"][flight.player.row] == SPREADS
            if way is not None and way.gone.any() and spreads and flight.down["spread_from"] < 0:
                flight.come_down(time_s)
                flight.found[:, ASIDE:] = 0.0  # is in the plan now
                self._arrays.read(memory)
                now, before = self._give(now, before, memory, record)
                self._follow(memory, record)
        self._guidance.stage = flight.player.stage
        self._events.step(tick)
        if self._plant.record is not self._record:
            raise ConfigError("events: one has changed the structure of a world of a batch")
        self._arrays.read(memory)
        record["due"] = self.due(tick + 1)
        return now

    def _follow(self, memory: Array, record: NDArray[np.void]) -> None:
        """Have compiled code go to the row that is due."""
        advance_worlds(_follow(), record.ctypes.data, 0, 1, 1)
        self._arrays.write(memory)

    def _give(
        self, now: dict[str, Any], before: FlightPlan, memory: Array, record: NDArray[np.void]
    ) -> tuple[dict[str, Any], FlightPlan]:
        """Give the world another plan, if there is one; returns what it flies."""
        plan = self._flight.player.plan
        way = self._flight.contingency
        assert way is not None
        if plan is not before:
            now = flown(plan, self._events, way.gone)
            self._arrays.read(memory)
            LAYOUT.fill(record, now)
        return now, plan
