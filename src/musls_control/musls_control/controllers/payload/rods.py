"""Control of a load on rigid rods: load and drones are one body, flown like a large multicopter.

With x, v, R, W of the load, p its place from the centre of mass of the whole, m and J of the whole:

    A = a_d + g e3 + Kp e_x + Kd e_v + Ki int e_x - R (W_d' x p + W_d x (W_d x p))
    f = m A . R e3
    M = J (Q W_d' - W x Q W_d + K_R e_R + K_W e_W + K_I int e_R) + W x J W

R_d has its z axis along A and looks along the wanted yaw; W_d and W_d' follow from jerk and snap of
the reference; errors are those of `load_law`. RotorTM (IEEE T-RO 2023, eq. 24 and 74) takes the
wanted attitude of the reference instead of R_d, which an underactuated structure cannot have, and
leaves the feed-forward and the transfer between load and centre of mass out.

Thrusts and moments of the drones give f and M with the least squares of the rotors' thrusts, each
over its largest one: the paper's weights are numbers for one kind of drone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from musls_control.chain import desired_axes, reference_rates
from musls_control.controllers.payload.load_law import (
    attitude_errors,
    feed_back,
    gyroscopic,
    integrate,
    respond,
)
from musls_control.controllers.payload.model import (
    DIRECT_LAG,
    INTEGRAL_SHARE,
    GainSpec,
    filled,
)
from musls_control.estimate import Estimate
from musls_control.px4.allocation import rotor_lag_s
from musls_description.numerics.arrays import Array, joined
from musls_description.numerics.compiled import compiled
from musls_description.numerics.rotations import matrix_to_body
from musls_description.numerics.vectors import (
    add,
    body_axes_in_world,
    column,
    cross,
    dot,
    put,
    rotate,
    scale,
    sub,
    write_matrix,
)
from musls_description.system.drone import Drone, thrust_limits_n, wrench_of_thrusts
from musls_description.system.slung_system import Load, SlungLoadSystem

BANDWIDTH = 0.3
DAMPING = 0.8
"""Natural frequency of the attitude times the time constant of the rotors, and its damping."""

CABLE_SHARE = 0.36
THRUST_SHARE = 0.1
"""Natural frequency of the horizontal motion times the lag of the drones' attitude, and of the
height times the time constant of the rotors."""

FASTEST_CABLE_RAD_S = 4.0
FASTEST_LIFT_RAD_S = 2.5
"""Upper limits of both, for motion capture with some noise and latency."""

LARGEST_ERROR_RAD = 0.3
"""Attitude error that the rotors can still answer in full, from hover."""


@dataclass(frozen=True)
class Structure:
    """Masses and effect of the drones of a rigid structure, in the axes of its load.

    Attributes:
        mass_kg: Total mass.
        inertia_kg_m2: Inertia about its centre of mass, (3, 3).
        load_m: The load's centre of mass from that of the whole, (3,).
        effect: Thrust along the load's z axis and moment about the centre of mass, per thrust and
            moment of each drone, (4, 4 n).
        shares: Thrusts and moments of the drones per thrust and moment of the whole, (4 n, 4).
    """

    mass_kg: float
    inertia_kg_m2: Array
    load_m: Array
    effect: Array
    shares: Array

    @staticmethod
    def of(system: SlungLoadSystem, estimate: Estimate) -> Structure:
        """Measure where the drones sit, and add everything up (eq. 24, with all terms)."""
        turn = matrix_to_body(estimate.orientation_wxyz)  # world to body
        place = (estimate.position_enu_m - estimate.position_enu_m[0]) @ turn[0].T
        parts: list[Load | Drone] = [system.load, *system.drones]
        beside = turn[0] @ np.swapaxes(turn, 1, 2)
        inertias = beside @ np.array([part.inertia_kg_m2 for part in parts]) @ turn @ turn[0].T
        mass, inertia, place = joined([part.mass_kg for part in parts], inertias, place)
        columns = []
        ease = []
        for drone, axes, r in zip(system.drones, beside[1:], place[1:], strict=True):
            up = axes[:, 2]
            column = np.zeros((4, 4))
            column[0, 0] = up[2]
            column[1:, 0] = np.cross(r, up)
            column[1:, 1:] = axes
            columns.append(column)
            weighed = wrench_of_thrusts(drone) * thrust_limits_n(drone)[1]
            ease.append(weighed @ weighed.T)  # inverse weights of thrust and moments
        effect = np.hstack(columns)
        weighted = np.vstack([w @ c.T for w, c in zip(ease, columns, strict=True)])
        shares = weighted @ np.linalg.inv(effect @ weighted)
        return Structure(mass, inertia, place[0], effect, shares)

    def reach_rad_s2(self, system: SlungLoadSystem, gravity_m_s2: float) -> Array:
        """Largest angular accelerations about the load's axes that hover leaves, (3,)."""
        reach = np.full(3, np.inf)
        per_moment = self.shares[:, 1:] @ np.diag(np.diag(self.inertia_kg_m2))
        hover = self.shares[:, 0] * self.mass_kg * gravity_m_s2
        for i, drone in enumerate(system.drones):
            back = np.linalg.pinv(wrench_of_thrusts(drone))
            rows = slice(4 * i, 4 * i + 4)
            least, most = thrust_limits_n(drone)
            now = back @ hover[rows]
            room = np.maximum(np.minimum(now - least, most - now), 0.1 * (most - least))
            change = np.abs(back @ per_moment[rows])
            reach = np.minimum(reach, (room[:, None] / np.maximum(change, 1e-12)).min(axis=0))
        return reach

    def gains(self, given: GainSpec, system: SlungLoadSystem, gravity_m_s2: float) -> GainSpec:
        """Gains; what is not given follows from the airframes."""
        lag_s = max(rotor_lag_s(drone) for drone in system.drones)
        fast = BANDWIDTH / lag_s
        limit = np.sqrt(self.reach_rad_s2(system, gravity_m_s2) / LARGEST_ERROR_RAD)
        attitude = given.speed * np.minimum(limit, [fast, fast, fast / 3.0])
        turn_s = DIRECT_LAG * BANDWIDTH / attitude[:2].min()  # 2 zeta / wn
        slow = given.speed * min(CABLE_SHARE / turn_s, FASTEST_CABLE_RAD_S)
        lift = given.speed * min(THRUST_SHARE / lag_s, FASTEST_LIFT_RAD_S)
        position = np.array([slow, slow, lift])
        return filled(
            given,
            (position**2, 2.0 * position, INTEGRAL_SHARE * position**3),
            (attitude**2, 2.0 * DAMPING * attitude, INTEGRAL_SHARE * attitude**3),
        )


@compiled()
def rod_commands(load, body, reference, shares, commands):
    """Write thrust and moment of all drones, (n, 4), from the motion of the load."""
    forward = load.feed_reference
    w = body.omega
    write_matrix(load.rotation, body_axes_in_world(body.attitude))
    feed_back(load, body, reference)
    pull = add(reference[2], (0.0, 0.0, load.gravity))
    jerk = scale(forward, reference[3])
    snap = scale(forward, reference[4])
    yaw = reference[0, 3], reference[1, 3], reference[2, 3]
    rate, turn = reference_rates(pull, jerk, snap, yaw)
    put(load.wanted_rates[0], rate)
    put(load.wanted_rates[1], turn)
    beside = add(cross(rate, cross(rate, load.place)), cross(turn, load.place))
    pull = add(pull, sub(load.feedback, rotate(load.rotation, beside)))
    desired_axes(load.wanted_rotation, pull, yaw[0], load.rotation)
    attitude_errors(load, body)
    asked = respond(load.attitude_gains, load.turn, load.spin, load.attitude_integral)
    moment = rotate(load.inertia, add(load.ahead, asked))
    moment = add(moment, gyroscopic(load.inertia, w, w, w, 0))
    integrate(load)
    lift = load.mass * dot(pull, column(load.rotation, 2))
    for i in range(commands.shape[0]):
        for k in range(4):
            share = shares[4 * i + k]
            commands[i, k] = share[0] * lift + dot(share[1:], moment)
