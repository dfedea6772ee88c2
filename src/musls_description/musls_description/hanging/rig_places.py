"""Places of a rig's bodies: drones in the air round a load, and everything on the ground.

Statics of inextensible cables without weight: what is free lies where its potential energy is least
while no cable is longer than it is. Bodies stay level here; how a rig hangs exactly its plant finds
from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from musls_description.config.errors import ConfigError
from musls_description.hanging.fitting import fitting_formation
from musls_description.hanging.ground import BESIDE_LOAD_M, Ground, bow, uneven_bow
from musls_description.hanging.tree import GROUND_TIPS_M, SLACK_RATIO, tip_gaps_m
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_matrix, from_yaw, rotate, yaw_of
from musls_description.system.drone import Box, tip_radius_m
from musls_description.system.slung_system import RigSystem, SlungLoadSystem, body_names

KNOT_M = 0.02
"""Size of a free anchor without a box where it lies on the ground."""

TAUT_RATIO = 0.97
"""Largest distance of a cable's ends over its length where everything stands on the ground."""

LEAST_TIPS_M = 0.05
"""Least distance of rotor tips there."""

CENTRAL_M = 0.02
"""A drone nearer to the load's axis has no direction of its own."""

SPREAD_RATIO = 0.7
"""Distance over length of a cable between two drones in the air."""


@dataclass(frozen=True)
class Incidence:
    """Ends of the cables on the rows of bodies: load, drones, anchors.

    Attributes:
        row: Rows of the bodies at ends 1 and 2, (n_cables, 2).
        point_m: Places of the ends in the bodies' frames, (n_cables, 2, 3).
        length_m: (n_cables,).
    """

    row: Array
    point_m: Array
    length_m: Array

    @classmethod
    def of(cls, system: RigSystem) -> Incidence:
        """Read it from the cables; row 0 is free where there is no load."""
        names = body_names(system)
        rows = {name: row for row, name in enumerate(names, start=int(system.load is None))}
        ends = [system.ends(k) for k in range(system.n_cables)]
        return cls(
            np.array([[rows[end.body] for end in pair] for pair in ends]),
            np.array([[end.point_m for end in pair] for pair in ends], float),
            np.array([cable.length_m for cable in system.cables]),
        )

    def chords_m(self, places_m: Array, yaws_rad: Array) -> Array:
        """Ways from end 1 to end 2 for level bodies, (n_cables, 3)."""
        return self.chords_of(places_m, from_yaw(yaws_rad))

    def chords_of(self, places_m: Array, turns_wxyz: Array) -> Array:
        """Ways from end 1 to end 2 for bodies with attitudes, (bodies, 4), (n_cables, 3)."""
        first, second = (
            places_m[self.row[:, end]] + rotate(turns_wxyz[self.row[:, end]], self.point_m[:, end])
            for end in (0, 1)
        )
        return np.asarray(second - first)

    def towards_load(self, drone: int, free: Sequence[int]) -> set[int]:
        """Cables from a drone's row to the load, over free bodies alone; empty where none leads."""
        reached = {drone}
        cables = set[int]()
        while True:
            more = {
                k
                for k, (a, b) in enumerate(self.row.tolist())
                if k not in cables
                and any(x in reached and (y in free or y == 0) for x, y in ((a, b), (b, a)))
            }
            if not more:
                break
            cables |= more
            reached |= {row for k in more for row in self.row[k].tolist() if row in free}
        holds = any(0 in self.row[k] for k in cables)
        return cables if holds else set()


# ---------- In the air


def rig_places_m(system: RigSystem, free: Sequence[int], given: Mapping[str, Any]) -> Array:
    """Places of the drones in the frame of the set-point, (n, 3) [m].

    Each drone counts as one that holds the load on one cable, from the middle of its hooks to where
    it is highest above them; the formation is the one that fits those. Without a load drones stand
    round the middle of the first cable.

    Args:
        system: The rig.
        free: Numbers of anchors that hang, from 1.
        given: Keys of `formation` that the scenario gives.
    """
    if given.get("places_m") is not None:
        places = np.array(given["places_m"], float)
        if places.shape != (system.n_drones, 3):
            raise ConfigError(
                f"formation.places_m has {len(places)} places for {system.n_drones} drones"
            )
        return places
    if system.load is None:
        return _round_the_middle(system)
    incidence = Incidence.of(system)
    rows = _free_rows(system, free)
    hooks = list[Array]()
    reach_m = list[float]()
    for i in range(system.n_drones):
        cables = incidence.towards_load(1 + i, rows)
        if not cables:
            raise ConfigError(
                f"formation: no cable leads from drone_{i + 1} to the load; give formation.places_m"
            )
        ends = [
            incidence.point_m[k, end]
            for k in cables
            for end in (0, 1)
            if incidence.row[k, end] == 0
        ]
        hooks.append(np.array(ends).mean(axis=0))
        highest = _highest(system, incidence, 1 + i, rows, sorted(cables))[1 + i]
        reach_m.append(float(highest[2] - hooks[i][2]))
    drones = tuple(replace(drone, cable_attachment_m=(0.0, 0.0, 0.0)) for drone in system.drones)
    alike = SlungLoadSystem(
        name=system.name,
        load=replace(system.load, cable_attachments_m=tuple(map(tuple, hooks))),
        drones=drones,
        cables=tuple(replace(system.cables[0], length_m=reach, ends=None) for reach in reach_m),
    )
    places = fitting_formation(alike, given).offsets_m(system.n_drones)
    bodies = np.zeros((1 + system.n_drones + len(system.anchors), 3))
    bodies[1 : 1 + system.n_drones] = places
    hangs = hanging_m(system, free, bodies, rig_yaws_rad(system, places))
    places = places - hangs[0]
    if system.n_drones == 1:  # a load that hangs leans until it is below
        places[0, :2] = 0.0
    return np.round(places, 6) + 0.0


def equivalent_formation(system: RigSystem, what: str) -> SlungLoadSystem:
    """A load on one cable to each drone that pulls at it as the drones of a rig do.

    Cables from one drone to several hooks count as one from their middle, as long as the drone is
    high above it; a knot on two legs or more as a place on the load, from which its line leads; a
    knot on one leg as a place on one long cable. Masses of knots and legs count to the load. What
    that leaves out: drones whose cables are apart turn the load as they turn.

    Raises:
        ConfigError: A cable between two drones, or to an anchor without mass; a drone without a
            cable to the load; a knot on one leg that several drones hold. `what` needs it.
    """
    load = system.load
    n = system.n_drones
    incidence = Incidence.of(system)
    knots = [1 + n + k for k, anchor in enumerate(system.anchors) if anchor.mass_kg is not None]
    known = {0, *range(1, 1 + n), *knots}
    for k, pair in enumerate(incidence.row.tolist()):
        if load is None or not set(pair) <= known or (min(pair) > 0 and max(pair) <= n):
            one, other = (end.body for end in system.ends(k))
            raise ConfigError(
                f"{what}: cable_{k + 1} of {system.name} joins {one} and {other}; only drones that "
                "carry a load are possible there, by knots (anchors with mass_kg) or without"
            )
    assert load is not None
    hooks = list[Array]()
    ends = list[Array]()
    lengths = list[float]()
    masses = list[float]()
    for i in range(1, 1 + n):
        own = [k for k in range(system.n_cables) if i in incidence.row[k]]
        points = [incidence.point_m[k, incidence.row[k].tolist().index(i)] for k in own]
        cables = sorted(incidence.towards_load(i, knots))
        if not cables:
            raise ConfigError(f"{what}: no cable of {system.name} leads from drone_{i} to the load")
        legs = [k for k in cables if 0 in incidence.row[k]]
        on_load = [incidence.point_m[k, incidence.row[k].tolist().index(0)] for k in legs]
        hook: Array = np.array(on_load).mean(axis=0)
        held = [int(incidence.row[k].max()) for k in own if incidence.row[k].max() > n]
        if len(own) == 1 and held and len(legs) > 1:
            hook = _highest(system, incidence, i, knots, cables)[held[0]]
            length_m = float(incidence.length_m[own[0]])
        elif len(own) == 1 and held:
            if sum(held[0] in row for row in incidence.row.tolist()) > 2:
                raise ConfigError(
                    f"{what}: several drones of {system.name} hold anchor_{held[0] - n}, which is "
                    "on one cable to the load; choose controller.kind: formation"
                )
            length_m = float(incidence.length_m[cables].sum())
        else:
            highest = _highest(system, incidence, i, knots, cables)[i]
            length_m = float(highest[2] + np.mean(points, axis=0)[2] - hook[2])
        hooks.append(np.round(hook, 9))
        ends.append(np.array(points).mean(axis=0))
        lengths.append(length_m)
        masses.append(sum(system.cables[k].mass_kg for k in own))
    knots_kg = sum(anchor.mass_kg or 0.0 for anchor in system.anchors)
    between_kg = sum(cable.mass_kg for cable in system.cables) - sum(masses)
    return SlungLoadSystem(
        name=system.name,
        load=replace(
            load,
            mass_kg=load.mass_kg + knots_kg + between_kg,
            cable_attachments_m=tuple(tuple(hook.tolist()) for hook in hooks),
        ),
        drones=tuple(
            replace(drone, cable_attachment_m=tuple(end.tolist()))
            for drone, end in zip(system.drones, ends, strict=True)
        ),
        cables=tuple(
            replace(system.cables[0], length_m=length_m, mass_kg=mass_kg, ends=None)
            for length_m, mass_kg in zip(lengths, masses, strict=True)
        ),
    )


def _round_the_middle(system: RigSystem) -> Array:
    """Places of drones without a load, evenly round; the middle of cable 1 is at the origin."""
    n = system.n_drones
    longest_m = max(cable.length_m for cable in system.cables)
    angles = np.pi + 2.0 * np.pi * np.arange(n) / n  # drone 1 to the left, as it is read
    apart_m = SPREAD_RATIO * longest_m
    radius_m = apart_m / (2.0 * np.sin(np.pi / n)) if n > 1 else 0.0
    sag_m = np.sqrt(3.0 / 8.0 * apart_m * (longest_m - apart_m))  # of a parabola
    places = np.column_stack(
        [radius_m * np.cos(angles), radius_m * np.sin(angles), np.full(n, sag_m)]
    )
    first = Incidence.of(system).row[0]
    if first.max() <= n:  # from drone to drone
        places[:, :2] -= places[first - 1, :2].mean(axis=0)
    return np.round(places, 6) + 0.0


def rig_yaws_rad(system: RigSystem, places_m: Array) -> Array:
    """Yaws of the bodies relative to the load's, (1 + n + anchors,).

    A drone with several hooks has each on the side of its cable's other end; one with a single
    hook faces the load, or looks as the load does where it is above it.
    """
    incidence = Incidence.of(system)
    yaws = np.zeros(1 + system.n_drones + len(system.anchors))
    for i, place in enumerate(places_m, start=1):
        ends = [
            (incidence.point_m[k, end], incidence.point_m[k, 1 - end])
            for k, rows in enumerate(incidence.row.tolist())
            for end in (0, 1)
            if rows[end] == i and rows[1 - end] == 0
        ]
        own, others = (np.array([pair[side] for pair in ends]).reshape(-1, 3) for side in (0, 1))
        turn = 0.0
        if len(ends) > 1:
            own = own - own.mean(axis=0)
            others = others - others.mean(axis=0)
            along = float(np.sum(own[:, :2] * others[:, :2]))
            across = float(np.sum(own[:, 0] * others[:, 1] - own[:, 1] * others[:, 0]))
            if np.hypot(along, across) > 1e-9:
                yaws[i] = np.arctan2(across, along)
                continue
        if np.hypot(*place[:2]) > CENTRAL_M and system.load is not None:
            turn = np.arctan2(place[1], place[0]) + np.pi
        yaws[i] = np.angle(np.exp(1j * turn))
    return yaws


def hanging_m(system: RigSystem, free: Sequence[int], bodies_m: Array, yaws_rad: Array) -> Array:
    """Places of all bodies, (1 + n + anchors, 3), load and free anchors where they hang level.

    `bodies_m`: places of the drones and of the anchors that do not hang.
    """
    rows = _free_rows(system, free)
    moving = [*([0] if system.load is not None else []), *rows]
    weights = np.zeros(len(bodies_m))
    if system.load is not None:
        weights[0] = system.load.mass_kg
    for row in rows:
        weights[row] = system.anchors[row - 1 - system.n_drones].mass_kg or 0.0
    incidence = Incidence.of(system)
    start = bodies_m.copy()
    held = [row for row in range(1, len(bodies_m)) if row not in rows]
    middle = bodies_m[held].mean(axis=0)
    for depth, row in enumerate(reversed(moving), start=1):
        start[row] = middle - [0.0, 0.0, 0.3 * depth * float(incidence.length_m.mean())]
    return _least(incidence, start, yaws_rad, moving, weights, range(len(incidence.length_m)))


def with_anchors(system: RigSystem, free: Sequence[int], anchors_enu_m: Array) -> RigSystem:
    """The rig with its free anchors elsewhere; places of all of them, (n_anchors, 3)."""
    anchors = list(system.anchors)
    for i in free:
        place = tuple(np.asarray(anchors_enu_m[i - 1]).tolist())
        anchors[i - 1] = replace(anchors[i - 1], position_enu_m=place)
    return replace(system, anchors=tuple(anchors))


def _highest(
    system: RigSystem, incidence: Incidence, drone: int, free: Sequence[int], cables: Sequence[int]
) -> Array:
    """Places of all bodies where a drone is highest above a level load at the origin.

    Load and drone hold on some cables alone; the others' bodies are at the origin.
    """
    places = np.zeros((1 + system.n_drones + len(system.anchors), 3))
    moving = [drone, *(row for row in free if row in incidence.row[list(cables)])]
    for up, row in enumerate(reversed(moving), start=1):
        places[row] = [0.0, 0.0, 0.3 * up * float(incidence.length_m[list(cables)].mean())]
    weights = np.zeros(len(places))
    weights[drone] = -1.0
    yaws = rig_yaws_rad(system, np.zeros((system.n_drones, 3)))
    return _least(incidence, places, yaws, moving, weights, cables)


def _least(
    incidence: Incidence,
    start: Array,
    yaws_rad: Array,
    moving: Sequence[int],
    weights: Array,
    cables: Sequence[int] | range,
) -> Array:
    """Places of least potential energy of the bodies that move, no cable longer than it is."""
    if not moving:
        return start
    index = list(cables)
    lengths = incidence.length_m[index]
    scale = max(float(np.abs(weights).max()), 1e-9)

    def placed(x: Array) -> Array:
        places = start.copy()
        places[list(moving)] = x.reshape(-1, 3)
        return places

    def left(x: Array) -> Array:
        chords = incidence.chords_m(placed(x), yaws_rad)[index]
        return np.asarray(1.0 - np.sum(chords**2, axis=1) / lengths**2)

    def energy(x: Array) -> float:
        return float(weights[list(moving)] @ x.reshape(-1, 3)[:, 2] / scale)

    found = scipy.optimize.minimize(
        energy,
        start[list(moving)].ravel(),
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": left}],
        options={"ftol": 1e-10, "maxiter": 300},
    )
    if not np.isfinite(found.x).all() or left(found.x).min() < -0.05:
        raise ConfigError(
            "formation: the cables do not reach from the drones to what hangs on them; give "
            "formation.places_m nearer to the load"
        )
    return placed(found.x)


def _free_rows(system: RigSystem, free: Sequence[int]) -> list[int]:
    return [system.n_drones + number for number in free]


# ---------- On the ground


@dataclass(frozen=True)
class RigOnGround:
    """A rig whose bodies stand on the ground, with slack cables in bows along it.

    Attributes:
        place_enu_m: Load, drones, anchors, (1 + n + anchors, 3).
        orientation_wxyz: Attitudes of them, (1 + n + anchors, 4).
        twists: Angular velocities and velocities with which they move with the ground below them,
            world, (1 + n + anchors, 6); 0 of anchors that do not hang.
        nodes_enu_m: Nodes of each cable from end 1 to end 2, (links + 1, 3) each.
    """

    place_enu_m: Array
    orientation_wxyz: Array
    twists: Array
    nodes_enu_m: list[Array]


def rig_on_ground(
    system: RigSystem,
    free: Sequence[int],
    places_m: Array,
    middle_enu_m: Array,
    *,
    yaws_rad: Array | None = None,
    ratio: float = SLACK_RATIO,
    ground: Ground | None = None,
) -> RigOnGround:
    """Put a rig on the ground, drones in the directions in which they fly.

    Where the ground is not flat, bodies stand on it where they would on flat ground, seen from
    above.

    Cables are slack by `ratio`, the distance of their ends over their length, as far as load,
    drones and rotors leave room. Anchors that do not hang stay where they are.

    Args:
        system: The rig.
        free: Numbers of anchors that hang in the air and lie on the ground, from 1.
        places_m: Places of the drones in the air, round the load or the middle, (n, 3).
        middle_enu_m: Place of the load, or of the middle, (2,).
        yaws_rad: Yaws of the drones, (n,); by default those of `rig_yaws_rad`.
        ratio: Distance of a cable's ends over its length that is looked for.
        ground: The ground, None where it is flat, at z = 0.

    Raises:
        ConfigError: A cable does not reach, rotors would overlap, or a body would slide, tip over
            or stand across an edge.
    """
    n = system.n_drones
    incidence = Incidence.of(system)
    rows = _free_rows(system, free)
    yaws = rig_yaws_rad(system, places_m)
    if yaws_rad is not None:
        yaws[1 : 1 + n] = yaws_rad
    ways = _directions(system, places_m)
    near_m = np.array([tip_radius_m(drone) for drone in system.drones])
    near_m += BESIDE_LOAD_M
    heights = np.zeros(1 + n + len(system.anchors))
    load = system.load
    if load is not None:
        heights[0] = -load.collision.bottom_m
        corners = load.collision.corners_m[:, :2]
        near_m = near_m + (ways @ corners.T).max(axis=1)
    heights[1 : 1 + n] = [-drone.collision.bottom_m for drone in system.drones]
    places = np.column_stack([np.tile(middle_enu_m, (len(heights), 1)), heights])
    for row, anchor in enumerate(system.anchors, start=1 + n):
        if row in rows:
            box = anchor.collision
            places[row, 2] = KNOT_M / 2.0 if box is None else -box.bottom_m
        else:
            places[row] = anchor.position_enu_m

    def placed(x: Array) -> Array:
        at = places.copy()
        at[1 : 1 + n, :2] = middle_enu_m + x[:n, None] * ways
        at[rows, :2] = x[n:].reshape(-1, 2)
        return at

    def errors(x: Array) -> Array:
        at = placed(x)
        chords = np.linalg.norm(incidence.chords_m(at, yaws), axis=1) / incidence.length_m
        too_long = 10.0 * np.maximum(chords - ratio, 0.0)
        crowded = 10.0 * np.maximum(GROUND_TIPS_M - tip_gaps_m(system, at[1 : 1 + n]), 0.0)
        return np.concatenate([chords - ratio, too_long, crowded])

    first_m = np.maximum(near_m, 0.5 * float(incidence.length_m.mean()))
    knots = [middle_enu_m + 0.5 * first_m.mean() * ways.mean(axis=0) for _ in rows]
    start = np.concatenate([first_m, *knots]) if rows else first_m
    low = np.concatenate([near_m, np.full(2 * len(rows), -np.inf)])
    found = scipy.optimize.least_squares(errors, np.maximum(start, low), bounds=(low, np.inf))
    at = placed(found.x)
    turns = from_yaw(yaws)
    twists = np.zeros((len(at), 6))
    if ground is not None:
        _stand(ground, _boxes(system, rows), at, turns, twists)
    ups = rotate(turns, np.tile([0.0, 0.0, 1.0], (len(at), 1)))
    chords = incidence.chords_of(at, turns)
    long = np.linalg.norm(chords, axis=1) / incidence.length_m
    for k in np.flatnonzero(long > TAUT_RATIO):
        one, other = (end.body for end in system.ends(int(k)))
        length_m = float(incidence.length_m[k])
        raise ConfigError(
            f"start.kind = ground: cable_{k + 1} of {length_m:g} m does not reach from {one} to "
            f"{other} where both stand on the ground, {long[k] * length_m:.3g} m apart; choose a "
            "longer cable or start: equilibrium"
        )
    apart_m = tip_gaps_m(system, at[1 : 1 + n])
    if apart_m.min(initial=np.inf) < LEAST_TIPS_M:
        raise ConfigError(
            "start.kind = ground: rotors of drones that stand beside the load would be "
            f"{apart_m.min():.2g} m apart; choose longer cables, formation.places_m or start: "
            "equilibrium"
        )
    nodes = [
        _lying(at, turns, incidence, k, cable.links, None if ground is None else ups)
        for k, cable in enumerate(system.cables)
    ]
    return RigOnGround(at, turns, twists, nodes)


def _boxes(system: RigSystem, anchors: Sequence[int]) -> dict[int, tuple[str, Box]]:
    """Names and boxes of what stands on the ground, by rows: load, drones, and these anchors."""
    boxes = {1 + i: (f"drone_{i + 1}", drone.collision) for i, drone in enumerate(system.drones)}
    if system.load is not None:
        boxes[0] = "load", system.load.collision
    knot = Box(size_m=(KNOT_M, KNOT_M, KNOT_M))
    for row in anchors:
        number = row - system.n_drones
        boxes[row] = f"anchor_{number}", system.anchors[number - 1].collision or knot
    return boxes


def _stand(
    ground: Ground, boxes: dict[int, tuple[str, Box]], at: Array, turns: Array, twists: Array
) -> None:
    """Put bodies on the ground below or above their places; their rows are written."""
    for row, (name, box) in sorted(boxes.items()):
        yaw = float(yaw_of(turns[row : row + 1])[0])
        x, y, _ = at[row].tolist()
        at[row], rotation = ground.stand(box, name, x, y, yaw)
        turns[row] = from_matrix(rotation[None])[0]
        twists[row] = ground.twist(at[row])


def _directions(system: RigSystem, places_m: Array) -> Array:
    """Horizontal unit vectors in which the drones stand, (n, 2).

    One above the load stands where that is narrowest.
    """
    across = np.array([0.0, -1.0])
    if system.load is not None:
        x, y = system.load.collision.size_m[:2]
        across = np.array([-1.0, 0.0]) if x < y else across
    flat = places_m[:, :2]
    far = np.linalg.norm(flat, axis=1)
    ways = flat / np.maximum(far, 1e-9)[:, None]
    ways[far < CENTRAL_M] = across
    return np.asarray(ways)


def _lying(
    places_m: Array,
    turns_wxyz: Array,
    incidence: Incidence,
    k: int,
    links: int,
    ups: Array | None,
) -> Array:
    """Nodes of a slack cable in a bow between its ends, (links + 1, 3).

    Level, or in a plane as level as the ground where the bodies stand, whose `ups` these are.
    """
    first, second = incidence.row[k]
    turn = turns_wxyz[first : first + 1]
    begin = places_m[first] + rotate(turn, incidence.point_m[k, :1])[0]
    chord = incidence.chords_of(places_m, turns_wxyz)[k]
    length_m = float(incidence.length_m[k])
    if ups is None:
        return np.asarray(begin + bow(links, chord, length_m))
    way = uneven_bow(links, length_m, chord, ups[first] + ups[second]) * length_m / links
    return np.asarray(begin + np.vstack([np.zeros(3), np.cumsum(way, axis=0)]))
