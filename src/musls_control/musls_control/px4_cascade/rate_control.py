"""Body rate control: PID with feed-forward (PX4 v1.15 source, mc_rate_control)."""

from __future__ import annotations

import math

from musls_description.compiled import compiled

#: Body rate error at which the integrator stops, against bounce-back after flips.
INTEGRATOR_FADE_RAD_S = math.radians(400.0)

#: Below this an allocation residue is rounding, not saturation (PX4: FLT_EPSILON).
SATURATION_THRESHOLD = 1.1920929e-7


@compiled()
def rate_axis(rate_setpoint, rate, rate_derivative, integral, p_gain, d_gain, feed_forward):
    """Return the normalised torque of one axis."""
    proportional = p_gain * (rate_setpoint - rate)
    return proportional + integral - d_gain * rate_derivative + feed_forward * rate_setpoint


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
        (p.MC_ROLLRATE_K * p.MC_ROLLRATE_P, p.MC_ROLLRATE_K * p.MC_ROLLRATE_I,
         p.MC_ROLLRATE_K * p.MC_ROLLRATE_D, p.MC_ROLLRATE_FF, p.MC_RR_INT_LIM),
        (p.MC_PITCHRATE_K * p.MC_PITCHRATE_P, p.MC_PITCHRATE_K * p.MC_PITCHRATE_I,
         p.MC_PITCHRATE_K * p.MC_PITCHRATE_D, p.MC_PITCHRATE_FF, p.MC_PR_INT_LIM),
        (p.MC_YAWRATE_K * p.MC_YAWRATE_P, p.MC_YAWRATE_K * p.MC_YAWRATE_I,
         p.MC_YAWRATE_K * p.MC_YAWRATE_D, p.MC_YAWRATE_FF, p.MC_YR_INT_LIM),
    )  # fmt: skip
    for i in range(3):
        p_gain, i_gain, d_gain, feed_forward, limit = gains[i]
        wanted, rate = rates_setpoint[i], gyro.omega[i]
        s.torque_setpoint[i] = rate_axis(
            wanted, rate, gyro.omega_derivative[i], s.integral[i], p_gain, d_gain, feed_forward
        )
        if armed != 0 and may_be_landed == 0:
            s.integral[i] = integrate_axis(
                s.integral[i], wanted - rate, s.unallocated_torque[i], i_gain, limit, p.dt_s
            )
