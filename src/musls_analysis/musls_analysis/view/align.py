"""Lays a second recording over the first in time, and chooses the time to show.

As `compare` does, the load's set-points tell where a stage's cycle starts (angle of a circle,
middle of an oscillation, step of an engagement), so that a stage is laid on the same stage with
the same phase, whatever the two clocks say.
"""

from __future__ import annotations

from collections.abc import Sequence

from musls_analysis.comparison.cycles import WHOLE_FLIGHT, cut, stage_windows
from musls_analysis.recordings.recording import Recording, Stage, main_stages
from musls_analysis.view.scene import Subject
from musls_description.errors import ConfigError


def aligning_shift_s(
    first: Recording, other: Recording, stage: str | None = None, skip: int = 0
) -> tuple[float, list[str]]:
    """Time [s] to add to the other recording's clock, so that the stage's cycles start together.

    With it come doubts about it. The default stage is the one main stage that both have, or that
    one of them has if the other names no stages. The first `skip` cycles of the other recording are
    left out, while its motion settles.

    Raises:
        ConfigError: No stage in common, or its cycle cannot be found.
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
    """First and last moment to show [s]: the stage, where both recordings are.

    Raises:
        ConfigError: No such stage, or the recordings do not overlap.
    """
    main = subjects[0]
    start_s, end_s = main.start_s, main.end_s
    if stage:
        windows = stage_windows(main.recording, stage)
        start_s, end_s = max(start_s, windows[0].start_s), min(end_s, windows[-1].end_s)
    for other in subjects[1:]:
        start_s, end_s = max(start_s, other.start_s), min(end_s, other.end_s)
        if end_s <= start_s:
            raise ConfigError(
                f"{other.recording.source}, shifted by {other.shift_s:.3f} s, lies from "
                f"{other.start_s:.2f} to {other.end_s:.2f} s and does not overlap what is shown of "
                f"{main.recording.source}"
            )
    return start_s, end_s


def stage_at(recording: Recording, time_s: float) -> Stage | None:
    """The stage that a time falls into, the later of two that meet; None outside all of them."""
    inside = [stage for stage in recording.stages if stage.start_s <= time_s <= stage.end_s]
    return inside[-1] if inside else None


def staged_subject(subjects: Sequence[Subject]) -> Subject | None:
    """The first subject that names its stages."""
    return next((subject for subject in subjects if _names_stages(subject.recording)), None)
