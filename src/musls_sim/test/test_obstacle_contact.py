"""Contact with obstacles: slopes, walls and tables against closed forms, alike in all plants."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_bringup.catalogue.scenarios import load_scenario
from musls_description.config.schema import build
from musls_description.system.obstacles import WorldSpec, depth_and_normal
from musls_sim.plants.interface import Plant, PlantInputs, ReleaseHook
from musls_sim.session.session import Session

G = 9.80665
MODELS = ("rigid_links", "elastic", "massless")
HALF_M = 0.05
"""Half the height of the load, a box of 0.15 m by 0.15 m by 0.10 m."""


def free_load(
    model: str, obstacles: list[dict], place: np.ndarray, turn: Rotation, **motion: list[float]
) -> Plant:
    """A plant whose load is on no cable any more; its drone falls from above, but later."""
    level = [1.0, 0.0, 0.0, 0.0]
    above = place + turn.apply([0.0, 0.0, HALF_M]) + [-0.3, 0.0, 1.95]
    load = {"position_enu_m": list(place), "orientation_wxyz": list(quaternion(turn)), **motion}
    drone = {"position_enu_m": list(above), "orientation_wxyz": level}
    session = Session(
        load_scenario(
            "solo",
            {
                "cable_model": model,
                "system.cables.twist": "free",
                "start": {"kind": "state", "load": load, "drones": [drone]},
                "world.obstacles": obstacles,
            },
        ),
        force=True,  # the load begins on the obstacle
    )
    plant = session.plant
    plant.apply(ReleaseHook(1, "load"))
    return plant


def quaternion(turn: Rotation) -> np.ndarray:
    return turn.as_quat(scalar_first=True)


def slope(kind: str, angle: float) -> dict:
    """A surface at 5 m height that falls towards x."""
    turn = Rotation.from_euler("y", angle)
    normal, top = turn.apply([0.0, 0.0, 1.0]), np.array([0.0, 0.0, 5.0])
    if kind == "plane":
        return {"kind": kind, "name": "slope", "point_enu_m": list(top), "normal_enu": list(normal)}
    return {
        "kind": kind, "name": "slope", "size_m": [4.0, 4.0, 0.2],
        "position_enu_m": list(top - 0.1 * normal), "orientation_wxyz": list(quaternion(turn)),
    }  # fmt: skip


def fly(plant: Plant, periods: int) -> np.ndarray:
    """State of the load at the end of each period, (periods, 16)."""
    inputs = PlantInputs.zeros(plant.system)
    rows = []
    for _ in range(periods):
        plant.step(inputs)
        rows.append(plant.state.motion[0].copy())
    return np.array(rows)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["plane", "box"])
def test_load_on_a_slope_stays_below_the_angle_of_friction_and_slides_above_it(model, kind):
    for angle in (0.6, 0.75):  # arctan 0.8 = 0.675
        turn = Rotation.from_euler("y", angle)
        normal, down = turn.apply([0.0, 0.0, 1.0]), turn.apply([1.0, 0.0, 0.0])
        sink_m = (1e-4 if model == "elastic" else 5e-4) * np.cos(angle)  # by its weight
        place = [0.0, 0.0, 5.0] + (HALF_M - sink_m) * normal
        rows = fly(free_load(model, [slope(kind, angle)], place, turn), 75)
        time_s = 0.004 * np.arange(1, 76)
        moved = (rows[:, :3] - place) @ down
        pull = np.sin(angle) - 0.8 * np.cos(angle)
        acceleration = 2.0 * np.polyfit(time_s[15:], moved[15:], 2)[0]  # it has settled by then
        assert acceleration == pytest.approx(G * max(pull, 0.0), abs=0.003)
        assert moved[-1] == pytest.approx(0.5 * G * max(pull, 0.0) * 0.09, abs=8e-3)
        assert np.abs((rows[:, :3] - place) @ normal).max() < 1e-3


def energy_j(plant: Plant, rows: np.ndarray) -> np.ndarray:
    load = plant.system.load
    spin = np.einsum("ti,ij,tj->t", rows[:, 10:13], np.array(load.inertia_kg_m2), rows[:, 10:13])
    kinetic = 0.5 * (load.mass_kg * (rows[:, 3:6] ** 2).sum(axis=1) + spin)
    return kinetic + load.mass_kg * G * rows[:, 2]


def deepest(plant: Plant, row: np.ndarray, solid: np.void) -> float:
    """Depth of the load's deepest corner in a solid."""
    turn = Rotation.from_quat(row[6:10], scalar_first=True)
    corners = row[:3] + turn.apply(plant.system.load.collision.corners_m)
    return max(depth_and_normal(solid, corner)[0] for corner in corners)


WALL = {"kind": "plane", "name": "wall", "point_enu_m": [0.5, 0, 5], "normal_enu": [-1, 0, 0.2]}
POLE = {
    "kind": "cylinder", "name": "pole", "radius_m": 0.4, "height_m": 8.0,
    "position_enu_m": [0.9, 0.0, 4.0],
}  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("obstacle", [WALL, POLE])
def test_tumbling_load_never_gains_energy_from_an_obstacle(model, obstacle):
    turn = Rotation.from_euler("xyz", [0.4, 0.3, 0.2])
    motion = {"velocity_enu_m_s": [2.0, 0.1, 1.0], "omega_body_rad_s": [3.0, -5.0, 2.0]}
    plant = free_load(model, [obstacle], np.array([0.0, 0.0, 5.0]), turn, **motion)
    rows = fly(plant, 100)
    assert rows[:, 3].min() < 0.3  # it was stopped
    (solid,) = build(WorldSpec, {"obstacles": [obstacle]}, "test").obstacles[0].solids()
    in_air = [deepest(plant, row, solid) < 0.0 for row in rows]  # nothing is stored in the contact
    energy = energy_j(plant, rows)[in_air]
    assert energy[-1] < energy[0] - 0.3
    assert np.diff(energy).max() < 2e-3


@pytest.mark.parametrize("model", MODELS)
def test_load_rests_in_the_corner_of_a_table_and_a_wall(model):
    """Two surfaces at once: it slides along the table until the wall holds it, and stays."""
    table = {"kind": "box", "name": "table", "size_m": [2, 2, 0.2], "position_enu_m": [0, 0, 4.9]}
    wall = {"kind": "box", "name": "wall", "size_m": [0.1, 2, 1], "position_enu_m": [0.3, 0, 5.5]}
    place = np.array([0.0, 0.0, 5.0 + HALF_M])
    plant = free_load(
        model, [table, wall], place, Rotation.identity(), velocity_enu_m_s=[2.0, 0.0, 0.0]
    )
    rows = fly(plant, 125)
    # Massless, steps of 0.7 ms, as in an impact, press it in by 6.1 mm, those of 2.1 ms by 5.9.
    assert rows[:, 0].max() == pytest.approx(0.25 - 0.075, abs=7e-3)
    assert rows[-1, 2] == pytest.approx(place[2], abs=1e-3)
    assert np.abs(rows[-1, 3:6]).max() < 5e-3


@pytest.mark.parametrize("model", ["rigid_links", "elastic"])
def test_impact_is_that_of_the_massless_plant(model):
    """A load that falls flat on a table: speeds and places agree until it rests."""
    table = slope("box", 0.0)
    place = np.array([0.0, 0.0, 5.0 + HALF_M + 0.1])
    found = [
        fly(free_load(m, [table], place, Rotation.identity()), 100) for m in (model, "massless")
    ]
    assert found[0][:, 2] == pytest.approx(found[1][:, 2], abs=6e-3)
    assert found[0][-1, 2] == pytest.approx(found[1][-1, 2], abs=1e-3)


def test_no_obstacles_are_the_same_as_before():
    """A far obstacle changes nothing, to the last digit."""
    session = Session(load_scenario("hold"))
    far = {"kind": "box", "name": "far", "size_m": [1, 1, 1], "position_enu_m": [50, 0, 0.5]}
    beside = Session(load_scenario("hold", {"world.obstacles": [far]}))
    for s in (session, beside):
        s.advance(200)
    np.testing.assert_array_equal(session.state.motion, beside.state.motion)
