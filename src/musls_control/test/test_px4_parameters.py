"""Parameters, constructor arguments and containers: errors that name what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from musls_control.autopilot import DroneSetpoints, MotorCommands
from musls_control.estimate import Estimate
from musls_control.px4 import PX4_PARAMETERS, Px4Cascade, RotorLayout, px4_parameters
from musls_description.config.errors import ConfigError

SIX_ROTORS = RotorLayout(px_m=(0.1,) * 6, py_m=(0.1,) * 6, km=(0.05,) * 6, ct=(6.5,) * 6)


def test_defaults_are_the_x500s():
    parameters = px4_parameters({})
    assert set(parameters) == set(PX4_PARAMETERS)
    assert parameters["MPC_THR_HOVER"] == 0.6 and parameters["MC_ROLL_P"] == 6.5
    for name, spec in PX4_PARAMETERS.items():
        assert spec.minimum <= spec.default <= spec.maximum, name


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"MPC_THR_HOVR": 0.7}, "MPC_THR_HOVER"),
        ({"mpc_xy_p": 0.7}, "MPC_XY_P"),
        ({"MPC_THR_HOVER": 1.5}, r"MPC_THR_HOVER = 1.5 is outside \[0.05, 0.9\]"),
        ({"MC_ROLL_P": float("nan")}, "MC_ROLL_P"),
        ({"MC_ROLL_P": "fast"}, "'fast' is not a number"),
        ({"MPC_THR_MIN": 0.7}, "MPC_THR_MIN .* <= MPC_THR_HOVER"),
        ({"CA_ROTOR4_PX": 0.1}, "CA_ROTOR4_PX: the drone has 4 rotors"),
        ({"CA_ROTOR12_PX": 0.1}, "unknown PX4 parameter"),
        ({"IMU_GYRO_CUTOFF": 125.0}, "below half the sample rate"),
    ],
)
def test_bad_parameters_are_named(given, message):
    with pytest.raises(ConfigError, match=message) as error:
        Px4Cascade(parameters=given)
    assert "\n" not in str(error.value)


def test_rotor_parameters_replace_the_layout():
    cascade = Px4Cascade(parameters=[{}, {"CA_ROTOR0_PX": 0.174}], n_drones=2)
    assert cascade.rotors[0].px_m[0] == 0.13 and cascade.rotors[1].px_m[0] == 0.174


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_drones": 0},
        {"n_drones": 2, "parameters": [{}]},
        {"n_drones": 2, "rotors": [RotorLayout.x500(), SIX_ROTORS]},
    ],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ConfigError):
        Px4Cascade(**arguments)


def test_foreign_containers_are_refused():
    cascade = Px4Cascade(n_drones=2)
    good = DroneSetpoints.zeros(2), Estimate.zeros(2), MotorCommands.zeros(2, 4)
    cascade.step(0.0, *good)
    for k, bad in enumerate(
        (DroneSetpoints.zeros(3), Estimate.zeros(1), MotorCommands.zeros(2, 6))
    ):
        with pytest.raises(ConfigError):
            cascade.step(0.0, *(*good[:k], bad, *good[k + 1 :]))
    with pytest.raises(ValueError, match="C-contiguous"):
        DroneSetpoints(np.zeros((12, 2)).T)


def test_containers_are_views():
    setpoints = DroneSetpoints.unset(2)
    assert np.isnan(setpoints.position_enu_m).all() and not setpoints.armed.any()
    setpoints.position_enu_m[1] = (1.0, 2.0, 3.0)
    setpoints.armed[:] = True
    np.testing.assert_array_equal(setpoints.data[1, :3], (1.0, 2.0, 3.0))
    assert (setpoints.data[:, 11] == 1.0).all()
