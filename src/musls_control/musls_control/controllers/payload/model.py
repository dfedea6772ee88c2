"""Model of the payload controller: one rigid load, massless cables, drones.

Half of a cable's mass counts to the load, as a point mass at the attachment, and half to the drone:
a straight uniform cable at rest pulls at both ends as these two point masses do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from musls_control.controllers import ControlSetup
from musls_control.controllers.payload.allocation import places_of
from musls_control.controllers.payload.cable_law import CABLE
from musls_control.px4.allocation import gains as px4_gains
from musls_control.px4.allocation import rotor_lag_s
from musls_control.px4.parameters import PX4_PARAMETERS
from musls_description.config.errors import ConfigError
from musls_description.config.schema import NonNegative, Positive, spec
from musls_description.numerics.arrays import Array, Records, grasp_matrix, joined
from musls_description.numerics.rotations import from_yaw, rotate
from musls_description.system.slung_system import SlungLoadSystem

# ---------- Gains of the payload controller: as the scenario sets them, or derived from the system

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

LONG_CABLE_M = 3.0
"""Cable length above which the law is slower, by the root of the length: drones would have to
accelerate by the length times the squared frequency of the cables' directions."""

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


def attitude_lag_s(system: SlungLoadSystem, gravity_m_s2: float, direct: bool) -> float:
    """Lag of the thrust direction of the slowest drone [s].

    `direct`: with our own attitude control, else with PX4's.
    """
    if direct:
        return max(DIRECT_LAG * rotor_lag_s(drone) for drone in system.drones)
    default = PX4_PARAMETERS["MC_ROLL_P"].default
    gains = [px4_gains(drone, gravity_m_s2) for drone in system.drones]
    return max(1.0 / own.get("MC_ROLL_P", default) for own in gains)


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
        system, n = setup.slung, setup.slung.n_drones
        load, self.gravity_m_s2 = system.load, setup.gravity_m_s2
        if load.point_mass:
            raise ConfigError(
                "this controller needs load.inertia_kg_m2, since it controls the load's attitude, "
                f"but the load of {system.name} is a point mass"
            )
        arms = np.array(load.cable_attachments_m, np.float64)
        halves = np.array([0.5 * cable.mass_kg for cable in system.cables])
        masses, inertias = np.array([load.mass_kg, *halves]), np.zeros((1 + n, 3, 3))
        inertias[0] = load.inertia_kg_m2
        places = np.vstack([np.zeros(3), arms])
        self.mass_kg, self.inertia_kg_m2, (own, *ends) = joined(masses, inertias, places)
        self._center, self.attachments_m = -own, np.array(ends)
        self.drone_mass_kg = np.array([drone.mass_kg for drone in system.drones]) + halves
        self.hooks_m = np.array([drone.cable_attachment_m for drone in system.drones], np.float64)
        self.lengths_m = np.array([cable.length_m for cable in system.cables])
        self.formation_m = setup.formation.offsets_m(n)
        self.yaws_rad = setup.formation.azimuths_rad(n) + np.pi
        self.level_hooks_m = rotate(from_yaw(self.yaws_rad), self.hooks_m)
        self.resting_n = self._resting_forces()

    def cables(self, gains: GainSpec, least_tension_n: float, reach_m_s2: float) -> Records:
        """The cables for the compiled law, (n,) of `CABLE`."""
        cables = np.zeros(len(self.attachments_m), CABLE)
        cables["attachment"], cables["hook"] = self.attachments_m, self.hooks_m
        cables["drone_mass"], cables["yaw"] = self.drone_mass_kg, self.yaws_rad
        cables["direction_gain"] = gains.cable_direction_1_s2
        cables["rate_gain"] = gains.cable_rate_1_s
        cables["least_tension"] = least_tension_n
        # Where the yaw's rate jumps, drones on long cables are soon far from their places: what
        # turns the cables there leaves them the thrust that holds the load.
        cables["most_across"] = reach_m_s2 * np.maximum(1.0, 2.0 * LONG_CABLE_M / self.lengths_m)
        return cables

    def places(self, apart_m: float) -> Array:
        """Table of the drones' places at least so far apart, see `places_of`."""
        bases_m = self.attachments_m - self.level_hooks_m
        return places_of(bases_m, self.lengths_m, self.formation_m - self._center, apart_m)

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

    # Squared natural frequencies of the system by itself

    @property
    def swing_1_s2(self) -> float:
        """Squared frequency of the shortest cable's swing, load against drones."""
        share = self.mass_kg / float(self.drone_mass_kg.sum())
        return self.gravity_m_s2 / float(self.lengths_m.min()) * (1.0 + share)

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
    def yaw_1_s2(self) -> float:
        """Squared frequency of the yaw under the resting forces, while the drones stay in place."""
        moment = float(np.sum(self.attachments_m[:, :2] * self.resting_n[:, :2]))
        return max(moment, 0.0) / float(self.inertia_kg_m2[2, 2])


def derive_gains(
    given: GainSpec, system: SlungLoadSystem, model: PayloadModel, *, direct: bool, spread: bool
) -> GainSpec:
    """Fill in what is not given.

    `direct`: with our own attitude control, else with PX4's. `spread`: the resting forces are kept
    as far as possible; they turn with the load, so as much gain as the cables' own stiffness in yaw
    means that a load that turns does not move the drones.
    """
    lag_s = max(rotor_lag_s(drone) for drone in system.drones)
    turn_s = attitude_lag_s(system, model.gravity_m_s2, direct)
    length_m = max(cable.length_m for cable in system.cables)
    speed = given.speed * min(1.0, np.sqrt(LONG_CABLE_M / length_m))
    cable = speed * min(CABLE_SHARE / turn_s, FASTEST_CABLE_RAD_S)
    slow = LOAD_SHARE * cable
    lift = speed * min(THRUST_SHARE / lag_s, FASTEST_LIFT_RAD_S)
    tilt = speed * min(THRUST_SHARE / lag_s, FASTEST_TILT_RAD_S)
    position, attitude = np.array([slow, slow, lift]), np.array([tilt, tilt, slow])
    passive = np.array([0.0, 0.0, PASSIVE_SHARE * model.yaw_1_s2 if spread else 0.0])
    # Spread cables hold the yaw more stiffly than drones can follow. What the cables' directions
    # then add by the yaw's rate arrives more than half a period late and drives the oscillation.
    damping = 2.0 * attitude
    damping[2] *= slow**2 / (slow**2 + passive[2])
    firm = np.maximum(attitude, [*model.tilt_1_s2 * lag_s, 0.0])
    # The law takes away what gravity does to cables and load, and puts its own stiffness there.
    # What it takes away comes late by T and leaves a damping W^2 T, so that a stiffness k turns the
    # cable at k / (2 w + W^2 T): small drones with slow rotors on short cables need more than w^2.
    stiffness = cable * max(cable, model.swing_1_s2 * turn_s)
    return filled(
        given,
        (position**2, 2.0 * position, INTEGRAL_SHARE * position**3),
        (attitude * firm + passive, damping, INTEGRAL_SHARE * attitude**3),
        cable_direction_1_s2=stiffness,
        cable_rate_1_s=2.0 * cable,
    )
