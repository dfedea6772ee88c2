"""Session whose drones are flown by real PX4s that a ROS graph commands."""

from __future__ import annotations

from pathlib import Path

from musls_sim.autopilots import AutopilotSetup
from musls_sim.px4.build import build
from musls_sim.px4.process import XrceAgent, find_agent
from musls_sim.px4.sitl import GraphPx4
from musls_sim.px4_stand_in import check_delivery, flown_by_graph
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.compose import flies_delivery
from musls_sim.session.guidance import Guidance
from musls_sim.session.session import Session


class GraphSession(Session):
    """Plant and PX4s in lockstep; simulated time is PX4's.

    Attributes:
        px4s: The PX4s and their agent.
    """

    def __init__(self, scenario: Scenario, logs: Path, *, force: bool = False) -> None:
        """Build everything and start the agent; `start` brings the PX4s up.

        `force`: fly in spite of too little thrust.
        """
        super().__init__(
            flown_by_graph(scenario),
            force=force,
            autopilot_logs=logs,
            make_autopilot=_px4s,
            make_guidance=lambda components, observers: Guidance(
                scenario.system.n_drones, can_abort=flies_delivery(scenario)
            ),
        )
        check_delivery(self)
        assert isinstance(self.components.autopilot, GraphPx4)
        self.px4s = self.components.autopilot
        self._begin_of_px4_s = 0.0

    def start(self) -> None:
        """Bring the PX4s up (raises Px4Error)."""
        super().start()
        self._begin_of_px4_s = self.px4s.clock_s

    def advance(self, periods: int = 1) -> None:
        """Fly a number of control periods."""
        self.px4s.agent.check_alive()
        super().advance(periods)

    @property
    def graph_time_s(self) -> float:
        """PX4's time, which is that of the graph: PX4 refuses what is stamped otherwise."""
        return self._begin_of_px4_s + self.time_s


def _px4s(setup: AutopilotSetup) -> GraphPx4:
    agent = XrceAgent(find_agent(), setup.logs / "agent.log")
    try:
        px4s = build(setup, agent)
        assert isinstance(px4s, GraphPx4)
    except BaseException:
        agent.close()
        raise
    return px4s
