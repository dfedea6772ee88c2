"""Shared by the tests of the models: spawns, and where the tree of bodies is in them."""

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation

from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.hanging.ground import ground_spawn
from musls_description.hanging.tree import build_tree
from musls_description.system.system_files import load_system
from musls_description.writers.sdf import drone_name

SPAWNS = ("ground", "elsewhere", "hover", "contorted")


def make_spawn(system, kind):
    """A configuration to start from; "contorted" bends every joint at random."""
    if kind == "ground":
        return ground_spawn(system)
    if kind == "elsewhere":
        return ground_spawn(system, (0.5, -0.3), 0.7, 0.2)
    n = system.n_drones
    azimuth = 2.0 * np.pi * np.arange(n) / n
    size = min(1.0, min(cable.length_m for cable in system.cables) / 2.0)
    places = size * np.column_stack([np.cos(azimuth), np.sin(azimuth), np.full(n, 3.2)])
    rest = hanging_equilibrium(system, places, load_yaw_rad=0.1).configuration
    if kind == "hover":
        return rest
    random = np.random.default_rng(2)
    return dataclasses.replace(
        rest,
        load_rotation=Rotation.random(random_state=3).as_matrix(),
        joint_angles_rad=tuple(
            a + random.uniform(-0.7, 0.7, a.shape) for a in rest.joint_angles_rad
        ),
    )


def stiff_system(name, **joint):
    """A system whose joints have springs and friction."""
    system = load_system(name)
    change = {"stiffness_n_m_rad": 0.03, "friction_n_m": 0.001} | joint

    def changed(cable):
        return dataclasses.replace(cable, joint=dataclasses.replace(cable.joint, **change))

    return dataclasses.replace(system, cables=tuple(changed(c) for c in system.cables))


def sdf_names(system):
    """The models' name of each body of the tree."""
    tree, names = build_tree(system), ["load::base_link"]
    for i, (first, drone) in enumerate(zip(tree.first_link, tree.drone, strict=True), start=1):
        names += [f"cable_{i}::link_{j:02d}" for j in range(1, drone - first + 1)]
        names.append(f"{drone_name(system, i - 1)}::base_link")
    return names


def tree_poses(system, configuration):
    """World pose of every body, and of its joint's frame in the parent: straight from the tree."""
    tree = build_tree(system)
    q = configuration.coordinates
    poses = [(np.asarray(configuration.load_rotation), configuration.load_position_enu_m)]
    joints = [None]
    for k, body in enumerate(tree.bodies[1:], start=1):
        first = tree.first_coordinate[k]
        turn = Rotation.from_euler(body.axes.upper(), q[first : first + len(body.axes)])
        rotation, position = poses[body.parent]
        frame = rotation @ body.joint_in_parent_rotation
        place = position + rotation @ body.joint_in_parent_position_m
        child = frame @ turn.as_matrix() @ body.joint_in_child_rotation.T
        poses.append((child, place - child @ body.joint_in_child_position_m))
        joints.append((frame, place))
    return tree, poses, joints
