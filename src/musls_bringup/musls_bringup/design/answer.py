"""Answer to a designer: choices that fly, why the next cheaper one does not, how sure it is.

First the static search over everything (`search`), then short flights on massless cables of what is
left, then flights of the best few in the model that was asked for, with each drone lost where that
must be survived, and a Monte Carlo of the choice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.figures.convergence import Converged
from musls_analysis.sweep.montecarlo import MonteCarlo, share
from musls_analysis.sweep.plan import Run
from musls_analysis.sweep.run import sweep_executor
from musls_analysis.sweep.store import Store, make_rows
from musls_bringup.api.studies import plan_montecarlo
from musls_bringup.design.files import scenario_text, system_text
from musls_bringup.design.flights import Hangar, Outcome, Trial, outcome_of
from musls_bringup.design.question import Question, Requirements, battery_of
from musls_bringup.design.search import Design, Fleet, Rejection, Static, search
from musls_control.child_processes import worker_count
from musls_description.config.errors import ConfigError, writing
from musls_description.config.schema import to_yaml
from musls_description.hanging.hang import hang
from musls_description.system.rope_materials import MATERIALS
from musls_description.tables import Rows, ShownResult, Table
from musls_sim.scenario.scenario import Scenario, load_scenario

WINDS_DEG: tuple[float | None, ...] = (0.0, 90.0)
"""Directions of the wind that are flown, from the load's x axis."""

OTHER = "payload"
"""Controller that is tried where none is fixed and `formation` fails."""

MOST_WORLDS = 0.5
"""Share of the worlds that keep what is required, with which a choice is taken for the page."""

STEADIEST = 3
"""Formations of a fleet that are flown in the model that was asked for, one after the other."""

WIDE = 1
"""Formations that are flown after these whose cone is not the narrowest of their length, where one
may be lost."""

MOST_FLIGHTS = 64
"""Flights that are made at once, where there are cores for them."""

MOST_FLEETS = 5
"""Fleets that are flown in the model that was asked for, the lightest ones."""

MOST_LACKS = 4
"""Things that worlds lack which are told, those of most worlds."""

MORE_TENSION = 1.05
"""Reserve over a flown tension with which a thicker cable is chosen."""

Progress = Callable[[str, float], None]

MARK = "choice_{}.yaml"
VARIES = "vary_{}.yaml"
"""Files of a choice: its scenario, and what is uncertain."""


@dataclass(frozen=True)
class Choice:
    """A design that kept what is required in all flights.

    Attributes:
        design: The design.
        flights: Outcomes of its flights with all drones.
        losses: Outcomes of its flights in which a drone is lost, two of each with different noise.
        cheaper: The next cheaper fleet that was rejected; None where there is none.
    """

    design: Design
    flights: Sequence[Outcome]
    losses: Sequence[Outcome]
    cheaper: Rejection | None = None

    @property
    def margin(self) -> float:
        """Least thrust margin of all flights with all drones."""
        return min((o.margin for o in self.flights if o.margin is not None), default=np.nan)

    @property
    def peak_n(self) -> float:
        """Largest tension of all flights with all drones."""
        return max(outcome.peak_n for outcome in self.flights)

    @property
    def factor(self) -> float:
        """Breaking force over the largest tension."""
        return self.design.break_force_n / self.peak_n

    @property
    def tips_m(self) -> float | None:
        """Least distance of rotor tips."""
        known = [o.tips_m for o in self.flights if o.tips_m is not None]
        return min(known, default=None)

    @property
    def error_m(self) -> float | None:
        """Largest distance of the load from its place while it is to stay there."""
        return max((o.error_m for o in self.flights if o.error_m is not None), default=None)

    @property
    def worst(self) -> Outcome:
        """The flight with the least margin with all drones."""
        return min(self.flights, key=lambda o: np.inf if o.margin is None else o.margin)

    @property
    def worse_losses(self) -> list[Outcome]:
        """Of each lost drone the flight in which the load came down faster."""
        worse: dict[int | None, Outcome] = {}
        for outcome in sorted(self.losses, key=lambda o: o.sink_m_s):
            worse[outcome.trial.lost] = outcome
        return sorted(worse.values(), key=lambda o: o.trial.lost or 0)

    @property
    def worst_loss(self) -> Outcome | None:
        """The loss in which the load came down fastest; None where none was flown."""
        return max(self.losses, key=lambda o: o.sink_m_s, default=None)

    def row(self) -> dict[str, Any]:
        """Numbers of the choice by name, units in the names."""
        design = self.design
        return {
            "drones": design.number,
            "airframe": design.airframe,
            "cost_kg": round(design.cost_kg, 3),
            "thrust_margin": round(self.margin, 3),
            "hover_min": design.minutes and round(design.minutes, 1),
            "cone_deg": design.cone_deg,
            "length_m": design.length_m,
            "material": design.material,
            "diameter_mm": 1e3 * design.diameter_m,
            "controller": design.controller,
            "largest_tension_n": round(self.peak_n, 2),
            "break_factor": round(self.factor, 1),
            "tips_m": self.tips_m and round(self.tips_m, 3),
            "room_m": round(design.room_m, 2),
            "load_off_m": self.error_m and round(self.error_m, 3),
            "after_a_loss": self.after_a_loss,
        }

    @property
    def after_a_loss(self) -> str:
        """What becomes of the load after the loss of any one drone."""
        if not self.losses:
            return "not flown"
        number = self.design.number
        on = number - len({loss.trial.lost for loss in self.losses if not loss.carried_on})
        ways = {"carried on": on, "set down": number - on}
        return ", ".join(f"{way} ({count})" for way, count in ways.items() if count)


@dataclass(frozen=True)
class Worlds:
    """Monte Carlo of a choice.

    Attributes:
        study: Rows and statistics.
        outcomes: Outcome of each world.
        kept: Share of the worlds that kept what is required, with its 95 % interval.
        vary: What was varied, as the file for `musls montecarlo`.
    """

    study: MonteCarlo
    outcomes: Sequence[Outcome]
    kept: Mapping[str, Any]
    vary: Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class Answer(ShownResult):
    """Choices that carry a load as it is required, cheapest first.

    Attributes:
        question: Everything that was asked.
        choices: Choices on the front: none has fewer drones, less mass, more margin and more
            minutes than another.
        rejections: Fleets that were rejected, with reasons.
        picked: Number of the choice that is shown in detail, from 1.
        worlds: Monte Carlo of that choice; None where none was flown.
        peak: Largest tension of its worst flight with the whole, half and a quarter of the step;
            None where that was not flown.
        shares: Shares of the worlds that keep what is required, by the number of the choice.
        lacking: What most of the other worlds lack first, by the number of the choice.
        looked_at: Number of formations that were solved.
        flights: Number of flights.
        cpu_s: Processor time of the flights of this session.
        made_as: Command that made it.
    """

    question: Question
    choices: Sequence[Choice]
    rejections: Sequence[Rejection]
    picked: int
    worlds: Worlds | None
    looked_at: int
    flights: int
    cpu_s: float
    made_as: str = ""
    peak: Converged | None = None
    shares: Mapping[int, float] = field(default_factory=dict)
    lacking: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    @property
    def rows(self) -> Rows[dict[str, Any]]:
        """A row (a dictionary) a choice, units in the names of the columns."""
        return Rows(choice.row() for choice in self.choices)

    @property
    def choice(self) -> Choice:
        """The choice that is shown in detail (raises ConfigError: there is none)."""
        if not self.choices:
            raise ConfigError(f"no fleet of these drones carries the load: {self.why_none}")
        return self.choices[self.picked - 1]

    @property
    def why_none(self) -> str:
        """Reasons of the fleets that came nearest, one of each airframe."""
        last: dict[str, Rejection] = {}
        for rejection in self.rejections:
            if rejection.airframe not in last or rejection.design is not None:
                last[rejection.airframe] = rejection
        return "; ".join(f"{entry.name}: {entry.why}" for entry in last.values())

    @property
    def passed_over(self) -> Iterator[str]:
        """Why cheaper choices are not the one that is shown, one line each."""
        for k, kept in self.shares.items():
            if k < self.picked and kept < self.shares[self.picked]:
                fleet = _fleet_of(self.choices[k - 1].design)
                lacks = ", ".join(f"{text} ({n})" for text, n in self.lacking[k].items())
                yield f"choice {k}, {fleet}: {100 * kept:.0f} % of its worlds keep it; {lacks}"

    def scenario_data(self, number: int = 1) -> dict[str, Any]:
        """The flight of a choice as a scenario's data, its system written out."""
        if not 1 <= number <= len(self.choices):
            raise ConfigError(f"--pick {number}: there are {len(self.choices)} choices")
        choice = self.choices[number - 1]
        return choice.worst.trial.data(self.question)

    def scenario(self, number: int = 1) -> Scenario:
        """The flight of a choice (raises ConfigError: there is no such choice)."""
        return load_scenario(self.scenario_data(number), self.question.settings, "--set")

    def write_pick(self, number: int, system: Path, scenario: Path) -> None:
        """Write system and scenario of a choice, with comments."""
        data = self.scenario_data(number)
        choice = self.choices[number - 1]
        for path, text in (
            (system, system_text(self.question, choice.design, system.stem)),
            (scenario, scenario_text(self.question, data, system, scenario)),
        ):
            with writing(path):
                path.write_text(text, encoding="utf-8")

    def shown(self) -> Iterator[str | Table]:
        """Front of the choices, why the next cheaper fails, and shares of the worlds."""
        cargo = self.question.cargo
        yield (
            f"{cargo.what} of {cargo.mass_kg:g} kg in {self.question.wind_m_s:g} m/s of wind, "
            f"gusts {self.question.gusts_m_s:g} m/s more: {self.looked_at} formations solved, "
            f"{self.flights} flights"
        )
        heads = (
            "",
            "drones",
            "mass [kg]",
            "margin",
            "hover [min]",
            "cone [deg]",
            "cable",
            "controller",
            "peak [N]",
            "factor",
            "tips [m]",
            "room [m]",
            "after a loss",
            "worlds",
        )
        rows = []
        for k, choice in enumerate(self.choices, start=1):
            row = choice.row()
            design = choice.design
            cable = f"{design.length_m:g} m {design.material} {1e3 * design.diameter_m:g} mm"
            rows.append(
                (
                    f"{k}",
                    f"{design.number} {design.airframe}",
                    f"{design.cost_kg:.2f}",
                    f"{choice.margin:.2f}",
                    _or_none(row["hover_min"], ".1f"),
                    f"{design.cone_deg:g}",
                    cable,
                    design.controller,
                    f"{choice.peak_n:.3g}",
                    f"{choice.factor:.1f}",
                    _or_none(choice.tips_m, ".2f"),
                    f"{design.room_m:.1f}",
                    choice.after_a_loss,
                    f"{100 * self.shares[k]:.0f} %" if k in self.shares else "-",
                )
            )
        if rows:
            yield Table(heads, rows, names=2)
        else:
            yield f"no fleet of these drones carries the load: {self.why_none}"
        for k, choice in enumerate(self.choices, start=1):
            if choice.cheaper is not None:
                yield f"cheaper than {k}: {choice.cheaper.name} fails: {choice.cheaper.why}"
        for line in self.passed_over:
            yield f"not shown: {line}"
        if self.worlds is not None:
            kept = self.worlds.kept
            yield (
                f"{len(self.worlds.outcomes)} worlds of choice {self.picked}: "
                f"{100 * kept['mean']:.0f} % [{100 * (kept['mean_low'] or 0):.0f}, "
                f"{100 * (kept['mean_high'] or 1):.0f}] keep what is required"
            )


def _or_none(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


# ---------- The search


def answer(
    question: Question,
    store: Store,
    pick: int | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    made_as: str = "",
) -> Answer:
    """Answer a question; what is flown is kept in an open store."""
    with sweep_executor(worker_count(workers, MOST_FLIGHTS), scheduler) as executor:
        hangar = Hangar(question, store, progress, executor, scheduler)
        return _answer(question, hangar, pick, made_as)


def _answer(question: Question, hangar: Hangar, pick: int | None, made_as: str) -> Answer:
    """The answer; larger fleets follow as long as flights, or most worlds, reject smaller ones."""
    selection = _Selection(question, hangar)
    choices: list[Choice] = []
    rejected: list[Rejection] = []
    largest: Mapping[str, int] = {}
    looked_at = 0
    while True:
        static = search(question, hangar.progress, largest)
        looked_at += static.looked_at
        rejected += static.rejections
        choices = _front([*choices, *selection.of(static)])
        last = static.largest == largest
        largest = static.largest
        if not (choices or last):
            continue
        found = Answer(
            question,
            choices,
            [*rejected, *selection.rejections],
            pick or 1,
            None,
            looked_at,
            hangar.flights,
            hangar.cpu_s,
            made_as,
        )
        found = _in_detail(found, hangar, pick)
        robust = max(found.shares.values(), default=1.0) >= MOST_WORLDS
        if last or robust or pick is not None:
            return found


def _in_detail(found: Answer, hangar: Hangar, pick: int | None) -> Answer:
    """The answer with the next cheaper fleets, files of its choices and its Monte Carlo."""
    question = found.question
    store = hangar.store
    choices = [
        replace(one, cheaper=_cheaper(question, hangar, one, found.rejections, cheapest=k == 0))
        for k, one in enumerate(found.choices)
    ]
    if choices and pick is not None and not 1 <= pick <= len(choices):
        raise ConfigError(f"--pick {pick}: there are {len(choices)} choices")
    found = replace(found, choices=choices, flights=hangar.flights, cpu_s=hangar.cpu_s)
    for number in range(1, len(choices) + 1):
        system = store.folder / f"choice_{number}_system.yaml"
        found.write_pick(number, system, store.folder / MARK.format(number))
    if not (choices and question.worlds):
        return found
    return _in_worlds(found, hangar, [pick] if pick else range(1, len(choices) + 1))


def _in_worlds(found: Answer, hangar: Hangar, numbers: Iterable[int]) -> Answer:
    """The answer with the Monte Carlo of the first choice that most worlds do not break."""
    shares: dict[int, float] = {}
    lacking: dict[int, Mapping[str, int]] = {}
    best = found
    for number in numbers:
        one = replace(found, picked=number)
        worlds, peak = _worlds(one, hangar)
        shares[number] = worlds.kept["mean"]
        lacking[number] = _first_lacks(worlds.outcomes, found.question.requirements)
        if shares[number] >= max(shares.values()):
            best = replace(one, worlds=worlds, peak=peak)
        if shares[number] >= MOST_WORLDS:
            break
    return replace(best, shares=shares, lacking=lacking, flights=hangar.flights, cpu_s=hangar.cpu_s)


def _first_lacks(outcomes: Sequence[Outcome], required: Requirements) -> Mapping[str, int]:
    """What flights lack first, in the words before its numbers, and how many of them."""
    lacks = Counter(
        re.split(r" (?:within|with|at)? ?[-\d]|:", text)[0]
        for outcome in outcomes
        for text in outcome.lacks(required)[:1]
    )
    return dict(lacks.most_common(MOST_LACKS))


class _Selection:
    """Flies what the static search left, and keeps the front."""

    def __init__(self, question: Question, hangar: Hangar) -> None:
        self.question = question
        self.hangar = hangar
        self.required = question.requirements
        self.winds_deg = WINDS_DEG if question.strongest_m_s > 0.0 else (None,)
        self.rejections: list[Rejection] = []

    def of(self, static: Static) -> list[Choice]:
        """The front of some fleets, cheapest first; those that flights reject are kept aside."""
        fleets = sorted(static.fleets, key=lambda designs: designs[0].cost_kg)
        chosen: list[Choice] = []
        while fleets and not chosen:
            waiting = self._hung(fleets[:MOST_FLEETS])
            fleets = fleets[MOST_FLEETS:]
            chosen = self._flown(waiting)
        return _front(chosen)

    def _flown(self, waiting: list[list[Design]]) -> list[Choice]:
        """Choices among the designs of fleets, of each the first that keeps what is required."""
        chosen: list[Choice] = []
        failed: dict[str, tuple[int, Rejection]] = {}
        while waiting:
            first = [designs.pop(0) for designs in waiting]
            flights = self._in_wind(first)
            losses = self._losses(first, flights)
            left = []
            for rest, one, flown, lost in zip(waiting, first, flights, losses, strict=True):
                why = self._lacks([*flown, *lost])
                if not why:
                    chosen.append(Choice(one, flown, lost))
                    failed.pop(_fleet_of(one), None)
                    continue
                good = sum(not outcome.lacks(self.required) for outcome in (*flown, *lost))
                if good >= failed.get(_fleet_of(one), (0, None))[0]:  # came as far as any
                    rejection = Rejection(
                        one.airframe, one.number, why, one.cost_kg, one, flown=True
                    )
                    failed[_fleet_of(one)] = (good, rejection)
                thicker = self._thicker(one, [*flown, *lost])
                rest[:0] = [] if thicker is None else [thicker]
                if rest:
                    left.append(rest)
            waiting = left
        self.rejections += [rejection for _, rejection in failed.values()]
        return chosen

    def _in_wind(self, designs: Sequence[Design]) -> list[list[Outcome]]:
        """Whole flights with all drones; those of a design that keeps its word twice.

        The second time the noise is another: a margin that one flight just keeps is none.
        """
        flown: list[list[Outcome]] = [[] for _ in designs]
        for noise, what in enumerate(("in wind", "again with other noise")):
            trials = [
                []
                if self._lacks(before)
                else [Trial(one, wind_deg, noise=noise) for wind_deg in self.winds_deg]
                for one, before in zip(designs, flown, strict=True)
            ]
            for before, more in zip(flown, self._fly(trials, what), strict=True):
                before += more
        return flown

    def _hung(self, fleets: Sequence[Sequence[Design]]) -> list[list[Design]]:
        """Designs that hold the load in gusts on massless cables, with their controllers."""
        outcomes = self._hang([one for designs in fleets for one in designs])
        kept = []
        for designs in fleets:
            good = [one for one in designs if not self._lacks(outcomes[one.name])]
            if not good:
                best = min(designs, key=lambda one: len(self._lacking(outcomes[one.name])))
                why = self._lacks(outcomes[best.name])
                self.rejections.append(
                    Rejection(best.airframe, best.number, why, best.cost_kg, best, flown=True)
                )
                continue
            good.sort(key=lambda one: _off_m(outcomes[one.name]))
            kept.append(self._worth_flying(good))
        if self.question.fixed.controller or self.required.survives_one:
            return kept
        # Another controller where the first does not keep what is required in the whole flight.
        return [[*designs, replace(designs[0], controller=OTHER)] for designs in kept]

    def _worth_flying(self, steadiest: Sequence[Design]) -> list[Design]:
        """The steadiest designs; where one may be lost, narrow cones first, which leave thrust."""
        if not self.required.survives_one:
            return list(steadiest[:STEADIEST])
        narrowest: dict[float, float] = {}
        for one in steadiest:
            cone_deg = narrowest.get(one.length_m, one.cone_deg)
            narrowest[one.length_m] = min(cone_deg, one.cone_deg)
        narrow = [one for one in steadiest if one.cone_deg == narrowest[one.length_m]]
        wide = [one for one in steadiest if one.cone_deg > narrowest[one.length_m]]
        return [*narrow[:STEADIEST], *wide[:WIDE]]

    def _losses(
        self, designs: Sequence[Design], flights: Sequence[Sequence[Outcome]]
    ) -> list[list[Outcome]]:
        """Flights in which each drone is lost, in waves that grow: a design that fails ends early.

        Then each with other noise: how a load comes down beside a drone that lies there hangs on
        little.
        """
        flown: list[list[Outcome]] = [[] for _ in designs]
        while self.required.survives_one:
            trials = []
            for one, whole, lost in zip(designs, flights, flown, strict=True):
                fails = self._lacks([*whole, *lost])
                wind_deg = _windiest(whole)
                next_ones = _losses_of(one)[len(lost) : max(1, 2 * len(lost))]
                trials.append(
                    []
                    if fails
                    else [Trial(one, wind_deg, k, noise=noise) for k, noise in next_ones]
                )
            if not any(trials):
                break
            for lost, more in zip(flown, self._fly(trials, "each drone lost"), strict=True):
                lost += more
        return flown

    def _hang(self, designs: Sequence[Design]) -> dict[str, list[Outcome]]:
        """Outcomes of designs that hang in gusts on massless cables, by their names."""
        flown = self._fly(
            [[Trial(one, wind, quick=True) for wind in self.winds_deg] for one in designs],
            "hanging in the wind",
        )
        return dict(zip((one.name for one in designs), flown, strict=True))

    def _lacking(self, flown: Sequence[Outcome]) -> list[str]:
        """Everything that flights lack."""
        return [text for outcome in flown for text in outcome.lacks(self.required)]

    def _fly(self, trials: Sequence[Sequence[Trial]], what: str) -> list[list[Outcome]]:
        """Fly groups of trials together; outcomes in the same groups."""
        flown = iter(self.hangar.fly([trial for group in trials for trial in group], what))
        return [[next(flown) for _ in group] for group in trials]

    def _lacks(self, flown: Sequence[Outcome]) -> str:
        """What flights lack first, and in which of them; empty where they lack nothing."""
        for outcome in flown:
            if lacks := outcome.lacks(self.required):
                return f"{lacks[0]} ({outcome.trial.name})"
        return ""

    def _thicker(self, design: Design, flown: Sequence[Outcome]) -> Design | None:
        """The design with thicker cables, where only these are too weak."""
        fixed = self.question.fixed.diameter_m
        lacks = self._lacking(flown)
        if fixed is not None or not all(text.startswith("a cable is pulled") for text in lacks):
            return None
        whole = [o.peak_n * self.required.factor for o in flown if o.trial.lost is None]
        needed_n = MORE_TENSION * max(
            [*whole, *(2.0 * o.peak_n for o in flown if o.trial.lost is not None)]
        )
        rope = MATERIALS[design.material]
        sizes = [d for d in rope.diameters_m if rope.break_force_n(d) >= needed_n]
        if not sizes:
            return None
        system = design.system
        cables = tuple(
            replace(cable, diameter_m=sizes[0], mass_kg=np.nan, radius_m=np.nan)
            for cable in system.cables
        )
        hanging = hang(replace(system, cables=cables), design.hanging.formation)
        return replace(design, diameter_m=sizes[0], hanging=hanging)


def _losses_of(design: Design) -> list[tuple[int, int]]:
    """Numbers of the drones that are lost, and of the noise, those first that fail most often."""
    middle = design.number // 2 + 1
    order = list(dict.fromkeys([1, middle, *range(1, design.number + 1)]))
    return [(k, noise) for noise in range(2) for k in order]


def _off_m(flown: Sequence[Outcome]) -> float:
    """Largest distance of the load from its place in some flights."""
    return max(outcome.error_m or 0.0 for outcome in flown)


def _windiest(flown: Sequence[Outcome]) -> float | None:
    """Direction of the wind in which the margin is least."""
    worst = min(flown, key=lambda o: np.inf if o.margin is None else o.margin)
    return worst.trial.wind_deg


def _fleet_of(design: Design) -> str:
    return f"{design.number} {design.airframe}"


def _front(choices: Sequence[Choice]) -> list[Choice]:
    """Choices that no other one beats in everything, cheapest first."""

    def worth(choice: Choice) -> np.ndarray:
        design = choice.design
        return np.array(
            [
                -design.number,
                -design.cost_kg,
                choice.margin,
                design.minutes or 0.0,
            ]
        )

    kept = [
        one
        for one in choices
        if not any(
            (worth(other) >= worth(one)).all() and (worth(other) > worth(one)).any()
            for other in choices
        )
    ]
    return sorted(kept, key=lambda choice: choice.design.cost_kg)


def _cheaper(
    question: Question,
    hangar: Hangar,
    choice: Choice,
    rejected: Sequence[Rejection],
    *,
    cheapest: bool,
) -> Rejection | None:
    """The rejected fleet of one drone less, or else what is next cheaper than the `cheapest`.

    It is flown, if it has not been.
    """
    design = choice.design
    below = [entry for entry in rejected if entry.cost_kg < design.cost_kg]
    same = [
        entry
        for entry in below
        if entry.airframe == design.airframe and entry.number == design.number - 1
    ]
    if not same and not (below and cheapest):
        return None
    nearest = same[0] if same else max(below, key=lambda entry: entry.cost_kg)
    if nearest.flown:
        return nearest
    forced = Fleet(question, nearest.airframe, nearest.number).forced()
    if forced is None:
        return nearest
    trials = [Trial(forced, choice.worst.trial.wind_deg)]
    if question.requirements.survives_one:
        trials.append(Trial(forced, choice.worst.trial.wind_deg, 1))
    flown = hangar.fly(trials, "the next cheaper one")
    told = [
        f"{outcome.trial.name}: {text}"
        for outcome in flown
        for text in outcome.lacks(question.requirements)[:1]
    ]
    says = f"flown nevertheless: {'; '.join(told)}" if told else "it flies nevertheless"
    return replace(nearest, why=f"{nearest.why}; {says}", design=forced, flown=True)


# ---------- Monte Carlo

MASS_SHARE = 0.03
HOOK_M = 0.01
WIND_SHARE = 0.2
"""Standard deviations: of the load's mass over it, of each hook's place along x and y, and of the
wind's components over its mean speed."""

LATENCY_S = 0.02
DELAY_S = 0.1
FULL = 0.85
"""Largest latency of motor commands and delay of set-points, and least charge at the start."""


def variation(question: Question, design: Design, wind_deg: float | None) -> dict[str, Any]:
    """What is uncertain, as the file of `musls montecarlo --vary`."""
    mass_kg = question.cargo.mass_kg
    parameters: dict[str, Any] = {
        "system.load.mass_kg": {
            "mean": mass_kg,
            "std": _rounded(MASS_SHARE * mass_kg),
            "min": _rounded(0.9 * mass_kg),
            "max": _rounded(1.1 * mass_kg),
        },
        "imperfections.command_latency_s": {"min": 0.0, "max": LATENCY_S},
        "imperfections.setpoint_delay_s": {"min": 0.0, "max": DELAY_S},
    }
    if question.wind_m_s > 0.0:
        mean = question.wind_keys(wind_deg or 0.0)["mean_enu_m_s"]
        for axis in (0, 1):
            parameters[f"wind.mean_enu_m_s.{axis}"] = {
                "mean": mean[axis],
                "std": _rounded(WIND_SHARE * question.wind_m_s),
            }
    if not question.cargo.keys.get("point_mass"):
        size_m = float(np.hypot(*question.cargo.edges_m[:2]))
        std = min(HOOK_M, 0.02 * size_m)
        for k, place in enumerate(design.system.load.cable_attachments_m):
            for axis in (0, 1):
                key = f"system.load.cable_attachments_m.{k}.{axis}"
                parameters[key] = {"mean": place[axis], "std": _rounded(std)}
    if battery_of(design.system.drones[0]) is not None:
        key = "system.drones.propulsion.battery.start_charge"
        parameters[key] = {"min": FULL, "max": 1.0}
    return {"parameters": parameters, "set": {"cable_model": "massless"}}


def _rounded(value: float) -> float:
    """A number for a file, to four digits."""
    return float(f"{value:.4g}")


def _worlds(found: Answer, hangar: Hangar) -> tuple[Worlds, Converged | None]:
    """Fly the choice in many worlds, and its worst flight with finer steps."""
    choice = found.choice
    question = found.question
    store = hangar.store
    wind_deg = choice.worst.trial.wind_deg
    vary = variation(question, choice.design, wind_deg)
    with writing(store.folder):
        (store.folder / VARIES.format(found.picked)).write_text(
            VARY + to_yaml(vary), encoding="utf-8"
        )
    file = store.folder / MARK.format(found.picked)
    plan = plan_montecarlo(str(file), vary, question.worlds, question.seed)

    worst = choice.worst.trial
    finer = [hangar.planned(replace(worst, parts=parts)) for parts in (4, 2)]
    steps = [run for run in finer if isinstance(run, Run)]  # others are below the least step
    hangar.make(replace(plan, runs=(*steps, *plan.runs)), "Monte Carlo")
    trial = Trial(choice.design, wind_deg)
    outcomes = [outcome_of(trial, run.id, store.record(run.id)) for run in plan.runs]
    kept = sum(not outcome.lacks(question.requirements) for outcome in outcomes)
    peaks = [outcome_of(worst, run.id, store.record(run.id)).peak_n for run in steps]
    peak = None
    if len(peaks) == 2 and np.isfinite(peaks).all():
        peak = Converged.of("max_tension_n", (choice.worst.peak_n, peaks[1], peaks[0]))
    worlds = Worlds(
        MonteCarlo(plan, Rows(make_rows(plan, store))),
        outcomes,
        share("kept", kept, len(outcomes)),
        vary,
    )
    return worlds, peak


VARY = """# What is not known for sure, for `musls montecarlo SCENARIO --vary THIS`: change it to
# what you know. std: standard deviation; min and max alone: evenly between them.
"""
