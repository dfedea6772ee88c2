"""A made-up flight of known errors, and a bag of it written by rosbags message by message."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_JAZZY)
STAGES = (
    ("spool_up", 2.0), ("take_off", 5.0), ("tension", 3.0), ("lift", 5.0), ("circle", 45.0),
    ("hold", 3.0), ("lower", 4.0), ("slacken", 2.0), ("land", 4.0), ("disarmed", 2.0),
)  # fmt: skip


def make(msgtype: str, *values, **fields):
    return STORE.types[msgtype](*values, **fields)


def header(time_ns: int, frame: str = "world"):
    stamp = make("builtin_interfaces/msg/Time", time_ns // 10**9, time_ns % 10**9)
    return make("std_msgs/msg/Header", stamp, frame)


def pose_message(time_ns: int, position, wxyz):
    w, x, y, z = map(float, wxyz)
    pose = make(
        "geometry_msgs/msg/Pose",
        make("geometry_msgs/msg/Point", *map(float, position)),
        make("geometry_msgs/msg/Quaternion", x, y, z, w),
    )
    return make("geometry_msgs/msg/PoseStamped", header(time_ns), pose)


def wrench_message(time_ns: int, frame: str, tension_n: float):
    vector = STORE.types["geometry_msgs/msg/Vector3"]
    wrench = make("geometry_msgs/msg/Wrench", vector(tension_n, 0.1, 0.2), vector(0.0, 0.0, 0.0))
    return make("geometry_msgs/msg/WrenchStamped", header(time_ns, frame), wrench)


def rotors_message(time_ns: int, drone: str, speeds):
    names = [f"{drone}_rotor_{i + 1}" for i in range(len(speeds))]
    none = np.empty(0)
    return make(
        "sensor_msgs/msg/JointState", header(time_ns), names, none, np.asarray(speeds), none
    )


def marker_message(time_ns: int, index: int, points):
    empty = np.empty(0, np.uint8)
    point = STORE.types["geometry_msgs/msg/Point"]
    image = make("sensor_msgs/msg/CompressedImage", header(0, ""), "", empty)
    mesh = make("visualization_msgs/msg/MeshFile", "", empty)
    origin = pose_message(0, (0, 0, 0), (1, 0, 0, 0)).pose
    scale = make("geometry_msgs/msg/Vector3", 0.01, 0.0, 0.0)
    colour = make("std_msgs/msg/ColorRGBA", 0.1, 0.1, 0.1, 1.0)
    return make(
        "visualization_msgs/msg/Marker", header(time_ns), "cables", index, 4, 0, origin, scale,
        colour, make("builtin_interfaces/msg/Duration", 0, 0), False,
        [point(*map(float, p)) for p in points], [], "", image, [], "", "", mesh, False,
    )  # fmt: skip


def string_message(text: str):
    return make("std_msgs/msg/String", text)


def write_bag(folder: Path, messages) -> Path:
    """Write (topic, log time [ns], message) in order; all topics are CDR."""
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connections = {}
        for topic, time_ns, message in messages:
            msgtype = message.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, msgtype, typestore=STORE)
            writer.write(connections[topic], time_ns, STORE.serialize_cdr(message, msgtype))
    return folder


def yaw_quaternion(yaw):
    yaw = np.asarray(yaw)
    zero = np.zeros_like(yaw)
    return np.stack([np.cos(yaw / 2), zero, zero, np.sin(yaw / 2)], axis=-1)


def flight(n: int = 3, rate_hz: float = 50.0, links: int = 15, seed: int = 1):
    """Take off, circle of 1.5 m at 0.3 m/s with drones on a cone, land; with lag and noise."""
    rng = np.random.default_rng(seed)
    edges = np.cumsum([0.0, *[d for _, d in STAGES]])
    t = np.arange(round(edges[-1] * rate_hz) + 1) / rate_hz
    knots = [0, 2, 7, 10, 15, 60, 63, 67, 69, 73, 75]
    load_z = np.interp(t, knots, [0.05, 0.05, 0.05, 0.05, 1, 1, 1, 0.05, 0.05, 0.05, 0.05])
    drone_z = np.interp(t, knots, [0.2, 0.2, 1.8, 2.35, 3.3, 3.3, 3.3, 2.35, 1.8, 0.2, 0.2])
    theta = np.clip(t - 15.0, 0.0, 45.0) * 2.0 * 2.0 * np.pi / 45.0 * 0.5 * 1.5
    center = np.stack([1.5 * np.cos(theta), 1.5 * np.sin(theta)], axis=-1)
    wanted = {"load": (np.column_stack([center, load_z]), yaw_quaternion(theta))}
    for i in range(n):
        angle = theta + 2 * np.pi * i / n
        spot = center + np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        facing = yaw_quaternion(angle + np.pi)
        wanted[f"drone_{i + 1}"] = (np.column_stack([spot, drone_z]), facing)
    actual = {}
    for body, (position, q) in wanted.items():
        swing = 0.02 * np.sin(2 * np.pi * 0.32 * t + rng.uniform(0, 6))[:, None] * (t > 10)[:, None]
        late = np.stack([np.interp(t - 0.15, t, c) for c in position.T], axis=-1)
        tilt = np.column_stack([np.ones_like(t), *rng.normal(0, 0.003, (2, len(t))), 0 * t])
        tilt[:, 1] += 0.06 * np.sin(2 * np.pi * 0.32 * t) * (t > 7)
        actual[body] = (late + swing * np.array([1.0, 0.7, 0.3]), _product(q, tilt))
    return SimpleNamespace(
        time_s=t, wanted=wanted, actual=actual, edges=edges, n=n, links=links,
        tension=_tension(t, n, rng), rotors=_rotors(t, n, rng),
    )  # fmt: skip


def _product(a, b):
    w1, x1, y1, z1 = a.T
    w2, x2, y2, z2 = b.T
    q = np.stack([
        w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2, w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
        w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2, w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
    ], axis=-1)  # fmt: skip
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def _tension(t, n, rng):
    base = np.interp(t, [0, 8, 9.5, 11, 63, 67, 68], [0.05, 0.1, 3, 6, 6, 5, 0.08])
    ripple = 1 + 0.25 * np.exp(-np.abs(t - 11.5)) * np.sin(20 * t)
    load = np.stack([base * ripple + rng.normal(0, 0.03, len(t)) for _ in range(n)])
    return np.stack([load, load + 0.17], axis=-1)  # (n, T, 2)


def _rotors(t, n, rng):
    base = np.interp(t, [0, 1, 2, 2.6, 10, 12, 66, 68, 73, 73.5], [0, 150, 150, 600, 610, 700, 700,
                                                                   610, 590, 0])  # fmt: skip
    return np.stack([base[:, None] * (1 + rng.normal(0, 0.015, (len(t), 4))) for _ in range(n)])


def flight_messages(f):
    """All messages of a flight that a reader needs, and twists which it has to skip."""
    ends, vector = ("load_end", "drone_end"), STORE.types["geometry_msgs/msg/Vector3"]
    for k, time_s in enumerate(f.time_s):
        ns = round(time_s * 1e9)
        for (name, _), start in zip(STAGES, f.edges, strict=False):
            if ns == round(start * 1e9):
                yield "/mission/stage", ns, string_message(name)
        twist = make("geometry_msgs/msg/Twist", vector(0.0, 0.0, 0.0), vector(0.0, 0.0, 0.0))
        for body, (position, q) in f.actual.items():
            if k % 10 == 0:
                p, o = f.wanted[body]
                yield f"/{body}/setpoint", ns, pose_message(ns, p[k], o[k])
            yield f"/{body}/pose", ns, pose_message(ns, position[k], q[k])
            yield (
                f"/{body}/twist", ns,
                make("geometry_msgs/msg/TwistStamped", header(ns), twist),
            )  # fmt: skip
        for i in range(f.n):
            cable = f"cable_{i + 1}"
            for end in (0, 1):
                frame = f"{cable}/{ends[end]}"
                message = wrench_message(ns, frame, float(f.tension[i, k, end]))
                yield f"/{cable}/tension", ns, message
            if k % 5 == 0:
                a, b = f.actual["load"][0][k], f.actual[f"drone_{i + 1}"][0][k]
                s = np.linspace(0, 1, f.links + 1)[:, None]
                slack = max(0.0, 2.42 - float(np.linalg.norm(b - a)))
                points = a + s * (b - a) - np.array([0, 0, 1]) * slack * 0.4 * s * (1 - s)
                yield f"/{cable}/shape", ns, marker_message(ns, i, points)
            yield f"/drone_{i + 1}/rotors", ns, rotors_message(ns, f"d{i}", f.rotors[i, k])
