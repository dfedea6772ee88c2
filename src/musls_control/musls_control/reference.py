"""The load's set-point as a continuous function of time, with derivatives up to snap.

A flight plan holds set-points sampled at its rate; this is what they are samples of: rests,
straight moves and the trajectories of the stages, one after the other. Controllers that need more
than a position (velocity, acceleration, jerk and snap as feed-forward) read it here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from musls_control.trajectories.base import AT_A_CORNER_S, ORDERS, at_rest

Array = NDArray[np.float64]

_BLOCK = 512
"""Samples that `SteppedReference` evaluates at once."""

_LEVEL = np.zeros((ORDERS, 2))
_LEVEL.flags.writeable = False


@dataclass(frozen=True)
class LoadReference:
    """Set-point of the load at one time, ENU.

    Attributes:
        derivatives: Derivatives 0 to 4 of x, y, z [m] and yaw [rad, continuous], (5, 4).
        tilt: Derivatives 0 to 4 of roll and pitch [rad], (5, 2); level unless the trajectory
            tilts the load. The attitude is yaw about z, then pitch, then roll (`rotation`).
    """

    derivatives: Array
    tilt: Array = field(default_factory=lambda: _LEVEL)

    @property
    def position_enu_m(self) -> Array:
        """Position, (3,)."""
        return self.derivatives[0, :3]

    @property
    def velocity_enu_m_s(self) -> Array:
        """Velocity, (3,)."""
        return self.derivatives[1, :3]

    @property
    def acceleration_enu_m_s2(self) -> Array:
        """Acceleration, (3,)."""
        return self.derivatives[2, :3]

    @property
    def jerk_enu_m_s3(self) -> Array:
        """Jerk, (3,)."""
        return self.derivatives[3, :3]

    @property
    def snap_enu_m_s4(self) -> Array:
        """Snap, (3,)."""
        return self.derivatives[4, :3]

    @property
    def yaw_rad(self) -> float:
        """Yaw, continuous but for whole turns where an aborted flight joins its landing."""
        return float(self.derivatives[0, 3])

    @property
    def yaw_rate_rad_s(self) -> float:
        """First derivative of the yaw."""
        return float(self.derivatives[1, 3])

    @property
    def yaw_acceleration_rad_s2(self) -> float:
        """Second derivative of the yaw."""
        return float(self.derivatives[2, 3])

    @property
    def rotation(self) -> Array:
        """Attitude as a matrix that turns vectors of the load's frame into the world's, (3, 3)."""
        (roll, pitch), yaw = self.tilt[0], self.derivatives[0, 3]
        (sr, sp, sy), (cr, cp, cy) = (f([roll, pitch, yaw]) for f in (np.sin, np.cos))
        return np.array(
            [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        )

    @property
    def omega_body_rad_s(self) -> Array:
        """Angular velocity in the load's frame, (3,)."""
        roll, pitch = self.tilt[0]
        roll_rate, pitch_rate = self.tilt[1]
        yaw_rate = self.derivatives[1, 3]
        sr, cr, sp, cp = np.sin(roll), np.cos(roll), np.sin(pitch), np.cos(pitch)
        return np.array(
            [
                roll_rate - yaw_rate * sp,
                pitch_rate * cr + yaw_rate * cp * sr,
                -pitch_rate * sr + yaw_rate * cp * cr,
            ]
        )

    @property
    def alpha_body_rad_s2(self) -> Array:
        """Angular acceleration: derivative of `omega_body_rad_s`, (3,)."""
        (roll, pitch), (p, q), (dp, dq) = self.tilt[:3]
        r, dr = self.derivatives[1, 3], self.derivatives[2, 3]
        sr, cr, sp, cp = np.sin(roll), np.cos(roll), np.sin(pitch), np.cos(pitch)
        return np.array(
            [
                dp - dr * sp - r * q * cp,
                dq * cr - q * p * sr + dr * cp * sr - r * q * sp * sr + r * p * cp * cr,
                -dq * sr - q * p * cr + dr * cp * cr - r * q * sp * cr - r * p * cp * sr,
            ]
        )


class Path(Protocol):
    """Interface of what a piece of a reference follows; every `Trajectory` is one.

    One that tilts the load has a method `tilt`, too, see `trajectories.base.StageTraits`.
    """

    @property
    def duration_s(self) -> float:
        """How long the motion takes; the end is held afterwards."""

    def derivatives(self, time_s: Array) -> Array:
        """Derivatives 0 to 4 of x, y, z, yaw at times in [0, duration_s], (k, 5, 4)."""


@dataclass(frozen=True)
class Rest:
    """Stay at one pose.

    Attributes:
        pose: x, y, z [m], yaw [rad], (4,).
    """

    pose: Array

    @property
    def duration_s(self) -> float:
        """Nothing moves."""
        return 0.0

    def derivatives(self, time_s: Array) -> Array:
        """See `Path.derivatives`."""
        return at_rest(np.tile(self.pose, (len(time_s), 1)))


@dataclass(frozen=True)
class StraightMove:
    """Move at constant velocity and yaw rate.

    Attributes:
        start: x, y, z [m], yaw [rad], (4,).
        end: The same at the end, (4,).
    """

    start: Array
    end: Array
    duration_s: float

    def derivatives(self, time_s: Array) -> Array:
        """See `Path.derivatives`."""
        duration = max(self.duration_s, 1e-9)
        share = np.clip(time_s / duration, 0.0, 1.0)
        found = at_rest(self.start + share[:, None] * (self.end - self.start))
        found[:, 1] = (self.end - self.start) / duration
        return found


@dataclass(frozen=True)
class Piece:
    """A path that is followed from some time on.

    Attributes:
        from_s: When it takes over from the piece before.
        origin_s: Time at which the path begins; it may have begun before it takes over.
        path: What is followed; at rest at its end after its duration.
        whole_turns_rad: Multiple of 2 pi that is added to the yaw.
    """

    from_s: float
    origin_s: float
    path: Path
    whole_turns_rad: float = 0.0

    def derivatives(self, time_s: Array) -> Array:
        """Derivatives at times, (k, 5, 4)."""
        since = time_s - self.origin_s
        # The difference of two times is rounded, and a step at 9 s must not be missed by it.
        rounded = np.round(since, 9)
        noise = 4.0 * np.spacing(np.abs(time_s) + abs(self.origin_s))
        since = np.where(np.abs(since - rounded) <= noise, rounded, since)
        duration = self.path.duration_s
        found = self.path.derivatives(np.clip(since, 0.0, duration))
        found[since >= duration - AT_A_CORNER_S, 1:] = 0.0
        found[:, 0, 3] += self.whole_turns_rad
        return found

    def tilt(self, time_s: Array) -> Array:
        """Derivatives of roll and pitch at times, (k, 5, 2)."""
        tilt = getattr(self.path, "tilt", None)
        if tilt is None:
            return np.zeros((len(time_s), ORDERS, 2))
        since, duration = time_s - self.origin_s, self.path.duration_s
        found: Array = tilt(np.clip(since, 0.0, duration))
        found[since >= duration - AT_A_CORNER_S, 1:] = 0.0
        return found


@dataclass(frozen=True)
class _Relocated:
    """A path turned about a vertical axis and shifted horizontally.

    Attributes:
        from_xy_m: Point of the axis, (2,).
        to_xy_m: Where that point goes, (2,).
    """

    path: Path
    turn_rad: float
    from_xy_m: Array
    to_xy_m: Array

    @property
    def duration_s(self) -> float:
        """As of the path."""
        return self.path.duration_s

    def derivatives(self, time_s: Array) -> Array:
        """See `Path.derivatives`."""
        found = self.path.derivatives(time_s)
        cos, sin = np.cos(self.turn_rad), np.sin(self.turn_rad)
        found[:, 0, :2] -= self.from_xy_m
        found[..., :2] = found[..., :2] @ np.array([[cos, sin], [-sin, cos]])
        found[:, 0, :2] += self.to_xy_m
        found[:, 0, 3] += self.turn_rad
        return found

    def tilt(self, time_s: Array) -> Array:
        """As of the path: a turn about the vertical changes the yaw alone."""
        tilt = getattr(self.path, "tilt", None)
        found: Array = np.zeros((len(time_s), ORDERS, 2)) if tilt is None else tilt(time_s)
        return found


class Reference:
    """The load's set-point over a flight.

    Attributes:
        pieces: In the order in which they take over; the first holds for all times before, too.
    """

    def __init__(self, pieces: Iterable[Piece]) -> None:
        """Put pieces together.

        Raises:
            ValueError: There is none, or they are not in order.
        """
        self.pieces: Sequence[Piece] = tuple(pieces)
        self._from_s = [piece.from_s for piece in self.pieces]
        if not self.pieces or self._from_s != sorted(self._from_s):
            raise ValueError("a reference needs pieces in the order of time")

    @staticmethod
    def rest(pose: Array) -> Reference:
        """Make a reference that stays at a pose: x, y, z [m], yaw [rad], (4,)."""
        return Reference([Piece(0.0, 0.0, Rest(np.array(pose, np.float64)))])

    def samples(self, time_s: Array) -> Array:
        """Derivatives 0 to 4 of x, y, z [m, ENU] and yaw [rad] at many times, (k, 5, 4).

        Where one piece takes over from another, the one that begins counts.
        """
        times = np.asarray(time_s, np.float64)
        found = np.empty((len(times), ORDERS, 4))
        for piece, here in self._parts(times):
            found[here] = piece.derivatives(times[here])
        return found

    def tilts(self, time_s: Array) -> Array:
        """Derivatives 0 to 4 of roll and pitch [rad] at many times, (k, 5, 2)."""
        times = np.asarray(time_s, np.float64)
        found = np.empty((len(times), ORDERS, 2))
        for piece, here in self._parts(times):
            found[here] = piece.tilt(times[here])
        return found

    def _parts(self, times: Array) -> Iterator[tuple[Piece, NDArray[np.bool_]]]:
        """Pieces that hold at times, and at which of them each does."""
        number = np.searchsorted(self._from_s, times + AT_A_CORNER_S, side="right") - 1
        number = np.maximum(number, 0)
        for k in np.unique(number):
            yield self.pieces[k], number == k

    def at(self, time_s: float) -> LoadReference:
        """Evaluate one time; for one call a control period `stepped` is some ten times faster."""
        k = max(0, bisect_right(self._from_s, time_s + AT_A_CORNER_S) - 1)
        piece, time = self.pieces[k], np.array([time_s])
        return LoadReference(piece.derivatives(time)[0], piece.tilt(time)[0])

    def stepped(self, period_s: float) -> SteppedReference:
        """Make a view for a loop of constant period."""
        return SteppedReference(self, period_s)

    def shifted(self, by_s: float) -> Reference:
        """The same, later by a time."""
        return Reference(
            replace(piece, from_s=piece.from_s + by_s, origin_s=piece.origin_s + by_s)
            for piece in self.pieces
        )

    def since(self, time_s: float) -> Reference:
        """The part from a time on, which becomes time zero."""
        first = max(0, bisect_right(self._from_s, time_s + AT_A_CORNER_S) - 1)
        begun = replace(self.pieces[first], from_s=time_s)
        return Reference([begun, *self.pieces[first + 1 :]]).shifted(-time_s)

    def then(self, other: Reference, at_s: float) -> Reference:
        """This until a time, another one from there on; the other's time zero is that time.

        A piece of the other that begins before its time zero takes over that much earlier.
        """
        later = other.shifted(at_s).pieces
        earlier = [p for p in self.pieces if p.from_s < later[0].from_s - AT_A_CORNER_S]
        return Reference([*earlier, *later])

    def relocated(self, turn_rad: float, from_xy_m: Array, to_xy_m: Array) -> Reference:
        """The same, turned about a vertical axis that is shifted from a place, (2,), to another."""
        start, end = np.array(from_xy_m, np.float64), np.array(to_xy_m, np.float64)
        return Reference(
            replace(piece, path=_Relocated(piece.path, turn_rad, start, end))
            for piece in self.pieces
        )


class SteppedReference:
    """A reference sampled at a constant period, in blocks, as the loop gets there."""

    def __init__(self, reference: Reference, period_s: float) -> None:
        """Prepare; nothing is evaluated yet."""
        self.reference, self.period_s = reference, period_s
        self._block, self._samples = -1, np.empty((0, ORDERS, 4))
        self._tilts, self._level = np.empty((0, ORDERS, 2)), True

    def derivatives(self, step: int) -> Array:
        """Derivatives 0 to 4 of x, y, z, yaw at step * period_s, (5, 4); not to be changed."""
        row = self._row(step)
        sample: Array = self._samples[row]
        return sample

    def at(self, step: int) -> LoadReference:
        """The same with names, and with the attitude."""
        row = self._row(step)
        return LoadReference(self._samples[row], _LEVEL if self._level else self._tilts[row])

    def _row(self, step: int) -> int:
        """Place of a step in the present block, which is evaluated if it is new."""
        block, row = divmod(step, _BLOCK)
        if block != self._block:
            times = self.period_s * np.arange(block * _BLOCK, (block + 1) * _BLOCK, dtype=float)
            self._samples = self.reference.samples(times)
            self._tilts = self.reference.tilts(times)
            self._level = not self._tilts.any()
            self._block = block
        return row
