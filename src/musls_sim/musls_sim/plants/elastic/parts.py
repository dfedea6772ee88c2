"""Bodies of a rig from the parts of a system."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.rotations import matrix
from musls_description.system import Box, Drone, Load
from musls_sim.plants.elastic.rig import RigBody
from musls_sim.start import BodyState

Array = NDArray[np.float64]


def rig_body(
    part: Load | Drone, position_enu_m: Array, rotation: Array, drone: int = -1
) -> RigBody:
    """Rigid body of a load or drone at its start.

    Args:
        part: Load or drone.
        position_enu_m: Centre of mass, (3,).
        rotation: Body frame to world, (3, 3).
        drone: Row of its rotors, -1 for the load.
    """
    return RigBody(
        mass_kg=part.mass_kg,
        inertia_kg_m2=np.array(part.inertia_kg_m2),
        position_enu_m=np.array(position_enu_m, float),
        rotation=np.array(rotation, float),
        drag_n_s_m=np.array(part.drag_n_s_m),
        corners_m=_corners(part.collision),
        drone=drone,
    )


def moving_body(part: Load | Drone, state: BodyState, drone: int = -1) -> RigBody:
    """The same in a given state of motion."""
    rotation = rotation_of(state.orientation_wxyz)
    body = rig_body(part, np.array(state.position_enu_m), rotation, drone)
    body.velocity_enu_m_s = np.array(state.velocity_enu_m_s, float)
    body.omega_enu_rad_s = rotation @ np.array(state.omega_body_rad_s, float)
    return body


def rotation_of(quaternion_wxyz: tuple[float, float, float, float]) -> Array:
    """Matrix of a quaternion, (3, 3)."""
    return matrix(np.array(quaternion_wxyz))


def _corners(box: Box) -> Array:
    """Corners of a box, (8, 3)."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners: Array = np.array(box.center_m) + 0.5 * signs * np.array(box.size_m)
    return corners
