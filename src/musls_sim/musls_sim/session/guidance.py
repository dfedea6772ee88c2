"""Guidance: tells the drones where to be, and when the flight is over.

What is decided, `musls_control.mission.guidance` decides, as on the ROS graph; here it is fed with
the estimate of each period, and its set-points are handed out and announced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import (
    AFTER_DISARM_S,
    DISARM_AFTER_LANDING_S,
    LANDING_TIMEOUT_S,
    Autopilot,
    DroneSetpoints,
)
from musls_control.guard import LOOK_EVERY_S, GuardStep
from musls_control.mission.delivery import Delivery, Outlet, hook_requests
from musls_control.mission.guidance import FlightGuidance
from musls_control.mission.phase_end import DISARMED, PLAN_OVER, at_the_end
from musls_control.mission.plan import FlightPlan
from musls_control.mission.player import PlayState
from musls_control.mission.rows import PLAY, UNWATCHED, not_landed, wait_for_landing
from musls_control.mission.spec import GROUND_PHASES, LANDING, DeliverySpec
from musls_control.reference import LoadReference, Reference
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw
from musls_sim.plants.interface import EventRecord
from musls_sim.session.compiled_stages.fields import ANNOUNCE_EVERY
from musls_sim.session.event_queue import EventQueue
from musls_sim.session.loop import Observer

ROUNDING_S = 1e-9


class Guidance:
    """Set-points of all drones over time.

    This base gives none: the drones get their set-points in another way.

    Attributes:
        setpoint: Set-points that the autopilot is to follow now; the memory stays the same.
        stage: Name of the present phase or stage.
        landed: Whether the drones were found landed at the end.
        arrays: Arrays that compiled code works on, by their names in `WORLD`.
    """

    def __init__(self, n_drones: int, *, can_abort: bool = False) -> None:
        self.setpoint = DroneSetpoints.unset(n_drones)
        self.stage = ""
        self.finished = False
        self.landed = False
        self.can_abort = can_abort
        self.arrays: dict[str, NDArray[Any]] = {"play": np.zeros(1, PLAY)}

    @property
    def plan(self) -> FlightPlan | None:
        """Plan that is flown now."""
        return None

    @property
    def planned_s(self) -> float:
        """Estimated duration of the flight; infinite if not known."""
        return float("inf")

    @property
    def next_s(self) -> float:
        """Time of the next `step` that does something; in the past for every one."""
        return 0.0

    @property
    def plays(self) -> bool:
        """Whether compiled code may play the plan, up to a row that asks for Python."""
        return False

    @property
    def asks_s(self) -> float:
        """Time until which compiled code may run on, unless it finds a reason not to."""
        return self.next_s

    @property
    def begin_s(self) -> float:
        """Time when the plan began, or would have begun without its waits."""
        return 0.0

    @property
    def fed_m_s2(self) -> Array:
        """Accelerations that the plan feeds forward now, world ENU, (n, 3)."""
        return np.zeros((len(self.setpoint.data), 3))

    @property
    def watched(self) -> int:
        """Whether losses are looked for now, see `musls_control.mission.rows.ROW`."""
        return UNWATCHED

    @property
    def controls(self) -> bool:
        """Whether a controller of the load flies now, where there is one."""
        return self.stage not in GROUND_PHASES

    @property
    def reference(self) -> Reference | None:
        """Reference of the load since `begin_s`; None for that of the mission's plan."""
        return None

    def reference_at(self, time_s: float) -> LoadReference | None:
        """Reference of the load at a time, with derivatives; None for the plan's."""
        return None

    def abort(self, why: str) -> None:
        """Give the mission up."""

    def step(self, tick: int) -> None:
        """Update the set-points if it is time to."""

    def on_played(self, ticks_and_rows: Iterable[tuple[int, int]]) -> None:
        """Compiled code has played these rows of the plan, in these periods."""

    def on_controller_setpoints(self, tick: int) -> None:
        """A controller has written places into `setpoint`."""

    def on_controller_acceleration(self, tick: int, acceleration_enu_m_s2: Array) -> None:
        """A controller has written accelerations into `setpoint`; called at 50 Hz."""

    def on_controller_end(self, tick: int) -> None:
        """No controller writes into `setpoint` any more."""

    def keep_headings(self, time_s: float, yaw_enu_rad: Array) -> None:
        """A controller keeps these headings of the drones, (n,), from a time on."""


class MissionGuidance(Guidance):
    """Flies a mission: hands out its set-points, disarms after landing, ends the flight.

    Attributes:
        flight: Decisions in flight; requests (pause, goals, abort) go to `flight.player`.
        watch: Watch and weighing of a delivery; None for other missions.
    """

    def __init__(
        self,
        flight: FlightGuidance,
        autopilot: Autopilot,
        observers: Sequence[Observer],
        period_s: float,
        out: Outlet,
    ) -> None:
        """`out`: receivers of the flight's reports and requests, see `act_through`."""
        plan = flight.player.plan
        super().__init__(plan.drone_yaw_rad.shape[1])
        self.flight = flight
        self._autopilot = autopilot
        self._observers = observers
        self.watch: Delivery | None = flight.player.keeper
        self.can_abort = self.watch is not None
        self._period_s = period_s
        self._out = out
        self._shown = -1
        self._heard = 0
        self._look_s = np.inf if flight.guard is None else 0.0
        self._queue: EventQueue | None = None
        self.setpoint = flight.player.setpoint.drones
        self._planned = self.setpoint.data.copy()
        self._ending = not_landed()
        self.arrays = {
            "play": flight.player.play,
            "down": flight.down,
            "found": flight.found,
            "ending": self._ending,
        }
        self._by_controller = self._fresh = False
        self._headings: Array | None = None
        self._told: tuple[Reference, float] | None = None
        flight.begin(0.0)

    def act_through(self, queue: EventQueue) -> None:
        """Take the queue by which hooks open and close; open what is to be closed later."""
        self._queue = queue
        self._out.tell = queue.note
        self._out.ask = queue.apply
        self._out.end_phase = self._tell_end
        if self.watch is not None:
            check_hooks_of(self.watch.given, len(self.flight.known.estimate.tension_n), queue)
            self.watch.begin()

    @property
    def plan(self) -> FlightPlan:
        """Plan that is flown now."""
        return self.flight.player.plan

    @property
    def row(self) -> int:
        """Present row of the plan."""
        return self.flight.player.row

    @property
    def begin_s(self) -> float:
        """Time when the plan began, or would have begun without its waits; see `Guidance`."""
        return self.flight.player.begin_s

    @property
    def fed_m_s2(self) -> Array:
        """Accelerations that the plan feeds forward now, world ENU, (n, 3); see `Guidance`."""
        acceleration = self.plan.drone_acceleration_enu_m_s2
        return super().fed_m_s2 if acceleration is None else acceleration[self.row]

    @property
    def plays(self) -> bool:
        """Whether compiled code may play the plan, up to a row that asks for Python.

        See `Guidance`.
        """
        return self.flight.player.plays

    @property
    def watched(self) -> int:
        """Whether losses are looked for now, see `musls_control.mission.rows.ROW`.

        See `Guidance`.
        """
        return (
            UNWATCHED if self.flight.contingency is None else int(self.plan.rows["watch"][self.row])
        )

    @property
    def controls(self) -> bool:
        """Whether a controller of the load flies now, where there is one; see `Guidance`."""
        return super().controls and self.flight.controls()

    @property
    def reference(self) -> Reference:
        """Reference of the load since `begin_s`; None for that of the mission's plan.

        See `Guidance`.
        """
        return self.flight.player.reference

    def reference_at(self, time_s: float) -> LoadReference:
        """Reference of the load at a time, with derivatives."""
        return self.flight.player.reference_at(time_s)

    @property
    def planned_s(self) -> float:
        """Estimated duration of the flight."""
        lands = self.plan.landing_speed_m_s is not None
        after_landing = DISARM_AFTER_LANDING_S + AFTER_DISARM_S if lands else 0.0
        return self.begin_s + self.plan.duration_s + after_landing

    @property
    def next_s(self) -> float:
        """Time of the next `step` that does something; in the past for every one.

        See `Guidance`.
        """
        flight = self.flight
        player = self.flight.player
        if self._unheard or self._finds_losses:
            return 0.0
        waits = player.ended and player.state is not PlayState.PAUSED
        next_s = self._landing_s if waits or self._lands else flight.next_s
        return min(next_s, self._reaction_s) - ROUNDING_S

    @property
    def asks_s(self) -> float:
        """Time until which compiled code may run on, unless it finds a reason not to.

        See `Guidance`.
        """
        return self._reaction_s - ROUNDING_S if self.plays else self.next_s

    @property
    def _reaction_s(self) -> float:
        """Time of the next check for faults or reaction to a loss."""
        return min(self.flight.next_reaction_s, self._look_s)

    @property
    def _lands(self) -> bool:
        """Whether the guard has had all drones land."""
        guard = self.flight.guard
        return guard is not None and guard.step is GuardStep.LAND

    @property
    def _landing_s(self) -> float:
        """Time when the landing is over; in the past if a drone's landing state has changed.

        Never after a goal, where the load hangs until somebody asks for something else.
        """
        if self.plan.landing_speed_m_s is None:
            return np.inf
        since_s, disarmed_at_s, _ = self._ending.item()
        if np.isfinite(disarmed_at_s):
            return disarmed_at_s + AFTER_DISARM_S
        if self._are_down != np.isfinite(since_s):
            return 0.0
        latest_s = self.begin_s + self.plan.duration_s + LANDING_TIMEOUT_S
        return float(np.fmin(since_s + DISARM_AFTER_LANDING_S, latest_s))

    @property
    def _are_down(self) -> bool:
        """Whether all drones that fly are found landed."""
        way = self.flight.contingency
        fallen = False if way is None else way.fallen
        return bool((self._autopilot.landed | fallen).all())

    @property
    def _finds_losses(self) -> bool:
        """Whether compiled code has found that a drone does not carry any more."""
        way = self.flight.contingency
        return way is not None and way.has_news

    @property
    def _unheard(self) -> list[EventRecord]:
        """Events since the last report to a delivery; none for other missions."""
        if self.watch is None or self._queue is None:
            return []
        return self._queue.happened[self._heard :]

    def abort(self, why: str) -> None:
        """Give the delivery up once the drones fly in formation; not during the landing."""
        if self.watch is not None:
            self.watch.abort(why)

    def step(self, tick: int) -> None:
        """Update the set-points if it is time to."""
        time_s = tick * self._period_s
        flight = self.flight
        player = self.flight.player
        if time_s < self.next_s:
            return
        for event in self._unheard:
            assert self.watch is not None
            self.watch.on_event(event.kind)
            self._heard += 1
        if self._finds_losses or self._reaction_s - ROUNDING_S <= time_s:
            if self._look_s - ROUNDING_S <= time_s:
                self._look_s = time_s + LOOK_EVERY_S
            flight.look(time_s)
        if self._lands:
            if self.stage not in LANDING:
                self._enter(time_s, LANDING[1])
            self._wait_for_landing(time_s)
            return
        if time_s < flight.next_s - ROUNDING_S:
            return
        target = flight.step(time_s)
        row_before = self._shown
        self._shown = target.row
        if self._told != (player.reference, player.begin_s):
            self._told = (player.reference, player.begin_s)
            for observer in self._observers:
                observer.on_reference(time_s, *self._told)
        if self._shown != row_before:
            self._hand_out(time_s, target.drones.data)
        elif player.state is PlayState.DONE:
            self.finished = True
            flight.enter(time_s, "", PLAN_OVER)
        elif player.ended and self.plan.landing_speed_m_s is not None:
            self._wait_for_landing(time_s)

    def on_played(self, ticks_and_rows: Iterable[tuple[int, int]]) -> None:
        """Compiled code has played these rows of the plan, in these periods; see `Guidance`."""
        before = self.flight.player.number - self.row
        for tick, row in ticks_and_rows:
            self._shown = before + row
            self._tell_planned(tick * self._period_s, row)

    def _hand_out(self, time_s: float, setpoints: Array) -> None:
        self._fly_row(setpoints)
        self._fresh = True
        if not self._by_controller:
            self._tell_planned(time_s, self.row)
        self._enter(time_s, self.flight.player.stage)

    def _fly_row(self, setpoints: Array) -> None:
        """Send the set-points of the plan's present row."""
        self._planned = self.setpoint.data[:] = setpoints
        if (way := self.flight.contingency) is not None:
            self.setpoint.armed[way.fallen] = 0.0

    def on_controller_setpoints(self, tick: int) -> None:
        """Announce the controller's set-points instead of the formation's poses.

        A part that it leaves open (NaN) is announced as the formation has it.
        """
        self._by_controller = True
        if not self._fresh and tick % ANNOUNCE_EVERY:
            return
        setpoints = self.setpoint.data
        setpoints = np.where(np.isnan(setpoints), self._planned, setpoints)
        position, turn = (part[self.row] for part in self.plan.poses)
        position = np.vstack([position[:1], setpoints[:, 0:3]])
        turn = turn[:1]
        self._tell(tick * self._period_s, position, np.vstack([turn, from_yaw(setpoints[:, 9])]))
        if tick % ANNOUNCE_EVERY == 0 and np.isfinite(setpoints[:, 6:9]).any():
            self.on_controller_acceleration(tick, self.setpoint.data[:, 6:9])

    def on_controller_acceleration(self, tick: int, acceleration_enu_m_s2: Array) -> None:
        """Announce the accelerations that a controller asks of the autopilots."""
        for observer in self._observers:
            observer.on_acceleration(tick * self._period_s, acceleration_enu_m_s2)

    def on_controller_end(self, tick: int) -> None:
        """Lead the drones from where they are, and announce the formation's poses again."""
        self._headings = None
        self._by_controller = False
        self.flight.hand_back()
        self._fly_row(self.flight.player.setpoint.drones.data)
        self._tell_planned(tick * self._period_s, self.row)

    def keep_headings(self, time_s: float, yaw_enu_rad: Array) -> None:
        """Announce these headings instead of the formation's."""
        self._headings = np.array(yaw_enu_rad)
        self._tell_planned(time_s, self.row)

    def _tell_planned(self, time_s: float, row: int) -> None:
        position, turn = (part[row] for part in self.plan.poses)
        if self._headings is not None:
            turn = np.vstack([turn[:1], from_yaw(self._headings)])
        self._tell(time_s, position, turn)

    def _tell(self, time_s: float, position: Array, turn: Array) -> None:
        self._fresh = False
        if not len(self.setpoint.data):  # nobody can be asked for anything
            return
        for observer in self._observers:
            observer.on_setpoint(time_s, position, turn)

    def _enter(self, time_s: float, stage: str) -> None:
        if stage != self.stage:
            self.stage = stage
            watch = self.watch
            if stage == "release" and watch is not None and watch.given.drop == "air":
                self._autopilot.scale_load(watch.left_share())  # they fly on with their own weight
            for observer in self._observers:
                observer.on_stage(time_s, stage)

    def _wait_for_landing(self, time_s: float) -> None:
        late = time_s - self.begin_s - self.plan.duration_s > LANDING_TIMEOUT_S
        self.finished = wait_for_landing(self._ending[0], self._are_down, late, time_s)
        self.landed = bool(self._ending["landed"][0])
        if np.isfinite(self._ending["disarmed_at"][0]):
            self.setpoint.armed[:] = 0.0
            self.flight.enter(time_s, DISARMED, at_the_end(landed=self.landed))
            self._enter(time_s, DISARMED)

    def _tell_end(self, time_s: float, what: str) -> None:
        for observer in self._observers:
            observer.on_phase_end(time_s, what)


def check_hooks_of(given: DeliverySpec, n_cables: int, queue: EventQueue) -> None:
    """Refuse, before the flight, a delivery whose hooks this cable model cannot have."""
    for request in ({"kind": "release"}, *hook_requests(given, n_cables)):
        queue.check(request)
