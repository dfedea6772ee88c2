"""The plant of the seed paper: rigid-link cables, stepped as DART steps them, in this process.

One tree of bodies, rooted at the load. The joints' damping and springs are integrated implicitly;
thrust, drag and the ground under the cables enter as generalised forces; load and drones touch the
ground by DART's contacts. Where nothing can touch, compiled code makes DART's step (`dynamics`) and
DART's skeleton stays behind until it is needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import dartpy
import numpy as np
from dartpy.dynamics import Skeleton
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.spawn import Configuration
from musls_description.system import SlungLoadSystem
from musls_description.tree import Tree, build_tree
from musls_sim.physics import CONTROL_PERIOD_S
from musls_sim.plants.bodies import collect_state
from musls_sim.plants.changes import (
    AttachHook,
    CutCable,
    LoadMass,
    ReleaseHook,
    RotorEfficiency,
    refusal,
    scale_rotors,
)
from musls_sim.plants.interface import (
    Change,
    PlantEvent,
    PlantInputs,
    PlantState,
    Reaction,
    SimulationDiverged,
)
from musls_sim.plants.rigid_links import divergence, parting
from musls_sim.plants.rigid_links.bare_step import bare_step_us
from musls_sim.plants.rigid_links.dart_skeleton import (
    add_ground_contact,
    build_skeleton,
    build_world,
)
from musls_sim.plants.rigid_links.forces import generalised_forces
from musls_sim.plants.rigid_links.joint_forces import JointForces
from musls_sim.plants.rigid_links.judge import DOUBTFUL, MADE_UP, OK, RUNAWAY, TOO_COARSE
from musls_sim.plants.rigid_links.levels import Levels
from musls_sim.plants.rigid_links.pieces import Pieces
from musls_sim.plants.rigid_links.prescribed import PrescribedEnds
from musls_sim.plants.rigid_links.stability import stable_step_s, substeps
from musls_sim.plants.rigid_links.step import (
    NOT_FINITE,
    TOUCHING,
    begin_step,
    end_step,
    restart,
    rewind,
)
from musls_sim.plants.rigid_links.tables import SPURIOUS, Tables
from musls_sim.plants.rigid_links.tension import cable_forces_from_joints

Array = NDArray[np.float64]


class _Calls(NamedTuple):
    """What a step asks of DART's skeleton; each look-up of a method costs time."""

    set_positions: Callable[[Array], None]
    set_velocities: Callable[[Array], None]
    set_commands: Callable[[Array], None]
    accelerate: Callable[[], None]
    integrate_velocities: Callable[[float], None]
    integrate_positions: Callable[[float], None]
    positions: Callable[[], Array]
    velocities: Callable[[], Array]

    @classmethod
    def into(cls, skeleton: Skeleton) -> _Calls:
        return cls(
            skeleton.setPositions,
            skeleton.setVelocities,
            skeleton.setCommands,
            skeleton.computeForwardDynamics,
            skeleton.integrateVelocities,
            skeleton.integratePositions,
            skeleton.getPositions,
            skeleton.getVelocities,
        )


class DartPlant:
    """Rigid-link chains in DART, see `interface.Plant`.

    Attributes:
        tables: All arrays of the plant.
        ends: The prescribed motion of the drones, None while they fly.
        whole: The tree as it was built.
        tree: The tree as it is, with what has come loose.
        happened: Cables that broke, see `interface.EventSource`.
    """

    cable_model = "rigid_links"

    def __init__(
        self,
        system: SlungLoadSystem,
        start: Configuration,
        *,
        physics_step_s: float | None = None,
        gravity_m_s2: float = 9.80665,
        ground_height_enu_m: float | None = 0.0,
        exact_friction: bool = False,
        refine: bool = True,
        rotor_speed_rad_s: Array | None = None,
    ) -> None:
        """Build the skeleton in its start configuration, at rest.

        Args:
            system: What to build.
            start: Configuration at time 0.
            physics_step_s: Time step; None takes the largest stable one up to 4 ms.
            gravity_m_s2: Gravity.
            ground_height_enu_m: Height of the ground, None for no ground.
            exact_friction: Solve joint friction as constraints in DART instead of regularised.
            refine: Halve the step (repeatedly) for a period in which a cable's tension or a
                joint's rate turns out too large for it; else the step is always the same.
            rotor_speed_rad_s: Rotor speeds at time 0, (n_drones, n_rotors); default at rest.

        Raises:
            ConfigError: A cable joint of the start is beyond its stop.
        """
        self.system = system
        self.gravity_m_s2 = gravity_m_s2
        self.period_s = CONTROL_PERIOD_S
        limit = stable_step_s(system, gravity_m_s2)
        if physics_step_s is not None and physics_step_s > limit * (1.0 + 1e-9):
            warnings.warn(
                f"physics step {physics_step_s:g} s is larger than the largest stable step "
                f"{limit:.2g} s estimated for these cables; the run may diverge "
                "(physics.step_size_s: auto chooses a stable one)",
                stacklevel=2,
            )
        self.substeps = substeps(limit if physics_step_s is None else physics_step_s)
        self.physics_step_s = self.period_s / self.substeps
        self.levels = Levels(system, self.period_s, self.substeps, refine=refine)
        self.refined_periods = self.steps = 0

        self.ground_enu_m = np.nan if ground_height_enu_m is None else ground_height_enu_m
        self._constrained = exact_friction
        self.whole = build_tree(system)
        self._tables = Tables(system, self.whole, regularised_friction=not exact_friction)
        self._blocks = self._tables.blocks
        self._build(self.whole)
        self._joints.check_start(start.coordinates)
        self._doubted_energy = self._doubted_steps = False
        self._spurious_before_j = 0.0
        self.happened: list[PlantEvent] = []
        self._fragile = any(cable.elastic.break_force_n for cable in system.cables)
        self.reaction = Reaction.zeros(system)
        self.ends: PrescribedEnds | None = None

        views = self.tables
        self.state = PlantState(views.state, views.speed, views.cable_force, views.peak)
        if rotor_speed_rad_s is not None:
            views.speed[:] = rotor_speed_rad_s
        self._skeleton.setPositions(start.coordinates)
        self.read_motion()
        self._read_first_tension()
        collect_state(views.motion, views.selected, 0.0, views.state)

    def _build(self, tree: Tree) -> None:
        """Build DART's skeleton and world of the present tree."""
        self.tree, self.tables = tree, self._tables.views
        self._skeleton = skeleton = build_skeleton(tree, friction_as_constraint=self._constrained)
        self._behind = False
        self._dart = _Calls.into(skeleton)
        self._step_s = self.physics_step_s
        self.world = build_world(skeleton, self._step_s, self.gravity_m_s2)
        if not np.isnan(self.ground_enu_m):
            add_ground_contact(self.world, skeleton, tree, self.system, self.ground_enu_m)
        self._joints = JointForces(skeleton, tree, self.tables)
        self._end_forces = [
            [skeleton.getBodyNode(int(body)).getBodyForce for body in ends]
            for ends in zip(tree.first_link, tree.drone, strict=True)
        ]

    def start_moving(self, rates: Array) -> None:
        """Give all coordinates their rates, before the first step.

        Args:
            rates: Angular and linear velocity of the load (world), joint rates, (n_dofs,).
        """
        self.skeleton.setVelocities(rates)
        self.read_motion()
        self._read_first_tension()
        collect_state(self.tables.motion, self.tables.selected, 0.0, self.tables.state)

    @property
    def skeleton(self) -> Skeleton:
        """DART's skeleton in the present state."""
        self.catch_up()
        return self._skeleton

    def catch_up(self) -> None:
        """Bring DART's skeleton to where compiled steps have led, its joints' springs too."""
        if self._behind:
            self._behind = False
            self._dart.set_positions(self.tables.q)
            self._dart.set_velocities(self.tables.dq)
        self._joints.hand_over()

    @property
    def positions(self) -> Array:
        """Coordinates, DART's: the load's rotation vector and place, joint angles, (n_dofs,)."""
        return np.array(self.tables.q)

    @property
    def velocities(self) -> Array:
        """Their rates: the load's angular and linear velocity (world), joint rates, (n_dofs,)."""
        return np.array(self.tables.dq)

    @property
    def time_s(self) -> float:
        """Simulated time, exact multiple of the period."""
        return self.steps * self.period_s

    @property
    def spurious_energy_j(self) -> float:
        """Energy that the integration made from nothing so far, see `judge.account`."""
        return self._spurious_before_j + float(self.tables.ledger[SPURIOUS])

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`."""
        if inputs.motion is None:
            self.ends = None
        elif self.ends is None:
            if self.tree is not self.whole:
                raise ConfigError("prescribed motion: a cable is cut, or a hook open")
            self.ends = PrescribedEnds(self)
        levels = self.levels
        level = levels.present
        while not self._advance(level, inputs):
            # Too coarse for what happened: the period again, with steps half as long.
            level += 1
            rewind(*self._blocks)
            self._behind = True
        if level:
            self.refined_periods += 1
            levels.settle(level)
        self.steps += 1
        if self._fragile:
            parting.break_overloaded(self)

    def _advance(self, level: int, inputs: PlantInputs) -> bool:
        """Advance one period at a level of refinement; False if that is too coarse."""
        levels, ends, gravity = self.levels, self.ends, self.gravity_m_s2
        limits, step_s, count = levels.limits[level], levels.step_s[level], levels.substeps[level]
        numbers, indices = self._blocks
        ground, guided = self.ground_enu_m, ends is not None or self._constrained
        command, wind = inputs.rotor_command_rad_s, inputs.wind_enu_m_s
        body, enu = inputs.wrench_body, inputs.wrench_enu
        unresolved = False
        for k in range(count):
            last = ends is None and k == count - 1
            verdict = begin_step(
                numbers, indices, step_s, k, last, guided,
                command, wind, body, enu, ground, gravity, limits,
            )  # fmt: skip
            if verdict >= 0:
                self._behind = True
            elif verdict == NOT_FINITE:
                raise SimulationDiverged(divergence.not_finite(self, inputs))
            else:
                contact = verdict == TOUCHING
                self.catch_up()
                if step_s != self._step_s:
                    self._step_s = step_s
                    self.world.setTimeStep(step_s)
                if ends is not None:
                    ends.act(inputs, k * step_s, step_s)
                q, dq = self._dart_step(step_s, contact)
                verdict = end_step(numbers, indices, step_s, last, contact, gravity, limits, q, dq)
            if verdict != OK and verdict != DOUBTFUL:
                if level < levels.last:
                    return False
                if verdict in (RUNAWAY, MADE_UP):  # before DART is asked to step it once more
                    raise SimulationDiverged(divergence.diagnosis(self, inputs, verdict))
                unresolved |= verdict == TOO_COARSE
        if ends is not None and not ends.balanced(level):
            return False
        if ends is not None or verdict not in (OK, DOUBTFUL):
            views = self.tables
            collect_state(views.motion, views.selected, self.period_s, views.state)
        if ends is not None:
            ends.note_force()
        if verdict == DOUBTFUL or unresolved:
            self._doubt(inputs, energy=verdict == DOUBTFUL)
        return True

    def _dart_step(self, step_s: float, contact: bool) -> tuple[Array, Array]:
        """Let DART make a step; coordinates and rates after it."""
        dart = self._dart
        dart.set_commands(self.tables.tau)
        if contact or self._constrained:
            self.world.step()
            if contact:
                self._read_joint_wrenches()
        else:  # the same without the search for contacts
            dart.accelerate()
            dart.integrate_velocities(step_s)
            dart.integrate_positions(step_s)
        return dart.positions(), dart.velocities()

    def _doubt(self, inputs: PlantInputs, *, energy: bool) -> None:
        """Warn once of each thing that makes the results doubtful."""
        if energy and not self._doubted_energy:
            self._doubted_energy = True
            warnings.warn(divergence.doubtful_energy(self, inputs), stacklevel=4)
        elif not energy and self.levels.last and not self._doubted_steps:
            self._doubted_steps = True
            warnings.warn(divergence.unresolved(self, inputs), stacklevel=4)

    def apply(self, change: Change) -> None:
        """Change the system between two periods, see `interface.Plant.apply`."""
        if isinstance(change, LoadMass):
            parting.change_load(self, change.mass_kg)
        elif isinstance(change, RotorEfficiency):
            scale_rotors(self.system, self.tables.rotors, change)
        elif isinstance(change, CutCable | ReleaseHook | AttachHook):
            parting.change_joints(self, change)
        else:
            raise ConfigError(refusal(change, self.cable_model))

    def hook_is_open(self, cable: int) -> bool:
        """See `interface.Hooked`."""
        return parting.is_open(self, cable)

    def hook_miss(self, cable: int) -> tuple[float, float]:
        """See `interface.Hooked`."""
        return parting.hook_miss(self, cable)

    @property
    def pieces(self) -> Pieces:
        """The tree as it is now, and its motion."""
        return Pieces(self.tree, self.positions, self.velocities)

    def become(self, pieces: Pieces) -> None:
        """Go on with another tree; energy is counted anew."""
        if self.ends is not None:
            raise ConfigError("a cable cannot part while drones are moved along a recording")
        self._spurious_before_j = self.spurious_energy_j
        self._tables.lay_joints(pieces.tree)
        self._build(pieces.tree)
        self._dart.set_positions(pieces.positions)
        self._dart.set_velocities(pieces.velocities)
        self.set_load(self.tables.masses[0])

    def set_load(self, row: Array) -> None:
        """Give DART's load the mass and inertia of a row of the masses; energy is counted anew."""
        inertia = dartpy.dynamics.Inertia(row[0], row[1:4].copy(), row[4:].reshape(3, 3).copy())
        self.skeleton.getBodyNode(0).setInertia(inertia)
        self.read_motion()

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Joints of cable `index` (from 0) from the load to the drone, (links + 1, 3)."""
        return parting.cable_nodes_enu_m(self, index)

    cable_end_rotations = parting.cable_end_rotations

    def bare_step_us(self, repetitions: int = 20) -> float:
        """Time DART alone needs for a physics step of this skeleton, in flight [us]."""
        return bare_step_us(self, repetitions)

    def read_motion(self) -> None:
        """Read coordinates and rates that were set in the skeleton; energy is counted anew."""
        self._behind = False
        self.tables.q[:], self.tables.dq[:] = self._dart.positions(), self._dart.velocities()
        restart(*self._blocks, self.gravity_m_s2)

    def _read_first_tension(self) -> None:
        """Tension in the start configuration (without what the ground carries)."""
        views, inputs = self.tables, PlantInputs.zeros(self.system)
        nothing = inputs.wind_enu_m_s, inputs.wrench_body, inputs.wrench_enu
        generalised_forces(views, *nothing, self.ground_enu_m)
        self._dart.set_commands(views.tau)
        self._dart.accelerate()
        self._read_joint_wrenches()
        cable_forces_from_joints(views)

    def _read_joint_wrenches(self) -> None:
        """Read DART's forces at both ends of the cables, for `cable_forces_from_joints`."""
        for row, (at_load, at_drone) in zip(self.tables.end_wrench, self._end_forces, strict=True):
            row[0], row[1] = at_load(), at_drone()
