"""Hysteresis and other small pieces of the chain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_control.px4 import px4_parameters
from musls_control.px4.attitude_control import control_attitude, integrate_axis, shortest_rotation
from musls_control.px4.cascade import fill_parameter_record, initial_state
from musls_control.px4.layout import HYSTERESIS_DTYPE, PARAMETER_DTYPE, STATE_DTYPE
from musls_control.px4.position_control import constrain_horizontal
from musls_control.px4.takeoff import fuse_vertical_acceleration, update_hysteresis


def test_hysteresis_rises_late_and_falls_at_once():
    flag = np.zeros(1, HYSTERESIS_DTYPE)[0]
    rises = [update_hysteresis(flag, 1, 1.0, 0.008) for _ in range(130)]
    assert rises.index(1) == 125  # the step 1.0 s after the request
    assert update_hysteresis(flag, 0, 1.0, 0.008) == 0
    assert update_hysteresis(flag, 1, 0.0, 0.008) == 1


def test_horizontal_speed_limit_prefers_the_position_error():
    assert constrain_horizontal(1.0, 0.0, 0.0, 1.0, 12.0) == (1.0, 1.0)
    x, y = constrain_horizontal(3.0, 0.0, 0.0, 9.0, 5.0)
    assert x == pytest.approx(3.0) and math.hypot(x, y) == pytest.approx(5.0)
    assert constrain_horizontal(0.0, 9.0, 9.0, 0.0, 5.0) == (0.0, 5.0)


def test_shortest_rotation_of_opposite_vectors():
    for axis in np.eye(3):
        w, x, y, z = shortest_rotation(axis, -axis)
        turned = Rotation.from_quat([x, y, z, w]).apply(axis)
        np.testing.assert_allclose(turned, -axis, atol=1e-12)


@pytest.mark.parametrize(
    ("unallocated", "error", "moves"),
    [(0.0, 0.1, 1), (0.1, 0.1, 0), (0.1, -0.1, -1), (-0.1, 0.1, 1), (-0.1, -0.1, 0)],
)
def test_rate_integrator_does_not_push_against_saturation(unallocated, error, moves):
    integral = integrate_axis(0.0, error, unallocated, 0.2, 0.3, 0.004)
    assert np.sign(integral) == moves


def test_rate_integrator_limits():
    assert integrate_axis(0.2999, 1.0, 0.0, 10.0, 0.3, 0.1) == 0.3
    assert integrate_axis(0.1, math.radians(401.0), 0.0, 0.2, 0.3, 0.004) == 0.1  # faded out


def test_hover_thrust_filter_opens_when_everything_is_rejected():
    """A sudden change of weight: after a while of rejections the variance grows by 1001 Q dt^2."""
    parameters = np.zeros(1, PARAMETER_DTYPE)
    fill_parameter_record(parameters[0], px4_parameters({}))
    hover = initial_state(parameters, in_flight=True)["hover"][0]
    hover["variance"] = 1e-6
    growth = []
    for _ in range(100):
        before = hover["variance"].copy()
        fuse_vertical_acceleration(hover, 100.0, 0.6, 1.0, parameters[0])
        assert hover["test_ratio"] > 1.0 and hover["hover_thrust"] == 0.6
        growth.append(hover["variance"] - before)
    per_step = 0.0036**2 * 0.008**2
    assert growth[0] == pytest.approx(per_step)
    assert growth[-1] == pytest.approx(1001.0 * per_step)


@pytest.mark.parametrize(("roll", "pitch"), [(0.4, 0.0), (0.0, 0.3), (0.4, 0.3), (-0.4, 0.3)])
def test_a_wanted_yaw_rate_is_split_over_the_axes_of_a_tilted_body(roll, pitch):
    """Without an error of the attitude the rates are those of a turn about the vertical (NED)."""
    turned = Rotation.from_euler("ZYX", [0.7, pitch, roll])
    parameters, state = np.zeros(1, PARAMETER_DTYPE), np.zeros(1, STATE_DTYPE)
    fill_parameter_record(parameters[0], px4_parameters({}))
    attitude = state["attitude"]
    attitude["q_setpoint"] = np.roll(turned.as_quat(), 1)
    attitude["yaw_rate_setpoint"] = 0.5
    control_attitude(attitude[0], attitude["q_setpoint"][0].copy(), parameters[0])
    expected = turned.inv().apply([0.0, 0.0, 0.5])
    assert attitude["rates_setpoint"][0] == pytest.approx(expected, abs=1e-9)
