"""Controllers that a scenario can name: from the load's reference and the estimate to commands."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from time import perf_counter
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError
from musls_description.config.registry import (
    AnyOf,
    OwnClass,
    Registry,
    UserCodeError,
    file_of,
    requires,
    user_code,
)
from musls_description.config.schema import Finite, Vector3, spec
from musls_description.hanging.cone import Cone
from musls_description.hanging.reallocation import Reallocation
from musls_description.hanging.rig_places import rig_yaws_rad
from musls_description.numerics.arrays import Array
from musls_description.system.obstacles import AnyObstacle
from musls_description.system.slung_system import RigSystem, SlungLoadSystem, formation_of

USUAL_LATENCY_S = 0.035
"""Default latency of a load's measured motion: motion capture with 20 ms, of 100 Hz,
and its filter."""


class ControlLevel(str, Enum):
    """Kinds of commands; adapters complete the chain down to the rotors.

    Attributes:
        LOAD_ACCELERATION: Acceleration of the load, world ENU, (3,) [m/s2], or with its yaw, (4,)
            [rad]; the load keeps the reference's attitude, drones and cables follow as they do
            for `payload`. The natural level of a first controller.
        DRONE_SETPOINTS: Position and yaw of each drone, (n, 4) [m, rad], or all columns of
            `DroneSetpoints`, (n, 12); the autopilot flies to them.
        FORCES: Force of each drone's rotors, world ENU, (n, 3) [N], or with the drone's yaw as
            fourth column, (n, 4); an attitude controller turns the drones there. Three more
            columns, (n, 7), are a moment in the drone's frame that is added [N m], and three
            more, (n, 10), the force of cable, weight and air that is counted on, world [N]: an
            incremental tracker makes up for what they are not.
        AUTOPILOT_FORCES: Forces as above, but the autopilot turns the drones there: they reach it
            as acceleration set-points, built-in and real PX4s alike. Added moments are left out.
        THRUST_MOMENT: Thrust along the body's z axis and moment in the body's frame of each
            drone, (n, 4) [N, N m]; the rotors are mixed for them.
        THRUST_RATES: Thrust along the body's z axis and body rates of each drone, (n, 4)
            [N, rad/s]; a rate controller gives the moments.
        ROTOR_SPEEDS: Commanded rotor speeds, (n, n_rotors) [rad/s].
        IDEAL_THRUST_MOMENT: THRUST_MOMENT acting on the bodies at once, without rotors.
    """

    LOAD_ACCELERATION = "load_acceleration"
    DRONE_SETPOINTS = "drone_setpoints"
    FORCES = "forces"
    AUTOPILOT_FORCES = "autopilot_forces"
    THRUST_MOMENT = "thrust_moment"
    THRUST_RATES = "thrust_rates"
    ROTOR_SPEEDS = "rotor_speeds"
    IDEAL_THRUST_MOMENT = "ideal_thrust_moment"


@dataclass(frozen=True)
class ControlSetup:
    """System and settings that a controller may know before the flight.

    Attributes:
        system: Masses, inertias, attachments, cables; a `SlungLoadSystem` where drones carry a load
            in formation, else a rig.
        formation: Places of the drones around the load; of a rig that starts on the ground or in
            the air, else its estimate says where drones are when the flight begins.
        gravity_m_s2: Gravity.
        period_s: Time between two calls of `Controller.step`.
        rods: Whether rigid rods join load and drones to one body (`cable_model: rigid_rods`).
        obstacles: Obstacles of the world.
        twist_held: Whether the cable model knows of cables that do not twist (`rigid_links`).
        incremental: Whether the tracker makes up for disturbances (`autopilot.tracker: indi`).
        seed: Seed of the flight.
        latency_s: Time by which the load's measured motion is late.
        setpoint_delay_s: Time from a command until the autopilot has it.
        silent_s: Time without news after which drones that decide for themselves take another one
            for lost; None for never.
        without: Formation without drones (numbers from 1) that do not carry any more, and None
            where there is none; None where the loss of a drone is not answered.
        rig: The rig of which `system` is the equivalent, see `equivalent_formation`; None where it
            is no rig's.
    """

    system: RigSystem
    formation: Cone
    gravity_m_s2: float
    period_s: float
    rods: bool = False
    obstacles: tuple[AnyObstacle, ...] = ()
    incremental: bool = False
    latency_s: float = USUAL_LATENCY_S
    setpoint_delay_s: float = 0.0
    seed: int = 0
    twist_held: bool = False
    silent_s: float | None = None
    without: Callable[[tuple[int, ...]], Reallocation | None] | None = None
    rig: RigSystem | None = None

    @cached_property
    def turnable(self) -> Array | None:
        """Projection on the axes about which the load can be turned; None for all of them.

        What is left out of the reference of all controllers in Python follows from it; compiled
        laws leave it out where they share out forces.
        """
        system = self.system
        if self.rods or not isinstance(system, SlungLoadSystem):
            return None
        turnable = system.turnable(twist_held=self.twist_held)
        return None if np.trace(turnable) > 2.5 else turnable

    @property
    def headings_rad(self) -> Array:
        """Yaws of the drones for a load at yaw zero, (n,): they face the load.

        Those of a rig have each of their hooks on the side of its cable.
        """
        n = self.system.n_drones
        if self.rig is not None:
            return rig_yaws_rad(self.rig, self.formation.offsets_m(n))[1 : 1 + n]
        return self.formation.azimuths_rad(n) + np.pi

    @property
    def slung(self) -> SlungLoadSystem:
        """A load that drones carry in formation; raises ConfigError for a rig."""
        return formation_of(self.system, "this controller")


class Controller(ABC):
    """Base of all controllers, ours and users' own.

    A controller flies while the load hangs in the air: from the end of the lift to the beginning
    of the lowering, and all the time in a flight that starts in the air. Before and after that the
    formation flies the drones by their set-points.

    Attributes:
        level: Level of the commands that `step` returns, a `ControlLevel` or its text.
        keeps_headings: Whether drones keep the headings that they have when it starts, instead of
            facing the load; recorded set-points, and errors to them, have those then.
        setup: Facts about the system, from `prepare` on.
        network: Network between drones that decide for themselves (`agents.network.Network`), from
            `prepare` on; None where a controller knows all.
    """

    level: ClassVar[ControlLevel | str]
    keeps_headings: ClassVar[bool] = False
    network: Any = None
    setup: ControlSetup

    def prepare(self, setup: ControlSetup) -> None:
        """Store what is known of the system; called once, before the flight.

        A class that overrides this method must first call `super().prepare(setup)`.
        """
        self.setup = setup

    def start(self, time_s: float, estimate: Estimate) -> None:  # noqa: B027 (optional)
        """Begin to control; called before the first `step` and again after each pause."""

    def numbers(self) -> dict[str, float]:
        """Figures of its own for the flight's summary and report, by names with units."""
        return {}

    @cached_property
    def happened(self) -> list[tuple[str, str]]:
        """Reports of the controller: append a kind (one word) and a text to this list.

        Each entry becomes an event of the flight, and the list is emptied.
        """
        return []

    @abstractmethod
    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Return the commands for the coming control period, see `ControlLevel` for the shapes."""


# ---------- Controllers that users write: checked when they are built, watched while they fly


def prepare_controller(controller: Controller, setup: ControlSetup) -> None:
    """Give a controller the system and mission that it will fly."""
    with user_code(lambda: " before the flight", type(controller), "prepare"):
        controller.prepare(setup)


def level_of(controller: Controller) -> ControlLevel:
    """Level of a controller."""
    level = getattr(controller, "level", None)
    try:
        return ControlLevel(level)
    except ValueError:
        levels = ", ".join(member.value for member in ControlLevel)
        raise ConfigError(
            f"{type(controller).__name__}.level = {level!r}: choose one of {levels}"
        ) from None


def within_reach(
    controller: Controller, reference: LoadReference, estimate: Estimate
) -> LoadReference:
    """Leave out of a controller's reference the turns of the load that cables cannot give."""
    setup: ControlSetup | None = getattr(controller, "setup", None)  # of a class without our base
    if setup is None or setup.turnable is None:
        return reference
    now_wxyz = estimate.orientation_wxyz[0].copy()
    return replace(reference, within_reach=(setup.turnable, now_wxyz))


class WatchedController:
    """Calls a controller, checks what it returns and measures how long it takes.

    Attributes:
        total_s: Wall time of all calls.
        keeps_headings: See `Controller`.
    """

    def __init__(
        self,
        controller: Controller,
        shapes: tuple[tuple[int, ...], ...],
        *,
        takes_nan: bool = False,
        largest: float = math.inf,
    ) -> None:
        """Prepare; commands have one of `shapes`, NaN stands for what is not given if it may.

        `largest`: beyond it, up or down, a command is a mistake.
        """
        self._controller = controller
        self._shapes = shapes
        self._takes_nan = takes_nan
        self._largest = largest
        self.calls = 0
        self.total_s = 0.0
        # Somebody's own class may have no base of ours.
        self.keeps_headings = bool(getattr(controller, "keeps_headings", False))

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Start the controller: from now on it flies."""
        with user_code(lambda: f" at {time_s:.3f} s", type(self._controller), "start"):
            self._controller.start(time_s, estimate)

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Ask for the commands."""
        begin = perf_counter()
        reference = within_reach(self._controller, reference, estimate)
        with user_code(lambda: f" at {time_s:.3f} s", type(self._controller), "step"):
            commands = self._controller.step(time_s, reference, estimate)
            if getattr(commands, "dtype", None) == np.complex128:
                raise TypeError("commands are complex numbers")
            commands = np.asarray(commands, np.float64)
        self.total_s += perf_counter() - begin
        self.calls += 1
        if commands.shape not in self._shapes:
            shapes = " or ".join(map(str, self._shapes))
            raise UserCodeError(
                f"{self._name}.step at {time_s:.3f} s returned an array of shape "
                f"{commands.shape}, must be {shapes}"
            )
        # No number is larger than the root of the sum of squares, which is quick.
        if not math.sqrt(np.vdot(commands, commands)) < min(self._largest, math.inf):
            self._check_sizes(time_s, commands)
        return commands

    def _check_sizes(self, time_s: float, commands: Array) -> None:
        bad = np.isinf(commands) | (np.abs(commands) > self._largest)
        if not self._takes_nan:
            bad |= np.isnan(commands)
        for place in np.argwhere(bad)[:1]:
            bounds = "finite" if self._largest == math.inf else f"within +-{self._largest:.4g}"
            whose = "".join(f" for drone_{row + 1}" for row in place[:-1])
            raise UserCodeError(
                f"{self._name}.step at {time_s:.3f} s returned {commands[tuple(place)]}{whose} "
                f"in column {place[-1]}; must be {bounds}"
            )

    @property
    def _name(self) -> str:
        kind = type(self._controller)
        return f"{file_of(kind)}: {kind.__name__}"


CONTROLLERS: Registry[Any] = Registry(
    "controller",
    "musls.controllers",
    {
        "agents": "musls_control.agents.team:AgentsSpec",
        "learned": "musls_control.controllers.learned:LearnedSpec",
        "nmpc": "musls_control.controllers.nmpc.controller:NmpcSpec",
        "payload": "musls_control.controllers.payload.controller:PayloadSpec",
        "pid": "musls_control.controllers.pid:PidSpec",
        "rotortm": "musls_control.controllers.rotortm:RotorTmSpec",
        "hover_policy": "musls_control.controllers.learned:HoverPolicy",
        "track_policy": "musls_control.controllers.learned:TrackPolicy",
        "transport_policy": "musls_control.controllers.learned:TransportPolicy",
    },
    requires("build"),
)
"""Specifications by kind: classes made with `spec` that have `kind` and `build(setup)`."""

AnyController = Annotated[Any, AnyOf(CONTROLLERS)]
"""Type of a scenario's `controller` key."""


@CONTROLLERS.register("formation")
@spec
class FormationSpec:
    """Drones fly to their places in the formation round the load's set-point, without feedback.

    Attributes:
        kind: "formation".
    """

    kind: Literal["formation"] = "formation"

    def build(self, setup: ControlSetup) -> None:
        """No controller of its own: the mission's drone set-points go to the autopilot."""


@CONTROLLERS.register("open_loop")
@spec
class OpenLoopSpec:
    """Constant thrust and moment on each drone, without rotors and without control.

    Attributes:
        kind: "open_loop".
        thrust_n: Thrust along each drone's z axis, (n_drones,).
        moment_body_nm: Moment on each drone in its frame, (n_drones, 3) [N m].
    """

    kind: Literal["open_loop"] = "open_loop"
    thrust_n: tuple[Finite, ...]
    moment_body_nm: tuple[Vector3, ...] | None = None

    def build(self, setup: ControlSetup) -> Controller:
        """Make the controller."""
        n = setup.system.n_drones
        moments = self.moment_body_nm or ((0.0, 0.0, 0.0),) * n
        for name, rows in (("thrust_n", self.thrust_n), ("moment_body_nm", moments)):
            if len(rows) != n:
                raise ConfigError(f"controller.{name} has {len(rows)} entries for {n} drones")
        return _OpenLoop(np.column_stack([self.thrust_n, moments]))


class _OpenLoop(Controller):
    """Returns the same commands for ever."""

    level = ControlLevel.IDEAL_THRUST_MOMENT

    def __init__(self, commands: Array) -> None:
        self._commands = commands

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Thrust and moments, (n, 4)."""
        return self._commands


@CONTROLLERS.register("python")
@spec
class PythonSpec(OwnClass):
    """Your own controller class."""

    def build(self, setup: ControlSetup) -> Controller:
        """Load the class and make the controller."""
        controller: Controller = self.make(Controller, "controller")
        return controller


__all__ = ["CONTROLLERS", "AnyController", "ControlLevel", "ControlSetup", "Controller"]
