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

STRAIGHT_RAD = 1e-4
"""Kink below which a joint has no plane of its own."""


@compiled()
def joint_moment(t1, t2, u1, u2, stiffness, damping, a, b, out):
    """Moment of a joint as two vectors across its directions, and its matrix.

    Args:
        t1: Direction before, (3,).
        t2: Direction after, (3,).
        u1: Rate of t1, (3,) [1/s].
        u2: Rate of t2, (3,).
        stiffness: Moment per angle [N m].
        damping: Moment per rate of the angle [N m s].
        a: Work space, (3,).
        b: Work space, (3,).
        out: Result: minus the derivative of the energy by t2 (across t2) and by t1 (across t1),
            then the projector (symmetric 3x3 in columns 6 to 14) on which damping works, (15,).

    Returns:
        Angle [rad] and the power lost to damping [W].
    """
    c = t1[0] * t2[0] + t1[1] * t2[1] + t1[2] * t2[2]
    sx = t1[1] * t2[2] - t1[2] * t2[1]
    sy = t1[2] * t2[0] - t1[0] * t2[2]
    sz = t1[0] * t2[1] - t1[1] * t2[0]
    sine = np.sqrt(sx * sx + sy * sy + sz * sz)
    angle = np.arctan2(sine, c)
    ratio = angle / sine if sine > 1e-9 else 1.0
    # Share of the damping that acts in every direction, the rest in the kink's plane.
    every = STRAIGHT_RAD**4 / (STRAIGHT_RAD**4 + sine**4)
    loss = 0.0
    rate = 0.0
    for k in range(3):
        a[k] = t1[k] - c * t2[k]  # length sine, decreases the angle when added to t2
        b[k] = t2[k] - c * t1[k]
        rate -= a[k] * u2[k] + b[k] * u1[k]
    inverse = 1.0 / sine if sine > 1e-12 else 0.0
    rate *= inverse
    plane = damping * (1.0 - every) * rate * inverse
    loss += damping * (1.0 - every) * rate * rate
    for k in range(3):
        gap = damping * every * (u2[k] - u1[k])
        loss += gap * (u2[k] - u1[k])
        out[k] = (stiffness * ratio + plane) * a[k] - gap
        out[3 + k] = (stiffness * ratio + plane) * b[k] + gap
    for i in range(3):
        for j in range(3):
            out[6 + 3 * i + j] = (
                (1.0 - every) * 0.5 * (a[i] * a[j] + b[i] * b[j]) * inverse * inverse
            )
        out[6 + 4 * i] += every
    return angle, loss
