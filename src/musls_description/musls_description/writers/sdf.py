"""SDF text of a system at its spawn: a world for Gazebo, separate models, one model in SDF 1.9.

Load, cables and drones are models of their own, joined to one tree that is rooted at the load.
Every link is posed relative to the one that holds it, so the text shows the description's numbers:
the length of a link, and how far each joint is bent at the spawn. Both axes of a universal joint
are written in the link in which they are fixed.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

import numpy as np
import scipy
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from numpy.typing import ArrayLike

from musls_description.config.errors import ConfigError, near_names
from musls_description.hanging.tree import STOP_RAD, Configuration, TreeBody, build_tree
from musls_description.numerics.arrays import Array, point_inertia
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.drone import Drone
from musls_description.system.obstacles import (
    BOX,
    CYLINDER,
    GROUND,
    PLANE,
    AnyObstacle,
    GateObstacle,
)
from musls_description.system.slung_system import SlungLoadSystem

# ---------- XML with numbers: readable text with full precision, the same in every run


def number(value: float) -> str:
    """Shortest text that reads back as the same float; whole numbers without a point."""
    value = float(value)
    if not math.isfinite(value):
        raise ConfigError(f"a model file cannot contain the number {value}: it must be finite")
    whole = value == int(value) and abs(value) < 1e6
    return str(int(value)) if whole else repr(value)


def numbers(*values: ArrayLike) -> str:
    """Numbers, and those of arrays, with a space between."""
    return " ".join(number(v) for value in values for v in np.ravel(value))


PARTS = Path(__file__).parent / "parts"
"""Parts that are the same for every system: templates of SDF, macros of Xacro."""


@functools.cache
def template(name: str) -> Template:
    """A template of the folder."""
    return Environment(loader=FileSystemLoader(PARTS), undefined=StrictUndefined).get_template(name)


def parse(text: str) -> Element:
    """XML with its comments."""
    builder = ElementTree.TreeBuilder(insert_comments=True)
    return ElementTree.fromstring(text, ElementTree.XMLParser(target=builder))


def to_text(root: Element, title: str) -> str:
    """A whole document, indented, with a comment on what it is."""
    ElementTree.indent(root)
    title = title.replace("--", "-")
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0"?>\n<!-- {title} Written by `musls model`. -->\n{text}\n'


# ---------- The tree at its spawn as links and joints that SDF has

PIVOT = "pivot"
PIVOT_SHARE = 1e-6
"""Mass and (round) inertia of a pivot over those of the body that it carries."""


@dataclass(frozen=True)
class Link:
    """A body of the tree, or a pivot, under its name in SDF and at the spawn.

    Attributes:
        model: "load", "cable_1", "x500_1", ...
        name: Name inside its model: "base_link", "link_01", "pivot".
        index: Index of the cable or drone; 0 for the load.
        body: Body and joint; its parent counts links.
        coordinates: Coordinates of its joint at the spawn.
        stopped: Axis of its joint that has stops, "" for none.
    """

    model: str
    name: str
    index: int
    body: TreeBody
    coordinates: Array
    stopped: str

    @property
    def position_m(self) -> Array:
        """Origin in the parent's frame, (3,)."""
        return self.body.pose_in_parent(self.coordinates)[1]

    @property
    def quaternion_xyzw(self) -> Array:
        """Rotation to the parent's frame, (4,)."""
        rotation, _ = self.body.pose_in_parent(self.coordinates)
        return scipy.spatial.transform.Rotation.from_matrix(rotation).as_quat(canonical=True)

    @property
    def scoped_name(self) -> str:
        """Name as seen from the scope around the models."""
        return f"{self.model}::{self.name}"

    @property
    def kind(self) -> str:
        """Kind of its model: "load", "cable" or "drone"."""
        return self.body.name.partition("_")[0]


def link_names(system: SlungLoadSystem) -> list[tuple[str, str]]:
    """Model and link of each body of the tree."""
    names = [_sdf_name(system, body) for body in build_tree(system).bodies]
    return [(model, name) for model, name, _ in names]


def _sdf_name(system: SlungLoadSystem, body: TreeBody) -> tuple[str, str, int]:
    """Model, link and index of its cable or drone."""
    model, _, link = body.name.partition("/")
    kind, _, numeral = model.partition("_")
    index = int(numeral or 1) - 1
    return drone_name(system, index) if kind == "drone" else model, link or "base_link", index


def _links(system: SlungLoadSystem, spawn: Configuration) -> list[Link]:
    """All links of a system: the load, then cable by cable its links and its drone.

    SDF has joints about one axis and about two. A joint about three gets a pivot, a body that turns
    about the first of them.
    """
    tree = build_tree(system)
    coordinates = spawn.coordinates
    links: list[Link] = []
    places = {-1: -1}  # of the bodies among the links
    for k, (body, first) in enumerate(zip(tree.bodies, tree.first_coordinate, strict=True)):
        turns = coordinates[first : first + body.freedom]
        stops = body.axes[1:2]
        body = dataclasses.replace(body, parent=places[body.parent])
        if len(body.axes) == 3:
            pivot = _pivot(body)
            links.append(Link(*_sdf_name(system, pivot), pivot, turns[:1], ""))
            body = dataclasses.replace(
                body,
                parent=len(links) - 1,
                joint_in_parent_rotation=np.eye(3),
                joint_in_parent_position_m=np.zeros(3),
                axes=body.axes[1:],
            )
            turns = turns[1:]
        places[k] = len(links)
        links.append(Link(*_sdf_name(system, body), body, turns, stops))
    return links


def _pivot(body: TreeBody) -> TreeBody:
    """Small body that turns about the first axis between a body with three axes and its parent."""
    return dataclasses.replace(
        body,
        name=f"{body.name.partition('/')[0]}/{PIVOT}",
        joint_in_child_rotation=np.eye(3),
        joint_in_child_position_m=np.zeros(3),
        mass_kg=PIVOT_SHARE * body.mass_kg,
        com_m=np.zeros(3),
        inertia_kg_m2=PIVOT_SHARE * np.linalg.eigvalsh(body.inertia_kg_m2).max() * np.eye(3),
        stiffness_n_m_rad=0.0,  # a cable's spring resists bending, not turning about itself
        axes=body.axes[0],
    )


def drone_name(system: SlungLoadSystem, index: int) -> str:
    """Name of a drone's model: PX4 instance i looks for MODEL_i."""
    model = system.drones[index].model
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", model) or model == "cable":
        raise ConfigError(
            f"drones.{index}.model = '{model}': a Gazebo model's name must consist of letters, "
            "digits, _ and -, and must not be 'cable'"
        )
    return f"{model}_{index + 1}"


# ---------- The drones: with motors and sensors for PX4, as one rigid body, or PX4's own models

# A rotor's mass over the drone's and its radius of gyration over the arm's length: PX4's x500
# (16 g of 2.06 kg, 41 mm of 246 mm).
ROTOR_MASS_SHARE = 1.0 / 128.0
ROTOR_GYRATION_SHARE = 1.0 / 6.0


def _rotor_body(drone: Drone) -> tuple[float, Array, Array]:
    """Mass, centre and inertia of a rotor: a flat disc, whose inertia stays as it turns."""
    mass = ROTOR_MASS_SHARE * drone.mass_kg
    spin = mass * (ROTOR_GYRATION_SHARE * _arm_m(drone)) ** 2
    return mass, np.zeros(3), np.diag([spin / 2.0, spin / 2.0, spin])


def _arm_m(drone: Drone) -> float:
    return max(float(np.hypot(*rotor.position_m[:2])) for rotor in drone.rotors)


def _base_link(system: SlungLoadSystem, index: int, drones: str) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia of a drone, of one with motors without its rotors."""
    drone = system.drones[index]
    if drones != "motors":
        return drone.mass_kg, np.zeros(3), np.array(drone.inertia_kg_m2)
    rotor_mass, _, rotor_inertia = _rotor_body(drone)
    hubs = np.array([rotor.position_m for rotor in drone.rotors])
    mass = drone.mass_kg - len(hubs) * rotor_mass
    com = -rotor_mass * hubs.sum(axis=0) / mass
    inertia = np.array(drone.inertia_kg_m2) - len(hubs) * rotor_inertia
    inertia -= rotor_mass * sum(map(point_inertia, hubs)) + mass * point_inertia(com)
    a, b, c = np.linalg.eigvalsh(inertia)
    if a <= 0.0 or a + b < c:
        raise ConfigError(
            f"drones.{index}.inertia_kg_m2 is too small for {len(hubs)} rotors of "
            f"{rotor_mass:.3g} kg (1/128 of the drone) at rotors.*.position_m; write the drones as "
            "'rigid'"
        )
    return mass, com, inertia


Drones = Literal["motors", "rigid", "include"]
"""Drones with rotors, motor plugins and sensors; as one body without them; or PX4's own model."""

WORLD_VERSION = "1.10"  # the first with joints under a world
MODEL_VERSION = "1.9"

STEP_S = 0.004

LEAN_POSES_HZ = 10
PX4_IMU_RATE_HZ = 250


def world_sdf(
    system: SlungLoadSystem,
    spawn: Configuration,
    *,
    drones: Drones = "motors",
    name: str = "musls",
    step_s: float = STEP_S,
    gravity_m_s2: float = STANDARD_GRAVITY_M_S2,
    physics_only: bool = False,
    lean: bool = False,
    pace: float = 1.0,
    imu_rate_hz: float | None = None,
    obstacles: Sequence[AnyObstacle] = (),
) -> str:
    """A world whose top-level models are joined by joints directly under it (SDF 1.10).

    The drones' names stay flat (`x500_1`), so that an unpatched PX4 finds their topics.
    `PX4_GZ_WORLD` must be `name`. With `physics_only` it has none of Gazebo's systems but the
    physics, and no pace. A `lean` world has no systems that PX4 and the recordings do not need, no
    shapes of cables, and poses for viewers at 10 Hz. `pace` is simulated over real time that Gazebo
    is not to exceed; 0 for as fast as it can. `imu_rate_hz` is that of the drones' IMUs, by default
    PX4's. Gazebo's tell the acceleration of one step: of a jerk between two samples they tell
    nothing, or too much. Obstacles are static models `obstacle_NAME`; one named "ground", as in
    `WorldSpec.surfaces`, takes the place of level ground.
    """
    if not 0.0 <= pace < float("inf"):
        raise ConfigError(f"pace of the world = {pace:g}: must be 0 (as fast as possible) or more")
    parts = _ModelWriter(
        system,
        spawn,
        drones,
        lean=lean,
        imu_rate_hz=imu_rate_hz or PX4_IMU_RATE_HZ,
        obstacles=obstacles,
    )
    systems, pace = ("physics", 0.0) if physics_only else ("all", pace)
    world = parts.world(name, step_s, gravity_m_s2, parts.models(), systems, pace)
    return _document(world, WORLD_VERSION, _title(system))


def single_model_sdf(
    system: SlungLoadSystem,
    spawn: Configuration,
    *,
    drones: Drones = "rigid",
    name: str = "musls",
    step_s: float = STEP_S,
    gravity_m_s2: float = STANDARD_GRAVITY_M_S2,
) -> str:
    """A world with the whole system as one model that nests load, cables and drones (SDF 1.9).

    For Gazebo before Harmonic, whose SDF has no joints under a world. It names no plugins, so that
    Gazebo loads its own; PX4 cannot fly in it, because nested drones get other topic names.

    Args and errors: as `world_sdf`.
    """
    parts = _ModelWriter(system, spawn, drones)
    world = parts.world(name, step_s, gravity_m_s2, parts.whole_model(), "none")
    return _document(world, MODEL_VERSION, _title(system))


def include_files(
    system: SlungLoadSystem,
    spawn: Configuration,
    *,
    drones: Drones = "motors",
    step_s: float = STEP_S,
    gravity_m_s2: float = STANDARD_GRAVITY_M_S2,
) -> dict[str, str]:
    """The system as a model folder for your own world, with all joints inside.

    `<include merge="true">` (Gazebo Harmonic) puts load, cables and drones into the world as
    `world_sdf` has them, so that PX4 finds its topics; a plain `<include>` nests them. Gives the
    text of `NAME/model.sdf`, `NAME/model.config` and `NAME/recipe.sdf`, a world to begin with.
    """
    name = system.name
    parts = _ModelWriter(system, spawn, drones)
    include = f'<include merge="true"><uri>model://{name}</uri><pose>0 0 0 0 0 0</pose></include>'
    recipe = parts.world("my_world", step_s, gravity_m_s2, include)
    return {
        f"{name}/model.sdf": _document(parts.whole_model(), MODEL_VERSION, _title(system)),
        f"{name}/model.config": _model_config(name, system),
        f"{name}/recipe.sdf": _document(recipe, WORLD_VERSION, f"A world that includes {name}."),
    }


def _model_config(name: str, system: SlungLoadSystem) -> str:
    config = (
        f"<model><name>{name}</name><version>1.0</version>"
        f'<sdf version="{MODEL_VERSION}">model.sdf</sdf>'
        f"<description>{name} of the slung-load system {escape(system.name)}</description></model>"
    )
    return to_text(parse(config), f"{name} of {_title(system)}")


def model_files(
    system: SlungLoadSystem, spawn: Configuration, *, drones: Drones = "motors"
) -> dict[str, str]:
    """Separate models as Gazebo's resource folders hold them: text of each file by its path.

    Paths are `load/model.sdf`, `load/model.config`, `cable_1/model.sdf`, ... An included drone has
    no folder: PX4 brings it.
    """
    parts = _ModelWriter(system, spawn, drones)
    files = {}
    for name, chain in parts.chains.items():
        if chain[0].kind == "drone" and drones == "include":
            continue
        model = str(parts.macros.model(chain, False))
        files[f"{name}/model.sdf"] = _document(model, MODEL_VERSION, f"{name} of {_title(system)}")
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


class _ModelWriter:
    """One system at its spawn in the template `parts/system.sdf.j2`, its links by model."""

    def __init__(
        self,
        system: SlungLoadSystem,
        spawn: Configuration,
        drones: str,
        *,
        lean: bool = False,
        imu_rate_hz: float = PX4_IMU_RATE_HZ,
        obstacles: Sequence[AnyObstacle] = (),
    ) -> None:
        if drones not in get_args(Drones):
            raise ConfigError(f"unknown drones '{drones}': {near_names(drones, get_args(Drones))}")
        self._system = system
        links = _links(system, spawn)
        self.chains: dict[str, list[Link]] = {}
        for link in links:
            self.chains.setdefault(link.model, []).append(link)
        self.macros: Any = template("system.sdf.j2").make_module(
            {
                "system": system,
                "links": links,
                "chains": self.chains,
                "drones": drones,
                "lean": lean,
                "lean_poses_hz": LEAN_POSES_HZ,
                "imu_rate_hz": imu_rate_hz,
                "base_link": lambda index: _base_link(system, index, drones),
                "rotor_body": _rotor_body,
                "arm_m": _arm_m,
                "obstacles": _solids_by_model(obstacles),
                "n": numbers,
                "stop_rad": STOP_RAD,
                "right_angle": math.pi / 2.0,
            }
        )

    def models(self) -> str:
        """Every model at its place, relative to the link that holds it, then their joints."""
        return str(self.macros.models())

    def whole_model(self) -> str:
        """One model of them all."""
        name = _checked_name(self._system.name, "system name")
        return f'<model name="{name}">{self.models()}</model>'

    def world(
        self,
        name: str,
        step_s: float,
        gravity_m_s2: float,
        content: str,
        systems: str = "all",
        pace: float = 1.0,
    ) -> str:
        """A world with some content; `systems` are Gazebo's: all, physics or none."""
        if not step_s > 0.0:
            raise ConfigError(f"step of the world = {step_s:g} s: must be > 0")
        name = _checked_name(name, "world name")
        return str(self.macros.world(name, step_s, gravity_m_s2, content, systems, pace))


def _solids_by_model(obstacles: Sequence[AnyObstacle]) -> dict[str, list[dict[str, Any]]]:
    """Kind, size and pose of each solid by the model's name, `obstacle_NAME` or "ground"."""
    kinds = {BOX: "box", CYLINDER: "cylinder", PLANE: "plane"}
    for obstacle in obstacles:
        if not isinstance(obstacle, GateObstacle) and obstacle.motion is not None:
            raise ConfigError(
                f"world: {obstacle.name} moves as in a table, in Gazebo surfaces stand still: "
                "leave its motion out, or choose physics.engine: embedded"
            )
    return {
        GROUND if obstacle.name == GROUND else f"obstacle_{obstacle.name}": [
            {
                "kind": kinds[int(solid["kind"])],
                "size": solid["size"],
                "position": solid["position"],
                "quaternion_xyzw": scipy.spatial.transform.Rotation.from_matrix(
                    solid["rotation"]
                ).as_quat(canonical=True),
            }
            for solid in obstacle.solids()
        ]
        for obstacle in obstacles
    }


def _document(content: str, version: str, title: str) -> str:
    return to_text(parse(f'<sdf version="{version}">{content}</sdf>'), title)
