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
from fly_helpers import FLY, contents, error_line, raw_messages, refused, summary_of

import musls
from musls_analysis.report import report
from musls_bringup.cli import main
from musls_bringup.flight import fly as fly_module
from musls_bringup.flight import results
from musls_sim.recording import bag_file
from musls_sim.session.session import Session

# ---------- Disk full


def no_space(*args, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_when_written(monkeypatch, name):
    write = Path.write_text
    monkeypatch.setattr(
        Path, "write_text",
        lambda self, *args, **o: no_space() if self.name == name else write(self, *args, **o),
    )  # fmt: skip


def test_a_full_disk_before_the_flight_leaves_nothing(here, capsys, monkeypatch):
    full_when_written(monkeypatch, "scenario.yaml")
    line = refused(here, capsys, *FLY, "--out", "new/x")
    assert "new/x cannot be written: No space left on device" in line


@pytest.mark.parametrize("failing", ["summary.json", "report.html"])
def test_a_full_disk_after_the_flight_leaves_the_bag(here, capsys, monkeypatch, failing):
    with monkeypatch.context() as patch:
        full_when_written(patch, failing)
        args = [word for word in FLY if word != "--no-report" or failing != "report.html"]
        assert main([*args, "--out", "new/x"]) == 2
    line = error_line(capsys)
    assert "new/x cannot be written: No space left on device; what was made is in " in line
    kept = raw_messages(here / "new" / "x")
    assert main([*FLY, "--out", "new/x", "--overwrite"]) == 0
    assert raw_messages(here / "new" / "x") == kept


@pytest.mark.parametrize("failing", [0, 1], ids=["create", "messages"])
def test_a_full_disk_while_the_bag_is_begun_leaves_nothing(here, capsys, monkeypatch, failing):
    commit, calls = bag_file.BagFile._commit, []

    def limited(file, data):
        calls.append(file)
        no_space() if len(calls) == 1 + failing else commit(file, data)

    monkeypatch.setattr(bag_file.BagFile, "_commit", limited)
    line = refused(here, capsys, *FLY, "--out", "new/x")
    assert "bag" in line and "No space left on device" in line


def test_a_full_disk_where_the_folder_is_made(here, capsys, monkeypatch):
    monkeypatch.setattr(Path, "mkdir", no_space)
    line = refused(here, capsys, *FLY, "--out", "new/x")
    assert "new/x cannot be written: No space left on device" in line


@pytest.mark.slow
def test_a_disk_that_is_really_full(here):
    """Files may not grow beyond a limit: below the first chunk nothing is kept, above it much."""
    code = (
        "import resource, sys; from musls_bringup.cli import main;"
        "assert main([*sys.argv[1:], '--out', 'first']) == 0;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 1_000_000));"
        "assert main([*sys.argv[1:], '--out', 'new/second']) == 2;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000));"
        "sys.exit(main([*sys.argv[1:], '--out', 'third', '--set', "
        "'mission.stages.0.duration_s=20']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *FLY],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.returncode == 2, ended.stderr
    first, second = ended.stderr.splitlines()
    assert re.fullmatch(r"musls: error: .*bag.*: File too large", first)
    assert re.fullmatch(r".*bag.*: File too large; what was flown is kept in third", second)
    assert sorted(path.name for path in here.iterdir()) == ["first", "third", "tiny.yaml"]
    assert musls.read_recording(here / "third").end_s > 2.0
    assert "File too large" in summary_of(here / "third")["failure"]


# ---------- Ctrl-C


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
        run = Session._run

        def interrupted(self, end):
            run(self, tick if tick and self.tick < tick else end)
            if self.tick == tick:
                for number in numbers:
                    signal.raise_signal(number)

        monkeypatch.setattr(Session, "_run", interrupted)

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


def test_a_second_signal_leaves_the_report_out(here, monkeypatch, signal_at):
    signal_at(80, signal.SIGTERM)
    summarise = fly_module.summarise
    monkeypatch.setattr(
        fly_module, "summarise",
        lambda *args, **o: (signal.raise_signal(signal.SIGINT), summarise(*args, **o))[1],
    )  # fmt: skip
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


@pytest.mark.parametrize("out", [None, "x"])
def test_in_python_ctrl_c_is_raised_with_what_was_flown(here, monkeypatch, out):
    def press(self, end):
        run(self, 80 if self.tick < 80 else end)
        if self.tick == 80:
            signal.raise_signal(signal.SIGINT)

    run = Session._run
    monkeypatch.setattr(Session, "_run", press)
    with pytest.raises(KeyboardInterrupt) as ended:
        musls.fly("tiny.yaml", out=out, report=False)
    recording = ended.value.recording
    assert isinstance(recording, musls.Recording)
    assert recording.end_s == pytest.approx(0.3, abs=0.021)
    assert (here / "x" / "summary.json").is_file() == bool(out)
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


def test_a_third_signal_leaves_the_flight_without_its_summary(here, monkeypatch, signal_at):
    signal_at(80, signal.SIGTERM)
    again = [signal.SIGINT, signal.SIGINT]
    monkeypatch.setattr(fly_module, "summarise", lambda *a, **o: [*map(signal.raise_signal, again)])
    assert main([*FLY, "--out", "x"]) == 130
    assert raw_messages(here / "x") and not (here / "x" / "summary.json").exists()
    assert musls.read_recording(here / "x").end_s > 0.2


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
        ending.hold()
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
    bag = here / "x" / "bag" / "bag.mcap"
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


# ---------- Code of users

OWN = """\
import sys
import time

import numpy as np
import musls

{head}

class Mine(musls.Controller):
    level = "rotor_speeds"

    def step(self, time_s, reference, estimate):
        if time_s > 0.1:
            {step}
        return np.full((2, 4), 700.0)


@musls.events.register("{kind}")
@musls.spec
class Own(musls.Event):
    kind: str = "{kind}"

    @property
    def lasts_s(self):
        return {lasts}

    def ready(self, context):
        return {ready}

    def begin(self, context):
        {begin}
"""
QUIET = {"head": "", "step": "pass", "lasts": "None", "ready": "True", "begin": "return 'done'"}


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"head": "sys.exit(0)"}, r"own\.py, line 7: SystemExit: 0"),
        ({"step": "sys.exit()"}, r"own\.py, line 14: Mine\.step failed at 0\.1\S+ s: SystemExit;"),
        ({"step": "self.happened.append(3)"}, r"own\.py: Mine\.happened failed at 0\.1\S+ s: Type"),
        ({"begin": "sys.exit()"}, r"own\.py, line 31: Own\.begin failed at 0\.300 s: SystemExit;"),
        ({"begin": "1 / 0"}, r"own\.py, line 31: Own\.begin failed at 0\.300 s: ZeroDivisionError"),
        (
            {"begin": "raise BaseException('no')"},
            r"line 31: Own\.begin failed at .* BaseException: no",
        ),
        ({"begin": "return {1: 2}"}, r"own\.py: Own\.begin gave {1: 2}, must be text;"),
        ({"ready": "[][0]"}, r"own\.py, line 28: Own\.ready failed at 0\.300 s: IndexError"),
        (
            {"ready": "np.ones(3)"},
            r"own\.py: Own\.ready gave array\(\[.*\), must be true or false;",
        ),
        ({"lasts": "-1.0"}, r"own\.py: Own\.lasts_s gave -1\.0, must be a number > 0;"),
        ({"lasts": "'long'"}, r"own\.py: Own\.lasts_s gave 'long', must be a number > 0;"),
    ],
)
def test_code_of_users_that_fails_is_one_line_and_keeps_what_was_flown(
    here, capsys, request, own, said
):
    kind = f"own_{abs(hash(request.node.name))}"
    (here / "own.py").write_text(OWN.format(**QUIET | own, kind=kind))
    words = [*FLY, "--controller", "own.py:Mine", "--set", "extensions=[own.py]", "--out", "x"]
    event = f"events=[{{kind: {kind}, when: {{time_s: 0.3}}}}]"
    assert main([*words, "--set", event]) == 2
    assert re.search(said, error_line(capsys).strip()), said
    assert (here / "x").is_dir() == ("head" not in own)
    if "head" not in own:
        end_s = max(time_ns for _, time_ns, _ in raw_messages(here / "x")) / 1e9
        assert end_s == pytest.approx(0.1 if "step" in own else 0.3, abs=0.021)


def test_a_controller_that_hangs_is_ended_by_the_first_signal(here):
    (here / "own.py").write_text(
        OWN.format(**QUIET | {"step": "open('hung', 'w'); time.sleep(1e6)"}, kind="none")
    )
    code = "import sys; from musls_bringup.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", code, *FLY, "--controller", "own.py:Mine", "--out", "x"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    flying = subprocess.Popen(words, env=env)
    while not (here / "hung").exists():
        assert flying.poll() is None
        time.sleep(0.05)
    flying.send_signal(signal.SIGINT)
    assert flying.wait(120) == 130
    assert summary_of(here / "x")["interrupted"] and raw_messages(here / "x")
