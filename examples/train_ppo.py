"""Train a policy for `musls/Transport-v0` by PPO on many worlds at once, export it, compare it.

    python examples/train_ppo.py --scale 4 --seed 1 --out policy.onnx
    python examples/train_ppo.py --level drone_setpoints --steps 300000 --out shifts.onnx

PPO with clipped objective and generalised advantages (Schulman et al., 2017), in JAX on the
processor. docs/tutorials/train_a_policy.md says what makes it learn in minutes.
"""

import argparse
import json
import sys
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

try:
    import gymnasium
    import jax
    import jax.numpy as jnp
    import onnx
    import optax
except ImportError as error:
    packages = "jax optax onnx onnxruntime gymnasium"
    sys.exit(f"this example needs {error.name}: `{sys.executable} -m pip install {packages}`")

import musls.learning  # noqa: F401 (makes the environments known)

TASK, WORLDS, HORIZON = "musls/Transport-v0", 128, 32
PERIODS = 20  # of 4 ms, an action is held for
GAMMA, LAMBDA, CLIP, EPOCHS, MINIBATCHES, RATE = 0.96, 0.95, 0.2, 8, 8, 1e-3
SPREAD, LEAST_SPREAD = 0.25, 0.04  # of actions; the first until 60 % of the steps are done


def new_network(rng, *sizes):
    """Weights and biases of layers; small in the last one, so that first actions are near 0."""
    scales = np.append(np.ones(len(sizes) - 2), 0.01) / np.sqrt(sizes[:-1])
    return [
        (jnp.array(scale * rng.standard_normal(size), jnp.float32), jnp.zeros(size[1]))
        for scale, size in zip(scales, pairwise(sizes), strict=True)
    ]


def network(layers, x):
    """Output of a network of tanh."""
    for weight, bias in layers[:-1]:
        x = jnp.tanh(x @ weight + bias)
    return x @ layers[-1][0] + layers[-1][1]


def log_density(policy, seen, action, spread):
    """Logarithm of how likely an action is, but for a constant."""
    return -0.5 * (((action - network(policy["actor"], seen)) / spread) ** 2).sum(-1)


@jax.jit
def act(policy, seen, spread, key):
    """Draw actions; with their logarithms and the values of what is seen."""
    mean = network(policy["actor"], seen)
    action = mean + spread * jax.random.normal(key, mean.shape)
    log = log_density(policy, seen, action, spread)
    return action, log, network(policy["critic"], seen)[:, 0]


def loss(policy, spread, seen, action, log, gain, wanted, used):
    """Clipped objective of the actor, square error of the critic."""
    ratio = jnp.exp(log_density(policy, seen, action, spread) - log)
    better = jnp.minimum(ratio * gain, ratio.clip(1 - CLIP, 1 + CLIP) * gain)
    missed = (network(policy["critic"], seen)[:, 0] - wanted) ** 2
    return (used * (0.5 * missed - better)).sum() / used.sum()


@partial(jax.jit, static_argnums=0)
def learn(optimiser, policy, state, spread, batch, key):
    """All epochs on a batch of steps."""

    def step(both, chosen):
        policy, state = both
        slopes = jax.grad(loss)(policy, spread, *(part[chosen] for part in batch))
        change, state = optimiser.update(slopes, state)
        return (optax.apply_updates(policy, change), state), None

    mix = partial(jax.random.permutation, x=len(batch[0]))
    order = jnp.concatenate(
        [mix(k).reshape(MINIBATCHES, -1) for k in jax.random.split(key, EPOCHS)]
    )
    return jax.lax.scan(step, (policy, state), order)[0]


def spread_ages(env, rng, parts=16):
    """Let worlds begin one after another; what was seen meanwhile, and what is seen now."""
    shown, seen = [], env.reset(seed=int(rng.integers(2**31)))[0]
    episode = round(env.unwrapped.duration_s / env.unwrapped.step_s)
    for k in range(parts):
        if k:
            again = np.arange(env.num_envs) % parts == k
            seen = env.reset(options={"reset_mask": again})[0]
        for _ in range(episode // parts):
            seen = env.step(SPREAD * rng.standard_normal(env.action_space.shape))[0]
            shown.append(seen)
    return np.concatenate(shown), seen


def train(env, seed, steps):
    """Layers of the actor, and (steps, processor time [s], mean return of late episodes)."""
    rng, key, begin = np.random.default_rng(seed), jax.random.key(seed), time.process_time()
    inputs, outputs = env.single_observation_space.shape[0], env.single_action_space.shape[0]
    policy = {
        "actor": new_network(rng, inputs, 64, 64, outputs),
        "critic": new_network(rng, inputs, 64, 64, 1),
    }
    updates = max(1, steps // (WORLDS * HORIZON))
    rate = optax.linear_schedule(RATE, 0.05 * RATE, updates * EPOCHS * MINIBATCHES)
    optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate, eps=1e-5))
    state = optimiser.init(policy)
    shown, seen = spread_ages(env, rng)
    centre, scale = shown.mean(axis=0), np.maximum(shown.std(axis=0), 0.05)
    idle = np.zeros(WORLDS, bool)  # the next step of these worlds begins an episode, no more
    total, whole, returns, curve = np.zeros(WORLDS), np.zeros(WORLDS, bool), [], []
    for update in range(updates):
        late = max(0.0, update / updates - 0.6) / 0.4
        spread, rows = np.float32(SPREAD * (LEAST_SPREAD / SPREAD) ** late), []
        for _ in range(HORIZON):
            key, new = jax.random.split(key)
            x = np.float32((seen - centre) / scale)
            action, log, value = map(np.asarray, act(policy, x, spread, new))
            seen, reward, failed, cut, _ = env.step(action)
            rows.append((x, action, log, value, reward, failed, failed | cut, ~idle))
            idle, total = failed | cut, total + reward
            returns += total[idle & whole].tolist()  # the first episode of a world is cut short
            total[idle], whole[idle] = 0.0, True
        x, action, log, value, reward, failed, over, used = map(np.stack, zip(*rows, strict=True))
        last = act(policy, np.float32((seen - centre) / scale), spread, key)[2]
        after = np.append(value[1:], np.asarray(last)[None], axis=0) * ~failed
        error = (1.0 - GAMMA) * reward + GAMMA * after - value  # values are about 1
        gain, behind = np.zeros_like(value), np.zeros(WORLDS)
        for t in reversed(range(HORIZON)):
            behind = used[t] * (error[t] + GAMMA * LAMBDA * behind * ~over[t])
            gain[t] = behind
        even = (gain - gain[used].mean()) / gain[used].std()
        parts = (x, action, log, even, gain + value, used)
        batch = [jnp.float32(part.reshape(-1, *part.shape[2:])) for part in parts]
        key, new = jax.random.split(key)
        policy, state = learn(optimiser, policy, state, spread, batch, new)
        if returns:
            done, mean = (update + 1) * WORLDS * HORIZON, float(np.mean(returns[-WORLDS:]))
            curve.append((done, time.process_time() - begin, mean))
            if update % 10 == 0:
                print(f"{done:8d} steps {curve[-1][1]:5.0f} s: return {mean:6.1f}", flush=True)
    actor = [tuple(map(np.asarray, layer)) for layer in policy["actor"]]
    weight = actor[0][0] / scale[:, None]  # takes observations as they are
    return [(weight, actor[0][1] - centre @ weight), *actor[1:]], curve


def mean_action(actor, seen):
    """Actions of the exported policy."""
    for weight, bias in actor[:-1]:
        seen = np.tanh(seen @ weight + bias)
    return seen @ actor[-1][0] + actor[-1][1]


def export(actor, path, **trained):
    """Write the mean action as ONNX file that says how it was trained."""
    nodes, weights, last = [], [], "observation"
    for i, layer in enumerate(actor):
        names = [f"weight_{i}", f"bias_{i}"]
        weights += [
            onnx.numpy_helper.from_array(np.float32(array), name)
            for array, name in zip(layer, names, strict=True)
        ]
        nodes.append(onnx.helper.make_node("Gemm", [last, *names], [f"sum_{i}"]))
        last = f"sum_{i}"
        if i < len(actor) - 1:
            nodes.append(onnx.helper.make_node("Tanh", [last], [f"tanh_{i}"]))
            last = f"tanh_{i}"
    ends = [
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["worlds", size])]
        for name, size in (("observation", len(actor[0][0])), (last, len(actor[-1][1])))
    ]
    graph = onnx.helper.make_graph(nodes, "policy", *ends, weights)
    opset = onnx.helper.make_opsetid("", 17)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    onnx.helper.set_model_props(model, {name: str(value) for name, value in trained.items()})
    onnx.save(model, path)


def worlds_of(number, level, scale):
    """The environment."""
    given = {"level": level, "action_scale": scale, "periods_per_step": PERIODS}
    return gymnasium.make_vec(TASK, num_envs=number, **given)


def evaluate(level, scale, act, worlds=256, seed=1000):
    """Returns of one episode in each world, with goals that were not trained on."""
    env = worlds_of(worlds, level, scale)
    seen, _ = env.reset(seed=seed)
    total, alive = np.zeros(worlds), np.ones(worlds, bool)
    while alive.any():
        seen, reward, failed, cut, _ = env.step(act(seen))
        total += alive * reward
        alive &= ~(failed | cut)
    env.close()
    return total


def main() -> None:
    """Train, export, and print both returns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--level", default="accelerations")
    parser.add_argument("--scale", type=float, default=1.0, help="times the unit an action is")
    parser.add_argument("--steps", type=int, default=600_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("policy.onnx"))
    given = parser.parse_args()
    env = worlds_of(WORLDS, given.level, given.scale)
    actor, curve = train(env, given.seed, given.steps)
    env.close()
    how = {"level": given.level, "periods_per_step": PERIODS, "action_scale": given.scale}
    export(actor, given.out, **how)
    table = {"level": given.level, "seed": given.seed, "curve": curve}
    for name, level, act in (
        ("formation", "drone_setpoints", lambda seen: np.zeros((len(seen), 9))),
        ("learned", given.level, partial(mean_action, actor)),
    ):
        returns = evaluate(level, given.scale, act)
        error = returns.std() / np.sqrt(len(returns))
        print(f"{name:10} return {returns.mean():6.2f} +- {error:.2f}, worst {returns.min():.1f}")
        table[name] = [returns.mean(), returns.min()]
    given.out.with_suffix(".json").write_text(json.dumps(table))


if __name__ == "__main__":
    main()
