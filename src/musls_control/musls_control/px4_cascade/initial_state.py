"""State of the chain after power-up, or of a drone that is already in the air."""

from __future__ import annotations

import numpy as np

from musls_control.px4_cascade.hover_thrust import FIRST_ACCEL_NOISE_VARIANCE
from musls_control.px4_cascade.layout import STATE_DTYPE
from musls_control.px4_cascade.position_control import GRAVITY_M_S2, THRUST_IDLE
from musls_control.px4_cascade.takeoff import DISARMED, FLIGHT

#: Stands for "never" where steps since an event are counted.
LONG_AGO_TICKS = 1 << 40


def initial_state(parameters: np.ndarray, *, in_flight: bool) -> np.ndarray:
    """Return fresh state records.

    Args:
        parameters: (n_drones,) records of `PARAMETER_DTYPE`.
        in_flight: True for hovering drones: state flight, thrust at MPC_THR_HOVER.

    Returns:
        (n_drones,) records of `STATE_DTYPE`.
    """
    state = np.zeros(len(parameters), STATE_DTYPE)
    hover_thrust = parameters["MPC_THR_HOVER"]
    state["hover"]["hover_thrust"] = hover_thrust
    state["hover"]["variance"] = parameters["HTE_HT_ERR_INIT"] ** 2
    state["hover"]["accel_noise_variance"] = FIRST_ACCEL_NOISE_VARIANCE
    state["position"]["hover_thrust"] = hover_thrust
    state["land"]["hover_throttle"] = hover_thrust
    state["land"]["ticks_since_valid_hover"] = LONG_AGO_TICKS
    if in_flight:
        state["takeoff"]["state"] = FLIGHT
        _set_flag(state["takeoff"]["spoolup"])
        state["takeoff"]["tilt_limit"] = np.radians(parameters["MPC_TILTMAX_AIR"])
        thrust = hover_thrust
    else:
        state["takeoff"]["state"] = DISARMED
        for stage in ("ground_contact", "maybe_landed", "landed"):
            _set_flag(state["land"][stage])
        thrust = np.full_like(hover_thrust, THRUST_IDLE)
    state["position"]["thrust_setpoint"][:, 2] = -thrust
    state["attitude"]["thrust_setpoint_z"] = -thrust
    state["attitude"]["rates_thrust_z"] = -thrust
    return state


def trim_state(
    state: np.ndarray,
    parameters: np.ndarray,
    mixers: np.ndarray,
    throttle: np.ndarray,
    thrust_direction_enu: np.ndarray,
) -> None:
    """Put the integrators where they end up after a long hover at given motor commands.

    Args:
        state: (n_drones,) records of `STATE_DTYPE` of drones in flight, changed in place.
        parameters: (n_drones,) records of `PARAMETER_DTYPE`.
        mixers: (n_drones, n_rotors, MIXER_COLUMNS).
        throttle: Motor commands that hold the drones, (n_drones, n_rotors).
        thrust_direction_enu: Unit vectors of their thrust, (n_drones, 3).
    """
    for s, p, mixer, u, direction in zip(
        state, parameters, mixers, throttle, thrust_direction_enu, strict=True
    ):
        roll, pitch, yaw, thrust = np.linalg.lstsq(mixer[:, :4], u, rcond=None)[0]
        needed = -thrust * direction[2]
        hover = float(np.clip(needed, p["hover_thrust_min"], p["hover_thrust_max"]))
        s["position"]["hover_thrust"] = s["hover"]["hover_thrust"] = hover
        s["land"]["hover_throttle"] = hover
        # Thrust vector along (a_x, a_y, a_z - g) with h (1 - a_z / g) upwards; errors are zero.
        tilt = GRAVITY_M_S2 / direction[2]
        vertical = (hover - needed) * GRAVITY_M_S2 / hover
        s["position"]["velocity_integral"] = (direction[1] * tilt, direction[0] * tilt, vertical)
        s["position"]["thrust_setpoint"] = -thrust * np.array(
            [direction[1], direction[0], -direction[2]]
        )
        s["rate"]["integral"] = (roll, pitch, yaw)
        s["attitude"]["thrust_setpoint_z"] = thrust
        s["attitude"]["rates_thrust_z"] = thrust


def _set_flag(hysteresis: np.ndarray) -> None:
    """Raise a flag as if it had been requested for long."""
    hysteresis["state"] = 1
    hysteresis["requested"] = 1
