"""Contents of a recording, body by body, and export of recordings to other formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.recordings.recording import PoseTrack, Recording, SignalTrack, interpolated
from musls_description.config.errors import ConfigError
from musls_description.numerics.rotations import roll_pitch_yaw, rotate
from musls_sim.recording.messages import WORLD, serialize, stamped, string, types
from musls_sim.recording.signals import STAGE, qos


@dataclass(frozen=True)
class BodyContents:
    """Recorded quantities of one body.

    Attributes:
        samples: Poses that are left after reading.
        rate_hz: Sampling rate, from the median distance of samples.
        longest_gap_s: Largest distance of two samples.
        height_m: Lowest and highest z.
        fastest_m_s: Speed that a hundredth of the samples exceeds.
        tilt_deg: Median tilt of its z axis; NaN of a place without attitude.
    """

    body: str
    samples: int
    rate_hz: float
    start_s: float
    end_s: float
    longest_gap_s: float
    height_m: tuple[float, float]
    fastest_m_s: float
    tilt_deg: float
    has_setpoint: bool


def contents(recording: Recording) -> list[BodyContents]:
    """Recorded quantities of each body."""
    return [_contents(recording, body, track) for body, track in recording.bodies.items()]


def _contents(recording: Recording, body: str, track: PoseTrack) -> BodyContents:
    steps_s = np.diff(track.time_s)
    steps_m = np.linalg.norm(np.diff(track.position_enu_m, axis=0), axis=1)
    z = track.position_enu_m[:, 2]
    up = rotate(track.orientation_wxyz, np.array([0.0, 0.0, 1.0]))[:, 2]
    return BodyContents(
        body=body,
        samples=len(track.time_s),
        rate_hz=1.0 / float(np.median(steps_s)) if len(steps_s) else np.nan,
        start_s=float(track.time_s[0]),
        end_s=float(track.time_s[-1]),
        longest_gap_s=float(steps_s.max(initial=0.0)),
        height_m=(float(z.min()), float(z.max())),
        fastest_m_s=float(np.quantile(steps_m / steps_s, 0.99)) if len(steps_s) else np.nan,
        tilt_deg=float(np.degrees(np.arccos(np.clip(np.median(up), -1.0, 1.0)))),
        has_setpoint=body in recording.setpoints,
    )


# ---------- In other formats


def write_tum(recording: Recording, out: Path) -> None:
    """Write a folder with a file NAME.tum for each body: time, x, y, z, qx, qy, qz, qw.

    Raises:
        ConfigError: A body has no attitude.
    """
    for body, track in recording.bodies.items():
        if not track.has_attitude:
            raise ConfigError(f"tum needs attitudes, that of {body} is unknown: write csv or mcap")
    out.mkdir(parents=True)
    for body, track in recording.bodies.items():
        q = track.orientation_wxyz[:, [1, 2, 3, 0]]
        rows = np.column_stack([track.time_s, track.position_enu_m, q])
        np.savetxt(out / f"{body}.tum", rows, ["%.9f", *["%.9g"] * 7])


def write_csv(recording: Recording, out: Path) -> None:
    """Write a table with a row for each time of the load (or first body), see formats/columns.

    Poses of the others are interpolated; set-points are held. Bodies that a row lacks are NaN.
    """
    time_s = recording.time_s
    columns = {"t": time_s}
    for body, track in recording.bodies.items():
        prefix = body.replace("drone_", "d")
        poses = track.at(time_s)
        columns |= _columns(prefix, ("x", "y", "z"), poses.position_enu_m)
        if track.has_attitude:
            angles = roll_pitch_yaw(poses.orientation_wxyz)
            columns |= _columns(prefix, ("roll", "pitch", "yaw"), angles)
        if body in recording.setpoints:
            setpoint = recording.setpoints[body].held_at(time_s)
            yaw = roll_pitch_yaw(setpoint.orientation_wxyz)[:, 2]
            columns |= _columns(f"{prefix}_des", ("x", "y", "z"), setpoint.position_enu_m)
            columns[f"{prefix}_des_yaw"] = yaw
    table = np.column_stack(list(columns.values()))
    formats = ["%.9f", *["%.9g"] * (table.shape[1] - 1)]
    np.savetxt(out, table, formats, ",", header=",".join(columns), comments="")


def columns_of(recording: Recording) -> dict[str, np.ndarray]:
    """All that a recording knows as columns with a row for each time of the load, or first body.

    Names are those of the arrays with the component behind: `load.position_enu_m.x`,
    `cable_1.tension_n.2`. What was recorded at other times is interpolated, set-points and stages
    are held; quantities whose size changes, such as shapes of cables, are left out.
    """
    time_s = recording.time_s
    columns: dict[str, np.ndarray] = {}
    for name in recording.bodies:
        body = recording.body(name)
        pose = body.pose.at(time_s)
        columns |= _parts(f"{name}.position_enu_m", pose.position_enu_m)
        if body.pose.has_attitude:
            columns |= _parts(f"{name}.orientation_wxyz", pose.orientation_wxyz)
        if body.twist is not None:
            twist = body.twist.at(time_s)
            columns |= _parts(f"{name}.velocity_enu_m_s", twist.velocity_enu_m_s)
            columns |= _parts(f"{name}.omega_body_rad_s", twist.omega_body_rad_s)
        if body.setpoint is not None:
            setpoint = body.setpoint.held_at(time_s)
            columns |= _parts(f"{name}.setpoint.position_enu_m", setpoint.position_enu_m)
            columns |= _parts(f"{name}.setpoint.orientation_wxyz", setpoint.orientation_wxyz)
    for name, cable in recording.cables.items():
        tension_n = interpolated(time_s, cable.time_s, cable.tension_n)
        columns |= _parts(f"{name}.tension_n", tension_n)
    signals = {
        "rotors": recording.rotors,
        "battery": recording.batteries,
        "wrench": recording.wrenches,
        "setpoint": recording.setpoint_accelerations,
    }
    for what, tracks in signals.items():
        for name, track in tracks.items():
            columns |= _signal(f"{name}.{what}", track, time_s)
    for owner, tracks in recording.signals.items():
        for name, track in tracks.items():
            columns |= _signal(f"{owner}.{name}", track, time_s)
    if recording.stages:
        begins = [stage.start_s for stage in recording.stages]
        row = np.clip(np.searchsorted(begins, time_s, side="right") - 1, 0, None)
        columns["stage"] = np.array([stage.name for stage in recording.stages], object)[row]
    return columns


def _signal(name: str, track: SignalTrack, time_s: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of a signal; none of those whose shape changes, or that are no numbers."""
    columns: dict[str, np.ndarray] = {}
    for column, values in track.columns.items():
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiu" and len(values):
            rows = values.reshape(len(values), -1)
            at = interpolated(time_s, track.time_s, rows).reshape(-1, *values.shape[1:])
            columns |= _parts(f"{name}.{column}", at)
    return columns


def _parts(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """A column for each component of an array (T, ...): x, y, z for three, else numbers from 1.

    Of a quaternion w, x, y, z.
    """
    if values.ndim == 1:
        return {name: values}
    flat = values.reshape(len(values), -1)
    count = flat.shape[1]
    words = "wxyz" if name.endswith("wxyz") else "xyz" if count == 3 else ""
    parts = words or [str(k) for k in range(1, count + 1)]
    return {f"{name}.{part}": column for part, column in zip(parts, flat.T, strict=True)}


def _columns(prefix: str, names: tuple[str, ...], values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{prefix}_{name}": column for name, column in zip(names, values.T, strict=True)}


def write_mcap(recording: Recording, out: Path) -> None:
    """Write a rosbag2 bag (MCAP) with poses, set-points and stages on the topics of this project.

    Times are relative to the first sample, since ROS does not allow negative stamps.
    """
    from rosbags.rosbag2 import StoragePlugin, Writer

    messages = sorted(_messages(recording), key=lambda message: message[0])
    with Writer(out, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connections: dict[str, Any] = {}
        for time_ns, topic, message in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(
                    topic, message.__msgtype__, typestore=types(), offered_qos_profiles=[qos(topic)]
                )
            writer.write(connections[topic], time_ns, serialize(message))


def _messages(recording: Recording) -> Iterator[tuple[int, str, Any]]:
    """Time [ns], topic and message of all that is written."""
    start_s = min(0.0, recording.start_s)

    def nanoseconds(time_s: float) -> int:
        return round(1e9 * (time_s - start_s))

    for name, tracks in (("pose", recording.bodies), ("setpoint", recording.setpoints)):
        for body, track in tracks.items():
            for time_s, position, turn in zip(
                track.time_s, track.position_enu_m, track.orientation_wxyz, strict=True
            ):
                time_ns = nanoseconds(max(time_s, start_s))
                message = stamped(
                    "geometry_msgs/msg/PoseStamped",
                    time_ns,
                    WORLD,
                    pose__position=position,
                    pose__orientation=turn,
                )
                yield time_ns, f"/{body}/{name}", message
    for stage in recording.stages:
        yield nanoseconds(max(stage.start_s, start_s)), STAGE, string(stage.name)


FORMATS: Mapping[str, Callable[[Recording, Path], None]] = {
    "mcap": write_mcap,
    "csv": write_csv,
    "tum": write_tum,
}


def write(recording: Recording, kind: str, out: Path) -> None:
    """Write a recording as "mcap" (folder), "csv" (file) or "tum" (folder).

    Raises:
        ConfigError: There is something with that name.
    """
    if out.exists():
        raise ConfigError(f"{out} exists; choose another name")
    FORMATS[kind](recording, out)
