"""What the bodies of a system look like: points in their own frames (FLU, centre of mass)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from musls_description.drone import Box, Drone
from musls_description.system import Load

ROTOR_SHARE = 0.73
"""Radius of a rotor disc as a share of half the distance to the next hub, where the description
holds hubs only: 10 inch propellers on the x500's hubs, 348 mm apart."""
LONE_ROTOR_RADIUS_M = 0.127
DISC_POINTS = 20
_DISC = np.linspace(0.0, 2.0 * np.pi, DISC_POINTS, endpoint=False)

BOX_FACES = (
    (0, 2, 6, 4), (1, 5, 7, 3), (0, 4, 5, 1), (2, 3, 7, 6), (0, 1, 3, 2), (4, 6, 7, 5),
)  # fmt: skip
"""Corners of the faces -z, +z, -y, +y, -x, +x of a box, whose corners count x, y, z as bits
4, 2, 1."""
FACE_NORMALS = np.array(
    [[0, 0, -1], [0, 0, 1], [0, -1, 0], [0, 1, 0], [-1, 0, 0], [1, 0, 0]], float
)


def box_corners(box: Box) -> np.ndarray:
    """Corners of a box in its body's frame (8, 3)."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    return np.array(box.center_m) + 0.5 * signs * np.array(box.size_m)


@dataclass(frozen=True)
class LoadShape:
    """A box with the points where the cables pull.

    Attributes:
        corners_m: (8, 3).
        attachments_m: (n, 3).
    """

    corners_m: np.ndarray
    attachments_m: np.ndarray

    @classmethod
    def of(cls, load: Load) -> LoadShape:
        """Shape of a load."""
        places = np.array(load.cable_attachments_m, float).reshape(-1, 3)
        return cls(box_corners(load.collision), places)


ANCHOR = LoadShape(box_corners(Box(size_m=(0.06, 0.06, 0.06))), np.zeros((0, 3)))
"""An anchor, which has no size of its own."""


@dataclass(frozen=True)
class DroneShape:
    """A body plate, arms out to the hubs, rotor discs, a landing gear.

    Attributes:
        hubs_m: (rotors, 3).
        rotor_radius_m: Of each disc.
        discs_m: Rims of the rotor discs (rotors, DISC_POINTS, 3).
        front: Which rotors are at the front (x > 0) (rotors,).
        plate_m: Outline of the body between the arms (DISC_POINTS, 3).
        gear_m: Landing gear as segments (6, 2, 3).
        attachment_m: Where the cable pulls (3,).
        radius_m: Sphere about the origin that holds everything.
    """

    hubs_m: np.ndarray
    rotor_radius_m: float
    discs_m: np.ndarray
    front: np.ndarray
    plate_m: np.ndarray
    gear_m: np.ndarray
    attachment_m: np.ndarray
    radius_m: float

    @classmethod
    def of(cls, drone: Drone) -> DroneShape:
        """Shape of a drone: hubs and feet are the description's, the rest is drawn round them."""
        hubs = np.array([rotor.position_m for rotor in drone.rotors], float)
        radius = _rotor_radius_m(hubs)
        rim = np.stack([np.cos(_DISC), np.sin(_DISC), np.zeros(DISC_POINTS)], axis=-1)
        span = float(np.linalg.norm(hubs[:, :2], axis=1).max())
        plate = rim * [0.42 * span, 0.34 * span, 0.0] + [0.0, 0.0, 0.4 * hubs[:, 2].mean()]
        corners = box_corners(drone.collision)
        reach = max(span + radius, float(np.linalg.norm(corners, axis=1).max()))
        return cls(
            hubs, radius, hubs[:, None] + radius * rim, hubs[:, 0] > 1e-6, plate, _gear(corners),
            np.array(drone.cable_attachment_m, float), reach,
        )  # fmt: skip


def _rotor_radius_m(hubs: np.ndarray) -> float:
    between = np.linalg.norm(hubs[:, None] - hubs[None], axis=-1)
    apart = between[between > 1e-6]  # coaxial rotors share a hub
    return ROTOR_SHARE * 0.5 * float(apart.min()) if apart.size else LONE_ROTOR_RADIUS_M


def _gear(corners: np.ndarray) -> np.ndarray:
    """Two skids along x at the foot of the collision box, four legs up to the body (6, 2, 3)."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    segments = []
    for side in (-0.8, 0.8):
        skid = np.array([[-0.85, side, -1.0], [0.85, side, -1.0]])
        segments.append(skid)
        for along in (-0.4, 0.4):
            segments.append(np.array([[along, side, -1.0], [0.6 * along, 0.35 * side, 1.0]]))
    return middle + half * np.array(segments)
