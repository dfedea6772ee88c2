"""Coulomb friction of the cable joints, regularised and integrated implicitly.

DART's own joint friction is a constraint per axis, solved exactly in an LCP that grows with the
number of joints (the seed paper measured that it halves the speed). Here each axis gets the
torque -tau_f w / sqrt(w^2 + w_s^2), which tends to Coulomb's law for rates above w_s and creeps at
w_s r / sqrt(1 - r^2), r = tau / tau_f, when it sticks. It enters as additional joint damping
tau_f / sqrt(w^2 + w_s^2) with w from the beginning of the step; DART integrates damping implicitly,
so any step is stable.
"""

from __future__ import annotations

import numpy as np
from dartpy.dynamics import Skeleton
from numpy.typing import NDArray

from musls_description.tree import Tree

Array = NDArray[np.float64]

CHANGE = 0.01
"""Relative change of an axis' damping from which it is handed to DART: each call costs time."""

STICK_RATE_RAD_S = 0.02
"""Rate w_s below which a joint counts as stuck (creep)."""


class RegularisedFriction:
    """Friction torques of all joint axes of one skeleton."""

    def __init__(self, skeleton: Skeleton, tree: Tree) -> None:
        """Collect the axes with friction."""
        axes = [(k, axis) for k, body in enumerate(tree.bodies) for axis in range(len(body.axes))]
        self._friction = np.array([tree.bodies[k].friction_n_m for k, _ in axes])
        self._damping = np.array([tree.bodies[k].damping_n_m_s_rad for k, _ in axes])
        self._in_force = np.zeros(len(axes))
        self._set = [(skeleton.getJoint(k).setDampingCoefficient, axis) for k, axis in axes]

    @classmethod
    def of(cls, skeleton: Skeleton, tree: Tree) -> RegularisedFriction | None:
        """Friction of a skeleton, None if no joint has any."""
        if not any(body.friction_n_m for body in tree.bodies):
            return None
        return cls(skeleton, tree)

    @property
    def damping_n_m_s_rad(self) -> Array:
        """Damping of all axes that DART has now, friction included, (n_dofs - 6,)."""
        return self._in_force

    def apply(self, rates_rad_s: Array, extra_damping_n_m_s_rad: Array | float = 0.0) -> None:
        """Set the effective damping for the coming step.

        Args:
            rates_rad_s: Rates of all coordinates, the load's six first, (n_dofs,).
            extra_damping_n_m_s_rad: Damping of the joint stops, (n_dofs - 6,).
        """
        rates = rates_rad_s[6:]
        damping = (
            self._damping
            + extra_damping_n_m_s_rad
            + self._friction / np.sqrt(rates**2 + STICK_RATE_RAD_S**2)
        )
        changed = np.abs(damping - self._in_force) > CHANGE * self._in_force
        for k in np.flatnonzero(changed):
            set_damping, axis = self._set[k]
            set_damping(axis, damping[k])
        self._in_force[changed] = damping[changed]
