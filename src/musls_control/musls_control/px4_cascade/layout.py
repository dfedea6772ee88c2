"""Memory of the cascade: NumPy record types that NumPy and numba read alike.

One record per drone holds all parameters, one holds all state. Records give the compiled stages
names (`state.rate.integral`) without allocating, and the kernel one argument instead of dozens.
Everything in here is NED/FRD, as in PX4.
"""

from __future__ import annotations

import numpy as np

from musls_control.px4_cascade.parameters import PX4_PARAMETERS

#: Values computed from parameters and the step size, kept beside the parameters.
DERIVED_PARAMETERS = (
    "dt_s",
    "position_dt_s",
    "gyro_b0",
    "gyro_a1",
    "gyro_a2",
    "gyro_derivative_alpha",
    "velocity_derivative_alpha",
    "hover_thrust_min",
    "hover_thrust_max",
    "ground_height_m",
)

PARAMETER_DTYPE = np.dtype(
    [(name, "f8") for name in (*PX4_PARAMETERS, *DERIVED_PARAMETERS)], align=True
)

#: A flag that follows a request only after the request has stood for a given time.
HYSTERESIS_DTYPE = np.dtype([("state", "i8"), ("requested", "i8"), ("ticks", "i8")], align=True)

SETPOINT_DTYPE = np.dtype(
    [
        ("position", "f8", 3),
        ("velocity", "f8", 3),
        ("acceleration", "f8", 3),
        ("yaw", "f8"),
        ("yaw_rate", "f8"),
        ("armed", "i8"),
    ],
    align=True,
)

VEHICLE_DTYPE = np.dtype(
    [
        ("position", "f8", 3),
        ("velocity", "f8", 3),
        ("q", "f8", 4),
        ("omega_raw", "f8", 3),
        ("acceleration", "f8", 3),
        ("yaw", "f8"),
    ],
    align=True,
)

GYRO_DTYPE = np.dtype(
    [
        ("started", "i8"),
        ("delay_1", "f8", 3),
        ("delay_2", "f8", 3),
        ("omega", "f8", 3),
        ("omega_derivative", "f8", 3),
    ],
    align=True,
)

TAKEOFF_DTYPE = np.dtype(
    [
        ("state", "i8"),
        ("spoolup", HYSTERESIS_DTYPE),
        ("ramp_progress", "f4"),  # PX4 sums it in single precision; the last step depends on it
        ("tilt_limit", "f8"),
    ],
    align=True,
)

LAND_DTYPE = np.dtype(
    [
        ("freefall", HYSTERESIS_DTYPE),
        ("ground_contact", HYSTERESIS_DTYPE),
        ("maybe_landed", HYSTERESIS_DTYPE),
        ("landed", HYSTERESIS_DTYPE),
        ("in_descend", "i8"),
        ("hover_thrust_trusted", "i8"),
        ("ticks_since_valid_hover", "i8"),
        ("hover_throttle", "f8"),
    ],
    align=True,
)

POSITION_DTYPE = np.dtype(
    [
        ("started", "i8"),
        ("velocity_previous", "f8", 3),
        ("velocity_derivative", "f8", 3),
        ("velocity_integral", "f8", 3),
        ("velocity_setpoint", "f8", 3),
        ("velocity_error", "f8", 3),
        ("acceleration_setpoint", "f8", 3),
        ("thrust_setpoint", "f8", 3),
        ("yaw_setpoint", "f8"),
        ("yaw_rate_setpoint", "f8"),
        ("hover_thrust", "f8"),
        ("speed_up_limit", "f8"),
        ("tilt_limit", "f8"),
        ("thrust_min", "f8"),
        ("invalid_ticks", "i8"),
    ],
    align=True,
)

HOVER_DTYPE = np.dtype(
    [
        ("hover_thrust", "f8"),
        ("variance", "f8"),
        ("accel_noise_variance", "f8"),
        ("residual_lp", "f8"),
        ("signed_ratio_lp", "f8"),
        ("innovation", "f8"),
        ("test_ratio", "f8"),
        ("in_air", "i8"),
        ("valid", HYSTERESIS_DTYPE),
    ],
    align=True,
)

ATTITUDE_DTYPE = np.dtype(
    [
        ("q_setpoint", "f8", 4),
        ("yaw_rate_setpoint", "f8"),
        ("thrust_setpoint_z", "f8"),
        ("rates_setpoint", "f8", 3),
        ("rates_thrust_z", "f8"),
    ],
    align=True,
)

RATE_DTYPE = np.dtype(
    [
        ("integral", "f8", 3),
        ("torque_setpoint", "f8", 3),
        ("thrust_setpoint_z", "f8"),
        ("unallocated_torque", "f8", 3),
    ],
    align=True,
)

STATE_DTYPE = np.dtype(
    [
        ("tick", "i8"),
        ("setpoint", SETPOINT_DTYPE),
        ("vehicle", VEHICLE_DTYPE),
        ("gyro", GYRO_DTYPE),
        ("takeoff", TAKEOFF_DTYPE),
        ("land", LAND_DTYPE),
        ("position", POSITION_DTYPE),
        ("hover", HOVER_DTYPE),
        ("attitude", ATTITUDE_DTYPE),
        ("rate", RATE_DTYPE),
    ],
    align=True,
)
