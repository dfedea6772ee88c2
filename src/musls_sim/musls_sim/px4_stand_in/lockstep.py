"""When the simulator may go on: it waits for whoever answers each of its clock messages.

Who sends set-points stamped with the time of the last /clock in three windows running is waited
for from then on, for a limited real time; who fails once is no longer waited for, and so a
dead node ends in PX4's time-outs instead of stopping the clock. While nobody is waited for, time
runs at real speed.
"""

from __future__ import annotations

import numpy as np

ANSWERS_TO_LOCK = 3


class Lockstep:
    """Answers of all drones' companions."""

    def __init__(self, n_drones: int) -> None:
        """Start with nobody locked."""
        self._streak = np.zeros(n_drones, int)
        self._answered = np.zeros(n_drones, bool)
        self._asked_us = 0

    @property
    def locked(self) -> bool:
        """Whether anybody is waited for."""
        return bool((self._streak >= ANSWERS_TO_LOCK).any())

    @property
    def complete(self) -> bool:
        """Whether everybody who is waited for has answered."""
        return not ((self._streak >= ANSWERS_TO_LOCK) & ~self._answered).any()

    def ask(self, time_us: int) -> None:
        """A clock message is being sent."""
        self._asked_us = time_us
        self._answered[:] = False

    def answer(self, drone: int, time_us: int) -> None:
        """A set-point of a drone (from 0) has come, stamped by its sender."""
        self._answered[drone] |= time_us >= self._asked_us

    def close(self) -> list[int]:
        """The window is over; returns the drones (from 0) that are given up."""
        given_up = (self._streak >= ANSWERS_TO_LOCK) & ~self._answered
        self._streak = np.where(self._answered, self._streak + 1, 0)
        return np.flatnonzero(given_up).tolist()
