"""`musls compare`: simulated flights against a real one."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from musls_bringup.cli import options
from musls_bringup.cli.recorded.reading import read, reads
from musls_bringup.cli.terminal import new_console, tell
from musls_bringup.flight.progress import ProgressDisplay
from musls_bringup.flight.results import chosen_folder, result_folder
from musls_description.config.errors import ConfigError

if TYPE_CHECKING:
    from musls_analysis.comparison.compare import CompareOptions, StageComparison
    from musls_analysis.recordings.recording import Recording

LONGEST_LAG_S = 60.0
"""Each hundredth of a second is tried, either way."""

_Real = Annotated[
    Path, typer.Argument(help="Real flight: bag, flight log or CSV excerpt.", metavar="REAL")
]
_Sims = Annotated[
    list[Path], typer.Argument(help="Simulated flights: result folders or bags.", metavar="SIM...")
]
_STAGE = "Stage to compare, such as circle, shm, engage; may be repeated."
_CALIBRATE = (
    "Another real flight, by which the 90 % bands of ten and more simulated ones are widened; may "
    "be repeated."
)
_LAG = "Largest time shift that is tried, in both directions [s]."
_EULER = "Average roll, pitch and yaw one by one, as the paper does."
_BODIES = "Bodies to compare, separated by commas."
_SKIP_REAL = "Number of cycles to leave out at the start of the real flight."
_SKIP_SIM = "Number of cycles to leave out at the start of each simulation."
_REAL_CYCLE = "Start and end of a cycle of the real flight [s]; may be repeated."
_SIM_CYCLE = "Start and end of a simulated cycle [s]; may be repeated."
_Spans = list[str] | None


def _span_option(help: str) -> Any:
    return typer.Option(metavar="START:END", help=help)


@reads("real", "calibrate")
def run(
    real: _Real,
    sims: _Sims,
    stage: Annotated[list[str], typer.Option(metavar="NAME", help=_STAGE)],
    lag_limit: Annotated[float, typer.Option(metavar="S", help=_LAG)] = 0.5,
    euler_mean: Annotated[bool, typer.Option("--euler-mean", help=_EULER)] = False,
    offset: options.SimulatedPoints = None,
    calibrate: Annotated[list[Path] | None, typer.Option(metavar="REAL", help=_CALIBRATE)] = None,
    only: Annotated[
        str | None, typer.Option(metavar="BODY,...", help=_BODIES, show_default="all")
    ] = None,
    skip_real: Annotated[int, typer.Option(metavar="N", min=0, help=_SKIP_REAL)] = 0,
    skip_sim: Annotated[int, typer.Option(metavar="N", min=0, help=_SKIP_SIM)] = 0,
    real_cycle: Annotated[_Spans, _span_option(_REAL_CYCLE)] = None,
    sim_cycle: Annotated[_Spans, _span_option(_SIM_CYCLE)] = None,
    out: Annotated[Path | None, options.out_path("runs/compare_DATE_TIME")] = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
    *,
    reading: Any,
) -> None:
    """Compares mean trajectories: translational and geodesic errors as in the paper's Table III."""
    from musls_analysis.comparison.compare import (
        FEWEST_FLIGHTS,
        SUMMARY,
        CompareOptions,
        compare_stage,
        write_comparison,
    )
    from musls_analysis.comparison.cycles import cut_alike
    from musls_analysis.figures.comparison import write_figures

    folder = chosen_folder(out, "compare", overwrite=overwrite)
    options.within("--lag-limit", lag_limit, 0.0, LONGEST_LAG_S, " s")
    compare_options = CompareOptions(
        lag_limit_s=lag_limit,
        euler_mean=euler_mean,
        offsets_m=options.offsets_m(offset),
        bodies=tuple(part.strip() for part in only.split(",")) if only else (),
    )
    others = list(calibrate or ())
    if others and len(sims) < FEWEST_FLIGHTS:
        raise ConfigError(
            f"--calibrate: bands are made of {FEWEST_FLIGHTS} simulated flights or more, "
            f"here {len(sims)}"
        )
    recordings = [read(path, reading) for path in [real, *others]]
    recordings += [read(path) for path in sims]
    skips = [*[skip_real] * (1 + len(others)), *[skip_sim] * len(sims)]
    spans_s = [[_span(text) for text in texts or ()] for texts in (real_cycle, sim_cycle)]
    comparisons = []
    names = list(dict.fromkeys(stage))
    with ProgressDisplay("comparing") as display:
        for k, name in enumerate(names):
            display.update(f"stage {name}", k / len(names))
            spans = [spans_s[0], *[[]] * len(others), *[spans_s[1]] * len(sims)]
            first, *cuts = cut_alike(recordings, name, skips, spans)
            sim_cuts = cuts[len(others) :]
            calibrating = cuts[: len(others)]
            comparison = compare_stage(name, first, sim_cuts, compare_options, calibrating)
            comparisons.append(comparison)
    for line in (line for comparison in comparisons for line in comparison.warnings):
        tell("warning", line)
    about = _about(recordings, len(others), compare_options)
    with result_folder(folder, overwrite=overwrite) as work, ProgressDisplay("drawing"):
        write_comparison(comparisons, about, work)
        write_figures(comparisons, work / "figures")
    if as_json:
        print((folder / SUMMARY).read_text(encoding="utf-8"), end="")
    else:
        _conclude(comparisons, about, folder)


def _about(
    recordings: list[Recording], others: int, compare_options: CompareOptions
) -> dict[str, Any]:
    """Sources and options of the comparison, for its JSON file."""
    from musls_analysis.comparison.compare import moved_points

    return {
        "real": recordings[0].source,
        "bands_widened_by": [recording.source for recording in recordings[1 : 1 + others]],
        "sims": [recording.source for recording in recordings[1 + others :]],
        "compared_points": f"body origins as recorded{moved_points(compare_options.offsets_m)}",
        "rotations_averaged": (
            "roll, pitch, yaw one by one" if compare_options.euler_mean else "on SO(3), chordal"
        ),
        "lag_limit_s": compare_options.lag_limit_s,
        "reading_warnings": {r.source: list(r.warnings) for r in recordings if r.warnings},
    }


def _span(text: str) -> tuple[float, float]:
    start, _, end = text.partition(":")
    try:
        return float(start), float(end)
    except ValueError:
        raise ConfigError(f"cycle '{text}': must be START:END in seconds") from None


def _offset_lines(comparison: StageComparison) -> list[str]:
    """Errors with the compared point of the load, and of bodies with --offset, and the best."""
    lines = []
    for body, point in comparison.offsets.items():
        if (body != "load" and not any(point.assumed_m)) or isnan(point.best_error_m):
            continue
        name = body.replace("_", " ")
        error_mm = 1e3 * comparison.errors[body].translational_error_m
        best = ",".join(f"{value:.3f}" for value in point.best_m)
        if any(point.assumed_m):
            offset_text = ",".join(f"{value:g}" for value in point.assumed_m)
            error_text = (
                f"offset {offset_text} m assumed: {error_mm:.1f} mm, without it "
                f"{1e3 * point.origin_error_m:.1f} mm"
            )
        else:
            error_text = f"no offset assumed: {error_mm:.1f} mm"
        least_mm = 1e3 * point.best_error_m
        lines.append(f"{name}: {error_text}; least with --offset {body}={best}: {least_mm:.1f} mm")
    return lines


def _frame_lines(comparison: StageComparison) -> list[str]:
    """Attitude error of the load as recorded, and with the best rotation of its frame."""
    frame = comparison.frames.get("load")
    if frame is None:
        return []
    x, y, z = frame.rotation_deg
    plain_deg = comparison.errors["load"].geodesic_error_deg
    if isnan(plain_deg):
        return ["load: one of the flights has no attitude of it; only places are compared"]
    return [
        f"load: {plain_deg:.1f} deg as recorded; with its recorded frame turned by "
        f"{x:.1f},{y:.1f},{z:.1f} deg: {frame.error_deg:.1f} deg"
    ]


def _asked_lines(comparison: StageComparison) -> list[str]:
    """Lines on the load's errors against its set-points, in both flights by the same measure."""
    its = comparison.asked.get("load")
    if its is None:
        return []
    what = "held set-points, which both flights have" if its.held else "reference"
    return [
        f"distance of the load from its own {what}: real {1e3 * its.real_m:.1f} mm, simulated "
        f"{1e3 * its.sim_m:.1f} mm"
    ]


def _conclude(comparisons: Sequence[StageComparison], about: dict, folder: Path) -> None:
    console = new_console()
    for c in comparisons:
        print(c)
        for line in [*_offset_lines(c), *_frame_lines(c), *_asked_lines(c)]:
            console.print(line)
        console.print()
    console.print(f"compared points: {about['compared_points']}")
    console.print(f"rotations averaged: {about['rotations_averaged']}")
    console.print(f"results in [bold]{folder}[/bold]")
