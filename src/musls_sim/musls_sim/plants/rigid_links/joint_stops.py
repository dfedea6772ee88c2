"""Soft stops that keep the cable joints away from the universal joint's singularity.

With the link along x and the axes y, then z, a universal joint is singular when the second angle
reaches +-90 degrees: the first axis is then along the link (a joint with the axes x, y, z likewise
at the second). A slack cable that folds sharply
sideways gets there, and one that passes has infinite joint rates. A real cable does not fold by
90 degrees within a link's length either. Beyond `STOP_RAD` a spring and a damper therefore hold
the second axis back. Both go into DART's joint, which integrates them implicitly, and only while
the joint is at the stop.
"""

from __future__ import annotations

import numpy as np
from dartpy.dynamics import Skeleton
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.errors import ConfigError
from musls_description.tree import Tree

Array = NDArray[np.float64]

STOP_RAD = np.radians(60.0)
STIFFNESS_N_M_RAD = 5.0
DAMPING_N_M_S_RAD = 0.01

START_SLACK_RAD = np.radians(5.0)
"""How far beyond a stop a flight may start."""


@compiled()
def _changes(positions, second, side):
    """Whether any second axis has reached or left its stop (`side` holds the last state)."""
    for k in range(side.shape[0]):
        b = positions[second[k]]
        now = 1 if b > STOP_RAD else (-1 if b < -STOP_RAD else 0)
        if now != side[k]:
            return True
    return False


class JointStops:
    """Stops of the second axes of all joints of one skeleton.

    Attributes:
        extra_damping: Damping that the stops add now, all axes, (n_dofs - 6,) [N m s/rad].
    """

    def __init__(self, skeleton: Skeleton, tree: Tree, *, sets_damping: bool = True) -> None:
        """Find the joints; none is at its stop yet.

        Args:
            skeleton: The skeleton.
            tree: Its tree.
            sets_damping: Hand the damping to DART here; else joint friction does, which computes
                the damping of every axis anyway.
        """
        self._sets_damping = sets_damping
        self._joints = [skeleton.getJoint(k) for k in range(1, len(tree.bodies))]
        self._bodies = tree.bodies[1:]
        self._second = tree.first_coordinate[1:] + 1
        self._side = np.zeros(len(self._joints), np.int64)
        self.extra_damping = np.zeros(tree.n_coordinates - 6)

    def check_start(self, positions: Array) -> None:
        """Refuse a start at rest in which a stop would kick the cable.

        Args:
            positions: All coordinates, the load's six first, (n_dofs,).

        Raises:
            ConfigError: A second axis is well beyond its stop.
        """
        angles = np.abs(positions[self._second])
        worst = int(angles.argmax())
        if angles[worst] > STOP_RAD + START_SLACK_RAD:
            raise ConfigError(
                f"{self._bodies[worst].name}: at the start the joint below it is bent sideways by "
                f"{np.degrees(angles[worst]):.0f} degrees, its stop is at "
                f"{np.degrees(STOP_RAD):.0f}: slack cables with so few links cannot be laid out, "
                "choose more links per cable (or start in the air)"
            )

    def apply(self, positions: Array) -> None:
        """Set the springs for the coming step.

        Args:
            positions: All coordinates, the load's six first, (n_dofs,).
        """
        if not _changes(positions, self._second, self._side):
            return
        angles = positions[self._second]
        side = np.where(np.abs(angles) > STOP_RAD, np.sign(angles), 0.0).astype(np.int64)
        for k in np.flatnonzero(side != self._side):
            joint, body, at_stop = self._joints[k], self._bodies[k], bool(side[k])
            joint.setRestPosition(1, float(side[k] * STOP_RAD))
            joint.setSpringStiffness(1, STIFFNESS_N_M_RAD if at_stop else body.stiffness_n_m_rad)
            extra = DAMPING_N_M_S_RAD if at_stop else 0.0
            if self._sets_damping:
                joint.setDampingCoefficient(1, body.damping_n_m_s_rad + extra)
            self.extra_damping[self._second[k] - 6] = extra
        self._side = side
