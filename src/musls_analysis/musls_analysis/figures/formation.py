"""Thrust margin of a formation over the angle of its cone and the mass of its load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from musls_analysis.figures import style

Array = NDArray[np.float64]

LEVELS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
STEEPEST_DEG = 75.0


@dataclass(frozen=True)
class Carriers:
    """The drones that carry: mass and greatest thrust of each (n,), mass of all cables together."""

    mass_kg: Array
    max_thrust_n: Array
    cables_kg: float
    gravity_m_s2: float

    def margin(self, angle_deg: Array, load_kg: Array) -> Array:
        """Full over needed thrust of the weakest drone.

        Symmetrical straight cables at an angle from the vertical share the weight: T = m g / (n cos
        angle); the mass of the cables counts as the load's. Angles and loads have the same shape,
        any.
        """
        share_n = (load_kg + self.cables_kg) * self.gravity_m_s2 / len(self.mass_kg)
        aside_n = share_n * np.tan(np.radians(angle_deg))
        margins = [
            most / np.hypot(mass * self.gravity_m_s2 + share_n, aside_n)
            for mass, most in zip(self.mass_kg, self.max_thrust_n, strict=True)
        ]
        lowest: Array = np.min(margins, axis=0)
        return lowest


def margins_figure(carriers: Carriers, angle_deg: float, load_kg: float) -> Figure:
    """Draw the map with the scenario's own point."""
    weight = carriers.mass_kg.sum() + carriers.cables_kg
    liftable_kg = carriers.max_thrust_n.sum() / carriers.gravity_m_s2 - weight
    most_kg = max(1.3 * load_kg, 1.1 * liftable_kg, 1e-3)
    angles, loads = np.meshgrid(np.linspace(0.0, STEEPEST_DEG, 151), np.linspace(0, most_kg, 151))
    margin = carriers.margin(angles, loads)
    figure = style.new_figure(3.6, 5.0)
    ax = figure.subplots()
    style.margins(figure, 0.65, 0.2, 0.45, 0.35)
    ax.contourf(
        angles, loads, margin, levels=[0.0, 1.0, 1.1, 1e9], colors=["#f3b8b8", "#fbe3c0", "#dff0e3"]
    )
    shown = [level for level in LEVELS if margin.min() < level < margin.max()]
    if shown:
        lines = ax.contour(angles, loads, margin, levels=shown, colors=style.INK, linewidths=0.8)
        ax.clabel(lines, fmt="%g", fontsize=7)
    ax.plot(angle_deg, load_kg, "o", color=style.colour("load"), ms=6, label="this scenario")
    ax.set_title("Thrust margin of the weakest drone")
    ax.set_xlabel("cables from the vertical [deg]")
    ax.set_ylabel("mass of the load [kg]")
    ax.set_xlim(0.0, STEEPEST_DEG)
    ax.set_ylim(0.0, most_kg)
    ax.legend(loc="upper right")
    return figure


# ---------- Formations without one of their drones

COLUMNS = 3


def losses_figure(
    places_m: Array, anchors_m: Array, found: Sequence[tuple[Array, Array] | None]
) -> Figure:
    """Draw one view from above for each drone that may be lost.

    The places of all drones (n, 3) and of the cables' ends at the load are in the load's frame. For
    each drone lost `found` holds the places of all (NaN for it), (n, 3), and the thrust margins of
    the others, (n - 1,); None where nothing holds the load.
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
