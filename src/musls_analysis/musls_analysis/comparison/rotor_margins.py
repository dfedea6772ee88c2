"""Thrust margin that a flight has left: of the rotor that works hardest, in its worst second."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from musls_analysis.recordings.recording import Recording
from musls_description.system.slung_system import RigSystem


def least_margin(recording: Recording, system: RigSystem) -> tuple[float, str, float] | None:
    """Largest over needed thrust of the rotor that works hardest on average over a second."""
    worst: tuple[float, str, float] | None = None
    first_s = next((s.start_s for s in recording.stages if s.name in ("transit", "hold")), 0.0)
    for name, column, times_s in _rotor_shares(recording, system, first_s):
        rows = max(1, round(1.0 / float(np.median(np.diff(times_s)))))
        if len(column) < rows or not column.any():  # wrenches without rotors, which rest
            continue
        mean = np.convolve(column, np.ones(rows) / rows, "valid")
        k = int(mean.argmax())
        candidate = (1.0 / float(mean[k]), name, float(times_s[k]))
        worst = candidate if worst is None or candidate[0] < worst[0] else worst
    return worst


def _rotor_shares(
    recording: Recording, system: RigSystem, first_s: float
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Drone, thrust over largest thrust, and times of each rotor, from `first_s` on."""
    for number, drone in enumerate(system.drones, start=1):
        track = recording.rotors.get(f"drone_{number}")
        if track is None or len(track.time_s) < 2:
            continue
        most = [rotor.speed_max_rad_s for rotor in drone.rotors]
        later = track.time_s >= first_s
        share = (np.asarray(track.speed_rad_s)[later] / most) ** 2
        if later.sum() > 1:
            for column in share.T:
                yield f"drone_{number}", column, track.time_s[later]
