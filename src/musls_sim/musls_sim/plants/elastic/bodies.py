"""Rigid bodies within a stage: motion, momentum balance, wrenches of air, rotors and ground.

A free body has as unknowns its acceleration and the rate of the rotation vector since the begin of
the step; a prescribed one follows its path. The ground is compliant, with stick-slip friction, and
is solved with everything else: normal force max(0, k depth - c rise rate) at each corner of a
body's box below the ground. Friction is a spring to the place where the corner stuck, limited to mu
times the normal force (elastic-plastic Coulomb law): a standing body does not creep.
"""

from __future__ import annotations

import math

from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    cross,
    dot,
    increase,
    norm,
    orthonormalise,
    put,
    put_matrix,
    rotate,
    rotate_back,
    scale,
    sub,
    turn_inertia,
)
from musls_description.system.obstacles import (
    at_rest,
    depth_and_normal,
    surface_velocity,
    way_on_surface,
)
from musls_sim.plants.elastic.state import (
    NOTHING,
    bodies_of,
    cables_of,
    corners_of,
    nodes_of,
    own_wrench_body_of,
    own_wrench_enu_of,
    rotors_of,
    solids_of,
)
from musls_sim.plants.rigid_body import (
    add_body_drag,
    add_inputs,
    add_rotors,
    arm_velocity,
    clear,
    point_position,
)


@compiled()
def put_rotation(turn, rotation, out):
    """Write a rotation matrix turned further by a rotation vector (world), exp([turn]) R."""
    x, y, z = turn[0], turn[1], turn[2]
    angle2 = x * x + y * y + z * z
    if angle2 > 1e-8:
        angle = math.sqrt(angle2)
        s, c = math.sin(angle) / angle, (1.0 - math.cos(angle)) / angle2
    else:
        s, c = 1.0 - angle2 / 6.0, 0.5 - angle2 / 24.0
    row_1 = 1.0 - c * (y * y + z * z), c * x * y - s * z, c * x * z + s * y
    row_2 = c * x * y + s * z, 1.0 - c * (x * x + z * z), c * y * z - s * x
    row_3 = c * x * z - s * y, c * y * z + s * x, 1.0 - c * (x * x + y * y)
    put(out[0], rotate_back(rotation, row_1))
    put(out[1], rotate_back(rotation, row_2))
    put(out[2], rotate_back(rotation, row_3))


@compiled()
def angular_velocity(turn, rate):
    """Angular velocity (world) of exp(p) while the rotation vector p changes at a rate.

    omega = (I + (1 - cos a) / a^2 [p] + (a - sin a) / a^3 [p]^2) p', a = |p|.
    """
    angle2 = dot(turn, turn)
    if angle2 > 1e-4:
        angle = math.sqrt(angle2)
        b = (1.0 - math.cos(angle)) / angle2
        c = (angle - math.sin(angle)) / (angle2 * angle)
    else:
        b = 0.5 - angle2 / 24.0 + angle2 * angle2 / 720.0
        c = 1.0 / 6.0 - angle2 / 120.0 + angle2 * angle2 / 5040.0
    across = cross(turn, rate)
    return add_scaled(add_scaled(rate, b, across), c, cross(turn, across))


# ---------- The stages


@compiled()
def predict_first_stage(body, known, time):
    """Predict the first stage: known terms, and a guess of its rates after a time."""
    put(body.known_position, add_scaled(body.position, known, body.velocity))
    put(body.known_velocity, add_scaled(body.velocity, known, body.acceleration))
    put(body.stage.acceleration, body.acceleration)
    put(body.known_turn, scale(known, body.omega))
    put(body.known_angular_momentum, add_scaled(body.angular_momentum, known, body.torque))
    momentum = rotate(body.stage.inertia, body.omega)
    torque = sub(body.torque, cross(body.omega, momentum))
    in_body = rotate(body.inverse_inertia, rotate_back(body.rotation, torque))
    put(body.stage.turn_rate, add_scaled(body.omega, time, rotate(body.rotation, in_body)))


@compiled()
def predict_second_stage(body, wh, ahead):
    """Predict the second stage: known terms; the guess extrapolates the rates."""
    stage = body.stage
    put(body.known_position, add_scaled(body.position, wh, add(body.velocity, stage.velocity)))
    both = add(body.acceleration, stage.acceleration)
    put(body.known_velocity, add_scaled(body.velocity, wh, both))
    put(body.known_turn, scale(wh, add(body.omega, stage.turn_rate)))
    both = add(body.torque, stage.torque)
    put(body.known_angular_momentum, add_scaled(body.angular_momentum, wh, both))
    change = sub(stage.acceleration, body.acceleration)
    body.hardest = max(norm(body.acceleration), norm(stage.acceleration))
    put(stage.acceleration, add_scaled(stage.acceleration, ahead, change))
    shift = sub(stage.position, body.position)
    gained = sub(stage.velocity, body.velocity)
    put(body.position_ahead, add_scaled(stage.position, ahead, shift))
    put(body.velocity_ahead, add_scaled(stage.velocity, ahead, gained))
    put(body.omega_ahead, add_scaled(stage.omega, ahead, sub(stage.omega, body.omega)))
    put(body.turn_ahead, scale(1.0 + ahead, stage.turn))
    change = sub(stage.turn_rate, body.omega)
    put(stage.turn_rate, add_scaled(stage.turn_rate, ahead, change))


@compiled()
def _turn_on(body, rotation):
    """Rotation, angular velocity, inertia and angular momentum from `turn` and its rate."""
    stage = body.stage
    put_rotation(stage.turn, rotation, stage.rotation)
    put(stage.omega, angular_velocity(stage.turn, stage.turn_rate))
    turn_inertia(stage.rotation, body.inertia, stage.inertia)
    put(stage.angular_momentum, rotate(stage.inertia, stage.omega))


@compiled()
def place(body, dh):
    """Motion of a free body in the stage from its acceleration and rotation rate."""
    stage = body.stage
    put(stage.velocity, add_scaled(body.known_velocity, dh, stage.acceleration))
    put(stage.position, add_scaled(body.known_position, dh, stage.velocity))
    put(stage.turn, add_scaled(body.known_turn, dh, stage.turn_rate))
    _turn_on(body, body.rotation)
    change = sub(stage.angular_momentum, body.known_angular_momentum)
    put(stage.torque, (change[0] / dh, change[1] / dh, change[2] / dh))


@compiled()
def _quintic(path, k, s, period):
    """Column k of a path and its two derivatives at a share of the period."""
    x0 = path[0, k]
    v0 = path[0, k + 3] * period
    a0 = path[0, k + 6] * period * period
    x1 = path[1, k]
    v1 = path[1, k + 3] * period
    a1 = path[1, k + 6] * period * period
    gap = x1 - x0 - v0 - 0.5 * a0
    fall = v1 - v0 - a0
    bend = a1 - a0
    c3 = 10.0 * gap - 4.0 * fall + 0.5 * bend
    c4 = -15.0 * gap + 7.0 * fall - bend
    c5 = 6.0 * gap - 3.0 * fall + 0.5 * bend
    x = x0 + s * (v0 + s * (0.5 * a0 + s * (c3 + s * (c4 + s * c5))))
    v = v0 + s * (a0 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))
    a = a0 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))
    return x, v / period, a / (period * period)


@compiled()
def follow(body, s, period):
    """Motion of a prescribed body at a share of the control period: quintic between its ends."""
    stage = body.stage
    path = body.path
    for k in range(3):
        x, v, a = _quintic(path, k, s, period)
        stage.position[k] = x
        stage.velocity[k] = v
        stage.acceleration[k] = a
        x, v, a = _quintic(path, 9 + k, s, period)
        stage.turn[k] = x
        stage.turn_rate[k] = v
        stage.angular_acceleration[k] = a
    _turn_on(body, body.reference_rotation)
    # Rate of the angular momentum, with p'' for the angular acceleration: both of second order.
    rate = rotate(stage.inertia, stage.angular_acceleration)
    put(stage.torque, add(rate, cross(stage.omega, stage.angular_momentum)))


@compiled()
def settle(body):
    """Make the stage the state."""
    stage = body.stage
    put(body.position, stage.position)
    put(body.velocity, stage.velocity)
    put(body.acceleration, stage.acceleration)
    put(body.omega, stage.omega)
    put(body.angular_momentum, stage.angular_momentum)
    put(body.torque, stage.torque)
    put_matrix(body.rotation, stage.rotation)
    orthonormalise(body.rotation)


@compiled()
def rewind_body(body):
    """Make the state the stage."""
    stage = body.stage
    put(stage.position, body.position)
    put(stage.velocity, body.velocity)
    put(stage.omega, body.omega)
    put_matrix(stage.rotation, body.rotation)
    turn_inertia(stage.rotation, body.inertia, stage.inertia)


@compiled()
def angular_acceleration(body):
    """Angular acceleration in the stage."""
    stage = body.stage
    if body.free == 0:
        rate = stage.angular_acceleration
        return rate[0], rate[1], rate[2]
    torque = sub(stage.torque, cross(stage.omega, stage.angular_momentum))
    in_body = rotate(body.inverse_inertia, rotate_back(stage.rotation, torque))
    return rotate(stage.rotation, in_body)


# ---------- Balance


@compiled()
def external_wrenches(t, speed):
    """Wrenches of rotors, air and inputs about the centres of mass in the present motion."""
    for b in range(bodies_of(t).shape[0]):
        body = bodies_of(t)[b]
        stage = body.stage
        wrench = body.external
        clear(wrench)
        if body.drone >= 0:
            add_rotors(stage, rotors_of(t)[body.drone], speed[body.drone], t.wind, wrench)
        add_body_drag(stage, body.drag, t.wind, wrench)
        add_inputs(stage, own_wrench_body_of(t)[b], own_wrench_enu_of(t)[b], wrench)


@compiled()
def balance(body, gravity):
    """Right-hand side of a free body: external wrench minus the rates of its momenta."""
    force = add_scaled(body.external.force, -body.mass, body.stage.acceleration)
    put(body.force, (force[0], force[1], force[2] - body.mass * gravity))
    put(body.moment, sub(body.external.moment, body.stage.torque))


@compiled()
def pull_at(body, arm, force):
    """Add a force at an arm to the right-hand side of a body."""
    increase(body.force, force)
    increase(body.moment, cross(arm, force))


@compiled()
def point_shift(body, arm):
    """Displacement of a point of a body by the solution."""
    return add(body.shift, cross(body.spin, arm))


@compiled()
def correct(body, dh):
    """Apply the solution (translation, turn) to acceleration and rotation rate."""
    stage = body.stage
    spin = body.spin
    increase(stage.acceleration, scale(1.0 / (dh * dh), body.shift))
    # Change of the rotation vector that makes this further turn: (I - [psi] / 2) turn.
    change = add_scaled(spin, -0.5, cross(stage.turn, spin))
    increase(stage.turn_rate, scale(1.0 / dh, change))


@compiled()
def put_point(body, place_body, point):
    """Position and velocity of a point of a body; of a prescribed one also the acceleration."""
    stage = body.stage
    arm = rotate(stage.rotation, place_body)
    flow = cross(stage.omega, arm)
    put(point.position, add(stage.position, arm))
    put(point.velocity, add(stage.velocity, flow))
    if body.free == 0:
        turn_acceleration = add(cross(stage.angular_acceleration, arm), cross(stage.omega, flow))
        put(point.acceleration, add(stage.acceleration, turn_acceleration))


# ---------- Ground and obstacles

SET_IN_M = 5e-4
"""Depth over which the damper under a cable's node sets in. One that jumps in at the surface and
stops a light node before it gets there leaves a stage without a solution."""


@compiled()
def press(stiffness, damping, set_in, depth, rise, dh):
    """Force of a surface on what is so deep in it and rises at a rate, max(0, k depth - c rise).

    Returns:
        The force, the damping there, and the slope of the force by the depth.
    """
    if depth <= 0.0:
        return 0.0, 0.0, 0.0
    slope = stiffness
    if depth < set_in:
        slope += max(-damping * rise, 0.0) / set_in
        damping *= depth / set_in
    up = stiffness * depth - damping * rise
    if up <= 0.0:
        return 0.0, 0.0, 0.0
    return up, damping, slope + damping / dh


@compiled()
def near_surface(t, body):
    """Whether any corner of the body is below a surface."""
    stage = body.stage
    solids = solids_of(t)
    near = False
    for surface in solids:
        near |= depth_and_normal(surface, stage.position)[0] + body.radius > 0.0
    if near:
        for i in range(body.first_corner, body.first_corner + body.corners):
            corner = corners_of(t)[i]
            place = point_position(stage, corner.place)
            if depth_and_normal(solids[corner.surface], place)[0] > 0.0:
                return True
    return False


@compiled()
def add_surfaces(t, body, losses, dh):
    """Add the forces of surfaces to a body's balance, their derivatives to its matrix.

    What their springs and dampers take is a loss.
    """
    if not body.pressed and not near_surface(t, body):
        return
    body.pressed = 0
    stage = body.stage
    for i in range(body.first_corner, body.first_corner + body.corners):
        corner = corners_of(t)[i]
        arm = rotate(stage.rotation, corner.place)
        flow = arm_velocity(stage, arm)
        block = push_corner(t, corner, add(stage.position, arm), flow, dh)
        if corner.normal_force > 0.0:
            body.pressed = 1
            losses.ground -= dot(corner.force, flow)
            pull_at(body, arm, corner.force)
            add_point(body.own_matrix, arm, block)


@compiled()
def push_corner(t, corner, place, flow, dh):
    """Find the force of its surface on a corner at a place and velocity; returns its derivative.

    Along the normal n a force gives way by its slope s, across it by a, where friction slips not
    along the direction d of the force: K = s n n^T + a (I - n n^T - d d^T), in six numbers.
    """
    surface = solids_of(t)[corner.surface]
    depth, n = depth_and_normal(surface, place)
    depth = depth + corner.rounding
    flow = sub(flow, surface_velocity(surface, place))
    rise = dot(flow, n)
    up, damp, slope = press(corner.stiffness, corner.damping, corner.set_in, depth, rise, dh)
    corner.normal_force = up
    corner.slope = slope
    corner.slipping = 0.0
    if up == 0.0:
        return NOTHING
    if corner.active == 0.0:  # it touches within this step: stuck where it is before the stage
        put(corner.anchor, at_rest(surface, add_scaled(place, -dh, flow)))
        corner.active = 1.0
    way = way_on_surface(surface, corner.anchor, place)
    drag = add_scaled(scale(-damp, flow), corner.stiffness, way)
    across = add_scaled(drag, -dot(drag, n), n)
    size = norm(across)
    limit = t.ground_friction * up
    d = (0.0, 0.0, 0.0)
    share = 1.0
    if size > limit:
        share = limit / size
        d = scale(1.0 / size, across)
        across = scale(share, across)
        corner.slipping = 1.0
    put(corner.force, add_scaled(across, up, n))
    aside = share * (corner.stiffness + damp / dh)
    more = slope - aside
    return (
        aside * (1.0 - d[0] * d[0]) + more * n[0] * n[0],
        more * n[0] * n[1] - aside * d[0] * d[1],
        more * n[0] * n[2] - aside * d[0] * d[2],
        aside * (1.0 - d[1] * d[1]) + more * n[1] * n[1],
        more * n[1] * n[2] - aside * d[1] * d[2],
        aside * (1.0 - d[2] * d[2]) + more * n[2] * n[2],
    )


@compiled()
def add_point(matrix, arm, block):
    """Add a symmetric stiffness K at a point of a body to the body's matrix (not its upper right).

    K = (xx, xy, xz, yy, yz, zz). With the displacement d + t x r of the point the blocks are K,
    [r] K and [r] K [r]^T.
    """
    xx, xy, xz, yy, yz, zz = block
    k = (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)
    c1, c2, c3 = cross(arm, k[0]), cross(arm, k[1]), cross(arm, k[2])  # columns of [r] K
    for i in range(3):
        row = c1[i], c2[i], c3[i]
        moment = cross(arm, row)
        for j in range(3):
            matrix[i, j] += k[i][j]
            matrix[3 + i, j] += row[j]
            matrix[3 + i, 3 + j] += moment[j]


@compiled()
def settle_corners(t, body):
    """Release corners in the air and drag the springs of slipping ones, after a step."""
    for i in range(body.first_corner, body.first_corner + body.corners):
        corner = corners_of(t)[i]
        settle_corner(t, corner, point_position(body.stage, corner.place))


@compiled()
def settle_nodes(t, cable):
    """Settle the contacts of a cable's inner nodes, as `settle_corners`."""
    for k in range((cable.segments - 1) * cable.surfaces):
        node = nodes_of(t)[cable.first_node + 1 + k // cable.surfaces]
        settle_corner(t, corners_of(t)[cable.first_corner + k], node.stage.position)


@compiled()
def settle_corner(t, corner, place):
    """Settle the contact of one corner at a place."""
    corner.touched = corner.normal_force
    if corner.normal_force == 0.0:
        corner.active = 0.0
    elif corner.slipping > 0.0:
        surface = solids_of(t)[corner.surface]
        _, n = depth_and_normal(surface, place)
        across = add_scaled(corner.force, -dot(corner.force, n), n)
        slipped = add_scaled(place, 1.0 / corner.stiffness, across)
        put(corner.anchor, at_rest(surface, slipped))


@compiled()
def surface_error(t, losses, share, dh):
    """Largest error of the surfaces' linear forces over what is allowed; counts switched corners.

    A share of the tensions and a tolerance are allowed.
    """
    worst = 0.0
    for body in bodies_of(t):
        if body.free == 0 or not (body.pressed or near_surface(t, body)):
            continue
        stage = body.stage
        gap = largest = 0.0
        for i in range(body.first_corner, body.first_corner + body.corners):
            corner = corners_of(t)[i]
            arm = rotate(stage.rotation, corner.place)
            place = add(stage.position, arm)
            flow = arm_velocity(stage, arm)
            up, miss = corner_error(t, corner, place, flow, point_shift(body, arm), losses, dh)
            gap = max(gap, miss)
            largest = max(largest, up)
        worst = max(worst, gap / (share * largest + t.tolerance))
    for cable in cables_of(t):
        gap = largest = 0.0
        for k in range((cable.segments - 1) * cable.surfaces):
            node = nodes_of(t)[cable.first_node + 1 + k // cable.surfaces]
            point = node.stage
            corner = corners_of(t)[cable.first_corner + k]
            place = point.position
            flow = point.velocity
            up, miss = corner_error(t, corner, place, flow, node.shift, losses, dh)
            gap = max(gap, miss)
            largest = max(largest, up)
        worst = max(worst, gap / (share * largest + t.tolerance))
    return worst


@compiled()
def corner_error(t, corner, place, flow, shift, losses, dh):
    """Normal force of a corner that the solution has shifted, and the error of its linear one."""
    surface = solids_of(t)[corner.surface]
    depth, n = depth_and_normal(surface, place)
    depth = depth + corner.rounding
    rise = dot(sub(flow, surface_velocity(surface, place)), n)
    up, _, _ = press(corner.stiffness, corner.damping, corner.set_in, depth, rise, dh)
    linear = corner.normal_force - corner.slope * dot(shift, n)
    if (corner.normal_force > 0.0) != (corner.touched > 0.0):
        losses.switched += 1.0
    return up, abs(up - linear)
