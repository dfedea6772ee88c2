"""Start at rest in the air: static equilibrium of load, rigid-link cables and hovering drones.

A link in equilibrium between frictionless pins lies along the mean of the forces at its two
ends. With F the force of the cable on the load and m_l the mass of a link, link j (from the
load, j = 1..n) therefore points along F + (j - 1/2) m_l g e_3: the exact shape of the chain, of
which the catenary is the limit. What remains is to find the pose of the load and the forces F_i
for which each chain ends at its drone: 6 + 3 n_drones equations (4 to 9 with all rates zero).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.roots import nearest_root, root
from musls_description.rotations import from_rotation_vector, matrix
from musls_description.spawn.configuration import (
    Configuration,
    chain_from_directions,
    configuration_from_directions,
    level_rotation,
)
from musls_description.system import Cable, SlungLoadSystem
from musls_description.tree import cable_azimuth_rad, joint_in_load

Array = NDArray[np.float64]


@dataclass(frozen=True)
class HangingEquilibrium:
    """A hovering system at rest.

    Attributes:
        configuration: Pose of all bodies.
        cable_force_n: Force of each cable on the load, world frame, (n_drones, 3).
        drone_force_n: Total thrust that each drone needs, world frame, (n_drones, 3).
        drone_moment_n_m: Moment that each drone's rotors need, drone frame, (n_drones, 3).
    """

    configuration: Configuration
    cable_force_n: Array
    drone_force_n: Array
    drone_moment_n_m: Array

    @property
    def load_end_tension_n(self) -> Array:
        """Tension of each cable at the load, (n_drones,) [N]."""
        return np.linalg.norm(self.cable_force_n, axis=1)


def link_directions(force_on_load_n: Array, cable: Cable, gravity_m_s2: float) -> Array:
    """Unit directions of a chain's links in equilibrium, from the load upwards, (links, 3)."""
    return _directions(force_on_load_n, _weights_n(cable, gravity_m_s2))


def _weights_n(cable: Cable, gravity_m_s2: float) -> Array:
    """Forces that carry the cable below the middle of each link, world (links, 3)."""
    weights = np.zeros((cable.links, 3))
    weights[:, 2] = (np.arange(cable.links) + 0.5) * cable.link_mass_kg * gravity_m_s2
    return weights


def _directions(force_on_load_n: Array, weights_n: Array) -> Array:
    forces = force_on_load_n + weights_n
    return forces / np.sqrt((forces * forces).sum(axis=1))[:, None]


def hanging_equilibrium(
    system: SlungLoadSystem,
    drone_positions_enu_m: Array,
    gravity_m_s2: float = 9.80665,
    load_yaw_rad: float = 0.0,
    drone_yaws_rad: Array | None = None,
) -> HangingEquilibrium:
    """Find how the load hangs below drones that hover at given places.

    Args:
        system: The system; the cables must have no joint stiffness.
        drone_positions_enu_m: Centres of mass, (n_drones, 3).
        gravity_m_s2: Gravity.
        load_yaw_rad: Approximate heading of the load: picks one of several solutions, and is
            kept exactly where nothing else determines it (one cable on the axis).
        drone_yaws_rad: Yaws of drones on cables that are free to twist, (n_drones,); by default
            they face the load.

    Raises:
        ConfigError: The cables cannot reach, or there is joint stiffness.
    """
    if any(cable.joint.stiffness_n_m_rad for cable in system.cables):
        raise ConfigError(
            "a hovering start needs cables with joint.stiffness_n_m_rad 0 "
            "(the chain's equilibrium is solved for free joints); start on the ground"
        )
    if drone_yaws_rad is None:
        azimuths = [cable_azimuth_rad(system, i) for i in range(system.n_drones)]
        drone_yaws_rad = load_yaw_rad + np.array(azimuths) + np.pi
    problem = _Problem(
        system, np.asarray(drone_positions_enu_m, float), gravity_m_s2, load_yaw_rad, drone_yaws_rad
    )
    # Four and more cables have several equilibria, with other shares of the weight.
    search = root if system.n_drones < 4 else nearest_root
    solution = search(problem.residual, problem.first_guess(), 1e-8)
    if solution is None:
        raise ConfigError(
            "no hanging equilibrium: the cables do not reach from the load to the drones at "
            + ", ".join(str(np.round(p, 3).tolist()) for p in problem.drones)
        )
    return problem.result(solution)


def drones_above(
    system: SlungLoadSystem,
    load_position_enu_m: Array,
    load_rotation: Array,
    cable_force_n: Array,
    gravity_m_s2: float,
    drone_yaws_rad: Array,
) -> Array:
    """Find where hovering drones are when their cables pull a load with given forces.

    Args:
        system: Load, cables and drones.
        load_position_enu_m: Its centre of mass, (3,).
        load_rotation: Load frame to world, (3, 3).
        cable_force_n: Force of each cable on the load, world frame, (n_drones, 3).
        gravity_m_s2: Gravity.
        drone_yaws_rad: Yaws of drones on cables that are free to twist, (n_drones,).

    Returns:
        Centres of mass, (n_drones, 3) [m]; in them `hanging_equilibrium` finds these forces, if
        they hold the load.
    """
    problem = _Problem(system, np.zeros((system.n_drones, 3)), gravity_m_s2, 0.0, drone_yaws_rad)
    places = []
    for i, force in enumerate(cable_force_n):
        anchor = load_position_enu_m + load_rotation @ problem.anchors[i]
        _, reach, attitude, _ = problem._drone(i, load_rotation, force)
        places.append(anchor + reach - attitude @ system.drones[i].cable_attachment_m)
    return np.array(places)


class _Problem:
    """Unknowns: load position, load rotation vector relative to the yaw guess, forces F_i."""

    def __init__(
        self,
        system: SlungLoadSystem,
        drones: Array,
        gravity: float,
        yaw: float,
        drone_yaws: Array,
    ) -> None:
        self.system, self.drones, self.g, self.drone_yaws = system, drones, gravity, drone_yaws
        self.yaw = matrix(from_rotation_vector(np.array([0.0, 0.0, yaw])))
        self.anchors = np.array(system.load.cable_attachments_m)
        self.weights_n = [_weights_n(cable, gravity) for cable in system.cables]
        self.hooks = [np.array(drone.cable_attachment_m, float) for drone in system.drones]
        self.carried_n = [
            np.array([0.0, 0.0, (drone.mass_kg + cable.mass_kg) * gravity])
            for drone, cable in zip(system.drones, system.cables, strict=True)
        ]
        self.starts = [joint_in_load(cable_azimuth_rad(system, i)) for i in range(len(drones))]

    def first_guess(self) -> Array:
        """Load below the middle of the drones, each cable straight with its share of the weight."""
        lengths = np.array([c.length_m for c in self.system.cables])
        center = self.drones.mean(axis=0)
        spread = np.linalg.norm(self.drones[:, :2] - center[:2], axis=1)
        reach = np.linalg.norm(self.anchors[:, :2], axis=1)
        drop = np.sqrt(np.maximum(lengths**2 - (spread - reach) ** 2, (0.3 * lengths) ** 2))
        position = center - [0.0, 0.0, drop.mean() + self.anchors[:, 2].mean()]
        along = self.drones - (position + self.anchors @ self.yaw.T)
        share = self.system.load.mass_kg * self.g / len(self.drones)
        return np.concatenate([position, np.zeros(3), (along / along[:, 2:] * share).ravel()])

    def _drone(self, i: int, rotation: Array, force: Array) -> tuple[Array, Array, Array, Array]:
        """Chain directions, end of the chain relative to its start, drone rotation and thrust."""
        cable = self.system.cables[i]
        links = _directions(force, self.weights_n[i])
        thrust = force + self.carried_n[i]
        directions = np.concatenate([links, (thrust / math.sqrt(thrust @ thrust))[None]])
        if cable.twist == "free":
            attitude = level_rotation(directions[-1], self.drone_yaws[i])
        else:
            _, attitude = chain_from_directions(rotation @ self.starts[i], directions)
        return directions, links.sum(axis=0) * cable.link_length_m, attitude, thrust

    def residual(self, x: Array) -> Array:
        """Force and moment balance of the load, gaps between chains and drones."""
        position, forces = x[:3], x[6:].reshape(-1, 3)
        rotation = matrix(from_rotation_vector(x[3:6])) @ self.yaw
        arms = self.anchors @ rotation.T
        weight = np.array([0.0, 0.0, self.system.load.mass_kg * self.g])
        gaps = []
        for i, force in enumerate(forces):
            _, reach, attitude, _ = self._drone(i, rotation, force)
            gaps.append(position + arms[i] + reach - self.drones[i] - attitude @ self.hooks[i])
        balance = forces.sum(axis=0) - weight
        pairs = arms.T @ forces  # sums of products over the cables
        moment = [pairs[1, 2] - pairs[2, 1], pairs[2, 0] - pairs[0, 2], pairs[0, 1] - pairs[1, 0]]
        return np.concatenate([balance, moment, *gaps])

    def result(self, x: Array) -> HangingEquilibrium:
        """Turn the solved unknowns into the result."""
        forces = x[6:].reshape(-1, 3)
        rotation = matrix(from_rotation_vector(x[3:6])) @ self.yaw
        directions, thrusts, moments = [], [], []
        for i, force in enumerate(forces):
            chain, _, attitude, thrust = self._drone(i, rotation, force)
            directions.append(chain)
            thrusts.append(thrust)
            pull = -(force + [0.0, 0.0, self.system.cables[i].mass_kg * self.g])
            hook = np.array(self.system.drones[i].cable_attachment_m)
            moments.append(-np.cross(hook, attitude.T @ pull))
        configuration = configuration_from_directions(
            self.system, x[:3], rotation, directions, self.drone_yaws
        )
        return HangingEquilibrium(configuration, forces, np.array(thrusts), np.array(moments))


def slung_between(
    system: SlungLoadSystem,
    load_position_enu_m: Array,
    load_rotation: Array,
    drone_positions_enu_m: Array,
    drone_yaws_rad: Array,
    gravity_m_s2: float = 9.80665,
) -> Configuration:
    """Hang slack cables between a load that is held and level drones.

    Args:
        system: The system.
        load_position_enu_m: (3,).
        load_rotation: Load frame to world, (3, 3).
        drone_positions_enu_m: Centres of mass, (n_drones, 3).
        drone_yaws_rad: (n_drones,).
        gravity_m_s2: Gravity.

    Raises:
        ConfigError: A cable is too short.
    """
    attitudes = [level_rotation(np.array([0.0, 0.0, 1.0]), yaw) for yaw in drone_yaws_rad]
    return slung_state(
        system,
        load_position_enu_m,
        load_rotation,
        drone_positions_enu_m,
        np.array(attitudes),
        gravity_m_s2,
    )[0]


def slung_state(
    system: SlungLoadSystem,
    load_position_enu_m: Array,
    load_rotation: Array,
    drone_positions_enu_m: Array,
    drone_rotations: Array,
    gravity_m_s2: float = 9.80665,
) -> tuple[Configuration, Array]:
    """Hang cables between a load and drones that are held in given poses.

    Args:
        system: The system.
        load_position_enu_m: (3,).
        load_rotation: Load frame to world, (3, 3).
        drone_positions_enu_m: Centres of mass, (n_drones, 3).
        drone_rotations: Drone frames to world, (n_drones, 3, 3).
        gravity_m_s2: Gravity.

    Returns:
        The configuration, and the attitudes that the drones have in it, (n_drones, 3, 3): on a
        cable that does not twist the yaw follows from the cable.

    Raises:
        ConfigError: A cable is too short.
    """
    directions, reached, yaws = [], [], []
    for i, (cable, drone) in enumerate(zip(system.cables, system.drones, strict=True)):
        attitude = drone_rotations[i]
        hook = drone_positions_enu_m[i] + attitude @ drone.cable_attachment_m
        anchor = load_position_enu_m + load_rotation @ system.load.cable_attachments_m[i]
        links = _slack_chain(cable, hook - anchor, gravity_m_s2)
        if links is None:
            raise ConfigError(
                f"cable_{i + 1} of {cable.length_m:g} m is too short: its ends are "
                f"{np.linalg.norm(hook - anchor):.3f} m apart"
            )
        directions.append(np.vstack([links, attitude[:, 2]]))
        # Level heading that belongs to this z axis, see `level_rotation`.
        level = attitude @ np.array([1.0, 0.0, 0.0])
        yaws.append(float(np.arctan2(level[1], level[0])))
        start = load_rotation @ joint_in_load(cable_azimuth_rad(system, i))
        yaw = yaws[i] if cable.twist == "free" else None
        reached.append(chain_from_directions(start, directions[i], yaw)[1])
    configuration = configuration_from_directions(
        system, load_position_enu_m, load_rotation, directions, np.array(yaws)
    )
    return configuration, np.array(reached)


def _slack_chain(cable: Cable, span: Array, gravity_m_s2: float) -> Array | None:
    """Directions of the links of a chain that hangs over a span, (links, 3); None if too short."""
    distance = float(np.linalg.norm(span))
    if distance > cable.length_m * (1.0 + 1e-9):
        return None
    if distance > cable.length_m * (1.0 - 1e-6):
        return np.tile(span / distance, (cable.links, 1))
    weight = cable.mass_kg * gravity_m_s2

    def gap(force: Array) -> Array:
        links = link_directions(force * weight, cable, gravity_m_s2)
        return links.sum(axis=0) * cable.link_length_m - span

    along = span[:2] / max(float(np.linalg.norm(span[:2])), 1e-9)
    for pull, lift in ((0.3, -0.3), (0.1, -0.1), (1.0, 0.5), (0.05, -0.4), (0.0, 20.0)):
        guess = np.array([*(pull * along), lift])
        solution = root(gap, guess, 1e-6)
        if solution is not None:
            return link_directions(solution * weight, cable, gravity_m_s2)
    return None
