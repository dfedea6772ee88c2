"""The largest tensions have names, the load's error has a reason, and the page needs no network."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from musls_analysis.comparison.summary import (
    facts,
    flight_warnings,
    named_peaks,
    sentence,
    summarise,
)
from musls_analysis.figures.flight import write_for_paper
from musls_analysis.recordings.recording import (
    CableTrack,
    PoseTrack,
    RecordedEvent,
    RecordedStage,
    Recording,
)
from musls_analysis.report.report import write_report
from musls_description.config.errors import ConfigError

STAGES = (
    RecordedStage("spool_up", 0.0, 2.0),
    RecordedStage("lift", 2.0, 4.0),
    RecordedStage("circle", 4.0, 14.0),
    RecordedStage("lower", 14.0, 16.0),
    RecordedStage("slacken", 16.0, 18.0),
)


def track(time_s, place):
    turn = np.tile([1.0, 0.0, 0.0, 0.0], (len(time_s), 1))
    return PoseTrack(time_s, np.asarray(place, float), turn)


@pytest.fixture
def flight():
    """A load that stands, circles 0.5 s behind its set-point, and stands; cable 1 snaps at 8 s."""
    t = np.arange(0.0, 18.0, 0.02)
    in_air = (t > 3.0) & (t < 15.0)
    height = np.where(in_air, 1.0, 0.05)

    def circle(at):
        return np.column_stack([np.cos(at), np.sin(at), height])

    asked = circle(t)
    asked[~in_air, 2] = -0.5
    tension = np.where(in_air, 6.0, 0.05)
    tension[(t > 7.5) & (t < 8.0)] = 0.0
    tension[np.argmin(abs(t - 8.1))] = 20.0
    ends = np.column_stack([tension, tension])
    one = CableTrack(t, ends, np.empty(0), [])
    two = CableTrack(t, ends * np.where(t < 8.0, 1.0, 0.9)[:, None], np.empty(0), [])
    return Recording(
        {"load": track(t, circle(t - 0.5)), "drone_1": track(t, circle(t) + [0.0, 0.0, 2.0])},
        {"load": track(t, asked)},
        {"cable_1": one, "cable_2": two},
        stages=STAGES,
    )


def with_peaks(recording, peaks_n):
    """The recording with the largest tension of all steps since each sample, (T, 2)."""
    cables = {
        name: replace(cable, peak_time_s=cable.time_s, peak_n=peaks_n[:, k])
        for k, (name, cable) in enumerate(recording.cables.items())
    }
    return replace(recording, cables=cables)


def test_every_sort_of_peak_is_found_between_the_samples(flight):
    t = flight.time_s
    peaks = np.full((900, 2), 0.1)
    for at_s, cable, tension in ((3.5, 0, 9.0), (6.0, 1, 6.5), (8.1, 0, 25.0), (15.0, 1, 61.2)):
        peaks[np.argmin(abs(t - at_s)), cable] = tension
    found = named_peaks(with_peaks(flight, peaks), 0.5)
    assert {where: (p["max_n"], p["cable"]) for where, p in found.items()} == {
        "in_flight": (6.5, "cable_2"),
        "snap": (25.0, "cable_1"),
        "take_up": (9.0, "cable_1"),
        "touch_down": (61.2, "cable_2"),
    }
    said = sentence({"tension": found})
    assert said.startswith("6.5 N in flight (circle), 25.0 N at snaps (circle)")
    stiff = sentence({"tension": found, "inextensible": True})
    own, *chains = said.split(", ", 1)
    assert stiff == f"{own}; {chains[0]} (of chains that do not stretch, a rope jerks less)"


def test_a_load_set_down_within_a_stage_touches_down(flight):
    merged = replace(flight, stages=(STAGES[0], RecordedStage("engage", 2.0, 18.0)))
    peaks = np.full((900, 2), 0.1)
    peaks[np.argmin(abs(flight.time_s - 15.05)), 0] = 31.7
    assert named_peaks(with_peaks(merged, peaks), 0.5)["touch_down"]["max_n"] == 31.7


def test_standing_load_has_no_error_and_lag_is_explained(flight):
    summary = summarise(flight, controller="formation")
    standing = summary["errors"]["load"]
    distance = 2.0 * np.sin(0.25)  # chord of 0.5 rad
    assert standing["slacken"]["translational_error_m"] == pytest.approx(distance, abs=1e-3)
    assert standing["circle"]["translational_error_m"] == pytest.approx(distance, abs=1e-3)
    lag, why = summary["explanations"]
    assert re.search(r"circle: mean error of the load 495 mm; it is 0\.4[789] s behind", lag)
    assert "position loop" in why
    assert summarise(flight)["explanations"] == [lag]


def test_terminal_card_figure_and_table_have_one_number(flight, tmp_path):
    summary = summarise(flight)
    page = write_report(flight, summary, tmp_path).read_text()
    assert sentence(summary) in page
    for where in ("in_flight", "snap"):
        assert f"<b>{summary['tension'][where]['max_n']:.1f}<small>N</small></b>" in page
    greatest = max(c["stages"]["circle"]["max_tension_n"] for c in summary["cables"].values())
    assert greatest == summary["tension"]["snap"]["max_n"]


def test_interactive_figures_need_no_network(flight, tmp_path):
    path = write_report(flight, summarise(flight), tmp_path)
    page = path.read_text()
    assert path.stat().st_size < 5_000_000
    assert not re.search(r"(?:src|href)=.?https?:", page)
    packed = re.search(r'id="plotly-packed">([^<]*)<', page)[1]
    assert b"plotly.js" in gzip.decompress(base64.b64decode(packed))[:200]
    data = json.loads(re.search(r'id="flight-data">([^<]*)<', page)[1])
    assert set(data["bodies"]) == {"load", "drone_1"}
    panels = {panel["title"]: panel["curves"] for panel in data["panels"]}
    assert max(panels["largest tension [N]"][0]["y"]) == 20.0


def test_figures_for_paper_are_vectors_of_the_width_asked_for(flight, tmp_path):
    summary = summarise(flight)
    written = write_for_paper(
        flight, summary, tmp_path, ["pdf", "svg"], ["tensions"], 0.088, "serif"
    )
    assert [path.name for path in written] == ["tensions.pdf", "tensions.svg"]
    width = re.search(r'width="([\d.]+)pt"', written[1].read_text())[1]
    assert float(width) / 72.0 * 25.4 == pytest.approx(88.0, abs=0.1)
    assert "cable 1 [N]" in written[1].read_text()  # text stays text
    with pytest.raises(ConfigError, match="no figure 'tension': did you mean 'tensions'"):
        write_for_paper(flight, summary, tmp_path, ["pdf"], ["tension"])


# ---------- What nobody should learn from


def test_calm_flight_has_no_warnings_and_a_report_without_them(flight, tmp_path):
    assert flight_warnings(flight) == []
    summary = summarise(flight)
    assert summary["warnings"] == []
    page = write_report(flight, summary, tmp_path).read_text("utf-8")
    assert "Invalid flight" not in page


def test_set_points_that_no_drone_follows_are_told(flight):
    """A circle of 1 m radius at 1 rad/s, and at 4 rad/s, beyond 45 degrees."""
    time_s, asked = flight.time_s, flight.setpoints["load"]

    def warnings(rate_rad_s, **parameters):
        def place(at):
            flat = [np.cos(rate_rad_s * at), np.sin(rate_rad_s * at)]
            return np.column_stack([*flat, flight.bodies["load"].position_enu_m[:, 2]])

        wanted = replace(asked, position_enu_m=place(time_s))
        return flight_warnings(replace(flight, setpoints={"load": wanted}), parameters)

    assert warnings(1.0) == []
    (fast,) = warnings(4.0)
    assert fast.startswith("the set-point of load asks for 5")
    assert warnings(4.0, MPC_TILTMAX_AIR=70.0) == []


def test_a_load_that_is_turned_away_is_told(flight):
    turn = np.tile([0.6, 0.0, 0.0, 0.8], (900, 1))  # 106 degrees about the vertical
    load = replace(flight.bodies["load"], orientation_wxyz=turn)
    bodies = {**flight.bodies, "load": load, "drone_2": flight.bodies["drone_1"]}
    (line,) = flight_warnings(replace(flight, bodies=bodies))
    assert line.endswith("the load is turned by 106 degrees from them in circle")


def test_a_drone_that_the_scenario_loses_may_fall_and_jerk(flight):
    peaks = np.full((900, 2), 6.0)
    peaks[410, 0] = 90.0  # 0.2 s after the event
    falls = RecordedEvent(8.5, "collision", "drone_1 and ground at 5.0 m/s")
    bad = with_peaks(replace(flight, events=[falls]), peaks)
    assert len(flight_warnings(bad)) == 2
    lost = RecordedEvent(8.0, "drone_lost", "drone_1: all motors stopped")
    assert flight_warnings(replace(bad, events=[lost, falls])) == []


def test_a_train_of_jerks_is_one_snap_and_a_bounce_no_landing(flight):
    """Cable 1 is slack until 8 s; the load leaves the ground at 3 s and touches it again soon."""
    peaks = np.full((900, 2), 6.0)
    peaks[420, 0] = 25.0
    load = flight.bodies["load"]
    place = load.position_enu_m.copy()
    place[(flight.time_s > 3.5) & (flight.time_s < 3.6), 2] = 0.05
    merged = (STAGES[0], RecordedStage("engage", 2.0, 18.0))
    bounced = replace(flight, bodies={"load": replace(load, position_enu_m=place)}, stages=merged)
    peaks[180, 0] = 30.0
    found = named_peaks(with_peaks(bounced, peaks), 0.5)
    largest = {where: peak["max_n"] for where, peak in found.items()}
    assert largest == {"in_flight": 30.0, "snap": 25.0, "take_up": 6.0, "touch_down": 6.0}


def test_warnings_name_what_was_wrong_and_when(flight, tmp_path):
    time_s = flight.time_s
    load, drone = flight.bodies["load"], flight.bodies["drone_1"]
    place, turn = load.position_enu_m.copy(), drone.orientation_wxyz.copy()
    place[(time_s >= 6.0) & (time_s < 9.0), 2] = 0.05
    turn[(time_s >= 12.0) & (time_s < 12.1)] = [0.6, 0.8, 0.0, 0.0]  # 106 degrees about x
    bad = replace(
        flight,
        bodies={
            "load": replace(load, position_enu_m=place),
            "drone_1": replace(drone, orientation_wxyz=turn),
        },
        events=[
            RecordedEvent(7.0, "collision", "drone_1 and ground at 2.0 m/s"),
            RecordedEvent(7.5, "collision", "drone_1 and cable_2"),
            RecordedEvent(8.0, "rotors_overlap", "rotor discs of drones 1 and 2 overlap"),
        ],
    )
    peaks = np.full((900, 2), 6.0)
    peaks[500, 1] = 90.0
    bad = with_peaks(bad, peaks)
    expected = [
        "collision at 7.0 s: drone_1 and ground at 2.0 m/s (and 1 more)",
        "rotor discs of drones 1 and 2 overlap at 8.0 s",
        "drone_1 tilted by more than 90 degrees at 12.0 s",
        "the load is on the ground at 6.0 s, in circle",
        "cable_2 is pulled with 90 N at 10.0 s; all cables together carry 12.0 N",
    ]
    assert flight_warnings(bad) == expected
    summary = summarise(bad)
    assert summary["warnings"] == expected
    page = write_report(bad, summary, tmp_path).read_text("utf-8")
    assert all(f"Invalid flight: {line}" in page for line in expected)


@pytest.mark.parametrize("rate_1_s", [0.0, 0.5])
def test_a_swing_that_lasts_or_grows_is_named(rate_1_s):
    time_s = np.arange(0.0, 10.0, 0.02)
    swing_m = (
        (0.01 if rate_1_s else 0.04)
        * np.exp(rate_1_s * time_s)
        * np.sin(2.0 * np.pi * 0.6 * time_s)
    )
    load = track(time_s, np.column_stack([swing_m, 0.0 * time_s, 1.0 + 0.0 * time_s]))
    wanted = track(time_s, np.tile([0.0, 0.0, 1.0], (len(time_s), 1)))
    run = Recording({"load": load}, {"load": wanted}, stages=[RecordedStage("hold", 0.0, 10.0)])
    (found,) = summarise(run)["oscillations"]
    assert found["frequency_hz"] == pytest.approx(0.6, abs=0.01)
    assert found["grows"] == (rate_1_s > 0.0)
    told = dict(facts(summarise(run)))["the load oscillates in hold"]
    assert told.endswith("grows" if rate_1_s else "does not die out")
