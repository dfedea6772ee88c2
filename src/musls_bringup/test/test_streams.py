"""Standard output that is closed, full or ASCII, and what is shown where there is no terminal."""

import os
import re
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from musls_bringup.flight import progress
from musls_bringup.flight.progress import ProgressDisplay

MUSLS = [sys.executable, "-c", "import sys; from musls_bringup.cli import main; sys.exit(main())"]
PATHS = {"PYTHONPATH": os.pathsep.join(sys.path)}


def musls(*args, **options):
    options.setdefault("stdout", subprocess.PIPE)
    env = {**os.environ, **PATHS, **options.pop("env", {})}
    return subprocess.run([*MUSLS, *args], stderr=subprocess.PIPE, env=env, timeout=120, **options)


def test_a_full_standard_output_is_one_line():
    with open("/dev/full", "wb") as full:
        ended = musls("list", "systems", stdout=full)
    assert ended.returncode == 1
    assert ended.stderr == (
        b"musls: error: standard output cannot be written: No space left on device\n"
    )


@pytest.mark.parametrize("streams", [">&-", ">&- <&-", ">&- 2>&- <&-"])
def test_closed_streams_are_quiet(streams):
    code = f'exec "$0" "$@" {streams}'
    ended = subprocess.run(
        ["sh", "-c", code, *MUSLS, "list", "systems"],
        env={**os.environ, **PATHS},
        capture_output=True,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_an_error_without_standard_error_keeps_its_exit_code():
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([*MUSLS, "flyy"], env={**os.environ, **PATHS}, stderr=full)
    assert ended.returncode == 2


def test_a_reader_that_has_gone_is_quiet():
    read_end, write_end = os.pipe()
    os.close(read_end)
    ended = musls("list", "systems", stdout=write_end)
    os.close(write_end)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_what_a_terminal_cannot_show_ends_nothing():
    code = "from musls_bringup.cli import app; app.protect_streams(); print('4.6\\N{DEGREE SIGN}')"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True,
        env={**os.environ, **PATHS, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert ended.stdout == b"4.6?\n", ended.stderr


def test_unbuffered_output_comes_when_it_is_printed():
    """Containers set PYTHONUNBUFFERED; without it a pipe gets all at the end."""
    code = (
        "from musls_bringup.cli import app; app.protect_streams(); print('now'); import sys; "
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, **PATHS, "PYTHONUNBUFFERED": "1"},
    ) as waiting:  # fmt: skip
        told = []
        reader = threading.Thread(target=lambda: told.append(waiting.stdout.readline()))
        reader.start()
        reader.join(60.0)  # it waits for its input meanwhile
        waiting.stdin.close()
    assert told == [b"now\n"]


@pytest.mark.parametrize("args", [["fly", "hold"], ["sweep", "run_speed"], ["model", "x500_duo"]])
def test_an_empty_path_is_refused(args):
    ended = musls(*args, "--out", "")
    assert ended.returncode == 2
    assert re.fullmatch(rb"musls: error: invalid value for '--out': it is empty.*\n", ended.stderr)


def test_a_group_alone_shows_its_help():
    ended = musls("ros")
    assert ended.returncode == 0 and ended.stderr == b""
    assert ended.stdout.startswith(b"Usage: musls ros ")


def test_without_a_terminal_there_are_lines_and_the_work_need_not_help(monkeypatch):
    written = threading.Event()
    lines = []

    class Lines:
        encoding = "utf-8"

        def write(self, text):
            lines.append(text)
            if "12.0 / 60 s" in "".join(lines):
                written.set()

        def flush(self):
            pass

        def isatty(self):
            return False

    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.001)
    monkeypatch.setattr(sys, "stderr", Lines())
    with ProgressDisplay("circle", "compiling") as shown:
        shown.update("12.0 / 60 s   4.0x real time", 0.2)
        assert written.wait(60.0)
    count = len(lines)
    assert "musls: circle: 12.0 / 60 s 4.0x real time\n" in "".join(lines)
    assert not [t for t in threading.enumerate() if t is shown._writer]
    assert len(lines) == count


def test_quick_work_says_nothing(capsys, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with ProgressDisplay("circle") as shown:
        shown.update("half", 0.5)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_the_pace_of_each_of_several_flights_is_its_own(monkeypatch):
    """`--verify` shows two flights one after the other, which may be looked at at the same time."""
    shown, texts = ProgressDisplay("circle"), []
    monkeypatch.setattr(shown, "update", lambda text, share: texts.append(text))
    observer = shown.flight()
    for _ in range(2):
        flown = SimpleNamespace(guidance=SimpleNamespace(planned_s=60.0), stage="circle")
        for time_s in (11.0, 12.0):
            observer._next_s = 0.0
            observer.observe(time_s, flown)
    assert ["real time" in text for text in texts] == [False, True, False, True]


def test_an_interrupt_while_modules_are_imported_ends_without_traceback():
    code = """
import sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "musls_bringup.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from musls_bringup.cli import main
sys.exit(main())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, env=os.environ | PATHS)
    assert (run.returncode, run.stderr) == (130, b"")


def test_python_shows_progress_where_somebody_looks(monkeypatch, capsys, caplog):
    import musls

    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    shown = {}
    for quiet in (False, True):
        monkeypatch.setattr("musls_bringup.api.simulation.is_watched", lambda: True)
        with caplog.at_level("INFO", logger="musls"):
            musls.fly(SHORT, quiet=quiet)
        shown[quiet] = capsys.readouterr().err
    assert "preparing" in shown[False]
    assert shown[True] == ""
    assert [r.getMessage() for r in caplog.records].count("1.60 s: stage hold") == 2
    caplog.clear()
    monkeypatch.undo()
    musls.fly(SHORT)  # a log file, a test: nobody looks
    assert capsys.readouterr().err == ""


SHORT = {
    "system": "x500_solo",
    "cable_model": "massless",
    "start": {"kind": "air"},
    "mission": {"stages": [{"kind": "hold", "position_m": [0, 0, 1], "duration_s": 0.5}]},
}
