"""Imperfections of drones and links against closed forms."""

import numpy as np
import pytest

from musls_bringup.catalogue.scenarios import load_scenario
from musls_control.autopilot import DroneSetpoints
from musls_description.config.errors import ConfigError
from musls_description.numerics.rotations import relative, rotate, yaw_of
from musls_sim.imperfections import SetpointLink, bring_setpoints, weakened
from musls_sim.session.session import Session
from musls_sim.specs.imperfections import Imperfections

DEG = np.pi / 180.0
PERIOD_S = 0.004
SOLO = {
    "start": "air",
    "estimation.kind": "truth",
    "system.cables.links": 2,
    "mission.stages": [{"kind": "hold", "position_m": [0, 0, 1.5], "duration_s": 30.0}],
}


def solo(faults, **changes):
    return Session(load_scenario("solo", SOLO | {"imperfections": faults} | changes))


def flown(session, seconds):
    with session:
        session.advance(round(seconds / PERIOD_S))
    return session


def up(orientation_wxyz):
    return rotate(orientation_wxyz, np.array([0.0, 0.0, 1.0]))


@pytest.mark.parametrize("model", ["rigid_links", "massless", "elastic"])
def test_tilted_rotors_push_sideways_in_every_plant(model):
    """1 degree: the thrust times sin(1 deg), g tan(1 deg) for a drone that carries itself."""
    tilt = {"drones": [{"thrust_tilt_rad": [0.0, 1.0 * DEG]}]}
    drive = [flown(solo(faults, cable_model=model), PERIOD_S) for faults in ({}, tilt)]
    drone = drive[0].scenario.system.drones[0]
    thrust_n = sum(
        r.thrust_coefficient_n_s2 * w**2
        for r, w in zip(drone.rotors, drive[0].state.rotor_speed_rad_s[0], strict=True)
    )
    straight, tilted = (s.state.acceleration_enu_m_s2[1] for s in drive)
    ahead = rotate(drive[0].state.orientation_wxyz[1], np.array([1.0, 0.0, 0.0]))
    push = drone.mass_kg * (tilted - straight) @ ahead
    assert push == pytest.approx(thrust_n * np.sin(1.0 * DEG), rel=0.03)


def test_the_integrator_takes_up_a_wrong_level_until_the_drone_turns():
    """In hover thrust is vertical and the place is right: the autopilot thinks that it leans."""
    tilt_rad = (0.02, -0.03)
    session = solo({"drones": [{"level_tilt_rad": tilt_rad}]})
    with session:
        session.advance(round(25.0 / PERIOD_S))
        state, told = session.state, session.estimate
        off = state.position_enu_m[1] - session.guidance.setpoint.position_enu_m[0]
        assert np.abs(off[:2]).max() < 2e-3
        assert np.hypot(*up(state.orientation_wxyz[1])[:2]) < 1e-3
        q = relative(told.orientation_wxyz[1], state.orientation_wxyz[1])
        np.testing.assert_allclose(2.0 * q[1:3] * np.sign(q[0]), tilt_rad, atol=1e-5)


def test_a_wrong_level_accelerates_by_g_tan_before_the_integrator():
    """PX4's own loops opened: what it holds level leans by the tilt and goes with g tan(1 deg)."""
    gains = dict.fromkeys(("MPC_XY_P", "MPC_XY_VEL_I_ACC", "MPC_XY_VEL_D_ACC"), 0.0)
    gains["MPC_XY_VEL_P_ACC"] = 0.1  # PX4's least; what it does is added below
    faults = {"drones": [{"level_tilt_rad": [0.0, 1.0 * DEG]}]}
    changes = {"autopilot.parameters": gains, "system.load.mass_kg": 0.01}
    changes["system.drones.rotors.drag_n_s2_m_rad"] = 0.0
    session = flown(solo(faults, **changes), 1.5)
    state = session.state
    drone = state.acceleration_enu_m_s2[1] + 0.1 * state.velocity_enu_m_s[1]
    ahead = np.array([np.cos(a := yaw_of(session.state.orientation_wxyz[1])), np.sin(a), 0.0])
    assert drone @ ahead == pytest.approx(-9.80665 * np.tan(1.0 * DEG), rel=0.03)


def test_what_motion_capture_reports_is_brought_to_the_set_point():
    offset = np.array([0.1, -0.05, 0.03])
    session = flown(solo({"drones": [{"mocap_offset_m": offset.tolist()}]}), 25.0)
    state, wanted = session.state, session.guidance.setpoint.position_enu_m[0]
    point = state.position_enu_m[1] + rotate(state.orientation_wxyz[1], offset)
    np.testing.assert_allclose(point, wanted, atol=3e-3)


def test_weak_rotors_turn_faster():
    """In hover k w^2 is the weight, so that w goes with 1 / sqrt(k)."""
    speeds = [
        flown(solo(faults), 20.0).state.rotor_speed_rad_s.mean()
        for faults in ({}, {"drones": [{"thrust_scale": 0.9}]})
    ]
    assert speeds[1] / speeds[0] == pytest.approx(0.9**-0.5, rel=1e-3)


def test_spread_of_motors_is_drawn_once_and_as_wide_as_asked():
    system = load_scenario("hexa").system
    assert weakened(system, Imperfections()) is system
    shares = []
    for seed in range(40):
        other = weakened(system, Imperfections(motor_spread=0.04, motor_seed=seed))
        again = weakened(system, Imperfections(motor_spread=0.04, motor_seed=seed))
        assert other == again
        shares += [
            b.thrust_coefficient_n_s2 / a.thrust_coefficient_n_s2
            for was, now in zip(system.drones, other.drones, strict=True)
            for a, b in zip(was.rotors, now.rotors, strict=True)
        ]
    assert np.std(shares) == pytest.approx(0.04, rel=0.08)
    assert np.mean(shares) == pytest.approx(1.0, abs=0.005)


def bring(sent, link, tick):
    """Do what `delay_setpoints` does."""
    count = len(sent.data)
    luck = link.generator.random(count) if link.jitters else np.zeros(count)
    bring_setpoints(sent.data, link.links, link.under_way, luck, tick, link.heard.data)


def test_set_points_come_exactly_so_many_periods_late():
    sent = DroneSetpoints(np.zeros((2, 12)))
    link = SetpointLink(sent, Imperfections(setpoint_delay_s=0.048), PERIOD_S, None)
    for tick in range(100):
        sent.data[:] = max(0, tick // 5)  # a new one every fifth period
        bring(sent, link, tick)
        assert (link.heard.data == max(0, (tick - 12) // 5)).all()


def test_jitter_is_bounded_and_nothing_overtakes():
    sent = DroneSetpoints(np.zeros((3, 12)))
    faults = Imperfections(setpoint_delay_s=0.02, setpoint_jitter_s=0.1)
    link = SetpointLink(sent, faults, PERIOD_S, np.random.default_rng(1))
    arrived = np.zeros((3, 200))
    for tick in range(1000):
        sent.data[:] = tick // 5
        bring(sent, link, tick)
        newest = link.heard.data[:, 0].astype(int)
        for drone in range(3):
            column = arrived[drone, 1 : newest[drone] + 1]
            column[column == 0.0] = tick
    late = arrived[:, 1:190] - 5.0 * np.arange(1, 190)
    assert 5 <= late.min() <= 10 and 28 <= late.max() <= 30  # 0.02 s, 0.12 s
    assert (np.diff(arrived[:, :190]) >= 0.0).all()
    assert len(np.unique(late[0] - late[1])) > 10  # every drone has its own


def test_motor_commands_come_late():
    session, asked, had = solo({"command_latency_s": 0.012}), [], []

    def look(tick):
        asked.append(session.command.omega_cmd_rad_s.copy())
        had.append(session.inputs.rotor_command_rad_s.copy())

    session.insert_after("command_latency", "look", look)
    flown(session, 0.2)
    np.testing.assert_array_equal(had[3:], asked[:-3])
    assert np.ptp(asked, axis=0).min() > 0.0 and (np.array(had[:3]) == had[0]).all()


def test_a_flight_without_imperfections_is_the_same_to_the_last_bit():
    def motion(faults):
        return flown(solo(faults, **{"estimation.kind": "mocap"}), 1.0).state.motion.copy()

    plain = motion({})
    np.testing.assert_array_equal(motion({"drones": [{}], "motor_seed": 3}), plain)
    assert (motion({"command_latency_s": 0.008}) != plain).any()


def test_one_entry_for_all_or_one_each():
    with pytest.raises(ConfigError, match=r"2 entries, must be one for all or one for each of"):
        Session(load_scenario("hold", {"imperfections.drones": [{}, {}]}))
