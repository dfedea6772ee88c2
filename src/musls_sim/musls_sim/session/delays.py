"""Delays of an imperfect system: of set-points on their way to a drone, of motor commands."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import DroneSetpoints
from musls_sim.imperfections import Imperfections

Array = NDArray[np.float64]


class SetpointLink:
    """Hands set-points on when they arrive.

    A set-point that changes is sent; it arrives after the delay and, for each drone anew, a part
    of the jitter, in whole control periods, and not before the one sent before it.

    Attributes:
        heard: What the autopilot has; the memory stays the same.
    """

    def __init__(
        self,
        sent: DroneSetpoints,
        faults: Imperfections,
        period_s: float,
        generator: np.random.Generator,
    ) -> None:
        """Begin with what is sent now.

        Args:
            sent: What guidance hands out, in memory that stays the same.
            faults: Delay and jitter.
            period_s: Control period.
            generator: Source of the jitter.
        """
        self.heard = DroneSetpoints(sent.data.copy())
        self._sent, self._generator = sent.data, generator
        self._last = sent.data.copy()
        self._delay = faults.setpoint_delay_s / period_s
        self._jitter = faults.setpoint_jitter_s / period_s
        n = len(sent.data)
        self._under_way: list[deque[tuple[int, Array]]] = [deque() for _ in range(n)]

    @classmethod
    def of(
        cls,
        sent: DroneSetpoints,
        faults: Imperfections,
        period_s: float,
        generator: np.random.Generator,
    ) -> SetpointLink | None:
        """The link to the drones, None where set-points arrive at once."""
        if faults.setpoint_delay_s or faults.setpoint_jitter_s:
            return cls(sent, faults, period_s, generator)
        return None

    def start(self) -> None:
        """The drones know what is sent before the first period."""
        self.heard.data[:] = self._last[:] = self._sent

    def step(self, tick: int) -> None:
        """Send what changed, hand on what arrives."""
        if not np.array_equal(self._sent, self._last, equal_nan=True):
            changed = ~((self._sent == self._last) | (np.isnan(self._sent) & np.isnan(self._last)))
            self._last[:] = self._sent
            for drone in np.flatnonzero(changed.any(axis=1)):
                self._send(tick, int(drone))
        for row, under_way in zip(self.heard.data, self._under_way, strict=True):
            while under_way and under_way[0][0] <= tick:
                row[:] = under_way.popleft()[1]

    def _send(self, tick: int, drone: int) -> None:
        late = self._delay
        if self._jitter:
            late += self._jitter * self._generator.random()
        under_way = self._under_way[drone]
        arrives = tick + round(float(late))
        if under_way:
            arrives = max(arrives, under_way[-1][0])
        under_way.append((arrives, self._sent[drone].copy()))


class CommandLatency:
    """Motor commands a whole number of control periods late.

    Attributes:
        late_rad_s: Commands that the motors have now, (n, n_rotors); the memory stays the same.
    """

    def __init__(self, asked_rad_s: Array, periods: int, before_rad_s: Array) -> None:
        """Prepare.

        Args:
            asked_rad_s: What the autopilot commands, in memory that stays the same.
            periods: How many periods late.
            before_rad_s: What was commanded before the start, (n, n_rotors).
        """
        self._asked = asked_rad_s
        self._ring = np.tile(before_rad_s, (periods, 1, 1))
        self.late_rad_s = before_rad_s.copy()

    def step(self, tick: int) -> None:
        """Take the present commands, give the old ones."""
        slot = self._ring[tick % len(self._ring)]
        self.late_rad_s[:] = slot
        slot[:] = self._asked
