"""Collisions: drones that hit each other, the load, a cable, the ground; all of them obstacles.

A drone is its rotors' discs and the box of its landing gear, the load is its box: solids as the
obstacles are, a disc a cylinder without height. Projecting a point from one solid onto the other
and back (von Neumann's alternating projections) ends in one place where they touch, else in the two
points that are nearest to each other. A cable hits a rotor where one of its segments passes through
the disc. What hits each other in the air goes on through each other; which contacts a plant knows
is its affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.mission.plan import Closest, FlightPlan, closest_in_plan, closest_pair
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.config.schema import Vector3
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.rotations import from_yaw
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
from musls_description.system.drone import Box, propeller_radius_m, tip_radius_m
from musls_description.system.obstacles import BOX, CYLINDER, AnyObstacle, nearest_point, solids_of
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.interface import Plant
from musls_sim.scenario.sensors import LimitsSpec

HARD_LANDING_M_S = 1.0
"""A drone that meets the ground faster than this, downwards, has hit it."""

TOUCH_M = 1e-3
"""Bodies closer than this touch."""

MAX_PROJECTIONS = 100
"""Alternating projections converge slowly only where bodies just touch."""

BOUNCE_PERIODS = 125
"""Control periods (0.5 s) within which bodies that touch again have the same collision."""

CABLE_PERIODS = 5
"""Control periods between two looks at the cables."""

PLAN_PERIOD_S = 0.04
"""Time between two looks at a plan."""

STRETCH = 1.05
"""Largest stretched over free length of a cable that is looked for near a drone."""

OWN = np.dtype(
    [
        ("kind", np.int64),
        ("place", float, 3),  # of its centre, body frame
        ("position", float, 3),  # from here on as `SOLID`, where the body is
        ("rotation", float, (3, 3)),
        ("size", float, 3),
    ]
)
"""Solid of the load or a drone."""

CABLE = np.dtype(
    [
        ("index", np.int64),
        ("body_1", np.int64),
        ("point_1", float, 3),  # in the body's frame
        ("body_2", np.int64),
        ("point_2", float, 3),
    ]
)

CLOSEST = np.dtype(
    [
        ("gap", float),  # smallest distance so far
        ("body", np.int64),  # what came so close: load, drones, then cables
        ("point", float, 3),  # of the obstacle
        ("time", float),
    ]
)

TOUCHING = np.dtype(
    [
        ("body", np.int64),
        ("speed", float),  # -1 where nothing is touched
        ("point", float, 3),
    ]
)


class CollisionError(MuslsError):
    """Bodies collided, and the scenario ends there (`limits.collision: end`)."""


# ---------- Solids of load and drones, and their contact


@compiled()
def to_world(row, place):
    """Point in the world of a place in a body's frame; `row` is the body's motion."""
    return add(row, rotate_by(row[6:10], place))


@compiled()
def placed(solids, first, i, row):
    """Return the solids of body i, first[i] to first[i + 1], where the body is."""
    axes = body_axes_in_world(row[6:10])
    for k in range(first[i], first[i + 1]):
        put(solids[k].position, to_world(row, solids[k].place))
        write_matrix(solids[k].rotation, axes)
    return solids[first[i] : first[i + 1]]


@compiled()
def reach_along(solid, direction):
    """Support function of a solid about its centre; the direction is not of unit length."""
    u, v, w = rotate_back(solid.rotation, direction)
    a, b, c = solid.size[0], solid.size[1], solid.size[2]
    if solid.kind == CYLINDER:
        return a * np.hypot(u, v) + c * abs(w)
    return a * abs(u) + b * abs(v) + c * abs(w)


@compiled()
def gap_between(one, other, limit):
    """Return the distance of two solids, and the point of the other one nearest to the one.

    The other is behind the plane across the way between two nearest points: what is left of that
    distance with the one's reach is a lower bound. Ends where that is beyond the limit, too.
    """
    point = nearest_point(other, one.position)
    gap = np.inf
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
    return gap, point


@compiled()
def point_velocity(row, point):
    """Velocity of a point of a moving body."""
    arm = sub(point, row)
    return add(row[3:6], cross(rotate_by(row[6:10], row[10:13]), arm))


@compiled()
def contact(ones, others, motion_1, motion_2):
    """Return the relative speed of two bodies where they touch, -1 if they do not."""
    for p in range(len(ones)):
        for q in range(len(others)):
            gap, point = gap_between(ones[p], others[q], TOUCH_M)
            if gap < TOUCH_M:
                v = point_velocity(motion_1, point)
                return norm(sub(v, point_velocity(motion_2, point)))
    return -1.0


# ---------- Distances to obstacles, which stand still


@compiled()
def segment_gap(a, b, solid):
    """Return the distance of a straight line from a to b and a solid, and the solid's point."""
    along = sub(b, a)
    share, gap = 0.5, np.inf
    length2 = max(dot(along, along), 1e-12)
    point = a[0], a[1], a[2]
    for _ in range(MAX_PROJECTIONS):
        on_line = add_scaled(a, share, along)
        point = nearest_point(solid, on_line)
        before, gap = gap, norm(sub(on_line, point))
        if gap < TOUCH_M or before - gap < 0.01 * TOUCH_M:
            break
        share = min(max(dot(sub(point, a), along) / length2, 0.0), 1.0)
    return gap, point


@compiled()
def note_gap(closest, touching, gap, point, speed, time_s):
    """Take in a distance to an obstacle: its smallest so far, and where it is touched now."""
    if gap < closest.gap:
        closest.gap, closest.body, closest.time = gap, touching.body, time_s
        put(closest.point, point)
    if gap < TOUCH_M and speed > touching.speed:
        touching.speed = speed
        put(touching.point, point)


@compiled()
def watch_bodies(own, first, reach, motion, solids, closest, touching, time_s):
    """Distances of load and drones to obstacles; whether any is touched.

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
            limit = max(closest[solid.obstacle].gap, TOUCH_M)
            if far > limit:
                continue
            for one in placed(own, first, i, motion[i]):
                gap, point = gap_between(one, solid, limit)
                speed = norm(point_velocity(motion[i], point))
                note_gap(
                    closest[solid.obstacle], touching[i, solid.obstacle], gap, point, speed, time_s
                )
                touches |= gap < TOUCH_M
    return touches


@compiled()
def watch_cable(nodes, solids, closest, touching, time_s):
    """The same for the segments of a cable, (k, 3); `touching`: (obstacles,)."""
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
                note_gap(closest[solid.obstacle], touching[solid.obstacle], gap, point, 0.0, time_s)
                touches |= gap < TOUCH_M
    return touches


@compiled()
def depth_and_fall(solid, row):
    """Depth below z = 0 of a solid's lowest point, and the speed with which it goes down."""
    up = rotate_back(solid.rotation, (0.0, 0.0, 1.0))  # the vertical in the body's frame
    a, b, c = solid.size[0], solid.size[1], -np.copysign(solid.size[2], up[2])
    if solid.kind == CYLINDER:
        share = -a / max(np.hypot(up[0], up[1]), 1e-12)
        lowest = (share * up[0], share * up[1], c)
    else:
        lowest = (-np.copysign(a, up[0]), -np.copysign(b, up[1]), c)
    point = add(solid.position, rotate(solid.rotation, lowest))
    return -point[2], -point_velocity(row, point)[2]


@compiled()
def ground_contact(solids, row):
    """Return how fast a drone meets the ground, -1 for one that does not, or stands or lands."""
    speed = -1.0
    for p in range(len(solids)):
        depth, fall = depth_and_fall(solids[p], row)
        if depth > 0.0 and (solids[p].kind == CYLINDER or fall > HARD_LANDING_M_S):
            speed = max(speed, abs(fall))
    return speed


@compiled()
def find_contacts(solids, first, reach, motion, speed_m_s):
    """Write with which speed bodies touch, -1 where they do not; whether any do.

    The solids of body i are within reach[i] of its centre of mass.
    `speed_m_s`: of each pair (n, n), and on the diagonal with the ground.
    """
    n, any_touch = len(reach), False
    for i in range(n):
        for j in range(i, n):
            speed_m_s[i, j] = -1.0
            if i == j:
                if i > 0 and motion[i, 2] < reach[i]:
                    speed_m_s[i, i] = ground_contact(placed(solids, first, i, motion[i]), motion[i])
            elif norm(sub(motion[i], motion[j])) < reach[i] + reach[j]:
                ones = placed(solids, first, i, motion[i])
                others = placed(solids, first, j, motion[j])
                speed_m_s[i, j] = contact(ones, others, motion[i], motion[j])
            any_touch |= speed_m_s[i, j] >= 0.0
    return any_touch


@compiled()
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
            if np.hypot(crossing[0], crossing[1]) < disc.size[0]:
                return True
        before = after
    return False


# ---------- The watch of a flight


@dataclass(frozen=True)
class Collision:
    """Two bodies that begin to touch.

    Attributes:
        bodies: Their names; "ground", "cable_1", ... and obstacles among them.
        speed_m_s: Relative speed where they touch; None for a cable.
        place_enu_m: Where an obstacle is touched.
    """

    bodies: tuple[str, str]
    speed_m_s: float | None
    place_enu_m: Vector3 | None = None

    def __str__(self) -> str:
        """Text of the event."""
        speed = "" if self.speed_m_s is None else f" at {self.speed_m_s:.1f} m/s"
        place = ""
        if self.place_enu_m is not None:
            x, y, z = np.round(self.place_enu_m, 2) + 0.0
            place = f", at ({x:.2f}, {y:.2f}, {z:.2f}) m"
        return f"{self.bodies[0]} and {self.bodies[1]}{speed}{place}"


class CollisionWatch:
    """Says which bodies begin to touch.

    Cables are looked at every 20 ms, those of load and drones, near where they are fastened: of one
    that has come loose a part may be missed. A drone that touches the load at the start stands on
    it or is fixed to it: that is no collision. Nor is it one that a body stands on an obstacle.

    Attributes:
        obstacles: Obstacles that are watched.
        closest: Smallest distance to each obstacle so far, records of `CLOSEST`.
        arrays: What `find_contacts` and `find_near_cables` take, by its name in `WORLD`.
    """

    def __init__(self, plant: Plant, obstacles: Sequence[AnyObstacle] = ()) -> None:
        """Prepare for a system in its state at the start."""
        self._plant, self._motion = plant, plant.state.motion
        system = plant.system
        n = system.n_drones + 1
        self._names = ["load", *(f"drone_{i}" for i in range(1, n))]
        self._own, self._first = _own_solids(system)
        sizes = np.linalg.norm(self._own["place"], axis=1)
        sizes += np.linalg.norm(self._own["size"], axis=1)
        spans = [slice(*span) for span in pairwise(self._first)]
        self._reach = np.array([sizes[span].max(initial=0.0) for span in spans])
        self._speed = np.full((n, n), -1.0)
        self._lengths_m = np.array([cable.length_m for cable in system.cables])
        self._cables = _fastened_cables(system, self._names)
        self._near = np.zeros((len(self._cables), n), dtype=bool)
        self._touched: dict[tuple[str, str], int] = {}
        self.obstacles, self._solids = obstacles, solids_of(obstacles)
        self._bodies = [*self._names, *(f"cable_{k + 1}" for k in range(system.n_cables))]
        self.closest = np.zeros(len(obstacles), CLOSEST)
        self.closest["gap"] = np.inf
        self._touching = np.zeros((len(self._bodies), len(obstacles)), TOUCHING)
        self._touching["body"] = np.arange(len(self._bodies))[:, None]
        self.arrays = {
            "solids": self._own,
            "first_solid": self._first,
            "reach": self._reach,
            "contact_speed": self._speed,
            "fastened": self._cables,
            "cable_length": self._lengths_m,
            "near": self._near,
        }
        self._standing = np.zeros(n, dtype=bool)
        for one, other in (collision.bodies for collision in self.look(0)):
            if one != "load" and other != "ground" and other in self._names:
                raise ConfigError(f"{one} and {other} overlap at the start: place them apart")
        self._standing = self._speed[0] >= 0.0
        self._touched.clear()  # what touches the ground fast has yet to be told
        self._refuse_overlap()

    def look(self, tick: int) -> list[Collision]:
        """Look at the state; what touches and has not for half a second."""
        found: dict[tuple[str, str], Collision] = {}
        if find_contacts(self._own, self._first, self._reach, self._motion, self._speed):
            self._speed[0, self._standing] = -1.0
            for i, j in np.argwhere(self._speed >= 0.0):
                pair = self._names[i], "ground" if i == j else self._names[j]
                found[pair] = Collision(pair, float(self._speed[i, j]))
        cables = (tick + 1) % CABLE_PERIODS == 0
        if cables:
            found |= {pair: Collision(pair, None) for pair in self._cut_cables()}
        if self.obstacles:
            time_s = (tick + 1) * self._plant.period_s
            touched = self._touched_obstacles(self._own, time_s, cables)
            found |= {collision.bodies: collision for collision in touched}
        new = []
        for pair, collision in found.items():
            if tick - self._touched.get(pair, -BOUNCE_PERIODS) >= BOUNCE_PERIODS:
                new.append(collision)
            self._touched[pair] = tick
        return new

    def distances(self) -> list[dict[str, Any]]:
        """Smallest distance to each obstacle so far, what came so close, when and where."""
        return [
            {
                "obstacle": obstacle.name,
                "distance_m": 0.0 if row["gap"] < TOUCH_M else float(row["gap"]),
                "body": self._bodies[row["body"]],
                "time_s": float(row["time"]),
                "place_enu_m": row["point"].tolist(),
            }
            for obstacle, row in zip(self.obstacles, self.closest, strict=True)
        ]

    def _touched_obstacles(self, own: Records, time_s: float, cables: bool) -> list[Collision]:
        """Bodies that touch an obstacle now."""
        n, touching = len(self._names), self._touching
        watched = self._solids, self.closest
        bodies = own, self._first, self._reach, self._motion
        touches = watch_bodies(*bodies, *watched, touching[:n], time_s)
        if cables:
            for k in range(len(touching) - n):
                nodes = np.ascontiguousarray(self._plant.cable_nodes_enu_m(k))
                touches |= watch_cable(nodes, *watched, touching[n + k], time_s)
        if not touches:
            return []
        found = []
        for i, j in np.argwhere(touching["speed"] >= 0.0):
            x, y, z = touching[i, j]["point"].tolist()
            speed_m_s = float(touching[i, j]["speed"]) if i < n else None
            pair = self._bodies[i], self.obstacles[j].name
            found.append(Collision(pair, speed_m_s, (x, y, z)))
        return found

    def _refuse_overlap(self) -> None:
        """Refuse what is inside an obstacle at the start; what stands on one may."""
        if not self.obstacles:
            return
        smaller = self._own.copy()
        smaller["size"] = np.maximum(smaller["size"] - 3.0 * TOUCH_M, 0.0)
        for collision in self._touched_obstacles(smaller, 0.0, cables=True):
            one, other = collision.bodies
            raise ConfigError(f"{one} and obstacle {other} overlap at the start: place them apart")
        self.closest["gap"] = np.inf
        for collision in self._touched_obstacles(self._own, 0.0, cables=True):
            self._touched[collision.bodies] = 0

    def _cut_cables(self) -> Iterator[tuple[str, str]]:
        """Pairs of drone and cable where the cable passes through a rotor."""
        state = self._plant.state
        lengths_m = state.free_length_m if state.reels else self._lengths_m
        if find_near_cables(self._cables, self._reach, self._motion, lengths_m, self._near):
            for k, index in enumerate(self._cables["index"]):
                if self._near[k].any():
                    nodes = np.ascontiguousarray(self._plant.cable_nodes_enu_m(index))
                    for i in np.flatnonzero(self._near[k]):
                        _, *discs = placed(self._own, self._first, i, self._motion[i])
                        if any(cut(disc, nodes) for disc in discs):
                            yield self._names[i], f"cable_{index + 1}"


def obstacles_in_plan(
    system: RigSystem, plan: FlightPlan, obstacles: Sequence[AnyObstacle]
) -> list[str]:
    """Bodies that a plan brings into obstacles: level drones and the load at their set-points."""
    n = system.n_drones + 1
    own, first = _own_solids(system)
    reach = np.full(n, np.inf)
    closest, touching = np.zeros(len(obstacles), CLOSEST), np.zeros((n, len(obstacles)), TOUCHING)
    closest["gap"], touching["body"] = np.inf, np.arange(n)[:, None]
    motion, found = np.zeros((n, 16)), dict[tuple[int, int], float]()
    solids, each = solids_of(obstacles), max(1, round(PLAN_PERIOD_S * plan.rate_hz))
    for k in range(0, len(plan.stage), each):
        motion[0, :3], motion[0, 6:10] = plan.load_pose[k, :3], plan.load_orientation_wxyz[k]
        motion[1:, :3] = plan.drone_position_enu_m[k]
        motion[1:, 6:10] = from_yaw(plan.drone_yaw_rad[k])
        if watch_bodies(own, first, reach, motion, solids, closest, touching, 0.0):
            for i, j in np.argwhere(touching["speed"] >= 0.0):
                found.setdefault((int(i), int(j)), k / plan.rate_hz)
    return [
        f"the plan brings {'load' if i == 0 else f'drone_{i}'} into {obstacles[j].name} "
        f"at {time_s:.1f} s, in '{plan.stage_names[plan.stage[round(time_s * plan.rate_hz)]]}'"
        for (i, j), time_s in found.items()
    ]


def _own_solids(system: RigSystem) -> tuple[Records, NDArray[np.int64]]:
    """Solids of load and drones, records of `OWN`, and where those of each begin, (n + 1,)."""
    load, level, first = system.load, np.eye(3), [0]
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


def _fastened_cables(system: RigSystem, names: Sequence[str]) -> NDArray[np.void]:
    """Cables between load and drones, records of `CABLE`."""
    ends = [(k, *system.ends(k)) for k in range(system.n_cables)]
    return np.array(
        [
            (k, names.index(one.body), one.point_m, names.index(two.body), two.point_m)
            for k, one, two in ends
            if one.body in names and two.body in names
        ],
        CABLE,
    )


# ---------- Least distances between drones: in the plan before the flight, and in flight


def check_separation(system: RigSystem, plan: FlightPlan, limits: LimitsSpec) -> None:
    """Refuse a plan that brings drones closer than the limit (raises ConfigError)."""
    if limits.separation_m is None:
        return
    closest = closest_in_plan(system, plan)
    if closest is not None and closest.tips_m < limits.separation_m:
        k = min(int(closest.time_s * plan.rate_hz), len(plan.stage) - 1)
        raise ConfigError(
            f"limits.separation_m = {limits.separation_m:g}: the plan brings the rotor tips of "
            f"drone_{closest.pair[0]} and drone_{closest.pair[1]} within {closest.tips_m:.2f} m "
            f"(centres {closest.centres_m:.2f} m) at {closest.time_s:.1f} s, in "
            f"'{plan.stage_names[plan.stage[k]]}'; choose a wider formation"
        )


class SeparationWatch:
    """Watches how close the drones come to each other.

    Attributes:
        every: Control periods between two looks.
        closest: The closest so far, None before the first look.
    """

    every = 5

    def __init__(self, system: RigSystem, limits: LimitsSpec) -> None:
        self._radii = np.array([tip_radius_m(drone) for drone in system.drones])
        self._limits_m = {"rotors_overlap": 0.0}
        if limits.separation_m:
            self._limits_m["too_close"] = limits.separation_m
        self._below: set[str] = set()
        self._least_m = np.inf
        self.closest: Closest | None = None

    def look(self, time_s: float, position_enu_m: Array) -> list[tuple[str, str]]:
        """Look at all pairs; kinds and texts of the events when the closest begins to be too close.

        `position_enu_m`: centres of mass of all bodies, (1 + n, 3).
        """
        i, j, tips_m = self._note_closest([time_s], position_enu_m[None])
        below = {kind for kind, limit_m in self._limits_m.items() if tips_m < limit_m}
        pair = f"drones {i + 1} and {j + 1}"
        text = f"rotor tips of {pair} within {tips_m:.2f} m"
        if tips_m < 0.0:
            text = f"rotor discs of {pair} overlap"
        begun = [(kind, text) for kind in self._limits_m if kind in below - self._below]
        self._below = below
        return begun

    def look_at(
        self, times_s: Sequence[float], position_enu_m: Array
    ) -> Iterator[tuple[float, str, str]]:
        """The same of many times with their positions, (T, 1 + n, 3)."""
        if self._note_closest(times_s, position_enu_m)[2] >= max(self._limits_m.values()):
            self._below = set()
            return
        for time_s, places in zip(times_s, position_enu_m, strict=True):
            yield from ((time_s, kind, what) for kind, what in self.look(time_s, places))

    def _note_closest(
        self, times_s: Sequence[float], position_enu_m: Array
    ) -> tuple[int, int, float]:
        """The two drones that come closest, from 0, and the distance of their rotor tips."""
        places = position_enu_m[:, 1 : 1 + len(self._radii)]
        row, i, j, centres_m, tips_m = closest_pair(places, self._radii)
        if tips_m < self._least_m:
            self._least_m = tips_m
            self.closest = Closest(times_s[row], (i + 1, j + 1), centres_m, tips_m)
        return i, j, tips_m
