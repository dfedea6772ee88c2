"""Errors of a body to its reference: eq. 12 and 13 of the seed paper, per stage.

The reference of the load is what the mission asks of it at that time, if the recording has it. That
of a drone, and of a load in a recording without, is the set-point held until the next one arrives:
what a flight stack saw. A mean is that of the samples of a stage, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass

import numpy as np

from musls_analysis.recordings.recording import LOAD, PoseTrack, Recording, without_number
from musls_control.mission.spec import GROUND_PHASES
from musls_description.numerics.rotations import relative
from musls_description.tables import ShownResult, Table


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
    """Distance and angle of one body to its reference over time (T,); NaN where it has none."""

    time_s: np.ndarray
    translational_error_m: np.ndarray
    geodesic_error_rad: np.ndarray


def setpoint_pose(recording: Recording, body: str, *, held: bool = False) -> PoseTrack:
    """Set-point of a body at the times of its poses; NaN where it has none.

    The reference in continuous time, if it was recorded (that of the load), else the set-point that
    was held then; with `held` always that. The load's does not lie below the ground that it is on.
    """
    time_s = recording.bodies[body].time_s
    reference = None if held else recording.references.get(body)
    track = recording.setpoints[body] if reference is None else reference
    if body == LOAD:
        track = above_ground(recording, track)
    return track.held_at(time_s) if reference is None else track.at(time_s)


def error_track(recording: Recording, body: str, *, held: bool = False) -> ErrorTrack:
    """Errors of each measured pose of a body against its set-point, see `setpoint_pose`."""
    poses = recording.bodies[body]
    setpoints = setpoint_pose(recording, body, held=held)
    return ErrorTrack(
        poses.time_s,
        translational_error_m(poses.position_enu_m, setpoints.position_enu_m),
        geodesic_error_rad(poses.orientation_wxyz, setpoints.orientation_wxyz),
    )


def standing_height_m(recording: Recording) -> float | None:
    """Height of the load before the flight; None for a flight that does not begin on the ground."""
    first = next((s for s in recording.stages if s.name == "spool_up"), None)
    load = recording.bodies.get(LOAD)
    if first is None or load is None:
        return None
    standing = load.position_enu_m[recording.stage_mask(first, load.time_s), 2]
    return float(np.median(standing)) if len(standing) else None


def above_ground(recording: Recording, setpoint: PoseTrack) -> PoseTrack:
    """Raise the load's set-points that lie below the ground to where it stands.

    Before the lift and after the lowering the formation flies for set-points below the ground, so
    that the cables hang slack: a load that does not follow them makes no error. Heights alone
    change; without a stage `spool_up` the ground is not known, and none does.
    """
    standing_m = standing_height_m(recording)
    if standing_m is None:
        return setpoint
    place = setpoint.position_enu_m.copy()
    for stage in recording.stages:
        if without_number(stage.name) in GROUND_PHASES:
            # The one held at the begin of the stage counts for it too; it lies in the one before.
            inside = recording.stage_mask(stage, setpoint.time_s)
            place[inside, 2] = np.maximum(place[inside, 2], standing_m)
    return PoseTrack(setpoint.time_s, place, setpoint.orientation_wxyz)


def shown_setpoints(recording: Recording) -> dict[str, PoseTrack]:
    """Held set-points as figures draw them: the load's not below the ground, see `above_ground`."""
    return {
        body: above_ground(recording, track) if body == LOAD else track
        for body, track in recording.setpoints.items()
    }


@dataclass(frozen=True)
class StageError:
    """Errors of a body to its reference in one stage, over all samples of the stage.

    Distances and angles: mean (eq. 12 and 13 of the seed paper), greatest, root mean square; and
    the mean ones to the held set-points. Angles are NaN of a body without attitude.
    """

    body: str
    stage: str
    translational_error_m: float
    translational_error_max_m: float
    translational_error_rms_m: float
    geodesic_error_deg: float
    geodesic_error_max_deg: float
    geodesic_error_rms_deg: float
    held_translational_error_m: float
    held_geodesic_error_deg: float


class ErrorTable(ShownResult, tuple[StageError, ...]):
    """A sequence of errors, bodies in their order, stages in that of time."""

    def by_body(self) -> dict[str, dict[str, dict[str, float]]]:
        """Numbers by body, stage and name, as in summary.json."""
        result: dict[str, dict[str, dict[str, float]]] = {}
        for row in self:
            numbers = asdict(row)
            del numbers["body"], numbers["stage"]
            result.setdefault(row.body, {})[row.stage] = numbers
        return result

    def shown(self) -> Iterator[Table]:
        """A row per body and stage."""
        headings = (
            "body",
            "stage",
            "mean [m]",
            "max [m]",
            "rms [m]",
            "mean [°]",
            "max [°]",
            "rms [°]",
            "to held set-point [m]",
            "[°]",
        )
        digits = (4, 4, 4, 2, 2, 2, 4, 2)
        rows = [
            (
                body,
                stage,
                *(
                    f"{x:.{n}f}" if np.isfinite(x) else ""
                    for x, n in zip(numbers, digits, strict=True)
                ),
            )
            for body, stage, *numbers in map(astuple, self)
        ]
        yield Table(headings, rows, names=2)


def error_table(recording: Recording) -> ErrorTable:
    """Errors of every body that has set-points, in every stage that has samples."""
    rows = []
    for body in recording.setpoints:
        track = held_track = error_track(recording, body)
        if body in recording.references:
            held_track = error_track(recording, body, held=True)
        for stage in recording.stages:
            mask = recording.stage_mask(stage, track.time_s)
            distance, angle = _finite(track, mask)
            if distance.size:
                held_distance, held_angle = _finite(held_track, mask)
                rows.append(
                    StageError(
                        body,
                        stage.name,
                        *_mean_max_rms(distance),
                        *_mean_max_rms(np.degrees(angle)),
                        float(held_distance.mean()),
                        float(np.degrees(held_angle).mean()),
                    )
                )
    return ErrorTable(rows)


def _finite(track: ErrorTrack, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances and angles of some samples, of those that have both.

    Angles of a place without attitude are NaN.
    """
    distance = track.translational_error_m[mask]
    angle = track.geodesic_error_rad[mask]
    finite = np.isfinite(distance)
    if np.isfinite(track.geodesic_error_rad).any():
        finite &= np.isfinite(angle)
    return distance[finite], angle[finite]


def _mean_max_rms(errors: np.ndarray) -> tuple[float, float, float]:
    return float(errors.mean()), float(errors.max()), float(np.sqrt(np.mean(errors**2)))
