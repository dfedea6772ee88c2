"""The guard of a flight with real drones: what is wrong, and what is done about it, without ROS.

A fault pauses the formation at once. Where the others can go on without a drone whose fault lasts,
they do (`Contingency`). A drone in doubt, whose poses or whose PX4's estimate are wrong, is not led
by set-points for longer than that takes: all land in PX4's own land mode, which needs no poses, at
one speed, so that the formation keeps its shape. What lasts otherwise has the load lowered where it
is, after which the drones land around it, clear of a drone that alone does not follow its
set-points; if one is lost from sight or several are far from their places then, all land in PX4's
own land mode. After a fault that has ended, a pause that nobody ends is
followed by the way back. The flight is over when all drones are disarmed, or lost and said so
(`FlightEnd`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import numpy as np
from pydantic import Field

from musls_description.config.schema import spec
from musls_description.numerics.arrays import Array

LOOK_EVERY_S = 0.1
"""Time between two looks of the guard."""


class GuardStep(str, Enum):
    """Level of the guard: watching, or what it did last."""

    WATCH = "watching"
    PAUSE = "paused"
    SURVIVE = "going on without a drone"
    RETURN = "bringing the load back"
    LOWER = "lowering the load"
    LAND = "landing all drones"


@spec
class GuardSettings:
    """Limits of a flight, and how long a fault may last.

    Attributes:
        pose_age_s: Age of the newest pose of a body that is a fault.
        tracking_error_m: Distance of a drone from its recent set-points that is a fault.
        give_up_after_s: Time that a fault of one drone lasts before it is given up, where the
            others can go on without it.
        doubt_after_s: Time that a doubt about a drone lasts before it is given up, or all land.
        lower_after_s: Time that a fault lasts in a pause before the load is lowered.
        land_after_s: Time from there until all land, if a drone is not where it ought to be.
        abort_after_s: Time that a pause of the guard's lasts after its fault before the flight is
            aborted, if nobody resumes it.
        lost_after_s: Time without news of a drone on the way to the ground after which the end of
            the flight does not wait for it.
        charge_to_start: Share of its charge that each battery must have at the start.
        charge_to_return: Share at which the load is brought back.
    """

    pose_age_s: Annotated[float, Field(ge=0.05, le=60.0)] = 0.5
    tracking_error_m: Annotated[float, Field(ge=0.05, le=100.0)] = 1.5
    give_up_after_s: Annotated[float, Field(ge=0.0, le=600.0)] = 1.0
    doubt_after_s: Annotated[float, Field(ge=0.0, le=600.0)] = 0.2
    lower_after_s: Annotated[float, Field(ge=0.0, le=600.0)] = 3.0
    land_after_s: Annotated[float, Field(ge=0.0, le=600.0)] = 10.0
    abort_after_s: Annotated[float, Field(ge=1.0, le=86400.0)] = 60.0
    lost_after_s: Annotated[float, Field(ge=1.0, le=600.0)] = 10.0
    charge_to_start: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    charge_to_return: Annotated[float, Field(ge=0.0, le=1.0)] = 0.25


@dataclass(frozen=True)
class Health:
    """Age of the news, tracking error and phase of a body at one time.

    The offboard node counts as a body whose news is its heartbeat.

    Attributes:
        age_s: Infinite before the first news.
        error_m: See `tracking_error_m`; 0 for the load, which swings.
        phase: Phase of a drone in the offboard protocol, see `Phase`; "" for the load.
        news: Message that has that age.
        doubt: Why its poses are taken to be wrong; "" where they are not.
        charge: Share of the charge that its battery has left; NaN where nobody tells.
    """

    age_s: float
    error_m: float = 0.0
    phase: str = ""
    news: str = "pose"
    doubt: str = ""
    charge: float = np.nan


DOUBTED = "doubted"
RELEASED = "released"
LANDED = "landed"
SILENT = "silent"

_PHASES = {
    "silent": "no status",
    "released": "has left offboard mode",
    "landed": "is disarmed",
    "failed": "could not be commanded",
    "holding": "hears no set-points",
    DOUBTED: "is not where its poses are",
}


class Guard:
    """Decides what is to be done about faults.

    Attributes:
        settings: May be changed at any time.
        step: Last action of the guard.
    """

    def __init__(self) -> None:
        self.settings = GuardSettings()
        self.step = GuardStep.WATCH
        self._since_s = 0.0
        self._came_back = False

    @property
    def gives_up(self) -> bool:
        """Whether the flight is ended."""
        return self.step in (GuardStep.LOWER, GuardStep.LAND)

    def fault(self, health: Health) -> str:
        """Fault of a body in words, "" for none."""
        if health.phase in _PHASES:
            return _PHASES[health.phase]
        if health.doubt:
            return f"in doubt: {health.doubt}"
        if self._is_lost(health):
            return f"no {health.news} for {health.age_s:.1f} s"
        if self._is_astray(health):
            return f"{health.error_m:.1f} m from its set-point"
        return ""

    def look(
        self,
        time_s: float,
        bodies: Mapping[str, Health],
        *,
        waits: bool = False,
        carries: bool = True,
    ) -> GuardStep | None:
        """Check all bodies; returns the action that is due, None for nothing new.

        `waits`: whether the formation is in a pause of the guard's that nobody has taken over.
        `carries`: whether the load hangs on the drones.
        """
        faulty = any(map(self.fault, bodies.values()))
        doubted = any(self.doubts(name, body) for name, body in bodies.items())
        alone = self.alone(bodies)
        others = [body for name, body in bodies.items() if name != alone]
        urgent = doubted or any(self._is_lost(b) or self._is_astray(b) for b in others)
        lasted_s = time_s - self._since_s
        settings = self.settings
        if doubted and self.step is not GuardStep.LAND:  # its set-points lead it elsewhere
            is_acting = self.step in (GuardStep.PAUSE, GuardStep.LOWER)
            if not carries or (is_acting and lasted_s >= settings.doubt_after_s):
                return self._do(GuardStep.LAND, time_s)
        if self.step is GuardStep.PAUSE and not faulty:
            return self._do(GuardStep.WATCH, time_s)
        if self.step in _WATCHING and faulty:
            return self._do(GuardStep.PAUSE, time_s)
        low = self.low(bodies)
        self._came_back = self._came_back and bool(low)
        if self.step in _WATCHING and low and not self._came_back:
            self._came_back = True
            return self._do(GuardStep.RETURN, time_s)
        if self.step in _WATCHING and waits and lasted_s >= settings.abort_after_s:
            return self._do(GuardStep.RETURN, time_s)
        if self.step is GuardStep.PAUSE and lasted_s >= settings.lower_after_s:
            return self._do(GuardStep.LOWER, time_s)
        if self.step is GuardStep.LOWER and urgent and lasted_s >= settings.land_after_s:
            return self._do(GuardStep.LAND, time_s)
        return None

    def given_up(self, time_s: float, bodies: Mapping[str, Health]) -> str:
        """The drone that the others can go on without, "" for none.

        Its fault has lasted, it is the only one, and all others are seen; one in doubt is where it
        was seen last.
        """
        faulty = [body for body, health in bodies.items() if self.fault(health)]
        if self.step is not GuardStep.PAUSE or len(faulty) != 1:
            return ""
        (name,) = faulty
        doubted = self.doubts(name, bodies[name])
        settings = self.settings
        long_s = settings.doubt_after_s if doubted else settings.give_up_after_s
        lasts = time_s - self._since_s >= long_s
        return name if lasts and (doubted or not self._is_lost(bodies[name])) else ""

    def alone(self, bodies: Mapping[str, Health]) -> str:
        """The drone that alone does not follow its set-points, "" for none or for several.

        The others keep clear of it, and do not wait for it.
        """
        names = [
            name
            for name, health in bodies.items()
            if health.phase in _PHASES or self._is_astray(health)
        ]
        return names[0] if len(names) == 1 else ""

    def low(self, bodies: Mapping[str, Health]) -> str:
        """Drones with batteries below `charge_to_return`, with charges, in words; "" for none."""
        least = self.settings.charge_to_return
        return ", ".join(
            f"{body}: battery at {100.0 * health.charge:.0f} %"
            for body, health in bodies.items()
            if health.charge < least
        )

    def doubts(self, name: str, health: Health) -> bool:
        """Whether a drone must not be led by its set-points any more: it is not where it seems."""
        return name != "load" and (health.phase == DOUBTED or bool(health.doubt))

    def survive(self, time_s: float) -> GuardStep:
        """Continue without a lost drone: watch the others."""
        return self._do(GuardStep.SURVIVE, time_s)

    def _do(self, step: GuardStep, time_s: float) -> GuardStep:
        self.step = step
        self._since_s = time_s
        return step

    def _is_lost(self, health: Health) -> bool:
        return health.age_s > self.settings.pose_age_s

    def _is_astray(self, health: Health) -> bool:
        """Whether a drone is far from where it ought to be; one that has a pilot is his."""
        guided = health.phase != RELEASED
        return guided and health.error_m > self.settings.tracking_error_m


_WATCHING = (GuardStep.WATCH, GuardStep.SURVIVE, GuardStep.RETURN)


class FlightEnd:
    """Decides when a flight is over: every drone is disarmed, or lost and said so.

    Attributes:
        waits_for: Drones that may still be armed, with their phases.
        lost: Drones of which nothing is known.
    """

    def __init__(self) -> None:
        self.waits_for: dict[str, str] = {}
        self.lost: set[str] = set()
        self._unheard_s: dict[str, float] = {}

    def look(
        self,
        time_s: float,
        phases: Mapping[str, str],
        *,
        lost_after_s: float,
        heard: bool = True,
        descends: bool = False,
        given_up: Collection[str] = (),
    ) -> bool:
        """Whether the flight is over.

        Args:
            time_s: Now.
            phases: Phase of each drone in the offboard protocol.
            lost_after_s: See `GuardSettings`.
            heard: Whether the offboard node lives; without it phases are not news.
            descends: Whether the drones are on their way to the ground.
            given_up: Drones that were said to be lost in flight; one with a pilot is waited for.
        """
        self.waits_for = {}
        for drone, phase in phases.items():
            if phase == LANDED or (drone in given_up and phase != RELEASED):
                continue
            if descends and (phase == SILENT or not heard):
                since_s = self._unheard_s.setdefault(drone, time_s)
                if time_s - since_s >= lost_after_s:
                    self.lost.add(drone)
                    continue
            else:
                self._unheard_s.pop(drone, None)
                self.lost.discard(drone)
            self.waits_for[drone] = phase if heard else "unheard"
        return not self.waits_for


LAG_S = 1.5
"""Time by which a drone may follow late: at 2 m/s PX4's position loop is a second behind."""


def tracking_error_m(setpoints_enu_m: Array, position_enu_m: Array) -> float:
    """Distance of a drone from the nearest of its last set-points.

    `setpoints_enu_m`: those of the last `LAG_S`, (k, 3); NaN where a part is "not given".
    """
    return float(np.sqrt(np.nansum((setpoints_enu_m - position_enu_m) ** 2, axis=1).min()))
