"""Controllers: from the load's reference and the estimate to commands for the drones."""

from musls_control.controllers.interface import Controller, ControlLevel, ControlSetup
from musls_control.controllers.kinds import CONTROLLERS, AnyController

__all__ = ["CONTROLLERS", "AnyController", "ControlLevel", "ControlSetup", "Controller"]
