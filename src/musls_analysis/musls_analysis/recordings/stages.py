"""Stages of a mission, from the moments at which their names were announced."""

from __future__ import annotations

from collections.abc import Sequence

from musls_analysis.recordings.tracks import Stage
from musls_control.phases import PHASES


def stages_from_changes(
    time_s: Sequence[float], names: Sequence[str], start_s: float, end_s: float
) -> tuple[Stage, ...]:
    """Cut a flight into stages where the stage's name was announced.

    An announcement that repeats the current name changes nothing. A name that comes again later
    gets a number ("engage", "hold", "engage_2"), so that names stay unique. Without any
    announcement the whole flight is one stage "flight".

    Args:
        time_s: When each name was announced, not decreasing (K,).
        names: The names (K,).
        start_s: Start of the recording.
        end_s: End of the recording, where the last stage ends.
    """
    if not names:
        return (Stage("flight", start_s, end_s),)
    starts: list[float] = []
    kept: list[str] = []
    for moment, name in zip(time_s, names, strict=True):
        if kept and name == kept[-1]:
            continue
        if starts and moment == starts[-1]:  # replaced before it lasted
            starts.pop()
            kept.pop()
        starts.append(float(moment))
        kept.append(name)
    ends = [*starts[1:], max(end_s, starts[-1])]
    return tuple(map(Stage, _unique(kept), starts, ends))


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique


def main_stages(stages: Sequence[Stage]) -> list[Stage]:
    """Stages that a mission is about; all of them if no name tells."""
    chosen = [s for s in stages if not PHASES & {s.name, s.name.rsplit("_", 1)[0]}]
    return chosen or list(stages)
