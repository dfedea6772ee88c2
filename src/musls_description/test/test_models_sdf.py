"""The SDF text, read again by a reader of its own, against the tree of bodies."""

import dataclasses
import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest
from model_helpers import SPAWNS, make_spawn, sdf_names, stiff_system, tree_poses
from scipy.spatial.transform import Rotation
from sdf_reader import SdfScene

from musls_description.config.errors import ConfigError
from musls_description.hanging.ground import ground_spawn
from musls_description.system.obstacles import (
    BoxObstacle,
    CylinderObstacle,
    GateObstacle,
    PlaneObstacle,
    WorldSpec,
)
from musls_description.system.system_files import load_system, system_names
from musls_description.writers import sdf
from musls_description.writers.sdf import PIVOT_SHARE, number

WRITERS = {"world": sdf.world_sdf, "sdf-1.9": sdf.single_model_sdf}


def read(system, spawn, writer="world", **options):
    """The scene, with names as in a world of joined writers."""
    scene = SdfScene(WRITERS[writer](system, spawn, **({"drones": "rigid"} | options)))
    outer = "" if writer == "world" else f"{system.name}::"
    scene.links = {name.removeprefix(outer): link for name, link in scene.links.items()}
    scene.joints = {
        name.removeprefix(outer): joint._replace(
            parent=joint.parent.removeprefix(outer), child=joint.child.removeprefix(outer)
        )
        for name, joint in scene.joints.items()
    }
    return scene


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("spawn_kind", SPAWNS)
@pytest.mark.parametrize("name", system_names(slung=True))
def test_bodies_are_the_trees_at_the_spawn(name, spawn_kind, writer):
    system = load_system(name)
    spawn = make_spawn(system, spawn_kind)
    scene = read(system, spawn, writer)
    tree, poses, _ = tree_poses(system, spawn)
    names = sdf_names(system)
    for body, sdf_name, (rotation, position) in zip(tree.bodies, names, poses, strict=True):
        link = scene.links[sdf_name]
        assert np.allclose(link.position_m, position, rtol=0.0, atol=1e-12)
        assert np.allclose(link.rotation, rotation, rtol=0.0, atol=1e-12)
        assert link.mass_kg == body.mass_kg
        assert np.array_equal(link.com_m, body.com_m)
        assert np.array_equal(link.inertia_kg_m2, body.inertia_kg_m2)
    pivots = set(scene.links) - set(names)
    assert pivots == {
        f"cable_{i}::pivot" for i, c in enumerate(system.cables, 1) if c.twist == "free"
    }
    mass = sum(link.mass_kg for link in scene.links.values())
    assert mass == pytest.approx(system.mass_kg, rel=1e-9)


@pytest.mark.parametrize("spawn_kind", SPAWNS)
@pytest.mark.parametrize("name", system_names(slung=True))
def test_joints_turn_about_the_trees_axes(name, spawn_kind):
    """World axes at the spawn: the first of a universal joint is the parent's y of the joint's
    frame, the second the child's z; where there are three, x comes before on a pivot.
    """
    system = load_system(name)
    spawn = make_spawn(system, spawn_kind)
    scene = read(system, spawn)
    tree, poses, joints = tree_poses(system, spawn)
    names = sdf_names(system)
    held_by = {joint.child: joint for joint in scene.joints.values()}
    assert len(held_by) == len(scene.joints) == len(scene.links) - 1
    for k, body in enumerate(tree.bodies[1:], start=1):
        frame, place = joints[k]
        joint = held_by[names[k]]
        second = poses[k][0] @ body.joint_in_child_rotation[:, 2]
        first = frame[:, 1]
        chain = [joint]
        if body.axes == "xyz":
            pivot = held_by[joint.parent]
            assert (pivot.kind, len(pivot.axes)) == ("revolute", 1)
            assert np.allclose(pivot.rotation @ pivot.axes[0], frame[:, 0], atol=1e-12)
            # The y axis has gone with the turn about x; it is square to x and to the second axis.
            first = np.cross(second, frame[:, 0])
            first /= np.linalg.norm(first)
            chain.append(pivot)
        assert joint.kind == "universal"
        in_world = [joint.rotation @ axis for axis in joint.axes]
        assert abs(in_world[0] @ first) == pytest.approx(1.0, abs=1e-12)
        assert np.allclose(in_world[1], second, atol=1e-12)
        assert chain[-1].parent == names[body.parent]
        for part in chain:
            assert np.allclose(part.position_m, place, rtol=0.0, atol=1e-12)
            assert all(d["friction"] == body.friction_n_m for d in part.dynamics)
        damping = [d["damping"] for part in reversed(chain) for d in part.dynamics]
        assert damping == [body.axis_damping_n_m_s_rad(axis) for axis in body.axes]


@pytest.mark.parametrize("name", ["x500_trio", "x500_trio_swivel"])
def test_only_second_axes_have_stops(name):
    """They are where the joint is about to be singular, 60 degrees on either side, at any spawn."""
    system = load_system(name)
    spawn = make_spawn(system, "contorted")
    spawn.joint_angles_rad[0][1] = np.radians(64.0)  # slack cables of few links may start so
    tree, names = tree_poses(system, spawn)[0], sdf_names(system)
    joints = read(system, spawn).joints.values()
    held_by = {joint.child: joint for joint in joints}
    for k, body in enumerate(tree.bodies[1:], start=1):
        joint = held_by[names[k]]
        limits, angles = joint.limits, spawn.coordinates[tree.first_coordinate[k] :]
        if body.axes == "xyz":
            limits = held_by[joint.parent].limits + limits
        low, high = np.radians([-60.0, 60.0]) - angles[1]
        assert abs(low + high) > 1e-3
        assert limits[1] == pytest.approx((min(low, 0.0), max(high, 0.0)), abs=1e-12)
        assert all(not np.isfinite(limit).any() for limit in limits[:1] + limits[2:])


def test_springs_rest_where_the_cable_is_straight():
    system = stiff_system("x500_trio")
    spawn = ground_spawn(system)
    tree, names = tree_poses(system, spawn)[0], sdf_names(system)
    angles = spawn.coordinates
    held_by = {joint.child: joint for joint in read(system, spawn).joints.values()}
    for k in range(1, len(tree.bodies)):
        rest = [d["spring_reference"] for d in held_by[names[k]].dynamics]
        first = tree.first_coordinate[k]
        assert rest == pytest.approx(list(-angles[first : first + 2]), abs=1e-15)
        assert {d["spring_stiffness"] for d in held_by[names[k]].dynamics} == {0.03}
    swivel = stiff_system("x500_trio_swivel")
    joints = read(swivel, ground_spawn(swivel)).joints
    pivots = [joint for joint in joints.values() if joint.kind == "revolute"]
    assert len(pivots) == 3
    assert not any("spring_stiffness" in joint.dynamics[0] for joint in pivots)


def test_pivot_weighs_a_millionth_of_what_it_carries():
    system = load_system("x500_trio_swivel")
    scene = read(system, ground_spawn(system))
    link, pivot = scene.links["cable_2::link_01"], scene.links["cable_2::pivot"]
    assert pivot.mass_kg == pytest.approx(PIVOT_SHARE * link.mass_kg)
    assert np.allclose(pivot.inertia_kg_m2, PIVOT_SHARE * link.inertia_kg_m2.max() * np.eye(3))


def test_world_is_what_px4_and_gazebo_expect():
    system = load_system("x500_trio")
    text = sdf.world_sdf(system, ground_spawn(system), name="trio", step_s=0.002)
    scene = SdfScene(text)
    assert scene.root.get("version") == "1.10"
    assert scene.world.get("name") == "trio"
    assert scene.world.findtext("physics/max_step_size") == "0.002"
    top = [model.get("name") for model in scene.world.findall("model")]
    assert sorted(top) == sorted(
        ["ground", "load", *(f"{part}_{i}" for part in ("cable", "x500") for i in (1, 2, 3))]
    )
    assert not scene.world.findall("model/model")
    assert {j.get("name") for j in scene.world.findall("joint")} == {
        f"{pair}_{i}" for i in (1, 2, 3) for pair in ("load_to_cable", f"cable_{i}_to_x500")
    }
    assert not scene.world.findall("model/joint[@type='revolute']/axis/limit")  # rotors
    for i in (1, 2, 3):
        base = scene.world.find(f"model[@name='x500_{i}']/link[@name='base_link']")
        assert [s.get("name") for s in base.findall("sensor")] == [
            "imu_sensor",
            "magnetometer_sensor",
            "air_pressure_sensor",
            "navsat_sensor",
        ]


def test_obstacles_are_static_models_where_the_scenario_has_them():
    system = load_system("x500_duo")
    turn = {"orientation_wxyz": (0.8, 0.0, 0.0, 0.6), "position_enu_m": (4.0, 1.0, 2.0)}
    obstacles = WorldSpec(
        obstacles=(
            BoxObstacle(name="crate", size_m=(1.0, 2.0, 0.5), **turn),
            CylinderObstacle(name="pole", radius_m=0.1, height_m=3.0, **turn),
            PlaneObstacle(name="slope", point_enu_m=(5.0, 0.0, 0.0), normal_enu=(-1.0, 0.0, 2.0)),
            GateObstacle(name="gate", width_m=3.0, height_m=2.5, **turn),
        )
    ).obstacles
    text = sdf.world_sdf(system, ground_spawn(system), obstacles=obstacles)
    scene, plain = SdfScene(text), sdf.world_sdf(system, ground_spawn(system))
    assert "obstacle" not in plain
    shapes = {
        "crate": ("box/size", [1.0, 2.0, 0.5]),
        "pole": ("cylinder/length", [3.0]),
        "slope": ("plane/normal", [0.0, 0.0, 1.0]),
        "gate": ("box/size", [0.1, 0.1, 2.7]),
    }
    for obstacle in obstacles:
        model = scene.world.find(f"model[@name='obstacle_{obstacle.name}']")
        assert model.findtext("static") == "true"
        links = model.findall("link")
        for link, solid in zip(links, obstacle.solids(), strict=True):
            *place, x, y, z, w = map(float, link.findtext("pose").split())
            assert place == pytest.approx(solid["position"])
            turned = Rotation.from_quat([x, y, z, w]).as_matrix()
            assert turned == pytest.approx(solid["rotation"], abs=1e-12)
            seen, felt = (link.find(f"{part}/geometry") for part in ("visual", "collision"))
            assert ElementTree.tostring(seen).split() == ElementTree.tostring(felt).split()
            assert link.findtext("collision/surface/friction/ode/mu") == "0.8"
        path, size = shapes[obstacle.name]
        found = links[0].findtext(f"collision/geometry/{path}")
        assert list(map(float, found.split())) == pytest.approx(size)


def test_older_gazebo_gets_one_model_and_no_plugins():
    system = load_system("x500_duo")
    scene = SdfScene(sdf.single_model_sdf(system, ground_spawn(system)))
    assert scene.root.get("version") == "1.9"
    assert [m.get("name") for m in scene.world.findall("model")] == ["ground", "x500_duo"]
    assert not list(scene.world.iter("plugin"))
    assert not scene.world.findall("joint")


def test_included_drones_stand_where_written_ones_do():
    system = load_system("x500_trio")
    spawn = make_spawn(system, "hover")
    world, written = (
        ElementTree.fromstring(sdf.world_sdf(system, spawn, drones=drones)).find("world")
        for drones in ("include", "motors")
    )
    for i, include in enumerate(world.findall("include"), start=1):
        assert include.findtext("uri") == "model://x500"
        assert include.findtext("name") == f"x500_{i}"
        same, other = include.find("pose"), written.find(f"model[@name='x500_{i}']/pose")
        assert (same.text, same.attrib) == (other.text, other.attrib)
    assert i == 3


def test_separate_models_are_those_of_the_world_without_a_place():
    system = load_system("x500_duo")
    spawn = ground_spawn(system)
    files = sdf.model_files(system, spawn)
    names = ["load", "cable_1", "x500_1", "cable_2", "x500_2"]
    assert list(files) == [f"{n}/model.{end}" for n in names for end in ("sdf", "config")]
    world = sdf.world_sdf(system, spawn)
    for name in names:
        inside = re.search(rf'<model name="{name}">.*?</model>', world, re.S)[0]
        inside = re.sub(r"\s*<pose [^/]*</pose>", "", inside, count=1)
        # In a world of one's own the drone may have another name, to which its motors then listen.
        inside = re.sub(r"\s*<robotNamespace>x500_\d</robotNamespace>", "", inside)
        alone = re.search(r"<model .*</model>", files[f"{name}/model.sdf"], re.S)[0]
        assert [line.strip() for line in alone.splitlines()] == [
            line.strip() for line in inside.splitlines()
        ]
        assert f"<name>{name}</name>" in files[f"{name}/model.config"]
    without = sdf.model_files(system, spawn, drones="include")
    assert not any(path.startswith("x500") for path in without)


def test_text_is_the_same_in_every_run():
    system = load_system("x500_trio_swivel")
    first, second = (sdf.world_sdf(system, make_spawn(system, "hover")) for _ in range(2))
    assert first == second


def test_numbers_read_back_exactly():
    values = [*np.random.default_rng(5).normal(size=200), 0.1, 1e-300, -1e22, 5.0, -0.0, 123456.0]
    assert [float(number(v)) for v in values] == values
    assert (number(5.0), number(-0.0), number(0.1)) == ("5", "0", "0.1")
    with pytest.raises(ConfigError, match="nan"):
        number(np.nan)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "my world"}, "world name 'my world'"),
        ({"name": "a::b"}, "world name 'a::b'"),
        ({"step_s": 0.0}, "0 s: must be > 0"),
        ({"drones": "motor"}, "did you mean 'motors'"),
        ({"gravity_m_s2": np.inf}, "number -inf"),
    ],
)
def test_bad_options_are_said(options, words):
    system = load_system("x500_solo")
    with pytest.raises(ConfigError, match=words):
        sdf.world_sdf(system, ground_spawn(system), **options)


@pytest.mark.parametrize("model", ["cable", "my drone", "a::b", ""])
def test_bad_airframe_names_are_said(model):
    system = load_system("x500_solo")
    drone = dataclasses.replace(system.drones[0], model=model)
    with pytest.raises(ConfigError, match=r"drones\.0\.model"):
        sdf.world_sdf(dataclasses.replace(system, drones=(drone,)), ground_spawn(system))


# --------------------------------------------------------------------------- Gazebo's own checker


@pytest.fixture(scope="module")
def checker():
    """Debian's `ign sdf --check`, which is libsdformat 12: it reads SDF up to 1.9."""
    if shutil.which("ign") is None:
        pytest.skip("`ign` is not installed (Debian: ignition-tools and libsdformat-dev)")
    commands = subprocess.run(["ign", "--commands"], capture_output=True, text=True, timeout=60)
    if "sdf" not in commands.stdout.split():
        pytest.skip("`ign` has no `sdf` command (Debian: libsdformat-dev)")

    def check(path):
        run = subprocess.run(
            ["ign", "sdf", "--check", path], capture_output=True, text=True, timeout=60
        )
        complaints = [
            line for line in run.stderr.splitlines() if "Error" in line or "Warning" in line
        ]
        return run.stdout.strip(), complaints

    return check


# The checker takes one to two seconds for each file: all ways of writing a model with one system,
# and each system, with whatever shapes and joints of its own, in one of them.


@pytest.mark.gazebo_physics
@pytest.mark.parametrize("drones", ["rigid", "motors"])
@pytest.mark.parametrize("kind", ["ground", "hover"])
def test_gazebos_checker_accepts_the_single_model(kind, drones, checker, tmp_path):
    system = load_system("x500_trio_swivel")
    path = tmp_path / "model.sdf"
    path.write_text(sdf.single_model_sdf(system, make_spawn(system, kind), drones=drones))
    assert checker(path) == ("Valid.", [])


@pytest.mark.slow
@pytest.mark.gazebo_physics
@pytest.mark.parametrize("name", system_names(slung=True))
def test_gazebos_checker_accepts_each_system(name, checker, tmp_path):
    system = load_system(name)
    path = tmp_path / "model.sdf"
    path.write_text(sdf.single_model_sdf(system, make_spawn(system, "hover"), drones="motors"))
    assert checker(path) == ("Valid.", [])


@pytest.mark.gazebo_physics
def test_gazebos_checker_accepts_the_separate_models(checker, tmp_path):
    """Unlike drones and cables, a file for each."""
    system = load_system("x500_trio_unequal")
    for path, text in sdf.model_files(system, ground_spawn(system)).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
        if path.endswith(".sdf"):
            assert checker(tmp_path / path) == ("Valid.", [])


@pytest.mark.gazebo_physics
def test_gazebos_checker_finds_a_mistake(checker, tmp_path):
    system = load_system("x500_solo")
    text = sdf.single_model_sdf(system, ground_spawn(system))
    path = tmp_path / "wrong.sdf"
    path.write_text(text.replace("<child>link_03</child>", "<child>link_99</child>"))
    said, complaints = checker(path)
    assert said != "Valid."
    assert complaints or "link_99" in said


def canonical(element):
    return ElementTree.canonicalize(ElementTree.tostring(element), strip_text=True)


def merged(files, name):
    """The recipe's world as libsdformat makes it of a merged include: the model's content."""
    world = ElementTree.fromstring(files[f"{name}/recipe.sdf"]).find("world")
    include = world.find("include")
    assert (include.get("merge"), include.findtext("uri")) == ("true", f"model://{name}")
    world.remove(include)
    return [*world, *ElementTree.fromstring(files[f"{name}/model.sdf"]).find("model")]


@pytest.mark.parametrize("drones", ["rigid", "motors"])
def test_a_merged_model_folder_is_the_world(drones):
    """Text by text, so that PX4 finds the topics of the world that `world_sdf` writes."""
    system = load_system("x500_trio_unequal")
    spawn = ground_spawn(system)
    world = ElementTree.fromstring(sdf.world_sdf(system, spawn, drones=drones)).find("world")
    files = sdf.include_files(system, spawn, drones=drones)
    assert set(files) == {f"{system.name}/{f}" for f in ("model.sdf", "model.config", "recipe.sdf")}
    assert list(map(canonical, merged(files, system.name))) == list(map(canonical, world))


def test_a_lean_world_has_the_same_mechanics_and_sensors():
    system = load_system("x500_trio")
    spawn = ground_spawn(system)
    full, lean = (
        ElementTree.fromstring(sdf.world_sdf(system, spawn, lean=lean)).find("world")
        for lean in (False, True)
    )
    for path in (".//joint", ".//inertial", ".//collision", ".//sensor", ".//model/plugin"):
        texts = [list(map(canonical, world.findall(path))) for world in (full, lean)]
        assert texts[0] == texts[1] and texts[0]
    systems = {p.get("filename") for p in lean.findall("plugin")}
    assert systems < {p.get("filename") for p in full.findall("plugin")}
    assert {"gz-sim-physics-system", "gz-sim-imu-system"} <= systems
    assert not lean.findall("model[@name='cable_1']//visual")
    assert lean.findtext(".//plugin/dynamic_pose_hertz") == "10"
