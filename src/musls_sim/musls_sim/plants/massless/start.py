"""Where load and drones are at the start, as plants without chains take it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_description.drone import Drone
from musls_description.rotations import from_matrix
from musls_description.spawn import Configuration
from musls_description.system import Load, SlungLoadSystem
from musls_description.tree import build_tree
from musls_sim.plants.massless import records as c
from musls_sim.plants.massless.bodies import contact_step_s, corner_constants
from musls_sim.plants.massless.records import Tables
from musls_sim.plants.rigid_links.multibody import body_motion, joint_table
from musls_sim.plants.rigid_links.rows import rotor_table

Array = NDArray[np.float64]

LEAST_MASS_KG = 1e-12
"""Mass of a cable as good as none, the least that a description takes."""


@dataclass(frozen=True)
class Motion:
    """Motion of load and drones; row 0 is the load.

    Attributes:
        position_enu_m: (1 + n, 3).
        orientation_wxyz: (1 + n, 4).
        velocity_enu_m_s: (1 + n, 3).
        omega_body_rad_s: (1 + n, 3).
    """

    position_enu_m: Array
    orientation_wxyz: Array
    velocity_enu_m_s: Array
    omega_body_rad_s: Array

    @classmethod
    def at_rest(cls, position_enu_m: Array, orientation_wxyz: Array) -> Motion:
        """Nothing moves."""
        still = np.zeros((len(position_enu_m), 3))
        return cls(np.array(position_enu_m), np.array(orientation_wxyz), still, still.copy())


def motion_of(system: SlungLoadSystem, start: Configuration) -> Motion:
    """Load and drones of a configuration of rigid links, at rest."""
    tree = build_tree(system)
    motion = np.zeros((len(tree.bodies), 27))
    first = np.append(tree.first_coordinate, tree.n_coordinates)
    parents = np.array([body.parent for body in tree.bodies])
    still = np.zeros(tree.n_coordinates)
    body_motion(start.coordinates, still, parents, first, joint_table(tree), motion)
    rows = motion[[0, *tree.drone]]
    return Motion.at_rest(rows[:, 9:12], from_matrix(rows[:, :9].reshape(-1, 3, 3)))


def weightless(system: SlungLoadSystem) -> SlungLoadSystem:
    """The system on single links that weigh next to nothing, as a chain that hangs straight."""
    cables = tuple(
        dataclasses.replace(
            cable,
            links=1,
            mass_kg=LEAST_MASS_KG,
            joint=dataclasses.replace(cable.joint, stiffness_n_m_rad=0.0),
        )
        for cable in system.cables
    )
    return dataclasses.replace(system, cables=cables)


def freed(system: SlungLoadSystem) -> SlungLoadSystem:
    """The system with its drones free to look anywhere, where its load is a point.

    Cables that do not twist need attachments beside each other to say where the drones look.
    """
    if not system.load.point_mass:
        return system
    cables = tuple(dataclasses.replace(cable, twist="free") for cable in system.cables)
    return dataclasses.replace(system, cables=cables)


# ---------- Builds the tables of a system with massless cables.

NOISE = 1e-12
"""Tension that counts as none, over the weight of everything."""


def build_tables(
    system: SlungLoadSystem,
    start: Motion,
    *,
    gravity_m_s2: float,
    ground_height_enu_m: float | None,
    step_s: float,
    restitution: float,
) -> Tables:
    """Tables of a system in its start.

    Args:
        system: Load, drones and cables; of the cables only the lengths count.
        start: Motion of load and drones.
        gravity_m_s2: Gravity.
        ground_height_enu_m: Height of the ground, None for none.
        step_s: Longest step.
        restitution: See `MasslessPlant`.
    """
    n = system.n_drones
    rotors = rotor_table(system)
    parts: list[Load | Drone] = [system.load, *system.drones]
    corners = np.vstack([part.collision.corners_m for part in parts])
    bodies = np.array([_body(part, 8 * i) for i, part in enumerate(parts)])
    state = np.zeros((1 + n, c.STATE))
    state[:, c.X : c.X + 3] = start.position_enu_m
    state[:, c.Q : c.Q + 4] = start.orientation_wxyz
    state[:, c.V : c.V + 3] = start.velocity_enu_m_s
    state[:, c.W : c.W + 3] = start.omega_body_rad_s
    parameters = np.zeros(c.PARAMETERS)
    parameters[c.GRAVITY] = gravity_m_s2
    parameters[c.GROUND] = np.nan if ground_height_enu_m is None else ground_height_enu_m
    parameters[c.FRICTION], parameters[c.RESTITUTION] = system.ground_friction, restitution
    parameters[c.STEP] = step_s
    parameters[c.CONTACT_STEP] = min(
        contact_step_s(p.mass_kg, _turning(p), p.collision.corners_m) for p in parts
    )
    mass = float(bodies[:, c.MASS].sum())
    parameters[c.TENSION_NOISE] = NOISE * mass * gravity_m_s2
    corner_rows = np.zeros((len(corners), c.CORNER))
    corner_rows[:, :3] = corners
    speed = np.zeros(rotors.shape[:2])
    return Tables(
        state=state,
        begin=np.zeros_like(state),
        first=np.zeros_like(state),
        rate=np.zeros_like(state),
        total=np.zeros_like(state),
        bodies=bodies,
        motion=np.zeros((1 + n, 18)),
        cables=_cables(system, parts),
        corners=corner_rows,
        rotors=rotors,
        speed=speed,
        speed_begin=speed.copy(),
        speed_middle=speed.copy(),
        speed_end=speed.copy(),
        path=np.zeros((n, 10, 3)),
        matrix=np.zeros((n, n)),
        factor=np.zeros((n, n)),
        right=np.zeros(n),
        solution=np.zeros(n),
        spare=np.zeros(n),
        who=np.zeros(n + 1),
        basis=np.zeros(n),
        parameters=parameters,
        sums=np.zeros(c.SUMS),
        power=np.zeros(6),
        events=np.zeros((c.MOST_EVENTS, c.EVENT)),
        held=np.full(3 + 12 * (1 + n), np.nan),
        wrench=np.zeros(6),
        shown=np.zeros((1 + n, 16)),
        force=np.zeros((n, 6)),
        peak=np.zeros(n),
    )


def _body(part: Load | Drone, first_corner: int) -> Array:
    row = np.zeros(c.BODY)
    inertia = np.array(part.inertia_kg_m2)
    row[c.MASS], row[c.INVERSE_MASS] = part.mass_kg, 1.0 / part.mass_kg
    row[c.INERTIA : c.INERTIA + 9] = inertia.ravel()
    if inertia.any():  # a point mass does not turn
        row[c.INVERSE : c.INVERSE + 9] = np.linalg.inv(inertia).ravel()
    row[c.DRAG : c.DRAG + 3] = part.drag_n_s_m
    row[c.STIFFNESS], row[c.DAMPING] = corner_constants(part.mass_kg)
    corners = part.collision.corners_m
    row[c.RADIUS] = np.linalg.norm(corners, axis=1).max()
    row[c.FIRST_CORNER], row[c.CORNERS] = first_corner, len(corners)
    row[c.FREE] = 1.0
    return row


def _cables(system: SlungLoadSystem, parts: list[Load | Drone]) -> Array:
    rows = np.zeros((system.n_drones, c.CABLE))
    least = [float(np.linalg.eigvalsh(_turning(p))[0]) for p in parts]
    for i, (row, cable, drone) in enumerate(zip(rows, system.cables, system.drones, strict=True)):
        ends = np.array(system.load.cable_attachments_m[i]), np.array(drone.cable_attachment_m)
        row[c.LENGTH] = cable.length_m
        row[c.POINT_LOAD : c.POINT_LOAD + 3], row[c.POINT_DRONE : c.POINT_DRONE + 3] = ends
        across = 1.0 / cable.length_m
        arms = [float(np.linalg.norm(end)) for end in ends]
        row[c.LOAD_SPIN] = arms[0] / least[0] + across / system.load.mass_kg
        row[c.DRONE_SPIN] = arms[1] / least[1 + i] + across / drone.mass_kg
    return rows


def _turning(part: Load | Drone) -> Array:
    """Inertia, for a point mass a very large one."""
    inertia = np.array(part.inertia_kg_m2)
    return inertia if inertia.any() else 1e9 * np.eye(3)
