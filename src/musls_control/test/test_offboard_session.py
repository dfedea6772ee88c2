"""The offboard protocol of one drone against a small model of the vehicle's rules."""

from dataclasses import replace

import numpy as np
import pytest

from musls_control.px4.offboard import (
    COMMAND_ARM_DISARM,
    COMMAND_LAND,
    COMMAND_SET_MODE,
    NEW_FLIGHT_S,
    OffboardSession,
    OffboardSettings,
    Phase,
    Placement,
    Setpoint,
    Status,
    belief_error,
    other_loss_parameters,
    px4_namespace,
    px4_topic,
    stand_down_together,
    start_refusal,
    target_system,
    vehicles,
)
from musls_description.config.errors import ConfigError

HERE = Setpoint(np.zeros(3), np.full(3, np.nan), 0.0)
UNDERWAY = replace(HERE, flight_s=7.0)
DISARMED, ARMED, LOITER, OFFBOARD, LAND = 1, 2, 4, 14, 18


class Vehicle:
    """Accepts offboard mode after a second of set-points and arming in that mode."""

    def __init__(self, *, accepts=True):
        self.arming, self.nav, self.accepts, self.commands = DISARMED, LOITER, accepts, []
        self.took_off, self.intention, self.hears = False, OFFBOARD, True

    @property
    def status(self):
        return Status(
            armed=self.arming == ARMED, nav_state=self.nav,
            intention=self.intention, took_off=self.took_off,
        )  # fmt: skip

    def take(self, command):
        self.commands.append(command.number)
        if not self.accepts:
            return 2
        if command.number == COMMAND_ARM_DISARM and not command.param1:
            assert not self.took_off  # PX4 refuses it
            self.arming = DISARMED
            return 0
        if command.number == COMMAND_SET_MODE:
            assert (command.param1, command.param2) == (1.0, 6.0)
            self.nav = OFFBOARD
        elif command.number == COMMAND_ARM_DISARM:
            assert self.nav == OFFBOARD and command.param1 == 1.0
            self.arming = ARMED
        elif command.number == COMMAND_LAND:
            self.nav = LAND
        return 0


def fly(session, vehicle, start_s, end_s, *, formation=True, status=True, asked=HERE):
    """Run protocol and vehicle at 50 Hz; returns the phases in their order."""
    phases = []
    for k in range(round((end_s - start_s) / 0.02)):
        now = start_s + 0.02 * k
        if status:
            session.on_status(now, vehicle.status)
        if formation:
            session.on_setpoint(now, asked)
        command = session.step(now)
        if command is not None and vehicle.hears:
            session.on_ack(command.number, vehicle.take(command))
        if not phases or phases[-1] is not session.phase:
            phases.append(session.phase)
    return phases


def proved(settings=None):
    """Session of a vehicle whose estimate agrees with its poses."""
    return OffboardSession(settings or OffboardSettings(), proved=True)


def flying():
    session, vehicle = proved(), Vehicle()
    fly(session, vehicle, 0.0, 3.0)
    assert session.phase is Phase.FLYING
    vehicle.took_off = True
    fly(session, vehicle, 3.0, 3.02)
    return session, vehicle


def test_a_drone_in_the_air_that_nobody_leads_is_not_idle():
    """A formation that starts over must not take it for one that stands on the ground."""
    session, vehicle = proved(), Vehicle()
    assert fly(session, vehicle, 0.0, 1.0, formation=False) == [Phase.IDLE]
    vehicle.arming, vehicle.nav, vehicle.took_off = ARMED, OFFBOARD, True
    assert fly(session, vehicle, 1.0, 2.0, formation=False)[-1] is Phase.AIRBORNE


def test_streams_a_second_then_takes_the_mode_then_arms():
    session, vehicle = proved(), Vehicle()
    assert fly(session, vehicle, 0.0, 0.9)[-1] is Phase.STREAMING
    assert vehicle.commands == []
    phases = fly(session, vehicle, 0.9, 2.0)
    assert phases == [Phase.STREAMING, Phase.TAKING_MODE, Phase.ARMING, Phase.FLYING]
    assert vehicle.commands == [COMMAND_SET_MODE, COMMAND_ARM_DISARM]


def test_without_auto_arm_the_pilot_has_both():
    session, vehicle = proved(OffboardSettings(auto_arm=False)), Vehicle()
    fly(session, vehicle, 0.0, 20.0)
    assert session.phase is Phase.STREAMING and vehicle.commands == []
    vehicle.arming, vehicle.nav = ARMED, OFFBOARD
    assert fly(session, vehicle, 20.0, 20.1)[-1] is Phase.FLYING


def test_refused_commands_are_tried_again_and_given_up_with_the_reason():
    settings = OffboardSettings(tries=4)
    session, vehicle = proved(settings), Vehicle(accepts=False)
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
    vehicle.arming, vehicle.nav, vehicle.took_off = DISARMED, LOITER, False
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


def test_a_refused_landing_is_told_and_asked_for_again_without_ending_the_stream():
    session, vehicle = flying()
    session.settings = OffboardSettings(tries=3)
    vehicle.accepts = False
    vehicle.commands.clear()
    session.land = True
    assert fly(session, vehicle, 3.0, 8.0) == [Phase.FLYING]
    assert vehicle.commands == [COMMAND_LAND] * 10
    assert session.land and "could not land: 3 tries, result 2" in session.reason
    vehicle.accepts = True
    assert fly(session, vehicle, 8.0, 10.0)[-1] is Phase.RELEASED and not session.land


def test_a_silent_vehicle_is_waited_for():
    session, vehicle = proved(), Vehicle()
    fly(session, vehicle, 0.0, 2.0, status=False)
    assert session.phase is Phase.WAITING and vehicle.commands == []


# ---------- One of several cannot be armed; a node that is started anew; who is who


def fly_together(sessions, vehicles, start_s, end_s, **options):
    """The same for several drones of one node."""
    for k in range(round((end_s - start_s) / 0.02)):
        now = start_s + 0.02 * k
        for session, vehicle in zip(sessions, vehicles, strict=True):
            fly(session, vehicle, now, now + 0.02, **options)
        stand_down_together(sessions)


def test_when_one_cannot_be_armed_the_others_are_disarmed_and_all_wait_for_a_start():
    settings = OffboardSettings(tries=4)
    sessions, drones = [proved(settings) for _ in range(3)], [Vehicle() for _ in range(3)]
    drones[1].hears = False  # its commands are for another MAV_SYS_ID: nobody answers
    fly_together(sessions, drones, 0.0, 2.0)
    assert [d.arming for d in drones] == [ARMED, DISARMED, ARMED]
    fly_together(sessions, drones, 2.0, 4.0)
    assert sessions[1].phase is Phase.FAILED
    assert sessions[1].reason == "could not take offboard mode: 4 tries, no answer"
    assert [d.arming for d in drones] == [DISARMED] * 3
    assert start_refusal({"drone_1": "flying"}, {}) == ""
    phases = {"drone_1": "flying", "drone_2": "failed"}
    assert start_refusal(phases, {"drone_2": sessions[1].reason}) == (
        "drone_2: could not take offboard mode: 4 tries, no answer"
    )
    fly_together(sessions, drones, 4.0, 9.0)  # the same stream arms nobody again
    assert [d.arming for d in drones] == [DISARMED] * 3
    drones[1].hears = True
    fly_together(sessions, drones, 9.0, 12.0, formation=False)
    assert {session.phase for session in sessions} == {Phase.IDLE}
    fly_together(sessions, drones, 12.0, 15.0)
    assert {session.phase for session in sessions} == {Phase.FLYING}


def test_a_drone_that_px4_counts_as_in_the_air_on_the_ground_is_landed_to_be_disarmed():
    settings = OffboardSettings(tries=4)
    sessions, drones = [proved(settings) for _ in range(2)], [Vehicle() for _ in range(2)]
    drones[1].hears = False
    fly_together(sessions, drones, 0.0, 2.0)
    drones[0].took_off = True
    fly_together(sessions, drones, 2.0, 4.0)
    assert sessions[1].phase is Phase.FAILED and sessions[0].phase is Phase.RELEASED
    assert drones[0].nav == LAND and drones[0].commands[-1] == COMMAND_LAND


def test_a_drone_in_flight_is_not_disarmed_because_another_one_cannot_be_commanded():
    session, vehicle = flying()
    fly(session, vehicle, 3.02, 3.1, asked=UNDERWAY)
    failed = OffboardSession(phase=Phase.FAILED)
    for now in np.arange(3.1, 8.0, 0.02):
        fly(session, vehicle, now, now + 0.02, asked=UNDERWAY)
        stand_down_together([session, failed])
    assert session.phase is Phase.FLYING and vehicle.arming == ARMED


def test_armed_drones_on_the_ground_are_disarmed_when_the_formation_gives_up():
    session, vehicle = proved(), Vehicle()
    fly(session, vehicle, 0.0, 3.0)
    phases = fly(session, vehicle, 3.0, 9.0, formation=False)
    assert phases == [Phase.FLYING, Phase.HOLDING, Phase.LANDED, Phase.IDLE]
    assert vehicle.arming == DISARMED
    pilots, vehicle = proved(OffboardSettings(auto_arm=False)), Vehicle()
    vehicle.arming, vehicle.nav = ARMED, OFFBOARD
    fly(pilots, vehicle, 0.0, 1.0)
    fly(pilots, vehicle, 1.0, 9.0, formation=False)
    assert vehicle.arming == ARMED  # the pilot's


def test_a_new_node_arms_nobody_who_has_landed_in_a_flight_that_goes_on():
    session, vehicle = proved(), Vehicle()
    assert fly(session, vehicle, 0.0, 9.0, asked=UNDERWAY) == [Phase.LANDED]
    assert vehicle.commands == []
    fly(session, vehicle, 9.0, 12.0, formation=False)
    assert session.phase is Phase.IDLE
    assert fly(session, vehicle, 12.0, 15.0)[-1] is Phase.FLYING


def test_a_new_node_takes_over_what_its_failsafe_flies_but_not_from_a_pilot():
    session, vehicle = proved(), Vehicle()
    vehicle.arming, vehicle.nav, vehicle.took_off = ARMED, LAND, True
    phases = fly(session, vehicle, 0.0, 3.0, asked=UNDERWAY)
    assert phases == [Phase.STREAMING, Phase.TAKING_MODE, Phase.FLYING]
    session, vehicle = proved(), Vehicle()
    vehicle.arming, vehicle.nav, vehicle.took_off = ARMED, LOITER, True
    vehicle.intention = LOITER
    assert fly(session, vehicle, 0.0, 9.0, asked=UNDERWAY) == [Phase.RELEASED]
    assert vehicle.commands == []


LEVEL, TILTED = np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.9962, 0.0872, 0.0, 0.0])  # 10 degrees
TURNED = np.array([0.7071, 0.0, 0.0, 0.7071])


def test_a_vehicle_proves_by_its_estimate_that_it_is_the_drone_of_its_poses():
    settings, at = OffboardSettings(), np.array([1.0, 2.0, 0.2])
    here, away = Placement(5.0, at, LEVEL), Placement(5.0, at + [1.31, 0.0, 0.0], LEVEL)
    near = Placement(5.0, at + 0.3, TURNED)
    assert belief_error(here, near, settings) == ""  # headings are not told
    far = belief_error(here, away, settings)
    assert far == "its PX4's estimate is 1.31 m from its poses"
    assert "tilted by 10 degrees" in belief_error(here, Placement(5.0, at, TILTED), settings)
    late = replace(here, stamp_s=5.3, speed_m_s=2.0)
    assert belief_error(late, away, settings) == ""  # 0.3 s of flight are between them
    assert belief_error(replace(late, stamp_s=5.1), away, settings) == far
    session, vehicle = OffboardSession(), Vehicle()
    assert fly(session, vehicle, 0.0, 9.0) == [Phase.WAITING]
    for now in (9.0, 9.3, 9.6):
        session.on_belief(now, far)
    assert fly(session, vehicle, 9.6, 19.0) == [Phase.DOUBTED]
    assert session.reason == far and vehicle.commands == []
    session.on_belief(19.0, "")
    assert fly(session, vehicle, 19.0, 23.0)[-1] is Phase.FLYING
    vehicle.took_off = True
    for now in (23.0, 23.4, 23.6):
        session.on_belief(now, far)
    assert fly(session, vehicle, 23.6, 25.0) == [Phase.DOUBTED]
    assert session.heartbeat_due(99.0)


def test_another_system_id_than_expected_is_told_before_arming():
    session = OffboardSession(proved=True, system_id=2)
    for now in np.arange(0.0, 3.0, 0.02):
        session.on_status(now, Status(system_id=3))
        session.on_setpoint(now, HERE)
        assert session.step(now) is None
    assert session.phase is Phase.DOUBTED
    assert session.reason == "its PX4 has MAV_SYS_ID 3, not 2 (system_ids)"
    unasked = OffboardSession(OffboardSettings(prove_identity=False), system_id=2)
    unasked.on_status(0.0, Status(system_id=3))
    unasked.step(0.0)
    assert unasked.phase is Phase.IDLE


def test_a_failsafe_that_does_not_land_is_told_with_the_parameters():
    in_air = Status(armed=True, took_off=True, failsafe=True, nav_state=5)
    assert "mode 5, not 18 (land)" in in_air.failsafe_word
    assert "COM_OF_LOSS_T 1, COM_OBL_RC_ACT 4" in in_air.failsafe_word
    assert replace(in_air, nav_state=LAND).failsafe_word == ""
    assert replace(in_air, failsafe=False).failsafe_word == ""


def test_other_parameters_for_lost_guidance_are_told():
    assert other_loss_parameters({"MPC_XY_P": 1.0, "COM_OBL_RC_ACT": 4.0}) == ""
    told = other_loss_parameters({"COM_OBL_RC_ACT": 3.0})
    assert told.startswith("COM_OBL_RC_ACT = 3 (docs: 4): ")


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
