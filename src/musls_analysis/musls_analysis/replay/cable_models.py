"""Cable models that a replay can compare, by the names that scenarios use.

Only the cables differ: the drones' motion, the load and the comparison are the same.
"""

from __future__ import annotations

import dataclasses
from typing import TypedDict

import numpy as np
from scipy.spatial.transform import Rotation

from musls_analysis.recordings.recording import Array
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

RIGID_LINKS, ELASTIC, MASSLESS, SPRING = "rigid_links", "elastic", "massless", "spring"

CABLE_MODELS = {
    RIGID_LINKS: "rigid links with universal joints, as many as the system has (the seed paper's)",
    "rigid_links:N": "N links, the joints' damping as given (a bending damping scales); 1 is a bar "
    "between two joints",
    ELASTIC: "stretchable, with mass, taut or slack; segments as many as the system has links",
    "elastic:N": "the same with N segments",
    MASSLESS: "inextensible and massless, taut or slack",
    SPRING: "massless spring and damper that only pulls; from the air only",
}

_EARLIER_NAMES = {"chain": RIGID_LINKS, "rod": "rigid_links:1"}


class _Options(TypedDict):
    physics_step_s: float
    gravity_m_s2: float


def present_name(model: str) -> str:
    """The name of a model that may be given by an earlier one: chain, chain:N, rod."""
    kind, colon, number = model.partition(":")
    if kind == "rod" and colon:
        return model
    return _EARLIER_NAMES.get(kind, kind) + colon + number


def _kind_and_links(model: str) -> tuple[str, int | None]:
    kind, colon, number = present_name(model).partition(":")
    if kind == "rigid_rods":
        raise ConfigError(
            "cable model 'rigid_rods': rods make one rigid body of load and drones, so drones "
            "that move as recorded leave nothing to predict; choose rigid_links:1 for bars "
            "between joints"
        )
    if kind not in CABLE_MODELS or (colon and f"{kind}:N" not in CABLE_MODELS):
        raise ConfigError(f"unknown cable model '{model}': {near_names(model, CABLE_MODELS)}")
    if not colon:
        return kind, None
    if not number.isdecimal() or not 1 <= int(number) <= 1000:
        raise ConfigError(f"cable model '{model}': links must be a number from 1 to 1000")
    return kind, int(number)


def with_links(system: SlungLoadSystem, model: str) -> SlungLoadSystem:
    """The system with as many links per cable as a model asks for.

    Raises:
        ConfigError: There is no such model.
    """
    _, links = _kind_and_links(model)
    if links is None:
        return system
    cables = tuple(dataclasses.replace(cable, links=links) for cable in system.cables)
    return dataclasses.replace(system, cables=cables)


def plant_at_start(
    model: str, system: SlungLoadSystem, motion: Motion, spec: ReplaySpec
) -> tuple[Plant, Array]:
    """The load at rest below the drones' first poses, or lying below slack cables.

    The system has to be as the model wants it (`with_links`). With the plant come the drones'
    attitudes in it, quaternions (n, 4).

    Raises:
        ConfigError: The model cannot lie on the ground, or the cables do not reach.
    """
    kind, _ = _kind_and_links(model)
    position, orientation = motion.drones_at(0.0)
    load, load_orientation = motion.load_at(0.0)
    yaw, yaws = float(yaw_of(load_orientation)), yaw_of(orientation)
    reach = min(cable.length_m for cable in system.cables)
    options = _Options(physics_step_s=spec.physics_step_s, gravity_m_s2=spec.gravity_m_s2)
    slack = np.linalg.norm(position - load, axis=1).max() < 0.95 * reach
    if slack and kind == SPRING:
        raise ConfigError(
            "cable model 'spring' has no ground, but this recording starts with slack cables"
        )
    ground = load[2] + system.load.collision.bottom_m if slack else None
    if kind == MASSLESS:
        if slack:
            flat = Rotation.from_euler("z", yaw).as_quat(scalar_first=True)
            start = Start.at_rest(np.vstack([load, position]), np.vstack([flat, orientation]))
        else:
            light = weightless(system)
            start = motion_of(light, _hanging(light, position, spec.gravity_m_s2, yaw, yaws))
        light_plant = MasslessPlant(system, start, ground_height_enu_m=ground, **options)
        return light_plant, start.orientation_wxyz[1:].copy()
    if slack:
        turn = Rotation.from_euler("z", yaw).as_matrix()
        lying = slung_between(system, load, turn, position, yaws, spec.gravity_m_s2)
    else:
        lying = _hanging(system, position, spec.gravity_m_s2, yaw, yaws)
    if kind == SPRING:
        at = lying.load_position_enu_m, lying.load_rotation
        return SpringCablePlant(system, *at, (position, orientation), **options), orientation
    make: type[DartPlant | ElasticPlant] = ElasticPlant if kind == ELASTIC else DartPlant
    plant = make(system, lying, ground_height_enu_m=ground, **options)
    return plant, plant.state.orientation_wxyz[1:].copy()


def _hanging(
    system: SlungLoadSystem, position: Array, gravity: float, yaw: float, yaws: Array
) -> Configuration:
    """Equilibrium without joint stiffness, which the lead-in has time to bend."""
    cables = tuple(
        dataclasses.replace(
            cable, joint=dataclasses.replace(cable.joint, stiffness_n_m_rad=0.0)
        )
        for cable in system.cables
    )  # fmt: skip
    limp = dataclasses.replace(system, cables=cables)
    return hanging_equilibrium(limp, position, gravity, yaw, yaws).configuration
