"""Errors per body and stage as a table that terminals and notebooks show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, overload

import numpy as np

from musls_analysis.comparison.errors import stage_errors
from musls_analysis.recordings.recording import Recording

if TYPE_CHECKING:
    from rich.table import Table

_HEADINGS = ("body", "stage", "mean [m]", "max [m]", "rms [m]", "mean [°]", "max [°]", "rms [°]")


@dataclass(frozen=True)
class StageError:
    """How far a body was from its set-point in one stage, over all samples of the stage.

    Attributes:
        body: "load", "drone_1", ...
        stage: Name of the stage.
        translational_error_m: Mean distance (eq. 12 of the seed paper).
        translational_error_max_m: Greatest distance.
        translational_error_rms_m: Root mean square of the distance.
        geodesic_error_deg: Mean angle (eq. 13).
        geodesic_error_max_deg: Greatest angle.
        geodesic_error_rms_deg: Root mean square of the angle.
    """

    body: str
    stage: str
    translational_error_m: float
    translational_error_max_m: float
    translational_error_rms_m: float
    geodesic_error_deg: float
    geodesic_error_max_deg: float
    geodesic_error_rms_deg: float


@dataclass(frozen=True)
class ErrorTable(Sequence[StageError]):
    """A sequence of errors, bodies in their order, stages in that of time.

    Attributes:
        rows: The errors.
    """

    rows: tuple[StageError, ...]

    def by_body(self) -> dict[str, dict[str, dict[str, float]]]:
        """Numbers by body, stage and name, as in summary.json."""
        result: dict[str, dict[str, dict[str, float]]] = {}
        for row in self.rows:
            numbers = asdict(row)
            del numbers["body"], numbers["stage"]
            result.setdefault(row.body, {})[row.stage] = numbers
        return result

    @overload
    def __getitem__(self, index: int) -> StageError: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[StageError, ...]: ...
    def __getitem__(self, index: int | slice) -> StageError | tuple[StageError, ...]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[StageError]:
        return iter(self.rows)

    def __str__(self) -> str:
        return "\n".join("  ".join(cells) for cells in self._cells())

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table("body", "stage", title="error to set-point")
        for heading in _HEADINGS[2:]:
            table.add_column(heading, justify="right")
        for cells in self._cells():
            table.add_row(*cells)
        return table

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self._cells())
        return f"<table><thead>{row(_HEADINGS, 'th')}</thead><tbody>{body}</tbody></table>"

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for body, stage, *numbers in (tuple(asdict(row).values()) for row in self.rows):
            lengths, angles = numbers[:3], numbers[3:]
            yield body, stage, *(f"{x:.4f}" for x in lengths), *(f"{x:.2f}" for x in angles)


def error_table(recording: Recording) -> ErrorTable:
    """Errors of every body that has set-points, in every stage that has samples."""
    rows = []
    for body, stages in stage_errors(recording).items():
        for stage, (distance, angle) in stages.items():
            degrees = (float(np.degrees(x)) for x in (angle.mean, angle.max, angle.rms))
            rows.append(
                StageError(body, stage, distance.mean, distance.max, distance.rms, *degrees)
            )
    return ErrorTable(tuple(rows))
