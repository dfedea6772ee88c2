"""A perspective camera: points of the world to points of a picture."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from musls_description.errors import ConfigError

FIELD_OF_VIEW_DEG = 28.0
"""Of the whole picture's height; a small angle keeps sizes comparable."""
NEAREST_M = 0.2
"""Points closer to the camera are not shown."""


@dataclass(frozen=True)
class Camera:
    """Where the eye is and how large it sees.

    Attributes:
        position_enu_m: The eye (3,).
        axes: Rows: right, up, forward in the world (3, 3).
        focal_px: Picture length of 1 m at 1 m distance.
        center_px: Picture point straight ahead, x to the right, y downwards (2,).
    """

    position_enu_m: np.ndarray
    axes: np.ndarray
    focal_px: float
    center_px: np.ndarray

    def project(self, points_enu_m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Picture points (..., 2) [px] and distances along the line of sight (...) [m].

        World points (..., 3) behind the camera become NaN.
        """
        seen = (points_enu_m - self.position_enu_m) @ self.axes.T
        depth = np.where(seen[..., 2] > NEAREST_M, seen[..., 2], np.nan)
        at = seen[..., :2] * [1.0, -1.0] * (self.focal_px / depth)[..., None]
        return at + self.center_px, depth

    def moved(self, by_m: np.ndarray) -> Camera:
        """The same camera at another place."""
        return replace(self, position_enu_m=self.position_enu_m + by_m)


def camera_on(
    points_enu_m: np.ndarray,
    frame_px: tuple[float, float, float, float],
    height_px: float,
    azimuth_deg: float,
    elevation_deg: float,
    zoom: float = 1.0,
) -> Camera:
    """Camera that sees all points (n, 3), as large as possible within a frame.

    Args:
        points_enu_m: World points.
        frame_px: Left, top, right, bottom of where they are to be.
        height_px: Height of the whole picture.
        azimuth_deg: Where the eye stands, counter-clockwise from east.
        elevation_deg: Its height above the horizon, 0 to 89.
        zoom: Above 1 comes closer.

    Raises:
        ConfigError: An angle or the zoom is out of range.
    """
    for name, value, least, most in (
        ("azimuth", azimuth_deg, -360.0, 360.0),
        ("elevation", elevation_deg, 0.0, 89.0),
        ("zoom", zoom, 0.1, 20.0),
    ):
        if not least <= value <= most:
            raise ConfigError(f"{name} is {value:g}, must be from {least:g} to {most:g}")
    a, e = np.radians([azimuth_deg, elevation_deg])
    forward = -np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    axes = np.stack([right, np.cross(right, forward), forward])
    focal_px = 0.5 * height_px / np.tan(0.5 * np.radians(FIELD_OF_VIEW_DEG))
    low_px, high_px = np.reshape(frame_px, (2, 2))
    half = 0.5 * (high_px - low_px) / focal_px
    seen = points_enu_m @ axes.T
    # Each side of the frame is a plane through the eye: |x - x_eye| <= half * (depth - depth_eye).
    # The tightest points on both sides give the eye's place across and the distance it needs.
    low = np.min(seen[:, :2] + half * seen[:, 2:], axis=0)
    high = np.max(seen[:, :2] - half * seen[:, 2:], axis=0)
    depth = float(np.min((low - high) / (2.0 * half)))
    middle_depth = 0.5 * float(seen[:, 2].min() + seen[:, 2].max())
    distance = max(middle_depth - depth, 10.0 * NEAREST_M) / zoom
    eye = np.array([*(0.5 * (low + high)), middle_depth - distance])
    return Camera(eye @ axes, axes, float(focal_px), 0.5 * (low_px + high_px))
