"""Builds the elastic plant of a scenario."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from musls_description.errors import ConfigError
from musls_description.slung import slung_system
from musls_description.spawn import ground_spawn, slung_state
from musls_description.system import SlungLoadSystem
from musls_sim.plants.elastic.parts import rotation_of
from musls_sim.plants.elastic.plant import ElasticPlant
from musls_sim.plants.interface import PlantSetup
from musls_sim.preflight.trim import trim_speeds_rad_s


def build(setup: PlantSetup) -> ElasticPlant:
    """Cables that stretch and go slack, as lumped nodes; any rig; compiled, fast.

    Slung loads start on the ground, hanging in the air, or in a given state; other rigs in a given
    state or in equilibrium.

    Raises:
        ConfigError: The start cannot be reached with these cables.
    """
    system, physics, start = setup.system, setup.physics, setup.start
    step = physics.step_size_s
    make = functools.partial(
        ElasticPlant,
        system,
        physics_step_s=None if isinstance(step, str) else step,
        gravity_m_s2=physics.gravity_m_s2,
        drives=setup.rig,
    )
    formation = system.formation
    if formation is None and start.kind in ("ground", "air"):
        slung_system(system, f"start.kind = {start.kind}, instead of state or equilibrium")
    if formation is None or start.kind == "equilibrium" or start.cables is not None:
        return make(start)
    if start.kind == "ground":
        return make(ground_spawn(formation))
    if start.kind == "air":
        assert setup.equilibrium is not None  # every formation has one
        return make(
            setup.equilibrium.configuration,
            rotor_speed_rad_s=trim_speeds_rad_s(system, setup.equilibrium),
        )
    return _in_state(setup, formation, make)


def _in_state(
    setup: PlantSetup, formation: SlungLoadSystem, make: functools.partial[ElasticPlant]
) -> ElasticPlant:
    """A slung load in a given state; its cables hang as rigid links would."""
    start = setup.start
    if start.load is None or start.drones is None or len(start.drones) != formation.n_drones:
        raise ConfigError(f"start.drones must have {formation.n_drones} entries, and a load")
    bodies = (start.load, *start.drones)
    rotations = np.array([rotation_of(b.orientation_wxyz) for b in bodies])
    positions = np.array([b.position_enu_m for b in bodies])
    # Point masses do not twist: the drones may look anywhere.
    free = dataclasses.replace(
        formation, cables=tuple(dataclasses.replace(k, twist="free") for k in formation.cables)
    )
    configuration, _ = slung_state(
        free, positions[0], rotations[0], positions[1:], rotations[1:], setup.physics.gravity_m_s2
    )
    plant = make(configuration, shape_of=free)
    plant.start_moving(
        np.array([b.velocity_enu_m_s for b in bodies], float),
        np.einsum("nij,nj->ni", rotations, np.array([b.omega_body_rad_s for b in bodies], float)),
    )
    return plant
