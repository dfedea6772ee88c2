"""Incremental control: what was not counted on is found, smoothed by a Butterworth filter."""

import numpy as np
import pytest
from scipy.signal import butter, lfilter
from scipy.spatial.transform import Rotation

from musls_control.chain import CUT_OFF_HZ, Incremental, RotorMixer, measure
from musls_control.estimate import Estimate
from musls_description.system.system_files import load_system

PERIOD_S = 0.004
GRAVITY = np.array([0.0, 0.0, -9.81])


@pytest.fixture(scope="module")
def drone():
    return load_system("x500_trio_swivel").drones[0]


def measured_once(measured, command, motion, speeds):
    measure(measured.drones, motion.records, speeds, measured.wrench, command, PERIOD_S)


def test_the_difference_is_found_through_the_filter(drone):
    """Any motion: force and moment that no rotor gave, as SciPy's filter smooths them."""
    rng = np.random.default_rng(1)
    measured = Incremental([drone], PERIOD_S, turn_s=0.0)
    motion, inertia = Estimate.zeros(1).drones, np.array(drone.inertia_kg_m2)
    mixer, speeds = RotorMixer([drone]), np.zeros((1, 4))
    omega = np.cumsum(rng.normal(0.0, 0.004, (200, 3)), axis=0)
    motion.omega_body_rad_s[:] = omega[0]
    measured.start(motion)
    forces, moments, found, counted = [], [], [], np.array([0.3, -0.7, -20.0])
    for k in range(1, 200):
        force, moment = rng.normal(0.0, 2.0, 3), rng.normal(0.0, 0.02, 3)
        hook = rng.normal(0.0, 0.02, 3)
        turn = Rotation.from_rotvec(rng.normal(0.0, 0.3, 3))
        turning = (omega[k] - omega[k - 1]) / PERIOD_S
        rotors = inertia @ turning + np.cross(omega[k], inertia @ omega[k]) - moment
        mixer.step(np.array([25.0]), rotors[None], speeds)
        thrust = sum(r.thrust_coefficient_n_s2 for r in drone.rotors[:1]) * (speeds**2).sum()
        motion.orientation_wxyz[0] = np.roll(turn.as_quat(), 1)
        motion.omega_body_rad_s[0] = omega[k]
        push = turn.apply([0.0, 0.0, thrust]) + force
        motion.acceleration_enu_m_s2[0] = push / drone.mass_kg
        command = np.concatenate([[1.0, 2.0, 20.0, 0.0], hook, counted])[None]
        measured_once(measured, command, motion, speeds)
        found.append(measured.drones["force"]["value"][0].copy())
        forces.append(force - counted)
        moments.append(moment + hook)
    smooth = lfilter(*butter(2, CUT_OFF_HZ, fs=1.0 / PERIOD_S), forces, axis=0)
    assert np.allclose(found, smooth, atol=1e-10)
    smooth = lfilter(*butter(2, CUT_OFF_HZ, fs=1.0 / PERIOD_S), moments, axis=0)
    roll_and_pitch = smooth[-1] * [1.0, 1.0, 0.0]
    assert np.allclose(measured.drones["moment"]["value"][0], roll_and_pitch, atol=1e-10)


def test_what_is_counted_on_comes_late(drone):
    """A step of the counted force, of which nothing is felt: the answer of lag and filter."""
    turn_s = 0.1
    measured = Incremental([drone], PERIOD_S, turn_s)
    motion, speeds = Estimate.zeros(1).drones, np.zeros((1, 4))
    command = np.zeros((1, 10))
    measured.start(motion)
    measured_once(measured, command, motion, speeds)
    command[0, 7] = 1.0
    found = []
    for _ in range(250):
        measured_once(measured, command, motion, speeds)
        found.append(-measured.drones["force"]["value"][0, 0])
    share = PERIOD_S / (PERIOD_S + turn_s)
    late = 1.0 - (1.0 - share) ** np.arange(1, 251)
    smooth = lfilter(*butter(2, CUT_OFF_HZ, fs=1.0 / PERIOD_S), late)
    assert np.allclose(found, smooth, atol=1e-12) and found[-1] == pytest.approx(1.0, abs=1e-3)


def test_commands_without_a_counted_force_leave_the_forces_alone(drone):
    measured = Incremental([drone], PERIOD_S, turn_s=0.1)
    motion = Estimate.zeros(1).drones
    measured.start(motion)
    command = np.array([[1.0, 2.0, 3.0, 0.0, 0.1, 0.0, 0.0, np.nan, np.nan, np.nan]])
    measured_once(measured, command, motion, np.zeros((1, 4)))
    assert not measured.drones["force"]["value"].any()
    assert measured.drones["moment"]["value"].any()
