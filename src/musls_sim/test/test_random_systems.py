"""Random systems as users write them fly, or are refused with a reason that is true."""

from __future__ import annotations

import dataclasses
import os
import warnings

import numpy as np
import pytest
import yaml
from random_systems import random_scenario
from scipy.optimize import linprog

from musls_control.brief.findings import refuse_or_warn
from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import Cone
from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.hanging.fitting import STEEPEST_RAD, holds, proposed_places_m
from musls_description.hanging.tree import tips_apart_m
from musls_description.system.drone import tip_radius_m
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

PERIODS = 75
"""Control periods of a hop, 0.3 s."""

QUICK = (3, 6, 28, 33, 74, 144, 228, 292)
ALL = int(os.environ.get("MUSLS_RANDOM_SYSTEMS", "40"))
"""Systems of a slow run; 300 take a quarter of an hour."""
SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(ALL) if seed not in QUICK]


def read(folder, data):
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(data))
    return load_scenario(path)


def hangs_level(attachments_m):
    """Whether the centre of mass is between the attachments, seen from above, and not on the edge.

    Upright pulls hold the load then; found by linear programming.
    """
    at = np.array(attachments_m)
    columns = np.column_stack([at[:, :2], np.ones(len(at))]).T
    found = linprog(np.zeros(len(at)), A_eq=columns, b_eq=[0, 0, 1], bounds=(0.04 / len(at), None))
    return found.status == 0


def crowded(system):
    """Whether rotor discs, 0.2 m apart, take more than half of the area above the load."""
    tips = max(tip_radius_m(drone) for drone in system.drones)
    reach = max(c.length_m for c in system.cables) * np.sin(STEEPEST_RAD)
    x, y = np.ptp(np.array(system.load.cable_attachments_m)[:, :2], axis=0) + 2.0 * reach
    return system.n_drones * (2.0 * tips + 0.2) ** 2 > 0.5 * x * y


@pytest.mark.parametrize("seed", [*QUICK, *SLOW])
def test_a_random_system_flies_or_is_told_why_not(tmp_path, seed):
    scenario = read(tmp_path, random_scenario(seed))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            session = Session(scenario)
    except ConfigError as error:
        if "the load's centre of mass is" in str(error):
            assert not hangs_level(scenario.system.load.cable_attachments_m)
        elif "the rotors cannot lift the load" in str(error):
            needed = np.linalg.norm(scenario.hanging.rest.drone_force_n, axis=1)
            assert (needed * 1.1 > [d.max_thrust_n for d in scenario.system.drones]).any()
        elif "upright thrusts of the drones cannot hold it level" in str(error):
            assert scenario.cable_model == "rigid_rods"
            assert scenario.system.n_drones < 3 or not hangs_level(
                scenario.system.load.cable_attachments_m
            )
        elif "a load that hangs tilted attachments around its centre of mass" in str(error):
            assert not hangs_level(scenario.system.load.cable_attachments_m)
        else:
            assert "no places side by side were found" in str(error)
            assert crowded(scenario.system)
        return
    with session:
        begin = session.state.position_enu_m.copy()
        session.advance(PERIODS)
        assert np.abs(session.state.position_enu_m - begin).max() < 0.15


def plate(tmp_path, lift_m=0.0):
    """Four straight cables on a plate, drone 1 higher than the others by `lift_m`."""
    data = random_scenario(3)
    corners = [[x, y, 0.02] for x in (0.5, -0.5) for y in (0.3, -0.3)]
    data["system"]["load"]["cable_attachments_m"] = corners
    for cable in data["system"]["cables"]:
        cable.update(length_m=2.0, links=1, mass_kg=1e-4)
    scenario = read(tmp_path, data)
    places = scenario.formation.offsets_m(4).round(4)
    places[0, 2] += lift_m
    given = tuple(map(tuple, places.tolist()))
    return dataclasses.replace(
        scenario, formation=dataclasses.replace(scenario.formation, places_m=given)
    )


@pytest.mark.parametrize("lift_m", [0.0, 1e-4, -1e-3])
def test_shares_are_balanced_whatever_the_last_digits_are(tmp_path, lift_m):
    scenario = plate(tmp_path, lift_m)
    rest = scenario.hanging.rest
    tensions = rest.load_end_tension_n
    assert np.ptp(tensions) < 0.02 * tensions.mean()
    forces = rest.cable_force_n
    weight = scenario.system.load.mass_kg * scenario.physics.gravity_m_s2
    np.testing.assert_allclose(forces.sum(axis=0), [0.0, 0.0, weight], atol=1e-6)


def test_a_place_that_makes_one_drone_carry_all_is_named(tmp_path):
    high = plate(tmp_path, 0.06)
    with pytest.warns(UserWarning, match=r"formation\.places_m\.\d: drone_\d is 0\.0\d+ m too"):
        refuse_or_warn(high.brief)
    with pytest.raises(ConfigError, match=r"formation\.places_m: .*musls formation` proposes"):
        refuse_or_warn(plate(tmp_path, 0.6).brief)


def test_cables_of_unequal_length_hold_the_load_level(tmp_path):
    hop = random_scenario(3) | {"system": "x500_trio_unequal"}
    scenario = read(tmp_path, hop)
    assert scenario.hanging.tilt_rad < np.radians(1.0)
    one_height = dataclasses.replace(scenario, formation=Cone(radius_m=1.0, height_m=2.3))
    with pytest.warns(UserWarning, match="the load will hang tilted by 25 deg"):
        refuse_or_warn(one_height.brief)


@pytest.mark.parametrize("seed", [15, 30])
def test_proposed_places_hold_the_load_as_the_exact_chains_say(tmp_path, seed):
    system = read(tmp_path, random_scenario(seed)).system
    places = proposed_places_m(system)
    assert holds(system, places) and tips_apart_m(system, places) > 0.2
    yaws = np.arctan2(places[:, 1], places[:, 0]) + np.pi
    rest = hanging_equilibrium(system, places, drone_yaws_rad=yaws)
    upright = rest.cable_force_n[:, 2]
    np.testing.assert_allclose(upright, upright.mean(), rtol=0.3)
    np.testing.assert_allclose(rest.configuration.load_position_enu_m, 0.0, atol=0.01)
    np.testing.assert_allclose(rest.configuration.load_rotation, np.eye(3), atol=0.02)
