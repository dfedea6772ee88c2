"""Motion of load and drones between the cables: states, their derivatives, prescribed drones."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_description.vectors import (
    add,
    cross,
    from_rotation_vector,
    put,
    quaternion_product,
    rotate,
    rotate_back_by,
    scale,
)
from musls_sim.plants.massless.records import corners_of, rotors_of, speeds_of
from musls_sim.plants.rigid_body import (
    add_body_drag,
    add_corners,
    add_inputs,
    add_rotors,
    angular_acceleration,
    clear,
    power_of,
)


@compiled()
def place(body):
    """Write the motion of a body from its state."""
    y, r = body.state, body.rotation
    w, a, b, c = y.attitude[0], y.attitude[1], y.attitude[2], y.attitude[3]
    s = 2.0 / (w * w + a * a + b * b + c * c)
    r[0, 0], r[0, 1], r[0, 2] = 1.0 - s * (b * b + c * c), s * (a * b - w * c), s * (a * c + w * b)
    r[1, 0], r[1, 1], r[1, 2] = s * (a * b + w * c), 1.0 - s * (a * a + c * c), s * (b * c - w * a)
    r[2, 0], r[2, 1], r[2, 2] = s * (a * c - w * b), s * (b * c + w * a), 1.0 - s * (a * a + b * b)
    put(body.position, y.position)
    put(body.velocity, y.velocity)
    put(body.omega, rotate(r, y.omega))


@compiled()
def collect_wrench(t, body, i, speed):
    """Sum up what acts on body i but cables and gravity; power of what drives it, and losses.

    `speed`: where the rotor speeds are, `t.middle_speed` or another.
    """
    wrench = body.wrench
    clear(wrench)
    add_body_drag(body, body.drag, t.wind, wrench)
    if body.near != 0:
        add_corners(body, corners_of(t), t.ground, t.friction, wrench)
    lost = -power_of(body, wrench)
    if i > 0:
        add_rotors(body, rotors_of(t)[i - 1], speeds_of(t, speed)[i - 1], t.wind, wrench)
    add_inputs(body, body.in_body, body.in_world, wrench)
    t.driven += power_of(body, wrench) + lost
    t.lost += lost


@compiled()
def accelerate(body, gravity):
    """Newton's and Euler's equations, and the kinematics."""
    y, out = body.state, body.rate
    put(out.position, y.velocity)
    put(out.velocity, scale(body.inverse_mass, body.wrench.force))
    out.velocity[2] -= gravity
    put(out.omega, angular_acceleration(body, y.omega, body.wrench.moment))
    spin_attitude(y, out)


@compiled()
def spin_attitude(y, out):
    """Rate of the quaternion of a body rate: half the product of both."""
    q, w = y.attitude, y.omega
    half = quaternion_product(q, (0.0, 0.5 * w[0], 0.5 * w[1], 0.5 * w[2]))
    for k in range(4):
        out.attitude[k] = half[k]


@compiled()
def copy_state(out, y):
    """Copy a state or a rate of change."""
    put(out.position, y.position)
    put(out.velocity, y.velocity)
    put(out.omega, y.omega)
    for k in range(4):
        out.attitude[k] = y.attitude[k]


@compiled()
def move(out, y, h, rate):
    """Write the state y + h rate; `out` may be y."""
    for k in range(3):
        out.position[k] = y.position[k] + h * rate.position[k]
        out.velocity[k] = y.velocity[k] + h * rate.velocity[k]
        out.omega[k] = y.omega[k] + h * rate.omega[k]
    for k in range(4):
        out.attitude[k] = y.attitude[k] + h * rate.attitude[k]


@compiled()
def normalise(q):
    """Scale a quaternion to length one."""
    s = 1.0 / np.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    for k in range(4):
        q[k] *= s


# ---------- Prescribed drones


@compiled()
def follow(body, now):
    """Motion of a prescribed drone and its derivatives, from its cubics, see `drone_paths`.

    Angular velocity and acceleration of exp(psi) to third order in psi, which stays below 0.1 rad
    within a period: w = psi' + psi x psi' / 2 + psi x (psi x psi') / 6, and its derivative.
    """
    y, out = body.state, body.rate
    x, v, a = _cubic(body.path, now)
    put(y.position, x)
    put(y.velocity, v)
    put(out.position, v)
    put(out.velocity, a)
    psi, rate, second = _cubic(body.turning, now)
    c, f = cross(psi, rate), cross(psi, second)
    omega = add(add(rate, scale(0.5, c)), scale(1.0 / 6.0, cross(psi, c)))
    curved = scale(1.0 / 6.0, add(cross(rate, c), cross(psi, f)))
    alpha = add(add(second, scale(0.5, f)), curved)
    q = quaternion_product(from_rotation_vector(psi), body.attitude)
    for k in range(4):
        y.attitude[k] = q[k]
    put(y.omega, rotate_back_by(q, omega))
    put(out.omega, rotate_back_by(q, alpha))
    spin_attitude(y, out)


@compiled()
def _cubic(c, t):
    """Value of a cubic with coefficients (4, 3), its rate and its second derivative."""
    value = add(c[0], scale(t, add(c[1], scale(t, add(c[2], scale(t, c[3]))))))
    rate = add(c[1], scale(t, add(scale(2.0, c[2]), scale(3.0 * t, c[3]))))
    return value, rate, add(scale(2.0, c[2]), scale(6.0 * t, c[3]))
