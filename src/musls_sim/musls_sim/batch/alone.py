"""One flight in compiled code, the same to the last bit as by the steps of its session.

The session keeps its arrays: its record, `WORLD`, leads to them. Python comes in where there is
something to do for it: at new set-points, when something touches, when cables go slack or taut.
What is recorded, and how close the drones come, is read from rows that the compiled code keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, gcd
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.controllers.interface import level_of
from musls_description.config.errors import ConfigError
from musls_description.config.registry import user_code
from musls_description.system.slung_system import SlungLoadSystem
from musls_sim.batch.laws import law_of, sampled
from musls_sim.batch.memory import (
    ALL_LEVELS,
    CONTROLLERS,
    PIECE,
    arrays_of,
    check_events,
    check_scenario,
    check_session,
    kernel_of,
    motion_capture_of,
    numbers_of,
    refuse,
)
from musls_sim.batch.world import AUTOPILOT_FORCES, IDEAL_THRUST_MOMENT, SETPOINTS, WORLD
from musls_sim.recording.recorder import MemoryRecorder
from musls_sim.session.guidance import ANNOUNCE_EVERY
from musls_sim.session.session import ENERGY_PERIODS, Session

BEFORE = ("reference", "events", "links")
AFTER = ("cable_events", "energy", "collisions", "controller_events")
COMPILED = ("separation", "observers", "control", "command_latency", "wind", "plant", "estimation")
"""Steps of a session that are called before and after compiled code, and those that are in it."""

CHANGING = ("tick", "failed", "drawn", "halted", "verdict", "recorded")
"""Numbers of the record that Python reads, or sets, in flight."""


class CompiledFlight:
    """Flies a session to its end, and records it."""

    def __init__(self, session: Session, recorder: MemoryRecorder) -> None:
        """Prepare a session before its start.

        The recorder, which records no shapes of cables, is its only observer.

        Raises:
            ConfigError: The session has something for which there is no compiled code.
        """
        _check(session)
        self._session, self._recorder = session, recorder
        state, peaks, inputs = session.plant.state, session.tension_peaks, session.inputs
        assert session.collisions is not None
        self._every = recorder.every
        if session.separation is not None:
            self._every = gcd(recorder.every, session.separation.every)
        inputs.rotor_command_rad_s = np.ascontiguousarray(inputs.rotor_command_rad_s)
        shown = {
            "motion": state.motion,
            "speed": state.rotor_speed_rad_s,
            "force": state.cable_force_n,
            "recent": peaks.recent_n,
        }
        rows = PIECE // self._every + 1
        self._rows = {name: np.zeros((rows, *array.shape)) for name, array in shown.items()}
        self._level, self._fly_load = SETPOINTS, None
        law = dict[str, NDArray[Any]]()
        if session.flying is not None:
            session.control.take_over(0.0)
            self._fly_load, law = law_of(session.flying)
            self._level = ALL_LEVELS[level_of(session.flying)]
            plan = session.components.plan
            law["reference"] = sampled(plan.reference, session.plant.period_s, plan.duration_s)
        self._arrays: dict[str, NDArray[Any]] = {
            **arrays_of(session, self._level),
            **law,
            **session.collisions.arrays,
            **shown,
            **{f"{name}_rows": array for name, array in self._rows.items()},
            "setpoint": session.links.heard.data,
            "command": inputs.rotor_command_rad_s,
        }
        self._arrays["asked"][:, :4] = np.nan  # nothing: the set-points are flown
        self._world = np.zeros(1, WORLD)
        self._now = {name: self._world[name] for name in CHANGING}
        self._write_record()
        self._noisy = bool(self._world["gusty"][0] or self._world["first"][0] >= 0)
        self._kernel = kernel_of(session.scenario.cable_model)
        self._kernel(self._address, 0, 0, 0)  # compiles, if that has not been done
        if self._fly_load is not None:
            self._fly_load(self._address, 0, 0)

    def _write_record(self) -> None:
        """Write what does not change in the flight."""
        session, plant, arrays = self._session, self._session.plant, self._arrays
        peak = plant.state.tension_peak_n
        values = numbers_of(session) | {
            "level": self._level,
            "reference_rows": len(arrays.get("reference", ())),
            "drawn": PIECE,
            "watched": 1,
            "every": self._every,
            "peak_periods": session.tension_peaks.periods,
            "n_cables": len(peak),
            "n_solids": len(arrays["solids"]),
            "n_fastened": len(arrays["fastened"]),
            "plant": plant.address,
            "peak": peak.ctypes.data,
            "peak_apart": peak.strides[0] // 8,
        }
        values |= {name: array.ctypes.data for name, array in arrays.items()}
        for name, value in values.items():
            self._world[name] = value
        self._address = self._world.ctypes.data

    def run(self) -> None:
        """Fly; see `Session.run`."""
        session, steps, now = self._session, self._session.steps, self._now
        before = [steps[name] for name in BEFORE]
        after = [steps[name] for name in AFTER if name in steps]
        with session, user_code(lambda: f" at {session.time_s:.3f} s"):
            while not session.finished:
                for step in before:
                    step(session.tick)
                begin, end = session.tick, self._advance(self._periods())
                self._read_rows(begin)
                failed, verdict = int(now["failed"][0]), int(now["verdict"][0])
                session.tick = end - 1 + failed
                session.plant.account(verdict, session.inputs, end - begin + failed)
                if now["halted"][0] or session.tick % ENERGY_PERIODS == 0:
                    for step in after:
                        step(session.tick)
                session.tick = end

    def _periods(self) -> int:
        """Control periods until a step in Python has something to do."""
        session, tick = self._session, self._session.tick
        if tick % ENERGY_PERIODS == 0:
            return 1
        next_s = min(session.guidance.next_s, session.events.next_s)
        planned = ceil(next_s / session.plant.period_s)
        return max(1, min(planned - tick, ENERGY_PERIODS - tick % ENERGY_PERIODS))

    def _advance(self, periods: int) -> int:
        """Advance by so many periods, or fewer; the number of the period then."""
        session, now = self._session, self._now
        if self._noisy and now["drawn"][0] == PIECE:
            now["drawn"][0] = 0
            session.components.wind.fill(self._arrays["gusts_ahead"])
            if (mocap := motion_capture_of(session)) is not None:
                mocap.source.fill(self._arrays["noise_ahead"])
        left = PIECE - int(now["drawn"][0]) if self._noisy else PIECE
        now["halted"][0] = now["recorded"][0] = 0
        begin_s = perf_counter()
        periods = min(periods, left)
        if self._fly_load is None:
            self._kernel(self._address, 0, 1, periods)
        else:
            self._advance_controlled(self._fly_load, periods)
        session.plant_s += perf_counter() - begin_s
        return int(now["tick"][0])

    def _advance_controlled(self, fly_load: Callable[[int, int, int], None], periods: int) -> None:
        """The same with a controller of the load."""
        session, now = self._session, self._now
        for tick in range(session.tick, session.tick + periods):
            fly_load(self._address, 0, 1)
            self._kernel(self._address, 0, 1, 1)
            if self._level == AUTOPILOT_FORCES and tick % ANNOUNCE_EVERY == 0:
                session.guidance.on_controller_acceleration(tick)
            if now["halted"][0] or now["failed"][0]:
                return

    def _read_rows(self, tick: int) -> None:
        """Record what was seen since a period, and note how close the drones came."""
        count, every = int(self._now["recorded"][0]), self._every
        if count == 0:
            return
        ticks = every * (-(-tick // every) + np.arange(count))
        rows = {name: array[:count] for name, array in self._rows.items()}
        self._record(ticks, rows)
        separation = self._session.separation
        if separation is not None:
            due = ticks % separation.every == 0
            times_s = (ticks[due] * self._session.plant.period_s).tolist()
            places = rows["motion"][due, :, :3]
            for time_s, kind, what in separation.look_at(times_s, places):
                self._session.events.note(time_s, kind, what)

    def _record(self, ticks: NDArray[np.int64], rows: dict[str, NDArray[Any]]) -> None:
        due = ticks % self._recorder.every == 0
        now = {name: array[due] for name, array in rows.items()}
        state = SimpleNamespace(
            motion=now["motion"],
            rotor_speed_rad_s=now["speed"],
            cable_force_n=now["force"],
            anchor_motion=(),
        )
        seen = SimpleNamespace(
            plant=SimpleNamespace(state=state),
            tension_peaks=SimpleNamespace(recent_n=now["recent"]),
        )
        self._recorder.record((ticks[due] * self._session.plant.period_s).tolist(), seen)


def _check(session: Session) -> None:
    """Refuse what has no compiled code."""
    scenario = session.scenario
    check_scenario(scenario)
    if scenario.controller.kind not in CONTROLLERS:
        refuse(scenario, "controller.kind", scenario.controller.kind, ", ".join(CONTROLLERS))
    if session.flying is not None:
        if scenario.start.kind == "ground":
            refuse(scenario, "start.kind", "ground", "air or state with a controller")
        if ALL_LEVELS.get(level_of(session.flying)) in (None, IDEAL_THRUST_MOMENT):
            level = level_of(session.flying).value
            raise ConfigError(f"a controller of level {level} has no compiled code")
    check_events(scenario)
    if scenario.world.obstacles:
        refuse(scenario, "world.obstacles", scenario.world.obstacles[0].name, "empty")
    if not isinstance(scenario.system, SlungLoadSystem) or not scenario.system.drones:
        refuse(scenario, "system", scenario.system.name, "drones with a load")
    check_session(session)
    for name in session.step_names:
        if name not in (*BEFORE, *COMPILED, *AFTER):
            raise ConfigError(f"step '{name}' is not in compiled code")
