"""The line that a cable is made of, and what it is where its system says nothing.

A 3 mm single braid of high-modulus polyethylene (Dyneema, 12 strands). Makers' data sheets of such
braids (Samson AmSteel-Blue, 1/8 in) give about 11 kN strength, 7.5 g/m (the seed paper's cable: 8.3
g/m) and 0.46 % elastic elongation at 10 % of the strength: EA = 1.1 kN / 0.0046 = 2.4e5 N. Its
thousands of filaments slide on each other: EI is the sum of theirs, EA d^2 / 16 with d = 17 um,
4e-6 N m2. Bending then reaches sqrt(EI / T), 1 mm at 4 N, along the line, far less than a segment:
EI = 0. Damping: a loss factor of 0.05 at the 34 Hz at which a 2 kg body bounces on 2.4 m of it,
which is a relaxation time of 0.24 ms.

The figures of the braid are quoted from memory of the maker's sheet and still to be checked against
it; filament diameter and loss factor are assumptions of the usual size.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from musls_description.rigging import ElasticLine
from musls_sim.plants.elastic.axial import law_rows, table_law
from musls_sim.plants.elastic.equilibrium import Strain, linear_strain, table_strain

EA_N = 2.4e5
EI_N_M2 = 0.0
RELAXATION_TIME_S = 2.4e-4
"""Axial damping over EA."""


class Line(NamedTuple):
    """What `rig.RigCable` needs to know of a cable's material; its fields of the same names."""

    ea_n: float
    law: Sequence[tuple[float, float]] | None
    law_linear: bool
    damping_n_s: float
    slack: bool
    ei_n_m2: float
    bending_damping_n_m2_s: float
    clamp_factor: float
    drag_across_n_s2_m3: float
    drag_along_n_s2_m3: float
    break_force_n: float

    @property
    def strain(self) -> Strain:
        """Strain of a tension."""
        if self.law is None:
            return linear_strain(self.ea_n)
        rows = law_rows(self.law, self.law_linear)
        return table_strain(lambda strain: float(table_law(rows, strain)[0]))


def line_of(
    given: ElasticLine,
    ea_n: float | None = None,
    damping_n_s: float | None = None,
    ei_n_m2: float | None = None,
) -> Line:
    """Material of a cable: what is given here, else by its description, else the default line.

    Args:
        given: The cable's description.
        ea_n: Axial stiffness instead.
        damping_n_s: Axial damping instead.
        ei_n_m2: Bending stiffness instead.
    """
    law = given.law if ea_n is None else None
    ea = ea_n or given.ea_n or EA_N
    if law is not None:  # the stiffness of small strains
        (e0, f0), (e1, f1) = next(p for p in pairwise(law) if p[1][0] > 0.0)
        ea = (f1 - f0) / (e1 - e0)
    damping = given.damping_n_s if damping_n_s is None else damping_n_s
    return Line(
        ea_n=ea,
        law=law,
        law_linear=given.law_interpolation == "linear",
        damping_n_s=RELAXATION_TIME_S * ea if damping is None else damping,
        slack=not given.rod,
        ei_n_m2=given.ei_n_m2 if ei_n_m2 is None else ei_n_m2,
        bending_damping_n_m2_s=given.bending_damping_n_m2_s,
        clamp_factor=given.clamp_factor,
        drag_across_n_s2_m3=given.drag_across_n_s2_m3,
        drag_along_n_s2_m3=given.drag_along_n_s2_m3,
        break_force_n=given.break_force_n or np.inf,
    )
