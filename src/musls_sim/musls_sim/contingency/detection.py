"""How the loss of a drone or of a cable is noticed: by measurements only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_control.estimate import Estimate
from musls_sim.contingency.spec import ContingencySpec

Array = NDArray[np.float64]


class LossDetector:
    """Watches places of drones and forces of cables."""

    def __init__(self, spec: ContingencySpec, even_share_n: Array, period_s: float) -> None:
        """Prepare.

        Args:
            spec: What counts as lost.
            even_share_n: Even part of the load's weight, of each cable, (n,).
            period_s: Between two looks.
        """
        self._spec, self._slack_n, self._period_s = spec, spec.slack_share * even_share_n, period_s
        self._slack_s, self._taut_s = np.zeros((2, len(even_share_n)))
        self._carried = np.zeros(len(even_share_n), bool)

    def fallen(self, estimate: Estimate, setpoint_enu_m: Array) -> list[tuple[int, str]]:
        """Drones (from 0) that fall, and what was seen.

        Args:
            estimate: What is measured.
            setpoint_enu_m: Where the drones are to be, (n, 3).
        """
        drones = estimate.drones
        below = setpoint_enu_m[:, 2] - drones.position_enu_m[:, 2]
        sinking = -drones.velocity_enu_m_s[:, 2]
        found = (below > self._spec.drop_m) & (sinking > self._spec.sink_m_s)
        return [
            (int(i), f"{below[i]:.2f} m below its set-point, sinking at {sinking[i]:.1f} m/s")
            for i in np.flatnonzero(found)
        ]

    def slackened(self, estimate: Estimate, *, lifting: bool = False) -> list[tuple[int, str]]:
        """Cables (from 0) that have carried nothing for too long, and what was seen.

        Args:
            estimate: What is measured.
            lifting: The load is only being taken up: a cable that has not carried yet, for as long
                as it may be slack, is not lost, it is late.
        """
        slack = estimate.tension_n[:, 0] < self._slack_n
        self._taut_s = np.where(slack, 0.0, self._taut_s + self._period_s)
        self._carried |= self._taut_s > self._spec.slack_s
        counts = slack & self._carried if lifting else slack
        self._slack_s = np.where(counts, self._slack_s + self._period_s, 0.0)
        late = self._slack_s > self._spec.slack_s
        return [
            (int(i), f"no force in its cable for {self._slack_s[i]:.1f} s")
            for i in np.flatnonzero(late)
        ]
