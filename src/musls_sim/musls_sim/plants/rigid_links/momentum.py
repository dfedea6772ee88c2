"""Linear and angular momentum of the pieces of a mechanism, which hold by construction.

The rates of the coordinates are advanced, not the momenta: by the step's own error the momentum of
a whole piece would change without a force, and its centre of mass would not go where its momentum
leads. So each step notes, for each piece, mass m, centre of mass c, momentum p, and L about a pivot
before it; adds the impulses of all accelerations in its middle,

    p' = p + h sum m a,   L' = L + h sum (r x m a + I alpha + w x I w),   c' = c + h (p + p') / 2 m,

which are those of gravity, rotors, air and contacts, since what joints transmit cancels; and at its
end moves the piece as one rigid body until it has these. What that takes is of the third order in
h, as the error is.
"""

from __future__ import annotations

from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import numbers_at
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    cross,
    increase,
    put,
    rotate,
    scale,
    sub,
)
from musls_sim.plants.rigid_body import arm_velocity
from musls_sim.plants.rigid_links.articulated import (
    increase_by,
    read3,
    read6,
    sym_inverse,
    sym_times,
    world_inertia,
)
from musls_sim.plants.rigid_links.mechanism import bodies_of, pieces_of


@compiled()
def note_momenta(t):
    """Note centres of mass and momenta of all pieces before a step, about their first bodies."""
    bodies, pieces = bodies_of(t), pieces_of(t)
    for p in range(pieces.shape[0]):
        put(pieces[p].pivot, bodies[pieces[p].first].position)
        clear_motion(pieces[p].now)
    for k in range(bodies.shape[0]):
        body = bodies[k]
        piece = pieces[body.piece]
        add_motion(piece.now, body, piece.pivot)
    for p in range(pieces.shape[0]):
        piece = pieces[p]
        put(piece.centre, piece.now.centre)
        put(piece.momentum, piece.now.momentum)
        put(piece.angular_momentum, piece.now.angular_momentum)


@compiled()
def add_impulses(t, h):
    """Add the impulses of a step, from the accelerations in its middle."""
    bodies, pieces = bodies_of(t), pieces_of(t)
    for p in range(pieces.shape[0]):
        piece = pieces[p]
        increase(piece.centre, scale(0.5 * h, piece.momentum))
    for k in range(bodies.shape[0]):
        body = bodies[k]
        piece = pieces[body.piece]
        w, s, angular = read3(body.omega), read3(body.swing), read3(body.angular)
        centre = add(body.position, rotate(body.rotation, body.com))
        c = sub(centre, body.joint)
        turning = add(cross(w, cross(w, c)), cross(s, cross(s, c)))
        force = scale(body.mass, add(add(body.linear, cross(angular, c)), turning))
        inertia = world_inertia(body)
        moment = add(cross(w, sym_times(inertia, w)), cross(s, sym_times(inertia, s)))
        moment = add(moment, sym_times(inertia, angular))
        moment = add(moment, cross(sub(centre, piece.pivot), force))
        increase(piece.momentum, scale(h, force))
        increase(piece.angular_momentum, scale(h, moment))
    for p in range(pieces.shape[0]):
        piece = pieces[p]
        increase(piece.centre, scale(0.5 * h, piece.momentum))


@compiled()
def keep_momenta(t):
    """Move each piece as one rigid body to where it has its momenta, at the end of a step."""
    bodies, pieces = bodies_of(t), pieces_of(t)
    for p in range(pieces.shape[0]):
        clear_motion(pieces[p].now)
    for k in range(bodies.shape[0]):
        body = bodies[k]
        piece = pieces[body.piece]
        add_motion(piece.now, body, piece.pivot)
    for p in range(pieces.shape[0]):
        correct_piece(t, pieces[p], bodies[pieces[p].first])
    for k in range(bodies.shape[0]):
        body = bodies[k]
        piece = pieces[body.piece]
        arm = sub(body.position, bodies[piece.first].position)
        increase(body.omega, piece.turn)
        increase(body.velocity, add(piece.push, cross(piece.turn, arm)))
    for k in range(bodies.shape[0]):
        body = bodies[k]
        increase(body.position, pieces[body.piece].shift)
        increase(body.joint, pieces[body.piece].shift)


@compiled()
def correct_piece(t, piece, first):
    """Shift, push and turn of a piece, given to the coordinates of its first body."""
    now, rate, i = piece.now, numbers_at(t.rate), first.first
    mass = now.mass
    centre = scale(1.0 / mass, piece.centre)
    shift = sub(centre, scale(1.0 / mass, now.centre))
    missing = sub(piece.momentum, now.momentum)
    turning = sub(piece.angular_momentum, add(now.angular_momentum, cross(shift, now.momentum)))
    turning = sub(turning, cross(centre, missing))  # about the centre of mass
    increase_by(now.inertia, inertia_of_point(-1.0 / mass, now.centre))
    turn = sym_times(sym_inverse(read6(now.inertia)), turning)
    arm = sub(add(sub(first.position, piece.pivot), shift), centre)
    push = add_scaled(cross(turn, arm), 1.0 / mass, missing)
    put(piece.shift, shift)
    put(piece.turn, turn)
    put(piece.push, push)
    increase(first.place, shift)
    increase(rate[i : i + 3], turn)
    increase(rate[i + 3 : i + 6], push)
    increase(t.made, missing)


@compiled()
def clear_motion(motion):
    """Mass, centre, momenta and inertia of no bodies."""
    motion.mass = 0.0
    put(motion.centre, (0.0, 0.0, 0.0))
    put(motion.momentum, (0.0, 0.0, 0.0))
    put(motion.angular_momentum, (0.0, 0.0, 0.0))
    for q in range(6):
        motion.inertia[q] = 0.0


@compiled()
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
