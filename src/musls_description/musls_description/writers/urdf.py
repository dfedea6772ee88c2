"""Xacro and URDF text of a system, for your own robots and for ROS tools.

The macros of `parts/cable.xacro` stand first, so that they can be copied out; the system that
follows uses them. Link names are the frames of a recording (`load`, `cable_1/link_01`, `drone_1`).
URDF holds a mechanism at zero joint angles: cables stand straight up; its angles are those of the
description's configurations.
"""

from __future__ import annotations

import math
from xml.dom import minidom
from xml.etree import ElementTree

import numpy as np

from musls_description.config.errors import ConfigError, MuslsError
from musls_description.hanging.tree import Tree, TreeBody, build_tree
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import SlungLoadSystem
from musls_description.writers.sdf import PARTS, numbers, parse, template, to_text


def xacro_text(system: SlungLoadSystem) -> str:
    """Macros of the cable, then the whole system made with them."""
    tree = build_tree(system)
    for i, cable in enumerate(system.cables):
        if cable.joint.stiffness_n_m_rad:
            raise ConfigError(
                f"cables.{i}.joint.stiffness_n_m_rad = {cable.joint.stiffness_n_m_rad:g}: URDF "
                "has no joint springs; set it to 0 or write SDF"
            )
        for body, axes in ((tree.first_link[i], TWISTS), (tree.drone[i], ["yz"])):
            if tree.bodies[body].axes not in axes:
                raise ConfigError(
                    f"{tree.bodies[body].name}: no Xacro macro has a joint about the axes "
                    f"'{tree.bodies[body].axes}'"
                )
    ElementTree.register_namespace("xacro", "http://www.ros.org/wiki/xacro")
    root = parse((PARTS / "cable.xacro").read_text(encoding="utf-8"))
    root.set("name", system.name)
    filled = template("system.xacro.j2").render(
        system=system, tree=tree, twists=TWISTS, n=numbers, roll_pitch_yaw=_joint_angles
    )
    root.extend(parse(filled))
    return to_text(root, f"{system.name}: {system.description}.")


TWISTS = {"yz": "locked", "xyz": "free"}
"""Names of the axes of the joint at the load in the macro of a cable."""


def _joint_angles(body: TreeBody) -> Array:
    """Roll, pitch, yaw of a link in its parent at joint angle zero."""
    return roll_pitch_yaw(body.joint_in_parent_rotation @ body.joint_in_child_rotation.T)


def urdf_text(system: SlungLoadSystem) -> str:
    """The system as plain URDF: what `xacro` makes of `xacro_text`."""
    try:
        import xacro
    except ImportError:
        raise MuslsError(
            "URDF is made by xacro, which is not installed: pip install xacro"
        ) from None
    document = minidom.parseString(xacro_text(system))
    xacro.process_doc(document)
    root = ElementTree.fromstring(document.toxml())
    return to_text(root, f"{system.name}: {system.description}.")


def joint_coordinates(tree: Tree) -> dict[str, int]:
    """Coordinate of the tree for each moving joint of its URDF, by the joint's name.

    Bodies that have come loose hang on no joint and are left out.
    """
    coordinates: dict[str, int] = {}
    for body, first in zip(tree.bodies, tree.first_coordinate.tolist(), strict=True):
        name = f"{body.name}/hook" if body.name.startswith("drone") else body.name
        coordinates |= {f"{name}/{axis}": first + k for k, axis in enumerate(body.axes)}
    return coordinates


def roll_pitch_yaw(rotation: Array) -> Array:
    """Angles of Rz(yaw) Ry(pitch) Rx(roll), also where the pitch is +-90 degrees, (3,) [rad]."""
    rotation = rotation + 0.0  # no -0, which would turn an angle of 180 degrees into -180
    level = math.hypot(rotation[0, 0], rotation[1, 0])
    pitch = math.atan2(-rotation[2, 0], level)
    if level < 1e-9:
        return np.array([0.0, pitch, math.atan2(-rotation[0, 1], rotation[1, 1])])
    roll = math.atan2(rotation[2, 1], rotation[2, 2])
    return np.array([roll, pitch, math.atan2(rotation[1, 0], rotation[0, 0])])
