"""Rows of a flight plan that wait: until hooks are closed, the load rests, the load is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from musls_control.mission import FlightPlan

HOOKED, RESTED, RELEASED = "hooked", "rested", "released"
"""What is waited for: all hooks are closed; the load rests and the cables are slack, then the hooks
are opened; nothing hangs on the drones any more."""

WEIGHED = "weighed"
"""Nothing is waited for; what was weighed is told."""


@dataclass(frozen=True)
class Gate:
    """A row of a plan that waits until something has happened.

    Attributes:
        row: The row.
        what: What has to happen.
        timeout_s: Time after which the flight is aborted instead.
    """

    row: int
    what: str
    timeout_s: float


class Gatekeeper(Protocol):
    """Decides whether a delivery may pass its gates, and plans its way back."""

    @property
    def turns_back(self) -> bool:
        """Whether the delivery was given up and the drones fly in formation."""

    def passes(self, gate: Gate, time_s: float) -> bool:
        """Whether a gate lets the next row through."""

    def way_back(self, load_pose: NDArray[np.float64]) -> FlightPlan:
        """The rest of the flight from a set-point of the load on, (4,)."""
