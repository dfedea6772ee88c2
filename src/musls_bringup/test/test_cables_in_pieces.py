"""Cables that have parted, in the viewer and the figures."""

import numpy as np
import pytest

import musls
from musls_analysis.figures.space import cables_at
from musls_analysis.scene import Subject, sample


@pytest.mark.parametrize("model", ["elastic", "rigid_links"])
def test_a_cable_that_was_cut_is_two_lines(model):
    """One at the load, one at the drone, together as long as the cable but for a segment."""
    cut = {"kind": "cable_cut", "cable": 2, "segment": 3, "when": {"time_s": 0.2}}
    stages = [{"kind": "hold", "position_m": [0, 0, 1.5], "duration_s": 0.6}]
    keys = {"cable_model": model, "system.cables.links": 6, "events": [cut],
            "mission.stages": stages, "mission.settle_s": 0.2}  # fmt: skip
    scenario = musls.load_scenario("hold", keys)
    run = musls.fly(scenario)
    shown = sample(Subject(run, scenario.system, "cut"), np.array([0.1, run.time_s[-1]])).cables
    assert [len(cable.pieces(0)) for cable in shown.values()] == [1, 1, 1]
    assert [len(cable.pieces(1)) for cable in shown.values()] == [1, 2, 1]
    low, high = shown["cable_2"].pieces(1)
    ends = shown["cable_2"].points_enu_m[1]
    assert np.array_equal(low[0], ends[0]) and np.array_equal(high[-1], ends[-1])
    lengths_m = [np.linalg.norm(np.diff(p, axis=0), axis=1).sum() for p in (low, high)]
    assert sum(lengths_m) == pytest.approx(5.0 / 6.0 * scenario.system.cables[1].length_m, rel=0.01)
    figure = cables_at(run, run.time_s[-1])["cable_2"]
    assert [len(piece) for piece in figure] == [len(low), len(high)]
