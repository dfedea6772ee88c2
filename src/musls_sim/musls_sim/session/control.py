"""Control: from a controller, or an autopilot, down to what acts on the plant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import SETPOINT_COLUMNS, MotorCommands, NoAutopilot
from musls_control.brief.flown_by import controller_of
from musls_control.chain import (
    ForcesToSetpoints,
    GeometricAttitude,
    Incremental,
    RotorMixer,
    rate_control,
)
from musls_control.controllers import (
    Controller,
    ControlLevel,
    WatchedController,
    level_of,
)
from musls_control.px4.cascade import Px4Cascade
from musls_control.reference import Reference
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import yaw_of
from musls_sim.imperfections import DroneLinks, SetpointLink
from musls_sim.plants.interface import PlantInputs
from musls_sim.scenario.scenario import Scenario, Tracker
from musls_sim.session.compiled_stages.control import (
    OF_LEVEL,
    ask_for_forces,
    fly_autopilots,
    law_arrays,
    law_of,
    measure_drones,
    no_commands,
    release_bodies,
    sampled,
)
from musls_sim.session.compiled_stages.world import COMMAND_COLUMNS, announce, delay_setpoints
from musls_sim.session.compose import Components
from musls_sim.session.guidance import Guidance
from musls_sim.session.loop import NEVER, Parts

ABSURD = 10.0
"""Ratio to the largest speed of a rotor, or thrust of a drone, above which a command is a
mistake."""

REPORT_EVERY = 250
"""Control periods between two looks at what a controller in compiled code reports."""

BY_AUTOPILOT = (ControlLevel.DRONE_SETPOINTS, ControlLevel.AUTOPILOT_FORCES)
"""Levels at which the autopilot flies on, by the set-points that come out."""


def make_controller(
    scenario: Scenario,
    period_s: float,
    given: Controller | Callable[..., Controller] | None = None,
) -> Controller | None:
    """Make the controller of a scenario, see `controller_of`."""
    incremental = scenario.autopilot.tracker is Tracker.INDI
    faults = scenario.imperfections
    return controller_of(
        scenario.brief,
        period_s,
        given,
        incremental=incremental,
        latency_s=scenario.estimation.load_latency_s,
        setpoint_delay_s=faults.setpoint_delay_s + 0.5 * faults.setpoint_jitter_s,
    )


class Control:
    """Stages of the session: controller, set-points of the autopilots, rotor commands or wrenches.

    Wrenches in the bodies' frames are those of one period; what acts beside adds to them.

    Attributes:
        arrays: Arrays of the compiled stages, by their names in `WORLD`; `asked` are the
            controller's commands.
        reference: The load's in each period, for a compiled controller; None before one flies.
        late: Compiled stages that bring set-points to the autopilots late.
        setpoints: Stages from the controller's commands to the autopilots' set-points, while it
            flies.
        rotors: Stages from these set-points, or from its commands, to the rotors.
        level: Level of its commands; drone_setpoints without one.
    """

    not_kept = frozenset({"reference"})  # follows from the plan

    def __init__(
        self,
        controller: Controller | None,
        components: Components,
        guidance: Guidance,
        command: MotorCommands,
        inputs: PlantInputs,
        links: DroneLinks,
        setpoint_link: SetpointLink | None,
    ) -> None:
        """`controller`: flies while the load hangs in the air; None leaves it to the autopilot.

        `setpoint_link`: brings set-points to the autopilot late; None for at once.
        """
        self._guidance = guidance
        self._command = command
        self._inputs = inputs
        inputs.rotor_command_rad_s = command.omega_cmd_rad_s
        self._system = components.scenario.system
        self._period_s = components.plant.period_s
        self._state = components.plant.state
        self._estimate = components.estimator.estimate
        self._autopilot = components.autopilot
        self.sent = links.heard
        self.heard = (links if setpoint_link is None else setpoint_link).heard
        compiled = type(components.autopilot) in (Px4Cascade, NoAutopilot)
        self._cascade: Parts = (release_bodies, fly_autopilots) if compiled else ()
        self.late: Parts = () if setpoint_link is None else (delay_setpoints,)
        self.setpoints: Parts = self.late
        self.rotors: Parts = self._cascade
        self._law: Parts = ()
        self._controller: WatchedController | None = None
        self._flies = self._controls = False  # has taken over; may fly in the coming periods
        level = ControlLevel.DRONE_SETPOINTS if controller is None else level_of(controller)
        self.level = level
        self.reference: NDArray[np.void] | None = None
        self._nothing = no_commands(level, self._system.n_drones, self._system.n_rotors)
        self.arrays: dict[str, NDArray[Any]] = {"asked": self._nothing.copy()}
        if controller is None:
            return
        tracker = components.scenario.autopilot.tracker
        if tracker is Tracker.INDI and level is not ControlLevel.FORCES:
            raise ConfigError(
                "autopilot.tracker = indi turns forces into rotor speeds, but the controller's "
                f"level is {level.value}: choose one of level forces, such as payload with "
                "output: direct"
            )
        if components.autopilot.has_sensors and level not in BY_AUTOPILOT:
            raise ConfigError(
                f"a controller of level {level.value} cannot fly real PX4s: choose level "
                f"{' or '.join(able.value for able in BY_AUTOPILOT)}, or autopilot.kind: builtin"
            )
        self._flown = controller
        self._plan = components.plan
        self._law = law_of(controller)
        self._complete(level, tracker)
        self._controller = WatchedController(
            controller,
            tuple((self._system.n_drones, width) for width in self._widths(level)),
            takes_nan=level is ControlLevel.DRONE_SETPOINTS,
            largest=self._largest(level),
        )
        self._asked_of: Reference | None = None

    @property
    def mean_step_us(self) -> float | None:
        """Mean wall time of a call of the controller [us], None where Python calls none."""
        if self._controller is None or not self._controller.calls:
            return None
        return self._controller.total_s / self._controller.calls * 1e6

    # ---------- Stages: a controller in Python or compiled, set-points, autopilot

    def choose_law(self, tick: int) -> Parts:
        """Choose the compiled controller from this period on; none where `command` is called."""
        self._controls = self._guidance.controls
        if not self._controls:
            if self._flies:
                self._hand_back()
                self._guidance.on_controller_end(tick)
            return ()
        if not self._law or self._guidance.reference not in (None, self._plan.reference):
            return ()  # what people ask for beside the plan, `command` follows
        if not self._flies:
            if self.level is ControlLevel.IDEAL_THRUST_MOMENT:
                return ()  # `command` takes over: rotors rest, but not before they are recorded
            self.take_over(tick * self._period_s)
        return self._law

    def next_command(self, tick: int) -> float:
        """First period, from one on, in which `command` has something to do."""
        return tick if self._controls else NEVER

    def command(self, tick: int) -> None:
        """Write the commands of a controller in Python."""
        controller = self._controller
        time_s = tick * self._period_s
        assert controller is not None
        if not self._flies:
            self.take_over(time_s)
        in_plan = tick - round(self._guidance.begin_s / self._period_s)
        followed = self._guidance.reference or self._plan.reference
        if followed is not self._asked_of:
            self._asked_of = followed
            self._reference = followed.stepped(self._period_s)
        commands = controller.step(time_s, self._reference.at(in_plan), self._estimate)
        if self.level is ControlLevel.DRONE_SETPOINTS:
            self._follow_setpoints(commands, tick)
            return
        request = self.arrays["asked"]
        request[:] = self._nothing
        request[:, : commands.shape[1]] = commands

    def _follow_setpoints(self, commands: Array, tick: int) -> None:
        """Position and yaw, or all columns of the set-points; arming stays with the guidance."""
        rows = self._guidance.setpoint.data
        if commands.shape[1] == SETPOINT_COLUMNS:
            rows[:, :11] = commands[:, :11]
        else:
            rows[:, 0:3] = commands[:, 0:3]
            rows[:, 9] = commands[:, 3]
        self._guidance.on_controller_setpoints(tick)

    def choose_setpoints(self, tick: int) -> Parts:
        """Choose the compiled stages that write the set-points of the autopilots."""
        return self.setpoints if self._controls else self.late

    def choose(self, tick: int) -> Parts:
        """Choose the compiled stage that commands the rotors; none where `step` is called."""
        return self.rotors if self._controls else self._cascade

    def step(self, tick: int) -> None:
        """Call an autopilot that is not compiled."""
        self._inputs.wrench_body.fill(0.0)
        self._autopilot.step(tick * self._period_s, self.heard, self._estimate, self._command)

    @property
    def announces(self) -> bool:
        """Whether the controller asks the autopilots for accelerations, which are announced."""
        return self._controller is not None and self.level is ControlLevel.AUTOPILOT_FORCES

    def next_events(self, tick: int) -> float:
        """First period, from one on, in which the controller may report an event."""
        return tick if not self._law else -(-(tick + 1) // REPORT_EVERY) * REPORT_EVERY - 1

    # ---------- Between controller and autopilot

    def take_over(self, time_s: float) -> None:
        """Give control to the controller."""
        assert self._controller is not None
        self._flies = True
        if self.level is ControlLevel.AUTOPILOT_FORCES:  # begins with the hover thrust of now
            hover = self._autopilot.hover_thrust
            self._ask.start(self._state.rotor_speed_rad_s, self._estimate.drones, hover)
        elif self.level is ControlLevel.THRUST_RATES:
            self.arrays["rates"]["missed"] = 0.0
        elif self._measured is not None:
            self._measured.start(self._estimate.drones)
        elif self.level is ControlLevel.IDEAL_THRUST_MOMENT:
            self._command.data[:] = 0.0
            self._state.rotor_speed_rad_s[:] = 0.0
        self._controller.start(time_s, self._estimate)
        if self._law:
            self.arrays |= law_arrays(self._flown)
            self.sample()
        if self._controller.keeps_headings:
            self._guidance.keep_headings(time_s, yaw_of(self._estimate.orientation_wxyz[1:]))

    def sample(self) -> None:
        """Sample the plan's reference for a compiled controller that flies, unless it is done."""
        if self._law and self._flies and self.reference is None:
            plan = self._plan
            self.reference = sampled(plan.reference, self._period_s, plan.duration_s)

    def _hand_back(self) -> None:
        """Give control back to the autopilot at the present thrust, as after a long hover."""
        self._flies = False
        wrench = self._inputs.wrench_body
        speeds = self._state.rotor_speed_rad_s
        if self.level is ControlLevel.IDEAL_THRUST_MOMENT:  # the rotors carry what these carried
            thrust_n = wrench[1:, 5].copy()
            moment_n_m = wrench[1:, 0:3].copy()
            mixer = RotorMixer(self._system.drones)
            mixer.step(thrust_n, moment_n_m, self._command.omega_cmd_rad_s)
            speeds[:] = self._command.omega_cmd_rad_s
        if self.level is not ControlLevel.DRONE_SETPOINTS:
            carried = self._plan.carried
            aside = None
            if carried is not None:
                load_yaw_rad = float(yaw_of(self._estimate.orientation_wxyz[0]))
                aside = carried.aside_m_s2(1.0, load_yaw_rad)
            self._autopilot.resume(speeds, self._estimate, self._guidance.fed_m_s2, aside)

    # ---------- What completes the chain from each level down to the plant

    def _complete(self, level: ControlLevel, tracker: Tracker) -> None:
        """Choose the compiled stages of a level, and make what they work on."""
        drones = self._system.drones
        arrays = self.arrays
        self._measured: Incremental | None = None
        if level is ControlLevel.AUTOPILOT_FORCES:
            self._ask = ForcesToSetpoints(self._system, self._guidance.setpoint, self._period_s)
            arrays["thrust"] = self._ask.thrust
            self.setpoints = (ask_for_forces, announce, *self.late)
        if level in BY_AUTOPILOT:
            return
        self.setpoints = ()
        self.rotors = (release_bodies, OF_LEVEL[level])
        if level in (ControlLevel.ROTOR_SPEEDS, ControlLevel.IDEAL_THRUST_MOMENT):
            return
        arrays["shares"] = RotorMixer(drones).rotors
        if level is ControlLevel.THRUST_RATES:
            arrays["rates"] = rate_control(drones)
        if level is ControlLevel.FORCES:
            attitude = GeometricAttitude.of(drones)
            arrays |= {"attitude": attitude.drones, "gains": attitude.gains}
            if tracker is Tracker.INDI:
                stiffness, damping = attitude.gains[:, 0]
                incremental = Incremental(drones, self._period_s, damping / stiffness)
                arrays |= {"measured": incremental.drones, "rotor_wrench": incremental.wrench}
                self._measured = incremental
                self.rotors = (measure_drones, *self.rotors)

    def _widths(self, level: ControlLevel) -> tuple[int, ...]:
        """Numbers of columns that commands of a level may have."""
        if level in (ControlLevel.FORCES, ControlLevel.AUTOPILOT_FORCES):
            return 3, 4, 7, COMMAND_COLUMNS
        if level is ControlLevel.DRONE_SETPOINTS:
            return 4, SETPOINT_COLUMNS
        return (self._system.n_rotors if level is ControlLevel.ROTOR_SPEEDS else 4,)

    def _largest(self, level: ControlLevel) -> float:
        """Largest command of a level that nothing limits on its way to the bodies."""
        if level is ControlLevel.ROTOR_SPEEDS:
            rotors = [rotor for drone in self._system.drones for rotor in drone.rotors]
            return ABSURD * max(rotor.speed_max_rad_s for rotor in rotors)
        if level is ControlLevel.IDEAL_THRUST_MOMENT:
            return ABSURD * max(drone.max_thrust_n for drone in self._system.drones)
        return math.inf
