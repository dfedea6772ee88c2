"""Gymnasium environments: bring a slung load to a place, hold it, follow, pass a gate, survive.

    import gymnasium
    import musls.envs  # needs the extra `rl`

    envs = gymnasium.make_vec("musls/Transport-v0", num_envs=4096)
    env = gymnasium.make("musls/Hover-v0", level="forces")

All take the arguments of `TransportVectorEnv`; they differ in the task. `musls.agents` has them for
PettingZoo, each drone an agent; `for_sb3` and `save_policy` are for stable-baselines3:

    model = PPO("MlpPolicy", musls.envs.for_sb3("musls/Track-v0"), **musls.envs.PPO_SETTINGS)
    model.learn(300_000)
    musls.envs.save_policy(model, "mine.onnx")
"""

from typing import Any

import gymnasium

from musls_bringup.learning.environment import TASKS, Task, TransportEnv, TransportVectorEnv
from musls_bringup.learning.tasks import Gate, Hover, LostDrone, Recover, Track, Transport

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
            entry_point="musls.envs:TransportEnv",
            vector_entry_point="musls.envs:TransportVectorEnv",
            kwargs={"task": _task},
        )


def __getattr__(name: str) -> Any:
    """Import the names that need stable-baselines3 only when they are used."""
    if name in ("PPO_SETTINGS", "for_sb3", "save_policy"):
        from musls_bringup.learning import stable_baselines

        return getattr(stable_baselines, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "IDS",
    "TASKS",
    "Gate",
    "Hover",
    "LostDrone",
    "Recover",
    "Task",
    "Track",
    "Transport",
    "TransportEnv",
    "TransportVectorEnv",
]
