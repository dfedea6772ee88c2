"""`musls fit-drones`: what was put into a flight is found in it."""

import numpy as np
import pytest

from musls_analysis.estimation.drones import imperfections_of
from musls_bringup.api.studies import plan_montecarlo
from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import main
from musls_bringup.flight.fly import FlyOptions, fly
from musls_bringup.papers.reproduce import faults_override
from musls_description.config.strict_yaml import parse_yaml
from musls_sim.imperfections import tilt_matrix
from musls_sim.specs.imperfections import DroneImperfections, Imperfections

SHORT = [
    "system=x500_trio_swivel",
    "system.cables.links=5",
    "start=air",
    "mission.stages=[{kind: circle, radius_m: 0.7, repetitions: 2}, {kind: shm, repetitions: 5}]",
]
UP = np.array([0.0, 0.0, 1.0])


def test_tilts_push_as_they_were_found():
    """Along the autopilot's own axes: force of the tilted rotors, seen from the tilted board."""
    push = np.array([0.4, -0.3, 0.0, 0.2, 0.05])
    faults = imperfections_of(push, np.array([0.01, -0.02, 0.0, 0.03]), np.zeros(2))
    assert faults.setpoint_delay_s == 0.05
    for drone, wanted in zip(faults.drones, push[:-1].reshape(2, 2), strict=True):
        axis = tilt_matrix(drone.level_tilt_rad).T @ tilt_matrix(drone.thrust_tilt_rad) @ UP
        np.testing.assert_allclose(9.80665 * axis[:2], wanted, atol=3e-3)


def test_flights_without_a_known_stage_are_named(tmp_path, capsys):
    assert main(["fit-drones", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "no *_circle.csv" in error and error.count("\n") == 1


@pytest.mark.slow
def test_what_was_put_into_a_flight_is_found(tmp_path):
    """Tilts of up to 2.5 degrees and 60 ms, from a flight with another seed."""
    put = Imperfections(
        setpoint_delay_s=0.06,
        drones=(
            DroneImperfections(level_tilt_rad=(0.02, 0.04)),
            DroneImperfections(thrust_tilt_rad=(0.02, 0.0), level_tilt_rad=(0.0, -0.01)),
            DroneImperfections(mocap_offset_m=(0.0, 0.0, -0.03)),
        ),
    )
    words = [word for key in SHORT[1:] for word in ("--set", key)]
    scenario = ["seed=3", *SHORT, faults_override(put)]
    fly(find_scenario("paper", scenario), tmp_path / "real", FlyOptions(report=False))
    out = tmp_path / "fit"
    assert main(["fit-drones", str(tmp_path / "real"), *words, "--out", str(out)]) == 0
    faults = find_scenario("hold", [f"imperfections={out / 'imperfections.yaml'}"]).imperfections
    assert faults.setpoint_delay_s == pytest.approx(0.06, abs=0.01)
    for found, truth in zip(faults.drones, put.drones, strict=True):
        np.testing.assert_allclose(found.level_tilt_rad, truth.level_tilt_rad, atol=4e-3)
        np.testing.assert_allclose(found.thrust_tilt_rad, truth.thrust_tilt_rad, atol=3e-3)
        assert found.mocap_offset_m[2] == pytest.approx(truth.mocap_offset_m[2], abs=5e-3)
    drawn = parse_yaml((out / "posterior.yaml").read_text(), "posterior")["parameters"]
    delay = drawn["imperfections.setpoint_delay_s"]
    assert delay["mean"] == faults.setpoint_delay_s
    one, other = np.random.default_rng(0).uniform(0.0, 0.2, (2, 100_000))  # set-points of 5 Hz
    assert delay["std"] == pytest.approx(np.std(other - one), rel=0.05)
    worlds = plan_montecarlo("paper", out / "posterior.yaml", 20, 0).runs
    delays_s = [world.settings["imperfections"]["setpoint_delay_s"] for world in worlds]
    assert min(delays_s) >= 0.0
    assert 0.03 < np.std(delays_s) < 0.09
