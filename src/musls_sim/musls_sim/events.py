"""Events: what happens to the system during a flight, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from musls_description.errors import ConfigError
from musls_description.registry import Registry, any_of
from musls_description.schema import Fraction, Positive, Vector3, spec
from musls_description.system import RigSystem
from musls_sim.imperfect_thrust import TiltedThrust
from musls_sim.plants.changes import RotorEfficiency, refusal
from musls_sim.plants.interface import Change, Plant, PlantInputs
from musls_sim.power import Power
from musls_sim.sensors.estimation import Estimator
from musls_sim.triggers import One, When, body_row, check_drone
from musls_sim.wind import Wind

__all__ = [
    "EVENTS", "AnyEvent", "EventSpec", "Links", "Poke", "RotorFailure", "Scene", "When", "body_row",
]  # fmt: skip

EVENTS: Registry[Any] = Registry(
    "event",
    "musls.events",
    {
        "abort": "musls_sim.failures:Abort",
        "attach": "musls_sim.hooks:Attach",
        "cable_cut": "musls_sim.failures:CableCut",
        "drone_lost": "musls_sim.failures:DroneLost",
        "gust": "musls_sim.failures:Gust",
        "link_lost": "musls_sim.failures:LinkLost",
        "load_mass": "musls_sim.failures:LoadMassChange",
        "mocap_outage": "musls_sim.failures:MocapOutage",
        "release": "musls_sim.hooks:Release",
        "winch": "musls_sim.winch_event:WinchCommand",
    },
)
"""Specifications by kind: classes made with `spec` that follow `EventSpec`."""

AnyEvent = any_of(EVENTS)
"""Type of an entry of a scenario's `events`."""


class Links(Protocol):
    """Links over which the drones are guided."""

    def refusal(self) -> str | None:
        """Why no link can be lost in this flight, None if it can."""

    def lose(self, drone: int, action: str) -> None:
        """Nothing gets through to a drone (from 0) any more; its flight stack holds or lands."""

    def restore(self, drone: int) -> None:
        """The drone is guided again."""


@dataclass(frozen=True)
class Scene:
    """What an event may act on.

    Attributes:
        plant: The physics; `plant.apply` changes the system.
        inputs: What acts on it from outside.
        power: Motors and batteries; None where there are none.
        wind: Moving air; None where nobody moves it.
        estimator: What is known of the state; None where nobody estimates.
        links: Links of the drones to who guides them; None where there are none.
        thrust: Tilted rotors; None where there are none.
        abort: Gives the mission up, told why; None for a mission that cannot be given up.
    """

    plant: Plant
    inputs: PlantInputs
    power: Power | None = None
    wind: Wind | None = None
    estimator: Estimator | None = None
    links: Links | None = None
    thrust: TiltedThrust | None = None
    abort: Callable[[str], None] | None = None

    def check(self, change: Change) -> None:
        """Refuse a change that this cable model cannot make, before the flight.

        Raises:
            ConfigError: It cannot; names a model that can.
        """
        if self.plant.cable_model not in change.cable_models:
            raise ConfigError(refusal(change, self.plant.cable_model))
        able = getattr(self.plant, "changes", None)
        if able is not None and not isinstance(change, able):
            raise ConfigError(
                f"{change.what}: physics.engine = gazebo cannot do this; choose "
                "physics.engine: embedded"
            )

    def apply(self, change: Change) -> None:
        """Change the system, see `Plant.apply`."""
        self.plant.apply(change)
        if isinstance(change, RotorEfficiency):
            for follower in (self.power, self.thrust):
                if follower is not None:
                    follower.apply(change)


class EventSpec(Protocol):
    """What the session needs of an event.

    An event may have a `name` by which others follow it, a method `fits(scene)` that refuses,
    before the flight, what this plant, estimator or autopilot cannot do, and a method
    `ready(scene)` that is asked in each period once the trigger has come: whether it can begin.
    """

    @property
    def kind(self) -> str:
        """Its kind."""

    @property
    def when(self) -> When:
        """What triggers it."""

    @property
    def duration_s(self) -> float | None:
        """Time after which `end` is called, None for a change that stays."""

    def check(self, system: RigSystem) -> None:
        """Refuse an event that this system cannot have, before the flight.

        Raises:
            ConfigError: It names a body or rotor that does not exist.
        """

    def begin(self, scene: Scene) -> str:
        """Make it happen; returns what happened, for people."""

    def end(self, scene: Scene) -> None:
        """Take back what lasts for a while only."""


@EVENTS.register("rotor_failure")
@spec
class RotorFailure:
    """One rotor of a drone, several, or all of them, lose thrust and torque.

    Attributes:
        kind: "rotor_failure".
        name: By which other events can follow it.
        when: What triggers it.
        drone: Number of the drone, from 1.
        rotor: Number of the rotor, from 1; left out (as `rotors`) for all rotors.
        rotors: Several of them.
        efficiency: Share of thrust and torque that is left.
        duration_s: Time after which the rotor works again; left out for never.
    """

    kind: Literal["rotor_failure"] = "rotor_failure"
    name: str | None = None
    when: When
    drone: One
    rotor: One | None = None
    rotors: tuple[One, ...] = ()
    efficiency: Fraction = 0.0
    duration_s: Positive | None = None

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""
        check_drone(self.drone, system)
        if self.rotor is not None and self.rotors:
            raise ConfigError("events: give either rotor or rotors")
        count = len(system.drones[self.drone - 1].rotors)
        for rotor in self._which:
            if rotor is not None and rotor > count:
                raise ConfigError(f"events: rotor {rotor}, but drone {self.drone} has {count}")

    @property
    def _which(self) -> tuple[int | None, ...]:
        """Rotors that fail; None stands for all."""
        return self.rotors or (self.rotor,)

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        for rotor in self._which:
            scene.apply(RotorEfficiency(self.drone, rotor, self.efficiency))
        which = "all rotors" if self.rotor is None else f"rotor {self.rotor}"
        if self.rotors:
            which = f"rotors {', '.join(map(str, self.rotors))}"
        left = f"at {100.0 * self.efficiency:g} %" if self.efficiency else "stopped"
        return f"drone_{self.drone}: {which} {left}"

    def end(self, scene: Scene) -> None:
        """See `EventSpec.end`."""
        for rotor in self._which:
            scene.apply(RotorEfficiency(self.drone, rotor, 1.0))


@EVENTS.register("poke")
@spec
class Poke:
    """A constant force and moment on a body for a while.

    Attributes:
        kind: "poke".
        name: By which other events can follow it.
        when: What triggers it.
        body: "load" or "drone_1", ...
        force_enu_n: Force on the centre of mass, world.
        moment_enu_n_m: Moment, world.
        duration_s: How long it acts.
    """

    kind: Literal["poke"] = "poke"
    name: str | None = None
    when: When
    body: str = "load"
    force_enu_n: Vector3 = (0.0, 0.0, 0.0)
    moment_enu_n_m: Vector3 = (0.0, 0.0, 0.0)
    duration_s: Positive

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""
        body_row(self.body, system)

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        self._add(scene, 1.0)
        parts = []
        if any(self.force_enu_n) or not any(self.moment_enu_n_m):
            parts.append(f"pushed by {list(self.force_enu_n)} N")
        if any(self.moment_enu_n_m):
            parts.append(f"turned by {list(self.moment_enu_n_m)} N m")
        return f"{self.body}: {' and '.join(parts)} for {self.duration_s:g} s"

    def end(self, scene: Scene) -> None:
        """See `EventSpec.end`."""
        self._add(scene, -1.0)

    def _add(self, scene: Scene, sign: float) -> None:
        row = scene.inputs.wrench_enu[body_row(self.body, scene.plant.system)]
        row += sign * np.array([*self.moment_enu_n_m, *self.force_enu_n])
