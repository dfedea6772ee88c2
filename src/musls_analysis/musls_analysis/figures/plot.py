"""One of the report's figures, for `Recording.plot`."""

from __future__ import annotations

from matplotlib.figure import Figure

from musls_analysis.figures.style import styled
from musls_analysis.figures.write import figure_plans
from musls_analysis.recordings.recording import Recording
from musls_analysis.report.summary import summarise
from musls_description.errors import ConfigError


def plot(recording: Recording, name: str) -> Figure:
    """Draw a figure.

    Args:
        recording: The flight.
        name: Name of the figure.

    Raises:
        ConfigError: The recording has no such figure; names those that it has.
    """
    with styled():
        plans = {plan.name: plan for plan in figure_plans(recording, summarise(recording))}
        if name not in plans:
            raise ConfigError(f"no figure {name!r} of this recording; it has {', '.join(plans)}")
        return plans[name].draw()
