"""Obstacles: distances against brute force, what a flight says of them, bad input."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_bringup.before.verdict import judge
from musls_bringup.catalogue.scenarios import load_scenario
from musls_description.config.errors import ConfigError
from musls_description.system.contacts import gap_between
from musls_description.system.drone import propeller_radius_m
from musls_description.system.obstacles import (
    BOX,
    CYLINDER,
    PLANE,
    GateObstacle,
    PlaneObstacle,
    WorldSpec,
    depth_and_normal,
    nearest_point,
    solid,
)
from musls_sim.session.collisions import CollisionWatch
from musls_sim.session.session import Session

SIZE = {BOX: (0.4, 0.2, 0.3), CYLINDER: (0.3, 0.3, 0.5), PLANE: (0.0, 0.0, 0.0)}


def random_solid(rng: np.random.Generator, kind: int) -> np.void:
    turn = Rotation.random(rng=rng).as_matrix()
    return solid(kind, rng.uniform(-0.3, 0.3, 3), turn, SIZE[kind])[0]


@pytest.mark.parametrize("kind", SIZE)
def test_depth_is_the_way_to_the_surface_and_the_normal_its_gradient(kind):
    rng = np.random.default_rng(kind)
    for _ in range(200):
        body, point = random_solid(rng, kind), rng.uniform(-1.0, 1.0, 3)
        depth, normal = depth_and_normal(body, point)
        assert np.linalg.norm(normal) == pytest.approx(1.0)
        on_surface = point + depth * np.array(normal)
        assert depth_and_normal(body, on_surface)[0] == pytest.approx(0.0, abs=1e-12)
        nearest = np.array(nearest_point(body, point))
        way = on_surface if depth < 0.0 else point
        assert nearest == pytest.approx(way, abs=1e-12)
        steps = 1e-6 * np.eye(3)
        slope = [(depth_and_normal(body, point - s)[0] - depth) / 1e-6 for s in steps]
        assert normal == pytest.approx(slope, abs=1e-4)


@pytest.mark.parametrize("kind", SIZE)
@pytest.mark.parametrize("body_kind", [BOX, CYLINDER])
def test_distance_of_two_bodies_agrees_with_sampled_ones(kind, body_kind):
    rng = np.random.default_rng(7)
    axes = [np.linspace(-1.0, 1.0, 41)] * 2
    if body_kind == CYLINDER:
        radius, angle = np.meshgrid(np.linspace(0.0, 1.0, 21), np.linspace(0.0, 2.0 * np.pi, 121))
        grid = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.0 * angle], axis=-1)
    else:
        square = np.stack([*np.meshgrid(*axes), np.ones((41, 41))], axis=-1).reshape(-1, 3)
        grid = np.concatenate([np.roll(sign * square, k, 1) for k in range(3) for sign in (-1, 1)])
    for _ in range(20):
        obstacle, turn = random_solid(rng, kind), Rotation.random(rng=rng).as_matrix()
        size = [0.15, 0.15, 0.0] if body_kind == CYLINDER else [0.2, 0.15, 0.1]
        body = solid(body_kind, rng.uniform(-1.5, 1.5, 3), turn, size)[0]
        points = body["position"] + (size * grid.reshape(-1, 3)) @ turn.T
        least = min(
            np.linalg.norm(p - nearest_point(obstacle, p)) for p in np.unique(points, axis=0)
        )
        gap, point, _ = gap_between(body, obstacle, np.inf)
        assert gap == pytest.approx(least, abs=6e-3)
        assert abs(depth_and_normal(obstacle, np.array(point))[0]) < 1e-9 or gap < 1e-3


GATE = {
    "kind": "gate", "name": "gate", "width_m": 4.0, "height_m": 3.0,
    "position_enu_m": [3.0, 0.0, 2.0],
}  # fmt: skip
WALL = {"kind": "plane", "name": "wall", "point_enu_m": [0.0, 2.0, 0.0], "normal_enu": [0, -2, 0]}
CRATE = {"kind": "box", "name": "crate", "size_m": [1, 1, 1], "position_enu_m": [0.0, -4.0, 0.5]}


def hovering(*obstacles: dict) -> Session:
    return Session(load_scenario("hold", {"world.obstacles": list(obstacles), "start": "air"}))


def test_gate_is_open_and_its_frame_is_closed():
    solids = GateObstacle(**GATE).solids()
    depth = lambda *p: max(depth_and_normal(s, np.array(p))[0] for s in solids)  # noqa: E731
    assert depth(3.0, 0.0, 2.0) == pytest.approx(-1.5)
    assert depth(3.0, 2.0, 2.0) == pytest.approx(0.0)
    assert depth(3.0, 2.05, 3.5) == pytest.approx(0.05)
    assert depth(3.0, 0.0, 3.55) == pytest.approx(0.05)
    assert depth(3.1, 2.05, 2.0) == pytest.approx(-0.05)


def test_smallest_distances_of_a_flight_are_those_of_its_corners_and_tips():
    with hovering(WALL, GATE, CRATE) as session:
        least, system = np.inf, session.scenario.system
        for _ in range(50):
            session.advance(1)
            motion = session.state.motion
            for i, drone in enumerate(system.drones, start=1):
                turn = Rotation.from_quat(motion[i, 6:10], scalar_first=True)
                for rotor in drone.rotors:
                    radius = propeller_radius_m(drone)
                    y = turn.apply([0.0, 0.0, 1.0])[1]
                    tip = motion[i, 1] + turn.apply(rotor.position_m)[1]
                    least = min(least, 2.0 - tip - radius * np.sqrt(1.0 - y * y))
        found = {entry["obstacle"]: entry for entry in session.collisions.distances()}
    assert found["wall"]["distance_m"] == pytest.approx(least, abs=1e-3)
    assert found["wall"]["body"].startswith("drone_")
    assert not [event for event in session.events.happened if event.kind == "collision"]


def test_drone_and_cable_in_an_obstacle_are_collisions_with_a_place():
    with hovering(CRATE) as session:
        session.advance(1)
        session.state.position_enu_m[2] = 0.0, -4.0, 1.0
        session.state.velocity_enu_m_s[2] = 0.0, 0.0, -1.5
        found = [str(c) for c in session.collisions.look(0)]
        assert len(found) == 1
        assert found[0].startswith("drone_2 and crate at 1.5 m/s, at (")
        assert not session.collisions.look(1)  # it is still in there
    x, y, z = session.plant.cable_nodes_enu_m(0)[7]
    pole = {"kind": "cylinder", "name": "pole", "radius_m": 0.02, "height_m": 0.3}
    with hovering(pole | {"position_enu_m": [x - 1.0, y, z]}) as session:
        session.collisions._solids["position"] = x, y, z
        assert [c.bodies for c in session.collisions.look_at_cables(4)] == [("cable_1", "pole")]


def test_what_stands_on_an_obstacle_may_and_what_is_inside_is_refused():
    with hovering() as session:
        load = session.scenario.system.load.collision
        bottom_m = session.state.position_enu_m[0, 2] + load.bottom_m
    table = lambda top_m: PlaneObstacle(  # noqa: E731
        name="table", point_enu_m=(0.0, 0.0, top_m), normal_enu=(0.0, 0.0, 1.0)
    )
    watch = CollisionWatch(session.plant, WorldSpec(obstacles=(table(bottom_m),)))
    assert not watch.look(0)
    with pytest.raises(ConfigError, match="load and obstacle table overlap at the start: place"):
        CollisionWatch(session.plant, WorldSpec(obstacles=(table(bottom_m + 0.02),)))


@pytest.mark.parametrize(
    ("obstacles", "message"),
    [
        ([CRATE, CRATE], "two obstacles have the name 'crate'"),
        ([CRATE | {"name": "drone_1"}], "names of bodies are taken"),
        ([CRATE | {"size_m": [1, 0, 1]}], "size_m.1 = 0: must be greater than 0"),
        ([CRATE | {"kind": "ball"}], r"obstacles.0.kind = 'ball': .*\bbox\b"),
        ([WALL | {"normal_enu": [0, 0, 0]}], "normal_enu must have a direction"),
        ([GATE | {"depth_m": 1.0}], "unknown key 'world.obstacles.0.depth_m'"),
        ([{"kind": "gate", "name": "g"}], "width_m.* are missing"),
    ],
)
def test_bad_obstacles_are_one_line(obstacles, message):
    with pytest.raises(ConfigError, match=message) as error:
        load_scenario("hold", {"world.obstacles": obstacles})
    assert "\n" not in str(error.value)


def test_formation_flies_through_the_gate_without_touching_it():
    with Session(load_scenario("gate")) as session:
        while not session.finished:
            session.advance(50)
        (gate,) = session.collisions.distances()
    assert gate["distance_m"] == pytest.approx(0.167, abs=2e-3)  # 2 and 4 ms alike
    assert gate["body"] in ("drone_2", "drone_3")
    assert "collision" not in {event.kind for event in session.events.happened}


def test_check_finds_what_the_plan_brings_into_an_obstacle():
    assert not judge(load_scenario("gate"), flown=False).problems
    narrow = load_scenario("gate", {"world.obstacles.0.width_m": 2.4, "controller": "formation"})
    (problem, _) = judge(narrow, flown=False).problems
    assert re.fullmatch(
        r"the plan brings drone_[23] into gate at \d+\.\d s, in 'min_derivative'", problem
    )
