"""The SDF text read as Gazebo's DART plugin reads it, against the plant's own skeleton.

dartsim takes the poses of the file for the joints' zero: both sides of a joint get its frame in
that pose, and both axes of a universal joint are given in it. If the equations of motion of the
skeleton made so are those of the plant's, at any angles, then mechanism and masses are the same.
"""

import dartpy
import numpy as np
import pytest
from model_helpers import SPAWNS, make_spawn, sdf_names, stiff_system
from sdf_reader import SdfScene

from musls_description.hanging.tree import build_tree
from musls_description.system.system_files import load_system, system_names
from musls_description.writers.sdf import world_sdf
from musls_sim.plants.dart.skeleton import build_skeleton, build_world

# A pivot adds a millionth of a link's mass, and a cable that twists freely has one more of them.
RELATIVE = 3e-9


def isometry(rotation, position):
    transform = dartpy.math.Isometry3()
    transform.set_rotation(rotation)
    transform.set_translation(position)
    return transform


def relative(link, joint):
    """Frame of a joint seen from a link, from their poses in the world."""
    return isometry(
        link.rotation.T @ joint.rotation,
        link.rotation.T @ (joint.position_m - link.position_m),
    )


def gazebo_skeleton(text, names):
    """The tree as dartsim builds it; joints of a cable one after the other."""
    scene = SdfScene(text)
    held_by = {joint.child: joint for joint in scene.joints.values()}
    skeleton, nodes = dartpy.dynamics.Skeleton("sdf"), {}

    def add(name):
        link, joint = scene.links[name], held_by.get(name)
        if joint is None:
            made, node = skeleton.createFreeJointAndBodyNodePair(None)
        elif joint.parent not in nodes:
            add(joint.parent)
            return add(name)
        elif joint.kind == "universal":
            made, node = skeleton.createUniversalJointAndBodyNodePair(nodes[joint.parent])
            made.setAxis1(joint.axes[0])
            made.setAxis2(joint.axes[1])
        else:
            made, node = skeleton.createRevoluteJointAndBodyNodePair(nodes[joint.parent])
            made.setAxis(joint.axes[0])
        if joint is not None:
            parent = scene.links[joint.parent]
            made.setTransformFromParentBodyNode(relative(parent, joint))
            made.setTransformFromChildBodyNode(relative(link, joint))
            for k, values in enumerate(joint.dynamics):
                made.setDampingCoefficient(k, values["damping"])
                made.setSpringStiffness(k, values.get("spring_stiffness", 0.0))
                made.setRestPosition(k, values.get("spring_reference", 0.0))
        inertia = dartpy.dynamics.Inertia(link.mass_kg, link.com_m, link.inertia_kg_m2)
        node.setInertia(inertia)
        nodes[name] = node
        return None

    for name in names:
        add(name)
    return skeleton, nodes


def pair(system, spawn):
    """Plant's and Gazebo's skeleton, each in a world, and the spawn's coordinates."""
    plant = build_skeleton(build_tree(system))
    gazebo, nodes = gazebo_skeleton(world_sdf(system, spawn, drones="rigid"), sdf_names(system))
    worlds = [build_world(skeleton, 0.001, 9.80665) for skeleton in (plant, gazebo)]
    assert plant.getNumDofs() == gazebo.getNumDofs()
    return plant, gazebo, nodes, worlds, spawn.coordinates


def set_state(plant, gazebo, spawn_coordinates, coordinates, rates):
    plant.setPositions(coordinates)
    gazebo.setPositions([*coordinates[:6], *(coordinates - spawn_coordinates)[6:]])
    for skeleton in (plant, gazebo):
        skeleton.setVelocities(rates)


def assert_same(a, b):
    assert np.abs(a - b).max() <= RELATIVE * np.abs(a).max()


@pytest.mark.parametrize("spawn_kind", SPAWNS)
@pytest.mark.parametrize("name", system_names(slung=True))
def test_equations_of_motion_are_the_plants_at_any_angles(name, spawn_kind):
    system = load_system(name)
    spawn = make_spawn(system, spawn_kind)
    plant, gazebo, nodes, _worlds, start = pair(system, spawn)
    random = np.random.default_rng(7)
    for bend in (0.0, 0.2, 0.8):
        coordinates = start + bend * random.uniform(-1.0, 1.0, start.shape)
        rates = random.uniform(-1.0, 1.0, start.shape)
        set_state(plant, gazebo, start, coordinates, rates)
        for body, sdf_name in zip(plant.getBodyNodes(), sdf_names(system), strict=True):
            there, here = (n.getWorldTransform().matrix() for n in (nodes[sdf_name], body))
            assert np.allclose(there, here, rtol=0.0, atol=1e-11)
        assert_same(plant.getMassMatrix(), gazebo.getMassMatrix())
        assert_same(
            plant.getCoriolisAndGravityForces(),
            gazebo.getCoriolisAndGravityForces(),
        )


@pytest.mark.parametrize("name", ["x500_trio", "x500_trio_swivel"])
def test_springs_and_damping_move_it_as_the_plant(name):
    """0.1 s of free fall from a bent spawn with springs and damping in all joints."""
    system = stiff_system(name, friction_n_m=0.0)
    spawn = make_spawn(system, "ground")
    plant, gazebo, nodes, worlds, start = pair(system, spawn)
    set_state(plant, gazebo, start, start, np.zeros_like(start))
    for _ in range(100):
        for world in worlds:
            world.step()
    moved = plant.getPositions() - start
    assert np.abs(moved[6:]).max() > 0.3
    assert np.allclose(gazebo.getPositions()[6:], moved[6:], rtol=0.0, atol=1e-4)
    for body, sdf_name in zip(plant.getBodyNodes(), sdf_names(system), strict=True):
        gap = nodes[sdf_name].getWorldTransform().translation()
        assert np.allclose(gap, body.getWorldTransform().translation(), rtol=0.0, atol=1e-6)
