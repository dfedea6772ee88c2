"""Figures of the mean cycles of a stage, real against simulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from musls_analysis.comparison.compare import MeanCycle, StageComparison, mean_of_known
from musls_analysis.comparison.errors import geodesic_error_rad, translational_error_m
from musls_analysis.figures import style
from musls_analysis.figures.over_time import pose_axes, value_limits
from musls_analysis.figures.space import spatial_axes
from musls_analysis.paper.flights import TurningPlaces
from musls_analysis.recordings.recording import LOAD
from musls_description.config.errors import file_name

REAL_LINE: style.LineStyle = {"color": style.INK, "linewidth": 1.1}
"""The real system looks like this in every figure; simulated ones have the body's colour."""


def _real_handle() -> Line2D:
    return Line2D([], [], **REAL_LINE | {"linewidth": 1.8}, label="real")


def mean_paths_figure(comparison: StageComparison) -> Figure:
    """Draw the mean cycles in space, equal scale on all axes; dots mark their start (Fig. 5)."""
    figure = style.new_figure(4.7, 5.6)
    sims = style.body_handles(comparison.sim)
    for handle in sims:
        handle.set_label(f"{handle.get_label()}, sim")
    start = Line2D([], [], ls="", marker="o", ms=5, color=style.FAINT, label="start of the cycle")
    ax = spatial_axes(figure, [_real_handle(), *sims, start], *_bounds_enu_m(comparison))
    for body in comparison.sim:
        sim_line: style.LineStyle = {"color": style.colour(body), "linewidth": 1.5}
        pair = ((comparison.real[body], REAL_LINE, 3), (comparison.sim[body], sim_line, 2))
        for mean, line, zorder in pair:
            path = mean.position_enu_m
            if comparison.periodic:
                path = np.concatenate([path, path[:1]])
            ax.plot(*path.T, **line, zorder=zorder)
            first = path[np.flatnonzero(np.isfinite(path[:, 0]))[0]]
            ax.plot(
                *first,
                ls="",
                marker="s" if body == LOAD else "o",
                ms=5.0,
                zorder=zorder + 2,
                mfc=line["color"],
                mec="white",
                mew=0.6,
            )
    return figure


def _bounds_enu_m(comparison: StageComparison) -> np.ndarray:
    """Corners of a box around everything; no side much shorter than the longest (2, 3)."""
    means = [*comparison.real.values(), *comparison.sim.values()]
    everything = np.concatenate([mean.position_enu_m for mean in means])
    low, high = np.nanmin(everything, axis=0), np.nanmax(everything, axis=0)
    low[2] = min(low[2], 0.0)
    size = np.maximum(high - low + 0.1, 0.35 * np.max(high - low))
    center = 0.5 * (low + high)
    low, high = center - 0.5 * size, center + 0.5 * size
    if low[2] < 0.0:  # down to the ground
        high[2] -= low[2]
        low[2] = 0.0
    return np.stack([low, high])


def mean_pose_figure(comparison: StageComparison, body: str) -> Figure:
    """Draw the mean pose over the cycles of a stage, of the real and the simulated flight.

    Over the time of a cycle [s]: x, y, z [m] left, roll, pitch, yaw [deg] right (Goodman et al.,
    Fig. 8). With the band of many simulated flights where there are any, else with the 95 %
    confidence of both means.
    """
    (sim,) = style.body_handles([body])
    sim.set_label(f"{style.label(body)}, sim")
    handles = [_real_handle(), sim]
    real_values, real_ci = _columns(comparison.real[body])
    sim_values, sim_ci = _columns(comparison.sim[body])
    apart = real_values[:, 3:] - sim_values[:, 3:]
    if np.isfinite(apart).any():  # attitudes of both are known
        sim_values[:, 3:] += 360.0 * np.round(np.nanmedian(apart, axis=0) / 360.0)
    its = comparison.bands.get(body)
    ends = None
    if its is not None:
        sim_ci[:] = np.nan
        real_ci[:] = np.nan
        handles.append(Patch(color=style.colour(body), alpha=0.22, lw=0, label="90 % band"))
        ends = [np.hstack([x[:, :3], np.degrees(x[:, 3:])]) for x in (its.low, its.high)]
        middle = 0.5 * (ends[0] + ends[1])
        whole = 360.0 * np.round(np.nanmedian(sim_values[:, 3:] - middle[:, 3:], axis=0) / 360.0)
        for end in ends:
            end[:, 3:] += whole
    elif np.isfinite(np.concatenate([real_ci, sim_ci])).any():
        handles.append(Patch(color=style.FAINT, alpha=0.4, lw=0, label="95 % confidence"))
    figure, axes = pose_axes(3.9, handles, 0.0)
    time_s = comparison.phase * comparison.period_s
    curves = (
        (sim_values, sim_ci, {"color": style.colour(body), "linewidth": 1.4}),
        (real_values, real_ci, REAL_LINE),
    )
    for k, ax in enumerate(axes.T.flat):
        extents = []
        if ends is not None:
            ax.fill_between(
                time_s, ends[0][:, k], ends[1][:, k], color=style.colour(body), alpha=0.22, lw=0
            )
            extents += [ends[0][:, k], ends[1][:, k]]
        for values, half_widths, line in curves:
            value = values[:, k]
            half = half_widths[:, k]
            if np.isfinite(half).any():
                band = value - half, value + half
                ax.fill_between(time_s, *band, color=line["color"], alpha=0.22, lw=0)
            ax.plot(time_s, value, **line)
            extents += [value - np.nan_to_num(half), value + np.nan_to_num(half)]
        limits = value_limits(extents, 0.2 if k < 3 else 4.0)
        ax.set(xlim=(0.0, comparison.period_s), ylim=limits)
    for ax in axes[-1]:
        ax.set_xlabel("time in the cycle [s]")
    return figure


def _columns(mean: MeanCycle) -> tuple[np.ndarray, np.ndarray]:
    """Values and half widths (M, 6): x y z [m], roll pitch yaw [deg]."""
    values = np.hstack([mean.position_enu_m, np.degrees(mean.angles_rad)])
    return values, np.hstack([mean.position_ci_m, np.degrees(mean.angles_ci_rad)])


def cycle_errors_figure(comparison: StageComparison) -> Figure:
    """Draw translational errors above and geodesic errors below, their means as thin lines."""
    figure = style.new_figure(3.2)
    axes = figure.subplots(2, 1, sharex=True)
    top_in = style.legend_on_top(figure, style.body_handles(comparison.errors))
    style.margins(figure, 0.6, 0.2, 0.4, top_in, hspace=0.14)
    style.hide_time(axes[:-1])
    time_s = comparison.phase * comparison.period_s
    for body in comparison.errors:
        real = comparison.real[body]
        sim = comparison.sim[body]
        distance = translational_error_m(real.position_enu_m, sim.position_enu_m)
        angle = geodesic_error_rad(real.orientation_wxyz, sim.orientation_wxyz)
        for ax, values in zip(axes, (1e3 * distance, np.degrees(angle)), strict=True):
            ax.plot(time_s, values, color=style.colour(body))
            ax.axhline(mean_of_known(values), color=style.colour(body), lw=0.7, ls=(0, (4, 3)))
    for ax, name in zip(axes, ("translational\nerror [mm]", "geodesic\nerror [deg]"), strict=True):
        ax.set_ylabel(name)
        ax.set_ylim(bottom=0.0)
        ax.locator_params(axis="y", nbins=5)
        ax.grid(False, axis="x")
    axes[-1].set_xlabel("time in the cycle [s]")
    axes[-1].set_xlim(0.0, comparison.period_s)
    return figure


def turning_frame_figure(stages: Sequence[TurningPlaces]) -> Figure:
    """Draw each drone outward, forward and up in the turning frame, a row a stage; real dashed."""
    figure = style.new_figure(1.0 + 1.9 * len(stages))
    axes = figure.subplots(len(stages), 3, squeeze=False, sharex="row")
    for row, places in zip(axes, stages, strict=True):
        for k, (ax, axis) in enumerate(zip(row, ("outward", "forward", "up"), strict=True)):
            for i, drone in enumerate(places.drones):
                shade = style.colour(drone)
                name = style.label(drone)
                ax.plot(places.phase, places.sim[i, :, k], color=shade, lw=1.4, label=name)
                ax.plot(places.phase, places.real[i, :, k], color=shade, lw=1.0, ls="--")
            ax.set_title(f"{places.stage}: {axis}, m", fontsize=8)
        row[1].set_xlabel("phase of the cycle (dashed: recorded)")
    axes[0, 0].legend(fontsize=7)
    figure.tight_layout()
    return figure


def write_figures(
    comparisons: Sequence[StageComparison], folder: Path, turning: Sequence[TurningPlaces] = ()
) -> None:
    """Draw the figures of a comparison as PNG into a folder, which is made."""
    folder.mkdir()
    with style.styled():
        for comparison in comparisons:
            stage = file_name(comparison.stage)
            style.save(mean_paths_figure(comparison), folder / f"{stage}_paths_3d.png")
            style.save(cycle_errors_figure(comparison), folder / f"{stage}_errors.png")
            for body in comparison.errors:
                style.save(mean_pose_figure(comparison, body), folder / f"{stage}_pose_{body}.png")
        if turning:
            style.save(turning_frame_figure(turning), folder / "turning_frame.png")
