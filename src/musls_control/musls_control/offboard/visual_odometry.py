"""A motion-capture pose as PX4's VehicleOdometry wants it: frames and time of the sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_control.offboard.mocap_filter import Sample
from musls_control.px4_frames import orientation_enu_ned, world_enu_ned

Array = NDArray[np.float64]

POSE_FRAME_NED, POSE_FRAME_FRD = 1, 2


@dataclass(frozen=True)
class VisualOdometry:
    """Fields of a VehicleOdometry.

    Attributes:
        timestamp_us: Now.
        timestamp_sample_us: When the cameras took the sample.
        pose_frame: NED if the capture volume's y axis points north, else FRD (x forward, level).
        position_m: In that frame, (3,).
        orientation_wxyz: FRD body to that frame, (4,).
    """

    timestamp_us: int
    timestamp_sample_us: int
    pose_frame: int
    position_m: Array
    orientation_wxyz: Array


def visual_odometry(
    now_s: float, sample: Sample, latency_s: float, *, north_aligned: bool
) -> VisualOdometry:
    """Convert a sample.

    Args:
        now_s: The vehicle's clock.
        sample: A pose, ENU.
        latency_s: From the exposure to now.
        north_aligned: Whether the world's y axis points north.
    """
    return VisualOdometry(
        round(now_s * 1e6),
        round((now_s - latency_s) * 1e6),
        POSE_FRAME_NED if north_aligned else POSE_FRAME_FRD,
        world_enu_ned(sample.position_enu_m),
        orientation_enu_ned(sample.orientation_wxyz),
    )
