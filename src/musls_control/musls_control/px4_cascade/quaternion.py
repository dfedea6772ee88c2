"""Quaternion products on scalars, [w, x, y, z], so that compiled code needs no temporaries."""

from __future__ import annotations

from musls_description.compiled import compiled


@compiled()
def multiply(aw, ax, ay, az, bw, bx, by, bz):
    """Return the Hamilton product a * b."""
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


@compiled()
def body_z_in_world(w, x, y, z):
    """Return the third column of the rotation matrix of a unit quaternion."""
    return 2.0 * (x * z + w * y), 2.0 * (y * z - w * x), w * w - x * x - y * y + z * z


@compiled()
def world_z_in_body(w, x, y, z):
    """Return the third row of the rotation matrix of a unit quaternion."""
    return 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z
