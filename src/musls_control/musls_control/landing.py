"""When a landed drone is disarmed: the same rule for missions and for PX4's stand-in."""

from __future__ import annotations

DISARM_AFTER_LANDING_S = 2.0
"""Time landed before a drone is disarmed, PX4's COM_DISARM_LAND."""


class LandingTimer:
    """Counts how long something has stood on the ground without a break."""

    def __init__(self) -> None:
        """Begin in the air."""
        self._since_s: float | None = None

    @property
    def landed(self) -> bool:
        """Whether the last report said so."""
        return self._since_s is not None

    def reset(self) -> None:
        """Begin again, in the air."""
        self._since_s = None

    def update(self, time_s: float, landed: bool) -> bool:
        """Take a report of the land detector; returns whether it is time to disarm.

        Args:
            time_s: Simulated time.
            landed: The land detector's verdict.
        """
        if not landed:
            self._since_s = None
        elif self._since_s is None:
            self._since_s = time_s
        return self._since_s is not None and time_s - self._since_s >= DISARM_AFTER_LANDING_S
