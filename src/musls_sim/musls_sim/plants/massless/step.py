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
from musls_sim.plants.bodies import collect_state, fastest_body
from musls_sim.plants.massless.columns import (
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
    PEAK,
    RATE,
    RATE_BEGIN,
    REFINED,
    STATE,
    STEP,
    TAUT,
    TENSION,
    THRESHOLD,
    WORK,
    W,
)
from musls_sim.plants.massless.contact import look_for_ground, settle_corners
from musls_sim.plants.massless.modes import decide, project
from musls_sim.plants.massless.tables import body_numbers, unpack
from musls_sim.plants.massless.trial import keep_values, locate, overstepped, suspicion, trial

BEYOND_M = 1e-13
"""How far beyond its length a cable is when it has reached it."""

MOST_LOCATED = 300
"""Events of a period that are located in time; the rest of it goes on in short steps."""

SHORT_S = 1e-4
"""Those steps."""

TURN = 0.25
"""Largest angle that the fastest motion turns through in a step [rad]."""

SPEED_LIMIT_M_S = 100.0
"""No body of a slung-load system gets that fast; beyond it something has gone wrong."""


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
