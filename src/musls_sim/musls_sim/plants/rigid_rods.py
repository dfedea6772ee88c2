"""Load and drones joined by rigid rods, the plant `cable_model: rigid_rods`."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

import numpy as np
import scipy

from musls_control.estimate import BodyMotion
from musls_description.config.errors import ConfigError
from musls_description.hanging.equilibrium import HangingEquilibrium
from musls_description.numerics.arrays import Array, joined
from musls_description.numerics.compiled import CompiledStage
from musls_description.numerics.rotations import matrix, yaw_of
from musls_description.system.drone import Drone
from musls_description.system.slung_system import Load, SlungLoadSystem, slung_system
from musls_sim.plants.interface import PlantInputs, PlantSetup, given_motion, step_s
from musls_sim.plants.massless.light_lines import LightLinesPlant
from musls_sim.plants.massless.records import LAYOUT
from musls_sim.plants.massless.step import move_plant
from musls_sim.plants.rigid_body import contact_step_s, feet_constants, impact_constants
from musls_sim.plants.trim import holding_thrusts_n, trim_speeds_rad_s

# ---------- One rigid body of load and drones (Li et al., "RotorTM", IEEE T-RO 2023, eq. 24)
#
# In the load's axes, with r the place of a part's centre of mass and R its attitude beside the
# load:
#
#     m_c = sum m,  rho_c = sum m r / m_c,  J_c = sum (R J R^T + m (s.s I - s s^T)),  s = r - rho_c.
#
# (The authors' code keeps the diagonal of the last term alone and forgets the inverse of J_c.)


@dataclass(frozen=True)
class Composite:
    """Masses and places of a rigid structure, in the axes of its load.

    Attributes:
        mass_kg: Total mass.
        inertia_kg_m2: Inertia about its centre of mass, (3, 3).
        place_m: Centres of mass of load and drones from that of the whole, (1 + n, 3).
        attitude: Load and drones beside the load, (1 + n, 3, 3).
    """

    mass_kg: float
    inertia_kg_m2: Array
    place_m: Array
    attitude: Array

    @classmethod
    def of(cls, system: SlungLoadSystem, motion: BodyMotion) -> Composite:
        """Structure that a system has where its bodies are now."""
        parts: list[Load | Drone] = [system.load, *system.drones]
        turns = scipy.spatial.transform.Rotation.from_quat(
            motion.orientation_wxyz, scalar_first=True
        )
        place = turns[0].inv().apply(motion.position_enu_m - motion.position_enu_m[0])
        attitude = (turns[0].inv() * turns).as_matrix()
        inertias = np.array([part.inertia_kg_m2 for part in parts])
        inertias = attitude @ inertias @ np.swapaxes(attitude, 1, 2)
        mass, inertia, place = joined([part.mass_kg for part in parts], inertias, place)
        return cls(mass, inertia, place, attitude)

    def velocities(self, motion: BodyMotion) -> tuple[Array, Array]:
        """Velocities of all parts if they move with the load, world, and body rates, (1 + n, 3)."""
        turn = scipy.spatial.transform.Rotation.from_quat(
            motion.orientation_wxyz[0], scalar_first=True
        )
        omega = motion.omega_body_rad_s[0]
        swept = turn.apply(np.cross(omega, self.place_m - self.place_m[0]))
        rates: Array = np.einsum("nji,j->ni", self.attitude, omega)
        return motion.velocity_enu_m_s[0] + swept, rates


MISS_M = 1e-6
MISS_M_S = 1e-6
"""Largest error of lengths and velocities of a start against those of a rigid structure."""


class RigidRodsPlant(LightLinesPlant):
    """One rigid body of load, massless rods and drones, see `interface.Plant`.

    The structure is the one of the start: the caller places the drones. A rod is
    clamped at both ends, so that the force in it follows from its drone's balance.
    """

    system: SlungLoadSystem
    cable_model = "rigid_rods"
    shape_table = "records", "whole"

    def _begin(self, start: BodyMotion) -> None:
        self.composite = Composite.of(self.system, start)
        _check_rates(self.composite, start)
        self._join(start)
        self._place_rod_ends()
        super()._begin(start)

    def _join(self, start: BodyMotion) -> None:
        """Begin the motion of the structure as one body."""
        t = self.records
        whole = self.composite
        t.bodies["place"] = whole.place_m
        t.bodies["beside"] = whole.attitude
        self.moving = body = t.whole
        body["mass"] = whole.mass_kg
        body["inverse_mass"] = 1.0 / whole.mass_kg
        body["free"] = 1
        body["inertia"] = whole.inertia_kg_m2
        body["inverse_inertia"] = np.linalg.inv(whole.inertia_kg_m2)
        turn = matrix(start.orientation_wxyz[0])
        back = -whole.place_m[0]
        omega = start.omega_body_rad_s[0]
        y = body["state"]
        y["position"] = start.position_enu_m[0] + turn @ back
        y["velocity"] = start.velocity_enu_m_s[0] + turn @ np.cross(omega, back)
        y["attitude"] = start.orientation_wxyz[0]
        y["omega"] = omega
        world = t.system[0]
        world["rigid"] = 1
        LAYOUT.fill(t.system, {"moving": body})
        corners = self.system.load.collision.corners_m + whole.place_m[0]  # it stands on its load
        standing = whole.mass_kg, whole.inertia_kg_m2, corners
        world["contact_step"] = min(world["contact_step"], contact_step_s(*standing))
        t.bodies["stiffness"], t.bodies["damping"] = feet_constants(*standing)
        t.bodies["impact_damping"], impact_s = impact_constants(*standing)
        world["impact_step"] = min(world["impact_step"], impact_s)

    def _place_rod_ends(self) -> None:
        """Write the ends of the rods on load and drone, from the centre of the whole."""
        system = self.system
        place = self.composite.place_m
        attitude = self.composite.attitude
        for i, (rod, drone) in enumerate(zip(system.cables, system.drones, strict=True)):
            anchor = place[0] + np.array(system.load.cable_attachments_m[i])
            hook = place[1 + i] + attitude[1 + i] @ np.array(drone.cable_attachment_m)
            length = float(np.linalg.norm(hook - anchor))
            if abs(length - rod.length_m) > MISS_M:
                raise ConfigError(
                    f"rod_{i + 1} of {rod.length_m:g} m (cables.{i}.length_m) does not fit: "
                    f"load and drone_{i + 1} are {length:.6g} m apart"
                )
            cable = self.records.cables[i]
            cable["load_point"] = anchor
            cable["drone_point"] = hook
            cable["load_spin"] = cable["drone_spin"] = 0.0  # nothing turns about its ends

    @property
    def compiled_step(self) -> CompiledStage | None:
        """Compiled function of a `STEP` that does `step` but for `account`; None: Python is needed.

        See `interface.Plant`.
        """
        return move_plant if self._has(RigidRodsPlant.step) else None

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`."""
        if inputs.motion is not None:
            raise ConfigError(
                "cable_model: rigid_rods makes one rigid body of load and drones, so drones that "
                "are moved leave nothing to predict; choose cable_model: massless"
            )
        self.account(self._advance(inputs, self.period_s), inputs)

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Points of rod `index` (from 0) from the load to the drone, (links + 1, 3)."""
        whole = self.records.whole[..., 0]
        rod = self.records.cables[index]
        low, high = (
            whole["position"] + whole["rotation"] @ rod[end]
            for end in ("load_point", "drone_point")
        )
        return np.linspace(low, high, self.system.cables[index].links + 1, axis=-2)


def _check_rates(whole: Composite, start: BodyMotion) -> None:
    """Refuse a start in which the drones do not move with the load."""
    velocity, omega = whole.velocities(start)
    miss = np.maximum(
        np.abs(velocity - start.velocity_enu_m_s).max(axis=1),
        np.abs(omega - start.omega_body_rad_s).max(axis=1),
    )
    worst = int(miss.argmax())
    if miss[worst] > MISS_M_S:
        raise ConfigError(
            f"drone_{worst} does not move with the load (off by {miss[worst]:.3g} m/s or rad/s): "
            "rods are rigid"
        )


# ---------- Builds the plant with rigid rods of a scenario


def build(setup: PlantSetup) -> RigidRodsPlant:
    """Rigid rods that make load and drones one body; the cables' lengths are theirs.

    In the air the rods stand where massless cables would hang in formation, the drones level
    beside a level load. A start by state places the drones anywhere. On the ground the structure
    stands on its load.
    """
    physics = setup.physics
    start = setup.start
    hanging = setup.hanging
    system = slung_system(setup.system, "cable_model = rigid_rods")
    step = step_s(system, physics, order=4)
    gravity = physics.gravity_m_s2
    make = functools.partial(
        RigidRodsPlant,
        system,
        physics_step_s=step,
        gravity_m_s2=gravity,
        ground_height_enu_m=setup.ground_height_enu_m,
        obstacles=setup.surfaces,
    )
    if start.kind == "state":
        try:
            motion = given_motion(system, start)
            return make(motion)
        except ConfigError as error:
            raise ConfigError(f"start: {error}") from None
    assert hanging is not None  # such a flight begins in formation
    rest = hanging.on_massless_cables
    motion = levelled(system, BodyMotion.of(*rest.bodies))
    speeds = None
    if start.kind == "ground":
        motion.position_enu_m[:, 2] += -system.load.collision.bottom_m - motion.position_enu_m[0, 2]
        motion.position_enu_m[:, :2] -= motion.position_enu_m[0, :2].copy()
        if hanging.ground is not None:
            place, turn = hanging.ground.stand(system.load.collision, "load", 0.0, 0.0, 0.0)
            if turn[2, 2] < 1.0:
                raise ConfigError(
                    "world: a structure of rigid rods on a slope tips over; choose level ground, "
                    "start: air or another cable_model"
                )
            motion.position_enu_m[:, 2] += place[2] + system.load.collision.bottom_m
            twists = np.array([hanging.ground.twist(at) for at in motion.position_enu_m])
            motion.velocity_enu_m_s[:] = twists[:, 3:]
            motion.omega_enu_rad_s = twists[:, :3]
    else:
        speeds = trim_speeds_rad_s(system, carried(system, motion, rest, gravity))
    return make(motion, rotor_speed_rad_s=speeds)


BESIDE_M = 0.01
"""Distance of the centre of mass from where upright thrusts hold a structure up."""


def levelled(system: SlungLoadSystem, motion: BodyMotion) -> BodyMotion:
    """Structure with load and drones level where they hang in formation, rods as the cables."""
    turns = scipy.spatial.transform.Rotation.from_quat(motion.orientation_wxyz, scalar_first=True)
    yaw = yaw_of(motion.orientation_wxyz)
    level = scipy.spatial.transform.Rotation.from_rotvec(np.outer(yaw, [0.0, 0.0, 1.0]))
    position = motion.position_enu_m.copy()
    for i, drone in enumerate(system.drones):
        anchor = np.array(system.load.cable_attachments_m[i])
        hook = np.array(drone.cable_attachment_m)
        rod = position[1 + i] + turns[1 + i].apply(hook) - position[0] - turns[0].apply(anchor)
        rod = (level[0] * turns[0].inv()).apply(rod)
        position[1 + i] = position[0] + level[0].apply(anchor) + rod - level[1 + i].apply(hook)
    return BodyMotion.of(position, level.as_quat(scalar_first=True))


def carried(
    system: SlungLoadSystem, motion: BodyMotion, rest: HangingEquilibrium, gravity_m_s2: float
) -> HangingEquilibrium:
    """Vertical thrusts of the drones that hold a level structure, the smallest that do.

    `motion` is level; `rest` is any equilibrium of the system, its forces of drones are replaced.
    """
    masses = np.array([system.load.mass_kg, *(drone.mass_kg for drone in system.drones)])
    up = np.tile([0.0, 0.0, 1.0], (system.n_drones, 1))
    thrust = holding_thrusts_n(motion.position_enu_m, up, gravity_m_s2 * masses)
    arms = motion.position_enu_m[1:, :2] - masses @ motion.position_enu_m[:, :2] / masses.sum()
    beside_m = float(np.linalg.norm(thrust @ arms)) / (gravity_m_s2 * masses.sum())
    if beside_m > BESIDE_M:
        raise ConfigError(
            "cable_model = rigid_rods: load, rods and drones are one body, and upright thrusts of "
            f"the drones cannot hold it level: its centre of mass is {beside_m:.2f} m beside them; "
            "choose other load.cable_attachments_m, or cables"
        )
    return dataclasses.replace(
        rest,
        drone_force_n=thrust[:, None] * up,
        drone_moment_n_m=np.zeros((system.n_drones, 3)),
    )
