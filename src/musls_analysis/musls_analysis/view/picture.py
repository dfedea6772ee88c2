"""One picture of the scene at a moment: ground, bodies, set-points, trails, scales, strip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from matplotlib.colors import to_rgb
from scipy.spatial import ConvexHull, QhullError

from musls_analysis.figures.style import FAINT, INK, colour, label
from musls_analysis.recordings.recording import DEFAULT_GAP_LIMIT_S, LOAD, Stage, resample
from musls_analysis.view.align import stage_at, staged_subject
from musls_analysis.view.canvas import Camera, Canvas, Colour, camera_on
from musls_analysis.view.chart import (
    UNKNOWN,
    StripPlot,
    TensionScale,
    draw_tension_bar,
    has_tension,
    strip_of,
    tension_scale,
)
from musls_analysis.view.scene import (
    BOX_FACES,
    DISC,
    FACE_NORMALS,
    RIM,
    DroneShape,
    LoadShape,
    Sampled,
    Subject,
    framed_points_enu_m,
    outline_m,
    pulley_rims,
    sample,
    world,
)
from musls_description.rotations import rotate

# ---------- Where scene, strip and scales stand in a picture.

_LEFT_PX, _RIGHT_PX, _TOP_PX = 60.0, 30.0, 88.0
_STRIP_PX, _BELOW_PX = 84.0, 44.0
"""Height of the strip, and of its ticks and legend below it."""
STRIP_ROOM_PX = 22.0
"""Above the strip, for the names of the stages."""


@dataclass(frozen=True)
class Layout:
    """Sizes of a picture before it is scaled; texts have the same size in each layout.

    Attributes:
        width_px: Width.
        height_px: Height.
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

    @property
    def bar_left_px(self) -> float:
        """Left end of the bar of tensions."""
        return self.width_px - _RIGHT_PX - self.bar_px


WIDE = Layout(960, 640, 240.0)
NARROW = Layout(580, 560, 150.0)
"""For a phone or one column: texts are larger compared with the picture."""

# ---------- Draws load, drones and cables of one subject at one moment.

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


def pulley_pieces(
    camera: Camera, rims: np.ndarray, position: np.ndarray, q: np.ndarray, alpha: float
) -> Iterator[Piece]:
    """Discs of the pulleys of a body, before the body itself."""
    for rim in world(rims, position, q):
        at, depth = camera.project(rim)
        yield Piece(float(depth.mean()) - 0.05, at, DISC, RIM, 1.6, alpha)


# ---------- The ground at z = 0: a grid that fades away, and shadows straight below the bodies.

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


# ---------- Names beside the drones, where they cover neither each other nor a body.

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


_LABEL_PX = 12.5
_MOST_GROUND_M = 5.0
"""The ground is drawn wider below a system that hangs high, at most so much."""
_TRAIL_POINTS, _TRAIL_PIECES = 25, 6
_CAMERA_SAMPLES = 60


@dataclass(frozen=True)
class PictureOptions:
    """How pictures look.

    Attributes:
        azimuth_deg: Where the eye stands, counter-clockwise from east.
        elevation_deg: Its height above the horizon.
        zoom: Above 1 comes closer.
        follow: The camera goes along with the load instead of showing all of the motion.
        trail_s: Length of the trails.
        layout: Size and places.
    """

    azimuth_deg: float = -62.0
    elevation_deg: float = 17.0
    zoom: float = 1.0
    follow: bool = False
    trail_s: float = 3.0
    layout: Layout = WIDE


class Picture:
    """Draws one moment after the other of one subject, or of two laid over each other.

    Attributes:
        canvas: What is drawn on.
        camera: From where, in the present picture.
    """

    def __init__(
        self,
        subjects: Sequence[Subject],
        window_s: tuple[float, float],
        options: PictureOptions | None = None,
        scale: float = 1.0,
        framed_s: tuple[float, float] | None = None,
    ) -> None:
        """Choose the camera and draw what all pictures share.

        Args:
            subjects: One or two.
            window_s: Times that the pictures are of, shown in the strip.
            options: Looks.
            scale: Pixels per layout point.
            framed_s: Times at which the camera has to see the system; None for all of the window.

        Raises:
            ConfigError: A camera option is out of range.
        """
        self._subjects = list(subjects)
        self._options = options or PictureOptions()
        self._layout = self._options.layout
        self._shapes = [(s.boxes(), s.drone_shapes()) for s in subjects]
        self._pulleys = [pulley_rims(s) for s in subjects]
        coloured = next((s for s in subjects if has_tension(s)), None)
        self._scale = tension_scale(coloured, window_s) if coloured else None
        self._looks = [
            Look(second=i > 0, scale=self._scale if s is coloured else None)
            for i, s in enumerate(subjects)
        ]
        self._staged = staged_subject(subjects)
        strip = strip_of(subjects, self._stages())
        self._strip = StripPlot(strip, window_s, self._layout.strip_px) if strip else None
        self._scene_bottom_px = self._layout.strip_px[1] - STRIP_ROOM_PX if strip else None
        self._choose_camera(
            np.linspace(*(framed_s or window_s), _CAMERA_SAMPLES if framed_s is None else 1)
        )
        width, height = self._layout.width_px, self._layout.height_px
        bottom = self._scene_bottom_px or float(height)
        self._labels = LabelPlacer(
            Rectangle(4.0, 72.0 if len(subjects) == 1 else 90.0, width - 4.0, bottom - 2.0)
        )
        self.canvas = Canvas(width, height, scale)
        self._draw_background()

    def draw(self, time_s: float, speed: float = 1.0) -> np.ndarray:
        """Draw a moment.

        Args:
            time_s: Time shown.
            speed: How fast a film plays, to be written down if not 1.

        Returns:
            Copy of the picture (height, width, 3), bytes.
        """
        self.paint(time_s, speed)
        return self.canvas.rgb()

    def paint(self, time_s: float, speed: float = 1.0) -> memoryview:
        """Draw a moment without making a copy of it.

        Args:
            time_s: Time shown.
            speed: See `draw`.

        Returns:
            The canvas (height, width, 4), bytes: red, green, blue, opacity. The next moment is
            drawn over it.
        """
        sampled = [sample(subject, np.array([time_s])) for subject in self._subjects]
        self.canvas.restore_background()
        self.canvas.bottom_px = self._scene_bottom_px
        if self._options.follow:
            self._follow(sampled[0])
            draw_grid(self.canvas, self.camera, *self._bounds + self._center)
        for (boxes, drones), its in zip(self._shapes, sampled, strict=True):
            for body, position, q in _poses(its):
                if body in boxes:
                    points = boxes[body].corners_m
                elif body in drones:
                    points = drones[body].discs_m.reshape(-1, 3)
                else:
                    continue
                draw_shadow(self.canvas, self.camera, world(points, position, q))
        for look, subject in zip(self._looks, self._subjects, strict=True):
            self._draw_trails(subject, look, time_s)
        pieces = list(self._pieces(sampled))
        for piece in sorted(pieces, key=lambda p: -p.depth_m):  # NaN: not seen, drawn as nothing
            piece.draw(self.canvas)
        self.canvas.bottom_px = None
        self._draw_labels(sampled[0])
        self._draw_title(time_s, speed)
        if self._strip:
            self._strip.draw_moment(self.canvas, time_s)
        return self.canvas.rgba()

    def _stages(self) -> Sequence[Stage]:
        if self._staged is None:
            return ()
        by = self._staged.shift_s
        stages = self._staged.recording.stages
        return [replace(s, start_s=s.start_s + by, end_s=s.end_s + by) for s in stages]

    def _choose_camera(self, time_s: np.ndarray) -> None:
        self._center = np.zeros(3)
        look = self._options
        framed = [
            framed_points_enu_m(sample(subject, time_s), *shapes, look.follow)
            for subject, shapes in zip(self._subjects, self._shapes, strict=True)
        ]
        everything = np.concatenate(framed)
        low, high = everything.min(axis=0), everything.max(axis=0)
        wider = np.clip(low[2], 0.0, _MOST_GROUND_M) * np.array([1.0, 1.0, 0.0])
        self._bounds = np.stack([low - wider, high + wider])
        self.camera = self._still = camera_on(
            everything,
            self._layout.scene_px,
            self._layout.height_px,
            look.azimuth_deg,
            look.elevation_deg,
            look.zoom,
        )

    def _follow(self, sampled: Sampled) -> None:
        position = sampled.bodies[LOAD].position_enu_m[0]
        if np.isfinite(position).all():
            self._center = position * [1.0, 1.0, 0.0]
        self.camera = self._still.moved(self._center)

    def _draw_background(self) -> None:
        if not self._options.follow:
            self.canvas.bottom_px = self._scene_bottom_px
            draw_grid(self.canvas, self.camera, *self._bounds)
            self.canvas.bottom_px = None
        if self._scale:
            draw_tension_bar(
                self.canvas, self._scale, self._layout.bar_left_px, 30.0, self._layout.bar_px
            )
        if len(self._subjects) == 2:
            draw_names(
                self.canvas,
                [s.name for s in self._subjects],
                60.0,
                84.0 if self._layout.width_px < WIDE.width_px else 66.0,
            )
        if self._strip:
            self._strip.draw(self.canvas)
        self.canvas.keep_background()

    def _pieces(self, sampled: Sequence[Sampled]) -> Iterator[Piece]:
        for i, (its, look) in enumerate(zip(sampled, self._looks, strict=True)):
            boxes, drones = self._shapes[i]
            for body, position, q in _poses(its):
                if body in self._pulleys[i]:
                    rims = self._pulleys[i][body]
                    yield from pulley_pieces(self.camera, rims, position, q, look.alpha)
                if body in boxes:
                    yield from box_pieces(self.camera, boxes[body], position, q, body, look)
                elif body in drones:
                    shape = drones[body]
                    yield from drone_pieces(self.camera, shape, position, q, body, look)
            yield from cable_pieces(self.camera, its, 0, look)
        yield from setpoint_pieces(self.camera, sampled[0], 0, *self._shapes[0])

    def _draw_trails(self, subject: Subject, look: Look, time_s: float) -> None:
        if self._options.trail_s <= 0.0:
            return
        times = np.linspace(time_s - self._options.trail_s, time_s, _TRAIL_POINTS)
        for body, track in subject.recording.bodies.items():
            past = resample(track, times - subject.shift_s, DEFAULT_GAP_LIMIT_S)
            place = subject.origin_enu_m(body, past.position_enu_m, past.orientation_wxyz)
            at, _ = self.camera.project(place)
            each = (_TRAIL_POINTS - 1) // _TRAIL_PIECES
            for piece in range(_TRAIL_PIECES):
                part = at[piece * each : (piece + 1) * each + 1]
                strength = 0.65 * (piece + 1) / _TRAIL_PIECES
                self.canvas.line(part, look.colour(body), 1.8, strength, cap="butt")

    def _draw_labels(self, sampled: Sampled) -> None:
        """Names of the drones beside them, so that lines of the strip can be told."""
        seen, widths = {}, {}
        for body, position, q in _poses(sampled):
            outline = world(outline_m(body, *self._shapes[0]), position, q)
            rectangle = around(self.camera.project(outline)[0])
            if rectangle is not None:
                seen[body] = rectangle
                widths[body] = self.canvas.width_of(label(body), _LABEL_PX, True) + 2.0
        widths.pop(LOAD, None)
        cables = [
            square
            for cable in sampled.cables.values()
            for square in along(self.camera.project(cable.points_enu_m[0])[0])
        ]
        for body, place in self._labels.place(widths, seen, cables).items():
            self.canvas.rectangle(*place[:2], widths[body], HEIGHT_PX, "white", 0.6)
            baseline = place.bottom - 3.5
            self.canvas.text(place.left + 1.0, baseline, label(body), _LABEL_PX, colour(body), True)

    def _draw_title(self, time_s: float, speed: float) -> None:
        name = ""
        if self._staged is not None:
            stage = stage_at(self._staged.recording, time_s - self._staged.shift_s)
            name = label(stage.name) if stage else ""
        name = name or self._subjects[0].name
        width = self.canvas.text(60.0, 44.0, name, 22.0, INK, bold=True)
        below = self._layout.width_px < WIDE.width_px  # no room beside the name
        place = (60.0, 66.0) if below else (60.0 + width + 18.0, 44.0)
        text = f"t = {time_s:.2f} s" + (f"   {speed:g}× speed" if speed != 1.0 else "")
        self.canvas.text(*place, text, 13.0 if below else 15.0, FAINT)


def _poses(sampled: Sampled) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, position and quaternion of the bodies that are known at the first time."""
    for body, track in sampled.bodies.items():
        if np.isfinite(track.position_enu_m[0]).all():
            yield body, track.position_enu_m[0], track.orientation_wxyz[0]


def draw_names(canvas: Canvas, names: Sequence[str], x: float, y: float) -> None:
    """Say which of two recordings is drawn in the bodies' own colours."""
    x += canvas.text(x, y, names[0], 12.0, INK, bold=True)
    x += canvas.text(x, y, "  in colours,  ", 12.0, FAINT)
    x += canvas.text(x, y, names[1], 12.0, SECOND, bold=True)
    canvas.text(x, y, "  in olive", 12.0, FAINT)
