"""`learned`: a policy of `musls/Transport-v0` as controller, from an ONNX file.

`observe` and `Actions` say what a policy sees and what its numbers mean; the environment has them
from here.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from musls_control.controllers.interface import (
    Controller,
    ControllerError,
    ControlLevel,
    ControlSetup,
)
from musls_control.estimate import Estimate
from musls_control.formation import drone_poses
from musls_control.reference import LoadReference
from musls_description.arrays import Array
from musls_description.errors import ConfigError, MuslsError, install_command
from musls_description.rotations import from_yaw, rotate, wrapped, yaw_of
from musls_description.schema import spec
from musls_description.spawn import freed, hanging_equilibrium
from musls_description.system import SlungLoadSystem, formation_of

BODY_COLUMNS = 13
"""Position, velocity, quaternion, body rate."""

MOMENT_SHARE = 0.1
"""Largest moment of an action, as a share of largest thrust times the longest rotor arm."""

SETPOINT_REACH_M = 0.5
"""Largest shift of a drone's set-point by an action at level drone_setpoints."""

PERIODS_PER_STEP = 5
"""Control periods (4 ms) that an action is held for, unless another number is given."""


class ActionLevel(str, Enum):
    """Level of a policy's actions; `Actions` says what they mean.

    Attributes:
        FORCES: Force of each drone's rotors.
        THRUST_MOMENT: Thrust and moments of each drone.
        ROTOR_SPEEDS: Speed of each rotor.
        DRONE_SETPOINTS: Shift of each drone's place in the formation.
    """

    FORCES = "forces"
    THRUST_MOMENT = "thrust_moment"
    ROTOR_SPEEDS = "rotor_speeds"
    DRONE_SETPOINTS = "drone_setpoints"


def observation_size(system: SlungLoadSystem) -> int:
    """Length of an observation."""
    return BODY_COLUMNS * (1 + system.n_drones) + 2 * len(system.cables) + 1


def observe(estimate: Estimate, goal_enu_m: Array, goal_yaw_rad: float, weight_n: float) -> Array:
    """What a policy sees, (13 (1 + n) + 2 n + 1,).

    For the load, then each drone: position relative to the goal (load) or to the load (drones)
    [m, ENU], velocity [m/s], quaternion [w, x, y, z], body rate [rad/s, FLU]; the tensions at load
    and drone of each cable over the load's weight; the sine of half the yaw error.
    """
    rows = estimate.data[:, :BODY_COLUMNS].copy()
    rows[1:, 0:3] -= rows[0, 0:3]
    rows[0, 0:3] -= goal_enu_m
    turn = np.sin(0.5 * wrapped(yaw_of(estimate.orientation_wxyz[0]) - goal_yaw_rad))
    return np.concatenate([rows.ravel(), estimate.tension_n.ravel() / weight_n, [turn]])


class Actions:
    """Turns actions in [-1, 1] into commands of their level, (n, k) each.

    - "forces", k = 3: force of each drone's rotors; 0 is what holds the system in hover, +-1 half
      of the drone's largest thrust in that direction (world ENU).
    - "thrust_moment", k = 4: thrust (0 is hover, +-1 half of the largest) and moments.
    - "rotor_speeds", k = number of rotors: -1 and 1 are the slowest and fastest speed.
    - "drone_setpoints", k = 3: shift of the drone's place in the formation by up to 0.5 m.

    Attributes:
        shape: (n, k).
    """

    def __init__(self, level: ActionLevel, setup: ControlSetup) -> None:
        self._level, self._setup = level, setup
        self._system = system = formation_of(setup.system, "controller.kind = learned")
        columns = {ActionLevel.THRUST_MOMENT: 4, ActionLevel.ROTOR_SPEEDS: system.n_rotors}
        self.shape = (system.n_drones, columns.get(level, 3))
        self._most_n = np.array([drone.max_thrust_n for drone in system.drones])
        arms = [max(np.hypot(*r.position_m[:2]) for r in d.rotors) for d in system.drones]
        self._moment_n_m = MOMENT_SHARE * self._most_n * np.array(arms)
        speeds = [[(r.speed_min_rad_s, r.speed_max_rad_s) for r in d.rotors] for d in system.drones]
        self._speeds_rad_s = np.array(speeds)

    def places(self, load_enu_m: Array, yaw_rad: float) -> tuple[Array, Array]:
        """Positions and yaws of the formation round a pose of the load, (n, 3) and (n,)."""
        cone, n = self._setup.formation, self._system.n_drones
        drones, yaws = drone_poses(
            load_enu_m[None], np.array([yaw_rad]), cone.offsets_m(n), cone.azimuths_rad(n)
        )
        return drones[0], yaws[0]

    @cached_property
    def _hover_n(self) -> Array:
        """Forces that hold the system in hover at yaw 0, world ENU, (n, 3)."""
        drones, yaws = self.places(np.zeros(3), 0.0)
        gravity = self._setup.gravity_m_s2
        return hanging_equilibrium(freed(self._system), drones, gravity, 0.0, yaws).drone_force_n

    def commands(self, action: Array, load_enu_m: Array, yaw_rad: float) -> Array:
        """Commands of an action, (n, k), round a pose of the load."""
        if self._level is ActionLevel.FORCES:
            turn = np.broadcast_to(from_yaw(np.array(yaw_rad)), (len(action), 4))
            return rotate(turn, self._hover_n) + 0.5 * self._most_n[:, None] * action
        if self._level is ActionLevel.THRUST_MOMENT:
            thrust = np.linalg.norm(self._hover_n, axis=1) + 0.5 * self._most_n * action[:, 0]
            return np.column_stack([thrust, self._moment_n_m[:, None] * action[:, 1:]])
        if self._level is ActionLevel.ROTOR_SPEEDS:
            low, high = self._speeds_rad_s[..., 0], self._speeds_rad_s[..., 1]
            speeds: Array = low + 0.5 * (1.0 + action) * (high - low)
            return speeds
        drones, yaws = self.places(load_enu_m, yaw_rad)
        return np.column_stack([drones + SETPOINT_REACH_M * action, yaws])


@spec
class LearnedSpec:
    """A trained policy of the environment `musls/Transport-v0`, one for all drones, from a file.

    Observation and action are those of the environment; the goal is the load's reference.

    Attributes:
        kind: "learned".
        policy: ONNX file with one input, an observation, whose first output is an action.
        level: Level of the actions, as it was trained.
        periods_per_step: Control periods (4 ms) an action is held for, as it was trained.
    """

    kind: Literal["learned"] = "learned"
    policy: str
    level: ActionLevel = ActionLevel.FORCES
    periods_per_step: Annotated[int, Field(ge=1)] = PERIODS_PER_STEP

    def build(self, setup: ControlSetup) -> Controller:
        """Load the policy and make the controller."""
        return LearnedController(self, setup)


class LearnedController(Controller):
    """Asks the policy for an action every `periods_per_step` control periods."""

    level = ControlLevel.FORCES  # of the class; each object has its own

    def __init__(self, given: LearnedSpec, setup: ControlSetup) -> None:
        self.level = ControlLevel(given.level.value)  # type: ignore[misc]  # by the scenario
        self._actions = Actions(given.level, setup)
        self._periods = given.periods_per_step
        self._weight_n = setup.system.load.mass_kg * setup.gravity_m_s2
        self._action = np.zeros(self._actions.shape)
        drones, columns = self._actions.shape
        what = f"{drones} drones, {columns} each at level {given.level.value}"
        self._policy = Policy(given.policy, observation_size(setup.system), self._action.size, what)
        self._calls = 0

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Ask for an action in the first period."""
        self._calls = 0

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Commands of the action in force."""
        place, yaw_rad = reference.position_enu_m, reference.yaw_rad
        if self._calls % self._periods == 0:
            action = self._policy(observe(estimate, place, yaw_rad, self._weight_n))
            self._action = np.clip(action.reshape(self._actions.shape), -1.0, 1.0)
            for drone, column in np.argwhere(~np.isfinite(self._action))[:1]:
                raise ControllerError(
                    f"{self._policy.name}: output '{self._policy.output}' at {time_s:.3f} s is "
                    f"{self._action[drone, column]} for drone_{drone + 1} in column {column}; must "
                    "be finite"
                )
        self._calls += 1
        return self._actions.commands(self._action, place, yaw_rad)


class Policy:
    """A network from a file: observation in, action out.

    Attributes:
        name: How messages name it.
        output: Name of the network's output that is the action.
    """

    def __init__(self, path: str, inputs: int, outputs: int, what: str) -> None:
        """Read and check the file; `what` says in messages why there are so many outputs."""
        self.name = f"controller.policy = {path}"
        try:
            import onnxruntime
        except ModuleNotFoundError as error:
            if error.name != "onnxruntime":
                raise
            raise MuslsError(
                f"controller.kind = learned needs ONNX Runtime: {install_command('onnxruntime')}"
            ) from None
        if not Path(path).is_file():
            raise ConfigError(f"{self.name}: there is no such file")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # networks of this size are slower on several
        options.log_severity_level = 4
        try:
            self._network = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its classes of errors are not public
            raise ConfigError(f"{self.name}: not an ONNX model: {_line(error)}") from None
        given = self._network.get_inputs()
        if len(given) != 1:
            names = ", ".join(one.name for one in given)
            raise ConfigError(f"{self.name}: {len(given)} inputs ({names}), must be one")
        self._input, shape = given[0].name, given[0].shape
        types = {"tensor(float)": np.float32, "tensor(double)": np.float64}
        if given[0].type not in types:
            raise ConfigError(
                f"{self.name}: input '{self._input}' is a {given[0].type}, must be tensor(float) "
                "or tensor(double)"
            )
        self._type: Any = types[given[0].type]
        wanted = [1, inputs][-len(shape) :] if len(shape) in (1, 2) else None
        if wanted is None or any(
            isinstance(size, int) and size != right
            for size, right in zip(shape, wanted, strict=True)
        ):
            raise ConfigError(
                f"{self.name}: input '{self._input}' has shape {shape}, must be [1, {inputs}] or "
                f"[{inputs}], the observation of this system"
            )
        self._shape = wanted
        self.output = self._network.get_outputs()[0].name
        try:
            first = self(np.zeros(inputs))
        except Exception as error:
            raise ConfigError(
                f"{self.name}: fails on an observation of {inputs} numbers: {_line(error)}"
            ) from None
        if first.shape not in ((outputs,), (1, outputs)):
            raise ConfigError(
                f"{self.name}: output '{self.output}' has shape {list(first.shape)}, must be "
                f"[1, {outputs}] or [{outputs}] ({what})"
            )

    def __call__(self, observation: Array) -> Array:
        """Return the network's first output."""
        asked = observation.astype(self._type).reshape(self._shape)
        return np.asarray(self._network.run([self.output], {self._input: asked})[0], np.float64)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
