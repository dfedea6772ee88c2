"""Lets the events of a scenario happen in their time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from musls_description.errors import ConfigError
from musls_sim.events import EventSpec, Scene
from musls_sim.session.guidance import Guidance
from musls_sim.session.observer import Announcer

ROUNDING_S = 1e-9


@dataclass(frozen=True)
class EventRecord:
    """Something that happened.

    Attributes:
        time_s: Simulated time.
        kind: Kind of the event.
        what: What happened, for people.
    """

    time_s: float
    kind: str
    what: str


class EventQueue:
    """Watches for triggers; a step of the session.

    Attributes:
        happened: What has happened so far.
    """

    def __init__(
        self, scene: Scene, guidance: Guidance, announce: Announcer, period_s: float
    ) -> None:
        """Begin without events.

        Args:
            scene: What events act on.
            guidance: Tells the stage.
            announce: Told what happens.
            period_s: Control period.
        """
        self._scene, self._guidance, self._announce = scene, guidance, announce
        self._period_s = period_s
        self._waiting: list[EventSpec] = []
        self._lasting: list[tuple[float, EventSpec]] = []
        self._stage, self._stage_began_s = "", 0.0
        self.happened: list[EventRecord] = []

    def add(self, event: EventSpec) -> None:
        """Let an event happen when its trigger comes.

        Raises:
            ConfigError: The system, or the cable model, cannot have it.
        """
        models = getattr(event, "cable_models", ())
        model = self._scene.plant.cable_model
        if models and model not in models:
            raise ConfigError(
                f"events: {event.kind}: the cable model '{model}' cannot do this; choose "
                f"cable_model: {' or '.join(models)}"
            )
        event.check(self._scene.plant.system)
        self._waiting.append(event)

    def step(self, tick: int) -> None:
        """Begin and end what is due."""
        time_s = tick * self._period_s
        if self._guidance.stage != self._stage:  # also for events that are added later
            self._stage, self._stage_began_s = self._guidance.stage, time_s
        if not self._waiting and not self._lasting:
            return
        for end_s, event in [entry for entry in self._lasting if entry[0] <= time_s + ROUNDING_S]:
            self._lasting.remove((end_s, event))
            event.end(self._scene)
            self.note(time_s, event.kind, "over")
        for event in [event for event in self._waiting if self._is_due(event, time_s)]:
            self._waiting.remove(event)
            self.note(time_s, event.kind, event.begin(self._scene))
            if event.duration_s is not None:
                self._lasting.append((time_s + event.duration_s, event))

    def note(self, time_s: float, kind: str, what: str) -> None:
        """Write down something that happened."""
        self.happened.append(EventRecord(time_s, kind, what))
        self._announce.event(time_s, kind, what)

    def _is_due(self, event: EventSpec, time_s: float) -> bool:
        when = event.when
        if when.time_s is not None:
            return time_s + ROUNDING_S >= when.time_s
        due_s = self._stage_began_s + when.after_s
        return when.stage == self._stage and time_s + ROUNDING_S >= due_s


def check_stages(events: Sequence[EventSpec], stages: Sequence[str]) -> None:
    """Refuse events in stages that are not flown.

    Raises:
        ConfigError: There is one.
    """
    for event in events:
        if event.when.stage is not None and event.when.stage not in stages:
            flown = ", ".join(dict.fromkeys(stages))
            raise ConfigError(
                f"events: stage '{event.when.stage}' is not flown; this mission has {flown}"
            )
