"""What broke or was cut in a period, read from the tables after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from musls_sim.plants.elastic import columns as c
from musls_sim.plants.elastic.tables import Tables


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
