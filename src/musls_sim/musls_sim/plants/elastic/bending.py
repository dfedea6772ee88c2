"""Bending moments in the joints of a cable, as forces on three nodes.

A joint between two segments with unit directions t1, t2 (angle a between them) has the energy
k a^2 / 2, k = EI over the mean rest length. Its gradient is the force pattern

    on the next node      (k a / sin a) (t1 - cos a t2) / l2,
    on the node before   -(k a / sin a) (t2 - cos a t1) / l1,

and minus their sum on the joint's node: no net force and no net moment. It straightens, and for a
small angle it is Euler and Bernoulli's M = EI curvature. Damping works on the rate of the angle in
the plane of the kink; in any other direction three nodes cannot tell bending from turning. Only an
(almost) straight joint, where the kink has no plane yet, is damped in both directions.

At a clamped end t1 (or t2) is the direction of the clamp, which gets the reaction moment.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.elastic.assembly import SHORTEST
from musls_sim.plants.elastic.blocks import add_block, add_right
from musls_sim.plants.elastic.columns import (
    ALIVE,
    AXIS_RATE_A,
    AXIS_RATE_B,
    AXIS_WORLD_A,
    AXIS_WORLD_B,
    BENDING_DAMPING,
    BENT,
    CLAMP_A,
    CLAMP_B,
    CLAMP_FACTOR_A,
    CLAMP_FACTOR_B,
    DIRECTION,
    EI,
    FIRST_NODE,
    FIRST_ROW,
    FIRST_SEGMENT,
    LENGTH,
    RATE,
    REST,
    SEGMENTS,
    VS,
)

STRAIGHT_RAD = 1e-4
"""Kink below which a joint has no plane of its own."""

SMALL_SINE2 = 4e-3
"""Square of the sine of a kink up to which its angle is a series, exact to rounding."""


@compiled()
def joint_moment(t1, t2, u1, u2, stiffness, damping, a, b, out):
    """Moment of a joint as two vectors across its directions, and its matrix."""
    c = t1[0] * t2[0] + t1[1] * t2[1] + t1[2] * t2[2]
    sx = t1[1] * t2[2] - t1[2] * t2[1]
    sy = t1[2] * t2[0] - t1[0] * t2[2]
    sz = t1[0] * t2[1] - t1[1] * t2[0]
    s2 = sx * sx + sy * sy + sz * sz
    sine = np.sqrt(s2)
    if s2 < SMALL_SINE2 and c > 0.0:  # asin(s) / s
        far = 5.0 / 112.0 + s2 * (35.0 / 1152.0 + s2 * 63.0 / 2816.0)
        ratio = 1.0 + s2 * (1.0 / 6.0 + s2 * (3.0 / 40.0 + s2 * far))
        angle = ratio * sine
    else:
        angle = np.arctan2(sine, c)
        ratio = angle / sine if sine > 1e-9 else 1.0
    for k in range(3):
        a[k] = t1[k] - c * t2[k]  # length sine, decreases the angle when added to t2
        b[k] = t2[k] - c * t1[k]
        out[k], out[3 + k] = stiffness * ratio * a[k], stiffness * ratio * b[k]
    if damping == 0.0:
        out[6:15] = 0.0
        return angle, 0.0
    return angle, _damp(u1, u2, s2, damping, a, b, out)


@compiled()
def _damp(u1, u2, s2, damping, a, b, out):
    """Add the damping of a joint to its moment, and write the projector; returns the power lost."""
    # Share of the damping that acts in every direction, the rest in the kink's plane.
    every = STRAIGHT_RAD**4 / (STRAIGHT_RAD**4 + s2 * s2)
    inverse = (1.0 - every) / s2 if s2 > 1e-24 else 0.0
    rate = 0.0
    for k in range(3):
        rate -= a[k] * u2[k] + b[k] * u1[k]
    plane = damping * rate * inverse
    loss = plane * rate
    for k in range(3):
        gap = damping * every * (u2[k] - u1[k])
        loss += gap * (u2[k] - u1[k])
        out[k] += plane * a[k] - gap
        out[3 + k] += plane * b[k] + gap
    for i in range(3):
        for j in range(3):
            out[6 + 3 * i + j] = 0.5 * (a[i] * a[j] + b[i] * b[j]) * inverse
        out[6 + 4 * i] += every
    return loss


@compiled()
def assemble_bending(
    kind, cable, nodes, segments, band, border, right, corner, edge, dh, held, work, m3
):
    """Moments of all joints of a cable; its clamps are up to date in `cable`."""
    start, count = kind[FIRST_NODE], kind[SEGMENTS]
    first, begin = kind[FIRST_ROW], kind[FIRST_SEGMENT]
    lost = bent = i1 = 0.0
    damped = cable[BENDING_DAMPING] > 0.0
    out, u1, u2, a, b = work[0:15], work[15:18], work[18:21], work[21:24], work[24:27]
    for i in range(count + 1):
        before, after = segments[begin + max(i - 1, 0)], segments[begin + min(i, count - 1)]
        end_a, end_b = i == 0, i == count
        for k in range(3):
            u1[k] = cable[AXIS_RATE_A + k] if end_a else u2[k]
        weight = 1.0 / after[REST]
        if end_b:
            t2, i2 = cable[AXIS_WORLD_B : AXIS_WORLD_B + 3], 0.0
            for k in range(3):
                u2[k] = cable[AXIS_RATE_B + k]
            weight *= cable[CLAMP_FACTOR_B]
        else:
            t2, i2 = after[DIRECTION : DIRECTION + 3], 1.0 / max(after[LENGTH], SHORTEST)
            if damped:
                _turning(nodes[start + i], nodes[start + i + 1], after, i2, u2)
        if end_a:
            t1 = cable[AXIS_WORLD_A : AXIS_WORLD_A + 3]
            weight *= cable[CLAMP_FACTOR_A]
        else:
            t1 = before[DIRECTION : DIRECTION + 3]
        missing = (end_a and kind[CLAMP_A] == 0) or (end_b and kind[CLAMP_B] == 0)
        if missing or before[ALIVE] == 0.0 or after[ALIVE] == 0.0:
            i1 = i2
            continue
        stiffness, damping = cable[EI] * weight, cable[BENDING_DAMPING] * weight
        angle, loss = joint_moment(t1, t2, u1, u2, stiffness, damping, a, b, out)
        lost += loss
        bent += 0.5 * stiffness * angle * angle
        damping /= dh
        for q in range(3):
            for r in range(q, 3):
                m = -0.5 * stiffness * (t1[q] * t1[r] + t2[q] * t2[r])
                m += damping * out[6 + 3 * q + r] + (stiffness if q == r else 0.0)
                m3[q, r], m3[r, q] = m, m
        # Share of each point in t2 - t1, B of K = B^T P B: a clamp's direction stands for itself.
        low, high = (-1.0 if end_a else i1), (1.0 if end_b else i2)
        if i > 1:
            _add_inner(band, first + 3 * (i - 2), m3, low, -i1 - i2, high)
        else:
            at = -1 if end_a else i - 1
            if not held:
                add_block(band, border, corner, first, at, at, m3, low * low)
            if not (held and end_a):
                add_block(band, border, corner, first, i, i, m3, (i1 + i2) ** 2)
                add_block(band, border, corner, first, at, i, m3, -low * (i1 + i2))
            add_block(band, border, corner, first, at, i + 1, m3, low * high)
            add_block(band, border, corner, first, i, i + 1, m3, -(i1 + i2) * high)
            add_block(band, border, corner, first, i + 1, i + 1, m3, high * high)
        # -dE/dt2 moves the upper node by 1 / l2 and the joint's node against it, the same below.
        x, y, z = out[0], out[1], out[2]
        u, v, w = out[3], out[4], out[5]
        add_right(right, edge, first, i + 1, x * high, y * high, z * high)
        add_right(right, edge, first, i, u * i1 - x * i2, v * i1 - y * i2, w * i1 - z * i2)
        add_right(right, edge, first, -1 if end_a else i - 1, -u * low, -v * low, -w * low)
        i1 = i2
    cable[BENT] = bent
    return lost


@compiled()
def _add_inner(band, row, m, low, middle, high):
    """Add the blocks of a joint none of whose points is in the border; the lowest is at `row`."""
    xx, xy, xz, yy, yz, zz = m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2]
    for i in range(3):
        f = low * low if i == 0 else (middle * middle if i == 1 else high * high)
        r, s, t = band[row + 3 * i], band[row + 3 * i + 1], band[row + 3 * i + 2]
        r[0] += f * xx
        r[1] += f * xy
        r[2] += f * xz
        s[0] += f * yy
        s[1] += f * yz
        t[0] += f * zz
        if i == 2:
            break
        f = middle * (low if i == 0 else high)
        r[3] += f * xx
        r[4] += f * xy
        r[5] += f * xz
        s[2] += f * xy
        s[3] += f * yy
        s[4] += f * yz
        t[1] += f * xz
        t[2] += f * yz
        t[3] += f * zz
        if i == 0:
            f = low * high
            r[6] += f * xx
            r[7] += f * xy
            r[8] += f * xz
            s[5] += f * xy
            s[6] += f * yy
            s[7] += f * yz
            t[4] += f * xz
            t[5] += f * yz
            t[6] += f * zz


@compiled()
def _turning(a, b, segment, inverse, out):
    """Rate of the direction of a segment."""
    rate = segment[RATE]
    for k in range(3):
        out[k] = (b[VS + k] - a[VS + k] - rate * segment[DIRECTION + k]) * inverse
