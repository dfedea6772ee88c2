"""The law of `payload` on the leader alone: what a centre is when its network is not ideal.

All drones tell the leader their motion; it computes the commands of all (`controllers.payload`) and
sends each its own. A follower flies its newest command; without one it holds its place, then lands
(`silence`). What is compared with it is control without a centre.
"""

from __future__ import annotations

import numpy as np

from musls_control.agents.agent import Now
from musls_control.agents.consensus import GOES_ON_S, ConsensusCarrier
from musls_control.agents.silence import HoldThenLand
from musls_control.controllers import ControlLevel
from musls_description.numerics.arrays import Array


class CentralCarrier(ConsensusCarrier):
    """The leader commands all, the others tell it where they are and obey."""

    def start(self, now: Now) -> None:
        """Begin with nothing added up, and with nothing heard; who was lost stays so.

        See `ConsensusCarrier`.
        """
        super().start(now)
        self._alone: HoldThenLand | None = None

    def tell(self, now: Now) -> None:
        """Tell the leader where this drone is; the leader tells nothing."""
        if not self.post.leads:
            super().tell(now)

    def _hear(self, now: Now) -> None:
        """The leader alone hears of the others; what a follower hears are commands."""
        if self.post.leads:
            super()._hear(now)

    def decide(self, now: Now) -> Array:
        """Command of the leader, see `ConsensusCarrier`."""
        if self.post.leads:
            own = super().decide(now)
            for row, k in enumerate(self._left.tolist()):
                if k + 1 != self.post.number:
                    self.send(k + 1, self.law.commands[row, : len(own)])
            return own
        message = now.heard.get(self.post.leader)
        if message is not None and message.age_s <= GOES_ON_S:
            self._alone = None
            return np.array(message.numbers)
        if self._alone is None:
            self._alone = HoldThenLand(self.post, now)
        columns = 4 if self.level is ControlLevel.AUTOPILOT_FORCES else 10
        return self._alone.command(now, ControlLevel(self.level), columns)
