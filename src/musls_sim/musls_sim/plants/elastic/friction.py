"""Dry friction and stops of shafts.

Dry friction sticks: a spring from where it stuck, up to the limit, so that a braked drum does not
creep. Stops are one-sided springs whose damping grows with the depth.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.elastic.columns import (
    BEARING,
    BRAKE,
    CAPSTAN,
    DIRECTION,
    EXTRA_WRAP,
    FIRST_SEGMENT,
    PUSH,
    PUSH_STIFFNESS,
    RADIUS,
    RATIO,
    RUB,
    RUB_LIMIT,
    RUB_SLOPE,
    S_CABLE,
    S_CABLE_2,
    S_END,
    S_END_2,
    S_KIND,
    SEGMENTS,
    SHEAVE,
    SLIDES,
    STUCK,
    TENSION,
    VISCOUS,
    WHEEL,
    Y_HIGH,
    YS,
    YVS,
)

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
