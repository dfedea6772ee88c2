"""Load and drones of a slung-load system as a rig, in a configuration of rigid links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musls_description.spawn import Configuration
from musls_description.system import SlungLoadSystem
from musls_description.tree import build_tree
from musls_sim.plants.elastic.equilibrium import hanging_nodes, holding_forces, resampled
from musls_sim.plants.elastic.line import Line
from musls_sim.plants.elastic.parts import rig_body
from musls_sim.plants.elastic.rig import RigBody, RigCable
from musls_sim.plants.rigid_links.kinematics import body_motion, joint_table

Array = NDArray[np.float64]


def slung_parts(
    system: SlungLoadSystem,
    start: Configuration,
    lines: Sequence[Line],
    gravity: float,
    segments: int | None,
    shape_of: SlungLoadSystem,
) -> tuple[list[RigBody], list[RigCable]]:
    """Bodies (load, drones) and cables (from the drone to the load) of the start.

    Args:
        system: What to build.
        start: Configuration of rigid links at time 0.
        lines: Material of each cable.
        gravity: Gravity [m/s2].
        segments: Segments per cable; None takes the number of links.
        shape_of: System whose rigid links `start` describes.
    """
    tree = build_tree(shape_of)
    motion = np.zeros((len(tree.bodies), 27))
    first = np.append(tree.first_coordinate, tree.n_coordinates)
    parents = np.array([body.parent for body in tree.bodies])
    still = np.zeros(tree.n_coordinates)
    body_motion(start.coordinates, still, parents, first, joint_table(tree), motion)
    load = motion[0]
    arms = np.array(system.load.cable_attachments_m) @ load[:9].reshape(3, 3).T
    directions = motion[tree.first_link, :9].reshape(-1, 3, 3)[:, :, 0]
    link_weights = np.array([k.link_mass_kg * gravity for k in system.cables])
    weight = system.load.mass_kg * gravity
    thrust = motion[tree.drone, :9].reshape(-1, 3, 3)[:, :, 2]
    lifted = gravity * np.array(
        [k.mass_kg + d.mass_kg for k, d in zip(system.cables, system.drones, strict=True)]
    )
    forces = None
    if weight > 0.0:
        forces = holding_forces(directions, arms, link_weights, weight, thrust, lifted)
    bodies = [rig_body(system.load, load[9:12], load[:9].reshape(3, 3))]
    cables = []
    for i, (cable, drone) in enumerate(zip(system.cables, system.drones, strict=True)):
        m = motion[tree.drone[i]].copy()
        hook = m[:9].reshape(3, 3) @ drone.cable_attachment_m
        joints = motion[tree.first_link[i] : tree.drone[i], 9:12]
        n = cable.links if segments is None else segments
        if forces is None:
            nodes = resampled(np.vstack([joints, m[9:12] + hook]), n)
        else:
            shape = n, cable.length_m, cable.mass_kg, gravity
            nodes = hanging_nodes(forces[i], *shape, lines[i].strain)
            nodes += load[9:12] + arms[i]
            m[9:12] = nodes[-1] - hook
        bodies.append(rig_body(drone, m[9:12], m[:9].reshape(3, 3), i))
        points = np.array([drone.cable_attachment_m, system.load.cable_attachments_m[i]])
        cables.append(
            RigCable(
                (1 + i, 0), points, nodes[::-1], cable.length_m, cable.mass_kg, **lines[i]._asdict()
            )
        )
    return bodies, cables
