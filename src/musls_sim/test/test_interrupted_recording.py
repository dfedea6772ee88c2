"""Ctrl-C at every line, and every byte code, of what takes the rows of a flight and writes them."""

from contextlib import suppress

import numpy as np
import pytest
from flight_helpers import session_with_bag
from interrupts import interruptions
from mcap.reader import make_reader

from musls_sim.recording import BagRecorder, bag_file, recorder
from musls_sim.recording.bag_file import BagFile, render_each
from musls_sim.recording.recorder import MemoryRecorder, RowStore
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.compiled_stages.runs import Runs
from musls_sim.session.compiled_stages.session_memory import World
from musls_sim.session.guidance import MissionGuidance
from musls_sim.session.loop import Loop
from musls_sim.session.session import Session

# ---------- Rows and files by themselves: every byte code, for that is where a signal may fall


def test_rows_of_a_store_are_whole_whatever_is_interrupted():
    rng = np.random.default_rng(1)
    blocks = [rng.normal(size=(count, 3)) for count in (1, 50, 30, 200, 1)]
    starts = np.cumsum([0, *map(len, blocks)])
    everything = np.concatenate(blocks)
    store = None

    def fill(first=0):
        for block, start in list(zip(blocks, starts, strict=False))[first:]:
            stamps = [*range(start, start + len(block))]
            if len(block) == 1:
                store.append(stamps[0], block[0], 2.0 * block[0, 0])
            else:
                store.extend(stamps, block, 2.0 * block[:, 0])

    def new():
        nonlocal store
        store = RowStore({"a": (3,), "b": ()}, {"a": "<f8", "b": "<f4"})
        return fill

    seen = set()
    for trace, interrupted in interruptions(new, RowStore, recorder._grown, every="opcode"):
        with pytest.raises(KeyboardInterrupt):
            interrupted(new())
        seen.add(trace.at)
        rows = store.rows
        assert rows in starts, trace.at  # a block is in, or is not
        assert store.stamps_ns().tolist() == [*range(rows)], trace.at
        fill([*starts].index(rows))  # it takes more
        columns = store.columns()
        assert np.array_equal(columns["a"], everything), trace.at
        assert np.array_equal(columns["b"], np.float32(2.0 * everything[:, 0])), trace.at
        assert store.last_ns == len(everything) - 1
    assert {"_with_room", "_grown", "extend", "append"} <= {
        at.split(":")[0].split(".")[-1] for at in seen
    }


def test_a_chunk_is_in_the_file_or_not_whatever_is_interrupted(tmp_path):
    chunks = [[(100 * k + i, 1 + i % 2, bytes([k]) * (40 + i)) for i in range(3)] for k in range(3)]
    chunks = [[(t, c, b"\x00\x01\x00\x00" + d) for t, c, d in chunk] for chunk in chunks]
    number, bag = 0, None

    def finish():
        for k, chunk in enumerate(chunks):
            if bag.mark is None or bag.mark < k:
                bag.write([render_each(chunk)], mark=k)
        bag.close()

    def new():
        nonlocal bag, number
        number += 1
        types = {"/a": "std_msgs/msg/String", "/b": "std_msgs/msg/String"}
        bag = BagFile(tmp_path / f"{number}" / "bag", types)
        return finish

    new()()
    whole = (bag.folder / bag._name).read_bytes()
    writing = (BagFile.write, BagFile.close, BagFile._commit, BagFile._close_file)
    for trace, interrupted in interruptions(new, *writing, every="opcode"):
        with pytest.raises(KeyboardInterrupt):
            interrupted(new())
        finish()
        assert (bag.folder / bag._name).read_bytes() == whole, trace.at
        assert (bag.folder / "metadata.yaml").is_file(), trace.at
        assert bag.closed and bag.messages == 9


# ---------- Whole flights

TAKING = (
    RowStore, recorder._grown, MemoryRecorder, BagRecorder, BagFile, bag_file._chunk,
    World.read_rows, World._hand_out, World._due, World._once, World._forget, World.tell_played,
    World.prepare, World.advance, Runs,
    MissionGuidance.on_played, MissionGuidance.on_controller_acceleration,
    Session.run, Session._run, Session.finished, Loop.__exit__,
)  # fmt: skip
"""What a row passes on its way from compiled code into the file."""

TINY = """\
description: a test
system: x500_duo
start: air
cable_model: massless
formation: {radius_m: 1.0, height_m: 2.38}
mission:
  settle_s: 0.2
  stages:
    - {kind: hold, duration_s: 0.6, position_m: [0, 0, 1]}
    - {kind: hold, duration_s: 1.0, position_m: [0, 0, 1]}
"""


def messages(folder):
    """Time and bytes of all messages, by topic."""
    received = {}
    assert (folder / "metadata.yaml").is_file()
    with (folder / f"{folder.name}.mcap").open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            received.setdefault(channel.topic, []).append((message.log_time, message.data))
    return received


@pytest.mark.slow
@pytest.mark.parametrize("controller", ["formation", "payload"])
def test_what_is_flown_is_in_the_bag_whatever_line_is_interrupted(tmp_path, controller):
    (tmp_path / "tiny.yaml").write_text(TINY)
    scenario = load_scenario(tmp_path / "tiny.yaml", [f"controller.kind={controller}"])
    number, session = 0, None

    def new():
        nonlocal session, number
        number += 1
        session = session_with_bag(scenario, tmp_path / f"{number}")
        return session.run

    new()()
    whole = messages(tmp_path / f"{number}")
    tried = 0
    for trace, interrupted in interruptions(new, *TAKING):
        work = new()
        with suppress(KeyboardInterrupt):
            interrupted(work)
        assert trace.at is not None
        kept = session.observers[0]
        kept.close()  # as `musls fly` does, where it was its end that was interrupted
        tried += 1
        for topic, had in messages(tmp_path / f"{number}").items():
            assert had == whole[topic][: len(had)], (trace.at, topic)
        last_s = kept.rows[recorder.Rate.STATE].last_ns * 1e-9
        if session.tick:
            assert last_s > session.time_s - 0.02 - 1e-9, trace.at
        if hasattr(session, "_world"):  # it has started
            assert session.tick >= int(session._world.now["tick"][0]) - 1, trace.at
    assert tried > 200
