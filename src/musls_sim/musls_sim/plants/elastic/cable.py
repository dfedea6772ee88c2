"""Forces of one cable and their derivatives in a stage, as equations of its points.

Axial law, inertia, weight, air and ground of the lumps, bending moments of the joints; the errors
that a linear solution leaves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from musls_description.compiled import compiled
from musls_description.errors import ConfigError
from musls_description.vectors import (
    add,
    add_scaled,
    cross,
    dot,
    increase,
    norm,
    put,
    rotate,
    scale,
    sub,
)
from musls_sim.plants.elastic.bodies import add_point, point_shift, pull_at
from musls_sim.plants.elastic.solver import add_band, add_block, add_right, end_node, tail_row
from musls_sim.plants.elastic.state import (
    FROM_LEAF,
    LAW,
    bodies_of,
    cables_of,
    laws_of,
    matrix_of,
    nodes_of,
    rows_of,
    segments_of,
)
from musls_sim.plants.rigid_body import GROUND_DAMPING_N_S_M2, GROUND_STIFFNESS_N_M2

Array = NDArray[np.float64]

LEAST_END_SLOPE = 0.2
"""Slope of a table at its ends over that of the straight line between the last two pairs."""

SHORTEST = 1e-9
"""Length below which a segment has no direction [m]."""

TENSION_SHARE = 1e-3
"""Share of a cable's tension by which the linear tension may miss the true one."""

STRAIGHT_RAD = 1e-4
"""Kink below which a joint has no plane of its own."""

SMALL_SINE2 = 4e-3
"""Square of the sine of a kink up to which its angle is a series, exact to rounding."""


def law_records(table: Sequence[tuple[float, float]], linear: bool = False) -> NDArray[np.void]:
    """Pieces (`state.LAW`) of an axial law given as pairs (strain, force [N]).

    Both strictly increasing, at least two pairs; monotone cubics between them, or straight lines.

    Raises:
        ConfigError: Not monotone, or too short.
    """
    strain, force = np.array(table, float).T
    if len(strain) < 2 or (np.diff(strain) <= 0.0).any() or (np.diff(force) <= 0.0).any():
        raise ConfigError(
            f"cable law: strain and force must both increase from row to row, not {list(table)}"
        )
    width = np.diff(strain)
    pieces = np.zeros((4, len(strain) - 1))
    if linear:
        pieces[2], pieces[3] = np.diff(force) / width, force[:-1]
    else:
        # SciPy may choose slope 0 at an end, where a cable would have no stiffness.
        secants = np.diff(force) / width
        slopes = PchipInterpolator(strain, force).derivative()(strain)
        slopes[0] = max(slopes[0], LEAST_END_SLOPE * secants[0])
        slopes[-1] = max(slopes[-1], LEAST_END_SLOPE * secants[-1])
        pieces[:] = CubicHermiteSpline(strain, force, slopes).c
    slope = pieces[2, -1] + width[-1] * (2.0 * pieces[1, -1] + 3.0 * width[-1] * pieces[0, -1])
    laws = np.zeros(len(strain) + 1, LAW)
    laws["strain"] = [strain[0], *strain]
    laws["coefficients"][0, :2] = force[0], pieces[2, 0]  # below the table
    laws["coefficients"][1:-1] = pieces[::-1].T
    laws["coefficients"][-1, :2] = force[-1], slope
    area = width * (
        pieces[3] + width * (pieces[2] / 2 + width * (pieces[1] / 3 + width * pieces[0] / 4))
    )
    laws["energy"][1:] = np.concatenate([[0.0], np.cumsum(area)])
    laws["energy"] -= table_law(laws, 0, len(laws), 0.0)[2]
    return laws


# A table is interpolated by monotone cubics (Fritsch and Butland, as in SciPy's
# PchipInterpolator) and goes on along its end slopes. Damping acts on the rate of the strain. A
# slack cable (the default) cannot push: its tension is max(0, F(strain) + c strain rate), which
# is continuous in position and velocity. With damping, tension therefore begins when F + c
# strain' = 0, earlier than the strain by at most the relaxation time c / EA.


@compiled()
def table_law(laws, first, count, strain):
    """Force [N], slope [N] and energy per metre [J/m] of a table's law at a strain."""
    k = first + count - 1
    while k > first + 1 and strain < laws[k].strain:
        k -= 1
    if k == first + 1 and strain < laws[k].strain:
        k = first
    piece = laws[k]
    a, e = piece.coefficients, strain - piece.strain
    force = a[0] + e * (a[1] + e * (a[2] + e * a[3]))
    slope = a[1] + e * (2.0 * a[2] + e * 3.0 * a[3])
    area = e * (a[0] + e * (a[1] / 2 + e * (a[2] / 3 + e * a[3] / 4)))
    return force, slope, piece.energy + area


@compiled()
def axial_law(cable, laws, strain, strain_rate, dh):
    """Tension of a segment: with damping, without, and the derivative by the strain."""
    if cable.law_rows > 0:
        elastic, slope, _ = table_law(laws, cable.law_first, cable.law_rows, strain)
    else:
        elastic, slope = cable.axial_stiffness * strain, cable.axial_stiffness
    tension = elastic + cable.axial_damping * strain_rate
    slope += cable.axial_damping / dh
    if cable.slack == 1:
        elastic = max(elastic, 0.0)
        if tension <= 0.0:
            tension, slope = 0.0, 0.0
    return tension, elastic, slope


@compiled()
def energy_per_length(cable, laws, strain):
    """Strain energy per rest length [J/m]."""
    if cable.slack == 1 and strain <= 0.0:
        return 0.0
    if cable.law_rows > 0:
        return table_law(laws, cable.law_first, cable.law_rows, strain)[2]
    return 0.5 * cable.axial_stiffness * strain * strain


@compiled()
def _stiffness_block(segment):
    """Derivative of a segment's force by the gap of its nodes, (xx, xy, xz, yy, yz, zz)."""
    x, y, z = segment.direction[0], segment.direction[1], segment.direction[2]
    g = segment.geometric_stiffness
    k = segment.stiffness - g
    return k * x * x + g, k * x * y, k * x * z, k * y * y + g, k * y * z, k * z * z + g


@compiled()
def _stretch(cable, laws, segment, a, b, dh):
    """Direction, length, tension and stiffness of a segment from its nodes."""
    reach = sub(b.position, a.position)
    length = norm(reach)
    inverse = 1.0 / max(length, SHORTEST)
    direction = scale(inverse, reach)
    rate = dot(direction, sub(b.velocity, a.velocity))
    stretch = length * segment.inverse_rest_length
    growth = rate - cable.rest_length_rate / cable.segments * stretch
    tension, elastic, slope = axial_law(
        cable, laws, stretch - 1.0, growth * segment.inverse_rest_length, dh
    )
    if segment.alive == 0.0:
        tension = elastic = slope = 0.0
    put(segment.direction, direction)
    segment.length, segment.length_rate = length, rate
    segment.tension, segment.elastic_tension = tension, elastic
    segment.stiffness = slope * segment.inverse_rest_length
    segment.geometric_stiffness = max(tension, 0.0) * inverse


# ---------- Lumps: inertia, weight, air, ground


@compiled()
def in_air_or_ground(cable, node, system):
    """Whether air or ground act on a node of a cable."""
    airy = cable.drag_across > 0.0 or cable.drag_along > 0.0
    return airy or node.stage.position[2] < system.ground


@compiled()
def outside_force(t, cable, i, losses, dh):
    """Force of ground and air on node i of a cable, and minus its derivative, per component."""
    point = nodes_of(t)[cable.first_node + i].stage
    first = cable.first_segment + i
    force, slope = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    share = 0.0
    if i > 0:
        share += 0.5 * segments_of(t)[first - 1].rest_length
    if i < cable.segments:
        share += 0.5 * segments_of(t)[first].rest_length
    if point.position[2] < t.ground and 0 < i < cable.segments:
        # Compliant ground, the law of `rigid_body.add_soft_ground` taken implicitly.
        stiff, damp = share * GROUND_STIFFNESS_N_M2, share * GROUND_DAMPING_N_S_M2
        v = point.velocity
        up = stiff * (t.ground - point.position[2]) - damp * v[2]
        if up > 0.0:
            force = -damp * v[0], -damp * v[1], up
            slope = damp / dh, damp / dh, stiff + damp / dh
            losses.ground += damp * (v[0] * v[0] + v[1] * v[1]) - up * v[2]
    if cable.drag_across > 0.0 or cable.drag_along > 0.0:
        # Quadratic drag of the length at the node, across and along its direction.
        along = _direction_at(t, cable, i)
        flow = sub(point.velocity, t.wind)
        speed = dot(flow, along)
        side = add_scaled(flow, -speed, along)
        across = share * cable.drag_across * norm(side)
        length = share * cable.drag_along * abs(speed)
        drag = add(scale(-across, side), scale(-length * speed, along))
        more = (across + length) / dh
        force, slope = add(force, drag), add(slope, (more, more, more))
        losses.air += dot(drag, point.velocity)
    return force, slope


@compiled()
def _direction_at(t, cable, i):
    """Direction of a cable at a node: the mean of the segments beside it that are not broken."""
    first, mean = cable.first_segment + i, (0.0, 0.0, 0.0)
    if i > 0 and segments_of(t)[first - 1].alive > 0.0:
        mean = add(mean, segments_of(t)[first - 1].direction)
    if i < cable.segments and segments_of(t)[first].alive > 0.0:
        mean = add(mean, segments_of(t)[first].direction)
    size = norm(mean)
    if size > 1e-9:  # else folded flat, or broken on both sides: no direction, all drag is across
        mean = mean[0] / size, mean[1] / size, mean[2] / size
    return mean


# ---------- Any cable
#
# All derivatives are with respect to positions; velocities follow positions by dv = dx / (d h).
# The matrix is kept symmetric and positive definite: what is left out (a pushing segment's
# transverse softening, the turning of a damper) is small and only costs iterations.


@compiled()
def assemble_cable(t, cable, losses, dh):
    """Tensions, inertia, weight, air and ground of a cable with a border."""
    nodes, segments, rows, system = nodes_of(t), segments_of(t), rows_of(t), t
    for s in range(cable.segments):
        segment, first = segments[cable.first_segment + s], cable.first_node + s
        _stretch(cable, laws_of(t), segment, nodes[first].stage, nodes[first + 1].stage, dh)
        pull, block = scale(segment.tension, segment.direction), _stiffness_block(segment)
        add_block(rows, cable, s, s, block, 1.0)
        add_block(rows, cable, s, s + 1, block, -1.0)
        add_block(rows, cable, s + 1, s + 1, block, 1.0)
        add_right(rows, cable, s, pull)
        add_right(rows, cable, s + 1, scale(-1.0, pull))
    for i in range(cable.segments + 1):
        node = nodes[cable.first_node + i]
        inertia = node.mass / (dh * dh)
        a = node.stage.acceleration
        force = scale(-node.mass, (a[0], a[1], a[2] + system.gravity))
        slope = inertia, inertia, inertia
        if in_air_or_ground(cable, node, system):
            more, steeper = outside_force(t, cable, i, losses, dh)
            force, slope = add(force, more), add(slope, steeper)
        add_right(rows, cable, i, force)
        add_block(rows, cable, i, i, (slope[0], 0.0, 0.0, slope[1], 0.0, slope[2]), 1.0)


@compiled()
def tension_error(t, cable, losses, dh):
    """Tensions by the linear law; by how much they miss the true one, over what is allowed."""
    worst = largest = 0.0
    shift = cable.length_shift / cable.segments
    for i in range(cable.segments):
        segment = segments_of(t)[cable.first_segment + i]
        a, b = nodes_of(t)[cable.first_node + i], nodes_of(t)[cable.first_node + i + 1]
        longer = dot(segment.direction, sub(b.shift, a.shift))
        longer -= segment.length / (segment.rest_length - shift) * shift
        segment.tension += segment.stiffness * longer
        if segment.alive == 0.0:
            continue
        linear, inverse = segment.tension, 1.0 / segment.rest_length
        reach = sub(b.stage.position, a.stage.position)
        length = norm(reach)
        rate = dot(reach, sub(b.stage.velocity, a.stage.velocity)) / max(length, SHORTEST)
        growth = rate - cable.rest_length_rate / cable.segments * length * inverse
        tension, elastic, _ = axial_law(
            cable, laws_of(t), length * inverse - 1.0, growth * inverse, dh
        )
        worst, largest = max(worst, abs(tension - linear)), max(largest, abs(linear))
        segment.length, segment.length_rate, segment.elastic_tension = length, rate, elastic
        losses.cables += (linear - elastic) * growth
        if cable.slack and (linear > 0.0) != (segment.taut > 0.0):
            losses.switched += 1.0
    return worst / (TENSION_SHARE * largest + t.tolerance)


# ---------- The fast path: no bending, end 1 prescribed or a leaf; nothing but a band


@compiled()
def assemble_fast_cable(t, cable, losses, dh):
    """Equations of a cable without a border, each row written at once."""
    nodes, segments, rows, system = nodes_of(t), segments_of(t), rows_of(t), t
    airy = cable.drag_across > 0.0 or cable.drag_along > 0.0
    tabulated, slack, leaf = cable.law_rows > 0, cable.slack == 1, cable.fold == FROM_LEAF
    stiffness, damping = cable.axial_stiffness, cable.axial_damping
    rate, gravity, ground = cable.rest_length_rate / cable.segments, system.gravity, system.ground
    inverse_dh2 = 1.0 / (dh * dh)
    row = cable.first_row - 3
    below, pulled = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for i in range(cable.segments + 1):
        node = nodes[cable.first_node + i]
        point = node.stage
        block, pull = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if i < cable.segments:
            segment, far = segments[cable.first_segment + i], nodes[cable.first_node + i + 1].stage
            reach = sub(far.position, point.position)
            length = norm(reach)
            short = 1.0 / max(length, SHORTEST)
            direction = scale(short, reach)
            pace = dot(direction, sub(far.velocity, point.velocity))
            inverse = segment.inverse_rest_length
            stretch = length * inverse
            strain_rate = (pace - rate * stretch) * inverse
            if tabulated:
                tension, _, slope = axial_law(cable, laws_of(t), stretch - 1.0, strain_rate, dh)
            else:
                tension = stiffness * (stretch - 1.0) + damping * strain_rate
                slope = stiffness + damping / dh
            if (slack and tension <= 0.0) or segment.alive == 0.0:
                tension = slope = 0.0
            put(segment.direction, direction)
            segment.tension, segment.stiffness = tension, slope * inverse
            segment.geometric_stiffness = max(tension, 0.0) * short
            block, pull = _stiffness_block(segment), scale(tension, direction)
        a = point.acceleration
        force = add_scaled(sub(pull, pulled), -node.mass, (a[0], a[1], a[2] + gravity))
        inertia = node.mass * inverse_dh2
        slope3 = inertia, inertia, inertia
        if airy or point.position[2] < ground:
            more, steeper = outside_force(t, cable, i, losses, dh)
            force, slope3 = add(force, more), add(slope3, steeper)
        if i == 0:
            put(cable.edge, force)
        if i > 0 or leaf:
            xx, xy, xz, yy, yz, zz = block
            b0, b1, b2 = rows[row].band, rows[row + 1].band, rows[row + 2].band
            b0[0], b0[1], b0[2] = below[0] + xx + slope3[0], below[1] + xy, below[2] + xz
            b0[3], b0[4], b0[5] = -xx, -xy, -xz
            b1[0], b1[1], b1[2], b1[3], b1[4] = (
                below[3] + yy + slope3[1],
                below[4] + yz,
                -xy,
                -yy,
                -yz,
            )
            b2[0], b2[1], b2[2], b2[3] = below[5] + zz + slope3[2], -xz, -yz, -zz
            rows[row].right, rows[row + 1].right, rows[row + 2].right = force
        below, pulled = block, pull
        row += 3
    if leaf:
        body, row = bodies_of(t)[cable.body[0]], cable.first_row - 3
        m = body.leaf_stiffness
        add_band(rows, row, 0, (m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2]), 1.0)
        force = rotate(m, body.leaf_shift)
        rows[row].right += force[0]
        rows[row + 1].right += force[1]
        rows[row + 2].right += force[2]


@compiled()
def add_fast_end(t, cable):
    """Add what is left of a fast cable at end 2 to the equations of its body."""
    row, rows = tail_row(cable), rows_of(t)
    b0, b1, b2 = rows[row].band, rows[row + 1].band, rows[row + 2].band
    block = b0[0], b0[1], b0[2], b1[0], b1[1], b2[0]
    for i in range(6):
        cable.ends_right[3 + i] = block[i]
    force = rows[row].right, rows[row + 1].right, rows[row + 2].right
    put(cable.ends_right, force)
    body = bodies_of(t)[cable.body[1]]
    if body.dof >= 0:
        arm = sub(nodes_of(t)[end_node(cable, 1)].stage.position, body.stage.position)
        pull_at(body, arm, force)
        add_point(matrix_of(t), body.dof, arm, block)


@compiled()
def move_fast_cable(t, cable, losses, dh, part):
    """Move the nodes by the solution times `part`; returns the error of tension, as above."""
    nodes, segments, rows = nodes_of(t), segments_of(t), rows_of(t)
    tabulated, slack, leaf = cable.law_rows > 0, cable.slack == 1, cable.fold == FROM_LEAF
    stiffness, damping = cable.axial_stiffness, cable.axial_damping
    rate, faster = cable.rest_length_rate / cable.segments, 1.0 / dh
    body, up, solved = bodies_of(t)[cable.body[1]], nodes[end_node(cable, 1)], (0.0, 0.0, 0.0)
    if body.dof >= 0:
        arm = sub(up.stage.position, body.stage.position)
        solved = point_shift(body, arm)
    _force_at_end_2(cable, solved)
    k = tail_row(cable)
    up_shift = scale(part, solved)
    up_position = add(up.stage.position, up_shift)
    up_velocity = add_scaled(up.stage.velocity, faster, up_shift)
    put(up.shift, up_shift)
    worst = largest = lost = switched = 0.0
    for i in range(cable.segments - 1, -1, -1):
        node = nodes[cable.first_node + i]
        shift = (0.0, 0.0, 0.0)
        if i > 0 or leaf:
            k -= 3
            x, y, z = solved
            b = rows[k + 2].band
            w = (rows[k + 2].right - b[1] * x - b[2] * y - b[3] * z) * b[0]
            b = rows[k + 1].band
            v = (rows[k + 1].right - b[1] * w - b[2] * x - b[3] * y - b[4] * z) * b[0]
            b = rows[k].band
            u = (rows[k].right - b[1] * v - b[2] * w - b[3] * x - b[4] * y - b[5] * z) * b[0]
            solved = u, v, w
            shift = scale(part, solved)
        put(node.shift, shift)
        position = add(node.stage.position, shift)
        velocity = add_scaled(node.stage.velocity, faster, shift)
        if i > 0:
            put(node.stage.position, position)
            put(node.stage.velocity, velocity)
            increase(node.stage.acceleration, scale(faster * faster, shift))
        segment = segments[cable.first_segment + i]
        linear = segment.tension + segment.stiffness * dot(segment.direction, sub(up_shift, shift))
        segment.tension = linear
        if segment.alive > 0.0:
            pace = dot(segment.direction, sub(up_velocity, velocity))
            inverse = segment.inverse_rest_length
            stretch = norm(sub(up_position, position)) * inverse
            strain_rate = (pace - rate * stretch) * inverse
            if tabulated:
                tension, elastic, _ = axial_law(cable, laws_of(t), stretch - 1.0, strain_rate, dh)
            else:
                elastic = stiffness * (stretch - 1.0)
                tension = elastic + damping * strain_rate
                if slack:
                    elastic, tension = max(elastic, 0.0), max(tension, 0.0)
            worst, largest = max(worst, abs(tension - linear)), max(largest, abs(linear))
            if slack and (linear > 0.0) != (segment.taut > 0.0):
                switched += 1.0
            lost += (linear - elastic) * pace
        up_position, up_velocity, up_shift = position, velocity, shift
    losses.cables += lost
    losses.switched += switched
    _force_at_end_1(t, cable, faster * faster)
    return worst / (TENSION_SHARE * largest + t.tolerance)


@compiled()
def _force_at_end_1(t, cable, inverse_dh2):
    """Force of a fast cable on the body at end 1, from the solution."""
    a, b = nodes_of(t)[cable.first_node], nodes_of(t)[cable.first_node + 1]
    segment = segments_of(t)[cable.first_segment]
    gap, g = sub(b.shift, a.shift), segment.geometric_stiffness
    along = (segment.stiffness - g) * dot(segment.direction, gap)
    force = add_scaled(add_scaled(cable.edge, along, segment.direction), g, gap)
    put(cable.force[0], add_scaled(force, -a.mass * inverse_dh2, a.shift))


@compiled()
def _force_at_end_2(cable, shift):
    """The same at end 2, see `add_fast_end`."""
    r, (x, y, z) = cable.ends_right, shift
    put(
        cable.force[1],
        (
            r[0] - r[3] * x - r[4] * y - r[5] * z,
            r[1] - r[4] * x - r[6] * y - r[7] * z,
            r[2] - r[5] * x - r[7] * y - r[8] * z,
        ),
    )


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
    for b in range(bodies_of(t).shape[0]):
        body = bodies_of(t)[b]
        if body.free == 0 or body.lump_mass == 0.0:
            continue
        momentum, total = (0.0, 0.0, 0.0), body.mass
        for cable in cables_of(t):
            for end in range(2):
                if cable.body[end] == b:
                    node = nodes_of(t)[end_node(cable, end)]
                    off = sub(node.stage.acceleration, node.linear_acceleration)
                    momentum = add_scaled(momentum, node.mass, off)
                    total += node.mass
        change = scale(-1.0 / total, momentum)
        _accelerate(body.stage, change, dh)
        for cable in cables_of(t):
            for end in range(2):
                if cable.body[end] == b:
                    _accelerate(nodes_of(t)[end_node(cable, end)].stage, change, dh)


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
# a small angle it is Euler and Bernoulli's M = EI curvature. Damping works on the rate of the
# angle in the plane of the kink; in any other direction three nodes cannot tell bending from
# turning. Only an (almost) straight joint, where the kink has no plane yet, is damped in both
# directions.
#
# At a clamped end t1 (or t2) is the direction of the clamp, which gets the reaction moment.


@compiled()
def joint_moment(t1, t2, u1, u2, stiffness, damping):
    """Moment of a joint between the directions t1 and t2, which change at the rates u1 and u2.

    Returns:
        Angle, the moment as vectors across t1 (second) and t2 (first), power lost by damping, and
        the projector of the damping (xx, xy, xz, yy, yz, zz).
    """
    c, across = dot(t1, t2), cross(t1, t2)
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
    on_2, on_1 = scale(stiffness * ratio, a), scale(stiffness * ratio, b)
    if damping == 0.0:
        return angle, on_2, on_1, 0.0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    # Share of the damping that acts in every direction, the rest in the kink's plane.
    every = STRAIGHT_RAD**4 / (STRAIGHT_RAD**4 + s2 * s2)
    inverse = (1.0 - every) / s2 if s2 > 1e-24 else 0.0
    rate = -dot(a, u2) - dot(b, u1)
    plane = damping * rate * inverse
    gap = sub(u2, u1)
    loss = plane * rate + damping * every * dot(gap, gap)
    on_2 = add_scaled(add_scaled(on_2, plane, a), -damping * every, gap)
    on_1 = add_scaled(add_scaled(on_1, plane, b), damping * every, gap)
    half = 0.5 * inverse
    projector = (
        half * (a[0] * a[0] + b[0] * b[0]) + every,
        half * (a[0] * a[1] + b[0] * b[1]),
        half * (a[0] * a[2] + b[0] * b[2]),
        half * (a[1] * a[1] + b[1] * b[1]) + every,
        half * (a[1] * a[2] + b[1] * b[2]),
        half * (a[2] * a[2] + b[2] * b[2]) + every,
    )
    return angle, on_2, on_1, loss, projector


@compiled()
def _stiffness_of_joint(t1, t2, stiffness, damping, projector):
    """Second derivative of a joint's energy (without its change of direction) and its damping."""
    half = 0.5 * stiffness
    return (
        stiffness - half * (t1[0] * t1[0] + t2[0] * t2[0]) + damping * projector[0],
        damping * projector[1] - half * (t1[0] * t1[1] + t2[0] * t2[1]),
        damping * projector[2] - half * (t1[0] * t1[2] + t2[0] * t2[2]),
        stiffness - half * (t1[1] * t1[1] + t2[1] * t2[1]) + damping * projector[3],
        damping * projector[4] - half * (t1[1] * t1[2] + t2[1] * t2[2]),
        stiffness - half * (t1[2] * t1[2] + t2[2] * t2[2]) + damping * projector[5],
    )


@compiled()
def assemble_bending(t, cable, losses, held, dh):
    """Moments of all joints of a cable, as forces on three nodes; its clamps are up to date."""
    nodes, rows, count = nodes_of(t), rows_of(t), cable.segments
    damped = cable.bending_damping > 0.0
    bent = i1 = 0.0
    t1 = t2 = u1 = u2 = (0.0, 0.0, 0.0)
    for i in range(count + 1):
        before = segments_of(t)[cable.first_segment + max(i - 1, 0)]
        after = segments_of(t)[cable.first_segment + min(i, count - 1)]
        first, last = i == 0, i == count
        weight = 1.0 / after.rest_length
        if first:
            t1, u1 = _clamp(cable, 0)
            weight *= cable.clamp_factor[0]
        else:
            t1, u1 = scale(1.0, before.direction), u2
        if last:
            t2, u2 = _clamp(cable, 1)
            i2 = 0.0
            weight *= cable.clamp_factor[1]
        else:
            t2, i2 = scale(1.0, after.direction), 1.0 / max(after.length, SHORTEST)
            if damped:  # rate of the direction
                a, b = nodes[cable.first_node + i].stage, nodes[cable.first_node + i + 1].stage
                gap = sub(b.velocity, a.velocity)
                u2 = scale(i2, add_scaled(gap, -after.length_rate, after.direction))
        missing = (first and cable.clamped[0] == 0) or (last and cable.clamped[1] == 0)
        if missing or before.alive == 0.0 or after.alive == 0.0:
            i1 = i2
            continue
        stiffness, damping = cable.bending_stiffness * weight, cable.bending_damping * weight
        angle, on_2, on_1, loss, projector = joint_moment(t1, t2, u1, u2, stiffness, damping)
        losses.cables += loss
        bent += 0.5 * stiffness * angle * angle
        block = _stiffness_of_joint(t1, t2, stiffness, damping / dh, projector)
        # Share of each point in t2 - t1, B of K = B^T P B: a clamp's direction stands for itself.
        low, middle, high = (-1.0 if first else i1), -i1 - i2, (1.0 if last else i2)
        at = -1 if first else i - 1
        if not held or i > 1:
            add_block(rows, cable, at, at, block, low * low)
        if not (held and first):
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
    cable.bending_energy = bent


@compiled()
def _clamp(cable, end):
    """Direction of a clamp and its rate."""
    axis, rate = cable.axis_world[end], cable.axis_rate[end]
    return (axis[0], axis[1], axis[2]), (rate[0], rate[1], rate[2])
