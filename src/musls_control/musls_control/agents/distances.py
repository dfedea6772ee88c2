"""Drones that keep their distances to those they hear, and fly on with a constant velocity.

H. Garcia de Marina and E. Smeur, "Flexible collaborative transportation by a team of rotorcraft",
IEEE ICRA 2019: each drone goes down the gradient of the errors of its distances and damps its
velocity to the common one v*; the pull of its rope is a disturbance that it makes up for, so that
neither the load nor the ropes need to be known. With z_ij = p_i - p_j and wanted distances d_ij, in
the horizontal plane,

    p_i'' = -k sum_j (|z_ij|^2 - d_ij^2) / d_ij^2 z_ij - c (p_i' - v*).

Where it is and how it is turned, the formation does not decide: distances know neither. Each drone
keeps the height at which it begins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from musls_control.agents.agent import EVERYBODY, Agent, Now
from musls_control.controllers import ControlLevel
from musls_description.numerics.arrays import Array


class DistanceKeeper(Agent):
    """Keeps its distances of the formation to all drones that it hears."""

    level = ControlLevel.FORCES

    def __init__(
        self,
        velocity_m_s: Sequence[float] = (0.0, 0.0),
        distance_1_s2: float = 1.0,
        velocity_1_s: float = 1.5,
        height_1_s2: float = 4.0,
        height_1_s: float = 3.0,
        pull_s: float = 0.5,
    ) -> None:
        """Choose the common velocity v* (east, north), and the gains k and c.

        `pull_s`: time constant with which the pull is made up for; at once, it would feed the swing
        of the load, since drones turn late.
        """
        self._velocity = np.array([*velocity_m_s, 0.0])
        self._distance_1_s2 = distance_1_s2
        self._height_1_s2 = height_1_s2
        self._damping_1_s = np.array([velocity_1_s, velocity_1_s, height_1_s])
        self._height_m = 0.0
        self._pull_s = pull_s
        self._pull_enu_n = np.zeros(3)

    def start(self, now: Now) -> None:
        """Remember the height."""
        self._height_m = float(now.own.position_enu_m[2])
        self._pull_enu_n = np.zeros(3)

    def decide(self, now: Now) -> Array:
        """Force of the rotors, world, (3,) [N]."""
        post = self.post
        own = now.own
        self.send(EVERYBODY, [*own.position_enu_m, *post.place_m])
        acceleration_m_s2 = -self._damping_1_s * (own.velocity_enu_m_s - self._velocity)
        acceleration_m_s2[2] += self._height_1_s2 * (self._height_m - own.position_enu_m[2])
        for number, message in now.heard.items():
            if number in now.silent:
                continue
            apart = (own.position_enu_m - message.numbers[:3])[:2]
            distance_m = float(np.linalg.norm((post.place_m - message.numbers[3:])[:2]))
            error = (apart @ apart - distance_m**2) / distance_m**2
            acceleration_m_s2[:2] -= self._distance_1_s2 * error * apart
        share = min(post.period_s / self._pull_s, 1.0)
        self._pull_enu_n = self._pull_enu_n + share * (now.pull_enu_n - self._pull_enu_n)
        force: Array = post.drone.mass_kg * (acceleration_m_s2 + [0.0, 0.0, post.gravity_m_s2])
        return force - self._pull_enu_n
