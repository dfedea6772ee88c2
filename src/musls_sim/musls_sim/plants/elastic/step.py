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
steps, which cannot.
"""

from __future__ import annotations

import math

from musls_description.compiled import compiled
from musls_description.records import (
    copy_numbers,
    copy_table,
    memory_at,
    record_at,
    table_at,
)
from musls_description.vectors import add, add_scaled, increase, put, scale, sub
from musls_sim.plants.elastic.bodies import (
    external_wrenches,
    predict_first_stage,
    predict_second_stage,
    rewind_body,
    settle,
    settle_corners,
    settle_nodes,
)
from musls_sim.plants.elastic.breaks import (
    check_overload,
    mark_broken,
    next_cut,
    note_tensions,
    overload,
    part,
)
from musls_sim.plants.elastic.cable import remember_strains
from musls_sim.plants.elastic.output import collect, fastest_body, react, state_energies
from musls_sim.plants.elastic.reels import (
    begin_shafts,
    predict_first_shafts,
    predict_second_shafts,
    radius_at,
    react_shafts,
    set_lengths,
    settle_shafts,
    start_shafts,
)
from musls_sim.plants.elastic.stage import solve_stage
from musls_sim.plants.elastic.state import (
    SYSTEM,
    bodies_of,
    cables_of,
    corners_of,
    nodes_of,
    rotors_of,
    segments_of,
    shafts_of,
)
from musls_sim.plants.interface import SPEED_LIMIT_M_S
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

START_STEP_S = 1e-6
"""Length of the implicit Euler step that gives the accelerations of a start."""

_FIRST, _SECOND, _EULER, _START = 0, 1, 2, 3
"""What is being solved: a stage of TR-BDF2, an implicit Euler step, or the tiny one of a start."""

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


# ---------- What the stages know


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
    copy_table(table_at(t.stage_speed), table_at(t.speed))
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
    """The same for the second stage; its guess goes on along the change of the acceleration."""
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
    sums, work = t.sums, losses.air + losses.drives
    for body in bodies_of(t):
        work += power_of(body.stage, body.external)
        if body.free == 0:
            work += power_of(body.stage, body.reaction)
    sums.work += weight * work
    sums.absolute_work += weight * abs(work)
    sums.loss_cables += weight * losses.cables
    sums.loss_ground += weight * losses.ground
    sums.loss_air -= weight * losses.air


@compiled()
def _settle(t):
    """Make the last stage the state, keep the peaks of the tension."""
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
    remember_strains(t)
    for segment in segments_of(t):
        segment.peak_tension = max(segment.peak_tension, segment.tension)
        segment.taut = 1.0 if segment.tension > 0.0 else 0.0


@compiled()
def _begin_first(t, share):
    """Set up the first stage of a step; returns the stage's weight [s]."""
    h = share * t.period
    _old_wrenches(t, -1.0)
    external_wrenches(t, table_at(t.speed))
    _old_wrenches(t, 1.0)
    t.old_sums = t.sums
    _count(t, t.losses, W * h)
    _predict_first(t, D * h, D * h, GAMMA * h)
    spin_rotors(table_at(t.stage_speed), table_at(t.command), rotors_of(t), GAMMA * h)
    return D * h


@compiled()
def _begin_second(t, share):
    """Count the first stage of a step and set up the second; returns the stage's weight [s]."""
    h = share * t.period
    _count(t, t.stage_losses, W * h)
    spin_rotors(table_at(t.stage_speed), table_at(t.command), rotors_of(t), (1.0 - GAMMA) * h)
    _predict_second(t, W * h, D * h)
    return D * h


@compiled()
def _begin_stage(t, mode, begin, end, euler):
    """Set up a stage of a step between two times; returns its weight [s] and its time (shares)."""
    length = end - begin
    if mode == _FIRST:
        return _begin_first(t, length), begin + GAMMA * length
    if mode == _SECOND:
        return _begin_second(t, length), end
    if mode == _EULER:
        dh = length * t.period / EULER_STEPS
        _predict_first(t, 0.0, dh, 0.0)
        spin_rotors(table_at(t.stage_speed), table_at(t.command), rotors_of(t), dh)
        return dh, begin + length * (euler + 1.0 / EULER_STEPS)
    _predict_first(t, 0.0, START_STEP_S, 0.0)
    return START_STEP_S, begin


@compiled()
def _end_euler(t, dh):
    """Count an implicit Euler step and make its end the state."""
    _count(t, t.stage_losses, dh)
    copy_table(table_at(t.speed), table_at(t.stage_speed))
    _settle(t)


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


@compiled()
def _end_second(t, x, h, switched, rough):
    """Count the second stage; its end is the new state unless the step makes energy."""
    _count(t, t.stage_losses, D * h)
    held = switched > 0.0 or rough
    before = allowed = 0.0
    if held:
        copy_numbers(table_at(t.kept)[1], x)
        before, moving = _stored_energy(t)
        allowed = t.energy_tolerance
        if switched == 0.0:
            allowed = max(allowed, ENERGY_SHARE * moving)
    _settle(t)
    if held and _gained(t, before) > allowed:
        copy_numbers(x, table_at(t.kept)[1])
        t.sums = t.old_sums
        return False
    t.losses = t.stage_losses
    copy_table(table_at(t.speed), table_at(t.stage_speed))
    return True


@compiled()
def _rewind(t):
    """Undo the stages of a step: what they overwrote beside the stage follows from the state."""
    for body in bodies_of(t):
        rewind_body(body)
    for corner in corners_of(t):
        if corner.touched == 0.0:
            corner.active = 0.0
    external_wrenches(t, table_at(t.speed))
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
    sums, old = t.sums, t.old_sums
    made = _stored_energy(t)[0] - before - (sums.work - old.work)
    return made + sums.loss_cables - old.loss_cables + sums.loss_ground - old.loss_ground


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
    known = bracket[1] > 0.0
    if not known and max(end, peak) > 0.5 and rise > COARSE and length > FINEST_SHARE:
        return begin + 0.5 * length
    if end >= 1.0:
        narrow = now - bracket[0] <= SHORTEST_SHARE or trial >= MAX_TRIALS
        if end <= 1.0 + BREAK_TOLERANCE or narrow:
            mark_broken(t, 1.0)
            return now
        bracket[1], bracket[3] = now, end - 1.0
    elif known:
        if bracket[1] - now <= SHORTEST_SHARE:
            bracket[0] = bracket[1]
            return bracket[1]
        bracket[0], bracket[2] = now, end - 1.0
    elif peak >= 1.0 and when * length > SHORTEST_SHARE and trial < MAX_TRIALS:
        return begin + when * length
    else:
        return now
    return _search(bracket[0], bracket[2], bracket[1], bracket[3], trial)


@compiled()
def _plan(t, at, end, bracket):
    """End of the next step of a rig that can break: the next cut, or what was asked for."""
    note_tensions(t, True)
    bracket[0], bracket[1], bracket[2] = at, -1.0, min(overload(t) - 1.0, -1e-9)
    return next_cut(t, at, end)


@compiled()
def _part(t, at):
    """Part what is due, or overloaded without having been found by trials; returns how many."""
    if overload(t) > 1.0 + BREAK_TOLERANCE:
        mark_broken(t, 1.0)
    return part(t, at)


# ---------- A control period


@compiled()
def advance(address, steps, refinements, period):
    """Advance one control period in equal steps, finer ones where a stage does not converge.

    Takes the address of the system's record, steps (0: find the accelerations), how often they may
    be halved, the period [s]. Returns the steps used; -1 where none was short enough, -2 where a
    body is too fast.
    """
    t = record_at(address, SYSTEM)
    t.period, x = period, memory_at(t.memory, t.changing)
    losses, kept, bracket, fragile = t.stage_losses, table_at(t.kept), t.bracket, t.can_break > 0.0
    for segment in segments_of(t):
        segment.peak_tension = 0.0
    jumped = begin_shafts(t)
    start = finding = steps == 0
    if start:
        part(t, 0.0)
    again = start or (fragile and _part(t, 0.0) > 0) or jumped
    t.old_sums = t.sums
    if steps > 1 or fragile:
        copy_numbers(kept[0], x)
    elif again:
        copy_numbers(kept[1], x)
    mode, level, i, euler, trial = _START if again else _FIRST, 0, 0, 0.0, 0
    at, now, switched, before, allowed, rough = 0.0, 0.0, 0.0, 0.0, 0.0, False
    while start or i < steps:
        if mode == _FIRST and trial == 0:
            now = (i + 1) / steps
            if fragile:
                now = _plan(t, at, now, bracket)
        dh, share = _begin_stage(t, mode, at, now, euler)
        # The only call: each function that calls this one takes half a minute to compile.
        solved = solve_stage(t, dh, share, MAX_NEWTON_ITERATIONS)
        t.sums.iterations += solved
        failed = solved == 0
        if failed and (start or level == refinements):
            return -1
        if not failed:
            react(t)
            react_shafts(t)
            if mode == _FIRST:
                mode, switched, rough = _SECOND, losses.switched, solved > 1
                if fragile:
                    note_tensions(t, False)
                continue
            if mode == _SECOND:
                tried, trial = now, trial + 1
                if fragile:
                    now = _next_trial(t, at, now, bracket, trial)
                if now != tried:
                    _rewind(t)
                    mode = _FIRST
                    continue
                # Not in steps without refinement: those of a search for an equilibrium.
                switched, rough = (
                    switched + losses.switched,
                    refinements > 0 and (rough or solved > 1),
                )
                if not _end_second(t, x, (now - at) * t.period, switched, rough):
                    failed = (
                        switched == 0.0 and level < refinements
                    )  # too coarse for a smooth motion
                    if not failed:
                        before, moving = _stored_energy(t)
                        mode, euler = _EULER, 0.0
                        allowed = EULER_ENERGY_TOLERANCE * t.energy_tolerance
                        allowed = max(allowed, ENERGY_SHARE * moving)
                        continue
            elif mode == _EULER:
                _end_euler(t, dh)
                euler += 1.0 / EULER_STEPS
                if euler < 1.0:
                    continue
                t.sums.euler_steps += 1.0
                failed = level < refinements and _gained(t, before) > allowed
            else:
                _end_start(t)
        if failed:
            _give_up(t, x, mode, steps > 1 or fragile)
            level, steps, i, at, trial = level + 1, 2 * steps, 0, 0.0, 0
            mode = _START if fragile or again else _FIRST
            continue
        if mode != _START:
            at = now
        parted = fragile and not start and _part(t, at) > 0
        mode = _START if parted or mode == _EULER else _FIRST
        if mode == _FIRST:
            trial = 0
            if not start and at >= (i + 1) / steps:
                i += 1
            start = False
    collect(t, 0.0 if finding else period)
    return steps if finding or fastest_body(bodies_of(t)) <= SPEED_LIMIT_M_S else -2


@compiled()
def _give_up(t, x, mode, copied):
    """Return to the begin of the period, and keep it."""
    kept = table_at(t.kept)
    if copied:
        copy_numbers(x, kept[0])
        return
    if mode >= _EULER:
        copy_numbers(x, kept[1])
    _rewind(t)
    copy_numbers(kept[0], x)
