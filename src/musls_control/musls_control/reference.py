"""The load's set-point as a continuous function of time, with derivatives up to snap.

A flight plan holds set-points sampled at its rate; this is what they are samples of: rests,
straight moves and the trajectories of the stages, one after the other. Controllers that need more
than a position (velocity, acceleration, jerk and snap as feed-forward) read it here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from musls_control.trajectories.base import AT_A_CORNER_S, ORDERS, Trajectory, at_rest, polyline
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import (
    from_roll_pitch_yaw,
    from_rotation_vector,
    matrix,
    product,
    rotation_vector,
)
from musls_description.tables import ShownResult, Table, vector

_BLOCK = 512
"""Samples that `SteppedReference` evaluates at once."""


@dataclass(frozen=True, repr=False)
class LoadReference(ShownResult):
    """Set-point of the load at one time, ENU.

    Attributes:
        derivatives: Derivatives 0 to 4 of x, y, z [m] and yaw [rad, continuous], (5, 4).
        tilt: Derivatives 0 to 4 of roll and pitch [rad], (5, 2); level unless the trajectory
            tilts the load. The attitude is yaw about z, then pitch, then roll (`rotation`).
        whole: The reference that this is one time of, and that time [s]; None where it is not
            known.
        within_reach: Projection on the axes about which cables can turn the load, (3, 3), and its
            attitude now, (4,): attitude, angular velocity and acceleration of the reference leave
            the others out; the yaw stays, for the formation. None where they can turn it.
    """

    derivatives: Array
    tilt: Array = field(default_factory=lambda: np.zeros((ORDERS, 2)))
    whole: tuple[Reference, float] | None = None
    within_reach: tuple[Array, Array] | None = None

    def coming(self, after_s: Array) -> tuple[Array, Array]:
        """Future of the reference at times after now [s], (k,).

        Returns derivatives of orders 0 to 4 of x, y, z (ENU) and yaw, (k, 5, 4), and of roll and
        pitch, (k, 5, 2). Where the whole reference is not known, velocity and yaw rate go on as
        they are now.
        """
        if self.whole is not None:
            reference, now_s = self.whole
            return reference.samples(now_s + after_s), reference.tilts(now_s + after_s)
        derivatives = np.zeros((len(after_s), ORDERS, 4))
        derivatives[:, 0] = self.derivatives[0] + np.outer(after_s, self.derivatives[1])
        derivatives[:, 1] = self.derivatives[1]
        tilts = np.zeros((len(after_s), ORDERS, 2))
        tilts[:, 0] = self.tilt[0]
        return derivatives, tilts

    def shown(self) -> Iterator[str | Table]:
        """Derivatives by their order."""
        rows = [(str(k), vector(row)) for k, row in enumerate(self.derivatives)]
        yield "LoadReference"
        yield Table(("derivative", "x y z [m], yaw [rad]"), rows)

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
        return matrix(self.orientation_wxyz)

    @property
    def orientation_wxyz(self) -> Array:
        """Attitude as a unit quaternion, the load's frame to the world, (4,)."""
        whole = from_roll_pitch_yaw(np.array([*self.tilt[0], self.yaw_rad]))
        if self.within_reach is None:
            return whole
        turnable, now = self.within_reach
        rotation_rad = rotation_vector(product(now * [1.0, -1.0, -1.0, -1.0], whole))
        return product(now, from_rotation_vector(turnable @ rotation_rad))

    @property
    def omega_body_rad_s(self) -> Array:
        """Angular velocity in the load's frame, (3,)."""
        return self._within_reach(self._turning()[0] @ self._rates(1))

    @property
    def alpha_body_rad_s2(self) -> Array:
        """Angular acceleration: derivative of `omega_body_rad_s`, (3,)."""
        by_rates, change = self._turning()
        return self._within_reach(by_rates @ self._rates(2) + change @ self._rates(1))

    def _within_reach(self, vector: Array) -> Array:
        return vector if self.within_reach is None else self.within_reach[0] @ vector

    def _rates(self, order: int) -> Array:
        """A derivative of roll, pitch and yaw."""
        return np.array([*self.tilt[order], self.derivatives[order, 3]])

    def _turning(self) -> tuple[Array, Array]:
        """Body rate per rates of roll, pitch and yaw, (3, 3), and its time derivative."""
        (sr, sp) = np.sin(self.tilt[0])
        (cr, cp) = np.cos(self.tilt[0])
        (p, q) = self.tilt[1]
        by_rates = np.array([[1.0, 0.0, -sp], [0.0, cr, cp * sr], [0.0, -sr, cp * cr]])
        change = np.array(
            [
                [0.0, 0.0, -cp * q],
                [0.0, -sr * p, cp * cr * p - sp * sr * q],
                [0.0, -cr * p, -cp * sr * p - sp * cr * q],
            ]
        )
        return by_rates, change


@dataclass(frozen=True)
class Rest(Trajectory):
    """Stay at one pose.

    Attributes:
        place: x, y, z [m], yaw [rad], (4,).
    """

    place: Array
    duration_s: float = 0.0

    def derivatives(self, time_s: Array) -> Array:
        """Poses at times in [0, duration_s] with four exact time derivatives, (k, 5, 4).

        See `Trajectory.derivatives`.
        """
        return at_rest(np.broadcast_to(self.place, (len(time_s), 4)))


@dataclass(frozen=True)
class StraightMove(Trajectory):
    """Move at constant velocity and yaw rate.

    Attributes:
        start: x, y, z [m], yaw [rad], (4,).
        end: Pose at the end, (4,).
    """

    start: Array
    end: Array
    duration_s: float

    def derivatives(self, time_s: Array) -> Array:
        """Poses at times in [0, duration_s] with four exact time derivatives, (k, 5, 4).

        See `Trajectory.derivatives`.
        """
        return polyline(time_s, np.array([0.0, self.duration_s]), np.stack([self.start, self.end]))


@dataclass(frozen=True)
class Polyline(Trajectory):
    """Straight moves from pose to pose.

    Attributes:
        times_s: Times of the poses, ascending from 0, (k,).
        poses: x, y, z [m], yaw [rad], (k, 4).
    """

    times_s: Array
    poses: Array
    duration_s: float

    def derivatives(self, time_s: Array) -> Array:
        """Poses at times in [0, duration_s] with four exact time derivatives, (k, 5, 4).

        See `Trajectory.derivatives`.
        """
        return polyline(time_s, self.times_s, self.poses)


@dataclass(frozen=True)
class Piece:
    """A path that is followed from some time on.

    Attributes:
        from_s: Time from which it replaces the piece before.
        origin_s: Time at which the path begins; it may have begun before it takes over.
        path: Path that is followed; at rest at its end after its duration.
        whole_turns_rad: Multiple of 2 pi that is added to the yaw.
    """

    from_s: float
    origin_s: float
    path: Trajectory
    whole_turns_rad: float = 0.0

    def derivatives(self, time_s: Array) -> Array:
        """Derivatives at times, (k, 5, 4)."""
        values = self._follow(self.path.derivatives, time_s)
        values[:, 0, 3] += self.whole_turns_rad
        return values

    def tilt(self, time_s: Array) -> Array:
        """Derivatives of roll and pitch at times, (k, 5, 2)."""
        return self._follow(self.path.tilt, time_s)

    def _follow(self, motion: Callable[[Array], Array], time_s: Array) -> Array:
        since = time_s - self.origin_s
        # The difference of two times is rounded, and a step at 9 s must not be missed by it.
        nearest = np.round(since, 9)
        noise = 4.0 * np.spacing(np.abs(time_s) + abs(self.origin_s))
        since = np.where(np.abs(since - nearest) <= noise, nearest, since)
        values = motion(np.clip(since, 0.0, self.path.duration_s))
        values[since >= self.path.duration_s - AT_A_CORNER_S, 1:] = 0.0
        return values


class Reference:
    """The load's set-point over a flight.

    Attributes:
        pieces: Pieces in the order of their times; the first holds for all times before, too.
    """

    def __init__(self, pieces: Iterable[Piece]) -> None:
        """Put pieces together."""
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
        return self._sampled(Piece.derivatives, time_s, 4)

    def tilts(self, time_s: Array) -> Array:
        """Derivatives 0 to 4 of roll and pitch [rad] at many times, (k, 5, 2)."""
        return self._sampled(Piece.tilt, time_s, 2)

    def _sampled(self, of: Callable[[Piece, Array], Array], time_s: Array, columns: int) -> Array:
        times = np.asarray(time_s, np.float64)
        values = np.empty((len(times), ORDERS, columns))
        number = np.searchsorted(self._from_s, times + AT_A_CORNER_S, side="right") - 1
        number = np.maximum(number, 0)
        for k in np.unique(number):
            its = number == k
            values[its] = of(self.pieces[k], times[its])
        return values

    def _piece(self, time_s: float) -> int:
        """Number of the piece that holds at a time."""
        return max(0, bisect_right(self._from_s, time_s + AT_A_CORNER_S) - 1)

    def at(self, time_s: float) -> LoadReference:
        """Evaluate one time; for one call a control period `stepped` is some ten times faster."""
        piece = self.pieces[self._piece(time_s)]
        time = np.array([time_s])
        return LoadReference(piece.derivatives(time)[0], piece.tilt(time)[0], (self, time_s))

    def stepped(self, period_s: float) -> SteppedReference:
        """Make a view for a loop of constant period."""
        return SteppedReference(self, period_s)

    def shifted(self, by_s: float) -> Reference:
        """The reference delayed by a time."""
        return Reference(
            replace(piece, from_s=piece.from_s + by_s, origin_s=piece.origin_s + by_s)
            for piece in self.pieces
        )

    def since(self, time_s: float) -> Reference:
        """The part from a time on, which becomes time zero."""
        first = self._piece(time_s)
        first_piece = replace(self.pieces[first], from_s=time_s)
        return Reference([first_piece, *self.pieces[first + 1 :]]).shifted(-time_s)

    def then(self, other: Reference, at_s: float) -> Reference:
        """Reference that is this one until a time, and from then on another one, whose zero it is.

        A piece of the other that begins before its time zero takes over that much earlier.
        """
        later = other.shifted(at_s).pieces
        earlier = [p for p in self.pieces if p.from_s < later[0].from_s - AT_A_CORNER_S]
        return Reference([*earlier, *later])


class SteppedReference:
    """A reference sampled at a constant period, in blocks, as the loop gets there."""

    def __init__(self, reference: Reference, period_s: float) -> None:
        self.reference = reference
        self.period_s = period_s
        self._block = -1
        self._samples = np.empty((0, ORDERS, 4))
        self._tilts = np.empty((0, ORDERS, 2))

    def at(self, step: int) -> LoadReference:
        """Set-point at step * period_s; not to be changed."""
        block, row = divmod(step, _BLOCK)
        if block != self._block:
            times = self.period_s * np.arange(block * _BLOCK, (block + 1) * _BLOCK, dtype=float)
            self._samples = self.reference.samples(times)
            self._tilts = self.reference.tilts(times)
            self._block = block
        now = (self.reference, step * self.period_s)
        return LoadReference(self._samples[row], self._tilts[row], now)
