"""`musls sweep`, `montecarlo`, `benchmark`: many flights, one table."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from musls_bringup.cli import options
from musls_bringup.cli.terminal import new_console, new_table, tell
from musls_bringup.flight.progress import ProgressDisplay
from musls_bringup.flight.results import check_older
from musls_description.config.errors import ConfigError, MuslsError, writing
from musls_description.tables import Rows

if TYPE_CHECKING:
    from rich.table import Table

    from musls_analysis.sweep.plan import Plan
    from musls_analysis.sweep.run import SweepProgress
    from musls_analysis.sweep.store import Store

EXIT_FAILED_RUNS = 1

_Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="tcp://HOST:PORT",
        help="Use the Dask cluster with this address instead of processes of this machine.",
    ),
]
_Resume = Annotated[
    bool,
    typer.Option("--resume", help="Continue earlier work in its folder; finished runs are kept."),
]


def run(
    sweep: Annotated[
        str | None,
        typer.Argument(help="Shipped sweep, YAML file or folder of a sweep.", show_default=False),
    ] = None,
    workers: Annotated[int | None, options.worker_count("the sweep's, else one per core")] = None,
    scheduler: _Scheduler = None,
    out: Annotated[Path | None, options.out_path("runs/sweep_NAME", "Folder of the sweep.")] = None,
    resume: _Resume = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="With --resume: make failed runs again.")
    ] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Runs a parameter study. Runs that fail are recorded; the exit code is then 1."""
    _choose_one(workers, scheduler)
    from musls_analysis.sweep.store import MARK, Store
    from musls_bringup.api.studies import plan_sweep

    path, plan = plan_sweep(sweep)
    older = Path(sweep) if sweep and path.name == MARK and Path(sweep).is_dir() else None
    store = Store(out or older or Path("runs") / f"sweep_{plan.sweep.name}")
    store.check(resume=resume)
    with store.opened(path.read_text(encoding="utf-8")):
        progress, rows, paths = _make(plan, store, workers, scheduler, retry_failed, quiet)
    if as_json:
        typer.echo(json.dumps({"folder": str(store.folder), "runs": rows}, indent=1))
    elif quiet:
        typer.echo(f"results in {store.folder}")
    else:
        _print(plan, rows, progress, paths)
    return EXIT_FAILED_RUNS if progress.failed else 0


def montecarlo(
    scenario: options.ScenarioName,
    vary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML file with the distributions of the keys that vary, also that of a sweep; "
            "without it only the noise does.",
            show_default=False,
        ),
    ] = None,
    worlds: Annotated[int, typer.Option(help="Number of flights.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    worst: Annotated[
        int, typer.Option(min=0, max=100, help="Worlds that are flown again in full, with report.")
    ] = 3,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="FIGURE",
            help="Column of the table that says which worlds are the worst.",
            show_default="the load's largest error",
        ),
    ] = None,
    workers: Annotated[int | None, options.worker_count("one per core")] = None,
    scheduler: _Scheduler = None,
    out: Annotated[
        Path | None, options.out_path("runs/montecarlo_NAME", "Folder of the study.")
    ] = None,
    resume: _Resume = False,
) -> int:
    """Flies many worlds drawn from distributions: percentiles of every figure, the worst worlds."""
    _choose_one(workers, scheduler)
    from musls_analysis.sweep.montecarlo import MonteCarlo, check_figure
    from musls_analysis.sweep.montecarlo import worst as worst_of
    from musls_analysis.sweep.store import FINISHED, Store, write_table
    from musls_bringup.api.studies import plan_montecarlo
    from musls_description.config.schema import to_yaml

    plan = plan_montecarlo(scenario, vary, worlds, seed)
    if by is not None:
        check_figure(by, plan)
    store = Store(out or Path("runs") / f"montecarlo_{plan.sweep.name}")
    store.check(resume=resume)
    with store.opened(to_yaml(plan.sweep)):
        progress, rows, paths = _make(plan, store, workers, scheduler)
        study = MonteCarlo(plan, Rows(rows))
        worst_rows = worst_of(rows, plan.sweep, worst, by)
        with writing(store.folder):
            paths += write_table(study.statistics, store.folder, "statistics")
        print(study)
        _fly_again(store, [row["id"] for row in worst_rows])
    new_console().print(
        f"{progress.finished} worlds flown, {progress.failed} failed; "
        f"results in [bold]{store.folder}[/bold]: "
        + ", ".join(str(path.relative_to(store.folder)) for path in paths)
    )
    return 0 if any(row["status"] == FINISHED for row in rows) else EXIT_FAILED_RUNS


def _fly_again(store: Store, ids: list[str]) -> None:
    """Fly worlds in full, each into a folder of its own, from the settings that are kept."""
    from musls_bringup.flight.fly import FlyOptions, fly
    from musls_description.config.schema import build
    from musls_sim.scenario.scenario import Scenario

    for place, name in enumerate(ids, 1):
        folder = store.folder / "worst" / f"{place}_{name}"
        record = store.record(name)
        assert record is not None
        scenario = build(Scenario, record["settings"], f"world {name}")
        tell("flying again", f"world {name}, seed {scenario.seed}, into {folder}")
        try:
            fly(scenario, folder, FlyOptions(overwrite=True))
        except MuslsError as error:
            tell("failed", str(error))


def _choose_one(workers: int | None, scheduler: str | None) -> None:
    if scheduler is not None and workers is not None:
        raise ConfigError("--workers and --scheduler exclude each other")


def _make(
    plan: Plan,
    store: Store,
    workers: int | None,
    scheduler: str | None,
    retry_failed: bool = False,
    quiet: bool = False,
) -> tuple[SweepProgress, list[dict[str, Any]], list[Path]]:
    """Make the runs; the table's rows and the files written, of an interrupted sweep too."""
    try:
        progress = _with_progress(plan, store, workers, scheduler, retry_failed, quiet)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            tell("interrupted", "--resume continues with the runs left")
        with suppress(MuslsError):
            _conclude(plan, store)
        raise
    return (progress, *_conclude(plan, store))


def _with_progress(
    plan: Plan,
    store: Store,
    workers: int | None,
    scheduler: str | None,
    retry_failed: bool,
    quiet: bool,
) -> SweepProgress:
    """Make the runs and show how many are done; failed ones are named as they come."""
    from time import perf_counter

    from musls_analysis.sweep.run import run_sweep
    from musls_bringup.api.studies import FLYER

    begin = perf_counter()
    with ProgressDisplay(plan.sweep.name, "starting", quiet=quiet) as display:

        def watch(progress: SweepProgress) -> None:
            done_count = progress.total - progress.left
            failed = f"{progress.failed} failed, " if progress.failed else ""
            eta = _eta(progress, perf_counter() - begin)
            display.update(
                f"{done_count}/{progress.total}  {failed}{progress.left} left{eta}",
                done_count / progress.total,
            )
            if done_count - progress.before == 1 and progress.left and not quiet:
                display.note(
                    f"first of {progress.total - progress.before}: {progress.left} left{eta}"
                )
            while progress.damaged:
                display.note(f"musls: warning: {progress.damaged.pop()}: this run is made again")
            if progress.last.get("status") == "failed":
                display.note(f"failed {progress.last['id']}: {progress.last['reason']}")

        progress = run_sweep(
            plan,
            store,
            FLYER,
            watch,
            workers=workers,
            scheduler=scheduler,
            retry_failed=retry_failed,
        )
        run_count = progress.total - progress.before
        if progress.workers and run_count and not quiet:
            elapsed_s = perf_counter() - begin
            share = progress.in_runs_s / (progress.workers * elapsed_s)
            cpu = progress.cpu_s / max(progress.in_runs_s, 1e-9)
            display.note(
                f"{run_count} runs in {elapsed_s:.0f} s; the workers spent {100 * share:.0f} % of "
                f"their time in runs, and had a processor for {100 * cpu:.0f} % of that"
            )
        return progress


def _eta(progress: SweepProgress, elapsed_s: float) -> str:
    """Pace and time left, from the runs made in this session."""
    run_count = progress.finished + progress.failed - progress.before
    if not run_count:
        return ""
    left_s = elapsed_s / run_count * progress.left
    pace = f", {run_count / elapsed_s:.2g} a second"
    if left_s >= 100:
        return f"{pace}, about {left_s / 60:.0f} min to go"
    return f"{pace}, {left_s:.0f} s to go"


def _conclude(plan: Plan, store: Store) -> tuple[list[dict[str, Any]], list[Path]]:
    """Write table and figures of what has been made, after an interruption too."""
    from musls_analysis.sweep.store import make_rows, write_table

    rows = make_rows(plan, store)
    if not rows:
        return rows, []
    from musls_analysis.sweep.figures import write_figures

    with writing(store.folder):
        paths = write_table(rows, store.folder)
        return rows, paths + write_figures(plan.sweep, rows, store)


MAX_WARNED = 5
"""Invalid runs named at most; the table names them all."""

MAX_ROWS = 30
"""Points printed at most; the table has them all."""


def _print(
    plan: Plan, rows: list[dict[str, Any]], progress: SweepProgress, paths: list[Path]
) -> None:
    """Print the points with the load's errors, and where everything is."""
    from rich.markup import escape

    console = new_console()
    doubtful = [row for row in rows if row.get("warnings")]
    for row in doubtful[:MAX_WARNED]:
        console.print(f"[bold red]invalid flight:[/] {row['id']}: {escape(row['warnings'])}")
    if len(doubtful) > MAX_WARNED:
        console.print(f"... and {len(doubtful) - MAX_WARNED} more, see `warnings` in the table")
    console.print(_points_table(plan, rows))
    folder = paths[0].parent if paths else None
    duplicates = f", {plan.duplicates} duplicates left out" if plan.duplicates else ""
    before = f" ({progress.before} from before)" if progress.before else ""
    console.print(
        f"{progress.finished} runs finished{before}, {progress.failed} failed{duplicates}; "
        f"results in [bold]{folder or '-'}[/bold]: "
        + ", ".join(str(path.relative_to(paths[0].parent)) for path in paths)
    )
    if not any(path.suffix == ".parquet" for path in paths):
        tell("note", "no table.parquet: pyarrow is not installed")


def _points_table(plan: Plan, rows: list[dict[str, Any]]) -> Table:
    """Mean over the repetitions of each point."""
    from rich.markup import escape

    from musls_analysis.sweep.figures import distinct, metric_text

    columns = [
        *(m.column for m in plan.sweep.metrics),
        *(
            c
            for c in dict.fromkeys(k for r in rows for k in r)
            if c.startswith("errors.load.") and not c.endswith(("max_m", "max_deg"))
        ),
        "refined_periods",
        "real_time_factor",
    ]
    table = new_table()
    for key in plan.sweep.parameters:
        table.add_column(escape(plan.sweep.label(key)))
    for column in columns:
        text = metric_text(column)
        table.add_column(escape(f"{text.series} {text.axis}" if "." in column else text.axis))
    points = distinct([{key: row[key] for key in plan.sweep.parameters} for row in rows])
    for point in points[:MAX_ROWS]:
        same = [row for row in rows if all(row[key] == point[key] for key in point)]
        cells = [f"{v:g}" if isinstance(v, float) else str(v) for v in point.values()]
        for column in columns:
            numbers = [row[column] for row in same if row.get(column) is not None]
            scale = metric_text(column).scale
            cells.append(f"{scale * sum(numbers) / len(numbers):.4g}" if numbers else "-")
        table.add_row(*cells)
    if len(points) > MAX_ROWS:
        table.caption = f"{len(points) - MAX_ROWS} more points in table.csv"
    return table


# ---------- `musls benchmark`


def benchmark(
    controllers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND|FILE.py:CLASS|FILE.onnx]...",
            help="Controllers; default formation and payload.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three tasks with three drones.")] = False,
    workers: Annotated[int | None, options.worker_count("as many as there are cores")] = None,
    out: Annotated[
        Path | None,
        options.out_path(help="Write results.json, tables as CSV, HTML and LaTeX, a figure."),
    ] = None,
    overwrite: options.Overwrite = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Fly what an unfinished benchmark in --out has not flown."),
    ] = False,
) -> None:
    """Compares controllers on a fixed set of flights, all with rigid links and motion capture."""
    from musls_bringup.benchmark import benchmark as bench

    if resume and out is None:
        raise ConfigError("--resume is for an unfinished benchmark in --out DIR")
    check_older(out, "results.json", overwrite=overwrite or resume)
    rows_file = None if out is None else out / bench.FLOWN
    if rows_file is not None and not resume:
        rows_file.unlink(missing_ok=True)
    controller_names = tuple(controllers or bench.BASELINES)
    interrupt = None
    try:
        with ProgressDisplay("benchmark") as display:
            rows = bench.benchmark(
                controller_names,
                quick=quick,
                workers=workers,
                progress=display.count,
                kept=rows_file,
            )
    except KeyboardInterrupt as error:
        interrupt = error
        rows = getattr(error, "rows", [])
        if not rows:
            raise
    heads, cells = bench.table(rows)
    console = new_console()
    console.print(new_table(*heads, title=f"benchmark {bench.TASKS.stem}", rows=cells))
    for row in rows:
        if not row["success"]:
            tell = f"{row['task']}, {row['system']}, {row['controller']}"
            console.print(f"failed: {tell}, seed {row['seed']}: {row['reason']}", markup=False)
    console.print(f"digest {bench.digest(rows)}")
    if out is not None:
        console.print(", ".join(str(path) for path in bench.write(rows, out, controller_names)))
    if interrupt is not None:
        raise interrupt
    if rows_file is not None:
        rows_file.unlink(missing_ok=True)
