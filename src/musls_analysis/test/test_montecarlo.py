"""Monte Carlo: draws, intervals that hold what they promise, the worst worlds."""

import numpy as np
import pytest

from musls_analysis.sweep.montecarlo import check_figure, statistics, study_of, worst
from musls_analysis.sweep.plan import Parameter, _drawn, load_sweep, make_plan, points
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml

SCENARIO = {
    "system": "x500_trio",
    "mission": {"stages": [{"kind": "engage", "height_m": 0.5, "yaw_rad": 1.7}]},
}
MASS, LENGTH = "system.load.mass_kg", "system.cables.0.length_m"
NORMAL = {MASS: {"mean": 1.6, "std": 0.1}, LENGTH: {"mean": 2.4, "std": 0.02}}


def study(worlds=1000, seed=0, **vary):
    return study_of("study", "engage", vary, worlds, seed)


def rows_of(values, **more):
    usual = {"status": "finished", "warnings": "", "seed": 1, "steps": 7, **more}
    return [{"id": str(k), "miss_m": float(v), **usual} for k, v in enumerate(values)]


def test_correlated_draws_have_mean_deviation_and_correlation():
    pair = {"keys": [MASS, LENGTH], "value": -0.7}
    drawn = points(study(20_000, parameters=NORMAL, correlations=[pair]))
    values = np.array([[point[MASS], point[LENGTH]] for point in drawn])
    assert values.mean(axis=0) == pytest.approx([1.6, 2.4], rel=2e-3)
    assert values.std(axis=0) == pytest.approx([0.1, 0.02], rel=0.02)
    assert np.corrcoef(values.T)[0, 1] == pytest.approx(-0.7, abs=0.01)
    assert drawn == points(study(20_000, parameters=NORMAL, correlations=[pair]))


def test_correlated_lists_and_ranges_keep_their_own_distributions():
    given = {MASS: {"min": 1.0, "max": 2.0}, "physics.gravity_m_s2": {"values": [9.0, 10.0]}}
    pair = {"keys": [*given], "value": 0.95}
    drawn = points(study(20_000, parameters=given, correlations=[pair]))
    mass, gravity = (np.array([point[key] for point in drawn]) for key in given)
    assert mass.mean() == pytest.approx(1.5, abs=0.01) and 1.0 <= mass.min() < mass.max() <= 2.0
    assert gravity.mean() == pytest.approx(9.5, abs=0.02)
    assert mass[gravity > 9.5].mean() - mass[gravity < 9.5].mean() > 0.4


def test_every_world_has_noise_of_its_own():
    runs = make_plan(study(5, parameters=NORMAL), SCENARIO).runs
    assert [run.settings["seed"] for run in runs] == [0, 1, 2, 3, 4]
    noise_alone = make_plan(study(5), {**SCENARIO, "seed": 7}).runs
    assert [run.settings["seed"] for run in noise_alone] == [7, 8, 9, 10, 11]
    assert {run.settings["system"]["load"]["mass_kg"] for run in noise_alone} == {1.66}


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    """Of many studies of an exponential distribution, whose mean and percentiles are known."""
    rng, sweep = np.random.default_rng(1), study(400)
    truth = {"mean": 1.0, "p5": -np.log(0.95), "p50": np.log(2.0), "p95": -np.log(0.05)}
    held = dict.fromkeys(truth, 0)
    for _ in range(300):
        row = statistics(rows_of(rng.exponential(size=400)), sweep)[-1]
        for key, value in truth.items():
            held[key] += row[f"{key}_low"] <= value <= row[f"{key}_high"]
    for key, count in held.items():  # 95 % of 300 is 285, with a deviation of 4
        assert 270 <= count <= 300, key


def test_shares_and_columns():
    rows = rows_of(range(100)) + rows_of([5.0], status="failed") * 25
    rows[3]["warnings"] = "drone_1 upside down"
    failed, warned, miss = statistics(rows, study())
    assert (failed["figure"], failed["mean"], failed["worlds"]) == ("share.failed", 0.2, 125)
    assert failed["mean_low"] == pytest.approx(0.134, abs=1e-3)  # tables of Clopper and Pearson
    assert failed["mean_high"] == pytest.approx(0.281, abs=1e-3)
    assert warned["mean"] == 0.01
    assert (miss["figure"], miss["worlds"], miss["largest"]) == ("miss_m", 100, 99.0)
    assert miss["p50"] == 49.5 and miss["p50_low"] < 49.5 < miss["p50_high"]


def test_few_worlds_leave_the_ends_open():
    row = statistics(rows_of(range(10)), study())[-1]
    assert row["p95_high"] is None and row["p5_low"] is None and row["p50_high"] is not None


def test_the_worst_come_first_and_failed_ones_before_them():
    rows = rows_of([3.0, 9.0, 1.0])
    rows.append({"id": "lost", "status": "failed", "reason": "diverged"})
    assert [row["id"] for row in worst(rows, study(), 3)] == ["lost", "1", "0"]
    with pytest.raises(ConfigError, match=r"no figure 'mis_m' .*did you mean 'miss_m'"):
        worst(rows, study(), 1, "mis_m")


BAD = {
    "one world": ({"worlds": 1}, "worlds = 1: must be at least 2"),
    "seed": ({"seed": -1}, "seed = -1: must be 0 or above"),
    "key": ({"sampled": "grid"}, "sampled"),
    "nothing": ({"parameters": {MASS: {"mean": 1.0}}}, "give both mean and std"),
    "stranger": (
        {"parameters": NORMAL, "correlations": [{"keys": [MASS, "wind"], "value": 0.5}]},
        "correlations: no parameter 'wind'",
    ),
    "itself": (
        {"parameters": NORMAL, "correlations": [{"keys": [MASS, MASS], "value": 0.5}]},
        "paired with itself",
    ),
    "impossible": (
        {
            "parameters": {**NORMAL, "physics.gravity_m_s2": {"mean": 9.8, "std": 0.1}},
            "correlations": [
                {"keys": [MASS, LENGTH], "value": 0.9},
                {"keys": [MASS, "physics.gravity_m_s2"], "value": 0.9},
                {"keys": [LENGTH, "physics.gravity_m_s2"], "value": -0.9},
            ],
        },
        "no parameters can have all of these at once",
    ),
}


def test_a_study_takes_what_varies_from_a_sweeps_file_and_a_sweep_from_a_studys(tmp_path):
    pair = {"keys": [MASS, LENGTH], "value": 0.5}
    drawn = {"kind": "random", "runs": 7, "correlations": [pair]}
    file = tmp_path / "both.yaml"
    shared = {"parameters": NORMAL, "set": {"cable_model": "massless"}}
    file.write_text(to_yaml({"scenario": "engage", "sampling": drawn, **shared}))
    as_study = study_of("study", "engage", file, 20, 0)
    assert as_study.sampling.correlations == load_sweep(file).sampling.correlations
    assert as_study.parameters == load_sweep(file).parameters
    random = {"kind": "random", "runs": 20, "own_noise": True}
    file.write_text(
        to_yaml({"scenario": "engage", "sampling": random, "correlations": [pair], **shared})
    )
    assert points(load_sweep(file)) == points(as_study)
    grid = {MASS: {"min": 1.0, "max": 2.0, "count": 3}}
    assert study(5, parameters=grid).parameters[MASS].count is None


@pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD)
def test_bad_studies_are_one_line(given, message):
    with pytest.raises(ConfigError, match=message) as error:
        study(**given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("low", "high"), [(5.0, 6.0), (-4.0, -3.0), (1.008, 1.0085), (0.0, 0.99), (1.0, 2.0)]
)
def test_draws_stay_within_their_cut_however_far_it_is(low, high):
    """Up to 4000 standard deviations away, and with the tail's distribution."""
    cut = Parameter(mean=1.0, std=0.001, min=low, max=high)
    unit = (np.arange(1000) + 0.5) / 1000
    drawn = np.array(_drawn(cut, unit))
    assert low <= drawn.min() and drawn.max() <= high
    near, away = (low, 1.0) if low > 1.0 else (high, -1.0)
    if low > 1.0 or high < 1.0:  # an exponential tail, to first order
        sigmas = abs(near - 1.0) / 0.001
        expected = near + away * 0.001 / sigmas * np.log(2.0)
        assert np.median(drawn) == pytest.approx(expected, abs=0.05 * 0.001 / sigmas + 1e-12)


def test_a_figure_that_no_flight_has_is_told_before_the_flights():
    plan = make_plan(study(5), SCENARIO)
    for known in ("max_tension_n", "sim_time_s", "errors.load.engage.translational_error_max_m"):
        check_figure(known, plan)
    with pytest.raises(ConfigError, match="--by nosuch: no flight has this figure"):
        check_figure("nosuch", plan)
