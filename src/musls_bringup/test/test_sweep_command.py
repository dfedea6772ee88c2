"""`musls sweep`: shipped sweeps, a small real one, errors in one line."""

import csv
import json

import numpy as np
import pytest
from fly_helpers import ENDS

import musls
from musls_analysis.comparison.summary import numbers_by_path
from musls_analysis.sweep.montecarlo import study_of
from musls_analysis.sweep.plan import Names, load_sweep, make_plan, wrong_column, wrong_path
from musls_analysis.sweep.store import usual_metrics
from musls_bringup.catalogue.shipped import (
    SCENARIOS,
    SWEEPS,
    names_in,
    sweep_path,
    sweep_scenario_path,
)
from musls_bringup.cli import main
from musls_bringup.flight.fly import fly_run
from musls_description.config.schema import to_data
from musls_sim.scenario.scenario import load_scenario

SMALL = """
scenario: hold
set: {start: air, mission.stages.0.duration_s: 1.0, recording.shape_rate_hz: 10}
parameters: {system.cables.links: [2, 3]}
metrics: [{name: low_m, signal: load.z_m, stage: hold, reduce: min}]
figures: [{kind: overlay, stage: hold, signals: [load.z_m]}]
"""


@pytest.mark.parametrize("name", names_in(SWEEPS))
def test_shipped_sweeps_are_sound(name):
    path = sweep_path(name)
    sweep = load_sweep(path)
    assert sweep.name == name and sweep.description
    plan = make_plan(sweep, sweep_scenario_path(sweep.scenario, path))
    assert plan.runs and not plan.duplicates


def test_a_small_sweep_flies_and_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    assert main(["sweep", "small.yaml", "--workers", "1"]) == 0
    folder = tmp_path / "runs" / "sweep_small"
    with (folder / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["finished"] * 2
    assert all(0.0 < float(row["low_m"]) < 3.0 for row in rows)
    assert all(float(row["errors.load.hold.translational_error_m"]) < 0.5 for row in rows)
    assert (folder / "figures" / "overlay_hold.png").is_file()
    assert not (folder / "flights").exists()
    capsys.readouterr()

    (series,) = (folder / "series").glob(f"{rows[0]['id']}.npz")
    series.write_bytes(b"PK" + series.read_bytes()[:90])
    (folder / "runs" / f"{rows[1]['id']}.json").write_text('{"id": 1}')
    assert main(["sweep", "small.yaml", "--resume", "--workers", "1"]) == 0
    warned = capsys.readouterr().err
    for file in (f"series/{rows[0]['id']}.npz", f"runs/{rows[1]['id']}.json"):
        assert f"{file} is damaged: this run is made again" in warned
    before = {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()}
    assert main(["sweep", "small.yaml"]) == 2
    assert "--resume continues it" in capsys.readouterr().err
    assert main(["sweep", "small.yaml", "--resume"]) == 0
    said = capsys.readouterr().out
    assert "2 runs finished (2 from before), 0 failed" in said and "[mm]" in said
    assert {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()} == before


def test_a_run_without_a_bag_has_the_figures_of_one_with_it(tmp_path):
    settings = ["cable_model=massless", "mission.stages.0.duration_s=0.2"]
    scenario = load_scenario(SCENARIOS / "hold.yaml", settings)
    (flown, summary), (read, kept) = fly_run(scenario), fly_run(scenario, tmp_path / "flight")
    for key in ("wall_time_s", "compile_s", "real_time_factor", "loop_step_us", "plant_step_us"):
        assert summary.pop(key) >= 0.0 and kept.pop(key) >= 0.0
    assert summary.pop("check") is None and kept.pop("check")["can_be_flown"]
    assert kept.pop("entanglement")["crossings"] == []  # cables' shapes are in bags alone
    assert summary == kept and summary["errors"] and summary["separation"]
    for body, track in read.bodies.items():
        np.testing.assert_array_equal(track.position_enu_m, flown.bodies[body].position_enu_m)


@pytest.mark.parametrize("keep", [pytest.param("bag", marks=pytest.mark.slow), "summary"])
def test_a_run_that_is_cut_does_not_count(tmp_path, monkeypatch, capsys, keep):
    """A worker gets SIGTERM in its run: no number of it, and --resume makes it again."""
    monkeypatch.chdir(tmp_path)
    begin = "os.path.exists('.once') or (open('.once', 'w'), os.kill(os.getpid(), signal.SIGTERM))"
    (tmp_path / "own.py").write_text(ENDS.format(kind=f"ends_{keep}", begin=begin))
    (tmp_path / "cut.yaml").write_text(
        f"scenario: hold\nkeep: {keep}\nset: {{start: air, cable_model: massless, "
        "mission.stages.0.duration_s: 0.2, extensions: [own.py], "
        f"events: [{{kind: ends_{keep}, when: {{time_s: 0.1}}}}]}}\n"
        "parameters: {system.load.mass_kg: [0.5]}\n"
    )
    assert main(["sweep", "cut.yaml", "--workers", "1"]) == 2
    assert "was ended by a signal; --resume makes this run again" in capsys.readouterr().err
    folder = tmp_path / "runs" / "sweep_cut"
    assert not list((folder / "runs").iterdir())
    if keep == "bag":
        (flown,) = (folder / "flights").glob("*/summary.json")
        assert json.loads(flown.read_text())["interrupted"] is True
    assert main(["sweep", "cut.yaml", "--workers", "1", "--resume"]) == 0
    (record,) = (folder / "runs").iterdir()
    assert json.loads(record.read_text())["status"] == "finished"


@pytest.mark.slow
def test_kept_bags_are_ordinary_results_and_failed_runs_give_exit_code_1(tmp_path, capsys):
    path = tmp_path / "heavy.yaml"
    path.write_text(
        "scenario: hold\nkeep: bag\nset: {start: air, mission.stages.0.duration_s: 0.5}\n"
        "parameters: {system.load.mass_kg: [1.0, 50.0]}\n"
    )
    assert main(["sweep", str(path), "--out", str(tmp_path / "out"), "--workers", "1"]) == 1
    captured = capsys.readouterr()
    assert "the rotors cannot lift the load" in captured.err
    assert "1 runs finished, 1 failed" in captured.out
    (flown,) = (tmp_path / "out" / "flights").iterdir()
    assert {"bag", "scenario.yaml", "summary.json"} <= {p.name for p in flown.iterdir()}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], ["which sweep?", "joint_damping", "run_speed"]),
        (["joint_dampin"], ["'joint_dampin'", "did you mean 'joint_damping'"]),
        (["none.yaml"], ["none.yaml", "no such file"]),
        (["bad.yaml"], ["linkz", "links"]),
        (["lost.yaml"], ["'enage'", "'engage'"]),
        (["run_speed", "--workers", "2", "--scheduler", "tcp://a:1"], ["exclude each other"]),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, args, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("scenario: hold\nparameters: {system.cables.linkz: [2]}\n")
    (tmp_path / "lost.yaml").write_text("scenario: enage\nparameters: {seed: [2]}\n")
    assert main(["sweep", *args]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith("musls: error: "), err
    assert all(word in err for word in words), err
    assert not (tmp_path / "runs").exists()


def test_every_number_of_a_flight_may_be_named_before_it():
    """No path of a real summary and no column of its table is refused; stages come twice."""
    line = {"kind": "line", "start_m": [0, 0, 1], "end_m": [1, 0, 1], "speed_m_s": 2}
    stages = [{**line, "repetitions": 1}] * 2
    scenario = musls.load_scenario(
        {"system": "x500_duo", "cable_model": "massless", "start": "air",
         "mission": {"stages": stages, "settle_s": 0.5}}
    )  # fmt: skip
    _, summary = fly_run(scenario)
    names = Names.of(to_data(scenario))
    parts = ("errors", "cables", "tension", "separation", "batteries")
    paths = [path for path, _ in numbers_by_path(summary) if path.split(".")[0] in parts]
    whole = [path for path in paths if not path.startswith("separation.pair")]
    assert len(whole) > 60 and any(".line_2." in path for path in whole)
    assert [path for path in whole if wrong_path(path, names)] == []
    sweep = study_of("study", "hold", None, 2, 0)
    columns = [name for name in usual_metrics(summary) if name not in ("warnings", "invalid")]
    assert [column for column in columns if wrong_column(column, sweep, names)] == []


SPREAD = """
set: {start: air, cable_model: massless, mission.stages.0.duration_s: 0.5}
parameters: {system.load.mass_kg: {mean: 1.6, std: 0.1}}
"""


def test_a_small_study_flies_and_its_worst_world_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spread.yaml").write_text(SPREAD)
    command = ["montecarlo", "hold", "--vary", "spread.yaml", "--worlds", "6"]
    assert main([*command, "--worst", "1", "--workers", "1"]) == 0
    assert "6 worlds flown, 0 failed" in " ".join(capsys.readouterr().out.split())
    folder = tmp_path / "runs" / "montecarlo_hold"
    rows, statistics = (
        list(csv.DictReader((folder / f"{name}.csv").read_text().splitlines()))
        for name in ("table", "statistics")
    )
    assert len({row["seed"] for row in rows}) == len({row["system.load.mass_kg"] for row in rows})
    found = {row["figure"]: row for row in statistics}
    column = "errors.load.hold.translational_error_max_m"
    largest = max(rows, key=lambda row: float(row[column]))
    (again,) = (folder / "worst").iterdir()
    assert again.name == f"1_{largest['id']}" and (again / "report.html").is_file()
    flown = json.loads((again / "summary.json").read_text())["errors"]["load"]["hold"]
    assert flown["translational_error_max_m"] == float(found[column]["largest"])
    assert (folder / "figures" / "fan.png").is_file()
    assert main([*command, "--resume", "--worst", "0"]) == 0
    assert main([*command, "--by", "miss", "--resume", "--worst", "1"]) == 2
    assert main(["montecarlo", "hold", "--worlds", "1"]) == 2
    assert "worlds = 1: must be at least 2" in capsys.readouterr().err
