"""Segments that break at a tension or are cut: when within a step, and what is booked.

Tension is continuous in time. Between the begin of a step, its first stage and its end it is taken
as a parabola; what this says about a peak or a crossing is then checked by shorter steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from musls_description.numerics.compiled import compiled
from musls_description.numerics.layout import Tables
from musls_sim.plants.elastic.output import bending_energy, strain_energy
from musls_sim.plants.elastic.state import cables_of, segments_of

GAMMA = 2.0 - math.sqrt(2.0)
"""Time of the first stage, see `step`."""


@compiled()
def note_tensions(t, begin):
    """Keep the present tensions of all segments: at the begin of a step, or in its first stage."""
    for segment in segments_of(t):
        if begin:
            segment.begin_tension = segment.tension
        else:
            segment.first_tension = segment.tension


@compiled()
def check_overload(t):
    """Compare tensions with break forces after both stages of a step.

    Returns the largest ratio at its end, that of a peak inside and the peak's share of the step,
    and the largest change, over the break force.
    """
    end = peak = rise = 0.0
    when = 1.0
    for s in segments_of(t):
        if s.alive == 0.0 or s.break_force == math.inf:
            continue
        first, last = s.first_tension - s.begin_tension, s.tension - s.begin_tension
        end = max(end, s.tension / s.break_force)
        rise = max(rise, abs(first) / s.break_force, abs(last) / s.break_force)
        bend = (last - first / GAMMA) / (1.0 - GAMMA)
        slope = last - bend
        if bend >= 0.0 or slope <= 0.0 or slope >= -2.0 * bend:
            continue  # no peak inside
        at = -0.5 * slope / bend
        ratio = (s.begin_tension + 0.5 * slope * at) / s.break_force
        if ratio > peak:
            peak = ratio
            when = at
    return end, peak, when, rise


@compiled()
def overload(t):
    """Largest tension over break force now."""
    worst = 0.0
    for segment in segments_of(t):
        if segment.alive > 0.0:
            worst = max(worst, segment.tension / segment.break_force)
    return worst


@compiled()
def mark_broken(t, least):
    """Mark what breaks at the end of this step: one segment of each cable that is overloaded."""
    for cable in cables_of(t):
        worst = 0.0
        which = -1
        for s in range(cable.first_segment, cable.first_segment + cable.segments):
            ratio = segments_of(t)[s].tension / segments_of(t)[s].break_force
            if segments_of(t)[s].alive > 0.0 and ratio >= least and ratio > worst:
                worst = ratio
                which = s
        if which >= 0:
            segments_of(t)[which].marked = 1.0


@compiled()
def next_cut(t, after, end):
    """Time of the next cut as a share of the period, `end` if there is none before."""
    for segment in segments_of(t):
        if segment.alive > 0.0 and after < segment.cut_at < end:
            end = segment.cut_at
    return end


@compiled()
def part(t, at):
    """Part the marked segments and those whose cut is due; record the tensions they held.

    The tension vanishes at once, and so does the bending of the joints at both ends.
    """
    number = 0
    for cable in cables_of(t):
        for i in range(cable.segments):
            segment = segments_of(t)[cable.first_segment + i]
            due = segment.marked > 0.0 or segment.cut_at <= at
            if segment.alive == 0.0 or not due:
                continue
            loss = strain_energy(t, cable, i)
            if cable.bends:
                loss += bending_energy(t, cable, i) + bending_energy(t, cable, i + 1)
            t.sums.loss_breaks += loss
            segment.broken_at = at
            segment.broken_tension = segment.tension
            segment.broken_energy = loss
            segment.marked = 0.0
            segment.cut_at = math.inf
            segment.alive = segment.tension = 0.0
            segment.stiffness = segment.geometric_stiffness = 0.0
            number += 1
    return number


@dataclass(frozen=True)
class Break:
    """A segment that broke or was cut.

    Attributes:
        cable: Index of its cable, from 0.
        segment: Index of the segment from end 1, from 0.
        tension_n: Tension of the segment just before.
        energy_j: Strain energy that it held, with the bending of the joints at its ends.
    """

    time_s: float
    cable: int
    segment: int
    tension_n: float
    energy_j: float


def take_breaks(tables: Tables, begin_s: float, period_s: float) -> list[Break]:
    """Take what broke in a period out of the tables, in the order of time."""
    breaks = []
    segments = tables.segments
    rows = np.flatnonzero(segments["broken_at"] >= 0.0)
    for row in rows[np.argsort(segments["broken_at"][rows], kind="stable")]:
        cable = int(np.searchsorted(tables.cables["first_segment"], row, side="right")) - 1
        at, tension_n, energy_j = (
            float(segments[name][row]) for name in ("broken_at", "broken_tension", "broken_energy")
        )
        number = int(row - tables.cables["first_segment"][cable])
        breaks.append(Break(begin_s + at * period_s, cable, number, tension_n, energy_j))
    segments["broken_at"][rows] = -1.0
    return breaks
