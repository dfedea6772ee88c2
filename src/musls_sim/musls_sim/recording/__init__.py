"""Recording: a flight as a rosbag2 bag (MCAP), written without ROS, or as arrays in memory."""

from musls_sim.recording.bag_recorder import BagRecorder
from musls_sim.recording.errors import RecordingError
from musls_sim.recording.memory import MemoryRecorder

__all__ = ["BagRecorder", "MemoryRecorder", "RecordingError"]
