"""Result folders: claimed at the start, made whole or not at all, remains of killed runs."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from musls_bringup.cli import main
from musls_bringup.cli.fly import keep_killed_runs
from musls_bringup.results import ResultError, leftovers, put_aside, result_folder

HOLD = """
import sys
import time
from pathlib import Path
from musls_bringup.results import result_folder
with result_folder(Path(sys.argv[1]), overwrite=False) as work:
    (work / "bag").mkdir()
    (work / "bag" / "bag.mcap").write_bytes(b"flown")
    print("holds", flush=True)
    sys.stdin.read()
    (work / "summary.json").write_text("{}")
"""


@pytest.fixture
def holder(tmp_path):
    """A process that is writing the folder `x`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "x")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout.readline() == "holds\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_second_run_with_the_same_folder_learns_it_at_once(tmp_path, holder):
    with (
        pytest.raises(ResultError, match=f"another run is writing .*x .process {holder.pid} on "),
        result_folder(tmp_path / "x", overwrite=False),
    ):
        pytest.fail("it got the folder")
    assert names(tmp_path) == [".x.partial"]
    holder.communicate("")
    assert holder.returncode == 0
    assert names(tmp_path) == ["x"] and names(tmp_path / "x") == ["bag", "summary.json"]


def test_the_claim_is_on_the_folder_not_on_its_spelling(tmp_path, holder):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(ResultError), result_folder(tmp_path / "link" / "x", overwrite=False):
        pytest.fail("it got the folder")


def test_a_living_run_is_no_leftover(tmp_path, holder):
    assert list(leftovers(tmp_path)) == []


def test_a_killed_run_frees_its_folder_and_its_recording_is_kept(tmp_path, holder):
    holder.kill()
    holder.wait()
    assert [name for _, name in leftovers(tmp_path)] == ["x"]
    with result_folder(tmp_path / "x", overwrite=False) as work:
        assert names(work) == [".run"]
    assert names(tmp_path) == ["x", "x_killed"]
    assert names(tmp_path / "x_killed") == ["bag"]
    assert names(tmp_path / "x") == []


def test_a_disk_that_is_full_at_the_start_leaves_no_claim(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # no file may hold a byte
    try:
        with pytest.raises(ResultError), result_folder(tmp_path / "x", overwrite=False):
            pytest.fail("it got the folder")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == []


def test_figures_on_a_full_disk_are_one_line(older_result, tmp_path, capsys):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        words = ["figures", str(older_result), "--out", str(tmp_path / "figures")]
        assert main([*words, "--format", "pdf", "--format", "svg"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be written: File too large" in line and not names(tmp_path / "figures")


def test_a_claim_that_says_nothing_is_abandoned_after_a_while(tmp_path):
    owner = tmp_path / ".x.partial" / ".run"
    owner.parent.mkdir()
    owner.touch()
    assert list(leftovers(tmp_path)) == []
    os.utime(owner, (0, 0))
    with result_folder(tmp_path / "x", overwrite=False) as work:
        assert names(work) == [".run"]


def test_without_a_recording_nothing_is_kept(tmp_path, holder):
    (tmp_path / ".x.partial" / "bag" / "bag.mcap").write_bytes(b"")
    holder.kill()
    holder.wait()
    assert [put_aside(work, name) for work, name in leftovers(tmp_path)] == [None]
    assert names(tmp_path) == []


def test_kept_recordings_do_not_replace_each_other(tmp_path, holder):
    (tmp_path / "x_killed").mkdir()
    holder.kill()
    holder.wait()
    assert [put_aside(*left).name for left in leftovers(tmp_path)] == ["x_killed_2"]


def test_folders_of_other_machines_and_of_nobody_are_left_alone(tmp_path, holder):
    holder.kill()
    holder.wait()
    owner = tmp_path / ".x.partial" / ".run"
    owner.write_text("process 1 on elsewhere")
    (tmp_path / ".thesis.partial").mkdir()
    assert list(leftovers(tmp_path)) == []
    keep_killed_runs(tmp_path / "y")
    assert names(tmp_path) == [".thesis.partial", ".x.partial"]


@pytest.mark.parametrize("length", [230, 255])
def test_long_names_need_no_longer_ones(tmp_path, length):
    out = tmp_path / ("n" * length)
    with result_folder(out, overwrite=False) as work:
        (work / "summary.json").write_text("{}")
    with result_folder(out, overwrite=True) as work:
        (work / "summary.json").write_text("[]")
    assert (out / "summary.json").read_text() == "[]"
    assert names(tmp_path) == [out.name]


@pytest.mark.parametrize("name", ["n" * 400, "n" * 400 + "/x"])
def test_names_that_are_too_long_are_one_line(tmp_path, name):
    with (
        pytest.raises(ResultError, match="cannot be written: File name too long"),
        result_folder(tmp_path / name, overwrite=False),
    ):
        pytest.fail("it got the folder")
    assert names(tmp_path) == []


def test_a_folder_that_cannot_take_the_older_ones_place_leaves_it(tmp_path, monkeypatch):
    with result_folder(tmp_path / "x", overwrite=False) as work:
        (work / "summary.json").write_text("old")
    rename = Path.rename

    def failing(self, target):
        if self.name == ".x.partial":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with (
        pytest.raises(ResultError, match="No space"),
        result_folder(tmp_path / "x", overwrite=True),
    ):
        pass
    assert names(tmp_path) == [".x.partial", "x"]
    assert (tmp_path / "x" / "summary.json").read_text() == "old"


def test_a_killed_flight_becomes_a_result_at_the_next_start(tmp_path):
    """SIGKILL in flight; the next run beside it writes the summary and says where it is."""
    fly = "import sys; from musls_bringup.cli import main; sys.exit(main())"
    words = [
        *(sys.executable, "-c", fly, "fly", "hold", "--no-report"),
        *("--set", "start=air", "--set", "system.cables.links=3"),
    ]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    long = [*words, "--set", "mission.stages.0.duration_s=3000", "--out", "runs/long"]
    flying = subprocess.Popen(long, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL)
    bag = tmp_path / "runs" / ".long.partial" / "bag" / "bag.mcap"
    while not (bag.is_file() and bag.stat().st_size > 3_000_000):
        assert flying.poll() is None
        time.sleep(0.02)
    flying.send_signal(signal.SIGKILL)
    assert flying.wait() == -signal.SIGKILL

    short = [*words, "--set", "mission.stages.0.duration_s=0.1", "--out", "runs/short"]
    ended = subprocess.run(short, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "run long was killed; kept in" in ended.stderr and "s of flight" in ended.stderr
    assert names(tmp_path / "runs") == ["long_killed", "short"]
    kept = tmp_path / "runs" / "long_killed"
    assert names(kept) == ["bag", "scenario.yaml", "summary.json"]
    assert names(kept / "bag") == ["bag.mcap", "metadata.yaml"]
    summary = json.loads((kept / "summary.json").read_text())
    assert summary["killed"] is True and summary["sim_time_s"] > 0.1
    assert summary["errors"]["load"]
