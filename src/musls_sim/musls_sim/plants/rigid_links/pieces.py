"""Joints that open and hooks that close: the tree of bodies falls into pieces and is joined again.

The first body of a loose piece has a free joint, as the load does. All velocities stay when a joint
opens, so momentum and energy do. A hook that closes is an inelastic impact: the new velocities have
the old momenta along every coordinate that is left, so that the momentum of the whole stays and
energy is only lost (the nearest motion in the metric of the kinetic energy).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from musls_description.rotations import (
    from_matrix,
    from_rotation_vector,
    intrinsic_xyz,
    product,
    rotation_vector,
)
from musls_description.tree import QUARTER_TURN, Body, Tree
from musls_sim.plants.rigid_links.multibody import (
    MOTION_COLUMNS,
    body_motion,
    joint_space_inertia,
    joint_table,
    motion_axes,
    parent_coordinates,
)
from musls_sim.plants.rigid_links.rows import OMEGA, POSITION, VELOCITY

Array = NDArray[np.float64]


STIFF_M2 = 0.005
"""What turning joints costs when a hook is drawn into its place, over the mass of the piece: one
that turns by 0.3 rad as much as the whole that moves by 2 cm. A straight chain cannot be drawn
along itself by small turns; it moves then, drone and all, by no more than the hook's way."""


@dataclass(frozen=True)
class Pieces:
    """A tree in one piece or several, and how it moves.

    Attributes:
        tree: The bodies; those with parent -1 are the first of their pieces.
        positions: Coordinates, (n_dofs,).
        velocities: Their rates, (n_dofs,).
    """

    tree: Tree
    positions: Array
    velocities: Array

    @property
    def motion(self) -> Array:
        """Motion of all bodies, see `kinematics.body_motion`, (n_bodies, 27)."""
        tree = self.tree
        motion = np.zeros((len(tree.bodies), MOTION_COLUMNS))
        body_motion(
            self.positions, self.velocities, parents(tree), firsts(tree), joint_table(tree), motion
        )
        return motion

    def inertia(self, masses: Array) -> Array:
        """Joint-space inertia matrix, (n_dofs, n_dofs)."""
        tree = self.tree
        tables = self.motion, parents(tree), firsts(tree), joint_table(tree), masses
        extra = np.zeros(tree.n_coordinates)
        inertia: Array = joint_space_inertia(*tables, parent_coordinates(tree), extra)
        return inertia


def parents(tree: Tree) -> NDArray[np.int64]:
    """Parent of each body, (n_bodies,)."""
    return np.array([body.parent for body in tree.bodies])


def firsts(tree: Tree) -> NDArray[np.int64]:
    """First coordinate of each body, then their number, (n_bodies + 1,)."""
    return np.append(tree.first_coordinate, tree.n_coordinates)


def opened(pieces: Pieces, body: int) -> Pieces:
    """Open the closed joint of a body, which becomes the first of a piece; nothing else moves."""
    old, m = pieces.tree.bodies[body], pieces.motion[body]
    loose = Body(
        old.name, -1, np.eye(3), np.zeros(3), np.eye(3), np.zeros(3),
        old.mass_kg, old.com_m, old.inertia_kg_m2, axes="",
    )  # fmt: skip
    turn = rotation_vector(from_matrix(m[:9].reshape(3, 3)))
    place = np.concatenate([turn, m[POSITION : POSITION + 3]])
    rate = np.concatenate([m[OMEGA : OMEGA + 3], m[VELOCITY : VELOCITY + 3]])
    return _with(pieces, body, loose, place, rate)


def closed(pieces: Pieces, body: int, original: Body, masses: Array) -> Pieces:
    """Close the hook of a cable's first link on the load, see the module.

    The link's end is drawn into the hook first, along the way that moves the least mass; the rest
    of its piece follows. The hook turns freely about three axes.

    The body is the first of a piece and hung on the load as `original` in the beginning. Masses
    as they are now, from `inertia.mass_table`, (n_bodies, 13).
    """
    joint = original.joint_in_parent_rotation @ original.joint_in_child_rotation.T
    hook = replace(
        original,
        axes="xyz",
        joint_in_parent_rotation=joint @ QUARTER_TURN,
        joint_in_child_rotation=QUARTER_TURN,
    )
    before = pieces.motion
    load = before[0, :9].reshape(3, 3)
    place = before[0, POSITION : POSITION + 3] + load @ original.joint_in_parent_position_m
    drawn = _drawn(pieces, body, place, masses)
    link = drawn.motion[body, :9].reshape(3, 3)
    relative = hook.joint_in_parent_rotation.T @ load.T @ link @ hook.joint_in_child_rotation
    angles = intrinsic_xyz(relative)
    joined = _with(drawn, body, hook, angles, np.zeros(3))
    kept = momenta(before, masses, drawn.motion)
    return replace(joined, velocities=_projected(joined, kept, masses))


def momenta(motion: Array, masses: Array, places: Array | None = None) -> Array:
    """Angular momentum about the world's origin and momentum of each body, (n_bodies, 6).

    From the motion of `kinematics.body_motion`, (n_bodies, 27), and `inertia.mass_table`,
    (n_bodies, 13). `places` is motion with other places of the bodies, to which they take their
    velocities and spins along.
    """
    result = np.empty((len(motion), 6))
    for row, m, at, mass in zip(
        result, motion, motion if places is None else places, masses, strict=True
    ):
        turn, omega = m[:9].reshape(3, 3), m[OMEGA : OMEGA + 3]
        spin = turn @ mass[4:].reshape(3, 3) @ turn.T @ omega
        row[3:] = mass[0] * (m[VELOCITY : VELOCITY + 3] + np.cross(omega, turn @ mass[1:4]))
        centre = at[POSITION : POSITION + 3] + at[:9].reshape(3, 3) @ mass[1:4]
        row[:3] = spin + np.cross(centre, row[3:])
    return result


def _with(pieces: Pieces, body: int, joint: Body, place: Array, rate: Array) -> Pieces:
    """The same with another joint of a body, and its coordinates and rates."""
    first, size = pieces.tree.first_coordinate[body], pieces.tree.bodies[body].freedom
    bodies = list(pieces.tree.bodies)
    bodies[body] = joint
    q, dq = pieces.positions, pieces.velocities
    return Pieces(
        replace(pieces.tree, bodies=tuple(bodies)),
        np.concatenate([q[:first], place, q[first + size :]]),
        np.concatenate([dq[:first], rate, dq[first + size :]]),
    )


def _drawn(pieces: Pieces, body: int, place: Array, masses: Array) -> Pieces:
    """Move the origin of a piece's first body to a place, the rest by least mass times way."""
    tree = pieces.tree
    first = tree.first_coordinate
    last = body + 1
    while last < len(tree.bodies) and tree.bodies[last].parent >= body:
        last += 1
    begin, end = int(first[body]), int(firsts(tree)[last])
    inertia = pieces.inertia(masses)[begin:end, begin:end]
    joints = np.arange(6, end - begin)
    inertia[joints, joints] += STIFF_M2 * masses[body:last, 0].sum()
    way = place - pieces.positions[begin + 3 : begin + 6]
    given = np.zeros(end - begin, bool)
    given[3:6] = True
    moved = np.zeros(end - begin)
    moved[given] = way
    moved[~given] = np.linalg.solve(inertia[~given][:, ~given], -inertia[~given][:, given] @ way)
    positions = pieces.positions.copy()
    turn = product(
        from_rotation_vector(moved[:3]), from_rotation_vector(positions[begin : begin + 3])
    )
    positions[begin:end] += moved
    positions[begin : begin + 3] = rotation_vector(turn)
    positions[begin + 3 : begin + 6] = place
    return replace(pieces, positions=positions)


def _projected(joined: Pieces, beyond: Array, masses: Array) -> Array:
    """Rates of the joined tree with the momenta of all bodies before, (n_dofs,)."""
    tree = joined.tree
    first, above = firsts(tree), parents(tree)
    axes = motion_axes(joined.motion, above, first, joint_table(tree))
    right = np.empty(tree.n_coordinates)
    for k in range(len(tree.bodies) - 1, -1, -1):
        right[first[k] : first[k + 1]] = axes[first[k] : first[k + 1]] @ beyond[k]
        if above[k] >= 0:
            beyond[above[k]] += beyond[k]
    rates: Array = np.asarray(np.linalg.solve(joined.inertia(masses), right), np.float64)
    return rates
