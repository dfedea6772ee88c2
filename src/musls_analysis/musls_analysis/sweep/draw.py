"""Draws the figures of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from musls_analysis.figures.style import save, styled
from musls_analysis.sweep.metric_figure import metric_figure
from musls_analysis.sweep.overlay import overlay_figure
from musls_analysis.sweep.spec import (
    DistributionFigure,
    Grid,
    MapFigure,
    MetricFigure,
    OverlayFigure,
    ParallelFigure,
    SweepSpec,
)
from musls_analysis.sweep.store import FINISHED, Store
from musls_analysis.sweep.study_figures import distribution_figure, map_figure, parallel_figure

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
            drawn = _drawn(sweep, figure, rows, store)
            if drawn is not None:
                path = folder / f"{name}.png"
                save(drawn, path)
                written.append(path)
    return written


def _drawn(sweep: SweepSpec, figure: Any, rows: Rows, store: Store) -> Figure | None:
    if isinstance(figure, OverlayFigure):
        return overlay_figure(sweep, figure, rows, store)
    if isinstance(figure, MapFigure):
        return map_figure(sweep, figure, rows)
    if isinstance(figure, ParallelFigure):
        return parallel_figure(sweep, figure, rows)
    if isinstance(figure, DistributionFigure):
        return distribution_figure(sweep, figure, rows)
    return metric_figure(sweep, figure, rows)


def _named(figures: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Figures with file names of their own."""
    used: set[str] = set()
    for figure in figures:
        usual = {"overlay": "overlay_{stage}", "metric": "metrics"}.get(figure.kind, figure.kind)
        base = figure.name or usual.format(stage=getattr(figure, "stage", ""))
        name = next(n for n in (base, *(f"{base}_{k}" for k in range(2, 1000))) if n not in used)
        used.add(name)
        yield name, figure


def _usual(sweep: SweepSpec, rows: Rows) -> Iterator[Any]:
    """The metrics asked for, the load's mean errors and the speed.

    Over each parameter; besides, over two parameters as a map, over more as parallel coordinates,
    and of random draws their distribution.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    asked = [metric.column for metric in sweep.metrics if metric.column in columns]
    errors = [
        tuple(c for c in columns if c.startswith("errors.load.") and c.endswith(kind))
        for kind in (".translational_error_m", ".geodesic_error_deg")
    ]
    panels = [(c,) for c in asked] + [panel for panel in errors if panel]
    panels += [(c,) for c in ("max_tension_n", "real_time_factor") if c in columns]
    drawn = not isinstance(sweep.sampling, Grid)
    whole = tuple(dict.fromkeys([*(c for panel in errors for c in panel[:1]), *asked]))
    if len(sweep.parameters) == 2 and not drawn and whole:
        yield MapFigure(name="map", metrics=whole)
    if len(sweep.parameters) > 2 and whole:
        yield ParallelFigure(name="parallel", metrics=whole)
    if drawn and whole:
        more = ("max_tension_n",) if "max_tension_n" in columns else ()
        yield DistributionFigure(name="distribution", metrics=tuple(dict.fromkeys(whole + more)))
    for key in sweep.parameters:
        name = f"over_{key.rsplit('.', 1)[-1]}"
        yield MetricFigure(name=name, x=key, panels=tuple(panels))
