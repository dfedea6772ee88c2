"""Names beside the drones, where they cover neither each other nor a body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

HEIGHT_PX, GAP_PX = 14.0, 4.0
_STEP_PX = 8.0
_KEPT_PX2 = 40.0
"""Overlap that is borne before a name leaves the side on which it was in the picture before."""


class Rectangle(NamedTuple):
    """Part of a picture, y downwards [px]."""

    left: float
    top: float
    right: float
    bottom: float


def around(points_px: np.ndarray) -> Rectangle | None:
    """Smallest rectangle round points (n, 2); None if none of them is seen."""
    seen = points_px[np.isfinite(points_px).all(axis=1)]
    if not len(seen):
        return None
    (left, top), (right, bottom) = seen.min(axis=0), seen.max(axis=0)
    return Rectangle(float(left), float(top), float(right), float(bottom))


def along(line_px: np.ndarray) -> list[Rectangle]:
    """Small squares along a polyline (n, 2), which stand for it as an obstacle."""
    line = line_px[np.isfinite(line_px).all(axis=1)]
    if len(line) < 2:
        return []
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    steps = np.arange(0.0, length[-1], _STEP_PX)
    points = np.stack([np.interp(steps, length, line[:, i]) for i in (0, 1)], axis=-1)
    half = 0.25 * _STEP_PX
    return [Rectangle(x - half, y - half, x + half, y + half) for x, y in points.tolist()]


class LabelPlacer:
    """Finds places for names, and keeps them from one picture of a film to the next."""

    def __init__(self, frame: Rectangle) -> None:
        """Begin a film.

        Args:
            frame: Names stay within it.
        """
        self._frame = frame
        self._side: dict[str, int] = {}

    def place(
        self,
        widths_px: Mapping[str, float],
        bodies: Mapping[str, Rectangle],
        taken: Sequence[Rectangle] = (),
    ) -> dict[str, Rectangle]:
        """Rectangle of the name of each body.

        Args:
            widths_px: Widths of the names, by body.
            bodies: Where the bodies are seen.
            taken: What names should not cover besides.

        Returns:
            By body; of `HEIGHT_PX`, and as wide as the name.
        """
        placed: dict[str, Rectangle] = {}
        for name in sorted(widths_px, key=lambda body: bodies[body].top):
            obstacles = np.array([*placed.values(), *bodies.values(), *taken])
            candidates = _candidates(bodies[name], widths_px[name], self._frame)
            covered = _covered_px2(np.array(candidates), obstacles)
            kept = self._side.get(name)
            if kept is None or covered[kept] > _KEPT_PX2:
                self._side[name] = kept = int(np.argmin(covered))
            placed[name] = candidates[kept]
        return placed


def _covered_px2(candidates: np.ndarray, obstacles: np.ndarray) -> np.ndarray:
    """Area of each candidate (k, 4) that obstacles (m, 4) cover (k,), each counted."""
    low = np.maximum(candidates[:, None, :2], obstacles[None, :, :2])
    high = np.minimum(candidates[:, None, 2:], obstacles[None, :, 2:])
    area: np.ndarray = np.maximum(high - low, 0.0).prod(axis=2).sum(axis=1)
    return area


def _candidates(body: Rectangle, width: float, frame: Rectangle) -> list[Rectangle]:
    """Places beside a body, the best liked first, moved into the frame."""
    middle = 0.5 * (body.left + body.right - width)
    above, below = body.top - GAP_PX - HEIGHT_PX, body.bottom + GAP_PX
    beside = 0.5 * (body.top + body.bottom - HEIGHT_PX)
    left, right = body.left - GAP_PX - width, body.right + GAP_PX
    corners = [
        (middle, above), (right, beside), (left, beside), (middle, below),
        (right, above), (left, above), (right, below), (left, below),
        (middle, above - HEIGHT_PX), (middle, below + HEIGHT_PX), (middle, above - 2 * HEIGHT_PX),
    ]  # fmt: skip
    moved = []
    for x, y in corners:
        x = min(max(x, frame.left), frame.right - width)
        y = min(max(y, frame.top), frame.bottom - HEIGHT_PX)
        moved.append(Rectangle(x, y, x + width, y + HEIGHT_PX))
    return moved
