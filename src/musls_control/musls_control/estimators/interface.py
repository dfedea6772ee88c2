"""Interface of load estimators: what the drones sense in, the load's motion and tensions out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from musls_control.estimate import BodyMotion, Estimate
from musls_description.config.schema import NonNegative, spec
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import SlungLoadSystem


@spec
class LoadImuSpec:
    """IMU on the load, at its centre of mass; standard deviations of white noise.

    Attributes:
        gyro_noise_rad_s: Per axis and 4 ms sample.
        accelerometer_noise_m_s2: Per axis and 4 ms sample.
    """

    gyro_noise_rad_s: NonNegative = 0.002
    accelerometer_noise_m_s2: NonNegative = 0.02


@dataclass(frozen=True)
class EstimatorSetup:
    """System and settings that a load estimator may know before the flight.

    Attributes:
        system: Masses, inertias, attachments, cables.
        gravity_m_s2: Gravity.
        period_s: Time between two calls of `LoadEstimator.step`.
    """

    system: SlungLoadSystem
    gravity_m_s2: float
    period_s: float


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
        needs_rotors: Whether it goes by the rotors' speeds, so that they have to turn.
        setup: What is known of the system, from `prepare` on.
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
