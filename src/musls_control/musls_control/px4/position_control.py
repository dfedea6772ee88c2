"""Position and velocity control, NED (PX4 v1.15 source, mc_pos_control/PositionControl).

P on position, PID on velocity, then a thrust vector in units of "1 = all motors full". The hover
thrust is the bridge between acceleration and thrust.
"""

from __future__ import annotations

import math

from musls_description.numerics.compiled import compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2 as GRAVITY_M_S2

SMALL_SPEED_M_S = 1e-3
#: Thrust of an armed drone on the ground; the attitude needs a direction.
THRUST_IDLE = 1e-3
#: A set-point that cannot be flown is bridged for this long before the drone is told to stop.
FAILSAFE_DELAY_S = 0.2


@compiled()
def update_velocity_derivative(s, velocity, p):
    """Differentiate and low-pass the velocity; the first two samples only set the filter."""
    for i in range(3):
        if s.started > 0:
            derivative = (velocity[i] - s.velocity_previous[i]) / p.position_dt_s
            alpha = p.velocity_derivative_alpha if s.started > 1 else 1.0
            s.velocity_derivative[i] += alpha * (derivative - s.velocity_derivative[i])
        s.velocity_previous[i] = velocity[i]
    s.started = min(s.started + 1, 2)


@compiled()
def is_flyable(setpoint):
    """Tell whether each axis has something to follow, with x and y in pairs."""
    for i in range(3):
        if (
            math.isnan(setpoint.position[i])
            and math.isnan(setpoint.velocity[i])
            and math.isnan(setpoint.acceleration[i])
        ):
            return False
    return (
        math.isnan(setpoint.position[0]) == math.isnan(setpoint.position[1])
        and math.isnan(setpoint.velocity[0]) == math.isnan(setpoint.velocity[1])
        and math.isnan(setpoint.acceleration[0]) == math.isnan(setpoint.acceleration[1])
    )


@compiled()
def add_given(a, b):
    """Add two values of which a NaN one counts as not given."""
    if math.isnan(a):
        return b
    if math.isnan(b):
        return a
    return a + b


@compiled()
def constrain_horizontal(px, py, fx, fy, limit):
    """Limit p + f to a length, giving p priority over f."""
    sum_x = px + fx
    sum_y = py + fy
    if math.hypot(sum_x, sum_y) <= limit:
        return sum_x, sum_y
    p_norm = math.hypot(px, py)
    f_norm = math.hypot(fx, fy)
    if p_norm >= limit:
        return px / p_norm * limit, py / p_norm * limit
    if math.hypot(fx - px, fy - py) < SMALL_SPEED_M_S:
        return px / p_norm * limit, py / p_norm * limit
    if p_norm < SMALL_SPEED_M_S:
        return fx / f_norm * limit, fy / f_norm * limit
    # Walk from p along f until the circle of radius `limit`.
    ux = fx / f_norm
    uy = fy / f_norm
    along = ux * px + uy * py
    reach = -along + math.sqrt(along * along - (p_norm * p_norm - limit * limit))
    return px + ux * reach, py + uy * reach


@compiled()
def control_position(s, setpoint, vehicle, p):
    """Turn the position error into a velocity set-point within the speed limits."""
    gain_xy = p.MPC_XY_P
    from_position_x = _or_zero(gain_xy * (setpoint.position[0] - vehicle.position[0]))
    from_position_y = _or_zero(gain_xy * (setpoint.position[1] - vehicle.position[1]))
    if math.isnan(setpoint.position[0]) and math.isnan(setpoint.velocity[0]):
        s.velocity_setpoint[0] = math.nan
        s.velocity_setpoint[1] = math.nan
    else:
        x, y = constrain_horizontal(
            from_position_x,
            from_position_y,
            _or_zero(setpoint.velocity[0]),
            _or_zero(setpoint.velocity[1]),
            p.MPC_XY_VEL_MAX,
        )
        s.velocity_setpoint[0] = x
        s.velocity_setpoint[1] = y
    from_position_z = p.MPC_Z_P * (setpoint.position[2] - vehicle.position[2])
    vz = add_given(setpoint.velocity[2], from_position_z)
    # In the take-off ramp the climb limit is a sink speed above the sink limit, and it wins.
    if vz < -s.speed_up_limit:
        vz = -s.speed_up_limit
    elif vz > p.MPC_Z_VEL_MAX_DN:
        vz = p.MPC_Z_VEL_MAX_DN
    s.velocity_setpoint[2] = vz


@compiled()
def control_velocity(s, setpoint, vehicle, p):
    """Turn the velocity error into an acceleration and a thrust; update the integrator."""
    gains_p = (p.MPC_XY_VEL_P_ACC, p.MPC_XY_VEL_P_ACC, p.MPC_Z_VEL_P_ACC)
    gains_d = (p.MPC_XY_VEL_D_ACC, p.MPC_XY_VEL_D_ACC, p.MPC_Z_VEL_D_ACC)
    gains_i = (p.MPC_XY_VEL_I_ACC, p.MPC_XY_VEL_I_ACC, p.MPC_Z_VEL_I_ACC)
    s.velocity_integral[2] = min(max(s.velocity_integral[2], -GRAVITY_M_S2), GRAVITY_M_S2)
    for i in range(3):
        s.velocity_error[i] = s.velocity_setpoint[i] - vehicle.velocity[i]
        from_velocity = (
            gains_p[i] * s.velocity_error[i]
            + s.velocity_integral[i]
            - gains_d[i] * s.velocity_derivative[i]
        )
        s.acceleration_setpoint[i] = add_given(setpoint.acceleration[i], from_velocity)
    thrust_from_acceleration(s)
    saturate_thrust(s, p)
    for i in range(3):
        s.velocity_integral[i] += gains_i[i] * _or_zero(s.velocity_error[i]) * p.position_dt_s


@compiled()
def thrust_from_acceleration(s):
    """Convert the acceleration set-point into a thrust vector within the tilt limit.

    The direction ignores the vertical acceleration (PX4: MPC_ACC_DECOUPLE), so that climbing does
    not change the tilt; the length makes the vertical component right.
    """
    ax = s.acceleration_setpoint[0]
    ay = s.acceleration_setpoint[1]
    az = s.acceleration_setpoint[2]
    norm = math.sqrt(ax * ax + ay * ay + GRAVITY_M_S2 * GRAVITY_M_S2)
    bx = -ax / norm
    by = -ay / norm
    bz = GRAVITY_M_S2 / norm
    tilt = math.acos(min(max(bz, -1.0), 1.0))
    if tilt > s.tilt_limit:
        scale = math.sin(s.tilt_limit) / math.hypot(bx, by)
        bx = bx * scale
        by = by * scale
        bz = math.cos(s.tilt_limit)
    collective = (az * s.hover_thrust / GRAVITY_M_S2 - s.hover_thrust) / bz
    collective = min(collective, -s.thrust_min)
    s.thrust_setpoint[0] = bx * collective
    s.thrust_setpoint[1] = by * collective
    s.thrust_setpoint[2] = bz * collective


@compiled()
def saturate_thrust(s, p):
    """Fit the thrust into the limits, height before position, and stop the integrators' windup.

    Both anti-windup rules work on `velocity_error`, from which the integrators grow: vertically
    it is dropped, horizontally what the saturation took away is tracked back.
    """
    tx = s.thrust_setpoint[0]
    ty = s.thrust_setpoint[1]
    tz = s.thrust_setpoint[2]
    error_z = s.velocity_error[2]
    if (tz >= -s.thrust_min and error_z >= 0.0) or (tz <= -p.MPC_THR_MAX and error_z <= 0.0):
        s.velocity_error[2] = 0.0
    horizontal = math.hypot(tx, ty)
    margin = min(horizontal, p.MPC_THR_XY_MARG)
    max_squared = p.MPC_THR_MAX * p.MPC_THR_MAX
    tz = max(tz, -math.sqrt(max(max_squared - margin * margin, 0.0)))
    room = math.sqrt(max(max_squared - tz * tz, 0.0))
    if horizontal > room:
        tx = tx / horizontal * room
        ty = ty / horizontal * room
    s.thrust_setpoint[0] = tx
    s.thrust_setpoint[1] = ty
    s.thrust_setpoint[2] = tz

    ax = s.acceleration_setpoint[0]
    ay = s.acceleration_setpoint[1]
    produced_x = tx * GRAVITY_M_S2 / s.hover_thrust
    produced_y = ty * GRAVITY_M_S2 / s.hover_thrust
    if ax * ax + ay * ay > produced_x * produced_x + produced_y * produced_y:
        tracking = 2.0 / p.MPC_XY_VEL_P_ACC
        s.velocity_error[0] -= tracking * (ax - produced_x)
        s.velocity_error[1] -= tracking * (ay - produced_y)


@compiled()
def run_position_control(s, setpoint, vehicle, p):
    """Run one step of the position controller, with PX4's answer to impossible set-points."""
    update_velocity_derivative(s, vehicle.velocity, p)
    if is_flyable(setpoint):
        s.invalid_ticks = 0
    else:
        s.invalid_ticks += 1
        if (s.invalid_ticks - 1) * p.position_dt_s < FAILSAFE_DELAY_S:
            return  # keep the last output
        s.speed_up_limit = p.MPC_Z_VEL_MAX_UP
        for i in range(3):  # stop and wait
            setpoint.position[i] = math.nan
            setpoint.velocity[i] = 0.0
            setpoint.acceleration[i] = math.nan
        setpoint.yaw = math.nan
        setpoint.yaw_rate = 0.0
    control_position(s, setpoint, vehicle, p)
    control_velocity(s, setpoint, vehicle, p)
    s.yaw_setpoint = vehicle.yaw if math.isnan(setpoint.yaw) else setpoint.yaw
    s.yaw_rate_setpoint = _or_zero(setpoint.yaw_rate)


@compiled()
def change_hover_thrust(s, hover_thrust):
    """Take a new hover thrust over without a jump of the thrust: the integrator absorbs it."""
    previous = s.hover_thrust
    s.hover_thrust = min(max(hover_thrust, 0.05), 0.9)
    az = s.acceleration_setpoint[2]
    ratio = previous / s.hover_thrust
    s.velocity_integral[2] += (az - GRAVITY_M_S2) * ratio + GRAVITY_M_S2 - az


@compiled()
def _or_zero(value):
    """Return 0 for NaN."""
    return 0.0 if math.isnan(value) else value
