"""Winches and wheels of a rig, and their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_sim.plants.elastic import columns as c
from musls_sim.plants.elastic.shafts import radius_at

if TYPE_CHECKING:
    from musls_sim.plants.elastic.rig import Rig, RigCable

Array = NDArray[np.float64]

SHORTEST_SHARE = 0.1
"""Share of its length at the start to which a cable of few segments can be reeled in."""

STOP_DEPTH_M = 1e-3
"""Length by which the weight of the whole rig overruns the stop of a winch."""

LEAST_INERTIA_SHARE = 1e-5
"""Least inertia of a shaft over mass of the rig and squared radius, for wheels of slack cables."""

LEAST_RUBBING_SHARE = 1e-4
"""The same with friction that grows with the tensions."""


@dataclass
class RigWinch:
    """A winch at the end of a cable, on the body there.

    The wound cable is carried at the exit point, beside the body's mass. A positive angle
    pays out. Free length of a drum: radius times angle, whatever the tension (the cable lies on
    the drum as long as it is at rest).

    Attributes:
        cable: Index of the cable.
        end: 0 for end A, 1 for end B.
        kind: "feed" (a rate of free length is the input) or "drum".
        stored_length_m: Length on the winch at the start; None for as much as is needed, then the
            body's mass counts it.
        radius_m: Of the drum (of the lowest layer).
        inertia_kg_m2: Of the drum about its axis; the body's inertia counts the drum as standing.
        axis: Direction about which a positive angle pays out, body frame; None where the
            drum's spin does not act on the body.
        by_rate: A drum is driven by its speed instead of by a torque, see `Engine.by_rate`.
        friction_nm: Torque of dry friction in the bearing.
        viscous_nm_s: Torque of the bearing per speed.
        layer_m: Growth of the radius per layer, 0 for none.
        layer_turns: Turns in a layer.
        keeps_stretch: Cable lies on the drum with the strain that it was wound on with.
    """

    cable: int
    end: int
    kind: str = "feed"
    stored_length_m: float | None = 0.0
    radius_m: float = 0.05
    inertia_kg_m2: float = 0.0
    axis: Sequence[float] | Array | None = None
    by_rate: bool = False
    friction_nm: float = 0.0
    viscous_nm_s: float = 0.0
    layer_m: float = 0.0
    layer_turns: float = 10.0
    keeps_stretch: bool = False


@dataclass
class RigWheel:
    """A wheel that joins two cables of the same line: what goes in on one side comes out.

    Attributes:
        sides: Index of the cable and its end on the wheel (0: A, 1: B), of both sides. A positive
            angle takes cable from the first and gives it to the second.
        radius_m: Radius.
        inertia_kg_m2: About its axis; the body's inertia counts the wheel as standing.
        axis: Direction of a positive turn, body frame; None where its spin does not act on the
            body, which is right where both cables lie at the axle.
        friction_nm: Torque of dry friction in the bearing.
        viscous_nm_s: Torque of the bearing per speed.
        capstan_friction: Friction coefficient of a cable that slides over a post: the tensions
            differ by up to e^(coefficient times wrap).
        efficiency: Share of the higher tension that the other side has while the wheel turns.
        extra_wrap_rad: Wrap beyond the angle between the two sides (whole turns).
    """

    sides: tuple[tuple[int, int], tuple[int, int]]
    radius_m: float = 0.05
    inertia_kg_m2: float = 0.0
    axis: Sequence[float] | Array | None = None
    friction_nm: float = 0.0
    viscous_nm_s: float = 0.0
    capstan_friction: float = 0.0
    efficiency: float = 1.0
    extra_wrap_rad: float = field(default=0.0)


def shaft_tables(rig: Rig, first_row: int) -> tuple[Array, NDArray[np.int64]]:
    """Tables of the shafts: the winches, then the wheels.

    Args:
        rig: The rig.
        first_row: First row of the shafts in the matrix of the bodies.

    Raises:
        ConfigError: A winch or wheel that cannot be.
    """
    count = len(rig.winches) + len(rig.wheels)
    shafts = np.zeros((count, c.SHAFT_COLUMNS))
    turning = np.full((count, c.SHAFT_INTEGERS), -1, np.int64)
    for w, part in enumerate(_parts(rig)):
        name, ends = _name(rig, w), _ends(part)
        row, numbers = shafts[w], turning[w]
        numbers[c.S_BODY] = rig.cables[ends[0][0]].bodies[ends[0][1]]
        numbers[c.S_DOF] = first_row + w
        numbers[[c.S_CABLE, c.S_END]] = ends[0]
        row[c.VISCOUS], row[c.BEARING] = part.viscous_nm_s, part.friction_nm
        if part.axis is not None:
            axis = np.asarray(part.axis, float)
            row[c.SPIN_AXIS : c.SPIN_AXIS + 3] = axis / np.linalg.norm(axis)
        if isinstance(part, RigWinch):
            _winch_row(rig, part, row, numbers, name)
        else:
            _wheel_row(rig, part, row, numbers, name)
        rubs = row[c.CAPSTAN] > 0.0 or 0.0 < row[c.SHEAVE] < 1.0
        least = LEAST_RUBBING_SHARE if rubs else LEAST_INERTIA_SHARE
        least *= rig.mass_kg * row[c.RADIUS] ** 2
        row[c.TURN_INERTIA] = max(part_inertia(part), least)
        row[[c.RATIO, c.RATIO_SLOPE, c.OUT]] = radius_at(row, 0.0)
    return shafts, turning


def _parts(rig: Rig) -> list[RigWinch | RigWheel]:
    return [*rig.winches, *rig.wheels]


def _ends(part: RigWinch | RigWheel) -> list[tuple[int, int]]:
    return [(part.cable, part.end)] if isinstance(part, RigWinch) else list(part.sides)


def _name(rig: Rig, w: int) -> str:
    wheel = w - len(rig.winches)
    return f"wheel_{wheel + 1}" if wheel >= 0 else f"winch_{w + 1}"


def check_ends(rig: Rig) -> None:
    """Check that every winch and wheel is on cable ends of its own.

    Raises:
        ConfigError: An end that does not exist or is taken.
    """
    taken: set[tuple[int, int]] = set()
    for w, part in enumerate(_parts(rig)):
        for cable, end in _ends(part):
            if not (0 <= cable < len(rig.cables) and end in (0, 1)):
                raise ConfigError(f"{_name(rig, w)}: no end {end + 1} of cable {cable + 1}")
            if (cable, end) in taken:
                raise ConfigError(
                    f"{_name(rig, w)}: end {end + 1} of cable_{cable + 1} "
                    "is on two winches or wheels"
                )
            taken.add((cable, end))


def part_inertia(part: RigWinch | RigWheel) -> float:
    """Inertia of a shaft; a feed has none."""
    if isinstance(part, RigWinch) and part.kind == "feed":
        return 0.0
    return part.inertia_kg_m2


def _winch_row(
    rig: Rig, winch: RigWinch, row: Array, numbers: NDArray[np.int64], name: str
) -> None:
    if winch.kind not in ("feed", "drum"):
        raise ConfigError(f"{name}: kind must be feed or drum, not {winch.kind!r}")
    stored = winch.stored_length_m or 0.0
    if stored < 0.0:
        raise ConfigError(f"{name}: stored_length_m must not be negative")
    feed = winch.kind == "feed"
    if winch.keeps_stretch and (feed or winch.layer_m > 0.0):
        raise ConfigError(f"{name}: keeps_stretch needs a drum without layers")
    if not feed and winch.radius_m <= 0.0:
        raise ConfigError(f"{name}: radius_m must be positive, not {winch.radius_m:g}")
    numbers[c.S_KIND] = c.FEED if feed else c.DRUM
    row[c.BY_RATE] = feed or winch.by_rate
    row[c.RADIUS] = 1.0 if feed else winch.radius_m
    row[c.WOUND] = stored
    row[c.WOUND_ANGLE] = stored / row[c.RADIUS]
    if not feed and winch.layer_m > 0.0:
        row[c.LAYER], row[c.LAYER_ANGLE] = winch.layer_m, 2.0 * np.pi * winch.layer_turns
        if winch.stored_length_m is None:
            raise ConfigError(f"{name}: layers need stored_length_m")
        row[c.WOUND_ANGLE] = _angle_of(row, stored)
    row[c.Y_HIGH] = np.inf if winch.stored_length_m is None else row[c.WOUND_ANGLE]
    row[c.Y_LOW] = -np.inf
    row[c.PUSH_STIFFNESS] = rig.mass_kg * 9.80665 / STOP_DEPTH_M


def _angle_of(row: Array, length_m: float) -> float:
    """Angle of a drum with layers from bare to a wound length."""
    low, high = 0.0, length_m / row[c.RADIUS]
    for _ in range(200):
        middle = 0.5 * (low + high)
        row[c.WOUND_ANGLE] = middle
        wound = float(radius_at(row, middle)[2])  # all of it paid out
        low, high = (middle, high) if wound < length_m else (low, middle)
    return float(0.5 * (low + high))


def _wheel_row(
    rig: Rig, wheel: RigWheel, row: Array, numbers: NDArray[np.int64], name: str
) -> None:
    (first, end_1), (second, end_2) = wheel.sides
    one, two = rig.cables[first], rig.cables[second]
    if one.bodies[end_1] != two.bodies[end_2]:
        raise ConfigError(f"{name}: its two cables end on different bodies")
    densities = [k.mass_kg / k.length_m for k in (one, two)]
    if not np.isclose(densities[0], densities[1], rtol=1e-6, atol=0.0):
        raise ConfigError(
            f"{name}: both cables must be of one line, but have {densities[0]:.4g} and "
            f"{densities[1]:.4g} kg/m"
        )
    if wheel.radius_m <= 0.0 or not 0.0 < wheel.efficiency <= 1.0 or wheel.capstan_friction < 0.0:
        raise ConfigError(
            f"{name}: radius_m must be positive, efficiency above 0 and at most 1, "
            "capstan_friction not negative"
        )
    numbers[c.S_KIND] = c.WHEEL
    numbers[[c.S_CABLE_2, c.S_END_2]] = second, end_2
    row[c.RADIUS] = wheel.radius_m
    row[c.CAPSTAN], row[c.SHEAVE] = wheel.capstan_friction, wheel.efficiency
    row[c.EXTRA_WRAP] = wheel.extra_wrap_rad
    row[c.Y_LOW], row[c.Y_HIGH] = -np.inf, np.inf


def reel_columns(
    rig: Rig, kinds: NDArray[np.int64], cables: Array, nodes: Array, turning: NDArray[np.int64]
) -> None:
    """Fill in the columns of the cables whose length changes."""
    for w, numbers in enumerate(turning):
        for at, end in ((c.S_CABLE, c.S_END), (c.S_CABLE_2, c.S_END_2)):
            if numbers[at] >= 0:
                kinds[numbers[at], c.REEL_A + numbers[end]] = w
    for kind, row, cable in zip(kinds, cables, rig.cables, strict=True):
        reels = kind[[c.REEL_A, c.REEL_B]] >= 0
        kind[c.REELS] = reels.sum()
        if not reels.any():
            continue
        row[c.START_LENGTH] = cable.length_m
        row[c.LINEAR_DENSITY] = cable.mass_kg / cable.length_m
        row[c.SHORTEST_LENGTH] = shortest_length_m(cable)
        row[c.STOP_STIFFNESS] = rig.mass_kg * 9.80665 / STOP_DEPTH_M
        for end, w in enumerate(kind[[c.REEL_A, c.REEL_B]]):
            if w >= 0 and turning[w, c.S_KIND] != c.WHEEL:
                row[c.STORED_A + end] = rig.winches[w].stored_length_m or 0.0
                node = kind[c.FIRST_NODE] + end * kind[c.SEGMENTS]
                nodes[node, c.MASS] += row[c.LINEAR_DENSITY] * row[c.STORED_A + end]


def shortest_length_m(cable: RigCable) -> float:
    """Length to which a cable can be reeled in: one segment's worth, at most a tenth."""
    if cable.shortest_m is not None:
        return cable.shortest_m
    return cable.length_m * min(1.0 / cable.segments, SHORTEST_SHARE)


def reeled(rig: Rig) -> set[int]:
    """Indices of the cables whose length changes."""
    return {w.cable for w in rig.winches} | {k for w in rig.wheels for k, _ in w.sides}
