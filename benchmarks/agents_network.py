"""Table and figure of `agents_network.yaml`: rms error of the load over loss and delay of messages.

python benchmarks/agents_network.py runs/agents_network docs/pictures/agents_network.png
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

ERROR = "errors.load.circle.translational_error_rms_m"
AGENT, SYSTEM = "controller.agent", "system"
LOSS, DELAY = "controller.network.loss", "controller.network.delay_s"
DRONES = {"x500_trio": 3, "x500_hexa": 6}
LOST_M = 1.0
"""A load farther away than this is lost, as is one whose flight has failed."""

COLOURS = {"central": "#c1440e", "consensus": "#1f6f8b"}


def read(folder: Path) -> list[dict[str, float | str]]:
    """Rows of a sweep: agent, drones, loss, delay, rms error; infinite for a lost load."""
    rows: list[dict[str, float | str]] = []
    with (folder / "table.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            error = float(row[ERROR]) if row[ERROR] else np.inf
            rows.append({
                "agent": row[AGENT],
                "drones": DRONES[row[SYSTEM]],
                "loss": float(row[LOSS]),
                "delay_s": float(row[DELAY]),
                "rms_m": error if error < LOST_M else np.inf,
            })  # fmt: skip
    return rows


def write_table(rows: list[dict[str, float | str]], path: Path) -> None:
    """Write the rows as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["agent", "drones", "loss", "delay [s]", "rms of the load [m]"])
        for row in rows:
            error = f"{row['rms_m']:.4f}" if np.isfinite(row["rms_m"]) else "lost"
            writer.writerow([row["agent"], row["drones"], row["loss"], row["delay_s"], error])


def draw(rows: list[dict[str, float | str]], path: Path) -> None:
    """Draw the error over the delay, a line for each loss; a cross on top for a lost load."""
    losses = sorted({row["loss"] for row in rows})
    figure, panels = plt.subplots(1, 2, figsize=(10.5, 3.6), sharey=True, layout="constrained")
    for panel, drones in zip(panels, (3, 6), strict=True):
        for agent, colour in COLOURS.items():
            for loss in losses:
                of = [
                    r for r in rows if (r["agent"], r["drones"], r["loss"]) == (agent, drones, loss)
                ]
                of.sort(key=lambda row: row["delay_s"])
                delay = 1e3 * np.array([row["delay_s"] for row in of])
                error = np.array([row["rms_m"] for row in of])
                seen = np.isfinite(error)
                shade = 0.35 + 0.65 * (1.0 - loss)
                label = f"{agent}, {100 * loss:.0f} % lost"
                panel.plot(delay[seen], error[seen], "o-", color=colour, alpha=shade,
                           lw=1.0 + 2.0 * loss, ms=3, label=label)  # fmt: skip
                panel.plot(
                    delay[~seen], np.full((~seen).sum(), 0.9), "x", color=colour, alpha=shade
                )
        panel.set(title=f"{drones} drones", xlabel="delay of the messages [ms]", yscale="log")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("rms error of the load [m]")
    lines, labels = panels[1].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside right center", fontsize=8, frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Write the table beside this file and the picture."""
    folder, picture = Path(sys.argv[1]), Path(sys.argv[2])
    rows = read(folder)
    write_table(rows, Path(__file__).with_suffix(".csv"))
    draw(rows, picture)


if __name__ == "__main__":
    main()
