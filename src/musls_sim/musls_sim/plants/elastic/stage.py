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
from musls_sim.plants.bodies import OMEGA
from musls_sim.plants.elastic.assembly import (
    assemble_axial,
    assemble_bending,
    assemble_lumps,
)
from musls_sim.plants.elastic.blocks import eliminate, solve_envelope
from musls_sim.plants.elastic.bodies import (
    balance,
    correct,
    external_wrench,
    follow,
    place,
    point_motion,
)
from musls_sim.plants.elastic.columns import (
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
from musls_sim.plants.elastic.contact import corner_forces, near_ground
from musls_sim.plants.elastic.coupling import add_ends, finish_general, gather_ends, spread_ends
from musls_sim.plants.elastic.leaf import invert_free, invert_touching, move_leaf, prepare_leaf
from musls_sim.plants.elastic.plain import (
    add_tail,
    assemble_plain,
    eliminate_plain,
    finish_plain,
    move_tail,
)
from musls_sim.plants.elastic.reel_coupling import add_columns
from musls_sim.plants.elastic.reeling import (
    add_reels,
    add_wound,
    set_lengths,
    stop_error,
)
from musls_sim.plants.elastic.remainder import (
    TENSION_SHARE,
    contact_error,
    keep_momentum,
    note_ends,
    tension_error,
)
from musls_sim.plants.elastic.shafts import (
    balance_shafts,
    drive_torques,
    move_shafts,
    place_shafts,
    shaft_error,
)


@compiled()
def place_bodies(bodies, numbers, motion, path, kinds, cables, nodes, dh, s, period):
    """Bodies, cable ends and clamps in the positions that the present accelerations give.

    Args:
        bodies: See `tables.Tables`.
        numbers: The same.
        motion: The same.
        path: The same.
        kinds: The same.
        cables: The same.
        nodes: The same.
        dh: Weight of the stage [s].
        s: Share of the control period at which the stage is, for prescribed motion.
        period: Control period [s].
    """
    for b in range(bodies.shape[0]):
        if numbers[b, B_FREE]:
            place(bodies[b], motion[b], dh)
        else:
            follow(bodies[b], motion[b], path[b], s, period)
    faster = 1.0 / dh
    for c in range(kinds.shape[0]):
        kind, cable = kinds[c], cables[c]
        for end in range(2):
            b, point, node = kind[BODY_A], POINT_A, nodes[kind[FIRST_NODE]]
            if end == 1:
                b, point, node = kind[BODY_B], POINT_B, nodes[kind[FIRST_NODE] + kind[SEGMENTS]]
            fixed = numbers[b, B_FREE] == 0
            point_motion(bodies[b], motion[b], cable[point : point + 3], node, XS, fixed)
            if not fixed:
                for k in range(3):
                    node[AS + k] = (node[VS + k] - node[VK + k]) * faster
        if kind[BENDS]:
            if kind[CLAMP_A]:
                _turn_axis(motion[kind[BODY_A]], cable, AXIS_A, AXIS_WORLD_A, AXIS_RATE_A)
            if kind[CLAMP_B]:
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
def outside(bodies, numbers, motion, speed, rotors, wind, wrench_body, wrench_enu):
    """External wrench of every body in its present motion."""
    for b in range(bodies.shape[0]):
        external_wrench(
            bodies[b], numbers[b], motion[b], speed, rotors, wind, wrench_body[b], wrench_enu[b]
        )


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
            corner_forces(
                p,
                motion[b],
                corners[n : n + numbers[b, B_CORNERS]],
                ground,
                parameters[FRICTION],
                dh,
                s,
                first,
                r,
                k3,
            )
        if numbers[b, B_DOF] < 0:
            invert_touching(own, p)


@compiled()
def solve_stage(t, dh, s, period, wind, wrench_body, wrench_enu, iterations, losses):
    """Solve one stage.

    Args:
        t: `tables.Tables` with what the stage knows and a guess of the accelerations.
        dh: Weight of the stage [s].
        s: Share of the control period at which the stage is.
        period: Control period [s].
        wind: Air velocity, (3,).
        wrench_body: (n_bodies, 6).
        wrench_enu: (n_bodies, 6).
        iterations: Most solutions to try.
        losses: Power lost in the cables, on the ground, work rate of the air on cables [W], and the
            number of segments and corners that began or ceased to carry within the step, power of
            the winches' drives [W], (5,).

    Returns:
        Number of solutions, 0 if they did not converge.
    """
    bodies, numbers, motion, nodes, segments = t.bodies, t.numbers, t.motion, t.nodes, t.segments
    kinds, cables, parameters = t.kinds, t.cables, t.parameters
    band, border, right = t.band, t.border, t.right
    work, own, k3, scaled = t.work, t.own, t.blocks[0], t.blocks[1]
    arms, shift, ends, r = t.blocks[2], work[64:78], work[80:88], work[52:55]
    check = work[59:63]
    tolerance, ground = parameters[TOLERANCE_N], parameters[GROUND]
    n_bodies, n_cables = bodies.shape[0], kinds.shape[0]
    place_bodies(bodies, numbers, motion, t.path, kinds, cables, nodes, dh, s, period)
    reels = t.shafts.shape[0] > 0
    if reels:
        place_shafts(t.shafts, t.turning, motion, dh, s, period)
        set_lengths(t, False)
    for iteration in range(1, iterations + 1):
        outside(bodies, numbers, motion, t.stage_speed, t.rotors, wind, wrench_body, wrench_enu)
        _begin_bodies(
            bodies, numbers, motion, t.corners, parameters, t.matrix, t.counts[0], own, k3, r, dh
        )
        if reels:
            balance_shafts(t, dh, s)
        losses[:] = 0.0
        # Newton's method may go round in circles between slack and taut: half a step breaks them.
        part = 0.5 if iteration > 4 and iteration % 2 == 1 else 1.0
        for c in range(n_cables):
            kind, cable = kinds[c], cables[c]
            edge, small, small_right = t.edge[c], t.small[c], t.small_right[c]
            first, rows = kind[FIRST_ROW], 3 * (kind[SEGMENTS] - 1)
            rate = cable[REST_RATE] / kind[SEGMENTS]
            if kind[FOLD] != BORDERED:
                leaf = bodies[kind[BODY_A]]
                if kind[FOLD] == FROM_LEAF:
                    prepare_leaf(leaf, nodes[kind[FIRST_NODE]])
                lost, blown = assemble_plain(
                    kind, cable, t.laws, nodes, segments, leaf, band, right, edge,
                    parameters, wind, dh, rate, work,
                )  # fmt: skip
                begin = first - 3 if kind[FOLD] == FROM_LEAF else first
                eliminate_plain(band, right, begin, first + rows)
                losses[1] += lost
                losses[2] += blown
                b = kind[BODY_B]
                add_tail(
                    kind, nodes, bodies[b], numbers[b, B_DOF], band, right, small, small_right,
                    t.matrix, r, k3,
                )  # fmt: skip
            else:
                end = first + rows + kind[TAIL]
                band[first:end] = 0.0
                border[first:end] = 0.0
                right[first:end] = 0.0
                corner = t.corner[c]
                corner[:] = 0.0
                edge[:] = 0.0
                assemble_axial(
                    kind, cable, t.laws, nodes, segments, band, border, right, corner, edge, dh,
                    rate,
                )  # fmt: skip
                lost, blown = assemble_lumps(
                    kind, cable, nodes, segments, band, right, corner, edge, parameters, wind, dh,
                    work,
                )  # fmt: skip
                bent, width = 0.0, 5
                if kind[BENDS]:
                    width = 8
                    bent = assemble_bending(
                        kind, cable, nodes, segments, band, border, right, corner, edge, dh,
                        work, k3, scaled,
                    )  # fmt: skip
                if kind[REELS] > 0:
                    gravity = parameters[GRAVITY]
                    add_reels(
                        kind, cable, t.laws, nodes, segments, border, right, corner, edge, gravity,
                        dh,
                    )  # fmt: skip
                    add_wound(kind, cable, t.turning, nodes, border, right, corner, edge, gravity)
                columns = kind[BORDER] + kind[REELS]
                eliminate(band, border, right, corner, edge, first, rows, width, columns)
                gather_ends(kind, band, border, right, t.corner[c], edge, small, small_right)
                losses[0] += bent
                losses[1] += lost
                losses[2] += blown
                add_ends(
                    kind, cable, nodes, bodies, numbers, small, small_right, t.matrix, arms, k3
                )
                if kind[REELS] > 0:
                    add_columns(t, kind, cable, small, small_right)
        for b in range(n_bodies):
            first = numbers[b, B_DOF]
            if first >= 0:
                t.unknown[first : first + 6] = bodies[b, RIGHT : RIGHT + 6]
        for w in range(t.shafts.shape[0]):
            t.unknown[t.turning[w, S_DOF]] = t.shafts[w, TURN_RIGHT]
        if not solve_envelope(t.matrix, t.envelope, t.unknown, t.counts[0]):
            return 0
        for b in range(n_bodies):
            first = numbers[b, B_DOF]
            if first >= 0:
                bodies[b, RIGHT : RIGHT + 6] = t.unknown[first : first + 6]
        for w in range(t.shafts.shape[0]):
            t.shafts[w, TURN_RIGHT] = t.unknown[t.turning[w, S_DOF]]
        worst = 0.0
        for c in range(n_cables):
            kind, cable = kinds[c], cables[c]
            rate = cable[REST_RATE] / kind[SEGMENTS]
            if kind[FOLD] == BORDERED:
                spread_ends(
                    kind, cable, nodes, bodies, numbers, t.shafts, t.small[c], t.small_right[c],
                    right, ends, arms, shift,
                )  # fmt: skip
                cable[LENGTH_SHIFT] *= part
                finish_general(kind, cable, nodes, segments, band, border, right, ends, dh, part)
                continue
            b = kind[BODY_B]
            move_tail(
                kind, cable, nodes, bodies[b], numbers[b, B_DOF], right, t.small[c],
                t.small_right[c],
            )  # fmt: skip
            finish_plain(
                kind, cable, t.laws, nodes, segments, band, right, t.edge[c], dh, rate,
                part, check,
            )  # fmt: skip
            worst = max(worst, check[0] / (TENSION_SHARE * check[1] + tolerance))
            losses[0] += check[2]
            losses[3] += check[3]
            if kind[FOLD] == FROM_LEAF:
                node = nodes[kind[FIRST_NODE]]
                move_leaf(bodies[kind[BODY_A]], node[DELTA], node[DELTA + 1], node[DELTA + 2])
        for b in range(n_bodies):
            if numbers[b, B_FREE]:
                bodies[b, RIGHT : RIGHT + 6] *= part
                correct(bodies[b], dh)
        note_ends(kinds, nodes, dh)
        place_bodies(bodies, numbers, motion, t.path, kinds, cables, nodes, dh, s, period)
        if reels:
            move_shafts(t.shafts, part, dh)
            place_shafts(t.shafts, t.turning, motion, dh, s, period)
            set_lengths(t, False)
            drive_torques(t)
            error, lost, power = shaft_error(t, tolerance, stop_error(t))
            worst = max(worst, error)
            losses[0] += lost
            losses[4] += power
        for c in range(n_cables):
            if kinds[c, FOLD] != BORDERED:
                continue
            error, lost, switched = tension_error(
                kinds[c], cables[c], t.laws, nodes, segments, tolerance, dh
            )
            worst = max(worst, error)
            losses[0] += lost
            losses[3] += switched
        for b in range(n_bodies):
            p = bodies[b]
            if numbers[b, B_FREE] and near_ground(p, ground):
                n = numbers[b, B_FIRST_CORNER]
                touching = t.corners[n : n + numbers[b, B_CORNERS]]
                worst = max(worst, contact_error(p, motion[b], touching, ground, tolerance, dh))
                for c in touching:
                    if (c[C_FORCE + 2] > 0.0) != (c[C_TOUCHED] > 0.0):
                        losses[3] += 1.0
        if worst <= 1.0 and part == 1.0:
            keep_momentum(bodies, numbers, motion, kinds, cables, nodes, dh)
            return iteration
        if not np.isfinite(worst):
            return 0
    return 0
