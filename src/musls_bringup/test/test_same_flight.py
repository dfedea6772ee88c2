"""A flight against itself, once as others record it: without set-points, in their formats."""

from dataclasses import replace

import numpy as np
import pytest
from made_up_recordings import tf_messages, write_bag
from scipy.spatial.transform import Rotation

from musls_analysis.comparison.compare import CompareOptions, compare_stage
from musls_analysis.comparison.cycles import cut_alike, stage_windows
from musls_analysis.recordings.readers import read_recording
from musls_analysis.recordings.recording import without_number
from musls_bringup.catalogue.shipped import SCENARIOS, find_scenario, names_in
from musls_bringup.flight.fly import fly_fast
from musls_description.numerics.rotations import roll_pitch_yaw
from musls_sim.session.session import Session


def flown(name, *overrides):
    with Session(find_scenario(name, list(overrides)), force=True) as session:
        return fly_fast(session)


def as_csv(recording, folder):
    columns, names = [recording.time_s], ["t"]
    for body, track in recording.bodies.items():
        names += [f"{body}_{part}" for part in ("x", "y", "z", "roll", "pitch", "yaw")]
        columns += [track.position_enu_m, roll_pitch_yaw(track.orientation_wxyz)]
    path = folder / "flight.csv"
    rows = np.column_stack(columns)
    np.savetxt(path, rows, "%.6f", ",", header=",".join(names), comments="")
    return path


def as_tum(recording, folder):
    track, path = recording.bodies["load"], folder / "load.tum"
    turns = np.roll(track.orientation_wxyz, -1, axis=1)
    np.savetxt(path, np.column_stack([track.time_s, track.position_enu_m, turns]), "%.6f")
    return path


def as_vicon(recording, folder):
    rate_hz = round(1.0 / np.median(np.diff(recording.time_s)))
    names = "," + "".join(f",Global Angle {body}:{body},,,,," for body in recording.bodies)
    units = ",".join(["rad,rad,rad,mm,mm,mm"] * len(recording.bodies))
    columns = [np.arange(1, 1 + len(recording.time_s)), np.zeros(len(recording.time_s))]
    for track in recording.bodies.values():
        turns = Rotation.from_quat(track.orientation_wxyz, scalar_first=True).as_rotvec()
        columns += [turns, 1e3 * track.position_enu_m]
    lines = ["Objects", str(rate_hz), names, "Frame,Sub Frame" + ",RX,RY,RZ,TX,TY,TZ" * len(
        recording.bodies), ",," + units]  # fmt: skip
    rows = np.column_stack(columns)
    path = folder / "flight_vicon.csv"
    for frame, sub_frame, *row in rows:
        lines.append(",".join([f"{frame:.0f},{sub_frame:.0f}", *(f"{v:.6f}" for v in row)]))
    path.write_text("\n".join(lines) + "\n")
    return path


def as_bag(recording, folder):
    frames = {body: body for body in recording.bodies}
    return write_bag(folder / "bag", tf_messages(recording, frames))


FORMATS = {"csv": as_csv, "tum": as_tum, "vicon": as_vicon, "bag": as_bag}


def is_recorded(window, recording, other, bodies):
    """Whether nearly all rows of a window are there: readers drop rows that repeat the last."""

    def rows(track):
        return np.sum((track.time_s >= window.start_s) & (track.time_s < window.end_s))

    return all(rows(other.bodies[b]) > 0.9 * rows(recording.bodies[b]) for b in bodies)


def assert_same(recording, other):
    bodies = tuple(body for body in recording.bodies if body in other.bodies)
    for stage in dict.fromkeys(without_number(s.name) for s in recording.stages):
        windows = stage_windows(recording, stage)
        if not all(is_recorded(window, recording, other, bodies) for window in windows):
            continue
        real, sim = cut_alike([other, recording], stage)
        found = compare_stage(stage, real, [sim], CompareOptions(bodies=bodies))
        assert found.real_cycles == found.sim_cycles and found.lag_s == 0.0, stage
        for body, errors in found.errors.items():
            assert 1e3 * errors.translational_error_m < 0.05, (stage, body)
            assert errors.geodesic_error_deg < 0.05, (stage, body)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_flight_does_not_differ_from_itself(tmp_path, kind):
    recording = flown("hold", "cable_model=massless")
    assert_same(recording, read_recording(FORMATS[kind](recording, tmp_path)))


@pytest.mark.slow
@pytest.mark.parametrize("name", names_in(SCENARIOS))
def test_no_shipped_flight_differs_from_itself(tmp_path, name):
    recording = flown(name)
    assert_same(recording, replace(recording, setpoints={}))
    assert_same(recording, replace(recording, setpoints={}, stages=()))
    for kind, write in FORMATS.items():
        (tmp_path / kind).mkdir()
        if kind != "tum" and "drone_1" not in recording.bodies:
            continue  # these readers know drones from rigid bodies by their names
        if kind == "tum" and "load" not in recording.bodies:
            continue
        assert_same(recording, read_recording(write(recording, tmp_path / kind)))
