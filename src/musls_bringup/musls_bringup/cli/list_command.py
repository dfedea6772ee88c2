"""`musls list`: what is shipped."""

from __future__ import annotations

from typing import Annotated

import typer

from musls_description.errors import ConfigError
from musls_description.names import near_names
from musls_description.strict_yaml import shown

EXAMPLE = "musls list systems"


def run(
    what: Annotated[
        str | None,
        typer.Argument(
            help="systems, scenarios, cable-models or trajectories.", show_default="all of them"
        ),
    ] = None,
) -> None:
    """Lists what is shipped."""
    if what is not None and what not in KINDS:
        raise ConfigError(f"nothing to list called '{shown(what)}': {near_names(what, KINDS)}")
    for kind in KINDS if what is None else (what,):
        rows = KINDS[kind]()
        width = max(len(name) for name, _ in rows)
        if what is None:
            typer.echo(f"{kind}:")
        for name, text in rows:
            typer.echo(f"{'' if what else '  '}{name:{width}}  {text}")


def _systems() -> list[tuple[str, str]]:
    from musls_description.library import load_system, system_names

    return [(name, load_system(name).description) for name in system_names()]


def _scenarios() -> list[tuple[str, str]]:
    from musls_bringup.scenarios import SCENARIOS
    from musls_description.schema import read_yaml

    return [(p.stem, read_yaml(p).get("description", "")) for p in sorted(SCENARIOS.glob("*.yaml"))]


def _cable_models() -> list[tuple[str, str]]:
    from musls_analysis.replay.cable_models import CABLE_MODELS

    flown = "what musls fly flies: rigid links with universal joints (the seed paper's), in DART"
    return [
        ("rigid_links", flown),
        *((name, f"replay: {text}") for name, text in CABLE_MODELS.items()),
    ]


def _trajectories() -> list[tuple[str, str]]:
    from musls_control.trajectories import TRAJECTORIES

    return [(name, (kind.__doc__ or "").splitlines()[0]) for name, kind in TRAJECTORIES.items()]


KINDS = {
    "systems": _systems,
    "scenarios": _scenarios,
    "cable-models": _cable_models,
    "trajectories": _trajectories,
}
