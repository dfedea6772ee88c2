"""Cables without mass that are cut, let go of and hooked up again.

Of a cable without mass that is not held at both ends nothing is left but its picture: it pulls at
nothing. In the tables it becomes so long that it is never taut. A hook that is open at the load
hangs straight below the drone, wherever that goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from musls_sim.plants.bodies import OMEGA, POSITION, VELOCITY
from musls_sim.plants.changes import AttachHook, CutCable, ReleaseHook, check_cut
from musls_sim.plants.massless import columns as c

if TYPE_CHECKING:
    from musls_sim.plants.massless.plant import MasslessPlant

Array = NDArray[np.float64]

ENDLESS_M = 1e6
"""Length of a cable that is not held at both ends."""


def let_go(plant: MasslessPlant, change: CutCable | ReleaseHook) -> None:
    """Take a cable off the load, the drone, or both; nothing else changes.

    Raises:
        ConfigError: There is no such cable or segment.
    """
    check_cut(plant.system, change)
    i = change.cable - 1
    row, held = plant.tables.cables[i], plant.held_by[i]
    row[c.LENGTH], row[c.TAUT], row[c.TENSION] = ENDLESS_M, 0.0, 0.0
    other = "drone"
    if isinstance(change, CutCable):
        other = "nobody"
    elif change.at == "drone":
        other = "load"
    plant.held_by[i] = other if held in ("both", other) else "nobody"


def hook_up(plant: MasslessPlant, change: AttachHook) -> None:
    """Hang a cable that only its drone holds on the load again: slack, it changes nothing."""
    check_cut(plant.system, change)
    i = change.cable - 1
    if plant.held_by[i] == "drone":
        plant.tables.cables[i, c.LENGTH] = plant.system.cables[i].length_m
        plant.held_by[i] = "both"


def hook_miss(plant: MasslessPlant, cable: int) -> tuple[float, float]:
    """Distance and speed of an open hook from its place on the load [m, m/s].

    Infinitely far as long as the cable does not reach from the drone.
    """
    low, high = _ends(plant, cable)
    length = plant.system.cables[cable].length_m
    miss = float(np.linalg.norm(high - [0.0, 0.0, length] - low))
    if np.linalg.norm(high - low) > length:
        miss = np.inf
    row, speeds = plant.tables.cables[cable], []
    for body, at in ((0, c.POINT_LOAD), (cable + 1, c.POINT_DRONE)):
        m = plant.tables.motion[body]
        arm = m[:9].reshape(3, 3) @ row[at : at + 3]
        speeds.append(m[VELOCITY : VELOCITY + 3] + np.cross(m[OMEGA : OMEGA + 3], arm))
    return miss, float(np.linalg.norm(speeds[1] - speeds[0]))


def loose_line(plant: MasslessPlant, cable: int, points: int) -> Array:
    """A cable that is not held at both ends: hangs from its drone, or lies as a point."""
    low, high = _ends(plant, cable)
    held = plant.held_by[cable]
    length = plant.system.cables[cable].length_m if held == "drone" else 0.0
    top = low if held == "load" else high
    along = np.linspace(length, 0.0, points)
    line: Array = top - np.column_stack([0.0 * along, 0.0 * along, along])
    return line


def _ends(plant: MasslessPlant, cable: int) -> tuple[Array, Array]:
    """Both places where a cable hangs, world, (3,) each."""
    row = plant.tables.cables[cable]
    ends = []
    for body, at in ((0, c.POINT_LOAD), (cable + 1, c.POINT_DRONE)):
        m = plant.tables.motion[body]
        ends.append(m[POSITION : POSITION + 3] + m[:9].reshape(3, 3) @ row[at : at + 3])
    return ends[0], ends[1]
