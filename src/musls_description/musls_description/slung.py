"""Which systems are slung loads, for what can do nothing else."""

from __future__ import annotations

from musls_description.errors import ConfigError
from musls_description.system import RigSystem, SlungLoadSystem


def slung_system(system: RigSystem, what: str) -> SlungLoadSystem:
    """Say that a system is a slung load: each drone on a cable of its own, and nothing else.

    Args:
        system: Any system.
        what: Who needs it, e.g. "cable_model = rigid_links".

    Raises:
        ConfigError: It is another rig; names what is in the way and the model that can have it.
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
        what: Who needs it, e.g. "mission.stages".

    Raises:
        ConfigError: It has no formation.
    """
    return system.formation or slung_system(system, what)


def extended_load(system: RigSystem, what: str) -> None:
    """Refuse a load that is a point mass.

    Args:
        system: Any system.
        what: Who needs a body, e.g. "cable_model = elastic".

    Raises:
        ConfigError: The load has no inertia.
    """
    if system.load is not None and system.load.point_mass:
        raise ConfigError(
            f"{what} needs load.inertia_kg_m2, but the load of {system.name} is a point mass; "
            "choose cable_model: massless"
        )
