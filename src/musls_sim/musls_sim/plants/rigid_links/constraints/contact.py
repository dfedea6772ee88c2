"""Contact of bodies with ground and obstacles within a step of the mechanism.

Corners of load, drones and links touch hard surfaces; pieces of cable lie on soft ground. Their
forces act with the place and velocity at the end of the step, linearised, see `integrator`.
"""

from __future__ import annotations

from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import address_of
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    cross,
    dot,
    norm,
    put,
    rotate,
    scale,
    sub,
)
from musls_description.system.obstacles import depth_and_normal
from musls_sim.plants.rigid_body import (
    GROUND_DAMPING_1_S,
    GROUND_STIFFNESS_1_S2,
    arm_velocity,
    corner_force,
    soft_ground,
)
from musls_sim.plants.rigid_links.articulated import yield_at
from musls_sim.plants.rigid_links.mechanism import bodies_of, edges_of, move_bodies, solids_of

CHANGES = 6
"""Maximum changes between pushing and not in a step."""

SHARE_MISS = 0.02
"""Change of the share of sticking friction that does so, over the share."""


@compiled()
def find_contacts(t, h):
    """Note corners and pieces of cable that may touch a surface in this step.

    The surface under a corner is a plane within the step.
    """
    bodies = bodies_of(t)
    edges = edges_of(t)
    solids = solids_of(t)
    t.touches = 0
    low = False
    for k in range(bodies.shape[0]):
        body = bodies[k]
        body.soft = 0
        if body.lies > 0.0 and body.position[2] < t.soft_below:
            low = True
    if not (low or t.near != 0):
        return
    move_bodies(address_of(t), False)
    for k in range(bodies.shape[0]):
        put(bodies[k].begin_omega, bodies[k].omega)
        put(bodies[k].begin_velocity, bodies[k].velocity)
        body = bodies[k]
        if body.lies > 0.0 and body.position[2] < t.soft_below:
            depth, normal, velocity = soft_ground(solids, body.position)
            put(body.soft_normal, normal)
            put(body.soft_velocity, velocity)
            body.soft_level = depth + dot(normal, body.position)
            if depth > 0.0 and dot(soft_force(body, (0.0, 0.0, 0.0), h), normal) > 0.0:
                body.soft = 1
    touches = low
    for k in range(bodies.shape[0]):
        body = bodies[k]
        if body.near == 0:
            continue
        for q in range(body.first_corner, body.first_corner + body.corners):
            edge = edges[q]
            put(edge.push, (0.0, 0.0, 0.0))
            put(edge.acted, (0.0, 0.0, 0.0))
            arm = rotate(body.rotation, edge.place)
            velocity = arm_velocity(body, arm)
            surface = solids[edge.surface]
            place = add_scaled(add(body.position, arm), 0.5 * h, velocity)
            edge.pushes = 0
            depth, normal = depth_and_normal(surface, place)
            depth += body.rounding
            put(edge.normal, normal)
            edge.level = depth + dot(normal, place)
            edge.share = 1.0
            if edge.stuck != 0 and t.fresh == 0:  # by the acceleration of the last step
                change = acceleration_at(body, arm)
                _, up, across = corner_then(body, edge, surface, change, h)
                edge.share = friction_share(t.friction, up, across)
            up, _ = corner_force(body, edge, surface, place, velocity, depth, normal)
            if depth > 0.0 and up > 0.0:
                edge.pushes = 1
            touches = True
    t.touches = 1 if touches else 0


@compiled()
def corner_then(body, edge, surface, change, h):
    """Depth of a corner at the end of a step, and the force on it if it sticks, see `corner_force`.

    `change` is its acceleration but for the centripetal one.
    """
    arm = rotate(body.rotation, edge.place)
    turning = cross(body.omega, cross(body.omega, arm))
    velocity = add(body.begin_velocity, cross(body.begin_omega, arm))
    velocity = add_scaled(velocity, h, add(turning, change))
    place = add_scaled(add(body.position, arm), 0.5 * h, velocity)
    depth = edge.level - dot(edge.normal, place)
    up, across = corner_force(body, edge, surface, place, velocity, depth, edge.normal)
    return depth, up, across


@compiled()
def acceleration_at(body, arm):
    """Acceleration of a point at an arm from the origin of a body, but for the centripetal one."""
    return add(body.linear, cross(body.angular, add(sub(body.position, body.joint), arm)))


@compiled()
def friction_share(friction, up, across):
    """Share of the sticking force that friction gives, 1 if the corner sticks."""
    size = norm(across)
    return min(1.0, friction * up / size) if size > 0.0 and up > 0.0 else 1.0


@compiled()
def soft_force(body, change, h):
    """Force of soft ground on a piece of cable, at the place and velocity of the step's end."""
    velocity = add_scaled(body.begin_velocity, h, change)
    place = add_scaled(body.position, 0.5 * h, velocity)
    depth = body.soft_level - dot(body.soft_normal, place)
    drag = scale(-body.lies * GROUND_DAMPING_1_S, sub(velocity, body.soft_velocity))
    return add_scaled(drag, body.lies * GROUND_STIFFNESS_1_S2 * depth, body.soft_normal)


@compiled()
def add_contacts(t, h):
    """Forces of the ground at no acceleration, and what they yield to it."""
    bodies = bodies_of(t)
    edges = edges_of(t)
    solids = solids_of(t)
    for k in range(bodies.shape[0]):
        body = bodies[k]
        arm = sub(body.position, body.joint)
        if body.soft != 0:
            damp = h * body.lies * GROUND_DAMPING_1_S
            stiff = 0.5 * h * h * body.lies * GROUND_STIFFNESS_1_S2
            push_joint(body, arm, soft_force(body, (0.0, 0.0, 0.0), h))
            nx = body.soft_normal[0]
            ny = body.soft_normal[1]
            nz = body.soft_normal[2]
            aside = (stiff * nx * ny, stiff * nx * nz, stiff * ny * nz)
            square = (damp + stiff * nx * nx, damp + stiff * ny * ny, damp + stiff * nz * nz)
            block = (square[0], aside[0], aside[1], square[1], aside[2], square[2])
            yield_at(body, arm, block)
        if body.near == 0:
            continue
        for q in range(body.first_corner, body.first_corner + body.corners):
            edge = edges[q]
            if edge.pushes == 0:
                continue
            _, up, across = corner_then(body, edge, solids[edge.surface], (0.0, 0.0, 0.0), h)
            share = edge.share
            damp = h * body.damping
            stiff = 0.5 * h * h * body.stiffness
            aside = share * (damp + stiff if edge.stuck != 0 else damp)
            point = add(arm, rotate(body.rotation, edge.place))
            push_joint(body, point, add_scaled(scale(share, across), up, edge.normal))
            yield_at(body, point, along_and_across(edge.normal, damp + stiff, aside))


@compiled()
def along_and_across(n, along, across):
    """A symmetric matrix with one factor along a direction, one across it: xx, xy, xz, ..."""
    more = along - across
    return (
        across + more * n[0] * n[0], more * n[0] * n[1], more * n[0] * n[2],
        across + more * n[1] * n[1], more * n[1] * n[2], across + more * n[2] * n[2],
    )  # fmt: skip


@compiled()
def push_joint(body, arm, force):
    """Apply a force at an arm from the joint to a body."""
    put(body.force, sub(body.force, force))
    put(body.moment, sub(body.moment, cross(arm, force)))


@compiled()
def contacts_hold(t, h, turn):
    """Whether the right corners pushed and slipped; corrects that if not. Keeps their forces."""
    bodies = bodies_of(t)
    edges = edges_of(t)
    solids = solids_of(t)
    hold = True
    for k in range(bodies.shape[0]):
        body = bodies[k]
        if body.near == 0:
            continue
        for q in range(body.first_corner, body.first_corner + body.corners):
            edge = edges[q]
            arm = rotate(body.rotation, edge.place)
            change = acceleration_at(body, arm)
            depth, up, across = corner_then(body, edge, solids[edge.surface], change, h)
            put(edge.push, (0.0, 0.0, 0.0))
            put(edge.acted, (0.0, 0.0, 0.0))
            if edge.pushes == 0:
                if depth > 0.0 and up > 0.0 and turn < CHANGES:
                    edge.pushes = 1
                    hold = False
                continue
            put(edge.acted, add_scaled(scale(edge.share, across), up, edge.normal))
            if up <= 0.0:
                edge.pushes = 0
                hold = False
                continue
            share = friction_share(t.friction, up, across)
            hold &= abs(share - edge.share) <= SHARE_MISS * share
            edge.share = share
            put(edge.push, add_scaled(scale(share, across), up, edge.normal))
    return hold


@compiled()
def power_of_ground(body, edges, h):
    """Power of the ground's forces on a body [W]."""
    power = 0.0
    if body.soft != 0:
        change = add(body.linear, cross(body.angular, sub(body.position, body.joint)))
        power += dot(soft_force(body, change, h), body.velocity)
    if body.near != 0:
        for q in range(body.first_corner, body.first_corner + body.corners):
            arm = rotate(body.rotation, edges[q].place)
            power += dot(edges[q].push, arm_velocity(body, arm))
    return power
