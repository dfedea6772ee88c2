"""Guidance of a delivery: a flight plan whose gates wait for what really happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import Autopilot
from musls_control.delivery import compile_abort, delivery_of
from musls_control.formation import Cone
from musls_control.gates import HOOKED, RELEASED, RESTED, WEIGHED, Gate
from musls_control.mission import FlightPlan, GroundSpot
from musls_control.mission_spec import MissionSpec
from musls_control.payload_scale import PayloadScale
from musls_description.rotations import rotate
from musls_description.system import SlungLoadSystem
from musls_sim.hooks import Attach, Release
from musls_sim.plants.interface import PlantState
from musls_sim.sensors.estimation import Estimator
from musls_sim.session.event_queue import EventQueue
from musls_sim.session.guidance import MissionGuidance
from musls_sim.session.observer import Observer
from musls_sim.triggers import When

Array = NDArray[np.float64]

WEIGH_EVERY = 5
"""Control periods between two samples of the rotor speeds: 50 Hz."""


@runtime_checkable
class Lightened(Protocol):
    """A flight stack that can be told that its drones weigh less from now on."""

    def lighten(self, ratio: Array) -> None:
        """Hover thrust for a share of the mass that is flown now, (n_drones,)."""


class DeliveryGuidance(MissionGuidance):
    """Plays the plan of a delivery; waits at its gates, opens hooks, aborts.

    Attributes:
        scale: Weighs what the drones carry.
        payload_kg: What was weighed; None before.
        aborted: Why the delivery was given up; empty if it was not.
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
        self._waits_since: int | None = None
        self._queue: EventQueue | None = None
        constants = [[r.thrust_coefficient_n_s2 for r in d.rotors] for d in system.drones]
        own = [
            drone.mass_kg + hanging_share(cable.length_m, self._slack_m) * cable.mass_kg
            for drone, cable in zip(system.drones, system.cables, strict=True)
        ]
        self.scale = PayloadScale(np.array(own), np.array(constants), gravity_m_s2)
        self._cables_kg = sum(
            drone.mass_kg + cable.mass_kg
            for drone, cable in zip(system.drones, system.cables, strict=True)
        ) - float(sum(own))
        self.payload_kg: float | None = None
        self.aborted = ""

    @property
    def _slack_m(self) -> float:
        """By how much the cables are too long while the drones weigh themselves; infinite: open."""
        if self._given.pick_up == "hook":
            return np.inf
        return float(self._ground.load_position_enu_m[2] - self._mission.slack_height_m)

    def act_through(self, queue: EventQueue) -> None:
        """Take the queue through which hooks open and close."""
        self._queue = queue
        queue.check(Release(when=When(time_s=0.0)))
        if self._given.pick_up == "hook":
            for hook in self._hooks():
                queue.check(hook)
            queue.apply(Release(when=When(time_s=0.0)))

    def _hooks(self) -> list[Attach]:
        """What closes the hooks of all cables."""
        given = self._given
        return [
            Attach(
                when=When(time_s=0.0),
                cable=1 + i,
                distance_m=given.hook_distance_m,
                speed_m_s=given.hook_speed_m_s,
            )
            for i in range(len(self._system.cables))
        ]

    def abort(self, why: str) -> None:
        """Give the delivery up, as soon as the drones fly in formation; not while they land."""
        if not self.aborted and self.stage not in ("spread", "land", "disarmed"):
            self.aborted = why

    def replace(self, plan: FlightPlan, tick: int, gone: NDArray[np.bool_]) -> None:
        """See `MissionGuidance.replace`: what takes over waits for nothing."""
        self._gates = _NONE
        super().replace(plan, tick, gone)

    def step(self, tick: int) -> None:
        """See `MissionGuidance.step`."""
        if tick % WEIGH_EVERY == 0:
            self._weigh()
        flies = self.stage not in ("", "spool_up", "take_off", "form_up")
        if self.aborted and flies and self._gates is not _NONE:
            self._turn_back(tick)
        if tick >= self._next_tick and (gate := self._gates.get(self._row + 1)) is not None:
            if not self._passes(gate, tick):
                self._ticks += 1
                self._begin_s += self._period_s
                return
            del self._gates[self._row + 1]
            self._waits_since = None
        super().step(tick)

    def _enter(self, time_s: float, stage: str) -> None:
        before = self.stage
        super()._enter(time_s, stage)
        if before == stage:
            return
        if before == "tare":
            self.scale.tare()
        if stage in ("tare", "weigh"):
            self.scale.begin()
        if stage == "pick_up" and self._queue is not None:
            for hook in self._hooks():
                self._queue.apply(hook)

    def _weigh(self) -> None:
        drones = self._estimate.drones
        up = rotate(drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))[:, 2]
        self.scale.add(
            WEIGH_EVERY * self._period_s,
            self._state.rotor_speed_rad_s,
            up,
            drones.velocity_enu_m_s[:, 2],
        )

    def _passes(self, gate: Gate, tick: int) -> bool:
        """Whether a gate lets the next row through; gives up after its time."""
        assert self._queue is not None
        time_s = tick * self._period_s
        if self._waits_since is None:
            self._waits_since = tick
            if gate.what == WEIGHED:
                own = self.scale.own_kg
                self.payload_kg = float((self.scale.masses_kg() - own).sum()) - self._cables_kg
                self._queue.note(time_s, "weighed", f"load: {self.payload_kg:.3f} kg")
        if self._holds(gate):
            if gate.what == RESTED:
                self._let_go()
            return True
        if (tick - self._waits_since) * self._period_s > gate.timeout_s:
            self.abort(f"not {gate.what} after {gate.timeout_s:g} s")
        return False

    def _holds(self, gate: Gate) -> bool:
        assert self._queue is not None
        if gate.what == HOOKED:
            closed = [event for event in self._queue.happened if event.kind == "attach"]
            return len(closed) >= len(self._system.cables)
        slack_kg = self._given.slack_share * (self.payload_kg or 0.0)
        if gate.what == RELEASED:
            return self.scale.carried_kg < slack_kg
        if gate.what == RESTED and self._given.drop == "ground":
            speed = float(np.linalg.norm(self._estimate.velocity_enu_m_s[0]))
            return self.scale.carried_kg < slack_kg and speed < self._given.rest_speed_m_s
        return True

    def _let_go(self) -> None:
        """Open all hooks; drones that carried the load fly on with the thrust for themselves."""
        assert self._queue is not None
        self._queue.apply(Release(when=When(time_s=0.0), name="delivered"))
        if self._given.drop == "air" and isinstance(self._autopilot, Lightened):
            carried = self.scale.masses_kg()
            # The cables go with the drones.
            left = carried - (self.payload_kg or 0.0) * carried / carried.sum()
            self._autopilot.lighten(left / carried)

    def _turn_back(self, tick: int) -> None:
        """Replace the rest of the flight."""
        assert self._queue is not None
        self._gates = _NONE
        time_s = tick * self._period_s
        self._queue.note(time_s, "abort", f"{self.aborted}: {self._given.abort}")
        pose = self._plan.load_pose[max(self._row, 0)]
        plan = compile_abort(self._mission, self._cone, self._ground, pose, self._cruise_m)
        self._take(plan, tick)


_NONE: dict[int, Gate] = {}
"""Gates of a flight that was aborted."""


def hanging_share(length_m: float, slack_m: float) -> float:
    """Share of a slack cable that hangs on its upper end, the lower one being as low as can be."""
    return 1.0 if slack_m >= length_m else 1.0 - 0.5 * max(slack_m, 0.0) / length_m
