"""`payload`: geometric control of a load on cables, see `musls_control.controllers.payload`."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from musls_control.controllers import (
    Controller,
    ControlLevel,
    ControlSetup,
    WatchedController,
    level_of,
    prepare_controller,
)
from musls_control.controllers.payload.allocation import givable_of, null_space_of, shares_of
from musls_control.controllers.payload.cable_law import LAYOUT, payload_step
from musls_control.controllers.payload.load_law import LOAD
from musls_control.controllers.payload.model import (
    ATTITUDE,
    LARGEST_LEAD,
    LEAD_RATIO,
    POSITION,
    GainSpec,
    PayloadModel,
    derive_gains,
)
from musls_control.controllers.payload.rods import Structure, rod_commands
from musls_control.controllers.payload.synthesis import observer_rate_1_s
from musls_control.estimate import Estimate
from musls_control.px4.allocation import rotor_lag_s
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError
from musls_description.config.schema import NonNegative, Positive, spec
from musls_description.hanging.rig_places import equivalent_formation
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.records import TiedToMemory
from musls_description.system.drone import tip_radius_m
from musls_description.system.slung_system import formation_of

Output = Literal["autopilot", "direct"]
"""Path of the forces to the rotors: as acceleration set-points to the autopilot, built-in or real
PX4s, or by our own attitude control and mixer."""

_AHEAD = {
    "none": (0.0, 0.0, 0.0),
    "reference": (1.0, 0.0, 0.0),
    "position": (1.0, 1.0, 0.0),
    "full": (1.0, 1.0, 1.0),
}
"""Share of reference, position feedback and attitude feedback, by `feed_forward`."""

THRUST_SHARE = 0.95
"""Largest thrust that is commanded over that of the rotors: some is left to turn the drones."""

LARGEST_TILT_RAD = 0.785
"""Largest tilt that is commanded, as PX4's own limit (MPC_TILTMAX_AIR)."""

MOST_GROWTH = 0.3
"""Largest growth of the push that places are shifted for, over the load's weight and times the root
of g over l: against a third of the weight they go in one of these times."""

_DISTANCE_FACTOR = 1.2
"""Least distance of two drones over the one at which their rotor tips can touch."""


@spec
class PayloadSpec:
    """Geometric control of the load by the forces of its cables, with feedback of the load.

    Attributes:
        kind: "payload".
        output: "autopilot" flies by acceleration set-points, "direct" without an autopilot.
        allocation: Choice among the cable forces that give the same wrench: "formation", those
            nearest to the forces of the formation at rest, so that the drones stay spread;
            "min_norm", the smallest: the cables hang as steeply as the load allows; "qp", the
            smallest that keep all tensions above `least_tension_n` and the drones `apart_m`.
        gains: Gains; those that are left out are derived from the system.
        feedback: Feedback beside the load's place: "places", those of the drones, so that
            the cables hold the load's attitude; "directions", those of the cables, with the load's
            attitude. By default "places", but "directions" with `autopilot.tracker: indi`, which
            takes away what the cables do by themselves, and for what only that law has:
            `feed_forward: position` and `full`, and gains of the attitude.
        feed_forward: Source of rate and acceleration of the cables' desired directions: "none",
            both are zero, as in the code of RotorTM's authors; "reference", jerk and snap of the
            reference; "position", the feedback of position and velocity too; "full", that of the
            attitude too: exact, errors vanish exponentially, but it needs drones that turn at once
            and a well known attitude of the load.
        reach_m_s2: Largest acceleration by position and velocity errors, horizontal and vertical;
            that of `feedback: places` is limited by the drones' tilt instead of the horizontal one.
        integral_m_s2: Largest acceleration by the integral, horizontal and vertical.
        integral_rad_s2: Largest angular acceleration by the integral.
        disturbance_1_s: Bandwidth of the observer of the forces that nobody knows (a push, wind, a
            heavier load, weak rotors); 0 for none; by default derived from the system.
        least_tension_n: Smallest tension that every cable keeps; by default a tenth of its share of
            the load's weight.
        apart_m: Least distance of the centres of two drones with `qp`; default 1.2 times the one
            at which their rotor tips can touch.
    """

    kind: Literal["payload"] = "payload"
    output: Output = "autopilot"
    allocation: Literal["formation", "min_norm", "qp"] = "formation"
    gains: GainSpec = Field(default_factory=GainSpec)
    feedback: Literal["places", "directions"] | None = None
    feed_forward: Literal["none", "reference", "position", "full"] = "reference"
    reach_m_s2: tuple[Positive, Positive] = (3.0, 2.0)
    integral_m_s2: tuple[NonNegative, NonNegative] = (1.5, 2.0)
    integral_rad_s2: NonNegative = 10.0
    disturbance_1_s: Annotated[float, Field(ge=0.0, le=10.0)] | None = None
    least_tension_n: NonNegative | None = None
    apart_m: NonNegative | None = None

    def build(self, setup: ControlSetup) -> Controller:
        """Make the controller."""
        setup = _formed(setup)
        if setup.rods:
            self._refuse_cables()
            return RodController(self, setup)
        return PayloadController(self, setup)

    def holds_places(self, setup: ControlSetup) -> bool:
        """Whether places of the drones are fed back.

        Raises:
            ConfigError: They are asked for with what only feedback of directions has.
        """
        turns = [name for name in ATTITUDE if getattr(self.gains, name) is not None]
        needs = [f"gains.{name}" for name in turns]
        if self.feed_forward in ("position", "full"):
            needs.append(f"feed_forward = {self.feed_forward}")
        if self.feedback is None:
            return not needs and not setup.incremental
        if self.feedback == "places" and needs:
            raise ConfigError(
                f"controller.{needs[0]} is for controller.feedback = directions, but it is places: "
                "leave out one of them"
            )
        return self.feedback == "places"

    def _refuse_cables(self) -> None:
        usual = PayloadSpec()
        cables = ("gains.cable_direction_1_s2", "gains.cable_rate_1_s", "least_tension_n")
        for name in (*cables, "allocation", "apart_m", "feedback"):
            if attrgetter(name)(self) != attrgetter(name)(usual):
                raise ConfigError(
                    f"controller.{name} is for cables, but cable_model: rigid_rods has none: "
                    "leave it out"
                )
        if self.feed_forward not in ("none", "reference"):
            raise ConfigError(
                f"controller.feed_forward = {self.feed_forward} is for cables; with "
                "cable_model: rigid_rods choose none or reference"
            )
        if self.output != "direct":
            raise ConfigError(
                "controller.output = autopilot cannot fly rigid rods: the autopilot of each drone "
                "knows only the inertia of this drone; choose controller.output: direct"
            )


def _formed(setup: ControlSetup) -> ControlSetup:
    """The setup with a load that drones carry in formation, of a rig with its equivalent."""
    what = "controller.kind = payload"
    system = setup.system
    if system.formation is not None:
        return replace(setup, system=formation_of(system, what))
    equivalent = equivalent_formation(system, what)
    if setup.formation.places_m is None:
        raise ConfigError(
            f"{what}: formation.places_m is missing: where the drones of {system.name} are round "
            "the load; a start on the ground or in the air finds them"
        )
    return replace(setup, system=equivalent, rig=system)


class PayloadController(TiedToMemory, Controller):
    """Geometric controller of the load.

    Attributes:
        gains: Gains in use.
        derived: Gains with their margins.
        shares: Shares of a wrench for the cables, (3 n, 7).
        holds_places: Whether the places of the drones are fed back, not the cables' directions.
        keeps_apart: Whether tensions and distances are kept.
        memory: All that the law works on, (words,), a `cable_law.LAW` first.
        commands: Commands of all drones that were computed last, (n, 10); they are overwritten.
    """

    level = ControlLevel.FORCES

    def __init__(self, given: PayloadSpec, setup: ControlSetup) -> None:
        direct = given.output == "direct"
        if not direct:
            self.level = ControlLevel.AUTOPILOT_FORCES  # type: ignore[misc]  # by the scenario
        system = setup.slung
        n = setup.slung.n_drones
        model = PayloadModel(setup)
        spread = given.allocation == "formation"
        by_places = given.holds_places(setup)
        self.holds_places = by_places
        self.keeps_apart = given.allocation == "qp" and n > 1
        self.derived = derive_gains(
            given.gains, setup, model, direct=direct, places=self.holds_places
        )
        self.gains = self.derived.gains
        self._least_n = given.least_tension_n
        if self._least_n is None:
            self._least_n = 0.1 * model.mass_kg * model.gravity_m_s2 / n
        null = np.zeros((0, 3 * n))
        places = np.zeros((0, 4))
        if self.keeps_apart:
            null = null_space_of(model.attachments_m)
            self._apart_m = given.apart_m
            if self._apart_m is None:
                self._apart_m = _DISTANCE_FACTOR * 2.0 * max(map(tip_radius_m, system.drones))
            places = model.places(self._apart_m)
        load = _load(given, setup, model.mass_kg, model.inertia_kg_m2, self.gains)
        cables = model.cables(self.gains, self._least_n)
        shares = shares_of(model.attachments_m, model.resting_n if spread else None)
        load["givable"] = givable_of(model.attachments_m, model.inertia_kg_m2)
        self._answer_late(given, setup, load, cables)
        if self.holds_places:
            self._hold_places(model, load, cables)
        weight_n = np.array([0.0, 0.0, model.mass_kg * model.gravity_m_s2, 0.0, 0.0, 0.0, 1.0])
        cables["resting"] = (shares @ weight_n).reshape(n, 3)
        weights = cables["resting"][:, 2]
        cables["share"] = weights / weights.sum()
        cables["most_thrust"] = [THRUST_SHARE * drone.max_thrust_n for drone in system.drones]
        cables["steepest"] = np.tan(LARGEST_TILT_RAD)
        cables["most_across"] = model.gravity_m_s2 * np.tan(LARGEST_TILT_RAD)
        self.memory, law = LAYOUT.build(
            {
                "load": load,
                "cables": cables,
                "shares": shares,
                "null": null,
                "places": places,
                "n_unknowns": 3 * n + len(null),
            }
        )
        self._load = law.load
        self._cables = law.cables
        self.shares = law.shares
        self.commands: Array = law.commands.view(np.float64).reshape(n, 10)
        self._reports: list[tuple[str, str]] = []
        self._gave_up = False

    def _answer_late(
        self, given: PayloadSpec, setup: ControlSetup, load: Records, cables: Records
    ) -> None:
        """Write what makes up for the lag of the drones, and what the observer needs."""
        derived = self.derived
        period_s = setup.period_s
        smoothing_s = derived.attitude_lag_s / LEAD_RATIO
        load["lead_share"] = period_s / (smoothing_s + period_s)
        load["lead_gain"] = LEAD_RATIO - 1.0
        load["lead_most"] = LARGEST_LEAD
        arriving_s = derived.actuator.delay_s - setup.latency_s
        if given.feed_forward == "reference":
            load["ahead_s"] = derived.actuator.turn_s + arriving_s
            load["latency_s"] = setup.latency_s
        rate = given.disturbance_1_s
        if rate is None:
            rate = observer_rate_1_s(derived.hangs, derived.actuator)
        load["most_growth"] = np.inf
        load["observer_rate"] = rate
        load["observes_drones"] = float(not setup.incremental)
        rotors_s = np.array([rotor_lag_s(drone) for drone in setup.slung.drones]) + arriving_s
        cables["lag_share"] = period_s / (period_s + rotors_s)
        load["late_share"] = period_s / (period_s + setup.latency_s)

    def _hold_places(self, model: PayloadModel, load: Records, cables: Records) -> None:
        """Write the gains of `places`."""
        hangs = self.derived.hangs
        direction = self.gains.cable_direction_1_s2
        assert direction
        load["holds_places"] = 1.0
        load["compliance"] = self.derived.compliance_m_n
        load["own"] = direction - hangs.drone_1_s2, self.gains.cable_rate_1_s
        load["through"] = (direction + hangs.load_1_s2) / hangs.load_1_s2
        weight_n = model.mass_kg * model.gravity_m_s2
        load["most_growth"] = MOST_GROWTH * weight_n * np.sqrt(hangs.load_1_s2)
        cables["chord"] = model.chords_m

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Begin without integrals, and with nothing observed."""
        self._load["position_integral"] = self._load["attitude_integral"] = 0.0
        self._load["observes"] = 0.0
        self._load["seen"]["disturbance"] = self._cables["seen"]["disturbance"] = 0.0
        self._cables["leans"] = 0.0

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Forces of the rotors, yaws, moments against the cables', forces counted on, (n, 10)."""
        return self.respond(estimate, reference.derivatives, reference.tilt, self.coming(reference))

    def coming(self, reference: LoadReference) -> Array:
        """Derivatives of a reference for the time when the drones will have answered, (5, 4).

        In whole periods from now, as compiled flights read it from a table.
        """
        if reference.whole is None:
            return reference.derivatives
        period_s = self._load["period"]
        ahead_s = np.round(self._load["ahead_s"] / period_s) * period_s
        coming: Array = reference.coming(ahead_s)[0][0]
        return coming

    def respond(self, estimate: Estimate, present: Array, tilt: Array, coming: Array) -> Array:
        """Commands as of `step`, for derivatives of the reference, see `LoadReference`, `coming`.

        They are written into one memory at each call.
        """
        payload_step(self.memory.ctypes.data, estimate.records, present, tilt, coming)
        return self.commands

    @property
    def learned(self) -> tuple[Array, ...]:
        """What the law has added up of the load, (3,) each, to be read or written.

        Integrals of the errors of position and attitude; momentum of the observer, what it finds
        missing, and where the low-pass of its derivative is.
        """
        load = self._load[0]
        seen = load["seen"]
        integrals = load["position_integral"], load["attitude_integral"]
        return *integrals, seen["momentum"], seen["missing"], load["settled"]

    def numbers(self) -> dict[str, float]:
        """Gains with the margins of their loops, and how often drones had to be spared."""
        gains = self.gains
        derived = self.derived
        assert gains.position_1_s2 and gains.velocity_1_s and gains.attitude_1_s2 and gains.rate_1_s
        assert gains.cable_direction_1_s2 and gains.cable_rate_1_s
        found = {
            "cable_direction_1_s2": gains.cable_direction_1_s2,
            "cable_rate_1_s": gains.cable_rate_1_s,
            "horizontal_1_s2": gains.position_1_s2[0],
            "horizontal_1_s": gains.velocity_1_s[0],
            "height_1_s2": gains.position_1_s2[2],
            "observer_1_s": float(self._load["observer_rate"][0]),
            "lag_ms": 1e3 * derived.actuator.lag_s,
        }
        if not derived.holds_places:
            found["roll_1_s2"], _, found["yaw_1_s2"] = gains.attitude_1_s2
            found["yaw_1_s"] = gains.rate_1_s[2]
        for name, loop in derived.loops.items():
            found |= {f"{name}_{key}": value for key, value in loop.numbers.items()}
        calls = float(self._load["calls"][0])
        found["saturated_share"] = float(self._load["saturated"][0]) / max(calls, 1.0)
        return found

    @property
    def happened(self) -> list[tuple[str, str]]:
        """Reports, emptied by their reader; compiled flights only fill the law's memory."""
        if self._load["unkept"].any() and not self._gave_up:
            self._gave_up = True
            self._reports.append(
                (
                    "allocation_infeasible",
                    f"no cable forces keep every tension above {self._least_n:.2f} N and the "
                    f"drones {self._apart_m:.2f} m apart: minimum norm while that is so",
                )
            )
        return self._reports


class RodController(Controller):
    """Geometric controller of a load on rigid rods, see `payload.rods`.

    Attributes:
        structure: The body that load and drones are; measured when it takes over.
        gains: Gains in use.
        load: Inputs of the law, a record of `LOAD`.
    """

    level = ControlLevel.THRUST_MOMENT
    structure: Structure
    gains: GainSpec
    load: np.void

    def __init__(self, given: PayloadSpec, setup: ControlSetup) -> None:
        self._given = given
        self._known = setup
        self._commands = np.zeros((setup.slung.n_drones, 4))

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Measure the structure, and begin without integrals."""
        setup = self._known
        self.structure = body = Structure.of(setup.slung, estimate)
        self.gains = body.gains(self._given.gains, setup.slung, setup.gravity_m_s2)
        self.load = _load(self._given, setup, body.mass_kg, body.inertia_kg_m2, self.gains)[0]
        self.load["place"] = body.load_m

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Thrusts and moments of the drones, (n, 4)."""
        rod_commands(
            self.load,
            estimate.records[0],
            reference.derivatives,
            self.structure.shares,
            self._commands,
        )
        return self._commands


def _load(
    given: PayloadSpec, setup: ControlSetup, mass_kg: float, inertia_kg_m2: Array, gains: GainSpec
) -> NDArray[np.void]:
    """The load for the compiled laws, (1,) of `LOAD`."""
    found = np.zeros(1, LOAD)
    load = found[0]
    load["mass"] = mass_kg
    load["gravity"] = setup.gravity_m_s2
    load["period"] = setup.period_s
    load["inertia"] = inertia_kg_m2
    load["inverse_inertia"] = np.linalg.inv(inertia_kg_m2)
    for gain, names in (("position_gains", POSITION), ("attitude_gains", ATTITUDE)):
        load[gain] = tuple(getattr(gains, name) for name in names)
    load["reach"] = given.reach_m_s2
    load["integral_turn"] = given.integral_rad_s2
    level, upright = given.integral_m_s2
    load["integral_reach"] = level, level, upright
    for name, share in zip(
        ("reference", "position", "attitude"), _AHEAD[given.feed_forward], strict=True
    ):
        load[f"feed_{name}"] = share
    return found


# ---------- Controllers that ask for the load's acceleration


def flying_controller(controller: Controller, setup: ControlSetup) -> Controller:
    """Prepare a controller; what flies for one of level `load_acceleration` is a whole chain."""
    prepare_controller(controller, setup)
    if level_of(controller) is ControlLevel.LOAD_ACCELERATION:
        return LoadAcceleration(controller, setup)
    return controller


class LoadAcceleration(Controller):
    """Brings the acceleration that a controller asks of the load onto the cables.

    The load's law of `payload` (Sreenath and Kumar, the thesis of paper 000, see there) gets a
    reference that is where the load is and moves as it moves, with this acceleration: then all its
    feedback of position is zero. It keeps the attitude of the mission's reference.
    """

    def __init__(self, asking: Controller, setup: ControlSetup) -> None:
        spec = PayloadSpec(
            feedback="directions",
            output="direct" if setup.rods else "autopilot",
            integral_m_s2=(0.0, 0.0),
            disturbance_1_s=0.0,
        )
        self._asking = asking
        self._payload = spec.build(setup)
        self.level = self._payload.level  # type: ignore[misc]  # by the scenario
        self.keeps_headings = bool(getattr(asking, "keeps_headings", False))  # type: ignore[misc]
        self._watched = WatchedController(asking, ((3,), (4,)))

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Start the controller and the distribution of its forces."""
        self._watched.start(time_s, estimate)
        self._payload.start(time_s, estimate)

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Commands of `payload` for the acceleration, and the yaw, that are asked for."""
        asked = self._watched.step(time_s, reference, estimate)
        derivatives = np.zeros_like(reference.derivatives)
        derivatives[:, 3] = reference.derivatives[:, 3]
        derivatives[0, :3] = estimate.position_enu_m[0]
        derivatives[1, :3] = estimate.velocity_enu_m_s[0]
        derivatives[2, :3] = asked[:3]
        if len(asked) == 4:
            derivatives[:, 3] = asked[3], 0.0, 0.0, 0.0, 0.0
        return self._payload.step(time_s, LoadReference(derivatives, reference.tilt), estimate)

    def numbers(self) -> dict[str, float]:
        """Figures of the controller that asks."""
        return self._asking.numbers()

    @property
    def happened(self) -> list[tuple[str, str]]:
        """Reports of the controller that asks."""
        return self._asking.happened
