"""What the payload controller takes the system to be: one rigid load, massless cables, drones.

Half of a cable's mass counts to the load, as a point mass at the attachment, and half to the drone:
a straight uniform cable at rest pulls at both ends as these two point masses do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from musls_control.controllers.interface import ControlSetup
from musls_control.payload.allocation import wrench_matrix
from musls_control.payload.cable_law import CABLE
from musls_control.px4_cascade.allocation import gains as px4_gains
from musls_control.px4_cascade.allocation import rotor_lag_s
from musls_control.px4_cascade.parameters import PX4_PARAMETERS
from musls_description.schema import NonNegative, Positive, spec
from musls_description.system import SlungLoadSystem

# ---------- Gains of the payload controller: as the scenario sets them, or derived from the system

Array = NDArray[np.float64]
Records = NDArray[np.void]

Axes = tuple[NonNegative, NonNegative, NonNegative]

DIRECT_LAG = 5.3
"""Lag of the drones' attitude over the time constant of the rotors, with our own attitude control:
2 zeta / wn with zeta = 0.8 and wn = 0.3 over that time constant."""

CABLE_SHARE, LOAD_SHARE, THRUST_SHARE = 0.36, 0.5, 0.1
"""Natural frequency of the cables' directions times the lag of the drones' attitude, of the load's
horizontal motion and yaw over that of the cables, and of the load's height, roll and pitch times
the time constant of the rotors. Little is to spare: a fifth more of everything (`speed` 1.2) is
unstable for an x500 trio in harmonic motion with our own attitude control."""

FASTEST_CABLE_RAD_S, FASTEST_LIFT_RAD_S, FASTEST_TILT_RAD_S = 4.0, 2.5, 5.0
"""Upper limits of the natural frequencies, for motion capture with some noise and latency."""

LEAD_RATIO = 2.5
"""An autopilot's lag is made up for by (1 + T s) / (1 + T s / LEAD_RATIO). It halves the lag of the
tilt; 4 and more ask for more turning than the rate loops have."""

LARGEST_LEAD = 0.3
"""Largest tilt that this adds, as a slope."""

INTEGRAL_SHARE = 0.15
"""Gain of an integral over the cube of the loop's natural frequency."""

PASSIVE_SHARE = 0.6
"""Gain of the load's yaw over the stiffness that the cables give by themselves."""


# All gains are accelerations per error, so they hold for any mass. The chain is a cascade:
# attitude of the drones, direction of the cables, horizontal motion and yaw of the load; each
# loop is slower than the one inside it. Height, roll and pitch of the load are moved by the size
# of the thrust, which needs no turning of drones or cables, and may be as fast as the rotors
# allow.


@spec
class GainSpec:
    """Gains of the payload controller; what is left out is derived from the system.

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


@dataclass(frozen=True)
class Gains:
    """Gains that are all set.

    Attributes:
        position: Proportional, derivative and integral of the load's position, (3, 3).
        attitude: The same of its attitude, (3, 3).
        cable: Of direction and rate, (2,).
    """

    position: Array
    attitude: Array
    cable: tuple[float, float] = (0.0, 0.0)

    @staticmethod
    def of(
        given: GainSpec,
        position: Sequence[Array],
        attitude: Sequence[Array],
        cable: tuple[float, float] = (0.0, 0.0),
    ) -> Gains:
        """Take what is given, and what was derived for the rest."""

        def chosen(names: str, derived: Sequence[Array | float]) -> Array:
            own = [getattr(given, name) for name in names.split()]
            return np.array([d if o is None else o for o, d in zip(own, derived, strict=True)])

        direction, rate = chosen("cable_direction_1_s2 cable_rate_1_s", cable).tolist()
        return Gains(
            chosen("position_1_s2 velocity_1_s position_integral_1_s3", position),
            chosen("attitude_1_s2 rate_1_s attitude_integral_1_s3", attitude),
            (direction, rate),
        )


def attitude_lag_s(system: SlungLoadSystem, gravity_m_s2: float, direct: bool) -> float:
    """How late the thrust of the slowest drone takes a wanted direction [s].

    `direct`: with our own attitude control, else with PX4's.
    """
    if direct:
        return max(DIRECT_LAG * rotor_lag_s(drone) for drone in system.drones)
    default = PX4_PARAMETERS["MC_ROLL_P"].default
    gains = [px4_gains(drone, gravity_m_s2) for drone in system.drones]
    return max(1.0 / own.get("MC_ROLL_P", default) for own in gains)


def derive_gains(
    given: GainSpec,
    system: SlungLoadSystem,
    gravity_m_s2: float,
    *,
    direct: bool,
    yaw_stiffness_1_s2: float = 0.0,
    swing_1_s2: float = 0.0,
    tilt_1_s2: tuple[float, float] = (0.0, 0.0),
) -> Gains:
    """Fill in what is not given.

    `direct`: with our own attitude control, else with PX4's. `yaw_stiffness_1_s2` is the angular
    acceleration of the load per yaw error that the cables give by themselves while the drones stay
    in place. The allocation turns its forces with the load, so this much gain means that a load
    that turns does not move the drones. `swing_1_s2` is the squared natural frequency of the
    cables' swing by themselves, `tilt_1_s2` that of the load's roll and pitch, drones moved along.
    """
    lag_s = max(rotor_lag_s(drone) for drone in system.drones)
    turn_s = attitude_lag_s(system, gravity_m_s2, direct)
    cable = given.speed * min(CABLE_SHARE / turn_s, FASTEST_CABLE_RAD_S)
    slow = LOAD_SHARE * cable
    lift = given.speed * min(THRUST_SHARE / lag_s, FASTEST_LIFT_RAD_S)
    tilt = given.speed * min(THRUST_SHARE / lag_s, FASTEST_TILT_RAD_S)
    position, attitude = np.array([slow, slow, lift]), np.array([tilt, tilt, slow])
    passive = np.array([0.0, 0.0, PASSIVE_SHARE * yaw_stiffness_1_s2])
    # Spread cables hold the yaw more stiffly than drones can follow. What the cables' directions
    # then add by the yaw's rate arrives more than half a period late and drives the oscillation.
    damping = 2.0 * attitude
    damping[2] *= slow**2 / (slow**2 + passive[2])
    firm = np.maximum(attitude, [tilt_1_s2[0] * lag_s, tilt_1_s2[1] * lag_s, 0.0])
    # The law takes away what gravity does to cables and load, and puts its own stiffness there.
    # What it takes away comes late by T and leaves a damping W^2 T, so that a stiffness k turns the
    # cable at k / (2 w + W^2 T): small drones with slow rotors on short cables need more than w^2.
    stiffness = cable * max(cable, swing_1_s2 * turn_s)
    return Gains.of(
        given,
        (position**2, 2.0 * position, INTEGRAL_SHARE * position**3),
        (attitude * firm + passive, damping, INTEGRAL_SHARE * attitude**3),
        (stiffness, 2.0 * cable),
    )


_STRICT = 1e3
"""Weight of the balance of forces against small tensions."""


@dataclass(frozen=True)
class PayloadModel:
    """Numbers of a system.

    Attributes:
        mass_kg: Load with half of all cables.
        inertia_kg_m2: Of the same about its centre of mass, (3, 3).
        attachments_m: About that centre, load frame, (n, 3).
        drone_mass_kg: Drones with half of their cable, (n,).
        hooks_m: Attachments in the drones' frames, (n, 3).
    """

    mass_kg: float
    inertia_kg_m2: Array
    attachments_m: Array
    drone_mass_kg: Array
    hooks_m: Array

    @staticmethod
    def of(setup: ControlSetup) -> PayloadModel:
        """Read the system."""
        system = setup.system
        load = system.load
        arms = np.array(load.cable_attachments_m, np.float64)
        halves = np.array([0.5 * cable.mass_kg for cable in system.cables])
        mass = load.mass_kg + halves.sum()
        center = halves @ arms / mass
        inertia = np.array(load.inertia_kg_m2) + load.mass_kg * _steiner(center)
        for half, arm in zip(halves, arms, strict=True):
            inertia = inertia + half * _steiner(arm - center)
        drones = np.array([drone.mass_kg for drone in system.drones])
        hooks = np.array([drone.cable_attachment_m for drone in system.drones], np.float64)
        return PayloadModel(float(mass), inertia, arms - center, drones + halves, hooks)

    def cables(self, gains: Gains, least_tension_n: float, yaws_rad: Array) -> Records:
        """The cables for the compiled law, (n,) of `CABLE`; yaws for a load at yaw zero, (n,)."""
        cables = np.zeros(len(self.attachments_m), CABLE)
        cables["attachment"], cables["hook"] = self.attachments_m, self.hooks_m
        cables["drone_mass"], cables["yaw"] = self.drone_mass_kg, yaws_rad
        cables["direction_gain"], cables["rate_gain"] = gains.cable
        cables["least_tension"] = least_tension_n
        return cables

    def reach_m(self, setup: ControlSetup) -> tuple[Array, Array, Array]:
        """Where level drones can be, load frame, from the centre of mass of load and half cables.

        Returns:
            Places with cables of no length (n, 3), lengths of the cables (n,), and places in
            formation (n, 3).
        """
        n = len(self.attachments_m)
        center = np.array(setup.system.load.cable_attachments_m[0]) - self.attachments_m[0]
        yaw = setup.formation.azimuths_rad(n) + np.pi
        cos, sin = np.cos(yaw), np.sin(yaw)
        x, y, z = self.hooks_m.T
        hooks = np.column_stack([cos * x - sin * y, sin * x + cos * y, z])
        lengths = np.array([cable.length_m for cable in setup.system.cables])
        return self.attachments_m - hooks, lengths, setup.formation.offsets_m(n) - center

    def formation_forces_n(self, setup: ControlSetup) -> Array:
        """Cable forces that hold the level load at rest in formation, load frame, (n, 3)."""
        n = len(self.attachments_m)
        directions = setup.formation.offsets_m(n) - self.attachments_m
        directions -= np.where(np.arange(3) < 2, _outwards(setup, n) * self.hooks_m[:, :1], 0.0)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        effect = wrench_matrix(self.attachments_m).reshape(6, n, 3)
        matrix = np.einsum("cni,ni->cn", effect, directions)
        weight = np.array([0.0, 0.0, self.mass_kg * setup.gravity_m_s2, 0.0, 0.0, 0.0])
        scale = np.array([1.0] * 3 + [1.0 / max(np.abs(self.attachments_m).max(), 0.01)] * 3)
        # Of four and more cables many tensions fit: the smallest, which are even ones.
        rows = np.vstack([_STRICT * matrix * scale[:, None], np.eye(n)])
        tension, _ = nnls(rows, np.concatenate([_STRICT * weight * scale, np.zeros(n)]))
        forces: Array = tension[:, None] * directions
        return forces


def swing_1_s2(model: PayloadModel, setup: ControlSetup) -> float:
    """Squared natural frequency of the shortest cable's swing, load against drones."""
    length = min(cable.length_m for cable in setup.system.cables)
    share = model.mass_kg / float(model.drone_mass_kg.sum())
    return setup.gravity_m_s2 / length * (1.0 + share)


def tilt_1_s2(model: PayloadModel, forces_n: Array) -> tuple[float, float]:
    """Squared natural frequencies of roll and pitch under cable forces that keep their direction.

    Cable forces in the load's frame, (n, 3); drones above the load's attachments go up and down
    with it.
    """
    arms = model.attachments_m
    moved = np.einsum("n,ni->i", model.drone_mass_kg, arms[:, [1, 0]] ** 2)
    along = np.sum(arms * forces_n, axis=0)
    held = np.maximum([along[1] + along[2], along[0] + along[2]], 0.0)
    roll, pitch = held / (np.diag(model.inertia_kg_m2)[:2] + moved)
    return float(roll), float(pitch)


def yaw_stiffness_1_s2(model: PayloadModel, forces_n: Array) -> float:
    """Angular acceleration of the load per yaw, under cable forces that keep their direction.

    Cable forces in the load's frame, (n, 3).
    """
    moment = float(np.sum(model.attachments_m[:, :2] * forces_n[:, :2]))
    return max(moment, 0.0) / float(model.inertia_kg_m2[2, 2])


def _outwards(setup: ControlSetup, n: int) -> Array:
    """Horizontal direction from the load to each drone; drones look the other way, (n, 3)."""
    azimuth = setup.formation.azimuths_rad(n)
    return np.column_stack([np.cos(azimuth), np.sin(azimuth), np.zeros(n)])


def _steiner(arm: Array) -> Array:
    """Inertia of a unit point mass, (3, 3)."""
    inertia: Array = arm @ arm * np.eye(3) - np.outer(arm, arm)
    return inertia
