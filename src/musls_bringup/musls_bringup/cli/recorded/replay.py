"""`musls replay`, `musls identify`: the cable model alone, driven by recordings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from musls_bringup.cli import options
from musls_bringup.cli.recorded.reading import paths, read, reads
from musls_bringup.cli.terminal import new_console, new_table, tell
from musls_bringup.flight.progress import ProgressDisplay
from musls_bringup.flight.results import StopRequested, chosen_folder, result_folder
from musls_description.config.errors import ConfigError

if TYPE_CHECKING:
    from musls_analysis.estimation.estimate import ParameterEstimate
    from musls_analysis.estimation.system_parameters import Setup
    from musls_analysis.replay import Replay
    from musls_description.system.slung_system import SlungLoadSystem

LONGEST_LEAD_IN_S = 3600.0

BOUNDS = "NAME=LOW,HIGH, such as damping=1e-4,0.01"


@reads("recording")
def run(
    recording: Annotated[Path, typer.Argument(help="Bag, result folder, flight log or CSV.")],
    system: Annotated[
        str, typer.Option(help="Shipped system or file; cables free to twist are needed.")
    ] = "x500_trio_swivel",
    cable_model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="Cable model (see musls list cable-models). Several are compared.",
            show_default="rigid_links",
        ),
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Load estimator beside the prediction: ekf, quasi_static, or a mapping such as "
            "'{kind: ekf, force_noise_n: 0.3}'. Several are compared.",
        ),
    ] = None,
    offset: options.RecordedPoints = None,
    fit: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...", help="Estimate parameters (docs/replay.md), then replay with them."
        ),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=LOW,HIGH", help="Bounds of a fitted parameter."),
    ] = None,
    with_fit: Annotated[
        Path | None,
        typer.Option(help="fit.json (or its folder) of an earlier --fit to start from."),
    ] = None,
    workers: Annotated[
        int | None, options.worker_count("one per core", "Processes of a fit.")
    ] = None,
    stage: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Predict this stage only; the lead-in comes before it.",
            show_default="the whole recording",
        ),
    ] = None,
    lead_in: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Time before the prediction in which the load is moved as recorded [s].",
        ),
    ] = 2.0,
    step: Annotated[float, typer.Option(help="Physics step [s]; fits take 0.004.")] = 0.001,
    out: Annotated[Path | None, options.out_path("runs/replay_..._DATE_TIME")] = None,
    overwrite: options.Overwrite = False,
    *,
    reading: Any,
) -> None:
    """Moves the drones as recorded, predicts the load and compares it with the recorded one."""
    from musls_analysis.replay import Replay
    from musls_analysis.replay.motion import part_of_stage

    folder = chosen_folder(out, f"replay_{recording.stem}", overwrite=overwrite)
    slung_load = system_to_replay(system)
    models = _models(cable_model or ["rigid_links"], slung_load)
    if fit is not None and len(models) > 1:
        raise ConfigError("--fit takes one --cable-model")
    if bounds and fit is None:
        raise ConfigError("--bounds are those of a --fit")
    setup = _setup(slung_load, lead_in, step, offset, with_fit)
    fitter = None if fit is None else _fit_of(fit, bounds, setup, models[0], workers)
    estimators = _estimators(estimator or (), setup)
    flight = read(recording, reading)
    if stage is not None:
        flight = part_of_stage(flight, stage, setup.spec.lead_in_s)
    replay = Replay(flight, setup.spec)
    with result_folder(folder, overwrite=overwrite) as work:
        if fitter is not None:
            setup = _fitted(replay, setup, fitter, work)
        if len(models) == 1 and not estimators:
            _conclude(_replayed(replay, setup, models[0], work))
        else:
            _compare(replay, setup, models, estimators, work)
    typer.echo(f"results in {folder}")


def _fit_of(
    fit: str, bounds: list[str] | None, setup: Setup, model: str, workers: int | None
) -> Callable[..., ParameterEstimate]:
    """A fit with these options; what is wrong shows before the recording is read."""
    from musls_analysis.estimation.replays import fit_replays
    from musls_analysis.estimation.system_parameters import parameters

    pairs = [options.numbers(text, 2, "--bounds", BOUNDS) for text in bounds or ()]
    names = fit.split(",")
    parameters(names, setup)
    limits = {name: (low, high) for name, (low, high) in pairs}
    return partial(fit_replays, names=names, bounds=limits, cable_model=model, workers=workers)


def system_to_replay(name: str) -> SlungLoadSystem:
    """A system that can be replayed: load and drones, cables free to twist."""
    from musls_description.system.slung_system import slung_system
    from musls_description.system.system_files import load_system

    slung_load = slung_system(load_system(name), "replay")
    if any(cable.twist == "locked" for cable in slung_load.cables):
        raise ConfigError(
            f"system {slung_load.name}: replay needs cables with twist: free, since the recorded "
            "yaws of drones and load would tear cables that cannot twist"
        )
    return slung_load


def _setup(
    system: SlungLoadSystem,
    lead_in_s: float,
    step_s: float,
    offset: list[str] | None,
    with_fit: Path | None,
) -> Setup:
    """System and specification of the replay, with what an earlier fit found."""
    from musls_analysis.estimation.estimate import with_fit as fitted
    from musls_analysis.estimation.system_parameters import Setup
    from musls_analysis.replay import ReplaySpec

    options.within("--lead-in", lead_in_s, 0.0, LONGEST_LEAD_IN_S, " s")
    spec = ReplaySpec(
        lead_in_s=lead_in_s, physics_step_s=_step(step_s), offsets_m=options.offsets_m(offset)
    )
    setup = Setup(system, spec)
    return setup if with_fit is None else fitted(setup, with_fit)


def _fitted(
    replay: Replay, setup: Setup, fit: Callable[..., ParameterEstimate], work: Path
) -> Setup:
    """Fit, write and print; the setup with what was found."""
    from musls_analysis.estimation.estimate import write_estimate, write_values

    try:
        with ProgressDisplay("fitting") as display:
            result = fit([replay], setup.system, progress=display.update)
    except StopRequested as stop:
        if values := getattr(stop, "fit", None):
            write_values(setup, values, work)
            stop.kept = f"the best fit so far is kept: --with-fit {work} starts from it"
        raise
    write_estimate(result, work)
    print(result)
    return result.setup


def _replayed(replay: Replay, setup: Setup, model: str, work: Path) -> dict[str, Any]:
    from musls_analysis.replay.replay import write_replay

    with ProgressDisplay("replaying", "compiles on first use") as display:
        result = replay.run(setup.system, display.share, spec=setup.spec, cable_model=model)
        return write_replay(replay, result, work)


def _estimators(texts: Sequence[str], setup: Setup) -> dict[str, Any]:
    """The load estimators asked for, by what was asked; none sees the load."""
    from musls_analysis.replay.estimators import check_estimator
    from musls_description.config.strict_yaml import parse_yaml

    estimators = {text: parse_yaml(text, "--estimator") for text in texts}
    if len(estimators) < len(texts):
        raise ConfigError(f"--estimator given twice: {', '.join(texts)}")
    return {text: check_estimator(data) for text, data in estimators.items()}


def _compare(
    replay: Replay, setup: Setup, models: list[str], estimators: dict[str, Any], work: Path
) -> None:
    """A row of a table for each cable model, which gets a folder, and each estimator (a CSV)."""
    import json

    from musls_analysis.replay.estimators import EstimateDivergedError, estimate_load
    from musls_analysis.replay.replay import write_load

    errors: dict[str, dict[str, Any]] = {}
    for model in models:
        folder = work / model.replace(":", "_")
        folder.mkdir()
        errors[model] = _replayed(replay, setup, model, folder)
    for k, (text, estimator) in enumerate(estimators.items(), start=1):
        try:
            with ProgressDisplay(f"estimating by {estimator.kind}"):
                estimated = estimate_load(replay, setup.system, estimator, setup.spec)
        except EstimateDivergedError as error:
            tell("warning", str(error))
            continue
        write_load(estimated, work / f"load_{estimator.kind}_{k}.csv")
        errors[text] = estimated.errors()
    (work / "summary.json").write_text(json.dumps(errors, indent=2) + "\n", encoding="utf-8")
    rows = [
        (
            name,
            f"{1e3 * n['translational_error_m']:.1f} mm",
            f"{1e3 * n['translational_error_without_mean_m']:.1f} mm",
            _angle(n, "unknown"),
            f"{max(n['max_tension_n']):.1f} N" if "max_tension_n" in n else "",
            f"{100 * n['energy_audit_relative_error']:.2f} %" if "work_j" in n else "",
        )
        for name, n in errors.items()
    ]
    heads = "load by", "error", "without constant", "attitude", "tension", "audit"
    new_console().print(new_table(*heads, rows=rows))


def _angle(errors: dict[str, Any], unknown: str) -> str:
    """Mean angle of the load's error, or a word for one that was not measured."""
    angle_deg = errors["geodesic_error_deg"]
    return unknown if angle_deg is None else f"{angle_deg:.1f} deg"


def _conclude(errors: dict[str, Any]) -> None:
    from musls_analysis.replay.replay import UNKNOWN_ATTITUDE

    typer.echo(
        f"load predicted within {1e3 * errors['translational_error_m']:.1f} mm and "
        f"{_angle(errors, UNKNOWN_ATTITUDE)} (mean over "
        f"{errors['compared_to_s'] - errors['compared_from_s']:.1f} s); without the constant "
        f"part {1e3 * errors['translational_error_without_mean_m']:.1f} mm"
    )
    typer.echo(
        f"drones met their path within {1e3 * errors['prescribed_position_miss_m']:.3f} mm and "
        f"{errors['prescribed_attitude_miss_deg']:.4f} deg; energy audit "
        f"{100 * errors['energy_audit_relative_error']:.2f} %"
    )


def _models(names: list[str], system: Any) -> list[str]:
    """The cable models asked for, each once and known."""
    from musls_analysis.replay.replay import with_links

    for name in names:
        with_links(system, name)
    if len(set(names)) < len(names):
        raise ConfigError(f"--cable-model given twice: {', '.join(names)}")
    return names


def _step(step_s: float) -> float:
    from musls_sim.specs.physics import CONTROL_PERIOD_S, MIN_STEP_S

    ratio = CONTROL_PERIOD_S / step_s if step_s >= MIN_STEP_S else 0.0
    if ratio < 1.0 - 1e-9 or abs(ratio - round(ratio)) > 1e-6:
        raise ConfigError(f"--step = {step_s:g}: must divide 0.004 s (0.004, 0.002, 0.001, ...)")
    return step_s


# ---------- `musls identify`


@reads("flights")
def identify(
    flights: options.RealFlights,
    system: Annotated[
        str, typer.Option(help="Shipped system or file; cables free to twist are needed.")
    ] = "x500_trio_swivel",
    cable_model: Annotated[
        str, typer.Option(metavar="MODEL", help="Cable model (see musls list cable-models).")
    ] = "rigid_links:5",
    parameters: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Parameters among which is chosen (docs/replay.md); by default all that several "
            "recordings can tell apart.",
        ),
    ] = None,
    geometry: Annotated[
        bool,
        typer.Option(
            "--geometry",
            help="First find attachments, hooks and lengths from all rows with taut cables, and "
            "start from these.",
        ),
    ] = False,
    drones: Annotated[
        bool, typer.Option(help="Identify tilts and delay of the drones, too (as fit-drones).")
    ] = True,
    offset: options.RecordedPoints = None,
    workers: Annotated[int | None, options.worker_count("one per core", "Processes.")] = None,
    out: Annotated[Path | None, options.out_path("runs/identify_DATE_TIME")] = None,
    overwrite: options.Overwrite = False,
    *,
    reading: Any,
) -> None:
    """Identifies a system from recordings: what they tell of it, with 90 % intervals.

    Keeps what predicts recordings better that it was not fitted to. Writes system.yaml to fly with,
    imperfections.yaml of the drones, fit.json and a figure.
    """
    from musls_analysis.estimation.drones import summary_of, write_fit
    from musls_analysis.estimation.estimate import write_estimate
    from musls_analysis.estimation.replays import fit_replays
    from musls_analysis.estimation.taut_rows import geometry as taut_geometry
    from musls_analysis.paper.flights import some_cycles
    from musls_analysis.replay import Replay, ReplaySpec
    from musls_bringup.papers.reproduce import fit_drones

    folder = chosen_folder(out, "identify", overwrite=overwrite)
    slung_load = system_to_replay(system)
    spec = ReplaySpec(offsets_m=options.offsets_m(offset))
    files = list(paths([flights]))
    if len(files) < 2:
        raise ConfigError(
            "identify: takes two recordings or more, since parameters are validated on recordings "
            "that they were not fitted to; for one take `musls replay --fit`"
        )
    replays = [Replay(read(file, reading), spec) for file in files]
    names = None if parameters is None else parameters.split(",")
    if geometry:
        taut = taut_geometry(replays, slung_load)
        slung_load = taut.setup.system
        spec = taut.setup.spec
        for replay in replays:
            replay.spec = spec
        print(taut)
    with result_folder(folder, overwrite=overwrite) as work:
        with ProgressDisplay("identifying", "compiles on first use") as display:
            result = fit_replays(
                replays,
                slung_load,
                names,
                cable_model=cable_model,
                workers=workers,
                progress=display.update,
            )
        write_estimate(result, work)
        print(result)
        if drones:
            try:
                real = some_cycles(flights, reading)
                with ProgressDisplay("flights") as display:
                    drone_fit = fit_drones(
                        real, [f"system={work}/system.yaml"], progress=display.count
                    )
                flown_with = [f"system={folder}/system.yaml"]
            except ConfigError as error:
                tell("note", f"drones are not identified: {error}")
            else:
                command = f"musls identify {' '.join(map(str, flights))}"
                write_fit(drone_fit, work, command, flown_with)
                print("\n".join(summary_of(drone_fit)))
    typer.echo(f"results in {folder}: --set system={folder}/system.yaml", err=True)
