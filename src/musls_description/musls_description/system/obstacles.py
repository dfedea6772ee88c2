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
from functools import cached_property, partial
from typing import Annotated, Literal

import numpy as np
import scipy
from numba import types
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
from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import address_of, record_at
from musls_description.numerics.rotations import matrix
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    column,
    cross,
    dot,
    elementwise,
    put,
    rotate,
    rotate_back,
    scale,
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
        ("upright", float, (3, 3)),  # rotation of one that has not turned
        ("axes", float, (3, 3)),  # those about which it rolls, pitches and yaws, in columns
        ("shift", float, 3),  # how far it is from its rest
        ("velocity", float, 3),  # of its position
        ("turns", np.int64),  # 1 if its table turns it
        ("turn", float, (3, 3)),  # from its rest to where it is
        ("omega", float, 3),  # angular velocity, world
        ("begin", float, 12),  # pose and rates of `SurfaceMotion` at the begin of the period
        ("end", float, 12),
        ("period", float),  # its length; 0 while the solid stands still
    ],
    align=True,
)


# ---------- Specifications

MAX_ROWS = 1_000_000

SHIFT_COLUMNS = ("x_m", "y_m", "z_m")
TURN_COLUMNS = ("roll_deg", "pitch_deg", "yaw_deg")
"""Columns of a file of `SurfaceMotion`, beside the time."""


@spec
class SurfaceMotion:
    """A surface moves and turns as in a table: a cubic spline through its rows.

    Before the first row and after the last it stands still. Give a file, or the rows. Angles are
    yaw, pitch and roll, turned in this order about the z, y and x axes of the surface itself; of a
    plane, which has a normal alone, about those of the world. It turns about its place.

    Attributes:
        file: CSV with a head line and the columns time_s, x_m, y_m, z_m, roll_deg, pitch_deg,
            yaw_deg, of which all but the time may be left out. A relative path counts from the
            scenario's folder.
        time_s: Times of the rows.
        shift_enu_m: How far the surface is from the place that its other keys give, (k, 3); left
            out, it stays there.
        roll_pitch_yaw_deg: How far it is turned from the attitude that its other keys give, (k, 3);
            left out, it does not turn.
    """

    file: str | None = None
    time_s: Annotated[tuple[NonNegative, ...], Field(max_length=MAX_ROWS)] = ()
    shift_enu_m: Annotated[tuple[Vector3, ...], Field(max_length=MAX_ROWS)] = ()
    roll_pitch_yaw_deg: Annotated[tuple[Vector3, ...], Field(max_length=MAX_ROWS)] = ()

    def __post_init__(self) -> None:
        rows = {"shift_enu_m": self.shift_enu_m, "roll_pitch_yaw_deg": self.roll_pitch_yaw_deg}
        given = {name: row for name, row in rows.items() if row}
        if (self.file is None) == (not self.time_s):
            raise ValueError(f"motion: give a file, or time_s and {' or '.join(rows)}")
        if self.time_s and not given:
            raise ValueError(f"motion: give {' or '.join(rows)} beside time_s")
        for name, row in given.items():
            if len(row) != len(self.time_s):
                raise ValueError(f"{name} has {len(row)} rows, but time_s has {len(self.time_s)}")
        if self.file is None and (len(self.time_s) < 2 or np.diff(self.time_s).min() <= 0.0):
            raise ValueError("time_s must increase, in at least two rows")

    @cached_property
    def spline(self) -> scipy.interpolate.CubicSpline:
        """Shift [m, ENU] and roll, pitch, yaw [rad] over time, 6 columns.

        Raises:
            ConfigError: The file has none.
        """
        if self.file is None:
            time_s = np.array(self.time_s)
            still = np.zeros((len(time_s), 3))
            shift_m = np.array(self.shift_enu_m, float) if self.shift_enu_m else still
            turn_deg = np.array(self.roll_pitch_yaw_deg, float) if self.turns else still
        else:
            table = read_table(self.file, ("time_s",), optional=(*SHIFT_COLUMNS, *TURN_COLUMNS))
            if len(table) < 2:
                raise ConfigError(f"{self.file}: needs at least 2 rows, has {len(table)}")
            time_s = table[:, 0]
            shift_m = table[:, 1:4]
            turn_deg = table[:, 4:]
        pose = np.hstack([shift_m, np.unwrap(np.radians(turn_deg), axis=0)])
        return scipy.interpolate.CubicSpline(time_s, pose, bc_type="natural")

    @cached_property
    def turns(self) -> bool:
        """Whether it turns the surface."""
        if self.file is None:
            return np.any(self.roll_pitch_yaw_deg).item()
        return bool(self.spline.c[..., 3:].any())

    @property
    def end_s(self) -> float:
        """Time of the last row."""
        return float(self.spline.x[-1])

    def first(self) -> Array:
        """Shift, angles and their rates at time 0, (12,) [m, rad, m/s, rad/s]."""
        spline = self.spline
        if spline.x[0] > 0.0:
            return np.append(spline(spline.x[0]), np.zeros(6))
        return np.append(spline(0.0), spline(0.0, 1))


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
        return solid(PLANE, self.point_enu_m, turn, (0.0, 0.0, 0.0), self.motion, np.eye(3))


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
    axes: Array | None = None,
) -> Records:
    """One record of `SOLID`, (1,), where it is at time 0.

    `axes`: those about which a motion turns it, in columns, by default its own.
    """
    record = np.zeros(1, SOLID)
    record["kind"] = kind
    record["position"] = record["rest"] = position
    record["rotation"] = record["upright"] = rotation
    record["axes"] = rotation if axes is None else axes
    record["turn"] = np.eye(3)
    record["size"] = size
    if motion is not None:
        first = motion.first()
        record["shift"] = first[:3]
        record["velocity"] = first[6:9]
        record["position"] = record["rest"] + record["shift"]
        if motion.turns:
            record["turns"] = 1
            turn_solid(record[0], first[3:6], first[9:])
        move_solid.address  # noqa: B018 (compiles it: few worlds need it)
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


# ---------- Surfaces that move


@compiled()
def begin_motion(solids, motion, period):
    """Take in how the solids that move do so in a control period.

    `motion`: pose and rates of each at the begin and the end of it, (k, 2, 12); a solid of which
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
            for c in range(12):
                solid.begin[c] = motion[row, 0, c]
                solid.end[c] = motion[row, 1, c]


@compiled()
def move_solids(solids, time):
    """Move the solids that move to where they are at a time since the begin of the period."""
    for k in range(len(solids)):
        if solids[k].motion != 0 and solids[k].period != 0.0:
            move_solid(address_of(solids[k]), time)


@partial(CompiledStage, takes=(types.float64,), on_demand=True)
def move_solid(address, time):
    """Move a solid: between begin and end of the period shifts and angles follow cubics."""
    solid = record_at(address, SOLID)
    for c in range(3):
        shift, velocity = on_cubic(solid, c, time)
        solid.shift[c] = shift
        solid.velocity[c] = velocity
        solid.position[c] = solid.rest[c] + shift
    if solid.turns != 0:
        roll, roll_rate = on_cubic(solid, 3, time)
        pitch, pitch_rate = on_cubic(solid, 4, time)
        yaw, yaw_rate = on_cubic(solid, 5, time)
        turn_solid(solid, (roll, pitch, yaw), (roll_rate, pitch_rate, yaw_rate))


@compiled()
def on_cubic(solid, c, time):
    """One of the six numbers of a solid's pose, and its rate, at a time in the period."""
    period = solid.period
    s = time / period
    r = 1.0 - s
    way = solid.end[c] - solid.begin[c]
    a = period * solid.begin[6 + c] - way
    b = way - period * solid.end[6 + c]
    mixed = r * a + s * b
    value = solid.begin[c] + s * way + s * r * mixed
    return value, (way + (r - s) * mixed + s * r * (b - a)) / period


@compiled(shared=True)
def turn_solid(solid, angles, rates):
    """Turn a solid by roll, pitch and yaw from its rest, and set its angular velocity.

    Yaw turns about its z axis, pitch about the y axis that this gives, roll about the x axis that
    both give: R = Rz Ry Rx, omega = yaw' z + pitch' Rz y + roll' Rz Ry x, in `axes`.
    """
    sin_roll = math.sin(angles[0])
    cos_roll = math.cos(angles[0])
    sin_pitch = math.sin(angles[1])
    cos_pitch = math.cos(angles[1])
    sin_yaw = math.sin(angles[2])
    cos_yaw = math.cos(angles[2])
    x = (cos_yaw * cos_pitch, sin_yaw * cos_pitch, -sin_pitch)
    level = (-sin_yaw, cos_yaw, 0.0)
    z_pitched = (cos_yaw * sin_pitch, sin_yaw * sin_pitch, cos_pitch)
    y = add_scaled(scale(cos_roll, level), sin_roll, z_pitched)
    z = add_scaled(scale(cos_roll, z_pitched), -sin_roll, level)
    omega = add_scaled(add_scaled((0.0, 0.0, rates[2]), rates[1], level), rates[0], x)
    put(solid.omega, rotate(solid.axes, omega))
    for i in range(3):
        axis = solid.axes[i]
        put(solid.turn[i], rotate(solid.axes, (dot(axis, x), dot(axis, y), dot(axis, z))))
        put(solid.rotation[i], rotate_back(solid.upright, solid.turn[i]))


@compiled()
def surface_velocity(solid, point):
    """Velocity of a solid at a point of it, world."""
    velocity = solid.velocity[0], solid.velocity[1], solid.velocity[2]
    if solid.turns == 0:
        return velocity
    return add(velocity, cross(solid.omega, sub(point, solid.position)))


@compiled()
def at_rest(solid, point):
    """Where a point that moves with a solid would be at the solid's rest, but for a constant."""
    if solid.turns == 0:
        return sub(point, solid.shift)
    return rotate_back(solid.turn, sub(point, solid.position))


@compiled()
def way_on_surface(solid, held, point):
    """Way from a point to one that moves with a solid, which `at_rest` has told; world."""
    way = sub(held, at_rest(solid, point))
    return way if solid.turns == 0 else rotate(solid.turn, way)
