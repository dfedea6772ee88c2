"""The force of every drone, in one compiled call a period.

The load's wrench (`load_law`) is shared out to the cables (`allocation`): mu_k is the force that
cable k is to pull the load with, against q_k, the direction from drone to load. It can pull along
its present direction only, so the drone pulls with the part of mu_k along q_k and turns the cable
to q_kd = -mu_k / |mu_k| (eq. 71 to 73 of RotorTM; T. Lee, "Geometric control of quadrotor UAVs
transporting a cable-suspended rigid body", IEEE TCST 2018):

    u_along  = q q^T mu + m l |q'|^2 q + m q q^T a
    u_across = m l q x (-k_q e_q - k_w e_w - (q . w_d) q' - q x (q x w_d')) - m q x (q x a)

with e_q = q_d x q, e_w = w + q x (q x w_d), w = q x q', w_d = q_d x q_d' and a the acceleration of
the load's attachment with gravity added. Authors' code sets w_d and w_d' to zero. Here they are the
derivatives of mu, for which the load's wrench is differentiated twice.

The acceleration of the load is the one that is asked of it. The one that the parts of mu along the
cables give (`feed_forward: full`) would be exact for drones that turn at once. Of real ones it asks
to take away the swing of the load against them, which comes late and drives it.

With `feedback: places` all of the above is for the planned motion alone, see `places`.

Drones that cannot give their force, by thrust or tilt, are spared together: the horizontal parts of
all forces go by the same share from those that carry the load at rest towards those that are
wanted, and where that is not enough the vertical ones, too. What is left of the load's wrench is a
share of its feedback, and has no moment that nobody asked for.

Three records of an array hold a vector with its first two derivatives.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from musls_control.chain import MIN_UPWARDS
from musls_control.controllers.payload.allocation import Sharing, share_out, spread_out, spread_rate
from musls_control.controllers.payload.load_law import (
    LOAD,
    attitude_errors,
    attitude_reference,
    demand,
    feed_back,
    gyroscopic,
    integrate,
    planned,
)
from musls_control.controllers.payload.observer import OBSERVED, count_on, observe
from musls_control.controllers.payload.places import (
    hold_place,
    look_for_places,
    plan_wrench,
    share_apart,
    share_evenly,
    write_places,
)
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.layout import Field, Layout
from musls_description.numerics.records import record_at
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    body_axes_in_world,
    cross,
    dot,
    norm,
    put,
    rotate,
    rotate_back,
    rotate_back_by,
    rotate_by,
    scale,
    sub,
    unit,
    unit_rates,
    write_matrix,
)

CABLE = np.dtype(
    [
        ("attachment", float, 3),  # on the load, about its centre of mass,
        ("hook", float, 3),  # and on the drone, in their frames
        ("drone_mass", float),
        ("direction_gain", float),
        ("rate_gain", float),
        ("least_tension", float),
        ("most_across", float),  # largest acceleration of the drone across it
        ("yaw", float),  # of the drone for a load at yaw zero
        ("share", float),  # of the load's weight,
        ("chord", float),  # and distance of the ends at rest
        ("place", float, (3, 3)),  # where the drone's hook is to be, and derivatives,
        ("gap", float, (2, 3)),  # and how far it is from there
        ("length", float),
        ("direction", float, 3),  # from drone to load, and its derivative
        ("direction_rate", float, 3),
        ("force", float, (3, 3)),  # that the load is to be pulled with, and derivatives
        ("along", float, (2, 3)),  # its part along the present cable, and its derivative
        ("lean", float, 2),  # smoothed tilt of `lead_tilt`
        ("leans", float),  # 0 before the first one
        ("resting", float, 3),  # force of the cable on a load at rest, load frame,
        ("most_thrust", float),  # largest force of the drone, 0 for no limit,
        ("steepest", float),  # and tangent of its largest tilt
        ("lag_share", float),  # share of a new command in what acts,
        ("thrust", float),  # which is this,
        ("pull", float, 3),  # and this on the load,
        ("unmodelled", float, 3),  # force on the drone that an incremental tracker finds,
        ("seen", OBSERVED),  # and memory of the `observer`
    ]
)

COMMAND = np.dtype(
    [("force", float, 3), ("yaw", float), ("moment", float, 3), ("counted", float, 3)]
)
"""Command of a drone, see `ControlLevel.FORCES`."""


class Law(NamedTuple):
    """All records of a load on n cables, see `LAYOUT`."""

    load: Records
    cables: Records
    sharing: Sharing
    forces: Array
    commands: Records


LAYOUT = Layout(
    [],
    [
        Field("load", (1,), LOAD, "the load"),
        Field("cables", ("n_cables",), CABLE, "its cables"),
        Field("shares", ("n_forces", 7), float, "see `Sharing`"),
        Field("null", ("n_null", "n_forces"), float, "likewise"),
        Field("places", ("n_pairs", 4), float, "likewise"),
        Field("gradients", ("n_pairs", "n_unknowns"), float, "likewise"),
        Field("binding", ("n_pairs",), float, "likewise"),
        Field("forces", (3, "n_cables", 3), float, "of cables, two derivatives, load frame"),
        Field("commands", ("n_cables",), COMMAND, "to the drones"),
    ],
)
LAW = LAYOUT.record

load_of = LAYOUT.opener("load")
cables_of = LAYOUT.opener("cables")
own_shares_of = LAYOUT.opener("shares")
null_of = LAYOUT.opener("null")
own_places_of = LAYOUT.opener("places")
gradients_of = LAYOUT.opener("gradients")
binding_of = LAYOUT.opener("binding")
forces_of = LAYOUT.opener("forces")
commands_of = LAYOUT.opener("commands")


@compiled()
def open_law(t):
    """All records of a law, by its `LAW`."""
    constraints = own_places_of(t), gradients_of(t), binding_of(t)
    sharing = Sharing(own_shares_of(t), null_of(t), *constraints)
    return Law(load_of(t), cables_of(t), sharing, forces_of(t), commands_of(t))


@compiled()
def payload_step(address, bodies, present, tilt, coming):
    """Write the commands of all drones, and whether tensions and distances are kept.

    `address`: of the law's record, `LAW`. `bodies` are the motion of load and drones, `present` and
    `tilt` those of a `LoadReference`; `coming` are its derivatives of the time when the drones will
    have answered, of which accelerations and beyond count.

    Flights in compiled code call these parts one after another, each compiled by itself, and only
    those that they need.
    """
    t = open_law(record_at(address, LAW))
    look_at_load(t, bodies, present, tilt, coming)
    if t.load[0].holds_places > 0.0:
        share_planned(t)
        place_drones(t, present, tilt)
        share_planned(t)
        hold_places(t, bodies, present)
    else:
        turn_cables(t, bodies)
    command_drones(t, bodies)


@compiled()
def look_at_load(t, bodies, present, tilt, coming):
    """Write the reference, the errors of the load and the disturbances, or the planned wrench."""
    load = t.load[0]
    cables = t.cables
    put(load.gained, scale(load.latency_s, present[2]))
    for order in range(5):
        row = coming[order] if order > 1 else present[order]
        for k in range(4):
            load.reference[order, k] = row[k]
    write_matrix(load.rotation, body_axes_in_world(bodies[0].attitude))
    attitude_reference(load, load.reference, tilt)
    attitude_errors(load, bodies[0])
    feed_back(load, bodies[0], load.reference)
    for i in range(len(cables)):
        look_along(cables[i], load, bodies[0], bodies[1 + i])
    observe(load, cables, bodies)
    if load.holds_places > 0.0:
        plan_wrench(load, load.reference)


@compiled()
def share_planned(t):
    """Share out the planned wrench, by `share_evenly` or `share_apart`."""
    if len(t.sharing.binding) == 0:
        share_evenly(t.load[0], t.sharing, t.forces)
    else:
        share_apart(t.load[0], t.cables, t.sharing, t.forces)


@compiled()
def place_drones(t, present, tilt):
    """Write planned accelerations and forces, then the wrench of the present reference."""
    load = t.load[0]
    write_places(load, t.cables, t.forces, load.reference)
    for i in range(len(t.cables)):
        cable = t.cables[i]
        put(cable.along[0], cable.force[0])  # its fields are free until the forces are known
        put(cable.along[1], cable.place[2])
    attitude_reference(load, present, tilt)
    plan_wrench(load, present)


@compiled()
def hold_places(t, bodies, present):
    """Write the forces of drones whose places are fed back, see `places`."""
    load = t.load[0]
    look_for_places(load, t.cables, t.forces, bodies, present)
    for i in range(len(t.cables)):
        cable = t.cables[i]
        put(t.commands[i].force, sub(hold_place(cable, load), cable.seen.disturbance))


@compiled()
def turn_cables(t, bodies):
    """Write the forces of drones whose cables' directions are fed back."""
    load = t.load[0]
    w = bodies[0].omega
    if not share_wrench(t, w):
        load.unkept = 1.0
    put(load.acceleration, add(load.acceleration, (0.0, 0.0, load.gravity)))
    if load.feed_attitude == 0.0:
        # With the acceleration that the forces give a small load, fast and late, drones drive it.
        # The yaw they cannot follow: over before they have turned.
        asked = load.wanted_turn[0]
        put(load.angular_acceleration, (asked[0], asked[1], load.ahead[2]))
        put(load.acceleration, planned(load, load.reference))
    for i in range(len(t.cables)):
        cable = t.cables[i]
        put(t.commands[i].force, sub(drone_force(cable, load, w), cable.seen.disturbance))


@compiled()
def command_drones(t, bodies):
    """Write the commands of drones whose forces are known."""
    load = t.load[0]
    cables = t.cables
    spare(load, cables, t.commands)
    integrate(load)
    count_on(load, cables, t.commands, bodies)
    for i in range(len(cables)):
        cable = cables[i]
        command = t.commands[i]
        weight = (0.0, 0.0, cable.drone_mass * load.gravity)
        put(command.counted, scale(-1.0, add(cable.along[0], weight)))
        if load.lead_gain > 0.0:
            lead_tilt(load, cable, command.force)
        command.yaw = cable.yaw + load.reference[0, 3]
        pull = rotate_back_by(bodies[1 + i].attitude, cable.along[0])
        put(command.moment, cross(cable.hook, pull))  # against that of the cable


@compiled()
def spare(load, cables, commands):
    """Scale all forces down to what every drone can give, see the module's docstring."""
    load.calls += 1.0
    upright = True
    level = share_of_all(load, cables, commands, upright)
    if level == 1.0:
        return
    load.saturated += 1.0
    put(load.free, (0.0, 0.0, 0.0))
    if level < 0.0:  # not even the height can be kept
        upright = False
        level = max(share_of_all(load, cables, commands, upright), 0.0)
    for i in range(len(cables)):
        cable = cables[i]
        r, c = away(load, cable, commands[i].force, upright)
        put(commands[i].force, add_scaled(r, level, c))
        if not upright:
            resting = rotate(load.wanted_rotation, cable.resting)
            change = sub(cable.along[0], resting)
            put(cable.along[0], add_scaled(resting, level, change))


@compiled()
def share_of_all(load, cables, commands, upright):
    """Return the share of the wanted forces that all drones can give; -1 where none is enough.

    With the force r at rest and the wanted one r + c: the largest share x <= 1 with |r + x c| below
    the drone's force and the horizontal part below the vertical one times the slope.
    """
    share = 1.0
    for i in range(len(cables)):
        cable = cables[i]
        if cable.most_thrust <= 0.0:
            continue
        r, c = away(load, cable, commands[i].force, upright)
        share = min(share, reaching(dot(c, c), dot(r, c), dot(r, r) - cable.most_thrust**2))
        steep = cable.steepest**2
        level = c[0] * c[0] + c[1] * c[1] - steep * c[2] * c[2]
        mixed = r[0] * c[0] + r[1] * c[1] - steep * r[2] * c[2]
        rest = r[0] * r[0] + r[1] * r[1] - steep * r[2] * r[2]
        share = min(share, reaching(level, mixed, rest))
    return share


@compiled()
def away(load, cable, force, upright):
    """Return the force of a drone that carries the load at rest, and what is wanted beyond it.

    `upright`: the former with the height of the wanted one, so that the latter is horizontal.
    """
    r = rotate(load.wanted_rotation, cable.resting)
    r = add(r, (0.0, 0.0, cable.drone_mass * load.gravity))
    if upright:
        r = (r[0], r[1], force[2])
    return r, sub(force, r)


@compiled()
def reaching(a, b, c):
    """Return the largest x <= 1 up to which a x^2 + 2 b x + c <= 0; -1 where x = 0 is beyond it."""
    if a + 2.0 * b + c <= 0.0:
        return 1.0
    if c >= 0.0:
        return -1.0
    root = math.sqrt(b * b - a * c) if b * b > a * c else 0.0
    return min(max(-c / (b + root), 0.0), 1.0) if b + root > 0.0 else 1.0


@compiled()
def look_along(cable, load, body, drone):
    """Write direction from drone to load, its derivative and the distance of the cable's ends."""
    arm = rotate(load.rotation, cable.attachment)
    hook = rotate_by(drone.attitude, cable.hook)
    spin = rotate(load.rotation, cross(body.omega, cable.attachment))
    swing = rotate_by(drone.attitude, cross(drone.omega, cable.hook))
    gap = sub(add(body.position, arm), add(drone.position, hook))
    q, cable.length = unit(gap)
    v = sub(add(add(body.velocity, load.gained), spin), add(drone.velocity, swing))
    put(cable.direction, q)
    across = add_scaled(v, -dot(q, v), q)
    put(cable.direction_rate, scale(1.0 / max(cable.length, 1e-6), across))


@compiled()
def share_wrench(t, w):
    """Write the forces of all cables with their derivatives; whether all constraints are kept.

    The load's frame, in which the wrench is shared out, turns as the load does, or as it is to.
    That counts for first derivatives alone: second ones, of forces that spread the drones, ask for
    accelerations that tumbled loads which turn on 30 m of cable.
    """
    load = t.load[0]
    cables = t.cables
    kept = True
    rate = add_scaled(w, 1.0 - load.feed_attitude, load.spin)
    for order in range(3 if load.feed_reference > 0.0 else 1):
        force, asked = demand(load, load.reference, order)
        put(load.wanted_turn[order], asked)
        wrench = load.wrench[order]
        put(wrench, rotate_back(load.rotation, force))
        if order == 1:
            put(wrench, sub(wrench, cross(rate, load.wrench[0])))
        alpha = load.angular_acceleration
        jerk = load.angular_jerk
        held = gyroscopic(load.inertia, w, alpha, jerk, order)
        put(wrench[3:], add(rotate(load.inertia, asked), held))
        if len(t.sharing.binding) == 0:
            share_out(t.sharing.shares, wrench, order, t.forces[order])
        elif order == 0:
            least = cables[0].least_tension
            up = load.rotation[2]
            kept = spread_out(t.sharing, least, up, wrench, t.forces[0])
        else:
            spread_rate(t.sharing, wrench, order, t.forces[order])
        for i in range(len(cables)):
            if order == 1:
                put(t.forces[1, i], add(t.forces[1, i], cross(rate, t.forces[0, i])))
            put(cables[i].force[order], rotate(load.rotation, t.forces[order, i]))
        if order < 2:
            load_motion(load, cables, w, order)
    return kept


@compiled()
def load_motion(load, cables, w, order):
    """Write the acceleration that the cables' forces give the load, or its derivative."""
    linear = scale(1.0 / load.mass, load.seen.disturbance) if order == 0 else (0.0, 0.0, 0.0)
    linear = add(linear, (0.0, 0.0, -load.gravity if order == 0 else 0.0))
    moment = scale(-1.0, gyroscopic(load.inertia, w, load.angular_acceleration, w, order))
    for i in range(len(cables)):
        cable = cables[i]
        pull_along(cable, order)
        linear = add_scaled(linear, 1.0 / load.mass, cable.along[order])
        force = rotate_back(load.rotation, cable.along[order])
        if order == 1:
            force = sub(force, cross(w, rotate_back(load.rotation, cable.along[0])))
        moment = add(moment, cross(cable.attachment, force))
    angular = rotate(load.inverse_inertia, moment)
    if order == 0:
        put(load.acceleration, linear)
        put(load.angular_acceleration, angular)
    else:
        put(load.jerk, linear)
        put(load.angular_jerk, angular)


@compiled()
def pull_along(cable, order):
    """Write the part of a cable's force that acts along it now, q q^T mu, or its derivative."""
    q = cable.direction
    rate = cable.direction_rate
    mu = cable.force[0]
    mu1 = cable.force[1]
    size = dot(q, mu)
    growth = dot(q, mu1) + dot(rate, mu) if order == 1 else 0.0
    if size > -cable.least_tension:
        size = -cable.least_tension
        growth = 0.0
    if order == 0:
        put(cable.along[0], scale(size, q))
    else:
        put(cable.along[1], add(scale(growth, q), scale(size, rate)))


@compiled()
def drone_force(cable, load, w):
    """Return the force of a drone; equations in the module's docstring."""
    q = cable.direction
    rate = cable.direction_rate
    m = cable.drone_mass
    arm = cable.attachment
    turning = add(cross(w, cross(w, arm)), cross(load.angular_acceleration, arm))
    a = add(load.acceleration, rotate(load.rotation, turning))
    mu = cable.force[0]
    mu1 = cable.force[1]
    mu2 = cable.force[2]
    d, d1, d2 = unit_rates(scale(-1.0, mu), scale(-1.0, mu1), scale(-1.0, mu2))
    omega = cross(q, rate)
    omega_d = cross(d, d1)
    alpha_d = cross(d, d2)
    spin = dot(q, omega_d)
    lift = dot(q, alpha_d)
    # q x (q x v) = (q . v) q - v
    error = cross(d, q)
    rate_error = sub(add_scaled(omega, spin, q), omega_d)
    back = add(scale(cable.direction_gain, error), scale(cable.rate_gain, rate_error))
    ahead = add(scale(spin, rate), add_scaled(scale(-1.0, alpha_d), lift, q))
    across = scale(-1.0, cross(q, add(back, ahead)))
    far = cable.length * norm(across)
    if far > cable.most_across:
        across = scale(cable.most_across / far, across)
    swing = add(scale(dot(rate, rate), q), across)
    # The parts of m a along and across the cable are m a.
    return add_scaled(cable.along[0], m, add_scaled(a, cable.length, swing))


@compiled()
def lead_tilt(load, cable, force):
    """Turn a force ahead, so that a drone that answers late is there in time.

    A drone follows a wanted tilt h = (Fx, Fy) / Fz with a lag T. It gets h + T h' instead, with h'
    smoothed by the share T / r: together (1 + T s) / (1 + T s / r), a lead.
    """
    size = norm(force)
    lean = cable.lean
    if force[2] <= MIN_UPWARDS * size:
        return
    x, y = force[0] / force[2], force[1] / force[2]
    if cable.leans == 0.0:
        lean[0] = x
        lean[1] = y
        cable.leans = 1.0
    dx = load.lead_gain * (x - lean[0])
    dy = load.lead_gain * (y - lean[1])
    lean[0] += load.lead_share * (x - lean[0])
    lean[1] += load.lead_share * (y - lean[1])
    far = math.hypot(dx, dy)
    if far > load.lead_most:
        dx = dx * load.lead_most / far
        dy = dy * load.lead_most / far
    x, y = x + dx, y + dy
    z = size / math.sqrt(x * x + y * y + 1.0)
    put(force, (x * z, y * z, z))
