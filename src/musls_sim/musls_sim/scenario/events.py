"""Events: what happens to the system during a flight, and when."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from musls_control.real_flight.capture_faults import (
    Fault,
    at_place,
    frozen,
    jumped,
    swapped,
    turned,
)
from musls_description.config.errors import ConfigError
from musls_description.config.registry import AnyOf, Registry, requires
from musls_description.config.schema import (
    Finite,
    Fraction,
    NonNegative,
    Number,
    Positive,
    Vector3,
    spec,
)
from musls_description.system.slung_system import RigSystem
from musls_sim.imperfections import DroneLinks, TiltedThrust
from musls_sim.plants.interface import (
    AttachHook,
    Change,
    CutCable,
    LoadMass,
    Plant,
    PlantInputs,
    ReleaseHook,
    RotorEfficiency,
)
from musls_sim.power import Power
from musls_sim.scenario.aerodynamics import Air
from musls_sim.sensors.estimation import Estimator, MotionCapture
from musls_sim.wind import Wind

if TYPE_CHECKING:
    from musls_control.agents.network import Network

# ---------- Triggers: time, stage, another event, or a condition

One = Annotated[int, Field(ge=1), Number]
"""Number of a drone or cable, from 1."""

AUTOMATIC_KINDS = (
    "battery_empty",
    "cable_broken",
    "cable_impact",
    "cable_slack",
    "cable_taut",
    "collision",
    "doubtful",
    "joint_stop",
    "mocap",
    "rotors_overlap",
    "too_close",
    "winch_stopped",
)
"""Kinds of events that happen by themselves; others can follow them."""


def body_row(name: str, system: RigSystem) -> int:
    """Row of a body in arrays of all bodies: 0 for "load", i for "drone_i" (raises ConfigError)."""
    names = ["load"] if system.load is not None else []
    names += [f"drone_{i}" for i in range(1, system.n_drones + 1)]
    if name not in names:
        raise ConfigError(f"events: unknown body '{name}': choose one of {', '.join(names)}")
    return 0 if name == "load" else int(name.rpartition("_")[2])


def check_drone(number: int, system: RigSystem) -> None:
    """Refuse a drone that does not exist (raises ConfigError)."""
    if number > system.n_drones:
        raise ConfigError(f"events: drone {number}, but there are {system.n_drones} drones")


def check_cable(number: int, system: RigSystem) -> None:
    """Refuse a cable that does not exist (raises ConfigError)."""
    if number > len(system.cables):
        raise ConfigError(f"events: cable {number}, but there are {len(system.cables)}")


@spec
class OnDrone:
    """Has to do with a drone.

    Attributes:
        drone: Number of the drone, from 1.
    """

    drone: One

    def check(self, system: RigSystem) -> None:
        """Refuse a drone that does not exist (raises ConfigError)."""
        check_drone(self.drone, system)


@spec
class OnBody:
    """Has to do with the load or a drone.

    Attributes:
        body: "load" or "drone_1", ...
    """

    body: str = "load"

    def check(self, system: RigSystem) -> None:
        """Refuse a body that does not exist (raises ConfigError)."""
        body_row(self.body, system)

    def row(self, context: EventContext) -> int:
        """Row of the body in arrays of all bodies."""
        return body_row(self.body, context.plant.system)


class Condition:
    """Base of conditions: a quantity above or below a limit.

    Fields that begin with above and below are the limits; one of them is to be given.
    """

    def __post_init__(self) -> None:
        limits = self._limits
        if sum(limit is not None for limit in limits.values()) != 1:
            raise ValueError(f"give either {' or '.join(limits)}")

    @property
    def _limits(self) -> dict[str, float | None]:
        return {k: v for k, v in vars(self).items() if k.startswith(("above", "below"))}

    def check(self, system: RigSystem) -> None:
        """Refuse what this system does not have."""

    def value(self, context: EventContext) -> float:
        """The quantity now."""
        raise NotImplementedError

    def holds(self, context: EventContext) -> bool:
        """Whether the limit is passed now."""
        value = self.value(context)
        ((name, limit),) = ((k, v) for k, v in self._limits.items() if v is not None)
        return value > limit if name.startswith("above") else value < limit


@spec
class Tension(Condition):
    """Tension of a cable.

    Attributes:
        cable: Number of the cable, from 1.
        above_n: Holds when the largest tension of a period, at either end, is above it.
        below_n: Holds when the smaller of both ends' tensions is below it.
    """

    cable: One
    above_n: Finite | None = None
    below_n: Finite | None = None

    def check(self, system: RigSystem) -> None:
        check_cable(self.cable, system)

    def value(self, context: EventContext) -> float:
        state = context.plant.state
        row = self.cable - 1
        if self.above_n is not None:
            return float(state.tension_peak_n[row])
        return float(state.tension_n[row].min())


@spec
class Height(OnBody, Condition):
    """Height of a body's centre of mass.

    Attributes:
        above_m: Holds above it.
        below_m: Holds below it.
    """

    above_m: Finite | None = None
    below_m: Finite | None = None

    def value(self, context: EventContext) -> float:
        return float(context.plant.state.position_enu_m[self.row(context), 2])


@spec
class Distance(Condition):
    """Distance of the centres of mass of two bodies.

    Attributes:
        bodies: Two of "load", "drone_1", ...
        above_m: Holds above it.
        below_m: Holds below it.
    """

    bodies: tuple[str, str]
    above_m: Finite | None = None
    below_m: Finite | None = None

    def check(self, system: RigSystem) -> None:
        if body_row(self.bodies[0], system) == body_row(self.bodies[1], system):
            raise ConfigError(f"events: distance of {self.bodies[0]} to itself")

    def value(self, context: EventContext) -> float:
        plant = context.plant
        a, b = (plant.state.position_enu_m[body_row(n, plant.system)] for n in self.bodies)
        return float(np.linalg.norm(a - b))


@spec
class Charge(OnDrone, Condition):
    """Share of a battery's charge.

    Attributes:
        below: Holds below it.
    """

    below: Fraction

    def check(self, system: RigSystem) -> None:
        super().check(system)
        _check_battery(self.drone, system)

    def value(self, context: EventContext) -> float:
        return float(_battery_row(self.drone, context)["charge"])


def _battery_row(drone: int, context: EventContext) -> Any:
    assert context.power is not None  # `_check_battery` saw a battery
    return context.power.batteries[drone - 1]


def _check_battery(number: int, system: RigSystem) -> None:
    propulsion = system.drones[number - 1].propulsion
    if propulsion is None or propulsion.battery is None:
        raise ConfigError(f"events: drone {number} has no battery (propulsion.battery)")


@spec
class Energy(OnDrone, Condition):
    """Energy that a drone has drawn from its battery.

    Attributes:
        above_wh: Holds above it.
    """

    above_wh: Positive

    def check(self, system: RigSystem) -> None:
        super().check(system)
        _check_battery(self.drone, system)

    def value(self, context: EventContext) -> float:
        return float(_battery_row(self.drone, context)["energy"]) / 3600.0


@spec
class Speed(OnBody, Condition):
    """Speed of a body's centre of mass.

    Attributes:
        above_m_s: Holds above it.
        below_m_s: Holds below it.
    """

    above_m_s: NonNegative | None = None
    below_m_s: Positive | None = None

    def value(self, context: EventContext) -> float:
        return float(np.linalg.norm(context.plant.state.velocity_enu_m_s[self.row(context)]))


@spec
class Tilt(OnBody, Condition):
    """Angle between a body's z axis and the vertical.

    Attributes:
        above_deg: Holds above it.
        below_deg: Holds below it.
    """

    above_deg: Annotated[float, Field(ge=0.0, lt=180.0)] | None = None
    below_deg: Annotated[float, Field(gt=0.0, le=180.0)] | None = None

    def value(self, context: EventContext) -> float:
        _, x, y, _ = context.plant.state.orientation_wxyz[self.row(context)]
        return math.degrees(math.acos(min(max(1.0 - 2.0 * (x * x + y * y), -1.0), 1.0)))


@spec
class Thrust(OnDrone, Condition):
    """Largest share of its largest thrust that a rotor of a drone gives.

    With motors and batteries a rotor gives less than at full charge, and may never reach 1.

    Attributes:
        above: Holds above it.
        below: Holds below it.
    """

    above: Annotated[float, Field(ge=0.0, lt=1.0)] | None = None
    below: Fraction | None = None

    def value(self, context: EventContext) -> float:
        plant = context.plant
        row = self.drone - 1
        rotors = plant.system.drones[row].rotors
        speeds = plant.state.rotor_speed_rad_s[row, : len(rotors)]
        shares = [w / r.speed_max_rad_s for w, r in zip(speeds, rotors, strict=True)]
        return float(max(shares)) ** 2


@spec
class When:
    """Trigger of an event.

    At most one of `time_s`, `stage` and `event` says from when on; at most one condition is waited
    for from then on (from the start where none of the three is given). An event happens once: the
    first time that its condition holds.

    Attributes:
        time_s: Simulated time.
        stage: Name of the phase or stage, as in the list of `/mission/stage`.
        event: Name, or kind, of an event that has begun.
        tension: Tension of a cable.
        height: Height of a body.
        distance: Distance of two bodies.
        charge: Charge of a battery.
        energy: Energy drawn from a battery.
        speed: Speed of a body.
        tilt: Tilt of a body.
        thrust: Thrust of a drone's rotors.
        after_s: Time after all that.
    """

    time_s: NonNegative | None = None
    stage: str | None = None
    event: str | None = None
    tension: Tension | None = None
    height: Height | None = None
    distance: Distance | None = None
    charge: Charge | None = None
    energy: Energy | None = None
    speed: Speed | None = None
    tilt: Tilt | None = None
    thrust: Thrust | None = None
    after_s: NonNegative = 0.0

    def __post_init__(self) -> None:
        begins = [v for v in (self.time_s, self.stage, self.event) if v is not None]
        if len(begins) > 1:
            raise ValueError("give either time_s or stage or event")
        if len(self._conditions) > 1:
            raise ValueError(f"give one condition only: {', '.join(CONDITIONS)}")
        if not begins and not self._conditions:
            raise ValueError(f"give time_s, stage, event, or a condition ({', '.join(CONDITIONS)})")

    @property
    def _conditions(self) -> list[Condition]:
        parts = [getattr(self, name) for name in CONDITIONS]
        return [part for part in parts if part is not None]

    @property
    def condition(self) -> Condition | None:
        """Condition that is waited for, None for nothing."""
        return self._conditions[0] if self._conditions else None


CONDITIONS = ("tension", "height", "distance", "charge", "energy", "speed", "tilt", "thrust")
"""Fields of `When` that are conditions."""

EVENTS: Registry[Any] = Registry("event", "musls.events", {}, requires("begin", base=lambda: Event))
"""Specifications by kind: classes made with `spec` derived from `Event`."""

AnyEvent = Annotated[Any, AnyOf(EVENTS)]
"""Type of an entry of a scenario's `events`."""


@dataclass(frozen=True)
class EventContext:
    """Parts of a session that an event may act on.

    Attributes:
        plant: The physics; `plant.apply` changes the system.
        wind: Moving air.
        estimator: Estimator of the state.
        links: Links between the drones and their guidance.
        power: Motors and batteries; None where there are none.
        tilted: Thrust of tilted rotors; None where none are.
        air: Inputs of the aerodynamic models.
        abort: Gives the mission up, told why; None for a mission that cannot be given up.
        network: Network between drones that decide for themselves; None without.
    """

    plant: Plant
    inputs: PlantInputs
    wind: Wind
    estimator: Estimator
    links: DroneLinks
    power: Power | None
    tilted: TiltedThrust | None
    air: Air
    abort: Callable[[str], None] | None
    network: Network | None = None

    def apply(self, change: Change) -> None:
        """Change the system, see `Plant.apply`."""
        self.plant.apply(change)
        if isinstance(change, RotorEfficiency):
            for part in (self.power, self.tilted, self.air):
                if part is not None:
                    part.apply(change)


@spec
class Event:
    """Base of events; a `spec` class derived from it needs `kind` and `begin`.

    One with a `duration_s` lasts so long, and needs `end`.

    Attributes:
        kind: Kind of the event.
        name: Name that other events refer to.
        when: Time or condition that triggers it.
        changes_numbers_only: Whether all that it does is to change numbers in arrays of the parts,
            itself or by a change, or the cable models in which that is so: then it happens in the
            worlds of a batch, too.
    """

    kind: str
    name: str | None = None
    when: When
    changes_numbers_only: ClassVar[bool | tuple[str, ...]] = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names under which it is known: its own, if it has one, and its kind."""
        return (self.name, self.kind) if self.name else (self.kind,)

    @property
    def lasts_s(self) -> float | None:
        """Time after which it ends; None for a change that stays."""
        return getattr(self, "duration_s", None)

    def check(self, system: RigSystem) -> None:
        """Refuse an event that this system cannot have, before the flight."""

    def fits(self, context: EventContext) -> None:
        """Refuse, before the flight, what this plant, estimator or autopilot cannot do."""

    def ready(self, context: EventContext) -> bool:
        """Whether it can begin; asked in each period once the trigger has come."""
        return True

    @abstractmethod
    def begin(self, context: EventContext) -> str:
        """Make it happen; returns what happened, for people."""
        raise NotImplementedError

    def end(self, context: EventContext) -> None:
        """Take back what lasts for a while only."""


@EVENTS.register("rotor_failure")
@spec
class RotorFailure(OnDrone, Event):
    """One rotor of a drone, several, or all of them, lose thrust and torque.

    Attributes:
        rotor: Number of the rotor, from 1; left out (as `rotors`) for all rotors.
        rotors: Several of them.
        efficiency: Share of thrust and torque that is left.
        duration_s: Time after which the rotor works again; left out for never.
    """

    kind: Literal["rotor_failure"] = "rotor_failure"
    changes_numbers_only: ClassVar[bool] = True
    rotor: One | None = None
    rotors: tuple[One, ...] = ()
    efficiency: Fraction = 0.0
    duration_s: Positive | None = None

    def check(self, system: RigSystem) -> None:
        super().check(system)
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

    def begin(self, context: EventContext) -> str:
        for rotor in self._which:
            context.apply(RotorEfficiency(self.drone, rotor, self.efficiency))
        which = "all rotors" if self.rotor is None else f"rotor {self.rotor}"
        if self.rotors:
            which = f"rotors {', '.join(map(str, self.rotors))}"
        state = f"at {100.0 * self.efficiency:g} %" if self.efficiency else "stopped"
        return f"drone_{self.drone}: {which} {state}"

    def end(self, context: EventContext) -> None:
        for rotor in self._which:
            context.apply(RotorEfficiency(self.drone, rotor, 1.0))


@EVENTS.register("poke")
@spec
class Poke(Event):
    """A constant force and moment on a body for a while.

    Attributes:
        body: "load" or "drone_1", ...
        force_enu_n: Force on the centre of mass, world.
        moment_enu_n_m: Moment, world.
        duration_s: Duration of the push.
    """

    kind: Literal["poke"] = "poke"
    changes_numbers_only: ClassVar[bool] = True
    body: str = "load"
    force_enu_n: Vector3 = (0.0, 0.0, 0.0)
    moment_enu_n_m: Vector3 = (0.0, 0.0, 0.0)
    duration_s: Positive

    def check(self, system: RigSystem) -> None:
        body_row(self.body, system)

    def begin(self, context: EventContext) -> str:
        self._add(context, 1.0)
        parts = []
        if any(self.force_enu_n) or not any(self.moment_enu_n_m):
            parts.append(f"pushed by {list(self.force_enu_n)} N")
        if any(self.moment_enu_n_m):
            parts.append(f"turned by {list(self.moment_enu_n_m)} N m")
        return f"{self.body}: {' and '.join(parts)} for {self.duration_s:g} s"

    def end(self, context: EventContext) -> None:
        self._add(context, -1.0)

    def _add(self, context: EventContext, sign: float) -> None:
        wrench = context.inputs.wrench_enu
        push = np.array([*self.moment_enu_n_m, *self.force_enu_n])
        where = body_row(self.body, context.plant.system), np.flatnonzero(push)
        wrench[where] += sign * push[where[1]]


# ---------- Failures


@EVENTS.register("drone_lost")
@spec
class DroneLost(OnDrone, Event):
    """All motors of a drone stop for good, and its radio, where drones decide for themselves."""

    kind: Literal["drone_lost"] = "drone_lost"
    changes_numbers_only: ClassVar[bool] = True

    def begin(self, context: EventContext) -> str:
        context.apply(RotorEfficiency(self.drone, None, 0.0))
        if context.network is not None:
            context.network.cut(links_of([self.drone], context.network.n_drones))
        return f"drone_{self.drone}: all motors stopped"


def capture_of(context: EventContext, kind: str) -> MotionCapture:
    """Motion capture of a flight, for events of a kind; ConfigError where there is none."""
    if not isinstance(context.estimator, MotionCapture):
        raise ConfigError(
            f"events: {kind} needs motion capture: estimation.kind: mocap and "
            "autopilot.kind: builtin"
        )
    return context.estimator


@EVENTS.register("mocap_outage")
@spec
class MocapOutage(Event):
    """Motion capture sees nothing for a while; the drones go on by their IMUs.

    Attributes:
        drones: Numbers of those that are not seen; left out for all.
        load: Whether the load is not seen either.
        duration_s: Duration of the outage.
    """

    kind: Literal["mocap_outage"] = "mocap_outage"
    changes_numbers_only: ClassVar[bool] = True
    drones: tuple[One, ...] = ()
    load: bool = True
    duration_s: Positive

    def check(self, system: RigSystem) -> None:
        for drone in self.drones:
            check_drone(drone, system)

    def fits(self, context: EventContext) -> None:
        capture_of(context, self.kind)

    def begin(self, context: EventContext) -> str:
        self._see(context, seen=False)
        drones = ", ".join(f"drone_{i}" for i in self.drones) if self.drones else "all drones"
        return f"{drones}{' and load' if self.load else ''} not seen for {self.duration_s:g} s"

    def end(self, context: EventContext) -> None:
        self._see(context, seen=True)

    def _see(self, context: EventContext, *, seen: bool) -> None:
        assert isinstance(context.estimator, MotionCapture)  # see `fits`
        rows = [i - 1 for i in self.drones] or list(range(context.plant.system.n_drones))
        context.estimator.see(rows, seen=seen, load=self.load)


@spec
class CaptureLie(OnDrone, Event):
    """Motion capture sends wrong poses of a drone, or of two.

    The filter of the node `mocap_relay` judges them, and the guard answers what it doubts.

    Attributes:
        duration_s: Duration of the fault; left out for the rest of the flight.
    """

    duration_s: Positive | None = None

    def fault(self) -> Fault:
        """Fault of the capture: the poses that are sent."""
        raise NotImplementedError

    @property
    def what(self) -> str:
        """Description of the fault in words."""
        raise NotImplementedError

    def check(self, system: RigSystem) -> None:
        super().check(system)
        if system.load is None:
            raise ConfigError(f"events: {self.kind}, but {system.name} has no load")

    def fits(self, context: EventContext) -> None:
        capture = capture_of(context, self.kind)
        if len(capture.ring) < 2:
            raise ConfigError(
                f"events: {self.kind}: estimation.latency_s must be 0.004 s or more: samples are "
                "judged on their way"
            )
        if capture.relay is None:
            raise ConfigError(
                f"events: {self.kind}: no relay judges the capture of this flight; let its "
                "scenario have such an event, which may be later than the flight"
            )
        if (why := context.links.refusal()) is not None:
            raise ConfigError(f"events: {self.kind}: {why}")

    def begin(self, context: EventContext) -> str:
        self._faults(context).append((self, self.fault()))
        lasts = f" for {self.duration_s:g} s" if self.duration_s else ""
        return f"drone_{self.drone}: {self.what}{lasts}"

    def end(self, context: EventContext) -> None:
        faults = self._faults(context)
        faults[:] = [entry for entry in faults if entry[0] is not self]

    def _faults(self, context: EventContext) -> list[tuple[object, Fault]]:
        relay = capture_of(context, self.kind).relay
        assert relay is not None  # see `fits`
        return relay.faults


@EVENTS.register("mocap_frozen")
@spec
class MocapFrozen(CaptureLie):
    """Motion capture repeats the last pose of a drone, with new stamps."""

    kind: Literal["mocap_frozen"] = "mocap_frozen"

    def fault(self) -> Fault:
        return frozen(f"drone_{self.drone}")

    @property
    def what(self) -> str:
        return "its last pose is sent"


@EVENTS.register("mocap_swapped")
@spec
class MocapSwapped(CaptureLie):
    """Motion capture takes two drones for each other.

    Attributes:
        with_drone: Number of the other one, from 1.
    """

    kind: Literal["mocap_swapped"] = "mocap_swapped"
    with_drone: One

    def __post_init__(self) -> None:
        if self.with_drone == self.drone:
            raise ValueError(f"with_drone must be another one than drone = {self.drone}")

    def check(self, system: RigSystem) -> None:
        super().check(system)
        check_drone(self.with_drone, system)

    def fault(self) -> Fault:
        return swapped(f"drone_{self.drone}", f"drone_{self.with_drone}")

    @property
    def what(self) -> str:
        return f"taken for drone_{self.with_drone}, and the other way round"


@EVENTS.register("mocap_turned")
@spec
class MocapTurned(CaptureLie):
    """Motion capture turns the attitude of a drone.

    Attributes:
        angle_deg: Angle about the axis.
        axis_enu: Axis in the world, of any length.
    """

    kind: Literal["mocap_turned"] = "mocap_turned"
    angle_deg: Finite = 90.0
    axis_enu: Vector3 = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        if not any(self.axis_enu):
            raise ValueError("axis_enu must not be zero")

    def fault(self) -> Fault:
        angle = float(np.radians(self.angle_deg))
        return turned(f"drone_{self.drone}", angle, np.array(self.axis_enu))

    @property
    def what(self) -> str:
        return f"turned by {self.angle_deg:g} degrees about {list(self.axis_enu)}"


@EVENTS.register("mocap_jump")
@spec
class MocapJump(CaptureLie):
    """Motion capture sees a drone somewhere else.

    Attributes:
        jump_enu_m: Offset from the true place.
        place_enu_m: Place where it is seen instead, at rest and level, such as the origin.
    """

    kind: Literal["mocap_jump"] = "mocap_jump"
    jump_enu_m: Vector3 = (1.0, 0.0, 0.0)
    place_enu_m: Vector3 | None = None

    def fault(self) -> Fault:
        body = f"drone_{self.drone}"
        if self.place_enu_m is not None:
            return at_place(body, np.array(self.place_enu_m))
        return jumped(body, np.array(self.jump_enu_m))

    @property
    def what(self) -> str:
        if self.place_enu_m is not None:
            return f"seen at {list(self.place_enu_m)} m"
        return f"seen {list(self.jump_enu_m)} m away"


@EVENTS.register("gust")
@spec
class Gust(Event):
    """More wind for a while.

    Attributes:
        velocity_enu_m_s: Added to the wind.
        duration_s: Duration of the gust.
    """

    kind: Literal["gust"] = "gust"
    changes_numbers_only: ClassVar[bool] = True
    velocity_enu_m_s: Vector3
    duration_s: Positive

    def begin(self, context: EventContext) -> str:
        context.wind.add(self.velocity_enu_m_s)
        return f"{list(self.velocity_enu_m_s)} m/s for {self.duration_s:g} s"

    def end(self, context: EventContext) -> None:
        context.wind.add([-v for v in self.velocity_enu_m_s])


@EVENTS.register("load_mass")
@spec
class LoadMassChange(Event):
    """The load is heavier or lighter from now on: filled, emptied.

    Its velocity stays, its inertia changes in proportion.

    Attributes:
        mass_kg: New mass of the load.
    """

    kind: Literal["load_mass"] = "load_mass"
    changes_numbers_only: ClassVar[bool] = True
    mass_kg: Positive

    def check(self, system: RigSystem) -> None:
        if system.load is None:
            raise ConfigError(f"events: load_mass, but {system.name} has no load")

    def fits(self, context: EventContext) -> None:
        context.plant.check(LoadMass(self.mass_kg))

    def begin(self, context: EventContext) -> str:
        context.apply(LoadMass(self.mass_kg))
        return f"load: {self.mass_kg:g} kg from now on"


@EVENTS.register("cable_cut")
@spec
class CableCut(Event):
    """A cable is cut in one of its segments.

    Elastic cables part in the segment, chains of rigid links at the lower end of the link, massless
    cables are gone.

    Attributes:
        cable: Number of the cable, from 1.
        segment: Number of the segment, from 1 at the load (end 1 of the cable).
    """

    kind: Literal["cable_cut"] = "cable_cut"
    changes_numbers_only: ClassVar[tuple[str, ...]] = ("massless", "elastic")
    cable: One
    segment: One = 1

    def check(self, system: RigSystem) -> None:
        check_cable(self.cable, system)
        segments = system.cables[self.cable - 1].links
        if self.segment > segments:
            raise ConfigError(
                f"events: segment {self.segment}, but cable {self.cable} has {segments}"
            )

    def fits(self, context: EventContext) -> None:
        context.plant.check(CutCable(self.cable, self.segment))

    def begin(self, context: EventContext) -> str:
        context.apply(CutCable(self.cable, self.segment))
        return f"cable_{self.cable}: cut in segment {self.segment}"


@EVENTS.register("link_lost")
@spec
class LinkLost(OnDrone, Event):
    """A drone gets no set-points.

    As PX4 in offboard mode: for COM_OF_LOSS_T (1 s) it follows the last set-point, then its own
    failsafe (COM_OBL_RC_ACT) holds its place or lands; landed it disarms. The built-in autopilot
    does what PX4 does; to a real PX4 no set-points are sent, and its own parameters decide.

    Attributes:
        action: Reaction of the built-in autopilot: "land" or "hold".
        duration_s: Time after which the link is back; left out for never.
    """

    kind: Literal["link_lost"] = "link_lost"
    action: Literal["land", "hold"] = "land"
    duration_s: Positive | None = None

    def fits(self, context: EventContext) -> None:
        if (why := context.links.refusal()) is not None:
            raise ConfigError(f"events: link_lost: {why}")

    def begin(self, context: EventContext) -> str:
        context.links.lose(self.drone - 1, self.action)
        return f"drone_{self.drone}: no set-points"

    def end(self, context: EventContext) -> None:
        context.links.restore(self.drone - 1)


def links_of(drones: Sequence[int], n_drones: int) -> set[tuple[int, int]]:
    """Links (from, to) from and to some of the drones, numbers from 1."""
    numbers = range(1, n_drones + 1)
    return {(i, j) for i in numbers for j in numbers if i in drones or j in drones}


@spec
class NetworkCut(Event):
    """Some links between drones that decide for themselves lose all messages.

    What was under way arrives.

    Attributes:
        duration_s: Time after which it does again; left out for never.
    """

    duration_s: Positive | None = None

    def cut(self, n_drones: int) -> set[tuple[int, int]]:
        """Links (from, to) on which nothing gets through."""
        raise NotImplementedError

    @property
    def what(self) -> str:
        """Description in words."""
        raise NotImplementedError

    def fits(self, context: EventContext) -> None:
        if context.network is None:
            raise ConfigError(
                f"events: {self.kind} needs a network between the drones: controller.kind: agents"
            )

    def begin(self, context: EventContext) -> str:
        self._cut(context, 1)
        return self.what

    def end(self, context: EventContext) -> None:
        self._cut(context, -1)

    def _cut(self, context: EventContext, by: int) -> None:
        assert context.network is not None  # see `fits`
        context.network.cut(self.cut(context.network.n_drones), by)


@EVENTS.register("network_outage")
@spec
class NetworkOutage(NetworkCut):
    """The radio of some drones, or of all, neither sends nor hears.

    Attributes:
        drones: Numbers of these drones; left out for all.
    """

    kind: Literal["network_outage"] = "network_outage"
    drones: tuple[One, ...] = ()

    def check(self, system: RigSystem) -> None:
        for drone in self.drones:
            check_drone(drone, system)

    def cut(self, n_drones: int) -> set[tuple[int, int]]:
        return links_of(self.drones or range(1, n_drones + 1), n_drones)

    @property
    def what(self) -> str:
        drones = ", ".join(f"drone_{i}" for i in self.drones) if self.drones else "all drones"
        return f"{drones}: no radio"


@EVENTS.register("partition")
@spec
class Partition(NetworkCut):
    """The network falls apart: drones hear those of their own group alone.

    Attributes:
        groups: Numbers of the drones of each group; those that are left out are one more.
    """

    kind: Literal["partition"] = "partition"
    groups: Annotated[tuple[tuple[One, ...], ...], Field(min_length=1)]

    def check(self, system: RigSystem) -> None:
        drones = [drone for group in self.groups for drone in group]
        for drone in drones:
            check_drone(drone, system)
            if drones.count(drone) > 1:
                raise ConfigError(f"events: partition.groups: drone {drone} is in it twice")

    def cut(self, n_drones: int) -> set[tuple[int, int]]:
        numbers = range(1, n_drones + 1)
        group_of = {drone: k for k, group in enumerate(self.groups) for drone in group}
        return {(i, j) for i in numbers for j in numbers if group_of.get(i) != group_of.get(j)}

    @property
    def what(self) -> str:
        groups = (", ".join(map(str, group)) for group in self.groups)
        return f"drones {' | '.join(groups)} hear only their own group"


@EVENTS.register("land")
@spec
class Land(Event):
    """Landing of drones where they are, against the mission: PX4's land mode.

    The guard asks for it where a drone is in doubt.

    Attributes:
        drone: Number of the drone, from 1; left out for all.
    """

    kind: Literal["land"] = "land"
    drone: One | None = None

    def check(self, system: RigSystem) -> None:
        if self.drone is not None:
            check_drone(self.drone, system)

    def fits(self, context: EventContext) -> None:
        if (why := context.links.land_refusal()) is not None:
            raise ConfigError(f"events: land: {why}")

    def begin(self, context: EventContext) -> str:
        drones = range(1, context.plant.system.n_drones + 1) if self.drone is None else [self.drone]
        for drone in drones:
            context.links.land(drone - 1)
        return "all drones" if self.drone is None else f"drone_{self.drone}"


@EVENTS.register("abort")
@spec
class Abort(Event):
    """A delivery is given up: the load comes back, or is landed where it is."""

    kind: Literal["abort"] = "abort"

    def fits(self, context: EventContext) -> None:
        if context.abort is None:
            raise ConfigError("events: abort: only mission.kind: delivery can be aborted")

    def begin(self, context: EventContext) -> str:
        assert context.abort is not None  # see `fits`
        context.abort("asked for")
        return "asked for"


# ---------- Hooks that open and close


@EVENTS.register("release")
@spec
class Release(Event):
    """The hook of a cable opens: the load is let go.

    Attributes:
        cable: Number of the cable, from 1; left out for all cables.
        at: End that opens: "load" (the cable goes with the drone) or "drone" (with the load).
    """

    kind: Literal["release"] = "release"
    changes_numbers_only: ClassVar[tuple[str, ...]] = ("massless", "elastic")
    cable: One | None = None
    at: Literal["load", "drone"] = "load"

    def check(self, system: RigSystem) -> None:
        if self.cable is not None:
            check_cable(self.cable, system)
        if not system.cables:
            raise ConfigError(f"events: release, but {system.name} has no cables")
        for cable in self.cables(system):
            _check_hook("release", cable, system)

    def cables(self, system: RigSystem) -> tuple[int, ...]:
        """Numbers of the cables whose hooks open."""
        return tuple(range(1, len(system.cables) + 1)) if self.cable is None else (self.cable,)

    def fits(self, context: EventContext) -> None:
        context.plant.check(ReleaseHook(self.cable or 1, self.at))

    def begin(self, context: EventContext) -> str:
        for cable in self.cables(context.plant.system):
            context.apply(ReleaseHook(cable, self.at))
        which = "all cables" if self.cable is None else f"cable_{self.cable}"
        return f"{which}: let go at the {self.at}{'s' * (self.at == 'drone' and not self.cable)}"


@EVENTS.register("attach")
@spec
class Attach(Event):
    """The open hook of a cable closes on the load, once it is close enough and slow enough.

    Attributes:
        when: Time or condition from which the hook is ready to close.
        cable: Number of the cable, from 1.
        distance_m: Largest distance of the hook from its place on the load.
        speed_m_s: Largest speed relative to it.
    """

    kind: Literal["attach"] = "attach"
    cable: One = 1
    distance_m: Positive = 0.1
    speed_m_s: Positive = 0.3

    def check(self, system: RigSystem) -> None:
        check_cable(self.cable, system)
        if system.load is None:
            raise ConfigError(f"events: attach, but {system.name} has no load")
        _check_hook("attach", self.cable, system)
        if system.winches or system.pulleys:
            raise ConfigError(
                f"events: attach: {system.name} has winches or pulleys: only cables of fixed "
                "length can be hooked up"
            )

    def fits(self, context: EventContext) -> None:
        context.plant.check(AttachHook(self.cable))

    def ready(self, context: EventContext) -> bool:
        plant = context.plant
        if not plant.hook_is_open(self.cable - 1):
            return False
        distance, speed = plant.hook_gap(self.cable - 1)
        return distance <= self.distance_m and speed <= self.speed_m_s

    def begin(self, context: EventContext) -> str:
        distance, speed = context.plant.hook_gap(self.cable - 1)
        context.apply(AttachHook(self.cable))
        return f"cable_{self.cable}: hooked up from {distance:.3f} m at {speed:.3f} m/s"


def _check_hook(what: str, cable: int, system: RigSystem) -> None:
    """Refuse a rod: it is fixed at its ends, and has no hook."""
    if system.cables[cable - 1].elastic.rod:
        raise ConfigError(
            f"events: {what}: cable {cable} of {system.name} is a rod (elastic.rod), which has no "
            "hook; cable_cut can part it"
        )


def check_hooks(events: Sequence[Any], n_cables: int) -> None:
    """Refuse hooks that would close twice without opening, or open twice without closing."""
    for cable in range(1, n_cables + 1):
        closing = sum(isinstance(e, Attach) and e.cable == cable for e in events)
        opening = sum(
            isinstance(e, Release) and e.at == "load" and e.cable in (None, cable) for e in events
        )
        if closing > opening:
            raise ConfigError(
                f"events: attach: two hooks on cable {cable}: it hangs on the load until a release "
                "lets it go there"
            )
        if opening > closing + 1:
            raise ConfigError(
                f"events: release: cable {cable} is let go at the load {opening} times; attach it "
                "in between"
            )


# ---------- Commands to winches

INPUTS = ("feed_m_s", "torque_n_m", "speed_rad_s")


@EVENTS.register("winch")
@spec
class WinchCommand(Event):
    """A winch does something else from now on than the scenario's `rig` says.

    Attributes:
        winch: Number of the winch, from 1.
        feed_m_s: Rate of the free length of a winch of kind feed, positive pays out.
        torque_n_m: Torque of the motor of a drum, positive pays out.
        speed_rad_s: Speed of a drum that the scenario drives by its speed.
        brake: Whether a drum's brake is closed; left out to leave it as it is.
        ramp_s: Time in which the rate, torque or speed goes to its new value; 0 for a jump.
    """

    kind: Literal["winch"] = "winch"
    changes_numbers_only: ClassVar[bool] = True
    winch: One = 1
    feed_m_s: Finite | None = None
    torque_n_m: Finite | None = None
    speed_rad_s: Finite | None = None
    brake: bool | None = None
    ramp_s: NonNegative = 0.0

    def __post_init__(self) -> None:
        if self.ramp_s and not self._given:
            raise ValueError("ramp_s belongs to feed_m_s, torque_n_m or speed_rad_s")
        if len(self._given) > 1 or not (self._given or self.brake is not None):
            raise ValueError("give one of feed_m_s, torque_n_m and speed_rad_s, or brake alone")

    @property
    def _given(self) -> dict[str, float]:
        values = (self.feed_m_s, self.torque_n_m, self.speed_rad_s)
        return {name: x for name, x in zip(INPUTS, values, strict=True) if x is not None}

    def check(self, system: RigSystem) -> None:
        count = len(system.winches)
        if self.winch > count:
            there = f"there are {count}" if count else f"{system.name} has none"
            raise ConfigError(f"events: winch {self.winch}, but {there}")
        if self.brake is not None and system.winches[self.winch - 1].kind != "drum":
            raise ConfigError(f"events: winch_{self.winch} is a feed, which has no brake")

    def fits(self, context: EventContext) -> None:
        plant = context.plant
        takes = plant.winch_input(self.winch - 1)
        if takes is None:
            raise ConfigError(
                f"events: winch: the cable model '{plant.cable_model}' has no winches; choose "
                "cable_model: elastic"
            )
        for name in self._given:
            if name != takes:
                raise ConfigError(f"events: winch_{self.winch} takes {takes} here, not {name}")

    def begin(self, context: EventContext) -> str:
        i = self.winch - 1
        inputs = context.inputs
        parts = []
        inputs.winch_ramp[i] = 0.0
        for name, value in self._given.items():
            periods = round(self.ramp_s / context.plant.period_s)
            if periods:
                now = inputs.winch[i, 1]
                inputs.winch[i] = now
                inputs.winch_ramp[i] = value, (value - now) / periods
            else:
                inputs.winch[i] = value
            parts.append(f"{name} = {value:g}")
        if self.brake is not None:
            inputs.winch_brake[i] = self.brake
            if not self._given:
                inputs.winch[i] = 0.0
            parts.append("brake closed" if self.brake else "brake open")
        inputs.winch_taken[i] = True
        return f"winch_{self.winch}: {', '.join(parts)}"
