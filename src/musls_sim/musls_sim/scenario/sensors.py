"""Specifications: estimation of the drones, sensors, and limits that are watched."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from musls_control.estimate import Estimate
from musls_control.estimators import AnyLoadEstimator, SeenLoadSpec
from musls_description.config.errors import ConfigError
from musls_description.config.registry import Registry, any_of, requires
from musls_description.config.schema import Fraction, NonNegative, Positive, spec
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.interface import PlantState


@spec
class TruthSpec:
    """Ground truth: the drones know their state exactly, or with noise as in RotorTM (eq. 75, 76).

    Attributes:
        kind: "truth".
        noise: Standard deviation of white noise on all components of load and drones, fresh each
            control period: positions [m], velocities [m/s], attitudes [rad], body rates [rad/s].
        load: How the load is estimated: "mocap" knows it, "quasi_static" and "ekf" go by the
            drones, and so may a class of one's own.
    """

    kind: Literal["truth"] = "truth"
    noise: NonNegative = 0.0
    load: AnyLoadEstimator = Field(default_factory=SeenLoadSpec)


@spec
class MotionCaptureSpec:
    """Motion capture and IMU, noise white and Gaussian (standard deviations).

    Attributes:
        kind: "mocap".
        rate_hz: Samples per second.
        latency_s: From taking a sample until the drone has it.
        position_noise_m: Per axis.
        attitude_noise_rad: Per axis.
        dropout_fraction: Share of samples that get lost, at random.
        gyro_noise_rad_s: Per axis and 4 ms sample.
        accelerometer_noise_m_s2: Per axis and 4 ms sample.
        load: How the load is estimated: "mocap" sees it, "quasi_static" and "ekf" go by the
            drones, and so may a class of one's own.
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


def _of_mocap(value: Any) -> Any:
    """Keys without a kind are those of motion capture."""
    return {"kind": "mocap", **value} if isinstance(value, Mapping) else value


AnyEstimation = Annotated[
    Annotated[TruthSpec | MotionCaptureSpec, Field(discriminator="kind")],
    BeforeValidator(_of_mocap),
]


# ---------- Sensors of one's own; load cells are keys of the cables


def _checked(kind: Any) -> Any:
    """Refuse a class that builds nothing, or whose readings have no names."""
    names = getattr(kind, "readings", ())
    if not isinstance(names, (tuple, list)) or not all(
        isinstance(name, str) and name and not set(name) & set(" /\t\n") for name in names
    ):
        raise ConfigError(f"{kind.__name__}.readings = {names!r}: must be a tuple of names")
    return requires("build")(kind)


SENSORS: Registry[Any] = Registry("sensor", "musls.sensors", {}, _checked)
"""Specifications by kind: classes made with `spec` derived from `SensorModel`."""

AnySensor = any_of(SENSORS)
"""Type of an entry of a scenario's `sensors`."""


@dataclass(frozen=True)
class SensorSetup:
    """Truth, period and noise that a sensor is built with.

    Attributes:
        state: The truth; the memory stays the same.
        period_s: Control period.
        generator: Noise of this sensor and of those after it.
    """

    system: RigSystem
    state: PlantState
    period_s: float
    generator: np.random.Generator


@spec
class SensorModel:
    """Base of sensors; a `spec` class derived from it needs `kind` and `build`.

    Attributes:
        kind: Kind of the sensor.
        readings: Names of the numbers that are recorded, with units: `("force_n",)`.
    """

    kind: str
    readings: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def build(self, setup: SensorSetup) -> Callable[[Estimate], Sequence[float] | None]:
        """Make the function that measures at the end of each control period.

        It may write into the estimate, and returns the numbers of `readings`.
        """
        raise NotImplementedError


@spec
class Px4SensorSpec:
    """Noise of the sensors that a real PX4 is given; standard deviations of white noise.

    Attributes:
        gyro_noise_rad_s: Per axis and 4 ms sample.
        accelerometer_noise_m_s2: Per axis and 4 ms sample.
        magnetometer_noise_gauss: Per axis and 20 ms sample.
        barometer_noise_hpa: Per 20 ms sample; 0.01 hPa are 9 cm.
        gps_rate_hz: Fixes per second.
        gps_horizontal_noise_m: Per axis and fix, as of a receiver with corrections (RTK).
        gps_vertical_noise_m: Per fix.
        gps_velocity_noise_m_s: Per axis and fix.
    """

    gyro_noise_rad_s: NonNegative = 0.002
    accelerometer_noise_m_s2: NonNegative = 0.02
    magnetometer_noise_gauss: NonNegative = 0.001
    barometer_noise_hpa: NonNegative = 0.01
    gps_rate_hz: Annotated[float, Field(ge=1.0, le=50.0)] = 10.0
    gps_horizontal_noise_m: NonNegative = 0.02
    gps_vertical_noise_m: NonNegative = 0.03
    gps_velocity_noise_m_s: NonNegative = 0.03


@spec
class LimitsSpec:
    """Limits that a flight must keep.

    Attributes:
        separation_m: Least distance between the rotor tips of two drones. A plan that breaks it is
            refused; in flight coming closer is an event `too_close`. None for no limit.
        collision: What a `collision` does, drones that hit each other, the load, a cable or the
            ground, and all of them obstacles: "report" is an event, "end" ends the flight with it
            as a failure.
    """

    separation_m: Positive | None = None
    collision: Literal["report", "end"] = "report"
