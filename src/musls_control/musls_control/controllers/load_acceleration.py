"""Controllers that ask for the load's acceleration; the chain of `payload` does the rest."""

from __future__ import annotations

import numpy as np

from musls_control.controllers.interface import (
    Controller,
    ControlLevel,
    ControlSetup,
    WatchedController,
    level_of,
    prepare_controller,
)
from musls_control.controllers.payload.controller import PayloadSpec
from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_description.numerics.arrays import Array


def flying_controller(controller: Controller, setup: ControlSetup) -> Controller:
    """Prepare a controller; what flies for one of level `load_acceleration` is a whole chain."""
    prepare_controller(controller, setup)
    if level_of(controller) is ControlLevel.LOAD_ACCELERATION:
        return LoadAcceleration(controller, setup)
    return controller


class LoadAcceleration(Controller):
    """Brings the acceleration that a controller asks of the load onto the cables.

    The load's law of `payload` (Sreenath and Kumar, the thesis of paper 000, see there) gets a
    reference that is where the load is and moves as it moves, with this acceleration: then all its
    feedback of position is zero. It keeps the attitude of the mission's reference.
    """

    def __init__(self, asking: Controller, setup: ControlSetup) -> None:
        spec = PayloadSpec(output="direct" if setup.rods else "autopilot", integral_m_s2=(0.0, 0.0))
        self._asking, self._payload = asking, spec.build(setup)
        self.level = self._payload.level  # type: ignore[misc]  # by the scenario
        self.keeps_headings = bool(getattr(asking, "keeps_headings", False))  # type: ignore[misc]
        self._watched = WatchedController(asking, ((3,), (4,)))

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Start the controller and the distribution of its forces."""
        self._watched.start(time_s, estimate)
        self._payload.start(time_s, estimate)

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Commands of `payload` for the acceleration, and the yaw, that are asked for."""
        asked = self._watched.step(time_s, reference, estimate)
        derivatives = np.zeros_like(reference.derivatives)
        derivatives[:, 3] = reference.derivatives[:, 3]
        derivatives[0, :3] = estimate.position_enu_m[0]
        derivatives[1, :3] = estimate.velocity_enu_m_s[0]
        derivatives[2, :3] = asked[:3]
        if len(asked) == 4:
            derivatives[:, 3] = asked[3], 0.0, 0.0, 0.0, 0.0
        return self._payload.step(time_s, LoadReference(derivatives, reference.tilt), estimate)

    def numbers(self) -> dict[str, float]:
        """Figures of the controller that asks."""
        return self._asking.numbers()

    @property
    def happened(self) -> list[tuple[str, str]]:
        """Reports of the controller that asks."""
        return self._asking.happened
