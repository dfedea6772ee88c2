"""Bodies and cables in any arrangement, and their tables.

A rig is what the compiled step simulates: rigid bodies (free or prescribed) and cables between any
two of them. `ElasticPlant` makes one of a slung-load system; tests and case studies make others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy

from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.layout import Tables
from musls_description.system.obstacles import AnyObstacle
from musls_description.system.slung_system import Pulley, Winch
from musls_sim.plants.elastic.bodies import SET_IN_M
from musls_sim.plants.elastic.cables.line import LAW, LineProperties
from musls_sim.plants.elastic.reels import radius_at
from musls_sim.plants.elastic.state import (
    BODY,
    CABLE,
    CORNER,
    DRUM,
    FEED,
    LAYOUT,
    NODE,
    PULLEY,
    SEGMENT,
    SHAFT,
    SYSTEM,
    UNKNOWN,
)
from musls_sim.plants.rigid_body import (
    ROTOR,
    corner_constants,
    corner_records,
    soft_below_m,
    surfaces_of,
)

# ---------- Where the matrix of bodies and shafts is not zero


def _unknown_table(cables: Records, bodies: Records, shafts: Records) -> Records:
    """Unknowns of bodies and shafts, with the first column of each row of their matrix."""
    room = 6 * len(bodies) + len(shafts)
    first = 6 * (np.arange(room) // 6)
    first[shafts["dof"]] = shafts["dof"]
    for cable in cables:
        pair = sorted(bodies["dof"][cable["body"]])
        if pair[0] >= 0:
            rows = slice(pair[1], pair[1] + 6)
            first[rows] = np.minimum(first[rows], pair[0])
        reels = [shafts["dof"][w] for w in cable["reel"] if w >= 0]
        for row in reels:
            for column in [*pair, *reels]:
                if column >= 0:
                    first[row] = min(first[row], column)
    for shaft in shafts:
        if bodies["dof"][shaft["body"]] >= 0:
            first[shaft["dof"]] = min(first[shaft["dof"]], bodies["dof"][shaft["body"]])
    unknowns = np.zeros(room, UNKNOWN)
    unknowns["first"] = first
    return unknowns


# ---------- Winches and pulleys of a rig, and their tables

SHORTEST_SHARE = 0.1
"""Share of its length at the start to which a cable of few segments can be reeled in."""

STOP_DEPTH_M = 1e-3
"""Length by which the weight of the whole rig overruns the stop of a winch."""

MIN_INERTIA_SHARE = 1e-5
"""Least inertia of a shaft over mass of the rig and squared radius, for pulleys of slack cables."""

MIN_RUBBING_SHARE = 1e-4
"""Least inertia, as above, with friction that grows with the tensions."""


def sides_of(part: Winch | Pulley) -> list[tuple[int, int]]:
    """Index of each cable on a winch or pulley, and of its end (0 or 1)."""
    ends = part.cables if isinstance(part, Pulley) else (part,)
    return [(end.cable - 1, end.end - 1) for end in ends]


def shaft_table(rig: Rig, first_row: int) -> Records:
    """Records of the shafts: the winches, then the pulleys."""
    shafts = np.zeros(len(rig.winches) + len(rig.pulleys), SHAFT)
    shafts["cable"] = shafts["end"] = -1
    for w, part in enumerate(_parts(rig)):
        name = _name(rig, w)
        ends = sides_of(part)
        shaft = shafts[w]
        shaft["body"] = rig.cables[ends[0][0]].bodies[ends[0][1]]
        shaft["dof"] = first_row + w
        for side, (cable, end) in enumerate(ends):
            shaft["cable"][side] = cable
            shaft["end"][side] = end
        shaft["viscous"] = part.damping_n_m_s_rad
        shaft["bearing"] = part.friction_n_m
        if part.axis is not None:
            shaft["axis"] = np.asarray(part.axis, float) / np.linalg.norm(part.axis)
        if isinstance(part, Winch):
            _fill_winch(rig, part, shaft, by_rate=w in rig.by_rate)
        else:
            _fill_pulley(rig, part, shaft, name)
        rubs = shaft["capstan"] > 0.0 or 0.0 < shaft["efficiency"] < 1.0
        least = MIN_RUBBING_SHARE if rubs else MIN_INERTIA_SHARE
        least *= rig.mass_kg * shaft["radius"] ** 2
        shaft["inertia"] = max(part.inertia_kg_m2 or 0.0, least)
        shaft["ratio"], shaft["ratio_slope"], shaft["out"] = radius_at(shaft, 0.0)
    return shafts


def _parts(rig: Rig) -> list[Winch | Pulley]:
    return [*rig.winches, *rig.pulleys]


def _name(rig: Rig, w: int) -> str:
    pulley = w - len(rig.winches)
    return f"pulley_{pulley + 1}" if pulley >= 0 else f"winch_{w + 1}"


def check_ends(rig: Rig) -> None:
    """Check that every winch and pulley is on cable ends of its own; else a ConfigError."""
    ends: set[tuple[int, int]] = set()
    for w, part in enumerate(_parts(rig)):
        for cable, end in sides_of(part):
            if not (0 <= cable < len(rig.cables) and end in (0, 1)):
                raise ConfigError(f"{_name(rig, w)}: no end {end + 1} of cable {cable + 1}")
            if (cable, end) in ends:
                raise ConfigError(
                    f"{_name(rig, w)}: end {end + 1} of cable_{cable + 1} "
                    "is on two winches or pulleys"
                )
            ends.add((cable, end))


def _fill_winch(rig: Rig, winch: Winch, row: np.void, *, by_rate: bool) -> None:
    stored_m = winch.stored_length_m or 0.0
    feed = winch.kind == "feed"
    row["kind"] = FEED if feed else DRUM
    row["by_rate"] = feed or by_rate
    row["radius"] = winch.radius_m or 1.0  # a feed has none
    row["wound"] = stored_m
    row["wound_angle"] = stored_m / row["radius"]
    if winch.layer_m > 0.0:
        row["layer"] = winch.layer_m
        row["layer_angle"] = 2.0 * np.pi * winch.layer_turns
        row["wound_angle"] = _angle_of(row, stored_m)
    row["highest_angle"] = row["wound_angle"]
    row["lowest_angle"] = -np.inf
    row["stop_stiffness"] = rig.mass_kg * STANDARD_GRAVITY_M_S2 / STOP_DEPTH_M


def _angle_of(row: np.void, length_m: float) -> float:
    """Angle of a drum with layers from bare to a wound length."""

    def missing(angle: float) -> float:
        row["wound_angle"] = angle
        return float(radius_at(row, angle)[2]) - length_m  # all of it paid out

    return float(scipy.optimize.brentq(missing, 0.0, length_m / row["radius"], xtol=1e-15))


def _fill_pulley(rig: Rig, pulley: Pulley, row: np.void, name: str) -> None:
    (first, end_1), (second, end_2) = sides_of(pulley)
    one = rig.cables[first]
    two = rig.cables[second]
    if one.bodies[end_1] != two.bodies[end_2]:
        raise ConfigError(f"{name}: its two cables end on different bodies")
    densities = [k.mass_kg / k.length_m for k in (one, two)]
    if not np.isclose(densities[0], densities[1], rtol=1e-6, atol=0.0):
        raise ConfigError(
            f"{name}: both cables must be of one line, but have {densities[0]:.4g} and "
            f"{densities[1]:.4g} kg/m"
        )
    row["kind"] = PULLEY
    row["radius"] = pulley.radius_m
    row["capstan"] = pulley.capstan_friction
    row["efficiency"] = pulley.efficiency
    row["extra_wrap"] = pulley.extra_wrap_rad
    row["lowest_angle"] = -np.inf
    row["highest_angle"] = np.inf


def _fill_reels(rig: Rig, cables: Records, nodes: Records, shafts: Records) -> None:
    """Fill in what the cables whose length changes have beyond others."""
    for w, shaft in enumerate(shafts):
        for cable, end in zip(shaft["cable"], shaft["end"], strict=True):
            if cable >= 0:
                cables["reel"][cable, end] = w
    for row, cable in zip(cables, rig.cables, strict=True):
        row["reels"] = (row["reel"] >= 0).sum()
        if row["reels"] == 0:
            continue
        row["start_length"] = cable.length_m
        row["linear_density"] = cable.mass_kg / cable.length_m
        share = min(1.0 / cable.segments, SHORTEST_SHARE)
        row["shortest_length"] = cable.length_m * share
        row["stop_stiffness"] = rig.mass_kg * STANDARD_GRAVITY_M_S2 / STOP_DEPTH_M
        for end, w in enumerate(row["reel"]):
            if w >= 0 and shafts["kind"][w] != PULLEY:
                row["stored"][end] = rig.winches[w].stored_length_m or 0.0
                node = row["first_node"] + end * row["segments"]
                nodes["mass"][node] += row["linear_density"] * row["stored"][end]


STATIC_SINK_M = 1e-4
"""Depth to which a body's own weight presses four corners into the ground."""

TENSION_TOLERANCE_SHARE = 1e-5
"""Tension that a stage may leave open, as a share of the weight of the whole rig."""

ENERGY_TOLERANCE_M = 1e-6
"""Height [m] to which the energy that a step may make would lift the whole rig."""


def _zeros() -> Array:
    return np.zeros(3)


@dataclass
class RigBody:
    """A rigid body, or a place that is moved from outside.

    Attributes:
        mass_kg: Mass; may be 0 for a prescribed body.
        inertia_kg_m2: Inertia about the centre of mass, body frame, (3, 3).
        position_enu_m: Centre of mass at the start, (3,).
        rotation: Body frame to world at the start, (3, 3).
        velocity_enu_m_s: Velocity at the start, (3,).
        omega_enu_rad_s: Angular velocity at the start, world frame, (3,).
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
class RigCable(LineProperties):
    """A cable between points of two bodies.

    Attributes:
        bodies: Indices of the bodies at its ends 1 and 2.
        points_m: The points in their frames, (2, 3).
        nodes_enu_m: Positions of its nodes at the start from end 1 to end 2, (segments + 1, 3).
        length_m: Rest length.
        clamps: Directions, from end 1 towards end 2, in the frames of the bodies there in which the
            ends are clamped, None for a hinge.
        velocities_enu_m_s: Velocities of the nodes at the start, at rest by default.
        contact_radius_m: Radius with which its inner nodes touch the ground and obstacles; None for
            one that lies on soft ground and hangs through obstacles.
    """

    bodies: tuple[int, int]
    points_m: Array
    nodes_enu_m: Array
    length_m: float
    mass_kg: float
    clamps: tuple[Array | None, Array | None] = (None, None)
    velocities_enu_m_s: Array | None = None
    contact_radius_m: float | None = None

    @property
    def segments(self) -> int:
        """Number of segments."""
        return len(self.nodes_enu_m) - 1


@dataclass
class Rig:
    """Everything that is simulated together.

    Attributes:
        rotors: Rotors from `rotor_records`, (n_drones, n_rotors).
        ground_height_enu_m: Height of the ground, None for none.
        ground_friction: Friction coefficient of bodies on ground and obstacles.
        obstacles: Obstacles that bodies touch.
        winches: Each says how much cable is on it.
        by_rate: Drums (from 0) that are driven by their speed, not by a torque.
        loaded: Whether body 0 is a load; without one the middle of the first cable is shown.
    """

    bodies: list[RigBody]
    cables: list[RigCable]
    rotors: Records = field(default_factory=lambda: np.zeros((0, 4), ROTOR))
    gravity_m_s2: float = STANDARD_GRAVITY_M_S2
    ground_height_enu_m: float | None = None
    ground_friction: float = 0.8
    obstacles: Sequence[AnyObstacle] = ()
    winches: Sequence[Winch] = ()
    pulleys: Sequence[Pulley] = ()
    by_rate: Collection[int] = ()
    loaded: bool = True

    @property
    def mass_kg(self) -> float:
        """Mass of all bodies and cables, with the cable on the drums [kg]."""
        wound_kg = 0.0
        for w in self.winches:
            cable = self.cables[w.cable - 1]
            wound_kg += (w.stored_length_m or 0.0) * cable.mass_kg / cable.length_m
        masses = [b.mass_kg for b in self.bodies] + [k.mass_kg for k in self.cables]
        return sum(masses) + wound_kg


def build_tables(rig: Rig) -> tuple[Array, Tables]:
    """Make the memory of a rig in its start configuration, and the tables of `LAYOUT` there."""
    check_ends(rig)
    solids = surfaces_of(rig.ground_height_enu_m, rig.obstacles)
    bodies, n_dofs = _body_table(rig)
    cables, laws = _cable_table(rig, bodies)
    corners = _corner_table(rig, len(solids), bodies, cables)
    shafts = shaft_table(rig, n_dofs)
    nodes = _node_table(rig)
    _fill_reels(rig, cables, nodes, shafts)
    state = {
        "nodes": nodes,
        "segments": _segment_table(rig),
        "cables": cables,
        "bodies": bodies,
        "corners": corners,
        "shafts": shafts,
        "speed": np.zeros(rig.rotors.shape[:2]),
    }
    return LAYOUT.build(
        {
            **state,
            "changing": (SYSTEM.itemsize + sum(table.nbytes for table in state.values())) // 8,
            "gravity": rig.gravity_m_s2,
            "soft_below": soft_below_m(solids),
            "ground_friction": rig.ground_friction,
            "tolerance": TENSION_TOLERANCE_SHARE * rig.mass_kg * STANDARD_GRAVITY_M_S2,
            "energy_tolerance": ENERGY_TOLERANCE_M * rig.mass_kg * STANDARD_GRAVITY_M_S2,
            "n_dofs": n_dofs + len(shafts),
            "middle": -1 if rig.loaded else cables["segments"][0] // 2,
            "solids": solids,
            "laws": laws,
            "n_rows": 3 * len(nodes) + 6 * len(cables),
            "unknowns": _unknown_table(cables, bodies, shafts),
            "rotors": rig.rotors,
            "free_length": np.array([cable.length_m for cable in rig.cables]),
        }
    )


def _cable_table(rig: Rig, bodies: Records) -> tuple[Records, Records]:
    cables = np.zeros(len(rig.cables), CABLE)
    laws: list[Records] = [np.zeros(0, LAW)]
    node = segment = law = row = 0
    cables["reel"] = -1
    cables["unknown"] = -1
    changing = {k for part in _parts(rig) for k, _ in sides_of(part)}
    for k, (record, cable) in enumerate(zip(cables, rig.cables, strict=True)):
        n = cable.segments
        clamps = [axis is not None and cable.bends for axis in cable.clamps]
        record["first_node"] = node
        record["first_segment"] = segment
        record["first_row"] = row
        record["segments"] = n
        record["body"] = cable.bodies
        record["clamped"] = clamps
        record["bends"] = cable.bends
        record["axial"], pieces = cable.records(law)
        laws.append(pieces)
        law += len(pieces)
        first, record["leaf"] = _first_end(rig, k)
        record["first_end"] = first
        record["row_0"], record["row_step"] = (row + 3, 3) if first == 0 else (row + 3 * n + 3, -3)
        record["begin"] = row + (0 if record["leaf"] else 6)
        record["end"] = row + 3 * n + 3
        bordered = not (record["leaf"] or rig.bodies[cable.bodies[first]].prescribed)
        record["low"] = (0 if clamps[first] else 3) if bordered else 6
        record["high"] = 8 if k in changing else 6
        record["size"] = 14 if bordered or k in changing else 6
        dof = bodies["dof"][[cable.bodies[1 - first], cable.bodies[first]]]
        if dof[0] >= 0:
            record["unknown"][:6] = dof[0] + np.arange(6)
        if bordered:
            record["unknown"][6:12] = dof[1] + np.roll(np.arange(6), 3)
        node = node + n + 1
        segment = segment + n
        row = row + 3 * n + 9
        record["bending_stiffness"] = cable.ei_n_m2
        record["bending_damping"] = cable.bending_damping_n_m2_s
        record["point"] = cable.points_m
        for end, axis in enumerate(cable.clamps):
            if axis is not None:
                record["axis"][end] = np.asarray(axis) / np.linalg.norm(axis)
        record["clamp_factor"] = cable.clamp_factor
        record["drag_across"] = cable.drag_across_n_s2_m3
        record["drag_along"] = cable.drag_along_n_s2_m3
        record["rest_length"] = cable.length_m
    return cables, np.concatenate(laws)


def _first_end(rig: Rig, k: int) -> tuple[int, bool]:
    """End of a cable at which its elimination begins, and whether the body there is a leaf.

    That costs least at a leaf, then at a prescribed body, see `solver`.
    """
    cable, ends = rig.cables[k], [b for cable in rig.cables for b in cable.bodies]
    reels = {side for part in _parts(rig) for side in sides_of(part)}
    for end in (1, 0):
        b = cable.bodies[end]
        clamped = cable.bends and cable.clamps[end] is not None
        alone = ends.count(b) == 1 and not clamped and (k, end) not in reels
        if alone and not rig.bodies[b].prescribed:
            return end, True
    return next((e for e in (1, 0) if rig.bodies[cable.bodies[e]].prescribed), 1), False


def _node_table(rig: Rig) -> Records:
    tables = []
    for cable in rig.cables:
        nodes = np.zeros(cable.segments + 1, NODE)
        nodes["position"] = nodes["stage"]["position"] = cable.nodes_enu_m
        if cable.velocities_enu_m_s is not None:
            nodes["velocity"] = cable.velocities_enu_m_s
        nodes["mass"] = cable.mass_kg / cable.segments
        nodes["mass"][[0, -1]] /= 2.0
        tables.append(nodes)
    return np.concatenate([np.zeros(0, NODE), *tables])


def _segment_table(rig: Rig) -> Records:
    tables = []
    for cable in rig.cables:
        segments = np.zeros(cable.segments, SEGMENT)
        segments["rest_length"] = cable.length_m / cable.segments
        segments["inverse_rest_length"] = cable.segments / cable.length_m
        segments["alive"] = 1.0
        segments["break_force"] = cable.break_force_n
        segments["cut_at"] = np.inf
        segments["broken_at"] = -1.0
        if not (segments["break_force"] > 0.0).all():
            least = segments["break_force"].min()
            raise ConfigError(f"break_force_n: must be positive, not {least:g} N")
        tables.append(segments)
    return np.concatenate([np.zeros(0, SEGMENT), *tables])


def _body_table(rig: Rig) -> tuple[Records, int]:
    """Bodies, and the number of their unknowns."""
    bodies = np.zeros(len(rig.bodies), BODY)
    firsts = [_first_end(rig, k) for k in range(len(rig.cables))]
    pairs = zip(rig.cables, firsts, strict=True)
    leaves = {cable.bodies[end] for cable, (end, leaf) in pairs if leaf}
    free = [b for b, body in enumerate(rig.bodies) if not body.prescribed and b not in leaves]
    # Those with fewest cables first: a load comes after its drones.
    order = sorted(free, key=lambda b: sum(b in cable.bodies for cable in rig.cables))
    for b, (record, body) in enumerate(zip(bodies, rig.bodies, strict=True)):
        inertia = np.asarray(body.inertia_kg_m2, float)
        stage = record["stage"]
        record["mass"] = body.mass_kg
        record["inertia"] = inertia
        record["drag"] = body.drag_n_s_m
        if not body.prescribed:
            record["inverse_inertia"] = np.linalg.inv(inertia)
            record["gyration"] = np.sqrt(np.trace(inertia) / body.mass_kg)
        record["reference_rotation"] = body.rotation
        world = body.rotation @ inertia @ np.transpose(body.rotation)
        stage["inertia"] = world
        record["angular_momentum"] = world @ body.omega_enu_rad_s
        for motion in (record, stage):
            motion["position"] = body.position_enu_m
            motion["velocity"] = body.velocity_enu_m_s
            motion["rotation"] = body.rotation
            motion["omega"] = body.omega_enu_rad_s
        record["dof"] = 6 * order.index(b) if b in order else -1
        record["free"] = not body.prescribed
        record["drone"] = body.drone
        if len(body.corners_m):
            record["radius"] = np.linalg.norm(body.corners_m, axis=1).max()
    return bodies, 6 * len(order)


def _corner_table(rig: Rig, surfaces: int, bodies: Records, cables: Records) -> Records:
    """Corners of bodies and nodes of cables for each surface; notes where those of each are."""
    tables = []
    for body in rig.bodies:
        corners = corner_records([body.corners_m], surfaces, CORNER)
        corners["stiffness"], corners["damping"] = corner_constants(body.mass_kg, STATIC_SINK_M)
        tables.append(corners)
    for cable in rig.cables:
        touching = cable.segments - 1 if cable.contact_radius_m is not None else 0
        corners = corner_records([np.zeros((1, 3))] * touching, surfaces, CORNER)
        corners["stiffness"], corners["damping"] = corner_constants(rig.mass_kg)
        corners["rounding"] = cable.contact_radius_m or 0.0
        corners["set_in"] = SET_IN_M
        tables.append(corners)
    sizes = np.array([len(corners) for corners in tables])
    firsts = np.cumsum(sizes) - sizes
    bodies["first_corner"], bodies["corners"] = firsts[: len(bodies)], sizes[: len(bodies)]
    cables["first_corner"] = firsts[len(bodies) :]
    cables["surfaces"] = [0 if k.contact_radius_m is None else surfaces for k in rig.cables]
    return np.concatenate([np.zeros(0, CORNER), *tables])
