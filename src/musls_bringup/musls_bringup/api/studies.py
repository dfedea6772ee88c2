"""Studies in Python: parameter sweeps and Monte Carlo."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from musls_bringup.catalogue.scenarios import AnyScenario, load_scenario
from musls_bringup.catalogue.shipped import (
    SCENARIOS,
    named_file,
    sweep_path,
    sweep_scenario_path,
)
from musls_description.config.errors import (
    check_present_folder,
)
from musls_description.config.schema import to_data, to_yaml
from musls_description.tables import Rows

if TYPE_CHECKING:
    from musls_analysis.sweep.montecarlo import MonteCarlo
    from musls_analysis.sweep.plan import Plan


def sweep(
    study: str | Path,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Rows[dict[str, Any]]:
    """Fly a parameter study.

    Args:
        study: A shipped sweep (`musls list sweeps`) or a YAML file.
        out: Folder that keeps the runs, so that a study can be continued; None keeps nothing.
        workers: Processes; by default as many as there are cores.
        scheduler: Address of a Dask scheduler to use instead.
        progress: Told the numbers of runs made and of all runs.

    Returns:
        A row (a dictionary) a run: its parameters and its results; a failed run has the reason
        under "reason".

    Raises:
        ConfigError: Something in the study is wrong.
    """
    path, plan = plan_sweep(study)
    text = path.read_text(encoding="utf-8")
    return _rows_of(plan, text, out, workers, scheduler, progress)


def _rows_of(
    plan: Plan,
    text: str,
    out: str | Path | None,
    workers: int | None,
    scheduler: str | None,
    progress: Callable[[int, int], None] | None,
) -> Rows[dict[str, Any]]:
    """Make the runs of a plan, whose file has this text."""
    from musls_analysis.sweep.run import SweepProgress, run_sweep
    from musls_analysis.sweep.store import Store, make_rows

    def watch(state: SweepProgress) -> None:
        if progress is not None:
            progress(state.total - state.left, state.total)

    check_present_folder()
    keep = nullcontext(str(out)) if out is not None else tempfile.TemporaryDirectory()
    with keep as folder:
        store = Store(Path(folder) / "sweep" if out is None else Path(folder))
        with store.opened(text):
            run_sweep(plan, store, FLYER, watch, workers=workers, scheduler=scheduler)
        return Rows(make_rows(plan, store))


def montecarlo(
    scenario: AnyScenario,
    vary: str | Path | Mapping[str, Any] | None = None,
    *,
    worlds: int = 1000,
    seed: int = 0,
    out: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MonteCarlo:
    """Fly many worlds drawn from distributions.

    Args:
        scenario: Scenario to fly, see `load_scenario`.
        vary: YAML file with the distributions, or what it would hold ({"parameters":
            {"system.load.mass_kg": {"mean": 1.6, "std": 0.05}}}); None varies the noise alone.
        worlds: Number of flights, each with noise of its own.
        seed: Seed of the draws.
        out: Folder that keeps the flights, so that a study can be continued; None keeps nothing.
        workers: Processes; by default as many as there are cores.
        scheduler: Address of a Dask scheduler to use instead.
        progress: Told the numbers of flights made and of all.

    Returns:
        A row a world, the statistics of every figure, and the worst worlds to fly again.

    Raises:
        ConfigError: Something in the study is wrong, or a world that is drawn cannot be flown.
    """
    from musls_analysis.sweep.montecarlo import MonteCarlo

    plan = plan_montecarlo(scenario, vary, worlds, seed)
    rows = _rows_of(plan, to_yaml(plan.sweep), out, workers, scheduler, progress)
    return MonteCarlo(plan, rows)


def plan_montecarlo(
    scenario: AnyScenario, vary: str | Path | Mapping[str, Any] | None, worlds: int, seed: int
) -> Plan:
    """Plan of a Monte Carlo study."""
    from musls_analysis.sweep.montecarlo import study_of
    from musls_analysis.sweep.plan import make_plan

    scenario_data = to_data(scenario)
    if not isinstance(scenario_data, Mapping):
        scenario_data = named_file("scenario", str(scenario), SCENARIOS)
    name = load_scenario(scenario).name
    variation = Path(vary) if isinstance(vary, str) else vary
    return make_plan(study_of(name, str(scenario), variation, worlds, seed), scenario_data)


FLYER = "musls_bringup.flight.fly:fly_run"
"""Name by which a worker process of a sweep finds what flies."""


def plan_sweep(name: str | Path | None) -> tuple[Path, Plan]:
    """File and plan of a sweep."""
    from musls_analysis.sweep.plan import load_sweep, make_plan

    path = sweep_path(None if name is None else str(name))
    spec = load_sweep(path)
    return path, make_plan(spec, sweep_scenario_path(spec.scenario, path))
