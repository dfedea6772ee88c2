"""Guidance: tells the drones where to be, and when the flight is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import (
    AFTER_DISARM_S,
    DISARM_AFTER_LANDING_S,
    LANDING_TIMEOUT_S,
    Autopilot,
    DroneSetpoints,
    LandingTimer,
)
from musls_control.mission.delivery import Delivery, Hooks
from musls_control.mission.plan import FlightPlan
from musls_control.mission.player import PlanPlayer
from musls_control.mission.spec import DeliverySpec
from musls_control.reference import LoadReference, Reference
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw
from musls_sim.scenario.events import Attach, Release, When
from musls_sim.session.compiled_stages.world import ANNOUNCE_EVERY
from musls_sim.session.event_queue import EventQueue
from musls_sim.session.loop import Observer

ROUNDING_S = 1e-9


class Guidance:
    """Set-points of all drones over time.

    This base gives none: the drones get their set-points in another way.

    Attributes:
        setpoint: What the autopilot is to follow now; the memory stays the same.
        stage: Name of the present phase or stage.
        landed: Whether the drones were found landed at the end.
    """

    def __init__(self, n_drones: int, *, can_abort: bool = False) -> None:
        self.setpoint = DroneSetpoints.unset(n_drones)
        self.stage, self.finished, self.landed = "", False, False
        self.can_abort = can_abort

    @property
    def planned_s(self) -> float:
        """About how long the flight takes; infinite where it is not known."""
        return float("inf")

    @property
    def next_s(self) -> float:
        """Time of the next `step` that does something; in the past for every one."""
        return 0.0

    @property
    def begin_s(self) -> float:
        """When the plan began, or would have begun without its waits."""
        return 0.0

    @property
    def fed_m_s2(self) -> Array:
        """Accelerations that the plan feeds forward now, world ENU, (n, 3)."""
        return np.zeros((len(self.setpoint.data), 3))

    def reference_at(self, time_s: float) -> LoadReference | None:
        """Reference of the load at a time, with derivatives; None for the plan's."""
        return None

    def abort(self, why: str) -> None:
        """Give the mission up."""

    def step(self, tick: int) -> None:
        """Update the set-points if it is time to."""

    def on_controller_setpoints(self, tick: int) -> None:
        """A controller has written places into `setpoint`."""

    def on_controller_acceleration(self, tick: int, acceleration_enu_m_s2: Array) -> None:
        """A controller has written accelerations into `setpoint`; called at 50 Hz."""

    def on_controller_end(self, tick: int) -> None:
        """No controller writes into `setpoint` any more."""

    def keep_headings(self, time_s: float, yaw_enu_rad: Array) -> None:
        """A controller keeps these headings of the drones, (n,), from a time on."""


Note = Callable[[float, str, str], None]


class MissionGuidance(Guidance):
    """Plays a flight plan: hands out its set-points, disarms after landing, ends the flight."""

    def __init__(
        self,
        plan: FlightPlan,
        autopilot: Autopilot,
        observers: Sequence[Observer],
        period_s: float,
        places_enu_m: Array | None = None,
    ) -> None:
        """`places_enu_m`: where load and drones are found to be, (1 + n, 3), one memory."""
        super().__init__(plan.drone_yaw_rad.shape[1])
        self._autopilot, self._observers, self._places = autopilot, observers, places_enu_m
        self.note: Note = lambda time_s, kind, what: None
        self._period_s = period_s
        self._player = PlanPlayer(plan)
        self._gone = np.zeros(plan.drone_yaw_rad.shape[1], bool)
        self.setpoint = plan.drone_setpoints(0, touches_down=plan.lands_in(0))
        self._by_controller = self._fresh = False
        self._headings: Array | None = None
        self._told: tuple[Reference, float] | None = None
        self._landing = LandingTimer()
        self._disarmed_at_s: float | None = None

    @property
    def plan(self) -> FlightPlan:
        """Plan that is flown now."""
        return self._player.plan

    @property
    def row(self) -> int:
        """Present row of the plan."""
        return max(self._player.row, 0)

    def replace(self, plan: FlightPlan, tick: int, gone: NDArray[np.bool_]) -> None:
        """Fly another plan from the next period on.

        `gone`: drones that do not fly any more, (n,): they are disarmed, and not waited for.
        """
        self._gone = self._gone | gone
        self._player.take(plan, (tick + 1) * self._period_s)

    @property
    def begin_s(self) -> float:
        """See `Guidance`."""
        return self._player.begin_s

    @property
    def fed_m_s2(self) -> Array:
        """See `Guidance`."""
        fed = self.plan.drone_acceleration_enu_m_s2
        return super().fed_m_s2 if fed is None else fed[self.row]

    def reference_at(self, time_s: float) -> LoadReference:
        """Reference of the load at a time, with derivatives."""
        return self._player.reference_at(time_s)

    @property
    def planned_s(self) -> float:
        """About how long the flight takes."""
        lands = self.plan.landing_speed_m_s is not None
        after_landing = DISARM_AFTER_LANDING_S + AFTER_DISARM_S if lands else 0.0
        return self._player.begin_s + self.plan.duration_s + after_landing

    @property
    def next_s(self) -> float:
        """See `Guidance`."""
        return self._player.next_s - ROUNDING_S

    def step(self, tick: int) -> None:
        """Update the set-points if it is time to."""
        time_s, player = tick * self._period_s, self._player
        if time_s < self.next_s:
            return
        places = self._places
        if places is not None and self._gone.any():  # nobody waits for a drone that is lost
            places = places.copy()
            places[1:][self._gone] = np.nan
        changed = player.advance(time_s, places)
        if places is not None and (missed := player.missed(places)):
            self.note(time_s, "not_in_place", missed)
        if self._told != (player.plan.reference, player.begin_s):
            self._told = (player.plan.reference, player.begin_s)
            for observer in self._observers:
                observer.on_reference(time_s, *self._told)
        if changed:
            self._hand_out(time_s)
        elif not player.ended:
            return
        elif self.plan.landing_speed_m_s is None:
            self.finished = True
        else:
            self._wait_for_landing(time_s)

    def _hand_out(self, time_s: float) -> None:
        self._fly_row()
        self._fresh = True
        if not self._by_controller:
            self._tell_planned(time_s)
        self._enter(time_s, self.plan.stage_at(self.row))

    def _fly_row(self) -> None:
        """Ask the drones for what the plan says now."""
        self.setpoint.data[:] = self._planned()
        self.setpoint.armed[self._gone] = 0.0

    def _planned(self) -> Array:
        plan, row = self.plan, self.row
        return plan.drone_setpoints(row, touches_down=plan.lands_in(row)).data

    def on_controller_setpoints(self, tick: int) -> None:
        """Announce what a controller asks of the drones, in the place of the formation's poses.

        A part that it leaves open (NaN) is announced as the formation has it.
        """
        self._by_controller = True
        if not self._fresh and tick % ANNOUNCE_EVERY:
            return
        asked = self.setpoint.data
        asked = np.where(np.isnan(asked), self._planned(), asked)
        self._tell(tick * self._period_s, asked[:, 0:3], from_yaw(asked[:, 9]))
        if tick % ANNOUNCE_EVERY == 0 and np.isfinite(asked[:, 6:9]).any():
            self.on_controller_acceleration(tick, self.setpoint.data[:, 6:9])

    def on_controller_acceleration(self, tick: int, acceleration_enu_m_s2: Array) -> None:
        """Announce the accelerations that a controller asks of the autopilots."""
        for observer in self._observers:
            observer.on_acceleration(tick * self._period_s, acceleration_enu_m_s2)

    def on_controller_end(self, tick: int) -> None:
        """Announce the formation's poses again."""
        if self._headings is not None:
            self._headings = None
            self._tell_planned(tick * self._period_s)
        if self._by_controller:
            self._by_controller = False
            self._fly_row()
            self._tell_planned(tick * self._period_s)

    def keep_headings(self, time_s: float, yaw_enu_rad: Array) -> None:
        """Announce these headings instead of the formation's."""
        self._headings = np.array(yaw_enu_rad)
        self._tell_planned(time_s)

    def _tell_planned(self, time_s: float) -> None:
        plan, row = self.plan, self.row
        yaw = plan.drone_yaw_rad[row] if self._headings is None else self._headings
        self._tell(time_s, plan.drone_position_enu_m[row], from_yaw(yaw))

    def _tell(self, time_s: float, drone_positions: Array, drone_quaternions: Array) -> None:
        self._fresh = False
        if not len(self.setpoint.data):  # nobody can be asked for anything
            return
        position = np.vstack([self.plan.load_pose[self.row, :3], drone_positions])
        turn = np.vstack([self.plan.load_orientation_wxyz[self.row], drone_quaternions])
        for observer in self._observers:
            observer.on_setpoint(time_s, position, turn)

    def _enter(self, time_s: float, stage: str) -> None:
        if stage != self.stage:
            self.stage = stage
            for observer in self._observers:
                observer.on_stage(time_s, stage)

    def _wait_for_landing(self, time_s: float) -> None:
        if self._disarmed_at_s is not None:
            self.finished = time_s - self._disarmed_at_s >= AFTER_DISARM_S
            return
        down = bool((self._autopilot.landed | self._gone).all())
        self.landed = self._landing.update(time_s, down)
        if self.landed or time_s - self._player.begin_s - self.plan.duration_s > LANDING_TIMEOUT_S:
            self.setpoint.armed[:] = 0.0
            self._disarmed_at_s = time_s
            self._enter(time_s, "disarmed")


# ---------- A delivery: a flight plan whose gates wait for what really happens

WEIGH_EVERY = 5
"""Control periods between two samples of the rotor speeds: 50 Hz."""

AT_ONCE = When(time_s=0.0)


class QueueHooks:
    """Hooks that open and close by events of the session, see `musls_control.mission.delivery`.

    Attributes:
        closing: What closes them, once they are to close.
    """

    def __init__(self, queue: EventQueue) -> None:
        self._queue, self.note, self.closing = queue, queue.note, list[Attach]()

    def open(self, name: str | None = "delivered") -> None:
        """See `Hooks`."""
        self._queue.apply(Release(when=AT_ONCE, name=name))

    def close(self) -> None:
        """See `Hooks`."""
        for hook in self.closing:
            self._queue.apply(hook)

    @property
    def closed(self) -> int:
        """See `Hooks`."""
        return sum(event.kind == "attach" for event in self._queue.happened)


class DeliveryGuidance(MissionGuidance):
    """Plays the plan of a delivery; it waits at its gates, opens hooks, aborts.

    Attributes:
        watch: What it waits for, and what was weighed.
    """

    watch: Delivery

    def __init__(
        self,
        plan: FlightPlan,
        autopilot: Autopilot,
        observers: Sequence[Observer],
        period_s: float,
        places_enu_m: Array | None,
        make_watch: Callable[[Hooks], Delivery],
    ) -> None:
        """`make_watch`: makes what watches over the delivery, given its hooks (`act_through`)."""
        super().__init__(plan, autopilot, observers, period_s, places_enu_m)
        self._make_watch = make_watch
        self.can_abort = True

    def act_through(self, queue: EventQueue) -> None:
        """Take the queue through which hooks open and close; open what is to be closed later."""
        hooks = QueueHooks(queue)
        self.watch = self._make_watch(hooks)
        hooks.closing = check_hooks_of(self.watch.given, self.watch.n_cables, queue)
        if hooks.closing:
            hooks.open(None)
        self._player = PlanPlayer(self.plan, self.watch)

    def abort(self, why: str) -> None:
        """Give the delivery up, as soon as the drones fly in formation; not while they land."""
        self.watch.abort(why)

    def replace(self, plan: FlightPlan, tick: int, gone: NDArray[np.bool_]) -> None:
        """See `MissionGuidance.replace`: what takes over waits for nothing."""
        self._player.keeper = None
        super().replace(plan, tick, gone)

    @property
    def next_s(self) -> float:
        """See `Guidance`: it weighs, and its gates look, all the time."""
        return 0.0

    def step(self, tick: int) -> None:
        """See `MissionGuidance.step`."""
        player, period_s = self._player, self._period_s
        if tick % WEIGH_EVERY == 0:
            self.watch.weigh(WEIGH_EVERY * period_s)
        if self.watch.turns_back and player.keeper is not None:
            player.keeper = None
            self.watch.tell_abort(tick * period_s)
            player.take(self.watch.way_back(self.row), tick * period_s)
        super().step(tick)

    def _enter(self, time_s: float, stage: str) -> None:
        """See `MissionGuidance`; drones that let the load go fly on with their own weight."""
        lets_go = stage == "release" != self.stage
        super()._enter(time_s, stage)
        self.watch.enter(stage)
        if lets_go and self.watch.given.drop == "air":
            self._autopilot.scale_load(self.watch.left_share())


def check_hooks_of(given: DeliverySpec, n_cables: int, queue: EventQueue) -> list[Attach]:
    """Refuse, before the flight, a delivery whose hooks this cable model cannot have.

    Returns:
        What closes the hooks of all cables; nothing where they are not to close.
    """
    queue.check(Release(when=AT_ONCE))
    if given.pick_up != "hook":
        return []
    close_m, slow_m_s = given.hook_distance_m, given.hook_speed_m_s
    hooks = [
        Attach(when=AT_ONCE, cable=1 + i, distance_m=close_m, speed_m_s=slow_m_s)
        for i in range(n_cables)
    ]
    for hook in hooks:
        queue.check(hook)
    return hooks
