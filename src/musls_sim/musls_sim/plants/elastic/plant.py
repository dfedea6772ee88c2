"""Load and drones on elastic cables, the plant `cable_model: elastic`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_description.errors import ConfigError
from musls_description.spawn import Configuration
from musls_description.system import Box, Drone, Load, SlungLoadSystem
from musls_description.tree import build_tree
from musls_sim.physics import CONTROL_PERIOD_S
from musls_sim.plants.aerodynamics import rotor_table
from musls_sim.plants.changes import LoadMass, RotorEfficiency, refusal, scale_rotors
from musls_sim.plants.elastic import columns as c
from musls_sim.plants.elastic import line
from musls_sim.plants.elastic.engine import Engine, Path
from musls_sim.plants.elastic.equilibrium import (
    hanging_nodes,
    holding_forces,
    linear_strain,
    resampled,
)
from musls_sim.plants.elastic.rig import Rig, RigBody, RigCable
from musls_sim.plants.energy import EnergyAudit
from musls_sim.plants.interface import (
    Change,
    PlantInputs,
    PlantState,
    Pose,
    PrescribedMotion,
    Reaction,
)
from musls_sim.plants.rigid_links.kinematics import body_motion, joint_table
from musls_sim.plants.rigid_links.stability import substeps

Array = NDArray[np.float64]

LONGEST_STEP_S = CONTROL_PERIOD_S

DIFFERENCE_S = 1e-4
"""Time over which the velocity of a prescribed pose is taken."""


class ElasticPlant:
    """Elastic cables between load and drones, see `interface.Plant`.

    Cables have the segments, length and mass of their description and the stiffness of a 3 mm
    braided polyethylene line, see `line`. `cable.joint` (of the rigid links) and `cable.twist` have
    no meaning here: point masses neither turn nor twist.
    """

    cable_model = "elastic"

    def __init__(
        self,
        system: SlungLoadSystem,
        start: Configuration,
        *,
        physics_step_s: float | None = None,
        gravity_m_s2: float = 9.80665,
        ground_height_enu_m: float | None = 0.0,
        rotor_speed_rad_s: Array | None = None,
        ea_n: float = line.EA_N,
        damping_n_s: float | None = None,
        ei_n_m2: float = line.EI_N_M2,
        segments: int | None = None,
        shape_of: SlungLoadSystem | None = None,
    ) -> None:
        """Build the tables in the start configuration, at rest.

        A configuration in which the cables hold the load up (`hanging_equilibrium`) becomes an
        equilibrium of the elastic cables: the drones stand higher by the stretch. In any other the
        nodes are where the joints of the rigid links are.

        Args:
            system: What to build.
            start: Configuration at time 0.
            physics_step_s: Time step; None takes 4 ms, which is stable for any cable.
            gravity_m_s2: Gravity.
            ground_height_enu_m: Height of the ground, None for no ground.
            rotor_speed_rad_s: Rotor speeds at time 0, (n_drones, n_rotors); default at rest.
            ea_n: Axial stiffness of the cables.
            damping_n_s: Force per rate of strain; None for the default line's relaxation time.
            ei_n_m2: Bending stiffness.
            segments: Segments per cable; None takes the number of links.
            shape_of: System whose rigid links `start` describes, where it is not `system`.
        """
        self.system = system
        self.gravity_m_s2 = gravity_m_s2
        self.period_s = CONTROL_PERIOD_S
        self.substeps = substeps(LONGEST_STEP_S if physics_step_s is None else physics_step_s)
        self.physics_step_s = self.period_s / self.substeps
        self._ea, self._ei = ea_n, ei_n_m2
        self._damping = line.RELAXATION_TIME_S * ea_n if damping_n_s is None else damping_n_s
        rig = Rig(
            *self._bodies_and_cables(start, segments, gravity_m_s2, shape_of or system),
            rotors=rotor_table(system),
            gravity_m_s2=gravity_m_s2,
            ground_height_enu_m=ground_height_enu_m,
            ground_friction=system.ground_friction,
        )
        self.engine = Engine(rig, self.period_s, self.substeps, rotor_speed_rad_s)
        t, n = self.engine.tables, system.n_drones
        self.state = PlantState(t.shown[: 1 + n], t.speed, t.force[:n], t.peak[:n])
        self.reaction = Reaction.zeros(system)
        self._motion: PrescribedMotion | None = None

    # ------------------------------------------------------------------------------- the build

    def _bodies_and_cables(
        self,
        start: Configuration,
        segments: int | None,
        gravity: float,
        shape_of: SlungLoadSystem,
    ) -> tuple[list[RigBody], list[RigCable]]:
        """Bodies (load, drones) and cables (from the drone to the load) of the start."""
        system = self.system
        tree = build_tree(shape_of)
        motion = np.zeros((len(tree.bodies), 27))
        first = np.append(tree.first_coordinate, tree.n_coordinates)
        parents = np.array([body.parent for body in tree.bodies])
        still = np.zeros(tree.n_coordinates)
        body_motion(start.coordinates, still, parents, first, joint_table(tree), motion)
        load = motion[0]
        arms = np.array(system.load.cable_attachments_m) @ load[:9].reshape(3, 3).T
        directions = motion[tree.first_link, :9].reshape(-1, 3, 3)[:, :, 0]
        link_weights = np.array([k.link_mass_kg * gravity for k in system.cables])
        weight = system.load.mass_kg * gravity
        thrust = motion[tree.drone, :9].reshape(-1, 3, 3)[:, :, 2]
        lifted = gravity * np.array(
            [k.mass_kg + d.mass_kg for k, d in zip(system.cables, system.drones, strict=True)]
        )
        forces = None
        if weight > 0.0:
            forces = holding_forces(directions, arms, link_weights, weight, thrust, lifted)
        bodies = [_rig_body(system.load, load)]
        cables = []
        for i, (cable, drone) in enumerate(zip(system.cables, system.drones, strict=True)):
            m = motion[tree.drone[i]].copy()
            hook = m[:9].reshape(3, 3) @ drone.cable_attachment_m
            joints = motion[tree.first_link[i] : tree.drone[i], 9:12]
            n = cable.links if segments is None else segments
            if forces is None:
                nodes = resampled(np.vstack([joints, m[9:12] + hook]), n)
            else:
                shape = n, cable.length_m, cable.mass_kg, gravity
                nodes = hanging_nodes(forces[i], *shape, linear_strain(self._ea))
                nodes += load[9:12] + arms[i]
                m[9:12] = nodes[-1] - hook
            bodies.append(_rig_body(drone, m, i))
            cables.append(
                RigCable(
                    bodies=(1 + i, 0),
                    points_m=np.array(
                        [drone.cable_attachment_m, system.load.cable_attachments_m[i]]
                    ),
                    nodes_enu_m=nodes[::-1],
                    length_m=cable.length_m,
                    mass_kg=cable.mass_kg,
                    ea_n=self._ea,
                    damping_n_s=self._damping,
                    ei_n_m2=self._ei,
                )
            )
        return bodies, cables

    # -------------------------------------------------------------------------------- the step

    @property
    def time_s(self) -> float:
        """Simulated time, exact multiple of the period."""
        return self.engine.time_s

    @property
    def refined_periods(self) -> int:
        """Periods that needed finer steps than the usual."""
        return self.engine.refined_periods

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`."""
        engine = self.engine
        if inputs.motion is not self._motion:
            self._prescribe(inputs.motion)
        engine.command = inputs.rotor_command_rad_s
        engine.wind_enu_m_s = inputs.wind_enu_m_s
        engine.wrench_body, engine.wrench_enu = inputs.wrench_body, inputs.wrench_enu
        if self._motion is not None:
            engine.command = self._rotors_at_rest
            if self._motion.load_wrench is not None:
                engine.wrench_enu = inputs.wrench_enu.copy()
                engine.wrench_enu[0] += self._motion.load_wrench(self.time_s + self.period_s / 2)
        engine.step()
        if self._motion is not None:
            self._note_reaction()

    def start_moving(self, velocity_enu_m_s: Array, omega_enu_rad_s: Array) -> None:
        """Give load and drones velocities before the first step; the cables move along.

        Args:
            velocity_enu_m_s: World, (1 + n_drones, 3).
            omega_enu_rad_s: World, (1 + n_drones, 3).
        """
        t = self.engine.tables
        n = 1 + self.system.n_drones
        t.bodies[:n, c.BV : c.BV + 3] = t.motion[:n, 15:18] = velocity_enu_m_s
        t.bodies[:n, c.BW : c.BW + 3] = t.motion[:n, 12:15] = omega_enu_rad_s
        for b in range(n):
            inertia = t.bodies[b, c.IW : c.IW + 9].reshape(3, 3)
            t.bodies[b, c.BL : c.BL + 3] = inertia @ omega_enu_rad_s[b]
        for i, (kind, cable) in enumerate(zip(t.kinds, self.engine.rig.cables, strict=True)):
            rows = t.nodes[kind[c.FIRST_NODE] : kind[c.FIRST_NODE] + kind[c.SEGMENTS] + 1]
            ends = [
                velocity_enu_m_s[b]
                + np.cross(omega_enu_rad_s[b], t.motion[b, :9].reshape(3, 3) @ point)
                for b, point in zip((1 + i, 0), cable.points_m, strict=True)
            ]
            rows[:, c.V : c.V + 3] = np.linspace(ends[0], ends[1], len(rows))
        self.engine.restart()

    def _prescribe(self, motion: PrescribedMotion | None) -> None:
        """Let the drones follow a path, or fly again."""
        self._motion = motion
        self._rotors_at_rest = np.zeros_like(self.state.rotor_speed_rad_s)
        paths: dict[int, Path] = {}
        if motion is not None:
            poses = _PosePaths(motion.pose)
            paths = {1 + i: _OnePath(poses, i) for i in range(self.system.n_drones)}
        self.engine.prescribe(set(paths), paths)

    def apply(self, change: Change) -> None:
        """Change the system between two periods, see `interface.Plant.apply`."""
        if isinstance(change, LoadMass):
            self._change_load(change.mass_kg)
        elif isinstance(change, RotorEfficiency):
            scale_rotors(self.system, self.engine.tables.rotors, change)
        else:
            raise ConfigError(refusal(change, self.cable_model))

    def _change_load(self, mass_kg: float) -> None:
        """Give the load another mass; velocities stay, energy is counted anew."""
        row = self.engine.tables.bodies[0]
        factor = mass_kg / row[c.B_MASS]
        row[c.B_MASS] = mass_kg
        row[c.B_INVERSE : c.B_INVERSE + 9] /= factor
        for first, size in (
            (c.B_INERTIA, 9), (c.IW, 9), (c.BL, 3), (c.BLS, 3)
        ):  # fmt: skip
            row[first : first + size] *= factor
        self.engine.restart()

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Nodes of cable `index` (from 0) from the load to the drone, (segments + 1, 3)."""
        return np.array(self.engine.nodes_enu_m(index)[::-1])

    def segment_tensions_n(self, index: int) -> Array:
        """Tension of each segment of cable `index` from the load to the drone, (segments,)."""
        return np.array(self.engine.tensions_n(index)[::-1])

    @property
    def end_wrench(self) -> Array:
        """Moment about its centre and force that moves each prescribed drone, world, (n, 6)."""
        reaction = [self.engine.reaction(1 + i) for i in range(self.system.n_drones)]
        return np.array([[*w[3:], *w[:3]] for w in reaction])

    @property
    def audit(self) -> EnergyAudit:
        """Work, losses and energies since the start."""
        audit = EnergyAudit()
        self._write_audit(audit)
        return audit

    @property
    def spurious_energy_j(self) -> float:
        """Energy that the integration made from nothing so far; 0 if it only took some."""
        return max(0.0, -self.audit.missing_j)

    def _write_audit(self, audit: EnergyAudit) -> None:
        sums = self.engine.tables.sums
        audit.work_j, audit.absolute_work_j = float(sums[c.WORK]), float(sums[c.ABSOLUTE_WORK])
        audit.loss_j = float(sums[c.LOSS_CABLES] + sums[c.LOSS_GROUND])
        audit.start_j = self.engine.start_energy_j
        audit.energy_j = float(self.engine.energy_j().sum())

    def _note_reaction(self) -> None:
        """Force that moves each cable's end, at the end of the period, and the audit."""
        for i in range(self.system.n_drones):
            self.reaction.end_force_n[i] = -self.engine.end_force_n(i, 0)
        self._write_audit(self.reaction.audit)


def _rig_body(part: Load | Drone, motion: Array, drone: int = -1) -> RigBody:
    """Rigid body of a load or drone at its start."""
    return RigBody(
        mass_kg=part.mass_kg,
        inertia_kg_m2=np.array(part.inertia_kg_m2),
        position_enu_m=motion[9:12].copy(),
        rotation=motion[:9].reshape(3, 3).copy(),
        drag_n_s_m=np.array(part.drag_n_s_m),
        corners_m=_corners(part.collision),
        drone=drone,
    )


def _corners(box: Box) -> Array:
    """Corners of a box, (8, 3)."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners: Array = np.array(box.center_m) + 0.5 * signs * np.array(box.size_m)
    return corners


class _PosePaths:
    """Motion of all drones within a period from their poses: cubic between the ends."""

    def __init__(self, pose: Callable[[float], Pose]) -> None:
        self._pose = pose
        self._begin_s = self._end_s = -1.0
        self._end: tuple[Array, Array, Rotation, Array] | None = None
        self.table = np.zeros((0, 2, 18))

    def update(self, begin_s: float, end_s: float) -> None:
        """Fill `table`, (n_drones, 2, 18) as `bodies.follow` takes it, for a period."""
        if begin_s == self._begin_s:
            return
        begin = self._end
        if begin is None or begin_s != self._end_s:
            begin = self._ends(begin_s)
        end = self._ends(end_s)
        turn = (end[2] * begin[2].inv()).as_rotvec()
        length = end_s - begin_s
        self.table = np.zeros((len(turn), 2, 18))
        moved = (begin[0], begin[1], end[0], end[1]), (0.0 * turn, begin[3], turn, end[3])
        for at, (x0, v0, x1, v1) in zip((0, 9), moved, strict=True):
            mean = (x1 - x0) / length
            a0, a1 = 6.0 * mean - 4.0 * v0 - 2.0 * v1, 4.0 * v1 + 2.0 * v0 - 6.0 * mean
            self.table[:, 0, at : at + 9] = np.hstack([x0, v0, a0 / length])
            self.table[:, 1, at : at + 9] = np.hstack([x1, v1, a1 / length])
        self._begin_s, self._end_s, self._end = begin_s, end_s, end

    def _ends(self, time_s: float) -> tuple[Array, Array, Rotation, Array]:
        """Positions, velocities, rotations and angular velocities at a time."""
        low = max(time_s - DIFFERENCE_S, 0.0)
        (p0, r0), (p, r), (p1, r1) = (self._at(t) for t in (low, time_s, time_s + DIFFERENCE_S))
        span = time_s + DIFFERENCE_S - low
        return p, (p1 - p0) / span, r, (r1 * r0.inv()).as_rotvec() / span

    def _at(self, time_s: float) -> tuple[Array, Rotation]:
        position, quaternion = self._pose(time_s)
        return np.array(position, float), Rotation.from_quat(quaternion, scalar_first=True)


class _OnePath:
    """The motion of one drone out of `_PosePaths`."""

    def __init__(self, poses: _PosePaths, drone: int) -> None:
        self._poses, self._drone = poses, drone

    def __call__(self, begin_s: float, end_s: float) -> Array:
        self._poses.update(begin_s, end_s)
        row: Array = self._poses.table[self._drone]
        return row
