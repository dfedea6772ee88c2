"""Custom sensors: their base class, their registry, and what they are built with."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from musls_control.estimate import Estimate
from musls_description.config.errors import ConfigError
from musls_description.config.registry import AnyOf, Registry, requires
from musls_description.config.schema import spec
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.interface import PlantState


def _checked(kind: Any) -> Any:
    """Refuse a class that builds nothing, or whose readings have no names."""
    names = getattr(kind, "readings", ())
    if not isinstance(names, (tuple, list)) or not all(
        isinstance(name, str) and name and not set(name) & set(" /\t\n") for name in names
    ):
        raise ConfigError(f"{kind.__name__}.readings = {names!r}: must be a tuple of names")
    return requires("build", base=lambda: SensorModel)(kind)


SENSORS: Registry[Any] = Registry("sensor", "musls.sensors", {}, _checked)
"""Specifications by kind: classes made with `spec` derived from `SensorModel`."""

AnySensor = Annotated[Any, AnyOf(SENSORS)]
"""Type of an entry of a scenario's `sensors`."""


@dataclass(frozen=True)
class SensorSetup:
    """Truth, period and noise that a sensor is built with.

    Attributes:
        state: The truth; the memory stays the same.
        period_s: Control period.
        generator: Noise of this sensor and of those after it.
    """

    system: RigSystem
    state: PlantState
    period_s: float
    generator: np.random.Generator


@spec
class SensorModel:
    """Base of sensors; a `spec` class derived from it needs `kind` and `build`.

    Attributes:
        kind: Kind of the sensor.
        readings: Names of the numbers that are recorded, with units: `("force_n",)`.
    """

    kind: str
    readings: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def build(self, setup: SensorSetup) -> Callable[[Estimate], Sequence[float] | None]:
        """Make the function that measures at the end of each control period.

        It may write into the estimate, and returns the numbers of `readings`.
        """
        raise NotImplementedError
