"""What a multi-UAV slung-load system is: load, drones with rotors, cables made of rigid links.

`SlungLoadSystem` is the only source of truth for masses, inertias, attachment points and links;
every writer (DART skeleton, SDF, Xacro) reads it. It is a `RigSystem`: that has the same parts, and
anchors, winches and wheels, joined in any way (see `rigging`). Symbols in brackets are those of the
seed paper (Merton and Hunter, "Dynamics Modeling of a Multi-UAV Slung Load System Using a
Discrete-Link Cable Approach", Table I and eq. 1 to 10). Body frames are FLU with the origin in the
centre of mass, SI units throughout.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from musls_description.drone import Box, Drone
from musls_description.rigging import (
    MAX_ANCHORS,
    Anchor,
    CableEnd,
    ElasticLine,
    Wheel,
    Winch,
    check_rig,
)
from musls_description.schema import (
    NO_INERTIA,
    Fraction,
    LoadInertia,
    NonNegative,
    Number,
    Positive,
    Vector3,
    adapter,
    spec,
)
from musls_description.shapes import AnyShape, inertia_instead_of

MAX_CABLES = 100
"""Drones of one system; the plants' arrays grow with the square of the joints of all."""


_NO_BOX = Box(size_m=(1.0, 1.0, 1.0))
"""Stands for a box that was not given."""


@spec
class Load:
    """The rigid load (root of the tree).

    Attributes:
        mass_kg: Mass (m_L).
        shape: What it is, homogeneous: inertia and, if that is left out, box follow from it.
        inertia_kg_m2: Inertia about the centre of mass in the load frame (J_L), (3, 3); left out
            with a `shape`, and for a point mass.
        cable_attachments_m: Where the cables pull, one per cable, load frame (L_r_iL). Those of a
            rig whose cables say their own `ends` may be left out.
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
    drag_n_s_m: tuple[NonNegative, NonNegative, NonNegative] = (0.0, 0.0, 0.0)
    point_mass: bool = False

    def __post_init__(self) -> None:
        """Check what concerns more than one field, and complete what follows from the shape."""
        if self.shape is not None:
            self._complete(self.shape)
        elif self.collision is _NO_BOX:
            raise ValueError("collision is missing: give it, or a shape, from which it follows")
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
        """Fields as they were given, see `schema.to_data`: what follows is not written."""
        written = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if self.shape is None:
            del written["shape"]
            return written
        del written["inertia_kg_m2"]
        if not vars(self)["_own_box"]:
            del written["collision"]
        return written


@spec
class CableJoint:
    """Moment of a universal joint about its two axes (eq. 10): -K theta - C theta' - friction.

    Attributes:
        damping_n_m_s_rad: Viscous damping of each joint C [N m s/rad].
        bending_damping_n_m2_s: Alternative to the former: damping of the cable's bending, moment
            per rate of curvature [N m2 s]. A joint stands for one link length h of cable, so
            C = bending damping / h: the physics stays the same when the number of links changes.
        stiffness_n_m_rad: Spring towards the straight cable K [N m/rad].
        friction_n_m: Coulomb friction torque of each axis [N m].
    """

    damping_n_m_s_rad: NonNegative | None = None
    bending_damping_n_m2_s: NonNegative | None = None
    stiffness_n_m_rad: NonNegative = 0.0
    friction_n_m: NonNegative = 0.0

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if (self.damping_n_m_s_rad is None) == (self.bending_damping_n_m2_s is None):
            raise ValueError(
                "give one of damping_n_m_s_rad (of each joint) and "
                "bending_damping_n_m2_s (of the cable)"
            )


@spec
class Cable:
    """A cable: as rigid links, a chain of equal cylinders with universal joints (Fig. 2).

    `links` links have links + 1 joints: at the load, between links, at the drone. A link lies
    along its x axis; the joint axes are its y and z, so the chain does not twist (assumption A3).
    `twist: free` lets it turn about its own axis at the load, as a rope or a swivel does.

    Attributes:
        mass_kg: Mass of the whole cable (m_ic).
        length_m: Length (l_ic).
        radius_m: Radius (r_ic).
        links: Number of rigid links (n_i), or of elastic segments.
        joint: Damping, stiffness and friction of each joint of rigid links; by default none.
        twist: "locked" as in the paper, "free" for a third axis (the load's vertical) in the joint
            at the load of rigid links.
        elastic: What it is made of, for elastic segments.
        ends: The two places that it joins; left out, cable i joins load attachment i and drone i.
    """

    mass_kg: Positive
    length_m: Positive
    radius_m: Positive
    links: Annotated[int, Field(ge=1, le=1000), Number]
    joint: CableJoint = Field(default_factory=lambda: CableJoint(damping_n_m_s_rad=0.0))
    twist: Literal["locked", "free"] = "locked"
    elastic: ElasticLine = Field(default_factory=ElasticLine)
    ends: tuple[CableEnd, CableEnd] | None = None

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
        m, r, h = self.link_mass_kg, self.radius_m, self.link_length_m
        across = m * (3.0 * r**2 + h**2) / 12.0
        return (m * r**2 / 2.0, across, across)

    @property
    def joint_damping_n_m_s_rad(self) -> float:
        """Damping of each joint for this number of links [N m s/rad]."""
        if self.joint.bending_damping_n_m2_s is not None:
            return self.joint.bending_damping_n_m2_s / self.link_length_m
        assert self.joint.damping_n_m_s_rad is not None  # checked by CableJoint
        return self.joint.damping_n_m_s_rad


@spec
class RigSystem:
    """Load, drones and anchors joined by cables in any way; simulated by elastic cables.

    Attributes:
        name: Short name.
        description: One line for people.
        load: The load (a platform, a box); None where cables join drones and anchors only.
        drones: The drones; an empty list is allowed where there are anchors.
        anchors: Bodies that do not move by themselves.
        cables: The cables; each joins two bodies.
        winches: Winches at ends of cables.
        wheels: Wheels (pulleys) on bodies, over which cables run.
        ground_friction: Friction coefficient of load and drones on the ground.
    """

    name: str
    description: str = ""
    load: Load | None = None
    drones: Annotated[tuple[Drone, ...], Field(max_length=MAX_CABLES)] = ()
    anchors: Annotated[tuple[Anchor, ...], Field(max_length=MAX_ANCHORS)] = ()
    cables: Annotated[tuple[Cable, ...], Field(max_length=MAX_CABLES)]
    winches: Annotated[tuple[Winch, ...], Field(max_length=MAX_ANCHORS)] = ()
    wheels: Annotated[tuple[Wheel, ...], Field(max_length=MAX_ANCHORS)] = ()
    ground_friction: Fraction = 0.8

    def __post_init__(self) -> None:
        """Check what concerns more than one part."""
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

        Winches may sit on the cables; anchors and wheels may not be there.
        """
        plain = all(cable.ends is None for cable in self.cables) and not self.wheels
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
        name: Short name.
        description: One line for people.
        load: The load.
        drones: One per cable.
        cables: In the order of the load's attachments.
        ground_friction: Friction coefficient of load and drones on the ground.
    """

    load: Load = Field()  # without it the default of the base would hold
    drones: Annotated[tuple[Drone, ...], Field(max_length=MAX_CABLES)] = Field()

    def __post_init__(self) -> None:
        """Check what concerns more than one part."""
        n = len(self.load.cable_attachments_m)
        if n == 0:
            raise ValueError("load.cable_attachments_m: there must be at least 1, one per cable")
        for part, count in (("drones", len(self.drones)), ("cables", len(self.cables))):
            if count != n:
                raise ValueError(
                    f"{n} load.cable_attachments_m but {count} {part}: "
                    "cable i joins attachment i to drone i, so the numbers must be equal"
                )
        super().__post_init__()

    @property
    def formation(self) -> SlungLoadSystem:
        """Itself."""
        return self


def system_class(data: Any) -> type[RigSystem]:
    """Class of a system by what its data has: anchors, winches, wheels or ends make it a rig.

    Args:
        data: As read from YAML, short forms written out.
    """
    if not isinstance(data, Mapping):
        return SlungLoadSystem
    cables = data.get("cables")
    ended = isinstance(cables, (list, tuple)) and any(
        isinstance(cable, Mapping) and cable.get("ends") is not None for cable in cables
    )
    rig = ended or any(data.get(part) for part in ("anchors", "winches", "wheels"))
    return RigSystem if rig else SlungLoadSystem


def _validated(value: Any) -> Any:
    """Build a system of its own class from plain data."""
    if not isinstance(value, Mapping):
        return value
    return adapter(system_class(value)).validate_python(value)


AnySystem = Annotated[RigSystem, BeforeValidator(_validated)]
"""Type of a field that holds a slung-load system or another rig."""
