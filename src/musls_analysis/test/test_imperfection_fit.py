"""Identification of drone imperfections: linear answers, intervals, the turning frame."""

from dataclasses import replace

import numpy as np
import pytest

from musls_analysis.estimation.drones import (
    StageModel,
    displacements,
    excess_deviation,
    heights_that_carry_over,
)
from musls_analysis.estimation.estimator import fitted_linear, units_of
from musls_analysis.paper.flights import turning_frame

PX4 = {"MPC_XY_P": 0.95, "MPC_XY_VEL_P_ACC": 1.8, "MPC_XY_VEL_I_ACC": 0.4, "MPC_XY_VEL_D_ACC": 0.2}
RATE = 0.2
"""Of the yaw in the circle [rad/s]."""


def answer(yaw_rate, seconds=200.0):
    t = np.arange(0.0, seconds, 0.05)
    return t, displacements(t, yaw_rate * t, PX4, 0.0)


def test_the_integrator_takes_up_what_stands_and_not_what_turns():
    """Standing: nothing is left. Turning: the transfer function at the rate of the turn."""
    _, standing = answer(0.0)
    assert np.abs(standing[:, -1]).max() < 1e-6
    _, turning = answer(RATE)
    s = 1j * RATE
    loop = 1.2 * s**3 + 1.8 * s**2 + (1.8 * 0.95 + 0.4) * s + 0.4 * 0.95
    radius = np.hypot(*turning[0, -1])
    assert radius == pytest.approx(abs(s / loop), rel=1e-3)
    assert radius == pytest.approx(0.4, abs=0.05)  # 3 degrees of tilt, 0.5 m/s2, are 0.2 m


def test_what_is_behind_and_outside_in_a_turn_is_found_behind_and_outside():
    angle = np.linspace(0.0, 2.0 * np.pi, 50)
    azimuths = np.array([0.0, 2.0, 4.0])[:, None] + angle
    wanted = np.stack([np.cos(azimuths), np.sin(azimuths), 0.0 * azimuths], axis=-1)
    late = 0.9 * np.stack([np.cos(azimuths - 0.3), np.sin(azimuths - 0.3), 0 * azimuths], axis=-1)
    mean = wanted.mean(axis=0)
    found = turning_frame(late + [3.0, 1.0, 2.0], wanted)
    own = late - late.mean(axis=0)
    away = wanted - mean
    away /= np.linalg.norm(away, axis=-1, keepdims=True)
    np.testing.assert_allclose(found[..., 0], np.sum(own * away, axis=-1), atol=1e-12)
    assert (found[..., 1] < 0.0).mean() > 0.9  # behind


def turning_answer():
    """Sensitivities of one drone in a circle, (phases, coordinates, parameters)."""
    t, answers = answer(RATE, 100.0)
    phase = np.linspace(60.0, 60.0 + 2 * np.pi / RATE, 60, endpoint=False)
    rows = np.array([[np.interp(phase, t, answers[a, :, k]) for k in range(2)] for a in range(2)])
    return np.moveaxis(rows, [0, 1, 2], [2, 1, 0])


def made_up(rows, generator, truth, cycles):
    """Units of one drone in circles: noise of every cycle, and within it correlated over time."""
    noise = 0.02 * generator.standard_normal((cycles, 1, 2))
    walk = np.cumsum(generator.standard_normal((cycles, 60, 2)), axis=1)
    noise = noise + 0.004 * (walk - walk.mean(axis=1, keepdims=True))
    return units_of("circle", rows, rows @ truth + noise)


@pytest.mark.parametrize("cycles", [6, 12])
def test_intervals_of_90_per_cent_hold_so_often(cycles):
    """Made-up flights with as many cycles as the authors' have."""
    generator = np.random.default_rng(5)
    truth, held, rows = np.array([0.3, -0.2]), [], turning_answer()
    for _ in range(250):
        found = fitted_linear(made_up(rows, generator, truth, cycles), np.full(2, 5.0))
        held.append((found.low <= truth) & (truth <= found.high))
    assert 0.85 <= np.mean(held) <= 0.95


def test_parameters_that_do_the_same_are_named_and_the_prior_holds_them():
    rows = np.random.default_rng(0).standard_normal((60, 2, 1)) * [[[1.0, 1.0, 0.0]]]
    noise = 0.1 * np.random.default_rng(1).standard_normal((8, 60, 2))
    found = fitted_linear(
        units_of("shm", rows, rows @ np.array([1.0, 1.0, 0.0]) + noise), np.ones(3)
    )
    assert found.value[:2] == pytest.approx([1.0, 1.0], abs=0.02)  # their sum, shared
    assert found.value[2] == 0.0  # nothing is said about it
    assert found.uncertainty.alike == ((0, 1),)
    assert found.uncertainty.correlation[0, 1] == pytest.approx(1.0, abs=1e-6)


def test_a_height_of_one_flight_that_another_does_not_have_does_not_carry_over():
    """Drone 1 is 30 mm high in all recordings, drone 2 +30 mm in one flight, -30 in another."""
    generator = np.random.default_rng(3)
    none = np.zeros(0)
    models = []
    for stage in ("circle", "shm", "engage"):
        high = [[0.03, 0.03], [0.03, -0.03]] + 0.005 * generator.standard_normal((2, 2))
        above = np.broadcast_to(high[:, None], (2, 60, 2))  # (flights, phases, drones)
        models.append(StageModel(stage, none, none, none, above, above, above, np.arange(2)))
    assert heights_that_carry_over(models).tolist() == [True, False]
    assert heights_that_carry_over([replace(models[0], recording=np.zeros(2, int))]).all()


def test_what_differs_from_recording_to_recording_is_told_from_what_is_not_known():
    """Six recordings of 2000 parameters, which differ by 0.05 and are known to 0.02 to 0.06."""
    generator = np.random.default_rng(4)
    known = np.broadcast_to(np.linspace(0.02, 0.06, 6)[:, None], (6, 2000))
    noise, own = generator.standard_normal((2, 6, 2000))
    found = excess_deviation(0.05 * own + known * noise, known)
    assert np.sqrt(np.mean(found**2)) == pytest.approx(0.05, rel=0.05)
    assert np.sqrt(np.mean(excess_deviation(known * noise, known) ** 2)) < 0.02
