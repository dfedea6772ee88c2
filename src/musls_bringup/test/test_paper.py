"""`musls paper`: every row can be flown, numbers stand beside the paper's."""

import json
from itertools import starmap

import numpy as np
import pytest
from fly_helpers import ENDS

import musls
from musls_analysis.comparison.quantities import QUANTITIES, values_of
from musls_bringup.catalogue.shipped import find_scenario, names_in
from musls_bringup.cli import main
from musls_bringup.papers.paper import (
    PAPERS,
    PaperFigure,
    Result,
    draw,
    drawn_figure,
    load_paper,
)
from musls_description.config.errors import ConfigError
from musls_description.config.schema import build
from musls_sim.scenario.scenario import as_override


@pytest.mark.parametrize("name", names_in(PAPERS))
def test_all_rows_can_be_flown_and_are_different_numbers(name):
    paper = load_paper(name)
    rows = [row for group in paper.groups for row in group.rows]
    found = [(row.wanted, row.value, row.check) for row in rows]
    for row in rows:
        scenario = find_scenario(row.scenario, list(row.wanted.overrides))
        stages = {stage.kind for stage in scenario.mission.stages}
        assert not row.value or not row.value.stage or row.value.stage in stages
    assert len({str(one) for one in found}) == len(rows)
    for figure in paper.figures:
        for source, keys in figure.flights.values():
            scenario = find_scenario(source, list(starmap(as_override, keys.items())))
            names = {stage.kind for stage in scenario.mission.stages}
            assert figure.stage is None or figure.stage in names
        kinds = {s.partition(".")[2] for panel in figure.panels for s in panel.signals}
        assert kinds <= set(QUANTITIES)
    assert paper.figures


def test_our_pace_over_that_of_a_simulator_held_to_real_time_is_no_ratio():
    (group,) = load_paper("000").groups
    assert {Result(group.title, row, 28.4).ratio for row in group.rows} == {None}
    (row, *_) = load_paper("002").groups[0].rows
    assert Result("Table 8", row, 2.0 * row.paper).ratio == pytest.approx(2.0)


@pytest.mark.slow
def test_delivery_quadcopter_as_its_paper_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["paper", "002", "--out", "p"]) == 0
    rows = json.loads((tmp_path / "p" / "summary.json").read_text())["rows"]
    assert [row["ours"] / row["paper"] for row in rows] == pytest.approx([1, 1, 1], abs=0.05)
    page = (tmp_path / "p" / "report.html").read_text()
    said = capsys.readouterr().out
    for row in rows:
        assert row["what"] in page and row["what"] in said


def test_a_figure_shows_the_signals_of_its_flights(tmp_path):
    """Drawn against another body, over the time of a stage, with the paper's points."""
    keys = {"cable_model": "massless", "mission.stages.0.duration_s": 0.5, "mission.settle_s": 0.1}
    run = musls.fly(musls.load_scenario("hold", {**keys, "start": "air"}))
    panels = [
        {"label": "z [m]", "signals": ["load.z_m"], "paper": {"level": 1.0}},
        {"label": "down", "signals": ["drone_1.z_m"], "against": "load"},
        {"label": "force", "signals": ["cable_1.tension_n"], "paper": {"points": [[0.1, 5.0]]}},
        {"label": "v", "signals": ["load.vz_m_s", "drone_2.speed_rpm"], "from_start": True},
    ]
    data = {"title": "Fig. 1", "scenario": "hold", "stage": "hold", "from_s": 0, "panels": panels}
    figure = build(PaperFigure, data, "paper")
    drawn = drawn_figure(figure, {"": run})
    z, down, force, _ = drawn.axes
    asked = {line.get_label(): line for line in z.lines}
    assert {"load z [m]", "set-point", "paper: level"} == set(asked)
    time_s, height, _ = values_of(run, "load.z_m")
    begin_s = next(stage.start_s for stage in run.stages if stage.name == "hold")
    shown = time_s >= begin_s
    np.testing.assert_allclose(asked["load z [m]"].get_ydata(), height[shown])
    np.testing.assert_allclose(asked["load z [m]"].get_xdata(), time_s[shown] - begin_s)
    assert max(abs(down.lines[0].get_ydata())) < 0.05
    assert force.lines[1].get_ydata() == [5.0]
    assert draw(figure, {"": run}).startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"no signal 'load\.q_m' in this flight"):
        values_of(run, "load.q_m")


@pytest.mark.slow
def test_flight_of_a_paper_of_ones_own(tmp_path, monkeypatch):
    """The load hangs still: its height is the set-point's, and its error is none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(
        "title: Mine\nsource: me\ngroups:\n- title: Table 1\n  unit: m\n  scenario: hold\n"
        "  set: {cable_model: massless, mission.stages.0.duration_s: 1}\n  rows:\n"
        "  - {what: height, paper: 1, value: {signal: load.z_m, stage: hold, reduce: mean}}\n"
        "  - {what: nothing, paper: 1, value: {signal: load.z_m, stage: circle}}\n"
        "figures:\n- title: Fig. 1\n  scenario: hold\n"
        "  set: {cable_model: massless, mission.stages.0.duration_s: 1}\n"
        "  panels: [{label: 'z [m]', signals: [load.z_m], paper: {mine: 1}}]\n"
    )
    assert main(["paper", "own.yaml", "--out", "p"]) == 0
    height, nothing = json.loads((tmp_path / "p" / "summary.json").read_text())["rows"]
    assert height["ours"] == pytest.approx(1.0, abs=0.02) and nothing["ours"] is None
    assert [f.name for f in (tmp_path / "p" / "flights").iterdir()] == ["01_hold"]
    page = (tmp_path / "p" / "report.html").read_text()
    assert page.count("<figure>") == 1 and "data:image/png;base64," in page


def test_a_flight_that_is_cut_gives_no_number(tmp_path, monkeypatch, capsys):
    """Ctrl-C in the second of three flights: the first keeps its number, what was flown is kept."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        ENDS.format(kind="ends_paper", begin="signal.raise_signal(signal.SIGINT)")
    )
    own = "{cable_model: massless, start: air, mission.stages.0.duration_s: %s, %s}"
    event = "extensions: [own.py], events: [{kind: ends_paper, when: {time_s: 0.2}}]"
    rows = "".join(
        f"  - {{what: height {k}, paper: 1, set: {own % (f'0.{k}', more)},\n"
        "     value: {signal: load.z_m, stage: hold, reduce: mean}}\n"
        for k, more in ((1, ""), (2, event), (3, ""))
    )
    (tmp_path / "own.yaml").write_text(
        f"title: Mine\nsource: me\ngroups:\n- title: Table 1\n  scenario: hold\n  rows:\n{rows}"
    )
    assert main(["paper", "own.yaml", "--out", "p"]) == 130
    captured = capsys.readouterr()
    assert "ended by SIGINT: what was flown is kept in p" in captured.err and not captured.out
    summary = json.loads((tmp_path / "p" / "summary.json").read_text())
    (row,) = summary["rows"]
    assert summary["partial"] == "ended by SIGINT after 1 of 3 flights"
    assert row["what"] == "height 1" and row["ours"] == pytest.approx(1.0, abs=0.1)
    flown = sorted((tmp_path / "p" / "flights").glob("*/summary.json"))
    assert [json.loads(file.read_text())["interrupted"] for file in flown] == [False, True]
    page = (tmp_path / "p" / "report.html").read_text()
    assert "<title>Partial: Mine" in page
    assert "partial: it was ended by SIGINT after 1 of 3 flights" in page


def test_what_is_wrong_is_told_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("title: t\nsource: s\ngroups: [{title: a, rows: [{}]}]\n")
    for words, reason in (
        (["005"], "unknown paper '005'"),
        (["004", "flights"], "FLIGHTS are for Table III of paper 000"),
        (["bad.yaml"], "bad.yaml"),
        (["000", "nowhere"], "nowhere"),
    ):
        assert main(["paper", *words, "--out", "p"]) == 2
        error = capsys.readouterr().err
        assert reason in error and len(error.splitlines()) == 1
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("text", ["", "[1, 2]", "3"])
def test_a_file_that_is_no_paper_is_one_line(tmp_path, text):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"p\.yaml: must hold a paper's title"):
        load_paper(str(path))


@pytest.mark.parametrize("groups", ["[x]", "{a: b}", "[{title: t, rows: y}]", "[{rows: [z]}]"])
def test_a_file_of_the_wrong_shape_is_one_line(tmp_path, groups):
    path = tmp_path / "p.yaml"
    path.write_text(f"title: a\nsource: b\ngroups: {groups}\n")
    with pytest.raises(ConfigError, match=r"p\.yaml.*: groups"):
        load_paper(str(path))
