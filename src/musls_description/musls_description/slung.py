"""Check that a system is a slung load, for code that cannot treat other rigs."""

from __future__ import annotations

from musls_description.errors import ConfigError
from musls_description.system import RigSystem, SlungLoadSystem


def slung_system(system: RigSystem, what: str) -> SlungLoadSystem:
    """Return a system that is a slung load (one cable to each drone, nothing else), else raise.

    Args:
        system: Any system.
        what: Key that needs a slung load, for the error, e.g. "cable_model = rigid_links".

    Raises:
        ConfigError: It is another rig; the message names the parts that are not possible and the
            cable model that can have them.
    """
    if isinstance(system, SlungLoadSystem):
        return system
    parts = [name for name in ("anchors", "winches", "wheels") if getattr(system, name)]
    parts += ["cables with ends of their own"] if any(k.ends for k in system.cables) else []
    raise ConfigError(
        f"{what}: system {system.name} has {' and '.join(parts)}; only a load with one cable to "
        "each drone is possible there, choose cable_model: elastic"
    )


def formation_of(system: RigSystem, what: str) -> SlungLoadSystem:
    """Load and drones that fly in formation; winches on their cables may be there.

    Args:
        system: Any system.
        what: Key that needs a formation, for the error, e.g. "mission.stages".

    Raises:
        ConfigError: It has no formation.
    """
    return system.formation or slung_system(system, what)


def extended_load(system: RigSystem, what: str) -> None:
    """Refuse a load that is a point mass.

    Args:
        system: Any system.
        what: Key that needs a load with inertia, for the error, e.g. "cable_model = elastic".

    Raises:
        ConfigError: The load has no inertia.
    """
    if system.load is not None and system.load.point_mass:
        raise ConfigError(
            f"{what} needs load.inertia_kg_m2, but the load of {system.name} is a point mass; "
            "choose cable_model: massless"
        )
