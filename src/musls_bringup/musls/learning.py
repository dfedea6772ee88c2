"""Environments for learning, for Gymnasium and PettingZoo; needs the extra `rl`.

    import gymnasium
    import musls.learning

    envs = gymnasium.make_vec("musls/Transport-v0", num_envs=4096)
    env = gymnasium.make("musls/Hover-v0", level="forces")

All take the arguments of `TransportVectorEnv`; they differ in the task. In `TransportParallelEnv`,
for PettingZoo, each drone is an agent; `for_sb3` and `save_policy` are for stable-baselines3:

    model = PPO("MlpPolicy", for_sb3("musls/Track-v0"), **PPO_SETTINGS)
    model.learn(300_000)
    save_policy(model, "mine.onnx")
"""

import gymnasium

from musls._lazy import attach

IDS = {
    "musls/Transport-v0": "transport",
    "musls/Hover-v0": "hover",
    "musls/Track-v0": "track",
    "musls/Gate-v0": "gate",
    "musls/LostDrone-v0": "lost_drone",
    "musls/Recover-v0": "recover",
}
"""Tasks of the environments that Gymnasium knows by name."""

for _id, _task in IDS.items():
    if _id not in gymnasium.registry:
        gymnasium.register(
            _id,
            entry_point="musls.learning:TransportEnv",
            vector_entry_point="musls.learning:TransportVectorEnv",
            kwargs={"task": _task},
        )

# Some names need stable-baselines3 or PettingZoo, too.
__getattr__, __dir__, __all__ = attach(__name__, __file__)
__all__ += ["IDS"]
