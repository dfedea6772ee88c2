"""Mean trajectories in space, real against simulated (as Fig. 5 of the seed paper)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from musls_analysis.comparison.compare import StageComparison
from musls_analysis.figures import style
from musls_analysis.figures.paths_3d import spatial_axes
from musls_analysis.recordings.recording import LOAD

REAL_LINE: style.Look = {"color": style.INK, "linewidth": 1.1}
"""The real system looks like this in every figure; simulated ones have the body's colour."""


def real_handle() -> Line2D:
    """Legend entry for the real system."""
    return Line2D([], [], **REAL_LINE | {"linewidth": 1.8}, label="real")


def mean_paths_figure(comparison: StageComparison) -> Figure:
    """Draw the mean cycles in space, equal scale on all axes; dots mark their start."""
    figure = style.new_figure(4.7, 5.6)
    handles = [real_handle(), *style.body_handles(comparison.sim)]
    for handle in handles[1:]:
        handle.set_label(f"{handle.get_label()}, sim")
    handles.append(
        Line2D([], [], ls="", marker="o", ms=5, color=style.FAINT, label="start of the cycle")
    )
    ax = spatial_axes(figure, handles, *_bounds_enu_m(comparison))
    for body in comparison.sim:
        sim_line: style.Look = {"color": style.colour(body), "linewidth": 1.5}
        pair = ((comparison.real[body], REAL_LINE, 3), (comparison.sim[body], sim_line, 2))
        for mean, line, zorder in pair:
            path = mean.position_enu_m
            if comparison.periodic:
                path = np.concatenate([path, path[:1]])
            ax.plot(*path.T, **line, zorder=zorder)
            start = path[np.flatnonzero(np.isfinite(path[:, 0]))[0]]
            ax.plot(
                *start, ls="", marker="s" if body == LOAD else "o", ms=5.0, zorder=zorder + 2,
                mfc=line["color"], mec="white", mew=0.6,
            )  # fmt: skip
    return figure


def _bounds_enu_m(comparison: StageComparison) -> np.ndarray:
    """Corners of a box around everything; no side much shorter than the longest (2, 3)."""
    everything = np.concatenate(
        [
            mean.position_enu_m
            for side in (comparison.real, comparison.sim)
            for mean in side.values()
        ]
    )
    low, high = np.nanmin(everything, axis=0), np.nanmax(everything, axis=0)
    low[2] = min(low[2], 0.0)
    size = np.maximum(high - low + 0.1, 0.35 * np.max(high - low))
    center = 0.5 * (low + high)
    low, high = center - 0.5 * size, center + 0.5 * size
    if low[2] < 0.0:  # down to the ground
        high[2] -= low[2]
        low[2] = 0.0
    return np.stack([low, high])
