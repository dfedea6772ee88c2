"""Rigid bodies: their record, equations of motion, and the forces of air, rotors and ground.

One NumPy record a body (`RIGID_BODY`), which a plant may extend by fields of its own; compiled
functions take the record itself. A wrench is a record of force and moment about the body's origin,
its centre of mass for load and drones, world frame.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    cross,
    dot,
    from_matrix,
    increase,
    norm,
    put,
    rotate,
    rotate_back,
    scale,
    sub,
    times,
)
from musls_description.system.obstacles import (
    PLANE,
    SOLID,
    AnyObstacle,
    at_rest,
    depth_and_normal,
    faces_enu_m,
    solid,
    solids_of,
    surface_velocity,
    way_on_surface,
)
from musls_description.system.slung_system import RigSystem

Records = NDArray[np.void]

MOTION = [
    ("rotation", float, (3, 3)),  # from the body's frame to the world
    ("position", float, 3),  # of its origin; this and the next two in the world frame
    ("omega", float, 3),  # angular velocity
    ("velocity", float, 3),  # of its origin
]
"""Fields that every moving body has."""

RIGID_BODY = np.dtype(
    [
        *MOTION,
        ("mass", float),
        ("inertia", float, (3, 3)),  # about the origin, body frame
        ("inverse_inertia", float, (3, 3)),  # 0 for a point mass, which does not turn
        ("drag", float, 3),  # linear, along the body's axes [N s/m]
    ],
    align=True,
)

WRENCH = np.dtype([("force", float, 3), ("moment", float, 3)], align=True)

ROTOR = np.dtype(
    [
        ("place", float, 3),  # in the drone's frame
        ("thrust", float),  # coefficient [N s^2]
        ("torque", float),  # reaction torque coefficient, sign about body z [N m s^2]
        ("up", float),  # time constants [s]
        ("down", float),
        ("drag", float),  # coefficient [N s^2/(m rad)]
    ],
    align=True,
)

GROUND_STIFFNESS_1_S2 = 7000.0
GROUND_DAMPING_1_S = 120.0
"""Ground under a cable, per mass of cable: soft enough for a node of any chain at 4 ms, hard enough
that a lying cable sinks in by 1.4 mm."""


def rotor_records(system: RigSystem) -> Records:
    """Constants of all rotors, (n_drones, n_rotors) of `ROTOR`."""
    table = np.zeros((system.n_drones, system.n_rotors), ROTOR)
    for row, drone in zip(table, system.drones, strict=True):
        for c, rotor in zip(row, drone.rotors, strict=True):
            k = rotor.thrust_coefficient_n_s2
            sign = -1.0 if rotor.spin == "ccw" else 1.0
            c["place"] = rotor.position_m
            c["thrust"] = k
            c["torque"] = k * rotor.moment_ratio_m * sign
            c["up"] = rotor.time_constant_up_s
            c["down"] = rotor.time_constant_down_s
            c["drag"] = rotor.drag_n_s2_m_rad
    return table


# ---------- Motion


@compiled()
def arm_velocity(body, arm):
    """Velocity of a point of a body at an arm in the world."""
    return add(body.velocity, cross(body.omega, arm))


@compiled()
def point_position(body, point):
    """Place of a point fixed in a body."""
    return add(body.position, rotate(body.rotation, point))


@compiled()
def angular_acceleration(body, omega, moment):
    """Euler's equation, J a = M - w x J w; a and w in the body's frame, M in the world."""
    gyroscopic = cross(omega, times(body.inertia, omega))
    return times(body.inverse_inertia, sub(rotate_back(body.rotation, moment), gyroscopic))


@compiled()
def power_of(body, wrench):
    """Power of a wrench on a moving body [W]."""
    return dot(wrench.force, body.velocity) + dot(wrench.moment, body.omega)


@compiled()
def fastest_body(bodies):
    """Index and speed [m/s] of the body that moves fastest; a non-finite one counts as infinite."""
    worst = 0
    speed2 = -1.0
    for k in range(bodies.shape[0]):
        body = bodies[k]
        v2 = dot(body.velocity, body.velocity)
        if not math.isfinite(v2 + body.position[0] + body.rotation[0, 0]):
            return k, np.inf
        if v2 > speed2:
            worst = k
            speed2 = v2
    return worst, math.sqrt(speed2)


@compiled()
def collect_state(body, dt, row):
    """Write the motion of a body (load or drone) into its row of `PlantState.motion`."""
    r = body.rotation
    q = from_matrix(r)
    same = q[0] * row[6] + q[1] * row[7] + q[2] * row[8] + q[3] * row[9]
    sign = -1.0 if same < 0.0 else 1.0
    omega = rotate_back(r, body.omega)
    for k in range(4):
        row[6 + k] = sign * q[k]
    for k in range(3):
        v = body.velocity[k]
        row[13 + k] = (v - row[3 + k]) / dt if dt > 0.0 else 0.0
        row[k] = body.position[k]
        row[3 + k] = v
        row[10 + k] = omega[k]


# ---------- Forces


@compiled()
def clear(wrench):
    """Set a wrench to zero."""
    for k in range(3):
        wrench.force[k] = wrench.moment[k] = 0.0


@compiled()
def push_at(wrench, force, arm):
    """Add a force at an arm from the body's origin, world, to its wrench."""
    increase(wrench.force, force)
    increase(wrench.moment, cross(arm, force))


@compiled()
def add_body_drag(body, drag, wind, wrench):
    """Add the linear drag of a body in the moving air to its wrench."""
    along = rotate_back(body.rotation, sub(body.velocity, wind))
    force = (-drag[0] * along[0], -drag[1] * along[1], -drag[2] * along[2])
    increase(wrench.force, rotate(body.rotation, force))


@compiled()
def spin_rotors(speed, command, rotors, dt):
    """Advance all rotor speeds by their first-order lag (exact for a command held over dt)."""
    up = down = rise = fall = 0.0
    for i in range(speed.shape[0]):
        for j in range(speed.shape[1]):
            rotor = rotors[i, j]
            gap = command[i, j] - speed[i, j]
            if rotor.up != up:
                up = rotor.up
                rise = 1.0 - math.exp(-dt / rotor.up)
            if rotor.down != down:
                down = rotor.down
                fall = 1.0 - math.exp(-dt / rotor.down)
            speed[i, j] += gap * (rise if gap > 0.0 else fall)


@compiled(inlined=True)
def add_rotors(body, rotors, speed, wind, wrench):
    """Add thrust, reaction torque and drag of one drone's rotors to its wrench."""
    r = body.rotation
    up = (r[0, 2], r[1, 2], r[2, 2])
    for j in range(speed.shape[0]):
        rotor = rotors[j]
        omega = speed[j]
        arm = rotate(r, rotor.place)
        force = scale(rotor.thrust * omega * omega, up)
        if rotor.drag > 0.0:
            # Velocity of the hub against the air, without its part along the rotor axis.
            air = sub(arm_velocity(body, arm), wind)
            across = sub(air, scale(dot(air, up), up))
            force = sub(force, scale(rotor.drag * omega, across))
        push_at(wrench, force, arm)
        increase(wrench.moment, scale(rotor.torque * omega * omega, up))


@compiled()
def add_inputs(body, in_body, in_world, wrench):
    """Add wrenches from outside: rows of moment and force in the body's frame and in the world."""
    increase(wrench.force, rotate(body.rotation, (in_body[3], in_body[4], in_body[5])))
    increase(wrench.moment, rotate(body.rotation, in_body))
    increase(wrench.force, (in_world[3], in_world[4], in_world[5]))
    increase(wrench.moment, in_world)


SOFT_DEPTH_M = 0.02
"""Depth beyond which soft ground with edges pushes no harder: cables may begin within a ledge."""


@compiled()
def soft_ground(solids, point):
    """Return how deep a point is in soft ground, the ground's normal and velocity there.

    `solids`: records of `SOLID`, of which those that are ground count, but for overhangs.
    """
    deepest = -np.inf
    normal = (0.0, 0.0, 1.0)
    velocity = (0.0, 0.0, 0.0)
    for k in range(len(solids)):
        solid = solids[k]
        if solid.ground == 0:
            continue
        depth, n = depth_and_normal(solid, point)
        if n[2] < -0.5:
            continue
        if solid.kind != PLANE:
            depth = min(depth, SOFT_DEPTH_M)
        if depth > deepest:
            deepest = depth
            normal = n
            velocity = surface_velocity(solid, point)
    return deepest, normal, velocity


@compiled()
def add_soft_ground(body, solids, mass, wrench):
    """Add the push of compliant ground under a piece of cable that is below it to its wrench."""
    depth, normal, velocity = soft_ground(solids, body.position)
    v = sub(body.velocity, velocity)
    rise = dot(v, normal)
    up = mass * (GROUND_STIFFNESS_1_S2 * depth - GROUND_DAMPING_1_S * rise)
    if depth > 0.0 and up > 0.0:
        drag = scale(-mass * GROUND_DAMPING_1_S, add_scaled(v, -rise, normal))
        increase(wrench.force, add_scaled(drag, up, normal))


def soft_below_m(solids: Records) -> float:
    """Height below which there may be soft ground; -inf for none."""
    tops = [-np.inf]
    for record in solids[solids["ground"] != 0]:
        corners = np.concatenate(faces_enu_m(record))
        edge_m = np.inf if record["motion"] or record["kind"] == PLANE else corners[:, 2].max()
        if record["kind"] == PLANE and record["rotation"][2, 2] >= 1.0 and not record["motion"]:
            edge_m = record["position"][2]
        tops.append(edge_m)
    return float(max(tops))


# ---------- A body on hard surfaces, the ground and obstacles: springs and dampers at its corners
# that only push, friction that sticks. The body's record needs `CONTACT`'s fields besides, each
# corner one of `CORNER` for each surface that it may touch. Load and drones have the corners of
# their boxes, a link of cable has a round one at its joint.

CONTACT = [
    ("stiffness", float),  # of a corner [N/m]
    ("damping", float),  # [N s/m]
    ("impact_damping", float),  # in addition, of a corner that is deep, see `impact_constants`
    ("radius", float),  # of all corners round the origin
    ("rounding", float),  # radius of the corners themselves
    ("first_corner", np.int64),
    ("corners", np.int64),  # their number, as many for each surface
    ("near", np.int64),  # FAR, STANDING, CLOSE or DEEP
]

FAR = 0
STANDING = 1
CLOSE = 2
DEEP = 3
"""`near` of a body: no surface is within reach of a step; some corner touches one or can, while the
body stands still; or it moves; or a corner can be deep, or more than four touch, which are stiffer
together."""

CORNER = np.dtype(
    [
        ("place", float, 3),  # in the body
        ("surface", np.int64),  # index of the solid
        ("anchor", float, 3),  # where it stuck, see `at_rest`
        ("stuck", np.int64),
        ("push", float, 3),  # last force, world
    ],
    align=True,
)


def surfaces_of(ground_height_m: float | None, obstacles: Iterable[AnyObstacle]) -> Records:
    """Solids that bodies touch, records of `SOLID`: the ground, if there is one, and obstacles."""
    grounds = np.zeros(0, SOLID)
    if ground_height_m is not None:
        grounds = solid(PLANE, (0.0, 0.0, ground_height_m), np.eye(3), (0.0, 0.0, 0.0))
        grounds["ground"] = 1
    return np.concatenate([grounds, solids_of(obstacles)])


def corner_records(corners_m: Iterable[Array], surfaces: int, dtype: np.dtype = CORNER) -> Records:
    """Records of the corners of bodies, (k, 3) each, one for each surface, (sum k * surfaces,)."""
    of_bodies = [np.zeros((0, 3)), *(corners for corners in corners_m if len(corners))]
    records = np.zeros(surfaces * sum(map(len, of_bodies)), dtype)
    records["place"] = np.concatenate([np.tile(corners, (surfaces, 1)) for corners in of_bodies])
    each = [np.repeat(np.arange(surfaces), len(corners)) for corners in of_bodies]
    records["surface"] = np.concatenate(each)
    return records


TOUCHING = ("load", "drones")
"""Default of `physics.contact`: what touches the ground and obstacles."""

STATIC_SINK_M = 5e-4
"""Depth to which a body's own weight presses four corners into the ground."""

ACCURATE = 0.9
"""Step times the fastest frequency of a body on its corners. RK4 is stable up to 2.78, but twice as
long steps make 0.2 J of a landing instead of 0.01."""

STILL_M = 0.1 * STATIC_SINK_M
"""Way in a step below which a body stands still."""

LONGER_AT_REST = 2.0
"""Length of steps then, over those of a body that moves: still stable, and too little moves to make
energy where corners touch or slip."""


# Normal force max(0, k depth - c rise rate), where c grows in an impact; friction is a spring to
# where the corner stuck, limited to mu times the normal force. Steps near a surface are short
# enough for its stiffness.


def corner_constants(mass_kg: float, sink_m: float = STATIC_SINK_M) -> tuple[float, float]:
    """Stiffness [N/m] and damping [N s/m] of each corner of a body: heave is critical on four."""
    stiffness = mass_kg * STANDARD_GRAVITY_M_S2 / (4.0 * sink_m)
    return stiffness, math.sqrt(stiffness * mass_kg)


def feet_constants(mass_kg: float, inertia: Array, corners: Array) -> tuple[float, float]:
    """Stiffness [N/m] and damping [N s/m] of each corner of a body that takes explicit steps.

    Where it stands on the lower four of its corners, (8, 3) in its frame, the fastest of its
    motions is critical: with critical heave its tilt would decay much faster than it swings, and
    ask for shorter steps.
    """
    stiffness, _ = corner_constants(mass_kg)
    return stiffness, 2.0 * math.sqrt(stiffness / _fastest_on_corners(mass_kg, inertia, corners))


IMPACT_DEPTH_M = 5e-3
"""Depth from which a corner is damped more, fully at twice as much: that of a fall of 0.3 m/s."""


def impact_constants(mass_kg: float, inertia: Array, corners: Array) -> tuple[float, float]:
    """Damping of a deep corner beyond `feet_constants` [N s/m], and the longest step then [s].

    With both heave is critical on four corners, as in models with implicit steps. On the feet's
    damping alone a drone that falls on one corner bounces with 0.6 of its speed, now with 0.3.
    """
    _, feet = feet_constants(mass_kg, inertia, corners)
    _, heave = corner_constants(mass_kg)
    fastest = _fastest_on_corners(mass_kg, inertia, corners)
    return max(heave - feet, 0.0), 2.0 * ACCURATE / (max(heave, feet) * fastest)


def contact_step_s(mass_kg: float, inertia: Array, corners: Array) -> float:
    """Longest step for a body that stands on the lower four of its corners (body frame, (8, 3))."""
    stiffness, _ = corner_constants(mass_kg)
    return ACCURATE / math.sqrt(stiffness * _fastest_on_corners(mass_kg, inertia, corners))


def _fastest_on_corners(mass_kg: float, inertia: Array, corners: Array) -> float:
    """Largest acceleration of a motion on four corners over its travel and their stiffness [1/kg].

    x'' + c e x' + k e x = 0 with this e is the fastest motion of the body.
    """
    effect = np.zeros((6, 6))
    for r in corners[np.argsort(corners[:, 2])[:4]]:
        arm = np.array([[0.0, r[2], -r[1]], [-r[2], 0.0, r[0]], [r[1], -r[0], 0.0]])
        jacobian = np.hstack([np.eye(3), arm])
        effect += jacobian.T @ jacobian
    weight = np.zeros((6, 6))
    weight[:3, :3] = mass_kg * np.eye(3)
    weight[3:, 3:] = inertia
    return float(np.abs(np.linalg.eigvals(np.linalg.solve(weight, effect))).max())


@compiled()
def look_for_surfaces(bodies, corners, solids, ahead_s):
    """Note which bodies can touch a surface within a time; the largest `near` of them."""
    nearest = FAR
    for i in range(bodies.shape[0]):
        nearest = max(nearest, near_surface(bodies[i], corners, solids, ahead_s))
    return nearest


@compiled()
def near_surface(body, corners, solids, ahead_s):
    """Note and return the `near` of a body: what it can touch within a time.

    What counts is the deepest corner: a wide load that is held level is not near the ground.
    """
    body.near = FAR
    if body.corners == 0:
        return FAR
    speed = norm(body.velocity) + body.radius * norm(body.omega)
    each = body.corners // len(solids)
    within_reach = 0
    for s in range(len(solids)):
        faster = speed
        if solids[s].motion != 0:
            faster = speed + norm(surface_velocity(solids[s], body.position))
            faster += body.radius * norm(solids[s].omega)
        way = ahead_s * (faster + 10.0 * ahead_s) + body.rounding
        if depth_and_normal(solids[s], body.position)[0] + body.radius + way > 0.0:
            first = body.first_corner + each * s
            for q in range(first, first + each):
                point = add(body.position, rotate(body.rotation, corners[q].place))
                depth = depth_and_normal(solids[s], point)[0] + way
                if depth > 0.0:
                    within_reach += 1
                    still = ahead_s * faster < STILL_M
                    body.near = max(body.near, STANDING if still else CLOSE)
                    is_deep = body.impact_damping != 0.0 and depth > IMPACT_DEPTH_M
                    if is_deep or within_reach > 4:
                        body.near = DEEP
                        return DEEP
    return body.near


@compiled()
def corner_force(body, corner, surface, place, velocity, depth, normal):
    """Force of a surface on a corner that sticks: that along its normal, and the one across.

    The corner is so deep below the surface, at a place and at a velocity, both world.
    """
    k = body.stiffness
    hard = min(max(depth / IMPACT_DEPTH_M - 1.0, 0.0), 1.0)
    c = body.damping + hard * body.impact_damping
    flow = sub(velocity, surface_velocity(surface, place))
    up = k * depth - c * dot(flow, normal)
    drag = scale(-c, flow)
    if corner.stuck != 0:
        drag = add_scaled(drag, k, way_on_surface(surface, corner.anchor, place))
    return up, add_scaled(drag, -dot(drag, normal), normal)


@compiled()
def add_corners(body, corners, solids, friction, wrench):
    """Add the forces of surfaces on one body to its wrench."""
    for q in range(body.first_corner, body.first_corner + body.corners):
        c = corners[q]
        arm = rotate(body.rotation, c.place)
        put(c.push, (0.0, 0.0, 0.0))
        place = add(body.position, arm)
        surface = solids[c.surface]
        depth, normal = depth_and_normal(surface, place)
        if depth <= 0.0:
            continue
        up, across = corner_force(body, c, surface, place, arm_velocity(body, arm), depth, normal)
        if up <= 0.0:
            continue
        size = norm(across)
        if size > friction * up:
            across = scale(friction * up / size, across)
        put(c.push, add_scaled(across, up, normal))
        push_at(wrench, c.push, arm)


@compiled()
def settle_corners(bodies, corners, solids, friction):
    """Release corners in the air and fix those on a surface, after a step.

    The forces are those of the last `add_corners`. A corner that slips drags its place along.
    """
    for i in range(bodies.shape[0]):
        body = bodies[i]
        for q in range(body.first_corner, body.first_corner + body.corners):
            c = corners[q]
            if body.near == 0 or dot(c.push, c.push) == 0.0:
                c.stuck = 0
                continue
            surface = solids[c.surface]
            place = point_position(body, c.place)
            _, normal = depth_and_normal(surface, place)
            up = dot(c.push, normal)
            across = add_scaled(c.push, -up, normal)
            if c.stuck == 0:
                put(c.anchor, at_rest(surface, place))
                c.stuck = 1
            elif dot(across, across) >= 0.999 * (friction * up) ** 2:
                slipped = add_scaled(place, 1.0 / body.stiffness, across)
                put(c.anchor, at_rest(surface, slipped))
