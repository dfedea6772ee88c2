"""Simulated sensors of the drones, as PX4's simulator interface wants them.

IMU at the body's origin (its centre of mass, so without lever arm), magnetometer, barometer and
satellite navigation, each true value plus white noise. No biases, no delays, no misalignment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from musls_control.estimate import BodyMotion
from musls_control.px4.frames import body_flu_frd, world_enu_ned
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import matrix_to_body
from musls_sim.specs.estimation import Px4SensorSpec

ORIGIN_LATITUDE_DEG = 47.397742
ORIGIN_LONGITUDE_DEG = 8.545594
ORIGIN_ALTITUDE_M = 488.0
"""Place of the world's origin on earth: PX4's own default, near Zurich."""

EARTH_RADIUS_M = 6371000.0
"""Sphere of PX4's map projection."""

MAGNETIC_DECLINATION_RAD = np.deg2rad(3.33)
MAGNETIC_INCLINATION_RAD = np.deg2rad(63.15)
MAGNETIC_STRENGTH_GAUSS = 0.4822
"""Earth's field there, World Magnetic Model 2020 as tabulated in PX4, which checks against it."""

RATE_HZ = 250.0

TEMPERATURE_DEG_C = 20.0
ACCELEROMETER_RANGE_M_S2 = 16.0 * STANDARD_GRAVITY_M_S2
GYRO_RANGE_RAD_S = np.deg2rad(2000.0)


@dataclass(frozen=True)
class Px4Sample:
    """Samples of the sensors of all drones at one time, NED and FRD.

    Attributes:
        specific_force_frd_m_s2: (n, 3).
        omega_frd_rad_s: (n, 3).
        magnetic_frd_gauss: (n, 3), or None when not due; the barometer is due with it.
        pressure_hpa: (n,).
        altitude_m: (n,), above mean sea level by the barometer.
        fix: Satellite navigation, or None when not due.
    """

    specific_force_frd_m_s2: Array
    omega_frd_rad_s: Array
    magnetic_frd_gauss: Array | None
    pressure_hpa: Array | None
    altitude_m: Array | None
    fix: Fix | None


@dataclass(frozen=True)
class Fix:
    """Satellite navigation of all drones, (n,) each and (n, 3); altitude above mean sea level."""

    latitude_deg: Array
    longitude_deg: Array
    altitude_m: Array
    velocity_ned_m_s: Array


class Px4Sensors:
    """Sensors of all drones, sampled once per control period."""

    _SLOW_EVERY = 5

    def __init__(
        self,
        spec: Px4SensorSpec,
        gravity_m_s2: float,
        period_s: float,
        generator: np.random.Generator,
    ) -> None:
        self._spec = spec
        self._generator = generator
        self._gravity_enu = np.array([0.0, 0.0, gravity_m_s2])
        self._fixes_per_tick = spec.gps_rate_hz * period_s
        self._field_enu = world_enu_ned(earth_field_ned_gauss())
        self._tick = 0

    def sample(self, truth: BodyMotion) -> Px4Sample:
        """Read all sensors from the true motion of the drones, (n_drones, 16)."""
        spec = self._spec
        tick = self._tick
        self._tick += 1
        to_body = matrix_to_body(truth.orientation_wxyz)
        acceleration = truth.acceleration_enu_m_s2 + self._gravity_enu
        force = np.einsum("nij,nj->ni", to_body, acceleration)
        force = body_flu_frd(force) + self._noise(force.shape, spec.accelerometer_noise_m_s2)
        omega = body_flu_frd(truth.omega_body_rad_s)
        omega += self._noise(omega.shape, spec.gyro_noise_rad_s)
        magnetic = pressure = altitude = None
        if tick % self._SLOW_EVERY == 0:
            magnetic = body_flu_frd(to_body @ self._field_enu)
            magnetic += self._noise(force.shape, spec.magnetometer_noise_gauss)
            pressure = pressure_hpa(ORIGIN_ALTITUDE_M + truth.position_enu_m[:, 2])
            pressure += self._noise(pressure.shape, spec.barometer_noise_hpa)
            altitude = pressure_altitude_m(pressure)
        due = int((tick + 1) * self._fixes_per_tick) > int(tick * self._fixes_per_tick)
        return Px4Sample(
            np.clip(force, -ACCELEROMETER_RANGE_M_S2, ACCELEROMETER_RANGE_M_S2),
            np.clip(omega, -GYRO_RANGE_RAD_S, GYRO_RANGE_RAD_S),
            magnetic,
            pressure,
            altitude,
            self._fix(truth) if due else None,
        )

    def _fix(self, truth: BodyMotion) -> Fix:
        spec = self._spec
        shape = truth.position_enu_m.shape
        position = world_enu_ned(truth.position_enu_m)
        position[:, :2] += self._noise((shape[0], 2), spec.gps_horizontal_noise_m)
        position[:, 2] += self._noise(shape[:1], spec.gps_vertical_noise_m)
        velocity = world_enu_ned(truth.velocity_enu_m_s)
        velocity += self._noise(shape, spec.gps_velocity_noise_m_s)
        latitude, longitude = geodetic_deg(position)
        return Fix(latitude, longitude, ORIGIN_ALTITUDE_M - position[:, 2], velocity)

    def _noise(self, shape: tuple[int, ...], deviation: float) -> Array:
        return deviation * self._generator.standard_normal(shape)


def earth_field_ned_gauss() -> Array:
    """Earth's magnetic field at the origin, (3,)."""
    horizontal = MAGNETIC_STRENGTH_GAUSS * np.cos(MAGNETIC_INCLINATION_RAD)
    return np.array(
        [
            horizontal * np.cos(MAGNETIC_DECLINATION_RAD),
            horizontal * np.sin(MAGNETIC_DECLINATION_RAD),
            MAGNETIC_STRENGTH_GAUSS * np.sin(MAGNETIC_INCLINATION_RAD),
        ]
    )


def geodetic_deg(position_ned_m: Array) -> tuple[Array, Array]:
    """Latitude and longitude of places near the origin, (n, 3), on PX4's sphere.

    100 m away the tangent plane is off by 1 mm.
    """
    north, east = position_ned_m[:, 0], position_ned_m[:, 1]
    latitude = ORIGIN_LATITUDE_DEG + np.rad2deg(north / EARTH_RADIUS_M)
    parallel_m = EARTH_RADIUS_M * np.cos(np.deg2rad(ORIGIN_LATITUDE_DEG))
    return latitude, ORIGIN_LONGITUDE_DEG + np.rad2deg(east / parallel_m)


def pressure_hpa(altitude_m: Array) -> Array:
    """Pressure of the International Standard Atmosphere's troposphere."""
    return 1013.25 * (1.0 - 2.25577e-5 * altitude_m) ** 5.25588


def pressure_altitude_m(pressure: Array) -> Array:
    """Altitude of a pressure [hPa], the inverse of `pressure_hpa`."""
    return (1.0 - (pressure / 1013.25) ** (1.0 / 5.25588)) / 2.25577e-5
