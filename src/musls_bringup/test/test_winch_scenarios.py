"""The shipped scenarios with winches and pulleys, flown as a user would."""

import numpy as np
import pytest

import musls
from musls_description.config.errors import ConfigError

G = 9.80665


def test_gravity_rig_doubles_its_force_with_its_torques():
    """F = 4 (torque / radius) cos(angle) less the ring: ratio 2.00 (paper: 130, 260 N)."""
    run = musls.fly(musls.load_scenario("gravity_rig"))
    line = run.cable(9)
    rise = 1.8 / np.hypot(np.hypot(1.0, 1.5), 1.8)
    at = [np.mean(line.tension_n[(line.time_s > t) & (line.time_s < t + 0.4), -1]) for t in (2, 5)]
    assert at[1] / at[0] == pytest.approx(2.0, rel=0.01)
    assert at[1] - at[0] == pytest.approx(4.0 * 4.0 / 0.11 * rise, rel=2e-3)


def test_winch_delivery_puts_the_box_down_and_goes_slack():
    run = musls.fly(musls.load_scenario("winch_delivery"))
    box, line = run.body("load"), run.cable(1)
    early = (line.time_s > 0.5) & (line.time_s < 1.5)
    assert line.tension_n[early].mean() == pytest.approx(0.5 * G, rel=0.1)
    going = (box.time_s > 5.0) & (box.time_s < 8.0)
    speed = np.polyfit(box.time_s[going], box.position_enu_m[going, 2], 1)[0]
    assert speed == pytest.approx(-0.25, rel=0.02)
    assert box.position_enu_m[-1] == pytest.approx([0.0, 0.0, 0.05], abs=0.01)
    assert line.free_length_m[-1] == pytest.approx(3.25, abs=1e-6)
    # Only the slack line, 8.3 g/m, hangs below the drone.
    late = line.time_s > line.time_s[-1] - 2.0
    assert line.tension_n[late, 1].mean() == pytest.approx(3.25 * 0.0083 * G, rel=0.2)
    assert abs(line.tension_n[late, 0].mean()) < 0.1


def test_equaliser_pulls_alike_though_one_holder_lags():
    run = musls.fly(musls.load_scenario("equaliser"))
    one, two = (run.cable(i).tension_n[:, 0] for i in (1, 2))
    assert (np.abs(one - two) / (one + two)).max() < 0.01
    lengths = run.cable(1).free_length_m + run.cable(2).free_length_m
    assert np.ptp(lengths) < 1e-9
    assert np.ptp(run.cable(1).free_length_m) > 0.2


@pytest.mark.slow
def test_crane_drives_and_hoists():
    """Hoisting by 1 m of rope lifts by 0.5 m; the main rope keeps its length but for the winch."""
    run = musls.fly(musls.load_scenario("crane"))
    main = sum(run.cable(i).free_length_m for i in range(1, 6))
    times = run.cable(1).free_length_time_s
    assert np.ptp(main[times < 12.0]) < 1e-9
    assert main[-1] - main[0] == pytest.approx(-0.25 * 4.0, abs=1e-6)
    load = run.body("load")
    before, after = (load.time_s > 8.0) & (load.time_s < 12.0), load.time_s > 17.5
    sway = [load.position_enu_m[k, 0].max() for k in (before, after)]
    assert sway[0] < 15.0 + 3.9
    # Lowest point of the swing, where both falls hang straight.
    lowest = [load.position_enu_m[k, 2].min() for k in (before, after)]
    assert lowest[1] - lowest[0] == pytest.approx(0.5, abs=0.03)


def test_an_event_commands_a_winch():
    """The scenario pays out from 2 s on; an event reels in by 0.1 m/s, another one stops it."""
    events = [
        {"kind": "winch", "when": {"time_s": 0.4}, "feed_m_s": 0.2},
        {"kind": "winch", "when": {"time_s": 0.9}, "feed_m_s": -0.1, "name": "in"},
        {"kind": "winch", "when": {"event": "in", "after_s": 0.5}, "feed_m_s": 0.0},
    ]
    scenario = musls.load_scenario("winch_delivery", {"events": events})
    with musls.Session(scenario) as session:
        lengths = []
        for _ in range(5):
            session.advance(125)
            lengths.append(float(session.plant.state.free_length_m[0]))
        session.advance(300)  # past 3 s, when the scenario would pay out
        lengths.append(float(session.plant.state.free_length_m[0]))
        told = [event.what for event in session.events.happened]
    # At 0.5, 1, 1.5, 2, 2.5 and 3.7 s.
    expected = np.array([0.02, 0.09, 0.05, 0.05, 0.05, 0.05])
    assert np.array(lengths) - lengths[0] + 0.02 == pytest.approx(expected, abs=1e-3)
    assert told[0] == "winch_1: feed_m_s = 0.2"


def test_a_winch_changes_its_rate_along_a_ramp():
    """To 0.2 m/s within 0.5 s, and back: lengths of a steady acceleration, no jump of the rate."""
    events = [
        {"kind": "winch", "when": {"time_s": 0.4}, "feed_m_s": 0.2, "ramp_s": 0.5},
        {"kind": "winch", "when": {"time_s": 1.4}, "feed_m_s": 0.0, "ramp_s": 0.5},
    ]
    scenario = musls.load_scenario("winch_delivery", {"events": events})
    with musls.Session(scenario) as session:
        lengths = [float(session.plant.state.free_length_m[0])]
        for _ in range(500):
            session.advance(1)
            lengths.append(float(session.plant.state.free_length_m[0]))
    paid_out = np.array(lengths) - lengths[0]
    assert paid_out[[225, 350, 475, 500]] == pytest.approx([0.05, 0.15, 0.2, 0.2], abs=2e-3)
    change = np.abs(np.diff(paid_out, 2)).max() / 0.004**2
    assert change == pytest.approx(0.4, rel=0.01)


@pytest.mark.parametrize(
    ("scenario", "event", "says"),
    [
        ("winch_delivery", {"brake": True, "ramp_s": 1.0}, "ramp_s belongs to"),
        ("winch_delivery", {"torque_n_m": 1.0}, "winch_1 takes feed_m_s here"),
        ("winch_delivery", {"winch": 2, "feed_m_s": 1.0}, "winch 2, but there are 1"),
        ("winch_delivery", {"brake": True}, "has no brake"),
        ("winch_delivery", {}, "give one of"),
        ("hold", {"feed_m_s": 1.0}, "x500_trio has none"),
    ],
)
def test_winch_commands_that_cannot_be(scenario, event, says):
    event = {"kind": "winch", "when": {"time_s": 1.0}} | event
    with pytest.raises(ConfigError, match=says):
        musls.Session(musls.load_scenario(scenario, {"events": [event]})).close()


@pytest.mark.slow
def test_a_drum_that_keeps_the_stretch_hoists_by_what_its_angle_tells():
    """By r phi = 2 m; a line that lies on it unstretched would be 3 % (1 + T / EA) farther up."""
    rise_m = {}
    for keeps in (True, False):
        changes = {"system.winches.0.keeps_stretch": keeps}
        run = musls.fly(musls.load_scenario("nylon_hoist", changes))
        height_m = run.body("load").position_enu_m[:, 2]
        rise_m[keeps] = height_m[-50:].mean() - height_m[0]
    strain = 20.0 * G / 6570.0
    assert rise_m[True] == pytest.approx(2.0, abs=2e-3)
    assert rise_m[False] == pytest.approx(2.0 * (1.0 + strain), abs=4e-3)
