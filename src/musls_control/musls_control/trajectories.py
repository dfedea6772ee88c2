"""Trajectories of the load's set-point: position (ENU) and yaw as functions of time.

Each is a specification (a YAML mapping with its `kind`) with a `duration_s` and a compiled-free
`pose(t)` that takes arrays of times. Heights are those of the load's centre of mass.
"""

from __future__ import annotations

from typing import Annotated, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from musls_description.schema import Finite, NonNegative, Positive, Vector3, spec

Array = NDArray[np.float64]

Repetitions = Annotated[int, Field(ge=1, le=10000)]
Point2 = tuple[Finite, Finite]


class Trajectory(Protocol):
    """What the mission needs of a trajectory."""

    kind: str

    @property
    def duration_s(self) -> float:
        """How long it takes, all repetitions."""

    @property
    def period_s(self) -> float:
        """Length of one repetition."""

    def pose(self, time_s: Array) -> Array:
        """Poses at times in [0, duration_s]: x, y, z [m], yaw [rad, continuous], (k, 4)."""


class _Periodic:
    """Duration of a trajectory that repeats."""

    @property
    def duration_s(self) -> float:
        """How long all repetitions take."""
        return self.period_s * self.repetitions


@spec
class Circle(_Periodic):
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

    @property
    def period_s(self) -> float:
        """Time of one circle."""
        return 2.0 * np.pi * self.radius_m / self.speed_m_s

    def pose(self, time_s: Array) -> Array:
        """Poses at times, see `Trajectory.pose`."""
        angle = time_s * self.speed_m_s / self.radius_m
        x = self.center_m[0] + self.radius_m * np.cos(angle)
        y = self.center_m[1] + self.radius_m * np.sin(angle)
        return np.column_stack([x, y, np.full_like(angle, self.height_m), angle])


@spec
class Shm(_Periodic):
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
    axis_yaw_rad: Finite = float(np.pi / 2.0)
    yaw_rad: Finite = float(np.pi / 2.0)
    height_m: Positive = 1.0
    center_m: Point2 = (0.0, 0.0)
    repetitions: Repetitions = 1

    @property
    def period_s(self) -> float:
        """Time of one period."""
        return 2.0 * np.pi / self.omega_rad_s

    def pose(self, time_s: Array) -> Array:
        """Poses at times, see `Trajectory.pose`."""
        along = self.amplitude_m * np.sin(self.omega_rad_s * time_s)
        x = self.center_m[0] + along * np.cos(self.axis_yaw_rad)
        y = self.center_m[1] + along * np.sin(self.axis_yaw_rad)
        constant = np.ones_like(along)
        return np.column_stack([x, y, self.height_m * constant, self.yaw_rad * constant])


@spec
class Engage(_Periodic):
    """Tension engagement: turn round the load with slack cables, step up, turn back, set down.

    One repetition, times as in the real flights: turn the formation to `yaw_rad` round the load on
    the ground, rest, step up to `height_m`, hold the yaw, turn it back to zero at a constant rate
    (the load turns with it, swinging about the vertical), hold, go down, until the next one starts.

    Attributes:
        kind: "engage".
        rest_height_m: Height of the set-point at rest; the load stands on the ground, so a height
            below it means slack.
        height_m: Height after the step (the load's set-point rises through the ground by 0.5 m).
        yaw_rad: Yaw of the formation at the step.
        turn_s: Time for the turn to `yaw_rad`; 0 turns within the step, as one jerk more.
        rest_s: Time at rest before the step.
        yaw_hold_s: Time at that yaw after the step.
        yaw_return_s: Time for the yaw to go back to zero.
        hold_s: Time at yaw zero before going down.
        lower_s: Time to go down to `rest_height_m`.
        center_m: Place, x and y.
        repetitions: Number of cycles.
    """

    kind: Literal["engage"] = "engage"
    rest_height_m: Finite = -0.5
    height_m: Positive = 0.5
    yaw_rad: Finite = 1.7
    turn_s: NonNegative = 6.0
    rest_s: NonNegative = 3.0
    yaw_hold_s: NonNegative = 6.6
    yaw_return_s: NonNegative = 9.0
    hold_s: NonNegative = 6.9
    lower_s: Positive = 4.0
    center_m: Point2 = (0.0, 0.0)
    repetitions: Repetitions = 1

    @property
    def period_s(self) -> float:
        """Time of one cycle."""
        step = self.turn_s + self.rest_s
        return step + self.yaw_hold_s + self.yaw_return_s + self.hold_s + self.lower_s

    def pose(self, time_s: Array) -> Array:
        """Poses at times, see `Trajectory.pose`."""
        t = np.mod(time_s, self.period_s)
        # Ends of cycles, rounded up or down, are ends; only the first instant is a beginning.
        t = np.where((time_s > 0.0) & (t < 1e-9), self.period_s, t)
        step = self.turn_s + self.rest_s
        lower_start = self.period_s - self.lower_s
        stepped = t >= step
        down = np.clip((t - lower_start) / self.lower_s, 0.0, 1.0)
        z = np.where(
            stepped, self.height_m + down * (self.rest_height_m - self.height_m), self.rest_height_m
        )
        # Before the step to the formation's yaw (within the step if no time is given), then back.
        there = np.clip(t / self.turn_s, 0.0, 1.0) if self.turn_s > 0.0 else stepped
        back = np.clip((t - step - self.yaw_hold_s) / max(self.yaw_return_s, 1e-9), 0.0, 1.0)
        yaw = self.yaw_rad * (there - back)
        x, y = np.full_like(t, self.center_m[0]), np.full_like(t, self.center_m[1])
        return np.column_stack([x, y, z, yaw])


@spec
class Hold:
    """Stay at one pose.

    Attributes:
        kind: "hold".
        duration_s: How long.
        position_m: Place of the load.
        yaw_rad: Yaw of the load.
    """

    kind: Literal["hold"] = "hold"
    duration_s: Positive = 10.0
    position_m: Vector3 = (0.0, 0.0, 1.0)
    yaw_rad: Finite = 0.0

    @property
    def period_s(self) -> float:
        """The whole duration: a hold does not repeat."""
        return self.duration_s

    def pose(self, time_s: Array) -> Array:
        """Poses at times, see `Trajectory.pose`."""
        return np.tile([*self.position_m, self.yaw_rad], (len(time_s), 1))


@spec
class Line(_Periodic):
    """To and fro on a straight line at constant speed.

    Attributes:
        kind: "line".
        start_m: One end.
        end_m: Other end.
        speed_m_s: Speed.
        yaw_rad: Yaw of the load throughout.
        repetitions: Number of times there and back.
    """

    kind: Literal["line"] = "line"
    start_m: Vector3
    end_m: Vector3
    speed_m_s: Positive = 0.5
    yaw_rad: Finite = 0.0
    repetitions: Repetitions = 1

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if self.start_m == self.end_m:
            raise ValueError("start_m and end_m must differ")

    @property
    def period_s(self) -> float:
        """Time there and back."""
        return 2.0 * float(np.linalg.norm(np.subtract(self.end_m, self.start_m))) / self.speed_m_s

    def pose(self, time_s: Array) -> Array:
        """Poses at times, see `Trajectory.pose`."""
        phase = np.mod(time_s / self.period_s, 1.0)
        share = 1.0 - np.abs(2.0 * phase - 1.0)
        start, end = np.array(self.start_m), np.array(self.end_m)
        position = start + share[:, None] * (end - start)
        return np.column_stack([position, np.full(len(time_s), self.yaw_rad)])


@spec
class Waypoint:
    """One pose of a waypoint flight.

    Attributes:
        position_m: Place of the load.
        yaw_rad: Yaw of the load.
        hold_s: Time to stay there.
    """

    position_m: Vector3
    yaw_rad: Finite = 0.0
    hold_s: NonNegative = 2.0


@spec
class Waypoints(_Periodic):
    """Straight flights between poses, constant speed, yaw turning evenly on the way.

    Attributes:
        kind: "waypoints".
        points: At least one.
        speed_m_s: Speed between points.
        yaw_rate_rad_s: Largest turn rate between points.
        repetitions: Times through the list (from the last point back to the first).
    """

    kind: Literal["waypoints"] = "waypoints"
    points: Annotated[tuple[Waypoint, ...], Field(min_length=1)]
    speed_m_s: Positive = 0.5
    yaw_rate_rad_s: Positive = 0.5
    repetitions: Repetitions = 1

    def _knots(self) -> tuple[Array, Array]:
        """Times and poses between which the set-point moves linearly, all repetitions."""
        times, poses, now = [], [], 0.0
        for point in self.points * self.repetitions:
            pose = np.array([*point.position_m, point.yaw_rad])
            if poses:
                move = np.abs(pose - poses[-1])
                turn_s = move[3] / self.yaw_rate_rad_s
                now += max(np.linalg.norm(move[:3]) / self.speed_m_s, turn_s, 1e-3)
            times += [now, now + max(point.hold_s, 1e-6)]
            poses += [pose, pose]
            now = times[-1]
        return np.array(times), np.array(poses)

    @property
    def duration_s(self) -> float:
        """How long it takes, all repetitions."""
        return float(self._knots()[0][-1])

    @property
    def period_s(self) -> float:
        """Mean time of one repetition."""
        return self.duration_s / self.repetitions

    def pose(self, time_s: Array) -> Array:
        """Poses at times, see `Trajectory.pose`."""
        times, poses = self._knots()
        return np.column_stack([np.interp(time_s, times, poses[:, k]) for k in range(4)])


AnyTrajectory = Annotated[
    Circle | Shm | Engage | Hold | Line | Waypoints, Field(discriminator="kind")
]

TRAJECTORIES: dict[str, type] = {
    kind.kind: kind for kind in (Circle, Shm, Engage, Hold, Line, Waypoints)
}
