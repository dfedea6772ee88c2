"""Cable models of your own: a class derived from `Plant`.

`register("name")` enters a function that builds it from a `PlantSetup`.
"""

import sys

from musls._deprecated import FormerRegistry
from musls_sim.plants import PLANTS
from musls_sim.plants.interface import (
    AttachHook,
    Change,
    CutCable,
    EventRecord,
    LoadMass,
    Plant,
    PlantInputs,
    PlantSetup,
    PlantState,
    PrescribedMotion,
    ReleaseHook,
    RotorEfficiency,
)

__all__ = [
    "PLANTS",
    "AttachHook",
    "Change",
    "CutCable",
    "EventRecord",
    "LoadMass",
    "Plant",
    "PlantInputs",
    "PlantSetup",
    "PlantState",
    "PrescribedMotion",
    "ReleaseHook",
    "RotorEfficiency",
    "register",
]

register = PLANTS.register

sys.modules[__name__].__class__ = FormerRegistry
