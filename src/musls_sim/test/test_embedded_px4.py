"""Commanders, lockstep and the vehicles behind PX4's topics, without ROS."""

from contextlib import closing

import numpy as np
import pytest

from musls_control.px4.frames import world_enu_ned, yaw_enu_ned
from musls_description.config.errors import ConfigError
from musls_sim.px4_stand_in import (
    COMMAND_ARM_DISARM,
    COMMAND_LAND,
    COMMAND_SET_MODE,
    FORCE,
    AckResult,
    Commander,
    Lockstep,
    NavState,
    TrajectoryInput,
    stand_in_session,
)
from musls_sim.recording import BagRecorder
from musls_sim.recording.graph_signals import ClockHistory, ReceivedBag, StateMessages, stamp_ns
from musls_sim.recording.messages import serialize, stamped, string
from musls_sim.recording.signals import Rate
from musls_sim.scenario.scenario import load_scenario

NOT_GIVEN = np.full(3, np.nan)
PLACE = np.array([1.0, 2.0, 3.0])


def goal(position_enu_m, yaw_enu_rad=0.3):
    return TrajectoryInput(
        world_enu_ned(position_enu_m), NOT_GIVEN, NOT_GIVEN, float(yaw_enu_ned(yaw_enu_rad)), 0.0
    )


def measured(position_enu_m=PLACE):
    row = np.zeros(16)
    row[:3], row[6] = position_enu_m, 1.0
    return row


def step(commander, time_s, *, landed=False, flying=True, place=PLACE):
    row = np.zeros(12)
    commander.step(time_s, measured(place), landed, flying, row)
    return row


def offboard_commander():
    commander = Commander(in_air=True, loss_action=NavState.LOITER)
    commander.trajectory(goal([4.0, 5.0, 6.0]))
    commander.heartbeat(0.0)
    assert commander.command(0.0, COMMAND_SET_MODE, 1.0, 6.0) is AckResult.ACCEPTED
    return commander


def test_offboard_mode_needs_a_fresh_stream():
    commander = Commander(in_air=False)
    ask = (COMMAND_SET_MODE, 1.0, 6.0)
    assert commander.command(0.0, *ask) is AckResult.TEMPORARILY_REJECTED
    commander.trajectory(goal(PLACE))
    commander.heartbeat(0.0)
    assert commander.command(1.01, *ask) is AckResult.TEMPORARILY_REJECTED
    assert commander.command(0.99, *ask) is AckResult.ACCEPTED


def test_setpoints_come_out_in_enu():
    row = step(offboard_commander(), 0.1)
    assert row[:3] == pytest.approx([4.0, 5.0, 6.0])
    assert row[9] == pytest.approx(0.3) and row[11] == 1.0
    assert np.isnan(row[3:9]).all()


def test_accelerations_reach_the_autopilot_in_enu():
    """As the offboard node sends a controller's: no place, no velocity."""
    commander = offboard_commander()
    pushed = np.array([1.0, 2.0, -3.0])
    commander.trajectory(TrajectoryInput(NOT_GIVEN, NOT_GIVEN, pushed, 0.5, 0.0))
    commander.heartbeat(0.1)
    row = step(commander, 0.1)
    assert row[6:9].tolist() == [2.0, 1.0, 3.0]
    assert np.isnan(row[0:6]).all()


def test_a_lost_stream_holds_the_place_and_a_new_one_goes_on():
    commander = offboard_commander()
    step(commander, 0.9)
    assert commander.nav_state is NavState.OFFBOARD
    assert step(commander, 1.1, place=PLACE)[:3] == pytest.approx(PLACE)
    assert commander.nav_state is NavState.LOITER and commander.failsafe
    held = step(commander, 1.5, place=PLACE + 0.2)
    assert held[:3] == pytest.approx(PLACE)
    commander.heartbeat(1.6)
    assert step(commander, 1.6)[:3] == pytest.approx([4.0, 5.0, 6.0])
    assert not commander.failsafe


def test_a_lost_stream_can_mean_landing():
    commander = Commander(in_air=True, loss_action=NavState.LAND)
    commander.trajectory(goal(PLACE))
    commander.heartbeat(0.0)
    commander.command(0.0, COMMAND_SET_MODE, 1.0, 6.0)
    row = step(commander, 2.0)
    assert np.isnan(row[2]) and row[5] < 0.0 and row[:2] == pytest.approx(PLACE[:2])


def test_a_land_command_goes_down_on_the_spot():
    commander = offboard_commander()
    assert commander.command(0.1, COMMAND_LAND, 0.0, 0.0) is AckResult.ACCEPTED
    row = step(commander, 0.2)
    assert commander.nav_state is NavState.LAND and not commander.failsafe
    assert np.isnan(row[2]) and row[5] < 0.0 and row[:2] == pytest.approx(PLACE[:2])


def test_offboard_mode_without_a_stream_is_not_armed():
    commander = Commander(in_air=False)
    commander.trajectory(goal(PLACE))
    commander.heartbeat(0.0)
    commander.command(0.5, COMMAND_SET_MODE, 1.0, 6.0)
    assert commander.command(2.0, COMMAND_ARM_DISARM, 1.0, 0.0) is AckResult.TEMPORARILY_REJECTED
    commander.heartbeat(2.1)
    assert commander.command(2.2, COMMAND_ARM_DISARM, 1.0, 0.0) is AckResult.ACCEPTED


def test_disarming_in_flight_needs_force():
    commander = offboard_commander()
    step(commander, 0.1)
    assert commander.command(0.2, COMMAND_ARM_DISARM, 0.0, 0.0) is AckResult.TEMPORARILY_REJECTED
    assert commander.command(0.2, COMMAND_ARM_DISARM, 0.0, FORCE) is AckResult.ACCEPTED
    assert step(commander, 0.3)[11] == 0.0


def test_disarms_two_seconds_after_landing():
    commander = offboard_commander()
    for now in np.arange(0.1, 3.0, 0.1):
        commander.heartbeat(now)
        step(commander, now, landed=now >= 0.5)
        assert commander.armed == (now < 2.45)


def test_disarms_ten_seconds_after_arming_without_take_off():
    commander = Commander(in_air=False)
    assert commander.command(1.0, COMMAND_ARM_DISARM, 1.0, 0.0) is AckResult.ACCEPTED
    for now in np.arange(1.0, 12.0, 0.1):
        step(commander, now, landed=True, flying=False)
        assert commander.armed == (now < 10.95)


def test_an_armed_drone_on_the_ground_without_offboard_does_not_take_off():
    commander = Commander(in_air=False)
    commander.command(0.0, COMMAND_ARM_DISARM, 1.0, 0.0)
    row = step(commander, 0.1, landed=True, flying=False)
    assert np.isnan(row[2]) and row[5] == 0.0


def test_unknown_commands_and_modes_are_unsupported():
    commander = Commander(in_air=True)
    assert commander.command(0.0, 22, 0.0, 0.0) is AckResult.UNSUPPORTED
    assert commander.command(0.0, COMMAND_ARM_DISARM, 2.0, 0.0) is AckResult.UNSUPPORTED
    assert commander.command(0.0, COMMAND_SET_MODE, 1.0, 3.0) is AckResult.UNSUPPORTED


def test_lockstep_waits_for_those_who_answer_three_times_running():
    lockstep = Lockstep(2)
    for window in range(1, 4):
        assert not lockstep.locked
        lockstep.ask(window * 20_000)
        lockstep.answer(0, window * 20_000)
        assert lockstep.close() == []
    lockstep.ask(80_000)
    assert lockstep.locked and not lockstep.complete
    lockstep.answer(0, 60_000)  # late: of the window before
    assert not lockstep.complete
    lockstep.answer(0, 80_000)
    assert lockstep.complete and lockstep.close() == []
    lockstep.ask(100_000)
    assert lockstep.close() == [0]
    lockstep.ask(120_000)
    assert lockstep.complete and not lockstep.locked


@pytest.mark.parametrize(("every", "locks"), [(1, True), (2, False), (5, False)])
def test_lockstep_waits_on_a_busy_machine_where_all_answers_are_late(every, locks):
    """Not for one that sends at a rate of its own, such as drones that only hold their places."""
    lockstep, waited = Lockstep(1), []
    for window in range(1, 40):
        lockstep.ask(window * 20_000)
        if lockstep.locked:  # until it has answered all that it was asked
            waited.append(window)
            for late in range(window - 4, window + 1):
                lockstep.answer(0, late * 20_000)
        elif window > 4 and window % every == 0:
            lockstep.answer(0, (window - 4) * 20_000)
        assert lockstep.complete and lockstep.close() == []
    assert waited == (list(range(8, 40)) if locks else [])


@pytest.fixture(scope="module")
def hold():
    from importlib.resources import files

    path = files("musls_bringup") / "scenarios" / "hold.yaml"
    return load_scenario(path, ["system.cables.links=3", "estimation.kind=truth"])


def test_drones_in_the_air_hold_the_load_without_any_commands(hold):
    vehicles, _ = stand_in_session(hold)
    start = vehicles.plant.state.position_enu_m.copy()
    for _ in range(100):
        vehicles.advance(5)
    assert vehicles.time_s == pytest.approx(2.0)
    assert np.abs(vehicles.plant.state.position_enu_m - start).max() < 0.05


def test_a_real_px4_has_topics_of_its_own(hold):
    from dataclasses import replace

    scenario = replace(hold, autopilot=replace(hold.autopilot, kind="px4"))
    with pytest.raises(ConfigError, match="built-in autopilot only"):
        stand_in_session(scenario)


def test_published_bytes_are_what_the_recorder_writes(hold, tmp_path):
    from rosbags.rosbag2 import Reader

    vehicles, _ = stand_in_session(hold)
    vehicles.advance(5)
    time_s, period_s = vehicles.time_s, vehicles.plant.period_s
    with closing(BagRecorder(tmp_path / "bag", hold.system, step_period_s=period_s)) as recorder:
        recorder.observe(time_s, vehicles)
    with Reader(tmp_path / "bag") as reader:
        recorded = [(c.topic, bytes(data)) for c, _, data in reader.messages()]
    published = [
        *StateMessages(hold.system, Rate.STATE).render(time_s, vehicles),
        *StateMessages(hold.system, Rate.SHAPE).render(time_s, vehicles),
    ]
    assert sorted(published) == sorted(recorded)


def test_stamps_are_read_from_the_bytes(hold):
    vehicles, _ = stand_in_session(hold)
    messages = StateMessages(hold.system, Rate.STATE)
    types = messages.topics
    for topic, data in messages.render(12.345678901, vehicles):
        assert stamp_ns(types[topic], data) == 12_345_678_901
    for unstamped in ("std_msgs/msg/String", "std_msgs/msg/Float64"):
        assert stamp_ns(unstamped, b"\0" * 20) is None


def test_the_clock_tells_the_time_of_what_has_no_stamp():
    history = ClockHistory(length=3)
    assert not history.begun
    for published_ns, time_ns in [(100, 0), (200, 20), (300, 40), (400, 60)]:
        history.note(published_ns, time_ns)
    assert history.newest_ns == 60
    assert [history.at(t) for t in (399, 400, 999)] == [40, 60, 60]
    assert history.at(50) == 20  # older than what is remembered


def pose_at(time_ns):
    return serialize(stamped("geometry_msgs/msg/PoseStamped", time_ns, "world"))


def test_a_received_bag_is_sorted_and_begins_with_the_mission(hold, tmp_path):
    from rosbags.rosbag2 import Reader

    bag = ReceivedBag(tmp_path / "bag", hold.system, buffer_s=1.0)
    bag.add("/load/setpoint", pose_at(0))
    for tick in range(500):  # ten seconds before the mission
        bag.add("/load/pose", pose_at(tick * 20_000_000))
    bag.begin(9_000_000_000)
    bag.add("/mission/stage", serialize(string("hold")), 9_000_000_000)
    for tick in (501, 500, *range(503, 1000), 502):
        bag.add("/load/pose", pose_at(tick * 20_000_000))
    bag.close()
    bag.close()
    with Reader(tmp_path / "bag") as reader:
        found = [(c.topic, time) for c, time, _ in reader.messages()]
    times = [time for topic, time in found if topic == "/load/pose"]
    assert found[0] == ("/load/setpoint", 0)
    assert ("/mission/stage", 9_000_000_000) in found
    assert set(times) == {tick * 20_000_000 for tick in range(450, 1000)}
    late = times.index(502 * 20_000_000)  # older than what was kept for sorting
    assert np.all(np.diff(times[:late]) > 0)


def test_what_a_received_bag_lacks_is_counted(hold, tmp_path):
    """Topics that are published together are there together, or something was lost."""
    bag = ReceivedBag(tmp_path / "bag", hold.system)
    bag.begin(0)
    force = serialize(stamped("geometry_msgs/msg/WrenchStamped", 0, "cable_1/load_end"))
    for tick in range(100):
        time_ns = tick * 20_000_000
        if tick % 25 != 10:
            bag.add("/load/pose", pose_at(time_ns))
        bag.add("/drone_1/pose", pose_at(time_ns))
        for _ in range(1 if tick in (40, 99) else 2):  # the last time may be cut
            bag.add("/cable_1/tension", force, time_ns)
    bag.close()
    assert bag.lost == {"/load/pose": 4, "/cable_1/tension": 1}


def test_bodies_with_stamps_of_their_own_are_not_said_to_be_lost(hold, tmp_path):
    """Motion capture sees bodies one by one; what shares stamps with others is still counted."""
    bag = ReceivedBag(tmp_path / "bag", hold.system)
    bag.begin(0)
    for tick in range(100):
        time_ns = tick * 20_000_000
        for k, body in enumerate(("load", "drone_1", "drone_2", "drone_3")):
            bag.add(f"/{body}/pose", pose_at(time_ns + k * 1_000_000 * (tick > 2)))
            if (k, tick) != (1, 40):
                bag.add(f"/{body}/twist", pose_at(time_ns))
    bag.close()
    assert bag.lost == {"/drone_1/twist": 1}
