"""Feedback of the drones' places, so that the cables can do what they do by themselves.

Where the load is to be, with all derivatives, says where each drone is to be: the wrench of the
planned motion alone is shared out to the cables (`allocation`), whose directions give the places
p_d with two derivatives, exactly, in the frame of the wanted load. With the errors Y = p_d - p of a
drone and X of the load, a drone of mass M that bears a share w of the load pulls with

    F = mu_d + M (p_d'' + g e3 + u) - w d,
    u = (k_q + c) / c (k_p X + k_d X' + k_i int X) + (k_q - b) (Y - X - s) + k_w (Y' - X' - s'),

the push d on the load, and the shift s = C d~ of the places, with the compliance C of the load
below drones at rest and d behind the low-pass of the `observer`. In height u is that of the load's
height, to which each drone adds how far it is from the mean of all. Gains are those of `synthesis`.

For one cable that is the law of `cable_law` for small errors. But many cables that spread hold a
load between drones like struts, in place, roll and pitch, at once, without a drone that has to turn
first: where cables are long that is most of what there is. A law of the cables' directions takes it
away, as its drones follow a load that is pushed. Here the load finds its attitude by the cables,
and the law adds damping, and the correction of the place.

What acts is planned for the time when the drones will have answered, what is compared with the
measured motion for now.
"""

from __future__ import annotations

import math

from musls_control.controllers.payload.allocation import clear, share_out, spread_out, spread_rate
from musls_control.controllers.payload.load_law import gyroscopic, respond
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    cross,
    dot,
    put,
    rotate,
    rotate_back,
    rotate_by,
    scale,
    sub,
    unit_rates,
)


@compiled()
def plan_wrench(load, reference):
    """Write the planned wrench of a reference with its attitude, and its derivatives."""
    w = load.wanted_rates[0]
    alpha = load.wanted_rates[1]
    jerk = load.wanted_rates[2]
    for order in range(3 if load.feed_reference > 0.0 else 1):
        wrench = load.wrench[order]
        put(wrench, planned_force(load, reference, order))
        asked = rotate(load.inertia, rotate(load.givable, load.wanted_rates[1 + order]))
        put(wrench[3:], add(asked, gyroscopic(load.inertia, w, alpha, jerk, order)))


@compiled()
def share_evenly(load, sharing, forces):
    """Write the cables' forces for the planned wrench, with their derivatives."""
    for order in range(3):
        if order == 0 or load.feed_reference > 0.0:
            share_out(sharing.shares, load.wrench[order], order, forces[order])
        else:
            clear(forces[order])


@compiled()
def share_apart(load, cables, sharing, forces):
    """Write the same with the least tensions and distances, and whether these are kept."""
    least = cables[0].least_tension
    if not spread_out(sharing, least, load.wanted_rotation[2], load.wrench[0], forces[0]):
        load.unkept = 1.0
    for order in range(1, 3):
        if load.feed_reference > 0.0:
            spread_rate(sharing, load.wrench[order], order, forces[order])
        else:
            clear(forces[order])


@compiled()
def write_places(load, cables, forces, reference):
    """Write places with derivatives, and the cables' forces in the world."""
    r = load.wanted_rotation
    w = load.wanted_rates[0]
    alpha = load.wanted_rates[1]
    for i in range(len(cables)):
        cable = cables[i]
        s, s1, s2 = unit_rates(forces[0, i], forces[1, i], forces[2, i])
        arm = add_scaled(cable.attachment, cable.chord, s)
        v = add_scaled(cross(w, arm), cable.chord, s1)
        a = add(cross(alpha, arm), cross(w, cross(w, arm)))
        a = add_scaled(add_scaled(a, 2.0 * cable.chord, cross(w, s1)), cable.chord, s2)
        put(cable.place[0], add(reference[0], rotate(r, arm)))
        put(cable.place[1], add(reference[1], rotate(r, v)))
        put(cable.place[2], add(reference[2], rotate(r, a)))
        put(cable.force[0], rotate(r, forces[0, i]))


@compiled()
def planned_force(load, reference, order):
    """Return the force of a reference on the load, or a derivative of it, wanted load frame."""
    r = load.wanted_rotation
    w = load.wanted_rates[0]
    m = load.mass
    pull = rotate_back(r, scale(m, add(reference[2], (0.0, 0.0, load.gravity))))
    if order == 0:
        return pull
    growth = rotate_back(r, scale(m, reference[3]))
    if order == 1:
        return sub(growth, cross(w, pull))
    turning = add(scale(2.0, cross(w, growth)), cross(load.wanted_rates[1], pull))
    second = sub(rotate_back(r, scale(m, reference[4])), turning)
    return add(second, cross(w, cross(w, pull)))


@compiled()
def look_for_places(load, cables, forces, bodies, present):
    """Write how far the drones are from the places of the present reference, and the shift.

    The planned accelerations and forces, which `along` keeps, stay.
    """
    write_places(load, cables, forces, present)
    mean = 0.0
    speed = 0.0
    share = 1.0 / len(cables)
    for i in range(len(cables)):
        cable = cables[i]
        drone = bodies[1 + i]
        put(cable.force[0], cable.along[0])
        put(cable.place[2], cable.along[1])
        hook = rotate_by(drone.attitude, cable.hook)
        swing = rotate_by(drone.attitude, cross(drone.omega, cable.hook))
        put(cable.gap[0], sub(cable.place[0], add(drone.position, hook)))
        put(cable.gap[1], sub(cable.place[1], add(drone.velocity, swing)))
        mean += share * cable.gap[0, 2]
        speed += share * cable.gap[1, 2]
    load.higher = load.gap[2] - mean
    load.rising = load.speed[2] - speed
    r = load.wanted_rotation
    put(load.shift[0], rotate(r, rotate(load.compliance, rotate_back(r, load.settled))))
    put(load.shift[1], rotate(r, rotate(load.compliance, rotate_back(r, load.growth))))


@compiled()
def hold_place(cable, load):
    """Return the force of a drone, world [N]; equations in the module's docstring."""
    m = cable.drone_mass
    own = load.own
    y, v = cable.gap
    x = add(load.gap, load.shift[0])
    w = add(load.speed, load.shift[1])
    asked = respond(load.position_gains, load.gap, load.speed, load.position_integral)
    ahead = load.through * asked[0] + own[0] * (y[0] - x[0]) + own[1] * (v[0] - w[0])
    aside = load.through * asked[1] + own[0] * (y[1] - x[1]) + own[1] * (v[1] - w[1])
    far = math.hypot(ahead, aside)
    if far > cable.most_across:
        ahead = ahead * cable.most_across / far
        aside = aside * cable.most_across / far
        load.free[0] = load.free[1] = 0.0
    z = y[2] + load.higher
    rise = v[2] + load.rising
    lift = respond(load.position_gains, (0.0, 0.0, z), (0.0, 0.0, rise), load.position_integral)[2]
    lift = min(max(lift, -load.reach[1]), load.reach[1])
    pull = add_scaled(cable.force[0], -cable.share, load.seen.disturbance)
    size = min(dot(pull, cable.direction), -cable.least_tension)
    put(cable.along[0], scale(size, cable.direction))
    force = add_scaled(pull, m, add(cable.place[2], (ahead, aside, load.gravity)))
    return add(force, (0.0, 0.0, (m + cable.share * load.mass) * lift))
