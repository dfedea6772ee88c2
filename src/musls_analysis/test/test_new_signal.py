"""A new signal is an entry in the table: it is in the bag, read back, and in the memory."""

from contextlib import closing

import numpy as np
import pytest
from standing_plant import session_of, standing_plant

from musls_analysis.recordings.bag import read_bag, recording_from
from musls_description.config.errors import ConfigError
from musls_description.system.system_files import load_system
from musls_sim.recording import BagRecorder, MemoryRecorder
from musls_sim.recording.signals import SIGNALS, Column, Rate, Signal, drone_names

SYSTEM = load_system("x500_trio")


NEW = (
    Signal(
        "thrust", "geometry_msgs/msg/WrenchStamped", Rate.STATE, drone_names,
        (Column("force_n", "wrench.force", (3,), lambda system, s: s.force_n),), frame="",
    ),
    Signal(
        "power", "std_msgs/msg/Float64", Rate.STATE, drone_names,  # without a stamp
        (Column("power_w", "data", (), lambda system, s: 2.0 * s.force_n[:, 0]),),
    ),
)  # fmt: skip


def test_a_new_signal_is_recorded_written_and_read(tmp_path, monkeypatch):
    for signal in NEW:
        monkeypatch.setitem(SIGNALS, signal.name, signal)
    rng = np.random.default_rng(1)
    session = session_of(standing_plant(SYSTEM))
    truth = rng.normal(size=(30, 3, 3))
    memory = MemoryRecorder(SYSTEM, step_period_s=0.02)
    with closing(BagRecorder(tmp_path / "bag", SYSTEM, step_period_s=0.02)) as recorder:
        for k, session.force_n in enumerate(truth):
            recorder.observe(0.02 * k, session)
            memory.observe(0.02 * k, session)
    assert recorder.topics["/drone_2/thrust"] == "geometry_msgs/msg/WrenchStamped"
    for run in (read_bag(tmp_path / "bag"), recording_from(recorder), recording_from(memory)):
        thrust, power = (run.signal("drone_2", name) for name in ("thrust", "power"))
        np.testing.assert_array_equal(thrust.force_n, truth[:, 1])
        np.testing.assert_array_equal(power.power_w, 2.0 * truth[:, 1, 0])
        for track in (thrust, power):
            np.testing.assert_allclose(track.time_s, 0.02 * np.arange(30), atol=1e-12)
        with pytest.raises(ConfigError, match="no signal of load: thrust in this recording"):
            run.signal("load", "thrust")
