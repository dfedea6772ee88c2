"""Whether a flight may begin: the list of findings, and the flight itself, in memory.

`judge` is what `musls check` says, and every other door that starts drones asks the same (`DOORS`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from musls_analysis.comparison.rotor_margins import least_margin
from musls_analysis.comparison.summary import close_pass, flight_warnings
from musls_analysis.recordings.recording import Recording
from musls_bringup.flight.fly import fly_fast, separation
from musls_control.brief.findings import Finding, findings, refuse_standing
from musls_control.brief.margins import Margins, margins_of
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.config.schema import to_data
from musls_description.hanging.reallocation import Reallocation
from musls_description.system.slung_system import SlungLoadSystem
from musls_sim.scenario.scenario import Scenario, load_scenario
from musls_sim.session.compose import flight_plan
from musls_sim.session.loop import Loop, Observer
from musls_sim.session.session import Session
from musls_sim.specs.physics import CONTROL_PERIOD_S


@dataclass(frozen=True)
class Door:
    """One way to start drones, and what it asks before.

    Attributes:
        name: Command or launch file that a user types.
        flies_before: Whether the flight is flown in memory first.
        force: Option that overrules a finding; "" where there is none.
        refuses_with: Exit code.
    """

    name: str
    flies_before: bool
    force: str
    refuses_with: int


DOORS = (
    Door("musls check", True, "", 1),
    Door("musls fly, musls.fly, the studio", False, "--force", 2),
    Door("musls fly --dry-run", False, "--force", 2),
    Door("sweeps, batches, environments", False, "", 2),
    Door("Gazebo's files, musls model --format world", False, "--force", 2),
    Door("musls ros fly", False, "--force", 2),
    Door("real.launch.py", True, "force:=REASON", 2),
    Door("the node that arms", False, "force:=REASON", 2),
)
"""All doors; each asks the same list of findings."""


@dataclass(frozen=True)
class Flown:
    """Outcome of the flight in memory.

    Attributes:
        seconds: Time that was flown.
        left_s: Time of the plan that was not.
        instead: Parts that were replaced by others than the scenario has; "" for none.
        apart: Smallest distance of drones, see `flight.fly.separation`; None for one drone.
        stage: Stage in which the drones were closest.
        margin: Largest over needed thrust of the rotor that worked hardest once the load hung,
            its drone and time [s]; None where that is not known.
        problems: Why it is no flight to learn from, one line each.
        cautions: Close passes, phases that began before everything was in place, what was not
            flown as it will be.
    """

    seconds: float
    left_s: float
    instead: str
    apart: dict[str, Any] | None
    stage: str
    margin: tuple[float, str, float] | None
    problems: Sequence[str]
    cautions: Sequence[str]

    @property
    def sentence(self) -> str:
        """Summary of the flight in one line."""
        parts = []
        if self.apart is not None:
            one, other = self.apart["pair"]
            where = f" in {self.stage}" if self.stage else ""
            parts.append(
                f"rotor tips of drones {one} and {other} {max(self.apart['tips_m'], 0.0):.2f} m "
                f"apart at {self.apart['time_s']:.1f} s{where}"
            )
        if self.margin is not None:
            margin, drone, time_s = self.margin
            parts.append(f"thrust margin at least {margin:.2f} ({drone} at {time_s:.1f} s)")
        whole = "to its end" if self.left_s <= 0.0 else f"{self.left_s:.0f} s were not flown"
        return "; ".join([f"flown in memory for {self.seconds:.1f} s, {whole}", *parts])


@dataclass(frozen=True)
class Verdict:
    """Whether a flight may begin.

    Attributes:
        findings: Refusals and cautions found before anything is flown.
        margins: Margins of the drones; None where nobody carries anything.
        flown: Outcome of flying it; None where the findings refuse, or nobody asked for it.
    """

    findings: Sequence[Finding]
    margins: Margins | None
    flown: Flown | None

    @property
    def problems(self) -> list[str]:
        """Why it cannot be flown, one line each; empty if it can."""
        texts = [finding.text for finding in self.findings if finding.refuses]
        return texts + list(self.flown.problems if self.flown else ())

    @property
    def cautions(self) -> list[str]:
        """Warnings about a flight that is possible, one line each."""
        texts = [finding.text for finding in self.findings if not finding.refuses]
        return texts + list(self.flown.cautions if self.flown else ())

    @property
    def can_be_flown(self) -> bool:
        """Whether there is no reason against the flight."""
        return not self.problems

    @property
    def sentence(self) -> str:
        """Verdict in one line: reasons for a refusal, or the margins."""
        if self.problems:
            return f"cannot be flown: {'; '.join(self.problems)}"
        margins = [] if self.margins is None else [self.margins.margin_sentence]
        if self.flown is None:
            return "; ".join(["can be flown by its plan, not flown yet", *margins])
        return f"can be flown: {'; '.join([*margins, self.flown.sentence])}"


def judge(
    scenario: Scenario,
    *,
    flown: bool = True,
    limit_s: float | None = None,
    observers: Sequence[Observer] = (),
) -> Verdict:
    """Judge whether a flight may begin.

    Args:
        scenario: Scenario to be flown.
        flown: Whether it is flown in memory, where no finding refuses it.
        limit_s: Longest time that is flown; None to the end.
        observers: Observers of that flight.

    Raises:
        ConfigError: The scenario cannot be composed at all.
    """
    all_findings, margins = look(scenario)
    if not flown or any(finding.refuses for finding in all_findings):
        return Verdict(all_findings, margins, None)
    return Verdict(all_findings, margins, fly_in_mind(scenario, limit_s, observers))


def look(scenario: Scenario) -> tuple[list[Finding], Margins | None]:
    """The list of findings of a scenario, and its margins: without a flight."""
    brief = scenario.brief
    all_findings = list(findings(brief))
    try:
        plan = flight_plan(scenario)
        margins = margins_of(brief, plan)
    except ConfigError:
        if any(finding.refuses for finding in all_findings):  # which say more about it
            return all_findings, None
        raise
    all_findings += findings(brief, plan)
    if margins is not None:
        all_findings += [Finding(text, refuses=False, key="margins") for text in margins.cautions]
    return all_findings, margins


def judge_system(system: SlungLoadSystem, *, flown: bool = False) -> Verdict:
    """The verdict on a system: on a flight that lifts its load by a metre and holds it there."""
    return judge(lifting(system), flown=flown)


def refuse_system(system: SlungLoadSystem, *, force: bool = False) -> None:
    """Refuse a system that cannot lift its load by a metre; see `refuse_or_warn`."""
    refuse_standing(lifting(system).brief, force=force)


def lifting(system: SlungLoadSystem) -> Scenario:
    """A flight that lifts a system's load by a metre and holds it there."""
    load_m = -system.load.collision.bottom_m
    hold = {"kind": "hold", "position_m": [0.0, 0.0, load_m + 1.0], "duration_s": 5.0}
    data = {
        "name": system.name,
        "system": to_data(system),
        "mission": {"stages": [hold]},
        "cable_model": "massless" if system.load.point_mass else "rigid_links",
    }
    return load_scenario(data)


# ---------- The flight in memory


class _Until(Observer):
    """Ends a flight at a time."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self.every = max(1, round(limit_s / CONTROL_PERIOD_S))

    def observe(self, time_s: float, loop: Loop) -> None:
        if time_s >= self._limit_s:
            loop.stop()


def fly_in_mind(
    scenario: Scenario, limit_s: float | None = None, observers: Sequence[Observer] = ()
) -> Flown:
    """Fly a scenario to its end, or for `limit_s`, with its controller, events and model.

    Raises:
        ConfigError: It cannot be composed, as `musls fly` says.
    """
    here, instead = _flown_here(scenario)
    cautions = [f"not flown here: {instead}"] if instead else []
    watching = [*observers, *([_Until(limit_s)] if limit_s is not None else [])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        session = Session(here, force=True, observers=watching)
        try:
            recording = fly_fast(session)
        except MuslsError as error:
            problem = f"in flight: {error}"
            stage = session.stage
            seconds = session.time_s
            return Flown(seconds, 0.0, instead, None, stage, None, [problem], cautions)
    apart = None if session.separation is None else separation(session, session.separation)
    parameters = here.autopilot.parameters
    problems = [f"in flight: {line}" for line in flight_warnings(recording, parameters)]
    left_s = 0.0
    if session.stopped:
        left_s = max(float(session.guidance.planned_s) - session.time_s, 0.0)
        cautions.append(f"the last {left_s:.0f} s of the plan were not flown (--for)")
    events = session.events.happened
    cautions += [f"in flight: {event.what}" for event in events if event.kind == "not_in_place"]
    if warning := close_pass(apart):
        cautions.append(f"in flight: {warning}")
    stage = "" if apart is None else _stage_at(recording, apart["time_s"])
    margin = least_margin(recording, scenario.system)
    return Flown(session.time_s, left_s, instead, apart, stage, margin, problems, cautions)


def _flown_here(scenario: Scenario) -> tuple[Scenario, str]:
    """The scenario as it can be flown in this process, and what of it cannot; "" for nothing."""
    instead = []
    if scenario.autopilot.kind != "builtin":
        instead.append(f"autopilot.kind = {scenario.autopilot.kind} (the built-in one)")
        scenario = replace(scenario, autopilot=replace(scenario.autopilot, kind="builtin"))
    if scenario.physics.engine.startswith("gazebo"):
        instead.append(f"physics.engine = {scenario.physics.engine} (the embedded one)")
        scenario = replace(scenario, physics=replace(scenario.physics, engine="embedded"))
    return scenario, ", ".join(instead)


def _stage_at(recording: Recording, time_s: float) -> str:
    """The stage of a time; between stages and after the last the one before."""
    earlier = [stage for stage in recording.stages if stage.start_s <= time_s]
    stages = [max(earlier, key=lambda stage: stage.start_s)] if earlier else recording.stages[:1]
    return next((stage.name for stage in stages), "")


# ---------- For JSON

FACTS = (
    "thrust_margin",
    "formation",
    "hardest",
    "tilt_limit_deg",
    "ceiling_m",
    "lowest_m",
    "separation",
    "flight_s",
)
MOTION = ("velocity_enu_m_s", "acceleration_enu_m_s2", "wind_enu_m_s")
"""Fields of check.json: of the margins, and of the hardest moment."""


def as_data(
    scenario: Scenario, verdict: Verdict, lost: Sequence[Reallocation | None] = ()
) -> dict[str, Any]:
    """Everything that was found, for JSON."""
    places = [
        loss and [None if np.isnan(p[0]) else p.tolist() for p in loss.offsets_m] for loss in lost
    ]
    data: dict[str, Any] = {
        "scenario": scenario.name,
        "can_be_flown": verdict.can_be_flown,
        "sentence": verdict.sentence,
        "problems": verdict.problems,
        "cautions": verdict.cautions,
        "findings": [to_data(finding) for finding in verdict.findings],
        "losses": [
            {
                "drone": i,
                "thrust_margin": loss and loss.thrust_margin,
                "load_tilt_deg": loss and loss.load_tilt_deg,
                "places_m": places[i - 1],
            }
            for i, loss in enumerate(lost, start=1)
        ],
    }
    if verdict.flown is not None:
        data["flown"] = to_data(verdict.flown)
    margins = verdict.margins
    if margins is None:
        return data
    moment = margins.moment
    empty = margins.first_empty
    return data | {
        "weakest_drone": margins.weakest,
        **{name: to_data(getattr(margins, name)) for name in FACTS},
        "moment": moment
        and {
            "stage": moment.stage,
            "number": moment.number,
            "time_s": moment.time_s,
            **{name: getattr(moment.motion, name).tolist() for name in MOTION},
        },
        "first_empty": empty and {"drone": empty[0], "minutes": empty[1]},
    }
