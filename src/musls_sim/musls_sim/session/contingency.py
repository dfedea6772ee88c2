"""Notices the loss of a drone in flight and lets the others take its part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from musls_control.contingency.loss import MIN_DRONES, ContingencySpec, LossDetector
from musls_control.contingency.rest_of_flight import (
    UNWATCHED,
    Situation,
    aside,
    landed_clear,
    rest_of_flight,
    room_to_land,
    sentence,
)
from musls_control.estimate import Estimate
from musls_description.config.errors import ConfigError
from musls_description.hanging.reallocation import Reallocation
from musls_description.system.slung_system import formation_of
from musls_sim.plants.changes import CutCable
from musls_sim.scenario.events import EventContext
from musls_sim.scenario.physics import CONTROL_PERIOD_S
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.guidance import Guidance, MissionGuidance

CHECK_PERIODS = 5
"""Control periods between two looks: 50 Hz."""

MIN_LEFT = 3
"""With fewer drones no new formation is looked for."""

Note = Callable[[float, str, str], None]


def contingency_of(
    scenario: Scenario, context: EventContext, guidance: Guidance, note: Note, *, guided: bool
) -> Contingency | None:
    """Contingency step of a scenario; None where it has no `contingency`.

    `note`: writes down what happened: time, kind, text.
    `guided`: whether the mission's set-points fly the drones, and not a controller.
    """
    spec = scenario.contingency
    if spec is None:
        return None
    if not isinstance(guidance, MissionGuidance) or not guided:
        raise ConfigError(
            "contingency changes the set-points of the formation and needs controller.kind: "
            f"formation, not {scenario.controller.kind}; or leave contingency out "
            "(--set contingency=null)"
        )
    system = formation_of(scenario.system, "contingency")
    if system.n_drones < MIN_DRONES:
        raise ConfigError(
            f"contingency: {system.name} has {system.n_drones} drones; the loss of one can be "
            f"survived by {MIN_DRONES} or more"
        )
    if spec.hook == "release":
        try:
            context.check(CutCable(1, 1))
        except ConfigError as error:
            raise ConfigError(f"contingency.hook = release: {error}; or hook: hold") from None
    return Contingency(scenario, spec, context, guidance, context.estimator.estimate, note)


class Contingency:
    """Watches for losses and answers them.

    Attributes:
        answers: The formations that were found, one for each loss; None where there was none.
    """

    def __init__(
        self,
        scenario: Scenario,
        spec: ContingencySpec,
        context: EventContext,
        guidance: MissionGuidance,
        estimate: Estimate,
        note: Note,
    ) -> None:
        self._scenario, self._spec, self._context = scenario, spec, context
        self._system = system = formation_of(scenario.system, "contingency")
        self._guidance, self._estimate, self._note = guidance, estimate, note
        n = system.n_drones
        share = system.load.mass_kg * scenario.physics.gravity_m_s2 / n
        self._detector = LossDetector(spec, np.full(n, share), CHECK_PERIODS * CONTROL_PERIOD_S)
        self._gone, self._idle = np.zeros(n, bool), np.zeros(n, bool)
        self._act_at: dict[int, int] = {}  # ticks, by drones (from 0)
        self._spreads = False
        self.answers: list[Reallocation | None] = []

    def next_look(self, tick: int) -> float:
        """First period, from one on, in which there is something to look at, or to do."""
        return min([-(-tick // CHECK_PERIODS) * CHECK_PERIODS, *self._act_at.values()])

    def step(self, tick: int) -> None:
        """Look, and do what is due."""
        if tick % CHECK_PERIODS == 0 and self._guidance.stage not in UNWATCHED:
            self._look(tick)
        if self._gone.any() and not self._spreads and self._guidance.stage == "spread":
            self._spreads = True
            self._land_clear(tick)
        for drone in [drone for drone, at in self._act_at.items() if at <= tick]:
            del self._act_at[drone]
            self._answer(drone, tick)

    def _land_clear(self, tick: int) -> None:
        """Land beside the drones that have fallen down, not on them."""
        guidance = self._guidance
        found = self._estimate.drones.position_enu_m
        room = room_to_land(self._system, self._spec.clearance_m)
        plan = landed_clear(guidance.plan, guidance.row, self._gone, found, *room)
        if plan is not None:
            guidance.replace(plan, tick, self._gone)

    def _look(self, tick: int) -> None:
        heard = self._context.links.heard.position_enu_m
        fallen = self._detector.fallen(self._estimate, heard)
        lifting = self._guidance.stage == "lift"
        slack = self._detector.slackened(self._estimate, lifting=lifting)
        act_tick = tick + round(self._spec.delay_s / CONTROL_PERIOD_S)
        for seen, falls in ((fallen, True), (slack, False)):
            for drone, why in seen:
                if self._gone[drone] or self._idle[drone]:
                    continue
                (self._gone if falls else self._idle)[drone] = True
                self._note(tick * CONTROL_PERIOD_S, "drone_given_up", f"drone_{drone + 1}: {why}")
                self._act_at[drone] = act_tick

    def _answer(self, lost: int, tick: int) -> None:
        """Let go what is lost, and change the plan."""
        time_s, spec = tick * CONTROL_PERIOD_S, self._spec
        if spec.hook == "release":  # what is left of a cable that is slack is let go, too
            self._context.apply(CutCable(lost + 1, 1))
            self._note(time_s, "hook_opened", f"cable_{lost + 1} at the load")
        found = self._formation()
        self.answers.append(found)
        guidance, scenario = self._guidance, self._scenario
        offsets = scenario.formation.offsets_m(len(self._gone)).copy()
        if found is not None:
            offsets[:] = found.offsets_m
        offsets[self._gone] = np.nan
        for drone in np.flatnonzero(self._idle):
            offsets[drone] = aside(scenario.formation, len(self._gone), int(drone))
        plan, row = guidance.plan, guidance.row
        now = Situation(plan, row, plan.drone_position_enu_m[row].copy(), offsets)
        plan = rest_of_flight(now, found, self._system, scenario.mission, spec)
        guidance.replace(plan, tick, self._gone)
        self._note(time_s, "reallocated", sentence(found, spec))

    def _formation(self) -> Reallocation | None:
        lost = np.flatnonzero(self._gone | self._idle) + 1
        hanging = np.flatnonzero(self._gone) + 1 if self._spec.hook == "hold" else np.zeros(0, int)
        if len(self._gone) - len(lost) < MIN_LEFT:
            return None
        return self._scenario.hanging_for("contingency").without(
            lost.tolist(),
            margin=self._spec.margin,
            clearance_m=self._spec.clearance_m,
            hanging=hanging.tolist(),
        )
