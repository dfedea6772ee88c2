"""One control period of load and drones on massless cables or rods, in compiled code.

Between events the cables' modes are fixed and everything is smooth: Runge-Kutta's classical method
of fourth order. Where a step ends with a slack cable beyond its length or a taut one that pushes,
the same step is repeated from its begin with other lengths until the event is bracketed; it then
ends just behind the event, the event is treated, and the rest of the period follows.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numba import types

from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import (
    address_of,
    copy_table,
    record_at,
    record_beyond,
)
from musls_description.numerics.vectors import dot, put, scale
from musls_description.system.obstacles import begin_motion, move_solids
from musls_sim.plants.interface import (
    SPEED_LIMIT_M_S,
    STEP,
    command_of,
    surface_motion_of,
    wind_of,
    wrench_body_of,
    wrench_enu_of,
)
from musls_sim.plants.massless.bodies import move, normalise, rod_forces
from musls_sim.plants.massless.cables import RATTLE_M, SHALLOW_M, decide, project, rates
from musls_sim.plants.massless.records import (
    SYSTEM,
    bodies_of,
    cables_of,
    corners_of,
    end_speed_of,
    force_of,
    keep_inputs,
    middle_speed_of,
    moving_of,
    own_command_of,
    rotors_of,
    show_bodies,
    solids_of,
    speed_of,
)
from musls_sim.plants.rigid_body import (
    CLOSE,
    DEEP,
    FAR,
    LONGER_AT_REST,
    STANDING,
    fastest_body,
    look_for_surfaces,
    settle_corners,
    spin_rotors,
)

BEYOND_M = 1e-13
"""Largest distance of a taut cable's ends beyond its length."""

MAX_LOCATED = 300
"""Events of a period that are located in time; the rest of it goes on in short steps."""

SHORT_S = 1e-4
"""Length of those short steps."""

TURN = 0.25
"""Largest angle that the fastest motion turns through in a step [rad]."""

MAX_STEPS = 20_000
"""Largest number of steps in a control period; only a body that turns absurdly fast needs more."""

BRACKET_S = 1e-11
"""Width to which an event is enclosed."""


@CompiledStage
def move_plant(address):
    """One period of a `STEP`; the verdict is the number of events, or -1."""
    s = record_at(address, STEP)
    t = record_beyond(s, s.plant, SYSTEM)
    period = s.period
    now = 0.0
    steps = 0
    copy_table(own_command_of(t), command_of(s))
    bodies = bodies_of(t)
    cables = cables_of(t)
    forces = force_of(t)
    begin_motion(solids_of(t), surface_motion_of(s), period)
    t.happened = 0
    moving = period > 0.0
    for c in cables:
        put(c.impulse, (0.0, 0.0, 0.0))
    if keep_inputs(t, wind_of(s), wrench_body_of(s), wrench_enu_of(s)) or s.prescribed != 0:
        decide(t, speed_of(t), now, moving, SHALLOW_M)
    for c in cables:
        c.peak = c.tension
    while now < period:
        near = look_for_surfaces(bodies, corners_of(t), solids_of(t), t.step)
        located = t.happened < MAX_LOCATED
        longest = step_length(t, near)
        if not located:
            longest = min(longest, SHORT_S)
        h = (period - now) / max(math.ceil((period - now) / longest - 1e-6), 1.0)
        h, event = one_step(t, now, h, located)
        end_step(address_of(t), h, near)
        now += h
        steps += 1
        if period - now < 1e-9 * period:
            now = period
        if event:
            decide(t, end_speed_of(t), now, moving, SHALLOW_M if located else RATTLE_M)
        if steps >= MAX_STEPS or not fastest_body(bodies)[1] < SPEED_LIMIT_M_S:
            s.verdict = -1
            s.failed = 1
            return
    if period > 0.0:
        copy_table(speed_of(t), end_speed_of(t))
        t.refined += steps > math.ceil(period / t.step - 1e-6)
    show_bodies(t, period)
    for k in range(len(cables)):
        forces[k, 0, 0] = forces[k, 1, 0] = cables[k].tension
    s.verdict = t.happened
    s.failed = 0


@compiled()
def step_length(t, near):
    """Longest step for the present motion."""
    fastest2 = load = 0.0
    for body in moving_of(t):
        if body.free != 0:
            fastest2 = max(fastest2, dot(body.state.omega, body.state.omega))
    for c in cables_of(t):
        load += c.tension * c.load_spin
        fastest2 = max(fastest2, c.tension * c.drone_spin)
    fastest2 = max(fastest2, load)
    h = t.step
    if near == STANDING:
        h = min(h, LONGER_AT_REST * t.contact_step)
    elif near == CLOSE:
        h = min(h, t.contact_step)
    elif near == DEEP:
        h = min(h, t.impact_step)
    return min(h, TURN / math.sqrt(fastest2)) if fastest2 > 0.0 else h


@compiled()
def one_step(t, now, h, located):
    """Step up to h, or to just behind the first event."""
    begin_step(t)
    trial(address_of(t), now, h)
    if events_crossed(t):
        return (locate(address_of(t), now, h) if located else h), True
    inside = possible_event(t, h) if located else 0.0
    if inside == 0.0:
        return h, False
    trial(address_of(t), now, inside)
    if events_crossed(t):
        return locate(address_of(t), now, inside), True
    trial(address_of(t), now, h)
    return h, False


@compiled()
def begin_step(t):
    """Keep where the step begins."""
    for body in moving_of(t):
        body.begin = body.state
        body.first = body.rate
    t.first_driven = t.driven
    t.first_lost = t.lost
    for c in cables_of(t):
        c.threshold = max(c.gap, 0.0) + BEYOND_M
        c.begin_gap = c.gap
        c.begin_rate = c.rate
        c.value_low = c.gap - c.threshold if c.taut == 0 else -c.tension
        put(c.begin_force, scale(c.tension, c.along))


@partial(CompiledStage, takes=(types.float64, types.int64))
def end_step(address, h, near):
    """Sum up what happened in a step that is done."""
    t = record_at(address, SYSTEM)
    t.work += h * t.mean_driven
    t.loss += h * t.mean_lost
    t.absolute_work += abs(h * t.mean_driven)
    if t.rigid != 0:
        rod_forces(t)
    for c in cables_of(t):
        c.peak = max(c.peak, c.tension)
        for k in range(3):
            c.impulse[k] += 0.5 * h * (c.begin_force[k] + c.tension * c.along[k])
    if near != FAR:
        settle_corners(bodies_of(t), corners_of(t), solids_of(t), t.friction)
    if t.rigid == 0:
        project(t)


# ---------- Steps of Runge and Kutta, and their repetition up to an event


@compiled()
def spin_to(t, now, out):
    """Rotor speeds at a time since the begin of the period."""
    copy_table(out, speed_of(t))
    spin_rotors(out, own_command_of(t), rotors_of(t), now)


@partial(CompiledStage, takes=(types.float64, types.float64))
def trial(address, now, h):
    """Step of Runge and Kutta from where the step begins.

    The derivatives at the end are left in the bodies, gaps, rates and tensions in the cables, the
    mean powers in the system.
    """
    t = record_at(address, SYSTEM)
    moving = moving_of(t)
    cables = cables_of(t)
    middle_speed = middle_speed_of(t)
    end_speed = end_speed_of(t)
    spin_to(t, now + 0.5 * h, middle_speed)
    spin_to(t, now + h, end_speed)
    for c in cables:
        c.least = np.inf
    drive_power = t.first_driven
    loss_power = t.first_lost
    for stage in range(1, 5):
        for body in moving:
            if stage == 1:
                body.total = body.first
                move(body.state, body.begin, 0.5 * h, body.first)
            elif stage < 4:
                move(body.total, body.total, 2.0, body.rate)
                move(body.state, body.begin, 0.5 * h if stage == 2 else h, body.rate)
            else:
                move(body.total, body.total, 1.0, body.rate)
                move(body.state, body.begin, h / 6.0, body.total)
                normalise(body.state.attitude)
        if stage == 4:
            t.mean_driven = drive_power / 6.0
            t.mean_lost = loss_power / 6.0
        ahead, speed = (0.5 * h, middle_speed) if stage < 3 else (h, end_speed)
        move_solids(solids_of(t), now + ahead)
        rates(t, speed, now + ahead)
        weight = 2.0 if stage < 3 else 1.0
        drive_power += weight * t.driven
        loss_power += weight * t.lost
        if stage < 3:
            for c in cables:
                c.least = min(c.least, c.tension)


@compiled()
def events_crossed(t):
    """Write the event functions after a trial into the cables; whether any is positive.

    Slack cables: gap beyond the threshold; taut ones: how far tension is below zero.
    """
    noise = t.tension_noise
    any_crossed = False
    for c in cables_of(t):
        c.value = c.gap - c.threshold if c.taut == 0 else -c.tension - noise
        any_crossed |= c.value > 0.0
    return any_crossed


@compiled()
def possible_event(t, h):
    """Time within a step at which a cable may be beyond its length or push, not so at its end.

    Of slack cables the gap is taken as the cubic of the values and rates at both ends.
    """
    noise = t.tension_noise
    first = 0.0
    for c in cables_of(t):
        if c.taut != 0:
            if c.least < -noise and (first == 0.0 or 0.5 * h < first):
                first = 0.5 * h
            continue
        g0, g1 = c.begin_gap, c.gap
        r0, r1 = c.begin_rate * h, c.rate * h
        if max(g0, g1) + abs(r0) + abs(r1) < 0.0:
            continue
        c2, c3 = 3.0 * (g1 - g0) - 2.0 * r0 - r1, r0 + r1 - 2.0 * (g1 - g0)
        # A maximum of g0 + r0 s + c2 s^2 + c3 s^3: rate 0, falling.
        disc = c2 * c2 - 3.0 * c3 * r0
        if disc <= 0.0:
            continue
        q = -c2 - math.sqrt(disc)
        if q == 0.0 or r0 == 0.0:
            continue
        # Of both roots of 3 c3 s^2 + 2 c2 s + r0 the one where the rate falls.
        s = r0 / q if c2 > 0.0 else q / (3.0 * c3) if c3 != 0.0 else -r0 / (2.0 * c2)
        for attempt in range(2):
            if attempt == 1:
                s = q / (3.0 * c3) if c3 != 0.0 else 0.0
            if 0.0 < s < 1.0 and c2 + 3.0 * c3 * s < 0.0:
                top = g0 + s * (r0 + s * (c2 + s * c3))
                if top > c.threshold - 1e-8 and (first == 0.0 or s * h < first):
                    first = s * h
    return first


@partial(CompiledStage, gives=types.float64, takes=(types.float64, types.float64))
def locate(address, now, high):
    """Enclose the first event before a time of a step at which one has passed.

    The state is left just behind it.
    """
    t = record_at(address, SYSTEM)
    low = 0.0
    at = -1.0
    cables = cables_of(t)
    for c in cables:
        c.value_high = c.value
    for turn in range(100):
        if high - low <= BRACKET_S:
            break
        root = high
        for c in cables:
            if c.value_high > 0.0:
                down = min(c.value_low, 0.0)
                root = min(root, low + (high - low) * (-down) / (c.value_high - down))
        # By turns on either side of the guess, so that both ends come close; sometimes the middle.
        margin = max(0.4 * BRACKET_S, 0.02 * min(root - low, high - root))
        at = root + margin if turn % 2 == 0 else root - margin
        if turn % 6 > 3 or turn > 40 or not low < at < high:
            at = 0.5 * (low + high)
        trial(address, now, at)
        if events_crossed(t):
            high = at
            for c in cables:
                c.value_high = c.value
        else:
            low = at
            for c in cables:
                c.value_low = c.value
    if at != high:
        trial(address, now, high)
    return high
