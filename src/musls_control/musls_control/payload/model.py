"""What the payload controller takes the system to be: one rigid load, massless cables, drones.

Half of a cable's mass counts to the load, as a point mass at the attachment, and half to the drone:
a straight uniform cable at rest pulls at both ends as these two point masses do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from musls_control.controllers.interface import ControlSetup
from musls_control.payload.allocation import wrench_matrix
from musls_control.payload.gains import Gains
from musls_control.payload.kernel import (
    CABLE_COLUMNS,
    DIRECTION_GAIN,
    DIRECTION_RATE_GAIN,
    DRONE_MASS,
    LEAST_TENSION,
)

Array = NDArray[np.float64]


_STRICT = 1e3
"""Weight of the balance of forces against small tensions."""


@dataclass(frozen=True)
class PayloadModel:
    """Numbers of a system.

    Attributes:
        mass_kg: Load with half of all cables.
        inertia_kg_m2: Of the same about its centre of mass, (3, 3).
        attachments_m: About that centre, load frame, (n, 3).
        drone_mass_kg: Drones with half of their cable, (n,).
        hooks_m: Attachments in the drones' frames, (n, 3).
    """

    mass_kg: float
    inertia_kg_m2: Array
    attachments_m: Array
    drone_mass_kg: Array
    hooks_m: Array

    @staticmethod
    def of(setup: ControlSetup) -> PayloadModel:
        """Read the system."""
        system = setup.system
        load = system.load
        arms = np.array(load.cable_attachments_m, np.float64)
        halves = np.array([0.5 * cable.mass_kg for cable in system.cables])
        mass = load.mass_kg + halves.sum()
        center = halves @ arms / mass
        inertia = np.array(load.inertia_kg_m2) + load.mass_kg * _steiner(center)
        for half, arm in zip(halves, arms, strict=True):
            inertia = inertia + half * _steiner(arm - center)
        drones = np.array([drone.mass_kg for drone in system.drones])
        hooks = np.array([drone.cable_attachment_m for drone in system.drones], np.float64)
        return PayloadModel(float(mass), inertia, arms - center, drones + halves, hooks)

    def cables(self, gains: Gains, least_tension_n: float) -> Array:
        """Table of the cables for the compiled law, (n, 10)."""
        table = np.zeros((len(self.attachments_m), CABLE_COLUMNS))
        table[:, 0:3], table[:, 3:6] = self.attachments_m, self.hooks_m
        table[:, DRONE_MASS] = self.drone_mass_kg
        table[:, DIRECTION_GAIN], table[:, DIRECTION_RATE_GAIN] = gains.cable
        table[:, LEAST_TENSION] = least_tension_n
        return table

    def reach_m(self, setup: ControlSetup) -> tuple[Array, Array, Array]:
        """Where level drones can be, load frame, from the centre of mass of load and half cables.

        Returns:
            Places with cables of no length (n, 3), lengths of the cables (n,), and places in
            formation (n, 3).
        """
        n = len(self.attachments_m)
        center = np.array(setup.system.load.cable_attachments_m[0]) - self.attachments_m[0]
        yaw = setup.formation.azimuths_rad(n) + np.pi
        cos, sin = np.cos(yaw), np.sin(yaw)
        x, y, z = self.hooks_m.T
        hooks = np.column_stack([cos * x - sin * y, sin * x + cos * y, z])
        lengths = np.array([cable.length_m for cable in setup.system.cables])
        return self.attachments_m - hooks, lengths, setup.formation.offsets_m(n) - center

    def formation_forces_n(self, setup: ControlSetup) -> Array:
        """Cable forces that hold the level load at rest in formation, load frame, (n, 3)."""
        n = len(self.attachments_m)
        directions = setup.formation.offsets_m(n) - self.attachments_m
        directions -= np.where(np.arange(3) < 2, _outwards(setup, n) * self.hooks_m[:, :1], 0.0)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        effect = wrench_matrix(self.attachments_m).reshape(6, n, 3)
        matrix = np.einsum("cni,ni->cn", effect, directions)
        weight = np.array([0.0, 0.0, self.mass_kg * setup.gravity_m_s2, 0.0, 0.0, 0.0])
        scale = np.array([1.0] * 3 + [1.0 / max(np.abs(self.attachments_m).max(), 0.01)] * 3)
        # Of four and more cables many tensions fit: the smallest, which are even ones.
        rows = np.vstack([_STRICT * matrix * scale[:, None], np.eye(n)])
        tension, _ = nnls(rows, np.concatenate([_STRICT * weight * scale, np.zeros(n)]))
        forces: Array = tension[:, None] * directions
        return forces


def swing_1_s2(model: PayloadModel, setup: ControlSetup) -> float:
    """Squared natural frequency of the shortest cable's swing, load against drones."""
    length = min(cable.length_m for cable in setup.system.cables)
    share = model.mass_kg / float(model.drone_mass_kg.sum())
    return setup.gravity_m_s2 / length * (1.0 + share)


def tilt_1_s2(model: PayloadModel, forces_n: Array) -> tuple[float, float]:
    """Squared natural frequencies of roll and pitch under cable forces that keep their direction.

    Args:
        model: The load; drones above its attachments go up and down with it.
        forces_n: Cable forces, load frame, (n, 3).
    """
    arms = model.attachments_m
    moved = np.einsum("n,ni->i", model.drone_mass_kg, arms[:, [1, 0]] ** 2)
    along = np.sum(arms * forces_n, axis=0)
    held = np.maximum([along[1] + along[2], along[0] + along[2]], 0.0)
    roll, pitch = held / (np.diag(model.inertia_kg_m2)[:2] + moved)
    return float(roll), float(pitch)


def yaw_stiffness_1_s2(model: PayloadModel, forces_n: Array) -> float:
    """Angular acceleration of the load per yaw, under cable forces that keep their direction.

    Args:
        model: The load.
        forces_n: Cable forces, load frame, (n, 3).
    """
    moment = float(np.sum(model.attachments_m[:, :2] * forces_n[:, :2]))
    return max(moment, 0.0) / float(model.inertia_kg_m2[2, 2])


def _outwards(setup: ControlSetup, n: int) -> Array:
    """Horizontal direction from the load to each drone; drones look the other way, (n, 3)."""
    azimuth = setup.formation.azimuths_rad(n)
    return np.column_stack([np.cos(azimuth), np.sin(azimuth), np.zeros(n)])


def _steiner(arm: Array) -> Array:
    """Inertia of a unit point mass, (3, 3)."""
    inertia: Array = arm @ arm * np.eye(3) - np.outer(arm, arm)
    return inertia
