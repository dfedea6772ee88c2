"""Wrenches, changes and prescribed motion as inputs of the rigid-link plant."""

import re

import numpy as np
import pytest
from plant_helpers import advance, hovering_plant, momenta, trio
from scipy.spatial.transform import Rotation

from musls_description.config.errors import ConfigError
from musls_sim.plants.interface import (
    Change,
    PlantInputs,
    PrescribedMotion,
    RotorEfficiency,
    SimulationDiverged,
)


def floating_plant():
    """The trio in free space: no gravity, no ground, rotors at rest."""
    plant, _, _ = hovering_plant(trio(), ground_height_enu_m=None, physics_step_s=0.001)
    plant.state.rotor_speed_rad_s[:] = 0.0
    plant.records.system["gravity"] = 0.0
    return plant, PlantInputs.zeros(plant.system)


@pytest.mark.filterwarnings("ignore:.*lost energy")  # gravity was taken away by hand
@pytest.mark.parametrize("row", [0, 2])
def test_wrench_in_the_world_frame_gives_its_impulse(row):
    """Momentum grows by force x time, angular momentum by moment x time, whatever the cables do."""
    plant, inputs = floating_plant()
    inputs.wrench_enu[row] = [0.02, -0.01, 0.03, 0.5, -0.3, 0.8]
    center = np.zeros(3)
    for _ in range(25):
        bodies = plant.records.bodies
        com = np.einsum("kij,kj->ki", bodies["rotation"], bodies["com"]) + bodies["position"]
        center = bodies["mass"] @ com / bodies["mass"].sum()
        arm = plant.state.position_enu_m[row] - center
        before = momenta(plant)
        plant.step(inputs)
        linear, angular = momenta(plant)
        force, moment = inputs.wrench_enu[row, 3:], inputs.wrench_enu[row, :3]
        assert np.allclose(linear - before[0], plant.period_s * force, atol=2e-5)
        expected = plant.period_s * (moment + np.cross(arm, force))
        assert np.allclose(angular - before[1], expected, atol=1e-4)


def test_wrench_in_the_body_frame_turns_with_the_body():
    """The same trajectory as with the wrench turned by hand into the world frame, or nearly.

    By hand it is turned at the begin of a step.
    """
    records = []
    for frame in ("body", "world"):
        plant, speeds, _ = hovering_plant(trio(), physics_step_s=0.004)
        inputs = PlantInputs.zeros(plant.system)
        inputs.rotor_command_rad_s[:] = speeds
        wrench = np.array([0.01, 0.02, 0.005, 0.3, 0.2, -0.1])
        for _ in range(50):
            if frame == "body":
                inputs.wrench_body[2] = wrench
            else:
                turn = Rotation.from_quat(plant.state.orientation_wxyz[2], scalar_first=True)
                inputs.wrench_enu[2] = turn.apply(wrench.reshape(2, 3)).ravel()
            plant.step(inputs)
        records.append(plant.state.motion.copy())
    assert np.abs(records[0][2, 6:10] - records[0][1, 6:10]).max() > 0.01, "it must turn"
    assert np.allclose(*records, atol=5e-3)


def test_thrust_as_a_wrench_carries_like_the_rotors():
    plant, _, rest = hovering_plant(trio(), physics_step_s=0.004)
    plant.state.rotor_speed_rad_s[:] = 0.0
    inputs = PlantInputs.zeros(plant.system)
    inputs.wrench_body[1:, 5] = np.linalg.norm(rest.drone_force_n, axis=1)
    inputs.wrench_body[1:, :3] = rest.drone_moment_n_m
    start = plant.state.position_enu_m.copy()
    for _ in range(50):
        plant.step(inputs)
    assert np.allclose(plant.state.position_enu_m, start, atol=1e-3)


def test_rotor_that_fails_takes_its_thrust_and_torque():
    plant, speeds, _ = hovering_plant(trio())
    intact = plant.records.rotors.view(float).reshape(3, 4, 8).copy()
    plant.apply(RotorEfficiency(2, 3, 0.5))
    plant.apply(RotorEfficiency(2, 3, 0.5))  # counts from the intact rotor
    rotors = plant.records.rotors.view(float).reshape(3, 4, 8)
    assert np.allclose(rotors[1, 2, 3:5], 0.5 * intact[1, 2, 3:5])
    plant.apply(RotorEfficiency(1, None, 0.0))
    assert not rotors[0, :, 3:5].any()
    unchanged = np.ones(intact.shape, bool)
    unchanged[1, 2, 3:5] = unchanged[0, :, 3:5] = False
    assert (rotors[unchanged] == intact[unchanged]).all()
    for _ in range(25):
        advance(plant, speeds)
    assert plant.state.acceleration_enu_m_s2[1, 2] < -1.0, "the drone without thrust must sink"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (RotorEfficiency(4, 1, 0.5), "drones 1 to 3"),
        (RotorEfficiency(1, 5, 0.5), "rotors 1 to 4"),
        (RotorEfficiency(1, 1, 1.5), "between 0 and 1"),
        (RotorEfficiency(1, 1, np.nan), "between 0 and 1"),
        (Change(), "no cable model can"),
    ],
)
def test_changes_that_cannot_be_made_say_why(change, named):
    plant, _, _ = hovering_plant(trio())
    with pytest.raises(ConfigError, match=named):
        plant.apply(change)


def test_a_change_that_another_model_makes_names_it():
    class CableBreak(Change):
        cable_models = ("elastic", "massless")

    plant, _, _ = hovering_plant(trio())
    with pytest.raises(ConfigError, match="choose cable_model: elastic or massless"):
        plant.apply(CableBreak())


def test_drones_can_be_held_and_let_go():
    """Prescribed motion is an input like any other: hold, then fly on from there."""
    plant, _, _ = hovering_plant(trio())
    held = plant.state.position_enu_m[1:].copy(), plant.state.orientation_wxyz[1:].copy()
    inputs = PlantInputs.zeros(plant.system)
    inputs.motion = PrescribedMotion(lambda time_s: held)
    inputs.wrench_enu[0, 3:] = [0.0, 2.0, 0.0]
    for _ in range(50):
        plant.step(inputs)
        assert np.allclose(plant.state.position_enu_m[1:], held[0], atol=1e-6)
    assert plant.state.velocity_enu_m_s[0, 1] > 0.1
    audit = plant.reaction.audit
    assert audit.work_j > 0.005 and abs(audit.missing_j) < 0.02 * audit.absolute_work_j
    inputs.motion = None
    for _ in range(50):
        plant.step(inputs)
    assert (plant.state.position_enu_m[1:, 2] < held[0][:, 2] - 0.05).all(), "they must fall"


@pytest.mark.filterwarnings("ignore:at .* s. the finest:UserWarning")
@pytest.mark.parametrize("speed", [1e5, 1e200])
def test_a_storm_is_named_as_the_cause(speed):
    plant, speeds, _ = hovering_plant(trio())
    with pytest.raises(SimulationDiverged) as error:
        for _ in range(250):
            advance(plant, speeds, [speed, 0.0, 0.0])
    assert f"the wind of {speed:.3g} m/s" in str(error.value)
    assert "step_size" not in str(error.value)


@pytest.mark.filterwarnings("ignore:at .* s. the finest:UserWarning")
def test_a_giant_push_is_named_as_the_cause():
    plant, _, _ = hovering_plant(trio())
    inputs = PlantInputs.zeros(plant.system)
    inputs.wrench_enu[0, 3] = 1e7
    with pytest.raises(SimulationDiverged, match=re.escape("1e+07 N on load (wrench_enu)")):
        for _ in range(250):
            plant.step(inputs)
