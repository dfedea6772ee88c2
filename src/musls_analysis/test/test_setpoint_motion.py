"""Set-points of a recorded stage say what was flown; errors know how far they may be chance."""

import numpy as np
import pytest
from made_up_recordings import excerpt_lines, flight, write_lines

from musls_analysis.comparison.compare import CompareOptions, error_intervals
from musls_analysis.comparison.cycles import CutStage, Cycle, cut
from musls_analysis.paper.flights import motion_of, update_rate
from musls_analysis.recordings.readers import ReadOptions, read_recording
from musls_analysis.recordings.recording import PoseTrack, Recording, bridged_s
from musls_description.config.errors import ConfigError

FLOWN = {
    "circle": {"radius_m": 1.1, "speed_m_s": 0.25, "height_m": 1.3, "center_m": (0.4, -0.2)},
    "shm": {"amplitude_m": 0.7, "omega_rad_s": 1.6, "axis_yaw_rad": 0.4, "height_m": 1.2},
    "engage": {"height_m": 0.7, "yaw_rad": 1.1, "yaw_hold_s": 4.0, "yaw_return_s": 7.0},
}


@pytest.mark.parametrize("rate_hz", [50.0, 10.0, 10.0 / 3.0])
@pytest.mark.parametrize("stage", FLOWN)
def test_what_was_flown_is_read_from_the_rows_of_a_log(stage, rate_hz, tmp_path):
    made = flight(stage, 3, rate_hz, start_s=7.01, **FLOWN[stage])
    rows = excerpt_lines(made)
    first = 1 + sum(float(row.split(",")[0]) < 7.0 for row in rows[1:])
    last = 1 + sum(float(row.split(",")[0]) < made.stages[1].end_s for row in rows[1:])
    lines = [rows[0], *rows[first if stage != "engage" else 1 : last]]
    still = ReadOptions(drop_stale=False)  # a made-up load stands without any noise
    read = read_recording(write_lines(tmp_path / "log.csv", lines), still)
    found = motion_of(stage, cut(read, stage))
    for name, value in FLOWN[stage].items():
        assert not found[name].differs(value), (name, found[name])
        assert found[name].differs(np.multiply(value, 2.5)), name


@pytest.mark.parametrize("rate_hz", [10.0, 10.0 / 3.0])
def test_a_log_that_ends_while_the_yaw_goes_back_tells_how_fast_it_goes(rate_hz, tmp_path):
    made = flight("engage", 1, rate_hz, start_s=7.01, **FLOWN["engage"])
    yaw = made.setpoints["load"]
    half = yaw.time_s[np.flatnonzero(yaw.orientation_wxyz[:, 3] > np.sin(0.25))[-1]]
    rows = excerpt_lines(made)
    lines = [rows[0], *(row for row in rows[1:] if float(row.split(",")[0]) < half)]
    read = read_recording(write_lines(tmp_path / "log.csv", lines), ReadOptions(drop_stale=False))
    found = motion_of("engage", cut(read, "engage"))
    for name, value in FLOWN["engage"].items():
        assert not found[name].differs(value), (name, found[name])
    assert "hold_s" not in found


def test_how_often_set_points_come_is_told_only_where_no_change_is_missed():
    made = cut(flight("circle", 1), "circle")
    assert update_rate(made).value == pytest.approx(5.0)
    rows = made.recording.bodies["load"].time_s[::15]
    sparse = {b: k.held_at(rows).changes() for b, k in made.recording.setpoints.items()}
    bodies = {b: k.held_at(rows) for b, k in made.recording.bodies.items()}
    thin = Recording(bodies, sparse, sampled_setpoints=True)
    assert update_rate(CutStage(thin, made.cycles, periodic=True)) is None


def test_a_clockwise_circle_is_refused():
    made = flight("circle", 2)
    tracks = {
        b: PoseTrack(k.time_s, k.position_enu_m * [1.0, -1.0, 1.0], k.orientation_wxyz)
        for b, k in made.setpoints.items()
    }
    mirrored = Recording(made.bodies, tracks, stages=made.stages, source="mirrored")
    with pytest.raises(ConfigError, match=r"mirrored: .* clockwise"):
        motion_of("circle", cut(mirrored, "circle"))


def cycles_that_differ(count, spread_m, seed=0):
    """The load of a made-up oscillation, each cycle beside the others by chance."""
    made = flight("shm", count)
    beside = spread_m * np.random.default_rng(seed).standard_normal(count)
    load = made.bodies["load"]
    which = np.clip(((load.time_s - 7.0) // np.pi).astype(int), 0, count - 1)
    moved = load.position_enu_m + np.outer(0.1 + beside[which], [1.0, 0.0, 0.0])
    found = cut(made, "shm")
    track = PoseTrack(load.time_s, moved, load.orientation_wxyz)
    body = Recording({"load": track}, made.setpoints, stages=made.stages, source="made up")
    return CutStage(body, found.cycles, periodic=True)


def test_intervals_are_as_wide_as_cycles_differ():
    """A mean of 9 cycles is known to a third of their spread: 90 % within 1.645 of it."""
    sim = cut(flight("shm", 2), "shm")
    how = CompareOptions(bodies=["load"])
    (low, flat), (high, steep) = error_intervals([cycles_that_differ(9, 0.02)], [sim], how)["load"]
    assert low < 100.0 + 7.0 and high > 100.0 - 7.0
    assert high - low == pytest.approx(2.0 * 1.645 * 20.0 / 3.0, rel=0.45)
    assert flat == pytest.approx(0.0, abs=0.1) and steep == pytest.approx(0.0, abs=0.1)


def test_of_one_cycle_and_one_flight_nothing_is_known_about_others():
    sim = cut(flight("shm", 2), "shm")
    one = cut(flight("shm", 1, shift_m=(0.05, 0.0, 0.0)), "shm")
    (low, _), (high, _) = error_intervals([one], [sim], CompareOptions(bodies=["load"]))["load"]
    assert low == pytest.approx(high) == pytest.approx(50.0, rel=0.02)
    assert isinstance(one.cycles[0], Cycle)


def test_sparse_rows_are_bridged_but_a_lost_row_is_a_gap():
    rows = np.arange(0.0, 30.0, 0.8)
    assert bridged_s([np.arange(0.0, 30.0, 0.1)]) == 0.5
    assert 0.8 < bridged_s([rows, np.arange(0.0, 9.0, 0.02)]) < 1.6
