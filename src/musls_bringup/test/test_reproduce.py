"""`musls reproduce`: which recordings it takes, and its table of flights with a known answer."""

import json
from pathlib import Path

import pytest

from musls_analysis.comparison.compare import CompareOptions, compare_stage
from musls_analysis.comparison.cycles import cut
from musls_analysis.paper.flights import FIRST_CYCLES_DROPPED, TABLE_III, one_mission, some_cycles
from musls_bringup.api import simulation
from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import main
from musls_bringup.flight.fly import FlyOptions, fly
from musls_bringup.papers.reproduce import faults_override, fit_drones, paper

FLIGHTS = Path(__file__).parents[4] / "shared" / "flights"


@pytest.mark.skipif(not FLIGHTS.is_dir(), reason="needs ../shared/flights")
def test_the_excerpts_hold_one_circle_three_swings_and_one_engagement():
    real = some_cycles([FLIGHTS])
    assert {s: [len(c.cycles) for c in cuts] for s, cuts in real.items()} == {
        "circle": [1], "shm": [3], "engage": [1],
    }  # fmt: skip
    assert one_mission(real, paper([]), []).overrides == ()  # the scenario repeats them


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--system", "x500_trioo"], "x500_trio"),
        (["--set", "mission.risem=1"], "rise_m"),
        (["--offset", "load=1,2"], "BODY=X,Y,Z"),
        (["--system", "x500_trio", "--system", "x500_trio"], "once"),
    ],
)
@pytest.mark.skipif(not FLIGHTS.is_dir(), reason="needs ../shared/flights")
def test_bad_input_ends_before_anything_is_flown(words, text, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["reproduce", str(FLIGHTS), "--out", str(out), *words]) == 2
    error = capsys.readouterr().err
    assert text in error and error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_simulated_flight_taken_for_the_real_one_is_met(tmp_path, capsys):
    """Another seed of the same flight: what is left is the noise of sensors and estimation."""
    short = ["system.cables.links=5", "mission.stages.0.radius_m=0.7"]
    short += ["mission.stages.1.repetitions=1", "mission.stages.2.repetitions=4"]
    fly(find_scenario("paper", ["seed=7", *short]), tmp_path / "real", FlyOptions(report=False))
    words = ["reproduce", str(tmp_path / "real"), "--seeds", "2", "--system", "x500_trio_swivel"]
    words += [word for key in short for word in ("--set", key)]
    assert not main([*words, "--out", str(tmp_path / "out")])
    numbers = json.loads((tmp_path / "out" / "comparison.json").read_text())
    for stage, bodies in TABLE_III.items():
        for body in bodies:
            found = numbers["systems"]["x500_trio_swivel"][stage][body]
            low, high = found["seed_range_mm"]
            assert 0.0 < found["translational_error_mm"] < 15.0, (stage, body)
            assert low <= high and found["geodesic_error_deg"] < 3.0, (stage, body)
    table = (tmp_path / "out" / "table3.md").read_text()
    assert table in capsys.readouterr().out
    assert table.count("\n| ") == 13 + 10  # Table III; drones in the turning frame
    assert (tmp_path / "out" / "x500_trio_swivel" / "flights" / "seed_1" / "bag").is_dir()


@pytest.mark.slow
@pytest.mark.skipif(not FLIGHTS.is_dir(), reason="needs ../shared/flights, ../shared/flights_2044")
def test_what_two_flights_show_predicts_the_swings_of_one_from_the_other():
    """The load's error in the SHM is below 90 % of what it is without (59 of 88 mm).

    Its angle in the engagement is below 65 % (22 of 36 degrees). What `reproduce --fit-on` does,
    without its files and figures.
    """
    seen, later = (some_cycles([place]) for place in (FLIGHTS, FLIGHTS.with_name("flights_2044")))
    points = CompareOptions(offsets_m={"load": (-0.0285, 0.0067, -0.06)})
    errors = []
    for system in ("x500_trio_swivel", "x500_trio_flown"):
        keys = [f"system={system}", "system.cables.links=5"]
        faults = faults_override(fit_drones(seen, keys).imperfections)
        mission = one_mission(later, paper(keys), keys)
        sim = simulation.fly(paper([*keys, *mission.overrides, faults]))
        errors.append({
            stage: compare_stage(
                stage, mission.real[stage], [cut(sim, stage, FIRST_CYCLES_DROPPED[stage])], points
            ).errors
            for stage in ("shm", "engage")
        })  # fmt: skip
    angles = [its["engage"]["load"].geodesic_error_deg for its in errors]
    assert angles[1] < 0.65 * angles[0]
    plain, with_drag = (its["shm"] for its in errors)
    for body, paper_mm in {"load": 118.5, "drone_1": 95.1, "drone_2": 118.0}.items():
        error_m = with_drag[body].translational_error_m
        assert error_m < 0.6e-3 * paper_mm
        assert error_m < 0.9 * plain[body].translational_error_m
