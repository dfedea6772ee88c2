"""Writes the report of a flight: one HTML file with everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from musls_analysis.comparison.summary import PEAK_PLACES, STIFF, facts, of_a_chain, sentence
from musls_analysis.figures.colours import label
from musls_analysis.recordings.recording import Recording, main_stages
from musls_control.mission.phase_end import was_cut_short
from musls_description.config.schema import to_yaml
from musls_description.system.slung_system import RigSystem

if TYPE_CHECKING:
    from musls_analysis.figures.flight import FlightFigure
    from musls_sim.scenario.scenario import Scenario


def write_report(
    recording: Recording,
    summary: Mapping[str, Any],
    folder: Path,
    scenario: Scenario | None = None,
    command: str = "",
    more: Sequence[FlightFigure] = (),
) -> Path:
    """Write report.html into a folder, made if missing.

    `summary`: of `summarise`, with what a flight adds. `command` flies it again. `more` are
    figures that were drawn into the folder's figures/.
    """
    from musls_analysis.view.page import (  # jinja2: only reports need it
        live_figures,
        picture,
        templates,
    )

    environment = templates(Path(__file__).parent)
    environment.filters["png"] = lambda path: picture(path.read_bytes())
    folder.mkdir(parents=True, exist_ok=True)
    html = environment.get_template("report.html.j2").render(
        title=f"Flight {scenario.name}" if scenario else "Flight",
        description=scenario.description if scenario else "",
        scenario_text=to_yaml(scenario) if scenario else "",
        command=command,
        warnings=summary["warnings"],
        errors=summary["errors"],
        verdict=_verdict(recording, summary),
        tension_sentence=sentence(summary),
        cables=summary["cables"],
        slack_threshold_n=summary["slack_threshold_n"],
        stages=summary["stages"],
        system_rows=_system_rows(scenario.system) if scenario else [],
        run_rows=_run_rows(recording, summary),
        network=summary.get("network") or [],
        timings=_timings(summary),
        key_numbers=_key_numbers(recording, summary),
        figures=more,
        folder=folder / "figures",
        live=live_figures([recording], systems=[scenario.system] if scenario else []),
    )
    path = folder / "report.html"
    path.write_text(html, encoding="utf-8")
    return path


GROUPED_FROM = 10_000
"""Smallest whole number that gets thin spaces between thousands."""


def number(value: float, digits: int = 3) -> str:
    """Write a number with a number of significant digits, never as a power of ten."""
    if isinstance(value, int) or abs(value) >= 10 ** (digits - 1):
        text = f"{value:,.0f}".replace(",", "\u202f")
        return text if abs(value) >= GROUPED_FROM else text.replace("\u202f", "")
    return np.format_float_positional(value, digits, unique=False, fractional=False, trim="-")


def _key_numbers(recording: Recording, summary: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Value, unit and meaning of what one wants to know first."""
    cards = []
    main = max(main_stages(recording.stages), key=lambda stage: stage.duration_s).name
    stage = label(main)
    load = summary["errors"].get("load", {}).get(main)
    if load:
        cards += [
            (number(1000.0 * load["translational_error_m"]), "mm", f"mean load error, {stage}"),
            (number(load["geodesic_error_deg"]), "°", f"mean load angle error, {stage}"),
        ]
    if summary["cables"]:
        cables = summary["cables"].values()
        slack = [cable["stages"].get(main, {}).get("slack_fraction") for cable in cables]
        highest = summary["tension"].get("in_flight", {}).get("max_n", 0.0)
        cards += [
            (
                f"{peak['max_n']:.1f}",
                "N",
                f"greatest cable tension {PEAK_PLACES[where]}"
                + (f" ({STIFF})" if of_a_chain(summary, where) else ""),
            )
            for where, peak in summary["tension"].items()
            if peak["max_n"] > highest or where == "in_flight"
        ]
        if None not in slack:
            cards.append((number(100.0 * max(slack)), "%", f"time slack, worst cable, {stage}"))
    if "real_time_factor" in summary:
        cards.append((number(summary["real_time_factor"]), "×", "real time"))
    return cards


def _verdict(recording: Recording, summary: Mapping[str, Any]) -> list[str]:
    """Whether the flight counts and how well the load followed, and what its errors are made of."""
    main = max(main_stages(recording.stages), key=lambda stage: stage.duration_s).name
    load = summary["errors"].get("load", {}).get(main)
    lines = []
    if load and not summary["warnings"]:
        mean_mm = 1e3 * load["translational_error_m"]
        most_mm = 1e3 * load["translational_error_max_m"]
        lines.append(
            f"Valid flight: in {label(main)} the load is {mean_mm:.0f} mm from its reference on "
            f"average, {most_mm:.0f} mm at most."
        )
    for stage in recording.stages:
        if was_cut_short(stage.end_reason):
            lines.append(f"Not as planned, at {stage.end_s:.1f} s: {stage.end_reason}.")
    return [*lines, *summary["explanations"]]


def _run_rows(recording: Recording, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Rows that identify the flight."""
    rows = [("Recorded", f"{number(recording.end_s - recording.start_s)} s")]
    if "seed" in summary:
        rows.append(("Seed", str(summary["seed"])))
    versions = summary.get("versions", {})
    if "px4" in versions:
        rows.append(("Autopilot", f"PX4 {versions['px4']}, {versions['px4_binary']}"))
    for name, value in (summary.get("controller") or {}).items():
        rows.append((f"Controller: {name.replace('_', ' ')}", number(value)))
    return [*rows, *_flight_rows(summary)]


def _timings(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Step and pace of the simulation."""
    rows = []
    quantities = (
        ("sim_time_s", "Simulated time", 1.0, "s"),
        ("wall_time_s", "Wall time of the flight", 1.0, "s"),
        ("compile_s", "of it compiling, once", 1.0, "s"),
        ("real_time_factor", "Real-time factor", 1.0, "×"),
        ("step_size_s", "Physics step", 1000.0, "ms"),
        ("accuracy", "Accuracy that it was chosen for", 1.0, ""),
        ("steps", "Steps", 1, ""),
        ("plant_step_us", "Compiled part of a period", 1.0, "µs"),
        ("links_per_cable", "Links per cable", 1, ""),
    )
    for key, name, scale, unit in quantities:
        value = summary.get(key)
        if value is None or (key == "compile_s" and not value):
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        if len(set(values)) == 1:
            values = values[:1]
        rows.append((name, ", ".join(number(scale * v) for v in values) + f" {unit}".rstrip()))
    return rows


MAX_EVENTS = 20
"""Shown in the report; cables that jerk in wind would fill it."""


def _flight_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Closest approaches, checks and events of the flight."""
    rows = [(name[0].upper() + name[1:], text) for name, text in facts(summary)]
    if verification := summary.get("verification"):
        rows.append(("Verified", verification["sentence"]))
    for event in (summary.get("events") or ())[:MAX_EVENTS]:
        rows.append((f"{label(event['kind'])} at {event['time_s']:.2f} s", event["what"]))
    return rows


def _system_rows(system: RigSystem) -> list[tuple[str, str]]:
    """The system's main numbers, as it shows them itself."""
    rows = []
    for part in system.shown():
        if isinstance(part, str):
            rows.append(("System", part))
            continue
        for name, count, mass_kg, what in part.rows:
            each = f"{count} × " if count not in ("", "1") else ""
            text = ", ".join(filter(None, [(mass_kg and f"{each}{mass_kg} kg") or count, what]))
            rows.append((name.capitalize(), text))
    return rows
