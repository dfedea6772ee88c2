"""Draws the curves of training: `python docs/pictures/learning_curve.py RUN.json ...`.

The files are those that examples/train_ppo.py writes beside its policies.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from musls_analysis.figures import style

HERE = Path(__file__).parent


def main(paths: list[str]) -> None:
    """Mean return over steps, a line a seed, a panel a level."""
    runs = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    levels = list(dict.fromkeys(run["level"] for run in runs))
    with style.styled():
        figure = style.new_figure(2.6)
        panels = figure.subplots(1, len(levels), squeeze=False)[0]
        for ax, level in zip(panels, levels, strict=True):
            for run in (run for run in runs if run["level"] == level):
                colour = style.colour(f"drone_{run['seed']}")
                steps, _, returns = zip(*run["curve"], strict=True)
                thousands = [number / 1000 for number in steps]
                ax.plot(thousands, returns, color=colour, label=f"seed {run['seed']}")
                ax.plot(thousands[-1], run["learned"][0], "o", color=colour)
            ax.axhline(run["formation"][0], color="0.4", linestyle="--", label="formation")
            ax.set_title(level)
            ax.plot([], [], "o", color="0.4", label="without spread")
            ax.set_xlabel("environment steps [thousands]")
            ax.grid(alpha=0.3)
        panels[0].set_ylabel("mean return")
        top = style.legend_on_top(figure, panels[0].get_legend_handles_labels()[0])
        style.margins(figure, 0.6, 0.15, 0.5, top + 0.2)
        style.save(figure, HERE / "learning_curve.png")


if __name__ == "__main__":
    main(sys.argv[1:])
