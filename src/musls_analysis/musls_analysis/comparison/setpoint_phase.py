"""Finds the phase of a periodic set-point from the values it was held at.

A set-point is sent a few times a second and held in between, so only its changes tell the time.
Where it was logged at a lower rate than it was sent, a change is seen up to one logging interval
late; the phase is late by the mean of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from musls_analysis.recordings.recording import PoseTrack
from musls_description.errors import ConfigError

LARGEST_MISFIT = 0.1
"""Root-mean-square misfit, relative to radius or amplitude, up to which a motion is accepted."""
_FEWEST_CHANGES = 6


@dataclass(frozen=True)
class Phase:
    """A motion that repeats evenly: phase 2 pi (t - origin_s) / period_s.

    Attributes:
        origin_s: A time of phase zero.
        period_s: Length of one period.
        misfit_s: Root-mean-square distance of the set-points from it, as time along the motion.
    """

    origin_s: float
    period_s: float
    misfit_s: float


def circle_phase(setpoint: PoseTrack, name: str) -> Phase:
    """Phase of a horizontal circle: zero where the set-point is straight in +x of the centre.

    Args:
        setpoint: Set-points within the stage.
        name: Stage and recording, for messages.

    Raises:
        ConfigError: The set-points do not lie on a circle that is gone round evenly.
    """
    track = _changes(setpoint, name)
    x, y = track.position_enu_m[:, 0], track.position_enu_m[:, 1]
    # Kasa's fit: x^2 + y^2 = 2 a x + 2 b y + c.
    A = np.column_stack([2.0 * x, 2.0 * y, np.ones_like(x)])
    (a, b, c), *_ = np.linalg.lstsq(A, x**2 + y**2, rcond=None)
    radius = np.sqrt(max(c + a**2 + b**2, 0.0))
    off = np.sqrt(np.mean((np.hypot(x - a, y - b) - radius) ** 2))
    angle = np.unwrap(np.arctan2(y - b, x - a))
    t = track.time_s - track.time_s[0]
    rate, first = np.polyfit(t, angle, 1)
    misfit = np.sqrt(np.mean((angle - first - rate * t) ** 2))
    too_short = abs(angle[-1] - angle[0]) < 0.5 * np.pi
    if too_short or off > LARGEST_MISFIT * radius or misfit > LARGEST_MISFIT * 2.0 * np.pi:
        raise ConfigError(f"{name}: the load's set-points do not go round a circle evenly")
    period_s = 2.0 * np.pi / abs(rate)
    return Phase(track.time_s[0] - first / rate, period_s, misfit / abs(rate))


def oscillation_phase(setpoint: PoseTrack, name: str) -> Phase:
    """Phase of a harmonic motion along a line: zero in the middle, going along the axis.

    The axis points to the side on which its greatest component is positive, e.g. +y.

    Args:
        setpoint: Set-points within the stage.
        name: Stage and recording, for messages.

    Raises:
        ConfigError: The set-points are no harmonic motion.
    """
    track = _changes(setpoint, name)
    p = track.position_enu_m - track.position_enu_m.mean(axis=0)
    axis = np.linalg.svd(p, full_matrices=False)[2][0]
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    t, s = track.time_s - track.time_s[0], p @ axis
    fastest = np.pi / max(float(np.median(np.diff(t))), 1e-6)
    rates = np.arange(0.5 * np.pi / t[-1], fastest, 0.2 / t[-1])
    best = rates[int(np.argmin([_misfit(rate, t, s) for rate in rates]))]
    step = 0.2 / t[-1]
    found = minimize_scalar(
        _misfit, bounds=(best - step, best + step), args=(t, s), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    rate = float(found.x)
    (sine, cosine, _), misfit = _harmonic(rate, t, s)
    amplitude = np.hypot(sine, cosine)
    aside = np.sqrt(np.mean(np.sum((p - np.outer(s, axis)) ** 2, axis=1)))
    if max(misfit, aside) > LARGEST_MISFIT * amplitude or rate * t[-1] < np.pi:
        raise ConfigError(f"{name}: the load's set-points are no harmonic motion")
    origin_s = float(track.time_s[0] - np.arctan2(cosine, sine) / rate)
    return Phase(origin_s, 2.0 * np.pi / rate, np.sqrt(2.0) * misfit / (amplitude * rate))


def _changes(setpoint: PoseTrack, name: str) -> PoseTrack:
    track = setpoint.changes()
    if len(track.time_s) < _FEWEST_CHANGES:
        raise ConfigError(
            f"{name}: the load's set-point changes fewer than {_FEWEST_CHANGES} times"
        )
    return track


def _harmonic(rate: float, t: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, float]:
    """Factors of sine, cosine and one, and the root-mean-square misfit."""
    A = np.column_stack([np.sin(rate * t), np.cos(rate * t), np.ones_like(t)])
    factors, *_ = np.linalg.lstsq(A, s, rcond=None)
    return factors, float(np.sqrt(np.mean((A @ factors - s) ** 2)))


def _misfit(rate: float, t: np.ndarray, s: np.ndarray) -> float:
    return _harmonic(rate, t, s)[1]
