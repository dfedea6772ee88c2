"""Guidance of a delivery: a flight plan whose gates wait for what really happens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import Autopilot
from musls_control.formation import Cone
from musls_control.mission.delivery import (
    DeliveryWatch,
    compile_abort,
    delivery_of,
    slack_while_weighed_m,
)
from musls_control.mission.plan import FlightPlan, Gate, GroundSpot
from musls_control.mission.spec import DeliverySpec, MissionSpec
from musls_description.rotations import rotate
from musls_description.system import SlungLoadSystem
from musls_sim.plants.interface import PlantState
from musls_sim.scenario.events import Attach, Release, When
from musls_sim.sensors.estimation import Estimator
from musls_sim.session.event_queue import EventQueue
from musls_sim.session.guidance import MissionGuidance
from musls_sim.session.loop import Observer

Array = NDArray[np.float64]

WEIGH_EVERY = 5
"""Control periods between two samples of the rotor speeds: 50 Hz."""

AT_ONCE = When(time_s=0.0)


class DeliveryGuidance(MissionGuidance):
    """Plays the plan of a delivery; waits at its gates, opens hooks, aborts.

    Attributes:
        watch: What it waits for, and what was weighed.
    """

    def __init__(
        self,
        plan: FlightPlan,
        autopilot: Autopilot,
        observers: Sequence[Observer],
        period_s: float,
        *,
        mission: MissionSpec,
        cone: Cone,
        system: SlungLoadSystem,
        state: PlantState,
        estimator: Estimator,
        gravity_m_s2: float,
    ) -> None:
        """Prepare all set-points.

        Args:
            plan: From `compile_delivery`.
            autopilot: See `MissionGuidance`.
            observers: See `MissionGuidance`.
            period_s: See `MissionGuidance`.
            mission: What is flown.
            cone: Formation.
            system: Drones, cables, load.
            state: Rotor speeds are measured; places of the start.
            estimator: Knows motion of load and drones.
            gravity_m_s2: Gravity.
        """
        super().__init__(plan, autopilot, observers, period_s)
        self._mission, self._cone, self._given = mission, cone, delivery_of(mission)
        self._state, self._estimate, self._system = state, estimator.estimate, system
        place = state.position_enu_m
        self._ground = GroundSpot(place[0].copy(), 0.0, place[1:].copy())
        self._cruise_m = float(plan.load_pose[:, 2].max())
        self._gates = {gate.row: gate for gate in plan.gates}
        slack_m = slack_while_weighed_m(self._given, float(place[0, 2]), mission.slack_height_m)
        self.watch = DeliveryWatch(self._given, system, slack_m, gravity_m_s2, self)
        self._queue: EventQueue | None = None

    @property
    def payload_kg(self) -> float | None:
        """What was weighed; None before."""
        return self.watch.payload_kg

    def act_through(self, queue: EventQueue) -> None:
        """Take the queue through which hooks open and close."""
        self._queue = queue
        check_hooks_of(self._given, len(self._system.cables), queue)
        if self._given.pick_up == "hook":
            queue.apply(Release(when=AT_ONCE))

    def abort(self, why: str) -> None:
        """Give the delivery up, as soon as the drones fly in formation; not while they land."""
        self.watch.abort(why)

    def replace(self, plan: FlightPlan, tick: int, gone: NDArray[np.bool_]) -> None:
        """See `MissionGuidance.replace`: what takes over waits for nothing."""
        self._gates = _NONE
        super().replace(plan, tick, gone)

    def step(self, tick: int) -> None:
        """See `MissionGuidance.step`."""
        if tick % WEIGH_EVERY == 0:
            self._weigh()
        if self.watch.turns_back and self._gates is not _NONE:
            self._turn_back(tick)
        if tick >= self._next_tick and (gate := self._gates.get(self._row + 1)) is not None:
            speed = float(np.linalg.norm(self._estimate.velocity_enu_m_s[0]))
            if not self.watch.passes(gate, tick * self._period_s, speed):
                self._ticks += 1
                self._begin_s += self._period_s
                return
            del self._gates[self._row + 1]
        super().step(tick)

    def _enter(self, time_s: float, stage: str) -> None:
        super()._enter(time_s, stage)
        self.watch.enter(stage)

    def _weigh(self) -> None:
        drones = self._estimate.drones
        up = rotate(drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))[:, 2]
        self.watch.scale.add(
            WEIGH_EVERY * self._period_s,
            self._state.rotor_speed_rad_s,
            up,
            drones.velocity_enu_m_s[:, 2],
        )

    def open(self) -> None:
        """Open all hooks; drones that carried the load fly on with the thrust for themselves."""
        assert self._queue is not None
        self._queue.apply(Release(when=AT_ONCE, name="delivered"))
        if self._given.drop == "air":
            self._autopilot.lighten(self.watch.left_share())

    def close(self) -> None:
        """See `Hooks`."""
        assert self._queue is not None
        for hook in hooks_of(self._given, len(self._system.cables)):
            self._queue.apply(hook)

    @property
    def closed(self) -> int:
        """See `Hooks`."""
        assert self._queue is not None
        return sum(event.kind == "attach" for event in self._queue.happened)

    def note(self, time_s: float, kind: str, what: str) -> None:
        """See `Hooks`."""
        assert self._queue is not None
        self._queue.note(time_s, kind, what)

    def _turn_back(self, tick: int) -> None:
        """Replace the rest of the flight."""
        self._gates = _NONE
        time_s = tick * self._period_s
        self.note(time_s, "abort", f"{self.watch.aborted}: {self._given.abort}")
        pose = self._plan.load_pose[max(self._row, 0)]
        plan = compile_abort(self._mission, self._cone, self._ground, pose, self._cruise_m)
        self._take(plan, tick)


_NONE: dict[int, Gate] = {}
"""Gates of a flight that was aborted."""


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
