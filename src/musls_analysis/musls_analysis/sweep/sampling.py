"""From parameters to points: grid, random draws, Latin hypercube."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_analysis.sweep.spec import Grid, LatinHypercube, Parameter, SweepSpec

Point = dict[str, Any]


def points(sweep: SweepSpec) -> list[Point]:
    """Values of all parameters, a mapping per point; random draws depend on the seed alone."""
    keys = list(sweep.parameters)
    parameters = list(sweep.parameters.values())
    if isinstance(sweep.sampling, Grid):
        rows = itertools.product(*map(_grid_values, parameters))
        return [dict(zip(keys, row, strict=True)) for row in rows]
    unit = _unit_cube(sweep.sampling, len(keys))
    columns = [_stretch(p, u) for p, u in zip(parameters, unit.T, strict=True)]
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def _unit_cube(sampling: Any, dimensions: int) -> NDArray[np.float64]:
    """Draws in [0, 1), (runs, dimensions)."""
    rng = np.random.default_rng(sampling.seed)
    if isinstance(sampling, LatinHypercube):
        from scipy.stats import qmc

        return qmc.LatinHypercube(dimensions, rng=rng).random(sampling.runs)
    return rng.random((sampling.runs, dimensions))


def _grid_values(parameter: Parameter) -> list[Any]:
    if parameter.values is not None:
        return list(parameter.values)
    low, high = parameter.range
    place = np.geomspace if parameter.log else np.linspace
    values = place(low, high, parameter.count or 0)  # a grid's parameter has one
    if parameter.integer:
        return list(dict.fromkeys(int(v) for v in np.rint(values)))
    return values.tolist()


def _stretch(parameter: Parameter, unit: NDArray[np.float64]) -> list[Any]:
    """Values of a parameter for draws in [0, 1), (runs,)."""
    if parameter.values is not None:
        return [parameter.values[int(u * len(parameter.values))] for u in unit]
    if parameter.mean is not None and parameter.std is not None:
        return _normal(parameter, parameter.mean, parameter.std, unit)
    low, high = parameter.range
    if parameter.integer:  # every whole number gets an equal share (of the logarithm, if log)
        low, high = math.ceil(low) - 0.5, math.floor(high) + 0.5
        if parameter.log:
            low = max(low, 0.5)
    if parameter.log:
        values = low * (high / low) ** unit
    else:
        values = low + (high - low) * unit
    if parameter.integer:
        return [int(v) for v in np.rint(values)]
    return values.tolist()


def _normal(
    parameter: Parameter, mean: float, std: float, unit: NDArray[np.float64]
) -> list[float]:
    """Values of a normal distribution, cut off where it is asked for, for draws in [0, 1)."""
    from scipy.special import ndtr, ndtri

    low, high = (ndtr((limit - mean) / std) for limit in parameter.cut)
    inner = np.clip(low + (high - low) * unit, 1e-12, 1.0 - 1e-12)
    values: list[float] = (mean + std * ndtri(inner)).tolist()
    return values
