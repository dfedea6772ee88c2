"""Whether a physics step was too long for what happened in it, and the energy that it made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.system import Cable, SlungLoadSystem
from musls_sim.plants.interface import SPEED_LIMIT_M_S
from musls_sim.plants.rigid_links.rows import OMEGA, POSITION, VELOCITY
from musls_sim.plants.rigid_links.tables import (
    BALANCE,
    ENERGY,
    EXCHANGED,
    KINETIC,
    LOW,
    RECENT,
    RECENT_EXCHANGED,
    SPURIOUS,
)
from musls_sim.scenario.physics import CONTROL_PERIOD_S

OK, TOO_COARSE, RUNAWAY, MADE_UP, DOUBTFUL, UNBALANCED = range(6)
"""Verdicts on a step and what came before it: too long for the tension or the joint rates; not
physical any more; too much of the run's energy is spurious, or much of it is; the step or period
made energy."""

JERK_RAD_S = 1.0
"""Change of a joint's rate (or of the load's velocity, m/s) in one step that calls for a look at
the energy. In calm flight steps of 4 ms change rates by some 0.1 rad/s."""

MADE_ENERGY_J = 0.05
"""Energy that such a step may make from nothing. Flights make less than 3 mJ in 999 of 1000 steps;
the load's touch-down, resolved too coarsely, flings a drone with some joules."""

PERIOD_LIFT_M = 0.0015
"""Energy that a control period may make from nothing before it is repeated with finer steps: what
lifts the whole system by this height. Calm flights of the paper's system make less than 3 mJ in 999
of 1000 periods, taut-jerked cables 50 mJ; this is 0.11 J. Much less once energy was made before."""

WARN_SHARE, END_SHARE = 0.01, 0.05
"""Spurious energy that is warned of, and that ends a run: a share of the kinetic energy and the
work exchanged, over the whole run and over about the last second."""

FLOOR_LIFT_M = 0.01
"""And what lifts the whole system by this height, which is free."""

MEMORY_S = 1.0
"""Time constant of "the last second"."""


@compiled()
def judge_step(
    peak, tension_limit, rates, before, rate_limit, made_j, made_limit_j, parents, first
):
    """Whether a step was too long for the tension or the joint rates it met, or ran away."""
    coarse = jerk = False
    for body in range(parents.shape[0]):
        load, free = body == 0, parents[body] < 0
        for k in range(first[body], first[body + 1]):
            rate = np.abs(rates[k])
            linear = free and k >= first[body] + 3
            if not rate <= (SPEED_LIMIT_M_S if load or linear else 20.0 * SPEED_LIMIT_M_S):
                return RUNAWAY
            if not (load or linear) and rate > rate_limit:
                coarse = True
            elif np.abs(rates[k] - before[k]) > JERK_RAD_S:
                jerk = True
    for i in range(peak.shape[0]):
        if not np.isfinite(peak[i]):
            return RUNAWAY
        if peak[i] > tension_limit[i]:
            coarse = True
    if coarse:
        return TOO_COARSE
    return UNBALANCED if jerk and made_j > made_limit_j else OK


@compiled()
def mechanical_energy(motion, masses, gravity):
    """Kinetic energy and that of weight [J]."""
    kinetic = weight = 0.0
    for k in range(motion.shape[0]):
        m, b = motion[k], masses[k]
        x = m[0] * b[1] + m[1] * b[2] + m[2] * b[3]
        y = m[3] * b[1] + m[4] * b[2] + m[5] * b[3]
        z = m[6] * b[1] + m[7] * b[2] + m[8] * b[3]
        wx, wy, wz = m[OMEGA], m[OMEGA + 1], m[OMEGA + 2]
        vx = m[VELOCITY] + wy * z - wz * y
        vy = m[VELOCITY + 1] + wz * x - wx * z
        vz = m[VELOCITY + 2] + wx * y - wy * x
        p = m[0] * wx + m[3] * wy + m[6] * wz  # angular velocity in the body's frame
        q = m[1] * wx + m[4] * wy + m[7] * wz
        r = m[2] * wx + m[5] * wy + m[8] * wz
        turning = p * (b[4] * p + b[5] * q + b[6] * r)
        turning += q * (b[7] * p + b[8] * q + b[9] * r)
        turning += r * (b[10] * p + b[11] * q + b[12] * r)
        kinetic += 0.5 * (b[0] * (vx * vx + vy * vy + vz * vz) + turning)
        weight += b[0] * gravity * (m[POSITION + 2] + z)
    return kinetic, weight


@compiled()
def account(t, q, before, after, step_s, kinetic, weight):
    """Enter a step into the ledger.

    The balance is the energy less the work of all forces that DART integrates: those from outside
    and the joints' dampers and springs, which act at the end of the step. All work along the mean
    of the velocities, which for the kinetic energy is exact. Contacts only take energy, so what the
    balance rises is spurious.
    """
    work = joints = exchanged = 0.0
    for k in range(after.shape[0]):
        mean = 0.5 * step_s * (before[k] + after[k])
        work += t.tau[k] * mean
        exchanged += np.abs(t.tau[k] * mean)
        spring = t.stiffness[k] * (q[k] + step_s * after[k] - t.rest[k])
        joints -= (t.damping[k] * after[k] + spring) * mean
    ledger = t.ledger
    gain = kinetic + weight - ledger[ENERGY]
    ledger[ENERGY] = kinetic + weight
    ledger[KINETIC] = max(ledger[KINETIC], kinetic)
    ledger[EXCHANGED] += exchanged
    ledger[BALANCE] += gain - work - joints
    ledger[LOW] = min(ledger[LOW], ledger[BALANCE])
    ledger[SPURIOUS] = max(ledger[SPURIOUS], ledger[BALANCE] - ledger[LOW])
    kept = 1.0 - step_s / MEMORY_S
    ledger[RECENT] = max(kept * ledger[RECENT] + gain - work - joints, 0.0)
    ledger[RECENT_EXCHANGED] = kept * ledger[RECENT_EXCHANGED] + exchanged
    return gain - work


@compiled()
def judge_energy(ledger, before, kinetic, weight, allowed_j):
    """Whether a control period made too much energy, or the run so far."""
    floor = FLOOR_LIFT_M * weight
    whole = ledger[KINETIC] + ledger[EXCHANGED]
    recent = kinetic + ledger[RECENT_EXCHANGED]
    if ledger[SPURIOUS] > floor + END_SHARE * whole or ledger[RECENT] > floor + END_SHARE * recent:
        return MADE_UP
    doubtful = (
        ledger[SPURIOUS] > floor + WARN_SHARE * whole
        or ledger[RECENT] > floor + WARN_SHARE * recent
    )
    if ledger[BALANCE] - before[BALANCE] > (0.05 if doubtful else 1.0) * allowed_j:
        return UNBALANCED
    return DOUBTFUL if doubtful else OK


# ---------- Largest stable time step of a taut chain of rigid links under DART's integrator

Array = NDArray[np.float64]

TENSION_MARGIN = 3.0
"""Tension over the static share of the load for which a step must hold (manoeuvres)."""

ENGAGEMENT_MARGIN = 10.0
"""The same for missions in which slack cables are jerked taut."""

FIXED_STEP_MARGIN = 25.0
"""The same for an integrator that never refines its step and must survive a fall with slack cables.

Gazebo Harmonic, x500_trio_unequal dropped from hover: aborts at 4 and 2 ms (margins 3 and 10), does
not at 1 ms."""

JOINT_TURN_PER_STEP_RAD = 0.25
"""Largest turn of a joint within a step: the velocity terms are integrated explicitly."""

REFINEMENTS = 6
"""How often a step may be halved where a jerk asks for it."""


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


def largest_stable_tension_n(cable: Cable, step_s: float) -> float:
    """Largest tension that a step holds for one cable, the inverse of `largest_stable_step_s` [N].

    dt^2 K / M <= 4 + 2 dt C / M solved for the tension, for the worst mode.
    """
    s2, mass, damping = _modes(cable)
    limits = (4.0 * mass + 2.0 * step_s * damping) * cable.link_length_m / (4.0 * step_s**2 * s2)
    return float(limits.min())


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


def substeps(step_s: float) -> int:
    """Number of equal physics steps in a control period, each at most `step_s` long."""
    return max(1, int(np.ceil(CONTROL_PERIOD_S / step_s - 1e-9)))


def fixed_step_s(system: SlungLoadSystem, gravity_m_s2: float = 9.80665) -> float:
    """Step for an integrator that never refines it: it must hold a cable that is jerked taut [s].

    A whole part of the control period, so that sensors of 250 Hz keep their rate.
    """
    return CONTROL_PERIOD_S / substeps(stable_step_s(system, gravity_m_s2, FIXED_STEP_MARGIN))


# ---------- Steps of each level of refinement and what they hold; level 0 is the ordinary step

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
        """Lay out the levels."""
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
            energy = MADE_ENERGY_J, PERIOD_LIFT_M * weight_n, weight_n
            self.limits.append(np.array([rate, period_s, *energy, *tension]))

    def settle(self, level: int) -> None:
        """Choose the level to begin the next period with: coarser only after a calm while."""
        self._calm = self._calm + 1 if level <= self.present else 0
        self.present = max(level, self.present)
        if self._calm >= CALM_PERIODS:
            self._calm = 0
            self.present = max(self.present - 1, 0)
