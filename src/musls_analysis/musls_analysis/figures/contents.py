"""Figure of what a recording holds: the paths from above, and all heights over time."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from musls_analysis.figures import style
from musls_analysis.recordings.recording import Recording


def contents_figure(recording: Recording) -> Figure:
    """Draw the paths in x and y at equal scale, and z over time with the gaps left open."""
    figure = style.new_figure(3.6)
    above, heights = figure.subplots(1, 2)
    for body, track in recording.bodies.items():
        steps_s = np.diff(track.time_s)
        usual_s = float(np.median(steps_s)) if len(steps_s) else 0.0
        after_gaps = 1 + np.flatnonzero(steps_s > 5.0 * usual_s)
        time_s = np.insert(track.time_s, after_gaps, np.nan)
        x, y, z = np.insert(track.position_enu_m, after_gaps, np.nan, axis=0).T
        above.plot(x, y, color=style.colour(body))
        heights.plot(time_s - recording.start_s, z, color=style.colour(body))
    above.set(xlabel="x, east (m)", ylabel="y, north (m)", aspect="equal", adjustable="datalim")
    heights.set(xlabel=f"time from {recording.start_s:.6g} s (s)", ylabel="z, up (m)")
    handles = style.body_handles(recording.bodies)
    top = style.legend_on_top(figure, handles)
    style.margins(figure, 0.6, 0.15, 0.5, top + 0.15, wspace=0.25)
    return figure
