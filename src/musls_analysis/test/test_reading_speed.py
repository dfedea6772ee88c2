"""Five minutes at 100 Hz read in seconds, whatever the format."""

import time

import numpy as np
import pytest
from made_up_flight import STORE, pose_message
from made_up_recordings import flight, log_lines, log_rows, tf_message
from rosbags.rosbag2 import StoragePlugin, Writer

from musls_analysis.recordings.readers import read_recording

ROWS = 30_000
LONGEST_S = 2.7
"""Processor time, which other work on the machine disturbs less; printed with pytest -s."""
Q = (1.0, 0.0, 0.0, 0.0)


def read_in_time(path, what):
    start, start_cpu = time.perf_counter(), time.process_time()
    read = read_recording(path)
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
    print(f"\n{what}: 5 minutes at 100 Hz read in {cpu_s:.1f} s of processor time, {wall_s:.1f} s")
    assert len(read.bodies["drone_3"].time_s) == ROWS
    assert np.all(np.diff(read.bodies["load"].time_s) > 0)
    assert cpu_s < LONGEST_S


def stamped(message, places):
    """Copies of a serialised message with other stamps and other x, as bytes.

    Args:
        message: The message; its stamps are 1234567 s and its x 0.1234567.
        places: Number of stamps and of x in it.
    """
    raw = bytes(STORE.serialize_cdr(message, message.__msgtype__))
    rows = np.tile(np.frombuffer(raw, np.uint8), (ROWS, 1))
    ns = np.arange(ROWS, dtype=np.int64) * 10**7
    stamps = np.column_stack([ns // 10**9, ns % 10**9]).astype("<u4")
    values = (1e-3 * np.arange(ROWS)).astype("<f8")
    for key, width, new in (
        (np.uint32(1_234_567).tobytes(), 8, stamps.view(np.uint8)),
        (np.float64(0.1234567).tobytes(), 8, values.view(np.uint8).reshape(ROWS, 8)),
    ):
        at = -1
        for _ in range(places):
            at = raw.index(key, at + 1)
            rows[:, at : at + width] = new
    return ns, rows


def write(folder, storage, topics):
    with Writer(folder, version=9, storage_plugin=storage) as writer:
        parts = []
        for topic, message, places in topics:
            connection = writer.add_connection(topic, message.__msgtype__, typestore=STORE)
            parts.append((connection, *stamped(message, places)))
        for k in range(ROWS):
            for connection, ns, rows in parts:
                writer.write(connection, int(ns[k]), rows[k].tobytes())
    return folder


BODIES = ("load", "drone_1", "drone_2", "drone_3")
STAMP_NS = 1_234_567 * 10**9
POSITION = (0.1234567, 0.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("storage", [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_bags_of_tf(tmp_path, storage):
    message = tf_message(STAMP_NS, [("world", body, POSITION, Q) for body in BODIES])
    bag = write(tmp_path / "bag", storage, [("/tf", message, 4)])
    read_in_time(bag, f"TF bag ({storage.name})")


@pytest.mark.slow
def test_bags_of_poses(tmp_path):
    message = pose_message(STAMP_NS, POSITION, Q)
    topics = [(f"/{body}/pose", message, 1) for body in BODIES]
    read_in_time(write(tmp_path / "bag", StoragePlugin.MCAP, topics), "pose bag (MCAP)")


@pytest.mark.slow
def test_flight_logs(tmp_path):
    rows = log_rows(flight("circle", repetitions=1, rate_hz=100.0))[:3000]
    lines = [line.split(" ", 1)[1] for line in log_lines(rows)]
    with (tmp_path / "log.txt").open("w") as file:
        file.write("MISSION_STAGE 1 CIRCLE\n")
        for k in range(ROWS):
            file.write(f"{0.01 * k:.6f} {lines[k % len(lines)]}\n")
    read_in_time(tmp_path / "log.txt", "flight log")
