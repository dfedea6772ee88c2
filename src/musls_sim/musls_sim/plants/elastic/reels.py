"""Shafts of winches and pulleys, and cables whose free length changes.

The n segments of a cable share its free length L evenly: node i lies at the share i / n of it, and
the cable runs through the nodes. With q_1 and q_2 the rates at which cable comes out at the ends,
L' = q_1 + q_2, it passes node i towards end 2 at c_i = q_1 (1 - i / n) - q_2 i / n, and the
material there moves with

    u_i = x_i' + c_i g,     g = (x_{i+1} - x_i) / (L / n)

(of each segment half the mass at either end, with the segment's own g). Everything follows from
the Lagrangian of that with x_i and the lengths that came out as coordinates; wound cable sits at
the exit point. Momentum that cable carries along, Coriolis and centripetal forces of cable that
runs while it swings, the weight that a winch lifts and the inertia that a pulley feels are in it;
mass, momentum and energy are conserved. What acts on the length that comes out is

    mean over the segments of T (1 + strain) - energy per length, plus weight and inertia,

which in equilibrium is the tension at the exit point (with the strain's energy: the cable lies
unstretched on the drum).
"""

from __future__ import annotations

import math

from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    cross,
    dot,
    increase,
    put,
    rotate,
    scale,
    sub,
)
from musls_sim.plants.elastic.bodies import angular_acceleration
from musls_sim.plants.elastic.cables.cable import TENSION_SHARE
from musls_sim.plants.elastic.cables.line import energy_per_length
from musls_sim.plants.elastic.solver import add_right, end_node, row_of
from musls_sim.plants.elastic.state import (
    PULLEY,
    bodies_of,
    cables_of,
    laws_of,
    matrix_of,
    nodes_of,
    rows_of,
    segments_of,
    shafts_of,
)

STICKING_M = 1e-5
"""Travel of the cable at which dry friction reaches its limit."""

STICKING_TIME_S = 2e-3
"""Damping of sticking friction over its stiffness."""

STOP_SPEED_M_S = 0.2
"""Speed of the cable at which the damping of a stop equals its stiffness."""

LAYER_CHANGE_RAD = 0.5 * math.pi
"""Half the turn within which the cable climbs to the next layer."""

SHORTEST_SHARE = 1e-3
"""Share of its length at the start below which no cable gets in a trial solution."""

DRIVE_GAP = 1e-9
"""Change of a drive that is no jump."""


# ---------- Friction and stops


@compiled()
def limit_friction(t, shaft):
    """Limit of the torque of dry friction: bearing, brake, and the pulley by its tensions."""
    shaft.friction_limit = shaft.bearing + shaft.brake
    if shaft.kind != PULLEY or (shaft.capstan == 0.0 and shaft.efficiency == 1.0):
        return
    away = (0.0, 0.0, 0.0)
    both = 0.0
    for side in range(2):
        direction, tension = _at_pulley(t, shaft, side)
        away = add(away, direction)
        both = both + tension
    cosine = 0.5 * dot(away, away) - 1.0
    wrap = math.pi - math.acos(min(max(cosine, -1.0), 1.0)) + shaft.extra_wrap
    ratio = math.exp(shaft.capstan * wrap) / shaft.efficiency
    # T_1 = ratio T_2 by the sum, which a shift of the cable does not change.
    shaft.friction_limit += (ratio - 1.0) / (ratio + 1.0) * both * shaft.radius


@compiled()
def _at_pulley(t, shaft, side):
    """Direction away from a pulley and tension of the segment on one of its sides."""
    cable = cables_of(t)[shaft.cable[side]]
    end = shaft.end[side]
    segment = segments_of(t)[cable.first_segment + end * (cable.segments - 1)]
    sign = 1.0 if end == 0 else -1.0
    return scale(sign, segment.direction), max(segment.tension, 0.0)


# Dry friction sticks: a spring from where it stuck, up to the limit, so that a braked drum does
# not creep. Stops are one-sided springs whose damping grows with the depth.


@compiled()
def stop_law(depth, rate, stiffness, dh):
    """Force of a stop and its slope: k depth (1 + rate / v_0), nothing beyond it (Hunt, Crossley).

    Continuous, unlike a spring with a damper beside it, and an impact is mostly taken.
    """
    grip = 1.0 + rate / STOP_SPEED_M_S
    if depth <= 0.0 or grip <= 0.0:
        return 0.0, 0.0
    return stiffness * depth * grip, stiffness * (grip + depth / (STOP_SPEED_M_S * dh))


@compiled()
def _sticking_share(shaft):
    """Spring and damper of sticking friction over its limit."""
    travel = shaft.stage_angle - shaft.stuck_angle + STICKING_TIME_S * shaft.stage_rate
    return travel * shaft.ratio / STICKING_M


@compiled()
def _stop_of_shaft(shaft, dh):
    """Force of the stop at the highest angle of a shaft, and its slope."""
    r = shaft.ratio
    depth = (shaft.stage_angle - shaft.highest_angle) * r
    return stop_law(depth, shaft.stage_rate * r, shaft.stop_stiffness, dh)


@compiled()
def dry_friction(shaft, dh):
    """Torques of friction and of the stop in the stage, and their slope by the angle.

    Friction either sticks, and is then taken as the spring without its limit, or slides in one
    direction: Newton's method would go round between both directions of sliding otherwise.
    """
    limit = shaft.friction_limit
    share = _sticking_share(shaft)
    r = shaft.ratio
    if shaft.sliding == 0.0 and abs(share) > 1.0:
        shaft.sliding = 1.0 if share > 0.0 else -1.0
    elif shaft.sliding != 0.0 and share * shaft.sliding < 1.0:
        shaft.sliding = 0.0
    factor = share if shaft.sliding == 0.0 else shaft.sliding
    shaft.friction = -limit * factor - shaft.viscous * shaft.stage_rate
    shaft.friction_slope = shaft.viscous / dh
    if shaft.sliding == 0.0:
        shaft.friction_slope += limit * r / STICKING_M * (1.0 + STICKING_TIME_S / dh)
    push, slope = _stop_of_shaft(shaft, dh)
    shaft.stop_torque = -push * r
    shaft.friction_slope += slope * r * r


@compiled()
def _true_torque(shaft):
    """Torque of friction and stop in the stage."""
    share = min(max(_sticking_share(shaft), -1.0), 1.0)
    push = _stop_of_shaft(shaft, 1.0)[0]
    return -shaft.friction_limit * share - shaft.viscous * shaft.stage_rate - push * shaft.ratio


# ---------- Shafts
#
# A drum or pulley of inertia J turns relative to its body about the body's axis e by the angle y:
#
#     J (y'' + (e w)') = torque of drive, brake and bearing + what its cables exert,
#
# and the body feels the rate of the angular momentum J y' e. The inertia of the body counts the
# drum as standing. A drive by rate prescribes y in time instead, and its torque follows.
#
# A winch without cable left, and one that has reeled in all it may, runs against a stop (drive by
# torque) or halts (drive by rate).


@compiled()
def radius_at(shaft, angle):
    """Cable out per angle [m], its slope [m/rad], and the cable out at an angle [m].

    In layers the radius grows by `layer` at each full `layer_angle` of wound angle, over half a
    turn about it.
    """
    radius = shaft.radius
    if shaft.layer == 0.0:
        return radius, 0.0, radius * angle
    wound_angle = shaft.wound_angle - angle
    half = min(LAYER_CHANGE_RAD, 0.5 * shaft.layer_angle)
    slope = 0.0
    out = radius * angle
    most = max(wound_angle, shaft.wound_angle)
    k = 1
    while k * shaft.layer_angle - half < most:
        a, b = wound_angle - k * shaft.layer_angle, shaft.wound_angle - k * shaft.layer_angle
        radius += shaft.layer * min(max((a + half) / (2.0 * half), 0.0), 1.0)
        if -half < a < half:
            slope -= shaft.layer / (2.0 * half)
        out += shaft.layer * (_climb(b, half) - _climb(a, half))
        k += 1
    return radius, slope, out


@compiled()
def _climb(x, half):
    """Integral of the share of a change of layer."""
    if x <= -half:
        return 0.0
    return x if x >= half else (x + half) ** 2 / (4.0 * half)


@compiled()
def begin_shafts(t):
    """Begin a period; returns whether a drive jumped, so that accelerations must be found again.

    That is a torque or brake, or the slope of a rate: the jerk of a rate that jumps itself has no
    acceleration.
    """
    jumped = False
    for shaft in shafts_of(t):
        old = shaft.last_drive
        new = shaft.drive
        gap = abs(old[1] - new[0]) > DRIVE_GAP
        if shaft.by_rate > 0.0:
            bend = abs((old[1] - old[0]) - (new[1] - new[0])) > DRIVE_GAP
            jumped |= bend and not gap
        else:
            jumped |= gap or shaft.brake != shaft.last_brake
        old[0] = new[0]
        old[1] = new[1]
        shaft.last_brake = shaft.brake
        shaft.begin_angle = shaft.angle
        shaft.halted = 0.0
        if shaft.kind != PULLEY:
            cable = cables_of(t)[shaft.cable[0]]
            reserve = cable.rest_length - cable.shortest_length
            shaft.lowest_angle = shaft.angle - max(reserve, 0.0) / shaft.ratio
    return jumped


@compiled()
def predict_first_shafts(t, known):
    """Predict the shafts' first stage: known terms, and a guess of their accelerations."""
    for s in shafts_of(t):
        s.known_angle = s.angle + known * s.rate
        s.known_rate = s.rate + known * s.acceleration
        s.stage_acceleration = s.acceleration


@compiled()
def predict_second_shafts(t, wh, ahead):
    """Predict the shafts' second stage."""
    for s in shafts_of(t):
        s.known_angle = s.angle + wh * (s.rate + s.stage_rate)
        s.known_rate = s.rate + wh * (s.acceleration + s.stage_acceleration)
        s.stage_acceleration += ahead * (s.stage_acceleration - s.acceleration)


@compiled()
def place_reels(t, dh, share):
    """Write angles and rates of the shafts in a stage of the integrator, and the free lengths.

    By their accelerations over `dh`, or by their drive at a share of the period.
    """
    for s in shafts_of(t):
        if s.by_rate > 0.0:
            time = share * t.period
            a = (s.drive[1] - s.drive[0]) / t.period
            s.stage_angle = s.begin_angle + time * (s.drive[0] + 0.5 * a * time)
            s.stage_rate = s.drive[0] + a * time
            s.stage_acceleration = a
            s.halted = 0.0
            if s.stage_angle > s.highest_angle or s.stage_angle < s.lowest_angle:
                s.halted = 1.0 if s.stage_angle > s.highest_angle else -1.0
                s.stage_angle = min(max(s.stage_angle, s.lowest_angle), s.highest_angle)
                s.stage_rate = s.stage_acceleration = 0.0
        else:
            s.stage_rate = s.known_rate + dh * s.stage_acceleration
            s.stage_angle = s.known_angle + dh * s.stage_rate
        s.ratio, s.ratio_slope, s.out = radius_at(s, s.stage_angle)
        s.out_rate = s.ratio * s.stage_rate
        s.out_acceleration = s.ratio * s.stage_acceleration + s.ratio_slope * s.stage_rate**2
        put(s.axis_world, rotate(bodies_of(t)[s.body].stage.rotation, s.axis))
    set_lengths(t)


@compiled()
def spin_torque(shaft, body):
    """Torque [N m], world, that changes the spin of a shaft, in a stage of the integrator.

    The body that carries the shaft feels its opposite.
    """
    along = scale(shaft.inertia * shaft.stage_acceleration, shaft.axis_world)
    swung = cross(body.stage.omega, shaft.axis_world)
    return add_scaled(along, shaft.inertia * shaft.stage_rate, swung)


@compiled()
def _spins(shaft):
    """Whether a shaft's spin acts on its body."""
    axis = shaft.axis_world
    return axis[0] != 0.0 or axis[1] != 0.0 or axis[2] != 0.0


@compiled()
def balance_shafts(t, dh, share):
    """Right-hand sides and matrix rows of the shafts, and what they leave to their bodies."""
    for shaft in shafts_of(t):
        body = bodies_of(t)[shaft.body]
        row = shaft.dof
        spins = _spins(shaft)
        if spins and body.free:
            increase(body.moment, scale(-1.0, spin_torque(shaft, body)))
        shaft.right = 0.0
        if shaft.by_rate > 0.0:
            matrix_of(t)[row, row] = 1.0
            continue
        shaft.torque = shaft.drive[0] + share * (shaft.drive[1] - shaft.drive[0])
        limit_friction(t, shaft)
        dry_friction(shaft, dh)
        matrix_of(t)[row, row] += shaft.inertia / (dh * dh) + shaft.friction_slope
        shaft.right = shaft.torque + shaft.friction + shaft.stop_torque
        shaft.right -= shaft.inertia * shaft.stage_acceleration
        if spins:
            shaft.right -= shaft.inertia * dot(shaft.axis_world, angular_acceleration(body))
            if body.dof >= 0:
                for k in range(3):
                    coupling = shaft.inertia * shaft.axis_world[k] / (dh * dh)
                    matrix_of(t)[row, body.dof + 3 + k] += coupling


@compiled()
def move_shafts(t, part, dh):
    """Apply a share of the solution to the accelerations of the shafts that are not prescribed."""
    for shaft in shafts_of(t):
        shaft.right *= part
        if shaft.by_rate == 0.0:
            shaft.stage_acceleration += shaft.right / (dh * dh)


@compiled()
def _drive_torque(t, shaft):
    """Torque that a drive by rate needs (force of a feed)."""
    torque = shaft.inertia * shaft.stage_acceleration
    if _spins(shaft):
        turning = angular_acceleration(bodies_of(t)[shaft.body])
        torque += shaft.inertia * dot(shaft.axis_world, turning)
    for side in range(2):
        if shaft.cable[side] >= 0:
            torque -= cables_of(t)[shaft.cable[side]].reel_torque[shaft.end[side]]
    return torque


@compiled()
def reel_error(t, losses):
    """Largest error of the linear forces of friction and stops over what is allowed."""
    worst = largest = 0.0
    for cable in cables_of(t):
        if cable.reels > 0:
            linear = cable.stop_force - cable.stop_slope * cable.length_shift
            worst = max(worst, abs(_stop_of_cable(cable, 1.0)[0] - linear))
            largest = max(largest, abs(linear))
            losses.cables -= linear * cable.rest_length_rate
    for shaft in shafts_of(t):
        if shaft.by_rate == 0.0:
            linear = shaft.friction + shaft.stop_torque - shaft.friction_slope * shaft.right
            limit_friction(t, shaft)
            worst = max(worst, abs(_true_torque(shaft) - linear) / shaft.ratio)
            largest = max(largest, abs(linear) / shaft.ratio)
            losses.cables -= linear * shaft.stage_rate
        else:
            shaft.torque = _drive_torque(t, shaft)
        losses.drives += shaft.torque * shaft.stage_rate
    return worst / (TENSION_SHARE * largest + t.tolerance)


@compiled()
def react_shafts(t):
    """Add the shafts' share to what prescribed bodies need."""
    for shaft in shafts_of(t):
        body = bodies_of(t)[shaft.body]
        if body.free == 0:
            increase(body.reaction.moment, spin_torque(shaft, body))


@compiled()
def settle_shafts(t):
    """Take the stage over as the state; sticking restarts where friction slid."""
    for s in shafts_of(t):
        s.angle = s.stage_angle
        s.rate = s.stage_rate
        s.acceleration = s.stage_acceleration
        travel = STICKING_M / s.ratio
        s.stuck_angle = min(max(s.stuck_angle, s.angle - travel), s.angle + travel)
        if s.by_rate > 0.0:
            continue
        s.halted = 1.0 if s.stop_torque != 0.0 else 0.0
        for side in range(2):
            if s.cable[side] >= 0:
                cable = cables_of(t)[s.cable[side]]
                if cable.rest_length < cable.shortest_length:
                    s.halted = 1.0 if s.kind == PULLEY and side == 0 else -1.0


@compiled()
def start_shafts(t):
    """Keep the accelerations of a start; a drive by rate also begins with its rate."""
    for shaft in shafts_of(t):
        shaft.acceleration = shaft.stage_acceleration
        if shaft.by_rate > 0.0:
            shaft.rate = shaft.stage_rate


# ---------- Cables whose length changes


@compiled()
def _sign_at(shaft, c, end):
    """Sign with which a shaft's positive angle gives cable to one end of cable `c`."""
    return -1.0 if shaft.kind == PULLEY and shaft.cable[0] == c and shaft.end[0] == end else 1.0


@compiled()
def set_lengths(t):
    """Rest lengths and node masses of all cables on winches and pulleys."""
    for c in range(cables_of(t).shape[0]):
        cable = cables_of(t)[c]
        if cable.reels == 0:
            continue
        length = cable.start_length
        rate = 0.0
        for end in range(2):
            cable.out_rate[end] = cable.out_acceleration[end] = 0.0
            if cable.reel[end] < 0:
                continue
            shaft = shafts_of(t)[cable.reel[end]]
            sign = _sign_at(shaft, c, end)
            length += sign * shaft.out
            rate += sign * shaft.out_rate
            cable.out_rate[end] = sign * shaft.out_rate
            cable.out_acceleration[end] = sign * shaft.out_acceleration
            cable.ratio[end] = sign * shaft.ratio
            if shaft.kind != PULLEY:
                cable.stored[end] = shaft.wound - shaft.out
        length = max(length, SHORTEST_SHARE * cable.start_length)
        cable.rest_length = length
        cable.rest_length_rate = rate
        n = cable.segments
        density = cable.linear_density
        rest = length / n
        for i in range(n):
            segment = segments_of(t)[cable.first_segment + i]
            segment.rest_length = rest
            segment.inverse_rest_length = 1.0 / rest
        for i in range(n + 1):
            node = nodes_of(t)[cable.first_node + i]
            node.mass = density * rest * (1.0 if 0 < i < n else 0.5)
        for end in range(2):
            nodes_of(t)[end_node(cable, end)].mass += density * cable.stored[end]


@compiled()
def _stop_of_cable(cable, dh):
    """Force that keeps a cable from getting shorter than it may, and its slope."""
    depth = cable.shortest_length - cable.rest_length
    return stop_law(depth, -cable.rest_length_rate, cable.stop_stiffness, dh)


@compiled()
def _add_column(rows, cable, i, end, coupling):
    """Couple point i of a cable to the length that comes out at an end."""
    row = row_of(cable, i)
    for k in range(3):
        rows[row + k].border[6 + end] += coupling[k]


@compiled()
def add_reels(t, cable, dh):
    """Add what a changing length does to the equations of a cable.

    Called after everything else has been assembled.
    """
    n = cable.segments
    rows = rows_of(t)
    gravity = t.gravity
    has_1 = cable.reel[0] >= 0
    has_2 = cable.reel[1] >= 0
    length = cable.rest_length
    density = cable.linear_density
    q1, q2 = cable.out_rate[0], cable.out_rate[1]
    r1, r2 = cable.out_acceleration[0], cable.out_acceleration[1]
    share = 1.0 / n
    inverse_dh2 = 1.0 / (dh * dh)
    h = 0.5 * density * length * share
    grow = 0.5 * density * (q1 + q2) * share
    f1 = f2 = k11 = k12 = k22 = 0.0
    for s in range(n):
        segment = segments_of(t)[cable.first_segment + s]
        a, b = nodes_of(t)[cable.first_node + s].stage, nodes_of(t)[cable.first_node + s + 1].stage
        # shares of q_2 at both nodes, of q_1 the rest
        b2 = s * share
        e2 = (s + 1) * share
        b1 = 1.0 - b2
        e1 = 1.0 - e2
        ca = b1 * q1 - b2 * q2
        cb = e1 * q1 - e2 * q2
        wa = b1 * r1 - b2 * r2
        wb = e1 * r1 - e2 * r2
        stretch = segment.length * segment.inverse_rest_length
        g = scale(stretch, segment.direction)
        rate = scale(segment.inverse_rest_length, sub(b.velocity, a.velocity))
        rate = add_scaled(rate, -(q1 + q2) / length, g)
        ua = add_scaled(a.velocity, ca, g)
        ub = add_scaled(b.velocity, cb, g)
        carried = add(scale(ca, ua), scale(cb, ub))
        ea = add(scale(grow, ua), scale(h, add(scale(wa, g), scale(ca, rate))))
        eb = add(scale(grow, ub), scale(h, add(scale(wb, g), scale(cb, rate))))
        add_right(rows, cable, s, add_scaled(scale(-1.0, ea), -0.5 * density, carried))
        add_right(rows, cable, s + 1, add_scaled(scale(-1.0, eb), 0.5 * density, carried))
        stiff = scale(segment.stiffness * stretch * share, segment.direction)
        ma = scale(0.5 * density * share, add(a.acceleration, (0.0, 0.0, gravity)))
        mb = scale(0.5 * density * share, add(b.acceleration, (0.0, 0.0, gravity)))
        at_a = add(ma, stiff)
        at_b = sub(mb, stiff)
        inertia = scale(h * inverse_dh2, g)
        for end in range(2):
            if cable.reel[end] >= 0:
                share_a, share_b = (b1, e1) if end == 0 else (-b2, -e2)
                _add_column(rows, cable, s, end, add_scaled(at_a, share_a, inertia))
                _add_column(rows, cable, s + 1, end, add_scaled(at_b, share_b, inertia))
        da = dot(add_scaled(ea, h, a.acceleration), g) + h * dot(ua, rate)
        db = dot(add_scaled(eb, h, b.acceleration), g) + h * dot(ub, rate)
        energy = energy_per_length(cable.axial, laws_of(t), segment.memory, stretch - 1.0)
        energy *= segment.alive
        heights = a.position[2] + b.position[2]
        common = share * (segment.tension * stretch - energy - 0.5 * density * gravity * heights)
        common += h * (0.5 * (dot(ua, ua) + dot(ub, ub)) - dot(carried, g)) / length
        f1 += common - b1 * da - e1 * db
        f2 += common + b2 * da + e2 * db
        stiffness = segment.stiffness * (stretch * share) ** 2
        g2 = dot(g, g) * h * inverse_dh2
        k11 += stiffness + g2 * (b1 * b1 + e1 * e1)
        k12 += stiffness - g2 * (b1 * b2 + e1 * e2)
        k22 += stiffness + g2 * (b2 * b2 + e2 * e2)
    cable.stop_force, cable.stop_slope = _stop_of_cable(cable, dh)
    push = cable.stop_force
    if cable.bending_energy != 0.0:
        push += cable.bending_energy / length
    ends = cable.ends
    right = cable.ends_right
    if has_1:
        right[12] += f1 + push
        ends[12, 12] += k11 + cable.stop_slope
    if has_2:
        right[13] += f2 + push
        ends[13, 13] += k22 + cable.stop_slope
    if has_1 and has_2:
        ends[12, 13] += k12 + cable.stop_slope


@compiled()
def add_wound(t, cable):
    """Add weight and momentum of the cable that lies on the winches at a cable's ends."""
    density = cable.linear_density
    rows = rows_of(t)
    for end in range(2):
        if cable.reel[end] >= 0 and shafts_of(t)[cable.reel[end]].kind != PULLEY:
            i = end * cable.segments
            point = nodes_of(t)[end_node(cable, end)].stage
            v = point.velocity
            weight = add(point.acceleration, (0.0, 0.0, t.gravity))
            add_right(rows, cable, i, scale(density * cable.out_rate[end], v))
            _add_column(rows, cable, i, end, scale(-density, weight))
            height = t.gravity * point.position[2]
            cable.ends_right[12 + end] += density * (height - 0.5 * dot(v, v))


# ---------- Energy and momentum of shafts and of cable that runs


@compiled()
def _passing(t, c, i):
    """Rate at which cable passes node i of cable `c` towards end 2, by the state [m/s]."""
    cable = cables_of(t)[c]
    passing = 0.0
    for end in range(2):
        if cable.reel[end] >= 0:
            shaft = shafts_of(t)[cable.reel[end]]
            rate = _sign_at(shaft, c, end) * radius_at(shaft, shaft.angle)[0] * shaft.rate
            share = i / cable.segments
            passing += rate * (1.0 - share) if end == 0 else -rate * share
    return passing


@compiled()
def reel_energy(t):
    """Kinetic energy of shafts and of cable that runs, beyond that of the nodes [J]."""
    energy = 0.0
    for shaft in shafts_of(t):
        body = bodies_of(t)[shaft.body]
        turning = dot(rotate(body.rotation, shaft.axis), body.omega)
        energy += shaft.inertia * shaft.rate * (0.5 * shaft.rate + turning)
    for c in range(cables_of(t).shape[0]):
        cable = cables_of(t)[c]
        if cable.reels == 0:
            continue
        rest = cable.rest_length / cable.segments
        h = 0.5 * cable.linear_density * rest
        for s in range(cable.segments):
            a, b = nodes_of(t)[cable.first_node + s], nodes_of(t)[cable.first_node + s + 1]
            g = scale(1.0 / rest, sub(b.position, a.position))
            for i in range(2):
                passing = _passing(t, c, s + i)
                v = nodes_of(t)[cable.first_node + s + i].velocity
                energy += h * passing * dot(g, add_scaled(v, 0.5 * passing, g))
    return energy


@compiled()
def add_reel_momenta(t, linear, angular):
    """Add momentum, and angular momentum about the origin, of shafts and of cable that runs."""
    for shaft in shafts_of(t):
        axis = rotate(bodies_of(t)[shaft.body].rotation, shaft.axis)
        increase(angular, scale(shaft.inertia * shaft.rate, axis))
    for c in range(cables_of(t).shape[0]):
        cable = cables_of(t)[c]
        if cable.reels == 0:
            continue
        half = 0.5 * cable.linear_density  # times rest length times g: half times the gap
        for s in range(cable.segments):
            a, b = nodes_of(t)[cable.first_node + s], nodes_of(t)[cable.first_node + s + 1]
            gap = sub(b.position, a.position)
            for i in range(2):
                momentum = scale(half * _passing(t, c, s + i), gap)
                increase(linear, momentum)
                place = nodes_of(t)[cable.first_node + s + i].position
                increase(angular, cross(place, momentum))
