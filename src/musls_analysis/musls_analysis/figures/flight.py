"""The figures of a flight: which a recording has data for, drawn for a report or for a paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from musls_analysis.comparison.summary import summarise
from musls_analysis.figures import over_time, space
from musls_analysis.figures.convergence import Convergence
from musls_analysis.figures.style import WIDTH_IN, for_paper, label, save, styled
from musls_analysis.recordings.recording import ANCHOR, Recording
from musls_description.config.errors import ConfigError, near_names, whole_file
from musls_description.config.strict_yaml import shown

if TYPE_CHECKING:
    from musls_analysis.scene import Subject


class FlightFigure(NamedTuple):
    """A figure that can be drawn.

    Attributes:
        name: Name of the file.
        caption: Description of the content.
        draw: Draws it, within `style.styled()`.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure]


def write_for_paper(
    recording: Recording,
    summary: Mapping[str, Any],
    folder: Path,
    formats: Sequence[str],
    names: Sequence[str] = (),
    width_m: float = WIDTH_IN * 0.0254,
    font: str = "sans",
    other: Subject | None = None,
) -> list[Path]:
    """Draw figures of a flight (all without names) into a folder, as "pdf", "svg" or "png".

    Another recording is laid over its poses, paths and tensions.
    """
    figures = {figure.name: figure for figure in flight_figures(recording, summary, other)}
    for name in names:
        if name not in figures:
            raise ConfigError(f"no figure '{shown(name)}': {near_names(name, figures)}")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with for_paper(width_m, font):
        for name in names or figures:
            drawing = figures[name].draw()
            for suffix in formats:
                path = folder / f"{name}.{suffix}"
                # No date, so that the same flight gives the same file.
                stamp = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(suffix)
                page = BytesIO()  # where a disk is full, the writer of PDF hides the error
                drawing.savefig(page, dpi=300, metadata=stamp, format=suffix)
                with whole_file(path) as work:
                    work.write_bytes(page.getvalue())
                paths.append(path)
    return paths


def plot(recording: Recording, name: str) -> Figure:
    """Draw a figure of a recording."""
    with styled():
        figures = {f.name: f for f in flight_figures(recording, summarise(recording))}
        if name not in figures:
            raise ConfigError(f"no figure {name!r} of this recording; it has {', '.join(figures)}")
        return figures[name].draw()


def flight_figures(
    recording: Recording, summary: Mapping[str, Any], other: Subject | None = None
) -> Iterator[FlightFigure]:
    """Figures that a recording has data for, in the order of a report."""
    note = " Dashed: set-point, held until the next one." if recording.setpoints else ""
    yield FlightFigure(
        "paths_3d",
        "Flight in space",
        "Paths of load and drones, equal scale on all axes. Grey: the cables at five moments of "
        f"the longest main stage, with the load (square) and the drones (dots).{note}",
        partial(space.paths_3d_figure, recording, other),
    )
    yield FlightFigure(
        "top_view",
        "Seen from above",
        f"The same flight in the horizontal plane, equal scale.{note}",
        partial(space.top_view_figure, recording, other),
    )
    if any(summary["errors"].values()):
        yield FlightFigure(
            "stage_errors",
            "Errors per stage",
            "Distance (eq. 12) and angle (eq. 13) to the reference in each stage: mean (dot) and "
            "greatest value (end of the line), logarithmic scale.",
            partial(over_time.stage_errors_figure, summary),
        )
    for body in filter(partial(_moves, recording), recording.bodies):
        yield FlightFigure(
            f"pose_{body}",
            f"Position and attitude, {label(body)}",
            f"{label(body).capitalize()} in the world frame (ENU); attitude as yaw, pitch, roll, "
            f"unwrapped. Bands: mission stages.{note}",
            partial(over_time.pose_figure, recording, body, other),
        )
    if summary["cables"]:
        limit = summary["slack_threshold_n"]
        yield FlightFigure(
            "tensions",
            "Cable tension",
            "Tension in each cable at the load (colour) and at the drone (grey). Red at the foot: "
            f"the cable is slack, tension at the load below {limit:.2g} N. Triangles: the greatest "
            "tensions over all steps; one that points up lies above the axis.",
            partial(over_time.tensions_figure, recording, limit, summary.get("tension"), other),
        )
    if recording.wrenches:
        yield FlightFigure(
            "anchor_forces",
            "Forces at the anchors",
            "Force that holds, moves or pushes each anchor, world frame.",
            partial(over_time.anchor_forces_figure, recording),
        )
    if any(len(cable.free_length_m) for cable in recording.cables.values()):
        yield FlightFigure(
            "free_lengths",
            "Free lengths",
            "Unstretched length of each cable that is on no winch.",
            partial(over_time.free_lengths_figure, recording),
        )
    if recording.rotors:
        yield FlightFigure(
            "rotors",
            "Rotor speeds",
            "Mean speed of each drone's rotors, and the band from the slowest to the fastest: "
            "the wider the band, the harder the autopilot works on attitude.",
            partial(over_time.rotors_figure, recording),
        )
    if recording.batteries:
        yield FlightFigure(
            "batteries",
            "Batteries",
            "Charge that is left, power drawn and voltage under load, of each drone.",
            partial(over_time.batteries_figure, recording),
        )


def draw_convergence(verified: Convergence, folder: Path) -> FlightFigure:
    """Draw what `musls fly --verify` found as a PNG into a folder; it is made if missing."""
    figure = FlightFigure(
        "convergence",
        "Error in the time step",
        "Distance of the flight, and of one with half its step, to one with a quarter of it: the "
        "largest over all bodies.",
        verified.plot,
    )
    folder.mkdir(parents=True, exist_ok=True)
    with styled():
        save(figure.draw(), folder / f"{figure.name}.png")
    return figure


def _moves(recording: Recording, body: str) -> bool:
    """Whether a body's pose is worth a figure: a fixed anchor's is not."""
    track = recording.bodies[body]
    return not body.startswith(ANCHOR) or bool(np.ptp(track.position_enu_m, axis=0).max() > 1e-9)
