"""Replay: the drones of a recording move the cables' ends, the simulator predicts the load."""

from musls_analysis.replay.motion import ReplaySpec, SmoothPath, smooth_path
from musls_analysis.replay.replay import Replay, ReplayResult

__all__ = ["Replay", "ReplayResult", "ReplaySpec", "SmoothPath", "smooth_path"]
