"""What the drones carry, weighed by their rotors.

The mean thrust over a while, by the rotors' speeds, is the mass that hangs there:

    sum over rotors of integral k w^2 cos(tilt) dt = m (g T + v_z(T) - v_z(0)).

The thrust constant k need not be right, and the battery may sag (speeds are measured, not taken
from the commands): before the load is lifted each drone weighs itself, and only the ratio counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FORGET_S = 0.5
"""Time constant of the running mean."""


class PayloadScale:
    """Weighs over windows of time, and all the time.

    Attributes:
        own_kg: What each drone weighs with the cable that hangs on it while it weighs itself, (n,).
        carried_kg: Running mean of what all drones carry; zero until they have weighed themselves.
        factor: True over nominal thrust constant of each drone, (n,).
    """

    def __init__(self, own_kg: Array, thrust_n_s2: Array, gravity_m_s2: float) -> None:
        """Begin with nothing known but the drones.

        Args:
            own_kg: See above.
            thrust_n_s2: Nominal thrust constants, (n, n_rotors).
            gravity_m_s2: Gravity.
        """
        self.own_kg, self._thrust, self._gravity = own_kg, thrust_n_s2, gravity_m_s2
        self.factor = np.ones(len(own_kg))
        self.carried_kg = 0.0
        self._impulse, self._time_s = np.zeros(len(own_kg)), 0.0
        self._begin_m_s: Array | None = None
        self._last_m_s: Array | None = None

    def add(self, step_s: float, rotor_speed_rad_s: Array, up: Array, rise_m_s: Array) -> None:
        """Take a sample.

        Args:
            step_s: Time since the last one.
            rotor_speed_rad_s: (n, n_rotors).
            up: Vertical part of the drones' z axes, (n,).
            rise_m_s: Vertical velocities, (n,).
        """
        thrust = (self._thrust * rotor_speed_rad_s**2).sum(axis=1) * up
        if self._begin_m_s is None or self._last_m_s is None:
            self._begin_m_s = self._last_m_s = rise_m_s.copy()
            return
        self._impulse += thrust * step_s
        self._time_s += step_s
        felt = self._gravity + (rise_m_s - self._last_m_s) / step_s
        self._last_m_s = rise_m_s.copy()
        now = float((self.factor * thrust / np.maximum(felt, 1.0) - self.own_kg).sum())
        self.carried_kg += (now - self.carried_kg) * step_s / (FORGET_S + step_s)

    def begin(self) -> None:
        """Begin a window."""
        self._impulse[:] = 0.0
        self._time_s, self._begin_m_s = 0.0, None

    def masses_kg(self) -> Array:
        """What hung on each drone's rotors within the window, its own weight included, (n,)."""
        assert self._begin_m_s is not None and self._last_m_s is not None
        rise = self._last_m_s - self._begin_m_s
        masses: Array = self.factor * self._impulse / (self._gravity * self._time_s + rise)
        return masses

    def tare(self) -> None:
        """The drones carried nothing within the window: learn the true thrust constants."""
        self.factor *= self.own_kg / self.masses_kg()
        self.carried_kg = 0.0
