"""What is wrong where a period of rigid links is doubted: the message, the cause, and what helps.

What helps is tried: the plant flies on from where the doubt arose, a while for each remedy, with
its inputs held; the message names those that at least halve what the integration makes of itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from musls_description.hanging.tree import STOP_RAD
from musls_description.numerics.arrays import Array
from musls_sim.plants.interface import SPEED_LIMIT_M_S, PlantInputs
from musls_sim.plants.rigid_body import fastest_body
from musls_sim.plants.rigid_links.period import (
    AT_STOP,
    MEMORY_S,
    NOT_FINITE,
    RUNAWAY,
    SPURIOUS_ENERGY,
    TOO_COARSE,
    move_plant,
    restart,
)

if TYPE_CHECKING:
    from musls_sim.plants.rigid_links.plant import RigidLinksPlant

WEIGHTS = 20.0
"""Outside forces of so many times the weight of all bodies are named as the cause of a failure."""

MOST_GUIDED = 3
"""With more taut cables, the places of drones on paths may ask for lengths that no pose has."""

TRIAL_PERIODS = 60
"""Control periods for which a remedy is tried, a quarter of a second."""

HELPS = 0.5
"""Share of the error of the untouched plant that a remedy may leave."""


def message(plant: RigidLinksPlant, inputs: PlantInputs, verdict: int) -> str:
    """What is wrong at a verdict of `period`, the cause, and what would cure it."""
    when, t = f"at {plant.time_s:.3f} s", plant.records
    if verdict == AT_STOP:  # nothing holds a rope so
        return (
            f"{when}: the cable below {plant.tree.bodies[int(t.system[0]['stopped'])].name} is "
            f"bent sideways by {np.degrees(STOP_RAD):.0f} degrees, and the stop of its universal "
            "joint throws it back; choose twist: free, whose joints have no stops, or more links "
            "per cable"
        )
    cause = _cause(plant, inputs)
    if verdict == NOT_FINITE:
        return f"forces are not finite {when}: {cause or _jam(plant)}"
    if verdict == RUNAWAY:
        worst, speed = fastest_body(t.bodies)
        what = "is not finite" if not np.isfinite(speed) else f"moves at {speed:.3g} m/s"
        name = plant.tree.bodies[worst].name
        return f"simulation diverged {when}: {name} {what}; {cause or _calmer(plant)}"
    if verdict == TOO_COARSE:
        tension = plant.state.tension_peak_n
        cable = int(tension.argmax())
        return (
            f"{when}: the finest step of {plant.levels.step_s[-1]:.2g} s is too long for what "
            f"happens (tension of cable_{cable + 1} {tension[cable]:.3g} N, joint rates up to "
            f"{np.abs(plant.velocities[6:]).max():.3g} rad/s), the results are doubtful from here "
            f"on; {cause or remedies(plant, inputs)}"
        )
    diverged = "simulation diverged " * (verdict == SPURIOUS_ENERGY)
    return f"{diverged}{when}: {_error(plant)}; {cause or remedies(plant, inputs)}"


def _error(plant: RigidLinksPlant) -> str:
    """The largest error of the integration: energy made or lost, or impulse without a source."""
    ledger = plant.records.system[0]["ledger"]
    exchanged_j = ledger["kinetic"] + ledger["exchanged"]
    energies = {"made": ledger["spurious"], "lost": ledger["lost"]}
    kind = max(energies, key=lambda name: energies[name])
    energy_share = energies[kind] / max(exchanged_j, 1e-9)
    force_n = float(np.linalg.norm(ledger["recent_impulse"])) / MEMORY_S
    force_share = force_n / _weight_n(plant)
    if force_share > energy_share:
        return (
            f"impulse without a source: the integration pulls with {force_n:.3g} N, "
            f"{100.0 * force_share:.2g} % of the weight"
        )
    what = f"spurious energy: the integration has made {energies[kind]:.3g} J from nothing"
    if kind == "lost":
        what = f"lost energy: {energies[kind]:.3g} J went in the integration"
    return f"{what}, {100.0 * energy_share:.2g} % of the {exchanged_j:.3g} J that were exchanged"


# ---------- Remedies


def remedies(plant: RigidLinksPlant, inputs: PlantInputs) -> str:
    """The remedies that help here, found by trying them; or that none does."""
    if plant.records.system[0]["guided"]:
        return _calmer(plant)
    error = _error_of_trial(plant, inputs, plant.substeps)
    helpful = []
    if _more_damping(plant) is not None:
        with _damped(plant):
            if _error_of_trial(plant, inputs, plant.substeps) < HELPS * error:
                helpful.append("leave out system.cables.joint (usual damping of its joints)")
    if _error_of_trial(plant, inputs, 2 * plant.substeps) < HELPS * error:
        helpful.append(f"physics.step_size_s: {plant.physics_step_s / 2.0:g}")
    if helpful:
        return f"what helps here: {', or '.join(helpful)}"
    return f"{_bare(plant)}neither usual joint damping nor half the step helps here: {_others()}"


def _others() -> str:
    return "choose a calmer motion, or cable_model: elastic"


def _error_of_trial(plant: RigidLinksPlant, inputs: PlantInputs, substeps: int) -> float:
    """Energy made or lost, and work of forces without a source, in a trial; the plant goes back."""
    memory, levels = plant.memory.copy(), plant.levels.record.copy()
    trial = levels.copy()
    trial["substeps"] = substeps
    try:
        restart(plant.address)
        for _ in range(TRIAL_PERIODS):
            if plant._move(move_plant, inputs, levels=trial) in (RUNAWAY, NOT_FINITE):
                return math.inf
        ledger = plant.records.system[0]["ledger"]
        lift_j = float(np.linalg.norm(ledger["recent_impulse"])) * plant.gravity_m_s2
        return float(ledger["spurious"] + ledger["lost"]) + lift_j
    finally:
        plant.memory[:], plant.levels.record[:] = memory, levels


def _more_damping(plant: RigidLinksPlant) -> Array | None:
    """Damping of all coordinates with at least the usual one in cables; None if they have it."""
    t, damping = plant.records, plant.records.coordinates["damping"].copy()
    for body in t.bodies[1:]:
        joint = slice(int(body["first"]), int(body["first"] + body["freedom"]))
        if body["parent"] >= 0:
            usual = plant.system.cables[int(body["cable"])].usual_joint_damping_n_m_s_rad
            damping[joint] = np.maximum(damping[joint], usual)
    return None if np.array_equal(damping, t.coordinates["damping"]) else damping


@contextmanager
def _damped(plant: RigidLinksPlant) -> Iterator[None]:
    """The plant with at least the usual damping in its joints."""
    own = plant.records.coordinates["damping"].copy()
    plant.records.coordinates["damping"] = _more_damping(plant)
    try:
        yield
    finally:
        plant.records.coordinates["damping"] = own


def _calmer(plant: RigidLinksPlant) -> str:
    """Cures where the state is beyond a trial; a shorter step is one only where none is refined."""
    if not plant.levels.last:
        return (
            f"choose a smaller physics.step_size_s (now {plant.physics_step_s:g} s), or "
            "physics.refine: true, which halves it where needed"
        )
    return f"{_bare(plant)}{_others()}"


def _bare(plant: RigidLinksPlant) -> str:
    """That joints without damping are the cause, if they are."""
    bare = [k for k, c in enumerate(plant.system.cables, start=1) if c.is_hardly_damped]
    if not bare:
        return ""
    return (
        f"the joints of cable_{bare[0]} have hardly any damping "
        f"({plant.system.cables[bare[0] - 1].joint_damping_n_m_s_rad:.2g} N m s/rad), and for a "
        "chain that cracks like a whip no time step is short enough; "
    )


# ---------- Causes


def _jam(plant: RigidLinksPlant) -> str:
    """Cause of forces that are not finite where all inputs are."""
    if plant.records.system[0]["guided"] and plant.system.n_drones > MOST_GUIDED:
        return (
            f"{plant.system.n_drones} taut cables that do not stretch seldom fit drones on "
            "given paths; choose cable model elastic or massless"
        )
    if _bare(plant):
        return _calmer(plant)
    jammed = "cables that jam in contact (physics.contact), or " * ("cables" in plant.contact)
    return f"{jammed}joints beyond their stops; {_calmer(plant)}"


def _cause(plant: RigidLinksPlant, inputs: PlantInputs) -> str:
    """The input that is no number, or that no time step could follow; empty if there is none."""
    values = {
        "rotor commands": inputs.rotor_command_rad_s,
        "wind": inputs.wind_enu_m_s,
        "wrench_body": inputs.wrench_body,
        "wrench_enu": inputs.wrench_enu,
    }
    if names := [name for name, numbers in values.items() if not np.isfinite(numbers).all()]:
        return f"check {' and '.join(names)}"
    wind = math.hypot(*inputs.wind_enu_m_s)
    if wind > SPEED_LIMIT_M_S:
        return (
            f"the wind of {wind:.3g} m/s is the cause: its drag is too large a force for these "
            f"bodies, and nothing here is made for winds beyond {SPEED_LIMIT_M_S:g} m/s"
        )
    weight_n = plant.gravity_m_s2 * plant.records.bodies["mass"].sum()
    for name in ("wrench_body", "wrench_enu"):
        force = np.abs(values[name][:, 3:]).max(axis=1)
        if force.max() > WEIGHTS * weight_n:
            body = plant.tree.bodies[plant.records.selected[force.argmax()]].name
            return (
                f"the force of {force.max():.3g} N on {body} ({name}) is the cause: all bodies "
                f"together weigh {weight_n:.3g} N"
            )
    return ""


def _weight_n(plant: RigidLinksPlant) -> float:
    """Weight by which forces without a source count, that of Earth where there is no gravity."""
    return float(plant.levels.limits["weight"][0, 0])
