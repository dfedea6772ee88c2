"""What a fit writes, and reading it again to replay another recording with it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.replay.fit import FitResult
from musls_analysis.replay.parameters import Setup, put_all
from musls_analysis.replay.replay import ReplayResult
from musls_description.errors import ConfigError
from musls_description.schema import read_text, to_yaml

FIT, SYSTEM = "fit.json", "system.yaml"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def numbers(result: FitResult, source: str) -> dict[str, Any]:
    """The numbers of a fit, JSON-ready; a deviation is null where it is infinite or unknown."""
    columns = zip(
        result.parameters, result.start, result.value, result.uncertainty.std, result.at_bound,
        strict=True,
    )  # fmt: skip
    names = [parameter.name for parameter in result.parameters]
    return {
        "recording": source,
        "parameters": {
            p.name: {
                "value": float(value), "std": _finite(std), "unit": p.unit, "start": float(start),
                "lower": p.lower, "upper": p.upper, "at_bound": bound or None,
            }
            for p, start, value, std, bound in columns
        },
        "correlation": [[_finite(c) for c in row] for row in result.uncertainty.correlation],
        "hard_to_tell_apart": [[names[i] for i in group] for group in result.uncertainty.alike],
        "samples": result.samples,
        "effective_samples": _finite(result.uncertainty.effective_samples / 6.0),
        "replays": result.replays,
        "converged": result.converged,
        "before": _errors(result.before),
        "after": _errors(result.after),
    }  # fmt: skip


def _errors(result: ReplayResult) -> dict[str, float]:
    return {
        "translational_error_m": result.translational_error_m,
        "geodesic_error_deg": float(np.degrees(result.geodesic_error_rad)),
    }


def write(result: FitResult, source: str, folder: Path) -> dict[str, Any]:
    """Write fit.json and system.yaml (to fly with); returns the numbers."""
    found = numbers(result, source)
    (folder / FIT).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    (folder / SYSTEM).write_text(to_yaml(result.setup.system), encoding="utf-8")
    return found


def read_values(path: Path) -> dict[str, float]:
    """Values of a fit, by parameter.

    Args:
        path: fit.json, or the folder that holds it.

    Raises:
        ConfigError: No such file, or it is not a fit's.
    """
    file = path / FIT if os.path.isdir(path) else path
    try:
        entries = json.loads(read_text(file))["parameters"]
        values = {name: float(entry["value"]) for name, entry in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{file}: not the {FIT} of a fit") from None
    if not all(map(math.isfinite, values.values())):
        raise ConfigError(f"{file}: a value that is not finite")
    return values


def apply(setup: Setup, values: Mapping[str, float], where: str) -> Setup:
    """The setup with the values of a fit.

    Raises:
        ConfigError: They do not fit the system; names the file.
    """
    try:
        return put_all(setup, values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def table(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Rows for people: name, value, deviation, unit, start, bounds, remark."""
    rows: list[tuple[str, ...]] = []
    for name, entry in found["parameters"].items():
        std, bound = entry["std"], entry["at_bound"]
        if bound:
            remark = f"at its {bound} bound"
        elif std is None:
            remark = "not determined by this recording"
        elif std > (entry["upper"] - entry["lower"]) / 2.0:
            remark = "hardly determined by this recording"
        else:
            remark = ""
        rows.append((
            name, f"{entry['value']:.4g}", "-" if std is None else f"{std:.2g}", entry["unit"],
            f"{entry['start']:.4g}", f"{entry['lower']:.4g} .. {entry['upper']:.4g}", remark,
        ))  # fmt: skip
    return rows
