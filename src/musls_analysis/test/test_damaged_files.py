"""A thousand damaged and varied files of each format: none is a traceback or silently wrong.

A file is read rightly (each pose that is there is true), is read with a warning, or is refused in
one line. Damages are those of programs and disks, not changed digits, which nothing can tell.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import NamedTuple

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
from made_up_recordings import tf_messages, write_bag
from mcap.reader import make_reader
from mcap.writer import Writer as McapWriter

from musls_analysis.recordings.readers import read_recording
from musls_analysis.recordings.recording import resample
from musls_description.config.errors import MuslsError

TRUTH = circling(50.0, 3.0)
CELLS = ("", "nan", "inf", "-inf", "n/a", "-", "1e999", "0x10", "1,5", "1;5", '"', "None", "\x00",
         "1e20", "٣", "--1", "1.2.3", " ")  # fmt: skip


class Case(NamedTuple):
    """A damaged file: its format, what was done to it, name and content."""

    format: str
    damage: str
    name: str
    data: bytes


# ---------- Whole files


def quaternion_table() -> str:
    columns, header = [TRUTH.time_s[:, None]], ["time"]
    for body, track in TRUTH.bodies.items():
        header += [f"{body}_{part}" for part in ("x", "y", "z", "qw", "qx", "qy", "qz")]
        columns += [track.position_enu_m, track.orientation_wxyz]
    return table_text(header, np.hstack(columns))


def trajectory(separator: str, header: str, time: float, order: list[int]) -> str:
    track = TRUTH.bodies["drone_1"]
    rows = np.column_stack([track.position_enu_m, track.orientation_wxyz[:, order]])
    lines = [header] if header else []
    for time_s, row in zip(track.time_s, rows, strict=True):
        stamp = f"{time * (time_s + 1.7e9):.0f}" if time > 1.0 else f"{time_s:.6f}"
        lines.append(separator.join([stamp, *(f"{v:.9g}" for v in row)]))
    return "\n".join([*lines, ""])


def texts() -> dict[str, tuple[str, str]]:
    """File name and text of each format."""
    header, rows = columns_of(TRUTH)

    def helical(q):
        return scipy_rotation(q).as_rotvec()

    parts = [*(f"p_RS_R_{k} [m]" for k in "xyz"), *(f"q_RS_{k} []" for k in "wxyz")]
    euroc = ",".join(["#timestamp", *parts])
    return {
        "csv": ("take.csv", table_text(header, rows)),
        "csv, ;": ("take.csv", table_text(header, rows, ";", ",")),
        "tsv": ("take.tsv", table_text(header, rows, "\t")),
        "csv, q": ("take.csv", quaternion_table()),
        "vicon": ("take.csv", "\n".join([*vicon_lines(TRUTH, helical, sub_frames=2), ""])),
        "motive": ("take.csv", "\n".join([*motive_lines(TRUTH, 1.0), ""])),
        "tum": ("drone_1.tum", trajectory(" ", "", 1.0, [1, 2, 3, 0])),
        "euroc": ("drone_1.csv", trajectory(",", euroc, 1e9, [0, 1, 2, 3])),
    }


# ---------- Damages of texts


def damaged_texts(text: str, seed: int) -> Iterator[tuple[str, bytes]]:
    """What is done to a text, and the bytes that come of it."""
    rng = np.random.default_rng(seed)
    lines = text.splitlines()
    n, data = len(lines), text.encode()
    mark = next(c for c in ("\t", ";", ",", " ") if c in lines[-1])

    def joined(changed):
        return "\n".join([*changed, ""]).encode()

    def with_cell(k, column, cell):
        cells = lines[k].split(mark)
        cells[column % len(cells)] = cell
        return joined([*lines[:k], mark.join(cells), *lines[k + 1 :]])

    yield "whole", data
    for share in (0.0, 0.02, 0.1, 0.5, 0.9, 0.999):
        yield "cut", data[: int(share * len(data))]
    for k in (0, 1, 2, 3, 4, 5, n // 2, n - 1):
        if k < n:
            yield "line lost", joined([*lines[:k], *lines[k + 1 :]])
            yield "line twice", joined([*lines[:k], lines[k], *lines[k:]])
            yield "line empty", joined([*lines[:k], "", *lines[k:]])
            yield "line of text", joined([*lines[:k], "# a remark", *lines[k:]])
    for cell in CELLS:
        for column in (0, 1, int(rng.integers(2, 8))):
            yield f"cell {cell!r}", with_cell(int(rng.integers(n // 3, n)), column, cell)
    for column in (0, 1, 3):
        yield "cell missing", with_cell(n // 2, column, "\0").replace(f"\0{mark}".encode(), b"")
        yield "cell too many", with_cell(n // 2, column, f"1{mark}1")
        yield "column lost", joined([mark.join(np.delete(row, column % len(row))) for row in
                                     (line.split(mark) for line in lines)])  # fmt: skip
    middle = n // 2
    for shift in (2, 10, 40):
        block = lines[middle : middle + shift]
        rest = [*lines[:middle], *lines[middle + shift :]]
        yield "block lost", joined(rest)
        yield "block moved", joined([*rest, *block])
        yield "block twice", joined([*lines[: middle + shift], *lines[middle:]])
        yield "block reversed", joined([*lines[:middle], *block[::-1], *lines[middle + shift :]])
    for count in (1, 2, 5, 7):
        yield "header again", joined([*lines[:middle], *lines[:count], *lines[middle:]])
    yield "twice in one file", data + data
    yield "ends of lines", data.replace(b"\n", b"\r\n")
    yield "ends of lines", data.replace(b"\n", b"\r")
    yield "byte-order mark", b"\xef\xbb\xbf" + data
    yield "UTF-16", text.encode("utf-16")
    yield "UTF-16, no mark", text.encode("utf-16-le")
    yield "quotes", joined([mark.join(f'"{c}"' for c in line.split(mark)) for line in lines])
    yield "blanks", data.replace(mark.encode(), f" {mark} ".encode())
    yield "other separator", data.replace(mark.encode(), b"|")
    yield "upper case", data.upper()
    for size in (1, 20, 400):
        at = int(rng.integers(len(data) // 3, len(data) - size))
        yield "zeros", data[:at] + bytes(size) + data[at + size :]
        yield "random bytes", data[:at] + rng.bytes(size) + data[at + size :]
        if size > 1:  # a lost digit is a changed one
            yield "bytes lost", data[:at] + data[at + size :]
    for column, factor in ((0, 1e3), (0, 1e6), (0, 1e9), (0, 60.0)):
        if mark != " " and lines[0].startswith(("t", "time")) and "[" not in lines[0]:
            yield f"time x {factor:g}", joined([lines[0], *(_scaled(line, mark, column, factor)
                                                            for line in lines[1:])])  # fmt: skip


def _scaled(line: str, mark: str, column: int, factor: float) -> str:
    cells = line.split(mark)
    comma = "," in cells[column]
    value = factor * float(cells[column].replace(",", "."))
    cells[column] = f"{value:.9g}".replace(".", "," if comma else ".")
    return mark.join(cells)


def unit_cases() -> Iterator[Case]:
    """Tables in other units that say nothing of them."""
    for length in (1.0, 1e2, 1e3):
        for time in (1.0, 1e3, 1e6, 1e9):
            for angle in (1.0, 180.0 / np.pi):
                if (length, time, angle) != (1.0, 1.0, 1.0):
                    text = table_text(*columns_of(TRUTH, length=length, time=time, angle=angle))
                    yield Case("csv", "units", "take.csv", text.encode())


# ---------- Damages of binary files


def damaged_bytes(data: bytes, seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    rng = np.random.default_rng(seed)
    yield "whole", data
    for _ in range(count):
        size = int(rng.choice([1, 3, 16, 100]))
        at = int(rng.integers(0, len(data) - size))
        yield "cut", data[:at]
        yield "bytes lost", data[:at] + data[at + size :]
        size = max(size, 16)  # fewer are a changed digit
        yield "zeros", data[:at] + bytes(size) + data[at + size :]
        yield "bytes twice", data[: at + size] + data[at:]


def with_checksums(path) -> bytes:
    """A bag with the checksums that ROS and musls write."""
    data, topics = io.BytesIO(), {}
    with path.open("rb") as stream:
        writer = McapWriter(data)
        writer.start("ros2", "test")
        for schema, channel, message in make_reader(stream).iter_messages():
            if channel.topic not in topics:
                kind = writer.register_schema(schema.name, schema.encoding, schema.data)
                topics[channel.topic] = writer.register_channel(
                    channel.topic, channel.message_encoding, kind
                )
            times = message.log_time, message.publish_time
            writer.add_message(topics[channel.topic], times[0], message.data, times[1])
        writer.finish()
    return data.getvalue()


def cases(folder) -> Iterator[Case]:
    for seed, (format, (name, text)) in enumerate(texts().items()):
        for damage, data in damaged_texts(text, seed):
            yield Case(format, damage, name, data)
    yield from unit_cases()
    log = ulog(TRUTH.bodies["drone_1"], folder / "drone_1.ulg").read_bytes()
    for damage, data in damaged_bytes(log, 1, 40):
        yield Case("ulog", damage, "drone_1.ulg", data)
    frames = {body: body for body in TRUTH.bodies}
    bag = write_bag(folder / "bag", tf_messages(TRUTH, frames))
    for damage, data in damaged_bytes(with_checksums(bag / "bag.mcap"), 2, 30):
        yield Case("mcap", damage, "bag.mcap", data)


# ---------- What comes of them


def outcome(case: Case, folder) -> tuple[str, str]:
    """Refused, right, told or silent; or traceback; and why."""
    path = folder / case.name
    path.write_bytes(case.data)
    try:
        with redirect_stdout(io.StringIO()):
            read = read_recording(path)
    except MuslsError as error:
        text = str(error)
        return ("refused", text) if "\n" not in text else ("traceback", text)
    except Exception as error:
        return "traceback", f"{type(error).__name__}: {error}"
    wrong = _difference(read)
    if not wrong:
        return "right", ""
    told = [line for line in read.warnings if "relative to the place where its PX4" not in line]
    return ("told" if told else "silent"), f"{wrong}; {told}"


def _difference(read) -> str:
    """Where a recording is not the truth; empty where all that it holds is, and nothing lacks."""
    for body, track in read.bodies.items():
        true = TRUTH.bodies[body]
        misses, start_s = [], track.time_s[0]
        for shift_s in (start_s - start_s % 1.0, start_s, 30.0, 0.0):  # Vicon counts from its first
            time_s = track.time_s - shift_s
            expected = resample(true, np.clip(time_s, true.time_s[0], true.time_s[-1]), np.inf)
            off_m = np.abs(track.position_enu_m - expected.position_enu_m).max()
            turned = 1.0 - np.abs(np.sum(track.orientation_wxyz * expected.orientation_wxyz, 1))
            beyond_s = max(true.time_s[0] - time_s[0], time_s[-1] - true.time_s[-1])
            misses.append((max(off_m, turned.max(), beyond_s), off_m, turned.max(), beyond_s))
            if off_m < 2e-3 and turned.max() < 1e-5 and beyond_s < 1e-3:
                break
        else:
            _, off_m, turned, beyond_s = min(misses)
            return f"{body} off by {off_m:.3g} m, {turned:.3g}, {beyond_s:.3g} s"
        if len(time_s) < len(true.time_s):
            return f"{body} has {len(time_s)} of {len(true.time_s)} samples"
    return ""


LOST_ALLOWED = ("cut", "line lost", "block lost", "column lost", "bytes lost", "whole")
"""Damages after which what is left is a whole file of fewer rows."""


def tried(chosen: Callable[[int], bool], folder) -> dict[str, Counter]:
    """Outcomes by format of the chosen cases; the silent and the tracebacks are printed."""
    found: dict[str, Counter] = {}
    for k, case in enumerate(cases(folder)):
        if not chosen(k):
            continue
        kind, why = outcome(case, folder)
        if kind == "silent" and case.damage in LOST_ALLOWED and " of " in why:
            kind = "right"
        found.setdefault(case.format, Counter())[kind] += 1
        if kind in ("silent", "traceback"):
            print(f"{kind}: {case.format}, {case.damage}: {why}")
    heads = ("format", "tried", "right", "told", "refused", "wrong", "silent")
    print("{:8s} {:>6s} {:>6s} {:>6s} {:>8s} {:>6s} {:>6s}".format(*heads))
    for format, counts in found.items():
        numbers = [counts[kind] for kind in ("right", "told", "refused", "traceback", "silent")]
        print("{:8s} {:6d} {:6d} {:6d} {:8d} {:6d} {:6d}".format(format, counts.total(), *numbers))
    total = sum(found.values(), Counter())
    print(f"all      {total.total():6d}, {total['traceback']} tracebacks, {total['silent']} silent")
    return found


def test_a_few_damaged_files(tmp_path):
    found = tried(lambda k: k % 17 == 0, tmp_path)
    assert not any(counts["traceback"] or counts["silent"] for counts in found.values())


@pytest.mark.slow
def test_a_thousand_damaged_files(tmp_path):
    found = tried(lambda k: True, tmp_path)
    assert sum(counts.total() for counts in found.values()) >= 1000
    assert not any(counts["traceback"] or counts["silent"] for counts in found.values())
