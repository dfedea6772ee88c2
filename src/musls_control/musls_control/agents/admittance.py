"""Drones that carry a load and do not communicate: the pull of its cable tells each one enough.

Each drone behaves as a mass M with a damper B, and the leader alone has a spring K to its place:

    M p'' + B p' + K (p - p_r) = u + f,

f the force of its cable on it, inferred from its own motion, and u a constant force. Followers go
where the leader pulls the load, and come to rest with it: A. Tagliabue, M. Kamel, R. Siegwart and
J. Nieto, "Robust collaborative object transportation using multiple MAVs", IJRR 2019.

Two drones on a beam are the case of M. Tognon, C. Gabellieri, L. Pallottino and A. Franchi,
"Aerial co-manipulation with cables: the role of internal force for equilibria, stability, and
passivity", IEEE RA-L 2018 (and T-RO 2023, arXiv:2302.07031). At rest the follower pulls the beam
with u = f2. With hooks at both sides of the centre of mass, equally far, and light cables, the beam
lies along 2 f2 - m g e3: level for f2 = (t, 0, m g / 2). The internal force t makes this attitude
stable for t > 0, leaves any for t = 0, and makes it unstable for t < 0; a mass that is wrong by dm
tilts the beam by atan(dm g / (2 t)).
"""

from __future__ import annotations

import numpy as np

from musls_control.agents.agent import Agent, Now, Post
from musls_control.controllers import ControlLevel
from musls_description.numerics.arrays import Array


class AdmittanceCarrier(Agent):
    """The leader brings its end of the load to its place, the others follow the pull of theirs.

    Attributes:
        force_enu_n: Constant force u of this drone, world, (3,).
    """

    level = ControlLevel.FORCES

    def __init__(
        self,
        internal_n: float = 2.0,
        mass_kg: float = 3.0,
        damping_n_s_m: float = 8.0,
        stiffness_n_m: float = 8.0,
        load_mass_kg: float | None = None,
    ) -> None:
        """Choose the admittance, the same for all.

        `internal_n`: force with which each drone pulls away from the load's middle;
        `load_mass_kg`: mass that they believe the load to have, None for the system's.
        """
        self._internal_n = internal_n
        self._load_mass_kg = load_mass_kg
        self._mass_kg = mass_kg
        self._damping_n_s_m = damping_n_s_m
        self._stiffness_n_m = stiffness_n_m
        self.force_enu_n = np.zeros(3)

    def prepare(self, post: Post) -> None:
        """See `Agent`; each drone carries an even share and its cable, and pulls to its place."""
        super().prepare(post)
        away = post.place_m[:2] / max(float(np.linalg.norm(post.place_m[:2])), 1e-9)
        mass_kg = post.load_mass_kg if self._load_mass_kg is None else self._load_mass_kg
        self.force_enu_n[:2] = self._internal_n * away
        carried_kg = mass_kg / post.n_drones + post.cable.mass_kg
        self.force_enu_n[2] = carried_kg * post.gravity_m_s2

    def start(self, now: Now) -> None:
        """The leader remembers where it is from the load's set-point."""
        if self.post.leads:
            self._beside = now.own.position_enu_m - now.reference.position_enu_m

    def decide(self, now: Now) -> Array:
        """Force of the rotors, world, (3,) [N]."""
        pull = now.pull_enu_n
        net_force_n = self.force_enu_n + pull - self._damping_n_s_m * now.own.velocity_enu_m_s
        if self.post.leads:
            place = now.reference.position_enu_m + self._beside
            net_force_n = net_force_n - self._stiffness_n_m * (now.own.position_enu_m - place)
        specific_force_m_s2 = net_force_n / self._mass_kg + [0.0, 0.0, self.post.gravity_m_s2]
        force: Array = self.post.drone.mass_kg * specific_force_m_s2 - pull
        return force
