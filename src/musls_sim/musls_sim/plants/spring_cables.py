"""The classical cable model: a massless spring and damper that can only pull.

The load is one rigid body below prescribed cable ends. Each cable pulls along the straight line
from the load's attachment to its end with max(0, k (d - l) + c d'), d the distance and l the
cable's length. For comparison with the chain of rigid links: what shape, mass and bending of the
cables contribute is what the two differ by. Semi-implicit Euler like DART.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import SlungLoadSystem
from musls_sim.plants.interface import (
    Plant,
    PlantInputs,
    PlantState,
    Pose,
)

STATIC_STRETCH = 0.001
"""Stretch of a cable under its static share of the load, sets k: as stiff as 1 mm a metre."""

DAMPING_RATIO = 0.1
"""Of the load bobbing on all cables, sets c."""

LONGEST_STEP_S = 0.001


class SpringCablePlant(Plant):
    """A rigid load on massless springs below prescribed drones, see `interface.Plant`."""

    system: SlungLoadSystem

    cable_model = "springs"
    spurious_energy_j = 0.0

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
        """Put the load at rest; its rotation is from load frame to world, (3, 3).

        Of the cables only the lengths count. `pose` is that of the drones at time 0. Of the time
        step at most `LONGEST_STEP_S` is taken.
        """
        super().__init__(system, min(physics_step_s, LONGEST_STEP_S), gravity_m_s2)
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
        self._position, self._turn = (
            np.array(load_position_enu_m),
            Rotation.from_matrix(load_rotation),
        )
        self._velocity, self._omega = np.zeros(3), np.zeros(3)  # world
        self._pose = pose
        self._ends = self._ends_at(pose)
        self.state = PlantState.zeros(system)
        self._write(pose, 0.0)
        self.reaction.audit.start_j = self.reaction.audit.energy_j = self._energy()

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`; the drones cannot fly."""
        if inputs.motion is None:
            raise ConfigError(
                f"the cable model '{self.cable_model}' only has prescribed drones; choose "
                "cable_model: rigid_links for drones that fly"
            )
        guide, begin = inputs.motion.load_wrench, self.time_s
        self.state.tension_peak_n[:] = 0.0
        pose = self._pose
        for k in range(self.substeps):
            push = (
                inputs.wrench_enu[0] + self._turn.apply(inputs.wrench_body[0].reshape(2, 3)).ravel()
            )
            if guide is not None:
                push += guide(begin + k * self.physics_step_s)
            pose = inputs.motion.pose(begin + (k + 1) * self.physics_step_s)
            self._step(self._ends_at(pose), push, inputs.wind_enu_m_s)
        self._periods += 1
        self._write(pose, self.period_s)
        self.reaction.audit.energy_j = self._energy()

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Both ends of a cable, (2, 3)."""
        low = self._position + self._turn.apply(self._anchors[index])
        return np.stack([low, self._ends[index]])

    def _write(self, pose: Pose, elapsed_s: float) -> None:
        """Write the state after a time since the last one, 0 at the start."""
        state, now = self.state, np.zeros_like(self.state.motion)
        now[0, :3], now[1:, :3] = self._position, pose[0]
        now[0, 6:10], now[1:, 6:10] = self._turn.as_quat(scalar_first=True), pose[1]
        flipped = np.sum(now[:, 6:10] * state.orientation_wxyz, axis=1) < 0.0
        now[flipped, 6:10] *= -1.0
        now[0, 3:6], now[0, 10:13] = self._velocity, self._turn.inv().apply(self._omega)
        if elapsed_s > 0.0:
            turns = Rotation.from_quat(pose[1], scalar_first=True)
            before = Rotation.from_quat(self._pose[1], scalar_first=True)
            now[1:, 3:6] = (pose[0] - self._pose[0]) / elapsed_s
            now[1:, 10:13] = (before.inv() * turns).as_rotvec() / elapsed_s
            now[:, 13:16] = (now[:, 3:6] - state.velocity_enu_m_s) / elapsed_s
        self._pose, state.motion[:] = pose, now

    def _step(self, ends: Array, push: Array, wind: Array) -> None:
        dt, load = self.physics_step_s, self.system.load
        turn, omega, velocity = self._turn, self._omega, self._velocity
        arms = turn.apply(self._anchors)
        along = self._ends - (self._position + arms)
        distance = np.linalg.norm(along, axis=1)
        along /= distance[:, None]
        end_velocity = (ends - self._ends) / dt
        rate = np.sum(along * (end_velocity - velocity - np.cross(omega, arms)), axis=1)
        spring = self._stiffness * np.maximum(distance - self._length, 0.0)
        tension = np.where(spring > 0.0, np.maximum(spring + self._damping * rate, 0.0), 0.0)
        pull = tension[:, None] * along
        rotation = turn.as_matrix()
        inertia = rotation @ self._inertia @ rotation.T
        drag = -rotation @ (load.drag_n_s_m * (rotation.T @ (velocity - wind)))
        moment = np.cross(arms, pull).sum(axis=0) + push[:3]
        spin = np.linalg.solve(inertia, moment - np.cross(omega, inertia @ omega))
        force = pull.sum(axis=0) + push[3:] + drag
        self._omega = omega + dt * spin
        self._velocity = velocity + dt * (force / load.mass_kg + self._gravity)
        self._turn = Rotation.from_rotvec(dt * self._omega) * turn
        self._position = self._position + dt * self._velocity
        self._ends = ends
        self.reaction.end_force_n[:] = pull
        self.state.cable_force_n[:, :, 0] = tension[:, None]
        np.maximum(self.state.tension_peak_n, tension, out=self.state.tension_peak_n)
        mean_omega, mean_velocity = (omega + self._omega) / 2.0, (velocity + self._velocity) / 2.0
        work = np.sum(pull * end_velocity) + push @ [*mean_omega, *mean_velocity]
        audit = self.reaction.audit
        audit.work_j += dt * work
        audit.absolute_work_j += dt * abs(work)
        audit.loss_j += dt * (np.sum((tension - spring) * rate) - drag @ mean_velocity)

    def _ends_at(self, pose: Pose) -> Array:
        rotation = Rotation.from_quat(pose[1], scalar_first=True)
        ends: Array = pose[0] + rotation.apply(self._hooks)
        return ends

    def _energy(self) -> float:
        """Kinetic, potential and elastic energy [J]."""
        mass, omega = self.system.load.mass_kg, self._turn.inv().apply(self._omega)
        reach = self._ends - self._position - self._turn.apply(self._anchors)
        stretch = np.maximum(np.linalg.norm(reach, axis=1) - self._length, 0.0)
        kinetic = mass * self._velocity @ self._velocity + omega @ self._inertia @ omega
        elastic = self._stiffness @ stretch**2
        return float(0.5 * (kinetic + elastic) - mass * self._gravity @ self._position)
