"""Draws all figures that a recording has data for and writes them as PNG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from musls_analysis.figures.over_time import (
    PoseFigure,
    anchor_forces_figure,
    batteries_figure,
    free_lengths_figure,
    rotors_figure,
    stage_errors_figure,
    tensions_figure,
)
from musls_analysis.figures.space import paths_3d_figure, top_view_figure
from musls_analysis.figures.style import Paper, for_paper, label, save, styled
from musls_analysis.recordings.recording import ANCHOR, Recording
from musls_analysis.report.summary import summarise
from musls_description.errors import ConfigError, near_names
from musls_description.strict_yaml import shown

# ---------- What is known of a figure on disk; apart from the drawing, so that it needs no matplot


class WrittenFigure(NamedTuple):
    """A figure on disk.

    Attributes:
        path: PNG file.
        title: Short title.
        caption: What one sees.
        narrow: Whether two fit side by side.
    """

    path: Path
    title: str
    caption: str
    narrow: bool = False


class FigurePlan(NamedTuple):
    """A figure that can be drawn.

    Attributes:
        name: Name of the file.
        title: Short title.
        caption: What one sees.
        draw: Draws it, within `style.styled()`.
        narrow: Whether two fit side by side.
        shares_axes: Whether others are drawn on the same axes, so that one process should do all.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure]
    narrow: bool = False
    shares_axes: bool = False


def write_figures(
    recording: Recording, summary: Mapping[str, Any], folder: Path
) -> list[WrittenFigure]:
    """Draw the figures of a flight.

    Args:
        recording: The flight.
        summary: Its numbers, from `musls_analysis.report.summary.summarise`.
        folder: Where the PNG files go; made if missing.

    Returns:
        The figures drawn, in the order of a report.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with styled():
        return [write_figure(plan, folder) for plan in figure_plans(recording, summary)]


def write_figure(plan: FigurePlan, folder: Path) -> WrittenFigure:
    """Draw one figure, within `style.styled()`, and write it as PNG into a folder."""
    path = folder / f"{plan.name}.png"
    save(plan.draw(), path)
    return WrittenFigure(path, plan.title, plan.caption, plan.narrow)


def write_for_paper(
    recording: Recording,
    summary: Mapping[str, Any],
    folder: Path,
    formats: Sequence[str],
    names: Sequence[str] = (),
    paper: Paper | None = None,
) -> list[Path]:
    """Draw figures of a flight for a paper or a talk.

    Args:
        recording: The flight.
        summary: Its numbers.
        folder: Where the files go; made if missing.
        formats: Of "pdf", "svg", "png".
        names: Of the figures; none for all.
        paper: Size and font.

    Raises:
        ConfigError: The recording has no figure of a name.
    """
    plans = {plan.name: plan for plan in figure_plans(recording, summary)}
    for name in names:
        if name not in plans:
            raise ConfigError(f"no figure '{shown(name)}': {near_names(name, plans)}")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with for_paper(paper or Paper()):
        for name in names or plans:
            figure = plans[name].draw()
            for suffix in formats:
                path = folder / f"{name}.{suffix}"
                # No date, so that the same flight gives the same file.
                stamp = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(suffix)
                figure.savefig(path, dpi=300, metadata=stamp)
                written.append(path)
    return written


def figure_plans(
    recording: Recording, summary: Mapping[str, Any], pose: PoseFigure | None = None
) -> Iterator[FigurePlan]:
    """Figures that a recording has data for, in the order of a report.

    Args:
        recording: The flight.
        summary: Its numbers.
        pose: Axes for the bodies' poses, if there are some already.
    """
    held = " Dashed: set-point, held until the next one." if recording.setpoints else ""
    yield FigurePlan(
        "paths_3d", "Flight in space",
        "Paths of load and drones, equal scale on all axes. Grey: the cables at five moments of "
        f"the longest main stage, with the load (square) and the drones (dots).{held}",
        lambda: paths_3d_figure(recording), narrow=True,
    )  # fmt: skip
    yield FigurePlan(
        "top_view", "Seen from above",
        f"The same flight in the horizontal plane, equal scale.{held}",
        lambda: top_view_figure(recording), narrow=True,
    )  # fmt: skip
    if any(summary["errors"].values()):
        yield FigurePlan(
            "stage_errors", "Errors per stage",
            "Distance (eq. 12) and angle (eq. 13) to the set-point in each stage: mean (dot) and "
            "greatest value (end of the line), logarithmic scale.",
            lambda: stage_errors_figure(summary),
        )  # fmt: skip
    pose = pose or PoseFigure()
    for body in filter(partial(_moves, recording), recording.bodies):
        yield FigurePlan(
            f"pose_{body}", f"Position and attitude, {label(body)}",
            f"{label(body).capitalize()} in the world frame (ENU); attitude as yaw, pitch, roll, "
            f"unwrapped. Bands: mission stages.{held}",
            partial(pose.draw, recording, body),
            shares_axes=True,
        )  # fmt: skip
    if summary["cables"]:
        limit = summary["slack_threshold_n"]
        yield FigurePlan(
            "tensions", "Cable tension",
            "Tension in each cable at the load (colour) and at the drone (grey). Red at the foot: "
            f"the cable is slack, tension at the load below {limit:.2g} N. Triangles: the greatest "
            "tensions over all steps; one that points up lies above the axis.",
            lambda: tensions_figure(recording, limit, summary.get("tension")),
        )  # fmt: skip
    if recording.wrenches:
        yield FigurePlan(
            "anchor_forces", "Forces at the anchors",
            "Force that holds, moves or pushes each anchor, world frame.",
            lambda: anchor_forces_figure(recording),
        )  # fmt: skip
    if any(len(cable.free_length_m) for cable in recording.cables.values()):
        yield FigurePlan(
            "free_lengths", "Free lengths",
            "Unstretched length of each cable that is on no winch.",
            lambda: free_lengths_figure(recording),
        )  # fmt: skip
    if recording.rotors:
        yield FigurePlan(
            "rotors", "Rotor speeds",
            "Mean speed of each drone's rotors, and the band from the slowest to the fastest: "
            "the wider the band, the harder the autopilot works on attitude.",
            lambda: rotors_figure(recording),
        )  # fmt: skip
    if recording.batteries:
        yield FigurePlan(
            "batteries", "Batteries",
            "Charge that is left, power drawn and voltage under load, of each drone.",
            lambda: batteries_figure(recording),
        )  # fmt: skip


def _moves(recording: Recording, body: str) -> bool:
    """Whether a body's pose is worth a figure: a fixed anchor's is not."""
    track = recording.bodies[body]
    return not body.startswith(ANCHOR) or bool(np.ptp(track.position_enu_m, axis=0).max() > 1e-9)


# ---------- One of the report's figures, for `Recording.plot`.


def plot(recording: Recording, name: str) -> Figure:
    """Draw a figure.

    Args:
        recording: The flight.
        name: Name of the figure.

    Raises:
        ConfigError: The recording has no such figure; names those that it has.
    """
    with styled():
        plans = {plan.name: plan for plan in figure_plans(recording, summarise(recording))}
        if name not in plans:
            raise ConfigError(f"no figure {name!r} of this recording; it has {', '.join(plans)}")
        return plans[name].draw()
