"""All drones of a scenario with load and cables, flown by their commanders' set-points."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from musls_control.autopilot import DroneSetpoints, MotorCommands
from musls_control.px4_cascade.takeoff import TakeoffState
from musls_description.errors import ConfigError
from musls_sim.plants.interface import PlantInputs
from musls_sim.px4_stand_in.commander import Commander, NavState
from musls_sim.scenario import Scenario
from musls_sim.preflight.airframe import build_autopilot
from musls_sim.session.build import build_estimator, build_plant
from musls_sim.preflight.checks import check_hover, hover_in_formation
from musls_sim.preflight.trim import trim_throttle
from musls_sim.wind import Wind


class EmbeddedVehicles:
    """The flight loop without a mission: whoever gives set-points and commands flies it.

    Attributes:
        scenario: What is simulated; its mission only tells where an air start hangs.
        plant: The physics.
        autopilot: PX4's control chain of all drones.
        commanders: One per drone.
        measurement: What the drones know of their state.
        command: What the motors are told.
        max_tension_n: Largest tension of each cable over all steps, (n,).
        plant_s: Wall time spent in the physics.
    """

    def __init__(self, scenario: Scenario, loss_action: NavState = NavState.LOITER) -> None:
        """Build everything.

        Args:
            scenario: What to simulate.
            loss_action: See `Commander`.

        Raises:
            ConfigError: The scenario cannot work.
        """
        if scenario.autopilot.kind != "builtin":
            raise ConfigError(
                f"autopilot.kind = {scenario.autopilot.kind}: these vehicles have the built-in "
                "autopilot only; a real PX4 has topics of its own"
            )
        self.scenario = scenario
        first = scenario.mission.stages[0].pose(np.zeros(1))[0]
        self.hover = hover_in_formation(scenario, first)
        check_hover(scenario, self.hover)
        self.autopilot = build_autopilot(scenario)
        self.plant = build_plant(scenario, self.hover)
        n, in_air = scenario.system.n_drones, scenario.start == "air"
        noise = np.random.default_rng(scenario.seed).spawn(2)  # as in a flight without ROS
        self._wind = Wind(scenario.wind, self.plant.period_s, noise[0])
        self._estimator = build_estimator(scenario, self.plant, noise[1])
        self.measurement = self._estimator.measurement
        self.command = MotorCommands.zeros(n, len(scenario.system.drones[0].rotors))
        self.commanders = [Commander(in_air=in_air, loss_action=loss_action) for _ in range(n)]
        self._setpoint = DroneSetpoints.unset(n)
        if in_air:
            thrust = self.hover.equilibrium.drone_force_n
            self.autopilot.trim(
                trim_throttle(scenario.system, self.plant.state.rotor_speed_rad_s),
                thrust / np.linalg.norm(thrust, axis=1, keepdims=True),
            )
        self.max_tension_n = np.zeros(n)
        self.plant_s = 0.0
        self.tick = 0

    @property
    def time_s(self) -> float:
        """Simulated time."""
        return self.tick * self.plant.period_s

    def advance(self, periods: int) -> None:
        """Decide once what the drones are to do, then fly a number of control periods.

        Raises:
            SimulationDiverged: The physics failed.
        """
        landed, takeoff = self.autopilot.landed, self.autopilot.takeoff_state
        for i, commander in enumerate(self.commanders):
            commander.step(
                self.time_s,
                self.measurement.data[i],
                bool(landed[i]),
                takeoff[i] == TakeoffState.FLIGHT,
                self._setpoint.data[i],
            )
        plant, state = self.plant, self.plant.state
        for _ in range(periods):
            self.autopilot.step(self.time_s, self._setpoint, self.measurement, self.command)
            if not self._wind.steady:
                self._wind.step()
            begin = perf_counter()
            inputs = PlantInputs.zeros(plant.system)
            inputs.rotor_command_rad_s = self.command.omega_cmd_rad_s
            inputs.wind_enu_m_s[:] = self._wind.velocity_enu_m_s
            plant.step(inputs)
            self.plant_s += perf_counter() - begin
            np.maximum(self.max_tension_n, state.tension_peak_n, out=self.max_tension_n)
            self._estimator.step(state)
            self.tick += 1

    def close(self) -> None:
        """Nothing to end here."""
