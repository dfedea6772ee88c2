"""Linear and angular momentum of the pieces of a mechanism, which hold by construction.

The rates of the coordinates are advanced, not the momenta: by the step's own error the momentum of
a whole piece would change without a force, and its centre of mass would not go where its momentum
leads. So each step takes, for each piece, mass m, centre of mass c, momentum p, and L about a pivot
before it; adds the impulses of the forces F and moments M from outside in its middle,

    p' = p + h sum F,   L' = L + h sum (r x F + M),   c' = c + h (p + p') / 2 m;

and at its end moves the piece as one rigid body until it has these. What that takes is of the third
order in h, as the error is.
"""

from __future__ import annotations

from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    cross,
    dot,
    increase,
    put,
    rotate,
    scale,
    sub,
)
from musls_sim.plants.rigid_body import arm_velocity
from musls_sim.plants.rigid_links.articulated import (
    increase_by,
    read6,
    sym_inverse,
    sym_times,
    world_inertia,
)
from musls_sim.plants.rigid_links.constraints.contact import acceleration_at, soft_force
from musls_sim.plants.rigid_links.mechanism import (
    bodies_of,
    closings_of,
    edges_of,
    pieces_of,
    rate_of,
    selected_of,
)


@compiled()
def note_momenta(t):
    """Note centres of mass and momenta of all pieces before a step, about their first bodies.

    They are those that the last step has given, or those of the state that was set since.
    """
    bodies = bodies_of(t)
    pieces = pieces_of(t)
    for p in range(pieces.shape[0]):
        piece = pieces[p]
        pivot = bodies[piece.first].position
        way = sub(piece.pivot, pivot)
        put(piece.pivot, pivot)
        increase(piece.centre, scale(piece.now.mass, way))
        increase(piece.angular_momentum, cross(way, piece.momentum))


@compiled()
def sum_motions(t):
    """Find centres of mass, momenta and energy of all pieces in a state that was set."""
    bodies = bodies_of(t)
    pieces = pieces_of(t)
    for p in range(pieces.shape[0]):
        put(pieces[p].pivot, bodies[pieces[p].first].position)
    sum_bodies(t)
    for p in range(pieces.shape[0]):
        piece = pieces[p]
        put(piece.centre, piece.now.centre)
        put(piece.momentum, piece.now.momentum)
        put(piece.angular_momentum, piece.now.angular_momentum)


@compiled()
def sum_bodies(t):
    """Find mass, centre, momenta and inertia that all pieces have now, about their pivots."""
    bodies = bodies_of(t)
    pieces = pieces_of(t)
    for p in range(pieces.shape[0]):
        clear_motion(pieces[p].now)
    for k in range(bodies.shape[0]):
        body = bodies[k]
        piece = pieces[body.piece]
        add_motion(piece.now, body, piece.pivot)


@compiled()
def add_impulses(t, h):
    """Add the impulses of a step: gravity, rotors, air, inputs and contacts in its middle."""
    bodies = bodies_of(t)
    pieces = pieces_of(t)
    selected = selected_of(t)
    for p in range(pieces.shape[0]):
        piece = pieces[p]
        increase(piece.centre, scale(0.5 * h, piece.momentum))
        weight = 0.0, 0.0, -h * t.gravity
        increase(piece.momentum, scale(piece.now.mass, weight))
        increase(piece.angular_momentum, cross(piece.centre, weight))
    for i in range(selected.shape[0]):
        body = bodies[selected[i]]
        wrench = body.wrench
        increase(pieces[body.piece].angular_momentum, scale(h, wrench.moment))
        push_piece(pieces[body.piece], body.position, scale(h, wrench.force))
    if t.touches != 0:
        add_contact_impulses(t, h)
    if closings_of(t).shape[0] != 0:
        add_closing_impulses(t, h)
    for p in range(pieces.shape[0]):
        piece = pieces[p]
        increase(piece.centre, scale(0.5 * h, piece.momentum))


@compiled()
def add_contact_impulses(t, h):
    """Add those of the ground and of obstacles, as they acted in the last evaluation."""
    bodies = bodies_of(t)
    pieces = pieces_of(t)
    edges = edges_of(t)
    for k in range(bodies.shape[0]):
        body = bodies[k]
        piece = pieces[body.piece]
        if body.soft != 0:
            force = soft_force(body, acceleration_at(body, (0.0, 0.0, 0.0)), h)
            push_piece(piece, body.position, scale(h, force))
        if body.near != 0:
            for q in range(body.first_corner, body.first_corner + body.corners):
                point = add(body.position, rotate(body.rotation, edges[q].place))
                push_piece(piece, point, scale(h, edges[q].acted))


@compiled()
def add_closing_impulses(t, h):
    """Add those at the ends of cables that other pieces, or what does not move, hold."""
    bodies = bodies_of(t)
    pieces = pieces_of(t)
    closings = closings_of(t)
    for k in range(closings.shape[0]):
        row = closings[k]
        link = bodies[row.link]
        if row.open != 0 or (row.body >= 0 and bodies[row.body].piece == link.piece):
            continue
        point = add(link.joint, row.arm)
        push_piece(pieces[link.piece], point, scale(h, row.force))
        if row.body >= 0:
            push_piece(pieces[bodies[row.body].piece], point, scale(-h, row.force))


@compiled()
def push_piece(piece, point, impulse):
    """Add an impulse at a point to the momenta of a piece."""
    increase(piece.momentum, impulse)
    increase(piece.angular_momentum, cross(sub(point, piece.pivot), impulse))


@compiled()
def keep_momenta(t):
    """Move each piece as one rigid body to where it has its momenta, at the end of a step."""
    bodies = bodies_of(t)
    pieces = pieces_of(t)
    sum_bodies(t)
    for p in range(pieces.shape[0]):
        correct_piece(t, pieces[p], bodies[pieces[p].first])
    for k in range(bodies.shape[0]):
        body = bodies[k]
        piece = pieces[body.piece]
        arm = sub(body.position, piece.place)
        increase(body.omega, piece.turn)
        increase(body.velocity, add(piece.push, cross(piece.turn, arm)))
        increase(body.position, piece.shift)
        increase(body.joint, piece.shift)


@compiled()
def correct_piece(t, piece, first):
    """Give shift, push and turn of a piece to the coordinates of its first body."""
    now = piece.now
    rate = rate_of(t)
    i = first.first
    mass = now.mass
    centre = scale(1.0 / mass, piece.centre)
    shift = sub(centre, scale(1.0 / mass, now.centre))
    lack = sub(piece.momentum, now.momentum)
    turning = sub(piece.angular_momentum, add(now.angular_momentum, cross(shift, now.momentum)))
    turning = sub(turning, cross(centre, lack))  # about the centre of mass
    around = sub(now.angular_momentum, cross(now.centre, scale(1.0 / mass, now.momentum)))
    increase_by(now.inertia, inertia_of_point(-1.0 / mass, now.centre))
    turn = sym_times(sym_inverse(read6(now.inertia)), turning)
    arm = sub(add(sub(first.position, piece.pivot), shift), centre)
    push = add_scaled(cross(turn, arm), 1.0 / mass, lack)
    put(piece.place, first.position)
    put(piece.shift, shift)
    put(piece.turn, turn)
    put(piece.push, push)
    increase(first.place, shift)
    increase(rate[i : i + 3], turn)
    increase(rate[i + 3 : i + 6], push)
    increase(t.made, lack)
    now.kinetic += dot(lack, add_scaled(now.momentum, 0.5, lack)) / mass
    now.kinetic += dot(turn, add_scaled(around, 0.5, turning))


@compiled()
def clear_motion(motion):
    """Mass, centre, momenta and inertia of no bodies."""
    motion.mass = motion.kinetic = 0.0
    put(motion.centre, (0.0, 0.0, 0.0))
    put(motion.momentum, (0.0, 0.0, 0.0))
    put(motion.angular_momentum, (0.0, 0.0, 0.0))
    for q in range(6):
        motion.inertia[q] = 0.0


@compiled(inlined=True)
def add_motion(motion, body, pivot):
    """Add a body's share to those of its piece, about a pivot."""
    centre = rotate(body.rotation, body.com)
    momentum = scale(body.mass, arm_velocity(body, centre))
    arm = sub(add(body.position, centre), pivot)
    inertia = world_inertia(body)
    motion.mass += body.mass
    increase(motion.centre, scale(body.mass, arm))
    increase(motion.momentum, momentum)
    spin = sym_times(inertia, body.omega)
    increase(motion.angular_momentum, add(spin, cross(arm, momentum)))
    motion.kinetic += 0.5 * (dot(momentum, momentum) / body.mass + dot(spin, body.omega))
    increase_by(motion.inertia, inertia)
    increase_by(motion.inertia, inertia_of_point(body.mass, arm))


@compiled()
def inertia_of_point(mass, r):
    """Inertia of a mass at a place about the origin, six numbers."""
    x, y, z = r[0], r[1], r[2]
    return (
        mass * (y * y + z * z),
        -mass * x * y,
        -mass * x * z,
        mass * (x * x + z * z),
        -mass * y * z,
        mass * (x * x + y * y),
    )
