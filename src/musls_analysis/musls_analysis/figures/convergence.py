"""Convergence of a flight's figures in its time step.

The same flight is flown with steps h, h/2, h/4, and on request finer ones. A figure that changes by
d1 from the first to the second of the last three and by d2 from there to the third converges if d2
is clearly smaller than d1; as a geometric series the changes to come sum up to d1 / (1 - d2 / d1)
(Richardson, Phil. Trans. R. Soc. A 226, 1927). Its band is that sum times a safety factor, as in
Roache's grid convergence index (J. Fluids Eng. 116, 1994), with what it changed before.

Jerks come at other moments with other steps, and after one all figures are a little different: they
scatter, however fine the step. The band of a figure whose changes do not shrink is several times
what it has scattered by; below a floor that counts for nobody it is that floor. No band is narrower
than 1.5 times what nine of ten figures of the flight with the same unit change by, or than half of
the figure. One that would be wider than half of the figure, and than the floor, is none, and the
figure is no result.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from musls_analysis.comparison.summary import PEAK_PLACES, numbers_by_path
from musls_analysis.recordings.recording import LOAD, Recording
from musls_description.numerics.arrays import Array
from musls_description.tables import ShownResult, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_RATIO = 0.7
"""Largest share of d1 that d2 may be for a figure to count as converging: order 1 has 0.5."""

MIN_RATIO = 0.25
"""Share that is assumed at least, that of order 2: a smaller one is mostly chance."""

SAFETY = 1.5
"""Factor of the band over the sum of the changes."""

COMMON_PERCENT = 90.0
"""Percentile of the changes of a flight's figures of the same unit that is the narrowest band."""

SETTLED = 2e-4
"""Changes below this share of a figure are small, too."""

SMALL = 4.0
"""Band over the sum of both changes where these are too small to tell how they go on."""

ALTERNATING = 3.0
"""Band over the larger change where the two have different signs: nothing is known of a limit."""

SCATTER = 3.0
"""Band over the spread of all values of a figure whose changes do not shrink."""

LARGEST = 0.5
"""Largest error, as a share of the figure; with a larger one nothing is known of it."""

PEAK_PATHS = tuple(f"tension.{where}.max_n" for where in PEAK_PLACES)

STEP_DEPENDENT = ("errors.", "cables.", "tension.")
"""Begin of the paths in summary.json of figures that steps change."""

FLOORS = {"_m": 1e-4, "_deg": 2e-2, "_n": 1e-2, "_fraction": 1e-2}
"""Negligible differences, by the unit at the end of a figure's name."""

COUNTED = {"_fraction": 1e-2}
"""Narrowest bands of figures that count samples, and so do not change gradually."""

TINY = 0.1
"""Share of the floor below which a band is so small that it is not widened to it."""


@dataclass(frozen=True)
class Converged:
    """A figure of a flight at the steps h, h/2, h/4, ...

    Attributes:
        values: Values that are tried, at least three.
        error: Band around the first in which the limit lies; None if nothing is known of it.
    """

    values: tuple[float, ...]
    error: float | None

    @classmethod
    def of(cls, name: str, values: tuple[float, ...], common: float = 0.0) -> Converged:
        """Judge a figure of a name that ends with its unit; `common`: usual changes of others."""
        first = values[-2] - values[-3]
        second = values[-1] - values[-2]
        d1, d2 = abs(first), abs(second)
        size = abs(values[0])
        before = abs(values[-3] - values[0])
        spread = max(values) - min(values)
        floor = FLOORS.get(_unit(name), 0.0)
        small = SMALL * (d1 + d2) + before
        if small <= TINY * floor or max(d1, d2) <= SETTLED * size:
            error = small
        elif spread <= floor:
            error = floor
        elif d2 <= MAX_RATIO * d1:
            error = SAFETY * d1 / (1.0 - max(d2 / d1, MIN_RATIO))
            if first * second < 0.0:
                error = max(error, ALTERNATING * d1)
            error += before
        else:
            error = SCATTER * spread
        error = max(error, min(SAFETY * common, LARGEST * size), COUNTED.get(_unit(name), 0.0))
        return cls(values, error if error <= max(LARGEST * size, floor) else None)

    @property
    def order(self) -> float | None:
        """Order of convergence that is seen in the last three; None if they do not shrink."""
        d1, d2 = (abs(b - a) for a, b in pairwise(self.values[-3:]))
        return math.log2(d1 / d2) if d1 > d2 > 0.0 else None

    def text(self, unit: str, scale: float = 1.0) -> str:
        """Say "307 mm +- 0.3 mm", or the values of a figure that does not converge."""
        if self.error is None:
            values = ", ".join(f"{scale * value:.4g}" for value in self.values)
            return f"not converged ({values} {unit})"
        error = scale * self.error
        digits = max(0, -math.floor(math.log10(error))) if error > 0.0 else 3
        error_text = f"{float(f'{error:.2g}'):g}" if error >= 1e-3 else "<0.001"
        return f"{scale * self.values[0]:.{min(digits, 3)}f} {unit} +- {error_text} {unit}"


def _unit(name: str) -> str:
    return "_" + name.rpartition("_")[2]


def _common_changes(values: Mapping[str, tuple[float, ...]]) -> dict[str, float]:
    """Largest change of most figures of each unit between the last three steps."""
    changes: dict[str, list[float]] = {}
    for name, its in values.items():
        change = max(abs(b - a) for a, b in pairwise(its[-3:]))
        changes.setdefault(_unit(name), []).append(change)
    return {unit: float(np.percentile(its, COMMON_PERCENT)) for unit, its in changes.items()}


@dataclass(frozen=True, repr=False)
class Convergence(ShownResult):
    """Figures of a flight and their convergence, as `musls fly --verify` shows them.

    Attributes:
        step_size_s: The flight's own step h.
        segments: Whether the cables' segments became shorter together with the step.
        figures: Figures of the summary by their path in it, "errors.load.circle..."; a largest
            tension of a sort that a flight has not is 0 there.
        events: Kinds of events that do not come equally often in all flights.
        body: The body that is farthest off at h.
        order: Order of convergence of that body's position, by the median over time; None if it is
            the same at all steps.
        time_s: Samples that all flights have, (T,).
        distance_m: Largest distance over the bodies of each other flight to that with the finest
            step, (levels - 1, T).
    """

    step_size_s: float
    segments: bool
    figures: Mapping[str, Converged]
    events: Sequence[str]
    body: str
    order: float | None
    time_s: Array
    distance_m: Array

    @classmethod
    def of(
        cls,
        recordings: Sequence[Recording],
        summaries: Sequence[Mapping[str, Any]],
        step_size_s: float,
        *,
        segments: bool = False,
    ) -> Convergence:
        """Compare flights at h, h/2, h/4, ..., and what was condensed from them."""
        columns = [
            dict.fromkeys(PEAK_PATHS, 0.0)
            | {
                path: value
                for path, value in numbers_by_path(summary)
                if isinstance(value, float) and path.startswith(STEP_DEPENDENT)
                if not path.endswith(".time_s")
            }
            for summary in summaries
        ]
        values = {
            name: tuple(column[name] for column in columns)
            for name in columns[0]
            if all(name in column for column in columns)
            if name not in PEAK_PATHS or any(column[name] for column in columns)
        }
        common = _common_changes(values)
        figures = {
            name: Converged.of(name, its, common[_unit(name)]) for name, its in values.items()
        }
        happened = [Counter(event.kind for event in r.events) for r in recordings]
        samples = min(len(r.bodies[LOAD].time_s) for r in recordings)
        paths = [
            np.stack([body.position_enu_m[:samples] for body in r.bodies.values()])
            for r in recordings
        ]
        off = [np.linalg.norm(path - paths[-1], axis=-1) for path in paths[:-1]]
        worst = int(off[0].max(axis=1).argmax())
        d1, d2 = (
            np.median(np.linalg.norm(b[worst] - a[worst], axis=-1)) for a, b in pairwise(paths[-3:])
        )
        return cls(
            step_size_s,
            segments,
            figures,
            [k for k in sorted(set().union(*happened)) if len({c[k] for c in happened}) > 1],
            list(recordings[0].bodies)[worst],
            float(np.log2(d1 / d2)) if min(d1, d2) > 0.0 else None,
            recordings[0].bodies[LOAD].time_s[:samples],
            np.stack([distance.max(axis=0) for distance in off]),
        )

    def sentence(self, stages: Sequence[str]) -> str:
        """The load's error in the given stages and the largest tensions, with their errors."""
        parts = []
        by = "step and segments" if self.segments else "step"
        for stage in stages:
            figure = self.figures.get(f"errors.{LOAD}.{stage}.translational_error_m")
            if figure is not None:
                where = stage.replace("_", " ")
                parts.append(f"load error {figure.text('mm', 1e3)} ({where}; {by})")
        for where, words in PEAK_PLACES.items():
            figure = self.figures.get(f"tension.{where}.max_n")
            if figure is not None:
                parts.append(f"tension {words} {figure.text('N')}")
        off = self.distance_m[0]
        order = "" if self.order is None else f", order {self.order:.1f}"
        parts.append(
            f"{self.body.replace('_', ' ')} {1e3 * off.max():.2g} mm off at most "
            f"({self.time_s[off.argmax()]:.1f} s){order}"
        )
        if self.events:
            parts.append(f"other events with other steps: {', '.join(self.events)}")
        return "; ".join(parts)

    def shown(self) -> Iterator[str | Table]:
        """Each figure with its error, its order and its values at h, h/2, h/4, ..."""
        levels = len(self.distance_m) + 1
        steps = [f"{1e3 * self.step_size_s / 2**k:g} ms" for k in range(levels)]
        rows = [
            (
                name,
                "none" if f.error is None else f"{f.error:.2g}",
                "" if f.order is None else f"{f.order:.1f}",
                *(f"{v:.4g}" for v in f.values),
            )
            for name, f in self.figures.items()
        ]
        order = "" if self.order is None else f", order {self.order:.1f}"
        off_mm = 1e3 * self.distance_m[0].max()
        yield f"{self.body.replace('_', ' ')} {off_mm:.2g} mm off at most{order}"
        yield Table(("figure", "error", "order", *steps), rows)

    def as_data(self) -> dict[str, Any]:
        """Data for summary.json."""
        return {
            "step_size_s": self.step_size_s,
            "segments": self.segments,
            "order": self.order,
            "differing_events": list(self.events),
            "max_distance_m": float(self.distance_m[0].max()),
            "figures": {
                n: vars(figure) | {"order": figure.order} for n, figure in self.figures.items()
            },
        }

    def plot(self) -> Figure:
        """Draw how far the other flights are from that with the finest step over time."""
        from musls_analysis.figures.style import logarithmic, new_figure

        figure = new_figure(3.0)
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot()
        for k, distance in enumerate(self.distance_m):
            label = f"{1e3 * self.step_size_s / 2**k:g} ms"
            axes.plot(self.time_s, 1e3 * np.maximum(distance, 1e-9), label=label)
        logarithmic(axes, "y")
        axes.set_xlabel("time [s]")
        finest_ms = 1e3 * self.step_size_s / 2 ** len(self.distance_m)
        axes.set_ylabel(f"distance to steps of {finest_ms:g} ms [mm]")
        axes.legend()
        return figure
