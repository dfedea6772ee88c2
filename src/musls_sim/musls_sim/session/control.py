"""The control step: autopilot or controller, down to what acts on the plant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import SETPOINT_COLUMNS, MotorCommands
from musls_control.controllers import Controller, ControlLevel, ControlSetup, FormationSpec
from musls_control.controllers.interface import WatchedController, level_of, prepare_controller
from musls_control.geometric_attitude import GeometricAttitude
from musls_control.mixing import RotorMixer
from musls_control.payload.actuation import ForcesToSetpoints
from musls_control.phases import GROUND_PHASES
from musls_control.px4_cascade.allocation import rotor_lag_s
from musls_description.errors import ConfigError
from musls_description.system import slung_system
from musls_sim.plants.interface import PlantInputs
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.compose import Components
from musls_sim.session.guidance import ANNOUNCE_EVERY, Guidance
from musls_sim.session.imperfections import SetpointLink

Array = NDArray[np.float64]

BANDWIDTH = 0.3
"""Natural frequency of roll and pitch times the time constant of the rotors; 12 rad/s for an x500.
Higher ones let the lag of the rotors eat up the damping."""


class LevelAdapter:
    """Turns commands of one level into what acts on the plant, or into set-points.

    Attributes:
        takes_nan: Whether NaN stands for what is not given, as in set-points.
        by_autopilot: Whether the autopilot flies on, by the set-points that come out.
    """

    takes_nan = False
    by_autopilot = False

    def __init__(
        self,
        parts: Components,
        guidance: Guidance,
        command: MotorCommands,
        inputs: PlantInputs,
    ) -> None:
        """Connect with what is written to.

        Raises:
            ConfigError: The rotors cannot produce roll, pitch, yaw and thrust independently.
        """
        self.system, self.period_s = parts.scenario.system, parts.plant.period_s
        self.guidance, self.setpoint = guidance, guidance.setpoint
        self.command, self.inputs = command, inputs
        self.estimate, self.state = parts.estimator.estimate, parts.plant.state
        self.prepare()

    @staticmethod
    def shapes(n: int, n_rotors: int) -> tuple[tuple[int, ...], ...]:
        """Shapes that commands may have."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Build what the level needs."""

    def start(self) -> None:
        """The controller takes over."""

    def apply(self, commands: Array, tick: int) -> None:
        """Write what commands mean."""
        raise NotImplementedError

    def end(self) -> None:
        """The autopilot takes over again."""


class SetpointLevel(LevelAdapter):
    """Position and yaw, or all columns of the set-points."""

    takes_nan = by_autopilot = True

    @staticmethod
    def shapes(n: int, n_rotors: int) -> tuple[tuple[int, ...], ...]:
        """See `LevelAdapter.shapes`."""
        return (n, 4), (n, SETPOINT_COLUMNS)

    def apply(self, commands: Array, tick: int) -> None:
        """See `LevelAdapter.apply`; arming stays with the guidance."""
        rows = self.setpoint.data
        if commands.shape[1] == SETPOINT_COLUMNS:
            armed = rows[:, 11].copy()
            rows[:] = commands
            rows[:, 11] = armed
        else:
            rows[:, 0:3], rows[:, 9] = commands[:, 0:3], commands[:, 3]
        self.guidance.on_controller_setpoints(tick)


class ForceLevel(LevelAdapter):
    """Turns the drones so that their thrust gives the wanted forces, then mixes the rotors."""

    @staticmethod
    def shapes(n: int, n_rotors: int) -> tuple[tuple[int, ...], ...]:
        """See `LevelAdapter.shapes`: forces, with yaw, with yaw and an added moment."""
        return (n, 3), (n, 4), (n, 7)

    def prepare(self) -> None:
        """Prepare attitude control and mixer."""
        drones, n = self.system.drones, self.system.n_drones
        tilting = BANDWIDTH / max(rotor_lag_s(drone) for drone in drones)
        self._attitude = GeometricAttitude(
            [drone.inertia_kg_m2 for drone in drones], (tilting, tilting, tilting / 3.0)
        )
        self._mixer = RotorMixer(drones)
        self._thrust_n, self._moment_n_m = np.zeros(n), np.zeros((n, 3))

    def apply(self, commands: Array, tick: int) -> None:
        """See `LevelAdapter.apply`; without a yaw the guidance's is kept."""
        drones, given = self._attitude.drones, commands.shape[1] > 3
        drones["force"] = commands[:, 0:3]
        drones["yaw"] = commands[:, 3] if given else self.setpoint.yaw_enu_rad
        self._attitude.step(self.estimate.drones)
        self._thrust_n[:], self._moment_n_m[:] = drones["thrust"], drones["moment"]
        if commands.shape[1] == 7:
            self._moment_n_m += commands[:, 4:7]
        self._mixer.step(self._thrust_n, self._moment_n_m, self.command.omega_cmd_rad_s)


class AutopilotForceLevel(ForceLevel):
    """Lets the autopilot exert the wanted forces, by acceleration set-points."""

    by_autopilot = True

    def prepare(self) -> None:
        """Prepare the conversion."""
        self._ask = ForcesToSetpoints(self.system, self.setpoint, self.period_s)

    def start(self) -> None:
        """See `LevelAdapter.start`: begin with the hover thrust of now."""
        self._ask.start(self.state.rotor_speed_rad_s, self.estimate.drones)

    def apply(self, commands: Array, tick: int) -> None:
        """See `LevelAdapter.apply`."""
        self._ask(commands, self.command.throttle)
        if tick % ANNOUNCE_EVERY == 0:
            self.guidance.on_controller_acceleration(tick)


class ThrustMomentLevel(LevelAdapter):
    """Mixes thrust and moment to rotor speeds through the true rotor geometry."""

    @staticmethod
    def shapes(n: int, n_rotors: int) -> tuple[tuple[int, ...], ...]:
        """See `LevelAdapter.shapes`."""
        return ((n, 4),)

    def prepare(self) -> None:
        """Prepare the mixer."""
        self._mixer = RotorMixer(self.system.drones)
        self._thrust_n = np.zeros(self.system.n_drones)
        self._moment_n_m = np.zeros((self.system.n_drones, 3))

    def apply(self, commands: Array, tick: int) -> None:
        """See `LevelAdapter.apply`."""
        self._thrust_n[:], self._moment_n_m[:] = commands[:, 0], commands[:, 1:4]
        self._mixer.step(self._thrust_n, self._moment_n_m, self.command.omega_cmd_rad_s)


class IdealThrustMomentLevel(ThrustMomentLevel):
    """Puts thrust and moment on the bodies at once; the rotors rest meanwhile."""

    def prepare(self) -> None:
        """Nothing to prepare."""

    def start(self) -> None:
        """See `LevelAdapter.start`: stop the rotors."""
        self.command.data[:] = 0.0
        self.state.rotor_speed_rad_s[:] = 0.0

    def apply(self, commands: Array, tick: int) -> None:
        """See `LevelAdapter.apply`."""
        wrench = self.inputs.wrench_body
        wrench[1:, 0:3], wrench[1:, 5] = commands[:, 1:4], commands[:, 0]

    def end(self) -> None:
        """See `LevelAdapter.end`: let the rotors carry what the ideal wrenches carried."""
        wrench, speeds = self.inputs.wrench_body[1:], self.command.omega_cmd_rad_s
        super().prepare()
        super().apply(np.column_stack([wrench[:, 5], wrench[:, 0:3]]), 0)
        self.state.rotor_speed_rad_s[:] = speeds


class RotorSpeedLevel(LevelAdapter):
    """Hands rotor speeds on as they are."""

    @staticmethod
    def shapes(n: int, n_rotors: int) -> tuple[tuple[int, ...], ...]:
        """See `LevelAdapter.shapes`."""
        return ((n, n_rotors),)

    def apply(self, commands: Array, tick: int) -> None:
        """See `LevelAdapter.apply`."""
        self.command.omega_cmd_rad_s[:] = commands


LEVELS: dict[ControlLevel, type[LevelAdapter]] = {
    ControlLevel.DRONE_SETPOINTS: SetpointLevel,
    ControlLevel.FORCES: ForceLevel,
    ControlLevel.AUTOPILOT_FORCES: AutopilotForceLevel,
    ControlLevel.THRUST_MOMENT: ThrustMomentLevel,
    ControlLevel.ROTOR_SPEEDS: RotorSpeedLevel,
    ControlLevel.IDEAL_THRUST_MOMENT: IdealThrustMomentLevel,
}
"""What completes the chain from each level down to the plant."""


def make_controller(
    scenario: Scenario,
    period_s: float,
    given: Controller | Callable[..., Controller] | None = None,
) -> Controller | None:
    """Make the controller of a scenario, None for the formation's set-points alone.

    Raises:
        ConfigError: No such class, or its parameters do not fit.
        ControllerError: It failed getting to know the system.
    """
    if given is None and isinstance(scenario.controller, FormationSpec):
        return None
    system = scenario.system.formation or slung_system(
        scenario.system, f"controller.kind = {scenario.controller.kind}"
    )
    setup = ControlSetup(
        system,
        scenario.formation,
        scenario.physics.gravity_m_s2,
        period_s,
        rods=scenario.cable_model == "rigid_rods",
    )
    if given is None:
        made = scenario.controller.build(setup)
        maker = f"controller.kind = {scenario.controller.kind}"
        if made is None:
            return None
    else:
        made = given if isinstance(given, Controller) else given()
        maker = repr(given)
    if not isinstance(made, Controller):
        raise ConfigError(f"{maker} makes a {type(made).__name__}, not a musls.Controller")
    prepare_controller(made, setup)
    return made


class Control:
    """A step of the session: writes rotor commands, or wrenches, into the plant's inputs."""

    def __init__(
        self,
        controller: Controller | None,
        parts: Components,
        guidance: Guidance,
        command: MotorCommands,
        inputs: PlantInputs,
        link: SetpointLink | None = None,
    ) -> None:
        """Connect what takes part.

        `controller`: flies while the load hangs in the air; None leaves it to the autopilot.
        `link`: brings set-points to the autopilot late; None for at once.

        Raises:
            ConfigError: A controller of this level cannot fly these drones.
        """
        self._parts, self._guidance, self._command = parts, guidance, command
        inputs.rotor_command_rad_s = command.omega_cmd_rad_s
        self._inputs = inputs
        self._period_s = parts.plant.period_s
        self._estimate = parts.estimator.estimate
        self._step_autopilot = parts.autopilot.step
        self._link = link
        self._heard = guidance.setpoint if link is None else link.heard
        self._controller: WatchedController | None = None
        self._flies = False
        self.step: Callable[[int], None] = self._autopilot
        if controller is None:
            return
        level = level_of(controller)
        kind = LEVELS[level]
        if parts.autopilot.has_sensors and not kind.by_autopilot:
            able = [known.value for known, adapter in LEVELS.items() if adapter.by_autopilot]
            raise ConfigError(
                f"a controller of level {level.value} cannot fly real PX4s: choose level "
                f"{' or '.join(able)}, or autopilot.kind: builtin"
            )
        system = parts.scenario.system
        self._controller = WatchedController(
            controller, kind.shapes(system.n_drones, system.n_rotors), takes_nan=kind.takes_nan
        )
        self._reference = parts.plan.reference.stepped(self._period_s)
        self._level = kind(parts, guidance, command, inputs)
        self.step = self._fly

    @property
    def mean_step_us(self) -> float | None:
        """Mean wall time of a call of the controller [us], None without one."""
        if self._controller is None:
            return None
        return self._controller.total_s / max(self._controller.calls, 1) * 1e6

    def _autopilot(self, tick: int) -> None:
        if self._link is not None:
            self._link.step(tick)
        self._step_autopilot(tick * self._period_s, self._heard, self._estimate, self._command)

    def _fly(self, tick: int) -> None:
        """The controller while the load hangs in the air, else the autopilot alone."""
        controller, level = self._controller, self._level
        if controller is None or self._guidance.stage in GROUND_PHASES:
            if self._flies:
                self._hand_back()
                self._guidance.on_controller_end(tick)
            self._autopilot(tick)
            return
        time_s = tick * self._period_s
        if not self._flies:
            self._flies = True
            level.start()
            controller.start(time_s, self._estimate)
        level.apply(controller.step(time_s, self._reference.at(tick), self._estimate), tick)
        if level.by_autopilot:
            self._autopilot(tick)

    def _hand_back(self) -> None:
        """Let the autopilot go on from the present thrust, as after a long hover."""
        self._flies = False
        self._level.end()
        self._inputs.wrench_body[:] = 0.0
        if not self._level.by_autopilot:
            speeds = self._parts.plant.state.rotor_speed_rad_s
            self._parts.autopilot.resume(speeds, self._estimate)
