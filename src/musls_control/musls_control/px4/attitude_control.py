"""Attitude control on quaternions with reduced yaw priority, rate control, gyro filter.

Source: PX4 v1.15, mc_att_control, mc_rate_control, sensors/vehicle_angular_velocity.
"""

from __future__ import annotations

import math

from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    body_z_in_world,
    conjugate,
    cross,
    dot,
    norm,
    put_quaternion,
    quaternion_product,
    scale,
    world_z_in_body,
)

#: Below this the axes count as (anti)parallel.
PARALLEL_EPSILON = 1e-5


@compiled()
def shortest_rotation(a, b):
    """Return the unit quaternion of the shortest rotation that turns unit vector a into b.

    For opposite vectors the axis is the unit axis most orthogonal to a, made normal to it.
    """
    axis = cross(a, b)
    w = dot(a, b) + 1.0
    if dot(a, b) < 0.0 and norm(axis) < PARALLEL_EPSILON:
        w = 0.0
        if abs(a[0]) < abs(a[1]) and abs(a[0]) < abs(a[2]):
            axis = 0.0, a[2], -a[1]
        elif abs(a[1]) < abs(a[2]):
            axis = -a[2], 0.0, a[0]
        else:
            axis = a[1], -a[0], 0.0
    size = math.sqrt(w * w + axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2])
    return w / size, axis[0] / size, axis[1] / size, axis[2] / size


@compiled()
def reduced_attitude_setpoint(q, q_setpoint, yaw_weight):
    """Return the set-point with only `yaw_weight` of its rotation about the thrust axis."""
    reduced = shortest_rotation(body_z_in_world(q), body_z_in_world(q_setpoint))
    if abs(reduced[1]) > 1.0 - PARALLEL_EPSILON or abs(reduced[2]) > 1.0 - PARALLEL_EPSILON:
        # Thrust the wrong way round: the reduced rotation is undefined, go all the way.
        reduced = (q_setpoint[0], q_setpoint[1], q_setpoint[2], q_setpoint[3])
    else:
        reduced = quaternion_product(reduced, q)
    mw, _, _, mz = quaternion_product(conjugate(reduced), q_setpoint)
    if mw < 0.0:
        mw = -mw
        mz = -mz
    # rounding may push them out of acos and asin
    mw = min(mw, 1.0)
    mz = min(max(mz, -1.0), 1.0)
    yaw_w = math.cos(yaw_weight * math.acos(mw))
    yaw_z = math.sin(yaw_weight * math.asin(mz))
    return quaternion_product(reduced, (yaw_w, 0.0, 0.0, yaw_z))


@compiled()
def control_attitude(s, q, p):
    """Turn the attitude error into a body rate set-point."""
    weight = p.MC_YAW_WEIGHT
    desired = reduced_attitude_setpoint(q, s.q_setpoint, weight)
    error = quaternion_product(conjugate(q), desired)
    sign = 2.0 if error[0] >= 0.0 else -2.0
    # The error was reduced by the weight, the gain makes up for it: yaw is slower only in company.
    yaw_gain = p.MC_YAW_P / weight if weight > 1e-4 else p.MC_YAW_P
    gains = p.MC_ROLL_P, p.MC_PITCH_P, yaw_gain
    limits = p.MC_ROLLRATE_MAX, p.MC_PITCHRATE_MAX, p.MC_YAWRATE_MAX
    down = world_z_in_body(q)  # NED: the wanted yaw rate is about it
    for i in range(3):
        rate = sign * error[1 + i] * gains[i] + down[i] * s.yaw_rate_setpoint
        limit = math.radians(limits[i])
        s.rates_setpoint[i] = min(max(rate, -limit), limit)
    s.rates_thrust_z = s.thrust_setpoint_z


# ---------- From a thrust vector and a yaw angle to an attitude (PX4 v1.15 source, ControlMath)


@compiled()
def set_attitude_from_thrust(s, thrust, yaw, yaw_rate):
    """Point the body's thrust axis along the thrust, its nose as near to the yaw as it goes."""
    size = norm(thrust)
    z = (0.0, 0.0, 1.0) if size < 1e-9 else scale_down(thrust, -size)
    # x = y_c cross z with y_c the direction right of the nose in the horizontal plane
    x = cross((-math.sin(yaw), math.cos(yaw), 0.0), z)
    if z[2] < 0.0:
        x = scale(-1.0, x)
    if abs(z[2]) < 1e-6:
        x = 0.0, 0.0, 1.0
    x = scale_down(x, norm(x))
    put_quaternion(s.q_setpoint, quaternion_from_columns(x, cross(z, x), z))
    s.yaw_rate_setpoint = yaw_rate
    s.thrust_setpoint_z = -size


@compiled()
def scale_down(a, size):
    """Return a vector divided by a number, rounded as PX4 does."""
    return a[0] / size, a[1] / size, a[2] / size


@compiled()
def quaternion_from_columns(x, y, z):
    """Return w, x, y, z of the rotation matrix with columns x, y, z (largest-element method).

    PX4's own arithmetic, which `vectors.from_matrix` does not repeat bit for bit.
    """
    trace = x[0] + y[1] + z[2]
    if trace > 0.0:
        t = math.sqrt(trace + 1.0)
        k = 0.5 / t
        return 0.5 * t, (y[2] - z[1]) * k, (z[0] - x[2]) * k, (x[1] - y[0]) * k
    if x[0] >= y[1] and x[0] >= z[2]:
        t = math.sqrt(x[0] - y[1] - z[2] + 1.0)
        k = 0.5 / t
        return (y[2] - z[1]) * k, 0.5 * t, (x[1] + y[0]) * k, (z[0] + x[2]) * k
    if y[1] >= z[2]:
        t = math.sqrt(y[1] - z[2] - x[0] + 1.0)
        k = 0.5 / t
        return (z[0] - x[2]) * k, (y[0] + x[1]) * k, 0.5 * t, (y[2] + z[1]) * k
    t = math.sqrt(z[2] - x[0] - y[1] + 1.0)
    k = 0.5 / t
    return (x[1] - y[0]) * k, (z[0] + x[2]) * k, (y[2] + z[1]) * k, 0.5 * t


# ---------- Body rate control: PID with feed-forward (PX4 v1.15 source, mc_rate_control)

#: Body rate error at which the integrator stops, against bounce-back after flips.
INTEGRATOR_FADE_RAD_S = math.radians(400.0)

#: Below this an allocation residue is rounding, not saturation (PX4: FLT_EPSILON).
SATURATION_THRESHOLD = 1.1920929e-7


@compiled()
def integrate_axis(integral, error, unallocated, i_gain, limit, dt_s):
    """Return the integrator of one axis after one step.

    It does not grow into the direction that the motors failed to deliver, and it slows down with
    large errors.
    """
    if unallocated > SATURATION_THRESHOLD:
        error = min(error, 0.0)
    elif unallocated < -SATURATION_THRESHOLD:
        error = max(error, 0.0)
    relative = error / INTEGRATOR_FADE_RAD_S
    fade = max(0.0, 1.0 - relative * relative)
    return min(max(integral + fade * i_gain * error * dt_s, -limit), limit)


@compiled()
def control_rates(s, rates_setpoint, gyro, armed, may_be_landed, p):
    """Turn a body rate error into a normalised torque, one step.

    The torque uses the integrator of the previous step and is not clipped: what does not fit is
    the allocation's business.
    """
    if armed == 0:
        for i in range(3):
            s.integral[i] = 0.0
    gains = (
        (
            p.MC_ROLLRATE_K * p.MC_ROLLRATE_P,
            p.MC_ROLLRATE_K * p.MC_ROLLRATE_I,
            p.MC_ROLLRATE_K * p.MC_ROLLRATE_D,
            p.MC_ROLLRATE_FF,
            p.MC_RR_INT_LIM,
        ),
        (
            p.MC_PITCHRATE_K * p.MC_PITCHRATE_P,
            p.MC_PITCHRATE_K * p.MC_PITCHRATE_I,
            p.MC_PITCHRATE_K * p.MC_PITCHRATE_D,
            p.MC_PITCHRATE_FF,
            p.MC_PR_INT_LIM,
        ),
        (
            p.MC_YAWRATE_K * p.MC_YAWRATE_P,
            p.MC_YAWRATE_K * p.MC_YAWRATE_I,
            p.MC_YAWRATE_K * p.MC_YAWRATE_D,
            p.MC_YAWRATE_FF,
            p.MC_YR_INT_LIM,
        ),
    )
    for i in range(3):
        p_gain, i_gain, d_gain, feed_forward, limit = gains[i]
        setpoint = rates_setpoint[i]
        rate = gyro.omega[i]
        follow = p_gain * (setpoint - rate) + s.integral[i] - d_gain * gyro.omega_derivative[i]
        s.torque_setpoint[i] = follow + feed_forward * setpoint
        if armed != 0 and may_be_landed == 0:
            s.integral[i] = integrate_axis(
                s.integral[i], setpoint - rate, s.unallocated_torque[i], i_gain, limit, p.dt_s
            )


# ---------- Gyro low pass, angular acceleration (PX4 v1.15, sensors/vehicle_angular_velocity)


def butterworth_coefficients(cutoff_hz: float, sample_rate_hz: float) -> tuple[float, float, float]:
    """Return b0, a1, a2 of the second-order Butterworth low pass (b1 = 2 b0, b2 = b0)."""
    k = math.tan(math.pi * cutoff_hz / sample_rate_hz)
    damping = 2.0 * math.cos(math.pi / 4.0) * k
    c = 1.0 + damping + k * k
    return k * k / c, 2.0 * (k * k - 1.0) / c, (1.0 - damping + k * k) / c


def first_order_alpha(cutoff_hz: float, dt_s: float) -> float:
    """Return the weight of the new sample in a first-order low pass; 1 when switched off."""
    if cutoff_hz <= 0.0:
        return 1.0
    return dt_s / (dt_s + 1.0 / (2.0 * math.pi * cutoff_hz))


@compiled()
def filter_gyro(s, omega_raw, p):
    """Low-pass the body rate and differentiate the result, one sample.

    The first sample sets the filter to its steady state, so that a drone that starts while
    rotating sees no step.
    """
    if s.started == 0:
        s.started = 1
        for i in range(3):
            steady = omega_raw[i] / (1.0 + p.gyro_a1 + p.gyro_a2)
            s.delay_1[i] = steady
            s.delay_2[i] = steady
            s.omega[i] = omega_raw[i]
            s.omega_derivative[i] = 0.0
    for i in range(3):
        delay_0 = omega_raw[i] - p.gyro_a1 * s.delay_1[i] - p.gyro_a2 * s.delay_2[i]
        filtered = p.gyro_b0 * (delay_0 + 2.0 * s.delay_1[i] + s.delay_2[i])
        s.delay_2[i] = s.delay_1[i]
        s.delay_1[i] = delay_0
        raw_derivative = (filtered - s.omega[i]) / p.dt_s
        s.omega_derivative[i] += p.gyro_derivative_alpha * (raw_derivative - s.omega_derivative[i])
        s.omega[i] = filtered
