"""Drones moved along prescribed paths: the cables and the load alone are free.

In every step the wrenches on the drones are found that bring each drone to its prescribed pose at
the end of the step. DART's step is linear in them,

    v+ = v_free + dt A^-1 J^T lambda,   A = M + dt D + dt^2 K,

and J v+ = v_wanted is one linear system of 6 equations a drone. The pose, not the velocity, is
prescribed: the coordinates after the step are computed from v+, what is missing to the pose is
added to v_wanted, and the system is solved again until nothing is missing (SHAKE; Ryckaert,
Ciccotti and Berendsen, J. Comput. Phys. 23, 1977). The wrenches are the reaction of the motion:
force, moment and power that a drone (or a hand) would need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from musls_sim.plants.energy import EnergyAudit
from musls_sim.plants.interface import PlantInputs, Pose
from musls_sim.plants.rigid_links.cable_ends import end_jacobians, end_wrenches
from musls_sim.plants.rigid_links.forces import generalised_forces
from musls_sim.plants.rigid_links.inertia import joint_space_inertia, parent_coordinates, quadratic
from musls_sim.plants.rigid_links.tables import ENERGY

if TYPE_CHECKING:
    from musls_sim.plants.rigid_links.dart_plant import DartPlant

Array = NDArray[np.float64]

ENERGY_SHARE = 0.01
ENERGY_FLOOR_J = 0.002
"""Work of a control period that may be unaccounted for: a share of the work and a little more. A
period with more is repeated with finer steps."""


@dataclass(frozen=True)
class _Step:
    """What acted in a step, as generalised forces, all (n_dofs,).

    Attributes:
        length_s: Length of the step.
        driving: Of the drones' wrenches and the wrenches put in.
        passive: Of air and soft ground.
        damping: Joint damping.
        before: Velocities at the beginning.
        expected: Velocities at the end, if nothing touches the ground.
        inertia: A, (n_dofs, n_dofs).
    """

    length_s: float
    driving: Array
    passive: Array
    damping: Array
    before: Array
    expected: Array
    inertia: Array

    def add_to(self, audit: EnergyAudit, then: Array) -> None:
        """Add work and losses of the step, given the velocities after it.

        All forces work along the mean of the velocities before and after, which for the kinetic
        energy is exact; the impulse of contacts is what changed the expected velocities.
        """
        mean = (self.before + then) / 2.0
        work = self.length_s * float(self.driving @ mean)
        audit.work_j += work
        audit.absolute_work_j += abs(work)
        audit.loss_j += self.length_s * float(self.damping @ then**2 - self.passive @ mean)
        audit.loss_j -= quadratic(mean, self.inertia, then - self.expected)


class PrescribedEnds:
    """Moves the drones of a plant along a path whatever it takes, and keeps the plant's reaction.

    Attributes:
        end_wrench: What moved each drone in the last step: moment about its centre, force, world,
            (n, 6).
    """

    def __init__(self, plant: DartPlant) -> None:
        """Begin with the plant as it is."""
        self._plant = plant
        n, dofs = plant.system.n_drones, plant.tree.n_coordinates
        self._jacobian = np.zeros((6 * n, dofs))
        self._parent_coordinate = parent_coordinates(plant.tree)
        self._mass = np.array([[drone.mass_kg] for drone in plant.system.drones])
        self._gravity = np.array([0.0, 0.0, plant.gravity_m_s2])
        self._nothing = np.zeros((1 + n, 6))
        self.end_wrench = np.zeros((n, 6))
        audit = plant.reaction.audit
        audit.start_j += self._energy() - audit.energy_j
        audit.energy_j = self._energy()
        self._noted: list[_Step] = []

    def act(self, inputs: PlantInputs, elapsed_s: float, step_s: float) -> None:
        """Add what brings the drones to their poses at the end of a step to the plant's forces.

        Args:
            inputs: With the motion.
            elapsed_s: Time since the beginning of the period.
            step_s: Length of the step.
        """
        plant, motion = self._plant, inputs.motion
        assert motion is not None
        if elapsed_s == 0.0:
            self._noted.clear()  # the period may be repeated with finer steps
        tau, begin = plant.tables.tau, plant.time_s + elapsed_s
        passive, given = tau, 0.0
        if inputs.wrench_body.any() or inputs.wrench_enu.any():
            everything, wrench = tau.copy(), plant.tables.wrench.copy()
            calm = inputs.wind_enu_m_s, self._nothing, self._nothing, plant.ground_enu_m
            generalised_forces(plant.tables, *calm)
            passive = tau.copy()
            given = everything - passive
            tau[:], plant.tables.wrench[:] = everything, wrench
        passive = passive.copy()
        guiding = np.zeros(6) if motion.load_wrench is None else motion.load_wrench(begin)
        tau[:6] += guiding
        step = self._react(motion.pose(begin + step_s), step_s, passive)
        step.driving[:6] += guiding
        step.driving[:] += given
        self._noted.append(step)

    def balanced(self, level: int) -> bool:
        """Whether the work of the period is accounted for; enters it into the audit if so."""
        plant, audit = self._plant, self._plant.reaction.audit
        period = EnergyAudit(start_j=audit.energy_j, energy_j=self._energy())
        after = [step.before for step in self._noted[1:]] + [plant.velocities]
        for step, then in zip(self._noted, after, strict=True):
            step.add_to(period, then)
        allowed = ENERGY_FLOOR_J + ENERGY_SHARE * period.absolute_work_j
        if level < plant.levels.last and abs(period.missing_j) > allowed:
            return False
        audit.add(period)
        return True

    def note_force(self) -> None:
        """Write the force that moves the cables' ends, once the state of the period is known."""
        plant = self._plant
        acceleration = plant.state.acceleration_enu_m_s2[1:] + self._gravity
        plant.reaction.end_force_n[:] = self.end_wrench[:, 3:] - self._mass * acceleration

    def _react(self, pose: Pose, step_s: float, passive: Array) -> _Step:
        """Add the wrenches that bring the drones to a pose to the plant's forces."""
        plant, parent = self._plant, self._parent_coordinate
        skeleton, tree, t = plant.skeleton, plant.tree, plant.tables
        skeleton.setCommands(t.tau)
        skeleton.computeForwardDynamics()
        free = plant.velocities + step_s * skeleton.getAccelerations()
        damping = t.damping.copy()
        table = t.motion, t.parents, t.first, t.joints, t.masses
        implicit = step_s * (damping + step_s * t.stiffness)
        inertia = joint_space_inertia(*table, parent, implicit)
        end_jacobians(t.motion, t.first, t.joints, tree.first_link, tree.drone, self._jacobian)
        then, generalised = end_wrenches(
            inertia,
            parent,
            self._jacobian,
            plant.positions,
            free,
            tree.drone,
            table,
            pose,
            step_s,
            self.end_wrench,
        )
        t.tau[:] += generalised
        # The tension is what the joints transmit less the outside forces beyond them.
        t.wrench[tree.drone, :3] += self.end_wrench[:, 3:]
        t.wrench[tree.first_link, :3] += self.end_wrench[:, 3:]
        return _Step(step_s, generalised, passive, damping, plant.velocities, then, inertia)

    def _energy(self) -> float:
        return float(self._plant.tables.ledger[ENERGY])
