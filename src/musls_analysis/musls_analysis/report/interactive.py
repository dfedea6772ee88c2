"""The figures of a report that one can turn, zoom and point at, within the same single file.

plotly draws them in the browser. Its script comes from the installed `plotly` package and is put
into the page compressed (1.9 MB instead of 4.8 MB), so that the page needs no network.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.comparison.errors import above_ground, error_track
from musls_analysis.figures.colours import body_colour
from musls_analysis.recordings.recording import LOAD, Array, Recording
from musls_analysis.report.peaks import Peaks, cable_peaks

MOST_POINTS = 1200
"""Of each curve; more than a screen has columns."""


def plotly_script() -> bytes | None:
    """Plotly's script, compressed; None where the package is not installed."""
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        return None
    return _compressed(Path(spec.submodule_search_locations[0]) / "package_data/plotly.min.js")


@functools.cache
def _compressed(path: Path) -> bytes | None:
    try:
        return gzip.compress(path.read_bytes(), 6, mtime=0)
    except OSError:
        return None


def interactive(
    recording: Recording, summary: Mapping[str, Any], peaks: Peaks | None = None
) -> dict[str, str] | None:
    """What the template needs to show the figures.

    Args:
        recording: The flight.
        summary: Its numbers.
        peaks: Largest tensions over all steps.

    Returns:
        `script`, plotly's, compressed and in base 64, and `data`, JSON; None without plotly.
    """
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
        name: {"color": body_colour(name), "path": _path(track, time_s)}
        for name, track in recording.bodies.items()
    }
    asked = {}
    for name, track in recording.setpoints.items():
        held = track.held_at(time_s).position_enu_m
        asked[name] = [_numbers(column) for column in held.T]
    return {
        "time": _numbers(time_s),
        "bodies": bodies,
        "setpoints": asked,
        "panels": _panels(recording, time_s, peaks),
        "stages": [[s.name.replace("_", " "), s.start_s, s.end_s] for s in recording.stages],
        "events": [[round(e.time_s, 3), e.kind.replace("_", " ")] for e in recording.events[:60]],
        "main": LOAD if LOAD in recording.bodies else next(iter(recording.bodies)),
        "slack": summary["slack_threshold_n"],
    }


def _path(track: Any, time_s: Array) -> list[list[float | None]]:
    """x, y and z of a body at common times."""
    return [_numbers(np.interp(time_s, track.time_s, c)) for c in track.position_enu_m.T]


def _panels(recording: Recording, time_s: Array, peaks: Peaks | None) -> list[dict[str, Any]]:
    """Curves over time: height, distance to the set-point, angle to it, tension."""
    heights, distances, angles = [], [], []
    for name, track in recording.bodies.items():
        curve = {"name": name.replace("_", " "), "color": body_colour(name)}
        heights.append(
            curve | {"y": _numbers(np.interp(time_s, track.time_s, track.position_enu_m[:, 2]))}
        )
        if name in recording.setpoints:
            asked = recording.setpoints[name]
            if name == LOAD:
                asked = above_ground(recording, asked)
            error = error_track(track, asked)
            distance = np.interp(time_s, error.time_s, error.translational_error_m)
            angle = np.interp(time_s, error.time_s, error.geodesic_error_rad)
            distances.append(curve | {"y": _numbers(1e3 * distance)})
            angles.append(curve | {"y": _numbers(np.degrees(angle))})
    tensions = [
        {
            "name": name.replace("_", " "),
            "color": body_colour(name),
            "y": _numbers(_largest(time_s, *track)),
        }
        for name, track in cable_peaks(recording, peaks).items()
    ]
    panels = (
        ("height [m]", heights),
        ("distance to set-point [mm]", distances),
        ("angle to set-point [°]", angles),
        ("largest tension [N]", tensions),
    )
    return [{"title": title, "curves": curves} for title, curves in panels if curves]


def _largest(time_s: Array, of_s: Array, values: Array) -> Array:
    """Largest value around each time, so that no peak is lost."""
    middles = np.concatenate([time_s[:1], (time_s[1:] + time_s[:-1]) / 2.0])
    edges = [*np.searchsorted(of_s, middles).tolist(), len(of_s)]
    found: Array = np.interp(time_s, of_s, values)
    for k, (low, high) in enumerate(pairwise(edges)):
        if high > low:
            found[k] = values[low:high].max()
    return found


def _numbers(values: Array) -> list[float | None]:
    """For JSON: four digits after the point, gaps as null."""
    return [None if v != v else v for v in np.round(values, 4).tolist()]
