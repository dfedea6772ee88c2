"""Where load and drones are at the start, as plants without chains take it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_description.rotations import from_matrix
from musls_description.spawn import Configuration
from musls_description.system import SlungLoadSystem
from musls_description.tree import build_tree
from musls_sim.plants.rigid_links.multibody import body_motion, joint_table

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
