"""One implicit stage: bodies and cables solved together, repeated until the tensions agree.

Every stage is x = x_K + d h v, v = v_K + d h a, M a = F(x, v). F is linearised about a guess of the
accelerations; the linear system is banded along the cables and small for the bodies. One solution
is enough where the motion is smooth: what tells is the difference between the tensions of the
linear and of the true law in the new positions. A cable that snaps taut, or a box that touches the
ground, takes a few solutions (Newton's method).

Each cable is eliminated down to its ends; what is left goes to the bodies and shafts, which are
solved together, then every cable moves with its ends.
"""

from __future__ import annotations

import math

from musls_description.compiled import compiled
from musls_description.vectors import cross, put, rotate, scale, sub
from musls_sim.plants.elastic.bodies import (
    add_ground,
    balance,
    correct,
    external_wrench,
    follow,
    ground_error,
    near_ground,
    place,
    put_point,
)
from musls_sim.plants.elastic.cable import (
    TENSION_SHARE,
    add_fast_end,
    assemble_bending,
    assemble_cable,
    assemble_fast_cable,
    keep_momentum,
    move_fast_cable,
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
    add_ends,
    add_shafts,
    clear,
    eliminate,
    eliminate_narrow,
    end_node,
    gather_ends,
    held_columns,
    hold_end,
    invert_free,
    invert_touching,
    move_leaf,
    move_nodes,
    prepare_leaf,
    solve_envelope,
    spread_ends,
    tail_row,
)
from musls_sim.plants.elastic.state import (
    BORDERED,
    FROM_LEAF,
    bodies_of,
    cables_of,
    matrix_of,
    nodes_of,
    rows_of,
    shafts_of,
    stage_speed_of,
    unknowns_of,
)


@compiled()
def place_bodies(t, dh, share, period, again):
    """Bodies, cable ends and clamps in the positions that the present accelerations give."""
    for body in bodies_of(t):
        if body.free:
            place(body, dh)
        elif not again:
            follow(body, share, period)
    for cable in cables_of(t):
        for end in range(2):
            body, node = bodies_of(t)[cable.body[end]], nodes_of(t)[end_node(cable, end)]
            if body.free == 0 and again:
                continue
            put_point(body, cable.point[end], node.stage)
            if body.free:
                change = sub(node.stage.velocity, node.known_velocity)
                put(node.stage.acceleration, scale(1.0 / dh, change))
            if cable.bends and cable.clamped[end]:
                axis = rotate(body.stage.rotation, cable.axis[end])
                put(cable.axis_world[end], axis)
                put(cable.axis_rate[end], cross(body.stage.omega, axis))


@compiled()
def update_wrenches(t, drive, speed):
    """External wrench of every body in its present motion, with the given rotor speeds."""
    for b in range(bodies_of(t).shape[0]):
        external_wrench(bodies_of(t)[b], b, speed, t, drive)


@compiled()
def _begin_bodies(t, dh):
    """Balance of the bodies without cables, their matrix, and the inverses of the leaves."""
    n = t.n_dofs
    matrix_of(t)[:n, :n] = 0.0
    for body in bodies_of(t):
        if body.free == 0:
            continue
        balance(body, t.gravity)
        near = near_ground(body, t.ground)
        if body.dof >= 0:
            _add_body(t, body, matrix_of(t), body.dof, dh, near)
        elif near:
            body.leaf_inverse[:] = 0.0
            _add_body(t, body, body.leaf_inverse, 0, dh, near)
            invert_touching(body.leaf_inverse)
        else:
            invert_free(body, dh)


@compiled()
def _add_body(t, body, matrix, first, dh, near):
    """Inertia of a body and its contact with the ground, in a matrix from row `first` on."""
    inverse_dh2 = 1.0 / (dh * dh)
    for i in range(3):
        matrix[first + i, first + i] = body.mass * inverse_dh2
        for j in range(i + 1):
            matrix[first + 3 + i, first + 3 + j] = body.stage.inertia[i, j] * inverse_dh2
    if near:
        add_ground(t, body, matrix, first, dh)


@compiled()
def _assemble_fast(t, cable, losses, dh):
    """Equations of a cable of the fast path, eliminated down to those of its bodies."""
    begin = cable.first_row
    if cable.fold == FROM_LEAF:
        prepare_leaf(bodies_of(t)[cable.body[0]], nodes_of(t)[cable.first_node])
        begin -= 3
    assemble_fast_cable(t, cable, losses, dh)
    eliminate_narrow(rows_of(t), begin, tail_row(cable))
    add_fast_end(t, cable)


@compiled()
def _assemble_bordered(t, cable, losses, dh):
    """Equations of any cable, eliminated down to those of its bodies and shafts."""
    skip = held_columns(cable, bodies_of(t))
    clear(rows_of(t), cable)
    assemble_cable(t, cable, losses, dh)
    if cable.bends:
        assemble_bending(t, cable, losses, skip > 0, dh)
    if cable.reels > 0:
        add_reels(t, cable, dh)
        add_wound(t, cable)
    eliminate(rows_of(t), cable, skip)
    gather_ends(rows_of(t), cable, skip)
    add_ends(t, cable)
    if cable.reels > 0:
        add_shafts(t, cable)


@compiled()
def _move_bordered(t, cable, dh, part):
    """Move the nodes of any cable."""
    skip = held_columns(cable, bodies_of(t))
    spread_ends(t, cable)
    cable.length_shift *= part
    move_nodes(t, cable, dh, part, skip)
    if skip > 0:
        hold_end(rows_of(t), cable)


@compiled()
def _solve_bodies(t):
    """Displacements of shafts and of bodies that are no leaves; returns whether there are any."""
    unknowns = unknowns_of(t)
    for body in bodies_of(t):
        if body.dof >= 0:
            for k in range(3):
                unknowns[body.dof + k].value = body.force[k]
                unknowns[body.dof + 3 + k].value = body.moment[k]
    for shaft in shafts_of(t):
        unknowns[shaft.dof].value = shaft.right
    if not solve_envelope(matrix_of(t), unknowns, t.n_dofs):
        return False
    for body in bodies_of(t):
        if body.dof >= 0:
            for k in range(3):
                body.shift[k] = unknowns[body.dof + k].value
                body.spin[k] = unknowns[body.dof + 3 + k].value
    for shaft in shafts_of(t):
        shaft.right = unknowns[shaft.dof].value
    return True


@compiled()
def _assemble(t, drive, losses, dh, share):
    """All equations of a stage, those of the cables eliminated."""
    update_wrenches(t, drive, stage_speed_of(t))
    _begin_bodies(t, dh)
    losses.cables = losses.ground = losses.air = losses.drives = losses.switched = 0.0
    balance_shafts(t, dh, share)
    for cable in cables_of(t):
        if cable.fold == BORDERED:
            _assemble_bordered(t, cable, losses, dh)
        else:
            _assemble_fast(t, cable, losses, dh)


@compiled()
def _move(t, losses, dh, part):
    """Move cables and bodies by a share of the solution; error of the fast cables' tensions."""
    worst = 0.0
    for cable in cables_of(t):
        if cable.fold == BORDERED:
            _move_bordered(t, cable, dh, part)
        else:
            worst = max(worst, move_fast_cable(t, cable, losses, dh, part))
            if cable.fold == FROM_LEAF:
                move_leaf(bodies_of(t)[cable.body[0]], nodes_of(t)[cable.first_node].shift)
    for body in bodies_of(t):
        if body.free:
            put(body.shift, scale(part, body.shift))
            put(body.spin, scale(part, body.spin))
            correct(body, dh)
    note_ends(t, dh)
    return worst


@compiled()
def solve_stage(t, dh, share, drive, iterations):
    """Solve one stage at a share of the period; returns the linear solutions used, 0 if none."""
    losses, reeled = t.stage_losses, shafts_of(t).shape[0] > 0
    place_bodies(t, dh, share, drive.period, False)
    if reeled:
        place_reels(t, dh, share, drive.period)
    for iteration in range(1, iterations + 1):
        _assemble(t, drive, losses, dh, share)
        if not _solve_bodies(t):
            return 0
        # Newton's method may go round in circles between slack and taut: half a step breaks them.
        part = 0.5 if iteration > 4 and iteration % 2 == 1 else 1.0
        worst = _move(t, losses, dh, part)
        place_bodies(t, dh, share, drive.period, True)
        if reeled:
            move_shafts(t, part, dh)
            place_reels(t, dh, share, drive.period)
            worst = max(worst, reel_error(t, losses))
        for cable in cables_of(t):
            if cable.fold == BORDERED:
                worst = max(worst, tension_error(t, cable, losses, dh))
        worst = max(worst, ground_error(t, losses, TENSION_SHARE, dh))
        if worst <= 1.0 and part == 1.0:
            keep_momentum(t, dh)
            return iteration
        if not math.isfinite(worst):
            return 0
    return 0
