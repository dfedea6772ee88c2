"""The one compiled call per step: the whole chain, for all drones.

Order of a step (as most steps of PX4 in lockstep): the rates of this very sample meet the rate
set-point of the previous step, torque and thrust reach the motors in the same step; then attitude
control prepares the next rate set-point with an attitude set-point of an earlier step; every second
step the outer loops run.
"""

from __future__ import annotations

import numba

from musls_control.px4_cascade.allocation import allocate, output_motors, unallocated_torque
from musls_control.px4_cascade.attitude_control import control_attitude
from musls_control.px4_cascade.attitude_setpoint import set_attitude_from_thrust
from musls_control.px4_cascade.gyro_filter import filter_gyro
from musls_control.px4_cascade.hover_thrust import update_hover_thrust
from musls_control.px4_cascade.land_detector import detect_landing
from musls_control.px4_cascade.layout import PARAMETER_DTYPE, STATE_DTYPE
from musls_control.px4_cascade.position_control import change_hover_thrust, run_position_control
from musls_control.px4_cascade.rate_control import control_rates
from musls_control.px4_cascade.takeoff import prepare_position_control
from musls_control.px4_frames import (
    body_flu_frd_scalars,
    orientation_enu_ned_scalars,
    world_enu_ned_scalars,
    yaw_enu_ned_scalars,
)
from musls_description.compiled import compiled
from musls_description.compiled_rotations import yaw_of

POSITION_DIVIDER = 2


@compiled()
def read_vehicle(vehicle, row):
    """Convert one row of `Estimate` to NED/FRD."""
    position, velocity, acceleration = vehicle.position, vehicle.velocity, vehicle.acceleration
    position[0], position[1], position[2] = world_enu_ned_scalars(row[0], row[1], row[2])
    velocity[0], velocity[1], velocity[2] = world_enu_ned_scalars(row[3], row[4], row[5])
    w, x, y, z = orientation_enu_ned_scalars(row[6], row[7], row[8], row[9])
    q = vehicle.q
    q[0], q[1], q[2], q[3] = w, x, y, z
    omega = vehicle.omega_raw
    omega[0], omega[1], omega[2] = body_flu_frd_scalars(row[10], row[11], row[12])
    acceleration[0], acceleration[1], acceleration[2] = world_enu_ned_scalars(
        row[13], row[14], row[15]
    )


@compiled()
def read_setpoint(setpoint, row):
    """Convert one row of `DroneSetpoints` to NED."""
    position, velocity, acceleration = setpoint.position, setpoint.velocity, setpoint.acceleration
    position[0], position[1], position[2] = world_enu_ned_scalars(row[0], row[1], row[2])
    velocity[0], velocity[1], velocity[2] = world_enu_ned_scalars(row[3], row[4], row[5])
    acceleration[0], acceleration[1], acceleration[2] = world_enu_ned_scalars(
        row[6], row[7], row[8]
    )
    setpoint.yaw = yaw_enu_ned_scalars(row[9])
    setpoint.yaw_rate = -row[10]


@compiled()
def run_inner_loops(state, p, mixer, u, omega_cmd):
    """Run gyro filter, rate control, allocation, output and attitude control."""
    armed = state.setpoint.armed
    rate = state.rate
    filter_gyro(state.gyro, state.vehicle.omega_raw, p)
    may_be_landed = state.land.landed.state | state.land.maybe_landed.state
    control_rates(rate, state.attitude.rates_setpoint, state.gyro, armed, may_be_landed, p)
    rate.thrust_setpoint_z = state.attitude.rates_thrust_z
    allocate(u, mixer, rate.torque_setpoint, rate.thrust_setpoint_z)
    if state.tick % POSITION_DIVIDER == 1:  # reported at 125 Hz, in the steps between
        unallocated_torque(rate.unallocated_torque, u, mixer, rate.torque_setpoint)
    output_motors(u, omega_cmd, mixer, armed, p.THR_MDL_FAC)
    control_attitude(state.attitude, state.vehicle.q, p)


@compiled()
def run_outer_loops(state, p):
    """Run hover thrust estimator, take-off, position control and land detector."""
    setpoint, vehicle, position = state.setpoint, state.vehicle, state.position
    armed = setpoint.armed
    vehicle.yaw = yaw_of(vehicle.q[0], vehicle.q[1], vehicle.q[2], vehicle.q[3])
    thrust = position.thrust_setpoint
    update_hover_thrust(state.hover, vehicle, thrust, armed, state.land.landed.state, p)
    if p.MPC_USE_HTE > 0.5 and state.hover.valid.state != 0:
        change_hover_thrust(position, state.hover.hover_thrust)
    descent_speed = setpoint.velocity[2]  # before the take-off logic overwrites the set-point
    prepare_position_control(state.takeoff, state.land, position, setpoint, vehicle, p)
    run_position_control(position, setpoint, vehicle, p)
    set_attitude_from_thrust(
        state.attitude, position.thrust_setpoint, position.yaw_setpoint, position.yaw_rate_setpoint
    )
    detect_landing(
        state.land,
        vehicle,
        state.gyro.omega,
        -state.rate.thrust_setpoint_z,
        armed,
        descent_speed,
        state.hover,
        p,
    )


@compiled(
    numba.void(
        numba.float64[:, ::1],
        numba.float64[:, ::1],
        numba.from_dtype(PARAMETER_DTYPE)[::1],
        numba.from_dtype(STATE_DTYPE)[::1],
        numba.float64[:, :, ::1],
        numba.float64[:, :, ::1],
    )
)
def step_drones(setpoints, measurements, parameters, states, mixers, commands):
    """Advance all drones by one step."""
    for i in range(states.shape[0]):
        state, p = states[i], parameters[i]
        state.setpoint.armed = 1 if setpoints[i, 11] > 0.5 else 0
        read_vehicle(state.vehicle, measurements[i])
        if state.tick == 0:  # no attitude set-point yet: hold, or a flying drone would be jerked
            for k in range(4):
                state.attitude.q_setpoint[k] = state.vehicle.q[k]
        run_inner_loops(state, p, mixers[i], commands[i, 0], commands[i, 1])
        if state.tick % POSITION_DIVIDER == 0:
            read_setpoint(state.setpoint, setpoints[i])
            run_outer_loops(state, p)
        state.tick += 1
