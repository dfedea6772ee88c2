"""Draws load, drones and cables of one subject at one moment.

What is drawn is cut into pieces with a depth each; `picture` sorts those of all subjects and draws
the farthest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from matplotlib.colors import to_rgb

from musls_analysis.figures.style import INK, colour
from musls_analysis.view.camera import Camera
from musls_analysis.view.canvas import Canvas, Colour
from musls_analysis.view.sampled import Sampled
from musls_analysis.view.shapes import BOX_FACES, FACE_NORMALS, DroneShape, LoadShape
from musls_analysis.view.tension_scale import UNKNOWN, TensionScale
from musls_description.rotations import rotate

SECOND = "#4d7c0f"
"""Everything of the recording that is laid over the first."""
_LIGHT = np.array([0.35, -0.45, 0.82])
_WHITE, _BLACK = np.ones(3), np.zeros(3)


class Piece(NamedTuple):
    """Something flat to draw.

    Attributes:
        depth_m: Distance from the camera.
        points_px: Polygon or polyline (n, 2).
        fill: Colour; None for a polyline.
        edge: Colour of the line; None for none.
        width: Of the line [px].
        alpha: Opacity.
        dash: Lengths of line and gap [px].
        closed: Whether an unfilled line returns to its start.
    """

    depth_m: float
    points_px: np.ndarray
    fill: Colour | None = None
    edge: Colour | None = None
    width: float = 1.0
    alpha: float = 1.0
    dash: tuple[float, float] | None = None
    closed: bool = False

    def draw(self, canvas: Canvas) -> None:
        """Draw it."""
        if self.fill is not None:
            canvas.polygon(self.points_px, self.fill, self.edge, self.width, self.alpha)
            return
        points = self.points_px
        if self.closed:
            points = np.concatenate([points, points[:1]])
        if self.edge is not None:
            canvas.line(points, self.edge, self.width, self.alpha, self.dash)


class Look(NamedTuple):
    """How a subject is told from another one.

    Attributes:
        second: Whether it is the one laid over.
        scale: Colours of its cables; None if the tensions are not known or not shown.
    """

    second: bool = False
    scale: TensionScale | None = None

    def colour(self, body: str) -> np.ndarray:
        """Colour of a body."""
        return np.array(to_rgb(SECOND if self.second else colour(body)))

    @property
    def cable_colour(self) -> np.ndarray:
        """Colour of cables whose tensions are not shown."""
        return np.array(to_rgb(SECOND) if self.second else UNKNOWN)

    @property
    def alpha(self) -> float:
        """Opacity of its bodies."""
        return 0.55 if self.second else 1.0


def world(points_m: np.ndarray, position: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Points of a body (..., 3) in the world."""
    return position + rotate(np.broadcast_to(q, (*points_m.shape[:-1], 4)), points_m)


def mix(a: np.ndarray, b: np.ndarray, share: float) -> np.ndarray:
    """Colour between two."""
    return (1.0 - share) * a + share * b


def box_pieces(
    camera: Camera, shape: LoadShape, position: np.ndarray, q: np.ndarray, name: str, look: Look
) -> Iterator[Piece]:
    """Faces of a load's or anchor's box that are seen, shaded."""
    corners = world(shape.corners_m, position, q)
    normals = rotate(np.broadcast_to(q, (6, 4)), FACE_NORMALS)
    base = look.colour(name)
    for face, normal in zip(BOX_FACES, normals, strict=True):
        points = corners[list(face)]
        middle = points.mean(axis=0)
        if normal @ (middle - camera.position_enu_m) > 0.0:
            continue
        light = 0.5 + 0.5 * float(normal @ _LIGHT)
        shade = mix(mix(base, _BLACK, 0.45), mix(base, _WHITE, 0.25), light)
        at, depth = camera.project(points)
        yield Piece(float(depth.mean()), at, shade, mix(base, _BLACK, 0.35), 1.0, look.alpha)


def drone_pieces(
    camera: Camera, shape: DroneShape, position: np.ndarray, q: np.ndarray, name: str, look: Look
) -> Iterator[Piece]:
    """Gear, arms, plate and rotor discs; the front discs are darker."""
    base, alpha = look.colour(name), look.alpha
    px = camera.scale_px_m(position)
    for segment in world(shape.gear_m, position, q):
        at, depth = camera.project(segment)
        yield Piece(float(depth.mean()) + 0.02, at, None, "#4b5563", _width(0.009, px), alpha)
    arms = np.stack([np.zeros_like(shape.hubs_m), shape.hubs_m], axis=1)
    for arm in world(arms, position, q):
        at, depth = camera.project(arm)
        yield Piece(float(depth.mean()), at, None, mix(base, _BLACK, 0.3), _width(0.026, px), alpha)
    at, depth = camera.project(world(shape.plate_m, position, q))
    dark = mix(base, _BLACK, 0.45)
    yield Piece(float(depth.mean()) - 0.01, at, mix(base, _BLACK, 0.15), dark, 1.0, alpha)
    for disc, front in zip(world(shape.discs_m, position, q), shape.front, strict=True):
        at, depth = camera.project(disc)
        fill_alpha = (0.62 if front else 0.32) * alpha
        yield Piece(float(depth.mean()) - 0.03, at, base, dark, 1.0, fill_alpha)


def _width(metres: float, px_m: float) -> float:
    """Line width of something of a thickness, never too thin to see [px]."""
    return max(metres * px_m, 1.0)


def cable_pieces(camera: Camera, sampled: Sampled, k: int, look: Look) -> Iterator[Piece]:
    """Cables in the colours of their tensions, a piece a link."""
    for cable in sampled.cables.values():
        points = cable.points_enu_m[k]
        if look.scale is not None:
            shade = look.scale.colours(cable.tension_n[k])
        else:
            shade = look.cable_colour
        width = 1.6 if look.second else 2.8
        if not cable.recorded:
            at, depth = camera.project(points)
            dash = (5.0, 4.0) if cable.slack[k] else None
            yield Piece(float(depth.mean()), at, None, shade, width, 1.0, dash)
            continue
        for piece in cable.pieces(k):
            at, depth = camera.project(piece)
            for i in range(len(at) - 1):
                yield Piece(float(depth[i : i + 2].mean()), at[i : i + 2], None, shade, width)


def setpoint_pieces(
    camera: Camera,
    sampled: Sampled,
    k: int,
    boxes: dict[str, LoadShape],
    drones: dict[str, DroneShape],
) -> Iterator[Piece]:
    """Outlines of where load and drones should be."""
    dash = (3.0, 2.5)
    for body, track in sampled.setpoints.items():
        position, q = track.position_enu_m[k], track.orientation_wxyz[k]
        if np.isnan(position).any():
            continue
        if body in boxes:
            corners = world(boxes[body].corners_m, position, q)
            outlines = [corners[list(face)] for face in BOX_FACES[:2]]
            outlines += [corners[[i, i | 1]] for i in (0, 2, 4, 6)]
        elif body not in drones:
            continue  # a system without a load
        else:
            shape = drones[body]
            outlines = [*world(shape.discs_m, position, q)]
            hubs = world(shape.hubs_m, position, q)
            outlines += [np.stack([position, hub]) for hub in hubs]
        for outline in outlines:
            at, depth = camera.project(outline)
            edge = mix(np.array(to_rgb(colour(body))), np.array(to_rgb(INK)), 0.35)
            yield Piece(
                float(depth.mean()), at, None, edge, 0.9, 0.75, dash, closed=len(outline) > 2
            )
