"""A recording to look at, with what its bodies look like and where it is placed in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from musls_analysis.recordings.cleaning import ReadOptions
from musls_analysis.recordings.raw_bag import STORAGE_SUFFIXES
from musls_analysis.recordings.readers import read_recording
from musls_analysis.recordings.recording import (
    DEFAULT_GAP_LIMIT_S,
    LOAD,
    CableTrack,
    PoseTrack,
    Recording,
    parted_s,
    pieces_of,
    resample,
)
from musls_description.drone import Box, Drone
from musls_description.errors import ConfigError
from musls_description.library import load_system
from musls_description.rotations import rotate
from musls_description.system import CableEnd, Load, Pulley, RigSystem

# ---------- What the bodies of a system look like: points in their own frames (FLU, centre of mass

ROTOR_SHARE = 0.73
"""Radius of a rotor disc as a share of half the distance to the next hub, where the description
holds hubs only: 10 inch propellers on the x500's hubs, 348 mm apart."""
LONE_ROTOR_RADIUS_M = 0.127
DISC_POINTS = 20
_DISC = np.linspace(0.0, 2.0 * np.pi, DISC_POINTS, endpoint=False)

BOX_FACES = (
    (0, 2, 6, 4), (1, 5, 7, 3), (0, 4, 5, 1), (2, 3, 7, 6), (0, 1, 3, 2), (4, 6, 7, 5),
)  # fmt: skip
"""Corners of the faces -z, +z, -y, +y, -x, +x of a box, whose corners count x, y, z as bits
4, 2, 1."""
FACE_NORMALS = np.array(
    [[0, 0, -1], [0, 0, 1], [0, -1, 0], [0, 1, 0], [-1, 0, 0], [1, 0, 0]], float
)


@dataclass(frozen=True)
class LoadShape:
    """A box with the points where the cables pull.

    Attributes:
        corners_m: (8, 3).
        attachments_m: (n, 3).
    """

    corners_m: np.ndarray
    attachments_m: np.ndarray

    @classmethod
    def of(cls, load: Load) -> LoadShape:
        """Shape of a load."""
        places = np.array(load.cable_attachments_m, float).reshape(-1, 3)
        return cls(load.collision.corners_m, places)


ANCHOR = LoadShape(Box(size_m=(0.06, 0.06, 0.06)).corners_m, np.zeros((0, 3)))
"""An anchor, which has no size of its own."""


@dataclass(frozen=True)
class DroneShape:
    """A body plate, arms out to the hubs, rotor discs, a landing gear.

    Attributes:
        hubs_m: (rotors, 3).
        rotor_radius_m: Of each disc.
        discs_m: Rims of the rotor discs (rotors, DISC_POINTS, 3).
        front: Which rotors are at the front (x > 0) (rotors,).
        plate_m: Outline of the body between the arms (DISC_POINTS, 3).
        gear_m: Landing gear as segments (6, 2, 3).
        attachment_m: Where the cable pulls (3,).
        radius_m: Sphere about the origin that holds everything.
    """

    hubs_m: np.ndarray
    rotor_radius_m: float
    discs_m: np.ndarray
    front: np.ndarray
    plate_m: np.ndarray
    gear_m: np.ndarray
    attachment_m: np.ndarray
    radius_m: float

    @classmethod
    def of(cls, drone: Drone) -> DroneShape:
        """Shape of a drone: hubs and feet are the description's, the rest is drawn round them."""
        hubs = np.array([rotor.position_m for rotor in drone.rotors], float)
        radius = _rotor_radius_m(hubs)
        rim = np.stack([np.cos(_DISC), np.sin(_DISC), np.zeros(DISC_POINTS)], axis=-1)
        span = float(np.linalg.norm(hubs[:, :2], axis=1).max())
        plate = rim * [0.42 * span, 0.34 * span, 0.0] + [0.0, 0.0, 0.4 * hubs[:, 2].mean()]
        corners = drone.collision.corners_m
        reach = max(span + radius, float(np.linalg.norm(corners, axis=1).max()))
        return cls(
            hubs, radius, hubs[:, None] + radius * rim, hubs[:, 0] > 1e-6, plate, _gear(corners),
            np.array(drone.cable_attachment_m, float), reach,
        )  # fmt: skip


def _rotor_radius_m(hubs: np.ndarray) -> float:
    between = np.linalg.norm(hubs[:, None] - hubs[None], axis=-1)
    apart = between[between > 1e-6]  # coaxial rotors share a hub
    return ROTOR_SHARE * 0.5 * float(apart.min()) if apart.size else LONE_ROTOR_RADIUS_M


def _gear(corners: np.ndarray) -> np.ndarray:
    """Two skids along x at the foot of the collision box, four legs up to the body (6, 2, 3)."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    segments = []
    for side in (-0.8, 0.8):
        skid = np.array([[-0.85, side, -1.0], [0.85, side, -1.0]])
        segments.append(skid)
        for along in (-0.4, 0.4):
            segments.append(np.array([[along, side, -1.0], [0.6 * along, 0.35 * side, 1.0]]))
    return middle + half * np.array(segments)


def world(points_m: np.ndarray, position: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Points of a body (..., 3) in the world."""
    return position + rotate(np.broadcast_to(q, (*points_m.shape[:-1], 4)), points_m)


DEFAULT_SYSTEM = "x500_trio"
SCENARIO = "scenario.yaml"


@dataclass(frozen=True)
class Subject:
    """One recording as it is shown.

    Attributes:
        recording: The flight.
        system: Geometry of load, drones and cables; as many drones as were recorded.
        name: Short name for people.
        offsets_m: Recorded point of a body in its frame, from its centre of mass, by body.
        shift_s: Added to the recording's times to get the times shown.
    """

    recording: Recording
    system: RigSystem
    name: str
    offsets_m: Mapping[str, Sequence[float]] = field(default_factory=dict)
    shift_s: float = 0.0

    def __post_init__(self) -> None:
        """Check that the recording, the system and the offsets belong together."""
        drones = self.recording.drones
        if len(drones) != self.system.n_drones:
            raise ConfigError(
                f"{self.recording.source}: {len(drones)} drones recorded, but system "
                f"{self.system.name} has {self.system.n_drones}; choose one with --system"
            )
        for body in self.offsets_m:
            if body not in self.recording.bodies:
                has = ", ".join(self.recording.bodies)
                raise ConfigError(f"{self.recording.source}: no body '{body}' in it; it has {has}")

    @property
    def start_s(self) -> float:
        """Shown time of the first pose [s]."""
        return self.recording.start_s + self.shift_s

    @property
    def end_s(self) -> float:
        """Shown time of the last pose [s]."""
        return self.recording.end_s + self.shift_s

    def boxes(self) -> dict[str, LoadShape]:
        """Shapes of load, if there is one, and anchors, by name."""
        shapes = {f"anchor_{i + 1}": ANCHOR for i in range(len(self.system.anchors))}
        if self.system.load is not None:
            shapes[LOAD] = LoadShape.of(self.system.load)
        return shapes

    def drone_shapes(self) -> dict[str, DroneShape]:
        """Shape of each drone, by name."""
        shapes = map(DroneShape.of, self.system.drones)
        return dict(zip(self.recording.drones, shapes, strict=True))

    def named(self, tracks: Mapping[str, PoseTrack]) -> dict[str, PoseTrack]:
        """Tracks of bodies by the names that the system gives them."""
        drones = {drone: f"drone_{i}" for i, drone in enumerate(self.recording.drones, start=1)}
        return {drones.get(body, body): track for body, track in tracks.items()}

    def origin_enu_m(self, body: str, position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
        """Centre of mass of a body from where its recorded point is.

        Args:
            body: Name.
            position: Recorded point (T, 3).
            orientation: Quaternions wxyz (T, 4).
        """
        offset = np.asarray(self.offsets_m.get(body, (0.0, 0.0, 0.0)), float)
        if not offset.any():
            return position
        return position - rotate(orientation, np.broadcast_to(offset, position.shape))


def open_subject(
    path: Path,
    system: str | None = None,
    frames: Mapping[str, str] | None = None,
    offsets_m: Mapping[str, Sequence[float]] | None = None,
) -> Subject:
    """Read a recording; its geometry is that of the scenario saved beside it, if there is one.

    Args:
        path: Anything that `read_recording` accepts.
        system: Shipped system or YAML file that overrides the scenario's.
        frames: TF frames by body, for bags that hold only TF.
        offsets_m: Recorded point by body; "drones" stands for all drones.

    Raises:
        ConfigError: Not a recording, or it does not fit the system or the offsets.
    """
    recording = read_recording(path, ReadOptions(frames=dict(frames or {})))
    offsets = dict(offsets_m or {})
    if "drones" in offsets:
        common = offsets.pop("drones")
        offsets = dict.fromkeys(recording.drones, common) | offsets
    return Subject(recording, _system_of(path, system), _run_folder(path).stem, offsets)


def _system_of(path: Path, system: str | None) -> RigSystem:
    scenario = _run_folder(path) / SCENARIO
    if system or not scenario.is_file():
        return load_system(system or DEFAULT_SYSTEM)
    from musls_sim.scenario.scenario import load_scenario  # imports compiled code

    return load_scenario(scenario).system


def _run_folder(path: Path) -> Path:
    """The folder that `musls fly` wrote, of the folder itself, its bag or the bag's file."""
    folder = path.resolve()
    if folder.suffix in STORAGE_SUFFIXES:
        folder = folder.parent
    return folder.parent if folder.name == "bag" else folder


def bodies_of(subjects: Sequence[Subject]) -> list[str]:
    """Bodies that all subjects have, the load first."""
    shared = set.intersection(*(set(s.recording.bodies) for s in subjects))
    return [LOAD, *(d for d in subjects[0].recording.drones if d in shared)]


# ---------- Where everything of a subject is at given times.

SLACK_SHARE = 0.97
"""A straight cable whose ends are closer than this share of its length is surely slack."""


@dataclass(frozen=True)
class SampledCable:
    """One cable at each time.

    Attributes:
        points_enu_m: From the load to the drone, K arrays (points, 3); NaN where not known.
        tension_n: At the load (K,); NaN where not known.
        recorded: Whether the shape was recorded; otherwise it is the straight line.
        slack: Whether a straight line is known to be slack by its length (K,).
        may_part: Whether something has happened that leaves cables in pieces (K,).
    """

    points_enu_m: Sequence[np.ndarray]
    tension_n: np.ndarray
    recorded: bool
    slack: np.ndarray
    may_part: np.ndarray

    def pieces(self, k: int) -> list[np.ndarray]:
        """Lines of its pieces at a time, one if it is whole; arrays (points, 3)."""
        points = self.points_enu_m[k]
        return pieces_of(points) if self.recorded and self.may_part[k] else [points]


@dataclass(frozen=True)
class Sampled:
    """A subject at K times.

    Attributes:
        time_s: Times shown (K,).
        bodies: Poses of the centres of mass, K samples each; NaN where not known.
        setpoints: Held set-points, likewise.
        cables: By name.
    """

    time_s: np.ndarray
    bodies: Mapping[str, PoseTrack]
    setpoints: Mapping[str, PoseTrack]
    cables: Mapping[str, SampledCable]


def sample(subject: Subject, time_s: np.ndarray) -> Sampled:
    """Interpolate poses and cables, hold set-points; gaps longer than half a second stay gaps.

    Args:
        subject: What is shown.
        time_s: Times shown, ascending (K,).
    """
    clock_s = np.asarray(time_s, float) - subject.shift_s
    recording = subject.recording
    bodies = {b: _moved(subject, b, resample(t, clock_s, DEFAULT_GAP_LIMIT_S))
              for b, t in recording.bodies.items()}  # fmt: skip
    setpoints = {b: _moved(subject, b, t.held_at(clock_s)) for b, t in recording.setpoints.items()}
    return Sampled(np.asarray(time_s, float), bodies, setpoints, _cables(subject, bodies, clock_s))


def _moved(subject: Subject, body: str, track: PoseTrack) -> PoseTrack:
    """From the recorded point to the centre of mass."""
    position = subject.origin_enu_m(body, track.position_enu_m, track.orientation_wxyz)
    return replace(track, position_enu_m=position)


def _cables(
    subject: Subject, bodies: Mapping[str, PoseTrack], clock_s: np.ndarray
) -> dict[str, SampledCable]:
    system = subject.system
    tracks = subject.named(bodies)
    may_part = clock_s >= parted_s(subject.recording.events)
    cables = {}
    for i in range(system.n_cables):
        name, ends = f"cable_{i + 1}", system.ends(i)
        if any(end.body not in tracks for end in ends):
            continue
        low, high = (_point(tracks[end.body], end.point_m) for end in ends)
        straight = np.stack([low, high], axis=1)  # (K, 2, 3)
        track = subject.recording.cables.get(name)
        nothing = np.full(len(clock_s), np.nan)
        tension = _tension(track, clock_s) if track and len(track.time_s) else nothing
        if track and len(track.shape_time_s):
            shapes = [_shape_at(track, t) for t in clock_s]
            points = [p if p is not None else s for p, s in zip(shapes, straight, strict=True)]
            slack = np.zeros(len(clock_s), bool)
            cables[name] = SampledCable(points, tension, True, slack, may_part)
        else:
            length = np.linalg.norm(high - low, axis=1)
            slack = length < SLACK_SHARE * system.cables[i].length_m
            cables[name] = SampledCable(list(straight), tension, False, slack, may_part)
    return cables


def _point(track: PoseTrack, in_body: Sequence[float]) -> np.ndarray:
    """World positions of a body's point (K, 3)."""
    at = np.broadcast_to(np.asarray(in_body, float), track.position_enu_m.shape)
    return track.position_enu_m + rotate(track.orientation_wxyz, at)


def _tension(track: CableTrack, clock_s: np.ndarray) -> np.ndarray:
    """Tension at the load, linear between samples, NaN outside."""
    return np.interp(clock_s, track.time_s, track.tension_n[:, 0], left=np.nan, right=np.nan)


def _shape_at(track: CableTrack, clock_s: float) -> np.ndarray | None:
    """Shape between two recorded ones; None outside them and in gaps."""
    times = track.shape_time_s
    above = int(np.searchsorted(times, clock_s, side="left"))
    if above == len(times) or (above == 0 and times[0] > clock_s):
        near = min(max(above, 0), len(times) - 1)
        close = abs(times[near] - clock_s) <= DEFAULT_GAP_LIMIT_S
        return track.shape_enu_m[near] if close else None
    if times[above] == clock_s:
        return track.shape_enu_m[above]
    a, b = track.shape_enu_m[above - 1], track.shape_enu_m[above]
    span = times[above] - times[above - 1]
    if span > DEFAULT_GAP_LIMIT_S or len(a) != len(b):
        return None
    return a + (clock_s - times[above - 1]) / span * (b - a)


# ---------- Pulleys as discs on their bodies, in the plane of the two cables that lie on

RIM_POINTS = 24
_RIM = np.linspace(0.0, 2.0 * np.pi, RIM_POINTS, endpoint=False)
RIM, DISC = np.array([0.2, 0.23, 0.28]), np.array([0.82, 0.84, 0.87])
"""Colours."""


def pulley_rims(subject: Subject) -> dict[str, np.ndarray]:
    """Rims of the pulleys in the frames of the bodies that carry them.

    A pulley with an axis turns about it; the plane of another one is that of its centre and the far
    ends of its two cables at the start.

    Returns:
        By the recording's name of the body, (pulleys on it, RIM_POINTS, 3).
    """
    system = subject.system
    tracks = subject.named(subject.recording.bodies)
    rims: dict[str, list[np.ndarray]] = {}
    for pulley in system.pulleys:
        if pulley.body not in tracks:
            continue
        ends = [system.ends(side.cable - 1)[2 - side.end] for side in pulley.cables]
        if any(end.body not in tracks for end in ends):
            continue
        rims.setdefault(pulley.body, []).append(_rim(pulley, ends, tracks))
    recorded = dict(zip(tracks, subject.recording.bodies, strict=True))
    return {recorded[body]: np.array(its) for body, its in rims.items()}


def _rim(pulley: Pulley, far: list[CableEnd], tracks: dict[str, PoseTrack]) -> np.ndarray:
    centre = np.array(pulley.position_m, float)
    if pulley.axis is not None:
        normal = np.array(pulley.axis, float)
    else:
        carrier = tracks[pulley.body]
        back = carrier.orientation_wxyz[0] * [1.0, -1.0, -1.0, -1.0]
        a, b = (
            rotate(back, _place(tracks[end.body], end) - carrier.position_enu_m[0]) - centre
            for end in far
        )
        normal = np.cross(a, b)
        if np.linalg.norm(normal) < 1e-6 * np.linalg.norm(a) * np.linalg.norm(b):  # one above other
            normal = np.cross(
                a, [0.0, 0.0, 1.0] if abs(a[2]) < 0.9 * np.linalg.norm(a) else [1, 0, 0]
            )
    normal = normal / np.linalg.norm(normal)
    beside = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    beside /= np.linalg.norm(beside)
    above = np.cross(normal, beside)
    around: np.ndarray = np.cos(_RIM)[:, None] * beside + np.sin(_RIM)[:, None] * above
    return centre + pulley.radius_m * around


def _place(track: PoseTrack, end: CableEnd) -> np.ndarray:
    place: np.ndarray = track.position_enu_m[0] + rotate(
        track.orientation_wxyz[0], np.array(end.point_m, float)
    )
    return place


# ---------- What a picture has to show: the points of bodies, set-points and cables that its frame

_OTHER = np.zeros((1, 3))
"""A body without a shape is a point."""


def outline_m(
    name: str, boxes: Mapping[str, LoadShape], drones: Mapping[str, DroneShape]
) -> np.ndarray:
    """Points of a body that enclose what is drawn of it, in its frame (points, 3)."""
    if name in boxes:
        return boxes[name].corners_m
    if name in drones:
        shape = drones[name]
        return np.concatenate([shape.discs_m[:, ::4].reshape(-1, 3), shape.gear_m.reshape(-1, 3)])
    return _OTHER


def framed_points_enu_m(
    sampled: Sampled,
    boxes: Mapping[str, LoadShape],
    drones: Mapping[str, DroneShape],
    follow: bool = False,
) -> np.ndarray:
    """World points (n, 3) that a picture of all sampled times has to show.

    Trails and shadows are not among them: they would make the system small.

    Args:
        sampled: Where everything is at the times of the picture or film.
        boxes: Shapes of load and anchors.
        drones: Shapes of the drones.
        follow: Places are relative to the load's place above the ground.
    """
    middle = sampled.bodies[LOAD].position_enu_m * [1.0, 1.0, 0.0]
    middle *= 1.0 if follow else 0.0
    points = []
    for tracks in (sampled.bodies, sampled.setpoints):
        for name, track in tracks.items():
            points.append(_placed(track, outline_m(name, boxes, drones), middle))
    for cable in sampled.cables.values():
        for k, line in enumerate(cable.points_enu_m):
            points.append(line - middle[k])
    everything = np.concatenate(points)
    return everything[np.isfinite(everything).all(axis=1)]


def _placed(track: PoseTrack, outline: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Outline (points, 3) of a body at all times, in the world (times * points, 3)."""
    shape = (len(track.position_enu_m), len(outline))
    turned = rotate(
        np.broadcast_to(track.orientation_wxyz[:, None], (*shape, 4)),
        np.broadcast_to(outline, (*shape, 3)),
    )
    placed: np.ndarray = (track.position_enu_m - middle)[:, None] + turned
    return placed.reshape(-1, 3)
