"""Time series that a sweep keeps of a run: poses, set-points, errors, tensions.

Kept are times, poses and set-points as 32-bit numbers, compressed (a load's minute at 50 Hz takes
about 100 kB); angles and errors are worked out when asked for.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_analysis.comparison.errors import geodesic_error_rad, translational_error_m
from musls_analysis.recordings.recording import Recording
from musls_description.rotations import roll_pitch_yaw, wrapped

Series = Mapping[str, NDArray]
"""Arrays as kept: "load.time_s", "load.pose", "load.setpoint", "cable_1.tension_n", ..."""

POSE_SIGNALS = ("x_m", "y_m", "z_m", "roll_deg", "pitch_deg", "yaw_deg")
ERROR_SIGNALS = ("translational_error_m", "geodesic_error_deg")
CABLE_SIGNALS = ("tension_n",)


def signal_names(bodies: Iterable[str]) -> list[str]:
    """All signals of bodies and cables."""
    return [
        f"{body}.{kind}"
        for body in sorted(bodies)
        for kind in (
            CABLE_SIGNALS if body.startswith("cable_") else (*POSE_SIGNALS, *ERROR_SIGNALS)
        )
    ]


def extract(recording: Recording, names: Iterable[str]) -> dict[str, NDArray]:
    """Take what is kept out of a recording.

    Args:
        recording: The flight.
        names: Bodies and cables; those that it has not are left out.
    """
    kept: dict[str, NDArray] = {}
    for name in names:
        if name in recording.bodies:
            track = recording.bodies[name]
            kept[f"{name}.time_s"] = track.time_s
            kept[f"{name}.pose"] = np.hstack([track.position_enu_m, track.orientation_wxyz])
            if name in recording.setpoints:
                held = recording.setpoints[name].held_at(track.time_s)
                kept[f"{name}.setpoint"] = np.hstack([held.position_enu_m, held.orientation_wxyz])
        elif name in recording.cables:
            kept[f"{name}.time_s"] = recording.cables[name].time_s
            kept[f"{name}.tension_n"] = recording.cables[name].tension_n[:, 0]
    return kept


def pack(series: Series) -> bytes:
    """Compress."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: np.asarray(v, np.float32) for name, v in series.items()}
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def unpack(data: bytes) -> Series:
    """Inverse of `pack`, up to the digits of a 32-bit number."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name].astype(float) for name in arrays.files}


def signal(series: Series, name: str) -> tuple[NDArray, NDArray, NDArray] | None:
    """One signal.

    Args:
        series: As kept.
        name: E.g. "load.yaw_deg"; angles are unwrapped.

    Returns:
        Time, values, set-point (NaN without one), (T,) each; None if the run has it not.
    """
    body, _, kind = name.partition(".")
    time = series.get(f"{body}.time_s")
    if time is None:
        return None
    if kind in CABLE_SIGNALS:
        values = series.get(name)
        return None if values is None else (time, values, np.full(len(time), np.nan))
    pose = series.get(f"{body}.pose")
    if pose is None:
        return None
    wanted = series.get(f"{body}.setpoint", np.full_like(pose, np.nan))
    if kind in ERROR_SIGNALS:
        return time, _error(kind, pose, wanted), np.zeros(len(time))
    k = POSE_SIGNALS.index(kind)
    if k < 3:
        return time, pose[:, k], wanted[:, k]
    angle = np.unwrap(roll_pitch_yaw(pose[:, 3:])[:, k - 3])
    target = angle + wrapped(roll_pitch_yaw(wanted[:, 3:])[:, k - 3] - angle)
    return time, np.degrees(angle), np.degrees(target)


def _error(kind: str, pose: NDArray, wanted: NDArray) -> NDArray:
    if kind == "translational_error_m":
        return translational_error_m(pose[:, :3], wanted[:, :3])
    return np.degrees(geodesic_error_rad(pose[:, 3:], wanted[:, 3:]))
