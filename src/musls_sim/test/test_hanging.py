"""How a system hangs: one door, resolved once, the same for everybody who reads it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from musls_description.config.errors import ConfigError
from musls_description.hanging import hang as door
from musls_description.hanging.cone import Cone
from musls_description.hanging.hang import hang
from musls_description.system.system_files import load_system
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"


@pytest.mark.parametrize("name", ["circle", "unequal", "hexa", "solo", "winch_delivery", "poke"])
def test_forces_balance_and_cables_end_at_their_drones(name):
    """The load, each cable and each drone, on its own: forces, moments, places."""
    hanging = load_scenario(SHIPPED / f"{name}.yaml").hanging
    rest, system, up = hanging.rest, hanging.system, np.array([0.0, 0.0, hanging.gravity_m_s2])
    np.testing.assert_allclose(rest.cable_force_n.sum(axis=0), system.load.mass_kg * up, atol=1e-7)
    arms = np.array(system.load.cable_attachments_m) @ rest.load_rotation.T
    assert np.cross(arms, rest.cable_force_n).sum(axis=0) == pytest.approx([0, 0, 0], abs=1e-7)
    weights = np.array([cable.mass_kg for cable in system.cables])[:, None] * up
    np.testing.assert_allclose(-hanging.drone_end_force_n, rest.cable_force_n + weights, atol=1e-9)
    position, _ = rest.bodies
    for i, drone in enumerate(system.drones):
        nodes = rest.cable_nodes_enu_m(i)
        hook = position[1 + i] + rest.drone_rotations[i] @ drone.cable_attachment_m
        np.testing.assert_allclose(nodes[-1], hook, atol=1e-9)
        assert np.linalg.norm(np.diff(nodes, axis=0), axis=1).sum() == pytest.approx(
            system.cables[i].length_m
        )
        thrust = rest.drone_rotations[i][:, 2] * np.linalg.norm(rest.drone_force_n[i])
        np.testing.assert_allclose(thrust, rest.drone_force_n[i], atol=1e-9)


@pytest.mark.parametrize("overrides", [[], ["start=air"], ["start=air", "system.cables.links=3"]])
def test_a_scenario_is_solved_once_from_its_file_to_its_plant(monkeypatch, overrides):
    solved = []

    def counted(*args):
        solved.append(args)
        return solver(*args)

    solver = door.hanging_equilibrium
    monkeypatch.setattr(door, "hanging_equilibrium", counted)
    scenario = load_scenario(SHIPPED / "circle.yaml", overrides)
    with Session(scenario) as session:
        assert session.numbers()["thrust_margin"] == scenario.hanging.thrust_margin
    assert len(solved) == 1


def test_what_was_given_is_known_and_what_was_chosen_is_in_the_dump():
    chosen = load_scenario(SHIPPED / "hold.yaml", ["system.cables.length_m=3.5"])
    assert not chosen.hanging.given and chosen.formation == chosen.hanging.formation
    wide = load_scenario(SHIPPED / "hold.yaml", ["formation.radius_m=1.2"])
    assert wide.hanging.given == {"radius_m"}
    again = dataclasses.replace(wide, seed=3)
    assert again.hanging.formation == wide.formation
    assert again.hanging.thrust_margin == wide.hanging.thrust_margin


def test_a_refusal_names_the_keys_that_were_given():
    system = load_system("x500_trio")
    for formation, key in (
        ({"radius_m": 3.0}, "formation.radius_m = 3"),
        (Cone(radius_m=3.0, height_m=2.0), "formation.radius_m = 3, formation.height_m = 2"),
        ({"places_m": [(9.0, 0.0, 2.0), (-1.0, 1.0, 2.0), (-1.0, -1.0, 2.0)]},
         "formation.places_m"),
    ):  # fmt: skip
        hanging = hang(system, formation)
        assert hanging.refusal is not None and hanging.refusal.key == key
        assert "`musls formation`" in hanging.refusal.remedy
        with pytest.raises(ConfigError, match=r"cables do not reach|stands .* m from where"):
            hanging.rest  # noqa: B018


def test_shape_does_not_depend_on_gravity_and_forces_go_with_it():
    system = load_system("x500_hexa")
    earth, moon = hang(system, {}), hang(system, {}, 1.62)
    np.testing.assert_allclose(moon.rest.bodies[0], earth.rest.bodies[0], atol=1e-6)
    np.testing.assert_allclose(
        moon.rest.cable_force_n / 1.62, earth.rest.cable_force_n / 9.80665, atol=1e-6
    )
    pulls, tension_n = earth.accelerated(np.array([0.0, 0.0, 1.62]), 0.0)
    np.testing.assert_allclose(pulls, -moon.drone_end_force_n, atol=1e-6)
    np.testing.assert_allclose(tension_n, moon.rest.load_end_tension_n, atol=1e-6)
