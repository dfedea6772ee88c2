"""Builds the plant with massless cables of a scenario."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.rotations import yaw_of
from musls_description.slung import slung_system
from musls_description.spawn import HangingEquilibrium, ground_spawn, hanging_equilibrium
from musls_description.system import SlungLoadSystem
from musls_sim.plants.interface import PlantSetup
from musls_sim.plants.massless.plant import MasslessPlant
from musls_sim.plants.massless.start import Motion, freed, motion_of, weightless
from musls_sim.preflight.trim import trim_speeds_rad_s
from musls_sim.scenario.physics import StartSpec

Array = NDArray[np.float64]


def build(setup: PlantSetup) -> MasslessPlant:
    """Inextensible cables without mass that go slack and snap taut; compiled, the fastest.

    They start on the ground, hanging in the air, or in a given state.

    Raises:
        ConfigError: The start cannot be reached with these cables.
    """
    physics = setup.physics
    system = slung_system(setup.system, "cable_model = massless")
    assert setup.equilibrium is not None  # every slung load has one
    step = physics.step_size_s
    make = functools.partial(
        MasslessPlant,
        system,
        physics_step_s=None if isinstance(step, str) else step,
        gravity_m_s2=physics.gravity_m_s2,
        restitution=physics.cable_restitution,
    )
    if setup.start.kind == "ground":
        return make(motion_of(system, ground_spawn(system)))
    if setup.start.kind == "air":
        rest, motion = hanging(system, setup.equilibrium, physics.gravity_m_s2)
        return make(motion, rotor_speed_rad_s=trim_speeds_rad_s(system, rest))
    motion = given_motion(system, setup.start)
    try:
        return make(motion)
    except ConfigError as error:
        raise ConfigError(f"start.drones: {error}") from None


def hanging(
    system: SlungLoadSystem, chains: HangingEquilibrium, gravity_m_s2: float
) -> tuple[HangingEquilibrium, Motion]:
    """How a system hangs on massless cables below drones where chains have them.

    Args:
        system: The system.
        chains: Its equilibrium on chains of rigid links.
        gravity_m_s2: Gravity.

    Raises:
        ConfigError: The cables do not reach.
    """
    before = motion_of(freed(system), chains.configuration)
    yaws = yaw_of(before.orientation_wxyz)
    light = weightless(freed(system))
    places = before.position_enu_m[1:]
    rest = hanging_equilibrium(light, places, gravity_m_s2, float(yaws[0]), yaws[1:])
    return rest, motion_of(light, rest.configuration)


def given_motion(system: SlungLoadSystem, start: StartSpec) -> Motion:
    """Motion of load and drones of a start of kind "state".

    Raises:
        ConfigError: The number of drones is wrong.
    """
    if start.load is None or start.drones is None or len(start.drones) != system.n_drones:
        raise ConfigError(f"start.drones must have {system.n_drones} entries")
    bodies = (start.load, *start.drones)
    return Motion(
        np.array([b.position_enu_m for b in bodies], float),
        np.array([b.orientation_wxyz for b in bodies], float),
        np.array([b.velocity_enu_m_s for b in bodies], float),
        np.array([b.omega_body_rad_s for b in bodies], float),
    )
