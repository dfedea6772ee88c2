"""`musls replay`: the cable model alone, driven by a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from musls_description.errors import ConfigError

EXAMPLE = "musls replay flight_2136_shm.csv --offset load=0,0,-0.07"


def run(
    recording: Annotated[Path, typer.Argument(help="Bag, result folder, flight log or CSV.")],
    system: Annotated[
        str, typer.Option(help="Shipped system or file; cables free to twist are needed.")
    ] = "x500_trio_swivel",
    offset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BODY=X,Y,Z",
            help="Recorded point of a body in its own frame, from its centre of mass [m]; "
            "BODY is load, drone_1, ... or drones.",
        ),
    ] = None,
    lead_in: Annotated[
        float, typer.Option(min=0.0, help="Time in which the load is drawn along [s].")
    ] = 2.0,
    step: Annotated[float, typer.Option(help="Physics step [s].")] = 0.001,
    out: Annotated[
        Path | None, typer.Option(help="Output folder.", show_default="runs/replay_..._DATE_TIME")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an older result.")
    ] = False,
) -> None:
    """Moves the drones as recorded, predicts the load and compares it with the recorded one."""
    from musls_analysis.readers import read_recording
    from musls_analysis.replay import Replay, ReplaySpec, files
    from musls_bringup.results import check_folder, default_folder, result_folder
    from musls_description.library import load_system

    folder = out or default_folder(f"replay_{recording.stem}")
    check_folder(folder, overwrite=overwrite)
    chosen = load_system(system)
    if any(cable.twist == "locked" for cable in chosen.cables):
        raise ConfigError(
            f"system {chosen.name}: replay needs cables with twist: free, since the recorded yaws "
            "of drones and load would tear cables that cannot twist"
        )
    offsets = dict(_offset(text) for text in offset or [])
    spec = ReplaySpec(lead_in_s=lead_in, physics_step_s=_step(step), offsets_m=offsets)
    read = read_recording(recording)
    for warning in read.warnings:
        typer.echo(f"musls: warning: {warning}", err=True)
    replay = Replay(read, spec)
    with result_folder(folder, overwrite=overwrite) as work:
        numbers = files.write(replay, replay.run(chosen, _progress), work)
    typer.echo(
        f"load predicted within {1e3 * numbers['translational_error_m']:.1f} mm and "
        f"{numbers['geodesic_error_deg']:.1f} deg (mean over "
        f"{numbers['compared_to_s'] - numbers['compared_from_s']:.1f} s); without the constant "
        f"part {1e3 * numbers['translational_error_without_mean_m']:.1f} mm"
    )
    typer.echo(
        f"drones met their path within {1e3 * numbers['prescribed_position_miss_m']:.2f} mm and "
        f"{numbers['prescribed_attitude_miss_deg']:.3f} deg; energy audit "
        f"{100 * numbers['energy_audit_relative_error']:.2f} %"
    )
    typer.echo(f"results in {folder}")


def _step(step_s: float) -> float:
    from musls_sim.plants.stability import CONTROL_PERIOD_S

    ratio = CONTROL_PERIOD_S / step_s if step_s > 0.0 else 0.0
    if ratio < 1.0 - 1e-9 or abs(ratio - round(ratio)) > 1e-6:
        raise ConfigError(f"--step = {step_s:g}: must divide 0.004 s (0.004, 0.002, 0.001, ...)")
    return step_s


def _offset(text: str) -> tuple[str, tuple[float, float, float]]:
    body, equals, numbers = text.partition("=")
    try:
        x, y, z = (float(number) for number in numbers.split(","))
    except ValueError:
        equals = ""
    if not equals:
        raise ConfigError(f"--offset {text}: expected BODY=X,Y,Z, such as load=0,0,-0.07")
    return body, (x, y, z)


def _progress(share: float) -> None:
    import sys

    if sys.stderr.isatty():
        print(
            f"\rreplaying {100 * share:3.0f} %", end="" if share < 0.99 else "\r", file=sys.stderr
        )
