"""One control period of a rigid structure, in compiled code: Runge-Kutta of fourth order."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_description.vectors import (
    add,
    cross,
    dot,
    increase,
    norm,
    put,
    rotate,
    scale,
    sub,
    unit,
)
from musls_sim.plants.interface import SPEED_LIMIT_M_S
from musls_sim.plants.massless.bodies import (
    accelerate,
    collect_wrench,
    copy_state,
    move,
    normalise,
    place,
)
from musls_sim.plants.massless.records import (
    BODY,
    SYSTEM,
    bodies_of,
    cables_of,
    copy_table,
    corners_of,
    forces_of,
    keep_inputs,
    record_at,
    show_bodies,
    speeds_of,
)
from musls_sim.plants.massless.step import TURN, spin_to
from musls_sim.plants.rigid_body import (
    arm_velocity,
    clear,
    fastest_body,
    look_for_ground,
    push_at,
    settle_corners,
)


@compiled()
def advance(address, structure, period, command, wind, in_body, in_world):
    """Advance one control period with the inputs held; -1 where the structure runs away."""
    t, whole = record_at(address, SYSTEM), record_at(structure, BODY)
    bodies = bodies_of(t)
    keep_inputs(t, command, wind, in_body, in_world)
    for c in cables_of(t):
        c.peak = -np.inf
    now, steps = 0.0, 0
    rates(t, whole, t.speed)
    while now < period:
        near = look_for_ground(bodies, corners_of(t), t.ground, t.step)
        h = step_length(t, whole, near)
        h = (period - now) / max(np.ceil((period - now) / h - 1e-6), 1.0)
        one_step(t, whole, now, h)
        now = period if period - now - h < 1e-9 * period else now + h
        steps += 1
        if near:
            settle_corners(bodies, corners_of(t), t.friction)
        if not fastest_body(bodies)[1] < SPEED_LIMIT_M_S:
            return -1
        rod_forces(t, whole)
    if period == 0.0:
        rod_forces(t, whole)
    else:
        copy_table(speeds_of(t, t.speed), speeds_of(t, t.end_speed))
        t.refined += steps > np.ceil(period / t.step - 1e-6)
    show_bodies(t, period)
    return 0


@compiled()
def step_length(t, whole, near):
    """Longest step for the present motion."""
    h = min(t.step, t.contact_step) if near else t.step
    turning = norm(whole.state.omega)
    return min(h, TURN / turning) if turning > 0.0 else h


@compiled()
def one_step(t, whole, now, h):
    """Step of Runge and Kutta; forces at its end are left in the bodies."""
    rates(t, whole, t.end_speed)
    spin_to(t, now + 0.5 * h, t.middle_speed)
    spin_to(t, now + h, t.end_speed)
    copy_state(whole.begin, whole.state)
    copy_state(whole.total, whole.rate)
    driven, lost = t.driven, t.lost
    for stage in range(1, 4):
        move(whole.state, whole.begin, h if stage == 3 else 0.5 * h, whole.rate)
        rates(t, whole, t.end_speed if stage == 3 else t.middle_speed)
        weight = 1.0 if stage == 3 else 2.0
        move(whole.total, whole.total, weight, whole.rate)
        driven += weight * t.driven
        lost += weight * t.lost
    move(whole.state, whole.begin, h / 6.0, whole.total)
    normalise(whole.state.attitude)
    t.work += h / 6.0 * driven
    t.absolute_work += abs(h / 6.0 * driven)
    t.loss += h / 6.0 * lost
    rates(t, whole, t.end_speed)


@compiled()
def rates(t, whole, speed):
    """Derivatives of the whole; what acts on each part from outside is left in its wrench."""
    place(whole)
    t.driven = t.lost = 0.0
    clear(whole.wrench)
    bodies = bodies_of(t)
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
def rod_forces(t, whole):
    """Force of each rod on the load: what its drone does not need for its own acceleration.

    Every rod is the only one of its drone, clamped at both ends, so the drone's balance gives it
    without assumptions; how clamped rods share the load does not enter.
    """
    omega, alpha = whole.state.omega, whole.rate.omega
    bodies, cables, forces = bodies_of(t), cables_of(t), forces_of(t)
    for k in range(len(cables)):
        body, c, row = bodies[k + 1], cables[k], forces[k]
        turning = add(cross(alpha, body.place), cross(omega, cross(omega, body.place)))
        acceleration = add(whole.rate.velocity, rotate(whole.rotation, turning))
        f = sub(body.wrench.force, scale(body.mass, acceleration))
        f = (f[0], f[1], f[2] - body.mass * t.gravity)
        u, _ = unit(rotate(whole.rotation, sub(c.drone_point, c.load_point)))
        flat = np.sqrt(u[0] * u[0] + u[1] * u[1])
        c1, s1 = (u[0] / flat, u[1] / flat) if flat > 1e-9 else (1.0, 0.0)
        row[0] = row[3] = c.tension = dot(f, u)
        row[1] = row[4] = -f[0] * s1 + f[1] * c1
        row[2] = row[5] = -u[2] * (f[0] * c1 + f[1] * s1) + flat * f[2]
        c.peak = max(c.peak, c.tension)
