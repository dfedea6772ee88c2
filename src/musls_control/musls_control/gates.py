"""Rows of a flight plan that wait: until hooks are closed, the load rests, the load is gone."""

from __future__ import annotations

from dataclasses import dataclass

HOOKED, RESTED, RELEASED = "hooked", "rested", "released"
"""What is waited for: all hooks are closed; the load rests and the cables are slack, then the hooks
are opened; nothing hangs on the drones any more."""

WEIGHED = "weighed"
"""Nothing is waited for; what was weighed is told."""


@dataclass(frozen=True)
class Gate:
    """A row of a plan that is not handed out before something has happened.

    Attributes:
        row: The row.
        what: What has to happen.
        timeout_s: Time after which the flight is aborted instead.
    """

    row: int
    what: str
    timeout_s: float
