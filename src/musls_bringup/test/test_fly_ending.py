"""Flights that end early: a full disk, and signals that ask them to end."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fly_helpers import FLY, contents, raw_messages, refused, summary_of

from musls_analysis.figures import flight
from musls_analysis.report import report
from musls_bringup import fly as fly_module
from musls_bringup import results
from musls_bringup.cli import main
from musls_sim.recording import bag_file
from musls_sim.session.session import Session

# ---------- Disk full


def no_space(*args, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["scenario.yaml", "summary.json", "report.html"])
def test_a_full_disk_while_a_text_is_written(here, capsys, monkeypatch, name):
    write = Path.write_text
    monkeypatch.setattr(
        Path, "write_text",
        lambda self, *args, **o: no_space() if self.name == name else write(self, *args, **o),
    )  # fmt: skip
    monkeypatch.setattr(flight, "write_figures", lambda *args: [])
    args = [word for word in FLY if word != "--no-report" or name != "report.html"]
    line = refused(here, capsys, *args, "--out", "new/x")
    assert "new/x cannot be written: No space left on device" in line


@pytest.mark.parametrize("failing", [0, 1, 2], ids=["create", "messages", "index"])
def test_a_full_disk_while_the_bag_is_written(here, capsys, monkeypatch, failing):
    append, calls = bag_file._WholeWrites.append, []

    def limited(file, data):
        calls.append(data)
        no_space() if len(calls) == 1 + failing else append(file, data)

    monkeypatch.setattr(bag_file._WholeWrites, "append", limited)
    line = refused(here, capsys, *FLY, "--out", "new/x")
    assert "bag" in line and "No space left on device" in line


@pytest.mark.parametrize("method", ["mkdir", "rename"])
def test_a_full_disk_where_the_folder_is_made(here, capsys, monkeypatch, method):
    monkeypatch.setattr(Path, method, no_space)
    line = refused(here, capsys, *FLY, "--out", "new/x")
    assert "new/x cannot be written: No space left on device" in line


@pytest.mark.slow
def test_a_disk_that_is_really_full(here):
    """Files may not grow beyond 50 kB: whatever writes first finds no room."""
    code = (
        "import resource, sys; from musls_bringup.cli import main;"
        "assert main([*sys.argv[1:], '--out', 'first']) == 0;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000));"
        "sys.exit(main([*sys.argv[1:], '--out', 'new/second']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *FLY],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.returncode == 2, ended.stderr
    assert re.fullmatch(r"musls: error: .*bag.*: File too large\n", ended.stderr)
    assert sorted(path.name for path in here.iterdir()) == ["first", "tiny.yaml"]


# ---------------------------------------------------------------------------------------- Ctrl-C


@pytest.fixture
def caught():
    """The signals raise exceptions, as in a process of the command's own."""
    before = {number: signal.getsignal(number) for number in results.ENDING}
    results.catch()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def signal_at(monkeypatch, caught):
    """Sends signals to this process in flight."""

    def send(tick, *numbers):
        advance = Session.advance

        def interrupted(self, periods=1):
            advance(self, periods)
            if self.tick == tick:
                for number in numbers:
                    signal.raise_signal(number)

        monkeypatch.setattr(Session, "advance", interrupted)

    return send


WITH_REPORT = [word for word in FLY if word != "--no-report"]


@pytest.mark.parametrize("number", results.ENDING)
def test_a_signal_in_flight_keeps_what_was_flown(here, capsys, signal_at, number):
    signal_at(80, number)
    assert main([*FLY, "--out", "x"]) == 128 + number
    assert capsys.readouterr().err == (
        f"musls: ended by {number.name}: what was flown is kept in x\n"
    )
    summary = summary_of(here / "x")
    assert summary["interrupted"] is True and summary["landed"] is False
    assert summary["ended_by"] == number.name
    assert summary["sim_time_s"] == pytest.approx(0.32)
    last = max(time_ns for _, time_ns, _ in raw_messages(here / "x"))
    assert last == pytest.approx(0.3e9, abs=0.021e9)
    assert sorted(path.name for path in here.iterdir()) == ["tiny.yaml", "x"]


def test_a_flight_of_one_period_is_a_result(here, signal_at):
    signal_at(1, signal.SIGTERM)
    assert main([*WITH_REPORT, "--out", "x"]) == 143
    assert summary_of(here / "x")["sim_time_s"] == pytest.approx(0.004)
    assert (here / "x" / "report.html").is_file()


def test_a_second_signal_leaves_the_report_out(here, signal_at):
    signal_at(80, signal.SIGTERM, signal.SIGINT)
    assert main([*WITH_REPORT, "--out", "x"]) == 143
    assert summary_of(here / "x")["ended_by"] == "SIGTERM"
    assert sorted(path.name for path in (here / "x").iterdir()) == [
        "bag", "scenario.yaml", "summary.json",
    ]  # fmt: skip


@pytest.mark.parametrize("after", [80, None])
def test_a_signal_while_the_report_is_drawn_leaves_it_out(
    here, capsys, monkeypatch, caught, signal_at, after
):
    signal_at(after, signal.SIGINT)

    def drawing(recording, summary, folder, *args):
        (folder / "figures").mkdir()
        (folder / "report.html").write_text("half of")
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(report, "write_report", drawing)
    assert main([*WITH_REPORT, "--out", "x"]) == 130
    assert ("what was flown" if after else "the flight") + " is kept" in capsys.readouterr().err
    assert summary_of(here / "x")["interrupted"] is bool(after)
    assert sorted(path.name for path in (here / "x").iterdir()) == [
        "bag", "scenario.yaml", "summary.json",
    ]  # fmt: skip
    assert raw_messages(here / "x")


@pytest.mark.parametrize("number", results.ENDING)
@pytest.mark.parametrize("where", ["build", "start"])
def test_a_signal_before_the_flight_leaves_nothing(here, monkeypatch, caught, number, where):
    before = contents(here)
    if where == "start":
        start = fly_module._Start.start

        def started(self, loop):
            start(self, loop)
            signal.raise_signal(number)

        monkeypatch.setattr(fly_module._Start, "start", started)
    else:
        monkeypatch.setattr(fly_module, "to_yaml", lambda *args: signal.raise_signal(number))
    assert main([*FLY, "--out", "new/x"]) == 128 + number
    assert contents(here) == before


def test_as_a_library_it_leaves_sigterm_alone(here):
    handler = signal.getsignal(signal.SIGTERM)
    with results.Ending() as ending:
        ending.keep_with(lambda: None)
        assert signal.getsignal(signal.SIGTERM) == handler
        signal.raise_signal(signal.SIGINT)
        assert ending.name == "SIGINT"
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)]
)
def test_a_process_that_is_asked_to_end_keeps_what_was_flown(here, number):
    """By a time limit, a shutdown, or a terminal that is closed together with its output."""
    code = "import sys; from musls_bringup.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", code, *WITH_REPORT, "--out", "x", "--realtime"]
    words += ["--set", "mission.stages.0.duration_s=600"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    flying = subprocess.Popen(words, env=env, stdout=subprocess.PIPE)
    bag = here / ".x.partial" / "bag" / "bag.mcap"
    sizes = set()
    while len(sizes) < 3:  # empty or header, first chunk, ...
        assert flying.poll() is None
        sizes |= {bag.stat().st_size} if bag.is_file() else set()
        time.sleep(0.02)
    flying.stdout.close()
    flying.send_signal(number)
    assert flying.wait() == 128 + number
    summary = summary_of(here / "x")
    assert summary["interrupted"] is True and summary["ended_by"] == number.name
    assert raw_messages(here / "x")
    assert (here / "x" / "report.html").is_file()
    assert sorted(path.name for path in here.iterdir()) == ["tiny.yaml", "x"]
