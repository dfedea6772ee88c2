"""Mixer, desaturation and rotor layouts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from musls_control.px4 import Px4Cascade, RotorLayout
from musls_control.px4.allocation import (
    MIX_THRUST,
    MIXER_COLUMNS,
    allocate,
    build_mixer,
    output_motors,
    unallocated_torque,
)
from musls_description.config.errors import ConfigError


def hexacopter() -> RotorLayout:
    angles = np.radians([90.0, -90.0, -30.0, 150.0, 30.0, -150.0])  # PX4 hexa x: right, left, ...
    return RotorLayout(
        px_m=tuple(0.3 * np.cos(angles)),
        py_m=tuple(0.3 * np.sin(angles)),
        km=(-0.05, 0.05, -0.05, 0.05, 0.05, -0.05),
        ct=(6.5,) * 6,
    )


def quad_plus() -> RotorLayout:
    return RotorLayout(
        px_m=(0.0, 0.0, 0.25, -0.25), py_m=(0.25, -0.25, 0.0, 0.0),
        km=(0.05, 0.05, -0.05, -0.05), ct=(6.5,) * 4,
    )  # fmt: skip


LAYOUTS = {"x500": RotorLayout.x500(), "plus": quad_plus(), "hexa": hexacopter()}


@pytest.mark.parametrize("name", LAYOUTS)
def test_unsaturated_allocation_delivers_the_torque(name):
    mixer = build_mixer(LAYOUTS[name])
    n = len(mixer)
    assert mixer.shape == (n, MIXER_COLUMNS)
    np.testing.assert_allclose(mixer[:, MIX_THRUST].mean(), -1.0, atol=1e-12)
    torque, u, left = np.array([0.05, -0.04, 0.03]), np.zeros(n), np.zeros(3)
    allocate(u, mixer, torque, -0.5)
    assert (u > 0.0).all() and (u < 1.0).all()
    assert u.mean() == pytest.approx(0.5)
    unallocated_torque(left, u, mixer, torque)
    np.testing.assert_allclose(left, 0.0, atol=1e-3 if name == "hexa" else 1e-9)


@pytest.mark.parametrize("name", LAYOUTS)
def test_signs_of_the_mixer(name):
    """Positive roll lifts the left motors, positive pitch the front ones (FRD)."""
    layout, mixer = LAYOUTS[name], build_mixer(LAYOUTS[name])
    u = np.zeros(len(mixer))
    allocate(u, mixer, np.array([0.1, 0.0, 0.0]), -0.5)
    assert np.dot(u - 0.5, layout.py_m) < 0.0
    allocate(u, mixer, np.array([0.0, 0.1, 0.0]), -0.5)
    assert np.dot(u - 0.5, layout.px_m) > 0.0
    allocate(u, mixer, np.array([0.0, 0.0, 0.1]), -0.5)
    assert np.dot(u - 0.5, layout.km) > 0.0


@pytest.mark.parametrize("name", LAYOUTS)
def test_desaturation_keeps_roll_and_pitch_and_gives_up_yaw(name):
    mixer = build_mixer(LAYOUTS[name])
    u, left = np.zeros(len(mixer)), np.zeros(3)
    torque = np.array([0.15, 0.1, 1.0])
    allocate(u, mixer, torque, -0.7)
    assert (u >= 0.0).all() and (u <= 1.0).all()
    unallocated_torque(left, u, mixer, torque)
    assert left[2] > 0.1  # far more yaw than there is room for
    assert np.abs(left[:2]).max() < 0.06


def test_full_thrust_gives_way_to_roll():
    mixer = build_mixer(RotorLayout.x500())
    u, left = np.zeros(4), np.zeros(3)
    torque = np.array([0.1, 0.05, 0.0])
    allocate(u, mixer, torque, -1.0)
    unallocated_torque(left, u, mixer, torque)
    np.testing.assert_allclose(left, 0.0, atol=1e-9)
    assert u.max() == pytest.approx(1.0) and u.mean() < 1.0


def test_idle_thrust_is_not_raised_for_roll():
    """MC_AIRMODE 0: at zero thrust there is no attitude control and no climb either."""
    mixer = build_mixer(RotorLayout.x500())
    u = np.zeros(4)
    allocate(u, mixer, np.array([0.3, 0.0, 0.0]), 0.0)
    assert u.mean() < 0.1


def test_thrust_curve_and_esc_map():
    mixer = build_mixer(RotorLayout.x500())
    u, omega = np.full(4, 0.5), np.zeros(4)
    output_motors(u, omega, mixer, 1, 0.3)
    np.testing.assert_allclose(0.3 * u**2 + 0.7 * u, 0.5)
    np.testing.assert_allclose(omega, 150.0 + 850.0 * u)
    output_motors(u, omega, mixer, 0, 0.3)
    assert not u.any() and not omega.any()


@pytest.mark.parametrize(
    "change",
    [
        {"px_m": (0.1, 0.1, 0.1)},
        {"py_m": (0.2, -0.2, -0.2)},
        {"km": (0.05, math.nan, -0.05, -0.05)},
        {"omega_max_rad_s": 100.0},
    ],
)
def test_impossible_layouts_are_refused(change):
    good = {name: getattr(RotorLayout.x500(), name) for name in ("px_m", "py_m", "km", "ct")}
    with pytest.raises(ConfigError):
        RotorLayout(**{**good, **change})


def test_uncontrollable_layout_is_refused():
    in_a_row = replace(RotorLayout.x500(), py_m=(0.0,) * 4)
    with pytest.raises(ConfigError, match="independently"):
        Px4Cascade(in_a_row)
