"""Collisions of drones with each other, load, cables and ground, and of all bodies with obstacles.

They are only reported here: colliding bodies pass through each other. Contact forces depend on the
plant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.brief.brief import LimitsSpec
from musls_control.mission.plan import Closest, closest_pair
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.config.schema import Vector3
from musls_description.numerics.arrays import Array, Records
from musls_description.system.contacts import (
    CABLE,
    CABLE_PERIODS,
    CLOSEST,
    LEFT_OUT,
    TOUCH_M,
    TOUCHING,
    cut,
    find_contacts,
    find_near_cables,
    own_solids,
    place,
    watch_bodies,
    watch_cable,
)
from musls_description.system.drone import tip_radius_m
from musls_description.system.obstacles import GROUND, WorldSpec, solids_of
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.interface import Plant

BOUNCE_PERIODS = 125
"""Control periods (0.5 s) within which bodies that touch again have the same collision."""


class CollisionError(MuslsError):
    """Bodies collided, and the scenario ends there (`limits.collision: end`)."""


@dataclass(frozen=True)
class Collision:
    """Two bodies that begin to touch.

    Attributes:
        bodies: Names of the bodies; also "ground", "cable_1", ... and obstacles.
        speed_m_s: Relative speed with which they meet; None for a cable.
        place_enu_m: Point where an obstacle is touched.
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
    it or is fixed to it: that is no collision. Nor is it one that a body stands on an obstacle, or
    lands softly on one that is ground.

    Attributes:
        obstacles: Obstacles that are watched.
        closest: Smallest distance to each obstacle so far, records of `CLOSEST`.
        arrays: Arrays that compiled code checks, by name in `WORLD`.
    """

    def __init__(self, plant: Plant, world: WorldSpec | None = None) -> None:
        """Prepare for a system in its state at the start."""
        world = WorldSpec() if world is None else world
        obstacles = world.surfaces
        self._plant = plant
        self._motion = plant.state.motion
        system = plant.system
        n = system.n_drones + 1
        self._names = ["load", *(f"drone_{i}" for i in range(1, n))]
        self._own, self._first = own_solids(system)
        sizes = np.linalg.norm(self._own["place"], axis=1)
        sizes += np.linalg.norm(self._own["size"], axis=1)
        spans = [slice(*span) for span in pairwise(self._first)]
        self._reach = np.array([sizes[span].max(initial=0.0) for span in spans])
        self._speed = np.full((n, n), -1.0)
        self._lengths_m = np.array([cable.length_m for cable in system.cables])
        if plant.state.reels:
            self._lengths_m = plant.state.free_length_m  # which changes
        self._cables = _fastened_cables(system, self._names)
        self._near = np.zeros((len(self._cables), n), dtype=bool)
        self._touched: dict[tuple[str, str], int] = {}
        self.obstacles = obstacles
        self._solids = solids_of(obstacles)
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
            "obstacles": self._solids,
            "closest": self.closest,
            "touching": self._touching[:n],
        }
        if world.level_ground_m is None:  # it is among the obstacles
            np.fill_diagonal(self._speed, LEFT_OUT)
        for one, other in (collision.bodies for collision in self.look(0)):
            if one != "load" and other != "ground" and other in self._names:
                raise ConfigError(f"{one} and {other} overlap at the start: place them apart")
        self._speed[0, self._speed[0] >= 0.0] = LEFT_OUT  # they stand on the load
        self._touched.clear()  # what touches the ground fast has yet to be told
        self._refuse_overlap()

    def look(self, tick: int) -> list[Collision]:
        """Look at the state; what touches and has not for half a second."""
        contacts: dict[tuple[str, str], Collision] = {}
        own = self._own, self._first, self._reach, self._motion
        if find_contacts(*own, self._plant.period_s, self._speed):
            for i, j in np.argwhere(self._speed >= 0.0):
                pair = self._names[i], "ground" if i == j else self._names[j]
                contacts[pair] = Collision(pair, float(self._speed[i, j]))
        if (tick + 1) % CABLE_PERIODS == 0:
            contacts |= {pair: Collision(pair, None) for pair in self._cut_cables()}
        hits = self._touched_obstacles(self._own, (tick + 1) * self._plant.period_s)
        return self._new(tick, contacts | {collision.bodies: collision for collision in hits})

    def look_at_cables(self, tick: int) -> list[Collision]:
        """Note which cables begin to touch obstacles."""
        hits = self._obstacles_at_cables((tick + 1) * self._plant.period_s)
        return self._new(tick, {collision.bodies: collision for collision in hits})

    def next_look_at_cables(self, tick: int) -> float:
        """First period from one on in which cables are looked at."""
        return tick + (-tick - 1) % CABLE_PERIODS

    def _new(self, tick: int, contacts: dict[tuple[str, str], Collision]) -> list[Collision]:
        """Collisions of pairs that have not touched for half a second."""
        new = []
        for pair, collision in contacts.items():
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
            if obstacle.name != GROUND
        ]

    def _touched_obstacles(self, own: Records, time_s: float) -> Iterator[Collision]:
        """Load and drones that touch an obstacle now."""
        if not self.obstacles:
            return
        n = len(self._names)
        bodies = (own, self._first, self._reach, self._motion)
        noted = self.closest, self._touching[:n], time_s
        if watch_bodies(*bodies, self._solids, *noted, self._plant.period_s):
            yield from self._touches(range(n))

    def _obstacles_at_cables(self, time_s: float) -> Iterator[Collision]:
        """Cables that do."""
        n = len(self._names)
        for k, touching in enumerate(self._touching[n:]):
            nodes = np.ascontiguousarray(self._plant.cable_nodes_enu_m(k))
            if watch_cable(nodes, self._solids, self.closest, touching, time_s):
                yield from self._touches(range(n + k, n + k + 1))

    def _touches(self, bodies: range) -> Iterator[Collision]:
        for i in bodies:
            for j in np.flatnonzero(self._touching["speed"][i] >= 0.0):
                x, y, z = self._touching[i, j]["point"].tolist()
                speed = float(self._touching[i, j]["speed"]) if i < len(self._names) else None
                yield Collision((self._bodies[i], self.obstacles[int(j)].name), speed, (x, y, z))

    def _refuse_overlap(self) -> None:
        """Refuse what is inside an obstacle at the start; what stands on one may."""
        if not self.obstacles:
            return
        smaller = self._own.copy()
        smaller["size"] = np.maximum(smaller["size"] - 3.0 * TOUCH_M, 0.0)
        is_ground = self._solids["ground"].copy()
        for is_load in (True, False):  # cables may lie on the ground
            self._solids["ground"] = 0 if is_load else is_ground
            hits = self._touched_obstacles(smaller, 0.0)
            for collision in hits if is_load else self._obstacles_at_cables(0.0):
                one, other = collision.bodies
                kind = "" if other == GROUND else "obstacle "
                raise ConfigError(
                    f"{one} and {kind}{other} overlap at the start: place them apart, or tell what "
                    "bodies start on by ground: true"
                )
        self.closest["gap"] = np.inf
        for collision in chain(
            self._touched_obstacles(self._own, 0.0), self._obstacles_at_cables(0.0)
        ):
            self._touched[collision.bodies] = 0

    def _cut_cables(self) -> Iterator[tuple[str, str]]:
        """Pairs of drone and cable where the cable passes through a rotor."""
        geometry = self._cables, self._reach, self._motion
        if find_near_cables(*geometry, self._lengths_m, self._near):
            for k, index in enumerate(self._cables["index"]):
                if self._near[k].any():
                    nodes = np.ascontiguousarray(self._plant.cable_nodes_enu_m(index))
                    for i in np.flatnonzero(self._near[k]):
                        solids = self._own[self._first[i] : self._first[i + 1]]
                        place(solids, self._motion[i])
                        _, *discs = solids
                        if any(cut(disc, nodes) for disc in discs):
                            yield self._names[i], f"cable_{index + 1}"


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
        news = [(kind, text) for kind in self._limits_m if kind in below - self._below]
        self._below = below
        return news

    def look_at(
        self, times_s: Sequence[float], position_enu_m: Array
    ) -> Iterator[tuple[float, str, str]]:
        """Check many times at once, with their positions, (T, 1 + n, 3)."""
        if self._note_closest(times_s, position_enu_m)[2] >= max(self._limits_m.values()):
            self._below = set()
            return
        for time_s, places in zip(times_s, position_enu_m, strict=True):
            yield from ((time_s, kind, what) for kind, what in self.look(time_s, places))

    def _note_closest(
        self, times_s: Sequence[float], position_enu_m: Array
    ) -> tuple[int, int, float]:
        """The two drones that come closest, from 0, and the distance of their rotor tips."""
        places = np.ascontiguousarray(position_enu_m[:, 1 : 1 + len(self._radii)])
        row, i, j, centres_m, tips_m = closest_pair(places, self._radii)
        if tips_m < self._least_m:
            self._least_m = tips_m
            self.closest = Closest(times_s[row], (i + 1, j + 1), centres_m, tips_m)
        return i, j, tips_m
