"""Forces on load and drones that the law does not know: a push, wind, weak rotors, a heavier load.

Momentum observers (A. De Luca, R. Mattone, IEEE ICRA 2005; T. Tomic, C. Ott, S. Haddadin, IEEE
T-RO 2017), one for each body, of second order:

    q' = F + m g + p + e^ + 2 z w (m v - q),      e^' = w^2 (m v - q),      w = 2 z K,

with the pull p of the cables and the thrust F along the measured z axis of the drone: those that
the law commanded, behind the lag of the rotors and, for the load, that of its measured motion. So
e^ is what is missing, late by 1 / K. An observer of first order is as late, but it hands on the
noise of the measured velocities at all frequencies: the law then shakes the drones, whose rotors
speed up faster than they slow down, which lifts them. With s_i the direction of a cable from drone
to load, d the disturbances and h the errors of the tensions, unknown all of them,

    e_i = d_i + h_i s_i,      e_load = d_load - sum h_i s_i,

of which the smallest d are taken, by the masses of the bodies. With V = sum h_i s_i and weights
w_i = (M_i / m)^2 that is one equation for a vector:

    (1 + sum w_i s_i s_i^T) V = sum s_i s_i^T (e_i - w_i e_load).

An incremental tracker measures the e_i by accelerometers and rotor speeds, and makes up for them
itself. Then they are taken from it, as late as the others, and the d_i are its affair.

The derivative of d_load, behind a low-pass of its own, turns the cables with it: a law that knows
the new directions but not that they change brakes the cables on their way there. Drones that hold
their places go as far aside as that low-pass says, and it is limited in its speed: a push ends as
suddenly as it begins, and what has gone far to meet it has to come back.

A push therefore moves the equilibrium of the law at once and leaves nothing that would have to
unwind: the law has no integral of the position unless its gain is set.
"""

from __future__ import annotations

import numpy as np

from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    body_z_in_world,
    cross,
    dot,
    norm,
    put,
    scale,
    sub,
)

OBSERVED = np.dtype(
    [
        ("momentum", float, 3),  # q,
        ("force", float, 3),  # forces that are counted on, with e^,
        ("missing", float, 3),  # e^,
        ("disturbance", float, 3),  # d
    ]
)
"""Memory of the observer of a body, world [N, N s]."""

MOST_SHARE = 0.5
"""Largest disturbance over a body's weight: beyond it, something else holds the body."""

DAMPING = 0.8
"""Damping ratio z of the observers."""

GROWTH_SHARE = 2.0
"""Bandwidth of the derivative of the push over that of the observer."""


@compiled()
def observe(load, cables, bodies):
    """Write the disturbances of load and drones from their motion and the forces counted on."""
    rate = load.observer_rate
    if rate <= 0.0:
        return
    if load.observes == 0.0:
        restart(load.seen, scale(load.mass, bodies[0].velocity))
        put(load.settled, (0.0, 0.0, 0.0))
        put(load.growth, (0.0, 0.0, 0.0))
        for i in range(len(cables)):
            momentum = scale(load.observes_drones * cables[i].drone_mass, bodies[1 + i].velocity)
            restart(cables[i].seen, momentum)
        return
    advance(load.seen, load.period, rate, load.mass, bodies[0])
    rows = np.zeros((3, 3))
    side = (0.0, 0.0, 0.0)
    missing = load.seen.missing
    rows[0, 0] = rows[1, 1] = rows[2, 2] = 1.0
    for i in range(len(cables)):
        cable = cables[i]
        s = cable.direction
        seen = cable.seen
        if load.observes_drones > 0.0:
            advance(seen, load.period, rate, cable.drone_mass, bodies[1 + i])
        else:
            follow(seen, load.period, rate, cable.unmodelled)
        weight = (cable.drone_mass / load.mass) ** 2
        side = add_scaled(side, dot(s, seen.missing) - weight * dot(s, missing), s)
        for j in range(3):
            for k in range(3):
                rows[j, k] += weight * s[j] * s[k]
    shared = solved(rows, side)
    gravity = load.gravity
    put(load.seen.disturbance, limited(add(missing, shared), load.mass * gravity))
    growth = scale(GROWTH_SHARE * rate, sub(load.seen.disturbance, load.settled))
    put(load.growth, scale(min(1.0, load.most_growth / max(norm(growth), 1e-12)), growth))
    put(load.settled, add_scaled(load.settled, load.period, load.growth))
    for i in range(len(cables)):
        cable = cables[i]
        s = cable.direction
        weight = (cable.drone_mass / load.mass) ** 2
        wrong = dot(s, cable.seen.missing) - weight * dot(s, add(missing, shared))
        own = scale(load.observes_drones, add_scaled(cable.seen.missing, -wrong, s))
        put(cable.seen.disturbance, limited(own, cable.drone_mass * gravity))


@compiled()
def restart(seen, momentum):
    """Begin with nothing missing."""
    put(seen.momentum, momentum)
    put(seen.missing, (0.0, 0.0, 0.0))
    put(seen.disturbance, (0.0, 0.0, 0.0))


@compiled()
def advance(seen, period, rate, mass, body):
    """Integrate the forces of the last period, and see what is missing."""
    frequency = 2.0 * DAMPING * rate
    gap = sub(scale(mass, body.velocity), seen.momentum)
    felt = add_scaled(seen.force, 2.0 * DAMPING * frequency, gap)
    put(seen.momentum, add_scaled(seen.momentum, period, felt))
    put(seen.missing, add_scaled(seen.missing, period * frequency**2, gap))


@compiled()
def follow(seen, period, rate, measured):
    """Take a measured force for what is missing, as late as `advance` finds it."""
    frequency = 2.0 * DAMPING * rate
    change = scale(frequency**2, sub(measured, seen.missing))
    change = add_scaled(change, -2.0 * DAMPING * frequency, seen.momentum)
    put(seen.momentum, add_scaled(seen.momentum, period, change))  # here the derivative of e^
    put(seen.missing, add_scaled(seen.missing, period, seen.momentum))


@compiled()
def limited(force, weight):
    """Return a force of at most `MOST_SHARE` of a weight."""
    size = norm(force)
    return scale(min(1.0, MOST_SHARE * weight / max(size, 1e-12)), force)


@compiled()
def solved(rows, side):
    """Return the solution of three symmetric equations."""
    a = rows[0, 0], rows[0, 1], rows[0, 2]
    b = rows[1, 0], rows[1, 1], rows[1, 2]
    c = rows[2, 0], rows[2, 1], rows[2, 2]
    bc = cross(b, c)
    ca = cross(c, a)
    ab = cross(a, b)
    part = add(scale(side[0], bc), add(scale(side[1], ca), scale(side[2], ab)))
    return scale(1.0 / dot(a, bc), part)


@compiled()
def count_on(load, cables, commands, bodies):
    """Remember the forces that the commands of this period make act, and their lags."""
    if load.observer_rate <= 0.0:
        return
    begins = load.observes == 0.0
    pull = (0.0, 0.0, 0.0)
    load.observes = 1.0
    for i in range(len(cables)):
        cable = cables[i]
        up = body_z_in_world(bodies[1 + i].attitude)
        thrust = max(dot(commands[i].force, up), 0.0)
        along = cable.along[0]
        share = 1.0 if begins else cable.lag_share
        cable.thrust += share * (thrust - cable.thrust)
        put(cable.pull, add_scaled(cable.pull, share, sub(along, cable.pull)))
        pull = add(pull, cable.pull)
        weight = (0.0, 0.0, -cable.drone_mass * load.gravity)
        felt = sub(scale(cable.thrust, up), cable.pull)
        put(cable.seen.force, add(add(felt, weight), cable.seen.missing))
    share = 1.0 if begins else load.late_share
    put(load.pull, add_scaled(load.pull, share, sub(pull, load.pull)))
    weight = (0.0, 0.0, -load.mass * load.gravity)
    put(load.seen.force, add(add(load.pull, weight), load.seen.missing))
