"""Parts of general rigs: anchors, the ends and the material of cables, winches and wheels.

A slung-load system joins load attachment i and drone i by cable i. A rig joins any two of load,
drones and anchors by any number of cables. Everything is numbered from 1 in names (`anchor_1`,
`cable_1`, `winch_1`, `wheel_1`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from musls_description.names import near_names
from musls_description.schema import (
    Finite,
    Inertia,
    NonNegative,
    Number,
    Positive,
    Quaternion,
    Vector3,
    spec,
)

if TYPE_CHECKING:
    from musls_description.system import RigSystem

MAX_ANCHORS = 100
"""Anchors, winches or wheels of one system."""

SHORTEST_SEGMENT_M = 1e-6
"""A shorter segment of a cable has no direction in numbers of 16 digits."""

MOST_SEGMENTS = 200
"""Of an elastic cable."""

Index = Annotated[int, Field(ge=1), Number]
Strain = Annotated[float, Field(gt=-1.0, le=10.0, allow_inf_nan=False), Number]


@spec
class Anchor:
    """A body that does not move by itself: fixed, moved along a path, or pushed.

    The scenario says which of these it is (`rig.anchors`); by default it is fixed.

    Attributes:
        position_enu_m: Position at the start, world frame.
        orientation_wxyz: Orientation at the start, anchor frame to world.
        mass_kg: Mass; only needed for an anchor that is pushed.
        inertia_kg_m2: Inertia about the origin, anchor frame, (3, 3). A pushed anchor without
            inertia keeps its orientation.
    """

    position_enu_m: Vector3
    orientation_wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)
    mass_kg: Positive | None = None
    inertia_kg_m2: Inertia | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if self.inertia_kg_m2 is not None and self.mass_kg is None:
            raise ValueError("inertia_kg_m2 needs mass_kg")


@spec
class CableEnd:
    """Where a cable is fastened.

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
        """Check what concerns more than one field."""
        if self.clamped and self.clamp_direction is None:
            raise ValueError("clamped: true needs clamp_direction (direction of the cable)")
        if not self.clamped and self.clamp_direction is not None:
            raise ValueError("clamp_direction needs clamped: true")
        if self.clamp_direction is not None and np.linalg.norm(self.clamp_direction) < 1e-9:
            raise ValueError("clamp_direction must not be zero")


@spec
class ElasticLine:
    """Material of a cable, for `cable_model: elastic`; the other cable models do not use it.

    Attributes:
        ea_n: Axial stiffness, force per strain; by default that of a 3 mm braid of polyethylene.
        law: Pairs (strain, force [N]) instead of `ea_n`, both increasing, through (0, 0).
        law_interpolation: "monotone" cubics or "linear" pieces between the pairs.
        rod: Whether it also carries compression, as a rod does; a cable carries tension only.
        damping_n_s: Force per rate of strain; by default the stiffness times 0.24 ms.
        ei_n_m2: Bending stiffness.
        bending_damping_n_m2_s: Moment per rate of curvature.
        clamp_factor: Stiffness of the joint at a clamp over EI / segment length: 2 is exact to
            second order, 1 what the elements of Robotica 2024 have.
        drag_across_n_s2_m3: Air drag across the cable, per length and squared speed: rho C d / 2.
        drag_along_n_s2_m3: Air drag along the cable, per length and squared speed.
        break_force_n: Tension at which it breaks; by default it never breaks.
    """

    ea_n: Positive | None = None
    law: Annotated[tuple[tuple[Strain, Finite], ...], Field(max_length=1000)] | None = None
    law_interpolation: Literal["monotone", "linear"] = "monotone"
    rod: bool = False
    damping_n_s: NonNegative | None = None
    ei_n_m2: NonNegative = 0.0
    bending_damping_n_m2_s: NonNegative = 0.0
    clamp_factor: Annotated[float, Field(ge=0.1, le=10.0, allow_inf_nan=False), Number] = 2.0
    drag_across_n_s2_m3: NonNegative = 0.0
    drag_along_n_s2_m3: NonNegative = 0.0
    break_force_n: Positive | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if self.law is None:
            return
        if self.ea_n is not None:
            raise ValueError("give either ea_n or law")
        check_law(self.law)

    @property
    def bends(self) -> bool:
        """Whether it has bending stiffness or damping."""
        return self.ei_n_m2 > 0.0 or self.bending_damping_n_m2_s > 0.0


def check_law(law: Sequence[tuple[float, float]]) -> None:
    """Refuse a table of strain and force that is no axial law.

    Raises:
        ValueError: Fewer than two pairs, not increasing, or with a force at strain 0.
    """
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
        """Check what concerns more than one field."""
        names = ("radius_m", "inertia_kg_m2", "axis", "brake_torque_n_m")
        given = [name for name in names if getattr(self, name) is not None]
        if self.kind == "feed" and given:
            raise ValueError(f"{given[0]} belongs to kind: drum, not to feed")
        if self.kind == "drum" and (self.radius_m is None or self.inertia_kg_m2 is None):
            raise ValueError("kind: drum needs radius_m and inertia_kg_m2")
        if self.kind == "drum" and self.stored_length_m is None:
            raise ValueError(
                "kind: drum needs stored_length_m, the length on the drum at the start"
            )
        if self.keeps_stretch and (self.kind == "feed" or self.layer_m > 0.0):
            raise ValueError("keeps_stretch needs kind: drum without layers (layer_m 0)")
        if self.axis is not None and np.linalg.norm(self.axis) < 1e-9:
            raise ValueError("axis must not be zero")


@spec
class Wheel:
    """A pulley on a body, over which length of one cable passes into another; named wheel_1, ...

    One rope over k wheels is described by k + 1 cables.

    Attributes:
        body: Body that carries the wheel.
        position_m: Centre of the wheel in the body's frame.
        radius_m: Radius of the groove.
        inertia_kg_m2: Inertia about the axis.
        friction_n_m: Dry friction of the bearing.
        damping_n_m_s_rad: Viscous friction of the bearing.
        axis: Axis of the wheel in the body's frame; in a positive turn, cable passes from the first
            to the second. If it is left out, the wheel's spin does not act on the body.
        capstan_friction: Coefficient of friction of a rope that slides over it; 0 for none.
        efficiency: Lower over higher tension of the two sides while the wheel turns.
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
        """Check what concerns more than one field."""
        if len(self.cables) != 2:
            raise ValueError(f"a wheel joins the ends of two cables, not of {len(self.cables)}")
        if self.cables[0] == self.cables[1]:
            raise ValueError("a wheel joins two different cable ends, not one with itself")


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
    taken: dict[tuple[int, int], str] = {}
    for k, winch in enumerate(system.winches):
        _take(system, taken, winch.cable, winch.end, f"winches.{k}")
    for k, wheel in enumerate(system.wheels):
        if wheel.body not in names:
            raise ValueError(
                f"wheels.{k}.body: unknown body '{wheel.body}': {near_names(wheel.body, names)}"
            )
        for end in wheel.cables:
            _take(system, taken, end.cable, end.end, f"wheels.{k}")
            on = system.ends(end.cable - 1)[end.end - 1].body
            if on != wheel.body:
                raise ValueError(
                    f"wheels.{k}: the wheel is on {wheel.body}, but end {end.end} of "
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
            if end.clamped and not cable.elastic.bends:
                raise ValueError(
                    f"{where}.ends.{k}: clamped: true, but elastic.ei_n_m2 is 0: clamping a "
                    "cable needs bending stiffness (ei_n_m2 > 0)"
                )
        if cable.ends[0].body == cable.ends[1].body:
            raise ValueError(
                f"{where}.ends: both are on {cable.ends[0].body}; they must be on different bodies"
            )


def _take(
    system: RigSystem, taken: dict[tuple[int, int], str], cable: int, end: int, where: str
) -> None:
    """Note that something sits on an end of a cable."""
    if cable > len(system.cables):
        raise ValueError(
            f"{where}: cable {cable} does not exist: there are {len(system.cables)} cables"
        )
    if (cable, end) in taken:
        raise ValueError(
            f"{where}: end {end} of cable_{cable} is taken already by {taken[cable, end]}"
        )
    if where.startswith("wheels") and system.ends(cable - 1)[end - 1].clamped:
        raise ValueError(f"{where}: end {end} of cable_{cable} is clamped, no wheel can be there")
    taken[cable, end] = where
