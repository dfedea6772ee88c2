"""Plants: the physics of a system, one for each model of the cables."""

from __future__ import annotations

from collections.abc import Callable

from musls_description.config.registry import Registry
from musls_sim.plants.interface import Plant, PlantSetup

PLANTS: Registry[Callable[[PlantSetup], Plant]] = Registry(
    "cable model",
    "musls.plants",
    {
        "rigid_links": "musls_sim.plants.rigid_links.start:build",
        "elastic": "musls_sim.plants.elastic.plant:build",
        "massless": "musls_sim.plants.massless.light_lines:build",
        "rigid_rods": "musls_sim.plants.rigid_rods:build",
    },
)
"""Functions that build a plant, by the scenario's `cable_model`."""
