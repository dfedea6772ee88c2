"""Events: what happens to the system during a flight, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from pydantic import Field

from musls_description.errors import ConfigError
from musls_description.registry import Registry, any_of
from musls_description.schema import Fraction, NonNegative, Positive, Vector3, spec
from musls_description.system import RigSystem
from musls_sim.plants.changes import RotorEfficiency
from musls_sim.plants.interface import Change, Plant, PlantInputs
from musls_sim.power import Power

EVENTS: Registry[Any] = Registry("event", "musls.events", {})
"""Specifications by kind: classes made with `spec` that follow `EventSpec`."""

AnyEvent = any_of(EVENTS)
"""Type of an entry of a scenario's `events`."""


@dataclass(frozen=True)
class Scene:
    """What an event may act on.

    Attributes:
        plant: The physics; `plant.apply` changes the system.
        inputs: What acts on it from outside.
        power: Motors and batteries; None where there are none.
    """

    plant: Plant
    inputs: PlantInputs
    power: Power | None = None

    def apply(self, change: Change) -> None:
        """Change the system, see `Plant.apply`."""
        self.plant.apply(change)
        if self.power is not None and isinstance(change, RotorEfficiency):
            self.power.apply(change)


class EventSpec(Protocol):
    """What the session needs of an event.

    Attributes:
        kind: Its kind.
        when: What triggers it.
        duration_s: Time after which `end` is called, None for a change that stays.
    """

    kind: str
    when: When
    duration_s: float | None

    def check(self, system: RigSystem) -> None:
        """Refuse an event that this system cannot have, before the flight.

        Raises:
            ConfigError: It names a body or rotor that does not exist.
        """

    def begin(self, scene: Scene) -> str:
        """Make it happen; returns what happened, for people."""

    def end(self, scene: Scene) -> None:
        """Take back what lasts for a while only."""


@spec
class When:
    """What triggers an event: a time, or a stage of the mission.

    Attributes:
        time_s: Simulated time.
        stage: Name of the phase or stage, as in the list of `/mission/stage`.
        after_s: Time after the beginning of the stage.
    """

    time_s: NonNegative | None = None
    stage: str | None = None
    after_s: NonNegative = 0.0

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if (self.time_s is None) == (self.stage is None):
            raise ValueError("give either time_s or stage")


def body_row(name: str, system: RigSystem) -> int:
    """Row of a body in arrays of all bodies: 0 for "load", i for "drone_i".

    Raises:
        ConfigError: No such body.
    """
    names = ["load", *(f"drone_{i}" for i in range(1, system.n_drones + 1))]
    if name not in names:
        raise ConfigError(f"events: unknown body '{name}': choose one of {', '.join(names)}")
    return names.index(name)


@EVENTS.register("rotor_failure")
@spec
class RotorFailure:
    """One rotor of a drone, or all of them, lose thrust and torque.

    Attributes:
        kind: "rotor_failure".
        when: What triggers it.
        drone: Number of the drone, from 1.
        rotor: Number of the rotor, from 1; left out for all rotors.
        efficiency: Share of thrust and torque that is left.
        duration_s: Time after which the rotor works again; left out for never.
    """

    kind: Literal["rotor_failure"] = "rotor_failure"
    when: When
    drone: Annotated[int, Field(ge=1)]
    rotor: Annotated[int, Field(ge=1)] | None = None
    efficiency: Fraction = 0.0
    duration_s: Positive | None = None

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""
        if self.drone > system.n_drones:
            raise ConfigError(f"events: drone {self.drone}, but there are {system.n_drones} drones")
        rotors = len(system.drones[self.drone - 1].rotors)
        if self.rotor is not None and self.rotor > rotors:
            raise ConfigError(f"events: rotor {self.rotor}, but drone {self.drone} has {rotors}")

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        scene.apply(RotorEfficiency(self.drone, self.rotor, self.efficiency))
        which = "all rotors" if self.rotor is None else f"rotor {self.rotor}"
        left = f"at {100.0 * self.efficiency:g} %" if self.efficiency else "stopped"
        return f"drone_{self.drone}: {which} {left}"

    def end(self, scene: Scene) -> None:
        """See `EventSpec.end`."""
        scene.apply(RotorEfficiency(self.drone, self.rotor, 1.0))


@EVENTS.register("poke")
@spec
class Poke:
    """A constant force and moment on a body for a while.

    Attributes:
        kind: "poke".
        when: What triggers it.
        body: "load" or "drone_1", ...
        force_enu_n: Force on the centre of mass, world.
        moment_enu_n_m: Moment, world.
        duration_s: How long it acts.
    """

    kind: Literal["poke"] = "poke"
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
        return f"{self.body}: pushed by {list(self.force_enu_n)} N for {self.duration_s:g} s"

    def end(self, scene: Scene) -> None:
        """See `EventSpec.end`."""
        self._add(scene, -1.0)

    def _add(self, scene: Scene, sign: float) -> None:
        row = scene.inputs.wrench_enu[body_row(self.body, scene.plant.system)]
        row += sign * np.array([*self.moment_enu_n_m, *self.force_enu_n])
