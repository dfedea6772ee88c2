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

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.aerodynamics import spin_rotors
from musls_sim.plants.bodies import OMEGA, POSITION, ROTATION, VELOCITY
from musls_sim.plants.elastic.bodies import know, remember_first_stage, settle
from musls_sim.plants.elastic.columns import (
    ABSOLUTE_WORK,
    AS,
    B_CORNERS,
    B_FIRST_CORNER,
    B_FREE,
    B_INERTIA,
    B_MASS,
    BA,
    BAS,
    BL,
    BLK,
    BR,
    BTAU,
    BTAUS,
    BV,
    BVK,
    BVS,
    BW,
    BWS,
    BX,
    BXK,
    C_ACTIVE,
    C_FORCE,
    C_TOUCHED,
    EXTERNAL,
    GROUND,
    IW,
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
from musls_sim.plants.elastic.reeling import set_lengths
from musls_sim.plants.elastic.rotations import similar
from musls_sim.plants.elastic.shafts import know_shafts, settle_shafts, start_shafts
from musls_sim.plants.elastic.stage import outside

GAMMA = 2.0 - np.sqrt(2.0)
D = 0.5 * GAMMA
W = np.sqrt(2.0) / 4.0
AHEAD = (1.0 - GAMMA) / GAMMA

MOST_SOLUTIONS = 24
"""Solutions of a stage before the step is taken as too long."""

EULER_STEPS = 4
"""Implicit Euler steps in place of a step that makes energy."""

MADE_SHARE = 5e-3
"""Share of what moves and is bent that a step may make where nothing begins to carry."""

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
    """Add work and losses over a share of a step."""
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
def _settle(t):
    """Make the last stage the state, keep the peaks of the tension."""
    numbers, ground = t.numbers, t.parameters[GROUND]
    for b in range(t.bodies.shape[0]):
        p, m = t.bodies[b], t.motion[b]
        settle(p, m)
        n = numbers[b, B_FIRST_CORNER]
        if numbers[b, B_CORNERS] > 0 and numbers[b, B_FREE]:
            touching = t.corners[n : n + numbers[b, B_CORNERS]]
            if not near_ground(p, ground):
                touching[:, C_FORCE + 2] = 0.0
            settle_corners(p, m, touching, ground)
    for n in t.nodes:
        for k in range(3):
            n[X + k], n[V + k], n[A + k] = n[XS + k], n[VS + k], n[AS + k]
    if t.shafts.shape[0] > 0:
        settle_shafts(t)
    for s in t.segments:
        s[PEAK] = max(s[PEAK], s[TENSION])
        s[TAUT] = 1.0 if s[TENSION] > 0.0 else 0.0


@compiled()
def begin_first(t, drive, share):
    """Set up the first stage of a step; returns the stage's weight [s]."""
    h = share * drive.period
    t.stage_speed[:] = t.speed
    _old_wrenches(t.bodies, -1.0)
    outside(t, drive, t.speed)
    _old_wrenches(t.bodies, 1.0)
    t.old_sums[:] = t.sums
    _count(t.bodies, t.numbers, BV, BW, t.sums, W * h, t.losses)
    spin_rotors(t.stage_speed, drive.command, t.rotors, GAMMA * h)
    _know_first(t.nodes, D * h)
    know_shafts(t.shafts, 0, D * h, 0.0)
    for p in t.bodies:
        know(p, True, D * h, GAMMA * h)
    return D * h


@compiled()
def begin_second(t, drive, share, losses):
    """Count the first stage of a step and set up the second; returns the stage's weight [s]."""
    h = share * drive.period
    _count(t.bodies, t.numbers, BVS, BWS, t.sums, W * h, losses)
    spin_rotors(t.stage_speed, drive.command, t.rotors, (1.0 - GAMMA) * h)
    _know_second(t.nodes, W * h, D * h)
    know_shafts(t.shafts, 1, W * h, AHEAD)
    for p in t.bodies:
        remember_first_stage(p)
        know(p, False, W * h, AHEAD)
    return D * h


@compiled()
def begin_euler(t, drive, dh):
    """Set up an implicit Euler step of a length [s]."""
    t.stage_speed[:] = t.speed
    spin_rotors(t.stage_speed, drive.command, t.rotors, dh)
    _know_start(t.nodes, t.bodies, dh)
    know_shafts(t.shafts, 2, dh, 0.0)


@compiled()
def end_euler(t, dh, losses):
    """Count an implicit Euler step and make its end the state."""
    _count(t.bodies, t.numbers, BVS, BWS, t.sums, dh, losses)
    t.speed[:] = t.stage_speed
    _settle(t)


@compiled()
def begin_start(t):
    """Set up the tiny step that gives the accelerations of the state."""
    t.stage_speed[:] = t.speed
    _know_start(t.nodes, t.bodies, START_STEP_S)
    know_shafts(t.shafts, 2, START_STEP_S, 0.0)
    return START_STEP_S


@compiled()
def end_start(t, losses):
    """Take the accelerations of the tiny step, and leave the state."""
    t.losses[:] = losses
    start_shafts(t.shafts)
    for n in t.nodes:
        for k in range(3):
            n[A + k] = n[AS + k]
    for p in t.bodies:
        for k in range(3):
            p[BA + k], p[BTAU + k] = p[BAS + k], p[BTAUS + k]
    for s in t.segments:
        s[TAUT] = 1.0 if s[TENSION] > 0.0 else 0.0


@compiled()
def rewind(t, drive):
    """Undo the stages of a step: what they overwrote beside the stage follows from the state."""
    for b in range(t.bodies.shape[0]):
        p, m = t.bodies[b], t.motion[b]
        m[ROTATION : ROTATION + 9] = p[BR : BR + 9]
        for k in range(3):
            m[POSITION + k], m[VELOCITY + k], m[OMEGA + k] = p[BX + k], p[BV + k], p[BW + k]
        similar(p[BR : BR + 9], p[B_INERTIA : B_INERTIA + 9], p[IW : IW + 9])
    for c in t.corners:
        if c[C_TOUCHED] == 0.0:
            c[C_ACTIVE] = 0.0
    outside(t, drive, t.speed)
    t.sums[:] = t.old_sums


@compiled()
def stored_energy(t):
    """Energy of the state [J]."""
    energy = t.work[52:56]
    energy[:] = 0.0
    if t.shafts.shape[0] > 0:
        set_lengths(t, True)
    add_energies(t, energy)
    return energy[0] + energy[1] + energy[2] + energy[3]


@compiled()
def end_second(t, x, kept, h, switched, rough, losses):
    """Count the second stage; its end becomes the state unless the step makes energy from nothing."""
    _count(t.bodies, t.numbers, BVS, BWS, t.sums, D * h, losses)
    held = switched > 0.0 or rough
    before = allowed = 0.0
    if held:
        kept[1] = x[: kept.shape[1]]
        before, allowed = stored_energy(t), t.parameters[MADE_J]
        if switched == 0.0:
            allowed = max(allowed, MADE_SHARE * moving_energy(t))
    _settle(t)
    if held and gained(t, before) > allowed:
        x[: kept.shape[1]] = kept[1]
        t.sums[:] = t.old_sums
        return False
    t.losses[:] = losses
    t.speed[:] = t.stage_speed
    return True


@compiled()
def moving_energy(t):
    """Energy in motion, stretch and bending, after `stored_energy` [J]."""
    return t.work[52] + t.work[54] + t.work[55]


@compiled()
def gained(t, before):
    """Energy that a step made from nothing [J], given that before it."""
    sums, old = t.sums, t.old_sums
    made = stored_energy(t) - before - (sums[WORK] - old[WORK])
    return made + sums[LOSS_CABLES] - old[LOSS_CABLES] + sums[LOSS_GROUND] - old[LOSS_GROUND]
