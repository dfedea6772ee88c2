"""Train a policy by a library's PPO with its defaults: stable-baselines3 on many worlds at once.

    python examples/train_sb3.py --steps 1000000 --seed 1

Nothing is tuned here; for a policy in minutes see examples/train_ppo.py.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

try:
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    packages = "stable-baselines3 gymnasium"
    sys.exit(f"this example needs {error.name}: `{sys.executable} -m pip install {packages}`")

import musls.envs  # noqa: F401 (makes the environments known)

TASK = "musls/Transport-v0"


class Worlds(VecEnv):
    """The worlds of `gymnasium.make_vec`, as stable-baselines3 takes them."""

    def __init__(self, number: int, seed: int, **given: object) -> None:
        """Build them; `given` are arguments of the environment."""
        self.worlds = gymnasium.make_vec(TASK, number, autoreset_mode="SameStep", **given)
        spaces = self.worlds.single_observation_space, self.worlds.single_action_space
        super().__init__(number, *spaces)
        self._seed, self._return, self.returns = seed, np.zeros(number), []

    def reset(self) -> np.ndarray:
        """Begin all episodes."""
        return self.worlds.reset(seed=self._seed)[0]

    def step_async(self, actions: np.ndarray) -> None:
        """Take actions."""
        self._actions = actions

    def step_wait(self) -> tuple:
        """Hold them for a step."""
        seen, reward, failed, cut, info = self.worlds.step(self._actions)
        told, self._return = [{} for _ in range(self.num_envs)], self._return + reward
        for i in np.flatnonzero(failed | cut):
            told[i] = {
                "terminal_observation": info["final_obs"][i],
                "TimeLimit.truncated": not failed[i],
            }
            self.returns.append(self._return[i])
            self._return[i] = 0.0
        return seen, reward, failed | cut, told

    def close(self) -> None:
        """End the simulation."""
        self.worlds.close()

    def get_attr(self, attr_name: str, indices: object = None) -> list:
        """An attribute of the worlds."""
        return [getattr(self.worlds, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: object, indices: object = None) -> None:
        """Nothing: the worlds have no attributes of their own."""

    def env_method(self, method_name: str, *args: object, **given: object) -> list:
        """Nothing: the worlds have no methods of their own."""
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type, indices: object = None) -> list[bool]:
        """No."""
        return [False] * self.num_envs


class Curve(BaseCallback):
    """Keeps (steps, processor time [s], mean return of the last hundred episodes)."""

    def __init__(self, worlds: Worlds) -> None:
        """Watch these worlds."""
        super().__init__()
        self._worlds, self.rows = worlds, []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        mean = float(np.mean(self._worlds.returns[-100:]))
        self.rows.append((self.num_timesteps, time.process_time(), mean))
        print("{:8d} steps {:5.0f} s: return {:6.1f}".format(*self.rows[-1]), flush=True)


def evaluate(model: PPO, number: int = 128) -> np.ndarray:
    """Returns of an episode each, without noise of actions, at goals that were not trained on."""
    worlds = gymnasium.make_vec(TASK, number)
    seen, _ = worlds.reset(seed=1000)
    total, alive = np.zeros(number), np.ones(number, bool)
    while alive.any():
        seen, reward, failed, cut, _ = worlds.step(model.predict(seen, deterministic=True)[0])
        total += alive * reward
        alive &= ~(failed | cut)
    worlds.close()
    return total


def main() -> None:
    """Train and print the curve and the return."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--worlds", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("sb3.json"))
    given = parser.parse_args()
    torch.set_num_threads(1)  # networks of this size are slower on several
    worlds = Worlds(given.worlds, given.seed)
    curve = Curve(worlds)
    model = PPO("MlpPolicy", worlds, seed=given.seed, device="cpu")
    model.learn(given.steps, callback=curve)
    worlds.close()
    returns = evaluate(model)
    error = returns.std() / np.sqrt(len(returns))
    print(f"return {returns.mean():6.2f} +- {error:.2f}, worst {returns.min():.1f}")
    table = {"level": "stable-baselines3", "seed": given.seed, "curve": curve.rows}
    given.out.write_text(json.dumps(table | {"learned": [returns.mean(), returns.min()]}))


if __name__ == "__main__":
    main()
