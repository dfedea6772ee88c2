"""Estimators of the load that a scenario can name in `estimation.load`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from musls_control.estimate import BodyMotion, Estimate
from musls_description.config.registry import (
    AnyOf,
    OwnClass,
    Registry,
    UserCodeError,
    requires,
    user_code,
)
from musls_description.config.schema import NonNegative, spec
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import SlungLoadSystem


@spec
class LoadImuSpec:
    """IMU on the load, at its centre of mass; standard deviations of white noise.

    Attributes:
        gyro_noise_rad_s: Noise per axis and 4 ms sample.
        accelerometer_noise_m_s2: Noise per axis and 4 ms sample.
    """

    gyro_noise_rad_s: NonNegative = 0.002
    accelerometer_noise_m_s2: NonNegative = 0.02


@dataclass(frozen=True)
class DroneErrors:
    """Errors of the drones' estimates, as their sensors are declared.

    Standard deviations, per axis, of white noise that is fresh in each period and over longer
    times has the same effect.

    Attributes:
        position_m: Error of a position.
        attitude_rad: Error of an attitude.
        acceleration_m_s2: Error of an acceleration, and of the rotors' force over the mass.
        rate_rad_s: Error of a body rate.
    """

    position_m: float
    attitude_rad: float
    acceleration_m_s2: float
    rate_rad_s: float


@dataclass(frozen=True)
class EstimatorSetup:
    """System and settings that a load estimator may know before the flight.

    Attributes:
        system: Masses, inertias, attachments, cables.
        gravity_m_s2: Gravity.
        period_s: Time between two calls of `LoadEstimator.step`.
        errors: Errors of the drones' estimates.
        cable_model: Knowledge of the cables in addition to their pull: `rigid_links` do not twist
            where they say so, `elastic` ones have drag.
        disturbance_m_s2: Acceleration of the load that no model explains, lasting 0.1 s.
        disturbance_rad_s2: Angular acceleration of the load that no model explains.
    """

    system: SlungLoadSystem
    gravity_m_s2: float
    period_s: float
    errors: DroneErrors
    cable_model: str = "massless"
    disturbance_m_s2: float = 0.0
    disturbance_rad_s2: float = 0.0


@dataclass(frozen=True)
class DroneSensors:
    """Measurements that do not see the load; the arrays keep their memory.

    Attributes:
        drones: Estimated motion of the drones, accelerations by their IMUs.
        rotor_force_enu_n: Force of each drone's rotors by their speeds, world, (n, 3).
        load_imu: Specific force [m/s^2] and angular velocity [rad/s] in the load's frame, (6,);
            None without an IMU on the load.
    """

    drones: BodyMotion
    rotor_force_enu_n: Array
    load_imu: Array | None = None


class LoadEstimator(ABC):
    """Base of all load estimators, ours and users' own.

    Attributes:
        load_imu: The IMU that the load has to carry for it, None for none.
        needs_rotors: Whether it uses the rotors' speeds, so that they have to turn.
        setup: Facts about the system, from `prepare` on.
    """

    load_imu: LoadImuSpec | None = None
    needs_rotors: bool = False
    setup: EstimatorSetup

    def prepare(self, setup: EstimatorSetup) -> None:
        """Store what is known of the system; called once, before the flight.

        A class that overrides this method must first call `super().prepare(setup)`.
        """
        self.setup = setup

    def start(  # noqa: B027 (optional)
        self, sensors: DroneSensors, estimate: Estimate, *, on_ground: bool
    ) -> None:
        """Begin with the estimate as it is: the load where it stands or hangs, at rest."""

    @abstractmethod
    def step(self, sensors: DroneSensors, estimate: Estimate) -> None:
        """Write the load's motion (row 0 of `estimate`) and `estimate.tension_n`."""

    def doubt(self) -> str:
        """Reason to doubt the flight's estimates, in one line; empty if there is none.

        Asked at the flight's end; it becomes a warning of the flight.
        """
        return ""


LOAD_ESTIMATORS: Registry[Any] = Registry(
    "load estimator",
    "musls.load_estimators",
    {
        "quasi_static": "musls_control.estimators.quasi_static:QuasiStaticSpec",
        "ekf": "musls_control.estimators.ekf:EkfSpec",
    },
    requires("build"),
)
"""Specifications by kind: classes made with `spec` that have `kind` and `build(setup)`."""

AnyLoadEstimator = Annotated[Any, AnyOf(LOAD_ESTIMATORS)]
"""Type of a scenario's `estimation.load` key."""


@LOAD_ESTIMATORS.register("mocap")
@spec
class SeenLoadSpec:
    """Motion capture sees the load; with `estimation.kind: truth` its motion is known.

    Attributes:
        kind: "mocap".
    """

    kind: Literal["mocap"] = "mocap"

    def build(self, setup: EstimatorSetup) -> None:
        """No estimator of the load but those of the drones."""


@LOAD_ESTIMATORS.register("python")
@spec
class OwnEstimatorSpec(OwnClass):
    """Your own load estimator."""

    def build(self, setup: EstimatorSetup) -> LoadEstimator:
        """Load the class and make the estimator."""
        estimator: LoadEstimator = self.make(LoadEstimator, "estimation.load")
        with user_code(lambda: " before the flight", type(estimator), "prepare"):
            estimator.prepare(setup)
        imu = estimator.load_imu
        if not (imu is None or isinstance(imu, LoadImuSpec)):
            name = type(estimator).__name__
            raise UserCodeError(f"{name}.load_imu = {imu!r}: must be a musls.LoadImuSpec or None")
        return estimator


__all__ = [
    "LOAD_ESTIMATORS",
    "AnyLoadEstimator",
    "DroneErrors",
    "DroneSensors",
    "EstimatorSetup",
    "LoadEstimator",
    "LoadImuSpec",
]
