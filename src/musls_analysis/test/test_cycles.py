"""Flights are cut where the set-point says."""

from dataclasses import replace

import numpy as np
import pytest
from made_up_recordings import flight, poses

from musls_analysis.comparison.cycles import (
    Cycle,
    circle_phase,
    cut,
    cut_alike,
    cut_at,
    cut_last,
    oscillation_phase,
    stage_windows,
)
from musls_analysis.recordings.recording import PoseTrack, RecordedStage, Recording
from musls_control.trajectories import Circle, Engage, Shm
from musls_description.config.errors import ConfigError

PERIODS_S = {"circle": Circle().period_s, "shm": Shm().period_s}
ENGAGE_S = Engage().period_s - Engage().turn_s - Engage().rest_s - Engage().lower_s


def whole(recording, start_s=-np.inf, end_s=np.inf):
    """The recording without stages, from a start to an end."""

    def part(track):
        keep = (track.time_s >= start_s) & (track.time_s <= end_s)
        return PoseTrack(
            track.time_s[keep], track.position_enu_m[keep], track.orientation_wxyz[keep]
        )

    bodies = {b: part(k) for b, k in recording.bodies.items()}
    time_s = bodies["load"].time_s
    held = {b: k.held_at(time_s).changes() for b, k in recording.setpoints.items()}
    return Recording(
        bodies, held, stages=(RecordedStage("flight", time_s[0], time_s[-1]),), source="part"
    )


@pytest.mark.parametrize("kind", ["circle", "shm"])
@pytest.mark.parametrize("start_s", [0.0, 7.0, 300.1])
def test_periodic_stages_are_cut_at_phase_zero(kind, start_s):
    found = cut(flight(kind, repetitions=3, start_s=start_s), kind)
    assert found.periodic and found.warnings == ()
    assert found.period_s == pytest.approx(PERIODS_S[kind], rel=1e-4)
    starts = [cycle.start_s for cycle in found.cycles]
    assert starts == pytest.approx(start_s + PERIODS_S[kind] * np.arange(3), abs=5e-3)


def test_first_cycles_can_be_left_out():
    found = cut(flight("shm", repetitions=4), "shm", skip=3)
    (cycle,) = found.cycles
    assert cycle.start_s == pytest.approx(7.0 + 3 * PERIODS_S["shm"], abs=5e-3)
    with pytest.raises(ConfigError, match="no complete cycle of stage 'shm'"):
        cut(flight("shm", repetitions=4), "shm", skip=4)


def test_an_excerpt_is_cut_where_it_passes_phase_zero():
    """Four periods that begin anywhere hold three whole ones."""
    recording = whole(flight("shm", repetitions=7), 11.5, 11.5 + 4 * PERIODS_S["shm"])
    found = cut(recording, "shm")
    expected = 7.0 + PERIODS_S["shm"] * np.arange(2, 5)
    assert [c.start_s for c in found.cycles] == pytest.approx(expected, abs=0.02)


def test_a_circle_that_lacks_a_little_counts():
    period_s = PERIODS_S["circle"]
    recording = whole(flight("circle", repetitions=2), 7.3, 6.9 + period_s)
    (cycle,) = cut(recording, "circle").cycles
    assert cycle.start_s == pytest.approx(7.0, abs=0.02)
    with pytest.raises(ConfigError, match="no complete cycle"):
        cut(whole(recording, 7.3, 0.8 * period_s), "circle")


def test_a_set_point_seen_late_by_a_slow_logger():
    """At 7 Hz a change is seen up to 1/7 s late; the phase is late by the mean of that."""
    found = cut(whole(flight("shm", repetitions=5, rate_hz=7.0), 7.05, 22.0), "shm")
    assert found.cycles[0].start_s == pytest.approx(7.0 + 0.5 / 7.0, abs=0.03)


def test_engagements_begin_at_the_step_and_end_where_it_goes_down():
    found = cut(flight("engage", repetitions=2), "engage")
    assert not found.periodic and found.warnings == ()
    step_s = Engage().turn_s + Engage().rest_s
    starts = 7.0 + step_s + Engage().period_s * np.arange(2)
    assert [c.start_s for c in found.cycles] == pytest.approx(starts, abs=0.21)
    assert found.period_s == pytest.approx(ENGAGE_S, abs=0.41)


def test_an_engagement_without_its_step_begins_with_the_recording():
    found = cut(whole(flight("engage", repetitions=1), 16.3, 36.0), "engage")
    assert found.cycles[0].start_s == pytest.approx(16.3)
    assert "the step of the set-point is not in the recording" in found.warnings[0]


def test_the_engagement_of_flight_logs_is_found_by_its_name():
    stages = tuple(
        RecordedStage(n, i, i + 1) for i, n in enumerate(["tension_engage", "yaw_engage"])
    )
    recording = Recording(flight("shm").bodies, stages=stages, source="log")
    assert stage_windows(recording, "engage") == [stages[1]]
    assert stage_windows(recording, "tension_engage") == [stages[0]]


def test_a_stage_that_comes_again_counts_too():
    stages = tuple(RecordedStage(n, i, i + 1.0) for i, n in enumerate(["shm", "hold", "shm_2"]))
    recording = Recording(flight("shm").bodies, stages=stages)
    assert [s.name for s in stage_windows(recording, "shm")] == ["shm", "shm_2"]


def test_other_stages_are_one_cycle():
    found = cut(flight("shm"), "lift")
    assert found.cycles == (Cycle(5.0, 7.0),) and not found.periodic


def test_given_times_are_taken():
    found = cut_at(flight("shm"), [(6.0, 8.0), (8.0, 9.5)])
    assert found.cycles == (Cycle(6.0, 7.5), Cycle(8.0, 9.5))
    for span in ((1.0, 8.0), (8.0, 8.0), (8.0, 99.0)):
        with pytest.raises(
            ConfigError, match=r"made-up shm: no cycle .* the recording is from 5 to"
        ):
            cut_at(flight("shm"), [span])


@pytest.mark.parametrize(
    ("kind", "stage", "message"),
    [
        ("shm", "circle", "made-up shm: no stage 'circle'; it has lift, shm, lower"),
        ("shm", "engage", "no stage 'engage'"),
    ],
)
def test_a_missing_stage_is_named(kind, stage, message):
    with pytest.raises(ConfigError, match=message):
        cut(flight(kind), stage)


@pytest.mark.parametrize(
    ("kind", "stage", "message"),
    [
        ("shm", "circle", "do not follow a circle"),
        ("circle", "shm", "no harmonic motion"),
        ("circle", "engage", "no complete cycle|step"),
        ("engage", "circle", "circle|fewer than 6"),
        ("circle", "hold", "cycles of 'hold' cannot be found"),
    ],
)
def test_set_points_that_do_something_else_are_an_error(kind, stage, message):
    recording = whole(flight(kind), 7.0, 36.0)
    if stage == "engage":
        assert "not in the recording" in cut(recording, stage).warnings[0]
        return
    with pytest.raises(ConfigError, match=message):
        cut(recording, stage)


def poses_only(kind, repetitions, still_s=12.0):
    """A whole flight as TF has it: take-off, hover, the stage, hover, landing; nothing is named."""
    trajectory = {"circle": Circle, "shm": Shm, "engage": Engage}[kind](repetitions=repetitions)
    end_s = trajectory.duration_s
    t = np.arange(-still_s, end_s + still_s, 0.1)
    pose = trajectory.pose(np.clip(t, 0.0, end_s))
    climb_s = np.minimum(t + still_s, end_s + still_s - t)
    pose[:, 2] += np.where(climb_s < 4.0, 0.5 * (climb_s - 4.0), 0.0)
    return Recording(
        poses(pose, t + 40.0), source="tf", stages=(RecordedStage("flight", 28.0, t[-1] + 40),)
    )


@pytest.mark.parametrize("kind", ["circle", "shm"])
def test_without_set_points_and_stages_the_motion_tells_cycles_and_phase(kind):
    found = cut(poses_only(kind, 3), kind)
    assert found.by_motion and found.periodic
    assert found.period_s == pytest.approx(PERIODS_S[kind], rel=5e-3)
    phase = np.array([(c.start_s - 40.0) / PERIODS_S[kind] for c in found.cycles])
    assert 2 <= len(phase) <= 3 and phase == pytest.approx(np.round(phase), abs=0.02)


def test_without_set_points_engagements_are_from_half_the_rise_to_half_the_descent():
    found = cut(poses_only("engage", 2), "engage")
    step_s = Engage().turn_s + Engage().rest_s
    starts = 40.0 + step_s + Engage().period_s * np.arange(2)
    assert [c.start_s for c in found.cycles] == pytest.approx(starts, abs=0.11)
    assert ENGAGE_S - 0.2 < found.period_s < ENGAGE_S + Engage().lower_s


@pytest.mark.parametrize(("kind", "stage"), [("circle", "shm"), ("shm", "circle")])
def test_without_set_points_another_motion_is_an_error(kind, stage):
    with pytest.raises(ConfigError, match=f"tf: no set-points .* nothing like '{stage}'"):
        cut(poses_only(kind, 2), stage)


def test_flights_are_cut_alike_where_one_has_no_set_points():
    """Drones late by 0.5 s: cut by set-points one of both would be shifted by that."""
    late, bare = flight("shm", 4, delay_s=0.5), replace(flight("shm", 4), setpoints={})
    cuts = cut_alike([bare, late], "shm")
    starts = [cuts[k].cycles[0].start_s - (0.0, 0.5)[k] for k in (0, 1)]
    off = (starts[1] - starts[0] + 1.0) % PERIODS_S["shm"] - 1.0
    assert all(c.by_motion for c in cuts) and off == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("rate", [0.3, 2.0, 7.0])
@pytest.mark.parametrize("phase", [-2.0, 0.0, 1.0, 3.0])
def test_phase_of_an_oscillation(rate, phase):
    t = 50.0 + np.arange(0, 4 * 2 * np.pi / rate, 0.17)
    s = np.sin(rate * (t - 50.0) + phase)
    position = np.outer(s, [0.6, 0.8, 0.0]) + [3.0, 1.0, 2.0]
    track = PoseTrack(t, position, np.tile([1.0, 0, 0, 0], (len(t), 1)))
    found = oscillation_phase(track, "x")
    assert found.period_s == pytest.approx(2 * np.pi / rate, rel=1e-6)
    cycles = (found.origin_s - (50.0 - phase / rate)) / found.period_s
    assert cycles == pytest.approx(round(cycles), abs=1e-5)


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_phase_of_a_circle_either_way_round(direction):
    t = np.arange(0.0, 40.0, 0.3)
    angle = direction * 0.2 * (t - 5.0)
    position = np.column_stack([2 + 1.5 * np.cos(angle), 1.5 * np.sin(angle), np.ones_like(t)])
    found = circle_phase(PoseTrack(t, position, np.tile([1.0, 0, 0, 0], (len(t), 1))), "x")
    assert found.period_s == pytest.approx(2 * np.pi / 0.2)
    assert np.mod(found.origin_s - 5.0 + 1.0, found.period_s) == pytest.approx(1.0)


@pytest.mark.parametrize("logged_hz", [50.0, 10.0, 4.0])
@pytest.mark.parametrize("kind", ["circle", "shm"])
def test_phase_of_held_set_points_is_not_late_however_sparsely_they_are_logged(kind, logged_hz):
    """Sent at 5 Hz at exact phases, logged with jitter, at 20 offsets of the two clocks."""
    period_s = PERIODS_S[kind]
    rate, span_s = 2.0 * np.pi / period_s, max(2.2 * period_s, 15.0)
    generator = np.random.default_rng(3)
    errors = []
    for _ in range(20):
        origin_s = generator.uniform(10.0, 10.2)
        rows = np.arange(0.0, span_s, 1.0 / logged_hz) + generator.uniform(0.0, 0.2)
        rows = np.sort(rows + generator.uniform(0.0, 0.2 / logged_hz, len(rows)))
        sent = origin_s + 0.2 * np.floor((rows - origin_s) / 0.2)
        angle = rate * (sent - origin_s)
        x, y = (np.cos(angle), np.sin(angle)) if kind == "circle" else (0.0 * angle, np.sin(angle))
        position = np.column_stack([x, y, np.ones_like(angle)])
        track = PoseTrack(rows, position, np.tile([1.0, 0, 0, 0], (len(rows), 1))).changes()
        find = circle_phase if kind == "circle" else oscillation_phase
        found = find(track, "x", rows)
        off = (found.origin_s - origin_s + 0.5 * period_s) % period_s - 0.5 * period_s
        assert found.period_s == pytest.approx(period_s, rel=6e-3)
        errors.append(off)
    # Rows and set-points that keep step leave half a row open, either way; taken for the times of
    # the changes, rows gave 0.01, 0.05 and 0.1 s, always late.
    mean_s, most_s = {50.0: (4e-3, 0.012), 10.0: (0.017, 0.055), 4.0: (0.017, 0.055)}[logged_hz]
    assert abs(np.mean(errors)) < mean_s and np.max(np.abs(errors)) < most_s


@pytest.mark.parametrize("kind", ["circle", "shm"])
def test_a_log_that_goes_on_after_the_stage_tells_the_same_period(kind):
    """The last set-point stays for a minute: that says nothing about when it came."""
    made = flight(kind, repetitions=3, rate_hz=10.0)
    load = made.setpoints["load"]
    rows_s = np.arange(load.time_s[0], load.time_s[-1] + 60.0, 0.1) + 0.03
    if kind == "circle":
        rows_s = rows_s[(rows_s < 30.0) | (rows_s > 31.5)]  # a drop-out
    inside = (load.time_s >= 7.0) & (load.time_s <= 7.0 + 3.0 * PERIODS_S[kind])
    held = load.held_at(rows_s[(rows_s > 7.2) & (rows_s < load.time_s[inside][-1] + 0.1)])
    phase = {"circle": circle_phase, "shm": oscillation_phase}[kind](held.changes(), kind, rows_s)
    assert phase.period_s == pytest.approx(PERIODS_S[kind], rel=2e-3)


def test_one_cycle_of_a_whole_flight_is_better_than_none():
    made = flight("shm", repetitions=2)
    assert len(cut_last(made, "shm", 1).cycles) == 1
    found = cut_last(made, "shm", 2)
    assert found.cycles[0].start_s == pytest.approx(7.0 + PERIODS_S["shm"], abs=5e-3)
    assert "only 2" in found.warnings[-1]


def test_windows_of_another_period_are_left_out():
    fast, slow = flight("shm", 3), flight("shm", 2, start_s=60.0, omega_rad_s=1.5)
    both = {
        body: PoseTrack(*map(np.concatenate, zip(_arrays(a), _arrays(b), strict=True)))
        for body, a, b in ((k, fast.setpoints[k], slow.setpoints[k]) for k in fast.setpoints)
    }
    stages = (
        RecordedStage("shm", 7.0, 17.0),
        RecordedStage("hold", 17.0, 60.0),
        RecordedStage("shm_2", 60.0, 69.0),
    )
    found = cut(Recording(fast.bodies, both, stages=stages, source="two"), "shm")
    assert len(found.cycles) == 3 and found.period_s == pytest.approx(PERIODS_S["shm"], rel=1e-2)
    assert any("left out" in line for line in found.warnings)


def _arrays(track):
    return track.time_s, track.position_enu_m, track.orientation_wxyz
