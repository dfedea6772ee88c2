"""The bytes made in bulk are those of rosbags' serialiser, message by message."""

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from musls_description.library import load_system
from musls_sim.recording import messages, signals
from musls_sim.recording import messages as message_types
from musls_sim.recording.recorder import RowStore
from musls_sim.recording.rows import merge, message_record, probe_row, render_rows, row_template

STORE = get_typestore(Stores.ROS2_JAZZY)

KINDS = {
    "state": (signals.state_messages, signals.published_columns),
    "shape": (signals.shape_messages, signals.shape_columns),
    "setpoint": (signals.setpoint_messages, signals.setpoint_columns),
}


class Buffer(RowStore):
    """Rows that are rendered and then forgotten."""

    def __init__(self, template, columns):
        super().__init__(columns)
        self.template = template

    def render(self, wanted=None):
        rendered = render_rows(self.template, self.stamps_ns(), self.columns(), wanted)
        self.forget()
        return rendered


def make_buffer(kind, system_name):
    system = load_system(system_name)
    build, columns = (part(system) for part in KINDS[kind])
    names = dict.fromkeys(topic for topic, _ in probe_row(build, columns)[0])
    channel_of = {topic: k for k, topic in enumerate(names, start=1)}
    buffer = Buffer(row_template(build, columns, channel_of), columns)
    return build, columns, channel_of, buffer


def expected_row(build, channel_of, stamp_ns, row):
    time = messages.stamp(stamp_ns // 10**9, stamp_ns % 10**9)
    return [
        message_record(
            channel_of[topic], stamp_ns, bytes(STORE.serialize_cdr(m, m.__msgtype__))
        )
        for topic, m in build(time, row)
    ]  # fmt: skip


def fill(buffer, columns, rows, seed):
    rng = np.random.default_rng(seed)
    stamps = np.sort(rng.integers(0, 10**12, rows)).tolist()
    filled = []
    for stamp in stamps:
        row = {
            name: rng.normal(size=shape) * 10.0 ** rng.uniform(-300, 300, shape)
            for name, shape in columns.items()
        }
        buffer.append(stamp, *row.values())
        filled.append((stamp, row))
    return filled


@pytest.mark.parametrize("system", ["x500_solo", "x500_trio_unequal", "x500_hexa"])
@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_those_of_the_serialiser(kind, system):
    build, columns, channel_of, buffer = make_buffer(kind, system)
    for seed, rows in enumerate((200, 3)):  # the store grows; nothing of the first stays
        filled = fill(buffer, columns, rows, seed)
        rendered = buffer.render()
        records = [expected_row(build, channel_of, *item) for item in filled]
        assert bytes(rendered.data) == b"".join(b"".join(row) for row in records)
        assert np.diff(rendered.bounds).tolist() == [sum(map(len, row)) for row in records]
        flat = [record for row in records for record in row]
        assert rendered.offsets.tolist() == [0, *np.cumsum([len(r) for r in flat])[:-1].tolist()]
        assert len(rendered.channels) == len(flat)


def test_special_numbers_survive():
    build, columns, channel_of, buffer = make_buffer("setpoint", "x500_solo")
    row = {name: np.zeros(shape) for name, shape in columns.items()}
    row["position_enu_m"].ravel()[:5] = np.nan, np.inf, -np.inf, -0.0, 5e-324
    buffer.append(2**31 * 10**9 - 1, *row.values())
    expected = expected_row(build, channel_of, 2**31 * 10**9 - 1, row)
    assert bytes(buffer.render().data) == b"".join(expected)


def test_only_wanted_messages_are_kept():
    build, columns, channel_of, buffer = make_buffer("setpoint", "x500_trio")
    filled = fill(buffer, columns, 3, seed=7)
    wanted = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]], bool)
    rendered = buffer.render(wanted)
    records = [expected_row(build, channel_of, *item) for item in filled]
    kept = [
        r
        for row, keep in zip(records, wanted, strict=True)
        for r, k in zip(row, keep, strict=True)
        if k
    ]
    assert bytes(rendered.data) == b"".join(kept)
    assert rendered.rows.tolist() == [0, 0, 0, 0, 2, 2]
    assert rendered.channels.tolist() == [1, 2, 3, 4, 2, 4]


def test_merge_sorts_by_time_and_keeps_the_order_of_parts_at_equal_times():
    _, columns, _, first = make_buffer("setpoint", "x500_solo")
    _, _, _, second = make_buffer("setpoint", "x500_solo")
    row = [np.zeros(shape) for shape in columns.values()]
    for stamp in (30, 10, 20):
        first.append(stamp, *row)
    for stamp in (20, 5):
        second.append(stamp, *[values + 1.0 for values in row])
    chunk = merge([first.render(), second.render()])
    size = len(chunk.data) // 10
    records = [chunk.data[k * size : (k + 1) * size] for k in range(10)]
    times = [int.from_bytes(r[15:23], "little") for r in records]
    assert times == [5, 5, 10, 10, 20, 20, 20, 20, 30, 30]
    from_second = [records[k].count(np.float64(1.0).tobytes()) == 7 for k in (4, 5, 6, 7)]
    assert from_second == [False, False, True, True]
    assert (chunk.start_ns, chunk.end_ns) == (5, 30)
    for channel, entries in chunk.indexes.items():
        for time, offset in entries.tolist():
            record = chunk.data[offset : offset + size]
            assert int.from_bytes(record[9:11], "little") == channel
            assert int.from_bytes(record[15:23], "little") == time
    assert sorted(o for e in chunk.indexes.values() for o in e[:, 1].tolist()) == [
        k * size for k in range(10)
    ]


def test_nothing_merges_to_nothing():
    _, _, _, buffer = make_buffer("shape", "x500_solo")
    assert merge([buffer.render(), buffer.render()]) is None


def test_a_number_that_no_message_holds_is_a_mistake():
    system = load_system("x500_solo")
    columns = signals.setpoint_columns(system) | {"forgotten": (2,)}
    with pytest.raises(AssertionError, match="forgotten"):
        row_template(signals.setpoint_messages(system), columns,
                     {"/load/setpoint": 1, "/drone_1/setpoint": 2})  # fmt: skip


def test_message_definitions_are_those_of_jazzy():
    """Fields, constants and hashes; types that are not defined here come from the store of all."""
    store = message_types.recorded()
    for name in message_types._definitions():
        message_types.message_type(name)
    assert "std_msgs/msg/String" in store.types
    for name in [name for name in store.types if name in STORE.types]:
        assert store.hash_rihs01(name) == STORE.hash_rihs01(name), name
        ours, theirs = (s.generate_msgdef(name, ros_version=2) for s in (store, STORE))
        assert ours == theirs, name
    image = message_types.message_type("sensor_msgs/msg/Image")
    assert image.__msgtype__ == "sensor_msgs/msg/Image"
    assert store.hash_rihs01("sensor_msgs/msg/Image") == STORE.hash_rihs01("sensor_msgs/msg/Image")
