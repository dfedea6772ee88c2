"""PettingZoo: each drone of one world is an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from musls_bringup.learning.environment import Task, TransportVectorEnv
from musls_control.agents.agent import EVERYBODY
from musls_control.agents.network import Network, NetworkSpec
from musls_control.agents.policy import belief
from musls_control.controllers.learned import LARGEST_SEEN, Goal, flat
from musls_description.config.errors import ConfigError
from musls_description.config.schema import build
from musls_description.numerics.arrays import Array


class TransportParallelEnv(ParallelEnv[str, Array, Array]):
    """One world whose drones, "drone_1" and so on, decide for themselves and share the reward.

    What an agent sees is its row of `Observations.each`, its action its part of `Actions`. One
    network for all agents flies as `learned` with `decentralised`. A drone whose motors stop (task
    `lost_drone`) is terminated and leaves; the others go on.

    Attributes:
        worlds: The environment of one world behind it.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "musls_transport_v0",
        "render_modes": TransportVectorEnv.metadata["render_modes"],
        "render_fps": TransportVectorEnv.metadata["render_fps"],
    }

    def __init__(
        self,
        task: str | Task | type[Task] = "transport",
        *,
        knows: Sequence[str] | None = None,
        network: Mapping[str, Any] | None = None,
        leader: int = 1,
        **settings: Any,
    ) -> None:
        """Build the world.

        With `knows` or `network`, as those of `controller.kind: agents`, an agent sees what its
        drone knows, see `belief`; without them all there is. A message carries the sender's
        motion, once a step.

        Args:
            task: See `TransportVectorEnv`.
            knows: Further knowledge of every drone: "load", "reference".
            network: Keys of the network between the drones.
            leader: Number of the drone that knows the goal.
            settings: Other arguments of `TransportVectorEnv`.

        Raises:
            ConfigError: What cannot be flown so; names the argument or the key.
        """
        settings["autoreset_mode"] = "Disabled"
        self.worlds = TransportVectorEnv(1, task, **settings)
        self._limited = knows is not None or network is not None
        self._knows = tuple(knows or ())
        for name in self._knows:
            if name not in ("load", "reference"):
                raise ConfigError(f"knows: {name}: must be load or reference")
        if not 1 <= leader <= self.worlds.system.n_drones:
            raise ConfigError(f"leader = {leader}: there are {self.worlds.system.n_drones} drones")
        self._leader = leader
        self._links: NetworkSpec = build(NetworkSpec, dict(network or {}), "network")
        self.metadata = self.metadata | {  # type: ignore[misc]  # of this object
            "name": f"musls_{task if isinstance(task, str) else 'own'}_v0"
        }
        self.render_mode = self.worlds.render_mode
        n, columns = self.worlds.actions.shape
        self.possible_agents = [f"drone_{i + 1}" for i in range(n)]
        self.agents: list[str] = []
        size = self.worlds.observations.size_each
        self.observation_spaces = {
            name: spaces.Box(-LARGEST_SEEN, LARGEST_SEEN, (size,), np.float32)
            for name in self.possible_agents
        }
        self.action_spaces = {
            name: spaces.Box(-1.0, 1.0, (columns,), np.float32) for name in self.possible_agents
        }

    def observation_space(self, agent: str) -> spaces.Box:
        """Observation space of an agent."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Box:
        """Action space of an agent."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
        """Begin an episode, see `TransportVectorEnv.reset`."""
        _, info = self.worlds.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        n = len(self.agents)
        seed = int(self.worlds.seeds[0])
        self._network = Network(self._links, n, self._leader, seed)
        return self._each(), {name: self._of_world(info) for name in self.agents}

    def step(
        self, actions: dict[str, Array]
    ) -> tuple[
        dict[str, Array],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Hold an action of each agent that is there, see `TransportVectorEnv.step`.

        Raises:
            ConfigError: An action is missing, or of another shape.
        """
        all_actions = np.zeros(self.worlds.actions.shape)
        if not isinstance(actions, Mapping) or (lacks := set(self.agents) - set(actions)):
            names = ", ".join(sorted(lacks)) if isinstance(actions, Mapping) else "all of them"
            raise ConfigError(f"actions: missing of {names}: must be one of each agent")
        for name in self.agents:
            shape = all_actions.shape[1:]
            try:
                action = np.asarray(actions[name], float)
            except (TypeError, ValueError, OverflowError):
                raise ConfigError(f"actions of {name}: must be numbers, {shape}") from None
            if action.shape != shape:
                raise ConfigError(f"actions of {name}: shape {action.shape}, must be {shape}")
            all_actions[self.possible_agents.index(name)] = action
        _, reward, failed, truncated, info = self.worlds.step(all_actions.reshape(1, -1))
        is_lost = self.worlds.batch.motors[0] == 0.0
        now = self.agents
        terminated = {
            name: bool(failed[0] or is_lost[self.possible_agents.index(name)]) for name in now
        }
        over = {name: bool(truncated[0]) for name in now}
        observed = self._each()
        self.agents = [name for name in now if not (terminated[name] or over[name])]
        infos = {name: self._of_world(info) for name in now}
        return observed, dict.fromkeys(now, float(reward[0])), terminated, over, infos

    @property
    def state_space(self) -> spaces.Box:
        """Space of `state`."""
        size = self.worlds.observations.size
        return spaces.Box(-LARGEST_SEEN, LARGEST_SEEN, (size,), np.float32)

    def state(self) -> Array:
        """All there is to see, for a central critic: all parts of `Observations`, (size,)."""
        observation: Array = np.nan_to_num(flat(self.worlds.parts, (1,))[0])
        return observation

    def render(self) -> Array | None:
        """Picture, (height, width, 3)."""
        pictures = self.worlds.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        """End the simulation."""
        self.worlds.close()

    def _each(self) -> dict[str, Array]:
        """Observations by agent."""
        if self._limited:
            return self._each_by_itself()
        parts = {name: np.nan_to_num(part) for name, part in self.worlds.parts.items()}
        each = dict(
            zip(self.possible_agents, self.worlds.observations.each(parts, (1,))[0], strict=True)
        )
        return {name: each[name] for name in self.agents}

    def _each_by_itself(self) -> dict[str, Array]:
        """Observations of agents that know what their drones know, by agent."""
        worlds = self.worlds
        network = self._network
        motion = worlds.batch.estimate[0]
        time_s = float(worlds.batch.time_s[0])
        numbers = {name: self.possible_agents.index(name) + 1 for name in self.agents}
        network.arrive(time_s)
        for number in numbers.values():
            network.send(time_s, number, [(EVERYBODY, motion[number].copy())], motion[1:, 0:3])
        network.arrive(time_s)
        target = Goal(*(part[0] for part in worlds.goal))
        history = worlds.observations.shapes.get("actions", (0,))[0]
        past = worlds.past_actions[0, :history]
        observations = {}
        for name, number in numbers.items():
            messages = {k: m.numbers for k, m in network.heard_by(number, time_s).items()}
            load = motion[0] if "load" in self._knows else None
            knows_goal = number == self._leader or "reference" in self._knows
            mine, goal = belief(
                worlds.setup, number, motion[number], load, target if knows_goal else None, messages
            )
            tension_n = np.full((len(motion) - 1, 2), worlds.batch.tension_n[0, number - 1, 1])
            parts = worlds.observations.parts(mine, tension_n, goal, past)
            observations[name] = np.nan_to_num(worlds.observations.each(parts, ())[number - 1])
        return observations

    def _of_world(self, info: dict[str, Any]) -> dict[str, Any]:
        return {key: part[0] for key, part in info.items() if not key.startswith("_")}
