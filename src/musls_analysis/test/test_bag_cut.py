"""Bags whose recorder was killed are read up to there."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from contextlib import closing

import numpy as np
import pytest
from mcap.reader import make_reader
from standing_plant import session_of, standing_plant

from musls_analysis.recordings.bag import read_bag
from musls_analysis.recordings.readers import read_recording
from musls_description.config.errors import ConfigError
from musls_description.system.system_files import load_system
from musls_sim.recording import BagRecorder

LEVEL = np.array([1.0, 0.0, 0.0, 0.0])

ENDLESS = textwrap.dedent(
    """
    import sys
    from musls_description.system.system_files import load_system
    from musls_sim.recording import BagRecorder
    from standing_plant import session_of, standing_plant

    system = load_system("x500_duo")
    plant = standing_plant(system)
    recorder = BagRecorder(sys.argv[1], system, step_period_s=0.02)
    for k in range(10**9):
        plant.state.position_enu_m[0, 0] = k
        recorder.on_stage(0.02 * k, "lift" if k < 100 else "hold")
        recorder.observe(0.02 * k, session_of(plant))
        print(k, flush=True)
    """
)


def test_a_killed_recorder_loses_a_chunk_of_five_seconds(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(tmp_path / "bag")],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    for line in process.stdout:
        if int(line) >= 321:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    written = int([line, *process.stdout][-1]) + 1
    process.stdout.close()
    assert not (tmp_path / "bag" / "metadata.yaml").exists()
    recording = read_recording(tmp_path)
    k = np.arange(len(recording.time_s))
    assert written - 251 <= len(k) <= written + 1
    np.testing.assert_array_equal(recording.body("load").position_enu_m[:, 0], k)
    np.testing.assert_allclose(recording.time_s, 0.02 * k, atol=1e-9)
    assert [stage.name for stage in recording.stages] == ["lift", "hold"]
    (warning,) = recording.warnings
    assert "cut before its end" in warning and "s of it were read" in warning


@pytest.fixture(scope="module")
def three_chunks(tmp_path_factory):
    """A bag of three seconds, written second by second, in several chunks."""
    folder, system = tmp_path_factory.mktemp("whole") / "bag", load_system("x500_duo")
    plant = standing_plant(system)
    with closing(BagRecorder(folder, system, step_period_s=0.02, buffer_s=1.0)) as recorder:
        for k in range(150):
            recorder.observe(0.02 * k, session_of(plant))
    return folder


@pytest.mark.parametrize("seed", range(3))
def test_wherever_a_bag_is_cut_whole_chunks_are_read(three_chunks, tmp_path, seed):
    data = (three_chunks / "bag.mcap").read_bytes()
    counts = []
    for size in np.sort(np.random.default_rng(seed).integers(1, len(data) - 1, 30)):
        file = tmp_path / "cut.mcap"
        file.write_bytes(data[:size])
        try:
            recording = read_recording(file)
        except ConfigError as error:
            assert "damaged" in str(error) or "no poses" in str(error)
            counts.append(0)
        else:
            assert len(recording.warnings) == 1
            counts.append(len(recording.time_s))
    assert len(set(counts)) >= 3
    assert counts == sorted(counts) and counts[-1] >= 100


def test_a_flipped_bit_ends_the_reading_of_a_cut_bag(three_chunks, tmp_path):
    file = three_chunks / "bag.mcap"
    with file.open("rb") as stream:
        chunks = make_reader(stream).get_summary().chunk_indexes
    middle = chunks[len(chunks) // 2]
    data = bytearray(file.read_bytes())[:-1000]
    data[middle.chunk_start_offset + middle.chunk_length // 2] ^= 1
    (tmp_path / "cut.mcap").write_bytes(data)
    assert len(read_recording(tmp_path / "cut.mcap").time_s) == 50  # of three seconds, the first


def test_a_whole_bag_without_metadata_is_read_without_a_word(three_chunks, tmp_path):
    shutil.copytree(three_chunks, tmp_path / "bag")
    (tmp_path / "bag" / "metadata.yaml").unlink()
    recording = read_bag(tmp_path / "bag")
    assert len(recording.time_s) == 150 and recording.warnings == ()


def test_chunks_are_written_at_least_once_a_second_of_real_time(tmp_path, monkeypatch):
    """A simulation slower than real time."""
    system = load_system("x500_duo")
    plant, now_s = standing_plant(system), [0.0]
    monkeypatch.setattr("musls_sim.recording.recorder.perf_counter", lambda: now_s[0])
    with closing(BagRecorder(tmp_path / "bag", system, step_period_s=0.02)) as recorder:
        for k in range(25):
            recorder.observe(0.02 * k, session_of(plant))
            now_s[0] += 0.3
            if k >= 12:
                cut = read_bag(tmp_path / "bag")
                assert len(cut.time_s) >= k - 3
