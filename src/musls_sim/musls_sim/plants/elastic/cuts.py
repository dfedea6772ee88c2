"""Cuts and breaks as the plant shows them: cables and segments by number, from end 1."""

from __future__ import annotations

from musls_description.errors import ConfigError
from musls_sim.plants.changes import CutCable, ReleaseHook
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.interface import PlantEvent


def cut(engine: Engine, change: CutCable | ReleaseHook, from_end_a: bool) -> None:
    """Cut a cable now.

    Args:
        engine: What moves the cables.
        change: Which cable, and where; a hook lets go of the segment next to it.
        from_end_a: Whether end 1 of the cable is the engine's end A.

    Raises:
        ConfigError: There is no such cable or segment.
    """
    n_cables = len(engine.rig.cables)
    if not 1 <= change.cable <= n_cables:
        raise ConfigError(f"cut: cable {change.cable}: there are cables 1 to {n_cables}")
    n = engine.rig.cables[change.cable - 1].segments
    if isinstance(change, CutCable):
        segment = change.segment
    else:
        segment = 1 if change.at == "load" else n
    if not 1 <= segment <= n:
        raise ConfigError(f"cut: segment {segment}: cable {change.cable} has segments 1 to {n}")
    engine.cut(change.cable - 1, segment - 1 if from_end_a else n - segment)


def segment_at_load(engine: Engine, cable: int, from_end_a: bool) -> int:
    """The engine's index of the segment next to the load, both from 0."""
    return 0 if from_end_a else engine.rig.cables[cable].segments - 1


class BreakLog:
    """Turns the breaks of an engine into events of the plant.

    Attributes:
        happened: See `interface.EventSource`; cuts that were asked for are not in it.
    """

    def __init__(self) -> None:
        self.happened: list[PlantEvent] = []
        self._seen = 0

    def skip(self, engine: Engine) -> None:
        """Leave out what is known already: cuts that somebody asked for."""
        self._seen = len(engine.breaks)

    def note(self, engine: Engine, from_end_a: frozenset[int] = frozenset()) -> None:
        """Take over what broke since the last time.

        Args:
            engine: What moves the cables.
            from_end_a: Indices of the cables whose end 1 is the engine's end A.
        """
        for b in engine.breaks[self._seen :]:
            n = engine.rig.cables[b.cable].segments
            number = b.segment + 1 if b.cable in from_end_a else n - b.segment
            what = f"cable_{b.cable + 1}: segment {number} of {n} broke at {b.tension_n:.4g} N"
            self.happened.append(PlantEvent(b.time_s, "cable_broken", what))
        self._seen = len(engine.breaks)
