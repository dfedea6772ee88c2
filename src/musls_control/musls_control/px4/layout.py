"""Memory of the cascade: NumPy record types that NumPy and numba read alike.

One record per drone holds all parameters, one holds all state. Records give the compiled stages
names (`state.rate.integral`) without allocating, and the kernel one argument instead of dozens.
Everything in here is NED/FRD, as in PX4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from musls_control.px4.parameters import PX4_PARAMETERS

NUMBER = "f8"
INTEGER = "i8"
VECTOR = ("f8", 3)
QUATERNION = ("f8", 4)


def record(*groups: tuple[str, Any]) -> np.dtype:
    """Record type of groups of fields: their names, then the type of each."""
    return np.dtype(
        [
            (name, *kind) if isinstance(kind, tuple) else (name, kind)
            for names, kind in groups
            for name in names.split()
        ],
        align=True,
    )


PARAMETER_DTYPE = record(
    (" ".join(PX4_PARAMETERS), NUMBER),
    # What follows from parameters and the step size
    ("dt_s position_dt_s gyro_b0 gyro_a1 gyro_a2 gyro_derivative_alpha", NUMBER),
    ("velocity_derivative_alpha hover_thrust_min hover_thrust_max", NUMBER),
)

#: A flag that follows a request only after the request has stood for a given time.
HYSTERESIS_DTYPE = record(("state requested ticks", INTEGER))

SETPOINT_DTYPE = record(
    ("position velocity acceleration", VECTOR), ("yaw yaw_rate", NUMBER), ("armed", INTEGER)
)

VEHICLE_DTYPE = record(
    ("position velocity", VECTOR),
    ("q", QUATERNION),
    ("omega_raw acceleration", VECTOR),
    ("yaw", NUMBER),
)

GYRO_DTYPE = record(("started", INTEGER), ("delay_1 delay_2 omega omega_derivative", VECTOR))

TAKEOFF_DTYPE = record(
    ("state", INTEGER),
    ("spoolup", HYSTERESIS_DTYPE),
    ("ramp_progress", "f4"),  # PX4 sums it in single precision; the last step depends on it
    ("tilt_limit", NUMBER),
)

LAND_DTYPE = record(
    ("freefall ground_contact maybe_landed landed", HYSTERESIS_DTYPE),
    ("in_descend hover_thrust_trusted ticks_since_valid_hover", INTEGER),
    ("hover_throttle", NUMBER),
)

POSITION_DTYPE = record(
    ("started", INTEGER),
    ("velocity_previous velocity_derivative velocity_integral", VECTOR),
    ("velocity_setpoint velocity_error acceleration_setpoint thrust_setpoint", VECTOR),
    ("yaw_setpoint yaw_rate_setpoint hover_thrust", NUMBER),
    ("speed_up_limit tilt_limit thrust_min", NUMBER),
    ("invalid_ticks", INTEGER),
)

HOVER_DTYPE = record(
    ("hover_thrust variance accel_noise_variance residual_lp", NUMBER),
    ("signed_ratio_lp innovation test_ratio", NUMBER),
    ("ground_z", NUMBER),  # where the drone stood before the flight, down
    ("in_air", INTEGER),
    ("valid", HYSTERESIS_DTYPE),
)

ATTITUDE_DTYPE = record(
    ("q_setpoint", QUATERNION),
    ("yaw_rate_setpoint thrust_setpoint_z", NUMBER),
    ("rates_setpoint", VECTOR),
    ("rates_thrust_z", NUMBER),
)

RATE_DTYPE = record(
    ("integral torque_setpoint", VECTOR),
    ("thrust_setpoint_z", NUMBER),
    ("unallocated_torque", VECTOR),
)

STATE_DTYPE = record(
    ("tick", INTEGER),
    ("setpoint", SETPOINT_DTYPE),
    ("vehicle", VEHICLE_DTYPE),
    ("gyro", GYRO_DTYPE),
    ("takeoff", TAKEOFF_DTYPE),
    ("land", LAND_DTYPE),
    ("position", POSITION_DTYPE),
    ("hover", HOVER_DTYPE),
    ("attitude", ATTITUDE_DTYPE),
    ("rate", RATE_DTYPE),
)
