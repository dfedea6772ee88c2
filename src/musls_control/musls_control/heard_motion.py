"""Motion of load and drones as it is heard in a ROS graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from musls_control.estimate import Estimate
from musls_description.rotations import rotate

_SAME_S = 1e-4
"""Two stamps that differ by less are the same moment."""


class HeardMotion:
    """Keeps the newest pose and twist of load and drones and the speeds of the rotors.

    Attributes:
        estimate: What is known of load and drones, row 0 the load; without `omega_body_rad_s`, see
            `turn_rates`.
        speeds_rad_s: Rotors, (n, n_rotors).
    """

    def __init__(self, n_drones: int, n_rotors: int) -> None:
        """Nothing was heard yet."""
        self.estimate = Estimate.zeros(n_drones)
        self.speeds_rad_s = np.zeros((n_drones, n_rotors))
        self._omega_enu_rad_s = np.zeros((1 + n_drones, 3))
        self._heard_s = np.full((3, 1 + n_drones), -np.inf)
        self._heard_s[2, 0] = np.inf  # a load has no rotors

    def on_pose(
        self, body: int, time_s: float, position: Sequence[float], q: Sequence[float]
    ) -> None:
        """Take a pose of body 0 (load) to n [m, ENU; unit quaternion w, x, y, z]."""
        self._heard_s[0, body] = time_s
        self.estimate.position_enu_m[body] = position
        self.estimate.orientation_wxyz[body] = q

    def on_twist(
        self, body: int, time_s: float, velocity: Sequence[float], omega_enu: Sequence[float]
    ) -> None:
        """Take a twist, both parts seen in the world [m/s, rad/s]."""
        self._heard_s[1, body] = time_s
        self.estimate.velocity_enu_m_s[body] = velocity
        self._omega_enu_rad_s[body] = omega_enu

    def on_rotors(self, body: int, time_s: float, speed_rad_s: Sequence[float]) -> None:
        """Take the rotor speeds of a drone, body 1 to n."""
        self._heard_s[2, body] = time_s
        self.speeds_rad_s[body - 1] = speed_rad_s

    def knows(self, time_s: float) -> bool:
        """Whether everything was heard up to a time."""
        return bool((self._heard_s >= time_s - _SAME_S).all())

    def age_s(self, time_s: float) -> float:
        """Age of the oldest thing that is known; infinite before all was heard."""
        return time_s - float(self._heard_s.min())

    def turn_rates(self) -> None:
        """Write the angular velocities into the estimate, as the bodies see them."""
        inverse = self.estimate.orientation_wxyz * [1.0, -1.0, -1.0, -1.0]
        self.estimate.omega_body_rad_s[:] = rotate(inverse, self._omega_enu_rad_s)
