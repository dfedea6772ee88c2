"""One simulation of one scenario, ready to run: `Session`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from musls_control.autopilot import MotorCommands
from musls_control.controllers import Controller
from musls_control.mission.spec import ContingencySpec
from musls_description.config.errors import ConfigError
from musls_description.config.registry import user_code
from musls_description.config.schema import to_yaml
from musls_description.numerics.arrays import Array
from musls_description.numerics.records import TiedToMemory
from musls_description.numerics.snapshots import Keeper, Kept
from musls_sim.imperfections import CommandLatency, DroneLinks, SetpointLink, TiltedThrust
from musls_sim.plants.driving import RigDriver
from musls_sim.plants.interface import PlantInputs
from musls_sim.power import Power
from musls_sim.scenario.aerodynamics import Aerodynamics, Air
from musls_sim.scenario.events import Event, EventContext
from musls_sim.scenario.scenario import Scenario
from musls_sim.sensors.custom import SensorSetup
from musls_sim.sensors.estimation import LoadCells, Sensors
from musls_sim.session.collisions import CollisionWatch, SeparationWatch
from musls_sim.session.compiled_stages.runs import Runs
from musls_sim.session.compiled_stages.session_memory import World
from musls_sim.session.compiled_stages.world import NEVER
from musls_sim.session.compose import Components, MakeAutopilot, compose, mission_guidance
from musls_sim.session.control import Control, make_controller
from musls_sim.session.event_queue import EventQueue
from musls_sim.session.flight import Flight, TensionPeaks
from musls_sim.session.guidance import Guidance, MissionGuidance
from musls_sim.session.loop import Observer, Pace, Stage
from musls_sim.session.stages import stages_of
from musls_sim.specs.physics import CONTROL_PERIOD_S

# ---------- Result of a flight


@dataclass(frozen=True)
class FlightResult:
    """Summary of a flight.

    Attributes:
        plant_step_us: Mean time of one control period in compiled code, the plant and what else of
            the flight is compiled, but of the first, which may compile [us].
        controller_step_us: Mean time of one call of the controller [us]; None without one.
        max_tension_n: Largest tension of each cable over all steps, (n_cables,).
        landed: Whether the drones were found landed at the end.
        interrupted: Whether `stop` ended it.
    """

    sim_time_s: float
    wall_time_s: float
    periods: int
    plant_step_us: float
    controller_step_us: float | None
    max_tension_n: Array
    landed: bool
    interrupted: bool


@dataclass(frozen=True)
class Snapshot:
    """A flight at one time, see `Session.snapshot`; can be pickled.

    Attributes:
        scenario: The scenario, as text.
        tick: Control periods so far.
        kept: State of all that takes part.
        numbers: Numbers of the session's record.
        own: Arrays of its world, by name.
    """

    scenario: str
    tick: int
    kept: Kept
    numbers: dict[str, NDArray[Any]]
    own: dict[str, NDArray[Any]]


MakeController = type[Controller] | Callable[..., Controller]


class Session(TiedToMemory, Flight):
    """Composes a simulation from a scenario and runs it.

    In every control period: guidance and events set the set-points, the observers look,
    then control, wind, plant and estimator move the system to the end of the period. These steps
    have names (`step_names`); your own steps come in by `insert_before` and `insert_after`.
    Its parts, and what is read of it, stand in `Flight`.

        with Session(scenario) as session:
            while not session.finished:
                session.advance(1)
    """

    def __repr__(self) -> str:
        return f"<Session {self.scenario.name}: {self.time_s:.3f} s, stage {self.stage}>"

    compiles = True
    not_kept = Flight.not_kept | {"scenario", "observers", "_runs", "_world", "_keeper", "_text"}

    @user_code()
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
            scenario: Scenario to simulate.
            controller: Another controller than the scenario's: an object, or a class that needs
                no arguments.
            observers: Observers of the run.
            force: Fly in spite of too little thrust.
            autopilot_logs: Folder for what real autopilots print; default "px4" here.
            make_autopilot: Builds another autopilot than the scenario's.
            make_guidance: Builds another guidance than the mission's.

        Raises:
            ConfigError: The scenario cannot work.
            Px4Error: A real PX4 is asked for and there is none.
        """
        if not isinstance(scenario, Scenario):
            raise TypeError(f"Session: scenario must be a Scenario, not {scenario!r:.60}")
        self.scenario = scenario
        self.components = compose(
            scenario,
            autopilot_logs or Path("px4"),
            force=force,
            make_autopilot=make_autopilot,
            make_controller=lambda: make_controller(scenario, CONTROL_PERIOD_S, controller),
        )
        self.flying = flying = self.components.controller
        super().__init__(self.components.plant)
        self._closing.callback(self.components.autopilot.close)
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
        """Connect everything; what is done in a period stands in `stages.TABLE`."""
        scenario = self.scenario
        components = self.components
        plant = self.plant
        system = scenario.system
        faults = scenario.imperfections
        guided = flying is None
        period_s = plant.period_s
        self.guidance = guidance = make_guidance(components, self.observers)
        motions = scenario.world.motions
        self.inputs = inputs = PlantInputs.zeros(system, len(motions))
        self.command = MotorCommands.zeros(system.n_drones, system.n_rotors)
        setpoint = guidance.setpoint
        autopilot = components.autopilot
        self.links = links = DroneLinks(setpoint, self.estimate, autopilot, guided=guided)
        self.setpoint_link = None
        if faults.setpoint_delay_s or faults.setpoint_jitter_s:
            self.setpoint_link = SetpointLink(links.heard, faults, period_s, components.jitter)
        self.tilted = tilted = TiltedThrust.of(plant.system, faults)
        self.control = Control(
            flying, components, guidance, self.command, inputs, links, self.setpoint_link
        )
        self.power = Power.of(system)
        if self.power is not None:
            self.power.look(plant.state)
        self.separation = SeparationWatch(system, scenario.limits) if system.n_drones > 1 else None
        world = scenario.world
        can_collide = system.n_drones or world.surfaces
        self.collisions = CollisionWatch(plant, world) if can_collide else None
        inputs.wind_enu_m_s = components.wind.velocity_enu_m_s  # one memory
        grounds = None if world.is_flat else world.grounds.copy()
        air = Air(plant.system, plant.state, inputs.wind_enu_m_s, grounds)
        self.aerodynamics = Aerodynamics(scenario.aerodynamics, air, inputs)
        context = EventContext(
            plant,
            inputs,
            components.wind,
            components.estimator,
            links,
            self.power,
            tilted,
            air,
            guidance.abort if guidance.can_abort else None,
            None if flying is None else flying.network,
        )
        self.events = EventQueue(context, lambda: self.stage, self.observers, period_s)
        self.contingency = None
        if isinstance(guidance, MissionGuidance):
            guidance.act_through(self.events)
            self.contingency = guidance.flight.contingency
            if context.network is not None:
                guidance.flight.known.silent = context.network.silent
        if scenario.contingency is not None:
            self._check_contingency(scenario.contingency, guided=guided)
        for event in scenario.events:
            self.events.add(event)

        record_s = 1.0 / scenario.recording.rate_hz
        peaks = len(plant.state.tension_peak_n)
        self.tension_peaks = TensionPeaks(peaks, round(record_s / period_s))
        self.latency = None
        if latency_periods := round(faults.command_latency_s / period_s):
            before = plant.state.rotor_speed_rad_s
            latency = CommandLatency(latency_periods, before)
            inputs.rotor_command_rad_s = latency.delayed_rad_s
            self.latency = latency
        cells, own = components.jitter.spawn(2)
        setup = SensorSetup(plant.system, plant.state, period_s, own)
        self.load_cells = LoadCells(plant.system, period_s, cells)
        self.sensors = Sensors(scenario.sensors, setup, self.estimate)
        self.readings = self.sensors.readings
        self.driver = driver = RigDriver(scenario.rig, plant.system, period_s, motions)
        if len(driver.targets) or plant.system.winches:
            driver.start(inputs, plant.state)
            plant.start_driving(inputs)
        self.parts = {}
        self.set_stages(stages_of(self))

    def _check_contingency(self, spec: ContingencySpec, *, guided: bool) -> None:
        """Refuse, before the flight, a contingency that could not act."""
        decides = self.flying is not None and self.flying.network is not None
        if self.contingency is None or not (guided or decides):
            raise ConfigError(
                "contingency changes the set-points of the formation and needs controller.kind: "
                f"formation or agents, not {self.scenario.controller.kind}; or leave contingency "
                "out (--set contingency=null)"
            )
        if spec.hook == "release":
            try:
                self.events.check({"kind": "release", "cable": 1})
            except ConfigError as error:
                raise ConfigError(f"contingency.hook = release: {error}; or hook: hold") from None

    def set_stages(self, stages: Sequence[Stage]) -> None:
        """Set the stages, in their order; see `Loop.set_stages`."""
        super().set_stages(stages)
        self._runs: Runs | None = None

    def add_event(self, event: Event) -> None:
        """Queue an event that is not in the scenario (raises ConfigError)."""
        self.events.add(event)

    def apply(self, event: Event | Mapping[str, Any]) -> None:
        """Make an event happen at once, see `EventQueue.apply` (raises ConfigError)."""
        self.events.apply(event)

    def trigger(self, name: str) -> None:
        """Make a waiting event happen at once, see `EventQueue.trigger` (raises ConfigError)."""
        self.events.trigger(name)

    def start(self) -> None:
        """Start autopilot and observers; `advance` does it if it has not been done."""
        if self._started:
            return
        try:
            if self.setpoint_link is not None:
                self.setpoint_link.start()
            self.components.autopilot.start(self.guidance.setpoint, self.estimate)
            super().start()
            self._world = World(self)
            self._closing.callback(self._world.read_rows)  # what an interrupt kept back
        except BaseException:
            self.close()
            raise

    # ---------- Snapshots

    def snapshot(self) -> Snapshot:
        """All of the flight as it is now; can be pickled.

        Recorders in memory, controllers and all else in Python that takes part are in it; other
        observers are not.

        Raises:
            ConfigError: Something cannot be kept, such as a real autopilot, or an attribute of a
                controller of your own; names it.
        """
        self.start()
        self._refuse_to_keep()
        self._world.read_rows()
        state = self._keeper.keep()
        return Snapshot(self._text, self.tick, state, self._world.numbers, self._world.own)

    def restore(self, snapshot: Snapshot) -> None:
        """Fly on from a snapshot, bit for bit as the flight that it was made of.

        In place: parts of the session, and views of their arrays, show the state of then.

        Args:
            snapshot: Snapshot of this session, or of one that was built alike, in another process,
                too: of the same scenario, controller, observers and steps of your own.

        Raises:
            ConfigError: The snapshot is of another flight.
        """
        self.start()
        self._refuse_to_keep()
        if snapshot.scenario != self._text:
            raise ConfigError("snapshot: of another scenario than the session's")
        self._world.read_rows()
        self._keeper.put_back(snapshot.kept)
        self.plant.lead()
        self.control.sample()
        self._world = World(self)
        self._world.take(snapshot.numbers, snapshot.own)
        self._runs = None

    @cached_property
    def _keeper(self) -> Keeper:
        alike = {"scenario": self.scenario, "plan": self.components.plan}
        parts: dict[str, object] = {"session": self}
        parts |= {f"observer {k}": one for k, one in enumerate(self.observers) if one.held}
        others = tuple(one for one in self.observers if not one.held)
        return Keeper(parts, alike, (self.observers, *others))

    @cached_property
    def _text(self) -> str:
        return to_yaml(self.scenario)

    def _refuse_to_keep(self) -> None:
        """Refuse a snapshot of what is beyond this process."""
        if self.scenario.system.n_drones and self.components.autopilot.has_sensors:
            raise ConfigError("snapshot: a real PX4 cannot be kept; choose autopilot.kind: builtin")

    def run(self, *, realtime: bool = False) -> FlightResult:
        """Fly to the end, or until `stop`, and close everything, also when an exception ends it.

        Args:
            realtime: Do not run faster than real time.

        Raises:
            SimulationDiverged: The physics failed; observers keep the flight up to there.
            CollisionError: Something collided, likewise, if the scenario ends there.
            UserCodeError: Code of a user's own failed, such as a controller, likewise.
            Px4Error: A real autopilot failed, likewise.
        """
        if realtime:
            self.observe_with(Pace())
        with self, user_code(lambda: f" at {self.time_s:.3f} s"):
            while not self.finished:
                self._run(NEVER)
        return self.result()

    def _run(self, end: int) -> None:
        """See `Loop`: compiled stages in runs."""
        if self._runs is None:
            self._runs = Runs(self, self._world, self._stages)
        self._runs.run(end)

    def result(self) -> FlightResult:
        """Summary of the flight so far."""
        return FlightResult(
            self.time_s,
            self.elapsed_s,
            self.tick,
            self.plant_s / max(self.tick - 1, 1) * 1e6,
            self.control.mean_step_us,
            self.max_tension_n,
            self.guidance.landed,
            self.stopped,
        )

    def numbers(self) -> dict[str, Any]:
        """Steps, pace and system for a flight's summary."""
        plant = self.plant
        scenario = self.scenario
        hanging = self.scenario.hanging
        network = None if self.flying is None else self.flying.network
        return {
            "step_size_s": plant.physics_step_s,
            "steps": self.tick * plant.substeps,
            "refined_periods": plant.refined_periods,
            "plant_step_us": self.plant_s / max(self.tick - 1, 1) * 1e6,
            "controller": {} if self.flying is None else self.flying.numbers(),
            "network": [] if network is None else network.by_link(self.time_s),
            "links_per_cable": [cable.links for cable in scenario.system.cables],
            "n_drones": scenario.system.n_drones,
            "thrust_margin": None if hanging is None else hanging.thrust_margin,
            "sag_m": None if hanging is None else hanging.sag_m,
            "ends_on_ground": scenario.start.kind == "ground",
            "seed": scenario.seed,
        }
