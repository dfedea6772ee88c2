"""Recording: a flight as a rosbag2 bag (MCAP), written without ROS, or as arrays in memory."""

from musls_sim.recording.bag_file import RecordingError
from musls_sim.recording.recorder import BagRecorder, MemoryRecorder

__all__ = ["BagRecorder", "MemoryRecorder", "RecordingError"]
