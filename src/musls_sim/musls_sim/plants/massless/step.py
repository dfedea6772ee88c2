"""One control period of load and drones on massless cables, in compiled code.

Between events the cables' modes are fixed and everything is smooth: Runge-Kutta's classical method
of fourth order. Where a step ends with a slack cable beyond its length or a taut one that pushes,
the same step is repeated from its begin with other lengths until the event is bracketed; it then
ends just behind the event, the event is treated, and the rest of the period follows.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_description.compiled_memory import borrowed
from musls_sim.plants.interface import SPEED_LIMIT_M_S
from musls_sim.plants.massless.bodies import look_for_ground, settle_corners
from musls_sim.plants.massless.cables import decide, project, rates
from musls_sim.plants.massless.records import (
    ABSOLUTE_WORK,
    ALONG,
    CONTACT_STEP,
    DRONE_SPIN,
    FORCE_BEGIN,
    FORCE_SUM,
    FREE,
    FRICTION,
    GAP,
    GAP_BEGIN,
    GAP_HIGH,
    GAP_LOW,
    LOAD_SPIN,
    LOSS,
    MIDDLE,
    PEAK,
    RATE,
    RATE_BEGIN,
    REFINED,
    STATE,
    STEP,
    TAUT,
    TENSION,
    TENSION_NOISE,
    THRESHOLD,
    VALUE,
    WORK,
    Q,
    W,
    body_numbers,
    unpack,
)
from musls_sim.plants.rigid_links.rows import DOWN, UP, collect_state, fastest_body

# ---------- Steps of Runge and Kutta, and their repetition up to an event, in compiled code.

BRACKET_S = 1e-11
"""Width to which an event is enclosed."""


@compiled()
def spin_to(t, now, command, out):
    """Rotor speeds at a time since the begin of the period: first-order lag, exact."""
    begin, rotors = t.speed_begin, t.rotors
    for i in range(begin.shape[0]):
        last_lag, share = -1.0, 0.0
        for j in range(begin.shape[1]):
            gap = command[i, j] - begin[i, j]
            lag = rotors[i, j, UP] if gap > 0.0 else rotors[i, j, DOWN]
            if lag != last_lag:
                last_lag, share = lag, 1.0 - np.exp(-now / lag)
            out[i, j] = begin[i, j] + gap * share


@compiled()
def trial(t, now, h, command, wind, body, enu):
    """Step of Runge and Kutta from `t.begin`, whose derivatives are `t.first`, to `t.state`.

    The derivatives at the end are left in `t.rate`, gaps, rates and tensions in the cables,
    the mean powers in `t.power[2:]`.
    """
    y, y0, k, total = t.state, t.begin, t.rate, t.total
    nb = y.shape[0]
    spin_to(t, now + 0.5 * h, command, t.speed_middle)
    spin_to(t, now + h, command, t.speed_end)
    for c in t.cables:
        c[MIDDLE] = np.inf
    p0, p1 = t.power[4], t.power[5]
    for stage in range(1, 4):
        d = t.first if stage == 1 else k
        ahead = h if stage == 3 else 0.5 * h
        for i in range(nb):
            for j in range(STATE):
                if stage == 1:
                    total[i, j] = d[i, j]
                else:
                    total[i, j] += 2.0 * d[i, j]
                y[i, j] = y0[i, j] + ahead * d[i, j]
        speed = t.speed_end if stage == 3 else t.speed_middle
        rates(t, y, speed, now + ahead, wind, body, enu, k)
        weight = 1.0 if stage == 3 else 2.0
        p0 += weight * t.power[0]
        p1 += weight * t.power[1]
        if stage < 3:
            for c in t.cables:
                c[MIDDLE] = min(c[MIDDLE], c[TENSION])
    for i in range(nb):
        for j in range(STATE):
            y[i, j] = y0[i, j] + h / 6.0 * (total[i, j] + k[i, j])
        w, a, b, c = y[i, Q], y[i, Q + 1], y[i, Q + 2], y[i, Q + 3]
        s = 1.0 / np.sqrt(w * w + a * a + b * b + c * c)
        for j in range(4):
            y[i, Q + j] *= s
    t.power[2], t.power[3] = p0 / 6.0, p1 / 6.0
    rates(t, y, t.speed_end, now + h, wind, body, enu, k)


@compiled()
def overstepped(t):
    """Write the event functions after a trial into VALUE; whether any is positive.

    Slack cables: gap beyond the threshold; taut ones: how far tension is below zero.
    """
    noise = t.parameters[TENSION_NOISE]
    found = False
    for c in t.cables:
        c[VALUE] = c[GAP] - c[THRESHOLD] if c[TAUT] == 0.0 else -c[TENSION] - noise
        found |= c[VALUE] > 0.0
    return found


@compiled()
def keep_values(t, column):
    """Keep the event functions as those of one end of the bracket."""
    for c in t.cables:
        c[column] = c[VALUE]


@compiled()
def suspicion(t, h):
    """Time within a step at which a cable may be beyond its length or push, not so at its end.

    Of slack cables the gap is taken as the cubic of the values and rates at both ends.
    """
    noise = t.parameters[TENSION_NOISE]
    first = 0.0
    for c in t.cables:
        if c[TAUT] != 0.0:
            if c[MIDDLE] < -noise and (first == 0.0 or 0.5 * h < first):
                first = 0.5 * h
            continue
        g0, g1 = c[GAP_BEGIN], c[GAP]
        r0, r1 = c[RATE_BEGIN] * h, c[RATE] * h
        if max(g0, g1) + abs(r0) + abs(r1) < 0.0:
            continue
        c2, c3 = 3.0 * (g1 - g0) - 2.0 * r0 - r1, r0 + r1 - 2.0 * (g1 - g0)
        # A maximum of g0 + r0 s + c2 s^2 + c3 s^3: rate 0, falling.
        disc = c2 * c2 - 3.0 * c3 * r0
        if disc <= 0.0:
            continue
        q = -c2 - np.sqrt(disc)
        if q == 0.0 or r0 == 0.0:
            continue
        # Of both roots of 3 c3 s^2 + 2 c2 s + r0 the one where the rate falls.
        s = r0 / q if c2 > 0.0 else q / (3.0 * c3) if c3 != 0.0 else -r0 / (2.0 * c2)
        for attempt in range(2):
            if attempt == 1:
                s = q / (3.0 * c3) if c3 != 0.0 else 0.0
            if 0.0 < s < 1.0 and c2 + 3.0 * c3 * s < 0.0:
                top = g0 + s * (r0 + s * (c2 + s * c3))
                if top > c[THRESHOLD] - 1e-8 and (first == 0.0 or s * h < first):
                    first = s * h
    return first


@compiled()
def locate(t, now, high, command, wind, body, enu):
    """Enclose the first event of a step; the state is left just behind it."""
    low, at = 0.0, -1.0
    for turn in range(100):
        if high - low <= BRACKET_S:
            break
        root = high
        for c in t.cables:
            if c[GAP_HIGH] > 0.0:
                down = min(c[GAP_LOW], 0.0)
                root = min(root, low + (high - low) * (-down) / (c[GAP_HIGH] - down))
        # By turns on either side of the guess, so that both ends come close; sometimes the middle.
        margin = max(0.4 * BRACKET_S, 0.02 * min(root - low, high - root))
        at = root + margin if turn % 2 == 0 else root - margin
        if turn % 6 > 3 or turn > 40 or not low < at < high:
            at = 0.5 * (low + high)
        trial(t, now, at, command, wind, body, enu)
        if overstepped(t):
            high = at
            keep_values(t, GAP_HIGH)
        else:
            low = at
            keep_values(t, GAP_LOW)
    if at != high:
        trial(t, now, high, command, wind, body, enu)
    return high


BEYOND_M = 1e-13
"""How far beyond its length a cable is when it has reached it."""

MOST_LOCATED = 300
"""Events of a period that are located in time; the rest of it goes on in short steps."""

SHORT_S = 1e-4
"""Those steps."""

TURN = 0.25
"""Largest angle that the fastest motion turns through in a step [rad]."""


@compiled()
def step_length(t, near):
    """Longest step for the present motion."""
    fastest2, load = 0.0, 0.0
    for i in range(t.state.shape[0]):
        if t.bodies[i, FREE] != 0.0:
            w = t.state[i]
            fastest2 = max(fastest2, w[W] ** 2 + w[W + 1] ** 2 + w[W + 2] ** 2)
    for k in range(t.cables.shape[0]):
        c = t.cables[k]
        load += c[TENSION] * c[LOAD_SPIN]
        fastest2 = max(fastest2, c[TENSION] * c[DRONE_SPIN])
    fastest2 = max(fastest2, load)
    h = t.parameters[STEP]
    if near:
        h = min(h, t.parameters[CONTACT_STEP])
    return min(h, TURN / np.sqrt(fastest2)) if fastest2 > 0.0 else h


@compiled()
def _begin_step(t):
    """Keep where the step begins."""
    for i in range(t.state.shape[0]):
        for j in range(STATE):
            t.begin[i, j] = t.state[i, j]
            t.first[i, j] = t.rate[i, j]
    t.power[4], t.power[5] = t.power[0], t.power[1]
    for c in t.cables:
        c[THRESHOLD] = max(c[GAP], 0.0) + BEYOND_M
        c[GAP_BEGIN], c[RATE_BEGIN] = c[GAP], c[RATE]
        c[GAP_LOW] = c[GAP] - c[THRESHOLD] if c[TAUT] == 0.0 else -c[TENSION]
        for i in range(3):
            c[FORCE_BEGIN + i] = c[TENSION] * c[ALONG + i]


@compiled()
def _end_step(t, h, near):
    """Sum up what happened in a step that is done."""
    t.sums[WORK] += h * t.power[2]
    t.sums[LOSS] += h * t.power[3]
    t.sums[ABSOLUTE_WORK] += abs(h * t.power[2])
    for c in t.cables:
        c[PEAK] = max(c[PEAK], c[TENSION])
        for i in range(3):
            c[FORCE_SUM + i] += 0.5 * h * (c[FORCE_BEGIN + i] + c[TENSION] * c[ALONG + i])
    if near:
        settle_corners(t, t.parameters[FRICTION])
    if t.who[t.cables.shape[0]] > 0.0:
        project(t)


@compiled()
def _one_step(t, now, h, located, command, wind, body, enu):
    """Step up to h, or to just behind the first event."""
    _begin_step(t)
    trial(t, now, h, command, wind, body, enu)
    if overstepped(t):
        if not located:
            return h, True
        keep_values(t, GAP_HIGH)
        return locate(t, now, h, command, wind, body, enu), True
    inside = suspicion(t, h) if located else 0.0
    if inside == 0.0:
        return h, False
    trial(t, now, inside, command, wind, body, enu)
    if overstepped(t):
        keep_values(t, GAP_HIGH)
        return locate(t, now, inside, command, wind, body, enu), True
    trial(t, now, h, command, wind, body, enu)
    return h, False


@compiled()
def changed(t, wind, body, enu):
    """Whether wind or wrenches differ from those of the last period; they are kept."""
    held, at, different = t.held, 3, False
    for k in range(3):
        different |= held[k] != wind[k]
        held[k] = wind[k]
    for i in range(body.shape[0]):
        for k in range(6):
            different |= held[at] != body[i, k] or held[at + 1] != enu[i, k]
            held[at], held[at + 1] = body[i, k], enu[i, k]
            at += 2
    return different


@compiled()
def advance(memory, places, period, prescribed, command, wind, body, enu):
    """Advance one control period with the inputs held."""
    t, places = unpack(memory, places), borrowed(places)
    command, wind, body, enu = borrowed(command), borrowed(wind), borrowed(body), borrowed(enu)
    now, count, steps = 0.0, 0, 0
    t.speed_begin[:] = t.speed
    for c in t.cables:
        c[PEAK] = 0.0
        c[FORCE_SUM : FORCE_SUM + 3] = 0.0
    if changed(t, wind, body, enu) or prescribed:
        count = decide(t, t.speed, now, count, period > 0.0, wind, body, enu)
    for c in t.cables:
        c[PEAK] = c[TENSION]
    while now < period:
        near = look_for_ground(t, t.state, t.parameters[STEP])
        located = count < MOST_LOCATED
        longest = step_length(t, near)
        if not located:
            longest = min(longest, SHORT_S)
        h = (period - now) / max(np.ceil((period - now) / longest - 1e-6), 1.0)
        h, event = _one_step(t, now, h, located, command, wind, body, enu)
        _end_step(t, h, near)
        now += h
        steps += 1
        if period - now < 1e-9 * period:
            now = period
        if event:
            count = decide(t, t.speed_end, now, count, True, wind, body, enu)
        if not fastest_body(t.motion)[1] < SPEED_LIMIT_M_S:
            return -1
    if period > 0.0:
        t.speed[:] = t.speed_end
        t.sums[REFINED] += steps > np.ceil(period / t.parameters[STEP] - 1e-6)
    show(t, places, period)
    return count


@compiled()
def show(t, places, period):
    """Write the state of bodies and cables for Python."""
    collect_state(t.motion, body_numbers(places, t.motion.shape[0]), period, t.shown)
    for k in range(t.cables.shape[0]):
        t.force[k, :] = 0.0
        t.force[k, 0] = t.force[k, 3] = t.cables[k, TENSION]
        t.peak[k] = t.cables[k, PEAK]
