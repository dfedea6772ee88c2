"""Where pictures are drawn: a canvas of polygons, lines and text, and a perspective camera.

Everything is drawn at once with matplotlib's Agg renderer: a picture takes some hundred shapes, an
artist for each would take most of the time. Coordinates are picture points of the layout, x to the
right, y downwards, whatever the scale of the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, Bbox

from musls_description.errors import ConfigError

Colour = str | Sequence[float] | np.ndarray
"""A name, or red, green, blue from 0 to 1, (3,)."""
_POINTS_PER_PX = 0.72  # at 100 dots an inch


class Canvas:
    """A picture to draw on, its width and height in layout points.

    Attributes:
        scale: Pixels per layout point.
        bottom_px: Lines and polygons are cut off below; None for nowhere.
    """

    bottom_px: float | None = None

    def __init__(self, width_px: int, height_px: int, scale: float = 1.0) -> None:
        """Make a white picture of `scale` times the layout's size."""
        self.width_px, self.height_px, self.scale = width_px, height_px, scale
        size = round(width_px * scale), round(height_px * scale)
        self._renderer = RendererAgg(*size, 100.0 * scale)
        self._flip = Affine2D().scale(scale, -scale).translate(0.0, size[1])
        self._background = None
        self.rectangle(0, 0, width_px, height_px, "white")

    def polygon(
        self,
        points: np.ndarray,
        fill: Colour,
        edge: Colour | None = None,
        width: float = 1.0,
        alpha: float = 1.0,
    ) -> None:
        """Fill a closed polygon (n, 2), and draw its edge; nothing if a point is NaN."""
        if not np.isfinite(points).all():
            return
        closed = np.concatenate([points, points[:1]])
        codes = np.full(len(closed), Path.LINETO, Path.code_type)
        codes[0], codes[-1] = Path.MOVETO, Path.CLOSEPOLY
        self._draw(Path(closed, codes), _rgba(fill, alpha), edge, width, alpha)

    def line(
        self,
        points: np.ndarray,
        colour: Colour,
        width: float = 1.0,
        alpha: float = 1.0,
        dash: tuple[float, float] | None = None,
        cap: Literal["round", "butt"] = "round",
    ) -> None:
        """Draw a polyline (n, 2); NaN interrupts it."""
        if len(points) > 1:
            self._draw(Path(points), None, colour, width, alpha, dash, cap)

    def rectangle(
        self, x: float, y: float, width: float, height: float, fill: Colour, alpha: float = 1.0
    ) -> None:
        """Fill a rectangle whose upper left corner is at x, y."""
        corners = [[x, y], [x + width, y], [x + width, y + height], [x, y + height]]
        self.polygon(np.array(corners, float), fill, alpha=alpha)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 12.0,
        colour: Colour = "black",
        bold: bool = False,
        align: Literal["left", "center", "right"] = "left",
    ) -> float:
        """Write a line of text with its baseline at y; returns its width [px]."""
        width = self.width_of(text, size, bold)
        x -= {"left": 0.0, "center": 0.5, "right": 1.0}[align] * width
        gc = self._renderer.new_gc()
        gc.set_foreground(_rgba(colour, 1.0), isRGBA=True)
        self._renderer.draw_text(gc, x * self.scale, y * self.scale, text, _font(size, bold), 0.0)
        gc.restore()
        return width

    def width_of(self, text: str, size: float = 12.0, bold: bool = False) -> float:
        """Width of a line of text [px]."""
        size_px = self._renderer.get_text_width_height_descent(text, _font(size, bold), False)
        return size_px[0] / self.scale

    def keep_background(self) -> None:
        """Remember what is drawn now."""
        self._background = self._renderer.copy_from_bbox(self._renderer.bbox)

    def restore_background(self) -> None:
        """Go back to what was remembered."""
        self._renderer.restore_region(self._background)

    def rgb(self) -> np.ndarray:
        """Copy of the picture (height, width, 3), bytes."""
        return np.asarray(self._renderer.buffer_rgba())[:, :, :3].copy()

    def _draw(self, path, face, edge, width, alpha, dash=None, cap="round") -> None:
        gc = self._renderer.new_gc()
        if edge is None:
            gc.set_linewidth(0.0)
        else:
            gc.set_foreground(_rgba(edge, alpha), isRGBA=True)
            gc.set_linewidth(_POINTS_PER_PX * width)
            gc.set_joinstyle("round")
            gc.set_capstyle("butt" if dash else cap)
            if dash:
                gc.set_dashes(0.0, [_POINTS_PER_PX * part for part in dash])
        gc.set_snap(False)
        if self.bottom_px is not None:
            height = self.height_px - self.bottom_px  # of what stays white, from below
            box = np.array([0.0, height, self.width_px, self.bottom_px]) * self.scale
            gc.set_clip_rectangle(Bbox.from_bounds(*box))
        self._renderer.draw_path(gc, path, self._flip, face)
        gc.restore()


@cache
def _font(size_px: float, bold: bool) -> FontProperties:
    weight = "bold" if bold else "normal"
    return FontProperties(family="DejaVu Sans", size=_POINTS_PER_PX * size_px, weight=weight)


def _rgba(colour: Colour, alpha: float) -> tuple[float, float, float, float]:
    if isinstance(colour, str):
        return to_rgba(colour, alpha)
    red, green, blue = colour[:3]
    return to_rgba((red, green, blue), alpha)


# ---------- Camera

FIELD_OF_VIEW_DEG = 28.0
"""Of the whole picture's height; a small angle keeps sizes comparable."""
NEAREST_M = 0.2
"""Points closer to the camera are not shown."""


@dataclass(frozen=True)
class Camera:
    """A perspective camera: world points to picture points.

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

    def scale_px_m(self, point_enu_m: np.ndarray) -> float:
        """Picture length of 1 m at a world point (3,)."""
        return self.focal_px / float((point_enu_m - self.position_enu_m) @ self.axes[2])

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
    """Camera that sees all points, as large as possible within a frame.

    Args:
        points_enu_m: World points (n, 3).
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
    left, top, right_px, bottom = frame_px
    half = 0.5 * np.array([right_px - left, bottom - top]) / focal_px
    seen = points_enu_m @ axes.T
    # Each side of the frame is a plane through the eye: |x - x_eye| <= half * (depth - depth_eye).
    # The tightest points on both sides give the eye's place across and the distance it needs.
    low = np.min(seen[:, :2] + half * seen[:, 2:], axis=0)
    high = np.max(seen[:, :2] - half * seen[:, 2:], axis=0)
    depth = float(np.min((low - high) / (2.0 * half)))
    middle_depth = 0.5 * float(seen[:, 2].min() + seen[:, 2].max())
    distance = max(middle_depth - depth, 10.0 * NEAREST_M) / zoom
    eye = np.array([*(0.5 * (low + high)), middle_depth - distance])
    center = np.array([0.5 * (left + right_px), 0.5 * (top + bottom)])
    return Camera(eye @ axes, axes, float(focal_px), center)
