"""The control step: autopilot or controller, down to what acts on the plant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import SETPOINT_COLUMNS, MotorCommands, NoAutopilot
from musls_control.chain import (
    ForcesToSetpoints,
    GeometricAttitude,
    Incremental,
    RotorMixer,
    tilting_rad_s,
)
from musls_control.controllers import (
    Controller,
    ControlLevel,
    ControlSetup,
    FormationSpec,
    WatchedController,
    level_of,
)
from musls_control.controllers.payload.controller import flying_controller
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
    fly_autopilots,
    has_law,
    law_of,
    sampled,
)
from musls_sim.session.compiled_stages.world import ANNOUNCE_EVERY, announce, delay_setpoints
from musls_sim.session.compose import Components
from musls_sim.session.guidance import Guidance
from musls_sim.session.loop import Parts

LARGEST_MISS_RAD = 0.3
"""Largest integral of the error of a body rate."""

ABSURD = 10.0
"""Over the largest speed of a rotor, or thrust of a drone: a command beyond is a mistake."""

REPORT_EVERY = 250
"""Control periods between two looks at what a controller in compiled code reports."""

BY_AUTOPILOT = (ControlLevel.DRONE_SETPOINTS, ControlLevel.AUTOPILOT_FORCES)
"""Levels at which the autopilot flies on, by the set-points that come out."""


def make_controller(
    scenario: Scenario,
    period_s: float,
    given: Controller | Callable[..., Controller] | None = None,
) -> Controller | None:
    """Make the controller of a scenario, None for the formation's set-points alone."""
    if given is None and isinstance(scenario.controller, FormationSpec):
        return None
    if not scenario.system.n_drones:
        raise ConfigError(
            f"controller.kind = {scenario.controller.kind}: system {scenario.system.name} has no "
            "drones that it could fly"
        )
    setup = ControlSetup(
        scenario.system.formation or scenario.system,
        scenario.formation,
        scenario.physics.gravity_m_s2,
        period_s,
        rods=scenario.cable_model == "rigid_rods",
        obstacles=scenario.world.obstacles,
        incremental=scenario.autopilot.tracker is Tracker.INDI,
    )
    if given is None:
        made = scenario.controller.build(setup)
        maker = f"controller.kind = {scenario.controller.kind}"
        if made is None:
            return None
    else:
        made = given() if callable(given) and not isinstance(given, Controller) else given
        maker = repr(given)
    if not isinstance(made, Controller):
        raise ConfigError(f"{maker} makes a {type(made).__name__}, not a musls.Controller")
    return flying_controller(made, setup)


class Control:
    """A step of the session: writes rotor commands, or wrenches, into the plant's inputs.

    Wrenches in the bodies' frames are those of one period; what acts beside adds to them.

    Attributes:
        attitude: Turns the drones at the level of forces.
        ask: Asks the autopilot for them at its level of forces.
        mixer: Mixes thrust and moment at the levels that need it.
    """

    attitude: GeometricAttitude
    ask: ForcesToSetpoints
    mixer: RotorMixer

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
        self._guidance, self._command, self._inputs = guidance, command, inputs
        inputs.rotor_command_rad_s = command.omega_cmd_rad_s
        self._system, self._period_s = components.scenario.system, components.plant.period_s
        self._state, self._estimate = components.plant.state, components.estimator.estimate
        self._autopilot = components.autopilot
        self._setpoint_link, self.sent = setpoint_link, links.heard
        self.heard = (links if setpoint_link is None else setpoint_link).heard
        self._by_cascade: Parts = ()
        if type(components.autopilot) in (Px4Cascade, NoAutopilot):
            late = () if setpoint_link is None else (delay_setpoints,)
            self._by_cascade = (*late, fly_autopilots)
        self._by_law: Parts = ()
        self.law_arrays: dict[str, NDArray[Any]] = {}
        self._controller: WatchedController | None = None
        self._flies = False
        self.step: Callable[[int], None] = self._step_autopilot
        if controller is None:
            return
        self._level = level = level_of(controller)
        self._tracker = components.scenario.autopilot.tracker
        self._measured: Incremental | None = None
        if self._tracker is Tracker.INDI and level is not ControlLevel.FORCES:
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
        self._flown, self._plan = controller, components.plan
        self._lawful = has_law(controller) and self._law_can_fly()
        self._apply, widths = self._chain(level)
        self._controller = WatchedController(
            controller,
            tuple((self._system.n_drones, width) for width in widths),
            takes_nan=level is ControlLevel.DRONE_SETPOINTS,
            largest=self._largest(level),
        )
        self._asked_of: Reference | None = None
        self.step = self._step_controller

    @property
    def mean_step_us(self) -> float | None:
        """Mean wall time of a call of the controller [us], None where Python calls none."""
        if self._controller is None or not self._controller.calls:
            return None
        return self._controller.total_s / self._controller.calls * 1e6

    def _step_autopilot(self, tick: int) -> None:
        self._inputs.wrench_body.fill(0.0)
        if self._setpoint_link is not None:
            self._setpoint_link.step(tick)
        self._autopilot.step(tick * self._period_s, self.heard, self._estimate, self._command)

    def _step_controller(self, tick: int) -> None:
        """The controller while the load hangs in the air, else the autopilot alone."""
        controller = self._controller
        if controller is None or not self._guidance.controls:
            if self._flies:
                self._hand_back()
                self._guidance.on_controller_end(tick)
            self._step_autopilot(tick)
            return
        time_s = tick * self._period_s
        if not self._flies:
            self.take_over(time_s)
        self._inputs.wrench_body.fill(0.0)
        in_plan = tick - round(self._guidance.begin_s / self._period_s)
        asked = self._guidance.reference or self._plan.reference
        if asked is not self._asked_of:
            self._asked_of, self._reference = asked, asked.stepped(self._period_s)
        self._apply(controller.step(time_s, self._reference.at(in_plan), self._estimate), tick)
        if self._level in BY_AUTOPILOT:
            self._step_autopilot(tick)

    # ------------------------------------------------------------------- the same in compiled code

    def choose(self, tick: int) -> Parts:
        """Choose the compiled stage that controls from this period on; none where Python does."""
        controller = self._controller
        if controller is None or (self._by_cascade and not self._guidance.controls):
            if self._flies:
                self._hand_back()
                self._guidance.on_controller_end(tick)
            return self._by_cascade
        if not (self._lawful and self._guidance.controls):
            return ()
        if self._guidance.reference not in (None, self._plan.reference):
            return ()  # what people ask for beside the plan, `step` follows
        if not self._flies:
            if self._level is ControlLevel.IDEAL_THRUST_MOMENT:
                return ()  # `step` takes over: the rotors rest, but not before they are recorded
            self.take_over(tick * self._period_s)
        if not self._by_law:
            law = law_of(self._flown)
            reference = sampled(self._plan.reference, self._period_s, self._plan.duration_s)
            self.law_arrays = law.arrays | {"reference": reference}
            self._by_law = (law.fly, *self.parts_of(self._level))
        return self._by_law

    def parts_of(self, level: ControlLevel) -> Parts:
        """Compiled functions that apply commands of a level."""
        return (*OF_LEVEL[level], *(self._by_cascade if level in BY_AUTOPILOT else ()))

    def _law_can_fly(self) -> bool:
        plain = self._tracker is Tracker.GEOMETRIC
        if self._level in BY_AUTOPILOT:
            plain &= bool(self._by_cascade)
        return plain and self._level in OF_LEVEL

    @property
    def announces(self) -> bool:
        """Whether a controller in compiled code asks the autopilots for what is to be announced."""
        controls = self._controller is not None and self._lawful
        return controls and self._level is ControlLevel.AUTOPILOT_FORCES

    def choose_announcements(self, tick: int) -> Parts:
        """Compiled stage that announces the controller's commands while it flies."""
        return (announce,) if self._flies else ()

    def next_events(self, tick: int) -> float:
        """First period, from one on, in which the controller may report an event."""
        lawful = self._controller is not None and self._lawful
        return -(-(tick + 1) // REPORT_EVERY) * REPORT_EVERY - 1 if lawful else tick

    def take_over(self, time_s: float) -> None:
        """Give control to the controller."""
        assert self._controller is not None
        self._flies, self._by_law = True, ()
        if self._level is ControlLevel.AUTOPILOT_FORCES:  # begins with the hover thrust of now
            hover = self._autopilot.hover_thrust
            self.ask.start(self._state.rotor_speed_rad_s, self._estimate.drones, hover)
        elif self._level is ControlLevel.THRUST_RATES:
            self._missed[:] = 0.0
        elif self._measured is not None:
            self._measured.start(self._estimate.drones)
        elif self._level is ControlLevel.IDEAL_THRUST_MOMENT:
            self._command.data[:] = 0.0
            self._state.rotor_speed_rad_s[:] = 0.0
        self._controller.start(time_s, self._estimate)
        if self._controller.keeps_headings:
            self._guidance.keep_headings(time_s, yaw_of(self._estimate.orientation_wxyz[1:]))

    def _hand_back(self) -> None:
        """Give control back to the autopilot at the present thrust, as after a long hover."""
        self._flies = False
        wrench, speeds = self._inputs.wrench_body, self._state.rotor_speed_rad_s
        if self._level is ControlLevel.IDEAL_THRUST_MOMENT:  # the rotors carry what these carried
            self.mixer = RotorMixer(self._system.drones)
            self._mix(np.column_stack([wrench[1:, 5], wrench[1:, 0:3]]), 0)
            speeds[:] = self._command.omega_cmd_rad_s
        if self._level is not ControlLevel.DRONE_SETPOINTS:
            carried, aside = self._plan.carried, None
            if carried is not None:
                load_yaw_rad = float(yaw_of(self._estimate.orientation_wxyz[0]))
                aside = carried.aside_m_s2(1.0, load_yaw_rad)
            self._autopilot.resume(speeds, self._estimate, self._guidance.fed_m_s2, aside)

    # What completes the chain from each level down to the plant.

    def _chain(self, level: ControlLevel) -> tuple[Callable[[Array, int], None], tuple[int, ...]]:
        """Function that applies commands of a level, and the numbers of columns they may have."""
        drones = self._system.drones
        if level is ControlLevel.DRONE_SETPOINTS:
            return self._follow_setpoints, (4, SETPOINT_COLUMNS)
        if level is ControlLevel.ROTOR_SPEEDS:
            return self._turn_rotors, (self._system.n_rotors,)
        if level is ControlLevel.IDEAL_THRUST_MOMENT:
            return self._push_bodies, (4,)
        if level is ControlLevel.AUTOPILOT_FORCES:
            self.ask = ForcesToSetpoints(self._system, self._guidance.setpoint, self._period_s)
            return self._ask_for_forces, (3, 4, 7, 10)
        self.mixer = RotorMixer(drones)
        if level is ControlLevel.THRUST_MOMENT:
            return self._mix, (4,)
        if level is ControlLevel.THRUST_RATES:
            self._inertia = np.array([drone.inertia_kg_m2 for drone in drones])
            self._rate_gain = np.array([2.0, 2.0, 1.0]) * tilting_rad_s(drones)
            self._missed = np.zeros((len(drones), 3))
            return self._hold_rates, (4,)
        self.attitude = GeometricAttitude.of(drones)
        if self._tracker is Tracker.INDI:
            stiffness, damping = self.attitude.gains[:, 0]
            self._measured = Incremental(drones, self._period_s, damping / stiffness)
        return self._turn_drones, (3, 4, 7, 10)

    def _largest(self, level: ControlLevel) -> float:
        """Largest command of a level that nothing limits on its way to the bodies."""
        if level is ControlLevel.ROTOR_SPEEDS:
            rotors = [rotor for drone in self._system.drones for rotor in drone.rotors]
            return ABSURD * max(rotor.speed_max_rad_s for rotor in rotors)
        if level is ControlLevel.IDEAL_THRUST_MOMENT:
            return ABSURD * max(drone.max_thrust_n for drone in self._system.drones)
        return math.inf

    def _follow_setpoints(self, commands: Array, tick: int) -> None:
        """Position and yaw, or all columns of the set-points; arming stays with the guidance."""
        rows = self._guidance.setpoint.data
        if commands.shape[1] == SETPOINT_COLUMNS:
            rows[:, :11] = commands[:, :11]
        else:
            rows[:, 0:3], rows[:, 9] = commands[:, 0:3], commands[:, 3]
        self._guidance.on_controller_setpoints(tick)

    def _ask_for_forces(self, commands: Array, tick: int) -> None:
        """Command the wanted forces to the autopilots, as acceleration set-points."""
        self.ask(commands, self._command.throttle)
        if tick % ANNOUNCE_EVERY == 0:
            self._guidance.on_controller_acceleration(tick, self._guidance.setpoint.data[:, 6:9])

    def _turn_drones(self, commands: Array, tick: int) -> None:
        """Turn the drones so that their thrust gives the wanted forces, then mix the rotors.

        Without a yaw the guidance's is kept.
        """
        drones, columns = self.attitude.drones, commands.shape[1]
        drones["force"] = commands[:, 0:3]
        drones["yaw"] = commands[:, 3] if columns > 3 else self._guidance.setpoint.yaw_enu_rad
        measured, motion = self._measured, self._estimate.drones
        if measured is not None:
            measured.correct(self.attitude, commands, motion, self._state.rotor_speed_rad_s)
        self.attitude.step(motion)
        moment_n_m = drones["moment"].copy()
        if columns >= 7:
            moment_n_m += commands[:, 4:7]
        if measured is not None:
            moment_n_m -= measured.drones["moment"]["value"]
        self.mixer.step(drones["thrust"].copy(), moment_n_m, self._command.omega_cmd_rad_s)

    def _hold_rates(self, commands: Array, tick: int) -> None:
        """Bring the body rates to the wanted ones, then mix the rotors.

        J w' = J (K e + K^2 / 8 int e), e = w_d - w: damped by sqrt(2), and the integral (at most
        `LARGEST_MISS_RAD`) carries the moment of a cable that pulls beside the middle.
        """
        omega, k = self._estimate.drones.omega_body_rad_s, self._rate_gain
        error = commands[:, 1:4] - omega
        self._missed += self._period_s * error
        self._missed.clip(-LARGEST_MISS_RAD, LARGEST_MISS_RAD, out=self._missed)
        momentum = np.einsum("nij,nj->ni", self._inertia, omega)
        wanted = np.einsum("nij,nj->ni", self._inertia, k * error + k * k / 8.0 * self._missed)
        moment_n_m = wanted + np.cross(omega, momentum)
        self.mixer.step(commands[:, 0].copy(), moment_n_m, self._command.omega_cmd_rad_s)

    def _mix(self, commands: Array, tick: int) -> None:
        """Mix thrust and moment to rotor speeds through the true rotor geometry."""
        thrust_n, moment_n_m = commands[:, 0].copy(), commands[:, 1:4].copy()
        self.mixer.step(thrust_n, moment_n_m, self._command.omega_cmd_rad_s)

    def _push_bodies(self, commands: Array, tick: int) -> None:
        """Put thrust and moment on the bodies at once; the rotors rest meanwhile."""
        wrench = self._inputs.wrench_body
        wrench[1:, 0:3], wrench[1:, 5] = commands[:, 1:4], commands[:, 0]

    def _turn_rotors(self, commands: Array, tick: int) -> None:
        """Pass rotor speeds on."""
        self._command.omega_cmd_rad_s[:] = commands
