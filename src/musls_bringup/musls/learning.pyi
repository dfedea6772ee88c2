from musls_bringup.learning.agents import TransportParallelEnv
from musls_bringup.learning.environment import TASKS, Task, TransportEnv, TransportVectorEnv
from musls_bringup.learning.stable_baselines import PPO_SETTINGS, for_sb3, save_policy
from musls_bringup.learning.tasks import Gate, Hover, LostDrone, Recover, Track, Transport
from musls_control.controllers.learned import Actions, Observations

IDS: dict[str, str]

__all__ = [
    "IDS",
    "PPO_SETTINGS",
    "TASKS",
    "Actions",
    "Gate",
    "Hover",
    "LostDrone",
    "Observations",
    "Recover",
    "Task",
    "Track",
    "Transport",
    "TransportEnv",
    "TransportParallelEnv",
    "TransportVectorEnv",
    "for_sb3",
    "save_policy",
]
