"""One rigid body made of load and drones, after Li et al., "RotorTM", IEEE T-RO 2023, eq. 24.

In the load's axes, with r the place of a part's centre of mass and R its attitude beside the load:

    m_c = sum m,   rho_c = sum m r / m_c,   J_c = sum (R J R^T + m (s.s I - s s^T)),  s = r - rho_c.

(The authors' code keeps the diagonal of the last term alone and forgets the inverse of J_c.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_description.drone import Drone
from musls_description.system import Load, SlungLoadSystem
from musls_sim.plants.massless.start import Motion

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Composite:
    """Masses and places of a rigid structure, in the axes of its load.

    Attributes:
        mass_kg: Of everything.
        inertia_kg_m2: About its centre of mass, (3, 3).
        place_m: Centres of mass of load and drones from that of the whole, (1 + n, 3).
        attitude: Load and drones beside the load, (1 + n, 3, 3).
    """

    mass_kg: float
    inertia_kg_m2: Array
    place_m: Array
    attitude: Array

    @classmethod
    def of(cls, system: SlungLoadSystem, motion: Motion) -> Composite:
        """Structure that a system has where its bodies are now."""
        parts: list[Load | Drone] = [system.load, *system.drones]
        turns = Rotation.from_quat(motion.orientation_wxyz, scalar_first=True)
        place = turns[0].inv().apply(motion.position_enu_m - motion.position_enu_m[0])
        attitude = (turns[0].inv() * turns).as_matrix()
        mass = np.array([part.mass_kg for part in parts])
        place = place - mass @ place / mass.sum()
        inertia = np.zeros((3, 3))
        for part, r, turn in zip(parts, place, attitude, strict=True):
            inertia += turn @ np.array(part.inertia_kg_m2) @ turn.T
            inertia += part.mass_kg * (r @ r * np.eye(3) - np.outer(r, r))
        return cls(float(mass.sum()), inertia, place, attitude)

    def velocities(self, motion: Motion) -> tuple[Array, Array]:
        """Velocities of all parts if they move with the load, world, and body rates.

        Returns:
            Velocities and body rates, (1 + n, 3) each.
        """
        turn = Rotation.from_quat(motion.orientation_wxyz[0], scalar_first=True)
        omega = motion.omega_body_rad_s[0]
        swept = turn.apply(np.cross(omega, self.place_m - self.place_m[0]))
        rates: Array = np.einsum("nji,j->ni", self.attitude, omega)
        return motion.velocity_enu_m_s[0] + swept, rates
