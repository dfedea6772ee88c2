"""Rotor speeds that hold a drone, in equilibrium or in any pose, and its drag at these."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from musls_description.config.errors import ConfigError
from musls_description.hanging.equilibrium import HangingEquilibrium
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import matrix
from musls_description.system.drone import Drone
from musls_description.system.obstacles import depth_and_normal
from musls_description.system.slung_system import Load, RigSystem
from musls_sim.plants.interface import Plant, PlantSetup
from musls_sim.plants.rigid_body import rotor_records, surfaces_of


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
        (x, y, _) = rotors["place"].T
        thrust = rotors["thrust"]
        effect = np.stack([thrust, y * thrust, -x * thrust, rotors["torque"]])
        wrench = [thrust_n[i], *moment_body_n_m[i]]
        squared = np.linalg.lstsq(effect, np.array(wrench), rcond=None)[0]
        speeds[i] = np.sqrt(np.maximum(squared, 0.0))
    return speeds


# ---------- Hover of any pose, in which nothing need be at rest

TAUT = 0.99
"""Distance of a cable's ends over its length from which it carries what hangs on it."""

STANDS_M = 0.005
"""Height above a surface below which a body stands on it."""


def turn_rotors(plant: Plant, setup: PlantSetup) -> None:
    """Set the rotor speeds of a start in a given state: as given, else those of hover there.

    Those of drones that stand on something rest.
    """
    drones = setup.start.drones or ()
    speeds = hover_speeds_rad_s(plant, setup)
    for i, (row, state, drone) in enumerate(zip(speeds, drones, setup.system.drones, strict=True)):
        most = [rotor.speed_max_rad_s for rotor in drone.rotors]
        if (own := state.rotor_speed_rad_s) is not None:
            if len(own) != len(row) or (np.array(own) > most).any():
                raise ConfigError(
                    f"start.drones.{i}.rotor_speed_rad_s = {list(own)}: must be {len(row)} speeds, "
                    f"each at most {min(most):g}"
                )
            row[:] = own
        np.minimum(row, most, out=row)
    plant.set_rotor_speeds(speeds)


def hover_speeds_rad_s(plant: Plant, setup: PlantSetup) -> Array:
    """Rotor speeds with which drones hold their poses, (n_drones, n_rotors) [rad/s].

    Taut cables pull along the line of their ends with the least forces that hold the load best, and
    as hard as they are stretched; slack ones hang by their weight alone.
    """
    system = setup.system
    gravity = setup.physics.gravity_m_s2
    places = plant.state.position_enu_m
    turns = matrix(plant.state.orientation_wxyz)
    stands = _stands(plant, setup)
    up = np.array([0.0, 0.0, gravity])
    masses = np.array([drone.mass_kg for drone in system.drones])
    if plant.cable_model == "rigid_rods":
        assert system.load is not None
        carried = np.array([system.load.mass_kg, *masses])
        thrust = holding_thrusts_n(places, turns[1:, :, 2], carried * gravity)
        return speeds_for_rad_s(system, thrust * ~stands[0], np.zeros((len(thrust), 3)))
    force = masses[:, None] * up
    moment = np.zeros((system.n_drones, 3))
    weight = 0.0 if system.load is None else system.load.mass_kg
    rest = np.concatenate([weight * up, np.zeros(3)])  # that the cables have to do on the load
    # of each taut cable: its ends, and what unit tension does to the load
    pulls = []
    effects = []
    for k, cable in enumerate(system.cables):
        nodes = plant.cable_nodes_enu_m(k)
        ends = [_arm(end.body, end.point_m, turns) for end in system.ends(k)]
        chord = nodes[-1] - nodes[0]
        away = np.array([nodes[1] - nodes[0], nodes[-2] - nodes[-1]])
        if taut := bool(np.linalg.norm(chord) > TAUT * cable.length_m):
            away = np.array([chord, -chord])
        away /= np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12)
        half = 0.5 * cable.mass_kg * up * (plant.cable_model != "massless")
        if taut:
            is_elastic = plant.cable_model == "elastic"
            tension = np.full(2, plant.state.tension_n[k].mean() if is_elastic else 0.0)
        else:
            tension = scipy.optimize.nnls(away.T, -2.0 * half)[0]
            half = 0.0 * half
        effect = np.zeros(6)
        for (row, arm), along, pull in zip(ends, away, tension, strict=True):
            if row > 0:
                _hold(force[row - 1], moment[row - 1], arm, pull * along - half)
            elif row == 0:
                acts = pull * along - half
                rest -= [*acts, *np.cross(arm, acts)]
                effect += [*along, *np.cross(arm, along)]
        if taut:
            pulls.append((ends, away))
            effects.append(effect)
    if effects and not stands[0]:
        more = scipy.optimize.nnls(np.array(effects).T, rest)[0]
        for (ends, away), pull in zip(pulls, more, strict=True):
            for (row, arm), along in zip(ends, away, strict=True):
                if row > 0:
                    _hold(force[row - 1], moment[row - 1], arm, pull * along)
    thrust = np.maximum(np.einsum("ni,ni->n", force, turns[1:, :, 2]), 0.0)
    moment = np.einsum("nji,nj->ni", turns[1:], moment)
    flies = ~stands[1:]
    return speeds_for_rad_s(system, thrust * flies, moment * flies[:, None])


def holding_thrusts_n(places_m: Array, thrust_directions: Array, weights_n: Array) -> Array:
    """Least thrusts of drones that hold load and drones, rigidly joined, best, (n,) [N].

    `places_m` and `weights_n` are of the load and the drones; directions are (n, 3).
    """
    arms = places_m[1:] - weights_n @ places_m / weights_n.sum()
    effect = np.vstack([thrust_directions.T, np.cross(arms, thrust_directions).T])
    wrench = np.array([0.0, 0.0, weights_n.sum(), 0.0, 0.0, 0.0])
    thrust: Array = np.linalg.lstsq(effect, wrench, rcond=None)[0]
    return thrust if thrust.min() >= 0.0 else scipy.optimize.nnls(effect, wrench)[0]


def _arm(name: str, point_m: tuple[float, ...], turns: Array) -> tuple[int, Array]:
    """Row of the body at a cable's end, -1 for an anchor, and the arm of the end in the world."""
    row = 0 if name == "load" else int(name[6:]) if name.startswith("drone_") else -1
    return row, turns[max(row, 0)] @ np.array(point_m)


def _hold(force: Array, moment: Array, arm: Array, pull: Array) -> None:
    """Balance a drone against the pull of a cable."""
    force -= pull
    moment -= np.cross(arm, pull)


def _stands(plant: Plant, setup: PlantSetup) -> NDArray[np.bool_]:
    """Whether load and drones stand on the ground or on obstacles, (1 + n,)."""
    state = plant.state
    system = setup.system
    solids = surfaces_of(setup.ground_height_enu_m, setup.surfaces)
    turns = matrix(state.orientation_wxyz)
    parts: list[Load | Drone | None] = [system.load, *system.drones]
    return np.array(
        [
            part is not None
            and any(
                depth_and_normal(solid, tuple(place + turn @ corner))[0] > -STANDS_M
                for corner in part.collision.corners_m
                for solid in solids
            )
            for part, place, turn in zip(parts, state.position_enu_m, turns, strict=True)
        ]
    )


def trim_throttle(system: RigSystem, speed_rad_s: Array) -> Array:
    """Motor commands u in [0, 1] that give rotor speeds, (n_drones, n_rotors)."""
    limits = np.array(
        [[(r.speed_min_rad_s, r.speed_max_rad_s) for r in d.rotors] for d in system.drones]
    )
    throttle: Array = (speed_rad_s - limits[..., 0]) / (limits[..., 1] - limits[..., 0])
    return throttle
