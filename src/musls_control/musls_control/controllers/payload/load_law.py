"""Force and moment on the load with their first two derivatives, from its reference.

With x, v, R, W position, velocity, attitude and body rate of the load, Q = R^T R_d the attitude
error, e_R = 1/2 vee(Q - Q^T) and e_W = Q W_d - W (desired minus actual, so that every gain enters
with a plus; eq. 69, 70, 73 of G. Li, R. Ge, G. Loianno and others, "RotorTM", IEEE T-RO 2023, whose
(73) has the wrong sign):

    F = m (a_d + g e3 + Kp e_x + Kd e_v + Ki int e_x) - d
    M = J (Q W_d' - W x Q W_d + K_R e_R + K_W e_W + K_I int e_R) + W x J W

with the disturbance d of the `observer`. The derivatives need acceleration and jerk of the load.
They are not measured: they follow from the cable forces that act now. Gains are accelerations per
error, so that they hold for any mass.
"""

from __future__ import annotations

import math

import numpy as np

from musls_control.chain import attitude_error
from musls_control.controllers.payload.observer import OBSERVED
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    body_axes_in_world,
    conjugate,
    cross,
    elementwise,
    put,
    quaternion_product,
    rotate,
    rotate_back,
    scale,
    sub,
    write_matrix,
)

GAINS = np.dtype([("proportional", float, 3), ("derivative", float, 3), ("integral", float, 3)])

LOAD = np.dtype(
    [
        ("mass", float),
        ("inertia", float, (3, 3)),
        ("inverse_inertia", float, (3, 3)),
        ("givable", float, (3, 3)),  # part of an angular acceleration that cables can give
        ("gravity", float),
        ("period", float),
        ("place", float, 3),  # of the load in a rigid structure, from the centre of mass
        ("position_gains", GAINS),  # world x, y, z
        ("attitude_gains", GAINS),  # load x, y, z
        ("reach", float, 2),  # largest acceleration by the errors, horizontal and vertical,
        ("integral_reach", float, 3),  # by the integral, along x, y, z,
        ("integral_turn", float),  # and angular acceleration by it
        ("feed_reference", float),  # 1 or 0: of jerk and snap,
        ("feed_position", float),  # of the feedback of the position,
        ("feed_attitude", float),  # and of the attitude
        ("lead_gain", float),  # of `lead_tilt`: its time times the smoothing's rate, 0 for none,
        ("lead_share", float),  # share of a new tilt in the smoothed one,
        ("lead_most", float),  # and largest slope that is added
        ("ahead_s", float),  # time after which drones have answered,
        ("latency_s", float),  # by which the measured motion is late,
        ("gained", float, 3),  # and change of the velocity since then, by the reference
        ("unkept", float),  # 1 once tensions or distances could not be kept
        ("holds_places", float),  # 1 or 0: whether the feedback is that of `places`, with its gains
        ("own", float, 2),  # k_q - b and k_w,
        ("through", float),  # (k_q + c) / c,
        ("compliance", float, (3, 3)),  # of the load below drones at rest, load frame,
        ("shift", float, (2, 3)),  # shift of the places by the push, and its derivative, world,
        ("higher", float),  # how much lower the drones are than the load, from their places,
        ("rising", float),  # and its derivative
        ("calls", float),  # of the law so far,
        ("saturated", float),  # and those of them in which drones had to be spared
        ("observer_rate", float),  # K of the `observer`, 0 for none,
        ("observes_drones", float),  # 1 or 0: whether it looks at the drones, too,
        ("observes", float),  # 0 before the first call,
        ("late_share", float),  # share of a new pull in the one that the load's motion shows,
        ("pull", float, 3),  # this one,
        ("seen", OBSERVED),  # and its memory
        ("settled", float, 3),  # disturbance behind a low-pass,
        ("growth", float, 3),  # the derivative of the disturbance that follows from it,
        ("most_growth", float),  # and its largest size
        ("reference", float, (5, 4)),  # now, with the accelerations of the time of the answer
        ("rotation", float, (3, 3)),
        ("wanted_rotation", float, (3, 3)),
        ("wanted_rates", float, (4, 3)),  # body rate and its derivatives, wanted load frame
        ("gap", float, 3),  # errors of position and velocity,
        ("speed", float, 3),
        ("turn", float, 3),  # of attitude and body rate, load frame
        ("spin", float, 3),
        ("ahead", float, 3),  # angular acceleration that is to come anyway, its derivatives
        ("ahead_rate", float, 3),
        ("ahead_second", float, 3),
        ("position_integral", float, 3),
        ("attitude_integral", float, 3),
        ("feedback", float, 3),  # acceleration that the errors of the position ask for
        ("free", float, 3),  # 0 where it is limited
        ("acceleration", float, 3),  # that the cables' forces give
        ("jerk", float, 3),
        ("angular_acceleration", float, 3),
        ("angular_jerk", float, 3),
        ("wanted_turn", float, (3, 3)),  # angular acceleration to give, and its derivatives
        ("wrench", float, (3, 6)),  # force and moment to give, load frame, and their derivatives
    ]
)
"""The load as the law knows it: constants, gains, state and what a call finds."""


@compiled()
def respond(gains, error, rate, integral):
    """Return the acceleration that an error, its rate and its integral ask for."""
    return add(
        add(elementwise(gains.proportional, error), elementwise(gains.derivative, rate)),
        elementwise(gains.integral, integral),
    )


@compiled()
def attitude_errors(load, body):
    """Write the errors of attitude and rate and the angular acceleration that is to come anyway."""
    r = load.rotation
    r_d = load.wanted_rotation
    put(load.turn, attitude_error(r, r_d))
    spin = rotate_back(r, rotate(r_d, load.wanted_rates[0]))
    put(load.spin, sub(spin, body.omega))
    ahead = rotate_back(r, rotate(r_d, load.wanted_rates[1]))
    put(load.ahead, sub(ahead, cross(body.omega, spin)))
    put(load.ahead_rate, rotate_back(r, rotate(r_d, load.wanted_rates[2])))
    put(load.ahead_second, rotate_back(r, rotate(r_d, load.wanted_rates[3])))


@compiled()
def feed_back(load, body, reference):
    """Write the acceleration that position and velocity errors ask for, within its limits."""
    put(load.gap, sub(reference[0], body.position))
    put(load.speed, sub(reference[1], add(body.velocity, load.gained)))
    gains = load.position_gains
    free = load.free
    x, y, z = respond(gains, load.gap, load.speed, (0.0, 0.0, 0.0))
    put(free, (1.0, 1.0, 1.0))
    size = math.hypot(x, y)
    if size > load.reach[0]:
        x, y = x * load.reach[0] / size, y * load.reach[0] / size
        free[0] = free[1] = 0.0
    if abs(z) > load.reach[1]:
        z = math.copysign(load.reach[1], z)
        free[2] = 0.0
    put(load.feedback, add((x, y, z), elementwise(gains.integral, load.position_integral)))


@compiled()
def integrate(load):
    """Advance the integrals by one period, unless the feedback is limited; bounded."""
    for k in range(3):
        gain = load.position_gains.integral[k]
        most = load.integral_reach[k]
        if gain > 0.0:
            grown = load.position_integral[k] + load.free[k] * load.period * load.gap[k]
            load.position_integral[k] = min(max(grown, -most / gain), most / gain)
        gain = load.attitude_gains.integral[k]
        most = load.integral_turn
        if gain > 0.0:
            grown = load.attitude_integral[k] + load.free[2] * load.period * load.turn[k]
            load.attitude_integral[k] = min(max(grown, -most / gain), most / gain)


@compiled()
def planned(load, reference):
    """Return the acceleration that is asked of the load, with gravity added."""
    return add(add(reference[2], (0.0, 0.0, load.gravity)), load.feedback)


@compiled()
def demand(load, reference, order):
    """Return the force on the load and its angular acceleration, or a derivative of both."""
    gap = load.gap
    speed = load.speed
    turn = load.turn
    spin = load.spin
    slow = sub(reference[2], load.acceleration)
    lag = sub(load.ahead, load.angular_acceleration)
    if order == 0:
        asked = respond(load.attitude_gains, turn, spin, load.attitude_integral)
        force = sub(scale(load.mass, planned(load, reference)), load.seen.disturbance)
        return force, rotate(load.givable, add(load.ahead, asked))
    if order == 1:
        added = respond(load.position_gains, speed, slow, gap)
        asked = respond(load.attitude_gains, spin, lag, turn)
        ahead = load.ahead_rate
    else:
        jerk = sub(reference[3], load.jerk)
        late = sub(load.ahead_rate, load.angular_jerk)
        added = respond(load.position_gains, slow, jerk, speed)
        asked = respond(load.attitude_gains, lag, late, spin)
        ahead = load.ahead_second
    added = scale(load.feed_position, elementwise(load.free, added))
    force = scale(load.mass, add(reference[2 + order], added))
    if order == 1:
        force = sub(force, load.growth)
    return force, rotate(load.givable, add(ahead, scale(load.feed_attitude, asked)))


@compiled()
def gyroscopic(inertia, w, alpha, jerk, order):
    """Return the moment W x J W, or its first or second derivative."""
    turning = rotate(inertia, w)
    if order == 0:
        return cross(w, turning)
    growing = rotate(inertia, alpha)
    if order == 1:
        return add(cross(alpha, turning), cross(w, growing))
    ends = add(cross(jerk, turning), cross(w, rotate(inertia, jerk)))
    return add(ends, scale(2.0, cross(alpha, growing)))


# ---------- Attitude, body rate and its derivatives from Euler angles and theirs, exactly

# Angles and quaternions are truncated Taylor series in time, five coefficients each.


@compiled()
def attitude_reference(load, derivatives, tilt):
    """Write attitude and body rates of a reference, see `LoadReference`.

    Yaw, then pitch, then roll turn the load; the body rate is W = 2 vec(q* q').
    """
    q = series_product(turned_about(3, derivatives[:, 3]), turned_about(2, tilt[:, 1]))
    q = series_product(q, turned_about(1, tilt[:, 0]))
    write_matrix(load.wanted_rotation, body_axes_in_world(q[0]))
    factorial = 1.0
    for k in range(4):  # k! times the coefficient k of W is its derivative k
        factorial *= max(k, 1)
        rate = 0.0, 0.0, 0.0
        for j in range(k + 1):
            later = k + 1 - j
            part = quaternion_product(conjugate(q[j]), q[later])
            rate = add_scaled(rate, 2.0 * factorial * later, (part[1], part[2], part[3]))
        put(load.wanted_rates[k], rate)


@compiled()
def turned_about(axis, angle):
    """Return the quaternion of a turn about axis 1, 2 or 3 by an angle given with derivatives."""
    q = np.zeros((5, 4))
    x = np.empty(5)
    factorial = 1.0
    for k in range(5):
        factorial *= max(k, 1)
        x[k] = 0.5 * angle[k] / factorial
    q[0, 0] = math.cos(x[0])
    q[0, axis] = math.sin(x[0])
    for k in range(1, 5):  # s' = c x', c' = -s x', coefficient by coefficient
        for j in range(1, k + 1):
            q[k, axis] += j * x[j] * q[k - j, 0] / k
            q[k, 0] -= j * x[j] * q[k - j, axis] / k
    return q


@compiled()
def series_product(p, q):
    """Return the Hamilton product of two quaternions of series."""
    found = np.zeros((5, 4))
    for i in range(5):
        for j in range(5 - i):
            part = quaternion_product(p[i], q[j])
            for k in range(4):
                found[i + j, k] += part[k]
    return found
