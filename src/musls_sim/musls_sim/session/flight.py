"""The flight loop: mission, wind, estimation, autopilot, plant, record, once per 4 ms."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

from musls_control.autopilot import MotorCommands
from musls_control.mission import FlightPlan, GroundSpot, compile_air_plan, compile_plan
from musls_sim.plants.interface import PlantInputs
from musls_sim.recording import BagRecorder
from musls_sim.scenario import Scenario
from musls_sim.session.build import build_flight_stack, build_plant
from musls_sim.preflight.checks import check_hover, hover_in_formation
from musls_sim.session.pilot import Pilot
from musls_sim.wind import Wind

Progress = Callable[["Flight"], None]


@dataclass(frozen=True)
class FlightResult:
    """What a flight says about itself (the rest is in its bag).

    Attributes:
        sim_time_s: Simulated time.
        wall_time_s: Time the loop took.
        steps: Control periods flown.
        plant_step_us: Mean time of one control period in the plant [us].
        max_tension_n: Largest tension of each cable over all steps, (n,).
        landed: Whether the drones were found landed at the end.
        interrupted: Whether the user ended it.
    """

    sim_time_s: float
    wall_time_s: float
    steps: int
    plant_step_us: float
    max_tension_n: np.ndarray
    landed: bool
    interrupted: bool


class Flight:
    """One flight of one scenario, ready to run.

    Attributes:
        scenario: What is flown.
        hover: How the system hangs in formation.
        plan: All set-points.
        plant: The physics.
        pilot: Set-points in time.
        recorder: The bag.
    """

    def __init__(
        self,
        scenario: Scenario,
        bag: Path,
        *,
        force: bool = False,
        autopilot_logs: Path | None = None,
    ) -> None:
        """Check the scenario and build everything.

        Args:
            scenario: What to fly.
            bag: Folder of the bag, must not exist.
            force: Fly in spite of too little thrust.
            autopilot_logs: Folder for what real autopilots print; default `px4` beside the bag.

        Raises:
            ConfigError: The scenario cannot work.
            Px4Error: A real PX4 is asked for and there is none.
            RecordingError: The bag cannot be written.
        """
        self.scenario = scenario
        first = scenario.mission.stages[0].pose(np.zeros(1))[0]
        self.hover = hover_in_formation(scenario, first)
        check_hover(scenario, self.hover, force=force)
        in_air = scenario.start == "air"
        self.plant = build_plant(scenario, self.hover)
        self.plan = self._plan(first, in_air)
        gusts, mocap, sensors = np.random.default_rng(scenario.seed).spawn(3)
        period = self.plant.period_s
        self.wind = Wind(scenario.wind, period, gusts)
        self.autopilot, self.estimator = build_flight_stack(
            scenario, self.hover, self.plant, autopilot_logs or bag.parent / "px4", (mocap, sensors)
        )
        self.command = MotorCommands.zeros(
            scenario.system.n_drones, len(scenario.system.drones[0].rotors)
        )
        self.recorder = BagRecorder(
            bag,
            scenario.system,
            rate_hz=scenario.recording.rate_hz,
            shape_rate_hz=scenario.recording.shape_rate_hz,
            step_period_s=period,
        )
        self.pilot = Pilot(self.plan, self.autopilot, self.recorder, period)
        self.tick = 0
        self.max_tension_n = np.zeros(scenario.system.n_drones)
        self._clock = _Clock(period, self)
        self._loop = self._steps()

    def _plan(self, first: np.ndarray, in_air: bool) -> FlightPlan:
        scenario, state = self.scenario, self.plant.state
        if in_air:
            return compile_air_plan(
                scenario.mission, scenario.formation, first, scenario.system.n_drones
            )
        spot = GroundSpot(state.position_enu_m[0].copy(), 0.0, state.position_enu_m[1:].copy())
        return compile_plan(scenario.mission, scenario.formation, spot)

    def run(self, progress: Progress | None = None, *, realtime: bool = False) -> FlightResult:
        """Fly to the end, or until Ctrl-C.

        Args:
            progress: Called about ten times a second of wall time.
            realtime: Do not run faster than real time.

        Raises:
            SimulationDiverged: The physics failed; the bag holds the flight up to there.
            Px4Error: A real autopilot failed; the bag holds the flight up to there.
        """
        interrupted = False
        with self.recorder, closing(self.autopilot):
            self.autopilot.start(self.pilot.setpoint, self.estimator.measurement)
            self._clock.begin(progress, realtime=realtime)
            try:
                while not self.pilot.finished:
                    self.advance(1)
            except KeyboardInterrupt:
                interrupted = True
        wall = self.elapsed_s
        return FlightResult(
            self.plant.time_s,
            wall,
            self.tick,
            self._clock.plant_s / max(self.tick, 1) * 1e6,
            self.max_tension_n,
            self.pilot.landed,
            interrupted,
        )

    def advance(self, periods: int) -> None:
        """Fly a number of control periods (the recorder is left open)."""
        for tick in range(self.tick, self.tick + periods):
            for step in self._loop:
                step(tick)
            self.tick = tick + 1

    @property
    def elapsed_s(self) -> float:
        """Wall time since the flight began."""
        return self._clock.elapsed_s

    def _steps(self) -> tuple[Callable[[int], None], ...]:
        """The loop's steps in their order, each a function of the tick."""
        plant, pilot, estimator, autopilot = self.plant, self.pilot, self.estimator, self.autopilot
        command, wind, recorder, clock = self.command, self.wind, self.recorder, self._clock
        setpoint, measurement, state = pilot.setpoint, estimator.measurement, plant.state
        period, every = plant.period_s, recorder.every
        peak, largest = state.tension_peak_n, self.max_tension_n
        inputs = PlantInputs.zeros(plant.system)
        inputs.rotor_command_rad_s = command.omega_cmd_rad_s

        def record(tick: int) -> None:
            if tick % every == 0:
                recorder.record(tick * period, plant)

        def control(tick: int) -> None:
            autopilot.step(tick * period, setpoint, measurement, command)

        def move(tick: int) -> None:
            begin = perf_counter()
            inputs.wind_enu_m_s[:] = wind.velocity_enu_m_s
            plant.step(inputs)
            np.maximum(largest, peak, out=largest)
            clock.plant_s += perf_counter() - begin

        def estimate(tick: int) -> None:
            estimator.step(state)

        gusts = () if wind.steady else (lambda tick: wind.step(),)
        return (pilot.step, record, control, *gusts, move, estimate, clock.step)


class _Clock:
    """Wall time of a flight: progress reports and real-time pacing."""

    _REPORT_S = 0.1
    _LOOK_EVERY = 10

    def __init__(self, period_s: float, flight: Flight) -> None:
        self._period_s, self._flight = period_s, flight
        self.plant_s = 0.0
        self.begin(None, realtime=False)

    def begin(self, progress: Progress | None, *, realtime: bool) -> None:
        """Begin to count."""
        self._progress, self._realtime = progress, realtime
        self._begin = perf_counter()
        self._next_report = self._REPORT_S

    @property
    def elapsed_s(self) -> float:
        """Wall time since the start."""
        return perf_counter() - self._begin

    def step(self, tick: int) -> None:
        """Report and wait where it is time to."""
        if tick % self._LOOK_EVERY:
            return
        elapsed = self.elapsed_s
        if self._progress is not None and elapsed >= self._next_report:
            self._next_report = elapsed + self._REPORT_S
            self._progress(self._flight)
        if self._realtime:
            ahead = tick * self._period_s - elapsed
            if ahead > 0.0:
                sleep(ahead)
