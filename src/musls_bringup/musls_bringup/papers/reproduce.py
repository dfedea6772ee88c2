"""Table III of the seed paper: its missions flown with several seeds against its real flights.

The scenario repeats the set-points of the real flights exactly (5 Hz, held, in their phase); a test
holds it to the recordings. Of flights with another radius, period or formation it takes these
(`musls_analysis.paper.flights`). Which point of a simulated body is compared is an option and is
written into the result. Nothing is fitted, unless it is asked for: then the imperfections of the
drones are identified from other flights, or for each stage from the other stages, and a second
column of each system is flown with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from musls_analysis.comparison.compare import (
    SUMMARY,
    CompareOptions,
    Interval,
    StageComparison,
    compare_stage,
    error_intervals,
    moved_points,
    write_comparison,
)
from musls_analysis.comparison.cycles import CutStage, cut
from musls_analysis.estimation.drones import DroneFit, identify, write_fit
from musls_analysis.paper import flights
from musls_analysis.recordings.readers import ReadOptions, read_recording
from musls_analysis.recordings.recording import Recording
from musls_bringup.api import simulation
from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.flight.fly import FlyOptions, fly
from musls_bringup.flight.results import result_folder
from musls_control.child_processes import worker_count, worker_processes
from musls_control.px4.parameters import PX4_PARAMETERS
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_data
from musls_sim.scenario.scenario import Scenario
from musls_sim.specs.imperfections import Imperfections

TABLE = "table3.md"


def paper(overrides: Sequence[str]) -> Scenario:
    """The scenario that repeats the paper's set-points, with `key=value` overrides."""
    return find_scenario(flights.SCENARIO, list(overrides))


def faults_override(faults: Imperfections) -> str:
    """The `key=value` that gives a scenario imperfections."""
    return f"imperfections={json.dumps(to_data(faults))}"


def fit_drones(
    real: flights.Real,
    overrides: Sequence[str] = (),
    *,
    ideal: Recording | None = None,
    progress: Callable[[int, int], None] = lambda count, total: None,
) -> DroneFit:
    """Identify the imperfections of recorded drones from cycles by stage: `musls fit-drones`.

    `ideal` is the flight with these overrides and ideal drones, if it was flown before.
    """
    scenario = paper(overrides)
    missions = flights.missions(real, scenario, overrides, whole=ideal is not None)
    names = ("MPC_XY_P", *(f"MPC_XY_VEL_{k}_ACC" for k in "PID"))
    parameters = scenario.autopilot.parameters
    gains = {name: parameters.get(name, PX4_PARAMETERS[name].default) for name in names}
    total = 2 * len(missions)
    count = 0

    def flight(mission: flights.Mission, faults: Imperfections | None) -> Recording:
        nonlocal count
        progress(count, total)
        ideal_flight = ideal if faults is None and not mission.overrides else None
        imperfect = [] if faults is None else [faults_override(faults)]
        sim = ideal_flight or simulation.fly(paper([*overrides, *mission.overrides, *imperfect]))
        count += 1
        progress(count, total)
        return sim

    rates = [paper([*overrides, *its.overrides]).mission.setpoint_rate_hz for its in missions]
    return identify(missions, gains, 1.0 / min(rates), flight)


@dataclass(frozen=True)
class ReproduceOptions:
    """Flights and comparison.

    Attributes:
        systems: Names or files of systems, one column of the table each.
        seeds: Flights per system, with the seeds 0, 1, ...
        offsets_m: Point of a simulated body that is compared, see `CompareOptions`.
        fit_on: Flights from which imperfections are identified.
        leave_stage_out: Identify them for each stage from the other stages of these flights.
        reading: Facts that the flights' files lack.
    """

    systems: Sequence[str]
    seeds: int
    workers: int | None = None
    overrides: Sequence[str] = ()
    offsets_m: Mapping[str, Sequence[float]] = field(default_factory=dict)
    command: str = ""
    fit_on: Sequence[Path] = ()
    leave_stage_out: bool = False
    reading: ReadOptions = field(default_factory=ReadOptions)

    @property
    def compared_points(self) -> str:
        """Points of the simulated bodies, in words."""
        return f"body origins{moved_points(self.offsets_m)}"


@dataclass(frozen=True)
class SystemColumn:
    """One system against the real flights.

    Attributes:
        comparisons: Comparisons by stage, over the cycles of all seeds.
        spread: Range by stage, body: smallest and largest (translational error [mm], geodesic error
            [deg]) of a single seed.
        intervals: 90 % intervals by stage, body: lowest and highest (translational error [mm],
            geodesic error [deg]) over drawn cycles and seeds.
        turning: Places of the drones in the turning frame.
        notes: Values taken from the recordings.
    """

    system: str
    comparisons: Mapping[str, StageComparison]
    spread: Mapping[str, Mapping[str, Interval]]
    intervals: Mapping[str, Mapping[str, Interval]]
    turning: Sequence[flights.TurningPlaces] = ()
    notes: Sequence[str] = ()


def reproduce(
    recorded: Path | Sequence[Path],
    out: Path,
    options: ReproduceOptions,
    *,
    overwrite: bool = False,
    progress: Callable[[int, int], None] = lambda count, total: None,
) -> list[SystemColumn]:
    """Fly, compare, and write the table, every comparison with its figures, and all flights.

    Cycles of several flights are pooled; a flight has all stages or some, see `some_cycles`.
    """
    places = [recorded] if isinstance(recorded, Path) else recorded
    takes = flights.some_cycles(places, options.reading)
    names = [
        Path(system).stem if system.endswith((".yaml", ".yml")) else system
        for system in options.systems
    ]
    if len(set(names)) < len(names):
        raise ConfigError(f"--system: each may be given once, not {', '.join(names)}")
    cycles = flights.some_cycles(options.fit_on, options.reading) if options.fit_on else {}
    missions = {}
    for name, system in zip(names, options.systems, strict=True):
        # What is wrong shows before anything is flown.
        plain = [*options.overrides, f"system={system}"]
        scenario = paper(plain)
        missions[name] = flights.one_mission(takes, scenario, plain)
        if cycles:
            flights.missions(cycles, scenario, plain)
        elif options.leave_stage_out and len(takes) < 2:
            raise ConfigError(
                f"--leave-stage-out: only stage '{next(iter(takes))}' is recorded, there is no "
                "other to learn from"
            )
    from musls_analysis.figures.comparison import write_figures  # imports matplotlib

    with result_folder(out, overwrite=overwrite) as work:
        variants = [
            variant
            for name, system in zip(names, options.systems, strict=True)
            for variant in _variants(name, system, missions[name], cycles, options, work)
        ]
        tasks = [task for variant in variants for task in variant.tasks(work, options.seeds)]
        _fly_all(tasks, options.workers, progress)
        columns = []
        for variant in variants:
            columns.append(_column(variant, work, options))
            about = {"system": variant.name, "compared_points": options.compared_points}
            compared = [*columns[-1].comparisons.values()]
            write_comparison(compared, about, work / variant.name)
            write_figures(compared, work / variant.name / "figures", columns[-1].turning)
        text = table(columns, options)
        (work / TABLE).write_text(text, encoding="utf-8")
        summary: dict[str, Any] = {
            "command": options.command,
            "compared_points": options.compared_points,
        }
        summary["systems"] = {c.system: _numbers(c) for c in columns}
        (work / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return columns


@dataclass(frozen=True)
class Variant:
    """Flights of one column.

    Attributes:
        name: Name of the column and its folder.
        overrides: `key=value` of the scenario, by the group of stages for which they are flown.
        group: Group by stage.
        mission: The recorded cycles, and what flies them again.
    """

    name: str
    overrides: Mapping[str, Sequence[str]]
    group: Mapping[str, str]
    mission: flights.Mission

    def folders(self, work: Path, group: str, seeds: int) -> list[Path]:
        """Folders of the flights of a group."""
        return [work / self.name / "flights" / f"{group}seed_{seed}" for seed in range(seeds)]

    def tasks(self, work: Path, seeds: int) -> list[tuple[list[str], Path]]:
        """Overrides and folder of each flight."""
        return [
            ([*overrides, f"seed={seed}"], folder)
            for group, overrides in self.overrides.items()
            for seed, folder in enumerate(self.folders(work, group, seeds))
        ]


def _variants(
    name: str,
    system: str,
    mission: flights.Mission,
    cycles: Mapping[str, Sequence[CutStage]],
    options: ReproduceOptions,
    work: Path,
) -> list[Variant]:
    """The system as it is and, where asked for, with what was identified."""
    real = mission.real
    base = [*options.overrides, f"system={system}"]
    plain = [*base, *mission.overrides]
    variants = [Variant(name, {"": plain}, dict.fromkeys(real, ""), mission)]
    folds: dict[str, Mapping[str, Sequence[CutStage]]] = {}
    if cycles:
        folds[""] = cycles
    elif options.leave_stage_out:
        for stage in real:
            folds[f"without_{stage}_"] = {s: cuts for s, cuts in real.items() if s != stage}
    if not folds:
        return variants
    ideal = None if mission.overrides else simulation.fly(paper(plain))
    overrides = {}
    for group, cuts in folds.items():
        fit = fit_drones(cuts, base, ideal=ideal)
        folder = work / f"{name}_fitted" / f"{group}fit"
        folder.mkdir(parents=True)
        write_fit(fit, folder, options.command, plain)
        overrides[group] = [*plain, faults_override(fit.imperfections)]
    groups = {stage: "" if cycles else f"without_{stage}_" for stage in real}
    return [*variants, Variant(f"{name}_fitted", overrides, groups, mission)]


def _fly_all(
    tasks: Sequence[tuple[list[str], Path]],
    workers: int | None,
    progress: Callable[[int, int], None],
) -> None:
    """Fly in processes and tell how many flights are done."""
    progress(0, len(tasks))
    with worker_processes(worker_count(workers, len(tasks))) as pool:
        running = [pool.submit(_fly, *task) for task in tasks]
        for count, future in enumerate(as_completed(running), start=1):
            future.result()
            progress(count, len(tasks))


def _fly(overrides: list[str], out: Path) -> None:
    fly(paper(overrides), out, FlyOptions(report=False))  # one that is cut raises


def _column(
    variant: Variant,
    work: Path,
    options: ReproduceOptions,
) -> SystemColumn:
    compare_options = CompareOptions(offsets_m=options.offsets_m)
    recordings = {
        group: [read_recording(f) for f in variant.folders(work, group, options.seeds)]
        for group in variant.overrides
    }
    comparisons = {}
    intervals = {}
    seen_turning = []
    spread: dict[str, dict[str, Interval]] = {}
    for stage, real_cuts in variant.mission.real.items():
        sims = recordings[variant.group[stage]]
        cuts = [cut(sim, stage, flights.FIRST_CYCLES_DROPPED[stage]) for sim in sims]
        comparisons[stage] = compare_stage(stage, real_cuts, cuts, compare_options)
        single = [compare_stage(stage, real_cuts, [one], compare_options).errors for one in cuts]
        spread[stage] = {}
        for body in single[0]:
            mm = [1e3 * errors[body].translational_error_m for errors in single]
            deg = [errors[body].geodesic_error_deg for errors in single]
            spread[stage][body] = (min(mm), min(deg)), (max(mm), max(deg))
        intervals[stage] = error_intervals(
            real_cuts, cuts, compare_options, comparisons[stage].errors
        )
        seen_turning.append(flights.turning(comparisons[stage], cuts[0]))
    return SystemColumn(
        variant.name, comparisons, spread, intervals, seen_turning, variant.mission.remarks
    )


def table(columns: Sequence[SystemColumn], options: ReproduceOptions) -> str:
    """The table as Markdown: translational error [mm] / geodesic error [deg]."""
    lines = [
        f"`{options.command}`" if options.command else "",
        "",
        "| | paper | " + " | ".join(f"`{c.system}`" for c in columns) + " |",
        "|---" * (2 + len(columns)) + "|",
    ]
    for stage in columns[0].comparisons:
        for body, (mm, deg) in flights.TABLE_III[stage].items():
            cells = [_cell(column, stage, body) for column in columns]
            lines.append(
                f"| {stage}, {body.replace('_', ' ')} | {mm} / {deg} | {' | '.join(cells)} |"
            )
    lines += ["", _footnote(columns, options), ""]
    for column in columns:
        lines += [
            f"`{column.system}`: mean place of each drone about the drones' centroid, in axes that "
            "turn with its set-point (outward, forward, up) [mm]:",
            "",
            "| | recorded | simulated | difference |",
            "|---|---|---|---|",
            *(row for entry in column.turning for row in flights.turning_rows(entry)),
            "",
        ]
    return "\n".join(lines)


def _cell(column: SystemColumn, stage: str, body: str) -> str:
    errors = column.comparisons[stage].errors[body]
    (low, flat), (high, steep) = column.intervals[stage][body]
    mm = 1e3 * errors.translational_error_m
    deg = errors.geodesic_error_deg
    texts = [
        f"**{value:.1f}**" if round(value, 1) <= paper else f"{value:.1f}"
        for value, paper in zip((mm, deg), flights.TABLE_III[stage][body], strict=True)
    ]
    return f"{' / '.join(texts)} [{low:.0f}, {high:.0f} / {flat:.1f}, {steep:.1f}]"


def _footnote(columns: Sequence[SystemColumn], options: ReproduceOptions) -> str:
    cycles = ", ".join(
        f"{c.real_cycles} real and {c.sim_cycles} simulated cycles of {stage}"
        for stage, c in columns[0].comparisons.items()
    )
    fits = f" Fitted: on {', '.join(map(str, options.fit_on))}." if options.fit_on else ""
    if options.leave_stage_out:
        fits = " Fitted: each stage with what the other stages tell."
    return (
        "Translational error [mm] / geodesic error [deg] of the mean cycles, bold where at or "
        "below the paper's; in brackets the middle 90 % of both over drawn cycles and seeds "
        f"(seeds: {options.seeds}; of one real cycle they say nothing about another). {cycles}. "
        f"Compared points: {options.compared_points}.{fits}"
        + "".join(f" {line}." for line in _about(columns))
    )


def _about(columns: Sequence[SystemColumn]) -> list[str]:
    """Doubts about the recordings, and what was taken from them."""
    lines = [
        line
        for column in columns
        for some in (column.notes, *(c.warnings for c in column.comparisons.values()))
        for line in some
    ]
    return list(dict.fromkeys(lines))


def _numbers(column: SystemColumn) -> dict[str, Any]:
    return {
        stage: {
            body: {
                "translational_error_mm": 1e3 * errors.translational_error_m,
                "geodesic_error_deg": errors.geodesic_error_deg,
                "seed_range_mm": [end[0] for end in column.spread[stage][body]],
                "seed_range_deg": [end[1] for end in column.spread[stage][body]],
                "interval_mm": [end[0] for end in column.intervals[stage][body]],
                "interval_deg": [end[1] for end in column.intervals[stage][body]],
                "paper": list(flights.TABLE_III[stage][body]),
            }
            for body, errors in comparison.errors.items()
        }
        for stage, comparison in column.comparisons.items()
    }
