"""Array types of annotations, whose shapes and units stand in the docstrings; rigid bodies."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Records = NDArray[np.void]


def cross_matrix(v: Array) -> Array:
    """Matrix of the cross product with a vector, (3, 3)."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def grasp_matrix(arms: Array) -> Array:
    """Force and moment on a body by forces (n, 3) that pull at arms (n, 3): matrix (6, 3 n)."""
    moments = np.hstack([cross_matrix(arm) for arm in arms])
    return np.vstack([np.tile(np.eye(3), len(arms)), moments])


def point_inertia(arm: Array) -> Array:
    """Inertia of a unit mass at the end of an arm (parallel axis theorem), (3, 3) [m2]."""
    return arm @ arm * np.eye(3) - np.outer(arm, arm)


def joined(
    mass_kg: ArrayLike, inertia_kg_m2: ArrayLike, place_m: Array
) -> tuple[float, Array, Array]:
    """Join bodies to one, given in common axes: mass, inertia and places seen from its centre.

    Masses are (n,), inertias about their own centres (n, 3, 3), places of these (n, 3).
    """
    mass = np.asarray(mass_kg, np.float64)
    place = place_m - mass @ place_m / mass.sum()
    shifted = np.array([m * point_inertia(arm) for m, arm in zip(mass, place, strict=True)])
    return float(mass.sum()), np.sum(np.asarray(inertia_kg_m2) + shifted, axis=0), place
