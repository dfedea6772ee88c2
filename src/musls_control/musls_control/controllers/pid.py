"""`pid`: cascaded PIDs keep drones in formation: height, sideways, roll, pitch, yaw of each.

The control of the delivery drone of 002 (eq. 56 to 58, fig. 15 and table 6 of that paper):

    thrust = m (g + PID(z_d - z)) / (cos(roll) cos(pitch))
    pitch_d = PID(x_d - x),   roll_d = -PID(y_d - y)               x forward, y left of the drone
    M = J (PID(roll_d - roll), PID(pitch_d - pitch), PID(yaw_d - yaw))

Signs: the table's gains of roll are negative. A positive roll does accelerate towards -y, but one
minus is enough, and it belongs to the reference of the roll; in the inner loop it would make the
attitude unstable. Added to the paper, which says nothing about it: the weight is fed forward, the
sideways errors are turned into the drone's heading (integrals too: a cable pulls forward, wherever
the formation turns), tilt and moments have limits, and no integral grows while its output is
limited and its error pushes on.

Table 6 of 002 gives newtons per rotor for its own drone of m = 10.0224 kg and J = (0.27, 0.26,
0.42) kg m2. The paper leaves open whether the height's output is meant per rotor; with one per
rotor a step overshoots by 16 %, else by 46 %. The defaults are the accelerations that follow:

    height          4 (28, 22, 18) / m
    sideways        (0.52, 0.037, 0.74)
    roll, pitch     4 a (3.93, 0.09, 15.68) / J,  4 a (3.93, 0.089, 15.68) / J,  a = 0.3517 m
    yaw             4 b (129.11, 81.29, 7.17) / J,  b = 0.0381 m (from the propeller's geometry)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from musls_control.autopilot import DroneSetpoints
from musls_control.controllers import Controller, ControlLevel, ControlSetup
from musls_control.estimate import BodyMotion, Estimate
from musls_control.reference import LoadReference
from musls_description.config.schema import NonNegative, Positive, spec
from musls_description.hanging.cone import drone_poses
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import matrix_to_body, roll_pitch_yaw, wrapped
from musls_description.system.drone import Drone, thrust_limits_n, wrench_of_thrusts
from musls_description.system.slung_system import formation_of

PROPORTIONAL, INTEGRAL, DERIVATIVE = range(3)
"""Columns of gains."""

HEIGHT, SIDEWAYS, ROLL, PITCH, YAW = range(5)
"""Rows of gains."""

TILT_LAG_S = 0.03
"""Lag of the wanted tilt that roll and pitch follow. These gains follow a tilt by its rate (P / D
is 0.25 rad/s), so every change of it needs a rate."""

MIN_COSINE = 0.5
"""Lower limit of cos(roll) cos(pitch), by which the thrust of a tilted drone is divided."""


def limits_of(drones: Sequence[Drone], hover_n: Array) -> tuple[Array, Array]:
    """Largest thrust, (n,), and moments, (n, 3), that rotors have left at hover's thrust, (n,)."""
    thrust, moments = [], []
    for drone, hover in zip(drones, hover_n, strict=True):
        inverse = np.linalg.pinv(wrench_of_thrusts(drone))
        _, most = thrust_limits_n(drone)
        share = inverse[:, 0] * hover
        room = np.maximum(np.minimum(share, most - share), 0.0)
        effort = np.maximum(np.abs(inverse[:, 1:]), 1e-12)
        thrust.append(most.sum())
        moments.append((room[:, None] / effort).min(axis=0))
    return np.array(thrust), np.array(moments)


class CascadedPid:
    """The six PIDs of all drones, as compiled code runs them.

    Attributes:
        integrals: Integrals of the errors forward, left, up, and of roll, pitch, yaw, (n, 6)
            [m s, rad s].
    """

    def __init__(
        self,
        gains: ArrayLike,
        mass_kg: ArrayLike,
        inertia_kg_m2: ArrayLike,
        limits: tuple[Array, Array],
        *,
        gravity_m_s2: float,
        period_s: float,
        largest_tilt_rad: float,
    ) -> None:
        """Take gains and drones.

        Rows of the gains, (5, 3): HEIGHT (accelerations per error), SIDEWAYS (tilt per error),
        ROLL, PITCH and YAW (angular accelerations per error); columns: proportion, integral and
        derivative. Masses, (n,), are all that a drone carries, its own included; inertias, (n, 3,
        3), are about the centres of mass; limits are those of `limits_of`.
        """
        self._gains = np.array(gains, np.float64)
        self._mass = np.array(mass_kg, np.float64)
        self._inertia = np.array(inertia_kg_m2, np.float64)
        self._gravity, self._period_s, self._tilt = gravity_m_s2, period_s, largest_tilt_rad
        self.integrals = np.zeros((len(self._mass), 6))
        self._most_thrust, most_moment = limits
        self._most_turn = most_moment / np.diagonal(self._inertia, axis1=1, axis2=2)
        self._most_rate = (self._most_turn[:, :2] / self._gains[ROLL:YAW, DERIVATIVE])[:, ::-1]
        self._lean_rad = np.zeros((len(self._mass), 2))

    def start(self, drones: BodyMotion, moment_n_m: ArrayLike = 0.0) -> None:
        """Take over as after a long hover: the integrals hold tilt and given moments, (n, 3).

        A drone that pulls at a cable leans in its place, and the cable turns it; these slow
        integrals would need a minute to find that.
        """
        self.integrals[:] = 0.0
        roll, pitch, _ = roll_pitch_yaw(drones.orientation_wxyz).T
        self._lean_rad = self._limited(np.stack([pitch, -roll], axis=1))
        gain = self._gains[SIDEWAYS, INTEGRAL]
        if gain > 0.0:
            self.integrals[:, :2] = self._lean_rad / gain
        moments = np.broadcast_to(np.asarray(moment_n_m, np.float64), (len(self._mass), 3))
        turns = np.linalg.solve(self._inertia, moments[:, :, None])[:, :, 0]
        gains = self._gains[ROLL : YAW + 1, INTEGRAL]
        turns = np.clip(turns, -self._most_turn, self._most_turn)
        self.integrals[:, 3:] = np.where(gains > 0.0, turns / np.maximum(gains, 1e-12), 0.0)

    def step(self, wanted: DroneSetpoints, drones: BodyMotion) -> Array:
        """Return thrust along the body's z axis and moment in the body's frame, (n, 4) [N, N m].

        Of the set-points place, velocity, yaw and yaw rate are followed.
        """
        angles = roll_pitch_yaw(drones.orientation_wxyz)
        gap = wanted.position_enu_m - drones.position_enu_m
        speed = wanted.velocity_enu_m_s - drones.velocity_enu_m_s
        thrust = self._thrust(gap[:, 2], speed[:, 2], angles)
        lean, lean_rate = self._lean(*(_turned(e[:, :2], angles[:, 2]) for e in (gap, speed)))
        asked = np.column_stack([-lean[:, 1], lean[:, 0], wanted.yaw_enu_rad])
        rate = np.column_stack([-lean_rate[:, 1], lean_rate[:, 0], wanted.yaw_rate_enu_rad_s])
        moment = self._moment(wrapped(asked - angles), rate - drones.omega_body_rad_s)
        return np.column_stack([thrust, moment])

    def _thrust(self, gap: Array, speed: Array, angles: Array) -> Array:
        gains, integral = self._gains[HEIGHT], self.integrals[:, 2]
        wanted = gains[PROPORTIONAL] * gap + gains[INTEGRAL] * integral + gains[DERIVATIVE] * speed
        cosine = np.maximum(np.cos(angles[:, 0]) * np.cos(angles[:, 1]), MIN_COSINE)
        asked = self._mass * (self._gravity + wanted) / cosine
        given: Array = np.clip(asked, 0.0, self._most_thrust)
        self._integrate(2, gap, (asked - given) * gap > 0.0)
        return given

    def _lean(self, gap: Array, speed: Array) -> tuple[Array, Array]:
        """Tilt forward and to the left to follow, and its rate, (n, 2) each."""
        p, i, d = self._gains[SIDEWAYS]
        asked = p * gap + i * self.integrals[:, :2] + d * speed
        wanted = self._limited(asked)
        pushes = np.sum((asked - wanted) * gap, axis=1, keepdims=True) > 0.0
        self._integrate(slice(0, 2), gap, pushes)
        rate = np.clip((wanted - self._lean_rad) / TILT_LAG_S, -self._most_rate, self._most_rate)
        self._lean_rad += self._period_s * rate
        return self._lean_rad, rate

    def _moment(self, gap: Array, rate: Array) -> Array:
        gains = self._gains[ROLL : YAW + 1]
        asked = gains[:, PROPORTIONAL] * gap + gains[:, DERIVATIVE] * rate
        asked += gains[:, INTEGRAL] * self.integrals[:, 3:]
        given = np.clip(asked, -self._most_turn, self._most_turn)
        self._integrate(slice(3, 6), gap, (asked - given) * gap > 0.0)
        moment: Array = np.einsum("nij,nj->ni", self._inertia, given)
        return moment

    def _limited(self, lean: Array) -> Array:
        """A tilt of at most the largest, (n, 2)."""
        size = np.linalg.norm(lean, axis=1, keepdims=True)
        limited: Array = lean * np.minimum(1.0, self._tilt / np.maximum(size, 1e-12))
        return limited

    def _integrate(self, columns: int | slice, gap: Array, pushes: NDArray[np.bool_]) -> None:
        """Advance integrals, except those whose output is limited and whose error pushes on."""
        self.integrals[:, columns] += np.where(pushes, 0.0, self._period_s * gap)


def _turned(vectors: Array, yaw_rad: Array) -> Array:
    """Horizontal world vectors as seen at a heading: forward and left, (n, 2)."""
    cos, sin = np.cos(yaw_rad), np.sin(yaw_rad)
    x, y = vectors.T
    return np.column_stack([cos * x + sin * y, cos * y - sin * x])


Pid = tuple[Positive, NonNegative, Positive]
"""Gains of proportion, integral and derivative."""

EARTH_M_S2 = 9.81


@spec
class PidSpec:
    """Cascaded PIDs of 002 keep the drones in their places, without feedback of the load.

    Each key holds the proportional, integral and derivative gain.

    Attributes:
        kind: "pid".
        height: Vertical acceleration per error [1/s2, 1/s3, 1/s].
        sideways: Tilt per error of the horizontal position [rad/m, rad/(m s), rad s/m].
        roll: Angular acceleration per error of the angle [1/s2, 1/s3, 1/s].
        pitch: Angular acceleration per error, as for roll.
        yaw: Angular acceleration per error, as for roll.
        largest_tilt_rad: Largest tilt (roll and pitch together) that is asked for.
    """

    kind: Literal["pid"] = "pid"
    height: Pid = (11.175, 8.780, 7.184)
    sideways: Pid = (0.52, 0.037, 0.74)
    roll: Pid = (20.48, 0.469, 81.70)
    pitch: Pid = (21.27, 0.482, 84.84)
    yaw: Pid = (46.86, 29.50, 2.602)
    largest_tilt_rad: Annotated[float, Field(gt=0.0, le=1.0)] = 0.6

    def __post_init__(self) -> None:
        """Refuse gains that no drone can fly with (Routh: P D > I for a mass and for a tilt)."""
        for name in ("height", "sideways", "roll", "pitch", "yaw"):
            p, i, d = getattr(self, name)
            tilts = EARTH_M_S2 if name == "sideways" else 1.0
            if p * d * tilts <= i:
                raise ValueError(
                    f"{name} = {[p, i, d]} is unstable on any drone: the integral's gain must be "
                    f"below {p * d * tilts:.4g}"
                )

    def build(self, setup: ControlSetup) -> Controller:
        """Make the controller."""
        return _FormationByPid(self, formation_of(setup.system, "controller.kind = pid").n_drones)


class _FormationByPid(Controller):
    """Every drone follows its place in the formation round the load's set-point."""

    level = ControlLevel.THRUST_MOMENT

    def __init__(self, given: PidSpec, n_drones: int) -> None:
        self._given, self._n = given, n_drones

    def prepare(self, setup: ControlSetup) -> None:
        super().prepare(setup)
        system, given = setup.slung, self._given
        mass = np.array([drone.mass_kg for drone in system.drones])
        hanging = system.load.mass_kg + sum(cable.mass_kg for cable in system.cables)
        mass = mass + hanging / self._n
        self._share_n = hanging / self._n * setup.gravity_m_s2
        self._attachments_m = np.array(system.load.cable_attachments_m)
        self._hooks_m = np.array([drone.cable_attachment_m for drone in system.drones])
        self._offsets_m = setup.formation.offsets_m(self._n)
        self._azimuths_rad = setup.formation.azimuths_rad(self._n)
        self._wanted = DroneSetpoints.zeros(self._n)
        self._pid = CascadedPid(
            [given.height, given.sideways, given.roll, given.pitch, given.yaw],
            mass,
            [drone.inertia_kg_m2 for drone in system.drones],
            limits_of(system.drones, mass * setup.gravity_m_s2),
            gravity_m_s2=setup.gravity_m_s2,
            period_s=setup.period_s,
            largest_tilt_rad=given.largest_tilt_rad,
        )

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Begin as after a long hover: with the present tilts, and moments against the cables'."""
        turn = matrix_to_body(estimate.orientation_wxyz)
        at_load = estimate.position_enu_m[0] + self._attachments_m @ turn[0]
        hooks = np.einsum("nij,ni->nj", turn[1:], self._hooks_m)
        along = at_load - estimate.position_enu_m[1:] - hooks
        along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-9)
        # No tension is measured yet: that of a load at rest, its weight shared evenly.
        tension_n = self._share_n / np.maximum(-along[:, 2:], MIN_COSINE)
        pull = np.einsum("nij,nj->ni", turn[1:], tension_n * along)
        self._pid.start(estimate.drones, -np.cross(self._hooks_m, pull))

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Thrust and moment of each drone, (n, 4); the formation turns with the load."""
        place, wanted = reference.position_enu_m, self._wanted
        positions, yaws = drone_poses(place, reference.yaw_rad, self._offsets_m, self._azimuths_rad)
        arms = positions - place
        across = np.column_stack([-arms[:, 1], arms[:, 0], np.zeros(self._n)])
        wanted.position_enu_m[:], wanted.yaw_enu_rad[:] = positions, yaws
        wanted.velocity_enu_m_s[:] = reference.velocity_enu_m_s + reference.yaw_rate_rad_s * across
        wanted.yaw_rate_enu_rad_s[:] = reference.yaw_rate_rad_s
        return self._pid.step(wanted, estimate.drones)
