"""Guidance of drones whose set-points and commands come from a ROS graph, as PX4 takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from musls_control.autopilot import DroneSetpoints
from musls_control.controllers.kinds import FormationSpec
from musls_control.px4_cascade.takeoff import TakeoffState
from musls_description.errors import ConfigError
from musls_sim.px4_stand_in.commander import Commander, NavState
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.compose import Parts, flies_delivery
from musls_sim.session.delivery import check_hooks_of
from musls_sim.session.session import Session

PERIODS_PER_WINDOW = 5
"""Control periods between two decisions of the commanders: 20 ms."""


class CommandedGuidance:
    """One commander a drone decides what the drone is to do.

    Attributes:
        commanders: One per drone.
        setpoint: What the autopilot is to follow now.
        stage: What the graph says of the mission.
        finished: Never: whoever runs the session ends it.
        abort: Gives a delivery up; None for another mission.
    """

    def __init__(self, parts: Parts, commanders: Sequence[Commander]) -> None:
        """Begin with nothing asked for.

        Args:
            parts: Autopilot and estimator.
            commanders: One per drone.
        """
        self.commanders, self._parts = tuple(commanders), parts
        self.setpoint = DroneSetpoints.unset(len(commanders))
        self.stage, self.finished, self.landed = "", False, False
        self.planned_s = float("inf")
        self.abort = abort_of(parts.scenario)

    def step(self, tick: int) -> None:
        """Decide, once in a window of periods."""
        if tick % PERIODS_PER_WINDOW:
            return
        autopilot, plant = self._parts.autopilot, self._parts.plant
        measured = self._parts.estimator.estimate.drones.data
        landed, takeoff = autopilot.landed, autopilot.takeoff_state
        for i, commander in enumerate(self.commanders):
            commander.step(
                tick * plant.period_s,
                measured[i],
                bool(landed[i]),
                takeoff[i] == TakeoffState.FLIGHT,
                self.setpoint.data[i],
            )

    def on_controller_setpoints(self, tick: int) -> None:
        """Do nothing: the graph's nodes tell the set-points."""

    def on_controller_acceleration(self, tick: int) -> None:
        """Do nothing, too."""

    def on_controller_end(self, tick: int) -> None:
        """Do nothing."""


def flown_by_graph(scenario: Scenario) -> Scenario:
    """What is left of a scenario for the simulator when the graph's nodes fly.

    Raises:
        ConfigError: It asks for what no node does.
    """
    if scenario.contingency is not None:
        raise ConfigError(
            "contingency: the ROS graph has no node that finds new formations: fly it "
            "with musls fly, or leave it out (--set contingency=null)"
        )
    flies_delivery(scenario)
    return replace(scenario, controller=FormationSpec())


def abort_of(scenario: Scenario) -> Callable[[str], None] | None:
    """What an event `abort` does here: nothing, the formation hears of it on /events."""
    return _heard_by_formation if flies_delivery(scenario) else None


def check_delivery(session: Session) -> None:
    """Refuse a delivery whose hooks the simulator cannot open and close.

    Raises:
        ConfigError: It cannot.
    """
    given = session.scenario.mission.delivery
    if given is not None and flies_delivery(session.scenario):
        check_hooks_of(given, len(session.scenario.system.cables), session.events)


def _heard_by_formation(why: str) -> None:
    """See `abort_of`."""


def stand_in_session(
    scenario: Scenario, loss_action: NavState = NavState.LOITER, *, force: bool = False
) -> tuple[Session, Sequence[Commander]]:
    """Make a session whose drones do what their commanders are told.

    Args:
        scenario: What to simulate; its mission only tells where an air start hangs.
        loss_action: See `Commander`.
        force: Fly in spite of too little thrust.

    Raises:
        ConfigError: The scenario cannot work.
    """
    if scenario.autopilot.kind != "builtin":
        raise ConfigError(
            f"autopilot.kind = {scenario.autopilot.kind}: these vehicles have the built-in "
            "autopilot only; a real PX4 has topics of its own"
        )
    in_air = scenario.start.kind != "ground"
    commanders = [Commander(in_air=in_air, loss_action=loss_action) for _ in scenario.system.drones]
    session = Session(
        flown_by_graph(scenario),
        force=force,
        make_guidance=lambda parts, observers: CommandedGuidance(parts, commanders),
    )
    check_delivery(session)
    return session, commanders


# ---------- When the simulator may go on: it waits for whoever answers each of its clock messages

ANSWERS_TO_LOCK = 3


class Lockstep:
    """Answers of all drones' companions."""

    def __init__(self, n_drones: int) -> None:
        """Start with nobody locked."""
        self._streak = np.zeros(n_drones, int)
        self._answered = np.zeros(n_drones, bool)
        self._asked_us = 0

    @property
    def locked(self) -> bool:
        """Whether anybody is waited for."""
        return bool((self._streak >= ANSWERS_TO_LOCK).any())

    @property
    def complete(self) -> bool:
        """Whether everybody who is waited for has answered."""
        return not ((self._streak >= ANSWERS_TO_LOCK) & ~self._answered).any()

    def ask(self, time_us: int) -> None:
        """A clock message is being sent."""
        self._asked_us = time_us
        self._answered[:] = False

    def answer(self, drone: int, time_us: int) -> None:
        """A set-point of a drone (from 0) has come, stamped by its sender."""
        self._answered[drone] |= time_us >= self._asked_us

    def close(self) -> list[int]:
        """The window is over; returns the drones (from 0) that are given up."""
        given_up = (self._streak >= ANSWERS_TO_LOCK) & ~self._answered
        self._streak = np.where(self._answered, self._streak + 1, 0)
        return np.flatnonzero(given_up).tolist()
