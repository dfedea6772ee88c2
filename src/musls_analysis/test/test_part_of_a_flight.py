"""A part of a recording: what it holds, and that it is the same flight."""

import numpy as np
import pytest
from made_up_recordings import flight

import musls
from musls_analysis.recordings.bag import read_bag
from musls_analysis.replay.motion import RecordedPaths, ReplayMotion, ReplaySpec, part_of_stage
from musls_description.config.errors import ConfigError


def test_a_part_holds_what_was_recorded_then(flight_bag):
    whole = read_bag(flight_bag)
    start_s, end_s = whole.start_s + 0.503, whole.end_s - 0.401
    part = whole.between(start_s, end_s)
    for name, track in whole.bodies.items():
        kept = (track.time_s >= start_s) & (track.time_s <= end_s)
        np.testing.assert_array_equal(part.bodies[name].time_s, track.time_s[kept])
        np.testing.assert_array_equal(part.bodies[name].position_enu_m, track.position_enu_m[kept])
    for name, cable in whole.cables.items():
        kept = (cable.shape_time_s >= start_s) & (cable.shape_time_s <= end_s)
        assert len(part.cables[name].shape_enu_m) == kept.sum() > 0
        assert part.cables[name].tension_n.shape == (len(part.cables[name].time_s), 2)
    # A set-point that was held at the start holds there, at each time as in the whole flight.
    times_s = np.linspace(start_s, end_s, 50)
    for name, track in whole.setpoints.items():
        held = part.setpoints[name].held_at(times_s).position_enu_m
        np.testing.assert_array_equal(held, track.held_at(times_s).position_enu_m)
    assert part.stages[0].start_s == start_s and part.stages[-1].end_s == end_s


def test_the_errors_of_a_stage_are_those_of_the_whole_flight():
    whole = musls.fly("hold", set={"cable_model": "massless"})
    stage = next(stage for stage in whole.stages if stage.name == "hold")
    part = whole.between(stage.start_s, np.nextafter(stage.end_s, 0.0))
    ours, theirs = (run.errors().by_body()["load"]["hold"] for run in (part, whole))
    assert ours == pytest.approx(theirs, rel=2e-3)


@pytest.mark.parametrize("times_s", [(3.0, 2.0), (1e6, 2e6), (-5.0, -1.0)])
def test_times_outside_are_told(flight_bag, times_s):
    with pytest.raises(ConfigError, match=r"nothing from .* it lasts from"):
        read_bag(flight_bag).between(*times_s)


@pytest.mark.parametrize("lead_in_s", [0.5, 2.0])
def test_a_replay_of_a_stage_begins_to_predict_with_it(lead_in_s):
    """As long as the recording has the lead-in before the stage."""
    flown = flight("shm", repetitions=1, rate_hz=10.0)
    name, stage = "shm", next(s for s in flown.stages if s.name == "shm")
    spec = ReplaySpec(lead_in_s=lead_in_s)
    motion = ReplayMotion(RecordedPaths(part_of_stage(flown, name, lead_in_s)), spec)
    assert motion.clock_s(lead_in_s) == pytest.approx(stage.start_s, abs=0.11)  # a row's distance
    assert motion.end_s == pytest.approx(stage.end_s, abs=0.11)
    whole = part_of_stage(flown, name, 1e3)
    assert whole.start_s == flown.start_s
    with pytest.raises(ConfigError, match="no stage 'circle'; it has"):
        part_of_stage(flown, "circle", lead_in_s)
