"""The plant of the seed paper: rigid-link cables, stepped as DART steps them, in this process.

One tree of bodies, rooted at the load. The joints' damping and springs are integrated implicitly;
thrust, drag and the ground under the cables enter as generalised forces; load and drones touch the
ground by DART's contacts. Where nothing can touch, compiled code makes DART's step (`dynamics`) and
DART's skeleton stays behind until it is needed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import dartpy
import numpy as np
from dartpy.dynamics import Skeleton
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.spawn import Configuration
from musls_description.system import SlungLoadSystem
from musls_description.tree import Tree, build_tree
from musls_sim.plants.changes import (
    AttachHook,
    CutCable,
    LoadMass,
    ReleaseHook,
    RotorEfficiency,
    check_cut,
    scale_rotors,
)
from musls_sim.plants.interface import (
    SPEED_LIMIT_M_S,
    Change,
    EnergyAudit,
    Plant,
    PlantEvent,
    PlantInputs,
    PlantState,
    Pose,
    Reaction,
    SimulationDiverged,
)
from musls_sim.plants.rigid_links.dart import (
    JointForces,
    add_ground_contact,
    build_skeleton,
    build_world,
)
from musls_sim.plants.rigid_links.dynamics import cable_forces_from_joints, generalised_forces
from musls_sim.plants.rigid_links.multibody import (
    end_jacobians,
    end_wrenches,
    joint_space_inertia,
    parent_coordinates,
    quadratic,
)
from musls_sim.plants.rigid_links.pieces import Pieces, closed, opened
from musls_sim.plants.rigid_links.rows import OMEGA, POSITION, VELOCITY, collect_state, fastest_body
from musls_sim.plants.rigid_links.step import (
    NOT_FINITE,
    TOUCHING,
    begin_step,
    end_step,
    restart,
    rewind,
)
from musls_sim.plants.rigid_links.step_control import (
    DOUBTFUL,
    MADE_UP,
    OK,
    RUNAWAY,
    TOO_COARSE,
    Levels,
    stable_step_s,
    substeps,
)
from musls_sim.plants.rigid_links.tables import ENERGY, EXCHANGED, KINETIC, SPURIOUS, Tables
from musls_sim.scenario.physics import CONTROL_PERIOD_S

Array = NDArray[np.float64]

# ---------- Drones moved along prescribed paths: the cables and the load alone are free

ENERGY_SHARE = 0.01
ENERGY_FLOOR_J = 0.002
"""Work of a control period that may be unaccounted for: a share of the work and a little more. A
period with more is repeated with finer steps."""


# In every step the wrenches on the drones are found that bring each drone to its prescribed pose
# at the end of the step. DART's step is linear in them,
#
#     v+ = v_free + dt A^-1 J^T lambda,   A = M + dt D + dt^2 K,
#
# and J v+ = v_wanted is one linear system of 6 equations a drone. The pose, not the velocity, is
# prescribed: the coordinates after the step are computed from v+, what is missing to the pose is
# added to v_wanted, and the system is solved again until nothing is missing (SHAKE; Ryckaert,
# Ciccotti and Berendsen, J. Comput. Phys. 23, 1977). The wrenches are the reaction of the motion:
# force, moment and power that a drone (or a hand) would need.


@dataclass(frozen=True)
class _Step:
    """What acted in a step, as generalised forces, all (n_dofs,).

    Attributes:
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
        """Add what brings the drones to their poses at the end of a step to the plant's forces."""
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


# ---------- Messages when a simulation fails: cause and cure

WEIGHTS = 20.0
"""Outside forces of so many times the weight of all bodies are named as the cause of a failure."""


def not_finite(plant: DartPlant, inputs: PlantInputs) -> str:
    """Forces that are not finite: names the input."""
    named = [name for name, values in _inputs(inputs) if not np.isfinite(values).all()]
    cause = _too_large(plant, inputs) or f"check {' and '.join(named) or 'rotor commands and wind'}"
    return f"forces are not finite at {plant.time_s:.3f} s: {cause}"


def diagnosis(plant: DartPlant, inputs: PlantInputs, verdict: int) -> str:
    """A state that is not physical any more: names what is wrong, the cause and the cure."""
    cure = _too_large(plant, inputs) or _finer(plant)
    begin = f"simulation diverged at {plant.time_s:.3f} s"
    if verdict == MADE_UP:
        cure = _too_large(plant, inputs) or _calmer(plant)
        return f"{begin}: {_spurious(plant)}; {cure}"
    worst, speed = fastest_body(plant.tables.motion)
    what = "is not finite" if not np.isfinite(speed) else f"moves at {speed:.3g} m/s"
    return f"{begin}: {plant.tree.bodies[worst].name} {what}; {cure}"


def doubtful_energy(plant: DartPlant, inputs: PlantInputs) -> str:
    """Warning: the integration has made a good deal of energy from nothing."""
    cure = _too_large(plant, inputs) or _calmer(plant)
    return f"at {plant.time_s:.3f} s: {_spurious(plant)}; {cure}"


def unresolved(plant: DartPlant, inputs: PlantInputs) -> str:
    """Warning: the finest step is too long for what happens."""
    cure = _too_large(plant, inputs) or _calmer(plant)
    tension = plant.state.tension_peak_n
    cable = int(tension.argmax())
    return (
        f"at {plant.time_s:.3f} s: the finest step of {plant.levels.step_s[-1]:.2g} s is too long "
        f"for what happens (tension of cable_{cable + 1} {tension[cable]:.3g} N, joint rates up to "
        f"{np.abs(plant.velocities[6:]).max():.3g} rad/s), the results are doubtful from here on; "
        f"{cure}"
    )


def _spurious(plant: DartPlant) -> str:
    """Of the run, or of the last second if that is where the share is larger."""
    ledger = plant.tables.ledger
    made, whole = ledger[SPURIOUS], ledger[KINETIC] + ledger[EXCHANGED]
    share = 100.0 * made / max(whole, 1e-9)
    return (
        f"spurious energy: the integration has made {made:.3g} J from nothing, {share:.2g} % of "
        f"the {whole:.3g} J that were exchanged"
    )


def _finer(plant: DartPlant) -> str:
    limit = stable_step_s(plant.system, plant.gravity_m_s2)
    if plant.physics_step_s > limit:
        return f"choose physics.step_size_s: auto (estimated largest stable step {limit:.2g} s)"
    return (
        f"choose a smaller physics.step_size_s (now {plant.physics_step_s:g} s), more "
        "joint damping or fewer links per cable"
    )


def _calmer(plant: DartPlant) -> str:
    """Cures where the step was refined already."""
    if not plant.levels.last:
        return f"{_finer(plant)} (physics.refine: true refines it where needed)"
    return (
        "choose more joint damping (cables.joint.damping_n_m_s_rad), fewer links per cable or a "
        "calmer motion: undamped cables that whip and jerk taut have no time step that is short "
        "enough"
    )


def _inputs(inputs: PlantInputs) -> list[tuple[str, np.ndarray]]:
    return [
        ("rotor commands", inputs.rotor_command_rad_s),
        ("wind", inputs.wind_enu_m_s),
        ("wrench_body", inputs.wrench_body),
        ("wrench_enu", inputs.wrench_enu),
    ]


def _too_large(plant: DartPlant, inputs: PlantInputs) -> str:
    """The input that no time step could follow, empty if there is none."""
    wind = math.hypot(*inputs.wind_enu_m_s)
    if wind > SPEED_LIMIT_M_S:
        return (
            f"the wind of {wind:.3g} m/s is the cause: its drag is too large a force for these "
            f"bodies, and nothing here is made for winds beyond {SPEED_LIMIT_M_S:g} m/s"
        )
    weight = plant.gravity_m_s2 * plant.tables.masses[:, 0].sum()
    for name, values in _inputs(inputs)[2:]:
        force = np.abs(values[:, 3:]).max(axis=1)
        if force.max() > WEIGHTS * weight:
            body = plant.tree.bodies[plant.tables.selected[force.argmax()]].name
            return (
                f"the force of {force.max():.3g} N on {body} ({name}) is the cause: all bodies "
                f"together weigh {weight:.3g} N"
            )
    return ""


# ---------- The plant


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


class DartPlant(Plant):
    """Rigid-link chains in DART, see `interface.Plant`.

    Attributes:
        ends: The prescribed motion of the drones, None while they fly.
        whole: The tree as it was built.
        tree: The tree as it is, with what has come loose.
        happened: Cables that broke, see `interface.Plant`.
    """

    cable_model = "rigid_links"
    refined_periods = 0
    system: SlungLoadSystem
    tree: Tree

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

        The default time step is the largest stable one up to 4 ms. Where a cable's tension or a
        joint's rate turns out too large for it, `refine` halves it (repeatedly) for that period.
        With `exact_friction` DART solves joint friction as constraints, else it is regularised.
        Rotor speeds, (n_drones, n_rotors), are 0 by default; a ground height of None means no
        ground.

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
        self.steps = 0

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

        Angular and linear velocity of the load (world), joint rates, (n_dofs,).
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
            self._break_overloaded()

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
                raise SimulationDiverged(not_finite(self, inputs))
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
                    raise SimulationDiverged(diagnosis(self, inputs, verdict))
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
            warnings.warn(doubtful_energy(self, inputs), stacklevel=4)
        elif not energy and self.levels.last and not self._doubted_steps:
            self._doubted_steps = True
            warnings.warn(unresolved(self, inputs), stacklevel=4)

    def apply(self, change: Change) -> None:
        """Change the system between two periods, see `interface.Plant.apply`."""
        if isinstance(change, LoadMass):
            self._change_load(change.mass_kg)
        elif isinstance(change, RotorEfficiency):
            scale_rotors(self.system, self.tables.rotors, change)
        elif isinstance(change, CutCable | ReleaseHook | AttachHook):
            self._change_joints(change)
        else:
            super().apply(change)

    def _change_load(self, mass_kg: float) -> None:
        """Give the load another mass; velocities stay, energy is counted anew."""
        row = self.tables.masses[0]
        row[4:] *= mass_kg / row[0]
        row[0] = mass_kg
        self.set_load(row)

    def _change_joints(self, change: CutCable | ReleaseHook | AttachHook) -> None:
        """Open or close a joint; what is open or closed already stays so."""
        check_cut(self.system, change)
        first = int(self.tree.first_link[change.cable - 1])
        if isinstance(change, AttachHook):
            self._close(first)
        elif isinstance(change, CutCable):
            self._open(first + change.segment - 1)
        else:
            self._open(first if change.at == "load" else int(self.tree.drone[change.cable - 1]))

    def _open(self, body: int) -> None:
        if self.tree.bodies[body].parent >= 0:
            self.become(opened(self.pieces, body))

    def _close(self, body: int) -> None:
        if self.tree.bodies[body].parent < 0:
            masses = self.tables.masses
            self.become(closed(self.pieces, body, self.whole.bodies[body], masses))

    def _break_overloaded(self) -> None:
        """Part the cables whose tension was beyond their break force in the last period.

        At the end where it is larger: the links beyond it go on with their joints.
        """
        for i, cable in enumerate(self.system.cables):
            tension, limit = self.tables.peak[i], cable.elastic.break_force_n
            if limit is None or tension <= limit:
                continue
            force = self.state.tension_n[i]
            at_load = force[0] >= force[1]
            body = int((self.tree.first_link if at_load else self.tree.drone)[i])
            if self.tree.bodies[body].parent < 0:
                continue
            self._open(body)
            where = "load" if at_load else "drone"
            what = f"cable_{i + 1}: broke at the {where} at {tension:.4g} N"
            self.happened.append(PlantEvent(self.time_s, "cable_broken", what))

    def hook_is_open(self, cable: int) -> bool:
        """See `interface.Plant`."""
        return bool(self.tree.bodies[self.tree.first_link[cable]].parent < 0)

    def hook_miss(self, cable: int) -> tuple[float, float]:
        """See `interface.Plant`."""
        body = self.tree.first_link[cable]
        load, hook = self.tables.motion[0], self.tables.motion[body]
        arm = load[:9].reshape(3, 3) @ self.whole.bodies[body].joint_in_parent_position_m
        way = load[POSITION : POSITION + 3] + arm - hook[POSITION : POSITION + 3]
        there = load[VELOCITY : VELOCITY + 3] + np.cross(load[OMEGA : OMEGA + 3], arm)
        speed = there - hook[VELOCITY : VELOCITY + 3]
        return float(np.linalg.norm(way)), float(np.linalg.norm(speed))

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
        """Joints of a cable (from 0) from the load to the drone, (links + 1, 3)."""
        first, drone = self.tree.first_link[index], self.tree.drone[index]
        table = self.tables.motion
        nodes = np.empty((drone - first + 1, 3))
        nodes[:-1] = table[first:drone, POSITION : POSITION + 3]
        if self.tree.bodies[drone].parent < 0:  # nothing holds the upper end
            top, end = (
                table[drone - 1],
                np.array([self.system.cables[index].link_length_m, 0.0, 0.0]),
            )
        else:
            top, end = table[drone], np.array(self.system.drones[index].cable_attachment_m)
        nodes[-1] = top[POSITION : POSITION + 3] + top[:9].reshape(3, 3) @ end
        return nodes

    def cable_end_rotations(self, index: int) -> Array:
        """Rotations of a cable's first and last link, world, (2, 3, 3)."""
        ends = [self.tree.first_link[index], self.tree.drone[index] - 1]
        turns: Array = self.tables.motion[ends, :9].reshape(2, 3, 3)
        return turns

    def bare_step_us(self, repetitions: int = 20, batch: int = 10) -> float:
        """Time DART alone needs for a physics step of a plant's skeleton, in flight [us].

        Steps a copy in the present configuration, lifted clear of the ground, and takes the median
        over batches, short ones because a busy machine slows the long ones.
        """
        start = self.skeleton.getPositions()
        world = self.world.clone()
        skeleton = world.getSkeleton("musls")
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
