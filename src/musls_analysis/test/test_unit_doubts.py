"""Units, axes and rows that a file does not say rightly: asked about by physics, or told."""

from pathlib import Path

import numpy as np
import pytest
from lab_files import (
    circling,
    columns_of,
    motive_lines,
    scipy_rotation,
    table_text,
    ulog,
    vicon_lines,
)
from made_up_recordings import write_lines

from musls_analysis.recordings.options import ReadOptions
from musls_analysis.recordings.readers import read_recording
from musls_description.config.errors import ConfigError

FLIGHTS = Path(__file__).parents[4] / "shared"


def written(folder, recording, quaternions=False, **factors):
    """A table of a recording in other units."""
    header, rows = columns_of(recording, **factors)
    if quaternions:
        header, columns = ["t"], [rows[:, :1]]
        for name, track in recording.bodies.items():
            header += [f"{name}_{part}" for part in ("x", "y", "z", "qw", "qx", "qy", "qz")]
            places = factors.get("length", 1.0) * track.position_enu_m
            columns += [places, track.orientation_wxyz]
        rows = np.hstack(columns)
    path = folder / "take.csv"
    path.write_text(table_text(header, rows))
    return path


def check_same(path, recording, units):
    read = read_recording(path, ReadOptions(units=units))
    for body, track in recording.bodies.items():
        np.testing.assert_allclose(
            read.bodies[body].position_enu_m, track.position_enu_m, atol=1e-5
        )
        np.testing.assert_allclose(read.bodies[body].time_s, track.time_s, atol=1e-5)
    return read


@pytest.mark.parametrize("quaternions", [False, True])
@pytest.mark.parametrize("rate_hz", [20.0, 50.0, 240.0, 300.0, 500.0, 1000.0])
def test_milliseconds_are_asked_about_at_any_rate(tmp_path, rate_hz, quaternions):
    recording = circling(rate_hz, 2.0)
    path = written(tmp_path, recording, quaternions, time=1e3)
    with pytest.raises(
        ConfigError, match=r"is the time in seconds or in ms\? Say --units ms \(or s"
    ):
        read_recording(path)
    check_same(path, recording, ["ms"])


@pytest.mark.parametrize("omega_rad_s", [0.2, 0.3, 0.5])
def test_small_angles_in_degrees_are_asked_about(tmp_path, omega_rad_s):
    """All below 1.6, so that they could be radians, but for what the drones would do then."""
    recording = circling(
        duration_s=10.0, omega_rad_s=omega_rad_s, outwards_rad=0.0, yaw_rate_rad_s=0.01
    )
    path = written(tmp_path, recording, angle=180.0 / np.pi)
    asked = r"\(as a lean of .* does\): are angles in degrees\? Say --units deg"
    with pytest.raises(ConfigError, match=asked):
        read_recording(path)
    check_same(path, recording, ["deg"])
    warnings = check_same(path, recording, ["rad"]).warnings
    assert any("are its units (--units) right?" in line for line in warnings)


@pytest.mark.parametrize(
    ("length", "cable_m", "likely", "also"),
    [
        (1e3, 2.5, "mm", "cm"),
        (1e3, 0.4, "mm", "cm"),
        (1e2, 2.5, "cm", None),
        (1e2, 6.0, "cm", None),
    ],
)
def test_lengths_name_all_units_that_they_may_be_in(tmp_path, length, cable_m, likely, also):
    recording = circling(cable_m=cable_m)
    path = written(tmp_path, recording, length=length)
    with pytest.raises(ConfigError) as error:
        read_recording(path)
    choices = f"Say --units {likely}" + (f" or --units {also}" if also else "")
    assert choices in str(error.value), error.value
    check_same(path, recording, [likely])


def test_two_wrong_units_are_told_together(tmp_path):
    recording = circling(500.0, 2.0)
    path = written(tmp_path, recording, quaternions=True, time=1e3, length=1e3)
    with pytest.raises(ConfigError, match=r"--units ms,mm"):
        read_recording(path)
    check_same(path, recording, ["ms", "mm"])


@pytest.mark.parametrize("quaternions", [False, True])
@pytest.mark.parametrize("rate_hz", [5.0, 20.0, 100.0, 1000.0])
def test_a_flight_in_si_units_is_not_doubted(tmp_path, rate_hz, quaternions):
    recording = circling(rate_hz, 10.0)
    assert check_same(written(tmp_path, recording, quaternions), recording, []).warnings == ()


@pytest.mark.skipif(not FLIGHTS.is_dir(), reason="recorded flights are not in the repository")
@pytest.mark.parametrize("angle", [1.0, 180.0 / np.pi])
def test_recorded_flights_are_doubted_in_degrees_alone(tmp_path, angle):
    files = sorted(FLIGHTS.glob("flights*/*.csv"))
    assert files
    for file in files:
        recording = read_recording(file)
        assert not any("units" in line for line in recording.warnings)
        if angle != 1.0:
            with pytest.raises(ConfigError, match=r"--units deg"):
                read_recording(written(tmp_path, recording, angle=angle))


# ---------- Motive and Vicon


def test_motive_with_z_up_is_asked_about(tmp_path):
    recording = circling()
    lines = motive_lines(recording, 1.0)
    first = next(k for k, line in enumerate(lines) if line.startswith("Frame")) + 1
    for k in range(first, len(lines)):
        cells = lines[k].split(",")
        for begin in range(2, len(cells) - 1, 7):
            for at in (begin, begin + 4):  # x, z, -y to x, y, z
                x, z, y = cells[at : at + 3]
                cells[at : at + 3] = [x, f"{-float(y):.9g}", z]
        lines[k] = ",".join(cells)
    path = write_lines(tmp_path / "take.csv", lines)
    with pytest.raises(ConfigError, match=r"does z point up\? Say --axes z-up"):
        read_recording(path)
    read = read_recording(path, ReadOptions(axes="z-up"))
    for body, track in recording.bodies.items():
        np.testing.assert_allclose(
            read.bodies[body].position_enu_m, track.position_enu_m, atol=1e-5
        )
    cells = lines[0].split(",")
    cells[-1] = "Furlongs"
    with pytest.raises(ConfigError, match=r"unit Furlongs of length: must be one of m, cm, mm, in"):
        read_recording(write_lines(tmp_path / "odd.csv", [",".join(cells), *lines[1:]]))


def helical(q):
    return scipy_rotation(q).as_rotvec()


def vicon_read(folder, lines, recording, kept=None):
    read = read_recording(write_lines(folder / "take.csv", lines))
    for body, track in recording.bodies.items():
        expected = track if kept is None else track.part(kept)
        its = read.bodies[body]
        np.testing.assert_allclose(its.position_enu_m, expected.position_enu_m, atol=1e-5)
        np.testing.assert_allclose(its.time_s - expected.time_s, its.time_s[0], atol=1e-5)
        q, wanted = its.orientation_wxyz, expected.orientation_wxyz
        np.testing.assert_allclose(np.abs(np.sum(q * wanted, axis=1)), 1.0, atol=1e-8)
    return read


def scaled_columns(lines, chosen, factor, unit):
    """Vicon's lines with some columns in another unit; the fifth line has the units."""
    cells = [line.split(",") for line in lines]
    for k in chosen:
        cells[4][k] = unit
        for row in cells[5:]:
            row[k] = f"{factor * float(row[k]):.12g}"
    return [",".join(row) for row in cells]


def test_vicon_units_count_by_column(tmp_path):
    recording = circling()
    lines = vicon_lines(recording, helical)
    metres = scaled_columns(lines, [11, 12, 13], 1e-3, "m")
    assert "mm" in vicon_read(tmp_path, metres, recording).notation
    degrees = scaled_columns(lines, [14, 15, 16], 180.0 / np.pi, "deg")
    vicon_read(tmp_path, degrees, recording)
    every = [k for body in range(4) for k in range(5 + 6 * body, 8 + 6 * body)]
    assert (
        "in,"
        in vicon_read(
            tmp_path, scaled_columns(lines, every, 1.0 / 25.4, "inches"), recording
        ).notation
    )
    with pytest.raises(ConfigError, match="unit ell of length: must be one of"):
        vicon_read(tmp_path, scaled_columns(lines, [5], 1.0, "ell"), recording)


def test_a_damaged_sub_frame_changes_no_other_row(tmp_path):
    recording = circling()
    for sub_frames, bad in ((1, "57"), (2, "9"), (5, "-1"), (5, "2.5")):
        lines = vicon_lines(recording, helical, sub_frames=sub_frames)
        cells = lines[100].split(",")
        lines[100] = ",".join([cells[0], bad, *cells[2:]])
        kept = np.arange(len(recording.time_s)) != 95
        read = vicon_read(tmp_path, lines, recording, kept)
        assert "1 row of a sub-frame that others do not have dropped" in read.warnings


def test_a_header_in_the_middle_of_vicons_rows(tmp_path):
    recording = circling()
    lines = vicon_lines(recording, helical)
    for header in (lines[:5], ["", *lines[:5]], lines[2:5], lines[3:5]):
        vicon_read(tmp_path, [*lines[:75], *header, *lines[75:]], recording)
    again = vicon_read(tmp_path, [*lines, "", *lines], recording)
    assert "200 rows below line 210, another header, left out" in again.warnings


def test_global_angle_between_vicons_names_and_columns(tmp_path):
    recording = circling()
    lines = vicon_lines(recording, helical)
    plain = lines[2].replace("Global Angle ", "")
    between = ",".join(["", "", *["Global Angle", *[""] * 5] * 4])
    vicon_read(tmp_path, [*lines[:2], plain, between, *lines[3:]], recording)
    split = plain.split(",")
    for k in range(2, len(split), 6):  # rotations and translations below names of their own
        split[k : k + 4] = [f"Global Angle {split[k]}", "", "", split[k]]
    vicon_read(tmp_path, [*lines[:2], ",".join(split), *lines[3:]], recording)


# ---------- Logs of PX4


def messages_of(data):
    """Head of a log, and its messages."""
    at, parts = 16, []
    while at < len(data):
        end = at + 3 + int.from_bytes(data[at : at + 2], "little")
        parts.append(data[at:end])
        at = end
    return data[:16], parts


@pytest.mark.parametrize("change", ["swapped", "repeated", "reversed"])
def test_times_of_a_log_that_are_out_of_order(tmp_path, change):
    pytest.importorskip("pyulog")
    track = circling().bodies["drone_1"]
    path = ulog(track, tmp_path / "drone_1.ulg")
    head, parts = messages_of(path.read_bytes())
    rows = parts[5:]
    if change == "swapped":
        rows[40:42], rows[100:102] = rows[100:102], rows[40:42]
    elif change == "repeated":
        rows[40:40] = rows[38:40] * 3
    else:
        rows = rows[::-1]
    path.write_bytes(head + b"".join([*parts[:5], *rows]))
    read = read_recording(path)
    np.testing.assert_allclose(
        read.bodies["drone_1"].position_enu_m, track.position_enu_m, atol=1e-6
    )
    assert any("sorted" in w or "at the time of another" in w for w in read.warnings)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data, at: data[:at] + data[at + 7 :],
        lambda data, at: data[:at] + bytes(50) + data[at + 50 :],
        lambda data, at: data[:at] + b"\xff" * 50 + data[at + 50 :],
        lambda data, at: data[:at] + b"\x12\x34\x56" + data[at:],
    ],
)
def test_a_log_damaged_in_the_middle_keeps_both_ends(tmp_path, damage):
    pytest.importorskip("pyulog")
    track = circling().bodies["drone_1"]
    path = ulog(track, tmp_path / "drone_1.ulg")
    data = path.read_bytes()
    path.write_bytes(damage(data, len(data) // 2))
    read = read_recording(path)
    assert len(read.bodies["drone_1"].time_s) >= len(track.time_s) - 4
    assert any("bytes of the log are damaged" in line for line in read.warnings)
    assert read.bodies["drone_1"].position_enu_m[-1] == pytest.approx(track.position_enu_m[-1])
