"""Sweep files, sampling, and the runs that follow from them."""

import numpy as np
import pytest
from scipy import stats

from musls_analysis.sweep.plan import load_sweep, make_plan, points, run_id, wanted_series
from musls_description.config.errors import ConfigError

SCENARIO = "system: x500_trio\nmission: {stages: [{kind: engage, height_m: 0.5, yaw_rad: 1.7}]}\n"


def sweep_of(tmp_path, text, name="study"):
    path = tmp_path / f"{name}.yaml"
    path.write_text("scenario: engage.yaml\n" + text)
    (tmp_path / "engage.yaml").write_text(SCENARIO)
    return load_sweep(path)


def plan_of(tmp_path, text):
    return make_plan(sweep_of(tmp_path, text), tmp_path / "engage.yaml")


# ---------- Sampling


def test_grid_is_all_combinations_with_the_last_parameter_fastest(tmp_path):
    sweep = sweep_of(
        tmp_path,
        "parameters:\n  a: [x, y]\n  b: {min: 1.0e-3, max: 0.1, count: 3, log: true}\n"
        "  c: {min: 1, max: 4, count: 3, integer: true}\n",
    )
    found = points(sweep)
    assert len(found) == 18
    assert [p["a"] for p in found] == ["x"] * 9 + ["y"] * 9
    assert [p["b"] for p in found[:9:3]] == pytest.approx([1e-3, 1e-2, 1e-1])
    assert [p["c"] for p in found[:3]] == [1, 2, 4]


def random_points(tmp_path, kind, runs, seed=0):
    text = (
        f"sampling: {{kind: {kind}, runs: {runs}, seed: {seed}}}\n"
        "parameters:\n  flat: {min: -2, max: 6}\n  log: {min: 1.0e-4, max: 1, log: true}\n"
        "  whole: {min: 3, max: 7, integer: true}\n  choice: [p, q, r, s]\n"
    )
    found = points(sweep_of(tmp_path, text))
    return found, {key: np.array([p[key] for p in found]) for key in found[0]}


@pytest.mark.parametrize("kind", ["random", "latin_hypercube"])
def test_draws_have_the_distributions_asked_for(tmp_path, kind):
    _, drawn = random_points(tmp_path, kind, 4000)
    assert stats.kstest(drawn["flat"], stats.uniform(-2, 8).cdf).pvalue > 1e-3
    assert stats.kstest(np.log10(drawn["log"]), stats.uniform(-4, 4).cdf).pvalue > 1e-3
    values, counts = np.unique(drawn["whole"], return_counts=True)
    assert values.tolist() == [3, 4, 5, 6, 7] and stats.chisquare(counts).pvalue > 1e-3
    values, counts = np.unique(drawn["choice"], return_counts=True)
    assert values.tolist() == ["p", "q", "r", "s"] and stats.chisquare(counts).pvalue > 1e-3
    assert abs(np.corrcoef(drawn["flat"], np.log(drawn["log"]))[0, 1]) < 0.06


def test_latin_hypercube_hits_every_stratum_of_every_parameter_once(tmp_path):
    _, drawn = random_points(tmp_path, "latin_hypercube", 40)
    flat = np.floor((drawn["flat"] + 2) / 8 * 40)
    log = np.floor((np.log10(drawn["log"]) + 4) / 4 * 40)
    assert sorted(flat) == sorted(log) == list(range(40))
    assert np.unique(drawn["choice"], return_counts=True)[1].tolist() == [10] * 4
    assert np.unique(drawn["whole"], return_counts=True)[1].tolist() == [8] * 5


@pytest.mark.parametrize("kind", ["random", "latin_hypercube"])
def test_draws_depend_on_the_seed_alone(tmp_path, kind):
    assert random_points(tmp_path, kind, 20)[0] == random_points(tmp_path, kind, 20)[0]
    assert random_points(tmp_path, kind, 20)[0] != random_points(tmp_path, kind, 20, seed=1)[0]


# ---------- Runs


def test_same_settings_are_one_run(tmp_path):
    plan = plan_of(
        tmp_path,
        "repetitions: 2\nset: {seed: 3}\nparameters: {system.cables.links: [5, 7, 5]}\n",
    )
    assert len(plan.runs) == 4 and plan.duplicates == 2
    assert [run.settings["seed"] for run in plan.runs] == [3, 4, 3, 4]
    links = [run.settings["system"]["cables"][2]["links"] for run in plan.runs]
    assert links == [5, 5, 7, 7]


def test_the_id_is_of_the_settings_and_not_of_their_names(tmp_path):
    (run,) = plan_of(tmp_path, "parameters: {system.cables.links: [15]}\n").runs
    (other,) = plan_of(tmp_path, "name: o\nparameters: {physics.gravity_m_s2: [9.80665]}\n").runs
    assert run.id == other.id  # both are the defaults
    assert run_id({**run.settings, "name": "x", "description": "y"}) == run.id
    assert run_id({**run.settings, "seed": 1}) != run.id
    assert run_id(dict(reversed(run.settings.items()))) == run.id


def test_a_whole_system_can_be_a_parameter(tmp_path):
    plan = plan_of(tmp_path, "parameters: {system: [x500_duo, x500_quad]}\n")
    assert [len(run.settings["system"]["drones"]) for run in plan.runs] == [2, 4]


def test_series_named_in_figures_and_metrics_are_kept(tmp_path):
    sweep = sweep_of(
        tmp_path,
        "parameters: {seed: [1]}\nmetrics: [{signal: cable_2.tension_n}]\n"
        "figures: [{kind: overlay, stage: engage, signals: [drone_1.z_m]}]\n",
    )
    assert wanted_series(sweep) == ["load", "drone_1", "cable_2"]


P = "parameters: {seed: [1]}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parameters: {}\n", ["parameters", "at least one key"]),
        ("", ["parameters is missing"]),
        (P + "paramters: 1\n", ["'paramters'", "did you mean 'parameters'"]),
        (P + "sampling: girdd\n", ["girdd", "grid"]),
        (P + "sampling: random\n", ["sampling", "runs is missing"]),
        (P + "repetitions: 2\n", ["seed as a parameter"]),
        ("parameters: {a: {min: 1, max: 2}}\n", ["parameters.a", "needs count"]),
        ("parameters: {a: {min: 2, max: 1}}\n", ["min 2 must be below max 1"]),
        ("parameters: {a: {min: 0, max: 1, log: true}}\n", ["log: true", "above 0"]),
        ("parameters: {a: {values: [1], min: 0}}\n", ["either values, or min and max"]),
        ("set: {a: 1}\nparameters: {a: [1]}\n", ["'a' is given in both set and parameters"]),
        (P + "metrics: [{name: x}]\n", ["one of path and signal"]),
        (P + "figures: [{kind: metric, x: sed, panels: [[a]]}]\n", ["'sed'", "'seed'"]),
        (P + "figures: [{kind: pie}]\n", ["pie", "overlay, metric"]),
        (P + "name: a b\n", ["name = 'a b'"]),
        (P + "timeout_s: 0\n", ["timeout_s = 0", "greater than 0"]),
        (P + "repetitions: [\n", ["line"]),
        ("parameters: {system.cables.linkz: [5]}\n", ["linkz = 5", "did you mean 'links'"]),
        ("parameters: {system.cables.links: [5, 0]}\n", ["links = 0", "greater than or equal"]),
        ("parameters: {system: [x500_tri]}\n", ["x500_tri", "x500_trio"]),
        ("set: {wnd.x: 1}\n" + P, ["wnd"]),
        (P + "metrics: [{signal: load.zz_m}]\n", ["'load.zz_m'", "load.z_m"]),
        (P + "metrics: [{signal: cable_4.tension_n}]\n", ["'cable_4.tension_n'"]),
        (P + "metrics: [{signal: load.z_m, stage: engag}]\n", ["'engag'", "'engage'"]),
        (P + "metrics: [eror.load]\n", ["'eror.load'", "'errors'"]),
        (P + "metrics: [errors.lod.engage.translational_error_m]\n", ["'load'"]),
        (P + "metrics: [errors.load.engag.translational_error_m]\n", ["'engag'", "'engage'"]),
        (P + "metrics: [errors.load.engage.translational_eror_m]\n", ["translational_error_m"]),
        (P + "metrics: [errors.load.engage]\n", ["names no number", "geodesic_error_deg"]),
        (P + "metrics: [cables.cable_4.max_tension_n]\n", ["'cable_3'"]),
        (P + "metrics: ['cables.*.stages.engage.slak_fraction']\n", ["'slack_fraction'"]),
        (P + "metrics: [steps.load]\n", ["nothing below 'steps'"]),
        (P + "figures: [{kind: metric, panels: [[max_tensin_n]]}]\n", ["'max_tension_n'"]),
        (
            P
            + "figures: [{kind: distribution, metrics: [errors.load.enage.geodesic_error_deg]}]\n",
            ["'enage'", "'engage'"],
        ),
        (P + "series: [lod]\n", ["'lod'", "'load'"]),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, text, words):
    with pytest.raises(ConfigError) as caught:
        plan_of(tmp_path, text)
    message = str(caught.value)
    assert "\n" not in message and all(word in message for word in words), message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parameters: {seed: [1]}\ntimeout_s: 1e300\n", ["timeout_s", "2592000"]),
        ("parameters: {seed: [1]}\ntimeout_s: .inf\n", ["timeout_s"]),
        (
            "parameters:\n" + "".join(
                f"  k{i}: {{min: 0, max: 1, count: 100000}}\n" for i in range(4)
            ),
            ["runs", "at most 100000"],
        ),
        ("parameters: {seed: [1, 2]}\nsampling: {kind: random, runs: 99999999}\n", ["runs"]),
        ("parameters: {a: [1]}\nsampling: {kind: random, runs: 99999}\nrepetitions: 2\n", ["runs"]),
        ("parameters: {seed: {min: 0, max: 1e300, count: 3}}\n", ["max"]),
        (f"name: {'n' * 101}\nparameters: {{seed: [1]}}\n", ["name", "100"]),
    ],
)  # fmt: skip
def test_sweeps_without_end_are_refused_at_once(tmp_path, text, words):
    with pytest.raises(ConfigError) as error:
        sweep_of(tmp_path, text)
    assert all(word in str(error.value) for word in words), error.value
