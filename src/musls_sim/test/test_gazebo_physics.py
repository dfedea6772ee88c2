"""The SDF of a system in Gazebo's own physics against the embedded plant.

Debian's ignition-physics5 loads the SDF 1.9 file and steps it with its DART plugin, as Gazebo does;
drones are pushed with the same forces and moments in their own frames as the plant's rotors make.
In the *swing* the system starts bent at every joint, in the *manoeuvre* at rest, and all rotors
change their thrust. Nothing stabilises the flight. The plant flies without what Gazebo has not:
ground under the cables, finer steps after jerks, joint stops (which the flights stay clear of).

Both are DART and integrate alike, so what is left is rounding, and this: DART 6.12 takes sin x = x
when it finds the rotation vector of the load at the start, if it is below 1e-3 rad. Of 4e-4 rad in
the flights 1e-11 rad are lost, which moves the system by 0.2 nm in 2 s.
"""

import dataclasses
import re
import subprocess
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest
from gazebo_engine import GazeboMissingError, build, fly, rotor_wrenches
from model_helpers import SPAWNS, make_spawn, tree_poses
from plant_helpers import advance, formation, trio, with_cables, without_drag

from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.system.system_files import load_system
from musls_description.writers.sdf import single_model_sdf, world_sdf
from musls_sim.plants.dart.dart_plant import DartPlant
from musls_sim.plants.trim import trim_speeds_rad_s

PERIODS, SAMPLE = 500, 5
SAME_M, SAME_DEG = 1e-6, 1e-5
"""Measured: at most 0.27 um and 1.7e-6 degrees: rounding of the same sums in another order, grown
over 2 s (0.3 nm while our plant called DART, too)."""

# What DART says when links of nested models, which have the same names, join one skeleton.
RENAMED = re.compile(r"Msg \[NameManager::issueNewName\] .* is a duplicate, so it has been renamed")

every_chain = pytest.mark.parametrize("links", [5, 29, 100])

# Slow, because the program that drives Gazebo has to be built first.
pytestmark = [pytest.mark.gazebo_physics, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def program():
    try:
        return build()
    except GazeboMissingError as missing:
        pytest.skip(f"Gazebo's physics: {missing}")


def bent(configuration, angle_rad):
    """The configuration with every joint turned at random."""
    random = np.random.default_rng(3)
    angles = tuple(
        a + angle_rad * random.uniform(-1.0, 1.0, a.shape) for a in configuration.joint_angles_rad
    )
    return dataclasses.replace(configuration, joint_angles_rad=angles)


def command(trim, time_s, flight):
    """Rotor commands of a period, (n_drones, n_rotors)."""
    if flight == "swing":
        return trim
    drone, rotor = np.arange(len(trim))[:, None], np.arange(4)
    own = 0.02 * np.sin(2.0 * np.pi * (0.7 + 0.4 * drone) * time_s + drone)
    tilt = 0.002 * np.sin(2.0 * np.pi * 1.3 * time_s + rotor)
    yaw = 0.01 * np.sin(2.0 * np.pi * 0.9 * time_s) * np.array([1.0, 1.0, -1.0, -1.0])
    return trim * (1.0 + own) * (1.0 + tilt) * (1.0 + yaw)


def fly_both(
    system, flight, step_s, *, bend_rad=0.0, joint=None, periods=PERIODS, edit=None, **options
):
    """Fly a system in the plant and in Gazebo's physics.

    `system`: at first in the equilibrium of free joints.
    `flight`: "swing" or "manoeuvre".
    `bend_rad`: every joint is bent by up to this.
    `joint`: changes of the joints after the equilibrium is found.

    Returns:
        The plant's positions (samples, n_bodies, 3) and rotations, and Gazebo's run.
    """
    system = without_drag(system)
    rest = hanging_equilibrium(system, formation(system))
    trim = trim_speeds_rad_s(system, rest)
    start = bent(rest.configuration, bend_rad)
    system = with_cables(system, joint)

    def rotors(time_s):
        return command(trim, time_s, flight)

    plant = DartPlant(
        system,
        start,
        rotor_speed_rad_s=trim,
        physics_step_s=step_s,
        ground_height_enu_m=None,
        **options,
    )
    second_axes = np.append(plant.tree.first_coordinate, plant.tree.n_coordinates)[2:] - 1
    motion, angle = [rows(plant)], 0.0
    for k in range(periods):
        advance(plant, rotors(plant.time_s))
        angle = max(angle, np.abs(plant.positions[second_axes]).max())
        if (k + 1) % SAMPLE == 0:
            motion.append(rows(plant))
    assert np.degrees(angle) < 55.0, "the flight must keep clear of the joint stops"
    motion = np.array(motion)
    rotation = motion[..., :9].reshape(*motion.shape[:2], 3, 3)

    wrenches = rotor_wrenches(system, rotors, trim, step_s, periods * plant.substeps)
    gazebo = fly(system, start, wrenches, step_s, SAMPLE * plant.substeps, edit=edit)
    return motion[..., 9:], rotation, gazebo


def rows(plant):
    """Rotation and place of all bodies, (n_bodies, 12)."""
    bodies = plant.records.bodies
    return np.hstack([bodies["rotation"].reshape(-1, 9), bodies["position"]])


def distance_m(position, gazebo):
    """Largest distance of any body between both, at any time [m]."""
    return np.linalg.norm(position - gazebo.position_m, axis=-1).max()


def turn_deg(rotation, gazebo):
    """Largest angle of any body between both, at any time [deg]."""
    gap = np.linalg.norm(rotation - gazebo.rotation, axis=(-2, -1)).max()
    return np.degrees(2.0 * np.arcsin(min(gap / np.sqrt(8.0), 1.0)))


def others(messages):
    """Messages but for those that DART writes about names, and of a profiler that finds its port
    taken by another test's."""
    return [line for line in messages if not RENAMED.search(line) and "Remotery" not in line]


def assert_at_spawn(system, spawn):
    gazebo = fly(system, spawn, np.zeros((0, system.n_drones, 6)), 1e-3, 1)
    rotation, position = zip(*tree_poses(system, spawn)[1], strict=True)
    assert np.abs(gazebo.position_m[0] - position).max() < 1e-9
    assert np.abs(gazebo.rotation[0] - rotation).max() < 1e-9
    assert others(gazebo.messages) == []


@pytest.mark.parametrize("spawn", SPAWNS)
@pytest.mark.parametrize("name", ["x500_solo", "x500_trio_unequal", "x500_trio_swivel"])
def test_systems_spawn_as_described(name, spawn):
    system = load_system(name)
    assert_at_spawn(system, make_spawn(system, spawn))


@every_chain
def test_chains_spawn_as_described(links):
    system = trio(links=links)
    assert_at_spawn(system, make_spawn(system, "contorted"))


@pytest.mark.parametrize(
    ("links", "flight", "step_s"),
    [*product([5, 29], ["swing", "manoeuvre"], [1e-3, 4e-3]), (100, "manoeuvre", 4e-3)],
)
@pytest.mark.filterwarnings("ignore:physics step")  # 100 links: 4 ms, 3.5 would be sure to hold
def test_flights_are_the_plants(links, flight, step_s):
    bend_rad = 0.1 / np.sqrt(links) if flight == "swing" else 0.0
    position, rotation, gazebo = fly_both(trio(links=links), flight, step_s, bend_rad=bend_rad)
    assert np.ptp(position, axis=0).max() > 0.25
    assert distance_m(position, gazebo) < SAME_M
    assert turn_deg(rotation, gazebo) < SAME_DEG
    assert others(gazebo.messages) == []


@pytest.mark.parametrize(
    ("name", "joint"),
    [
        ("x500_solo", {}),
        ("x500_trio_unequal", {}),
        ("x500_trio", {"stiffness_n_m_rad": 0.03}),
        ("x500_trio", {"friction_n_m": 0.001}),
        ("x500_trio_swivel", {}),
    ],
    ids=["one drone", "unequal cables", "springs", "friction", "free to twist"],
)
def test_strongly_bent_starts_are_the_plants(name, joint):
    """Joints turned by up to 0.4 rad, springs at rest where the description's cable is straight."""
    position, rotation, gazebo = fly_both(
        load_system(name),
        "swing",
        1e-3,
        bend_rad=0.4,
        joint=joint,
        periods=40,
        exact_friction="friction_n_m" in joint,
    )
    assert distance_m(position, gazebo) < SAME_M
    assert turn_deg(rotation, gazebo) < SAME_DEG


def test_one_per_cent_of_damping_shows():
    """What the comparisons above would say of a small mistake in the file: 3 mm."""
    right = "<damping>0.002</damping>"
    position, _, gazebo = fly_both(
        trio(links=5),
        "swing",
        4e-3,
        bend_rad=0.05,
        edit=lambda text: text.replace(right, "<damping>0.00202</damping>"),
    )
    assert distance_m(position, gazebo) > 1000.0 * SAME_M


def test_a_joint_that_gazebo_cannot_build_is_heard():
    """The comparisons hold Gazebo to silence; this is what it says otherwise."""
    system = trio(links=5)
    gazebo = fly(
        system,
        make_spawn(system, "hover"),
        np.zeros((0, 3, 6)),
        1e-3,
        1,
        edit=lambda text: text.replace('type="universal"', 'type="revolute2"', 1),
    )
    assert any("Creating a FIXED joint instead" in line for line in others(gazebo.messages))


def test_bad_input_is_one_line(program, tmp_path):
    def run(world, pushes):
        command = [program, world, "0.001", "1", "1", tmp_path / "poses.txt"]
        done = subprocess.run(command, input=pushes, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        return done.stderr.splitlines()[-1]

    world = tmp_path / "world.sdf"
    assert "world.sdf" in run(world, "0")
    system = load_system("x500_solo")
    world.write_text(single_model_sdf(system, make_spawn(system, "hover")))
    assert run(world, "1 drone_7") == "no link is called drone_7"
    push = "1 x500_solo::x500_1::base_link 0 0 nothing"
    assert run(world, push) == "standard input: cannot read a force or moment"


def test_harmonics_world_holds_what_is_flown_here():
    """Debian's library cannot read joints under a world, where SDF 1.10 has them instead."""
    system = load_system("x500_trio_unequal")
    spawn = make_spawn(system, "contorted")
    world = ElementTree.fromstring(world_sdf(system, spawn, drones="rigid")).find("world")
    older = ElementTree.fromstring(single_model_sdf(system, spawn)).find("world/model[2]")

    def parts(scope, tag):
        return [ElementTree.tostring(e).split() for e in scope.findall(tag)]

    assert older.get("name") == system.name
    assert parts(world, "model")[1:] == parts(older, "model")
    assert parts(world, "joint") == parts(older, "joint")
    assert len(parts(world, "joint")) == 6
