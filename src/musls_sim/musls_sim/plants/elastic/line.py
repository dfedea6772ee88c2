"""The line that a cable is made of where its system says nothing else.

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

EA_N = 2.4e5
EI_N_M2 = 0.0
RELAXATION_TIME_S = 2.4e-4
"""Axial damping over EA."""
