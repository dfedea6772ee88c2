"""PX4 parameters that the cascade reads, under their PX4 names.

Defaults are PX4's own with the lines of the x500 airframe (4001) on top; of these only
MPC_THR_HOVER and the rotor geometry differ from the firmware's defaults. The ranges are what the
equations allow, not the narrower ones that ground stations suggest. (PX4 v1.15 source,
parameter files of mc_rate_control, mc_att_control, mc_pos_control, mc_hover_thrust_estimator,
land_detector and vehicle_angular_velocity.)
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from musls_description.config.errors import ConfigError, near_names

MAX_ROTORS = 12
_ROTOR_NAME = re.compile(r"CA_ROTOR(\d+)_(PX|PY|KM|CT)")


@dataclass(frozen=True)
class Px4Parameter:
    """Default, range and meaning of one PX4 parameter."""

    default: float
    minimum: float
    maximum: float
    meaning: str


def _gains(axis: str, p: float, i: float, d: float) -> dict[str, Px4Parameter]:
    """Return the rate controller's gains of one axis."""
    name = f"MC_{axis}RATE"
    word = axis.lower()
    return {
        f"{name}_P": Px4Parameter(p, 0.0, 10.0, f"{word} rate, proportional"),
        f"{name}_I": Px4Parameter(i, 0.0, 10.0, f"{word} rate, integral"),
        f"{name}_D": Px4Parameter(d, 0.0, 1.0, f"{word} rate, derivative"),
        f"{name}_FF": Px4Parameter(0.0, 0.0, 10.0, f"{word} rate, feed-forward"),
        f"{name}_K": Px4Parameter(1.0, 0.0, 10.0, f"{word} rate, factor on P, I and D"),
    }


PX4_PARAMETERS: Mapping[str, Px4Parameter] = {
    # Gyro filter
    "IMU_GYRO_CUTOFF": Px4Parameter(40.0, 1.0, 1000.0, "gyro low pass, Hz"),
    "IMU_DGYRO_CUTOFF": Px4Parameter(30.0, 0.0, 1000.0, "gyro derivative low pass, Hz; 0 = off"),
    # Rate control
    **_gains("ROLL", 0.15, 0.2, 0.003),
    **_gains("PITCH", 0.15, 0.2, 0.003),
    **_gains("YAW", 0.2, 0.1, 0.0),
    "MC_RR_INT_LIM": Px4Parameter(0.3, 0.0, 1.0, "roll rate integrator limit"),
    "MC_PR_INT_LIM": Px4Parameter(0.3, 0.0, 1.0, "pitch rate integrator limit"),
    "MC_YR_INT_LIM": Px4Parameter(0.3, 0.0, 1.0, "yaw rate integrator limit"),
    # Attitude control
    "MC_ROLL_P": Px4Parameter(6.5, 0.0, 50.0, "roll, 1/s"),
    "MC_PITCH_P": Px4Parameter(6.5, 0.0, 50.0, "pitch, 1/s"),
    "MC_YAW_P": Px4Parameter(2.8, 0.0, 50.0, "yaw, 1/s"),
    "MC_YAW_WEIGHT": Px4Parameter(0.4, 0.0, 1.0, "priority of yaw against roll and pitch"),
    "MC_ROLLRATE_MAX": Px4Parameter(220.0, 0.0, 1800.0, "roll rate limit, deg/s"),
    "MC_PITCHRATE_MAX": Px4Parameter(220.0, 0.0, 1800.0, "pitch rate limit, deg/s"),
    "MC_YAWRATE_MAX": Px4Parameter(200.0, 0.0, 1800.0, "yaw rate limit, deg/s"),
    # Position control
    "MPC_XY_P": Px4Parameter(0.95, 0.0, 20.0, "horizontal position, 1/s"),
    "MPC_Z_P": Px4Parameter(1.0, 0.0, 20.0, "vertical position, 1/s"),
    "MPC_XY_VEL_P_ACC": Px4Parameter(1.8, 0.1, 50.0, "horizontal velocity, proportional, 1/s"),
    "MPC_XY_VEL_I_ACC": Px4Parameter(0.4, 0.0, 60.0, "horizontal velocity, integral, 1/s2"),
    "MPC_XY_VEL_D_ACC": Px4Parameter(0.2, 0.0, 5.0, "horizontal velocity, derivative"),
    "MPC_Z_VEL_P_ACC": Px4Parameter(4.0, 0.1, 50.0, "vertical velocity, proportional, 1/s"),
    "MPC_Z_VEL_I_ACC": Px4Parameter(2.0, 0.0, 60.0, "vertical velocity, integral, 1/s2"),
    "MPC_Z_VEL_D_ACC": Px4Parameter(0.0, 0.0, 5.0, "vertical velocity, derivative"),
    "MPC_VELD_LP": Px4Parameter(5.0, 0.0, 100.0, "velocity derivative low pass, Hz; 0 = off"),
    "MPC_XY_VEL_MAX": Px4Parameter(12.0, 0.1, 100.0, "horizontal speed limit, m/s"),
    "MPC_Z_VEL_MAX_UP": Px4Parameter(3.0, 0.0, 100.0, "climb speed limit, m/s"),
    "MPC_Z_VEL_MAX_DN": Px4Parameter(1.5, 0.0, 100.0, "sink speed limit, m/s"),
    "MPC_TILTMAX_AIR": Px4Parameter(45.0, 1.0, 89.0, "tilt limit in flight, deg"),
    "MPC_TILTMAX_LND": Px4Parameter(12.0, 1.0, 89.0, "tilt limit in the take-off ramp, deg"),
    "MPC_THR_MIN": Px4Parameter(0.12, 0.0, 1.0, "least collective thrust in flight"),
    "MPC_THR_MAX": Px4Parameter(1.0, 0.0, 1.0, "largest collective thrust"),
    "MPC_THR_HOVER": Px4Parameter(0.6, 0.05, 0.9, "collective thrust in hover, first guess"),
    "MPC_THR_XY_MARG": Px4Parameter(0.3, 0.0, 1.0, "thrust kept for horizontal control"),
    "MPC_USE_HTE": Px4Parameter(1.0, 0.0, 1.0, "1 = use the hover thrust estimator"),
    # Take-off and landing
    "COM_SPOOLUP_TIME": Px4Parameter(1.0, 0.0, 30.0, "from arming to take-off, s"),
    "MPC_TKO_RAMP_T": Px4Parameter(3.0, 0.0, 30.0, "length of the take-off ramp, s"),
    "LNDMC_TRIG_TIME": Px4Parameter(1.0, 0.1, 10.0, "all three landing stages together, s"),
    "LNDMC_Z_VEL_MAX": Px4Parameter(0.25, 0.0, 10.0, "vertical speed still landed, m/s"),
    "LNDMC_XY_VEL_MAX": Px4Parameter(1.5, 0.0, 10.0, "horizontal speed still landed, m/s"),
    "LNDMC_ROT_MAX": Px4Parameter(20.0, 0.0, 360.0, "roll and pitch rate still landed, deg/s"),
    # Hover thrust estimator
    "HTE_HT_NOISE": Px4Parameter(0.0036, 0.0, 1.0, "process noise, 1/s"),
    "HTE_ACC_GATE": Px4Parameter(3.0, 1.0, 10.0, "innovation gate, standard deviations"),
    "HTE_HT_ERR_INIT": Px4Parameter(0.1, 0.0, 1.0, "first standard deviation"),
    "HTE_VXY_THR": Px4Parameter(10.0, 0.0, 100.0, "horizontal speed that adds noise, m/s"),
    "HTE_VZ_THR": Px4Parameter(2.0, 0.0, 100.0, "vertical speed that adds noise, m/s"),
    "HTE_THR_RANGE": Px4Parameter(0.2, 0.0, 0.9, "furthest from MPC_THR_HOVER"),
    # Mixer output
    "THR_MDL_FAC": Px4Parameter(0.0, 0.0, 1.0, "thrust curve; 0 = linear in the command"),
}

_ROTOR_RANGES = {"PX": (-10.0, 10.0), "PY": (-10.0, 10.0), "KM": (-1.0, 1.0), "CT": (0.0, 100.0)}


def px4_parameters(overrides: Mapping[str, float]) -> Mapping[str, float]:
    """Return a complete, checked and read-only set of parameters for one drone.

    `overrides` are values that differ from the defaults. Besides the names in `PX4_PARAMETERS`,
    CA_ROTORn_PX, _PY, _KM and _CT are known; they replace those values of the rotor layout.
    """
    values = {name: spec.default for name, spec in PX4_PARAMETERS.items()}
    for name, value in overrides.items():
        values[name] = _checked(name, value)
    # PX4 would change these behind the user's back.
    for names in (
        ("MPC_THR_MIN", "MPC_THR_HOVER", "MPC_THR_MAX"),
        ("MPC_TILTMAX_LND", "MPC_TILTMAX_AIR"),
    ):
        rising = [values[name] for name in names]
        if sorted(rising) != rising:
            inequality = " <= ".join(f"{name} ({values[name]:g})" for name in names)
            raise ConfigError(f"PX4 parameters must satisfy {inequality}")
    return MappingProxyType(values)


def _checked(name: str, value: float) -> float:
    """Return the value as a float, or raise one clear line."""
    low, high = _range(str(name))
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"PX4 parameter {name}: {value!r} is not a number") from None
    if not (math.isfinite(number) and low <= number <= high):
        raise ConfigError(f"PX4 parameter {name} = {number:g} is outside [{low:g}, {high:g}]")
    return number


def _range(name: str) -> tuple[float, float]:
    """Return the allowed range of a parameter, or raise an error that lists near names."""
    if name in PX4_PARAMETERS:
        return PX4_PARAMETERS[name].minimum, PX4_PARAMETERS[name].maximum
    rotor = _ROTOR_NAME.fullmatch(name)
    if rotor and int(rotor[1]) < MAX_ROTORS:
        return _ROTOR_RANGES[rotor[2]]
    rotors = [f"CA_ROTOR{i}_{q}" for i in range(MAX_ROTORS) for q in _ROTOR_RANGES]
    near = near_names(name.upper(), [*PX4_PARAMETERS, *rotors])
    raise ConfigError(f"unknown PX4 parameter {name!r}: {near}")
