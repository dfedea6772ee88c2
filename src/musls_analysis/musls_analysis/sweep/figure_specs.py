"""Figures that a sweep can have."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from musls_description.schema import NonNegative, Positive, spec


@spec
class OverlayFigure:
    """Signals of all runs over the time since a stage began, a panel each.

    Attributes:
        kind: Tag.
        name: Of the file.
        stage: Stage, e.g. "engage".
        signals: E.g. "load.z_m", "load.yaw_deg".
        by: Parameter that colours the lines; default the first. Others go into columns.
        from_s: Start of the time axis after the beginning of the stage.
        until_s: End of the time axis after the beginning of the stage.
    """

    kind: Literal["overlay"] = "overlay"
    name: str = ""
    stage: str
    signals: Annotated[tuple[str, ...], Field(min_length=1)]
    by: str | None = None
    from_s: NonNegative = 0.0
    until_s: Positive | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if self.until_s is not None and self.until_s <= self.from_s:
            raise ValueError(f"from_s {self.from_s:g} must be below until_s {self.until_s:g}")


@spec
class MetricFigure:
    """Metrics over a parameter, with the spread of the repetitions.

    Attributes:
        kind: Tag.
        name: Of the file.
        x: Parameter of the horizontal axis; default the first. Others make a line each.
        panels: Columns of the table, a list per panel.
        log: Logarithmic vertical axis.
    """

    kind: Literal["metric"] = "metric"
    name: str = ""
    x: str | None = None
    panels: Annotated[tuple[tuple[str, ...], ...], Field(min_length=1)]
    log: bool = False


Columns = Annotated[tuple[str, ...], Field(min_length=1)]


@spec
class MapFigure:
    """Metrics over two parameters as coloured cells; means over all others and the repetitions.

    Attributes:
        kind: Tag.
        name: Of the file.
        x: Parameter of the horizontal axis; default the first.
        y: Parameter of the vertical axis; default the next.
        metrics: Columns of the table, a panel each.
    """

    kind: Literal["map"] = "map"
    name: str = ""
    x: str | None = None
    y: str | None = None
    metrics: Columns


@spec
class ParallelFigure:
    """Each run as a line through the values of all parameters and metrics.

    Attributes:
        kind: Tag.
        name: Of the file.
        metrics: Columns of the table; the last one colours the lines.
    """

    kind: Literal["parallel"] = "parallel"
    name: str = ""
    metrics: Columns


@spec
class DistributionFigure:
    """How often each value of a metric came, with percentiles.

    Attributes:
        kind: Tag.
        name: Of the file.
        metrics: Columns of the table, a panel each.
    """

    kind: Literal["distribution"] = "distribution"
    name: str = ""
    metrics: Columns


AnyFigure = Annotated[
    OverlayFigure | MetricFigure | MapFigure | ParallelFigure | DistributionFigure,
    Field(discriminator="kind"),
]
