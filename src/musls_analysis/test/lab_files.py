"""Files as laboratories write them, of recordings whose poses are known."""

from __future__ import annotations

import struct

import numpy as np
from scipy.spatial.transform import Rotation

from musls_analysis.comparison.errors import geodesic_error_rad
from musls_analysis.recordings.recording import PoseTrack, Recording
from musls_control.px4.frames import orientation_enu_ned, world_enu_ned
from musls_description.numerics.rotations import from_roll_pitch_yaw, roll_pitch_yaw

RATE_HZ = 50.0


def assert_same(read, expected, bodies=None, from_start=True):
    for body in bodies or expected.bodies:
        track, its = expected.bodies[body], read.bodies[body]
        assert len(its.time_s) == len(track.time_s)
        start_s = track.time_s[0] - its.time_s[0] if from_start else 0.0
        np.testing.assert_allclose(its.time_s + start_s, track.time_s, atol=1e-5)
        np.testing.assert_allclose(its.position_enu_m, track.position_enu_m, atol=2e-6)
        angle = geodesic_error_rad(its.orientation_wxyz, track.orientation_wxyz)
        assert angle.max() < 1e-5, body
    assert set(read.bodies) == set(bodies or expected.bodies)


def columns_of(recording, names=("load", "d1", "d2", "d3"), length=1.0, time=1.0, angle=1.0):
    """Header and rows (T, k) of a table with angles."""
    header, columns = ["t"], [time * recording.time_s[:, None]]
    for name, track in zip(names, recording.bodies.values(), strict=True):
        header += [f"{name}_{part}" for part in ("x", "y", "z", "roll", "pitch", "yaw")]
        columns += [length * track.position_enu_m, angle * roll_pitch_yaw(track.orientation_wxyz)]
    return header, np.hstack(columns)


def table_text(header, rows, separator=",", decimal="."):
    lines = [separator.join(f"{v:.9g}".replace(".", decimal) for v in row) for row in rows]
    return "\n".join([separator.join(header), *lines]) + "\n"


def scipy_rotation(q):
    return Rotation.from_quat(q[:, [1, 2, 3, 0]])


def vicon_lines(recording, rotations, unit="rad", sub_frames=1):
    """Of Tracker; `rotations` gives RX, RY, RZ of quaternions (T, 4)."""
    names = ["Frame", "Sub Frame", *["RX", "RY", "RZ", "TX", "TY", "TZ"] * len(recording.bodies)]
    heads = ["", "", *(c for b in recording.bodies for c in [f"Global Angle {b}:{b}", *[""] * 5])]
    units = ["", "", *[*[unit] * 3, *["mm"] * 3] * len(recording.bodies)]
    rows = np.hstack([
        np.column_stack([rotations(t.orientation_wxyz), 1e3 * t.position_enu_m])
        for t in recording.bodies.values()
    ])  # fmt: skip
    lines = ["Objects", f"{RATE_HZ:g}", *(",".join(cells) for cells in (heads, names, units))]
    for k, row in enumerate(rows):
        frame = [str(1 + k // sub_frames), str(k % sub_frames)]
        lines.append(",".join([*frame, *(f"{v:.9g}" for v in row)]))
    return lines


def motive_lines(recording, unit, quaternions=True):
    """Y up: world and body axes are turned about x."""
    names = list(recording.bodies)
    turn = ["X", "Y", "Z", "W"] if quaternions else ["X", "Y", "Z"]
    per_body = [*["Rotation"] * len(turn), *["Position"] * 3]
    width = len(per_body)
    kind = "Quaternion" if quaternions else "XYZ"
    first = ["Format Version", "1.23", "Take Name", "Take 1", "Rotation Type", kind]
    first += ["Length Units", {1.0: "Meters", 1e3: "Millimeters"}[unit]]
    lines = [
        first,
        [],
        ["", "Type", *["Rigid Body"] * (width * len(names)), "Marker"],
        ["", "Name", *(name for name in names for _ in range(width)), "load:Marker 001"],
        ["", "ID", *["01"] * (width * len(names)), "9"],
        ["", "", *per_body * len(names), "Position"],
        ["Frame", "Time (Seconds)", *[*turn, "X", "Y", "Z"] * len(names), "X"],
    ]
    y_up = Rotation.from_euler("x", -90, degrees=True)
    for k, time_s in enumerate(recording.time_s):
        row = [str(k), f"{time_s:.6f}"]
        for track in recording.bodies.values():
            turned = y_up * scipy_rotation(track.orientation_wxyz[k : k + 1]) * y_up.inv()
            angles = turned.as_quat() if quaternions else turned.as_euler("XYZ", degrees=True)
            place = y_up.apply(unit * track.position_enu_m[k])
            row += [f"{v:.9g}" for v in (*angles[0], *place)]
        lines.append([*row, "0.5"])
    return [",".join(cells) for cells in lines]


def ulog(track, path):
    """Smallest log with position and attitude, as the format's description has it."""

    def message(kind, body):
        return struct.pack("<HB", len(body), ord(kind)) + body

    formats = (
        b"vehicle_local_position:uint64_t timestamp;float x;float y;float z;",
        b"vehicle_attitude:uint64_t timestamp;float[4] q;",
    )
    data = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 0)
    data += message("B", bytes(40))
    data += b"".join(message("F", text) for text in formats)
    for k, text in enumerate(formats):
        data += message("A", struct.pack("<BH", 0, k) + text.split(b":")[0])
    places = world_enu_ned(track.position_enu_m)
    turns = orientation_enu_ned(track.orientation_wxyz)
    for time_s, place, turn in zip(track.time_s, places, turns, strict=True):
        us = round(1e6 * (time_s + 30.0))
        data += message("D", struct.pack("<HQ3f", 0, us, *place))
        data += message("D", struct.pack("<HQ4f", 1, us, *turn))
    path.write_bytes(data)
    return path


def circling(
    rate_hz: float = RATE_HZ,
    duration_s: float = 4.0,
    cable_m: float = 2.5,
    omega_rad_s: float = 1.0,
    outwards_rad: float = 0.04,
    yaw_rate_rad_s: float = 0.2,
) -> Recording:
    """A load and three drones that circle and lean as they have to, on cables of this length.

    The circle has a radius of 1 m. A drone leans by its acceleration over gravity, and away from
    its load.
    """
    t = np.arange(0.0, duration_s, 1.0 / rate_hz)
    angle = omega_rad_s * t
    centre = np.column_stack([np.cos(angle), np.sin(angle), 1.2 + 0.05 * np.sin(2.0 * angle)])
    inwards = -(omega_rad_s**2) * np.column_stack([np.cos(angle), np.sin(angle)])
    bodies = {}
    for i, body in enumerate(("load", "drone_1", "drone_2", "drone_3")):
        side = 2.0 * np.pi * i / 3.0
        aside = np.array([np.cos(side), np.sin(side)]) * (i > 0)
        place = centre + cable_m * np.array([*(0.4 * aside), 0.9 * (i > 0)])
        lean = inwards / 9.81 + outwards_rad * aside  # x, y of the body's z axis
        angles = np.column_stack([-lean[:, 1], lean[:, 0], yaw_rate_rad_s * t])
        bodies[body] = PoseTrack(t, place, from_roll_pitch_yaw(angles))
    return Recording(bodies)
