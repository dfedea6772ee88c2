"""Paths and inputs over time, evaluated period by period."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BPoly, CubicHermiteSpline, CubicSpline, PPoly

from musls_description.errors import ConfigError
from musls_sim.driving.spec import AnchorPath, AnchorRecording

Array = NDArray[np.float64]

ROUNDING_S = 1e-9

COLUMNS = ("time_s", "x_enu_m", "y_enu_m", "z_enu_m")
"""Of a recorded motion."""


class PathMotion:
    """Position, velocity and acceleration of a place along piecewise polynomials."""

    def __init__(self, pieces: PPoly, offset_m: Array) -> None:
        """Keep the polynomials.

        Args:
            pieces: Position over time, (3,) each.
            offset_m: Added to it, (3,).
        """
        self._derivatives = (pieces, pieces.derivative(), pieces.derivative(2))
        self._knots, self._offset = pieces.x, offset_m

    def ends(self, begin_s: float, end_s: float, out: Array) -> None:
        """Motion at the begin and at the end of a period.

        At a knot where the acceleration jumps, each end takes the side within the period.

        Args:
            begin_s: Begin.
            end_s: End.
            out: Result: position, velocity, acceleration at both, (2, >= 9).
        """
        for row, time_s, side in ((0, begin_s, 1.0), (1, end_s, -1.0)):
            out[row, :9] = self._at(time_s, side)
        out[:, :3] += self._offset

    def _at(self, time_s: float, side: float) -> Array:
        first, last = self._knots[0], self._knots[-1]
        inside = min(max(time_s, first), last)
        found = np.zeros((3, 3))
        if (first < time_s < last) or (time_s == first and side > 0) or (time_s == last > first):
            k = np.searchsorted(self._knots, inside + side * ROUNDING_S, side="right") - 1
            k = min(max(int(k), 0), len(self._knots) - 2)
            dt = inside - self._knots[k]
            for row, part in zip(found, self._derivatives, strict=True):
                for coefficient in part.c[:, k]:
                    row[:] = row * dt + coefficient
        else:
            found[0] = self._derivatives[0](inside)
        flat: Array = found.ravel()
        return flat


def path_motion(drive: AnchorPath | AnchorRecording, place_m: Sequence[float]) -> PathMotion:
    """Make the motion of an anchor.

    Args:
        drive: Its path or recording.
        place_m: Where it is at the start, (3,).

    Raises:
        ConfigError: A file that cannot be read.
    """
    offset = np.array(place_m, float) if drive.relative else np.zeros(3)
    if isinstance(drive, AnchorRecording):
        return PathMotion(_read_spline(drive.file), offset)
    time, position = np.array(drive.time_s), np.array(drive.position_enu_m)
    if len(time) == 1:
        time, position = np.array([time[0], time[0] + 1.0]), np.repeat(position, 2, axis=0)
        return PathMotion(CubicHermiteSpline(time, position, 0.0 * position), offset)
    velocity = np.zeros_like(position)
    if drive.velocity_enu_m_s is not None:
        velocity = np.array(drive.velocity_enu_m_s)
    if drive.acceleration_enu_m_s2 is None:
        return PathMotion(CubicHermiteSpline(time, position, velocity), offset)
    knots = np.stack([position, velocity, np.array(drive.acceleration_enu_m_s2)], axis=1)
    return PathMotion(PPoly.from_bernstein_basis(BPoly.from_derivatives(time, knots)), offset)


def _read_spline(file: str) -> PPoly:
    try:
        with open(file, encoding="utf-8") as stream:
            names = [name.strip() for name in stream.readline().split(",")]
            rows = np.loadtxt(stream, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: {error}") from None
    missing = [name for name in COLUMNS if name not in names]
    if missing or rows.shape[1:] != (len(names),):
        raise ConfigError(f"{file}: needs the columns {', '.join(COLUMNS)}, has {', '.join(names)}")
    time, *position = (rows[:, names.index(name)] for name in COLUMNS)
    if len(time) < 4 or (np.diff(time) <= 0.0).any() or not np.isfinite(rows).all():
        raise ConfigError(f"{file}: needs at least 4 rows of finite numbers, time_s increasing")
    return CubicSpline(time, np.column_stack(position))


class Signal:
    """Numbers over time, straight between knots, held before the first and after the last."""

    def __init__(self, time_s: Sequence[float], values: ArrayLike) -> None:
        """Prepare.

        Args:
            time_s: Ascending; a time that stands twice is a jump, (k,).
            values: (k,) or (k, columns).
        """
        self._time, self._value = np.array(time_s, float), np.array(values, float)
        steps = np.diff(self._time).reshape(-1, *[1] * (self._value.ndim - 1))
        means = (self._value[1:] + self._value[:-1]) / 2.0
        zero = np.zeros((1, *self._value.shape[1:]))
        self._area = np.concatenate([zero, np.cumsum(steps * means, axis=0)])

    def mean(self, begin_s: float, end_s: float) -> Array:
        """Exact mean over a period."""
        mean: Array = (self._integral(end_s) - self._integral(begin_s)) / (end_s - begin_s)
        return mean

    def at(self, time_s: float) -> Array:
        """Value at a time, behind a jump."""
        k = int(np.searchsorted(self._time, time_s + ROUNDING_S, side="right")) - 1
        return self._value_in(k, time_s)

    def _value_in(self, k: int, time_s: float) -> Array:
        """Value in the piece behind knot `k`."""
        time, value = self._time, self._value
        if k < 0 or k == len(time) - 1:
            held: Array = value[max(k, 0)]
            return held
        share = (time_s - time[k]) / (time[k + 1] - time[k])
        between: Array = value[k] + share * (value[k + 1] - value[k])
        return between

    def _integral(self, time_s: float) -> Array:
        k = int(np.searchsorted(self._time, time_s, side="right")) - 1
        here = self._value_in(k, time_s)
        if k < 0:
            before: Array = (time_s - self._time[0]) * here
            return before
        step = time_s - self._time[k]
        area: Array = self._area[k] + step * (self._value[k] + here) / 2.0
        return area
