"""Steps that are short enough: the largest stable one, and when to halve it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.slung_system import Cable, RigSystem, SlungLoadSystem
from musls_sim.plants.interface import substeps
from musls_sim.specs.physics import CONTROL_PERIOD_S

PERIOD_LIFT_M = 0.0015
"""Energy that a control period may make from nothing before it is repeated with finer steps: what
lifts the whole system by this height. Calm flights of the paper's system make less than 3 mJ in 999
of 1000 periods, taut-jerked cables 50 mJ; this is 0.11 J. Much less once energy was made before."""


# ---------- Largest stable time step of a taut chain of rigid links under DART's integrator


TENSION_MARGIN = 3.0
"""Tension over the static share of the load for which a step must hold (manoeuvres)."""

ENGAGEMENT_MARGIN = 10.0
"""Margin as above for missions in which slack cables are jerked taut."""

FIXED_STEP_MARGIN = 25.0
"""Margin as above for an integrator that never refines its step and must survive a fall with slack
cables.

Gazebo Harmonic, x500_trio_unequal dropped from hover: aborts at 4 and 2 ms (margins 3 and 10), does
not at 1 ms."""

JOINT_TURN_PER_STEP_RAD = 0.25
"""Largest turn of a joint within a step: the velocity terms are integrated explicitly."""

STRETCH_TURN2 = 40.0
"""Square of the largest phase of the swing of a stretched cable within a step, over
`physics.accuracy`: 0.2 rad by default."""

JUMP_SHARE = 0.5
"""Change of a tension from one step to the next, over its share of the load at rest, that calls for
finer steps (the load leaves the ground or comes down on it)."""

IMPULSE_SHARE = 1e-3
"""Impulse that the steps of a control period make from nothing, over that of the weight, that calls
for finer steps. It is given back at once (see `momentum`), but to the whole piece: where light
links whip, drones and load that rest on the ground are moved by what their cables get wrong."""

REFINEMENTS = 6
"""Maximum halvings of a step where an impact asks for it."""


# A chain of L thin rods (mass m, length h) under tension T between fixed ends has transverse
# modes y_j ~ sin(k pi j / L). With s = sin(k pi / 2 L) the consistent mass, stiffness and joint
# damping are
#
#     M = m (1 - 2 s^2 / 3),   K = 4 T s^2 / h,   C = 16 c s^4 / h^2.
#
# DART integrates semi-implicitly, joint damping implicitly and tension explicitly; such a step is
# stable if dt^2 K / M <= 4 + 2 dt C / M, hence dt <= (C + sqrt(C^2 + 4 K M)) / K. The undamped
# limit for the top mode (s = 1) is 2 / omega with omega = 2 sqrt(3) sqrt(T / mu) / h.
#
# The rule serves twice: before a run it chooses the step for the tensions of ordinary flight, and
# during the run it tells when a jerk (a cable snapping taut, the load touching the ground) calls
# for a finer step for a moment.


def _modes(cable: Cable) -> tuple[Array, Array, Array]:
    """s^2, mass M and damping C of all transverse modes, each (links,)."""
    k = np.arange(1, cable.links + 1)
    s2 = np.sin(k * np.pi / (2.0 * cable.links)) ** 2
    mass = cable.link_mass_kg * (1.0 - 2.0 * s2 / 3.0)
    damping = 16.0 * cable.joint_damping_n_m_s_rad * s2**2 / cable.link_length_m**2
    return s2, mass, damping


def largest_stable_step_s(cable: Cable, tension_n: float) -> float:
    """Largest stable time step of one cable at a tension [s]."""
    s2, mass, damping = _modes(cable)
    stiffness = 4.0 * tension_n * s2 / cable.link_length_m
    steps = (damping + np.sqrt(damping**2 + 4.0 * stiffness * mass)) / stiffness
    return float(steps.min())


def largest_stable_tension_n(cable: Cable, step_s: ArrayLike) -> Array:
    """Largest tensions that steps hold for one cable, the inverse of `largest_stable_step_s` [N].

    dt^2 K / M <= 4 + 2 dt C / M solved for the tension, for the worst mode.
    """
    s2, mass, damping = _modes(cable)
    step = np.asarray(step_s)[..., None]
    limits = (4.0 * mass + 2.0 * step * damping) * cable.link_length_m / (4.0 * step**2 * s2)
    return np.asarray(limits.min(axis=-1))


def design_tension_n(
    system: SlungLoadSystem, gravity_m_s2: float, margin: float = TENSION_MARGIN
) -> float:
    """Tension for which the step is chosen: the static share times a margin [N]."""
    return margin * system.carried_mass_kg * gravity_m_s2 / system.n_drones


def stable_step_s(
    system: SlungLoadSystem, gravity_m_s2: float, margin: float = TENSION_MARGIN
) -> float:
    """Largest stable step over all cables of a system at the design tension [s]."""
    tension = design_tension_n(system, gravity_m_s2, margin)
    return min(largest_stable_step_s(cable, tension) for cable in system.cables)


def fixed_step_s(system: SlungLoadSystem, gravity_m_s2: float = STANDARD_GRAVITY_M_S2) -> float:
    """Step for an integrator that never refines it: it must hold a cable that is jerked taut [s].

    A whole part of the control period, so that sensors of 250 Hz keep their rate.
    """
    return CONTROL_PERIOD_S / substeps(stable_step_s(system, gravity_m_s2, FIXED_STEP_MARGIN))


# ---------- Steps of each level of refinement and what they hold; level 0 is the ordinary step

CALM_PERIODS = 25
"""Control periods without a jerk (0.1 s) after which a refined step is doubled again: the waves
that a jerk sends along the cables are to be followed too."""


WAVE_LEVEL = 2
"""Levels beyond this one serve the moment of the jerk alone: a period without one is enough."""


LEVELS = np.dtype(
    [
        ("present", np.int64),  # level of the last period
        ("calm", np.int64),  # periods since it was needed
        ("last", np.int64),  # the finest level
        ("substeps", np.int64),  # of the ordinary step
        ("refined", np.int64),  # periods that needed finer steps
        ("period", float),
    ],
    align=True,
)


LIMIT = np.dtype(
    [
        ("tension", float),  # largest that the step holds for this cable [N]
        # for all cables alike:
        ("joint_rate", float),  # largest [rad/s]
        ("jump", float),  # largest change of a tension from one step to the next [N]
        ("stiff", float),  # squared frequency of a stretched cable [1/s2]
        ("period", float),  # control period [s]
        ("energy", float),  # that a period may make [J]
        ("impulse", float),  # that it may make [N s]
        ("weight", float),  # of all bodies [N]
    ],
    align=True,
)
"""Limits of a step."""


class Levels:
    """Levels of one plant, and the one at which the next period begins.

    Attributes:
        record: Record of the levels for a compiled step, (1,) of `LEVELS`.
        last: Number of the finest level.
        substeps: Steps per period at each level.
        step_s: Length of a step at each level.
        limits: Limits of a step of each level with each cable, (levels, n_cables) of `LIMIT`.
    """

    def __init__(
        self,
        system: RigSystem,
        period_s: float,
        substeps: int,
        gravity_m_s2: float,
        *,
        refine: bool,
        accuracy: float = 1e-3,
    ) -> None:
        """Lay out the levels."""
        self.last = REFINEMENTS if refine else 0
        self.record = np.zeros(1, LEVELS)
        self.record["last"] = self.last
        self.record["substeps"] = substeps
        self.record["period"] = period_s
        self.substeps = [substeps * 2**level for level in range(self.last + 1)]
        self.step_s = [period_s / n for n in self.substeps]
        scale_m_s2 = gravity_m_s2 or STANDARD_GRAVITY_M_S2
        weight_n = scale_m_s2 * system.mass_kg
        share = scale_m_s2 * system.carried_mass_kg / max(system.n_drones, 1)
        self.limits = np.zeros((self.last + 1, len(system.cables)), LIMIT)
        steps = np.array(self.step_s)
        ordinary_n = TENSION_MARGIN * share * (steps[0] / steps)
        for i, cable in enumerate(system.cables):
            stable_n = largest_stable_tension_n(cable, steps)
            self.limits["tension"][:, i] = np.maximum(stable_n, ordinary_n)
        self.limits["joint_rate"] = (JOINT_TURN_PER_STEP_RAD / steps)[:, None]
        self.limits["stiff"] = (accuracy * STRETCH_TURN2 / steps**2)[:, None]
        self.limits["jump"] = JUMP_SHARE * share
        self.limits["period"] = period_s
        self.limits["weight"] = weight_n
        self.limits["energy"] = PERIOD_LIFT_M * weight_n
        self.limits["impulse"] = IMPULSE_SHARE * weight_n * period_s
        self.limits["tension"][self.last] = self.limits["jump"][self.last] = np.inf
        self.limits["stiff"][self.last] = self.limits["impulse"][self.last] = np.inf

    @property
    def tables(self) -> dict[str, Records]:
        """Record and limits, by the names of a plant's tables."""
        return {"levels": self.record, "limits": self.limits}

    @property
    def present(self) -> int:
        """Level of the last period."""
        return int(self.record["present"][0])


@compiled()
def settle(levels, level):
    """Choose the level to begin the next period with: coarser only after a calm while."""
    if level == 0:
        return
    levels.refined += 1
    levels.calm = levels.calm + 1 if level <= levels.present else 0
    levels.present = max(level, levels.present)
    if levels.calm >= (CALM_PERIODS if levels.present <= WAVE_LEVEL else 1):
        levels.calm = 0
        levels.present = max(levels.present - 1, 0)
