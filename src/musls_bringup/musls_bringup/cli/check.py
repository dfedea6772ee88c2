"""`musls check`: can a scenario be flown, and for how long?"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from musls_bringup.cli.options import Overwrite, ScenarioName, Settings, path_of
from musls_bringup.cli.terminal import new_console, new_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from musls_sim.preflight.feasibility import DroneMargins, Feasibility


def run(
    scenario: ScenarioName,
    settings: Settings = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=path_of, metavar="FOLDER", help="Write check.json and the figure margins.png."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    overwrite: Overwrite = False,
) -> int:
    """Checks whether a scenario can be flown: margins and flight time. Exit code 1 means no."""
    from musls_bringup.check import as_data, check, draw, loss_sentence, losses
    from musls_bringup.shipped import find_scenario
    from musls_description.errors import MuslsError, writing

    chosen = find_scenario(scenario, list(settings or []))
    if out is not None and (out / "check.json").exists() and not overwrite:
        raise MuslsError(f"{out} holds an older check; --overwrite replaces it")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = check(chosen)
        lost = losses(chosen)
    cautions = [*found.cautions, *(str(w.message) for w in caught)]
    text = json.dumps(
        as_data(chosen, found, lost) | {"cautions": cautions}, indent=2, allow_nan=False
    )
    if out is not None:
        with writing(out):
            out.mkdir(parents=True, exist_ok=True)
            (out / "check.json").write_text(text + "\n", encoding="utf-8")
            draw(chosen, lost, out)
    if as_json:
        print(text)
    else:
        told = [loss_sentence(chosen, i, left) for i, left in enumerate(lost, start=1)]
        _show(chosen.name, found, cautions, told)
    return 0 if found.can_be_flown else 1


def _show(name: str, found: Feasibility, cautions: list[str], lost: list[str]) -> None:
    from rich.markup import escape

    console = new_console()
    console.print(_table(f"{name}: in the formation at rest", found.formation))
    if found.moment is not None:
        where = f"hardest moment: {found.moment.stage} at {found.moment.time_s:.1f} s"
        console.print(_table(where, found.hardest))
    console.print(
        f"load's set-point between {found.lowest_m:.2f} m (on the ground) and "
        f"{found.ceiling_m:.0f} m above sea level; flight of {found.flight_s:.0f} s"
    )
    if found.separation is not None:
        i, j = found.separation.pair
        console.print(
            f"closest in the plan: rotor tips of drone_{i} and drone_{j} "
            f"{found.separation.tips_m:.2f} m apart, centres {found.separation.centres_m:.2f} m"
        )
    if found.first_empty is not None:
        number, minutes = found.first_empty
        console.print(f"drone_{number} runs out first: {minutes:.1f} min of hover")
    for line in lost:
        console.print(escape(line))
    for line in cautions:
        console.print(f"[yellow]caution:[/yellow] {escape(line)}")
    for line in found.problems:
        console.print(f"[red]problem:[/red] {escape(line)}")
    verdict = "[green]can be flown" if found.can_be_flown else "[red]cannot be flown"
    console.print(f"[bold]{verdict}[/bold], least thrust margin {found.thrust_margin:.2f}")


COLUMNS = {
    "drone": "", "thrust": "N", "margin": "", "reserve": "margin", "tilt": "deg", "level": "deg",
    "throttle": "%", "cable": "N", "power": "W", "hover": "min",
}  # fmt: skip
"""Heading and unit of the table's columns; "level" is the largest tilt without sinking."""


def _table(title: str, drones: Sequence[DroneMargins]) -> Table:
    rows = [[str(number), *_cells(m)] for number, m in enumerate(drones, start=1)]
    used = [k for k in range(len(COLUMNS)) if any(row[k] != "-" for row in rows)]
    heads = [f"{name}\n[dim]{unit}[/]" for name, unit in COLUMNS.items()]
    shown = [[row[k] for k in used] for row in rows]
    return new_table(*(heads[k] for k in used), title=title, rows=shown)


def _cells(m: DroneMargins) -> list[str]:
    def maybe(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    return [
        f"{m.thrust_n:.1f}", f"{m.thrust_margin:.2f}", maybe(m.empty_margin, 2),
        f"{m.tilt_deg:.1f}", f"{m.level_tilt_deg:.1f}", f"{100.0 * m.hover_throttle:.0f}",
        f"{m.tension_n:.1f}", maybe(m.power_w, 0), maybe(m.minutes, 1),
    ]  # fmt: skip
