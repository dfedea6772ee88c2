"""Layout of rerun's viewer: the scene, the plots beside it, phase and colours below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from musls_analysis.view.subject import Subject
from musls_analysis.view.tension_scale import has_tension

if TYPE_CHECKING:
    import rerun.blueprint as rrb


def layout(subjects: Sequence[Subject]) -> rrb.Blueprint:
    """Views of what the subjects have data for."""
    import rerun.blueprint as rrb

    scene = rrb.Spatial3DView(
        origin="/", name=" and ".join(subject.name for subject in subjects),
        contents=["/run/**", "/with/**"], background=[250, 251, 252],
        line_grid=rrb.LineGrid3D(visible=True, spacing=1.0, color=[139, 152, 168, 120]),
    )  # fmt: skip
    coloured = any(map(has_tension, subjects))
    plots = []
    if len(subjects) == 2:
        plots.append(("difference", "distance between the two [m]"))
    if coloured:
        plots.append(("tension", "cable tension at the load [N]"))
    if subjects[0].recording.setpoints:
        plots.append(("error", "distance to the set-point [m]"))
        plots.append(("angle", "angle to the set-point [deg]"))
    left = [scene, rrb.TextDocumentView(origin="/phase", name="phase")]
    shares = [7, 1]
    if coloured:
        bottom = [left[1], rrb.Spatial2DView(origin="/legend", name="cable tension")]
        left[1] = rrb.Horizontal(*bottom)
    if subjects[0].recording.events:
        left.append(rrb.TextLogView(origin="/events", name="events"))
        shares.append(1)
    column = rrb.Vertical(*left, row_shares=shares)
    parts = [column]
    if plots:
        views = [rrb.TimeSeriesView(origin=f"/{path}", name=name) for path, name in plots]
        parts = [rrb.Horizontal(column, rrb.Vertical(*views), column_shares=[5, 3])]
    return rrb.Blueprint(
        *parts, rrb.TimePanel(state="expanded", timeline="time"), collapse_panels=True
    )
