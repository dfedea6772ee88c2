"""Motion of load and drones: states, their derivatives, prescribed drones, drones on rods."""

from __future__ import annotations

import math

from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    cross,
    dot,
    from_rotation_vector,
    increase,
    put,
    quaternion_product,
    rotate,
    rotate_back_by,
    scale,
    sub,
    unit,
)
from musls_sim.plants.massless.records import (
    bodies_of,
    cables_of,
    corners_of,
    force_of,
    rotors_of,
    solids_of,
    whole_of,
)
from musls_sim.plants.rigid_body import (
    add_body_drag,
    add_corners,
    add_inputs,
    add_rotors,
    angular_acceleration,
    arm_velocity,
    clear,
    power_of,
    push_at,
)


@compiled()
def place(body):
    """Write rotation matrix, place and velocities of a body, world, from its integrated state."""
    y = body.state
    r = body.rotation
    w = y.attitude[0]
    a = y.attitude[1]
    b = y.attitude[2]
    c = y.attitude[3]
    s = 2.0 / (w * w + a * a + b * b + c * c)
    r[0, 0] = 1.0 - s * (b * b + c * c)
    r[0, 1] = s * (a * b - w * c)
    r[0, 2] = s * (a * c + w * b)
    r[1, 0] = s * (a * b + w * c)
    r[1, 1] = 1.0 - s * (a * a + c * c)
    r[1, 2] = s * (b * c - w * a)
    r[2, 0] = s * (a * c - w * b)
    r[2, 1] = s * (b * c + w * a)
    r[2, 2] = 1.0 - s * (a * a + b * b)
    put(body.position, y.position)
    put(body.velocity, y.velocity)
    put(body.omega, rotate(r, y.omega))


@compiled()
def collect_wrench(t, body, i, speed):
    """Sum up what acts on body i but cables and gravity; power of what drives it, and losses."""
    wrench = body.wrench
    clear(wrench)
    add_body_drag(body, body.drag, t.wind, wrench)
    if body.near != 0:
        add_corners(body, corners_of(t), solids_of(t), t.friction, wrench)
    loss = -power_of(body, wrench)
    if 0 < i <= speed.shape[0]:  # a drone
        add_rotors(body, rotors_of(t)[i - 1], speed[i - 1], t.wind, wrench)
    add_inputs(body, body.in_body, body.in_world, wrench)
    t.driven += power_of(body, wrench) + loss
    t.lost += loss


@compiled()
def accelerate(body, gravity):
    """Newton's and Euler's equations, and the kinematics."""
    y = body.state
    out = body.rate
    put(out.position, y.velocity)
    put(out.velocity, scale(body.inverse_mass, body.wrench.force))
    out.velocity[2] -= gravity
    put(out.omega, angular_acceleration(body, y.omega, body.wrench.moment))
    spin_attitude(y, out)


@compiled()
def spin_attitude(y, out):
    """Rate of the quaternion of a body rate: half the product of both."""
    q = y.attitude
    w = y.omega
    half = quaternion_product(q, (0.0, 0.5 * w[0], 0.5 * w[1], 0.5 * w[2]))
    for k in range(4):
        out.attitude[k] = half[k]


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
def point_acceleration(body, point):
    """Acceleration of a point r of a body: a + alpha x r + w x (w x r), in the world."""
    w = body.state.omega
    alpha = body.rate.omega
    turning = add(cross(alpha, point), cross(w, cross(w, point)))
    return add(body.rate.velocity, rotate(body.rotation, turning))


@compiled()
def shift(body, way, turn):
    """Move a state by a way and turn it by a rotation vector in its frame, both tiny."""
    q = body.state.attitude
    increase(body.state.position, way)
    a, b, c = turn
    q0, q1, q2, q3 = q[0], q[1], q[2], q[3]
    q[0] -= 0.5 * (a * q1 + b * q2 + c * q3)
    q[1] += 0.5 * (a * q0 + c * q2 - b * q3)
    q[2] += 0.5 * (b * q0 + a * q3 - c * q1)
    q[3] += 0.5 * (c * q0 + b * q1 - a * q2)


@compiled()
def normalise(q):
    """Scale a quaternion to length one."""
    s = 1.0 / math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    for k in range(4):
        q[k] *= s


# ---------- Prescribed drones


@compiled()
def follow(body, now):
    """Motion of a prescribed drone and its derivatives, from its cubics, see `drone_paths`.

    Angular velocity and acceleration of exp(psi) to third order in psi, which stays below 0.1 rad
    within a period: w = psi' + psi x psi' / 2 + psi x (psi x psi') / 6, and its derivative.
    """
    y = body.state
    out = body.rate
    x, v, a = _cubic(body.path, now)
    put(y.position, x)
    put(y.velocity, v)
    put(out.position, v)
    put(out.velocity, a)
    psi, rate, second = _cubic(body.turning, now)
    c = cross(psi, rate)
    f = cross(psi, second)
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


# ---------- Load and drones on massless rods: one rigid body (Li et al., "RotorTM", 2023, eq. 24)


@compiled()
def move_structure(t, speed):
    """Derivatives of the whole; what acts on each part from outside is left in its wrench."""
    whole = whole_of(t)
    bodies = bodies_of(t)
    place(whole)
    t.driven = t.lost = 0.0
    clear(whole.wrench)
    for i in range(len(bodies)):
        body = bodies[i]
        arm = rotate(whole.rotation, body.place)
        put(body.position, add(arm, whole.position))
        put(body.omega, whole.omega)
        put(body.velocity, arm_velocity(whole, arm))
        for a in range(3):
            for b in range(3):
                body.rotation[a, b] = (
                    whole.rotation[a, 0] * body.beside[0, b]
                    + whole.rotation[a, 1] * body.beside[1, b]
                    + whole.rotation[a, 2] * body.beside[2, b]
                )
        collect_wrench(t, body, i, speed)
        push_at(whole.wrench, body.wrench.force, arm)
        increase(whole.wrench.moment, body.wrench.moment)
    accelerate(whole, t.gravity)


@compiled()
def rod_forces(t):
    """Force of each rod on the load: the force on its drone beyond that for its own acceleration.

    Every rod is the only one of its drone, clamped at both ends, so the drone's balance gives it
    without assumptions; how clamped rods share the load does not enter.
    """
    whole = whole_of(t)
    bodies = bodies_of(t)
    cables = cables_of(t)
    forces = force_of(t)
    omega = whole.state.omega
    alpha = whole.rate.omega
    for k in range(len(cables)):
        body = bodies[k + 1]
        c = cables[k]
        row = forces[k]
        turning = add(cross(alpha, body.place), cross(omega, cross(omega, body.place)))
        acceleration = add(whole.rate.velocity, rotate(whole.rotation, turning))
        f = sub(body.wrench.force, scale(body.mass, acceleration))
        f = (f[0], f[1], f[2] - body.mass * t.gravity)
        u, _ = unit(rotate(whole.rotation, sub(c.drone_point, c.load_point)))
        flat = math.sqrt(u[0] * u[0] + u[1] * u[1])
        c1, s1 = (u[0] / flat, u[1] / flat) if flat > 1e-9 else (1.0, 0.0)
        row[0, 0] = row[1, 0] = c.tension = dot(f, u)
        row[0, 1] = row[1, 1] = -f[0] * s1 + f[1] * c1
        row[0, 2] = row[1, 2] = -u[2] * (f[0] * c1 + f[1] * s1) + flat * f[2]
