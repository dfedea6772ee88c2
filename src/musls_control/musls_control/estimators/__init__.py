"""Estimators of the load that a scenario can name in `estimation.load`."""

from __future__ import annotations

import inspect
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import Field

from musls_control.estimators.interface import (
    DroneSensors,
    EstimatorSetup,
    LoadEstimator,
    LoadImuSpec,
)
from musls_description.errors import ConfigError
from musls_description.registry import Registry, any_of, check_arguments, load_class, user_code
from musls_description.schema import spec

LOAD_ESTIMATORS: Registry[Any] = Registry(
    "load estimator",
    "musls.load_estimators",
    {
        "quasi_static": "musls_control.estimators.quasi_static:QuasiStaticSpec",
        "ekf": "musls_control.estimators.ekf:EkfSpec",
    },
)
"""Specifications by kind: classes made with `spec` that have `kind` and `build(setup)`."""

AnyLoadEstimator = any_of(LOAD_ESTIMATORS)
"""Type of a scenario's `estimation.load` key."""


@LOAD_ESTIMATORS.register("mocap")
@spec
class SeenLoadSpec:
    """Motion capture sees the load; with `estimation.kind: truth` its motion is known.

    Attributes:
        kind: "mocap".
    """

    kind: Literal["mocap"] = "mocap"

    def build(self, setup: EstimatorSetup) -> None:
        """No estimator beside that of the drones."""


@LOAD_ESTIMATORS.register("python")
@spec
class OwnEstimatorSpec:
    """A load estimator of one's own.

    Attributes:
        kind: "python".
        source: Where the class is: "my.py:MyEstimator", or "package.module:MyEstimator".
        parameters: Further arguments of the class, by name.
    """

    kind: Literal["python"] = "python"
    source: Annotated[str, Field(pattern=r"^.+:\w+$")]
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)

    def build(self, setup: EstimatorSetup) -> LoadEstimator:
        """Load the class and make the estimator."""
        found = load_class(self.source)
        where = f"estimation.load.source = {self.source}"
        if not issubclass(found, LoadEstimator) or inspect.isabstract(found):
            raise ConfigError(f"{where}: the class must inherit musls.LoadEstimator, with `step`")
        checked = check_arguments(found, self.parameters, "estimation.load.parameters")
        with user_code(lambda: " before the flight"):
            estimator: LoadEstimator = found(**checked)
            estimator.prepare(setup)
        return estimator


__all__ = [
    "LOAD_ESTIMATORS", "AnyLoadEstimator", "DroneSensors", "EstimatorSetup", "LoadEstimator",
    "LoadImuSpec",
]  # fmt: skip
