"""Obstacles of a world: boxes, cylinders, planes and gates that stand still.

An obstacle consists of convex solids. Compiled functions take their records (`SOLID`) and find the
point of a solid nearest to a point, or how deep a point is inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from musls_description.config.schema import Edges, Positive, Quaternion, Vector3, spec
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.rotations import matrix
from musls_description.numerics.vectors import (
    add,
    column,
    elementwise,
    rotate,
    rotate_back,
    sub,
    unit,
)
from musls_description.system.drone import BOX_FACES

Name = Annotated[str, Field(pattern=r"^[A-Za-z][\w-]*$", max_length=50)]
TAKEN = ("load", "ground", "drone_", "cable_", "anchor_", "world")
"""Names, or their beginnings, that other bodies have."""

BOX = 0
CYLINDER = 2
PLANE = 3
"""Kinds of solids; `collisions` has discs besides."""

SOLID = np.dtype(
    [
        ("kind", np.int64),
        ("obstacle", np.int64),  # index of the obstacle to which it belongs
        ("position", float, 3),  # of its centre, of a point of a plane
        ("rotation", float, (3, 3)),  # to the world; a cylinder's axis and a plane's normal are z
        ("size", float, 3),  # half edges of a box; radius (twice) and half height of a cylinder
    ],
    align=True,
)


# ---------- Specifications


@spec
class BoxObstacle:
    """A box.

    Attributes:
        kind: "box".
        name: Name of its own.
        size_m: Edge lengths along its axes.
        position_enu_m: Centre, world.
        orientation_wxyz: Rotation from its axes to the world.
    """

    kind: Literal["box"] = "box"
    name: Name
    size_m: Edges
    position_enu_m: Vector3
    orientation_wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)

    def solids(self) -> Records:
        """Records of `SOLID`, (1,)."""
        half = 0.5 * np.array(self.size_m)
        return solid(BOX, self.position_enu_m, matrix(np.array(self.orientation_wxyz)), half)


@spec
class CylinderObstacle:
    """A cylinder, such as a pole.

    Attributes:
        kind: "cylinder".
        name: Name of its own.
        radius_m: Radius.
        height_m: Length along its axis z.
        position_enu_m: Centre, world.
        orientation_wxyz: Rotation from its axes to the world.
    """

    kind: Literal["cylinder"] = "cylinder"
    name: Name
    radius_m: Positive
    height_m: Positive
    position_enu_m: Vector3
    orientation_wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)

    def solids(self) -> Records:
        """Records of `SOLID`, (1,)."""
        size = self.radius_m, self.radius_m, 0.5 * self.height_m
        return solid(CYLINDER, self.position_enu_m, matrix(np.array(self.orientation_wxyz)), size)


@spec
class PlaneObstacle:
    """All that is behind a plane, such as a wall or a slope.

    Attributes:
        kind: "plane".
        name: Name of its own.
        point_enu_m: A point of the plane, world.
        normal_enu: Direction towards the free side, world; of any length.
    """

    kind: Literal["plane"] = "plane"
    name: Name
    point_enu_m: Vector3
    normal_enu: Vector3

    def __post_init__(self) -> None:
        if np.linalg.norm(self.normal_enu) < 1e-6:
            raise ValueError("normal_enu must have a direction")

    def solids(self) -> Records:
        """Records of `SOLID`, (1,)."""
        z = np.array(self.normal_enu) / np.linalg.norm(self.normal_enu)
        x = np.cross(z, np.eye(3)[np.abs(z).argmin()])
        x /= np.linalg.norm(x)
        return solid(PLANE, self.point_enu_m, np.stack([x, np.cross(z, x), z], axis=1), (0, 0, 0))


@spec
class GateObstacle:
    """A frame of four beams around a rectangular opening.

    Attributes:
        kind: "gate".
        name: Name of its own.
        width_m: Width of the opening, along the gate's y axis.
        height_m: Height of the opening, along its z axis.
        frame_m: Thickness of the square beams.
        position_enu_m: Centre of the opening, world.
        orientation_wxyz: Rotation from its axes to the world; drones fly through it along x.
    """

    kind: Literal["gate"] = "gate"
    name: Name
    width_m: Positive
    height_m: Positive
    frame_m: Positive = 0.1
    position_enu_m: Vector3
    orientation_wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)

    def solids(self) -> Records:
        """Records of `SOLID`: posts at -y and +y, beams below and above, (4,)."""
        turn = matrix(np.array(self.orientation_wxyz))
        f = self.frame_m
        w = self.width_m
        h = self.height_m
        post = (0.5 * f, 0.5 * f, 0.5 * h + f)
        beam = (0.5 * f, 0.5 * w, 0.5 * f)
        aside = 0.5 * (w + f)
        above = 0.5 * (h + f)
        return np.concatenate(
            [
                solid(BOX, self.position_enu_m + turn @ place, turn, size)
                for place, size in (
                    ((0.0, -aside, 0.0), post),
                    ((0.0, aside, 0.0), post),
                    ((0.0, 0.0, -above), beam),
                    ((0.0, 0.0, above), beam),
                )
            ]
        )


AnyObstacle = Annotated[
    BoxObstacle | CylinderObstacle | PlaneObstacle | GateObstacle, Field(discriminator="kind")
]


@spec
class WorldSpec:
    """Obstacles of the world besides the ground.

    Attributes:
        obstacles: Boxes, cylinders, planes and gates; they do not move.
    """

    obstacles: tuple[AnyObstacle, ...] = ()

    def __post_init__(self) -> None:
        names: set[str] = set()
        for name in (obstacle.name for obstacle in self.obstacles):
            if name in names:
                raise ValueError(f"two obstacles have the name '{name}'")
            if name.startswith(TAKEN):
                raise ValueError(
                    f"obstacle '{name}': names of bodies are taken ({', '.join(TAKEN)})"
                )
            names.add(name)


def solid(kind: int, position: Sequence[float] | Array, rotation: Array, size: object) -> Records:
    """One record of `SOLID`, (1,)."""
    record = np.zeros(1, SOLID)
    record["kind"] = kind
    record["position"] = position
    record["rotation"] = rotation
    record["size"] = size
    return record


def solids_of(obstacles: Iterable[AnyObstacle]) -> Records:
    """Solids of all obstacles, records of `SOLID`."""
    parts = [np.zeros(0, SOLID)]
    for i, obstacle in enumerate(obstacles):
        parts.append(obstacle.solids())
        parts[-1]["obstacle"] = i
    return np.concatenate(parts)


# ---------- To be drawn

_SIDES = 24
"""Sides of the polygon that approximates a circle."""

_HORIZON_M = 1e4
"""Half the edges of the square that stands for a plane."""


def faces_enu_m(solid: np.void) -> list[Array]:
    """Polygons of a solid's surface, (points, 3) each, anti-clockwise seen from outside."""
    turn = solid["rotation"]
    centre = solid["position"]
    size = solid["size"]
    if solid["kind"] == CYLINDER:
        angle = np.linspace(0.0, 2.0 * np.pi, _SIDES, endpoint=False)
        rim = np.stack([np.cos(angle), np.sin(angle), np.ones(_SIDES)], axis=1) * size
        top = centre + rim @ turn.T
        foot = centre + (rim * [1.0, 1.0, -1.0]) @ turn.T
        around = [np.stack([foot[k - 1], foot[k], top[k], top[k - 1]]) for k in range(_SIDES)]
        return [*around, top, foot[::-1]]
    if solid["kind"] == PLANE:
        size = np.array([_HORIZON_M, _HORIZON_M, 0.0])
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = centre + (signs * size) @ turn.T
    faces = [corners[list(face)] for face in BOX_FACES]
    return faces[1:2] if solid["kind"] == PLANE else faces


def shown_faces(
    obstacles: Iterable[AnyObstacle], low_m: Array, high_m: Array
) -> list[tuple[str, list[Array]]]:
    """Names of obstacles and the parts of their faces in a box, corners (3,), world."""
    obstacles = list(obstacles)
    faces_by_name: list[tuple[str, list[Array]]] = [(obstacle.name, []) for obstacle in obstacles]
    for record in solids_of(obstacles):
        cut = [_clipped(face, low_m, high_m) for face in faces_enu_m(record)]
        faces_by_name[record["obstacle"]][1].extend(face for face in cut if len(face))
    return [(name, faces) for name, faces in faces_by_name if faces]


def _clipped(polygon: Array, low_m: Array, high_m: Array) -> Array:
    """The part of a polygon in a box (Sutherland and Hodgman)."""
    for axis in range(3):
        for sign, bound in ((1.0, low_m[axis]), (-1.0, high_m[axis])):
            inside = sign * (polygon[:, axis] - bound)
            corners = []
            for k in range(len(polygon)):
                if inside[k - 1] * inside[k] < 0.0:
                    share = inside[k - 1] / (inside[k - 1] - inside[k])
                    corners.append(polygon[k - 1] + share * (polygon[k] - polygon[k - 1]))
                if inside[k] >= 0.0:
                    corners.append(polygon[k])
            polygon = np.array(corners).reshape(-1, 3)
    return polygon


def triangles(faces: Sequence[Array]) -> tuple[Array, NDArray[np.int64]]:
    """Corners (n, 3) and triangles (m, 3) of convex polygons."""
    rows: list[tuple[int, int, int]] = []
    first = 0
    for face in faces:
        rows += [(first, first + k, first + k + 1) for k in range(1, len(face) - 1)]
        first += len(face)
    return np.concatenate(faces), np.array(rows, np.int64)


SHOWN_BEYOND_M = 1.0
"""Obstacles are shown up to this distance from the flight."""


def widened(obstacles: Iterable[AnyObstacle], low_m: Array, high_m: Array) -> tuple[Array, Array]:
    """The box around a flight, corners (3,), made larger to show obstacles that are near."""
    low, high = low_m.copy(), high_m.copy()
    nearby_low = low_m - SHOWN_BEYOND_M
    nearby_high = high_m + SHOWN_BEYOND_M
    for record in solids_of(obstacles):
        if record["kind"] != PLANE:
            points = np.concatenate(faces_enu_m(record))
            begin, end = points.min(axis=0), points.max(axis=0)
            if ((begin < nearby_high) & (end > nearby_low)).all():
                low = np.minimum(low, np.maximum(begin, nearby_low))
                high = np.maximum(high, np.minimum(end, nearby_high))
    return low, high


# ---------- Where a point is


@compiled()
def nearest_point(solid, point):
    """Return the point of a solid that is nearest to a point, in the world."""
    x, y, z = rotate_back(solid.rotation, sub(point, solid.position))
    a = solid.size[0]
    b = solid.size[1]
    c = solid.size[2]
    if solid.kind == PLANE:
        z = min(z, 0.0)
    else:
        z = min(max(z, -c), c)
        if solid.kind == CYLINDER:
            share = min(1.0, a / max(math.sqrt(x * x + y * y), 1e-12))
            x, y = share * x, share * y
        else:
            x, y = min(max(x, -a), a), min(max(y, -b), b)
    return add(solid.position, rotate(solid.rotation, (x, y, z)))


@compiled()
def depth_and_normal(solid, point):
    """Return how deep a point is below the surface of a solid, and the surface's normal there.

    Outside, the depth is the negative distance.
    """
    x, y, z = rotate_back(solid.rotation, sub(point, solid.position))
    if solid.kind == PLANE:
        return -z, column(solid.rotation, 2)
    a = solid.size[0]
    b = solid.size[1]
    c = solid.size[2]
    towards = math.copysign(1.0, x), math.copysign(1.0, y), math.copysign(1.0, z)
    out = (abs(x) - a, abs(y) - b, abs(z) - c)
    if solid.kind == CYLINDER:
        r = max(math.sqrt(x * x + y * y), 1e-12)
        towards = (x / r, y / r, towards[2])
        out = (r - a, -math.inf, out[2])
    deepest = max(out[0], out[1], out[2])
    if deepest > 0.0:
        beyond = max(out[0], 0.0), max(out[1], 0.0), max(out[2], 0.0)
        (u, v, w), deepest = unit(beyond)
    elif out[0] == deepest:
        u = 1.0
        v = 0.0
        w = 0.0
    elif out[1] == deepest:
        u = 0.0
        v = 1.0
        w = 0.0
    else:
        u = 0.0
        v = 0.0
        w = 1.0
    if solid.kind == CYLINDER:
        v = u
    return -deepest, rotate(solid.rotation, elementwise((u, v, w), towards))
