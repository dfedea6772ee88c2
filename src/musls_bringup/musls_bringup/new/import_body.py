"""One rigid body of a URDF, SDF or MJCF file, a load or a drone: what `musls import` reads.

MuJoCo's compiler reads URDF and MJCF: masses, inertias (also those that follow from shapes), meshes
and frames are its own. It does not read SDF, whose bodies are made here. The rotors of a drone are
the plugins MulticopterMotorModel of Gazebo, blades of LiftDrag that ArduPilotPlugin turns, or
actuators of MuJoCo at sites.
"""

from __future__ import annotations

import copy
import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from musls_bringup.new.rotors import actuator_rotors, bladed_rotors, motor_plugins, plugin_rotor
from musls_description.config.errors import ConfigError, install_command, near_names
from musls_description.config.strict_yaml import read_text, shown
from musls_description.numerics.arrays import Array, joined
from musls_description.numerics.rotations import from_roll_pitch_yaw, matrix, product, rotate

KINDS = (".urdf", ".sdf", ".xml")

TILTED = 1.0 - 1e-6
"""Cosine between the axes of a rotor and its drone, at least."""

LARGEST = 1e6
"""Mass [kg], inertia [kg m^2], size and distance [m] that no load has."""


TOO_MUCH_INERTIA = 2.0
"""Share of the largest possible inertia above which it is questioned: shapes that collide are often
smaller than the body."""


@dataclass(frozen=True)
class RigidBody:
    """Everything in a file as one rigid body; places from its centre of mass, axes of its root.

    Attributes:
        inertia_kg_m2: Inertia about the centre of mass, (3, 3).
        box_m: Edges of the box around what collides, (3,).
        box_middle_m: Centre of the box, (3,).
        points_m: Places of named links, bodies and sites, (3,) each.
        rotors: Keys of each rotor of a drone, in the order of its motors.
    """

    mass_kg: float
    inertia_kg_m2: Array
    box_m: Array
    box_middle_m: Array
    points_m: dict[str, Array]
    rotors: tuple[dict[str, Any], ...] = ()

    def chosen(self, names: Sequence[str]) -> Array:
        """Places of attachments, (n, 3)."""
        for name in names:
            if name not in self.points_m:
                raise ConfigError(
                    f"--attach: no '{shown(name)}': {near_names(name, self.points_m)}"
                )
        return np.array([self.points_m[name] for name in names])


def read_rigid_body(path: Path, speed_max_rad_s: float | None = None) -> RigidBody:
    """Read a file whose joints are all fixed, but those of the rotors of a drone.

    `speed_max_rad_s`: of the rotors of a drone at full thrust, where the file does not say it; None
    for a load.
    """
    try:
        import mujoco
    except ImportError:
        raise ConfigError(f"musls import needs MuJoCo: {install_command('mujoco')}") from None
    if path.suffix.lower() not in KINDS:
        raise ConfigError(f"{path}: must be one of {', '.join(KINDS)}")
    if not os.path.isfile(path):
        raise ConfigError(f"{shown(str(path), 200)}: no such file")
    check_xml(path)
    is_drone = speed_max_rad_s is not None
    warned = list[str]()
    mujoco.set_mju_user_warning(warned.append)  # else they are written to MUJOCO_LOG.TXT
    try:
        is_sdf = path.suffix.lower() == ".sdf"
        root = _flat_model(path) if is_sdf else _parsed(path)
        plugins = motor_plugins(root) if is_drone else []
        bladed = bladed_rotors(root) if is_drone and not plugins else []
        turning = {motor.findtext("jointName", "").strip() for motor in plugins}
        turning |= {rotor.joint for rotor in bladed}
        if is_sdf:
            spec = _sdf(root)
        elif path.suffix.lower() == ".urdf":
            spec = mujoco.MjSpec.from_string(_with_meshes(root, path))
        else:
            spec = mujoco.MjSpec.from_file(str(path))
        spec.compiler.fusestatic = False  # names of links without mass stay
        model = spec.compile()
    except _UNREADABLE as error:
        text = " ".join((warned or [str(error)])[0].split())
        text = (_impossible_inertia(path) if "inertia" in text else "") or text
        raise ConfigError(f"{path}: {_OTHERS_REMEDY.sub('', text)}") from None
    except mujoco.FatalError as error:
        raise ConfigError(f"{path}: {' '.join((warned or [str(error)])[0].split())}") from None
    finally:
        mujoco.set_mju_user_warning(None)
    if model.nflex:
        raise ConfigError(f"{path}: it bends (flex): no rigid body")
    free = model.jnt_type == mujoco.mjtJoint.mjJNT_FREE
    moving = [model.joint(i).name or f"joint {i}" for i in np.flatnonzero(~free)]
    moving += _joints(root) if is_sdf else []
    moving = [name for name in moving if name not in _stuck_joints(root)]
    if free.sum() > 1:
        raise ConfigError(f"{path}: two free bodies: the body that is read is one rigid body")
    if frozen := [name for name in moving if name not in turning]:
        names = ", ".join(frozen[:5]) + (f" and {len(frozen) - 5} more" if len(frozen) > 5 else "")
        warnings.warn(f"{path}: {names} can move: fixed where they are at zero", stacklevel=2)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    bodies = {model.body(i).name for i in range(1, model.nbody)}
    links = {motor.findtext("linkName", "").strip() for motor in plugins}
    links = bodies & (links | {rotor.link for rotor in bladed})
    body = _merged(model, data, path, links)
    if speed_max_rad_s is None:
        return body
    try:
        rotors = [plugin_rotor(motor, body.points_m) for motor in plugins]
        rotors = rotors or [rotor.keys(body.points_m) for rotor in bladed]
        rotors = rotors or actuator_rotors(model, body.points_m, speed_max_rad_s)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    if not rotors:
        raise ConfigError(
            f"{path}: no rotors in it: neither MulticopterMotorModel of Gazebo with a "
            "motorConstant, nor blades of LiftDrag turned by ArduPilotPlugin, nor motors of MuJoCo "
            "at sites; musls new drone makes an airframe from a data sheet"
        )
    return replace(body, rotors=tuple(rotors))


_OTHERS_REMEDY = re.compile(r"[;,.]?\s*(?:use|consider|try|set)\s+(?:setting\s+)?'\w+'.*$", re.I)
"""Advice of MuJoCo's to set an option of its own, which there is no way to set here."""


_UNREADABLE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    ElementTree.ParseError,
)
"""Errors of readers at files that are no XML, or not theirs: encodings, empty elements, numbers."""

MOST_ENTRIES = 10_000
MOST_CELLS = 1_000_000
"""Numbers of things, and of cells of a ground, that MJCF may ask for; memory is taken for each."""


def _impossible_inertia(path: Path) -> str:
    """Name the first link of a file whose inertia no body has, and the axis; empty without one."""
    for link in _parsed(path).iter():
        inertial = link.find("inertial")
        if inertial is None:
            continue
        values = [_moment(inertial, inertial.find("inertia"), axes) for axes in _AXES]
        xx, yy, zz, xy, xz, yz = values
        moments, axes = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        least, largest = ("xyz"[int(np.abs(axes[:, k]).argmax())] for k in (0, 2))
        where = f"{link.get('name', '')}: inertia about"
        if moments[0] <= 0.0:
            return f"{where} {least}: {moments[0]:.4g} kg m2, must be above 0"
        if moments[2] > (1.0 + 1e-6) * (moments[0] + moments[1]):
            return (
                f"{where} {largest}: {moments[2]:.4g} kg m2, more than about the other two axes "
                f"together ({moments[0]:.4g} + {moments[1]:.4g}), as no body has"
            )
    return ""


_AXES = ("xx", "yy", "zz", "xy", "xz", "yz")


def _moment(inertial: Element, inertia: Element | None, axes: str) -> float:
    """A moment of URDF, SDF or MJCF; 1 about an axis and 0 else where it is not given."""
    if inertia is not None:
        text = inertia.get(f"i{axes}", "") or inertia.findtext(f"i{axes}", "")
    else:
        values = (inertial.get("fullinertia") or inertial.get("diaginertia") or "").split()
        text = dict(zip(_AXES, values, strict=False)).get(axes, "")
    try:
        return float(text)
    except ValueError:
        return 1.0 if axes[0] == axes[1] else 0.0


def check_xml(path: Path, above: tuple[Path, ...] = ()) -> None:
    """Refuse a file, or one that it names, that cannot be read or would take all memory.

    Raises:
        ConfigError: It is no file, names a pipe or a device, or asks for too many of something.
    """
    read_text(path)
    try:
        root = _parsed(path)
    except _UNREADABLE as error:
        raise ConfigError(f"{path}: cannot be read as XML: {error}") from None
    if path.suffix.lower() == ".xml":
        _check_numbers(root, path)
    compiler = root.find("compiler")
    folders = {"", *(compiler.attrib.values() if compiler is not None else ())}
    for element in root.iter():
        for name, text in element.attrib.items():
            if name not in ("file", "filename"):
                continue
            for folder in folders:
                for candidate in (text, Path(text).name):
                    place = path.absolute().parent / folder / candidate
                    if os.path.exists(place) and not os.path.isfile(place):
                        raise ConfigError(f"{path}: {shown(text)} is no file")
                    if element.tag == "include" and os.path.isfile(place) and place not in above:
                        check_xml(place, (*above, path.absolute(), place))


def _parsed(path: Path) -> Element:
    """Root of an XML file; as Gazebo reads it, prefixes may be undeclared, comments hold dashes."""
    try:
        return ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        try:
            return ElementTree.fromstring(_with_prefixes(read_text(path)))
        except ElementTree.ParseError:
            raise error from None


def _with_prefixes(text: str) -> str:
    """XML without its comments, and with all prefixes declared."""
    text = re.sub("<!--.*?-->", "", text, flags=re.DOTALL)
    prefixes = set(re.findall(r"<([A-Za-z_][\w.-]*):", text))
    prefixes |= set(re.findall(r"\s([A-Za-z_][\w.-]*):[\w.-]+\s*=", text)) - {"xml", "xmlns"}
    declared = "".join(f' xmlns:{prefix}="{prefix}"' for prefix in sorted(prefixes))
    return re.sub(r"<[A-Za-z_][\w.:-]*", rf"\g<0>{declared}", text, count=1)


def _check_numbers(element: Element, path: Path, copies: float = 1.0) -> None:
    """Refuse MJCF that asks for too many of something; inside of what is copied each counts."""
    for name, text in element.attrib.items():
        if element.tag == "size" or name in ("count", "nuser"):
            largest = many = max(_numbers(text), default=0.0)
            if name == "count":
                copies *= math.prod(max(number, 1.0) for number in _numbers(text))
                many = copies
            if many > MOST_ENTRIES:
                raise ConfigError(
                    f"{path}: <{element.tag} {name}={shown(text)}>: must be at most {MOST_ENTRIES}"
                    + (", together with what it stands in" if many > largest else "")
                )
    cells = math.prod(_numbers(f"{element.get('nrow', '')} {element.get('ncol', '')}"))
    if cells > MOST_CELLS:
        raise ConfigError(
            f"{path}: <{element.tag}> of {cells:g} cells (nrow, ncol): must be at most {MOST_CELLS}"
        )
    for below in element:
        _check_numbers(below, path, copies)


def _numbers(text: str) -> list[float]:
    """Sizes of the numbers in a text; MuJoCo tells of what is none."""
    numbers = []
    for part in text.split():
        with suppress(ValueError):
            numbers.append(abs(float(part)))
    return numbers


# ---------- URDF: where its meshes are

MESHES = (".stl", ".obj", ".msh")
"""Kinds of meshes that MuJoCo reads."""


def _with_meshes(root: Element, path: Path) -> str:
    """URDF with the places of the meshes that collide; without lost ones, which it tells.

    MuJoCo does not resolve paths of ROS packages. Visual meshes are left out: mass and inertia are
    in the file.
    """
    lost_names = []
    for link in root.iter("link"):
        for visual in link.findall("visual"):
            link.remove(visual)
        for shape in link.findall("collision"):
            if (mesh := shape.find("geometry/mesh")) is None:
                continue
            name = mesh.get("filename", "")
            file = next(filter(os.path.isfile, _mesh_places(name, path, root)), None)
            if file is None or file.suffix.lower() not in MESHES:
                link.remove(shape)
                lost_names.append(name)
            else:
                mesh.set("filename", str(file.absolute()))
    if lost_names:
        names = ", ".join(map(shown, lost_names[:3])) + (
            f" and {len(lost_names) - 3} more" * (len(lost_names) > 3)
        )
        kinds = ", ".join(MESHES)
        warnings.warn(f"{path}: {names} left out: no such file, or not {kinds}", stacklevel=3)
    own = root.find("mujoco")
    extension = ElementTree.SubElement(root, "mujoco") if own is None else own
    compiler = extension.find("compiler")
    if compiler is None:
        compiler = ElementTree.SubElement(extension, "compiler")
    compiler.attrib.pop("meshdir", None)
    compiler.set("strippath", "false")
    return ElementTree.tostring(root, encoding="unicode")


def _mesh_places(name: str, path: Path, root: Element) -> list[Path]:
    """Possible files of a mesh: beside the file, in its package, in the packages of ROS."""
    compiler = root.find("mujoco/compiler")
    folder = path.absolute().parent
    beside = folder / ("" if compiler is None else compiler.get("meshdir", ""))
    package, _, inside = name.removeprefix("package://").partition("/")
    if not name.startswith("package://"):
        name = name.removeprefix("file://")
        return [folder / name, beside / name, beside / Path(name).name]
    places = [above / inside for above in folder.parents if above.name == package]
    places += [above / package / inside for above in folder.parents]
    for variable, share in (("AMENT_PREFIX_PATH", "share"), ("ROS_PACKAGE_PATH", "")):
        folders = filter(None, os.environ.get(variable, "").split(":"))
        places += [Path(place) / share / package / inside for place in folders]
    return [*places, beside / Path(name).name]


# ---------- SDF: the links, collisions and frames of one model, at their poses in it

Pose = tuple[Array, Array]
"""Position (3,) and orientation w, x, y, z of something within something else."""

_AT_REST: Pose = (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))


def _flat_model(path: Path, above: tuple[Path, ...] = ()) -> Element:
    """The model of an SDF file with all that it includes: links, joints, frames at their poses.

    Poses are relative to the model; names within an included or nested model begin with its name
    and ::, unless it is merged.
    """
    path = path.resolve()
    if path in above:
        raise ValueError(f"{path.parent.name}/{path.name} includes itself")
    return _flat(_one_model(_parsed(path), path), path, (*above, path))


def _one_model(root: Element, path: Path) -> Element:
    """The model of a file; of a world the only one that is not static, or that has rotors."""
    world = root.find("world")
    if world is None:
        if (model := root.find("model")) is None:
            raise ValueError(f"there is no <model> in {path.name}")
        return model
    free = [model for model in world.findall("model") if model.findtext("static") != "true"]
    flying = [model for model in free if motor_plugins(model) or bladed_rotors(model)]
    for models in (free, flying):
        if len(models) == 1:
            return models[0]
    names = ", ".join(model.get("name", "") for model in free) or "none"
    raise ValueError(
        f"a world; of its own models that are not static one is read, it has {names}. What it "
        "includes has a file of its own"
    )


def _flat(model: Element, path: Path, above: tuple[Path, ...]) -> Element:
    """A model in the place of which its own and its inner links stand, each with its pose."""
    inner: dict[str, tuple[Element, bool]] = {}
    by_name = {element.get("name", ""): element for element in model if element.get("name")}
    for element in model.findall("model"):
        inner[element.get("name", "")] = _flat(element, path, above), False
    for include in model.findall("include"):
        merged = include.get("merge") in ("true", "1")
        part = _flat_model(_included(include, path), above)
        name = include.findtext("name", "").strip() or part.get("name", "")
        if include.find("pose") is None and (own := part.find("pose")) is not None:
            include.append(own)
        by_name[name] = include
        inner[name] = part, merged
    flat = Element("model", {"name": model.get("name", "")})
    if (own := model.find("pose")) is not None:
        flat.append(own)
    waiting = list(inner)
    frames = dict(by_name)
    while waiting:  # some stand in links of others
        name = next((n for n in waiting if _leads_somewhere(by_name[n], frames)), waiting[0])
        (part, merged) = inner[name]
        place = _in_model(by_name[name], frames)
        waiting.remove(name)
        for element in part:
            if element.tag != "pose":
                flat.append(element_copy := _moved(element, place, "" if merged else f"{name}::"))
                frames.setdefault(element_copy.get("name", ""), element_copy)
    for element in model:
        if element.tag in ("link", "joint", "frame"):
            frames = by_name | {e.get("name", ""): e for e in flat if e.get("name")}
            flat.append(_placed(element, _in_model(element, frames)))
        elif element.tag == "plugin":
            flat.append(element)
    return flat


def _leads_somewhere(element: Element, frames: Mapping[str, Element]) -> bool:
    """Whether what a pose is relative to is known."""
    pose = element.find("pose")
    above = None if pose is None else pose.get("relative_to")
    return above in (None, "", "__model__") or above in frames


def _included(include: Element, path: Path) -> Path:
    """File of an included model: in the model's neighbouring folders, or in Gazebo's paths."""
    uri = include.findtext("uri", "").strip()
    name = uri.removeprefix("model://").removeprefix("file://").strip("/")
    places = [path.parent.parent, path.parent]
    for variable in ("GZ_SIM_RESOURCE_PATH", "SDF_PATH"):
        places += [Path(place) for place in os.environ.get(variable, "").split(":") if place]
    files = [place / name / "model.sdf" for place in places] if name else []
    for file in files:
        if os.path.isfile(file):
            return file
    raise ValueError(
        f"<include> of {shown(uri) or 'nothing'}: there is no ../{shown(name)}/model.sdf, nor in "
        "GZ_SIM_RESOURCE_PATH"
    )


def _placed(element: Element, place: Pose) -> Element:
    """A copy of a link, joint or frame at a pose in the model."""
    result = copy.copy(element)
    for pose in result.findall("pose"):
        result.remove(pose)
    result.attrib = {k: v for k, v in element.attrib.items() if k != "attached_to"}
    position, (w, x, y, z) = place
    pose = ElementTree.SubElement(result, "pose", {"relative_to": "__model__"})
    pose.text = " ".join(repr(float(value)) for value in (*position, x, y, z, w))
    return result


def _moved(element: Element, place: Pose, prefix: str) -> Element:
    """A link, joint, frame or plugin of an inner model as one of the outer model."""
    result = copy.deepcopy(element)
    if element.tag != "plugin":
        position, q = _pose(element)
        result = _placed(result, (place[0] + rotate(place[1], position), product(place[1], q)))
        result.set("name", prefix + result.get("name", ""))
    for tag in ("parent", "child", "linkName", "jointName", "link_name"):
        for inner in result.iter(tag):
            if (inner.text or "").strip() != "world":
                inner.text = prefix + (inner.text or "").strip()
    return result


def _joints(model: Element) -> list[str]:
    """Names of the joints of an SDF model that are not fixed by their kind."""
    joints = [joint for joint in model.findall("joint") if joint.get("type") != "fixed"]
    return [joint.get("name", "") for joint in joints]


def _stuck_joints(root: Element) -> set[str]:
    """Names of the joints of URDF or SDF whose limits are both zero, which is URDF's default."""
    names = set[str]()
    for joint in root.iter("joint"):
        if (limit := joint.find("limit")) is not None and joint.get("type") != "continuous":
            ends = [limit.get(end, "0") for end in ("lower", "upper")]  # of URDF
        else:
            ends = [joint.findtext(f"axis/limit/{end}", "") for end in ("lower", "upper")]
        if [*map(_numbers, ends)] == [[0.0], [0.0]]:
            names.add(joint.get("name", ""))
    return names


def _sdf(model: Element) -> Any:
    """A flat model of SDF as a specification of MuJoCo's, without joints."""
    import mujoco

    spec = mujoco.MjSpec()
    root = spec.worldbody.add_body()
    for link in model.findall("link"):
        position, q = _pose(link)
        body = root.add_body(name=link.get("name"), pos=position, quat=q)
        inertial = link.find("inertial")
        follows = inertial is not None and inertial.get("auto") in ("true", "1")
        if not follows:
            _add_inertia(body, inertial)
        usual = inertial.findtext("density", "1000") if inertial is not None else "1000"
        for collision in link.findall("collision"):
            _add_shape(body, collision, float(collision.findtext("density", usual)))
        if follows and not len(body.geoms):
            raise ValueError(f"{link.get('name')}: its inertia follows from shapes, it has none")
        if follows and inertial is not None and inertial.find("mass") is not None:
            _scale_to(body, inertial.findtext("mass", ""))
    for frame in model.findall("frame"):
        root.add_site(name=frame.get("name"), pos=_pose(frame)[0])
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


def _in_model(element: Element, by_name: Mapping[str, Element], depth: int = 0) -> Pose:
    """Pose of a link, joint or frame in its model, by way of those that it is given in."""
    pose = element.find("pose")
    above = None
    if pose is not None:
        above = pose.get("relative_to")
    if above is None:
        above = element.get("attached_to") or (
            element.findtext("child") if element.tag == "joint" else None
        )
    position, q = _pose(element)
    if above in (None, "", "__model__"):
        return position, q
    if above not in by_name or depth > len(by_name):
        raise ValueError(
            f"{element.get('name') or element.findtext('uri')}: its pose is relative to '{above}', "
            "which leads nowhere"
        )
    place, turn = _in_model(by_name[above], by_name, depth + 1)
    return place + rotate(turn, position), product(turn, q)


def _add_inertia(body: Any, inertial: Element | None) -> None:
    """Mass and inertia of a link; SDF's defaults are 1 kg and 1 kg m^2."""
    element = inertial if inertial is not None else Element("inertial")
    moments = {
        axes: float(element.findtext(f"inertia/i{axes}", "1" if axes[0] == axes[1] else "0"))
        for axes in ("xx", "yy", "zz", "xy", "xz", "yz")
    }
    if not np.isfinite([*moments.values()]).all():
        raise ValueError("<inertia>: must be finite numbers")
    xx, yy, zz, xy, xz, yz = moments.values()
    position, q = _pose(element)
    turn = matrix(q)
    inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    body.explicitinertial = True
    body.mass = float(element.findtext("mass", "1"))
    body.ipos = position
    body.fullinertia = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def _add_shape(body: Any, collision: Element, density_kg_m3: float) -> None:
    """A box, cylinder, capsule or sphere that collides; others are left out with a word."""
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
        shape_names = ", ".join(sizes)
        name = f"{body.name}, collision {collision.get('name')}"
        warnings.warn(
            f"{name}: <{shape.tag}> is left out, but {shape_names} are read", stacklevel=2
        )
        return
    kind, size = sizes[shape.tag]
    position, q = _pose(collision)
    body.add_geom(type=kind, size=size, pos=position, quat=q, density=density_kg_m3)


def _scale_to(body: Any, mass_kg: str) -> None:
    """Scale the densities of a body's shapes so that it has a mass, as libsdformat does."""
    import mujoco

    target_kg = float(mass_kg)
    if not 0.0 < target_kg < LARGEST:
        raise ValueError(f"{body.name}: <mass>{shown(mass_kg)}</mass>: must be above 0")
    trial = mujoco.MjSpec()
    alone = trial.worldbody.add_body()
    for geom in body.geoms:
        alone.add_geom(type=geom.type, size=geom.size, density=geom.density)
    mass = trial.compile().body_mass[1]
    if not mass > 0.0:
        raise ValueError(f"{body.name}: its shapes have no mass")
    for geom in body.geoms:
        geom.density *= target_kg / mass


def _merged(model: Any, data: Any, path: Path, rotors: Set[str]) -> RigidBody:
    """All bodies as one; those of rotors collide with nothing."""
    numbers = (
        model.body_mass,
        model.body_inertia,
        model.geom_aabb,
        data.xpos,
        data.xmat,
        data.xipos,
        data.ximat,
        data.geom_xpos,
        data.geom_xmat,
        data.site_xpos,
    )
    if not all((np.abs(part) < LARGEST).all() for part in numbers):
        raise ConfigError(f"{path}: a mass, inertia, size or place in it is not below {LARGEST:g}")
    if np.sum(model.body_mass[1:]) <= 0.0:
        raise ConfigError(f"{path}: nothing in it has a mass")
    root = np.array(data.xmat[1]).reshape(3, 3)
    for name in sorted(rotors):
        if root[:, 2] @ data.body(name).xmat.reshape(3, 3)[:, 2] < TILTED:
            raise ConfigError(f"{path}: {name} is tilted, which is not modelled")
    turns = root.T @ data.ximat[1:].reshape(-1, 3, 3)
    centres = data.xipos[1:] @ root
    inertias = turns * model.body_inertia[1:, None] @ np.swapaxes(turns, 1, 2)
    mass, inertia, own = joined(model.body_mass[1:], inertias, centres)
    centre = centres[0] - own[0]
    solid = (model.geom_contype | model.geom_conaffinity) > 0
    corners = []
    for i in np.flatnonzero(solid & (model.geom_bodyid > 0)):
        if model.body(model.geom_bodyid[i]).name in rotors:
            continue
        middle = model.geom_aabb[i, :3]
        half = model.geom_aabb[i, 3:]
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        turn = data.geom_xmat[i].reshape(3, 3)
        corners.append((data.geom_xpos[i] + (middle + signs * half) @ turn.T) @ root - centre)
    if not corners:
        raise ConfigError(f"{path}: no shape in it collides: give one link a collision")
    low, high = np.min(np.vstack(corners), axis=0), np.max(np.vstack(corners), axis=0)
    if not inertia.any():
        edges_m = high - low
        inertia = mass / 12.0 * np.diag((edges_m @ edges_m) - edges_m**2)
        warnings.warn(f"{path}: no inertia in it: that of a homogeneous box is taken", stacklevel=2)
    _question_inertia(path, float(mass), inertia, np.abs([low, high]).max(axis=0))
    points = {model.body(i).name: data.xpos[i] for i in range(1, model.nbody)}
    points |= {model.site(i).name: data.site_xpos[i] for i in range(model.nsite)}
    places = {name: place @ root - centre for name, place in points.items() if name}
    return RigidBody(mass, 0.5 * (inertia + inertia.T), high - low, 0.5 * (low + high), places)


def _question_inertia(path: Path, mass_kg: float, inertia: Array, reach_m: Array) -> None:
    """Warn of a moment of inertia that is larger than if all mass were at the farthest corner.

    `reach_m` is the largest distance from the centre of mass along each axis, (3,).
    """
    largest = float(np.linalg.eigvalsh(inertia)[-1])
    possible = mass_kg * float(reach_m @ reach_m)
    if largest > TOO_MUCH_INERTIA * possible:
        warnings.warn(
            f"{path}: a moment of inertia of {largest:.3g} kg m2 is {largest / possible:.0f} times "
            f"what {mass_kg:g} kg in a box of this size can have; SDF takes 1 kg m2 where a file "
            "gives none",
            stacklevel=2,
        )
