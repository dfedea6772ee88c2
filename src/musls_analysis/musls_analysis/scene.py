"""Shapes of the bodies of a recording, and where everything is at given times.

Pictures, films and rerun's viewer draw this description of a scene.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from musls_analysis.comparison.cycles import WHOLE_FLIGHT, cut, stage_windows
from musls_analysis.recordings.recording import (
    DEFAULT_GAP_LIMIT_S,
    LOAD,
    CableTrack,
    PoseTrack,
    RecordedStage,
    Recording,
    main_stages,
    parted_s,
    pieces_of,
    resample,
)
from musls_description.config.errors import ConfigError
from musls_description.numerics.rotations import rotate
from musls_description.system.drone import BOX_FACES, Box, Drone
from musls_description.system.slung_system import CableEnd, Pulley, RigSystem

ROTOR_SHARE = 0.73
"""Radius of a rotor disc as a share of half the distance to the next hub, where the description
holds hubs only: 10 inch propellers on the x500's hubs, 348 mm apart."""
LONE_ROTOR_RADIUS_M = 0.127
SLACK_SHARE = 0.97
"""A straight cable whose ends are closer than this share of its length is surely slack."""


# ---------- Shapes, in the frames of their bodies (FLU, centre of mass)


def _circle(points: int) -> np.ndarray:
    """Unit circle in the plane x, y (points, 3)."""
    angle = np.linspace(0.0, 2.0 * np.pi, points, endpoint=False)
    return np.stack([np.cos(angle), np.sin(angle), np.zeros(points)], axis=-1)


_DISC = _circle(20)
_RIM = _circle(24)


@dataclass(frozen=True)
class BoxOutline:
    """A load or an anchor: eight corners (8, 3)."""

    corners_m: np.ndarray

    @property
    def outline_m(self) -> np.ndarray:
        """Points that enclose it (points, 3)."""
        return self.corners_m

    shadow_m = outline_m

    @property
    def wire_m(self) -> list[np.ndarray]:
        """Lines (points, 3) that show where it should be."""
        rings = [self.corners_m[[*face, face[0]]] for face in BOX_FACES[:2]]
        return rings + [self.corners_m[[i, i | 1]] for i in (0, 2, 4, 6)]

    line_m = wire_m


@dataclass(frozen=True)
class DroneShape:
    """A body plate, arms out to the hubs, rotor discs, a landing gear.

    Attributes:
        hubs_m: (rotors, 3).
        discs_m: Rims of the rotor discs (rotors, points, 3).
        front: Mask of the rotors at the front (x > 0) (rotors,).
        plate_m: Outline of the body between the arms (points, 3).
        gear_m: Landing gear as segments (6, 2, 3).
    """

    hubs_m: np.ndarray
    rotor_radius_m: float
    discs_m: np.ndarray
    front: np.ndarray
    plate_m: np.ndarray
    gear_m: np.ndarray

    @classmethod
    def of(cls, drone: Drone) -> DroneShape:
        """Shape of a drone: hubs and feet are the description's, the rest is drawn round them."""
        hubs = np.array([rotor.position_m for rotor in drone.rotors], float)
        between = np.linalg.norm(hubs[:, None] - hubs[None], axis=-1)
        apart = between[between > 1e-6]  # coaxial rotors share a hub
        radius = ROTOR_SHARE * 0.5 * float(apart.min()) if apart.size else LONE_ROTOR_RADIUS_M
        span = float(np.linalg.norm(hubs[:, :2], axis=1).max())
        plate = _DISC * [0.42 * span, 0.34 * span, 0.0] + [0.0, 0.0, 0.4 * hubs[:, 2].mean()]
        gear = _gear(drone.collision.corners_m)
        return cls(hubs, radius, hubs[:, None] + radius * _DISC, hubs[:, 0] > 1e-6, plate, gear)

    @property
    def outline_m(self) -> np.ndarray:
        """Points that enclose it (points, 3)."""
        return np.concatenate([self.discs_m[:, ::4].reshape(-1, 3), self.gear_m.reshape(-1, 3)])

    @property
    def shadow_m(self) -> np.ndarray:
        """Points that throw its shadow (points, 3)."""
        return self.discs_m.reshape(-1, 3)

    @property
    def arms_m(self) -> np.ndarray:
        """Lines from the centre to the hubs, (rotors, 2, 3)."""
        return np.stack([np.zeros_like(self.hubs_m), self.hubs_m], axis=1)

    @property
    def wire_m(self) -> list[np.ndarray]:
        """Lines (points, 3) that show where it should be."""
        return [*np.concatenate([self.discs_m, self.discs_m[:, :1]], axis=1), *self.arms_m]

    @property
    def line_m(self) -> list[np.ndarray]:
        """Lines (points, 3) that it is drawn with where there are no faces."""
        return [*self.wire_m, *self.gear_m]


Shape = BoxOutline | DroneShape
ANCHOR_SHAPE = BoxOutline(Box(size_m=(0.06, 0.06, 0.06)).corners_m)
"""An anchor, which has no size of its own."""


def _gear(corners: np.ndarray) -> np.ndarray:
    """Two skids along x at the foot of the collision box, four legs up to the body (6, 2, 3)."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    middle = 0.5 * (low + high)
    half = 0.5 * (high - low)
    segments = []
    for side in (-0.8, 0.8):
        segments.append([[-0.85, side, -1.0], [0.85, side, -1.0]])
        for along in (-0.4, 0.4):
            segments.append([[along, side, -1.0], [0.6 * along, 0.35 * side, 1.0]])
    return middle + half * np.array(segments)


# ---------- What is shown


@dataclass(frozen=True)
class Subject:
    """One recording as it is shown.

    Attributes:
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

    @property
    def has_tension(self) -> bool:
        """Whether cable tensions were recorded."""
        return any(len(cable.time_s) for cable in self.recording.cables.values())

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """Shapes of load, if there is one, anchors and drones, by name."""
        shapes: dict[str, Shape] = {
            f"anchor_{i + 1}": ANCHOR_SHAPE for i in range(len(self.system.anchors))
        }
        if self.system.load is not None:
            shapes[LOAD] = BoxOutline(self.system.load.collision.corners_m)
        return shapes | dict(
            zip(self.recording.drones, map(DroneShape.of, self.system.drones), strict=True)
        )

    @cached_property
    def pulley_rims(self) -> dict[str, np.ndarray]:
        """Rims of the pulleys, (pulleys on it, points, 3) in the frame of each body.

        A pulley is a disc in the plane of its two cables: one with an axis turns about it; the
        plane of another one is that of its centre and the far ends of its cables at the start.
        """
        tracks = self.named(self.recording.bodies)
        rims: dict[str, list[np.ndarray]] = {}
        for pulley in self.system.pulleys:
            ends = [self.system.ends(side.cable - 1)[2 - side.end] for side in pulley.cables]
            if all(body in tracks for body in (pulley.body, *(end.body for end in ends))):
                rims.setdefault(pulley.body, []).append(_rim(pulley, ends, tracks))
        names = dict(zip(tracks, self.recording.bodies, strict=True))
        return {names[body]: np.array(its) for body, its in rims.items()}

    def named(self, tracks: Mapping[str, PoseTrack]) -> dict[str, PoseTrack]:
        """Tracks of bodies by the names that the system gives them."""
        drones = {drone: f"drone_{i}" for i, drone in enumerate(self.recording.drones, start=1)}
        return {drones.get(body, body): track for body, track in tracks.items()}

    def centre_enu_m(self, body: str, track: PoseTrack) -> np.ndarray:
        """Positions of a body's centre of mass, given those of its recorded point (T, 3)."""
        offset = np.asarray(self.offsets_m.get(body, (0.0, 0.0, 0.0)), float)
        if not offset.any():
            return track.position_enu_m
        q = track.or_level().orientation_wxyz
        lever_m = rotate(q, np.broadcast_to(offset, track.position_enu_m.shape))
        return track.position_enu_m - lever_m

    def centre_at(self, body: str, time_s: np.ndarray) -> np.ndarray:
        """Interpolated positions of a body's centre of mass at shown times (T, 3)."""
        track = self.recording.bodies[body]
        return self.centre_enu_m(body, resample(track, time_s - self.shift_s, DEFAULT_GAP_LIMIT_S))


# ---------- Where everything is


@dataclass(frozen=True)
class SampledCable:
    """One cable at each time.

    Attributes:
        points_enu_m: Points from the load to the drone, K arrays (points, 3); NaN where not known.
        tension_n: Tension at the load (K,); NaN where not known.
        slack: Whether a straight line is known to be slack by its length (K,).
        may_part: Whether something has happened that leaves recorded shapes in pieces (K,).
    """

    points_enu_m: Sequence[np.ndarray]
    tension_n: np.ndarray
    slack: np.ndarray
    may_part: np.ndarray

    def pieces(self, k: int) -> list[np.ndarray]:
        """Lines of its pieces at a time, one if it is whole; arrays (points, 3)."""
        points = self.points_enu_m[k]
        return pieces_of(points) if self.may_part[k] else [points]


@dataclass(frozen=True)
class SceneSamples:
    """A subject at K times: poses of the centres of mass, held set-points; NaN where not known."""

    bodies: Mapping[str, PoseTrack]
    setpoints: Mapping[str, PoseTrack]
    cables: Mapping[str, SampledCable]


Placed = Callable[[np.ndarray], np.ndarray]
"""Takes points of a body (..., 3) to the world."""


def world(points_m: np.ndarray, position: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Points of a body (..., 3) in the world."""
    return position + rotate(np.broadcast_to(q, (*points_m.shape[:-1], 4)), points_m)


def poses(tracks: Mapping[str, PoseTrack]) -> Iterator[tuple[str, Placed]]:
    """Poses of the bodies that are known at the first time."""
    for body, track in tracks.items():
        position = track.position_enu_m[0]
        q = track.orientation_wxyz[0]
        if np.isfinite(position).all():
            yield body, partial(world, position=position, q=q)


def sample(subject: Subject, time_s: np.ndarray) -> SceneSamples:
    """Poses and cables between samples at ascending times (K,), held set-points; gaps stay."""
    clock_s = np.asarray(time_s, float) - subject.shift_s
    recording = subject.recording

    def centred(body: str, track: PoseTrack) -> PoseTrack:
        return replace(track, position_enu_m=subject.centre_enu_m(body, track))

    bodies = {
        body: centred(body, resample(track.or_level(), clock_s, DEFAULT_GAP_LIMIT_S))
        for body, track in recording.bodies.items()
    }
    setpoints = {
        b: centred(b, t.or_level().held_at(clock_s)) for b, t in recording.setpoints.items()
    }
    return SceneSamples(bodies, setpoints, _cables(subject, bodies, clock_s))


def _cables(
    subject: Subject, bodies: Mapping[str, PoseTrack], clock_s: np.ndarray
) -> dict[str, SampledCable]:
    system = subject.system
    tracks = subject.named(bodies)
    may_part = clock_s >= parted_s(subject.recording.events)
    cables = {}
    for i in range(system.n_cables):
        name = f"cable_{i + 1}"
        ends = system.ends(i)
        if any(end.body not in tracks for end in ends):
            continue
        straight = np.stack([_end_enu_m(tracks[end.body], end) for end in ends], axis=1)
        points = list(straight)
        tension = np.full(len(clock_s), np.nan)
        track = subject.recording.cables.get(name)
        if track and len(track.time_s):
            tension = np.interp(
                clock_s, track.time_s, track.tension_n[:, 0], left=np.nan, right=np.nan
            )
        length = np.linalg.norm(straight[:, 1] - straight[:, 0], axis=1)
        slack = length < SLACK_SHARE * system.cables[i].length_m
        if track and len(track.shape_time_s):
            shapes = [_shape_at(track, t) for t in clock_s]
            points = [p if p is not None else s for p, s in zip(shapes, straight, strict=True)]
            slack[:] = False
        cables[name] = SampledCable(points, tension, slack, may_part)
    return cables


def _end_enu_m(track: PoseTrack, end: CableEnd) -> np.ndarray:
    """World positions of a cable's end on a body (K, 3)."""
    point = np.broadcast_to(np.asarray(end.point_m, float), track.position_enu_m.shape)
    return track.position_enu_m + rotate(track.orientation_wxyz, point)


def _shape_at(track: CableTrack, clock_s: float) -> np.ndarray | None:
    """Shape between two recorded ones; None in gaps and farther outside than a gap."""
    times = track.shape_time_s
    above = int(np.searchsorted(times, clock_s, side="left"))
    k, m = max(above - 1, 0), min(above, len(times) - 1)
    a, b = track.shape_enu_m[k], track.shape_enu_m[m]
    if times[m] == clock_s:
        return b
    if k == m:  # before the first or after the last
        return a if abs(times[k] - clock_s) <= DEFAULT_GAP_LIMIT_S else None
    span = times[m] - times[k]
    if span > DEFAULT_GAP_LIMIT_S or len(a) != len(b):
        return None
    return a + (clock_s - times[k]) / span * (b - a)


def framed_points_enu_m(
    subject: Subject, sampled: SceneSamples, follow: bool = False
) -> np.ndarray:
    """World points (n, 3) that a picture of all sampled times has to show, without trails.

    With `follow` places are relative to the load's place above the ground.
    """
    shapes = subject.shapes
    middle = sampled.bodies[LOAD].position_enu_m * [1.0, 1.0, 0.0] * float(follow)
    points = []
    for tracks in (sampled.bodies, sampled.setpoints):
        for name, track in tracks.items():
            outline = shapes[name].outline_m if name in shapes else np.zeros((1, 3))
            q = np.broadcast_to(track.orientation_wxyz[:, None], (len(middle), len(outline), 4))
            rotated_outline = rotate(q, np.broadcast_to(outline, (*q.shape[:2], 3)))
            points.append(
                ((track.position_enu_m - middle)[:, None] + rotated_outline).reshape(-1, 3)
            )
    for cable in sampled.cables.values():
        points += [line - middle[k] for k, line in enumerate(cable.points_enu_m)]
    everything = np.concatenate(points)
    return everything[np.isfinite(everything).all(axis=1)]


def _rim(pulley: Pulley, far: Sequence[CableEnd], tracks: Mapping[str, PoseTrack]) -> np.ndarray:
    centre = np.array(pulley.position_m, float)
    if pulley.axis is not None:
        normal = np.array(pulley.axis, float)
    else:
        carrier = tracks[pulley.body]
        back = carrier.orientation_wxyz[0] * [1.0, -1.0, -1.0, -1.0]
        at = [_end_enu_m(tracks[end.body], end)[0] - carrier.position_enu_m[0] for end in far]
        a, b = (rotate(back, place) - centre for place in at)
        normal = np.cross(a, b)
        if np.linalg.norm(normal) < 1e-6 * np.linalg.norm(a) * np.linalg.norm(b):  # one above other
            upright = abs(a[2]) >= 0.9 * np.linalg.norm(a)
            normal = np.cross(a, [1.0, 0.0, 0.0] if upright else [0.0, 0.0, 1.0])
    normal = normal / np.linalg.norm(normal)
    beside = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    beside /= np.linalg.norm(beside)
    return centre + pulley.radius_m * (
        _RIM[:, :1] * beside + _RIM[:, 1:2] * np.cross(normal, beside)
    )


# ---------- Two recordings: the second is laid over the first in time
#
# As `compare` does, the load's set-points tell where a stage's cycle starts (angle of a circle,
# middle of an oscillation, step of an engagement), so that a stage is laid on the same stage with
# the same phase, whatever the two clocks say.


def aligning_shift_s(
    first: Recording, other: Recording, stage: str | None = None, skip: int = 0
) -> tuple[float, list[str]]:
    """Time [s] to add to the other's clock, so that a stage's cycles start together; doubts.

    The default stage is the main one that both have. The first `skip` cycles are left out.
    """
    name = stage or _common_stage(first, other)
    try:
        cuts = [cut(first, name), cut(other, name, skip)]
    except ConfigError as error:
        raise ConfigError(f"{error}; give --shift") from None
    start_s, other_s = (part.cycles[0].start_s for part in cuts)
    return start_s - other_s, [line for part in cuts for line in part.warnings]


def _names_stages(recording: Recording) -> bool:
    return [s.name for s in recording.stages] not in ([], [WHOLE_FLIGHT])


def _common_stage(first: Recording, other: Recording) -> str:
    ours, theirs = (
        [s.name for s in main_stages(r.stages)] if _names_stages(r) else [] for r in (first, other)
    )
    common = [name for name in ours if name in theirs] if ours and theirs else ours or theirs
    if not common:
        why = "have no stage in common" if ours or theirs else "name no stages"
        raise ConfigError(f"{first.source} and {other.source} {why}: give --stage or --shift")
    if not (ours and theirs) and len(set(common)) > 1:
        raise ConfigError(
            f"{(other if ours else first).source} names no stages: say with --stage which it is, "
            f"of {', '.join(common)}"
        )
    return common[0]


def shown_window(subjects: Sequence[Subject], stage: str | None) -> tuple[float, float]:
    """First and last moment to show [s]: the stage, where both recordings are."""
    main = subjects[0]
    start_s = main.start_s
    end_s = main.end_s
    if stage:
        windows = stage_windows(main.recording, stage)
        start_s = max(start_s, windows[0].start_s)
        end_s = min(end_s, windows[-1].end_s)
    for other in subjects[1:]:
        start_s = max(start_s, other.start_s)
        end_s = min(end_s, other.end_s)
        if end_s <= start_s:
            raise ConfigError(
                f"{other.recording.source}, shifted by {other.shift_s:.3f} s, lies from "
                f"{other.start_s:.2f} to {other.end_s:.2f} s and does not overlap what is shown of "
                f"{main.recording.source}"
            )
    return start_s, end_s


def stage_at(recording: Recording, time_s: float) -> RecordedStage | None:
    """The stage that a time falls into, the later of two that meet; None outside all of them."""
    inside = [stage for stage in recording.stages if stage.start_s <= time_s <= stage.end_s]
    return inside[-1] if inside else None


def staged_subject(subjects: Sequence[Subject]) -> Subject | None:
    """The first subject that names its stages."""
    return next((subject for subject in subjects if _names_stages(subject.recording)), None)
