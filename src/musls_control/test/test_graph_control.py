"""A controller on what a ROS graph tells: acceleration set-points that carry the load at rest."""

from pathlib import Path

import numpy as np
import pytest

from musls_control.controllers.interface import ControlSetup
from musls_control.controllers.payload import PayloadSpec
from musls_control.graph_flight import GraphControl, read_mission_file
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
    """Controller of the trio that has heard load and drones at rest in formation."""
    system, cone = load_system("x500_trio_swivel"), Cone()
    controller = PayloadSpec().build(ControlSetup(system, cone, G, 0.02))
    control = GraphControl(controller, system, 0.02)
    places = np.vstack([np.zeros(3), cone.offsets_m(3)]) + [0.0, 0.0, 1.0]
    for body, place in enumerate(places):
        control.on_pose(body, 5.0, place, (1.0, 0.0, 0.0, 0.0))
        control.on_twist(body, 5.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        if body:
            control.on_rotors(body, 5.0, [700.0] * 4)
    return control


def test_at_rest_forces_carry_load_and_drones(heard):
    """Vertical set-points are about the throttle's own, horizontal ones lean against the cables."""
    reference = np.zeros((5, 4))
    reference[0, 2] = 1.0
    assert heard.is_complete_until(5.0) and not heard.is_complete_until(5.02)
    acceleration, yaw = heard.step(5.0, LoadReference(reference))
    outwards = Cone().offsets_m(3)[:, :2] / Cone().radius_m
    lean = np.sum(acceleration[:, :2] * outwards, axis=1)
    assert lean == pytest.approx(np.full(3, lean[0]), rel=0.1)  # the load is not quite even
    assert 0.3 < lean[0] < 3.0
    assert np.hypot(*acceleration[:, :2].T) == pytest.approx(lean, rel=0.05)
    assert np.unwrap(yaw) == pytest.approx(np.unwrap(Cone().azimuths_rad(3) + np.pi))


def test_what_is_missing_is_old(heard):
    heard.on_pose(0, 5.3, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0, 0.0))
    assert heard.age_s(5.3) == pytest.approx(0.3)


def test_a_mission_file_tells_the_controller(tmp_path):
    file = tmp_path / "scenario.yaml"
    file.write_text(to_yaml(load_scenario(SHIPPED / "circle_payload.yaml")))
    assert isinstance(read_mission_file(file).control(0.02), GraphControl)
    gate = load_scenario(SHIPPED / "gate.yaml")
    file.write_text(to_yaml(gate))
    known = read_mission_file(file).control(0.02).controller.setup
    assert known.obstacles == gate.world.obstacles and len(known.obstacles) == 1
    rods = load_scenario(SHIPPED / "circle_payload.yaml", ["cable_model=rigid_rods"])
    file.write_text(to_yaml(rods))
    with pytest.raises(ConfigError, match=r"cannot fly rigid rods"):
        read_mission_file(file).control(0.02)
    file.write_text(to_yaml(load_scenario(SHIPPED / "circle.yaml")))
    assert read_mission_file(file).control(0.02) is None
    file.write_text(to_yaml(load_scenario(SHIPPED / "circle.yaml", ["controller=pid"])))
    with pytest.raises(ConfigError, match=r"pid .*cannot fly through the ROS graph"):
        read_mission_file(file).control(0.02)
