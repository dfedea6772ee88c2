"""Imperfections of a flight: weak or tilted rotors, late or lost set-points, late commands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

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
from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import copy_numbers
from musls_description.numerics.rotations import from_rotation_vector, matrix
from musls_description.system.drone import Drone
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.interface import RotorEfficiency
from musls_sim.plants.rigid_body import rotor_records
from musls_sim.specs.imperfections import Imperfections
from musls_sim.specs.physics import CONTROL_PERIOD_S

# ---------- Rotors that are weak or tilted


def weakened(system: RigSystem, faults: Imperfections) -> RigSystem:
    """The system as it really is: rotors with other thrusts. The same object without faults."""
    drones = faults.of_each(system.n_drones)
    if faults.motor_spread == 0.0 and all(fault.thrust_scale == 1.0 for fault in drones):
        return system
    draws = np.random.default_rng(faults.motor_seed).standard_normal(
        (system.n_drones, system.n_rotors)
    )
    share = 1.0 + faults.motor_spread * np.clip(draws, -3.0, 3.0)
    return replace(
        system,
        drones=tuple(
            _with_thrust(drone, fault.thrust_scale * row)
            for drone, fault, row in zip(system.drones, drones, share, strict=True)
        ),
    )


def _with_thrust(drone: Drone, share: Array) -> Drone:
    """A drone whose rotors give a share of their thrust; torque per thrust stays."""
    rotors = tuple(
        replace(rotor, thrust_coefficient_n_s2=rotor.thrust_coefficient_n_s2 * part)
        for rotor, part in zip(drone.rotors, share.tolist(), strict=False)
    )
    return replace(drone, rotors=rotors)


def tilt_matrix(tilt_rad: tuple[float, float]) -> Array:
    """Rotation matrix of a rotation about the body's x and y axes, (3, 3)."""
    return matrix(from_rotation_vector(np.array([*tilt_rad, 0.0])))


# ---------- Set-points that come late


LINK = np.dtype(
    [
        ("delay", float),  # in periods
        ("jitter", float),
        ("arrives", np.int64),  # the last that was sent
        ("sent", float, 12),
    ],
    align=True,
)

UNDER_WAY = np.dtype([("arrives", np.int64), ("setpoint", float, 12)], align=True)


class SetpointLink:
    """Hands set-points on when they arrive.

    A set-point that changes is sent; it arrives after the delay and, for each drone anew, a part
    of the jitter, in whole control periods, and not before the one sent before it.

    Attributes:
        heard: Set-points that the autopilot has; the memory stays the same.
        links: One to each drone, (n,) of `LINK`.
        under_way: Set-points by the period in which they arrive, (periods, n) of `UNDER_WAY`.
        jitters: Whether each takes another time.
        generator: Generator of the shares of the jitter that they take.
    """

    def __init__(
        self,
        sent: DroneSetpoints,
        faults: Imperfections,
        period_s: float,
        generator: np.random.Generator,
    ) -> None:
        n = len(sent.data)
        delay = faults.setpoint_delay_s
        jitter = faults.setpoint_jitter_s
        self.heard = DroneSetpoints(sent.data.copy())
        self._last_sent = sent.data
        self.jitters = jitter > 0.0
        self.generator = generator
        self.links = np.zeros(n, LINK)
        self.links["delay"] = delay / period_s
        self.links["jitter"] = jitter / period_s
        self.under_way = np.zeros((round((delay + jitter) / period_s) + 2, n), UNDER_WAY)
        self.start()

    def start(self) -> None:
        """The drones know what is sent before the first period."""
        self.heard.data[:] = self.links["sent"] = self._last_sent
        self.under_way["arrives"] = -1


@compiled()
def bring_setpoints(sent, links, under_way, luck, tick, heard):
    """Send what changed, hand on what arrives; see `SetpointLink`.

    `luck`: share of the jitter, (n,); anything where there is none.
    """
    for i in range(len(links)):
        link = links[i]
        new = False
        for k in range(12):
            new |= sent[i, k] != link.sent[k] and not (
                math.isnan(sent[i, k]) and math.isnan(link.sent[k])
            )
        if new:
            copy_numbers(link.sent, sent[i])
            late = link.delay + (link.jitter * luck[i] if link.jitter > 0.0 else 0.0)
            link.arrives = max(tick + round(late), link.arrives)
            last = under_way[link.arrives % under_way.shape[0], i]
            last.arrives = link.arrives
            copy_numbers(last.setpoint, sent[i])
        now = under_way[tick % under_way.shape[0], i]
        if now.arrives == tick:
            copy_numbers(heard[i], now.setpoint)


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
        since_s: Time when it was lost; None until the first step after it.
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
        self._last_sent = sent.data
        self._estimate = estimate
        self._autopilot = autopilot
        self._guided = guided
        self._lost_links: dict[int, _LostLink] = {}

    def refusal(self) -> str | None:
        """Why no drone can lose its radio link in this flight, None if one can."""
        if not self._guided:
            return (
                "your own controller commands the drones directly; choose "
                "controller.kind: formation"
            )
        if self._autopilot.has_sensors and not self._autopilot.has_failsafe:
            return "this autopilot cannot lose its link"
        return None

    def land_refusal(self) -> str | None:
        """Why no drone can be had to land in this flight, None if it can."""
        if self._autopilot.has_failsafe:
            return "a real PX4 is not commanded by events; link_lost lets its failsafe land it"
        return self.refusal()

    @property
    def any_lost(self) -> bool:
        """Whether any link is cut."""
        return bool(self._lost_links)

    def lose(self, drone: int, action: str) -> None:
        """Cut the link to a drone (from 0); its flight stack holds or lands."""
        if self._autopilot.has_failsafe:
            self._autopilot.listen(drone, hears=False)
        elif drone not in self._lost_links:
            self._lost_links[drone] = _LostLink(action, self._last_sent[drone].copy())

    def land(self, drone: int) -> None:
        """Have a drone (from 0) land where it is, as PX4's land mode does; armed ones only."""
        link = self._lost_links.get(drone)
        if self._last_sent[drone, 11]:
            armed = self._last_sent[drone] if link is None else link.setpoint
            self._lost_links[drone] = _LostLink("land", armed.copy(), since_s=-np.inf)

    def restore(self, drone: int) -> None:
        """Restore the link to a drone."""
        if self._autopilot.has_failsafe:
            self._autopilot.listen(drone, hears=True)
        else:
            self._lost_links.pop(drone, None)

    def step(self, tick: int) -> None:
        """Deliver the set-points; drones without a link go on by themselves."""
        time_s = tick * CONTROL_PERIOD_S
        if self._guided:
            self.heard.data[:] = self._last_sent
        for drone, link in self._lost_links.items():
            row = self.heard.data[drone]
            if link.since_s is None:
                link.since_s = time_s
            if time_s - link.since_s < COM_OF_LOSS_T_S:
                row[:] = link.setpoint
            else:
                self._failsafe(drone, link, time_s, row)

    def _failsafe(self, drone: int, link: _LostLink, time_s: float, row: Array) -> None:
        if link.hold is None:
            place = self._estimate.drones.position_enu_m[drone]
            link.hold = np.array([*place, link.setpoint[9]])
        link.disarmed |= link.landing.update(time_s, bool(self._autopilot.landed[drone]))
        hold_or_land(row, link.hold, lands=link.action == "land")
        row[11] = 0.0 if link.disarmed else link.setpoint[11]


# ---------- Motor commands that come late


class CommandLatency:
    """Motor commands a whole number of control periods late.

    Attributes:
        delayed_rad_s: Commands that the motors have now, (n, n_rotors); the memory stays the same.
        ring: Commands under way, (periods, n, n_rotors).
    """

    def __init__(self, periods: int, before_rad_s: Array) -> None:
        """`before_rad_s`: the commands before the flight."""
        self.ring = np.tile(before_rad_s, (periods, 1, 1))
        self.delayed_rad_s = before_rad_s.copy()


# ---------- Tilted rotors: the difference to upright ones as a wrench, for every plant


class TiltedThrust:
    """Effect of tilted rotors on the wrenches, see `compiled_stages.world.tilt_thrust`.

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

    def apply(self, change: RotorEfficiency) -> None:
        """Scale the thrust of a damaged rotor."""
        self.health[change.rows] = change.efficiency
