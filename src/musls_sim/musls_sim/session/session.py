"""One simulation of one scenario, ready to run: `Session`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import MotorCommands
from musls_control.controllers import Controller
from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_sim.contingency.watch import contingency_of
from musls_sim.plants.interface import PlantInputs, PlantState
from musls_sim.power import Power
from musls_sim.preflight.separation import SeparationWatch
from musls_sim.scenario.events import EventContext, EventSpec
from musls_sim.scenario.physics import CONTROL_PERIOD_S
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.compose import Components, MakeAutopilot, compose, mission_guidance
from musls_sim.session.control import Control, make_controller
from musls_sim.session.delivery import DeliveryGuidance
from musls_sim.session.driving import RigDriver
from musls_sim.session.event_queue import EventQueue
from musls_sim.session.guidance import Guidance
from musls_sim.session.imperfections import CommandLatency, SetpointLink, TiltedThrust
from musls_sim.session.links import DroneLinks
from musls_sim.session.loop import Loop, Observer, Pace, Step

# ---------- Result of a flight


@dataclass(frozen=True)
class FlightResult:
    """What a flight says about itself.

    Attributes:
        plant_step_us: Mean time of one control period in the plant but the first, which may
            compile [us].
        controller_step_us: Mean time of one call of the controller [us]; None without one.
        max_tension_n: Largest tension of each cable over all steps, (n_cables,).
        tension_peaks: The same over time: middle of intervals of 20 ms, (k,) [s], and tensions,
            (k, n_cables).
        landed: Whether the drones were found landed at the end.
        interrupted: Whether the user ended it.
    """

    sim_time_s: float
    wall_time_s: float
    periods: int
    plant_step_us: float
    controller_step_us: float | None
    max_tension_n: Array
    tension_peaks: tuple[Array, Array]
    landed: bool
    interrupted: bool


# ---------- Largest tensions over time, which the recording's rate would miss

PERIODS = 5
"""Control periods whose largest tension is kept together: 20 ms."""


class TensionPeaks:
    """Largest tension of each cable over all steps of successive intervals of 20 ms."""

    def __init__(self, n_cables: int) -> None:
        """Prepare."""
        self._now, self._before = np.zeros(n_cables), np.zeros(n_cables)
        self._kept = array("f")
        self._periods = 0

    def note(self, peak_n: Array) -> None:
        """Take in the largest tension of each cable in one control period, (n_cables,)."""
        np.maximum(self._now, peak_n, out=self._now)
        self._periods += 1
        if self._periods % PERIODS == 0:
            self._kept.extend(self._now.tolist())
            np.maximum(self._before, self._now, out=self._before)
            self._now[:] = 0.0

    @property
    def largest_n(self) -> Array:
        """Largest tension of each cable so far, (n_cables,)."""
        largest: Array = np.maximum(self._before, self._now)
        return largest

    def track(self) -> tuple[Array, Array]:
        """Middle of each interval, (k,) [s], and largest tensions in it, (k, n_cables)."""
        last = self._now if self._periods % PERIODS else np.zeros(0)
        rows = -(-self._periods // PERIODS)
        tension: Array = np.append(self._kept, last).reshape(rows, len(self._now))
        middle: Array = np.arange(rows, dtype=np.float64) + 0.5
        time_s: Array = middle * PERIODS * CONTROL_PERIOD_S
        return time_s, tension


Array = NDArray[np.float64]

MakeController = type[Controller] | Callable[..., Controller]


class Session(Loop):
    """Composes a simulation from a scenario and runs it.

    In every control period: guidance and events decide what is asked for, the observers look,
    then control, wind, plant and estimator move the system to the end of the period. These steps
    have names (`step_names`); steps of one's own come in by `insert_before` and `insert_after`.

        with Session(scenario) as session:
            while not session.finished:
                session.advance(1)

    Attributes:
        scenario: What is simulated.
        parts: What it is made of.
        guidance: Set-points over time.
        power: Motors and batteries; None where no drone has any.
        separation: How close the drones came; None for one drone.
        contingency: What is done when a drone is lost; None without.
        inputs: What acts on the plant; whoever pushes a body writes into `inputs.wrench_enu`.
        command: What the motors are told.
        events: What happens, and has happened, to the system.
        tension_peaks: Largest tensions over time.
        plant_s: Wall time spent in the plant, without the first period, which compiles.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        controller: Controller | MakeController | None = None,
        observers: Sequence[Observer] = (),
        force: bool = False,
        autopilot_logs: Path | None = None,
        make_autopilot: MakeAutopilot | None = None,
        make_guidance: Callable[[Components, Sequence[Observer]], Guidance] = mission_guidance,
    ) -> None:
        """Check the scenario and build everything.

        Args:
            scenario: What to simulate.
            controller: Another controller than the scenario's: an object, or a class that needs
                no arguments.
            observers: What watches the run.
            force: Fly in spite of too little thrust.
            autopilot_logs: Folder for what real autopilots print; default "px4" here.
            make_autopilot: Builds another autopilot than the scenario's.
            make_guidance: Builds another guidance than the mission's.

        Raises:
            ConfigError: The scenario cannot work.
            Px4Error: A real PX4 is asked for and there is none.
        """
        self.scenario = scenario
        self.flying = flying = make_controller(scenario, CONTROL_PERIOD_S, controller)
        self.parts = compose(
            scenario,
            autopilot_logs or Path("px4"),
            force=force,
            make_autopilot=make_autopilot,
            with_load=flying is not None or scenario.mission.kind == "delivery",
        )
        super().__init__(self.parts.plant)
        self._closing.callback(self._note_wall_time)
        self._closing.callback(self.parts.autopilot.close)
        try:
            self._connect(flying, make_guidance)
        except BaseException:
            self.close()
            raise
        for observer in observers:
            self.observe_with(observer)

    def _connect(
        self,
        flying: Controller | None,
        make_guidance: Callable[[Components, Sequence[Observer]], Guidance],
    ) -> None:
        """Connect everything, and name the steps; what this flight does not need has none."""
        scenario, parts, plant = self.scenario, self.parts, self.plant
        system, faults = scenario.system, scenario.imperfections
        guided, period_s = flying is None, plant.period_s
        self.guidance = guidance = make_guidance(parts, self.observers)
        self.inputs = inputs = PlantInputs.zeros(system)
        self.command = MotorCommands.zeros(system.n_drones, system.n_rotors)
        self._link = SetpointLink.of(guidance.setpoint, faults, period_s, parts.jitter)
        self._tilted = tilted = TiltedThrust.of(plant.system, faults)
        self.control = Control(flying, parts, guidance, self.command, inputs, self._link)
        self.power = Power.of(system, period_s)
        if self.power is not None:
            self.power.look(plant.state)
        self.separation = SeparationWatch(system, scenario.limits) if system.n_drones > 1 else None
        links = DroneLinks(guidance.setpoint, self.estimate, parts.autopilot, guided=guided)
        context = EventContext(
            plant,
            inputs,
            self.power,
            parts.wind,
            parts.estimator,
            links,
            None if tilted is None else tilted.apply,
            guidance.abort if guidance.can_abort else None,
        )
        self.events = EventQueue(context, guidance, self.announce, period_s)
        if isinstance(guidance, DeliveryGuidance):
            guidance.act_through(self.events)
        for event in scenario.events:
            self.events.add(event)
        self.contingency = contingency_of(
            scenario, context, guidance, self.events.note, guided=guided
        )
        self.tension_peaks = TensionPeaks(len(plant.state.tension_peak_n))
        self.plant_s = 0.0
        self._wall_s: float | None = None

        steps: dict[str, Step] = {
            "reference": guidance.step,
            "events": self.events.step,
            "links": links.step,
        }
        if self.contingency is not None:
            steps["contingency"] = self.contingency.step
        if self.separation is not None:
            steps["separation"] = self._watch_separation
        steps |= {"observers": self.look, "control": self.control.step}
        if latency_periods := round(faults.command_latency_s / period_s):
            before = plant.state.rotor_speed_rad_s
            latency = CommandLatency(inputs.rotor_command_rad_s, latency_periods, before)
            inputs.rotor_command_rad_s = latency.late_rad_s
            steps["command_latency"] = latency.step
        inputs.wind_enu_m_s[:] = parts.wind.velocity_enu_m_s
        if not parts.wind.steady:
            steps["wind"] = self._blow
        rig = RigDriver(scenario.rig, plant.system, inputs, plant.state, period_s)
        if not rig.idle:
            rig.step(0)
            plant.start_driving(inputs)
            steps["rig"] = rig.step
        if self.power is not None:
            steps["motors"] = self._run_motors
        if tilted is not None:
            steps["tilted_thrust"] = lambda tick: tilted.begin(plant.state, inputs)
        steps["plant"] = self._move
        if tilted is not None:
            steps["tilted_thrust_end"] = lambda tick: tilted.end(inputs)
        if (power := self.power) is not None and power.reacts:
            steps["motors_end"] = lambda tick: power.end(inputs)
        steps["cable_events"] = self._note_cable_events
        if flying is not None:
            steps["controller_events"] = lambda tick: self._note_controller_events(tick, flying)
        estimating = self._estimate_from_sensed if parts.sensed else self._estimate_from_truth
        steps["estimation"] = estimating
        self.set_steps(steps)

    @property
    def state(self) -> PlantState:
        """True state after the last step; the memory stays the same."""
        return self.plant.state

    @property
    def estimate(self) -> Estimate:
        """What estimators and motion capture say of the state; the memory stays the same."""
        return self.parts.estimator.estimate

    @property
    def reference(self) -> LoadReference:
        """What is asked of the load now, with derivatives."""
        asked = self.guidance.reference_at(self.time_s)
        return self.parts.plan.reference.at(self.time_s) if asked is None else asked

    @property
    def max_tension_n(self) -> Array:
        """Largest tension of each cable over all steps so far, (n_cables,)."""
        return self.tension_peaks.largest_n

    @property
    def stage(self) -> str:
        """Name of the present phase or stage."""
        return self.guidance.stage

    @property
    def finished(self) -> bool:
        """Whether the flight is over, by its plan or because it was stopped."""
        return self.guidance.finished or self.stopped

    def add_event(self, event: EventSpec) -> None:
        """Let something happen that is not in the scenario.

        Raises:
            ConfigError: The system cannot have it.
        """
        self.events.add(event)

    def apply(self, event: EventSpec | Mapping[str, Any]) -> None:
        """Let something happen at the beginning of the next period.

        Args:
            event: An event, or its fields as in a scenario; `when` may be left out.

        Raises:
            ConfigError: The system cannot have it.
        """
        self.events.apply(event)

    def trigger(self, name: str) -> None:
        """Let an event that waits happen at the beginning of the next period.

        Args:
            name: Its name, or its kind.

        Raises:
            ConfigError: No such event waits.
        """
        self.events.trigger(name)

    def start(self) -> None:
        """Start autopilot and observers; `advance` does it if it has not been done.

        Raises:
            Px4Error: A real PX4 did not start.
        """
        if self._started:
            return
        try:
            if self._link is not None:
                self._link.start()
            self.parts.autopilot.start(self.guidance.setpoint, self.estimate)
            super().start()
        except BaseException:
            self.close()
            raise

    def run(self, *, realtime: bool = False) -> FlightResult:
        """Fly to the end, or until `stop` or Ctrl-C, and close everything.

        Args:
            realtime: Do not run faster than real time.

        Raises:
            SimulationDiverged: The physics failed; observers keep the flight up to there.
            ControllerError: A controller failed, likewise.
            Px4Error: A real autopilot failed, likewise.
        """
        if realtime:
            self.observe_with(Pace())
        with self:
            try:
                while not self.finished:
                    self.advance(1)
            except KeyboardInterrupt:
                self.stop()
        return self.result()

    def result(self) -> FlightResult:
        """What the flight says about itself so far."""
        wall_s = self.elapsed_s if self._wall_s is None else self._wall_s
        return FlightResult(
            self.time_s,
            wall_s,
            self.tick,
            self.plant_s / max(self.tick - 1, 1) * 1e6,
            self.control.mean_step_us,
            self.max_tension_n,
            self.tension_peaks.track(),
            self.guidance.landed,
            self.stopped,
        )

    def _note_wall_time(self) -> None:
        self._wall_s = self.elapsed_s

    def _watch_separation(self, tick: int) -> None:
        """Note when the drones come too close to each other."""
        watch = self.separation
        if watch is not None and tick % watch.every == 0:
            time_s = tick * CONTROL_PERIOD_S
            if (close := watch.look(time_s, self.state.position_enu_m)) is not None:
                self.events.note(time_s, "too_close", close)

    def _blow(self, tick: int) -> None:
        wind = self.parts.wind
        wind.step()
        self.inputs.wind_enu_m_s[:] = wind.velocity_enu_m_s

    def _run_motors(self, tick: int) -> None:
        assert self.power is not None
        for drone in self.power.begin(self.plant.state, self.inputs):
            self.events.note(tick * CONTROL_PERIOD_S, "battery_empty", f"drone_{drone}")

    def _move(self, tick: int) -> None:
        begin = perf_counter()
        self.plant.step(self.inputs)
        self.tension_peaks.note(self.plant.state.tension_peak_n)
        if tick:  # the first period may have compiled what it calls
            self.plant_s += perf_counter() - begin

    def _note_cable_events(self, tick: int) -> None:
        happened = self.plant.happened
        if happened:
            for event in happened:
                self.events.note(event.time_s, event.kind, event.what)
            happened.clear()

    def _note_controller_events(self, tick: int, controller: Controller) -> None:
        happened = controller.happened
        if happened:
            for kind, what in happened:
                self.events.note(tick * CONTROL_PERIOD_S, kind, what)
            happened.clear()

    def _estimate_from_truth(self, tick: int) -> None:
        self.parts.estimator.step(self.plant.state)

    def _estimate_from_sensed(self, tick: int) -> None:
        sensed = self.parts.sensed
        assert sensed is not None
        sensed.update()
        self.parts.estimator.step(sensed.state)
