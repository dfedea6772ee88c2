"""Links to the drones that can be lost: what a flight stack does without set-points.

PX4 in offboard mode follows its last set-point for COM_OF_LOSS_T, then its failsafe holds the place
or lands (COM_OBL_RC_ACT); landed it disarms after COM_DISARM_LAND.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import (
    COM_OF_LOSS_T_S,
    Autopilot,
    DroneSetpoints,
    LandingTimer,
    hold_or_land,
)
from musls_control.estimate import Estimate
from musls_sim.scenario.physics import CONTROL_PERIOD_S

Array = NDArray[np.float64]


class _Lost:
    """A drone without a link.

    Attributes:
        since_s: When it was lost; None until the first step after it.
        told: What guidance says, whether it gets through or not, (12,).
        heard: The last set-point that got through, (12,).
        written: What was made of it, (12,).
        hold: Place and yaw at which the failsafe began, (4,).
    """

    def __init__(self, action: str, row: Array) -> None:
        self.since_s: float | None = None
        self.action = action
        self.told, self.heard, self.written = row.copy(), row.copy(), row.copy()
        self.hold: Array | None = None
        self.landing = LandingTimer()
        self.disarmed = False


class DroneLinks:
    """A step of the session: replaces the set-points of drones that hear nothing."""

    def __init__(
        self,
        setpoint: DroneSetpoints,
        estimate: Estimate,
        autopilot: Autopilot,
        *,
        guided: bool,
    ) -> None:
        """Connect.

        `setpoint`: what guidance tells the drones, changed in place.
        `guided`: whether the mission's set-points fly the drones, and not a controller.
        """
        self._setpoint, self._estimate, self._autopilot = setpoint, estimate, autopilot
        self._guided = guided
        self._lost: dict[int, _Lost] = {}

    def refusal(self) -> str | None:
        """See `events.Links.refusal`."""
        if not self._guided:
            return (
                "a controller of one's own commands the drones directly; choose "
                "controller.kind: formation"
            )
        if self._autopilot.has_sensors and not self._autopilot.has_failsafe:
            return "this autopilot cannot lose its link"
        return None

    def lose(self, drone: int, action: str) -> None:
        """See `events.Links.lose`."""
        if self._autopilot.has_failsafe:
            self._autopilot.listen(drone, hears=False)
        elif drone not in self._lost:
            self._lost[drone] = _Lost(action, self._setpoint.data[drone])

    def restore(self, drone: int) -> None:
        """See `events.Links.restore`."""
        if self._autopilot.has_failsafe:
            self._autopilot.listen(drone, hears=True)
        elif (lost := self._lost.pop(drone, None)) is not None:
            self._note_told(lost, self._setpoint.data[drone])
            self._setpoint.data[drone] = lost.told

    def step(self, tick: int) -> None:
        """Replace the set-points of those that hear nothing."""
        if not self._lost:
            return
        time_s = tick * CONTROL_PERIOD_S
        for drone, lost in self._lost.items():
            row = self._setpoint.data[drone]
            self._note_told(lost, row)
            if lost.since_s is None:
                lost.since_s = time_s
            if time_s - lost.since_s < COM_OF_LOSS_T_S:
                row[:] = lost.heard
            else:
                self._failsafe(drone, lost, time_s, row)
            lost.written[:] = row

    @staticmethod
    def _note_told(lost: _Lost, row: Array) -> None:
        if not np.array_equal(row, lost.written, equal_nan=True):
            lost.told[:] = row

    def _failsafe(self, drone: int, lost: _Lost, time_s: float, row: Array) -> None:
        if lost.hold is None:
            place = self._estimate.drones.position_enu_m[drone]
            lost.hold = np.array([*place, lost.heard[9]])
        landed = bool(self._autopilot.landed[drone])
        lost.disarmed |= lost.landing.update(time_s, landed)
        hold_or_land(row, lost.hold, lands=lost.action == "land")
        row[11] = 0.0 if lost.disarmed else lost.heard[11]
