"""What the spatial figures share: the range to show and a few moments to draw the cables at."""

from __future__ import annotations

import numpy as np

from musls_analysis.recordings.recording import Recording, main_stages, parted_s, pieces_of

SNAPSHOTS = 5
"""Odd and prime: after whole turns of a periodic flight the moments do not coincide."""


def bounds_enu_m(recording: Recording) -> np.ndarray:
    """Lowest and highest corner that hold all bodies and set-points, with a margin (2, 3)."""
    tracks = [*recording.bodies.values(), *recording.setpoints.values()]
    low = np.min([np.nanmin(t.position_enu_m, axis=0) for t in tracks], axis=0)
    high = np.max([np.nanmax(t.position_enu_m, axis=0) for t in tracks], axis=0)
    margin = 0.04 * np.max(high - low) + 0.05
    return np.stack([low - margin, high + margin])


def snapshot_times_s(recording: Recording) -> np.ndarray:
    """Moments spread over the longest main stage; the last one is not its end (K,)."""
    stage = max(main_stages(recording.stages), key=lambda s: s.duration_s)
    return np.linspace(stage.start_s, stage.end_s, SNAPSHOTS, endpoint=False)


def cables_at(recording: Recording, time_s: float) -> dict[str, list[np.ndarray]]:
    """Lines of each cable at the sample next to a time, one if it is whole, (points, 3) each."""
    shapes = {}
    parts = time_s >= parted_s(recording.events)
    for name, cable in recording.cables.items():
        if len(cable.shape_time_s):
            index = int(np.argmin(np.abs(cable.shape_time_s - time_s)))
            shape = cable.shape_enu_m[index]
            shapes[name] = pieces_of(shape) if parts else [shape]
    return shapes


def position_at(recording: Recording, body: str, time_s: float) -> np.ndarray:
    """Position of a body at the sample next to a time (3,)."""
    track = recording.bodies[body]
    return track.position_enu_m[int(np.argmin(np.abs(track.time_s - time_s)))]
