"""`musls fly --autopilot px4` as typed, with the scripted peer in PX4's place."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import yaml
from px4_helpers import install_peer

from musls_bringup.cli import main
from musls_sim.px4 import sitl

SHORT = """\
description: a test
system: x500_solo
formation: {radius_m: 0.0, height_m: 2.05}
mission:
  take_off_s: 3
  form_up_s: 2
  settle_s: 0.3
  vertical_speed_m_s: 1.0
  landing_speed_m_s: 0.8
  stages:
    - {kind: hold, duration_s: 0.5, position_m: [0, 0, 0.3]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PX4_BIN", str(install_peer(tmp_path / "px4")))
    monkeypatch.setattr(sitl, "ALIGN_S", 1.5)  # the peer needs less than PX4
    monkeypatch.setattr(sitl, "OFFSET_S", 0.5)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.yaml").write_text(SHORT)
    return tmp_path


FLY = ["fly", "short.yaml", "--no-report", "--autopilot", "px4", "--out", "out"]


def test_a_flight_has_the_same_outputs_and_px4s_console(folder):
    older = folder / "out.px4-logs"  # of a flight that failed with more drones
    older.mkdir()
    (older / "drone_2.log").write_text("ERROR")
    assert main(FLY) == 0
    out = folder / "out"
    assert {p.name for p in out.iterdir()} == {"bag", "scenario.yaml", "summary.json", "px4"}
    assert [p.name for p in (out / "px4").iterdir()] == ["drone_1.log"]
    assert yaml.safe_load((out / "scenario.yaml").read_text())["autopilot"]["kind"] == "px4"
    assert json.loads((out / "summary.json").read_text())["landed"] is True
    assert not older.exists()


def test_a_failed_flight_leaves_only_the_console_that_its_error_names(folder, monkeypatch, capsys):
    monkeypatch.setenv("MUSLS_PEER", "die:100")
    assert main(FLY) == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    assert "stack smashed" in error and str(folder / "out.px4-logs" / "drone_1.log") in error
    assert {p.name for p in folder.iterdir()} == {"px4", "short.yaml", "out.px4-logs"}


def test_a_parameter_that_px4_does_not_know(folder, capsys):
    assert main([*FLY, "--set", "autopilot.parameters.NO_SUCH_THING=3"]) == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    assert "autopilot.parameters.NO_SUCH_THING: PX4 unknown (" in error
    assert {p.name for p in folder.iterdir()} == {"px4", "short.yaml"}


def test_without_px4_one_line_says_how_to_get_it(folder, monkeypatch, capsys):
    monkeypatch.setenv("PX4_BIN", str(folder / "nowhere"))
    assert main(FLY) == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    assert "PX4_BIN" in error and "px4io/px4-sitl" in error
    assert {p.name for p in folder.iterdir()} == {"px4", "short.yaml"}


COMMAND = [
    *(sys.executable, "-c"),
    "import sys; from musls_bringup.cli import main; from musls_sim.px4 import sitl;"
    "sitl.ALIGN_S, sitl.OFFSET_S = 1.5, 0.5; sys.exit(main())",
]
"""`musls` as a process of its own."""


def start(folder, *words):
    (folder / "tmp").mkdir(exist_ok=True)
    own = {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(folder / "tmp")}
    return subprocess.Popen([*COMMAND, *words], stdout=subprocess.DEVNULL, env=os.environ | own)


@pytest.mark.slow
def test_two_runs_side_by_side(folder):
    names = ["out_a", "out_b"]
    runs = [start(folder, *FLY[:-1], name) for name in names]
    assert [run.wait(120) for run in runs] == [0, 0]
    used = {(folder / name / "px4" / "drone_1.log").read_text().split()[2] for name in names}
    assert len(used) == 2, "one PX4 instance for two runs"
    assert list((folder / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)],
)
def test_an_ended_run_keeps_what_was_flown_and_leaves_no_process(folder, number, code):
    run = start(folder, *FLY, "--realtime")
    console = folder / "out.px4-logs" / "drone_1.log"
    deadline = time.monotonic() + 300.0
    while not (console.exists() and "INFO armed for a second" in console.read_text()):
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    with open(f"/proc/{run.pid}/task/{run.pid}/children") as listed:
        children = [f"/proc/{pid}" for pid in listed.read().split()]
    assert children
    run.send_signal(number)
    assert run.wait(120) == code
    assert not any(os.path.exists(child) for child in children)
    assert list((folder / "tmp").iterdir()) == []
    assert {p.name for p in folder.iterdir()} == {"px4", "short.yaml", "tmp", "out"}
