"""A first controller: linear-quadratic feedback of the load; cables and drones are left to musls.

./musls fly circle --controller examples/lqr_controller.py:Lqr
"""

import numpy as np
from scipy.linalg import solve_continuous_are

import musls


class Lqr(musls.Controller):
    """Regulates position and velocity of the load, each axis a double integrator."""

    level = "load_acceleration"

    def __init__(self, position: float = 4.0, velocity: float = 1.0, effort: float = 0.5) -> None:
        A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
        P = solve_continuous_are(A, B, np.diag([position, velocity]), [[effort]])
        self.gains = (B.T @ P / effort)[0]

    def step(self, time_s, reference, estimate):
        """Acceleration of the load, (3,) [m/s2, ENU]."""
        error = reference.position_enu_m - estimate.position_enu_m[0]
        drift = reference.velocity_enu_m_s - estimate.velocity_enu_m_s[0]
        return reference.acceleration_enu_m_s2 + self.gains[0] * error + self.gains[1] * drift
