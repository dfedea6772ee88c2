"""Model of the payload controller: one rigid load, massless cables, drones.

Half of a cable's mass counts to the load, as a point mass at the attachment, and half to the drone:
a straight uniform cable at rest pulls at both ends as these two point masses do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from musls_control.chain import BANDWIDTH, DAMPING, tilting_rad_s
from musls_control.controllers import ControlSetup
from musls_control.controllers.payload.allocation import places_of
from musls_control.controllers.payload.cable_law import CABLE
from musls_control.controllers.payload.synthesis import (
    LIFT_SHARE,
    TILT_SHARE,
    Actuator,
    Complex,
    Hanging,
    LoopGains,
    Margins,
    Response,
    horizontal_gains,
    place_gains,
    yaw_gains,
)
from musls_control.px4.allocation import gains as px4_gains
from musls_control.px4.allocation import rotor_lag_s, torque_authority_rad_s2
from musls_control.px4.parameters import PX4_PARAMETERS
from musls_description.config.errors import ConfigError
from musls_description.config.schema import NonNegative, Positive, spec
from musls_description.numerics.arrays import Array, Records, grasp_matrix, joined
from musls_description.numerics.rotations import from_yaw, rotate
from musls_description.system.drone import Drone
from musls_description.system.slung_system import SlungLoadSystem

# ---------- Gains of the payload controller: as the scenario sets them, or derived from the system

Axes = tuple[NonNegative, NonNegative, NonNegative]

DIRECT_LAG = 2.0 * DAMPING / BANDWIDTH
"""Lag of the drones' attitude over the time constant of the rotors, with our own attitude
control."""

LEAD_RATIO = 2.5
"""The lag T of the drones' attitude is made up for by (1 + T s) / (1 + T s / LEAD_RATIO). It halves
the lag of the tilt; 4 and more ask for more turning than the rate loops have."""

LARGEST_LEAD = 0.3
"""Largest tilt that this adds, as a slope."""

INTEGRAL_SHARE = 0.15
"""Gain of an integral over the cube of the loop's natural frequency."""

TILT_RATIO = 1.5
BY_TENSION = 0.5
"""Natural frequency of roll and pitch of a narrow load, whose cables have to turn for a moment,
over the root of g over l, and the share that is added where they give it by their tensions. A load
tumbled at twice this frequency."""

LEVER_SHARE = 1e-3
"""Least radius of the attachments over that of the drones that turns a load."""


# All gains are accelerations per error, so they hold for any mass. Those of the cables' directions,
# the horizontal motion and the yaw follow from `synthesis`, as their loops turn the drones; height,
# roll and pitch of the load are moved by the size of the thrust, which needs no turning of drones
# or cables, and may be as fast as the rotors and the delay allow.


@spec
class GainSpec:
    """Gains of the payload controller; what is left out is derived from the system.

    With a `speed` other than 1 margins are those of gains that nobody has checked.

    Attributes:
        position_1_s2: Acceleration of the load per position error, world x, y, z.
        velocity_1_s: Acceleration of the load per velocity error.
        position_integral_1_s3: Acceleration of the load per integral of the position error.
        attitude_1_s2: Angular acceleration of the load per attitude error, load x, y, z.
        rate_1_s: Angular acceleration of the load per error of its body rate.
        attitude_integral_1_s3: Angular acceleration of the load per integral of the attitude error.
        cable_direction_1_s2: Angular acceleration of the cables per error of their direction.
        cable_rate_1_s: Angular acceleration of the cables per error of the direction's rate.
        speed: Factor on the natural frequencies of all gains that are derived.
    """

    position_1_s2: Axes | None = None
    velocity_1_s: Axes | None = None
    position_integral_1_s3: Axes | None = None
    attitude_1_s2: Axes | None = None
    rate_1_s: Axes | None = None
    attitude_integral_1_s3: Axes | None = None
    cable_direction_1_s2: Positive | None = None
    cable_rate_1_s: Positive | None = None
    speed: Positive = 1.0


POSITION = ("position_1_s2", "velocity_1_s", "position_integral_1_s3")
ATTITUDE = ("attitude_1_s2", "rate_1_s", "attitude_integral_1_s3")
"""Proportional, derivative and integral gains."""


def filled(
    given: GainSpec, position: Sequence[Array], attitude: Sequence[Array], **cable: float
) -> GainSpec:
    """Take what is given, and what was derived for the rest.

    `position` and `attitude` are proportional, derivative and integral gains, (3,) each.
    """
    derived = dict(zip(POSITION, map(np.ndarray.tolist, position), strict=True))
    derived |= zip(ATTITUDE, map(np.ndarray.tolist, attitude), strict=True)
    derived |= cable
    return replace(given, **{k: v for k, v in derived.items() if getattr(given, k) is None})


_BALANCE_WEIGHTS = np.repeat([1e3, 10.0], 3)
"""Weights of the balance of forces, and of moments, against small tensions. Where cables meet in a
point, small moments need very uneven tensions; the law's allocation corrects the rest."""


class PayloadModel:
    """Numbers of a system.

    Attributes:
        mass_kg: Load with half of all cables.
        inertia_kg_m2: Inertia of load and half cables about their centre of mass, (3, 3).
        attachments_m: Attachments about that centre, load frame, (n, 3).
        drone_mass_kg: Drones with half of their cable, (n,).
        hooks_m: Attachments in the drones' frames, (n, 3).
        level_hooks_m: Attachments of level drones in formation, load frame, (n, 3).
        formation_m: Places of the drones in formation, from the load's own centre of mass, load
            frame, (n, 3).
        yaws_rad: Yaws of the drones, which look at the load, for a load at yaw zero, (n,).
        lengths_m: Lengths of the cables, (n,).
        resting_n: Cable forces that hold the level load at rest in formation, load frame, (n, 3).
    """

    def __init__(self, setup: ControlSetup) -> None:
        system = setup.slung
        n = setup.slung.n_drones
        load = system.load
        self.gravity_m_s2 = setup.gravity_m_s2
        if load.point_mass:
            raise ConfigError(
                "this controller needs load.inertia_kg_m2, since it controls the load's attitude, "
                f"but the load of {system.name} is a point mass"
            )
        arms = np.array(load.cable_attachments_m, np.float64)
        halves = np.array([0.5 * cable.mass_kg for cable in system.cables])
        masses = np.array([load.mass_kg, *halves])
        inertias = np.zeros((1 + n, 3, 3))
        inertias[0] = load.inertia_kg_m2
        places = np.vstack([np.zeros(3), arms])
        self.mass_kg, self.inertia_kg_m2, (own, *ends) = joined(masses, inertias, places)
        self._center = -own
        self.attachments_m = np.array(ends)
        self.drone_mass_kg = np.array([drone.mass_kg for drone in system.drones]) + halves
        self.hooks_m = np.array([drone.cable_attachment_m for drone in system.drones], np.float64)
        self.lengths_m = np.array([cable.length_m for cable in system.cables])
        self.formation_m = setup.formation.offsets_m(n)
        self.yaws_rad = setup.headings_rad
        self.level_hooks_m = rotate(from_yaw(self.yaws_rad), self.hooks_m)
        self.resting_n = self._resting_forces()

    def cables(self, gains: GainSpec, least_tension_n: float) -> Records:
        """The cables for the compiled law, (n,) of `CABLE`."""
        cables = np.zeros(len(self.attachments_m), CABLE)
        cables["attachment"] = self.attachments_m
        cables["hook"] = self.hooks_m
        cables["drone_mass"] = self.drone_mass_kg
        cables["yaw"] = self.yaws_rad
        cables["direction_gain"] = gains.cable_direction_1_s2
        cables["rate_gain"] = gains.cable_rate_1_s
        cables["least_tension"] = least_tension_n
        return cables

    def places(self, apart_m: float) -> Array:
        """Table of the drones' places at least so far apart, see `places_of`."""
        bases_m = self.attachments_m - self.level_hooks_m
        return places_of(bases_m, self.lengths_m, self.formation_m - self._center, apart_m)

    @property
    def chords_m(self) -> Array:
        """Distances of the cables' ends in formation, (n,)."""
        ends = self.formation_m - self._center + self.level_hooks_m
        return np.asarray(np.linalg.norm(ends - self.attachments_m, axis=1))

    def _resting_forces(self) -> Array:
        n = len(self.attachments_m)
        directions = self.formation_m - self.attachments_m + self.level_hooks_m * [1.0, 1.0, 0.0]
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        effect = grasp_matrix(self.attachments_m).reshape(6, n, 3)
        matrix = np.einsum("cni,ni->cn", effect, directions)
        weight = np.array([0.0, 0.0, self.mass_kg * self.gravity_m_s2, 0.0, 0.0, 0.0])
        scale = np.array([1.0] * 3 + [1.0 / max(np.abs(self.attachments_m).max(), 0.01)] * 3)
        scale *= _BALANCE_WEIGHTS
        # Of four and more cables many tensions fit: the smallest, which are even ones.
        rows = np.vstack([matrix * scale[:, None], np.eye(n)])
        tension, _ = scipy.optimize.nnls(rows, np.concatenate([weight * scale, np.zeros(n)]))
        return np.asarray(tension[:, None] * directions)

    # The system by itself

    @property
    def hanging(self) -> Hanging:
        """Load and drones along a horizontal axis."""
        stiffness = self.gravity_m_s2 / float(self.lengths_m.mean())
        return Hanging(stiffness, stiffness * self.mass_kg / float(self.drone_mass_kg.sum()))

    def held(self, own_1_s2: float, upright_1_s2: float) -> tuple[tuple[Hanging, Hanging], Array]:
        """The load below drones that hold their places, softest and stiffest axis; its compliance.

        `own_1_s2` and `upright_1_s2` are the stiffness by which drones hold their places, over
        their mass. A push makes the load go aside and turn as far as the cables let it,
        (3, 3) [m/N]; that motion has the frequency of Rayleigh's quotient.
        """
        pull = np.maximum(np.linalg.norm(self.resting_n, axis=1), 1e-9)
        stiff = np.zeros((6, 6))
        ends = grasp_matrix(self.attachments_m).reshape(6, -1, 3)
        for k, arm in enumerate(self.attachments_m):
            # motion of an end by load and turn
            s = self.resting_n[k] / pull[k]
            end = ends[:, k].T
            across = np.eye(3) - np.outer(s, s)
            gives = (s[0] ** 2 + s[1] ** 2) / own_1_s2 + s[2] ** 2 / upright_1_s2
            along = self.drone_mass_kg[k] / gives
            stiff += end.T @ (pull[k] / self.lengths_m[k] * across + along * np.outer(s, s)) @ end
            bent = 0.5 * (np.outer(s, arm) + np.outer(arm, s)) - np.eye(3) * (s @ arm)
            stiff[3:, 3:] -= pull[k] * bent
        mass = scipy.linalg.block_diag(np.eye(3) * self.mass_kg, self.inertia_kg_m2)
        squares, modes = scipy.linalg.eigh(stiff, mass)
        held = squares > 1e-6 * squares[-1]  # of a ball, or on one cable, some turns are free
        answer = (modes[:, held] / squares[held]) @ modes[:2, held].T
        soft, axes = np.linalg.eigh(answer[:2])
        found = []
        for compliance, axis in zip(soft[::-1], axes.T[::-1], strict=True):
            shape = answer @ axis
            load_1_s2 = float(compliance / (shape @ mass @ shape))
            share = 1.0 / (compliance * float(self.drone_mass_kg.sum()))
            found.append(Hanging(load_1_s2, share))
        compliance_m_n = np.zeros((3, 3))
        compliance_m_n[:2, :2] = answer[:2]
        return (found[0], found[1]), compliance_m_n

    @property
    def moment_by_tension(self) -> Array:
        """Share of a moment about the x and y axis that cables give without turning, (2,)."""
        pull = self.resting_n / np.maximum(np.linalg.norm(self.resting_n, axis=1), 1e-9)[:, None]
        forces = np.cross(np.eye(3)[:2, None], self.attachments_m)
        size = np.maximum(np.sum(forces**2, axis=(1, 2)), 1e-12)
        return np.asarray(np.sum(np.sum(forces * pull, axis=2) ** 2, axis=1) / size)

    @property
    def tilting_rad_s(self) -> Array:
        """Largest natural frequencies of the law's roll and pitch, of flights tried, (2,).

        Cables that have to turn, to pull at a tilting load, do so no faster, the less the wider it
        is; tensions need not wait for that.
        """
        width = float(np.linalg.norm(self.attachments_m[:, :2], axis=1).max())
        slower = 1.0 + width / float(self.lengths_m.mean())
        faster = 1.0 + BY_TENSION * self.moment_by_tension
        return np.asarray(TILT_RATIO / slower * faster * np.sqrt(self.hanging.load_1_s2))

    @property
    def tilt_1_s2(self) -> Array:
        """Squared frequencies of roll and pitch under resting forces of fixed direction, (2,).

        Drones above the load's attachments go up and down with it.
        """
        arms = self.attachments_m
        moved = np.einsum("n,ni->i", self.drone_mass_kg, arms[:, [1, 0]] ** 2)
        along = np.sum(arms * self.resting_n, axis=0)
        held = np.maximum([along[1] + along[2], along[0] + along[2]], 0.0)
        return np.asarray(held / (np.diag(self.inertia_kg_m2)[:2] + moved))

    @property
    def turning(self) -> Hanging | None:
        """Load and drones about the vertical; None where cables cannot turn the load."""
        moment = float(np.sum(self.attachments_m[:, :2] * self.resting_n[:, :2]))
        pull = np.linalg.norm(self.resting_n, axis=1)
        mass = self.drone_mass_kg
        ends = self.attachments_m[:, :2] + self.lengths_m[:, None] * (
            self.resting_n[:, :2] / np.maximum(pull, 1e-9)[:, None]
        )
        near = np.linalg.norm(self.attachments_m[:, :2], axis=1)
        far = np.linalg.norm(ends, axis=1)
        moment = max(moment, 0.0) + float(np.sum(pull * near**2 / self.lengths_m))  # sum T r R / l
        if len(near) == 1 or near.max() < LEVER_SHARE * max(far.max(), self.lengths_m.max()):
            return None
        inertia = float(mass @ np.maximum(far, near) ** 2)
        return Hanging(
            moment / float(self.inertia_kg_m2[2, 2]),
            moment / inertia,
            counted=False,
            rate_share=1.0 - min(float(near.mean() / max(far.mean(), 1e-9)), 1.0),
        )


def turning_response(
    system: SlungLoadSystem, gravity_m_s2: float, *, direct: bool
) -> tuple[Response, float]:
    """Answer of the thrust direction of the slowest drone to commands with their lead, and its lag.

    The rate loops are those of `px4.allocation.gains`, or of `chain.GeometricAttitude`.
    """
    slowest = max(system.drones, key=lambda drone: _turn_lag_s(drone, gravity_m_s2, direct))
    rotors_s = rotor_lag_s(slowest)
    lag_s = _turn_lag_s(slowest, gravity_m_s2, direct)
    if direct:
        frequency = tilting_rad_s(system.drones)
        stiffness = frequency**2
        damping = 2.0 * DAMPING * frequency

        def turn(s: Complex) -> Complex:
            return np.asarray(stiffness / ((rotors_s * s + 1.0) * s**2 + damping * s + stiffness))
    else:
        gains = {name: PX4_PARAMETERS[name].default for name in _ROLL}
        gains |= px4_gains(slowest, gravity_m_s2)
        torque = float(torque_authority_rad_s2(slowest, gravity_m_s2)[:2].min())
        rate, derivative, angle = (gains[name] for name in _ROLL)

        def turn(s: Complex) -> Complex:
            loop = rotors_s * s**2 + (1.0 + torque * derivative) * s + torque * rate
            return np.asarray(torque * rate * angle / (s * loop + torque * rate * angle))

    def led(s: Complex) -> Complex:
        return np.asarray(turn(s) * (1.0 + lag_s * s) / (1.0 + lag_s / LEAD_RATIO * s))

    return led, lag_s


_ROLL = ("MC_ROLLRATE_P", "MC_ROLLRATE_D", "MC_ROLL_P")


def _turn_lag_s(drone: Drone, gravity_m_s2: float, direct: bool) -> float:
    if direct:
        return DIRECT_LAG * rotor_lag_s(drone)
    own = px4_gains(drone, gravity_m_s2)
    return 1.0 / own.get("MC_ROLL_P", PX4_PARAMETERS["MC_ROLL_P"].default)


def attitude_lag_s(system: SlungLoadSystem, gravity_m_s2: float, direct: bool) -> float:
    """Lag of the thrust direction of the slowest drone [s].

    `direct`: with our own attitude control, else with PX4's.
    """
    return max(_turn_lag_s(drone, gravity_m_s2, direct) for drone in system.drones)


@dataclass(frozen=True)
class Derived:
    """Gains of a system with what they were derived from.

    Attributes:
        gains: All gains.
        hangs: Load and drones along a horizontal axis; the softest one below drones in place.
        horizontal: Cables and horizontal motion.
        yaw: Yaw of the load; None where cables cannot turn it, or nothing but places is fed back.
        actuator: Answer of the drones.
        attitude_lag_s: Lag of the drones' attitude that the lead makes up for.
        compliance_m_n: Place of the load by a push below drones that hold their places, load
            frame, (3, 3); zero where the feedback is that of the cables' directions.
    """

    gains: GainSpec
    hangs: Hanging
    horizontal: LoopGains
    yaw: LoopGains | None
    actuator: Actuator
    attitude_lag_s: float
    compliance_m_n: Array

    @property
    def holds_places(self) -> bool:
        """Whether places of the drones are fed back: nothing then turns the load by itself."""
        return bool(self.compliance_m_n.any())

    @property
    def loops(self) -> dict[str, Margins]:
        """Margins by loop: of the load, and of drones against each other ("spread")."""
        found = {"horizontal": self.horizontal.load}
        if self.horizontal.spread is not None:
            found["spread"] = self.horizontal.spread
        if self.yaw is not None:
            found["yaw"] = self.yaw.load
        return found


def derive_gains(
    given: GainSpec, setup: ControlSetup, model: PayloadModel, *, direct: bool, places: bool
) -> Derived:
    """Fill in what is not given.

    `direct`: with our own attitude control, else with PX4's; `places`: feedback of places.
    """
    system = setup.slung
    rotors_s = max(rotor_lag_s(drone) for drone in system.drones)
    response, lag_s = turning_response(system, model.gravity_m_s2, direct=direct)
    delay_s = setup.latency_s + 0.5 * setup.period_s
    if not direct:
        delay_s += setup.setpoint_delay_s
    actuator = Actuator(response, delay_s)
    alone = system.n_drones == 1
    hangs = model.hanging
    across = horizontal_gains(hangs, actuator, alone=alone)
    turning = None if places else model.turning
    lift = LIFT_SHARE / (rotors_s + delay_s)
    compliance = np.zeros((3, 3))
    if places:
        own_1_s2 = across.direction_1_s2 - hangs.drone_1_s2
        axes, compliance = model.held(max(own_1_s2, 0.1 * hangs.load_1_s2), lift**2)
        hangs = axes[0]
        across = place_gains(axes, actuator, alone=alone)
    yaw = None if turning is None else yaw_gains(turning, actuator, across)
    tilt = np.minimum(model.tilting_rad_s, TILT_SHARE / (rotors_s + delay_s))
    slow = np.sqrt(across.position_1_s2)
    # Nothing turns a load whose yaw cables do not hold, and nothing is to drive it.
    of_yaw = (slow**2, 2.0 * slow) if yaw is None else (yaw.position_1_s2, yaw.velocity_1_s)
    speed = given.speed
    position = speed**2 * np.array([across.position_1_s2, across.position_1_s2, lift**2])
    velocity = speed * np.array([across.velocity_1_s, across.velocity_1_s, 2.0 * lift])
    firm = tilt * np.maximum(tilt, model.tilt_1_s2 * rotors_s)
    turns = np.array([*firm, of_yaw[0]]) * speed**2
    rates = np.array([*(2.0 * tilt), of_yaw[1]]) * speed
    integral = INTEGRAL_SHARE * np.array([*tilt, min(slow, np.sqrt(of_yaw[0]))]) ** 3
    gains = filled(
        given,
        (position, velocity, np.zeros(3)),
        (turns, rates, speed**3 * integral),
        cable_direction_1_s2=across.direction_1_s2 * speed**2,
        cable_rate_1_s=across.rate_1_s * speed,
    )
    return Derived(gains, hangs, across, yaw, actuator, lag_s, compliance)
