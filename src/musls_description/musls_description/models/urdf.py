"""Xacro and URDF text of a system, for robots of one's own and for ROS tools.

The macros of `parts/cable.xacro` stand first, so that they can be copied out; the system that
follows uses them. Link names are the frames of a recording (`load`, `cable_1/link_01`, `drone_1`).
URDF holds a mechanism at zero joint angles: cables stand straight up; its angles are those of the
description's configurations.
"""

from __future__ import annotations

import math
from collections.abc import Container
from xml.dom import minidom
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from musls_description.drone import Box
from musls_description.errors import ConfigError, MuslsError
from musls_description.models.xml_text import add, number, numbers, read_part, to_text
from musls_description.system import Cable, SlungLoadSystem
from musls_description.tree import Body, Tree, build_tree

Array = NDArray[np.float64]

XACRO = "http://www.ros.org/wiki/xacro"


def xacro_text(system: SlungLoadSystem) -> str:
    """Macros of the cable, then the whole system made with them.

    Raises:
        ConfigError: The cables' joints have springs, which URDF does not have, or a joint that the
            macros do not have.
    """
    ElementTree.register_namespace("xacro", XACRO)
    root = read_part("cable.xacro")
    root.set("name", system.name)
    tree = build_tree(system)
    _add_body(root, tree.bodies[0], system.load.collision)
    for i, (cable, drone) in enumerate(zip(system.cables, system.drones, strict=True)):
        if cable.joint.stiffness_n_m_rad:
            raise ConfigError(
                f"cables.{i}.joint.stiffness_n_m_rad = {cable.joint.stiffness_n_m_rad:g}: URDF "
                "has no joint springs; set it to 0 or write SDF"
            )
        first, end = tree.bodies[tree.first_link[i]], tree.bodies[tree.drone[i]]
        _add_cable(root, f"cable_{i + 1}", cable, first)
        _add_body(root, end, drone.collision)
        _add_cable_end(root, f"cable_{i + 1}", cable, end)
    return to_text(root, f"{system.name}: {system.description}.")


def urdf_text(system: SlungLoadSystem) -> str:
    """The system as plain URDF: what `xacro` makes of `xacro_text`.

    Raises:
        ConfigError: As `xacro_text`.
        MuslsError: The package xacro is not installed.
    """
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
    """Which coordinate of a tree each moving joint of its URDF shows, by the joint's name.

    Bodies that have come loose hang on no joint and are left out.
    """
    found: dict[str, int] = {}
    for body, first in zip(tree.bodies, tree.first_coordinate.tolist(), strict=True):
        name = f"{body.name}/hook" if body.name.startswith("drone") else body.name
        found |= {f"{name}/{axis}": first + k for k, axis in enumerate(body.axes)}
    return found


def roll_pitch_yaw(rotation: Array) -> Array:
    """Angles of Rz(yaw) Ry(pitch) Rx(roll), also where the pitch is +-90 degrees, (3,) [rad]."""
    rotation = rotation + 0.0  # no -0, which would turn an angle of 180 degrees into -180
    level = math.hypot(rotation[0, 0], rotation[1, 0])
    pitch = math.atan2(-rotation[2, 0], level)
    if level < 1e-9:
        return np.array([0.0, pitch, math.atan2(-rotation[0, 1], rotation[1, 1])])
    roll = math.atan2(rotation[2, 1], rotation[2, 2])
    return np.array([roll, pitch, math.atan2(rotation[1, 0], rotation[0, 0])])


def _add_body(root: Element, body: Body, box: Box) -> None:
    """Add the load or a drone with its box."""
    link = add(root, "link", name=body.name)
    inertial = add(link, "inertial")
    add(inertial, "mass", value=number(body.mass_kg))
    moments = {
        f"i{row}{column}": number(body.inertia_kg_m2[i, j])
        for i, row in enumerate("xyz")
        for j, column in enumerate("xyz")
        if i <= j
    }
    add(inertial, "inertia", **moments)
    for kind in ("visual", "collision"):
        element = add(link, kind)
        add(element, "origin", xyz=numbers(box.center_m))
        add(add(element, "geometry"), "box", size=numbers(box.size_m))


def _add_cable(root: Element, name: str, cable: Cable, first: Body) -> None:
    twist = {"yz": "locked", "xyz": "free"}
    macro = add(
        root,
        f"{{{XACRO}}}musls_cable",
        name=name,
        parent="load",
        twist=twist[_known(first, twist)],
        **_cable_values(cable),
    )
    # The link's frame at zero angles is the joint's in the parent, seen from the joint's in it.
    rotation = first.joint_in_parent_rotation @ first.joint_in_child_rotation.T
    place = numbers(first.joint_in_parent_position_m)
    add(macro, "origin", xyz=place, rpy=numbers(roll_pitch_yaw(rotation)))


def _add_cable_end(root: Element, name: str, cable: Cable, end: Body) -> None:
    _known(end, ["yz"])
    rotation = end.joint_in_parent_rotation @ end.joint_in_child_rotation.T
    add(
        root,
        f"{{{XACRO}}}musls_cable_end",
        cable=name,
        child=end.name,
        hook_xyz=numbers(end.joint_in_child_position_m),
        rpy=numbers(roll_pitch_yaw(rotation)),
        first=numbers(end.joint_in_child_rotation[:, 1]),
        second=numbers(end.joint_in_child_rotation[:, 2]),
        **_cable_values(cable),
    )


def _known(body: Body, axes: Container[str]) -> str:
    if body.axes not in axes:
        raise ConfigError(f"{body.name}: no Xacro macro has a joint about the axes '{body.axes}'")
    return body.axes


def _cable_values(cable: Cable) -> dict[str, str]:
    return {
        "links": str(cable.links),
        "length_m": number(cable.length_m),
        "mass_kg": number(cable.mass_kg),
        "radius_m": number(cable.radius_m),
        "damping_n_m_s_rad": number(cable.joint_damping_n_m_s_rad),
        "friction_n_m": number(cable.joint.friction_n_m),
    }
