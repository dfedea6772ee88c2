"""A delivery on what a ROS graph tells: gates, weighing, hooks and giving up, without ROS."""

from pathlib import Path

import numpy as np
import pytest

from musls_control.brief.brief import read_brief
from musls_control.mission.delivery import Outlet, hanging_share
from musls_control.mission.player import CommandRefusal, PlayState
from musls_control.real_flight.graph import ReceivedMotion, control_of, guidance_of
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml
from musls_sim.scenario.scenario import load_scenario

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
STEP_S, G = 0.02, 9.80665


class Flight:
    """The delivery drone hovers with what hangs on it: `carried_kg`; its place is not known."""

    def __init__(self, tmp_path, *changes):
        file = tmp_path / "scenario.yaml"
        file.write_text(to_yaml(load_scenario(SHIPPED / "delivery.yaml", changes)))
        self.file = read_brief(file)
        self.known = ReceivedMotion(1, 4)
        places = np.array([[0.0, 0.0, 0.1], [1.0, 0.0, 0.2]])
        plan = self.file.plan_from(places[0], 0.0, places[1:])
        self.sent, self.told = [], []
        out = Outlet(lambda _, kind, what: self.told.append((kind, what)), self.sent.append)
        self.flight = guidance_of(self.file, plan, self.known, out)
        self.player, self.delivery = self.flight.player, self.flight.player.keeper
        self.player.start(0.0)
        self.time_s, self.stages, self.carried_kg = 0.0, [], 0.0
        (self.drone,) = self.file.system.drones

    def step(self):
        cable = self.file.system.cables[0].mass_kg
        mass = self.drone.mass_kg + cable + self.carried_kg
        k = self.drone.rotors[0].thrust_coefficient_n_s2
        for body in (0, 1):
            self.known.on_twist(body, self.time_s, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        self.known.on_rotors(1, self.time_s, [np.sqrt(mass * G / 4.0 / k)] * 4)
        stage = self.flight.step(self.time_s).stage
        if self.stages[-1:] != [stage]:
            self.stages.append(stage)
        self.time_s += STEP_S

    def until(self, stage, limit_s=100.0):
        begin_s = self.time_s
        while self.stages[-1:] != [stage]:
            self.step()
            assert self.time_s < begin_s + limit_s, self.stages

    def wait(self, seconds):
        for _ in range(round(seconds / STEP_S)):
            self.step()


def test_a_delivery_waits_for_its_hook_weighs_and_waits_for_slack_cables(tmp_path):
    flight = Flight(tmp_path)
    assert flight.sent == [{"kind": "release"}]
    flight.until("pick_up")
    assert flight.sent[-1] == {
        "kind": "attach", "cable": 1, "distance_m": 0.1, "speed_m_s": 0.3,
    }  # fmt: skip
    flight.wait(12.0)
    assert flight.stages[-1] == "pick_up"  # the hook has not closed
    flight.delivery.on_event("attach")
    flight.until("lift")
    flight.carried_kg = 2.0
    flight.until("waypoints")
    assert flight.told == [("weighed", "load: 2.000 kg")]
    with pytest.raises(CommandRefusal, match="a delivery is flown"):
        flight.player.go_to(np.array([0.0, 0.0, 1.0, 0.0]), flight.time_s)
    flight.until("set_down")
    flight.wait(8.0)
    assert flight.stages[-1] == "set_down"  # it still hangs
    flight.carried_kg = 0.0
    flight.until("release")
    assert flight.sent[-1] == {"kind": "release", "name": "delivered"}
    flight.until("land")
    assert flight.stages[-5:] == ["climb", "return", "descend", "spread", "land"]


@pytest.mark.parametrize("how", ["hook", "event", "service"])
def test_a_delivery_that_is_given_up_brings_the_load_back(tmp_path, how):
    flight = Flight(tmp_path, "mission.delivery.timeout_s=2")
    flight.until("pick_up")
    if how != "hook":  # a hook that never closes gives up by itself
        flight.delivery.on_event("attach")
        flight.carried_kg = 2.0
        flight.until("approach" if how == "event" else "waypoints")
        flight.wait(1.0)
        if how == "event":
            flight.delivery.on_event("abort")
        else:
            flight.player.abort(flight.time_s)
    flight.until("land", 150.0)
    assert flight.player.state is PlayState.ABORTING
    assert flight.stages[-5:] == ["return", "lower", "slacken", "spread", "land"]
    assert not any(event["kind"] == "release" for event in flight.sent[1:])
    ((_, why),) = [note for note in flight.told if note[0] == "abort"]
    assert why == ("not hooked after 2 s: return" if how == "hook" else "asked for: return")


def test_a_controller_cannot_fly_a_delivery_through_the_graph(tmp_path):
    flight = Flight(tmp_path)
    data = to_yaml(load_scenario(SHIPPED / "delivery.yaml", ["controller=payload"]))
    file = tmp_path / "other.yaml"
    file.write_text(data)
    with pytest.raises(ConfigError, match="is flown by the formation"):
        control_of(read_brief(file), STEP_S)
    assert control_of(flight.file, STEP_S) is None


def test_a_slack_cable_hangs_in_two_strands_of_which_the_drone_carries_the_longer():
    """Ends h apart, one above the other: the lowest point is (L + h) / 2 below the upper end."""
    for slack in (0.0, 0.6, 1.5):
        height = 2.0 - slack
        assert hanging_share(2.0, slack) == pytest.approx((2.0 + height) / 2.0 / 2.0)
    assert hanging_share(2.0, np.inf) == 1.0  # open hooks: it hangs on the drone alone
    assert hanging_share(2.0, -0.1) == 1.0  # taut
