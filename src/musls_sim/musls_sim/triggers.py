"""When an event happens: at a time, in a stage, after another event, or once a condition holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol

import numpy as np
from pydantic import Field

from musls_description.errors import ConfigError
from musls_description.schema import Finite, Fraction, NonNegative, Number, spec
from musls_description.system import RigSystem
from musls_sim.power_kernel import CHARGE

if TYPE_CHECKING:
    from musls_sim.plants.interface import PlantState
    from musls_sim.power import Power

One = Annotated[int, Field(ge=1), Number]
"""Number of a drone or cable, from 1."""

NOTED_KINDS = (
    "battery_empty",
    "cable_broken",
    "cable_jerked",
    "cable_slack",
    "cable_taut",
    "too_close",
    "winch_stopped",
)
"""Events that nobody asks for but that may happen; others can follow them."""


@dataclass(frozen=True)
class Seen:
    """What a condition looks at.

    Attributes:
        state: Of the plant.
        power: Motors and batteries; None where there are none.
    """

    state: PlantState
    power: Power | None


class Condition(Protocol):
    """Something that holds or does not."""

    def check(self, system: RigSystem) -> None:
        """Refuse what this system does not have.

        Raises:
            ConfigError: It names a body, cable or battery that does not exist.
        """

    def value(self, seen: Seen) -> float:
        """The quantity now."""

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The condition holds above the first or below the second."""


def body_row(name: str, system: RigSystem) -> int:
    """Row of a body in arrays of all bodies: 0 for "load", i for "drone_i".

    Raises:
        ConfigError: No such body.
    """
    names = ["load"] if system.load is not None else []
    names += [f"drone_{i}" for i in range(1, system.n_drones + 1)]
    if name not in names:
        raise ConfigError(f"events: unknown body '{name}': choose one of {', '.join(names)}")
    return _row(name)


def check_drone(number: int, system: RigSystem) -> None:
    """Refuse a drone that does not exist.

    Raises:
        ConfigError: It does not.
    """
    if number > system.n_drones:
        raise ConfigError(f"events: drone {number}, but there are {system.n_drones} drones")


def check_cable(number: int, system: RigSystem) -> None:
    """Refuse a cable that does not exist.

    Raises:
        ConfigError: It does not.
    """
    if number > len(system.cables):
        raise ConfigError(f"events: cable {number}, but there are {len(system.cables)}")


def _one_limit(above: float | None, below: float | None, unit: str) -> None:
    if (above is None) == (below is None):
        raise ValueError(f"give either above{unit} or below{unit}")


def _row(name: str) -> int:
    return 0 if name == "load" else int(name.rpartition("_")[2])


@spec
class Tension:
    """Tension of a cable.

    Attributes:
        cable: Number of the cable, from 1.
        above_n: Holds when the largest tension of a period, at either end, is above it.
        below_n: Holds when the smaller of both ends' tensions is below it.
    """

    cable: One
    above_n: Finite | None = None
    below_n: Finite | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        _one_limit(self.above_n, self.below_n, "_n")

    def check(self, system: RigSystem) -> None:
        """See `Condition.check`."""
        check_cable(self.cable, system)

    def value(self, seen: Seen) -> float:
        """See `Condition.value`."""
        row = self.cable - 1
        if self.above_n is not None:
            return float(seen.state.tension_peak_n[row])
        return float(seen.state.tension_n[row].min())

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """See `Condition.limits`."""
        return self.above_n, self.below_n


@spec
class Height:
    """Height of a body's centre of mass.

    Attributes:
        body: "load" or "drone_1", ...
        above_m: Holds above it.
        below_m: Holds below it.
    """

    body: str = "load"
    above_m: Finite | None = None
    below_m: Finite | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        _one_limit(self.above_m, self.below_m, "_m")

    def check(self, system: RigSystem) -> None:
        """See `Condition.check`."""
        body_row(self.body, system)

    def value(self, seen: Seen) -> float:
        """See `Condition.value`."""
        return float(seen.state.position_enu_m[_row(self.body), 2])

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """See `Condition.limits`."""
        return self.above_m, self.below_m


@spec
class Distance:
    """Distance of the centres of mass of two bodies.

    Attributes:
        bodies: Two of "load", "drone_1", ...
        above_m: Holds above it.
        below_m: Holds below it.
    """

    bodies: tuple[str, str]
    above_m: Finite | None = None
    below_m: Finite | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        _one_limit(self.above_m, self.below_m, "_m")

    def check(self, system: RigSystem) -> None:
        """See `Condition.check`."""
        if body_row(self.bodies[0], system) == body_row(self.bodies[1], system):
            raise ConfigError(f"events: distance of {self.bodies[0]} to itself")

    def value(self, seen: Seen) -> float:
        """See `Condition.value`."""
        places = seen.state.position_enu_m
        return float(np.linalg.norm(places[_row(self.bodies[0])] - places[_row(self.bodies[1])]))

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """See `Condition.limits`."""
        return self.above_m, self.below_m


@spec
class Charge:
    """Share of a battery's charge.

    Attributes:
        drone: Number of the drone, from 1.
        below: Holds below it.
    """

    drone: One
    below: Fraction

    def check(self, system: RigSystem) -> None:
        """See `Condition.check`."""
        check_drone(self.drone, system)
        propulsion = system.drones[self.drone - 1].propulsion
        if propulsion is None or propulsion.battery is None:
            raise ConfigError(f"events: drone {self.drone} has no battery (propulsion.battery)")

    def value(self, seen: Seen) -> float:
        """See `Condition.value`."""
        assert seen.power is not None  # `check` saw a battery
        return float(seen.power.state[self.drone - 1, CHARGE])

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """See `Condition.limits`."""
        return None, self.below


@spec
class When:
    """What triggers an event.

    At most one of `time_s`, `stage` and `event` says from when on; at most one condition is waited
    for from then on (from the start where none of the three is given). An event happens once: the
    first time that its condition holds.

    Attributes:
        time_s: Simulated time.
        stage: Name of the phase or stage, as in the list of `/mission/stage`.
        event: Name, or kind, of an event that has begun.
        tension: Of a cable.
        height: Of a body.
        distance: Of two bodies.
        charge: Of a battery.
        after_s: Time after all that.
    """

    time_s: NonNegative | None = None
    stage: str | None = None
    event: str | None = None
    tension: Tension | None = None
    height: Height | None = None
    distance: Distance | None = None
    charge: Charge | None = None
    after_s: NonNegative = 0.0

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        begins = [v for v in (self.time_s, self.stage, self.event) if v is not None]
        if len(begins) > 1:
            raise ValueError("give either time_s or stage or event")
        if len(self._conditions) > 1:
            raise ValueError("give one condition only: tension, height, distance or charge")
        if not begins and not self._conditions:
            raise ValueError(
                "give time_s, stage, event, or a condition (tension, height, distance, charge)"
            )

    @property
    def _conditions(self) -> list[Condition]:
        parts = (self.tension, self.height, self.distance, self.charge)
        return [part for part in parts if part is not None]

    @property
    def condition(self) -> Condition | None:
        """What is waited for, None for nothing."""
        return self._conditions[0] if self._conditions else None

    def holds(self, seen: Seen) -> bool:
        """Whether the condition holds now; without one it always does."""
        condition = self.condition
        if condition is None:
            return True
        value = condition.value(seen)
        above, below = condition.limits
        return value > above if above is not None else below is not None and value < below
