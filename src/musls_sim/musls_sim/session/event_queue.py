"""Lets the events of a scenario happen in their time."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from musls_description.config.errors import ConfigError, near_names
from musls_description.config.registry import UserCodeError, file_of, user_code
from musls_description.config.schema import build
from musls_description.config.strict_yaml import shown
from musls_sim.plants.interface import EventRecord
from musls_sim.scenario.events import AUTOMATIC_KINDS, EVENTS, Event, EventContext, When
from musls_sim.session.loop import Observer

ROUNDING_S = 1e-9

FOUND_LATE = ("too_close", "rotors_overlap")
"""Kinds that are found in rows of many periods, unless somebody looks in each of them."""


@dataclass
class _Waiting:
    """An event that has not happened yet.

    Attributes:
        held_at_s: Time when its condition first held; None if it has not yet.
        at_once: Whether somebody has asked for it by hand.
    """

    event: Event
    held_at_s: float | None = None
    at_once: bool = False


class EventQueue:
    """Watches for triggers; a step of the session.

    Attributes:
        context: Session parts that events act on.
        happened: Events that have happened so far.
    """

    def __init__(
        self,
        context: EventContext,
        stage_now: Callable[[], str],
        observers: Sequence[Observer],
        period_s: float,
    ) -> None:
        """`stage_now`: returns the present stage of the mission."""
        self.context = context
        self._stage_now = stage_now
        self._observers = observers
        self._period_s = period_s
        self._waiting: list[_Waiting] = []
        self._active: list[tuple[float, Event]] = []
        self._begun_s: dict[str, float] = {}
        self._stage = ""
        self._stage_began_s = 0.0
        self.happened: list[EventRecord] = []

    def add(self, event: Event) -> None:
        """Queue an event, which happens at its trigger."""
        self._waiting.append(_Waiting(self.check(event)))

    def apply(self, event: Event | Mapping[str, Any]) -> None:
        """Make an event, or one of such fields, happen in the next period, whatever `when` says."""
        self._waiting.append(_Waiting(self.check(event), at_once=True))

    def trigger(self, name: str) -> None:
        """Make a waiting event happen at the beginning of the next period."""
        for waiting in self._waiting:
            if name in waiting.event.names:
                waiting.at_once = True
                return
        names = [name for waiting in self._waiting for name in waiting.event.names]
        if not names:
            raise ConfigError(f"no event '{name}' is waiting, nor any other")
        raise ConfigError(f"no event '{name}' is waiting: {near_names(name, names)}")

    @property
    def waits(self) -> bool:
        """Whether any event waits for its begin or its end."""
        return bool(self._waiting or self._active)

    @property
    def stages(self) -> list[str]:
        """Stages that events wait for."""
        stages = (waiting.event.when.stage for waiting in self._waiting)
        return [stage for stage in stages if stage is not None]

    @property
    def next_s(self) -> float:
        """Time of the next `step` that does something; in the past where it is not known."""
        if not self.waits:
            return np.inf
        times = [end_s for end_s, _ in self._active]
        for waiting in self._waiting:
            when = waiting.event.when
            held_s = waiting.held_at_s
            begin_s = self._begin_s(when) if held_s is None else held_s
            if waiting.at_once or (begin_s is None and when.event in FOUND_LATE):
                return 0.0
            if begin_s is not None:  # a condition is looked at from then on
                waits = when.condition is None or held_s is not None
                times.append(begin_s + (when.after_s if waits else 0.0))
        return min(times, default=np.inf) - ROUNDING_S

    def step(self, tick: int) -> None:
        """Start and end the events that are due."""
        stage = self._stage_now()
        if stage is not self._stage and stage != self._stage:  # also for events added later
            self._stage = stage
            self._stage_began_s = tick * self._period_s
        if not self._waiting and not self._active:
            return
        time_s = tick * self._period_s
        for end_s, event in [entry for entry in self._active if entry[0] <= time_s + ROUNDING_S]:
            self._active.remove((end_s, event))
            with user_code(lambda: f" at {time_s:.3f} s", type(event), "end"):
                event.end(self.context)
            self.note(time_s, event.kind, "over")
        for waiting in self._waiting[:]:
            event = waiting.event
            if not self._is_due(waiting, time_s):
                continue
            if not _asked(event, "ready", time_s, bool, self.context):
                continue
            self._waiting.remove(waiting)
            for name in event.names:
                self._begun_s.setdefault(name, time_s)
            happened = _asked(event, "begin", time_s, str, self.context)
            self.note(time_s, event.kind, happened)
            if event.lasts_s is not None:
                lasts_s = _checked(event, "lasts_s", event.lasts_s, float, time_s)
                self._active.append((time_s + lasts_s, event))

    def note(self, time_s: float, kind: str, what: str) -> None:
        """Record something that happened, also some periods ago."""
        self._begun_s.setdefault(kind, time_s)
        insort(self.happened, EventRecord(time_s, kind, what), key=lambda event: event.time_s)
        for observer in self._observers:
            observer.on_event(time_s, kind, what)

    def check(self, given: Event | Mapping[str, Any]) -> Event:
        """Refuse what this system or this flight cannot have; returns the event."""
        event = _built(given)
        system = self.context.plant.system
        if not event.kind or ":" in event.kind:
            raise ConfigError(f"events: kind {event.kind!r}: must be a word without a colon")
        with user_code(lambda: " before the flight", type(event), "check"):
            event.check(system)
        if event.when.condition is not None:
            event.when.condition.check(system)
        with user_code(lambda: " before the flight", type(event), "fits"):
            event.fits(self.context)
        return event

    def _is_due(self, waiting: _Waiting, time_s: float) -> bool:
        when = waiting.event.when
        if waiting.at_once:
            return True
        if waiting.held_at_s is None:
            begin_s = self._begin_s(when)
            if begin_s is None or time_s + ROUNDING_S < begin_s:
                return False
            if when.condition is None:
                return time_s + ROUNDING_S >= begin_s + when.after_s
            if not when.condition.holds(self.context):
                return False
            waiting.held_at_s = time_s
        return time_s + ROUNDING_S >= waiting.held_at_s + when.after_s

    def _begin_s(self, when: When) -> float | None:
        """Time from which a trigger counts, None while it is not known."""
        if when.time_s is not None:
            return when.time_s
        if when.stage is not None:
            return self._stage_began_s if when.stage == self._stage else None
        if when.event is not None:
            return self._begun_s.get(when.event)
        return 0.0


Answer = TypeVar("Answer", bool, str, float)

_KINDS: dict[type, tuple[Any, str]] = {
    bool: ((bool, np.bool_), "true or false"),
    str: (str, "text"),
    float: (Real, "a number > 0"),
}


def _asked(
    event: Event, name: str, time_s: float, kind: type[Answer], context: EventContext
) -> Answer:
    """Result of an event's method."""
    with user_code(lambda: f" at {time_s:.3f} s", type(event), name):
        answer = getattr(event, name)(context)
    return _checked(event, name, answer, kind, time_s)


def _checked(event: Event, name: str, answer: Any, kind: type[Answer], time_s: float) -> Answer:
    """Result of an event's method, checked for its type."""
    kinds, words = _KINDS[kind]
    if isinstance(answer, kinds) and (kind is not float or answer > 0.0):
        with user_code(lambda: f" at {time_s:.3f} s", type(event), name):
            return kind(answer)
    where = f"{file_of(type(event))}: {type(event).__name__}.{name}"
    raise UserCodeError(f"{where} gave {shown(repr(answer))}, must be {words}")


def _built(event: Event | Mapping[str, Any]) -> Event:
    if not isinstance(event, Mapping):
        return event
    fields = {"when": When(time_s=0.0)} | dict(event)
    new_event: Event = build(EVENTS[fields.get("kind", "")], fields, "event")
    return new_event


def check_triggers(events: Sequence[Event], stages: Sequence[str]) -> None:
    """Refuse events in stages that are not flown, or that cannot follow others (ConfigError).

    These follow one that there is not, or wait for each other.
    """
    for event in events:
        names = event.names
        if not (isinstance(names, tuple) and all(isinstance(name, str) for name in names)):
            where = f"{file_of(type(event))}: {type(event).__name__}.names"
            raise UserCodeError(f"{where} gave {shown(repr(names))}, must be a tuple of names")
        if event.when.stage is not None and event.when.stage not in stages:
            stage_text = ", ".join(dict.fromkeys(stages))
            raise ConfigError(
                f"events: stage '{event.when.stage}' is not flown; this mission has {stage_text}"
            )
    own = [name for event in events for name in event.names[:-1]]
    for name in own:
        if own.count(name) > 1:
            raise ConfigError(f"events: two events have the name '{name}'")
    all_names = {*own, *(event.kind for event in events), *AUTOMATIC_KINDS}
    for event in events:
        after = event.when.event
        if after is not None and after not in all_names:
            raise ConfigError(f"events: no event '{after}': {near_names(after, sorted(all_names))}")
    happen = set(AUTOMATIC_KINDS)
    rest = list(events)
    while rest:
        free = [e for e in rest if e.when.event is None or e.when.event in happen]
        if not free:
            raise ConfigError(
                "events: these wait for each other: " + ", ".join(event.names[0] for event in rest)
            )
        rest = [event for event in rest if not any(event is other for other in free)]
        happen |= {name for event in free for name in event.names}
