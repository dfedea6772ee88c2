"""Builds the elastic plant of a scenario."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from scipy.spatial.transform import Rotation

from musls_description.errors import ConfigError
from musls_description.slung import slung_system
from musls_description.spawn import ground_spawn, slung_state
from musls_sim.plants.elastic.plant import ElasticPlant
from musls_sim.plants.interface import PlantSetup
from musls_sim.preflight.trim import trim_speeds_rad_s


def build(setup: PlantSetup) -> ElasticPlant:
    """Cables that stretch and go slack, as lumped nodes; compiled, the fastest with chains.

    They start on the ground, hanging in the air, or in a given state.

    Raises:
        ConfigError: The start cannot be reached with these cables.
    """
    physics, start, equilibrium = setup.physics, setup.start, setup.equilibrium
    system = slung_system(setup.system, "cable_model = elastic, so far")
    assert equilibrium is not None  # every slung load has one
    step = physics.step_size_s
    make = functools.partial(
        ElasticPlant,
        system,
        physics_step_s=None if isinstance(step, str) else step,
        gravity_m_s2=physics.gravity_m_s2,
    )
    if start.kind == "ground":
        return make(ground_spawn(system))
    if start.kind == "air":
        return make(
            equilibrium.configuration,
            rotor_speed_rad_s=trim_speeds_rad_s(system, equilibrium),
        )
    if start.load is None or start.drones is None or len(start.drones) != system.n_drones:
        raise ConfigError(f"start.drones must have {system.n_drones} entries")
    bodies = (start.load, *start.drones)
    rotations = np.array(
        [Rotation.from_quat(b.orientation_wxyz, scalar_first=True).as_matrix() for b in bodies]
    )
    positions = np.array([b.position_enu_m for b in bodies])
    # Point masses do not twist: the drones may look anywhere.
    free = dataclasses.replace(
        system, cables=tuple(dataclasses.replace(k, twist="free") for k in system.cables)
    )
    configuration, _ = slung_state(
        free, positions[0], rotations[0], positions[1:], rotations[1:], physics.gravity_m_s2
    )
    plant = make(configuration, shape_of=free)
    plant.start_moving(
        np.array([b.velocity_enu_m_s for b in bodies], float),
        np.einsum("nij,nj->ni", rotations, np.array([b.omega_body_rad_s for b in bodies], float)),
    )
    return plant
