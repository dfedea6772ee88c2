"""One or two flights as one HTML file: in space and over time, with one time line for both.

Plotly draws in the browser; its script is in the file, so that nothing is fetched.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from numpy.typing import NDArray

from musls_analysis.comparison.errors import error_table, shown_setpoints
from musls_analysis.comparison.quantities import owners
from musls_analysis.figures.colours import OBSTACLE, colour, label
from musls_analysis.recordings.recording import LOAD, Recording
from musls_analysis.scene import Subject, sample
from musls_description.numerics.arrays import Array
from musls_description.numerics.code_cache import kept
from musls_description.system.slung_system import RigSystem

MAX_POINTS = 1200
"""Points of each curve; more than a screen has columns."""

SECOND = " (2)"
"""Ends the names of bodies and cables of the second flight."""


def picture(png: bytes) -> str:
    """A picture as the address of an image."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def templates(*folders: Path) -> Environment:
    """Templates of this folder and of others."""
    environment = Environment(
        loader=FileSystemLoader([Path(__file__).parent, *folders]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["words"] = label
    return environment


def page_html(
    names: Sequence[str],
    recordings: Sequence[Recording],
    shift_s: float = 0.0,
    notes: Sequence[str] = (),
    systems: Sequence[RigSystem] = (),
) -> str:
    """The page of one or two flights; `shift_s` moves the second, `notes` stand above.

    `systems`: what load, drones and cables of each look like; without them they are dots.
    """
    return (
        templates()
        .get_template("page.html.j2")
        .render(
            names=names,
            notes=notes,
            live=live_figures(recordings, shift_s, systems),
            errors=[error_table(recording).by_body() for recording in recordings],
        )
    )


def live_figures(
    recordings: Sequence[Recording], shift_s: float = 0.0, systems: Sequence[RigSystem] = ()
) -> str:
    """The figures as a part of a page, see `page_html`; "" without plotly."""
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        return ""
    script = (Path(spec.submodule_search_locations[0]) / "package_data/plotly.min.js").read_bytes()
    name = f"{hashlib.sha256(script).hexdigest()}.gz"
    packed = kept(name, lambda: gzip.compress(script, 6, mtime=0))
    data = json.dumps(_data(recordings, shift_s, systems), separators=(",", ":"), allow_nan=False)
    return (
        templates()
        .get_template("interactive.html.j2")
        .render(
            script=base64.b64encode(packed).decode("ascii"),
            data=data.replace("<", "\\u003c"),  # it stands in a script element
        )
    )


PANELS: Mapping[str, tuple[str, float]] = {
    "z_m": ("height [m]", 1.0),
    "translational_error_m": ("distance to reference [mm]", 1e3),
    "geodesic_error_deg": ("angle to reference [°]", 1.0),
    "largest_tension_n": ("largest tension [N]", 1.0),
    "free_length_m": ("free length [m]", 1.0),
    **{f"force_{axis}_n": (f"force at anchor, {axis} [N]", 1.0) for axis in "xyz"},
    "x_m": ("x, east [m]", 1.0),
    "y_m": ("y, north [m]", 1.0),
    "yaw_deg": ("yaw [°]", 1.0),
    "pitch_deg": ("pitch [°]", 1.0),
    "roll_deg": ("roll [°]", 1.0),
    "speed_rpm": ("rotors [rpm]", 1.0),
    "charge": ("battery charge [%]", 100.0),
    "power_w": ("battery power [W]", 1.0),
    "voltage_v": ("battery voltage [V]", 1.0),
}
"""Curves over time: quantities with the title of their panel and the factor for its unit."""


def _data(
    recordings: Sequence[Recording], shift_s: float, systems: Sequence[RigSystem]
) -> dict[str, Any]:
    """Paths in space, and curves over time, all at the same times of the first flight."""
    first = recordings[0]
    time_s = np.linspace(first.start_s, first.end_s, MAX_POINTS)
    panels: dict[str, list[dict[str, Any]]] = {}
    places: dict[str, Array] = {}

    def add(title: str, name: str, mark: str, values: Array) -> None:
        curve = {"name": label(name) + mark, "color": colour(name), "second": bool(mark)}
        panels.setdefault(title, []).append(curve | {"y": _numbers(values)})

    for recording, mark, shift in zip(recordings, ("", SECOND), (0.0, shift_s), strict=False):
        clock_s = time_s - shift
        flight_mask = np.where(
            (clock_s >= recording.start_s) & (clock_s <= recording.end_s), 1.0, np.nan
        )
        for name, track in recording.bodies.items():
            path = [np.interp(clock_s, track.time_s, c) for c in track.position_enu_m.T]
            places[name + mark] = flight_mask * path
        for quantity, (title, scale) in PANELS.items():
            for name, values in owners(recording, quantity):
                at_times = np.interp if quantity != "largest_tension_n" else _largest
                add(title, name, mark, flight_mask * scale * at_times(clock_s, *values[:2]))
    for name in recordings[-1].bodies if len(recordings) == 2 else ():
        if name in first.bodies:
            apart = np.linalg.norm(places[name] - places[name + SECOND], axis=0)
            add("distance between the two [mm]", name, "", 1e3 * apart)
    scenes = [
        _seen(Subject(recording, system, "", shift_s=shift), time_s, mark)
        for recording, system, mark, shift in zip(
            recordings, systems, ("", SECOND), (0.0, shift_s), strict=False
        )
    ]
    return {
        "time": _numbers(time_s),
        "shapes": {name: shape for shapes, _ in scenes for name, shape in shapes.items()},
        "cables": [cable for _, cables in scenes for cable in cables],
        "tension_limit": _tension_limit_n(first),
        "bodies": {
            name: {
                "color": colour(name.removesuffix(SECOND)),
                "second": name.endswith(SECOND),
                "path": [_numbers(column) for column in path],
            }
            for name, path in places.items()
        },
        "setpoints": {
            name: [_numbers(column) for column in track.held_at(time_s).position_enu_m.T]
            for name, track in shown_setpoints(first).items()
        },
        "obstacles": _meshes(first),
        "panels": [{"title": title, "curves": curves} for title, curves in panels.items()],
        "stages": [[label(s.name), s.start_s, s.end_s] for s in first.stages],
        "events": [[round(e.time_s, 3), label(e.kind)] for e in first.events[:60]],
        "main": LOAD if LOAD in first.bodies else next(iter(first.bodies)),
    }


CABLE_POINTS = 36
"""Points of all cables of a flight at a moment, shared by them; each has at least two."""


def _seen(
    subject: Subject, time_s: Array, mark: str
) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """Lines of each body in its frame with its attitudes, and points and tensions of each cable."""
    at = sample(subject, time_s)
    shapes = {
        name + mark: {
            "lines": [np.round(line, 3).tolist() for line in shape.line_m],
            "turn": _rows(at.bodies[name].orientation_wxyz, 4),
        }
        for name, shape in subject.shapes.items()
        if name in at.bodies
    }
    cables = []
    for cable in at.cables.values():
        count = max(2, CABLE_POINTS // len(at.cables))
        points = [p[_spread(len(p), count)] for p in cable.points_enu_m]
        rows = iter(_rows(np.concatenate(points), 2))
        lines = [[*islice(rows, len(p))] for p in points]
        tension = np.round(np.where(cable.slack, 0.0, cable.tension_n), 2).astype(float)
        cables.append(
            {
                "points": [None if None in line else line for line in lines],
                "tension": _numbers(tension),
            }
        )
    return shapes, cables


def _tension_limit_n(recording: Recording) -> float:
    """Tension of the last colour: all but the shortest peaks are below it."""
    values = [c.tension_n[:, 0] for c in recording.cables.values() if len(c.time_s)]
    return float(np.percentile(np.concatenate(values), 99.5)) if values else 0.0


@cache
def _spread(length: int, count: int) -> NDArray[np.intp]:
    """Indices of so many rows of a number of them, or of all, the first and last among them."""
    return np.linspace(0, length - 1, min(count, length)).astype(np.intp)


def _rows(values: Array, digits: int) -> list[list[float] | None]:
    """Rows of numbers for JSON, of (n, k); None for one of which a number is not known."""
    gaps = np.isnan(values.sum(axis=1))
    rows = np.round(values, digits).tolist()
    return [None if gap else row for row, gap in zip(rows, gaps, strict=True)]


def _meshes(recording: Recording) -> list[dict[str, Any]]:
    """Obstacles near the flight, as plotly's triangles."""
    if not recording.obstacles:
        return []
    from musls_analysis.figures.space import bounds_enu_m  # imports matplotlib
    from musls_description.system.obstacles import shown_faces, triangles

    meshes = []
    for name, faces in shown_faces(recording.obstacles, *bounds_enu_m(recording)):
        corners, rows = triangles(faces)
        mesh = {axis: _numbers(values) for axis, values in zip("xyz", corners.T, strict=True)}
        mesh |= {axis: values.tolist() for axis, values in zip("ijk", rows.T, strict=True)}
        meshes.append(mesh | {"name": label(name), "color": OBSTACLE})
    return meshes


def _largest(time_s: Array, of_s: Array, values: Array) -> Array:
    """Largest value around each time, so that no peak is lost."""
    peaks: Array = np.interp(time_s, of_s, values)
    nearest = np.searchsorted((time_s[1:] + time_s[:-1]) / 2.0, of_s, side="right")
    peaks[np.unique(nearest)] = -np.inf
    np.maximum.at(peaks, nearest, values)
    return peaks


def _numbers(values: Array) -> list[float | None]:
    """Numbers for JSON: four decimals, gaps as null."""
    return [None if v != v else v for v in np.round(values, 4).tolist()]
