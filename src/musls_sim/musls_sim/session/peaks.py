"""The largest tensions of a flight over time: what the recording's rate would miss."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from musls_sim.physics import CONTROL_PERIOD_S

Array = NDArray[np.float64]

PERIODS = 5
"""Control periods whose largest tension is kept together: 20 ms."""


class TensionPeaks:
    """Largest tension of each cable over all steps of successive intervals of 20 ms."""

    def __init__(self, n_cables: int) -> None:
        """Prepare.

        Args:
            n_cables: Number of cables.
        """
        self._now, self._before = np.zeros(n_cables), np.zeros(n_cables)
        self._kept = array("f")
        self._periods = 0

    def note(self, peak_n: Array) -> None:
        """Take in one control period.

        Args:
            peak_n: Largest tension of each cable in it, (n_cables,).
        """
        np.maximum(self._now, peak_n, out=self._now)
        self._periods += 1
        if self._periods % PERIODS == 0:
            self._kept.extend(self._now.tolist())
            np.maximum(self._before, self._now, out=self._before)
            self._now[:] = 0.0

    @property
    def largest_n(self) -> Array:
        """Largest tension of each cable so far, (n_cables,)."""
        largest: Array = np.maximum(self._before, self._now)
        return largest

    def track(self) -> tuple[Array, Array]:
        """Middle of each interval, (k,) [s], and largest tensions in it, (k, n_cables)."""
        last = self._now if self._periods % PERIODS else np.zeros(0)
        rows = -(-self._periods // PERIODS)
        tension: Array = np.append(self._kept, last).reshape(rows, len(self._now))
        middle: Array = np.arange(rows, dtype=np.float64) + 0.5
        time_s: Array = middle * PERIODS * CONTROL_PERIOD_S
        return time_s, tension
