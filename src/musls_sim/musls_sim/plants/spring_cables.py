"""The classical cable model: a massless spring and damper that can only pull.

The load is one rigid body below prescribed cable ends. Each cable pulls along the straight line
from the load's attachment to its end with max(0, k (d - l) + c d'), d the distance and l the
cable's length. For comparison with the chain of rigid links: what shape, mass and bending of the
cables contribute is what the two differ by. Semi-implicit Euler like DART.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_description.system import SlungLoadSystem
from musls_sim.physics import CONTROL_PERIOD_S
from musls_sim.plants.energy import EnergyAudit
from musls_sim.plants.rigid_links.prescribed import DronePath, LoadGuide, Pose
from musls_sim.plants.rigid_links.stability import substeps

Array = NDArray[np.float64]

STATIC_STRETCH = 0.001
"""Stretch of a cable under its static share of the load, sets k: as stiff as 1 mm a metre."""

DAMPING_RATIO = 0.1
"""Of the load bobbing on all cables, sets c."""

LONGEST_STEP_S = 0.001


class SpringCablePlant:
    """A rigid load on massless springs, see `prescribed.DrivenPlant`."""

    def __init__(
        self,
        system: SlungLoadSystem,
        load_position_enu_m: Array,
        load_rotation: Array,
        pose: Pose,
        *,
        physics_step_s: float,
        gravity_m_s2: float,
    ) -> None:
        """Put the load at rest.

        Args:
            system: Of the cables only the lengths count.
            load_position_enu_m: (3,).
            load_rotation: Load frame to world, (3, 3).
            pose: Of the drones at time 0.
            physics_step_s: Time step, at most `LONGEST_STEP_S` is taken.
            gravity_m_s2: Gravity.
        """
        self.system, self.period_s = system, CONTROL_PERIOD_S
        self._substeps = substeps(min(physics_step_s, LONGEST_STEP_S))
        self._gravity = np.array([0.0, 0.0, -gravity_m_s2])
        load, n = system.load, system.n_drones
        self._inertia = np.array(load.inertia_kg_m2)
        self._anchors = np.array(load.cable_attachments_m)
        self._hooks = np.array([drone.cable_attachment_m for drone in system.drones])
        self._length = np.array([cable.length_m for cable in system.cables])
        share = load.mass_kg * gravity_m_s2 / n
        self._stiffness = share / (STATIC_STRETCH * self._length)
        bobbing = np.sqrt(self._stiffness.sum() / load.mass_kg)
        self._damping = 2.0 * DAMPING_RATIO * load.mass_kg * bobbing / n
        self.load_motion = np.zeros(18)
        self.load_motion[:9] = np.ravel(load_rotation)
        self.load_motion[9:12] = load_position_enu_m
        self._ends = self._ends_at(pose)
        self.end_velocity_enu_m_s = np.zeros((n, 3))
        self.end_force_n = np.zeros((n, 3))
        self.tension_n = np.zeros((n, 2))
        self.time_s = 0.0
        self._periods = 0
        self.audit = EnergyAudit()
        self.audit.start_j = self.audit.energy_j = self._energy()

    def follow(self, path: DronePath, guide: LoadGuide | None = None) -> None:
        """Advance one control period, see `prescribed.PrescribedPlant.follow`."""
        step_s = self.period_s / self._substeps
        for k in range(1, self._substeps + 1):
            push = np.zeros(6) if guide is None else guide(self.time_s)
            self.time_s = self._periods * self.period_s + k * step_s
            self._step(self._ends_at(path(self.time_s)), push, step_s)
        self._periods += 1
        self.audit.energy_j = self._energy()

    def pose_miss(self, pose: Pose) -> tuple[float, float]:
        """Nothing is missed: the ends are moved, not pulled."""
        return 0.0, 0.0

    def _step(self, ends: Array, push: Array, step_s: float) -> None:
        m = self.load_motion
        rotation, omega, velocity = m[:9].reshape(3, 3), m[12:15].copy(), m[15:18].copy()
        arms = self._anchors @ rotation.T
        along = self._ends - (m[9:12] + arms)
        distance = np.linalg.norm(along, axis=1)
        along /= distance[:, None]
        self.end_velocity_enu_m_s = (ends - self._ends) / step_s
        rate = np.sum(
            along * (self.end_velocity_enu_m_s - velocity - np.cross(omega, arms)), axis=1
        )
        spring = self._stiffness * np.maximum(distance - self._length, 0.0)
        tension = np.where(spring > 0.0, np.maximum(spring + self._damping * rate, 0.0), 0.0)
        pull = tension[:, None] * along
        inertia = rotation @ self._inertia @ rotation.T
        load = self.system.load
        drag = -(rotation @ (np.array(load.drag_n_s_m) * (rotation.T @ velocity)))
        moment = np.cross(arms, pull).sum(axis=0) + push[:3]
        omega_then = omega + step_s * np.linalg.solve(
            inertia, moment - np.cross(omega, inertia @ omega)
        )
        force = pull.sum(axis=0) + push[3:] + drag
        velocity_then = velocity + step_s * (force / load.mass_kg + self._gravity)
        turn = Rotation.from_rotvec(step_s * omega_then).as_matrix()
        m[:9] = (turn @ rotation).ravel()
        m[9:12] += step_s * velocity_then
        m[12:15], m[15:18] = omega_then, velocity_then
        self._ends, self.end_force_n = ends, pull
        self.tension_n[:] = tension[:, None]
        mean_omega, mean_velocity = (omega + omega_then) / 2.0, (velocity + velocity_then) / 2.0
        work = np.sum(pull * self.end_velocity_enu_m_s) + push @ [*mean_omega, *mean_velocity]
        self.audit.work_j += step_s * work
        self.audit.absolute_work_j += step_s * abs(work)
        loss = np.sum((tension - spring) * rate) - drag @ mean_velocity
        self.audit.loss_j += step_s * loss

    def _ends_at(self, pose: Pose) -> Array:
        rotation = Rotation.from_quat(pose[1], scalar_first=True)
        return pose[0] + rotation.apply(self._hooks)

    def _energy(self) -> float:
        """Kinetic, potential and elastic energy [J]."""
        m, load = self.load_motion, self.system.load
        rotation = m[:9].reshape(3, 3)
        omega = rotation.T @ m[12:15]
        distance = np.linalg.norm(self._ends - (m[9:12] + self._anchors @ rotation.T), axis=1)
        stretch = np.maximum(distance - self._length, 0.0)
        kinetic = load.mass_kg * m[15:18] @ m[15:18] + omega @ self._inertia @ omega
        elastic = self._stiffness @ stretch**2
        return float(0.5 * (kinetic + elastic) - load.mass_kg * self._gravity @ m[9:12])
