"""What to say when a simulation of rigid links fails: the cause and its cure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from musls_sim.plants.bodies import fastest_body
from musls_sim.plants.interface import PlantInputs
from musls_sim.plants.rigid_links.judge import MADE_UP, SPEED_LIMIT_M_S
from musls_sim.plants.rigid_links.stability import stable_step_s
from musls_sim.plants.rigid_links.tables import EXCHANGED, KINETIC, SPURIOUS

if TYPE_CHECKING:
    from musls_sim.plants.rigid_links.dart_plant import DartPlant

WEIGHTS = 20.0
"""Outside forces of so many times the weight of all bodies are named as the cause of a failure."""


def not_finite(plant: DartPlant, inputs: PlantInputs) -> str:
    """Forces that are not finite: names the input."""
    named = [name for name, values in _inputs(inputs) if not np.isfinite(values).all()]
    cause = _too_large(plant, inputs) or f"check {' and '.join(named) or 'rotor commands and wind'}"
    return f"forces are not finite at {plant.time_s:.3f} s: {cause}"


def diagnosis(plant: DartPlant, inputs: PlantInputs, verdict: int) -> str:
    """A state that is not physical any more: names what is wrong, the cause and the cure."""
    cure = _too_large(plant, inputs) or _finer(plant)
    begin = f"simulation diverged at {plant.time_s:.3f} s"
    if verdict == MADE_UP:
        cure = _too_large(plant, inputs) or _calmer(plant)
        return f"{begin}: {_spurious(plant)}; {cure}"
    worst, speed = fastest_body(plant.tables.motion)
    what = "is not finite" if not np.isfinite(speed) else f"moves at {speed:.3g} m/s"
    return f"{begin}: {plant.tree.bodies[worst].name} {what}; {cure}"


def doubtful_energy(plant: DartPlant, inputs: PlantInputs) -> str:
    """Warning: the integration has made a good deal of energy from nothing."""
    cure = _too_large(plant, inputs) or _calmer(plant)
    return f"at {plant.time_s:.3f} s: {_spurious(plant)}; {cure}"


def unresolved(plant: DartPlant, inputs: PlantInputs) -> str:
    """Warning: the finest step is too long for what happens."""
    cure = _too_large(plant, inputs) or _calmer(plant)
    tension = plant.state.tension_peak_n
    cable = int(tension.argmax())
    return (
        f"at {plant.time_s:.3f} s: the finest step of {plant.levels.step_s[-1]:.2g} s is too long "
        f"for what happens (tension of cable_{cable + 1} {tension[cable]:.3g} N, joint rates up to "
        f"{np.abs(plant.velocities[6:]).max():.3g} rad/s), the results are doubtful from here on; "
        f"{cure}"
    )


def _spurious(plant: DartPlant) -> str:
    """Of the run, or of the last second if that is where the share is larger."""
    ledger = plant.tables.ledger
    made, whole = ledger[SPURIOUS], ledger[KINETIC] + ledger[EXCHANGED]
    share = 100.0 * made / max(whole, 1e-9)
    return (
        f"spurious energy: the integration has made {made:.3g} J from nothing, {share:.2g} % of "
        f"the {whole:.3g} J that were exchanged"
    )


def _finer(plant: DartPlant) -> str:
    limit = stable_step_s(plant.system, plant.gravity_m_s2)
    if plant.physics_step_s > limit:
        return f"choose physics.step_size_s: auto (estimated largest stable step {limit:.2g} s)"
    return (
        f"choose a smaller physics.step_size_s (now {plant.physics_step_s:g} s), more "
        "joint damping or fewer links per cable"
    )


def _calmer(plant: DartPlant) -> str:
    """Cures where the step was refined already."""
    if not plant.levels.last:
        return f"{_finer(plant)} (physics.refine: true refines it where needed)"
    return (
        "choose more joint damping (cables.joint.damping_n_m_s_rad), fewer links per cable or a "
        "calmer motion: undamped cables that whip and jerk taut have no time step that is short "
        "enough"
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
    wind = math.hypot(*inputs.wind_enu_m_s)
    if wind > SPEED_LIMIT_M_S:
        return (
            f"the wind of {wind:.3g} m/s is the cause: its drag is too large a force for these "
            f"bodies, and nothing here is made for winds beyond {SPEED_LIMIT_M_S:g} m/s"
        )
    weight = plant.gravity_m_s2 * plant.tables.masses[:, 0].sum()
    for name, values in _inputs(inputs)[2:]:
        force = np.abs(values[:, 3:]).max(axis=1)
        if force.max() > WEIGHTS * weight:
            body = plant.tree.bodies[plant.tables.selected[force.argmax()]].name
            return (
                f"the force of {force.max():.3g} N on {body} ({name}) is the cause: all bodies "
                f"together weigh {weight:.3g} N"
            )
    return ""
