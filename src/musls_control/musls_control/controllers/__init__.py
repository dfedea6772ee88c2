"""Controllers that a scenario can name: from the load's reference and the estimate to commands."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from musls_control.controllers.interface import Controller, ControlLevel, ControlSetup
from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError
from musls_description.config.registry import OwnClass, Registry, any_of
from musls_description.config.schema import Finite, Vector3, spec
from musls_description.numerics.arrays import Array

CONTROLLERS: Registry[Any] = Registry(
    "controller",
    "musls.controllers",
    {
        "learned": "musls_control.controllers.learned:LearnedSpec",
        "nmpc": "musls_control.controllers.nmpc.controller:NmpcSpec",
        "payload": "musls_control.controllers.payload.controller:PayloadSpec",
        "pid": "musls_control.controllers.pid:PidSpec",
        "rotortm": "musls_control.controllers.rotortm:RotorTmSpec",
    },
)
"""Specifications by kind: classes made with `spec` that have `kind` and `build(setup)`."""

AnyController = any_of(CONTROLLERS)
"""Type of a scenario's `controller` key."""


@CONTROLLERS.register("formation")
@spec
class FormationSpec:
    """Drones fly to their places in the formation round the load's set-point, without feedback.

    Attributes:
        kind: "formation".
    """

    kind: Literal["formation"] = "formation"

    def build(self, setup: ControlSetup) -> None:
        """No controller of its own: the mission's drone set-points go to the autopilot."""


@CONTROLLERS.register("open_loop")
@spec
class OpenLoopSpec:
    """Constant thrust and moment on each drone, without rotors and without control.

    Attributes:
        kind: "open_loop".
        thrust_n: Thrust along each drone's z axis, (n_drones,).
        moment_body_nm: Moment on each drone in its frame, (n_drones, 3) [N m].
    """

    kind: Literal["open_loop"] = "open_loop"
    thrust_n: tuple[Finite, ...]
    moment_body_nm: tuple[Vector3, ...] | None = None

    def build(self, setup: ControlSetup) -> Controller:
        """Make the controller."""
        n = setup.system.n_drones
        moments = self.moment_body_nm or ((0.0, 0.0, 0.0),) * n
        for name, rows in (("thrust_n", self.thrust_n), ("moment_body_nm", moments)):
            if len(rows) != n:
                raise ConfigError(f"controller.{name} has {len(rows)} entries for {n} drones")
        return _OpenLoop(np.column_stack([self.thrust_n, moments]))


class _OpenLoop(Controller):
    """Returns the same commands for ever."""

    level = ControlLevel.IDEAL_THRUST_MOMENT

    def __init__(self, commands: Array) -> None:
        self._commands = commands

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Thrust and moments, (n, 4)."""
        return self._commands


@CONTROLLERS.register("python")
@spec
class PythonSpec(OwnClass):
    """A controller class of one's own."""

    def build(self, setup: ControlSetup) -> Controller:
        """Load the class and make the controller."""
        made: Controller = self.make(Controller, "controller")
        return made


__all__ = ["CONTROLLERS", "AnyController", "ControlLevel", "ControlSetup", "Controller"]
