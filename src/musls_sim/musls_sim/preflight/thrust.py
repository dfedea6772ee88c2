"""Thrust that a battery's voltage allows."""

from __future__ import annotations

from musls_description.system import Drone


def full_thrust_n(drone: Drone, charge: float) -> float:
    """Thrust of all rotors at the battery's voltage, and not more than at their top speed."""
    assert drone.propulsion is not None
    total = 0.0
    for rotor in drone.rotors:
        k_m = rotor.moment_coefficient_n_m_s2
        speed = drone.propulsion.sagged_speed_rad_s(k_m, charge, len(drone.rotors))
        total += rotor.thrust_coefficient_n_s2 * min(speed, rotor.speed_max_rad_s) ** 2
    return total
