"""The functions of `import musls`: scenarios, flights, replays, comparisons and sweeps."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from musls_analysis.comparison.compare import CompareOptions, StageComparison, compare_stage
from musls_analysis.comparison.cycles import cut_alike
from musls_analysis.comparison.errors import ErrorTable, error_table
from musls_analysis.recordings import readers
from musls_analysis.recordings import recording as recordings
from musls_analysis.recordings.readers import ReadOptions
from musls_analysis.replay.motion import ReplaySpec
from musls_analysis.replay.replay import Replay, ReplayResult
from musls_bringup.fly import FlyOptions, find_scenario, fly_in_memory
from musls_bringup.fly import fly as fly_into_folder
from musls_control.controllers import Controller
from musls_description.errors import ConfigError
from musls_description.library import load_system
from musls_description.schema import parse_yaml, to_data
from musls_description.system import RigSystem, slung_system
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.loop import Observer
from musls_sim.session.session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

Overrides = Mapping[str, Any] | Sequence[str]
"""Values by key ({"system.cables.links": 29}), or texts as for `--set` ("seed=3")."""

Flown = recordings.Recording | str | Path
"""A recording, or where to read it."""


class Recording(recordings.Recording):
    """One flight, with its errors and figures; a table in terminals and notebooks."""

    @classmethod
    def of(cls, recording: recordings.Recording) -> Recording:
        """The same flight."""
        return cls(**vars(recording))

    def errors(self) -> ErrorTable:
        """Distance and angle of each body to its set-point in each stage.

        Returns:
            One row per body and stage, see `musls_analysis.comparison.errors.StageError`.
        """
        return error_table(self)

    def plot(self, name: str = "paths_3d") -> Figure:
        """Draw one of the report's figures.

        Args:
            name: As the report's PNG files: "paths_3d", "top_view", "stage_errors", "pose_load",
                "pose_drone_1", ..., "tensions", "rotors", "batteries".

        Returns:
            A matplotlib figure, which notebooks show; `savefig` writes it.

        Raises:
            ConfigError: The recording has no such figure.
        """
        from musls_analysis.figures.flight import plot

        return plot(self, name)

    def __rich__(self) -> RenderableType:
        """Facts, then errors per body and stage, for a terminal."""
        from rich.console import Group

        return Group(repr(self), *self.warnings, self.errors().__rich__())

    def _repr_html_(self) -> str:
        """Facts, then errors per body and stage, for a notebook."""
        lines = "".join(f"<p>{escape(line)}</p>" for line in (repr(self)[1:-1], *self.warnings))
        return lines + self.errors()._repr_html_()


def read_recording(path: Path | str, options: ReadOptions | None = None) -> Recording:
    """Read a flight, real or simulated.

    Args:
        path: Bag (folder or .mcap, .db3), result folder of `musls fly`, folder with one storage
            file, log file of the seed paper's flights, or CSV excerpt.
        options: What the recording does not say.

    Returns:
        The recording, its poses at strictly increasing times; what was dropped is in `warnings`.

    Raises:
        ConfigError: Missing, empty, damaged or of an unknown kind.
    """
    return Recording.of(readers.read_recording(path, options))


def load_scenario(name: str | Path, overrides: Overrides = ()) -> Scenario:
    """Read a scenario.

    Args:
        name: A shipped scenario ("circle"), a YAML file, or a result folder.
        overrides: Keys to change.

    Raises:
        ConfigError: Unknown scenario or key, or a value that is not allowed.
    """
    if isinstance(overrides, Mapping):
        try:
            overrides = [f"{key}={_as_text(value)}" for key, value in overrides.items()]
        except TypeError as error:
            raise ConfigError(f"overrides: {error}: numbers, texts, lists and mappings") from None
    return find_scenario(str(name), list(overrides))


def fly(
    scenario: Scenario | str | Path,
    *,
    controller: Controller | Callable[[], Controller] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    observers: Sequence[Observer] = (),
    force: bool = False,
    realtime: bool = False,
    report: bool = True,
) -> Recording:
    """Fly a scenario to its end.

    Args:
        scenario: What to fly; a name or file is read first.
        controller: A controller of one's own instead of the scenario's.
        out: Folder for what the command `musls fly` writes; None writes nothing.
        overwrite: Replace an older result in `out`.
        observers: What watches the flight.
        force: Fly in spite of too little thrust.
        realtime: Not faster than real time.
        report: Write figures and report, too (with `out`).

    Returns:
        The recording of the flight.

    Raises:
        ConfigError: The scenario cannot work.
        SimulationDiverged: The physics failed.
        ControllerError: The controller failed.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    if out is not None:
        options = FlyOptions(overwrite=overwrite, realtime=realtime, force=force, report=report)
        fly_into_folder(scenario, Path(out), options, observers, controller=controller)
        return read_recording(out)
    session = Session(scenario, controller=controller, observers=observers, force=force)
    return Recording.of(fly_in_memory(session, realtime=realtime)[0])


def replay(
    recording: Flown,
    system: RigSystem | str = "x500_trio_swivel",
    *,
    cable_model: str = "rigid_links",
    spec: ReplaySpec | None = None,
) -> ReplayResult:
    """Predict the load of a recording from the recorded motion of its drones.

    Args:
        recording: With the load and all drones, or where to read it.
        system: Load, drones and cables, or the name of a shipped system or file.
        cable_model: "rigid_links", "elastic" (also with a number, "rigid_links:5"), "massless" or
            "spring".
        spec: How to replay: reference points, lead-in, step.

    Raises:
        ConfigError: The recording or the cable model does not fit the system.
        SimulationDiverged: The physics failed.
    """
    read = _recording(recording)
    given = load_system(system) if isinstance(system, str) else system
    chosen = slung_system(given, "replay")
    return Replay(read, spec or ReplaySpec()).run(chosen, cable_model=cable_model)


def compare(
    real: Flown,
    sims: Flown | Sequence[Flown],
    stages: str | Sequence[str],
    *,
    options: CompareOptions | None = None,
) -> list[StageComparison]:
    """Compare simulated flights with a real one: mean cycles and their errors (eq. 12 and 13).

    Args:
        real: The real flight, or where to read it.
        sims: One or several simulated flights.
        stages: Stages to compare, such as "circle".
        options: How to compare.

    Returns:
        One comparison a stage.

    Raises:
        ConfigError: A recording has no such stage.
    """
    if isinstance(sims, (recordings.Recording, str, Path)):
        sims = [sims]
    read, flown = _recording(real), [_recording(sim) for sim in sims]
    return [
        compare_stage(stage, cuts[0], cuts[1:], options)
        for stage in ([stages] if isinstance(stages, str) else stages)
        for cuts in [cut_alike([read, *flown], stage)]
    ]


def sweep(
    study: str | Path,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Fly a parameter study.

    Args:
        study: A shipped sweep (`musls list sweeps`) or a YAML file.
        out: Folder that keeps the runs, so that a study can be continued; None keeps nothing.
        workers: Processes; by default as many as there are cores.
        scheduler: Address of a Dask scheduler to use instead.
        progress: Told the numbers of runs made and of all runs.

    Returns:
        A row a run: its parameters and its results; a failed run has the reason under "reason".

    Raises:
        ConfigError: Something in the study is wrong.
    """
    from musls_analysis.sweep.plan import load_sweep, make_plan
    from musls_analysis.sweep.run import Execution, Progress, available_cores, run_sweep
    from musls_analysis.sweep.store import Store, make_rows
    from musls_bringup.sweeps import FLYER, sweep_path, sweep_scenario_path

    def watch(state: Progress) -> None:
        if progress is not None:
            progress(state.total - state.left, state.total)

    path = sweep_path(str(study))
    spec = load_sweep(path)
    plan = make_plan(spec, sweep_scenario_path(spec.scenario, path))
    keep = nullcontext(str(out)) if out is not None else tempfile.TemporaryDirectory()
    with keep as folder:
        store = Store(Path(folder) / "sweep" if out is None else Path(folder))
        execution = Execution(FLYER, workers or spec.workers or available_cores(), scheduler)
        with store.opened(path.read_text(encoding="utf-8")):
            run_sweep(plan, store, execution, watch)
        return make_rows(plan, store)


def _as_text(value: Any) -> str:
    """Text of a value as YAML reads it; names and paths stand for themselves."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and parse_yaml(value, "overrides") == value:
        return value
    return json.dumps(to_data(value))


def _recording(given: Flown) -> recordings.Recording:
    return readers.read_recording(given) if isinstance(given, (str, Path)) else given
