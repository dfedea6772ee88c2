"""The first steps of a newcomer: templates that work as they are, flights seen beforehand."""

from __future__ import annotations

import ast
import json

import numpy as np
import pytest

import musls
from musls_bringup.before.planned import phases, planned, prepare
from musls_bringup.cli import main
from musls_bringup.cli.new import class_name
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


def test_a_system_in_the_place_of_a_scenario_is_told_and_the_other_way_round(empty, capsys):
    assert main(["new", "system", "box"]) == 0
    assert main(["new", "scenario", "first", "--system", "box.yaml"]) == 0
    capsys.readouterr()
    assert main(["fly", "box.yaml"]) == 2
    assert "a system, no scenario: musls fly hold --set system=box.yaml" in capsys.readouterr().err
    assert main(["draw", "first.yaml"]) == 2
    assert "first.yaml: a scenario, no system" in capsys.readouterr().err


def test_a_controller_without_its_class_is_told(empty, capsys):
    assert main(["fly", "circle", "--controller", "my_law.py"]) == 2
    assert "my_law.py:CLASS" in capsys.readouterr().err


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


def test_own_agents_hold_the_load_as_the_formation_does(empty):
    assert main(["new", "agent", "my_drone"]) == 0
    keys = {"kind": "agents", "agent": f"{empty}/my_drone.py:MyDrone", "knows": ["reference"]}
    short = {"mission.stages.0.duration_s": 1, "start": {"kind": "air"}, "cable_model": "massless"}
    run = musls.fly(musls.load_scenario("hold", {**short, "controller": keys}))
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


LOADS = [("box", 1), ("beam", 5), ("plate", 4), ("ring", 6), ("L", 3), ("point", 3)]


@pytest.mark.parametrize(("kind", "count"), LOADS)
def test_system_from_a_few_sizes_hangs_level(empty, capsys, kind, count):
    assert main(["new", "system", "--load", kind, "--drones", str(count), "--cable", "2"]) == 0
    assert f"musls fly hold --set system={kind}_{count}.yaml" in capsys.readouterr().out
    changes = {"system": f"{kind}_{count}.yaml", "mission.stages.0.duration_s": 0.4}
    changes |= {"system.cables.links": 2, "cable_model": "massless"}
    scenario = musls.load_scenario("hold", changes)
    assert scenario.system.n_drones == count
    run = musls.fly(scenario)
    assert max(row.translational_error_max_m for row in run.errors() if row.body == "load") < 0.03
    assert max(row.geodesic_error_max_deg for row in run.errors() if row.body == "load") < 1.5


@pytest.mark.parametrize(
    ("kind", "count", "cable", "drone"),
    [("beam", 5, 2, "x500"), ("point", 3, 2, "x500"), ("plate", 4, 0.5, "crazyflie")],
)
def test_the_scenario_of_an_own_system_can_be_flown_from_the_ground(
    empty, capsys, kind, count, cable, drone
):
    words = ["--load", kind, "--drones", str(count), "--cable", str(cable), "--drone", drone]
    assert main(["new", "system", "own", *words]) == 0
    assert main(["new", "scenario", "first", "--system", "own.yaml"]) == 0
    assert main(["check", "first.yaml"]) == 0
    said = capsys.readouterr()
    assert "can be flown" in said.out
    assert not said.err


@pytest.mark.slow
def test_five_drones_lift_a_beam_from_the_ground(empty):
    assert main(["new", "system", "--load", "beam", "--drones", "5", "--cable", "2"]) == 0
    assert main(["new", "scenario", "first", "--system", "beam_5.yaml"]) == 0
    assert main(["fly", "first.yaml", "--out", "r", "--no-report"]) == 0
    summary = json.loads((empty / "r" / "summary.json").read_text())
    assert summary["landed"]
    assert summary["errors"]["load"]["smooth_circle"]["geodesic_error_deg"] < 10.0


def test_inertia_of_ring_and_angle():
    """A hoop's axis; the two arms of an L, summed point by point."""
    from musls_bringup.new.templates import LoadKind, starting_load
    from musls_description.config.strict_yaml import parse_yaml

    def inertia(kind):
        text = "\n".join(starting_load(kind, (1.0, 0.02, 0.02), 2.0, 4).body)
        return np.array(parse_yaml(text, "load")["inertia_kg_m2"])

    assert inertia(LoadKind.ring)[2, 2] == pytest.approx(2.0 * 0.5**2)
    along = (np.arange(1000) + 0.5) / 1000.0
    arms = np.zeros((2000, 3))
    arms[:1000, 0], arms[1000:, 1] = along, along
    arms -= arms.mean(axis=0)
    points = 2.0 * (np.mean(arms**2) * 3.0 * np.eye(3) - arms.T @ arms / 2000.0)
    np.testing.assert_allclose(inertia(LoadKind.L), points, atol=2e-4)
    middle = starting_load(LoadKind.ring, (1.0, 0.02, 0.02), 2.0, 5).attachments_m.mean(axis=0)
    np.testing.assert_allclose(middle[:2], 0.0, atol=1e-12)


@pytest.mark.parametrize("rotors", [4, 6, 8])
def test_airframe_from_a_data_sheet_flies(empty, rotors):
    words = ["--rotors", str(rotors), "--mass", "3", "--wheelbase", "0.9", "--propeller", "11"]
    assert main(["new", "drone", "frame", *words, "--thrust", "14.2", "--rpm", "7000"]) == 0
    assert main(["new", "system", "mine", "--drone", "frame.yaml"]) == 0
    changes = {"system": "mine.yaml", "cable_model": "massless", "mission.stages.0.duration_s": 0.5}
    scenario = musls.load_scenario("hold", changes)
    drone = scenario.system.drones[0]
    assert drone.max_thrust_n == pytest.approx(14.2 * rotors, rel=1e-3)
    assert np.linalg.norm(np.sum([r.position_m[:2] for r in drone.rotors], axis=0)) < 1e-3
    assert sum(1 if r.spin == "ccw" else -1 for r in drone.rotors) == 0
    run = musls.fly(scenario)
    assert max(row.translational_error_max_m for row in run.errors() if row.body == "load") < 0.03


def test_palm_sized_airframe_and_load(empty):
    """Places and inertias keep their digits at any size, and the cable is tied within the drone."""
    words = ["--mass", "0.03", "--wheelbase", "0.09", "--height", "0.03", "--propeller", "1.8"]
    assert main(["new", "drone", "palm", *words, "--thrust", "0.15", "--rpm", "20000"]) == 0
    sizes = ["--length", "0.07", "--width", "0.01", "--height", "0.01", "--cable", "0.5"]
    assert main(["new", "system", "small", "--load", "L", "--drone", "palm.yaml", *sizes]) == 0
    system = musls.load_system("small.yaml")
    drone, load = system.drones[0], system.load
    feet_m = drone.collision.center_m[2] - drone.collision.size_m[2] / 2.0
    assert feet_m < drone.cable_attachment_m[2] < 0.0 < drone.rotors[0].position_m[2] < 0.03
    # Rotor drag in hover brakes by well below 1 m/s^2 per m/s, as that of large drones does.
    hover_rad_s = drone.rotors[0].speed_max_rad_s * np.sqrt(0.03 * 9.81 / 0.6)
    assert 4 * drone.rotors[0].drag_n_s2_m_rad * hover_rad_s / drone.mass_kg < 0.5
    assert np.linalg.eigvalsh(load.inertia_kg_m2)[0] > 0.0
    arm = np.array([0.035, 0.0]), np.array([0.0, 0.035])
    off = arm[0] - (arm[0] + arm[1]) / 2.0
    own = (0.07**2 + 0.01**2) / 12.0
    assert load.inertia_kg_m2[2][2] == pytest.approx(load.mass_kg * (own + off @ off), rel=1e-4)
    changes = {"system": "small.yaml", "cable_model": "massless"}
    run = musls.fly(musls.load_scenario("hold", {**changes, "mission.stages.0.duration_s": 0.5}))
    assert max(row.translational_error_max_m for row in run.errors() if row.body == "load") < 0.03


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["drone", "x", "--mass", "9"], "weighs 88.3 N"),
        (["drone", "x", "--propeller", "14"], "touch"),
        (["drone", "x", "--rotors", "5"], "4, 6 or 8"),
        (["drone", "x", "--mass", "nan"], "must be from"),
        (["system", "x", "--load", "L", "--drones", "2"], "needs 3"),
        (["system", "x", "--mass", "99"], "cannot lift 99 kg"),
        (["system", "x", "--drones", "0"], "must be from 1"),
        (["system", "x", "--length", "-2"], "--length is -2 m"),
        (["system", "x", "--drone", "nowhere.yaml"], "no such file"),
        (["system", "x", "--load", "beam", "--length", "0.2", "--cable", "0.5"], "no places"),
        (["system", "x", "--load", "cube"], "not one of"),
    ],
)
def test_what_cannot_fly_is_refused_and_not_written(empty, capsys, words, reason):
    assert main(["new", *words]) == 2
    error = capsys.readouterr().err
    assert reason in error and len(error.splitlines()) == 1
    assert not list(empty.iterdir())


def test_picture_of_a_system(empty, capsys):
    assert main(["draw", "x500_quad"]) == 0
    said = capsys.readouterr().out
    assert "thrust margin" in said and "at least 1.1 is needed" in said and "x500_quad.png" in said
    assert (empty / "x500_quad.png").stat().st_size > 10_000
    assert main(["draw", "x500_quad"]) == 2  # nothing is replaced
    assert main(["draw", "crane"]) == 2 and main(["draw", "x500_quad", "--out", "a.txt"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3
