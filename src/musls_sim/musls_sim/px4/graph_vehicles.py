"""All drones of a scenario, each flown by a real PX4 that a ROS graph commands."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np

from musls_control.autopilot import MotorCommands
from musls_control.px4_frames import world_enu_ned
from musls_sim.plants.interface import PlantInputs
from musls_sim.px4.agent import XrceAgent, find_agent
from musls_sim.px4.build import build_px4
from musls_sim.px4.dds_link import DdsLink
from musls_sim.scenario import Scenario
from musls_sim.sensors.estimation import Truth
from musls_sim.session.build import build_plant
from musls_sim.preflight.checks import check_hover, hover_in_formation
from musls_sim.wind import Wind


class Px4Vehicles:
    """What `EmbeddedVehicles` is for the built-in autopilot: plant and PX4s in lockstep.

    Attributes:
        scenario: What is simulated.
        plant: The physics.
        autopilot: The PX4s.
        max_tension_n: Largest tension of each cable over all steps, (n,).
        plant_s: Wall time spent in the physics.
        tick: Control periods since the PX4s were up.
        origin_error_m: By how much the PX4s' estimates miss it that their local frames begin where
            the drones stand, (n,); the mean of the last seconds on the ground.
    """

    def __init__(self, scenario: Scenario, logs: Path) -> None:
        """Build everything and bring the PX4s up; the drones stand still meanwhile.

        Args:
            scenario: What to simulate.
            logs: Folder for what PX4s and agent print.

        Raises:
            ConfigError: The scenario cannot work.
            Px4Error: PX4 or the agent is missing or failed.
        """
        self.scenario = scenario
        self.hover = hover_in_formation(scenario, scenario.mission.stages[0].pose(np.zeros(1))[0])
        check_hover(scenario, self.hover)
        self.plant = build_plant(scenario, self.hover)
        gusts, _, sensors = np.random.default_rng(scenario.seed).spawn(3)  # as without ROS
        self._wind = Wind(scenario.wind, self.plant.period_s, gusts)
        self._truth = Truth(self.plant.state)
        n = scenario.system.n_drones
        self._command = MotorCommands.zeros(n, len(scenario.system.drones[0].rotors))
        self.max_tension_n = np.zeros(n)
        self.plant_s, self.tick = 0.0, 0
        self.agent = XrceAgent(find_agent(), logs / "agent.log")
        try:
            link = DdsLink(self.agent.port)
            self.autopilot = build_px4(scenario, self.hover, logs, sensors, link)
            measurement = self._truth.measurement
            offset_ned_m = self.autopilot.boot(measurement)
        except BaseException:
            self.agent.close()
            raise
        place_ned_m = world_enu_ned(measurement.position_enu_m)
        self.origin_error_m = np.linalg.norm(offset_ned_m + place_ned_m, axis=1)
        self._begin_s = self.autopilot.clock_s

    @property
    def time_s(self) -> float:
        """PX4's time, which is that of the graph: PX4 refuses what is stamped otherwise."""
        return self._begin_s + self.tick * self.plant.period_s

    def advance(self, periods: int) -> None:
        """Fly a number of control periods.

        Raises:
            Px4Error: A PX4 or the agent died or stopped answering.
            SimulationDiverged: The physics failed.
        """
        self.agent.check_alive()
        plant, state, command = self.plant, self.plant.state, self._command
        for _ in range(periods):
            self.autopilot.follow(self._truth.measurement, command)
            if not self._wind.steady:
                self._wind.step()
            begin = perf_counter()
            inputs = PlantInputs.zeros(plant.system)
            inputs.rotor_command_rad_s = command.omega_cmd_rad_s
            inputs.wind_enu_m_s[:] = self._wind.velocity_enu_m_s
            plant.step(inputs)
            self.plant_s += perf_counter() - begin
            np.maximum(self.max_tension_n, state.tension_peak_n, out=self.max_tension_n)
            self._truth.step(state)
            self.tick += 1

    def close(self) -> None:
        """End all PX4s and the agent; may be called repeatedly."""
        self.autopilot.close()
        self.agent.close()
