"""A flight under way: what it is made of, and what its stages in Python do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from musls_control.autopilot import MotorCommands
from musls_control.controllers import Controller
from musls_control.estimate import Estimate
from musls_control.mission.contingency import Contingency
from musls_control.reference import LoadReference
from musls_description.config.registry import user_code
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_sim.imperfections import CommandLatency, DroneLinks, SetpointLink, TiltedThrust
from musls_sim.plants.driving import RigDriver
from musls_sim.plants.interface import DOUBTFUL_SHARE, FLOOR_LIFT_M, PlantInputs, PlantState
from musls_sim.scenario.aerodynamics import Aerodynamics
from musls_sim.scenario.scenario import Scenario
from musls_sim.sensors.estimation import LoadCells, MotionCapture, Sensors
from musls_sim.session.collisions import Collision, CollisionError, CollisionWatch, SeparationWatch
from musls_sim.session.compose import Components
from musls_sim.session.control import Control
from musls_sim.session.event_queue import EventQueue
from musls_sim.session.guidance import Guidance
from musls_sim.session.loop import Loop, Stage
from musls_sim.specs.physics import CONTROL_PERIOD_S

# ---------- Largest tensions of all steps, which the recording's rate would miss


class TensionPeaks:
    """Largest tension of each cable over all steps.

    Attributes:
        largest_n: Largest tension of each cable so far, (n_cables,).
        recent_n: Largest tensions of an interval of `periods` control periods, which then restarts;
            so it covers the time since the last record at that spacing, (n_cables,).
    """

    def __init__(self, n_cables: int, periods: int) -> None:
        self.periods = periods
        self.recent_n = np.zeros(n_cables)
        self.largest_n = np.zeros(n_cables)

    def note(self, tick: int, peak_n: Array) -> None:
        """Take in the largest tension of each cable in a control period, (n_cables,)."""
        if tick % self.periods == 0:
            self.recent_n[:] = 0.0
        np.maximum(self.recent_n, peak_n, out=self.recent_n)
        np.maximum(self.largest_n, peak_n, out=self.largest_n)


# ---------- The flight

ENERGY_PERIODS = 250
"""Control periods between two looks at the energy balance."""

STRENGTH_PERIODS = 50
"""Control periods between two looks at what ropes hold."""

OVERLOAD = 1.001
"""Tension over breaking force of a rope that should have parted; one that parts comes to 1."""


class Flight(Loop):
    """Parts of a `Session`, and the state that others read of it.

    Attributes:
        scenario: Scenario that is simulated.
        components: Components of the flight.
        guidance: Set-points over time.
        links: Links between the drones and their guidance.
        latency: Motor commands that come late; None where they do not.
        separation: Watch of the distance of drones; None for one drone.
        collisions: Watch of collisions that begin; None without drones and obstacles.
        contingency: Reaction to the loss of a drone; None without.
        inputs: Inputs of the plant; to push a body, write into `inputs.wrench_enu`.
        driver: Driver of anchors and winches.
        command: Motor commands.
        aerodynamics: Effects of the air besides drag.
        events: Events that wait, and those that have happened.
        tension_peaks: Largest tensions of all steps.
        load_cells: Load cells of the cables, and their readings.
        readings: Readings of your own sensors, one after the other.
        parts: Further parts that have fields of the world, by name.
        own: Numbers that your own compiled stages work on, see `fields.own`; set before the start.
        plant_s: Wall time spent in compiled stages, the plant among them, without the first period,
            which may compile.
    """

    scenario: Scenario
    flying: Controller | None
    components: Components
    guidance: Guidance
    links: DroneLinks
    setpoint_link: SetpointLink | None
    tilted: TiltedThrust | None
    control: Control
    latency: CommandLatency | None
    separation: SeparationWatch | None
    collisions: CollisionWatch | None
    contingency: Contingency | None
    inputs: PlantInputs
    driver: RigDriver
    command: MotorCommands
    aerodynamics: Aerodynamics
    events: EventQueue
    tension_peaks: TensionPeaks
    load_cells: LoadCells
    sensors: Sensors
    readings: Array
    own: Array | None = None
    parts: dict[str, Any]
    plant_s = 0.0
    _energy_doubted = False
    _overloaded: frozenset[int] = frozenset()

    @property
    def stages(self) -> Sequence[Stage]:
        """Names of the stages of a period, in their order."""
        return self._stages

    @property
    def state(self) -> PlantState:
        """True state after the last step; the memory stays the same."""
        return self.plant.state

    @property
    def estimate(self) -> Estimate:
        """Estimate of the state by estimators and motion capture; the memory stays the same."""
        return self.components.estimator.estimate

    @property
    def reference(self) -> LoadReference:
        """Reference of the load now, with derivatives."""
        reference = self.guidance.reference_at(self.time_s)
        return self.components.plan.reference.at(self.time_s) if reference is None else reference

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

    # ---------- Stages in Python

    def watch_energy(self, tick: int) -> None:
        """Record once a second whether the integration made or lost much energy; warn once."""
        audit = self.plant.audit if (tick + 1) % ENERGY_PERIODS == 0 else None
        if audit is None or self._energy_doubted:
            return
        size_j = abs(audit.missing_j)
        free_j = FLOOR_LIFT_M * STANDARD_GRAVITY_M_S2 * self.scenario.system.mass_kg
        if size_j - free_j > DOUBTFUL_SHARE * audit.absolute_work_j:
            self._energy_doubted = True
            how = "came from nothing" if audit.missing_j < 0.0 else "got lost in the integration"
            what = f"{size_j:.2g} J {how}, in {audit.absolute_work_j:.3g} J of work"
            self.events.note(self.time_s, "doubtful", what)

    def watch_strength(self, tick: int) -> None:
        """Record once for each cable that its rope would have parted, where no plant parts it."""
        for i, cable in enumerate(self.scenario.system.cables):
            strength_n = cable.break_force_n
            peak_n = self.max_tension_n[i]
            if strength_n is None or peak_n <= OVERLOAD * strength_n or i in self._overloaded:
                continue
            if self.plant.parts_at_n(i) is not None:
                continue
            self._overloaded |= {i}
            what = (
                f"cable_{i + 1} is pulled with {peak_n:.4g} N, more than it holds "
                f"({cable.break_force_words}), and did not part"
            )
            self.events.note(self.time_s, "doubtful", what)

    def doubt_estimator(self, tick: int) -> None:
        """Record in the last period why the load's estimate is doubtful."""
        estimation = self.components.load_estimation if self.finished else None
        if estimation is not None and (what := estimation.doubt()):
            self.events.note(self.time_s, "doubtful", what)

    def judge_capture(self, tick: int) -> None:
        """Judge the samples of motion capture that arrive, and note which bodies are doubted."""
        estimator = self.components.estimator
        assert isinstance(estimator, MotionCapture)
        assert estimator.relay is not None
        for text in estimator.relay.step(tick, self.links.heard.armed):
            self.events.note((tick + 1) * CONTROL_PERIOD_S, "mocap", text)

    def watch_collisions(self, tick: int) -> None:
        """Record collisions that begin."""
        assert self.collisions is not None
        self._note_collisions(tick, self.collisions.look(tick))

    def watch_cables(self, tick: int) -> None:
        """Record cables that begin to touch obstacles."""
        assert self.collisions is not None
        self._note_collisions(tick, self.collisions.look_at_cables(tick))

    def _note_collisions(self, tick: int, collisions: list[Collision]) -> None:
        time_s = (tick + 1) * CONTROL_PERIOD_S
        for collision in collisions:
            self.events.note(time_s, "collision", str(collision))
            if self.scenario.limits.collision == "end":
                raise CollisionError(f"collision at {time_s:.3f} s: {collision}")

    def note_empty_batteries(self, tick: int) -> None:
        """Record batteries that have become empty."""
        assert self.power is not None
        for drone in self.power.newly_empty():
            self.events.note(tick * CONTROL_PERIOD_S, "battery_empty", f"drone_{drone}")

    def move(self, tick: int) -> None:
        """Advance the plant by a period."""
        self.plant.step(self.inputs)
        self.tension_peaks.note(tick, self.plant.state.tension_peak_n)

    def note_cable_events(self, tick: int) -> None:
        """Record events of the cables."""
        happened = self.plant.happened
        if happened:
            for event in happened:
                self.events.note(event.time_s, event.kind, event.what)
            happened.clear()

    def note_controller_events(self, tick: int) -> None:
        """Record events of the controller."""
        controller = self.flying
        time_s = tick * CONTROL_PERIOD_S
        assert controller is not None
        if not (happened := controller.happened):
            return
        with user_code(lambda: f" at {time_s:.3f} s", type(controller), "happened"):
            for kind, what in happened:
                self.events.note(time_s, kind, what)
            happened.clear()
