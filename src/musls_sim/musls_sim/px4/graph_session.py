"""Session whose drones are flown by real PX4s that a ROS graph commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from musls_control.autopilot import Autopilot, DroneSetpoints, MotorCommands
from musls_control.estimate import Estimate
from musls_control.px4_frames import world_enu_ned
from musls_sim.autopilots import AutopilotSetup
from musls_sim.px4 import build as px4_build
from musls_sim.px4.install import Firmware
from musls_sim.px4.process import DdsLink, XrceAgent, find_agent
from musls_sim.px4.sitl import Px4Sitl
from musls_sim.px4_stand_in.guidance import check_delivery, flown_by_graph
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.compose import flies_delivery
from musls_sim.session.guidance import Guidance
from musls_sim.session.session import Session


class GraphPx4(Autopilot):
    """Real PX4s as an autopilot that takes no set-points: the graph guides it over DDS.

    Attributes:
        origin_error_m: Distance of the origin of each PX4's local frame from the drone's place,
            (n,); the mean of the last seconds on the ground.
    """

    has_sensors = True

    def __init__(self, setup: AutopilotSetup) -> None:
        """Start the agent; the PX4s are started by `start`.

        Raises:
            ConfigError: The scenario cannot be flown by real PX4s.
            Px4Error: PX4 or the agent is missing.
        """
        self.agent = XrceAgent(find_agent(), setup.logs / "agent.log")
        try:
            self.sitl: Px4Sitl = px4_build.build(setup, DdsLink(self.agent.port))
        except BaseException:
            self.agent.close()
            raise
        self.rate_hz = self.sitl.rate_hz
        self.origin_error_m = np.zeros(len(setup.scenario.system.drones))

    @property
    def firmware(self) -> Firmware:
        """Version and path of the PX4."""
        return self.sitl.firmware

    @property
    def landed(self) -> np.ndarray:
        """The land detectors' verdicts, (n_drones,) bool."""
        return self.sitl.landed

    @property
    def takeoff_state(self) -> np.ndarray:
        """Take-off states, (n_drones,) int."""
        return self.sitl.takeoff_state

    @property
    def hover_thrust(self) -> np.ndarray:
        """Hover thrust, (n_drones,)."""
        return self.sitl.hover_thrust

    @property
    def armed(self) -> np.ndarray:
        """Whether the motors may turn, (n_drones,) bool."""
        return self.sitl.armed

    def reset(self) -> None:
        """End the processes; `start` starts new ones."""
        self.sitl.reset()

    def start(self, setpoint: DroneSetpoints, estimate: Estimate) -> None:
        """Bring the PX4s up; the drones stand still meanwhile.

        Raises:
            Px4Error: One did not start or found no position.
        """
        offset_ned_m = self.sitl.boot(estimate)
        place_ned_m = world_enu_ned(estimate.drones.position_enu_m)
        self.origin_error_m = np.linalg.norm(offset_ned_m + place_ned_m, axis=1)

    def step(
        self, time_s: float, setpoint: DroneSetpoints, estimate: Estimate, out: MotorCommands
    ) -> MotorCommands:
        """Advance all PX4s by 4 ms.

        Raises:
            Px4Error: A PX4 died or stopped answering.
        """
        return self.sitl.follow(estimate, out)

    def close(self) -> None:
        """End all PX4s and the agent; may be called repeatedly."""
        self.sitl.close()
        self.agent.close()


class GraphSession(Session):
    """Plant and PX4s in lockstep; simulated time is PX4's."""

    def __init__(self, scenario: Scenario, logs: Path, *, force: bool = False) -> None:
        """Build everything; `start` brings the PX4s up.

        `force`: fly in spite of too little thrust.

        Raises:
            ConfigError: The scenario cannot work.
            Px4Error: PX4 or the agent is missing or failed.
        """
        made: list[GraphPx4] = []

        def make(setup: AutopilotSetup) -> GraphPx4:
            made.append(GraphPx4(setup))
            return made[0]

        super().__init__(
            flown_by_graph(scenario),
            force=force,
            autopilot_logs=logs,
            make_autopilot=make,
            make_guidance=lambda parts, observers: Guidance(
                scenario.system.n_drones, can_abort=flies_delivery(scenario)
            ),
        )
        check_delivery(self)
        self.px4s = made[0]
        self._begin_of_px4_s = 0.0

    def start(self) -> None:
        """Bring the PX4s up (raises Px4Error)."""
        super().start()
        self._begin_of_px4_s = self.px4s.sitl.clock_s

    def advance(self, periods: int = 1) -> None:
        """Fly a number of control periods.

        Raises:
            Px4Error: A PX4 or the agent died or stopped answering.
            SimulationDiverged: The physics failed.
        """
        self.px4s.agent.check_alive()
        super().advance(periods)

    @property
    def graph_time_s(self) -> float:
        """PX4's time, which is that of the graph: PX4 refuses what is stamped otherwise."""
        return self._begin_of_px4_s + self.time_s
