"""Multi-UAV slung-load systems: load, drones with rotors, cables; rigs with winches and pulleys.

`SlungLoadSystem` is the only source of truth for masses, inertias, attachment points and links;
every writer (DART skeleton, SDF, Xacro) reads it. It joins load attachment i and drone i by cable
i. It is a `RigSystem`: that has the same parts, and anchors, winches and pulleys, joined in any
way. Everything is numbered from 1 in names (`anchor_1`, `cable_1`, `winch_1`, `pulley_1`). Symbols
in brackets are those of the seed paper (Merton and Hunter, "Dynamics Modeling of a Multi-UAV Slung
Load System Using a Discrete-Link Cable Approach", Table I and eq. 1 to 10). Body frames are FLU
with the origin in the centre of mass, SI units throughout.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BeforeValidator, Field

from musls_description.config.errors import ConfigError, near_names
from musls_description.config.schema import (
    LARGEST,
    SMALLEST,
    Finite,
    Fraction,
    NonNegative,
    Number,
    PerAxis,
    Positive,
    Quaternion,
    Vector3,
    adapter,
    spec,
)
from musls_description.numerics.arrays import Array, grasp_matrix
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.cable_law import AnyCableLaw
from musls_description.system.drone import (
    NO_INERTIA,
    AnyShape,
    Box,
    Drone,
    Inertia,
    LoadInertia,
    check_drag,
    inertia_instead_of,
)
from musls_description.system.propulsion import STANDARD_DENSITY_KG_M3
from musls_description.system.rope_materials import ASSUMED, MATERIALS, Material, RopeMaterial
from musls_description.tables import ShownResult, Table

# ---------- Parts of general rigs: anchors, cable ends and materials, winches, pulleys

MAX_ANCHORS = 100
"""Anchors, winches or pulleys of one system."""

SHORTEST_SEGMENT_M = 1e-6
"""A shorter segment of a cable has no direction in numbers of 16 digits."""

MAX_SEGMENTS = 200
"""Largest number of segments of an elastic cable."""

Index = Annotated[int, Field(ge=1), Number]
Strain = Annotated[float, Field(gt=-1.0, le=10.0, allow_inf_nan=False), Number]


@spec
class Anchor:
    """A body beside load and drones: fixed, moved along a path, pushed, or free as a second load.

    The scenario says which of these it is (`rig.anchors`); by default it is fixed.

    Attributes:
        position_enu_m: Position at the start, world frame.
        orientation_wxyz: Orientation at the start, anchor frame to world.
        mass_kg: Mass; only needed for an anchor that is pushed or free.
        inertia_kg_m2: Inertia about the origin, anchor frame, (3, 3). A pushed or free anchor
            without inertia keeps its orientation.
        collision: Box with which one that is pushed or free touches the ground; nothing by default.
    """

    position_enu_m: Vector3
    orientation_wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)
    mass_kg: Positive | None = None
    inertia_kg_m2: Inertia | None = None
    collision: Box | None = None

    def __post_init__(self) -> None:
        if self.inertia_kg_m2 is not None and self.mass_kg is None:
            raise ValueError("inertia_kg_m2 needs mass_kg")


@spec
class CableEnd:
    """Attachment of a cable's end.

    Attributes:
        body: "load", "drone_1", "anchor_1", ...
        point_m: Attachment point, in the body's frame.
        clamped: Whether the direction of the cable is held at this end (needs `elastic.ei_n_m2`);
            otherwise the end is hinged.
        clamp_direction: Direction in which the cable leaves the body, in the body's frame; a vector
            of any length.
    """

    body: str
    point_m: Vector3 = (0.0, 0.0, 0.0)
    clamped: bool = False
    clamp_direction: Vector3 | None = None

    def __post_init__(self) -> None:
        if self.clamped and self.clamp_direction is None:
            raise ValueError("clamped: true needs clamp_direction (direction of the cable)")
        if not self.clamped and self.clamp_direction is not None:
            raise ValueError("clamp_direction needs clamped: true")
        if self.clamp_direction is not None and np.linalg.norm(self.clamp_direction) < 1e-9:
            raise ValueError("clamp_direction must not be zero")


# Air: a cylinder across the flow at the Reynolds numbers of a swinging rope, 1e2 to 1e4.

WAVE_DAMPING = 1.64e-3
WAVE_LINKS = 15
"""Damping ratio of the longest wave of the seed paper's cable: T = 5.64 N, 8.26 g/m, 2.42 m, joints
of 2e-3 N m s/rad (its section IV-A) every 0.161 m. And the number of its links."""

BARE = 0.02
"""Share of a rope's usual damping below which joints count as without damping."""

CYLINDER_DRAG = 1.1
"""Drag coefficient of a round rope across the flow."""


@spec
class ElasticLine:
    """Stretch, bending and strength of a cable where its material is not to say them.

    For `cable_model: elastic`; `rigid_links` take stiffness and damping.

    Attributes:
        ea_n: Axial stiffness, force per strain; by default that of the cable's material.
        law: Pairs (strain, force [N]) instead of `ea_n`, both increasing, through (0, 0).
        law_interpolation: "monotone" cubics or "linear" pieces between the pairs.
        own_law: Law from your own file instead of both, by its kind.
        rod: Whether it also carries compression, as a rod does; a cable carries tension only.
        damping_n_s: Force per rate of strain; by default that of the material, 0 of `own_law`.
        permanent_share: Share of the largest strain so far that stays, as a new rope beds in.
        ei_n_m2: Bending stiffness; by default that of a `material` that is named, else 0. Only
            steel has any.
        bending_damping_n_m2_s: Moment per rate of curvature.
        clamp_factor: Stiffness of the joint at a clamp over EI / segment length: 2 is exact to
            second order, 1 what the elements of Robotica 2024 have.
        drag_across_n_s2_m3: Air drag across the cable, per length and squared speed: rho C d / 2,
            by default with C = 1.1.
        drag_along_n_s2_m3: Air drag along the cable, per length and squared speed.
        break_force_n: Tension at which it breaks; by default that of a `material` that is named,
            else it never breaks.
    """

    ea_n: Positive | None = None
    law: Annotated[tuple[tuple[Strain, Finite], ...], Field(max_length=1000)] | None = None
    law_interpolation: Literal["monotone", "linear"] = "monotone"
    own_law: AnyCableLaw | None = None
    rod: bool = False
    damping_n_s: NonNegative | None = None
    permanent_share: Annotated[float, Field(ge=0.0, le=0.9, allow_inf_nan=False), Number] = 0.0
    ei_n_m2: NonNegative | None = None
    bending_damping_n_m2_s: NonNegative = 0.0
    clamp_factor: Annotated[float, Field(ge=0.1, le=10.0, allow_inf_nan=False), Number] = 2.0
    drag_across_n_s2_m3: NonNegative | None = None
    drag_along_n_s2_m3: NonNegative = 0.0
    break_force_n: Positive | None = None

    def __post_init__(self) -> None:
        keys = [name for name in ("ea_n", "law", "own_law") if getattr(self, name) is not None]
        if len(keys) > 1:
            raise ValueError(f"give either {' or '.join(keys)}")
        if self.own_law is not None and self.permanent_share > 0.0:
            raise ValueError("permanent_share belongs to ea_n or law, not to own_law")
        if self.law is None:
            return
        check_law(self.law)


def check_law(law: Sequence[tuple[float, float]]) -> None:
    """Refuse a table of strain and force that is no axial law."""
    if len(law) < 2:
        raise ValueError(f"law needs at least two pairs [strain, force], not {len(law)}")
    for k, (low, high) in enumerate(pairwise(law)):
        if high[0] <= low[0] or high[1] <= low[1]:
            raise ValueError(
                f"law is not monotone: strain and force must increase from pair to pair, but "
                f"pair {k + 2} {list(high)} comes after {list(low)}"
            )
    at_rest = float(np.interp(0.0, *np.array(law, float).T))
    if law[0][0] > 0.0 or abs(at_rest) > 1e-9 * max(abs(law[-1][1]), 1.0):
        raise ValueError("law must go through the pair [0, 0]")


@spec
class EndOfCable:
    """One of the two ends of a cable.

    Attributes:
        cable: Number of the cable, from 1.
        end: 1 or 2, in the order of the cable's `ends`; without `ends` 1 is at the load.
    """

    cable: Index
    end: Literal[1, 2]


@spec
class Winch:
    """A winch at one end of a cable: it takes the cable in or pays it out; named winch_1, ...

    Attributes:
        cable: Number of the cable, from 1.
        end: End of this cable, 1 or 2.
        kind: "feed": the rate of the free length is an input; "drum": it follows from the drum,
            which a motor's torque or speed turns.
        radius_m: Radius of the drum.
        inertia_kg_m2: Inertia of the drum about its axis, without cable.
        axis: Axis of the drum in the frame of the body that carries it; the shaft's reaction acts
            about it. A positive turn about it pays cable out.
        stored_length_m: Length of cable on the winch at the start; its mass is added to the body's.
            If it is left out with "feed", the winch has as much as the scenario asks for.
        brake_torque_n_m: Largest torque that the brake holds; by default there is no limit.
        friction_n_m: Dry friction of the bearing.
        damping_n_m_s_rad: Viscous friction of the bearing.
        layer_m: Growth of the drum's radius with each layer of cable; 0 for none.
        layer_turns: Number of turns in a layer.
        keeps_stretch: Cable lies on the drum with the strain that it was wound on with, and comes
            off with it; otherwise it lies there unstretched.
    """

    cable: Index
    end: Literal[1, 2]
    kind: Literal["feed", "drum"] = "feed"
    radius_m: Positive | None = None
    inertia_kg_m2: NonNegative | None = None
    axis: Vector3 | None = None
    stored_length_m: NonNegative | None = None
    brake_torque_n_m: Positive | None = None
    friction_n_m: NonNegative = 0.0
    damping_n_m_s_rad: NonNegative = 0.0
    layer_m: NonNegative = 0.0
    layer_turns: Positive = 10.0
    keeps_stretch: bool = False

    def __post_init__(self) -> None:
        names = ("radius_m", "inertia_kg_m2", "axis", "brake_torque_n_m")
        keys = [name for name in names if getattr(self, name) is not None]
        keys += ["layer_m"] if self.layer_m else []
        if self.kind == "feed" and keys:
            raise ValueError(f"{keys[0]} belongs to kind: drum, not to feed")
        if self.kind == "drum" and (self.radius_m is None or self.inertia_kg_m2 is None):
            raise ValueError("kind: drum needs radius_m and inertia_kg_m2")
        if self.kind == "drum" and self.stored_length_m is None:
            raise ValueError(
                "kind: drum needs stored_length_m, the length on the drum at the start"
            )
        if self.radius_m is not None and self.layer_m > self.radius_m:
            raise ValueError(
                f"layer_m = {self.layer_m:g}: a layer of cable is not thicker than the drum's "
                f"radius_m = {self.radius_m:g}"
            )
        if self.keeps_stretch and (self.kind == "feed" or self.layer_m > 0.0):
            raise ValueError("keeps_stretch needs kind: drum without layers (layer_m 0)")
        if self.axis is not None and np.linalg.norm(self.axis) < 1e-9:
            raise ValueError("axis must not be zero")


@spec
class Pulley:
    """A pulley on a body, over which length of one cable passes into another; named pulley_1, ...

    One rope over k pulleys is described by k + 1 cables.

    Attributes:
        body: Body that carries the pulley.
        position_m: Centre of the pulley in the body's frame.
        radius_m: Radius of the groove.
        inertia_kg_m2: Inertia about the axis.
        friction_n_m: Dry friction of the bearing.
        damping_n_m_s_rad: Viscous friction of the bearing.
        axis: Axis of the pulley in the body's frame; in a positive turn, cable passes from the
            first to the second. If it is left out, the pulley's spin does not act on the body.
        capstan_friction: Coefficient of friction of a rope that slides over it; 0 for none.
        efficiency: Lower over higher tension of the two sides while the pulley turns.
        extra_wrap_rad: Wrap angle in addition to the angle between the two sides.
        cables: The two cable ends that lie on it; their places say where the ropes leave it.
    """

    body: str
    position_m: Vector3 = (0.0, 0.0, 0.0)
    radius_m: Positive
    inertia_kg_m2: NonNegative = 0.0
    friction_n_m: NonNegative = 0.0
    damping_n_m_s_rad: NonNegative = 0.0
    axis: Vector3 | None = None
    capstan_friction: NonNegative = 0.0
    efficiency: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False), Number] = 1.0
    extra_wrap_rad: NonNegative = 0.0
    cables: tuple[EndOfCable, ...]

    def __post_init__(self) -> None:
        if len(self.cables) != 2:
            raise ValueError(f"a pulley joins the ends of two cables, not of {len(self.cables)}")
        if self.cables[0] == self.cables[1]:
            raise ValueError("a pulley joins two different cable ends, not one with itself")


def body_names(system: RigSystem) -> list[str]:
    """Names of all bodies of a system: load, drones, anchors."""
    return [
        *(["load"] if system.load is not None else []),
        *(f"drone_{i + 1}" for i in range(len(system.drones))),
        *(f"anchor_{i + 1}" for i in range(len(system.anchors))),
    ]


def check_rig(system: RigSystem) -> None:
    """Refuse parts that do not fit each other.

    Raises:
        ValueError: Names the part, e.g. "cables.2.ends.1.body".
    """
    names = body_names(system)
    _check_cables(system, names)
    owners: dict[tuple[int, int], str] = {}
    for k, winch in enumerate(system.winches):
        _take(system, owners, winch.cable, winch.end, f"winches.{k}")
    for k, pulley in enumerate(system.pulleys):
        if pulley.body not in names:
            raise ValueError(
                f"pulleys.{k}.body: unknown body '{pulley.body}': {near_names(pulley.body, names)}"
            )
        for end in pulley.cables:
            _take(system, owners, end.cable, end.end, f"pulleys.{k}")
            on = system.ends(end.cable - 1)[end.end - 1].body
            if on != pulley.body:
                raise ValueError(
                    f"pulleys.{k}: the pulley is on {pulley.body}, but end {end.end} of "
                    f"cable_{end.cable} is on {on}"
                )


def _check_cables(system: RigSystem, names: Sequence[str]) -> None:
    places = 0 if system.load is None else len(system.load.cable_attachments_m)
    for i, cable in enumerate(system.cables):
        where = f"cables.{i}"
        if cable.length_m / cable.links < SHORTEST_SEGMENT_M:
            raise ValueError(
                f"{where}: segments of {cable.length_m / cable.links:g} m: length_m / links must "
                f"be at least {SHORTEST_SEGMENT_M:g} m"
            )
        if cable.ends is None:
            if i >= places or i >= len(system.drones):
                raise ValueError(
                    f"{where}.ends is missing: without it the cable joins attachment {i + 1} of "
                    f"the load and drone_{i + 1}, but this system does not have both"
                )
            continue
        for k, end in enumerate(cable.ends):
            if end.body not in names:
                raise ValueError(
                    f"{where}.ends.{k}.body: unknown body '{end.body}': "
                    f"{near_names(end.body, names)}"
                )
            if end.clamped and not cable.ei_n_m2:
                raise ValueError(
                    f"{where}.ends.{k}: clamped: true, but elastic.ei_n_m2 is 0: clamping a "
                    "cable needs bending stiffness (ei_n_m2 > 0)"
                )
        if cable.ends[0].body == cable.ends[1].body:
            raise ValueError(
                f"{where}.ends: both are on {cable.ends[0].body}; they must be on different bodies"
            )


def _take(
    system: RigSystem, owners: dict[tuple[int, int], str], cable: int, end: int, where: str
) -> None:
    """Note that something sits on an end of a cable."""
    if cable > len(system.cables):
        raise ValueError(
            f"{where}: cable {cable} does not exist: there are {len(system.cables)} cables"
        )
    if (cable, end) in owners:
        raise ValueError(
            f"{where}: end {end} of cable_{cable} is taken already by {owners[cable, end]}"
        )
    if where.startswith("pulleys") and system.ends(cable - 1)[end - 1].clamped:
        raise ValueError(f"{where}: end {end} of cable_{cable} is clamped, no pulley can be there")
    owners[cable, end] = where


MAX_CABLES = 100
"""Drones of one system; the plants' arrays grow with the square of the joints of all."""


_NO_BOX = Box(size_m=(1.0, 1.0, 1.0))
"""Stands for a box that was not given."""


@spec
class Load:
    """The rigid load (root of the tree).

    Attributes:
        mass_kg: Mass (m_L).
        shape: Homogeneous shape, from which inertia and, if left out, box are computed.
        inertia_kg_m2: Inertia about the centre of mass in the load frame (J_L), (3, 3); left out
            with a `shape`, and for a point mass.
        cable_attachments_m: Attachments of the cables, one per cable, load frame (L_r_iL). A rig
            whose cables have their own `ends` may leave them out.
        collision: Box that touches the ground; by default the one around the `shape`.
        drag_n_s_m: Linear air drag of the body per axis (x, y, z of the load) [N s/m].
        point_mass: A mass in one point, which does not turn: all cables pull at its centre. For
            massless cables only.
    """

    mass_kg: Positive
    shape: AnyShape | None = None
    inertia_kg_m2: LoadInertia = NO_INERTIA
    cable_attachments_m: Annotated[tuple[Vector3, ...], Field(max_length=MAX_CABLES)] = ()
    collision: Box = _NO_BOX
    drag_n_s_m: Annotated[tuple[NonNegative, NonNegative, NonNegative], PerAxis] = (0.0, 0.0, 0.0)
    point_mass: bool = False

    def __post_init__(self) -> None:
        """Check, and complete what follows from the shape."""
        if self.shape is not None:
            self._complete(self.shape)
        elif self.collision is _NO_BOX:
            raise ValueError("collision is missing: give it, or a shape, from which it follows")
        check_drag("drag_n_s_m", max(self.drag_n_s_m), self.mass_kg)
        if self.point_mass == (self.inertia_kg_m2 != NO_INERTIA):
            raise ValueError(
                "give one of shape (box, cylinder, rod or plate), inertia_kg_m2 and "
                "point_mass: true"
            )
        if self.point_mass and any(any(place) for place in self.cable_attachments_m):
            raise ValueError(
                "the cable_attachments_m of a point mass are at its centre: [0, 0, 0] for each"
            )

    def _complete(self, shape: AnyShape) -> None:
        follows = inertia_instead_of(self.inertia_kg_m2, shape, self.mass_kg)
        around = Box(size_m=shape.edges_m)
        object.__setattr__(self, "inertia_kg_m2", follows)  # frozen
        object.__setattr__(self, "_own_box", self.collision not in (_NO_BOX, around))
        if self.collision is _NO_BOX:
            object.__setattr__(self, "collision", around)

    def as_written(self) -> dict[str, Any]:
        """Fields as the user gave them, see `schema.to_data`; derived ones are left out."""
        entries = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if self.shape is None:
            del entries["shape"]
            return entries
        del entries["inertia_kg_m2"]
        if not vars(self)["_own_box"]:
            del entries["collision"]
        return entries


@spec
class CableJoint:
    """Moment of a universal joint about its two axes (eq. 10): -K theta - C theta' - friction.

    Attributes:
        damping_n_m_s_rad: Viscous damping of each joint C [N m s/rad].
        bending_damping_n_m2_s: Alternative to the former: damping of the cable's bending, moment
            per rate of curvature [N m2 s]. A joint stands for one link length h of cable, so
            C = bending damping / h: the physics stays the same when the number of links changes.
            If neither is given, the waves of the taut cable die down as those of the seed paper's
            cable do, see `Cable.usual_joint_damping_n_m_s_rad`.
        stiffness_n_m_rad: Spring towards the straight cable K [N m/rad].
        friction_n_m: Coulomb friction torque of each axis [N m].
    """

    damping_n_m_s_rad: NonNegative | None = None
    bending_damping_n_m2_s: NonNegative | None = None
    stiffness_n_m_rad: NonNegative = 0.0
    friction_n_m: NonNegative = 0.0

    def __post_init__(self) -> None:
        if self.damping_n_m_s_rad is not None and self.bending_damping_n_m2_s is not None:
            raise ValueError(
                "give one of damping_n_m_s_rad (of each joint) and "
                "bending_damping_n_m2_s (of the cable)"
            )


@spec
class LoadCell:
    """Measures the tension of a cable at both of its ends; controllers then go by that.

    Attributes:
        rate_hz: Samples per second; the last one holds until the next.
        noise_n: Standard deviation of white noise of a sample.
        bias_n: Shown without tension.
        gain: Shown over true change of the tension.
        range_n: Largest tension that is shown; left out for no limit.
    """

    rate_hz: Annotated[float, Field(gt=0.0, le=250.0), Number] = 80.0
    noise_n: NonNegative = 0.05
    bias_n: Finite = 0.0
    gain: Positive = 1.0
    range_n: Positive | None = None


_MATERIALS = ", ".join(get_args(Material))


@spec
class Cable:
    """A cable: as rigid links, a chain of equal cylinders with universal joints (Fig. 2).

    `links` links have links + 1 joints: at the load, between links, at the drone. A link lies
    along its x axis; the joint axes are its y and z, so the chain itself does not twist (assumption
    A3). As a rope or a swivel does, it turns about its own axis at the load, unless `twist: locked`
    takes that axis away, as in the paper: a taut cable then holds the yaw of its drone.

    `material` with one of `diameter_m`, `radius_m` and `mass_kg` gives the other values. What is
    given besides holds in place of what follows from the material.

    Attributes:
        material: Material: hmpe, polyester, nylon, steel, aramid or cord. Left out, the stretch is
            that of hmpe, and `mass_kg` is needed.
        diameter_m: Nominal diameter, as on a maker's sheet, from which stretch and strength follow;
            by default twice the radius.
        mass_kg: Mass of the whole cable (m_ic); by default that of the material and diameter.
        length_m: Length (l_ic).
        radius_m: Radius (r_ic), for drag, contact and inertia; by default half the diameter, or
            that of a rope of this material and mass.
        links: Number of rigid links (n_i), or of elastic segments.
        joint: Damping, stiffness and friction of each joint of rigid links.
        twist: "free" for a third axis (the load's vertical) in the joint at the load of rigid
            links, "locked" for none.
        twist_damping_n_m_s_rad: Viscous damping of that axis; by default that of the other two, or
            where the joint has no damping of its own, that of a cable that twists along its length.
        elastic: Elastic properties, for elastic segments and for rigid links that jerk.
        load_cell: Load cells at its ends; left out for the true tension.
        ends: The two places that it joins; left out, cable i joins load attachment i and drone i.
    """

    material: Material | None = None
    diameter_m: Positive | None = None
    mass_kg: Positive = math.nan
    length_m: Positive
    radius_m: Positive = math.nan
    links: Annotated[int, Field(ge=1, le=1000), Number]
    joint: CableJoint = Field(default_factory=CableJoint)
    twist: Literal["locked", "free"] = "free"
    twist_damping_n_m_s_rad: NonNegative | None = None
    elastic: ElasticLine = Field(default_factory=ElasticLine)
    load_cell: LoadCell | None = None
    ends: tuple[CableEnd, CableEnd] | None = None

    def __post_init__(self) -> None:
        if self.twist == "locked" and self.twist_damping_n_m_s_rad is not None:
            raise ValueError("twist_damping_n_m_s_rad needs twist: free")
        self._complete(keys={n for n in ("mass_kg", "radius_m") if not math.isnan(vars(self)[n])})

    def _complete(self, keys: set[str]) -> None:
        """Set mass and radius that follow; note which do not, as `_own`."""
        if self.material is None and "mass_kg" not in keys:
            raise ValueError(f"mass_kg is missing: give it, or the material ({_MATERIALS})")
        if self.diameter_m is not None:
            source = "diameter_m"
            diameter_m = self.diameter_m
        elif "radius_m" in keys:
            source = "radius_m"
            diameter_m = 2.0 * self.radius_m
        elif self.material is None:
            raise ValueError(f"radius_m is missing: give it, diameter_m or material ({_MATERIALS})")
        elif "mass_kg" in keys:
            source = "mass_kg"
            diameter_m = self.rope.diameter_m(self.mass_kg / self.length_m)
        else:
            raise ValueError(f"material: {self.material} needs diameter_m, radius_m or mass_kg")
        follows = {"radius_m": diameter_m / 2.0}
        if self.material is not None:
            follows["mass_kg"] = self.rope.mass_kg_m(diameter_m) * self.length_m
        own = {n for n in keys if n == source or vars(self)[n] != follows.get(n)}
        object.__setattr__(self, "_own", own)  # frozen
        for name in follows.keys() - own:
            if not SMALLEST <= follows[name] <= LARGEST:
                raise ValueError(
                    f"{source} = {vars(self)[source]:g} gives a {name} of {follows[name]:.3g}, "
                    f"which must be from {SMALLEST:g} to {LARGEST:g}"
                )
            object.__setattr__(self, name, follows[name])

    def as_written(self) -> dict[str, Any]:
        """Fields as the user gave them, see `schema.to_data`; derived ones are left out."""
        entries = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in {"mass_kg", "radius_m"} - vars(self)["_own"]:
            del entries[name]
        return entries

    @property
    def rope(self) -> RopeMaterial:
        """Material that it is made of, or that is assumed."""
        return MATERIALS[self.material or ASSUMED]

    @property
    def nominal_diameter_m(self) -> float:
        """Diameter from which stretch and strength follow [m]."""
        return 2.0 * self.radius_m if self.diameter_m is None else self.diameter_m

    @property
    def link_length_m(self) -> float:
        """Length of one link (l_ij) [m]."""
        return self.length_m / self.links

    @property
    def link_mass_kg(self) -> float:
        """Mass of one link (m_ij) [kg]."""
        return self.mass_kg / self.links

    @property
    def link_inertia_kg_m2(self) -> Vector3:
        """Principal moments of one link, a solid cylinder along x, about its centre [kg m2]."""
        m = self.link_mass_kg
        r = self.radius_m
        h = self.link_length_m
        across = m * (3.0 * r**2 + h**2) / 12.0
        return (m * r**2 / 2.0, across, across)

    @property
    def joint_damping_n_m_s_rad(self) -> float:
        """Damping of each joint for this number of links [N m s/rad]."""
        if self.joint.damping_n_m_s_rad is not None:
            return self.joint.damping_n_m_s_rad
        of_bending = self.joint.bending_damping_n_m2_s
        if of_bending is None:
            return self.usual_joint_damping_n_m_s_rad
        return of_bending / self.link_length_m

    @property
    def usual_joint_damping_n_m_s_rad(self) -> float:
        """Damping of each joint with which waves die down as in the seed paper's cable [N m s/rad].

        Waves of wave number k of a line under tension T with mass mu per length and bending damping
        B decay with the damping ratio B k^3 / (2 sqrt(T mu)). The longest wave of the cable of
        Table I, whose joint damping the paper chose by its recorded flights, has `WAVE_DAMPING`;
        so has that of this cable under the tension at which it hangs. Its shortest wave, as long as
        two links, has at most the damping ratio of that cable's: more would only stiffen it.
        """
        steadiness = min(self.links, WAVE_LINKS) ** 3 * 2.0 * WAVE_DAMPING / math.pi**3
        impedance = math.sqrt(self.hanging_tension_n * self.mass_kg / self.length_m)
        return steadiness * impedance * self.link_length_m**2

    @property
    def hanging_tension_n(self) -> float:
        """Tension of the cable at rest, on Earth: its drone's share of the carried weight.

        That of its own weight for a cable that is not yet part of a system [N].
        """
        return STANDARD_GRAVITY_M_S2 * float(vars(self).get("_carries_kg", self.mass_kg))

    def carrying(self, mass_kg: float) -> Cable:
        """Copy of the cable as it hangs in a system, with its share of the carried mass."""
        cable = copy.copy(self)
        object.__setattr__(cable, "_carries_kg", mass_kg)  # frozen
        return cable

    @property
    def is_hardly_damped(self) -> bool:
        """Whether its joints have so little damping that the links whip where they touch things."""
        return self.joint_damping_n_m_s_rad <= BARE * self.usual_joint_damping_n_m_s_rad

    @property
    def ea_n(self) -> float:
        """Axial stiffness where it begins to stretch; of `own_law` only the law knows it [N]."""
        its = self.elastic
        if its.law is None:
            return self.rope.ea_n(self.nominal_diameter_m) if its.ea_n is None else its.ea_n
        (e0, f0), (e1, f1) = next(pair for pair in pairwise(its.law) if pair[1][0] > 0.0)
        return (f1 - f0) / (e1 - e0)

    @property
    def axial_damping_n_s(self) -> float:
        """Force per rate of strain [N s]."""
        if self.elastic.damping_n_s is not None:
            return self.elastic.damping_n_s
        return 0.0 if self.elastic.own_law is not None else self.rope.relaxation_s * self.ea_n

    @property
    def break_force_n(self) -> float | None:
        """Tension at which it breaks [N]; None where neither it nor a material is given."""
        if self.elastic.break_force_n is not None or self.material is None:
            return self.elastic.break_force_n
        return self.rope.break_force_n(self.nominal_diameter_m)

    @property
    def break_force_words(self) -> str:
        """The key that says when it breaks, with its value, for messages."""
        if self.elastic.break_force_n is not None:
            return f"elastic.break_force_n = {self.elastic.break_force_n:g}"
        return f"material = {self.material} ({self.break_force_n:.4g} N)"

    @property
    def rope_words(self) -> str:
        """Material, diameter, stretch and strength in words; a material that is assumed says so."""
        stretch = f"EA {self.ea_n:.3g} N" if self.elastic.own_law is None else "own law"
        strength = "" if self.break_force_n is None else f", breaks at {self.break_force_n:.4g} N"
        its = self.elastic
        if self.material is None and (its.ea_n or its.law or its.own_law):
            return f"{stretch}{strength}"
        rope = f"{ASSUMED} assumed" if self.material is None else self.material
        return f"{rope}, {1e3 * self.nominal_diameter_m:.3g} mm, {stretch}{strength}"

    @property
    def ei_n_m2(self) -> float:
        """Bending stiffness [N m2]."""
        if self.elastic.ei_n_m2 is not None:
            return self.elastic.ei_n_m2
        return 0.0 if self.material is None else self.rope.ei_n_m2(self.nominal_diameter_m)

    @property
    def drag_across_n_s2_m3(self) -> float:
        """Air drag across it, per length and squared speed."""
        own = self.elastic.drag_across_n_s2_m3
        return CYLINDER_DRAG * STANDARD_DENSITY_KG_M3 * self.radius_m if own is None else own

    @property
    def free_twist_damping_n_m_s_rad(self) -> float:
        """Damping of the axis about which a cable with free twist turns [N m s/rad]."""
        if self.twist_damping_n_m_s_rad is not None:
            return self.twist_damping_n_m_s_rad
        bends = self.joint_damping_n_m_s_rad
        joint = self.joint
        own = joint.damping_n_m_s_rad is None and joint.bending_damping_n_m2_s is None
        return bends / self.links if own else bends


def _list_of_drones(value: Any) -> Any:
    """Refuse a number of drones: each has its place on the load."""
    if value is not None and not isinstance(value, (list, tuple)):
        number = f" --drones {value}" if type(value) is int and 0 < value <= MAX_CABLES else ""
        raise ValueError(
            "must be a list with a mapping for each drone; a system with another number of drones, "
            f"their cables and places on the load is written by `musls new system{number}`"
        )
    return value


Drones = Annotated[
    tuple[Drone, ...], BeforeValidator(_list_of_drones), Field(max_length=MAX_CABLES)
]


@spec
class RigSystem(ShownResult):
    """Load, drones and anchors joined by cables in any way.

    Attributes:
        name: Short name.
        description: One line for people.
        load: The load (a platform, a box); None where cables join drones and anchors only.
        drones: The drones, one entry each: the number of drones is the length of this list
            (`musls new system --drones 4`). It may be empty where there are anchors.
        anchors: Bodies that do not move by themselves.
        cables: The cables; each joins two bodies.
        winches: Winches at ends of cables.
        pulleys: Pulleys on bodies, over which cables run.
        ground_friction: Friction coefficient of load and drones on the ground.
    """

    name: str
    description: str = ""
    load: Load | None = None
    drones: Drones = ()
    anchors: Annotated[tuple[Anchor, ...], Field(max_length=MAX_ANCHORS)] = ()
    cables: Annotated[tuple[Cable, ...], Field(max_length=MAX_CABLES)]
    winches: Annotated[tuple[Winch, ...], Field(max_length=MAX_ANCHORS)] = ()
    pulleys: Annotated[tuple[Pulley, ...], Field(max_length=MAX_ANCHORS)] = ()
    ground_friction: Fraction = 0.8

    def __post_init__(self) -> None:
        if not self.drones and not self.anchors:
            raise ValueError("a system needs drones or anchors")
        if not self.cables:
            raise ValueError("a system needs cables")
        counts = {len(drone.rotors) for drone in self.drones}
        if len(counts) > 1:
            raise ValueError(
                f"all drones must have the same number of rotors, not {sorted(counts)}"
            )
        check_rig(self)

    def shown(self) -> Iterator[str | Table]:
        """Number, mass and size of the parts."""
        yield f"{self.name}: {self.description}".rstrip(": ")
        rows = []
        if self.load is not None:
            edges = " x ".join(f"{edge:g}" for edge in self.load.collision.size_m)
            size = "point mass" if self.load.point_mass else f"box around it {edges} m"
            rows.append(("load", "1", f"{self.load.mass_kg:g}", size))
        for drone, count in Counter(self.drones).items():
            what = f"{drone.model}, {self.n_rotors} rotors of {drone.rotors[0].max_thrust_n:.3g} N"
            rows.append(("drones", str(count), f"{drone.mass_kg:g}", what))
        for cable, count in Counter(self.cables).items():
            what = f"{cable.length_m:g} m long, {cable.links} links; {cable.rope_words}"
            rows.append(("cables", str(count), f"{cable.mass_kg:g}", what))
        for part in ("anchors", "winches", "pulleys"):
            if count := len(getattr(self, part)):
                rows.append((part, str(count), "", ""))
        rows.append(("all", "", f"{self.mass_kg:.4g}", ""))
        yield Table(("part", "number", "mass of each [kg]", ""), rows)

    @property
    def n_drones(self) -> int:
        """Number of drones."""
        return len(self.drones)

    @property
    def n_rotors(self) -> int:
        """Number of rotors of each drone; 0 without drones."""
        return len(self.drones[0].rotors) if self.drones else 0

    @property
    def n_cables(self) -> int:
        """Number of cables."""
        return len(self.cables)

    @property
    def mass_kg(self) -> float:
        """Mass of everything that is not held: load, drones, cables, pushed anchors [kg]."""
        anchors = sum(anchor.mass_kg or 0.0 for anchor in self.anchors)
        return self.carried_mass_kg + sum(drone.mass_kg for drone in self.drones) + anchors

    @property
    def carried_mass_kg(self) -> float:
        """Mass of load and cables [kg]."""
        load = 0.0 if self.load is None else self.load.mass_kg
        return load + sum(cable.mass_kg for cable in self.cables)

    def ends(self, index: int) -> tuple[CableEnd, CableEnd]:
        """The two ends of cable `index` (from 0), of one without `ends` at load and drone."""
        ends = self.cables[index].ends
        if ends is not None:
            return ends
        assert self.load is not None  # checked with the cables
        return (
            CableEnd(body="load", point_m=self.load.cable_attachments_m[index]),
            CableEnd(body=f"drone_{index + 1}", point_m=self.drones[index].cable_attachment_m),
        )

    @property
    def formation(self) -> SlungLoadSystem | None:
        """Load and drones as a slung-load system, if each hangs on its own cable and on no other.

        Winches may sit on the cables; anchors and pulleys may not be there.
        """
        plain = all(cable.ends is None for cable in self.cables) and not self.pulleys
        if not plain or self.anchors or self.load is None or self.n_cables != self.n_drones:
            return None
        if len(self.load.cable_attachments_m) != self.n_drones:
            return None
        return SlungLoadSystem(
            name=self.name,
            description=self.description,
            load=self.load,
            drones=self.drones,
            cables=self.cables,
            ground_friction=self.ground_friction,
        )


@spec
class SlungLoadSystem(RigSystem):
    """Several drones that carry one load, cable i from load attachment i to drone i.

    Attributes:
        load: The load.
        drones: One per cable.
        cables: Cables in the order of the load's attachments.
    """

    load: Load = Field()  # without it the default of the base would hold
    drones: Drones = Field()

    def __post_init__(self) -> None:
        n = len(self.load.cable_attachments_m)
        if n == 0:
            raise ValueError("load.cable_attachments_m: there must be at least 1, one per cable")
        for part, count in (("drones", len(self.drones)), ("cables", len(self.cables))):
            if count != n:
                raise ValueError(
                    f"{n} load.cable_attachments_m but {count} {part}: "
                    "cable i joins attachment i to drone i, so the numbers must be equal"
                )
        share_kg = self.carried_mass_kg / n
        hanging = tuple(cable.carrying(share_kg) for cable in self.cables)
        object.__setattr__(self, "cables", hanging)  # frozen
        super().__post_init__()

    @property
    def formation(self) -> SlungLoadSystem:
        """Itself."""
        return self

    def turnable(self, *, twist_held: bool) -> Array:
        """Projection on the axes about which the cables can turn the load, its frame, (3, 3).

        Forces of cables turn a load about all axes, of two cables not about the line through their
        attachments, of one cable about none; a cable that does not twist (`twist_held`: and whose
        model knows of it) turns it about the vertical.
        """
        axes = np.zeros((3, 0))
        if not self.load.point_mass:
            places = np.array(self.load.cable_attachments_m, np.float64)
            vectors, sizes, _ = np.linalg.svd(grasp_matrix(places - places.mean(axis=0))[3:])
            axes = vectors[:, : len(sizes)][:, sizes > 1e-6]
            if twist_held and any(cable.twist == "locked" for cable in self.cables):
                with_twist = np.column_stack([axes, [0.0, 0.0, 1.0]])
                vectors, sizes, _ = np.linalg.svd(with_twist)
                axes = vectors[:, : len(sizes)][:, sizes > 1e-6]
        projector: Array = axes @ axes.T
        return projector

    def carried_by(self, drones: Sequence[int]) -> SlungLoadSystem:
        """The load on the cables of some drones (from 0) alone."""
        hooks = tuple(self.load.cable_attachments_m[i] for i in drones)
        return dataclasses.replace(
            self,
            load=dataclasses.replace(self.load, cable_attachments_m=hooks),
            drones=tuple(self.drones[i] for i in drones),
            cables=tuple(self.cables[i] for i in drones),
        )


def system_class(data: Any) -> type[RigSystem]:
    """Class of a system by what its data has: anchors, winches, pulleys or ends make it a rig."""
    if not isinstance(data, Mapping):
        return SlungLoadSystem
    cables = data.get("cables")
    has_ends = isinstance(cables, (list, tuple)) and any(
        isinstance(cable, Mapping) and cable.get("ends") is not None for cable in cables
    )
    rig = has_ends or any(data.get(part) for part in ("anchors", "winches", "pulleys"))
    return RigSystem if rig else SlungLoadSystem


def _validated(value: Any) -> Any:
    """Build a system of its own class from plain data."""
    if not isinstance(value, Mapping):
        return value
    return adapter(system_class(value)).validate_python(value)


AnySystem = Annotated[RigSystem, BeforeValidator(_validated)]
"""Type of a field that holds a slung-load system or another rig."""

# ---------- Checks of code that cannot treat every rig


def slung_system(system: RigSystem, what: str) -> SlungLoadSystem:
    """Return a system that is a slung load (one cable to each drone, nothing else), else raise."""
    if isinstance(system, SlungLoadSystem):
        return system
    parts = [name for name in ("anchors", "winches", "pulleys") if getattr(system, name)]
    parts += ["cables with ends of their own"] if any(k.ends for k in system.cables) else []
    other = ""
    if what.startswith("cable_model"):
        alike = system.winches or system.pulleys or system.load is None
        other = f", choose cable_model: elastic{'' if alike else ', massless or rigid_links'}"
    raise ConfigError(
        f"{what}: system {system.name} has {' and '.join(parts)}; only a load with one cable to "
        f"each drone is possible there{other}"
    )


def formation_of(system: RigSystem, what: str) -> SlungLoadSystem:
    """Load and drones that fly in formation; winches on their cables may be there."""
    return system.formation or slung_system(system, what)


def extended_load(system: RigSystem, what: str) -> None:
    """Refuse a load that is a point mass."""
    if system.load is not None and system.load.point_mass:
        raise ConfigError(
            f"{what} needs load.inertia_kg_m2, but the load of {system.name} is a point mass; "
            "choose cable_model: massless"
        )
