"""One picture of the scene at a moment: ground, bodies, set-points, trails, scales, strip.

What moves is cut into flat pieces with a depth each; one collection of matplotlib's draws them, the
farthest first. What stays the same is drawn once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from musls_analysis import scene
from musls_analysis.figures import style
from musls_analysis.recordings.recording import LOAD, RecordedStage
from musls_analysis.view.chart import SMALL, TensionScale, draw_strip, strip_series, tension_scale
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Records
from musls_description.system.obstacles import (
    SHOWN_BEYOND_M,
    SOLID,
    ground_heights,
    grounds_of,
    shown_faces,
)

_LEFT_PX = 60.0
_RIGHT_PX = 30.0
_TOP_PX = 88.0
_STRIP_PX = 84.0
_BELOW_PX = 44.0
"""Height of the strip, and of its ticks and legend below it."""
_STRIP_ROOM_PX = 22.0
"""Room above the strip for the names of the stages."""
_MAX_GROUND_M = 5.0
"""The ground is drawn wider below a system that hangs high, at most so much."""
_TRAIL_POINTS = 25
_TRAIL_PIECES = 6
_CAMERA_SAMPLES = 60
PT_PX = 0.72
"""Points in a pixel of the layout, of which an inch has 100."""


@dataclass(frozen=True)
class Layout:
    """Sizes of a picture before it is scaled; texts have the same size in each layout.

    Attributes:
        bar_px: Length of the bar of tensions.
    """

    width_px: int
    height_px: int
    bar_px: float

    @property
    def scene_px(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of what the camera fills."""
        return _LEFT_PX, _TOP_PX, self.width_px - _LEFT_PX, self.strip_px[1] - 40.0

    @property
    def strip_px(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of the strip."""
        bottom = self.height_px - _BELOW_PX
        return _LEFT_PX, bottom - _STRIP_PX, self.width_px - _RIGHT_PX, bottom


WIDE = Layout(960, 640, 240.0)
NARROW = Layout(580, 560, 150.0)
"""Layout for a phone or one column: text is larger relative to the picture."""


@dataclass(frozen=True)
class PictureOptions:
    """View and layout of pictures.

    Attributes:
        azimuth_deg: Direction of the eye, counter-clockwise from east.
        elevation_deg: Angle of the camera above the horizon.
        zoom: Zoom factor; above 1 comes closer.
        follow: The camera goes along with the load instead of showing all of the motion.
    """

    azimuth_deg: float = -62.0
    elevation_deg: float = 17.0
    zoom: float = 1.0
    follow: bool = False
    trail_s: float = 3.0
    layout: Layout = WIDE


def new_canvas(width_px: float, height_px: float, scale: float) -> FigureCanvasAgg:
    """Empty picture of `scale` times a layout's size."""
    figure = Figure(figsize=(width_px / 100.0, height_px / 100.0), dpi=100.0 * scale)
    return FigureCanvasAgg(figure)


def pixels(canvas: FigureCanvasAgg) -> np.ndarray:
    """Copy of what is drawn (height, width, 3), bytes."""
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


# ---------- A perspective camera

FIELD_OF_VIEW_DEG = 28.0
"""Angle of the whole picture's height; a small angle keeps sizes comparable."""
NEAREST_M = 0.2
"""Points closer to the camera are not shown."""


@dataclass(frozen=True)
class Camera:
    """Perspective camera: position, axes, focal length.

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
        """Picture points (..., 2) [px], NaN behind the camera, and distances in sight (...) [m]."""
        camera_points = (points_enu_m - self.position_enu_m) @ self.axes.T
        depth = np.where(camera_points[..., 2] > NEAREST_M, camera_points[..., 2], np.nan)
        at = camera_points[..., :2] * [1.0, -1.0] * (self.focal_px / depth)[..., None]
        return at + self.center_px, depth

    def moved(self, by_m: np.ndarray) -> Camera:
        """Copy of the camera at another place."""
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

    The frame is left, top, right, bottom [px] of a picture of a height [px].
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
    camera_points = points_enu_m @ axes.T
    # Each side of the frame is a plane through the eye: |x - x_eye| <= half * (depth - depth_eye).
    # The tightest points on both sides give the eye's place across and the distance it needs.
    low = np.min(camera_points[:, :2] + half * camera_points[:, 2:], axis=0)
    high = np.max(camera_points[:, :2] - half * camera_points[:, 2:], axis=0)
    depth = float(np.min((low - high) / (2.0 * half)))
    middle_depth = 0.5 * float(camera_points[:, 2].min() + camera_points[:, 2].max())
    distance = max(middle_depth - depth, 10.0 * NEAREST_M) / zoom
    eye = np.array([*(0.5 * (low + high)), middle_depth - distance])
    return Camera(eye @ axes, axes, float(focal_px), 0.5 * (low_px + high_px))


# ---------- Bodies, cables and set-points as pieces

_LIGHT = np.array([0.35, -0.45, 0.82])
_GEAR = np.array(to_rgb("#4b5563"))
_SOLID = "-"
_SETPOINT = (0.0, (2.3, 3.8))
_SLACK = (0.0, (0.8, 2.4))
"""Dashes in widths of the line, whose round ends make each longer by one."""


class FlatPiece(NamedTuple):
    """Something flat in the world: a polygon with a fill, a polyline without.

    Attributes:
        points_enu_m: (n, 3).
        edge: Red, green, blue of the line.
        width: Width of the line [px].
        width_m: The line is at least as wide as this subject_styles.
        nearer_m: Distance by which it is drawn nearer than it is.
        one_sided: Whether it is hidden from where the points turn clockwise.
    """

    points_enu_m: np.ndarray
    edge: np.ndarray
    width: float = 1.0
    fill: np.ndarray | None = None
    alpha: float = 1.0
    dash: object = _SOLID
    width_m: float = 0.0
    nearer_m: float = 0.0
    one_sided: bool = False


class SubjectStyle(NamedTuple):
    """Colours and line styles of a subject.

    Attributes:
        second: Whether it is the one laid over.
        scale: Colours of its cables; None if the tensions are not known or not shown.
    """

    second: bool = False
    scale: TensionScale | None = None

    def colour(self, body: str) -> np.ndarray:
        """Colour of a body."""
        return np.array(to_rgb(style.SECOND if self.second else style.colour(body)))

    def cable_colours(self, tension_n: np.ndarray) -> np.ndarray:
        """Colours of cables with tensions (...), (..., 3)."""
        if self.scale is not None:
            return self.scale.colours(tension_n)
        plain = to_rgb(style.SECOND if self.second else style.UNKNOWN_TENSION)
        return np.broadcast_to(plain, (*np.shape(tension_n), 3))

    @property
    def alpha(self) -> float:
        """Opacity of its bodies."""
        return 0.55 if self.second else 1.0


def _face_pieces(
    faces: Iterable[np.ndarray], base: np.ndarray, alpha: float, *, one_sided: bool = True
) -> Iterator[FlatPiece]:
    """Flat faces (points, 3), anti-clockwise seen from outside, shaded."""
    for points in faces:
        normal = np.cross(points[1] - points[0], points[2] - points[1])
        light = 0.5 + 0.5 * float(normal @ _LIGHT) / float(np.linalg.norm(normal))
        shade = (1.0 - light) * 0.55 * base + light * (0.75 * base + 0.25)
        yield FlatPiece(points, 0.65 * base, fill=shade, alpha=alpha, one_sided=one_sided)


def _drone_pieces(
    shape: scene.DroneShape, to_world: scene.Placed, base: np.ndarray, alpha: float
) -> Iterator[FlatPiece]:
    """Gear, arms, plate and rotor discs; the front discs are darker."""
    for leg in to_world(shape.gear_m):
        yield FlatPiece(leg, _GEAR, alpha=alpha, width_m=0.009, nearer_m=-0.02)
    for arm in to_world(shape.arms_m):
        yield FlatPiece(arm, 0.7 * base, alpha=alpha, width_m=0.026)
    dark = 0.55 * base
    yield FlatPiece(to_world(shape.plate_m), dark, fill=0.85 * base, alpha=alpha, nearer_m=0.01)
    for disc, front in zip(to_world(shape.discs_m), shape.front, strict=True):
        share = 0.62 if front else 0.32
        yield FlatPiece(disc, dark, fill=base, alpha=share * alpha, nearer_m=0.03)


def _cable_pieces(samples: scene.SceneSamples, look: SubjectStyle) -> Iterator[FlatPiece]:
    """Cables in the colours of their tensions, a piece a link."""
    width = 1.6 if look.second else 2.8
    for cable in samples.cables.values():
        shade = look.cable_colours(cable.tension_n[0])
        dash = _SLACK if cable.slack[0] else _SOLID
        for line in cable.pieces(0):
            for i in range(len(line) - 1):
                yield FlatPiece(line[i : i + 2], shade, width, dash=dash)


def subject_styles(
    subjects: Sequence[scene.Subject], window_s: tuple[float, float] | None = None
) -> tuple[list[SubjectStyle], TensionScale | None]:
    """Looks of one or two subjects, and the scale of the tensions in the times shown, if any."""
    coloured = next((s for s in subjects if s.has_tension), None)
    if coloured is None:
        return [SubjectStyle(k > 0) for k in range(len(subjects))], None
    scale = tension_scale(coloured, window_s or (coloured.start_s, coloured.end_s))
    return [
        SubjectStyle(k > 0, scale if s is coloured else None) for k, s in enumerate(subjects)
    ], scale


def _subject_pieces(
    subject: scene.Subject, samples: scene.SceneSamples, look: SubjectStyle
) -> Iterator[FlatPiece]:
    """Bodies, with their pulleys, and cables."""
    pulley = np.array(to_rgb(style.PULLEY))
    rim_colour = np.array(to_rgb(style.PULLEY_RIM))
    for body, to_world in scene.poses(samples.bodies):
        for rim in to_world(subject.pulley_rims[body]) if body in subject.pulley_rims else ():
            yield FlatPiece(rim, rim_colour, 1.6, pulley, look.alpha, nearer_m=0.05)
        shape = subject.shapes.get(body)
        base = look.colour(body)
        if isinstance(shape, scene.BoxOutline):
            faces = to_world(shape.corners_m)[np.array(scene.BOX_FACES)]
            yield from _face_pieces(faces, base, look.alpha)
        elif shape is not None:
            yield from _drone_pieces(shape, to_world, base, look.alpha)
    yield from _cable_pieces(samples, look)


OBSTACLE_ALPHA = 0.4
"""Opacity of obstacles: what flies behind them is seen."""


def _obstacle_pieces(
    subject: scene.Subject, low: np.ndarray, high: np.ndarray
) -> Iterator[FlatPiece]:
    """Obstacles near what is shown, from corner to corner (3,)."""
    base = np.array(to_rgb(style.OBSTACLE))
    beyond = 2.0 * SHOWN_BEYOND_M
    for _, faces in shown_faces(subject.recording.obstacles, low - beyond, high + beyond):
        yield from _face_pieces(faces, base, OBSTACLE_ALPHA, one_sided=len(faces) > 1)


def _setpoint_pieces(
    samples: scene.SceneSamples, shapes: Mapping[str, scene.Shape]
) -> Iterator[FlatPiece]:
    """Outlines of where load and drones should be."""
    ink = np.array(to_rgb(style.INK))
    for body, to_world in scene.poses(samples.setpoints):
        edge = 0.65 * np.array(to_rgb(style.colour(body))) + 0.35 * ink
        for line in shapes[body].wire_m if body in shapes else ():
            yield FlatPiece(to_world(line), edge, 0.9, alpha=0.75, dash=_SETPOINT)


# ---------- The ground: a grid that fades away, and shadows straight below the bodies

_GRID, _AXES = "#8b98a8", {"x": "#c0392b", "y": "#2e8b57"}
_SHADOW = np.array(to_rgb("#1f2933"))
_PIECES_PER_M = 4
_MARGIN_M = 1.5


def _grid(low_m: np.ndarray, high_m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of lines each metre (n, 2, 3), and strengths (n,) that fade out beyond the bounds."""
    low, high = np.floor(low_m[:2] - _MARGIN_M), np.ceil(high_m[:2] + _MARGIN_M)
    pieces = []
    for axis, other in ((0, 1), (1, 0)):
        along = np.arange(low[axis], high[axis] + 1e-9, 1.0 / _PIECES_PER_M)
        places = np.arange(low[other], high[other] + 1e-9)
        points = np.zeros((len(places), len(along), 3))
        points[:, :, axis] = along
        points[:, :, other] = places[:, None]
        pieces.append(np.stack([points[:, :-1], points[:, 1:]], axis=2).reshape(-1, 2, 3))
    lines = np.concatenate(pieces)
    middle = lines.mean(axis=1)[:, :2]
    beyond = np.maximum(np.maximum(low_m[:2] - middle, middle - high_m[:2]), 0.0)
    strength = 0.42 * np.clip(1.0 - np.linalg.norm(beyond, axis=1) / _MARGIN_M, 0.0, 1.0)
    return lines[strength > 0.01], strength[strength > 0.01]


def _on_ground(points_enu_m: np.ndarray, grounds: Records) -> np.ndarray:
    """Points of the ground below or above others, (..., 3)."""
    points = points_enu_m * [1.0, 1.0, 0.0]
    if len(grounds):
        heights = ground_heights(grounds, np.ascontiguousarray(points).reshape(-1, 3))
        points[..., 2] = heights.reshape(points.shape[:-1])
    return points


def _shadow(points_enu_m: np.ndarray, grounds: Records) -> FlatPiece:
    """The ground below the convex hull of a body's points (n, 3)."""
    flat = _on_ground(points_enu_m, grounds)
    with suppress(scipy.spatial.QhullError, ValueError):  # seen edge on, or not known
        flat = flat[scipy.spatial.ConvexHull(flat[:, :2]).vertices]
    return FlatPiece(flat, _SHADOW, 0.0, _SHADOW, 0.13)


# ---------- Names beside the drones, where they cover neither each other nor a body

_LABEL_PX = 12.5
_LABEL_HEIGHT_PX = 14.0
_GAP_PX = 4.0


class Rectangle(NamedTuple):
    """Part of a picture, y downwards [px]."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Rectangle) -> bool:
        """Whether they have an area in common."""
        across = min(self.right, other.right) - max(self.left, other.left)
        return across > 0.0 and min(self.bottom, other.bottom) > max(self.top, other.top)


def place_names(
    widths_px: Mapping[str, float],
    bodies: Mapping[str, Rectangle],
    frame: Rectangle,
    sides: dict[str, int],
) -> dict[str, Rectangle]:
    """Rectangle of the name of each body within a frame, from the names' widths.

    A name stands above its body, else beside or below it, else farther up, where it covers nothing.
    `sides` keeps it on the side where it was in the picture before, as long as that is so.
    """
    labels: dict[str, Rectangle] = {}
    height = _LABEL_HEIGHT_PX
    for name in sorted(widths_px, key=lambda body: bodies[body].top):
        body = bodies[name]
        width = widths_px[name]
        middle = 0.5 * (body.left + body.right - width)
        beside = 0.5 * (body.top + body.bottom)
        above = body.top - _GAP_PX - height
        below = body.bottom + _GAP_PX
        corners = [
            (middle, above),
            (body.right + _GAP_PX, beside - 0.5 * height),
            (body.left - _GAP_PX - width, beside - 0.5 * height),
            (middle, below),
            *((middle, top) for top in np.arange(above, frame.top, -0.5 * height)),
            (middle, above),
        ]
        for k in (min(sides.get(name, 0), len(corners) - 1), *range(len(corners))):
            left = min(max(corners[k][0], frame.left), frame.right - width)
            top = min(max(corners[k][1], frame.top), frame.bottom - height)
            place = Rectangle(left, top, left + width, top + height)
            if not any(map(place.overlaps, [*bodies.values(), *labels.values()])):
                break
        labels[name] = place
        sides[name] = k
    return labels


# ---------- The picture


class Picture:
    """Draws one moment after the other of one subject, or of two laid over each other."""

    def __init__(
        self,
        subjects: Sequence[scene.Subject],
        window_s: tuple[float, float],
        options: PictureOptions | None = None,
        scale: float = 1.0,
        framed_s: tuple[float, float] | None = None,
    ) -> None:
        """Choose the camera and draw what all pictures share, `scale` pixels per layout point.

        The strip shows `window_s`; the camera sees all of `framed_s`, by default of the window.
        """
        self._options = options or PictureOptions()
        self._subjects = subjects
        surfaces = subjects[0].recording.obstacles
        is_flat = not any(getattr(surface, "ground", False) for surface in surfaces)
        self._grounds = np.zeros(0, SOLID) if is_flat else grounds_of(surfaces)
        self._looks, self._scale = subject_styles(subjects, window_s)
        self._staged = scene.staged_subject(subjects)
        self._series, title = strip_series(subjects)
        self._choose_camera(
            np.linspace(*(framed_s or window_s), _CAMERA_SAMPLES if framed_s is None else 1)
        )
        layout = self._options.layout
        self.canvas = new_canvas(layout.width_px, layout.height_px, scale)
        with style.styled():
            self._add_scene()
            self._add_words()
            if self._series:
                self._add_strip(title, window_s)
        for artist in (*self._moving, *self._names.values()):
            artist.set_animated(True)
        self.canvas.draw()
        self._widths_px = {
            body: text.get_window_extent().width / scale for body, text in self._names.items()
        }
        self._background = self.canvas.copy_from_bbox(self.canvas.figure.bbox)

    def draw(self, time_s: float, speed: float = 1.0) -> np.ndarray:
        """Draw a moment, (height, width, 3) bytes; a film's speed is written down if not 1."""
        samples = [scene.sample(subject, np.array([time_s])) for subject in self._subjects]
        if self._options.follow:
            position = samples[0].bodies[LOAD].position_enu_m[0]
            if np.isfinite(position).all():
                self._center = position * [1.0, 1.0, 0.0]
            self.camera = self._still.moved(self._center)
            self._set_ground()
        self._set_trails(time_s)
        self._set_pieces(samples)
        self._set_words(time_s, speed)
        if self._series:
            self._set_moment(time_s)
        self.canvas.restore_region(self._background)
        for artist in (*self._moving, *self._placed_names(samples)):
            artist.draw(self.canvas.get_renderer())
        return pixels(self.canvas)

    # What stays the same

    def _choose_camera(self, time_s: np.ndarray) -> None:
        self._center = np.zeros(3)
        look = self._options
        everything = np.concatenate(
            [
                scene.framed_points_enu_m(s, scene.sample(s, time_s), look.follow)
                for s in self._subjects
            ]
        )
        low, high = everything.min(axis=0), everything.max(axis=0)
        wider = np.clip(low[2], 0.0, _MAX_GROUND_M) * np.array([1.0, 1.0, 0.0])
        self._bounds = np.stack([low - wider, high + wider])
        self.camera = self._still = camera_on(
            everything,
            look.layout.scene_px,
            look.layout.height_px,
            look.azimuth_deg,
            look.elevation_deg,
            look.zoom,
        )

    def _add_axes(self, left: float, top: float, right: float, bottom: float) -> Axes:
        """Axes at a place of the picture [px]."""
        width, height = self._options.layout.width_px, self._options.layout.height_px
        place = left / width, 1.0 - bottom / height, (right - left) / width, (bottom - top) / height
        return self.canvas.figure.add_axes(place)

    def _add_scene(self) -> None:
        """Add axes whose unit is a pixel of the layout, and what is drawn in them."""
        layout = self._options.layout
        width = float(layout.width_px)
        bottom = float(layout.height_px)
        if self._series:
            bottom = layout.strip_px[1] - _STRIP_ROOM_PX
        ax = self._add_axes(0.0, 0.0, width, bottom)
        ax.set(xlim=(0.0, width), ylim=(bottom, 0.0))
        ax.set_axis_off()
        self._grid = LineCollection([], linewidths=0.9 * PT_PX)
        self._origin = [
            ax.annotate(
                name,
                (0.0, 0.0),
                (0.0, 0.0),
                size=SMALL,
                color=shade,
                ha="center",
                va="center",
                clip_on=True,
                arrowprops={"arrowstyle": "-", "color": shade, "lw": 2.0 * PT_PX, "shrinkA": 5.0},
            )
            for name, shade in _AXES.items()
        ]
        self._trails = LineCollection([], linewidths=1.8 * PT_PX)
        self._pieces = PolyCollection([], closed=False, capstyle="round", joinstyle="round")
        for collection in (self._grid, self._trails, self._pieces):
            ax.add_collection(collection, autolim=False)
        self._set_ground()
        self._moving: list[Artist] = [self._trails, self._pieces]
        if self._options.follow:
            self._moving = [self._grid, *self._origin, *self._moving]

        top = 72.0 if len(self._subjects) == 1 else 90.0
        self._sides: dict[str, int] = {}
        self._frame = Rectangle(4.0, top, width - 4.0, bottom - 2.0)
        self._names = {
            body: ax.text(
                0.0,
                0.0,
                style.label(body),
                color=style.colour(body),
                size=PT_PX * _LABEL_PX,
                weight="bold",
                va="bottom",
                bbox={"fc": "white", "ec": "none", "alpha": 0.6, "pad": 0.0},
            )
            for body in self._subjects[0].recording.bodies
            if body != LOAD
        }

    def _add_words(self) -> None:
        """Add title, time, which colours mean which of two subjects, and the scale of tensions."""
        layout = self._options.layout
        ax = self._add_axes(0.0, 0.0, layout.width_px, _TOP_PX)
        ax.set(xlim=(0.0, layout.width_px), ylim=(_TOP_PX, 0.0))
        ax.set_axis_off()
        wide = layout.width_px >= WIDE.width_px
        self._title = ax.text(60.0, 50.0, "", size=22.0 * PT_PX, weight="bold", va="bottom")
        self._time = ax.annotate(
            "",
            (1.0, 0.0) if wide else (0.0, 0.0),
            (13.0, 1.0) if wide else (0.0, -2.0),
            xycoords=self._title,
            textcoords="offset points",
            size=(15.0 if wide else 13.0) * PT_PX,
            color=style.FAINT,
            va="bottom" if wide else "top",
        )
        self._moving += [self._title, self._time]
        if len(self._subjects) == 2:
            names = [subject.name for subject in self._subjects]
            last = ax.text(60.0, 69.0 if wide else 88.0, "", va="bottom")
            for text, shade, weight in (
                (names[0], style.INK, "bold"),
                ("  in colours,  ", style.FAINT, "normal"),
                (names[1], style.SECOND, "bold"),
                ("  in olive", style.FAINT, "normal"),
            ):
                last = ax.annotate(
                    text,
                    (1.0, 0.0),
                    xycoords=last,
                    color=shade,
                    weight=weight,
                    va="bottom",
                    size=12.0 * PT_PX,
                )
        if self._scale:
            right = layout.width_px - _RIGHT_PX
            self._scale.draw(self._add_axes(right - layout.bar_px, 30.0, right, 39.0))

    def _add_strip(self, title: str, window_s: tuple[float, float]) -> None:
        """Add curves over time, with a mark at the present moment."""
        stages: Sequence[RecordedStage] = ()
        if self._staged is not None:
            by_s = self._staged.shift_s
            stages = [
                replace(s, start_s=s.start_s + by_s, end_s=s.end_s + by_s)
                for s in self._staged.recording.stages
            ]
        ax = self._add_axes(*self._options.layout.strip_px)
        draw_strip(ax, self._subjects[0], self._series, title, stages, window_s)
        self._mark = ax.axvline(window_s[0], color=style.INK, lw=1.2 * PT_PX)
        shades = [style.colour(series.name) for series in self._series]
        none = np.zeros(len(shades))
        self._dots = ax.scatter(
            none, none, (7.4 * PT_PX) ** 2, shades, ec="white", lw=PT_PX, clip_on=False
        )
        self._highest = ax.get_ylim()[1]
        self._moving += [self._mark, self._dots]

    # What changes with the moment

    def _set_ground(self) -> None:
        points, strength = _grid(*self._bounds + self._center)
        points = _on_ground(points, self._grounds)
        self._grid.set_segments(list(self.camera.project(points)[0]))
        self._grid.set_color([(*to_rgb(_GRID), share) for share in strength])
        for axis, arrow in enumerate(self._origin):
            tip = np.zeros((2, 3))
            tip[1, axis] = 0.5
            at, _ = self.camera.project(tip)
            arrow.set_visible(bool(np.isfinite(at).all()))
            arrow.xy = at[0]
            arrow.set_position(at[1] + 0.16 * (at[1] - at[0]))

    def _set_trails(self, time_s: float) -> None:
        times = np.linspace(time_s - self._options.trail_s, time_s, _TRAIL_POINTS)
        each = (_TRAIL_POINTS - 1) // _TRAIL_PIECES
        lines = []
        shades = []
        for subject, look in zip(self._subjects, self._looks, strict=True):
            for body in subject.recording.bodies:
                at, _ = self.camera.project(subject.centre_at(body, times))
                for k in range(_TRAIL_PIECES):
                    lines.append(at[k * each : (k + 1) * each + 1])
                    shades.append((*look.colour(body), 0.65 * (k + 1) / _TRAIL_PIECES))
        self._trails.set_segments(lines if self._options.trail_s > 0.0 else [])
        self._trails.set_color(shades)

    def _set_pieces(self, samples: Sequence[scene.SceneSamples]) -> None:
        shadows = []
        pieces = list(_setpoint_pieces(samples[0], self._subjects[0].shapes))
        pieces += _obstacle_pieces(self._subjects[0], *self._bounds + self._center)
        for subject, its, look in zip(self._subjects, samples, self._looks, strict=True):
            for body, to_world in scene.poses(its.bodies):
                if body in subject.shapes:
                    shadow_m = to_world(subject.shapes[body].shadow_m)
                    shadows.append(_shadow(shadow_m, self._grounds))
            pieces += _subject_pieces(subject, its, look)
        layers = self._visible(shadows) + sorted(self._visible(pieces), key=lambda piece: -piece[0])
        self._pieces.set_visible(bool(layers))
        if not layers:
            return
        _, points, fills, edges, widths, dashes = zip(*layers, strict=True)
        self._pieces.set_verts(points, closed=False)
        self._pieces.set_facecolor(fills)
        self._pieces.set_edgecolor(edges)
        self._pieces.set_linewidth(widths)
        self._pieces.set_linestyle(list(dashes))

    def _visible(
        self, pieces: Iterable[FlatPiece]
    ) -> list[tuple[float, Any, Any, Any, float, object]]:
        """Depth, picture points, fill, edge, width [pt] and dashes of those that can be seen."""
        visible = []
        for piece in pieces:
            at, depths = self.camera.project(piece.points_enu_m)
            faces_away = piece.one_sided and np.linalg.det(np.diff(at[:3], axis=0)) > 0.0
            depth = float(depths.mean())
            if faces_away or np.isnan(depth):
                continue
            fill = (0.0, 0.0, 0.0, 0.0)
            if piece.fill is not None:
                at = np.concatenate([at, at[:1]])
                fill = (*piece.fill, piece.alpha)
            width = PT_PX * max(piece.width, piece.width_m * self.camera.focal_px / depth)
            edge = (*piece.edge, piece.alpha)
            visible.append((depth - piece.nearer_m, at, fill, edge, width, piece.dash))
        return visible

    def _placed_names(self, samples: Sequence[scene.SceneSamples]) -> list[Text]:
        """Names of the visible drones, placed beside them."""
        areas = self._areas(self._subjects[0], samples[0])
        widths = {body: self._widths_px[body] for body in areas if body != LOAD}
        for body, place in place_names(widths, areas, self._frame, self._sides).items():
            self._names[body].set_position((place.left, place.bottom))
        return [self._names[body] for body in widths]

    def _areas(self, subject: scene.Subject, samples: scene.SceneSamples) -> dict[str, Rectangle]:
        """Smallest rectangles round the bodies that are seen."""
        areas = {}
        for body, to_world in scene.poses(samples.bodies):
            outline = subject.shapes[body].outline_m if body in subject.shapes else np.zeros((1, 3))
            at, _ = self.camera.project(to_world(outline))
            points = at[np.isfinite(at).all(axis=1)]
            if len(points):
                areas[body] = Rectangle(*points.min(axis=0).tolist(), *points.max(axis=0).tolist())
        return areas

    def _set_words(self, time_s: float, speed: float) -> None:
        name = self._subjects[0].name
        if self._staged is not None:
            stage = scene.stage_at(self._staged.recording, time_s - self._staged.shift_s)
            name = style.label(stage.name) if stage else name
        self._title.set_text(name)
        self._time.set_text(
            f"t = {time_s:.2f} s" + (f"   {speed:.3g}× speed" if speed != 1.0 else "")
        )

    def _set_moment(self, time_s: float) -> None:
        self._mark.set_xdata([time_s, time_s])
        values = [
            np.interp(time_s, series.time_s, series.value, left=np.nan, right=np.nan)
            for series in self._series
        ]
        levels = np.minimum(values, self._highest)
        self._dots.set_offsets(np.stack([np.full(len(levels), time_s), levels], axis=-1))
