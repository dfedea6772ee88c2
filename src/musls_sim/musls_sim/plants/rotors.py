"""The rotors of a system as the compiled functions take them.

Apart from those functions, so that a change in the description does not compile them again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.system import RigSystem

Array = NDArray[np.float64]


def rotor_table(system: RigSystem) -> Array:
    """Constants of all rotors, (n_drones, n_rotors, 8).

    Columns: place (3), thrust coefficient, reaction torque coefficient with sign about body z,
    time constants up and down, drag coefficient.
    """
    rows = np.array(
        [
            [
                [
                    *rotor.position_m,
                    rotor.thrust_coefficient_n_s2,
                    rotor.thrust_coefficient_n_s2
                    * rotor.moment_ratio_m
                    * (-1.0 if rotor.spin == "ccw" else 1.0),
                    rotor.time_constant_up_s,
                    rotor.time_constant_down_s,
                    rotor.drag_n_s2_m_rad,
                ]
                for rotor in drone.rotors
            ]
            for drone in system.drones
        ]
    )
    table: Array = rows.reshape(system.n_drones, system.n_rotors, 8)
    return table
