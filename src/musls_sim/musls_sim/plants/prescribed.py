"""The plant with the drones moved along prescribed paths: the cables and the load alone.

In every step the wrenches on the drones are found that bring each drone to its prescribed pose at
the end of the step. DART's step is linear in them,

    v+ = v_free + dt A^-1 J^T lambda,   A = M + dt D + dt^2 K,

so J v+ = v_wanted is one linear system of 6 equations a drone; v_wanted is the prescribed velocity
and a share of the present error, so errors do not add up. The wrenches are the reaction of
the motion: force, moment and power that a drone (or a hand) would need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from musls_sim.plants.dart_plant import DartPlant
from musls_sim.plants.inertia import (
    end_compliance,
    factorise,
    joint_space_inertia,
    mass_table,
    parent_coordinates,
)
from musls_sim.plants.kinematics import (
    AXIS_X,
    AXIS_Y,
    AXIS_Z,
    POSITION,
    rotation_to_quaternion,
)

Array = NDArray[np.float64]
Pose = tuple[Array, Array]
"""Positions (n, 3) [m, ENU] and quaternions (n, 4) [w, x, y, z] of all drones."""

DronePath = Callable[[float], Pose]
"""Pose of all drones at a time [s]."""

LoadGuide = Callable[[float], Array]
"""Time [s] to a wrench on the load: moment about its centre, force, world, (6,)."""

STILL_AIR = np.zeros(3)

CORRECTION = 0.2
"""Share of the pose error taken back in a step. All of it at once would turn the second-order
error of the chain's kinematics into a jerk in every step."""


@dataclass
class EnergyAudit:
    """Where the work done on the system went, summed over time [J].

    Attributes:
        work_j: Work of the drones' wrenches (and of a load guide).
        absolute_work_j: The same without regard to sign, the scale of the audit.
        loss_j: Dissipated by joint damping.
        start_j: Kinetic and potential energy at the beginning.
        energy_j: The same now.
    """

    work_j: float = 0.0
    absolute_work_j: float = 0.0
    loss_j: float = 0.0
    start_j: float = 0.0
    energy_j: float = 0.0

    @property
    def relative_error(self) -> float:
        """Work that is not accounted for, over the absolute work."""
        missing = self.work_j - self.loss_j - (self.energy_j - self.start_j)
        return missing / max(self.absolute_work_j, 1e-12)


class PrescribedPlant(DartPlant):
    """A `DartPlant` whose drones follow a path whatever it takes.

    Attributes:
        end_wrench: What moved each drone in the last step: moment about its centre, force, world,
            (n, 6).
        audit: Energy balance so far (without contacts on the ground and joint friction).
    """

    def __init__(self, *args: object, **options: object) -> None:
        """See `DartPlant`."""
        super().__init__(*args, **options)
        n, dofs = self.system.n_drones, self.tree.n_coordinates
        self._jacobian = np.zeros((6 * n, dofs))
        self._wanted = np.zeros(6 * n)
        self._chains = [
            np.arange(first, drone + 1)
            for first, drone in zip(self.tree.first_link, self.tree.drone, strict=True)
        ]
        self._parent_coordinate = parent_coordinates(self.tree)
        self._masses = mass_table(self.tree)
        self._at_rest = np.zeros_like(self.state.rotor_speed_rad_s)
        self._joint_damping = np.concatenate(
            [np.zeros(6), *(np.full(len(b.axes), b.damping_n_m_s_rad) for b in self.tree.bodies)]
        )
        self.end_wrench = np.zeros((n, 6))
        self.audit = EnergyAudit()
        self.audit.start_j = self.audit.energy_j = self._energy()

    @property
    def load_motion(self) -> Array:
        """Rotation (row by row), position, angular velocity and velocity of the load, (18,)."""
        return self._motion[0, :18]

    def follow(self, path: DronePath, guide: LoadGuide | None = None) -> None:
        """Advance one control period along a path.

        Args:
            path: Where the drones are to be.
            guide: Additional wrench on the load, None for none.
        """
        begin = self.time_s
        noted: list[tuple[float, Array, Array]] = []

        def act(step_s: float, elapsed_s: float) -> None:
            if elapsed_s == 0.0:
                noted.clear()  # the period may be repeated with finer steps
            self._apply_forces(step_s, self._at_rest, STILL_AIR)
            if guide is not None:
                self._tau[:6] += guide(begin + elapsed_s)
            time_s = begin + elapsed_s
            outside = self._reaction(path(time_s), path(time_s + step_s), step_s)
            if guide is not None:
                outside[:6] += guide(begin + elapsed_s)
            self.skeleton.setCommands(self._tau)
            noted.append((step_s, outside, self._velocities))

        self._step(act)
        self._account(noted)

    def _reaction(self, now: Pose, then: Pose, step_s: float) -> Array:
        """Add the drones' wrenches to `_tau`; returns their generalised force, (n_dofs,)."""
        skeleton, drones = self.skeleton, self.tree.drone
        skeleton.setCommands(self._tau)
        skeleton.computeForwardDynamics()
        for i, chain in enumerate(self._chains):
            rows = self._jacobian[6 * i : 6 * i + 6]
            end_jacobian(self._motion, self._joints, self._first, chain, rows)
        wanted_velocity(*now, *then, self._motion, drones, step_s, self._wanted)
        inertia = joint_space_inertia(
            self._motion,
            self._parents,
            self._first,
            self._joints,
            self._masses,
            self._parent_coordinate,
            step_s * self._joint_damping,
        )
        generalised = reaction(
            inertia,
            self._parent_coordinate,
            self._jacobian,
            self._velocities + step_s * skeleton.getAccelerations(),
            self._wanted,
            step_s,
            self.end_wrench,
        )
        self._tau += generalised
        # The tension is what the joints transmit less the outside forces beyond them.
        self._wrench[drones, :3] += self.end_wrench[:, 3:]
        self._wrench[self.tree.first_link, :3] += self.end_wrench[:, 3:]
        return generalised

    def _energy(self) -> float:
        return self.skeleton.computeKineticEnergy() + self.skeleton.computePotentialEnergy()

    def _account(self, noted: list[tuple[float, Array, Array]]) -> None:
        audit = self.audit
        after = [velocity for _, _, velocity in noted[1:]] + [self._velocities]
        for (step_s, outside, before), then in zip(noted, after, strict=True):
            power = outside @ (before + then) / 2.0
            audit.work_j += power * step_s
            audit.absolute_work_j += abs(power) * step_s
            audit.loss_j += step_s * float(self._joint_damping @ then**2)
        audit.energy_j = self._energy()


@njit(cache=True)
def reaction(inertia, parent, jacobian, free, wanted, step, wrench):
    """Find the end wrenches that turn free velocities into the wanted ones; see the module.

    Args:
        inertia: A, (n, n).
        parent: From `inertia.parent_coordinates`, (n,).
        jacobian: J, (6 k, n).
        free: Velocities after the step without the wrenches, (n,).
        wanted: Angular and linear velocities of the ends after the step, (6 k,).
        step: Length of the step [s].
        wrench: Result, (k, 6).

    Returns:
        Generalised force J^T lambda, (n,).
    """
    compliance = end_compliance(factorise(inertia, parent), parent, jacobian)
    solution = np.linalg.solve(compliance, (wanted - jacobian @ free) / step)
    wrench[:] = solution.reshape(wrench.shape)
    return solution @ jacobian


@njit(cache=True)
def _rotation_between(a, b, out):
    """Rotation vector (world) that turns quaternion a into b."""
    w = b[0] * a[0] + b[1] * a[1] + b[2] * a[2] + b[3] * a[3]
    x = -b[0] * a[1] + b[1] * a[0] - b[2] * a[3] + b[3] * a[2]
    y = -b[0] * a[2] + b[1] * a[3] + b[2] * a[0] - b[3] * a[1]
    z = -b[0] * a[3] - b[1] * a[2] + b[2] * a[1] + b[3] * a[0]
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    half = np.sqrt(x * x + y * y + z * z)
    scale = 2.0 * np.arctan2(half, w) / half if half > 1e-12 else 2.0
    out[0], out[1], out[2] = scale * x, scale * y, scale * z


@njit(cache=True)
def wanted_velocity(position, quaternion, next_position, next_quaternion, motion, drones, dt, out):
    """Velocities for a step from pose to pose, with a share of the present error taken back.

    Args:
        position: Prescribed now, (n, 3).
        quaternion: Prescribed now, (n, 4).
        next_position: Prescribed at the end of the step, (n, 3).
        next_quaternion: Prescribed at the end of the step, (n, 4).
        motion: From `kinematics.body_motion`, (n_bodies, 27).
        drones: Body index of each drone, (n,).
        dt: Length of the step [s].
        out: Angular and linear velocity of each drone, world, (6 n,).
    """
    turn, miss, present = np.empty(3), np.empty(3), np.empty(4)
    for i in range(drones.shape[0]):
        m = motion[drones[i]]
        rotation_to_quaternion(m, present)
        _rotation_between(quaternion[i], next_quaternion[i], turn)
        _rotation_between(present, quaternion[i], miss)
        for k in range(3):
            out[6 * i + k] = (turn[k] + CORRECTION * miss[k]) / dt
            error = position[i, k] - m[POSITION + k]
            step = next_position[i, k] - position[i, k]
            out[6 * i + 3 + k] = (step + CORRECTION * error) / dt


@njit(cache=True)
def end_jacobian(motion, joints, first, chain, out):
    """Jacobian of the last body of a chain: angular and linear velocity of its origin, world.

    Args:
        motion: From `kinematics.body_motion`, (n_bodies, 27).
        joints: From `kinematics.joint_table`, (n_bodies, 24).
        first: First coordinate of each body, then their number, (n_bodies + 1,).
        chain: Bodies from the load's neighbour to the last, (k,).
        out: Result, (6, n_dofs).
    """
    out[:] = 0.0
    end = motion[chain[-1]]
    for i in range(3):
        out[i, i] = 1.0
        out[3 + i, 3 + i] = 1.0
    _cross_columns(motion[0], end, out)
    for k in chain:
        m, c = motion[k], joints[k]
        arm = np.empty(3)
        for i in range(3):
            hinge = m[POSITION + i] + m[3 * i] * c[21] + m[3 * i + 1] * c[22] + m[3 * i + 2] * c[23]
            arm[i] = end[POSITION + i] - hinge
        last = first[k + 1] - 1
        for back in range(first[k + 1] - first[k]):
            column = last - back
            at = AXIS_Z if back == 0 else (AXIS_Y if back == 1 else AXIS_X)
            ax, ay, az = m[at], m[at + 1], m[at + 2]
            out[0, column], out[1, column], out[2, column] = ax, ay, az
            out[3, column] = ay * arm[2] - az * arm[1]
            out[4, column] = az * arm[0] - ax * arm[2]
            out[5, column] = ax * arm[1] - ay * arm[0]


@njit(cache=True)
def _cross_columns(load, end, out):
    """Linear velocity of the end by the load's angular velocity: omega x arm."""
    x = end[POSITION] - load[POSITION]
    y = end[POSITION + 1] - load[POSITION + 1]
    z = end[POSITION + 2] - load[POSITION + 2]
    out[3, 1], out[3, 2] = z, -y
    out[4, 0], out[4, 2] = -z, x
    out[5, 0], out[5, 1] = y, -x
