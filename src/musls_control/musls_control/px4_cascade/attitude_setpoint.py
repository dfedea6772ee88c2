"""From a thrust vector and a yaw angle to an attitude (PX4 v1.15 source, ControlMath)."""

from __future__ import annotations

import math

from musls_description.compiled import compiled


@compiled()
def set_attitude_from_thrust(s, thrust, yaw, yaw_rate):
    """Point the body's thrust axis along the thrust, its nose as near to the yaw as it goes."""
    tx, ty, tz = thrust[0], thrust[1], thrust[2]
    norm = math.sqrt(tx * tx + ty * ty + tz * tz)
    if norm < 1e-9:
        zx, zy, zz = 0.0, 0.0, 1.0
    else:
        zx, zy, zz = -tx / norm, -ty / norm, -tz / norm
    # x = y_c cross z with y_c the direction right of the nose in the horizontal plane
    cx, cy = -math.sin(yaw), math.cos(yaw)
    xx, xy, xz = cy * zz, -cx * zz, cx * zy - cy * zx
    if zz < 0.0:
        xx, xy, xz = -xx, -xy, -xz
    if abs(zz) < 1e-6:
        xx, xy, xz = 0.0, 0.0, 1.0
    length = math.sqrt(xx * xx + xy * xy + xz * xz)
    xx, xy, xz = xx / length, xy / length, xz / length
    yx, yy, yz = zy * xz - zz * xy, zz * xx - zx * xz, zx * xy - zy * xx
    w, x, y, z = quaternion_from_columns(xx, xy, xz, yx, yy, yz, zx, zy, zz)
    s.q_setpoint[0], s.q_setpoint[1], s.q_setpoint[2], s.q_setpoint[3] = w, x, y, z
    s.yaw_rate_setpoint = yaw_rate
    s.thrust_setpoint_z = -norm


@compiled()
def quaternion_from_columns(xx, xy, xz, yx, yy, yz, zx, zy, zz):
    """Return w, x, y, z of the rotation matrix with columns x, y, z (largest-element method).

    PX4's own arithmetic, which `compiled_rotations.from_matrix` does not repeat bit for bit.
    """
    trace = xx + yy + zz
    if trace > 0.0:
        t = math.sqrt(trace + 1.0)
        k = 0.5 / t
        return 0.5 * t, (yz - zy) * k, (zx - xz) * k, (xy - yx) * k
    if xx >= yy and xx >= zz:
        t = math.sqrt(xx - yy - zz + 1.0)
        k = 0.5 / t
        return (yz - zy) * k, 0.5 * t, (xy + yx) * k, (zx + xz) * k
    if yy >= zz:
        t = math.sqrt(yy - zz - xx + 1.0)
        k = 0.5 / t
        return (zx - xz) * k, (yx + xy) * k, 0.5 * t, (yz + zy) * k
    t = math.sqrt(zz - xx - yy + 1.0)
    k = 0.5 / t
    return (xy - yx) * k, (zx + xz) * k, (yz + zy) * k, 0.5 * t
