"""Any rig from its description: bodies where the scenario puts them, cables between their ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.rigging import MOST_SEGMENTS, Anchor, CableEnd, body_names
from musls_description.system import Cable, RigSystem
from musls_sim.driving.spec import RigSpec
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.equilibrium import nodes_between
from musls_sim.plants.elastic.line import Line
from musls_sim.plants.elastic.parts import moving_body, rotation_of
from musls_sim.plants.elastic.rig import Rig, RigBody, RigCable
from musls_sim.start import BodyState, CableStart, StartSpec

Array = NDArray[np.float64]

UNTURNED_KG_M2 = 1e6
"""Inertia of a pushed anchor that keeps its orientation: turns by 1e-6 rad in a second per N m."""


TAUT = 1.0005
"""Length of a cable over its free length in the first guess of an equilibrium."""


def rig_parts(
    system: RigSystem, start: StartSpec, drives: RigSpec, lines: Sequence[Line], gravity: float
) -> tuple[list[RigBody], list[RigCable]]:
    """Bodies (load or what stands for it, drones, anchors) and cables of a rig.

    Args:
        system: What to build.
        start: Where load and drones are, and shapes of the cables.
        drives: Which anchors are pushed.
        lines: Material of each cable.
        gravity: Gravity [m/s2].

    Raises:
        ConfigError: The start does not fit the system.
    """
    bodies = _bodies(system, start, drives)
    names = body_names(system)
    rows = {name: row for row, name in enumerate(names, start=int(system.load is None))}
    cables = []
    for i, (cable, line) in enumerate(zip(system.cables, lines, strict=True)):
        if cable.links > MOST_SEGMENTS:
            raise ConfigError(
                f"system.cables.{i}.links = {cable.links}: an elastic cable has at most "
                f"{MOST_SEGMENTS} segments"
            )
        ends = system.ends(i)
        flip = is_flipped(ends)
        a, b = ends if flip else ends[::-1]
        shape = _shape_of(start, i, system.n_cables)
        places = [_place(bodies[rows[end.body]], end) for end in (a, b)]
        made = RigCable(
            (rows[a.body], rows[b.body]),
            np.array([a.point_m, b.point_m]),
            np.linspace(places[0], places[1], cable.links + 1),
            cable.length_m,
            cable.mass_kg,
            clamps=(_direction(a, 1.0), _direction(b, -1.0)),
            **line._asdict(),
        )
        _lay(made, bodies, cable, line, shape, gravity, flip, i)
        _check_ends(made, bodies, i)
        _move_along(made, bodies)
        cables.append(made)
    return bodies, cables


def is_flipped(ends: tuple[CableEnd, CableEnd]) -> bool:
    """Whether the core's end A is end 1 of a cable instead of end 2.

    The core is quickest where A is an anchor, or a drone on a single cable.
    """
    order = {"anchor": 0, "drone": 1, "load": 2}
    ranks = [order[end.body.split("_")[0]] for end in ends]
    return ranks[0] < ranks[1]


def _bodies(system: RigSystem, start: StartSpec, drives: RigSpec) -> list[RigBody]:
    given = start.drones or ()
    if len(given) != system.n_drones:
        raise ConfigError(f"start.drones has {len(given)} entries for {system.n_drones} drones")
    if system.load is None:
        if start.load is not None:
            raise ConfigError(f"start.load: system {system.name} has no load")
        bodies = [RigBody(prescribed=True)]  # row 0 of the state
    else:
        bodies = [moving_body(system.load, start.load or _guess(system, start))]
    for i, (drone, state) in enumerate(zip(system.drones, given, strict=True)):
        bodies.append(moving_body(drone, state, i))
    for i, anchor in enumerate(system.anchors, start=1):
        bodies.append(_anchor_body(anchor, drives.pushed(i)))
    return bodies


def _anchor_body(anchor: Anchor, pushed: bool) -> RigBody:
    inertia = np.zeros((3, 3))
    if pushed:
        inertia = np.array(anchor.inertia_kg_m2 or UNTURNED_KG_M2 * np.eye(3))
    return RigBody(
        mass_kg=anchor.mass_kg or 0.0,
        inertia_kg_m2=inertia,
        position_enu_m=np.array(anchor.position_enu_m, float),
        rotation=rotation_of(anchor.orientation_wxyz),
        prescribed=not pushed,
    )


def _guess(system: RigSystem, start: StartSpec) -> BodyState:
    """Where a load may hang: below the middle of what holds it."""
    if start.kind != "equilibrium":
        raise ConfigError("start.load is missing: give the position_enu_m of the load")
    drones = [np.array(d.position_enu_m) for d in start.drones or ()]
    places = {f"drone_{i}": p for i, p in enumerate(drones, start=1)}
    anchors = enumerate(system.anchors, start=1)
    places |= {f"anchor_{i}": np.array(a.position_enu_m, float) for i, a in anchors}
    held = []
    for i, cable in enumerate(system.cables):
        near, far = sorted(system.ends(i), key=lambda end: end.body != "load")
        if near.body == "load":
            held.append((places[far.body], cable.length_m, near.point_m[2]))
    if not held:
        raise ConfigError("start.load is missing, and no cable holds the load")
    middle = np.mean([place for place, _, _ in held], axis=0)
    reach = [
        place[2] - np.sqrt(max((TAUT * length) ** 2 - np.sum((place - middle)[:2] ** 2), 0.0)) - up
        for place, length, up in held
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
    """Clamp's direction from A towards B; the description has the one that leaves the body."""
    return None if end.clamp_direction is None else sign * np.array(end.clamp_direction)


def _lay(
    made: RigCable,
    bodies: Sequence[RigBody],
    cable: Cable,
    line: Line,
    shape: CableStart,
    gravity: float,
    flip: bool,
    index: int,
) -> None:
    """Give a cable its shape at the start; straight so far."""
    begin, end = made.nodes_enu_m[0].copy(), made.nodes_enu_m[-1].copy()
    chord = float(np.linalg.norm(end - begin))
    where = f"start.cables.{index}"
    if shape.shape == "nodes":
        nodes = np.array(shape.nodes_enu_m, float)
        if nodes.shape != made.nodes_enu_m.shape:
            raise ConfigError(f"{where}.nodes_enu_m has {len(nodes)} rows, not {cable.links + 1}")
        made.nodes_enu_m = nodes if flip else nodes[::-1].copy()
    elif shape.shape == "straight":
        if shape.strain is not None:
            made.length_m = chord / (1.0 + shape.strain)
            made.mass_kg = cable.mass_kg * made.length_m / cable.length_m
    elif made.bends or not line.slack:
        _relax_alone(made, bodies, gravity, where)
    else:
        size = cable.links, cable.length_m, cable.mass_kg, gravity
        try:
            made.nodes_enu_m = nodes_between(begin, end, *size, line.strain)
        except ConfigError:  # as long as its span, or straight up
            _relax_alone(made, bodies, gravity, where)


def _relax_alone(made: RigCable, bodies: Sequence[RigBody], gravity: float, where: str) -> None:
    """Let a cable that bends or pushes find its shape between ends that are held."""
    chord = float(np.linalg.norm(made.nodes_enu_m[-1] - made.nodes_enu_m[0]))
    if chord < made.length_m * (1.0 - 1e-9):  # a first guess that is neither straight nor short
        sag = np.sqrt(3.0 / 8.0 * chord * (made.length_m - chord))
        share = np.linspace(0.0, 1.0, made.segments + 1)
        made.nodes_enu_m[:, 2] -= 4.0 * sag * share * (1.0 - share)
    ends = [
        RigBody(prescribed=True, position_enu_m=node.copy(), rotation=bodies[b].rotation)
        for b, node in zip(made.bodies, made.nodes_enu_m[[0, -1]], strict=True)
    ]
    alone = replace(made, bodies=(0, 1), points_m=np.zeros((2, 3)))
    engine = Engine(Rig(ends, [alone], gravity_m_s2=gravity))
    left = engine.relax()
    if not left < 1e-3:
        raise ConfigError(f"{where}: no shape at rest was found ({left:.2g} m/s2 left)")
    made.nodes_enu_m = engine.nodes_enu_m(0).copy()


def _check_ends(made: RigCable, bodies: Sequence[RigBody], index: int) -> None:
    steps = np.linalg.norm(np.diff(made.nodes_enu_m, axis=0), axis=1)
    if steps.min() < 1e-9:
        raise ConfigError(f"cable_{index + 1}: a segment of zero length at the start")
    for row, body, point in zip((0, -1), made.bodies, made.points_m, strict=True):
        place = bodies[body].position_enu_m + bodies[body].rotation @ point
        if np.linalg.norm(made.nodes_enu_m[row] - place) > 1e-6:
            raise ConfigError(
                f"start.cables.{index}.nodes_enu_m: an end is "
                f"{np.linalg.norm(made.nodes_enu_m[row] - place):.3g} m away from its place"
            )


def _move_along(made: RigCable, bodies: Sequence[RigBody]) -> None:
    """Let the nodes move along with the bodies at the ends."""
    ends = [
        bodies[b].velocity_enu_m_s + np.cross(bodies[b].omega_enu_rad_s, bodies[b].rotation @ point)
        for b, point in zip(made.bodies, made.points_m, strict=True)
    ]
    made.velocities_enu_m_s = np.linspace(ends[0], ends[1], made.segments + 1)
