"""Forces in a formation that accelerates as one, in moving air: hanging at rest in a tilted frame.

In the frame of the accelerating load, gravity is g e3 + a. The air's drag on load and cables is
taken as a further acceleration of what is carried. So what is carried hangs at rest under a
gravity g_c = g e3 + a - D_L / m_c of another size and direction, for which the exact chains of
`hanging_equilibrium` are solved in a frame that is turned until g_c is vertical. Each drone then
needs the force of its cable, plus m_i (g e3 + a_i), minus its own drag, where a_i has the
centripetal and tangential parts of the formation's turn. Left out: that the load swings, which a
reference without jumps in its acceleration hardly makes it do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_control.formation import drone_poses
from musls_description.errors import ConfigError
from musls_description.rotations import matrix
from musls_description.slung import formation_of
from musls_description.spawn import hanging_equilibrium
from musls_description.system import Drone
from musls_sim.scenario import Scenario

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Motion:
    """How the formation moves, and in which air.

    Attributes:
        pose: Load's set-point: x, y, z [m], yaw [rad], (4,).
        velocity_enu_m_s: (3,).
        acceleration_enu_m_s2: (3,).
        yaw_rate_rad_s: Of the formation.
        yaw_acceleration_rad_s2: Likewise.
        wind_enu_m_s: Of the air, (3,).
    """

    pose: Array
    velocity_enu_m_s: Array
    acceleration_enu_m_s2: Array
    yaw_rate_rad_s: float
    yaw_acceleration_rad_s2: float
    wind_enu_m_s: Array

    @classmethod
    def at_rest(cls, pose: Array) -> Motion:
        """Hover in still air."""
        return cls(pose, np.zeros(3), np.zeros(3), 0.0, 0.0, np.zeros(3))

    @classmethod
    def of(cls, derivatives: Array, wind_enu_m_s: Array) -> Motion:
        """From a reference's derivatives 0 to 2 or more of x, y, z, yaw, (>= 3, >= 4)."""
        d = derivatives
        return cls(d[0, :4], d[1, :3], d[2, :3], float(d[1, 3]), float(d[2, 3]), wind_enu_m_s)


@dataclass(frozen=True)
class Forces:
    """What a motion takes.

    Attributes:
        thrust_enu_n: Force that each drone's rotors must give, (n, 3).
        tension_n: Of each cable at the load, (n,).
    """

    thrust_enu_n: Array
    tension_n: Array


def forces_of(scenario: Scenario, motion: Motion) -> Forces:
    """Solve for the forces of a motion.

    Raises:
        ConfigError: The cables cannot hold the load so: they do not reach, or one goes slack.
    """
    system = formation_of(scenario.system, "formation")
    cone, gravity = scenario.formation, scenario.physics.gravity_m_s2
    n = system.n_drones
    yaw = float(motion.pose[3])
    offsets, azimuths = cone.offsets_m(n), cone.azimuths_rad(n)
    places, yaws = drone_poses(np.zeros((1, 3)), np.array([yaw]), offsets, azimuths)
    felt = np.array([0.0, 0.0, gravity]) + motion.acceleration_enu_m_s2
    air = motion.wind_enu_m_s - motion.velocity_enu_m_s
    carried = felt - np.array(system.load.drag_n_s_m) * air / system.carried_mass_kg
    size = float(np.linalg.norm(carried))
    if carried[2] <= 0.0:
        raise ConfigError("the load falls faster than gravity: the cables are slack")
    turn = matrix(_upright(carried / size))
    hangs = hanging_equilibrium(system, places[0] @ turn.T, size, yaw, yaws[0])
    up = np.array([0.0, 0.0, size])
    rate, gain = motion.yaw_rate_rad_s, motion.yaw_acceleration_rad_s2
    thrust = np.empty((n, 3))
    for i, drone in enumerate(system.drones):
        cable = turn.T @ (hangs.drone_force_n[i] - drone.mass_kg * up)
        x, y, _ = places[0, i]
        around = np.array([-(rate**2) * x - gain * y, -(rate**2) * y + gain * x, 0.0])
        moving = motion.velocity_enu_m_s + rate * np.array([-y, x, 0.0])
        needed = cable + drone.mass_kg * (felt + around)
        drag = drag_n_s_m(drone, float(np.linalg.norm(needed)))
        thrust[i] = needed - drag * (motion.wind_enu_m_s - moving)
    return Forces(thrust, hangs.load_end_tension_n)


def _upright(direction: Array) -> Array:
    """Rotation by the least angle that turns a unit vector with z > 0 up, quaternion (4,)."""
    x, y, z = direction
    turn = np.array([1.0 + z, y, -x, 0.0])
    return turn / np.linalg.norm(turn)


def drag_n_s_m(drone: Drone, thrust_n: float) -> Array:
    """Linear drag of a level drone along x, y, z, rotors included, (3,).

    Args:
        drone: Body and rotors.
        thrust_n: Of all rotors; their drag goes with their speed.
    """
    share_n = thrust_n / len(drone.rotors)
    rotors = sum(
        r.drag_n_s2_m_rad * np.sqrt(share_n / r.thrust_coefficient_n_s2) for r in drone.rotors
    )
    drag: Array = np.array(drone.drag_n_s_m) + rotors * np.array([1.0, 1.0, 0.0])
    return drag
