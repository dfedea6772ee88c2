"""A control period of the mechanism: its steps, the state after it, and whether to believe it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numba import types

from musls_control.trajectories.base import smoothstep
from musls_description.hanging.tree import STOP_RAD
from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import (
    address_of,
    copy_numbers,
    copy_table,
    record_at,
    record_beyond,
)
from musls_description.numerics.vectors import add_scaled, norm, put
from musls_description.system.obstacles import begin_motion
from musls_sim.plants.interface import (
    DOUBTFUL_FORCE_SHARE,
    DOUBTFUL_SHARE,
    FLOOR_LIFT_M,
    SPEED_LIMIT_M_S,
    STEP,
    command_of,
    surface_motion_of,
    wind_of,
    wrench_body_of,
    wrench_enu_of,
)
from musls_sim.plants.rigid_body import (
    collect_state,
    fastest_body,
    near_surface,
)
from musls_sim.plants.rigid_links.constraints.slack import keep_slack, rewind_slack
from musls_sim.plants.rigid_links.integrator import (
    aim,
    begin_step,
    evaluate,
    guided_step,
    note_cable_forces,
    off_paths,
    step,
)
from musls_sim.plants.rigid_links.mechanism import (
    SYSTEM,
    anchors_of,
    angle_of,
    begin_force_of,
    begin_of,
    begin_speed_of,
    bodies_of,
    closings_of,
    coordinates_of,
    earlier_change_of,
    edges_of,
    force_of,
    last_change_of,
    levels_of,
    limits_of,
    middle_rate_of,
    move_bodies,
    own_command_of,
    own_wrench_body_of,
    own_wrench_enu_of,
    peak_of,
    pieces_of,
    place_bodies,
    rate_of,
    selected_of,
    shown_of,
    solids_of,
    speed_of,
    target_of,
)
from musls_sim.plants.rigid_links.momentum import sum_motions
from musls_sim.plants.rigid_links.step_control import settle

OK, TOO_COARSE, RUNAWAY, SPURIOUS_ENERGY, DOUBTFUL, UNBALANCED, NOT_FINITE, AT_STOP = range(8)
"""Verdicts on a period: the steps were too long for the tension or the joint rates; not physical
any more; too much of the run's energy is spurious, or much of it is; the period made energy; the
forces from outside are not finite; a joint is at its stop for the first time."""

END_SHARE = 0.05
"""Spurious energy that ends a run: a share of the kinetic energy and the work exchanged, over the
whole run and over about the last second; one of `DOUBTFUL_SHARE` is warned of."""

MEMORY_S = 1.0
"""Time constant of "the last second"."""


smooth_share = compiled()(smoothstep)


@partial(CompiledStage, takes=(types.float64,))
def find_cable_forces(address, h):
    """Find the cables' forces in a state that was set from outside, with the inputs as they are.

    The ground carries nothing.
    """
    t = record_at(address, SYSTEM)
    place_bodies(address)
    copy_numbers(middle_rate_of(t), rate_of(t))
    t.touches = 0
    evaluate(t, h)
    note_cable_forces(t)


@CompiledStage
def move_plant(address):
    """One period of a `STEP`; where that was too coarse, again with steps half as long."""
    s = record_at(address, STEP)
    t = record_beyond(s, s.plant, SYSTEM)
    levels = levels_of(t)
    limits = limits_of(t)
    inputs = command_of(s), wind_of(s), wrench_body_of(s), wrench_enu_of(s)
    level = levels.present
    begin_motion(solids_of(t), surface_motion_of(s), levels.period)
    while True:
        begin_period(t)
        keep_inputs(t, inputs)
        count = levels.substeps << level
        verdict = OK
        level_limits = limits[level]
        for _ in range(count):
            now = NOT_FINITE
            if step(t, levels.period / count):
                now = check_step(t, level_limits)
            verdict = max(verdict, now)
            if now in (RUNAWAY, NOT_FINITE):
                verdict = now
                break
        if verdict not in (RUNAWAY, NOT_FINITE):
            verdict = end_period(t, verdict, level_limits)
        if verdict in (OK, DOUBTFUL, AT_STOP) or level == levels.last:
            break
        level += 1
        rewind(t)
    settle(levels, level)
    s.verdict = verdict
    s.failed = 1 if verdict in (NOT_FINITE, RUNAWAY, SPURIOUS_ENERGY) else 0


@compiled()
def advance_guided(address, h, inputs, limits, poses, load):
    """One period with the drones on paths and a further wrench on the load, (count, 6).

    `poses` are those in the middle of each step and of the one after the last, (count + 1, n, 7).
    In the middle of the first step the drones are off them by what steps of another length left,
    which goes to zero smoothly: taken back at once it is a jerk, the larger the shorter the step.
    """
    t = record_at(address, SYSTEM)
    begin_period(t)
    keep_inputs(t, inputs)
    target = target_of(t)
    enu = own_wrench_enu_of(t)
    off = np.empty((target.shape[0], 6))
    verdict = OK
    count = load.shape[0]
    for k in range(count):
        for i in range(6):
            enu[0, i] = inputs[3][0, i] + load[k, i]
        begin_step(address, h)
        if k == 0:
            off_paths(t, poses[0], off)
        rest_share = (count - 1 - k) / count
        aim(target, poses[k + 1], off, smooth_share(rest_share))
        if not guided_step(t, h):
            return NOT_FINITE
        now = check_step(t, limits)
        if now == RUNAWAY:
            return now
        verdict = max(verdict, now)
    return end_period(t, verdict, limits)


@compiled()
def begin_period(t):
    """Keep the state to go back to, and look for ground and obstacles."""
    bodies = bodies_of(t)
    edges = edges_of(t)
    begin = begin_of(t)
    copy_numbers(begin[0], angle_of(t))
    copy_numbers(begin[1], rate_of(t))
    copy_numbers(begin[2], last_change_of(t))
    copy_numbers(begin[3], earlier_change_of(t))
    copy_table(begin_speed_of(t), speed_of(t))
    keep_slack(t)
    for k in range(bodies.shape[0]):
        if bodies[k].parent < 0 or bodies[k].even != 0:
            put(bodies[k].begin_place, bodies[k].place)
            copy_numbers(bodies[k].begin_attitude, bodies[k].attitude)
    near = False
    for k in range(bodies.shape[0]):
        near |= near_surface(bodies[k], edges, solids_of(t), t.ahead)
    t.near = 1 if near else 0
    if near:
        for q in range(edges.shape[0]):
            edges[q].begin_stuck = edges[q].stuck
            put(edges[q].begin_anchor, edges[q].anchor)
    copy_forces(begin_force_of(t), force_of(t))
    for row in closings_of(t):
        put(row.begin_force, row.force)
    t.now = 0.0
    t.jump = 0.0
    t.begin_last_step = t.last_step
    t.begin_earlier_step = t.earlier_step
    t.begin_fresh = t.fresh
    t.begin_ledger = t.ledger
    t.work = t.absolute_work = t.loss = t.exchanged = 0.0
    put(t.made, (0.0, 0.0, 0.0))
    peak = peak_of(t)
    for i in range(peak.shape[0]):
        peak[i] = 0.0


@compiled()
def rewind(t):
    """Go back to the begin of the period."""
    bodies = bodies_of(t)
    edges = edges_of(t)
    begin = begin_of(t)
    copy_numbers(angle_of(t), begin[0])
    copy_numbers(rate_of(t), begin[1])
    copy_numbers(last_change_of(t), begin[2])
    copy_numbers(earlier_change_of(t), begin[3])
    copy_table(speed_of(t), begin_speed_of(t))
    rewind_slack(t)
    for k in range(bodies.shape[0]):
        if bodies[k].parent < 0 or bodies[k].even != 0:
            put(bodies[k].place, bodies[k].begin_place)
            copy_numbers(bodies[k].attitude, bodies[k].begin_attitude)
    if t.near != 0:
        for q in range(edges.shape[0]):
            edges[q].stuck = edges[q].begin_stuck
            put(edges[q].anchor, edges[q].begin_anchor)
    t.last_step = t.begin_last_step
    t.earlier_step = t.begin_earlier_step
    t.fresh = t.begin_fresh
    copy_forces(force_of(t), begin_force_of(t))
    for row in closings_of(t):
        put(row.force, row.begin_force)
    t.ledger = t.begin_ledger
    place_bodies(address_of(t))
    move_bodies(address_of(t), False)
    sum_motions(t)


@compiled()
def copy_forces(out, forces):
    """Copy the forces of cables, (n, 2, 3)."""
    for i in range(forces.shape[0]):
        copy_table(out[i], forces[i])


@compiled()
def keep_inputs(t, inputs):
    """Write the inputs into the records."""
    command, wind, in_body, in_world = inputs
    put(t.wind, wind)
    copy_table(own_command_of(t), command)
    copy_table(own_wrench_body_of(t), in_body)
    copy_table(own_wrench_enu_of(t), in_world)


# ---------- Whether the steps were short enough


@compiled()
def check_step(t, limits):
    """Whether a step was too long for the tension or the joint rates it met, or ran away."""
    bodies = bodies_of(t)
    rate = rate_of(t)
    peak = peak_of(t)
    fastest_joint = fastest_free = 0.0
    for k in range(bodies.shape[0]):
        i = bodies[k].first
        for d in range(i, i + bodies[k].freedom):
            size = abs(rate[d])
            if not math.isfinite(size):
                return RUNAWAY
            if bodies[k].parent < 0 and (k == 0 or d >= i + 3):
                fastest_free = max(fastest_free, size)
            else:
                fastest_joint = max(fastest_joint, size)
    if fastest_free > SPEED_LIMIT_M_S or fastest_joint > 20.0 * SPEED_LIMIT_M_S:
        return RUNAWAY
    coarse = fastest_joint > limits[0].joint_rate or t.jump > limits[0].jump
    coarse |= t.stiff > limits[0].stiff
    coarse |= norm(t.made) > limits[0].impulse
    for i in range(peak.shape[0]):
        if not math.isfinite(peak[i]):
            return RUNAWAY
        coarse |= peak[i] > limits[i].tension
    return TOO_COARSE if coarse else OK


@compiled()
def end_period(t, verdict, limits):
    """State and energy after a period, and the verdict on it."""
    if not fastest_body(bodies_of(t))[1] < SPEED_LIMIT_M_S:
        return RUNAWAY
    before = t.ledger.balance
    level_limits = limits[0]
    account(t, level_limits.period)
    energy = check_energy(t.ledger, before, level_limits.weight, level_limits.energy)
    if energy == SPURIOUS_ENERGY or verdict == OK:
        verdict = energy
    collect(t, level_limits.period)
    if verdict == OK and t.stopped == 0:
        t.stopped = stopped_body(t)
        if t.stopped != 0:
            return AT_STOP
    return verdict


@compiled()
def stopped_body(t):
    """Body whose joint is at its stop, 0 if there is none."""
    rows = coordinates_of(t)
    angle = angle_of(t)
    bodies = bodies_of(t)
    for k in range(1, bodies.shape[0]):
        last = bodies[k].first + bodies[k].freedom - 1
        if rows[last].second != 0 and abs(angle[last]) > STOP_RAD:
            return k
    return 0


@compiled()
def collect(t, period):
    """Write the motion of load, drones and anchors into `PlantState.motion`."""
    bodies = bodies_of(t)
    selected = selected_of(t)
    motion = shown_of(t)
    for i in range(selected.shape[0]):
        collect_state(bodies[selected[i]], period, motion[i])
    anchors = anchors_of(t)
    for k in range(anchors.shape[0]):
        if anchors[k] >= 0:
            collect_state(bodies[anchors[k]], period, motion[selected.shape[0] + k])


@CompiledStage
def restart(address):
    """Take over a state that was set from outside and restart the energy balance."""
    t = record_at(address, SYSTEM)
    place_bodies(address)
    move_bodies(address, False)
    sum_motions(t)
    collect(t, 0.0)
    kinetic, weight = mechanical_energy(t)
    ledger = t.ledger
    ledger.balance = ledger.low = ledger.spurious = ledger.exchanged = 0.0
    ledger.high = ledger.lost = 0.0
    ledger.recent = ledger.recent_exchanged = 0.0
    put(ledger.recent_impulse, (0.0, 0.0, 0.0))
    ledger.energy = kinetic + weight
    ledger.kinetic = kinetic
    t.fresh = 1


# ---------- Energy


@compiled()
def mechanical_energy(t):
    """Kinetic energy and that of weight [J]."""
    pieces = pieces_of(t)
    kinetic = weight = 0.0
    for p in range(pieces.shape[0]):
        piece = pieces[p]
        kinetic += piece.now.kinetic
        weight += t.gravity * (piece.now.mass * piece.pivot[2] + piece.centre[2])
    return kinetic, weight


@compiled()
def account(t, period):
    """Enter a period into the ledger.

    The balance is the energy minus the work of all forces, with dampers, springs and the ground.
    A rise of the balance is spurious energy, a fall is lost energy.
    """
    kinetic, weight = mechanical_energy(t)
    ledger = t.ledger
    gained = kinetic + weight - ledger.energy - t.work + t.loss
    ledger.energy = kinetic + weight
    ledger.kinetic = max(ledger.kinetic, kinetic)
    ledger.exchanged += t.exchanged
    ledger.balance += gained
    ledger.low = min(ledger.low, ledger.balance)
    ledger.spurious = max(ledger.spurious, ledger.balance - ledger.low)
    ledger.high = max(ledger.high, ledger.balance)
    ledger.lost = max(ledger.lost, ledger.high - ledger.balance)
    decay = 1.0 - period / MEMORY_S
    ledger.recent = max(decay * ledger.recent + gained, 0.0)
    ledger.recent_exchanged = decay * ledger.recent_exchanged + t.exchanged
    put(ledger.recent_impulse, add_scaled(t.made, decay, ledger.recent_impulse))
    ledger.now_kinetic = kinetic


@compiled()
def check_energy(ledger, before, weight, allowed_j):
    """Whether a control period made too much energy, or the run so far too much or momentum."""
    floor = FLOOR_LIFT_M * weight
    whole = ledger.kinetic + ledger.exchanged
    recent = ledger.now_kinetic + ledger.recent_exchanged
    spurious = ledger.spurious - floor
    lately = ledger.recent - floor
    if spurious > END_SHARE * whole or lately > END_SHARE * recent:
        return SPURIOUS_ENERGY
    doubtful = spurious > DOUBTFUL_SHARE * whole or lately > DOUBTFUL_SHARE * recent
    doubtful |= norm(ledger.recent_impulse) > DOUBTFUL_FORCE_SHARE * weight * MEMORY_S
    if ledger.balance - before > (0.05 if doubtful else 1.0) * allowed_j:
        return UNBALANCED
    return DOUBTFUL if doubtful or ledger.lost - floor > DOUBTFUL_SHARE * whole else OK
