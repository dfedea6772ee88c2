"""Result folders: complete with their summary, and what failed or killed runs leave."""

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from musls_analysis.recordings.readers import read_recording
from musls_bringup.cli import main
from musls_bringup.flight.results import ResultError, result_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_second_run_with_the_same_folder_learns_it_at_once(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with result_folder(tmp_path / "x", overwrite=False) as work:
        for path in (tmp_path / "x", tmp_path / "link" / "x"):
            for overwrite in (False, True):
                with (
                    pytest.raises(ResultError, match="x: another run writes into it"),
                    result_folder(path, overwrite=overwrite),
                ):
                    pytest.fail("it got the folder")
        (work / "summary.json").write_text("{}")
    assert names(tmp_path / "x") == ["summary.json"]


@pytest.mark.parametrize("file", ["scenario.yaml", "bag/bag.mcap"])
def test_what_fails_puts_the_older_result_back_unless_it_holds_a_bag(tmp_path, file):
    with result_folder(tmp_path / "x", overwrite=False) as work:
        (work / "summary.json").write_text("old")
    with pytest.raises(RuntimeError), result_folder(tmp_path / "x", overwrite=True) as work:
        (work / file).parent.mkdir(exist_ok=True)
        (work / file).write_bytes(b"new")
        raise RuntimeError
    kept = [".unfinished", "bag"] if "bag" in file else ["summary.json"]
    assert names(tmp_path / "x") == kept


def test_a_flight_that_is_a_part_of_a_result_keeps_it_from_being_replaced(tmp_path):
    with result_folder(tmp_path / "x", overwrite=False) as work:
        (work / "summary.json").write_text("{}")
    with (
        result_folder(tmp_path / "x" / "flights" / "1", overwrite=False),
        pytest.raises(ResultError, match="1: another run writes into it"),
        result_folder(tmp_path / "x", overwrite=True),
    ):
        pytest.fail("it got the folder")
    assert names(tmp_path / "x") == ["flights", "summary.json"]


def test_what_fails_leaves_a_folder_that_is_no_longer_its_own(tmp_path):
    """Its folder was moved away by hand, and another run has made one of that name."""
    with pytest.raises(RuntimeError), result_folder(tmp_path / "x", overwrite=False) as work:
        work.rename(tmp_path / "moved")
        with result_folder(tmp_path / "x", overwrite=False) as other:
            (other / "summary.json").write_text("{}")
        raise RuntimeError
    assert names(tmp_path / "x") == ["summary.json"]


def test_a_leftover_of_an_older_run_is_not_put_back(tmp_path):
    (tmp_path / ".x.older").mkdir()
    with pytest.raises(RuntimeError), result_folder(tmp_path / "x", overwrite=False):
        raise RuntimeError
    assert names(tmp_path) == [".x.older"]


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


@pytest.mark.slow
def test_a_killed_flight_can_be_read_and_gives_its_folder_free(tmp_path):
    """SIGKILL in flight: a folder without a summary, up to its last whole chunk."""
    fly = "import sys; from musls_bringup.cli import main; sys.exit(main())"
    words = [
        *(sys.executable, "-c", fly, "fly", "hold", "--no-report"),
        *("--set", "start=air", "--set", "system.cables.links=3"),
    ]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    long = [*words, "--set", "mission.stages.0.duration_s=3000", "--out", "runs/long"]
    flying = subprocess.Popen(long, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL)
    bag = tmp_path / "runs" / "long" / "bag" / "bag.mcap"
    while not (bag.is_file() and bag.stat().st_size > 3_000_000):
        assert flying.poll() is None
        time.sleep(0.02)
    second = [*words, "--out", "runs/long", "--overwrite"]
    refused = subprocess.run(second, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert refused.returncode == 2 and flying.poll() is None
    (line,) = refused.stderr.splitlines()
    assert "output folder runs/long: another run writes into it" in line
    flying.send_signal(signal.SIGKILL)
    assert flying.wait() == -signal.SIGKILL
    folder = tmp_path / "runs" / "long"
    assert not (folder / "summary.json").exists()
    recording = read_recording(folder)
    assert recording.end_s > 1.0 and "cut before its end" in recording.warnings[0]
    end = subprocess.run(second, cwd=tmp_path, env=env)
    assert end.returncode == 0 and (folder / "summary.json").is_file()
