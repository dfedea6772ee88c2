"""Pose and velocity of every body from the joint coordinates, in one compiled call.

DART hands over all coordinates in one binding call but each body's pose in one call per body, so
the poses are recomputed here (and a test holds them to DART's own).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.tree import Tree
from musls_sim.plants.bodies import OMEGA, POSITION, VELOCITY

Array = NDArray[np.float64]

# Columns of a row of the table of joints.
_ROTATION_IN_PARENT, _POSITION_IN_PARENT, _ROTATION_IN_CHILD, _POSITION_IN_CHILD = 0, 9, 12, 21
_STRAIGHT = 24
"""Last column: 1 if both rotations are identities, as between the links of a cable, else 0."""
JOINT_COLUMNS = 25

# Columns of a row of body motion after those of `bodies`: the world directions of the joint axes.
AXIS_Z, AXIS_Y, AXIS_X = 18, 21, 24
MOTION_COLUMNS = 27


def joint_table(tree: Tree) -> Array:
    """Joint frames of all bodies as one contiguous table, (n_bodies, 25)."""
    table = np.zeros((len(tree.bodies), JOINT_COLUMNS))
    for row, body in zip(table, tree.bodies, strict=True):
        row[_ROTATION_IN_PARENT:_POSITION_IN_PARENT] = body.joint_in_parent_rotation.ravel()
        row[_POSITION_IN_PARENT:_ROTATION_IN_CHILD] = body.joint_in_parent_position_m
        row[_ROTATION_IN_CHILD:_POSITION_IN_CHILD] = body.joint_in_child_rotation.ravel()
        row[_POSITION_IN_CHILD:_STRAIGHT] = body.joint_in_child_position_m
        same = np.eye(3)
        row[_STRAIGHT] = np.array_equal(body.joint_in_parent_rotation, same) and np.array_equal(
            body.joint_in_child_rotation, same
        )
    return table


@compiled()
def _free_motion(q, dq, first, out):
    """Free joint of DART: rotation vector, position; angular and linear velocity, world frame.

    The load's, and that of the first body of a loose piece (see `pieces`).
    """
    rx, ry, rz = q[first], q[first + 1], q[first + 2]
    angle2 = rx * rx + ry * ry + rz * rz
    angle = np.sqrt(angle2)
    if angle > 1e-6:
        s, c = np.sin(angle) / angle, (1.0 - np.cos(angle)) / angle2
    else:
        s, c = 1.0 - angle2 / 6.0, 0.5 - angle2 / 24.0
    out[0] = 1.0 - c * (ry * ry + rz * rz)
    out[1] = c * rx * ry - s * rz
    out[2] = c * rx * rz + s * ry
    out[3] = c * rx * ry + s * rz
    out[4] = 1.0 - c * (rx * rx + rz * rz)
    out[5] = c * ry * rz - s * rx
    out[6] = c * rx * rz - s * ry
    out[7] = c * ry * rz + s * rx
    out[8] = 1.0 - c * (rx * rx + ry * ry)
    for i in range(3):
        out[POSITION + i] = q[first + 3 + i]
        out[OMEGA + i] = dq[first + i]
        out[VELOCITY + i] = dq[first + 3 + i]


@compiled()
def _child_motion(motion, joints, q, dq, u, k, d, twist):
    """Motion of body k from that of its parent u and its joint's angles and rates.

    Two angles are those of a universal joint, Ry Rz; three those of Rx Ry Rz. Rows are not cut out
    of the tables: each cut costs as much as some ten operations.
    """
    a, b, da, db = q[d], q[d + 1], dq[d], dq[d + 1]
    ca, sa, cb, sb = np.cos(a), np.sin(a), np.cos(b), np.sin(b)
    straight = joints[k, _STRAIGHT] > 0.0
    ct, st, dt = 1.0, 0.0, 0.0
    if twist:
        ct, st, dt = np.cos(q[d - 1]), np.sin(q[d - 1]), dq[d - 1]
    for i in range(3):
        r0, r1, r2 = motion[u, 3 * i], motion[u, 3 * i + 1], motion[u, 3 * i + 2]
        # Joint frame in the world (columns x, y, z), then Rx, Ry(a), Rz(b).
        x, y0, z0 = r0, r1, r2
        if not straight:
            x = r0 * joints[k, 0] + r1 * joints[k, 3] + r2 * joints[k, 6]
            y0 = r0 * joints[k, 1] + r1 * joints[k, 4] + r2 * joints[k, 7]
            z0 = r0 * joints[k, 2] + r1 * joints[k, 5] + r2 * joints[k, 8]
        y = ct * y0 + st * z0
        z = ct * z0 - st * y0
        xa = ca * x - sa * z
        za = sa * x + ca * z
        xb = cb * xa + sb * y
        yb = cb * y - sb * xa
        motion[k, AXIS_X + i] = x
        motion[k, AXIS_Y + i] = y
        motion[k, AXIS_Z + i] = za
        # Child frame = joint frame times the transpose of the joint frame seen from the child.
        x0, y1, z1 = xb, yb, za
        if not straight:
            x0 = xb * joints[k, 12] + yb * joints[k, 13] + za * joints[k, 14]
            y1 = xb * joints[k, 15] + yb * joints[k, 16] + za * joints[k, 17]
            z1 = xb * joints[k, 18] + yb * joints[k, 19] + za * joints[k, 20]
        motion[k, 3 * i], motion[k, 3 * i + 1], motion[k, 3 * i + 2] = x0, y1, z1
        # From the parent's origin to the joint, and from the joint to the child's origin.
        motion[k, POSITION + i] = r0 * joints[k, 9] + r1 * joints[k, 10] + r2 * joints[k, 11]
        motion[k, OMEGA + i] = motion[u, OMEGA + i] + dt * x + da * y + db * za
    px, py, pz = motion[k, POSITION], motion[k, POSITION + 1], motion[k, POSITION + 2]
    wx, wy, wz = motion[u, OMEGA], motion[u, OMEGA + 1], motion[u, OMEGA + 2]
    vx = motion[u, VELOCITY] + wy * pz - wz * py
    vy = motion[u, VELOCITY + 1] + wz * px - wx * pz
    vz = motion[u, VELOCITY + 2] + wx * py - wy * px
    cx, cy, cz = joints[k, 21], joints[k, 22], joints[k, 23]
    dx = -(motion[k, 0] * cx + motion[k, 1] * cy + motion[k, 2] * cz)
    dy = -(motion[k, 3] * cx + motion[k, 4] * cy + motion[k, 5] * cz)
    dz = -(motion[k, 6] * cx + motion[k, 7] * cy + motion[k, 8] * cz)
    wx, wy, wz = motion[k, OMEGA], motion[k, OMEGA + 1], motion[k, OMEGA + 2]
    motion[k, VELOCITY] = vx + wy * dz - wz * dy
    motion[k, VELOCITY + 1] = vy + wz * dx - wx * dz
    motion[k, VELOCITY + 2] = vz + wx * dy - wy * dx
    motion[k, POSITION] = motion[u, POSITION] + px + dx
    motion[k, POSITION + 1] = motion[u, POSITION + 1] + py + dy
    motion[k, POSITION + 2] = motion[u, POSITION + 2] + pz + dz


@compiled()
def body_motion(q, dq, parents, first, joints, motion):
    """Compute the motion of all bodies."""
    _free_motion(q, dq, 0, motion[0])
    for k in range(1, parents.shape[0]):
        if parents[k] < 0:
            _free_motion(q, dq, first[k], motion[k])
            continue
        y_axis = first[k + 1] - 2
        _child_motion(motion, joints, q, dq, parents[k], k, y_axis, y_axis > first[k])
