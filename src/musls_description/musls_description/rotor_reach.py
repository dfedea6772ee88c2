"""How far the rotors of a drone reach."""

from __future__ import annotations

import numpy as np

from musls_description.system import Drone


def propeller_radius_m(drone: Drone) -> float:
    """Radius of a drone's propellers; where it is unknown, the largest for which there is room."""
    propeller = drone.propulsion.propeller if drone.propulsion else None
    if propeller is not None and propeller.diameter_m is not None:
        return propeller.diameter_m / 2.0
    hubs = np.array([rotor.position_m[:2] for rotor in drone.rotors])
    gaps = np.linalg.norm(hubs[:, None] - hubs[None], axis=2)
    apart = gaps[gaps > 1e-6]  # coaxial rotors share a place
    return float(apart.min()) / 2.0 if len(apart) else 0.0


def tip_radius_m(drone: Drone) -> float:
    """Distance of the outermost rotor tip from the drone's axis."""
    hubs = [np.hypot(*rotor.position_m[:2]) for rotor in drone.rotors]
    return float(max(hubs)) + propeller_radius_m(drone)
