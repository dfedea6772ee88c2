"""`design.html`: one page for those who decide; every number has the command that repeats it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.figures import style
from musls_analysis.recordings.recording import LOAD, Recording
from musls_analysis.report.report import number
from musls_analysis.scene import Subject
from musls_analysis.sweep.store import Store, write_table
from musls_analysis.view.film import write_png
from musls_analysis.view.page import picture, templates
from musls_analysis.view.picture import NARROW, PictureOptions
from musls_bringup.before.formation import Proposal, draw
from musls_bringup.design.answer import MARK, VARIES, Answer, Choice
from musls_bringup.design.flights import (
    HOLD_S,
    LOST_AFTER_S,
    SPEED_M_S,
    TUNED,
    WAY_M,
    Outcome,
    height_m,
    loss_event,
    parameters_of,
)
from musls_bringup.design.question import Question, battery_of
from musls_bringup.design.search import Rejection, materials_for
from musls_bringup.flight.fly import fly_in_memory, program
from musls_control.brief.margins import hanging_forces, margins
from musls_description.config.errors import writing
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

NOT_LOOKED_AT = (
    "the rotors' wash on the load and on each other, and the effect of the ground "
    "(--set 'aerodynamics=[{kind: downwash}]' adds the former)",
    "winds that differ from place to place, from above or below, or turn during the flight",
    "knots, hooks and splices, which weaken ropes; wear and weather",
    "the loss of a cable, of a single motor, of two drones, or of the radio",
    "losses in the lift, on the way or in the landing, or in another wind than the worse one",
    "sensors other than motion capture; GNSS outdoors moves set-points by decimetres",
    "obstacles, people below, rules of the air",
)
"""What no flight of a design shows."""

AT_SINK_S = 0.1


def write_page(found: Answer, store: Store) -> Path:
    """Write design.html, its figures and choices.csv into the folder of an open store."""
    folder = store.folder
    path = folder / "design.html"
    with writing(folder):
        if found.choices:
            write_table(found.rows, folder, "choices")
        page = templates(Path(__file__).parent).get_template("design.html.j2")
        path.write_text(page.render(_content(found, folder)), encoding="utf-8")
    return path


def _content(found: Answer, folder: Path) -> dict[str, Any]:
    question = found.question
    cargo = found.question.cargo
    asked = [
        ("load", f"{cargo.what}, {cargo.mass_kg:g} kg"),
        ("wind", f"{question.wind_m_s:g} m/s, gusts add {question.gusts_m_s:g} m/s"),
        ("drones", ", ".join(question.fleet)),
        ("required", ", ".join(_required(found))),
        ("fixed", ", ".join(_fixed(found)) or "nothing: number, cone, cables are searched"),
        ("model", question.cable_model),
    ]
    content: dict[str, Any] = {
        "title": f"Lifting {cargo.what}, {cargo.mass_kg:g} kg",
        "asked": asked,
        "assumed": [*question.assumptions(), *_flight(found)],
        "not_looked_at": NOT_LOOKED_AT,
        "made_as": found.made_as or "musls.design(...)",
        "folder": folder,
        "found": found,
        "heads": [*found.choices[0].row(), "worlds"] if found.choices else [],
        "rows": [
            [*map(_shown, row.values()), _percent(found.shares.get(k))]
            for k, row in enumerate(found.rows, start=1)
        ],
        "rejected": _together(found.rejections),
        "number": number,
        "choice": None,
    }
    return content if not found.choices else content | _of_choice(found, folder)


def _flight(found: Answer) -> Iterator[tuple[str, str]]:
    """What is flown, and with which parameters of the autopilot."""
    yield (
        "flight",
        f"up by {height_m(found.question):g} m, hold for {HOLD_S:g} s, {WAY_M:g} m away and back "
        f"at {SPEED_M_S:g} m/s, down; sensors as of motion capture",
    )
    for name in found.question.fleet:
        if parameters_of(name):
            yield "autopilot", f"{name}: PX4's parameters of its shipped scenario {TUNED[name]}"
        else:
            yield "autopilot", f"{name}: PX4's cascade with gains that follow from its rotors"


def _required(found: Answer) -> Iterator[str]:
    required = found.question.requirements
    yield f"thrust margin {required.margin:g}"
    yield f"breaking force {required.factor:g} times the largest tension"
    gaps = {f"{required.gap_m(drone):.2g}" for drone in found.question.fleet.values()}
    yield f"rotor tips {' or '.join(sorted(gaps))} m apart"
    for value, text in (
        (required.hover_min, "{:g} min of hover"),
        (required.room, "{:g} m of room on the ground"),
        (required.error, "load within {:g} m of its place in hold"),
    ):
        if value is not None:
            yield text.format(value)
    yield "any one drone may be lost" if required.survives_one else "no loss need be survived"


def _fixed(found: Answer) -> Iterator[str]:
    fixed = vars(found.question.fixed)
    yield from (
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in fixed.items()
        if value is not None
    )


def _together(rejected: Sequence[Rejection]) -> list[tuple[str, str]]:
    """Fleets and reasons; those of one airframe with the same reason in one row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for entry in rejected:
        why = entry.why + (" (flown)" if entry.flown else "")
        rows.setdefault((entry.airframe, why), []).append(f"{entry.number}")
    return [(f"{', '.join(numbers)} {name}", why) for (name, why), numbers in rows.items()]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def _shown(value: Any) -> str:
    return "–" if value is None else number(value) if isinstance(value, float) else str(value)


def _of_choice(found: Answer, folder: Path) -> dict[str, Any]:
    """The part of the page about the choice."""
    choice = found.choice
    question = found.question
    design = choice.design
    file = folder / MARK.format(found.picked)
    figures = folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    pictures = {"choice": figures / "choice.png", "peaks": figures / "peaks.png"}
    _draw_choice(choice, pictures["choice"])
    with style.styled():
        style.save(_peaks_figure(found), pictures["peaks"])
        if len(found.choices) + len(found.rejections) > 1:
            pictures["front"] = figures / "front.png"
            style.save(_front_figure(found), pictures["front"])
        if found.worlds is not None:
            pictures["worlds"] = figures / "worlds.png"
            style.save(_worlds_figure(found), pictures["worlds"])
    worst = choice.worst_loss
    if worst is not None:
        pictures["loss"] = figures / "loss.png"
        _draw_loss(found, worst, pictures["loss"])
    check = f"{program()} check {shlex.quote(str(file))}"
    minutes = "not known, no battery in the airframe's file"
    if design.minutes is not None:
        minutes = f"{design.minutes:.1f} min"
    materials = materials_for(design, question.requirements.factor, choice.peak_n)
    worlds = found.worlds
    return {
        "choice": choice,
        "design": design,
        "minutes": minutes,
        "has_battery": battery_of(design.system.drones[0]) is not None,
        "check": check,
        "draw": f"{program()} draw {shlex.quote(str(file.with_name(file.stem + '_system.yaml')))}",
        "flights": [(o, _command(file, o, choice, question)) for o in choice.flights],
        "losses": [(o, _command(file, o, choice, question)) for o in choice.worse_losses],
        "materials": [
            (name, f"{1e3 * size:g}", f"{1e3 * mass:.3g}") for name, size, mass in materials
        ],
        "pictures": {name: picture(path.read_bytes()) for name, path in pictures.items()},
        "peak": "" if found.peak is None else found.peak.text("N"),
        "passed_over": list(found.passed_over),
        "lacking": list(found.lacking.get(found.picked, {}).items()),
        "statistics": [] if worlds is None else _statistics(found),
        "varied": [] if worlds is None else _varied(worlds.vary),
        "montecarlo": f"{program()} montecarlo {shlex.quote(str(file))} --vary "
        f"{shlex.quote(str(folder / VARIES.format(found.picked)))} --worlds {question.worlds} "
        f"--seed {question.seed}",
        "pick": f"{program()} design {shlex.quote(str(folder))} --pick",
    }


def _command(file: Path, outcome: Outcome, choice: Choice, question: Question) -> str:
    """The command that repeats a flight of the choice."""
    words = [program(), "fly", str(file)]
    trial = outcome.trial
    own = choice.worst.trial
    if trial.wind_deg != own.wind_deg:
        mean = question.wind_keys(trial.wind_deg or 0.0)["mean_enu_m_s"]
        words += ["--set", f"wind.mean_enu_m_s={mean}"]
    if trial.noise != own.noise:
        words += ["--set", f"seed={question.seed + trial.noise}"]
    if trial.lost is not None:
        words += ["--set", f"events={json.dumps([loss_event(trial.lost)])}"]
    return shlex.join(words)


# ---------- Tables of the Monte Carlo

FIGURES = (
    ("least_thrust_margin", "least thrust margin", 1.0, ""),
    ("max_tension_n", "largest tension", 1.0, "N"),
    ("errors.load.hold.translational_error_max_m", "load from its place, in hold", 1.0, "m"),
)
"""Columns of the study that the page shows."""


def _statistics(found: Answer) -> list[list[str]]:
    """Rows: figure, mean, 5, 50 and 95 percentile with intervals, least and largest."""
    assert found.worlds is not None
    by_name = {row["figure"]: row for row in found.worlds.study.statistics}
    kept = found.worlds.kept
    low, high = kept["mean_low"] or 0.0, kept["mean_high"] or 1.0
    rows = [
        [
            "keep all that is required",
            f"{100 * kept['mean']:.0f} % [{100 * low:.0f}, {100 * high:.0f}]",
            "",
            "",
            "",
            "",
        ]
    ]
    for name, text, scale, unit in FIGURES:
        if name not in by_name:
            continue
        row = by_name[name]
        cells = [_with_ends(row, key, scale) for key in ("mean", "p5", "p50", "p95")]
        ends = f"{scale * row['least']:.3g} to {scale * row['largest']:.3g}"
        rows.append([f"{text} {unit}".strip(), *cells, ends])
    return rows


def _with_ends(row: Mapping[str, Any], key: str, scale: float) -> str:
    ends = (row[f"{key}_low"], row[f"{key}_high"])
    low, high = ("–" if end is None else f"{scale * end:.3g}" for end in ends)
    return f"{scale * row[key]:.3g} [{low}, {high}]"


def _varied(vary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Keys that vary and how; the hooks in one row."""
    rows: dict[str, str] = {}
    for key, how in vary["parameters"].items():
        name = key
        if key.startswith("system.load.cable_attachments_m"):
            name = "system.load.cable_attachments_m, x and y of each"
            how = {"std": how["std"]}
        words = [f"{word} {value:.4g}" for word, value in how.items()]
        rows[name] = ", ".join(words)
    return list(rows.items())


# ---------- Figures


def _draw_choice(choice: Choice, path: Path) -> None:
    """Load, cables and rotor discs to scale, from above and from the side."""
    hanging = choice.design.hanging
    draw(Proposal(hanging, margins(hanging.system, hanging_forces(hanging))), path)


def _front_figure(found: Answer) -> Any:
    """Mass against margin: choices, and rejected fleets that were composed."""
    figure = style.new_figure(2.6)
    ax = figure.subplots()
    style.margins(figure, 0.55, 0.15, 0.42, 0.25)
    for k, choice in enumerate(found.choices, start=1):
        ink = style.colour("load") if k == found.picked else style.colour("drone_1")
        ax.plot(choice.design.cost_kg, choice.margin, "o", color=ink, ms=7)
        text = f"{k}: {choice.design.number} {Path(choice.design.airframe).stem}"
        ax.annotate(
            text,
            (choice.design.cost_kg, choice.margin),
            (7, 4),
            textcoords="offset points",
            fontsize=7,
        )
    for rejection in found.rejections:
        if rejection.design is None:
            continue
        at = rejection.design.cost_kg, rejection.design.wind_margin
        ax.plot(*at, "x", color=style.EVENT, ms=6)
        ax.annotate(
            rejection.name, at, (7, -9), textcoords="offset points", fontsize=7, color=style.EVENT
        )
    ax.axhline(found.question.requirements.margin, color=style.INK, lw=0.8, ls="--")
    ax.set(xlabel="mass of drones and cables [kg]", ylabel="least thrust margin")
    ax.set_title("Choices (dots; crosses were rejected, dashed: required)")
    ax.margins(0.16, 0.2)
    return figure


def _peaks_figure(found: Answer) -> Any:
    """Largest tensions at rest, in flights and in the worlds, against the breaking force."""
    choice = found.choice
    required = found.question.requirements
    design = choice.design
    rest_n = float(design.hanging.rest.load_end_tension_n.max())
    rows: list[tuple[str, float, float]] = [
        ("at rest, still air", rest_n, rest_n),
        ("at rest, strongest wind", design.tension_n, design.tension_n),
    ]
    peaks = [outcome.peak_n for outcome in choice.flights]
    rows.append(("flights with all drones", min(peaks), max(peaks)))
    if choice.losses:
        lost = [outcome.peak_n for outcome in choice.losses]
        rows.append(("flights with a drone lost", min(lost), max(lost)))
    if found.worlds is not None:
        known = [o.peak_n for o in found.worlds.outcomes if np.isfinite(o.peak_n)]
        if known:
            low, high = np.percentile(known, [5.0, 95.0])
            rows.append(("worlds, 5 to 95 %", float(low), float(high)))
    figure = style.new_figure(0.9 + 0.28 * len(rows))
    ax = figure.subplots()
    style.margins(figure, 1.75, 0.2, 0.42, 0.25)
    for k, (_, low, high) in enumerate(rows):
        ax.plot([low, high], [-k, -k], "-", color=style.colour("drone_1"), lw=5, alpha=0.45)
        ax.plot([high], [-k], "o", color=style.colour("drone_1"), ms=5)
        ax.annotate(f"{high:.3g} N", (high, -k), (6, -3), textcoords="offset points", fontsize=7)
    ax.axvline(design.break_force_n, color=style.EVENT, lw=1.2)
    ax.axvline(design.break_force_n / required.factor, color=style.EVENT, lw=0.9, ls="--")
    style.logarithmic(ax, "x")
    ax.set_yticks([-k for k in range(len(rows))], [text for text, _, _ in rows])
    ax.set_ylim(-len(rows) + 0.4, 0.6)
    ax.set_xlim(0.5 * rest_n, 1.6 * design.break_force_n)
    ax.set(xlabel="largest tension of any cable [N]")
    ax.set_title(
        f"Tensions; breaks at {number(design.break_force_n)} N (line; "
        f"dashed: a {required.factor:g}th of it)"
    )
    return figure


def _worlds_figure(found: Answer) -> Any:
    """How often each margin, tension and distance of rotor tips came in the worlds."""
    assert found.worlds is not None
    outcomes = found.worlds.outcomes
    required = found.question.requirements
    gap_m = required.gap_m(found.choice.design.system.drones[0])
    panels: list[tuple[str, list[float | None], float | None]] = [
        ("least thrust margin", [o.margin for o in outcomes], required.margin),
        ("largest tension [N]", [o.peak_n for o in outcomes], None),
        ("rotor tips apart [m]", [o.tips_m for o in outcomes], gap_m),
        ("load from its place [m]", [o.error_m for o in outcomes], required.error),
    ]
    figure = style.new_figure(1.9)
    axes = list(np.ravel(figure.subplots(1, len(panels))))
    style.margins(figure, 0.4, 0.15, 0.45, 0.25, wspace=0.3)
    for ax, (title, values, limit) in zip(axes, panels, strict=True):
        known = np.array([v for v in values if v is not None and np.isfinite(v)])
        if len(known):
            ax.hist(known, bins=min(15, len(known)), color=style.colour("drone_1"), alpha=0.7)
        if limit is not None:
            ax.axvline(limit, color=style.EVENT, lw=1.0, ls="--")
        ax.set_xlabel(title)
    axes[0].set_title(f"{len(outcomes)} worlds", loc="left")
    return figure


def _draw_loss(found: Answer, outcome: Outcome, path: Path) -> None:
    """A picture of the worst loss, at the moment when the load comes down fastest."""
    scenario = load_scenario(outcome.trial.data(found.question), found.question.settings, "--set")
    recording = fly_in_memory(Session(scenario))
    begun = next((s.start_s for s in recording.stages if s.name == "hold"), recording.start_s)
    time_s = begun + LOST_AFTER_S + _fastest_s(recording, begun + LOST_AFTER_S)
    window = (begun, min(begun + 2.0 * HOLD_S, recording.end_s))
    subject = Subject(recording, scenario.system, scenario.name)
    options = PictureOptions(layout=NARROW)
    write_png([subject], window, min(time_s, window[1]), path, options)


def _fastest_s(recording: Recording, from_s: float) -> float:
    """Time after another one at which the load comes down fastest."""
    load = recording.bodies[LOAD]
    grid_s = np.arange(from_s, min(from_s + HOLD_S, load.time_s[-1]), AT_SINK_S)
    height_m = np.interp(grid_s, load.time_s, load.position_enu_m[:, 2])
    return float(grid_s[int(np.diff(height_m).argmin())] - from_s) if len(grid_s) > 1 else 0.0
