"""Steps of Runge and Kutta, and their repetition up to an event, in compiled code."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.aerodynamics import DOWN, UP
from musls_sim.plants.massless.columns import (
    GAP,
    GAP_BEGIN,
    GAP_HIGH,
    GAP_LOW,
    MIDDLE,
    RATE,
    RATE_BEGIN,
    STATE,
    TAUT,
    TENSION,
    TENSION_NOISE,
    THRESHOLD,
    VALUE,
    Q,
)
from musls_sim.plants.massless.rates import (
    rates,
)

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
