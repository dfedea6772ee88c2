"""The memory of a session: the record that leads to its arrays, and the rows that it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import gcd
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.mission.plan import FlightPlan
from musls_control.mission.rows import ARMED
from musls_description.numerics.layout import Field
from musls_description.numerics.records import fill
from musls_sim.plants.interface import REFINEMENTS
from musls_sim.session.compiled_stages.fields import (
    ALONE,
    ANNOUNCE_EVERY,
    COPY,
    KEPT,
    LAYOUT,
    WORLD,
)
from musls_sim.session.compiled_stages.noise import generator, streams_in
from musls_sim.session.compiled_stages.world import NEVER, PIECE, advance_worlds
from musls_sim.session.flight import Flight

Arrays = dict[str, NDArray[Any]]
"""Arrays by their names in `WORLD`."""


def parts_of(session: Flight, *, alone: bool) -> tuple[Arrays, dict[str, Any]]:
    """Arrays that stages of a session work on, those that the world makes included, and numbers.

    `alone`: whether it is recorded and watched for collisions, as a batch is not.
    """
    arrays = LAYOUT.arrays_of(session, without=() if alone else (ALONE,))
    numbers = LAYOUT.numbers_of(session) | {"refinements": REFINEMENTS}
    numbers.setdefault("first", -1)
    record = np.zeros(1, WORLD)
    LAYOUT.fill(record, numbers | arrays)
    for name in ("command", "motors", "gust_noise", "noise", "cell_noise", "jitter"):
        arrays[name] = LAYOUT.zeros(name, record)
    arrays["motors"][:] = 1.0
    return arrays | {"streams": streams_in(session), "generator": generator()}, numbers


def rows_of(plan: FlightPlan, gone: NDArray[np.bool_], asks: NDArray[np.bool_]) -> dict[str, Any]:
    """Numbers of a plan in `WORLD`, and arrays that it leads to: nobody asks for what is gone.

    `asks`: rows in which Python has something to do, (k,).
    """
    count = len(plan.stage)
    table = plan.setpoints.copy()
    lands = plan.lands_in(count - 1)
    table[-1] = plan.drone_setpoints(count - 1, touches_down=lands).data
    table[:, gone, ARMED] = 0.0
    rows = plan.rows.copy()
    rows["asks"] = asks
    return {
        "table": table,
        "rows": count,
        "waits": plan.waits,
        "n_waits": len(plan.waits),
        "plan_rows": rows,
        "lies": tuple(plan.load_pose[-1]),
        "carried_length": 0.0 if plan.carried is None else plan.carried.length_m,
        "lands": lands,
        "asked_in": -1,
    }


CHANGING = (
    "tick",
    "due",
    "watch",
    "failed",
    "verdict",
    "touches",
    "emptied",
    "recorded",
    "announced",
    "kept",
    "played",
)
"""Numbers of the record that Python reads, or sets, in flight."""

TOLD = "verdict", "touches", "emptied", "landing"
"""Numbers that tell of the last period."""

RECORDED = [field for field in LAYOUT.fields.values() if field.recorded]


class Rows:
    """Rows of a session's arrays that compiled code keeps of many periods.

    Attributes:
        every: Periods between two rows; 0 for none.
        keeps_every: Periods between two copies of `Plant.shaping`; 0 for none.
        observers: Observers that receive the rows.
        arrays: Rows of the arrays, by name, (rows, ...).
    """

    def __init__(self, session: Flight, arrays: Arrays) -> None:
        self.observers = [one for one in session.observers if one.by_rows]
        self.every = self.keeps_every = 0
        for taker in self.observers:
            self.every = gcd(self.every, taker.every)
            self.keeps_every = gcd(self.keeps_every, taker.recalls)
        if session.separation is not None:
            self.every = gcd(self.every, session.separation.every)
        count = KEPT // self.every + 1 if self.every else 0
        self.arrays = {
            field.name: np.zeros((count, *arrays[field.name].shape)) for field in RECORDED
        }

    def seen(self, due: slice) -> Any:
        """Rows as the session itself whose arrays have the times as their first axis."""
        return _owner({field: self.arrays[field.name][due] for field in RECORDED})


def _owner(arrays: dict[Field, NDArray[Any]]) -> Any:
    """Object with arrays where the owner of fields has them."""
    owner = SimpleNamespace()
    for field, array in arrays.items():
        part = owner
        (*way, last) = field.owner.split(".")
        for name in way:
            part = vars(part).setdefault(name, SimpleNamespace())
        setattr(part, last, array)
    return owner


class World:
    """The record of a session, `WORLD`, and what is read from it.

    Attributes:
        now: Numbers of the record by name, see `CHANGING`.
        rows: Rows that are recorded.
        unread_from: First period whose rows are not handed out; None when all are.
    """

    def __init__(self, session: Flight) -> None:
        """Take over what the session is at its start."""
        self._session = session
        self._record = np.zeros(1, WORLD)
        self.now = {name: self._record[name] for name in CHANGING}
        self.address = int(self._record.ctypes.data)
        arrays, numbers = parts_of(session, alone=True)
        announced = KEPT // ANNOUNCE_EVERY * session.control.announces
        self._own = {name: array for name, array in arrays.items() if not LAYOUT.fields[name].owner}
        self._own |= {
            "played_rows": np.zeros((KEPT, 2), np.int64),
            "asked_rows": np.zeros((announced, len(session.command.data), 3)),
        }
        self.unread_from: int | None = None
        self.rows = Rows(session, arrays)
        rates = {"every": self.rows.every, "keeps_every": self.rows.keeps_every, "watched": 1}
        LAYOUT.fill(self._record, numbers | rates)
        self._plan: FlightPlan | None = None
        self._plant: NDArray[np.void] | None = None

    def find(self) -> None:
        """Write into the record where everything is, and what is flown now."""
        session = self._session
        guidance = self._session.guidance
        arrays = LAYOUT.arrays_of(session) | self._own
        values: dict[str, Any] = dict.fromkeys(TOLD, 0) | arrays
        self._plant = session.plant.record
        plan = guidance.plan
        if guidance.plays and plan is not None and plan is not self._plan:
            way = session.contingency
            self._plan = plan
            is_gone = np.zeros(len(arrays["motors"]), bool) if way is None else way.gone
            self._flown = rows_of(plan, is_gone, plan.begins | ~plan.plain)
            values |= self._flown
        self._copies = np.zeros(len(RECORDED), COPY)
        for copy, field in zip(np.split(self._copies, len(RECORDED)), RECORDED, strict=True):
            _lead(copy, arrays[field.name], self.rows.arrays[field.name])
        shaping = np.zeros(0)
        count = 0
        if self.rows.keeps_every:
            shaping = session.plant.shaping
            count = KEPT // self.rows.keeps_every + 1
        self._kept = np.zeros((count, shaping.nbytes // 8))
        self._shapes = np.zeros(1, COPY)
        _lead(self._shapes, shaping, self._kept)
        LAYOUT.fill(self._record, values | {"copies": self._copies, "shapes": self._shapes})

    @property
    def numbers(self) -> dict[str, NDArray[Any]]:
        """Numbers of the record, (1, ...)."""
        return {name: self._record[name].copy() for name in LAYOUT.numbers}

    @property
    def own(self) -> Arrays:
        """Arrays that belong to no part of the session."""
        names = "streams", "motors", "command"
        return {name: self._own[name].copy() for name in names}

    def take(self, numbers: Mapping[str, Any], own: Mapping[str, NDArray[Any]]) -> None:
        """Take over the numbers and arrays of a snapshot."""
        self.find()
        for name, value in numbers.items():
            self._record[name] = value
        for name, array in own.items():
            self._own[name][...] = array

    def prepare(self, tick: int) -> int:
        """Be ready for compiled stages; the periods for which they may run on."""
        now = self.now
        if self.unread_from is not None and tick >= self.unread_from + KEPT:
            self.read_rows()
        if self.unread_from is None:
            self.unread_from = tick
        session = self._session
        guidance = self._session.guidance
        now["tick"][0] = tick
        now["due"][0] = NEVER
        now["watch"][0] = guidance.watched
        replanned = guidance.plays and guidance.plan is not self._plan
        if replanned or session.plant.record is not self._plant:
            self.find()
        return self.unread_from + KEPT - tick

    def tell_played(self) -> None:
        """Tell observers what rows of the plan were played since the last time."""
        if count := int(self.now["played"][0]):
            with self._once("played"):
                self._session.guidance.on_played(self._own["played_rows"][:count].tolist())

    @contextmanager
    def _once(self, *counts: str) -> Iterator[None]:
        """Around what hands out rows; these counts of them are 0 then.

        After an interrupt, which may come at any line, they are handed out again: who takes them
        drops what came before. An error does not come twice.
        """
        try:
            yield
        except Exception:
            self._forget(counts)
            raise
        self._forget(counts)

    def _forget(self, counts: Sequence[str]) -> None:
        for name in counts:
            self.now[name][0] = 0

    def advance(self, stages: NDArray[np.int64], periods: int) -> None:
        """Call compiled stages, a piece after the other."""
        while True:
            piece = min(periods, PIECE)
            periods -= piece
            complete = advance_worlds(stages, self.address, 0, 1, piece)
            if not (complete and periods) or self._session.stopped:
                break

    def read_rows(self) -> None:
        """Give recorders what was flown since the last time, and note how close the drones came."""
        self.tell_played()
        if self.unread_from is None:
            return
        with self._once("announced", "recorded", "kept"):
            self._hand_out(self.unread_from)
        self.unread_from = None

    def _hand_out(self, tick: int) -> None:
        """Hand out the rows since a period."""
        session = self._session
        rows = self.rows
        now = self.now
        if announced := int(now["announced"][0]):
            first = -(-tick // ANNOUNCE_EVERY)
            for k, acceleration in enumerate(self._own["asked_rows"][:announced], start=first):
                session.guidance.on_controller_acceleration(ANNOUNCE_EVERY * k, acceleration)
        count = int(now["recorded"][0])
        kept_rows = int(now["kept"][0])
        if (separation := session.separation) is not None and count:
            due, times_s = self._due(separation.every, rows.every, tick, count)
            places = rows.arrays["motion"][due, :, :3]
            for time_s, kind, what in separation.look_at(times_s, places):
                session.events.note(time_s, kind, what)
        for observer in rows.observers:
            due, times_s = self._due(observer.recalls, rows.keeps_every, tick, kept_rows)
            if times_s:
                observer.recall(times_s, session.plant.recalled(self._kept[due]))
            due, times_s = self._due(observer.every, rows.every, tick, count)
            if times_s:
                observer.record(times_s, rows.seen(due))

    def _due(self, apart: int, every: int, tick: int, count: int) -> tuple[slice, list[float]]:
        """Slice and times of the rows that are due: one every `apart` periods."""
        if not (apart and count):
            return slice(0), []
        first = -(-tick // every)
        step = apart // every
        period_s = self._session.plant.period_s
        due = range(-first % step, count, step)
        times_s = [every * (first + row) * period_s for row in due]
        return slice(due.start, due.stop, due.step), times_s


def _lead(copy: NDArray[np.void], source: NDArray[Any], rows: NDArray[Any]) -> None:
    """Write what is copied where, (1,) of `COPY`."""
    fill(copy, {"source": source, "rows": rows, "words": source.nbytes // 8})
