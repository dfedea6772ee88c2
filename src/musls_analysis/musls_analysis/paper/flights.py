"""What the seed paper reports of its own simulator (Merton et al., Tables II and III)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_analysis.comparison.cycles import CutStage, Cycle
from musls_analysis.recordings.recording import LOAD, PoseTrack
from musls_description.errors import ConfigError
from musls_description.rotations import yaw_of

TABLE_III: dict[str, dict[str, tuple[float, float]]] = {
    "circle": {
        "load": (67.8, 9.7),
        "drone_1": (74.8, 1.7),
        "drone_2": (68.3, 1.8),
        "drone_3": (204.1, 2.1),
    },
    "shm": {
        "load": (118.5, 11.4),
        "drone_1": (95.1, 4.1),
        "drone_2": (118.0, 3.0),
        "drone_3": (110.5, 2.6),
    },
    "engage": {
        "load": (38.7, 17.2),
        "drone_1": (78.0, 1.3),
        "drone_2": (43.5, 1.6),
        "drone_3": (132.4, 1.4),
    },
}
"""Translational [mm] and geodesic [deg] error by stage and body."""

FIRST_CYCLES_DROPPED = {"circle": 1, "shm": 2, "engage": 0}
"""Cycles at the start of a stage that its authors leave out (their processing scripts)."""

# ---------- The motion that set-points describe: radius, speed, amplitude, heights, times.

Array = NDArray[np.float64]

LENGTH_M, ANGLE_RAD, SHARE = 0.01, 0.02, 0.01
"""Differences of places, angles and periods (as a share) that set-points of logs do not tell."""
_MOVED_M, _TURNED_RAD = 1e-3, 0.02


@dataclass(frozen=True)
class Found:
    """A field of a trajectory.

    Attributes:
        value: A number, or a point.
        known_to: Differences up to this are not told apart.
    """

    value: float | tuple[float, ...]
    known_to: float

    def differs(self, other: float | tuple[float, ...]) -> bool:
        """Whether another value is surely not this one."""
        return bool(np.max(np.abs(np.subtract(self.value, other))) > self.known_to)


def motion_of(stage: str, cut: CutStage) -> dict[str, Found]:
    """Fields of the stage's trajectory as its set-points say.

    Args:
        stage: "circle", "shm" or "engage".
        cut: Its cycles.

    Returns:
        By the field's name; fields that the recording does not tell are left out.

    Raises:
        ConfigError: A circle is flown clockwise, which no stage does.
    """
    if stage not in _READERS or LOAD not in cut.recording.setpoints:
        return {}
    return _READERS[stage](cut)


def update_rate(cut: CutStage) -> Found | None:
    """How often the set-points of a periodic stage are updated [Hz], where the rows tell it."""
    held = _within(cut)
    if not cut.periodic or len(held.time_s) < 8:
        return None
    holds = np.diff(held.time_s)
    rows = np.diff(cut.recording.time_s) if cut.recording.sampled_setpoints else np.zeros(1)
    hold = float(np.median(holds))
    if np.median(rows) > 0.6 * hold:
        return None  # changes are missed
    return Found(round(1.0 / hold, 2), 0.1 / hold)


def _circle(cut: CutStage) -> dict[str, Found]:
    held = _within(cut)
    x, y, z = held.position_enu_m.T
    rows = np.column_stack([2.0 * x, 2.0 * y, np.ones_like(x)])
    (a, b, c), *_ = np.linalg.lstsq(rows, x**2 + y**2, rcond=None)
    radius = float(np.sqrt(c + a**2 + b**2))
    angle = np.unwrap(np.arctan2(y - b, x - a))
    if angle[-1] < angle[0]:
        raise ConfigError(
            f"{cut.recording.source}: the load flies the circle clockwise, but stage circle is "
            "flown counter-clockwise: turn the axes of the recording"
        )
    speed = 2.0 * np.pi * radius / cut.period_s
    return {
        "radius_m": Found(round(radius, 4), LENGTH_M),
        "speed_m_s": Found(round(speed, 4), SHARE * speed),
        "height_m": Found(round(float(np.median(z)), 4), LENGTH_M),
        "center_m": Found((round(float(a), 4), round(float(b), 4)), LENGTH_M),
    }


def _shm(cut: CutStage) -> dict[str, Found]:
    held = _within(cut)
    p = held.position_enu_m
    axis = np.linalg.svd(p - p.mean(axis=0), full_matrices=False)[2][0]
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    along = p @ axis
    omega = 2.0 * np.pi / cut.period_s
    phase = omega * (held.time_s - cut.cycles[0].start_s)
    rows = np.column_stack([np.sin(phase), np.cos(phase), np.ones_like(phase)])
    (sine, cosine, middle), *_ = np.linalg.lstsq(rows, along, rcond=None)
    amplitude = float(np.hypot(sine, cosine))
    place = p.mean(axis=0) + axis * (middle - np.mean(along))
    # Times that are known to a row only blur the amplitude by a few per cent.
    blur = max(LENGTH_M, 0.05 * amplitude)
    yaw = _mean_angle(yaw_of(held.orientation_wxyz))
    return {
        "amplitude_m": Found(round(amplitude, 4), blur),
        "omega_rad_s": Found(round(omega, 5), SHARE * omega),
        "axis_yaw_rad": Found(round(float(np.arctan2(axis[1], axis[0])), 4), ANGLE_RAD),
        "yaw_rad": Found(round(yaw, 4), ANGLE_RAD),
        "height_m": Found(round(float(np.median(p[:, 2])), 4), LENGTH_M),
        "center_m": Found((round(float(place[0]), 4), round(float(place[1]), 4)), blur),
    }


def _engage(cut: CutStage) -> dict[str, Found]:
    setpoint = cut.recording.setpoints[LOAD]
    t, p, yaw = setpoint.time_s, setpoint.position_enu_m, yaw_of(setpoint.orientation_wxyz)
    rows: dict[str, list[float]] = {}
    for cycle in cut.cycles:
        inside = (t >= cycle.start_s - 1e-6) & (t < cycle.end_s - 1e-6)
        if not inside.any():
            continue
        first = int(np.flatnonzero(inside)[0])
        found = {"height_m": float(p[first, 2])}
        if first > 0 and p[first - 1, 2] < p[first, 2]:
            found["rest_height_m"] = float(p[first - 1, 2])
        found["yaw_rad"] = float(yaw[first])
        found |= _turn_back(t[inside], np.unwrap(yaw[inside]), cycle)
        for name, value in found.items():
            rows.setdefault(name, []).append(value)
    here = {name: float(np.median(values)) for name, values in rows.items()}
    # Two rows: one at each end of a time.
    late = 2.0 * float(np.median(np.diff(cut.recording.time_s)))
    known = {"height_m": LENGTH_M, "rest_height_m": LENGTH_M, "yaw_rad": ANGLE_RAD}
    centre = np.median(p[[int(np.searchsorted(t, c.start_s)) for c in cut.cycles], :2], axis=0)
    result = {
        name: Found(round(value, 4), known.get(name, max(late, 0.3)))
        for name, value in here.items()
    }
    result["center_m"] = Found((round(float(centre[0]), 4), round(float(centre[1]), 4)), LENGTH_M)
    return result


def _turn_back(t: Array, yaw: Array, cycle: Cycle) -> dict[str, float]:
    """Times for which the yaw is held, goes back, and is held again, by the line in between."""
    first, last = float(yaw[0]), float(yaw[-1])
    if abs(last - first) < 5.0 * _TURNED_RAD:
        return {}
    share = (yaw - first) / (last - first)
    between = (share > 0.1) & (share < 0.9)
    if between.sum() < 3:
        return {}
    slope, start = np.polyfit(share[between], t[between], 1)
    begins, ends = float(start), float(start + slope)
    if slope <= 0.0 or begins < cycle.start_s or ends > cycle.end_s:
        return {}
    return {
        "yaw_hold_s": begins - cycle.start_s,
        "yaw_return_s": ends - begins,
        "hold_s": cycle.end_s - ends,
    }


_READERS: Mapping[str, Callable[[CutStage], dict[str, Found]]] = {
    "circle": _circle,
    "shm": _shm,
    "engage": _engage,
}


def _within(cut: CutStage) -> PoseTrack:
    """Changes of the load's set-point from the first to the last cycle."""
    held = cut.recording.setpoints[LOAD].changes()
    inside = (held.time_s >= cut.cycles[0].start_s) & (held.time_s < cut.cycles[-1].end_s)
    return PoseTrack(
        held.time_s[inside], held.position_enu_m[inside], held.orientation_wxyz[inside]
    )


def _mean_angle(angles: Array) -> float:
    return float(np.angle(np.mean(np.exp(1j * angles))))
