"""Errors between the mean trajectories over the cycle, one line per body."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from musls_analysis.comparison.compare import StageComparison
from musls_analysis.comparison.errors import geodesic_error_rad, translational_error_m
from musls_analysis.figures import style


def cycle_errors_figure(comparison: StageComparison) -> Figure:
    """Draw translational errors above and geodesic errors below, their means as thin lines."""
    figure = style.new_figure(3.2)
    axes = figure.subplots(2, 1, sharex=True)
    top_in = style.legend_on_top(figure, style.body_handles(comparison.errors))
    style.margins(figure, 0.6, 0.2, 0.4, top_in, hspace=0.14)
    style.hide_time(axes[:-1])
    time_s = comparison.phase * comparison.period_s
    for body in comparison.errors:
        real, sim = comparison.real[body], comparison.sim[body]
        distance = translational_error_m(real.position_enu_m, sim.position_enu_m)
        angle = geodesic_error_rad(real.orientation_wxyz, sim.orientation_wxyz)
        for ax, values in zip(axes, (1e3 * distance, np.degrees(angle)), strict=True):
            ax.plot(time_s, values, color=style.colour(body))
            ax.axhline(np.nanmean(values), color=style.colour(body), lw=0.7, ls=(0, (4, 3)))
    for ax, name in zip(axes, ("translational\nerror [mm]", "geodesic\nerror [deg]"), strict=True):
        ax.set_ylabel(name)
        ax.set_ylim(bottom=0.0)
        ax.locator_params(axis="y", nbins=5)
        ax.grid(False, axis="x")
    axes[-1].set_xlabel("time in the cycle [s]")
    axes[-1].set_xlim(0.0, comparison.period_s)
    return figure
