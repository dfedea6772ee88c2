"""The tree of bodies that all writers follow."""

import numpy as np
import pytest

from musls_description.hanging.tree import build_tree
from musls_description.system.system_files import load_system, system_names


@pytest.mark.parametrize("name", system_names(slung=True))
def test_tree_is_rooted_at_the_load_with_the_masses_of_the_system(name):
    system = load_system(name)
    tree = build_tree(system)
    assert tree.bodies[0].name == "load"
    assert [b.parent for b in tree.bodies].count(-1) == 1
    assert all(b.parent < k for k, b in enumerate(tree.bodies))
    assert sum(b.mass_kg for b in tree.bodies) == pytest.approx(system.mass_kg)
    assert len({b.name for b in tree.bodies}) == len(tree.bodies)
    axes = sum(2 * (c.links + 1) + (c.twist == "free") for c in system.cables)
    assert tree.n_coordinates == 6 + axes
    assert tree.first_coordinate[-1] + len(tree.bodies[-1].axes) == tree.n_coordinates


def test_joint_frames_are_rotations():
    for body in build_tree(load_system("x500_trio_unequal")).bodies:
        for rotation in (body.joint_in_parent_rotation, body.joint_in_child_rotation):
            assert np.allclose(rotation @ rotation.T, np.eye(3))
            assert np.linalg.det(rotation) == pytest.approx(1.0)


def test_at_zero_angles_drones_stand_upright_and_face_the_load():
    system = load_system("x500_trio")
    tree = build_tree(system)
    rotations, positions = tree.poses(np.zeros(tree.n_coordinates))
    for i, index in enumerate(tree.drone):
        rotation = rotations[index]
        outwards = np.array([*system.load.cable_attachments_m[i][:2], 0.0])
        outwards /= np.linalg.norm(outwards)
        assert np.allclose(rotation[:, 2], [0, 0, 1])
        assert np.allclose(rotation[:, 0], -outwards)
        drone, cable = system.drones[i], system.cables[i]
        hook = positions[index] + rotation @ drone.cable_attachment_m
        above = np.array(system.load.cable_attachments_m[i]) + [0.0, 0.0, cable.length_m]
        assert np.allclose(hook, above)
