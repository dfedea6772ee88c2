"""Imperfections of a flight: delays of set-points and motor commands, tilted rotors."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import DroneSetpoints
from musls_description.compiled import compiled
from musls_description.system import RigSystem
from musls_sim.plants.changes import RotorEfficiency
from musls_sim.plants.interface import PlantInputs, PlantState
from musls_sim.plants.rigid_links.rows import rotor_table
from musls_sim.scenario.imperfections import Imperfections, tilt_matrix

# ---------- Delays of set-points and of motor commands

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
        """Begin with what is sent now."""
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

        `asked_rad_s`: what the autopilot commands, in memory that stays the same.
        `before_rad_s`: what was commanded before the start, (n, n_rotors).
        """
        self._asked = asked_rad_s
        self._ring = np.tile(before_rad_s, (periods, 1, 1))
        self.late_rad_s = before_rad_s.copy()

    def step(self, tick: int) -> None:
        """Take the present commands, give the old ones."""
        slot = self._ring[tick % len(self._ring)]
        self.late_rad_s[:] = slot
        slot[:] = self._asked


# ---------- Tilted rotors: the difference to upright ones as a wrench, for every plant


class TiltedThrust:
    """Adds what tilted rotors do, before the plant moves, and takes it back after.

    The plants let rotors push along the body's z axis. The difference to the tilted axis is taken
    at the rotor speeds of the period's begin: the tilt's part of the thrust, some per cent of it,
    comes 2 ms late on average.
    """

    def __init__(self, system: RigSystem, faults: Imperfections) -> None:
        """`system`: as it really is, see `weakened`."""
        self._rotors = rotor_table(system)[:, :, :5].copy()
        up = np.array([0.0, 0.0, 1.0])
        self._shift = np.array(
            [
                tilt_matrix(fault.thrust_tilt_rad) @ up - up
                for fault in faults.of_each(system.n_drones)
            ]
        )
        self._kept = np.zeros((system.n_drones, 6))
        self._health = np.ones(self._rotors.shape[:2])

    @classmethod
    def of(cls, system: RigSystem, faults: Imperfections) -> TiltedThrust | None:
        """The tilted rotors of a system, None where none is tilted."""
        if any(any(fault.thrust_tilt_rad) for fault in faults.drones):
            return cls(system, faults)
        return None

    def apply(self, change: RotorEfficiency) -> None:
        """Let a rotor that gives less thrust do less here, too."""
        some = slice(None) if change.rotor is None else change.rotor - 1
        self._health[change.drone - 1, some] = change.efficiency

    def begin(self, state: PlantState, inputs: PlantInputs) -> None:
        """Add the wrenches."""
        wrench = inputs.wrench_body[1:]
        self._kept[:] = wrench
        _add(state.rotor_speed_rad_s, self._rotors, self._health, self._shift, wrench)

    def end(self, inputs: PlantInputs) -> None:
        """Take them back."""
        inputs.wrench_body[1:] = self._kept


@compiled()
def _add(speed, rotors, health, shift, wrench):
    """Add moment and force of the thrusts' shift to the wrenches (n, 6)."""
    for i in range(speed.shape[0]):
        x, y, z = shift[i, 0], shift[i, 1], shift[i, 2]
        for j in range(speed.shape[1]):
            squared = health[i, j] * speed[i, j] * speed[i, j]
            f, t = rotors[i, j, 3] * squared, rotors[i, j, 4] * squared
            a, b, c = rotors[i, j, 0], rotors[i, j, 1], rotors[i, j, 2]
            wrench[i, 0] += (b * z - c * y) * f + x * t
            wrench[i, 1] += (c * x - a * z) * f + y * t
            wrench[i, 2] += (a * y - b * x) * f + z * t
            wrench[i, 3] += x * f
            wrench[i, 4] += y * f
            wrench[i, 5] += z * f
