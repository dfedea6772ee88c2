"""Each drone's place in the turning frame over the mean cycle, real against simulated."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from musls_analysis.figures import style
from musls_analysis.paper.turning_frame import Turning

_AXES = ("outward, m", "forward, m", "up, m")


def turning_frame_figure(stages: Sequence[Turning]) -> Figure:
    """Draw outward, forward and up (columns) of each stage (rows); real dashed."""
    figure = style.new_figure(1.0 + 1.9 * len(stages))
    axes = figure.subplots(len(stages), 3, squeeze=False, sharex="row")
    for row, found in zip(axes, stages, strict=True):
        for k, ax in enumerate(row):
            for i, drone in enumerate(found.drones):
                colour = style.colour(drone)
                label = drone.replace("_", " ")
                ax.plot(found.phase, found.sim[i, :, k], color=colour, lw=1.4, label=label)
                ax.plot(found.phase, found.real[i, :, k], color=colour, lw=1.0, ls="--")
            ax.set_title(f"{found.stage}: {_AXES[k]}", fontsize=8)
        row[1].set_xlabel("phase of the cycle (dashed: recorded)")
    axes[0, 0].legend(fontsize=7)
    figure.tight_layout()
    return figure
