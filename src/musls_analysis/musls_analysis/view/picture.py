"""One picture of the scene at a moment: ground, bodies, set-points, trails, scales, strip.

What is drawn is cut into flat pieces with a depth each; the farthest are drawn first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from matplotlib.colors import to_rgb
from scipy.spatial import ConvexHull, QhullError

from musls_analysis.figures.style import (
    FAINT,
    INK,
    PULLEY,
    PULLEY_RIM,
    SECOND,
    UNKNOWN_TENSION,
    colour,
    label,
)
from musls_analysis.recordings.recording import LOAD, Stage
from musls_analysis.view.align import stage_at, staged_subject
from musls_analysis.view.canvas import Camera, Canvas, Colour, camera_on
from musls_analysis.view.chart import Strip, TensionScale, tension_scale
from musls_analysis.view.scene import (
    BOX_FACES,
    FACE_NORMALS,
    BoxShape,
    DroneShape,
    Sampled,
    Shape,
    Subject,
    framed_points_enu_m,
    pulley_rims,
    sample,
    world,
)
from musls_description.rotations import rotate

_LEFT_PX, _RIGHT_PX, _TOP_PX = 60.0, 30.0, 88.0
_STRIP_PX, _BELOW_PX = 84.0, 44.0
"""Height of the strip, and of its ticks and legend below it."""
_STRIP_ROOM_PX = 22.0
"""Above the strip, for the names of the stages."""
_MOST_GROUND_M = 5.0
"""The ground is drawn wider below a system that hangs high, at most so much."""
_TRAIL_POINTS, _TRAIL_PIECES = 25, 6
_CAMERA_SAMPLES = 60


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
"""For a phone or one column: texts are larger compared with the picture."""


@dataclass(frozen=True)
class PictureOptions:
    """How pictures look.

    Attributes:
        azimuth_deg: Where the eye stands, counter-clockwise from east.
        elevation_deg: Its height above the horizon.
        zoom: Above 1 comes closer.
        follow: The camera goes along with the load instead of showing all of the motion.
    """

    azimuth_deg: float = -62.0
    elevation_deg: float = 17.0
    zoom: float = 1.0
    follow: bool = False
    trail_s: float = 3.0
    layout: Layout = WIDE


# ---------- Bodies, cables and set-points as pieces

_LIGHT = np.array([0.35, -0.45, 0.82])
_WHITE, _BLACK = np.ones(3), np.zeros(3)


class Piece(NamedTuple):
    """Something flat to draw.

    Attributes:
        depth_m: Distance from the camera.
        points_px: Polygon or polyline (n, 2).
        fill: Colour; None for a polyline.
        edge: Colour of the line.
        width: Of the line [px].
        dash: Lengths of line and gap [px].
    """

    depth_m: float
    points_px: np.ndarray
    fill: Colour | None
    edge: Colour
    width: float
    alpha: float = 1.0
    dash: tuple[float, float] | None = None

    def draw(self, canvas: Canvas) -> None:
        """Draw it."""
        if self.fill is None:
            canvas.line(self.points_px, self.edge, self.width, self.alpha, self.dash)
        else:
            canvas.polygon(self.points_px, self.fill, self.edge, self.width, self.alpha)


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

    def cable_colours(self, tension_n: np.ndarray) -> np.ndarray:
        """Colours of cables with tensions (...), (..., 3)."""
        if self.scale is not None:
            return self.scale.colours(tension_n)
        plain = to_rgb(SECOND if self.second else UNKNOWN_TENSION)
        return np.broadcast_to(plain, (*np.shape(tension_n), 3))

    @property
    def alpha(self) -> float:
        """Opacity of its bodies."""
        return 0.55 if self.second else 1.0


def _mix(a: np.ndarray, b: np.ndarray, share: float) -> np.ndarray:
    return (1.0 - share) * a + share * b


def _piece(
    camera: Camera,
    points_enu_m: np.ndarray,
    fill: Colour | None,
    edge: Colour,
    width: float,
    alpha: float = 1.0,
    dash: tuple[float, float] | None = None,
    nearer_m: float = 0.0,
) -> Piece:
    at, depth = camera.project(points_enu_m)
    return Piece(float(depth.mean()) - nearer_m, at, fill, edge, width, alpha, dash)


def _box_pieces(
    camera: Camera, shape: BoxShape, position: np.ndarray, q: np.ndarray, name: str, look: Look
) -> Iterator[Piece]:
    """Faces of a box that are seen, shaded."""
    corners = world(shape.corners_m, position, q)
    normals = rotate(np.broadcast_to(q, (6, 4)), FACE_NORMALS)
    base = look.colour(name)
    for face, normal in zip(BOX_FACES, normals, strict=True):
        points = corners[list(face)]
        if normal @ (points.mean(axis=0) - camera.position_enu_m) > 0.0:
            continue
        light = 0.5 + 0.5 * float(normal @ _LIGHT)
        shade = _mix(_mix(base, _BLACK, 0.45), _mix(base, _WHITE, 0.25), light)
        yield _piece(camera, points, shade, _mix(base, _BLACK, 0.35), 1.0, look.alpha)


def _drone_pieces(
    camera: Camera, shape: DroneShape, position: np.ndarray, q: np.ndarray, name: str, look: Look
) -> Iterator[Piece]:
    """Gear, arms, plate and rotor discs; the front discs are darker."""
    base, alpha = look.colour(name), look.alpha
    px_m = camera.scale_px_m(position)
    for segment in world(shape.gear_m, position, q):
        width = max(0.009 * px_m, 1.0)
        yield _piece(camera, segment, None, "#4b5563", width, alpha, nearer_m=-0.02)
    arms = np.stack([np.zeros_like(shape.hubs_m), shape.hubs_m], axis=1)
    for arm in world(arms, position, q):
        yield _piece(camera, arm, None, _mix(base, _BLACK, 0.3), max(0.026 * px_m, 1.0), alpha)
    dark = _mix(base, _BLACK, 0.45)
    plate = world(shape.plate_m, position, q)
    yield _piece(camera, plate, _mix(base, _BLACK, 0.15), dark, 1.0, alpha, nearer_m=0.01)
    for disc, front in zip(world(shape.discs_m, position, q), shape.front, strict=True):
        yield _piece(
            camera, disc, base, dark, 1.0, (0.62 if front else 0.32) * alpha, nearer_m=0.03
        )


def pulley_pieces(
    camera: Camera, rims: np.ndarray, position: np.ndarray, q: np.ndarray, alpha: float
) -> Iterator[Piece]:
    """Discs of the pulleys of a body, before the body itself."""
    for rim in world(rims, position, q):
        yield _piece(camera, rim, PULLEY, PULLEY_RIM, 1.6, alpha, nearer_m=0.05)


def _cable_pieces(camera: Camera, sampled: Sampled, look: Look) -> Iterator[Piece]:
    """Cables in the colours of their tensions, a piece a link."""
    width = 1.6 if look.second else 2.8
    for cable in sampled.cables.values():
        shade = look.cable_colours(cable.tension_n[0])
        if not cable.recorded:
            dash = (5.0, 4.0) if cable.slack[0] else None
            yield _piece(camera, cable.points_enu_m[0], None, shade, width, dash=dash)
            continue
        for line in cable.pieces(0):
            for i in range(len(line) - 1):
                yield _piece(camera, line[i : i + 2], None, shade, width)


def _setpoint_pieces(
    camera: Camera, sampled: Sampled, shapes: Mapping[str, Shape]
) -> Iterator[Piece]:
    """Outlines of where load and drones should be."""
    for body, track in sampled.setpoints.items():
        position, q = track.position_enu_m[0], track.orientation_wxyz[0]
        shape = shapes.get(body)
        if shape is None or np.isnan(position).any():
            continue
        if isinstance(shape, BoxShape):
            corners = world(shape.corners_m, position, q)
            outlines = [corners[[*face, face[0]]] for face in BOX_FACES[:2]]
            outlines += [corners[[i, i | 1]] for i in (0, 2, 4, 6)]
        else:
            discs = world(shape.discs_m, position, q)
            outlines = [np.concatenate([disc, disc[:1]]) for disc in discs]
            outlines += [np.stack([position, hub]) for hub in world(shape.hubs_m, position, q)]
        edge = _mix(np.array(to_rgb(colour(body))), np.array(to_rgb(INK)), 0.35)
        for outline in outlines:
            yield _piece(camera, outline, None, edge, 0.9, 0.75, (3.0, 2.5))


# ---------- Ground at z = 0: a grid that fades away, and shadows straight below the bodies

_GRID, _AXES, _SHADOW = "#8b98a8", {"x": "#c0392b", "y": "#2e8b57"}, "#1f2933"
_PIECES_PER_M, _MARGIN_M = 4, 1.5


def _draw_grid(canvas: Canvas, camera: Camera, low_m: np.ndarray, high_m: np.ndarray) -> None:
    """Draw lines each metre, fading out beyond what is shown, and the origin's axes x and y."""
    low = np.floor(low_m[:2] - _MARGIN_M)
    high = np.ceil(high_m[:2] + _MARGIN_M)
    for axis, other in ((0, 1), (1, 0)):
        along = np.arange(low[axis], high[axis] + 1e-9, 1.0 / _PIECES_PER_M)
        for place in np.arange(low[other], high[other] + 1e-9):
            points = np.zeros((len(along), 3))
            points[:, axis], points[:, other] = along, place
            middle = 0.5 * (points[1:, :2] + points[:-1, :2])
            beyond = np.maximum(np.maximum(low_m[:2] - middle, middle - high_m[:2]), 0.0)
            strength = 0.42 * np.clip(1.0 - np.linalg.norm(beyond, axis=1) / _MARGIN_M, 0.0, 1.0)
            at, _ = camera.project(points)
            for k in np.flatnonzero(strength > 0.01):
                canvas.line(at[k : k + 2], _GRID, 0.9, float(strength[k]))
    for axis, (name, shade) in enumerate(_AXES.items()):
        tip = np.zeros((2, 3))
        tip[1, axis] = 0.5
        at, _ = camera.project(tip)
        if np.isfinite(at).all():
            canvas.line(at, shade, 2.0)
            x, y = at[1] + 0.16 * (at[1] - at[0])
            if canvas.bottom_px is None or y <= canvas.bottom_px - 6.0:  # texts are not cut off
                canvas.text(x, y + 4.0, name, 11.0, shade, align="center")


def _draw_shadow(canvas: Canvas, camera: Camera, points_enu_m: np.ndarray) -> None:
    """Darken the ground below the convex hull of a body's points (n, 3)."""
    flat = points_enu_m * [1.0, 1.0, 0.0]
    try:
        hull = flat[ConvexHull(flat[:, :2]).vertices]
    except (QhullError, ValueError):  # seen edge on, or not known
        return
    canvas.polygon(camera.project(hull)[0], _SHADOW, alpha=0.13)


# ---------- Names beside the drones, where they cover neither each other nor a body

_LABEL_PX, _LABEL_HEIGHT_PX, _GAP_PX = 12.5, 14.0, 4.0
_KEPT_PX2 = 40.0
"""Overlap that is borne before a name leaves the side on which it was in the picture before."""


class Rectangle(NamedTuple):
    """Part of a picture, y downwards [px]."""

    left: float
    top: float
    right: float
    bottom: float


class LabelPlacer:
    """Finds places for names within a frame, and keeps them from one picture to the next."""

    def __init__(self, frame: Rectangle) -> None:
        self._frame = frame
        self._side: dict[str, int] = {}

    def place(
        self,
        widths_px: Mapping[str, float],
        bodies: Mapping[str, Rectangle],
        taken: Sequence[Rectangle] = (),
    ) -> dict[str, Rectangle]:
        """Rectangle of the name of each body, from the names' widths and the bodies' places.

        Names should not cover what is `taken` either.
        """
        placed: dict[str, Rectangle] = {}
        for name in sorted(widths_px, key=lambda body: bodies[body].top):
            obstacles = np.array([*placed.values(), *bodies.values(), *taken])
            candidates = np.array([*self._candidates(bodies[name], widths_px[name])])
            low = np.maximum(candidates[:, None, :2], obstacles[None, :, :2])
            high = np.minimum(candidates[:, None, 2:], obstacles[None, :, 2:])
            covered_px2 = np.maximum(high - low, 0.0).prod(axis=2).sum(axis=1)
            kept = self._side.get(name)
            if kept is None or covered_px2[kept] > _KEPT_PX2:
                self._side[name] = kept = int(np.argmin(covered_px2))
            placed[name] = Rectangle(*candidates[kept].tolist())
        return placed

    def _candidates(self, body: Rectangle, width: float) -> Iterator[Rectangle]:
        """Places beside a body, the best liked first, moved into the frame."""
        height, frame = _LABEL_HEIGHT_PX, self._frame
        middle = 0.5 * (body.left + body.right - width)
        above, below = body.top - _GAP_PX - height, body.bottom + _GAP_PX
        beside = 0.5 * (body.top + body.bottom - height)
        left, right = body.left - _GAP_PX - width, body.right + _GAP_PX
        for x, y in (
            (middle, above), (right, beside), (left, beside), (middle, below),
            (right, above), (left, above), (right, below), (left, below),
            (middle, above - height), (middle, below + height), (middle, above - 2.0 * height),
        ):  # fmt: skip
            x = min(max(x, frame.left), frame.right - width)
            y = min(max(y, frame.top), frame.bottom - height)
            yield Rectangle(x, y, x + width, y + height)


def _around(points_px: np.ndarray) -> Rectangle | None:
    """Smallest rectangle round points (n, 2); None if none of them is seen."""
    seen = points_px[np.isfinite(points_px).all(axis=1)]
    return Rectangle(*seen.min(axis=0).tolist(), *seen.max(axis=0).tolist()) if len(seen) else None


def _along(line_px: np.ndarray) -> list[Rectangle]:
    """Small squares along a polyline (n, 2), which stand for it as an obstacle."""
    line = line_px[np.isfinite(line_px).all(axis=1)]
    if len(line) < 2:
        return []
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    steps = np.arange(0.0, length[-1], 8.0)
    points = np.stack([np.interp(steps, length, line[:, i]) for i in (0, 1)], axis=-1)
    return [Rectangle(x - 2.0, y - 2.0, x + 2.0, y + 2.0) for x, y in points.tolist()]


# ---------- The picture


class Picture:
    """Draws one moment after the other of one subject, or of two laid over each other."""

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
        layout = self._layout = self._options.layout
        self._shapes = [s.shapes() for s in subjects]
        self._pulleys = [pulley_rims(s) for s in subjects]
        coloured = next((s for s in subjects if s.has_tension), None)
        self._scale = tension_scale(coloured, window_s) if coloured else None
        self._looks = [
            Look(second=i > 0, scale=self._scale if s is coloured else None)
            for i, s in enumerate(subjects)
        ]
        self._staged = staged_subject(subjects)
        strip = Strip(subjects, self._stages(), window_s, layout.strip_px)
        self._strip = strip if strip.series else None
        self._scene_bottom_px = layout.strip_px[1] - _STRIP_ROOM_PX if self._strip else None
        self._choose_camera(
            np.linspace(*(framed_s or window_s), _CAMERA_SAMPLES if framed_s is None else 1)
        )
        bottom = self._scene_bottom_px or float(layout.height_px)
        top = 72.0 if len(subjects) == 1 else 90.0
        self._labels = LabelPlacer(Rectangle(4.0, top, layout.width_px - 4.0, bottom - 2.0))
        self.canvas = Canvas(layout.width_px, layout.height_px, scale)
        self._draw_background()

    def draw(self, time_s: float, speed: float = 1.0) -> np.ndarray:
        """Draw a moment, (height, width, 3) bytes; a film's speed is written down if not 1."""
        canvas = self.canvas
        sampled = [sample(subject, np.array([time_s])) for subject in self._subjects]
        canvas.restore_background()
        canvas.bottom_px = self._scene_bottom_px
        if self._options.follow:
            position = sampled[0].bodies[LOAD].position_enu_m[0]
            if np.isfinite(position).all():
                self._center = position * [1.0, 1.0, 0.0]
            self.camera = self._still.moved(self._center)
            _draw_grid(canvas, self.camera, *self._bounds + self._center)
        for shapes, its in zip(self._shapes, sampled, strict=True):
            for body, position, q in its.poses():
                if body in shapes:
                    _draw_shadow(canvas, self.camera, world(shapes[body].shadow_m, position, q))
        for look, subject in zip(self._looks, self._subjects, strict=True):
            self._draw_trails(subject, look, time_s)
        for piece in sorted(self._pieces(sampled), key=lambda p: -p.depth_m):  # NaN: draws nothing
            piece.draw(canvas)
        canvas.bottom_px = None
        self._draw_labels(sampled[0])
        self._draw_title(time_s, speed)
        if self._strip:
            self._strip.draw_moment(canvas, time_s)
        return canvas.rgb()

    def _stages(self) -> Sequence[Stage]:
        """Stages in the times shown."""
        if self._staged is None:
            return ()
        by = self._staged.shift_s
        stages = self._staged.recording.stages
        return [replace(s, start_s=s.start_s + by, end_s=s.end_s + by) for s in stages]

    def _choose_camera(self, time_s: np.ndarray) -> None:
        self._center = np.zeros(3)
        look = self._options
        everything = np.concatenate(
            [framed_points_enu_m(s, sample(s, time_s), look.follow) for s in self._subjects]
        )
        low, high = everything.min(axis=0), everything.max(axis=0)
        wider = np.clip(low[2], 0.0, _MOST_GROUND_M) * np.array([1.0, 1.0, 0.0])
        self._bounds = np.stack([low - wider, high + wider])
        self.camera = self._still = camera_on(
            everything, self._layout.scene_px, self._layout.height_px, look.azimuth_deg,
            look.elevation_deg, look.zoom,
        )  # fmt: skip

    def _draw_background(self) -> None:
        canvas, layout = self.canvas, self._layout
        if not self._options.follow:
            canvas.bottom_px = self._scene_bottom_px
            _draw_grid(canvas, self.camera, *self._bounds)
            canvas.bottom_px = None
        if self._scale:
            left = layout.width_px - _RIGHT_PX - layout.bar_px
            self._scale.draw(canvas, left, 30.0, layout.bar_px)
        if len(self._subjects) == 2:
            x, y = 60.0, 84.0 if layout.width_px < WIDE.width_px else 66.0
            x += canvas.text(x, y, self._subjects[0].name, 12.0, INK, bold=True)
            x += canvas.text(x, y, "  in colours,  ", 12.0, FAINT)
            x += canvas.text(x, y, self._subjects[1].name, 12.0, SECOND, bold=True)
            canvas.text(x, y, "  in olive", 12.0, FAINT)
        if self._strip:
            self._strip.draw(canvas)
        canvas.keep_background()

    def _pieces(self, sampled: Sequence[Sampled]) -> Iterator[Piece]:
        camera = self.camera
        for i, (its, look) in enumerate(zip(sampled, self._looks, strict=True)):
            for body, position, q in its.poses():
                if body in self._pulleys[i]:
                    rims = self._pulleys[i][body]
                    yield from pulley_pieces(camera, rims, position, q, look.alpha)
                shape = self._shapes[i].get(body)
                if isinstance(shape, BoxShape):
                    yield from _box_pieces(camera, shape, position, q, body, look)
                elif shape is not None:
                    yield from _drone_pieces(camera, shape, position, q, body, look)
            yield from _cable_pieces(camera, its, look)
        yield from _setpoint_pieces(camera, sampled[0], self._shapes[0])

    def _draw_trails(self, subject: Subject, look: Look, time_s: float) -> None:
        if self._options.trail_s <= 0.0:
            return
        times = np.linspace(time_s - self._options.trail_s, time_s, _TRAIL_POINTS)
        each = (_TRAIL_POINTS - 1) // _TRAIL_PIECES
        for body in subject.recording.bodies:
            at, _ = self.camera.project(subject.centre_at(body, times))
            for k in range(_TRAIL_PIECES):
                strength = 0.65 * (k + 1) / _TRAIL_PIECES
                part = at[k * each : (k + 1) * each + 1]
                self.canvas.line(part, look.colour(body), 1.8, strength, cap="butt")

    def _draw_labels(self, sampled: Sampled) -> None:
        """Names of the drones beside them, so that lines of the strip can be told."""
        seen, widths = {}, {}
        for body, position, q in sampled.poses():
            shape = self._shapes[0].get(body)
            outline = shape.outline_m if shape is not None else np.zeros((1, 3))
            area = _around(self.camera.project(world(outline, position, q))[0])
            if area is not None:
                seen[body] = area
                widths[body] = self.canvas.width_of(label(body), _LABEL_PX, True) + 2.0
        widths.pop(LOAD, None)
        cables = [
            square
            for cable in sampled.cables.values()
            for square in _along(self.camera.project(cable.points_enu_m[0])[0])
        ]
        for body, place in self._labels.place(widths, seen, cables).items():
            self.canvas.rectangle(*place[:2], widths[body], _LABEL_HEIGHT_PX, "white", 0.6)
            baseline = place.bottom - 3.5
            self.canvas.text(place.left + 1.0, baseline, label(body), _LABEL_PX, colour(body), True)

    def _draw_title(self, time_s: float, speed: float) -> None:
        name = ""
        if self._staged is not None:
            stage = stage_at(self._staged.recording, time_s - self._staged.shift_s)
            name = label(stage.name) if stage else ""
        width = self.canvas.text(60.0, 44.0, name or self._subjects[0].name, 22.0, INK, bold=True)
        below = self._layout.width_px < WIDE.width_px  # no room beside the name
        place = (60.0, 66.0) if below else (60.0 + width + 18.0, 44.0)
        text = f"t = {time_s:.2f} s" + (f"   {speed:g}× speed" if speed != 1.0 else "")
        self.canvas.text(*place, text, 13.0 if below else 15.0, FAINT)
