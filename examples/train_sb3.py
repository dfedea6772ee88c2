"""Train a policy by stable-baselines3's PPO and write it as a file that flies.

python examples/train_sb3.py --task musls/Track-v0 --steps 300000 --out mine.onnx
musls fly hold --controller mine.onnx
python benchmarks/learning_tasks.py --tasks track --policy mine.onnx  # compare it
"""

import argparse
import sys
import time
from pathlib import Path

try:
    import onnx  # noqa: F401 (before the training, not after it)
    import torch
    from stable_baselines3 import PPO
except ImportError as error:
    packages = "stable-baselines3 onnx onnxruntime gymnasium"
    sys.exit(f"this example needs {error.name}: `{sys.executable} -m pip install {packages}`")

import musls.learning


def main() -> None:
    """Train and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="musls/Track-v0")
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("policy.onnx"))
    given = parser.parse_args()
    torch.set_num_threads(1)  # networks of this size are slower on several
    worlds = musls.learning.for_sb3(given.task)
    settings = {**musls.learning.PPO_SETTINGS, "seed": given.seed, "device": "cpu", "verbose": 1}
    model = PPO("MlpPolicy", worlds, **settings)
    begin = time.process_time()
    model.learn(given.steps)
    musls.learning.save_policy(model, given.out)
    print(f"{given.out}: {time.process_time() - begin:.0f} s of processor time")


if __name__ == "__main__":
    main()
