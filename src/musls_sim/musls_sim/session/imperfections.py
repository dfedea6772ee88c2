"""Imperfections of a flight: set-points late or lost, motor commands late, tilted rotors."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from musls_control.autopilot import (
    COM_OF_LOSS_T_S,
    Autopilot,
    DroneSetpoints,
    LandingTimer,
    hold_or_land,
)
from musls_control.estimate import Estimate
from musls_description.numerics.arrays import Array
from musls_description.numerics.records import Writes
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.changes import RotorEfficiency
from musls_sim.plants.rigid_body import rotor_records
from musls_sim.scenario.imperfections import Imperfections, tilt_matrix
from musls_sim.scenario.physics import CONTROL_PERIOD_S

# ---------- Set-points that come late


class SetpointLink:
    """Hands set-points on when they arrive.

    A set-point that changes is sent; it arrives after the delay and, for each drone anew, a part
    of the jitter, in whole control periods, and not before the one sent before it.

    Attributes:
        heard: What the autopilot has; the memory stays the same.
    """

    def __init__(
        self,
        sent: DroneSetpoints,
        faults: Imperfections,
        period_s: float,
        generator: np.random.Generator,
    ) -> None:
        self.heard = DroneSetpoints(sent.data.copy())
        self._sent, self._last, self._generator = sent.data, sent.data.copy(), generator
        self._delay = faults.setpoint_delay_s / period_s
        self._jitter = faults.setpoint_jitter_s / period_s
        self._under_way: list[deque[tuple[int, Array]]] = [deque() for _ in sent.data]

    def start(self) -> None:
        """The drones know what is sent before the first period."""
        self.heard.data[:] = self._last[:] = self._sent

    def step(self, tick: int) -> None:
        """Send what changed, hand on what arrives."""
        if not np.array_equal(self._sent, self._last, equal_nan=True):
            for sent, last, under_way in zip(self._sent, self._last, self._under_way, strict=True):
                if not np.array_equal(sent, last, equal_nan=True):
                    last[:] = sent
                    self._send(tick, sent, under_way)
        for row, under_way in zip(self.heard.data, self._under_way, strict=True):
            while under_way and under_way[0][0] <= tick:
                row[:] = under_way.popleft()[1]

    def next_arrival(self, tick: int) -> float:
        """Period of the next set-point that arrives."""
        return min((under_way[0][0] for under_way in self._under_way if under_way), default=np.inf)

    def _send(self, tick: int, row: Array, under_way: deque[tuple[int, Array]]) -> None:
        late = self._delay
        if self._jitter:
            late += self._jitter * self._generator.random()
        arrives = tick + round(float(late))
        if under_way:
            arrives = max(arrives, under_way[-1][0])
        under_way.append((arrives, row.copy()))


# ---------- Links that are lost: what a flight stack does without set-points
#
# PX4 in offboard mode follows its last set-point for COM_OF_LOSS_T, then its failsafe holds the
# place or lands (COM_OBL_RC_ACT); landed it disarms after COM_DISARM_LAND.


@dataclass
class _LostLink:
    """A drone without a link.

    Attributes:
        action: "land" or "hold".
        setpoint: The last that got through, (12,).
        since_s: When it was lost; None until the first step after it.
        hold: Place and yaw at which the failsafe began, (4,).
    """

    action: str
    setpoint: Array
    since_s: float | None = None
    hold: Array | None = None
    landing: LandingTimer = field(default_factory=LandingTimer)
    disarmed: bool = False


class DroneLinks:
    """A step of the session: brings the drones their set-points, but for those without a link.

    Attributes:
        heard: Set-points that get through, and those of the failsafe where none do.
    """

    def __init__(
        self, sent: DroneSetpoints, estimate: Estimate, autopilot: Autopilot, *, guided: bool
    ) -> None:
        """`guided`: whether the mission's set-points fly the drones, and not a controller."""
        self.heard = DroneSetpoints(sent.data.copy()) if guided else sent
        self._sent, self._estimate, self._autopilot = sent.data, estimate, autopilot
        self._guided = guided
        self._lost: dict[int, _LostLink] = {}

    def refusal(self) -> str | None:
        """Why no link can be lost in this flight, None if it can."""
        if not self._guided:
            return (
                "a controller of one's own commands the drones directly; choose "
                "controller.kind: formation"
            )
        if self._autopilot.has_sensors and not self._autopilot.has_failsafe:
            return "this autopilot cannot lose its link"
        return None

    @property
    def any_lost(self) -> bool:
        """Whether any drone hears nothing."""
        return bool(self._lost)

    def lose(self, drone: int, action: str) -> None:
        """Let nothing through to a drone (from 0) any more; its flight stack holds or lands."""
        if self._autopilot.has_failsafe:
            self._autopilot.listen(drone, hears=False)
        elif drone not in self._lost:
            self._lost[drone] = _LostLink(action, self._sent[drone].copy())

    def restore(self, drone: int) -> None:
        """Guide the drone again."""
        if self._autopilot.has_failsafe:
            self._autopilot.listen(drone, hears=True)
        else:
            self._lost.pop(drone, None)

    def step(self, tick: int) -> None:
        """Hand the set-points on; those that hear nothing go on by themselves."""
        time_s = tick * CONTROL_PERIOD_S
        if self._guided:
            self.heard.data[:] = self._sent
        for drone, lost in self._lost.items():
            row = self.heard.data[drone]
            if lost.since_s is None:
                lost.since_s = time_s
            if time_s - lost.since_s < COM_OF_LOSS_T_S:
                row[:] = lost.setpoint
            else:
                self._failsafe(drone, lost, time_s, row)

    def _failsafe(self, drone: int, lost: _LostLink, time_s: float, row: Array) -> None:
        if lost.hold is None:
            place = self._estimate.drones.position_enu_m[drone]
            lost.hold = np.array([*place, lost.setpoint[9]])
        lost.disarmed |= lost.landing.update(time_s, bool(self._autopilot.landed[drone]))
        hold_or_land(row, lost.hold, lands=lost.action == "land")
        row[11] = 0.0 if lost.disarmed else lost.setpoint[11]


# ---------- Motor commands that come late


class CommandLatency:
    """Motor commands a whole number of control periods late.

    Attributes:
        delayed_rad_s: Commands that the motors have now, (n, n_rotors); the memory stays the same.
        ring: Commands under way, (periods, n, n_rotors).
    """

    def __init__(self, asked_rad_s: Array, periods: int, before_rad_s: Array) -> None:
        """`asked_rad_s`: what is commanded; its memory stays the same. `before_rad_s`: at first."""
        self._asked = asked_rad_s
        self.ring = np.tile(before_rad_s, (periods, 1, 1))
        self.delayed_rad_s = before_rad_s.copy()

    def step(self, tick: int) -> None:
        """Take the present commands, give the old ones."""
        slot = self.ring[tick % len(self.ring)]
        self.delayed_rad_s[:] = slot
        slot[:] = self._asked


# ---------- Tilted rotors: the difference to upright ones as a wrench, for every plant


class TiltedThrust:
    """What tilted rotors do to the wrenches of a period, see `compiled_stages.world.tilt_thrust`.

    The plants let rotors push along the body's z axis. The difference to the tilted axis is taken
    at the rotor speeds of the period's begin: the tilt's part of the thrust, some per cent of it,
    comes 2 ms late on average.

    Attributes:
        rotors: (n, n_rotors) of `rigid_body.ROTOR`.
        health: Share of the thrust that is left, (n, n_rotors).
        shift: Tilted axis minus the body's z axis, (n, 3).
    """

    def __init__(self, system: RigSystem, faults: Imperfections) -> None:
        """`system`: as it really is, see `weakened`."""
        self.rotors = rotor_records(system)
        up = np.array([0.0, 0.0, 1.0])
        self.shift = np.array(
            [
                tilt_matrix(fault.thrust_tilt_rad) @ up - up
                for fault in faults.of_each(system.n_drones)
            ]
        )
        self.health = np.ones(self.rotors.shape[:2])

    @classmethod
    def of(cls, system: RigSystem, faults: Imperfections) -> TiltedThrust | None:
        """The tilted rotors of a system, None where none is tilted."""
        if any(any(fault.thrust_tilt_rad) for fault in faults.drones):
            return cls(system, faults)
        return None

    def apply(self, change: RotorEfficiency, write: Writes) -> None:
        """Let a rotor that gives less thrust do less here, too."""
        write(self.health, change.rows, change.efficiency)
