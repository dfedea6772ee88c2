"""The offboard protocol of one drone against a small model of the vehicle's rules."""

import numpy as np
import pytest

from musls_control.offboard import (
    COMMAND_ARM_DISARM,
    COMMAND_LAND,
    COMMAND_SET_MODE,
    NEW_FLIGHT_S,
    OffboardSession,
    OffboardSettings,
    Phase,
    Setpoint,
    px4_namespace,
    px4_topic,
    target_system,
    vehicles,
)
from musls_description.config.errors import ConfigError

HERE = Setpoint(np.zeros(3), np.full(3, np.nan), 0.0)
DISARMED, ARMED, LOITER, OFFBOARD, LAND = 1, 2, 4, 14, 18


class Vehicle:
    """Accepts offboard mode after a second of set-points and arming in that mode."""

    def __init__(self, *, accepts=True):
        self.arming, self.nav, self.accepts, self.commands = DISARMED, LOITER, accepts, []

    def take(self, command):
        self.commands.append(command.number)
        if not self.accepts:
            return 2
        if command.number == COMMAND_SET_MODE:
            assert (command.param1, command.param2) == (1.0, 6.0)
            self.nav = OFFBOARD
        elif command.number == COMMAND_ARM_DISARM:
            assert self.nav == OFFBOARD and command.param1 == 1.0
            self.arming = ARMED
        elif command.number == COMMAND_LAND:
            self.nav = LAND
        return 0


def fly(session, vehicle, start_s, end_s, *, formation=True, status=True):
    """Run protocol and vehicle at 50 Hz; returns the phases in their order."""
    phases = []
    for k in range(round((end_s - start_s) / 0.02)):
        now = start_s + 0.02 * k
        if status:
            session.on_status(now, vehicle.arming, vehicle.nav)
        if formation:
            session.on_setpoint(now, HERE)
        command = session.step(now)
        if command is not None:
            session.on_ack(command.number, vehicle.take(command))
        if not phases or phases[-1] is not session.phase:
            phases.append(session.phase)
    return phases


def flying():
    session, vehicle = OffboardSession(), Vehicle()
    fly(session, vehicle, 0.0, 3.0)
    assert session.phase is Phase.FLYING
    return session, vehicle


def test_streams_a_second_then_takes_the_mode_then_arms():
    session, vehicle = OffboardSession(), Vehicle()
    assert fly(session, vehicle, 0.0, 0.9)[-1] is Phase.STREAMING
    assert vehicle.commands == []
    phases = fly(session, vehicle, 0.9, 2.0)
    assert phases == [Phase.STREAMING, Phase.TAKING_MODE, Phase.ARMING, Phase.FLYING]
    assert vehicle.commands == [COMMAND_SET_MODE, COMMAND_ARM_DISARM]


def test_without_auto_arm_the_pilot_has_both():
    session, vehicle = OffboardSession(OffboardSettings(auto_arm=False)), Vehicle()
    fly(session, vehicle, 0.0, 20.0)
    assert session.phase is Phase.STREAMING and vehicle.commands == []
    vehicle.arming, vehicle.nav = ARMED, OFFBOARD
    assert fly(session, vehicle, 20.0, 20.1)[-1] is Phase.FLYING


def test_refused_commands_are_tried_again_and_given_up_with_the_reason():
    settings = OffboardSettings(tries=4)
    session, vehicle = OffboardSession(settings), Vehicle(accepts=False)
    fly(session, vehicle, 0.0, 10.0)
    assert session.phase is Phase.FAILED
    assert vehicle.commands == [COMMAND_SET_MODE] * 4
    assert "offboard mode" in session.reason and "result 2" in session.reason


def test_a_silent_formation_makes_the_drone_hold_and_its_stream_go_on():
    session, vehicle = flying()
    fly(session, vehicle, 3.0, 3.4, formation=False)
    assert session.phase is Phase.FLYING
    fly(session, vehicle, 3.4, 5.0, formation=False)
    assert session.phase is Phase.HOLDING
    assert session.setpoint is HERE and session.heartbeat_due(5.0)
    session.sent(5.0)
    assert not session.heartbeat_due(5.05) and session.heartbeat_due(5.11)
    assert fly(session, vehicle, 5.0, 5.2)[-1] is Phase.FLYING


def test_a_pilot_who_takes_over_is_not_fought():
    session, vehicle = flying()
    vehicle.nav = LOITER
    vehicle.commands.clear()
    assert fly(session, vehicle, 3.0, 8.0) == [Phase.RELEASED]
    assert vehicle.commands == []
    vehicle.nav = OFFBOARD
    assert fly(session, vehicle, 8.0, 8.1)[-1] is Phase.FLYING


def test_a_landed_drone_is_not_armed_again_by_the_same_stream():
    session, vehicle = flying()
    vehicle.arming = DISARMED
    vehicle.commands.clear()
    assert fly(session, vehicle, 3.0, 10.0) == [Phase.LANDED]
    assert vehicle.commands == []
    hiccup_end_s = 10.0 + NEW_FLIGHT_S - 0.1
    fly(session, vehicle, 10.0, hiccup_end_s, formation=False)
    assert fly(session, vehicle, hiccup_end_s, 15.0) == [Phase.LANDED]
    assert vehicle.commands == []


def test_after_a_silence_the_next_flight_begins():
    session, vehicle = flying()
    vehicle.arming, vehicle.nav = DISARMED, LOITER
    fly(session, vehicle, 3.0, 4.0)
    assert fly(session, vehicle, 4.0, 7.0, formation=False) == [Phase.LANDED, Phase.IDLE]
    assert fly(session, vehicle, 7.0, 10.0)[-1] is Phase.FLYING


def test_a_drone_that_is_not_heard_in_flight_keeps_its_stream():
    session, vehicle = flying()
    assert fly(session, vehicle, 3.0, 20.0, status=False) == [Phase.FLYING, Phase.SILENT]
    assert session.heartbeat_due(20.0)


@pytest.mark.parametrize("formation", [True, False])
def test_landing_leaves_the_way_down_to_px4(formation):
    session, vehicle = flying()
    fly(session, vehicle, 3.0, 5.0, formation=formation)
    vehicle.commands.clear()
    session.land = True
    assert fly(session, vehicle, 5.0, 8.0, formation=formation)[-1] is Phase.RELEASED
    assert vehicle.commands == [COMMAND_LAND] and not session.land


def test_a_refused_landing_is_given_up_without_ending_the_stream():
    session, vehicle = OffboardSession(OffboardSettings(tries=3)), Vehicle()
    fly(session, vehicle, 0.0, 3.0)
    vehicle.accepts = False
    vehicle.commands.clear()
    session.land = True
    assert fly(session, vehicle, 3.0, 8.0) == [Phase.FLYING]
    assert vehicle.commands == [COMMAND_LAND] * 3
    assert not session.land and "could not land: 3 tries, result 2" in session.reason


def test_a_silent_vehicle_is_waited_for():
    session, vehicle = OffboardSession(), Vehicle()
    fly(session, vehicle, 0.0, 2.0, status=False)
    assert session.phase is Phase.WAITING and vehicle.commands == []


@pytest.mark.parametrize(("version", "suffix"), [(None, ""), (0, ""), (1, "_v1"), (4, "_v4")])
def test_topic_names_follow_the_version_rule(version, suffix):
    kind = type("VehicleStatus", (), {} if version is None else {"MESSAGE_VERSION": version})
    name = px4_topic(2, "out", kind)
    assert name == f"px4_2/fmu/out/vehicle_status{suffix}"


def test_a_fleet_may_have_other_names_and_numbers():
    own = vehicles([1, 2], ["/uav7", "b/c"], [7, 255])
    assert [(v.drone, v.namespace, v.system_id) for v in own] == [(1, "/uav7", 7), (2, "b/c", 255)]
    assert px4_topic(own[0].namespace, "in", type("A", (), {})) == "/uav7/fmu/in/a"
    assert [v.namespace for v in vehicles([3, 1])] == ["px4_3", "px4_1"]
    for wrong, text in (
        ({"drones": [1, 1]}, "drones = .* only once"),
        ({"namespaces": ["a"]}, "px4_namespaces has 1 values, must have 2"),
        ({"namespaces": ["a", "a"]}, "px4_namespaces = .* only once"),
        ({"namespaces": ["a", "b c"]}, "'b c' is no namespace"),
        ({"system_ids": [5, 256]}, "system_ids: 256: must be 1 to 255"),
    ):
        with pytest.raises(ConfigError, match=text):
            vehicles(**{"drones": [1, 2], **wrong})


def test_instances_count_from_one_and_systems_one_more():
    assert (px4_namespace(1), target_system(1)) == ("px4_1", 2)
    for wrong in (0, -1, 254):
        with pytest.raises(ConfigError, match="must be 1 to 253"):
            px4_namespace(wrong)
