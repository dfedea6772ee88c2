"""What sensors are told of the truth: from a tilted board, and of a point beside the centre."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.compiled_rotations import from_rotation_vector, multiply, rotate, rotate_back
from musls_sim.imperfections import Imperfections
from musls_sim.plants.interface import PlantState

Array = NDArray[np.float64]


class SensedState:
    """The plant's state as the drones' sensors and motion capture find it.

    Attitude and body rates are those of the tilted board, positions and velocities those of the
    point that motion capture reports; accelerations are the centre of mass's, where the IMU is.

    Attributes:
        state: The plant's state, with another memory for the motion.
    """

    def __init__(self, state: PlantState, faults: Imperfections) -> None:
        """Begin with the state as it is now.

        Args:
            state: The plant's state; its memory stays the same.
            faults: Tilts and offsets.
        """
        drones = faults.of_each(len(state.motion) - 1)
        self._true = state.motion
        self._faults = np.array(
            [[*drone.level_tilt_rad, *drone.mocap_offset_m] for drone in drones]
        ).reshape(-1, 5)
        self.state = replace(state, motion=state.motion.copy())
        self.update()

    @classmethod
    def of(cls, state: PlantState, faults: Imperfections) -> SensedState | None:
        """What is sensed of a state, None where it is the truth."""
        if any(any(d.level_tilt_rad) or any(d.mocap_offset_m) for d in faults.drones):
            return cls(state, faults)
        return None

    def update(self) -> None:
        """Follow the plant."""
        _sense(self._true, self._faults, self.state.motion)


@compiled()
def _sense(truth, faults, sensed):
    """Write what is sensed of all bodies, (1 + n, 16), of tilts and offsets (n, 5)."""
    sensed[0] = truth[0]
    for i in range(faults.shape[0]):
        t, s, f = truth[1 + i], sensed[1 + i], faults[i]
        s[:] = t
        qw, qx, qy, qz = t[6], t[7], t[8], t[9]
        x, y, z = rotate(qw, qx, qy, qz, f[2], f[3], f[4])
        s[0] += x
        s[1] += y
        s[2] += z
        x, y, z = rotate(
            qw, qx, qy, qz,
            t[11] * f[4] - t[12] * f[3],
            t[12] * f[2] - t[10] * f[4],
            t[10] * f[3] - t[11] * f[2],
        )  # fmt: skip
        s[3] += x
        s[4] += y
        s[5] += z
        lw, lx, ly, lz = from_rotation_vector(f[0], f[1], 0.0)
        s[6], s[7], s[8], s[9] = multiply(qw, qx, qy, qz, lw, lx, ly, lz)
        s[10], s[11], s[12] = rotate_back(lw, lx, ly, lz, t[10], t[11], t[12])
