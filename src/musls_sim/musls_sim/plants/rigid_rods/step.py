"""One control period of a rigid structure, in compiled code: Runge-Kutta of fourth order."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_description.compiled_memory import borrowed
from musls_sim.plants.massless.bodies import (
    accelerate,
    add_corners,
    look_for_ground,
    place,
    power_of,
    settle_corners,
)
from musls_sim.plants.massless.records import (
    ABSOLUTE_WORK,
    ALONG,
    CONTACT_STEP,
    DRAG,
    FRICTION,
    GRAVITY,
    LOSS,
    MASS,
    NEAR,
    PEAK,
    REFINED,
    STATE,
    STEP,
    TENSION,
    WORK,
    Q,
    V,
    W,
    body_numbers,
    unpack,
)
from musls_sim.plants.massless.step import SPEED_LIMIT_M_S, TURN, spin_to
from musls_sim.plants.rigid_links.rows import (
    OMEGA,
    POSITION,
    VELOCITY,
    add_body_drag,
    add_inputs,
    add_rotors,
    collect_state,
    fastest_body,
)


@compiled()
def place_parts(t, whole, y, parts):
    """Write the motion of load and drones from that of the whole."""
    place(y, whole)
    for i in range(parts.shape[0]):
        m, part = t.motion[i], parts[i]
        for a in range(3):
            for b in range(3):
                m[3 * a + b] = (
                    whole[3 * a] * part[3 + b]
                    + whole[3 * a + 1] * part[6 + b]
                    + whole[3 * a + 2] * part[9 + b]
                )
        for a in range(3):
            m[POSITION + a] = (
                whole[3 * a] * part[0] + whole[3 * a + 1] * part[1] + whole[3 * a + 2] * part[2]
            )
            m[OMEGA + a] = whole[OMEGA + a]
        x, e, z = m[POSITION], m[POSITION + 1], m[POSITION + 2]
        wx, wy, wz = m[OMEGA], m[OMEGA + 1], m[OMEGA + 2]
        m[VELOCITY] = whole[VELOCITY] + wy * z - wz * e
        m[VELOCITY + 1] = whole[VELOCITY + 1] + wz * x - wx * z
        m[VELOCITY + 2] = whole[VELOCITY + 2] + wx * e - wy * x
        for a in range(3):
            m[POSITION + a] += whole[POSITION + a]
            t.state[i, a] = m[POSITION + a]
            t.state[i, V + a] = m[VELOCITY + a]


@compiled()
def rates(t, whole, body_row, y, parts, outside, speed, wind, body, enu, out):
    """Derivatives of the whole; what acts on each part from outside is left in `outside`."""
    place_parts(t, whole, y, parts)
    t.power[0] = t.power[1] = 0.0
    total = t.wrench
    total[:] = 0.0
    for i in range(parts.shape[0]):
        p, m, w = t.bodies[i], t.motion[i], outside[i]
        w[:] = 0.0
        add_body_drag(m, p[DRAG : DRAG + 3], wind, w)
        if p[NEAR] != 0.0:
            add_corners(t, p, m, w)
        lost = power_of(m, w)
        if i > 0:
            add_rotors(m, speed[i - 1], t.rotors[i - 1], wind, w)
        add_inputs(m, body[i], enu[i], w)
        t.power[0] += power_of(m, w) - lost
        t.power[1] -= lost
        x, e, z = (
            m[POSITION] - whole[POSITION],
            m[POSITION + 1] - whole[POSITION + 1],
            m[POSITION + 2] - whole[POSITION + 2],
        )
        for k in range(6):
            total[k] += w[k]
        total[3] += e * w[2] - z * w[1]
        total[4] += z * w[0] - x * w[2]
        total[5] += x * w[1] - e * w[0]
    accelerate(body_row, whole, total, y, t.parameters[GRAVITY], out)


@compiled()
def rod_forces(t, whole, y, out, parts, outside, hooks):
    """Force of each rod on the load: what its drone does not need for its own acceleration.

    Every rod is the only one of its drone, clamped at both ends, so the drone's balance gives it
    without assumptions; how clamped rods share the load does not enter.
    """
    gravity = t.parameters[GRAVITY]
    for k in range(hooks.shape[0]):
        part, w, c = parts[k + 1], outside[k + 1], t.cables[k]
        cx, cy, cz = (
            y[W + 1] * part[2] - y[W + 2] * part[1],
            y[W + 2] * part[0] - y[W] * part[2],
            y[W] * part[1] - y[W + 1] * part[0],
        )
        ax = out[W + 1] * part[2] - out[W + 2] * part[1] + y[W + 1] * cz - y[W + 2] * cy
        ay = out[W + 2] * part[0] - out[W] * part[2] + y[W + 2] * cx - y[W] * cz
        az = out[W] * part[1] - out[W + 1] * part[0] + y[W] * cy - y[W + 1] * cx
        mass = t.bodies[k + 1, MASS]
        u = c[ALONG : ALONG + 3]
        length = 0.0
        for i in range(3):
            along = 0.0
            for j in range(3):
                along += whole[3 * i + j] * (hooks[k, 3 + j] - hooks[k, j])
            u[i] = along
            length += along * along
            a = out[V + i] + whole[3 * i] * ax + whole[3 * i + 1] * ay + whole[3 * i + 2] * az
            w[i] -= mass * a
        w[2] -= mass * gravity
        f = w
        length = np.sqrt(length)
        u /= length
        flat = np.sqrt(u[0] * u[0] + u[1] * u[1])
        c1, s1 = (u[0] / flat, u[1] / flat) if flat > 1e-9 else (1.0, 0.0)
        row = t.force[k]
        row[0] = f[0] * u[0] + f[1] * u[1] + f[2] * u[2]
        row[1] = -f[0] * s1 + f[1] * c1
        row[2] = -u[2] * (f[0] * c1 + f[1] * s1) + flat * f[2]
        row[3:] = row[:3]
        c[TENSION] = row[0]
        c[PEAK] = max(c[PEAK], row[0])
        t.peak[k] = c[PEAK]


@compiled()
def advance(
    memory, places, whole, body_row, states, parts, outside, hooks, period, command, wind, body, enu
):
    """Advance one control period with the inputs held."""
    t = unpack(memory, places)
    whole, parts, outside, hooks = (
        borrowed(whole),
        borrowed(parts),
        borrowed(outside),
        borrowed(hooks),
    )
    command, wind, body, enu = borrowed(command), borrowed(wind), borrowed(body), borrowed(enu)
    body_row, states = borrowed(body_row), borrowed(states)
    y, begin, k, total = states[0], states[1], states[2], states[3]
    t.speed_begin[:] = t.speed
    for c in t.cables:
        c[PEAK] = -np.inf
    now, steps = 0.0, 0
    rates(t, whole, body_row, y, parts, outside, t.speed, wind, body, enu, k)
    while now < period:
        near = look_for_ground(t, t.state, t.parameters[STEP])
        h = step_length(t, y, near)
        h = (period - now) / max(np.ceil((period - now) / h - 1e-6), 1.0)
        rates(t, whole, body_row, y, parts, outside, t.speed_end, wind, body, enu, k)
        spin_to(t, now + 0.5 * h, command, t.speed_middle)
        spin_to(t, now + h, command, t.speed_end)
        begin[:] = y
        total[:] = k
        driven, lost = t.power[0], t.power[1]
        for stage in range(1, 4):
            ahead = h if stage == 3 else 0.5 * h
            for i in range(STATE):
                y[i] = begin[i] + ahead * k[i]
            speed = t.speed_end if stage == 3 else t.speed_middle
            rates(t, whole, body_row, y, parts, outside, speed, wind, body, enu, k)
            weight = 1.0 if stage == 3 else 2.0
            for i in range(STATE):
                total[i] += weight * k[i]
            driven += weight * t.power[0]
            lost += weight * t.power[1]
        for i in range(STATE):
            y[i] = begin[i] + h / 6.0 * total[i]
        norm = np.sqrt(y[Q] ** 2 + y[Q + 1] ** 2 + y[Q + 2] ** 2 + y[Q + 3] ** 2)
        for i in range(4):
            y[Q + i] /= norm
        now = period if period - now - h < 1e-9 * period else now + h
        steps += 1
        t.sums[WORK] += h / 6.0 * driven
        t.sums[ABSOLUTE_WORK] += abs(h / 6.0 * driven)
        t.sums[LOSS] += h / 6.0 * lost
        rates(t, whole, body_row, y, parts, outside, t.speed_end, wind, body, enu, k)
        if near:
            settle_corners(t, t.parameters[FRICTION])
        if not fastest_body(t.motion)[1] < SPEED_LIMIT_M_S:
            return -1
        rod_forces(t, whole, y, k, parts, outside, hooks)
    if period == 0.0:
        rod_forces(t, whole, y, k, parts, outside, hooks)
    else:
        t.speed[:] = t.speed_end
        t.sums[REFINED] += steps > np.ceil(period / t.parameters[STEP] - 1e-6)
    collect_state(t.motion, body_numbers(places, t.motion.shape[0]), period, t.shown)
    return 0


@compiled()
def step_length(t, y, near):
    """Longest step for the present motion."""
    h = t.parameters[CONTACT_STEP] if near else t.parameters[STEP]
    h = min(h, t.parameters[STEP])
    turning = np.sqrt(y[W] ** 2 + y[W + 1] ** 2 + y[W + 2] ** 2)
    return min(h, TURN / turning) if turning > 0.0 else h
