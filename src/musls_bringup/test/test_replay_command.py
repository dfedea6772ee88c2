"""Replay: of our own flight, where the load is known, and of the real flights."""

import json
import signal
from pathlib import Path

import pytest

from musls_analysis.recordings.readers import read_recording
from musls_analysis.replay import Replay, ReplaySpec
from musls_analysis.replay.estimators import check_estimator, estimate_load
from musls_bringup.cli import main
from musls_bringup.flight.results import StopRequested
from musls_description.system.system_files import load_system

FLIGHTS = Path(__file__).resolve().parents[4] / "shared" / "flights"

SWAY = """
description: sway in the air
system: x500_trio_swivel
start: air
estimation: {kind: truth}
mission:
  setpoint_rate_hz: 50
  stages: [{kind: shm, amplitude_m: 0.3, omega_rad_s: 1.2, repetitions: 1}]
"""


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay")
    scenario = folder / "sway.yaml"
    scenario.write_text(SWAY)
    assert main(["fly", str(scenario), "--out", str(folder / "flight"), "--no-report"]) == 0
    return folder / "flight"


def replayed(recording, out, *options):
    assert main(["replay", str(recording), "--out", str(out), *options]) == 0
    return json.loads((out / "summary.json").read_text())


@pytest.mark.slow
def test_replay_of_our_own_flight_predicts_its_load(flown, tmp_path):
    """Same cables, same drone motion: what is left is smoothing and the lead-in."""
    numbers = replayed(flown, tmp_path / "out", "--step", "0.004", "--lead-in", "1.5")
    assert numbers["prescribed_position_miss_m"] < 1e-3
    assert numbers["prescribed_attitude_miss_deg"] < 0.1
    assert abs(numbers["energy_audit_relative_error"]) < 0.01
    assert numbers["translational_error_m"] < 5e-3
    assert numbers["geodesic_error_deg"] < 1.5
    rows = (tmp_path / "out" / "load.csv").read_text().splitlines()
    assert rows[0].startswith("t_s,predicted_x_m") and len(rows) > 100
    assert (tmp_path / "out" / "load.png").stat().st_size > 10_000


def test_a_wrong_reference_point_shows(flown, tmp_path):
    numbers = replayed(flown, tmp_path / "out", "--step", "0.004", "--offset", "drones=0,0,0.05")
    assert numbers["mean_difference_m"][2] == pytest.approx(-0.05, abs=0.01)


@pytest.mark.slow
def test_one_stage_is_predicted_from_its_begin(flown, tmp_path):
    """The lead-in lies before the stage, where the recording has it."""
    flight = read_recording(flown)
    stage = next(s for s in flight.stages if s.name == "shm")
    options = ["--step", "0.004", "--lead-in", "1.0", "--stage", "shm"]
    numbers = replayed(flown, tmp_path / "out", *options)
    first_s = max(stage.start_s, flight.start_s + 0.5)
    assert numbers["compared_from_s"] == pytest.approx(first_s, abs=0.05)
    assert numbers["compared_to_s"] == pytest.approx(stage.end_s, abs=0.1)
    assert numbers["translational_error_m"] < 0.01


def test_estimators_find_the_load_from_the_drones(flown, tmp_path):
    numbers = replayed(
        flown, tmp_path / "out", "--cable-model", "elastic:1", "--step", "0.004",
        "--estimator", "ekf", "--estimator", "{kind: quasi_static, lag_s: 0}",
    )  # fmt: skip
    filtered, resting = numbers["ekf"], numbers["{kind: quasi_static, lag_s: 0}"]
    assert filtered["translational_error_m"] < 5e-3 and filtered["geodesic_error_deg"] < 1.5
    assert resting["translational_error_m"] > 2.0 * filtered["translational_error_m"]
    rows = (tmp_path / "out" / "load_ekf_1.csv").read_text().splitlines()
    assert rows[0].startswith("t_s,predicted_x_m") and len(rows) > 100


def test_without_rotor_speeds_the_weight_says_what_they_carry(flown):
    """As on recordings of motion capture alone: several times worse than with the speeds."""
    replay = Replay(read_recording(flown), ReplaySpec())
    system, ekf = load_system("x500_trio_swivel"), check_estimator("ekf")
    known = estimate_load(replay, system, ekf)
    replay.rotors = {}
    guessed = estimate_load(replay, system, ekf)
    assert 2.0 * known.translational_error_m < guessed.translational_error_m < 0.02
    assert guessed.geodesic_error_rad < 0.1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--offset", "load=1"], "BODY=X,Y,Z"),
        (["--stage", "circle"], "no stage 'circle'; it has"),
        (["--system", "x500_trio"], "twist: free"),
        (["--system", "x500_solo"], "twist: free"),
        (["--step", "0.003"], "must divide"),
        (["--offset", "drone_9=0,0,0"], "offset of 'drone_9'"),
        (["--fit", "dampin"], "did you mean 'damping'"),
        (["--fit", "damping", "--bounds", "damping=1"], "NAME=LOW,HIGH"),
        (["--bounds", "damping=1,2"], "those of a --fit"),
        (
            ["--fit", "damping", "--cable-model", "elastic", "--cable-model", "massless"],
            "takes one",
        ),
        (["--cable-model", "rigid_linkz"], "did you mean 'rigid_links'"),
        (["--cable-model", "rigid_links:0"], "from 1 to 1000"),
        (["--cable-model", "elastic:x"], "from 1 to 1000"),
        (["--cable-model", "spring:3"], "unknown cable model 'spring:3'"),
        (["--cable-model", "massless", "--cable-model", "massless"], "given twice"),
        (["--cable-model", "rigid_rods"], "leave nothing to predict"),
        (["--estimator", "efk"], "did you mean 'ekf'"),
        (["--estimator", "mocap"], "the drones alone"),
        (["--estimator", "{kind: ekf, force_noise_n: -1}"], "force_noise_n"),
        (["--estimator", "ekf", "--estimator", "ekf"], "given twice"),
        (["--with-fit", str(Path(__file__).parents[3] / "pyproject.toml")], "not valid JSON"),
    ],
)
def test_bad_input_is_one_line(flown, tmp_path, capsys, options, words):
    assert main(["replay", str(flown), "--out", str(tmp_path / "out"), *options]) == 2
    error = capsys.readouterr().err.strip()
    assert error.count("\n") == 0 and words in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("flight", "limit_m"), [("shm", 0.07), ("circle", 0.05)])
def test_real_flights_are_predicted(flight, limit_m, tmp_path):
    """The cable model alone, recorded load origin 7 cm below the load's centre of mass."""
    recording = FLIGHTS / f"flight_2136_{flight}.csv"
    if not recording.is_file():
        pytest.skip("shared/flights is not beside the checkout")
    numbers = replayed(recording, tmp_path / "out", "--offset", "load=0,0,-0.07")
    assert numbers["prescribed_position_miss_m"] < 1e-3
    assert abs(numbers["energy_audit_relative_error"]) < 0.01
    assert numbers["translational_error_m"] < limit_m


@pytest.mark.slow
def test_a_fit_that_is_stopped_keeps_the_best_so_far(flown, tmp_path, capsys, monkeypatch):
    from musls_analysis.estimation.replays import ReplayModel

    residuals, calls = ReplayModel.residuals, []

    def stopped(self, values):
        calls.append(len(values))
        if len(calls) == 6:
            raise StopRequested(signal.SIGINT)
        return residuals(self, values)

    monkeypatch.setattr(ReplayModel, "residuals", stopped)
    words = ["--step", "0.004", "--lead-in", "1.5", "--offset", "load=0,0,0.05"]
    words += ["--fit", "load_origin_z", "--workers", "1", "--out", str(tmp_path / "fit")]
    assert main(["replay", str(flown), *words]) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"the best fit so far is kept: --with-fit {tmp_path / 'fit'} starts from it" in said
    found = json.loads((tmp_path / "fit" / "fit.json").read_text())
    assert found["converged"] is False
    assert abs(found["parameters"]["load_origin_z"]["value"]) < 0.0501  # from where it began
    assert (tmp_path / "fit" / "system.yaml").is_file()


@pytest.mark.slow
def test_fit_then_replay_another_way_with_it(flown, tmp_path, capsys):
    """The wrong reference point of above is found, and carried over by --with-fit."""
    wrong = ["--step", "0.004", "--lead-in", "1.5", "--offset", "load=0,0,0.05"]
    fitted = replayed(flown, tmp_path / "fit", *wrong, "--fit", "load_origin_z", "--workers", "1")
    assert "load_origin_z" in capsys.readouterr().out
    found = json.loads((tmp_path / "fit" / "fit.json").read_text())
    assert found["parameters"]["load_origin_z"]["value"] == pytest.approx(0.0, abs=5e-3)
    (errors,) = found["errors"]
    assert errors["fitted_to_all"]["translational_error_m"] < 0.01
    assert errors["as_given"]["translational_error_m"] > 0.04
    system = str(tmp_path / "fit" / "system.yaml")
    carried = [*wrong, "--with-fit", str(tmp_path / "fit"), "--system", system]
    again = replayed(flown, tmp_path / "again", *carried)
    assert again["translational_error_m"] == pytest.approx(
        fitted["translational_error_m"], rel=1e-6
    )


@pytest.mark.slow
def test_cable_models_side_by_side(flown, tmp_path, capsys):
    models = ["rigid_links:3", "rigid_links:1", "elastic:3", "elastic:1", "massless"]
    options = [word for model in models for word in ("--cable-model", model)]
    numbers = replayed(flown, tmp_path / "out", "--step", "0.004", *options)
    assert list(numbers) == models
    assert all(n["translational_error_m"] < 0.02 for n in numbers.values())
    assert all(abs(n["energy_audit_relative_error"]) < 0.01 for n in numbers.values())
    assert (tmp_path / "out" / "rigid_links_3" / "load.csv").is_file()
    printed = capsys.readouterr()
    assert all(model in printed.out for model in models)


@pytest.mark.slow
def test_the_real_engagement_is_met_within_a_millimetre(tmp_path):
    """Cables snap taut, the load leaves the ground: 1 mm, 0.1 degrees, 1 % all the same."""
    recording = FLIGHTS / "flight_2136_engage.csv"
    if not recording.is_file():
        pytest.skip("shared/flights is not beside the checkout")
    numbers = replayed(recording, tmp_path / "out", "--lead-in", "0.5", "--step", "0.004")
    assert numbers["prescribed_position_miss_m"] < 1e-3
    assert numbers["prescribed_attitude_miss_deg"] < 0.1
    assert abs(numbers["energy_audit_relative_error"]) < 0.01
