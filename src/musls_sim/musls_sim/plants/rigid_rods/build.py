"""Builds the plant with rigid rods of a scenario."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from musls_description.errors import ConfigError
from musls_description.rotations import yaw_of
from musls_description.slung import slung_system
from musls_description.spawn import HangingEquilibrium
from musls_description.system import SlungLoadSystem
from musls_sim.plants.interface import PlantSetup
from musls_sim.plants.massless.build import given_motion, hanging
from musls_sim.plants.massless.start import Motion
from musls_sim.plants.rigid_rods.plant import RigidRodsPlant
from musls_sim.preflight.trim import trim_speeds_rad_s

Array = NDArray[np.float64]


def build(setup: PlantSetup) -> RigidRodsPlant:
    """Rigid rods that make load and drones one body; the cables' lengths are theirs.

    In the air the rods stand where massless cables would hang in formation, the drones level
    beside a level load. A start by state places the drones anywhere. On the ground the structure
    stands on its load.

    Raises:
        ConfigError: The bodies of the start are not a rod's length apart.
    """
    physics, start, chains = setup.physics, setup.start, setup.equilibrium
    system = slung_system(setup.system, "cable_model = rigid_rods")
    assert chains is not None  # every slung load has one
    step = None if isinstance(physics.step_size_s, str) else physics.step_size_s
    gravity = physics.gravity_m_s2
    if start.kind == "state":
        try:
            motion = given_motion(system, start)
            return RigidRodsPlant(system, motion, physics_step_s=step, gravity_m_s2=gravity)
        except ConfigError as error:
            raise ConfigError(f"start: {error}") from None
    rest, motion = hanging(system, chains, gravity)
    motion = levelled(system, motion)
    speeds = None
    if start.kind == "ground":
        motion.position_enu_m[:, 2] += -system.load.collision.bottom_m - motion.position_enu_m[0, 2]
        motion.position_enu_m[:, :2] -= motion.position_enu_m[0, :2].copy()
    else:
        speeds = trim_speeds_rad_s(system, carried(system, motion, rest, gravity))
    return RigidRodsPlant(
        system, motion, physics_step_s=step, gravity_m_s2=gravity, rotor_speed_rad_s=speeds
    )


def levelled(system: SlungLoadSystem, motion: Motion) -> Motion:
    """Structure with load and drones level where they hang in formation, rods as the cables."""
    turns = Rotation.from_quat(motion.orientation_wxyz, scalar_first=True)
    yaw = yaw_of(motion.orientation_wxyz)
    level = Rotation.from_rotvec(np.outer(yaw, [0.0, 0.0, 1.0]))
    position = motion.position_enu_m.copy()
    for i, drone in enumerate(system.drones):
        anchor = np.array(system.load.cable_attachments_m[i])
        hook = np.array(drone.cable_attachment_m)
        rod = position[1 + i] + turns[1 + i].apply(hook) - position[0] - turns[0].apply(anchor)
        rod = (level[0] * turns[0].inv()).apply(rod)
        position[1 + i] = position[0] + level[0].apply(anchor) + rod - level[1 + i].apply(hook)
    return Motion.at_rest(position, level.as_quat(scalar_first=True))


def carried(
    system: SlungLoadSystem, motion: Motion, rest: HangingEquilibrium, gravity_m_s2: float
) -> HangingEquilibrium:
    """Vertical thrusts of the drones that hold a level structure, the smallest that do.

    Args:
        system: The system.
        motion: Where its bodies are, level.
        rest: Any equilibrium of it; its forces of drones are replaced.
        gravity_m_s2: Gravity.
    """
    masses = np.array([system.load.mass_kg, *(drone.mass_kg for drone in system.drones)])
    centre = masses @ motion.position_enu_m / masses.sum()
    arms = motion.position_enu_m[1:] - centre
    effect = np.stack([np.ones(len(arms)), arms[:, 1], -arms[:, 0]])
    needed = np.array([masses.sum() * gravity_m_s2, 0.0, 0.0])
    thrust = np.linalg.lstsq(effect, needed, rcond=None)[0]
    if thrust.min() < 0.0:
        thrust = nnls(effect, needed)[0]
    return dataclasses.replace(
        rest,
        drone_force_n=thrust[:, None] * [0.0, 0.0, 1.0],
        drone_moment_n_m=np.zeros((len(arms), 3)),
    )
