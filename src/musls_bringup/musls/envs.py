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
from musls_control.controllers import Controller, ControlLevel, ControlSetup
from musls_control.controllers.learned import (
    PERIODS_PER_STEP,
    ActionLevel,
    Actions,
    observation_size,
    observe,
)
from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_description.arrays import Array
from musls_description.errors import ConfigError
from musls_description.rotations import wrapped, yaw_of
from musls_description.system import slung_system
from musls_description.typed import typed
from musls_sim.plants.interface import SimulationDiverged
from musls_sim.scenario.physics import CONTROL_PERIOD_S
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.session import Session

ID = "musls/Transport-v0"

FALL_PENALTY = 100.0


class TransportEnv(gymnasium.Env[Array, Array]):
    """One system that hangs in the air; the goal is a pose of the load.

    Observation, (13 (1 + n) + 2 n + 1,), by the scenario's estimation: for the load, then each
    drone: position relative to the goal (load) or to the load (drones) [m, ENU], velocity [m/s],
    quaternion [w, x, y, z], body rate [rad/s, FLU]; the tensions at load and drone of each cable
    over the load's weight; the sine of half the yaw error.

    Action, (n * k,), each in [-1, 1], at a chosen level:

    - "forces", k = 3: force of each drone's rotors; 0 is what holds the system in hover, +-1 half
      of the drone's largest thrust in that direction (world ENU).
    - "thrust_moment", k = 4: thrust (0 is hover, +-1 half of the largest) and moments.
    - "rotor_speeds", k = number of rotors: -1 and 1 are the slowest and fastest speed.
    - "drone_setpoints", k = 3: shift of the drone's place in the formation by up to 0.5 m; PX4's
      control chain flies there.

    A policy trained here flies in `musls fly` as `controller: {kind: learned, policy: FILE.onnx}`.

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
        periods_per_step: int = PERIODS_PER_STEP,
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
        levels = [known.value for known in ActionLevel]
        if level not in levels:
            raise ConfigError(f"level = {level}: choose one of {', '.join(levels)}")
        if not (goal_range_m >= 0.0 and periods_per_step >= 1 and duration_s > 0.0):
            raise ConfigError(
                f"goal_range_m = {goal_range_m}, periods_per_step = {periods_per_step}, duration_s "
                f"= {duration_s}: must be at least 0, at least 1, more than 0"
            )
        self._scenario, self._level = scenario, ActionLevel(level)
        self._goal_range_m, self._periods = goal_range_m, periods_per_step
        self._duration_s = duration_s
        system = slung_system(scenario.system, "musls/Transport-v0")
        setup = ControlSetup(
            system, scenario.formation, scenario.physics.gravity_m_s2, CONTROL_PERIOD_S
        )
        self._actions = Actions(self._level, setup)
        n, columns = self._actions.shape
        size = (observation_size(system),)
        self.observation_space = spaces.Box(-np.inf, np.inf, size, np.float64)
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
        self._controller = _Given(self._level, self._actions)
        self._session = Session(replace(self._scenario, seed=noise), controller=self._controller)
        self._controller.begin(self._session.reference)
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
        self._controller.action[:] = given.reshape(self._actions.shape)
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
        return observe(self.session.estimate, self._goal, self._goal_yaw_rad, self._weight_n)


class _Given(Controller):
    """Turns the action in force into commands of its level, round the load's first set-point."""

    level = ControlLevel.FORCES  # of the class; each object has its own

    def __init__(self, level: ActionLevel, actions: Actions) -> None:
        self.level = ControlLevel(level.value)  # type: ignore[misc]  # a class variable
        self._actions, self.action = actions, np.zeros(actions.shape)

    def begin(self, reference: LoadReference) -> None:
        """Note where the load is to be at the start."""
        self._place, self._yaw_rad = reference.position_enu_m.copy(), reference.yaw_rad

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Commands of the action."""
        return self._actions.commands(self.action, self._place, self._yaw_rad)


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point="musls.envs:TransportEnv")
