"""The control step: autopilot or controller, down to what acts on the plant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import SETPOINT_COLUMNS, MotorCommands
from musls_control.controllers import Controller, ControlLevel, ControlSetup
from musls_control.controllers.interface import WatchedController, level_of, prepare_controller
from musls_control.controllers.kinds import FormationSpec
from musls_control.estimate import Estimate
from musls_control.geometric_attitude import GeometricAttitude
from musls_control.mixing import RotorMixer
from musls_control.payload.actuation import ForcesToSetpoints
from musls_control.phases import GROUND_PHASES
from musls_control.px4_cascade.allocation import rotor_lag_s
from musls_description.errors import ConfigError
from musls_description.system import RigSystem, slung_system
from musls_sim.plants.interface import PlantInputs
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.compose import Parts
from musls_sim.session.guidance import ANNOUNCE_EVERY, Guidance
from musls_sim.session.imperfections import SetpointLink

# ---------- Adapters from the levels of controllers down to rotor speeds

BANDWIDTH = 0.3
"""Natural frequency of roll and pitch times the time constant of the rotors; 12 rad/s for an x500.
Higher ones let the lag of the rotors eat up the damping."""


class ThrustMomentToRotors:
    """Mixes thrust and moment of each drone to rotor speeds through the true rotor geometry."""

    def __init__(self, system: RigSystem) -> None:
        """Prepare the mixer.

        Raises:
            ConfigError: The rotors cannot produce roll, pitch, yaw and thrust independently.
        """
        self._mixer = RotorMixer(system.drones)
        self._thrust_n = np.zeros(system.n_drones)
        self._moment_n_m = np.zeros((system.n_drones, 3))

    def __call__(self, commands: Array, rotor_speed_rad_s: Array) -> None:
        """Write the rotor speeds.

        Args:
            commands: Thrust [N] and moment [N m, FLU] of each drone, (n, 4).
            rotor_speed_rad_s: Result, (n, n_rotors).
        """
        self._thrust_n[:], self._moment_n_m[:] = commands[:, 0], commands[:, 1:4]
        self._mixer.step(self._thrust_n, self._moment_n_m, rotor_speed_rad_s)


class ForcesToRotors:
    """Turns the drones so that their thrust gives the wanted forces, then mixes the rotors."""

    def __init__(self, system: RigSystem) -> None:
        """Prepare attitude control and mixer.

        Raises:
            ConfigError: The rotors cannot produce roll, pitch, yaw and thrust independently.
        """
        lag_s = max(rotor_lag_s(drone) for drone in system.drones)
        tilting = BANDWIDTH / lag_s
        self._attitude = GeometricAttitude(
            [drone.inertia_kg_m2 for drone in system.drones], (tilting, tilting, tilting / 3.0)
        )
        self._mixer = RotorMixer(system.drones)
        n = system.n_drones
        self._force_n, self._yaw_rad = np.zeros((n, 3)), np.zeros(n)
        self._thrust_n, self._moment_n_m = np.zeros(n), np.zeros((n, 3))

    def __call__(
        self, commands: Array, yaw_rad: Array, estimate: Estimate, rotor_speed_rad_s: Array
    ) -> None:
        """Write the rotor speeds.

        Args:
            commands: Force of each drone's rotors, world ENU, (n, 3) [N], or with the drone's yaw
                as fourth column, (n, 4), or with a moment that is added, FLU [N m], (n, 7).
            yaw_rad: Yaws of the drones where the commands have none, (n,).
            estimate: Measured attitudes and rates.
            rotor_speed_rad_s: Result, (n, n_rotors).
        """
        self._force_n[:] = commands[:, 0:3]
        self._yaw_rad[:] = commands[:, 3] if commands.shape[1] > 3 else yaw_rad
        drones = estimate.drones
        self._attitude.step(
            self._force_n,
            self._yaw_rad,
            drones.orientation_wxyz,
            drones.omega_body_rad_s,
            self._thrust_n,
            self._moment_n_m,
        )
        if commands.shape[1] == 7:
            self._moment_n_m += commands[:, 4:7]
        self._mixer.step(self._thrust_n, self._moment_n_m, rotor_speed_rad_s)


Array = NDArray[np.float64]


def make_controller(
    scenario: Scenario,
    period_s: float,
    given: Controller | Callable[..., Controller] | None = None,
) -> Controller | None:
    """Make the controller of a scenario, None for the formation's set-points alone.

    Args:
        scenario: Names a controller.
        period_s: Control period.
        given: A controller, or what makes one, instead of the scenario's.

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
        parts: Parts,
        guidance: Guidance,
        command: MotorCommands,
        inputs: PlantInputs,
        link: SetpointLink | None = None,
    ) -> None:
        """Connect what takes part.

        Args:
            controller: Flies while the load hangs in the air; None leaves it to the autopilot.
            parts: Autopilot, estimator, plan.
            guidance: Set-points of the mission.
            command: Motor commands of the autopilot.
            inputs: What acts on the plant.
            link: Brings set-points to the autopilot late; None for at once.

        Raises:
            ConfigError: A controller of this level cannot fly these drones.
        """
        self._parts, self._guidance, self._command = parts, guidance, command
        inputs.rotor_command_rad_s = command.omega_cmd_rad_s
        self._inputs = inputs
        self._period_s = parts.plant.period_s
        self._setpoint, self._estimate = guidance.setpoint, parts.estimator.estimate
        self._step_autopilot = parts.autopilot.step
        self._link = link
        self._heard = guidance.setpoint if link is None else link.heard
        self._controller: WatchedController | None = None
        self._flies = False
        self._ask: ForcesToSetpoints | None = None
        self.step: Callable[[int], None] = self._autopilot
        if controller is None:
            return
        system = parts.scenario.system
        level, n, rotors = level_of(controller), system.n_drones, system.n_rotors
        shapes = {
            ControlLevel.DRONE_SETPOINTS: ((n, 4), (n, SETPOINT_COLUMNS)),
            ControlLevel.FORCES: ((n, 3), (n, 4), (n, 7)),
            ControlLevel.AUTOPILOT_FORCES: ((n, 3), (n, 4), (n, 7)),
            ControlLevel.THRUST_MOMENT: ((n, 4),),
            ControlLevel.ROTOR_SPEEDS: ((n, rotors),),
            ControlLevel.IDEAL_THRUST_MOMENT: ((n, 4),),
        }[level]
        self._controller = WatchedController(
            controller, shapes, takes_nan=level is ControlLevel.DRONE_SETPOINTS
        )
        self._reference = parts.plan.reference.stepped(self._period_s)
        self._level = level
        self._by_autopilot = level in (
            ControlLevel.DRONE_SETPOINTS,
            ControlLevel.AUTOPILOT_FORCES,
        )
        if parts.autopilot.has_sensors and not self._by_autopilot:
            raise ConfigError(
                f"a controller of level {level.value} cannot fly real PX4s: choose level "
                f"{ControlLevel.DRONE_SETPOINTS.value} or {ControlLevel.AUTOPILOT_FORCES.value}, "
                "or autopilot.kind: builtin"
            )
        self._put_out = self._adapter(level, system)
        self.step = self._fly

    def _adapter(self, level: ControlLevel, system: RigSystem) -> Callable[[Array], None]:
        """What turns commands of a level into what acts on the plant, or into set-points."""
        speeds = self._command.omega_cmd_rad_s
        if level is ControlLevel.FORCES:
            turn = ForcesToRotors(system)
            yaw_rad, estimate = self._setpoint.yaw_enu_rad, self._estimate
            return lambda commands: turn(commands, yaw_rad, estimate, speeds)
        if level is ControlLevel.AUTOPILOT_FORCES:
            ask = self._ask = ForcesToSetpoints(system, self._setpoint, self._period_s)
            throttle, drones = self._command.throttle, self._estimate.drones
            return lambda commands: ask(commands, throttle, drones)
        if level is ControlLevel.THRUST_MOMENT:
            mix = ThrustMomentToRotors(system)
            return lambda commands: mix(commands, speeds)
        return {
            ControlLevel.DRONE_SETPOINTS: self._put_setpoints,
            ControlLevel.ROTOR_SPEEDS: self._put_rotor_speeds,
            ControlLevel.IDEAL_THRUST_MOMENT: self._put_wrenches,
        }[level]

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
        controller = self._controller
        if controller is None or self._guidance.stage in GROUND_PHASES:
            if self._flies:
                self._hand_back()
                self._guidance.on_controller_end(tick)
            self._autopilot(tick)
            return
        time_s = tick * self._period_s
        if not self._flies:
            self._take_over(controller, time_s)
        commands = controller.step(time_s, self._reference.at(tick), self._estimate)
        self._put_out(commands)
        if self._level is ControlLevel.DRONE_SETPOINTS:
            self._guidance.on_controller_setpoints(tick)
        elif self._ask is not None and tick % ANNOUNCE_EVERY == 0:
            self._guidance.on_controller_acceleration(tick)
        if self._by_autopilot:
            self._autopilot(tick)

    def _take_over(self, controller: WatchedController, time_s: float) -> None:
        self._flies = True
        if self._level is ControlLevel.IDEAL_THRUST_MOMENT:
            self._command.data[:] = 0.0
            self._parts.plant.state.rotor_speed_rad_s[:] = 0.0
        if self._ask is not None:
            self._ask.start(self._parts.plant.state.rotor_speed_rad_s, self._estimate.drones)
        controller.start(time_s, self._estimate)

    def _hand_back(self) -> None:
        """Let the autopilot go on from the present thrust, as after a long hover."""
        self._flies = False
        autopilot, state = self._parts.autopilot, self._parts.plant.state
        if self._level is ControlLevel.IDEAL_THRUST_MOMENT:
            self._spin_up()
        self._inputs.wrench_body[:] = 0.0
        if not self._by_autopilot:
            autopilot.resume(state.rotor_speed_rad_s, self._estimate)

    def _spin_up(self) -> None:
        """Let the rotors, which were at rest, carry what the ideal wrenches carried."""
        wrench, speeds = self._inputs.wrench_body[1:], self._command.omega_cmd_rad_s
        mix = ThrustMomentToRotors(self._parts.scenario.system)
        mix(np.column_stack([wrench[:, 5], wrench[:, 0:3]]), speeds)
        self._parts.plant.state.rotor_speed_rad_s[:] = speeds

    def _put_setpoints(self, commands: Array) -> None:
        rows = self._setpoint.data
        if commands.shape[1] == SETPOINT_COLUMNS:
            armed = rows[:, 11].copy()
            rows[:] = commands
            rows[:, 11] = armed
        else:
            rows[:, 0:3], rows[:, 9] = commands[:, 0:3], commands[:, 3]

    def _put_rotor_speeds(self, commands: Array) -> None:
        self._command.omega_cmd_rad_s[:] = commands

    def _put_wrenches(self, commands: Array) -> None:
        wrench = self._inputs.wrench_body
        wrench[1:, 0:3], wrench[1:, 5] = commands[:, 1:4], commands[:, 0]
