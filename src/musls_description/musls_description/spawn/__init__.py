"""Where a run starts: on the ground with slack cables, or hanging at rest in the air."""

from musls_description.spawn.configuration import Configuration, configuration_from_directions
from musls_description.spawn.equilibrium import (
    HangingEquilibrium,
    drones_above,
    hanging_equilibrium,
    slung_between,
    slung_state,
)
from musls_description.spawn.ground import ground_spawn

__all__ = [
    "Configuration",
    "HangingEquilibrium",
    "configuration_from_directions",
    "drones_above",
    "ground_spawn",
    "hanging_equilibrium",
    "slung_between",
    "slung_state",
]
