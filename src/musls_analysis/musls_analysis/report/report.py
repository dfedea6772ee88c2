"""Writes the report of a flight: one HTML file with everything in it, and its figures beside it."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from musls_analysis.comparison.errors import error_track, shown_setpoints
from musls_analysis.figures.style import OBSTACLE, colour, label
from musls_analysis.recordings.recording import LOAD, Recording, main_stages
from musls_analysis.report.summary import PEAK_PLACES, sentence
from musls_description.arrays import Array
from musls_description.schema import to_yaml
from musls_description.system import RigSystem

if TYPE_CHECKING:
    from musls_analysis.figures.flight import FlightFigure
    from musls_sim.scenario.scenario import Scenario

# ---------- Figures to turn, zoom and point at: plotly draws them in the browser

MAX_POINTS = 1200
"""Of each curve; more than a screen has columns."""


def interactive(recording: Recording, summary: Mapping[str, Any]) -> dict[str, str] | None:
    """Plotly's `script`, compressed and in base 64, and the `data` as JSON; None without plotly."""
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / "package_data/plotly.min.js"
    script = gzip.compress(path.read_bytes(), 4, mtime=0)
    data = json.dumps(_data(recording, summary), separators=(",", ":"), allow_nan=False)
    return {
        "script": base64.b64encode(script).decode("ascii"),
        "data": data.replace("<", "\\u003c"),  # it stands in a script element
    }


def _data(recording: Recording, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Paths in space, and curves over time: height, errors, tension."""
    time_s = np.linspace(recording.start_s, recording.end_s, MAX_POINTS)
    panels: dict[str, list[dict[str, Any]]] = {}

    def add(title: str, name: str, values: Array) -> None:
        curve = {"name": label(name), "color": colour(name), "y": _numbers(values)}
        panels.setdefault(title, []).append(curve)

    bodies = {}
    for name, track in recording.bodies.items():
        path = [np.interp(time_s, track.time_s, column) for column in track.position_enu_m.T]
        bodies[name] = {"color": colour(name), "path": [_numbers(column) for column in path]}
        add("height [m]", name, path[2])
    for name in recording.setpoints:
        error = error_track(recording, name)
        distance = np.interp(time_s, error.time_s, error.translational_error_m)
        angle = np.interp(time_s, error.time_s, error.geodesic_error_rad)
        add("distance to reference [mm]", name, 1e3 * distance)
        add("angle to reference [°]", name, np.degrees(angle))
    for name, cable in recording.cables.items():
        if len(cable.time_s):
            add("largest tension [N]", name, _largest(time_s, *cable.largest()))
    return {
        "time": _numbers(time_s),
        "bodies": bodies,
        "setpoints": {
            name: [_numbers(column) for column in track.held_at(time_s).position_enu_m.T]
            for name, track in shown_setpoints(recording).items()
        },
        "obstacles": _meshes(recording),
        "panels": [{"title": title, "curves": curves} for title, curves in panels.items()],
        "stages": [[label(s.name), s.start_s, s.end_s] for s in recording.stages],
        "events": [[round(e.time_s, 3), label(e.kind)] for e in recording.events[:60]],
        "main": LOAD if LOAD in recording.bodies else next(iter(recording.bodies)),
        "slack": summary["slack_threshold_n"],
    }


def _meshes(recording: Recording) -> list[dict[str, Any]]:
    """Obstacles near the flight, as plotly's triangles."""
    if not recording.obstacles:
        return []
    from musls_analysis.figures.space import bounds_enu_m  # imports matplotlib
    from musls_description.obstacles import shown_faces, triangles

    meshes = []
    for name, faces in shown_faces(recording.obstacles, *bounds_enu_m(recording)):
        corners, rows = triangles(faces)
        mesh = {axis: _numbers(values) for axis, values in zip("xyz", corners.T, strict=True)}
        mesh |= {axis: values.tolist() for axis, values in zip("ijk", rows.T, strict=True)}
        meshes.append(mesh | {"name": label(name), "color": OBSTACLE})
    return meshes


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


def write_report(
    recording: Recording,
    summary: Mapping[str, Any],
    folder: Path,
    scenario: Scenario | None = None,
    command: str = "",
    more: Sequence[FlightFigure] = (),
) -> Path:
    """Write report.html and figures/*.png into a folder, made if missing.

    The summary has the keys of `musls_analysis.report.summary.summarise`; what a flight adds to
    them is shown if it is there. `command` flies it again; `more` are figures besides those of the
    recording.
    """
    # Imported here, because they are slow and only reports need them.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from musls_analysis.figures.flight import write_figures

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["png"] = _data_uri
    environment.filters["words"] = label
    live = interactive(recording, summary)
    figures = folder / "figures"
    html = environment.get_template("report.html.j2").render(
        title=f"Flight {scenario.name}" if scenario else "Flight",
        description=scenario.description if scenario else "",
        scenario_text=to_yaml(scenario) if scenario else "",
        command=command,
        warnings=summary["warnings"],
        errors=summary["errors"],
        explanations=summary["explanations"],
        tension_sentence=sentence(summary["tension"]),
        cables=summary["cables"],
        slack_threshold_n=summary["slack_threshold_n"],
        stages=summary["stages"],
        system_rows=_system_rows(scenario.system) if scenario else [],
        run_rows=_run_rows(recording, summary),
        key_numbers=_key_numbers(recording, summary),
        figures=write_figures(recording, summary, figures, more),
        folder=figures,
        live=environment.get_template("interactive.html.j2").render(live=live) if live else "",
    )
    path = folder / "report.html"
    path.write_text(html, encoding="utf-8")
    return path


def _data_uri(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


GROUPED_FROM = 10_000
"""From here on whole numbers get thin spaces between thousands."""


def number(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits, never in powers of ten.

    Digits before the point are all kept.
    """
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
            (f"{peak['max_n']:.1f}", "N", f"greatest cable tension {PEAK_PLACES[where]}")
            for where, peak in summary["tension"].items()
            if peak["max_n"] > highest or where == "in_flight"
        ]
        if None not in slack:
            cards.append((number(100.0 * max(slack)), "%", f"time slack, worst cable, {stage}"))
    if "real_time_factor" in summary:
        cards.append((number(summary["real_time_factor"]), "×", "real time"))
    return cards


def _run_rows(recording: Recording, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [("Recorded", f"{number(recording.end_s - recording.start_s)} s")]
    if "seed" in summary:
        rows.append(("Seed", str(summary["seed"])))
    versions = summary.get("versions", {})
    if "px4" in versions:
        rows.append(("Autopilot", f"PX4 {versions['px4']}, {versions['px4_binary']}"))
    shown = (
        ("sim_time_s", "Simulated time", 1.0, "s"),
        ("wall_time_s", "Wall time of the flight", 1.0, "s"),
        ("compile_s", "of it compiling, once", 1.0, "s"),
        ("real_time_factor", "Real-time factor", 1.0, "×"),
        ("step_size_s", "Physics step", 1000.0, "ms"),
        ("accuracy", "Accuracy that it was chosen for", 1.0, ""),
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


MAX_EVENTS = 20
"""Shown in the report; cables that jerk in wind would fill it."""


def _flight_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Smallest distance of the drones, margins before the flight, and events."""
    rows = []
    if (closest := summary.get("separation")) is not None:
        (i, j), apart = closest["pair"], closest["tips_m"]
        rows.append((
            "Closest drones",
            f"{i} and {j} at {number(closest['time_s'])} s: rotor tips {number(apart)} m apart, "
            f"centres {number(closest['centres_m'])} m",
        ))  # fmt: skip
    for near in summary.get("obstacles") or ():
        rows.append((
            f"Closest to {near['obstacle']}",
            f"{near['body']} at {number(near['time_s'])} s: {number(near['distance_m'])} m",
        ))  # fmt: skip
    if "verification" in summary:
        rows.append(("Verified", summary["verification"]["sentence"]))
    if (check := summary.get("check")) is not None:
        rows.append(("Expected before the flight", check["sentence"]))
    for event in (summary.get("events") or ())[:MAX_EVENTS]:
        rows.append((f"{label(event['kind'])} at {event['time_s']:.2f} s", event["what"]))
    return rows


def _system_rows(system: RigSystem) -> list[tuple[str, str]]:
    """The system's main numbers, one row for parts that are all alike."""
    load = system.load
    rows = [
        ("System", f"{system.name}: {system.description}" if system.description else system.name),
    ]
    if load is not None:
        size = " × ".join(map(number, load.collision.size_m))
        rows.append(("Load", f"{number(load.mass_kg)} kg, {size} m"))
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
