"""Hands subjects to rerun: a recording for its viewer, with a layout of views.

Entities: `world/...` the obstacles, `run/...` the first recording, `with/...` the one laid over it,
each with `load`, `drone_1`, ..., `cable_1`, ..., `setpoint/...`, `trail/...`; the plots
`tension/...`, `error/...`, `difference/...`; `phase`, `events` and `legend`. All lie on the time
line `time`, in the first recording's seconds. Importing this module raises a `MuslsError` where
rerun is not installed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote

import numpy as np
from matplotlib.colors import to_rgb

from musls_analysis.comparison.quantities import TENSION
from musls_analysis.figures.style import OBSTACLE, PULLEY_RIM, colour, label, styled
from musls_analysis.recordings.recording import LOAD, PoseTrack
from musls_analysis.scene import BoxOutline, Shape, Subject, sample, staged_subject
from musls_analysis.view import picture
from musls_analysis.view.chart import Series, TensionScale, curves, differences
from musls_control.child_processes import ending_with_us
from musls_description.config.errors import MuslsError, install_command, whole_file
from musls_description.system.obstacles import shown_faces, triangles

try:
    import rerun as rr
    import rerun.blueprint as rrb
except ImportError:
    raise MuslsError(
        f"the viewer needs rerun-sdk: {install_command('rerun-sdk')}; --png and --gif work without"
    ) from None

ROOTS = ("run", "with")
TIME = "time"
_TRAIL_S = 3.0
_TRAIL_STEP_S = 0.1
_CABLE_STEP_S = 0.04
"""Cables are sampled at most this often: the eye sees no more."""
_DISC_HEIGHT_M = 0.012
_LINE_M = 0.012
_OUTLINE_M = 0.003
_BESIDE_M = 5.0
"""Obstacles are shown up to so far beyond the flight."""


def save(subjects: Sequence[Subject], path: Path) -> None:
    """Write a file for rerun's viewer."""
    stream = _stream(subjects)
    # Opened here first: rerun only logs it when it cannot write.
    with whole_file(path) as work:
        work.open("wb").close()
        stream.save(work, default_blueprint=layout(subjects))
        log(stream, subjects)
        stream.flush()
        stream.disconnect()


def show(subjects: Sequence[Subject]) -> None:
    """Open the viewer; it goes on when this process ends (raises MuslsError: it cannot)."""
    stream = _stream(subjects)
    stream.connect_grpc(open_window(), default_blueprint=layout(subjects))
    log(stream, subjects)
    stream.flush()


def has_display() -> bool:
    """Whether a window can be opened."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET")
    return sys.platform != "linux" or any(os.environ.get(name) for name in names)


HOST = "127.0.0.1"
_START_S = 20.0
_SETTLE_S = 1.5
"""A viewer that finds no way to draw ends within this time, after it began to listen."""
_WINDOWS: list[subprocess.Popen[bytes]] = []
"""Viewers that go on when this process ends."""


def open_window() -> str:
    """Open the viewer's window, which outlives this process; the address to which data are sent.

    rerun's own function for that listens on all interfaces, and looks for its program on the PATH.

    Raises:
        MuslsError: There is no display, or the viewer does not open it.
    """
    others = "--web shows it in a browser, --out FILE writes a picture, film or page"
    if not has_display():
        raise MuslsError(f"no display for the viewer: {others}")
    (port,) = _free_ports(1)
    viewer = _started(["--port", str(port)], start_new_session=True)
    _WINDOWS.append(viewer)
    end_s = monotonic() + _SETTLE_S
    try:
        _wait_for(viewer, port)
        while viewer.poll() is None and monotonic() < end_s:
            sleep(0.05)
    except MuslsError:
        viewer.terminate()
    if viewer.poll() is not None:
        display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or "here"
        raise MuslsError(f"the viewer cannot open a window on display {display}: {others}")
    return f"rerun+http://{HOST}:{port}/proxy"


def _started(words: Sequence[str], *, start_new_session: bool = False) -> subprocess.Popen[bytes]:
    """Start rerun's own program, listening on loopback alone; without a session it ends with us."""
    from rerun_cli import __file__ as cli

    words = [str(Path(cli).with_name("rerun")), *words, "--bind", HOST]
    try:
        return subprocess.Popen(
            words if start_new_session else ending_with_us(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "RERUN_APP_ONLY": "true"},
            start_new_session=start_new_session,
        )
    except OSError as error:
        raise MuslsError(f"{words[0]} cannot be started: {error.strerror or error}") from None


@contextmanager
def serve(subjects: Sequence[Subject]) -> Iterator[str]:
    """Serve the viewer to browsers of this machine while the block runs; gives its address."""
    with tempfile.TemporaryDirectory(prefix="musls-view-") as folder:
        path = Path(folder) / "view.rrd"
        save(subjects, path)
        with web_viewer(str(path)) as (address, _):
            yield address


@contextmanager
def web_viewer(*files: str) -> Iterator[tuple[str, str]]:
    """The viewer as a page on this machine, and where data are sent to it: two addresses.

    rerun's own program does it: unlike rerun's functions it can be told to use loopback alone.
    """
    data_port, web_port = _free_ports(2)
    ports = ["--port", str(data_port), "--web-viewer-port", str(web_port)]
    server = _started([*files, "--serve-web", *ports])
    try:
        for port in (data_port, web_port):
            _wait_for(server, port)
        data = f"rerun+http://{HOST}:{data_port}/proxy"
        yield f"http://{HOST}:{web_port}?url={quote(data, safe='')}", data
    finally:
        server.terminate()
        server.wait()


def _free_ports(count: int) -> list[int]:
    """TCP ports that are free on loopback now."""
    with ExitStack() as probes:
        some = [probes.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in some]


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    """Wait until a server listens at a port (raises MuslsError: it does not)."""
    end_s = monotonic() + _START_S
    while server.poll() is None and monotonic() < end_s:
        try:
            socket.create_connection((HOST, port), 1.0).close()
        except OSError:
            sleep(0.05)
        else:
            return
    raise MuslsError(f"rerun does not serve at port {port} of {HOST}: --html writes a page instead")


def _stream(subjects: Sequence[Subject]) -> rr.RecordingStream:
    return new_stream(" and ".join(subject.name for subject in subjects))


def new_stream(name: str) -> rr.RecordingStream:
    """A stream of data for the viewer, which calls it by this name."""
    stream = rr.RecordingStream("musls")
    stream.send_recording_name(name)
    return stream


def layout(subjects: Sequence[Subject]) -> rrb.Blueprint:
    """The scene, plots of what the subjects have data for beside it, phase and colours below."""
    name = " and ".join(subject.name for subject in subjects)
    return arrange(name, list(_curves(subjects)), events=bool(subjects[0].recording.events))


PLOTS = {
    "difference": "distance between the two [m]",
    "tension": "cable tension at the load [N]",
    "height": "height [m]",
    "error": "distance to the reference [m]",
    "angle": "angle to the reference [deg]",
}
"""Titles of the plots, by entity."""


def arrange(
    name: str, plots: Sequence[str], *, events: bool, follow: bool = False
) -> rrb.Blueprint:
    """Views of a scene with some of `PLOTS`; with `follow` they show the newest data."""
    scene = rrb.Spatial3DView(
        origin="/",
        name=name,
        contents=["/world/**", "/run/**", "/with/**"],
        background=[250, 251, 252],
        line_grid=rrb.LineGrid3D(visible=True, spacing=1.0, color=[139, 152, 168, 120]),
    )
    below = rrb.TextDocumentView(origin="/phase", name="phase")
    if "tension" in plots:
        legend = rrb.Spatial2DView(origin="/legend", name="cable tension")
        below = rrb.Horizontal(below, legend)
    left_column = [scene, below]
    shares = [6, 1]
    if events:
        left_column.append(rrb.TextLogView(origin="/events", name="events"))
        shares.append(1)
    parts = [rrb.Vertical(*left_column, row_shares=shares)]
    if plots:
        views = [rrb.TimeSeriesView(origin=f"/{path}", name=PLOTS[path]) for path in plots]
        parts = [rrb.Horizontal(*parts, rrb.Vertical(*views), column_shares=[5, 3])]
    play = "following" if follow else None
    state = "collapsed" if follow else "expanded"
    panel = rrb.TimePanel(state=state, timeline=TIME, play_state=play)
    return rrb.Blueprint(*parts, panel, collapse_panels=True)


def log(stream: rr.RecordingStream, subjects: Sequence[Subject]) -> None:
    """Send everything of one or two subjects to a stream."""
    each, scale = picture.subject_styles(subjects)
    log_surroundings(stream, subjects[0], scale)
    for root, subject, look in zip(ROOTS, subjects, each, strict=False):
        log_bodies(stream, root, subject, look)
        for body in subject.recording.bodies:
            _send_trail(
                stream, f"{root}/trail/{body}", subject, body, _rgba(look.colour(body), 0.5)
            )
        send_motion(stream, root, subject, look)
        stream.set_time(TIME, duration=subject.end_s + 1e-3)
        stream.log(root, rr.Clear(recursive=True))  # else the last pose would stay for ever
    log_curves(stream, _curves(subjects))
    log_texts(stream, subjects)


def log_surroundings(
    stream: rr.RecordingStream, subject: Subject, scale: TensionScale | None
) -> None:
    """Send what stays as it is: which way is up, obstacles, colours of tensions."""
    stream.log("/", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    _log_obstacles(stream, subject)
    if scale:
        canvas = picture.new_canvas(320, 56, 2.0)
        with styled():
            scale.draw(canvas.figure.add_axes((0.22, 0.4, 0.74, 0.2)))
        canvas.draw()
        stream.log("legend", rr.Image(picture.pixels(canvas)), static=True)


def log_phase(stream: rr.RecordingStream, time_s: float, words: str) -> None:
    """Send the phase that begins."""
    stream.set_time(TIME, duration=time_s)
    stream.log("phase", rr.TextDocument(f"# {words}", media_type="text/markdown"))


def log_texts(stream: rr.RecordingStream, subjects: Sequence[Subject]) -> None:
    """Send phases and events."""
    staged = staged_subject(subjects) or subjects[0]
    for stage in staged.recording.stages:
        log_phase(stream, stage.start_s + staged.shift_s, label(stage.name))
    for event in subjects[0].recording.events:
        stream.set_time(TIME, duration=event.time_s + subjects[0].shift_s)
        stream.log("events", rr.TextLog(f"{event.kind}: {event.what}", level="WARN"))
    stream.reset_time()


def _log_obstacles(stream: rr.RecordingStream, subject: Subject) -> None:
    """The faces of obstacles, as far as they are near the flight, and their edges."""
    places = [track.position_enu_m for track in subject.recording.bodies.values()]
    low = np.min([np.nanmin(place, axis=0) for place in places], axis=0) - _BESIDE_M
    high = np.max([np.nanmax(place, axis=0) for place in places], axis=0) + _BESIDE_M
    shade = to_rgb(OBSTACLE)
    for name, faces in shown_faces(subject.recording.obstacles, low, high):
        corners, rows = triangles(faces)
        mesh = rr.Mesh3D(
            vertex_positions=corners,
            triangle_indices=rows,
            albedo_factor=_rgba(shade, picture.OBSTACLE_ALPHA),
        )
        stream.log(f"world/{name}", mesh, static=True)
        rings = [np.concatenate([face, face[:1]]) for face in faces]
        lines = rr.LineStrips3D(rings, colors=_rgba(shade), radii=_OUTLINE_M)
        stream.log(f"world/{name}/edges", lines, static=True)


def _tracks(
    root: str, subject: Subject, look: picture.SubjectStyle
) -> Iterator[tuple[str, bool, str, PoseTrack]]:
    """Path, whether it is a set-point, body and poses of everything that moves."""
    parts = [("", subject.recording.bodies), ("setpoint/", subject.recording.setpoints)]
    for part, tracks in parts[: 1 if look.second else 2]:  # two sets of outlines would hide more
        for body, track in tracks.items():
            yield f"{root}/{part}{body}", bool(part), body, track


def log_bodies(
    stream: rr.RecordingStream, root: str, subject: Subject, look: picture.SubjectStyle
) -> None:
    """Send the shapes of load, drones and set-points, from where each is first known."""
    shapes = subject.shapes
    pulleys = subject.pulley_rims
    for path, is_setpoint, body, track in _tracks(root, subject, look):
        stream.set_time(TIME, duration=float(track.time_s[0] + subject.shift_s))
        if body in shapes:
            _log_shape(stream, path, shapes[body], look.colour(body), outline=is_setpoint)
        if body in pulleys and not is_setpoint:
            rims = pulleys[body]
            rings = list(np.concatenate([rims, rims[:, :1]], axis=1))
            lines = rr.LineStrips3D(rings, colors=_rgba(to_rgb(PULLEY_RIM)), radii=_LINE_M)
            stream.log(f"{path}/pulleys", lines)
    stream.reset_time()


def send_motion(
    stream: rr.RecordingStream, root: str, subject: Subject, look: picture.SubjectStyle
) -> None:
    """Send poses of load, drones and set-points, and cables."""
    for path, _, body, track in _tracks(root, subject, look):
        poses = rr.Transform3D.columns(
            translation=subject.centre_enu_m(body, track),
            quaternion=track.or_level().orientation_wxyz[:, [1, 2, 3, 0]],
        )
        stream.send_columns(path, _times(track.time_s + subject.shift_s), poses)
    _send_cables(stream, root, subject, look)


def _log_shape(
    stream: rr.RecordingStream, path: str, shape: Shape, rgb: np.ndarray, outline: bool
) -> None:
    """A body below an entity that moves; an outline stands for a set-point."""
    if isinstance(shape, BoxOutline):
        low, high = shape.corners_m.min(axis=0), shape.corners_m.max(axis=0)
        box = rr.Boxes3D(
            centers=0.5 * (low + high),
            half_sizes=0.5 * (high - low),
            colors=_rgba(rgb),
            radii=_OUTLINE_M,
            fill_mode="majorwireframe" if outline else "solid",
        )
        stream.log(f"{path}/box", box)
        return
    if outline:
        lines = rr.LineStrips3D(shape.wire_m, colors=_rgba(rgb), radii=_OUTLINE_M)
        stream.log(f"{path}/outline", lines)
        return
    arms = list(shape.arms_m)
    gear = list(shape.gear_m)
    colours = [_rgba(0.7 * rgb)] * len(arms) + [_rgba(np.full(3, 0.3))] * len(gear)
    radii = [_LINE_M] * len(arms) + [0.5 * _LINE_M] * len(gear)
    stream.log(f"{path}/frame", rr.LineStrips3D(arms + gear, colors=colours, radii=radii))
    front = np.where(shape.front, 1.0, 0.6)
    discs = rr.Cylinders3D(
        centers=shape.hubs_m,
        lengths=[_DISC_HEIGHT_M] * len(arms),
        radii=[shape.rotor_radius_m] * len(arms),
        colors=[_rgba(rgb + (1.0 - share) * (1.0 - rgb)) for share in front],
        fill_mode="solid",
    )
    stream.log(f"{path}/rotors", discs)


def _rgba(rgb: Sequence[float] | np.ndarray, alpha: float = 1.0) -> np.ndarray:
    """Bytes (4,) of a colour (3,) and an opacity from 0 to 1."""
    return np.round(255.0 * np.append(rgb, alpha)).astype(np.uint8)


def _times(time_s: np.ndarray) -> list[Any]:
    return [rr.TimeColumn(TIME, duration=time_s)]


def _send_trail(
    stream: rr.RecordingStream, path: str, subject: Subject, body: str, shade: np.ndarray
) -> None:
    """The way of the last seconds, as one line for each moment."""
    time_s = subject.recording.bodies[body].time_s
    moments = np.arange(time_s[0], time_s[-1], _TRAIL_STEP_S) + subject.shift_s
    place = subject.centre_at(body, moments)
    count = round(_TRAIL_S / _TRAIL_STEP_S)
    strips = [place[max(0, k - count) : k + 1] for k in range(len(moments))]
    strips = [strip[np.isfinite(strip).all(axis=1)] for strip in strips]
    columns = rr.LineStrips3D.columns(
        strips=strips, colors=[shade] * len(strips), radii=np.full(len(strips), 0.006)
    )
    stream.send_columns(path, _times(moments), columns)


def _send_cables(
    stream: rr.RecordingStream, root: str, subject: Subject, look: picture.SubjectStyle
) -> None:
    load = subject.recording.bodies[LOAD]
    spacing_s = float(np.median(np.diff(load.time_s))) if len(load.time_s) > 1 else 1.0
    step_s = max(spacing_s, _CABLE_STEP_S)
    times = np.append(np.arange(subject.start_s, subject.end_s, step_s), subject.end_s)
    for name, cable in sample(subject, times).cables.items():
        finite = np.array([np.isfinite(points).all() for points in cable.points_enu_m])
        pieces = [cable.pieces(int(k)) for k in np.flatnonzero(finite)]
        counts = [len(some) for some in pieces]
        if not sum(counts):
            continue
        shades = look.cable_colours(cable.tension_n[finite])
        columns = rr.LineStrips3D.columns(
            strips=[strip for some in pieces for strip in some],
            colors=[_rgba(shade) for shade in np.repeat(shades, counts, axis=0)],
            radii=np.full(sum(counts), 0.006 if look.second else 0.01),
        ).partition(counts)
        stream.send_columns(f"{root}/{name}", _times(times[finite]), columns)


def _curves(subjects: Sequence[Subject]) -> dict[str, list[Series]]:
    """Curves for which there are data, by plot."""
    panels = {"difference": differences(subjects)} if len(subjects) == 2 else {}
    if coloured := next((s for s in subjects if s.has_tension), None):
        panels["tension"] = curves(coloured, TENSION)
    if subjects[0].recording.setpoints:
        panels["error"] = curves(subjects[0], "translational_error_m")
        panels["angle"] = curves(subjects[0], "geodesic_error_deg")
    return panels


def log_curves(stream: rr.RecordingStream, curves: Mapping[str, Sequence[Series]]) -> None:
    """Send curves by plot, see `PLOTS`."""
    for group, lines in curves.items():
        for series in lines:
            path = f"{group}/{series.name}"
            shade = _rgba(to_rgb(colour(series.name)))
            stream.log(path, rr.SeriesLines(colors=shade, names=label(series.name)), static=True)
            finite = np.isfinite(series.value)
            values = rr.Scalars.columns(scalars=series.value[finite])
            stream.send_columns(path, _times(series.time_s[finite]), values)
