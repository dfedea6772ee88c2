"""The first steps of a newcomer: templates that work as they are, flights seen beforehand."""

from __future__ import annotations

import ast
import json

import numpy as np
import pytest

import musls
from musls_bringup.check import phases, planned, prepare
from musls_bringup.cli import main
from musls_bringup.cli.new import TEMPLATES, class_name
from musls_control.trajectories import TRAJECTORIES


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_own_system_and_scenario(empty, capsys):
    assert main(["new", "system", "box"]) == 0
    assert main(["new", "scenario", "first", "--system", "box.yaml"]) == 0
    scenario = musls.load_scenario("first.yaml", {"seed": 3})
    assert scenario.system.name == "box"
    assert [stage.kind for stage in scenario.mission.stages] == ["line", "smooth_circle"]
    said = capsys.readouterr()
    assert main(["fly", "first.yaml", "--plan"]) == 0
    said = capsys.readouterr()
    assert "smooth circle" in said.out
    assert "nothing was flown" in said.out
    assert not said.err
    assert {path.name for path in empty.iterdir()} == {"box.yaml", "first.yaml"}


@pytest.mark.slow
def test_own_scenario_flies(empty):
    assert main(["new", "system", "box"]) == 0
    assert main(["new", "scenario", "first", "--system", "box.yaml"]) == 0
    assert main(["fly", "first.yaml", "--out", "r", "--no-report"]) == 0
    summary = json.loads((empty / "r" / "summary.json").read_text())
    assert summary["landed"]
    assert summary["errors"]["load"]["smooth_circle"]["geodesic_error_deg"] < 20.0


def test_own_controller_holds_the_load(empty):
    assert main(["new", "controller", "my_law"]) == 0
    short = {"mission.stages.0.duration_s": 1, "start": {"kind": "air"}}
    short |= {"controller.kind": "python", "controller.source": "my_law.py:MyLaw"}
    scenario = musls.load_scenario(
        "hold", {**short, "controller.source": f"{empty}/my_law.py:MyLaw"}
    )
    run = musls.fly(scenario)
    error = run.body("load").position_enu_m - [0.0, 0.0, 1.0]
    assert np.linalg.norm(error, axis=1).max() < 0.05


@pytest.mark.slow
def test_own_sweep_runs(empty):
    assert main(["new", "sweep", "study"]) == 0
    assert main(["sweep", "study.yaml", "--workers", "1"]) == 0
    rows = (empty / "runs" / "sweep_study" / "table.csv").read_text().splitlines()
    assert len(rows) == 1 + 9
    assert "sway_m" in rows[0]


def test_nothing_is_overwritten(empty, capsys):
    assert main(["new", "system", "box"]) == 0
    (empty / "box.yaml").write_text("mine")
    assert main(["new", "scenario", "box"]) == 2
    assert (empty / "box.yaml").read_text() == "mine"
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["sytem", "x"],
        ["system", ""],
        ["system", "a b"],
        ["system", "../"],
        ["system", "no/folder/x"],
        ["system", "x" * 300],
        ["system", "1st"],
        ["controller", "my-law"],
        ["scenario", "x", "--system", "nowhere.yaml"],
        ["sweep", "x", "--system", "x500_duo"],
        ["system", "é\n"],
    ],
)
def test_absurd_names_are_one_line(empty, capsys, words):
    assert main(["new", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(empty.iterdir())


def test_controller_template_is_python_with_the_class_that_is_told(empty, capsys):
    assert main(["new", "controller", "soft_law2"]) == 0
    tree = ast.parse((empty / "soft_law2.py").read_text())
    assert [n.name for n in tree.body if isinstance(n, ast.ClassDef)] == ["SoftLaw2"]
    assert "soft_law2.py:SoftLaw2" in capsys.readouterr().out
    assert class_name("a_b-c") == "ABC"
    assert set(TEMPLATES) == {"system", "scenario", "controller", "sweep"}


def test_plan_is_what_is_flown():
    scenario = musls.load_scenario("hold", {"mission.stages.0.duration_s": 0.4})
    parts = prepare(scenario)
    shown = planned(scenario, parts)
    flown = musls.fly(scenario)
    told = shown.recording.setpoints["drone_2"].held_at(flown.time_s[:20])
    real = flown.setpoints["drone_2"].held_at(flown.time_s[:20])
    np.testing.assert_array_equal(told.position_enu_m, real.position_enu_m)
    found = phases(parts.plan)
    assert [phase.name for phase in found] == ["settle", "hold"]
    assert sum(phase.duration_s for phase in found) == pytest.approx(parts.plan.duration_s)


def test_view_of_a_scenario(empty):
    assert main(["view", "hold", "--png", "1", "--out", "plan.png"]) == 0
    assert (empty / "plan.png").stat().st_size > 10_000


def test_dry_run_refuses_what_a_flight_refuses(empty, capsys):
    assert main(["fly", "circle", "--dry-run", "--set", "system.load.mass_kg=30"]) == 2
    assert "cannot lift" in capsys.readouterr().err
    assert main(["fly", "hold", "--dry-run", "--out", "somewhere"]) == 0
    assert not list(empty.iterdir())


def test_list_gives_parameters_of_every_trajectory(capsys):
    assert main(["list", "trajectories"]) == 0
    out = capsys.readouterr().out
    for name in TRAJECTORIES:
        assert f"\n{name} " in f"\n{out}"
    assert "speed_m_s" in out


def test_shell_completes_commands_options_and_scenarios(empty, monkeypatch, capsys):
    (empty / "cirrus.yaml").write_text("")

    def completed(words):
        monkeypatch.setenv("_MUSLS_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        with pytest.raises(SystemExit):
            main([])
        return capsys.readouterr().out.split()

    assert completed("musls fl") == ["fly"]
    assert completed("musls fly --dr") == ["--dry-run"]
    assert completed("musls fly cir") == [
        "circle",
        "circle_elastic",
        "circle_payload",
        "cirrus.yaml",
    ]
