"""Registers the Gymnasium environment `musls/Transport-v0`; needs the extra `rl`.

import gymnasium
import musls.envs

env = gymnasium.make("musls/Transport-v0", scenario="hold", level="forces")
"""

from __future__ import annotations

import gymnasium

from musls_bringup.transport_env import ID, TransportEnv

if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point="musls_bringup.transport_env:TransportEnv")

__all__ = ["TransportEnv"]
