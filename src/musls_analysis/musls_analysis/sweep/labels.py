"""Names, units and colours of what a sweep's figures show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np

from musls_analysis.sweep.spec import SweepSpec

_UNITS = {
    "_m": ("m", 1.0), "_deg": ("°", 1.0), "_n": ("N", 1.0), "_s": ("s", 1.0), "_us": ("µs", 1.0),
}  # fmt: skip
_MILLIMETRES = "translational_error"
_SPECIAL = {
    "real_time_factor": "speed [times real time]",
    "refined_periods": "refined control periods",
    "step_size_s": "time step [s]",
}
_SMALL = 0.05
"""Parameters whose values are all smaller are shown with a power of ten."""
_PAPER_GAP = 0.13  # of the colour map at its light end, too faint on white


class Text(NamedTuple):
    """How a metric is shown.

    Attributes:
        axis: Text of the axis, with unit.
        series: What distinguishes it from others with the same axis.
        scale: Factor for the unit.
    """

    axis: str
    series: str
    scale: float = 1.0


def metric_text(column: str) -> Text:
    """Texts for a column of the table, e.g. "errors.load.engage.translational_error_m"."""
    *where, what = column.split(".")
    if what in _SPECIAL:
        return Text(_SPECIAL[what], what.replace("_", " "))
    if where[:1] == ["slack_fraction"]:
        return Text("slack fraction", what.replace("_", " "))
    places = [p.replace("_", " ") for p in where if p not in ("errors", "cables", "stages", "*")]
    unit, scale = "", 1.0
    for suffix, (text, factor) in _UNITS.items():
        if what.endswith(suffix):
            what, unit, scale = what.removesuffix(suffix), text, factor
            break
    if what.startswith(_MILLIMETRES):
        unit, scale = "mm", 1000.0
    name = what.replace("_error_max", " error, greatest").replace("_", " ")
    series = ", ".join(places) if places else name
    return Text(f"{name} [{unit}]" if unit else name, series, scale)


def signal_text(name: str) -> str:
    """Axis of a signal, e.g. "load yaw [°]" for "load.yaw_deg"."""
    body, _, kind = name.partition(".")
    text = metric_text(kind)
    return f"{body.replace('_', ' ')} {text.axis.replace('[mm]', '[m]')}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def value_text(value: Any) -> str:
    """A parameter's value, short."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        if value and not 1e-3 <= abs(value) < 1e5:
            mantissa, _, exponent = f"{value:.3e}".partition("e")
            return rf"${float(mantissa):g}\times10^{{{int(exponent)}}}$"
        return f"{value:.4g}"
    return str(value)


class ParameterText:
    """How a parameter is shown: small numbers with a common power of ten in the unit."""

    def __init__(self, sweep: SweepSpec, key: str) -> None:
        """Look at all its values.

        Args:
            sweep: The sweep.
            key: The parameter.
        """
        parameter = sweep.parameters[key]
        name, bracket, unit = sweep.label(key).partition(" [")
        self.name = name
        self.exponent = 0
        values = parameter.values if parameter.values is not None else (parameter.max,)
        if all(_is_number(v) for v in values):
            largest = max(abs(v) for v in values)
            if 0.0 < largest < _SMALL:
                self.exponent = 3 * round(float(np.log10(largest)) / 3.0)
        power = rf"$10^{{{self.exponent}}}$" if self.exponent else ""
        self.axis = name
        if power or bracket:
            self.axis += f" [{' '.join(filter(None, (power, unit.removesuffix(']'))))}]"

    def value(self, value: Any) -> str:
        """A value in the unit of `axis`."""
        return value_text(value * 10.0**-self.exponent if self.exponent else value)


def group_text(sweep: SweepSpec, group: Mapping[str, Any]) -> str:
    """Values of some parameters, with their units."""
    parts = []
    for key, value in group.items():
        text = ParameterText(sweep, key)
        unit = text.axis.removeprefix(text.name).strip(" []")
        shown = text.value(value)
        if text.exponent and value:
            shown += f"\N{MULTIPLICATION SIGN}{unit}"
        elif _is_number(value) and unit and not text.exponent:
            shown += f" {unit}"
        parts.append(f"{text.name} {shown}")
    return ", ".join(parts)


def shades(count: int) -> list[Any]:
    """Colours from dark to light for ordered values."""
    places = np.linspace(0.0, 1.0 - _PAPER_GAP, count) if count > 1 else [0.3]
    return [matplotlib.colormaps["viridis"](place) for place in places]


def distinct(values: Sequence[Any]) -> list[Any]:
    """Distinct values, numbers in their order, others as they come."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    if all(_is_number(v) for v in found):
        found.sort()
    return found


def groups(
    sweep: SweepSpec, rows: Sequence[Mapping[str, Any]], without: str
) -> list[dict[str, Any]]:
    """Combinations of all parameters but one that occur; one empty if there is no other."""
    others = [key for key in sweep.parameters if key != without]
    return distinct([{key: row[key] for key in others} for row in rows])


def belongs(row: Mapping[str, Any], group: Mapping[str, Any]) -> bool:
    """Whether a row has these values."""
    return all(row[key] == value for key, value in group.items())
