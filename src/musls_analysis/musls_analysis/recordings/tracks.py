"""The parts of a recording: what was measured of a body, a cable, a drone's rotors, over time.

World frame ENU, body frames FLU, quaternions [w, x, y, z].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError

Array = NDArray[np.float64]
_Part = TypeVar("_Part")


@dataclass(frozen=True, eq=False)
class PoseTrack:
    """Poses over time.

    Attributes:
        time_s: Sample times, not decreasing (T,).
        position_enu_m: Positions (T, 3).
        orientation_wxyz: Unit quaternions body to world (T, 4).
    """

    time_s: Array
    position_enu_m: Array
    orientation_wxyz: Array

    def __post_init__(self) -> None:
        """Check the shapes."""
        n = len(self.time_s)
        shapes = (self.time_s.shape, self.position_enu_m.shape, self.orientation_wxyz.shape)
        if shapes != ((n,), (n, 3), (n, 4)):
            raise ValueError(f"a pose track needs shapes (T,), (T, 3), (T, 4), not {shapes}")

    def held_at(self, time_s: Array) -> PoseTrack:
        """Hold each pose until the next one, as a set-point is held.

        Args:
            time_s: Times asked for (K,).

        Returns:
            Poses at these times; NaN before the first one.
        """
        index = np.searchsorted(self.time_s, time_s, side="right") - 1
        if len(self.time_s) == 0:
            nothing = np.full((len(time_s), 7), np.nan)
            return PoseTrack(time_s, nothing[:, :3], nothing[:, 3:])
        position = self.position_enu_m[index]
        orientation = self.orientation_wxyz[index]
        position[index < 0] = np.nan
        orientation[index < 0] = np.nan
        return PoseTrack(time_s, position, orientation)

    def changes(self) -> PoseTrack:
        """The first pose and those that differ from the one before, e.g. of a held set-point."""
        values = np.column_stack([self.position_enu_m, self.orientation_wxyz])
        keep = np.ones(len(values), bool)
        keep[1:] = np.any(values[1:] != values[:-1], axis=1)
        return PoseTrack(self.time_s[keep], self.position_enu_m[keep], self.orientation_wxyz[keep])


@dataclass(frozen=True, eq=False)
class TwistTrack:
    """Velocities over time.

    Attributes:
        time_s: Sample times, not decreasing (T,).
        velocity_enu_m_s: Of the centre of mass, world (T, 3).
        omega_body_rad_s: Angular velocity, body frame (T, 3).
    """

    time_s: Array
    velocity_enu_m_s: Array
    omega_body_rad_s: Array

    def __post_init__(self) -> None:
        """Check the shapes."""
        n = len(self.time_s)
        shapes = (self.time_s.shape, self.velocity_enu_m_s.shape, self.omega_body_rad_s.shape)
        if shapes != ((n,), (n, 3), (n, 3)):
            raise ValueError(f"a twist track needs shapes (T,), (T, 3), (T, 3), not {shapes}")

    def at(self, time_s: Array) -> TwistTrack:
        """Interpolate linearly; NaN before the first sample and after the last.

        Args:
            time_s: Times asked for (K,).
        """
        if np.array_equal(time_s, self.time_s):
            return self
        velocity, omega = (
            np.stack([np.interp(time_s, self.time_s, c, np.nan, np.nan) for c in values.T], axis=-1)
            for values in (self.velocity_enu_m_s, self.omega_body_rad_s)
        )
        return TwistTrack(time_s, velocity, omega)


@dataclass(frozen=True, eq=False)
class AccelerationTrack:
    """Accelerations that a controller asks of a drone's autopilot, while it does.

    Attributes:
        time_s: When each was asked for (T,).
        acceleration_enu_m_s2: World, gravity not in it: at rest it is zero (T, 3).
    """

    time_s: Array
    acceleration_enu_m_s2: Array


@dataclass(frozen=True, eq=False)
class WrenchTrack:
    """Force and moment over time, world frame.

    Attributes:
        time_s: Sample times (T,).
        force_enu_n: (T, 3).
        moment_enu_n_m: (T, 3).
    """

    time_s: Array
    force_enu_n: Array
    moment_enu_n_m: Array


@dataclass(frozen=True, eq=False)
class CableTrack:
    """What is known of one cable.

    Attributes:
        time_s: Sample times of the tension (T,).
        tension_n: Tension at the load end and at the drone end (T, 2).
        shape_time_s: Sample times of the shape (S,).
        shape_enu_m: Points from the load to the drone per sample, S arrays (points, 3).
        free_length_time_s: Sample times of the free length, where it changes (F,).
        free_length_m: Unstretched length that is not on a winch (F,).
    """

    time_s: Array
    tension_n: Array
    shape_time_s: Array
    shape_enu_m: Sequence[Array] = ()
    free_length_time_s: Array = field(default_factory=lambda: np.zeros(0))
    free_length_m: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class RotorTrack:
    """Rotor speeds of one drone.

    Attributes:
        time_s: Sample times (T,).
        speed_rad_s: Speeds (T, rotors).
    """

    time_s: Array
    speed_rad_s: Array


@dataclass(frozen=True, eq=False)
class BatteryTrack:
    """A drone's battery.

    Attributes:
        time_s: Sample times (T,).
        voltage_v: At the battery, under load (T,).
        current_a: What it gives (T,).
        charge: Share of its capacity that is left (T,).
    """

    time_s: Array
    voltage_v: Array
    current_a: Array
    charge: Array

    @property
    def power_w(self) -> Array:
        """What it gives (T,)."""
        return self.voltage_v * self.current_a


@dataclass(frozen=True)
class Stage:
    """A stage of the mission: start <= time < end.

    Attributes:
        name: Unique within a recording.
        start_s: First moment.
        end_s: First moment of the next stage, or the end of the recording.
    """

    name: str
    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """Length in time [s]."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Event:
    """Something that happened suddenly.

    Attributes:
        time_s: When.
        kind: What sort of thing, e.g. "cable_broken".
        what: To what it happened, or details.
    """

    time_s: float
    kind: str
    what: str


@dataclass(frozen=True, eq=False)
class Body:
    """All that was recorded of the load or of a drone.

    Velocities and rotor speeds are given at the times of the poses; simulated ones were recorded
    at these, others are interpolated.

    Attributes:
        name: "load", "drone_1", ...
        pose: Poses.
        twist: Velocities, None if they were not recorded.
        rotors: Rotor speeds, None if they were not recorded.
        setpoint: Set-points, each held until the next; None if they were not recorded.
    """

    name: str
    pose: PoseTrack
    twist: TwistTrack | None = None
    rotors: RotorTrack | None = None
    setpoint: PoseTrack | None = None

    @property
    def time_s(self) -> Array:
        """Sample times (T,)."""
        return self.pose.time_s

    @property
    def position_enu_m(self) -> Array:
        """Centre of mass, world (T, 3)."""
        return self.pose.position_enu_m

    @property
    def orientation_wxyz(self) -> Array:
        """Unit quaternions, body to world (T, 4)."""
        return self.pose.orientation_wxyz

    @property
    def velocity_enu_m_s(self) -> Array:
        """Velocity of the centre of mass, world (T, 3).

        Raises:
            ConfigError: It was not recorded.
        """
        return self._have(self.twist, "velocity").at(self.time_s).velocity_enu_m_s

    @property
    def omega_body_rad_s(self) -> Array:
        """Angular velocity, body frame (T, 3).

        Raises:
            ConfigError: It was not recorded.
        """
        return self._have(self.twist, "velocity").at(self.time_s).omega_body_rad_s

    @property
    def rotor_speed_rad_s(self) -> Array:
        """Rotor speeds (T, rotors).

        Raises:
            ConfigError: They were not recorded, or the body has no rotors.
        """
        rotors = self._have(self.rotors, "rotor speed")
        if np.array_equal(rotors.time_s, self.time_s):
            return rotors.speed_rad_s
        columns = [
            np.interp(self.time_s, rotors.time_s, c, np.nan, np.nan) for c in rotors.speed_rad_s.T
        ]
        return np.stack(columns, axis=-1)

    def _have(self, part: _Part | None, what: str) -> _Part:
        if part is None:
            raise ConfigError(f"no {what} of {self.name} in this recording")
        return part
