"""Figures of a paper from our flights, over the paper's axes: `musls paper`.

What is drawn stands in the paper's file, as its numbers do; where the paper prints numbers or its
curve follows from its equations, they are drawn in black beside ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field

from musls_analysis.comparison.quantities import text_of, values_of
from musls_analysis.figures import style
from musls_analysis.recordings.recording import Recording
from musls_description.config.schema import Finite, spec

LINES = ("#0f6fb8", "#c2410c", "#4d7c0f", "#7e22ce", "#be185d", "#0f766e", "#a16207", "#475569")
PAPER: style.LineStyle = {"color": "black", "linewidth": 1.0, "linestyle": ":", "zorder": 4}
PANEL_IN = 1.5


@spec
class PaperPanel:
    """Axes of a figure.

    Attributes:
        label: Text at the vertical axis, with unit.
        signals: What is drawn, "load.x_m", "cable_1.tension_n", ...
        against: Another body: the difference to it is drawn.
        from_start: The change since the start is drawn.
        paper: What the paper has: a level, or points [x, y], by their texts.
    """

    label: str
    signals: tuple[str, ...]
    against: str | None = None
    from_start: bool = False
    paper: dict[str, Finite | tuple[tuple[Finite, Finite], ...]] = Field(default_factory=dict)


@spec
class PaperFigure:
    """A figure of a paper.

    Attributes:
        title: Which one, and of what.
        scenario: What is flown.
        set: Keys of the scenario that differ.
        curves: Several flights instead: scenario and keys that differ, by the texts of the legend.
        stage: The time counts from the begin of this stage.
        from_s: First time shown.
        until_s: Last time shown.
        x: A signal instead of the time at the horizontal axis.
        panels: Axes, one below the other.
        why: What differs, and why.
    """

    title: str
    scenario: str = ""
    set: dict[str, Any] = Field(default_factory=dict)
    curves: dict[str, dict[str, Any]] = Field(default_factory=dict)
    stage: str | None = None
    from_s: Finite | None = None
    until_s: Finite | None = None
    x: str | None = None
    panels: tuple[PaperPanel, ...]
    why: str = ""

    @property
    def flights(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Scenario and keys that differ, by the text of each curve ("" for a single one)."""
        return {
            name: (str(keys.get("scenario", self.scenario)), {**self.set, **_without(keys)})
            for name, keys in (self.curves or {"": {}}).items()
        }


def _without(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if key != "scenario"}


# ---------- Drawing


def draw(figure: PaperFigure, flights: Mapping[str, Recording]) -> bytes:
    """Draw a figure from the flights of its curves; a PNG."""
    with style.styled():
        drawn = drawn_figure(figure, flights)
        png = BytesIO()
        style.save(drawn, png)
    return png.getvalue()


def drawn_figure(figure: PaperFigure, flights: Mapping[str, Recording]) -> Figure:
    """The figure, not written to a file yet."""
    drawn = style.new_figure(0.5 + PANEL_IN * len(figure.panels))
    drawn.set_layout_engine("constrained")
    axes = drawn.subplots(len(figure.panels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, panel in zip(axes, figure.panels, strict=True):
        asked = False
        for c, (curve, recording) in enumerate(flights.items()):
            begin_s = 0.0
            if figure.stage is not None:
                begin_s = next(s.start_s for s in recording.stages if s.name == figure.stage)
            for s, name in enumerate(panel.signals):
                time_s, values, wanted = values_of(recording, name)
                if panel.against is not None:
                    other = f"{panel.against}.{name.partition('.')[2]}"
                    their_s, theirs, _ = values_of(recording, other)
                    moved = np.interp(time_s, their_s, theirs - theirs[0])
                    values, wanted = values - values[0] - moved, np.full(len(values), np.nan)
                elif panel.from_start:
                    values, wanted = values - values[0], wanted - values[0]
                x = time_s - begin_s
                shown = np.ones(len(x), bool)
                if figure.from_s is not None:
                    shown &= x >= figure.from_s
                if figure.until_s is not None:
                    shown &= x <= figure.until_s
                if figure.x is not None:
                    at_s, at, _ = values_of(recording, figure.x)
                    x = np.interp(time_s, at_s, at)
                several = not curve or len(panel.signals) > 1
                text = ", ".join(filter(None, [curve, text_of(name) if several else ""]))
                shade = LINES[(c * len(panel.signals) + s) % len(LINES)]
                width = max(2.2 - 0.5 * (c + s), 1.0)  # of two that are the same both are seen
                ax.plot(x[shown], values[shown], color=shade, linewidth=width, label=text)
                if not asked and figure.x is None and np.isfinite(wanted).any():
                    ax.plot(x[shown], wanted[shown], **style.SETPOINT_LINE, label="set-point")
                    asked = len(panel.signals) == 1
        for text, what in panel.paper.items():
            if isinstance(what, tuple):
                ax.plot(*np.array(what).T, "ko", ms=3.0, zorder=4, label=f"paper: {text}")
            else:
                ax.axhline(what, **PAPER, label=f"paper: {text}")
        ax.set_ylabel(panel.label)
        handles = {handle.get_label(): handle for handle in ax.get_legend_handles_labels()[0]}
        ax.legend(
            handles=list(handles.values()), loc="center left", bbox_to_anchor=(1.01, 0.5),
            fontsize=7.0,
        )  # fmt: skip
    axes[-1].set_xlabel("time [s]" if figure.x is None else text_of(figure.x))
    return drawn
