"""The tree at its spawn, written as links and joints that SDF has.

SDF has no joint angle at the start: a joint's zero is the pose in which the file puts its links.
The spawn configuration therefore goes into the link poses, and what stays true at any angle goes
into the axes: of a universal joint the first one is fixed in the parent, the second in the child.
Gazebo's physics reads both in the pose of the file, so a joint's angle in Gazebo is the
description's angle minus its value at the spawn; springs get their rest angle accordingly.

A joint about x, y and z (a cable that is free to twist) has no SDF type with damping: dartsim of
Gazebo Harmonic drops the damping of a ball joint. It becomes a revolute joint about x, a pivot of
a millionth of the next body's mass, and a universal joint about y and z.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_description.errors import ConfigError
from musls_description.spawn import Configuration
from musls_description.system import SlungLoadSystem
from musls_description.tree import STOP_RAD, Body, build_tree

Array = NDArray[np.float64]
Kind: TypeAlias = Literal["load", "cable", "drone"]
FixedIn: TypeAlias = Literal["parent", "child"]

PIVOT = "pivot"
PIVOT_SHARE = 1e-6
"""Mass and (round) inertia of a pivot over those of the body that it carries."""


@dataclass(frozen=True)
class Axis:
    """One axis of a joint.

    Attributes:
        xyz: Unit vector, (3,).
        fixed_in: Body in whose frame `xyz` is given and constant.
        rest_rad: Angle of the spring's rest, counted from the spawn.
        damping_n_m_s_rad: Viscous damping.
        stiffness_n_m_rad: Spring.
        friction_n_m: Coulomb friction torque.
        stops_rad: Lowest and highest angle, counted from the spawn.
    """

    xyz: Array
    fixed_in: FixedIn
    rest_rad: float
    damping_n_m_s_rad: float
    stiffness_n_m_rad: float
    friction_n_m: float
    stops_rad: tuple[float, float] = (-math.inf, math.inf)


@dataclass(frozen=True)
class Link:
    """One rigid body with the joint that holds it, posed as at the spawn.

    Attributes:
        model: "load", "cable_1", "x500_1", ...
        name: Name inside its model: "base_link", "link_01", "pivot".
        kind: What its model is.
        index: Index of the cable or drone; 0 for the load.
        parent: Index of the parent link, -1 for the load.
        rotation: Link frame in the parent's frame, (3, 3); in the world for the load.
        position_m: Its origin there, (3,).
        axes: Of its joint: one makes it revolute, two universal; none for the load.
        joint_position_m: Where the joint is, in this link's frame, (3,).
        mass_kg: Mass.
        com_m: Centre of mass, link frame, (3,).
        inertia_kg_m2: Inertia about it, link frame, (3, 3).
    """

    model: str
    name: str
    kind: Kind
    index: int
    parent: int
    rotation: Array
    position_m: Array
    axes: tuple[Axis, ...]
    joint_position_m: Array
    mass_kg: float
    com_m: Array
    inertia_kg_m2: Array

    @property
    def scoped_name(self) -> str:
        """Name as seen from the scope around the models."""
        return f"{self.model}::{self.name}"


def build_mechanism(system: SlungLoadSystem, spawn: Configuration) -> list[Link]:
    """Spell out a system at its spawn: the load, then cable by cable its links and its drone.

    Raises:
        ConfigError: A joint has axes that neither SDF nor this pivot can say.
    """
    tree = build_tree(system)
    load = tree.bodies[0]
    links = [
        Link(
            model="load",
            name="base_link",
            kind="load",
            index=0,
            parent=-1,
            rotation=np.asarray(spawn.load_rotation, float),
            position_m=np.asarray(spawn.load_position_enu_m, float),
            axes=(),
            joint_position_m=np.zeros(3),
            mass_kg=load.mass_kg,
            com_m=load.com_m,
            inertia_kg_m2=load.inertia_kg_m2,
        )
    ]
    for i, angles in enumerate(spawn.joint_angles_rad):
        first, drone = int(tree.first_link[i]), int(tree.drone[i])
        names = {k: (f"cable_{i + 1}", f"link_{k - first + 1:02d}") for k in range(first, drone)}
        names[drone] = (drone_name(system, i), "base_link")
        parent, used = 0, 0
        for k, name in names.items():
            body = tree.bodies[k]
            turns = angles[used : used + len(body.axes)]
            used += len(body.axes)
            frame, anchor = body.joint_in_parent_rotation, body.joint_in_parent_position_m
            if body.axes == "xyz":
                links.append(_pivot(body, i, parent, turns[0]))
                parent, frame, anchor = len(links) - 1, np.eye(3), np.zeros(3)
            elif body.axes != "yz":
                raise ConfigError(
                    f"{body.name}: a joint about the axes '{body.axes}' cannot be written as SDF "
                    "(only 'yz' and 'xyz' can)"
                )
            kind: Kind = "drone" if k == drone else "cable"
            links.append(_carried(body, (*name, kind, i), parent, (frame, anchor), turns[-2:]))
            parent = len(links) - 1
    return links


def _pivot(body: Body, index: int, parent: int, angle_rad: float) -> Link:
    """The body that turns about x between a parent and a body with three axes."""
    inertia = np.linalg.eigvalsh(body.inertia_kg_m2).max() * np.eye(3)
    return Link(
        model=f"cable_{index + 1}",
        name=PIVOT,
        kind="cable",
        index=index,
        parent=parent,
        rotation=body.joint_in_parent_rotation @ _turn("x", angle_rad),
        position_m=body.joint_in_parent_position_m,
        # A cable's spring resists bending, not turning about itself.
        axes=(_axis(body, "x", np.eye(3), "child", 0.0),),
        joint_position_m=np.zeros(3),
        mass_kg=PIVOT_SHARE * body.mass_kg,
        com_m=np.zeros(3),
        inertia_kg_m2=PIVOT_SHARE * inertia,
    )


def _carried(
    body: Body,
    identity: tuple[str, str, Kind, int],
    parent: int,
    joint_in_parent: tuple[Array, Array],
    turns_rad: Array,
) -> Link:
    """A body on a universal joint about y and z, given the joint's frame in the parent link."""
    frame, anchor = joint_in_parent
    in_child = body.joint_in_child_rotation
    rotation = frame @ _turn("y", turns_rad[0]) @ _turn("z", turns_rad[1]) @ in_child.T
    return Link(
        *identity,
        parent=parent,
        rotation=rotation,
        position_m=anchor - rotation @ body.joint_in_child_position_m,
        axes=(
            _axis(body, "y", frame, "parent", turns_rad[0]),
            _axis(body, "z", in_child, "child", turns_rad[1]),
        ),
        joint_position_m=body.joint_in_child_position_m,
        mass_kg=body.mass_kg,
        com_m=body.com_m,
        inertia_kg_m2=body.inertia_kg_m2,
    )


def _axis(body: Body, axis: str, frame: Array, fixed_in: FixedIn, angle_rad: float) -> Axis:
    return Axis(
        xyz=frame[:, "xyz".index(axis)],
        fixed_in=fixed_in,
        rest_rad=-angle_rad,
        damping_n_m_s_rad=body.damping_n_m_s_rad,
        stiffness_n_m_rad=0.0 if axis == "x" else body.stiffness_n_m_rad,
        friction_n_m=body.friction_n_m,
        stops_rad=_stops(angle_rad) if axis == body.axes[1] else (-math.inf, math.inf),
    )


def _stops(angle_rad: float) -> tuple[float, float]:
    """Stops of a second axis, counted from its angle at the spawn; a spawn beyond them is one."""
    return min(-STOP_RAD - angle_rad, 0.0), max(STOP_RAD - angle_rad, 0.0)


def _turn(axis: str, angle_rad: float) -> Array:
    return Rotation.from_euler(axis, angle_rad).as_matrix()


def drone_name(system: SlungLoadSystem, index: int) -> str:
    """Name of a drone's model: PX4 instance i looks for MODEL_i.

    Raises:
        ConfigError: The airframe's name cannot be part of a model's name.
    """
    model = system.drones[index].model
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", model) or model == "cable":
        raise ConfigError(
            f"drones.{index}.model = '{model}': a Gazebo model's name must consist of letters, "
            "digits, _ and -, and must not be 'cable'"
        )
    return f"{model}_{index + 1}"
