"""Units of a recording that its file does not say, doubted by physics.

A drone moves sideways by leaning: an acceleration a takes a lean of a / g. What cables pull leans a
drone, too, along the direction to its load, and steady wind all the time; so it is the rest of its
lean that has to go with its acceleration. A load on cables of some metres swings within three
seconds, which samples have to show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise, product
from typing import NamedTuple

import numpy as np

from musls_analysis.recordings.options import FACTORS
from musls_analysis.recordings.recording import LOAD, PoseTrack
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import relative, rotate, rotation_vector

SWING_S = 3.0
"""Period of a load that swings on cables of two metres."""

LONGEST_PERIOD_S = SWING_S / 2.0
SHORTEST_PERIOD_S = 1e-5
"""Sample periods that are believed: longer ones show no swing, shorter ones no program logs."""

SLOW_PERIOD_S = 0.2
LEAST_WAY_M = 0.05
"""Samples that are farther apart than this, of bodies that move by less within a swing, are hardly
of a flight: it was sampled faster, in another unit of time."""

FASTEST_M_S = 100.0
FASTEST_RAD_S = 10.0
FARTHEST_M = 200.0
NEAR_M = 0.25
NEAREST_M = 0.1
"""Distances of two bodies of one system; above the second there is a doubt."""

WINDOW_S = 0.2
"""Time over which accelerations are taken, so that noise of positions does not count."""

HARD_M_S2 = 10.0
HARD_SHARE = 4.0
"""Acceleration that cables and falls give without a lean, and what it is of a lean's, at most."""

STEEP_M_S2 = 1.0
STEEP_SHARE = 2.5
CALM_M_S2 = 0.2
"""A lean, as an acceleration, that is looked at; and what it is of the acceleration, at most, which
is at least the last. Drones of recorded flights have 0.2 to 1.1."""

LOAD_SHARE = 8.0
"""Largest ratio of lean to acceleration of a load, which leans as its cables are led; recorded: up
to 6."""

_OTHERS = {"time": ("ms", "us", "ns"), "length": ("mm", "cm"), "angle": ("deg",)}
_QUESTIONS = {
    "time": ("is the time in seconds", " or in {}"),
    "length": ("are positions in", " {}"),
    "angle": ("are angles in", " degrees"),
}
_TAKEN = {"time": "", "length": " metres", "angle": " radians"}
_USUAL = {"time": "s", "length": "m, if they are metres", "angle": "rad, if they are radians"}


class Motion(NamedTuple):
    """Motion of a body: nine tenths of its samples are below each value; NaN if not known.

    Attributes:
        period_s: Mean distance of its samples.
        span_s: Time from its first to its last sample.
        acceleration_m_s2: Horizontal acceleration.
        lean_m_s2: Horizontal acceleration that its lean gives a body that nothing else pulls.
        rest_m_s2: Horizontal acceleration from the rest of its lean, see the module.
        turn_rad_s: Angular velocity.
    """

    period_s: float
    span_s: float
    samples: int
    speed_m_s: float
    acceleration_m_s2: float
    lean_m_s2: float
    rest_m_s2: float
    turn_rad_s: float


def question_units(
    poses: Callable[[Mapping[str, float]], Mapping[str, PoseTrack]],
    unknown: Mapping[str, str],
    has_angles: bool,
    said: Sequence[str],
    notes: list[str],
) -> None:
    """Refuse units by which bodies move as none can, with those by which they could.

    Args:
        poses: Gives the poses of the bodies, ENU, after a change of their units by these factors
            of "time", "length" and "angle".
        unknown: The unit that was taken of each quantity of which nothing says it.
        has_angles: Whether attitudes are angles.
        said: Units that a person said.
        notes: Takes the doubt where all units are known.

    Raises:
        ConfigError: With the options that say units.
    """
    bodies = poses({})
    doubt, about = unlikely(bodies)
    if not doubt:
        near = [pair for pair in _distances(bodies) if pair[2] < NEAR_M]
        if near and set(said) & {*FACTORS["length"]} - {"m"}:
            one, other, distance_m = near[0]
            notes.append(f"{one} and {other} are {distance_m:.3g} m apart: is the unit right?")
        return
    doubtful_units = {q: unit for q, unit in unknown.items() if q != "angle" or has_angles}
    fits = _fitting(poses, doubtful_units)
    if not fits and about[0] not in doubtful_units:
        notes.append(f"{doubt}: are its units (--units) right?")
        return
    quantities = dict.fromkeys(q for units in fits for q in units) or dict.fromkeys(about[:1])
    words = []
    for quantity in quantities:
        units = dict.fromkeys(fit[quantity] for fit in fits if quantity in fit)
        begin, end = _QUESTIONS[quantity]
        words.append(begin + (end.format(" or ".join(units)) if units else _TAKEN[quantity]))
    choices = " or ".join(f"--units {','.join(fit.values())}" for fit in fits)
    first = next(iter(quantities))
    question = f"{', '.join(words)}?"
    if not fits:
        raise ConfigError(f"{doubt}: {question} Say --units {doubtful_units[first]} if it is so")
    usual = _USUAL[first] if first in doubtful_units else doubtful_units[about[0]]
    raise ConfigError(f"{doubt}: {question} Say {choices} (or {usual})")


def _fitting(
    poses: Callable[[Mapping[str, float]], Mapping[str, PoseTrack]],
    doubtful_units: Mapping[str, str],
) -> list[dict[str, str]]:
    """Other units, by quantity, by which bodies move as they can; the likeliest first.

    As few of them as do; of several those by which accelerations are more like leans.
    """
    for size in (1, 2):
        fits = list[tuple[float, dict[str, str]]]()
        for quantities in combinations([q for q in _OTHERS if q in doubtful_units], size):
            for units in product(*(_OTHERS[q] for q in quantities)):
                fit = dict(zip(quantities, units, strict=True))
                bodies = poses(
                    {q: FACTORS[q][u] / FACTORS[q][doubtful_units[q]] for q, u in fit.items()}
                )
                distances_m = [distance for _, _, distance in _distances(bodies)]
                if unlikely(bodies)[0] or any(d < NEAREST_M for d in distances_m):
                    continue
                fits.append((_oddness(bodies), fit))
        if fits:
            return [fit for _, fit in sorted(fits, key=lambda pair: pair[0])]
    return []


def _oddness(bodies: Mapping[str, PoseTrack]) -> float:
    """Implausibility, in powers of e: accelerations unlike leans, or bodies not 2 m apart."""
    motions = [_motion(track, None) for track in bodies.values()]
    leans = [its for its in motions if its.lean_m_s2 + its.acceleration_m_s2 > 0.0]
    if leans:
        shares = [
            (its.lean_m_s2 + CALM_M_S2) / (its.acceleration_m_s2 + CALM_M_S2) for its in leans
        ]
        return abs(float(np.log(np.median(shares))))
    distances_m = [distance for _, _, distance in _distances(bodies)]
    return abs(float(np.log(np.median(distances_m) / 2.0))) if distances_m else 0.0


def unlikely(bodies: Mapping[str, PoseTrack]) -> tuple[str, tuple[str, ...]]:
    """Motion that no flight shows, in words, and quantities whose units may be wrong; or empty."""
    motions = {body: _motion(track, bodies.get(LOAD)) for body, track in bodies.items()}
    for body, its in motions.items():
        span = f"{its.samples} samples of {body} in {its.span_s:.3g} s"
        if not SHORTEST_PERIOD_S < its.period_s < LONGEST_PERIOD_S:
            return span, ("time",)
        if its.speed_m_s > FASTEST_M_S:
            return f"{body} moves at {its.speed_m_s:.3g} m/s", ("length", "time")
    way_m = SWING_S * max(its.speed_m_s for its in motions.values())
    slowest = max(its.period_s for its in motions.values())
    if slowest > SLOW_PERIOD_S and way_m < LEAST_WAY_M:
        return (
            f"bodies move by {1e3 * way_m:.2g} mm in {SWING_S:g} s, sampled every {slowest:.2g} s",
            ("time",),
        )
    for one, other, distance_m in _distances(bodies):
        if distance_m > FARTHEST_M:
            return f"{one} and {other} are {distance_m:.4g} m apart", ("length",)
    turns = [its.turn_rad_s for its in motions.values() if np.isfinite(its.turn_rad_s)]
    if turns and (turn := float(np.median(turns))) > FASTEST_RAD_S:
        return f"bodies turn at {turn:.3g} rad/s", ("angle", "time")
    drones = [its for body, its in motions.items() if body != LOAD and np.isfinite(its.lean_m_s2)]
    who, share = ("drones lean", STEEP_SHARE) if drones else ("the bodies lean", LOAD_SHARE)
    leaning = drones or [its for its in motions.values() if np.isfinite(its.lean_m_s2)]
    if not leaning:
        return "", ()
    lean, rest, acceleration = (
        float(np.median([getattr(its, name) for its in leaning]))
        for name in ("lean_m_s2", "rest_m_s2", "acceleration_m_s2")
    )
    if not np.isfinite(acceleration):
        return "", ()
    lean_text = f"{who} by {_degrees(lean):.2g} deg and accelerate by {acceleration:.2g} m/s2"
    if acceleration > HARD_M_S2 + HARD_SHARE * lean:
        return lean_text, ("length", "time")
    if rest > max(STEEP_M_S2, share * max(acceleration, CALM_M_S2)):
        return f"{lean_text} (as a lean of {_degrees(acceleration):.2g} deg does)", (
            "angle",
            "time",
        )
    return "", ()


def _degrees(acceleration_m_s2: float) -> float:
    return float(np.degrees(np.arcsin(min(acceleration_m_s2 / STANDARD_GRAVITY_M_S2, 1.0))))


def _distances(bodies: Mapping[str, PoseTrack]) -> list[tuple[str, str, float]]:
    """Distances [m] of the middles of bodies and the next ones."""
    middles = {body: middle_of(track.position_enu_m) for body, track in bodies.items()}
    pairs = [
        (one, other, float(np.linalg.norm(p - q)))
        for (one, p), (other, q) in pairwise(middles.items())
    ]
    return [pair for pair in pairs if np.isfinite(pair[2])]


def middle_of(positions: Array) -> Array:
    """Median of the positions (T, 3) that are known, (3,); NaN without any."""
    finite_positions = positions[np.isfinite(positions).all(axis=1)]
    return np.median(finite_positions, axis=0) if len(finite_positions) else np.full(3, np.nan)


def _motion(track: PoseTrack, load: PoseTrack | None) -> Motion:
    time_s, position_m, q = _usable(track)
    unknown = Motion(np.nan, 0.0, len(time_s), *[np.nan] * 5)
    if len(time_s) < 2:
        return unknown
    span_s = float(time_s[-1] - time_s[0])
    velocity = np.diff(position_m, axis=0) / np.diff(time_s)[:, None]
    its = unknown._replace(
        period_s=span_s / (len(time_s) - 1),
        span_s=span_s,
        speed_m_s=float(np.quantile(np.linalg.norm(velocity, axis=1), 0.9)),
        acceleration_m_s2=_acceleration_m_s2(time_s, position_m),
    )
    finite = np.isfinite(q).all(axis=1)
    if finite.sum() < 2:
        return its
    time_s = time_s[finite]
    position_m = position_m[finite]
    q = q[finite]
    turns = np.linalg.norm(rotation_vector(relative(q[1:], q[:-1])), axis=1) / np.diff(time_s)
    lean = STANDARD_GRAVITY_M_S2 * rotate(q, np.array([0.0, 0.0, 1.0]))[:, :2]
    pull = np.zeros_like(lean)
    if load is not None and load is not track:
        place_s, place_m, _ = _usable(load)
        if len(place_s):
            beside = [np.interp(time_s, place_s, place_m[:, k]) for k in range(2)]
            pull = position_m[:, :2] - np.column_stack(beside)
    return its._replace(
        lean_m_s2=_usual(lean),
        rest_m_s2=_usual(_rest(lean, pull)),
        turn_rad_s=float(np.quantile(turns, 0.9)),
    )


def _usual(vectors: Array) -> float:
    """Length that a tenth of vectors (T, 2) exceeds."""
    return float(np.quantile(np.linalg.norm(vectors, axis=1), 0.9))


def _rest(lean: Array, pull: Array) -> Array:
    """Lean (T, 2) without what goes with a pull (T, 2) and what is always there."""
    n = len(lean)
    steady = np.repeat(np.eye(2), n, axis=0)  # x of all rows, then y of all
    model = np.column_stack([pull.T.ravel(), steady])
    target = lean.T.ravel()
    share = np.linalg.lstsq(model, target, rcond=None)[0]
    return np.asarray((target - model @ share).reshape(2, n).T)


def _usable(track: PoseTrack) -> tuple[Array, Array, Array]:
    """Times (T,), places (T, 3) and unit quaternions (T, 4) or NaN of samples at rising times."""
    good = np.isfinite(track.time_s) & np.isfinite(track.position_enu_m).all(axis=1)
    order = np.argsort(track.time_s[good], kind="stable")
    time_s = track.time_s[good][order]
    rising = np.concatenate([np.diff(time_s) > 1e-9, [True]])[: len(time_s)]
    rows = np.flatnonzero(good)[order][rising]
    q = track.orientation_wxyz[rows]
    norm = np.linalg.norm(q, axis=1, keepdims=True)
    unit = np.divide(q, norm, out=np.full_like(q, np.nan), where=norm > 1e-6)
    return track.time_s[rows], track.position_enu_m[rows], unit


def _acceleration_m_s2(time_s: Array, position_m: Array) -> float:
    """Horizontal acceleration over the window; NaN for too few samples."""
    period_s = float(np.median(np.diff(time_s)))
    step = max(1, round(WINDOW_S / period_s)) if period_s > 0.0 else 1
    if len(time_s) < 2 * step + 2:
        return float("nan")
    early = slice(None, -2 * step)
    middle = slice(step, -step)
    late = slice(2 * step, None)
    place = position_m[:, :2]
    before = (place[middle] - place[early]) / (time_s[middle] - time_s[early])[:, None]
    after = (place[late] - place[middle]) / (time_s[late] - time_s[middle])[:, None]
    return _usual(2.0 * (after - before) / (time_s[late] - time_s[early])[:, None])
