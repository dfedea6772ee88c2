"""Events and batteries that cannot be, on the command line: one line, exit code 2, nothing left."""

import json
import re

import pytest

from musls_bringup.cli import main

NOW = {"when": {"time_s": 1}}
POKE = {"kind": "poke", "force_enu_n": [1, 0, 0], "duration_s": 1}
BATTERY = "system.drones.propulsion.battery="


def events(*given):
    return ["--set", "events=" + json.dumps([NOW | event for event in given])]


@pytest.mark.parametrize(
    ("scenario", "words", "says"),
    [
        ("hold", events(POKE | {"body": "drone_9"}), "unknown body 'drone_9'"),
        ("hold", events(POKE | {"when": {"stage": "circle"}}), "stage 'circle' is not flown"),
        ("hold", events({"kind": "attach", "cable": 1}), "two hooks on cable 1"),
        (
            "hold",
            events(*({"kind": "release", "name": name} for name in "ab")),
            "let go at the load 2 times",
        ),
        ("cdpr_pick_and_place", events({"kind": "release", "cable": 1}), "cable 1 .* is a rod"),
        ("delivery", ["--set", BATTERY + '{"capacity_ah": 10}'], "battery.cells is missing"),
        ("delivery", ["--set", BATTERY + '{"capacity_ah": 10, "cells": 0}'], "battery.cells = 0"),
        ("hold", events({"kind": "abort"}), "only mission.kind: delivery"),
        ("hexa_survives", ["--controller", "payload"], "needs controller.kind: formation"),
    ],
)
def test_refused_in_one_line(scenario, words, says, capsys, tmp_path):
    out = tmp_path / "out"
    assert main(["fly", scenario, *words, "--out", str(out)]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert len(errors) == 1
    assert re.search(says, errors[0]), errors[0]
    assert not out.exists()
