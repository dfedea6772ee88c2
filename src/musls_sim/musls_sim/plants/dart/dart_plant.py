"""Simulation of the same mechanism by DART from ground to ground: `physics.engine: dart`.

DART steps the tree as Gazebo's plugin for it does, semi-implicit Euler with hard contacts, so this
engine is the yardstick beside Gazebo and the oracle of tests. Joints' damping and springs are
integrated implicitly; thrust, drag and the ground under the cables enter as generalised forces.
"""

from __future__ import annotations

import warnings
from typing import Any

import dartpy
import numpy as np
from dartpy.dynamics import Skeleton

from musls_description.config.errors import ConfigError
from musls_description.hanging.tree import STOP_RAD, Configuration, Tree
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.layout import Tables
from musls_description.numerics.records import record_at
from musls_description.numerics.vectors import add, cross, dot, increase, put, sub
from musls_description.system.slung_system import SlungLoadSystem
from musls_sim.plants.dart.skeleton import add_contact, build_skeleton, build_world
from musls_sim.plants.interface import (
    SPEED_LIMIT_M_S,
    LoadMass,
    LocalState,
    Plant,
    PlantInputs,
    RotorEfficiency,
    SimulationDiverged,
)
from musls_sim.plants.rigid_body import add_soft_ground, clear, fastest_body, spin_rotors
from musls_sim.plants.rigid_links.articulated import (
    STICK_RATE_RAD_S,
    STOP_DAMPING_N_M_S_RAD,
    STOP_STIFFNESS_N_M_RAD,
)
from musls_sim.plants.rigid_links.integrator import add_outside
from musls_sim.plants.rigid_links.mechanism import (
    SYSTEM,
    bodies_of,
    change_of,
    coordinates_of,
    move_bodies,
    own_command_of,
    place_bodies,
    rotors_of,
    set_positions,
    solids_of,
    speed_of,
)
from musls_sim.plants.rigid_links.period import collect, keep_inputs
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.plants.rigid_links.step_control import stable_step_s

# ---------- Forces from outside, as generalised forces


@compiled()
def outside(address, h):
    """Spin the rotors and sum wrenches into generalised forces, which are left in `change`.

    The wrench of each body then holds those of all beyond it, about its origin.
    """
    t = record_at(address, SYSTEM)
    spin_rotors(speed_of(t), own_command_of(t), rotors_of(t), h)
    bodies = bodies_of(t)
    rows = coordinates_of(t)
    force = change_of(t)
    for k in range(bodies.shape[0]):
        clear(bodies[k].wrench)
        if bodies[k].lies > 0.0 and bodies[k].position[2] < t.soft_below:
            add_soft_ground(bodies[k], solids_of(t), bodies[k].lies, bodies[k].wrench)
    finite = add_outside(t)
    for k in range(bodies.shape[0] - 1, -1, -1):
        body = bodies[k]
        i = bodies[k].first
        wrench = body.wrench
        if body.parent < 0:
            put(force[i : i + 3], wrench.moment)
            put(force[i + 3 : i + 6], wrench.force)
            continue
        moment = add(wrench.moment, cross(sub(body.position, body.joint), wrench.force))
        for d in range(i, i + body.freedom):
            force[d] = dot(rows[d].axis, moment)
        up = bodies[body.parent]
        increase(up.wrench.force, wrench.force)
        arm = sub(body.joint, up.position)
        increase(up.wrench.moment, add(moment, cross(arm, wrench.force)))
    return finite


# ---------- The plant


class DartPlant(RigidLinksPlant):
    """Rigid links stepped by DART's world, see `interface.Plant`."""

    changes = (RotorEfficiency, LoadMass)
    bends_evenly = False  # DART has universal joints

    def __init__(
        self,
        system: SlungLoadSystem,
        start: Configuration,
        *,
        exact_friction: bool = False,
        **options: Any,
    ) -> None:
        """Build the skeleton in its start configuration, at rest; options as of `RigidLinksPlant`.

        With `exact_friction` DART solves joint friction as constraints, else it is regularised. By
        default the time step is the largest that should be stable, up to the control period.
        """
        limit = stable_step_s(system, options.get("gravity_m_s2", STANDARD_GRAVITY_M_S2))
        step_s = options.pop("physics_step_s", None) or limit
        if step_s > limit * (1.0 + 1e-9):
            warnings.warn(
                f"physics step {step_s:g} s is larger than the largest stable step {limit:.2g} s "
                "estimated for these cables; the run may diverge (physics.step_size_s: auto "
                "chooses a stable one)",
                stacklevel=2,
            )
        super().__init__(system, start, refine=False, physics_step_s=step_s, **options)
        tree = self.tree
        self.skeleton = build_skeleton(tree, friction_as_constraint=exact_friction)
        self.world = build_world(self.skeleton, self.physics_step_s, self.gravity_m_s2)
        surfaces = self.records.solids
        if len(surfaces):
            add_contact(self.world, self.skeleton, tree, system, surfaces)
        self._joints = JointForces(
            self.skeleton, tree, self.records, regularised=not exact_friction
        )
        nodes = self.skeleton.getBodyNode
        self._ends = [
            [nodes(int(body)) for body in ends]
            for ends in zip(tree.first_link, tree.drone, strict=True)
        ]
        self.skeleton.setPositions(start.coordinates)

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`; no prescribed motion."""
        if inputs.motion is not None:
            raise ConfigError(
                "physics.engine = dart: drones cannot be moved along a recording in DART; "
                "choose physics.engine: embedded"
            )
        system = self.records.system[0]
        command = inputs.rotor_command_rad_s
        wind = inputs.wind_enu_m_s
        keep_inputs(system, (command, wind, inputs.wrench_body, inputs.wrench_enu))
        self.records.peak[:] = 0.0
        self.skeleton.setVelocities(self.records.rate)  # of a start in motion
        for _ in range(self.substeps):
            self._joints.apply(self.skeleton.getPositions(), self.skeleton.getVelocities())
            if not outside(self.address, self.physics_step_s):
                raise SimulationDiverged(
                    f"forces are not finite at {self.time_s:.3f} s: check rotor commands and wind"
                )
            self.skeleton.setCommands(self.records.change)
            self.world.step()
            self._note_cable_forces()
            self._read()
        body, speed = fastest_body(self.records.bodies)
        if not speed < SPEED_LIMIT_M_S:
            raise SimulationDiverged(
                f"simulation diverged at {self.time_s:.3f} s: {self.tree.bodies[body].name} moves "
                f"at {speed:.3g} m/s; choose a smaller physics.step_size_s "
                f"(now {self.physics_step_s:g} s)"
            )
        collect(system, self.period_s)
        self._periods += 1

    def parts_at_n(self, cable: int) -> float | None:
        """Tension at which a cable parts: none does in DART."""
        return None

    def _read(self) -> None:
        """Take DART's coordinates and rates over."""
        set_positions(self.records, self.skeleton.getPositions())
        self.records.rate[:] = self.skeleton.getVelocities()
        address = self.records.system.ctypes.data
        place_bodies(address)
        move_bodies(address, False)

    def _note_cable_forces(self) -> None:
        """Forces at the ends of the cables, from those that DART's joints transmit.

        DART sees the outside forces as torques in the joints, so what it reports as transmitted by
        a joint still holds the outside force on everything beyond: it is taken off here.
        """
        records = self.records
        for i, ends in enumerate(self._ends):
            for end, node in enumerate(ends):
                body = records.bodies[node.getIndexInSkeleton()]
                force = body["rotation"] @ node.getBodyForce()[3:] - body["wrench"]["force"]
                link = records.bodies[self.tree.drone[i] - 1] if end else body
                records.force[i, end] = -link["rotation"].T @ force
            records.peak[i] = max(records.peak[i], *records.force[i, :, 0])

    def local_state(self) -> LocalState:
        """Not here: the step is DART's, see `interface.Plant`."""
        return Plant.local_state(self)

    def _change_load(self, mass_kg: float) -> None:
        super()._change_load(mass_kg)
        row = self.records.bodies[0]
        inertia = dartpy.dynamics.Inertia(row["mass"], row["com"], row["inertia"])
        self.skeleton.getBodyNode(0).setInertia(inertia)


class JointForces:
    """Friction and stops of the joints as DART takes them: damping and springs, implicit."""

    def __init__(
        self, skeleton: Skeleton, tree: Tree, records: Tables, *, regularised: bool
    ) -> None:
        """Find the joints; none is at its stop yet."""
        rows = records.coordinates[6:]
        self._second = rows["second"] != 0
        self._friction = rows["friction"] if regularised else 0.0 * rows["friction"]
        self._damping = rows["damping"]
        self._stiffness = rows["stiffness"]
        self._axes = [
            (skeleton.getJoint(k), axis)
            for k, body in enumerate(tree.bodies[1:], 1)
            for axis in range(body.freedom)
        ]
        self._last_gains = np.array([self._damping, self._stiffness, 0.0 * self._damping])

    def apply(self, positions: Array, velocities: Array) -> None:
        """Set springs and damping for the coming step from coordinates and rates, (n_dofs,)."""
        angle = positions[6:]
        rate = velocities[6:]
        stop = np.where(self._second & (np.abs(angle) > STOP_RAD), np.sign(angle), 0.0)
        damping = self._damping + np.abs(stop) * STOP_DAMPING_N_M_S_RAD
        damping = damping + self._friction / np.sqrt(rate**2 + STICK_RATE_RAD_S**2)
        stop_stiffness = np.abs(stop) * STOP_STIFFNESS_N_M_RAD
        stiffness = self._stiffness + stop_stiffness
        rest = stop_stiffness * stop * STOP_RAD / np.maximum(stiffness, 1e-12)
        now = np.array([damping, stiffness, rest])
        for c in np.flatnonzero((now != self._last_gains).any(axis=0)).tolist():
            joint, axis = self._axes[c]
            joint.setDampingCoefficient(axis, damping[c])
            joint.setRestPosition(axis, rest[c])
            joint.setSpringStiffness(axis, stiffness[c])
        self._last_gains = now
