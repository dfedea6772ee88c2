from musls_analysis.recordings.bag import recording_from
from musls_analysis.recordings.readers import READERS, Reader, ReadOptions
from musls_analysis.recordings.recording import (
    Body,
    CableTrack,
    PoseTrack,
    RecordedEvent,
    RecordedStage,
    SignalTrack,
    TwistTrack,
)
from musls_analysis.replay import ReplaySpec
from musls_sim.recording import BagRecorder, MemoryRecorder
from musls_sim.recording.signals import SIGNALS, Column, Rate, Signal

__all__ = [
    "READERS",
    "SIGNALS",
    "BagRecorder",
    "Body",
    "CableTrack",
    "Column",
    "MemoryRecorder",
    "PoseTrack",
    "Rate",
    "ReadOptions",
    "Reader",
    "RecordedEvent",
    "RecordedStage",
    "ReplaySpec",
    "Signal",
    "SignalTrack",
    "TwistTrack",
    "recording_from",
]
