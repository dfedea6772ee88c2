"""Plays a flight plan: hands out its set-points in time, disarms after landing, ends the flight."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import Autopilot, DroneSetpoints
from musls_control.mission import FlightPlan
from musls_description.rotations import from_yaw

Array = NDArray[np.float64]

DISARM_AFTER_S = 2.0
"""Time landed before a drone is disarmed, PX4's COM_DISARM_LAND."""

LANDING_TIMEOUT_S = 20.0
AFTER_DISARM_S = 0.4


class SetpointLog(Protocol):
    """Where set-points and stages are written down."""

    def record_setpoint(
        self,
        time_s: float,
        load_position: Array,
        load_quaternion: Array,
        drone_positions: Array,
        drone_quaternions: Array,
    ) -> None:
        """Note new set-points."""

    def record_stage(self, time_s: float, name: str) -> None:
        """Note the beginning of a stage."""


class Pilot:
    """Set-points and arming of all drones over time.

    Attributes:
        setpoint: What the autopilot is to follow now.
        stage: Name of the present stage.
        finished: Whether the flight is over.
        landed: Whether the drones were found landed at the end.
    """

    def __init__(
        self,
        plan: FlightPlan,
        autopilot: Autopilot,
        log: SetpointLog,
        period_s: float,
    ) -> None:
        """Prepare all set-points.

        Args:
            plan: What to fly.
            autopilot: Tells when the drones have landed.
            log: Gets every change.
            period_s: Control period.
        """
        rows, n = plan.drone_yaw_rad.shape
        self._plan, self._autopilot, self._log = plan, autopilot, log
        self._period_s, self._lands = period_s, plan.landing_speed_m_s is not None
        template = DroneSetpoints.unset(n).data
        self._rows = np.tile(template, (rows, 1, 1))
        self._rows[:, :, 0:3] = plan.drone_position_enu_m
        self._rows[:, :, 9] = plan.drone_yaw_rad
        self._rows[:, :, 11] = 1.0
        if self._lands:
            # As PX4's land mode: hold the place, sink at a speed. A position below the ground alone
            # would never count as a wish to land.
            self._rows[-1, :, 2] = np.nan
            self._rows[-1, :, 5] = -plan.landing_speed_m_s
        self._load_quaternion = from_yaw(plan.load_pose[:, 3])
        self._drone_quaternion = from_yaw(plan.drone_yaw_rad)
        self.setpoint = DroneSetpoints(self._rows[0].copy())
        self._ticks = np.ceil(np.arange(rows + 1) / plan.rate_hz / period_s - 1e-9).astype(int)
        self._row, self._next_tick = -1, 0
        self._landed_since: float | None = None
        self._disarmed_at: float | None = None
        self.stage, self.finished, self.landed = "", False, False

    @property
    def planned_s(self) -> float:
        """About how long the flight takes."""
        return self._plan.duration_s + (DISARM_AFTER_S + AFTER_DISARM_S if self._lands else 0.0)

    def step(self, tick: int) -> None:
        """Update the set-points if it is time to."""
        if tick < self._next_tick:
            return
        time_s = tick * self._period_s
        if self._row + 1 < len(self._rows):
            self._row += 1
            self._next_tick = int(self._ticks[self._row + 1])
            self._hand_out(time_s)
        elif not self._lands:
            self.finished = True
        else:
            self._next_tick = tick + 1
            self._wait_for_landing(time_s)

    def _hand_out(self, time_s: float) -> None:
        plan, row = self._plan, self._row
        self.setpoint.data[:] = self._rows[row]
        self._log.record_setpoint(
            time_s,
            plan.load_pose[row, :3],
            self._load_quaternion[row],
            plan.drone_position_enu_m[row],
            self._drone_quaternion[row],
        )
        self._enter(time_s, plan.stage_names[plan.stage[row]])

    def _enter(self, time_s: float, stage: str) -> None:
        if stage != self.stage:
            self.stage = stage
            self._log.record_stage(time_s, stage)

    def _wait_for_landing(self, time_s: float) -> None:
        if self._disarmed_at is not None:
            self.finished = time_s - self._disarmed_at >= AFTER_DISARM_S
            return
        if not self._autopilot.landed.all():
            self._landed_since = None
        elif self._landed_since is None:
            self._landed_since = time_s
        self.landed = (
            self._landed_since is not None and time_s - self._landed_since >= DISARM_AFTER_S
        )
        if self.landed or time_s - self._plan.duration_s > LANDING_TIMEOUT_S:
            self.setpoint.armed[:] = 0.0
            self._disarmed_at = time_s
            self._enter(time_s, "disarmed")
