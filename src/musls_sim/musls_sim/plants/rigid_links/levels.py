"""Steps of each level of refinement and what they hold; level 0 is the ordinary step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.system import SlungLoadSystem
from musls_sim.plants.rigid_links import judge
from musls_sim.plants.rigid_links.stability import (
    JOINT_TURN_PER_STEP_RAD,
    REFINEMENTS,
    largest_stable_tension_n,
)

STANDARD_GRAVITY_M_S2 = 9.80665

CALM_PERIODS = 25
"""Control periods without a jerk (0.1 s) after which a refined step is doubled again: the waves
that a jerk sends along the cables are to be followed too."""


class Levels:
    """Levels of one plant, and the one at which the next period begins.

    Attributes:
        last: Number of the finest level.
        present: Level of the last period.
        substeps: Steps per period at each level.
        step_s: Their length.
        limits: What a step may meet, see `step.RATE` and the columns after it.
    """

    def __init__(
        self, system: SlungLoadSystem, period_s: float, substeps: int, *, refine: bool
    ) -> None:
        """Lay out the levels.

        Args:
            system: What is simulated.
            period_s: Control period.
            substeps: Ordinary steps in it.
            refine: Whether there are levels beyond the ordinary one.
        """
        self.last = REFINEMENTS if refine else 0
        self.present = self._calm = 0
        self.substeps = [substeps * 2**level for level in range(self.last + 1)]
        self.step_s = [period_s / n for n in self.substeps]
        weight_n = STANDARD_GRAVITY_M_S2 * (
            system.carried_mass_kg + sum(drone.mass_kg for drone in system.drones)
        )
        self.limits: list[NDArray[np.float64]] = []
        for step in self.step_s:
            tension = [largest_stable_tension_n(cable, step) for cable in system.cables]
            rate = JOINT_TURN_PER_STEP_RAD / step
            energy = judge.MADE_ENERGY_J, judge.PERIOD_LIFT_M * weight_n, weight_n
            self.limits.append(np.array([rate, period_s, *energy, *tension]))

    def settle(self, level: int) -> None:
        """Choose the level to begin the next period with: coarser only after a calm while."""
        self._calm = self._calm + 1 if level <= self.present else 0
        self.present = max(level, self.present)
        if self._calm >= CALM_PERIODS:
            self._calm = 0
            self.present = max(self.present - 1, 0)
