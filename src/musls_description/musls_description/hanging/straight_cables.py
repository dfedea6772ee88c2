"""Straight cables: the forces with which they hold a load, as even, strong or near as can be.

Unknown are the force of each cable on the load and the load's tilt. They hold its weight (and what
hangs from it) without moment; each cable lies along its force, so the places of the drones follow.
Fitting a formation, a formation for the drones that are left, and the guess from which an
equilibrium on chains is found all take their forces from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from musls_description.numerics.arrays import Array, grasp_matrix
from musls_description.numerics.rotations import from_rotation_vector, matrix
from musls_description.system.drone import tip_radius_m
from musls_description.system.slung_system import SlungLoadSystem

SMALLEST_ARM_M = 0.1
"""Moments are counted over the weight and the farthest attachment's arm, at least this one."""


def share_balance(at_load_m: Array, along: Array) -> Array:
    """Force and moment of cables on a load, over its weight and arm, by their shares, (6, n).

    `at_load_m`: attachments about the load's centre, (n, 3). `along`: force of each cable over an
    even share of the weight for a share of 1, (n, 3).
    """
    n = len(along)
    wrench = np.einsum("ijk,jk->ij", grasp_matrix(at_load_m).reshape(6, n, 3), along)
    wrench[3:] /= _arm_m(at_load_m)
    return np.asarray(wrench / n)


def even_shares(balance: Array, least: float = 0.0) -> tuple[Array, float]:
    """Shares nearest to 1, none smaller than `least`, that hold a load, (n,), and what they miss.

    `balance`: see `share_balance`, (6, n).
    """
    n = balance.shape[1]
    weight = np.eye(6)[2]
    rows = np.vstack([1e3 * balance, np.eye(n) / np.sqrt(n)])
    right_side = np.concatenate([1e3 * weight, np.ones(n) / np.sqrt(n)])
    shares = scipy.optimize.lsq_linear(rows, right_side, (least, np.inf)).x
    return shares, float(np.abs(balance @ shares - weight).max())


def _arm_m(at_load_m: Array) -> float:
    return max(float(np.linalg.norm(at_load_m, axis=1).max()), SMALLEST_ARM_M)


class StraightCables:
    """Unknowns x: slopes of cables (n, 2), their shares (n,), and roll and pitch where it leans.

    A share is the upright force of a cable over an even share of the weight.
    """

    def __init__(
        self,
        system: SlungLoadSystem,
        gravity_m_s2: float,
        *,
        clearance_m: float,
        steepest: float,
        shares: tuple[float, float],
        lean_rad: float = 0.0,
        hooks_m: ArrayLike = 0.0,
        hung: Sequence[tuple[float, Array]] = (),
    ) -> None:
        """Describe the cables of a load and the limits of their forces.

        Args:
            system: The load, and the drones that carry it.
            gravity_m_s2: Gravity.
            clearance_m: Least distance of rotor tips, seen from above.
            steepest: Horizontal over vertical force of a cable at most.
            shares: Least and largest share of a cable.
            lean_rad: Largest tilt of the load.
            hooks_m: Vector from each drone's centre to its cable, world frame, (n, 3).
            hung: Other bodies that hang from the load: mass [kg] and place in its frame, (3,).
        """
        self.system = system
        self.gravity_m_s2 = gravity_m_s2
        self.count = system.n_drones
        self.steepest = steepest
        self.shares = shares
        self.lean_rad = lean_rad
        self.hooks_m = np.asarray(hooks_m)
        self.at_load = np.array(system.load.cable_attachments_m)
        self.length_m = np.array([cable.length_m for cable in system.cables])
        masses = np.array([system.load.mass_kg, *(mass for mass, _ in hung)])
        self.weight_n = float(masses.sum() * gravity_m_s2)
        aside = [mass * place for mass, place in hung]
        self.centre_m = np.sum([np.zeros(3), *aside], axis=0) / masses.sum()
        half = [0.5 * cable.mass_kg * gravity_m_s2 / self.weight_n for cable in system.cables]
        self.half_cable = np.outer(half, [0.0, 0.0, 1.0])
        tips = np.array([tip_radius_m(drone) for drone in system.drones])
        self.pairs = np.triu_indices(self.count, 1)
        self.apart_m = (tips[:, None] + tips + clearance_m)[self.pairs]
        self.arm_m = _arm_m(self.at_load)

    def unknowns(self, slopes: Array, shares: Array) -> Array:
        """Unknowns of a level load."""
        return np.concatenate([slopes.ravel(), shares, np.zeros(2 * (self.lean_rad > 0.0))])

    def slopes(self, x: Array) -> Array:
        """Horizontal over vertical force of the cables, (n, 2)."""
        return x[: 2 * self.count].reshape(-1, 2)

    def forces(self, x: Array) -> Array:
        """Forces of the cables on the load, over the weight, (n, 3)."""
        upright = x[2 * self.count : 3 * self.count, None] / self.count
        return np.hstack([self.slopes(x) * upright, upright])

    def turn(self, x: Array) -> Array:
        """Rotation of the load by its tilt, (3, 3)."""
        if self.lean_rad == 0.0:
            return np.eye(3)
        roll, pitch = x[3 * self.count : 3 * self.count + 2]
        return matrix(from_rotation_vector(np.array([roll, pitch, 0.0])))

    def drones_at(self, x: Array) -> Array:
        """Places of the drones about the load's centre, (n, 3) [m]."""
        along = self.forces(x) + self.half_cable
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        return np.asarray(
            self.at_load @ self.turn(x).T + self.length_m[:, None] * along - self.hooks_m
        )

    def balance(self, x: Array) -> Array:
        """Force over the weight, and moment over weight and arm, on the load, (6,)."""
        forces = self.forces(x)
        turn = self.turn(x)
        moment = np.cross(self.at_load @ turn.T, forces).sum(axis=0)
        moment -= np.cross(turn @ self.centre_m, [0.0, 0.0, 1.0])
        return np.concatenate([forces.sum(axis=0) - [0.0, 0.0, 1.0], moment / self.arm_m])

    def room(self, x: Array) -> Array:
        """Distances to the limits, >= 0: rotors apart, slopes of the cables, tilt."""
        places = self.drones_at(x)[:, :2]
        gap = places[self.pairs[0]] - places[self.pairs[1]]
        apart = (gap * gap).sum(axis=1) / self.apart_m**2 - 1.0
        flat = self.steepest**2 - (self.slopes(x) ** 2).sum(axis=1)
        if self.lean_rad == 0.0:
            return np.concatenate([apart, flat])
        roll, pitch = x[3 * self.count : 3 * self.count + 2]
        return np.concatenate([apart, flat, [self.lean_rad**2 - roll**2 - pitch**2]])

    def search(
        self, cost: Callable[[Array], float], start: Array, *limits: Callable[[Array], Array]
    ) -> tuple[Array, float]:
        """Search the forces of the least cost that hold the load within all limits.

        `start`: unknowns x, and those that cost and `limits` (>= 0) have beside them. Also returns
        what they miss, of the weight or of a limit: all of them do a little.
        """
        positive = [self.room, *limits]
        bounds: list[Any] = [(-self.steepest, self.steepest)] * (2 * self.count)
        bounds += [self.shares] * self.count
        bounds += [(None, None)] * (len(start) - len(bounds))
        constraints: list[Any] = [{"type": "eq", "fun": self.balance}]
        constraints += [{"type": "ineq", "fun": fun} for fun in positive]
        x = scipy.optimize.minimize(
            cost,
            start,
            method="SLSQP",
            bounds=bounds,
            constraints=constraints,
            options={"maxiter": 300, "ftol": 1e-10},
        ).x
        short = np.concatenate([np.abs(self.balance(x)), *(-fun(x) for fun in positive)])
        return x, float(short.max())
