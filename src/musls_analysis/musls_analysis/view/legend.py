"""What colours mean: the bar of tensions, the names of two recordings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from musls_analysis.figures.style import FAINT, INK
from musls_analysis.view.bodies import SECOND
from musls_analysis.view.canvas import Canvas
from musls_analysis.view.tension_scale import SLACK, TensionScale

_BAR_PX, _STEPS = 9.0, 60


def draw_tension_bar(canvas: Canvas, scale: TensionScale, x: float, y: float, width: float) -> None:
    """Draw the colours of the cables with round tensions below.

    Args:
        canvas: Where to.
        scale: The colours.
        x: Left end.
        y: Upper edge of the bar; the title is above it.
        width: Length of the bar.
    """
    canvas.text(x, y - 7.0, "cable tension at the load [N]", 11.0, INK)
    tensions = (np.arange(_STEPS) + 0.5) / _STEPS * scale.limit_n
    for k, shade in enumerate(scale.colours(tensions)):
        left = x + k / _STEPS * width
        canvas.rectangle(left, y, width / _STEPS + 0.5, _BAR_PX, shade)
    for tension in scale.ticks_n():
        at = x + tension / scale.limit_n * width
        canvas.line(np.array([[at, y + _BAR_PX], [at, y + _BAR_PX + 3.0]]), INK, 0.8)
        canvas.text(at, y + _BAR_PX + 15.0, f"{tension:g}", 11.0, INK, align="center")
    canvas.rectangle(x - 52.0, y, 14.0, _BAR_PX, SLACK)
    canvas.text(x - 45.0, y + _BAR_PX + 15.0, "slack", 11.0, INK, align="center")


def draw_names(canvas: Canvas, names: Sequence[str], x: float, y: float) -> None:
    """Say which of two recordings is drawn in the bodies' own colours."""
    x += canvas.text(x, y, names[0], 12.0, INK, bold=True)
    x += canvas.text(x, y, "  in colours,  ", 12.0, FAINT)
    x += canvas.text(x, y, names[1], 12.0, SECOND, bold=True)
    canvas.text(x, y, "  in olive", 12.0, FAINT)
