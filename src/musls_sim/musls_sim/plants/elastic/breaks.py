"""Segments that break at a tension or are cut: when within a step, and what is booked.

Tension is continuous in time. Between the begin of a step, its first stage and its end it is taken
as a parabola; what this says about a peak or a crossing is then checked by shorter steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.elastic import state as c
from musls_sim.plants.elastic.output import bending_energy, strain_energy
from musls_sim.plants.elastic.state import (
    ALIVE,
    BENDS,
    BROKE_AT,
    BROKE_ENERGY,
    BROKE_TENSION,
    CLAMP_A,
    CLAMP_B,
    CUT_AT,
    DOOMED,
    ELASTIC,
    FIRST_SEGMENT,
    GEOMETRIC,
    LIMIT,
    LOSS_BREAK,
    SEGMENTS,
    STIFFNESS,
    T_BEGIN,
    T_FIRST,
    TENSION,
    Tables,
)

GAMMA = 2.0 - np.sqrt(2.0)
"""Time of the first stage, see `step`."""


@compiled()
def note_tensions(t, column):
    """Keep the present tensions of all segments in a column of `breaks`."""
    for s in range(t.segments.shape[0]):
        t.breaks[s, column] = t.segments[s, TENSION]


@compiled()
def judge(t):
    """Compare tensions with break forces after both stages of a step."""
    end = peak = rise = 0.0
    when = 1.0
    for s in range(t.segments.shape[0]):
        b = t.breaks[s]
        if t.segments[s, ALIVE] == 0.0 or b[LIMIT] == np.inf:
            continue
        first, last = b[T_FIRST] - b[T_BEGIN], t.segments[s, TENSION] - b[T_BEGIN]
        end = max(end, (b[T_BEGIN] + last) / b[LIMIT])
        rise = max(rise, abs(first) / b[LIMIT], abs(last) / b[LIMIT])
        bend = (last - first / GAMMA) / (1.0 - GAMMA)
        slope = last - bend
        if bend >= 0.0 or slope <= 0.0 or slope >= -2.0 * bend:
            continue  # no peak inside
        at = -0.5 * slope / bend
        ratio = (b[T_BEGIN] + 0.5 * slope * at) / b[LIMIT]
        if ratio > peak:
            peak, when = ratio, at
    return end, peak, when, rise


@compiled()
def overload(t):
    """Largest tension over break force now."""
    worst = 0.0
    for s in range(t.segments.shape[0]):
        if t.segments[s, ALIVE] > 0.0:
            worst = max(worst, t.segments[s, TENSION] / t.breaks[s, LIMIT])
    return worst


@compiled()
def doom(t, least):
    """Mark what breaks at the end of this step: one segment of each cable that is overloaded."""
    for kind in t.kinds:
        worst, which = 0.0, -1
        for s in range(kind[FIRST_SEGMENT], kind[FIRST_SEGMENT] + kind[SEGMENTS]):
            ratio = t.segments[s, TENSION] / t.breaks[s, LIMIT]
            if t.segments[s, ALIVE] > 0.0 and ratio >= least and ratio > worst:
                worst, which = ratio, s
        if which >= 0:
            t.breaks[which, DOOMED] = 1.0


@compiled()
def next_cut(t, after, end):
    """Time of the next cut as a share of the period, `end` if there is none before."""
    for s in range(t.segments.shape[0]):
        at = t.breaks[s, CUT_AT]
        if t.segments[s, ALIVE] > 0.0 and after < at < end:
            end = at
    return end


@compiled()
def part(t, at):
    """Part all segments that are marked, or whose cut is due, and book what they held.

    The tension vanishes at once, and so does the bending of the joints at both ends.
    """
    number = 0
    for k in range(t.kinds.shape[0]):
        kind, cable = t.kinds[k], t.cables[k]
        for i in range(kind[SEGMENTS]):
            segment, b = t.segments[kind[FIRST_SEGMENT] + i], t.breaks[kind[FIRST_SEGMENT] + i]
            due = b[DOOMED] > 0.0 or b[CUT_AT] <= at
            if segment[ALIVE] == 0.0 or not due:
                continue
            lost = strain_energy(t, kind, cable, i)
            if kind[BENDS]:
                if i > 0 or kind[CLAMP_A]:
                    lost += bending_energy(t, kind, cable, i)
                if i + 1 < kind[SEGMENTS] or kind[CLAMP_B]:
                    lost += bending_energy(t, kind, cable, i + 1)
            t.sums[LOSS_BREAK] += lost
            b[BROKE_AT], b[BROKE_TENSION], b[BROKE_ENERGY] = at, segment[TENSION], lost
            b[DOOMED], b[CUT_AT] = 0.0, np.inf
            segment[ALIVE] = segment[TENSION] = segment[ELASTIC] = 0.0
            segment[STIFFNESS] = segment[GEOMETRIC] = 0.0
            number += 1
    return number


# ---------- What broke or was cut in a period, read from the tables after it.


@dataclass(frozen=True)
class Break:
    """A segment that broke or was cut.

    Attributes:
        time_s: When.
        cable: Index of its cable, from 0.
        segment: Its index from end A, from 0.
        tension_n: Its tension just before.
        energy_j: Strain energy that it held, with the bending of the joints at its ends.
    """

    time_s: float
    cable: int
    segment: int
    tension_n: float
    energy_j: float


def broken(tables: Tables, begin_s: float, period_s: float) -> list[Break]:
    """Take what broke in a period out of the tables, in the order of time.

    Args:
        tables: Of the rig, after the period.
        begin_s: Its begin.
        period_s: Its length.
    """
    found = []
    rows = np.flatnonzero(tables.breaks[:, c.BROKE_AT] >= 0.0)
    for row in rows[np.argsort(tables.breaks[rows, c.BROKE_AT], kind="stable")]:
        cable = int(np.searchsorted(tables.kinds[:, c.FIRST_SEGMENT], row, side="right")) - 1
        columns = [c.BROKE_AT, c.BROKE_TENSION, c.BROKE_ENERGY]
        at, tension_n, energy_j = tables.breaks[row, columns].tolist()
        segment = int(row - tables.kinds[cable, c.FIRST_SEGMENT])
        found.append(Break(begin_s + at * period_s, cable, segment, tension_n, energy_j))
    tables.breaks[rows, c.BROKE_AT] = -1.0
    return found
