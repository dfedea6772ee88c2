"""SDF text of a system at its spawn: a world for Gazebo, separate models, one model in SDF 1.9.

Load, cables and drones are models of their own, joined to one tree that is rooted at the load.
Every link is posed relative to the one that holds it, so the text shows the description's numbers:
the length of a link, and how far each joint is bent at the spawn. Both axes of a universal joint
are written in the link in which they are fixed.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal, get_args
from xml.etree.ElementTree import Comment, Element

from musls_description.errors import ConfigError
from musls_description.models.drone import add_flying_body, add_rigid_body
from musls_description.models.elements import (
    add_contact_box,
    add_friction,
    add_inertial,
    add_joint,
    add_pose,
    add_visual,
)
from musls_description.models.mechanism import PIVOT, Link, build_mechanism
from musls_description.models.xml_text import (
    add,
    add_all,
    find,
    number,
    numbers,
    read_part,
    to_text,
)
from musls_description.names import near_names
from musls_description.spawn import Configuration
from musls_description.system import Cable, SlungLoadSystem

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

    Args:
        system: The system.
        spawn: Where it starts.
        drones: How drones are written.
        name: Of the world; PX4_GZ_WORLD must be the same.
        step_s: Physics step.
        gravity_m_s2: Gravity.
        physics_only: Without all of Gazebo's systems but the physics, and without pace.
        lean: Without systems that PX4 and the recordings do not need, without the cables' shapes,
            and with poses for viewers at 10 Hz.
        pace: Simulated over real time that Gazebo is not to exceed; 0 for as fast as it can.
        imu_rate_hz: Of the drones' IMUs; default PX4's. Gazebo's tell the acceleration of one step:
            of a jerk between two samples they tell nothing, or too much.

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
    `world_sdf` has them, so that PX4 finds its topics; a plain `<include>` nests them.

    Args:
        system: The system.
        spawn: Where it starts.
        drones: How drones are written.
        step_s: Physics step of the recipe.
        gravity_m_s2: Gravity of the recipe.

    Returns:
        Text of `NAME/model.sdf`, `NAME/model.config` and `NAME/recipe.sdf`, a world to begin with.

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
    """Separate models as Gazebo's resource folders hold them.

    Returns:
        Text of each file by its path: `load/model.sdf`, `load/model.config`, `cable_1/model.sdf`...
        An included drone has no folder: PX4 brings it.

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
