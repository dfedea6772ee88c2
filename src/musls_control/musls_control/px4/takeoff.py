"""Take-off with its smooth ramp (PX4 v1.15 source, mc_pos_control/Takeoff), landing, hover."""

from __future__ import annotations

import math
from enum import IntEnum

from musls_control.px4.position_control import THRUST_IDLE
from musls_description.numerics.compiled import compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2 as GRAVITY_M_S2

# ---------- Time hysteresis on a flag

#: Slack for times that are whole multiples of the step but not in binary.
TIME_TOLERANCE_S = 1e-9


@compiled()
def update_hysteresis(flag, requested, rise_time_s, dt_s):
    """Follow a request: rising only after it has stood for a time, falling at once.

    Source: PX4 v1.15 source, lib/hysteresis.
    """
    if requested != flag.requested:
        flag.requested = requested
        flag.ticks = 0
    else:
        flag.ticks += 1
    if flag.requested == 0:
        flag.state = 0
    elif flag.ticks * dt_s >= rise_time_s - TIME_TOLERANCE_S:
        flag.state = 1
    return flag.state


TILT_SLEW_RAD_S = 0.2

DISARMED = 1
SPOOLUP = 2
READY = 3
RAMPUP = 4
FLIGHT = 5


class TakeoffState(IntEnum):
    """States on the way into the air, numbered as in PX4's takeoff_status topic."""

    DISARMED = DISARMED
    SPOOLUP = SPOOLUP
    READY = READY
    RAMPUP = RAMPUP
    FLIGHT = FLIGHT


@compiled()
def wants_takeoff(setpoint, position_z, landed):
    """Tell whether the set-point asks an armed drone on the ground to leave it."""
    return (
        setpoint.armed != 0
        and landed != 0
        and (
            setpoint.position[2] < position_z
            or setpoint.velocity[2] < 0.0
            or setpoint.acceleration[2] < 0.0
        )
    )


@compiled()
def update_takeoff_state(s, armed, landed, want_takeoff, p):
    """Advance the state machine; several states may pass in one step."""
    spun_up = update_hysteresis(s.spoolup, armed, p.COM_SPOOLUP_TIME, p.position_dt_s)
    if armed == 0:
        s.state = DISARMED
        return
    if s.state == DISARMED:
        s.state = SPOOLUP
    if s.state == SPOOLUP and spun_up != 0:
        s.state = READY
    if s.state == READY and want_takeoff:
        s.state = RAMPUP
        s.ramp_progress = 0.0
    if s.state == RAMPUP and s.ramp_progress >= 1.0:
        s.state = FLIGHT
    if s.state == FLIGHT and landed != 0:
        s.state = READY


@compiled()
def ramped_climb_limit(s, p):
    """Advance the take-off ramp and return the climb speed limit, m/s.

    The ramp starts at a speed limit so far downwards that the thrust is zero, and ends at the
    normal limit: the thrust rises smoothly for any weight.
    """
    start = -GRAVITY_M_S2 / max(p.MPC_Z_VEL_P_ACC, 0.01)
    if s.state < RAMPUP:
        return start
    if s.state == RAMPUP:
        if p.position_dt_s < p.MPC_TKO_RAMP_T:
            s.ramp_progress += p.position_dt_s / p.MPC_TKO_RAMP_T
        else:
            s.ramp_progress = 1.0
        if s.ramp_progress < 1.0:
            return start + s.ramp_progress * (p.MPC_Z_VEL_MAX_UP - start)
    return p.MPC_Z_VEL_MAX_UP


@compiled()
def prepare_position_control(takeoff, land, position, setpoint, vehicle, p):
    """Set the position controller's limits and set-point according to the take-off state."""
    want_takeoff = wants_takeoff(setpoint, vehicle.position[2], land.landed.state)
    update_takeoff_state(takeoff, setpoint.armed, land.landed.state, want_takeoff, p)
    flying = takeoff.state >= FLIGHT
    if not flying:
        setpoint.acceleration[2] = math.nan  # a feed-forward must not shorten the ramp
        position.hover_thrust = p.MPC_THR_HOVER
    if takeoff.state < RAMPUP or (flying and land.ground_contact.state != 0):
        hold_on_ground(setpoint)
        for i in range(3):
            position.velocity_integral[i] = 0.0
    goal = math.radians(p.MPC_TILTMAX_AIR if flying else p.MPC_TILTMAX_LND)
    step = TILT_SLEW_RAD_S * p.position_dt_s
    takeoff.tilt_limit += min(max(goal - takeoff.tilt_limit, -step), step)
    position.tilt_limit = takeoff.tilt_limit
    climb_limit = ramped_climb_limit(takeoff, p)
    position.speed_up_limit = min(climb_limit, p.MPC_Z_VEL_MAX_UP)
    position.thrust_min = max(p.MPC_THR_MIN if flying else 0.0, THRUST_IDLE)


@compiled()
def hold_on_ground(setpoint):
    """Replace the set-point by a large downward acceleration: least thrust, no corrections."""
    for i in range(3):
        setpoint.position[i] = math.nan
        setpoint.velocity[i] = math.nan
        setpoint.acceleration[i] = 0.0
    setpoint.acceleration[2] = 100.0
    setpoint.yaw = math.nan
    setpoint.yaw_rate = math.nan


# ---------- Land detector (PX4 v1.15 source, land_detector/MulticopterLandDetector)
#
# Three stages, each held for a third of LNDMC_TRIG_TIME: ground contact (commanded down, little
# thrust, no motion), perhaps landed (least thrust, no rotation), landed. There is no range finder,
# so PX4's check of the distance to the ground does not apply.

DESCENT_SPEED_M_S = 0.3
FREEFALL_ACCELERATION_M_S2 = 2.0
FREEFALL_TIME_S = 0.3
#: Thresholds on motion are wider once the drone is perhaps landed.
LANDED_FACTOR = 2.5
HOVER_THRUST_MEMORY_S = 1.0


@compiled()
def note_hover_thrust(s, hover, p):
    """Remember the last valid hover thrust and for how long it has not been renewed."""
    if p.MPC_USE_HTE > 0.5 and hover.valid.state != 0:
        s.hover_throttle = hover.hover_thrust
        s.ticks_since_valid_hover = 0
    else:
        s.ticks_since_valid_hover += 1
    fresh = s.ticks_since_valid_hover * p.position_dt_s < HOVER_THRUST_MEMORY_S
    if s.in_descend == 0 or fresh:
        # An estimate lost on the way down is still trusted until the descent ends.
        s.hover_thrust_trusted = 1 if fresh else 0


@compiled()
def has_ground_contact(s, vehicle, thrust, descent_speed, p):
    """Whether an armed drone that is commanded down no longer moves."""
    factor = LANDED_FACTOR if s.maybe_landed.state != 0 else 1.0
    moves_z = abs(vehicle.velocity[2]) > p.LNDMC_Z_VEL_MAX * factor
    moves_xy = math.hypot(vehicle.velocity[0], vehicle.velocity[1]) > p.LNDMC_XY_VEL_MAX
    share = 0.6 if s.hover_thrust_trusted != 0 else 0.3
    low_thrust = thrust <= p.MPC_THR_MIN + (s.hover_throttle - p.MPC_THR_MIN) * share
    s.in_descend = 1 if descent_speed > DESCENT_SPEED_M_S else 0
    on_ground = s.maybe_landed.state != 0 or s.landed.state != 0
    return low_thrust and (s.in_descend != 0 or on_ground) and not moves_xy and not moves_z


@compiled()
def is_perhaps_landed(s, omega, thrust, p):
    """Tell whether an armed drone in ground contact idles without rotating."""
    if thrust > p.MPC_THR_MIN + (s.hover_throttle - p.MPC_THR_MIN) * 0.1:
        return False
    if s.freefall.state != 0:
        return False
    factor = LANDED_FACTOR if s.maybe_landed.state != 0 else 1.0
    if math.hypot(omega[0], omega[1]) > math.radians(p.LNDMC_ROT_MAX) * factor:
        return False
    return s.ground_contact.state != 0


@compiled()
def detect_landing(s, vehicle, omega, thrust, armed, descent_speed, hover, p):
    """Run the land detector for one step of position control."""
    note_hover_thrust(s, hover, p)
    dt = p.position_dt_s
    stage_time = p.LNDMC_TRIG_TIME / 3.0
    ax = vehicle.acceleration[0]
    ay = vehicle.acceleration[1]
    az = vehicle.acceleration[2]
    az -= GRAVITY_M_S2
    falls = math.sqrt(ax * ax + ay * ay + az * az) < FREEFALL_ACCELERATION_M_S2
    update_hysteresis(s.freefall, 1 if falls else 0, FREEFALL_TIME_S, dt)
    contact = has_ground_contact(s, vehicle, thrust, descent_speed, p) or armed == 0
    update_hysteresis(s.ground_contact, 1 if contact else 0, stage_time, dt)
    perhaps = armed == 0 or is_perhaps_landed(s, omega, thrust, p)
    update_hysteresis(s.maybe_landed, 1 if perhaps else 0, stage_time, dt)
    landed = armed == 0 or s.maybe_landed.state != 0
    update_hysteresis(s.landed, 1 if landed else 0, stage_time, dt)


# ---------- Hover thrust estimator: a Kalman filter (PX4 v1.15 source, mc_hover_thrust_estimator)
#
# Model: upward acceleration = g thrust / hover_thrust - g. The measurement noise is learned from
# the residuals. With a slung load this estimator is what adapts the flight stack to the weight.

LOW_PASS_TIME_S = 1.0
NOISE_LEARNING_TIME_S = 2.0
FIRST_ACCEL_NOISE_VARIANCE = 5.0
VALID_VARIANCE = 1e-3
VALID_TIME_S = 2.0
IN_AIR_HEIGHT_M = 1.0


@compiled()
def reset_hover_thrust(s, p):
    """Restart the filter at MPC_THR_HOVER; the learned offsets stay, as in PX4."""
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
        estimate = s.hover_thrust + gain * innovation
        s.hover_thrust = min(max(estimate, p.hover_thrust_min), p.hover_thrust_max)
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
    elif s.ground_z - vehicle.position[2] > IN_AIR_HEIGHT_M:
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
