"""Gymnasium environments on `musls.Batch`: many worlds in one call, or one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from musls_analysis.recordings.recording import CableTrack, PoseTrack, Recording
from musls_analysis.scene import Subject
from musls_analysis.view.picture import Picture, PictureOptions
from musls_bringup.catalogue.scenarios import load_scenario
from musls_control.controllers import ControlSetup
from musls_control.controllers.learned import (
    LARGEST_SEEN,
    ActionLevel,
    Actions,
    Goal,
    Observations,
    flat,
)
from musls_description.config.errors import ConfigError
from musls_description.config.registry import (
    RAISED,
    Registry,
    UserCodeError,
    describe_error,
    load_class,
)
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import wrapped, yaw_of
from musls_description.system.obstacles import ground_heights
from musls_description.system.slung_system import SlungLoadSystem, slung_system
from musls_sim.batch.batch import Batch
from musls_sim.scenario.scenario import Scenario
from musls_sim.specs.physics import CONTROL_PERIOD_S

Range = tuple[float, float] | list[float]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.intp]

TASKS: Registry[type[Task]] = Registry(
    "task",
    "musls.tasks",
    {
        "transport": "musls_bringup.learning.tasks:Transport",
        "hover": "musls_bringup.learning.tasks:Hover",
        "recover": "musls_bringup.learning.tasks:Recover",
        "track": "musls_bringup.learning.tasks:Track",
        "gate": "musls_bringup.learning.tasks:Gate",
        "lost_drone": "musls_bringup.learning.tasks:LostDrone",
    },
)
"""Classes by name; a user's own by `TASKS.register`, an entry point, or "my.py:MyTask"."""

LONGEST_HISTORY = 1000
"""Actions that an observation may hold."""


@dataclass
class Task:
    """The load is to stay where it is; derive from this, or from one below, and change a method.

    A method gets the environment, with everything of all worlds in arrays whose first axis counts
    them, and returns such an array.

    Attributes:
        scenario: Scenario that is flown unless the environment has another one.
        overrides: Overrides of the scenario's keys.
        action_scale: Scale of actions at level drone_setpoints, unless the environment has another;
            it limits how far a learner's first tries go.
        limit_m: Farther from its goal the load is lost.
        fall_penalty: Taken away where an episode ends badly.
    """

    scenario: ClassVar[str] = "transport"
    overrides: ClassVar[Mapping[str, Any]] = {}
    action_scale: ClassVar[float] = 1.0
    limit_m: float = 3.0
    fall_penalty: float = 10.0

    def prepare(self, env: TransportVectorEnv) -> None:
        """Make arrays of the task's own; called once, when the worlds are built."""

    def begin(self, env: TransportVectorEnv, worlds: Numbers) -> None:
        """Draw what differs from episode to episode, such as `env.goal`, for worlds by number.

        The goal is the start when this is called; draw from `env.np_random`.
        """

    def act(self, env: TransportVectorEnv) -> None:
        """Move goals, push bodies, stop motors; called at the start and after each step."""

    def observe(self, env: TransportVectorEnv) -> Mapping[str, Array]:
        """Observations of a policy, parts by name, (worlds, ...), clipped at +-10: `Observations`.

        The shapes stay. `controller: learned` flies policies that see this default alone.
        """
        return env.parts

    def command(self, env: TransportVectorEnv) -> Array:
        """`Batch.command` at the action level's control level for `env.action`; here `Actions`."""
        batch = env.batch
        return env.actions.commands(env.action, batch.estimate, batch.tension_n, env.goal)

    def reward(self, env: TransportVectorEnv) -> Array:
        """Reward, at most 1: for the load, its yaw, the drones' places and smooth actions.

        `0.6 exp(-2 d) + 0.1 exp(-|e|) + 0.2 exp(-2 m) + 0.1 exp(-s)`, with the distance d [m] of
        the load from its goal, its error of yaw e [rad], the mean distance m [m] of the drones from
        their places in the formation round the load, and the mean square change s of the action
        from one step to the next (terms as those of Zeng et al., CoRL 2025).
        """
        change = np.mean((env.action - env.last_action) ** 2, axis=(1, 2))
        reward: Array = (
            0.6 * np.exp(-2.0 * env.distance_m)
            + 0.1 * np.exp(-np.abs(env.yaw_error_rad))
            + 0.2 * np.exp(-2.0 * env.formation_error_m.mean(axis=1))
            + 0.1 * np.exp(-change)
        )
        return reward

    def failed(self, env: TransportVectorEnv) -> Mask:
        """Whether a body is on the ground or the load too far from its goal."""
        failed: Mask = env.on_ground.any(axis=1) | (env.distance_m > self.limit_m)
        return failed


class TransportVectorEnv(VectorEnv[Any, Array, Array]):
    """Worlds of one scenario; in each, drones bring a load where its task wants it.

    What a policy sees is `musls_control.controllers.learned.Observations`, as one vector or, with
    `dict_observations`, by parts; what its actions mean is `Actions` there. A policy flies in
    `musls fly` as `controller: {kind: learned, policy: FILE.onnx}`, with the same code.

    An episode ends (terminated) where the flight ends badly: the task says so, its reward is not
    finite, the action was NaN, or the simulation diverged; the reward is then that of a fall. It is
    truncated after `duration_s`. Only the world that it happens to is lost.

    Attributes:
        batch: The simulation.
        nominal: The scenario, before anything is drawn; `system` is what flies in it.
        task: Task; its numbers may be changed between steps (a curriculum).
        goal: Pose, velocity and acceleration of the load that are wanted, of all worlds.
        start_enu_m: Places of load and drones at the start, (1 + n, 3).
        action: Actions in force, (worlds, n, k); `last_action` the ones before.
        action_scale: Size of an action of 1, times the unit of its level; a policy's file has to
            contain it as metadata.
        scenario_of: Index of the drawn scenario that each world flies, (worlds,).
        seeds: Seeds of each world's noise in this episode, (worlds,).
        step_s: Time of a step.
        setup: Description of the system that policies see.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["rgb_array"],
        "render_fps": 12,  # of steps of 80 ms
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        task: str | Task | type[Task] = "transport",
        *,
        scenario: str | Scenario | None = None,
        level: str = "drone_setpoints",
        action_scale: float | None = None,
        overrides: Mapping[str, Any] | None = None,
        randomise: Mapping[str, Any] | None = None,
        variants: int = 64,
        reward: Callable[..., Any] | None = None,
        dict_observations: bool = False,
        history: int = 0,
        periods_per_step: int | None = None,
        duration_s: float = 10.0,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        threads: int | None = None,
    ) -> None:
        """Build all worlds.

        Args:
            num_envs: Number of worlds.
            task: One of `TASKS`, "my.py:MyTask", a class or an object.
            scenario: One that starts in the air, or its name; by default that of the task.
            level: Level of the actions, see `ActionLevel`; by default shifts of the drones' places
                in the formation, so that a learner begins as good as the formation.
            action_scale: Size of an action of 1, times the unit of its level, see `Actions`; by
                default that of the task at level drone_setpoints, else 1.
            overrides: Keys of the scenario to change.
            randomise: Ranges of keys of the scenario, {"system.load.mass_kg": [0.5, 1.5]}; a list
                of ranges for a key that is a vector. The structure has to stay.
            variants: Scenarios that are drawn of these ranges; each episode flies one of them.
            reward: Function of this environment that replaces the task's, (worlds,).
            dict_observations: Parts by name instead of one vector.
            history: Last actions that are part of the observation, at most 1000.
            periods_per_step: Control periods (4 ms) an action is held for; by default 20, and 5 at
                levels thrust_moment and rotor_speeds.
            duration_s: Simulated time after which an episode is truncated.
            autoreset_mode: "NextStep", "SameStep" or "Disabled", see Gymnasium.
            render_mode: "rgb_array" or None.
            threads: Threads that share the worlds; by default one per core.

        Raises:
            ConfigError: What cannot be flown so; names the argument or the key.
        """
        self.task = find_task(task)
        self.autoreset_mode = _mode(autoreset_mode)
        self.metadata = {  # type: ignore[misc]  # of this object: Gymnasium wants it here
            **self.metadata,
            "autoreset_mode": self.autoreset_mode,
        }
        self.level = _level(level)
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"render_mode = {render_mode}: must be rgb_array or None")
        periods = self.level.periods_per_step if periods_per_step is None else periods_per_step
        if action_scale is None:
            at_default = self.level is ActionLevel.DRONE_SETPOINTS
            action_scale = self.task.action_scale if at_default else 1.0
        counts = {"num_envs": num_envs, "variants": variants, "history": history}
        _check_sizes(counts, periods, action_scale, duration_s)
        self.num_envs = num_envs
        self.duration_s = duration_s
        self.render_mode = render_mode
        self.action_scale = action_scale
        self.step_s = periods * CONTROL_PERIOD_S
        self._periods = periods
        self._reward = reward
        self._by_parts = dict_observations
        self.nominal = nominal = self._load(scenario, dict(overrides or {}))
        self._build(nominal, _drawn(nominal, randomise or {}, min(variants, num_envs)), threads)
        self._lay_out(history)

    def _load(self, scenario: str | Scenario | None, changed: dict[str, Any]) -> Scenario:
        """Load a scenario, or that of the task, with changed keys."""
        if scenario is None:
            scenario = self.task.scenario
            changed = {**self.task.overrides, **changed}
        nominal = load_scenario(scenario, changed)
        if nominal.start.kind == "ground":
            raise ConfigError(
                f"scenario {nominal.name}: start.kind = ground: an environment begins in the air; "
                "choose start: air"
            )
        return nominal

    def _build(self, nominal: Scenario, scenarios: list[Scenario], threads: int | None) -> None:
        """Build the worlds, which fly the drawn scenarios."""
        num_envs = self.num_envs
        self.batch = Batch(
            scenarios, num_envs, level=self.level.control, threads=threads, mission=False
        )
        self._n_scenarios = len(scenarios)
        self.scenario_of = np.arange(num_envs) % len(scenarios)
        self.seeds = np.zeros(num_envs, np.int64)
        self.system = slung_system(nominal.system, "a learning environment")
        self.weight_n = self.system.load.mass_kg * nominal.physics.gravity_m_s2
        self.start_enu_m = self.batch.position_enu_m[0].copy()
        self.goal = Goal(*(np.zeros((num_envs, *shape)) for shape in ((3,), (3,), (), (3,))))
        self._over = np.zeros(num_envs, bool)
        hulls = [self.system.load.collision, *(drone.collision for drone in self.system.drones)]
        self._bottom_m = np.array([hull.bottom_m for hull in hulls])
        self._film = None
        if self.render_mode:
            goal_enu_m = self.goal.position_enu_m
            self._film = Film(self.batch, goal_enu_m, self.system, self.duration_s)

    def _lay_out(self, history: int) -> None:
        """Lay out actions and observations, and let the task make its own."""
        nominal = self.nominal
        num_envs = self.num_envs
        self.setup = setup = ControlSetup(
            self.system, nominal.formation, nominal.physics.gravity_m_s2, CONTROL_PERIOD_S
        )
        self.actions = Actions(self.level, setup, self.action_scale)
        size = int(np.prod(self.actions.shape))
        self.observations = Observations(setup, history, size)
        self.single_action_space = spaces.Box(-1.0, 1.0, (size,), np.float32)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._past = np.zeros((num_envs, max(history, 2), size))
        self.task.prepare(self)
        observation = self._observed()
        self.single_observation_space = (
            spaces.Dict({name: _box(part.shape[1:]) for name, part in observation.items()})
            if self._by_parts
            else _box(observation.shape[1:])
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    # --------------------------------------------------------- what tasks and rewards are made of

    @property
    def action(self) -> Array:
        """Action in force, (worlds, n, k)."""
        return self._past[:, 0].reshape(-1, *self.actions.shape)

    @property
    def last_action(self) -> Array:
        """The one before it, (worlds, n, k)."""
        return self._past[:, 1].reshape(-1, *self.actions.shape)

    @property
    def past_actions(self) -> Array:
        """Actions before now, the latest first, (worlds, steps, n k)."""
        return self._past

    @property
    def parts(self) -> dict[str, Array]:
        """Parts of `Observations` by name, (worlds, ...)."""
        history = self.observations.shapes.get("actions", (0,))[0]
        batch = self.batch
        past = self._past[:, :history]
        return self.observations.parts(batch.estimate, batch.tension_n, self.goal, past)

    @property
    def load_error_m(self) -> Array:
        """Place of the load relative to its goal, ENU, (worlds, 3)."""
        return self.batch.position_enu_m[:, 0] - self.goal.position_enu_m

    @property
    def distance_m(self) -> Array:
        """Distance of the load from its goal, (worlds,)."""
        distance: Array = np.linalg.norm(self.load_error_m, axis=-1)
        return distance

    @property
    def yaw_error_rad(self) -> Array:
        """Yaw of the load relative to its goal, (worlds,)."""
        return wrapped(yaw_of(self.batch.orientation_wxyz[:, 0]) - self.goal.yaw_rad)

    @property
    def formation_error_m(self) -> Array:
        """Distance of each drone from its place in the formation round the load, (worlds, n)."""
        position = self.batch.position_enu_m
        places = self.actions.places(position[:, 0], self.goal.yaw_rad)
        distance: Array = np.linalg.norm(position[:, 1:] - places[..., :3], axis=-1)
        return distance

    @property
    def on_ground(self) -> Mask:
        """Whether a body's lowest corner is at the ground, (worlds, 1 + n)."""
        places = self.batch.position_enu_m
        world = self.nominal.world
        ground_m: Array | float = 0.0
        if not world.is_flat:
            flat = np.ascontiguousarray(places).reshape(-1, 3)
            ground_m = ground_heights(world.grounds, flat).reshape(places.shape[:-1])
        low: Mask = places[..., 2] + self._bottom_m < ground_m
        return low

    # ------------------------------------------------------------------------------ the interface

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes.

        Args:
            seed: Seed of goals and of all noise.
            options: "reset_mask" (worlds,), which of them begin anew; "goal_position_enu_m" (3,)
                or (worlds, 3) and "goal_yaw_rad" instead of the task's.

        Raises:
            ConfigError: A mask or a goal of another shape, a negative seed.
        """
        if seed is not None and seed < 0:
            raise ConfigError(f"seed = {seed}: must be at least 0")
        super().reset(seed=None if seed is None else int(seed))
        settings = dict(options or {})
        mask = np.asarray(settings.pop("reset_mask", np.ones(self.num_envs, bool)))
        if mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
            raise ConfigError(f"reset_mask: must be {self.num_envs} booleans, one of them true")
        self._begin(np.flatnonzero(mask))
        for name, values in (("goal_position_enu_m", self.goal[0]), ("goal_yaw_rad", self.goal[2])):
            if name in settings:
                try:
                    target = np.broadcast_to(np.asarray(settings[name], float), values.shape)
                except (TypeError, ValueError):
                    raise ConfigError(
                        f"{name}: must be {values.shape[1:]} or {values.shape}"
                    ) from None
                values[mask] = target[mask]
        self._over &= ~mask
        return self._observed(), self._info()

    def step(self, actions: Array) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Hold an action in each world for some control periods.

        Args:
            actions: (worlds, n k); beyond [-1, 1] they count as the limit.

        Raises:
            ConfigError: Another shape.
            UserCodeError: The task or the reward failed.
        """
        try:
            values = np.asarray(actions, float)
        except (TypeError, ValueError):
            raise ConfigError(f"action: must be numbers, {self.action_space.shape}") from None
        if values.shape != self.action_space.shape:
            raise ConfigError(f"action: shape {values.shape}, must be {self.action_space.shape}")
        invalid = ~np.isfinite(values).all(axis=-1)
        self._past[:, 1:] = self._past[:, :-1].copy()
        self._past[:, 0] = values.clip(-1.0, 1.0)
        self._past[invalid, 0] = 0.0
        batch = self.batch
        batch.command = self._call(self.task.command)
        batch.advance(self._periods)
        self._call(self.task.act)
        reward = self._of_worlds("reward", self._reward or self.task.reward, float)
        failed = self._of_worlds("failed", self.task.failed, bool)
        failed = failed | invalid | batch.failed | ~np.isfinite(reward)
        reward[failed] = -self.task.fall_penalty
        truncated = ~failed & (batch.time_s >= self.duration_s - 1e-9)
        if self.autoreset_mode is AutoresetMode.NEXT_STEP and self._over.any():
            again = np.flatnonzero(self._over)
            self._begin(again)
            reward[again] = 0.0
            failed[again] = False
            truncated[again] = False
        over = self._over = failed | truncated
        info = self._info()
        if self.autoreset_mode is AutoresetMode.SAME_STEP and over.any():
            info |= {"final_obs": self._last_seen(over), "_final_obs": over.copy()}
            info |= {"final_info": self._info(over), "_final_info": over.copy()}
            self._begin(np.flatnonzero(over))
        observed = self._observed()
        if self._film is not None:
            self._film.note()
        return observed, reward, failed, truncated, info

    def render(self) -> tuple[Array, ...] | None:
        """Pictures of all worlds, (height, width, 3) each."""
        return None if self._film is None else self._film.draw()

    # ------------------------------------------------------------------------------------- inside

    def _begin(self, worlds: Numbers) -> None:
        """Bring worlds back to the start of a scenario each and give them goals."""
        self.seeds[worlds] = self.np_random.integers(2**31, size=len(worlds))
        self.scenario_of[worlds] = self.np_random.integers(self._n_scenarios, size=len(worlds))
        self.batch.reset(worlds, self.seeds[worlds].tolist(), self.scenario_of[worlds].tolist())
        self._past[worlds] = 0.0
        self.goal.position_enu_m[worlds] = self.start_enu_m[0]
        for of_goal in self.goal[1:]:  # at rest
            of_goal[worlds] = 0.0
        self._call(self.task.begin, worlds)
        self._call(self.task.act)
        if self._film is not None:
            self._film.begin(worlds)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a part that a user may have written."""
        try:
            return function(self, *arguments)
        except ConfigError:
            raise
        except RAISED as error:
            name = getattr(function, "__qualname__", repr(function))
            raise UserCodeError(f"{name} failed: {describe_error(error)}") from error

    def _of_worlds(self, name: str, function: Callable[..., Any], kind: type) -> Array:
        """A number or truth for each world, from a part that a user may have written, (worlds,)."""
        answer = self._call(function)
        try:
            values: Array = np.array(answer, float)
        except (OverflowError, TypeError, ValueError):
            values = np.zeros(())
        if values.shape != (self.num_envs,) or (kind is bool and np.asarray(answer).dtype != bool):
            what = "numbers" if kind is float else "booleans"
            raise ConfigError(
                f"{name}: shape {np.shape(values)}, must be ({self.num_envs},) {what}"
            )
        return values.astype(kind)

    def _observed(self) -> Any:
        parts: dict[str, NDArray[Any]] = {}
        observed = self._call(self.task.observe)
        if not isinstance(observed, Mapping):
            raise ConfigError(f"observe: {type(observed).__name__}, must be parts by name")
        for name, part in observed.items():
            try:
                array = np.asarray(part, np.float32)
            except (OverflowError, TypeError, ValueError):
                raise ConfigError(f"observe: {name} must be numbers") from None
            shape = array.shape
            if shape[:1] != (self.num_envs,):
                raise ConfigError(
                    f"observe: {name} has shape {shape}, must be ({self.num_envs}, ...)"
                )
            parts[name] = array
        if self._by_parts:
            return {name: _bounded(part) for name, part in parts.items()}
        return _bounded(flat(parts, (self.num_envs,)))

    def _last_seen(self, over: Array) -> Array:
        """Observations of worlds whose episodes are over, an object each, None elsewhere."""
        observation = self._observed()
        last = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(over):
            last[i] = (
                {k: v[i].copy() for k, v in observation.items()}
                if self._by_parts
                else observation[i]
            )
        return last

    def _info(self, mask: Array | None = None) -> dict[str, Any]:
        mask = np.ones(self.num_envs, bool) if mask is None else mask
        info: dict[str, Any] = {
            "time_s": self.batch.time_s,
            "distance_m": self.distance_m,
            "tension_n": self.batch.tension_n.copy(),
            "goal_position_enu_m": self.goal.position_enu_m.copy(),
            "goal_yaw_rad": self.goal.yaw_rad.copy(),
        }
        return info | {f"_{name}": mask.copy() for name in info}


class TransportEnv(gymnasium.Env[Any, Array]):
    """One world: `TransportVectorEnv` with one of them, and its arguments.

    Attributes:
        worlds: Vector environment with the one world.
    """

    metadata: ClassVar[dict[str, Any]] = {
        k: v for k, v in TransportVectorEnv.metadata.items() if k.startswith("render")
    }

    def __init__(self, task: str | Task | type[Task] = "transport", **settings: Any) -> None:
        """Build the world (raises ConfigError)."""
        self.worlds = TransportVectorEnv(1, task, autoreset_mode="Disabled", **settings)
        self.render_mode = self.worlds.render_mode
        self.observation_space = self.worlds.single_observation_space
        self.action_space = self.worlds.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, see `TransportVectorEnv.reset`."""
        super().reset(seed=seed)
        observed, info = self.worlds.reset(seed=seed, options=options)
        return _one(observed), _one(info)

    def step(self, action: Array) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Hold an action, (n k,), see `TransportVectorEnv.step`."""
        observed, reward, failed, truncated, info = self.worlds.step(np.asarray(action)[None])
        return _one(observed), float(reward[0]), bool(failed[0]), bool(truncated[0]), _one(info)

    def render(self) -> Array | None:
        """Picture, (height, width, 3)."""
        pictures = self.worlds.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        """End the simulation."""
        self.worlds.close()


def _one(many: Any) -> Any:
    """The only entry of a batch of one."""
    if isinstance(many, dict):
        return {name: part[0] for name, part in many.items() if not name.startswith("_")}
    return many[0]


def find_task(name: str | Task | type[Task]) -> Task:
    """Make a task of a name, a class "my.py:MyTask", or what is one already."""
    if isinstance(name, Task):
        return name
    kind = name
    if isinstance(name, str):
        kind = load_class(name) if ":" in name else TASKS[name]
    if not (isinstance(kind, type) and issubclass(kind, Task)):
        raise ConfigError(f"task = {name}: must be derived from musls.learning.Task")
    try:
        return kind()
    except RAISED as error:
        raise ConfigError(f"task = {name}: {describe_error(error)}") from error


def _bounded(observation: NDArray[Any]) -> NDArray[Any]:
    """Observation within its space; 0 where it is NaN."""
    observation = observation.clip(-LARGEST_SEEN, LARGEST_SEEN)
    observation[np.isnan(observation)] = 0.0
    return observation


def _box(shape: tuple[int, ...]) -> spaces.Box:
    return spaces.Box(-LARGEST_SEEN, LARGEST_SEEN, shape, np.float32)


def _level(level: str) -> ActionLevel:
    """Level of the actions by its name."""
    levels = [member.value for member in ActionLevel]
    if level not in levels:
        raise ConfigError(f"level = {level}: choose one of {', '.join(levels)}")
    return ActionLevel(level)


def _check_sizes(
    counts: Mapping[str, int], periods_per_step: int, action_scale: float, duration_s: float
) -> None:
    """Refuse numbers with which there is no environment (raises ConfigError)."""
    for name, value in {**counts, "periods_per_step": periods_per_step}.items():
        least = 0 if name == "history" else 1
        if value < least:
            raise ConfigError(f"{name} = {value}: must be at least {least}")
    if counts["history"] > LONGEST_HISTORY:
        raise ConfigError(f"history = {counts['history']}: must be at most {LONGEST_HISTORY}")
    for name, size in (("action_scale", action_scale), ("duration_s", duration_s)):
        if not 0.0 < size < np.inf:
            raise ConfigError(f"{name} = {size}: must be more than 0")
    step_s = periods_per_step * CONTROL_PERIOD_S
    if step_s > duration_s:
        raise ConfigError(
            f"periods_per_step = {periods_per_step}: a step of {step_s:.6g} s is longer "
            f"than an episode, duration_s = {duration_s:.6g}"
        )


def _mode(choice: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(choice)
    except ValueError:
        names = ", ".join(mode.value for mode in AutoresetMode)
        raise ConfigError(f"autoreset_mode = {choice}: must be one of {names}") from None


def _drawn(
    nominal: Scenario, randomise: Mapping[str, Range | Sequence[Range]], variants: int
) -> list[Scenario]:
    """Scenarios drawn evenly of ranges, by the scenario's seed; the nominal one without ranges."""
    if not randomise:
        return [nominal]
    generator = np.random.default_rng(nominal.seed)
    ranges = {}
    for key, limits in randomise.items():
        try:
            low, high = np.moveaxis(np.asarray(limits, float), -1, 0)
        except (TypeError, ValueError):
            raise ConfigError(f"randomise.{key} = {limits!r}: must be [lowest, highest]") from None
        if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
            raise ConfigError(f"randomise.{key} = {limits!r}: must be [lowest, highest]")
        ranges[key] = low, high
    return [
        load_scenario(nominal, {key: generator.uniform(*its) for key, its in ranges.items()})
        for _ in range(variants)
    ]


# ---------- Pictures of the worlds, by the view of recordings

Row = tuple[float, Array, Array, Array]
"""Time, motion, tensions, goal."""


class Film:
    """Keeps the present episode of each world and draws where it is; cables are drawn straight."""

    def __init__(
        self, batch: Batch, goal_enu_m: Array, system: SlungLoadSystem, duration_s: float
    ) -> None:
        self._batch = batch
        self._goal_enu_m = goal_enu_m
        self._system = system
        self._duration_s = duration_s
        self._kept_rows: list[list[Row]] = [[] for _ in range(batch.worlds)]

    def begin(self, worlds: Numbers) -> None:
        """Forget what these worlds did."""
        for i in worlds:
            self._kept_rows[i].clear()
            self._note(i)

    def note(self) -> None:
        """Keep where all worlds are."""
        for i, time_s in enumerate(self._batch.time_s):
            if not self._kept_rows[i] or time_s > self._kept_rows[i][-1][0]:
                self._note(i)

    def _note(self, i: int) -> None:
        batch = self._batch
        goal = self._goal_enu_m
        self._kept_rows[i].append(
            (batch.time_s[i], batch.motion[i].copy(), batch.tension_n[i].copy(), goal[i].copy())
        )

    def draw(self) -> tuple[Array, ...]:
        """Pictures of all worlds, (height, width, 3) bytes each."""
        return tuple(self._draw(rows) for rows in self._kept_rows)

    def _draw(self, rows: list[Row]) -> Array:
        time_s = np.array([row[0] for row in rows])
        motion, tension_n, goal = (np.array([row[k] for row in rows]) for k in (1, 2, 3))
        bodies = ["load", *(f"drone_{i + 1}" for i in range(self._batch.n_drones))]
        tracks = {
            name: PoseTrack(time_s, motion[:, i, 0:3], motion[:, i, 6:10])
            for i, name in enumerate(bodies)
        }
        cables = {
            f"cable_{i + 1}": CableTrack(time_s, tension_n[:, i], time_s[:0])
            for i in range(tension_n.shape[1])
        }
        upright = np.tile([1.0, 0.0, 0.0, 0.0], (len(rows), 1))
        recording = Recording(tracks, {"load": PoseTrack(time_s, goal, upright)}, cables)
        subject = Subject(recording, self._system, "environment")
        window = (0.0, max(self._duration_s, time_s[-1]))
        options = PictureOptions(follow=True)
        return Picture([subject], window, options, framed_s=(0.0, 0.0)).draw(time_s[-1])
