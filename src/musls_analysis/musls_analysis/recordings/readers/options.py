"""What a reader cannot know from the recording itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from musls_control.formation import Cone


@dataclass(frozen=True)
class ReadOptions:
    """How to read a recording.

    Attributes:
        frames: TF frame of a body, e.g. {"load": "payload_mocap"}; others are guessed.
        formation: Where the drones' set-points lie if only the load's were recorded; the default
            is the virtual cone of the paper's flights (radius 1.0 m, height 2.2962 m).
        drop_stale: Leave out samples that repeat the one before: the logger wrote an old value
            again, so its time is wrong. Applies to measurements, never to set-points.
    """

    frames: Mapping[str, str] = field(default_factory=dict)
    formation: Cone = field(default_factory=Cone)
    drop_stale: bool = True
