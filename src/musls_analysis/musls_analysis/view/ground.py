"""The ground at z = 0: a grid that fades away, and shadows straight below the bodies."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from musls_analysis.view.camera import Camera
from musls_analysis.view.canvas import Canvas

GRID_COLOUR = "#8b98a8"
AXIS_COLOURS = {"x": "#c0392b", "y": "#2e8b57"}
SHADOW = "#1f2933"
SHADOW_ALPHA = 0.13
_PIECES = 4  # of each metre of a grid line, each with a strength of its own
_MARGIN_M = 1.5


def draw_grid(
    canvas: Canvas, camera: Camera, low_enu_m: np.ndarray, high_enu_m: np.ndarray
) -> None:
    """Draw lines each metre, fading out beyond what is shown, and the origin's axes x and y.

    Args:
        canvas: Where to.
        camera: From where.
        low_enu_m: Lowest corner of what is shown (3,) or (2,).
        high_enu_m: Highest corner.
    """
    low = np.floor(low_enu_m[:2] - _MARGIN_M)
    high = np.ceil(high_enu_m[:2] + _MARGIN_M)
    for axis in (0, 1):
        other = 1 - axis
        along = np.arange(low[axis], high[axis] + 1e-9, 1.0 / _PIECES)
        for place in np.arange(low[other], high[other] + 1e-9):
            points = np.zeros((len(along), 3))
            points[:, axis], points[:, other] = along, place
            strengths = _strength(0.5 * (points[1:] + points[:-1]), low_enu_m, high_enu_m)
            at, _ = camera.project(points)
            for k in np.flatnonzero(strengths > 0.01):
                canvas.line(at[k : k + 2], GRID_COLOUR, 0.9, float(strengths[k]))
    for axis, name in enumerate("xy"):
        tip = np.zeros((2, 3))
        tip[1, axis] = 0.5
        at, _ = camera.project(tip)
        if np.isfinite(at).all():
            canvas.line(at, AXIS_COLOURS[name], 2.0)
            out = at[1] + 0.16 * (at[1] - at[0])
            if canvas.bottom_px is not None and out[1] > canvas.bottom_px - 6.0:
                continue  # texts are not cut off as lines are
            canvas.text(out[0], out[1] + 4.0, name, 11.0, AXIS_COLOURS[name], align="center")


def _strength(points: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Opacity of grid pieces at points (n, 3): full inside, down to nothing at the margin."""
    outside = np.maximum(np.maximum(low[:2] - points[:, :2], points[:, :2] - high[:2]), 0.0)
    return 0.42 * np.clip(1.0 - np.linalg.norm(outside, axis=1) / _MARGIN_M, 0.0, 1.0)


def draw_shadow(canvas: Canvas, camera: Camera, points_enu_m: np.ndarray) -> None:
    """Darken the ground below the convex hull of a body's points (n, 3)."""
    flat = points_enu_m * [1.0, 1.0, 0.0]
    try:
        hull = flat[ConvexHull(flat[:, :2]).vertices]
    except (QhullError, ValueError):  # seen edge on, or not known
        return
    canvas.polygon(camera.project(hull)[0], SHADOW, alpha=SHADOW_ALPHA)
