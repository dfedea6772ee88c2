"""Thrust margin of a formation over the angle of its cone and the mass of its load."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from musls_analysis.figures import style

Array = NDArray[np.float64]

LEVELS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
STEEPEST_DEG = 75.0


@dataclass(frozen=True)
class Carriers:
    """The drones that carry.

    Attributes:
        mass_kg: Of each, (n,).
        max_thrust_n: Of each, (n,).
        cables_kg: Mass of all cables.
        gravity_m_s2: Gravity.
    """

    mass_kg: Array
    max_thrust_n: Array
    cables_kg: float
    gravity_m_s2: float

    def margin(self, angle_deg: Array, load_kg: Array) -> Array:
        """Full over needed thrust of the weakest drone.

        Symmetrical straight cables at an angle from the vertical share the weight:
        T = m g / (n cos angle); the mass of the cables counts as the load's.

        Args:
            angle_deg: Of the cables from the vertical, any shape.
            load_kg: Of the load, same shape.
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
    """Draw the map with the scenario's own point.

    Args:
        carriers: The drones.
        angle_deg: Of the scenario's cables from the vertical.
        load_kg: The scenario's load.
    """
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
