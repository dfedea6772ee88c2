"""Loss of a drone or of a cable: how it is noticed, and what is done then."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from musls_control.estimate import Estimate
from musls_description.config.schema import Fraction, NonNegative, Number, Positive, spec
from musls_description.hanging.hang import MIN_THRUST_MARGIN
from musls_description.numerics.arrays import Array

LONGEST_GAP_S = 0.5
"""Over a longer time between two looks nothing is known of the forces meanwhile."""

MIN_DRONES = 4
"""From so many on the loss of one can be survived."""


@spec
class ContingencySpec:
    """Reaction of the formation to the loss of a drone or a cable.

    Who guides the formation knows the drones' measured places, their set-points and the forces of
    the hooks' load cells, nothing else.

    Attributes:
        drop_m: A drone this far below its set-point that sinks faster than `sink_m_s` is lost.
        sink_m_s: See there.
        slack_share: A cable that carries less than this share of an even part of the load for
            `slack_s` is lost; its drone flies on without load.
        slack_s: See there.
        delay_s: From the measurement that tells to the first command that follows from it: links,
            filters, decision.
        hook: "release" lets the cable of a lost drone go at the load; "hold" lets it hang there.
        then: "continue" goes on with the mission if the drones that are left carry the load with
            `margin`; "land" sets the load down where it is in any case.
        margin: Thrust margin that each drone that is left needs to go on.
        clearance_m: Least distance of rotor tips in the new formation.
        speed_m_s: Of the drones on the way to their new places.
        lower_speed_m_s: Of the load when it is set down.
    """

    drop_m: Positive = 0.5
    sink_m_s: Positive = 1.0
    slack_share: Fraction = 0.1
    slack_s: Positive = 1.0
    delay_s: NonNegative = 0.1
    hook: Literal["release", "hold"] = "release"
    then: Literal["continue", "land"] = "continue"
    margin: Annotated[float, Field(ge=MIN_THRUST_MARGIN, le=10.0, allow_inf_nan=False), Number] = (
        MIN_THRUST_MARGIN
    )
    clearance_m: NonNegative = 0.2
    speed_m_s: Positive = 0.4
    lower_speed_m_s: Positive = 0.3


# ---------- How the loss of a drone or of a cable is noticed: by measurements only


class LossDetector:
    """Watches places of drones and forces of cables."""

    def __init__(self, spec: ContingencySpec, even_share_n: Array) -> None:
        """`even_share_n`: even part of the load's weight, of each cable, (n,)."""
        self._spec, self._slack_n = spec, spec.slack_share * even_share_n
        self.begin()

    def begin(self) -> None:
        """Forget what was seen."""
        n, self._looked_s = len(self._slack_n), np.nan
        self._slack_s, self._taut_s, self._carried = *np.zeros((2, n)), np.zeros(n, bool)

    def fallen(self, estimate: Estimate, setpoint_enu_m: Array) -> list[tuple[int, str]]:
        """Drones (from 0) that fall, and the measurement that shows it.

        `setpoint_enu_m`: where the drones are to be, (n, 3).
        """
        drones = estimate.drones
        below = setpoint_enu_m[:, 2] - drones.position_enu_m[:, 2]
        sinking = -drones.velocity_enu_m_s[:, 2]
        found = (below > self._spec.drop_m) & (sinking > self._spec.sink_m_s)
        return [
            (int(i), f"{below[i]:.2f} m below its set-point, sinking at {sinking[i]:.1f} m/s")
            for i in np.flatnonzero(found)
        ]

    def slackened(
        self, time_s: float, estimate: Estimate, *, lifting: bool = False
    ) -> list[tuple[int, str]]:
        """Cables (from 0) that have carried nothing for too long, and what was seen.

        A force that nobody knows (NaN) tells nothing.
        `lifting`: the load is only being taken up: a cable that has not carried yet, for as long as
        it may be slack, is not lost, it is late.
        """
        since_s, self._looked_s = time_s - self._looked_s, time_s
        since_s = since_s if since_s < LONGEST_GAP_S else 0.0
        slack = estimate.tension_n[:, 0] < self._slack_n
        self._taut_s = np.where(slack, 0.0, self._taut_s + since_s)
        self._carried |= self._taut_s > self._spec.slack_s
        counts = slack & self._carried if lifting else slack
        self._slack_s = np.where(counts, self._slack_s + since_s, 0.0)
        late = self._slack_s > self._spec.slack_s
        return [
            (int(i), f"no force in its cable for {self._slack_s[i]:.1f} s")
            for i in np.flatnonzero(late)
        ]
