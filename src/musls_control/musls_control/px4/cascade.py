"""`Px4Cascade`: PX4's multicopter control chain for all drones of a system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from musls_control.autopilot import Autopilot, DroneSetpoints, MotorCommands
from musls_control.estimate import Estimate
from musls_control.px4.allocation import (
    OMEGA_MAX,
    OMEGA_MIN,
    RotorLayout,
    allocate,
    build_mixer,
    output_motors,
    unallocated_torque,
)
from musls_control.px4.attitude_control import (
    butterworth_coefficients,
    control_attitude,
    control_rates,
    filter_gyro,
    first_order_alpha,
    set_attitude_from_thrust,
)
from musls_control.px4.frames import body_swapped, orientation_swapped, world_swapped, yaw_swapped
from musls_control.px4.layout import PARAMETER_DTYPE, STATE_DTYPE
from musls_control.px4.parameters import PX4_PARAMETERS, px4_parameters
from musls_control.px4.position_control import (
    THRUST_IDLE,
    change_hover_thrust,
    run_position_control,
)
from musls_control.px4.takeoff import (
    DISARMED,
    FIRST_ACCEL_NOISE_VARIANCE,
    FLIGHT,
    detect_landing,
    prepare_position_control,
    update_hover_thrust,
)
from musls_description.config.errors import ConfigError
from musls_description.numerics.compiled import compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2 as GRAVITY_M_S2
from musls_description.numerics.rotations import rotate
from musls_description.numerics.vectors import put, put_quaternion, yaw_of

# ---------- State of the chain after power-up, or of a drone that is already in the air

#: Stands for "never" where steps since an event are counted.
LONG_AGO_TICKS = 1 << 40


def initial_state(parameters: np.ndarray, *, in_flight: bool) -> np.ndarray:
    """Return fresh `STATE_DTYPE` records, (n_drones,), for records of `PARAMETER_DTYPE`.

    Hovering drones (`in_flight`) are in state flight, with a thrust of MPC_THR_HOVER.
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


def _set_flag(hysteresis: np.ndarray) -> None:
    """Raise a flag as if it had been requested for long."""
    hysteresis["state"] = 1
    hysteresis["requested"] = 1


# ---------- The one compiled call per step: the whole chain, for all drones
#
# Order of a step (as most steps of PX4 in lockstep): the rates of this very sample meet the rate
# set-point of the previous step, torque and thrust reach the motors in the same step; then attitude
# control prepares the next rate set-point with an attitude set-point of an earlier step; every
# second step the outer loops run.

STEP_S = 0.004
POSITION_DIVIDER = 2


@compiled()
def _vector(row, first):
    return row[first], row[first + 1], row[first + 2]


@compiled()
def read_vehicle(vehicle, row):
    """Convert one row of `Estimate` to NED/FRD."""
    put(vehicle.position, world_swapped(_vector(row, 0)))
    put(vehicle.velocity, world_swapped(_vector(row, 3)))
    put_quaternion(vehicle.q, orientation_swapped((row[6], row[7], row[8], row[9])))
    put(vehicle.omega_raw, body_swapped(_vector(row, 10)))
    put(vehicle.acceleration, world_swapped(_vector(row, 13)))


@compiled()
def read_setpoint(setpoint, row):
    """Convert one row of `DroneSetpoints` to NED."""
    put(setpoint.position, world_swapped(_vector(row, 0)))
    put(setpoint.velocity, world_swapped(_vector(row, 3)))
    put(setpoint.acceleration, world_swapped(_vector(row, 6)))
    setpoint.yaw = yaw_swapped(row[9])
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
    setpoint = state.setpoint
    vehicle = state.vehicle
    position = state.position
    armed = setpoint.armed
    vehicle.yaw = yaw_of(vehicle.q)
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


@compiled(shared=True)
def step_drones(setpoints, measurements, parameters, states, mixers, commands):
    """Advance all drones by one step."""
    for i in range(states.shape[0]):
        state = states[i]
        p = parameters[i]
        state.setpoint.armed = 1 if setpoints[i, 11] > 0.5 else 0
        read_vehicle(state.vehicle, measurements[i])
        if state.tick == 0:  # no attitude set-point yet: hold, or a flying drone would be jerked
            put_quaternion(state.attitude.q_setpoint, state.vehicle.q)
        run_inner_loops(state, p, mixers[i], commands[i, 0], commands[i, 1])
        if state.tick % POSITION_DIVIDER == 0:
            read_setpoint(state.setpoint, setpoints[i])
            run_outer_loops(state, p)
        state.tick += 1


class Px4Cascade(Autopilot):
    """PX4's position, attitude and rate control, allocation, take-off and landing logic.

    Gyro filter, rate control, allocation and attitude control run in every step, position control,
    hover thrust estimator and land detector in every second one: 250 and 125 Hz, as in PX4 in
    lockstep with a simulator.

    Args:
        rotors: Rotors as the flight stack models them; one layout for all drones, one per
            drone, or None for PX4's x500. All drones have the same number of rotors.
        parameters: PX4 parameters that differ from the defaults; one mapping for all drones or one
            per drone. CA_ROTORn_PX, _PY, _KM, _CT replace values of `rotors`.

    Attributes:
        constants: Parameters and what follows from them, (n_drones,) of `PARAMETER_DTYPE`.
        mixers: Allocation to the rotors, see `allocation.build_mixer`, (n_drones, n_rotors, ...).

    Raises:
        ConfigError: Unknown or impossible parameters, rotors or numbers.
    """

    def __init__(
        self,
        rotors: RotorLayout | Sequence[RotorLayout] | None = None,
        *,
        parameters: Mapping[str, float] | Sequence[Mapping[str, float]] | None = None,
        n_drones: int = 1,
    ) -> None:
        if n_drones < 1:
            raise ConfigError(f"n_drones = {n_drones} must be at least 1")
        self.n_drones = n_drones
        self.parameters = tuple(
            px4_parameters(values)
            for values in _per_drone(parameters or {}, Mapping, n_drones, "parameters")
        )
        layouts = _per_drone(rotors or RotorLayout.x500(), RotorLayout, n_drones, "rotors")
        self.rotors = tuple(
            layout.with_parameters(values)
            for layout, values in zip(layouts, self.parameters, strict=True)
        )
        if len({layout.n_rotors for layout in self.rotors}) > 1:
            raise ConfigError(
                "all drones need the same number of rotors, got "
                f"{[layout.n_rotors for layout in self.rotors]}"
            )
        self.n_rotors = self.rotors[0].n_rotors
        self.mixers = np.stack([build_mixer(layout) for layout in self.rotors])
        self.constants = np.zeros(n_drones, PARAMETER_DTYPE)
        for record, values in zip(self.constants, self.parameters, strict=True):
            fill_parameter_record(record, values)
        self._state = np.zeros(n_drones, STATE_DTYPE)
        self.reset()

    def reset(self, *, in_flight: bool = False) -> None:
        """Go back to the state after power-up.

        `in_flight` starts hovering instead: take-off state flight, not landed, thrust at
        MPC_THR_HOVER. The set-points must then be armed at once.
        """
        self._state[:] = initial_state(self.constants, in_flight=in_flight)

    def trim(
        self,
        throttle: np.ndarray,
        thrust_direction_enu: np.ndarray,
        fed_enu_m_s2: np.ndarray | None = None,
    ) -> None:
        """Start in flight and in equilibrium: all integrators as after a long hover.

        The drones are held by motor commands, (n_drones, n_rotors), with thrust along unit vectors,
        (n_drones, 3). What the set-points feed forward, (n_drones, 3), no integrator holds.
        """
        self.reset(in_flight=True)
        feed_forward = np.zeros((self.n_drones, 3)) if fed_enu_m_s2 is None else fed_enu_m_s2
        for s, p, mixer, u, up, (fed_x, fed_y, fed_z) in zip(
            self._state,
            self.constants,
            self.mixers,
            throttle,
            thrust_direction_enu,
            feed_forward,
            strict=True,
        ):
            roll, pitch, yaw, thrust = np.linalg.lstsq(mixer[:, :4], u, rcond=None)[0]
            demand = -thrust * up[2]
            hover = float(np.clip(demand, p["hover_thrust_min"], p["hover_thrust_max"]))
            s["position"]["hover_thrust"] = s["hover"]["hover_thrust"] = hover
            s["land"]["hover_throttle"] = hover
            # Thrust along (a_x, a_y, a_z - g) with h (1 - a_z / g) upwards; errors are zero.
            tilt = GRAVITY_M_S2 / up[2]
            vertical = (hover - demand) * GRAVITY_M_S2 / hover
            level = up[1] * tilt - fed_y, up[0] * tilt - fed_x
            s["position"]["velocity_integral"] = *level, vertical + fed_z
            s["position"]["thrust_setpoint"] = -thrust * np.array([up[1], up[0], -up[2]])
            s["rate"]["integral"] = roll, pitch, yaw
            s["attitude"]["thrust_setpoint_z"] = s["attitude"]["rates_thrust_z"] = thrust

    def resume(
        self,
        rotor_speed_rad_s: np.ndarray,
        estimate: Estimate,
        fed_enu_m_s2: np.ndarray,
        aside_enu_m_s2: np.ndarray | None = None,
    ) -> None:
        """Take over in flight: the integrators are as if the present thrust had been held long.

        `aside_enu_m_s2`, (n_drones, 2): what the drones need at rest; its tilt counts, not that of
        a manoeuvre.
        """
        slowest = self.mixers[:, :, OMEGA_MIN]
        fastest = self.mixers[:, :, OMEGA_MAX]
        throttle = np.clip((rotor_speed_rad_s - slowest) / (fastest - slowest), 0.0, 1.0)
        up = rotate(estimate.drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))
        if aside_enu_m_s2 is not None:
            upright = up[:, 2:].copy()
            up = np.column_stack([aside_enu_m_s2, np.full(self.n_drones, GRAVITY_M_S2)])
            up /= np.linalg.norm(up, axis=1)[:, None]
            throttle = np.clip(throttle * upright / up[:, 2:], 0.0, 1.0)
        self.trim(throttle, up, fed_enu_m_s2)

    def stand_on(self, ground_enu_m: np.ndarray) -> None:
        """Take over the height of the ground below each drone before the flight, (n,)."""
        self._state["hover"]["ground_z"] = -ground_enu_m

    def scale_load(self, ratio: np.ndarray) -> None:
        """The rotors carry a share of their mass, (n,): the hover thrust follows at once."""
        slowest = self.mixers[:, :, OMEGA_MIN]
        fastest = self.mixers[:, :, OMEGA_MAX]
        speed = slowest + self.hover_thrust[:, None] * (fastest - slowest)
        hover = (speed * np.sqrt(ratio)[:, None] - slowest) / (fastest - slowest)
        hover = hover.mean(axis=1)
        self._state["position"]["hover_thrust"] = self._state["hover"]["hover_thrust"] = hover

    def step(
        self,
        time_s: float,
        setpoint: DroneSetpoints,
        estimate: Estimate,
        out: MotorCommands,
    ) -> MotorCommands:
        """Advance all drones by one step of 4 ms and write the motor commands into `out`.

        The chain counts its own steps; `time_s` is for the interface only.
        """
        setpoints = setpoint.data
        estimates = estimate.drones.data
        commands = out.data
        n = self.n_drones
        n_rotors = self.n_rotors
        if not (len(setpoints) == len(estimates) == n and commands.shape == (n, 2, n_rotors)):
            raise ConfigError(
                f"the cascade has {n} drones with {n_rotors} rotors, got set-points of "
                f"{len(setpoints)}, estimates of {len(estimates)} drones and commands of shape "
                f"{commands.shape}"
            )
        step_drones(setpoints, estimates, self.constants, self._state, self.mixers, commands)
        return out

    @property
    def state(self) -> np.ndarray:
        """All internal state, (n_drones,) records of `layout.STATE_DTYPE`, NED/FRD; live."""
        return self._state

    @property
    def landed(self) -> np.ndarray:
        """The land detector's verdict, (n_drones,) bool."""
        return self._state["land"]["landed"]["state"] != 0

    @property
    def takeoff_state(self) -> np.ndarray:
        """Take-off states, (n_drones,) int, see `TakeoffState`; live."""
        return self._state["takeoff"]["state"]

    @property
    def hover_thrust(self) -> np.ndarray:
        """Hover thrust in use by the position controller, (n_drones,), normalised; live."""
        return self._state["position"]["hover_thrust"]


def fill_parameter_record(record: np.void, parameters: Mapping[str, float]) -> None:
    """Fill one record of `PARAMETER_DTYPE` with parameters and what follows from them."""
    for name in PX4_PARAMETERS:
        record[name] = parameters[name]
    cutoff = parameters["IMU_GYRO_CUTOFF"]
    if cutoff >= 0.5 / STEP_S:
        raise ConfigError(
            f"PX4 parameter IMU_GYRO_CUTOFF = {cutoff:g} must be below half the sample rate, "
            f"{0.5 / STEP_S:g} Hz"
        )
    position_dt_s = POSITION_DIVIDER * STEP_S
    record["dt_s"] = STEP_S
    record["position_dt_s"] = position_dt_s
    b0, a1, a2 = butterworth_coefficients(cutoff, 1.0 / STEP_S)
    record["gyro_b0"] = b0
    record["gyro_a1"] = a1
    record["gyro_a2"] = a2
    record["gyro_derivative_alpha"] = first_order_alpha(parameters["IMU_DGYRO_CUTOFF"], STEP_S)
    velocity_alpha = first_order_alpha(parameters["MPC_VELD_LP"], position_dt_s)
    record["velocity_derivative_alpha"] = velocity_alpha
    hover = parameters["MPC_THR_HOVER"]
    reach = parameters["HTE_THR_RANGE"]
    # The absolute bounds 0.1 and 0.9 are PX4's; a division by zero hover thrust is out of reach.
    record["hover_thrust_min"] = min(max(hover - reach, 0.1), 0.8)
    record["hover_thrust_max"] = min(max(hover + reach, 0.2), 0.9)


def _per_drone(one_or_many, single_type: type, n_drones: int, name: str) -> list:
    """Repeat a single value for every drone, or check the length of a sequence."""
    if isinstance(one_or_many, single_type):
        return [one_or_many] * n_drones
    values = list(one_or_many)
    if len(values) != n_drones:
        raise ConfigError(f"{name} has {len(values)} entries for {n_drones} drones")
    return values
