"""The plant of the seed paper: rigid-link cables, stepped by DART in this process.

One skeleton, rooted at the load. The joints' damping and springs are integrated implicitly by
DART; thrust, drag and the ground under the cables enter as generalised forces; load and drones
touch the ground by DART's contacts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from musls_description.spawn import Configuration
from musls_description.system import SlungLoadSystem
from musls_description.tree import build_tree
from musls_sim.physics import CONTROL_PERIOD_S
from musls_sim.plants.aerodynamics import rotor_table, spin_rotors
from musls_sim.plants.bodies import POSITION, collect_state, fastest_body
from musls_sim.plants.interface import PlantInputs, PlantState, SimulationDiverged
from musls_sim.plants.rigid_links.dart_skeleton import (
    add_ground_contact,
    build_skeleton,
    build_world,
)
from musls_sim.plants.rigid_links.forces import generalised_forces
from musls_sim.plants.rigid_links.friction import RegularisedFriction
from musls_sim.plants.rigid_links.joint_stops import JointStops
from musls_sim.plants.rigid_links.judge import (
    JERK,
    MADE_ENERGY_J,
    OK,
    RUNAWAY,
    EnergyCheck,
    judge_step,
)
from musls_sim.plants.rigid_links.kinematics import (
    MOTION_COLUMNS,
    body_motion,
    joint_table,
)
from musls_sim.plants.rigid_links.stability import (
    JOINT_TURN_PER_STEP_RAD,
    REFINEMENTS,
    largest_stable_tension_n,
    stable_step_s,
    substeps,
)
from musls_sim.plants.rigid_links.tension import cable_forces

Array = NDArray[np.float64]

SPEED_LIMIT_M_S = 100.0
"""No body of a slung-load system gets that fast; beyond it the integration has failed."""


CALM_PERIODS = 25
"""Control periods without a jerk (0.1 s) after which a refined step is doubled again: the waves
that a jerk sends along the cables are to be followed too."""


class DartPlant:
    """Rigid-link chains in DART, see `interface.Plant`."""

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
        self._levels = _Levels(system, self.period_s, self.substeps, refine)
        self._level = self._calm = 0
        self.refined_periods = 0

        tree = build_tree(system)
        self.tree = tree
        self.skeleton = build_skeleton(tree, friction_as_constraint=exact_friction)
        self.world = build_world(self.skeleton, self.physics_step_s, gravity_m_s2)
        if ground_height_enu_m is not None:
            add_ground_contact(self.world, self.skeleton, tree, system, ground_height_enu_m)
        self._friction = None if exact_friction else RegularisedFriction.of(self.skeleton, tree)
        self._stops = JointStops(self.skeleton, tree, sets_damping=self._friction is None)

        self._ground = np.nan if ground_height_enu_m is None else ground_height_enu_m
        self._build_tables()

        self.state = PlantState.zeros(system)
        if rotor_speed_rad_s is not None:
            self.state.rotor_speed_rad_s[:] = rotor_speed_rad_s
        self.steps = 0
        self._step_s = self.physics_step_s
        self._stops.check_start(start.coordinates)
        self.skeleton.setPositions(start.coordinates)
        self._read_motion()
        self._read_first_tension()
        self._collect(0.0)

    def _build_tables(self) -> None:
        """Constants and work space of the compiled functions."""
        system, tree = self.system, self.tree
        self._parents = np.array([body.parent for body in tree.bodies])
        self._first = np.append(tree.first_coordinate, tree.n_coordinates)
        self._joints = joint_table(tree)
        self._energy_check = EnergyCheck(
            tree, self.gravity_m_s2, (self._parents, self._first, self._joints)
        )
        self._rotors = rotor_table(system)
        self._drag = np.array([system.load.drag_n_s_m, *(d.drag_n_s_m for d in system.drones)])
        self._selected = np.concatenate([[0], tree.drone])
        self._drone_of = np.full(len(tree.bodies), -1)
        self._drone_of[self._selected] = np.arange(len(self._selected)) - 1
        self._drone_of[0] = -2
        self._link_length = np.zeros(len(tree.bodies))
        for first, last, cable in zip(tree.first_link, tree.drone, system.cables, strict=True):
            self._link_length[first:last] = cable.link_length_m
        self._motion = np.zeros((len(tree.bodies), MOTION_COLUMNS))
        self._wrench = np.zeros((len(tree.bodies), 6))
        self._tau = np.zeros(tree.n_coordinates)
        self._end_wrench = np.zeros((system.n_drones, 2, 6))
        ends = np.column_stack([tree.first_link, tree.drone]).ravel()
        self._end_reads = [
            (row, self.skeleton.getBodyNode(int(k)).getBodyForce)
            for row, k in zip(self._end_wrench.reshape(-1, 6), ends, strict=True)
        ]

    def start_moving(self, rates: Array) -> None:
        """Give all coordinates their rates, before the first step.

        Args:
            rates: Angular and linear velocity of the load (world), joint rates, (n_dofs,).
        """
        self.skeleton.setVelocities(rates)
        self._read_motion()
        self._read_first_tension()
        self._collect(0.0)

    @property
    def motion(self) -> Array:
        """Motion of all bodies of the tree, see `kinematics.body_motion`, (n_bodies, 27)."""
        return self._motion

    @property
    def joints(self) -> Array:
        """Joint frames of all bodies, see `kinematics.joint_table`, (n_bodies, 24)."""
        return self._joints

    @property
    def first_coordinates(self) -> Array:
        """First coordinate of each body, then their number, (n_bodies + 1,)."""
        return self._first

    @property
    def time_s(self) -> float:
        """Simulated time, exact multiple of the period."""
        return self.steps * self.period_s

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`."""

        def act(step_s: float, elapsed_s: float) -> None:
            self._apply_forces(step_s, inputs.rotor_command_rad_s, inputs.wind_enu_m_s)
            self.skeleton.setCommands(self._tau)

        self._step(act)

    def _step(self, act: Callable[[float, float], None]) -> None:
        """Advance one control period.

        Args:
            act: Sets the skeleton's commands for a step, given its length and the time since the
                beginning of the period.
        """
        before = self._positions, self._velocities, self.state.rotor_speed_rad_s.copy()
        level = self._level
        while not self._advance(level, act):
            # Too coarse for what happened: the period again, with steps half as long.
            level += 1
            self.skeleton.setPositions(before[0])
            self.skeleton.setVelocities(before[1])
            self.state.rotor_speed_rad_s[:] = before[2]
            self._read_motion()
        self.refined_periods += level > 0
        self._settle(level)
        self.steps += 1
        self._collect(self.period_s)

    def _settle(self, level: int) -> None:
        """Choose the level to begin the next period with: coarser only after a calm while."""
        self._calm = self._calm + 1 if level <= self._level else 0
        self._level = max(level, self._level)
        if self._calm >= CALM_PERIODS:
            self._calm = 0
            self._level = max(self._level - 1, 0)

    def _advance(self, level: int, act: Callable[[float, float], None]) -> bool:
        """Advance one period at a level of refinement; False if that is too coarse."""
        levels, peak = self._levels, self.state.tension_peak_n
        peak[:] = 0.0
        step_s = levels.step_s[level]
        if step_s != self._step_s:
            self._step_s = step_s
            self.world.setTimeStep(step_s)
        for k in range(levels.substeps[level]):
            self._stops.apply(self._positions)
            if self._friction is not None:
                self._friction.apply(self._velocities, self._stops.extra_damping)
            act(step_s, k * step_s)
            before = self._positions, self._velocities
            self.world.step()
            self._read_tension()
            self._read_motion()
            verdict = judge_step(
                peak,
                levels.tension_n[level],
                self._velocities,
                before[1],
                levels.rate_rad_s[level],
                SPEED_LIMIT_M_S,
            )
            if verdict == JERK:
                after = self._motion, self._velocities, self._tau
                if self._energy_check.made_j(before, *after, step_s) <= MADE_ENERGY_J:
                    continue
            if verdict != OK:
                if level < levels.last:
                    return False
                if verdict == RUNAWAY:  # before DART is asked to step it once more
                    raise SimulationDiverged(self._diagnosis(*fastest_body(self._motion)))
        return True

    def _apply_forces(self, step_s: float, rotor_command_rad_s: Array, wind_enu_m_s: Array) -> None:
        """Spin the rotors and sum all outside forces into `_tau`."""
        speed = self.state.rotor_speed_rad_s
        spin_rotors(speed, rotor_command_rad_s, self._rotors, step_s)
        finite = generalised_forces(
            self._motion,
            self._parents,
            self._first,
            self._joints,
            self._drone_of,
            self._link_length,
            self._drag,
            speed,
            self._rotors,
            wind_enu_m_s,
            self._ground,
            self._wrench,
            self._tau,
        )
        if not finite:  # DART would go on with the forces of the step before
            raise SimulationDiverged(
                f"forces are not finite at {self.time_s:.3f} s: check rotor commands and wind"
            )

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Joints of cable `index` (from 0) from the load to the drone, (links + 1, 3)."""
        first, drone = self.tree.first_link[index], self.tree.drone[index]
        nodes = np.empty((drone - first + 1, 3))
        nodes[:-1] = self._motion[first:drone, POSITION : POSITION + 3]
        hook = np.array(self.system.drones[index].cable_attachment_m)
        motion = self._motion[drone]
        nodes[-1] = motion[POSITION : POSITION + 3] + motion[:9].reshape(3, 3) @ hook
        return nodes

    def bare_step_us(self, repetitions: int = 100, batch: int = 10) -> float:
        """Time DART alone needs for a physics step of this skeleton, in flight [us].

        Steps a copy in the present configuration, lifted clear of the ground, and takes the median
        over batches, short ones because a busy machine slows the long ones.
        """
        world = self.world.clone()
        skeleton = world.getSkeleton("musls")
        start = self.skeleton.getPositions()
        start[5] += 1000.0
        rest = np.zeros_like(start)
        times = []
        for _ in range(repetitions):
            skeleton.setPositions(start)
            skeleton.setVelocities(rest)
            begin = perf_counter()
            for _ in range(batch):
                world.step()
            times.append((perf_counter() - begin) / batch)
        return float(np.median(times) * 1e6)

    def _read_motion(self) -> None:
        self._positions = self.skeleton.getPositions()
        self._velocities = self.skeleton.getVelocities()
        body_motion(
            self._positions,
            self._velocities,
            self._parents,
            self._first,
            self._joints,
            self._motion,
        )

    def _read_first_tension(self) -> None:
        """Tension in the start configuration (without what the ground carries)."""
        still = np.zeros(3)
        self._apply_forces(0.0, self.state.rotor_speed_rad_s, still)
        self.skeleton.setCommands(self._tau)
        self.skeleton.computeForwardDynamics()
        self._read_tension()

    def _read_tension(self) -> None:
        # Before the motion is read: DART's forces belong to the configuration before the step.
        for row, body_force in self._end_reads:
            row[:] = body_force()
        cable_forces(
            self._end_wrench,
            self._motion,
            self._wrench,
            self.tree.first_link,
            self.tree.drone,
            self.state.cable_force_n,
            self.state.tension_peak_n,
        )

    def _collect(self, dt: float) -> None:
        worst, speed = fastest_body(self._motion)
        if speed > SPEED_LIMIT_M_S:
            raise SimulationDiverged(self._diagnosis(worst, speed))
        collect_state(self._motion, self._selected, dt, self.state.motion)

    def _diagnosis(self, worst: int, speed: float) -> str:
        what = "is not finite" if not np.isfinite(speed) else f"moves at {speed:.3g} m/s"
        limit = stable_step_s(self.system, self.gravity_m_s2)
        if self.physics_step_s > limit:
            cure = f"choose physics.step_size_s: auto (estimated largest stable step {limit:.2g} s)"
        else:
            cure = (
                f"choose a smaller physics.step_size_s (now {self.physics_step_s:g} s), more "
                "joint damping or fewer links per cable"
            )
        return (
            f"simulation diverged at {self.time_s:.3f} s: {self.tree.bodies[worst].name} "
            f"{what}; {cure}"
        )


class _Levels:
    """Steps of each level of refinement and what they hold; level 0 is the ordinary step.

    Attributes:
        last: Number of the finest level.
        substeps: Steps per period.
        step_s: Their length.
        tension_n: Largest tension that a step holds, per cable, (n,).
        rate_rad_s: Largest joint rate for a step.
    """

    def __init__(
        self, system: SlungLoadSystem, period_s: float, substeps: int, refine: bool
    ) -> None:
        self.last = REFINEMENTS if refine else 0
        self.substeps = [substeps * 2**level for level in range(self.last + 1)]
        self.step_s = [period_s / n for n in self.substeps]
        self.tension_n = [
            np.array([largest_stable_tension_n(cable, step) for cable in system.cables])
            for step in self.step_s
        ]
        self.rate_rad_s = [JOINT_TURN_PER_STEP_RAD / step for step in self.step_s]
