"""The memory of a session as compiled code sees it: the record that leads to its arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import gcd
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.mission.plan import FlightPlan
from musls_control.mission.rows import ARMED
from musls_control.px4.cascade import Px4Cascade
from musls_description.numerics.arrays import Array
from musls_description.numerics.records import fill
from musls_sim.plants.interface import REFINEMENTS
from musls_sim.sensors.estimation import MotionCapture, Truth
from musls_sim.session.compiled_stages.world import (
    ANNOUNCE_EVERY,
    KEPT,
    NEVER,
    PIECE,
    WORLD,
    advance_worlds,
)
from musls_sim.session.flight import Flight
from musls_sim.session.loop import Observer

Arrays = dict[str, NDArray[Any]]
"""Arrays by their names in `WORLD`."""


def motion_capture_of(session: Flight) -> MotionCapture | None:
    """Motion capture of a session, None where it knows the truth."""
    estimator = session.components.estimator
    return estimator if isinstance(estimator, MotionCapture) else None


def sources_of(session: Flight) -> dict[str, Callable[[Array], None]]:
    """Sources of the noise of the next periods, by the array of `WORLD` that they fill."""
    components, link = session.components, session.setpoint_link
    sources: dict[str, Callable[[Array], None]] = {}
    if not components.wind.steady:
        sources["gusts_ahead"] = components.wind.fill
    if components.estimator.noisy:
        sources["noise_ahead"] = components.estimator.fill
    if len(session.load_cells.records):
        sources["cells_ahead"] = session.load_cells.fill
    if link is not None and link.jitters:
        sources["jitter_ahead"] = link.fill
    return sources


def ahead_of(session: Flight) -> Arrays:
    """Room for the noise of the next periods; without noise of a kind there is none."""
    n, sources = session.scenario.system.n_drones, sources_of(session)
    each: dict[str, tuple[int, ...]] = {
        "gusts_ahead": (3,),
        "noise_ahead": (1 + n, 13),
        "cells_ahead": (len(session.load_cells.records), 2),
        "jitter_ahead": (n,),
    }
    return {name: np.ones((PIECE * (name in sources), *shape)) for name, shape in each.items()}


def arrays_of(session: Flight) -> Arrays:
    """Arrays of a session, but those of its plant, and the noise to come."""
    components, wind, latency = session.components, session.components.wind, session.latency
    link, sensed, cells = session.setpoint_link, components.sensed, session.load_cells
    cascade, mocap = components.autopilot, motion_capture_of(session)
    n, rotors = session.scenario.system.n_drones, session.scenario.system.n_rotors
    control, steps, nothing = session.control, session.plant.step_arrays, np.zeros(0)
    peaks, way = session.tension_peaks, session.contingency
    return {
        **control.arrays,
        "estimate": components.estimator.estimate.data,
        "tension": components.estimator.estimate.tension_n,
        "constants": cascade.constants if isinstance(cascade, Px4Cascade) else nothing,
        "state": cascade.state if isinstance(cascade, Px4Cascade) else nothing,
        "mixers": cascade.mixers if isinstance(cascade, Px4Cascade) else nothing,
        "throttle": session.command.data,
        "command": np.zeros((n, rotors)),
        "late": nothing if latency is None else latency.delayed_rad_s,
        "delayed": nothing if latency is None else latency.ring,
        "losses": nothing if way is None else way.losses,
        "motors": np.ones(n),
        "wind": wind.velocity_enu_m_s,
        "mean_wind": wind.mean_enu_m_s,
        "gust": wind.gust_enu_m_s,
        "wrench_body": session.inputs.wrench_body,
        "wrench_enu": session.inputs.wrench_enu,
        "anchor_motion": session.inputs.anchor_motion,
        "anchor_wrench": session.inputs.anchor_wrench_enu,
        "winch": session.inputs.winch,
        "winch_brake": session.inputs.winch_brake,
        "winch_taken": session.inputs.winch_taken,
        "winch_ramp": session.inputs.winch_ramp,
        "targets": session.driver.targets,
        "largest": peaks.largest_n,
        "recent": peaks.recent_n,
        "sensors": nothing if mocap is None else mocap.sensors,
        "ring": nothing if mocap is None else mocap.ring,
        "links": nothing if link is None else link.links,
        "under_way": nothing if link is None else link.under_way,
        "sensed": nothing if sensed is None else sensed.state.motion,
        "faults": nothing if sensed is None else sensed.faults,
        "cells": cells.records,
        "shown": cells.measured_n,
        **power_arrays(session),
        **session.aerodynamics.arrays,
        "levels": steps.get("levels", nothing),
        "limits": steps.get("limits", nothing),
    }


def power_arrays(session: Flight) -> Arrays:
    """Arrays of motors, batteries and tilted rotors."""
    nothing, power, tilted = np.zeros(0), session.power, session.tilted
    return {
        "drives": nothing if power is None else power.rotors,
        "batteries": nothing if power is None else power.batteries,
        "reaction": nothing if power is None else power.reaction,
        "tilted_rotors": nothing if tilted is None else tilted.rotors,
        "tilt_health": nothing if tilted is None else tilted.health,
        "tilt_shift": nothing if tilted is None else tilted.shift,
    }


def state_of(session: Flight) -> Arrays:
    """Arrays of the state of a session's plant, and of its motor commands."""
    state = session.plant.state
    return {
        "plant": session.plant.record,
        "motion": state.motion,
        "speed": state.rotor_speed_rad_s,
        "force": state.cable_force_n,
        "peak": state.tension_peak_n,
        "told": session.inputs.rotor_command_rad_s,
    }


def rig_state_of(session: Flight) -> Arrays:
    """Arrays of the state of anchors, and of cables on winches."""
    state = session.plant.state
    return {
        "anchors": state.anchor_motion,
        "held": state.anchor_wrench_n,
        "free_length": state.free_length_m,
    }


def numbers_of(session: Flight) -> dict[str, Any]:
    """Numbers of a world that do not change in a flight, by their names in `WORLD`."""
    peak, told = session.plant.state.tension_peak_n, session.inputs.rotor_command_rad_s
    system, wind, latency = session.scenario.system, session.components.wind, session.latency
    mocap, link, estimator = (
        motion_capture_of(session),
        session.setpoint_link,
        session.components.estimator,
    )
    return {
        "period": session.plant.period_s,
        "n_drones": system.n_drones,
        "n_rotors": system.n_rotors,
        "n_cables": system.n_cables,
        "n_anchors": len(session.plant.state.anchor_motion),
        "n_winches": len(system.winches),
        "n_targets": len(session.driver.targets),
        "rig_numbers": session.driver.numbers,
        "rig_size": len(session.driver.numbers),
        "n_lengths": len(session.plant.state.free_length_m),
        "latency": 0 if latency is None else len(latency.ring),
        "gusty": not wind.steady,
        "keep": wind.keep,
        "gust_scale": tuple(wind.scale_m_s),
        "first": -1 if mocap is None else mocap.first,
        "deviation": estimator.noise if isinstance(estimator, Truth) else 0.0,
        "n_cells": len(session.load_cells.records),
        "way_size": 0 if link is None else len(link.under_way),
        "jitters": link is not None and link.jitters,
        "ring_size": 0 if mocap is None else len(mocap.ring),
        "substeps": session.plant.substeps,
        "refinements": REFINEMENTS,
        "reacts": session.power is not None and session.power.reacts,
        "peak_periods": session.tension_peaks.periods,
        "peak_apart": peak.strides[0] // 8 if len(peak) else 0,
        "told_apart": told.strides[0] // 8,
    }


SHARED = "reference", "table", "waits", "plan_rows", "rig_numbers"
"""Arrays that worlds share: the record has their addresses."""


def fill_world(record: NDArray[np.void], values: Mapping[str, Any]) -> None:
    """Write numbers into the record of a world, (1,), and where arrays are."""
    fill(record, {name: v.ctypes.data if name in SHARED else v for name, v in values.items()})


def rows_of(plan: FlightPlan, gone: NDArray[np.bool_], asks: NDArray[np.bool_]) -> dict[str, Any]:
    """Numbers of a plan in `WORLD`, and arrays that it leads to: nobody asks for what is gone.

    `asks`: rows in which Python has something to do, (k,).
    """
    count = len(plan.stage)
    table, lands = plan.setpoints.copy(), plan.lands_in(count - 1)
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
    "drawn",
    "verdict",
    "touches",
    "emptied",
    "recorded",
    "announced",
    "kept",
    "played",
)
"""Numbers of the record that Python reads, or sets, in flight."""


@dataclass(frozen=True)
class KeptRows:
    """Arrays that compiled code keeps of many periods.

    Attributes:
        every: Periods between two rows; 0 for none.
        keeps_every: Periods between two copies of `Plant.shaping`; 0 for none.
        observers: Observers that receive the rows.
        arrays: Motion, speeds of rotors, forces of cables, recent peaks, load cells, anchors, what
            holds them, free lengths, (rows, ...).
    """

    every: int
    keeps_every: int
    observers: list[Observer]
    arrays: Arrays


class World:
    """The record of a session, `WORLD`, and what is read from it.

    Attributes:
        unread_from: First period whose rows are not handed out; None when all are.
    """

    def __init__(self, session: Flight) -> None:
        """Take over what the session is at its start."""
        self._session = session
        self._record = np.zeros(1, WORLD)
        self.now = {name: self._record[name] for name in CHANGING}
        self.address = int(self._record.ctypes.data)
        asked = len(session.command.data) * session.control.announces
        self._own = arrays_of(session)
        self._own["asked_rows"] = np.zeros((KEPT // ANNOUNCE_EVERY, asked, 3))
        self._own |= {"played_rows": np.zeros((KEPT, 2), np.int64)} | ahead_of(session)
        self._sources = [(self._own[name], fill) for name, fill in sources_of(session).items()]
        self.now["drawn"][0] = PIECE
        self._plan: FlightPlan | None = None
        self.unread_from: int | None = None
        self.rows = self._make_rows()
        self.refresh()

    def _make_rows(self) -> KeptRows:
        session = self._session
        takers = [observer for observer in session.observers if observer.takes_rows(session)]
        every = keeps_every = 0
        for taker in takers:
            every, keeps_every = gcd(every, taker.every), gcd(keeps_every, taker.recalls)
        if session.separation is not None:
            every = gcd(every, session.separation.every)
        count = KEPT // every + 1 if every else 0
        rig = rig_state_of(session)
        shown, others = state_of(session) | rig | self._own, ("recent", "shown", *rig)
        names = "motion", "speed", "force", *others
        arrays = {name: np.zeros((count, *shown[name].shape)) for name in names}
        return KeptRows(every, keeps_every, takers, arrays)

    def refresh(self) -> None:
        """Write into the record where everything is."""
        session, watch = self._session, self._session.collisions
        self._arrays: Arrays = {
            **self._own,
            **session.control.arrays,
            **({} if watch is None else watch.arrays),
            **state_of(session),
            **rig_state_of(session),
            **{f"{name}_rows": array for name, array in self.rows.arrays.items()},
            **session.guidance.arrays,
            "sent": session.control.sent.data,
            "wanted": session.guidance.setpoint.data,
            "setpoint": session.control.heard.data,
        }
        if session.components.sensed is None:
            self._arrays["sensed"] = self._arrays["motion"]
        values = numbers_of(session) | {
            "reference_rows": len(self._arrays.get("reference", ())),
            "watched": 1,
            "every": self.rows.every,
            "keeps_every": self.rows.keeps_every,
            "n_solids": 0 if watch is None else len(watch.arrays["solids"]),
            "n_fastened": 0 if watch is None else len(watch.arrays["fastened"]),
            "n_obstacles": 0 if watch is None else len(watch.obstacles),
            "obstacle_solids": 0 if watch is None else len(watch.arrays["obstacles"]),
            "verdict": 0,
            "touches": 0,
            "emptied": 0,
            "landing": 0,
        }
        fill_world(self._record, values | self._arrays)
        self._find_plant()

    def _find_plant(self) -> None:
        """Write into the record where the plant is, which moves when it is built anew."""
        plant, every = self._session.plant, self.rows.keeps_every
        self._plant, count = plant.record, KEPT // every + 1 if every else 0
        shaping = plant.shaping if count else np.zeros(0)
        self._kept = np.zeros((count, shaping.nbytes // 8))
        found = {"plant": plant.record, "shaping": shaping, "kept_rows": self._kept}
        fill_world(self._record, found | {"words": self._kept.shape[1]})

    def _find_plan(self) -> None:
        """Write into the record what the plan is that is flown now."""
        self._plan, way = self._session.guidance.plan, self._session.contingency
        assert self._plan is not None
        gone = np.zeros(len(self._arrays["motors"]), bool) if way is None else way.gone
        self._flown = rows_of(self._plan, gone, self._plan.begins | ~self._plan.plain)
        fill_world(self._record, self._flown)

    def prepare(self, tick: int) -> int:
        """Be ready for compiled stages; the periods for which they may run on."""
        now = self.now
        if self.unread_from is not None and tick >= self.unread_from + KEPT:
            self.read_rows()
        if self.unread_from is None:
            self.unread_from = tick
        guidance = self._session.guidance
        now["tick"][0], now["due"][0], now["watch"][0] = tick, NEVER, guidance.watched
        if guidance.plays and guidance.plan is not self._plan:
            self._find_plan()
        if self._session.plant.record is not self._plant:
            self._find_plant()
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
        """Call compiled stages, a piece after the other; noise is drawn for each."""
        while True:
            if self.now["drawn"][0] == PIECE:
                self.now["drawn"][0] = 0
                for ahead, fill in self._sources:
                    fill(ahead)
            piece = min(periods, PIECE - int(self.now["drawn"][0]))
            periods -= piece
            ended = advance_worlds(stages, self.address, 0, 1, piece)
            if not (ended and periods) or self._session.stopped:
                break

    def read_rows(self) -> None:
        """Hand out the rows since the last time, and note how close the drones came."""
        self.tell_played()
        if self.unread_from is None:
            return
        with self._once("announced", "recorded", "kept"):
            self._hand_out(self.unread_from)
        self.unread_from = None

    def _hand_out(self, tick: int) -> None:
        """Hand out the rows since a period."""
        session, rows, now = self._session, self.rows, self.now
        if announced := int(now["announced"][0]):
            first = -(-tick // ANNOUNCE_EVERY)
            for k, asked in enumerate(self._own["asked_rows"][:announced], start=first):
                session.guidance.on_controller_acceleration(ANNOUNCE_EVERY * k, asked)
        count, kept = int(now["recorded"][0]), int(now["kept"][0])
        if (separation := session.separation) is not None and count:
            due, times_s = self._due(separation.every, rows.every, tick, count)
            places = rows.arrays["motion"][due, :, :3]
            for time_s, kind, what in separation.look_at(times_s, places):
                session.events.note(time_s, kind, what)
        for observer in rows.observers:
            due, times_s = self._due(observer.recalls, rows.keeps_every, tick, kept)
            if times_s:
                observer.recall(times_s, session.plant.recalled(self._kept[due]))
            due, times_s = self._due(observer.every, rows.every, tick, count)
            if times_s:
                observer.record(times_s, _seen({k: array[due] for k, array in rows.arrays.items()}))

    def _due(self, apart: int, every: int, tick: int, count: int) -> tuple[slice, list[float]]:
        """Slice and times of the rows that are due: one every `apart` periods."""
        if not (apart and count):
            return slice(0), []
        first, step, period_s = -(-tick // every), apart // every, self._session.plant.period_s
        due = range(-first % step, count, step)
        times_s = [every * (first + row) * period_s for row in due]
        return slice(due.start, due.stop, due.step), times_s


def _seen(rows: Arrays) -> Any:
    """Rows as a session whose arrays have the times as their first axis."""
    state = SimpleNamespace(
        motion=rows["motion"],
        rotor_speed_rad_s=rows["speed"],
        cable_force_n=rows["force"],
        anchor_motion=rows["anchors"],
        anchor_wrench_n=rows["held"],
        free_length_m=rows["free_length"],
    )
    return SimpleNamespace(
        plant=SimpleNamespace(state=state),
        tension_peaks=SimpleNamespace(recent_n=rows["recent"]),
        load_cells=SimpleNamespace(measured_n=rows["shown"]),
    )
