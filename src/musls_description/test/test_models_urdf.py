"""The Xacro text, expanded by xacro and read by MuJoCo, against the tree of bodies."""

import dataclasses
import math
import subprocess
import sys
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from model_helpers import SPAWNS, make_spawn, stiff_system, tree_poses
from scipy.spatial.transform import Rotation

from musls_description.config.errors import ConfigError, MuslsError
from musls_description.hanging.tree import build_tree
from musls_description.system.system_files import load_system, system_names
from musls_description.writers import urdf
from musls_description.writers.urdf import roll_pitch_yaw

mujoco = pytest.importorskip("mujoco", reason="the second engine, MuJoCo, is not installed")
pytest.importorskip("xacro", reason="xacro, which makes URDF, is not installed")


@cache
def urdf_text(name):
    """Expanded once for all tests; xacro takes seconds."""
    return urdf.urdf_text(load_system(name))


def in_mujoco(text):
    """The model with all bodies kept, below a free load."""
    root = ElementTree.fromstring(text)
    ElementTree.SubElement(
        ElementTree.SubElement(root, "mujoco"), "compiler", fusestatic="false", discardvisual="true"
    )
    joint = ElementTree.SubElement(root, "joint", name="load/free", type="floating")
    ElementTree.SubElement(root, "link", name="world")
    ElementTree.SubElement(joint, "parent", link="world")
    ElementTree.SubElement(joint, "child", link="base_link")
    return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))


@pytest.mark.parametrize("name", system_names(slung=True))
def test_bodies_are_the_trees_at_any_angles(name):
    system = load_system(name)
    model = in_mujoco(urdf_text(name))
    data = mujoco.MjData(model)
    for kind in SPAWNS:
        spawn = make_spawn(system, kind)
        tree, poses, _ = tree_poses(system, spawn)
        quaternion = Rotation.from_matrix(poses[0][0]).as_quat(scalar_first=True)
        data.joint("load/free").qpos = [*poses[0][1], *quaternion]
        angles = iter(spawn.coordinates[6:])
        for body in tree.bodies[1:]:
            end = "/hook" if body.name.startswith("drone") else ""
            for axis in body.axes:
                data.joint(f"{body.name}{end}/{axis}").qpos = next(angles)
        mujoco.mj_kinematics(model, data)
        for body, (rotation, position) in zip(tree.bodies, poses, strict=True):
            there = data.body(body.name)
            assert np.allclose(there.xpos, position, rtol=0.0, atol=1e-9)
            assert np.allclose(there.xmat.reshape(3, 3), rotation, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("name", system_names(slung=True))
def test_masses_and_damping_are_the_trees(name):
    system = load_system(name)
    model = in_mujoco(urdf_text(name))
    assert model.body_mass.sum() == pytest.approx(system.mass_kg, rel=1e-7)
    for body in build_tree(system).bodies:
        there = model.body(body.name)
        assert there.mass[0] == pytest.approx(body.mass_kg, rel=1e-12)
        assert np.allclose(there.ipos, body.com_m, rtol=0.0, atol=1e-12)
        frame = Rotation.from_quat(there.iquat, scalar_first=True).as_matrix()
        inertia = frame @ np.diag(there.inertia) @ frame.T
        assert np.allclose(inertia, body.inertia_kg_m2, rtol=0.0, atol=1e-7 * inertia.max())
    turning = model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE
    damping = model.dof_damping[model.jnt_dofadr[turning]]
    expected = [
        b.axis_damping_n_m_s_rad(axis) for b in build_tree(system).bodies for axis in b.axes
    ]
    assert sorted(damping) == pytest.approx(sorted(expected))
    assert not model.jnt_limited[turning].any()


def test_a_robot_of_ones_own_can_use_the_macros(tmp_path):
    """The macros copied out, in a robot that the xacro program expands."""
    text = urdf.xacro_text(load_system("x500_solo"))
    end = text.rindex("</xacro:macro>") + len("</xacro:macro>")
    own = (
        '<link name="crane"/>'
        '<xacro:musls_cable name="rope" parent="crane" links="120" length_m="6.0" mass_kg="0.3" '
        'radius_m="0.004" damping_n_m_s_rad="0.001" twist="free">'
        '<origin xyz="0 0 2" rpy="0 1.5707963267948966 0"/></xacro:musls_cable></robot>'
    )
    path = tmp_path / "crane.urdf.xacro"
    path.write_text(text[:end] + own)
    code = "import xacro, sys; xacro.main()"
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    model = mujoco.MjModel.from_xml_string(run.stdout)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    assert model.nv == 241
    assert model.body_mass.sum() == pytest.approx(0.3, rel=1e-5)
    assert data.body("rope/link_120").xpos == pytest.approx([0.0, 0.0, 2.0 - 5.95], abs=1e-9)


def test_expanded_text_is_plain_urdf():
    text = urdf_text("x500_trio")
    assert "xacro" not in text and "$" not in text
    root = ElementTree.fromstring(text)
    children = [joint.find("child").get("link") for joint in root.findall("joint")]
    links = {link.get("name") for link in root.findall("link")}
    assert len(children) == len(set(children)) == len(links) - 1
    assert links - set(children) == {"base_link"}
    assert len(root.find("link[@name='base_link']")) == 0  # KDL takes no root with a mass


def test_angles_turn_back_into_the_rotation():
    for rotation in [
        *Rotation.random(50, random_state=1).as_matrix(),
        *(Rotation.from_euler("ZYX", [a, p, 0.4]).as_matrix() for a in (0, 2) for p in (1, -1)),
        *(
            Rotation.from_euler("ZYX", [a, s * math.pi / 2, 0.0]).as_matrix()
            for a in (0.0, 1.0, 3.0)
            for s in (1, -1)
        ),
    ]:
        again = Rotation.from_euler("xyz", roll_pitch_yaw(rotation)).as_matrix()
        assert np.allclose(again, rotation, rtol=0.0, atol=1e-14)


def test_springs_are_refused():
    with pytest.raises(ConfigError, match=r"cables\.0\.joint\.stiffness_n_m_rad = 0\.03"):
        urdf.xacro_text(stiff_system("x500_trio"))


def test_unsupported_joint_is_one_clear_line(monkeypatch):
    system = load_system("x500_trio")
    tree = build_tree(system)
    bodies = tuple(dataclasses.replace(b, axes="zx") for b in tree.bodies)
    tree = dataclasses.replace(tree, bodies=bodies)
    monkeypatch.setattr("musls_description.writers.urdf.build_tree", lambda _: tree)
    with pytest.raises(ConfigError, match=r"cable_1/link_01: no Xacro macro .*'zx'"):
        urdf.xacro_text(system)


def test_missing_xacro_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(MuslsError, match="pip install xacro"):
        urdf.urdf_text(load_system("x500_solo"))
