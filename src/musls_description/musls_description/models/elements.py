"""SDF elements that load, cables and drones share."""

from __future__ import annotations

from math import isfinite
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from musls_description.drone import Box
from musls_description.models.mechanism import Link
from musls_description.models.xml_text import add, add_all, numbers

Array = NDArray[np.float64]


def add_pose(parent: Element, position_m: Array, rotation: Array, relative_to: str = "") -> None:
    """Add a pose, its rotation as a quaternion x, y, z, w.

    The Euler angles of a link that points straight up would not be unique.
    """
    quaternion = Rotation.from_matrix(rotation).as_quat(canonical=True)
    frame = {"relative_to": relative_to} if relative_to else {}
    add(parent, "pose", numbers(position_m, quaternion), rotation_format="quat_xyzw", **frame)


def add_inertial(link: Element, mass_kg: float, com_m: Array, inertia_kg_m2: Array) -> None:
    """Add mass, centre of mass and the inertia about it."""
    inertial = add(link, "inertial")
    if np.any(com_m):
        add(inertial, "pose", numbers(com_m, np.zeros(3)))
    add(inertial, "mass", mass_kg)
    inertia = add(inertial, "inertia")
    for i, row in enumerate("xyz"):
        for j in range(i, 3):
            add(inertia, f"i{row}{'xyz'[j]}", inertia_kg_m2[i, j])


def add_contact_box(link: Element, box: Box, friction: float) -> None:
    """Add the box that touches the ground."""
    collision = add(link, "collision", name="contact")
    add(collision, "pose", numbers(box.center_m, np.zeros(3)))
    add(add(add(collision, "geometry"), "box"), "size", numbers(box.size_m))
    add_friction(collision, friction)


def add_friction(collision: Element, coefficient: float) -> None:
    """Add Coulomb friction, equal in both directions."""
    friction = add(add(add(collision, "surface"), "friction"), "ode")
    add_all(friction, mu=coefficient, mu2=coefficient)


def add_visual(
    link: Element, name: str, position_m: ArrayLike, colour: str, *, along_x: bool = False
) -> Element:
    """Add a visual shape.

    Args:
        link: Link that it is added to.
        name: Name, unique in the link.
        position_m: Centre in the link, (3,).
        colour: Red, green and blue, each from 0 to 1.
        along_x: Lay the shape's z axis along the link's x axis.

    Returns:
        The geometry, to be filled.
    """
    visual = add(link, "visual", name=name)
    add(visual, "pose", numbers(position_m, [0.0, np.pi / 2.0 if along_x else 0.0, 0.0]))
    geometry = add(visual, "geometry")
    add_all(add(visual, "material"), ambient=f"{colour} 1", diffuse=f"{colour} 1")
    return geometry


def add_joint(scope: Element, name: str, parent: str, child: str, link: Link) -> None:
    """Add the joint that holds a link.

    Args:
        scope: Model or world.
        name: Of the joint, unique in the scope.
        parent: The parent link's name as seen from the scope.
        child: This link's.
        link: The link; it has one axis (revolute joint) or two (universal).
    """
    kind = {1: "revolute", 2: "universal"}[len(link.axes)]
    joint = add(scope, "joint", name=name, type=kind)
    if np.any(link.joint_position_m):
        add(joint, "pose", numbers(link.joint_position_m, np.zeros(3)))
    add_all(joint, parent=parent, child=child)
    for tag, axis in zip(("axis", "axis2"), link.axes, strict=False):
        element = add(joint, tag)
        frame = parent if axis.fixed_in == "parent" else child
        add(element, "xyz", numbers(axis.xyz), expressed_in=frame)
        if any(map(isfinite, axis.stops_rad)):
            lower, upper = axis.stops_rad
            add_all(add(element, "limit"), lower=lower, upper=upper)
        dynamics = add(element, "dynamics")
        add_all(dynamics, damping=axis.damping_n_m_s_rad, friction=axis.friction_n_m)
        if axis.stiffness_n_m_rad:
            add_all(
                dynamics,
                spring_reference=axis.rest_rad,
                spring_stiffness=axis.stiffness_n_m_rad,
            )
