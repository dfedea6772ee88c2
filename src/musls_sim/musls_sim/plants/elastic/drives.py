"""What drives the winches, handed to the compiled step; says where it jumps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_sim.plants.elastic import columns as c

Array = NDArray[np.float64]

SMALL = 1e-9
"""Change of a drive that is no jump."""


class Drives:
    """The columns of the winches' drives in the table of shafts.

    Winches are few, so Python's own numbers are quicker here than arrays.
    """

    def __init__(self, winches: Array) -> None:
        """Look at the rows of the winches.

        Args:
            winches: Rows of the winches in the table of shafts, (n_winches, SHAFT_COLUMNS).
        """
        self._columns = (
            winches[:, c.DRIVE : c.DRIVE + 2],
            winches[:, c.BY_RATE],
            winches[:, c.BRAKE],
        )
        self._told = [column.tolist() for column in self._columns]

    def take_over(self, feed: Array, by_rate: NDArray[np.bool_], brake_nm: Array) -> bool:
        """Write the drives of a period into the table.

        Args:
            feed: See `Engine.feed`.
            by_rate: The same.
            brake_nm: The same.

        Returns:
            Whether the accelerations have to be found anew at its begin: a torque or brake jumps,
            or the slope of a rate. Not where a rate jumps itself: its jerk has no acceleration.
        """
        drives = feed, by_rate, brake_nm
        told = [drive.tolist() for drive in drives]
        jumped = any(map(_jumps, *self._told, *told))
        if told != self._told:
            for column, drive in zip(self._columns, drives, strict=True):
                column[:] = drive
            self._told = told
        return jumped


def _jumps(
    old: list[float],
    was_by_rate: float,
    held: float,
    new: list[float],
    by_rate: bool,
    holds: float,
) -> bool:
    gap = abs(old[1] - new[0]) > SMALL
    switched = was_by_rate != by_rate
    if by_rate:
        return abs((old[1] - old[0]) - (new[1] - new[0])) > SMALL and not gap and not switched
    return gap or switched or held != holds
