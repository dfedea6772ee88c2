"""Attitude control on quaternions with reduced yaw priority (PX4 v1.15 source, mc_att_control)."""

from __future__ import annotations

import math

from musls_description.compiled import compiled
from musls_description.compiled_rotations import body_z_in_world, multiply, world_z_in_body

#: Below this the axes count as (anti)parallel.
PARALLEL_EPSILON = 1e-5


@compiled()
def shortest_rotation(ax, ay, az, bx, by, bz):
    """Return the unit quaternion of the shortest rotation that turns unit vector a into b.

    For opposite vectors the axis is the unit axis most orthogonal to a, made normal to it.
    """
    cx, cy, cz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    dot = ax * bx + ay * by + az * bz
    w = dot + 1.0
    if dot < 0.0 and math.sqrt(cx * cx + cy * cy + cz * cz) < PARALLEL_EPSILON:
        w = 0.0
        absolute_x, absolute_y, absolute_z = abs(ax), abs(ay), abs(az)
        if absolute_x < absolute_y and absolute_x < absolute_z:
            cx, cy, cz = 0.0, az, -ay
        elif absolute_y < absolute_z:
            cx, cy, cz = -az, 0.0, ax
        else:
            cx, cy, cz = ay, -ax, 0.0
    norm = math.sqrt(w * w + cx * cx + cy * cy + cz * cz)
    return w / norm, cx / norm, cy / norm, cz / norm


@compiled()
def reduced_attitude_setpoint(q, q_setpoint, yaw_weight):
    """Return the set-point with only `yaw_weight` of its rotation about the thrust axis."""
    dw, dx, dy, dz = q_setpoint[0], q_setpoint[1], q_setpoint[2], q_setpoint[3]
    ax, ay, az = body_z_in_world(q[0], q[1], q[2], q[3])
    bx, by, bz = body_z_in_world(dw, dx, dy, dz)
    rw, rx, ry, rz = shortest_rotation(ax, ay, az, bx, by, bz)
    if abs(rx) > 1.0 - PARALLEL_EPSILON or abs(ry) > 1.0 - PARALLEL_EPSILON:
        # Thrust the wrong way round: the reduced rotation is undefined, go all the way.
        rw, rx, ry, rz = dw, dx, dy, dz
    else:
        rw, rx, ry, rz = multiply(rw, rx, ry, rz, q[0], q[1], q[2], q[3])
    mw, _, _, mz = multiply(rw, -rx, -ry, -rz, dw, dx, dy, dz)
    if mw < 0.0:
        mw, mz = -mw, -mz
    mw, mz = min(mw, 1.0), min(max(mz, -1.0), 1.0)  # rounding may push them out of acos and asin
    yaw_w = math.cos(yaw_weight * math.acos(mw))
    yaw_z = math.sin(yaw_weight * math.asin(mz))
    return multiply(rw, rx, ry, rz, yaw_w, 0.0, 0.0, yaw_z)


@compiled()
def control_attitude(s, q, p):
    """Turn the attitude error into a body rate set-point."""
    weight = p.MC_YAW_WEIGHT
    dw, dx, dy, dz = reduced_attitude_setpoint(q, s.q_setpoint, weight)
    ew, ex, ey, ez = multiply(q[0], -q[1], -q[2], -q[3], dw, dx, dy, dz)
    sign = 2.0 if ew >= 0.0 else -2.0
    # The error was reduced by the weight, the gain makes up for it: yaw is slower only in company.
    yaw_gain = p.MC_YAW_P / weight if weight > 1e-4 else p.MC_YAW_P
    zx, zy, zz = world_z_in_body(q[0], q[1], q[2], q[3])
    yaw_rate = s.yaw_rate_setpoint
    roll_rate = sign * ex * p.MC_ROLL_P + zx * yaw_rate
    pitch_rate = sign * ey * p.MC_PITCH_P + zy * yaw_rate
    yaw_rate_body = sign * ez * yaw_gain + zz * yaw_rate
    s.rates_setpoint[0] = _clip_deg(roll_rate, p.MC_ROLLRATE_MAX)
    s.rates_setpoint[1] = _clip_deg(pitch_rate, p.MC_PITCHRATE_MAX)
    s.rates_setpoint[2] = _clip_deg(yaw_rate_body, p.MC_YAWRATE_MAX)
    s.rates_thrust_z = s.thrust_setpoint_z


@compiled()
def _clip_deg(rate_rad_s, limit_deg_s):
    """Limit a rate given in rad/s to a limit given in deg/s."""
    limit = math.radians(limit_deg_s)
    return min(max(rate_rad_s, -limit), limit)
