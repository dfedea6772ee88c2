"""Shafts of winches and wheels: one angle each, solved together with bodies and cables.

A drum or wheel of inertia J turns relative to its body about the body's axis e by the angle y:

    J (y'' + (e w)') = torque of drive, brake and bearing + what its cables exert,

and the body feels the rate of the angular momentum J y' e. The inertia of the body counts the drum
as standing. A drive by rate prescribes y in time instead, and its torque follows.

A winch without cable left, and one that has reeled in all it may, runs against a stop (drive by
torque) or halts (drive by rate).
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.elastic.columns import (
    B_DOF,
    B_FREE,
    B_INVERSE,
    BLK,
    BLS,
    BTAUS,
    BWS,
    BY_RATE,
    DRIVE,
    HALTED,
    LAYER,
    LAYER_ANGLE,
    OUT,
    PACE,
    PACE_RATE,
    PUSH,
    RADIUS,
    RATIO,
    RATIO_A,
    RATIO_SLOPE,
    REACTION,
    REEL_FORCE_A,
    REST_LENGTH,
    RIGHT,
    RUB,
    RUB_SLOPE,
    S_BODY,
    S_CABLE,
    S_DOF,
    S_END,
    S_KIND,
    SCRATCH,
    SHORTEST_LENGTH,
    SPIN_AXIS,
    SPIN_WORLD,
    STUCK,
    TORQUE,
    TURN_INERTIA,
    TURN_RIGHT,
    WHEEL,
    WOUND_ANGLE,
    Y_BEGIN,
    Y_HIGH,
    Y_LOW,
    YA,
    YAG,
    YAS,
    YK,
    YS,
    YV,
    YVG,
    YVK,
    YVS,
    Y,
)
from musls_sim.plants.elastic.friction import STICKING_M, rub, rub_limit, true_torque
from musls_sim.plants.elastic.remainder import TENSION_SHARE
from musls_sim.plants.elastic.rotations import turn, turn_back

LAYER_CHANGE_RAD = 0.5 * np.pi
"""Half the turn within which the cable climbs to the next layer."""


@compiled()
def radius_at(row, y):
    """Cable out per angle [m], its slope [m/rad], and the cable out at an angle [m].

    In layers the radius grows by `LAYER` at each full `LAYER_ANGLE` of wound angle, over half a
    turn about it.
    """
    radius = row[RADIUS]
    if row[LAYER] == 0.0:
        return radius, 0.0, radius * y
    wound = row[WOUND_ANGLE] - y
    half = min(LAYER_CHANGE_RAD, 0.5 * row[LAYER_ANGLE])
    slope = out = 0.0
    out = radius * y
    most = max(wound, row[WOUND_ANGLE])
    k = 1
    while k * row[LAYER_ANGLE] - half < most:
        a, b = wound - k * row[LAYER_ANGLE], row[WOUND_ANGLE] - k * row[LAYER_ANGLE]
        radius += row[LAYER] * min(max((a + half) / (2.0 * half), 0.0), 1.0)
        if -half < a < half:
            slope -= row[LAYER] / (2.0 * half)
        out += row[LAYER] * (_climb(b, half) - _climb(a, half))
        k += 1
    return radius, slope, out


@compiled()
def _climb(x, half):
    """Integral of the share of a change of layer."""
    if x <= -half:
        return 0.0
    return x if x >= half else (x + half) ** 2 / (4.0 * half)


@compiled()
def begin_shafts(shafts, turning, cables):
    """Note the begin of a period; how far a drive by rate may go until its cable is too short."""
    for w in range(shafts.shape[0]):
        sh, n = shafts[w], turning[w]
        sh[Y_BEGIN] = sh[Y]
        sh[HALTED] = 0.0
        if n[S_KIND] != WHEEL:
            cable = cables[n[S_CABLE]]
            left = cable[REST_LENGTH] - cable[SHORTEST_LENGTH]
            sh[Y_LOW] = sh[Y] - max(left, 0.0) / sh[RATIO]


@compiled()
def know_shafts(shafts, mode, h, ahead):
    """What a stage knows of the shafts, and a guess of their accelerations."""
    for sh in shafts:
        if mode == 0:
            sh[YK], sh[YVK], sh[YAS] = sh[Y] + h * sh[YV], sh[YV] + h * sh[YA], sh[YA]
        elif mode == 1:
            sh[YVG], sh[YAG] = sh[YVS], sh[YAS]
            sh[YK] = sh[Y] + h * (sh[YV] + sh[YVG])
            sh[YVK] = sh[YV] + h * (sh[YA] + sh[YAG])
            sh[YAS] = sh[YAG] + ahead * (sh[YAG] - sh[YA])
        else:
            sh[YK], sh[YVK], sh[YAS] = sh[Y], sh[YV], sh[YA]


@compiled()
def place_shafts(shafts, turning, motion, dh, s, period):
    """Shafts in the stage, by their accelerations or by their drive."""
    for w in range(shafts.shape[0]):
        sh = shafts[w]
        if sh[BY_RATE] > 0.0:
            time, a = s * period, (sh[DRIVE + 1] - sh[DRIVE]) / period
            sh[YS] = sh[Y_BEGIN] + time * (sh[DRIVE] + 0.5 * a * time)
            sh[YVS], sh[YAS] = sh[DRIVE] + a * time, a
            sh[HALTED] = 0.0
            if sh[YS] > sh[Y_HIGH] or sh[YS] < sh[Y_LOW]:
                sh[HALTED] = 1.0 if sh[YS] > sh[Y_HIGH] else -1.0
                sh[YS] = min(max(sh[YS], sh[Y_LOW]), sh[Y_HIGH])
                sh[YVS] = sh[YAS] = 0.0
        else:
            sh[YVS] = sh[YVK] + dh * sh[YAS]
            sh[YS] = sh[YK] + dh * sh[YVS]
        sh[RATIO], sh[RATIO_SLOPE], sh[OUT] = radius_at(sh, sh[YS])
        sh[PACE] = sh[RATIO] * sh[YVS]
        sh[PACE_RATE] = sh[RATIO] * sh[YAS] + sh[RATIO_SLOPE] * sh[YVS] ** 2
        m = motion[turning[w, S_BODY]]
        for i in range(3):
            sh[SPIN_WORLD + i] = (
                m[3 * i] * sh[SPIN_AXIS]
                + m[3 * i + 1] * sh[SPIN_AXIS + 1]
                + m[3 * i + 2] * sh[SPIN_AXIS + 2]
            )


@compiled()
def _spin_rate(p, m, free, axis):
    """Component along an axis of a body's angular acceleration in the stage."""
    rate, momentum = p[SCRATCH : SCRATCH + 3], p[BLS : BLS + 3]
    if not free:
        return p[BLK] * axis[0] + p[BLK + 1] * axis[1] + p[BLK + 2] * axis[2]
    rate[0] = p[BTAUS] - p[BWS + 1] * momentum[2] + p[BWS + 2] * momentum[1]
    rate[1] = p[BTAUS + 1] - p[BWS + 2] * momentum[0] + p[BWS] * momentum[2]
    rate[2] = p[BTAUS + 2] - p[BWS] * momentum[1] + p[BWS + 1] * momentum[0]
    in_body, turned = p[SCRATCH + 3 : SCRATCH + 6], p[SCRATCH + 6 : SCRATCH + 9]
    turn_back(m[:9], rate, in_body)
    turn(p[B_INVERSE : B_INVERSE + 9], in_body, turned)
    turn(m[:9], turned, in_body)
    return axis[0] * in_body[0] + axis[1] * in_body[1] + axis[2] * in_body[2]


@compiled()
def balance_shafts(t, dh, s):
    """Right-hand sides and matrix rows of the shafts, and what they leave to their bodies."""
    shafts, turning, bodies, numbers = t.shafts, t.turning, t.bodies, t.numbers
    for w in range(shafts.shape[0]):
        sh, b = shafts[w], turning[w, S_BODY]
        p, free, row = bodies[b], numbers[b, B_FREE] > 0, turning[w, S_DOF]
        inertia, axis = sh[TURN_INERTIA], sh[SPIN_WORLD : SPIN_WORLD + 3]
        spins = axis[0] != 0.0 or axis[1] != 0.0 or axis[2] != 0.0
        first = numbers[b, B_DOF]
        if spins and free:
            add_spin(p, RIGHT + 3, sh, -1.0)
        sh[TURN_RIGHT] = 0.0
        if sh[BY_RATE] > 0.0:
            t.matrix[row, row] = 1.0
            continue
        sh[TORQUE] = sh[DRIVE] + s * (sh[DRIVE + 1] - sh[DRIVE])
        rub_limit(t, w)
        rub(sh, dh)
        t.matrix[row, row] += inertia / (dh * dh) + sh[RUB_SLOPE]
        sh[TURN_RIGHT] = sh[TORQUE] + sh[RUB] + sh[PUSH] - inertia * sh[YAS]
        if spins:
            sh[TURN_RIGHT] -= inertia * _spin_rate(p, t.motion[b], free, axis)
            if first >= 0:
                for k in range(3):
                    t.matrix[row, first + 3 + k] += inertia * axis[k] / (dh * dh)


@compiled()
def add_spin(p, column, sh, sign):
    """Add the rate of a shaft's own angular momentum to three columns of its body."""
    ex, ey, ez = sh[SPIN_WORLD], sh[SPIN_WORLD + 1], sh[SPIN_WORLD + 2]
    a, v = sign * sh[TURN_INERTIA] * sh[YAS], sign * sh[TURN_INERTIA] * sh[YVS]
    wx, wy, wz = p[BWS], p[BWS + 1], p[BWS + 2]
    p[column] += a * ex + v * (wy * ez - wz * ey)
    p[column + 1] += a * ey + v * (wz * ex - wx * ez)
    p[column + 2] += a * ez + v * (wx * ey - wy * ex)


@compiled()
def move_shafts(shafts, part, dh):
    """Apply a share of the solution to the accelerations of the shafts that are not prescribed."""
    for sh in shafts:
        sh[TURN_RIGHT] *= part
        if sh[BY_RATE] == 0.0:
            sh[YAS] += sh[TURN_RIGHT] / (dh * dh)


@compiled()
def drive_torques(t):
    """Torques that drives by rate need (force of a feed)."""
    for w in range(t.shafts.shape[0]):
        sh, n = t.shafts[w], t.turning[w]
        if sh[BY_RATE] == 0.0:
            continue
        sh[TORQUE] = sh[TURN_INERTIA] * sh[YAS]
        b = n[S_BODY]
        axis = sh[SPIN_WORLD : SPIN_WORLD + 3]
        if axis[0] != 0.0 or axis[1] != 0.0 or axis[2] != 0.0:
            p, free = t.bodies[b], t.numbers[b, B_FREE] > 0
            sh[TORQUE] += sh[TURN_INERTIA] * _spin_rate(p, t.motion[b], free, axis)
        for side in range(2):
            c, end = n[S_CABLE + 2 * side], n[S_END + 2 * side]
            if c >= 0:
                sh[TORQUE] -= t.cables[c, RATIO_A + end] * t.cables[c, REEL_FORCE_A + end]


@compiled()
def react_shafts(t):
    """Add the shafts' share to what prescribed bodies need."""
    for w in range(t.shafts.shape[0]):
        b = t.turning[w, S_BODY]
        if t.numbers[b, B_FREE] == 0:
            add_spin(t.bodies[b], REACTION + 3, t.shafts[w], 1.0)


@compiled()
def shaft_error(t, tolerance, stops):
    """By how much the linear torques of friction and stops miss the true ones."""
    worst, largest, lost = stops
    power = 0.0
    for w in range(t.shafts.shape[0]):
        sh = t.shafts[w]
        if sh[BY_RATE] == 0.0:
            linear = sh[RUB] + sh[PUSH] - sh[RUB_SLOPE] * sh[TURN_RIGHT]
            rub_limit(t, w)
            worst = max(worst, abs(true_torque(sh) - linear) / sh[RATIO])
            largest = max(largest, abs(linear) / sh[RATIO])
            lost -= linear * sh[YVS]
        power += sh[TORQUE] * sh[YVS]
    return worst / (TENSION_SHARE * largest + tolerance), lost, power


@compiled()
def settle_shafts(t):
    """Make the stage the state; where friction slid, it sticks anew. Note what is at its end."""
    for w in range(t.shafts.shape[0]):
        sh, n = t.shafts[w], t.turning[w]
        sh[Y], sh[YV], sh[YA] = sh[YS], sh[YVS], sh[YAS]
        travel = STICKING_M / sh[RATIO]
        sh[STUCK] = min(max(sh[STUCK], sh[Y] - travel), sh[Y] + travel)
        if sh[BY_RATE] > 0.0:
            continue
        sh[HALTED] = 1.0 if sh[PUSH] != 0.0 else 0.0
        for side in range(2):
            c = n[S_CABLE + 2 * side]
            if c >= 0 and t.cables[c, REST_LENGTH] < t.cables[c, SHORTEST_LENGTH]:
                sh[HALTED] = 1.0 if n[S_KIND] == WHEEL and side == 0 else -1.0


@compiled()
def start_shafts(shafts):
    """Keep the accelerations of a start; a drive by rate also begins with its rate."""
    for sh in shafts:
        sh[YA] = sh[YAS]
        if sh[BY_RATE] > 0.0:
            sh[YV] = sh[YVS]
