"""`payload`: geometric control of a load on cables, see `musls_control.payload`."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from musls_control.controllers.interface import Controller, ControlLevel, ControlSetup
from musls_control.estimate import Estimate
from musls_control.payload.actuation import PACKED, payload_step
from musls_control.payload.allocation import null_space_of, places_of, shares_of
from musls_control.payload.kernel import ALONG, LEAN, MEMORY_ROWS, PULL
from musls_control.payload.load_law import (
    GRAVITY,
    MASS,
    MOST_TURN,
    MOST_XY,
    MOST_Z,
    PERIOD,
    REACH_XY,
    REACH_Z,
)
from musls_control.payload.model import (
    LARGEST_LEAD,
    LEAD,
    GainSpec,
    PayloadModel,
    attitude_lag_s,
    derive_gains,
    swing_1_s2,
    tilt_1_s2,
    yaw_stiffness_1_s2,
)
from musls_control.payload.rods import Structure, rod_commands
from musls_control.reference import LoadReference
from musls_description.compiled_memory import pack
from musls_description.drone import tip_radius_m
from musls_description.errors import ConfigError
from musls_description.schema import NonNegative, Positive, spec
from musls_description.system import formation_of

Array = NDArray[np.float64]


class Output(str, Enum):
    """How the forces get to the rotors.

    Attributes:
        AUTOPILOT: As acceleration set-points to the autopilot, built-in or real PX4s.
        DIRECT: By our own attitude control and mixer, without an autopilot.
    """

    AUTOPILOT = "autopilot"
    DIRECT = "direct"


class Allocation(str, Enum):
    """Which of the many possible cable forces are asked for.

    Attributes:
        FORMATION: Those nearest to the forces of the formation at rest: the drones stay spread.
        MIN_NORM: The smallest: the cables hang as steeply as the load allows.
        QP: The smallest that keep all tensions above `least_tension_n` and the drones `apart_m`.
    """

    FORMATION = "formation"
    MIN_NORM = "min_norm"
    QP = "qp"


class FeedForward(str, Enum):
    """Source of rate and acceleration of the cables' desired directions.

    Attributes:
        NONE: Both are zero, as in the code of RotorTM's authors.
        REFERENCE: Jerk and snap of the reference.
        POSITION: The same, and the feedback of position and velocity.
        FULL: The same, and the feedback of the attitude: exact, errors vanish exponentially, but it
            needs drones that turn at once and a well known attitude of the load.
    """

    NONE = "none"
    REFERENCE = "reference"
    POSITION = "position"
    FULL = "full"


_AHEAD = {
    FeedForward.NONE: (0.0, 0.0, 0.0),
    FeedForward.REFERENCE: (1.0, 0.0, 0.0),
    FeedForward.POSITION: (1.0, 1.0, 0.0),
    FeedForward.FULL: (1.0, 1.0, 1.0),
}


_APART = 1.2
"""Least distance of two drones over the one at which their rotor tips can touch."""


@spec
class PayloadSpec:
    """Geometric control of the load by the forces of its cables, with feedback of the load.

    Attributes:
        kind: "payload".
        output: "autopilot" flies by acceleration set-points, "direct" without an autopilot.
        allocation: Which of the possible cable forces are asked for.
        gains: Gains; those that are left out are derived from the system.
        feed_forward: Source of rate and acceleration of the cables' desired directions.
        reach_m_s2: Largest acceleration by position and velocity errors, horizontal and vertical.
        integral_m_s2: Largest acceleration by the integral, horizontal and vertical.
        integral_rad_s2: Largest angular acceleration by the integral.
        least_tension_n: Smallest tension that every cable keeps; by default a tenth of its share of
            the load's weight.
        apart_m: Least distance of the centres of two drones with `qp`; default 1.2 times the one
            at which their rotor tips can touch.
    """

    kind: Literal["payload"] = "payload"
    output: Output = Output.AUTOPILOT
    allocation: Allocation = Allocation.FORMATION
    gains: GainSpec = Field(default_factory=GainSpec)
    feed_forward: FeedForward = FeedForward.REFERENCE
    reach_m_s2: tuple[Positive, Positive] = (3.0, 2.0)
    integral_m_s2: tuple[NonNegative, NonNegative] = (1.5, 2.0)
    integral_rad_s2: NonNegative = 10.0
    least_tension_n: NonNegative | None = None
    apart_m: NonNegative | None = None

    def build(self, setup: ControlSetup) -> Controller:
        """Make the controller.

        Raises:
            ConfigError: The system is no load that hangs below drones, a cable each, or rods are
                to be flown with what only cables have.
        """
        system = formation_of(setup.system, "controller.kind = payload")
        setup = replace(setup, system=system)
        if setup.rods:
            self._refuse_cables()
            return RodController(self, setup)
        return PayloadController(self, setup)

    def _refuse_cables(self) -> None:
        gains, usual = self.gains, PayloadSpec()
        wrong = [
            f"gains.{name}"
            for name in ("cable_direction_1_s2", "cable_rate_1_s")
            if getattr(gains, name) is not None
        ]
        wrong += [
            name
            for name in ("allocation", "least_tension_n", "apart_m")
            if getattr(self, name) != getattr(usual, name)
        ]
        if wrong:
            raise ConfigError(
                f"controller.{wrong[0]} is for cables, but cable_model: rigid_rods has none: "
                "leave it out"
            )
        if self.feed_forward not in (FeedForward.NONE, FeedForward.REFERENCE):
            raise ConfigError(
                f"controller.feed_forward = {self.feed_forward.value} is for cables; with "
                "cable_model: rigid_rods choose none or reference"
            )
        if self.output is not Output.DIRECT:
            raise ConfigError(
                "controller.output = autopilot cannot fly rigid rods: the autopilot of each drone "
                "knows only the inertia of this drone; choose controller.output: direct"
            )


class PayloadController(Controller):
    """Geometric controller of the load.

    Attributes:
        gains: Gains in use.
        shares: How a wrench is shared out to the cables, (3 n, 7).
    """

    level = ControlLevel.FORCES

    def __init__(self, given: PayloadSpec, setup: ControlSetup) -> None:
        """Read the system and derive what is not given."""
        direct = given.output is Output.DIRECT
        if not direct:
            self.level = ControlLevel.AUTOPILOT_FORCES  # type: ignore[misc]  # by the scenario
        system, gravity = setup.system, setup.gravity_m_s2
        n = system.n_drones
        model = PayloadModel.of(setup)
        preferred, stiffness = None, 0.0
        resting = model.formation_forces_n(setup)
        if given.allocation is Allocation.FORMATION:
            preferred = resting
            stiffness = yaw_stiffness_1_s2(model, preferred)
        self.gains = derive_gains(
            given.gains,
            system,
            gravity,
            direct=direct,
            yaw_stiffness_1_s2=stiffness,
            swing_1_s2=swing_1_s2(model, setup),
            tilt_1_s2=tilt_1_s2(model, resting),
        )
        share_n = model.mass_kg * gravity / n
        least = 0.1 * share_n if given.least_tension_n is None else given.least_tension_n
        null, places = np.zeros((3 * n, 0)), np.zeros((0, 4))
        if given.allocation is Allocation.QP and n > 1:
            null = null_space_of(model.attachments_m)
            self._apart_m = (
                _APART * 2.0 * max(map(tip_radius_m, system.drones))
                if given.apart_m is None
                else given.apart_m
            )
            places = places_of(*model.reach_m(setup), self._apart_m)
        self._least_n = least
        ahead = np.zeros(6)
        ahead[:3] = _AHEAD[given.feed_forward]
        if not direct:
            smoothing_s = attitude_lag_s(system, gravity, direct) / LEAD
            ahead[3] = setup.period_s / (smoothing_s + setup.period_s)
            ahead[4:] = LEAD - 1.0, LARGEST_LEAD
        arrays = {
            "table": _table(given, setup, model.mass_kg),
            "inertias": np.stack([model.inertia_kg_m2, np.linalg.inv(model.inertia_kg_m2)]),
            "gains": self.gains.load,
            "cables": model.cables(self.gains, least),
            "shares": shares_of(model.attachments_m, preferred),
            "null": null,
            "places": places,
            "room": np.zeros((len(places), 3 * n + null.shape[1] + 1)),
            "ahead": ahead,
            "integral": np.zeros(6),
            "memory": np.zeros((MEMORY_ROWS, n, 3)),
            "yaws": setup.formation.azimuths_rad(n) + np.pi,
            "commands": np.zeros((n, 7)),
        }
        self._x, self._layout, views = pack({name: arrays[name] for name in PACKED})
        self.shares, self._integral = views["shares"], views["integral"]
        self._memory, self._commands = views["memory"], views["commands"]
        self.happened: list[tuple[str, str]] = []
        self._gave_up = False
        self._level = LoadReference(np.zeros((5, 4))).tilt

    @property
    def cable_force_n(self) -> Array:
        """Force that each cable is to pull the load with, world, (n, 3); live."""
        force: Array = self._memory[PULL]
        return force

    @property
    def pull_n(self) -> Array:
        """The part of it along the present cables, (n, 3); live."""
        force: Array = self._memory[ALONG]
        return force

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Begin without integrals."""
        self._integral[:] = 0.0
        self._memory[LEAN] = 0.0

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Forces of the drones' rotors yaws, and moments against the cables', (n, 7)."""
        wanted = reference.derivatives
        if reference.tilt is not self._level:
            wanted = np.hstack([wanted, reference.tilt])
        kept = payload_step(estimate.data, wanted, self._x, self._layout)
        if not kept and not self._gave_up:
            self._gave_up = True
            self.happened.append(
                (
                    "allocation_infeasible",
                    f"no cable forces keep every tension above {self._least_n:.2f} N and the "
                    f"drones {self._apart_m:.2f} m apart: minimum norm while that is so",
                )
            )
        return self._commands


class RodController(Controller):
    """Geometric controller of a load on rigid rods, see `payload.rods`.

    Attributes:
        structure: The body that load and drones are; measured when it takes over.
        gains: Gains in use, (6, 3).
    """

    level = ControlLevel.THRUST_MOMENT
    structure: Structure
    gains: Array

    def __init__(self, given: PayloadSpec, setup: ControlSetup) -> None:
        """Keep what is known before the flight."""
        self._given, self._known = given, setup
        self._forward = 1.0 if given.feed_forward is FeedForward.REFERENCE else 0.0
        self._integral = np.zeros(6)
        self._commands = np.zeros((setup.system.n_drones, 4))

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Measure the structure, and begin without integrals."""
        setup = self._known
        self.structure = body = Structure.of(setup.system, estimate)
        self.gains = body.gains(self._given.gains, setup.system, setup.gravity_m_s2)
        self._table = _table(self._given, setup, body.mass_kg)
        self._inertias = np.stack([body.inertia_kg_m2, np.linalg.inv(body.inertia_kg_m2)])
        self._integral[:] = 0.0

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Thrusts and moments of the drones, (n, 4)."""
        rod_commands(
            estimate.data[0],
            reference.derivatives,
            self._table,
            self._inertias,
            self.gains,
            self.structure.load_m,
            self.structure.shares,
            self._forward,
            self._integral,
            self._commands,
        )
        return self._commands


def _table(given: PayloadSpec, setup: ControlSetup, mass_kg: float) -> Array:
    """The load's table of `load_law`, (8,)."""
    table = np.zeros(8)
    table[[MASS, GRAVITY, PERIOD]] = mass_kg, setup.gravity_m_s2, setup.period_s
    table[[REACH_XY, REACH_Z]] = given.reach_m_s2
    table[[MOST_XY, MOST_Z]] = given.integral_m_s2
    table[MOST_TURN] = given.integral_rad_s2
    return table
