"""Start of plants without chains: motion of load and drones, and their records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musls_description.numerics.arrays import Array
from musls_description.numerics.records import lead_to, pack_tables
from musls_description.system.drone import Drone
from musls_description.system.obstacles import AnyObstacle
from musls_description.system.slung_system import Load, SlungLoadSystem
from musls_sim.plants.interface import Motion
from musls_sim.plants.massless.records import (
    BODY,
    CABLE,
    EVENT,
    MAX_EVENTS,
    SYSTEM,
    Tables,
)
from musls_sim.plants.rigid_body import (
    contact_step_s,
    corner_constants,
    corner_records,
    rotor_records,
    surfaces_of,
)

Records = NDArray[np.void]

# ---------- The records of a system in its start

NOISE = 1e-12
"""Tension that counts as none, over the weight of everything."""


def build_records(
    system: SlungLoadSystem,
    start: Motion,
    *,
    gravity_m_s2: float,
    ground_height_enu_m: float | None,
    step_s: float,
    restitution: float,
    obstacles: Sequence[AnyObstacle],
) -> tuple[Array, Tables]:
    """Records of a system in its start: their memory, which begins with the first, and views.

    Of the cables only the lengths count. `step_s` is the longest step, a ground height of None
    means no ground; for `restitution` see `MasslessPlant`.
    """
    n, r = system.n_drones, system.n_rotors
    parts: list[Load | Drone] = [system.load, *system.drones]
    solids = surfaces_of(ground_height_enu_m, obstacles)
    corners = corner_records([part.collision.corners_m for part in parts], len(solids))
    bodies = np.zeros(1 + n, BODY)
    for i, (body, part) in enumerate(zip(bodies, parts, strict=True)):
        _write_body(body, part, 8 * len(solids) * i, 8 * len(solids))
    state = bodies["state"]
    state["position"], state["velocity"] = start.position_enu_m, start.velocity_enu_m_s
    state["attitude"], state["omega"] = start.orientation_wxyz, start.omega_body_rad_s
    t = np.zeros(1, SYSTEM)
    t["load"]["linear"] = 1.0 / np.sqrt(system.load.mass_kg)
    if bodies["inertia"][0].any():
        t["load"]["angular"] = np.linalg.cholesky(bodies["inverse_inertia"][0])
    t["gravity"], t["friction"] = gravity_m_s2, system.ground_friction
    t["restitution"], t["step"], t["wind"] = restitution, step_s, np.nan
    t["contact_step"] = min(
        contact_step_s(p.mass_kg, _turning(p), p.collision.corners_m) for p in parts
    )
    t["tension_noise"] = NOISE * bodies["mass"].sum() * gravity_m_s2
    arrays = {
        "system": t,
        "bodies": bodies,
        "whole": np.zeros(1, BODY),
        "cables": _cables(system, parts),
        "corners": corners,
        "rotors": rotor_records(system),
        "events": np.zeros(MAX_EVENTS, EVENT),
        "speed": np.zeros((n, r)),
        "middle_speed": np.zeros((n, r)),
        "end_speed": np.zeros((n, r)),
        "shown": np.zeros((1 + n, 16)),
        "force": np.zeros((n, 6)),
        "command": np.zeros((n, r)),
        "solids": solids,
    }
    memory, views = pack_tables(arrays)
    lead_to(views["system"]["moving"], views["bodies"])
    return memory, Tables(**views)


def _write_body(body: np.void, part: Load | Drone, first_corner: int, corners: int) -> None:
    inertia = np.array(part.inertia_kg_m2)
    body["mass"], body["inverse_mass"], body["free"] = part.mass_kg, 1.0 / part.mass_kg, 1
    body["inertia"], body["drag"] = inertia, part.drag_n_s_m
    if inertia.any():  # a point mass does not turn
        body["inverse_inertia"] = np.linalg.inv(inertia)
    body["stiffness"], body["damping"] = corner_constants(part.mass_kg)
    body["radius"] = np.linalg.norm(part.collision.corners_m, axis=1).max()
    body["first_corner"], body["corners"] = first_corner, corners


def _cables(system: SlungLoadSystem, parts: list[Load | Drone]) -> Records:
    rows = np.zeros(system.n_drones, CABLE)
    least = [float(np.linalg.eigvalsh(_turning(p))[0]) for p in parts]
    for i, (row, cable, drone) in enumerate(zip(rows, system.cables, system.drones, strict=True)):
        ends = np.array(system.load.cable_attachments_m[i]), np.array(drone.cable_attachment_m)
        row["length"], (row["load_point"], row["drone_point"]) = cable.length_m, ends
        across = 1.0 / cable.length_m
        arms = [float(np.linalg.norm(end)) for end in ends]
        row["load_spin"] = arms[0] / least[0] + across / system.load.mass_kg
        row["drone_spin"] = arms[1] / least[1 + i] + across / drone.mass_kg
    return rows


def _turning(part: Load | Drone) -> Array:
    """Inertia, for a point mass a very large one."""
    inertia = np.array(part.inertia_kg_m2)
    return inertia if inertia.any() else 1e9 * np.eye(3)
