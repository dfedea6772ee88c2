"""The largest tensions have names, the load's error has a reason, and the page needs no network."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from musls_analysis.figures.flight import write_for_paper
from musls_analysis.figures.style import Paper
from musls_analysis.recordings.recording import CableTrack, PoseTrack, Recording, Stage
from musls_analysis.report.report import write_report
from musls_analysis.report.summary import named_peaks, sentence, summarise
from musls_description.errors import ConfigError

STAGES = (
    Stage("spool_up", 0.0, 2.0),
    Stage("lift", 2.0, 4.0),
    Stage("circle", 4.0, 14.0),
    Stage("lower", 14.0, 16.0),
    Stage("slacken", 16.0, 18.0),
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


def test_every_sort_of_peak_is_found_between_the_samples(flight):
    t = (np.arange(900) + 0.5) * 0.02
    peaks = np.full((900, 2), 0.1)
    for at_s, cable, tension in ((3.5, 0, 9.0), (6.0, 1, 6.5), (8.1, 0, 25.0), (15.0, 1, 61.2)):
        peaks[np.argmin(abs(t - at_s)), cable] = tension
    found = named_peaks(flight, 0.5, (t, peaks))
    assert {where: (p["max_n"], p["cable"]) for where, p in found.items()} == {
        "in_flight": (6.5, "cable_2"),
        "snap": (25.0, "cable_1"),
        "take_up": (9.0, "cable_1"),
        "touch_down": (61.2, "cable_2"),
    }
    assert sentence(found).startswith("6.5 N in flight (circle), 25.0 N at snaps (circle)")


def test_a_load_set_down_within_a_stage_touches_down(flight):
    merged = replace(flight, stages=(STAGES[0], Stage("engage", 2.0, 18.0)))
    t = (np.arange(900) + 0.5) * 0.02
    peaks = np.full((900, 2), 0.1)
    peaks[np.argmin(abs(t - 15.05)), 0] = 31.7
    assert named_peaks(merged, 0.5, (t, peaks))["touch_down"]["max_n"] == 31.7


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
    assert sentence(summary["tension"]) in page
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
    assert max(data["panels"][-1]["curves"][0]["y"]) == 20.0


def test_figures_for_paper_are_vectors_of_the_width_asked_for(flight, tmp_path):
    summary = summarise(flight)
    paper = Paper(width_m=0.088, font="serif")
    written = write_for_paper(flight, summary, tmp_path, ["pdf", "svg"], ["tensions"], paper)
    assert [path.name for path in written] == ["tensions.pdf", "tensions.svg"]
    width = re.search(r'width="([\d.]+)pt"', written[1].read_text())[1]
    assert float(width) / 72.0 * 25.4 == pytest.approx(88.0, abs=0.1)
    assert "cable 1 [N]" in written[1].read_text()  # text stays text
    with pytest.raises(ConfigError, match="no figure 'tension': did you mean 'tensions'"):
        write_for_paper(flight, summary, tmp_path, ["pdf"], ["tension"])
