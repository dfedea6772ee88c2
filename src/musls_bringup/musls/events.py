"""Events of your own: a class derived from `musls.Event`, entered by `register("name")`."""

import sys

from musls._deprecated import FormerRegistry
from musls_sim.scenario.events import (
    EVENTS,
    Condition,
    EventContext,
    OnBody,
    OnDrone,
    When,
    body_row,
    check_cable,
    check_drone,
)

__all__ = [
    "EVENTS",
    "Condition",
    "EventContext",
    "OnBody",
    "OnDrone",
    "When",
    "body_row",
    "check_cable",
    "check_drone",
    "register",
]

register = EVENTS.register

sys.modules[__name__].__class__ = FormerRegistry
