"""The bytes made in bulk are those of rosbags' serialiser, message by message."""

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from musls_description.system.system_files import load_system
from musls_sim.recording import signals
from musls_sim.recording.bag_file import RowTemplate, in_order, message_record
from musls_sim.recording.recorder import RowStore
from musls_sim.recording.signals import Rate, Row

STORE = get_typestore(Stores.ROS2_JAZZY)
RATES = pytest.mark.parametrize("rate", Rate, ids=lambda rate: rate.name.lower())


class Buffer(RowStore):
    """Rows that are rendered and then forgotten."""

    def __init__(self, rate, system_name):
        self.row = Row(load_system(system_name), rate)
        super().__init__(self.row.shapes, self.row.dtypes)
        self.channel_of = {topic: k for k, topic in enumerate(self.row.topics, start=1)}
        self.template = RowTemplate(self.row, self.channel_of)

    def render(self, wanted=None):
        rendered = self.template.render(self.stamps_ns(), self.columns(), wanted)
        self.rows = 0
        return rendered

    def expected(self, stamp_ns, row):
        messages = [
            (self.channel_of[topic], bytes(STORE.serialize_cdr(m, m.__msgtype__)))
            for topic, m in self.row.messages(stamp_ns, row)
        ]
        return [message_record(channel, stamp_ns, data) for channel, data in messages]

    def fill(self, rows, seed):
        rng = np.random.default_rng(seed)
        stamps = np.sort(rng.integers(0, 10**12, rows)).tolist()
        filled = []
        for stamp in stamps:
            row = {}
            for name, shape in self.row.shapes.items():
                largest = 30 if self.row.dtypes[name] == "<f4" else 300
                numbers = rng.normal(size=shape) * 10.0 ** rng.uniform(-largest, largest, shape)
                row[name] = numbers.astype(self.row.dtypes[name])
            self.append(stamp, *row.values())
            filled.append((stamp, row))
        return filled


@pytest.mark.parametrize("system", ["x500_solo", "x500_trio_unequal", "x500_hexa", "delivery"])
@RATES
def test_bytes_are_those_of_the_serialiser(rate, system):
    buffer = Buffer(rate, system)
    for seed, rows in enumerate((200, 3)):  # the store grows; nothing of the first stays
        filled = buffer.fill(rows, seed)
        rendered = buffer.render()
        records = [buffer.expected(*item) for item in filled]
        assert bytes(rendered.data) == b"".join(b"".join(row) for row in records)
        flat = [record for row in records for record in row]
        assert rendered.sizes.tolist() == [len(record) for record in flat]
        assert len(rendered.channels) == len(rendered.stamps_ns) == len(flat)


def test_special_numbers_survive():
    buffer = Buffer(Rate.SETPOINT, "x500_solo")
    row = {name: np.zeros(shape) for name, shape in buffer.row.shapes.items()}
    row["setpoint.position_enu_m"].ravel()[:5] = np.nan, np.inf, -np.inf, -0.0, 5e-324
    buffer.append(2**31 * 10**9 - 1, *row.values())
    expected = buffer.expected(2**31 * 10**9 - 1, row)
    assert bytes(buffer.render().data) == b"".join(expected)


def test_only_wanted_messages_are_kept():
    buffer = Buffer(Rate.SETPOINT, "x500_trio")
    filled = buffer.fill(3, seed=7)
    wanted = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]], bool)
    rendered = buffer.render(wanted)
    records = [buffer.expected(*item) for item in filled]
    kept = [
        r
        for row, keep in zip(records, wanted, strict=True)
        for r, k in zip(row, keep, strict=True)
        if k
    ]
    assert bytes(rendered.data) == b"".join(kept)
    assert rendered.stamps_ns.tolist() == [filled[k][0] for k in (0, 0, 0, 0, 2, 2)]
    assert rendered.channels.tolist() == [1, 2, 3, 4, 2, 4]


def test_messages_are_sorted_by_time_and_keep_the_order_of_parts_at_equal_times():
    first, second = Buffer(Rate.SETPOINT, "x500_solo"), Buffer(Rate.SETPOINT, "x500_solo")
    row = [np.zeros(shape) for shape in first.row.shapes.values()]
    for stamp in (30, 10, 20):
        first.append(stamp, *row)
    for stamp in (20, 5):
        second.append(stamp, *[values + 1.0 for values in row])
    sorted_ = in_order([first.render(), second.render()])
    assert sorted_.stamps_ns.tolist() == [5, 5, 10, 10, 20, 20, 20, 20, 30, 30]
    assert sorted_.channels.tolist() == [1, 2] * 5
    ends = np.cumsum(sorted_.sizes)
    records = [sorted_.data[b - n : b] for b, n in zip(ends, sorted_.sizes, strict=True)]
    assert [record.count(np.float64(1.0).tobytes()) for record in records[4:8]] == [0, 0, 7, 7]
    times = [int.from_bytes(record[15:23], "little") for record in records]
    assert times == sorted_.stamps_ns.tolist()
    assert in_order([first.render()]).data == b""


def test_a_number_that_no_message_holds_is_a_mistake(monkeypatch):
    lost = signals.Signal(
        "lost", "std_msgs/msg/Float64", Rate.SETPOINT, signals.drone_names,
        (signals.Column("forgotten", "", ()),),
    )  # fmt: skip
    monkeypatch.setitem(signals.SIGNALS, "lost", lost)
    with pytest.raises(AssertionError, match=r"no message of the row holds lost\.forgotten"):
        Buffer(Rate.SETPOINT, "x500_solo")
