"""The system as a tree of bodies rooted at the load: the layout that every writer follows.

Body 0 is the load (free joint). Then, cable by cable, its links from the load upwards and the
drone at its end; each is the child of one universal joint (eq. 1 to 3; Remark 3), but for the
first link of a cable that is free to twist, whose joint turns about three axes. All writers take
body frames and joint frames from here, so DART and SDF describe the same mechanism.

Frames at zero joint angles: link x points up (load z), link y is horizontal and tangential, so
that a swing in the vertical plane through the attachment turns only the first joint axis (link
y) and stays clear of the universal joint's singularity (second axis at +-90 degrees). The drone
then stands upright and faces the load: its x axis points inwards, z is along the link.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_matrix, intrinsic_xyz, rotation_vector
from musls_description.system.drone import Drone, tip_radius_m
from musls_description.system.slung_system import Cable, RigSystem, SlungLoadSystem

# The joint frame at the drone's end of the cable, seen from the drone: joint x (along the cable)
# is drone z, joint y is drone -y, joint z is drone x.
JOINT_IN_DRONE = np.array([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])

# A cable that is free to twist has a third axis in its joint at the load, and there the joint frame
# is turned by a quarter about x, so that z is tangential: the first axis (up) then takes the way
# of the cable round the load, the last one its tilt, and the middle one, singular at 90 degrees,
# stays near zero wherever the drone goes, as long as it looks about where its cable points.
QUARTER_TURN = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])

SLACK_RATIO = 0.9
"""Distance of a cable's ends over its length where load and drone stand on the ground."""

DISCS_APART = 0.5
"""Distance of rotor tips on the ground over that of a tip from its drone's axis, in a line."""

NARROW = 0.05
"""Width over length of attachments that count as a line; measured hooks are never quite in one."""

GROUND_TIPS_M = 0.3
"""Rotor tips of drones that stand on the ground are so far apart where attachments do not say."""

CENTRAL_M = 1e-6
"""Attachments closer than this to the load's axis, or to each other, have no direction."""

STOP_RAD = float(np.radians(60.0))
"""Stop of a joint's second axis, on either side, where it is about to be singular.

With the link along x and the axes y, then z, a universal joint is singular when the second angle
reaches +-90 degrees: the first axis is then along the link (a joint with the axes x, y, z likewise
at the second). A slack cable that folds sharply sideways gets there, and one that passes has
infinite joint rates. A real cable does not fold by 90 degrees within a link's length either.
"""


@dataclass(frozen=True)
class TreeBody:
    """One rigid body and the joint it hangs on.

    Attributes:
        name: "load", "cable_1/link_01", "drone_1", ...
        parent: Index of the parent body, -1 for the load (and for the first body of a loose piece,
            which a simulation may part from the load).
        joint_in_parent_rotation: Joint frame in the parent's frame, (3, 3).
        joint_in_parent_position_m: Origin of the joint in the parent's frame, (3,).
        joint_in_child_rotation: Joint frame at zero angles in this body's frame, (3, 3).
        joint_in_child_position_m: Origin of the joint in this body's frame, (3,).
        com_m: Centre of mass in the body's frame, (3,).
        inertia_kg_m2: Inertia about the centre of mass, body frame, (3, 3).
        damping_n_m_s_rad: Viscous damping of the joint axes y and z.
        stiffness_n_m_rad: Spring of the joint axes y and z.
        friction_n_m: Coulomb friction torque of the joint axes.
        axes: Axes of the joint in the order in which they turn: "yz" is a universal joint, "xyz"
            turns about the cable's axis too, "" is a free joint.
        twist_damping_n_m_s_rad: Viscous damping of the joint axis x.
    """

    name: str
    parent: int
    joint_in_parent_rotation: Array
    joint_in_parent_position_m: Array
    joint_in_child_rotation: Array
    joint_in_child_position_m: Array
    mass_kg: float
    com_m: Array
    inertia_kg_m2: Array
    damping_n_m_s_rad: float = 0.0
    stiffness_n_m_rad: float = 0.0
    friction_n_m: float = 0.0
    axes: str = "yz"
    twist_damping_n_m_s_rad: float = 0.0

    @property
    def freedom(self) -> int:
        """Number of the joint's coordinates: 6 of a free joint, else one for each axis."""
        return len(self.axes) or 6

    def axis_damping_n_m_s_rad(self, axis: str) -> float:
        """Viscous damping of one axis of the joint [N m s/rad]."""
        return self.twist_damping_n_m_s_rad if axis == "x" else self.damping_n_m_s_rad

    def pose_in_parent(self, coordinates: Array) -> tuple[Array, Array]:
        """Rotation to the parent's frame (the world's for a free joint), (3, 3), and origin, (3,).

        `coordinates` are the joint's angles, or rotation vector and position.
        """
        if not self.axes:
            return scipy.spatial.transform.Rotation.from_rotvec(
                coordinates[:3]
            ).as_matrix(), coordinates[3:]
        return self.turned(
            scipy.spatial.transform.Rotation.from_euler(self.axes.upper(), coordinates).as_matrix()
        )

    def turned(self, turn: Array) -> tuple[Array, Array]:
        """Angles of a joint with axes for a rotation, (3, 3)."""
        rotation = self.joint_in_parent_rotation @ turn @ self.joint_in_child_rotation.T
        return rotation, self.joint_in_parent_position_m - rotation @ self.joint_in_child_position_m


WORLD = -1
"""Body index of what does not move."""


@dataclass(frozen=True)
class Closing:
    """End of a cable that closes a loop of a rig, see `rig_tree`: it has to stay at its place.

    Attributes:
        link: Body index of the cable's last link.
        point_m: Place of the end in the frame of that link, (3,).
        body: Body index of what holds it; `WORLD` for a fixed anchor.
        place_m: Place where it is held, in the frame of that body, or in the world, (3,).
    """

    link: int
    point_m: Array
    body: int
    place_m: Array


@dataclass(frozen=True)
class Tree:
    """All bodies in the order of the tree, and where load, cables and drones are in it.

    Attributes:
        bodies: Parents before children.
        first_link: Body index of each cable's link at the load, (n_cables,). In a rig it is at
            either end of the cable, see `backwards`.
        drone: Body index of each drone, (n_drones,).
        beyond: Body that hangs on each cable's last link; -1 - k where closing k holds it,
            (n_cables,).
        backwards: 1 for cables whose first link is at their end 2, (n_cables,).
        anchors: Body index of each anchor, `WORLD` for one that does not move, (n_anchors,).
        closings: Ends of cables that close loops.
    """

    bodies: tuple[TreeBody, ...]
    first_link: NDArray[np.int64]
    drone: NDArray[np.int64]
    beyond: NDArray[np.int64]
    backwards: NDArray[np.int64]
    anchors: NDArray[np.int64]
    closings: tuple[Closing, ...] = ()

    @property
    def n_coordinates(self) -> int:
        """Degrees of freedom: 6 of the load, one for each axis of each joint."""
        return sum(body.freedom for body in self.bodies)

    @property
    def first_coordinate(self) -> NDArray[np.int64]:
        """Index of each body's first coordinate, (n_bodies,); the load's six come first."""
        sizes = [body.freedom for body in self.bodies]
        return np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def poses(self, coordinates: Array) -> tuple[Array, Array]:
        """Rotation to the world, (n_bodies, 3, 3), and origin, (n_bodies, 3), of every body."""
        rotations = np.empty((len(self.bodies), 3, 3))
        positions = np.empty((len(self.bodies), 3))
        first = self.first_coordinate
        turns = rotations.copy()
        for axes in {body.axes for body in self.bodies} - {""}:  # all alike at once
            alike = [k for k, body in enumerate(self.bodies) if body.axes == axes]
            angles = coordinates[first[alike][:, None] + np.arange(len(axes))]
            turns[alike] = scipy.spatial.transform.Rotation.from_euler(
                axes.upper(), angles
            ).as_matrix()
        for k, body in enumerate(self.bodies):
            if body.axes:
                rotation, position = body.turned(turns[k])
            else:
                rotation, position = body.pose_in_parent(coordinates[first[k] : first[k] + 6])
            if body.parent >= 0:
                above = rotations[body.parent]
                rotation = above @ rotation
                position = positions[body.parent] + above @ position
            rotations[k] = rotation
            positions[k] = position
        return rotations, positions


def cable_azimuths_rad(system: SlungLoadSystem) -> Array:
    """Direction about load z in which each cable leaves the load on the ground [rad], (n,).

    It is that of the attachment from the load's origin (0 on the axis), as long as the drones stand
    beside the load there and their rotors do not overlap, those of attachments in a line by
    `DISCS_APART`. Else they fan out: the outer ones of a line along it, those between to alternate
    sides, and from there aside until rotor tips are `GROUND_TIPS_M` apart.
    """
    at = np.array(system.load.cable_attachments_m)[:, :2]
    central = np.linalg.norm(at, axis=1) <= CENTRAL_M
    outward = np.where(central, 0.0, np.arctan2(at[:, 1], at[:, 0]))
    places_m = _on_ground_m(system, outward)
    apart_m = 0.0
    if _in_a_line(at):
        apart_m = DISCS_APART * max(tip_radius_m(drone) for drone in system.drones)
    if beside_load_m(system, places_m) > 0.0 and tips_apart_m(system, places_m) >= apart_m:
        return outward
    return _fanned_out_rad(system).copy()


def _in_a_line(at: Array) -> bool:
    """Whether attachments, (n, 2), lie nearly in a line: their width is small beside its length."""
    sizes = np.linalg.svd(at - at.mean(axis=0), compute_uv=False)
    return len(at) > 1 and bool(sizes[1] <= NARROW * sizes[0])


def _on_ground_m(system: SlungLoadSystem, azimuths_rad: Array) -> Array:
    """Places of the drones whose cables lie slack in these directions, seen from above, (n, 2)."""
    aside_m = SLACK_RATIO * np.array([cable.length_m for cable in system.cables])[:, None]
    outwards = np.column_stack([np.cos(azimuths_rad), np.sin(azimuths_rad)])
    return np.array(system.load.cable_attachments_m)[:, :2] + aside_m * outwards


@lru_cache(maxsize=8)
def _fanned_out_rad(system: SlungLoadSystem) -> Array:
    """Directions in which rotor tips are apart, near those of a fan [rad], (n,)."""
    fan = _fan_rad(np.array(system.load.cable_attachments_m)[:, :2])

    def too_near(azimuths_rad: Array) -> Array:
        gaps = tip_gaps_m(system, _on_ground_m(system, azimuths_rad))
        return np.concatenate([np.minimum(gaps - GROUND_TIPS_M, 0.0), 0.003 * (azimuths_rad - fan)])

    return np.asarray(scipy.optimize.least_squares(too_near, fan, max_nfev=50).x)


def _fan_rad(at: Array) -> Array:
    """Directions that fan out along the longer axis of attachments (n, 2) [rad], (n,)."""
    n = len(at)
    centred = at - at.mean(axis=0)
    if np.abs(centred).max() < CENTRAL_M:
        return 2.0 * np.pi * np.arange(n) / n
    axis = np.linalg.svd(centred)[2][0]
    axis *= np.sign(axis[np.argmax(np.abs(axis))])
    along = centred @ axis
    across = centred @ [-axis[1], axis[0]]
    side = np.where(np.argsort(np.argsort(along)) % 2, 1.0, -1.0)
    if not _in_a_line(at) and np.abs(across).min() > CENTRAL_M:  # two rows
        side = np.sign(across)
    angle = side * np.arccos(0.95 * along / np.abs(along).max())
    return np.asarray(angle + np.arctan2(axis[1], axis[0]))


def tips_apart_m(system: RigSystem, places_m: Array) -> float:
    """Least distance of rotor tips, seen from above: a drone below another is in its downwash."""
    return float(tip_gaps_m(system, places_m).min(initial=np.inf))


def beside_load_m(system: SlungLoadSystem, places_m: Array) -> float:
    """Least horizontal distance of drones' centres from the rectangle round the load.

    `places_m`, (n, 2) or (n, 3): in the load's frame. 0 where a drone stands on the load.
    """
    corners_m = np.array(system.load.collision.corners_m)[:, :2]
    low, high = corners_m.min(axis=0), corners_m.max(axis=0)
    over_m = np.maximum(np.maximum(low - places_m[:, :2], places_m[:, :2] - high), 0.0)
    return float(np.linalg.norm(over_m, axis=1).min())


def tip_gaps_m(system: RigSystem, places_m: Array) -> Array:
    """Distances of rotor tips, seen from above, of drones 1 and 2, 1 and 3, ..., 2 and 3, ..."""
    tips = np.array([tip_radius_m(drone) for drone in system.drones])
    i, j = np.triu_indices(len(tips), 1)
    return np.asarray(np.linalg.norm(places_m[i, :2] - places_m[j, :2], axis=1) - tips[i] - tips[j])


def joint_in_load(azimuth_rad: float) -> Array:
    """Frame of the joint at the load: x up, y tangential, z inwards, (3, 3)."""
    c, s = np.cos(azimuth_rad), np.sin(azimuth_rad)
    up = [0.0, 0.0, 1.0]
    tangential = [-s, c, 0.0]
    inwards = [-c, -s, 0.0]
    return np.array([up, tangential, inwards]).T


@lru_cache(maxsize=8)
def build_tree(system: SlungLoadSystem) -> Tree:
    """Lay a system out as a tree of bodies."""
    load = system.load
    joint = (np.eye(3), np.zeros(3))
    inertia = np.array(load.inertia_kg_m2)
    bodies = [TreeBody("load", -1, *joint, *joint, load.mass_kg, np.zeros(3), inertia, axes="")]
    first_link = []
    drone_index = []
    azimuths_rad = cable_azimuths_rad(system)
    for i, (cable, drone) in enumerate(zip(system.cables, system.drones, strict=True)):
        first_link.append(len(bodies))
        anchor = np.array(load.cable_attachments_m[i])
        frame = joint_in_load(azimuths_rad[i])
        parent = 0
        for j in range(cable.links):
            twists = j == 0 and cable.twist == "free"
            name = f"cable_{i + 1}/link_{j + 1:02d}"
            bodies.append(chain_link(name, parent, frame, anchor, cable, twists))
            parent = len(bodies) - 1
            anchor = np.array([cable.link_length_m, 0.0, 0.0])
            frame = np.eye(3)
        drone_index.append(len(bodies))
        bodies.append(_drone(f"drone_{i + 1}", parent, anchor, drone, cable))
    drones = np.array(drone_index)
    nothing = np.zeros(0, np.int64)
    return Tree(tuple(bodies), np.array(first_link), drones, drones, 0 * drones, nothing)


def chain_link(
    name: str, parent: int, frame: Array, anchor: Array, cable: Cable, twists: bool
) -> TreeBody:
    """A link of a cable on its parent, at a joint with a frame and a place in it.

    `twists`: whether the joint turns about the cable, too.
    """
    turn = QUARTER_TURN if twists else np.eye(3)
    return TreeBody(
        name,
        parent,
        frame @ turn,
        anchor,
        turn,
        np.zeros(3),
        cable.link_mass_kg,
        np.array([cable.link_length_m / 2.0, 0.0, 0.0]),
        np.diag(cable.link_inertia_kg_m2),
        cable.joint_damping_n_m_s_rad,
        cable.joint.stiffness_n_m_rad,
        cable.joint.friction_n_m,
        "xyz" if twists else "yz",
        cable.free_twist_damping_n_m_s_rad,
    )


def _drone(name: str, parent: int, anchor: Array, drone: Drone, cable: Cable) -> TreeBody:
    return TreeBody(
        name,
        parent,
        np.eye(3),
        anchor,
        JOINT_IN_DRONE,
        np.array(drone.cable_attachment_m),
        drone.mass_kg,
        np.zeros(3),
        np.array(drone.inertia_kg_m2),
        cable.joint_damping_n_m_s_rad,
        cable.joint.stiffness_n_m_rad,
        cable.joint.friction_n_m,
    )


# ---------- Configuration: pose of the load and the angles of every joint


@dataclass(frozen=True)
class Configuration:
    """Pose of every body by generalised coordinates.

    Attributes:
        load_position_enu_m: (3,).
        load_rotation: Load frame to world, (3, 3).
        joint_angles_rad: Angles about the joint axes of each cable, from the load to the
            drone, (2 links + 2,), or one more where the cable is free to twist.
    """

    load_position_enu_m: Array
    load_rotation: Array
    joint_angles_rad: tuple[Array, ...]

    @property
    def coordinates(self) -> Array:
        """All coordinates in the order of the tree: rotation vector, position, joint angles."""
        rotation = rotation_vector(from_matrix(self.load_rotation))
        return np.concatenate([rotation, self.load_position_enu_m, *self.joint_angles_rad])

    def bodies(self, system: SlungLoadSystem) -> tuple[Array, Array]:
        """Place (1 + n, 3) and orientation [w, x, y, z] (1 + n, 4) of load and drones."""
        tree = build_tree(system)
        rotations, positions = tree.poses(self.coordinates)
        rows = [0, *tree.drone]
        return positions[rows], from_matrix(rotations[rows])


def level_rotation(z_axis: Array, yaw_rad: float) -> Array:
    """Rotation with a given z axis whose x axis, seen from above, points along a yaw, (3, 3)."""
    (zx, zy, zz) = z_axis
    c = math.cos(yaw_rad)
    s = math.sin(yaw_rad)
    across = math.sqrt(zz * zz + (zx * s - zy * c) ** 2)  # y = z x (c, s, 0), normalised
    yx = -zz * s / across
    yy = zz * c / across
    yz = (zx * s - zy * c) / across
    x = (yy * zz - yz * zy, yz * zx - yx * zz, yx * zy - yy * zx)
    return np.array([[x[0], yx, zx], [x[1], yy, zy], [x[2], yz, zz]], dtype=float)


def universal_chain(rotation: Array, directions: Array) -> tuple[list[float], Array]:
    """Angles of universal joints that point one body after the other in given directions.

    From the frame of the first joint in the world, (3, 3), and world directions of the bodies' x
    axes, (k, 3): angles (2 k) and the last body's frame, (3, 3).
    """
    angles: list[float] = []
    for direction in directions:
        x, y, z = direction @ rotation
        first = math.atan2(-z, x)
        second = math.asin(min(max(y, -1.0), 1.0))
        ca = math.cos(first)
        sa = math.sin(first)
        cb = math.cos(second)
        sb = math.sin(second)
        rotation = rotation @ [[ca * cb, -ca * sb, sa], [sb, cb, 0.0], [-sa * cb, sa * sb, ca]]
        angles += [first, second]
    return angles, rotation


def chain_from_directions(
    start_rotation: Array, directions: Array, drone_yaw_rad: float | None = None
) -> tuple[Array, Array]:
    """Joint angles of one cable from the world directions of its links and the drone's z axis.

    Args:
        start_rotation: Frame of the first joint in the world at zero angles, (3, 3).
        directions: Unit vectors of the links from the load upwards, then the drone's z, (n + 1, 3).
        drone_yaw_rad: Yaw of the drone on a cable that is free to twist; None for one that is
            not: the drone's yaw then follows from the chain.

    Returns:
        Angles (2 n + 2,), or one more with free twist, and the drone's rotation (3, 3).
    """
    if drone_yaw_rad is None:
        angles, rotation = universal_chain(start_rotation, directions)
        return np.array(angles), rotation @ JOINT_IN_DRONE.T
    # Back from the drone: a universal joint takes the y axis of the link before to (d x y) x d, see
    # `write_gaps`; so y lies in the plane of that and of d, and across the link before.
    y = -level_rotation(directions[-1], drone_yaw_rad)[:, 1]
    for link, before in pairwise(directions[::-1]):
        along = link @ before
        across = math.copysign(1.0, along) * (along * y - (y @ before) * link)
        if np.linalg.norm(across) < 1e-9:  # a right angle about y, which stays
            across = y - (y @ link) * link
        y = across / np.linalg.norm(across)
    x = directions[0]
    first = np.column_stack([x, y, np.cross(x, y)])
    angles, rotation = universal_chain(first, directions[1:])
    relative = QUARTER_TURN.T @ start_rotation.T @ first @ QUARTER_TURN
    return np.array([*intrinsic_xyz(relative), *angles]), rotation @ JOINT_IN_DRONE.T


def configuration_from_directions(
    system: SlungLoadSystem,
    load_position_enu_m: Array,
    load_rotation: Array,
    directions: Sequence[Array],
    drone_yaws_rad: Array,
) -> Configuration:
    """Configuration in which the links (and the drones' z axes) point in given directions.

    Directions are per cable (links + 1, 3) as for `chain_from_directions`; the load's rotation is
    to the world, (3, 3). Links of cables that may twist turn with the yaws of their drones,
    (n_drones,) [rad]; others have the twist of their chain.
    """
    angles = []
    for i, azimuth_rad in enumerate(cable_azimuths_rad(system)):
        chain = directions[i]
        start = load_rotation @ joint_in_load(azimuth_rad)
        yaw = drone_yaws_rad[i] if system.cables[i].twist == "free" else None
        angles.append(chain_from_directions(start, chain, yaw)[0])
    return Configuration(np.asarray(load_position_enu_m, float), load_rotation, tuple(angles))
