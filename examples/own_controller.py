"""Your own controller: the drones share what the load needs and keep their formation.

Fly it from the command line (or `musls.fly("hold", controller=LoadFeedback)` in Python):

    ./musls fly hold --controller examples/own_controller.py:LoadFeedback
"""

import numpy as np

import musls
from musls import rotations


class LoadFeedback(musls.Controller):
    """Proportional and derivative feedback of the load's position, shared by all drones."""

    level = "forces"

    def __init__(self, stiffness: float = 3.0, damping: float = 3.0) -> None:
        self.stiffness, self.damping = stiffness, damping

    def step(self, time_s, reference, estimate):
        """Force of each drone's rotors, (n, 3) [N, ENU]."""
        load, drones, setup = estimate, estimate.drones, self.setup
        turn = rotations.from_yaw(np.array(reference.yaw_rad))  # the formation faces as the load
        places = rotations.rotate(turn, setup.formation.offsets_m(len(drones.data)))
        wanted = reference.acceleration_enu_m_s2 + [0.0, 0.0, setup.gravity_m_s2]
        wanted = wanted + self.stiffness * (reference.position_enu_m - load.position_enu_m[0])
        wanted = wanted + self.damping * (reference.velocity_enu_m_s - load.velocity_enu_m_s[0])
        share = setup.system.carried_mass_kg / len(places) * wanted  # of each cable's vertical pull
        outwards = places * [1.0, 1.0, 0.0] / places[:, 2:] * share[2]  # the cables are slanted
        weights = [[0.0, 0.0, drone.mass_kg * setup.gravity_m_s2] for drone in setup.system.drones]
        gaps = reference.position_enu_m + places - drones.position_enu_m
        keep = 4.0 * gaps + 4.0 * (reference.velocity_enu_m_s - drones.velocity_enu_m_s)
        return share + outwards + weights + keep
