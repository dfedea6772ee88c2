"""Recording: a flight as a rosbag2 bag (MCAP), written without ROS."""

from musls_sim.recording.bag_recorder import BagRecorder
from musls_sim.recording.errors import RecordingError

__all__ = ["BagRecorder", "RecordingError"]
