"""Train a policy for `musls/Transport-v0` by PPO on many worlds at once, export it, compare it.

    python examples/train_ppo.py --level accelerations --steps 2000000 --out policy.onnx

PPO with clipped objective and generalised advantages (Schulman et al., 2017) in the form of
CleanRL's reference (Huang et al., JMLR 2022); two networks of tanh, PyTorch on the processor.
"""

import argparse
import copy
import json
import math
import sys
import time
from pathlib import Path

import numpy as np

try:
    import gymnasium
    import onnx
    import torch
    from torch import nn
except ImportError as error:
    packages = "torch onnx onnxruntime gymnasium"
    sys.exit(f"this example needs {error.name}: `{sys.executable} -m pip install {packages}`")

import musls.envs  # noqa: F401 (makes the environments known)


class Policy(nn.Module):
    """Mean action and value of an observation; the spread of actions is a parameter."""

    def __init__(self, inputs: int, outputs: int, hidden: int = 64) -> None:
        super().__init__()
        self.actor, self.critic = (
            nn.Sequential(
                nn.Linear(inputs, hidden), nn.Tanh(),
                nn.Linear(hidden, hidden), nn.Tanh(),
                nn.Linear(hidden, size),
            )
            for size in (outputs, 1)
        )  # fmt: skip
        with torch.no_grad():  # begins with actions near 0, which hover
            self.actor[-1].weight *= 0.01
            self.actor[-1].bias *= 0.0
        self.log_std = nn.Parameter(torch.full((outputs,), -1.5))

    def spread(self, seen: torch.Tensor) -> torch.distributions.Normal:
        """Distribution of actions."""
        return torch.distributions.Normal(self.actor(seen), self.log_std.exp())


class PPO:
    """Trains on an environment; `curve` holds (steps, seconds, mean return of episodes)."""

    def __init__(self, env, seed: int, horizon: int, gamma: float = 0.99, lam: float = 0.95):
        torch.manual_seed(seed)
        self.env, self.horizon, self.gamma, self.lam = env, horizon, gamma, lam
        size = env.single_observation_space.shape[0], env.single_action_space.shape[0]
        self.policy = Policy(*size)
        self.optimiser = torch.optim.Adam(self.policy.parameters(), lr=3e-4, eps=1e-5)
        self.seen = torch.as_tensor(env.reset(seed=seed)[0])
        self.idle = torch.zeros(env.num_envs, dtype=torch.bool)  # its next step is a reset
        self.returns, self.finished, self.curve = np.zeros(env.num_envs), [], []

    def train(self, steps: int, report: float = 10.0) -> None:
        """Go on until so many environment steps are done; the learning rate falls to a tenth."""
        begin, done, told, each = time.time(), 0, 0.0, self.horizon * self.env.num_envs
        while done < steps:
            for group in self.optimiser.param_groups:
                group["lr"] = 3e-4 * (1.0 - 0.9 * done / steps)
            self._learn(*self._collect())
            done += each
            if self.finished:
                mean = float(np.mean(self.finished[-200:]))
                self.curve.append((done, time.time() - begin, mean))
                if time.time() - told > report:
                    told = time.time()
                    print(f"{done:9d} steps {told - begin:5.0f} s: return {mean:6.1f}", flush=True)

    @torch.no_grad()
    def _collect(self) -> tuple[torch.Tensor, ...]:
        """Fly all worlds for a horizon; observations, actions, their logs, advantages, returns."""
        rows = []
        for _ in range(self.horizon):
            spread = self.policy.spread(self.seen)
            action = spread.sample()
            log = spread.log_prob(action).sum(-1)
            value = self.policy.critic(self.seen).squeeze(-1)
            seen, reward, failed, truncated, _ = self.env.step(action.numpy())
            over, valid = failed | truncated, ~self.idle
            self.returns += reward
            self.finished += self.returns[over].tolist()
            self.returns[over] = 0.0
            then = torch.as_tensor(seen)
            reward = torch.as_tensor(reward, dtype=torch.float32)
            after = self.policy.critic(then).squeeze(-1) * ~torch.as_tensor(failed)
            over = torch.as_tensor(over)
            rows.append((self.seen, action, log, value, reward, after, over, valid))
            self.seen, self.idle = then, over
        seen, action, log, value, reward, after, over, valid = map(
            torch.stack, zip(*rows, strict=True)
        )
        advantage, last = torch.zeros_like(value), torch.zeros(self.env.num_envs)
        for t in reversed(range(self.horizon)):
            error = reward[t] + self.gamma * after[t] - value[t]
            last = error + self.gamma * self.lam * last * ~over[t]
            last = last * valid[t]
            advantage[t] = last
        used = valid.flatten()
        many = (seen, action, log, advantage, advantage + value)
        return tuple(part.flatten(0, 1)[used] for part in many)

    def _learn(self, seen, action, log, advantage, wanted, epochs=10, size=256, clip=0.2) -> None:
        for _ in range(epochs):
            for chosen in torch.randperm(len(seen)).split(size):
                spread = self.policy.spread(seen[chosen])
                ratio = (spread.log_prob(action[chosen]).sum(-1) - log[chosen]).exp()
                gain = advantage[chosen]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                better = torch.min(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain).mean()
                missed = (self.policy.critic(seen[chosen]).squeeze(-1) - wanted[chosen]).square()
                loss = 0.5 * missed.mean() - better
                self.optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
                self.optimiser.step()


def export(actor: nn.Sequential, path: Path) -> None:
    """Write the mean action as ONNX file, layer by layer."""
    nodes, weights, last = [], [], "observation"
    for i, layer in enumerate(actor):
        name = f"layer{i}"
        if isinstance(layer, nn.Linear):
            for kind, array in (("weight", layer.weight.T), ("bias", layer.bias)):
                values = np.ascontiguousarray(array.detach().numpy())
                weights.append(onnx.numpy_helper.from_array(values, f"{name}_{kind}"))
            ends = [last, f"{name}_weight", f"{name}_bias"]
            nodes.append(onnx.helper.make_node("Gemm", ends, [name]))
        else:
            nodes.append(onnx.helper.make_node("Tanh", [last], [name]))
        last = name
    tensor, number = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    ends = [
        [tensor(name, number, ["worlds", size])]
        for name, size in (
            ("observation", actor[0].in_features),
            (last, actor[-1].out_features),
        )
    ]
    graph = onnx.helper.make_graph(nodes, "policy", *ends, weights)
    opset = onnx.helper.make_opsetid("", 17)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), path)


def evaluate(act, worlds: int = 256, seed: int = 1000, **given) -> np.ndarray:
    """Returns of one episode in each world, with goals that were not trained on."""
    env = gymnasium.make_vec("musls/Transport-v0", num_envs=worlds, **given)
    seen, _ = env.reset(seed=seed)
    total, alive = np.zeros(worlds), np.ones(worlds, bool)
    while alive.any():
        seen, reward, failed, truncated, _ = env.step(act(seen))
        total += alive * reward
        alive &= ~(failed | truncated)
    env.close()
    return total


def main() -> None:
    """Train, export, and print both returns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--level", default="accelerations")
    parser.add_argument("--steps", type=int, default=4_000_000)
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--horizon", type=int, default=32)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--periods", type=int, default=5, help="of 4 ms, an action is held for")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("policy.onnx"))
    given = parser.parse_args()
    made = {"level": given.level, "periods_per_step": given.periods}
    env = gymnasium.make_vec("musls/Transport-v0", num_envs=given.worlds, **made)
    ppo = PPO(env, given.seed, given.horizon, given.gamma)
    ppo.train(given.steps)
    env.close()
    export(ppo.policy.actor, given.out)
    actor = copy.deepcopy(ppo.policy.actor)

    def learned(seen: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return actor(torch.as_tensor(seen)).numpy()

    def formation(seen: np.ndarray) -> np.ndarray:
        return np.zeros((len(seen), 9))

    table = {"seed": given.seed, "level": given.level, "curve": ppo.curve}
    for name, act, level in (
        ("formation", formation, "drone_setpoints"),
        ("learned", learned, given.level),
    ):
        returns = evaluate(act, **{**made, "level": level})
        error = returns.std() / math.sqrt(len(returns))
        print(f"{name:10} return {returns.mean():6.1f} +- {error:.1f}, worst {returns.min():.1f}")
        table[name] = returns.mean()
    given.out.with_suffix(".json").write_text(json.dumps(table))


if __name__ == "__main__":
    main()
