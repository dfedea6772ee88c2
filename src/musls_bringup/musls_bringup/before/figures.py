"""Prediction of each drone's loss, and the figures of `musls check --out`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from musls_control.mission.contingency import MIN_DRONES
from musls_description.hanging.hang import margin_text
from musls_description.hanging.reallocation import Reallocation
from musls_description.numerics.arrays import Array
from musls_description.system.drone import thrust_margin
from musls_description.system.slung_system import formation_of
from musls_sim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def losses(scenario: Scenario) -> list[Reallocation | None]:
    """Outcome of the loss of each drone; empty where the scenario does not survive one."""
    spec = scenario.contingency
    if spec is None or scenario.system.n_drones < MIN_DRONES:
        return []
    hanging = scenario.hanging_for("contingency")
    return [
        hanging.without(
            [i],
            margin=spec.margin,
            clearance_m=spec.clearance_m,
            hanging=[i] if spec.hook == "hold" else [],
        )
        for i in range(1, scenario.system.n_drones + 1)
    ]


def loss_sentence(scenario: Scenario, number: int, reallocation: Reallocation | None) -> str:
    """One line about the loss of a drone."""
    if reallocation is None:
        return f"without drone_{number}: no formation holds the load, it is set down at once"
    assert scenario.contingency is not None
    goes_on = reallocation.thrust_margin >= scenario.contingency.margin
    then = (
        "goes on" if goes_on and scenario.contingency.then == "continue" else "sets the load down"
    )
    return (
        f"without drone_{number}: thrust margin {margin_text(reallocation.thrust_margin)} "
        f"(at least {scenario.contingency.margin:g} to go on), {then}"
    )


# ---------- Figures

LEVELS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
STEEPEST_DEG = 75.0


def draw(scenario: Scenario, reallocations: Sequence[Reallocation | None], folder: Path) -> None:
    """Write margins.png and, where it is known what the loss of a drone leads to, losses.png."""
    from musls_analysis.figures.style import save, styled

    with styled():
        if scenario.hanging is not None:  # of a formation, over angle and load
            save(margins_figure(scenario), folder / "margins.png")
        if reallocations:
            save(losses_figure(scenario, reallocations), folder / "losses.png")


def cone_margin(scenario: Scenario, angle_deg: Array, load_kg: Array) -> Array:
    """Least thrust margin of a formation.

    Symmetrical straight cables at an angle from the vertical share the weight: T = m g / (n cos
    angle); the mass of the cables counts as the load's. Angles and loads have the same shape, any.
    """
    system = formation_of(scenario.system, "formation")
    gravity = scenario.physics.gravity_m_s2
    cables_kg = system.carried_mass_kg - system.load.mass_kg
    share_n = (load_kg + cables_kg) * gravity / system.n_drones
    aside_n = share_n * np.tan(np.radians(angle_deg))
    margins = []
    for drone in set(system.drones):
        lift_n = drone.mass_kg * gravity + share_n
        thrust_n = np.hypot(lift_n, aside_n)
        # the drone leans outwards, its back
        up = lift_n / thrust_n
        out = aside_n / thrust_n
        pull = [share_n * out - aside_n * up, 0.0 * up, share_n * up + aside_n * out]
        moment = np.cross(drone.cable_attachment_m, np.stack(pull, axis=-1))
        margins.append(thrust_margin(drone, thrust_n, moment))
    return np.min(margins, axis=0)


def margins_figure(scenario: Scenario) -> Figure:
    """Draw `cone_margin` over the cables' angle and the load's mass, with the scenario's own."""
    from musls_analysis.figures import style

    system = formation_of(scenario.system, "formation")
    cone = scenario.formation
    n = system.n_drones
    load_kg = system.load.mass_kg
    along = cone.offsets_m(n) - np.array(system.load.cable_attachments_m)[:n]
    tilt = np.arctan2(np.linalg.norm(along[:, :2], axis=1), np.maximum(along[:, 2], 1e-6))
    full_n = sum(drone.max_thrust_n for drone in system.drones)
    liftable_kg = full_n / scenario.physics.gravity_m_s2 - (system.mass_kg - load_kg)
    most_kg = max(1.3 * load_kg, 1.1 * liftable_kg, 1e-3)
    angles, loads = np.meshgrid(np.linspace(0.0, STEEPEST_DEG, 151), np.linspace(0, most_kg, 151))
    margin = cone_margin(scenario, angles, loads)
    figure = style.new_figure(3.6, 5.0)
    ax = figure.subplots()
    style.margins(figure, 0.65, 0.2, 0.45, 0.35)
    ax.contourf(
        angles, loads, margin, levels=[0.0, 1.0, 1.1, 1e9], colors=["#f3b8b8", "#fbe3c0", "#dff0e3"]
    )
    levels = [level for level in LEVELS if margin.min() < level < margin.max()]
    if levels:
        lines = ax.contour(angles, loads, margin, levels=levels, colors=style.INK, linewidths=0.8)
        ax.clabel(lines, fmt="%g", fontsize=7)
    own_deg = float(np.degrees(tilt.mean()))
    ax.plot(own_deg, load_kg, "o", color=style.colour("load"), ms=6, label="this scenario")
    ax.set_title("Thrust margin")
    ax.set(xlabel="cables from the vertical [deg]", ylabel="mass of the load [kg]")
    ax.set(xlim=(0.0, STEEPEST_DEG), ylim=(0.0, most_kg))
    ax.legend(loc="upper right")
    return figure


def losses_figure(scenario: Scenario, reallocations: Sequence[Reallocation | None]) -> Figure:
    """Draw where the drones go when one is lost, from above, with thrust margins."""
    from musls_analysis.figures import style

    system = formation_of(scenario.system, "formation")
    places = scenario.formation.offsets_m(system.n_drones)
    anchors = np.array(system.load.cable_attachments_m)[: system.n_drones]
    columns = min(3, len(reallocations))
    rows = -(-len(reallocations) // columns)
    figure = style.new_figure(2.4 * rows + 0.3, 2.4 * columns)
    reach = 1.25 * float(np.abs(places[:, :2]).max()) + 0.1
    for drone, reallocation in enumerate(reallocations):
        ax = figure.add_subplot(rows, columns, drone + 1)
        ax.plot(*np.vstack([anchors, anchors[:1]]).T[:2], color=style.colour("load"), lw=1.5)
        ax.plot(*places[drone, :2], "x", color=style.INK, ms=7)
        others = [i for i in range(len(places)) if i != drone]
        ax.plot(*places[others, :2].T, "o", mfc="none", mec=style.CABLE, ms=8)
        says = "no formation holds the load"
        if reallocation is not None:
            margins = reallocation.thrust_margins.tolist()
            says = f"margin {min(margins):.2f}"
            for i, margin in zip(others, margins, strict=True):
                x, y = reallocation.offsets_m[i, :2]
                ax.plot([anchors[i, 0], x], [anchors[i, 1], y], color=style.CABLE, lw=0.9)
                ax.plot(x, y, "o", color=style.colour(f"drone_{i + 1}"), ms=6)
                ax.annotate(f"{margin:.2f}", (x, y), (4, 5), textcoords="offset points", fontsize=7)
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
        ax.set_aspect("equal")
        ax.set_title(f"without drone {drone + 1}: {says}", fontsize=8)
    figure.subplots_adjust(left=0.02, right=0.98, bottom=0.02, top=0.93, wspace=0.05, hspace=0.18)
    return figure
