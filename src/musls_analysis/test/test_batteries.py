"""Batteries in recordings, summary and figures."""

from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from standing_plant import session_of

from musls_analysis.comparison.summary import summarise
from musls_analysis.figures.flight import plot
from musls_analysis.recordings.bag import read_bag, recording_from
from musls_description.config.errors import ConfigError
from musls_description.system.system_files import load_system
from musls_sim.plants.interface import Plant, PlantState
from musls_sim.power import BATTERY
from musls_sim.recording import BagRecorder
from musls_sim.recording.signals import recorded_topics


class Still(Plant):
    """A plant as a recorder sees it."""

    def __init__(self, system):
        self.state = PlantState.zeros(system)

    def cable_nodes_enu_m(self, index):
        return np.zeros((7, 3))


@pytest.fixture
def recorder(tmp_path):
    system = load_system("delivery")
    plant = Still(system)
    with closing(
        BagRecorder(tmp_path / "bag", system, step_period_s=0.004, buffer_s=0.1)
    ) as recorder:
        for k in range(50):
            batteries = np.zeros(1, BATTERY)
            for name, value in (
                ("voltage", 50.0 - 0.01 * k), ("current", 20.0), ("charge", 1.0 - 1e-3 * k)
            ):  # fmt: skip
                batteries[name] = value
            session = session_of(plant, power=SimpleNamespace(batteries=batteries))
            recorder.observe(0.02 * k, session)
    return recorder


def test_bag_and_memory_say_the_same(recorder):
    memory, bag = recording_from(recorder), read_bag(recorder.folder)
    assert recorder.topics["/drone_1/battery"] == "sensor_msgs/msg/BatteryState"
    for name in ("time_s", "voltage_v", "current_a", "charge"):
        of_bag = getattr(bag.battery(1), name)
        np.testing.assert_array_equal(getattr(memory.battery(1), name), of_bag)
    np.testing.assert_allclose(bag.battery(1).voltage_v, 50.0 - 0.01 * np.arange(50), rtol=1e-6)
    np.testing.assert_allclose(bag.battery(1).current_a, 20.0)


def test_summary_and_figure(recorder):
    run = recording_from(recorder)
    found = summarise(run)["batteries"]["drone_1"]
    assert found["charge_end"] == pytest.approx(1.0 - 0.049, rel=1e-6)
    assert found["mean_power_w"] == pytest.approx(20.0 * (50.0 - 0.245), rel=1e-6)
    assert found["energy_wh"] == pytest.approx(found["mean_power_w"] * 0.98 / 3600.0, rel=1e-6)
    assert found["min_voltage_v"] == pytest.approx(49.51, rel=1e-6)
    assert len(plot(run, "batteries").axes) == 3


def test_no_battery_no_topic(recorder):
    assert not [
        topic for topic in recorded_topics(load_system("x500_duo")) if topic.endswith("/battery")
    ]
    with pytest.raises(ConfigError, match="no battery of drone_7"):
        recording_from(recorder).battery(7)
