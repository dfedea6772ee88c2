"""Rope materials: what a rope of a material and a nominal diameter weighs, stretches and carries.

Each figure is divided by the square of the nominal diameter d, as makers' tables follow it.
`docs/cable_models.md` (Ropes by material) gives the source of each value, and what is derived or
assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Material = Literal["hmpe", "polyester", "nylon", "steel", "aramid", "cord"]
"""Names of the materials."""


@dataclass(frozen=True)
class RopeMaterial:
    """Properties of ropes of one material.

    Attributes:
        what: Description in words.
        mass_kg_m3: Mass per length over d^2.
        stiffness_pa: Axial stiffness EA of small loads over d^2, of a rope that has bedded in.
        strength_pa: Breaking force over d^2, of a rope without knots.
        relaxation_s: Axial damping over EA. A loss factor belongs to one frequency: that at which
            2 kg bounce on 2.4 m of a rope of 3 mm.
        wires_across: Rope's over wire's diameter, for the bending stiffness; infinite where fibres
            are so fine that the rope has none.
        thinnest_m: Smallest nominal diameter that is sold by the metre.
    """

    what: str
    mass_kg_m3: float
    stiffness_pa: float
    strength_pa: float
    relaxation_s: float
    wires_across: float = float("inf")
    thinnest_m: float = 1e-3

    @property
    def diameters_m(self) -> tuple[float, ...]:
        """Nominal diameters that are sold, thinnest first."""
        return tuple(d for d in STANDARD_DIAMETERS_M if d >= self.thinnest_m)

    def mass_kg_m(self, diameter_m: float) -> float:
        """Mass per length."""
        return self.mass_kg_m3 * diameter_m**2

    def diameter_m(self, mass_kg_m: float) -> float:
        """Nominal diameter of a rope of a mass per length."""
        return (mass_kg_m / self.mass_kg_m3) ** 0.5

    def ea_n(self, diameter_m: float) -> float:
        """Axial stiffness, force per strain."""
        return self.stiffness_pa * diameter_m**2

    def break_force_n(self, diameter_m: float) -> float:
        """Breaking force."""
        return self.strength_pa * diameter_m**2

    def ei_n_m2(self, diameter_m: float) -> float:
        """Bending stiffness: round wires that slide on each other have EA d_wire^2 / 16."""
        return self.ea_n(diameter_m) * (diameter_m / self.wires_across) ** 2 / 16.0


STANDARD_DIAMETERS_M = tuple(
    1e-3 * d for d in (0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24)
)
"""Nominal diameters in which ropes are usually sold."""

MATERIALS: dict[Material, RopeMaterial] = {
    "hmpe": RopeMaterial(
        "high-modulus polyethylene (Dyneema, Spectra), single braid of 12 strands",
        mass_kg_m3=822.0,
        stiffness_pa=2.4e5 / 0.003**2,
        strength_pa=1.23e9,
        relaxation_s=2.4e-4,
        thinnest_m=0.5e-3,
    ),
    "polyester": RopeMaterial(
        "polyester (Dacron), braid",
        mass_kg_m3=679.0,
        stiffness_pa=3.57e9,
        strength_pa=3.08e8,
        relaxation_s=6.1e-4,
    ),
    "nylon": RopeMaterial(
        "nylon (polyamide), braid",
        mass_kg_m3=585.0,
        stiffness_pa=7.3e8,
        strength_pa=2.07e8,
        relaxation_s=2.7e-3,
    ),
    "steel": RopeMaterial(
        "wire rope 7x19",
        mass_kg_m3=3990.0,
        stiffness_pa=4.04e10,
        strength_pa=6.33e8,
        relaxation_s=3.6e-5,
        wires_across=15.0,
        thinnest_m=1.5e-3,
    ),
    "aramid": RopeMaterial(
        "para-aramid (Kevlar, Twaron, Technora), braid",
        mass_kg_m3=709.0,
        stiffness_pa=1.83e10,
        strength_pa=7.8e8,
        relaxation_s=2.7e-4,
        thinnest_m=0.75e-3,
    ),
    "cord": RopeMaterial(
        "cheap cord of polypropylene fibres",
        mass_kg_m3=453.0,
        stiffness_pa=1.06e9,
        strength_pa=1.06e8,
        relaxation_s=2.2e-3,
    ),
}

ASSUMED: Material = "hmpe"
"""Material of a rope whose system names none."""
