"""What a picture has to show: the points of bodies, set-points and cables that its frame holds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from musls_analysis.recordings.recording import LOAD, PoseTrack
from musls_analysis.view.sampled import Sampled
from musls_analysis.view.shapes import DroneShape, LoadShape
from musls_description.rotations import rotate

_OTHER = np.zeros((1, 3))
"""A body without a shape is a point."""


def outline_m(
    name: str, boxes: Mapping[str, LoadShape], drones: Mapping[str, DroneShape]
) -> np.ndarray:
    """Points of a body that enclose what is drawn of it, in its frame (points, 3)."""
    if name in boxes:
        return boxes[name].corners_m
    if name in drones:
        shape = drones[name]
        return np.concatenate([shape.discs_m[:, ::4].reshape(-1, 3), shape.gear_m.reshape(-1, 3)])
    return _OTHER


def framed_points_enu_m(
    sampled: Sampled,
    boxes: Mapping[str, LoadShape],
    drones: Mapping[str, DroneShape],
    follow: bool = False,
) -> np.ndarray:
    """World points (n, 3) that a picture of all sampled times has to show.

    Trails and shadows are not among them: they would make the system small.

    Args:
        sampled: Where everything is at the times of the picture or film.
        boxes: Shapes of load and anchors.
        drones: Shapes of the drones.
        follow: Places are relative to the load's place above the ground.
    """
    middle = sampled.bodies[LOAD].position_enu_m * [1.0, 1.0, 0.0]
    middle *= 1.0 if follow else 0.0
    points = []
    for tracks in (sampled.bodies, sampled.setpoints):
        for name, track in tracks.items():
            points.append(_placed(track, outline_m(name, boxes, drones), middle))
    for cable in sampled.cables.values():
        for k, line in enumerate(cable.points_enu_m):
            points.append(line - middle[k])
    everything = np.concatenate(points)
    return everything[np.isfinite(everything).all(axis=1)]


def _placed(track: PoseTrack, outline: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Outline (points, 3) of a body at all times, in the world (times * points, 3)."""
    shape = (len(track.position_enu_m), len(outline))
    turned = rotate(
        np.broadcast_to(track.orientation_wxyz[:, None], (*shape, 4)),
        np.broadcast_to(outline, (*shape, 3)),
    )
    placed: np.ndarray = (track.position_enu_m - middle)[:, None] + turned
    return placed.reshape(-1, 3)
