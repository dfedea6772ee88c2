"""Worlds as stable-baselines3 takes them, and what it has trained as a file that flies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from musls_description.config.errors import MuslsError, install_command
from musls_description.numerics.arrays import Array
from musls_sim.specs.physics import CONTROL_PERIOD_S

try:
    import onnx
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize
except ModuleNotFoundError as missing:
    packages = install_command("stable-baselines3", "onnx")
    raise MuslsError(f"musls.learning.for_sb3 needs {missing.name}: {packages}") from missing

MAX_SEEN = 10.0
LEAST_SPREAD = 0.05
"""Normalised observations are cut off at the first while it learns, and none that spread less than
the second are blown up."""

PPO_SETTINGS = {
    "n_steps": 32,
    "batch_size": 512,
    "n_epochs": 8,
    "learning_rate": 5e-4,
    "target_kl": 0.06,
    "gamma": 0.96,
    "use_sde": True,
    "sde_sample_freq": 8,
    "policy_kwargs": {"log_std_init": -2.0},
}
"""Settings of stable-baselines3's PPO for 128 worlds.

Its own are made for one slow world, and count on what comes in 100 steps, 8 s here; a drone is
where it was sent after one or two seconds. What it tries is held for 8 steps, 0.64 s (gSDE, Raffin
et al., 2021), and is small: drones do not follow noise that is drawn anew every 80 ms. `target_kl`
ends rounds that go too far, without which tasks that begin near the best return are unlearned.
"""

AGES = 8
"""Groups of worlds that begin one after another."""

SPREAD = 0.2
"""Action of the environment that 1 of the learner's stands for: its first ones have a spread of 1,
and ours of that size throw the load about, so that nothing is learned from them."""


class Worlds(VecEnv):
    """Worlds of a vector environment of ours in stable-baselines3's interface."""

    def __init__(self, worlds: Any) -> None:
        self.worlds = worlds
        shape = worlds.single_action_space.shape
        action_space = gymnasium.spaces.Box(-1.0 / SPREAD, 1.0 / SPREAD, shape, np.float32)
        super().__init__(worlds.num_envs, worlds.single_observation_space, action_space)

    def reset(self) -> Array:
        """Begin episodes one group after another; the seed is that of `seed`.

        Worlds that begin together would show a learner one part of the task at a time.
        """
        worlds = self.worlds
        group = np.arange(self.num_envs) % AGES
        observation: Array = worlds.reset(seed=self._seeds[0])[0]
        self._reset_seeds()
        steps = round(worlds.unwrapped.duration_s / worlds.unwrapped.step_s / AGES)
        for k in range(1, min(AGES, self.num_envs)):
            for _ in range(steps):
                worlds.step(np.zeros(worlds.action_space.shape))
            observation = worlds.reset(options={"reset_mask": group == k})[0]
        return observation

    def step_async(self, actions: Array) -> None:
        """Take actions."""
        self._actions = SPREAD * actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        """Hold them for a step."""
        observation, reward, failed, cut, info = self.worlds.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(failed | cut):
            infos[i] = {
                "terminal_observation": info["final_obs"][i],
                "TimeLimit.truncated": not failed[i],
            }
        return observation, reward.astype(np.float32), failed | cut, infos

    def close(self) -> None:
        """End the simulation."""
        self.worlds.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Attribute of the environment, the same for all worlds."""
        return [getattr(self.worlds, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the environment."""
        setattr(self.worlds, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **keywords: Any) -> Any:
        """Call a method of the environment."""
        return [getattr(self.worlds, method_name)(*args, **keywords)] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """No world is wrapped."""
        return [False] * self.num_envs


def for_sb3(name: str = "musls/Track-v0", worlds: int = 128, **settings: Any) -> VecNormalize:
    """Worlds of an environment, with observations and rewards scaled to be about 1 in size.

    `settings` are arguments of `TransportVectorEnv` (raises ConfigError as it does).
    """
    vector_env = Worlds(gymnasium.make_vec(name, worlds, autoreset_mode="SameStep", **settings))
    return VecNormalize(VecMonitor(vector_env), clip_obs=MAX_SEEN, epsilon=LEAST_SPREAD**2)


def save_policy(model: BaseAlgorithm, path: str | Path) -> None:
    """Write the mean action of what was trained on `for_sb3` by PPO or A2C with "MlpPolicy".

    The file flies by `musls fly hold --controller FILE.onnx`; it takes observations as they are,
    and says how it was trained.

    Raises:
        MuslsError: It was trained on something else, or is another kind of policy.
    """
    normal = model.get_env()
    policy = model.policy
    if not isinstance(normal, VecNormalize) or not hasattr(policy, "action_net"):
        raise MuslsError("save_policy: must be PPO or A2C that was trained on for_sb3's worlds")
    scale = 1.0 / np.sqrt(normal.obs_rms.var + normal.epsilon)
    layers = [*policy.mlp_extractor.policy_net, policy.action_net]
    arrays = {"centre": normal.obs_rms.mean, "scale": scale}
    last = "normal"
    nodes: list[Any] = []
    nodes.append(onnx.helper.make_node("Sub", ["observation", "centre"], ["shifted"]))
    nodes.append(onnx.helper.make_node("Mul", ["shifted", "scale"], [last]))
    for i, layer in enumerate(layers):
        into = f"x_{i}"
        names = [f"weight_{i}", f"bias_{i}"]
        kind = {"Linear": "Gemm"}.get(type(layer).__name__, type(layer).__name__)
        inputs = [last]
        attributes: dict[str, Any] = {}
        if kind == "Gemm":
            size = SPREAD if layer is layers[-1] else 1.0
            parts = zip(names, layer.parameters(), strict=True)
            arrays |= {n: size * part.detach().numpy() for n, part in parts}
            inputs = [last, *names]
            attributes = {"transB": 1}
        nodes.append(onnx.helper.make_node(kind, inputs, [into], **attributes))
        last = into
    ends = [
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["worlds", size])]
        for name, size in (("observation", len(scale)), (last, layers[-1].out_features))
    ]
    weights = [onnx.numpy_helper.from_array(np.float32(a), name) for name, a in arrays.items()]
    graph = onnx.helper.make_graph(nodes, "policy", *ends, weights)
    opset = onnx.helper.make_opsetid("", 17)
    onnx_model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    trained = normal.venv.venv.worlds.unwrapped
    how = {"level": trained.level.value, "action_scale": trained.action_scale}
    how |= {"periods_per_step": round(trained.step_s / CONTROL_PERIOD_S)}
    how |= {"history": trained.observations.shapes.get("actions", (0,))[0]}
    onnx.helper.set_model_props(onnx_model, {key: str(value) for key, value in how.items()})
    onnx.save(onnx_model, Path(path))
