"""`musls compare` from end to end."""

import json

import pytest
from made_up_recordings import excerpt_lines, flight, tf_messages, write_bag, write_lines

from musls_bringup.cli import main

FRAMES = {"load": "load", "drone_1": "drone1", "drone_2": "drone2", "drone_3": "drone3"}


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    path = tmp_path_factory.mktemp("real") / "real.csv"
    return write_lines(path, excerpt_lines(flight("shm", rate_hz=10.0)))


@pytest.fixture(scope="module")
def sim(tmp_path_factory):
    path = tmp_path_factory.mktemp("sim") / "sim.csv"
    return write_lines(path, excerpt_lines(flight("shm", shift_m=(0.0, 0.0, 0.05))))


def run(capsys, *args):
    status = main(["compare", *map(str, args)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_table_is_printed_and_everything_written(capsys, real, sim, tmp_path):
    out = tmp_path / "result"
    status, text, _ = run(capsys, real, sim, sim, "--stage", "shm", "--out", out)
    assert status == 0
    rows = [line.split() for line in text.splitlines()]
    (load,) = [row for row in rows if row[:1] == ["load"]]
    # Rows at 10 Hz leave the phase of set-points at 5 Hz open by half a row: 0.05 s, some 40 mm.
    assert float(load[1]) == pytest.approx(60.0, abs=18.0)
    assert [r[:2] for r in rows if r[:1] == ["drone"]] == [["drone", str(i)] for i in (1, 2, 3)]
    assert "body origins as recorded" in text and str(out) in text.replace("\n", "")
    assert sorted(p.name for p in out.iterdir()) == [
        "comparison.json", "figures", "mean_shm.csv", "table.csv"
    ]  # fmt: skip
    assert not list(tmp_path.glob(".*"))
    summary = json.loads((out / "comparison.json").read_text())
    assert summary["stages"]["shm"]["sim_cycles"] == 4
    status, _, err = run(capsys, real, sim, "--stage", "shm", "--out", out)
    assert status == 2 and "exists" in err


def test_the_compared_points_are_stated(capsys, real, sim, tmp_path):
    args = ("--stage", "shm", "--out", tmp_path / "r", "--offset", "load=0,0,-0.05", "--euler-mean")
    status, text, _ = run(capsys, real, sim, *args)
    assert status == 0
    assert "in the simulation load at (0, 0, -0.05) m in its frame" in text
    assert "roll, pitch, yaw one by one" in text
    (load,) = [line.split() for line in text.splitlines() if line.startswith("load ")]
    assert "load: offset 0,0,-0.05 m assumed" in text and "without it" in text
    assert float(load[3]) < 10.0  # the shift is taken out, and with it the lag


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--stage", "circle"], "do not follow a circle at constant speed"),
        (["--stage", "hover"], "cycles of 'hover' cannot be found"),
        (["--stage", "shm", "--offset", "load=1,2"], "must be BODY=X,Y,Z"),
        (["--stage", "shm", "--offset", "load"], "must be BODY=X,Y,Z"),
        (["--stage", "shm", "--offset", "winch=0,0,1"], "no body 'winch' in it"),
        (["--stage", "shm", "--only", "drone_9"], "no body 'drone_9' in it"),
        (["--stage", "shm", "--lag-limit", "-1"], "from 0 to 60 s"),
        (["--stage", "shm", "--skip-sim", "9"], "no complete cycle of stage 'shm'"),
        (["--stage", "shm", "--real-cycle", "7"], "must be START:END"),
        (["--stage", "shm", "--real-cycle", "7:900"], "the recording is from"),
        (["--stage", "shm", "--calibrate", "x.csv"], "10 simulated flights or more, here 1"),
        ([], "missing option '--stage'"),
    ],
)
def test_bad_input_ends_with_one_line(capsys, real, sim, tmp_path, args, message):
    status, text, err = run(capsys, real, sim, *args, "--out", tmp_path / "r")
    assert status == 2 and text == ""
    assert message in err.splitlines()[-1] and err.splitlines()[-1].startswith("musls: error: ")
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_is_missing_or_foreign(capsys, real, tmp_path):
    foreign = write_lines(tmp_path / "notes.txt", ["hello"])
    for path, message in ((tmp_path / "none", "no such file"), (foreign, "not a recording")):
        status, _, err = run(capsys, real, path, "--stage", "shm")
        notes, errors = err.splitlines()[:-1], err.splitlines()[-1:]
        assert status == 2 and message in errors[0]
        assert all(line.startswith("musls: note: ") for line in notes)


def test_a_bag_of_tf_with_given_cycles(capsys, sim, tmp_path):
    """A real bag without set-points: its cycles are given, and one frame."""
    recording = flight("shm")
    bag = write_bag(tmp_path / "bag", tf_messages(recording, FRAMES | {"load": "box"}))
    cycles = ["--real-cycle", "7:10.14159", "--sim-cycle", "7:10.14159"]
    args = [bag, sim, "--stage", "shm", "--out", tmp_path / "r", *cycles]
    status, _, err = run(capsys, *args)
    assert status == 2 and "name it with --bodies load=NAME" in err
    status, text, _ = run(capsys, *args, "--bodies", "load=box,drone_1=drone1")
    assert status == 0
    (load,) = [line.split() for line in text.splitlines() if line.startswith("load ")]
    assert float(load[1]) == pytest.approx(50.0, abs=1.0)


def test_a_bag_of_tf_alone_needs_no_times(capsys, sim, tmp_path):
    """No set-points, no stages: cycles come from the drones' motion, in both recordings."""
    bag = write_bag(tmp_path / "bag", tf_messages(flight("shm", start_s=90.0), FRAMES))
    status, text, _ = run(capsys, bag, sim, "--stage", "shm", "--out", tmp_path / "r")
    assert status == 0 and "cycles found in the motion of the drones" in text
    (load,) = [line.split() for line in text.splitlines() if line.startswith("load ")]
    assert float(load[1]) == pytest.approx(50.0, abs=3.0)
    # The simulation was moved up by 50 mm: a point 50 mm lower fits, and the table says so.
    (offset,) = [line for line in text.splitlines() if line.startswith("load: no offset assumed")]
    x, y, z = (float(v) for v in offset.split("load=")[1].split(":")[0].split(","))
    assert (x, y, z) == pytest.approx((0.0, 0.0, -0.05), abs=2e-3)
    assert float(offset.split()[-2]) < 5.0


def test_help_shows_an_example(capsys):
    status, text, _ = run(capsys, "--help")
    assert status == 0 and "musls compare real_flight.csv" in text


def test_columns_are_said_once(capsys, tmp_path):
    """They are kept beside the table, and it is said which of them were others before."""
    rows = [f"{20_000_000 * k},{0.01 * k:.3f},0,1,1,0,0,0,9" for k in range(50)]
    path = write_lines(tmp_path / "load_result.csv", rows)
    assert main(["recordings", str(path)]) == 2
    assert "--columns 't x y z qw qx qy qz'" in capsys.readouterr().err
    assert main(["recordings", str(path), "--columns", "t_ns x y z qw qx qy qz"]) == 0
    kept = tmp_path / "load_result.csv.recording.yaml"
    assert kept.is_file() and kept.name in capsys.readouterr().err
    assert main(["recordings", str(path)]) == 0
    captured = capsys.readouterr()
    assert "keeps how" not in captured.err and "0.980" in captured.out
    assert main(["recordings", str(path), "--columns", "t_ns y x z qw qx qy qz"]) == 0
    assert "it said another columns before" in " ".join(capsys.readouterr().err.split())
    assert main(["recordings", str(path), "--columns", "t_ns x y z qw qx qy qw"]) == 2
    assert "column qw comes twice" in capsys.readouterr().err
    assert "qy, qz" in kept.read_text()  # what failed is not kept
