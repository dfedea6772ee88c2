"""A recorded flight, read back by two independent readers, is the flight of the plant."""

import copy
import struct
from collections import defaultdict
from contextlib import closing
from types import SimpleNamespace

import mcap_ros2.decoder
import numpy as np
import pytest
import yaml
from mcap.reader import make_reader
from mcap.records import Chunk
from mcap.stream_reader import StreamReader
from rosbags.highlevel import AnyReader
from scipy.spatial.transform import Rotation
from standing_plant import session_of

from musls_control.reference import Reference
from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.system.system_files import load_system
from musls_sim.plants.dart.skeleton import build_skeleton
from musls_sim.plants.interface import PlantInputs
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.recording import BagRecorder

STEPS = 200
BUFFER_S = 0.25  # several full buffers and a rest
EVENTS = {33: ("motor_failed", "drone_1: rotor 2"), 150: ("cable_broken", "cable_1")}


def build_plant(name):
    """A plant that hangs from hovering drones, and rotor speeds that keep it there for a while."""
    system = load_system(name)
    n = system.n_drones
    azimuth = np.arange(n) * 2.0 * np.pi / n
    radius = 1.0 if n > 1 else 0.0
    drones = np.column_stack(
        [radius * np.cos(azimuth), radius * np.sin(azimuth), np.full(n, 3.2)]
    )  # fmt: skip
    hanging = hanging_equilibrium(system, drones)
    speed = []
    for drone, force, moment in zip(
        system.drones, hanging.drone_force_n, hanging.drone_moment_n_m, strict=True
    ):
        effect = []  # thrust and moments of each rotor for its squared speed
        for r in drone.rotors:
            k, (x, y, _) = r.thrust_coefficient_n_s2, r.position_m
            yaw = -k * r.moment_ratio_m if r.spin == "ccw" else k * r.moment_ratio_m
            effect.append([k, y * k, -x * k, yaw])
        wrench = [np.linalg.norm(force), *moment]
        speed.append(np.sqrt(np.linalg.lstsq(np.transpose(effect), wrench, rcond=None)[0]))
    return RigidLinksPlant(
        system, hanging.configuration, rotor_speed_rad_s=np.array(speed)
    ), np.array(speed)


def end_links(plant):
    """Rotations of each cable's first and last link, by DART."""
    skeleton = build_skeleton(plant.tree)
    skeleton.setPositions(plant.positions)
    return [
        [skeleton.getBodyNode(int(k)).getWorldTransform().rotation() for k in (first, drone - 1)]
        for first, drone in zip(plant.tree.first_link, plant.tree.drone, strict=True)
    ]


def pushes(step, n_drones):
    """Acceleration set-points of a step."""
    return np.outer(np.arange(1, n_drones + 1), [0.5, -1.0, 0.1 * step])


def fly(name, folder):
    """Fly with gusts and record; also keep what the plant's state was, by time."""
    plant, speed = build_plant(name)
    n = plant.system.n_drones
    inputs = PlantInputs.zeros(plant.system)
    inputs.rotor_command_rad_s[:] = speed
    truth, nodes, links, setpoints, stages = {}, {}, {}, [], []
    wanted = np.zeros((1 + n, 7))
    wanted[:, 3] = 1.0
    recorder = BagRecorder(folder, plant.system, step_period_s=plant.period_s, buffer_s=BUFFER_S)
    with closing(recorder):
        recorder.on_reference(0.0, Reference.rest([0.0, 0.0, 1.0, 0.0]), begin_s=0.0)
        for k in range(STEPS + 1):
            time = plant.time_s
            if k % 80 == 0:
                stages.append((k * 4_000_000, f"stage_{k}"))
            recorder.on_stage(time, stages[-1][1])
            if k in EVENTS:
                recorder.on_event(time, *EVENTS[k])
            if k >= 100 and k % 20 == 0:
                wanted[1, :3] += 0.1
            if k % 80 == 0:
                wanted[0, 2] += 0.2
            recorder.on_setpoint(time, wanted[:, :3], wanted[:, 3:])
            setpoints.append((k * 4_000_000, wanted.copy()))
            if k % recorder.every == 0:
                recorder.on_acceleration(time, pushes(k, n))
                recorder.observe(time, session_of(plant))
                truth[k * 4_000_000] = copy.deepcopy(plant.state)
                nodes[k * 4_000_000] = [plant.cable_nodes_enu_m(i) for i in range(n)]
                links[k * 4_000_000] = end_links(plant)
            inputs.wind_enu_m_s[:] = 10.0 * np.sin(0.05 * k), 5.0, 0.0
            plant.step(inputs)
    return SimpleNamespace(
        folder=folder, system=plant.system, truth=truth, nodes=nodes, links=links,
        setpoints=setpoints, stages=stages, recorder=recorder,
    )  # fmt: skip


def read_with_rosbags(folder):
    bag = defaultdict(list)
    with AnyReader([folder]) as reader:
        types = {c.topic: c.msgtype for c in reader.connections}
        for connection, time, raw in reader.messages():
            bag[connection.topic].append((time, reader.deserialize(raw, connection.msgtype)))
    return types, bag


def read_with_mcap(folder):
    bag = defaultdict(list)
    (path,) = folder.glob("*.mcap")
    with path.open("rb") as stream:
        reader = make_reader(
            stream, validate_crcs=True, decoder_factories=[mcap_ros2.decoder.DecoderFactory()]
        )
        types = {}
        for schema, channel, message, decoded in reader.iter_decoded_messages():
            types[channel.topic] = schema.name
            assert message.publish_time == message.log_time
            bag[channel.topic].append((message.log_time, decoded))
    return types, bag


@pytest.fixture(
    scope="module",
    params=["x500_solo", "x500_trio_unequal", "x500_hexa"],
)
def flight(request, tmp_path_factory):
    return fly(request.param, tmp_path_factory.mktemp("run") / "bag")


@pytest.fixture(scope="module", params=[read_with_rosbags, read_with_mcap])
def content(request, flight):
    return request.param(flight.folder)


def ns(stamp):
    return stamp.sec * 10**9 + stamp.nanosec


def xyz(v):
    return [v.x, v.y, v.z]


def wxyz(q):
    return [q.w, q.x, q.y, q.z]


def test_topics_and_types(flight, content):
    types, bag = content
    n = flight.system.n_drones
    bodies = ["load", *(f"drone_{i}" for i in range(1, n + 1))]
    expected = {
        "/clock": "rosgraph_msgs/msg/Clock",
        "/tf": "tf2_msgs/msg/TFMessage",
        "/mission/stage": "std_msgs/msg/String",
        "/events": "std_msgs/msg/String",
        "/load/reference": "geometry_msgs/msg/PoseStamped",
    }
    for body in bodies:
        expected[f"/{body}/pose"] = "geometry_msgs/msg/PoseStamped"
        expected[f"/{body}/setpoint"] = "geometry_msgs/msg/PoseStamped"
        expected[f"/{body}/twist"] = "geometry_msgs/msg/TwistStamped"
    for i in range(1, n + 1):
        expected[f"/drone_{i}/setpoint_accel"] = "geometry_msgs/msg/AccelStamped"
        expected[f"/drone_{i}/rotors"] = "sensor_msgs/msg/JointState"
        expected[f"/cable_{i}/tension"] = "geometry_msgs/msg/WrenchStamped"
        expected[f"/cable_{i}/tension_peak"] = "geometry_msgs/msg/WrenchStamped"
        expected[f"/cable_{i}/shape"] = "visualization_msgs/msg/Marker"
    assert types == expected
    assert flight.recorder.topics == expected
    assert set(bag) == set(expected)


def test_rates_and_stamps(flight, content):
    _, bag = content
    times = list(flight.truth)
    assert np.diff(times).tolist() == [20_000_000] * (STEPS // 5)
    for topic, received in bag.items():
        stamps = [time for time, _ in received]
        if topic.endswith("/tension"):
            assert stamps == [t for t in times for _ in range(2)]
        elif topic.endswith("/shape"):
            assert stamps == times[::5]
        elif topic == "/tf":  # of the bodies, and of the cables' ends with the shapes
            assert stamps == sorted([*times, *times[::5]])
        elif not topic.endswith(("/setpoint", "/stage", "/events")):
            assert stamps == times
        for time, m in received:
            if hasattr(m, "header"):
                assert ns(m.header.stamp) == time
    assert [ns(m.clock) for _, m in bag["/clock"]] == times


def test_state_is_the_plants_state(flight, content):
    _, bag = content
    bodies = ["load", *(f"drone_{i + 1}" for i in range(flight.system.n_drones))]
    for k, body in enumerate(bodies):
        for time, m in bag[f"/{body}/pose"]:
            state = flight.truth[time]
            assert m.header.frame_id == "world"
            assert xyz(m.pose.position) == state.position_enu_m[k].tolist()
            assert wxyz(m.pose.orientation) == state.orientation_wxyz[k].tolist()
        for time, m in bag[f"/{body}/twist"]:
            state = flight.truth[time]
            assert m.header.frame_id == "world"
            assert xyz(m.twist.linear) == state.velocity_enu_m_s[k].tolist()
            w, x, y, z = state.orientation_wxyz[k]
            omega = Rotation.from_quat([x, y, z, w]).inv().apply(xyz(m.twist.angular))
            np.testing.assert_allclose(omega, state.omega_body_rad_s[k], rtol=0, atol=1e-13)
    for time, m in bag["/tf"]:
        state = flight.truth[time]
        if m.transforms[0].child_frame_id.startswith("cable_"):
            continue
        assert [t.child_frame_id for t in m.transforms] == bodies
        for k, t in enumerate(m.transforms):
            assert (t.header.frame_id, ns(t.header.stamp)) == ("world", time)
            assert xyz(t.transform.translation) == state.position_enu_m[k].tolist()
            assert wxyz(t.transform.rotation) == state.orientation_wxyz[k].tolist()
    omega = np.array([s.omega_body_rad_s for s in flight.truth.values()])
    assert np.abs(omega).max() > 0.05, "the flight is too calm to tell the frames apart"


def test_cables_and_rotors_are_the_plants(flight, content):
    _, bag = content
    for i, cable in enumerate(flight.system.cables):
        name = f"cable_{i + 1}"
        for k, (time, m) in enumerate(bag[f"/{name}/tension"]):
            end = k % 2
            assert m.header.frame_id == f"{name}/{('load_end', 'drone_end')[end]}"
            assert xyz(m.wrench.force) == flight.truth[time].cable_force_n[i, end].tolist()
            assert xyz(m.wrench.torque) == [0.0, 0.0, 0.0]
        for time, m in bag[f"/{name}/shape"]:
            assert (m.header.frame_id, m.type, m.id) == ("world", 4, i + 1)
            assert m.scale.x >= 2.0 * cable.radius_m
            assert m.color.a == 1.0
            assert wxyz(m.pose.orientation) == [1.0, 0.0, 0.0, 0.0]
            assert [xyz(p) for p in m.points] == flight.nodes[time][i].tolist()
            assert len(m.points) == cable.links + 1
        for time, m in bag[f"/drone_{i + 1}/rotors"]:
            assert list(m.name) == ["rotor_1", "rotor_2", "rotor_3", "rotor_4"]
            assert list(m.velocity) == flight.truth[time].rotor_speed_rad_s[i].tolist()
            assert len(m.position) == len(m.effort) == 0
            assert m.header.frame_id == f"drone_{i + 1}"


def test_wrenches_can_be_placed_by_the_frames_that_they_name(flight, content):
    """The frame at an end stands where the cable ends, turned as the link there is in DART."""
    _, bag = content
    named = {m.header.frame_id for t in bag if t.endswith("/tension") for _, m in bag[t]}
    frames = defaultdict(dict)
    for time, m in bag["/tf"]:
        for t in m.transforms:
            frames[t.child_frame_id][time] = t.transform
    assert named <= set(frames)
    for i in range(flight.system.n_cables):
        nodes = flight.nodes
        for end, name in enumerate((f"cable_{i + 1}/load_end", f"cable_{i + 1}/drone_end")):
            assert len(frames[name]) >= 8 and frames[name].keys() <= nodes.keys()
            for time, frame in frames[name].items():
                joints = nodes[time][i]
                assert xyz(frame.translation) == joints[-end].tolist()
                turn = Rotation.from_quat(wxyz(frame.rotation), scalar_first=True)
                # About itself a link of a cable that is free to twist may be turned in any way.
                along = flight.links[time][i][end][:, 0]
                assert turn.as_matrix()[:, 0] == pytest.approx(along, abs=1e-9)


def test_setpoints_and_stages_at_their_changes(flight, content):
    _, bag = content
    assert [(time, m.data) for time, m in bag["/mission/stage"]] == flight.stages
    assert len(flight.stages) == 3
    bodies = ["load", *(f"drone_{i + 1}" for i in range(flight.system.n_drones))]
    for k, body in enumerate(bodies):
        expected, last = [], None
        for time, poses in flight.setpoints:
            if last is None or (poses[k] != last).any():
                last = poses[k]
                expected.append((time, last.tolist()))
        received = [
            (time, xyz(m.pose.position) + wxyz(m.pose.orientation))
            for time, m in bag[f"/{body}/setpoint"]
        ]
        assert received == expected
        assert len(expected) == {0: 3, 1: 7}.get(k, 1)


def test_acceleration_setpoints_come_back(flight, content):
    _, bag = content
    for i in range(flight.system.n_drones):
        for time, m in bag[f"/drone_{i + 1}/setpoint_accel"]:
            asked = pushes(time // 4_000_000, flight.system.n_drones)[i]
            assert m.header.frame_id == "world"
            assert xyz(m.accel.linear) == asked.tolist()
            assert xyz(m.accel.angular) == [0.0, 0.0, 0.0]


def test_events_come_back(content):
    _, bag = content
    assert [(time, m.data) for time, m in bag["/events"]] == [
        (132_000_000, "motor_failed: drone_1: rotor 2"), (600_000_000, "cable_broken: cable_1")
    ]  # fmt: skip


def test_file_is_in_the_order_of_time(flight):
    (path,) = flight.folder.glob("*.mcap")
    with path.open("rb") as stream:
        reader = make_reader(stream)
        messages = [(m.log_time, c.topic) for _, c, m in reader.iter_messages(log_time_order=False)]
        summary = reader.get_summary()
    times = [time for time, _ in messages]
    assert times == sorted(times)
    first = [topic for time, topic in messages if time == 0]
    assert first[:3] == ["/mission/stage", "/load/setpoint", "/drone_1/setpoint"]
    assert len(summary.chunk_indexes) >= 2, "several chunks were written"
    assert summary.statistics.message_count == len(messages)
    assert summary.statistics.message_start_time == 0
    assert summary.statistics.message_end_time == STEPS * 4_000_000


def test_indexes_point_at_the_messages(flight):
    """The readers used here scan the chunks; others (Foxglove, rosbag2) seek by these."""
    (path,) = flight.folder.glob("*.mcap")
    file = path.read_bytes()
    with path.open("rb") as stream:
        summary = make_reader(stream).get_summary()
    with path.open("rb") as stream:
        records = list(StreamReader(stream, emit_chunks=True).records)
    chunks = [r for r in records if isinstance(r, Chunk)]
    assert len(chunks) == len(summary.chunk_indexes)
    indexed = defaultdict(int)
    for index, chunk in zip(summary.chunk_indexes, chunks, strict=True):
        start, end = index.chunk_start_offset, index.chunk_start_offset + index.chunk_length
        assert file[start] == 0x06
        assert index.chunk_length == 9 + int.from_bytes(file[start + 1 : start + 9], "little")
        assert chunk.compression == index.compression == ""
        data = chunk.data
        assert index.uncompressed_size == len(data)
        assert index.compressed_size == len(chunk.data)
        times = []
        for channel, offset in index.message_index_offsets.items():
            assert end <= offset < end + index.message_index_length
            size = int.from_bytes(file[offset + 1 : offset + 9], "little")
            entries = np.frombuffer(file[offset + 15 : offset + 9 + size], "<u8").reshape(-1, 2)
            assert file[offset] == 0x07
            assert struct.unpack_from("<HI", file, offset + 9) == (channel, entries.nbytes)
            for time, place in entries.tolist():
                opcode, _, of_channel, _, log_time = struct.unpack_from("<BQHIQ", data, place)
                assert (opcode, of_channel, log_time) == (0x05, channel, time)
                times.append(time)
            indexed[channel] += len(entries)
        assert index.message_start_time == chunk.message_start_time == min(times)
        assert index.message_end_time == chunk.message_end_time == max(times)
    assert indexed == summary.statistics.channel_message_counts


def test_part_of_the_flight_can_be_read(flight):
    with AnyReader([flight.folder]) as reader:
        connections = [c for c in reader.connections if c.topic == "/cable_1/shape"]
        part = reader.messages(connections, start=300_000_000, stop=500_000_000)
        assert [time for _, time, _ in part] == [300_000_000, 400_000_000]


def test_metadata_counts_and_qos(flight, content):
    _, bag = content
    info = yaml.safe_load((flight.folder / "metadata.yaml").read_text())
    info = info["rosbag2_bagfile_information"]
    counts = {
        t["topic_metadata"]["name"]: t["message_count"] for t in info["topics_with_message_count"]
    }
    assert counts == {topic: len(received) for topic, received in bag.items()}
    assert info["message_count"] == sum(counts.values()) == flight.recorder.messages
    assert info["storage_identifier"] == "mcap"
    assert info["duration"]["nanoseconds"] == STEPS * 4_000_000
    assert info["starting_time"]["nanoseconds_since_epoch"] == 0
    assert (flight.folder / info["relative_file_paths"][0]).is_file()
    for entry in info["topics_with_message_count"]:
        meta = entry["topic_metadata"]
        (profile,) = meta["offered_qos_profiles"]
        latched = meta["name"].endswith(("/setpoint", "/stage", "/events"))
        assert profile["durability"] == ("transient_local" if latched else "volatile")
        assert profile["reliability"] == "reliable"
        assert meta["serialization_format"] == "cdr"
        assert meta["type_description_hash"].startswith("RIHS01_")
