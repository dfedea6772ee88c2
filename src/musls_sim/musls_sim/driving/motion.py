"""Paths and inputs over time, evaluated for many control periods at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from musls_description.errors import ConfigError
from musls_sim.driving.bag_path import bag_of, read_path
from musls_sim.driving.spec import AnchorPath, AnchorRecording

if TYPE_CHECKING:  # scipy is slow to import, and few flights have anchors
    from scipy.interpolate import PPoly

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
        self._derivatives = [pieces.derivative(order) for order in range(3)]
        self._knots, self._offset = pieces.x, offset_m

    def ends(self, time_s: Array) -> Array:
        """Motion at the begin and at the end of consecutive periods.

        At a knot where the acceleration jumps, each end takes the side within the period. Before
        the first knot and after the last the place is at rest.

        Args:
            time_s: Borders of the periods, (k + 1,).

        Returns:
            Position, velocity, acceleration at both ends of each, (k, 2, 9).
        """
        return np.stack([self._at(time_s[:-1], 1.0), self._at(time_s[1:], -1.0)], axis=1)

    def _at(self, time_s: Array, side: float) -> Array:
        knots = self._knots
        beside = time_s + side * ROUNDING_S
        piece = np.searchsorted(knots, beside, side="right") - 1
        moving = (beside > knots[0]) & (beside < knots[-1])
        piece = np.clip(piece, 0, len(knots) - 2)
        since = (np.clip(time_s, knots[0], knots[-1]) - knots[piece])[:, None]
        found = np.zeros((len(time_s), 3, 3))
        for order, part in enumerate(self._derivatives):
            for coefficient in part.c:  # Horner, in the piece of the side
                found[:, order] = found[:, order] * since + coefficient[piece]
        found[~moving, 1:] = 0.0
        found[:, 0] += self._offset
        return found.reshape(-1, 9)


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
        bag = bag_of(drive.file)
        if bag is None:
            return PathMotion(_read_spline(drive.file), offset)
        return PathMotion(_spline(drive.file, *read_path(bag, drive.body)), offset)
    from scipy.interpolate import BPoly, CubicHermiteSpline, PPoly

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
    return _spline(file, time, np.column_stack(position))


def _spline(file: str, time: Array, position: Array) -> PPoly:
    finite = np.isfinite(time).all() and np.isfinite(position).all()
    if len(time) < 4 or (np.diff(time) <= 0.0).any() or not finite:
        raise ConfigError(f"{file}: needs at least 4 rows of finite numbers, time_s increasing")
    from scipy.interpolate import CubicSpline

    return CubicSpline(time, position)


class Signal:
    """Numbers over time, straight between knots, held before the first and after the last."""

    def __init__(self, time_s: Sequence[float], values: ArrayLike) -> None:
        """Prepare.

        Args:
            time_s: Ascending; a time that stands twice is a jump, (k,).
            values: (k,) or (k, columns).
        """
        self._time = np.array(time_s, float)
        self._value = np.array(values, float).reshape(len(self._time), -1)
        steps, means = np.diff(self._time)[:, None], (self._value[1:] + self._value[:-1]) / 2.0
        zero = np.zeros((1, self._value.shape[1]))
        self._area = np.concatenate([zero, np.cumsum(steps * means, axis=0)])

    def means(self, time_s: Array) -> Array:
        """Exact means over consecutive periods.

        Args:
            time_s: Borders of the periods, (k + 1,).

        Returns:
            (k, columns).
        """
        means: Array = np.diff(self._integral(time_s), axis=0) / np.diff(time_s)[:, None]
        return means

    def ends(self, time_s: Array) -> Array:
        """Values at the begin and at the end of consecutive periods, on their side of a jump.

        Args:
            time_s: Borders of the periods, (k + 1,).

        Returns:
            (k, 2, columns).
        """
        begin = self._at(time_s[:-1], np.searchsorted(self._time, time_s[:-1] + ROUNDING_S) - 1)
        end = self._at(time_s[1:], np.searchsorted(self._time, time_s[1:] - ROUNDING_S) - 1)
        return np.stack([begin, end], axis=1)

    def _at(self, time_s: Array, k: NDArray[np.int64]) -> Array:
        """Values at times in the pieces behind knots `k`."""
        time, value, last = self._time, self._value, len(self._time) - 1
        low, high = np.clip(k, 0, last), np.clip(k + 1, 0, last)
        inside = (k >= 0) & (k < last) & (time[high] > time[low])
        span = np.where(inside, time[high] - time[low], np.inf)
        share = (time_s - time[low]) / span
        at: Array = value[low] + share[:, None] * (value[high] - value[low])
        return at

    def held(self, time_s: Array) -> Array:
        """Values of the last knot at or before each time, (k, columns)."""
        k = np.searchsorted(self._time, time_s + ROUNDING_S, side="right") - 1
        values: Array = self._value[np.maximum(k, 0)]
        return values

    def _integral(self, time_s: Array) -> Array:
        time, value = self._time, self._value
        last = len(time) - 1
        k = np.searchsorted(time, time_s, side="right") - 1
        low, high = np.clip(k, 0, last), np.clip(k + 1, 0, last)
        since = time_s - time[low]
        span = np.where((k >= 0) & (k < last), time[high] - time[low], np.inf)
        here = value[low] + (since / span)[:, None] * (value[high] - value[low])
        area: Array = self._area[low] + since[:, None] * (value[low] + here) / 2.0
        return area
