"""Rotors whose axes are not the body's z axis, for every plant: the difference as a wrench."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.system import RigSystem
from musls_sim.imperfections import Imperfections, tilt_matrix
from musls_sim.plants.changes import RotorEfficiency
from musls_sim.plants.interface import PlantInputs, PlantState
from musls_sim.plants.rotors import rotor_table

Array = NDArray[np.float64]


class TiltedThrust:
    """Adds what tilted rotors do, before the plant moves, and takes it back after.

    The plants let rotors push along the body's z axis. The difference to the tilted axis is taken
    at the rotor speeds of the period's begin: the tilt's part of the thrust, some per cent of it,
    comes 2 ms late on average.
    """

    def __init__(self, system: RigSystem, faults: Imperfections) -> None:
        """Prepare.

        Args:
            system: As it really is, see `weakened`.
            faults: Their tilts.
        """
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
