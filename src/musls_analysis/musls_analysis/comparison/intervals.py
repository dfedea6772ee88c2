"""How far errors of mean cycles depend on which cycles and which simulated flights were at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from musls_analysis.comparison.compare import BodyErrors, CompareOptions
from musls_analysis.comparison.cycles import CutStage, of_one_length
from musls_analysis.comparison.errors import geodesic_error_rad, translational_error_m
from musls_analysis.comparison.mean_cycle import Slices, phases, slices
from musls_description.rotations import chordal_mean

DRAWS = 100
GRID = 100
"""Phases of a cycle; means over it need fewer than curves do."""
MIDDLE = (5.0, 95.0)
"""Percentiles."""

Ends = tuple[tuple[float, float], tuple[float, float]]


def error_intervals(
    reals: Sequence[CutStage],
    sims: Sequence[CutStage],
    options: CompareOptions,
    about: Mapping[str, BodyErrors] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, Ends]:
    """Bootstrap the errors of a stage: real cycles and simulated flights are drawn anew.

    Args:
        reals: Real recordings, cut; their cycles are drawn.
        sims: Simulated flights, cut; whole flights are drawn.
        options: As for the comparison.
        about: Errors of all cycles on the comparison's own, finer phases: the ends are moved by
            what the phases make.
        draws: Draws.
        seed: Of the draws.

    Returns:
        By body, lower and upper ends of the middle 90 %: (translational error [mm], geodesic
        error [deg]).
    """
    cuts = of_one_length([*reals, *sims])
    reals, sims = cuts[: len(reals)], cuts[len(reals) :]
    phase = phases(GRID, reals[0].periodic)
    generator = np.random.default_rng(seed)
    flight = np.repeat(np.arange(len(sims)), [len(sim.cycles) for sim in sims])
    n = sum(len(real.cycles) for real in reals)
    drawn = [
        (
            generator.integers(0, n, n),
            np.concatenate(
                [np.flatnonzero(flight == k) for k in generator.integers(0, len(sims), len(sims))]
            ),
        )
        for _ in range(draws)
    ]
    found = {}
    for body in options.bodies or reals[0].recording.bodies:
        real = slices(reals, body, phase, options.gap_limit_s)
        offset = options.offsets_m.get(body, (0.0, 0.0, 0.0))
        sim = slices(sims, body, phase, options.gap_limit_s, offset)
        errors = np.array([_errors(real, sim, *which) for which in drawn])
        if about is not None:
            whole = _errors(real, sim, np.arange(n), np.arange(len(flight)))
            its = about[body]
            exact = (1e3 * its.translational_error_m, its.geodesic_error_deg)
            errors = np.maximum(errors + np.subtract(exact, whole), 0.0)
        low, high = np.nanpercentile(errors, MIDDLE, axis=0).tolist()
        found[body] = ((low[0], low[1]), (high[0], high[1]))
    return found


def _errors(
    real: Slices, sim: Slices, cycles: NDArray[np.int64], flown: NDArray[np.int64]
) -> tuple[float, float]:
    """Errors of the means over some cycles, mm and degrees."""
    with np.errstate(all="ignore"):
        distance = translational_error_m(
            _mean(real.position_enu_m[cycles]), _mean(sim.position_enu_m[flown])
        )
        angle = geodesic_error_rad(
            chordal_mean(real.orientation_wxyz[cycles]), chordal_mean(sim.orientation_wxyz[flown])
        )
        return 1e3 * float(np.nanmean(distance)), float(np.degrees(np.nanmean(angle)))


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Over the first axis; NaN where there is nothing."""
    finite = np.isfinite(values)
    count = finite.sum(axis=0)
    total = np.where(finite, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
