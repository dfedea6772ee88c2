"""Bodies and cables in any arrangement, and their tables.

A rig is what the compiled step simulates: rigid bodies (free or prescribed) and cables between any
two of them. `ElasticPlant` makes one of a slung-load system; tests and case studies make others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_sim.plants.elastic import state as c
from musls_sim.plants.elastic.cable import law_rows
from musls_sim.plants.elastic.reels import radius_at
from musls_sim.plants.elastic.state import Tables

# ---------- Order in which bodies and shafts are eliminated, and where their matrix is not zero.


def elimination_order(rig: Rig) -> list[int]:
    """Free bodies, those with fewest cables first: a load comes after its drones."""
    degree = [sum(b in cable.bodies for cable in rig.cables) for b in range(len(rig.bodies))]
    free = [b for b, body in enumerate(rig.bodies) if not body.prescribed]
    return sorted(free, key=lambda b: (degree[b], b))


def envelope_of(
    kinds: NDArray[np.int64], numbers: NDArray[np.int64], turning: NDArray[np.int64], room: int
) -> NDArray[np.int64]:
    """First column of each row of the matrix of bodies and shafts.

    Args:
        kinds: See `tables.Tables`.
        numbers: The same.
        turning: The same.
        room: Rows of the matrix.
    """
    envelope = 6 * (np.arange(room) // 6)
    envelope[turning[:, c.S_DOF]] = turning[:, c.S_DOF]
    for kind in kinds:
        pair = sorted(numbers[kind[[c.BODY_A, c.BODY_B]], c.B_DOF])
        if pair[0] >= 0:
            rows = slice(pair[1], pair[1] + 6)
            envelope[rows] = np.minimum(envelope[rows], pair[0])
        shafts = [turning[w, c.S_DOF] for w in kind[[c.REEL_A, c.REEL_B]] if w >= 0]
        for row in shafts:
            for column in [*pair, *shafts]:
                if column >= 0:
                    envelope[row] = min(envelope[row], column)
    for w in turning:
        if numbers[w[c.S_BODY], c.B_DOF] >= 0:
            envelope[w[c.S_DOF]] = min(envelope[w[c.S_DOF]], numbers[w[c.S_BODY], c.B_DOF])
    return envelope


# ---------- Winches and wheels of a rig, and their tables.

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
    return f"pulley_{wheel + 1}" if wheel >= 0 else f"winch_{w + 1}"


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


Array = NDArray[np.float64]

STATIC_SINK_M = 1e-4
"""Depth to which a body's own weight presses four corners into the ground."""

TENSION_TOLERANCE_SHARE = 1e-5
"""Tension that a stage may leave open, as a share of the weight of the whole rig."""

MADE_SHARE_M = 1e-6
"""Height [m] to which the energy that a step may make would lift the whole rig."""


def _zeros() -> Array:
    return np.zeros(3)


@dataclass
class RigBody:
    """A rigid body, or a place that is moved from outside.

    Attributes:
        mass_kg: Mass; may be 0 for a prescribed body.
        inertia_kg_m2: About the centre of mass, body frame, (3, 3).
        position_enu_m: Centre of mass at the start, (3,).
        rotation: Body frame to world at the start, (3, 3).
        velocity_enu_m_s: At the start, (3,).
        omega_enu_rad_s: At the start, world frame, (3,).
        drag_n_s_m: Linear drag per body axis, (3,).
        corners_m: Points that can touch the ground, body frame, (k, 3).
        drone: Row of its rotors, -1 for none.
        prescribed: Moved by `Engine.paths` instead of by forces.
    """

    mass_kg: float = 0.0
    inertia_kg_m2: Array = field(default_factory=lambda: np.zeros((3, 3)))
    position_enu_m: Array = field(default_factory=_zeros)
    rotation: Array = field(default_factory=lambda: np.eye(3))
    velocity_enu_m_s: Array = field(default_factory=_zeros)
    omega_enu_rad_s: Array = field(default_factory=_zeros)
    drag_n_s_m: Array = field(default_factory=_zeros)
    corners_m: Array = field(default_factory=lambda: np.zeros((0, 3)))
    drone: int = -1
    prescribed: bool = False


@dataclass
class RigCable:
    """A cable between points of two bodies.

    Attributes:
        bodies: Indices of the bodies at its ends A and B.
        points_m: The points in their frames, (2, 3).
        nodes_enu_m: Positions of its nodes at the start from A to B, (segments + 1, 3).
        length_m: Rest length.
        mass_kg: Mass.
        ea_n: Axial stiffness; not used with a table.
        law: Pairs (strain, force [N]) instead of `ea_n`, both increasing.
        law_linear: Straight lines between the pairs.
        damping_n_s: Force per rate of strain.
        slack: Cannot push.
        ei_n_m2: Bending stiffness.
        bending_damping_n_m2_s: Moment per rate of curvature.
        clamps: Directions, from A towards B, in the frames of the bodies at A and B in which the
            ends are clamped, None for a hinge.
        clamp_factor: Stiffness of a clamp's joint over EI / segment length: 2 is of second order
            (half a segment bends), 1 the joint of the elements that Robotica 2024 uses.
        drag_across_n_s2_m3: Air drag across, per length and squared speed: rho C d / 2.
        drag_along_n_s2_m3: Along.
        velocities_enu_m_s: Of the nodes at the start, at rest by default.
        shortest_m: Length to which winches and wheels can take it in; default one segment's worth,
            at most a tenth of its length at the start.
        break_force_n: Tension at which a segment breaks: a number for all or (segments,).
    """

    bodies: tuple[int, int]
    points_m: Array
    nodes_enu_m: Array
    length_m: float
    mass_kg: float
    ea_n: float = 1e5
    law: Sequence[tuple[float, float]] | None = None
    law_linear: bool = False
    damping_n_s: float = 0.0
    slack: bool = True
    ei_n_m2: float = 0.0
    bending_damping_n_m2_s: float = 0.0
    clamps: tuple[Array | None, Array | None] = (None, None)
    clamp_factor: float = 2.0
    drag_across_n_s2_m3: float = 0.0
    drag_along_n_s2_m3: float = 0.0
    velocities_enu_m_s: Array | None = None
    shortest_m: float | None = None
    break_force_n: float | Array = np.inf

    @property
    def segments(self) -> int:
        """Number of segments."""
        return len(self.nodes_enu_m) - 1

    @property
    def bends(self) -> bool:
        """Whether it has bending stiffness or damping."""
        return self.ei_n_m2 > 0.0 or self.bending_damping_n_m2_s > 0.0


@dataclass
class Rig:
    """Everything that is simulated together.

    Attributes:
        bodies: All bodies.
        cables: All cables.
        rotors: From `rotor_table`, (n_drones, n_rotors, 8).
        gravity_m_s2: Gravity.
        ground_height_enu_m: Height of the ground, None for none.
        ground_friction: Friction coefficient of bodies on the ground.
        winches: At ends of cables.
        wheels: Each joins two cables.
    """

    bodies: list[RigBody]
    cables: list[RigCable]
    rotors: Array = field(default_factory=lambda: np.zeros((0, 4, 8)))
    gravity_m_s2: float = 9.80665
    ground_height_enu_m: float | None = None
    ground_friction: float = 0.8
    winches: list[RigWinch] = field(default_factory=list)
    wheels: list[RigWheel] = field(default_factory=list)

    @property
    def mass_kg(self) -> float:
        """Mass of all bodies and cables, also of what is wound up [kg]."""
        wound = 0.0
        for w in self.winches:
            cable = self.cables[w.cable]
            wound += (w.stored_length_m or 0.0) * cable.mass_kg / cable.length_m
        masses = [b.mass_kg for b in self.bodies] + [k.mass_kg for k in self.cables]
        return sum(masses) + wound


def build_tables(rig: Rig) -> Tables:
    """Make the tables of a rig in its start configuration.

    Raises:
        ConfigError: A cable that cannot be, such as a table that is not monotone.
    """
    check_ends(rig)
    kinds, cables, laws = _cable_tables(rig)
    bodies, numbers, corners, n_dofs = _body_tables(rig)
    rows = int(kinds[-1, c.FIRST_ROW] + 3 * kinds[-1, c.SEGMENTS] + 6) if len(kinds) else 0
    parameters = np.zeros(c.PARAMETERS)
    parameters[c.GRAVITY] = rig.gravity_m_s2
    ground = rig.ground_height_enu_m
    parameters[c.GROUND] = -np.inf if ground is None else ground
    parameters[c.FRICTION] = rig.ground_friction
    parameters[c.TOLERANCE_N] = TENSION_TOLERANCE_SHARE * rig.mass_kg * 9.80665
    parameters[c.MADE_J] = MADE_SHARE_M * rig.mass_kg * 9.80665
    shafts, turning = shaft_tables(rig, n_dofs)
    n, room = len(rig.cables), 6 * len(rig.bodies) + len(shafts)
    motion = np.zeros((len(bodies), 27))
    motion[:, :9] = bodies[:, c.BR : c.BR + 9]
    motion[:, 9:12] = bodies[:, c.BX : c.BX + 3]
    motion[:, 12:15] = bodies[:, c.BW : c.BW + 3]
    motion[:, 15:18] = bodies[:, c.BV : c.BV + 3]
    speed = np.zeros(rig.rotors.shape[:2])
    nodes, segments = _node_table(rig, kinds), _segment_table(rig, kinds)
    reel_columns(rig, kinds, cables, nodes, turning)
    return Tables(
        kinds=kinds,
        cables=cables,
        laws=laws,
        nodes=nodes,
        segments=segments,
        breaks=_break_table(rig),
        bodies=bodies,
        numbers=numbers,
        motion=motion,
        corners=corners,
        path=np.zeros((len(bodies), 2, 18)),
        rotors=rig.rotors,
        speed=speed,
        stage_speed=speed.copy(),
        parameters=parameters,
        band=np.zeros((rows + c.BAND, 1 + c.BAND)),
        border=np.zeros((rows + c.BAND, c.WIDEST_BORDER)),
        right=np.zeros(rows + c.BAND),
        corner=np.zeros((n, c.WIDEST_BORDER, c.WIDEST_BORDER)),
        edge=np.zeros((n, c.WIDEST_BORDER)),
        small=np.zeros((n, c.SMALL, c.SMALL)),
        small_right=np.zeros((n, c.SMALL)),
        matrix=np.zeros((room, room)),
        envelope=envelope_of(kinds, numbers, turning, room),
        counts=np.array([n_dofs + len(shafts)]),
        unknown=np.zeros(room),
        sums=np.zeros(c.SUMS),
        old_sums=np.zeros(c.SUMS),
        losses=np.zeros(5),
        work=np.zeros(96),
        own=np.zeros((6, 6)),
        blocks=np.zeros((3, 3, 3)),
        shown=np.zeros((len(bodies), 16)),
        force=np.zeros((n, 2, 3)),
        peak=np.zeros(n),
        shafts=shafts,
        turning=turning,
    )


def _cable_tables(rig: Rig) -> tuple[NDArray[np.int64], Array, Array]:
    kinds = np.zeros((len(rig.cables), c.CABLE_INTEGERS), np.int64)
    cables = np.zeros((len(rig.cables), c.CABLE_COLUMNS))
    laws: list[Array] = []
    node = segment = law = 0
    row = 3  # room for end A of the first cable, see `plain`
    kinds[:, [c.REEL_A, c.REEL_B]] = -1
    changing = reeled(rig)
    for k, (kind, numbers, cable) in enumerate(zip(kinds, cables, rig.cables, strict=True)):
        n = cable.segments
        clamps = [axis is not None and cable.bends for axis in cable.clamps]
        kind[[c.FIRST_NODE, c.SEGMENTS, c.FIRST_SEGMENT, c.FIRST_ROW]] = node, n, segment, row
        kind[[c.BODY_A, c.BODY_B]] = cable.bodies
        kind[[c.CLAMP_A, c.CLAMP_B]] = clamps
        kind[c.BENDS], kind[c.SLACK] = cable.bends, cable.slack
        kind[c.BORDER], kind[c.TAIL] = 3 + 3 * clamps[0], 3 + 3 * clamps[1]
        if cable.law is not None:
            laws.append(_checked_law(cable))
            kind[[c.TABLE_FIRST, c.TABLE_ROWS]] = law, len(laws[-1])
            law += len(laws[-1])
        kind[c.FOLD] = c.BORDERED if k in changing else _fold(rig, cable)
        if kind[c.FOLD] != c.BORDERED:
            kind[c.BORDER] = 0
        node, segment, row = node + n + 1, segment + n, row + 3 * n + int(kind[c.TAIL])
        numbers[c.EA], numbers[c.DAMPING] = cable.ea_n, cable.damping_n_s
        numbers[c.EI], numbers[c.BENDING_DAMPING] = cable.ei_n_m2, cable.bending_damping_n_m2_s
        numbers[c.POINT_A : c.POINT_A + 6] = np.ravel(cable.points_m)
        for at, axis in zip((c.AXIS_A, c.AXIS_B), cable.clamps, strict=True):
            if axis is not None:
                numbers[at : at + 3] = np.asarray(axis) / np.linalg.norm(axis)
        numbers[[c.CLAMP_FACTOR_A, c.CLAMP_FACTOR_B]] = cable.clamp_factor
        numbers[[c.DRAG_ACROSS, c.DRAG_ALONG]] = cable.drag_across_n_s2_m3, cable.drag_along_n_s2_m3
        numbers[c.REST_LENGTH] = cable.length_m
    return kinds, cables, np.vstack(laws) if laws else np.zeros((0, c.LAW_COLUMNS))


def _fold(rig: Rig, cable: RigCable) -> int:
    """How end A of a cable is treated, see `plain`."""
    if cable.bends:
        return c.BORDERED
    if rig.bodies[cable.bodies[0]].prescribed:
        return c.FROM_PRESCRIBED
    return c.FROM_LEAF if cable.bodies[0] in _leaves(rig) else c.BORDERED


def _leaves(rig: Rig) -> set[int]:
    """Free bodies that hang on end A of a single cable, one without bending."""
    ends, changing = [b for cable in rig.cables for b in cable.bodies], reeled(rig)
    return {
        cable.bodies[0]
        for k, cable in enumerate(rig.cables)
        if not cable.bends
        and k not in changing
        and ends.count(cable.bodies[0]) == 1
        and not rig.bodies[cable.bodies[0]].prescribed
    }


def _checked_law(cable: RigCable) -> Array:
    assert cable.law is not None
    rows = law_rows(cable.law, cable.law_linear)
    at_rest = np.interp(0.0, *np.array(cable.law, float).T)
    if abs(at_rest) > 1e-9 * max(abs(cable.law[-1][1]), 1.0):
        raise ConfigError(f"cable law: force at strain 0 must be 0, not {at_rest:.4g} N")
    return rows


def _node_table(rig: Rig, kinds: NDArray[np.int64]) -> Array:
    nodes = np.zeros((sum(k.segments + 1 for k in rig.cables), c.NODE_COLUMNS))
    for kind, cable in zip(kinds, rig.cables, strict=True):
        rows = nodes[kind[c.FIRST_NODE] : kind[c.FIRST_NODE] + cable.segments + 1]
        rows[:, c.X : c.X + 3] = rows[:, c.XS : c.XS + 3] = cable.nodes_enu_m
        if cable.velocities_enu_m_s is not None:
            rows[:, c.V : c.V + 3] = cable.velocities_enu_m_s
        rows[:, c.MASS] = cable.mass_kg / cable.segments
        rows[[0, -1], c.MASS] /= 2.0
    return nodes


def _segment_table(rig: Rig, kinds: NDArray[np.int64]) -> Array:
    segments = np.zeros((sum(k.segments for k in rig.cables), c.SEGMENT_COLUMNS))
    for kind, cable in zip(kinds, rig.cables, strict=True):
        rows = segments[kind[c.FIRST_SEGMENT] : kind[c.FIRST_SEGMENT] + cable.segments]
        rows[:, c.REST] = cable.length_m / cable.segments
        rows[:, c.INVERSE_REST] = cable.segments / cable.length_m
        rows[:, c.ALIVE] = 1.0
    return segments


def _break_table(rig: Rig) -> Array:
    breaks = np.zeros((sum(k.segments for k in rig.cables), c.BREAK_COLUMNS))
    breaks[:, [c.CUT_AT, c.BROKE_AT]] = np.inf, -1.0
    limits = []
    for cable in rig.cables:
        limit = np.broadcast_to(np.asarray(cable.break_force_n, float), (cable.segments,))
        if not (limit > 0.0).all():
            raise ConfigError(f"break_force_n: must be positive, not {limit.min():g} N")
        limits.append(limit)
    breaks[:, c.LIMIT] = np.concatenate(limits) if limits else []
    return breaks


def _body_tables(rig: Rig) -> tuple[Array, NDArray[np.int64], Array, int]:
    bodies = np.zeros((len(rig.bodies), c.BODY_COLUMNS))
    numbers = np.zeros((len(rig.bodies), c.BODY_INTEGERS), np.int64)
    corners: list[Array] = []
    order, leaves = elimination_order(rig), _leaves(rig)
    order = [b for b in order if b not in leaves]
    for b, (p, n, body) in enumerate(zip(bodies, numbers, rig.bodies, strict=True)):
        inertia = np.asarray(body.inertia_kg_m2, float)
        p[c.B_MASS] = body.mass_kg
        p[c.B_INERTIA : c.B_INERTIA + 9] = inertia.ravel()
        if not body.prescribed:
            p[c.B_INVERSE : c.B_INVERSE + 9] = np.linalg.inv(inertia).ravel()
        p[c.B_DRAG : c.B_DRAG + 3] = body.drag_n_s_m
        p[c.BX : c.BX + 3] = p[c.BXS : c.BXS + 3] = body.position_enu_m
        p[c.BV : c.BV + 3] = body.velocity_enu_m_s
        p[c.BR : c.BR + 9] = p[c.BREF : c.BREF + 9] = np.ravel(body.rotation)
        p[c.BW : c.BW + 3] = body.omega_enu_rad_s
        world = body.rotation @ inertia @ np.transpose(body.rotation)
        p[c.IW : c.IW + 9] = world.ravel()
        p[c.BL : c.BL + 3] = world @ body.omega_enu_rad_s
        n[c.B_DOF] = 6 * order.index(b) if b in order else -1
        n[c.B_FREE] = not body.prescribed
        n[c.B_DRONE], n[c.B_INDEX] = body.drone, b
        n[c.B_FIRST_CORNER], n[c.B_CORNERS] = len(corners), len(body.corners_m)
        if len(body.corners_m):
            p[c.B_RADIUS] = np.linalg.norm(body.corners_m, axis=1).max()
        stiffness = body.mass_kg * 9.80665 / (4.0 * STATIC_SINK_M)
        p[c.B_CONTACT_STIFFNESS] = stiffness
        p[c.B_CONTACT_DAMPING] = np.sqrt(stiffness * body.mass_kg)  # critical on four corners
        for corner in body.corners_m:
            row = np.zeros(c.CORNER_COLUMNS)
            row[:3] = corner
            corners.append(row)
    for cable in rig.cables:
        for b in cable.bodies:
            bodies[b, c.B_LUMPS] += cable.mass_kg / cable.segments / 2.0
    table = np.vstack(corners) if corners else np.zeros((0, c.CORNER_COLUMNS))
    return bodies, numbers, table, 6 * len(order)
