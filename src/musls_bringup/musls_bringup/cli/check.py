"""`musls check`, `modes`, `formation`, `draw`: what a system can do, before anything is flown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import options
from musls_bringup.cli.terminal import new_console, new_table
from musls_bringup.flight.progress import PREPARING, ProgressDisplay
from musls_bringup.flight.results import check_older
from musls_description.config.errors import MuslsError, writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console
    from rich.table import Table

    from musls_bringup.before.verdict import Verdict
    from musls_control.brief.margins import DroneMargins, Margins
    from musls_sim.scenario.scenario import Scenario


def run(
    scenario: options.ScenarioName,
    settings: options.Settings = None,
    limit_s: Annotated[
        float | None,
        typer.Option(
            "--for",
            min=0.1,
            metavar="SECONDS",
            help="Fly no longer than this.",
            show_default="to the end",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        options.out_path(help="Write check.json and the figure margins.png."),
    ] = None,
    as_json: options.AsJson = False,
    overwrite: options.Overwrite = False,
) -> int:
    """Checks whether a scenario can be flown, by flying it in memory. Exit code 1 means no."""
    from musls_bringup.before.figures import draw, loss_sentence, losses
    from musls_bringup.before.verdict import as_data, judge

    flight_scenario = find_scenario(scenario, list(settings or []))
    check_older(out, "check.json", overwrite=overwrite)
    with ProgressDisplay(flight_scenario.name, PREPARING, quiet=as_json) as display:
        verdict = judge(flight_scenario, limit_s=limit_s, observers=[display.flight()])
    cable_losses = losses(flight_scenario)
    text = json.dumps(as_data(flight_scenario, verdict, cable_losses), indent=2, allow_nan=False)
    if out is not None:
        with writing(out):
            out.mkdir(parents=True, exist_ok=True)
            (out / "check.json").write_text(text + "\n", encoding="utf-8")
            draw(flight_scenario, cable_losses, out)
    if as_json:
        print(text)
    else:
        loss_lines = [
            loss_sentence(flight_scenario, i, loss) for i, loss in enumerate(cable_losses, start=1)
        ]
        ropes = dict.fromkeys(cable.rope_words for cable in flight_scenario.system.cables)
        _show(flight_scenario.name, verdict, [f"cables: {'; '.join(ropes)}", *loss_lines])
    return 0 if verdict.can_be_flown else 1


def _show(name: str, verdict: Verdict, facts: list[str]) -> None:
    from rich.markup import escape

    margins = verdict.margins
    flight = verdict.flown
    console = new_console()
    if margins is not None:
        _show_margins(console, name, margins)
    for line in facts if margins is not None else ():
        console.print(escape(line))
    if flight is not None and not flight.problems:
        console.print(escape(flight.sentence))
    for line in verdict.cautions:
        console.print(f"[yellow]caution:[/yellow] {escape(line)}")
    for line in verdict.problems[1:]:
        console.print(f"[red]problem:[/red] {escape(line)}")
    if verdict.problems:  # the last line names what refuses
        console.print(f"[bold][red]cannot be flown[/bold]: {escape(verdict.problems[0])}")
        return
    margin_text = f": {margins.margin_sentence}" if margins is not None else ""
    console.print(f"[bold][green]can be flown[/bold]{margin_text}")


def _show_margins(console: Console, name: str, margins: Margins) -> None:
    console.print(_table(f"{name}: in the formation at rest", margins.formation))
    if margins.moment is not None:
        where = f"hardest moment: {margins.moment.stage} at {margins.moment.time_s:.1f} s"
        console.print(_table(where, margins.hardest))
    console.print(
        f"load's set-point from {margins.lowest_m:.2f} m (on the ground) up; the drones carry it "
        f"up to {margins.ceiling_m:.0f} m above sea level; flight of {margins.flight_s:.0f} s"
        if margins.ceiling_m > margins.lowest_m
        else f"the drones carry the load nowhere above sea level, at most "
        f"{-margins.ceiling_m:.0f} m below it; flight of {margins.flight_s:.0f} s"
    )
    if margins.separation is not None:
        i, j = margins.separation.pair
        console.print(
            f"closest in the plan: rotor tips of drone_{i} and drone_{j} "
            f"{margins.separation.tips_m:.2f} m apart, centres {margins.separation.centres_m:.2f} m"
        )
    if margins.first_empty is not None:
        number, minutes = margins.first_empty
        console.print(f"drone_{number} runs out first: {minutes:.1f} min of hover")


COLUMNS = {
    "drone": "",
    "thrust": "N",
    "margin": "",
    "reserve": "margin",
    "tilt": "deg",
    "level": "deg",
    "throttle": "%",
    "cable": "N",
    "power": "W",
    "hover": "min",
}
"""Heading and unit of the table's columns; "level" is the largest tilt without sinking."""


def _table(title: str, drones: Sequence[DroneMargins]) -> Table:
    rows = [[str(number), *_cells(m)] for number, m in enumerate(drones, start=1)]
    columns = [k for k in range(len(COLUMNS)) if any(row[k] != "-" for row in rows)]
    heads = [f"{name}\n[dim]{unit}[/]" for name, unit in COLUMNS.items()]
    cells = [[row[k] for k in columns] for row in rows]
    return new_table(*(heads[k] for k in columns), title=title, rows=cells)


def _cells(m: DroneMargins) -> list[str]:
    from musls_description.hanging.hang import margin_text

    def maybe(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    return [
        f"{m.thrust_n:.1f}",
        margin_text(m.thrust_margin),
        maybe(m.empty_margin, 2),
        f"{m.tilt_deg:.1f}",
        f"{m.level_tilt_deg:.1f}",
        f"{100.0 * m.hover_throttle:.0f}",
        f"{m.tension_n:.1f}",
        maybe(m.power_w, 0),
        maybe(m.minutes, 1),
    ]


# ---------- `musls modes`


def modes(
    scenario: options.ScenarioName,
    settings: options.Settings = None,
    at: Annotated[
        float | None,
        typer.Option(help="Time of the flight [s].", show_default="hanging in formation, at rest"),
    ] = None,
    inputs: Annotated[
        str, typer.Option(help="Inputs of the model: rotor_speeds or forces.")
    ] = "rotor_speeds",
    out: Annotated[
        Path | None,
        options.out_path(help="Write modes.png and model.npz (A, B, C, D, names of states, ...)."),
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Shows the modes of load, cables and drones: open loop, around a state of the flight."""
    import numpy as np

    from musls_analysis.linear import draw, linearise

    check_older(out, "model.npz", overwrite=overwrite)
    flight_scenario = find_scenario(scenario, list(settings or []))
    model = linearise(flight_scenario, at, inputs)
    where = "at rest in formation" if at is None else f"at {model.time_s:.3f} s"
    print(f"{flight_scenario.name}: open loop, {where}")
    print(model)
    for line in _closed_loops(flight_scenario):
        print(line)
    if out is None:
        return
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        np.savez(
            out / "model.npz",
            A=model.A,
            B=model.B,
            C=model.C,
            D=model.D,
            states=model.states,
            inputs=model.inputs,
            outputs=model.outputs,
            residual=model.residual,
        )
        draw(model, flight_scenario.name, out / "modes.png")
    print(f"{out / 'model.npz'}, {out / 'modes.png'}")


def _closed_loops(scenario: Scenario) -> Iterator[str]:
    """Gains and margins of the controller `payload`; nothing for others."""
    import numpy as np

    from musls_control.controllers.payload.controller import PayloadController
    from musls_control.controllers.payload.model import ATTITUDE, POSITION
    from musls_sim.session.control import make_controller
    from musls_sim.specs.physics import CONTROL_PERIOD_S

    controller = make_controller(scenario, CONTROL_PERIOD_S)
    if not isinstance(controller, PayloadController):
        return
    derived = controller.derived
    gains = controller.gains
    lag_s = derived.actuator.lag_s
    by = "places of the drones" if derived.holds_places else "directions of the cables"
    yield f"closed loop: controller payload by {by}, drones answer after {1e3 * lag_s:.0f} ms"
    turning = () if derived.holds_places else ATTITUDE
    for name in (*POSITION, *turning, "cable_direction_1_s2", "cable_rate_1_s"):
        values = np.atleast_1d(getattr(gains, name))
        yield f"  {name}: {', '.join(f'{value:.3g}' for value in values)}"
    for name, loop in derived.loops.items():
        numbers = loop.numbers
        yield (
            f"  loop {name}: gain margin {numbers['gain_margin']:.1f}, phase margin "
            f"{numbers['phase_margin_deg']:.0f} deg, delay margin "
            f"{numbers['delay_margin_ms']:.0f} ms"
        )
    for name, axis in (("horizontal", derived.horizontal), ("yaw", derived.yaw)):
        if axis is not None and axis.share < 1.0:
            yield (
                f"  loop {name}: {100.0 * axis.share:.0f} % of the demanded margins (gain 2, "
                "40 deg): with the lag of these drones none of the tried gains keeps more"
            )


# ---------- `musls formation`, `musls draw`


def formation(
    system: Annotated[str, typer.Argument(help="Shipped system (musls list systems) or file.")],
    drones: Annotated[
        int | None,
        typer.Option(
            help="So many drones, alike, with attachments spread evenly over the load.",
            show_default="the system's",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        options.out_path(help="Write formation.yaml and formation.png."),
    ] = None,
    overwrite: options.Overwrite = False,
    fly: options.FlyOnce = False,
) -> None:
    """Proposes places for the drones of a system: level load, even shares, rotor discs apart.

    Prints thrust margins and what to paste into a scenario. Places that a scenario gives itself
    (formation.places_m) are always kept.
    """
    from musls_bringup.before.formation import draw, pasted, propose, with_drones
    from musls_bringup.before.verdict import judge_system
    from musls_description.system.slung_system import MAX_CABLES, formation_of
    from musls_description.system.system_files import load_system

    slung_load = formation_of(load_system(system), "musls formation")
    if drones is not None:
        options.within("--drones", drones, 1, MAX_CABLES)
        slung_load = with_drones(slung_load, drones)
    check_older(out, "formation.yaml", "formation.png", overwrite=overwrite)
    proposal = propose(slung_load)
    text = pasted(proposal, attachments=drones is not None)
    print(proposal)
    print(judge_system(slung_load, flown=fly).sentence)
    print(text, end="")
    if out is not None:
        with writing(out):
            out.mkdir(parents=True, exist_ok=True)
            (out / "formation.yaml").write_text(text, encoding="utf-8")
            draw(proposal, out / "formation.png")
        print(f"{out / 'formation.yaml'}, {out / 'formation.png'}")


def draw_system(
    system: Annotated[str, typer.Argument(help="Shipped system (musls list systems) or file.")],
    out: Annotated[
        Path | None,
        options.out_path("SYSTEM.png", None, "FILE.png"),
    ] = None,
    overwrite: options.Overwrite = False,
    fly: options.FlyOnce = False,
) -> None:
    """Draws a system at rest from above and from the side: names, shares, thrust margins.

    The drones are in the formation that a scenario without one of its own gets; nothing is flown.
    """
    from musls_bringup.before.formation import draw, propose
    from musls_bringup.before.verdict import judge_system
    from musls_description.system.slung_system import formation_of
    from musls_description.system.system_files import load_system

    slung_load = formation_of(load_system(system), "musls draw")
    path = out or Path(f"{Path(system).stem}.png")
    if path.suffix != ".png":
        raise MuslsError(f"--out = {path}: must end in .png")
    check_older(path.parent, path.name, overwrite=overwrite)
    proposal = propose(slung_load)
    with writing(path):
        draw(proposal, path)
    print(slung_load)
    print(judge_system(slung_load, flown=fly).sentence)
    print(f"picture in {path}")
