"""`musls model`: a system as Gazebo, Xacro or URDF text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from musls_bringup.cli.options import Force, path_of, within
from musls_bringup.cli.terminal import tell
from musls_bringup.flight.results import check_older
from musls_description.config.errors import ConfigError, whole_file, writing

if TYPE_CHECKING:
    from musls_description.hanging.tree import Configuration
    from musls_description.system.slung_system import SlungLoadSystem

FILE_SUFFIXES = (".sdf", ".world", ".xacro", ".urdf")
"""An --out that ends so is a file."""

WITH_PLACES = ("world", "model", "sdf", "sdf-1.9")
"""Formats in which the bodies stand or hang somewhere; the others are for all angles zero."""

LOAD_HEIGHT_M = 1.0
LARGEST_RADIUS_M = 1000.0
LARGEST_PACE = 1000.0
MIN_STEP_S = 1e-6
LARGEST_STEP_S = 0.1
"""Steps of a world's physics; Gazebo's own default is 0.001 s."""


def run(
    system: Annotated[str, typer.Argument(help="Shipped system (musls list systems) or file.")],
    format: Annotated[
        Literal["world", "model", "sdf", "sdf-1.9", "xacro", "urdf"],
        typer.Option(help="world, model (to include), sdf (one by one), sdf-1.9, xacro, urdf."),
    ] = "world",
    out: Annotated[
        Path | None,
        typer.Option(
            parser=path_of,
            metavar="PATH",
            help="Folder or file; - for the terminal.",
            show_default="-",
        ),
    ] = None,
    spawn: Annotated[
        Literal["ground", "hover"] | None,
        typer.Option(help="Where the drones start: ground or hover.", show_default="ground"),
    ] = None,
    radius: Annotated[
        float, typer.Option(help="Radius of the circle on which the drones hover [m].")
    ] = 1.0,
    drones: Annotated[
        Literal["motors", "rigid", "include"] | None,
        typer.Option(
            help="motors (with sensors), rigid (one body each) or include (PX4's own model).",
            show_default="motors; rigid in sdf-1.9",
        ),
    ] = None,
    world: Annotated[str, typer.Option(help="Name of the world, as PX4_GZ_WORLD.")] = "musls",
    step: Annotated[
        float | None,
        typer.Option(help="Physics step of the world [s].", show_default="what the cables allow"),
    ] = None,
    lean: Annotated[
        bool, typer.Option("--lean", help="Leave out of the world what only viewers need.")
    ] = False,
    pace: Annotated[
        float | None,
        typer.Option(
            help="Largest real-time factor of Gazebo; 0: as fast as it can.",
            show_default="1",
        ),
    ] = None,
    force: Force = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace older files.")] = False,
) -> None:
    """Writes a system's models for Gazebo (SDF) and ROS (Xacro, URDF)."""
    from musls_bringup.before.verdict import refuse_system
    from musls_description.system.slung_system import extended_load, slung_system
    from musls_description.system.system_files import load_system

    for option, value, formats in (
        ("--spawn", spawn, WITH_PLACES),
        ("--drones", drones, WITH_PLACES),
        ("--lean", lean or None, ("world",)),
        ("--pace", pace, ("world",)),
    ):
        if value is not None and format not in formats:
            raise ConfigError(
                f"{option} has no meaning for --format {format}: only for {', '.join(formats)}"
            )
    for option, number, least, most, unit in (
        ("--radius", radius, 0.0, LARGEST_RADIUS_M, " m"),
        ("--step", step, MIN_STEP_S, LARGEST_STEP_S, " s"),
        ("--pace", pace, 0.0, LARGEST_PACE, ""),
    ):
        if number is not None:
            within(option, number, least, most, unit)
    slung_load = slung_system(load_system(system), f"--format {format}")
    extended_load(slung_load, f"--format {format}")
    if format == "world":  # in which drones fly
        refuse_system(slung_load, force=force)
    folder = None if str(out) == "-" else out
    if format in ("model", "sdf") and folder is None:
        raise ConfigError(f"--format {format} writes folders: give --out FOLDER")
    common: dict[str, Any] = {"drones": drones} if drones else {}
    if format in WITH_PLACES:
        common["spawn"] = _spawn(slung_load, spawn, radius)
    of_world: dict[str, Any] = {"name": world, "step_s": _step_s(slung_load, step)}
    if format == "world":
        of_world |= {"lean": lean} | ({} if pace is None else {"pace": pace})
    files = _texts(slung_load, format, common, of_world)
    if folder is None:
        print(*files.values(), end="")
        return
    for path in _write(files, folder, overwrite=overwrite):
        typer.echo(path)


def _step_s(system: SlungLoadSystem, step_s: float | None) -> float:
    """Step of the world; one that the cables do not hold is warned about."""
    from musls_sim.plants.rigid_links.step_control import fixed_step_s

    holds = fixed_step_s(system)
    if step_s is not None and step_s > holds:
        tell(
            "warning",
            f"--step {step_s:g} s: Gazebo's step is fixed, and cables that are jerked taut in a "
            f"fall need {holds:g} s or less",
        )
    return holds if step_s is None else step_s


def _texts(
    system: SlungLoadSystem, format: str, common: dict[str, Any], of_world: dict[str, Any]
) -> dict[str, str]:
    from musls_description.writers import sdf, urdf

    name = re.sub(r"[^\w.+-]", "_", system.name)  # it is free text
    match format:
        case "sdf":
            return sdf.model_files(system, **common)
        case "model":
            return sdf.include_files(system, **common, step_s=of_world["step_s"])
        case "world":
            return {f"{name}.sdf": sdf.world_sdf(system, **common, **of_world)}
        case "sdf-1.9":
            return {f"{name}-1.9.sdf": sdf.single_model_sdf(system, **common, **of_world)}
        case "xacro":
            return {f"{name}.urdf.xacro": urdf.xacro_text(system)}
        case _:
            return {f"{name}.urdf": urdf.urdf_text(system)}


def _spawn(system: SlungLoadSystem, kind: str | None, radius_m: float) -> Configuration:
    """Initial poses: on the ground, or at rest below drones on a circle, the load 1 m high."""
    from dataclasses import replace

    import numpy as np

    from musls_description.hanging.cone import Cone
    from musls_description.hanging.hang import hang

    hanging = hang(system, Cone(radius_m=radius_m))
    if kind != "hover":
        return hanging.on_ground
    rest = hanging.rest.configuration
    x, y, _ = rest.load_position_enu_m
    return replace(rest, load_position_enu_m=np.array([x, y, LOAD_HEIGHT_M]))


def _write(files: dict[str, str], out: Path, *, overwrite: bool) -> list[Path]:
    """Write files below a folder, or the only one to a file, each whole or not at all."""
    targets = {out / name: text for name, text in files.items()}
    if out.suffix in FILE_SUFFIXES and len(files) == 1:
        targets = dict(zip([out], files.values(), strict=True))
    for path in targets:
        check_older(path.parent, path.name, overwrite=overwrite)
    for path, text in targets.items():
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as work:
            work.write_text(text, encoding="utf-8")
    return list(targets)
