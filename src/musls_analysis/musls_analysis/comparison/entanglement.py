"""How close cables come to each other, and which of them cross: plants let them pass through.

A crossing is told by Gauss's integral of two lines,

    (1 / 4 pi) sum over segments of the solid angle under which one sees the other,

which changes smoothly while they move and by one when they pass through each other (segments in
closed form: Klenin and Langowski, Biopolymers 54, 2000, eq. 16). Lines that are wound round each
other have about one for each turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_analysis.recordings.recording import CableTrack
from musls_description.numerics.arrays import Array

SHARED_M = 0.02
"""Distance of ends that are at one place, such as in a ring."""

SHARED_SHARE = 0.15
"""Share of a cable next to such an end that is left out: there they always meet."""

MOST_CROSSINGS = 20
TOLD = 3
"""Crossings in the summary, and in a sentence."""

LOOKED_AT = 50
"""Samples in which the segments of two cables are looked at for their least distance."""

PAIRS_AT_ONCE = 200_000
"""Pairs of points that are looked at together."""


def entanglement(cables: Mapping[str, CableTrack]) -> dict[str, Any]:
    """Least distance of two cables and their crossings, for `summary.json`; empty without shapes.

    Keys: `least_distance_m`, `cables` and `time_s` of it, and `crossings`, each with `cables` and
    `time_s`, the first 20.
    """
    least: dict[str, Any] = {}
    crossings = list[dict[str, Any]]()
    for (one, track), (other, second) in combinations(sorted(cables.items()), 2):
        if not len(track.shape_enu_m) or len(track.shape_enu_m) != len(second.shape_enu_m):
            continue
        a, b = _apart_from_shared_ends(_stacked(track), _stacked(second))
        if a is None or b is None:
            continue
        time_s = np.asarray(track.shape_time_s)
        nodes_m = _node_distances_m(a, b)
        row, distance_m = _closest(a, b, nodes_m)
        if distance_m < least.get("least_distance_m", np.inf):
            least = {
                "least_distance_m": distance_m,
                "cables": [one, other],
                "time_s": float(time_s[row]),
            }
        crossings += [
            {"cables": [one, other], "time_s": float(time_s[k])} for k in _crossings(a, b, nodes_m)
        ]
    if not least:
        return {}
    crossings.sort(key=lambda crossing: crossing["time_s"])
    return {**least, "crossings": crossings[:MOST_CROSSINGS]}


def told(found: Mapping[str, Any]) -> Iterator[str]:
    """What an entanglement is in words: nothing where no cables cross."""
    crossings = found.get("crossings") or ()
    for crossing in crossings[:TOLD]:
        one, other = (name.replace("cable_", "") for name in crossing["cables"])
        yield f"cables {one} and {other} crossed at {crossing['time_s']:.1f} s"
    if len(crossings) > TOLD:
        yield f"and {len(crossings) - TOLD} times more"


def _stacked(track: CableTrack) -> Array:
    """Points of a cable at all samples, (S, points, 3), from as many as the shortest has."""
    shapes = [np.asarray(shape) for shape in track.shape_enu_m]
    counts = [len(shape) for shape in shapes]
    count = min(counts)
    if count == max(counts):
        return np.array(shapes)
    rows = [shape[np.linspace(0, len(shape) - 1, count).round().astype(int)] for shape in shapes]
    return np.array(rows)


def _apart_from_shared_ends(a: Array, b: Array) -> tuple[Array | None, Array | None]:
    """Both cables without what is next to ends that are at one place all the time."""
    parts = [[0, a.shape[1]], [0, b.shape[1]]]
    for i, j in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
        if np.nanmax(np.linalg.norm(a[:, i] - b[:, j], axis=1)) < SHARED_M:
            for part, end, points in ((parts[0], i, a.shape[1]), (parts[1], j, b.shape[1])):
                left_out = max(1, round(SHARED_SHARE * (points - 1)))
                if end == 0:
                    part[0] = left_out
                else:
                    part[1] = points - left_out
    (first, end), (begin, last) = parts
    if end - first < 2 or last - begin < 2:
        return None, None
    return a[:, first:end], b[:, begin:last]


def _chunks(rows: NDArray[np.int64], a: Array, b: Array) -> Iterator[NDArray[np.int64]]:
    """Samples in parts whose pairs of segments fit into little memory."""
    size = max(1, PAIRS_AT_ONCE // (a.shape[1] * b.shape[1]))
    for begin in range(0, len(rows), size):
        yield rows[begin : begin + size]


def _node_distances_m(a: Array, b: Array) -> Array:
    """Least distances of the points of two cables at all samples, (S,)."""
    found = np.empty(len(a))
    for rows in _chunks(np.arange(len(a)), a, b):
        ways = a[rows][:, :, None] - b[rows][:, None]
        found[rows] = np.sqrt(np.einsum("snmi,snmi->snm", ways, ways).min(axis=(1, 2)))
    return found


def _between_nodes_m(a: Array, b: Array) -> float:
    """Length h by which two lines may be closer than their points: D^2 >= d^2 - h^2.

    Where lines of straight segments are closest, the way between them is across each segment that
    it does not end at a point of, and the next point is half a segment away at most.
    """
    longest = [np.linalg.norm(np.diff(line, axis=1), axis=2).max() for line in (a, b)]
    return 0.5 * float(sum(longest))


def _closest(a: Array, b: Array, nodes_m: Array) -> tuple[int, float]:
    """Sample at which two lines of straight segments are closest, and their distance.

    Of those samples at which their points are closest: in formation all are nearly alike.
    """
    rows = np.argsort(nodes_m)[:LOOKED_AT]
    best = int(np.argmin(nodes_m)), float(nodes_m.min())
    for part in _chunks(rows, a, b):
        distances = _distances_m(a[part], b[part])
        if distances.min() < best[1]:
            best = int(part[distances.argmin()]), float(distances.min())
    return best


def _distances_m(a: Array, b: Array) -> Array:
    """Least distances of lines of straight segments, points (S, n, 3) and (S, m, 3); (S,)."""
    u = np.diff(a, axis=1)[:, :, None]
    v = np.diff(b, axis=1)[:, None]
    w = a[:, :-1, None] - b[:, None, :-1]
    uu = np.maximum((u * u).sum(-1), 1e-18)
    vv = np.maximum((v * v).sum(-1), 1e-18)
    uv = (u * v).sum(-1)
    uw = (u * w).sum(-1)
    vw = (v * w).sum(-1)
    # On the line of each the place nearest to the other, then within both segments.
    s = np.clip((uv * vw - vv * uw) / np.maximum(uu * vv - uv * uv, 1e-18), 0.0, 1.0)
    t = np.clip((uv * s + vw) / vv, 0.0, 1.0)
    s = np.clip((uv * t - uw) / uu, 0.0, 1.0)
    way = w + s[..., None] * u - t[..., None] * v
    return np.asarray(np.linalg.norm(way, axis=-1).min(axis=(1, 2)))


def gauss_integral(a: Array, b: Array) -> Array:
    """Gauss's integral of lines at many samples, points (S, n, 3) and (S, m, 3); (S,)."""
    a1, a2 = a[:, :-1, None], a[:, 1:, None]
    b1, b2 = b[:, None, :-1], b[:, None, 1:]
    ways = [b1 - a1, b2 - a1, b2 - a2, b1 - a2]
    normals = [np.cross(ways[k], ways[(k + 1) % 4]) for k in range(4)]
    sizes = [np.linalg.norm(normal, axis=-1, keepdims=True) for normal in normals]
    units = [n / np.maximum(size, 1e-15) for n, size in zip(normals, sizes, strict=True)]
    angle = sum(
        np.arcsin(np.clip((units[k] * units[(k + 1) % 4]).sum(-1), -1.0, 1.0)) for k in range(4)
    )
    sign = np.sign((np.cross(b2 - b1, a2 - a1) * (b1 - a1)).sum(-1))
    return np.asarray((sign * angle).sum(axis=(1, 2)) / (4.0 * np.pi))


def _crossings(a: Array, b: Array, nodes_m: Array) -> list[int]:
    """Samples before which two cables have passed through each other.

    They were no farther apart then than they moved, but for what both moved alike.
    """
    if len(a) < 2:
        return []
    steps = [np.diff(line, axis=0) for line in (a, b)]
    alike = 0.5 * (steps[0].mean(axis=1) + steps[1].mean(axis=1))[:, None]
    ways_m = sum(np.linalg.norm(step - alike, axis=2).max(axis=1) for step in steps)
    rows = np.flatnonzero(nodes_m[:-1] ** 2 - _between_nodes_m(a, b) ** 2 <= ways_m**2)
    close = [part[_distances_m(a[part], b[part]) <= ways_m[part]] for part in _chunks(rows, a, b)]
    found = list[int]()
    for part in close:
        before, after = (gauss_integral(a[part + k], b[part + k]) for k in (0, 1))
        found += (part[np.abs(after - before) > 0.5] + 1).tolist()
    return found
