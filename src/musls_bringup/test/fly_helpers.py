"""A tiny flight, and what it writes and says; shared by the tests of `musls fly`."""

import json

from rosbags.highlevel import AnyReader

from musls_bringup.cli import main

TINY = """\
description: a test
system: x500_duo
start: air
formation: {radius_m: 1.0, height_m: 2.38}
mission:
  settle_s: 0.2
  stages:
    - {kind: hold, duration_s: 0.4, position_m: [0, 0, 1]}
"""
FLY = ["fly", "tiny.yaml", "--no-report", "--set", "system.cables.links=5"]


ENDS = """\
import os
import signal
import musls

@musls.events.register("{kind}")
@musls.spec
class Ends(musls.Event):
    kind: str = "{kind}"

    def begin(self, context):
        {begin}
        return "asked to end"
"""
"""An event of one's own that asks the process to end, or ends it."""


def contents(folder):
    """All files, folders and links below a folder, with their contents."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else path.is_symlink()
        for path in folder.rglob("*")
    }


def error_line(capsys):
    """The one line of an error on stderr, after notes on what was read; nothing on stdout."""
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines(keepends=True)
    (error,) = [line for line in lines if not line.startswith("musls: note: ")]
    assert error.startswith("musls: error: "), captured.err
    return error


def refused(here, capsys, *args):
    """Ends with exit code 2 and one line, and touches nothing; returns the line."""
    before = contents(here)
    assert main([str(arg) for arg in args]) == 2
    line = error_line(capsys)
    assert contents(here) == before
    return line


def raw_messages(result):
    with AnyReader([result / "bag"]) as reader:
        return [(c.topic, time_ns, bytes(data)) for c, time_ns, data in reader.messages()]


def summary_of(result):
    return json.loads((result / "summary.json").read_text())
