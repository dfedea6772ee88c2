"""Joints that open and hooks that close: the tree of bodies falls into pieces and is joined again.

The first body of a loose piece has a free joint, as the load does. All velocities stay when a joint
opens, so momentum and energy do. A hook that closes is an inelastic impact: the new velocities have
the old momenta along every coordinate that is left, so that the momentum of the whole stays and
energy is only lost (the nearest motion in the metric of the kinetic energy).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from musls_description.hanging.tree import QUARTER_TURN, Tree, TreeBody
from musls_description.numerics.arrays import Array
from musls_description.numerics.layout import Tables
from musls_description.numerics.rotations import (
    from_matrix,
    from_rotation_vector,
    product,
    rotation_vector,
)
from musls_sim.plants.rigid_links.mechanism import joint_space_inertia, of_centres

STIFF_M2 = 0.005
"""Cost of turning joints when a hook is drawn into its place, over the mass of the piece: one
that turns by 0.3 rad as much as the whole that moves by 2 cm. A straight chain cannot be drawn
along itself by small turns; it moves then, drone and all, by no more than the hook's way."""


@dataclass(frozen=True)
class Pieces:
    """A tree in one piece or several, and how it moves.

    Attributes:
        tree: The bodies; those with parent -1 are the first of their pieces.
        positions: Coordinates, of even joints their own, see `mechanism`, (n_dofs,).
        velocities: Rates of the coordinates, (n_dofs,).
    """

    tree: Tree
    positions: Array
    velocities: Array


Placed = Callable[[Pieces], Tables]
"""Gives the records of pieces, all bodies placed and moved."""


def opened(pieces: Pieces, body: int, records: Tables) -> Pieces:
    """Open the closed joint of a body, which becomes the first of a piece; nothing else moves."""
    old = pieces.tree.bodies[body]
    m = records.bodies[body]
    loose = TreeBody(
        old.name,
        -1,
        np.eye(3),
        np.zeros(3),
        np.eye(3),
        np.zeros(3),
        old.mass_kg,
        old.com_m,
        old.inertia_kg_m2,
        axes="",
    )
    place = np.concatenate([rotation_vector(from_matrix(m["rotation"])), m["position"]])
    return _with(pieces, body, loose, place, np.concatenate([m["omega"], m["velocity"]]))


def closed(pieces: Pieces, body: int, original: TreeBody, placed: Placed) -> Pieces:
    """Close the hook of a cable's first link on the load, see the module.

    The link's end is drawn into the hook first, along the way that moves the least mass; the rest
    of its piece follows. The hook turns freely about three axes.

    The body is the first of a piece and hung on the load as `original` in the beginning.
    """
    joint = original.joint_in_parent_rotation @ original.joint_in_child_rotation.T
    hook = replace(
        original,
        axes="xyz",
        joint_in_parent_rotation=joint @ QUARTER_TURN,
        joint_in_child_rotation=QUARTER_TURN,
    )
    before = placed(pieces)
    centre, inertia = of_centres(before)
    momenta = np.einsum("kij,kja,a->ki", inertia, centre, pieces.velocities, optimize=True)
    load = before.bodies[0]
    place = load["position"] + load["rotation"] @ original.joint_in_parent_position_m
    at_hook = _drawn(pieces, body, place, before)
    turn = load["rotation"].T @ placed(at_hook).bodies[body]["rotation"]
    relative = hook.joint_in_parent_rotation.T @ turn @ hook.joint_in_child_rotation
    result = _with(at_hook, body, hook, rotation_vector(from_matrix(relative)), np.zeros(3))
    after = placed(result)
    right = np.einsum("kia,ki->a", of_centres(after)[0], momenta)
    rates = np.asarray(np.linalg.solve(joint_space_inertia(after), right), np.float64)
    return replace(result, velocities=rates)


def _with(pieces: Pieces, body: int, joint: TreeBody, place: Array, rate: Array) -> Pieces:
    """Pieces with another joint of a body, and its coordinates and rates."""
    first = pieces.tree.first_coordinate[body]
    size = pieces.tree.bodies[body].freedom
    bodies = list(pieces.tree.bodies)
    bodies[body] = joint
    q = pieces.positions
    dq = pieces.velocities
    return Pieces(
        replace(pieces.tree, bodies=tuple(bodies)),
        np.concatenate([q[:first], place, q[first + size :]]),
        np.concatenate([dq[:first], rate, dq[first + size :]]),
    )


def _drawn(pieces: Pieces, body: int, place: Array, records: Tables) -> Pieces:
    """Move the origin of a piece's first body to a place, the rest by least mass times way."""
    tree = pieces.tree
    first = np.append(tree.first_coordinate, tree.n_coordinates)
    last = body + 1
    while last < len(tree.bodies) and tree.bodies[last].parent >= body:
        last += 1
    begin, end = int(first[body]), int(first[last])
    inertia = joint_space_inertia(records)[begin:end, begin:end]
    joints = np.arange(6, end - begin)
    inertia[joints, joints] += STIFF_M2 * records.bodies["mass"][body:last].sum()
    way = place - pieces.positions[begin + 3 : begin + 6]
    mask = np.zeros(end - begin, bool)
    mask[3:6] = True
    shift = np.zeros(end - begin)
    shift[mask] = way
    shift[~mask] = np.linalg.solve(inertia[~mask][:, ~mask], -inertia[~mask][:, mask] @ way)
    positions = pieces.positions.copy()
    turn = product(
        from_rotation_vector(shift[:3]), from_rotation_vector(positions[begin : begin + 3])
    )
    positions[begin:end] += shift
    positions[begin : begin + 3] = rotation_vector(turn)
    positions[begin + 3 : begin + 6] = place
    return replace(pieces, positions=positions)
