"""The whole chain without a plant: directions, NaN set-points, independence, determinism."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_control.autopilot import DroneSetpoints, MotorCommands
from musls_control.estimate import Estimate
from musls_control.px4 import Px4Cascade, TakeoffState
from musls_control.px4.frames import body_swapped

RNG_SEED = 7


def hovering(n: int, **arguments) -> tuple[Px4Cascade, DroneSetpoints, Estimate]:
    """Return drones in the air, 5 m up, facing east, told to stay."""
    cascade = Px4Cascade(n_drones=n, **arguments)
    cascade.reset(in_flight=True)
    setpoints, measurements = DroneSetpoints.unset(n), Estimate.zeros(n)
    setpoints.position_enu_m[:, 2] = measurements.drones.position_enu_m[:, 2] = 5.0
    setpoints.position_enu_m[:, :2] = 0.0
    setpoints.yaw_enu_rad[:] = 0.0
    setpoints.armed[:] = True
    return cascade, setpoints, measurements


def test_hover_is_an_equilibrium():
    cascade, setpoints, measurements = hovering(2)
    out = MotorCommands.zeros(2, 4)
    for _ in range(200):
        cascade.step(0.0, setpoints, measurements, out)
    np.testing.assert_allclose(out.throttle, 0.6, atol=1e-6)
    np.testing.assert_allclose(out.omega_cmd_rad_s, 150.0 + 850.0 * out.throttle)
    assert (cascade.takeoff_state == TakeoffState.FLIGHT).all() and not cascade.landed.any()


@pytest.mark.parametrize(
    ("offset", "body_axis", "sign"),
    [((1.0, 0.0), 1, 1.0), ((-1.0, 0.0), 1, -1.0), ((0.0, 1.0), 0, -1.0), ((0.0, -1.0), 0, 1.0)],
    ids=["east", "west", "north", "south"],
)
def test_tilts_towards_the_set_point(offset, body_axis, sign):
    """Facing east, FLU: flying east pitches nose down (+y), flying north rolls left (-x)."""
    cascade, setpoints, measurements = hovering(1)
    setpoints.position_enu_m[0, :2] = offset
    out = MotorCommands.zeros(1, 4)
    for _ in range(10):
        cascade.step(0.0, setpoints, measurements, out)
    rate_frd = cascade.state["attitude"]["rates_setpoint"][0]
    rate_flu = np.array(body_swapped(rate_frd))
    assert sign * rate_flu[body_axis] > 0.1
    assert abs(rate_flu[1 - body_axis]) < 1e-9


def test_feed_forward_without_position():
    """Velocity alone and acceleration alone are valid; NaN drops out."""
    out = MotorCommands.zeros(1, 4)
    for name, column in (("velocity_enu_m_s", 3), ("acceleration_enu_m_s2", 6)):
        cascade, setpoints, measurements = hovering(1)
        setpoints.position_enu_m[:] = np.nan
        getattr(setpoints, name)[0] = (1.0, 0.0, 0.0)
        assert setpoints.data[0, column] == 1.0
        for _ in range(10):
            cascade.step(0.0, setpoints, measurements, out)
        ned = cascade.state["position"]["acceleration_setpoint"][0]
        assert ned[1] > 0.9 and abs(ned[0]) < 1e-9 and np.isfinite(out.data).all()


def test_impossible_set_points_stop_the_drone():
    """Nothing to follow: the last output is kept for 0.2 s, then the drone brakes and stays."""
    cascade, setpoints, measurements = hovering(1)
    out = MotorCommands.zeros(1, 4)
    setpoints.position_enu_m[0] = np.nan
    setpoints.yaw_enu_rad[0] = np.nan
    measurements.drones.velocity_enu_m_s[0] = (2.0, 0.0, 0.0)
    braking = []
    for _ in range(100):
        cascade.step(0.0, setpoints, measurements, out)
        braking.append(cascade.state["position"]["acceleration_setpoint"][0, 1] < -1.0)
        assert np.isfinite(out.data).all()
    assert not any(braking[:48]) and all(braking[56:])


def test_disarmed_motors_stand_still():
    cascade, setpoints, measurements = hovering(1)
    setpoints.armed[:] = False
    out = MotorCommands(np.ones((1, 2, 4)))
    for _ in range(3):
        cascade.step(0.0, setpoints, measurements, out)
    assert not out.data.any()
    assert cascade.takeoff_state[0] == TakeoffState.DISARMED and cascade.landed.dtype == bool


def random_steps(n: int, steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return varied set-point and measurement memory for n drones."""
    rng = np.random.default_rng(RNG_SEED)
    result = []
    for _ in range(steps):
        setpoints, measurements = DroneSetpoints.zeros(n), Estimate.zeros(n)
        setpoints.data[:] = rng.normal(scale=2.0, size=setpoints.data.shape)
        setpoints.velocity_enu_m_s[rng.random(n) < 0.3] = np.nan
        setpoints.yaw_enu_rad[rng.random(n) < 0.3] = np.nan
        setpoints.armed[:] = True
        drones = measurements.drones.data
        drones[:] = rng.normal(scale=0.5, size=drones.shape)
        measurements.drones.orientation_wxyz[:] = Rotation.random(n, random_state=rng).as_quat()
        result.append((setpoints.data, measurements.data))
    return result


def run(cascade: Px4Cascade, steps, drones=slice(None)) -> np.ndarray:
    """Return all motor commands, (steps, n_drones, 2, n_rotors)."""
    out = MotorCommands.zeros(cascade.n_drones, cascade.n_rotors)
    commands = []
    for setpoints, measurements in steps:
        cascade.step(
            0.0,
            DroneSetpoints(np.ascontiguousarray(setpoints[drones])),
            Estimate(
                np.ascontiguousarray(
                    measurements[[0, *(1 + np.arange(len(measurements) - 1)[drones])]]
                )
            ),
            out,
        )
        commands.append(out.data.copy())
    return np.array(commands)


def test_drones_are_independent_bit_for_bit():
    n = 3
    parameters = [{}, {"MPC_THR_HOVER": 0.8, "MC_ROLL_P": 5.0}, {"CA_ROTOR0_PX": 0.174}]
    steps = random_steps(n, 400)
    together = Px4Cascade(parameters=parameters, n_drones=n)
    together.reset(in_flight=True)
    commands = run(together, steps)
    assert np.isfinite(commands).all() and commands[:, :, 0].std() > 0.05
    for i in range(n):
        alone = Px4Cascade(parameters=parameters[i])
        alone.reset(in_flight=True)
        single = run(alone, steps, slice(i, i + 1))
        np.testing.assert_array_equal(single[:, 0], commands[:, i])
        assert alone.state[0].tobytes() == together.state[i].tobytes()  # NaN included


def test_reset_repeats_bit_for_bit():
    cascade, steps = Px4Cascade(n_drones=2), random_steps(2, 300)
    first = run(cascade, steps)
    cascade.reset()
    np.testing.assert_array_equal(run(cascade, steps), first)
