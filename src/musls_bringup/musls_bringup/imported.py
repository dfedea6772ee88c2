"""One rigid body of a URDF, SDF or MJCF file, for a load: what `musls import` reads.

MuJoCo's compiler reads URDF and MJCF: masses, inertias (also those that follow from shapes), meshes
and frames are as it has them. Of SDF, which it does not know, its bodies are made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from musls_description.arrays import Array, joined
from musls_description.errors import ConfigError, install_command, near_names
from musls_description.rotations import from_roll_pitch_yaw, matrix, product, rotate
from musls_description.strict_yaml import is_file, read_text, shown

KINDS = (".urdf", ".sdf", ".xml")

LARGEST = 1e6
"""Mass [kg], inertia [kg m^2], size and distance [m] that no load has."""


@dataclass(frozen=True)
class RigidBody:
    """Everything in a file as one rigid body; places from its centre of mass, axes of its root.

    Attributes:
        inertia_kg_m2: About the centre of mass, (3, 3).
        box_m: Edges of the box around what collides, (3,).
        box_middle_m: Its centre, (3,).
        points_m: Places of named links, bodies and sites, (3,) each.
    """

    mass_kg: float
    inertia_kg_m2: Array
    box_m: Array
    box_middle_m: Array
    points_m: dict[str, Array]

    def chosen(self, names: Sequence[str]) -> Array:
        """Places of attachments, (n, 3)."""
        for name in names:
            if name not in self.points_m:
                raise ConfigError(
                    f"--attach: no '{shown(name)}': {near_names(name, self.points_m)}"
                )
        return np.array([self.points_m[name] for name in names])


def read_rigid_body(path: Path) -> RigidBody:
    """Read a file whose joints are all fixed."""
    try:
        import mujoco
    except ImportError:
        raise ConfigError(f"musls import needs MuJoCo: {install_command('mujoco')}") from None
    if path.suffix.lower() not in KINDS:
        raise ConfigError(f"{path}: must be one of {', '.join(KINDS)}")
    if not is_file(path):
        raise ConfigError(f"{shown(str(path), 200)}: no such file")
    read_text(path)
    warned: list[str] = []
    mujoco.set_mju_user_warning(warned.append)  # else they are written to MUJOCO_LOG.TXT
    try:
        is_sdf = path.suffix.lower() == ".sdf"
        spec = _sdf(path) if is_sdf else mujoco.MjSpec.from_file(str(path))
        spec.compiler.fusestatic = False  # names of links without mass stay
        model = spec.compile()
    except (ValueError, ElementTree.ParseError, mujoco.FatalError) as error:
        raise ConfigError(f"{path}: {' '.join((warned or [str(error)])[0].split())}") from None
    finally:
        mujoco.set_mju_user_warning(None)
    moving = [
        model.joint(i).name or f"joint {i}"
        for i in range(model.njnt)
        if model.jnt_type[i] != mujoco.mjtJoint.mjJNT_FREE
    ]
    if moving or model.njnt > 1:
        names = ", ".join(moving[:5]) or "two free bodies"
        raise ConfigError(f"{path}: {names} can move: a load is one rigid body, fix its joints")
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return _merged(model, data, path)


# ---------- SDF: the links, collisions and frames of one model, at their poses in it

Pose = tuple[Array, Array]
"""Position (3,) and orientation w, x, y, z of something within something else."""

_AT_REST: Pose = (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))


def _sdf(path: Path) -> Any:
    """The model of an SDF file as a specification of MuJoCo's."""
    import mujoco

    model = ElementTree.parse(path).getroot().find(".//model")
    if model is None:
        raise ValueError("there is no <model> in it")
    for name in ("include", "model"):
        if model.find(name) is not None:
            raise ValueError(f"a model with <{name}> in it is not read: one model of links")
    for joint in model.findall("joint"):
        if joint.get("type") != "fixed":
            raise ValueError(
                f"{joint.get('name')} can move: a load is one rigid body, fix its joints"
            )
    named = {element.get("name", ""): element for element in model if element.get("name")}
    spec = mujoco.MjSpec()
    root = spec.worldbody.add_body()
    for link in model.findall("link"):
        position, q = _in_model(link, named)
        body = root.add_body(name=link.get("name"), pos=position, quat=q)
        _add_inertia(body, link.find("inertial"))
        for collision in link.findall("collision"):
            _add_shape(body, collision)
    for frame in model.findall("frame"):
        root.add_site(name=frame.get("name"), pos=_in_model(frame, named)[0])
    return spec


def _pose(element: Element) -> Pose:
    """Pose of an element: x y z, and roll pitch yaw or a quaternion x y z w."""
    pose = element.find("pose")
    if pose is None or not (pose.text or "").strip():
        return _AT_REST
    values = np.array((pose.text or "").split(), float)
    if not np.isfinite(values).all():
        raise ValueError(f"<pose>{pose.text}</pose>: must be finite numbers")
    if len(values) == 7:
        return values[:3], values[[6, 3, 4, 5]]
    if len(values) != 6:
        raise ValueError(f"<pose>{pose.text}</pose>: six numbers, or seven with a quaternion")
    angles = np.radians(values[3:]) if pose.get("degrees") == "true" else values[3:]
    return values[:3], from_roll_pitch_yaw(angles)


def _in_model(element: Element, named: Mapping[str, Element], depth: int = 0) -> Pose:
    """Pose of a link, joint or frame in its model, by way of those that it is given in."""
    pose, above = element.find("pose"), None
    if pose is not None:
        above = pose.get("relative_to")
    if above is None:
        above = element.get("attached_to") or (
            element.findtext("child") if element.tag == "joint" else None
        )
    position, q = _pose(element)
    if above in (None, "", "__model__"):
        return position, q
    if above not in named or depth > len(named):
        raise ValueError(
            f"{element.get('name')}: its pose is relative to '{above}', which leads nowhere"
        )
    place, turn = _in_model(named[above], named, depth + 1)
    return place + rotate(turn, position), product(turn, q)


def _add_inertia(body: Any, inertial: Element | None) -> None:
    """Mass and inertia of a link; SDF's defaults are 1 kg and 1 kg m^2."""
    found = inertial if inertial is not None else Element("inertial")
    moments = {
        axes: float(found.findtext(f"inertia/i{axes}", "1" if axes[0] == axes[1] else "0"))
        for axes in ("xx", "yy", "zz", "xy", "xz", "yz")
    }
    if not np.isfinite([*moments.values()]).all():
        raise ValueError("<inertia>: must be finite numbers")
    xx, yy, zz, xy, xz, yz = moments.values()
    position, q = _pose(found)
    turn = matrix(q)
    inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    body.explicitinertial = True
    body.mass, body.ipos = float(found.findtext("mass", "1")), position
    body.fullinertia = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def _add_shape(body: Any, collision: Element) -> None:
    """A box, cylinder, capsule or sphere that collides."""
    from mujoco import mjtGeom

    geometry = collision.find("geometry")
    shape = geometry[0] if geometry is not None and len(geometry) else Element("none")
    radius = float(shape.findtext("radius", "0"))
    half_length = float(shape.findtext("length", "0")) / 2.0
    sizes: dict[str, tuple[Any, list[float]]] = {
        "box": (mjtGeom.mjGEOM_BOX, [float(v) / 2 for v in shape.findtext("size", "").split()]),
        "cylinder": (mjtGeom.mjGEOM_CYLINDER, [radius, half_length, 0.0]),
        "capsule": (mjtGeom.mjGEOM_CAPSULE, [radius, half_length, 0.0]),
        "sphere": (mjtGeom.mjGEOM_SPHERE, [radius, 0.0, 0.0]),
    }
    if shape.tag not in sizes:
        raise ValueError(
            f"collision {collision.get('name')}: <{shape.tag}> is not read, but {', '.join(sizes)}"
        )
    kind, size = sizes[shape.tag]
    position, q = _pose(collision)
    body.add_geom(type=kind, size=size, pos=position, quat=q)


def _merged(model: Any, data: Any, path: Path) -> RigidBody:
    numbers = (
        model.body_mass, model.body_inertia, model.geom_aabb, data.xpos, data.xmat, data.xipos,
        data.ximat, data.geom_xpos, data.geom_xmat, data.site_xpos,
    )  # fmt: skip
    if not all((np.abs(part) < LARGEST).all() for part in numbers):
        raise ConfigError(f"{path}: a mass, inertia, size or place in it is not below {LARGEST:g}")
    if np.sum(model.body_mass[1:]) <= 0.0:
        raise ConfigError(f"{path}: nothing in it has a mass")
    root = np.array(data.xmat[1]).reshape(3, 3)
    turns, centres = root.T @ data.ximat[1:].reshape(-1, 3, 3), data.xipos[1:] @ root
    inertias = turns * model.body_inertia[1:, None] @ np.swapaxes(turns, 1, 2)
    mass, inertia, own = joined(model.body_mass[1:], inertias, centres)
    centre = centres[0] - own[0]
    solid = (model.geom_contype | model.geom_conaffinity) > 0
    corners = []
    for i in np.flatnonzero(solid & (model.geom_bodyid > 0)):
        middle, half = model.geom_aabb[i, :3], model.geom_aabb[i, 3:]
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        turn = data.geom_xmat[i].reshape(3, 3)
        corners.append((data.geom_xpos[i] + (middle + signs * half) @ turn.T) @ root - centre)
    if not corners:
        raise ConfigError(f"{path}: no shape in it collides: give one link a collision")
    low, high = np.min(np.vstack(corners), axis=0), np.max(np.vstack(corners), axis=0)
    points = {model.body(i).name: data.xpos[i] for i in range(1, model.nbody)}
    points |= {model.site(i).name: data.site_xpos[i] for i in range(model.nsite)}
    places = {name: place @ root - centre for name, place in points.items() if name}
    return RigidBody(mass, 0.5 * (inertia + inertia.T), high - low, 0.5 * (low + high), places)
