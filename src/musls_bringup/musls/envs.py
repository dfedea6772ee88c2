"""Gymnasium environment `musls/Transport-v0`: bring a slung load to a place and hold it there.

    import gymnasium
    import musls.envs  # needs the extra `rl`

    env = gymnasium.make("musls/Transport-v0", scenario="hold", level="forces")

The simulation is the one of `musls fly`: the same plant, rotors, estimators and wind, from any
scenario that starts in the air. Several environments at once: `gymnasium.make_vec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from musls_bringup.api import load_scenario
from musls_control.controllers import Controller, ControlLevel
from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_description.arrays import Array
from musls_description.errors import ConfigError
from musls_description.rotations import wrapped, yaw_of
from musls_description.system import slung_system
from musls_description.typed import typed
from musls_sim.plants.interface import SimulationDiverged
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.session import Session

ID = "musls/Transport-v0"

BODY_COLUMNS = 13
"""Position, velocity, quaternion, body rate."""

MOMENT_SHARE = 0.1
"""Largest moment of an action, as a share of largest thrust times the longest rotor arm."""

SETPOINT_REACH_M = 0.5
"""Largest shift of a drone's set-point by an action at level drone_setpoints."""

FALL_PENALTY = 100.0


class TransportEnv(gymnasium.Env[Array, Array]):
    """One system that hangs in the air; the goal is a pose of the load.

    Observation, (13 (1 + n) + 2 n + 1,): for the load, then each drone: position relative to the
    goal (load) or to the load (drones) [m, ENU], velocity [m/s], quaternion [w, x, y, z], body rate
    [rad/s, FLU]; the tensions at load and drone of each cable over the load's weight; the sine of
    half the yaw error.

    Action, (n * k,), each in [-1, 1], at a chosen level:

    - "forces", k = 3: force of each drone's rotors; 0 is what holds the system in hover, +-1 half
      of the drone's largest thrust in that direction (world ENU).
    - "thrust_moment", k = 4: thrust (0 is hover, +-1 half of the largest) and moments.
    - "rotor_speeds", k = number of rotors: -1 and 1 are the slowest and fastest speed.
    - "drone_setpoints", k = 3: shift of the drone's place in the formation by up to 0.5 m; PX4's
      control chain flies there.

    Reward per step: 1 minus distance [m] and yaw error [rad / pi] of the load, less 0.05 times the
    mean square action; -100 where the flight ends badly: the load or a drone on the ground, the
    load farther than 5 m from its goal, or a simulation that diverged (terminated). Truncated
    after `duration_s`.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    @typed
    def __init__(
        self,
        scenario: str | Scenario = "hold",
        *,
        level: str = "forces",
        overrides: Mapping[str, Any] | None = None,
        goal_range_m: float = 0.5,
        periods_per_step: int = 5,
        duration_s: float = 10.0,
    ) -> None:
        """Read the scenario; the simulation is made by `reset`.

        Args:
            scenario: One that starts in the air, or its name.
            level: Level of the actions, see the class.
            overrides: Keys of the scenario to change.
            goal_range_m: Goals lie up to so far from the load's place at the start, on each axis.
            periods_per_step: Control periods (4 ms) an action is held for.
            duration_s: Simulated time after which an episode is truncated.

        Raises:
            ConfigError: Unknown scenario or level, or a scenario that starts on the ground.
        """
        if not isinstance(scenario, Scenario):
            scenario = load_scenario(scenario, dict(overrides or {}))
        if scenario.start.kind == "ground":
            raise ConfigError(
                f"scenario {scenario.name}: start.kind = ground: the environment begins in the "
                "air; choose start: air"
            )
        if level not in _ACTION_COLUMNS:
            raise ConfigError(f"level = {level}: choose one of {', '.join(_ACTION_COLUMNS)}")
        if not (goal_range_m >= 0.0 and periods_per_step >= 1 and duration_s > 0.0):
            raise ConfigError(
                f"goal_range_m = {goal_range_m}, periods_per_step = {periods_per_step}, duration_s "
                f"= {duration_s}: must be at least 0, at least 1, more than 0"
            )
        self._scenario, self._level = scenario, ControlLevel(level)
        self._goal_range_m, self._periods = goal_range_m, periods_per_step
        self._duration_s = duration_s
        system = slung_system(scenario.system, "musls/Transport-v0")
        n, rotors = system.n_drones, system.n_rotors
        columns = _ACTION_COLUMNS[level] or rotors
        self._action_shape = (n, columns)
        size = BODY_COLUMNS * (1 + n) + 2 * n + 1
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (n * columns,), np.float64)
        self._system = system
        self._weight_n = system.load.mass_kg * scenario.physics.gravity_m_s2
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The simulation of the present episode; a ConfigError before the first `reset`."""
        if self._session is None:
            raise ConfigError("the environment has to be reset before it is used")
        return self._session

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode: hanging at rest, with a random goal near.

        Args:
            seed: Of goals and of all noise of the simulation.
            options: "goal_position_enu_m" (3,) and "goal_yaw_rad" instead of a random goal.

        Returns:
            First observation, and the goal under the same names as in `options`.
        """
        super().reset(seed=seed)
        self.close()
        noise = int(self.np_random.integers(2**31))
        self._controller = _Actions(self._level, self._action_shape)
        self._session = Session(replace(self._scenario, seed=noise), controller=self._controller)
        self._controller.hover(self._session)
        given = options or {}
        start = self._session.state.position_enu_m[0]
        shift = self.np_random.uniform(-self._goal_range_m, self._goal_range_m, 3)
        self._goal = np.array(given.get("goal_position_enu_m", start + shift), np.float64)
        self._goal_yaw_rad = float(given.get("goal_yaw_rad", 0.0))
        return self._observation(), {
            "goal_position_enu_m": self._goal.copy(),
            "goal_yaw_rad": self._goal_yaw_rad,
        }

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Hold an action for some control periods.

        Args:
            action: (n * k,), see the class; values beyond [-1, 1] count as the limit.

        Returns:
            Observation, reward, terminated, truncated, and time_s, distance_m, tension_n.
        """
        session = self.session
        given = np.clip(np.asarray(action, np.float64), -1.0, 1.0)
        self._controller.action[:] = given.reshape(self._action_shape)
        try:
            session.advance(self._periods)
            failed = self._has_failed()
        except SimulationDiverged:
            failed = True
        distance_m, yaw_error = self._errors()
        reward = 1.0 - distance_m - abs(yaw_error) / np.pi - 0.05 * float(np.mean(given**2))
        if failed:
            reward = -FALL_PENALTY
        info = {
            "time_s": session.time_s,
            "distance_m": distance_m,
            "tension_n": session.state.tension_n.copy(),
        }
        return self._observation(), reward, failed, session.time_s >= self._duration_s, info

    def close(self) -> None:
        """End the simulation."""
        if self._session is not None:
            self._session.close()

    def _errors(self) -> tuple[float, float]:
        """Distance [m] and yaw error [rad] of the load from its goal."""
        state = self.session.state
        error = wrapped(yaw_of(state.orientation_wxyz[0]) - self._goal_yaw_rad)
        return float(np.linalg.norm(state.position_enu_m[0] - self._goal)), float(error)

    def _has_failed(self) -> bool:
        state, system = self.session.state, self._system
        hulls = [system.load.collision, *(drone.collision for drone in system.drones)]
        bottoms = [hull.bottom_m for hull in hulls]
        on_ground = (state.position_enu_m[:, 2] + bottoms < 0.0).any()
        return bool(on_ground) or self._errors()[0] > 5.0

    def _observation(self) -> Array:
        estimate = self.session.estimate
        rows = np.column_stack(
            [
                estimate.position_enu_m,
                estimate.velocity_enu_m_s,
                estimate.orientation_wxyz,
                estimate.omega_body_rad_s,
            ]
        )
        rows[1:, 0:3] -= rows[0, 0:3]
        rows[0, 0:3] -= self._goal
        tension = self.session.state.tension_n / self._weight_n
        turn = np.sin(0.5 * self._errors()[1])
        return np.concatenate([rows.ravel(), tension.ravel(), [turn]])


_ACTION_COLUMNS = {"forces": 3, "thrust_moment": 4, "rotor_speeds": 0, "drone_setpoints": 3}
"""Numbers per drone; 0 stands for one per rotor."""


class _Actions(Controller):
    """Turns the action in force into commands of its level."""

    level = ControlLevel.FORCES  # of the class; each object has its own

    def __init__(self, level: ControlLevel, shape: tuple[int, int]) -> None:
        self.level = level  # type: ignore[misc]  # a class variable of `Controller`
        self.action = np.zeros(shape)

    def hover(self, session: Session) -> None:
        """Note what holds the system where it is."""
        system = session.scenario.system
        assert session.components.hover is not None  # every slung load has one
        equilibrium = session.components.hover.equilibrium
        self._force_n = equilibrium.drone_force_n
        self._most_n = np.array([drone.max_thrust_n for drone in system.drones])
        arms = [max(np.hypot(*r.position_m[:2]) for r in d.rotors) for d in system.drones]
        self._moment_n_m = MOMENT_SHARE * self._most_n * np.array(arms)
        speeds = [[(r.speed_min_rad_s, r.speed_max_rad_s) for r in d.rotors] for d in system.drones]
        self._speeds_rad_s = np.array(speeds)
        state = session.state
        self._places = state.position_enu_m[1:].copy()
        self._yaw_rad = yaw_of(state.orientation_wxyz[1:])

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Commands of the action."""
        action = self.action
        if self.level is ControlLevel.FORCES:
            return self._force_n + 0.5 * self._most_n[:, None] * action
        if self.level is ControlLevel.THRUST_MOMENT:
            thrust = np.linalg.norm(self._force_n, axis=1) + 0.5 * self._most_n * action[:, 0]
            return np.column_stack([thrust, self._moment_n_m[:, None] * action[:, 1:]])
        if self.level is ControlLevel.ROTOR_SPEEDS:
            low, high = self._speeds_rad_s[..., 0], self._speeds_rad_s[..., 1]
            speeds: Array = low + 0.5 * (1.0 + action) * (high - low)
            return speeds
        return np.column_stack([self._places + SETPOINT_REACH_M * action, self._yaw_rad])


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point="musls.envs:TransportEnv")
