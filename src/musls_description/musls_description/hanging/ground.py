"""Places on the ground: load flat, drones standing around it, cables slack between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from musls_description.config.errors import ConfigError
from musls_description.hanging.tree import (
    GROUND_TIPS_M,
    SLACK_RATIO,
    Configuration,
    cable_azimuths_rad,
    configuration_from_directions,
    level_rotation,
    tips_apart_m,
)
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.rotations import matrix, yaw_of
from musls_description.system.drone import Box, tip_radius_m
from musls_description.system.obstacles import WorldSpec, ground_at
from musls_description.system.slung_system import RigSystem, SlungLoadSystem

LANDING_RATIO = 0.75
"""Distance of a cable's ends over its length where a drone lands beside a load that was flown.

The load may lie a little aside, turned or leaning, and no cable is to come taut by that.
"""

LEAST_RISE_M = 0.01
"""Height by which a drone may rise on a cable of one link, which is taut on the ground but pulls
nothing."""

BESIDE_LOAD_M = 0.1
"""Rotors keep so far from the load, at least, where a drone comes down nearer than it stood."""


def ground_spawn(
    system: SlungLoadSystem,
    load_position_enu_m: tuple[float, float] = (0.0, 0.0),
    load_yaw_rad: float = 0.0,
    ground_height_enu_m: float = 0.0,
) -> Configuration:
    """Put load and drones on the ground with each cable in a flat S between them.

    The S lies on its side, not upright, so nothing falls far when the run starts. It turns by less
    than 45 degrees from the straight line, far from the joints' singularity at 90 degrees.
    """
    c, s = np.cos(load_yaw_rad), np.sin(load_yaw_rad)
    rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    height = ground_height_enu_m - system.load.collision.bottom_m
    position = np.array([*load_position_enu_m, height])
    directions = []
    yaws = []
    for i, azimuth in enumerate(load_yaw_rad + cable_azimuths_rad(system)):
        links = _bow(system.cables[i].links, azimuth, _slope_on_ground(system, i))
        directions.append(np.vstack([links, [0.0, 0.0, 1.0]]))
        yaws.append(azimuth + np.pi)
    return configuration_from_directions(system, position, rotation, directions, np.array(yaws))


def ground_radius_m(system: SlungLoadSystem, index: int) -> float:
    """Horizontal distance between a cable's ends in `ground_spawn` [m]."""
    cable = system.cables[index]
    links = _bow(cable.links, 0.0, _slope_on_ground(system, index))
    return float(np.hypot(*(links[:, :2].sum(axis=0) * cable.link_length_m)))


def landing_places_m(system: SlungLoadSystem, standing_m: Array) -> Array:
    """Places to land with slack cables round a load that was flown, in its frame, (n, 3) [m].

    `standing_m`, (n, 3): where the drones stood before; they land in the same directions, nearer
    to the load where there is room for all rotors, and nowhere farther away.
    """
    load = system.load
    (ahead_m, aside_m) = standing_m[:, :2].T
    hooks = np.array(load.cable_attachments_m)[:, :2]
    out = np.column_stack([ahead_m, aside_m]) - hooks
    stood_m = np.linalg.norm(out, axis=1)
    out /= np.maximum(stood_m, 1e-9)[:, None]
    corners_m = np.array([corner[:2] for corner in load.collision.corners_m])
    edge_m = (np.einsum("ik,jk->ij", out, corners_m) - (out * hooks).sum(axis=1)[:, None]).max(1)
    rotors_m = np.array([tip_radius_m(drone) for drone in system.drones])
    slack_m = np.array([LANDING_RATIO * cable.length_m for cable in system.cables])
    near_m = np.minimum(np.maximum(slack_m, edge_m + rotors_m + BESIDE_LOAD_M), stood_m)
    least_m = min(GROUND_TIPS_M, tips_apart_m(system, standing_m))
    places = standing_m.copy()
    for share in np.linspace(0.0, 1.0, 11):
        far_m = near_m + share * (stood_m - near_m)
        places[:, :2] = hooks + far_m[:, None] * out
        if tips_apart_m(system, places) >= least_m - 1e-9:
            break
    return places


def highest_rise_m(system: SlungLoadSystem) -> Array:
    """Height above where it stands on the ground at which each drone's cable pulls, (n,) [m]."""
    highest = []
    for i, (drone, cable) in enumerate(zip(system.drones, system.cables, strict=True)):
        load_end_m = system.load.cable_attachments_m[i][2] - system.load.collision.bottom_m
        drone_end_m = drone.cable_attachment_m[2] - drone.collision.bottom_m
        reach_m = np.sqrt(max(cable.length_m**2 - ground_radius_m(system, i) ** 2, 0.0))
        highest.append(max(load_end_m + reach_m - drone_end_m, LEAST_RISE_M))
    return np.array(highest)


def _slope_on_ground(system: SlungLoadSystem, index: int) -> float:
    """Rise of a cable over its length where load and drones stand on the ground."""
    drone = system.drones[index]
    load = system.load
    cable = system.cables[index]
    end = drone.cable_attachment_m[2] - drone.collision.bottom_m
    start = load.cable_attachments_m[index][2] - load.collision.bottom_m
    if abs(end - start) >= cable.length_m:
        raise ConfigError(
            f"cable {index + 1} of {cable.length_m:g} m does not reach from the load to its drone "
            f"where both stand on the ground: its ends are {start:.3g} m and {end:.3g} m high; "
            "choose a longer cable, lower attachments or a start in the air"
        )
    return float((end - start) / cable.length_m)


def bow(links: int, chord_m: Array, length_m: float) -> Array:
    """Places of the nodes of a slack cable in a bow, from its first end, (links + 1, 3) [m].

    `chord_m` is the way to its other end, (3,), shorter than the cable.
    """
    slope = float(chord_m[2]) / length_m
    ratio = float(np.hypot(*chord_m[:2])) / (length_m * np.sqrt(1.0 - slope**2))
    azimuth = float(np.arctan2(chord_m[1], chord_m[0]))
    links_m = _bow(links, azimuth, slope, _bend_rad(links, ratio)) * length_m / links
    nodes = np.vstack([np.zeros(3), np.cumsum(links_m, axis=0)])
    nodes += np.linspace(0.0, 1.0, links + 1)[:, None] * (chord_m - nodes[-1])  # of one link
    return nodes


def _bow(links: int, azimuth_rad: float, slope: float, bend_rad: float | None = None) -> Array:
    """Unit directions of the links of a cable that lies in a bow along an azimuth, (links, 3).

    `slope` is the rise over the length of the cable, the same for every link.
    """
    flat = np.sqrt(1.0 - slope**2)
    bend_rad = _bend_rad(links) if bend_rad is None else bend_rad
    heading = azimuth_rad + bend_rad * _bow_shape(links)
    return np.column_stack([flat * np.cos(heading), flat * np.sin(heading), np.full(links, slope)])


@lru_cache
def _bend_rad(links: int, ratio: float = SLACK_RATIO) -> float:
    """Angle at which a bow's ends are a share of its length apart."""
    if links == 1:
        return 0.0
    shape = _bow_shape(links)
    largest = 2.0 if ratio == SLACK_RATIO else np.pi
    return float(
        scipy.optimize.brentq(
            lambda a: np.mean(np.cos(a * shape)) - ratio, 0.0, largest, xtol=1e-15
        )
    )


def _bow_shape(links: int) -> Array:
    """Heading of each link over the largest one, (links,).

    An S leaves load and drone straight along the azimuth: the drone, which a chain without twist
    turns with its last link, then faces the load. Fewer links only make a simple arc.
    """
    place = np.linspace(0.0, 1.0, links)
    shape: Array = np.sin(2.0 * np.pi * place) if links > 3 else place - 0.5
    return shape


# ---------- Ground that is not level at z = 0: slopes, ledges, roofs, pits

STANDS_M = 2e-3
"""A body stands where its box is no deeper in the ground, and its corners no higher."""

FOOT_POINTS = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 9)] * 2), axis=-1).reshape(-1, 2)
"""Points of a body's foot at which the ground is looked at, as shares of half its edges."""

SLACK_ON_SLOPES = 0.95
"""Distance of a cable's ends over its length, at most, where load and drone stand."""

NEARER = np.linspace(1.0, 0.8, 11)
"""Distances from the load at which drones stand, over that on flat ground: the first that fits."""


@dataclass(frozen=True, eq=False)
class Ground:
    """What load and drones start on, land on and are lowered to, at time 0.

    Attributes:
        solids: Those that are ground, records of `SOLID`.
        friction: Friction coefficient of load and drones.
    """

    solids: Records
    friction: float

    @classmethod
    def of(cls, world: WorldSpec, system: RigSystem) -> Ground | None:
        """Ground of a world; None where it is flat, at z = 0."""
        return None if world.is_flat else cls(world.grounds, system.ground_friction)

    def height_m(self, x: float, y: float) -> float:
        """Height at a place; raises ConfigError where there is no ground."""
        height, which = ground_at(self.solids, float(x), float(y))
        if which < 0:
            raise ConfigError(f"world: there is no ground at ({x:.2f}, {y:.2f}) m")
        return float(height)

    def twist(self, place: Array) -> Array:
        """Angular velocity and velocity of what moves with the ground at a place, world, (6,)."""
        solid = self.solids[ground_at(self.solids, float(place[0]), float(place[1]))[1]]
        lever: Array = place - solid["position"]
        velocity = solid["velocity"] + np.cross(solid["omega"], lever)
        return np.append(solid["omega"], velocity)

    def stand(self, box: Box, name: str, x: float, y: float, yaw_rad: float) -> tuple[Array, Array]:
        """Place (3,) and rotation (3, 3) of a body that stands with its box, origin over a place.

        Raises:
            ConfigError: It would stand across an edge, slide or tip over.
        """
        half = 0.5 * np.array(box.size_m[:2])
        foot = np.column_stack([FOOT_POINTS * half + box.center_m[:2], np.full(81, box.bottom_m)])
        corners = foot[[0, 8, 72, 80]]
        rotation = level_rotation(np.array([0.0, 0.0, 1.0]), yaw_rad)
        height = self.height_m(x, y)
        position = np.array([x, y, height - box.bottom_m])
        for _ in range(12):  # the plane through the ground below the corners
            points = position + corners @ rotation.T
            below = np.array([self.height_m(*point[:2]) for point in points])
            if (np.abs(below - points[:, 2]) < 1e-12).all():
                break
            sides = np.column_stack([np.ones(4), points[:, :2] - [x, y]])
            height, slope_x, slope_y = np.linalg.lstsq(sides, below, rcond=None)[0]
            steep = np.sqrt(1.0 + slope_x**2 + slope_y**2)
            rotation = level_rotation(np.array([-slope_x, -slope_y, 1.0]) / steep, yaw_rad)
            position = np.array([x, y, height - box.bottom_m * steep])
        points = position + foot @ rotation.T
        above = points[:, 2] - [self.height_m(*point[:2]) for point in points]
        where = f"{name} would stand at ({x:.2f}, {y:.2f}) m"
        if above.min() < -STANDS_M or above[[0, 8, 72, 80]].max() > STANDS_M:
            raise ConfigError(f"world: {where} across an edge of the ground; move what is there")
        up = rotation[:, 2]
        steepness = float(np.hypot(*up[:2]) / up[2])
        slope = f"on a slope of {np.degrees(np.arctan(steepness)):.1f} deg"
        if steepness > self.friction:
            raise ConfigError(
                f"world: {where} {slope} and slide: that takes a friction of {steepness:.2f}, "
                f"system.ground_friction is {self.friction:g}"
            )
        down = rotation.T @ np.array([0.0, 0.0, -1.0])
        under = box.bottom_m / down[2] * down[:2] - box.center_m[:2]
        if (np.abs(under) > half).any() and steepness > 0.0:
            raise ConfigError(f"world: {where} {slope} and tip over")
        return position, rotation


def uneven_spawn(system: SlungLoadSystem, ground: Ground) -> Configuration:
    """Put load and drones on the ground where `ground_spawn` has them, seen from above.

    Drones are nearer to the load where a cable would not be slack, or an edge is in the way. The S
    of each cable lies in the plane through both of its ends that is as level as the ground.
    """
    usual = ground_spawn(system)
    places, attitudes = usual.bodies(system)
    yaws = yaw_of(attitudes)
    x, y, _ = places[0]
    load = ground.stand(system.load.collision, "load", x, y, yaws[0])
    drones = [
        _place_beside(system, ground, i, load, places[1 + i], yaws[1 + i])
        for i in range(system.n_drones)
    ]
    level = all(rotation[2, 2] == 1.0 for _, rotation in (load, *drones))
    if level and np.array_equal([place for place, _ in (load, *drones)], places):
        return usual
    for _ in range(20):
        directions = [
            np.vstack([_uneven_bow(system, i, load, drone), drone[1][:, 2]])
            for i, drone in enumerate(drones)
        ]
        configuration = configuration_from_directions(system, *load, directions, yaws[1:])
        found, turned = configuration.bodies(system)
        if np.abs(found[1:] - [place for place, _ in drones]).max() < 1e-9:
            break
        # A cable that does not twist turns its drone; one of a single link has its drone elsewhere.
        yaws = yaw_of(turned)
        for i, cable in enumerate(system.cables):
            x, y, _ = found[1 + i] if cable.links == 1 else drones[i][0]
            box = system.drones[i].collision
            drones[i] = ground.stand(box, f"drone_{i + 1}", x, y, yaws[1 + i])
    return configuration


def _place_beside(
    system: SlungLoadSystem,
    ground: Ground,
    index: int,
    load: tuple[Array, Array],
    usual_enu_m: Array,
    yaw_rad: float,
) -> tuple[Array, Array]:
    """Place and rotation of a drone that stands beside the load with a slack cable."""
    cable = system.cables[index]
    hook = load[0] + load[1] @ np.array(system.load.cable_attachments_m[index])
    refusals = []
    for share in NEARER:
        x, y = hook[:2] + share * (usual_enu_m[:2] - hook[:2])
        try:
            box = system.drones[index].collision
            drone = ground.stand(box, f"drone_{index + 1}", x, y, yaw_rad)
        except ConfigError as error:
            refusals.append(error)
            continue
        apart_m = float(np.linalg.norm(_cable_way(system, index, load, drone)))
        if apart_m <= SLACK_ON_SLOPES * cable.length_m or cable.links == 1:
            return drone
        refusals.append(
            ConfigError(
                f"world: cable {index + 1} of {cable.length_m:g} m does not reach from the load to "
                f"its drone where both stand on the ground: its ends are {apart_m:.3g} m apart; "
                "choose a longer cable or a start in the air"
            )
        )
    raise refusals[0]


def _cable_way(
    system: SlungLoadSystem, index: int, load: tuple[Array, Array], drone: tuple[Array, Array]
) -> Array:
    """Way from a cable's end at the load to that at its drone, places and rotations, (3,)."""
    begin = load[0] + load[1] @ np.array(system.load.cable_attachments_m[index])
    end = drone[0] + drone[1] @ np.array(system.drones[index].cable_attachment_m)
    way: Array = end - begin
    return way


def _uneven_bow(
    system: SlungLoadSystem, index: int, load: tuple[Array, Array], drone: tuple[Array, Array]
) -> Array:
    """Directions of the links between load and drone, places and rotations, (links, 3)."""
    cable = system.cables[index]
    way = _cable_way(system, index, load, drone)
    return uneven_bow(cable.links, cable.length_m, way, load[1][:, 2] + drone[1][:, 2])


def uneven_bow(links: int, length_m: float, way_m: Array, up: Array) -> Array:
    """Unit directions of the links of a slack cable along a way, (3,), across `up`, (links, 3)."""
    apart_m = float(np.linalg.norm(way_m))
    along = way_m / apart_m
    side = np.cross(up, along)
    side /= np.linalg.norm(side)
    heading = np.zeros(links)
    if links > 1:
        shape = _bow_shape(links)
        share = apart_m / length_m
        bend = scipy.optimize.brentq(lambda a: np.mean(np.cos(a * shape)) - share, 0.0, 2.0)
        heading = bend * shape
    directions: Array = np.outer(np.cos(heading), along) + np.outer(np.sin(heading), side)
    return directions


def uneven_rise_m(system: SlungLoadSystem, on_ground: Configuration) -> Array:
    """As `highest_rise_m`, for drones that stand anywhere, (n,) [m]."""
    places, attitudes = on_ground.bodies(system)
    turns = matrix(attitudes)
    rises = []
    for i, cable in enumerate(system.cables):
        begin = places[0] + turns[0] @ np.array(system.load.cable_attachments_m[i])
        end = places[1 + i] + turns[1 + i] @ np.array(system.drones[i].cable_attachment_m)
        way = end - begin
        reach_m = np.sqrt(max(cable.length_m**2 - way[0] ** 2 - way[1] ** 2, 0.0))
        rises.append(max(reach_m - way[2], LEAST_RISE_M))
    return np.array(rises)
