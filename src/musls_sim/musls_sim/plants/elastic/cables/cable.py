"""Forces of one cable and their derivatives in a stage, as equations of its points.

Axial law, inertia, weight, air and ground of the lumps, bending moments of the joints; the errors
that a linear solution leaves.
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
    norm,
    put,
    scale,
    sub,
)
from musls_sim.plants.elastic.bodies import SET_IN_M, press, push_corner
from musls_sim.plants.elastic.cables.line import axial_law, remember, remembers
from musls_sim.plants.elastic.solver import (
    add_block,
    add_right,
    clear_ends,
    end_node,
    row_of,
    set_rows,
)
from musls_sim.plants.elastic.state import (
    NOTHING,
    bodies_of,
    cables_of,
    corners_of,
    laws_of,
    nodes_of,
    rows_of,
    segments_of,
    solids_of,
    unknowns_of,
)
from musls_sim.plants.rigid_body import (
    GROUND_DAMPING_1_S,
    GROUND_STIFFNESS_1_S2,
    soft_ground,
)

SHORTEST = 1e-9
"""Length below which a segment has no direction [m]."""

TENSION_SHARE = 1e-3
"""Share of a cable's tension by which the linear tension may miss the true one."""

STRAIGHT_RAD = 1e-4
"""Kink below which a joint has no plane of its own."""

FOLDED = 1e-6
"""Square of the sum of a joint's directions below which it is folded flat and has no mean one."""

SMALL_SINE2 = 4e-3
"""Square of the sine of a kink up to which its angle is a series, exact to rounding."""


@compiled()
def _stiffness_block(segment):
    """Derivative of a segment's force by the gap of its nodes, (xx, xy, xz, yy, yz, zz)."""
    x, y, z = segment.direction[0], segment.direction[1], segment.direction[2]
    g = segment.geometric_stiffness
    k = segment.stiffness - g
    return k * x * x + g, k * x * y, k * x * z, k * y * y + g, k * y * z, k * z * z + g


@compiled()
def _stretch(segment, a, b, feed):
    """Direction, length and its rate, strain and its rate of a segment between two points.

    `feed` is the rate of the rest length over the rest length.
    """
    reach = sub(b.position, a.position)
    length = norm(reach)
    direction = scale(1.0 / max(length, SHORTEST), reach)
    rate = dot(direction, sub(b.velocity, a.velocity))
    inverse = segment.inverse_rest_length
    return direction, length, rate, length * inverse - 1.0, (rate - feed * length) * inverse


@compiled(inlined=True)
def _pull(cable, laws, segment, a, b, feed, faster, since, guessed):
    """Tension and stiffness of a segment between two points, about which it is linear.

    Points that are `guessed` are off by more than a segment of little tension is stretched: it is
    linear as in the state, else it would be slack in every guess, and taut in no solution.
    """
    direction, length, rate, strain, strain_rate = _stretch(segment, a, b, feed)
    was_taut = guessed and segment.taut > 0.0
    tension, _, slope = axial_law(
        cable.axial, laws, segment.memory, strain, strain_rate, faster, since, was_taut
    )
    if segment.alive == 0.0:
        tension = slope = 0.0
    put(segment.direction, direction)
    segment.length = length
    segment.length_rate = rate
    segment.tension = tension
    segment.stiffness = slope * segment.inverse_rest_length
    segment.geometric_stiffness = max(tension, 0.0) * (1.0 / max(length, SHORTEST))


# ---------- Lumps: inertia, weight, air, ground and obstacles


@compiled()
def surface_force(t, cable, i, losses, dh):
    """Force of ground and obstacles on inner node i of a cable, and minus its derivative."""
    point = nodes_of(t)[cable.first_node + i].stage
    force = (0.0, 0.0, 0.0)
    slope = NOTHING
    if cable.surfaces > 0:
        for k in range((i - 1) * cable.surfaces, i * cable.surfaces):
            corner = corners_of(t)[cable.first_corner + k]
            block = push_corner(t, corner, point.position, point.velocity, dh)
            if corner.normal_force > 0.0:
                force = add(force, corner.force)
                slope = sum_of(slope, block)
                losses.ground -= dot(corner.force, point.velocity)
        return force, slope
    # Compliant ground, the law of `rigid_body.add_soft_ground` taken implicitly.
    mass = nodes_of(t)[cable.first_node + i].mass
    stiff = mass * GROUND_STIFFNESS_1_S2
    damp = mass * GROUND_DAMPING_1_S
    depth, n, moves = soft_ground(solids_of(t), point.position)
    v = sub(point.velocity, moves)
    rise = dot(v, n)
    up, damp, steep = press(stiff, damp, SET_IN_M, depth, rise, dh)
    along = add_scaled(v, -rise, n)
    losses.ground += damp * dot(along, point.velocity) - up * dot(n, point.velocity)
    aside = damp / dh
    more = steep - aside
    return add_scaled(scale(-damp, along), up, n), (
        aside * (1.0 - n[0] * n[0]) + steep * (n[0] * n[0]),
        more * (n[0] * n[1]),
        more * (n[0] * n[2]),
        aside * (1.0 - n[1] * n[1]) + steep * (n[1] * n[1]),
        more * (n[1] * n[2]),
        aside * (1.0 - n[2] * n[2]) + steep * (n[2] * n[2]),
    )


@compiled(inlined=True)
def air_drag(cable, length, both, flow):
    """Quadratic drag of the air on a length of cable, and its damping, the same in all directions.

    `both` is the sum of the directions of the unbroken segments there.
    """
    size = norm(both)
    along = both
    if size > 1e-9:  # else folded flat, or broken on both sides: no direction, all drag is across
        along = both[0] / size, both[1] / size, both[2] / size
    speed = dot(flow, along)
    side = add_scaled(flow, -speed, along)
    across = length * cable.drag_across * norm(side)
    lengthwise = length * cable.drag_along * abs(speed)
    return add_scaled(scale(-across, side), -lengthwise * speed, along), across + lengthwise


@compiled()
def sum_of(a, b):
    """Sum of two symmetric matrices in six numbers."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5]


# ---------- Equations
#
# All derivatives are with respect to positions; velocities follow positions by dv = dx / (d h).
# The matrix is kept symmetric and positive definite: what is left out (a pushing segment's
# transverse softening, the turning of a damper) is small and only costs iterations.


@compiled()
def assemble_cable(t, cable, losses, dh, guessed):
    """Tensions, inertia, weight, air and ground of a cable; `guessed` as in `_pull`."""
    nodes = nodes_of(t)
    segments = segments_of(t)
    rows = rows_of(t)
    laws = laws_of(t)
    faster = 1.0 / dh
    feed = cable.rest_length_rate / cable.rest_length
    airy = cable.drag_across > 0.0 or cable.drag_along > 0.0
    surfaces = cable.surfaces > 0
    # Of the segment before: stiffness, pull, direction (none where it is broken), half its length.
    below = NOTHING
    pull_before = (0.0, 0.0, 0.0)
    behind = (0.0, 0.0, 0.0)
    half = 0.0
    clear_ends(rows, cable)
    for i in range(cable.segments + 1):
        node = nodes[cable.first_node + i]
        block = NOTHING
        pull = (0.0, 0.0, 0.0)
        ahead = (0.0, 0.0, 0.0)
        length = half
        if i < cable.segments:
            segment = segments[cable.first_segment + i]
            far = nodes[cable.first_node + i + 1]
            _pull(cable, laws, segment, node.stage, far.stage, feed, faster, t.since, guessed)
            block = _stiffness_block(segment)
            pull = scale(segment.tension, segment.direction)
            ahead = scale(segment.alive, segment.direction)
            half = 0.5 * segment.rest_length
            length += half
        a = node.stage.acceleration
        inertia = node.mass * (faster * faster)
        force = add_scaled(sub(pull, pull_before), -node.mass, (a[0], a[1], a[2] + t.gravity))
        own = sum_of(sum_of(below, block), (inertia, 0.0, 0.0, inertia, 0.0, inertia))
        outer = (0.0, 0.0, 0.0)
        slope = NOTHING
        if (surfaces or node.stage.position[2] < t.soft_below) and 0 < i < cable.segments:
            outer, slope = surface_force(t, cable, i, losses, dh)
        if airy:
            flow = sub(node.stage.velocity, t.wind)
            drag, damping = air_drag(cable, length, add(behind, ahead), flow)
            outer = add(outer, drag)
            more = damping / dh
            slope = sum_of(slope, (more, 0.0, 0.0, more, 0.0, more))
            losses.air += dot(drag, node.stage.velocity)
        force = add(force, outer)
        own = sum_of(own, slope)
        set_rows(rows, cable, row_of(cable, i), own, block if cable.row_step > 0 else below, force)
        below = block
        pull_before = pull
        behind = ahead


@compiled()
def tension_error(t, cable, losses, dh):
    """Tensions by the linear law; by how much they miss the true one, over what is allowed."""
    nodes = nodes_of(t)
    segments = segments_of(t)
    laws = laws_of(t)
    worst = largest = loss = switched = 0.0
    faster = 1.0 / dh
    shift = cable.length_shift / cable.segments
    feed = cable.rest_length_rate / cable.rest_length
    for i in range(cable.segments):
        segment = segments[cable.first_segment + i]
        a, b = nodes[cable.first_node + i], nodes[cable.first_node + i + 1]
        longer = dot(segment.direction, sub(b.shift, a.shift))
        if cable.reels > 0:
            longer -= segment.length / (segment.rest_length - shift) * shift
        segment.tension += segment.stiffness * longer
        if segment.alive == 0.0:
            continue
        linear = segment.tension
        _, _, _, strain, strain_rate = _stretch(segment, a.stage, b.stage, feed)
        tension, elastic, _ = axial_law(
            cable.axial, laws, segment.memory, strain, strain_rate, faster, t.since, False
        )
        worst = max(worst, abs(tension - linear))
        largest = max(largest, abs(linear))
        loss += (linear - elastic) * strain_rate * segment.rest_length
        if cable.axial.slack and (linear > 0.0) != (segment.taut > 0.0):
            switched += 1.0
    losses.cables += loss
    losses.switched += switched
    return worst / (TENSION_SHARE * largest + t.tolerance)


@compiled()
def remember_strains(t):
    """Move on what the segments remember to the state at the end of a step; returns energy [J].

    That is what users' laws stored meanwhile.
    """
    energy = 0.0
    for cable in cables_of(t):
        if remembers(cable.axial):
            feed = cable.rest_length_rate / cable.rest_length
            for i in range(cable.segments):
                segment = segments_of(t)[cable.first_segment + i]
                a, b = nodes_of(t)[cable.first_node + i], nodes_of(t)[cable.first_node + i + 1]
                _, _, _, strain, rate = _stretch(segment, a, b, feed)
                more = remember(cable.axial, segment.memory, strain, rate, t.since)
                energy += more * segment.rest_length * segment.alive
    return energy


# ---------- Momentum of the end lumps


@compiled()
def note_ends(t, dh):
    """Accelerations of the end nodes by the linear solution."""
    for cable in cables_of(t):
        for end in range(2):
            node = nodes_of(t)[end_node(cable, end)]
            put(
                node.linear_acceleration,
                add_scaled(node.stage.acceleration, 1.0 / (dh * dh), node.shift),
            )


@compiled()
def keep_momentum(t, dh):
    """Make momentum exact: a turning body moves its cable ends a little off the linear solution.

    The balance holds for the linear accelerations of the end lumps; the difference goes to the
    body they are on.
    """
    for body in bodies_of(t):
        put(body.lump_momentum, (0.0, 0.0, 0.0))
        body.lump_mass = 0.0
    for cable in cables_of(t):
        for end in range(2):
            body = bodies_of(t)[cable.body[end]]
            node = nodes_of(t)[end_node(cable, end)]
            off = sub(node.stage.acceleration, node.linear_acceleration)
            put(body.lump_momentum, add_scaled(body.lump_momentum, node.mass, off))
            body.lump_mass += node.mass
    for body in bodies_of(t):
        if body.free and body.lump_mass > 0.0:
            change = scale(-1.0 / (body.mass + body.lump_mass), body.lump_momentum)
            put(body.lump_acceleration, change)
            _accelerate(body.stage, change, dh)
    for cable in cables_of(t):
        for end in range(2):
            body = bodies_of(t)[cable.body[end]]
            if body.free:
                node = nodes_of(t)[end_node(cable, end)]
                _accelerate(node.stage, body.lump_acceleration, dh)


@compiled()
def _accelerate(stage, change, dh):
    """Change an acceleration, and velocity and position with it."""
    increase(stage.acceleration, change)
    increase(stage.velocity, scale(dh, change))
    increase(stage.position, scale(dh * dh, change))


# ---------- Bending
#
# A joint between two segments with unit directions t1, t2 (angle a between them) has the energy k
# a^2 / 2, k = EI over the mean rest length. Its gradient is the force pattern
#
#     on the next node      (k a / sin a) (t1 - cos a t2) / l2,
#     on the node before   -(k a / sin a) (t2 - cos a t1) / l1,
#
# and minus their sum on the joint's node: no net force and no net moment. It straightens, and for
# a small angle it is Euler and Bernoulli's M = EI curvature.
#
# Damping works on the rate of the curvature vector, the part of w = t2 x t2' - t1 x t1' across the
# joint: M = c w. Its moment has a part along the cable, c w (t2 - t1), where the plane of the kink
# turns (whirling). A clamp takes it up by the twist of the cable, so the rates t' are those that
# the clamped body sees, and the moments about its axes act on it: no net moment, and no damping
# where rod and body turn together. Between two clamps both share by the distance. A cable on hinges
# turns about itself instead: only the part in the plane of the kink is damped, but in an (almost)
# straight joint, where it has no plane yet.
#
# At a clamped end t1 (or t2) is the direction of the clamp, which gets the reaction moment.


@compiled()
def joint_moment(t1, t2, u1, u2, stiffness, damping, held):
    """Moment of a joint between the directions t1 and t2, which change at the rates u1 and u2.

    `held`: whether a clamp keeps the cable from turning about itself.

    Returns:
        Angle, the moment as vectors across t1 (second) and t2 (first), the moment of the damping,
        power lost by it, and its projector (xx, xy, xz, yy, yz, zz).
    """
    c = dot(t1, t2)
    across = cross(t1, t2)
    s2 = dot(across, across)
    sine = math.sqrt(s2)
    if s2 < SMALL_SINE2 and c > 0.0:  # asin(s) / s
        far = 5.0 / 112.0 + s2 * (35.0 / 1152.0 + s2 * 63.0 / 2816.0)
        ratio = 1.0 + s2 * (1.0 / 6.0 + s2 * (3.0 / 40.0 + s2 * far))
        angle = ratio * sine
    else:
        angle = math.atan2(sine, c)
        ratio = angle / sine if sine > 1e-9 else 1.0
    a = add_scaled(t1, -c, t2)  # length sine, decreases the angle when added to t2
    b = add_scaled(t2, -c, t1)
    on_2 = scale(stiffness * ratio, a)
    on_1 = scale(stiffness * ratio, b)
    if damping == 0.0:
        return angle, on_2, on_1, (0.0, 0.0, 0.0), 0.0, NOTHING
    turning = sub(cross(t2, u2), cross(t1, u1))
    mean = add(t1, t2)
    gap = sub(t2, t1)
    rate = add_scaled(turning, -dot(mean, turning) / max(dot(mean, mean), FOLDED), mean)
    projector = _across(t1, t2)
    if not held:
        every = STRAIGHT_RAD**4 / (STRAIGHT_RAD**4 + s2 * s2)  # share that acts in both directions
        plane = (1.0 - every) / max(s2, 1e-24)
        rate = add_scaled(rate, (every - 1.0) * dot(gap, rate) / max(dot(gap, gap), 1e-24), gap)
        half = 0.5 * plane
        projector = (
            half * (a[0] * a[0] + b[0] * b[0]) + every,
            half * (a[0] * a[1] + b[0] * b[1]),
            half * (a[0] * a[2] + b[0] * b[2]),
            half * (a[1] * a[1] + b[1] * b[1]) + every,
            half * (a[1] * a[2] + b[1] * b[2]),
            half * (a[2] * a[2] + b[2] * b[2]) + every,
        )
    moment = scale(damping, rate)
    on_2 = sub(on_2, cross(moment, t2))
    on_1 = add(on_1, cross(moment, t1))
    return angle, on_2, on_1, moment, dot(moment, turning), projector


@compiled()
def _across(t1, t2):
    """Projector across both directions of a joint, (xx, xy, xz, yy, yz, zz)."""
    return (
        1.0 - 0.5 * (t1[0] * t1[0] + t2[0] * t2[0]),
        -0.5 * (t1[0] * t1[1] + t2[0] * t2[1]),
        -0.5 * (t1[0] * t1[2] + t2[0] * t2[2]),
        1.0 - 0.5 * (t1[1] * t1[1] + t2[1] * t2[1]),
        -0.5 * (t1[1] * t1[2] + t2[1] * t2[2]),
        1.0 - 0.5 * (t1[2] * t1[2] + t2[2] * t2[2]),
    )


@compiled()
def _stiffness_of_joint(t1, t2, stiffness, damping, projector):
    """Second derivative of a joint's energy (without its change of direction) and its damping."""
    (ex, exy, exz, ey, eyz, ez) = _across(t1, t2)
    (dx, dxy, dxz, dy, dyz, dz) = projector
    return (
        stiffness * ex + damping * dx,
        stiffness * exy + damping * dxy,
        stiffness * exz + damping * dxz,
        stiffness * ey + damping * dy,
        stiffness * eyz + damping * dyz,
        stiffness * ez + damping * dz,
    )


@compiled()
def _share_of_twist(cable, i):
    """Shares of the clamps at both ends in what twists the cable at joint i."""
    if cable.clamped[0] and cable.clamped[1]:
        return 1.0 - i / cable.segments, i / cable.segments
    return float(cable.clamped[0]), float(cable.clamped[1])


@compiled()
def assemble_bending(t, cable, losses, dh):
    """Moments of all joints of a cable, as forces on three nodes; its clamps are up to date."""
    nodes = nodes_of(t)
    rows = rows_of(t)
    count = cable.segments
    damped = cable.bending_damping > 0.0
    has_clamp = cable.clamped[0] + cable.clamped[1] > 0
    omega_1 = bodies_of(t)[cable.body[0]].stage.omega
    omega_2 = bodies_of(t)[cable.body[1]].stage.omega
    energy = i1 = 0.0
    t1 = t2 = u1 = u2 = twist_1 = twist_2 = (0.0, 0.0, 0.0)
    for i in range(count + 1):
        before = segments_of(t)[cable.first_segment + max(i - 1, 0)]
        after = segments_of(t)[cable.first_segment + min(i, count - 1)]
        first, last = i == 0, i == count
        weight = 1.0 / after.rest_length
        if first:
            t1, u1 = _clamp(cable, i // count)
            weight *= cable.clamp_factor[0]
        else:
            t1 = scale(1.0, before.direction)
            u1 = u2
        if last:
            t2, u2 = _clamp(cable, i // count)
            i2 = 0.0
            weight *= cable.clamp_factor[1]
        else:
            t2 = scale(1.0, after.direction)
            i2 = 1.0 / max(after.length, SHORTEST)
            if damped:  # rate of the direction
                a, b = nodes[cable.first_node + i].stage, nodes[cable.first_node + i + 1].stage
                gap = sub(b.velocity, a.velocity)
                u2 = scale(i2, add_scaled(gap, -after.length_rate, after.direction))
        no_clamp = (first and cable.clamped[0] == 0) or (last and cable.clamped[1] == 0)
        if no_clamp or before.alive == 0.0 or after.alive == 0.0:
            i1 = i2
            continue
        # The chord of a slack segment turns faster than the rope, which is bent within it.
        slack = min(before.length / before.rest_length, after.length / after.rest_length, 1.0)
        stiffness = cable.bending_stiffness * weight
        damping = cable.bending_damping * weight * slack * slack
        share_1, share_2 = _share_of_twist(cable, i)
        spin = add_scaled(scale(share_1, omega_1), share_2, omega_2)
        seen_1 = sub(u1, cross(spin, t1))
        seen_2 = sub(u2, cross(spin, t2))
        angle, on_2, on_1, moment, loss, projector = joint_moment(
            t1, t2, seen_1, seen_2, stiffness, damping, has_clamp
        )
        twist = sub(scale(dot(moment, t1), t1), scale(dot(moment, t2), t2))
        twist_1 = add_scaled(twist_1, share_1, twist)
        twist_2 = add_scaled(twist_2, share_2, twist)
        losses.cables += loss
        energy += 0.5 * stiffness * angle * angle
        block = _stiffness_of_joint(t1, t2, stiffness, damping / dh, projector)
        # Share of each point in t2 - t1, B of K = B^T P B: a clamp's direction stands for itself.
        low = -1.0 if first else i1
        middle = -i1 - i2
        high = 1.0 if last else i2
        at = -1 if first else i - 1
        add_block(rows, cable, at, at, block, low * low)
        add_block(rows, cable, at, i, block, low * middle)
        add_block(rows, cable, i, i, block, middle * middle)
        add_block(rows, cable, at, i + 1, block, low * high)
        add_block(rows, cable, i, i + 1, block, middle * high)
        add_block(rows, cable, i + 1, i + 1, block, high * high)
        # -dE/dt2 moves the upper node by 1 / l2 and the joint's node against it, the same below.
        add_right(rows, cable, i + 1, scale(high, on_2))
        add_right(rows, cable, i, add(scale(i1, on_1), scale(-i2, on_2)))
        add_right(rows, cable, at, scale(-low, on_1))
        i1 = i2
    cable.bending_energy = energy
    put(cable.twist[0], twist_1)
    put(cable.twist[1], twist_2)


@compiled()
def twist_bodies(t, cable):
    """Add the twisting moments of a cable on the bodies that it is clamped to to their balance."""
    unknowns = unknowns_of(t)
    for end in range(2):
        body = bodies_of(t)[cable.body[end]]
        moment = cable.twist[end]
        if body.dof >= 0:
            for k in range(3):
                unknowns[body.dof + 3 + k].value += moment[k]
        elif body.free:  # a leaf
            increase(body.moment, moment)


@compiled()
def _clamp(cable, end):
    """Direction of a clamp and its rate."""
    axis = cable.axis_world[end]
    rate = cable.axis_rate[end]
    return (axis[0], axis[1], axis[2]), (rate[0], rate[1], rate[2])
