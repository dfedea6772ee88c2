"""A controller on what a ROS graph tells: acceleration set-points that carry the load at rest."""

from pathlib import Path

import numpy as np
import pytest

from musls_control.brief.brief import read_brief
from musls_control.controllers import Controller, ControlLevel, ControlSetup
from musls_control.controllers.payload.controller import PayloadSpec
from musls_control.real_flight.graph import GraphControl, ReceivedMotion, control_of
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml
from musls_description.hanging.cone import Cone
from musls_description.system.system_files import load_system
from musls_sim.scenario.scenario import load_scenario

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
G = 9.80665


@pytest.fixture
def heard():
    """Controller of the trio, and what was heard of load and drones at rest in formation."""
    system, cone = load_system("x500_trio_swivel"), Cone()
    controller = PayloadSpec().build(ControlSetup(system, cone, G, 0.02))
    control, motion = GraphControl(controller, system, 0.02), ReceivedMotion(3, 4)
    places = np.vstack([np.zeros(3), cone.offsets_m(3)]) + [0.0, 0.0, 1.0]
    half = 0.5 * np.r_[0.0, cone.azimuths_rad(3) + np.pi]  # drones face the load
    for body, place in enumerate(places):
        motion.on_pose(body, 5.0, place, (np.cos(half[body]), 0.0, 0.0, np.sin(half[body])))
        motion.on_twist(body, 5.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        if body:
            motion.on_rotors(body, 5.0, [700.0] * 4)
    return control, motion


def test_at_rest_forces_carry_load_and_drones(heard):
    """Vertical set-points are about the throttle's own, horizontal ones lean against the cables."""
    reference = np.zeros((5, 4))
    reference[0, 2] = 1.0
    control, motion = heard
    assert motion.is_complete_until(5.0) and not motion.is_complete_until(5.02)
    acceleration, yaw = control.step(5.0, LoadReference(reference), motion)
    outwards = Cone().offsets_m(3)[:, :2] / Cone().radius_m
    lean = np.sum(acceleration[:, :2] * outwards, axis=1)
    assert lean == pytest.approx(np.full(3, lean[0]), rel=0.1)  # the load is not quite even
    assert 0.3 < lean[0] < 3.0
    assert np.hypot(*acceleration[:, :2].T) == pytest.approx(lean, rel=0.05)
    assert np.unwrap(yaw) == pytest.approx(np.unwrap(Cone().azimuths_rad(3) + np.pi))


class Counting(Controller):
    """Somebody's own controller; may compile at its first call."""

    level = ControlLevel.AUTOPILOT_FORCES

    def __init__(self):
        self.calls = []

    def start(self, time_s, estimate):
        self.calls.append("start")

    def step(self, time_s, reference, estimate):
        assert np.isfinite(estimate.position_enu_m).all()
        self.calls.append("step")
        return np.tile([0.0, 0.0, 20.0], (3, 1))


def test_a_controller_is_called_once_before_arming_and_starts_anew_at_the_hand_over(heard):
    """Of any module: a first call that compiles for a minute must not come in flight."""
    control = GraphControl(Counting(), load_system("x500_trio_swivel"), 0.02)
    assert control.controller.calls == ["start", "step"] and not control.flies
    control.step(5.0, LoadReference(np.zeros((5, 4))), heard[1])
    assert control.controller.calls == ["start", "step"] * 2 and control.flies


def test_what_is_missing_is_old(heard):
    _, motion = heard
    motion.on_pose(0, 5.3, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0, 0.0))
    assert motion.oldest_s(5.3) == pytest.approx(0.3)


def test_velocities_that_nobody_tells_are_those_between_two_poses():
    motion, level = ReceivedMotion(1, 4), (1.0, 0.0, 0.0, 0.0)
    for time_s, height_m in ((1.0, 2.0), (1.1, 1.9), (1.1, 1.9)):
        motion.on_pose(1, time_s, (0.0, 0.0, height_m), level)
    assert motion.estimate.velocity_enu_m_s[1] == pytest.approx([0.0, 0.0, -1.0])
    motion.on_pose(1, 9.0, (0.0, 0.0, 0.0), level)
    assert np.isnan(motion.estimate.velocity_enu_m_s).all()
    motion.on_twist(1, 9.0, (0.0, 0.0, -3.0), (0.0, 0.0, 0.0))
    motion.on_pose(1, 9.1, (0.0, 0.0, 0.0), level)
    assert motion.estimate.velocity_enu_m_s[1, 2] == -3.0


def test_a_mission_file_tells_the_controller(tmp_path):
    file = tmp_path / "scenario.yaml"
    file.write_text(to_yaml(load_scenario(SHIPPED / "circle_payload.yaml")))
    assert isinstance(control_of(read_brief(file), 0.02), GraphControl)
    gate = load_scenario(SHIPPED / "gate.yaml")
    file.write_text(to_yaml(gate))
    known = control_of(read_brief(file), 0.02).controller.setup
    assert known.obstacles == gate.world.obstacles and len(known.obstacles) == 1
    rods = load_scenario(SHIPPED / "circle_payload.yaml", ["cable_model=rigid_rods"])
    file.write_text(to_yaml(rods))
    with pytest.raises(ConfigError, match=r"cannot fly rigid rods"):
        control_of(read_brief(file), 0.02)
    file.write_text(to_yaml(load_scenario(SHIPPED / "circle.yaml")))
    assert control_of(read_brief(file), 0.02) is None
    file.write_text(to_yaml(load_scenario(SHIPPED / "circle.yaml", ["controller=pid"])))
    with pytest.raises(ConfigError, match=r"pid .*cannot fly through the ROS graph"):
        control_of(read_brief(file), 0.02)
