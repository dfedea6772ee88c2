"""The step that estimates the load from what the drones sense (`estimation.load`)."""

from __future__ import annotations

import numpy as np

from musls_control.controllers import Controller, ControlLevel, level_of
from musls_control.estimate import Estimate
from musls_control.estimators import DroneSensors, EstimatorSetup, LoadEstimator
from musls_description.config.errors import ConfigError
from musls_description.config.registry import user_code
from musls_description.hanging.equilibrium import weightless
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    body_z_in_world,
    cross,
    dot,
    put,
    rotate_back_by,
    rotate_by,
    scale,
    sub,
)
from musls_description.system.slung_system import formation_of
from musls_sim.plants.interface import PlantState
from musls_sim.plants.rigid_body import rotor_records
from musls_sim.scenario.scenario import Scenario
from musls_sim.sensors.estimation import check_estimate, drone_errors


class LoadEstimation:
    """Hands the drones' estimates, rotor speeds and the load's IMU to a load estimator.

    Attributes:
        estimator: Estimates the load.
    """

    def __init__(
        self,
        estimator: LoadEstimator,
        state: PlantState,
        estimate: Estimate,
        scenario: Scenario,
        period_s: float,
        generator: np.random.Generator,
    ) -> None:
        self.estimator = estimator
        self._state = state
        self._estimate = estimate
        self._rotors = rotor_records(scenario.system)
        self._gravity = scenario.physics.gravity_m_s2
        self._generator = generator
        force = np.zeros((scenario.system.n_drones, 3))
        imu = None if estimator.load_imu is None else np.zeros(6)
        self._sensors = DroneSensors(estimate.drones, force, imu)
        self._on_ground = scenario.start.kind == "ground"
        self._period_s = period_s
        self._started = False

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        state: PlantState,
        estimate: Estimate,
        period_s: float,
        generator: np.random.Generator,
    ) -> LoadEstimation | None:
        """The step of a scenario, None where motion capture sees the load."""
        spec = scenario.estimation.load
        if spec.kind == "mocap":
            return None
        what = f"estimation.load = {spec.kind}"
        if scenario.cable_model == "rigid_rods":
            raise ConfigError(f"{what}: needs cables, which pull along their direction, not rods")
        system = formation_of(scenario.system, what)
        if scenario.cable_model == "massless":
            system = weightless(system)
        gravity = scenario.physics.gravity_m_s2
        errors = drone_errors(scenario.estimation, period_s, gravity)
        setup = EstimatorSetup(system, gravity, period_s, errors, scenario.cable_model)
        estimator = spec.build(setup)
        return cls(estimator, state, estimate, scenario, period_s, generator)

    def check(self, controller: Controller | None) -> None:
        """Refuse a controller that flies without rotors, if the estimator goes by them."""
        turns_none = controller and level_of(controller) is ControlLevel.IDEAL_THRUST_MOMENT
        if self.estimator.needs_rotors and turns_none:
            raise ConfigError(
                f"estimation.load: {type(self.estimator).__name__} goes by rotor speeds, but the "
                "controller is of level ideal_thrust_moment, which turns no rotors"
            )

    def step(self, tick: int) -> None:
        """Estimate the load after the drones; `tick` counts periods."""
        sensors = self._sensors
        drones = sensors.drones.data
        speed = self._state.rotor_speed_rad_s
        rotor_forces(drones, self._rotors, speed, sensors.rotor_force_enu_n)
        if sensors.load_imu is not None:
            self._feel(sensors.load_imu)

        def when() -> str:
            return f" at {tick * self._period_s:.3f} s"

        if not self._started:
            with user_code(when, type(self.estimator), "start"):
                self.estimator.start(sensors, self._estimate, on_ground=self._on_ground)
            self._started = True
        with user_code(when, type(self.estimator), "step"):
            self.estimator.step(sensors, self._estimate)
        check_estimate(type(self.estimator), "step", self._estimate, when())

    def doubt(self) -> str:
        """Why the estimates of the flight are doubtful, empty if they are not."""
        with user_code(lambda: " at the end of the flight", type(self.estimator), "doubt"):
            text = self.estimator.doubt()
            if not isinstance(text, str):
                raise TypeError(f"must be a text, not {text!r}")
            return text

    def _feel(self, imu: np.ndarray) -> None:
        noise = self._generator.standard_normal(6)
        load = self._state
        spec = self.estimator.load_imu
        assert spec is not None
        specific_force = load.acceleration_enu_m_s2[0] + [0.0, 0.0, self._gravity]
        imu[:3] = rotate_back_by(load.orientation_wxyz[0], specific_force)
        imu[:3] += spec.accelerometer_noise_m_s2 * noise[:3]
        imu[3:] = load.omega_body_rad_s[0] + spec.gyro_noise_rad_s * noise[3:]


@compiled()
def rotor_forces(drones, rotors, speed, out):
    """Write the force of each drone's rotors in still air, world, (n, 3), by their speeds."""
    for i in range(len(drones)):
        q = drones[i, 6:10]
        up = body_z_in_world(q)
        force = (0.0, 0.0, 0.0)
        for j in range(speed.shape[1]):
            rotor = rotors[i, j]
            omega = speed[i, j]
            force = add(force, scale(rotor.thrust * omega * omega, up))
            hub = add(drones[i, 3:6], rotate_by(q, cross(drones[i, 10:13], rotor.place)))
            beside = sub(hub, scale(dot(hub, up), up))
            force = sub(force, scale(rotor.drag * omega, beside))
        put(out[i], force)
