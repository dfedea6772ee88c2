"""Estimators of the load that a scenario can name in `estimation.load`."""

from __future__ import annotations

from typing import Any, Literal

from musls_control.estimators.interface import (
    DroneSensors,
    EstimatorSetup,
    LoadEstimator,
    LoadImuSpec,
)
from musls_description.config.registry import OwnClass, Registry, UserCodeError, any_of, user_code
from musls_description.config.schema import spec

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
        """No estimator of the load but those of the drones."""


@LOAD_ESTIMATORS.register("python")
@spec
class OwnEstimatorSpec(OwnClass):
    """A load estimator of one's own."""

    def build(self, setup: EstimatorSetup) -> LoadEstimator:
        """Load the class and make the estimator."""
        estimator: LoadEstimator = self.make(LoadEstimator, "estimation.load")
        with user_code(lambda: " before the flight", type(estimator), "prepare"):
            estimator.prepare(setup)
        imu = estimator.load_imu
        if not (imu is None or isinstance(imu, LoadImuSpec)):
            name = type(estimator).__name__
            raise UserCodeError(f"{name}.load_imu = {imu!r}: must be a musls.LoadImuSpec or None")
        return estimator


__all__ = [
    "LOAD_ESTIMATORS", "AnyLoadEstimator", "DroneSensors", "EstimatorSetup", "LoadEstimator",
    "LoadImuSpec",
]  # fmt: skip
