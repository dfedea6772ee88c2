"""Cables that were cut, broke or were let go: which parts of a recorded shape are there."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from musls_analysis.recordings.recording import Event

PARTS = frozenset({"cable_cut", "cable_broken", "release", "hook_opened"})
"""Kinds of events after which a cable may be in pieces."""

GAP = 1.3
"""A segment of such a cable that is longer than the others by this factor is not there."""


def parted_s(events: Iterable[Event]) -> float:
    """Time from which cables may be in pieces; infinite if nothing has happened to one."""
    return min((event.time_s for event in events if event.kind in PARTS), default=np.inf)


def pieces_of(points_enu_m: np.ndarray) -> list[np.ndarray]:
    """Lines of the pieces of a cable that may have parted.

    Args:
        points_enu_m: Its recorded shape, (points, 3).
    """
    if len(points_enu_m) < 3:
        return [points_enu_m]
    lengths = np.linalg.norm(np.diff(points_enu_m, axis=0), axis=1)
    gaps = np.flatnonzero(lengths > GAP * np.median(lengths)) + 1
    return [piece for piece in np.split(points_enu_m, gaps) if len(piece) > 1]
