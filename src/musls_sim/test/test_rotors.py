"""Rotors, and quaternions of rotations, in compiled code."""

import numpy as np

from musls_description.numerics.vectors import from_matrix
from musls_description.system.system_files import load_system
from musls_sim.plants.rigid_body import rotor_records, spin_rotors


def test_rotor_constants_and_signs():
    """x500: k = 8.54858e-6, reaction torque 0.016 m times the thrust, against the spin."""
    table = rotor_records(load_system("x500_trio"))
    assert table.shape == (3, 4)
    assert np.allclose(table["thrust"], 8.54858e-6)
    assert np.allclose((table["torque"] / table["thrust"])[0], [-0.016, -0.016, 0.016, 0.016])


def test_rotor_lag_is_the_exact_exponential():
    rotors = rotor_records(load_system("x500_trio"))[:1]
    speed, command = np.zeros((1, 4)), np.full((1, 4), 800.0)
    for _ in range(5):
        spin_rotors(speed, command, rotors, 0.004)
    assert np.allclose(speed, 800.0 * (1.0 - np.exp(-0.02 / 0.0125)))
    top = speed.copy()
    for _ in range(5):
        spin_rotors(speed, np.zeros((1, 4)), rotors, 0.004)
    assert np.allclose(speed, top * np.exp(-0.02 / 0.025))


def test_quaternions_of_random_rotations():
    from scipy.spatial.transform import Rotation

    for rotation in Rotation.random(200, random_state=3):
        out = from_matrix(rotation.as_matrix())
        expected = rotation.as_quat(canonical=True, scalar_first=True)
        assert np.allclose(out, expected, atol=1e-12)
