"""The functions of `import musls`: scenarios, flights, replays, comparisons and sweeps."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from musls_analysis.comparison.errors import ErrorTable, error_table
from musls_analysis.comparison.summary import close_pass, flight_warnings
from musls_analysis.recordings import readers
from musls_analysis.recordings import recording as recordings
from musls_analysis.recordings.contents import columns_of
from musls_analysis.recordings.readers import ReadOptions
from musls_bringup.cli.terminal import PREPARING, ProgressDisplay, is_watched
from musls_bringup.fly import FlyOptions, fly_in_memory, separation
from musls_bringup.fly import fly as fly_into_folder
from musls_bringup.shipped import (
    SCENARIOS,
    find_scenario,
    named_file,
    sweep_path,
    sweep_scenario_path,
)
from musls_control.controllers import Controller
from musls_description.config.errors import (
    ConfigError,
    MuslsError,
    check_present_folder,
    install_command,
)
from musls_description.config.schema import to_data, to_yaml
from musls_description.config.strict_yaml import shown
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.slung_system import RigSystem, slung_system
from musls_description.system.system_files import load_system
from musls_description.tables import Rows
from musls_sim.scenario.scenario import Scenario, as_override
from musls_sim.scenario.scenario import load_scenario as read_scenario
from musls_sim.session.loop import Observer
from musls_sim.session.session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from rich.text import Text

    from musls_analysis.comparison.compare import CompareOptions, StageComparison
    from musls_analysis.linear import LinearModel
    from musls_analysis.replay.motion import ReplaySpec
    from musls_analysis.replay.replay import ReplayResult
    from musls_analysis.sweep.montecarlo import MonteCarlo
    from musls_analysis.sweep.plan import Plan
    from musls_sim.plants.massless.symbolic import SymbolicSystem

Overrides = Mapping[str, Any] | Sequence[str]
"""Values by key ({"system.cables.links": 29}), or texts as for `--set` ("seed=3")."""

AnyScenario = Scenario | Mapping[str, Any] | str | Path
"""A scenario, what its file would hold, or its name or file."""

AnyRecording = recordings.Recording | str | Path
"""A recording, or where to read it."""


class Recording(recordings.Recording):
    """One flight, with its errors and figures; a table in terminals and notebooks."""

    @classmethod
    def of(
        cls, recording: recordings.Recording, parameters: Mapping[str, float] | None = None
    ) -> Recording:
        """Result of a flight, with the warnings of `flight_warnings` added."""
        warnings = (*recording.warnings, *flight_warnings(recording, parameters))
        return cls(**{**vars(recording), "warnings": warnings})

    def errors(self) -> ErrorTable:
        """Distance and angle to the reference, a row per body and stage (`StageError`)."""
        return error_table(self)

    def plot(self, name: str = "paths_3d") -> Figure:
        """Draw one of the report's figures; notebooks show it, `savefig` writes it.

        Args:
            name: Name as of the report's PNG files: "paths_3d", "top_view", "stage_errors",
                "pose_load", "pose_drone_1", ..., "tensions", "rotors", "batteries".

        Raises:
            ConfigError: The recording has no such figure.
        """
        from musls_analysis.figures.flight import plot

        return plot(self, name)

    def to_pandas(self) -> DataFrame:
        """All that was recorded as one table, a row for each time of the load (index `time_s`).

        Columns are named as the arrays, with their component behind: `load.position_enu_m.x`,
        `drone_1.rotors.speed_rad_s.2`, `cable_1.tension_n.1` (at the load), `stage`.

        Raises:
            MuslsError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MuslsError(f"to_pandas needs pandas: {install_command('pandas')}") from None
        return pd.DataFrame(columns_of(self), pd.Index(self.time_s, name="time_s"))

    def __rich__(self) -> Text:
        """Facts, then errors per body and stage, for a terminal."""
        from rich.text import Text

        return Text("\n".join([repr(self), *self.warnings, repr(self.errors())]), no_wrap=True)

    def _repr_html_(self) -> str:
        """Facts, then errors per body and stage, for a notebook."""
        lines = "".join(f"<p>{escape(line)}</p>" for line in (repr(self)[1:-1], *self.warnings))
        return lines + self.errors()._repr_html_()


def read_recording(path: Path | str, options: ReadOptions | None = None) -> Recording:
    """Read a flight, real or simulated.

    Args:
        path: Bag (folder or .mcap, .db3), result folder of `musls fly`, folder with one storage
            file, log file of the seed paper's flights, or CSV excerpt.
        options: Facts that the recording's file lacks.

    Returns:
        The recording, its poses at strictly increasing times; `warnings` says what was
        dropped, and why the flight is not valid.

    Raises:
        ConfigError: Missing, empty, damaged or of an unknown kind.
    """
    return Recording.of(readers.read_recording(path, options))


def load_scenario(name: AnyScenario, overrides: Overrides = ()) -> Scenario:
    """Read a scenario.

    Args:
        name: A shipped scenario ("circle"), a YAML file, a result folder, what a file would hold
            ({"system": "x500_trio", "mission": {...}}), or a scenario to change.
        overrides: Keys to change; below a key goes a dot or a mapping, which leaves the keys that
            it does not name. A mapping with a `kind`, a whole system (with `cables` and `load` or
            `anchors`), a list and an object such as `RigSystem` replace what was there. Numbers
            and arrays may be NumPy's.

    Raises:
        ConfigError: Unknown scenario or key, or a value that is not allowed.
    """
    if isinstance(overrides, Mapping):
        try:
            overrides = list(_as_texts(overrides))
        except TypeError as error:
            raise ConfigError(f"overrides: {error}: numbers, texts, lists and mappings") from None
    elif not isinstance(overrides, (list, tuple)) or not all(isinstance(o, str) for o in overrides):
        raise ConfigError(
            f"overrides = {shown(repr(overrides))}: must be a mapping of keys to values, or a list "
            'of texts such as "seed=3"'
        )
    if isinstance(name, (Mapping, Scenario)):
        return read_scenario(to_data(name), list(overrides), "override")
    return find_scenario(str(name), list(overrides), "override")


def fly(
    scenario: AnyScenario,
    *,
    controller: Controller | Callable[[], Controller] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    observers: Sequence[Observer] = (),
    force: bool = False,
    realtime: bool = False,
    report: bool = True,
    seed: int | None = None,
    set: Overrides = (),
    quiet: bool = False,
) -> Recording:
    """Fly a scenario to its end.

    Terminals and notebooks show how far it is; the logger "musls" is told stages (INFO) and events
    (WARNING). Whatever ends the flight before, Ctrl-C or an error, what was flown by then is the
    attribute `recording` of the exception (and in `out`).

    Args:
        scenario: Scenario to fly, see `load_scenario`.
        controller: Your own controller instead of the scenario's.
        out: Folder for what the command `musls fly` writes; None writes nothing.
        overwrite: Replace an older result in `out`.
        observers: Observers of the flight.
        force: Fly in spite of too little thrust.
        realtime: Whether to fly no faster than real time.
        report: Write report.html, too (with `out`).
        seed: Seed of all noise instead of the scenario's.
        set: Keys to change, see `load_scenario`.
        quiet: Show no progress.

    Returns:
        The recording of the flight; `warnings` says why it is not valid.

    Warns:
        InvalidFlightWarning: The same, and drones that passed each other close by.

    Raises:
        ConfigError: The scenario cannot work.
        SimulationDiverged: The physics failed.
        UserCodeError: The controller or your other code failed.
        KeyboardInterrupt: Ctrl-C ended the flight, or left its report out.
    """
    if set or not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, set)
    if seed is not None:
        scenario = load_scenario(scenario, {"seed": seed})
    parameters = scenario.autopilot.parameters
    try:
        with ExitStack() as stack:
            watching, say = list(observers), lambda text: None
            if not quiet and is_watched():
                display = stack.enter_context(ProgressDisplay(scenario.name, PREPARING))
                watching = [*observers, display.flight()]
                say = display.update
            if out is None:
                session = Session(scenario, controller=controller, observers=watching, force=force)
                recording = fly_in_memory(session, realtime=realtime)
                watch = session.separation
                apart = None if watch is None else separation(session, watch)
            else:
                check_present_folder()
                options = FlyOptions(overwrite, realtime, force, report)
                summary = fly_into_folder(
                    scenario, Path(out), options, watching, say, controller=controller
                )
                recording = readers.read_recording(out)
                apart = summary["separation"]
        recording = Recording.of(recording, parameters)
        _warn(recording, apart)
        return recording
    except BaseException as error:
        if hasattr(error, "recording"):
            error.recording = Recording.of(error.recording, parameters)
        raise


class InvalidFlightWarning(UserWarning):
    """The flight is invalid, or drones passed each other closely."""


def _warn(recording: Recording, apart: Mapping[str, Any] | None) -> None:
    """Say in Python, too, what the command says first."""
    lines = [f"invalid flight: {line}" for line in recording.warnings]
    for text in [*lines, *filter(None, [close_pass(apart)])]:
        warnings.warn(text, InvalidFlightWarning, stacklevel=3)


def linearise(
    scenario: AnyScenario, at: float | None = None, *, inputs: str = "rotor_speeds"
) -> LinearModel:
    """Linear model of a scenario's plant, open loop: A, B, C, D with names, and modes.

    Args:
        scenario: Scenario to linearise, see `load_scenario`.
        at: Time of its flight [s]; None for hanging in formation at rest.
        inputs: "rotor_speeds" (commanded) or "forces" (thrust and moments of each drone, ideal).

    Raises:
        ConfigError: The plant has no linear model there, `inputs` is unknown, or the flight is over
            before `at`.
    """
    from musls_analysis.linear import linearise as linearised

    flight_scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    return linearised(flight_scenario, at, inputs)


def symbolic(
    system: RigSystem | Mapping[str, Any] | str, *, gravity_m_s2: float = STANDARD_GRAVITY_M_S2
) -> SymbolicSystem:
    """The massless model of a system as CasADi functions: dynamics, tensions, lengths.

    Args:
        system: Load, drones and cables, or the name of a shipped system or file.
        gravity_m_s2: Acceleration of gravity.

    Raises:
        ConfigError: The system has no such model: it is a rig.
        MuslsError: CasADi, the extra `mpc`, is not installed.
    """
    try:
        from musls_sim.plants.massless.symbolic import symbolic as functions_of
    except ModuleNotFoundError as error:
        if error.name != "casadi":
            raise
        raise MuslsError(f"musls.symbolic needs CasADi: {install_command('casadi')}") from None

    rig = system if isinstance(system, RigSystem) else load_system(system)
    return functions_of(slung_system(rig, "musls.symbolic"), gravity_m_s2)


def replay(
    recording: AnyRecording,
    system: RigSystem | Mapping[str, Any] | str = "x500_trio_swivel",
    *,
    cable_model: str = "rigid_links",
    spec: ReplaySpec | None = None,
) -> ReplayResult:
    """Predict the load of a recording from the recorded motion of its drones.

    Args:
        recording: Recording with the load and all drones, or its path.
        system: Load, drones and cables, or the name of a shipped system or file.
        cable_model: "rigid_links", "elastic" (also with a number, "rigid_links:5"), or
            "massless".
        spec: Options of the replay: reference points, lead-in, step.

    Raises:
        ConfigError: The recording or the cable model does not fit the system.
        SimulationDiverged: The physics failed.
    """
    from musls_analysis.replay.motion import ReplaySpec
    from musls_analysis.replay.replay import Replay

    slung_load = slung_system(
        system if isinstance(system, RigSystem) else load_system(system), "replay"
    )
    replayed = Replay(_recording(recording), spec or ReplaySpec())
    return replayed.run(slung_load, cable_model=cable_model)


def compare(
    real: AnyRecording,
    sims: AnyRecording | Sequence[AnyRecording],
    stages: str | Sequence[str],
    *,
    options: CompareOptions | None = None,
) -> list[StageComparison]:
    """Compare simulated flights with a real one: mean cycles and their errors (eq. 12 and 13).

    Args:
        real: The real flight, or where to read it.
        sims: One or several simulated flights.
        stages: Stages to compare, such as "circle".
        options: Options of the comparison.

    Returns:
        One comparison a stage.

    Raises:
        ConfigError: A recording has no such stage.
    """
    from musls_analysis.comparison.compare import compare_stage
    from musls_analysis.comparison.cycles import cut_alike

    if isinstance(sims, (recordings.Recording, str, Path)):
        sims = [sims]
    read = _recording(real)
    sim_recordings = [_recording(sim) for sim in sims]
    return [
        compare_stage(stage, cuts[0], cuts[1:], options)
        for stage in ([stages] if isinstance(stages, str) else stages)
        for cuts in [cut_alike([read, *sim_recordings], stage)]
    ]


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


FLYER = "musls_bringup.fly:fly_run"
"""Name by which a worker process of a sweep finds what flies."""


def plan_sweep(name: str | Path | None) -> tuple[Path, Plan]:
    """File and plan of a sweep."""
    from musls_analysis.sweep.plan import load_sweep, make_plan

    path = sweep_path(None if name is None else str(name))
    spec = load_sweep(path)
    return path, make_plan(spec, sweep_scenario_path(spec.scenario, path))


def _as_texts(overrides: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Texts as for `--set` of nested overrides."""
    for name, value in overrides.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping) and value and not _is_whole(key, value):
            yield from _as_texts(value, f"{key}.")
        else:
            yield as_override(key, value)


def _is_whole(key: str, value: Mapping[str, Any]) -> bool:
    """Whether a mapping is a complete value, and not a set of changes."""
    return "kind" in value or (
        key == "system" and "cables" in value and ("load" in value or "anchors" in value)
    )


def _recording(source: AnyRecording) -> recordings.Recording:
    if isinstance(source, (str, Path)):
        return readers.read_recording(source)
    if not isinstance(source, recordings.Recording):
        raise ConfigError(f"recording = {shown(repr(source))}: must be a Recording, or its file")
    return source
