"""The plant with the drones moved along prescribed paths: the cables and the load alone.

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from musls_description.system import SlungLoadSystem
from musls_sim.plants.bodies import OMEGA, VELOCITY
from musls_sim.plants.energy import EnergyAudit
from musls_sim.plants.rigid_links.cable_ends import end_jacobians, end_wrenches, velocity_to_pose
from musls_sim.plants.rigid_links.dart_plant import DartPlant
from musls_sim.plants.rigid_links.inertia import (
    joint_space_inertia,
    mass_table,
    parent_coordinates,
    quadratic,
)
from musls_sim.plants.rigid_links.joint_stops import STIFFNESS_N_M_RAD

Array = NDArray[np.float64]
Pose = tuple[Array, Array]
"""Positions (n, 3) [m, ENU] and quaternions (n, 4) [w, x, y, z] of all drones."""

DronePath = Callable[[float], Pose]
"""Pose of all drones at a time [s]."""

LoadGuide = Callable[[float], Array]
"""Time [s] to a wrench on the load: moment about its centre, force, world, (6,)."""


class DrivenPlant(Protocol):
    """Load and cables whose upper ends are moved; what a replay needs of any cable model."""

    system: SlungLoadSystem
    audit: EnergyAudit
    time_s: float
    period_s: float
    load_motion: Array
    tension_n: Array
    end_force_n: Array
    end_velocity_enu_m_s: Array

    def follow(self, path: DronePath, guide: LoadGuide | None = None) -> None:
        """Advance one control period along a path."""

    def pose_miss(self, pose: Pose) -> tuple[float, float]:
        """Largest distance [m] and angle [rad] of a drone from a pose."""


STILL_AIR = np.zeros(3)

ENERGY_SHARE = 0.01
ENERGY_FLOOR_J = 0.002
"""Work of a control period that may be unaccounted for: a share of the work and a little more. A
period with more is repeated with finer steps."""


@dataclass(frozen=True)
class _Step:
    """What acted in a step, as generalised forces, all (n_dofs,).

    Attributes:
        length_s: Length of the step.
        driving: Of the drones' wrenches and the load guide.
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


class PrescribedPlant(DartPlant):
    """A `DartPlant` whose drones follow a path whatever it takes.

    Attributes:
        end_wrench: What moved each drone in the last step: moment about its centre, force, world,
            (n, 6).
        audit: Energy balance so far.
    """

    def __init__(self, *args: object, **options: object) -> None:
        """See `DartPlant`."""
        super().__init__(*args, **options)
        n, dofs = self.system.n_drones, self.tree.n_coordinates
        self._jacobian = np.zeros((6 * n, dofs))
        self._parent_coordinate = parent_coordinates(self.tree)
        self._masses = mass_table(self.tree)
        self._at_rest = np.zeros_like(self.state.rotor_speed_rad_s)
        self._own_damping = self._per_coordinate("damping_n_m_s_rad")
        self._own_stiffness = self._per_coordinate("stiffness_n_m_rad")
        self.end_wrench = np.zeros((n, 6))
        self.audit = EnergyAudit()
        self.audit.start_j = self.audit.energy_j = self._energy()
        self._period = EnergyAudit()
        self._noted: list[_Step] = []

    @property
    def tension_n(self) -> Array:
        """Tension of each cable at the load and at the drone, (n, 2)."""
        return self.state.tension_n

    @property
    def end_force_n(self) -> Array:
        """Force that moves each cable's end, the mean over a period, world, (n, 3)."""
        drones, state = self.system.drones, self.state
        mass = np.array([[drone.mass_kg] for drone in drones])
        gravity = np.array([0.0, 0.0, self.gravity_m_s2])
        return self.end_wrench[:, 3:] - mass * (state.acceleration_enu_m_s2[1:] + gravity)

    @property
    def end_velocity_enu_m_s(self) -> Array:
        """Velocity of each cable's end, world, (n, 3)."""
        velocity = np.empty((self.system.n_drones, 3))
        for i, (k, drone) in enumerate(zip(self.tree.drone, self.system.drones, strict=True)):
            m = self._motion[k]
            arm = m[:9].reshape(3, 3) @ drone.cable_attachment_m
            velocity[i] = m[VELOCITY : VELOCITY + 3] + np.cross(m[OMEGA : OMEGA + 3], arm)
        return velocity

    def pose_miss(self, pose: Pose) -> tuple[float, float]:
        """Largest distance [m] and angle [rad] of a drone from a pose."""
        miss = np.empty(6 * self.system.n_drones)
        velocity_to_pose(self._motion, self.tree.drone, *pose, 1.0, miss)
        turn, distance = np.linalg.norm(miss.reshape(-1, 2, 3), axis=2).max(axis=0)
        return float(distance), float(turn)

    @property
    def load_motion(self) -> Array:
        """Rotation (row by row), position, angular velocity and velocity of the load, (18,)."""
        return self._motion[0, :18]

    def _per_coordinate(self, field: str) -> Array:
        """A value of the bodies' joints for each coordinate, (n_dofs,)."""
        values = [np.full(len(b.axes), getattr(b, field)) for b in self.tree.bodies]
        return np.concatenate([np.zeros(6), *values])

    def _joint_damping(self) -> Array:
        """Damping that DART has in this step, friction and stops included, (n_dofs,)."""
        damping = self._own_damping.copy()
        if self._friction is None:
            damping[6:] += self._stops.extra_damping
        else:
            damping[6:] = self._friction.damping_n_m_s_rad
        return damping

    def _joint_stiffness(self) -> Array:
        """Springs that DART has in this step, stops included, (n_dofs,)."""
        stiffness = self._own_stiffness.copy()
        stiffness[6:][self._stops.extra_damping > 0.0] = STIFFNESS_N_M_RAD
        return stiffness

    def follow(self, path: DronePath, guide: LoadGuide | None = None) -> None:
        """Advance one control period along a path.

        Args:
            path: Where the drones are to be.
            guide: Additional wrench on the load, None for none.
        """
        begin = self.time_s

        def act(step_s: float, elapsed_s: float) -> None:
            if elapsed_s == 0.0:
                self._noted.clear()  # the period may be repeated with finer steps
            self._apply_forces(step_s, self._at_rest, STILL_AIR)
            passive = self._tau.copy()
            guiding = np.zeros(6) if guide is None else guide(begin + elapsed_s)
            self._tau[:6] += guiding
            self._noted.append(self._reaction(path(begin + elapsed_s + step_s), step_s, passive))
            self._noted[-1].driving[:6] += guiding
            self.skeleton.setCommands(self._tau)

        self._step(act)
        self.audit.add(self._period)

    def _advance(self, level: int, act: Callable[[float, float], None]) -> bool:
        """Advance one period; False also if the step is too coarse for the energy balance."""
        if not super()._advance(level, act):
            return False
        period = EnergyAudit(start_j=self.audit.energy_j, energy_j=self._energy())
        after = [step.before for step in self._noted[1:]] + [self._velocities]
        for step, then in zip(self._noted, after, strict=True):
            step.add_to(period, then)
        self._period = period
        allowed = ENERGY_FLOOR_J + ENERGY_SHARE * period.absolute_work_j
        return level == self._levels.last or abs(period.missing_j) <= allowed

    def _reaction(self, pose: Pose, step_s: float, passive: Array) -> _Step:
        """Add the wrenches that bring the drones to a pose to `_tau`.

        Args:
            pose: Prescribed at the end of the step.
            step_s: Length of the step.
            passive: Generalised force of air and soft ground, for the audit.
        """
        skeleton, tree = self.skeleton, self.tree
        skeleton.setCommands(self._tau)
        skeleton.computeForwardDynamics()
        free = self._velocities + step_s * skeleton.getAccelerations()
        damping = self._joint_damping()
        table = self._motion, self._parents, self._first, self._joints, self._masses
        parent = self._parent_coordinate
        implicit = step_s * (damping + step_s * self._joint_stiffness())
        inertia = joint_space_inertia(*table, parent, implicit)
        end_jacobians(*table[:1], *table[2:4], tree.first_link, tree.drone, self._jacobian)
        then, generalised = end_wrenches(
            inertia,
            parent,
            self._jacobian,
            self._positions,
            free,
            tree.drone,
            table,
            pose,
            step_s,
            self.end_wrench,
        )
        self._tau += generalised
        # The tension is what the joints transmit less the outside forces beyond them.
        self._wrench[tree.drone, :3] += self.end_wrench[:, 3:]
        self._wrench[tree.first_link, :3] += self.end_wrench[:, 3:]
        return _Step(step_s, generalised, passive, damping, self._velocities, then, inertia)

    def _energy(self) -> float:
        return self.skeleton.computeKineticEnergy() + self.skeleton.computePotentialEnergy()
