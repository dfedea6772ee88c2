"""The Gymnasium environment with random actions: what a learning library would drive."""

import sys

import numpy as np

try:
    import gymnasium
except ImportError:
    sys.exit(f"this example needs gymnasium: `{sys.executable} -m pip install gymnasium`")

import musls.learning  # noqa: F401 (makes the environment known)


def main(steps: int = 100) -> float:
    """Run one episode of small random forces; returns the sum of the rewards."""
    env = gymnasium.make("musls/Transport-v0", level="forces")
    observation, info = env.reset(seed=1)
    print(f"{observation.shape[0]} observations, goal at {info['goal_position_enu_m'].round(2)} m")
    generator, total = np.random.default_rng(1), 0.0
    for _ in range(steps):
        action = 0.02 * generator.standard_normal(env.action_space.shape)
        observation, reward, terminated, truncated, info = env.step(action)
        total += float(reward)
        if terminated or truncated:
            break
    print(f"{info['time_s']:.2f} s, sum of rewards {total:.1f}")
    env.close()
    return total


if __name__ == "__main__":
    main()
