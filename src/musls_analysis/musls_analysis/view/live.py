"""Shows a flight in rerun's viewer while it flies; a `MuslsError` where rerun is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from musls_analysis.comparison.quantities import TENSION
from musls_analysis.recordings.bag import recording_from
from musls_analysis.scene import Subject
from musls_analysis.view import rerun_log
from musls_analysis.view.chart import TensionScale, curves, round_up
from musls_analysis.view.picture import SubjectStyle
from musls_description.config.errors import MuslsError
from musls_sim.recording.recorder import MemoryRecorder, RowStore
from musls_sim.recording.signals import STAGE, Asked, Rate
from musls_sim.session.session import Session

if TYPE_CHECKING:
    import rerun as rr

SEND_EVERY_S = 0.1
"""Real time between two packets for the viewer."""

RATE_HZ = 50.0
SHAPE_RATE_HZ = 25.0
"""Poses and cable shapes a second of flight: the eye sees no more."""

_WEIGHTS_SHOWN = 3.0
"""The colours of the tensions end at so many times a cable's share of the weight."""

RUN = rerun_log.ROOTS[0]


@contextmanager
def open_viewer(name: str, before: str) -> Iterator[tuple[rr.RecordingStream, str | None]]:
    """A stream to rerun's window, or where none can be opened to a page on this machine.

    Gives the page's address, too; the page goes with the block, the window stays. Until the flight
    begins it says `before`.
    """
    stream = rerun_log.new_stream(name)
    views = rerun_log.arrange(name, ["tension", "height"], events=True, follow=True)
    try:
        window = rerun_log.open_window()
    except MuslsError:  # no display, or one that cannot be opened
        window = None
    if window is not None:
        stream.connect_grpc(window, default_blueprint=views)
        rerun_log.log_phase(stream, 0.0, before)
        yield stream, None
        return
    with rerun_log.web_viewer() as (page, data):
        stream.connect_grpc(data, default_blueprint=views)
        rerun_log.log_phase(stream, 0.0, before)
        try:
            yield stream, page
        finally:
            stream.disconnect()


class LiveView(MemoryRecorder):
    """Sends what it has recorded to the viewer, again and again, and forgets it."""

    def __init__(self, session: Session, stream: rr.RecordingStream, share_n: float) -> None:
        """`share_n`: weight that hangs on a cable, for the colours."""
        super().__init__(
            session.scenario.system,
            step_period_s=session.plant.period_s,
            rate_hz=RATE_HZ,
            shape_rate_hz=SHAPE_RATE_HZ,
            asked=Asked([sensor.readings for sensor in session.scenario.sensors]),
        )
        self._name = session.scenario.name
        self._stream = stream
        self._next_s = 0.0
        self._obstacles = session.scenario.world.surfaces
        self._look = SubjectStyle(scale=TensionScale(round_up(max(_WEIGHTS_SHOWN * share_n, 1.0))))
        self._visible_names: set[str] = set()

    def _write_if_due(self, time_s: float) -> None:
        if perf_counter() >= self._next_s:
            self._send()
            self._next_s = perf_counter() + SEND_EVERY_S

    def _send(self) -> None:
        if not self.rows[Rate.STATE].rows:
            return
        recording = replace(recording_from(self, self._name), obstacles=self._obstacles)
        subject = Subject(recording, self.system, self._name)
        if not self._visible_names:
            rerun_log.log_surroundings(self._stream, subject, self._look.scale)
        names = {*recording.bodies, *(f"setpoint/{body}" for body in recording.setpoints)}
        if names - self._visible_names:
            rerun_log.log_bodies(self._stream, RUN, subject, self._look)
            self._visible_names |= names
        rerun_log.send_motion(self._stream, RUN, subject, self._look)
        panels = {"tension": curves(subject, TENSION), "height": curves(subject, "z_m")}
        rerun_log.log_curves(self._stream, panels)
        rerun_log.log_texts(self._stream, [subject])
        self._forget()

    def _forget(self) -> None:
        """Keep the last row of each kind and the stage, so that the next packet continues them."""
        for rate, rows in self.rows.items():
            if not rows.rows:
                continue
            layout = self.layouts[rate]
            last = rows.rows - 1
            self.rows[rate] = RowStore(layout.shapes, layout.dtypes)
            stamps = rows.stamps_ns(last)
            columns = rows.columns(last)
            self.rows[rate].extend(stamps.tolist(), *columns.values())
        self.texts = {topic: texts[-1:] * (topic == STAGE) for topic, texts in self.texts.items()}

    def close(self) -> None:
        """Send the rest."""
        self._send()
        self._stream.flush()
