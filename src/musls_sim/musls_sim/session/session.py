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
from musls_sim.scenario.events import EventSpec, Scene
from musls_sim.scenario.physics import CONTROL_PERIOD_S
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.compose import MakeAutopilot, Parts, compose, mission_guidance
from musls_sim.session.control import Control, make_controller
from musls_sim.session.delivery import DeliveryGuidance
from musls_sim.session.driving import RigDriver
from musls_sim.session.event_queue import EventQueue
from musls_sim.session.guidance import Guidance, MissionGuidance
from musls_sim.session.imperfections import FaultySteps
from musls_sim.session.links import DroneLinks
from musls_sim.session.loop import Loop, Observer, Pace, Step

# ---------- Result of a flight


@dataclass(frozen=True)
class FlightResult:
    """What a flight says about itself.

    Attributes:
        sim_time_s: Simulated time.
        wall_time_s: Time the loop took.
        periods: Control periods flown.
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
        """Prepare.

        Args:
            n_cables: Number of cables.
        """
        self._now, self._before = np.zeros(n_cables), np.zeros(n_cables)
        self._kept = array("f")
        self._periods = 0

    def note(self, peak_n: Array) -> None:
        """Take in one control period.

        Args:
            peak_n: Largest tension of each cable in it, (n_cables,).
        """
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
    then control, wind, plant and estimator move the system to the end of the period.

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
        make_guidance: Callable[[Parts, Sequence[Observer]], Guidance] = mission_guidance,
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
        make_guidance: Callable[[Parts, Sequence[Observer]], Guidance],
    ) -> None:
        """Make the steps and connect them with the parts."""
        scenario, system = self.scenario, self.scenario.system
        self.guidance = make_guidance(self.parts, self.observers)
        self.inputs = PlantInputs.zeros(system)
        self.command = MotorCommands.zeros(system.n_drones, system.n_rotors)
        self._faults = FaultySteps(scenario.imperfections, self.parts, self.guidance.setpoint)
        self.control = Control(
            flying,
            self.parts,
            self.guidance,
            self.command,
            self.inputs,
            self._faults.link,
        )
        self.power = Power.of(system, self.plant.period_s)
        self.separation = SeparationWatch(system, scenario.limits) if system.n_drones > 1 else None
        if self.power is not None:
            self.power.look(self.plant.state)
        self._links = DroneLinks(
            self.guidance.setpoint, self.estimate, self.parts.autopilot, guided=flying is None
        )
        scene = Scene(
            self.plant,
            self.inputs,
            self.power,
            self.parts.wind,
            self.parts.estimator,
            self._links,
            None if self._faults.thrust is None else self._faults.thrust.apply,
            getattr(self.guidance, "abort", None),
        )
        self.events = EventQueue(scene, self.guidance, self.announce, self.plant.period_s)
        if isinstance(self.guidance, DeliveryGuidance):
            self.guidance.act_through(self.events)
        for event in scenario.events:
            self.events.add(event)
        self.contingency = contingency_of(
            scenario, scene, self.guidance, self.events.note, guided=flying is None
        )
        self.tension_peaks = TensionPeaks(len(self.plant.state.tension_peak_n))
        self.plant_s = 0.0
        self._wall_s: float | None = None
        self.set_steps(
            (
                self.guidance.step,
                self.events.step,
                self._links.step,
                *((self.contingency.step,) if self.contingency else ()),
                *self._watch(),
            ),
            (
                self.control.step,
                *self._faults.late(self.inputs),
                *self._air(),
                *self._drive(),
                *self._moving(),
                *self._tell_events(),
                self._faults.estimating(),
            ),
        )

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
        if isinstance(self.guidance, MissionGuidance):
            return self.guidance.reference_at(self.time_s)
        return self.parts.plan.reference.at(self.time_s)

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
            self._faults.start()
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

    def _watch(self) -> tuple[Step, ...]:
        """How close the drones come; nothing to do for one drone."""
        watch, state, note = self.separation, self.plant.state, self.events.note
        if watch is None:
            return ()

        def look(tick: int) -> None:
            if tick % watch.every == 0:
                time_s = tick * CONTROL_PERIOD_S
                if (close := watch.look(time_s, state.position_enu_m)) is not None:
                    note(time_s, "too_close", close)

        return (look,)

    def _air(self) -> tuple[Step, ...]:
        """Wind; nothing to do where it is steady."""
        wind, target = self.parts.wind, self.inputs.wind_enu_m_s
        target[:] = wind.velocity_enu_m_s
        if wind.steady:
            return ()

        def blow(tick: int) -> None:
            wind.step()
            target[:] = wind.velocity_enu_m_s

        return (blow,)

    def _drive(self) -> tuple[Step, ...]:
        """Anchors and winches; nothing to do where nothing is asked of them."""
        plant = self.plant
        driver = RigDriver(
            self.scenario.rig, plant.system, self.inputs, plant.state, plant.period_s
        )
        if driver.idle:
            return ()
        driver.step(0)
        plant.start_driving(self.inputs)
        return (driver.step,)

    def _moving(self) -> tuple[Step, ...]:
        """The plant, between what motors and batteries do to its inputs."""
        power, inputs, state, note = self.power, self.inputs, self.plant.state, self.events.note
        if power is None:
            return (self._move(),)

        def before(tick: int) -> None:
            for drone in power.begin(state, inputs):
                note(tick * CONTROL_PERIOD_S, "battery_empty", f"drone_{drone}")

        def after(tick: int) -> None:
            power.end(inputs)

        return (before, self._move(), after) if power.reacts else (before, self._move())

    def _move(self) -> Step:
        inputs, step = self.inputs, self._faults.moving()
        peak, note = self.plant.state.tension_peak_n, self.tension_peaks.note

        def move(tick: int) -> None:
            begin = perf_counter()
            step(inputs)
            note(peak)
            if tick:  # the first period may have compiled what it calls
                self.plant_s += perf_counter() - begin

        return move

    def _tell_events(self) -> tuple[Step, ...]:
        """Note what happened to the cables by itself, and what the controller says."""
        plant, note = self.plant, self.events.note
        said: list[tuple[str, str]] | None = getattr(self.flying, "happened", None)

        def listen(tick: int) -> None:
            if said:
                for kind, what in said:
                    note(tick * CONTROL_PERIOD_S, kind, what)
                said.clear()

        listening = () if said is None else (listen,)
        happened = plant.happened

        def tell(tick: int) -> None:
            if happened:
                for event in happened:
                    note(event.time_s, event.kind, event.what)
                happened.clear()

        return (tell, *listening)
