"""Pictures of the worlds of an environment, by the view of recordings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_analysis.recordings.recording import CableTrack, PoseTrack, Recording
from musls_analysis.view.picture import Picture, PictureOptions
from musls_analysis.view.scene import Subject
from musls_description.arrays import Array
from musls_description.system import SlungLoadSystem
from musls_sim.batch.batch import Batch

Row = tuple[float, Array, Array, Array]
"""Time, motion, tensions, goal."""


class Film:
    """Keeps the present episode of each world and draws where it is; cables are drawn straight."""

    def __init__(
        self, batch: Batch, goal_enu_m: Array, system: SlungLoadSystem, duration_s: float
    ) -> None:
        self._batch, self._goal_enu_m = batch, goal_enu_m
        self._system, self._duration_s = system, duration_s
        self._kept: list[list[Row]] = [[] for _ in range(batch.worlds)]

    def begin(self, worlds: NDArray[np.intp]) -> None:
        """Forget what these worlds did."""
        for i in worlds:
            self._kept[i].clear()
            self._note(i)

    def note(self) -> None:
        """Keep where all worlds are."""
        for i, time_s in enumerate(self._batch.time_s):
            if not self._kept[i] or time_s > self._kept[i][-1][0]:
                self._note(i)

    def _note(self, i: int) -> None:
        batch, goal = self._batch, self._goal_enu_m
        self._kept[i].append(
            (batch.time_s[i], batch.motion[i].copy(), batch.tension_n[i].copy(), goal[i].copy())
        )

    def draw(self) -> tuple[Array, ...]:
        """Pictures of all worlds, (height, width, 3) bytes each."""
        return tuple(self._draw(kept) for kept in self._kept)

    def _draw(self, kept: list[Row]) -> Array:
        time_s = np.array([row[0] for row in kept])
        motion, tension_n, goal = (np.array([row[k] for row in kept]) for k in (1, 2, 3))
        bodies = ["load", *(f"drone_{i + 1}" for i in range(self._batch.n_drones))]
        tracks = {
            name: PoseTrack(time_s, motion[:, i, 0:3], motion[:, i, 6:10])
            for i, name in enumerate(bodies)
        }
        cables = {
            f"cable_{i + 1}": CableTrack(time_s, tension_n[:, i], time_s[:0])
            for i in range(tension_n.shape[1])
        }
        upright = np.tile([1.0, 0.0, 0.0, 0.0], (len(kept), 1))
        recording = Recording(tracks, {"load": PoseTrack(time_s, goal, upright)}, cables)
        subject = Subject(recording, self._system, "environment")
        window = (0.0, max(self._duration_s, time_s[-1]))
        shown = PictureOptions(follow=True)
        return Picture([subject], window, shown, framed_s=(0.0, 0.0)).draw(time_s[-1])
