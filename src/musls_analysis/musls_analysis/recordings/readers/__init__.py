"""Recordings in, whatever they come from; one module per format.

`read_recording` recognises our bags and Gazebo's, result folders, bags that hold only TF, the
seed paper's log files and the excerpts of them as CSV.
"""

from musls_analysis.recordings.readers.options import ReadOptions
from musls_analysis.recordings.readers.recognise import read_recording

__all__ = ["ReadOptions", "read_recording"]
