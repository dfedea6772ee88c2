"""PX4's multicopter control chain, for any number of drones in one compiled call."""

from musls_control.px4.allocation import RotorLayout
from musls_control.px4.cascade import Px4Cascade
from musls_control.px4.parameters import PX4_PARAMETERS, Px4Parameter, px4_parameters
from musls_control.px4.takeoff import TakeoffState

__all__ = [
    "PX4_PARAMETERS",
    "Px4Cascade",
    "Px4Parameter",
    "RotorLayout",
    "TakeoffState",
    "px4_parameters",
]
