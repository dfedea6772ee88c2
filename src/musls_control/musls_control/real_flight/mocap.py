"""Motion capture for PX4: filter of poses, and messages of visual odometry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from musls_control.px4.frames import orientation_enu_ned, world_enu_ned
from musls_description.config.schema import spec
from musls_description.numerics.arrays import Array

NORM_TOLERANCE = 1e-3


@spec
class MocapLimits:
    """Limits that a sample must keep.

    Attributes:
        camera_latency_s: Time from the exposure to the stamp in the pose's header.
        longest_latency_s: Older samples are refused.
        future_tolerance_s: Stamps may be ahead by this much: clocks are never quite equal.
        largest_speed_m_s: Faster apparent motion between two samples counts as a jump.
        jump_tolerance_m: Distance that is allowed in addition to this motion, for noise.
        reach_m: Largest distance from the origin; samples beyond it are refused.
        reset_after_s: Time that a jump or a clock that went back must last to be accepted.
    """

    camera_latency_s: Annotated[float, Field(ge=0.0, le=0.5)] = 0.0
    longest_latency_s: Annotated[float, Field(ge=0.001, le=2.0)] = 0.2
    future_tolerance_s: Annotated[float, Field(ge=0.0, le=0.5)] = 0.02
    largest_speed_m_s: Annotated[float, Field(ge=0.1, le=200.0)] = 15.0
    jump_tolerance_m: Annotated[float, Field(ge=0.0, le=10.0)] = 0.05
    reach_m: Annotated[float, Field(ge=0.1, le=10000.0)] = 100.0
    reset_after_s: Annotated[float, Field(ge=0.05, le=60.0)] = 0.5


@dataclass(frozen=True)
class Sample:
    """A pose of one body, ENU.

    Attributes:
        stamp_s: On the vehicle's clock.
        position_enu_m: (3,).
        orientation_wxyz: FLU body to ENU world, (4,).
    """

    stamp_s: float
    position_enu_m: Array
    orientation_wxyz: Array


class MocapFilter:
    """Judges the samples of one body.

    Attributes:
        limits: What they must keep to; may be changed at any time.
        dropped: Samples that were refused, by reason.
        detail: The last refusal, with numbers.
        resets: Jumps that lasted and were believed in the end; PX4's reset_counter.
    """

    def __init__(self, limits: MocapLimits) -> None:
        self.limits = limits
        self.used, self.resets = 0, 0
        self.dropped: dict[str, int] = {}
        self.detail = ""
        self._last: Sample | None = None
        self._last_now_s = -np.inf
        self._other: Sample | None = None
        self._other_since_s = np.inf
        self._gap_s = 0.0

    def silent_s(self, now_s: float) -> float:
        """Time since the last sample that was used; infinite before the first."""
        return now_s - self._last_now_s

    def latency_s(self, now_s: float, sample: Sample) -> float:
        """Time from the exposure of a sample to now."""
        return now_s - sample.stamp_s + self.limits.camera_latency_s

    def take(self, now_s: float, sample: Sample) -> bool:
        """Whether a sample is to be used."""
        found = self._fault(now_s, sample)
        if found is not None:
            reason, self.detail = found
            self.dropped[reason] = self.dropped.get(reason, 0) + 1
            return False
        self._last, self._last_now_s, self._other = sample, now_s, None
        self.used += 1
        return True

    def _fault(self, now_s: float, sample: Sample) -> tuple[str, str] | None:
        limits, place = self.limits, sample.position_enu_m
        if not (np.isfinite(place).all() and np.isfinite(sample.orientation_wxyz).all()):
            return "not finite", "not finite"
        norm = float(np.linalg.norm(sample.orientation_wxyz))
        if abs(norm - 1.0) > NORM_TOLERANCE:
            return "no unit quaternion", f"orientation is no unit quaternion (norm {norm:.3g})"
        far = float(np.linalg.norm(place))
        if far > limits.reach_m:
            return "out of reach", f"{far:.0f} m from the origin (reach_m {limits.reach_m:g})"
        latency = self.latency_s(now_s, sample)
        if latency > limits.longest_latency_s:
            return (
                "too old",
                f"{latency:.3f} s old (longest_latency_s {limits.longest_latency_s:g})",
            )
        ahead = sample.stamp_s - now_s
        if ahead > limits.future_tolerance_s:
            allowed = f"future_tolerance_s {limits.future_tolerance_s:g}"
            return "in the future", f"stamped {ahead:.3f} s ahead ({allowed})"
        return self._fault_of_motion(now_s, sample)

    def _fault_of_motion(self, now_s: float, sample: Sample) -> tuple[str, str] | None:
        """Faults against the sample before."""
        if self._last is None:
            return None
        limits = self.limits
        passed = sample.stamp_s - self._last.stamp_s
        if passed <= 0.0:
            back = now_s < self._last_now_s - limits.reset_after_s
            if back or self.silent_s(now_s) > limits.reset_after_s:
                return None  # the clock was set back; the new time is the time
            return "out of order", f"stamped {-passed:.3f} s before the sample before"
        if self._other is None:  # while samples are refused the reach does not grow
            self._gap_s = passed
        if not _jumped(limits, self._last, sample, self._gap_s):
            return None
        other = self._other
        if other is None or _jumped(limits, other, sample, sample.stamp_s - other.stamp_s):
            self._other_since_s = now_s  # nothing to compare with: a new place, or flicker
        self._other = sample
        if now_s - self._other_since_s > limits.reset_after_s:
            self.resets += 1
            return None
        far = float(np.linalg.norm(sample.position_enu_m - self._last.position_enu_m))
        return "jump", f"a jump of {far:.2f} m in {passed * 1e3:.0f} ms"


def _jumped(limits: MocapLimits, before: Sample, after: Sample, passed_s: float) -> bool:
    """Whether a body cannot have moved from one place to the other in a time."""
    far = float(np.linalg.norm(after.position_enu_m - before.position_enu_m))
    return far > limits.jump_tolerance_m + limits.largest_speed_m_s * max(passed_s, 0.0)


# ---------- A motion-capture pose as PX4's VehicleOdometry wants it

POSE_FRAME_NED, POSE_FRAME_FRD = 1, 2


def visual_odometry(
    now_s: float, sample: Sample, latency_s: float, *, north_aligned: bool
) -> dict[str, Any]:
    """Fields of a VehicleOdometry for a sample (ENU) that was taken `latency_s` ago.

    `north_aligned`: the world's y axis points north; the frame is then NED, else FRD (x forward,
    level).
    """
    return {
        "timestamp": round(now_s * 1e6),
        "timestamp_sample": round((now_s - latency_s) * 1e6),
        "pose_frame": POSE_FRAME_NED if north_aligned else POSE_FRAME_FRD,
        "position": world_enu_ned(sample.position_enu_m).astype(np.float32),
        "q": orientation_enu_ned(sample.orientation_wxyz).astype(np.float32),
    }
