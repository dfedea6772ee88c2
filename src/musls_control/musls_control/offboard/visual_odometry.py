"""A motion-capture pose as PX4's VehicleOdometry wants it: frames, time of the sample, checks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_control.px4_frames import orientation_enu_ned, world_enu_ned

Array = NDArray[np.float64]

POSE_FRAME_NED, POSE_FRAME_FRD = 1, 2
NORM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class VisualOdometry:
    """Fields of a VehicleOdometry.

    Attributes:
        timestamp_us: Now.
        timestamp_sample_us: When the cameras took the sample.
        pose_frame: NED if the capture volume's y axis points north, else FRD (x forward, level).
        position_m: In that frame, (3,).
        orientation_wxyz: FRD body to that frame, (4,).
        latency_s: From the sample to now.
    """

    timestamp_us: int
    timestamp_sample_us: int
    pose_frame: int
    position_m: Array
    orientation_wxyz: Array
    latency_s: float


class MocapRelay:
    """Converts the poses of one drone.

    Attributes:
        dropped: Samples that were refused, by reason.
    """

    def __init__(
        self, *, north_aligned: bool, camera_latency_s: float, longest_latency_s: float
    ) -> None:
        """Say what the capture system is like.

        Args:
            north_aligned: Whether the world's y axis points north.
            camera_latency_s: From exposure to the stamp in the pose's header.
            longest_latency_s: Older samples are dropped.
        """
        self._frame = POSE_FRAME_NED if north_aligned else POSE_FRAME_FRD
        self._camera_latency_s, self._longest_s = camera_latency_s, longest_latency_s
        self._last_s = -np.inf
        self.dropped: dict[str, int] = {}

    def convert(
        self, now_s: float, stamp_s: float, position_enu_m: Array, orientation_wxyz: Array
    ) -> VisualOdometry | None:
        """Convert a sample; None if it is not to be used.

        Args:
            now_s: Vehicle's clock.
            stamp_s: Stamp of the pose on the same clock.
            position_enu_m: (3,).
            orientation_wxyz: FLU body to ENU world, (4,).
        """
        latency = now_s - stamp_s + self._camera_latency_s
        reason = None
        if not (np.isfinite(position_enu_m).all() and np.isfinite(orientation_wxyz).all()):
            reason = "not finite"
        elif abs(np.linalg.norm(orientation_wxyz) - 1.0) > NORM_TOLERANCE:
            reason = "orientation is no unit quaternion"
        elif stamp_s <= self._last_s:
            reason = "out of order"
        elif latency > self._longest_s:
            reason = "too old"
        elif now_s < stamp_s:
            reason = "stamped in the future"
        if reason is not None:
            self.dropped[reason] = self.dropped.get(reason, 0) + 1
            return None
        self._last_s = stamp_s
        return VisualOdometry(
            round(now_s * 1e6),
            round((now_s - latency) * 1e6),
            self._frame,
            world_enu_ned(position_enu_m),
            orientation_enu_ned(orientation_wxyz),
            latency,
        )
