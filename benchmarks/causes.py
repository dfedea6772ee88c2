"""Contribution of each cause to Table III, from ideal drones to drones as measured: a waterfall.

    .venv/bin/python benchmarks/causes.py ../shared/flights --imperfections FILE --out FOLDER

Flies the paper's mission with more and more of what `musls fit-drones` found, and compares with the
recorded flights. Writes causes.md and causes.png.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from musls_analysis.comparison.compare import CompareOptions, compare_stage
from musls_analysis.comparison.cycles import cut
from musls_analysis.figures.style import new_figure, save, styled
from musls_analysis.paper.flights import FIRST_CYCLES_DROPPED, TABLE_III, some_cycles
from musls_bringup.api import fly
from musls_bringup.papers.reproduce import faults_override, paper
from musls_bringup.shipped import find_scenario
from musls_sim.scenario.imperfections import DroneImperfections, Imperfections

Errors = Mapping[tuple[str, str], float]


def steps_of(found: Imperfections) -> dict[str, Imperfections]:
    """Imperfections that grow, cause by cause."""
    pushes = replace(found, setpoint_delay_s=0.0, drones=tuple(
        DroneImperfections(level_tilt_rad=(
            d.level_tilt_rad[0] - d.thrust_tilt_rad[0], d.level_tilt_rad[1] - d.thrust_tilt_rad[1],
        )) for d in found.drones
    ))  # fmt: skip
    late = replace(pushes, setpoint_delay_s=found.setpoint_delay_s)
    return {
        "ideal drones": Imperfections(),
        "tilts that push": pushes,
        "delay of set-points": late,
        "leans and heights": found,
    }


def main() -> None:
    """Fly, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flights", type=Path)
    parser.add_argument("--imperfections", required=True)
    parser.add_argument("--system", default="x500_trio_swivel")
    parser.add_argument("--offset", default="-0.0285,0.0067,-0.06", help="recorded point [m]")
    parser.add_argument("--out", type=Path, default=Path("runs/causes"))
    options = parser.parse_args()
    point = [float(x) for x in options.offset.split(",")]
    plain = [f"system={options.system}", "system.cables.links=5"]
    found = find_scenario("paper", [f"imperfections={options.imperfections}"]).imperfections
    real = some_cycles([options.flights])
    steps: dict[str, Errors] = {}
    for name, faults in steps_of(found).items():
        flown = fly(paper([*plain, faults_override(faults)]))
        if not steps:
            steps["body origins compared"] = compared(real, flown, {})
        steps[name] = compared(real, flown, {"load": point})
        print(name, json.dumps({" ".join(k): round(v) for k, v in steps[name].items()}), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    lines = ["| | paper | " + " | ".join(steps) + " |", "|---" * (2 + len(steps)) + "|"]
    for stage, bodies in TABLE_III.items():
        for body, (theirs, _) in bodies.items():
            cells = [f"{its[stage, body]:.0f}" for its in steps.values()]
            lines.append(f"| {stage}, {body} | {theirs:.0f} | {' | '.join(cells)} |")
    (options.out / "causes.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with styled():
        save(waterfall(steps), options.out / "causes.png")


def compared(real: Mapping, flown: object, offsets: Mapping[str, list[float]]) -> dict:
    """Translational errors of a flight [mm]."""
    found = {}
    for stage, cuts in real.items():
        sim = cut(flown, stage, FIRST_CYCLES_DROPPED[stage])
        errors = compare_stage(stage, cuts, [sim], CompareOptions(offsets_m=offsets)).errors
        for body, its in errors.items():
            found[stage, body] = 1e3 * its.translational_error_m
    return found


def waterfall(steps: Mapping[str, Errors]) -> Figure:
    """Mean error over the bodies of each stage, falling from cause to cause; paper's as a line."""
    figure = new_figure(3.6)
    axes = figure.subplots(1, len(TABLE_III), sharey=True)
    names = list(steps)
    for ax, (stage, bodies) in zip(axes, TABLE_III.items(), strict=True):
        level = np.array([np.mean([its[stage, b] for b in bodies]) for its in steps.values()])
        before = np.concatenate([[0.0], level[:-1]])
        falls = ["tab:green" if b <= a else "tab:red" for a, b in pairwise(level)]
        colours = ["0.6", *falls]
        ax.bar(range(len(level)), level - before, bottom=before, color=colours, width=0.7)
        for k, value in enumerate(level):
            ax.text(k, value, f"{value:.0f}", ha="center", va="bottom", fontsize=7)
        ax.axhline(np.mean([mm for mm, _ in bodies.values()]), color="k", lw=0.8, ls="--")
        ax.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
        ax.set_title(stage, fontsize=8, pad=12)
    axes[0].set_ylabel("mean error of load and drones, mm (dashed: paper)", fontsize=7)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    main()
