"""Table III of the seed paper: its missions flown with several seeds against its real flights.

The scenario repeats the set-points of the real flights exactly (5 Hz, held, in their phase); a test
holds it to the recordings. Nothing is fitted here; which point of a simulated body is compared is
an option and is written into the result.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from musls_analysis.comparison.compare import (
    BodyErrors,
    CompareOptions,
    StageComparison,
    compare_stage,
)
from musls_analysis.comparison.comparison_files import SUMMARY, write_comparison
from musls_analysis.comparison.cycles import CutStage, cut
from musls_analysis.comparison.paper import FIRST_CYCLES_DROPPED, TABLE_III
from musls_analysis.recordings.readers import read_recording
from musls_analysis.recordings.recording import Recording
from musls_bringup.fly import FlyOptions, find_scenario, fly
from musls_bringup.results import result_folder
from musls_description.errors import ConfigError, MuslsError

SCENARIO = "paper"
TABLE = "table3.md"


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
    """

    systems: Sequence[str]
    seeds: int
    workers: int
    overrides: Sequence[str] = ()
    offsets_m: Mapping[str, Sequence[float]] | None = None
    command: str = ""


@dataclass(frozen=True)
class Column:
    """One system against the real flights.

    Attributes:
        system: Its name.
        comparisons: By stage, over the cycles of all seeds.
        spread: By stage, body: smallest and largest (translational error [mm], geodesic error
            [deg]) of a single seed.
    """

    system: str
    comparisons: Mapping[str, StageComparison]
    spread: Mapping[str, Mapping[str, tuple[tuple[float, float], tuple[float, float]]]]


def real_cycles(place: Path) -> dict[str, CutStage]:
    """The real cycles of each stage of Table III.

    The first ones are dropped from a whole flight; an excerpt has those of the middle only.

    Args:
        place: One recording of everything, or a folder with files `*_circle.csv`, `*_shm.csv` and
            `*_engage.csv`.

    Raises:
        ConfigError: A stage has no file or several.
    """
    marks = ("metadata.yaml", "bag")
    if not os.path.isdir(place) or any(os.path.exists(place / mark) for mark in marks):
        flight = read_recording(place)
        return {stage: cut(flight, stage, skip) for stage, skip in FIRST_CYCLES_DROPPED.items()}
    found = {}
    for stage in TABLE_III:
        files = sorted(place.glob(f"*_{stage}.csv"))
        if len(files) != 1:
            has = ", ".join(f.name for f in files) or "none"
            raise ConfigError(f"{place}: must hold one file *_{stage}.csv, there is {has}")
        found[stage] = cut(read_recording(files[0]), stage)
    return found


def reproduce(
    flights: Path,
    out: Path,
    options: ReproduceOptions,
    *,
    overwrite: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Column]:
    """Fly, compare, and write the table, every comparison with its figures, and all flights.

    Args:
        flights: See `real_cycles`.
        out: Folder for the results.
        options: How.
        overwrite: Replace an older result.
        progress: Told how many flights of how many are done.

    Raises:
        MuslsError: Something is wrong with the input, a flight failed, or the folder cannot be
            written; nothing is left behind.
    """
    real = real_cycles(flights)
    names = [_name(system) for system in options.systems]
    if len(set(names)) < len(names):
        raise ConfigError(f"--system: each may be given once, not {', '.join(names)}")
    with result_folder(out, overwrite=overwrite) as work:
        jobs = [
            (name, seed, [*options.overrides, f"system={system}", f"seed={seed}"])
            for name, system in zip(names, options.systems, strict=True)
            for seed in range(options.seeds)
        ]
        folders = [work / name / "flights" / f"seed_{seed}" for name, seed, _ in jobs]
        for overrides in (jobs[k * options.seeds][2] for k in range(len(names))):
            find_scenario(SCENARIO, overrides)  # what is wrong shows before anything is flown
        progress(0, len(jobs))
        tasks = [(job[2], folder) for job, folder in zip(jobs, folders, strict=True)]
        for done in _fly_all(tasks, options.workers):
            progress(done, len(tasks))
        columns = []
        for name in names:
            sims = [read_recording(f) for f in folders if f.parts[-3] == name]
            columns.append(_column(name, real, sims, options))
            about = {"system": name, "compared_points": _points(options)}
            write_comparison([*columns[-1].comparisons.values()], about, work / name)
        text = table(columns, options)
        (work / TABLE).write_text(text, encoding="utf-8")
        summary: dict[str, Any] = {"command": options.command, "compared_points": _points(options)}
        summary["systems"] = {c.system: _numbers(c) for c in columns}
        (work / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return columns


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
    name: str, real: Mapping[str, CutStage], sims: Sequence[Recording], options: ReproduceOptions
) -> Column:
    how = CompareOptions(offsets_m=options.offsets_m or {})
    comparisons, spread = {}, {}
    for stage in real:
        real_cut = real[stage]
        cuts = [cut(sim, stage, FIRST_CYCLES_DROPPED[stage]) for sim in sims]
        comparisons[stage] = compare_stage(stage, real_cut, cuts, how)
        single = [compare_stage(stage, real_cut, [one], how).errors for one in cuts]
        spread[stage] = {
            body: (_extreme(min, single, body), _extreme(max, single, body)) for body in single[0]
        }
    return Column(name, comparisons, spread)


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
    for stage, bodies in TABLE_III.items():
        for body, (mm, deg) in bodies.items():
            cells = [_cell(column, stage, body) for column in columns]
            lines.append(
                f"| {stage}, {body.replace('_', ' ')} | {mm} / {deg} | {' | '.join(cells)} |"
            )
    lines += ["", _footnote(columns, options), ""]
    return "\n".join(lines)


def _cell(column: Column, stage: str, body: str) -> str:
    errors = column.comparisons[stage].errors[body]
    (low, _), (high, _) = column.spread[stage][body]
    mm, deg = 1e3 * errors.translational_error_m, errors.geodesic_error_deg
    texts = [
        f"**{value:.1f}**" if round(value, 1) <= paper else f"{value:.1f}"
        for value, paper in zip((mm, deg), TABLE_III[stage][body], strict=True)
    ]
    return f"{' / '.join(texts)} [{low:.0f}, {high:.0f}]"


def _footnote(columns: Sequence[Column], options: ReproduceOptions) -> str:
    cycles = ", ".join(
        f"{c.real_cycles} real and {c.sim_cycles} simulated cycles of {stage}"
        for stage, c in columns[0].comparisons.items()
    )
    return (
        "Translational error [mm] / geodesic error [deg] of the mean cycles, bold where at or "
        "below the paper's; in brackets the smallest and largest translational error of one seed "
        f"(seeds: {options.seeds}). {cycles}. Compared points: {_points(options)}."
    )


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
                "paper": list(TABLE_III[stage][body]),
            }
            for body, errors in comparison.errors.items()
        }
        for stage, comparison in column.comparisons.items()
    }
