"""Hover thrust estimator: a scalar Kalman filter (PX4 v1.15 source, mc_hover_thrust_estimator).

Model: upward acceleration = g thrust / hover_thrust - g. The measurement noise is learned from the
residuals. With a slung load this estimator is what adapts the flight stack to the weight.
"""

from __future__ import annotations

import math

from musls_control.px4_cascade.hysteresis import update_hysteresis
from musls_control.px4_cascade.position_control import GRAVITY_M_S2
from musls_description.compiled import compiled

LOW_PASS_TIME_S = 1.0
NOISE_LEARNING_TIME_S = 2.0
FIRST_ACCEL_NOISE_VARIANCE = 5.0
VALID_VARIANCE = 1e-3
VALID_TIME_S = 2.0
IN_AIR_HEIGHT_M = 1.0


@compiled()
def reset_hover_thrust(s, p):
    """Start the filter anew from MPC_THR_HOVER; the learned offsets stay, as in PX4."""
    s.hover_thrust = p.MPC_THR_HOVER
    s.variance = p.HTE_HT_ERR_INIT * p.HTE_HT_ERR_INIT
    s.accel_noise_variance = FIRST_ACCEL_NOISE_VARIANCE


@compiled()
def fuse_vertical_acceleration(s, acceleration_up, thrust, noise_scale, p):
    """Predict and correct the hover thrust with one acceleration."""
    dt = p.position_dt_s
    process_variance = p.HTE_HT_NOISE * p.HTE_HT_NOISE
    s.variance += process_variance * dt * dt
    h = -GRAVITY_M_S2 * thrust / (s.hover_thrust * s.hover_thrust)
    noise = s.accel_noise_variance * noise_scale * noise_scale
    innovation_variance = max(h * s.variance * h + noise, noise)
    innovation = acceleration_up - (GRAVITY_M_S2 * thrust / s.hover_thrust - GRAVITY_M_S2)
    gate = p.HTE_ACC_GATE * p.HTE_ACC_GATE
    ratio = innovation * innovation / (gate * innovation_variance)
    residual = innovation
    if ratio < 1.0:
        gain = s.variance * h / innovation_variance
        moved = s.hover_thrust + gain * innovation
        s.hover_thrust = min(max(moved, p.hover_thrust_min), p.hover_thrust_max)
        s.variance = min(max((1.0 - gain * h) * s.variance, 1e-10), 1.0)
        residual = acceleration_up - (GRAVITY_M_S2 * thrust / s.hover_thrust - GRAVITY_M_S2)
    elif abs(s.signed_ratio_lp) > 0.2:
        # Everything was rejected for a while: the weight has changed, open the filter.
        s.variance += 1e3 * process_variance * dt * dt
    _learn_noise(s, residual, math.copysign(min(ratio, 1.0), innovation), h, dt)
    s.innovation = innovation
    s.test_ratio = ratio


@compiled()
def _learn_noise(s, residual, signed_ratio, h, dt):
    """Update the low passes and the noise variance from the residual after the correction."""
    alpha = dt / (LOW_PASS_TIME_S + dt)
    s.residual_lp += alpha * (residual - s.residual_lp)
    s.signed_ratio_lp += alpha * (signed_ratio - s.signed_ratio_lp)
    alpha = dt / (NOISE_LEARNING_TIME_S + dt)
    unbiased = residual - s.residual_lp
    learned = unbiased * unbiased + h * s.variance * h
    blended = (1.0 - alpha) * s.accel_noise_variance + alpha * learned
    s.accel_noise_variance = min(max(blended, 1.0), 400.0)


@compiled()
def update_hover_thrust(s, vehicle, thrust_setpoint, armed, landed, p):
    """Run the estimator for one step of position control."""
    if landed != 0:
        s.in_air = 0
    elif -vehicle.position[2] - p.ground_height_m > IN_AIR_HEIGHT_M:
        s.in_air = 1
    if armed == 0 or s.in_air == 0:
        update_hysteresis(s.valid, 0, VALID_TIME_S, p.position_dt_s)
        if armed == 0:
            reset_hover_thrust(s, p)
        return
    speed_z = abs(vehicle.velocity[2])
    speed_xy = math.hypot(vehicle.velocity[0], vehicle.velocity[1])
    noise_scale = max(1.0, speed_z - p.HTE_VZ_THR + 1.0, speed_xy - p.HTE_VXY_THR + 1.0)
    fuse_vertical_acceleration(s, -vehicle.acceleration[2], -thrust_setpoint[2], noise_scale, p)
    # Once valid, single rejected samples do not make the estimate invalid.
    good = s.variance < VALID_VARIANCE and (s.valid.state == 1 or s.test_ratio < 1.0)
    update_hysteresis(s.valid, 1 if good else 0, VALID_TIME_S, p.position_dt_s)
