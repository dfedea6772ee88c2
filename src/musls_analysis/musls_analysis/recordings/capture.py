"""Conversion of a file's poses, in its own units, axes and names, to a `Recording`.

A reader of a format gives a `Capture`; units, axes, names, origins, clocks, damaged samples and
what is unlikely are dealt with here, for all formats alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musls_analysis.recordings.doubts import middle_of, question_units
from musls_analysis.recordings.options import FACTORS, ReadOptions
from musls_analysis.recordings.recording import LOAD, PoseTrack, RecordedStage, Recording, in_order
from musls_control.px4.frames import orientation_enu_ned, world_enu_ned
from musls_description.config.errors import ConfigError
from musls_description.config.text_tables import TextRow, read_lines, rows_of
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import (
    from_matrix,
    from_roll_pitch_yaw,
    from_rotation_vector,
    from_yaw,
    product,
    relative,
    rotate,
    rotation_vector,
    yaw_of,
)

# ---------- What a reader gives


class RawTrack(NamedTuple):
    """Poses of one body as a file has them.

    Attributes:
        time: (T,).
        position: (T, 3).
        rotation: Quaternions [w, x, y, z] (T, 4) or three angles (T, 3), see `Capture.angles`.
    """

    time: Array
    position: Array
    rotation: Array

    @classmethod
    def of_place(cls, time: Array, position: Array) -> RawTrack:
        """A body of which only the place was measured: its attitude is unknown, NaN."""
        return cls(time, position, np.full((len(time), 4), np.nan))


LARGEST_SHEAR = 0.02
"""Difference of the products of a rotation matrix's columns from those of unit vectors."""


def quaternions_of(matrices: Array) -> Array:
    """Quaternions (T, 4) of rotation matrices (T, 9), row by row; NaN where one is none."""
    finite = np.isfinite(matrices).all(axis=1, keepdims=True)
    m = np.where(finite, matrices, 0.0).reshape(-1, 3, 3)
    off = np.abs(m @ m.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
    turns = (off < LARGEST_SHEAR) & (np.linalg.det(m) > 0.0)
    return np.where(turns[:, None], from_matrix(m), np.nan)


@dataclass(frozen=True)
class Capture:
    """Poses of named bodies as a file has them.

    Attributes:
        tracks: Measured poses by the name in the file.
        setpoints: Set-points by the same names.
        units: Units of "length", "angle" and "time", where they are not SI.
        stated: Quantities whose unit the file itself says, and "axes"; these are not questioned.
        axes: "z-up", "y-up" or "ned".
        angles: Convention of three angles, see `ReadOptions.angles`; None to find out.
        stages: Stages in the file's time.
        format: Name of the format, for people.
        parents: Frame in which a body's poses are, by its name; one that stands in another body is
            a part of it.
        roots: Frame of the world in which a body's poses are, by its name; empty if none is known.
        notes: Samples dropped or repaired so far, one line each.
        by_row: Whether all bodies were logged row by row, set-points with them.
        alone: Whether a file of this format holds one body, so that others may lack.
    """

    tracks: Mapping[str, RawTrack]
    setpoints: Mapping[str, RawTrack] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    stated: frozenset[str] = frozenset()
    axes: str = "z-up"
    angles: str | None = "roll-pitch-yaw"
    stages: tuple[RecordedStage, ...] = ()
    format: str = ""
    parents: Mapping[str, str] = field(default_factory=dict)
    roots: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    by_row: bool = False
    alone: bool = False


def joined(captures: Sequence[Capture]) -> Capture:
    """One capture of several files, each with bodies of its own."""
    first = captures[0]
    names = [name for capture in captures for name in capture.tracks]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"two of its files are of {twice[0]}")
    if len({(c.axes, c.angles, *sorted(c.units.items())) for c in captures}) > 1:
        raise ConfigError("its files have different units or axes")
    return replace(
        first,
        tracks={name: track for capture in captures for name, track in capture.tracks.items()},
        notes=[note for capture in captures for note in capture.notes],
    )


# ---------- Names of the bodies

_ENDING = (
    r"(?:[_/](?:base_link|base|link|body|marker|pose|odom|odometry|transform|gt|mocap|measured|"
    r"fmu|in|out|vehicle_odometry|vehicle_visual_odometry|vehicle_local_position|mavros|"
    r"local_position|global_position/local|ground_truth|odom_[a-z0-9]+|main|"
    r"estimation_manager|point|position))*"
)
_DESIRED = (
    r"[_/](?:des|desired|sp|setpoint|ref|reference|target|setpoint_position/local|"
    r"setpoint_position)"
)
_LOAD = re.compile(rf"(?:slung_?)?(?:load|payload)_?1?{_ENDING}(?P<desired>{_DESIRED})?")
_DRONE = re.compile(
    r"(?:drone|px4|uav|quad|quadrotor|quadcopter|copter|vehicle|mav|x500|cf|agent|d)[_/]?"
    rf"(?P<number>[0-9]{{1,9}}){_ENDING}(?P<desired>{_DESIRED})?"
)
_BODY = re.compile(r"load|drone_[1-9][0-9]{0,8}")


def body_of(name: str) -> tuple[str, int | None, bool] | None:
    """Meaning of a column's name: "load" or "drone", the drone's number, whether a set-point."""
    parts = name.strip("/").lower().split("/")
    for k in range(len(parts) if name.startswith("/") else 1):
        text = "/".join(parts[k:])
        if match := _LOAD.fullmatch(text):
            return "load", None, bool(match["desired"])
        if match := _DRONE.fullmatch(text):
            return "drone", int(match["number"]), bool(match["desired"])
    return None


def name_in(stem: str) -> str:
    """Body that is named by a file of one body, such as `23_load`; else the whole name."""
    words = re.split(r"[-_. ]+", stem)
    n = len(words)
    runs = (words[k : k + size] for size in range(n, 0, -1) for k in range(n - size + 1))
    return next((name for name in map("_".join, runs) if body_of(name)), stem)


def names_of_bodies(
    parents: Mapping[str, str], given: Mapping[str, str], alone: bool = False
) -> tuple[dict[str, str], dict[str, str]]:
    """Names in the file by body, measured and set-points, in order.

    Given ones first, others by what their names look like. `parents` holds all names and the frame
    that each is in.

    Raises:
        ConfigError: A given name is not there, two names look like one body, or there is no load
            or no drone.
    """
    what = _kind_of_names(parents)
    for body, name in given.items():
        if not _BODY.fullmatch(body):
            raise ConfigError(f"'{body}' is no body; bodies are load, drone_1, drone_2, ...")
        if name not in parents:
            raise ConfigError(f"no {what} '{name}' (for {body}); it has {few(parents)}")
    candidates, setpoint_candidates = _guesses(set(parents) - set(given.values()))
    candidates = {body: names for body, names in candidates.items() if body not in given}
    file_names = {body: _one(body, names, parents) for body, names in candidates.items()}
    file_names |= given
    if not file_names or (not alone and (LOAD not in file_names or len(file_names) < 2)):
        body = "drone_1" if LOAD in file_names else LOAD
        raise ConfigError(
            f"no {what} looks like {body}; name it with --bodies {body}=NAME: it has {few(parents)}"
        )
    setpoints = {body: _one(body, names, parents) for body, names in setpoint_candidates.items()}
    bodies = in_order(file_names)
    return {b: file_names[b] for b in bodies}, {b: setpoints[b] for b in bodies if b in setpoints}


def _kind_of_names(names: Iterable[str]) -> str:
    return "topic of poses" if all(name.startswith("/") for name in names) else "body"


def _guesses(names: Iterable[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Names that look like each body, measured and set-points; drones counted from 1."""
    looks = [(name, look) for name in sorted(names) if (look := body_of(name))]
    shift = 1 if any(number == 0 for _, (_, number, _) in looks) else 0
    bodies: dict[str, list[str]] = {}
    setpoints: dict[str, list[str]] = {}
    for name, (_, number, desired) in looks:
        body = LOAD if number is None else f"drone_{number + shift}"
        (setpoints if desired else bodies).setdefault(body, []).append(name)
    return bodies, setpoints


def _one(body: str, names: list[str], parents: Mapping[str, str]) -> str:
    """The name of a body; of a chain such as drone_1 -> drone_1/base_link its root."""
    roots = [name for name in names if parents[name] not in names]
    if len(roots) != 1:
        raise ConfigError(f"{few(names)} all look like {body}; name one with --bodies {body}=NAME")
    return roots[0]


def few(names: Iterable[str]) -> str:
    """The first names of many, for a message."""
    names = sorted(names)
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


# ---------- From the file's numbers to poses in SI units, ENU


def recording_of(capture: Capture, options: ReadOptions) -> Recording:
    """Make a recording of a capture.

    Raises:
        ConfigError: A body is missing, or the numbers are unlikely in these units or axes; with the
            option that says what they are.
    """
    parents = {name: capture.parents.get(name, "") for name in capture.tracks}
    file_names, setpoint_names = names_of_bodies(parents, options.bodies, capture.alone)
    _check_bodies(file_names, options)
    _check_roots({**setpoint_names, **file_names}, capture.roots)
    notes = list(capture.notes)
    units = _units(capture, options)
    factors = {quantity: FACTORS[quantity][unit] for quantity, unit in units.items()}
    known_quantities = set(capture.stated) | {q for q in FACTORS if options.unit(q)}
    body_tracks = {
        body: _in_si(capture.tracks[name], factors, body, known_quantities, notes)
        for body, name in file_names.items()
    }
    setpoint_tracks = {
        b: _in_si(capture.tracks[name], factors, b, known_quantities, notes)
        for b, name in setpoint_names.items()
    }
    setpoint_tracks |= {
        body: _in_si(capture.setpoints[name], factors, body, known_quantities, notes)
        for body, name in file_names.items()
        if name in capture.setpoints
    }
    _check_samples(body_tracks)
    angles = options.angles or capture.angles or _likely_angles(body_tracks.values())
    axes = options.axes or capture.axes

    def poses_of(tracks: Mapping[str, RawTrack]) -> dict[str, PoseTrack]:
        result = {b: _with_quaternions(track, angles) for b, track in tracks.items()}
        if axes == "y-up":
            result = {b: _from_y_up(result[b], tracks[b]) for b in tracks}
        if axes == "ned":
            result = {b: _from_ned(poses) for b, poses in result.items()}
        return result

    poses = poses_of(body_tracks)
    targets = poses_of(setpoint_tracks)
    if capture.by_row and list(targets) == [LOAD]:
        targets |= _drone_setpoints(targets[LOAD], [b for b in poses if b != LOAD], options)
    if options.axes is None and "axes" not in capture.stated:
        _question_axes(poses, axes)
    usual = {q: unit for q, unit in units.items() if q not in known_quantities}
    has_angles = any(track.rotation.shape[1] == 3 for track in body_tracks.values())
    question_units(
        lambda change: poses_of({b: _scaled(track, change) for b, track in body_tracks.items()}),
        usual,
        has_angles,
        options.units,
        notes,
    )
    fresh = _fresh_rows(poses, options, notes) if capture.by_row else slice(None)
    bodies = {}
    for body, track in poses.items():
        moved_track = PoseTrack(
            track.time_s + options.clocks_s.get(body, 0.0),
            track.position_enu_m + np.array(options.origins_m.get(body, (0.0, 0.0, 0.0))),
            track.orientation_wxyz,
        )
        stale = options.drop_stale and not capture.by_row
        bodies[body] = cleaned(moved_track.part(fresh), body, notes, stale)
    setpoints = {
        body: cleaned(track, f"{body}'s set-points", notes).changes()
        for body, track in targets.items()
    }
    _note_unlikely(bodies, axes, notes)
    stages = tuple(
        replace(s, start_s=factors["time"] * s.start_s, end_s=factors["time"] * s.end_s)
        for s in capture.stages
    )
    return Recording(
        bodies,
        setpoints,
        stages=stages or (whole(bodies),),
        warnings=tuple(dict.fromkeys(notes)),
        sampled_setpoints=capture.by_row,
        notation=_notation(capture, file_names, units, axes),
    )


def _drone_setpoints(
    load: PoseTrack, drones: Sequence[str], options: ReadOptions
) -> dict[str, PoseTrack]:
    """Set-points of the drones, which were not logged, from the load's and the formation."""
    places, yaws = options.formation.poses(
        load.position_enu_m, yaw_of(load.orientation_wxyz), len(drones)
    )
    return {
        body: PoseTrack(load.time_s, places[:, i], from_yaw(yaws[:, i]))
        for i, body in enumerate(drones)
    }


def _check_bodies(file_names: Mapping[str, str], options: ReadOptions) -> None:
    for body in [*options.origins_m, *options.clocks_s]:
        if body not in file_names:
            raise ConfigError(f"'{body}' is not in it; it has {', '.join(file_names)}")


def _check_roots(file_names: Mapping[str, str], roots: Mapping[str, str]) -> None:
    """Refuse bodies whose poses are in different frames."""
    frames = {body: root for body, name in file_names.items() if (root := roots.get(name))}
    if len({root.strip("/") for root in frames.values()}) > 1:
        which = ", ".join(f"{body} in {root}" for body, root in frames.items())
        raise ConfigError(f"poses in different frames: {which}; name others with --bodies")


def _units(capture: Capture, options: ReadOptions) -> dict[str, str]:
    """Unit of each quantity: as given, else as the file says, else SI."""
    usual = {quantity: next(iter(factors)) for quantity, factors in FACTORS.items()}
    own_units = {quantity: unit for quantity in FACTORS if (unit := options.unit(quantity))}
    return usual | dict(capture.units) | own_units


def _notation(
    capture: Capture, file_names: Mapping[str, str], units: Mapping[str, str], axes: str
) -> str:
    """Units, axes and names with which the file was read, as text for people."""
    names = ", ".join(b if b == name else f"{b} = {name}" for b, name in file_names.items())
    quaternions = all(track.rotation.shape[1] == 4 for track in capture.tracks.values())
    angle = "quaternions" if quaternions else units["angle"]
    how = ", ".join([units["length"], angle, units["time"], axes])
    return f"{names} ({capture.format + ': ' if capture.format else ''}{how})"


def whole(bodies: Mapping[str, PoseTrack]) -> RecordedStage:
    """The one stage of a recording that names none."""
    first = min(track.time_s[0] for track in bodies.values())
    last = max(track.time_s[-1] for track in bodies.values())
    return RecordedStage("flight", float(first), float(last))


STEEPEST_RAD = 1.6
FIRST_RAD = 6.4
LARGEST_RAD = 1e5
"""Largest recorded pitch, which ends at a quarter turn; angle with which a recording begins; and
any angle that is no damaged number."""


def _in_si(
    track: RawTrack,
    factors: Mapping[str, float],
    body: str,
    known_quantities: set[str],
    notes: list[str],
) -> RawTrack:
    """Numbers in SI units; angles that are no radians are refused."""
    rotation = track.rotation
    if rotation.shape[1] == 3:
        rotation = factors["angle"] * rotation
        rotation[np.abs(rotation) > LARGEST_RAD] = np.nan
        good = rotation[np.isfinite(rotation).all(axis=1)]
        steepest = float(np.quantile(np.abs(good[:, 1]), 0.99)) if len(good) else 0.0
        first = float(np.abs(good[0]).max()) if len(good) else 0.0
        if "angle" not in known_quantities and (steepest > STEEPEST_RAD or first > FIRST_RAD):
            what = f"pitch of {body} up to {steepest:.3g} rad"
            if steepest <= STEEPEST_RAD:
                what = f"angles of {body} begin at {first:.3g} rad"
            raise ConfigError(
                f"{what}: are angles in degrees? Say --units deg (or rad, if they are radians), or "
                "call the columns roll_deg, pitch_deg, yaw_deg"
            )
        yaw = rotation[np.isfinite(rotation[:, 2]), 2]
        if "angle" not in known_quantities and len(yaw) and np.ptp(yaw) > 2.1 * np.pi:
            notes.append(
                f"yaw of {body} from {yaw.min():.3g} to {yaw.max():.3g}: taken for radians"
            )
    return _scaled(track._replace(rotation=rotation), {**factors, "angle": 1.0})


def _scaled(track: RawTrack, factors: Mapping[str, float]) -> RawTrack:
    """A track in other units."""
    rotation = track.rotation
    if rotation.shape[1] == 3:
        rotation = factors.get("angle", 1.0) * rotation
    return RawTrack(
        factors.get("time", 1.0) * track.time, factors.get("length", 1.0) * track.position, rotation
    )


def _with_quaternions(track: RawTrack, angles: str) -> PoseTrack:
    return PoseTrack(track.time, track.position, _quaternions(track.rotation, angles))


def _quaternions(rotation: Array, angles: str) -> Array:
    """Quaternions (T, 4) of themselves or of three angles (T, 3) [rad]."""
    if rotation.shape[1] == 4:
        return rotation
    if angles == "roll-pitch-yaw":
        return from_roll_pitch_yaw(rotation)
    return from_rotation_vector(rotation) if angles == "helical" else _from_turned_axes(rotation)


def _likely_angles(tracks: Iterable[RawTrack]) -> str:
    """Way of three angles: in the wrong one bodies jump where an angle passes half a turn."""
    rotations = [track.rotation for track in tracks if track.rotation.shape[1] == 3]
    jumps = {
        angles: max((_largest_jump(_quaternions(r, angles)) for r in rotations), default=0.0)
        for angles in ("helical", "euler-xyz")
    }
    return "euler-xyz" if jumps["euler-xyz"] < 0.5 * jumps["helical"] else "helical"


def _from_turned_axes(angles_rad: Array) -> Array:
    """Rx(a) Ry(b) Rz(c), about the body's own axes, of angles (T, 3)."""
    turns = [from_rotation_vector(angles_rad[:, k, None] * np.eye(3)[k]) for k in range(3)]
    return product(product(turns[0], turns[1]), turns[2])


def _largest_jump(q: Array) -> float:
    q = q[np.isfinite(q).all(axis=1)]
    turns = np.linalg.norm(rotation_vector(relative(q[1:], q[:-1])), axis=1)
    return float(turns.max(initial=0.0))


_Y_UP = np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0])
"""Quarter turn about x: from axes of which y points up to those of which z does."""


def _from_y_up(poses: PoseTrack, raw: RawTrack) -> PoseTrack:
    """Poses in ENU: positions x, -z, y, and quaternions with the axes of world and body turned.

    Roll, pitch and yaw are what they are called, whichever axis points up: yaw is about it.
    """
    turn = np.broadcast_to(_Y_UP, poses.orientation_wxyz.shape)
    q = poses.orientation_wxyz
    if raw.rotation.shape[1] == 4:
        q = product(product(turn, q), turn * [1.0, -1.0, -1.0, -1.0])
    return PoseTrack(poses.time_s, rotate(turn, poses.position_enu_m), q)


def _from_ned(poses: PoseTrack) -> PoseTrack:
    """Poses in ENU and FLU of those in NED and FRD."""
    place = world_enu_ned(poses.position_enu_m)
    return PoseTrack(poses.time_s, place, orientation_enu_ned(poses.orientation_wxyz))


# ---------- What is unlikely


def _check_samples(tracks: Mapping[str, RawTrack]) -> None:
    """Refuse a body that has no two times."""
    for body, track in tracks.items():
        t = track.time[np.isfinite(track.time)]
        if len(t) < 2:
            raise ConfigError(f"fewer than two usable samples of {body}")
        if t.min() == t.max():
            raise ConfigError(f"all rows are of one time, {t[0]:g} s")


_OTHER_AXES = {"z-up": "y-up", "y-up": "z-up", "ned": "z-up"}


def _question_axes(poses: Mapping[str, PoseTrack], axes: str) -> None:
    """Refuse drones that hang at the height of their load, but are above it by the other axes."""
    if LOAD not in poses or len(poses) < 3:
        return
    load = middle_of(poses[LOAD].position_enu_m)
    others = [middle_of(t.position_enu_m) for b, t in poses.items() if b != LOAD]
    above = np.array(others) - load
    reach = np.linalg.norm(above, axis=1)
    other = _OTHER_AXES[axes]
    sideways = above.mean(axis=0)[1] * (1.0 if axes == "z-up" else -1.0)
    if sideways > 0.6 * reach.mean() and abs(above.mean(axis=0)[2]) < 0.2 * reach.mean():
        raise ConfigError(
            f"all drones are {sideways:.3g} m from the load along {other[0]} and at its height: "
            f"does {other[0]} point up? Say --axes {other} (or {axes}, if it is so)"
        )


STEEP_DEG = 45.0
"""A drone that is tilted by more for half of a flight has a turned frame, or other angles."""


def _note_unlikely(bodies: Mapping[str, PoseTrack], axes: str, notes: list[str]) -> None:
    """Note what a flight seldom is."""
    for body, track in bodies.items():
        if not track.has_attitude:
            notes.append(f"{body} is a place without attitude, which stays unknown")
        up = rotate(track.orientation_wxyz, np.array([0.0, 0.0, 1.0]))[:, 2]
        tilt_deg = float(np.degrees(np.arccos(np.clip(np.median(up), -1.0, 1.0))))
        if body != LOAD and tilt_deg > STEEP_DEG:
            notes.append(
                f"{body} is tilted by {tilt_deg:.0f} deg for half of the flight: another order of "
                f"angles (--angles), another axis up (--axes {_OTHER_AXES[axes]}), or its frame is "
                "turned?"
            )
        _note_jumps(body, track, notes)
    if LOAD in bodies:
        height_m = float(np.median(bodies[LOAD].position_enu_m[:, 2]))
        if height_m < -0.1:
            notes.append(
                f"the load is at z = {height_m:.2f} m for half of the flight, below the ground: "
                "does another axis point up (--axes), or lies the origin higher (--origin)?"
            )


MOST_M_S2 = 500.0
LEAST_JUMP_M = 0.05
"""Impossible acceleration between samples, and the least jump that is reported for it."""

MOST_RAD_S = 50.0
LEAST_JUMP_RAD = 0.5
"""Impossible rotation between samples, and the least one that is reported."""


def _note_jumps(body: str, track: PoseTrack, notes: list[str]) -> None:
    """Note samples to which no body gets: damaged numbers, bodies that were mistaken."""
    if len(track.time_s) < 3:
        return
    step_s = np.diff(track.time_s)
    between_s = 0.5 * (step_s[1:] + step_s[:-1])
    velocity = np.diff(track.position_enu_m, axis=0) / step_s[:, None]
    change = np.linalg.norm(np.diff(velocity, axis=0), axis=1)
    jumps_m = change * between_s
    far = np.flatnonzero((change > MOST_M_S2 * between_s) & (jumps_m > LEAST_JUMP_M))
    if len(far):
        at_s = track.time_s[far[0] + 1]
        notes.append(f"{body} jumps by up to {jumps_m[far].max():.3g} m, first at {at_s:.6g} s")
    q = track.orientation_wxyz
    turns = np.linalg.norm(rotation_vector(relative(q[1:], q[:-1])), axis=1)
    far = np.flatnonzero((turns > MOST_RAD_S * step_s) & (turns > LEAST_JUMP_RAD))
    if len(far):
        most_deg = np.degrees(turns[far].max())
        at_s = track.time_s[far[0] + 1]
        notes.append(f"{body} turns at once by up to {most_deg:.0f} deg, first at {at_s:.6g} s")


# ---------- Damaged, repeated and disordered samples

MOST_UNEVEN = 0.02
"""Share by which the length of a quaternion differs from that of the others, at most."""

SAME_TIME_S = 1e-9
"""Samples that are nearer in time are of one time: stamps count nanoseconds."""


def note(notes: list[str], number: int, what: str) -> None:
    """Note a number of things that were dropped, with {s} for the plural; nothing if none was."""
    if number:
        notes.append(f"{number} {what.format(s='' if number == 1 else 's')}")


def cleaned(track: PoseTrack, name: str, notes: list[str], drop_stale: bool = False) -> PoseTrack:
    """Poses at strictly increasing times, without samples that are no poses.

    Times may come in any order, and quaternions need not be units. With `drop_stale` samples that
    repeat the one before in every value are dropped too. A track without any attitude stays one: of
    a marker, a total station, a point. The notes take the counts.
    """
    n = len(track.time_s)
    values = np.column_stack([track.time_s, track.position_enu_m, track.orientation_wxyz])
    norm = np.linalg.norm(values[:, 4:], axis=1)
    if not (norm > 1e-6).any():  # a place alone: its attitude is unknown, or zeros stand for it
        values[:, 4:] = np.nan
        norm = np.ones(n)
        good = np.isfinite(values[:, :4]).all(axis=1)
    else:
        good = np.isfinite(values).all(axis=1) & (norm > 1e-6)
    note(notes, n - int(good.sum()), f"sample{{s}} of {name} without a finite pose dropped")
    usual = float(np.median(norm[good])) if good.any() else 1.0
    even = good & (np.abs(norm / usual - 1.0) < MOST_UNEVEN)
    odd = int(good.sum() - even.sum())
    note(notes, odd, f"sample{{s}} of {name} with a quaternion of another length dropped")
    values = values[even]
    values[:, 4:] /= norm[even, None]
    far = _far_in_time(values[:, 0])
    note(notes, int(far.sum()), f"sample{{s}} of {name} far in time from both neighbours dropped")
    values = values[~far]
    backward = int(np.count_nonzero(np.diff(values[:, 0]) < 0.0))
    note(notes, backward, f"step{{s}} back in time in {name}: sorted")
    values = values[np.argsort(values[:, 0], kind="stable")]
    again = np.concatenate([np.diff(values[:, 0]) < SAME_TIME_S, [False]])[
        : len(values)
    ]  # last counts
    note(notes, int(again.sum()), f"sample{{s}} of {name} at the time of another dropped")
    values = values[~again]
    if drop_stale:
        stale = _repeats(values[:, 1:])
        note(notes, int(stale.sum()), f"stale sample{{s}} of {name} (repeats the last) dropped")
        values = values[~stale]
    if len(values) == 0:
        raise ConfigError(f"no usable pose of {name}")
    return PoseTrack(values[:, 0], values[:, 1:4], values[:, 4:])


FAR_STEPS = 1000.0
"""Distance in time from both neighbours, in usual steps, from which a stamp is damaged."""


def _far_in_time(time_s: np.ndarray) -> np.ndarray:
    """Mask (T,) of damaged times: far from both neighbours, on the same side of them."""
    far = np.zeros(len(time_s), bool)
    if len(time_s) > 2:
        step_s = np.diff(time_s)
        usual_s = float(np.median(np.abs(step_s)))
        there = step_s[:-1]
        back = step_s[1:]
        jumps = np.minimum(np.abs(there), np.abs(back)) > FAR_STEPS * usual_s
        far[1:-1] = jumps & (np.sign(there) != np.sign(back)) & (usual_s > 0.0)
    return far


def _repeats(values: np.ndarray) -> np.ndarray:
    """Rows (T, k) that repeat the one before (T,); new measurements differ in their last digits."""
    same = np.zeros(len(values), bool)
    unknown = np.isnan(values[1:]) & np.isnan(values[:-1])
    same[1:] = np.all((values[1:] == values[:-1]) | unknown, axis=1)
    return same


def _fresh_rows(
    poses: Mapping[str, PoseTrack], options: ReadOptions, notes: list[str]
) -> np.ndarray:
    """Mask (T,) of rows that differ from the row before; the notes say how many do not."""
    time_s = next(iter(poses.values())).time_s
    parts = [np.column_stack([t.position_enu_m, t.orientation_wxyz]) for t in poses.values()]
    stale = _repeats(np.hstack(parts))
    if not options.drop_stale or not stale.any():
        return np.ones(len(time_s), bool)
    times = ", ".join(f"{t:g}" for t in time_s[stale][:3])
    more = ", ..." if stale.sum() > 3 else ""
    what = f"stale row{{s}} (repeats the last in all bodies) at {times}{more} s dropped"
    note(notes, int(stale.sum()), what)
    return ~stale


# ---------- Rows of numbers in text files, with what is damaged counted


def whole_lines(path: Path, notes: list[str]) -> list[str]:
    """Lines of a file; a last one that is not ended may be cut in a number: dropped."""
    lines = read_lines(path)
    if lines and not lines[-1].endswith(("\n", "\r")):
        note(notes, 1, "unended last line dropped")
        lines.pop()
    return lines


def whole_rows(path: Path, notes: list[str]) -> list[TextRow]:
    """Rows of a table in a file."""
    return list(rows_of(whole_lines(path, notes)))


def numbers_of(
    rows: Sequence[Sequence[str]], columns: int, wanted: Sequence[int], notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (rows, wanted) of rows of text, and which rows they are (rows,).

    Empty and infinite cells become NaN. Rows of another length than `columns`, without any number
    or with other text are dropped and counted.
    """
    table = []
    index = []
    other_length = 0
    for k, cells in enumerate(rows):
        if len(cells) != columns:
            other_length += 1
            continue
        with suppress(ValueError):
            table.append([float(cells[i]) if cells[i] else np.nan for i in wanted])
            index.append(k)
    note(notes, other_length, f"row{{s}} without {columns} columns dropped")
    note(notes, len(rows) - other_length - len(table), "row{s} without numbers dropped")
    numbers = np.array(table).reshape(-1, len(wanted))
    numbers[np.isinf(numbers)] = np.nan
    return numbers, np.array(index, int)
