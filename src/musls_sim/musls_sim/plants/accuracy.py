"""The longest step with which a motion is as accurate as asked for, `physics.accuracy`.

What decides is how far a step goes into the fastest swing of load and drones, with the frequency

    w = sqrt(g / L (1 + m / M)),

L the shortest cable, m the mass of load and cables, M that of the drones. In 2 s of a free swing
from 40 degrees a method of order p is off by at most 2 (w h)^p of the way, measured for the plants
and for cables from 0.5 to 2.4 m (`test_accuracy.py`). Flights that an autopilot holds are ten times
better. Jerks are not counted: what they do is told by `musls fly --verify`.
"""

from __future__ import annotations

import numpy as np

from musls_description.system import RigSystem
from musls_sim.scenario.physics import CONTROL_PERIOD_S, PhysicsSpec

SWING_ERROR = 2.0
"""Error of a swing as a share of its way, over (w h)^p."""


def swing_rad_s(system: RigSystem, gravity_m_s2: float) -> float:
    """Frequency of the fastest swing w [rad/s]."""
    shortest = min(cable.length_m for cable in system.cables)
    drones = sum(drone.mass_kg for drone in system.drones)
    between = 1.0 + system.carried_mass_kg / drones if drones else 1.0
    return float(np.sqrt(gravity_m_s2 / shortest * between))


def accurate_step_s(system: RigSystem, physics: PhysicsSpec, order: int) -> float:
    """Longest step, up to the control period, for a plant that steps by a method of this order."""
    turn = (physics.accuracy / SWING_ERROR) ** (1.0 / order)
    return float(min(turn / swing_rad_s(system, physics.gravity_m_s2), CONTROL_PERIOD_S))


def step_s(system: RigSystem, physics: PhysicsSpec, order: int) -> float:
    """Step of a plant that is stable with any: the one given, or as accurate as asked for."""
    given = physics.step_size_s
    return accurate_step_s(system, physics, order) if isinstance(given, str) else given
