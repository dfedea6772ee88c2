"""Train a policy by stable-baselines3's PPO, write it, compare it.

python examples/train_sb3.py --task musls/Track-v0 --steps 300000 --out mine.onnx
musls fly hold --controller mine.onnx
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

try:
    import gymnasium
    import onnxruntime
    import torch
    from stable_baselines3 import PPO
except ImportError as error:
    packages = "stable-baselines3 onnx onnxruntime gymnasium"
    sys.exit(f"this example needs {error.name}: `{sys.executable} -m pip install {packages}`")

import musls.envs


def evaluate(task: str, act, worlds: int = 64) -> np.ndarray:
    """Returns of an episode each, without noise of actions, as they were not trained on."""
    envs = gymnasium.make_vec(task, worlds)
    seen, _ = envs.reset(seed=1000)
    total, alive = np.zeros(worlds), np.ones(worlds, bool)
    while alive.any():
        seen, reward, failed, cut, _ = envs.step(act(seen))
        total += alive * reward
        alive &= ~(failed | cut)
    envs.close()
    return total


def main() -> None:
    """Train, write, and print the returns of the formation and of what was learned."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="musls/Track-v0")
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("policy.onnx"))
    given = parser.parse_args()
    torch.set_num_threads(1)  # networks of this size are slower on several
    worlds = musls.envs.for_sb3(given.task)
    settings = {**musls.envs.PPO_SETTINGS, "seed": given.seed, "device": "cpu", "verbose": 1}
    model = PPO("MlpPolicy", worlds, **settings)
    begin = time.process_time()
    model.learn(given.steps)
    table = {"task": given.task, "seed": given.seed, "seconds": time.process_time() - begin}
    musls.envs.save_policy(model, given.out)
    policy = onnxruntime.InferenceSession(given.out)
    nothing = np.zeros((64, *worlds.action_space.shape))
    for name, act in (
        ("formation", lambda seen: nothing),
        ("learned", lambda seen: policy.run(None, {"observation": seen})[0]),
    ):
        returns = evaluate(given.task, act)
        print(f"{name:10} return {returns.mean():6.2f}, worst {returns.min():.1f}", flush=True)
        table[name] = [returns.mean(), returns.min()]
    given.out.with_suffix(".json").write_text(json.dumps(table))


if __name__ == "__main__":
    main()
