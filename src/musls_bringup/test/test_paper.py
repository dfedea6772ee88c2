"""`musls paper`: every row can be flown, numbers stand beside the paper's."""

import json

import pytest

from musls_bringup.cli import main
from musls_bringup.paper import PAPERS, load_paper
from musls_bringup.shipped import find_scenario, names_in
from musls_description.errors import ConfigError


@pytest.mark.parametrize("name", names_in(PAPERS))
def test_all_rows_can_be_flown_and_are_different_numbers(name):
    paper = load_paper(name)
    rows = [row for group in paper.groups for row in group.rows]
    found = [(row.command, row.value, row.check) for row in rows]
    for row in rows:
        scenario = find_scenario(row.scenario, row.overrides)
        stages = {stage.kind for stage in scenario.mission.stages}
        assert not row.value or not row.value.stage or row.value.stage in stages
    assert len({str(one) for one in found}) == len(rows)


def test_delivery_quadcopter_as_its_paper_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["paper", "002", "--out", "p"]) == 0
    rows = json.loads((tmp_path / "p" / "summary.json").read_text())["rows"]
    assert [row["ours"] / row["paper"] for row in rows] == pytest.approx([1, 1, 1], abs=0.05)
    page = (tmp_path / "p" / "report.html").read_text()
    said = capsys.readouterr().out
    for row in rows:
        assert row["what"] in page and row["what"] in said


@pytest.mark.slow
def test_flight_of_a_paper_of_ones_own(tmp_path, monkeypatch):
    """The load hangs still: its height is the set-point's, and its error is none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(
        "title: Mine\nsource: me\ngroups:\n- title: Table 1\n  unit: m\n  scenario: hold\n"
        "  set: {cable_model: massless, mission.stages.0.duration_s: 1}\n  rows:\n"
        "  - {what: height, paper: 1, value: {signal: load.z_m, stage: hold, reduce: mean}}\n"
        "  - {what: nothing, paper: 1, value: {signal: load.z_m, stage: circle}}\n"
    )
    assert main(["paper", "own.yaml", "--out", "p"]) == 0
    height, nothing = json.loads((tmp_path / "p" / "summary.json").read_text())["rows"]
    assert height["ours"] == pytest.approx(1.0, abs=0.02) and nothing["ours"] is None
    assert (tmp_path / "p" / "flights" / "01_hold" / "bag").is_dir()


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


@pytest.mark.parametrize("groups", ["[x]", "{a: b}", "[{title: t, rows: y}]", "[{rows: [z]}]"])
def test_a_file_of_the_wrong_shape_is_one_line(tmp_path, groups):
    path = tmp_path / "p.yaml"
    path.write_text(f"title: a\nsource: b\ngroups: {groups}\n")
    with pytest.raises(ConfigError, match=r"p\.yaml: groups"):
        load_paper(str(path))
