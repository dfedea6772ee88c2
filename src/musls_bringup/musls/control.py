"""Arguments of methods of your own `musls.Controller`, `LoadEstimator` and `Agent`."""

from musls_control.agents.agent import AGENTS, Body, Message, NotKnownError, Now, Post
from musls_control.estimators import DroneErrors, DroneSensors, EstimatorSetup

__all__ = [
    "AGENTS",
    "Body",
    "DroneErrors",
    "DroneSensors",
    "EstimatorSetup",
    "Message",
    "NotKnownError",
    "Now",
    "Post",
]
