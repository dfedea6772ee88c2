"""`musls fly` and `musls list` as typed: what they write, and one line for whatever is wrong."""

import errno
import json
import math
import os
import re
import subprocess
import sys

import pytest
from fly_helpers import FLY, TINY, contents, raw_messages, refused, summary_of

from musls_analysis.comparison.errors import error_table
from musls_bringup.catalogue.shipped import SCENARIOS
from musls_bringup.cli import main
from musls_bringup.flight import fly as fly_module
from musls_bringup.flight.results import ResultError, result_folder
from musls_control.trajectories import TRAJECTORIES
from musls_description.system.system_files import system_names
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

# ---------- A good flight


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    """A flight with everything it writes."""
    folder = tmp_path_factory.mktemp("flown")
    (folder / "tiny.yaml").write_text(TINY)
    status = main(
        ["fly", str(folder / "tiny.yaml"), "--out", str(folder / "new" / "result"), "--seed", "3"]
    )
    assert status == 0
    assert sorted(path.name for path in folder.iterdir()) == ["new", "tiny.yaml"]
    assert [path.name for path in (folder / "new").iterdir()] == ["result"]
    return folder / "new" / "result"


def test_a_flight_writes_all_its_results(flown):
    assert sorted(path.name for path in flown.iterdir()) == [
        "bag", "report.html", "scenario.yaml", "summary.json",
    ]  # fmt: skip
    bag = sorted(path.name for path in (flown / "bag").iterdir())
    assert bag == ["bag.mcap", "metadata.yaml"]


def test_the_summary_holds_what_is_promised(flown):
    summary = summary_of(flown)
    assert summary["scenario"] == "tiny"
    assert summary["sim_time_s"] == pytest.approx(0.6, abs=0.01)
    assert summary["wall_time_s"] > 0.0
    assert summary["real_time_factor"] == pytest.approx(
        summary["sim_time_s"] / (summary["wall_time_s"] - summary["compile_s"])
    )
    assert summary["steps"] * summary["step_size_s"] == pytest.approx(summary["sim_time_s"])
    assert 1.0 < summary["plant_step_us"] <= summary["loop_step_us"]
    assert summary["links_per_cable"] == [15, 15]
    assert summary["seed"] == 3
    assert summary["interrupted"] is False
    assert 1.1 < summary["thrust_margin"] < 2.0
    assert [stage["name"] for stage in summary["stages"]] == ["settle", "hold"]

    assert set(summary["errors"]) == {"load", "drone_1", "drone_2"}
    for body, stages in summary["errors"].items():
        assert set(stages) == {"settle", "hold"}
        for entry in stages.values():
            # It hangs where it should; the drones lean to pull the cables apart.
            assert 0.0 <= entry["translational_error_m"] < (0.1 if body == "load" else 0.02)
            assert 0.0 <= entry["geodesic_error_deg"] < 10.0
            assert entry["translational_error_m"] <= entry["translational_error_max_m"]
    assert set(summary["cables"]) == {"cable_1", "cable_2"}
    for cable in summary["cables"].values():
        # Half of 1.2 kg, a little more for the angle and the cable's own weight.
        assert 5.9 < cable["max_tension_n"] < 8.0
        assert 0.0 <= cable["slack_fraction"] < 0.05


def test_the_summary_holds_finite_numbers_only(flown):
    def numbers(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from numbers(item)
        elif isinstance(value, (int, float)):
            yield value
        else:
            assert value is None or isinstance(value, str)

    found = list(numbers(summary_of(flown)))
    assert len(found) > 50
    assert all(math.isfinite(number) for number in found)


def test_the_report_stands_alone(flown):
    html = (flown / "report.html").read_text(encoding="utf-8")
    for attribute in re.findall(r'(?:src|href)="([^"]{0,30})', html):
        assert attribute.startswith(("data:", "#")), attribute
    assert "x500_duo" in html
    assert "partial" not in html


def test_the_resolved_scenario_is_beside_the_result(flown, tmp_path):
    text = (flown / "scenario.yaml").read_text()
    scenario = load_scenario(flown / "scenario.yaml")
    assert scenario.name == "tiny" and scenario.seed == 3
    assert scenario.system.n_drones == 2
    assert "from:" not in text


def test_a_result_can_be_flown_again_from_its_own_folder(flown, here):
    assert main(["fly", str(flown), "--no-report", "--out", "again"]) == 0
    assert raw_messages(here / "again") == raw_messages(flown)
    assert (here / "again" / "scenario.yaml").read_text() == (flown / "scenario.yaml").read_text()
    again, first = summary_of(here / "again"), summary_of(flown)
    assert again["errors"] == first["errors"]
    assert again["cables"] == first["cables"]


def test_what_is_printed(here, capsys):
    assert main([*FLY, "--out", "a[b]"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert "load" in lines[0] and "drone 2" in lines[0]
    assert any(line.startswith("hold") and " mm " in line for line in lines)
    assert any(line.startswith("before the flight: thrust margin 1.") for line in lines)
    assert any("x real time" in line for line in lines)
    assert lines[-1] == "results in a[b]"


def test_without_a_report_there_is_no_page(here):
    assert main([*FLY, "--out", "x"]) == 0
    assert sorted(path.name for path in (here / "x").iterdir()) == [
        "bag", "scenario.yaml", "summary.json",
    ]  # fmt: skip


def test_by_default_results_go_to_runs(here):
    assert main(FLY) == 0
    (result,) = (here / "runs").iterdir()
    assert re.fullmatch(r"tiny_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d-\d{3}", result.name)
    assert summary_of(result)["links_per_cable"] == [5, 5]


def test_the_seed_option_wins_and_changes_the_flight(result, here):
    assert main([*FLY, "--set", "seed=4", "--seed", "1", "--out", "one"]) == 0
    assert main([*FLY, "--set", "seed=6", "--out", "six"]) == 0
    assert summary_of(here / "one")["seed"] == summary_of(result)["seed"] == 1
    assert raw_messages(here / "one") == raw_messages(result)
    assert raw_messages(here / "six") != raw_messages(result)


def test_realtime_shows_progress_at_the_pace_of_time(here, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    assert main([*FLY, "--realtime", "--out", "x"]) == 0
    assert summary_of(here / "x")["real_time_factor"] <= 1.1
    err = capsys.readouterr().err
    assert "x real time" in err and "s left" in err and "hold" in err


def test_json_is_all_that_is_printed(here, capsys):
    assert main([*FLY, "--json", "--no-report", "--out", "x"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.pop("folder") == "x"
    assert told == summary_of(here / "x")
    assert main(["compare", "x", "x", "--stage", "hold", "--json", "--out", "c"]) == 0
    assert json.loads(capsys.readouterr().out)["stages"]["hold"]
    assert main(["list", "systems", "--json"]) == 0
    assert "x500_trio" in json.loads(capsys.readouterr().out)["systems"]


def test_quiet_leaves_the_place_of_the_results(here, capsys):
    assert main([*FLY, "--quiet", "--no-report", "--out", "x"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("results in x\n", "")


@pytest.mark.slow
def test_two_processes_fly_the_same_flight(here):
    code = "import sys; from musls_bringup.cli import main; sys.exit(main(sys.argv[1:]))"
    for name, hash_seed in (("a", "1"), ("b", "2")):
        subprocess.run(
            [sys.executable, "-c", code, *FLY, "--out", name],
            check=True,
            capture_output=True,
            timeout=300,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTHONHASHSEED": hash_seed,
            },
        )
    assert raw_messages(here / "a") == raw_messages(here / "b")


# ---------- Bad input

INERTIA = "system.load.inertia_kg_m2"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["misson.settle_s=1"], ["'misson'", "'mission'"]),
        (["mission.stages.0.duraton_s=1"], ["duraton_s'", "'duration_s'"]),
        (["a=b"], ["'a'", "mission"]),
        (["a"], ["--set a", "key.path=value"]),
        (["mission.stages.kind=hld"], ["'hld'", "'hold'"]),
        (["system=x500_doo"], ["'x500_doo'", "'x500_duo'"]),
        (["system=absent.yaml"], ["absent.yaml", "no such file"]),
        (["system.load.mass_kg=-1"], ["system.load.mass_kg = -1", "greater than 0"]),
        (["system.drones.mass_kg=0"], ["system.drones.0.mass_kg = 0", "greater than 0"]),
        ([f"{INERTIA}=[[1,0,0],[0,-1,0],[0,0,1]]"], [INERTIA, "positive definite"]),
        ([f"{INERTIA}=[[1,0,0],[0,1,0],[0,0,3]]"], [INERTIA, "triangle"]),
        (["system.cables.links=0"], ["system.cables.0.links = 0", "or equal to 1"]),
        (["system.load.cable_attachments_m=[[0,0,0]]"], ["1 load.cable_attachments_m", "2 drones"]),
        (["system.cables=[]"], ["2 load.cable_attachments_m", "0 cables"]),
        (["formation.radius_m=2.9"], ["formation.radius_m = 2.9", "smaller radius"]),
        (["system.load.mass_kg=6"], ["thrust margin 0.", "--force"]),
        (["mission.stages.0.position_m=[0,0,-1]"], ["mission.stages.0", "ground"]),
        (["physics.step_size_s=0.003"], ["step_size_s = 0.003", "0.004"]),
        (["autopilot.parameters.MPC_XYP=1"], ["'MPC_XYP'", "MPC_XY_P"]),
        (["recording.rate_hz=60"], ["rate_hz", "60"]),
        (["seed=-1"], ["seed = -1"]),
    ],
    ids=lambda value: value[0].partition("=")[0] if "=" in value[0] else None,
)
def test_bad_settings_are_one_line_and_leave_nothing(here, capsys, settings, words):
    options = [word for setting in settings for word in ("--set", setting)]
    # Also with folders above that would have to be made.
    line = refused(here, capsys, *FLY, *options, "--out", "new/folder/x")
    assert all(word in line for word in words), line


def test_a_flight_that_would_never_end(here, capsys):
    refused(here, capsys, *FLY, "--set", "mission.stages.0.duration_s=1e99", "--out", "x")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["fly"], ["scenario", "musls fly --help"]),
        (["fly", "circl"], ["'circl'", "'circle'"]),
        (["fly", "Hold"], ["'Hold'", "'hold'"]),
        (["fly", "xyzzy"], ["'xyzzy'", "circle"]),
        (["fly", ""], ["circle"]),
        (["fly", "absent.yaml"], ["absent.yaml", "no such file"]),
        (["fly", "."], ["scenario.yaml", "folder"]),
        (["fly", "n" * 300], ["circle"]),
        (["fly", "tiny.yaml", "hold"], ["hold", "musls fly --help"]),
        (["fly", "tiny.yaml", "--set"], ["--set", "argument", "--help"]),
        (["fly", "tiny.yaml", "--seed", "x"], ["--seed", "integer"]),
        (["fly", "tiny.yaml", "--seed", "1.5"], ["--seed", "integer"]),
        (["fly", "tiny.yaml", "--seed", "-1"], ["seed = -1", "0"]),
        (["fly", "tiny.yaml", "--sed", "1"], ["--sed", "--seed"]),
        (["fly", "tiny.yaml", "--out"], ["--out", "argument", "--help"]),
        (["list", "system"], ["'system'", "'systems'"]),
        (["list", "xyzzy"], ["'xyzzy'", "cable-models", "scenarios", "systems", "trajectories"]),
    ],
    ids=lambda value: " ".join(value)[:30],
)
def test_a_newcomers_mistakes(here, capsys, args, words):
    line = refused(here, capsys, *args)
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["bad.yaml", "mapping"]),
        (b"- a\n", ["bad.yaml", "mapping"]),
        (b"\x85\xff\x00binary", ["bad.yaml", "cannot be read"]),
        (TINY.replace("stages:", "stages").encode(), ["bad.yaml, line 8"]),
        (TINY.replace("hold", "hold: ").encode(), ["bad.yaml, line 8"]),
        (TINY.replace("start: air", "start: [air").encode(), ["bad.yaml, line 4"]),
        ((TINY + "start: air\n").encode(), ["bad.yaml, line 9", "'start'", "twice"]),
        (TINY.replace("radius_m", "radus_m").encode(), ["bad.yaml, line 4", "'radius_m'"]),
        (TINY.replace("0.4", "-0.4").encode(), ["bad.yaml, line 8", "duration_s = -0.4"]),
        (TINY.replace("x500_duo", "x500_dou").encode(), ["'x500_dou'", "'x500_duo'"]),
    ],
)
def test_bad_files_name_the_line(here, capsys, content, words):
    (here / "bad.yaml").write_bytes(content)
    line = refused(here, capsys, "fly", "bad.yaml", "--out", "x")
    assert all(word in line for word in words), line


def test_a_folder_in_place_of_a_file(here, capsys):
    (here / "folder.yaml").mkdir()
    assert "folder.yaml" in refused(here, capsys, "fly", "folder.yaml")


def test_force_flies_a_load_that_is_too_heavy(here):
    heavy = ["--set", "system.load.mass_kg=4.5"]
    assert main([*FLY, *heavy, "--force", "--out", "x"]) == 0
    assert summary_of(here / "x")["thrust_margin"] < 1.0


def test_a_controller_that_fails_in_flight_leaves_what_was_flown(here, capsys):
    (here / "mine.py").write_text(
        "import musls\n"
        "class Mine(musls.Controller):\n"
        "    level = 'rotor_speeds'\n"
        "    def step(self, time_s, reference, estimate):\n"
        "        if time_s > 0.2:\n"
        "            raise ValueError('no more')\n"
        "        return [[700.0] * 4] * len(estimate.drones.data)\n"
    )
    assert main([*FLY, "--controller", "mine.py:Mine", "--out", "x"]) == 2
    line = capsys.readouterr().err
    assert "mine.py, line 6" in line and "no more" in line and "kept in x" in line
    summary = summary_of(here / "x")
    assert "no more" in summary["failure"] and summary["sim_time_s"] == pytest.approx(0.204)
    last = max(time_ns for _, time_ns, _ in raw_messages(here / "x"))
    assert last == pytest.approx(0.2e9, abs=0.021e9)


DIVERGING = [
    "fly", "hold", "--no-report", "--set", "cable_model=massless",
    "--set", "events=[{kind: poke, when: {time_s: 0.05}, force_enu_n: [1e7, 0, 0], duration_s: 1}]",
]  # fmt: skip


def test_a_diverged_simulation_is_one_line_and_keeps_what_was_flown(here, capsys):
    assert main([*DIVERGING, "--out", "new/x"]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "simulation diverged at 0.0" in error
    assert "what was flown is kept in new/x" in error
    assert "diverged" in summary_of(here / "new" / "x")["failure"]


FAST = "velocity_enu_m_s: [150, 0, 0]"
DIVERGES = [
    *FLY, "--set",
    f"start={{kind: state, load: {{position_enu_m: [0, 0, 1], {FAST}}}, drones: ["
    f"{{position_enu_m: [1, 0, 3.3], orientation_wxyz: [0, 0, 0, 1], {FAST}}}, "
    f"{{position_enu_m: [-1, 0, 3.3], {FAST}}}]}}",
]  # fmt: skip
"""Faster than anything that the simulator takes for physical."""


def test_a_diverged_simulation_is_one_line_and_leaves_nothing(here, capsys):
    line = refused(here, capsys, *DIVERGES, "--out", "new/x")
    assert "simulation diverged at 0.0" in line and "cable_model: elastic" in line


# ---------- Where it goes


def test_a_folder_that_exists_is_refused(result, here, capsys):
    capsys.readouterr()
    line = refused(here, capsys, *FLY, "--out", "old")
    assert "old exists" in line and "--overwrite" in line


def test_overwrite_replaces_a_result(result):
    assert main([*FLY, "--out", "old", "--seed", "2", "--overwrite"]) == 0
    assert summary_of(result)["seed"] == 2
    assert sorted(path.name for path in result.iterdir()) == [
        "bag", "scenario.yaml", "summary.json",
    ]  # fmt: skip
    assert [path.name for path in result.parent.iterdir() if path.name.startswith(".")] == []


def test_overwrite_makes_a_new_folder_too(here):
    assert main([*FLY, "--out", "new", "--overwrite"]) == 0
    assert summary_of(here / "new")


def test_a_result_may_be_flown_again_in_its_place(result):
    assert main(["fly", "old", "--no-report", "--out", "old", "--overwrite"]) == 0
    assert summary_of(result)["seed"] == 1


def test_overwrite_from_within_the_folder(result, monkeypatch):
    monkeypatch.chdir(result)
    again = ["fly", "scenario.yaml", "--no-report", "--out", ".", "--overwrite"]
    assert main([*again, "--seed", "2"]) == 0
    assert summary_of(result)["seed"] == 2


def test_overwrite_through_a_link_replaces_what_it_points_to(result, here):
    (here / "link").symlink_to("old")
    assert main([*FLY, "--out", "link", "--seed", "2", "--overwrite"]) == 0
    assert summary_of(result)["seed"] == 2
    assert (here / "link").is_symlink()


def test_a_flight_that_fails_leaves_the_older_result(result, here, capsys):
    capsys.readouterr()
    assert "diverged" in refused(here, capsys, *DIVERGES, "--out", "old", "--overwrite")


def test_overwrite_touches_nothing_but_results(here, capsys):
    (here / "thesis").mkdir()
    (here / "thesis" / "chapter_1.tex").write_text("years of work")
    (here / "file").write_text("a file")
    (here / "empty").mkdir()
    (here / "nowhere").symlink_to("absent")
    for out in ("thesis", "file", "empty", "nowhere", ".", ".."):
        line = refused(here, capsys, *FLY, "--out", out)
        assert "exists" in line
        line = refused(here, capsys, *FLY, "--out", out, "--overwrite")
        assert "not a result of musls" in line, out


@pytest.mark.parametrize("out", ["tiny.yaml/x", "tiny.yaml/x/y", "/proc/x", "n" * 300])
def test_a_folder_that_cannot_be_made(here, capsys, out):
    """Root may write anywhere: a file in the place of a folder stands for one that may not."""
    assert out.split("/")[-1][:40] in refused(here, capsys, *FLY, "--out", out)


def test_a_bug_keeps_its_traceback_and_the_flight(here, monkeypatch):
    def broken(*args, **options):
        raise ZeroDivisionError

    monkeypatch.setattr(fly_module, "summarise", broken)
    with pytest.raises(ZeroDivisionError):
        main([*FLY, "--out", "new/x"])
    assert raw_messages(here / "new" / "x")


def test_result_folder_keeps_other_files_of_the_parents_it_made(tmp_path):
    with pytest.raises(ResultError), result_folder(tmp_path / "a" / "b" / "x", overwrite=False):
        (tmp_path / "a" / "other.txt").write_text("of somebody else")
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    assert contents(tmp_path) == {"a": False, "a/other.txt": b"of somebody else"}


# ---------- Lists


def listed(capsys, kind):
    assert main(["list", kind]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    rows = [line.split(maxsplit=1) for line in lines if not line.startswith(" ")]  # no parameters
    assert all(len(row) == 2 for row in rows), "each has a description"
    return [name for name, _ in rows]


def test_lists_name_what_is_shipped(capsys):
    assert listed(capsys, "systems") == system_names()
    assert listed(capsys, "scenarios") == sorted(path.stem for path in SCENARIOS.glob("*.yaml"))
    assert listed(capsys, "trajectories") == list(TRAJECTORIES)
    assert "rigid_links" in listed(capsys, "cable-models")


def test_a_list_of_nothing_in_particular_lists_everything(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for kind, name in [("systems", "x500_trio"), ("scenarios", "circle"), ("trajectories", "line")]:
        begin = lines.index(f"{kind}:")
        assert any(line.split()[0] == name for line in lines[begin + 1 :])


def test_what_is_listed_can_be_used(capsys):
    for name in listed(capsys, "scenarios"):
        assert load_scenario(SCENARIOS / f"{name}.yaml").name == name


def test_errors_of_headings_are_of_those_that_the_controller_flies():
    """RotorTM's law keeps the headings of the start; the formation's face the load."""
    scenario = load_scenario(SCENARIOS / "rotortm_poke.yaml", ["mission.stages.0.duration_s=0.5"])
    flown = fly_module.fly_in_memory(Session(scenario), shapes=False)
    errors = error_table(flown).by_body()
    assert len(errors) == 4
    assert all(e["hold"]["geodesic_error_deg"] < 15.0 for e in errors.values()), errors
