"""A flight with known error, lag and gaps comes back as such."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from made_up_recordings import flight

from musls_analysis.comparison.compare import (
    TABLE_COLUMNS,
    CompareOptions,
    MeanCycle,
    compare_stage,
    frame_fit,
    table_rows,
    write_comparison,
)
from musls_analysis.comparison.cycles import CutStage, cut, cut_at
from musls_analysis.figures.comparison import write_figures
from musls_analysis.recordings.recording import PoseTrack, Recording
from musls_control.trajectories import Circle, Shm
from musls_description.config.errors import ConfigError
from musls_description.numerics.rotations import from_roll_pitch_yaw, product

KINDS = ("circle", "shm", "engage")


def compare(kind, sim, real=None, **options):
    real = real or flight(kind)
    sims = sim if isinstance(sim, list) else [sim]
    cuts = [cut(s, kind) for s in sims]
    return compare_stage(kind, cut(real, kind), cuts, CompareOptions(**options))


def without(recording, start_s, end_s):
    """The recording with a hole in its measurements."""
    bodies = {}
    for body, track in recording.bodies.items():
        keep = (track.time_s < start_s) | (track.time_s > end_s)
        bodies[body] = PoseTrack(
            track.time_s[keep], track.position_enu_m[keep], track.orientation_wxyz[keep]
        )
    return Recording(bodies, recording.setpoints, stages=recording.stages, source="with a hole")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("euler_mean", [False, True])
def test_equal_flights_have_no_error(kind, euler_mean):
    """Started at another time and sampled at another rate."""
    found = compare(kind, flight(kind, start_s=130.03, rate_hz=43.0), euler_mean=euler_mean)
    for errors in found.errors.values():
        bound = {"circle": 2e-4, "shm": 2e-3, "engage": 2e-2}[kind]  # what sampling leaves
        assert errors.translational_error_m < bound
        assert errors.geodesic_error_deg < 1.0 if kind == "engage" else 0.05
        assert errors.overlap > 0.99
    assert found.real_cycles == found.sim_cycles == 2


def test_both_flights_are_as_far_from_what_is_asked_by_one_measure():
    """Their set-points are held for 0.2 s; only the second has the reference besides."""
    real = flight("circle")
    asked = real.setpoints["load"]
    moved = PoseTrack(asked.time_s, asked.position_enu_m + [0.0, 0.0, 0.5], asked.orientation_wxyz)
    sim = replace(real, references={"load": moved})
    for its, held in ((compare("circle", sim), True), (compare("circle", sim, sim), False)):
        of_load = its.asked["load"]
        assert of_load.held is held and of_load.real_m == of_load.sim_m
        assert (of_load.sim_m > 0.49) is not held


def shifted_flights(seed, count, bias_m=0.0):
    """Circles of which each is off by 50 mm along each axis, and by some more."""
    random = np.random.default_rng(seed)
    shifts = bias_m + 0.05 * random.standard_normal((count, 3))
    turns = 0.03 * random.standard_normal(count)
    return [
        flight("circle", shift_m=tuple(shift), turn_rad=turn, repetitions=1, rate_hz=5.0)
        for shift, turn in zip(shifts, turns, strict=True)
    ]


@pytest.mark.parametrize("bias_m", [0.0, pytest.param(0.3, marks=pytest.mark.slow)])
def test_bands_hold_the_share_that_they_say(bias_m):
    """Of flights of the simulated kind; if all real ones are off alike, others of these tell it."""
    sims, others = shifted_flights(0, 40), shifted_flights(1, 40, bias_m)
    cuts = [[cut(one, "circle") for one in some] for some in (others[:20], sims, others[20:])]
    found = compare_stage("circle", cuts[0], cuts[1], others=cuts[2])
    inside = np.mean([its.inside for its in found.bands.values()])
    assert inside == pytest.approx(0.9, abs=0.06)
    wide = np.mean([np.mean(its.high - its.low, axis=0)[:3] for its in found.bands.values()])
    # Two-sided 90 % of a normal distribution; a bias is added on either side.
    assert wide == pytest.approx(2.0 * (1.645 * 0.05 + bias_m), rel=0.25)
    alone = compare_stage("circle", cuts[0], cuts[1])
    plain = np.mean([its.inside[:3] for its in alone.bands.values()])
    assert bool(plain < 0.05) is (bias_m > 0.0)
    assert "recorded rows inside the 90 % bands" in str(found)
    assert not compare_stage("circle", cuts[0], cuts[1][:9]).bands


@pytest.mark.parametrize("kind", KINDS)
def test_a_known_shift_and_turn_come_back(kind):
    """3, 4, 12 cm are 13 cm; the turn is a yaw of 5 degrees."""
    found = compare(kind, flight(kind, shift_m=(0.03, 0.04, 0.12), turn_rad=math.radians(5.0)))
    for errors in found.errors.values():
        assert errors.translational_error_m == pytest.approx(0.13, abs=2e-4)
        assert errors.geodesic_error_deg == pytest.approx(5.0, abs=0.02)
    assert found.lag_s == 0.0
    for frame in found.frames.values():
        assert frame.rotation_deg == pytest.approx((0.0, 0.0, -5.0), abs=0.02)
        assert frame.error_deg < 0.05


def test_a_tilted_frame_of_a_turning_body_comes_back_and_its_swing_stays():
    """10 degrees about the body's x, and a swing in yaw of 3 degrees: its mean |sin| is 2 / pi."""
    phase = np.linspace(0.0, 1.0, 400, endpoint=False)
    yaw, swing = 2.0 * np.pi * phase, math.radians(3.0) * np.sin(10.0 * np.pi * phase)
    level = np.zeros((400, 2))
    sim, swung = (
        from_roll_pitch_yaw(np.column_stack([level, angle])) for angle in (yaw, yaw + swing)
    )
    tilt = from_roll_pitch_yaw(np.array([[math.radians(10.0), 0.0, 0.0]]))
    real = product(swung, np.broadcast_to(tilt, sim.shape))
    nowhere = np.full((400, 3), np.nan)
    cycles = [MeanCycle(nowhere, q, nowhere, nowhere, nowhere, phase) for q in (real, sim)]
    found = frame_fit(*cycles)
    assert found.rotation_deg == pytest.approx((10.0, 0.0, 0.0), abs=0.02)
    assert found.error_deg == pytest.approx(3.0 * 2.0 / math.pi, abs=0.02)


@pytest.mark.parametrize("delay_s", [0.2, -0.13])
def test_a_known_lag_comes_back(delay_s):
    """sin(w (t - d)) - sin(w t) = -2 sin(w d / 2) cos(w t - w d / 2); the mean |cos| is 2 / pi."""
    found = compare("shm", flight("shm", delay_s=delay_s, repetitions=3))
    expected = 2.0 * math.sin(0.5 * Shm().omega_rad_s * abs(delay_s)) * 2.0 / math.pi
    assert found.lag_s == pytest.approx(delay_s, abs=0.0051)
    for errors in found.errors.values():
        assert errors.translational_error_m == pytest.approx(expected, rel=0.01)
        assert errors.lagged_translational_error_m < 0.01
        assert errors.lagged_geodesic_error_deg < 0.01


def test_a_lag_on_a_circle_turns_bodies_too():
    """Chord and angle at 0.2 rad/s over 0.3 s: 0.06 rad."""
    found = compare("circle", flight("circle", delay_s=0.3))
    load = found.errors["load"]
    assert found.lag_s == pytest.approx(0.3, abs=0.011)
    assert load.translational_error_m == pytest.approx(2 * 1.5 * math.sin(0.03), abs=1e-3)
    assert load.geodesic_error_deg == pytest.approx(math.degrees(0.06), abs=0.05)
    assert load.lagged_geodesic_error_deg < 0.05


def test_a_lag_of_a_motion_that_ends():
    found = compare("engage", flight("engage", delay_s=0.3))
    assert found.lag_s == pytest.approx(0.3, abs=0.021)
    load = found.errors["load"]
    assert load.lagged_translational_error_m < 0.2 * load.translational_error_m


def test_the_lag_is_bounded_and_says_so():
    found = compare("shm", flight("shm", delay_s=0.4), lag_limit_s=0.1)
    assert found.lag_s == pytest.approx(0.1)
    assert "at its limit" in found.warnings[-1]
    none = compare("shm", flight("shm", delay_s=0.4), lag_limit_s=0.0)
    assert none.lag_s == 0.0
    for errors in none.errors.values():
        assert errors.lagged_translational_error_m == errors.translational_error_m


def test_gaps_stay_open():
    """A hole of 6 s in one cycle of two leaves that cycle's part to the other one."""
    shift = (0.0, 0.0, 0.1)
    real = flight("circle", repetitions=1)
    found = compare("circle", flight("circle", shift_m=shift), without(real, 12.0, 18.0))
    for errors in found.errors.values():
        assert errors.translational_error_m == pytest.approx(0.1, abs=1e-4)
        assert errors.overlap == pytest.approx(1.0 - 6.0 / Circle().period_s, abs=0.004)
    assert "with a hole: 1 gap not bridged" in found.warnings
    assert any("81 % of the cycle of 'circle' compared" in line for line in found.warnings)
    both = compare("circle", flight("circle", shift_m=shift), without(flight("circle"), 12.0, 18.0))
    assert both.errors["load"].overlap == 1.0
    assert set(both.real["load"].samples) == {1, 2}


def test_too_little_overlap_is_an_error():
    real = without(flight("circle", repetitions=1), 10.0, 30.0)
    with pytest.raises(
        ConfigError, match=r"with a hole: only 3. % of a cycle of 'circle' has poses"
    ):
        compare("circle", flight("circle"), real)


def test_runs_are_pooled_with_confidence():
    """Shifts of 0, 2, 4 cm in x: mean 2 cm; s = 2 cm; two cycles of each run count."""
    runs = [flight("circle", shift_m=(x, 0.0, 0.0)) for x in (0.0, 0.02, 0.04)]
    found = compare("circle", runs)
    assert found.sim_cycles == 6
    assert found.errors["load"].translational_error_m == pytest.approx(0.02, abs=1e-4)
    deviation = np.std([0.0, 0.0, 0.02, 0.02, 0.04, 0.04], ddof=1)
    expected = 1.959964 * deviation / math.sqrt(6)
    np.testing.assert_allclose(found.sim["load"].position_ci_m[:, 0], expected, rtol=0.02)


def test_offsets_are_in_the_body_s_own_frame():
    """The load's x axis points outwards, so 0.1 m along it is a wider circle."""
    found = compare("circle", flight("circle"), offsets_m={"load": (0.1, 0.0, 0.0)})
    assert found.errors["load"].translational_error_m == pytest.approx(0.1, abs=1e-4)
    assert found.errors["drone_1"].translational_error_m < 1e-3
    radius = np.hypot(*found.sim["load"].position_enu_m[:, :2].T)
    np.testing.assert_allclose(radius, 1.6, atol=1e-3)


def fewer(recording, *bodies):
    kept = {body: recording.bodies[body] for body in bodies}
    return Recording(kept, recording.setpoints, stages=recording.stages, source="fewer")


def test_missing_bodies_are_named():
    full, part = flight("shm"), fewer(flight("shm"), "load", "drone_1")
    with pytest.raises(ConfigError, match="fewer: no body 'drone_2' in it; it has load, drone_1"):
        compare("shm", part, full)
    with pytest.raises(ConfigError, match="fewer: no body 'drone_2' in it, which made-up shm has"):
        compare("shm", full, part)
    found = compare("shm", full, part, bodies=("load",))
    assert list(found.errors) == ["load"]
    with pytest.raises(ConfigError, match="no body 'lode'"):
        compare("shm", full, offsets_m={"lode": (0, 0, 1)})


def test_periods_must_agree():
    real = flight("shm")
    cycles = cut(real, "shm").cycles
    for factor, error in ((1.05, False), (1.5, True)):
        longer = tuple(type(c)(c.start_s, c.start_s + factor * Shm().period_s) for c in cycles[:1])
        sim = CutStage(real, longer, periodic=True)
        if error:
            with pytest.raises(ConfigError, match=r"the set-point's period in 'shm' is 4.712 s"):
                compare_stage("shm", cut(real, "shm"), [sim])
        else:
            found = compare_stage("shm", cut(real, "shm"), [sim])
            assert any("period" in line for line in found.warnings)


def test_motions_that_do_not_repeat_are_cut_to_the_shortest():
    recording = flight("engage")
    sim = cut_at(recording, [(10.0, 14.0)])
    found = compare_stage("engage", cut(recording, "engage"), [sim])
    assert found.period_s == pytest.approx(4.0)
    assert "of which the first 4.0 s are compared" in found.warnings[0]


def test_everything_is_written(tmp_path):
    found = compare("shm", flight("shm", shift_m=(0.0, 0.0, 0.05)))
    write_comparison([found], {"real": "a"}, tmp_path)
    write_figures([found], tmp_path / "figures")
    with (tmp_path / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["body"] for row in rows] == ["load", "drone_1", "drone_2", "drone_3"]
    assert tuple(rows[0]) == TABLE_COLUMNS and len(table_rows([found])[0]) == len(TABLE_COLUMNS)
    assert float(rows[0]["translational_error_mm"]) == pytest.approx(50.0, abs=0.1)
    summary = json.loads((tmp_path / "comparison.json").read_text())
    assert summary["real"] == "a"
    assert summary["stages"]["shm"]["errors"]["load"]["overlap"] == 1.0
    with (tmp_path / "mean_shm.csv").open() as file:
        means = list(csv.DictReader(file))
    assert len(means) == 2 * 4 * 500 and means[0]["source"] == "real"
    figures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    bodies = ("drone_1", "drone_2", "drone_3", "load")
    assert figures == sorted(
        ["shm_errors.png", "shm_paths_3d.png", *(f"shm_pose_{b}.png" for b in bodies)]
    )
    assert all((tmp_path / "figures" / name).stat().st_size > 10_000 for name in figures)
    assert all(isinstance(mean, MeanCycle) for mean in found.real.values())


def test_a_body_whose_stamps_are_late_is_told_and_put_right():
    """Circle of 1.5 m at 0.3 m/s: drone 2's stamps are 0.1 s late, all lag by 0.03 s besides."""
    real, sim = flight("circle"), flight("circle", start_s=6.97)
    bodies = dict(real.bodies)
    late = bodies["drone_2"]
    bodies["drone_2"] = replace(late, time_s=late.time_s + 0.1)
    found = compare("circle", sim, replace(real, bodies=bodies, source="real"))
    (line,) = [line for line in found.warnings if "--clock" in line]
    assert line.startswith("real: drone_2 is 0.10 s behind the others")
    assert "--clock drone_2=-0.10" in line
    assert not [line for line in compare("circle", sim, real).warnings if "--clock" in line]


@pytest.mark.parametrize("every_s", [0.5, 1.0])
def test_sparse_rows_are_no_gaps(every_s):
    real = flight("circle", rate_hz=1.0 / every_s)
    found = compare("circle", flight("circle"), real)
    assert not [line for line in found.warnings if "gap" in line]
    for errors in found.errors.values():
        assert errors.overlap > 0.95
