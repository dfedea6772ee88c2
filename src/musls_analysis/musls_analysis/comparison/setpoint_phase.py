"""Finds the phase of a periodic set-point from the values it was held at.

A set-point is sent a few times a second and held in between, so only its changes tell the time.
Where it is logged row by row, a value was sent after the last row that does not show it yet, and
less than one hold before the last row that shows it. So each value bounds the phase from both
sides, and the phase that breaks the bounds least is in the middle of what they leave: no later
than it was, neither at a high rate of logging nor where rows are further apart than the hold.
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
_STEEP = 0.85
"""Share of the amplitude up to which a value of a harmonic motion tells its time."""
_SHORTEST_HOLD_S = 1e-3
_AT_ONCE = 200_000
"""Sines that are looked at together."""
_RIDGE = 1e-9
"""Keeps the equations solvable at half the rate of the samples, where the sine vanishes."""


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


def circle_phase(setpoint: PoseTrack, name: str, rows_s: np.ndarray | None = None) -> Phase:
    """Phase of a horizontal circle: zero where the set-point is straight in +x of the centre.

    Args:
        setpoint: Set-points within the stage.
        name: Stage and recording, for messages.
        rows_s: Times of all rows of a log in which set-points are sampled (T,); None where the
            set-points carry the times of their changes.

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
        raise ConfigError(f"{name}: the load's set-points do not follow a circle at constant speed")
    origin_s = float(track.time_s[0] - first / rate)
    if rows_s is not None:
        origin_s, rate = _unbiased(angle, float(rate), origin_s, track.time_s, rows_s)
    return Phase(origin_s, 2.0 * np.pi / abs(rate), misfit / abs(rate))


def oscillation_phase(setpoint: PoseTrack, name: str, rows_s: np.ndarray | None = None) -> Phase:
    """Phase of a harmonic motion along a line: zero in the middle, going along the axis.

    The axis points to the side on which its greatest component is positive, e.g. +y.

    Args:
        setpoint: Set-points within the stage.
        name: Stage and recording, for messages.
        rows_s: See `circle_phase`.

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
    best = rates[int(np.argmin(_misfits(rates, t, s)))]
    step = 0.2 / t[-1]
    found = minimize_scalar(
        _misfit, bounds=(best - step, best + step), args=(t, s), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    rate = float(found.x)
    (sine, cosine, middle), misfit = _harmonic(rate, t, s)
    amplitude = np.hypot(sine, cosine)
    aside = np.sqrt(np.mean(np.sum((p - np.outer(s, axis)) ** 2, axis=1)))
    if max(misfit, aside) > LARGEST_MISFIT * amplitude or rate * t[-1] < np.pi:
        raise ConfigError(f"{name}: the load's set-points are no harmonic motion")
    origin_s = float(track.time_s[0] - np.arctan2(cosine, sine) / rate)
    if rows_s is not None:
        near = rate * (track.time_s - origin_s)
        angle = _angles((s - middle) / amplitude, near)
        origin_s, rate = _unbiased(angle, rate, origin_s, track.time_s, rows_s)
    return Phase(origin_s, 2.0 * np.pi / rate, np.sqrt(2.0) * misfit / (amplitude * rate))


def _angles(sine: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Angles of sines that lie next to given ones; NaN near the turning points."""
    steep = np.abs(sine) < _STEEP
    rising = np.arcsin(np.where(steep, sine, 0.0))
    angle = np.where(np.cos(near) > 0.0, rising, np.pi - rising)
    angle += 2.0 * np.pi * np.round((near - angle) / (2.0 * np.pi))
    return np.where(steep, angle, np.nan)


def _unbiased(
    angle: np.ndarray, rate: float, origin_s: float, seen_s: np.ndarray, rows_s: np.ndarray
) -> tuple[float, float]:
    """Origin and rate of an even motion from when its values can have been sent.

    Args:
        angle: Phase of each value, unwrapped; NaN where it says nothing (k,).
        rate: Rough rate [rad/s].
        origin_s: Rough time of phase zero.
        seen_s: First row that shows each value (k,).
        rows_s: All rows (T,).
    """
    after = np.searchsorted(rows_s, seen_s - 1e-9)  # rows before
    # Last row that shows it; how long the last one is shown, in the next stage, says nothing.
    until = np.append(after[1:] - 1, after[-1:])
    keep = np.isfinite(angle) & (after > 0) & (after < len(rows_s)) & (until >= after)
    low, high = rows_s[after[keep] - 1], rows_s[after[keep]]
    angle, last = angle[keep], rows_s[until[keep]]
    steps = np.abs(np.diff(angle) / rate)
    steps = steps[steps > _SHORTEST_HOLD_S]
    if len(steps) < _FEWEST_CHANGES:
        return origin_s, rate
    hold_s = float(np.quantile(steps, 0.05))
    gap = high - low
    low = np.maximum(low, last - hold_s)
    # The middles of the bounds have errors without a bias, early and late alike; those after a
    # drop-out may be large.
    weight = np.median(gap) / np.maximum(gap, np.median(gap))
    rate = float(1.0 / np.polyfit(angle, 0.5 * (low + high), 1, w=weight)[0])
    # The sum of all violations of low < origin + angle / rate < high is least at the median.
    ends = np.concatenate([low, high]) - np.tile(angle / rate, 2)
    return float(np.median(ends)), rate


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


def _misfits(rates: np.ndarray, t: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Squared misfit of each rate (k,), by normal equations: quick, and exact enough to choose."""
    found = []
    for some in np.array_split(rates, 1 + rates.size * t.size // _AT_ONCE):
        angle = np.outer(some, t)
        A = np.stack([np.sin(angle), np.cos(angle), np.ones_like(angle)], axis=1)  # (k, 3, T)
        gram = A @ A.transpose(0, 2, 1) + _RIDGE * len(t) * np.eye(3)
        right = A @ s
        factors = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
        found.append(s @ s - np.sum(factors * right, axis=1))
    return np.concatenate(found)


def _misfit(rate: float, t: np.ndarray, s: np.ndarray) -> float:
    return _harmonic(rate, t, s)[1]
