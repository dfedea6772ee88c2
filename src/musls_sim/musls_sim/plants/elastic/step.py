"""One step: TR-BDF2, or implicit Euler steps where that makes energy.

With g = 2 - sqrt 2, d = g / 2 and w = sqrt 2 / 4 (Bank et al. 1985; Hosea and Shampine, Applied
Numerical Mathematics 20, 1996):

    first stage    y_g = y_0 + d h (f_0 + f_g)              at t + g h,
    second stage   y_1 = y_0 + w h (f_0 + f_g) + d h f_1    at t + h.

Second order, L-stable, and of stage order two: a stiff cable that turns keeps its centripetal
tension, which methods of stage order one (Rosenbrock, SDIRK2) lose. f_1 serves as the next f_0, but
for the wrenches from outside, which may jump between periods and are evaluated anew.

A jerk is not smooth: where a segment goes taut in the first stage and slack in the second, the
step would throw it back with up to 1.4 times its speed. Steps in which something begins or ceases
to carry are therefore held to their energy; one that makes energy is repeated as implicit Euler
steps, which cannot. They are of first order: while a body is jerked, steps are halved first.

Begin and first stage foretell motion at the end of a step by straight lines. A swing of frequency w
is off them by (1 - g) / 2 of w h in its way over the speed, and of (w h)^2 in its speed; w h is how
far the step goes into it (`interface.SWING_ERROR`). Where that is too far for `physics.accuracy`,
the period is repeated with steps of half the length: in a jerk, or for a load that tilts. The
measure is the largest speed of the body so far: way and speed must both be off, since a steady
acceleration bends the way alone and tremors without energy the speed alone. In a jerk the speed
decides.
"""

from __future__ import annotations

import math
from functools import partial

from numba import types

from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import (
    address_of,
    copy_numbers,
    copy_table,
    memory_at,
    record_at,
    record_beyond,
)
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    cross,
    increase,
    norm,
    put,
    rotate,
    scale,
    sub,
)
from musls_description.system.obstacles import begin_motion, move_solids
from musls_sim.plants.elastic.bodies import (
    add_surfaces,
    balance,
    correct,
    external_wrenches,
    follow,
    place,
    predict_first_stage,
    predict_second_stage,
    put_point,
    rewind_body,
    settle,
    settle_corners,
    settle_nodes,
    surface_error,
)
from musls_sim.plants.elastic.cables.breaks import (
    check_overload,
    mark_broken,
    next_cut,
    note_tensions,
    overload,
    part,
)
from musls_sim.plants.elastic.cables.cable import (
    TENSION_SHARE,
    assemble_bending,
    assemble_cable,
    keep_momentum,
    note_ends,
    remember_strains,
    tension_error,
    twist_bodies,
)
from musls_sim.plants.elastic.cables.own_law import LONG_S
from musls_sim.plants.elastic.output import collect, fastest_body, react, state_energies
from musls_sim.plants.elastic.reels import (
    add_reels,
    add_wound,
    balance_shafts,
    begin_shafts,
    move_shafts,
    place_reels,
    predict_first_shafts,
    predict_second_shafts,
    radius_at,
    react_shafts,
    reel_error,
    set_lengths,
    settle_shafts,
    start_shafts,
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
    PULLEY,
    SYSTEM,
    bodies_of,
    cables_of,
    corners_of,
    fastest_of,
    kept_of,
    matrix_of,
    nodes_of,
    own_command_of,
    own_wrench_body_of,
    own_wrench_enu_of,
    progress_of,
    rotors_of,
    rows_of,
    segments_of,
    shafts_of,
    solids_of,
    speed_of,
    stage_speed_of,
    unknowns_of,
)
from musls_sim.plants.interface import (
    SPEED_LIMIT_M_S,
    STEP,
    anchor_motion_of,
    anchor_wrench_of,
    command_of,
    surface_motion_of,
    winch_brake_of,
    winch_of,
    wind_of,
    wrench_body_of,
    wrench_enu_of,
)
from musls_sim.plants.rigid_body import power_of, spin_rotors

GAMMA = 2.0 - math.sqrt(2.0)
D = 0.5 * GAMMA
W = math.sqrt(2.0) / 4.0
AHEAD = (1.0 - GAMMA) / GAMMA

MAX_NEWTON_ITERATIONS = 24
"""Solutions of a stage before the step is taken as too long."""

EULER_STEPS = 4
"""Implicit Euler steps in place of a step that makes energy."""

ENERGY_SHARE = 5e-3
"""Share of what moves and is bent that a step may make where nothing begins to carry."""

BEND = 0.5 * (1.0 - GAMMA)
"""Unpredicted part of the speed of a swing, over (w h)^2."""

JERK_SHARE = 0.1
"""Acceleration of a body over gravity beyond which the bend of its speed counts alone."""

FAINT_M_S = 0.1
"""The least that the largest speed is taken for."""

ACCURATE_LEVELS = 8
"""Maximum halvings of a step for its accuracy alone."""

COARSER = 0.125
"""Share of the allowed error below which the next period begins with doubled steps."""

START_STEP_S = 1e-6
"""Length of the implicit Euler step that gives the accelerations of a start."""

_FIRST = 0
_SECOND = 1
_EULER = 2
_START = 3
"""Kinds of solutions: a stage of TR-BDF2, an implicit Euler step, or the tiny one of a start."""

BREAK_TOLERANCE = 1e-6
"""Share of the break force to which the time of a break is found."""

SHORTEST_SHARE = 1e-7
"""Share of the period to which it is found where the tension jumps."""

FINEST_SHARE = 1.0 / 64.0
"""Share of the period down to which a step near a break is refined for its own sake."""

COARSE = 0.2
"""Change of tension over break force in a step that is refined, if it gets past half of it."""

EULER_ENERGY_TOLERANCE = 10.0
"""Energy that implicit Euler steps may make, over what a step may: with more, steps are halved.

They take energy where the forces pull back; a rod that folds has forces that do not.
"""

MAX_TRIALS = 200
"""Trials of a step that ends at a break."""


# ---------- A stage: bodies and cables solved together, repeated until the tensions agree
#
# Every stage is x = x_K + d h v, v = v_K + d h a, M a = F(x, v). F is linearised about a guess of
# the accelerations; the linear system is banded along the cables and small for the bodies. One
# solution is enough where the motion is smooth: what tells is the difference between the tensions
# of the linear and of the true law in the new positions. A cable that snaps taut, or a box that
# touches the ground, takes a few solutions (Newton's method).
#
# Each cable is eliminated down to its ends; what is left goes to the bodies and shafts, which are
# solved together, then every cable moves with its ends.


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
            body = bodies_of(t)[cable.body[end]]
            node = nodes_of(t)[end_node(cable, end)]
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
def _begin_bodies(t, losses, dh):
    """Balance of the bodies without cables, and their matrices: inertia and contact."""
    matrix = matrix_of(t)
    unknowns = unknowns_of(t)
    inverse_dh2 = 1.0 / (dh * dh)
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
        add_surfaces(t, body, losses, dh)
        if body.dof >= 0:
            for i in range(6):
                for j in range(i + 1):
                    matrix[body.dof + i, body.dof + j] = own[i, j]


@partial(CompiledStage, takes=(types.int64, types.float64, types.boolean))
def _assemble_cable(address, k, dh, guessed):
    """Equations of a cable, eliminated down to those of its bodies and shafts."""
    t = record_at(address, SYSTEM)
    cable = cables_of(t)[k]
    losses = t.stage_losses
    assemble_cable(t, cable, losses, dh, guessed)
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


@partial(CompiledStage, takes=(types.float64, types.float64, types.boolean))
def _assemble(address, dh, share, guessed):
    """All equations of a stage, those of the cables eliminated, in positions guessed or not."""
    t = record_at(address, SYSTEM)
    losses = t.stage_losses
    external_wrenches(t, stage_speed_of(t))
    losses.cables = losses.ground = losses.air = losses.drives = losses.switched = 0.0
    _begin_bodies(t, losses, dh)
    balance_shafts(t, dh, share)
    unknowns = unknowns_of(t)
    for body in bodies_of(t):
        if body.dof >= 0:
            for k in range(3):
                unknowns[body.dof + k].value = body.force[k]
                unknowns[body.dof + 3 + k].value = body.moment[k]
    for shaft in shafts_of(t):
        unknowns[shaft.dof].value = shaft.right
    for k in range(len(cables_of(t))):
        _assemble_cable(address, k, dh, guessed)


@partial(CompiledStage, takes=(types.float64, types.float64))
def _move(address, dh, part):
    """Move cables and bodies by a share of the solution."""
    t = record_at(address, SYSTEM)
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


@partial(CompiledStage, gives=types.float64, takes=(types.float64,))
def _error(address, dh):
    """Error of the linearised forces over its tolerance."""
    t = record_at(address, SYSTEM)
    losses = t.stage_losses
    worst = max(surface_error(t, losses, TENSION_SHARE, dh), reel_error(t, losses))
    for cable in cables_of(t):
        worst = max(worst, tension_error(t, cable, losses, dh))
    return worst


@compiled()
def solve_stage(t, dh, share, iterations):
    """Solve one stage at a share of the period; returns the linear solutions used, 0 if none."""
    part = 1.0
    move_solids(solids_of(t), share * t.period)
    for iteration in range(iterations + 1):
        place_bodies(t, dh, share, iteration > 0)
        place_reels(t, dh, share)
        if iteration > 0:
            worst = _error(address_of(t), dh)
            if worst <= 1.0 and part == 1.0:
                keep_momentum(t, dh)
                return iteration
            if not math.isfinite(worst):
                return 0
        _assemble(address_of(t), dh, share, iteration == 0)
        if not solve_envelope(matrix_of(t), unknowns_of(t), t.n_dofs):
            return 0
        # Newton's method may go round in circles between slack and taut: half a step breaks them.
        part = 0.5 if iteration > 3 and iteration % 2 == 0 else 1.0
        _move(address_of(t), dh, part)
    return 0


# ---------- Prediction of the stages


@compiled()
def _predict_node(node, dh):
    """Stage of a node by its known motion and acceleration."""
    stage = node.stage
    put(stage.velocity, add_scaled(node.known_velocity, dh, stage.acceleration))
    put(stage.position, add_scaled(node.known_position, dh, stage.velocity))


@compiled()
def _predict_first(t, known, dh, time):
    """Predict the first stage and place everything by the guess.

    It knows the state and so much of its rates: `dh`, nothing in an implicit Euler step.
    """
    copy_table(stage_speed_of(t), speed_of(t))
    for node in nodes_of(t):
        put(node.known_position, add_scaled(node.position, known, node.velocity))
        put(node.known_velocity, add_scaled(node.velocity, known, node.acceleration))
        put(node.stage.acceleration, node.acceleration)
        _predict_node(node, dh)
    predict_first_shafts(t, known)
    for body in bodies_of(t):
        predict_first_stage(body, known, time)


@compiled()
def _predict_second(t, wh, dh):
    """Predict the second stage; its guess extrapolates the change of the acceleration."""
    for node in nodes_of(t):
        stage = node.stage
        put(node.known_position, add_scaled(node.position, wh, add(node.velocity, stage.velocity)))
        both = add(node.acceleration, stage.acceleration)
        put(node.known_velocity, add_scaled(node.velocity, wh, both))
        change = sub(stage.acceleration, node.acceleration)
        put(stage.acceleration, add_scaled(stage.acceleration, AHEAD, change))
        _predict_node(node, dh)
    predict_second_shafts(t, wh, AHEAD)
    for body in bodies_of(t):
        predict_second_stage(body, wh, AHEAD)


# ---------- Begin and end


@compiled()
def _old_wrenches(t, sign):
    """Take the outside wrench out of the rates (-1) or put it in (+1)."""
    for body in bodies_of(t):
        if body.mass > 0.0:
            increase(body.acceleration, scale(sign / body.mass, body.external.force))
            increase(body.torque, scale(sign, body.external.moment))


@compiled()
def _count(t, losses, weight):
    """Add work and losses over a share of a step; at its begin the stage is the state."""
    sums = t.sums
    work = losses.air + losses.drives
    for body in bodies_of(t):
        work += power_of(body.stage, body.external)
        if body.free == 0:
            work += power_of(body.stage, body.reaction)
    sums.work += weight * work
    sums.absolute_work += weight * abs(work)
    sums.loss_cables += weight * losses.cables
    sums.loss_ground += weight * losses.ground
    sums.loss_air -= weight * losses.air


@CompiledStage
def _settle(address):
    """Make the last stage the state, keep the peaks of the tension."""
    t = record_at(address, SYSTEM)
    for body in bodies_of(t):
        settle(body)
        if body.free and body.corners > 0:
            settle_corners(t, body)
    for cable in cables_of(t):
        settle_nodes(t, cable)
    for node in nodes_of(t):
        put(node.position, node.stage.position)
        put(node.velocity, node.stage.velocity)
        put(node.acceleration, node.stage.acceleration)
    settle_shafts(t)
    t.sums.loss_cables -= remember_strains(t)
    for segment in segments_of(t):
        segment.peak_tension = max(segment.peak_tension, segment.tension)
        segment.taut = 1.0 if segment.tension > 0.0 else 0.0


@partial(CompiledStage, gives=types.float64, takes=(types.float64,))
def _begin_first(address, share):
    """Set up the first stage of a step; returns the stage's weight [s]."""
    t = record_at(address, SYSTEM)
    h = share * t.period
    _old_wrenches(t, -1.0)
    external_wrenches(t, speed_of(t))
    _old_wrenches(t, 1.0)
    t.old_sums = t.sums
    _count(t, t.losses, W * h)
    _predict_first(t, D * h, D * h, GAMMA * h)
    spin_rotors(stage_speed_of(t), own_command_of(t), rotors_of(t), GAMMA * h)
    t.since = GAMMA * h
    return D * h


@partial(CompiledStage, gives=types.float64, takes=(types.float64,))
def _begin_second(address, share):
    """Count the first stage of a step and set up the second; returns the stage's weight [s]."""
    t = record_at(address, SYSTEM)
    h = share * t.period
    _count(t, t.stage_losses, W * h)
    spin_rotors(stage_speed_of(t), own_command_of(t), rotors_of(t), (1.0 - GAMMA) * h)
    _predict_second(t, W * h, D * h)
    t.since = h
    return D * h


@compiled()
def _begin_stage(t):
    """Set up the next stage; returns its weight [s] and its time (a share of the period)."""
    p = progress_of(t)
    if p.mode == _FIRST and p.trial == 0:
        p.now = (p.step + 1) / p.steps
        if p.fragile:
            p.now = _plan(t, p.at, p.now, t.bracket)
    length = p.now - p.at
    if p.mode == _FIRST:
        return _begin_first(address_of(t), length), p.at + GAMMA * length
    if p.mode == _SECOND:
        return _begin_second(address_of(t), length), p.now
    if p.mode == _EULER:
        t.since = dh = length * t.period / EULER_STEPS
        _predict_first(t, 0.0, dh, 0.0)
        spin_rotors(stage_speed_of(t), own_command_of(t), rotors_of(t), dh)
        return dh, p.at + length * (p.euler + 1.0 / EULER_STEPS)
    _predict_first(t, 0.0, START_STEP_S, 0.0)
    t.since = START_STEP_S
    return START_STEP_S, p.at


@compiled()
def _end_euler(t, dh):
    """Count an implicit Euler step and make its end the state."""
    _count(t, t.stage_losses, dh)
    copy_table(speed_of(t), stage_speed_of(t))
    _settle(address_of(t))


@compiled()
def _end_start(t):
    """Take the accelerations of the tiny step, and leave the state."""
    t.losses = t.stage_losses
    start_shafts(t)
    for node in nodes_of(t):
        put(node.acceleration, node.stage.acceleration)
    for body in bodies_of(t):
        put(body.acceleration, body.stage.acceleration)
        put(body.torque, body.stage.torque)
        rewind_body(body)
    for segment in segments_of(t):
        segment.taut = 1.0 if segment.tension > 0.0 else 0.0


@partial(CompiledStage, gives=types.boolean, takes=(types.float64, types.float64, types.boolean))
def _end_second(address, h, switched, rough):
    """Count the second stage; its end is the new state unless the step makes energy."""
    t = record_at(address, SYSTEM)
    x = _changing(t)
    _count(t, t.stage_losses, D * h)
    checks_energy = switched > 0.0 or rough
    before = limit = 0.0
    if checks_energy:
        copy_numbers(kept_of(t)[1], x)
        before, moving = _stored_energy(t)
        limit = t.energy_tolerance
        if switched == 0.0:
            limit = max(limit, ENERGY_SHARE * moving)
    _settle(address)
    if checks_energy and _gained(t, before) > limit:
        copy_numbers(x, kept_of(t)[1])
        t.sums = t.old_sums
        return False
    t.losses = t.stage_losses
    copy_table(speed_of(t), stage_speed_of(t))
    return True


@compiled()
def _rewind(t):
    """Undo a step's stages: restore what they overwrote; the rest follows from the state."""
    for body in bodies_of(t):
        rewind_body(body)
    for corner in corners_of(t):
        if corner.touched == 0.0:
            corner.active = 0.0
    external_wrenches(t, speed_of(t))
    t.sums = t.old_sums


@compiled()
def _stored_energy(t):
    """Energy of the state, and of it what is in motion, stretch and bending [J]."""
    for shaft in shafts_of(t):
        shaft.out = radius_at(shaft, shaft.angle)[2]
    set_lengths(t)
    kinetic, potential, axial, bending = state_energies(t)
    return kinetic + potential + axial + bending, kinetic + axial + bending


@compiled()
def _gained(t, before):
    """Energy that a step made from nothing [J], given that before it."""
    sums = t.sums
    old = t.old_sums
    gained = _stored_energy(t)[0] - before - (sums.work - old.work)
    return gained + sums.loss_cables - old.loss_cables + sums.loss_ground - old.loss_ground


# ---------- How far a step goes into the swings of the bodies


@compiled()
def _jerks(t):
    """Whether a body is in a jerk at the begin, in the first stage or at the end of a step."""
    for body in bodies_of(t):
        hardest = max(body.hardest, norm(body.stage.acceleration))
        if body.free != 0 and hardest > JERK_SHARE * t.gravity:
            return True
    return False


@compiled()
def _bend(t, h):
    """Largest bend of a body's motion in a step, over the allowed one.

    The rotation of drones, which is their autopilots', does not count.
    """
    worst = 0.0
    fastest = fastest_of(t)
    for b in range(fastest.shape[0]):
        body = bodies_of(t)[b]
        if body.free == 0:
            continue
        now = body.stage
        arm = body.gyration if body.drone < 0 else 0.0
        fastest[b] = max(fastest[b], norm(now.velocity), arm * norm(now.omega))
        share = 1.0 / (BEND * max(fastest[b], FAINT_M_S))
        jerked = max(body.hardest, norm(now.acceleration)) > JERK_SHARE * t.gravity
        for k in range(2):
            if k == 0:
                gain = share * norm(sub(now.velocity, body.velocity_ahead)) / t.turn2
                way = share * norm(sub(now.position, body.position_ahead)) / h
            else:
                gain = share * arm * norm(sub(now.omega, body.omega_ahead)) / t.turn2
                way = share * arm * norm(sub(now.turn, body.turn_ahead)) / h
            worst = max(worst, gain if jerked else min(gain, way * way / t.turn2))
    return worst


# ---------- Steps up to a break


@compiled()
def _search(low, low_gap, high, high_gap, trial):
    """Next guess of the time between `low` and `high` at which the gap is 0."""
    guess = low + (high - low) * low_gap / (low_gap - high_gap)
    if trial % 3 == 2:  # the secant may creep along one side
        guess = 0.5 * (low + high)
    edge = 0.01 * (high - low)
    return min(max(guess, low + edge), high - edge)


@compiled()
def _next_trial(t, begin, now, bracket, trial):
    """Next end of a step to try after the trial from `begin` to `now`."""
    end, peak, when, rise = check_overload(t)
    length = now - begin
    has_upper = bracket[1] > 0.0
    if not has_upper and max(end, peak) > 0.5 and rise > COARSE and length > FINEST_SHARE:
        return begin + 0.5 * length
    if end >= 1.0:
        narrow = now - bracket[0] <= SHORTEST_SHARE or trial >= MAX_TRIALS
        if end <= 1.0 + BREAK_TOLERANCE or narrow:
            mark_broken(t, 1.0)
            return now
        bracket[1] = now
        bracket[3] = end - 1.0
    elif has_upper:
        if bracket[1] - now <= SHORTEST_SHARE:
            bracket[0] = bracket[1]
            return bracket[1]
        bracket[0] = now
        bracket[2] = end - 1.0
    elif peak >= 1.0 and when * length > SHORTEST_SHARE and trial < MAX_TRIALS:
        return begin + when * length
    else:
        return now
    return _search(bracket[0], bracket[2], bracket[1], bracket[3], trial)


@compiled()
def _plan(t, at, end, bracket):
    """End of the next step of a rig that can break: the next cut, or what was asked for."""
    note_tensions(t, True)
    bracket[0] = at
    bracket[1] = -1.0
    bracket[2] = min(overload(t) - 1.0, -1e-9)
    return next_cut(t, at, end)


@compiled()
def _part(t, at):
    """Break segments that are due, or overloaded but not found by trials; return the number."""
    if overload(t) > 1.0 + BREAK_TOLERANCE:
        mark_broken(t, 1.0)
    return part(t, at)


# ---------- A control period


@compiled()
def remember_start(address):
    """Set the segments' memory at the start: as after a long time at rest."""
    t = record_at(address, SYSTEM)
    t.since = LONG_S
    remember_strains(t)


@compiled()
def _changing(t):
    """Return all numbers that a step changes for good."""
    return memory_at(address_of(t), t.changing)


@compiled()
def _take_inputs(t, s):
    """Take what a `STEP` gives for the period."""
    copy_table(own_command_of(t), command_of(s))
    copy_numbers(t.wind, wind_of(s))
    copy_table(own_wrench_body_of(t), wrench_body_of(s))
    copy_table(own_wrench_enu_of(t), wrench_enu_of(s))
    t.period = s.period
    begin_motion(solids_of(t), surface_motion_of(s), s.period)
    for k in range(s.n_anchors):
        b = 1 + s.n_drones + k
        body = bodies_of(t)[b]
        copy_numbers(own_wrench_enu_of(t)[b], anchor_wrench_of(s)[k])
        copy_table(body.reference_rotation, body.rotation)
        copy_table(body.path, anchor_motion_of(s)[k])
    for k in range(s.n_winches):
        shaft = shafts_of(t)[k]
        copy_numbers(shaft.drive, winch_of(s)[k])
        shaft.brake = shaft.brake_torque if winch_brake_of(s)[k] != 0 else 0.0


@compiled()
def _note_stops(t):
    """Note the winches that have begun to be halted in a period; their number."""
    stops = 0
    if progress_of(t).finding:
        return stops
    for shaft in shafts_of(t):
        shaft.stopped = 0.0
        if shaft.kind != PULLEY and shaft.halted != 0.0 and shaft.halted != shaft.was_halted:
            shaft.stopped = shaft.halted
            stops += 1
        shaft.was_halted = shaft.halted
    return stops


@compiled()
def _begin_period(t, substeps, refinements):
    """Break segments that are due, save the state to return to, and begin the first step."""
    p = progress_of(t)
    x = _changing(t)
    copies = kept_of(t)
    for segment in segments_of(t):
        segment.peak_tension = 0.0
    jumped = begin_shafts(t)
    p.finding = p.start = substeps == 0
    p.fragile = t.can_break > 0.0
    p.refinements = refinements
    p.parted = 0
    p.accurate = t.turn2 > 0.0 and refinements > 0 and substeps > 0
    p.level = t.level if p.accurate else 0
    p.steps = substeps << p.level
    if p.start:
        part(t, 0.0)
    p.again = p.start or (p.fragile and _part(t, 0.0) > 0) or jumped
    t.old_sums = t.sums
    if p.steps > 1 or p.fragile:
        copy_numbers(copies[0], x)
    elif p.again:
        copy_numbers(copies[1], x)
    p.mode = _START if p.again else _FIRST
    p.step = p.trial = p.rough = 0
    p.at = p.now = p.euler = p.bend = p.switched = p.before = p.allowed = 0.0


@compiled()
def _end_stage(t, solved, dh):
    """Go on from a stage after so many solutions; says whether steps have to be shorter."""
    p = progress_of(t)
    react(t)
    react_shafts(t)
    if p.mode == _FIRST:
        p.mode = _SECOND
        p.switched = t.stage_losses.switched
        p.rough = solved > 1
        if p.fragile:
            note_tensions(t, False)
        return False
    if p.mode == _SECOND:
        return _end_last(address_of(t), solved)
    if p.mode == _EULER:
        _end_euler(t, dh)
        p.euler += 1.0 / EULER_STEPS
        if p.euler < 1.0:
            return False
        t.sums.euler_steps += 1.0
        if p.level < p.refinements and _gained(t, p.before) > p.allowed:
            return True
    else:
        _end_start(t)
    _end_step(t)
    return False


@partial(CompiledStage, gives=types.boolean, takes=(types.int64,))
def _end_last(address, solved):
    """Go on from the second stage: a trial for a break, the next step, or implicit Euler steps."""
    t = record_at(address, SYSTEM)
    p = progress_of(t)
    trial_end = progress_of(t).now
    p.trial += 1
    if p.fragile:
        p.now = _next_trial(t, p.at, p.now, t.bracket, p.trial)
    if p.now != trial_end:
        _rewind(t)
        p.mode = _FIRST
        return False
    p.switched += t.stage_losses.switched
    # Not in steps without refinement: those of a search for an equilibrium.
    p.rough = p.refinements > 0 and (p.rough or solved > 1)
    h = (p.now - p.at) * t.period
    if p.accurate:
        p.bend += (p.now - p.at) * _bend(t, h)
    if p.bend > 1.0 and p.level < ACCURATE_LEVELS:
        return True
    if _end_second(address, h, p.switched, p.rough):
        _end_step(t)
        return False
    if p.switched == 0.0 and p.level < p.refinements:
        return True  # too coarse for a smooth motion
    if p.accurate and p.level < ACCURATE_LEVELS and _jerks(t):
        return True  # implicit Euler steps are of first order
    p.before, moving = _stored_energy(t)
    p.allowed = max(EULER_ENERGY_TOLERANCE * t.energy_tolerance, ENERGY_SHARE * moving)
    p.mode = _EULER
    p.euler = 0.0
    return False


@compiled()
def _end_step(t):
    """Break segments that are due at the end of a step, and begin the next one."""
    p = progress_of(t)
    new_breaks = 0
    if p.mode != _START:
        p.at = p.now
    if p.fragile and not p.start:
        new_breaks = _part(t, p.at)
    p.parted += new_breaks
    p.mode = _START if new_breaks > 0 or p.mode == _EULER else _FIRST
    if p.mode == _FIRST:
        p.trial = 0
        if not p.start and p.at >= (p.step + 1) / p.steps:
            p.step += 1
        p.start = 0


@compiled()
def _give_up(t):
    """Return to the begin of the period, and begin anew with steps half as long."""
    p = progress_of(t)
    x = _changing(t)
    copies = kept_of(t)
    if p.steps > 1 or p.fragile:
        copy_numbers(x, copies[0])
    else:
        if p.mode >= _EULER:
            copy_numbers(x, copies[1])
        _rewind(t)
        copy_numbers(copies[0], x)
    p.level = p.level + 1
    p.steps = 2 * p.steps
    p.step = p.trial = 0
    p.at = p.bend = 0.0
    p.mode = _START if p.fragile or p.again else _FIRST


@compiled()
def _end_period(t, substeps):
    """Show the state, choose the steps of the next period; whether no body is too fast."""
    p = progress_of(t)
    collect(t, 0.0 if p.finding else t.period)
    if not p.finding and not fastest_body(bodies_of(t)) <= SPEED_LIMIT_M_S:
        return False
    if p.accurate:
        level = p.level
        bend = p.bend
        while level > 0 and bend < COARSER:
            level = level - 1
            bend = 4.0 * bend
        t.level = min(level, ACCURATE_LEVELS)
    t.refined += 1 if p.steps > substeps else 0
    return True


@CompiledStage
def move_plant(address):
    """One period of a `STEP`, in equal steps, finer ones where a stage does not converge.

    With no substeps it finds the accelerations. The verdict is the number of segments that parted
    and of winches that came to a stop; -1 where no step was short enough, -2 where a body is too
    fast.
    """
    s = record_at(address, STEP)
    t = record_beyond(s, s.plant, SYSTEM)
    p = progress_of(t)
    _take_inputs(t, s)
    _begin_period(t, s.substeps, s.refinements)
    while p.start or p.step < p.steps:
        dh, share = _begin_stage(t)
        # The only call: each function that calls this one takes half a minute to compile.
        solved = solve_stage(t, dh, share, MAX_NEWTON_ITERATIONS)
        t.sums.iterations += solved
        if solved == 0 or _end_stage(t, solved, dh):
            if p.start or p.level == p.refinements:
                s.verdict = -1
                s.failed = 1
                return
            _give_up(t)
    if _end_period(t, s.substeps):
        s.verdict = p.parted + _note_stops(t)
        s.failed = 0
    else:
        s.verdict = -2
        s.failed = 1
