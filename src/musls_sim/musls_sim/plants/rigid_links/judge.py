"""Whether a physics step was too long for what happened in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.tree import Tree
from musls_sim.plants.bodies import OMEGA, POSITION, VELOCITY
from musls_sim.plants.rigid_links.kinematics import (
    MOTION_COLUMNS,
    body_motion,
)

Array = NDArray[np.float64]

OK, TOO_COARSE, RUNAWAY, JERK = 0, 1, 2, 3

JERK_RAD_S = 1.0
"""Change of a joint's rate (or of the load's velocity, m/s) in one step that calls for a look at
the energy. In calm flight steps of 4 ms change rates by some 0.1 rad/s."""

MADE_ENERGY_J = 0.05
"""Energy that a step may make from nothing. Flights make less than 3 mJ in 999 of 1000 steps; the
load's touch-down, resolved too coarsely, flings a drone with some joules."""


@compiled()
def judge_step(peak, tension_limit, rates, before, rate_limit, speed_limit):
    """Whether a step was too long for the tension or the joint rates it met, or ran away.

    Args:
        peak: Largest tension of each cable, (n,) [N].
        tension_limit: Largest tension that the step holds, per cable, (n,) [N].
        rates: Rates of all coordinates, the load's six first, (n_dofs,).
        before: The same before the step.
        rate_limit: Largest joint rate for the step [rad/s].
        speed_limit: Speed of the load beyond which nothing is physical; joint rates count as
            running away at twenty times as many rad/s [m/s].

    Returns:
        OK, TOO_COARSE, RUNAWAY (also for anything that is not finite) or JERK: its energy tells.
    """
    verdict = OK
    for k in range(rates.shape[0]):
        rate = np.abs(rates[k])
        if not rate <= (speed_limit if k < 6 else 20.0 * speed_limit):
            return RUNAWAY
        if k >= 6 and rate > rate_limit:
            verdict = TOO_COARSE
        elif verdict == OK and np.abs(rates[k] - before[k]) > JERK_RAD_S:
            verdict = JERK
    for i in range(peak.shape[0]):
        if not np.isfinite(peak[i]):
            return RUNAWAY
        if peak[i] > tension_limit[i]:
            verdict = TOO_COARSE
    return verdict


@compiled()
def mechanical_energy(motion, mass, com, inertia, gravity):
    """Kinetic energy and that of weight [J].

    Args:
        motion: From `body_motion`, (n_bodies, 27).
        mass: Masses [kg], (n_bodies,).
        com: Centres of mass in the bodies' frames [m], (n_bodies, 3).
        inertia: About the centres of mass, bodies' frames [kg m2], (n_bodies, 3, 3).
        gravity: Gravity [m/s2].
    """
    energy = 0.0
    for k in range(motion.shape[0]):
        rotation = motion[k, :9].copy().reshape(3, 3)
        arm, omega = rotation @ com[k], motion[k, OMEGA : OMEGA + 3]
        velocity = motion[k, VELOCITY : VELOCITY + 3] + np.cross(omega, arm)
        turning = rotation.T @ omega
        energy += 0.5 * mass[k] * (velocity @ velocity) + 0.5 * (turning @ (inertia[k] @ turning))
        energy += mass[k] * gravity * (motion[k, POSITION + 2] + arm[2])
    return energy


class EnergyCheck:
    """Energy that a step makes from nothing: joints, stops, contacts and air only take it."""

    def __init__(self, tree: Tree, gravity_m_s2: float, tables: tuple[Array, Array, Array]) -> None:
        """Lay out the tables.

        Args:
            tree: The bodies.
            gravity_m_s2: Gravity.
            tables: Parents, first coordinates and joints as `body_motion` takes them.
        """
        self._tables = tables
        bodies = tree.bodies
        self._bodies = (
            np.array([body.mass_kg for body in bodies]),
            np.ascontiguousarray([body.com_m for body in bodies]),
            np.ascontiguousarray([body.inertia_kg_m2 for body in bodies]),
            gravity_m_s2,
        )
        self._before = np.zeros((len(bodies), MOTION_COLUMNS))

    def made_j(
        self,
        before: tuple[Array, Array],
        motion: Array,
        velocities: Array,
        tau: Array,
        step_s: float,
    ) -> float:
        """What the energy grew by beyond the work of the applied forces [J].

        Args:
            before: Coordinates and rates before the step, (n_dofs,) each.
            motion: Motion of all bodies after it.
            velocities: Rates after it.
            tau: Generalised forces applied in it, weight not among them.
            step_s: Its length.
        """
        body_motion(*before, *self._tables, self._before)
        gain = mechanical_energy(motion, *self._bodies)
        gain -= mechanical_energy(self._before, *self._bodies)
        return gain - 0.5 * step_s * float(tau @ (before[1] + velocities))
