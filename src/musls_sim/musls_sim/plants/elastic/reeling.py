"""Cables whose free length changes: winches and wheels at their ends.

The n segments of a cable share its free length L evenly: node i lies at the share i / n of it, and
the cable runs through the nodes. With q_A and q_B the rates at which cable comes out at the ends,
L' = q_A + q_B, it passes node i towards B at c_i = q_A (1 - i / n) - q_B i / n, and the
material there moves with

    u_i = x_i' + c_i g,     g = (x_{i+1} - x_i) / (L / n)

(of each segment half the mass at either end, with the segment's own g). Everything follows from
the Lagrangian of that with x_i and the lengths that came out as coordinates; wound cable sits at
the exit point. Momentum that cable carries along, Coriolis and centripetal forces of cable that
runs while it swings, the weight that a winch lifts and the inertia that a wheel feels are in it;
mass, momentum and energy are conserved. What acts on the length that comes out is

    mean over the segments of T (1 + strain) - energy per length, plus weight and inertia,

which in equilibrium is the tension at the exit point (with the strain's energy: the cable lies
unstretched on the drum).
"""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.elastic.axial import table_law
from musls_sim.plants.elastic.columns import (
    ALIVE,
    AS,
    BENT,
    BORDER,
    DIRECTION,
    EA,
    FIRST_NODE,
    FIRST_ROW,
    FIRST_SEGMENT,
    INVERSE_REST,
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
    RATIO,
    RATIO_A,
    REEL_A,
    REEL_B,
    REELS,
    REST,
    REST_LENGTH,
    REST_RATE,
    S_CABLE,
    S_END,
    S_KIND,
    SEGMENTS,
    SHORTEST_LENGTH,
    SLACK,
    START_LENGTH,
    STIFFNESS,
    STOP_FORCE,
    STOP_SLOPE,
    STOP_STIFFNESS,
    STORED_A,
    TABLE_FIRST,
    TABLE_ROWS,
    TENSION,
    TOLERANCE_N,
    VS,
    WHEEL,
    WOUND,
    XS,
    Y,
)
from musls_sim.plants.elastic.friction import stop_law
from musls_sim.plants.elastic.shafts import drive_torques, place_shafts, radius_at, shaft_error

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
