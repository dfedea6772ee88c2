"""How the frames at the ends of the cables are turned: those in which their forces are given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musls_description.rotations import from_matrix
from musls_sim.plants.interface import Linked, Plant

Array = NDArray[np.float64]

UPRIGHT = 1e-9
"""Horizontal share below which a segment has no heading."""


def end_turns(plant: Plant, nodes: Sequence[Array]) -> Array:
    """Orientation of the frames in which `PlantState.cable_force_n` is given.

    x runs along the end link or segment from end 1 (the load) to end 2 (the drone). Rigid links
    tell y and z; a segment of a cable without twist has y horizontal, left of its heading.

    Args:
        plant: Has the cables.
        nodes: Their nodes from end 1 to end 2, world, (nodes, 3) each.

    Returns:
        [w, x, y, z] of the frames at end 1 and 2 to the world, (n_cables, 2, 4).
    """
    if isinstance(plant, Linked):
        turns = np.array([plant.cable_end_rotations(i) for i in range(len(nodes))])
    else:
        turns = _of_segments(np.array([(n[1] - n[0], n[-1] - n[-2]) for n in nodes]))
    return from_matrix(turns).reshape(-1, 2, 4)


def _of_segments(along: Array) -> Array:
    """Rotation matrices of segments that run along vectors, (..., 3) to (..., 3, 3)."""
    length = np.linalg.norm(along, axis=-1, keepdims=True)
    up = np.array([0.0, 0.0, 1.0])
    x = np.where(length > 0.0, along / np.where(length > 0.0, length, 1.0), up)
    flat = np.hypot(x[..., 0], x[..., 1])
    upright = flat <= UPRIGHT
    scale = np.where(upright, 1.0, flat)
    cosine = np.where(upright, 1.0, x[..., 0] / scale)
    sine = np.where(upright, 0.0, x[..., 1] / scale)
    y = np.stack([-sine, cosine, np.zeros_like(sine)], axis=-1)
    turns: Array = np.stack([x, y, np.cross(x, y)], axis=-1)
    return turns
