"""Builds the rigid-link plant of a scenario."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from musls_control.estimate import BodyMotion
from musls_description.config.errors import ConfigError, MuslsError, install_command
from musls_description.hanging.equilibrium import slung_state
from musls_description.hanging.rig_tree import build_rig_tree
from musls_description.hanging.tree import WORLD, Configuration, Tree
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_matrix, rotation_vector
from musls_description.system.obstacles import GateObstacle
from musls_description.system.slung_system import RigSystem, SlungLoadSystem, slung_system
from musls_sim.plants.elastic.plant import ElasticPlant
from musls_sim.plants.elastic.rests import hung_plant
from musls_sim.plants.interface import (
    PlantSetup,
    accurate_step_s,
    given_motion,
    step_s,
    substeps,
)
from musls_sim.plants.rigid_links.mechanism import drift, jacobians, shifted
from musls_sim.plants.rigid_links.plant import ChainStart, RigidLinksPlant
from musls_sim.plants.rigid_links.step_control import (
    ENGAGEMENT_MARGIN,
    TENSION_MARGIN,
    fixed_step_s,
    stable_step_s,
)
from musls_sim.plants.trim import trim_speeds_rad_s
from musls_sim.specs.physics import CONTROL_PERIOD_S

if TYPE_CHECKING:  # they take long to import and few flights need them
    from musls_sim.plants.gazebo import BridgedPlant, GazeboPlant


ATTITUDE_MISS_RAD = 0.01
"""Largest error of a drone's attitude against the one that a start asks for."""


def build(setup: PlantSetup) -> RigidLinksPlant | GazeboPlant | BridgedPlant:
    """Chains of rigid links with universal joints: the seed paper's cables.

    They start on the ground, hanging in the air, or in a given state; rigs, whose anchors hang or
    do not move, in equilibrium, too.
    """
    if setup.system.formation is None or setup.system.winches:
        return _build_rig(setup)
    physics = setup.physics
    start = setup.start
    hanging = setup.hanging
    system = slung_system(setup.system, "cable_model = rigid_links")
    rotors = None
    if start.kind == "state":
        motion = given_motion(system, start)
        configuration = _configuration_of(system, motion, physics.gravity_m_s2)
    elif start.kind == "air":
        assert hanging is not None  # such a flight begins in formation
        if any(cable.joint.stiffness_n_m_rad for cable in system.cables):
            raise ConfigError(
                "start.kind = air: hanging chains are solved for free joints, and "
                "system.cables.joint.stiffness_n_m_rad is not 0; start on the ground"
            )
        rotors = trim_speeds_rad_s(system, hanging.rest)
        configuration = hanging.rest.configuration
    else:
        assert hanging is not None
        configuration = hanging.on_ground
    _refuse_motion(setup)
    if physics.engine in ("gazebo", "gazebo_px4"):
        return _on_gazebo(setup, system, configuration, rotors)
    make: Callable[..., RigidLinksPlant] = functools.partial(
        RigidLinksPlant,
        refine=physics.refine,
        accuracy=physics.accuracy,
        contact=physics.contact,
        inextensible=physics.inextensible,
    )
    if physics.engine == "dart" or physics.exact_friction:
        try:
            from musls_sim.plants.dart.dart_plant import DartPlant
        except ImportError as error:
            absent = isinstance(error, ModuleNotFoundError)
            cure = install_command("dartpy") if absent else "Debian and Ubuntu: apt install libgl1"
            raise MuslsError(f"DART cannot be loaded: {error} ({cure})") from None
        make = functools.partial(DartPlant, exact_friction=physics.exact_friction)
    step = physics.step_size_s
    plant = make(
        system,
        configuration,
        physics_step_s=_auto_step_s(setup, system) if isinstance(step, str) else step,
        gravity_m_s2=physics.gravity_m_s2,
        rotor_speed_rad_s=rotors,
        ground_height_enu_m=setup.ground_height_enu_m,
        obstacles=setup.surfaces,
    )
    if start.kind == "state":
        plant.start_moving(_rates_of(plant, motion))
    elif start.kind == "ground":
        assert hanging is not None
        twists = hanging.on_ground_twists
        places, _ = hanging.on_ground.bodies(system)
        turning = twists[:, :3]
        carried = twists[0, 3:] + np.cross(turning[0], places - places[0])
        on_one_deck = np.allclose(turning, turning[0]) and np.allclose(twists[:, 3:], carried)
        if twists.any() and on_one_deck:
            rates = np.zeros_like(plant.velocities)
            rates[:6] = twists[0]
            plant.start_moving(rates)
    return plant


def _refuse_motion(setup: PlantSetup) -> None:
    """Refuse surfaces that move where another engine has the contacts (raises ConfigError)."""
    physics = setup.physics
    if physics.engine == "embedded" and not physics.exact_friction:
        return
    for surface in setup.surfaces:
        if not isinstance(surface, GateObstacle) and surface.motion is not None:
            key = f"engine = {physics.engine}"
            if physics.engine == "embedded":
                key = "exact_friction = true"
            raise ConfigError(
                f"physics.{key}: {surface.name} moves as in a table (world), there surfaces stand "
                "still; choose physics.engine: embedded without exact_friction"
            )


def _on_gazebo(
    setup: PlantSetup,
    system: SlungLoadSystem,
    configuration: Configuration,
    rotor_speed_rad_s: Array | None,
) -> GazeboPlant | BridgedPlant:
    """The plant on a Gazebo server, whose step is never refined: it has to resolve jerks."""
    from musls_sim.plants.gazebo import BridgedPlant, GazeboPlant

    physics = setup.physics
    start = setup.start
    if start.kind == "state":
        motion = given_motion(system, start)
        if motion.velocity_enu_m_s.any() or motion.omega_body_rad_s.any():
            raise ConfigError(
                f"physics.engine = {physics.engine}: a world starts at rest; give no velocities"
            )
    step = physics.step_size_s
    bridged = physics.engine == "gazebo_px4"
    if isinstance(step, str):
        if bridged:
            step = fixed_step_s(system, physics.gravity_m_s2)
        else:
            limit = stable_step_s(system, physics.gravity_m_s2, ENGAGEMENT_MARGIN)
            step = CONTROL_PERIOD_S / substeps(limit)
    make = BridgedPlant if bridged else GazeboPlant
    return make(
        system,
        configuration,
        physics_step_s=step,
        gravity_m_s2=physics.gravity_m_s2,
        rotor_speed_rad_s=rotor_speed_rad_s,
        ground_height_enu_m=setup.ground_height_enu_m,
        obstacles=setup.surfaces,
    )


def _auto_step_s(setup: PlantSetup, system: SlungLoadSystem) -> float:
    """Largest step that divides the period, is accurate, and holds in DART, which refines none."""
    physics = setup.physics
    if physics.engine == "embedded":
        limit = accurate_step_s(system, physics, order=2)
        if setup.snaps_taut:  # twice as fine: it begins before a jerk is noticed
            limit = min(limit, 0.5 * CONTROL_PERIOD_S)
    else:
        margin = ENGAGEMENT_MARGIN if setup.snaps_taut else TENSION_MARGIN
        limit = stable_step_s(system, physics.gravity_m_s2, margin)
    return CONTROL_PERIOD_S / substeps(limit)


def _configuration_of(
    system: SlungLoadSystem, motion: BodyMotion, gravity_m_s2: float
) -> Configuration:
    """Chains that hang between load and drones in given poses.

    Poses of `start: state` are in no formation, so that `Hanging` does not know these chains.
    """
    places = motion.position_enu_m
    turns = motion.rotations
    configuration, reached = slung_state(
        system, places[0], turns[0], places[1:], turns[1:], gravity_m_s2
    )
    for i, (target, rotation) in enumerate(zip(turns[1:], reached, strict=True)):
        miss = np.linalg.norm(rotation_vector(from_matrix(target.T @ rotation)))
        if miss > ATTITUDE_MISS_RAD:
            raise ConfigError(
                f"start.drones.{i}.orientation_wxyz: cable_{i + 1} does not twist, so the yaw of "
                f"drone_{i + 1} follows from it and misses the wanted one by "
                f"{np.degrees(miss):.1f} degrees; choose another yaw, or cables with twist: free"
            )
    return configuration


def _rates_of(plant: RigidLinksPlant, motion: BodyMotion) -> Array:
    """Rates of all coordinates that give load and drones their velocities, (n_dofs,).

    Of all joint rates that do, the smallest ones.
    """
    jacobian = np.vstack(list(jacobians(plant.records)[plant.tree.drone]))
    rates = np.hstack([motion.omega_enu_rad_s, motion.velocity_enu_m_s])
    free = rates[0]
    target = rates[1:].ravel()
    rest = target - jacobian[:, :6] @ free
    joints = np.linalg.lstsq(jacobian[:, 6:], rest, rcond=1e-9)[0]
    miss = np.abs(jacobian[:, 6:] @ joints - rest).reshape(-1, 6).max(axis=1)
    worst = int(miss.argmax())
    if miss[worst] > 1e-6:
        raise ConfigError(
            f"start.drones.{worst}: cable_{worst + 1} does not let drone_{worst + 1} move like "
            f"this beside the load (off by {miss[worst]:.3g} m/s or rad/s): a taut cable keeps its "
            "length, and one that does not twist turns its drone"
        )
    return np.concatenate([free, joints])


# ---------- Rigs

LONG_SHARE = 1e-4
"""Share of its length by which a cable may be too short at the start: bodies are moved then."""

ROUNDS = 50
"""Maximum corrections of nodes to the length of the links, and of gaps at closings."""

CLOSED_M = 1e-11
"""Gap that counts as none."""


def _build_rig(setup: PlantSetup) -> RigidLinksPlant:
    """Several cables to a body, and free or fixed anchors, see `hanging.rig_tree`."""
    system = setup.system
    physics = setup.physics
    if physics.engine != "embedded" or physics.exact_friction:
        key = "exact_friction = true" if physics.exact_friction else f"engine = {physics.engine}"
        raise ConfigError(
            f"physics.{key}: system {system.name} is a rig; choose physics.engine: embedded "
            "without exact_friction"
        )
    tree = build_rig_tree(system, setup.rig.held_anchors(system, "rigid_links"))
    start = setup.start
    hung = hung_plant(system, start, setup.rig, physics.gravity_m_s2, "rigid_links")
    longest = step_s(system, physics, order=2)
    if physics.step_size_s == "auto" and start.kind == "state":  # slack cables may come taut
        longest = min(longest, 0.5 * CONTROL_PERIOD_S)
    plant = RigidLinksPlant(
        system,
        _chain_start(system, tree, hung),
        physics_step_s=longest,
        gravity_m_s2=physics.gravity_m_s2,
        rotor_speed_rad_s=hung.state.rotor_speed_rad_s if start.kind == "equilibrium" else None,
        ground_height_enu_m=setup.ground_height_enu_m,
        obstacles=setup.surfaces,
        refine=physics.refine,
        accuracy=physics.accuracy,
        contact=physics.contact,
        inextensible=physics.inextensible,
    )
    _close_gaps(plant)
    if start.kind == "state":
        motion = given_motion(system, start)
        if motion.velocity_enu_m_s.any() or motion.omega_body_rad_s.any():
            plant.start_moving(_rig_rates(plant, motion))
    return plant


def _chain_start(system: RigSystem, tree: Tree, hung: ElasticPlant) -> ChainStart:
    """The start of chains from one on cables that hardly stretch."""
    rotations = np.zeros((len(tree.bodies), 3, 3))
    places = np.zeros((len(tree.bodies), 3))
    state = hung.state
    motion = BodyMotion(np.vstack([state.motion, state.anchor_motion]))
    rows = np.array([0, *tree.drone, *tree.anchors])
    moves = rows >= 0
    rotations[rows[moves]] = motion.rotations[moves]
    places[rows[moves]] = motion.position_enu_m[moves]
    for k, cable in enumerate(system.cables):
        nodes = _of_links(hung.cable_nodes_enu_m(k), cable.link_length_m, k)
        if tree.backwards[k]:
            nodes = nodes[::-1]
        first = tree.first_link[k]
        along = np.diff(nodes, axis=0) / cable.link_length_m
        rotations[first : first + cable.links] = [level_frame(x) for x in along]
    return ChainStart(tree, rotations, places)


def level_frame(along: Array) -> Array:
    """A rotation whose x axis points along a unit vector, its y axis level if it can, (3, 3)."""
    up = np.array([0.0, 0.0, 1.0]) if abs(along[2]) < 0.9 else np.array([0.0, 1.0, 0.0])
    across = np.cross(up, along)
    across /= np.linalg.norm(across)
    return np.column_stack([along, across, np.cross(along, across)])


def _of_links(nodes_enu_m: Array, link_length_m: float, cable: int) -> Array:
    """Nodes of a chain between the same ends, the nearest that are a link's length apart."""
    links = len(nodes_enu_m) - 1
    chord = float(np.linalg.norm(nodes_enu_m[-1] - nodes_enu_m[0]))
    length = links * link_length_m
    if chord > length * (1.0 + LONG_SHARE) or (links == 1 and chord < length * (1.0 - LONG_SHARE)):
        raise ConfigError(
            f"start: cable_{cable + 1} of {length:g} m does not lie between ends {chord:.6g} m "
            "apart"
            + (f"; system.cables.{cable}.links = 1: a bar does not bend" if links == 1 else "")
        )
    nodes: Array = nodes_enu_m.copy()
    inner = nodes[1:-1]  # a view
    for _ in range(ROUNDS):
        spans = np.diff(nodes, axis=0)
        lengths = np.linalg.norm(spans, axis=1)
        if np.abs(lengths - link_length_m).max() < 1e-12 or links == 1:
            break
        along = spans / lengths[:, None]
        jacobian = np.zeros((links, links + 1, 3))
        jacobian[np.arange(links), np.arange(links)] = -along
        jacobian[np.arange(links), 1 + np.arange(links)] = along
        rows = jacobian[:, 1:-1].reshape(links, -1)
        inner += np.linalg.lstsq(rows, link_length_m - lengths, rcond=1e-6)[0].reshape(-1, 3)
    return nodes


def _rig_rates(plant: RigidLinksPlant, motion: BodyMotion) -> Array:
    """Rates of all coordinates that give load and drones their velocities, (n_dofs,).

    Of all that do, and keep closed what is, the smallest ones.
    """
    held, _ = _at_closings(plant)
    here = jacobians(plant.records)
    rows = np.vstack([*(here[body] for body in (0, *plant.tree.drone)), held])
    wanted = np.hstack([motion.omega_enu_rad_s, motion.velocity_enu_m_s]).ravel()
    velocities = np.concatenate([wanted, np.zeros(len(held))])
    rates = np.linalg.lstsq(rows, velocities, rcond=1e-9)[0]
    if np.abs(rows @ rates - velocities).max() > 1e-6:
        raise ConfigError(
            "start: the cables do not let load and drones move like this: a taut cable keeps its "
            "length; choose other velocities, or cable_model: elastic"
        )
    return np.asarray(rates)


def _close_gaps(plant: RigidLinksPlant) -> None:
    """Move all bodies a little until the loops are closed, at rest."""
    t = plant.records
    for _ in range(ROUNDS):
        rows, gaps = _at_closings(plant)
        if np.abs(gaps).max(initial=0.0) < CLOSED_M:
            break
        t.rate[:] = -np.linalg.lstsq(rows, gaps, rcond=1e-9)[0]
        drift(t.system[0], 1.0)
        t.rate[:] = 0.0
        plant.reset_counters()
    plant.start_moving(np.zeros(len(t.rate)))


def _at_closings(plant: RigidLinksPlant) -> tuple[Array, Array]:
    """How fast the gaps at all closings grow by the rates, (3 k, c), and the gaps, (3 k,)."""
    bodies = plant.records.bodies
    here = jacobians(plant.records)
    rows = np.zeros((len(plant.tree.closings), 3, here.shape[2]))
    gaps = np.zeros((len(plant.tree.closings), 3))
    for k, closing in enumerate(plant.tree.closings):
        link = bodies[closing.link]
        tip = link["rotation"] @ closing.point_m
        rows[k] = shifted(here[closing.link], tip)[3:]
        place = closing.place_m
        if closing.body != WORLD:
            body = bodies[closing.body]
            arm = body["rotation"] @ place
            rows[k] -= shifted(here[closing.body], arm)[3:]
            place = body["position"] + arm
        gaps[k] = link["position"] + tip - place
    return rows.reshape(-1, here.shape[2]), gaps.ravel()
