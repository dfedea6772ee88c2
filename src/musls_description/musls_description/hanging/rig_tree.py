"""A rig as a tree of bodies: its loops are cut at ends of cables, and closed there.

As `tree`, but cables join any bodies. The tree grows from the load, cable by cable. A cable that
leads to a body that is there already, or to an anchor that does not move, would close a loop: its
chain hangs on one end, and the other end is a closing. All cables are free to twist.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from musls_description.config.errors import ConfigError
from musls_description.hanging.rig_places import KNOT_M
from musls_description.hanging.tree import (
    JOINT_IN_DRONE,
    WORLD,
    Closing,
    Tree,
    TreeBody,
    chain_link,
    joint_in_load,
)
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import matrix
from musls_description.system.drone import Drone
from musls_description.system.slung_system import Anchor, CableEnd, Load, RigSystem, body_names

JOINT_BELOW = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
"""Joint frame of a body that hangs below its cable, seen from it: x, along the cable, is its -z."""

KNOT_SQUARE = KNOT_M**2 / 6.0
"""Inertia over mass of a knot: of a cube of its size. It has no arms on which anything pulls."""


def build_rig_tree(system: RigSystem, held: Collection[int]) -> Tree:
    """Lay a rig out as a tree; `held`: numbers of the anchors that do not move, from 1.

    Raises:
        ConfigError: What chains of rigid links cannot be: a cable between anchors that do not move,
            one whose twist is locked; an anchor without inertia on which cables pull beside its
            centre of mass.
    """
    growing = _Growing(system, held)
    for name in growing.parts:
        if name not in growing.rows:
            growing.grow_from(name)
    return growing.tree()


class _Growing:
    """A tree while cables are added to it.

    Attributes:
        parts: Bodies that move, by name, as roots of a tree.
        rows: Indices of those that are in the tree, by name.
    """

    def __init__(self, system: RigSystem, held: Collection[int]) -> None:
        self._system = system
        self._fixed = {f"anchor_{i}" for i in held}
        self._ends = [system.ends(k) for k in range(system.n_cables)]
        share_kg = system.carried_mass_kg / max(system.n_drones, 1)
        self._cables = [cable.carrying(share_kg) for cable in system.cables]
        names = [name for name in body_names(system) if name not in self._fixed]
        self._check(names)
        self.parts = {name: self._root(name) for name in names}
        self.rows: dict[str, int] = {}
        self._bodies: list[TreeBody] = []
        self._closings: list[Closing] = []
        self._first_link = np.full(system.n_cables, -1)
        self._beyond = np.zeros(system.n_cables, np.int64)
        self._backwards = np.zeros(system.n_cables, np.int64)

    def _check(self, names: list[str]) -> None:
        """Refuse what no chain of rigid links is."""
        for k, (cable, pair) in enumerate(zip(self._cables, self._ends, strict=True), start=1):
            where = f"cable_model = rigid_links: cable_{k} of {self._system.name}"
            if not any(end.body in names for end in pair):
                raise ConfigError(
                    f"{where} joins two anchors that do not move; choose cable_model: elastic"
                )
            if cable.twist == "locked" or cable.joint.stiffness_n_m_rad:
                key = "twist: locked" if cable.twist == "locked" else "joint.stiffness_n_m_rad"
                raise ConfigError(
                    f"{where} has {key}; joints of rigid links of a rig turn freely: leave it out"
                )
            for end in pair:
                if not end.body.startswith("anchor") or end.body in self._fixed:
                    continue
                anchor = self._system.anchors[int(end.body.removeprefix("anchor_")) - 1]
                if anchor.inertia_kg_m2 is None and any(end.point_m):
                    raise ConfigError(
                        f"{where} pulls beside the centre of {end.body}, which has no inertia; "
                        "give it inertia_kg_m2, or choose cable_model: elastic or massless"
                    )

    def _root(self, name: str) -> TreeBody:
        """A body that hangs on nothing."""
        system = self._system
        number = int(name.partition("_")[2] or 1) - 1
        part: Load | Drone | Anchor
        if name == "load":
            assert system.load is not None
            part = system.load
        else:
            part = (system.drones if name.startswith("drone") else system.anchors)[number]
        mass_kg = part.mass_kg or 0.0
        inertia = part.inertia_kg_m2
        about = KNOT_SQUARE * mass_kg * np.eye(3) if inertia is None else np.array(inertia)
        joint = (np.eye(3), np.zeros(3))
        return TreeBody(name, -1, *joint, *joint, mass_kg, np.zeros(3), about, axes="")

    def grow_from(self, root: str) -> None:
        """Add a body and all that hangs together with it."""
        self.rows[root] = len(self._bodies)
        self._bodies.append(self.parts[root])
        waiting = [root]
        while waiting:
            here = waiting.pop(0)
            for k, pair in enumerate(self._ends):
                if self._first_link[k] >= 0 or here not in (pair[0].body, pair[1].body):
                    continue
                beyond = self._add_cable(k, backwards=pair[0].body != here)
                waiting += [beyond] if beyond else []

    def _add_cable(self, k: int, *, backwards: bool) -> str:
        """Hang a cable on a body of the tree; name of the body that hangs on it, or ""."""
        cable = self._cables[k]
        near, far = self._ends[k][:: -1 if backwards else 1]
        self._backwards[k] = backwards
        self._first_link[k] = len(self._bodies)
        parent = self.rows[near.body]
        place = np.array(near.point_m, float)
        frame = joint_in_load(0.0)
        for j in range(cable.links):
            name = f"cable_{k + 1}/link_{j + 1:02d}"
            self._bodies.append(chain_link(name, parent, frame, place, cable, j == 0))
            parent = len(self._bodies) - 1
            place = np.array([cable.link_length_m, 0.0, 0.0])
            frame = np.eye(3)
        if far.body in self._fixed or far.body in self.rows:
            self._beyond[k] = -1 - len(self._closings)
            self._closings.append(self._closing(parent, place, far))
            return ""
        self._beyond[k] = self.rows[far.body] = len(self._bodies)
        hanging = replace(
            self.parts[far.body],
            parent=parent,
            joint_in_parent_position_m=place,
            joint_in_child_rotation=JOINT_IN_DRONE if self._is_above(far.body) else JOINT_BELOW,
            joint_in_child_position_m=np.array(far.point_m, float),
            damping_n_m_s_rad=cable.joint_damping_n_m_s_rad,
            friction_n_m=cable.joint.friction_n_m,
            axes="yz",
        )
        self._bodies.append(hanging)
        return far.body

    def _closing(self, link: int, point_m: Array, far: CableEnd) -> Closing:
        """The end of a chain on a body that is in the tree, or does not move."""
        place = np.array(far.point_m, float)
        if far.body in self._fixed:
            anchor = self._system.anchors[int(far.body.removeprefix("anchor_")) - 1]
            turn = matrix(np.array(anchor.orientation_wxyz, float))
            place = np.array(anchor.position_enu_m) + turn @ place
        return Closing(link, point_m, self.rows.get(far.body, WORLD), place)

    def _is_above(self, name: str) -> bool:
        """Whether a body holds what it hangs on here: it is a drone, or leads to one."""
        reached = {name}
        waiting = [name]
        while waiting:
            here = waiting.pop()
            if here.startswith("drone") or here in self._fixed:
                return True
            for pair in self._ends:
                ends = [end.body for end in pair]
                if here in ends:
                    other = ends[1 - ends.index(here)]
                    if other not in self.rows and other not in reached:
                        reached.add(other)
                        waiting.append(other)
        return False

    def tree(self) -> Tree:
        """The tree of all that was added."""
        system = self._system
        drones = [self.rows[f"drone_{i + 1}"] for i in range(system.n_drones)]
        anchors = [self.rows.get(f"anchor_{i + 1}", WORLD) for i in range(len(system.anchors))]
        return Tree(
            tuple(self._bodies),
            self._first_link.astype(np.int64),
            np.array(drones, np.int64),
            self._beyond,
            self._backwards,
            np.array(anchors, np.int64),
            tuple(self._closings),
        )
