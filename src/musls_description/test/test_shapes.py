"""Inertia from shape and mass, against integration over points and the text book."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from musls_description.config.errors import ConfigError
from musls_description.config.schema import build, to_data
from musls_description.system.slung_system import Load
from musls_description.system.system_files import build_system, load_system

SHAPES = {
    "box": {"kind": "box", "size_m": [0.4, 0.3, 0.1]},
    "cylinder": {"kind": "cylinder", "radius_m": 0.2, "length_m": 0.7, "axis": "y"},
    "rod": {"kind": "rod", "length_m": 1.2, "radius_m": 0.03},
    "plate": {"kind": "plate", "length_m": 0.6, "width_m": 0.4, "thickness_m": 0.02},
}


def load(shape, **more):
    return build(
        Load, {"mass_kg": 2.5, "shape": shape, "cable_attachments_m": [[0, 0, 0]], **more}, "test"
    )


@pytest.mark.parametrize("kind", SHAPES)
def test_inertia_is_that_of_points_drawn_from_the_shape(kind):
    body = load(SHAPES[kind])
    edges = np.array(body.collision.size_m)
    points = (np.random.default_rng(1).random((400_000, 3)) - 0.5) * edges
    if kind in ("cylinder", "rod"):
        along = "xyz".index(SHAPES[kind].get("axis", "x"))
        across = [i for i in range(3) if i != along]
        radius = SHAPES[kind]["radius_m"]
        points = points[np.linalg.norm(points[:, across], axis=1) < radius]
    squares = (points**2).mean(axis=0)
    expected = 2.5 * (squares.sum() * np.eye(3) - points.T @ points / len(points))
    np.testing.assert_allclose(body.inertia_kg_m2, expected, atol=4e-3 * expected.max())


def test_inertia_follows_a_change_of_mass():
    body = load(SHAPES["box"])
    heavier = dataclasses.replace(body, mass_kg=5.0)
    np.testing.assert_allclose(heavier.inertia_kg_m2, 2.0 * np.array(body.inertia_kg_m2))


def test_written_as_given_and_read_again():
    body = load(SHAPES["cylinder"])
    data = to_data(body)
    assert "inertia_kg_m2" not in data
    assert "collision" not in data
    assert build(Load, data, "again") == body
    boxed = load(SHAPES["box"], collision={"size_m": [1.0, 1.0, 0.2]})
    assert build(Load, to_data(boxed), "again").collision.size_m == (1.0, 1.0, 0.2)
    assert "shape" not in to_data(load_system("x500_trio").load)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"inertia_kg_m2": [[1, 0, 0], [0, 1, 0], [0, 0, 1.5]]}, "give either shape or inertia"),
        ({"point_mass": True}, "give one of shape"),
        ({"shape": None}, "collision is missing: give it, or a shape"),
        ({"shape": {"kind": "ball"}}, "shape.kind = 'ball'"),
        ({"shape": {"kind": "rod", "length_m": -1}}, "length_m = -1"),
    ],
)
def test_contradictions_are_refused(change, text):
    with pytest.raises(ConfigError, match=text):
        load(SHAPES["box"], **change) if "shape" not in change else load(change["shape"])


def of_drones(**drones):
    """A system whose drones are x500 apart from these keys."""
    whole = to_data(load_system("x500_trio"))
    whole["drones"] = {"from": "x500", **drones}
    return build_system(whole, "test")


X500_BOX = {"kind": "box", "size_m": [0.35, 0.35, 0.24]}


def test_a_drone_has_the_inertia_of_its_shape():
    m, a, h = 2.0643, 0.35, 0.24
    system = of_drones(shape=X500_BOX)
    expected = m / 12.0 * np.diag([a**2 + h**2, a**2 + h**2, 2.0 * a**2])
    for drone in system.drones:
        np.testing.assert_allclose(drone.inertia_kg_m2, expected, rtol=1e-12)
        assert drone.collision == load_system("x500_trio").drones[0].collision
        heavier = dataclasses.replace(drone, mass_kg=2.0 * m)
        np.testing.assert_allclose(heavier.inertia_kg_m2, 2.0 * expected, rtol=1e-12)
    data = to_data(system)
    assert "inertia_kg_m2" not in data["drones"][0]
    assert build_system(data, "again").drones == system.drones
    assert "shape" not in to_data(load_system("x500_trio"))["drones"][0]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (
            {"shape": X500_BOX, "inertia_kg_m2": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]},
            r"drones.0: .*give either shape or inertia_kg_m2, not both",
        ),
        ({"inertia_kg_m2": np.zeros((3, 3)).tolist()}, "drones.0: .*give one of shape"),
    ],
)
def test_a_drone_has_one_inertia(keys, text):
    with pytest.raises(ConfigError, match=text) as error:
        of_drones(**keys)
    assert "\n" not in str(error.value)
