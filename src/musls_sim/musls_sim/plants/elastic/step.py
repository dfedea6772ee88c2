"""Steps of one control period: TR-BDF2 in one compiled call.

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

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.aerodynamics import spin_rotors
from musls_sim.plants.bodies import fastest_body
from musls_sim.plants.elastic.bodies import know, remember_first_stage, settle
from musls_sim.plants.elastic.columns import (
    ABSOLUTE_WORK,
    AS,
    B_CORNERS,
    B_FIRST_CORNER,
    B_FREE,
    B_MASS,
    BA,
    BAS,
    BL,
    BLK,
    BTAU,
    BTAUS,
    BV,
    BVK,
    BVS,
    BW,
    BWS,
    BX,
    BXK,
    C_FORCE,
    EULER,
    EXTERNAL,
    GRAVITY,
    GROUND,
    ITERATIONS,
    JUMPED,
    LOSS_AIR,
    LOSS_CABLES,
    LOSS_GROUND,
    MADE_J,
    PEAK,
    PSD,
    PSIK,
    REACTION,
    TAUT,
    TENSION,
    VK,
    VS,
    WORK,
    XK,
    XS,
    A,
    V,
    X,
)
from musls_sim.plants.elastic.contact import near_ground, settle_corners
from musls_sim.plants.elastic.energy import add_energies
from musls_sim.plants.elastic.output import collect_bodies, collect_cables
from musls_sim.plants.elastic.reactions import react
from musls_sim.plants.elastic.reeling import set_lengths
from musls_sim.plants.elastic.shafts import (
    begin_shafts,
    know_shafts,
    react_shafts,
    settle_shafts,
    start_shafts,
)
from musls_sim.plants.elastic.stage import outside, solve_stage
from musls_sim.plants.elastic.tables import unpack

GAMMA = 2.0 - np.sqrt(2.0)
D = 0.5 * GAMMA
W = np.sqrt(2.0) / 4.0
AHEAD = (1.0 - GAMMA) / GAMMA

MOST_SOLUTIONS = 24
"""Solutions of a stage before the step is taken as too long."""

EULER_STEPS = 4
"""Implicit Euler steps in place of a step that makes energy."""

_FIRST, _SECOND, _EULER, _START = 0, 1, 2, 3

START_STEP_S = 1e-6
"""Length of the implicit Euler step that gives the accelerations of a start."""


@compiled()
def _know_first(nodes, dh):
    """What the first stage knows of the nodes, and where they are by the guess."""
    for n in nodes:
        for k in range(3):
            a = n[A + k]
            v = n[V + k] + dh * a
            x = n[X + k] + dh * n[V + k]
            n[XK + k], n[VK + k], n[AS + k] = x, v, a
            v += dh * a
            n[VS + k], n[XS + k] = v, x + dh * v


@compiled()
def _know_second(nodes, wh, dh):
    """The same for the second stage; its guess goes on along the change of the acceleration."""
    for n in nodes:
        for k in range(3):
            a, ag, vg = n[A + k], n[AS + k], n[VS + k]
            x, v = n[X + k] + wh * (n[V + k] + vg), n[V + k] + wh * (a + ag)
            a = ag + AHEAD * (ag - a)
            n[XK + k], n[VK + k], n[AS + k] = x, v, a
            v += dh * a
            n[VS + k], n[XS + k] = v, x + dh * v


@compiled()
def _know_start(nodes, bodies, dh):
    """Set up an implicit Euler step from the state, and where the nodes are by the guess."""
    for n in nodes:
        for k in range(3):
            n[XK + k], n[VK + k], n[AS + k] = n[X + k], n[V + k], n[A + k]
            n[VS + k] = n[V + k] + dh * n[A + k]
            n[XS + k] = n[X + k] + dh * n[VS + k]
    for p in bodies:
        for k in range(3):
            p[BXK + k], p[BVK + k], p[BAS + k] = p[BX + k], p[BV + k], p[BA + k]
            p[PSIK + k], p[PSD + k] = 0.0, p[BW + k]
            p[BLK + k] = p[BL + k]


@compiled()
def _old_wrenches(bodies, sign):
    """Take the outside wrench out of the rates (-1) or put it in (+1)."""
    for p in bodies:
        if p[B_MASS] > 0.0:
            for k in range(3):
                p[BA + k] += sign * p[EXTERNAL + k] / p[B_MASS]
                p[BTAU + k] += sign * p[EXTERNAL + 3 + k]


@compiled()
def _count(bodies, numbers, v, omega, sums, weight, losses):
    """Add work and losses over a share of a step.

    Args:
        bodies: See `tables.Tables`.
        numbers: The same.
        v: Column of the velocity.
        omega: Column of the angular velocity.
        sums: Energy sums.
        weight: Time for which this counts [s].
        losses: From `solve_stage`.
    """
    work = losses[2] + losses[4]
    for b in range(bodies.shape[0]):
        p = bodies[b]
        for k in range(3):
            work += p[EXTERNAL + k] * p[v + k] + p[EXTERNAL + 3 + k] * p[omega + k]
            if numbers[b, B_FREE] == 0:
                work += p[REACTION + k] * p[v + k] + p[REACTION + 3 + k] * p[omega + k]
    sums[WORK] += weight * work
    sums[ABSOLUTE_WORK] += weight * abs(work)
    sums[LOSS_CABLES] += weight * losses[0]
    sums[LOSS_GROUND] += weight * losses[1]
    sums[LOSS_AIR] -= weight * losses[2]


@compiled()
def _settle(bodies, numbers, motion, corners, nodes, segments, ground):
    """Make the last stage the state, keep the peaks of the tension."""
    for b in range(bodies.shape[0]):
        p, m = bodies[b], motion[b]
        settle(p, m)
        n = numbers[b, B_FIRST_CORNER]
        if numbers[b, B_CORNERS] > 0 and numbers[b, B_FREE]:
            touching = corners[n : n + numbers[b, B_CORNERS]]
            if not near_ground(p, ground):
                touching[:, C_FORCE + 2] = 0.0
            settle_corners(p, m, touching, ground)
    for n in nodes:
        for k in range(3):
            n[X + k], n[V + k], n[A + k] = n[XS + k], n[VS + k], n[AS + k]
    for s in segments:
        s[PEAK] = max(s[PEAK], s[TENSION])
        s[TAUT] = 1.0 if s[TENSION] > 0.0 else 0.0


@compiled()
def advance(
    numbers_,
    integers,
    layout,
    kept,
    steps,
    refinements,
    period,
    limit,
    command,
    wind,
    wrench_body,
    wrench_enu,
):
    """Advance one control period in equal steps, finer ones where a stage does not converge.

    Args:
        numbers_: Memory of the tables, see `tables.Memory`.
        integers: The same.
        layout: The same.
        kept: The same.
        steps: Number of steps; 0 finds the accelerations of a start and leaves the state.
        refinements: How often the steps may be halved.
        period: Control period [s].
        limit: Speed beyond which a body's motion is not physical [m/s].
        command: Rotor commands, (n_drones, n_rotors).
        wind: Air velocity, (3,).
        wrench_body: Moment and force on every body, its frame, (n_bodies, 6).
        wrench_enu: The same in the world frame, (n_bodies, 6).

    Returns:
        Number of steps taken, -1 if no step was short enough, -2 if a body is too fast.
    """
    t = unpack(numbers_, integers, layout)
    bodies, numbers, motion, nodes, segments = t.bodies, t.numbers, t.motion, t.nodes, t.segments
    gravity, ground, sums = t.parameters[GRAVITY], t.parameters[GROUND], t.sums
    losses, stage_losses, energy = t.losses, t.work[28:33], t.work[52:56]
    changing = kept.shape[1]
    start = steps == 0
    steps = max(steps, 1)
    level, i, j = 0, 0, 0
    jumped = t.parameters[JUMPED] > 0.0 and not start
    mode = _START if start or jumped else _FIRST
    segments[:, PEAK] = 0.0
    begin_shafts(t.shafts, t.turning, t.cables)
    t.old_sums[:] = sums
    if steps > 1:
        kept[0] = numbers_[:changing]
    if jumped:
        kept[1] = numbers_[:changing]
    while i < steps:
        h = period / steps
        dh = D * h
        if mode == _FIRST:
            t.stage_speed[:] = t.speed
            _old_wrenches(bodies, -1.0)
            outside(bodies, numbers, motion, t.speed, t.rotors, wind, wrench_body, wrench_enu)
            _old_wrenches(bodies, 1.0)
            t.old_sums[:] = sums
            _count(bodies, numbers, BV, BW, sums, W * h, losses)
            spin_rotors(t.stage_speed, command, t.rotors, GAMMA * h)
            _know_first(nodes, dh)
            know_shafts(t.shafts, 0, dh, 0.0)
            for p in bodies:
                know(p, True, dh, GAMMA * h)
            share = (i + GAMMA) / steps
        elif mode == _SECOND:
            spin_rotors(t.stage_speed, command, t.rotors, (1.0 - GAMMA) * h)
            _know_second(nodes, W * h, dh)
            know_shafts(t.shafts, 1, W * h, AHEAD)
            for p in bodies:
                remember_first_stage(p)
                know(p, False, W * h, AHEAD)
            share = (i + 1.0) / steps
        elif mode == _EULER:
            dh = h / EULER_STEPS
            t.stage_speed[:] = t.speed
            spin_rotors(t.stage_speed, command, t.rotors, dh)
            _know_start(nodes, bodies, dh)
            know_shafts(t.shafts, 2, dh, 0.0)
            share = (i + (j + 1.0) / EULER_STEPS) / steps
        else:
            dh = START_STEP_S
            t.stage_speed[:] = t.speed
            _know_start(nodes, bodies, dh)
            know_shafts(t.shafts, 2, dh, 0.0)
            share = (i if start or jumped else i + 1.0) / steps
        solved = solve_stage(
            t, dh, share, period, wind, wrench_body, wrench_enu, MOST_SOLUTIONS, stage_losses
        )
        if solved == 0:
            if start or level == refinements:
                return -1
            if steps > 1:
                numbers_[:changing] = kept[0]
            else:
                if mode > _SECOND:
                    numbers_[:changing] = kept[1]
                sums[:] = t.old_sums
                kept[0] = numbers_[:changing]
            level, steps, i, mode, jumped = level + 1, 2 * steps, 0, _FIRST, False
            continue
        react(bodies, numbers, t.kinds, t.cables, nodes, gravity)
        react_shafts(t)
        sums[ITERATIONS] += solved
        if mode == _FIRST:
            _count(bodies, numbers, BVS, BWS, sums, W * h, stage_losses)
            switched = stage_losses[3]
            mode = _SECOND
        elif mode == _SECOND:
            _count(bodies, numbers, BVS, BWS, sums, D * h, stage_losses)
            switched += stage_losses[3]
            made = 0.0
            if switched > 0.0:
                kept[1] = numbers_[:changing]
                energy[:] = 0.0
                set_lengths(t, True)
                add_energies(t, energy)
                made = -energy.sum() - (
                    sums[WORK] - t.old_sums[WORK]
                    - sums[LOSS_CABLES] + t.old_sums[LOSS_CABLES]
                    - sums[LOSS_GROUND] + t.old_sums[LOSS_GROUND]
                )  # fmt: skip
            _settle(bodies, numbers, motion, t.corners, nodes, segments, ground)
            settle_shafts(t)
            if switched > 0.0:
                energy[:] = 0.0
                set_lengths(t, True)
                add_energies(t, energy)
                made += energy.sum()
            if switched > 0.0 and made > t.parameters[MADE_J]:
                numbers_[:changing] = kept[1]
                sums[:] = t.old_sums
                mode, j = _EULER, 0
                continue
            losses[:] = stage_losses
            t.speed[:] = t.stage_speed
            mode = _FIRST
            i += 1
        elif mode == _EULER:
            _count(bodies, numbers, BVS, BWS, sums, dh, stage_losses)
            t.speed[:] = t.stage_speed
            _settle(bodies, numbers, motion, t.corners, nodes, segments, ground)
            settle_shafts(t)
            j += 1
            if j == EULER_STEPS:
                mode = _START
                sums[EULER] += 1.0
        else:
            losses[:] = stage_losses
            for n in nodes:
                for k in range(3):
                    n[A + k] = n[AS + k]
            for p in bodies:
                for k in range(3):
                    p[BA + k], p[BTAU + k] = p[BAS + k], p[BTAUS + k]
            for s in segments:
                s[TAUT] = 1.0 if s[TENSION] > 0.0 else 0.0
            start_shafts(t.shafts)
            mode = _FIRST
            if jumped:
                jumped = False
            else:
                i += 1
    collect_cables(t.kinds, t.cables, nodes, segments, t.force, t.peak)
    collect_bodies(motion, 0.0 if start else period, t.shown)
    _, speed = fastest_body(motion)
    return steps if speed <= limit else -2
