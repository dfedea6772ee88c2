"""Start shapes: equilibrium of the discrete elastic cable.

With lumps of half a segment's mass at the ends, segment j (from 0) of a cable that pulls with F at
its lower end carries F + (j + 1/2) m g along its own direction, m the mass of a segment: the
polygon is known exactly once F is, each segment longer by the strain of its tension.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, least_squares

from musls_description.errors import ConfigError

Array = NDArray[np.float64]
Strain = Callable[[float], float]


def linear_strain(ea_n: float) -> Strain:
    """Strain of a tension for a constant stiffness."""
    return lambda tension: tension / ea_n


def table_strain(force: Callable[[float], float], limit: float = 10.0) -> Strain:
    """Strain of a tension for a monotone law that gives the force of a strain."""
    return lambda tension: float(brentq(lambda e: force(e) - tension, 0.0, limit, xtol=1e-15))


def hanging_nodes(
    force_n: Array,
    segments: int,
    length_m: float,
    mass_kg: float,
    gravity_m_s2: float,
    strain: Strain,
) -> Array:
    """Nodes of a cable in equilibrium relative to its lower end, (segments + 1, 3).

    Args:
        force_n: Force of the cable on what it holds at the lower end, with the weight of the half
            segment there, world, (3,).
        segments: Number of segments.
        length_m: Rest length.
        mass_kg: Mass.
        gravity_m_s2: Gravity.
        strain: Strain of a tension.
    """
    weights = (np.arange(segments) + 0.5) * mass_kg / segments * gravity_m_s2
    pull = force_n + np.outer(weights, [0.0, 0.0, 1.0])
    tension = np.linalg.norm(pull, axis=1)
    stretched = length_m / segments * np.array([1.0 + strain(t) for t in tension])
    steps = pull / tension[:, None] * stretched[:, None]
    return np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])


def nodes_between(
    begin_m: Array,
    end_m: Array,
    segments: int,
    length_m: float,
    mass_kg: float,
    gravity_m_s2: float,
    strain: Strain,
) -> Array:
    """Nodes of a cable that hangs in equilibrium between two points, (segments + 1, 3).

    Raises:
        ConfigError: No equilibrium was found (a cable exactly as long as its span, say).
    """
    span = np.asarray(end_m, float) - begin_m
    weight = mass_kg * gravity_m_s2
    chord = float(np.linalg.norm(span))

    def gap(force: Array) -> Array:
        return (
            hanging_nodes(force * weight, segments, length_m, mass_kg, gravity_m_s2, strain)[-1]
            - span
        ) / length_m

    along = span[:2] / max(float(np.linalg.norm(span[:2])), 1e-9)
    guesses = [(0.3, -0.3), (0.1, -0.1), (1.0, 0.5), (0.05, -0.4), (3.0, 0.0)]
    if chord > length_m:  # taut: the stretch gives the tension
        pulls = np.linspace(1e-6, 1.0, 400)
        pull = pulls[np.argmin([abs(strain(p * 1e6) - (chord / length_m - 1.0)) for p in pulls])]
        guesses.insert(0, (pull * 1e6 / weight, 0.0))
    for pull, lift in guesses:
        guess = np.array([*(pull * along), lift])
        if chord > length_m and pull > 10.0:
            guess = span / chord * pull
        solution = least_squares(
            gap, guess, xtol=1e-15, ftol=1e-15, gtol=1e-15, x_scale="jac", max_nfev=400
        )
        if np.abs(solution.fun).max() < 1e-10:
            return begin_m + hanging_nodes(
                solution.x * weight, segments, length_m, mass_kg, gravity_m_s2, strain
            )
    raise ConfigError(
        f"no equilibrium of a cable of {length_m:g} m between points {chord:.4g} m apart"
    )


def holding_forces(
    first_directions: Array,
    arms_m: Array,
    link_weights_n: Array,
    weight_n: float,
    thrust_directions: Array,
    lifted_n: Array,
) -> Array | None:
    """Forces of cables that hold a body at rest below hovering drones, from rigid links.

    The first link of a cable lies along F plus half its weight, the drone's thrust along F plus
    the weight of cable and drone: linear equations for the sizes of the forces. With the balance
    of the body they also hold for cables that all hang vertically.

    Args:
        first_directions: Directions of the first rigid links, (n, 3).
        arms_m: Where they pull, relative to the centre of mass, world, (n, 3).
        link_weights_n: Weight of one link of each cable, (n,).
        weight_n: Weight of the body.
        thrust_directions: Directions of the drones' z axes, (n, 3).
        lifted_n: Weight of each cable and its drone, (n,).

    Returns:
        Forces on the body, (n, 3), or None if no tensions in these directions balance it.
    """
    n = len(first_directions)
    up = np.array([0.0, 0.0, 1.0])
    offset = -0.5 * link_weights_n[:, None] * up
    columns = np.vstack([first_directions.T, np.cross(arms_m, first_directions).T])
    wanted = np.concatenate(
        [weight_n * up - offset.sum(axis=0), -np.cross(arms_m, offset).sum(axis=0)]
    )
    across = np.zeros((3 * n, n))
    turned = np.cross(first_directions, thrust_directions)
    for i in range(n):
        across[3 * i : 3 * i + 3, i] = turned[i]
    missing = -np.cross(offset + lifted_n[:, None] * up, thrust_directions).ravel()
    columns, wanted = np.vstack([columns, across]), np.concatenate([wanted, missing])
    sizes, *_ = np.linalg.lstsq(columns, wanted, rcond=None)
    if np.abs(columns @ sizes - wanted).max() > 1e-6 * weight_n or sizes.min() <= 0.0:
        return None
    return sizes[:, None] * first_directions + offset


def resampled(nodes: Array, segments: int) -> Array:
    """Points at equal arc lengths of a polyline, (segments + 1, 3)."""
    if len(nodes) == segments + 1:
        return nodes.copy()
    arc = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(nodes, axis=0), axis=1))])
    at = np.linspace(0.0, arc[-1], segments + 1)
    return np.column_stack([np.interp(at, arc, nodes[:, k]) for k in range(3)])
