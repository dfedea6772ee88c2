"""Motion capture of load and drones: poses of several bodies, judged by each other, too.

A body that jumps onto the place of another one is told as exchanged with it; load and drone cannot
be farther apart than their cable reaches; bodies that stand on the ground are level with each other
up to a step. What each body says alone is judged in `mocap`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

import numpy as np

from musls_control.px4.parameters import PX4_PARAMETERS
from musls_control.real_flight.mocap import (
    VELOCITY_S,
    Abilities,
    MocapFilter,
    MocapLimits,
    Refusal,
    Sample,
)
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.vectors import rotate_by
from musls_description.system.slung_system import CableEnd, RigSystem


@dataclass(frozen=True)
class Driver:
    """Topics and messages of a driver of a motion-capture system.

    Attributes:
        topic: Topic, with `{name}` if there is one a body (geometry_msgs/PoseStamped).
        package: ROS package of the message that has all bodies, and its name there.
        message: See `package`.
        bodies: Field of this message with a list of bodies; each has a field `pose`.
        name: Field of such a body with its name.
    """

    topic: str
    package: str = ""
    message: str = ""
    bodies: str = ""
    name: str = ""


DRIVERS: Mapping[str, Driver] = MappingProxyType(
    {
        "poses": Driver("mocap/{name}/pose"),
        "mocap4r2": Driver(
            "rigid_bodies", "mocap4r2_msgs", "RigidBodies", "rigidbodies", "rigid_body_name"
        ),
        "motion_capture_tracking": Driver(
            "/poses", "motion_capture_tracking_interfaces", "NamedPoseArray", "poses", "name"
        ),
        "vrpn_mocap": Driver("/vrpn_mocap/{name}/pose"),
    }
)
"""Drivers by name: their usual topics. Best-effort subscriptions fit all of them."""

EXCHANGE_M = 0.4
"""A body that jumps as near to where another one was going is at that one's place."""

FRESH_S = 0.2
"""Older poses do not say how far apart two bodies are now."""

LIFTED_M = 0.1
"""A body that much higher than it stood flies."""

_UNTIED = re.compile(r"(?:hook_opened|cable_broken): .*?cable_(\d+)")
"""Events after which a cable joins load and drone no more."""

RATE_MARGIN = 1.5
"""Drones overshoot the turn rates that their autopilots ask for."""

JERK_MARGIN = 2.0
"""Cables that snap taut pull harder than rotors."""


def abilities_of(system: RigSystem) -> dict[str, Abilities]:
    """Physical limits of the motion of load and drones, by name.

    The load is pulled by all drones at most; one that is knocked spins, and nothing levels it.
    """
    thrusts_n = [drone.max_thrust_n for drone in system.drones]
    load = Abilities()
    if system.load is not None and thrusts_n:
        load = Abilities(
            JERK_MARGIN * sum(thrusts_n) / system.load.mass_kg + STANDARD_GRAVITY_M_S2,
            turns_freely=True,
        )
    limits = ("MC_ROLLRATE_MAX", "MC_PITCHRATE_MAX", "MC_YAWRATE_MAX")
    rate = np.linalg.norm([np.radians(PX4_PARAMETERS[name].default) for name in limits])
    abilities = {"load": load}
    for k, (drone, thrust_n) in enumerate(zip(system.drones, thrusts_n, strict=True)):
        most_m_s2 = JERK_MARGIN * thrust_n / drone.mass_kg + STANDARD_GRAVITY_M_S2
        abilities[f"drone_{k + 1}"] = Abilities(most_m_s2, RATE_MARGIN * float(rate))
    return abilities


class CaptureFilter:
    """Judges the poses of load and drones.

    Attributes:
        bodies: Names of the bodies, the load first.
        filters: One a body.
        armed: Drones whose motors may turn, by name; what nobody tells is on the ground.
        doubts: Why the poses of a body are taken to be wrong, by name; "" where they are not.
    """

    def __init__(
        self,
        bodies: Sequence[str],
        limits: MocapLimits,
        abilities: Mapping[str, Abilities] = MappingProxyType({}),
    ) -> None:
        self.bodies = list(bodies)
        self.filters = {
            body: MocapFilter(limits, abilities.get(body, Abilities())) for body in self.bodies
        }
        self.armed: set[str] = set()
        self.doubts = dict.fromkeys(self.bodies, "")
        self._limits = limits
        self._stood_m: dict[str, float] = {}
        self._cables: dict[int, tuple[CableEnd, CableEnd, float]] = {}

    @classmethod
    def of(
        cls, bodies: Sequence[str], limits: MocapLimits, system: RigSystem, *, tied: bool = True
    ) -> CaptureFilter:
        """Filter for a system's load and drones; `tied` if its cables join them all the time."""
        capture = cls(bodies, limits, abilities_of(system))
        reels = {winch.cable for winch in system.winches} | {
            end.cable for end in chain.from_iterable(p.cables for p in system.pulleys)
        }
        for k, cable in enumerate(system.cables if tied else ()):
            at_load, at_drone = sorted(system.ends(k), key=lambda end: end.body != "load")
            if at_load.body == "load" and at_drone.body in capture.filters and k + 1 not in reels:
                capture._cables[k + 1] = (at_load, at_drone, cable.length_m)
        return capture

    @property
    def limits(self) -> MocapLimits:
        """Limits of all bodies; may be changed at any time."""
        return self._limits

    @limits.setter
    def limits(self, limits: MocapLimits) -> None:
        self._limits = limits
        for mocap_filter in self.filters.values():
            mocap_filter.limits = limits

    def untie(self, cable: int) -> None:
        """A cable (from 1) joins load and drone no more: its hook is open, or it is broken."""
        self._cables.pop(cable, None)

    def on_event(self, text: str) -> None:
        """An event, as `kind: details`; those that part a cable count."""
        if untied := _UNTIED.match(text):
            self.untie(int(untied[1]))

    def on_armed(self, drone: str, *, armed: bool) -> None:
        """Whether a drone's motors may turn, as its PX4 says."""
        (self.armed.add if armed else self.armed.discard)(drone)

    def on_attitude(self, now_s: float, drone: str, orientation_wxyz: Array) -> None:
        """Attitude of a drone as its PX4 knows it, FLU to ENU, (4,)."""
        self.filters[drone].on_attitude(now_s, orientation_wxyz)

    def take(self, now_s: float, body: str, sample: Sample) -> bool:
        """Whether a sample of a body is to be used."""
        its = self.filters[body]
        its.flies = self._flies(body)
        refusal = its.judge(now_s, sample)
        if refusal is None:
            refusal = self._contradiction(now_s, body, sample)
        elif refusal.reason in ("jump", "turn"):
            refusal = self._exchange(now_s, body, sample) or refusal
        if refusal is not None:
            its.refuse(now_s, sample, refusal)
            return False
        its.believe(now_s, sample)
        if not self.armed:
            self._stood_m[body] = float(sample.position_enu_m[2])
        return True

    def news(self, now_s: float) -> Iterator[tuple[str, str, str]]:
        """Bodies that begin or cease to be doubted: name, doubt ("" for none), and a sentence."""
        for body, its in self.filters.items():
            doubt = its.doubt(now_s)
            if bool(doubt) != bool(self.doubts[body]):
                self.doubts[body] = doubt
                text = f"poses refused: {doubt}" if doubt else "poses used again"
                yield body, doubt, f"{body}: {text}"

    def _flies(self, body: str) -> bool:
        """Whether a body is in the air: motors turn, and it is higher than it stood before."""
        track = self.filters[body].track
        if not self.armed or (body != self.bodies[0] and body not in self.armed):
            return False
        height_m = -np.inf if track is None else float(track.last.position_enu_m[2])
        return height_m > self._stood_m.get(body, -np.inf) + LIFTED_M

    def _contradiction(self, now_s: float, body: str, sample: Sample) -> Refusal | None:
        """Refusal of a sample that is plausible by itself but contradicts the other bodies."""
        if not self.armed:
            return self._axes(now_s, body, sample)
        if self.filters[body].passed_s(now_s, sample) > VELOCITY_S and self.filters[body].flies:
            refusal = self._exchange(now_s, body, sample)
            if refusal is not None:
                return refusal
        return self._beyond_cable(now_s, body, sample)

    def _exchange(self, now_s: float, body: str, sample: Sample) -> Refusal | None:
        """Whether a sample is where another body was going, nearer than to where its own was."""
        its = self.filters[body]
        here = sample.position_enu_m
        if its.track is None:
            return None
        own_m = its.track.away_m(here, its.passed_s(now_s, sample))
        for name, other in self.filters.items():
            if name == body or other.track is None:
                continue
            passed_s = max(sample.stamp_s - other.track.last.stamp_s, 0.0)
            off_m = other.track.away_m(here, passed_s)
            if off_m > EXCHANGE_M or off_m >= own_m:
                continue
            if its.other is not None and its.reason == "exchanged":
                return Refusal("exchanged", its.detail)
            there = other.other
            near_m = EXCHANGE_M + its.limits.return_m
            if (
                there is not None
                and abs(sample.stamp_s - there.last.stamp_s) < FRESH_S
                and its.track.away_m(there.last.position_enu_m, 0.0) <= near_m
            ):
                return Refusal("exchanged", f"{body} and {name} jumped onto each other's places")
            return Refusal("jump", f"a jump of {own_m:.2f} m onto the place of {name}")
        return None

    def _beyond_cable(self, now_s: float, body: str, sample: Sample) -> Refusal | None:
        """Whether load and drone are farther apart than their cable reaches, by this one's fault.

        The load's, where that is so for most drones; else the drone's.
        """
        load = self.bodies[0]
        apart = {
            drone.body: self._beyond_m(now_s, at_load, drone, length_m, body, sample)
            for at_load, drone, length_m in self._cables.values()
        }
        excess_m = {drone: beyond_m for drone, beyond_m in apart.items() if beyond_m is not None}
        beyond = {d: m for d, m in excess_m.items() if m > self._limits.cable_margin_m}
        blamed = 2 * len(beyond) > len(excess_m)
        if not beyond or blamed != (body == load) or (body != load and body not in beyond):
            return None
        drone, most_m = max(beyond.items(), key=lambda entry: entry[1])
        other = drone if body == load else load
        return Refusal(
            "beyond its cable", f"{most_m:.2f} m farther from {other} than its cable is long"
        )

    def _beyond_m(
        self,
        now_s: float,
        at_load: CableEnd,
        at_drone: CableEnd,
        length_m: float,
        body: str,
        sample: Sample,
    ) -> float | None:
        """Distance of a cable's ends minus its length; None if a pose is old."""
        places = []
        for end in (at_load, at_drone):
            its = self.filters[end.body]
            if end.body != body and (its.track is None or its.silent_s(now_s) > FRESH_S):
                return None
            pose = sample if end.body == body or its.track is None else its.track.last
            arm = rotate_by(pose.orientation_wxyz, end.point_m)
            places.append(pose.position_enu_m + arm)
        return float(np.linalg.norm(places[0] - places[1])) - length_m

    def _axes(self, now_s: float, body: str, sample: Sample) -> Refusal | None:
        """Whether bodies that all stand on the ground are upright in the capture's world."""
        places = [
            its.track.last.position_enu_m
            for name, its in self.filters.items()
            if name != body and its.track is not None
        ]
        if len(places) < 2:
            return None
        spread: Array = np.ptp([*places, sample.position_enu_m], axis=0)
        level = int(spread[:2].argmin())
        if spread[2] <= self._limits.ground_step_m or spread[level] > 0.3 * spread[2]:
            return None
        return Refusal(
            "axes",
            f"load and drones stand on the ground {spread[2]:.2f} m apart in z and "
            f"{spread[level]:.2f} m in {'xy'[level]}: is z up in the capture's world? "
            f"(ground_step_m {self._limits.ground_step_m:g})",
        )
