"""Cuts, breaks, hooks and another load of a plant of rigid links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from musls_sim.plants.bodies import OMEGA, POSITION, VELOCITY
from musls_sim.plants.changes import AttachHook, CutCable, ReleaseHook, check_cut
from musls_sim.plants.interface import PlantEvent
from musls_sim.plants.rigid_links.pieces import closed, opened

if TYPE_CHECKING:
    from musls_sim.plants.rigid_links.dart_plant import DartPlant

Array = NDArray[np.float64]


def change_joints(plant: DartPlant, change: CutCable | ReleaseHook | AttachHook) -> None:
    """Open or close a joint; what is open or closed already stays so.

    Raises:
        ConfigError: There is no such cable or segment.
    """
    check_cut(plant.system, change)
    first = int(plant.tree.first_link[change.cable - 1])
    if isinstance(change, AttachHook):
        _close(plant, first)
    elif isinstance(change, CutCable):
        _open(plant, first + change.segment - 1)
    else:
        _open(plant, first if change.at == "load" else int(plant.tree.drone[change.cable - 1]))


def is_open(plant: DartPlant, cable: int) -> bool:
    """See `interface.Hooked`."""
    return bool(plant.tree.bodies[plant.tree.first_link[cable]].parent < 0)


def hook_miss(plant: DartPlant, cable: int) -> tuple[float, float]:
    """See `interface.Hooked`."""
    body = plant.tree.first_link[cable]
    load, hook = plant.tables.motion[0], plant.tables.motion[body]
    arm = load[:9].reshape(3, 3) @ plant.whole.bodies[body].joint_in_parent_position_m
    way = load[POSITION : POSITION + 3] + arm - hook[POSITION : POSITION + 3]
    there = load[VELOCITY : VELOCITY + 3] + np.cross(load[OMEGA : OMEGA + 3], arm)
    speed = there - hook[VELOCITY : VELOCITY + 3]
    return float(np.linalg.norm(way)), float(np.linalg.norm(speed))


def break_overloaded(plant: DartPlant) -> None:
    """Part the cables whose tension was beyond their break force in the last period.

    At the end where it is larger: the links beyond it go on with their joints.
    """
    for i, cable in enumerate(plant.system.cables):
        tension, limit = plant.tables.peak[i], cable.elastic.break_force_n
        if limit is None or tension <= limit:
            continue
        force = plant.state.tension_n[i]
        at_load = force[0] >= force[1]
        body = int((plant.tree.first_link if at_load else plant.tree.drone)[i])
        if plant.tree.bodies[body].parent < 0:
            continue
        _open(plant, body)
        where = "load" if at_load else "drone"
        what = f"cable_{i + 1}: broke at the {where} at {tension:.4g} N"
        plant.happened.append(PlantEvent(plant.time_s, "cable_broken", what))


def change_load(plant: DartPlant, mass_kg: float) -> None:
    """Give the load another mass; velocities stay, energy is counted anew."""
    row = plant.tables.masses[0]
    row[4:] *= mass_kg / row[0]
    row[0] = mass_kg
    plant.set_load(row)


def cable_nodes_enu_m(plant: DartPlant, index: int) -> Array:
    """Joints of a cable (from 0) from the load to the drone, (links + 1, 3)."""
    first, drone = plant.tree.first_link[index], plant.tree.drone[index]
    table = plant.tables.motion
    nodes = np.empty((drone - first + 1, 3))
    nodes[:-1] = table[first:drone, POSITION : POSITION + 3]
    if plant.tree.bodies[drone].parent < 0:  # nothing holds the upper end
        top, end = table[drone - 1], np.array([plant.system.cables[index].link_length_m, 0.0, 0.0])
    else:
        top, end = table[drone], np.array(plant.system.drones[index].cable_attachment_m)
    nodes[-1] = top[POSITION : POSITION + 3] + top[:9].reshape(3, 3) @ end
    return nodes


def cable_end_rotations(plant: DartPlant, index: int) -> Array:
    """Rotations of a cable's first and last link, world, (2, 3, 3)."""
    ends = [plant.tree.first_link[index], plant.tree.drone[index] - 1]
    turns: Array = plant.tables.motion[ends, :9].reshape(2, 3, 3)
    return turns


def _open(plant: DartPlant, body: int) -> None:
    if plant.tree.bodies[body].parent >= 0:
        plant.become(opened(plant.pieces, body))


def _close(plant: DartPlant, body: int) -> None:
    if plant.tree.bodies[body].parent < 0:
        masses = plant.tables.masses
        plant.become(closed(plant.pieces, body, plant.whole.bodies[body], masses))
