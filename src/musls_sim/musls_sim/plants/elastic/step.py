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
from musls_description.compiled_memory import borrowed
from musls_sim.plants.elastic.bodies import (
    know,
    near_ground,
    remember_first_stage,
    settle,
    settle_corners,
    similar,
)
from musls_sim.plants.elastic.breaks import doom, judge, next_cut, note_tensions, overload, part
from musls_sim.plants.elastic.output import add_energies, collect_bodies, collect_cables, react
from musls_sim.plants.elastic.reels import (
    begin_shafts,
    know_shafts,
    react_shafts,
    set_lengths,
    settle_shafts,
    start_shafts,
)
from musls_sim.plants.elastic.stage import outside, solve_stage
from musls_sim.plants.elastic.state import (
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
    EULER,
    EXTERNAL,
    FRAGILE,
    GRAVITY,
    GROUND,
    ITERATIONS,
    IW,
    JUMPED,
    LOSS_AIR,
    LOSS_CABLES,
    LOSS_GROUND,
    MADE_J,
    PEAK,
    PSD,
    PSIK,
    REACTION,
    T_BEGIN,
    T_FIRST,
    TAUT,
    TENSION,
    VK,
    VS,
    WORK,
    XK,
    XS,
    A,
    Drive,
    V,
    X,
    unpack,
)
from musls_sim.plants.rigid_links.rows import (
    OMEGA,
    POSITION,
    ROTATION,
    VELOCITY,
    fastest_body,
    spin_rotors,
)

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
    """Count the second stage; its end is the new state unless the step makes energy."""
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


# ---------- One control period in one compiled call: equal steps, divided or refined where needed.

_FIRST, _SECOND, _EULER, _START = 0, 1, 2, 3

BREAK_TOLERANCE = 1e-6
"""Share of the break force to which the time of a break is found."""

SHORTEST_SHARE = 1e-7
"""Share of the period to which it is found where the tension jumps."""

FINEST_SHARE = 1.0 / 64.0
"""Share of the period down to which a step near a break is refined for its own sake."""

COARSE = 0.2
"""Change of tension over break force in a step that is refined, if it gets past half of it."""

EULER_MADE = 10.0
"""Energy that implicit Euler steps may make, over what a step may: with more, steps are halved.

They take energy where the forces pull back; a rod that folds has forces that do not.
"""

MOST_TRIALS = 200
"""Trials of a step that ends at a break."""


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
    """What the trial of a step from `begin` to `now` says about its end."""
    end, peak, when, rise = judge(t)
    length = now - begin
    known = bracket[1] > 0.0
    if not known and max(end, peak) > 0.5 and rise > COARSE and length > FINEST_SHARE:
        return begin + 0.5 * length
    if end >= 1.0:
        narrow = now - bracket[0] <= SHORTEST_SHARE or trial >= MOST_TRIALS
        if end <= 1.0 + BREAK_TOLERANCE or narrow:
            doom(t, 1.0)
            return now
        bracket[1], bracket[3] = now, end - 1.0
    elif known:
        if bracket[1] - now <= SHORTEST_SHARE:
            bracket[0] = bracket[1]
            return bracket[1]
        bracket[0], bracket[2] = now, end - 1.0
    elif peak >= 1.0 and when * length > SHORTEST_SHARE and trial < MOST_TRIALS:
        return begin + when * length
    else:
        return now
    return _search(bracket[0], bracket[2], bracket[1], bracket[3], trial)


@compiled()
def _plan(t, at, end, bracket):
    """End of the next step of a rig that can break: the next cut, or what was asked for."""
    note_tensions(t, T_BEGIN)
    bracket[0], bracket[1], bracket[2] = at, -1.0, min(overload(t) - 1.0, -1e-9)
    return next_cut(t, at, end)


@compiled()
def _part(t, at):
    """Part what is due, or overloaded without having been found by trials; returns how many."""
    if overload(t) > 1.0 + BREAK_TOLERANCE:
        doom(t, 1.0)
    return part(t, at)


@compiled()
def advance(
    x,
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
    """Advance one control period in equal steps, finer ones where a stage does not converge."""
    t = unpack(x, integers, layout)
    drive = Drive(
        period, borrowed(command), borrowed(wind), borrowed(wrench_body), borrowed(wrench_enu)
    )
    fragile, changing = t.parameters[FRAGILE] > 0.0, kept.shape[1]
    losses, bracket = t.work[28:33], t.work[90:94]
    t.segments[:, PEAK] = 0.0
    begin_shafts(t.shafts, t.turning, t.cables)
    start = steps == 0
    if start:
        part(t, 0.0)
    again = start or (fragile and _part(t, 0.0) > 0) or t.parameters[JUMPED] > 0.0
    t.old_sums[:] = t.sums
    if steps > 1 or fragile:
        kept[0] = x[:changing]
    elif again:
        kept[1] = x[:changing]
    mode, level, i, euler, trial = _START if again else _FIRST, 0, 0, 0, 0
    at, now, switched, before, allowed, rough = 0.0, 0.0, 0.0, 0.0, 0.0, False
    while start or i < steps:
        if mode == _FIRST and trial == 0:
            now = (i + 1) / steps
            if fragile:
                now = _plan(t, at, now, bracket)
        dh, share = _begin_stage(t, drive, mode, at, now, euler, losses)
        # The only call: each function that calls this one takes half a minute to compile.
        solved = solve_stage(t, dh, share, drive, MOST_SOLUTIONS, losses)
        t.sums[ITERATIONS] += solved
        if solved == 0:
            if start or level == refinements:
                return -1
            _give_up(t, x, kept, drive, mode, steps > 1 or fragile)
            level, steps, i, at, trial = level + 1, 2 * steps, 0, 0.0, 0
            mode = _START if fragile or again else _FIRST
            continue
        react(t.bodies, t.numbers, t.kinds, t.cables, t.nodes, t.parameters[GRAVITY])
        if t.shafts.shape[0] > 0:
            react_shafts(t)
        if mode == _FIRST:
            mode, switched, rough = _SECOND, losses[3], solved > 1
            if fragile:
                note_tensions(t, T_FIRST)
            continue
        if mode == _SECOND:
            tried, trial = now, trial + 1
            if fragile:
                now = _next_trial(t, at, now, bracket, trial)
            if now != tried:
                rewind(t, drive)
                mode = _FIRST
                continue
            # Not in steps without refinement: those of a search for an equilibrium.
            switched, rough = switched + losses[3], refinements > 0 and (rough or solved > 1)
            if not end_second(t, x, kept, (now - at) * period, switched, rough, losses):
                if switched == 0.0 and level < refinements:  # too coarse for a smooth motion
                    _give_up(t, x, kept, drive, mode, steps > 1 or fragile)
                    level, steps, i, at, trial = level + 1, 2 * steps, 0, 0.0, 0
                    mode = _START if fragile or again else _FIRST
                    continue
                mode, euler, before = _EULER, 0, stored_energy(t)
                allowed = max(EULER_MADE * t.parameters[MADE_J], MADE_SHARE * moving_energy(t))
                continue
        elif mode == _EULER:
            end_euler(t, dh, losses)
            euler += 1
            if euler < EULER_STEPS:
                continue
            t.sums[EULER] += 1.0
            if level < refinements and gained(t, before) > allowed:
                _give_up(t, x, kept, drive, mode, steps > 1 or fragile)
                level, steps, i, at, trial = level + 1, 2 * steps, 0, 0.0, 0
                mode = _START if fragile or again else _FIRST
                continue
        else:
            end_start(t, losses)
        if mode != _START:
            at = now
        parted = fragile and not start and _part(t, at) > 0
        mode = _START if parted or mode == _EULER else _FIRST
        if mode == _FIRST:
            trial = 0
            if not start and at >= (i + 1) / steps:
                i += 1
            start = False
    _collect(t, period if steps > 0 else 0.0)
    if steps == 0:
        return 0
    _, speed = fastest_body(t.motion)
    return steps if speed <= limit else -2


@compiled()
def _begin_stage(t, drive, mode, at, now, euler, losses):
    """Set up a stage of a step from `at` to `now`; returns its weight [s] and its time (share)."""
    length = now - at
    if mode == _FIRST:
        return begin_first(t, drive, length), at + GAMMA * length
    if mode == _SECOND:
        return begin_second(t, drive, length, losses), now
    if mode == _EULER:
        dh = length * drive.period / EULER_STEPS
        begin_euler(t, drive, dh)
        return dh, at + length * (euler + 1.0) / EULER_STEPS
    return begin_start(t), at


@compiled()
def _give_up(t, x, kept, drive, mode, copied):
    """Return to the begin of the period, and keep it."""
    changing = kept.shape[1]
    if copied:
        x[:changing] = kept[0]
        return
    if mode >= _EULER:
        x[:changing] = kept[1]
    rewind(t, drive)
    kept[0] = x[:changing]


@compiled()
def _collect(t, dt):
    """What the plant shows."""
    gravity = t.parameters[GRAVITY]
    collect_cables(t.kinds, t.cables, t.nodes, t.segments, gravity, t.force, t.peak)
    collect_bodies(t.motion, t.numbers, dt, t.shown)
