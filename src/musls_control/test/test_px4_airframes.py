"""Any multirotor with realistic constants gets a mixer and gains, and flies stably with them."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rigid_drone import GRAVITY, fly_to, make_drone

from musls_control.px4 import PX4_PARAMETERS, RotorLayout
from musls_control.px4.allocation import (
    MIX_THRUST,
    build_mixer,
    gains,
    rotor_layout,
    torque_authority_rad_s2,
)
from musls_description.numerics.rotations import roll_pitch_yaw
from musls_description.system.system_files import load_system

# Direction of each arm from the nose, and spin; coaxial pairs turn against each other.
GEOMETRIES = {
    "quad_x": [(-45, 1), (135, 1), (45, -1), (-135, -1)],
    "quad_plus": [(-90, 1), (90, 1), (0, -1), (180, -1)],
    "hexa": [(-90, -1), (90, 1), (30, -1), (-150, 1), (-30, 1), (150, -1)],
    "octo": [(22.5 + 45 * k, (-1) ** k) for k in range(8)],
    "octo_coaxial": [(45 + 90 * (k // 2), (-1) ** (k + k // 2)) for k in range(8)],
}


@st.composite
def drones(draw):
    """Airframes from a palm-sized quadrotor to a 15 kg octorotor."""
    name = draw(st.sampled_from(sorted(GEOMETRIES)))
    mass = 0.03 * 500.0 ** draw(st.floats(0.0, 1.0))
    arm = 0.2 * mass ** (1.0 / 3.0) * draw(st.floats(0.7, 1.6))
    top = mass * GRAVITY * draw(st.floats(1.8, 4.0)) / len(GEOMETRIES[name])
    fastest = 700.0 * arm**-0.5
    lag = draw(st.floats(0.01, 0.08))
    gyration = arm * draw(st.floats(0.3, 0.55))
    inertia = mass * gyration**2
    rotors = [
        {
            "position_m": (
                arm * np.cos(np.radians(angle)),
                arm * np.sin(np.radians(angle)),
                0.03 * (k % 2),
            ),
            "spin": "ccw" if spin > 0 else "cw",
            "thrust_coefficient_n_s2": top / fastest**2,
            "moment_ratio_m": arm * draw(st.shared(st.floats(0.05, 0.25), key="ratio")),
            "time_constant_up_s": lag,
            "time_constant_down_s": lag * draw(st.shared(st.floats(1.0, 2.0), key="down")),
            "speed_min_rad_s": 0.12 * fastest,
            "speed_max_rad_s": fastest,
        }
        for k, (angle, spin) in enumerate(GEOMETRIES[name])
    ]
    slant = draw(st.floats(1.0, 1.3))
    diagonal = ((inertia, 0, 0), (0, slant * inertia, 0), (0, 0, 1.8 * inertia))
    return make_drone(rotors, mass, diagonal)


@settings(max_examples=60)
@given(drone=drones())
def test_every_multirotor_gets_a_mixer(drone):
    mixer = build_mixer(rotor_layout(drone))
    assert np.isfinite(mixer).all()
    assert mixer[:, MIX_THRUST].mean() == pytest.approx(-1.0, abs=1e-9)
    authority = torque_authority_rad_s2(drone, GRAVITY)
    assert (authority > 0.0).all()
    found = gains(drone, GRAVITY)
    for name, value in found.items():
        spec = PX4_PARAMETERS[name]
        assert spec.minimum < value <= spec.maximum, name


@settings(max_examples=6)
@given(drone=drones())
def test_every_multirotor_recovers_and_goes_where_it_is_told(drone):
    assert_flies(drone)


@pytest.mark.slow
@settings(max_examples=60)
@given(drone=drones())
def test_many_multirotors_recover_and_go_where_they_are_told(drone):
    assert_flies(drone)


def assert_flies(drone):
    goal = np.array([0.8, -0.5, 0.4])
    duration_s = 15.0
    position, orientation, rate = fly_to(drone, (0.3, -0.2, 0.0), goal, 0.7, duration_s)
    late = slice(-250, None)
    assert np.abs(rate[late]).max() < 0.05
    assert np.linalg.norm(position[late] - goal, axis=1).max() < 0.25
    tilt = roll_pitch_yaw(orientation)[:, :2]
    assert np.abs(tilt).max() < np.radians(50.0)
    assert np.abs(roll_pitch_yaw(orientation)[late, 2] - 0.7).max() < 0.2


def test_the_scale_of_a_layout_does_not_matter_to_the_mixer():
    layout = RotorLayout.x500()
    small = dataclasses.replace(
        layout,
        px_m=tuple(0.1 * v for v in layout.px_m),
        py_m=tuple(0.1 * v for v in layout.py_m),
        km=tuple(0.06 * v for v in layout.km),
        ct=tuple(1e-9 * v for v in layout.ct),
    )
    assert np.allclose(build_mixer(small.normalised()), build_mixer(layout), rtol=1e-9, atol=1e-12)
    assert np.hypot(small.normalised().px_m, small.normalised().py_m).mean() == pytest.approx(0.25)


def test_gains_of_an_x500_by_another_name_are_px4s():
    drone = dataclasses.replace(load_system("x500_solo").drones[0], model="mine")
    for name, value in gains(drone, GRAVITY).items():
        assert value == pytest.approx(PX4_PARAMETERS[name].default, rel=0.01), name


def test_gains_of_other_airframes_are_near_px4s_own():
    """PX4's files for them: Crazyflie 0.07 and 0.002, Typhoon 0.08 and 0.001."""
    for system, p, d in (("crazyflie_trio", 0.07, 0.002), ("typhoon_trio", 0.08, 0.001)):
        found = gains(load_system(system).drones[0], GRAVITY)
        for axis in ("ROLL", "PITCH"):
            assert 0.5 < found[f"MC_{axis}RATE_P"] / p < 2.0
            assert 0.5 < found[f"MC_{axis}RATE_D"] / d < 2.5


def test_authority_is_the_angular_acceleration_per_command():
    """A unit of torque command on the true rotors, by finite difference of thrust and moment."""
    drone = load_system("typhoon_trio").drones[0]
    mixer = build_mixer(rotor_layout(drone))
    rotors = drone.rotors
    k = np.array([r.thrust_coefficient_n_s2 for r in rotors])
    place = np.array([r.position_m for r in rotors])
    spin = np.array([1.0 if r.spin == "ccw" else -1.0 for r in rotors])
    hover = np.sqrt(drone.mass_kg * GRAVITY / k.sum())
    for axis, authority in enumerate(torque_authority_rad_s2(drone, GRAVITY)):
        thrusts = []
        for step in (-1e-5, 1e-5):
            u = (hover - 100.0) / 1400.0 + step * mixer[:, axis]
            thrusts.append(k * (100.0 + 1400.0 * u) ** 2)
        change = (thrusts[1] - thrusts[0]) / 2e-5
        frd = [place[:, 1] @ change, place[:, 0] @ change, 0.06 * spin @ change]
        inertia = np.diag(np.array(drone.inertia_kg_m2))
        assert frd[axis] / inertia[axis] == pytest.approx(authority, rel=1e-4)
