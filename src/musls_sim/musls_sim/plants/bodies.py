"""Motion of rigid bodies as the compiled functions of all plants keep it.

A row holds the rotation from the body's frame to the world (row by row), the position of its
origin, its angular velocity and the velocity of its origin, all in the world frame, (>= 18,); a
plant may append columns of its own.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_description.compiled_rotations import from_matrix

ROTATION, POSITION, OMEGA, VELOCITY = 0, 9, 12, 15
"""Columns of a row."""


@compiled()
def fastest_body(motion):
    """Index and speed [m/s] of the body that moves fastest; a non-finite one counts as infinite."""
    worst, speed2 = 0, -1.0
    for k in range(motion.shape[0]):
        v2 = motion[k, VELOCITY] ** 2 + motion[k, VELOCITY + 1] ** 2 + motion[k, VELOCITY + 2] ** 2
        if not np.isfinite(v2 + motion[k, POSITION] + motion[k, 0]):
            return k, np.inf
        if v2 > speed2:
            worst, speed2 = k, v2
    return worst, np.sqrt(speed2)


@compiled()
def collect_state(motion, selected, dt, state):
    """Write the motion of selected bodies (load, drones) into the plant's state."""
    for i in range(selected.shape[0]):
        m, s = motion[selected[i]], state[i]
        w, x, y, z = from_matrix(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8])
        dot = w * s[6] + x * s[7] + y * s[8] + z * s[9]
        sign = -1.0 if dot < 0.0 else 1.0
        s[6], s[7], s[8], s[9] = sign * w, sign * x, sign * y, sign * z
        for k in range(3):
            v = m[VELOCITY + k]
            s[13 + k] = (v - s[3 + k]) / dt if dt > 0.0 else 0.0
            s[k] = m[POSITION + k]
            s[3 + k] = v
            s[10 + k] = m[k] * m[OMEGA] + m[3 + k] * m[OMEGA + 1] + m[6 + k] * m[OMEGA + 2]
