"""Obstacles of a plan: planes between each body and the solids next to it.

A plane through the point of a convex solid that is nearest to a body, across the shortest way,
leaves all of the solid on its other side. The body is to stay on its own, with the part of its size
that lies along the normal: a drone is a ball, the load a box, a cable the point of it that comes
nearest. Planes are found anew round each solution, and are as a rule exact only for balls.

A gate that the load is planned through is a window instead: what comes near to its plane stays
between the four planes of the opening, so that no cable is led round a beam.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.rotations import matrix
from musls_description.numerics.vectors import add_scaled, column, dot, put, sub
from musls_description.system.obstacles import (
    PLANE,
    AnyObstacle,
    GateObstacle,
    depth_and_normal,
    solid,
)

NEAREST = 2
"""Solids that each body looks at, the nearest ones: two posts of a gate."""

SWEPT_M = 0.2
"""A window counts so far before and behind its frame: plans look at their nodes only."""

FAR_M = 2.0
"""A load nearer than this to a gate, in line with its opening, is to fly through it."""

ALONG = np.linspace(0.0, 1.0, 9)
"""Places along a cable that are watched, from load to drone."""


class Planes:
    """Planes between bodies (load, drones, cables) and solids.

    Attributes:
        columns: Numbers for a node: for each body and each of its solids the normal, the plane's
            distance from the origin and the place along a cable.
    """

    def __init__(
        self,
        obstacles: Sequence[AnyObstacle],
        n: int,
        half_edges_m: Array,
        ball_m: float,
        clear_m: float,
    ) -> None:
        """`ball_m` is a drone's radius, `clear_m` what all keep free besides."""
        self._solids, self._n = [one.solids() for one in obstacles], n
        self._windows = {
            k: _Window(one, float(np.linalg.norm(half_edges_m[:2])))
            for k, one in enumerate(obstacles)
            if isinstance(one, GateObstacle)
        }
        self._half_edges_m, self._ball_m, self._clear_m = half_edges_m, ball_m, clear_m
        self._looks = min(NEAREST, sum(map(len, self._solids)))
        self.columns = (1 + 2 * n) * self._looks * 5

    def around(self, load: Array, drones: Array, ends: Array) -> Array:
        """Planes round places of the load, (k, 3), drones and cables' lower ends, (k, n, 3).

        Returns (k, columns).
        """
        bodies = np.concatenate([load[:, None], drones, ends], axis=1)
        found = np.zeros((len(load), 1 + 2 * self._n, self._looks, 5))
        if self._looks:
            solids = [
                self._windows[k].planes
                if k in self._windows and self._windows[k].flown(load)
                else one
                for k, one in enumerate(self._solids)
            ]
            find_planes(np.concatenate(solids), bodies, ALONG, found)
        return found.reshape(len(load), -1)

    def clearances(
        self, planes: Any, load: Any, turn: Any, drones: list[Any], ends: list[Any]
    ) -> list[Any]:
        """Clearances, which shall not be negative, symbolically, for one node."""
        rows = []
        for body in range(1 + 2 * self._n):
            for look in range(self._looks):
                at = 5 * (body * self._looks + look)
                normal, offset, along = planes[at : at + 3], planes[at + 3], planes[at + 4]
                if body == 0:
                    leans = turn.T @ normal
                    size = ca.dot(ca.DM(self._half_edges_m), ca.sqrt(leans**2 + 1e-6))
                    place = load
                elif body <= self._n:
                    size, place = self._ball_m, drones[body - 1]
                else:
                    i = body - 1 - self._n
                    size, place = 0.0, ends[i] + along * (drones[i] - ends[i])
                rows.append(ca.dot(normal, place) - offset - size - self._clear_m)
        return rows


class _Window:
    """The opening of a gate.

    Attributes:
        planes: Records of `SOLID` below, above and beside it, whose normals look inwards; their
            size is how near to the gate's plane they count, for the load and for all else.
    """

    def __init__(self, gate: GateObstacle, load_m: float) -> None:
        self._center = np.array(gate.position_enu_m)
        self._turn = matrix(np.array(gate.orientation_wxyz))
        self._half = 0.5 * np.array([gate.width_m, gate.height_m])
        near = 0.5 * gate.frame_m + SWEPT_M
        planes = []
        for axis, half in zip((1, 2), self._half, strict=True):
            for sign in (-1.0, 1.0):
                place = self._center + sign * half * self._turn[:, axis]
                inwards = -sign * self._turn[:, axis]
                through = self._turn[:, 0]
                axes = np.stack([through, np.cross(inwards, through), inwards], axis=1)
                planes.append(solid(PLANE, place, axes, (near + load_m, near, 0.0)))
        self.planes = np.concatenate(planes)

    def flown(self, load: Array) -> bool:
        """Whether a path of the load, (k, 3), leads through the opening."""
        x, *beside = ((load - self._center) @ self._turn).T
        inside = np.all(np.abs(np.array(beside).T) < self._half, axis=1)
        return bool((inside & (np.abs(x) < FAR_M)).any())


@compiled()
def find_planes(solids, bodies, shares, found):
    """Write normal, offset and place along a cable for the nearest solids of each body.

    Bodies are load, drones and the cables' lower ends, (k, 1 + 2 n, 3).
    """
    n, looks = (bodies.shape[1] - 1) // 2, found.shape[2]
    depths, planes = np.empty(len(solids)), np.empty((len(solids), 5))
    for k in range(len(bodies)):
        for body in range(1 + 2 * n):
            place, cable = bodies[k, body], body > n
            reach = sub(bodies[k, body - n], place) if cable else (0.0, 0.0, 0.0)
            for j in range(len(solids)):
                depths[j] = -math.inf
                for share in shares if cable else shares[:1]:
                    point = add_scaled(place, share, reach)
                    depth, normal = depth_and_normal(solids[j], point)
                    near = solids[j].size[0 if body == 0 else 1]
                    if solids[j].kind == PLANE and near > 0.0:
                        away = dot(column(solids[j].rotation, 0), sub(point, solids[j].position))
                        if abs(away) > near:
                            depth = -1e6
                    if depth > depths[j]:
                        depths[j] = depth
                        put(planes[j], normal)
                        offset = dot(point, normal) + depth
                        planes[j, 3], planes[j, 4] = offset, share
            for look in range(looks):
                j = depths.argmax()
                found[k, body, look] = planes[j]
                depths[j] = -math.inf
