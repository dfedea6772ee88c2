"""Joints of cables that are free to twist: they bend alike in all directions, without a stop."""

import dataclasses

import numpy as np
import pytest
from plant_helpers import follow, hovering_plant, with_cables

from musls_description.hanging.equilibrium import slung_state
from musls_description.numerics.rotations import from_matrix, from_yaw, matrix
from musls_description.system.system_files import load_system
from musls_sim.plants.interface import PlantInputs
from musls_sim.plants.rigid_links.mechanism import place_bodies, set_positions
from musls_sim.plants.rigid_links.plant import RigidLinksPlant

LOAD = np.array([0.0, 0.0, 10.0])


def held(name, yaws, spans, **cables):
    """A load on cables that span so much, below drones that are held by hooks in their middle."""
    system = with_cables(load_system(name), **cables)
    hooked = [dataclasses.replace(drone, cable_attachment_m=(0, 0, 0)) for drone in system.drones]
    system = dataclasses.replace(system, drones=tuple(hooked))
    places = LOAD + np.array(system.load.cable_attachments_m) + spans
    turns = matrix(from_yaw(np.asarray(yaws, float)))
    start, turns = slung_state(system, LOAD, np.eye(3), places, turns)
    plant = RigidLinksPlant(system, start, ground_height_enu_m=None)
    return plant, lambda time_s: (places, from_matrix(turns))


def test_headings_of_drones_are_nothing_to_cables():
    """Dropped by 0.1 m on three slack cables: tensions and way are those of the symmetry."""
    azimuths = 2.0 * np.pi * np.arange(3) / 3.0
    lean = np.column_stack([0.4 * np.cos(azimuths), 0.4 * np.sin(azimuths), np.full(3, 0.84**0.5)])
    spans = 2.42 * lean - [0.0, 0.0, 0.1]
    peaks = []
    for yaws in (azimuths + np.pi, 0.0 * azimuths, [0.7, -2.0, 1.1]):
        plant, path = held("x500_trio_swivel", yaws, spans, links=5)
        peak, aside = np.zeros(3), 0.0
        for _ in range(60):
            follow(plant, path)
            peak = np.maximum(peak, plant.state.tension_peak_n)
            aside = max(aside, np.abs(plant.state.position_enu_m[0, :2]).max())
        assert aside < 1e-9
        peaks.append(peak)
    assert np.array(peaks) == pytest.approx(peaks[0][0], rel=1e-5)
    assert peaks[0][0] > 100.0


@pytest.mark.parametrize("angle_deg", [65.0, 110.0])
def test_a_link_swings_across_the_heading_as_along_it(angle_deg):
    swing = np.radians(angle_deg)
    span = 2.0 * np.array([[-np.sin(swing), 0.0, np.cos(swing)]])
    ways = []
    for yaw in (0.0, 0.5 * np.pi):
        plant, path = held("x500_solo", [yaw], span, links=1, twist="free")
        ways.append([])
        for _ in range(350):
            follow(plant, path)
            ways[-1].append(plant.state.position_enu_m[0].copy())
        assert not plant.happened
    assert np.array(ways[0]) == pytest.approx(np.array(ways[1]), abs=1e-9)
    assert np.ptp(ways[0], axis=0)[0] > 2.0


def test_a_stop_is_named_where_a_cable_has_one():
    plant, _, _ = hovering_plant(with_cables(load_system("x500_solo"), links=1, twist="locked"))
    positions = plant.positions
    positions[7] = np.radians(60.5)
    set_positions(plant.records, positions)
    plant.start_moving(np.zeros_like(plant.velocities))
    plant.step(PlantInputs.zeros(plant.system))
    (event,) = plant.happened
    assert event.kind == "joint_stop" and "cable_1/link_01" in event.what
    assert "bent sideways by 60 degrees" in event.what and "choose twist: free" in event.what


def test_coordinates_are_those_of_the_tree():
    """Places and attitudes are those of universal joints at the same angles, there and back."""
    plant, _, _ = hovering_plant(load_system("x500_trio_swivel"))
    tree, t = plant.tree, plant.records
    kink = 0.6 * np.random.default_rng(0).normal(size=tree.n_coordinates)
    rotations, places = tree.poses(plant.positions + kink)
    set_positions(t, plant.positions + kink)
    place_bodies(t.system.ctypes.data)
    for _ in range(2):
        assert np.allclose(t.bodies["position"], places, atol=1e-12)
        assert np.allclose(t.bodies["rotation"][tree.drone], rotations[tree.drone], atol=1e-12)
        rotations, places = tree.poses(plant.positions)
