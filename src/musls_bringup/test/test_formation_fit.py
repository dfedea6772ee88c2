"""The formation that follows from a system: the load hangs at its set-point, unturned."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
import yaml

import musls
from musls_bringup.catalogue.shipped import SCENARIOS
from musls_control.brief.findings import refuse_or_warn
from musls_description.config.schema import to_yaml
from musls_description.config.strict_yaml import read_yaml
from musls_description.hanging.cone import Cone
from musls_description.hanging.fitting import fitting_formation
from musls_description.hanging.hang import hang
from musls_description.numerics.rotations import yaw_of
from musls_description.system.drone import tip_radius_m
from musls_description.system.system_files import build_system
from musls_sim.scenario.scenario import load_scenario

ROPE = {"mass_kg": 0.02, "radius_m": 0.002, "links": 8}


def system(directions_deg, lengths_m, inner_m=0.15):
    angles = np.radians(directions_deg)
    points = [[inner_m * np.cos(a), inner_m * np.sin(a), 0.04] for a in angles]
    return {
        "name": "own",
        "load": {
            "mass_kg": 0.4 * len(points),
            "shape": {"kind": "box", "size_m": [0.4, 0.3, 0.1]},
            "cable_attachments_m": [[float(v) for v in point] for point in points],
        },
        "drones": {"from": "x500", "cable_attachment_m": [0.03, 0.0, -0.02]},
        "cables": [{**ROPE, "length_m": length} for length in lengths_m],
    }


@pytest.mark.parametrize(
    ("directions_deg", "lengths_m"),
    [
        ([37, 157, 277], [2.42] * 3),  # seen: turned by 44.5 degrees with the paper's cone
        ([37, 157, 277], [4.0] * 3),
        ([0, 180], [1.2, 1.2]),
        ([25, 155, 205, 335], [3.0] * 4),
        ([0, 120, 240], [3.0, 3.3, 3.6]),
        ([0, 60, 120, 180, 240, 300], [2.42] * 6),
        ([90], [1.5]),
    ],
)
def test_load_hangs_where_it_is_asked_to(tmp_path, directions_deg, lengths_m):
    own = system(directions_deg, lengths_m, 0.0 if len(lengths_m) == 1 else 0.15)
    path = tmp_path / "own.yaml"
    path.write_text(
        yaml.safe_dump({"system": own, "start": "air", "mission": {"stages": [{"kind": "hold"}]}})
    )
    scenario = load_scenario(path)
    hanging = hang(scenario.system, scenario.formation, load_pose=[0.0, 0.0, 1.0, 0.3])
    assert abs(hanging.sag_m) < (0.2 if scenario.formation.height_m == Cone().height_m else 0.01)
    assert abs(np.degrees(hanging.turn_rad)) < 1.0 or len(lengths_m) == 1  # which holds no yaw
    assert hanging.rest.configuration.load_rotation[2, 2] > np.cos(np.radians(3.0))
    places = scenario.formation.offsets_m(len(lengths_m))
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(len(places), 1)]
    tips = tip_radius_m(scenario.system.drones[0])
    assert (gaps - 2.0 * tips > 0.15).all()


def test_shipped_scenarios_with_equal_cables_keep_the_formation_they_are_given():
    for path in sorted(SCENARIOS.glob("*.yaml")):
        if path.stem in ("unequal", "eight_agile", "tilted_gate"):
            continue  # its load would hang tilted; 1 m of cable is too short for the default
        given = read_yaml(path).get("formation") or {}
        written = {k: tuple(map(tuple, v)) if k == "places_m" else v for k, v in given.items()}
        assert load_scenario(path).formation == Cone(**written), path.stem


def test_what_is_given_is_kept():
    own = build_system(system([37, 157, 277], [4.0] * 3), "own").formation
    assert fitting_formation(own, {"radius_m": 1.7}).radius_m == 1.7
    assert fitting_formation(own, {"first_azimuth_rad": 0.1}).first_azimuth_rad == 0.1
    whole = {"radius_m": 1.0, "height_m": 3.0, "first_azimuth_rad": 0.0}
    assert fitting_formation(own, whole) == Cone(**whole)


def test_formation_that_turns_the_load_is_named():
    scenario = load_scenario(SCENARIOS / "hold.yaml", ["formation.first_azimuth_rad=0.3"])
    hanging = scenario.hanging
    assert np.degrees(hanging.turn_rad) == pytest.approx(np.degrees(0.3), abs=0.2)
    with pytest.warns(UserWarning, match=r"turned by 17\.2 deg .*first_azimuth_rad = 0\.000 fits"):
        refuse_or_warn(scenario.brief)
    straight = load_scenario(SCENARIOS / "hold.yaml")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refuse_or_warn(straight.brief)


def test_cables_that_turn_drones_are_named(tmp_path):
    """By as much as they do in flight; ropes, the default, let the drones look anywhere."""
    plank = system([11.3, 168.7, 191.3, 348.7], [2.0] * 4, inner_m=0.51)
    (tmp_path / "plank.yaml").write_text(yaml.safe_dump(plank))
    places = [[x, y, 1.86] for x, y in ((1.0, 0.7), (-1.0, 0.7), (-1.0, -0.7), (1.0, -0.7))]
    for twist in ("free", "locked"):
        changes = {"system": str(tmp_path / "plank.yaml"), "start": "air"}
        changes |= {"system.cables.twist": twist, "formation.places_m": places}
        scenario = musls.load_scenario("hold", {**changes, "mission.stages.0.duration_s": 1.0})
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            drones = [musls.fly(scenario).body(f"drone_{i}") for i in (1, 2, 3, 4)]
        ends = [(d.orientation_wxyz[-1], d.setpoint.orientation_wxyz[-1]) for d in drones]
        turns = np.array([yaw_of(is_) - yaw_of(asked) for is_, asked in ends])
        turns_deg = np.degrees(np.angle(np.exp(1j * turns)))
        assert turns_deg == pytest.approx(np.degrees(scenario.hanging.drone_turn_rad), abs=1.5)
        named = [str(w.message) for w in told if "the cable turns drone_" in str(w.message)]
        if twist == "free":
            assert abs(turns_deg).max() < 1.0 and not named
        else:
            assert abs(turns_deg).min() > 15.0 and named


def test_result_holds_the_whole_formation(tmp_path):
    first = load_scenario(SCENARIOS / "hold.yaml", ["system.cables.length_m=3.5"])
    assert first.formation != Cone()
    (tmp_path / "scenario.yaml").write_text(to_yaml(first))
    again = load_scenario(tmp_path / "scenario.yaml")
    assert dataclasses.asdict(again.formation) == dataclasses.asdict(first.formation)
