"""Curves round a centre: circles, figures of eight, helices."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.polynomial import Polynomial

from musls_control.trajectories.base import (
    ORDERS,
    Array,
    CycleRule,
    Once,
    Periodic,
    Point2,
    Repetitions,
    at_rest,
)
from musls_description.schema import Finite, NonNegative, Positive, Vector3, spec


@spec
class Circle(Periodic):
    """Horizontal circle, counter-clockwise, the load's x axis pointing radially outwards.

    Attributes:
        kind: "circle".
        radius_m: Radius.
        speed_m_s: Speed along the circle.
        height_m: Height of the load.
        center_m: Centre, x and y.
        repetitions: Number of full circles.
    """

    kind: Literal["circle"] = "circle"
    radius_m: Positive = 1.5
    speed_m_s: Positive = 0.3
    height_m: Positive = 1.0
    center_m: Point2 = (0.0, 0.0)
    repetitions: Repetitions = 1

    cycle_rule: ClassVar[CycleRule] = CycleRule.ANGLE

    @property
    def period_s(self) -> float:
        """Time of one circle."""
        return 2.0 * np.pi * self.radius_m / self.speed_m_s

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        omega = self.speed_m_s / self.radius_m
        angle = time_s * self.speed_m_s / self.radius_m
        cos, sin = np.cos(angle), np.sin(angle)
        x = self.center_m[0] + self.radius_m * cos
        y = self.center_m[1] + self.radius_m * sin
        found = at_rest(np.column_stack([x, y, np.full_like(angle, self.height_m), angle]))
        for order, ways in enumerate(((-sin, cos), (-cos, -sin), (sin, -cos), (cos, sin)), 1):
            for axis, way in enumerate(ways):
                found[:, order, axis] = self.radius_m * omega**order * way
        found[:, 1, 3] = omega
        return found


# ---------- A phase that starts and stops smoothly, and the chain rule

_RAMP = Polynomial([0.0, 0.0, 0.0, 0.0, 2.5, -3.0, 1.0])


def ramped_phase(time_s: Array, rate_rad_s: float, ramp_s: float, cruise_s: float) -> Array:
    """Phase that speeds up, goes on evenly and slows down, with four derivatives, (m, 5).

    The ramp is that of RotorTM's circle: with s = t / ramp_s the phase is
    rate ramp_s (2.5 s^4 - 3 s^5 + s^6), its rate goes from 0 to `rate` as a smooth step, and the
    phase has three continuous derivatives. Each ramp advances it by rate ramp_s / 2; times are in
    [0, 2 ramp_s + cruise_s], (m,).
    """
    found = np.zeros((len(time_s), ORDERS))
    end_s = 2.0 * ramp_s + cruise_s
    whole = rate_rad_s * (ramp_s + cruise_s)
    up, down = time_s < ramp_s, time_s > ramp_s + cruise_s
    found[:, 0] = rate_rad_s * (time_s - 0.5 * ramp_s)
    found[:, 1] = rate_rad_s
    for order in range(ORDERS):
        factor = rate_rad_s * ramp_s ** (1 - order)
        ramp = _RAMP.deriv(order) if order else _RAMP
        found[up, order] = factor * ramp(time_s[up] / ramp_s)
        # The way down is the way up run backwards from the end.
        backwards = factor * ramp((end_s - time_s[down]) / ramp_s)
        found[down, order] = whole - backwards if order == 0 else (-1.0) ** (order + 1) * backwards
    return found


def wave(phase: Array, amplitude: float, multiple: int, shift_rad: float) -> Array:
    """Curve amplitude sin(multiple phase + shift) and its derivatives by the phase, (m, 5)."""
    quarter = 0.5 * np.pi
    return np.column_stack(
        [
            amplitude * float(multiple) ** j * np.sin(multiple * phase + shift_rad + j * quarter)
            for j in range(ORDERS)
        ]
    )


def along(curve: Array, phase: Array) -> Array:
    """Derivatives by time of a curve, given by a phase, (m, 5) each (Faa di Bruno)."""
    f0, f1, f2, f3, f4 = curve.T
    _, p1, p2, p3, p4 = phase.T
    return np.column_stack(
        [
            f0,
            f1 * p1,
            f2 * p1**2 + f1 * p2,
            f3 * p1**3 + 3.0 * f2 * p1 * p2 + f1 * p3,
            f4 * p1**4 + 6.0 * f3 * p1**2 * p2 + f2 * (3.0 * p2**2 + 4.0 * p1 * p3) + f1 * p4,
        ]
    )


# ---------- Curves that start and end at rest, the load turning back and forth

QUARTER = float(np.pi / 2.0)


class Ramped(Once):
    """Base of curves that are run through by a phase with smooth ramps.

    Derived classes have the fields `turn_s`, `ramp_s`, `cruise_s`, `yaw_rad` and `rotation_rad`,
    and say where the curve goes.
    """

    turn_s: float
    ramp_s: float
    cruise_s: float
    yaw_rad: float
    rotation_rad: Vector3

    @property
    def duration_s(self) -> float:
        """Both ramps and what is between them."""
        return 2.0 * self.ramp_s + self.cruise_s

    @property
    def rate_rad_s(self) -> float:
        """Rate of the phase between the ramps."""
        return 2.0 * float(np.pi) / self.turn_s

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        check_rotation(self.rotation_rad)

    @abstractmethod
    def curve(self, phase: Array) -> list[Array]:
        """Derivatives 0 to 4 of x, y, z with respect to the phase, (m, 5) each."""

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        phase = self._phase(time_s)
        found = np.empty((len(phase), ORDERS, 4))
        for axis, curve in enumerate(self.curve(phase[:, 0])):
            found[:, :, axis] = along(curve, phase)
        found[:, :, 3] = along(wave(phase[:, 0], self.rotation_rad[2], 1, 0.0), phase)
        found[:, 0, 3] += self.yaw_rad
        return found

    def tilt(self, time_s: Array) -> Array:
        """Roll and pitch with derivatives, see `StageTraits.tilt`."""
        phase = self._phase(time_s)
        found = np.empty((len(phase), ORDERS, 2))
        for axis in range(2):
            waved = wave(phase[:, 0], self.rotation_rad[axis], 1, 0.0)
            found[:, :, axis] = along(waved, phase)
        return found

    def _phase(self, time_s: Array) -> Array:
        times = np.clip(time_s, 0.0, self.duration_s)
        return ramped_phase(times, self.rate_rad_s, self.ramp_s, self.cruise_s)


@spec
class SmoothCircle(Ramped):
    """Horizontal circle with smooth start and end; the load may roll, pitch and yaw as well.

    The circle of the RotorTM paper (eq. 58) with the ramps of its code; an angle of
    2 pi / turn_s (ramp_s + cruise_s) is covered. It ends where it began if ramp_s + cruise_s is a
    whole number of turn_s.

    Attributes:
        kind: "smooth_circle".
        radius_m: Radius.
        turn_s: Time of a full turn between the ramps.
        ramp_s: Time in which the speed is reached, and lost again at the end.
        cruise_s: Time at full speed between the ramps.
        height_m: Height of the load.
        center_m: Centre, x and y; the circle begins at the largest x.
        yaw_rad: Mean yaw of the load.
        rotation_rad: Amplitudes of roll, pitch and yaw, which follow the sine of the angle on the
            circle (yaw, then pitch, then roll about the axes of the body).
    """

    kind: Literal["smooth_circle"] = "smooth_circle"
    radius_m: Positive = 1.0
    turn_s: Positive = 10.0
    ramp_s: Positive = 8.0
    cruise_s: NonNegative = 12.0
    height_m: Finite = 1.0
    center_m: Point2 = (0.0, 0.0)
    yaw_rad: Finite = 0.0
    rotation_rad: Vector3 = (0.0, 0.0, 0.0)

    def curve(self, phase: Array) -> list[Array]:
        """See `Ramped.curve`."""
        x, y = (wave(phase, self.radius_m, 1, shift) for shift in (QUARTER, 0.0))
        return [*centred([x, y], self.center_m), level(phase, self.height_m)]


@spec
class FigureEight(Ramped):
    """Figure eight: x = length / 2 sin p, y = width / 2 sin 2p, smooth start and end.

    It begins in the middle, and ends there if ramp_s + cruise_s is a whole number of turn_s / 2.

    Attributes:
        kind: "figure_eight".
        length_m: Distance between its farthest points.
        width_m: Size across the length.
        axis_yaw_rad: Direction of the length from the x axis.
        turn_s: Time once through the eight between the ramps.
        ramp_s: Time in which the speed is reached, and lost again at the end.
        cruise_s: Time at full speed between the ramps.
        height_m: Height of the load.
        rise_m: Amplitude of the height, highest in one loop and lowest in the other.
        center_m: Middle, x and y.
        yaw_rad: Mean yaw of the load.
        rotation_rad: Amplitudes of roll, pitch and yaw, which follow the sine of the phase.
    """

    kind: Literal["figure_eight"] = "figure_eight"
    length_m: Positive = 3.0
    width_m: Positive = 1.0
    axis_yaw_rad: Finite = 0.0
    turn_s: Positive = 10.0
    ramp_s: Positive = 5.0
    cruise_s: NonNegative = 15.0
    height_m: Finite = 1.0
    rise_m: Finite = 0.0
    center_m: Point2 = (0.0, 0.0)
    yaw_rad: Finite = 0.0
    rotation_rad: Vector3 = (0.0, 0.0, 0.0)

    def curve(self, phase: Array) -> list[Array]:
        """See `Ramped.curve`."""
        long, wide = (
            wave(phase, 0.5 * self.length_m, 1, 0.0),
            wave(phase, 0.5 * self.width_m, 2, 0.0),
        )
        cos, sin = np.cos(self.axis_yaw_rad), np.sin(self.axis_yaw_rad)
        flat = centred([cos * long - sin * wide, sin * long + cos * wide], self.center_m)
        return [*flat, level(phase, self.height_m) + wave(phase, self.rise_m, 1, 0.0)]


@spec
class Helix(Ramped):
    """Circle that rises evenly with its angle, smooth start and end.

    Attributes:
        kind: "helix".
        radius_m: Radius.
        rise_m: Height gained in a turn; negative goes down.
        turn_s: Time of a full turn between the ramps.
        ramp_s: Time in which the speed is reached, and lost again at the end.
        cruise_s: Time at full speed between the ramps.
        height_m: Height of the load at the start.
        center_m: Axis, x and y; the helix begins at the largest x.
        yaw_rad: Mean yaw of the load.
        rotation_rad: Amplitudes of roll, pitch and yaw, which follow the sine of the angle.
    """

    kind: Literal["helix"] = "helix"
    radius_m: Positive = 1.0
    rise_m: Finite = 0.5
    turn_s: Positive = 10.0
    ramp_s: Positive = 5.0
    cruise_s: NonNegative = 15.0
    height_m: Finite = 1.0
    center_m: Point2 = (0.0, 0.0)
    yaw_rad: Finite = 0.0
    rotation_rad: Vector3 = (0.0, 0.0, 0.0)

    def curve(self, phase: Array) -> list[Array]:
        """See `Ramped.curve`."""
        x, y = (wave(phase, self.radius_m, 1, shift) for shift in (QUARTER, 0.0))
        rise = level(phase, self.height_m)
        rise[:, 0] += self.rise_m / (2.0 * np.pi) * phase
        rise[:, 1] = self.rise_m / (2.0 * np.pi)
        return [*centred([x, y], self.center_m), rise]


def check_rotation(rotation_rad: Vector3) -> None:
    """Refuse amplitudes for which roll, pitch and yaw are not unique.

    Raises:
        ValueError: The pitch reaches a right angle, or the roll a half turn.
    """
    if abs(rotation_rad[1]) >= QUARTER or abs(rotation_rad[0]) >= 2.0 * QUARTER:
        raise ValueError(
            f"rotation_rad = {list(rotation_rad)}: roll must stay below pi, pitch below pi / 2"
        )


def centred(xy: list[Array], center_m: Point2) -> list[Array]:
    """Shift x and y, (m, 5) each, to a centre, in place."""
    for axis in range(2):
        xy[axis][:, 0] += center_m[axis]
    return xy


def level(phase: Array, height_m: float) -> Array:
    """A constant height with its derivatives, (m, 5)."""
    found = np.zeros((len(phase), ORDERS))
    found[:, 0] = height_m
    return found
