"""Forces in the cables, from the accelerations of what they carry or from DART's joints."""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.bodies import OMEGA, POSITION
from musls_sim.plants.rigid_links.kinematics import AXIS_X, AXIS_Y, AXIS_Z


@compiled()
def _turned(motion, body, axis, rate, change, w, a):
    """Angular velocity w and acceleration a beyond a joint axis, from those before it."""
    x, y, z = motion[body, axis], motion[body, axis + 1], motion[body, axis + 2]
    rx, ry, rz = rate * x, rate * y, rate * z
    beyond = (
        a[0] + (change * x + w[1] * rz - w[2] * ry),
        a[1] + (change * y + w[2] * rx - w[0] * rz),
        a[2] + (change * z + w[0] * ry - w[1] * rx),
    )
    return (w[0] + rx, w[1] + ry, w[2] + rz), beyond


@compiled()
def _at_end(x, y, z, w, a, start):
    """Acceleration of the end of the arm (x, y, z) that turns with w and a about its start."""
    ux, uy, uz = w[1] * z - w[2] * y, w[2] * x - w[0] * z, w[0] * y - w[1] * x
    return (
        start[0] + (a[1] * z - a[2] * y + w[1] * uz - w[2] * uy),
        start[1] + (a[2] * x - a[0] * z + w[2] * ux - w[0] * uz),
        start[2] + (a[0] * y - a[1] * x + w[0] * uy - w[1] * ux),
    )


@compiled()
def cable_forces(t, before, after, step_s, gravity):
    """Forces at both ends of all cables in a step, by Newton's law for what is beyond them.

    What the cable below a body exerts on it and all beyond it is their mass times acceleration less
    their weight and the outside forces. Holds if nothing beyond touches the ground (see
    `cable_forces_from_joints`).
    """
    for i in range(t.first_links.shape[0]):
        _forces_of_cable(t, i, before, after, step_s, gravity)


@compiled()
def _forces_of_cable(t, i, before, after, step_s, gravity):
    """See `cable_forces`. Three numbers at a time and no arrays of three, which cost more."""
    motion, joints, first = t.motion, t.joints, t.first
    w = motion[0, OMEGA], motion[0, OMEGA + 1], motion[0, OMEGA + 2]
    a, origin = _rates(before, after, step_s, 0), _rates(before, after, step_s, 3)
    total_x = total_y = total_z = 0.0
    up, drone, loose = 0, t.selected[1 + i], False
    for body in range(t.first_links[i], drone + 1):
        if t.parents[body] < 0:  # from here on a piece of its own: nothing below carries it
            loose, d = True, first[body]
            w = motion[body, OMEGA], motion[body, OMEGA + 1], motion[body, OMEGA + 2]
            a = _rates(before, after, step_s, d)
            origin = _rates(before, after, step_s, d + 3)
            x, y, z = _of_centre(t, body, w, a, origin, gravity)
            if body == drone:
                x, y, z = t.wrench[body, 0], t.wrench[body, 1], t.wrench[body, 2]
                _note(t, i, 1, drone - 1, x, y, z, drone)
            up = body
            continue
        cx, cy, cz = joints[body, 21], joints[body, 22], joints[body, 23]
        jx = motion[body, 0] * cx + motion[body, 1] * cy + motion[body, 2] * cz
        jy = motion[body, 3] * cx + motion[body, 4] * cy + motion[body, 5] * cz
        jz = motion[body, 6] * cx + motion[body, 7] * cy + motion[body, 8] * cz
        origin = _at_end(
            motion[body, POSITION] + jx - motion[up, POSITION],
            motion[body, POSITION + 1] + jy - motion[up, POSITION + 1],
            motion[body, POSITION + 2] + jz - motion[up, POSITION + 2],
            w,
            a,
            origin,
        )
        z_axis = first[body + 1] - 1
        if z_axis - first[body] == 2:
            d = z_axis - 2
            w, a = _turned(motion, body, AXIS_X, before[d], (after[d] - before[d]) / step_s, w, a)
        d = z_axis - 1
        w, a = _turned(motion, body, AXIS_Y, before[d], (after[d] - before[d]) / step_s, w, a)
        d = z_axis
        w, a = _turned(motion, body, AXIS_Z, before[d], (after[d] - before[d]) / step_s, w, a)
        origin = _at_end(-jx, -jy, -jz, w, a, origin)
        x, y, z = _of_centre(t, body, w, a, origin, gravity)
        if not loose:
            total_x += x
            total_y += y
            total_z += z
        if body == drone:
            _note(t, i, 1, drone - 1, x, y, z, drone)
        up = body
    body = t.first_links[i]
    if t.parents[body] < 0:
        total_x, total_y, total_z = t.wrench[body, 0], t.wrench[body, 1], t.wrench[body, 2]
    _note(t, i, 0, body, total_x, total_y, total_z, body)


@compiled()
def _rates(before, after, step_s, first):
    """Mean acceleration of three coordinates from the first on."""
    return (
        (after[first] - before[first]) / step_s,
        (after[first + 1] - before[first + 1]) / step_s,
        (after[first + 2] - before[first + 2]) / step_s,
    )


@compiled()
def _of_centre(t, body, w, a, origin, gravity):
    """Force on a body: mass times acceleration of its centre, less its weight [N]."""
    motion, masses = t.motion, t.masses
    mass, cx, cy, cz = masses[body, 0], masses[body, 1], masses[body, 2], masses[body, 3]
    x, y, z = _at_end(
        motion[body, 0] * cx + motion[body, 1] * cy + motion[body, 2] * cz,
        motion[body, 3] * cx + motion[body, 4] * cy + motion[body, 5] * cz,
        motion[body, 6] * cx + motion[body, 7] * cy + motion[body, 8] * cz,
        w,
        a,
        origin,
    )
    return mass * x, mass * y, mass * (z + gravity)


@compiled()
def _note(t, i, end, link, x, y, z, body):
    """Write the force of an end in the frame of its link; it pulls backwards with the tension."""
    x, y, z = x - t.wrench[body, 0], y - t.wrench[body, 1], z - t.wrench[body, 2]
    m = t.motion
    for k in range(3):
        t.cable_force[i, end, k] = -(m[link, k] * x + m[link, 3 + k] * y + m[link, 6 + k] * z)
    t.peak[i] = max(t.peak[i], t.cable_force[i, end, 0])


@compiled()
def cable_forces_from_joints(t):
    """The same from the forces that DART's joints transmit, contacts with the ground included.

    DART sees the outside forces as torques in the joints above, so what it reports as transmitted
    by a joint still holds the outside force on everything beyond that joint: it is taken off here.
    """
    for i in range(t.first_links.shape[0]):
        drone = t.selected[1 + i]
        for end in range(2):
            body = drone if end else t.first_links[i]
            m, f = t.motion[body], t.end_wrench[i, end]
            x = m[0] * f[3] + m[1] * f[4] + m[2] * f[5]
            y = m[3] * f[3] + m[4] * f[4] + m[5] * f[5]
            z = m[6] * f[3] + m[7] * f[4] + m[8] * f[5]
            if t.parents[body] < 0:  # nothing carries a loose end
                x, y, z = t.wrench[body, 0], t.wrench[body, 1], t.wrench[body, 2]
            _note(t, i, end, drone - 1 if end else body, x, y, z, body)
