"""Errors of a body to its set-point: eq. 12 and 13 of the seed paper, per stage.

A set-point is held until the next one arrives, and each measured pose counts against the set-point
that was valid then. A mean is that of the samples of a stage, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from musls_analysis.recordings.recording import LOAD, PoseTrack, Recording
from musls_control.phases import GROUND_PHASES
from musls_description.rotations import relative

if TYPE_CHECKING:
    from rich.table import Table


def translational_error_m(position_a: np.ndarray, position_b: np.ndarray) -> np.ndarray:
    """Distance of two positions (..., 3) in the same frame (eq. 12) [m] (...)."""
    return np.linalg.norm(position_b - position_a, axis=-1)


def geodesic_error_rad(orientation_a: np.ndarray, orientation_b: np.ndarray) -> np.ndarray:
    """Angle from 0 to pi between two orientations, quaternions wxyz (..., 4) (eq. 13) [rad] (...).

    The arc cosine of the trace loses half the digits near 0 and pi; the same angle is twice the
    arc tangent of the vector part of the relative quaternion over its scalar part, which does not.
    """
    q = relative(orientation_a, orientation_b)
    return 2.0 * np.arctan2(np.linalg.norm(q[..., 1:], axis=-1), np.abs(q[..., 0]))


@dataclass(frozen=True)
class ErrorTrack:
    """Errors of one body over time (T,); NaN before the first set-point.

    Distance and angle to the set-point.
    """

    time_s: np.ndarray
    translational_error_m: np.ndarray
    geodesic_error_rad: np.ndarray


def error_track(measured: PoseTrack, setpoint: PoseTrack) -> ErrorTrack:
    """Errors of each measured pose against the set-point held at that time."""
    held = setpoint.held_at(measured.time_s)
    return ErrorTrack(
        measured.time_s,
        translational_error_m(measured.position_enu_m, held.position_enu_m),
        geodesic_error_rad(measured.orientation_wxyz, held.orientation_wxyz),
    )


def above_ground(recording: Recording, setpoint: PoseTrack) -> PoseTrack:
    """Raise the load's set-points that lie below the ground to where it stands.

    Before the lift and after the lowering the formation flies for set-points below the ground, so
    that the cables hang slack; that the load does not follow them there is no error.
    Without a stage `spool_up` nothing is known of the ground.
    """
    first = next((s for s in recording.stages if s.name == "spool_up"), None)
    if first is None:
        return setpoint
    load = recording.bodies[LOAD]
    standing = load.position_enu_m[recording.stage_mask(first, load.time_s), 2]
    if not len(standing):
        return setpoint
    place = setpoint.position_enu_m.copy()
    for stage in recording.stages:
        if stage.name.rstrip("0123456789").rstrip("_") in GROUND_PHASES:
            # The one held at the begin of the stage counts for it too; it lies in the one before.
            inside = (setpoint.time_s >= stage.start_s) & (setpoint.time_s < stage.end_s)
            place[inside, 2] = np.maximum(place[inside, 2], np.median(standing))
    return PoseTrack(setpoint.time_s, place, setpoint.orientation_wxyz)


_HEADINGS = ("body", "stage", "mean [m]", "max [m]", "rms [m]", "mean [°]", "max [°]", "rms [°]")


@dataclass(frozen=True)
class StageError:
    """Errors of a body to its set-point in one stage, over all samples of the stage.

    Distances and angles: mean (eq. 12 and 13 of the seed paper), greatest, root mean square.
    """

    body: str
    stage: str
    translational_error_m: float
    translational_error_max_m: float
    translational_error_rms_m: float
    geodesic_error_deg: float
    geodesic_error_max_deg: float
    geodesic_error_rms_deg: float


class ErrorTable(tuple[StageError, ...]):
    """A sequence of errors, bodies in their order, stages in that of time."""

    def by_body(self) -> dict[str, dict[str, dict[str, float]]]:
        """Numbers by body, stage and name, as in summary.json."""
        result: dict[str, dict[str, dict[str, float]]] = {}
        for row in self:
            numbers = asdict(row)
            del numbers["body"], numbers["stage"]
            result.setdefault(row.body, {})[row.stage] = numbers
        return result

    def __str__(self) -> str:
        return "\n".join("  ".join(cells) for cells in self._cells())

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table("body", "stage", title="error to set-point")
        for heading in _HEADINGS[2:]:
            table.add_column(heading, justify="right")
        for cells in self._cells():
            table.add_row(*cells)
        return table

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self._cells())
        return f"<table><thead>{row(_HEADINGS, 'th')}</thead><tbody>{body}</tbody></table>"

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for body, stage, *numbers in (tuple(asdict(row).values()) for row in self):
            lengths, angles = numbers[:3], numbers[3:]
            yield body, stage, *(f"{x:.4f}" for x in lengths), *(f"{x:.2f}" for x in angles)


def error_table(recording: Recording) -> ErrorTable:
    """Errors of every body that has set-points, in every stage that has samples."""
    rows = []
    for body, setpoint in recording.setpoints.items():
        if body == LOAD:
            setpoint = above_ground(recording, setpoint)
        track = error_track(recording.bodies[body], setpoint)
        for stage in recording.stages:
            mask = recording.stage_mask(stage, track.time_s)
            distance, angle = track.translational_error_m[mask], track.geodesic_error_rad[mask]
            distance, angle = distance[np.isfinite(distance)], angle[np.isfinite(angle)]
            if distance.size and angle.size:
                degrees = np.degrees(_mean_max_rms(angle)).tolist()
                rows.append(StageError(body, stage.name, *_mean_max_rms(distance), *degrees))
    return ErrorTable(rows)


def _mean_max_rms(errors: np.ndarray) -> tuple[float, float, float]:
    return float(errors.mean()), float(errors.max()), float(np.sqrt(np.mean(errors**2)))
