"""Line that a cable is made of: material, axial law, and what its segments remember.

A new axial law stands here, and its keys in `ElasticLine` (system/slung_system.py). It takes its
constants from `AXIAL`, what it remembers of a segment from `MEMORY`, and answers with force, slope
and the energy that belongs to the force; `remember` moves the memory on when a step is done.
A law from a user's file is called by its address (`own_law.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy

from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.system.cable_law import CableLaw
from musls_description.system.slung_system import Cable
from musls_sim.plants.elastic.cables.own_law import (
    MOST_NUMBERS,
    call,
    places,
    stiffness_at_rest,
    strain_at_rest,
)

AXIAL = np.dtype(
    [
        ("stiffness", float),
        ("damping", float),
        ("permanent_share", float),
        ("slack", int),
        ("law_first", int),  # of its pieces in the table of laws
        ("law_rows", int),
        ("own_law", int),  # address of its function, 0 for none
        ("own_parameters", int),  # address
        ("after", float, (MOST_NUMBERS,)),  # room for what such a law remembers, and its energy
        ("after_energy", float, (1,)),
    ],
    align=True,
)
"""Constants of a cable's axial law."""

MEMORY = np.dtype(
    [("largest_strain", float), ("own", float, (MOST_NUMBERS,)), ("energy", float)], align=True
)
"""Memory of a segment; `own` and `energy` [J/m] with a user's law."""

SMALL_STRAIN = 1e-8
"""Strain difference from which the slope of a user's law is computed."""

LAW = np.dtype([("coefficients", float, (4,)), ("strain", float), ("energy", float)], align=True)
"""Piece of a tabulated axial law: strain where it begins, cubic of the force, energy up to it."""

MIN_END_SLOPE = 0.2
"""Slope of a table at its ends over that of the straight line between the last two pairs."""


Strain = Callable[[float], float]


def linear_strain(ea_n: float) -> Strain:
    """Strain of a tension for a constant stiffness."""
    return lambda tension: tension / ea_n


LARGEST_STRAIN = 10.0
"""Up to which the strain of a tension is looked for."""


@dataclass(kw_only=True)
class LineProperties:
    """Material and section of a cable.

    Attributes:
        ea_n: Axial stiffness; not used with a table.
        law: Pairs (strain, force [N]) instead of `ea_n`, both increasing.
        law_linear: Straight lines between the pairs.
        own_law: Law from a user's file instead of both.
        damping_n_s: Force per rate of strain.
        permanent_share: Share of the largest strain so far that stays (see `axial_law`).
        slack: Cannot push.
        ei_n_m2: Bending stiffness.
        bending_damping_n_m2_s: Moment per rate of curvature.
        clamp_factor: Stiffness of a clamp's joint over EI / segment length: 2 is of second order
            (half a segment bends), 1 the joint of the elements that Robotica 2024 uses.
        drag_across_n_s2_m3: Air drag across, per length and squared speed: rho C d / 2.
        drag_along_n_s2_m3: Along.
        break_force_n: Tension at which a segment breaks: a number for all or (segments,).
    """

    ea_n: float = 1e5
    law: Sequence[tuple[float, float]] | None = None
    law_linear: bool = False
    own_law: CableLaw | None = None
    damping_n_s: float = 0.0
    permanent_share: float = 0.0
    slack: bool = True
    ei_n_m2: float = 0.0
    bending_damping_n_m2_s: float = 0.0
    clamp_factor: float = 2.0
    drag_across_n_s2_m3: float = 0.0
    drag_along_n_s2_m3: float = 0.0
    break_force_n: float | Array = np.inf

    @property
    def strain(self) -> Strain:
        """Strain of a tension."""
        if (own := self.own_law) is not None:
            return lambda tension: strain_at_rest(own, tension)
        if self.law is None:
            return linear_strain(self.ea_n)
        rows = law_records(self.law, self.law_linear)

        def excess(strain: float, tension: float) -> float:
            return float(table_law(rows, 0, len(rows), strain)[0]) - tension

        def at_rest(tension: float) -> float:
            if (most_n := excess(LARGEST_STRAIN, 0.0)) < tension:
                raise ConfigError(
                    f"cable law: gives {most_n:.4g} N at a strain of {LARGEST_STRAIN:g}, too "
                    f"little for the {tension:.4g} N that the cable carries"
                )
            return float(scipy.optimize.brentq(excess, 0.0, LARGEST_STRAIN, (tension,), xtol=1e-15))

        return at_rest

    def records(self, first_piece: int) -> tuple[np.void, Records]:
        """Record `AXIAL`, and the pieces of its table if there is one, which begin at a row."""
        axial = np.zeros(1, AXIAL)[0]
        axial["stiffness"] = self.ea_n
        axial["damping"] = self.damping_n_s
        axial["permanent_share"] = self.permanent_share
        axial["slack"] = self.slack
        if self.own_law is not None:
            axial["own_law"], axial["own_parameters"] = places(self.own_law)
        if self.law is None:
            return axial, np.zeros(0, LAW)
        at_rest = np.interp(0.0, *np.array(self.law, float).T)
        if abs(at_rest) > 1e-9 * max(abs(self.law[-1][1]), 1.0):
            raise ConfigError(f"cable law: force at strain 0 must be 0, not {at_rest:.4g} N")
        laws = law_records(self.law, self.law_linear)
        axial["law_first"] = first_piece
        axial["law_rows"] = len(laws)
        return axial, laws

    @property
    def bends(self) -> bool:
        """Whether it has bending stiffness or damping."""
        return self.ei_n_m2 > 0.0 or self.bending_damping_n_m2_s > 0.0


def law_records(table: Sequence[tuple[float, float]], linear: bool = False) -> Records:
    """Pieces (`LAW`) of an axial law given as pairs (strain, force [N]).

    Both strictly increasing, at least two pairs; monotone cubics between them, or straight lines.
    """
    strain, force = np.array(table, float).T
    if len(strain) < 2 or (np.diff(strain) <= 0.0).any() or (np.diff(force) <= 0.0).any():
        raise ConfigError(
            f"cable law: strain and force must both increase from row to row, not {list(table)}"
        )
    width = np.diff(strain)
    pieces = np.zeros((4, len(strain) - 1))
    if linear:
        pieces[2] = np.diff(force) / width
        pieces[3] = force[:-1]
    else:
        # SciPy may choose slope 0 at an end, where a cable would have no stiffness.
        secants = np.diff(force) / width
        slopes = scipy.interpolate.PchipInterpolator(strain, force).derivative()(strain)
        slopes[0] = max(slopes[0], MIN_END_SLOPE * secants[0])
        slopes[-1] = max(slopes[-1], MIN_END_SLOPE * secants[-1])
        pieces[:] = scipy.interpolate.CubicHermiteSpline(strain, force, slopes).c
    slope = pieces[2, -1] + width[-1] * (2.0 * pieces[1, -1] + 3.0 * width[-1] * pieces[0, -1])
    laws = np.zeros(len(strain) + 1, LAW)
    laws["strain"] = [strain[0], *strain]
    laws["coefficients"][0, :2] = force[0], pieces[2, 0]  # below the table
    laws["coefficients"][1:-1] = pieces[::-1].T
    laws["coefficients"][-1, :2] = force[-1], slope
    area = width * (
        pieces[3] + width * (pieces[2] / 2 + width * (pieces[1] / 3 + width * pieces[0] / 4))
    )
    laws["energy"][1:] = np.concatenate([[0.0], np.cumsum(area)])
    laws["energy"] -= table_law(laws, 0, len(laws), 0.0)[2]
    return laws


# A table is interpolated by monotone cubics (Fritsch and Butland, as in SciPy's
# PchipInterpolator) and goes on along its end slopes. Damping acts on the rate of the strain. A
# slack cable (the default) cannot push: its tension is max(0, F(strain) + c strain rate), which
# is continuous in position and velocity. With damping, tension therefore begins when F + c
# strain' = 0, earlier than the strain by at most the relaxation time c / EA.


@compiled()
def table_law(laws, first, count, strain):
    """Force [N], slope [N] and energy per metre [J/m] of a table's law at a strain."""
    k = first + count - 1
    while k > first + 1 and strain < laws[k].strain:
        k -= 1
    if k == first + 1 and strain < laws[k].strain:
        k = first
    piece = laws[k]
    a = piece.coefficients
    e = strain - piece.strain
    force = a[0] + e * (a[1] + e * (a[2] + e * a[3]))
    slope = a[1] + e * (2.0 * a[2] + e * 3.0 * a[3])
    area = e * (a[0] + e * (a[1] / 2 + e * (a[2] / 3 + e * a[3] / 4)))
    return force, slope, piece.energy + area


@compiled()
def first_stretch(axial, laws, strain):
    """Force [N], slope [N], energy per metre [J/m] of a line that was never stretched further."""
    if axial.law_rows > 0:
        return table_law(laws, axial.law_first, axial.law_rows, strain)
    k = axial.stiffness
    return k * strain, k, 0.5 * k * strain * strain


# A new rope beds in: of its largest strain e_m so far the share s stays, and it is stiffer then,
# F(e) = F_0((e - s e_m) / (1 - s)) for e < e_m, with the energy (1 - s) W_0 of the same strain. So
# of the work W_0 of a first stretch s W_0 is lost.


@compiled()
def bedding(share, most, strain, strain_rate):
    """Rest strain, factor of the stiffness, and share of the force that stores energy."""
    if strain < most:
        return share * most, 1.0 / (1.0 - share), 1.0
    return 0.0, 1.0, 1.0 - share if strain_rate > 0.0 else 1.0


# Of a user's law the energy is known, and not which part of the force stores it. So all of its
# work counts as lost while a step is solved, and what is stored is given back when it is done.


@compiled()
def _own(axial, memory, strain, strain_rate, dt):
    """Tension of a user's law; leaves what it remembers and its energy in `axial`."""
    return call(
        axial.own_law,
        axial.own_parameters,
        memory.own.ctypes.data,
        axial.after.ctypes.data,
        strain,
        strain_rate,
        dt,
        axial.after_energy.ctypes.data,
    )


@compiled(inlined=True)
def axial_law(axial, laws, memory, strain, strain_rate, faster, since, was_taut):
    """Tension of a segment with damping, the part that stores energy, and its slope by the strain.

    The strain's rate follows the strain `faster` times, 1 / (d h); the memory is `since` old [s].
    `was_taut`: it goes on to carry, be it by pushing, as a guess of what it does at another strain.
    """
    if axial.own_law != 0:
        more = strain + SMALL_STRAIN
        ahead = _own(axial, memory, more, strain_rate + faster * SMALL_STRAIN, since)
        tension = _own(axial, memory, strain, strain_rate, since)
        elastic = 0.0
        slope = (ahead - tension) / SMALL_STRAIN
    else:
        rest = 0.0
        stiffer = 1.0
        elastic_share = 1.0
        if axial.permanent_share > 0.0:
            most = memory.largest_strain
            rest, stiffer, elastic_share = bedding(axial.permanent_share, most, strain, strain_rate)
        tension, slope, _ = first_stretch(axial, laws, stiffer * (strain - rest))
        elastic = elastic_share * tension
        slope = stiffer * slope
    tension += axial.damping * strain_rate
    slope += axial.damping * faster
    if axial.slack == 1:
        elastic = max(elastic, 0.0)
        if tension <= 0.0 and not was_taut:
            tension = 0.0
            slope = 0.0
    return tension, elastic, slope


@compiled()
def energy_per_length(axial, laws, memory, strain):
    """Strain energy per rest length [J/m]."""
    if axial.own_law != 0:
        return memory.energy
    s = axial.permanent_share
    if s > 0.0 and strain < memory.largest_strain:
        strain = (strain - s * memory.largest_strain) / (1.0 - s)
    if axial.slack == 1 and strain <= 0.0:
        return 0.0
    return (1.0 - s) * first_stretch(axial, laws, strain)[2]


@compiled()
def remembers(axial):
    """Whether the law depends on what its segments remember."""
    return axial.permanent_share > 0.0 or axial.own_law != 0


@compiled()
def remember(axial, memory, strain, strain_rate, since):
    """Move the memory of a segment on to the end of a step.

    Returns the energy per length that a user's law stored in it [J/m].
    """
    memory.largest_strain = max(memory.largest_strain, strain)
    if axial.own_law == 0:
        return 0.0
    _own(axial, memory, strain, strain_rate, since)
    for k in range(MOST_NUMBERS):
        memory.own[k] = axial.after[k]
    gain = axial.after_energy[0] - memory.energy
    memory.energy = axial.after_energy[0]
    return gain


# ---------- The line that a cable is made of, and what it is where its system says nothing
#
# Axially by material and diameter. The thousands of filaments of a fibre rope slide on each other:
# EI is the sum of theirs, EA d^2 / 16 with d = 17 um (assumed), 4e-6 N m2. Bending then reaches
# sqrt(EI / T), 1 mm at 4 N, along the line, far less than a segment: EI = 0.


def line_of(
    cable: Cable,
    ea_n: float | None = None,
    damping_n_s: float | None = None,
    ei_n_m2: float | None = None,
) -> LineProperties:
    """Material of a cable: as given here, else as in its description, else the default line."""
    instead: dict[str, Any] = {} if ea_n is None else {"ea_n": ea_n, "law": None, "own_law": None}
    instead |= {} if damping_n_s is None else {"damping_n_s": damping_n_s}
    instead |= {} if ei_n_m2 is None else {"ei_n_m2": ei_n_m2}
    if instead:
        cable = replace(cable, elastic=replace(cable.elastic, **instead))
    elastic = cable.elastic
    common = {
        f.name: getattr(elastic, f.name) for f in fields(LineProperties) if hasattr(elastic, f.name)
    }
    own = elastic.own_law
    return LineProperties(
        **common
        | {
            "ea_n": cable.ea_n if own is None else stiffness_at_rest(own),
            "law_linear": elastic.law_interpolation == "linear",
            "damping_n_s": cable.axial_damping_n_s,
            "ei_n_m2": cable.ei_n_m2,
            "slack": not elastic.rod,
            "drag_across_n_s2_m3": cable.drag_across_n_s2_m3,
            "break_force_n": cable.break_force_n or np.inf,
        }
    )
