"""`musls design`: from a load, a wind and a fleet to drones, cone and cables that fly."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from musls_bringup.cli import options
from musls_bringup.design import WORLDS
from musls_bringup.flight.progress import ProgressDisplay
from musls_bringup.new.templates import LoadKind
from musls_description.config.errors import ConfigError
from musls_description.config.strict_yaml import read_yaml, shown

EXIT_NONE = 1


def run(
    load: Annotated[
        str | None,
        typer.Argument(
            help="A load's or a system's file, a shipped system, or the folder of an earlier "
            "design; left out with --shape.",
            show_default=False,
        ),
    ] = None,
    shape: Annotated[
        LoadKind | None,
        typer.Option(help="Shape of the load.", show_default=False),
    ] = None,
    size: Annotated[
        str, typer.Option(metavar="LENGTH,WIDTH,HEIGHT", help="Of the shape, or the first [m].")
    ] = "",
    mass: Annotated[
        float | None, typer.Option(help="Of the load [kg].", show_default="the file's")
    ] = None,
    hooks: Annotated[
        str,
        typer.Option(
            metavar="X,Y,Z;...",
            help="Hooks of the load, from its centre [m], one for each cable.",
            show_default="the file's, or proposed",
        ),
    ] = "",
    wind: Annotated[float, typer.Option(help="Mean wind [m/s].")] = 0.0,
    gusts: Annotated[
        float, typer.Option(help="What gusts add to it, at two standard deviations [m/s].")
    ] = 0.0,
    drones: Annotated[
        str,
        typer.Option(metavar="NAME,...", help="Airframes: shipped ones (x500, typhoon), files."),
    ] = "x500",
    require: Annotated[
        str,
        typer.Option(
            metavar="NAME=NUMBER,...",
            help="Requirements: survives_one, hover_min=8, gap=0.5 [m], margin=1.15, factor=5, "
            "room=8 [m], error=0.5 [m].",
        ),
    ] = "",
    number: Annotated[int | None, typer.Option(help="Fix the number of drones.")] = None,
    cone: Annotated[
        float | None, typer.Option(help="Fix the cables' angle from the vertical [deg].")
    ] = None,
    length: Annotated[float | None, typer.Option(help="Fix the cables' length [m].")] = None,
    material: Annotated[
        str | None, typer.Option(help="Fix the material: hmpe (dyneema), polyester, steel, ...")
    ] = None,
    diameter: Annotated[float | None, typer.Option(help="Fix the cables' diameter [mm].")] = None,
    controller: Annotated[
        str | None, typer.Option(help="Fix the controller: formation, payload, ...")
    ] = None,
    model: Annotated[
        str, typer.Option(help="Cable model of the last flights: elastic, rigid_links, massless.")
    ] = "elastic",
    worlds: Annotated[
        int, typer.Option(min=0, help="Worlds of the Monte Carlo of the choice; 0 for none.")
    ] = WORLDS,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all noise and of the draws.")] = 0,
    settings: options.Settings = None,
    pick: Annotated[
        int | None,
        typer.Option(
            min=1, help="Show this choice in detail, and write its system and scenario here."
        ),
    ] = None,
    workers: Annotated[int | None, options.worker_count("one per core")] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="tcp://HOST:PORT", help="Use the Dask cluster with this address."),
    ] = None,
    out: Annotated[
        Path | None, options.out_path("runs/design_LOAD", "Folder of flights, choices and page.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue earlier work in its folder.")
    ] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Chooses drones, cone and cables for a load and a wind, by flights: a table and one page.

    What is fixed stays fixed, everything else is searched. Exit code 1 means that none of these
    drones can carry the load; the reasons are told.
    """
    if workers is not None and scheduler is not None:
        raise ConfigError("--workers and --scheduler exclude each other")
    asked: dict[str, Any]
    if load is not None and (Path(load) / "sweep.yaml").is_file():
        asked = _earlier(Path(load))
        out = Path(load)
        resume = True
    else:
        if (load is None) == (shape is None):
            raise ConfigError("name a LOAD, a file, or give --shape: one of both")
        fixed = {
            "number": number,
            "cone_deg": cone,
            "length_m": length,
            "material": ALSO_CALLED.get(material or "", material),
            "diameter_m": None if diameter is None else 1e-3 * diameter,
            "controller": controller,
        }
        asked = {
            "load": load if shape is None else shape.value,
            "size_m": _numbers(size, "--size"),
            "mass_kg": mass,
            "hooks_m": [_numbers(part, "--hooks") for part in hooks.split(";")] if hooks else None,
            "wind_m_s": wind,
            "gusts_m_s": gusts,
            "drones": drones,
            "require": require,
            "fixed": {key: value for key, value in fixed.items() if value is not None},
            "cable_model": model,
            "worlds": worlds,
            "seed": seed,
            "settings": settings or [],
            "made_as": shlex.join(["musls", *sys.argv[1:]]),
        }
    return _answer(asked, out, pick, workers, scheduler, resume, as_json, quiet)


ALSO_CALLED = {"dyneema": "hmpe", "spectra": "hmpe", "kevlar": "aramid", "polyamide": "nylon"}
"""Trade names of materials."""


def _earlier(folder: Path) -> dict[str, Any]:
    """What was asked in an earlier design."""
    data = read_yaml(folder / "sweep.yaml")
    asked = data.get("design") if isinstance(data, dict) else None
    if not isinstance(asked, dict):
        raise ConfigError(f"{folder}: the folder of a sweep, not of a design")
    return dict(asked)


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")] if text.strip() else []
    except ValueError:
        raise ConfigError(f"{option} {shown(text)}: must be numbers with commas between") from None


def _answer(
    asked: dict[str, Any],
    out: Path | None,
    pick: int | None,
    workers: int | None,
    scheduler: str | None,
    resume: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    from musls_analysis.sweep.store import Store
    from musls_bringup.design.study import design

    name = Path(str(asked["load"])).stem
    folder = out or Path("runs") / f"design_{name}"
    Store(folder).check(resume=resume)
    with ProgressDisplay(f"design {name}", "starting", quiet=quiet or as_json) as display:
        found = design(
            out=folder,
            pick=pick,
            workers=workers,
            scheduler=scheduler,
            progress=display.update,
            **asked,
        )
    if as_json:
        rejected = [{"fleet": entry.name, "why": entry.why} for entry in found.rejections]
        data = {"choices": list(found.rows), "rejected": rejected, "folder": str(folder)}
        typer.echo(json.dumps(data, indent=1))
    elif not quiet:
        typer.echo(str(found))
    if not found.choices:
        return EXIT_NONE
    if not as_json:
        typer.echo(f"page in {folder / 'design.html'}, choices beside it")
    if pick is not None:
        choice = found.choices[pick - 1].design
        stem = f"{name}_{choice.number}_{Path(choice.airframe).stem}"
        system = Path(f"{stem}.yaml")
        scenario = Path(f"{stem}_lift.yaml")
        for path in (system, scenario):
            if path.exists():
                raise ConfigError(f"{path} exists already: choose another folder or remove it")
        found.write_pick(pick, system, scenario)
        typer.echo(f"{system}, {scenario} written. Next:\n    musls fly {scenario}")
    return 0
