"""Axial law of a cable: force over strain, as a stiffness or as a monotone table.

A table is interpolated by monotone cubics (Fritsch and Butland, as in SciPy's
PchipInterpolator) and goes on along its end slopes. Damping acts on the rate of the strain.
A slack cable (the default) cannot push: its tension is max(0, F(strain) + c strain rate), which is
continuous in position and velocity. With damping, tension therefore begins when
F + c strain' = 0, earlier than the strain by at most the relaxation time c / EA.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from musls_description.compiled import compiled
from musls_description.errors import ConfigError
from musls_sim.plants.elastic.columns import (
    L_C0,
    L_C1,
    L_C2,
    L_C3,
    L_ENERGY,
    L_STRAIN,
    LAW_COLUMNS,
)

Array = NDArray[np.float64]

LEAST_END_SLOPE = 0.2
"""Slope of a table at its ends over that of the straight line between the last two pairs."""


def law_rows(table: Sequence[tuple[float, float]], linear: bool = False) -> Array:
    """Rows of the compiled law from pairs (strain, force).

    Args:
        table: Strain and force [N], both strictly increasing, at least two pairs.
        linear: Straight lines between the pairs instead of monotone cubics.

    Raises:
        ConfigError: Not monotone, or too short.
    """
    strain, force = np.array(table, float).T
    if len(strain) < 2 or (np.diff(strain) <= 0.0).any() or (np.diff(force) <= 0.0).any():
        raise ConfigError(
            f"cable law: strain and force must both increase from row to row, not {list(table)}"
        )
    pieces = np.zeros((4, len(strain) - 1))
    if linear:
        pieces[2], pieces[3] = np.diff(force) / np.diff(strain), force[:-1]
    else:
        # SciPy may choose slope 0 at an end, where a cable would have no stiffness.
        secants = np.diff(force) / np.diff(strain)
        slopes = PchipInterpolator(strain, force).derivative()(strain)
        slopes[0] = max(slopes[0], LEAST_END_SLOPE * secants[0])
        slopes[-1] = max(slopes[-1], LEAST_END_SLOPE * secants[-1])
        pieces[:] = CubicHermiteSpline(strain, force, slopes).c
    width = np.diff(strain)
    slope = pieces[2, -1] + width[-1] * (2.0 * pieces[1, -1] + 3.0 * width[-1] * pieces[0, -1])
    rows = np.zeros((len(strain) + 1, LAW_COLUMNS))
    rows[0, [L_STRAIN, L_C0, L_C1]] = strain[0], force[0], pieces[2, 0]  # below the table
    rows[1:-1, L_STRAIN] = strain[:-1]
    rows[1:-1, L_C0 : L_C3 + 1] = pieces[::-1].T
    rows[-1, [L_STRAIN, L_C0, L_C1]] = strain[-1], force[-1], slope
    area = width * (
        pieces[3] + width * (pieces[2] / 2 + width * (pieces[1] / 3 + width * pieces[0] / 4))
    )
    rows[1:, L_ENERGY] = np.concatenate([[0.0], np.cumsum(area)])
    rows[:, L_ENERGY] -= _energy_at(rows, 0.0)
    return rows


def _energy_at(rows: Array, strain: float) -> float:
    return float(table_law(rows, strain)[2])


@compiled()
def table_law(rows, strain):
    """Force [N], slope [N] and energy per metre [J/m] of a table at a strain."""
    k = rows.shape[0] - 1
    while k > 1 and strain < rows[k, L_STRAIN]:
        k -= 1
    if k == 1 and strain < rows[1, L_STRAIN]:
        k = 0
    r = rows[k]
    e = strain - r[L_STRAIN]
    force = r[L_C0] + e * (r[L_C1] + e * (r[L_C2] + e * r[L_C3]))
    slope = r[L_C1] + e * (2.0 * r[L_C2] + e * 3.0 * r[L_C3])
    area = e * (r[L_C0] + e * (r[L_C1] / 2 + e * (r[L_C2] / 3 + e * r[L_C3] / 4)))
    return force, slope, r[L_ENERGY] + area
