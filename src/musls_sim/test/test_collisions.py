"""Collisions: contact of discs and boxes against brute force, and the events of flights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from musls_bringup.api.simulation import fly
from musls_bringup.catalogue.scenarios import load_scenario
from musls_description.config.errors import ConfigError
from musls_description.system.contacts import TOUCH_M, gap_between
from musls_description.system.drone import tip_radius_m
from musls_description.system.obstacles import BOX, CYLINDER, solid
from musls_sim.session.collisions import CollisionError, CollisionWatch
from musls_sim.session.session import Session


def sampled(body: np.void) -> np.ndarray:
    """Points of a solid: a grid over the disc or the box."""
    a, b, c = body["size"]
    if body["kind"] == CYLINDER:
        radius, angle = np.meshgrid(np.linspace(0.0, a, 25), np.linspace(0.0, 2.0 * np.pi, 90))
        grid = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.0 * angle], axis=-1)
    else:
        axes = [np.linspace(-half, half, 13) for half in (a, b, c)]
        grid = np.stack(np.meshgrid(*axes), axis=-1)
    return body["position"] + grid.reshape(-1, 3) @ body["rotation"].T


def test_contact_agrees_with_sampled_bodies():
    rng = np.random.default_rng(5)
    touching = 0
    for _ in range(300):
        bodies = []
        for place in (np.zeros(3), rng.uniform(-0.5, 0.5, 3)):
            kind, (a, b, c) = rng.choice([CYLINDER, BOX]), rng.uniform(0.1, 0.3, 3)
            size = (a, a, 0.0) if kind == CYLINDER else (a, b, c)
            place = place + rng.uniform(-0.1, 0.1, 3)
            bodies.append(solid(kind, place, Rotation.random(rng=rng).as_matrix(), size)[0])
        one, other = map(sampled, bodies)
        least = KDTree(one).query(other)[0].min()
        gap, point, _ = gap_between(*bodies, TOUCH_M)
        if least > 0.06:  # farther than the grid is wide
            assert gap > TOUCH_M
        if gap < TOUCH_M:
            touching += 1
            for samples in (one, other):
                assert np.linalg.norm(samples - point, axis=1).min() < 0.06
    assert 30 < touching < 270


@pytest.mark.parametrize(("gap_m", "touches"), [(-0.002, True), (0.003, False)])
def test_discs_side_by_side_above_and_across_each_other(gap_m, touches):
    radius = 0.12
    size, upright = (radius, radius, 0.0), np.eye(3)
    across = Rotation.from_euler("x", 90, degrees=True).as_matrix()  # its edge points at the other
    one = solid(CYLINDER, np.zeros(3), upright, size)[0]
    for place, turn in (
        ([2.0 * radius + gap_m, 0.0, 0.0], upright),
        ([0.0, 0.0, radius + gap_m], across),
    ):
        other = solid(CYLINDER, place, turn, size)[0]
        assert (gap_between(one, other, TOUCH_M)[0] < TOUCH_M) == touches


CLOSE = {"formation.radius_m": 1.2, "formation.height_m": 2.29}
"""A formation in which the loss of drone 1 lets drones 2 and 6 swing into each other."""


def collided(session: Session) -> list[str]:
    return [event.what for event in session.events.happened if event.kind == "collision"]


def test_lost_drone_leads_two_others_into_each_other():
    session = Session(load_scenario("drone_lost", CLOSE))
    distance_m = {}
    while not any(what.startswith("drone_2 and drone_6 at ") for what in collided(session)):
        session.advance(1)
        places = session.state.position_enu_m
        distance_m[session.time_s] = np.linalg.norm(places[2] - places[6])
    reach_m = 2.0 * tip_radius_m(session.scenario.system.drones[0])
    assert 0.5 * reach_m < distance_m[session.time_s] < reach_m
    assert session.events.happened[-1].time_s == pytest.approx(session.time_s)
    assert 4.8 < session.time_s < 5.0


def test_flight_ends_with_its_first_collision_if_asked():
    scenario = load_scenario("drone_lost", {"limits.collision": "end", **CLOSE})
    with pytest.raises(CollisionError, match=r"collision at 4\.[789]\d* s: drone_2 and "):
        fly(scenario)


@pytest.mark.parametrize("onto", ["ground", "table"])
@pytest.mark.parametrize("cable_model", ["massless", "rigid_links", "elastic"])
def test_a_fall_is_told_with_the_speed_of_its_end(cable_model, onto):
    """Plants stop a drone within one period, in which it falls by 3 cm at 8 m/s."""
    table = {"kind": "box", "name": "table", "position_enu_m": [-0.8, 0.85, 0.4],
             "size_m": [1.2, 1.2, 0.8]}  # fmt: skip
    flight = {
        "mission.stages": [{"kind": "hold", "position_m": [0, 0, 1.2], "duration_s": 2}],
        "start": "air",
        "cable_model": cable_model,
        "events": [{"kind": "drone_lost", "drone": 2, "when": {"time_s": 0.5}}],
        "world.obstacles": [table] if onto == "table" else [],
    }
    run = fly("circle", set=flight, force=True, quiet=True)
    hits = [e for e in run.events if e.what.startswith(f"drone_2 and {onto}")]
    at, fall = hits[0].time_s, -run.drone(2).velocity_enu_m_s[:, 2]
    k = np.searchsorted(run.drone(2).time_s, at, side="right") - 1
    hit_m_s = fall[k] + 9.81 * (at - run.drone(2).time_s[k])
    assert hit_m_s > 6.0
    assert float(hits[0].what.split(" at ")[1].split()[0]) == pytest.approx(hit_m_s, rel=0.02)


def moved(changes: dict[int, list[float]], velocity_m_s: float = 0.0) -> Session:
    """A session of "hold" whose drones were put elsewhere, as a plant would."""
    session = Session(load_scenario("hold"))
    for drone, place in changes.items():
        session.state.position_enu_m[drone] = place
        session.state.velocity_enu_m_s[drone, 2] = velocity_m_s
    return session


def test_fast_ground_is_a_collision_and_a_landing_is_none():
    for speed, expected in ((-0.7, []), (-3.0, ["drone_2 and ground at 3.0 m/s"])):
        session = moved({2: [5.0, 5.0, 0.05]}, speed)
        assert [str(found) for found in session.collisions.look(0)] == expected


def test_hard_ground_at_the_start_is_told_in_flight():
    session = moved({2: [5.0, 5.0, 0.05]}, -3.0)
    watch = CollisionWatch(session.plant)
    assert [str(found) for found in watch.look(0)] == ["drone_2 and ground at 3.0 m/s"]


def test_bodies_that_touch_again_at_once_have_one_collision():
    session = moved({2: [5.0, 5.0, 0.05]}, -3.0)
    watch = session.collisions
    assert len(watch.look(0)) == 1
    assert not watch.look(100)
    assert len(watch.look(300)) == 1


def test_drone_in_a_cable_is_seen_and_its_own_cable_is_not():
    session = Session(load_scenario("hold"))
    session.advance(1)
    middle = session.plant.cable_nodes_enu_m(0)[5]
    assert not session.collisions.look(4)
    rotor = session.scenario.system.drones[1].rotors[0]
    session.state.position_enu_m[2] = middle - np.array(rotor.position_m)
    session.state.orientation_wxyz[2] = 1.0, 0.0, 0.0, 0.0
    assert "drone_2 and cable_1" in [str(found) for found in session.collisions.look(4)]


def test_drones_that_overlap_at_the_start_are_refused():
    scenario = load_scenario("drone_lost")
    with Session(scenario) as session:
        session.state.position_enu_m[2] = session.state.position_enu_m[3] + 0.01
        with pytest.raises(ConfigError, match="drone_2 and drone_3 overlap at the start"):
            CollisionWatch(session.plant)
