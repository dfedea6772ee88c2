"""Wheels (pulleys) as discs on their bodies, in the plane of the two cables that lie on them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from musls_analysis.recordings.recording import PoseTrack
from musls_analysis.view.bodies import Piece, world
from musls_analysis.view.camera import Camera
from musls_analysis.view.subject import Subject
from musls_description.rigging import CableEnd, Wheel
from musls_description.rotations import rotate

RIM_POINTS = 24
_RIM = np.linspace(0.0, 2.0 * np.pi, RIM_POINTS, endpoint=False)
RIM, DISC = np.array([0.2, 0.23, 0.28]), np.array([0.82, 0.84, 0.87])
"""Colours."""


def wheel_rims(subject: Subject) -> dict[str, np.ndarray]:
    """Rims of the wheels in the frames of the bodies that carry them.

    A wheel with an axis turns about it; the plane of another one is that of its centre and the far
    ends of its two cables at the start.

    Returns:
        By the recording's name of the body, (wheels on it, RIM_POINTS, 3).
    """
    system = subject.system
    tracks = subject.named(subject.recording.bodies)
    rims: dict[str, list[np.ndarray]] = {}
    for wheel in system.wheels:
        if wheel.body not in tracks:
            continue
        ends = [system.ends(side.cable - 1)[2 - side.end] for side in wheel.cables]
        if any(end.body not in tracks for end in ends):
            continue
        rims.setdefault(wheel.body, []).append(_rim(wheel, ends, tracks))
    recorded = dict(zip(tracks, subject.recording.bodies, strict=True))
    return {recorded[body]: np.array(its) for body, its in rims.items()}


def _rim(wheel: Wheel, far: list[CableEnd], tracks: dict[str, PoseTrack]) -> np.ndarray:
    centre = np.array(wheel.position_m, float)
    if wheel.axis is not None:
        normal = np.array(wheel.axis, float)
    else:
        carrier = tracks[wheel.body]
        back = carrier.orientation_wxyz[0] * [1.0, -1.0, -1.0, -1.0]
        a, b = (
            rotate(back, _place(tracks[end.body], end) - carrier.position_enu_m[0]) - centre
            for end in far
        )
        normal = np.cross(a, b)
        if np.linalg.norm(normal) < 1e-6 * np.linalg.norm(a) * np.linalg.norm(b):  # one above other
            normal = np.cross(
                a, [0.0, 0.0, 1.0] if abs(a[2]) < 0.9 * np.linalg.norm(a) else [1, 0, 0]
            )
    normal = normal / np.linalg.norm(normal)
    beside = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    beside /= np.linalg.norm(beside)
    above = np.cross(normal, beside)
    around: np.ndarray = np.cos(_RIM)[:, None] * beside + np.sin(_RIM)[:, None] * above
    return centre + wheel.radius_m * around


def _place(track: PoseTrack, end: CableEnd) -> np.ndarray:
    place: np.ndarray = track.position_enu_m[0] + rotate(
        track.orientation_wxyz[0], np.array(end.point_m, float)
    )
    return place


def wheel_pieces(
    camera: Camera, rims: np.ndarray, position: np.ndarray, q: np.ndarray, alpha: float
) -> Iterator[Piece]:
    """Discs of the wheels of a body, before the body itself."""
    for rim in world(rims, position, q):
        at, depth = camera.project(rim)
        yield Piece(float(depth.mean()) - 0.05, at, DISC, RIM, 1.6, alpha)
