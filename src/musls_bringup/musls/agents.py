"""Former place of `musls.learning.TransportParallelEnv`."""

from musls._deprecated import AGENTS
from musls.learning import TransportParallelEnv

__all__ = ["TransportParallelEnv"]

AGENTS.warn()
