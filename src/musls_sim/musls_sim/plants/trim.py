"""Rotor speeds that hold a drone in equilibrium, and its drag at these."""

from __future__ import annotations

import numpy as np

from musls_description.hanging.equilibrium import HangingEquilibrium
from musls_description.numerics.arrays import Array
from musls_description.system.drone import Drone
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.rigid_body import rotor_records


def trim_speeds_rad_s(system: RigSystem, equilibrium: HangingEquilibrium) -> Array:
    """Rotor speeds whose thrust and moments hold every drone, (n_drones, n_rotors) [rad/s].

    Of the many solutions with more than four rotors, the one with the smallest thrusts. A rotor
    that would have to pull downwards stands still.
    """
    thrust_n = np.linalg.norm(equilibrium.drone_force_n, axis=1)
    return speeds_for_rad_s(system, thrust_n, equilibrium.drone_moment_n_m)


def speeds_for_rad_s(system: RigSystem, thrust_n: Array, moment_body_n_m: Array) -> Array:
    """Rotor speeds that give thrusts and moments, (n_drones, n_rotors) [rad/s].

    `thrust_n`: thrust of each drone, (n_drones,).
    `moment_body_n_m`: moment of each in its frame, (n_drones, 3).
    """
    speeds = np.empty((system.n_drones, system.n_rotors))
    for i, rotors in enumerate(rotor_records(system)):
        (x, y, _), thrust = rotors["place"].T, rotors["thrust"]
        effect = np.stack([thrust, y * thrust, -x * thrust, rotors["torque"]])
        wanted = [thrust_n[i], *moment_body_n_m[i]]
        squared = np.linalg.lstsq(effect, np.array(wanted), rcond=None)[0]
        speeds[i] = np.sqrt(np.maximum(squared, 0.0))
    return speeds


def trim_throttle(system: RigSystem, speed_rad_s: Array) -> Array:
    """Motor commands u in [0, 1] that give rotor speeds, (n_drones, n_rotors)."""
    limits = np.array(
        [[(r.speed_min_rad_s, r.speed_max_rad_s) for r in d.rotors] for d in system.drones]
    )
    throttle: Array = (speed_rad_s - limits[..., 0]) / (limits[..., 1] - limits[..., 0])
    return throttle


def hover_throttle(drone: Drone, thrust_n: float) -> float:
    """Mean motor command u of rotors that together give a thrust; beyond [0, 1] they cannot."""
    least, most = np.array([(r.speed_min_rad_s, r.speed_max_rad_s) for r in drone.rotors]).T
    speed = most * np.sqrt(thrust_n / drone.max_thrust_n)
    return float(np.mean((speed - least) / (most - least)))


def drag_n_s_m(drone: Drone, thrust_n: float) -> Array:
    """Linear drag of a level drone along x, y, z, rotors included, (3,).

    `thrust_n`: of all rotors; their drag goes with their speed.
    """
    share_n = thrust_n / len(drone.rotors)
    rotors = sum(
        r.drag_n_s2_m_rad * np.sqrt(share_n / r.thrust_coefficient_n_s2) for r in drone.rotors
    )
    drag: Array = np.array(drone.drag_n_s_m) + rotors * np.array([1.0, 1.0, 0.0])
    return drag
