"""What a flight would be: the phases at the ground and the first stage, flown before the flight.

By the functions of the flight, in compiled code where there is such: a second or two. So what
`musls check` says of distances and heights is of this scenario, not of its plan. `judge` is what
every command says about whether something can be flown.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from musls_analysis.comparison.summary import close_pass, flight_warnings
from musls_analysis.recordings.recording import LOAD, Recording
from musls_bringup.check import check
from musls_bringup.fly import fly_fast, separation
from musls_control.controllers import FormationSpec
from musls_control.mission.plan import FlightPlan
from musls_description.config.errors import MuslsError
from musls_description.config.schema import to_data
from musls_description.hanging.hang import margin_text
from musls_description.system.slung_system import SlungLoadSystem
from musls_sim.preflight.feasibility import Feasibility
from musls_sim.scenario.scenario import Scenario, load_scenario
from musls_sim.session.compose import Components, mission_guidance
from musls_sim.session.guidance import Guidance
from musls_sim.session.loop import Observer
from musls_sim.session.session import Session
from musls_sim.session.stages import COMPILED_CONTROLLERS

LONGEST_STAGE_S = 60.0
"""So much of the first stage is flown."""

HEIGHT_SHARE = 0.1
"""Of its way up: how far the load may be from its planned height at the end of the lift."""


@dataclass(frozen=True)
class Prediction:
    """Result of the short flights before a flight.

    Attributes:
        apart: How close the drones came, see `musls_bringup.fly.separation`; None for one drone.
        stage: In which that was.
        height_m: Of the load at the end of the lift, and as planned; None from a start in the air.
        margin: Largest over needed thrust of the rotor that worked hardest once the load hung,
            its drone and time [s]; None where that is not known.
        problems: Why it is no flight to learn from, one line each.
        cautions: Close passes, phases that began before everything was in place.
    """

    apart: dict[str, Any] | None
    stage: str
    height_m: tuple[float, float] | None
    margin: tuple[float, str, float] | None
    problems: Sequence[str]
    cautions: Sequence[str]

    @property
    def sentence(self) -> str:
        """It in one line."""
        parts = []
        if self.apart is not None:
            one, other = self.apart["pair"]
            parts.append(
                f"rotor tips of drones {one} and {other} {max(self.apart['tips_m'], 0.0):.2f} m "
                f"apart at {self.apart['time_s']:.1f} s" + (f" in {self.stage}" * bool(self.stage))
            )
        if self.height_m is not None:
            parts.append(
                "load {:.2f} of {:.2f} m high at the end of the lift".format(*self.height_m)
            )
        if self.margin is not None:
            margin, drone, time_s = self.margin
            parts.append(
                f"thrust margin at least {margin_text(margin)} ({drone} at {time_s:.1f} s)"
            )
        return "flown up to the first stage and down: " + "; ".join(parts)


@dataclass(frozen=True)
class Verdict:
    """Whether a scenario can be flown.

    Attributes:
        found: What margins, formation and plan say.
        flown: What flying its begin showed; None where that was not asked for, or the plan says no.
        problems: Why it cannot be flown, one line each; empty if it can.
        cautions: What is to be known of a flight that is possible, one line each.
    """

    found: Feasibility
    flown: Prediction | None
    problems: Sequence[str]
    cautions: Sequence[str]

    @property
    def can_be_flown(self) -> bool:
        """Whether there is no reason against the flight."""
        return not self.problems

    @property
    def sentence(self) -> str:
        """It in one line."""
        if self.problems:
            return f"cannot be flown: {'; '.join(self.problems)}"
        if self.flown is None:
            return f"can be flown by its plan, not flown yet: {self.found.sentence}"
        return f"can be flown: {self.found.margin_sentence}; {self.flown.sentence}"


def judge(scenario: Scenario, *, flown: bool = True) -> Verdict:
    """Judge whether a scenario can be flown; with `flown` its begin is, which takes seconds."""
    found = check(scenario)
    if not (flown and found.can_be_flown) or scenario.start.kind == "state":
        return Verdict(found, None, found.problems, found.cautions)
    seen = predict(scenario)
    return Verdict(found, seen, seen.problems, [*found.cautions, *seen.cautions])


def judge_system(system: SlungLoadSystem, *, flown: bool = False) -> Verdict:
    """The verdict on a system: on a flight that lifts its load by a metre and holds it there."""
    load_m = -system.load.collision.bottom_m
    hold = {"kind": "hold", "position_m": [0.0, 0.0, load_m + 1.0], "duration_s": 5.0}
    given = {
        "name": system.name, "system": to_data(system), "mission": {"stages": [hold]},
        "cable_model": "massless" if system.load.point_mass else "rigid_links",
    }  # fmt: skip
    return judge(load_scenario(given), flown=flown)


def predict(scenario: Scenario) -> Prediction:
    """Fly what a flight begins and ends with, and look."""
    events: list[Any] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            session = Session(_begin(scenario), force=True, make_guidance=_cut)
            recording = fly_fast(session)
            events = session.events.happened
    except MuslsError as error:
        return Prediction(None, "", None, None, [str(error)], [])
    apart = None if session.separation is None else separation(session, session.separation)
    problems = [f"flown: {line}" for line in flight_warnings(recording)]
    height_m = _lifted(recording, session)
    if height_m is not None:
        reached_m, planned_m = height_m
        standing_m = float(recording.bodies[LOAD].position_enu_m[0, 2])
        if abs(reached_m - planned_m) > HEIGHT_SHARE * (planned_m - standing_m):
            problems.append(
                f"flown: the load is {reached_m:.2f} m high at the end of the lift, where "
                f"{planned_m:.2f} m is planned"
            )
        highest_m = float(recording.bodies[LOAD].position_enu_m[:, 2].max())
        planned_m = float(session.components.plan.load_pose[:, 2].max())
        if highest_m - standing_m > 2.0 * (planned_m - standing_m):
            problems.append(
                f"flown: the load flies up to {highest_m:.2f} m, where at most {planned_m:.2f} m "
                "is planned"
            )
    cautions = [f"flown: {e.what}" for e in events if e.kind == "not_in_place"]
    if passed := close_pass(apart):
        cautions.append(f"flown: {passed}")
    stage = "" if apart is None else _stage_at(recording, apart["time_s"])
    return Prediction(apart, stage, height_m, least_margin(recording, scenario), problems, cautions)


def _begin(scenario: Scenario) -> Scenario:
    """The scenario with its first stage alone, the built-in autopilot, a law that is compiled."""
    mission = scenario.mission
    if not mission.drones:
        mission = replace(mission, stages=mission.stages[:1])
    autopilot = replace(scenario.autopilot, kind="builtin")
    controller = scenario.controller
    if controller.kind not in COMPILED_CONTROLLERS:
        controller = FormationSpec()
    stages = {stage.kind for stage in mission.all_stages}
    events = tuple(e for e in scenario.events if e.when.stage is None or e.when.stage in stages)
    return replace(
        scenario, mission=mission, autopilot=autopilot, controller=controller, events=events
    )


def _cut(components: Components, observers: Sequence[Observer]) -> Guidance:
    """Guidance that ends in the air where the stage is long."""
    plan, mission = components.plan, components.scenario.mission
    if mission.drones:
        plan = _first(plan, min(len(plan.stage), int(LONGEST_STAGE_S * plan.rate_hz)))
        return mission_guidance(replace(components, plan=plan), observers)
    stage = mission.stages[0]
    if stage.duration_s > LONGEST_STAGE_S:
        begin = int(np.argmax(plan.stage == plan.stage_names.index(stage.kind)))
        plan = _first(plan, begin + int(LONGEST_STAGE_S * plan.rate_hz))
    return mission_guidance(replace(components, plan=plan), observers)


def _first(plan: FlightPlan, rows: int) -> FlightPlan:
    fed, share = plan.drone_acceleration_enu_m_s2, plan.share
    return replace(
        plan,
        drone_position_enu_m=plan.drone_position_enu_m[:rows],
        drone_yaw_rad=plan.drone_yaw_rad[:rows],
        stage=plan.stage[:rows],
        landing_speed_m_s=None,
        drone_acceleration_enu_m_s2=None if fed is None else fed[:rows],
        share=None if share is None else share[:rows],
        waits=plan.waits[plan.waits["row"] < rows],
        gates=tuple(gate for gate in plan.gates if gate.row < rows),
    )


def _stage_at(recording: Recording, time_s: float) -> str:
    """The stage of a time; between stages and after the last the one before."""
    begun = [stage for stage in recording.stages if stage.start_s <= time_s]
    stages = [max(begun, key=lambda stage: stage.start_s)] if begun else recording.stages[:1]
    return next((stage.name for stage in stages), "")


def _lifted(recording: Recording, session: Session) -> tuple[float, float] | None:
    """Height of the load at the end of the lift, and where it is to hang then."""
    end_s = next((s.end_s for s in recording.stages if s.name == "lift"), None)
    carried = session.components.plan.carried
    if end_s is None or carried is None:
        return None
    load = recording.bodies[LOAD]
    reached_m = float(np.interp(end_s, load.time_s, load.position_enu_m[:, 2]))
    plan = session.components.plan
    lifts = np.flatnonzero(plan.stage == plan.stage_names.index("lift"))
    return reached_m, float(plan.load_pose[lifts[-1], 2]) - carried.sag_m


def least_margin(recording: Recording, scenario: Scenario) -> tuple[float, str, float] | None:
    """Largest over needed thrust of the rotor that works hardest on average over a second."""
    worst: tuple[float, str, float] | None = None
    first_s = next((s.start_s for s in recording.stages if s.name in ("transit", "hold")), 0.0)
    for number, drone in enumerate(scenario.system.drones, start=1):
        name = f"drone_{number}"
        track = recording.rotors.get(name)
        if track is None or len(track.time_s) < 2:
            continue
        most, later = [rotor.speed_max_rad_s for rotor in drone.rotors], track.time_s >= first_s
        share, times_s = (np.asarray(track.speed_rad_s)[later] / most) ** 2, track.time_s[later]
        rows = max(1, round(1.0 / float(np.median(np.diff(track.time_s)))))
        window = np.ones(rows) / rows
        for column in share.T:
            if len(column) >= rows:
                mean = np.convolve(column, window, "valid")
                k = int(mean.argmax())
                found = (
                    1.0 / float(mean[k]),
                    name,
                    float(times_s[k]),
                )
                worst = found if worst is None or found[0] < worst[0] else worst
    return worst
