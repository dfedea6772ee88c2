"""One drone: body, rotors and, where asked for, what drives them. SI units, body frame FLU."""

from __future__ import annotations

import dataclasses
import math
from itertools import combinations
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import AfterValidator, Field

from musls_description.config.schema import (
    Edges,
    Matrix3,
    NonNegative,
    PerAxis,
    Positive,
    Vector3,
    spec,
)
from musls_description.numerics.arrays import Array
from musls_description.system.propulsion import STANDARD_DENSITY_KG_M3, Propulsion

# ---------- Inertia matrices


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

NO_INERTIA: Matrix3 = ((0.0, 0.0, 0.0),) * 3
"""Inertia of a point mass."""


def _inertia_or_none(matrix: Matrix3) -> Matrix3:
    return matrix if matrix == NO_INERTIA else _inertia(matrix)


LoadInertia = Annotated[Matrix3, AfterValidator(_inertia_or_none)]
"""Inertia of a load: that of a rigid body, or zero for a point mass."""


# ---------- Homogeneous shapes: inertia and box of a body follow from them

Axis = Literal["x", "y", "z"]


@spec
class BoxShape:
    """A solid box.

    Attributes:
        kind: "box".
        size_m: Edges along x, y, z.
    """

    kind: Literal["box"] = "box"
    size_m: Edges

    @property
    def squares_m2(self) -> Vector3:
        """Mean squares of x, y and z over the mass."""
        x, y, z = self.size_m
        return (x * x / 12.0, y * y / 12.0, z * z / 12.0)

    @property
    def edges_m(self) -> Vector3:
        """Edges of the box around it."""
        return self.size_m


@spec
class CylinderShape:
    """A solid cylinder.

    Attributes:
        kind: "cylinder".
        radius_m: Radius.
        length_m: Length along its axis.
        axis: Axis of the body's frame along which the cylinder lies.
    """

    kind: Literal["cylinder"] = "cylinder"
    radius_m: Positive
    length_m: Positive
    axis: Axis = "z"

    @property
    def squares_m2(self) -> Vector3:
        """Mean squares of x, y and z over the mass."""
        return _along(self.axis, self.length_m**2 / 12.0, self.radius_m**2 / 4.0)

    @property
    def edges_m(self) -> Vector3:
        """Edges of the box around it."""
        return _along(self.axis, self.length_m, 2.0 * self.radius_m)


@spec
class RodShape(CylinderShape):
    """A thin straight rod: a cylinder with other defaults.

    Attributes:
        kind: "rod".
        length_m: Length.
    """

    kind: Literal["rod"] = "rod"  # type: ignore[assignment]  # pydantic tells the classes by it
    radius_m: Positive = 0.01
    axis: Axis = "x"


@spec
class PlateShape:
    """A flat, level plate.

    Attributes:
        kind: "plate".
        length_m: Length along x.
        width_m: Width along y.
        thickness_m: Thickness along z.
    """

    kind: Literal["plate"] = "plate"
    length_m: Positive
    width_m: Positive
    thickness_m: Positive = 0.01

    @property
    def squares_m2(self) -> Vector3:
        """Mean squares of x, y and z over the mass."""
        return BoxShape(size_m=self.edges_m).squares_m2

    @property
    def edges_m(self) -> Vector3:
        """Edges of the box around it."""
        return (self.length_m, self.width_m, self.thickness_m)


AnyShape = Annotated[BoxShape | CylinderShape | RodShape | PlateShape, Field(discriminator="kind")]
"""Type of a body's `shape`."""


def _along(axis: Axis, along: float, across: float) -> Vector3:
    values = [across] * 3
    values["xyz".index(axis)] = along
    return (values[0], values[1], values[2])


def inertia_of(shape: AnyShape, mass_kg: float) -> Matrix3:
    """Inertia of a homogeneous body about its centre [kg m2]."""
    x, y, z = shape.squares_m2
    moments = mass_kg * np.array([y + z, z + x, x + y])
    rows = [tuple(float(v) for v in row) for row in np.diag(moments)]
    return (rows[0], rows[1], rows[2])  # type: ignore[return-value]


def inertia_instead_of(given_kg_m2: Matrix3, shape: AnyShape, mass_kg: float) -> Matrix3:
    """Inertia of a body that has a shape [kg m2].

    `given_kg_m2` is its field `inertia_kg_m2`: zero, or from the same shape with another mass, as
    a copy with a new mass brings it along.
    """
    follows = inertia_of(shape, mass_kg)
    own_inertia = np.array(given_kg_m2)
    scaled_inertia = np.array(follows) * np.trace(own_inertia) / np.trace(follows)
    if own_inertia.any() and not np.allclose(own_inertia, scaled_inertia, rtol=1e-9, atol=0.0):
        raise ValueError("give either shape or inertia_kg_m2, not both")
    return follows


MAX_ROTORS = 12
"""Rotors of one drone: as many as PX4's control allocation knows."""


BOX_FACES = (
    (0, 2, 6, 4),
    (1, 5, 7, 3),
    (0, 4, 5, 1),
    (2, 3, 7, 6),
    (0, 1, 3, 2),
    (4, 6, 7, 5),
)
"""Corners of the faces -z, +z, -y, +y, -x, +x of a box, anti-clockwise seen from outside; corners
count x, y, z as bits 4, 2, 1."""


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

    @property
    def corners_m(self) -> np.ndarray:
        """Corners in the body frame, (8, 3) [m]."""
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        return np.array(self.center_m) + 0.5 * signs * np.array(self.size_m)


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
    """A rotor whose constants all have numbers."""
    missing_names = [name for name in _FOLLOWING if math.isnan(getattr(rotor, name))]
    if not missing_names:
        return rotor
    constants = _numbers(rotor)
    if propulsion is not None:
        constants = propulsion.rotor_constants() | constants
        new_rotor = Rotor(**constants)
        top_rad_s = propulsion.top_speed_rad_s(new_rotor.moment_coefficient_n_m_s2)
        if top_rad_s is not None and not math.isnan(top_rad_s):
            constants.setdefault("speed_max_rad_s", top_rad_s)
    new_rotor = Rotor(**constants)
    for name, source in _FOLLOWING.items():
        if math.isnan(getattr(new_rotor, name)):
            raise ValueError(
                f"rotors.{index}.{name} is missing: give it, or {source}, from which it follows"
            )
    return new_rotor


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
        shape: A homogeneous body with the drone's inertia, as an alternative to `inertia_kg_m2`.
        inertia_kg_m2: Inertia about the centre of mass, drone frame (J_i), (3, 3); left out with a
            `shape`.
        cable_attachment_m: Attachment of the cable, drone frame (i_r_i).
        rotors: The rotors, four to twelve.
        collision: Box that touches the ground (landing gear).
        drag_n_s_m: Linear air drag of the body per axis (x, y, z of the drone) [N s/m].
        model: Name of the airframe's Gazebo model. An "x500" flies with PX4's own mixer and gains,
            any other with those that follow from its rotors.
        propulsion: Air, propellers, motors and battery; left out for rotors without currents.
    """

    mass_kg: Positive
    shape: AnyShape | None = None
    inertia_kg_m2: LoadInertia = NO_INERTIA
    cable_attachment_m: Vector3
    rotors: Annotated[tuple[Rotor, ...], Field(min_length=4, max_length=MAX_ROTORS)]
    collision: Box
    drag_n_s_m: Annotated[tuple[NonNegative, NonNegative, NonNegative], PerAxis] = (0.0, 0.0, 0.0)
    model: str = "multirotor"
    propulsion: Propulsion | None = None

    def __post_init__(self) -> None:
        """Complete the inertia from the shape and the rotors from the propulsion."""
        if self.shape is not None:
            follows = inertia_instead_of(self.inertia_kg_m2, self.shape, self.mass_kg)
            object.__setattr__(self, "inertia_kg_m2", follows)  # frozen
        elif self.inertia_kg_m2 == NO_INERTIA:
            raise ValueError("give one of shape (box, cylinder, rod or plate) and inertia_kg_m2")
        completed = tuple(
            _completed(rotor, self.propulsion, k) for k, rotor in enumerate(self.rotors)
        )
        object.__setattr__(self, "_given", self.rotors)
        object.__setattr__(self, "rotors", completed)
        check_drag("drag_n_s_m", max(self.drag_n_s_m), self.mass_kg)
        of_rotors = sum(rotor.drag_n_s2_m_rad * rotor.speed_max_rad_s for rotor in completed)
        check_drag("rotors: drag_n_s2_m_rad at full speed", of_rotors, self.mass_kg)

    def as_written(self) -> dict[str, Any]:
        """Fields as the user gave them, see `schema.to_data`; derived ones are left out."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        del fields["shape" if self.shape is None else "inertia_kg_m2"]
        fields["rotors"] = [_numbers(rotor) for rotor in vars(self)["_given"]]
        return fields

    @property
    def max_thrust_n(self) -> float:
        """Thrust with all rotors at full speed [N]."""
        return sum(rotor.max_thrust_n for rotor in self.rotors)


# ---------- Rotors that share a thrust and moments


def wrench_of_thrusts(drone: Drone) -> Array:
    """Thrust and moments (roll, pitch, yaw; FLU) per newton of each rotor, (4, n_rotors) [1, m]."""
    place = np.array([rotor.position_m for rotor in drone.rotors])
    spin = np.array([1.0 if rotor.spin == "ccw" else -1.0 for rotor in drone.rotors])
    ratio = spin * np.array([rotor.moment_ratio_m for rotor in drone.rotors])
    return np.stack([np.ones(len(place)), place[:, 1], -place[:, 0], -ratio])


def thrust_limits_n(drone: Drone) -> tuple[Array, Array]:
    """Least and largest thrust of each rotor, (n_rotors,) each."""
    k = np.array([rotor.thrust_coefficient_n_s2 for rotor in drone.rotors])
    least = k * [rotor.speed_min_rad_s**2 for rotor in drone.rotors]
    return least, k * [rotor.speed_max_rad_s**2 for rotor in drone.rotors]


def rotor_efforts(drone: Drone) -> Array:
    """Needed over full thrust of each rotor per thrust [1/N] and moments [1/(N m)], (n_rotors, 4).

    Of the ways to give them that in which the rotors share as evenly as they can.
    """
    inverse = np.linalg.pinv(wrench_of_thrusts(drone))
    return np.asarray(inverse / thrust_limits_n(drone)[1][:, None])


def can_steer(drone: Drone) -> bool:
    """Whether the rotors can give thrust and each moment by itself, all pushing for the thrust."""
    effect = wrench_of_thrusts(drone)
    scale = np.abs(effect).max(axis=1, keepdims=True)
    if not (scale > 0.0).all() or np.linalg.matrix_rank(effect / scale, 1e-6) < 4:
        return False
    return bool(np.linalg.pinv(effect)[:, 0].min() > 0.0)


CANNOT_STEER = "these rotors cannot control roll, pitch, yaw and thrust independently"


def thrust_margin(drone: Drone, thrust_n: ArrayLike, moment_body_n_m: Array) -> Array:
    """Full over needed thrust of the rotor that works hardest, (...,).

    For thrusts (...,) and moments (..., 3), see `rotor_efforts`; 0 where they cannot give both.
    """
    thrust = np.asarray(thrust_n)[..., None]
    wrench = np.concatenate([thrust, moment_body_n_m], axis=-1)
    shares = wrench @ rotor_efforts(drone).T
    reached_wrench = (shares * thrust_limits_n(drone)[1]) @ wrench_of_thrusts(drone).T
    misses = np.abs(reached_wrench - wrench).max(axis=-1) > 1e-6 * thrust[..., 0]
    return np.where(misses | (shares.min(axis=-1) < 0.0), 0.0, 1.0 / shares.max(axis=-1))


# ---------- Drag

FASTEST_DRAG_1_S = 100.0
"""Largest drag per mass: no air stops a body within 10 ms, and no time step could follow it."""


def check_drag(name: str, drag_n_s_m: float, mass_kg: float) -> None:
    """Refuse a drag that no air has, ValueError."""
    most_n_s_m = FASTEST_DRAG_1_S * mass_kg
    if drag_n_s_m > most_n_s_m:
        raise ValueError(
            f"{name} = {drag_n_s_m:g} N s/m: would stop {mass_kg:g} kg within "
            f"{mass_kg / drag_n_s_m:.2g} s; at most {most_n_s_m:.3g} N s/m (in 10 ms)"
        )


# ---------- Reach of a drone's rotors


def propeller_radius_m(drone: Drone) -> float:
    """Radius of a drone's propellers; where it is unknown, the largest for which there is room."""
    propeller = drone.propulsion.propeller if drone.propulsion else None
    if propeller is not None and propeller.diameter_m is not None:
        return propeller.diameter_m / 2.0
    return room_for_propellers_m(drone)


def room_for_propellers_m(drone: Drone) -> float:
    """Largest radius with which the discs of propellers do not overlap; 0 for a single one."""
    hubs = [rotor.position_m for rotor in drone.rotors]
    gaps = (
        math.sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]))
        for a, b in combinations(hubs, 2)
    )
    apart = [gap for gap in gaps if gap > 1e-6]  # coaxial rotors share a place
    return min(apart, default=0.0) / 2.0


def impossible_radius(drone: Drone, radius_m: float) -> str:
    """Why a drone's propellers cannot have a radius; empty if they can.

    A rotor takes at least the power of an ideal disc: its figure of merit, the quotient of both
    (J. G. Leishman, Principles of Helicopter Aerodynamics, sec. 2.8), is with T = k w^2 and the
    torque c T at any speed sqrt(k / (2 rho pi)) / (c R), and at most 1.
    """
    density = drone.propulsion.air.density_kg_m3 if drone.propulsion else STANDARD_DENSITY_KG_M3
    least = max(
        math.sqrt(r.thrust_coefficient_n_s2 / (2.0 * math.pi * density)) / abs(r.moment_ratio_m)
        if r.moment_ratio_m
        else 0.0
        for r in drone.rotors
    )
    if radius_m < least:
        return (
            f"of such rotors even ideal ones need {least / radius_m:.3g} times the power that "
            f"thrust_coefficient_n_s2 and moment_ratio_m tell: at least {least:.2g} m"
        )
    room = 2.0 * room_for_propellers_m(drone)
    if room and radius_m >= room:
        return f"the blades would hit the hub beside, {room:.3g} m away"
    return ""


def tip_radius_m(drone: Drone) -> float:
    """Distance of the outermost rotor tip from the drone's axis."""
    hubs = [np.hypot(*rotor.position_m[:2]) for rotor in drone.rotors]
    return float(max(hubs)) + propeller_radius_m(drone)


def hover_throttle(drone: Drone, thrust_n: float) -> float:
    """Mean motor command u of rotors that together give a thrust; beyond [0, 1] they cannot."""
    least, most = np.array([(r.speed_min_rad_s, r.speed_max_rad_s) for r in drone.rotors]).T
    speed = most * np.sqrt(thrust_n / drone.max_thrust_n)
    return float(np.mean((speed - least) / (most - least)))


def drag_n_s_m(drone: Drone, thrust_n: float) -> Array:
    """Linear drag of a level drone along x, y, z, rotors included, (3,).

    `thrust_n`: of all rotors; their drag goes with their speed.
    """
    share_n = thrust_n / len(drone.rotors)
    rotors = sum(
        r.drag_n_s2_m_rad * np.sqrt(share_n / r.thrust_coefficient_n_s2) for r in drone.rotors
    )
    drag: Array = np.array(drone.drag_n_s_m) + rotors * np.array([1.0, 1.0, 0.0])
    return drag
