"""Mean pose of one body over a cycle, real against simulated (as Fig. 8 of the seed paper)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from musls_analysis.comparison.compare import StageComparison
from musls_analysis.comparison.mean_cycle import MeanCycle
from musls_analysis.figures import style
from musls_analysis.figures.mean_paths import REAL_LINE, real_handle

LABELS = ("x [m]", "y [m]", "z [m]", "roll [deg]", "pitch [deg]", "yaw [deg]")
_SMALLEST_RANGE = (0.2, 0.2, 0.2, 4.0, 4.0, 4.0)
"""An axis shows at least this much, so that noise does not look like motion."""


def mean_pose_figure(comparison: StageComparison, body: str) -> Figure:
    """Draw x, y, z on the left and roll, pitch, yaw on the right, with 95 % confidence bands.

    Args:
        comparison: One stage.
        body: "load", "drone_1", ...
    """
    figure = style.new_figure(3.9)
    axes = figure.subplots(3, 2, sharex=True)
    (sim,) = style.body_handles([body])
    sim.set_label(f"{style.label(body)}, sim")
    handles = [real_handle(), sim]
    real_values, real_ci = _columns(comparison.real[body])
    sim_values, sim_ci = _columns(comparison.sim[body])
    sim_values[:, 3:] += _whole_turns_deg(real_values[:, 3:], sim_values[:, 3:])
    if np.isfinite(np.concatenate([real_ci, sim_ci])).any():
        handles.append(Patch(color=style.FAINT, alpha=0.4, lw=0, label="95 % confidence"))
    top_in = style.legend_on_top(figure, handles)
    style.margins(figure, 0.7, 0.2, 0.4, top_in, wspace=0.31, hspace=0.15)
    style.hide_time(axes[:-1].flat)
    time_s = comparison.phase * comparison.period_s
    drawn = (
        (sim_values, sim_ci, {"color": style.colour(body), "linewidth": 1.4}),
        (real_values, real_ci, REAL_LINE),
    )
    for k, ax in enumerate(axes.T.flat):
        for values, half_width, line in drawn:
            _band(ax, time_s, values[:, k], half_width[:, k], line)
        _dress(ax, k, [real_values[:, k], sim_values[:, k]], [real_ci[:, k], sim_ci[:, k]])
        ax.set_xlim(0.0, comparison.period_s)
    for ax in axes[-1]:
        ax.set_xlabel("time in the cycle [s]")
    return figure


def _columns(mean: MeanCycle) -> tuple[np.ndarray, np.ndarray]:
    """Values and half widths (M, 6): x y z [m], roll pitch yaw [deg]."""
    values = np.hstack([mean.position_enu_m, np.degrees(mean.angles_rad)])
    return values, np.hstack([mean.position_ci_m, np.degrees(mean.angles_ci_rad)])


def _whole_turns_deg(real: np.ndarray, sim: np.ndarray) -> np.ndarray:
    """Whole turns that bring the simulated angles to the real ones (3,)."""
    return 360.0 * np.round(np.nanmedian(real - sim, axis=0) / 360.0)


def _band(
    ax: Axes, time_s: np.ndarray, values: np.ndarray, half_width: np.ndarray, line: dict
) -> None:
    if np.isfinite(half_width).any():
        ax.fill_between(
            time_s, values - half_width, values + half_width, color=line["color"], alpha=0.22, lw=0
        )
    ax.plot(time_s, values, **line)


def _dress(ax: Axes, k: int, values: list[np.ndarray], half_widths: list[np.ndarray]) -> None:
    everything = np.concatenate(
        [
            value + sign * np.nan_to_num(half_width)
            for value, half_width in zip(values, half_widths, strict=True)
            for sign in (-1.0, 1.0)
        ]
    )
    low, high = np.nanmin(everything), np.nanmax(everything)
    half = max(0.54 * (high - low), 0.5 * _SMALLEST_RANGE[k])
    ax.set_ylim(0.5 * (low + high) - half, 0.5 * (low + high) + half)
    ax.set_ylabel(LABELS[k])
    ax.yaxis.set_label_coords(-0.155, 0.5)
    ax.grid(False, axis="x")
    ax.locator_params(axis="y", nbins=4)
