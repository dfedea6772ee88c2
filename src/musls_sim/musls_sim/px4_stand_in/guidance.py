"""Guidance of drones whose set-points and commands come from a ROS graph, as PX4 takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from musls_control.controllers import FormationSpec
from musls_control.px4_cascade.takeoff import TakeoffState
from musls_description.errors import ConfigError
from musls_sim.px4_stand_in.commander import Commander, NavState
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.compose import Components, flies_delivery
from musls_sim.session.delivery import check_hooks_of
from musls_sim.session.guidance import Guidance
from musls_sim.session.session import Session

PERIODS_PER_WINDOW = 5
"""Control periods between two decisions of the commanders: 20 ms."""


class CommandedGuidance(Guidance):
    """One commander a drone decides what the drone is to do."""

    def __init__(self, parts: Components, commanders: Sequence[Commander]) -> None:
        """Begin with nothing asked for."""
        # An event `abort` does nothing here: the formation hears of it on /events.
        super().__init__(len(commanders), can_abort=flies_delivery(parts.scenario))
        self.commanders, self._parts = tuple(commanders), parts

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


def check_delivery(session: Session) -> None:
    """Refuse a delivery whose hooks the simulator cannot open and close (raises ConfigError)."""
    given = session.scenario.mission.delivery
    if given is not None and flies_delivery(session.scenario):
        check_hooks_of(given, len(session.scenario.system.cables), session.events)


def stand_in_session(
    scenario: Scenario, loss_action: NavState = NavState.LOITER, *, force: bool = False
) -> tuple[Session, Sequence[Commander]]:
    """Make a session whose drones do what their commanders are told.

    `scenario`: what to simulate; its mission only tells where an air start hangs.
    `force`: fly in spite of too little thrust.

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
