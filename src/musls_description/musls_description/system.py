"""What a multi-UAV slung-load system is: load, drones with rotors, cables made of rigid links.

`SlungLoadSystem` is the only source of truth for masses, inertias, attachment points and links;
every writer (DART skeleton, SDF, Xacro) reads it. Symbols in brackets are those of the seed paper
(Merton and Hunter, "Dynamics Modeling of a Multi-UAV Slung Load System Using a Discrete-Link
Cable Approach", Table I and eq. 1 to 10). Body frames are FLU with the origin in the centre of
mass, SI units throughout.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field

from musls_description.propulsion import Propulsion
from musls_description.schema import (
    Edges,
    Fraction,
    Matrix3,
    NonNegative,
    Number,
    Positive,
    Vector3,
    spec,
)

MAX_CABLES = 100
"""Drones of one system; the plants' arrays grow with the square of the joints of all."""


MAX_ROTORS = 12
"""Rotors of one drone: as many as PX4's control allocation knows."""


def _inertia(matrix: Matrix3) -> Matrix3:
    """Check that a real body can have this inertia: symmetric, positive, triangle rule."""
    inertia = np.array(matrix)
    if not np.allclose(inertia, inertia.T, rtol=1e-9, atol=0.0):
        raise ValueError("an inertia matrix must be symmetric")
    a, b, c = np.linalg.eigvalsh(inertia)
    moments = f"principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m2"
    if a <= 0.0:
        raise ValueError(f"an inertia matrix must be positive definite ({moments})")
    if a + b < c * (1.0 - 1e-9):
        raise ValueError(
            f"no rigid body has this inertia: the two smaller {moments} add up to less "
            "than the largest (triangle inequality)"
        )
    return matrix


Inertia = Annotated[Matrix3, AfterValidator(_inertia)]
"""Inertia matrix about the centre of mass, body frame [kg m2]."""


@spec
class Box:
    """Axis-aligned box in a body frame that touches the ground.

    Attributes:
        size_m: Edges along x, y, z [m].
        center_m: Centre in the body frame [m].
    """

    size_m: Edges
    center_m: Vector3 = (0.0, 0.0, 0.0)

    @property
    def bottom_m(self) -> float:
        """Height of the lower face in the body frame [m]."""
        return self.center_m[2] - self.size_m[2] / 2.0


@spec
class Load:
    """The rigid load (root of the tree).

    Attributes:
        mass_kg: Mass (m_L).
        inertia_kg_m2: Inertia about the centre of mass in the load frame (J_L), (3, 3).
        cable_attachments_m: Where the cables pull, one per cable, load frame (L_r_iL).
        collision: Box that touches the ground.
        drag_n_s_m: Linear air drag of the body per axis (x, y, z of the load) [N s/m].
    """

    mass_kg: Positive
    inertia_kg_m2: Inertia
    cable_attachments_m: Annotated[tuple[Vector3, ...], Field(min_length=1, max_length=MAX_CABLES)]
    collision: Box
    drag_n_s_m: tuple[NonNegative, NonNegative, NonNegative] = (0.0, 0.0, 0.0)


@spec
class Rotor:
    """One rotor: thrust k w^2 along the body z axis, first-order lag of its speed.

    Model and constants of PX4's Gazebo x500 (MulticopterMotorModel). Lag: the speed w follows the
    commanded speed with a time constant that differs between spinning up and down.
    thrust_coefficient_n_s2, moment_ratio_m and speed_max_rad_s may be left out where they follow
    from the drone's `propulsion`; they are NaN only until the drone is made.

    Attributes:
        position_m: Hub in the drone frame (FLU).
        spin: "ccw" or "cw" seen from above; the reaction torque on the body is opposite.
        thrust_coefficient_n_s2: Thrust per squared speed k [N s2/rad2].
        moment_ratio_m: Reaction torque per thrust [m].
        time_constant_up_s: Lag while the speed rises.
        time_constant_down_s: Lag while the speed falls.
        speed_min_rad_s: Speed at zero motor command while armed.
        speed_max_rad_s: Speed at full motor command.
        drag_n_s2_m_rad: Rotor drag: force -c |w| v_perpendicular to the rotor axis.
    """

    position_m: Vector3
    spin: Literal["ccw", "cw"]
    thrust_coefficient_n_s2: Positive = math.nan
    moment_ratio_m: NonNegative = math.nan
    time_constant_up_s: Positive
    time_constant_down_s: Positive
    speed_min_rad_s: NonNegative
    speed_max_rad_s: Positive = math.nan
    drag_n_s2_m_rad: NonNegative = 0.0

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if self.speed_min_rad_s >= self.speed_max_rad_s:
            raise ValueError(
                f"speed_min_rad_s {self.speed_min_rad_s} must be below "
                f"speed_max_rad_s {self.speed_max_rad_s}"
            )

    @property
    def max_thrust_n(self) -> float:
        """Thrust at full speed [N]."""
        return self.thrust_coefficient_n_s2 * self.speed_max_rad_s**2

    @property
    def moment_coefficient_n_m_s2(self) -> float:
        """Reaction torque per squared speed [N m s2/rad2]."""
        return self.thrust_coefficient_n_s2 * self.moment_ratio_m


def _completed(rotor: Rotor, propulsion: Propulsion | None, index: int) -> Rotor:
    """A rotor whose constants all have numbers.

    Raises:
        ValueError: One does not follow from the propulsion.
    """
    missing = [name for name in _FOLLOWING if math.isnan(getattr(rotor, name))]
    if not missing:
        return rotor
    found = _numbers(rotor)
    if propulsion is not None:
        found = propulsion.rotor_constants() | found
        made = Rotor(**found)
        top_rad_s = propulsion.top_speed_rad_s(made.moment_coefficient_n_m_s2)
        if top_rad_s is not None and not math.isnan(top_rad_s):
            found.setdefault("speed_max_rad_s", top_rad_s)
    made = Rotor(**found)
    for name, source in _FOLLOWING.items():
        if math.isnan(getattr(made, name)):
            raise ValueError(f"rotors.{index}.{name} is missing, or {source} from which it follows")
    return made


def _numbers(rotor: Rotor) -> dict[str, Any]:
    """Fields of a rotor that were given."""
    fields = {f.name: getattr(rotor, f.name) for f in dataclasses.fields(rotor)}
    return {name: value for name, value in fields.items() if value == value}


_FOLLOWING = {
    "thrust_coefficient_n_s2": "propulsion.propeller",
    "moment_ratio_m": "propulsion.propeller",
    "speed_max_rad_s": "propulsion.motor and battery",
}
"""Constants of a rotor that may be left out, and what they follow from."""


@spec
class Drone:
    """One multirotor, rigid with its (massless) rotors.

    Attributes:
        mass_kg: Mass with rotors and battery (m_i).
        inertia_kg_m2: Inertia about the centre of mass, drone frame (J_i), (3, 3).
        cable_attachment_m: Where the cable pulls, drone frame (i_r_i).
        rotors: Four to twelve.
        collision: Box that touches the ground (landing gear).
        drag_n_s_m: Linear air drag of the body per axis (x, y, z of the drone) [N s/m].
        model: Name of the airframe's Gazebo model, e.g. "x500".
        propulsion: Air, propellers, motors and battery; None where nobody asks for currents.
    """

    mass_kg: Positive
    inertia_kg_m2: Inertia
    cable_attachment_m: Vector3
    rotors: Annotated[tuple[Rotor, ...], Field(min_length=4, max_length=MAX_ROTORS)]
    collision: Box
    drag_n_s_m: tuple[NonNegative, NonNegative, NonNegative] = (0.0, 0.0, 0.0)
    model: str = "x500"
    propulsion: Propulsion | None = None

    def __post_init__(self) -> None:
        """Complete the rotors from the propulsion."""
        completed = tuple(
            _completed(rotor, self.propulsion, k) for k, rotor in enumerate(self.rotors)
        )
        object.__setattr__(self, "_given", self.rotors)  # frozen
        object.__setattr__(self, "rotors", completed)

    def as_written(self) -> dict[str, Any]:
        """Fields as they were given, see `schema.to_data`: what follows is not written."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        fields["rotors"] = [_numbers(rotor) for rotor in vars(self)["_given"]]
        return fields

    @property
    def max_thrust_n(self) -> float:
        """Thrust with all rotors at full speed [N]."""
        return sum(rotor.max_thrust_n for rotor in self.rotors)


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
    """An inextensible cable as a chain of equal rigid cylinders with universal joints (Fig. 2).

    `links` links have links + 1 joints: at the load, between links, at the drone. A link lies
    along its x axis; the joint axes are its y and z, so the chain does not twist (assumption A3).
    `twist: free` lets it turn about its own axis at the load, as a rope or a swivel does.

    Attributes:
        mass_kg: Mass of the whole cable (m_ic).
        length_m: Length (l_ic).
        radius_m: Radius (r_ic).
        links: Number of rigid links (n_i).
        joint: What acts in each joint.
        twist: "locked" as in the paper, "free" for a third axis (the load's vertical) in the joint
            at the load.
    """

    mass_kg: Positive
    length_m: Positive
    radius_m: Positive
    links: Annotated[int, Field(ge=1, le=1000), Number]
    joint: CableJoint
    twist: Literal["locked", "free"] = "locked"

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
class SlungLoadSystem:
    """Several drones that carry one load, cable i from load attachment i to drone i.

    Attributes:
        name: Short name.
        description: One line for people.
        load: The load.
        drones: One per cable.
        cables: In the order of the load's attachments.
        ground_friction: Friction coefficient of load and drones on the ground.
    """

    name: str
    description: str = ""
    load: Load
    drones: tuple[Drone, ...]
    cables: tuple[Cable, ...]
    ground_friction: Fraction = 0.8

    def __post_init__(self) -> None:
        """Check what concerns more than one part."""
        n = len(self.load.cable_attachments_m)
        for part, count in (("drones", len(self.drones)), ("cables", len(self.cables))):
            if count != n:
                raise ValueError(
                    f"{n} load.cable_attachments_m but {count} {part}: "
                    "cable i joins attachment i to drone i, so the numbers must be equal"
                )
        counts = {len(drone.rotors) for drone in self.drones}
        if len(counts) > 1:
            raise ValueError(
                f"all drones must have the same number of rotors, not {sorted(counts)}"
            )

    @property
    def n_drones(self) -> int:
        """Number of drones, which is the number of cables."""
        return len(self.drones)

    @property
    def mass_kg(self) -> float:
        """Mass of everything that flies [kg]."""
        parts: tuple[Drone | Cable, ...] = (*self.drones, *self.cables)
        return self.load.mass_kg + sum(part.mass_kg for part in parts)

    @property
    def carried_mass_kg(self) -> float:
        """Mass of load and cables [kg]."""
        return self.load.mass_kg + sum(cable.mass_kg for cable in self.cables)
