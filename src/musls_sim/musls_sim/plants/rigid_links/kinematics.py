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
JOINT_COLUMNS = 24

# Columns of a row of body motion after those of `bodies`: the world directions of the joint axes.
AXIS_Z, AXIS_Y, AXIS_X = 18, 21, 24
MOTION_COLUMNS = 27


def joint_table(tree: Tree) -> Array:
    """Joint frames of all bodies as one contiguous table, (n_bodies, 24)."""
    table = np.zeros((len(tree.bodies), JOINT_COLUMNS))
    for row, body in zip(table, tree.bodies, strict=True):
        row[_ROTATION_IN_PARENT:_POSITION_IN_PARENT] = body.joint_in_parent_rotation.ravel()
        row[_POSITION_IN_PARENT:_ROTATION_IN_CHILD] = body.joint_in_parent_position_m
        row[_ROTATION_IN_CHILD:_POSITION_IN_CHILD] = body.joint_in_child_rotation.ravel()
        row[_POSITION_IN_CHILD:] = body.joint_in_child_position_m
    return table


@compiled()
def _load_motion(q, dq, out):
    """Free joint of DART: rotation vector, position; angular and linear velocity, world frame."""
    rx, ry, rz = q[0], q[1], q[2]
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
        out[POSITION + i] = q[3 + i]
        out[OMEGA + i] = dq[i]
        out[VELOCITY + i] = dq[3 + i]


@compiled()
def _child_motion(up, joint, q, dq, out):
    """Motion of a body from its parent's motion and its joint's angles and rates.

    Two angles are those of a universal joint, Ry Rz; three those of Rx Ry Rz.
    """
    twist = q.shape[0] - 2  # index of the y axis; 1 if the joint turns about x first
    a, b, da, db = q[twist], q[twist + 1], dq[twist], dq[twist + 1]
    ca, sa, cb, sb = np.cos(a), np.sin(a), np.cos(b), np.sin(b)
    ct, st, dt = 1.0, 0.0, 0.0
    if twist:
        ct, st, dt = np.cos(q[0]), np.sin(q[0]), dq[0]
    for i in range(3):
        r0, r1, r2 = up[3 * i], up[3 * i + 1], up[3 * i + 2]
        # Joint frame in the world (columns x, y, z), then Rx, Ry(a), Rz(b).
        x = r0 * joint[0] + r1 * joint[3] + r2 * joint[6]
        y0 = r0 * joint[1] + r1 * joint[4] + r2 * joint[7]
        z0 = r0 * joint[2] + r1 * joint[5] + r2 * joint[8]
        y = ct * y0 + st * z0
        z = ct * z0 - st * y0
        xa = ca * x - sa * z
        za = sa * x + ca * z
        xb = cb * xa + sb * y
        yb = cb * y - sb * xa
        out[AXIS_X + i] = x
        out[AXIS_Y + i] = y
        out[AXIS_Z + i] = za
        # Child frame = joint frame times the transpose of the joint frame seen from the child.
        out[3 * i] = xb * joint[12] + yb * joint[13] + za * joint[14]
        out[3 * i + 1] = xb * joint[15] + yb * joint[16] + za * joint[17]
        out[3 * i + 2] = xb * joint[18] + yb * joint[19] + za * joint[20]
        # From the parent's origin to the joint, and from the joint to the child's origin.
        out[POSITION + i] = r0 * joint[9] + r1 * joint[10] + r2 * joint[11]
        out[OMEGA + i] = up[OMEGA + i] + dt * x + da * y + db * za
    px, py, pz = out[POSITION], out[POSITION + 1], out[POSITION + 2]
    wx, wy, wz = up[OMEGA], up[OMEGA + 1], up[OMEGA + 2]
    vx = up[VELOCITY] + wy * pz - wz * py
    vy = up[VELOCITY + 1] + wz * px - wx * pz
    vz = up[VELOCITY + 2] + wx * py - wy * px
    cx, cy, cz = joint[21], joint[22], joint[23]
    dx = -(out[0] * cx + out[1] * cy + out[2] * cz)
    dy = -(out[3] * cx + out[4] * cy + out[5] * cz)
    dz = -(out[6] * cx + out[7] * cy + out[8] * cz)
    wx, wy, wz = out[OMEGA], out[OMEGA + 1], out[OMEGA + 2]
    out[VELOCITY] = vx + wy * dz - wz * dy
    out[VELOCITY + 1] = vy + wz * dx - wx * dz
    out[VELOCITY + 2] = vz + wx * dy - wy * dx
    out[POSITION] = up[POSITION] + px + dx
    out[POSITION + 1] = up[POSITION + 1] + py + dy
    out[POSITION + 2] = up[POSITION + 2] + pz + dz


@compiled()
def body_motion(q, dq, parents, first, joints, motion):
    """Compute the motion of all bodies.

    Args:
        q: Coordinates in DART's order, (n_dofs,).
        dq: Their rates (world angular and linear velocity for the load), (n_dofs,).
        parents: Parent of each body, (n_bodies,).
        first: First coordinate of each body, then their number, (n_bodies + 1,).
        joints: From `joint_table`, (n_bodies, 24).
        motion: Result, (n_bodies, 27), see the column constants.
    """
    _load_motion(q, dq, motion[0])
    for k in range(1, parents.shape[0]):
        d, e = first[k], first[k + 1]
        _child_motion(motion[parents[k]], joints[k], q[d:e], dq[d:e], motion[k])
