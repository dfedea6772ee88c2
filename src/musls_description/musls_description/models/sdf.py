"""SDF text of a system at its spawn: a world for Gazebo, separate models, one model in SDF 1.9.

Load, cables and drones are models of their own, joined to one tree that is rooted at the load.
Every link is posed relative to the one that holds it, so the text shows the description's numbers:
the length of a link, and how far each joint is bent at the spawn. Both axes of a universal joint
are written in the link in which they are fixed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Literal, TypeAlias, get_args
from xml.etree.ElementTree import Comment, Element

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from musls_description.drone import Box, Drone, Rotor
from musls_description.errors import ConfigError, near_names
from musls_description.models.xml_text import (
    add,
    add_all,
    find,
    number,
    numbers,
    read_part,
    to_text,
)
from musls_description.spawn import Configuration
from musls_description.system import Cable, SlungLoadSystem
from musls_description.tree import STOP_RAD, Body, build_tree

# ---------- The tree at its spawn as links and joints that SDF has

Array = NDArray[np.float64]
Kind: TypeAlias = Literal["load", "cable", "drone"]
FixedIn: TypeAlias = Literal["parent", "child"]

PIVOT = "pivot"
PIVOT_SHARE = 1e-6
"""Mass and (round) inertia of a pivot over those of the body that it carries."""


@dataclass(frozen=True)
class Axis:
    """One axis of a joint; angles count from the spawn.

    Attributes:
        xyz: Unit vector, (3,).
        fixed_in: Body in whose frame `xyz` is given and constant.
        rest_rad: Angle of the spring's rest.
        stops_rad: Lowest and highest angle.
    """

    xyz: Array
    fixed_in: FixedIn
    rest_rad: float
    damping_n_m_s_rad: float
    stiffness_n_m_rad: float
    friction_n_m: float
    stops_rad: tuple[float, float] = (-math.inf, math.inf)


@dataclass(frozen=True)
class Link:
    """One rigid body with the joint that holds it, posed as at the spawn.

    Attributes:
        model: "load", "cable_1", "x500_1", ...
        name: Name inside its model: "base_link", "link_01", "pivot".
        kind: What its model is.
        index: Index of the cable or drone; 0 for the load.
        parent: Index of the parent link, -1 for the load.
        rotation: Link frame in the parent's frame, (3, 3); in the world for the load.
        position_m: Its origin there, (3,).
        axes: Of its joint: one makes it revolute, two universal; none for the load.
        joint_position_m: Where the joint is, in this link's frame, (3,).
        com_m: Centre of mass, link frame, (3,).
        inertia_kg_m2: Inertia about it, link frame, (3, 3).
    """

    model: str
    name: str
    kind: Kind
    index: int
    parent: int
    rotation: Array
    position_m: Array
    axes: tuple[Axis, ...]
    joint_position_m: Array
    mass_kg: float
    com_m: Array
    inertia_kg_m2: Array

    @property
    def scoped_name(self) -> str:
        """Name as seen from the scope around the models."""
        return f"{self.model}::{self.name}"


def build_mechanism(system: SlungLoadSystem, spawn: Configuration) -> list[Link]:
    """Spell out a system at its spawn: the load, then cable by cable its links and its drone.

    Raises:
        ConfigError: A joint has axes that neither SDF nor this pivot can say.
    """
    tree = build_tree(system)
    load = tree.bodies[0]
    links = [
        Link(
            model="load",
            name="base_link",
            kind="load",
            index=0,
            parent=-1,
            rotation=np.asarray(spawn.load_rotation, float),
            position_m=np.asarray(spawn.load_position_enu_m, float),
            axes=(),
            joint_position_m=np.zeros(3),
            mass_kg=load.mass_kg,
            com_m=load.com_m,
            inertia_kg_m2=load.inertia_kg_m2,
        )
    ]
    for i, angles in enumerate(spawn.joint_angles_rad):
        first, drone = int(tree.first_link[i]), int(tree.drone[i])
        names = {k: (f"cable_{i + 1}", f"link_{k - first + 1:02d}") for k in range(first, drone)}
        names[drone] = (drone_name(system, i), "base_link")
        parent, used = 0, 0
        for k, name in names.items():
            body = tree.bodies[k]
            turns = angles[used : used + len(body.axes)]
            used += len(body.axes)
            frame, anchor = body.joint_in_parent_rotation, body.joint_in_parent_position_m
            if body.axes == "xyz":
                links.append(_pivot(body, i, parent, turns[0]))
                parent, frame, anchor = len(links) - 1, np.eye(3), np.zeros(3)
            elif body.axes != "yz":
                raise ConfigError(
                    f"{body.name}: a joint about the axes '{body.axes}' cannot be written as SDF "
                    "(only 'yz' and 'xyz' can)"
                )
            kind: Kind = "drone" if k == drone else "cable"
            links.append(_carried(body, (*name, kind, i), parent, (frame, anchor), turns[-2:]))
            parent = len(links) - 1
    return links


def _pivot(body: Body, index: int, parent: int, angle_rad: float) -> Link:
    """The body that turns about x between a parent and a body with three axes."""
    inertia = np.linalg.eigvalsh(body.inertia_kg_m2).max() * np.eye(3)
    return Link(
        model=f"cable_{index + 1}",
        name=PIVOT,
        kind="cable",
        index=index,
        parent=parent,
        rotation=body.joint_in_parent_rotation @ _turn("x", angle_rad),
        position_m=body.joint_in_parent_position_m,
        # A cable's spring resists bending, not turning about itself.
        axes=(_axis(body, "x", np.eye(3), "child", 0.0),),
        joint_position_m=np.zeros(3),
        mass_kg=PIVOT_SHARE * body.mass_kg,
        com_m=np.zeros(3),
        inertia_kg_m2=PIVOT_SHARE * inertia,
    )


def _carried(
    body: Body,
    identity: tuple[str, str, Kind, int],
    parent: int,
    joint_in_parent: tuple[Array, Array],
    turns_rad: Array,
) -> Link:
    """A body on a universal joint about y and z, given the joint's frame in the parent link."""
    frame, anchor = joint_in_parent
    in_child = body.joint_in_child_rotation
    rotation = frame @ _turn("y", turns_rad[0]) @ _turn("z", turns_rad[1]) @ in_child.T
    return Link(
        *identity,
        parent=parent,
        rotation=rotation,
        position_m=anchor - rotation @ body.joint_in_child_position_m,
        axes=(
            _axis(body, "y", frame, "parent", turns_rad[0]),
            _axis(body, "z", in_child, "child", turns_rad[1]),
        ),
        joint_position_m=body.joint_in_child_position_m,
        mass_kg=body.mass_kg,
        com_m=body.com_m,
        inertia_kg_m2=body.inertia_kg_m2,
    )


def _axis(body: Body, axis: str, frame: Array, fixed_in: FixedIn, angle_rad: float) -> Axis:
    return Axis(
        xyz=frame[:, "xyz".index(axis)],
        fixed_in=fixed_in,
        rest_rad=-angle_rad,
        damping_n_m_s_rad=body.damping_n_m_s_rad,
        stiffness_n_m_rad=0.0 if axis == "x" else body.stiffness_n_m_rad,
        friction_n_m=body.friction_n_m,
        stops_rad=_stops(angle_rad) if axis == body.axes[1] else (-math.inf, math.inf),
    )


def _stops(angle_rad: float) -> tuple[float, float]:
    """Stops of a second axis, counted from its angle at the spawn; a spawn beyond them is one."""
    return min(-STOP_RAD - angle_rad, 0.0), max(STOP_RAD - angle_rad, 0.0)


def _turn(axis: str, angle_rad: float) -> Array:
    return Rotation.from_euler(axis, angle_rad).as_matrix()


def drone_name(system: SlungLoadSystem, index: int) -> str:
    """Name of a drone's model: PX4 instance i looks for MODEL_i.

    Raises:
        ConfigError: The airframe's name cannot be part of a model's name.
    """
    model = system.drones[index].model
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", model) or model == "cable":
        raise ConfigError(
            f"drones.{index}.model = '{model}': a Gazebo model's name must consist of letters, "
            "digits, _ and -, and must not be 'cable'"
        )
    return f"{model}_{index + 1}"


# ---------- Elements that load, cables and drones share


def add_pose(parent: Element, position_m: Array, rotation: Array, relative_to: str = "") -> None:
    """Add a pose, its rotation as a quaternion x, y, z, w.

    The Euler angles of a link that points straight up would not be unique.
    """
    quaternion = Rotation.from_matrix(rotation).as_quat(canonical=True)
    frame = {"relative_to": relative_to} if relative_to else {}
    add(parent, "pose", numbers(position_m, quaternion), rotation_format="quat_xyzw", **frame)


def add_inertial(link: Element, mass_kg: float, com_m: Array, inertia_kg_m2: Array) -> None:
    """Add mass, centre of mass and the inertia about it."""
    inertial = add(link, "inertial")
    if np.any(com_m):
        add(inertial, "pose", numbers(com_m, np.zeros(3)))
    add(inertial, "mass", mass_kg)
    inertia = add(inertial, "inertia")
    for i, row in enumerate("xyz"):
        for j in range(i, 3):
            add(inertia, f"i{row}{'xyz'[j]}", inertia_kg_m2[i, j])


def add_contact_box(link: Element, box: Box, friction: float) -> None:
    """Add the box that touches the ground."""
    collision = add(link, "collision", name="contact")
    add(collision, "pose", numbers(box.center_m, np.zeros(3)))
    add(add(add(collision, "geometry"), "box"), "size", numbers(box.size_m))
    add_friction(collision, friction)


def add_friction(collision: Element, coefficient: float) -> None:
    """Add Coulomb friction, equal in both directions."""
    friction = add(add(add(collision, "surface"), "friction"), "ode")
    add_all(friction, mu=coefficient, mu2=coefficient)


def add_visual(
    link: Element, name: str, position_m: ArrayLike, colour: str, *, along_x: bool = False
) -> Element:
    """Add a visual shape."""
    visual = add(link, "visual", name=name)
    add(visual, "pose", numbers(position_m, [0.0, np.pi / 2.0 if along_x else 0.0, 0.0]))
    geometry = add(visual, "geometry")
    add_all(add(visual, "material"), ambient=f"{colour} 1", diffuse=f"{colour} 1")
    return geometry


def add_joint(scope: Element, name: str, parent: str, child: str, link: Link) -> None:
    """Add the joint that holds a link."""
    kind = {1: "revolute", 2: "universal"}[len(link.axes)]
    joint = add(scope, "joint", name=name, type=kind)
    if np.any(link.joint_position_m):
        add(joint, "pose", numbers(link.joint_position_m, np.zeros(3)))
    add_all(joint, parent=parent, child=child)
    for tag, axis in zip(("axis", "axis2"), link.axes, strict=False):
        element = add(joint, tag)
        frame = parent if axis.fixed_in == "parent" else child
        add(element, "xyz", numbers(axis.xyz), expressed_in=frame)
        if any(map(isfinite, axis.stops_rad)):
            lower, upper = axis.stops_rad
            add_all(add(element, "limit"), lower=lower, upper=upper)
        dynamics = add(element, "dynamics")
        add_all(dynamics, damping=axis.damping_n_m_s_rad, friction=axis.friction_n_m)
        if axis.stiffness_n_m_rad:
            add_all(
                dynamics,
                spring_reference=axis.rest_rad,
                spring_stiffness=axis.stiffness_n_m_rad,
            )


# ---------- The drones: with motors and sensors for PX4, as one rigid body, or PX4's own models

# A rotor's mass over the drone's and its radius of gyration over the arm's length: PX4's x500
# (16 g of 2.06 kg, 41 mm of 246 mm).
ROTOR_MASS_SHARE = 1.0 / 128.0
ROTOR_GYRATION_SHARE = 1.0 / 6.0

# Gazebo turns the rotors' joints slower than the motor model, so that the steps can resolve them.
SLOWDOWN = 10


def add_rigid_body(model: Element, drone: Drone, friction: float) -> None:
    """Add the drone as the description has it: one body, no motors, no sensors."""
    link = add(model, "link", name="base_link")
    add_inertial(link, drone.mass_kg, np.zeros(3), np.array(drone.inertia_kg_m2))
    _add_shape(link, drone, friction)


def add_flying_body(
    model: Element, drone: Drone, friction: float, where: str, *, flat: bool
) -> None:
    """Add the drone with rotor links, motor plugins and PX4's sensors.

    The rotors' masses are taken off the body, so that both together have the description's mass,
    centre of mass and inertia. `where` is the drone's key in the system, for errors. With `flat`
    the model is at the top of a world under its own name, which its motors then listen to; in a
    model of one's own they take the name that it gets there.

    Raises:
        ConfigError: The inertia is too small for rotors with a mass at these positions.
    """
    rotor_mass, rotor_inertia = _rotor_body(drone)
    link = add(model, "link", name="base_link")
    add_inertial(link, *_without_rotors(drone, rotor_mass, rotor_inertia, where))
    _add_shape(link, drone, friction)
    link.extend(read_part("sensors.sdf").findall("sensor"))
    for j, rotor in enumerate(drone.rotors):
        disc = add(model, "link", name=f"rotor_{j}")
        add(disc, "pose", numbers(rotor.position_m, np.zeros(3)))
        add_inertial(disc, rotor_mass, np.zeros(3), rotor_inertia)
        joint = add(model, "joint", name=f"rotor_{j}_joint", type="revolute")
        add_all(joint, parent="base_link", child=f"rotor_{j}")
        add(add(joint, "axis"), "xyz", "0 0 1")
    for j, rotor in enumerate(drone.rotors):
        _add_motor(model, j, rotor, flat=flat)


def _add_motor(model: Element, number: int, rotor: Rotor, *, flat: bool) -> None:
    """Add Gazebo's motor model, which listens on MODEL/command/motor_speed."""
    plugin = add(
        model,
        "plugin",
        filename="gz-sim-multicopter-motor-model-system",
        name="gz::sim::systems::MulticopterMotorModel",
    )
    if flat:
        add(plugin, "robotNamespace", model.attrib["name"])
    add_all(
        plugin,
        jointName=f"rotor_{number}_joint",
        linkName=f"rotor_{number}",
        turningDirection=rotor.spin,
        timeConstantUp=rotor.time_constant_up_s,
        timeConstantDown=rotor.time_constant_down_s,
        maxRotVelocity=rotor.speed_max_rad_s,
        motorConstant=rotor.thrust_coefficient_n_s2,
        momentConstant=rotor.moment_ratio_m,
        commandSubTopic="command/motor_speed",
        actuator_number=number,
        motorNumber=number,  # the same for Gazebo before Harmonic
        rotorDragCoefficient=rotor.drag_n_s2_m_rad,
        rollingMomentCoefficient=0.0,
        rotorVelocitySlowdownSim=SLOWDOWN,
        motorType="velocity",
    )


def _rotor_body(drone: Drone) -> tuple[float, Array]:
    """Mass and inertia of a rotor: a flat disc, whose inertia does not change as it turns."""
    mass = ROTOR_MASS_SHARE * drone.mass_kg
    spin = mass * (ROTOR_GYRATION_SHARE * _arm_m(drone)) ** 2
    return mass, np.diag([spin / 2.0, spin / 2.0, spin])


def _arm_m(drone: Drone) -> float:
    return max(float(np.hypot(*rotor.position_m[:2])) for rotor in drone.rotors)


def _without_rotors(
    drone: Drone, rotor_mass: float, rotor_inertia: Array, where: str
) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia of what is left when the rotors are taken off."""
    hubs = np.array([rotor.position_m for rotor in drone.rotors])
    mass = drone.mass_kg - len(hubs) * rotor_mass
    com = -rotor_mass * hubs.sum(axis=0) / mass
    inertia = np.array(drone.inertia_kg_m2) - len(hubs) * rotor_inertia
    inertia -= rotor_mass * sum(_steiner(hub) for hub in hubs) + mass * _steiner(com)
    a, b, c = np.linalg.eigvalsh(inertia)
    if a <= 0.0 or a + b < c:
        raise ConfigError(
            f"{where}.inertia_kg_m2 is too small for {len(hubs)} rotors of {rotor_mass:.3g} kg "
            f"(1/128 of the drone) at rotors.*.position_m; write the drones as 'rigid'"
        )
    return mass, com, inertia


def _steiner(offset_m: Array) -> Array:
    """What a unit mass at an offset adds to the inertia (parallel axis theorem), (3, 3) [m2]."""
    return offset_m @ offset_m * np.eye(3) - np.outer(offset_m, offset_m)


def _add_shape(link: Element, drone: Drone, friction: float) -> None:
    """Add the landing gear's box and something to see."""
    add_contact_box(link, drone.collision, friction)
    arm = _arm_m(drone)
    body = add_visual(link, "body", np.zeros(3), "0.2 0.2 0.25")
    add(add(body, "box"), "size", numbers([0.8 * arm, 0.5 * arm, 0.2 * arm]))
    for j, rotor in enumerate(drone.rotors):
        colour = "0.8 0.3 0.2" if rotor.position_m[0] > 0.0 else "0.3 0.3 0.3"
        disc = add_visual(link, f"rotor_{j}", rotor.position_m, colour)
        add_all(add(disc, "cylinder"), radius=0.45 * arm, length=0.02 * arm)


Drones = Literal["motors", "rigid", "include"]
"""Drones with rotors, motor plugins and sensors; as one body without them; or PX4's own model."""

WORLD_VERSION = "1.10"  # the first with joints under a world
MODEL_VERSION = "1.9"

GRAVITY_M_S2 = 9.80665
STEP_S = 0.004

PHYSICS_SYSTEM = "gz-sim-physics-system"


def world_sdf(
    system: SlungLoadSystem,
    spawn: Configuration,
    *,
    drones: Drones = "motors",
    name: str = "musls",
    step_s: float = STEP_S,
    gravity_m_s2: float = GRAVITY_M_S2,
    physics_only: bool = False,
    lean: bool = False,
    pace: float = 1.0,
    imu_rate_hz: float | None = None,
) -> str:
    """A world whose top-level models are joined by joints directly under it (SDF 1.10).

    The drones' names stay flat (`x500_1`), so that an unpatched PX4 finds their topics.
    `PX4_GZ_WORLD` must be `name`. With `physics_only` it has none of Gazebo's systems but the
    physics, and no pace. A `lean` world has no systems that PX4 and the recordings do not need, no
    shapes of cables, and poses for viewers at 10 Hz. `pace` is simulated over real time that Gazebo
    is not to exceed; 0 for as fast as it can. `imu_rate_hz` is that of the drones' IMUs, by default
    PX4's. Gazebo's tell the acceleration of one step: of a jerk between two samples they tell
    nothing, or too much.

    Raises:
        ConfigError: Unknown `drones`, a name that SDF does not allow, a joint that it cannot say.
    """
    if not 0.0 <= pace < float("inf"):
        raise ConfigError(f"pace of the world = {pace:g}: must be 0 (as fast as possible) or more")
    writer = _Writer(system, spawn, drones)
    root = Element("sdf", version=WORLD_VERSION)
    world = _add_world(root, system, name, step_s, gravity_m_s2)
    find(world, "physics/real_time_factor").text = number(0.0 if physics_only else pace)
    if physics_only:
        for plugin in world.findall("plugin"):
            if plugin.get("filename") != PHYSICS_SYSTEM:
                world.remove(plugin)
    writer.add_models(world)
    writer.add_joints_between_models(world)
    if lean:
        _make_lean(world)
    if imu_rate_hz is not None:
        for sensor in world.iterfind("model/link/sensor[@type='imu']"):
            find(sensor, "update_rate").text = number(imu_rate_hz)
    return to_text(root, _title(system))


LEAN_POSES_HZ = 10
_NOT_NEEDED = (
    "gz-sim-user-commands-system",
    "gz-sim-contact-system",
    "gz-sim-apply-link-wrench-system",
)


def _make_lean(world: Element) -> None:
    """Take out of a world what only viewers and people with a mouse need."""
    for plugin in world.findall("plugin"):
        if plugin.get("filename") in _NOT_NEEDED:
            world.remove(plugin)
        elif plugin.get("filename") == "gz-sim-scene-broadcaster-system":
            add_all(plugin, dynamic_pose_hertz=LEAN_POSES_HZ, state_hertz=LEAN_POSES_HZ)
    for model in world.findall("model"):
        if model.attrib["name"].startswith("cable_"):
            for link in model.findall("link"):
                for visual in link.findall("visual"):
                    link.remove(visual)


def single_model_sdf(
    system: SlungLoadSystem,
    spawn: Configuration,
    *,
    drones: Drones = "rigid",
    name: str = "musls",
    step_s: float = STEP_S,
    gravity_m_s2: float = GRAVITY_M_S2,
) -> str:
    """A world with the whole system as one model that nests load, cables and drones (SDF 1.9).

    For Gazebo before Harmonic, whose SDF has no joints under a world. It names no plugins, so that
    Gazebo loads its own; PX4 cannot fly in it, because nested drones get other topic names.

    Args and errors: as `world_sdf`.
    """
    writer = _Writer(system, spawn, drones)
    root = Element("sdf", version=MODEL_VERSION)
    world = _add_world(root, system, name, step_s, gravity_m_s2)
    for element in [e for e in world if e.tag in ("plugin", Comment)]:
        world.remove(element)
    model = add(world, "model", name=_checked_name(system.name, "system name"))
    writer.add_models(model)
    writer.add_joints_between_models(model)
    return to_text(root, _title(system))


def include_files(
    system: SlungLoadSystem,
    spawn: Configuration,
    *,
    drones: Drones = "motors",
    step_s: float = STEP_S,
    gravity_m_s2: float = GRAVITY_M_S2,
) -> dict[str, str]:
    """The system as a model folder for a world of one's own, with all joints inside.

    `<include merge="true">` (Gazebo Harmonic) puts load, cables and drones into the world as
    `world_sdf` has them, so that PX4 finds its topics; a plain `<include>` nests them. Gives the
    text of `NAME/model.sdf`, `NAME/model.config` and `NAME/recipe.sdf`, a world to begin with.

    Raises:
        ConfigError: As `world_sdf`.
    """
    name = _checked_name(system.name, "system name")
    writer = _Writer(system, spawn, drones)
    root = Element("sdf", version=MODEL_VERSION)
    model = add(root, "model", name=name)
    writer.add_models(model)
    writer.add_joints_between_models(model)
    recipe = Element("sdf", version=WORLD_VERSION)
    world = _add_world(recipe, system, "my_world", step_s, gravity_m_s2)
    include = add(world, "include", merge="true")
    add_all(include, uri=f"model://{name}", pose="0 0 0 0 0 0")
    return {
        f"{name}/model.sdf": to_text(root, _title(system)),
        f"{name}/model.config": _model_config(name, system),
        f"{name}/recipe.sdf": to_text(recipe, f"A world that includes {name}."),
    }


def _model_config(name: str, system: SlungLoadSystem) -> str:
    config = Element("model")
    add_all(config, name=name, version="1.0")
    add(config, "sdf", "model.sdf", version=MODEL_VERSION)
    add(config, "description", f"{name} of the slung-load system {system.name}")
    return to_text(config, f"{name} of {_title(system)}")


def model_files(
    system: SlungLoadSystem, spawn: Configuration, *, drones: Drones = "motors"
) -> dict[str, str]:
    """Separate models as Gazebo's resource folders hold them: text of each file by its path.

    Paths are `load/model.sdf`, `load/model.config`, `cable_1/model.sdf`, ... An included drone has
    no folder: PX4 brings it.

    Raises:
        ConfigError: As `world_sdf`.
    """
    writer = _Writer(system, spawn, drones)
    files = {}
    for name, links in writer.models.items():
        if links[0].kind == "drone" and drones == "include":
            continue
        root = Element("sdf", version=MODEL_VERSION)
        writer.add_model(root, links, placed=False)
        files[f"{name}/model.sdf"] = to_text(root, f"{name} of {_title(system)}")
        files[f"{name}/model.config"] = _model_config(name, system)
    return files


def _title(system: SlungLoadSystem) -> str:
    return f"{system.name}: {system.description}."


def _checked_name(name: str, what: str) -> str:
    """A name that SDF and Gazebo's topics allow."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name) or name == "world":
        raise ConfigError(
            f"{what} '{name}': must consist of letters, digits, _ and -, and must not be 'world'"
        )
    return name


def _add_world(
    root: Element, system: SlungLoadSystem, name: str, step_s: float, gravity_m_s2: float
) -> Element:
    if not step_s > 0.0:
        raise ConfigError(f"step of the world = {step_s:g} s: must be > 0")
    world = read_part("world.sdf")
    root.append(world)
    world.set("name", _checked_name(name, "world name"))
    find(world, "physics/max_step_size").text = number(step_s)
    find(world, "gravity").text = numbers([0.0, 0.0, -gravity_m_s2])
    add_friction(find(world, "model/link/collision"), system.ground_friction)
    return world


class _Writer:
    """One system at its spawn, its links by model."""

    def __init__(self, system: SlungLoadSystem, spawn: Configuration, drones: str) -> None:
        if drones not in get_args(Drones):
            raise ConfigError(f"unknown drones '{drones}': {near_names(drones, get_args(Drones))}")
        self.system, self.drones = system, drones
        self.links = build_mechanism(system, spawn)
        self.models: dict[str, list[Link]] = {}
        for link in self.links:
            self.models.setdefault(link.model, []).append(link)

    def add_models(self, scope: Element) -> None:
        """Add every model at its place, relative to the link that holds it."""
        for links in self.models.values():
            self.add_model(scope, links, placed=True)

    def add_model(self, scope: Element, links: list[Link], *, placed: bool) -> None:
        """Add one model with its links and the joints between them."""
        first = links[0]
        if first.kind == "drone" and self.drones == "include":
            model = add(scope, "include")
            airframe = self.system.drones[first.index].model
            add_all(model, uri=f"model://{airframe}", name=first.model)
        else:
            model = add(scope, "model", name=first.model)
        if placed:
            holder = self.links[first.parent].scoped_name if first.parent >= 0 else ""
            add_pose(model, first.position_m, first.rotation, holder)
        if first.kind == "load":
            self._add_load_link(model, first)
        elif first.kind == "cable":
            self._add_cable_links(model, links, self.system.cables[first.index])
        else:
            # Nested models get the flat names of their topics as well: they may be merged.
            self._add_drone_links(model, first.index, flat=placed)
        if first.kind != "cable" and self.drones != "rigid":
            _add_odometry(model)

    def add_joints_between_models(self, scope: Element) -> None:
        """Add the joints that hold each model's first link."""
        for links in self.models.values():
            first = links[0]
            if first.parent >= 0:
                parent = self.links[first.parent]
                name = f"{parent.model}_to_{first.model}"
                add_joint(scope, name, parent.scoped_name, first.scoped_name, first)

    def _add_load_link(self, model: Element, link: Link) -> None:
        box = self.system.load.collision
        element = add(model, "link", name=link.name)
        add_inertial(element, link.mass_kg, link.com_m, link.inertia_kg_m2)
        add_contact_box(element, box, self.system.ground_friction)
        visual = add_visual(element, "box", box.center_m, "0.7 0.5 0.3")
        add(add(visual, "box"), "size", numbers(box.size_m))

    def _add_drone_links(self, model: Element, index: int, *, flat: bool) -> None:
        drone, friction = self.system.drones[index], self.system.ground_friction
        if self.drones == "rigid":
            add_rigid_body(model, drone, friction)
        elif self.drones == "motors":
            add_flying_body(model, drone, friction, f"drones.{index}", flat=flat)

    def _add_cable_links(self, model: Element, links: list[Link], cable: Cable) -> None:
        for k, link in enumerate(links):
            element = add(model, "link", name=link.name)
            if k > 0:
                add_pose(element, link.position_m, link.rotation, links[k - 1].name)
            add_inertial(element, link.mass_kg, link.com_m, link.inertia_kg_m2)
            if link.name == PIVOT:
                continue
            colour = "0.9 0.7 0.1" if k % 2 else "0.2 0.2 0.2"
            visual = add_visual(element, "cylinder", link.com_m, colour, along_x=True)
            add_all(add(visual, "cylinder"), radius=cable.radius_m, length=cable.link_length_m)
        # From the drone's end: Gazebo's DART plugin sets a joint by the transpose of the parent's
        # rotation. Were the parent held by a joint already, its rounding error would double with
        # every link (60 links: Gazebo aborts).
        for parent, link in reversed([*pairwise(links)]):
            add_joint(model, f"{link.name}_joint", parent.name, link.name, link)


def _add_odometry(model: Element) -> None:
    """Publish the model's pose and twist on /model/NAME/odometry, for recordings."""
    plugin = add(
        model,
        "plugin",
        filename="gz-sim-odometry-publisher-system",
        name="gz::sim::systems::OdometryPublisher",
    )
    add_all(plugin, dimensions=3, odom_frame="world", odom_publish_frequency=50)
