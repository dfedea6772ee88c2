"""Contact of drones, load, cables and obstacles in compiled code.

A drone is its rotors' discs and the box of its landing gear, the load is its box: solids as the
obstacles are, a disc a cylinder without height. Projecting a point from one solid onto the other
and back (von Neumann's alternating projections) ends in one place where they touch, else in the two
points that are nearest to each other. A cable hits a rotor where one of its segments passes through
the disc.

Bodies meet in the period at whose end they would be in each other at the speed that they have: what
they hit each other with, of which a plant that pushes them apart may leave nothing by then.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_description.numerics.arrays import Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    body_axes_in_world,
    cross,
    dot,
    norm,
    put,
    rotate,
    rotate_back,
    rotate_by,
    scale,
    sub,
    write_matrix,
)
from musls_description.system.drone import Box, propeller_radius_m
from musls_description.system.obstacles import (
    BOX,
    CYLINDER,
    depth_and_normal,
    nearest_point,
    surface_velocity,
)
from musls_description.system.slung_system import RigSystem

HARD_LANDING_M_S = 1.5
"""A drone that meets the ground faster than this, downwards, has hit it: a fall of 11 cm."""

LEVEL_ENOUGH = 0.5
"""Upright part of the normal of a surface from which bodies stand on it, and do not hit a wall."""

SLACK = 0.98
"""Distance of a cable's ends over its length below which it may lie round an edge."""

LEFT_OUT = -2.0
"""Stands for the speed of a pair that is not looked at: a drone that stands on the load."""

TOUCH_M = 1e-3
"""Bodies closer than this touch."""

MAX_PROJECTIONS = 100
"""Alternating projections converge slowly only where bodies just touch."""

CABLE_PERIODS = 5
"""Control periods between two looks at the cables."""

STRETCH = 1.05
"""Largest stretched over free length of a cable that is looked for near a drone."""

OWN = np.dtype(
    [
        ("kind", np.int64),
        ("place", float, 3),  # of its centre, body frame
        ("position", float, 3),  # from here on as `SOLID`, where the body is
        ("rotation", float, (3, 3)),
        ("size", float, 3),
    ],
    align=True,
)
"""Solid of the load or a drone."""

CABLE = np.dtype(
    [
        ("index", np.int64),
        ("body_1", np.int64),
        ("point_1", float, 3),  # in the body's frame
        ("body_2", np.int64),
        ("point_2", float, 3),
    ],
    align=True,
)

CLOSEST = np.dtype(
    [
        ("gap", float),  # smallest distance so far
        ("body", np.int64),  # what came so close: load, drones, then cables
        ("point", float, 3),  # of the obstacle
        ("time", float),
    ],
    align=True,
)

TOUCHING = np.dtype(
    [
        ("body", np.int64),
        ("speed", float),  # -1 where nothing is touched
        ("point", float, 3),
    ],
    align=True,
)


@compiled()
def to_world(row, place):
    """Point in the world of a place in a body's frame; `row` is the body's motion."""
    return add(row, rotate_by(row[6:10], place))


@compiled(shared=True)
def place(solids, row):
    """Move the solids of a body to where it is; `row`: its motion."""
    axes = body_axes_in_world(row[6:10])
    for k in range(len(solids)):
        put(solids[k].position, to_world(row, solids[k].place))
        write_matrix(solids[k].rotation, axes)


@compiled()
def reach_along(solid, direction):
    """Support function of a solid about its centre; the direction is not of unit length."""
    u, v, w = rotate_back(solid.rotation, direction)
    a = solid.size[0]
    b = solid.size[1]
    c = solid.size[2]
    if solid.kind == CYLINDER:
        return a * math.hypot(u, v) + c * abs(w)
    return a * abs(u) + b * abs(v) + c * abs(w)


@compiled()
def gap_between(one, other, limit):
    """Return the distance of two solids, the other's point nearest to the one, and the way from it.

    The other is behind the plane across the way between two nearest points: what is left of that
    distance with the one's reach is a lower bound. Ends where that is beyond the limit, too.
    """
    point = nearest_point(other, one.position)
    gap = np.inf
    way = (0.0, 0.0, 0.0)
    for _ in range(MAX_PROJECTIONS):
        on_one = nearest_point(one, point)
        point = nearest_point(other, on_one)
        way = sub(on_one, point)
        gap = norm(way)
        if gap < TOUCH_M:
            break
        least = (dot(way, sub(one.position, point)) - reach_along(one, way)) / gap
        if least > limit or (least > TOUCH_M and gap - least < TOUCH_M):
            break
    return gap, point, way


@compiled()
def point_velocity(row, point):
    """Velocity of a point of a moving body."""
    arm = sub(point, row)
    return add(row[3:6], cross(rotate_by(row[6:10], row[10:13]), arm))


@compiled()
def gap_after(gap, way, velocity, period_s):
    """Distance of two solids a period later, the one of which moves against the other."""
    return gap + period_s * min(dot(way, velocity) / max(gap, TOUCH_M), 0.0)


@compiled()
def contact(ones, others, motion_1, motion_2, limit, period_s):
    """Return the relative speed of two bodies where they meet, -1 if they do not."""
    for p in range(len(ones)):
        for q in range(len(others)):
            gap, point, way = gap_between(ones[p], others[q], limit)
            velocity = sub(point_velocity(motion_1, point), point_velocity(motion_2, point))
            if gap_after(gap, way, velocity, period_s) < TOUCH_M:
                return norm(velocity)
    return -1.0


# ---------- Distances to obstacles


@compiled()
def segment_gap(a, b, solid):
    """Return the distance of a straight line from a to b and a solid, and the solid's point."""
    along = sub(b, a)
    share = 0.5
    gap = np.inf
    length2 = max(dot(along, along), 1e-12)
    point = a[0], a[1], a[2]
    for _ in range(MAX_PROJECTIONS):
        on_line = add_scaled(a, share, along)
        point = nearest_point(solid, on_line)
        before = gap
        gap = norm(sub(on_line, point))
        if gap < TOUCH_M or before - gap < 0.01 * TOUCH_M:
            break
        share = min(max(dot(sub(point, a), along) / length2, 0.0), 1.0)
    return gap, point


@compiled()
def note_gap(closest, touching, gap, point, speed, time_s):
    """Take in a distance to an obstacle: its smallest so far, and where it is touched now.

    0 of one that is met within the period, whatever the distance now.
    """
    if gap < closest.gap:
        closest.gap = gap
        closest.body = touching.body
        closest.time = time_s
        put(closest.point, point)
    if gap < TOUCH_M and speed > touching.speed:
        touching.speed = speed
        put(touching.point, point)


@compiled()
def lands(one, is_load, solid, point, velocity):
    """Whether a part of a body that meets a solid at a point stands or lands there.

    It does on ground from above, unless a rotor's disc meets it, or a drone falls on it.
    """
    if solid.ground == 0 or one.kind == CYLINDER:
        return False
    _, normal = depth_and_normal(solid, point)
    if normal[2] < LEVEL_ENOUGH:
        return False
    return is_load or dot(velocity, normal) > -HARD_LANDING_M_S


@compiled(shared=True)
def watch_bodies(own, first, reach, motion, solids, closest, touching, time_s, period_s):
    """Distances of load and drones to obstacles; whether any is met within the period.

    Only what may be closer than ever before is looked at. `closest`: records of `CLOSEST`, one an
    obstacle; `touching`: of `TOUCHING`, (n, obstacles).
    """
    touches = False
    for row in touching:
        for record in row:
            record.speed = -1.0
    for s in range(len(solids)):
        solid = solids[s]
        for i in range(len(reach)):
            far = norm(sub(nearest_point(solid, motion[i]), motion[i])) - reach[i]
            limit = max(closest[solid.obstacle].gap, TOUCH_M) + period_s * norm(motion[i, 3:6])
            if far > limit:
                continue
            parts = own[first[i] : first[i + 1]]
            place(parts, motion[i])
            for one in parts:
                gap, point, way = gap_between(one, solid, limit)
                velocity = sub(point_velocity(motion[i], point), surface_velocity(solid, point))
                if gap_after(gap, way, velocity, period_s) < TOUCH_M:
                    gap = 0.0
                if gap < TOUCH_M and lands(one, i == 0, solid, point, velocity):
                    gap = TOUCH_M
                note_gap(
                    closest[solid.obstacle],
                    touching[i, solid.obstacle],
                    gap,
                    point,
                    norm(velocity),
                    time_s,
                )
                touches |= gap < TOUCH_M
    return touches


@compiled()
def lies(nodes, solid, point):
    """Whether a cable that meets ground at a point lies there: from above, or as it is slack."""
    if depth_and_normal(solid, point)[1][2] >= LEVEL_ENOUGH:
        return True
    length = 0.0
    for k in range(1, len(nodes)):
        length += norm(sub(nodes[k], nodes[k - 1]))
    return norm(sub(nodes[len(nodes) - 1], nodes[0])) < SLACK * length


@compiled()
def watch_cable(nodes, solids, closest, touching, time_s):
    """Check the segments of a cable, (k, 3), against the obstacles; `touching`: (obstacles,)."""
    touches = False
    for record in touching:
        record.speed = -1.0
    for s in range(len(solids)):
        solid = solids[s]
        for k in range(1, len(nodes)):
            middle = scale(0.5, add(nodes[k - 1], nodes[k]))
            half = 0.5 * norm(sub(nodes[k], nodes[k - 1]))
            far = norm(sub(nearest_point(solid, middle), middle)) - half
            if not far > max(closest[solid.obstacle].gap, TOUCH_M):
                gap, point = segment_gap(nodes[k - 1], nodes[k], solid)
                if gap < TOUCH_M and solid.ground != 0 and lies(nodes, solid, point):
                    gap = TOUCH_M
                note_gap(closest[solid.obstacle], touching[solid.obstacle], gap, point, 0.0, time_s)
                touches |= gap < TOUCH_M
    return touches


@compiled()
def depth_and_fall(solid, row):
    """Depth below z = 0 of a solid's lowest point, and the speed with which it goes down."""
    up = rotate_back(solid.rotation, (0.0, 0.0, 1.0))  # the vertical in the body's frame
    a = solid.size[0]
    b = solid.size[1]
    c = -math.copysign(solid.size[2], up[2])
    if solid.kind == CYLINDER:
        share = -a / max(math.hypot(up[0], up[1]), 1e-12)
        lowest = (share * up[0], share * up[1], c)
    else:
        lowest = (-math.copysign(a, up[0]), -math.copysign(b, up[1]), c)
    point = add(solid.position, rotate(solid.rotation, lowest))
    return -point[2], -point_velocity(row, point)[2]


@compiled()
def ground_contact(solids, row, period_s):
    """Return how fast a drone meets the ground, -1 for one that does not, or stands or lands."""
    speed = -1.0
    for p in range(len(solids)):
        depth, fall = depth_and_fall(solids[p], row)
        touches = solids[p].kind == CYLINDER and depth > 0.0
        if touches or (fall > HARD_LANDING_M_S and depth + period_s * fall > 0.0):
            speed = max(speed, abs(fall))
    return speed


@compiled(shared=True)
def find_contacts(solids, first, reach, motion, period_s, speed_m_s):
    """Write with which speed bodies meet within the period, -1 where they do not; whether any do.

    The solids of body i are within reach[i] of its centre of mass.
    `speed_m_s`: of each pair (n, n), and on the diagonal with the ground; `LEFT_OUT` stays.
    """
    n = len(reach)
    any_touch = False
    for i in range(n):
        for j in range(i, n):
            if speed_m_s[i, j] == LEFT_OUT:
                continue
            speed_m_s[i, j] = -1.0
            if i == j:
                if i > 0 and motion[i, 2] < reach[i] - period_s * min(motion[i, 5], 0.0):
                    ones = solids[first[i] : first[i + 1]]
                    place(ones, motion[i])
                    speed_m_s[i, i] = ground_contact(ones, motion[i], period_s)
            else:
                limit = TOUCH_M + period_s * norm(sub(motion[i, 3:6], motion[j, 3:6]))
                if norm(sub(motion[i], motion[j])) < reach[i] + reach[j] + limit:
                    ones = solids[first[i] : first[i + 1]]
                    others = solids[first[j] : first[j + 1]]
                    place(ones, motion[i])
                    place(others, motion[j])
                    speed_m_s[i, j] = contact(ones, others, motion[i], motion[j], limit, period_s)
            any_touch |= speed_m_s[i, j] >= 0.0
    return any_touch


@compiled(shared=True)
def find_near_cables(cables, reach, motion, lengths_m, near):
    """Write which bodies a cable may touch, (n_cables, n); whether there are any.

    A cable of length L from A to B keeps to the points P with |PA| + |PB| <= L.
    """
    any_near = False
    for k in range(len(cables)):
        cable = cables[k]
        a = to_world(motion[cable.body_1], cable.point_1)
        b = to_world(motion[cable.body_2], cable.point_2)
        for i in range(1, len(reach)):
            way = norm(sub(motion[i], a)) + norm(sub(motion[i], b))
            is_near = way < STRETCH * lengths_m[cable.index] + 2.0 * reach[i]
            near[k, i] = is_near and i != cable.body_1 and i != cable.body_2
            any_near |= near[k, i]
    return any_near


@compiled()
def cut(disc, nodes):
    """Whether a cable, (k, 3), passes through a disc."""
    before = rotate_back(disc.rotation, sub(nodes[0], disc.position))
    for k in range(1, len(nodes)):
        after = rotate_back(disc.rotation, sub(nodes[k], disc.position))
        if (before[2] < 0.0) != (after[2] < 0.0):
            share = before[2] / (before[2] - after[2])
            crossing = add(scale(1.0 - share, before), scale(share, after))
            if math.hypot(crossing[0], crossing[1]) < disc.size[0]:
                return True
        before = after
    return False


# ---------- The watch of a flight


def own_solids(system: RigSystem) -> tuple[Records, NDArray[np.int64]]:
    """Solids of load and drones, records of `OWN`, and where those of each begin, (n + 1,)."""
    load = system.load
    level = np.eye(3)
    first = [0]
    rows: list[tuple[Any, ...]] = []
    if load is not None:
        point = BOX, (0.0, 0.0, 0.0), np.zeros(3), level, np.zeros(3)
        rows.append(point if load.point_mass else _box(load.collision))
    for drone in system.drones:
        first.append(len(rows))
        rows.append(_box(drone.collision))
        size = propeller_radius_m(drone), propeller_radius_m(drone), 0.0
        rows += [(CYLINDER, rotor.position_m, np.zeros(3), level, size) for rotor in drone.rotors]
    return np.array(rows, OWN), np.array([*first, len(rows)])


def _box(box: Box) -> tuple[Any, ...]:
    return BOX, box.center_m, np.zeros(3), np.eye(3), 0.5 * np.array(box.size_m)
