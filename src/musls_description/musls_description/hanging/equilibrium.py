"""Static equilibrium: how chains hang below hovering drones, and between ends that are held."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import scipy

from musls_description.config.errors import ConfigError
from musls_description.hanging.straight_cables import even_shares, share_balance
from musls_description.hanging.tree import (
    Configuration,
    build_tree,
    cable_azimuths_rad,
    chain_from_directions,
    configuration_from_directions,
    joint_in_load,
    level_rotation,
)
from musls_description.numerics.arrays import Array, grasp_matrix
from musls_description.numerics.compiled import compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import from_rotation_vector, matrix, yaw_of
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    body_axes_in_world,
    cross,
    put,
    quaternion_product,
    rotate,
    scale,
    sub,
    unit,
    write_matrix,
)
from musls_description.numerics.vectors import from_rotation_vector as quaternion_of
from musls_description.system.slung_system import Cable, SlungLoadSystem


def root(
    residual: Callable[[Array], Array],
    guess: Array,
    tolerance: float,
    jacobian: Callable[[Array], Array] | Literal["2-point"] = "2-point",
    tries: int = 300,
) -> Array | None:
    """Find unknowns (n,) for which all residuals (m,) vanish; None where there are none.

    Steps of limited length do not jump from one root to another; where the solution is not unique,
    the shortest of them lead to it. They are taken where Newton's do not lead straight to a root.
    """
    if callable(jacobian):
        near = newton(residual, guess, tolerance, jacobian)
        if near is not None:
            return near
    solution = scipy.optimize.least_squares(
        residual, guess, jacobian, x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=tries
    )
    return solution.x if np.abs(solution.fun).max() <= tolerance else None


NEWTON_STEPS = 20
"""Most of Newton's steps to a root."""

UNDETERMINED = 1e-6
"""Least over largest singular value of a Jacobian below which a direction is left as it is, such as
the roll of a beam about the line through its hooks; differences make 1e-8 of it."""


def newton(
    residual: Callable[[Array], Array],
    guess: Array,
    tolerance: float,
    jacobian: Callable[[Array], Array],
) -> Array | None:
    """Find a root, (n,), by Newton's steps from a guess; None where they do not converge.

    Each step must halve the largest residual; the first that does not ends the search, which has
    found a root if the residual is within the tolerance by then. Where the Jacobian is singular the
    step of least length is taken.
    """
    x = guess
    gap = residual(guess)
    for _ in range(NEWTON_STEPS):
        size = np.abs(gap).max()
        farther = x - np.linalg.lstsq(jacobian(x), gap, rcond=UNDETERMINED)[0]
        next_gap = residual(farther)
        if not np.abs(next_gap).max() <= 0.5 * size:
            return x if size <= tolerance else None
        x = farther
        gap = next_gap
    return None


# ---------- Start at rest in the air: static equilibrium of load, chains and hovering drones
#
# A link in equilibrium between frictionless pins lies along the mean of the forces at its two
# ends. With F the force of the cable on the load and m_l the mass of a link, link j (from the
# load, j = 1..n) therefore points along F + (j - 1/2) m_l g e_3: the exact shape of the chain, of
# which the catenary is the limit. What remains is to find the pose of the load and the forces F_i
# for which each chain ends at its drone: 6 + 3 n_drones equations (4 to 9 with all rates zero).
#
# More cables than determine the load (four on a plate, three on a beam, seven) leave their shares
# to the last digits of the places: a tenth of a millimetre is worth half a share, or nothing fits.
# Drones on springs along their cables have one equilibrium, which moves with the places:
# T_i = T_i0 - k d_i, where d_i is the way of the drone from the place that was asked for, and T_i0
# the tension in the forces nearest to even shares of the weight that balance the load (least
# squares in the null space of the grasp matrix). Repeated with the tensions found (iterated
# Tikhonov regularisation), it comes near to the places without making much of their digits. Where
# the cables determine the load, places are kept exactly.

SPRING_M = 0.3
"""Way of a drone on its spring that changes the force of its cable by an even share."""

SOFT_SPRING_M = 1.0
"""Spring length as above, for starts at a level load, whose shares may be as uneven as its
attachments."""

PASSES = 4
"""Passes of the solution with drones on springs. Each adds 3e-4 of a share for a tenth of a
millimetre of a place."""

LARGEST_MISFIT_M = 0.05
"""A drone may stand so far from the place that was asked for."""

LEAST_SHARE = 0.05
"""Least force of each cable in the guess for a level load, as a share of the even one."""

TRIES = 50
"""Steps on springs, and from there to places that fit exactly."""

DETERMINATE = 0.05
"""Least over largest singular value of the cables' grasp from which they carry what they must."""


@dataclass(frozen=True)
class HangingEquilibrium:
    """A hovering system at rest.

    Attributes:
        system: The system that the configuration is of, its drones free to look where its load is
            a point.
        load_position_enu_m: Centre of mass of the load, (3,).
        load_rotation: Load frame to world, (3, 3).
        drone_rotations: Drone frames to world, (n_drones, 3, 3).
        drone_yaws_rad: Yaws that were asked for, of drones whose cables let them, (n_drones,).
        directions: Unit vectors of each cable's links from the load upwards, then the drone's z,
            (links + 1, 3).
        cable_force_n: Force of each cable on the load, world frame, (n_drones, 3).
        drone_force_n: Total thrust that each drone needs, world frame, (n_drones, 3).
        drone_moment_n_m: Moment that each drone's rotors need, drone frame, (n_drones, 3).
        misfit_m: Vector from the requested place of each drone to its own, (n_drones, 3).
    """

    system: SlungLoadSystem
    load_position_enu_m: Array
    load_rotation: Array
    drone_rotations: Array
    drone_yaws_rad: Array
    directions: tuple[Array, ...]
    cable_force_n: Array
    drone_force_n: Array
    drone_moment_n_m: Array
    misfit_m: Array

    @property
    def load_end_tension_n(self) -> Array:
        """Tension of each cable at the load, (n_drones,) [N]."""
        return np.linalg.norm(self.cable_force_n, axis=1)

    @cached_property
    def configuration(self) -> Configuration:
        """Joint angles of all bodies."""
        place = self.load_position_enu_m
        rotation = self.load_rotation
        return configuration_from_directions(
            self.system, place, rotation, self.directions, self.drone_yaws_rad
        )

    @cached_property
    def bodies(self) -> tuple[Array, Array]:
        """Place (1 + n, 3) and orientation [w, x, y, z] (1 + n, 4) of load and drones."""
        return self.configuration.bodies(self.system)

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Joints of cable `index` (from 0) from the load to the drone, (links + 1, 3)."""
        anchor = self.load_rotation @ self.system.load.cable_attachments_m[index]
        links = self.system.cables[index].link_length_m * self.directions[index][:-1]
        nodes = np.vstack([self.load_position_enu_m + anchor, links])
        return np.asarray(nodes.cumsum(axis=0))


class NoEquilibriumError(ConfigError):
    """A load does not hang at rest below its drones."""


def link_directions(force_on_load_n: Array, cable: Cable, gravity_m_s2: float) -> Array:
    """Unit directions of a chain's links in equilibrium, from the load upwards, (links, 3)."""
    forces = np.tile(np.asarray(force_on_load_n, float), (cable.links, 1))
    forces[:, 2] += (np.arange(cable.links) + 0.5) * cable.link_mass_kg * gravity_m_s2
    return forces / np.linalg.norm(forces, axis=1, keepdims=True)


def hanging_equilibrium(
    system: SlungLoadSystem,
    drone_positions_enu_m: Array,
    gravity_m_s2: float = STANDARD_GRAVITY_M_S2,
    load_yaw_rad: float = 0.0,
    drone_yaws_rad: Array | None = None,
) -> HangingEquilibrium:
    """Find how the load hangs below drones that hover at given places.

    Args:
        system: The system; the stiffness of joints does not count.
        drone_positions_enu_m: Centres of mass, (n_drones, 3).
        gravity_m_s2: Gravity.
        load_yaw_rad: Approximate heading of the load: picks one of several solutions, and is
            kept exactly where nothing else determines it (one cable on the axis).
        drone_yaws_rad: Yaws of drones on cables that are free to twist, (n_drones,); by default
            they face the load.

    Of many forces that balance the load, those nearest to even shares of the weight are taken;
    where places nearly fit each other, drones stand beside them (`misfit_m`). Raises
    `NoEquilibriumError` where the cables cannot hold the load below these places.
    """
    if drone_yaws_rad is None:
        drone_yaws_rad = load_yaw_rad + cable_azimuths_rad(system) + np.pi
    places = np.asarray(drone_positions_enu_m, float)
    problem = _Problem(system, places, gravity_m_s2, load_yaw_rad, drone_yaws_rad)
    solution = problem.rest(problem.first_guess())
    if system.n_drones > 1 and (solution is None or _farthest_m(solution) > LARGEST_MISFIT_M):
        level = problem.rest(problem.level_guess(), SOFT_SPRING_M)
        if level is not None and (solution is None or _farthest_m(level) < _farthest_m(solution)):
            solution = level
    if solution is None:
        raise NoEquilibriumError("the load finds no rest below the drones")
    rest = solution
    off = np.linalg.norm(rest.misfit_m, axis=1)
    worst = int(off.argmax())
    if off[worst] > LARGEST_MISFIT_M:
        length_m = system.cables[worst].length_m
        anchor = rest.load_position_enu_m + rest.load_rotation @ problem.anchors[worst]
        apart_m = float(np.linalg.norm(places[worst] + problem.hooks[worst] - anchor))
        if apart_m > length_m:
            raise NoEquilibriumError(
                f"cables do not reach: drone_{worst + 1} would be {apart_m:.2f} m from its "
                f"attachment on the load, its cable has {length_m:g} m; choose a smaller radius, "
                "or longer cables"
            )
        raise NoEquilibriumError(
            f"with its cable of {length_m:g} m, drone_{worst + 1} stands "
            f"{off[worst]:.2f} m from where it would carry its share beside the others "
            f"([{', '.join(f'{v:.2f}' for v in rest.misfit_m[worst])}] m from there)"
        )
    return rest


def _farthest_m(rest: HangingEquilibrium) -> float:
    return float(np.linalg.norm(rest.misfit_m, axis=1).max())


def freed(system: SlungLoadSystem) -> SlungLoadSystem:
    """The system with its drones free to look anywhere, where its load is a point.

    Cables that do not twist need attachments beside each other to say where the drones look.
    """
    if not system.load.point_mass:
        return system
    cables = tuple(replace(cable, twist="free") for cable in system.cables)
    return replace(system, cables=cables)


MIN_MASS_KG = 1e-12
"""Mass of a cable as good as none, the least that a description takes."""


def weightless(system: SlungLoadSystem) -> SlungLoadSystem:
    """The system on single links that weigh next to nothing, as a chain that hangs straight."""
    cables = tuple(
        replace(
            cable, links=1, mass_kg=MIN_MASS_KG, joint=replace(cable.joint, stiffness_n_m_rad=0.0)
        )
        for cable in system.cables
    )
    return replace(system, cables=cables)


def on_massless_cables(chains: HangingEquilibrium, gravity_m_s2: float) -> HangingEquilibrium:
    """Equilibrium on straight cables without mass below the drones of one on chains."""
    (position, orientation) = chains.bodies
    light = weightless(chains.system)
    yaws = yaw_of(orientation)
    return hanging_equilibrium(light, position[1:], gravity_m_s2, float(yaws[0]), yaws[1:])


def drones_above(
    system: SlungLoadSystem,
    load_rotation: Array,
    cable_force_n: Array,
    gravity_m_s2: float,
    drone_yaws_rad: Array,
) -> Array:
    """Places of hovering drones, about the load's centre, whose cables pull with given forces.

    In these places, (n_drones, 3) [m], `hanging_equilibrium` finds these forces, if they hold the
    load. The forces are those of each cable on the load, world frame, (n_drones, 3); the load's
    rotation is to the world, (3, 3); the yaws, (n_drones,), are those of drones on cables that are
    free to twist.
    """
    at = np.zeros((system.n_drones, 3))
    problem = _Problem(freed(system), at, gravity_m_s2, 0.0, drone_yaws_rad)
    return problem.gaps_m(np.zeros(3), load_rotation, cable_force_n)


CHAIN = np.dtype(
    [
        ("place", float, 3),  # of the drone's centre of mass
        ("anchor", float, 3),  # of the cable, load frame
        ("hook", float, 3),  # and drone frame
        ("across", float, 3),  # y axis of the first joint, load frame
        ("links", np.int64),
        ("length", float),  # of a link
        ("weight", float),  # of a link
        ("carried", float),  # weight of cable and drone
        ("free", np.int64),  # to twist: then the drone has a yaw of its own
        ("yaw", float),
        ("spring", float),  # way along the cable per tension beyond the next
        ("balanced", float),
    ],
    align=True,
)


@compiled()
def write_residual(chains, heading, weight, x, out):
    """Write force and moment balance of the load, then the gaps between chains and drones."""
    forces = x[6:].reshape((len(chains), 3))
    gaps = out[6:].reshape((len(chains), 3))
    rotation = np.empty((3, 3))
    attitude = quaternion_product(quaternion_of(x[3:6]), heading)
    write_matrix(rotation, body_axes_in_world(attitude))
    balance = (0.0, 0.0, -weight)
    moment = (0.0, 0.0, 0.0)
    for i in range(len(chains)):
        balance = add(balance, forces[i])
        moment = add(moment, cross(rotate(rotation, chains[i].anchor), forces[i]))
    put(out, balance)
    put(out[3:], moment)
    write_gaps(chains, x, rotation, forces, gaps)
    for i in range(len(chains)):
        along, tension = unit(forces[i])
        stretch = chains[i].spring * (tension - chains[i].balanced)
        put(gaps[i], add_scaled(gaps[i], stretch, along))


@compiled(shared=True)
def write_gaps(chains, position, rotation, forces, gaps):
    """Write the way from each drone's place to where its chain holds it, (n, 3).

    A universal joint that points the next body along d turns its y axis to (d x y) x d, normalised.
    """
    for i in range(len(chains)):
        chain = chains[i]
        force = forces[i]
        end = add(position, rotate(rotation, chain.anchor))
        across = rotate(rotation, chain.across)
        for k in range(chain.links):
            link, _ = unit(add(force, (0.0, 0.0, (k + 0.5) * chain.weight)))
            end = add_scaled(end, chain.length, link)
            across = cross(unit(cross(link, across))[0], link)
        up, _ = unit(add(force, (0.0, 0.0, chain.carried)))
        if chain.free != 0:
            side, _ = unit(cross(up, (math.cos(chain.yaw), math.sin(chain.yaw), 0.0)))
            front = cross(side, up)
        else:
            front, _ = unit(cross(up, across))
            side = cross(up, front)
        hook = add_scaled(scale(chain.hook[0], front), chain.hook[1], side)
        put(gaps[i], sub(sub(end, chain.place), add_scaled(hook, chain.hook[2], up)))


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
        self.system = system
        self.drones = drones
        self.g = gravity
        self.drone_yaws = drone_yaws
        self.heading = from_rotation_vector(np.array([0.0, 0.0, yaw]))
        self.yaw = matrix(self.heading)
        self.anchors = np.array(system.load.cable_attachments_m)
        self.hooks = [np.array(drone.cable_attachment_m, float) for drone in system.drones]
        self.chains = np.zeros(len(drones), CHAIN)
        self.chains["place"], self.chains["anchor"] = drones, self.anchors
        self.chains["hook"] = self.hooks
        self.chains["yaw"] = drone_yaws
        self.azimuths_rad = cable_azimuths_rad(system)
        for i, (chain, cable) in enumerate(zip(self.chains, system.cables, strict=True)):
            chain["across"] = joint_in_load(self.azimuths_rad[i])[:, 1]
            chain["links"] = cable.links
            chain["length"] = cable.link_length_m
            chain["weight"] = cable.link_mass_kg * gravity
            chain["carried"] = (system.drones[i].mass_kg + cable.mass_kg) * gravity
            chain["free"] = cable.twist == "free"
        self.weight_n = np.array([0.0, 0.0, system.load.mass_kg * gravity])
        self.tolerance = 1e-8 * max(1.0, system.load.mass_kg)  # of forces [N] and gaps [m]

    def first_guess(self) -> Array:
        """Load below the middle of the drones, each cable straight with its share of the weight."""
        if len(self.drones) == 1:
            return self._below_one()
        lengths = np.array([c.length_m for c in self.system.cables])
        center = self.drones.mean(axis=0)
        spread = np.linalg.norm(self.drones[:, :2] - center[:2], axis=1)
        reach = np.linalg.norm(self.anchors[:, :2], axis=1)
        drop = np.sqrt(np.maximum(lengths**2 - (spread - reach) ** 2, (0.3 * lengths) ** 2))
        position = center - [0.0, 0.0, drop.mean() + self.anchors[:, 2].mean()]
        along = self.drones - (position + self.anchors @ self.yaw.T)
        share = self.system.load.mass_kg * self.g / len(self.drones)
        return np.concatenate([position, np.zeros(3), (along / along[:, 2:] * share).ravel()])

    def _below_one(self) -> Array:
        """Load below one drone, its attachment above its centre of mass, heading kept."""
        arm = self.yaw @ self.anchors[0]
        length_m = self.system.cables[0].length_m
        height_m = float(np.linalg.norm(arm))
        aside = float(np.hypot(arm[0], arm[1]))
        turn = np.zeros(3)
        if aside > 0.0:
            turn = np.array([arm[1], -arm[0], 0.0]) / aside * math.atan2(aside, arm[2])
        hook = self.hooks[0][2]
        position = self.drones[0] + [0.0, 0.0, hook - length_m - height_m]
        return np.concatenate([position, turn, self.weight_n])

    def level_guess(self) -> Array:
        """Level load where straight cables come nearest to it, with shares along them."""
        n = len(self.drones)
        guess = self.first_guess()
        lengths = np.array([cable.length_m for cable in self.system.cables])
        anchors = self.anchors @ self.yaw.T
        rotations = [level_rotation(np.array([0.0, 0.0, 1.0]), yaw) for yaw in self.drone_yaws]
        hooks = self.drones + [r @ hook for r, hook in zip(rotations, self.hooks, strict=True)]

        def excess(position: Array) -> Array:
            return np.asarray(np.linalg.norm(hooks - anchors - position, axis=1) - lengths)

        position = scipy.optimize.least_squares(excess, guess[:3]).x
        along = hooks - anchors - position
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        shares, _ = even_shares(share_balance(anchors, along), LEAST_SHARE)
        forces = self.weight_n[2] / n * shares[:, None] * along
        return np.concatenate([position, np.zeros(3), forces.ravel()])

    def rest(self, guess: Array, spring_m: float = SPRING_M) -> HangingEquilibrium | None:
        """Equilibrium near a guess; None where there is none."""
        # One cable leaves nothing to balance, nor the heading of a load below it.
        balanced = self.on_springs(self.evened(guess), spring_m) if len(self.drones) > 1 else None
        if balanced is None or self.determinate(balanced):
            start = guess if balanced is None else balanced
            exact = root(self.residual, start, self.tolerance, self.jacobian, TRIES)
            if exact is not None:
                return self.result(exact)
        if balanced is None:
            return None
        for _ in range(PASSES - 1):
            nearer = self.on_springs(balanced, spring_m)
            if nearer is None:
                break
            balanced = nearer
        return self.result(balanced)

    def residual(self, x: Array) -> Array:
        """Force and moment balance of the load, gaps between chains and drones."""
        values = np.empty_like(x)
        write_residual(self.chains, self.heading, self.weight_n[2], x, values)
        return values

    def gaps_m(self, position: Array, rotation: Array, forces: Array) -> Array:
        """Vectors from each drone's place to the end of its chain, (n_drones, 3)."""
        gaps = np.empty((len(forces), 3))
        write_gaps(self.chains, position, rotation, forces, gaps)
        return gaps

    def jacobian(self, x: Array) -> Array:
        """Derivatives of the residual by differences; a force moves its own drone only."""
        n = len(self.drones)
        base = self.residual(x)
        slopes = np.zeros((len(base), len(x)))
        steps = 1.5e-8 * np.maximum(1.0, np.abs(x))
        for k in range(6):
            neighbour = x.copy()
            neighbour[k] += steps[k]
            slopes[:, k] = (self.residual(neighbour) - base) / steps[k]
        for axis in range(3):  # the same component of all forces at once
            columns = 6 + axis + 3 * np.arange(n)
            neighbour = x.copy()
            neighbour[columns] += steps[columns]
            gaps = (self.residual(neighbour) - base)[6:].reshape(n, 3) / steps[columns, None]
            for i in range(n):
                slopes[6 + 3 * i : 9 + 3 * i, columns[i]] = gaps[i]
        rotation = matrix(from_rotation_vector(x[3:6])) @ self.yaw
        slopes[:6, 6:] = grasp_matrix(self.anchors @ rotation.T)
        return slopes

    def evened(self, guess: Array) -> Array:
        """A guess with the nearest forces that balance the load."""
        rotation = matrix(from_rotation_vector(guess[3:6])) @ self.yaw
        grasp = grasp_matrix(self.anchors @ rotation.T)
        gap = np.concatenate([self.weight_n, np.zeros(3)]) - grasp @ guess[6:]
        forces = guess[6:] + np.linalg.lstsq(grasp, gap, rcond=1e-9)[0]
        return np.concatenate([guess[:6], forces])

    def on_springs(self, x: Array, spring_m: float) -> Array | None:
        """Equilibrium of drones on springs, from balanced forces; None where there is none."""
        share_n = self.weight_n[2] / len(self.drones)
        if share_n <= 0.0:
            return None
        self.chains["spring"] = spring_m / share_n
        self.chains["balanced"] = np.linalg.norm(x[6:].reshape(-1, 3), axis=1)
        solution = root(self.residual, x, self.tolerance, self.jacobian, TRIES)
        self.chains["spring"] = 0.0
        return solution

    def determinate(self, x: Array) -> bool:
        """Whether the directions of the cables say what each carries."""
        forces = x[6:].reshape(-1, 3)
        rotation = matrix(from_rotation_vector(x[3:6])) @ self.yaw
        arms = self.anchors @ rotation.T
        sizes = np.array([1.0, 1.0, 1.0, *[1.0 / max(np.abs(arms).max(), 1e-6)] * 3])
        along = forces / np.linalg.norm(forces, axis=1, keepdims=True)
        columns = grasp_matrix(arms).reshape(6, -1, 3) * along
        values = np.linalg.svd(sizes[:, None] * columns.sum(axis=2), compute_uv=False)
        return bool(len(forces) <= 6 and values[-1] > DETERMINATE * values[0])

    def result(self, x: Array) -> HangingEquilibrium:
        """Turn the solved unknowns into the result."""
        forces = x[6:].reshape(-1, 3)
        rotation = matrix(from_rotation_vector(x[3:6])) @ self.yaw
        directions = []
        attitudes = []
        thrusts = []
        moments = []
        for i, (cable, drone) in enumerate(
            zip(self.system.cables, self.system.drones, strict=True)
        ):
            links = link_directions(forces[i], cable, self.g)
            pull = forces[i] + [0.0, 0.0, cable.mass_kg * self.g]
            thrust = pull + [0.0, 0.0, drone.mass_kg * self.g]
            chain = np.concatenate([links, (thrust / np.linalg.norm(thrust))[None]])
            if cable.twist == "free":
                attitude = level_rotation(chain[-1], self.drone_yaws[i])
            else:
                start = joint_in_load(self.azimuths_rad[i])
                _, attitude = chain_from_directions(rotation @ start, chain)
            directions.append(chain)
            attitudes.append(attitude)
            thrusts.append(thrust)
            moments.append(np.cross(self.hooks[i], attitude.T @ pull))
        return HangingEquilibrium(
            self.system,
            x[:3],
            rotation,
            np.array(attitudes),
            self.drone_yaws,
            tuple(directions),
            forces,
            np.array(thrusts),
            np.array(moments),
            self.gaps_m(x[:3], rotation, forces),
        )


# ---------- Chains whose both ends are held


def slung_state(
    system: SlungLoadSystem,
    load_position_enu_m: Array,
    load_rotation: Array,
    drone_positions_enu_m: Array,
    drone_rotations: Array,
    gravity_m_s2: float = STANDARD_GRAVITY_M_S2,
) -> tuple[Configuration, Array]:
    """Hang cables between a load and drones that are held in given poses.

    Returns the configuration, and the attitudes that the drones have in it, (n_drones, 3, 3): on a
    cable that does not twist the yaw follows from the cable.
    """
    directions = []
    yaws = []
    for i, (cable, drone) in enumerate(zip(system.cables, system.drones, strict=True)):
        attitude = drone_rotations[i]
        hook = drone_positions_enu_m[i] + attitude @ drone.cable_attachment_m
        anchor = load_position_enu_m + load_rotation @ system.load.cable_attachments_m[i]
        links = slack_chain(cable, hook - anchor, gravity_m_s2)
        if links is None:
            apart_m = float(np.linalg.norm(hook - anchor))
            why = "is too short" if apart_m > cable.length_m else "has one link, so no slack"
            raise ConfigError(
                f"cable_{i + 1} of {cable.length_m:g} m {why}: its ends are {apart_m:.3f} m apart"
            )
        directions.append(np.vstack([links, attitude[:, 2]]))
        # Level heading that belongs to this z axis, see `level_rotation`.
        level = attitude @ np.array([1.0, 0.0, 0.0])
        yaws.append(float(np.arctan2(level[1], level[0])))
    configuration = configuration_from_directions(
        system, load_position_enu_m, load_rotation, directions, np.array(yaws)
    )
    tree = build_tree(system)
    return configuration, tree.poses(configuration.coordinates)[0][tree.drone]


def slack_chain(cable: Cable, span: Array, gravity_m_s2: float) -> Array | None:
    """Unit directions of the links of a chain that hangs over a span [m], (links, 3).

    None if it is too short.

    Where the load's end and the drone's are nearly one above the other, no force at the end holds a
    chain at rest: an arc stands for it there.
    """
    distance = float(np.linalg.norm(span))
    if distance > cable.length_m * (1.0 + 1e-9):
        return None
    if distance > cable.length_m * (1.0 - 1e-6):
        return np.tile(span / distance, (cable.links, 1))
    weight = cable.mass_kg * gravity_m_s2

    def gap(force: Array) -> Array:
        links = link_directions(force * weight, cable, gravity_m_s2)
        return links.sum(axis=0) * cable.link_length_m - span

    beside = float(np.linalg.norm(span[:2]))
    if beside < 1e-6 * cable.length_m:
        return _arc(cable, span)
    along = span[:2] / beside
    for pull, lift in ((0.3, -0.3), (0.1, -0.1), (1.0, 0.5), (0.05, -0.4), (0.0, 20.0)):
        guess = np.array([*(pull * along), lift])
        solution = root(gap, guess, 1e-6)
        if solution is not None:
            return link_directions(solution * weight, cable, gravity_m_s2)
    return _arc(cable, span)


def _arc(cable: Cable, span: Array) -> Array | None:
    """Directions of links that lie on an arc over a span, bent down, (links, 3); None for one."""
    n = cable.links
    distance = float(np.linalg.norm(span))
    if n == 1:
        return None
    steps = 0.5 * (n - 1) - np.arange(n)

    def short_by(turn: float) -> float:
        return float(np.cos(steps * turn).sum() * cable.link_length_m - distance)

    bend = scipy.optimize.brentq(short_by, 0.0, 2.1 * np.pi / n)
    u = span / distance if distance > 0.0 else np.array([1.0, 0.0, 0.0])
    down = np.array([0.0, 0.0, -1.0]) if np.hypot(u[0], u[1]) > 1e-6 else np.array([1.0, 0.0, 0.0])
    v = down - (down @ u) * u
    v /= np.linalg.norm(v)
    return np.outer(np.cos(steps * bend), u) + np.outer(np.sin(steps * bend), v)
