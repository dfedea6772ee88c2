"""Start shapes: equilibrium of the discrete elastic cable.

With lumps of half a segment's mass at the ends, segment j (from 0) of a cable that pulls with F at
its lower end carries F + (j + 1/2) m g along its own direction, m the mass of a segment: the
polygon is known exactly once F is, each segment longer by the strain of its tension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from musls_control.estimate import BodyMotion
from musls_description.config.errors import ConfigError
from musls_description.hanging.equilibrium import slung_state
from musls_description.hanging.tree import Configuration, build_tree
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import matrix
from musls_description.system.slung_system import (
    MAX_SEGMENTS,
    Anchor,
    Cable,
    CableEnd,
    Drone,
    Load,
    RigSystem,
    SlungLoadSystem,
    body_names,
)
from musls_sim.plants.elastic.cables.line import LineProperties, Strain
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.rig import Rig, RigBody, RigCable
from musls_sim.plants.interface import SimulationDiverged, given_motion
from musls_sim.specs.physics import BodyState, CableStart, StartSpec
from musls_sim.specs.rig import RigSpec


def hanging_nodes(
    force_n: Array,
    segments: int,
    length_m: float,
    mass_kg: float,
    gravity_m_s2: float,
    strain: Strain,
) -> Array:
    """Nodes of a cable in equilibrium relative to its lower end, (segments + 1, 3).

    `force_n` is the force of the cable on what it holds at the lower end, with the weight of the
    half segment there, world, (3,); `length_m` is the rest length.
    """
    weights = (np.arange(segments) + 0.5) * mass_kg / segments * gravity_m_s2
    pull = force_n + np.outer(weights, [0.0, 0.0, 1.0])
    tension = np.linalg.norm(pull, axis=1)
    lengths_m = length_m / segments * np.array([1.0 + strain(t) for t in tension])
    steps = pull / np.maximum(tension, TINY_N)[:, None] * lengths_m[:, None]
    return np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])


TINY_N = 1e-30
"""Force below which a segment has no direction."""


def nodes_between(
    begin_m: Array,
    end_m: Array,
    segments: int,
    length_m: float,
    mass_kg: float,
    gravity_m_s2: float,
    strain: Strain,
) -> Array:
    """Nodes of a cable that hangs in equilibrium between two points, (segments + 1, 3).

    A slack cable almost straight below one of its ends hangs in two strands, see `fold`.

    Raises:
        ConfigError: There is no such equilibrium.
    """
    span = np.asarray(end_m, float) - begin_m
    weight = mass_kg * gravity_m_s2
    chord = float(np.linalg.norm(span))

    def gap(force: Array) -> Array:
        nodes = hanging_nodes(force * weight, segments, length_m, mass_kg, gravity_m_s2, strain)
        miss: Array = (nodes[-1] - span) / length_m
        return miss

    along = span[:2] / max(float(np.linalg.norm(span[:2])), 1e-9)
    guesses = [(0.3, -0.3), (0.1, -0.1), (1.0, 0.5), (0.05, -0.4), (3.0, 0.0)]
    if chord > length_m:  # taut: the stretch gives the tension
        pulls = np.linspace(1e-6, 1.0, 400)
        pull = pulls[np.argmin([abs(strain(p * 1e6) - (chord / length_m - 1.0)) for p in pulls])]
        guesses.insert(0, (pull * 1e6 / weight, 0.0))
    for pull, lift in guesses:
        guess = np.array([*(pull * along), lift])
        if chord > length_m and pull > 10.0:
            guess = span / chord * pull
        solution = scipy.optimize.least_squares(
            gap, guess, xtol=1e-15, ftol=1e-15, gtol=1e-15, x_scale="jac", max_nfev=400
        )
        if np.abs(solution.fun).max() < 1e-10:
            return begin_m + hanging_nodes(
                solution.x * weight, segments, length_m, mass_kg, gravity_m_s2, strain
            )
    if chord < length_m and segments > 1:
        return begin_m + fold(span, segments, length_m)
    raise ConfigError(
        f"no equilibrium of a cable of {length_m:g} m between points {chord:.4g} m apart"
    )


def fold(span_m: Array, segments: int, length_m: float) -> Array:
    """Nodes of a cable in two straight strands, from the origin down and up, (segments + 1, 3).

    The segment in the fold is shorter than it is at rest, so it pulls no more than a slack one.
    """
    half = 0.5 * span_m[:2]
    up = float(span_m[2])

    def beyond(depth_m: float) -> float:
        aside = float(np.linalg.norm(half))
        return float(np.hypot(aside, depth_m) + np.hypot(aside, depth_m + up)) - length_m

    lowest = max(0.0, -up)
    depth_m = lowest
    if beyond(lowest) < 0.0:  # not as long as its span but for rounding
        depth_m = scipy.optimize.brentq(beyond, lowest, lowest + length_m)
    corners = np.array([np.zeros(3), [*half, -depth_m], span_m])
    arc = np.array([0.0, np.linalg.norm(corners[1]), length_m])
    at = np.linspace(0.0, length_m, segments + 1)
    return np.column_stack([np.interp(at, arc, corners[:, k]) for k in range(3)])


def holding_forces(
    first_directions: Array,
    arms_m: Array,
    link_weights_n: Array,
    weight_n: float,
    thrust_directions: Array,
    lifted_n: Array,
) -> Array | None:
    """Forces of cables that hold a body at rest below hovering drones, from rigid links, (n, 3).

    The first link of a cable lies along F plus half its weight, the drone's thrust along F plus
    the weight of cable and drone: linear equations for the sizes of the forces. With the balance
    of the body they also hold for cables that all hang vertically.

    The cables pull at `arms_m`, relative to the centre of mass; thrust directions are the drones' z
    axes; all directions and arms are (n, 3), world. Weights: of the body, of one link of each
    cable, (n,), and of each cable with its drone (`lifted_n`), (n,). None if no tensions in these
    directions balance the body.
    """
    n = len(first_directions)
    up = np.array([0.0, 0.0, 1.0])
    offset = -0.5 * link_weights_n[:, None] * up
    columns = np.vstack([first_directions.T, np.cross(arms_m, first_directions).T])
    target = np.concatenate(
        [weight_n * up - offset.sum(axis=0), -np.cross(arms_m, offset).sum(axis=0)]
    )
    across = np.zeros((3 * n, n))
    crosses = np.cross(first_directions, thrust_directions)
    for i in range(n):
        across[3 * i : 3 * i + 3, i] = crosses[i]
    target_across = -np.cross(offset + lifted_n[:, None] * up, thrust_directions).ravel()
    columns = np.vstack([columns, across])
    target = np.concatenate([target, target_across])
    sizes, *_ = np.linalg.lstsq(columns, target, rcond=None)
    if np.abs(columns @ sizes - target).max() > 1e-6 * weight_n or sizes.min() <= 0.0:
        return None
    forces: Array = sizes[:, None] * first_directions + offset
    return forces


def resampled(nodes: Array, segments: int) -> Array:
    """Points at equal arc lengths of a polyline, (segments + 1, 3)."""
    if len(nodes) == segments + 1:
        return np.array(nodes)
    arc = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(nodes, axis=0), axis=1))])
    at = np.linspace(0.0, arc[-1], segments + 1)
    return np.column_stack([np.interp(at, arc, nodes[:, k]) for k in range(3)])


# ---------- Lets a rig find its static equilibrium: load and cables hang at rest below what holds

LARGEST_LEFT_M_S2 = 1e-6 * STANDARD_GRAVITY_M_S2
"""Acceleration below which a start counts as an equilibrium."""

ANY_TORQUE_N_M = 1e9
"""Brake without a limit."""

MAX_ROUNDS = 30

STEPS_S = (10.0, 1.0, 0.3, 100.0)
"""Steps of `Engine.relax` that are tried."""


@dataclass(frozen=True)
class RigRest:
    """Thrusts, moments and tensions that hold a rig at rest.

    Attributes:
        thrust_enu_n: Force that the rotors of each drone must give, (n, 3).
        moment_body_n_m: Moment that they must give, in each drone's frame, (n, 3).
        tension_n: Largest tension of each cable, (n_cables,).
    """

    thrust_enu_n: Array
    moment_body_n_m: Array
    tension_n: Array


def settle(rig: Rig, system: RigSystem, drives: RigSpec) -> RigRest:
    """Bring a rig to rest.

    Its bodies and cables are changed in place. Drones hold their places, and so do anchors that are
    not free. Drones lean so that their thrust holds what hangs on them. Winches stand still,
    pulleys turn until both sides pull alike.

    Raises:
        ConfigError: No equilibrium was found; what still moves is named.
    """
    free = [body.prescribed for body in rig.bodies]
    first = 1 + system.n_drones
    for row, body in enumerate(rig.bodies[1:], start=1):
        body.prescribed = not (row >= first and drives.free(row - first + 1))
    _stop(rig)
    for _ in range(MAX_ROUNDS):
        engine, residual_m_s2 = _relaxed(rig)
        _take_over(rig, engine)
        angles = [_lean(rig, engine, 1 + i) for i in range(system.n_drones)]
        if max(angles, default=0.0) < 1e-9:
            break
    for body, prescribed in zip(rig.bodies, free, strict=True):
        body.prescribed = prescribed
    if not residual_m_s2 < LARGEST_LEFT_M_S2:
        raise ConfigError(f"no equilibrium was found: {_what_moves(engine, system)}")
    wrenches = np.array([engine.holding_wrench(1 + i) for i in range(system.n_drones)])
    wrenches = wrenches.reshape(-1, 6)
    turns = np.array([body.rotation for body in rig.bodies[1:first]]).reshape(-1, 3, 3)
    return RigRest(
        wrenches[:, :3],
        np.einsum("nji,nj->ni", turns, wrenches[:, 3:]),
        np.array([engine.tensions_n(i).max() for i in range(len(rig.cables))]),
    )


def _what_moves(engine: Engine, system: RigSystem) -> str:
    """Name the body that is farthest from rest, and a cure."""
    nodes = [np.abs(engine.nodes(i)["acceleration"]).max() for i in range(system.n_cables)]
    bodies = np.abs(engine.tables.bodies["acceleration"]).max(axis=1)
    k = int(np.argmax(nodes))
    row = int(np.argmax(bodies))
    if row == 0 and bodies[0] >= 0.1 * nodes[k]:
        return (
            f"the load still accelerates by {bodies[0]:.2g} m/s2; give start.load.position_enu_m "
            "nearer to where it hangs"
        )
    name = f"cable_{k + 1}"
    if bodies[row] > nodes[k]:
        name = f"anchor_{row - system.n_drones}"
    return (
        f"{name} still accelerates by {max(nodes[k], bodies[row]):.2g} m/s2; begin nearer to rest "
        "(start.drones, start.load, system.anchors, start.cables with shape: nodes), or in motion "
        "with start: state"
    )


def _relaxed(rig: Rig) -> tuple[Engine, float]:
    """Relax everything that is free.

    Cables that touch the ground jump between two sets of nodes on it: they settle on soft ground
    first, as high as they are thick.
    """
    engine, residual_m_s2 = _in_long_steps(rig)
    radii = [cable.contact_radius_m for cable in rig.cables]
    ground_m = rig.ground_height_enu_m
    thickest_m = max((radius or 0.0 for radius in radii), default=0.0)
    if residual_m_s2 < LARGEST_LEFT_M_S2 or ground_m is None or thickest_m == 0.0:
        return engine, residual_m_s2
    for cable in rig.cables:
        cable.contact_radius_m = None
    rig.ground_height_enu_m = ground_m + thickest_m
    _take_over(rig, _in_long_steps(rig)[0])
    for cable, radius in zip(rig.cables, radii, strict=True):
        cable.contact_radius_m = radius
    rig.ground_height_enu_m = ground_m
    return _in_long_steps(rig)


def _in_long_steps(rig: Rig) -> tuple[Engine, float]:
    """Relax everything that is free in long steps; the longest steps do not always converge."""
    best = None
    for step_s in STEPS_S:
        engine = Engine(rig)
        engine.brake_nm[:] = ANY_TORQUE_N_M
        try:
            best = engine, engine.relax(step_s)
        except SimulationDiverged:  # numbers overflow on the way
            continue
        if best[1] < LARGEST_LEFT_M_S2:
            break
    if best is None:
        raise ConfigError("no equilibrium was found: the cables are strained beyond all numbers")
    return best


def _stop(rig: Rig) -> None:
    for body in rig.bodies:
        body.velocity_enu_m_s = np.zeros(3)
        body.omega_enu_rad_s = np.zeros(3)
    for cable in rig.cables:
        cable.velocities_enu_m_s = None


def _take_over(rig: Rig, engine: Engine) -> None:
    """Keep the places that an engine found."""
    for b, body in enumerate(rig.bodies):
        body.position_enu_m = engine.body(b, "position").copy()
        body.rotation = engine.body(b, "rotation").copy()
    for i, cable in enumerate(rig.cables):
        cable.nodes_enu_m = engine.nodes_enu_m(i).copy()
        length_m = engine.length_m(i)  # a pulley has shared out anew what is on its sides
        cable.mass_kg *= length_m / cable.length_m
        cable.length_m = length_m


def _lean(rig: Rig, engine: Engine, row: int) -> float:
    """Turn a drone's thrust along the force that it has to give; returns the angle [rad]."""
    body = rig.bodies[row]
    force = engine.holding_wrench(row)[:3]
    up = force / np.linalg.norm(force)
    ahead = body.rotation[:, 0]
    left = np.cross(up, ahead)
    left /= np.linalg.norm(left)
    target = np.column_stack([np.cross(left, up), left, up])
    angle = float(np.linalg.norm(np.cross(body.rotation[:, 2], up)))
    shift = target - body.rotation
    for cable in rig.cables:  # the ends move with their places on the drone
        for end, node in ((0, 0), (1, -1)):
            if cable.bodies[end] == row:
                cable.nodes_enu_m[node] += shift @ cable.points_m[end]
    body.rotation = target
    return angle


# ---------- Bodies and cables of a system at its start

FIXED_INERTIA_KG_M2 = 1e6
"""Inertia of a pushed anchor that keeps its orientation: turns by 1e-6 rad in a second per N m."""


TAUT = 1.0005
"""Length of a cable over its free length in the first guess of an equilibrium."""


def rig_parts(
    system: RigSystem,
    start: Configuration | StartSpec,
    lines: Sequence[LineProperties],
    drives: RigSpec,
    gravity: float,
    segments: int | None = None,
) -> tuple[list[RigBody], list[RigCable]]:
    """Bodies (load or what stands for it, drones, anchors) and cables of a rig.

    A configuration is one of rigid links, and so is a slung load in a given state whose cables have
    no shape of their own; `segments` are per cable then, None for the number of links. `drives`
    says which anchors are pushed; gravity is in m/s2.
    """
    formation = system.formation
    motion = None
    shapes = None
    if (
        isinstance(start, StartSpec)
        and formation
        and start.kind == "state"
        and start.cables is None
    ):
        formation, start, motion = _state_of_links(formation, start, gravity)
    if isinstance(start, StartSpec):
        bodies = _bodies(system, start, drives)
        for i, cable in enumerate(system.cables):
            if cable.links > MAX_SEGMENTS:
                raise ConfigError(
                    f"system.cables.{i}.links = {cable.links}: an elastic cable has at most "
                    f"{MAX_SEGMENTS} segments"
                )
    else:
        if formation is None:
            raise ConfigError(f"system {system.name} has no formation: choose start: state")
        bodies, shapes = _from_links(formation, start, lines, gravity, segments)
        if motion is not None:
            rates = zip(motion.velocity_enu_m_s, motion.omega_enu_rad_s, strict=True)
            for body, (velocity, omega) in zip(bodies, rates, strict=True):
                body.velocity_enu_m_s = velocity
                body.omega_enu_rad_s = omega
    names = body_names(system)
    rows = {name: row for row, name in enumerate(names, start=int(system.load is None))}
    cables = []
    for i, (cable, line) in enumerate(zip(system.cables, lines, strict=True)):
        a, b = system.ends(i)
        places = [_place(bodies[rows[end.body]], end) for end in (a, b)]
        rig_cable = RigCable(
            (rows[a.body], rows[b.body]),
            np.array([a.point_m, b.point_m]),
            shapes[i] if shapes else np.linspace(places[0], places[1], cable.links + 1),
            cable.length_m,
            cable.mass_kg,
            clamps=(_direction(a, 1.0), _direction(b, -1.0)),
            **vars(line),
        )
        if isinstance(start, StartSpec):
            _lay(rig_cable, bodies, cable, _shape_of(start, i, system.n_cables), gravity, i)
            _check_ends(rig_cable, bodies, i)
        move_along(rig_cable, bodies)
        cables.append(rig_cable)
    return bodies, cables


# ---------- A slung load in a configuration of rigid links


def _state_of_links(
    formation: SlungLoadSystem, start: StartSpec, gravity: float
) -> tuple[SlungLoadSystem, Configuration, BodyMotion]:
    """Rigid links that hang between bodies in a given state, and their motion.

    Poses of `start: state` are in no formation, so that `Hanging` does not know these chains.
    """
    motion = given_motion(formation, start)
    places = motion.position_enu_m
    turns = motion.rotations
    # Point masses do not twist: the drones may look anywhere.
    free = replace(formation, cables=tuple(replace(k, twist="free") for k in formation.cables))
    configuration, _ = slung_state(free, places[0], turns[0], places[1:], turns[1:], gravity)
    return free, configuration, motion


def _from_links(
    system: SlungLoadSystem,
    start: Configuration,
    lines: Sequence[LineProperties],
    gravity: float,
    segments: int | None,
) -> tuple[list[RigBody], list[Array]]:
    """Bodies, and nodes of the cables; links that hold the load up become an equilibrium."""
    tree = build_tree(system)
    rotations, positions = tree.poses(start.coordinates)
    arms = np.array(system.load.cable_attachments_m) @ rotations[0].T
    weight = system.load.mass_kg * gravity
    forces = None
    if weight > 0.0:
        pairs = zip(system.cables, system.drones, strict=True)
        forces = holding_forces(
            rotations[tree.first_link, :, 0],
            arms,
            np.array([k.link_mass_kg * gravity for k in system.cables]),
            weight,
            rotations[tree.drone, :, 2],
            gravity * np.array([k.mass_kg + d.mass_kg for k, d in pairs]),
        )
    bodies = [_body(system.load, positions[0], rotations[0])]
    shapes = []
    for i, (cable, drone) in enumerate(zip(system.cables, system.drones, strict=True)):
        place = positions[tree.drone[i]]
        rotation = rotations[tree.drone[i]]
        hook = rotation @ drone.cable_attachment_m
        n = cable.links if segments is None else segments
        if forces is None:
            joints = positions[tree.first_link[i] : tree.drone[i]]
            nodes = resampled(np.vstack([joints, place + hook]), n)
        else:
            shape = n, cable.length_m, cable.mass_kg, gravity
            nodes = hanging_nodes(forces[i], *shape, lines[i].strain)
            nodes += positions[0] + arms[i]
            place = nodes[-1] - hook
        bodies.append(_body(drone, place, rotation, i))
        shapes.append(nodes)
    return bodies, shapes


def _body(part: Load | Drone, position_enu_m: Array, rotation: Array, drone: int = -1) -> RigBody:
    """A load or drone at rest; `drone` is the row of its rotors, -1 for the load."""
    return RigBody(
        mass_kg=part.mass_kg,
        inertia_kg_m2=np.array(part.inertia_kg_m2),
        position_enu_m=np.array(position_enu_m, float),
        rotation=np.array(rotation, float),
        drag_n_s_m=np.array(part.drag_n_s_m),
        corners_m=part.collision.corners_m,
        drone=drone,
    )


# ---------- Any rig: bodies where the scenario puts them, cables between them


def _moving_body(part: Load | Drone, state: BodyState, drone: int = -1) -> RigBody:
    rotation = matrix(np.array(state.attitude_wxyz))
    body = _body(part, np.array(state.position_enu_m), rotation, drone)
    body.velocity_enu_m_s = np.array(state.velocity_enu_m_s, float)
    body.omega_enu_rad_s = rotation @ np.array(state.omega_body_rad_s, float)
    return body


def _bodies(system: RigSystem, start: StartSpec, drives: RigSpec) -> list[RigBody]:
    states = start.drones or ()
    if len(states) != system.n_drones:
        raise ConfigError(f"start.drones has {len(states)} entries for {system.n_drones} drones")
    if system.load is None:
        if start.load is not None:
            raise ConfigError(f"start.load: system {system.name} has no load")
        bodies = [RigBody(prescribed=True)]  # row 0 of the state
    else:
        bodies = [_moving_body(system.load, start.load or _guess(system, start))]
    for i, (drone, state) in enumerate(zip(system.drones, states, strict=True)):
        bodies.append(_moving_body(drone, state, i))
    for i, anchor in enumerate(system.anchors, start=1):
        bodies.append(_anchor_body(anchor, drives.pushed(i)))
    return bodies


def _anchor_body(anchor: Anchor, pushed: bool) -> RigBody:
    inertia = np.zeros((3, 3))
    corners = np.zeros((0, 3))
    if pushed:
        inertia = np.array(anchor.inertia_kg_m2 or FIXED_INERTIA_KG_M2 * np.eye(3))
        corners = corners if anchor.collision is None else anchor.collision.corners_m
    return RigBody(
        corners_m=corners,
        mass_kg=anchor.mass_kg or 0.0,
        inertia_kg_m2=inertia,
        position_enu_m=np.array(anchor.position_enu_m, float),
        rotation=matrix(np.array(anchor.orientation_wxyz)),
        prescribed=not pushed,
    )


def _guess(system: RigSystem, start: StartSpec) -> BodyState:
    """First guess of the load's position: below the middle of its supports."""
    if start.kind != "equilibrium":
        raise ConfigError("start.load is missing: give the position_enu_m of the load")
    drones = [np.array(d.position_enu_m) for d in start.drones or ()]
    places = {f"drone_{i}": p for i, p in enumerate(drones, start=1)}
    anchors = enumerate(system.anchors, start=1)
    places |= {f"anchor_{i}": np.array(a.position_enu_m, float) for i, a in anchors}
    ties = []
    for i, cable in enumerate(system.cables):
        near, far = sorted(system.ends(i), key=lambda end: end.body != "load")
        if near.body == "load":
            ties.append((places[far.body], cable.length_m, near.point_m[2]))
    if not ties:
        raise ConfigError("start.load is missing, and no cable holds the load")
    middle = np.mean([place for place, _, _ in ties], axis=0)
    reach = [
        place[2] - np.sqrt(max((TAUT * length) ** 2 - np.sum((place - middle)[:2] ** 2), 0.0)) - up
        for place, length, up in ties
    ]
    return BodyState(position_enu_m=(float(middle[0]), float(middle[1]), float(np.max(reach))))


def _shape_of(start: StartSpec, index: int, count: int) -> CableStart:
    shapes = start.cables
    if shapes is None:
        return CableStart()
    if isinstance(shapes, CableStart):
        return shapes
    if len(shapes) != count:
        raise ConfigError(f"start.cables has {len(shapes)} entries for {count} cables")
    return shapes[index]


def _place(body: RigBody, end: CableEnd) -> Array:
    place: Array = body.position_enu_m + body.rotation @ np.array(end.point_m, float)
    return place


def _direction(end: CableEnd, sign: float) -> Array | None:
    """Clamp's direction from end 1 to end 2; the description has the one that leaves the body."""
    return None if end.clamp_direction is None else sign * np.array(end.clamp_direction)


def _lay(
    rig_cable: RigCable,
    bodies: Sequence[RigBody],
    cable: Cable,
    shape: CableStart,
    gravity: float,
    index: int,
) -> None:
    """Give a cable its shape at the start; straight so far."""
    begin, end = rig_cable.nodes_enu_m[0].copy(), rig_cable.nodes_enu_m[-1].copy()
    chord = float(np.linalg.norm(end - begin))
    where = f"start.cables.{index}"
    if shape.shape == "nodes":
        nodes = np.array(shape.nodes_enu_m, float)
        if nodes.shape != rig_cable.nodes_enu_m.shape:
            raise ConfigError(f"{where}.nodes_enu_m has {len(nodes)} rows, not {cable.links + 1}")
        rig_cable.nodes_enu_m = nodes
    elif shape.shape == "straight":
        if shape.strain is not None:
            rig_cable.length_m = chord / (1.0 + shape.strain)
            rig_cable.mass_kg = cable.mass_kg * rig_cable.length_m / cable.length_m
    elif rig_cable.bends or not rig_cable.slack:
        _relax_alone(rig_cable, bodies, gravity, where)
    else:
        size = cable.links, cable.length_m, cable.mass_kg, gravity
        try:
            rig_cable.nodes_enu_m = nodes_between(begin, end, *size, rig_cable.strain)
        except ConfigError:  # as long as its span, or straight up
            _relax_alone(rig_cable, bodies, gravity, where)


def _relax_alone(cable: RigCable, bodies: Sequence[RigBody], gravity: float, where: str) -> None:
    """Relax a cable that bends or pushes between ends that are held."""
    chord = float(np.linalg.norm(cable.nodes_enu_m[-1] - cable.nodes_enu_m[0]))
    if chord < cable.length_m * (1.0 - 1e-9):  # a first guess that is neither straight nor short
        sag = np.sqrt(3.0 / 8.0 * chord * (cable.length_m - chord))
        share = np.linspace(0.0, 1.0, cable.segments + 1)
        cable.nodes_enu_m[:, 2] -= 4.0 * sag * share * (1.0 - share)
    ends = [
        RigBody(prescribed=True, position_enu_m=node.copy(), rotation=bodies[b].rotation)
        for b, node in zip(cable.bodies, cable.nodes_enu_m[[0, -1]], strict=True)
    ]
    alone = replace(cable, bodies=(0, 1), points_m=np.zeros((2, 3)))
    engine = Engine(Rig(ends, [alone], gravity_m_s2=gravity))
    residual_m_s2 = engine.relax()
    if not residual_m_s2 < 1e-3:
        raise ConfigError(f"{where}: no shape at rest was found ({residual_m_s2:.2g} m/s2 left)")
    cable.nodes_enu_m = engine.nodes_enu_m(0).copy()


def _check_ends(cable: RigCable, bodies: Sequence[RigBody], index: int) -> None:
    steps = np.linalg.norm(np.diff(cable.nodes_enu_m, axis=0), axis=1)
    if steps.min() < 1e-9:
        raise ConfigError(f"cable_{index + 1}: a segment of zero length at the start")
    for row, body, point in zip((0, -1), cable.bodies, cable.points_m, strict=True):
        place = bodies[body].position_enu_m + bodies[body].rotation @ point
        if np.linalg.norm(cable.nodes_enu_m[row] - place) > 1e-6:
            raise ConfigError(
                f"start.cables.{index}.nodes_enu_m: an end is "
                f"{np.linalg.norm(cable.nodes_enu_m[row] - place):.3g} m away from its place"
            )


def move_along(cable: RigCable, bodies: Sequence[RigBody]) -> None:
    """Give the nodes velocities between those of the bodies at the ends."""
    ends = [
        bodies[b].velocity_enu_m_s + np.cross(bodies[b].omega_enu_rad_s, bodies[b].rotation @ point)
        for b, point in zip(cable.bodies, cable.points_m, strict=True)
    ]
    cable.velocities_enu_m_s = np.linspace(ends[0], ends[1], cable.segments + 1)
