"""Draws the figures of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from musls_analysis.figures.style import save, styled
from musls_analysis.sweep.metric_figure import metric_figure
from musls_analysis.sweep.overlay import overlay_figure
from musls_analysis.sweep.spec import MetricFigure, OverlayFigure, SweepSpec
from musls_analysis.sweep.store import FINISHED, Store

Rows = Sequence[Mapping[str, Any]]


def write_figures(sweep: SweepSpec, rows: Rows, store: Store) -> list[Path]:
    """Draw the figures that were asked for, or the usual ones.

    Returns:
        The files written; a figure without any data is left out.
    """
    if not any(row["status"] == FINISHED for row in rows):
        return []
    folder = store.folder / "figures"
    folder.mkdir(exist_ok=True)
    written = []
    with styled():
        for name, figure in _named(sweep.figures or list(_usual(sweep, rows))):
            if isinstance(figure, OverlayFigure):
                drawn = overlay_figure(sweep, figure, rows, store)
            else:
                drawn = metric_figure(sweep, figure, rows)
            if drawn is not None:
                path = folder / f"{name}.png"
                save(drawn, path)
                written.append(path)
    return written


def _named(figures: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Figures with file names of their own."""
    used: set[str] = set()
    for figure in figures:
        base = figure.name or (
            f"overlay_{figure.stage}" if isinstance(figure, OverlayFigure) else "metrics"
        )
        name = next(n for n in (base, *(f"{base}_{k}" for k in range(2, 1000))) if n not in used)
        used.add(name)
        yield name, figure


def _usual(sweep: SweepSpec, rows: Rows) -> Iterator[MetricFigure]:
    """The load's mean errors and the speed over each parameter."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    panels = [
        tuple(c for c in columns if c.startswith("errors.load.") and c.endswith(kind))
        for kind in (".translational_error_m", ".geodesic_error_deg")
    ]
    panels += [(c,) for c in ("max_tension_n", "real_time_factor") if c in columns]
    for key in sweep.parameters:
        name = f"over_{key.rsplit('.', 1)[-1]}"
        yield MetricFigure(name=name, x=key, panels=tuple(panel for panel in panels if panel))
