"""Where the drones of a formation go when one of them is lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from musls_analysis.figures import style

Array = NDArray[np.float64]

COLUMNS = 3


def losses_figure(
    places_m: Array, anchors_m: Array, found: Sequence[tuple[Array, Array] | None]
) -> Figure:
    """Draw one view from above for each drone that may be lost.

    Args:
        places_m: Formation of all drones, load's frame, (n, 3).
        anchors_m: Where the cables pull at the load, (n, 3).
        found: For each drone lost the places of all (NaN for it), (n, 3), and the thrust margins
            of the others, (n - 1,); None where nothing holds the load.
    """
    columns = min(COLUMNS, len(found))
    rows = -(-len(found) // columns)
    figure = style.new_figure(2.4 * rows + 0.3, 2.4 * columns)
    reach = 1.25 * float(np.abs(places_m[:, :2]).max()) + 0.1
    for k, left in enumerate(found):
        ax = figure.add_subplot(rows, columns, k + 1)
        _one(ax, places_m, anchors_m, k, left)
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
        ax.set_aspect("equal")
        says = "no formation holds the load" if left is None else f"margin {left[1].min():.2f}"
        ax.set_title(f"without drone {k + 1}: {says}", fontsize=8)
    figure.subplots_adjust(left=0.02, right=0.98, bottom=0.02, top=0.93, wspace=0.05, hspace=0.18)
    return figure


def _one(
    ax: Axes, places: Array, anchors: Array, gone: int, left: tuple[Array, Array] | None
) -> None:
    loop = np.vstack([anchors, anchors[:1]])
    ax.plot(loop[:, 0], loop[:, 1], color=style.colour("load"), lw=1.5)
    ax.plot(*places[gone, :2], "x", color=style.INK, ms=7)
    others = [i for i in range(len(places)) if i != gone]
    ax.plot(*places[others, :2].T, "o", mfc="none", mec="#8b949e", ms=8)
    if left is None:
        return
    for i, margin in zip(others, left[1], strict=True):
        colour = style.colour(f"drone_{i + 1}")
        x, y = left[0][i, :2]
        ax.plot([anchors[i, 0], x], [anchors[i, 1], y], color="#8b949e", lw=0.9)
        ax.plot(x, y, "o", color=colour, ms=6)
        ax.annotate(f"{margin:.2f}", (x, y), (4, 5), textcoords="offset points", fontsize=7)
