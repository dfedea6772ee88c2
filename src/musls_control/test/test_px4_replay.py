"""Each stage of the chain against PX4's own full-rate log: logged input in, logged output out.

The log is the recording of a real PX4 SITL that flew an x500. Excerpts of it are in `data/`, so
that a plain clone tests every stage; the whole log is tested too where it is beside the checkout.
Every limit is at most ten times the residual that the equations are known to reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from musls_control.px4 import PX4_PARAMETERS, RotorLayout, px4_parameters
from musls_control.px4.allocation import allocate, build_mixer, unallocated_torque
from musls_control.px4.attitude_control import (
    control_attitude,
    control_rates,
    filter_gyro,
    set_attitude_from_thrust,
)
from musls_control.px4.cascade import fill_parameter_record, initial_state
from musls_control.px4.layout import PARAMETER_DTYPE
from musls_control.px4.position_control import change_hover_thrust, run_position_control
from musls_control.px4.takeoff import detect_landing, prepare_position_control, update_hover_thrust

ARMED_US = 6_000_000
SPUN_UP_US = 7_004_000
STEP_US = 4000
EXCERPT = Path(__file__).parent / "data" / "px4_x500_excerpt.npz"
#: The HIL driver hands the gyro over in whole steps of this size, rad/s.
GYRO_LSB_RAD_S = np.radians(2000.0 / 32768.0)


@dataclass
class Log:
    """The recording, by topic."""

    fields: dict[str, np.ndarray]

    def time_us(self, topic: str) -> np.ndarray:
        return self.fields[f"{topic}/timestamp"].astype(np.int64)

    def column(self, topic: str, name: str) -> np.ndarray:
        return self.fields[f"{topic}/{name}"].astype(float)

    def columns(self, topic: str, *names: str) -> np.ndarray:
        return np.column_stack([self.column(topic, name) for name in names])

    def vector(self, topic: str, name: str, length: int = 3) -> np.ndarray:
        return self.columns(topic, *(f"{name}[{i}]" for i in range(length)))

    def by_time(self, topic: str, values: np.ndarray) -> dict[int, np.ndarray]:
        return dict(zip(self.time_us(topic).tolist(), values, strict=True))


def read_full() -> dict[str, np.ndarray]:
    for parent in Path(__file__).resolve().parents:
        path = parent.parent / "shared" / "px4_reference" / "x500_offboard_full_rate.npz"
        if path.is_file():
            with np.load(path) as data:
                return {name: data[name] for name in data.files}
    pytest.skip("no shared/px4_reference/x500_offboard_full_rate.npz beside the checkout")


def read_excerpt(part: str) -> dict[str, np.ndarray]:
    """One part of the excerpt under the names of the full log."""
    fields = {}
    with np.load(EXCERPT) as data:
        for name in data.files:
            if not name.endswith("/names"):
                continue
            table = name.removesuffix("/names")
            topic = table.removeprefix(f"{part}:")
            if topic == table and table != "param":
                continue
            for field, column in zip(str(data[name]).split(), data[table], strict=True):
                fields[f"{topic}/{field}"] = column
            if table != "param":
                fields[f"{topic}/timestamp"] = data[f"{table}/time"]
    return fields


@pytest.fixture(scope="module")
def log(request) -> Log:
    part = request.param
    return Log(read_full() if part == "full" else read_excerpt(part))


def of(**least):
    """Run a test on parts of the log, with the least number of samples that it must find there."""
    return pytest.mark.parametrize(("log", "least"), least.items(), ids=least, indirect=["log"])


@pytest.fixture(scope="module")
def parameters(log):
    rotors = [f"CA_ROTOR{i}_{q}" for i in range(4) for q in ("PX", "PY", "KM", "CT")]
    names = [name for name in [*PX4_PARAMETERS, *rotors] if f"param/{name}" in log.fields]
    assert len(names) > 60
    return px4_parameters({name: float(log.fields[f"param/{name}"]) for name in names})


@pytest.fixture(scope="module")
def record(parameters) -> np.void:
    records = np.zeros(1, PARAMETER_DTYPE)
    fill_parameter_record(records[0], parameters)
    return records[0]


@pytest.fixture
def state(record) -> np.void:
    return initial_state(np.array([record]), in_flight=False)[0]


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def raw_gyro(log: Log) -> np.ndarray:
    """Undo the pairwise mean of the sensor_gyro topic.

    Exact, because raw samples are whole numbers of LSB. The one unknown, the first sample, would
    show as a zigzag over the whole flight; the smoothest candidate is right.
    """
    sums = np.round(2.0 * log.columns("sensor_gyro", "x", "y", "z") / GYRO_LSB_RAD_S)
    raw = np.zeros_like(sums)
    for k in range(1, len(sums)):
        raw[k] = sums[k] - raw[k - 1]
    zigzag = np.where(np.arange(len(sums)) % 2 == 0, 1.0, -1.0)
    for axis in range(3):
        first = min(range(-15, 16), key=lambda c: np.abs(np.diff(raw[:, axis] + c * zigzag)).mean())
        raw[:, axis] += first * zigzag
    return raw * GYRO_LSB_RAD_S


def latest(times: np.ndarray, now: np.ndarray | int, *, before: bool = False):
    """Return the index of the newest sample at, or strictly before, a time."""
    return np.searchsorted(times, now, side="left" if before else "right") - 1


@of(full=12000, climb=180, turn=250)
def test_gyro_filter(log, least, record, state):
    raw = raw_gyro(log)
    gyro = state["gyro"]
    omega, derivative = np.empty_like(raw), np.empty_like(raw)
    for k, sample in enumerate(raw):
        filter_gyro(gyro, sample, record)
        omega[k], derivative[k] = gyro["omega"], gyro["omega_derivative"]

    topic = "vehicle_angular_velocity"
    times = log.time_us(topic)
    gyro_times = log.time_us("sensor_gyro")
    times = times[times <= gyro_times[-1]]
    k = np.searchsorted(gyro_times, times)
    assert len(times) - 50 > least
    bias_times = log.time_us("estimator_sensor_bias")
    bias = log.vector("estimator_sensor_bias", "gyro_bias")[latest(bias_times, times)]
    started = slice(50, None)
    expected, expected_derivative = log.vector(topic, "xyz"), log.vector(topic, "xyz_derivative")
    assert rms((omega[k] - bias - expected[: len(times)])[started]) < 2e-5
    assert rms((derivative[k] - expected_derivative[: len(times)])[started]) < 6e-6


def replay_position_control(log, record, state, learn_until_us=0) -> dict[str, np.ndarray]:
    """Feed estimates and set-points, return times, errors of the thrust and take-off states.

    Until `learn_until_us` the velocity integral, which the log does not hold, is set such that the
    acceleration set-point is the logged one; afterwards everything runs freely.
    """
    topic = "vehicle_local_position"
    times = log.time_us(topic)
    position, velocity = log.columns(topic, *"xyz"), log.columns(topic, "vx", "vy", "vz")
    heading = log.column(topic, "heading")
    wanted_times = log.time_us("trajectory_setpoint")
    wanted = {n: log.vector("trajectory_setpoint", n) for n in ("position", "velocity")}
    wanted["acceleration"] = log.vector("trajectory_setpoint", "acceleration")
    yaw = log.column("trajectory_setpoint", "yaw")
    land_times = log.time_us("vehicle_land_detected")
    landed = log.column("vehicle_land_detected", "landed")
    contact = log.column("vehicle_land_detected", "ground_contact")
    hover = log.by_time(
        "hover_thrust_estimate", log.columns("hover_thrust_estimate", "hover_thrust", "valid")
    )
    topic = "vehicle_local_position_setpoint"
    expected = log.by_time(topic, log.vector(topic, "thrust"))
    logged = log.by_time(topic, log.vector(topic, "acceleration")) if learn_until_us else {}

    setpoint, vehicle, control = state["setpoint"], state["vehicle"], state["position"]
    result = {"time": [], "error": [], "takeoff": [], "tilt": []}
    for k, now in enumerate(times.tolist()):
        sp, ld = latest(wanted_times, now, before=True), latest(land_times, now, before=True)
        vehicle["position"], vehicle["velocity"] = position[k], velocity[k]
        vehicle["yaw"] = heading[k]
        for name, values in wanted.items():
            setpoint[name] = values[sp]
        setpoint["yaw"], setpoint["yaw_rate"] = yaw[sp], np.nan
        setpoint["armed"] = now > ARMED_US
        state["land"]["landed"]["state"] = landed[ld]
        state["land"]["ground_contact"]["state"] = contact[ld]
        estimate = hover.get(now, (0.0, 0))
        if estimate[1]:
            change_hover_thrust(control, estimate[0])
        prepare_position_control(
            state["takeoff"], state["land"], control, setpoint, vehicle, record
        )
        run_position_control(control, setpoint, vehicle, record)
        if now < learn_until_us:
            control["velocity_integral"] += logged[now] - control["acceleration_setpoint"]
        elif now in expected:
            result["time"].append(now)
            result["error"].append(control["thrust_setpoint"] - expected[now])
            result["takeoff"].append(int(state["takeoff"]["state"]))
            result["tilt"].append(float(state["takeoff"]["tilt_limit"]))
    return {name: np.array(values) for name, values in result.items()}


@of(full=5500, take_off=750)
def test_position_control(log, least, record, state):
    result = replay_position_control(log, record, state)
    flown = result["time"] > SPUN_UP_US
    assert flown.sum() > least
    assert rms(result["error"][flown]) < 1e-4
    assert np.abs(result["error"][flown]).max() < 1e-3


@of(step=250)
def test_position_control_in_flight(log, least, record):
    """From the middle of the flight on: half a second of hover, then a step aside and up."""
    state = initial_state(np.array([record]), in_flight=True)[0]
    result = replay_position_control(log, record, state, learn_until_us=25_900_000)
    assert len(result["error"]) > least
    assert np.linalg.norm(result["error"], axis=1).max() < 1e-3
    assert rms(result["error"]) < 3e-5  # half the anti-windup gain makes it 6e-5


@of(full=300, take_off=15)
def test_takeoff_states(log, least, record, state):
    result = replay_position_control(log, record, state)
    times = log.time_us("takeoff_status")
    states = log.column("takeoff_status", "takeoff_state")
    changes = np.flatnonzero(np.diff(states)) + 1
    assert len(changes) == 3
    for change in changes:
        now = times[change]
        assert result["takeoff"][result["time"] < now][-1] == states[change - 1]
        assert result["takeoff"][result["time"] >= now][0] == states[change]

    tilt = dict(zip(result["time"].tolist(), result["tilt"], strict=True))
    logged = zip(times.tolist(), log.column("takeoff_status", "tilt_limit"), strict=True)
    after_takeoff = [(tilt[now], limit) for now, limit in logged if now > 10_000_000]
    assert len(after_takeoff) > least
    np.testing.assert_allclose(*np.transpose(after_takeoff), atol=1e-5)


@of(full=6000, climb=110, turn=150)
def test_attitude_setpoint(log, least, state):
    topic = "vehicle_local_position_setpoint"
    attitude = log.by_time(
        "vehicle_attitude_setpoint", log.vector("vehicle_attitude_setpoint", "q_d", 4)
    )
    thrusts, yaws = log.vector(topic, "thrust"), log.column(topic, "yaw")
    errors = []
    for now, thrust, yaw in zip(log.time_us(topic).tolist(), thrusts, yaws, strict=True):
        if now not in attitude:
            continue
        set_attitude_from_thrust(state["attitude"], thrust, yaw, 0.0)
        q, expected = state["attitude"]["q_setpoint"], attitude[now]
        errors.append(np.abs(q * np.sign(q @ expected) - expected).max())
    assert len(errors) > least
    assert max(errors) < 5e-7


@of(full=11000, climb=200, turn=270)
def test_attitude_control(log, least, record, state):
    topic = "vehicle_attitude_setpoint"
    wanted_times, wanted = log.time_us(topic), log.vector(topic, "q_d", 4)
    thrust = log.column(topic, "thrust_body[2]")
    topic = "vehicle_rates_setpoint"
    expected = log.by_time(topic, log.columns(topic, "roll", "pitch", "yaw", "thrust_body[2]"))
    attitude = state["attitude"]
    equal = []
    q = log.vector("vehicle_attitude", "q", 4)
    for now, measured in zip(log.time_us("vehicle_attitude").tolist(), q, strict=True):
        if now not in expected:
            continue
        k = latest(wanted_times, now, before=True)
        if k < 0:
            continue
        attitude["q_setpoint"], attitude["thrust_setpoint_z"] = wanted[k], thrust[k]
        control_attitude(attitude, measured, record)
        output = np.append(attitude["rates_setpoint"], attitude["rates_thrust_z"])
        equal.append(np.abs(output - expected[now]).max() < 1e-5)
    assert len(equal) > least
    assert np.mean(equal) >= 0.999


@of(full=9000, climb=150, turn=200)
@pytest.mark.parametrize(
    ("same_step", "low", "high"), [(False, 0.75, 1.0), (True, 0.0, 0.35)], ids=["previous", "same"]
)
def test_rate_control(log, least, record, state, same_step, low, high):
    """PX4 mostly uses the rate set-point of the previous step; the rest is its thread race."""
    topic = "vehicle_rates_setpoint"
    wanted_times, wanted = log.time_us(topic), log.columns(topic, "roll", "pitch", "yaw")
    topic = "vehicle_angular_velocity"
    omega = log.by_time(topic, log.vector(topic, "xyz"))
    derivative = log.by_time(topic, log.vector(topic, "xyz_derivative"))
    names = [f"{axis}speed_integ" for axis in ("roll", "pitch", "yaw")]
    integrals = log.by_time("rate_ctrl_status", log.columns("rate_ctrl_status", *names))
    residue_times = log.time_us("control_allocator_status")
    residue = log.vector("control_allocator_status", "unallocated_torque")
    left_ground_us = 7_740_000
    rate, gyro = state["rate"], state["gyro"]
    equal, integral_equal = [], []
    topic = "vehicle_torque_setpoint"
    expected = log.vector(topic, "xyz")
    for now, torque in zip(log.time_us(topic).tolist(), expected, strict=True):
        k = latest(wanted_times, now, before=not same_step)
        known = now in omega and now in integrals and now - STEP_US in integrals
        if k < 0 or now < SPUN_UP_US or not known or now - wanted_times[k] > STEP_US:
            continue  # the log lost a sample
        rate["integral"] = integrals[now - STEP_US]
        reported = latest(residue_times, now, before=True)
        if reported < 0:
            continue
        rate["unallocated_torque"] = residue[reported]
        gyro["omega"], gyro["omega_derivative"] = omega[now], derivative[now]
        control_rates(rate, wanted[k], gyro, 1, now < left_ground_us, record)
        equal.append(np.abs(rate["torque_setpoint"] - torque).max() < 1e-6)
        integral_equal.append(np.abs(rate["integral"] - integrals[now]).max() < 1e-6)
    assert len(equal) > least
    assert low <= np.mean(equal) <= high
    if not same_step:
        # In a short part the steps of the thread race weigh more.
        assert np.mean(integral_equal) > (0.95 if least > 5000 else 0.9)


@of(full=12000, climb=220, turn=300)
def test_allocation(log, least, parameters):
    mixer = build_mixer(RotorLayout.x500().with_parameters(parameters))
    torques = log.by_time("vehicle_torque_setpoint", log.vector("vehicle_torque_setpoint", "xyz"))
    thrusts = log.by_time(
        "vehicle_thrust_setpoint", log.column("vehicle_thrust_setpoint", "xyz[2]")
    )
    residue = log.by_time(
        "control_allocator_status", log.vector("control_allocator_status", "unallocated_torque")
    )
    u, left = np.zeros(4), np.zeros(3)
    errors, residue_errors = [], []
    motors = log.vector("actuator_motors", "control", 4)
    for now, expected in zip(log.time_us("actuator_motors").tolist(), motors, strict=True):
        if now not in torques or now not in thrusts:
            continue
        allocate(u, mixer, torques[now], thrusts[now])
        errors.append(np.abs(u - expected).max())
        if now in residue:
            unallocated_torque(left, u, mixer, torques[now])
            residue_errors.append(np.abs(left - residue[now]).max())
    assert len(errors) > least and len(residue_errors) > 0.45 * least
    assert max(errors) < 4e-7  # four roundings of single precision near 1
    assert max(residue_errors) < 4e-7


@of(full=5000, take_off=300)
def test_hover_thrust_estimator(log, least, record, state):
    topic = "vehicle_local_position"
    times = log.time_us(topic)
    velocity = log.columns(topic, "vx", "vy", "vz")
    acceleration = log.columns(topic, "ax", "ay", "az")
    height = log.column(topic, "dist_bottom")
    land_times = log.time_us("vehicle_land_detected")
    landed = log.column("vehicle_land_detected", "landed")
    topic = "vehicle_local_position_setpoint"
    thrust_times, thrusts = log.time_us(topic), log.vector(topic, "thrust")
    topic = "hover_thrust_estimate"
    expected = log.by_time(topic, log.columns(topic, "hover_thrust", "hover_thrust_var", "valid"))
    hover, vehicle = state["hover"], state["vehicle"]
    errors, valid = [], []
    for k, now in enumerate(times.tolist()):
        if now <= ARMED_US:
            continue
        vehicle["position"] = (0.0, 0.0, -height[k])
        vehicle["velocity"], vehicle["acceleration"] = velocity[k], acceleration[k]
        thrust = thrusts[latest(thrust_times, now, before=True)]
        on_ground = int(landed[latest(land_times, now, before=True)])
        update_hover_thrust(hover, vehicle, thrust, 1, on_ground, record)
        if now in expected:
            estimate, variance, is_valid = expected[now]
            errors.append((hover["hover_thrust"] - estimate, hover["variance"] / variance - 1.0))
            valid.append(hover["valid"]["state"] == is_valid)
    assert len(errors) > least
    assert np.abs(errors).max() < 1e-4
    assert all(valid)


@of(full=6000, leaving=95)
def test_land_detector(log, least, record, state):
    topic = "vehicle_local_position"
    times = log.time_us(topic)
    velocity = log.columns(topic, "vx", "vy", "vz")
    acceleration = log.columns(topic, "ax", "ay", "az")
    thrust_times = log.time_us("vehicle_thrust_setpoint")
    thrust = -log.column("vehicle_thrust_setpoint", "xyz[2]")
    omega_times = log.time_us("vehicle_angular_velocity")
    omega = log.vector("vehicle_angular_velocity", "xyz")
    land, vehicle = state["land"], state["vehicle"]
    flags = []
    for k, now in enumerate(times.tolist()):
        vehicle["velocity"], vehicle["acceleration"] = velocity[k], acceleration[k]
        detect_landing(
            land,
            vehicle,
            omega[latest(omega_times, now)],
            thrust[latest(thrust_times, now)],
            int(now > ARMED_US),
            np.nan,  # the flight had position set-points only
            state["hover"],
            record,
        )
        flags.append([land[n]["state"] for n in ("ground_contact", "maybe_landed", "landed")])
    flags = np.array(flags)
    assert len(flags) > least
    topic = "vehicle_land_detected"
    logged = log.columns(topic, "ground_contact", "maybe_landed", "landed")
    for column in range(3):
        off_ground = np.flatnonzero(np.diff(flags[:, column]))
        expected = log.time_us(topic)[np.flatnonzero(np.diff(logged[:, column]))[0] + 1]
        assert len(off_ground) == 1  # leaves the ground once and never believes to be back
        assert abs(times[off_ground[0] + 1] - expected) <= 2 * STEP_US
