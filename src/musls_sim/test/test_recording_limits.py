"""The recorder when something is wrong, and the memory that it takes."""

import os
import resource
from contextlib import closing, contextmanager

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from standing_plant import session_of, standing_plant

from musls_analysis.recordings.bag import read_messages
from musls_description.config.errors import MuslsError
from musls_description.system.system_files import load_system
from musls_sim.recording import BagRecorder, RecordingError
from musls_sim.recording.signals import CLOCK

SYSTEM = load_system("x500_duo")


def make(folder, **options):
    return BagRecorder(folder, SYSTEM, **{"step_period_s": 0.004, **options})


def clock_times(folder):
    with AnyReader([folder]) as reader:
        connections = [c for c in reader.connections if c.topic == "/clock"]
        return [time for _, time, _ in reader.messages(connections)]


def test_stamps_do_not_drift(tmp_path):
    """A week of flight in steps of 4 ms, with time as a float product."""
    with closing(make(tmp_path / "bag")) as recorder:
        steps = [*range(0, 1000, 5), 1_234_565, 25 * 10**5 + 5, 151_200_000]
        for step in steps:
            recorder.observe(step * 0.004, session_of(standing_plant(SYSTEM)))
    assert clock_times(tmp_path / "bag") == [step * 4_000_000 for step in steps]


@pytest.mark.parametrize(
    ("options", "every"),
    [({}, 5), ({"rate_hz": 250.0, "shape_rate_hz": 50.0}, 1), ({"rate_hz": 62.5,
     "shape_rate_hz": 12.5}, 4), ({"step_period_s": 0.001}, 20)],
)  # fmt: skip
def test_every(tmp_path, options, every):
    with closing(make(tmp_path / "bag", **options)) as recorder:
        assert recorder.every == every


def test_existing_folder_is_refused_and_kept(tmp_path):
    (tmp_path / "bag").mkdir()
    (tmp_path / "bag" / "precious").write_text("data")
    with pytest.raises(RecordingError, match=f"{tmp_path}/bag: it exists") as error:
        make(tmp_path / "bag")
    assert isinstance(error.value, MuslsError)
    assert "\n" not in str(error.value)
    assert (tmp_path / "bag" / "precious").read_text() == "data"


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match=f"cannot create bag {tmp_path}/file/bag: Not a dir"):
        make(tmp_path / "file" / "bag")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failed_construction_leaves_nothing(tmp_path, monkeypatch, error):
    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr("musls_sim.recording.bag_file._schemas_and_channels", fail)
    expected = RecordingError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        make(tmp_path / "a" / "b" / "bag")
    assert list(tmp_path.iterdir()) == []


@contextmanager
def file_limit(size):
    """Limits the size of files, as a full disk does.

    Not a moment longer than needed: the limit holds for the log that pytest writes, too.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_full_disk_keeps_what_was_written_before(tmp_path):
    plant = standing_plant(SYSTEM)
    recorder = make(tmp_path / "bag", buffer_s=1.0)
    message = f"cannot write bag {tmp_path}/bag: File too large"
    with file_limit(460_000), pytest.raises(RecordingError, match=message):
        for k in range(1000):
            recorder.observe(k * 0.02, session_of(plant))
    with pytest.raises(RecordingError, match="is closed"):
        recorder.observe(20.0, session_of(plant))
    recorder.close()
    bag = read_messages(tmp_path / "bag", lambda types: dict.fromkeys(types, "") | {CLOCK: CLOCK})
    times = bag.logs[CLOCK].time_ns
    assert len(times) >= 100 and "cut before its end" in bag.warnings[0]
    assert times == [k * 20_000_000 for k in range(len(times))]


def test_full_disk_at_the_end(tmp_path):
    recorder = make(tmp_path / "bag")
    recorder.observe(0.0, session_of(standing_plant(SYSTEM)))
    with file_limit(1000), pytest.raises(RecordingError, match="File too large"):
        recorder.close()
    recorder.close()


def test_error_in_flight_leaves_a_readable_bag(tmp_path):
    plant = standing_plant(SYSTEM)
    with (
        pytest.raises(ZeroDivisionError),
        closing(make(tmp_path / "bag", buffer_s=1.0)) as recorder,
    ):
        for k in range(1000):
            recorder.observe(k * 0.02, session_of(plant))
            recorder.on_stage(k * 0.02, f"stage_{k // 100}")
            if k == 321:
                raise ZeroDivisionError
    assert clock_times(tmp_path / "bag") == [k * 20_000_000 for k in range(322)]


def test_interrupted_write_loses_nothing(tmp_path, monkeypatch):
    """Ctrl-C in the middle of a chunk: what stands half-written is written again at the end."""
    plant = standing_plant(SYSTEM)
    recorder = make(tmp_path / "bag", buffer_s=1.0)
    with pytest.raises(KeyboardInterrupt), closing(recorder):
        for k in range(120):
            recorder.observe(k * 0.02, session_of(plant))
        write = os.write

        def interrupt(descriptor, data):
            write(descriptor, data[:100])
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr("musls_sim.recording.bag_file.os.write", interrupt)
        recorder.flush()
    assert clock_times(tmp_path / "bag") == [k * 20_000_000 for k in range(120)]


def test_empty_bag_and_second_close(tmp_path):
    recorder = make(tmp_path / "bag")
    recorder.close()
    recorder.close()
    assert recorder.messages == 0
    assert clock_times(tmp_path / "bag") == []
    session = session_of(standing_plant(SYSTEM))
    for call in (
        recorder.flush, lambda: recorder.on_stage(0.0, "hover"),
        lambda: recorder.observe(0.0, session),
    ):  # fmt: skip
        with pytest.raises(RecordingError, match=f"bag {tmp_path}/bag is closed"):
            call()


def test_setpoints_without_records_are_kept_whole(tmp_path):
    """The set-points fill their buffer first here; the order of time stays."""
    plant, level = standing_plant(SYSTEM), np.tile([1.0, 0.0, 0.0, 0.0], (3, 1))
    with closing(make(tmp_path / "bag", buffer_s=0.5)) as recorder:
        for k in range(501):
            recorder.on_setpoint(k * 0.004, np.array([[k, k, k], [0, 0, 0], [0, 0, 0]]), level)
            if k % recorder.every == 0 and not 100 < k < 400:
                recorder.observe(k * 0.004, session_of(plant))
    with AnyReader([tmp_path / "bag"]) as reader:
        received = {}
        for connection, time, _ in reader.messages():
            received.setdefault(connection.topic, []).append(time)
    assert received["/load/setpoint"] == [k * 4_000_000 for k in range(501)]
    assert received["/drone_1/setpoint"] == received["/drone_2/setpoint"] == [0]
    assert received["/clock"] == [k * 20_000_000 for k in (*range(21), *range(80, 101))]
