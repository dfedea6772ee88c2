"""Linear models against closed forms and against the motion of the plants themselves."""

from dataclasses import replace

import numpy as np
import pytest
from massless_rigs import level, pair
from scipy.linalg import expm

import musls
from musls_analysis.linear import linear_model
from musls_description.config.errors import ConfigError
from musls_sim.plants.interface import PlantInputs
from musls_sim.session.session import Session

M, ML, L, G = 0.25, 0.07, 0.5, 9.81
HOVER = (M + ML) * G


def test_a_single_slung_load_has_the_matrices_of_the_textbook():
    system = pair()
    plant = level(system, [[0, 0, 0], [0, 0, L]])
    held = PlantInputs.zeros(system)
    held.wrench_body[1, 5] = HOVER
    model = linear_model(plant, system, held, "forces")
    at = {name: k for k, name in enumerate(model.states)}
    u = {name.removeprefix("drone_1 "): k for k, name in enumerate(model.inputs)}
    inertia = np.array(system.drones[0].inertia_kg_m2)
    A, B = np.zeros_like(model.A), np.zeros_like(model.B)
    half = len(at) // 2
    A[:half, half:] = np.eye(half)
    # Cable angle a leans to x, b to y; the thrust leans to x by turn_y, to -y by turn_x.
    for axis, angle, turn, sign in (("x", "a", "turn_y", 1.0), ("y", "b", "turn_x", -1.0)):
        A[at[f"load p_{axis} rate"], at[f"cable_1 {angle}"]] = G
        A[at[f"cable_1 {angle} rate"], at[f"cable_1 {angle}"]] = -HOVER / M / L
        A[at[f"cable_1 {angle} rate"], at[f"drone_1 {turn}"]] = sign * HOVER / M / L
    B[at["load p_z rate"], u["thrust_n"]] = 1.0 / (M + ML)
    for k, axis in enumerate("xyz"):
        for j, other in enumerate("xyz"):
            column = u[f"moment_{other}_n_m"]
            B[at[f"drone_1 turn_{axis} rate"], column] = np.linalg.inv(inertia)[k, j]
    np.testing.assert_allclose(model.A, A, atol=1e-6 * np.abs(A).max())
    np.testing.assert_allclose(model.B, B, atol=1e-6 * np.abs(B).max())
    assert np.abs(model.residual).max() < 1e-9 and model.kinked == ()
    row = model.outputs.index("cable_1 tension_n")
    assert model.D[row, u["thrust_n"]] == pytest.approx(ML / (M + ML), rel=1e-6)
    place = model.outputs.index("drone_1 p_x")
    assert model.C[place, at["cable_1 a"]] == pytest.approx(L, rel=1e-6)
    swings = [mode for mode in model.modes if mode.name == "pendulum"]
    assert [mode.eigenvalue.imag for mode in swings] == pytest.approx(
        [np.sqrt(HOVER / M / L)] * 2, rel=1e-6
    )


@pytest.mark.parametrize(
    "change",
    [
        {"cable_model": "massless"},
        {"system.cables.links": 3, "physics.step_size_s": 1e-4},
        {"cable_model": "rigid_rods"},
    ],
)
def test_the_plants_own_small_motion_follows_the_linear_model(change):
    scenario = musls.load_scenario("circle", {"start": "air", **change})
    with Session(scenario) as session:
        plant, held = session.plant, session.inputs
        held.rotor_command_rad_s[:] = session.state.rotor_speed_rad_s
        model = linear_model(plant, scenario.system, held, "forces")
        local, rng, half = plant.local_state(), np.random.default_rng(1), len(model.states) // 2
        first = rng.standard_normal(2 * half) * 1e-5
        push = rng.standard_normal(len(model.inputs)) * 1e-5
        local.move(first[:half], first[half:])
        held.wrench_body[1:, 5] += push.reshape(-1, 4)[:, 0]
        held.wrench_body[1:, :3] += push.reshape(-1, 4)[:, 1:]
        for _ in range(50):
            plant.step(held)
        moved = np.concatenate(local.read())
    grown = np.zeros((2 * half + 1, 2 * half + 1))
    grown[:-1, :-1], grown[:-1, -1] = model.A, model.B @ push + model.residual
    expected = (expm(0.2 * grown) @ np.append(first, 1.0))[:-1]
    # What is left is of second order in the deviations, and the plant's own step error.
    np.testing.assert_allclose(moved, expected, atol=3e-3 * np.abs(expected).max())


def test_modes_of_the_trio_agree_between_massless_and_light_rigid_cables():
    yaw = []
    for change in ({"cable_model": "massless"}, {"system.cables.links": 1}):
        model = musls.linearise(
            musls.load_scenario("circle", {"system.cables.mass_kg": 1e-4, **change}),
            inputs="forces",
        )
        swings = [m for m in model.modes if m.name == "yaw" and m.frequency_hz > 0.5]
        yaw.append(swings[0].frequency_hz)
    assert yaw[1] == pytest.approx(yaw[0], rel=0.01)


def test_rotors_that_speed_up_faster_than_they_slow_down_are_named():
    model = musls.linearise(musls.load_scenario("solo", {"cable_model": "massless"}))
    rotors = {name for name in model.states + model.inputs if "rotor" in name}
    assert set(model.kinked) == rotors
    drone = musls.load_scenario("solo").system.drones[0].rotors[0]
    mean = 0.5 * (1.0 / drone.time_constant_up_s + 1.0 / drone.time_constant_down_s)
    lag = [mode.eigenvalue.real for mode in model.modes if mode.name == "rotor"]
    assert lag == pytest.approx([-mean] * 4, rel=1e-3)


def test_what_has_no_linear_model_says_so():
    circle = musls.load_scenario("circle")
    with pytest.raises(ConfigError, match="elastic: no linear model; choose rigid_links"):
        musls.linearise(musls.load_scenario("circle_elastic"))
    with pytest.raises(
        ConfigError, match="inputs = 'torques' is unknown: allowed are rotor_speeds"
    ):
        musls.linearise(circle, inputs="torques")
    with pytest.raises(ConfigError, match="at = -1: a time of the flight is 0 s or later"):
        musls.linearise(circle, at=-1.0)
    ground = replace(circle, cable_model="massless")
    with pytest.raises(ConfigError, match=r"cable_1 is slack at 0\.100 s"):
        musls.linearise(ground, at=0.1)
