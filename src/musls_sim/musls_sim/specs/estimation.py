"""Specifications: estimation of the drones, noise of PX4's sensors, limits that are watched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from musls_control.controllers import USUAL_LATENCY_S
from musls_control.estimators import AnyLoadEstimator, SeenLoadSpec
from musls_description.config.schema import Fraction, NonNegative, spec


@spec
class TruthSpec:
    """Ground truth: the drones know their state exactly, or with noise as in RotorTM (eq. 75, 76).

    Attributes:
        kind: "truth".
        noise: Standard deviation of white noise on all components of load and drones, fresh each
            control period: positions [m], velocities [m/s], attitudes [rad], body rates [rad/s].
        load: Estimator of the load: "mocap" has its true state, "quasi_static" and "ekf" compute it
            from the drones, and so may your own class.
    """

    kind: Literal["truth"] = "truth"
    noise: NonNegative = 0.0
    load: AnyLoadEstimator = Field(default_factory=SeenLoadSpec)

    @property
    def load_latency_s(self) -> float:
        """Time by which the load's motion is late: nothing, or what estimators need."""
        return 0.0 if self.load.kind == "mocap" else USUAL_LATENCY_S


@spec
class MotionCaptureSpec:
    """Motion capture and IMU, noise white and Gaussian (standard deviations).

    Attributes:
        kind: "mocap".
        rate_hz: Samples per second.
        latency_s: Time from taking a sample until the drone has it.
        position_noise_m: Noise per axis.
        attitude_noise_rad: Noise per axis.
        dropout_fraction: Share of samples that get lost, at random.
        gyro_noise_rad_s: Noise per axis and 4 ms sample.
        accelerometer_noise_m_s2: Noise per axis and 4 ms sample.
        load: Estimator of the load: "mocap" measures it, "quasi_static" and "ekf" compute it
            from the drones, and so may your own class.
    """

    kind: Literal["mocap"] = "mocap"
    rate_hz: Annotated[float, Field(gt=0.0, le=250.0)] = 100.0
    latency_s: Annotated[float, Field(ge=0.0, le=1.0)] = 0.02
    position_noise_m: NonNegative = 0.0005
    attitude_noise_rad: NonNegative = 0.002
    dropout_fraction: Fraction = 0.0
    gyro_noise_rad_s: NonNegative = 0.002
    accelerometer_noise_m_s2: NonNegative = 0.02
    load: AnyLoadEstimator = Field(default_factory=SeenLoadSpec)

    @property
    def load_latency_s(self) -> float:
        """Time by which the load's motion is late: on its way, and in the filter of velocities."""
        return self.latency_s + 1.5 / self.rate_hz


def _of_mocap(value: Any) -> Any:
    """Keys without a kind are those of motion capture."""
    return {"kind": "mocap", **value} if isinstance(value, Mapping) else value


AnyEstimation = Annotated[
    Annotated[TruthSpec | MotionCaptureSpec, Field(discriminator="kind")],
    BeforeValidator(_of_mocap),
]


@spec
class Px4SensorSpec:
    """Noise of the sensors that a real PX4 is given; standard deviations of white noise.

    Attributes:
        gyro_noise_rad_s: Noise per axis and 4 ms sample.
        accelerometer_noise_m_s2: Noise per axis and 4 ms sample.
        magnetometer_noise_gauss: Noise per axis and 20 ms sample.
        barometer_noise_hpa: Noise per 20 ms sample; 0.01 hPa are 9 cm.
        gps_rate_hz: Fixes per second.
        gps_horizontal_noise_m: Noise per axis and fix, as of a receiver with corrections (RTK).
        gps_vertical_noise_m: Noise per fix.
        gps_velocity_noise_m_s: Noise per axis and fix.
    """

    gyro_noise_rad_s: NonNegative = 0.002
    accelerometer_noise_m_s2: NonNegative = 0.02
    magnetometer_noise_gauss: NonNegative = 0.001
    barometer_noise_hpa: NonNegative = 0.01
    gps_rate_hz: Annotated[float, Field(ge=1.0, le=50.0)] = 10.0
    gps_horizontal_noise_m: NonNegative = 0.02
    gps_vertical_noise_m: NonNegative = 0.03
    gps_velocity_noise_m_s: NonNegative = 0.03
