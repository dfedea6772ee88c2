"""Rotor speeds from thrust and moment: round trip, limits, and what is given up first."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musls_control.chain import RotorMixer, wrench_of_thrusts
from musls_description.config.errors import ConfigError
from musls_description.system.system_files import load_system

DRONES = {
    name: load_system(name).drones[0] for name in ("x500_solo", "crazyflie_trio", "typhoon_trio")
}


def wrench(drone, speeds):
    k = np.array([rotor.thrust_coefficient_n_s2 for rotor in drone.rotors])
    return wrench_of_thrusts(drone) @ (k * np.square(speeds))


def mixed(drone, thrust, moment):
    """Speeds and the wrench that they give."""
    speeds = np.full((1, len(drone.rotors)), np.nan)
    RotorMixer([drone]).step(np.array([thrust]), np.array([moment], float), speeds)
    first = drone.rotors[0]
    assert (speeds >= first.speed_min_rad_s * (1 - 1e-12)).all()
    assert (speeds <= first.speed_max_rad_s * (1 + 1e-12)).all()
    return speeds[0], wrench(drone, speeds[0])


def span(drone):
    """Largest moments about roll, pitch, yaw at half thrust, about, (3,)."""
    effect = np.abs(wrench_of_thrusts(drone)[1:]).sum(axis=1)
    return 0.5 * drone.max_thrust_n / len(drone.rotors) * effect


share = st.floats(-1.0, 1.0)


@settings(max_examples=60)
@given(name=st.sampled_from(sorted(DRONES)), u=st.floats(0.4, 0.6), a=share, b=share, c=share)
def test_what_fits_comes_out_again(name, u, a, b, c):
    drone = DRONES[name]
    moment = 0.1 * span(drone) * [a, b, c]
    _, got = mixed(drone, u * drone.max_thrust_n, moment)
    assert np.allclose(got, [u * drone.max_thrust_n, *moment], rtol=1e-9, atol=1e-9 * got[0])


def test_closed_form_of_the_x500():
    """t = f/4 + Mx y / (4 y^2) - My x / (4 x^2) - spin Mz / (4 c)."""
    drone = DRONES["x500_solo"]
    speeds, _ = mixed(drone, 22.0, [0.3, -0.2, 0.05])
    for rotor, speed in zip(drone.rotors, speeds, strict=True):
        x, y, _ = rotor.position_m
        spin = 1.0 if rotor.spin == "ccw" else -1.0
        thrust = 5.5 + 0.3 / (4 * y) + 0.2 / (4 * x) - spin * 0.05 / (4 * 0.016)
        assert 8.54858e-06 * speed**2 == pytest.approx(thrust)


def test_signs():
    """Roll to the right lifts the left, pitch (nose down) the tail, yaw left the clockwise ones."""
    drone = DRONES["x500_solo"]
    places = np.array([r.position_m for r in drone.rotors])
    ccw = np.array([r.spin == "ccw" for r in drone.rotors])
    even = mixed(drone, 20.0, [0.0, 0.0, 0.0])[0]
    assert ((mixed(drone, 20.0, [0.2, 0, 0])[0] > even) == (places[:, 1] > 0)).all()
    assert ((mixed(drone, 20.0, [0, 0.2, 0])[0] > even) == (places[:, 0] < 0)).all()
    assert ((mixed(drone, 20.0, [0, 0, 0.02])[0] > even) == ~ccw).all()


@settings(max_examples=80)
@given(name=st.sampled_from(sorted(DRONES)), u=st.floats(-0.5, 1.5), a=share, b=share, c=share)
def test_what_does_not_fit_is_given_up_yaw_first(name, u, a, b, c):
    drone = DRONES[name]
    thrust, moment = u * drone.max_thrust_n, 3.0 * span(drone) * [a, b, c]
    _, got = mixed(drone, thrust, moment)
    small = 1e-7 * np.array([drone.max_thrust_n, *span(drone)])
    off = np.abs(got - [thrust, *moment]) > small
    # Roll and pitch keep their direction, and yaw its sign.
    assert abs(got[1] * moment[1] - got[2] * moment[0]) <= 1e-6 * span(drone)[0] * span(drone)[1]
    assert got[3] * moment[2] >= -small[3] * abs(moment[2])
    without_yaw = mixed(drone, thrust, [*moment[:2], 0.0])[1]
    assert np.allclose(got[:3], without_yaw[:3], rtol=0, atol=small[:3])  # yaw costs nothing
    if off[1] or off[2]:
        # Roll and pitch are cut only where no thrust at all leaves room for them.
        for level in np.linspace(0.0, 1.0, 21):
            other = mixed(drone, level * drone.max_thrust_n, moment)[1]
            assert np.linalg.norm(other[1:3]) <= np.linalg.norm(got[1:3]) + small[1]


def test_thrust_gives_way_to_roll_but_not_to_yaw():
    drone = DRONES["x500_solo"]
    roll = 0.1 * span(drone)[0]
    _, got = mixed(drone, drone.max_thrust_n, [roll, 0.0, 0.0])
    assert got[1] == pytest.approx(roll) and got[0] < drone.max_thrust_n
    _, got = mixed(drone, 0.98 * drone.max_thrust_n, [0.0, 0.0, span(drone)[2]])
    assert got[0] == pytest.approx(0.98 * drone.max_thrust_n)
    assert 0.0 < got[3] < 0.1 * span(drone)[2]


def test_too_much_and_too_little_thrust():
    drone = DRONES["typhoon_trio"]
    speeds, got = mixed(drone, 1e6, [0.0, 0.0, 0.0])
    # The centre of thrust is a little ahead of the centre of mass: not all rotors at full speed.
    assert speeds.max() == pytest.approx(drone.rotors[0].speed_max_rad_s)
    assert 0.95 * drone.max_thrust_n < got[0] < drone.max_thrust_n
    assert np.abs(got[1:]).max() < 1e-9
    speeds, _ = mixed(drone, -5.0, [0.0, 0.0, 0.0])
    assert speeds.min() == pytest.approx(drone.rotors[0].speed_min_rad_s)


def test_several_drones_are_independent():
    x500 = DRONES["x500_solo"]
    heavy = dataclasses.replace(
        x500, rotors=tuple(dataclasses.replace(r, moment_ratio_m=0.03) for r in x500.rotors)
    )
    speeds = np.zeros((2, 4))
    RotorMixer([x500, heavy]).step(np.array([20.0, 25.0]), np.array([[0.1, 0, 0.03]] * 2), speeds)
    for drone, row, thrust in ((x500, speeds[0], 20.0), (heavy, speeds[1], 25.0)):
        assert np.allclose(wrench(drone, row), [thrust, 0.1, 0.0, 0.03])


def test_rotors_that_cannot_yaw_are_refused():
    x500 = DRONES["x500_solo"]
    rotors = tuple(dataclasses.replace(r, moment_ratio_m=0.0) for r in x500.rotors)
    with pytest.raises(ConfigError, match=r"drone_1.*independently"):
        RotorMixer([dataclasses.replace(x500, rotors=rotors)])
    with pytest.raises(ConfigError, match="same number of rotors"):
        RotorMixer([x500, DRONES["typhoon_trio"]])
