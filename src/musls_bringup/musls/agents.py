"""The environments of `musls.envs` for PettingZoo: each drone is an agent; needs the extra `rl`."""

from musls_bringup.learning.agents import TransportParallelEnv

__all__ = ["TransportParallelEnv"]
