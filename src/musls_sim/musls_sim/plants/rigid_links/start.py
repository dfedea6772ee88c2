"""Builds the rigid-link plant of a scenario."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from musls_control.estimate import BodyMotion
from musls_description.config.errors import ConfigError, MuslsError, install_command
from musls_description.hanging.equilibrium import slung_state
from musls_description.hanging.tree import Configuration
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_matrix, rotation_vector
from musls_description.system.obstacles import GateObstacle
from musls_description.system.slung_system import SlungLoadSystem, slung_system
from musls_sim.plants.interface import PlantSetup, accurate_step_s, given_motion, substeps
from musls_sim.plants.rigid_links.mechanism import jacobians
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.plants.rigid_links.step_control import (
    ENGAGEMENT_MARGIN,
    TENSION_MARGIN,
    fixed_step_s,
    stable_step_s,
)
from musls_sim.plants.trim import trim_speeds_rad_s
from musls_sim.specs.physics import CONTROL_PERIOD_S

if TYPE_CHECKING:  # they take long to import and few flights need them
    from musls_sim.plants.gazebo import BridgedPlant, GazeboPlant


ATTITUDE_MISS_RAD = 0.01
"""Largest error of a drone's attitude against the one that a start asks for."""


def build(setup: PlantSetup) -> RigidLinksPlant | GazeboPlant | BridgedPlant:
    """Chains of rigid links with universal joints: the seed paper's cables.

    They start on the ground, hanging in the air, or in a given state.
    """
    physics = setup.physics
    start = setup.start
    hanging = setup.hanging
    system = slung_system(setup.system, "cable_model = rigid_links")
    rotors = None
    if start.kind == "state":
        motion = given_motion(system, start)
        configuration = _configuration_of(system, motion, physics.gravity_m_s2)
    elif start.kind == "air":
        assert hanging is not None  # such a flight begins in formation
        if any(cable.joint.stiffness_n_m_rad for cable in system.cables):
            raise ConfigError(
                "start.kind = air: hanging chains are solved for free joints, and "
                "system.cables.joint.stiffness_n_m_rad is not 0; start on the ground"
            )
        rotors = trim_speeds_rad_s(system, hanging.rest)
        configuration = hanging.rest.configuration
    else:
        assert hanging is not None
        configuration = hanging.on_ground
    _refuse_motion(setup)
    if physics.engine in ("gazebo", "gazebo_px4"):
        return _on_gazebo(setup, system, configuration, rotors)
    make: Callable[..., RigidLinksPlant] = functools.partial(
        RigidLinksPlant,
        refine=physics.refine,
        accuracy=physics.accuracy,
        contact=physics.contact,
        inextensible=physics.inextensible,
    )
    if physics.engine == "dart" or physics.exact_friction:
        try:
            from musls_sim.plants.dart.dart_plant import DartPlant
        except ImportError as error:
            absent = isinstance(error, ModuleNotFoundError)
            cure = install_command("dartpy") if absent else "Debian and Ubuntu: apt install libgl1"
            raise MuslsError(f"DART cannot be loaded: {error} ({cure})") from None
        make = functools.partial(DartPlant, exact_friction=physics.exact_friction)
    step = physics.step_size_s
    plant = make(
        system,
        configuration,
        physics_step_s=_auto_step_s(setup, system) if isinstance(step, str) else step,
        gravity_m_s2=physics.gravity_m_s2,
        rotor_speed_rad_s=rotors,
        ground_height_enu_m=setup.ground_height_enu_m,
        obstacles=setup.surfaces,
    )
    if start.kind == "state":
        plant.start_moving(_rates_of(plant, motion))
    elif start.kind == "ground":
        assert hanging is not None
        twists = hanging.on_ground_twists
        places, _ = hanging.on_ground.bodies(system)
        turning = twists[:, :3]
        carried = twists[0, 3:] + np.cross(turning[0], places - places[0])
        on_one_deck = np.allclose(turning, turning[0]) and np.allclose(twists[:, 3:], carried)
        if twists.any() and on_one_deck:
            rates = np.zeros_like(plant.velocities)
            rates[:6] = twists[0]
            plant.start_moving(rates)
    return plant


def _refuse_motion(setup: PlantSetup) -> None:
    """Refuse surfaces that move where another engine has the contacts (raises ConfigError)."""
    physics = setup.physics
    if physics.engine == "embedded" and not physics.exact_friction:
        return
    for surface in setup.surfaces:
        if not isinstance(surface, GateObstacle) and surface.motion is not None:
            key = f"engine = {physics.engine}"
            if physics.engine == "embedded":
                key = "exact_friction = true"
            raise ConfigError(
                f"physics.{key}: {surface.name} moves as in a table (world), there surfaces stand "
                "still; choose physics.engine: embedded without exact_friction"
            )


def _on_gazebo(
    setup: PlantSetup,
    system: SlungLoadSystem,
    configuration: Configuration,
    rotor_speed_rad_s: Array | None,
) -> GazeboPlant | BridgedPlant:
    """The plant on a Gazebo server, whose step is never refined: it has to resolve jerks."""
    from musls_sim.plants.gazebo import BridgedPlant, GazeboPlant

    physics = setup.physics
    start = setup.start
    if start.kind == "state":
        motion = given_motion(system, start)
        if motion.velocity_enu_m_s.any() or motion.omega_body_rad_s.any():
            raise ConfigError(
                f"physics.engine = {physics.engine}: a world starts at rest; give no velocities"
            )
    step = physics.step_size_s
    bridged = physics.engine == "gazebo_px4"
    if isinstance(step, str):
        if bridged:
            step = fixed_step_s(system, physics.gravity_m_s2)
        else:
            limit = stable_step_s(system, physics.gravity_m_s2, ENGAGEMENT_MARGIN)
            step = CONTROL_PERIOD_S / substeps(limit)
    make = BridgedPlant if bridged else GazeboPlant
    return make(
        system,
        configuration,
        physics_step_s=step,
        gravity_m_s2=physics.gravity_m_s2,
        rotor_speed_rad_s=rotor_speed_rad_s,
        ground_height_enu_m=setup.ground_height_enu_m,
        obstacles=setup.surfaces,
    )


def _auto_step_s(setup: PlantSetup, system: SlungLoadSystem) -> float:
    """Largest step that divides the period, is accurate, and holds in DART, which refines none."""
    physics = setup.physics
    if physics.engine == "embedded":
        limit = accurate_step_s(system, physics, order=2)
        if setup.snaps_taut:  # twice as fine: it begins before a jerk is noticed
            limit = min(limit, 0.5 * CONTROL_PERIOD_S)
    else:
        margin = ENGAGEMENT_MARGIN if setup.snaps_taut else TENSION_MARGIN
        limit = stable_step_s(system, physics.gravity_m_s2, margin)
    return CONTROL_PERIOD_S / substeps(limit)


def _configuration_of(
    system: SlungLoadSystem, motion: BodyMotion, gravity_m_s2: float
) -> Configuration:
    """Chains that hang between load and drones in given poses.

    Poses of `start: state` are in no formation, so that `Hanging` does not know these chains.
    """
    places = motion.position_enu_m
    turns = motion.rotations
    configuration, reached = slung_state(
        system, places[0], turns[0], places[1:], turns[1:], gravity_m_s2
    )
    for i, (target, rotation) in enumerate(zip(turns[1:], reached, strict=True)):
        miss = np.linalg.norm(rotation_vector(from_matrix(target.T @ rotation)))
        if miss > ATTITUDE_MISS_RAD:
            raise ConfigError(
                f"start.drones.{i}.orientation_wxyz: cable_{i + 1} does not twist, so the yaw of "
                f"drone_{i + 1} follows from it and misses the wanted one by "
                f"{np.degrees(miss):.1f} degrees; choose another yaw, or cables with twist: free"
            )
    return configuration


def _rates_of(plant: RigidLinksPlant, motion: BodyMotion) -> Array:
    """Rates of all coordinates that give load and drones their velocities, (n_dofs,).

    Of all joint rates that do, the smallest ones.
    """
    jacobian = np.vstack(list(jacobians(plant.records)[plant.tree.drone]))
    rates = np.hstack([motion.omega_enu_rad_s, motion.velocity_enu_m_s])
    free = rates[0]
    target = rates[1:].ravel()
    rest = target - jacobian[:, :6] @ free
    joints = np.linalg.lstsq(jacobian[:, 6:], rest, rcond=1e-9)[0]
    miss = np.abs(jacobian[:, 6:] @ joints - rest).reshape(-1, 6).max(axis=1)
    worst = int(miss.argmax())
    if miss[worst] > 1e-6:
        raise ConfigError(
            f"start.drones.{worst}: cable_{worst + 1} does not let drone_{worst + 1} move like "
            f"this beside the load (off by {miss[worst]:.3g} m/s or rad/s): a taut cable keeps its "
            "length, and one that does not twist turns its drone"
        )
    return np.concatenate([free, joints])
