"""The embedded simulator where PX4 and Gazebo stand: commanders, plant and autopilot, no ROS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from musls_control.autopilot import COM_OF_LOSS_T_S, LandingTimer, hold_or_land
from musls_control.controllers import FormationSpec
from musls_control.px4.frames import world_enu_ned, yaw_enu_ned
from musls_control.px4.takeoff import TakeoffState
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import yaw_of
from musls_sim.scenario.scenario import RecordingSpec, Scenario
from musls_sim.session.compose import Components
from musls_sim.session.guidance import Guidance, check_hooks_of
from musls_sim.session.session import Session
from musls_sim.specs.physics import CONTROL_PERIOD_S

# ---------- PX4's commander as an offboard flight meets it: arming, modes, failsafes
#
# Behaviour of PX4 v1.15 to v1.17: offboard mode needs a fresh stream of OffboardControlMode, is
# left when the stream stops for COM_OF_LOSS_T and taken again when it comes back; vehicles disarm
# themselves COM_DISARM_LAND after landing and COM_DISARM_PRFLT after arming without take-off.

COM_DISARM_PRFLT_S = 10.0
FORCE = 21196.0
"""Second parameter of a disarm command that is meant in flight too."""


class NavState(IntEnum):
    """Modes that are supported, numbered as in VehicleStatus."""

    LOITER = 4
    OFFBOARD = 14
    LAND = 18


class AckResult(IntEnum):
    """Answers, numbered as in VehicleCommandAck."""

    ACCEPTED = 0
    TEMPORARILY_REJECTED = 1
    UNSUPPORTED = 3


class DisarmReason(IntEnum):
    """Numbered as in VehicleStatus."""

    NONE = 0
    COMMAND = 4
    LANDED = 7
    NO_TAKE_OFF = 8


COMMAND_LAND = 21
COMMAND_SET_MODE = 176
COMMAND_ARM_DISARM = 400

_MODES = {(6, 0): NavState.OFFBOARD, (4, 3): NavState.LOITER, (4, 6): NavState.LAND}
"""PX4's custom main and sub mode."""


@dataclass
class TrajectoryInput:
    """The last TrajectorySetpoint, NED, vectors (3,); NaN means "not given"."""

    position_ned_m: Array
    velocity_ned_m_s: Array
    acceleration_ned_m_s2: Array
    yaw_ned_rad: float
    yaw_rate_ned_rad_s: float


class Commander:
    """Arming, mode and set-point of one drone.

    Attributes:
        wanted: The mode that was asked for.
        nav_state: The mode that is flown; another than `wanted` in a failsafe.
        failsafe: Whether the mode is left for a lost stream.
        took_off_at_s: Time of take-off, None on the ground.
    """

    def __init__(self, *, in_air: bool, loss_action: NavState = NavState.LAND) -> None:
        """`loss_action`: mode when the stream of an offboard flight stops (COM_OBL_RC_ACT)."""
        self.armed = in_air
        self.wanted = self.nav_state = NavState.LOITER
        self.failsafe = False
        self.armed_at_s: float | None = 0.0 if in_air else None
        self.took_off_at_s: float | None = 0.0 if in_air else None
        self.disarm_reason = DisarmReason.NONE
        self._loss_action = loss_action
        self._heartbeat_s = -np.inf
        self._trajectory: TrajectoryInput | None = None
        self._hold: Array | None = None
        self._landing = LandingTimer()

    def heartbeat(self, time_s: float) -> None:
        """Take note of an OffboardControlMode that asks for trajectory control."""
        self._heartbeat_s = time_s

    def trajectory(self, message: TrajectoryInput) -> None:
        """Take a TrajectorySetpoint."""
        self._trajectory = message

    def command(
        self, time_s: float, number: int, param1: float, param2: float, param3: float = 0.0
    ) -> AckResult:
        """Answer a VehicleCommand that is meant for this vehicle."""
        if number == COMMAND_ARM_DISARM:
            if round(param1) not in (0, 1):
                return AckResult.UNSUPPORTED
            return self._arm(time_s) if round(param1) else self._disarm_by_command(param2)
        if number == COMMAND_LAND:
            self.wanted = NavState.LAND
            return AckResult.ACCEPTED
        if number != COMMAND_SET_MODE:
            return AckResult.UNSUPPORTED
        mode = _MODES.get((int(param2), int(param3)))
        if int(param1) != 1 or mode is None:
            return AckResult.UNSUPPORTED
        if mode is NavState.OFFBOARD and not self._has_stream(time_s):
            return AckResult.TEMPORARILY_REJECTED
        self.wanted = mode
        return AckResult.ACCEPTED

    def step(self, time_s: float, measured: Array, landed: bool, flying: bool, row: Array) -> None:
        """Choose the mode and write the set-point for the autopilot.

        `measured`: row of `Estimate`, (16,).
        `flying`: whether the take-off ramp is over.
        `row`: row of `DroneSetpoints`, (12,), overwritten.
        """
        if self.armed and flying and self.took_off_at_s is None:
            self.took_off_at_s = time_s
        self._disarm_by_itself(time_s, landed)
        is_lost = self.wanted is NavState.OFFBOARD and not self._has_stream(time_s)
        mode = self._loss_action if is_lost else self.wanted
        self.failsafe = is_lost and self.armed
        if mode is not self.nav_state:
            self.nav_state = mode
            self._hold = None
        row[:] = np.nan
        row[10] = 0.0
        row[11] = float(self.armed)
        if mode is NavState.OFFBOARD and self._trajectory is not None:
            self._follow(self._trajectory, row)
        else:
            self._hold_place(measured, landed, row)

    def _has_stream(self, time_s: float) -> bool:
        fresh = time_s - self._heartbeat_s <= COM_OF_LOSS_T_S
        return fresh and self._trajectory is not None

    def _arm(self, time_s: float) -> AckResult:
        if not self.armed:
            if self.wanted is NavState.OFFBOARD and not self._has_stream(time_s):
                return AckResult.TEMPORARILY_REJECTED  # the mode could not run
            self.armed = True
            self.armed_at_s = time_s
            self.took_off_at_s = None
            self._landing.reset()
        return AckResult.ACCEPTED

    def _disarm_by_command(self, param2: float) -> AckResult:
        flies = self.took_off_at_s is not None and not self._landing.landed
        if self.armed and flies and param2 != FORCE:
            return AckResult.TEMPORARILY_REJECTED
        self._disarm(DisarmReason.COMMAND)
        return AckResult.ACCEPTED

    def _disarm(self, reason: DisarmReason) -> None:
        self.armed = False
        self.armed_at_s = None
        self.took_off_at_s = None
        self.disarm_reason = reason
        self._landing.reset()

    def _disarm_by_itself(self, time_s: float, landed: bool) -> None:
        is_time = self._landing.update(time_s, self.armed and landed)
        if not self.armed or not landed or self.armed_at_s is None:
            return
        if self.took_off_at_s is None:
            if time_s - self.armed_at_s >= COM_DISARM_PRFLT_S:
                self._disarm(DisarmReason.NO_TAKE_OFF)
        elif is_time:
            self._disarm(DisarmReason.LANDED)

    @staticmethod
    def _follow(trajectory: TrajectoryInput, row: Array) -> None:
        row[0:3] = world_enu_ned(trajectory.position_ned_m)
        row[3:6] = world_enu_ned(trajectory.velocity_ned_m_s)
        row[6:9] = world_enu_ned(trajectory.acceleration_ned_m_s2)
        row[9] = yaw_enu_ned(trajectory.yaw_ned_rad)
        rate = trajectory.yaw_rate_ned_rad_s
        row[10] = -rate if np.isfinite(rate) else 0.0

    def _hold_place(self, estimate: Array, landed: bool, row: Array) -> None:
        if self._hold is None:
            self._hold = np.array([*estimate[0:3], yaw_of(estimate[6:10])])
        hold_or_land(row, self._hold, lands=self.nav_state is NavState.LAND, landed=landed)
        if landed:
            self._hold[2] = estimate[2]


# ---------- Guidance by set-points and commands from a ROS graph, as PX4 takes them

PERIODS_PER_WINDOW = 5
"""Control periods between two decisions of the commanders: 20 ms."""

WINDOW_HZ = 1.0 / (PERIODS_PER_WINDOW * CONTROL_PERIOD_S)
"""Rate at which the state is published, too."""


class CommandedGuidance(Guidance):
    """One commander a drone decides what the drone is to do."""

    def __init__(self, components: Components, commanders: Sequence[Commander]) -> None:
        # An event `abort` does nothing here: the formation hears of it on /events.
        super().__init__(len(commanders), can_abort=components.scenario.brief.delivers)
        self.commanders = tuple(commanders)
        self._components = components

    def step(self, tick: int) -> None:
        """Decide, once in a window of periods."""
        if tick % PERIODS_PER_WINDOW:
            return
        autopilot = self._components.autopilot
        plant = self._components.plant
        drones = self._components.estimator.estimate.drones.data
        landed = autopilot.landed
        takeoff = autopilot.takeoff_state
        for i, commander in enumerate(self.commanders):
            commander.step(
                tick * plant.period_s,
                drones[i],
                bool(landed[i]),
                takeoff[i] == TakeoffState.FLIGHT,
                self.setpoint.data[i],
            )


def flown_by_graph(scenario: Scenario) -> Scenario:
    """The scenario as the simulator sees it when the graph's nodes control: formation only."""
    _ = scenario.brief.delivers  # refuses other laws than the formation
    return replace(
        scenario,
        controller=FormationSpec(),
        contingency=None,  # the formation node's
        recording=RecordingSpec(rate_hz=WINDOW_HZ),
    )


def check_hooks(session: Session, scenario: Scenario) -> None:
    """Refuse what asks for hooks that the simulator cannot open and close (raises ConfigError)."""
    delivery = scenario.mission.delivery
    if delivery is not None and scenario.brief.delivers:
        check_hooks_of(delivery, len(scenario.system.cables), session.events)
    if scenario.contingency is not None:
        session.events.check({"kind": "release", "cable": 1})


def stand_in_session(
    scenario: Scenario, loss_action: NavState = NavState.LAND, *, force: bool = False
) -> tuple[Session, Sequence[Commander]]:
    """Make a session whose drones follow the commands to their PX4 stand-ins.

    The scenario's mission only tells where an air start hangs.
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
        make_guidance=lambda components, observers: CommandedGuidance(components, commanders),
    )
    check_hooks(session, scenario)
    return session, commanders


# ---------- When the simulator may go on: it waits for the nodes that answer its clock messages

ANSWERS_TO_LOCK = 3


class Lockstep:
    """Answers of all drones' companions.

    Answers to messages of before count, too: on a busy machine, where all come later than the next
    message, it would wait for none otherwise, and time would run away from the companions.
    """

    def __init__(self, n_drones: int) -> None:
        self._streak = np.zeros(n_drones, int)
        self._awaited, self._answered = np.zeros((2, n_drones), bool)
        self._last_us = [0] * n_drones
        self._asked_us = self._window_us = 0

    @property
    def locked(self) -> bool:
        """Whether anybody is waited for."""
        return bool(self._awaited.any())

    @property
    def complete(self) -> bool:
        """Whether all that are waited for have answered."""
        return not (self._awaited & ~self._answered).any()

    def ask(self, time_us: int) -> None:
        """A clock message is being sent."""
        self._window_us = time_us - self._asked_us
        self._asked_us = time_us
        self._answered[:] = False
        self._awaited = self._streak >= ANSWERS_TO_LOCK

    def answer(self, drone: int, time_us: int) -> None:
        """A set-point of a drone (from 0) has come, stamped by its sender."""
        self._answered[drone] |= time_us >= self._asked_us
        since_us = time_us - self._last_us[drone]
        self._last_us[drone] = time_us
        if since_us:  # not a second one to the same message
            follows = 0 < since_us < 1.5 * self._window_us
            self._streak[drone] = self._streak[drone] + 1 if follows else 1

    def close(self) -> list[int]:
        """The window is over; returns the drones (from 0) that are given up."""
        given_up = self._awaited & ~self._answered
        self._streak[given_up] = 0
        return np.flatnonzero(given_up).tolist()
