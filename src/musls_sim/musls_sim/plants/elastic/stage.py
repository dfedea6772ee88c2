"""One implicit stage: bodies and cables solved together, repeated until the tensions agree.

Every stage is x = x_K + d h v, v = v_K + d h a, M a = F(x, v). F is linearised about a guess of the
accelerations; the linear system is banded along the cables and small for the bodies. One solution
is enough where the motion is smooth: what tells is the difference between the tensions of the
linear and of the true law in the new positions. A cable that jerks taut, or a box that touches the
ground, takes a few solutions (Newton's method).
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.elastic.bodies import (
    balance,
    corner_forces,
    correct,
    external_wrench,
    follow,
    near_ground,
    place,
    point_motion,
)
from musls_sim.plants.elastic.cable import (
    TENSION_SHARE,
    add_tail,
    assemble_axial,
    assemble_bending,
    assemble_lumps,
    assemble_plain,
    contact_error,
    finish_plain,
    keep_momentum,
    move_tail,
    note_ends,
    tension_error,
)
from musls_sim.plants.elastic.reels import (
    add_reels,
    add_wound,
    balance_shafts,
    move_shafts,
    place_reels,
    reel_error,
)
from musls_sim.plants.elastic.solver import (
    add_columns,
    add_ends,
    clear,
    eliminate,
    eliminate_narrow,
    finish_general,
    gather_ends,
    held_columns,
    hold_end,
    invert_free,
    invert_touching,
    move_leaf,
    prepare_leaf,
    solve_envelope,
    spread_ends,
)
from musls_sim.plants.elastic.state import (
    AS,
    AXIS_A,
    AXIS_B,
    AXIS_RATE_A,
    AXIS_RATE_B,
    AXIS_WORLD_A,
    AXIS_WORLD_B,
    B_CORNERS,
    B_DOF,
    B_FIRST_CORNER,
    B_FREE,
    B_MASS,
    BENDS,
    BODY_A,
    BODY_B,
    BORDER,
    BORDERED,
    C_FORCE,
    C_TOUCHED,
    CLAMP_A,
    CLAMP_B,
    DELTA,
    FIRST_NODE,
    FIRST_ROW,
    FOLD,
    FRICTION,
    FROM_LEAF,
    GRAVITY,
    GROUND,
    IW,
    LENGTH_SHIFT,
    POINT_A,
    POINT_B,
    REELS,
    REST_RATE,
    RIGHT,
    S_DOF,
    SEGMENTS,
    TAIL,
    TOLERANCE_N,
    TURN_RIGHT,
    VK,
    VS,
    XS,
)
from musls_sim.plants.rigid_links.rows import OMEGA


@compiled()
def place_bodies(bodies, numbers, motion, path, kinds, cables, nodes, dh, s, period, again):
    """Bodies, cable ends and clamps in the positions that the present accelerations give."""
    for b in range(bodies.shape[0]):
        if numbers[b, B_FREE]:
            place(bodies[b], motion[b], dh)
        elif not again:
            follow(bodies[b], motion[b], path[b], s, period)
    faster = 1.0 / dh
    for c in range(kinds.shape[0]):
        kind, cable = kinds[c], cables[c]
        for end in range(2):
            b, point, node = kind[BODY_A], POINT_A, nodes[kind[FIRST_NODE]]
            if end == 1:
                b, point, node = kind[BODY_B], POINT_B, nodes[kind[FIRST_NODE] + kind[SEGMENTS]]
            fixed = numbers[b, B_FREE] == 0
            if fixed and again:
                continue
            point_motion(bodies[b], motion[b], cable[point : point + 3], node, XS, fixed)
            if not fixed:
                for k in range(3):
                    node[AS + k] = (node[VS + k] - node[VK + k]) * faster
        if kind[BENDS]:
            if kind[CLAMP_A] and not (again and numbers[kind[BODY_A], B_FREE] == 0):
                _turn_axis(motion[kind[BODY_A]], cable, AXIS_A, AXIS_WORLD_A, AXIS_RATE_A)
            if kind[CLAMP_B] and not (again and numbers[kind[BODY_B], B_FREE] == 0):
                _turn_axis(motion[kind[BODY_B]], cable, AXIS_B, AXIS_WORLD_B, AXIS_RATE_B)


@compiled()
def _turn_axis(m, cable, axis, world, rate):
    """Direction of a clamp in the world and its rate."""
    for i in range(3):
        cable[world + i] = (
            m[3 * i] * cable[axis] + m[3 * i + 1] * cable[axis + 1] + m[3 * i + 2] * cable[axis + 2]
        )
    x, y, z = cable[world], cable[world + 1], cable[world + 2]
    cable[rate] = m[OMEGA + 1] * z - m[OMEGA + 2] * y
    cable[rate + 1] = m[OMEGA + 2] * x - m[OMEGA] * z
    cable[rate + 2] = m[OMEGA] * y - m[OMEGA + 1] * x


@compiled()
def outside(t, drive, speed):
    """External wrench of every body in its present motion, with the given rotor speeds."""
    for b in range(t.bodies.shape[0]):
        external_wrench(
            t.bodies[b], t.numbers[b], t.motion[b], speed, t.rotors, drive.wind,
            drive.wrench_body[b], drive.wrench_enu[b],
        )  # fmt: skip


@compiled()
def _begin_bodies(bodies, numbers, motion, corners, parameters, matrix, n_dofs, own, k3, r, dh):
    """Balance of the bodies without cables, their matrix, and the inverses of the leaves."""
    matrix[:n_dofs, :n_dofs] = 0.0
    ground = parameters[GROUND]
    for b in range(bodies.shape[0]):
        p, first = bodies[b], numbers[b, B_DOF]
        if numbers[b, B_FREE] == 0:
            continue
        balance(p, parameters[GRAVITY])
        near = near_ground(p, ground)
        if first < 0 and not near:
            invert_free(p, dh)
            continue
        s = matrix
        if first < 0:
            s, first = own, 0
            own[:] = 0.0
        inertia = p[B_MASS] / (dh * dh)
        for i in range(3):
            s[first + i, first + i] = inertia
            for j in range(i + 1):
                s[first + 3 + i, first + 3 + j] = p[IW + 3 * i + j] / (dh * dh)
        if near:
            n = numbers[b, B_FIRST_CORNER]
            touching = corners[n : n + numbers[b, B_CORNERS]]
            corner_forces(p, motion[b], touching, ground, parameters[FRICTION], dh, s, first, r, k3)
        if numbers[b, B_DOF] < 0:
            invert_touching(own, p)


@compiled()
def _assemble_plain_cable(t, c, dh, wind, losses):
    """Equations of a cable of the fast path, eliminated down to those of its bodies."""
    bodies, kind, cable = t.bodies, t.kinds[c], t.cables[c]
    work, leaf = t.work, t.bodies[kind[BODY_A]]
    first, begin = kind[FIRST_ROW], kind[FIRST_ROW]
    if kind[FOLD] == FROM_LEAF:
        prepare_leaf(leaf, t.nodes[kind[FIRST_NODE]])
        begin -= 3
    lost, blown = assemble_plain(
        kind, cable, t.laws, t.nodes, t.segments, leaf, t.band, t.right, t.edge[c], t.parameters,
        wind, dh, cable[REST_RATE] / kind[SEGMENTS], work,
    )  # fmt: skip
    eliminate_narrow(t.band, t.right, begin, first + 3 * (kind[SEGMENTS] - 1))
    losses[1] += lost
    losses[2] += blown
    b = kind[BODY_B]
    add_tail(
        kind, t.nodes, bodies[b], t.numbers[b, B_DOF], t.band, t.right, t.small[c],
        t.small_right[c], t.matrix, work[52:55], t.blocks[0],
    )  # fmt: skip


@compiled()
def _assemble_general_cable(t, c, dh, wind, losses):
    """Equations of any cable, eliminated down to those of its bodies."""
    kind, cable, nodes, segments = t.kinds[c], t.cables[c], t.nodes, t.segments
    band, border, right, corner, edge = t.band, t.border, t.right, t.corner[c], t.edge[c]
    work, k3 = t.work, t.blocks[0]
    first, rows = kind[FIRST_ROW], 3 * (kind[SEGMENTS] - 1)
    columns, skip = kind[BORDER] + kind[REELS], held_columns(kind, t.numbers)
    clear(band, border, right, corner, edge, first, first + rows + kind[TAIL], columns)
    rate = cable[REST_RATE] / kind[SEGMENTS]
    assemble_axial(
        kind, cable, t.laws, nodes, segments, band, border, right, corner, edge, dh, rate
    )
    lost, blown = assemble_lumps(
        kind, cable, nodes, segments, band, right, corner, edge, t.parameters, wind, dh, work
    )
    losses[1] += lost
    losses[2] += blown
    if kind[BENDS]:
        losses[0] += assemble_bending(
            kind, cable, nodes, segments, band, border, right, corner, edge, dh, skip > 0, work, k3
        )
    if kind[REELS] > 0:
        gravity = t.parameters[GRAVITY]
        add_reels(kind, cable, t.laws, nodes, segments, border, right, corner, edge, gravity, dh)
        add_wound(kind, cable, t.turning, nodes, border, right, corner, edge, gravity)
    wide = kind[BENDS] != 0
    eliminate(band, border, right, corner, edge, first, rows, wide, skip, columns)
    gather_ends(kind, band, border, right, corner, edge, t.small[c], t.small_right[c], skip)
    add_ends(
        kind, cable, nodes, t.bodies, t.numbers, t.small[c], t.small_right[c], t.matrix,
        t.blocks[2], k3,
    )  # fmt: skip
    if kind[REELS] > 0:
        add_columns(t, kind, cable, t.small[c], t.small_right[c])


@compiled()
def _solve_bodies(t):
    """Displacements of shafts and of bodies that are no leaves; returns whether there are any."""
    for b in range(t.bodies.shape[0]):
        first = t.numbers[b, B_DOF]
        if first >= 0:
            t.unknown[first : first + 6] = t.bodies[b, RIGHT : RIGHT + 6]
    for w in range(t.shafts.shape[0]):
        t.unknown[t.turning[w, S_DOF]] = t.shafts[w, TURN_RIGHT]
    if not solve_envelope(t.matrix, t.envelope, t.unknown, t.counts[0]):
        return False
    for b in range(t.bodies.shape[0]):
        first = t.numbers[b, B_DOF]
        if first >= 0:
            t.bodies[b, RIGHT : RIGHT + 6] = t.unknown[first : first + 6]
    for w in range(t.shafts.shape[0]):
        t.shafts[w, TURN_RIGHT] = t.unknown[t.turning[w, S_DOF]]
    return True


@compiled()
def _move_plain_cable(t, c, dh, part, losses):
    """Move a cable of the fast path; returns its error of tension over what is allowed."""
    kind, cable, check = t.kinds[c], t.cables[c], t.work[59:63]
    b = kind[BODY_B]
    move_tail(
        kind, cable, t.nodes, t.bodies[b], t.numbers[b, B_DOF], t.right, t.small[c],
        t.small_right[c],
    )  # fmt: skip
    finish_plain(
        kind, cable, t.laws, t.nodes, t.segments, t.band, t.right, t.edge[c], dh,
        cable[REST_RATE] / kind[SEGMENTS], part, check,
    )  # fmt: skip
    losses[0] += check[2]
    losses[3] += check[3]
    if kind[FOLD] == FROM_LEAF:
        node = t.nodes[kind[FIRST_NODE]]
        move_leaf(t.bodies[kind[BODY_A]], node[DELTA], node[DELTA + 1], node[DELTA + 2])
    return check[0] / (TENSION_SHARE * check[1] + t.parameters[TOLERANCE_N])


@compiled()
def _move_general_cable(t, c, dh, part):
    """Move the nodes of any cable."""
    kind, cable, ends = t.kinds[c], t.cables[c], t.work[80:88]
    skip = held_columns(kind, t.numbers)
    spread_ends(
        kind, cable, t.nodes, t.bodies, t.numbers, t.shafts, t.small[c], t.small_right[c], t.right,
        ends, t.blocks[2], t.work[64:78],
    )  # fmt: skip
    cable[LENGTH_SHIFT] *= part
    finish_general(kind, t.nodes, t.band, t.border, t.right, ends, dh, part, skip)
    if skip > 0:
        hold_end(kind, cable, t.border, t.right, t.corner[c], t.edge[c], ends)


@compiled()
def _ground_error(t, dh, losses):
    """Largest error of the ground's forces over what is allowed; counts corners that switched."""
    worst, ground = 0.0, t.parameters[GROUND]
    for b in range(t.bodies.shape[0]):
        p, n = t.bodies[b], t.numbers[b]
        if n[B_FREE] == 0 or not near_ground(p, ground):
            continue
        touching = t.corners[n[B_FIRST_CORNER] : n[B_FIRST_CORNER] + n[B_CORNERS]]
        error = contact_error(p, t.motion[b], touching, ground, t.parameters[TOLERANCE_N], dh)
        worst = max(worst, error)
        for c in touching:
            if (c[C_FORCE + 2] > 0.0) != (c[C_TOUCHED] > 0.0):
                losses[3] += 1.0
    return worst


@compiled()
def solve_stage(t, dh, s, drive, iterations, losses):
    """Solve one stage."""
    bodies, numbers, motion, nodes, kinds = t.bodies, t.numbers, t.motion, t.nodes, t.kinds
    cables, n_cables, reeled = t.cables, kinds.shape[0], t.shafts.shape[0] > 0
    place_bodies(bodies, numbers, motion, t.path, kinds, cables, nodes, dh, s, drive.period, False)
    if reeled:
        place_reels(t, dh, s, drive.period)
    for iteration in range(1, iterations + 1):
        outside(t, drive, t.stage_speed)
        _begin_bodies(
            bodies, numbers, motion, t.corners, t.parameters, t.matrix, t.counts[0], t.own,
            t.blocks[0], t.work[52:55], dh,
        )  # fmt: skip
        losses[:] = 0.0
        if reeled:
            balance_shafts(t, dh, s)
        # Newton's method may go round in circles between slack and taut: half a step breaks them.
        part = 0.5 if iteration > 4 and iteration % 2 == 1 else 1.0
        for c in range(n_cables):
            if kinds[c, FOLD] == BORDERED:
                _assemble_general_cable(t, c, dh, drive.wind, losses)
            else:
                _assemble_plain_cable(t, c, dh, drive.wind, losses)
        if not _solve_bodies(t):
            return 0
        worst = 0.0
        for c in range(n_cables):
            if kinds[c, FOLD] == BORDERED:
                _move_general_cable(t, c, dh, part)
            else:
                worst = max(worst, _move_plain_cable(t, c, dh, part, losses))
        for b in range(bodies.shape[0]):
            if numbers[b, B_FREE]:
                for k in range(RIGHT, RIGHT + 6):
                    bodies[b, k] *= part
                correct(bodies[b], dh)
        note_ends(kinds, nodes, dh)
        place_bodies(
            bodies, numbers, motion, t.path, kinds, cables, nodes, dh, s, drive.period, True
        )
        if reeled:
            move_shafts(t.shafts, part, dh)
            place_reels(t, dh, s, drive.period)
            worst = max(worst, reel_error(t, losses))
        for c in range(n_cables):
            if kinds[c, FOLD] == BORDERED:
                error, lost, switched = tension_error(
                    kinds[c], cables[c], t.laws, nodes, t.segments, t.parameters[TOLERANCE_N], dh
                )
                worst = max(worst, error)
                losses[0] += lost
                losses[3] += switched
        worst = max(worst, _ground_error(t, dh, losses))
        if worst <= 1.0 and part == 1.0:
            keep_momentum(bodies, numbers, motion, kinds, cables, nodes, dh)
            return iteration
        if not np.isfinite(worst):
            return 0
    return 0
