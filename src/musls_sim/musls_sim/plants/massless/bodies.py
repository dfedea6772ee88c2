"""Rigid bodies: what acts on them from outside, and the accelerations that it gives.

Quaternions of a stage are not quite of unit length; their rotation is that of the unit one, which
keeps the order of the Runge-Kutta method and the axes at right angles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_sim.plants.massless.records import (
    ANCHOR,
    CORNERS,
    DAMPING,
    FIRST_CORNER,
    FRICTION,
    GROUND,
    INERTIA,
    INVERSE,
    INVERSE_MASS,
    NEAR,
    PLACE,
    PUSH,
    RADIUS,
    STIFFNESS,
    STUCK,
    Q,
    V,
    W,
    X,
)
from musls_sim.plants.rigid_links.rows import OMEGA, POSITION, VELOCITY, add_inputs, add_rotors


@compiled()
def place(y, m):
    """Write the motion of a body in the columns of `plants.rigid_body`."""
    w, a, b, c = y[Q], y[Q + 1], y[Q + 2], y[Q + 3]
    s = 2.0 / (w * w + a * a + b * b + c * c)
    m[0], m[1], m[2] = 1.0 - s * (b * b + c * c), s * (a * b - w * c), s * (a * c + w * b)
    m[3], m[4], m[5] = s * (a * b + w * c), 1.0 - s * (a * a + c * c), s * (b * c - w * a)
    m[6], m[7], m[8] = s * (a * c - w * b), s * (b * c + w * a), 1.0 - s * (a * a + b * b)
    for k in range(3):
        m[POSITION + k] = y[X + k]
        m[VELOCITY + k] = y[V + k]
        m[OMEGA + k] = m[3 * k] * y[W] + m[3 * k + 1] * y[W + 1] + m[3 * k + 2] * y[W + 2]


@compiled()
def drive(m, body, enu, wind, speed, rotors, w):
    """Add to the wrench of a body what drives it: its rotors, if any, and the inputs."""
    lost = -power_of(m, w)
    add_rotors(m, speed, rotors, wind, w)
    add_inputs(m, body, enu, w)
    return power_of(m, w) + lost, lost


@compiled()
def power_of(m, w):
    """Power of a wrench on a moving body [W]."""
    power = 0.0
    for k in range(3):
        power += w[k] * m[VELOCITY + k] + w[3 + k] * m[OMEGA + k]
    return power


@compiled()
def accelerate(p, m, w, y, gravity, out):
    """Newton's and Euler's equations, and the kinematics."""
    x, y_, z = y[W], y[W + 1], y[W + 2]
    lx = p[INERTIA] * x + p[INERTIA + 1] * y_ + p[INERTIA + 2] * z
    ly = p[INERTIA + 3] * x + p[INERTIA + 4] * y_ + p[INERTIA + 5] * z
    lz = p[INERTIA + 6] * x + p[INERTIA + 7] * y_ + p[INERTIA + 8] * z
    tx = m[0] * w[3] + m[3] * w[4] + m[6] * w[5] - y_ * lz + z * ly
    ty = m[1] * w[3] + m[4] * w[4] + m[7] * w[5] - z * lx + x * lz
    tz = m[2] * w[3] + m[5] * w[4] + m[8] * w[5] - x * ly + y_ * lx
    for k in range(3):
        out[X + k] = y[V + k]
        out[V + k] = p[INVERSE_MASS] * w[k]
        out[W + k] = (
            p[INVERSE + 3 * k] * tx + p[INVERSE + 3 * k + 1] * ty + p[INVERSE + 3 * k + 2] * tz
        )
    out[V + 2] -= gravity
    spin_quaternion(y, out)


@compiled()
def spin_quaternion(y, out):
    """Rate of the quaternion of a body rate: half the product of both."""
    w, a, b, c = y[Q], y[Q + 1], y[Q + 2], y[Q + 3]
    x, y_, z = 0.5 * y[W], 0.5 * y[W + 1], 0.5 * y[W + 2]
    out[Q] = -a * x - b * y_ - c * z
    out[Q + 1] = w * x + b * z - c * y_
    out[Q + 2] = w * y_ + c * x - a * z
    out[Q + 3] = w * z + a * y_ - b * x


@compiled()
def follow(path, now, y, out):
    """Motion of a prescribed drone and its derivatives, from its cubic path, see `paths`.

    Angular velocity and acceleration of exp(psi) to third order in psi, which stays below 0.1 rad
    within a period.
    """
    p0, p1, p2 = _cubic(path, 4, 0, now), _cubic(path, 4, 1, now), _cubic(path, 4, 2, now)
    sx, sy, sz = _bend(path, 4, 0, now), _bend(path, 4, 1, now), _bend(path, 4, 2, now)
    # World: omega = r + p x r / 2 + p x (p x r) / 6, r the rate of p; its derivative likewise.
    cx, cy, cz = _cross(p0[0], p1[0], p2[0], p0[1], p1[1], p2[1])
    dx, dy, dz = _cross(p0[0], p1[0], p2[0], cx, cy, cz)
    wx, wy, wz = p0[1] + cx / 2 + dx / 6, p1[1] + cy / 2 + dy / 6, p2[1] + cz / 2 + dz / 6
    ex, ey, ez = _cross(p0[1], p1[1], p2[1], cx, cy, cz)
    fx, fy, fz = _cross(p0[0], p1[0], p2[0], sx, sy, sz)
    gx, gy, gz = _cross(p0[0], p1[0], p2[0], fx, fy, fz)
    ax = sx + fx / 2 + (ex + gx) / 6
    ay = sy + fy / 2 + (ey + gy) / 6
    az = sz + fz / 2 + (ez + gz) / 6
    for k in range(3):
        x, v = _cubic(path, 0, k, now)
        y[X + k], y[V + k] = x, v
        out[X + k], out[V + k] = v, _bend(path, 0, k, now)
    y[Q], y[Q + 1], y[Q + 2], y[Q + 3] = path[8, 0], path[8, 1], path[8, 2], path[9, 0]
    _turn_by(p0[0], p1[0], p2[0], y)
    _in_body(y, wx, wy, wz, W)
    _in_body_to(y, ax, ay, az, out)
    spin_quaternion(y, out)


@compiled()
def _cross(ax, ay, az, bx, by, bz):
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@compiled()
def _cubic(path, row, k, t):
    """Value and rate of a cubic."""
    c0, c1, c2, c3 = path[row, k], path[row + 1, k], path[row + 2, k], path[row + 3, k]
    return c0 + t * (c1 + t * (c2 + t * c3)), c1 + t * (2.0 * c2 + 3.0 * t * c3)


@compiled()
def _bend(path, row, k, t):
    """Second derivative of a cubic."""
    return 2.0 * path[row + 2, k] + 6.0 * t * path[row + 3, k]


@compiled()
def _turn_by(x, y_, z, y):
    """Turn the quaternion of a state by a rotation vector in the world."""
    angle = np.sqrt(x * x + y_ * y_ + z * z)
    s = np.sin(0.5 * angle) / angle if angle > 1e-9 else 0.5
    c, x, y_, z = np.cos(0.5 * angle), s * x, s * y_, s * z
    w, a, b, d = y[Q], y[Q + 1], y[Q + 2], y[Q + 3]
    y[Q] = c * w - x * a - y_ * b - z * d
    y[Q + 1] = c * a + x * w + y_ * d - z * b
    y[Q + 2] = c * b - x * d + y_ * w + z * a
    y[Q + 3] = c * d + x * b - y_ * a + z * w


@compiled()
def _in_body(y, x, y_, z, at):
    """Write a world vector into a state, seen from the body."""
    w, a, b, c = y[Q], y[Q + 1], y[Q + 2], y[Q + 3]
    tx, ty, tz = 2.0 * (c * y_ - b * z), 2.0 * (a * z - c * x), 2.0 * (b * x - a * y_)
    y[at] = x + w * tx - b * tz + c * ty
    y[at + 1] = y_ + w * ty - c * tx + a * tz
    y[at + 2] = z + w * tz - a * ty + b * tx


@compiled()
def _in_body_to(y, x, y_, z, out):
    """Write a world vector into the angular acceleration of a body in state y."""
    w, a, b, c = y[Q], y[Q + 1], y[Q + 2], y[Q + 3]
    tx, ty, tz = 2.0 * (c * y_ - b * z), 2.0 * (a * z - c * x), 2.0 * (b * x - a * y_)
    out[W] = x + w * tx - b * tz + c * ty
    out[W + 1] = y_ + w * ty - c * tx + a * tz
    out[W + 2] = z + w * tz - a * ty + b * tx


# ---------- Ground under the corners of boxes: a spring and damper that only push, friction that sticks.

Array = NDArray[np.float64]

STATIC_SINK_M = 5e-4
"""Depth to which a body's own weight presses four corners into the ground."""

STABLE = 1.5
"""Step times the fastest decay rate of a body on its corners; RK4 is stable up to 2.78."""


def corner_constants(mass_kg: float) -> tuple[float, float]:
    """Stiffness [N/m] and damping [N s/m] of each corner of a body: critical on four."""
    stiffness = mass_kg * 9.80665 / (4.0 * STATIC_SINK_M)
    return stiffness, float(np.sqrt(stiffness * mass_kg))


def contact_step_s(mass_kg: float, inertia: Array, corners: Array) -> float:
    """Longest step for a body that stands on four corners of its box.

    Args:
        mass_kg: Mass.
        inertia: (3, 3).
        corners: Body frame, (8, 3), the lower half of them touches.
    """
    stiffness, damping = corner_constants(mass_kg)
    effect = np.zeros((6, 6))
    for r in corners[np.argsort(corners[:, 2])[:4]]:
        arm = np.array([[0.0, r[2], -r[1]], [-r[2], 0.0, r[0]], [r[1], -r[0], 0.0]])
        jacobian = np.hstack([np.eye(3), arm])
        effect += jacobian.T @ jacobian
    weight = np.zeros((6, 6))
    weight[:3, :3], weight[3:, 3:] = mass_kg * np.eye(3), inertia
    fastest = float(np.abs(np.linalg.eigvals(np.linalg.solve(weight, effect))).max())
    # x'' + c e x' + k e x = 0: the fastest decay of the overdamped, the frequency of the other.
    c, k = damping * fastest, stiffness * fastest
    rate = max(np.sqrt(k), 0.5 * (c + np.sqrt(max(c * c - 4.0 * k, 0.0))))
    return float(STABLE / rate)


@compiled()
def look_for_ground(t, y, ahead_s):
    """Note which bodies can touch the ground within a time; whether any can."""
    ground = t.parameters[GROUND]
    any_near = False
    for i in range(y.shape[0]):
        p = t.bodies[i]
        speed = np.sqrt(y[i, V] ** 2 + y[i, V + 1] ** 2 + y[i, V + 2] ** 2)
        reach = p[RADIUS] + ahead_s * (speed + 10.0 * ahead_s)
        near = p[CORNERS] > 0.0 and y[i, X + 2] - reach < ground
        p[NEAR] = 1.0 if near else 0.0
        any_near |= near
    return any_near


@compiled()
def add_corners(t, p, m, w):
    """Add the ground's forces on one body to its wrench."""
    ground, friction = t.parameters[GROUND], t.parameters[FRICTION]
    first, count = int(p[FIRST_CORNER]), int(p[CORNERS])
    for q in range(first, first + count):
        c = t.corners[q]
        rx = m[0] * c[PLACE] + m[1] * c[PLACE + 1] + m[2] * c[PLACE + 2]
        ry = m[3] * c[PLACE] + m[4] * c[PLACE + 1] + m[5] * c[PLACE + 2]
        rz = m[6] * c[PLACE] + m[7] * c[PLACE + 1] + m[8] * c[PLACE + 2]
        depth = ground - m[POSITION + 2] - rz
        c[PUSH] = c[PUSH + 1] = c[PUSH + 2] = 0.0
        if depth <= 0.0:
            continue
        vx = m[VELOCITY] + m[OMEGA + 1] * rz - m[OMEGA + 2] * ry
        vy = m[VELOCITY + 1] + m[OMEGA + 2] * rx - m[OMEGA] * rz
        vz = m[VELOCITY + 2] + m[OMEGA] * ry - m[OMEGA + 1] * rx
        up = p[STIFFNESS] * depth - p[DAMPING] * vz
        if up <= 0.0:
            continue
        fx, fy = -p[DAMPING] * vx, -p[DAMPING] * vy
        if c[STUCK] != 0.0:
            fx += p[STIFFNESS] * (c[ANCHOR] - m[POSITION] - rx)
            fy += p[STIFFNESS] * (c[ANCHOR + 1] - m[POSITION + 1] - ry)
        size = np.sqrt(fx * fx + fy * fy)
        if size > friction * up:
            fx *= friction * up / size
            fy *= friction * up / size
        c[PUSH], c[PUSH + 1], c[PUSH + 2] = fx, fy, up
        w[0] += fx
        w[1] += fy
        w[2] += up
        w[3] += ry * up - rz * fy
        w[4] += rz * fx - rx * up
        w[5] += rx * fy - ry * fx


@compiled()
def settle_corners(t, friction):
    """After a step: corners in the air let go, those on the ground stick where they are.

    The forces are those of the last `add_corners`. A corner that slips drags its place along.
    """
    for i in range(t.bodies.shape[0]):
        p, m = t.bodies[i], t.motion[i]
        first, count = int(p[FIRST_CORNER]), int(p[CORNERS])
        for q in range(first, first + count):
            c = t.corners[q]
            if p[NEAR] == 0.0 or c[PUSH + 2] == 0.0:
                c[STUCK] = 0.0
                continue
            x = m[POSITION] + m[0] * c[PLACE] + m[1] * c[PLACE + 1] + m[2] * c[PLACE + 2]
            y = m[POSITION + 1] + m[3] * c[PLACE] + m[4] * c[PLACE + 1] + m[5] * c[PLACE + 2]
            slips = c[PUSH] ** 2 + c[PUSH + 1] ** 2 >= 0.999 * (friction * c[PUSH + 2]) ** 2
            if c[STUCK] == 0.0:
                c[ANCHOR], c[ANCHOR + 1], c[STUCK] = x, y, 1.0
            elif slips:
                c[ANCHOR] = x + c[PUSH] / p[STIFFNESS]
                c[ANCHOR + 1] = y + c[PUSH + 1] / p[STIFFNESS]
