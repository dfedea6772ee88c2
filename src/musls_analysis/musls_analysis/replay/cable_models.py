"""Cable models that a replay can compare, by name.

Only the cables differ: the drones' motion, the load and the comparison are the same.
"""

from __future__ import annotations

import dataclasses
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_analysis.replay.motion import Motion, ReplaySpec
from musls_description.errors import ConfigError, near_names
from musls_description.rotations import yaw_of
from musls_description.spawn import Configuration, hanging_equilibrium, slung_between
from musls_description.system import SlungLoadSystem
from musls_sim.plants.elastic.plant import ElasticPlant
from musls_sim.plants.interface import Plant
from musls_sim.plants.massless.plant import MasslessPlant
from musls_sim.plants.massless.start import Motion as Start
from musls_sim.plants.massless.start import motion_of, weightless
from musls_sim.plants.rigid_links.plant import DartPlant
from musls_sim.plants.spring_cables import SpringCablePlant

Array = NDArray[np.float64]

CHAIN = "chain"
ELASTIC = "elastic"

CABLE_MODELS = {
    CHAIN: "rigid links with universal joints, as many as the system has (the seed paper's)",
    "chain:N": "the same with N links and the joints' damping as given (a bending damping scales)",
    "rod": "one rigid link: a rigid bar between two joints, chain:1",
    ELASTIC: "stretchable, with mass, taut or slack; segments as many as the system has links",
    "elastic:N": "the same with N segments",
    "massless": "inextensible and massless, taut or slack (the plant of that name)",
    "spring": "massless spring and damper that only pulls; replay from the air only",
}


class _Options(TypedDict):
    physics_step_s: float
    gravity_m_s2: float


def with_links(system: SlungLoadSystem, model: str) -> SlungLoadSystem:
    """The system with as many links per cable as a model asks for.

    Raises:
        ConfigError: There is no such model.
    """
    if model in (CHAIN, ELASTIC, "massless", "spring"):
        return system
    if model == "rigid_rods":
        raise ConfigError(
            "cable model 'rigid_rods': rods make one rigid body of load and drones, so drones "
            "that move as recorded leave nothing to predict; choose rod for bars between joints"
        )
    name, colon, number = model.partition(":")
    links = 1 if model == "rod" else None
    if name in (CHAIN, ELASTIC) and colon:
        if not number.isdecimal() or not 1 <= int(number) <= 1000:
            raise ConfigError(f"cable model '{model}': links must be a number from 1 to 1000")
        links = int(number)
    if links is None:
        raise ConfigError(f"unknown cable model '{model}': {near_names(model, CABLE_MODELS)}")
    cables = tuple(dataclasses.replace(cable, links=links) for cable in system.cables)
    return dataclasses.replace(system, cables=cables)


def plant_at_start(
    model: str, system: SlungLoadSystem, motion: Motion, spec: ReplaySpec
) -> tuple[Plant, Array]:
    """The load at rest below the drones' first poses, or lying below slack cables.

    Args:
        model: Name of the cable model.
        system: As the model wants it (`with_links`).
        motion: The recorded motion.
        spec: How to replay.

    Returns:
        The plant, and the drones' attitudes in it, quaternions (n, 4).

    Raises:
        ConfigError: The model cannot lie on the ground, or the cables do not reach.
    """
    position, orientation = motion.drones_at(0.0)
    load, load_orientation = motion.load_at(0.0)
    yaw, yaws = float(yaw_of(load_orientation)), yaw_of(orientation)
    reach = min(cable.length_m for cable in system.cables)
    options = _Options(physics_step_s=spec.physics_step_s, gravity_m_s2=spec.gravity_m_s2)
    massless = model == "massless"
    if np.linalg.norm(position - load, axis=1).max() < 0.95 * reach:  # slack: it lies
        if model == "spring":
            raise ConfigError(
                "cable model 'spring' has no ground, but this recording starts with slack cables"
            )
        ground = load[2] + system.load.collision.bottom_m
        if massless:
            flat = Rotation.from_rotvec([[0.0, 0.0, yaw]]).as_quat(scalar_first=True)
            lying = Start.at_rest(np.vstack([load, position]), np.vstack([flat, orientation]))
            return MasslessPlant(system, lying, ground_height_enu_m=ground, **options), orientation
        turn = Rotation.from_rotvec([0.0, 0.0, yaw]).as_matrix()
        start = slung_between(system, load, turn, position, yaws, spec.gravity_m_s2)
        return _with_mass(model, system, start, ground, options)
    straight = weightless(system) if massless else system
    start = _hanging(straight, position, spec.gravity_m_s2, yaw, yaws)
    if massless:
        hanging = motion_of(straight, start)
        light = MasslessPlant(system, hanging, ground_height_enu_m=None, **options)
        return light, hanging.orientation_wxyz[1:].copy()
    if model == "spring":
        at = start.load_position_enu_m, start.load_rotation
        return SpringCablePlant(system, *at, (position, orientation), **options), orientation
    return _with_mass(model, system, start, None, options)


def _with_mass(
    model: str,
    system: SlungLoadSystem,
    start: Configuration,
    ground_height_enu_m: float | None,
    options: _Options,
) -> tuple[Plant, Array]:
    """A plant whose cables have mass, chains or elastic ones, and its drones' attitudes."""
    of_links = not model.startswith(ELASTIC)
    make: type[DartPlant | ElasticPlant] = DartPlant if of_links else ElasticPlant
    plant = make(system, start, ground_height_enu_m=ground_height_enu_m, **options)
    return plant, plant.state.orientation_wxyz[1:].copy()


def _hanging(
    system: SlungLoadSystem, position: Array, gravity: float, yaw: float, yaws: Array
) -> Configuration:
    """Equilibrium without joint stiffness, which the lead-in has time to bend."""
    joints = (dataclasses.replace(c.joint, stiffness_n_m_rad=0.0) for c in system.cables)
    cables = tuple(
        dataclasses.replace(cable, joint=joint)
        for cable, joint in zip(system.cables, joints, strict=True)
    )
    limp = dataclasses.replace(system, cables=cables)
    return hanging_equilibrium(limp, position, gravity, yaw, yaws).configuration
