"""An SDF reader of the tests' own: frames, links and joints as the specification has them."""

from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation


class Link(NamedTuple):
    """Pose in the world, mass, and inertia in the link's frame."""

    rotation: np.ndarray
    position_m: np.ndarray
    mass_kg: float
    com_m: np.ndarray
    inertia_kg_m2: np.ndarray


class Joint(NamedTuple):
    """Frame in the world at the file's pose, the axes in that frame, lowest and highest angle."""

    kind: str
    parent: str
    child: str
    rotation: np.ndarray
    position_m: np.ndarray
    axes: list
    dynamics: list
    limits: list


def _numbers(element):
    return np.array([float(v) for v in element.text.split()])


def _pose(element):
    """Pose below an element: frame it is relative to ("" for the default), rotation, position."""
    pose = element.find("pose")
    if pose is None:
        return "", np.eye(3), np.zeros(3)
    values = _numbers(pose)
    if pose.get("rotation_format") == "quat_xyzw":
        rotation = Rotation.from_quat(values[3:])
    else:
        rotation = Rotation.from_euler("xyz", values[3:])
    return pose.get("relative_to", ""), rotation.as_matrix(), values[:3]


class SdfScene:
    """Links and joints of a world by their names as seen from the world, `model::link`."""

    def __init__(self, text):
        self.root = ElementTree.fromstring(text)
        self.world = self.root.find("world")
        self._frames = {}
        self._in_world = {"": (np.eye(3), np.zeros(3))}
        self._read_frames(self.world, "", "")
        self.links, self.joints = {}, {}
        self._read(self.world, "")

    def _read_frames(self, scope, prefix, own):
        """Note the pose of each model and link: frame it is relative to, rotation, position."""
        for kind in ("model", "link"):
            for element in scope.findall(kind):
                relative_to, rotation, position = _pose(element)
                base = prefix + relative_to if relative_to else own
                name = prefix + element.get("name")
                assert name not in self._frames, f"{name} is there twice"
                self._frames[name] = (base, rotation, position)
                if kind == "model":
                    self._read_frames(element, f"{name}::", name)

    def frame(self, name):
        """Pose of a frame in the world."""
        if name not in self._in_world:
            base, rotation, position = self._frames[name]
            base_rotation, base_position = self.frame(base)
            place = base_position + base_rotation @ position
            self._in_world[name] = (base_rotation @ rotation, place)
        return self._in_world[name]

    def _read(self, scope, prefix):
        for element in scope.findall("link"):
            name = prefix + element.get("name")
            inertial = element.find("inertial")
            if inertial is not None:
                self.links[name] = Link(*self.frame(name), *_mass(inertial))
        for element in scope.findall("joint"):
            self.joints[prefix + element.get("name")] = self._joint(element, prefix)
        for element in scope.findall("model"):
            self._read(element, f"{prefix}{element.get('name')}::")

    def _joint(self, element, prefix):
        parent, child = (prefix + element.findtext(tag) for tag in ("parent", "child"))
        relative_to, in_child, place = _pose(element)
        assert not relative_to
        child_rotation, child_position = self.frame(child)
        rotation = child_rotation @ in_child
        axes, dynamics, limits = [], [], []
        for axis in (element.find("axis"), element.find("axis2")):
            if axis is None:
                continue
            xyz, expressed_in = axis.find("xyz"), axis.find("xyz").get("expressed_in")
            frame = self.frame(prefix + expressed_in)[0] if expressed_in else rotation
            axes.append(rotation.T @ frame @ _numbers(xyz))
            values = axis.find("dynamics")
            dynamics.append({} if values is None else {v.tag: float(v.text) for v in values})
            ends = (axis.findtext("limit/lower", "-inf"), axis.findtext("limit/upper", "inf"))
            limits.append(tuple(map(float, ends)))
        position = child_position + child_rotation @ place
        return Joint(element.get("type"), parent, child, rotation, position, axes, dynamics, limits)


def _mass(inertial):
    relative_to, rotation, com = _pose(inertial)
    assert not relative_to and np.array_equal(rotation, np.eye(3))
    i = {e.tag: float(e.text) for e in inertial.find("inertia")}
    inertia = np.array(
        [
            [i["ixx"], i["ixy"], i["ixz"]],
            [i["ixy"], i["iyy"], i["iyz"]],
            [i["ixz"], i["iyz"], i["izz"]],
        ]
    )
    return float(inertial.findtext("mass")), com, inertia
