"""The estimate: motion of all bodies and cable tensions, by estimators or motion capture.

One contiguous array holds the motion of all bodies; the named fields are views into it. A compiled
controller then takes one array instead of five, which matters at 250 Hz because every array
argument of a compiled call costs Python time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import matrix
from musls_description.tables import ShownResult, Table, vector

MOTION = np.dtype(
    [
        ("position", float, 3),
        ("velocity", float, 3),
        ("attitude", float, 4),
        ("omega", float, 3),
        ("acceleration", float, 3),
    ],
    align=True,
)
"""A row of `BodyMotion.data` for compiled code."""

MOTION_COLUMNS = 16


def check_memory(data: Array, row_shape: tuple[int, ...], name: str) -> None:
    """Refuse memory that a compiled kernel would misread."""
    if data.shape[1:] != row_shape or data.dtype != np.float64 or not data.flags.c_contiguous:
        raise ValueError(
            f"{name} needs a C-contiguous float64 array of shape {('n', *row_shape)}, "
            f"got {data.dtype} {data.shape}"
        )


class BodyMotion(ShownResult):
    """Motion of several bodies, a row each.

    Attributes:
        data: The memory behind the views, (bodies, 16), C-contiguous.
        records: Motion as records of `MOTION`, (bodies,).
        position_enu_m: Centres of mass, world, (bodies, 3).
        velocity_enu_m_s: World, (bodies, 3).
        orientation_wxyz: Unit quaternions, body FLU to world ENU, (bodies, 4).
        omega_body_rad_s: Body frame FLU, of drones the raw (unfiltered) gyro, (bodies, 3).
        acceleration_enu_m_s2: Kinematic: zero at rest and in hover, (bodies, 3).
    """

    def __init__(self, data: Array) -> None:
        """Make the views."""
        check_memory(data, (MOTION_COLUMNS,), type(self).__name__)
        self.data = data
        self.records = data.view(MOTION).reshape(-1)
        self.position_enu_m = data[:, 0:3]
        self.velocity_enu_m_s = data[:, 3:6]
        self.orientation_wxyz = data[:, 6:10]
        self.omega_body_rad_s = data[:, 10:13]
        self.acceleration_enu_m_s2 = data[:, 13:16]

    def shown(self) -> Iterator[str | Table]:
        """A row per body, in the order of the arrays."""
        columns = ("position_enu_m", "velocity_enu_m_s", "orientation_wxyz", "omega_body_rad_s")
        arrays = [getattr(self, name) for name in columns]
        yield type(self).__name__
        rows = [(str(i), *(vector(a[i]) for a in arrays)) for i in range(len(self.position_enu_m))]
        yield Table(("row", *columns), rows)

    @classmethod
    def of(
        cls,
        position_enu_m: Array,
        orientation_wxyz: Array,
        velocity_enu_m_s: Array | float = 0.0,
        omega_body_rad_s: Array | float = 0.0,
    ) -> BodyMotion:
        """Return bodies without acceleration; at rest by default."""
        motion = BodyMotion(_at_rest(len(position_enu_m)))
        motion.position_enu_m[:] = position_enu_m
        motion.orientation_wxyz[:] = orientation_wxyz
        motion.velocity_enu_m_s[:] = velocity_enu_m_s
        motion.omega_body_rad_s[:] = omega_body_rad_s
        return motion

    @property
    def rotations(self) -> Array:
        """Matrices from the bodies' frames to the world, (bodies, 3, 3)."""
        return np.ascontiguousarray(matrix(self.orientation_wxyz))

    @property
    def omega_enu_rad_s(self) -> Array:
        """Angular velocities in the world frame, (bodies, 3)."""
        omega: Array = np.einsum("nij,nj->ni", self.rotations, self.omega_body_rad_s)
        return omega

    @omega_enu_rad_s.setter
    def omega_enu_rad_s(self, omega: Array) -> None:
        self.omega_body_rad_s[:] = np.einsum("nji,nj->ni", self.rotations, omega)

    @classmethod
    def zeros(cls, bodies: int) -> BodyMotion:
        """Return bodies at rest at the origin, level and facing east."""
        return cls(_at_rest(bodies))


class Estimate(BodyMotion):
    """Estimated motion of load (row 0) and drones (row i), see `BodyMotion`.

    Attributes:
        drones: View of the same memory without the load, (n_drones, ...).
        tension_n: Tension of each cable at the load and at the drone, (n_cables, 2).
    """

    def __init__(self, data: Array, n_cables: int | None = None) -> None:
        """Make the views; a cable per drone unless their number is given."""
        super().__init__(data)
        self.drones = BodyMotion(data[1:])
        self.tension_n = np.zeros((len(data) - 1 if n_cables is None else n_cables, 2))

    @classmethod
    def zeros(cls, n_drones: int, n_cables: int | None = None) -> Estimate:
        """Return load and drones at rest at the origin, level, facing east; a cable per drone."""
        return cls(_at_rest(1 + n_drones), n_cables)


def _at_rest(bodies: int) -> Array:
    data = np.zeros((bodies, MOTION_COLUMNS))
    data[:, 6] = 1.0
    return data
