"""Curves round a centre: circles, harmonic motion, figures of eight, helices."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.polynomial import Polynomial

from musls_control.trajectories.base import (
    ORDERS,
    CycleRule,
    Once,
    Periodic,
    Point2,
    Repetitions,
    Trajectory,
)
from musls_description.config.schema import Finite, NonNegative, Positive, Vector3, spec
from musls_description.numerics.arrays import Array

QUARTER = float(np.pi / 2.0)


class Curve(Trajectory):
    """Base of curves that are given by a phase, which is a function of time."""

    @abstractmethod
    def phase(self, time_s: Array) -> Array:
        """Phase [rad] and its first to fourth time derivatives, (k, 5)."""

    @abstractmethod
    def curve(self, phase: Array) -> list[Array]:
        """x, y, z, yaw with their first to fourth derivatives by the phase, (k, 5) each."""

    def derivatives(self, time_s: Array) -> Array:
        phase = self.phase(time_s)
        return np.stack([along(curve, phase) for curve in self.curve(phase[:, 0])], axis=-1)

    def pose(self, time_s: Array) -> Array:
        curves = self.curve(self.phase(time_s)[:, 0])
        return np.stack([curve[:, 0] for curve in curves], axis=-1)


def wave(phase: Array, amplitude: float, multiple: int, shift_rad: float) -> Array:
    """Curve amplitude sin(multiple phase + shift) and its derivatives by the phase, (k, 5)."""
    order = np.arange(ORDERS, dtype=np.float64)
    angle = multiple * phase[:, None] + shift_rad + order * QUARTER
    return amplitude * float(multiple) ** order * np.sin(angle)


def line(phase: Array, start: float, slope: float = 0.0) -> Array:
    """Curve start + slope phase and its derivatives by the phase, (k, 5)."""
    values = np.zeros((len(phase), ORDERS))
    values[:, 0] = start + slope * phase
    values[:, 1] = slope
    return values


def along(curve: Array, phase: Array) -> Array:
    """Derivatives by time of a curve, given by a phase, (k, 5) each (Faa di Bruno)."""
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


def round_centre(phase: Array, radius_m: float, center_m: Point2) -> list[Array]:
    """X and y of a circle that begins at the largest x, (k, 5) each."""
    return [
        line(phase, middle) + wave(phase, radius_m, 1, shift)
        for middle, shift in zip(center_m, (QUARTER, 0.0), strict=True)
    ]


# ---------- Even motion, for ever


@spec
class Circle(Curve, Periodic):
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

    def phase(self, time_s: Array) -> Array:
        return line(time_s, 0.0, self.speed_m_s / self.radius_m)

    def curve(self, phase: Array) -> list[Array]:
        flat = round_centre(phase, self.radius_m, self.center_m)
        return [*flat, line(phase, self.height_m), line(phase, 0.0, 1.0)]


@spec
class Shm(Curve, Periodic):
    """Simple harmonic motion along a horizontal line: center + amplitude sin(omega t) axis.

    Attributes:
        kind: "shm".
        amplitude_m: Amplitude.
        omega_rad_s: Angular frequency.
        axis_yaw_rad: Direction of the line from the x axis (pi/2: along y).
        yaw_rad: Yaw of the load throughout.
        height_m: Height of the load.
        center_m: Middle of the line, x and y.
        repetitions: Number of full periods.
    """

    kind: Literal["shm"] = "shm"
    amplitude_m: Positive = 1.0
    omega_rad_s: Positive = 2.0
    axis_yaw_rad: Finite = QUARTER
    yaw_rad: Finite = QUARTER
    height_m: Positive = 1.0
    center_m: Point2 = (0.0, 0.0)
    repetitions: Repetitions = 1

    cycle_rule: ClassVar[CycleRule] = CycleRule.OSCILLATION

    @property
    def period_s(self) -> float:
        """Time of one period."""
        return 2.0 * np.pi / self.omega_rad_s

    def phase(self, time_s: Array) -> Array:
        return line(time_s, 0.0, self.omega_rad_s)

    def curve(self, phase: Array) -> list[Array]:
        swing = wave(phase, self.amplitude_m, 1, 0.0)
        axis = self.axis_yaw_rad
        x, y = (line(phase, middle) for middle in self.center_m)
        flat = [x + np.cos(axis) * swing, y + np.sin(axis) * swing]
        return [*flat, line(phase, self.height_m), line(phase, self.yaw_rad)]


# ---------- Curves that start and end at rest, the load turning back and forth

_RAMP = Polynomial([0.0, 0.0, 0.0, 0.0, 2.5, -3.0, 1.0])


def ramped_phase(time_s: Array, rate_rad_s: float, ramp_s: float, cruise_s: float) -> Array:
    """Phase that speeds up, goes on evenly and slows down, with four derivatives, (k, 5).

    The ramp is that of RotorTM's circle: with s = t / ramp_s the phase is
    rate ramp_s (2.5 s^4 - 3 s^5 + s^6), its rate goes from 0 to `rate` as a smooth step, and the
    phase has three continuous derivatives. Each ramp advances it by rate ramp_s / 2; times are in
    [0, 2 ramp_s + cruise_s], (k,).
    """
    values = line(time_s - 0.5 * ramp_s, 0.0, rate_rad_s)
    end_s = 2.0 * ramp_s + cruise_s
    whole = rate_rad_s * (ramp_s + cruise_s)
    up = time_s < ramp_s
    down = time_s > ramp_s + cruise_s
    for order in range(ORDERS):
        factor = rate_rad_s * ramp_s ** (1 - order)
        ramp = _RAMP.deriv(order) if order else _RAMP
        values[up, order] = factor * ramp(time_s[up] / ramp_s)
        # The way down is the way up run backwards from the end.
        backwards = factor * ramp((end_s - time_s[down]) / ramp_s)
        values[down, order] = whole - backwards if order == 0 else (-1.0) ** (order + 1) * backwards
    return values


@spec
class RampedCurve(Curve, Once):
    """Base of curves with a smooth start and end.

    Attributes:
        turn_s: Time of a full turn, or once through an eight, between the ramps.
        ramp_s: Time in which the speed is reached, and lost again at the end.
        cruise_s: Time at full speed between the ramps.
        height_m: Height of the load, of a helix at the start.
        center_m: Centre, x and y; circle and helix begin at the largest x.
        yaw_rad: Mean yaw of the load.
        rotation_rad: Amplitudes of roll, pitch and yaw, which follow the sine of the phase (yaw,
            then pitch, then roll about the axes of the body).
    """

    kind: str
    turn_s: Positive = 10.0
    ramp_s: Positive = 5.0
    cruise_s: NonNegative = 15.0
    height_m: Finite = 1.0
    center_m: Point2 = (0.0, 0.0)
    yaw_rad: Finite = 0.0
    rotation_rad: Vector3 = (0.0, 0.0, 0.0)

    @property
    def duration_s(self) -> float:
        """Both ramps and what is between them."""
        return 2.0 * self.ramp_s + self.cruise_s

    def __post_init__(self) -> None:
        check_rotation(self.rotation_rad)

    @abstractmethod
    def path(self, phase: Array) -> list[Array]:
        """x, y, z with their derivatives by the phase, (k, 5) each."""

    def phase(self, time_s: Array) -> Array:
        times = np.clip(time_s, 0.0, self.duration_s)
        return ramped_phase(times, 2.0 * np.pi / self.turn_s, self.ramp_s, self.cruise_s)

    def curve(self, phase: Array) -> list[Array]:
        yaw = line(phase, self.yaw_rad) + wave(phase, self.rotation_rad[2], 1, 0.0)
        return [*self.path(phase), yaw]

    def tilt(self, time_s: Array) -> Array:
        phase = self.phase(time_s)
        waves = [wave(phase[:, 0], amplitude, 1, 0.0) for amplitude in self.rotation_rad[:2]]
        return np.stack([along(curve, phase) for curve in waves], axis=-1)


@spec
class SmoothCircle(RampedCurve):
    """Horizontal circle with smooth start and end; the load may roll, pitch and yaw as well.

    The circle of the RotorTM paper (eq. 58) with the ramps of its code; an angle of
    2 pi / turn_s (ramp_s + cruise_s) is covered. It ends where it began if ramp_s + cruise_s is a
    whole number of turn_s.

    Attributes:
        kind: "smooth_circle".
        radius_m: Radius.
    """

    kind: Literal["smooth_circle"] = "smooth_circle"
    radius_m: Positive = 1.0
    ramp_s: Positive = 8.0
    cruise_s: NonNegative = 12.0

    def path(self, phase: Array) -> list[Array]:
        flat = round_centre(phase, self.radius_m, self.center_m)
        return [*flat, line(phase, self.height_m)]


@spec
class FigureEight(RampedCurve):
    """Figure eight: x = length / 2 sin p, y = width / 2 sin 2p, smooth start and end.

    It begins in the middle, and ends there if ramp_s + cruise_s is a whole number of turn_s / 2.

    Attributes:
        kind: "figure_eight".
        length_m: Distance between its farthest points.
        width_m: Size across the length.
        axis_yaw_rad: Direction of the length from the x axis.
        rise_m: Amplitude of the height, highest in one loop and lowest in the other.
    """

    kind: Literal["figure_eight"] = "figure_eight"
    length_m: Positive = 3.0
    width_m: Positive = 1.0
    axis_yaw_rad: Finite = 0.0
    rise_m: Finite = 0.0

    def path(self, phase: Array) -> list[Array]:
        long = wave(phase, 0.5 * self.length_m, 1, 0.0)
        wide = wave(phase, 0.5 * self.width_m, 2, 0.0)
        cos = np.cos(self.axis_yaw_rad)
        sin = np.sin(self.axis_yaw_rad)
        x, y, z = (line(phase, middle) for middle in (*self.center_m, self.height_m))
        rise = wave(phase, self.rise_m, 1, 0.0)
        return [x + cos * long - sin * wide, y + sin * long + cos * wide, z + rise]


@spec
class Helix(RampedCurve):
    """Circle that rises evenly with its angle, smooth start and end.

    Attributes:
        kind: "helix".
        radius_m: Radius.
        rise_m: Height gained in a turn; negative goes down.
    """

    kind: Literal["helix"] = "helix"
    radius_m: Positive = 1.0
    rise_m: Finite = 0.5

    def path(self, phase: Array) -> list[Array]:
        flat = round_centre(phase, self.radius_m, self.center_m)
        return [*flat, line(phase, self.height_m, self.rise_m / (2.0 * np.pi))]


def check_rotation(rotation_rad: Vector3) -> None:
    """Refuse amplitudes for which roll, pitch and yaw are not unique."""
    if abs(rotation_rad[1]) >= QUARTER or abs(rotation_rad[0]) >= 2.0 * QUARTER:
        raise ValueError(
            f"rotation_rad = {list(rotation_rad)}: roll must stay below pi, pitch below pi / 2"
        )
