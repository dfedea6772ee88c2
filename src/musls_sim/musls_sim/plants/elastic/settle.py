"""Lets a rig find its static equilibrium: load and cables hang at rest below what holds them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.system import RigSystem
from musls_sim.plants.elastic import columns as c
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.rig import Rig
from musls_sim.preflight.trim import speeds_for_rad_s

Array = NDArray[np.float64]

LARGEST_LEFT_M_S2 = 1e-6 * 9.80665
"""Acceleration below which a start counts as an equilibrium."""

ANY_TORQUE_N_M = 1e9
"""Brake without a limit."""

MOST_ROUNDS = 30

STEPS_S = (10.0, 1.0, 0.3, 100.0)
"""Steps of `Engine.relax` that are tried."""


def settle(rig: Rig, system: RigSystem) -> Array:
    """Bring a rig to rest; its bodies and cables are changed in place.

    Drones hold their places. They lean so that their thrust holds what hangs on them. Winches stand
    still, wheels turn until both sides pull alike.

    Args:
        rig: To be brought to rest.
        system: Its description.

    Returns:
        Rotor speeds that hold the drones, (n_drones, n_rotors) [rad/s].

    Raises:
        ConfigError: No equilibrium was found, or drones cannot hold it.
    """
    free = [body.prescribed for body in rig.bodies]
    for body in rig.bodies[1:]:
        body.prescribed = True
    _stop(rig)
    for _ in range(MOST_ROUNDS):
        engine, left = _relaxed(rig)
        _take_over(rig, engine)
        turned = [_lean(rig, engine, 1 + i) for i in range(system.n_drones)]
        if max(turned, default=0.0) < 1e-9:
            break
    if not left < LARGEST_LEFT_M_S2:
        raise ConfigError(
            f"start: no equilibrium was found from this start.load ({left:.2g} m/s2 are left); "
            "give start.load.position_enu_m nearer to where it hangs"
        )
    wrenches = [engine.reaction(1 + i) for i in range(system.n_drones)]
    force = np.array([np.linalg.norm(w[:3]) for w in wrenches])
    moment = np.array([rig.bodies[1 + i].rotation.T @ w[3:] for i, w in enumerate(wrenches)])
    for i, (needed, drone) in enumerate(zip(force, system.drones, strict=True), start=1):
        if needed > drone.max_thrust_n:
            raise ConfigError(
                f"start: drone_{i} would have to hold {needed:.4g} N, its rotors give at most "
                f"{drone.max_thrust_n:.4g} N"
            )
    for body, prescribed in zip(rig.bodies, free, strict=True):
        body.prescribed = prescribed
    return speeds_for_rad_s(system, force, moment)


def _relaxed(rig: Rig) -> tuple[Engine, float]:
    """Let everything that is free settle; the longest steps do not always get there."""
    for step_s in STEPS_S:
        engine = Engine(rig)
        engine.brake_nm[:] = ANY_TORQUE_N_M
        left = engine.relax(step_s)
        if left < LARGEST_LEFT_M_S2:
            break
    return engine, left


def _stop(rig: Rig) -> None:
    for body in rig.bodies:
        body.velocity_enu_m_s, body.omega_enu_rad_s = np.zeros(3), np.zeros(3)
    for cable in rig.cables:
        cable.velocities_enu_m_s = None


def _take_over(rig: Rig, engine: Engine) -> None:
    """Keep the places that an engine found."""
    for b, body in enumerate(rig.bodies):
        body.position_enu_m = engine.body(b, c.BX).copy()
        body.rotation = engine.tables.bodies[b, c.BR : c.BR + 9].reshape(3, 3).copy()
    for i, cable in enumerate(rig.cables):
        cable.nodes_enu_m = engine.nodes_enu_m(i).copy()
        length_m = engine.length_m(i)  # a wheel has shared out anew what is on its sides
        cable.mass_kg *= length_m / cable.length_m
        cable.length_m = length_m


def _lean(rig: Rig, engine: Engine, row: int) -> float:
    """Turn a drone's thrust along the force that it has to give; returns the angle [rad]."""
    body, force = rig.bodies[row], engine.reaction(row)[:3]
    up = force / np.linalg.norm(force)
    ahead = body.rotation[:, 0]
    left = np.cross(up, ahead)
    left /= np.linalg.norm(left)
    wanted = np.column_stack([np.cross(left, up), left, up])
    turned = float(np.linalg.norm(np.cross(body.rotation[:, 2], up)))
    shift = wanted - body.rotation
    for cable in rig.cables:  # the ends move with their places on the drone
        for end, node in ((0, 0), (1, -1)):
            if cable.bodies[end] == row:
                cable.nodes_enu_m[node] += shift @ cable.points_m[end]
    body.rotation = wanted
    return turned
