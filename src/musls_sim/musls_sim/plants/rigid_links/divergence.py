"""What to say when a simulation of rigid links fails: the cause and its cure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from musls_sim.plants.bodies import fastest_body
from musls_sim.plants.interface import PlantInputs
from musls_sim.plants.rigid_links.judge import SPEED_LIMIT_M_S
from musls_sim.plants.rigid_links.stability import stable_step_s

if TYPE_CHECKING:
    from musls_sim.plants.rigid_links.dart_plant import DartPlant

WEIGHTS = 20.0
"""Outside forces of so many times the weight of all bodies are named as the cause of a failure."""


def not_finite(plant: DartPlant, inputs: PlantInputs) -> str:
    """Forces that are not finite: names the input."""
    named = [name for name, values in _inputs(inputs) if not np.isfinite(values).all()]
    cause = _too_large(plant, inputs) or f"check {' and '.join(named) or 'rotor commands and wind'}"
    return f"forces are not finite at {plant.time_s:.3f} s: {cause}"


def diagnosis(plant: DartPlant, inputs: PlantInputs) -> str:
    """A state that is not physical any more: names the body, the cause and the cure."""
    worst, speed = fastest_body(plant.tables.motion)
    what = "is not finite" if not np.isfinite(speed) else f"moves at {speed:.3g} m/s"
    cure = _too_large(plant, inputs) or _finer(plant)
    return (
        f"simulation diverged at {plant.time_s:.3f} s: {plant.tree.bodies[worst].name} "
        f"{what}; {cure}"
    )


def _finer(plant: DartPlant) -> str:
    limit = stable_step_s(plant.system, plant.gravity_m_s2)
    if plant.physics_step_s > limit:
        return f"choose physics.step_size_s: auto (estimated largest stable step {limit:.2g} s)"
    return (
        f"choose a smaller physics.step_size_s (now {plant.physics_step_s:g} s), more "
        "joint damping or fewer links per cable"
    )


def _inputs(inputs: PlantInputs) -> list[tuple[str, np.ndarray]]:
    return [
        ("rotor commands", inputs.rotor_command_rad_s),
        ("wind", inputs.wind_enu_m_s),
        ("wrench_body", inputs.wrench_body),
        ("wrench_enu", inputs.wrench_enu),
    ]


def _too_large(plant: DartPlant, inputs: PlantInputs) -> str:
    """The input that no time step could follow, empty if there is none."""
    wind = float(np.linalg.norm(inputs.wind_enu_m_s))
    if wind > SPEED_LIMIT_M_S:
        return (
            f"the wind of {wind:.3g} m/s is the cause: its drag is too large a force for these "
            f"bodies, and nothing here is made for winds beyond {SPEED_LIMIT_M_S:g} m/s"
        )
    weight = plant.gravity_m_s2 * plant.tables.masses[:, 0].sum()
    for name, values in _inputs(inputs)[2:]:
        force = np.linalg.norm(values[:, 3:], axis=1)
        if force.max() > WEIGHTS * weight:
            body = plant.tree.bodies[plant.tables.selected[force.argmax()]].name
            return (
                f"the force of {force.max():.3g} N on {body} ({name}) is the cause: all bodies "
                f"together weigh {weight:.3g} N"
            )
    return ""
