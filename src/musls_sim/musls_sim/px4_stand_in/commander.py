"""PX4's commander as an offboard flight meets it: arming, modes, failsafes.

Behaviour of PX4 v1.15 to v1.17: offboard mode needs a fresh stream of OffboardControlMode, is left
when the stream stops for COM_OF_LOSS_T and taken again when it comes back; vehicles disarm
themselves COM_DISARM_LAND after landing and COM_DISARM_PRFLT after arming without take-off.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import COM_OF_LOSS_T_S, LandingTimer, hold_or_land
from musls_control.px4_frames import world_enu_ned, yaw_enu_ned
from musls_description.rotations import yaw_of

Array = NDArray[np.float64]

COM_DISARM_PRFLT_S = 10.0
FORCE = 21196.0
"""Second parameter of a disarm command that is meant in flight too."""


class NavState(IntEnum):
    """Modes that are supported, numbered as in VehicleStatus."""

    LOITER = 4
    OFFBOARD = 14
    LAND = 18


class Result(IntEnum):
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


COMMAND_LAND, COMMAND_SET_MODE, COMMAND_ARM_DISARM = 21, 176, 400

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

    def __init__(self, *, in_air: bool, loss_action: NavState = NavState.LOITER) -> None:
        """Start disarmed on the ground, or armed and holding in the air.

        `loss_action`: mode when the stream of an offboard flight stops (COM_OBL_RC_ACT).
        """
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

    def trajectory(self, given: TrajectoryInput) -> None:
        """Take a TrajectorySetpoint."""
        self._trajectory = given

    def command(
        self, time_s: float, number: int, param1: float, param2: float, param3: float = 0.0
    ) -> Result:
        """Answer a VehicleCommand that is meant for this vehicle."""
        if number == COMMAND_ARM_DISARM:
            if round(param1) not in (0, 1):
                return Result.UNSUPPORTED
            return self._arm(time_s) if round(param1) else self._disarm_by_command(param2)
        if number == COMMAND_LAND:
            self.wanted = NavState.LAND
            return Result.ACCEPTED
        if number != COMMAND_SET_MODE:
            return Result.UNSUPPORTED
        mode = _MODES.get((int(param2), int(param3)))
        if int(param1) != 1 or mode is None:
            return Result.UNSUPPORTED
        if mode is NavState.OFFBOARD and not self._has_stream(time_s):
            return Result.TEMPORARILY_REJECTED
        self.wanted = mode
        return Result.ACCEPTED

    def step(self, time_s: float, measured: Array, landed: bool, flying: bool, row: Array) -> None:
        """Choose the mode and write the set-point for the autopilot.

        `measured`: row of `Estimate`, (16,).
        `flying`: whether the take-off ramp is over.
        `row`: row of `DroneSetpoints`, (12,), overwritten.
        """
        if self.armed and flying and self.took_off_at_s is None:
            self.took_off_at_s = time_s
        self._disarm_by_itself(time_s, landed)
        lost = self.wanted is NavState.OFFBOARD and not self._has_stream(time_s)
        mode = self._loss_action if lost else self.wanted
        self.failsafe = lost and self.armed
        if mode is not self.nav_state:
            self.nav_state, self._hold = mode, None
        row[:] = np.nan
        row[10], row[11] = 0.0, float(self.armed)
        if mode is NavState.OFFBOARD and self._trajectory is not None:
            self._follow(self._trajectory, row)
        else:
            self._hold_place(measured, landed, row)

    def _has_stream(self, time_s: float) -> bool:
        fresh = time_s - self._heartbeat_s <= COM_OF_LOSS_T_S
        return fresh and self._trajectory is not None

    def _arm(self, time_s: float) -> Result:
        if not self.armed:
            if self.wanted is NavState.OFFBOARD and not self._has_stream(time_s):
                return Result.TEMPORARILY_REJECTED  # the mode could not run
            self.armed, self.armed_at_s, self.took_off_at_s = True, time_s, None
            self._landing.reset()
        return Result.ACCEPTED

    def _disarm_by_command(self, param2: float) -> Result:
        flies = self.took_off_at_s is not None and not self._landing.landed
        if self.armed and flies and param2 != FORCE:
            return Result.TEMPORARILY_REJECTED
        self._disarm(DisarmReason.COMMAND)
        return Result.ACCEPTED

    def _disarm(self, reason: DisarmReason) -> None:
        self.armed, self.armed_at_s, self.took_off_at_s = False, None, None
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
    def _follow(given: TrajectoryInput, row: Array) -> None:
        row[0:3] = world_enu_ned(given.position_ned_m)
        row[3:6] = world_enu_ned(given.velocity_ned_m_s)
        row[6:9] = world_enu_ned(given.acceleration_ned_m_s2)
        row[9] = yaw_enu_ned(given.yaw_ned_rad)
        rate = given.yaw_rate_ned_rad_s
        row[10] = -rate if np.isfinite(rate) else 0.0

    def _hold_place(self, measured: Array, landed: bool, row: Array) -> None:
        if self._hold is None:
            self._hold = np.array([*measured[0:3], yaw_of(measured[6:10])])
        hold_or_land(row, self._hold, lands=self.nav_state is NavState.LAND, landed=landed)
        if landed:
            self._hold[2] = measured[2]
