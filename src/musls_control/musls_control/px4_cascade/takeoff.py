"""Take-off state machine and smooth ramp (PX4 v1.15 source, mc_pos_control/Takeoff)."""

from __future__ import annotations

import math
from enum import IntEnum

from musls_control.px4_cascade.hysteresis import update_hysteresis
from musls_control.px4_cascade.position_control import GRAVITY_M_S2, THRUST_IDLE
from musls_description.compiled import compiled

TILT_SLEW_RAD_S = 0.2

DISARMED, SPOOLUP, READY, RAMPUP, FLIGHT = 1, 2, 3, 4, 5


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
    normal limit: the thrust rises smoothly whatever the weight.
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
