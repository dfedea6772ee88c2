"""Rate control: moments from the error of the body rates and its bounded integral."""

import dataclasses

import numpy as np
import pytest

from musls_control.chain import LARGEST_MISS_RAD, rate_control, rate_moments
from musls_description.system.system_files import load_system

PERIOD_S = 0.004


@pytest.mark.parametrize("periods", [1, 10, 400])
def test_moments_follow_their_formula(periods):
    """J (K e + K^2 / 8 int e) + w x J w with an error that stays, up to the largest integral."""
    drone = load_system("x500_trio_swivel").drones[0]
    inertia = np.array([[0.02, 0.001, 0.0], [0.001, 0.03, 0.002], [0.0, 0.002, 0.04]])
    drone = dataclasses.replace(drone, inertia_kg_m2=inertia)
    drones, moment = rate_control([drone]), np.zeros((1, 3))
    omega, error = np.array([1.0, -2.0, 0.5]), np.array([0.2, -0.3, 1.0])
    for _ in range(periods):
        rate_moments(drones, (omega + error)[None], omega[None], PERIOD_S, moment)
    k = drones["gain"][0]
    assert k[0] == k[1] == 2.0 * k[2] > 0.0
    missed = np.clip(periods * PERIOD_S * error, -LARGEST_MISS_RAD, LARGEST_MISS_RAD)
    expected = inertia @ (k * error + k**2 / 8.0 * missed) + np.cross(omega, inertia @ omega)
    assert moment[0] == pytest.approx(expected, rel=1e-9)
