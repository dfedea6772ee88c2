"""All keys of scenarios and sweeps, with meaning, unit, default and range."""

from __future__ import annotations

import functools
from typing import Any

from musls_description.config.documented_keys import json_schema


@functools.cache
def schema_of(file: str) -> dict[str, Any]:
    """JSON schema of all keys of a "scenario", those of its system included, or of a "sweep"."""
    if file == "sweep":
        from musls_analysis.sweep.plan import SweepSpec as Spec
    else:
        from musls_sim.scenario.scenario import Scenario as Spec  # type: ignore[assignment]
    return json_schema(Spec)
