"""Guidance of a delivery: a flight plan whose gates wait for what really happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import Autopilot
from musls_control.mission.delivery import Delivery, Hooks
from musls_control.mission.plan import FlightPlan
from musls_control.mission.player import PlanPlayer
from musls_control.mission.spec import DeliverySpec
from musls_sim.scenario.events import Attach, Release, When
from musls_sim.session.event_queue import EventQueue
from musls_sim.session.guidance import MissionGuidance
from musls_sim.session.loop import Observer

Array = NDArray[np.float64]

WEIGH_EVERY = 5
"""Control periods between two samples of the rotor speeds: 50 Hz."""

AT_ONCE = When(time_s=0.0)


class QueueHooks:
    """Hooks that open and close by events of the session, see `musls_control.mission.delivery`."""

    def __init__(self, queue: EventQueue) -> None:
        """Nothing is known yet of the hooks."""
        self._queue, self._closing = queue, list[Attach]()

    def begin(self, given: DeliverySpec, n_cables: int) -> None:
        """Open what is to be closed later.

        Raises:
            ConfigError: This cable model cannot have such hooks.
        """
        check_hooks_of(given, n_cables, self._queue)
        if given.pick_up == "hook":
            self._closing = hooks_of(given, n_cables)
            self._queue.apply(Release(when=AT_ONCE))

    def open(self) -> None:
        """See `Hooks`."""
        self._queue.apply(Release(when=AT_ONCE, name="delivered"))

    def close(self) -> None:
        """See `Hooks`."""
        for hook in self._closing:
            self._queue.apply(hook)

    @property
    def closed(self) -> int:
        """See `Hooks`."""
        return sum(event.kind == "attach" for event in self._queue.happened)

    def note(self, time_s: float, kind: str, what: str) -> None:
        """See `Hooks`."""
        self._queue.note(time_s, kind, what)


class DeliveryGuidance(MissionGuidance):
    """Plays the plan of a delivery; it waits at its gates, opens hooks, aborts.

    Attributes:
        watch: What it waits for, and what was weighed.
    """

    watch: Delivery

    def __init__(
        self,
        plan: FlightPlan,
        autopilot: Autopilot,
        observers: Sequence[Observer],
        period_s: float,
        make_watch: Callable[[Hooks], Delivery],
    ) -> None:
        """Prepare; `act_through` completes it.

        `make_watch`: makes what watches over the delivery, given its hooks.
        """
        super().__init__(plan, autopilot, observers, period_s)
        self._make_watch = make_watch
        self.can_abort = True

    @property
    def payload_kg(self) -> float | None:
        """What was weighed; None before."""
        return self.watch.payload_kg

    def act_through(self, queue: EventQueue) -> None:
        """Take the queue through which hooks open and close.

        Raises:
            ConfigError: This cable model cannot have such hooks.
        """
        hooks = QueueHooks(queue)
        self.watch = self._make_watch(hooks)
        hooks.begin(self.watch.given, self.watch.n_cables)
        self._player = PlanPlayer(self.plan, self.watch)

    def abort(self, why: str) -> None:
        """Give the delivery up, as soon as the drones fly in formation; not while they land."""
        self.watch.abort(why)

    def replace(self, plan: FlightPlan, tick: int, gone: NDArray[np.bool_]) -> None:
        """See `MissionGuidance.replace`: what takes over waits for nothing."""
        self._player.keeper = None
        super().replace(plan, tick, gone)

    def step(self, tick: int) -> None:
        """See `MissionGuidance.step`."""
        player, period_s = self._player, self._period_s
        if tick % WEIGH_EVERY == 0:
            self.watch.weigh(WEIGH_EVERY * period_s)
        if self.watch.turns_back and player.keeper is not None:
            player.keeper = None
            self.watch.tell_abort(tick * period_s)
            player.take(self.watch.way_back(self.plan.load_pose[self.row]), tick * period_s)
        super().step(tick)

    def _enter(self, time_s: float, stage: str) -> None:
        """See `MissionGuidance`; drones that let the load go fly on with their own weight."""
        lets_go = stage == "release" != self.stage
        super()._enter(time_s, stage)
        self.watch.enter(stage)
        if lets_go and self.watch.given.drop == "air":
            self._autopilot.lighten(self.watch.left_share())


def hooks_of(given: DeliverySpec, n_cables: int) -> list[Attach]:
    """What closes the hooks of all cables."""
    close_m, slow_m_s = given.hook_distance_m, given.hook_speed_m_s
    return [
        Attach(when=AT_ONCE, cable=1 + i, distance_m=close_m, speed_m_s=slow_m_s)
        for i in range(n_cables)
    ]


def check_hooks_of(given: DeliverySpec, n_cables: int, queue: EventQueue) -> None:
    """Refuse, before the flight, a delivery whose hooks this cable model cannot have.

    Raises:
        ConfigError: It cannot.
    """
    queue.check(Release(when=AT_ONCE))
    if given.pick_up == "hook":
        for hook in hooks_of(given, n_cables):
            queue.check(hook)
