"""Builds the parts of a flight from its scenario: plant, autopilot and estimator."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from musls_control.autopilot import Autopilot
from musls_description.spawn import ground_spawn
from musls_sim.plants.rigid_links.dart_plant import DartPlant
from musls_sim.physics import CONTROL_PERIOD_S
from musls_sim.plants.rigid_links.stability import (
    ENGAGEMENT_MARGIN,
    TENSION_MARGIN,
    stable_step_s,
    substeps,
)
from musls_sim.scenario import Scenario
from musls_sim.sensors.estimation import Estimator, MotionCapture, Truth, TruthSpec
from musls_sim.preflight.airframe import build_autopilot
from musls_sim.preflight.checks import Hover
from musls_sim.preflight.trim import trim_speeds_rad_s, trim_throttle


def build_plant(scenario: Scenario, hover: Hover) -> DartPlant:
    """Build the physics, standing on the ground or hanging in the air.

    Args:
        scenario: System, start and physics.
        hover: How the system hangs in formation.

    Raises:
        ConfigError: The scenario cannot work.
    """
    in_air = scenario.start == "air"
    step = scenario.physics.step_size_s
    equilibrium = hover.equilibrium
    return DartPlant(
        scenario.system,
        equilibrium.configuration if in_air else ground_spawn(scenario.system),
        physics_step_s=auto_step_s(scenario) if step == "auto" else step,
        gravity_m_s2=scenario.physics.gravity_m_s2,
        exact_friction=scenario.physics.exact_friction,
        refine=scenario.physics.refine,
        rotor_speed_rad_s=trim_speeds_rad_s(scenario.system, equilibrium) if in_air else None,
    )


def auto_step_s(scenario: Scenario) -> float:
    """Largest step that is an integer part of the period and holds the mission's tensions."""
    jerks = any(stage.jerks_cables for stage in scenario.mission.stages)
    margin = ENGAGEMENT_MARGIN if jerks else TENSION_MARGIN
    limit = stable_step_s(scenario.system, scenario.physics.gravity_m_s2, margin)
    return CONTROL_PERIOD_S / substeps(limit)


def build_estimator(
    scenario: Scenario, plant: DartPlant, generator: np.random.Generator
) -> Estimator:
    """Build what the drones know of their state.

    Args:
        scenario: Estimation and gravity.
        plant: Whose state it is.
        generator: Source of its noise.
    """
    if isinstance(scenario.estimation, TruthSpec):
        return Truth(plant.state)
    return MotionCapture(
        scenario.estimation,
        plant.state,
        plant.period_s,
        scenario.physics.gravity_m_s2,
        generator,
    )


def build_flight_stack(
    scenario: Scenario,
    hover: Hover,
    plant: DartPlant,
    logs: Path,
    generators: tuple[np.random.Generator, np.random.Generator],
) -> tuple[Autopilot, Estimator]:
    """Build who flies and what he is told of the drones' state.

    Args:
        scenario: Autopilot, estimation, sensors, start.
        hover: How the system hangs in formation.
        plant: Whose state it is.
        logs: Folder for what real autopilots print.
        generators: Sources of the noise of `estimation` and of a real PX4's sensors.

    Raises:
        ConfigError: The autopilot cannot fly this.
        Px4Error: A real PX4 is asked for and there is none.
    """
    if scenario.autopilot.kind == "px4":
        from musls_sim.px4.build import build_px4  # pymavlink is slow to import

        # The truth: PX4 has sensors and an estimator of its own.
        return build_px4(scenario, hover, logs, generators[1]), Truth(plant.state)
    autopilot = build_autopilot(scenario)
    if scenario.start == "air":
        thrust = hover.equilibrium.drone_force_n
        autopilot.trim(
            trim_throttle(scenario.system, plant.state.rotor_speed_rad_s),
            thrust / np.linalg.norm(thrust, axis=1, keepdims=True),
        )
    return autopilot, build_estimator(scenario, plant, generators[0])
