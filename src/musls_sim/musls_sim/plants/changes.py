"""Sudden changes of a system that a plant can be asked to make, see `Plant.apply`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from musls_description.config.errors import ConfigError
from musls_description.numerics.records import Writes
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.interface import Change
from musls_sim.plants.rigid_body import rotor_records


@dataclass(frozen=True)
class RotorEfficiency(Change):
    """A rotor gives less thrust and torque from now on.

    Attributes:
        drone: Number of the drone, from 1.
        rotor: Number of the rotor, from 1; None for all rotors of the drone.
        efficiency: Share of thrust and torque that is left, 0 for a stopped rotor.
    """

    what: ClassVar[str] = "rotor failure"
    cable_models: ClassVar[tuple[str, ...]] = ("rigid_links", "elastic", "massless", "rigid_rods")

    drone: int
    rotor: int | None
    efficiency: float

    @property
    def rows(self) -> tuple[int, slice]:
        """Index of what it concerns in arrays (n_drones, n_rotors)."""
        some = slice(None) if self.rotor is None else slice(self.rotor - 1, self.rotor)
        return self.drone - 1, some


@dataclass(frozen=True)
class LoadMass(Change):
    """The load has another mass from now on; its inertia changes in proportion."""

    what: ClassVar[str] = "load_mass"
    cable_models: ClassVar[tuple[str, ...]] = ("rigid_links", "elastic")

    mass_kg: float


@dataclass(frozen=True)
class CutCable(Change):
    """A cable parts in one of its segments from now on; both pieces move on.

    A chain of rigid links parts at the joint at the lower end of the link (the segment). A massless
    cable is gone.

    Attributes:
        cable: Number of the cable, from 1.
        segment: Number of the segment, from 1 at end 1 of the cable (the load).
    """

    what: ClassVar[str] = "cable_cut"
    cable_models: ClassVar[tuple[str, ...]] = ("rigid_links", "elastic", "massless")

    cable: int
    segment: int


@dataclass(frozen=True)
class ReleaseHook(Change):
    """The hook at an end of a cable opens; the cable goes with what holds its other end.

    Elastic cables part in the segment next to the hook.

    Attributes:
        cable: Number of the cable, from 1.
        at: "load" or "drone".
    """

    what: ClassVar[str] = "release"
    cable_models: ClassVar[tuple[str, ...]] = ("rigid_links", "elastic", "massless")

    cable: int
    at: str


@dataclass(frozen=True)
class AttachHook(Change):
    """The open hook of a cable closes on its place at the load.

    In rigid links an inelastic impact; elastic and massless cables are slack then, and nothing
    changes.

    Attributes:
        cable: Number of the cable, from 1.
    """

    what: ClassVar[str] = "attach"
    cable_models: ClassVar[tuple[str, ...]] = ("rigid_links", "elastic", "massless")

    cable: int


def check_cut(system: RigSystem, change: CutCable | ReleaseHook | AttachHook) -> None:
    """Refuse a change of a cable or segment that is not there with a ConfigError."""
    what = change.what
    if not 1 <= change.cable <= len(system.cables):
        raise ConfigError(
            f"{what}: cable {change.cable}: there are cables 1 to {len(system.cables)}"
        )
    links = system.cables[change.cable - 1].links
    if isinstance(change, CutCable) and not 1 <= change.segment <= links:
        raise ConfigError(
            f"{what}: segment {change.segment}: cable {change.cable} has segments 1 to {links}"
        )


def scale_rotors(
    system: RigSystem, rotors: NDArray[Any], change: RotorEfficiency, write: Writes
) -> None:
    """Make the change in a plant's table of rotors, (n_drones, n_rotors) of `ROTOR`.

    The change counts from the intact rotor, whatever happened before.
    """
    n_drones, n_rotors = rotors.shape
    if not 1 <= change.drone <= n_drones:
        raise ConfigError(f"drone {change.drone}: {system.name} has drones 1 to {n_drones}")
    if change.rotor is not None and not 1 <= change.rotor <= n_rotors:
        raise ConfigError(f"rotor {change.rotor}: the drones have rotors 1 to {n_rotors}")
    if not 0.0 <= change.efficiency <= 1.0:
        raise ConfigError(f"efficiency {change.efficiency:g}: must be between 0 and 1")
    intact = rotor_records(system)
    for field in ("thrust", "torque"):
        write(rotors[field], change.rows, change.efficiency * intact[field][change.rows])
