"""Energies and momenta of a rig, reactions of prescribed bodies, and what the plant shows."""

from __future__ import annotations

import math

import numpy as np

from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.layout import Tables
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
from musls_sim.plants.elastic.cables.line import energy_per_length
from musls_sim.plants.elastic.reels import add_reel_momenta, reel_energy
from musls_sim.plants.elastic.solver import end_node
from musls_sim.plants.elastic.state import (
    bodies_of,
    cables_of,
    force_of,
    free_length_of,
    held_of,
    laws_of,
    nodes_of,
    own_wrench_enu_of,
    peak_of,
    segments_of,
    shown_of,
)
from musls_sim.plants.rigid_body import collect_state


def energies(tables: Tables) -> Array:
    """Kinetic, potential, axial strain and bending energy of the state, (4,) [J]."""
    return np.array(state_energies(tables.system[0]))


@compiled()
def state_energies(t):
    """Kinetic, potential, axial strain and bending energy of the state [J]."""
    gravity = t.gravity
    kinetic = reel_energy(t)
    potential = 0.0
    axial = 0.0
    bending = 0.0
    for body in bodies_of(t):
        kinetic += 0.5 * body.mass * dot(body.velocity, body.velocity)
        kinetic += 0.5 * dot(body.omega, body.angular_momentum)
        potential += body.mass * gravity * body.position[2]
    for node in nodes_of(t):
        kinetic += 0.5 * node.mass * dot(node.velocity, node.velocity)
        potential += node.mass * gravity * node.position[2]
    for cable in cables_of(t):
        for s in range(cable.segments):
            axial += strain_energy(t, cable, s)
        if cable.bends:
            for i in range(cable.segments + 1):
                bending += bending_energy(t, cable, i)
    return kinetic, potential, axial, bending


@compiled()
def strain_energy(t, cable, s):
    """Strain energy of segment s (from 0 at end 1) of a cable [J]."""
    segment = segments_of(t)[cable.first_segment + s]
    a, b = nodes_of(t)[cable.first_node + s], nodes_of(t)[cable.first_node + s + 1]
    strain = norm(sub(b.position, a.position)) / segment.rest_length - 1.0
    energy = energy_per_length(cable.axial, laws_of(t), segment.memory, strain)
    return energy * segment.rest_length * segment.alive


@compiled()
def bending_energy(t, cable, i):
    """Bending energy of the joint at node i of a cable (at its ends: of the clamp, if any) [J]."""
    count = cable.segments
    first = cable.first_node
    if (i == 0 and not cable.clamped[0]) or (i == count and not cable.clamped[1]):
        return 0.0
    before = segments_of(t)[cable.first_segment + max(i - 1, 0)]
    after = segments_of(t)[cable.first_segment + min(i, count - 1)]
    if before.alive == 0.0 or after.alive == 0.0:
        return 0.0
    weight = 2.0 / (before.rest_length + after.rest_length)
    if i == 0:
        t1 = rotate(bodies_of(t)[cable.body[0]].rotation, cable.axis[0])
        weight = cable.clamp_factor[0] / after.rest_length
    else:
        t1 = sub(nodes_of(t)[first + i].position, nodes_of(t)[first + i - 1].position)
    if i == count:
        t2 = rotate(bodies_of(t)[cable.body[1]].rotation, cable.axis[1])
        weight = cable.clamp_factor[1] / before.rest_length
    else:
        t2 = sub(nodes_of(t)[first + i + 1].position, nodes_of(t)[first + i].position)
    angle = math.atan2(norm(cross(t1, t2)), dot(t1, t2))
    return 0.5 * cable.bending_stiffness * weight * angle * angle


def momenta(tables: Tables) -> tuple[Array, Array]:
    """Momentum and angular momentum about the origin of everything, (3,) each."""
    linear = np.zeros(3)
    angular = tables.bodies["angular_momentum"].sum(axis=0)
    for table in (tables.bodies, tables.nodes):
        momentum = table["mass"][:, None] * table["velocity"]
        linear += momentum.sum(axis=0)
        angular += np.cross(table["position"], momentum).sum(axis=0)
    add_reel_momenta(tables.system[0], linear, angular)
    return linear, angular


@compiled()
def react(t):
    """Force and moment that prescribed bodies need: inertia and weight minus all other loads."""
    for b in range(bodies_of(t).shape[0]):
        body = bodies_of(t)[b]
        if body.free:
            continue
        force = sub(scale(body.mass, body.stage.acceleration), body.external.force)
        force = force[0], force[1], force[2] + body.mass * t.gravity
        moment = sub(body.stage.torque, body.external.moment)
        for cable in cables_of(t):
            for end in range(2):
                if cable.body[end] != b:
                    continue
                force = sub(force, cable.force[end])
                moment = sub(moment, add(cable.moment[end], cable.twist[end]))
        put(body.reaction.force, force)
        put(body.reaction.moment, moment)


@compiled()
def fastest_body(bodies):
    """Speed of the body that moves fastest [m/s]; infinite for one that is not finite."""
    speed2 = 0.0
    for body in bodies:
        stage = body.stage
        v2 = dot(stage.velocity, stage.velocity)
        if not math.isfinite(v2 + stage.position[0] + stage.rotation[0, 0]):
            return math.inf
        speed2 = max(speed2, v2)
    return math.sqrt(speed2)


@compiled()
def collect(t, dt):
    """Write what is shown of bodies, after a time, and of cables."""
    for b in range(bodies_of(t).shape[0]):
        body = bodies_of(t)[b]
        wrench = held_of(t)[b]
        collect_state(body.stage, dt, shown_of(t)[b])
        if body.free:
            pushed = own_wrench_enu_of(t)[b]
            put(wrench[:3], pushed[3:])
            put(wrench[3:], pushed[:3])
        else:
            put(wrench[:3], body.reaction.force)
            put(wrench[3:], body.reaction.moment)
    if t.middle >= 0:
        node = nodes_of(t)[t.middle]
        row = shown_of(t)[0]
        put(row[0:3], node.position)
        put(row[3:6], node.velocity)
        put(row[13:16], node.acceleration)
    for c in range(cables_of(t).shape[0]):
        cable = cables_of(t)[c]
        peak = 0.0
        for end in range(2):
            put(force_of(t)[c, end], _shown_force(t, cable, end))
        for s in range(cable.segments):
            peak = max(peak, segments_of(t)[cable.first_segment + s].peak_tension)
        peak_of(t)[c] = peak
        if cable.reels:
            free_length_of(t)[c] = cable.rest_length


@compiled()
def _shown_force(t, cable, end):
    """Force at an end in the frame of its segment: x along it from end 1 to end 2, y horizontal."""
    i = end * (cable.segments - 1)
    before = nodes_of(t)[cable.first_node + i]
    after = nodes_of(t)[cable.first_node + i + 1]
    along = sub(after.position, before.position)
    length = norm(along)
    x, y, z = along[0] / length, along[1] / length, along[2] / length
    flat = math.sqrt(x * x + y * y)
    c, s = (x / flat, y / flat) if flat > 1e-9 else (1.0, 0.0)
    a = nodes_of(t)[end_node(cable, end)].acceleration
    mass = cable.stored[end] * cable.linear_density
    carried = add_scaled(cable.force[end], mass, (a[0], a[1], a[2] + t.gravity))
    fx, fy, fz = scale(1.0 if end == 0 else -1.0, carried)
    tension = fx * x + fy * y + fz * z
    if cable.axial.slack:  # what the end lump of a slack cable weighs on the body is no tension
        tension = max(tension, 0.0)
    return tension, fy * c - fx * s, flat * fz - z * (fx * c + fy * s)
