"""One picture of the scene at a moment: ground, bodies, set-points, trails, scales, strip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from musls_analysis.figures.style import FAINT, INK, colour, label
from musls_analysis.recordings.recording import DEFAULT_GAP_LIMIT_S, LOAD, Stage, resample
from musls_analysis.view import bodies
from musls_analysis.view.align import stage_at, staged_subject
from musls_analysis.view.bodies import Look, Piece
from musls_analysis.view.camera import camera_on
from musls_analysis.view.canvas import Canvas
from musls_analysis.view.chart import StripPlot, strip_of
from musls_analysis.view.framing import framed_points_enu_m, outline_m
from musls_analysis.view.ground import draw_grid, draw_shadow
from musls_analysis.view.labels import HEIGHT_PX as LABEL_HEIGHT_PX
from musls_analysis.view.labels import LabelPlacer, Rectangle, along, around
from musls_analysis.view.layout import STRIP_ROOM_PX, WIDE, Layout
from musls_analysis.view.legend import draw_names, draw_tension_bar
from musls_analysis.view.sampled import Sampled, sample
from musls_analysis.view.subject import Subject
from musls_analysis.view.tension_scale import has_tension, tension_scale
from musls_analysis.view.wheels import wheel_pieces, wheel_rims

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
        self._wheels = [wheel_rims(s) for s in subjects]
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
                draw_shadow(self.canvas, self.camera, bodies.world(points, position, q))
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
                if body in self._wheels[i]:
                    rims = self._wheels[i][body]
                    yield from wheel_pieces(self.camera, rims, position, q, look.alpha)
                if body in boxes:
                    yield from bodies.box_pieces(self.camera, boxes[body], position, q, body, look)
                elif body in drones:
                    shape = drones[body]
                    yield from bodies.drone_pieces(self.camera, shape, position, q, body, look)
            yield from bodies.cable_pieces(self.camera, its, 0, look)
        yield from bodies.setpoint_pieces(self.camera, sampled[0], 0, *self._shapes[0])

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
            outline = bodies.world(outline_m(body, *self._shapes[0]), position, q)
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
            self.canvas.rectangle(*place[:2], widths[body], LABEL_HEIGHT_PX, "white", 0.6)
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
