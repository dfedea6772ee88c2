"""One control period in one compiled call: equal steps, divided or refined where needed."""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_description.compiled_memory import borrowed
from musls_sim.plants.bodies import fastest_body
from musls_sim.plants.elastic.breaks import (
    doom,
    judge,
    next_cut,
    note_tensions,
    overload,
    part,
)
from musls_sim.plants.elastic.columns import (
    EULER,
    FRAGILE,
    GRAVITY,
    ITERATIONS,
    JUMPED,
    MADE_J,
    PEAK,
    T_BEGIN,
    T_FIRST,
)
from musls_sim.plants.elastic.output import collect_bodies, collect_cables
from musls_sim.plants.elastic.reactions import react
from musls_sim.plants.elastic.shafts import begin_shafts, react_shafts
from musls_sim.plants.elastic.stage import solve_stage
from musls_sim.plants.elastic.step import (
    EULER_STEPS,
    GAMMA,
    MADE_SHARE,
    MOST_SOLUTIONS,
    begin_euler,
    begin_first,
    begin_second,
    begin_start,
    end_euler,
    end_second,
    end_start,
    gained,
    moving_energy,
    rewind,
    stored_energy,
)
from musls_sim.plants.elastic.tables import Drive, unpack

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
