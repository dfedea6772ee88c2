"""Recorded flights that differ from the paper's: other motions, numbers of drones, stages."""

import json
from itertools import pairwise

import numpy as np
import pytest
from made_up_recordings import excerpt_lines, flight, log_lines, log_rows, write_lines

from musls_analysis.paper.flights import missions, one_mission, some_cycles
from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import main
from musls_bringup.flight.fly import FlyOptions, fly
from musls_bringup.papers.reproduce import faults_override, paper
from musls_description.config.errors import ConfigError
from musls_sim.specs.imperfections import DroneImperfections, Imperfections

MARKS = {"circle": "MISSION_STAGE 1 CIRCLE", "shm": "MISSION_STAGE 2 SHM"}


def log_of(path, kind, order=(0, 1, 2), **fields):
    """A log of one stage that is held before and after; drones in another order of columns."""
    made = flight(kind, 2, 10.0, **fields)
    rows = log_rows(made)
    blocks = [rows[:, 35 + 20 * k : 55 + 20 * k].copy() for k in range(3)]
    for k, column in enumerate(order):
        rows[:, 35 + 20 * column : 55 + 20 * column] = blocks[k]
    stage = made.stages[1]
    cuts = [0, *np.searchsorted(rows[:, 0], [stage.start_s, stage.end_s]), len(rows)]
    parts = [log_lines(rows[a:b]) for a, b in pairwise(cuts)]
    hold = "MISSION_STAGE 9 HOLD"
    return write_lines(path, [*parts[0], MARKS[kind], *parts[1], hold, *parts[2]])


def test_another_circle_is_flown_as_it_was_recorded(tmp_path):
    log = log_of(tmp_path / "a.log", "circle", radius_m=1.0, speed_m_s=0.25)
    mission = one_mission(some_cycles([log]), paper([]), [])
    keys = dict(text.split("=") for text in mission.taken)
    assert set(keys) == {"mission.stages.0.radius_m", "mission.stages.0.speed_m_s"}
    assert float(keys["mission.stages.0.radius_m"]) == pytest.approx(1.0, abs=0.003)
    assert float(keys["mission.stages.0.speed_m_s"]) == pytest.approx(0.25, rel=0.003)
    scenario = find_scenario("paper", list(mission.overrides))
    assert [stage.kind for stage in scenario.mission.stages] == ["circle"]
    assert scenario.mission.stages[0].period_s == pytest.approx(2.0 * np.pi / 0.25, rel=0.003)


def test_stages_that_the_user_gives_are_left_alone(tmp_path):
    log = log_of(tmp_path / "a.log", "circle", radius_m=1.0, speed_m_s=0.25)
    given = ["mission.stages=[{kind: circle, radius_m: 1.2, repetitions: 2}]"]
    assert one_mission(some_cycles([log]), paper(given), given).overrides == ()


def test_drones_in_another_order_are_numbered_by_their_places(tmp_path):
    """Drone 1 was logged in the third place, drone 2 in the first, drone 3 in the second."""
    plain = one_mission(some_cycles([log_of(tmp_path / "a.log", "shm")]), paper([]), [])
    mixed = one_mission(
        some_cycles([log_of(tmp_path / "b.log", "shm", order=(2, 0, 1))]), paper([]), []
    )
    assert plain.taken == mixed.taken == [] and not plain.notes
    for body, track in plain.real["shm"][0].recording.bodies.items():
        found = mixed.real["shm"][0].recording.bodies[body]
        np.testing.assert_allclose(found.position_enu_m, track.position_enu_m)
    assert "recorded drone_3 as drone_1, recorded drone_1 as drone_2" in mixed.notes[0]


def test_drones_of_other_numbers_are_counted_from_one(tmp_path):
    lines = excerpt_lines(flight("shm", 2, 10.0))
    for new, old in ((7, 3), (5, 2), (2, 1)):
        lines[0] = lines[0].replace(f"d{old}_", f"d{new}_")
    mission = one_mission(some_cycles([write_lines(tmp_path / "x_shm.csv", lines)]), paper([]), [])
    assert list(mission.real["shm"][0].recording.bodies) == [
        "load", "drone_1", "drone_2", "drone_3",
    ]  # fmt: skip


def test_another_formation_is_taken_from_the_drones_set_points(tmp_path):
    log = log_of(tmp_path / "a.log", "circle")
    lines = [line.split() for line in log.read_text().splitlines()]
    for fields in lines:
        if len(fields) == 95:
            fields[37] = f"{float(fields[37]) + 0.2:.6g}"  # drone 1's set-point, higher
    write_lines(log, [" ".join(fields) for fields in lines])
    (key,) = one_mission(some_cycles([log]), paper([]), []).taken
    places = json.loads(key.removeprefix("formation.places_m="))
    np.testing.assert_allclose(places[0], [1.0, 0.0, 2.5], atol=0.03)


def test_set_points_of_drones_that_come_an_update_later_are_no_other_formation(tmp_path):
    log = log_of(tmp_path / "a.log", "circle")
    lines = [line.split() for line in log.read_text().splitlines()]
    rows = [fields for fields in lines if len(fields) == 95]
    for base in (35, 55, 75):
        late = [fields[base : base + 6] for fields in rows]
        for fields, before in zip(rows[2:], late, strict=False):
            fields[base : base + 6] = before
    write_lines(log, [" ".join(fields) for fields in lines])
    assert one_mission(some_cycles([log]), paper([]), []).taken == []


def test_flights_of_other_motions_are_learnt_from_together_but_not_averaged(tmp_path):
    logs = [
        log_of(tmp_path / "a.log", "circle"),
        log_of(tmp_path / "b.log", "circle", radius_m=1.0),
        log_of(tmp_path / "c.log", "shm"),
    ]
    real = some_cycles(logs)
    found = missions(real, paper([]), [])
    assert [list(mission.real) for mission in found] == [["circle", "shm"], ["circle"]]
    with pytest.raises(ConfigError, match=r"b\.log .*radius_m=1\.0.*one by one"):
        one_mission(real, paper([]), [])


def test_other_numbers_of_drones_are_named(tmp_path):
    lines = excerpt_lines(flight("shm", 2, 10.0))
    keep = [k for k, name in enumerate(lines[0].split(",")) if not name.startswith("d3_")]
    fewer = [",".join(line.split(",")[k] for k in keep) for line in lines]
    real = some_cycles([write_lines(tmp_path / "x_shm.csv", fewer)])
    with pytest.raises(ConfigError, match="2 drones in it, the system has 3"):
        missions(real, paper([]), [])


@pytest.mark.slow
@pytest.mark.timeout(1200)  # nine flights
def test_what_two_flights_teach_predicts_a_third_of_another_radius(tmp_path):
    """Circles of three sizes and periods; the fit sees two."""
    put = Imperfections(
        setpoint_delay_s=0.06,
        drones=(
            DroneImperfections(level_tilt_rad=(0.02, 0.03)),
            DroneImperfections(level_tilt_rad=(0.0, -0.02)),
            DroneImperfections(level_tilt_rad=(-0.01, 0.05), mocap_offset_m=(0.0, 0.0, -0.03)),
        ),
    )
    short = ["system=x500_trio_swivel", "system.cables.links=5"]
    circles = [(0.8, 0.4), (0.6, 0.35), (0.7, 0.4)]
    for k, (radius, speed) in enumerate(circles):
        circle = f"{{kind: circle, radius_m: {radius}, speed_m_s: {speed}, repetitions: 2}}"
        scenario = [f"seed={k + 3}", *short, f"mission.stages=[{circle}]", faults_override(put)]
        fly(find_scenario("paper", scenario), tmp_path / f"{k}", FlyOptions(report=False))
    words = ["reproduce", str(tmp_path / "2"), "--seeds", "1", "--workers", "1"]
    words += ["--system", short[0].split("=")[1], "--set", short[1]]
    words += ["--fit-on", str(tmp_path / "0"), "--fit-on", str(tmp_path / "1")]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    numbers = json.loads((tmp_path / "out" / "comparison.json").read_text())["systems"]
    plain, fitted = (numbers[f"x500_trio_swivel{end}"]["circle"] for end in ("", "_fitted"))
    for body, its in fitted.items():
        assert its["translational_error_mm"] < 15.0 < plain[body]["translational_error_mm"]
