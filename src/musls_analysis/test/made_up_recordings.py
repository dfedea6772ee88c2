"""Flights whose errors, lags and gaps are known, as recordings and as files of every format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from made_up_flight import STORE, header, make
from rosbags.rosbag2 import StoragePlugin, Writer

from musls_analysis.recordings.recording import PoseTrack, RecordedStage, Recording
from musls_control.trajectories import Circle, Engage, Shm
from musls_description.hanging.cone import Cone
from musls_description.numerics.rotations import from_roll_pitch_yaw, roll_pitch_yaw

TRAJECTORIES = {"circle": Circle, "shm": Shm, "engage": Engage}
SETPOINT_PERIOD_S = 0.2


def poses(load: np.ndarray, time_s: np.ndarray, turn_rad: float = 0.0) -> dict[str, PoseTrack]:
    """Tracks of load and three drones on the cone, from x, y, z, yaw of the load (T, 4)."""
    cone = Cone()
    places, yaws = cone.poses(load[:, :3], load[:, 3], 3)
    rows = {"load": (load[:, :3], load[:, 3])}
    rows |= {f"drone_{i + 1}": (places[:, i], yaws[:, i]) for i in range(3)}
    level = np.zeros((len(load), 2))
    return {
        body: PoseTrack(time_s, p, from_roll_pitch_yaw(np.column_stack([level, yaw + turn_rad])))
        for body, (p, yaw) in rows.items()
    }


def flight(
    kind: str,
    repetitions: int = 2,
    rate_hz: float = 50.0,
    start_s: float = 7.0,
    delay_s: float = 0.0,
    shift_m: tuple[float, float, float] = (0.0, 0.0, 0.0),
    turn_rad: float = 0.0,
    **fields: float | tuple[float, float],
) -> Recording:
    """A stage between two others, flown exactly but for a delay, a shift and a turn.

    `fields` are those of its trajectory.
    """
    trajectory = TRAJECTORIES[kind](repetitions=repetitions, **fields)
    duration_s = trajectory.duration_s
    t = np.arange(-2.0, duration_s + 2.0, 1.0 / rate_hz)
    sent = np.arange(-2.0, duration_s + 2.0, SETPOINT_PERIOD_S)

    def at(time_s):
        return trajectory.pose(np.clip(time_s, 0.0, duration_s))

    flown = trajectory.pose(t - delay_s) if kind != "engage" else at(t - delay_s)
    bodies = poses(flown, t + start_s, turn_rad)
    bodies = {
        b: PoseTrack(k.time_s, k.position_enu_m + shift_m, k.orientation_wxyz)
        for b, k in bodies.items()
    }
    stages = (
        RecordedStage("lift", start_s - 2.0, start_s),
        RecordedStage(kind, start_s, start_s + duration_s),
        RecordedStage("lower", start_s + duration_s, start_s + duration_s + 2.0),
    )
    setpoints = {b: k.changes() for b, k in poses(at(sent), sent + start_s).items()}
    return Recording(bodies, setpoints, stages=stages, source=f"made-up {kind}")


def angles(track: PoseTrack) -> np.ndarray:
    """x, y, z, roll, pitch, yaw (T, 6)."""
    return np.hstack([track.position_enu_m, roll_pitch_yaw(track.orientation_wxyz)])


def table(recording: Recording) -> tuple[np.ndarray, dict, dict]:
    """Times, measured and held set-points (T, 6) by body, where there is a set-point."""
    time_s = recording.bodies["load"].time_s
    keep = time_s >= recording.setpoints["load"].time_s[0]
    measured = {b: angles(k)[keep] for b, k in recording.bodies.items()}
    held = {b: angles(k.held_at(time_s[keep])) for b, k in recording.setpoints.items()}
    return time_s[keep], measured, held


def excerpt_lines(recording: Recording) -> list[str]:
    parts = ("x", "y", "z", "roll", "pitch", "yaw")
    names = ["t", *(f"load_des_{k}" for k in ("x", "y", "z", "yaw"))]
    names += [f"{p}_{k}" for p in ("load", "d1", "d2", "d3") for k in parts]
    time_s, measured, held = table(recording)
    rows = np.column_stack([time_s, held["load"][:, [0, 1, 2, 5]], *measured.values()])
    return [",".join(names), *(",".join(f"{v:.9g}" for v in row) for row in rows)]


def log_rows(recording: Recording) -> np.ndarray:
    """The 95 columns; those that no reader needs hold 99."""
    time_s, measured, held = table(recording)
    rows = np.full((len(time_s), 95), 99.0)
    rows[:, 0] = time_s
    for body, base in {"load": 1, "drone_1": 35, "drone_2": 55, "drone_3": 75}.items():
        rows[:, base : base + 6] = held[body]
        rows[:, base + 6 : base + 12] = measured[body]
    return rows


def log_lines(rows: np.ndarray) -> list[str]:
    return [" ".join(f"{v:.9g}" for v in row) for row in rows]


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def tf_message(time_ns: int, transforms):
    """A TFMessage of (parent, child, position, wxyz)."""
    stamped = []
    for parent, child, p, (w, x, y, z) in transforms:
        transform = make(
            "geometry_msgs/msg/Transform",
            make("geometry_msgs/msg/Vector3", *map(float, p)),
            make("geometry_msgs/msg/Quaternion", float(x), float(y), float(z), float(w)),
        )
        stamped.append(
            make("geometry_msgs/msg/TransformStamped", header(time_ns, parent), child, transform)
        )
    return make("tf2_msgs/msg/TFMessage", stamped)


def tf_messages(recording: Recording, frames: dict[str, str], one_each: bool = False):
    """(topic, time [ns], message) of a recording whose bodies share their times."""
    for k, time_s in enumerate(recording.bodies["load"].time_s):
        ns = round(time_s * 1e9)
        rows = [
            ("world", frames[body], track.position_enu_m[k], track.orientation_wxyz[k])
            for body, track in recording.bodies.items()
            if body in frames
        ]
        for part in [[row] for row in rows] if one_each else [rows]:
            yield "/tf", ns, tf_message(ns, part)


def write_bag(folder: Path, messages, storage: StoragePlugin = StoragePlugin.MCAP) -> Path:
    with Writer(folder, version=9, storage_plugin=storage) as writer:
        connections = {}
        for topic, ns, message in messages:
            msgtype = message.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, msgtype, typestore=STORE)
            writer.write(connections[topic], ns, STORE.serialize_cdr(message, msgtype))
    return folder
