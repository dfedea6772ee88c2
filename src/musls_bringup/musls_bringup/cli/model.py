"""`musls model`: a system as Gazebo, Xacro or URDF text."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from musls_bringup.cli.options import (
    path_of,
    within,
)
from musls_description.errors import ConfigError, MuslsError, near_names

if TYPE_CHECKING:
    from musls_description.spawn import Configuration
    from musls_description.system import SlungLoadSystem

EXAMPLE = "musls model x500_trio --format world --out worlds"

FORMATS = {
    "world": ".sdf",
    "model": "",
    "sdf": "",
    "sdf-1.9": "-1.9.sdf",
    "xacro": ".urdf.xacro",
    "urdf": ".urdf",
}
"""What follows the system's name in the file's name; `model` and `sdf` are folders."""

IN_FOLDERS = ("model", "sdf")

FILE_SUFFIXES = (".sdf", ".world", ".xacro", ".urdf")
"""An --out that ends so is a file."""

AT_ZERO_ANGLES = ("xacro", "urdf")
SPAWNS = ("ground", "hover")
LOAD_HEIGHT_M = 1.0
LARGEST_RADIUS_M = 1000.0
LARGEST_PACE = 1000.0
MIN_STEP_S, LARGEST_STEP_S = 1e-6, 0.1
"""Of a world's physics; Gazebo's own default is 0.001 s."""


def run(
    system: Annotated[str, typer.Argument(help="Shipped system (musls list systems) or file.")],
    format: Annotated[
        str,
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
        str | None,
        typer.Option(help="Where the drones start: ground or hover.", show_default="ground"),
    ] = None,
    radius: Annotated[
        float, typer.Option(help="Radius of the circle on which the drones hover [m].")
    ] = 1.0,
    drones: Annotated[
        str | None,
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
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace older files.")] = False,
) -> None:
    """Writes a system's models for Gazebo (SDF) and ROS (Xacro, URDF)."""
    from musls_description.library import load_system
    from musls_description.system import extended_load, slung_system

    if format not in FORMATS:
        raise ConfigError(f"unknown --format '{format}': {near_names(format, FORMATS)}")
    if format in AT_ZERO_ANGLES:
        for option, value in (("--spawn", spawn), ("--drones", drones)):
            if value is not None:
                raise ConfigError(f"{option} has no meaning for --format {format}")
    if spawn is not None and spawn not in SPAWNS:
        raise ConfigError(f"unknown --spawn '{spawn}': {near_names(spawn, SPAWNS)}")
    within("--radius", radius, 0.0, LARGEST_RADIUS_M, " m")
    if step is not None:
        within("--step", step, MIN_STEP_S, LARGEST_STEP_S, " s")
    if lean and format != "world":
        raise ConfigError(f"--lean has no meaning for --format {format}: only for a world")
    if pace is not None:
        if format != "world":
            raise ConfigError(f"--pace has no meaning for --format {format}: only for a world")
        within("--pace", pace, 0.0, LARGEST_PACE)
    chosen = slung_system(load_system(system), f"--format {format}")
    extended_load(chosen, f"--format {format}")
    folder = None if str(out) == "-" else out
    if format in IN_FOLDERS and folder is None:
        raise ConfigError(f"--format {format} writes folders: give --out FOLDER")
    place = {} if format in AT_ZERO_ANGLES else {"spawn": _spawn(chosen, spawn, radius)}
    style = {} if drones is None else {"drones": drones}
    of_world: dict[str, Any] = {"name": world, "step_s": _step_s(chosen, step)}
    if lean:
        of_world["lean"] = True
    if pace is not None:
        of_world["pace"] = pace
    files = _texts(chosen, format, place | style, of_world)
    if folder is None:
        print(*files.values(), end="")
        return
    for path in _write(files, folder, overwrite=overwrite):
        typer.echo(path)


def _step_s(system: SlungLoadSystem, wanted: float | None) -> float:
    """Step of the world; one that the cables do not hold is warned about."""
    from musls_sim.plants.rigid_links.step_control import fixed_step_s

    holds = fixed_step_s(system)
    if wanted is not None and wanted > holds:
        print(
            f"musls: warning: --step {wanted:g} s: Gazebo's step is fixed, and cables that are "
            f"jerked taut in a fall need {holds:g} s or less",
            file=sys.stderr,
        )
    return holds if wanted is None else wanted


def _texts(
    system: SlungLoadSystem, format: str, common: dict[str, Any], of_world: dict[str, Any]
) -> dict[str, str]:
    """Text of each file by its path below the output folder."""
    from musls_description import models

    if format == "sdf":
        return models.model_files(system, **common)
    if format == "model":
        return models.include_files(system, **common, step_s=of_world["step_s"])
    writers: dict[str, tuple[Callable[..., str], dict[str, Any]]] = {
        "world": (models.world_sdf, common | of_world),
        "sdf-1.9": (models.single_model_sdf, common | of_world),
        "xacro": (models.xacro_text, {}),
        "urdf": (models.urdf_text, {}),
    }
    writer, options = writers[format]
    # A system's name is free text.
    name = re.sub(r"[^\w.+-]", "_", system.name)
    return {name + FORMATS[format]: writer(system, **options)}


def _spawn(system: SlungLoadSystem, kind: str | None, radius_m: float) -> Configuration:
    """On the ground, or hanging at rest below drones on a circle, the load 1 m high."""
    from dataclasses import replace

    import numpy as np

    from musls_control.formation import Cone
    from musls_description.spawn import ground_spawn, hanging_equilibrium

    if kind != "hover":
        return ground_spawn(system)
    places = Cone(radius_m=radius_m).offsets_m(system.n_drones)
    rest = hanging_equilibrium(system, places).configuration
    x, y, _ = rest.load_position_enu_m
    return replace(rest, load_position_enu_m=np.array([x, y, LOAD_HEIGHT_M]))


def _write(files: dict[str, str], out: Path, *, overwrite: bool) -> list[Path]:
    """Write files below a folder, or the only one to a file, each whole or not at all."""
    targets = {out / name: text for name, text in files.items()}
    if out.suffix in FILE_SUFFIXES and len(files) == 1:
        targets = dict(zip([out], files.values(), strict=True))
    older = next((path for path in targets if os.path.lexists(path)), None)
    if older and not overwrite:
        raise MuslsError(f"{older} exists; --overwrite replaces it")
    try:
        for path, text in targets.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
            try:
                partial.write_text(text, encoding="utf-8")
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise MuslsError(f"{path} cannot be written: {error.strerror or error}") from None
    return list(targets)
