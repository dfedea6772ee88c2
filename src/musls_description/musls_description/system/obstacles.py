"""The ground and the obstacles of a world: boxes, cylinders, planes and gates.

An obstacle consists of convex solids. Compiled functions take their records (`SOLID`) and find the
point of a solid nearest to a point, how deep a point is inside, or the ground below it
(`ground_at`): what bodies start on, land on and are lowered to.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from musls_description.config.errors import ConfigError
from musls_description.config.schema import (
    Edges,
    Finite,
    NonNegative,
    Number,
    Positive,
    Quaternion,
    Vector3,
    spec,
)
from musls_description.config.text_tables import read_table
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
        ("ground", np.int64),  # 1 if bodies start and land on it
        ("motion", np.int64),  # which of `PlantInputs.surface_motion` moves it, from 1; 0 for none
        ("rest", float, 3),  # position of one that has not moved
        ("shift", float, 3),  # how far it is from there
        ("velocity", float, 3),
        ("begin", float, 6),  # shift and velocity at the begin of the control period
        ("end", float, 6),
        ("period", float),  # its length; 0 while the solid stands still
    ],
    align=True,
)


# ---------- Specifications

MAX_ROWS = 1_000_000


@spec
class SurfaceMotion:
    """A surface moves as in a table, without turning: a cubic spline through its rows.

    Before the first row and after the last it stands still. Give a file, or the rows.

    Attributes:
        file: CSV with a head line and the columns time_s, x_m, y_m, z_m; x_m and y_m may be left
            out. A relative path counts from the scenario's folder.
        time_s: Times of the rows.
        shift_enu_m: How far the surface is from the place that its other keys give, (k, 3).
    """

    file: str | None = None
    time_s: Annotated[tuple[NonNegative, ...], Field(max_length=MAX_ROWS)] = ()
    shift_enu_m: Annotated[tuple[Vector3, ...], Field(max_length=MAX_ROWS)] = ()

    def __post_init__(self) -> None:
        if (self.file is None) == (not self.time_s):
            raise ValueError("motion: give a file, or time_s and shift_enu_m")
        if len(self.shift_enu_m) != len(self.time_s):
            raise ValueError(
                f"shift_enu_m has {len(self.shift_enu_m)} rows, but time_s has {len(self.time_s)}"
            )
        if self.file is None and (len(self.time_s) < 2 or np.diff(self.time_s).min() <= 0.0):
            raise ValueError("time_s must increase, in at least two rows")

    @cached_property
    def spline(self) -> scipy.interpolate.CubicSpline:
        """Shift over time [m, ENU]; raises ConfigError where the file has none."""
        time_s = np.array(self.time_s)
        shift_m = np.array(self.shift_enu_m, float)
        if self.file is not None:
            table = read_table(self.file, ("time_s", "z_m"), optional=("x_m", "y_m"))
            if len(table) < 2:
                raise ConfigError(f"{self.file}: needs at least 2 rows, has {len(table)}")
            time_s = table[:, 0]
            shift_m = table[:, [2, 3, 1]]
        return scipy.interpolate.CubicSpline(time_s, shift_m, bc_type="natural")

    @property
    def end_s(self) -> float:
        """Time of the last row."""
        return float(self.spline.x[-1])

    def first(self) -> tuple[Array, Array]:
        """Shift and velocity at time 0, (3,) each [m, m/s]."""
        spline = self.spline
        if spline.x[0] > 0.0:
            return spline(spline.x[0]), np.zeros(3)
        return spline(0.0), spline(0.0, 1)


@spec
class BoxObstacle:
    """A box.

    Attributes:
        kind: "box".
        name: Name of its own.
        size_m: Edge lengths along its axes.
        position_enu_m: Centre, world.
        orientation_wxyz: Rotation from its axes to the world.
        ground: Whether bodies start and land on it; by default one that stands on the ground
            or moves.
        motion: Table by which it moves; left out for one that stands still.
    """

    kind: Literal["box"] = "box"
    name: Name
    size_m: Edges
    position_enu_m: Vector3
    orientation_wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)
    ground: bool | None = None
    motion: SurfaceMotion | None = None

    def solids(self) -> Records:
        """Records of `SOLID`, (1,)."""
        half = 0.5 * np.array(self.size_m)
        turn = matrix(np.array(self.orientation_wxyz))
        return solid(BOX, self.position_enu_m, turn, half, self.motion)


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
        ground: Whether bodies start and land on it; by default one that stands on the ground
            or moves.
        motion: Table by which it moves; left out for one that stands still.
    """

    kind: Literal["cylinder"] = "cylinder"
    name: Name
    radius_m: Positive
    height_m: Positive
    position_enu_m: Vector3
    orientation_wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)
    ground: bool | None = None
    motion: SurfaceMotion | None = None

    def solids(self) -> Records:
        """Records of `SOLID`, (1,)."""
        size = self.radius_m, self.radius_m, 0.5 * self.height_m
        turn = matrix(np.array(self.orientation_wxyz))
        return solid(CYLINDER, self.position_enu_m, turn, size, self.motion)


@spec
class PlaneObstacle:
    """All that is behind a plane, such as a wall or a slope.

    Attributes:
        kind: "plane".
        name: Name of its own.
        point_enu_m: A point of the plane, world.
        normal_enu: Direction towards the free side, world; of any length.
        ground: Whether bodies start and land on it; by default one up to 60 degrees steep.
        motion: Table by which it moves; left out for one that stands still.
    """

    kind: Literal["plane"] = "plane"
    name: Name
    point_enu_m: Vector3
    normal_enu: Vector3
    ground: bool | None = None
    motion: SurfaceMotion | None = None

    def __post_init__(self) -> None:
        if np.linalg.norm(self.normal_enu) < 1e-6:
            raise ValueError("normal_enu must have a direction")

    def solids(self) -> Records:
        """Records of `SOLID`, (1,)."""
        z = np.array(self.normal_enu) / np.linalg.norm(self.normal_enu)
        x = np.cross(z, np.eye(3)[np.abs(z).argmin()])
        x /= np.linalg.norm(x)
        turn = np.stack([x, np.cross(z, x), z], axis=1)
        return solid(PLANE, self.point_enu_m, turn, (0.0, 0.0, 0.0), self.motion)


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


STEEPEST_RAD = math.radians(60.0)
"""Angle from level up to which a plane is ground, and no wall."""

GROUND = "ground"
"""Name of the surface that a ground is that is not level at z = 0."""


def _plane(value: object) -> object:
    """Refuse another kind with words about what stands for it."""
    if value != "plane":
        raise ValueError("must be plane; steps, roofs and decks are boxes among world.obstacles")
    return value


@spec
class GroundSpec:
    """The ground.

    Attributes:
        kind: "plane".
        height_m: Height at x = y = 0; may be negative.
        slope_deg: Angle from level.
        uphill_deg: Direction in which it rises: 0 is along x (east), 90 along y (north).
        motion: Table by which it moves; left out for one that stands still.
    """

    kind: Annotated[Literal["plane"], BeforeValidator(_plane)] = "plane"
    height_m: Finite = 0.0
    slope_deg: Annotated[float, Field(ge=0.0, le=60.0), Number] = 0.0
    uphill_deg: Annotated[float, Field(ge=-360.0, le=360.0), Number] = 0.0
    motion: SurfaceMotion | None = None

    @property
    def is_usual(self) -> bool:
        """Whether it is level at z = 0 and stands still."""
        return self.height_m == 0.0 and self.slope_deg == 0.0 and self.motion is None

    def plane(self) -> PlaneObstacle:
        """The same as an obstacle."""
        slope, uphill = np.radians([self.slope_deg, self.uphill_deg])
        aside = -math.sin(slope)
        return PlaneObstacle(
            name=GROUND,
            point_enu_m=(0.0, 0.0, self.height_m),
            normal_enu=(aside * math.cos(uphill), aside * math.sin(uphill), math.cos(slope)),
            ground=True,
            motion=self.motion,
        )


@spec
class WorldSpec:
    """The ground and what stands on it.

    What bodies start and land on is the highest of the ground and of the obstacles that are
    ground.

    Attributes:
        ground: The ground: a plane, level at z = 0 by default.
        obstacles: Boxes, cylinders, planes and gates.
    """

    ground: GroundSpec = Field(default_factory=GroundSpec)
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

    @property
    def level_ground_m(self) -> float | None:
        """Height of a ground that is usual, 0; None where it is one of the `surfaces`."""
        return 0.0 if self.ground.is_usual else None

    @cached_property
    def surfaces(self) -> tuple[AnyObstacle, ...]:
        """What bodies touch besides a usual ground; `ground` of each is True or False."""
        known = [self.ground.plane()]
        waiting = [o for o in self.obstacles if not isinstance(o, GateObstacle)]
        grounds = {o.name for o in waiting if o.ground or (o.ground is None and o.motion)}
        waiting = [o for o in waiting if o.ground is None]
        found = True
        while found:
            solids = solids_of([*known, *(o for o in self.obstacles if o.name in grounds)])
            found = False
            for obstacle in waiting:
                if obstacle.name not in grounds and _stands_on(obstacle, solids):
                    grounds.add(obstacle.name)
                    found = True
        decided = [
            o if isinstance(o, GateObstacle) else replace(o, ground=o.name in grounds)
            for o in self.obstacles
        ]
        return tuple(decided if self.ground.is_usual else [*known, *decided])

    @cached_property
    def grounds(self) -> Records:
        """Solids that bodies start and land on, at time 0, records of `SOLID`; never empty."""
        return grounds_of(self.surfaces)

    @property
    def is_flat(self) -> bool:
        """Whether bodies start and land at z = 0 everywhere."""
        return len(self.grounds) == 1 and self.ground.is_usual

    @property
    def motions(self) -> list[SurfaceMotion]:
        """Tables of the surfaces that move, in the order of `surfaces`."""
        moving = (o for o in self.surfaces if not isinstance(o, GateObstacle))
        return [o.motion for o in moving if o.motion is not None]


def grounds_of(surfaces: Sequence[AnyObstacle]) -> Records:
    """Solids that are ground of `WorldSpec.surfaces`, with a usual ground if none is among them."""
    usual = [] if any(s.name == GROUND for s in surfaces) else [GroundSpec().plane()]
    solids = solids_of([*usual, *surfaces])
    return solids[solids["ground"] != 0]


STANDS_M = 1e-3
"""An obstacle stands on the ground if it comes so close to it."""


def _stands_on(obstacle: AnyObstacle, solids: Records) -> bool:
    """Whether an obstacle rises from solids, or is a plane that is no wall."""
    (own,) = obstacle.solids()
    if own["kind"] == PLANE:
        return bool(own["rotation"][2, 2] >= math.cos(STEEPEST_RAD))
    low = np.concatenate(faces_enu_m(own))
    return any(
        depth_and_normal(solid, tuple(corner))[0] > -STANDS_M for corner in low for solid in solids
    )


def resolve_tables(world: object, folder: os.PathLike[str]) -> None:
    """Make the paths of motions in a scenario's `world` absolute, in place.

    They are relative to the scenario's folder.
    """
    if not isinstance(world, dict):
        return
    obstacles = world.get("obstacles")
    for part in [world.get("ground"), *(obstacles if isinstance(obstacles, list) else ())]:
        motion = part.get("motion") if isinstance(part, dict) else None
        if isinstance(motion, dict) and isinstance(motion.get("file"), str):
            motion["file"] = os.path.abspath(os.path.join(folder, motion["file"]))


def solid(
    kind: int,
    position: Sequence[float] | Array,
    rotation: Array,
    size: object,
    motion: SurfaceMotion | None = None,
) -> Records:
    """One record of `SOLID`, (1,), where it is at time 0."""
    record = np.zeros(1, SOLID)
    record["kind"] = kind
    record["position"] = record["rest"] = position
    record["rotation"] = rotation
    record["size"] = size
    if motion is not None:
        record["shift"], record["velocity"] = motion.first()
        record["position"] = record["rest"] + record["shift"]
    return record


def solids_of(obstacles: Iterable[AnyObstacle]) -> Records:
    """Solids of all obstacles, records of `SOLID`."""
    parts = [np.zeros(0, SOLID)]
    moving = 0
    for i, obstacle in enumerate(obstacles):
        parts.append(obstacle.solids())
        parts[-1]["obstacle"] = i
        if not isinstance(obstacle, GateObstacle):
            parts[-1]["ground"] = bool(obstacle.ground)
            if obstacle.motion is not None:
                moving += 1
                parts[-1]["motion"] = moving
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


# ---------- The ground below a point


@compiled()
def below(solid, x, y):
    """Where an upright line comes out of a solid at the top: its height, -inf if it misses it."""
    rotation = solid.rotation
    px, py, pz = rotate_back(rotation, sub((x, y, 0.0), solid.position))
    dx, dy, dz = rotation[2, 0], rotation[2, 1], rotation[2, 2]  # up, in the solid's frame
    if solid.kind == PLANE:
        return -pz / dz if dz > 0.0 else -math.inf
    low = -math.inf
    high = math.inf
    line = ((px, dx, solid.size[0]), (py, dy, solid.size[1]), (pz, dz, solid.size[2]))
    for k in range(3):
        p, d, half = line[k]
        if k < 2 and solid.kind == CYLINDER:
            continue
        if abs(d) < 1e-12:
            if abs(p) > half:
                return -math.inf
            continue
        one = (-half - p) / d
        other = (half - p) / d
        low = max(low, min(one, other))
        high = min(high, max(one, other))
    if solid.kind == CYLINDER:
        a = dx * dx + dy * dy
        b = px * dx + py * dy
        c = px * px + py * py - solid.size[0] * solid.size[0]
        root = b * b - a * c
        if a < 1e-24:
            if c > 0.0:
                return -math.inf
        elif root < 0.0:
            return -math.inf
        else:
            low = max(low, (-b - math.sqrt(root)) / a)
            high = min(high, (-b + math.sqrt(root)) / a)
    return high if high >= low else -math.inf


@compiled(shared=True)
def ground_at(solids, x, y):
    """Return the height of the ground at a place, and the index of the solid that it is there.

    The ground is the highest of the solids that are `ground`; -inf and -1 where there is none.
    """
    height = -math.inf
    which = -1
    for k in range(len(solids)):
        if solids[k].ground != 0:
            top = below(solids[k], x, y)
            if top > height:
                height = top
                which = k
    return height, which


@compiled(shared=True)
def ground_heights(solids, places):
    """Heights of the ground at places, x and y in the first two columns, (k,); see `ground_at`."""
    heights = np.empty(len(places))
    for k in range(len(places)):
        heights[k] = ground_at(solids, places[k, 0], places[k, 1])[0]
    return heights


@compiled()
def begin_motion(solids, motion, period):
    """Take in how the solids that move do so in a control period.

    `motion`: shift and velocity of each at the begin and the end of it, (k, 2, 6); a solid of which
    nothing is told stands still.
    """
    for k in range(len(solids)):
        solid = solids[k]
        row = solid.motion - 1
        if row < 0:
            continue
        solid.period = 0.0
        if row < motion.shape[0] and period > 0.0:
            solid.period = period
            for c in range(6):
                solid.begin[c] = motion[row, 0, c]
                solid.end[c] = motion[row, 1, c]


@compiled()
def move_solids(solids, time):
    """Move the solids that move to where they are at a time since the begin of the period.

    Between its begin and its end they follow a cubic.
    """
    for k in range(len(solids)):
        solid = solids[k]
        if solid.motion == 0 or solid.period == 0.0:
            continue
        period = solid.period
        s = time / period
        r = 1.0 - s
        for c in range(3):
            way = solid.end[c] - solid.begin[c]
            a = period * solid.begin[3 + c] - way
            b = way - period * solid.end[3 + c]
            mixed = r * a + s * b
            solid.shift[c] = solid.begin[c] + s * way + s * r * mixed
            solid.velocity[c] = (way + (r - s) * mixed + s * r * (b - a)) / period
            solid.position[c] = solid.rest[c] + solid.shift[c]
