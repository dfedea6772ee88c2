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
from musls_description.records import table_at
from musls_description.vectors import cross, put, rotate, scale, sub
from musls_sim.plants.elastic.bodies import (
    add_surfaces,
    balance,
    correct,
    external_wrenches,
    follow,
    place,
    put_point,
    surface_error,
)
from musls_sim.plants.elastic.cable import (
    TENSION_SHARE,
    assemble_bending,
    assemble_cable,
    keep_momentum,
    note_ends,
    tension_error,
    twist_bodies,
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
    add_leaf,
    eliminate,
    end_node,
    move_cable,
    open_border,
    solve_envelope,
)
from musls_sim.plants.elastic.state import (
    bodies_of,
    cables_of,
    nodes_of,
    rows_of,
    shafts_of,
    unknowns_of,
)


@compiled()
def place_bodies(t, dh, share, again):
    """Bodies, cable ends and clamps in the positions that the present accelerations give."""
    for body in bodies_of(t):
        if body.free:
            place(body, dh)
        elif not again:
            follow(body, share, t.period)
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
def _begin_bodies(t, dh):
    """Balance of the bodies without cables, and their matrices: inertia and contact."""
    matrix, unknowns, inverse_dh2 = table_at(t.matrix), unknowns_of(t), 1.0 / (dh * dh)
    for i in range(t.n_dofs):
        for j in range(unknowns[i].first, i + 1):
            matrix[i, j] = 0.0
    for body in bodies_of(t):
        if body.free == 0:
            continue
        balance(body, t.gravity)
        own = body.own_matrix
        for i in range(3):
            for j in range(3):
                own[i, j] = own[3 + i, j] = 0.0
                own[3 + i, 3 + j] = body.stage.inertia[i, j] * inverse_dh2
            own[i, i] = body.mass * inverse_dh2
        add_surfaces(t, body, dh)
        if body.dof >= 0:
            for i in range(6):
                for j in range(i + 1):
                    matrix[body.dof + i, body.dof + j] = own[i, j]


@compiled()
def _assemble_cable(t, cable, losses, dh):
    """Equations of a cable, eliminated down to those of its bodies and shafts."""
    assemble_cable(t, cable, losses, dh)
    if cable.bends:
        assemble_bending(t, cable, losses, dh)
        twist_bodies(t, cable)
    if cable.reels > 0:
        add_reels(t, cable, dh)
        add_wound(t, cable)
    if cable.leaf:
        add_leaf(t, cable)
    elif cable.low < 6:
        open_border(rows_of(t), cable)
    eliminate(rows_of(t), cable)
    add_ends(t, cable)


@compiled()
def _assemble(t, losses, dh, share):
    """All equations of a stage, those of the cables eliminated."""
    external_wrenches(t, table_at(t.stage_speed))
    _begin_bodies(t, dh)
    losses.cables = losses.ground = losses.air = losses.drives = losses.switched = 0.0
    balance_shafts(t, dh, share)
    unknowns = unknowns_of(t)
    for body in bodies_of(t):
        if body.dof >= 0:
            for k in range(3):
                unknowns[body.dof + k].value = body.force[k]
                unknowns[body.dof + 3 + k].value = body.moment[k]
    for shaft in shafts_of(t):
        unknowns[shaft.dof].value = shaft.right
    for cable in cables_of(t):
        _assemble_cable(t, cable, losses, dh)


@compiled()
def _move(t, dh, part):
    """Move cables and bodies by a share of the solution."""
    unknowns = unknowns_of(t)
    for body in bodies_of(t):
        if body.dof >= 0:
            for k in range(3):
                body.shift[k] = unknowns[body.dof + k].value
                body.spin[k] = unknowns[body.dof + 3 + k].value
    for shaft in shafts_of(t):
        shaft.right = unknowns[shaft.dof].value
    for cable in cables_of(t):
        move_cable(t, cable, dh, part)
    for body in bodies_of(t):
        if body.free:
            put(body.shift, scale(part, body.shift))
            put(body.spin, scale(part, body.spin))
            correct(body, dh)
    move_shafts(t, part, dh)
    note_ends(t, dh)


@compiled()
def _error(t, losses, dh):
    """Error of the linearised forces over its tolerance."""
    worst = max(surface_error(t, losses, TENSION_SHARE, dh), reel_error(t, losses))
    for cable in cables_of(t):
        worst = max(worst, tension_error(t, cable, losses, dh))
    return worst


@compiled()
def solve_stage(t, dh, share, iterations):
    """Solve one stage at a share of the period; returns the linear solutions used, 0 if none."""
    losses, part = t.stage_losses, 1.0
    for iteration in range(iterations + 1):
        place_bodies(t, dh, share, iteration > 0)
        place_reels(t, dh, share)
        if iteration > 0:
            worst = _error(t, losses, dh)
            if worst <= 1.0 and part == 1.0:
                keep_momentum(t, dh)
                return iteration
            if not math.isfinite(worst):
                return 0
        _assemble(t, losses, dh, share)
        if not solve_envelope(table_at(t.matrix), unknowns_of(t), t.n_dofs):
            return 0
        # Newton's method may go round in circles between slack and taut: half a step breaks them.
        part = 0.5 if iteration > 3 and iteration % 2 == 0 else 1.0
        _move(t, dh, part)
    return 0
