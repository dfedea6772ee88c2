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
from musls_sim.plants.elastic.bodies import turn, turn_back
from musls_sim.plants.elastic.cable import TENSION_SHARE, table_law
from musls_sim.plants.elastic.state import (
    ALIVE,
    AS,
    B_DOF,
    B_FREE,
    B_INVERSE,
    BEARING,
    BENT,
    BLK,
    BLS,
    BORDER,
    BR,
    BRAKE,
    BTAUS,
    BW,
    BWS,
    BY_RATE,
    CAPSTAN,
    DIRECTION,
    DRIVE,
    EA,
    EXTRA_WRAP,
    FIRST_NODE,
    FIRST_ROW,
    FIRST_SEGMENT,
    HALTED,
    INVERSE_REST,
    LAYER,
    LAYER_ANGLE,
    LENGTH,
    LENGTH_SHIFT,
    LINEAR_DENSITY,
    MASS,
    OUT,
    OUT_A,
    OUT_B,
    OUT_RATE_A,
    OUT_RATE_B,
    PACE,
    PACE_RATE,
    PUSH,
    PUSH_STIFFNESS,
    RADIUS,
    RATIO,
    RATIO_A,
    RATIO_SLOPE,
    REACTION,
    REEL_A,
    REEL_B,
    REEL_FORCE_A,
    REELS,
    REST,
    REST_LENGTH,
    REST_RATE,
    RIGHT,
    RUB,
    RUB_LIMIT,
    RUB_SLOPE,
    S_BODY,
    S_CABLE,
    S_CABLE_2,
    S_DOF,
    S_END,
    S_END_2,
    S_KIND,
    SCRATCH,
    SEGMENTS,
    SHEAVE,
    SHORTEST_LENGTH,
    SLACK,
    SLIDES,
    SPIN_AXIS,
    SPIN_WORLD,
    START_LENGTH,
    STIFFNESS,
    STOP_FORCE,
    STOP_SLOPE,
    STOP_STIFFNESS,
    STORED_A,
    STUCK,
    TABLE_FIRST,
    TABLE_ROWS,
    TENSION,
    TOLERANCE_N,
    TORQUE,
    TURN_INERTIA,
    TURN_RIGHT,
    VISCOUS,
    VS,
    WHEEL,
    WOUND,
    WOUND_ANGLE,
    XS,
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
    V,
    X,
    Y,
)

# ---------- Dry friction and stops of shafts.

STICKING_M = 1e-5
"""Travel of the cable at which dry friction reaches its limit."""

STICKING_TIME_S = 2e-3
"""Damping of sticking friction over its stiffness."""

STOP_SPEED_M_S = 0.2
"""Speed of the cable at which the damping of a stop equals its stiffness."""


@compiled()
def rub_limit(t, w):
    """Limit of the torque of dry friction: bearing, brake, and the sheave by its tensions."""
    sh, n = t.shafts[w], t.turning[w]
    sh[RUB_LIMIT] = sh[BEARING] + sh[BRAKE]
    if n[S_KIND] != WHEEL or (sh[CAPSTAN] == 0.0 and sh[SHEAVE] == 1.0):
        return
    kind = t.kinds[n[S_CABLE]]
    last = kind[FIRST_SEGMENT] + (0 if n[S_END] == 0 else kind[SEGMENTS] - 1)
    one, sign_1 = t.segments[last], 1.0 if n[S_END] == 0 else -1.0
    kind = t.kinds[n[S_CABLE_2]]
    last = kind[FIRST_SEGMENT] + (0 if n[S_END_2] == 0 else kind[SEGMENTS] - 1)
    two, sign_2 = t.segments[last], 1.0 if n[S_END_2] == 0 else -1.0
    cosine = 0.0
    for k in range(3):
        cosine += sign_1 * sign_2 * one[DIRECTION + k] * two[DIRECTION + k]
    wrap = np.pi - np.arccos(min(max(cosine, -1.0), 1.0)) + sh[EXTRA_WRAP]
    ratio = np.exp(sh[CAPSTAN] * wrap) / sh[SHEAVE]
    # T_1 = ratio T_2 by the sum, which a shift of the cable does not change.
    both = max(one[TENSION], 0.0) + max(two[TENSION], 0.0)
    sh[RUB_LIMIT] += (ratio - 1.0) / (ratio + 1.0) * both * sh[RADIUS]


@compiled()
def stop_law(depth, rate, stiffness, dh):
    """Force of a stop and its slope: k depth (1 + rate / v_0), nothing beyond it (Hunt, Crossley).

    Continuous, unlike a spring with a damper beside it, and a jerk is mostly taken.
    """
    grip = 1.0 + rate / STOP_SPEED_M_S
    if depth <= 0.0 or grip <= 0.0:
        return 0.0, 0.0
    return stiffness * depth * grip, stiffness * (grip + depth / (STOP_SPEED_M_S * dh))


@compiled()
def rub_share(sh):
    """Spring and damper of sticking friction over its limit."""
    return (sh[YS] - sh[STUCK] + STICKING_TIME_S * sh[YVS]) * sh[RATIO] / STICKING_M


@compiled()
def rub(sh, dh):
    """Torques of friction and of the stop in the stage, and their slope by the angle.

    Friction either sticks, and is then taken as the spring without its limit, or slides in one
    direction: Newton's method would go round between both directions of sliding otherwise.
    """
    limit, share = sh[RUB_LIMIT], rub_share(sh)
    if sh[SLIDES] == 0.0 and abs(share) > 1.0:
        sh[SLIDES] = 1.0 if share > 0.0 else -1.0
    elif sh[SLIDES] != 0.0 and share * sh[SLIDES] < 1.0:
        sh[SLIDES] = 0.0
    sh[RUB] = -limit * (share if sh[SLIDES] == 0.0 else sh[SLIDES]) - sh[VISCOUS] * sh[YVS]
    sh[RUB_SLOPE] = sh[VISCOUS] / dh
    if sh[SLIDES] == 0.0:
        sh[RUB_SLOPE] += limit * sh[RATIO] / STICKING_M * (1.0 + STICKING_TIME_S / dh)
    r = sh[RATIO]
    push, slope = stop_law((sh[YS] - sh[Y_HIGH]) * r, sh[YVS] * r, sh[PUSH_STIFFNESS], dh)
    sh[PUSH] = -push * r
    sh[RUB_SLOPE] += slope * r * r


@compiled()
def true_torque(sh):
    """Torque of friction and stop in the stage."""
    r = sh[RATIO]
    share = min(max(rub_share(sh), -1.0), 1.0)
    push = stop_law((sh[YS] - sh[Y_HIGH]) * r, sh[YVS] * r, sh[PUSH_STIFFNESS], 1.0)[0]
    return -sh[RUB_LIMIT] * share - sh[VISCOUS] * sh[YVS] - push * r


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


# ---------- Cables whose free length changes: winches and wheels at their ends.

SHORTEST_SHARE = 1e-3
"""Share of its length at the start below which no cable gets in a trial solution."""


@compiled()
def side_sign(n, cable, end):
    """Sign with which a shaft's positive angle gives cable to one end of a cable."""
    if n[S_KIND] == WHEEL and n[S_CABLE] == cable and n[S_END] == end:
        return -1.0
    return 1.0


@compiled()
def set_lengths(t, settled):
    """Rest lengths and node masses of all cables on winches and wheels."""
    for c in range(t.kinds.shape[0]):
        kind, cable = t.kinds[c], t.cables[c]
        if kind[REELS] == 0:
            continue
        length = cable[START_LENGTH]
        rate = 0.0
        for end in range(2):
            w = kind[REEL_A + end]
            cable[OUT_A + end] = cable[OUT_RATE_A + end] = 0.0
            if w < 0:
                continue
            sh = t.shafts[w]
            sign = side_sign(t.turning[w], c, end)
            out = radius_at(sh, sh[Y])[2] if settled else sh[OUT]
            length += sign * out
            cable[OUT_A + end] = sign * sh[PACE]
            cable[OUT_RATE_A + end] = sign * sh[PACE_RATE]
            cable[RATIO_A + end] = sign * sh[RATIO]
            rate += sign * sh[PACE]
            if t.turning[w, S_KIND] != WHEEL:
                cable[STORED_A + end] = sh[WOUND] - out
        length = max(length, SHORTEST_SHARE * cable[START_LENGTH])
        cable[REST_LENGTH], cable[REST_RATE] = length, rate
        n = kind[SEGMENTS]
        rest = length / n
        for s in t.segments[kind[FIRST_SEGMENT] : kind[FIRST_SEGMENT] + n]:
            s[REST], s[INVERSE_REST] = rest, 1.0 / rest
        density = cable[LINEAR_DENSITY]
        first = kind[FIRST_NODE]
        for i in range(n + 1):
            t.nodes[first + i, MASS] = density * rest * (1.0 if 0 < i < n else 0.5)
        t.nodes[first, MASS] += density * cable[STORED_A]
        t.nodes[first + n, MASS] += density * cable[STORED_A + 1]


@compiled()
def place_reels(t, dh, s, period):
    """Shafts and rest lengths in the stage, see `shafts.place_shafts`."""
    place_shafts(t.shafts, t.turning, t.motion, dh, s, period)
    set_lengths(t, False)


@compiled()
def reel_error(t, losses):
    """Largest error of friction and stops over what is allowed; counts losses and drives' power."""
    drive_torques(t)
    error, lost, power = shaft_error(t, t.parameters[TOLERANCE_N], stop_error(t))
    losses[0] += lost
    losses[4] += power
    return error


@compiled()
def _energy_per_length(strain, kind, cable, laws):
    if kind[SLACK] == 1 and strain <= 0.0:
        return 0.0
    if kind[TABLE_ROWS] > 0:
        first = kind[TABLE_FIRST]
        return table_law(laws[first : first + kind[TABLE_ROWS]], strain)[2]
    return 0.5 * cable[EA] * strain * strain


@compiled()
def _add_point(border, right, corner, edge, first, i, column, k, force, coupling):
    """Add to the balance of component k of local point i and its coupling to a column."""
    if i == 0:
        edge[k] += force
        corner[k, column] += coupling
    else:
        row = first + 3 * (i - 1) + k
        right[row] += force
        border[row, column] += coupling


@compiled()
def add_reels(kind, cable, laws, nodes, segments, border, right, corner, edge, gravity, dh):
    """Add what a changing length does to the equations of a cable.

    Called after everything else has been assembled. The lengths that came out at the ends stand in
    the border behind end A.
    """
    n, first, start = kind[SEGMENTS], kind[FIRST_ROW], kind[FIRST_NODE]
    has_a, has_b = kind[REEL_A] >= 0, kind[REEL_B] >= 0
    col_a = kind[BORDER]
    col_b = col_a + (1 if has_a else 0)
    length, density = cable[REST_LENGTH], cable[LINEAR_DENSITY]
    qa, qb, ra, rb = cable[OUT_A], cable[OUT_B], cable[OUT_RATE_A], cable[OUT_RATE_B]
    share, scale = 1.0 / n, 1.0 / (dh * dh)
    h, grow = 0.5 * density * length * share, 0.5 * density * (qa + qb) * share
    faster = (qa + qb) / length
    fa = fb = kaa = kab = kbb = 0.0
    for s in range(n):
        seg, a, b = segments[kind[FIRST_SEGMENT] + s], nodes[start + s], nodes[start + s + 1]
        ba, bb = s * share, (s + 1) * share  # shares of q_B at both nodes, of q_A the rest
        aa, ab = 1.0 - ba, 1.0 - bb
        ca, cb = aa * qa - ba * qb, ab * qa - bb * qb
        wa, wb = aa * ra - ba * rb, ab * ra - bb * rb
        stretch, k = seg[LENGTH] * seg[INVERSE_REST], seg[STIFFNESS]
        energy = _energy_per_length(stretch - 1.0, kind, cable, laws) * seg[ALIVE]
        da = db = squares = pulled = g2 = 0.0
        for q in range(3):
            tq = seg[DIRECTION + q]
            g = tq * stretch
            rate = (b[VS + q] - a[VS + q]) * seg[INVERSE_REST] - g * faster
            ua, ub = a[VS + q] + ca * g, b[VS + q] + cb * g
            through = 0.5 * density * (ca * ua + cb * ub)
            ea = grow * ua + h * (wa * g + ca * rate)
            eb = grow * ub + h * (wb * g + cb * rate)
            da += (h * a[AS + q] + ea) * g + h * ua * rate
            db += (h * b[AS + q] + eb) * g + h * ub * rate
            squares += ua * ua + ub * ub
            pulled += (ca * ua + cb * ub) * g
            g2 += g * g
            stiff = k * stretch * share * tq
            weigh = 0.5 * density * share
            falls = gravity if q == 2 else 0.0
            ma, mb = weigh * (a[AS + q] + falls), weigh * (b[AS + q] + falls)
            inertia = h * scale * g
            # The first column takes the forces along.
            fpa, fpb = -ea - through, -eb + through
            if has_a:
                _add_point(border, right, corner, edge, first, s, col_a, q,
                           fpa, stiff + ma + aa * inertia)  # fmt: skip
                _add_point(border, right, corner, edge, first, s + 1, col_a, q,
                           fpb, -stiff + mb + ab * inertia)  # fmt: skip
                fpa = fpb = 0.0
            if has_b:
                _add_point(border, right, corner, edge, first, s, col_b, q,
                           fpa, stiff + ma - ba * inertia)  # fmt: skip
                _add_point(border, right, corner, edge, first, s + 1, col_b, q,
                           fpb, -stiff + mb - bb * inertia)  # fmt: skip
        heights = a[XS + 2] + b[XS + 2]
        common = share * (seg[TENSION] * stretch - energy - 0.5 * density * gravity * heights)
        common += h * (0.5 * squares - pulled) / length
        fa += common - aa * da - ab * db
        fb += common + ba * da + bb * db
        stiff = k * (stretch * share) ** 2
        g2 *= h * scale
        kaa += stiff + g2 * (aa * aa + ab * ab)
        kab += stiff - g2 * (aa * ba + ab * bb)
        kbb += stiff + g2 * (ba * ba + bb * bb)
    cable[STOP_FORCE] = stop_force(cable)
    cable[STOP_SLOPE] = 0.0
    if cable[STOP_FORCE] > 0.0:
        depth = cable[SHORTEST_LENGTH] - length
        stiff = stop_law(depth, -qa - qb, cable[STOP_STIFFNESS], dh)[1]
        fa, fb = fa + cable[STOP_FORCE], fb + cable[STOP_FORCE]
        kaa, kab, kbb = kaa + stiff, kab + stiff, kbb + stiff
        cable[STOP_SLOPE] = stiff
    if cable[BENT] != 0.0:
        fa, fb = fa + cable[BENT] / length, fb + cable[BENT] / length
    if has_a:
        edge[col_a] += fa
        corner[col_a, col_a] += kaa
    if has_b:
        edge[col_b] += fb
        corner[col_b, col_b] += kbb
    if has_a and has_b:
        corner[col_a, col_b] += kab


@compiled()
def stop_force(cable):
    """Force that keeps a cable from getting shorter than it may."""
    depth = cable[SHORTEST_LENGTH] - cable[REST_LENGTH]
    return stop_law(depth, -cable[REST_RATE], cable[STOP_STIFFNESS], 1.0)[0]


@compiled()
def stop_error(t):
    """By how much the linear forces of the cables' stops miss the true ones."""
    worst = largest = lost = 0.0
    for c in range(t.kinds.shape[0]):
        cable = t.cables[c]
        if t.kinds[c, REELS] > 0:
            linear = cable[STOP_FORCE] - cable[STOP_SLOPE] * cable[LENGTH_SHIFT]
            worst = max(worst, abs(stop_force(cable) - linear))
            largest = max(largest, abs(linear))
            lost -= linear * cable[REST_RATE]
    return worst, largest, lost


@compiled()
def add_wound(kind, cable, turning, nodes, border, right, corner, edge, gravity):
    """Add weight and momentum of the cable that lies on the winches at a cable's ends."""
    density, first, n = cable[LINEAR_DENSITY], kind[FIRST_ROW], kind[SEGMENTS]
    column = kind[BORDER]
    for end in range(2):
        w = kind[REEL_A + end]
        if w < 0:
            continue
        if turning[w, S_KIND] != WHEEL:
            i = 0 if end == 0 else n
            node = nodes[kind[FIRST_NODE] + i]
            squares = 0.0
            for k in range(3):
                v = node[VS + k]
                squares += v * v
                pull = density * (node[AS + k] + (gravity if k == 2 else 0.0))
                _add_point(border, right, corner, edge, first, i, column, k,
                           density * cable[OUT_A + end] * v, -pull)  # fmt: skip
            edge[column] += density * (gravity * node[XS + 2] - 0.5 * squares)
        column += 1


# ---------- Energy and momentum of shafts and of cable that runs through its nodes.


@compiled()
def _passing(t, c, i):
    """Rate at which cable passes node i of a cable towards end B, by the state [m/s]."""
    kind = t.kinds[c]
    passing, n = 0.0, kind[SEGMENTS]
    for end in range(2):
        w = kind[REEL_A + end]
        if w >= 0:
            sh = t.shafts[w]
            rate = side_sign(t.turning[w], c, end) * radius_at(sh, sh[Y])[0] * sh[YV]
            passing += rate * (1.0 - i / n) if end == 0 else -rate * i / n
    return passing


@compiled()
def add_reel_energies(t, out):
    """Add the kinetic energy of shafts and of cable that runs, beyond that of the nodes."""
    for w in range(t.shafts.shape[0]):
        sh = t.shafts[w]
        b = t.turning[w, S_BODY]
        turning = 0.0
        for i in range(3):
            axis = 0.0
            for k in range(3):
                axis += t.bodies[b, BR + 3 * i + k] * sh[SPIN_AXIS + k]
            turning += axis * t.bodies[b, BW + i]
        out[0] += sh[TURN_INERTIA] * sh[YV] * (0.5 * sh[YV] + turning)
    for c in range(t.kinds.shape[0]):
        kind, cable = t.kinds[c], t.cables[c]
        if kind[REELS] == 0:
            continue
        n, first = kind[SEGMENTS], kind[FIRST_NODE]
        rest = cable[REST_LENGTH] / n
        h = 0.5 * cable[LINEAR_DENSITY] * rest
        for s in range(n):
            for i in range(s, s + 2):
                passing = _passing(t, c, i)
                for k in range(3):
                    g = (t.nodes[first + s + 1, X + k] - t.nodes[first + s, X + k]) / rest
                    out[0] += h * passing * g * (t.nodes[first + i, V + k] + 0.5 * passing * g)


@compiled()
def add_reel_momenta(t, linear, angular):
    """Add momentum, and angular momentum about the origin, of shafts and of cable that runs."""
    for w in range(t.shafts.shape[0]):
        sh = t.shafts[w]
        b = t.turning[w, S_BODY]
        for i in range(3):
            for k in range(3):
                axis = t.bodies[b, BR + 3 * i + k] * sh[SPIN_AXIS + k]
                angular[i] += sh[TURN_INERTIA] * sh[YV] * axis
    for c in range(t.kinds.shape[0]):
        kind, cable = t.kinds[c], t.cables[c]
        if kind[REELS] == 0:
            continue
        n, first = kind[SEGMENTS], kind[FIRST_NODE]
        half = 0.5 * cable[LINEAR_DENSITY]  # times rest length times g: half times the gap
        for s in range(n):
            a, b = t.nodes[first + s], t.nodes[first + s + 1]
            for i in range(s, s + 2):
                p, x = half * _passing(t, c, i), t.nodes[first + i]
                u, v, w = p * (b[X] - a[X]), p * (b[X + 1] - a[X + 1]), p * (b[X + 2] - a[X + 2])
                linear[0] += u
                linear[1] += v
                linear[2] += w
                angular[0] += x[X + 1] * w - x[X + 2] * v
                angular[1] += x[X + 2] * u - x[X] * w
                angular[2] += x[X] * v - x[X + 1] * u
