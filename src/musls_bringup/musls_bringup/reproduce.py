"""Table III of the seed paper: its missions flown with several seeds against its real flights.

The scenario repeats the set-points of the real flights exactly (5 Hz, held, in their phase); a test
holds it to the recordings. Of flights with another radius, period or formation it takes these
(`recorded_flights`). Which point of a simulated body is compared is an option and is written
into the result. Nothing is fitted, unless it is asked for: then the imperfections of the drones are
identified from other flights, or for each stage from the other stages, and a second column of
each system is flown with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_analysis.comparison.compare import (
    SUMMARY,
    BodyErrors,
    CompareOptions,
    StageComparison,
    compare_stage,
    error_intervals,
    write_comparison,
)
from musls_analysis.comparison.cycles import CutStage, cut, of_one_length
from musls_analysis.paper.flights import FIRST_CYCLES_DROPPED, TABLE_III
from musls_analysis.paper.imperfections import (
    CONFIDENCE,
    UNKNOWN_SHARE,
    Estimated,
    StageModel,
    alike,
    estimate,
    stage_model,
)
from musls_analysis.paper.turning_frame import Turning, turning, turning_rows
from musls_analysis.recordings.readers import read_recording
from musls_analysis.recordings.recording import Recording, bridged_s
from musls_bringup import api
from musls_bringup.fly import FlyOptions, find_scenario, fly
from musls_bringup.recorded_flights import SCENARIO, Mission, missions, one_mission, some_cycles
from musls_bringup.results import result_folder
from musls_control.px4_cascade.parameters import PX4_PARAMETERS
from musls_description.errors import ConfigError, MuslsError
from musls_description.schema import to_data, to_yaml
from musls_sim.scenario.imperfections import (
    LARGEST_OFFSET_M,
    LARGEST_TILT_RAD,
    DroneImperfections,
    Imperfections,
)

# ---------- Imperfections of real drones, from their recorded flights: `musls fit-drones`.

Array = NDArray[np.float64]

FLIGHTS = 2
"""Simulated flights of a fit, for each mission that was recorded."""
PRIOR_ACCELERATION_M_S2, PRIOR_DELAY_S, PRIOR_TILT_RAD, PRIOR_HEIGHT_M = 0.5, 0.1, 0.05, 0.1
GRAVITY_M_S2 = 9.80665
_NORMAL_90 = 1.645

NOT_SEEN = (
    "thrust_scale and motor_spread leave no trace in poses: PX4's estimate of the hover thrust and "
    "its integrators take them up",
    "mocap_offset_m: only the height at which a drone is recorded above its set-point is told, be "
    "it its motion capture's or its estimator's; sideways it is not told from the formation",
    "setpoint_jitter_s acts as half of it in delay; command_latency_s is too short to be seen",
    "thrust_tilt_rad is told from a tilt of the recorded frame by nothing here: it is what the "
    "recorded attitudes lean by",
)
"""What recorded drones cannot tell."""


@dataclass(frozen=True)
class DroneFit:
    """What was identified.

    Attributes:
        imperfections: For a scenario.
        push: Accelerations fixed in the drones, x and y of each, then the delay,
            (2 n + 1) [m/s2, s].
        lean: Tilts of the rotors, x and y of each, (2 n) [rad].
        height: Of the point that each drone brings to its set-point, above the recorded one,
            (n,) [m].
        factor: By which the linear answer is smaller or larger than the simulated one.
        stages: From which stages, with their real cycles.
        notes: What is doubtful.
    """

    imperfections: Imperfections
    push: Estimated
    lean: Estimated
    height: Estimated
    factor: float
    stages: Mapping[str, int]
    notes: Sequence[str] = field(default_factory=tuple)


def fit_drones(
    real: Mapping[str, Sequence[CutStage]],
    overrides: Sequence[str] = (),
    *,
    ideal: Recording | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> DroneFit:
    """Identify the imperfections.

    Args:
        real: Cycles by stage, of one or more flights.
        overrides: More `key=value` for the simulated flights.
        ideal: The flight with these overrides and ideal drones, if it was flown before; taken
            for recordings of the scenario's own stages.
        progress: Told how many simulated flights are done.

    Raises:
        ConfigError: The scenario does not fit the recordings.
        MuslsError: A simulated flight failed.
    """
    gains = _gains(overrides)
    n = len(find_scenario(SCENARIO, list(overrides)).system.drones)
    flown = missions(real, overrides, whole=ideal is not None)
    total = FLIGHTS * len(flown)
    done = 0

    def models(faults: Imperfections | None = None) -> list[StageModel]:
        nonlocal done
        found: list[StageModel] = []
        for mission in flown:
            progress(done, total)
            known = ideal if faults is None and not mission.overrides else None
            sim = known or simulate([*overrides, *mission.overrides], faults)
            found += _models(mission.real, sim, gains)
            done += 1
        progress(done, total)
        return found

    first = models()
    push, lean, height = _estimate(first, 1.0, n)
    factor = 1.0
    faults = imperfections_of(push.value, lean.value, height.value)
    for _ in range(1, FLIGHTS):
        again = models(faults)
        factor = _factor(first, again, push.value, factor)
        push, lean, height = (
            _moved(more, about)
            for more, about in zip(_estimate(again, factor, n), _flown(faults), strict=True)
        )
        faults = imperfections_of(push.value, lean.value, height.value)
    notes = [*_notes(push, n), *(line for mission in flown for line in said_of(mission))]
    stages = {stage: sum(len(c.cycles) for c in cuts) for stage, cuts in real.items()}
    return DroneFit(faults, push, lean, height, factor, stages, tuple(dict.fromkeys(notes)))


def said_of(mission: Mission) -> list[str]:
    """What a mission took from the recordings, and what is doubtful about these."""
    cuts = [cut for cuts in mission.real.values() for cut in cuts]
    lines = [*mission.notes, *(line for cut in cuts for line in cut.warnings)]
    if mission.taken:
        source = cuts[0].recording.source
        lines.append(f"{source}: flown with {', '.join(mission.taken)}, as it was recorded")
    return lines


def simulate(overrides: Sequence[str], faults: Imperfections | None = None) -> Recording:
    """Fly the paper's mission in memory."""
    more = [] if faults is None else [faults_override(faults)]
    return api.fly(find_scenario(SCENARIO, [*overrides, *more]))


def faults_override(faults: Imperfections) -> str:
    """The `key=value` that gives a scenario imperfections."""
    return f"imperfections={json.dumps(to_data(faults))}"


def names_of(n: int) -> list[str]:
    """Names of the parameters of `DroneFit.push`."""
    axes = [f"drone_{i + 1} {axis}" for i in range(n) for axis in ("forward", "left")]
    return [*axes, "delay"]


def imperfections_of(push: Array, lean: Array, height_m: Array) -> Imperfections:
    """Imperfections with given accelerations, delay, tilts of the rotors and heights.

    A thrust axis that is turned by e and a board that is turned by l push a drone by
    g (e_y - l_y) forward and by g (l_x - e_x) to the left.
    """
    drones = []
    for (ahead, left), (x, y), z in zip(
        push[:-1].reshape(-1, 2), lean.reshape(-1, 2), height_m, strict=True
    ):
        level = _safe((x + left / GRAVITY_M_S2, y - ahead / GRAVITY_M_S2))
        point = (0.0, 0.0, round(float(np.clip(z, -LARGEST_OFFSET_M, LARGEST_OFFSET_M)), 4))
        drones.append(
            DroneImperfections(
                thrust_tilt_rad=_safe((x, y)), level_tilt_rad=level, mocap_offset_m=point
            )
        )
    delay_s = round(float(np.clip(push[-1], 0.0, 2.0)), 4)
    return Imperfections(drones=tuple(drones), setpoint_delay_s=delay_s)


def _safe(tilt: tuple[float, float]) -> tuple[float, float]:
    x, y = np.clip(tilt, -LARGEST_TILT_RAD, LARGEST_TILT_RAD).round(5).tolist()
    return (x, y)


def _flown(faults: Imperfections) -> tuple[Array, Array, Array]:
    """Accelerations and delay, tilts of the rotors, and heights that imperfections stand for."""
    push = []
    for drone in faults.drones:
        (ex, ey), (lx, ly) = drone.thrust_tilt_rad, drone.level_tilt_rad
        push += [GRAVITY_M_S2 * (ey - ly), GRAVITY_M_S2 * (lx - ex)]
    return (
        np.array([*push, faults.setpoint_delay_s]),
        np.array([drone.thrust_tilt_rad for drone in faults.drones]).ravel(),
        np.array([drone.mocap_offset_m[2] for drone in faults.drones]),
    )


def _gains(overrides: Sequence[str]) -> dict[str, float]:
    chosen = find_scenario(SCENARIO, list(overrides)).autopilot.parameters
    names = ("MPC_XY_P", *(f"MPC_XY_VEL_{k}_ACC" for k in "PID"))
    return {name: chosen.get(name, PX4_PARAMETERS[name].default) for name in names}


def _models(
    real: Mapping[str, Sequence[CutStage]], sim: Recording, gains: Mapping[str, float]
) -> list[StageModel]:
    models = []
    for stage, cuts in real.items():
        flown = cut(sim, stage, FIRST_CYCLES_DROPPED.get(stage, 0))
        *equal, flown = of_one_length([*cuts, flown])
        for one in equal if flown.periodic else ():
            if abs(np.log(flown.period_s / one.period_s)) > 0.1:  # of stages given with --set
                raise ConfigError(
                    f"{one.recording.source}: a cycle of '{stage}' lasts {one.period_s:.2f} s, in "
                    f"scenario {SCENARIO} {flown.period_s:.2f} s: give its mission with --set"
                )
        models.append(stage_model(stage, equal, flown, gains))
    return models


def _estimate(
    models: Sequence[StageModel], factor: float, n: int
) -> tuple[Estimated, Estimated, Estimated]:
    prior = np.array([PRIOR_ACCELERATION_M_S2] * 2 * n + [PRIOR_DELAY_S])
    return (
        estimate([u for m in models for u in m.position_units(factor)], prior),
        estimate([u for m in models for u in m.attitude_units()], np.full(2 * n, PRIOR_TILT_RAD)),
        estimate([u for m in models for u in m.height_units()], np.full(n, PRIOR_HEIGHT_M)),
    )


def _moved(found: Estimated, about: Array) -> Estimated:
    """An estimate of what is still to be added, with what was flown."""
    return Estimated(
        found.value + about, found.low + about, found.high + about, found.correlation,
        found.units, found.left_m,
    )  # fmt: skip


def _factor(
    before: Sequence[StageModel], after: Sequence[StageModel], push: Array, factor: float
) -> float:
    """How much larger the simulated answer is than the linear one, over all drones and stages."""
    expected, seen = [], []
    for old, new in zip(before, after, strict=True):
        for i in range(len(old.late)):
            linear = np.tensordot(push[2 * i : 2 * i + 2], old.push[i], 1)
            expected.append(linear.ravel())
            moved = new.simulated[i] - old.simulated[i] - push[-1] * old.late[i]
            seen.append(moved.ravel())
    x, y = np.concatenate(expected), np.concatenate(seen)
    good = np.isfinite(x) & np.isfinite(y)
    found = float(x[good] @ y[good] / max(float(x[good] @ x[good]), 1e-12))
    return float(np.clip(found, 0.3, 2.0)) if np.any(x[good]) else factor


def _notes(push: Estimated, n: int) -> list[str]:
    names = names_of(n)
    prior = np.array([PRIOR_ACCELERATION_M_S2] * 2 * n + [PRIOR_DELAY_S])
    wide = push.deviation > UNKNOWN_SHARE * _NORMAL_90 * prior
    notes = [
        f"{name}: these recordings do not tell" for name, w in zip(names, wide, strict=True) if w
    ]
    if push.value[-1] < 0.0:
        notes.append(f"the delay came out as {push.value[-1]:.3f} s; taken as 0")
    return [*notes, *alike(names, push), *NOT_SEEN]


def write_fit(fit: DroneFit, folder: Path, command: str) -> None:
    """Write imperfections.yaml, which a scenario takes, and summary.json.

    Args:
        fit: What was identified.
        folder: Exists.
        command: What the user typed.
    """
    lines = [f"# {command}", *(f"# {line}" for line in summary_of(fit))]
    text = "\n".join(lines) + "\n" + to_yaml(fit.imperfections)
    (folder / "imperfections.yaml").write_text(text, encoding="utf-8")
    data: dict[str, Any] = {
        "command": command,
        "stages": dict(fit.stages),
        "factor": fit.factor,
        "confidence": CONFIDENCE,
        "rms_m": list(fit.push.left_m),
        "parameters": {
            name: {"value": float(v), "low": float(a), "high": float(b)}
            for name, v, a, b in _all(fit)
        },
        "correlation": fit.push.correlation.round(3).tolist(),
        "notes": list(fit.notes),
    }
    (folder / "summary.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _all(fit: DroneFit) -> list[tuple[str, float, float, float]]:
    """Name, value and interval of everything."""
    n = len(fit.imperfections.drones)
    pushes = [*(f"{name} m/s2" for name in names_of(n)[:-1]), "delay s"]
    leans = [f"drone_{i + 1} thrust_tilt_{axis} rad" for i in range(n) for axis in "xy"]
    heights = [f"drone_{i + 1} mocap_offset_z m" for i in range(n)]
    found: list[tuple[str, float, float, float]] = []
    for names, its in ((pushes, fit.push), (leans, fit.lean), (heights, fit.height)):
        for name, *row in zip(names, its.value, its.low, its.high, strict=True):
            value, low, high = map(float, row)
            found.append((name, value, low, high))
    return found


def summary_of(fit: DroneFit) -> list[str]:
    """The result for people: values with 90 % intervals."""
    stages = ", ".join(f"{stage} ({cycles} cycles)" for stage, cycles in fit.stages.items())
    before, after = (1e3 * rms for rms in fit.push.left_m)
    lines = [f"from {stages}; values with {100 * CONFIDENCE:.0f} % intervals"]
    lines += [f"{name}: {v:+.3f} [{low:+.3f}, {high:+.3f}]" for name, v, low, high in _all(fit)]
    lines.append(
        f"left of the last flight: {before:.0f} mm rms, {after:.0f} mm by the linear model"
    )
    return [*lines, *fit.notes]


TABLE = "table3.md"


Ends = tuple[tuple[float, float], tuple[float, float]]
"""Lower (translational error [mm], geodesic error [deg]), and upper."""


@dataclass(frozen=True)
class ReproduceOptions:
    """What to fly and how to compare.

    Attributes:
        systems: Names or files of systems, one column of the table each.
        seeds: Flights per system, with the seeds 0, 1, ...
        workers: Processes.
        overrides: More `key=value` for the scenario.
        offsets_m: Point of a simulated body that is compared, see `CompareOptions`.
        command: What the user typed, for the table.
        fit_on: Flights from which imperfections are identified.
        leave_stage_out: Identify them for each stage from the other stages of these flights.
    """

    systems: Sequence[str]
    seeds: int
    workers: int
    overrides: Sequence[str] = ()
    offsets_m: Mapping[str, Sequence[float]] | None = None
    command: str = ""
    fit_on: Sequence[Path] = ()
    leave_stage_out: bool = False


@dataclass(frozen=True)
class Column:
    """One system against the real flights.

    Attributes:
        system: Its name.
        comparisons: By stage, over the cycles of all seeds.
        spread: By stage, body: smallest and largest (translational error [mm], geodesic error
            [deg]) of a single seed.
        intervals: By stage, body: lowest and highest (translational error [mm], geodesic error
            [deg]) of the middle 90 % over drawn cycles and seeds.
        turning: Places of the drones in the turning frame.
        notes: What was taken from the recordings.
    """

    system: str
    comparisons: Mapping[str, StageComparison]
    spread: Mapping[str, Mapping[str, Ends]]
    intervals: Mapping[str, Mapping[str, Ends]]
    turning: Sequence[Turning] = ()
    notes: Sequence[str] = ()


def reproduce(
    flights: Path | Sequence[Path],
    out: Path,
    options: ReproduceOptions,
    *,
    overwrite: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Column]:
    """Fly, compare, and write the table, every comparison with its figures, and all flights.

    Args:
        flights: One or several, whose cycles are pooled, of all stages or some; see
            `some_cycles`.
        out: Folder for the results.
        options: How.
        overwrite: Replace an older result.
        progress: Told how many flights of how many are done.

    Raises:
        MuslsError: Something is wrong with the input, a flight failed, or the folder cannot be
            written; nothing is left behind.
    """
    read = some_cycles([flights] if isinstance(flights, Path) else flights)
    names = [_name(system) for system in options.systems]
    if len(set(names)) < len(names):
        raise ConfigError(f"--system: each may be given once, not {', '.join(names)}")
    seen = some_cycles(options.fit_on) if options.fit_on else {}
    flown = {}
    for name, system in zip(names, options.systems, strict=True):
        # What is wrong shows before anything is flown.
        plain = [*options.overrides, f"system={system}"]
        flown[name] = one_mission(read, plain)
        if seen:
            missions(seen, plain)
        elif options.leave_stage_out and len(read) < 2:
            raise ConfigError(
                f"--leave-stage-out: only stage '{next(iter(read))}' is recorded, there is no "
                "other to learn from"
            )
    with result_folder(out, overwrite=overwrite) as work:
        variants = [
            variant
            for name, system in zip(names, options.systems, strict=True)
            for variant in _variants(name, system, flown[name], seen, options, work)
        ]
        tasks = [task for variant in variants for task in variant.tasks(work, options.seeds)]
        progress(0, len(tasks))
        for done in _fly_all(tasks, options.workers):
            progress(done, len(tasks))
        columns = []
        for variant in variants:
            columns.append(_column(variant, work, options))
            about = {"system": variant.name, "compared_points": _points(options)}
            write_comparison([*columns[-1].comparisons.values()], about, work / variant.name)
            _draw_turning(columns[-1], work / variant.name)
        text = table(columns, options)
        (work / TABLE).write_text(text, encoding="utf-8")
        summary: dict[str, Any] = {"command": options.command, "compared_points": _points(options)}
        summary["systems"] = {c.system: _numbers(c) for c in columns}
        (work / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return columns


@dataclass(frozen=True)
class Variant:
    """What one column flies.

    Attributes:
        name: Of the column and its folder.
        overrides: `key=value` of the scenario, by the group of stages for which they are flown.
        group: By stage, its group.
        mission: The recorded cycles, and what flies them again.
    """

    name: str
    overrides: Mapping[str, Sequence[str]]
    group: Mapping[str, str]
    mission: Mission

    def folders(self, work: Path, group: str, seeds: int) -> list[Path]:
        """Where the flights of a group are."""
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
    mission: Mission,
    seen: Mapping[str, Sequence[CutStage]],
    options: ReproduceOptions,
    work: Path,
) -> list[Variant]:
    """The system as it is and, where asked for, with what was identified."""
    real = mission.real
    base = [*options.overrides, f"system={system}"]
    plain = [*base, *mission.overrides]
    found = [Variant(name, {"": plain}, dict.fromkeys(real, ""), mission)]
    folds: dict[str, Mapping[str, Sequence[CutStage]]] = {}
    if seen:
        folds[""] = seen
    elif options.leave_stage_out:
        for stage in real:
            folds[f"without_{stage}_"] = {s: cuts for s, cuts in real.items() if s != stage}
    if not folds:
        return found
    ideal = None if mission.overrides else simulate(plain)
    overrides = {}
    for group, cuts in folds.items():
        fit = fit_drones(cuts, base, ideal=ideal)
        folder = work / f"{name}_fitted" / f"{group}fit"
        folder.mkdir(parents=True)
        write_fit(fit, folder, options.command)
        overrides[group] = [*plain, faults_override(fit.imperfections)]
    groups = {stage: "" if seen else f"without_{stage}_" for stage in real}
    return [*found, Variant(f"{name}_fitted", overrides, groups, mission)]


def _name(system: str) -> str:
    return Path(system).stem if system.endswith((".yaml", ".yml")) else system


def _fly_all(tasks: Sequence[tuple[list[str], Path]], workers: int) -> Iterator[int]:
    """Fly in processes; gives the number of flights done as it grows."""
    # Spawned, not forked: numba and DART keep threads.
    with ProcessPoolExecutor(min(workers, len(tasks)), mp_context=get_context("spawn")) as pool:
        running = [pool.submit(_fly, *task) for task in tasks]
        try:
            for done, future in enumerate(as_completed(running), start=1):
                future.result()
                yield done
        except BrokenProcessPool:
            raise MuslsError("a flight's process died (out of memory, or killed)") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _fly(overrides: list[str], out: Path) -> None:
    fly(find_scenario(SCENARIO, overrides), out, FlyOptions(report=False))


def _column(
    variant: Variant,
    work: Path,
    options: ReproduceOptions,
) -> Column:
    rows = [one.recording.time_s for cuts in variant.mission.real.values() for one in cuts]
    how = CompareOptions(offsets_m=options.offsets_m or {}, gap_limit_s=bridged_s(rows))
    flown = {
        group: [read_recording(f) for f in variant.folders(work, group, options.seeds)]
        for group in variant.overrides
    }
    comparisons, spread, intervals, seen_turning = {}, {}, {}, []
    for stage, real_cuts in variant.mission.real.items():
        sims = flown[variant.group[stage]]
        cuts = [cut(sim, stage, FIRST_CYCLES_DROPPED[stage]) for sim in sims]
        comparisons[stage] = compare_stage(stage, real_cuts, cuts, how)
        single = [compare_stage(stage, real_cuts, [one], how).errors for one in cuts]
        spread[stage] = {
            body: (_extreme(min, single, body), _extreme(max, single, body)) for body in single[0]
        }
        intervals[stage] = error_intervals(real_cuts, cuts, how, comparisons[stage].errors)
        seen_turning.append(turning(comparisons[stage], cuts[0]))
    return Column(
        variant.name, comparisons, spread, intervals, seen_turning, said_of(variant.mission)
    )


def _draw_turning(column: Column, folder: Path) -> None:
    # Slow to import, and not needed before the flights are over.
    from musls_analysis.figures.comparison import turning_frame_figure
    from musls_analysis.figures.style import save, styled

    with styled():
        save(turning_frame_figure(column.turning), folder / "figures" / "turning_frame.png")


def _extreme(
    which: Callable[[Iterable[float]], float],
    flights: Sequence[Mapping[str, BodyErrors]],
    body: str,
) -> tuple[float, float]:
    """Least or greatest error of a body among flights [mm, deg]."""
    return (
        1e3 * which(errors[body].translational_error_m for errors in flights),
        which(errors[body].geodesic_error_deg for errors in flights),
    )


def table(columns: Sequence[Column], options: ReproduceOptions) -> str:
    """The table as Markdown: translational error [mm] / geodesic error [deg]."""
    lines = [
        f"`{options.command}`" if options.command else "",
        "",
        "| | paper | " + " | ".join(f"`{c.system}`" for c in columns) + " |",
        "|---" * (2 + len(columns)) + "|",
    ]
    for stage in columns[0].comparisons:
        for body, (mm, deg) in TABLE_III[stage].items():
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
            *(row for found in column.turning for row in turning_rows(found)),
            "",
        ]
    return "\n".join(lines)


def _cell(column: Column, stage: str, body: str) -> str:
    errors = column.comparisons[stage].errors[body]
    (low, flat), (high, steep) = column.intervals[stage][body]
    mm, deg = 1e3 * errors.translational_error_m, errors.geodesic_error_deg
    texts = [
        f"**{value:.1f}**" if round(value, 1) <= paper else f"{value:.1f}"
        for value, paper in zip((mm, deg), TABLE_III[stage][body], strict=True)
    ]
    return f"{' / '.join(texts)} [{low:.0f}, {high:.0f} / {flat:.1f}, {steep:.1f}]"


def _footnote(columns: Sequence[Column], options: ReproduceOptions) -> str:
    cycles = ", ".join(
        f"{c.real_cycles} real and {c.sim_cycles} simulated cycles of {stage}"
        for stage, c in columns[0].comparisons.items()
    )
    return (
        "Translational error [mm] / geodesic error [deg] of the mean cycles, bold where at or "
        "below the paper's; in brackets the middle 90 % of both over drawn cycles and seeds "
        f"(seeds: {options.seeds}; of one real cycle they say nothing about another). {cycles}. "
        f"Compared points: {_points(options)}.{_fits(options)}"
        + "".join(f" {line}." for line in _about(columns))
    )


def _about(columns: Sequence[Column]) -> list[str]:
    """What is doubtful about the recordings, and what was taken from them."""
    lines: list[str] = []
    for column in columns:
        lines += column.notes
        lines += [line for c in column.comparisons.values() for line in c.warnings]
    return list(dict.fromkeys(lines))


def _fits(options: ReproduceOptions) -> str:
    if options.fit_on:
        return f" Fitted: on {', '.join(map(str, options.fit_on))}."
    if options.leave_stage_out:
        return " Fitted: each stage with what the other stages tell."
    return ""


def _points(options: ReproduceOptions) -> str:
    moved = "; ".join(
        f"{body} at ({x:g}, {y:g}, {z:g}) m in its frame"
        for body, (x, y, z) in (options.offsets_m or {}).items()
    )
    return "body origins" + (f", but in the simulation {moved}" if moved else "")


def _numbers(column: Column) -> dict[str, Any]:
    return {
        stage: {
            body: {
                "translational_error_mm": 1e3 * errors.translational_error_m,
                "geodesic_error_deg": errors.geodesic_error_deg,
                "seed_range_mm": [end[0] for end in column.spread[stage][body]],
                "seed_range_deg": [end[1] for end in column.spread[stage][body]],
                "interval_mm": [end[0] for end in column.intervals[stage][body]],
                "interval_deg": [end[1] for end in column.intervals[stage][body]],
                "paper": list(TABLE_III[stage][body]),
            }
            for body, errors in comparison.errors.items()
        }
        for stage, comparison in column.comparisons.items()
    }
