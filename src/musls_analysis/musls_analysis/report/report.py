"""Writes the report of a flight: one HTML file with everything in it, and its figures beside it."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.comparison.errors import above_ground, error_track
from musls_analysis.figures.style import colour, label
from musls_analysis.recordings.recording import LOAD, Array, Recording, main_stages
from musls_analysis.report.summary import WHERE, Peaks, cable_peaks, sentence
from musls_description.system import RigSystem

# ---------- Figures to turn, zoom and point at: plotly draws them in the browser

MOST_POINTS = 1200
"""Of each curve; more than a screen has columns."""


def plotly_script() -> bytes | None:
    """Plotly's script, compressed; None where the package is not installed."""
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / "package_data/plotly.min.js"
    return gzip.compress(path.read_bytes(), 4, mtime=0) if path.is_file() else None


def interactive(
    recording: Recording, summary: Mapping[str, Any], peaks: Peaks | None = None
) -> dict[str, str] | None:
    """Plotly's `script`, compressed and in base 64, and the `data` as JSON; None without plotly."""
    script = plotly_script()
    if script is None:
        return None
    data = json.dumps(_data(recording, summary, peaks), separators=(",", ":"), allow_nan=False)
    return {
        "script": base64.b64encode(script).decode("ascii"),
        "data": data.replace("<", "\\u003c"),  # it stands in a script element
    }


def _data(recording: Recording, summary: Mapping[str, Any], peaks: Peaks | None) -> dict[str, Any]:
    time_s = np.linspace(recording.start_s, recording.end_s, MOST_POINTS)
    bodies = {
        name: {
            "color": colour(name),
            "path": [_numbers(np.interp(time_s, track.time_s, c)) for c in track.position_enu_m.T],
        }
        for name, track in recording.bodies.items()
    }
    asked = {
        name: [_numbers(column) for column in track.held_at(time_s).position_enu_m.T]
        for name, track in recording.setpoints.items()
    }
    return {
        "time": _numbers(time_s),
        "bodies": bodies,
        "setpoints": asked,
        "panels": _panels(recording, time_s, peaks),
        "stages": [[label(s.name), s.start_s, s.end_s] for s in recording.stages],
        "events": [[round(e.time_s, 3), label(e.kind)] for e in recording.events[:60]],
        "main": LOAD if LOAD in recording.bodies else next(iter(recording.bodies)),
        "slack": summary["slack_threshold_n"],
    }


def _panels(recording: Recording, time_s: Array, peaks: Peaks | None) -> list[dict[str, Any]]:
    """Curves over time: height, distance to the set-point, angle to it, tension."""
    heights, distances, angles = [], [], []
    for name, track in recording.bodies.items():
        height = np.interp(time_s, track.time_s, track.position_enu_m[:, 2])
        heights.append(_curve(name, height))
        if name in recording.setpoints:
            asked = recording.setpoints[name]
            if name == LOAD:
                asked = above_ground(recording, asked)
            error = error_track(track, asked)
            distance = np.interp(time_s, error.time_s, error.translational_error_m)
            angle = np.interp(time_s, error.time_s, error.geodesic_error_rad)
            distances.append(_curve(name, 1e3 * distance))
            angles.append(_curve(name, np.degrees(angle)))
    tensions = [
        _curve(name, _largest(time_s, *track))
        for name, track in cable_peaks(recording, peaks).items()
    ]
    panels = (
        ("height [m]", heights),
        ("distance to set-point [mm]", distances),
        ("angle to set-point [°]", angles),
        ("largest tension [N]", tensions),
    )
    return [{"title": title, "curves": curves} for title, curves in panels if curves]


def _curve(name: str, values: Array) -> dict[str, Any]:
    return {"name": label(name), "color": colour(name), "y": _numbers(values)}


def _largest(time_s: Array, of_s: Array, values: Array) -> Array:
    """Largest value around each time, so that no peak is lost."""
    found: Array = np.interp(time_s, of_s, values)
    nearest = np.searchsorted((time_s[1:] + time_s[:-1]) / 2.0, of_s, side="right")
    found[np.unique(nearest)] = -np.inf
    np.maximum.at(found, nearest, values)
    return found


def _numbers(values: Array) -> list[float | None]:
    """For JSON: four digits after the point, gaps as null."""
    return [None if v != v else v for v in np.round(values, 4).tolist()]


_GROUP_DIGITS = 10_000
"""From here on whole numbers get thin spaces between thousands."""


@dataclass(frozen=True)
class Flown:
    """What a recording does not say about a flight; all of it may be left out.

    Attributes:
        title: Heading of the report.
        description: One or two sentences.
        system: What flew.
        scenario_text: The resolved scenario as YAML.
        seed: Seed of the random numbers.
        command: Command that flies it again.
        peaks: Largest tensions over all steps, see `musls_analysis.report.summary`.
    """

    title: str = "Flight"
    description: str = ""
    system: RigSystem | None = None
    scenario_text: str = ""
    seed: int | None = None
    command: str = ""
    peaks: Peaks | None = None


def write_report(
    recording: Recording,
    summary: Mapping[str, Any],
    folder: Path,
    flown: Flown | None = None,
) -> Path:
    """Write report.html and figures/*.png into a folder, made if missing.

    The summary has the keys of `musls_analysis.report.summary.summarise`; what a flight adds to
    them is shown if it is there.
    """
    # Imported here, because they are slow and only reports need them.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from musls_analysis.figures.flight import write_figures

    flown = flown or Flown()
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["png"] = _data_uri
    environment.filters["words"] = label
    live = interactive(recording, summary, flown.peaks)
    figures = folder / "figures"
    html = environment.get_template("report.html.j2").render(
        flown=flown,
        recording=recording,
        errors=summary["errors"],
        explanations=summary["explanations"],
        tension_sentence=sentence(summary["tension"]),
        cables=summary["cables"],
        slack_threshold_n=summary["slack_threshold_n"],
        stages=summary["stages"],
        system_rows=_system_rows(flown.system) if flown.system else [],
        run_rows=_run_rows(recording, summary, flown),
        key_numbers=_key_numbers(recording, summary),
        figures=write_figures(recording, summary, figures),
        folder=figures,
        live=environment.get_template("interactive.html.j2").render(live=live) if live else "",
    )
    path = folder / "report.html"
    path.write_text(html, encoding="utf-8")
    return path


def _data_uri(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def number(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits, never in powers of ten.

    Digits before the point are all kept.
    """
    if isinstance(value, int) or abs(value) >= 10**digits:
        text = f"{value:,.0f}".replace(",", "\u202f")
        return text if abs(value) >= _GROUP_DIGITS else text.replace("\u202f", "")
    text = f"{value:.{digits}g}"
    if "e+" in text:  # rounded up to one digit more
        return f"{value:.0f}"
    return text if "e" not in text else f"{value:.6f}".rstrip("0").rstrip(".")


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
            (f"{peak['max_n']:.1f}", "N", f"greatest cable tension {WHERE[where]}")
            for where, peak in summary["tension"].items()
            if peak["max_n"] > highest or where == "in_flight"
        ]
        if None not in slack:
            cards.append((number(100.0 * max(slack)), "%", f"time slack, worst cable, {stage}"))
    if "real_time_factor" in summary:
        cards.append((number(summary["real_time_factor"]), "×", "real time"))
    return cards


def _run_rows(
    recording: Recording, summary: Mapping[str, Any], flown: Flown
) -> list[tuple[str, str]]:
    """What is known of the run and its speed."""
    rows = [("Recorded", f"{number(recording.end_s - recording.start_s)} s")]
    if flown.seed is not None:
        rows.append(("Seed", str(flown.seed)))
    versions = summary.get("versions", {})
    if "px4" in versions:
        rows.append(("Autopilot", f"PX4 {versions['px4']}, {versions['px4_binary']}"))
    shown = (
        ("sim_time_s", "Simulated time", 1.0, "s"),
        ("wall_time_s", "Wall time of the flight", 1.0, "s"),
        ("compile_s", "of it compiling, once", 1.0, "s"),
        ("real_time_factor", "Real-time factor", 1.0, "×"),
        ("step_size_s", "Physics step", 1000.0, "ms"),
        ("steps", "Steps", 1, ""),
        ("plant_step_us", "Plant step", 1.0, "µs"),
        ("bare_dart_step_us", "Bare DART step, same run", 1.0, "µs"),
        ("links_per_cable", "Links per cable", 1, ""),
    )
    for key, name, scale, unit in shown:
        value = summary.get(key)
        if value is None or (key == "compile_s" and not value):
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        if len(set(values)) == 1:
            values = values[:1]
        rows.append((name, ", ".join(number(scale * v) for v in values) + f" {unit}".rstrip()))
    return [*rows, *_flight_rows(summary)]


MOST_EVENTS = 20
"""Shown in the report; cables that jerk in wind would fill it."""


def _flight_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How close the drones came, what was expected before the flight, and what happened."""
    rows = []
    if (closest := summary.get("separation")) is not None:
        (i, j), apart = closest["pair"], closest["tips_m"]
        rows.append((
            "Closest drones",
            f"{i} and {j} at {number(closest['time_s'])} s: rotor tips {number(apart)} m apart, "
            f"centres {number(closest['centres_m'])} m",
        ))  # fmt: skip
    if (check := summary.get("check")) is not None:
        rows.append(("Expected before the flight", check["sentence"]))
    for event in (summary.get("events") or ())[:MOST_EVENTS]:
        rows.append((f"{label(event['kind'])} at {event['time_s']:.2f} s", event["what"]))
    return rows


def _system_rows(system: RigSystem) -> list[tuple[str, str]]:
    """The system's main numbers, one row for parts that are all alike."""
    load = system.load
    rows = [
        ("System", f"{system.name}: {system.description}" if system.description else system.name),
    ]
    if load is not None:
        rows.append(("Load", f"{number(load.mass_kg)} kg, {_box(load.collision.size_m)} m"))
    for kind, parts, text in (
        ("Drone", system.drones, _drone), ("Cable", system.cables, _cable)
    ):  # fmt: skip
        if not parts:
            continue
        if len(set(map(text, parts))) == 1:
            rows.append((f"{kind}s", f"{len(parts)} × {text(parts[0])}"))
        else:
            rows += [(f"{kind} {i}", text(part)) for i, part in enumerate(parts, start=1)]
    for kind in ("anchors", "winches", "pulleys"):
        if getattr(system, kind):
            rows.append((kind.capitalize(), str(len(getattr(system, kind)))))
    rows.append(("All-up mass", f"{number(system.mass_kg)} kg"))
    return rows


def _box(size_m: tuple[float, ...]) -> str:
    return " × ".join(number(edge) for edge in size_m)


def _drone(drone) -> str:
    return (
        f"{drone.model}, {number(drone.mass_kg)} kg, {len(drone.rotors)} rotors, "
        f"{number(drone.max_thrust_n)} N full thrust"
    )


def _cable(cable) -> str:
    return (
        f"{number(cable.length_m)} m, {number(1000.0 * cable.mass_kg)} g, "
        f"{cable.links} rigid link{'s' if cable.links > 1 else ''}"
    )
