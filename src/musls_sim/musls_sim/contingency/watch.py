"""Notices the loss of a drone in flight and lets the others take its part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_control.estimate import Estimate
from musls_control.phases import GROUND_PHASES
from musls_description.drone import tip_radius_m
from musls_description.errors import ConfigError
from musls_description.system import formation_of
from musls_sim.contingency.reallocation import Reallocation, reallocate
from musls_sim.contingency.recovery import Situation, aside, continued, landed, landed_clear
from musls_sim.plants.changes import CutCable
from musls_sim.scenario.events import EventContext
from musls_sim.scenario.physics import CONTROL_PERIOD_S
from musls_sim.scenario.scenario import LEAST_DRONES, ContingencySpec, Scenario
from musls_sim.session.guidance import Guidance, MissionGuidance

# ---------- How the loss of a drone or of a cable is noticed: by measurements only


class LossDetector:
    """Watches places of drones and forces of cables."""

    def __init__(self, spec: ContingencySpec, even_share_n: Array, period_s: float) -> None:
        """`even_share_n`: even part of the load's weight, of each cable, (n,)."""
        self._spec, self._slack_n, self._period_s = spec, spec.slack_share * even_share_n, period_s
        self._slack_s, self._taut_s = np.zeros((2, len(even_share_n)))
        self._carried = np.zeros(len(even_share_n), bool)

    def fallen(self, estimate: Estimate, setpoint_enu_m: Array) -> list[tuple[int, str]]:
        """Drones (from 0) that fall, and what was seen.

        `setpoint_enu_m`: where the drones are to be, (n, 3).
        """
        drones = estimate.drones
        below = setpoint_enu_m[:, 2] - drones.position_enu_m[:, 2]
        sinking = -drones.velocity_enu_m_s[:, 2]
        found = (below > self._spec.drop_m) & (sinking > self._spec.sink_m_s)
        return [
            (int(i), f"{below[i]:.2f} m below its set-point, sinking at {sinking[i]:.1f} m/s")
            for i in np.flatnonzero(found)
        ]

    def slackened(self, estimate: Estimate, *, lifting: bool = False) -> list[tuple[int, str]]:
        """Cables (from 0) that have carried nothing for too long, and what was seen.

        `lifting`: the load is only being taken up: a cable that has not carried yet, for as long as
        it may be slack, is not lost, it is late.
        """
        slack = estimate.tension_n[:, 0] < self._slack_n
        self._taut_s = np.where(slack, 0.0, self._taut_s + self._period_s)
        self._carried |= self._taut_s > self._spec.slack_s
        counts = slack & self._carried if lifting else slack
        self._slack_s = np.where(counts, self._slack_s + self._period_s, 0.0)
        late = self._slack_s > self._spec.slack_s
        return [
            (int(i), f"no force in its cable for {self._slack_s[i]:.1f} s")
            for i in np.flatnonzero(late)
        ]


Array = NDArray[np.float64]

EVERY = 5
"""Control periods between two looks: 50 Hz."""

TAUT_SHARE = 0.95
"""Drones land no farther from the load than this share of their cable."""

LEAST_LEFT = 3
"""With fewer drones no new formation is looked for."""

WATCHED_NOT = GROUND_PHASES - {"lift"}
"""Phases in which nothing is watched: the load stands, or is being set down."""


Note = Callable[[float, str, str], None]


@dataclass(frozen=True)
class _Loss:
    """A loss that was noticed, of a drone (from 0), and when something is done about it.

    Attributes:
        falls: Whether the drone itself is lost, and not its cable only.
    """

    drone: int
    falls: bool
    act_tick: int


def contingency_of(
    scenario: Scenario, context: EventContext, guidance: Guidance, note: Note, *, guided: bool
) -> Contingency | None:
    """What is done when a drone is lost; None where the scenario does not say.

    `note`: writes down what happened: time, kind, text.
    `guided`: whether the mission's set-points fly the drones, and not a controller.

    Raises:
        ConfigError: This flight cannot have one.
    """
    if scenario.contingency is None:
        return None
    if not isinstance(guidance, MissionGuidance) or not guided or context.estimator is None:
        raise ConfigError(
            "contingency changes the set-points of the formation and needs controller.kind: "
            f"formation, not {scenario.controller.kind}; or leave contingency out "
            "(--set contingency=null)"
        )
    return Contingency(scenario, context, guidance, context.estimator.estimate, note)


class Contingency:
    """Watches for losses and answers them.

    Attributes:
        answers: The formations that were found, one for each loss; None where there was none.
    """

    def __init__(
        self,
        scenario: Scenario,
        context: EventContext,
        guidance: MissionGuidance,
        estimate: Estimate,
        note: Note,
    ) -> None:
        """Connect.

        `note`: writes down what happened: time, kind, text.

        Raises:
            ConfigError: Fewer than four drones, or a cable model without hooks.
        """
        spec, system = scenario.contingency, formation_of(scenario.system, "contingency")
        assert spec is not None
        if system.n_drones < LEAST_DRONES:
            raise ConfigError(
                f"contingency: {system.name} has {system.n_drones} drones; the loss of one can be "
                f"survived by {LEAST_DRONES} or more"
            )
        if spec.hook == "release":
            try:
                context.check(CutCable(1, 1))
            except ConfigError as error:
                raise ConfigError(f"contingency.hook = release: {error}; or hook: hold") from None
        self._scenario, self._spec, self._context = scenario, spec, context
        self._system = system
        self._guidance, self._estimate, self._note = guidance, estimate, note
        n = system.n_drones
        share = system.load.mass_kg * scenario.physics.gravity_m_s2 / n
        self._detector = LossDetector(spec, np.full(n, share), EVERY * CONTROL_PERIOD_S)
        self._gone, self._idle = np.zeros(n, bool), np.zeros(n, bool)
        self._pending: list[_Loss] = []
        self._spreads = False
        self.answers: list[Reallocation | None] = []

    def step(self, tick: int) -> None:
        """Look, and do what is due."""
        if tick % EVERY == 0 and self._guidance.stage not in WATCHED_NOT:
            self._look(tick)
        if self._gone.any() and not self._spreads and self._guidance.stage == "spread":
            self._spreads = True
            self._land_clear(tick)
        for loss in [loss for loss in self._pending if loss.act_tick <= tick]:
            self._pending.remove(loss)
            self._answer(loss, tick)

    def _land_clear(self, tick: int) -> None:
        """Land beside the drones that have fallen down, not on them."""
        guidance = self._guidance
        radii = np.array([tip_radius_m(drone) for drone in self._scenario.system.drones])
        apart_m = radii[:, None] + radii[None] + self._spec.clearance_m
        places = self._planned_places()
        now = Situation(guidance.plan, guidance.row, places, np.zeros_like(places))
        found = self._estimate.drones.position_enu_m
        reach_m = np.array(
            [
                np.hypot(*point[:2]) + TAUT_SHARE * cable.length_m
                for point, cable in zip(
                    self._system.load.cable_attachments_m, self._system.cables, strict=True
                )
            ]
        )
        plan = landed_clear(now, self._gone, found, apart_m, reach_m)
        if plan is not None:
            guidance.replace(plan, tick, self._gone)

    def _look(self, tick: int) -> None:
        setpoint = self._guidance.setpoint.position_enu_m
        fallen = self._detector.fallen(self._estimate, setpoint)
        lifting = self._guidance.stage == "lift"
        slack = self._detector.slackened(self._estimate, lifting=lifting)
        act_tick = tick + round(self._spec.delay_s / CONTROL_PERIOD_S)
        for seen, falls in ((fallen, True), (slack, False)):
            for drone, why in seen:
                if self._gone[drone] or self._idle[drone]:
                    continue
                (self._gone if falls else self._idle)[drone] = True
                self._note(tick * CONTROL_PERIOD_S, "drone_given_up", f"drone_{drone + 1}: {why}")
                self._pending.append(_Loss(drone, falls, act_tick))

    def _answer(self, loss: _Loss, tick: int) -> None:
        """Let go what is lost, and change the plan."""
        time_s, spec = tick * CONTROL_PERIOD_S, self._spec
        if spec.hook == "release":  # what is left of a cable that is slack is let go, too
            self._context.apply(CutCable(loss.drone + 1, 1))
            self._note(time_s, "hook_opened", f"cable_{loss.drone + 1} at the load")
        found = self._formation()
        self.answers.append(found)
        guidance, scenario = self._guidance, self._scenario
        offsets = (
            scenario.formation.offsets_m(len(self._gone)) if found is None else found.offsets_m
        )
        offsets = np.array(offsets)
        offsets[self._gone] = np.nan
        for drone in np.flatnonzero(self._idle):
            offsets[drone] = aside(scenario, int(drone))
        now = Situation(
            guidance.plan, guidance.row, self._planned_places(), offsets
        )  # fmt: skip
        if found is not None and found.thrust_margin >= spec.margin and spec.then == "continue":
            plan = continued(now, scenario.mission, spec.speed_m_s)
        else:
            plan = landed(
                now,
                scenario,
                reforms=found is not None and found.thrust_margin > 1.0,
                speed_m_s=spec.speed_m_s,
                lower_m_s=spec.lower_speed_m_s,
            )
        guidance.replace(plan, tick, self._gone)
        self._note(time_s, "reallocated", self._sentence(found))

    def _planned_places(self) -> Array:
        places: Array = self._guidance.plan.drone_position_enu_m[self._guidance.row].copy()
        return places

    def _formation(self) -> Reallocation | None:
        lost = np.flatnonzero(self._gone | self._idle) + 1
        hanging = np.flatnonzero(self._gone) + 1 if self._spec.hook == "hold" else np.zeros(0, int)
        if len(self._gone) - len(lost) < LEAST_LEFT:
            return None
        return reallocate(self._scenario, lost.tolist(), hanging.tolist(), self._spec)

    def _sentence(self, found: Reallocation | None) -> str:
        if found is None:
            return "no formation holds the load: it is set down at once"
        margin = (
            f"thrust margin {found.thrust_margin:.2f}, load leans {found.load_tilt_deg:.0f} deg"
        )
        if found.thrust_margin < self._spec.margin:
            return f"too little thrust to go on ({margin}): the load is set down"
        goes_on = self._spec.then == "continue"
        return f"new formation ({margin}): {'the mission goes on' if goes_on else 'landing'}"
