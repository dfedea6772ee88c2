"""Filter of one body's poses: what of motion capture is believed, by what the body can do.

A sample has to be whole, of its time and within reach of where the body was going. In flight a pose
that is not is never believed: the track that begins with it is refused for as long as it goes on,
however smooth it is, until a sample comes from where the body can be. On the ground, where people
carry drones about, it is believed once the body has rested there (PX4's reset_counter goes up).
What several bodies say of each other is judged in `capture`.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from musls_control.px4.frames import orientation_enu_ned, world_enu_ned
from musls_description.config.schema import spec
from musls_description.numerics.arrays import Array
from musls_description.numerics.vectors import body_z_in_world, dot

NORM_TOLERANCE = 1e-3

VELOCITY_S = 0.1
"""Time over which a body's velocity is taken: noise of 0.5 mm is then 7 mm/s."""

ATTITUDES_S = 0.3
"""Largest age of an IMU attitude that a pose is compared with; the pose is late, too."""

IMU_MARGIN = 1.5
SHORTEST_S = 0.01
"""A pose may turn so much faster than the IMU did of late; messages that come together count as so
far apart."""

LIES = frozenset({"frozen", "jump", "turn", "tilt", "axes", "exchanged", "beyond its cable"})
"""Reasons for which a pose is taken to be wrong; others say that it is late or damaged."""


@spec
class MocapLimits:
    """Limits that a sample must keep.

    Attributes:
        camera_latency_s: Time from the exposure to the stamp in the pose's header.
        longest_latency_s: Older samples are refused.
        future_tolerance_s: Stamps may be ahead by this much: clocks are never quite equal.
        largest_speed_m_s: Faster apparent motion between two samples counts as a jump.
        jump_tolerance_m: Distance that is allowed in addition to this motion, for noise.
        turn_tolerance_rad: Angle that is allowed in addition to the turn that a body can make.
        return_m: Farthest from where it was going at which a body is believed again after a gap in
            flight.
        return_rad: Largest turn in a gap in flight after which its attitude is believed.
        repeats: Samples with the same bits from which on a pose in flight counts as frozen.
        imu_tilt_rad: Angle between the vertical axes of a drone in its pose and in its PX4's
            attitude at which the pose is refused.
        cable_margin_m: Farther than a cable reaches by so much, load and drone are not tied by it.
        ground_step_m: Heights of standing bodies that differ by more, and more than their places
            in one level direction by far, tell of axes that are mixed up.
        reach_m: Largest distance from the origin; samples beyond it are refused.
        reset_after_s: Time for which a body on the ground must rest at a new place to be believed
            there, and a clock that went back must last.
        doubt_after_s: Time for which wrong poses alone must come before a body is doubted.
    """

    camera_latency_s: Annotated[float, Field(ge=0.0, le=0.5)] = 0.0
    longest_latency_s: Annotated[float, Field(ge=0.001, le=2.0)] = 0.2
    future_tolerance_s: Annotated[float, Field(ge=0.0, le=0.5)] = 0.02
    largest_speed_m_s: Annotated[float, Field(ge=0.1, le=200.0)] = 15.0
    jump_tolerance_m: Annotated[float, Field(ge=0.0, le=10.0)] = 0.05
    turn_tolerance_rad: Annotated[float, Field(ge=0.0, le=3.2)] = 0.1
    return_m: Annotated[float, Field(ge=0.05, le=100.0)] = 1.0
    return_rad: Annotated[float, Field(ge=0.05, le=3.2)] = 0.6
    repeats: Annotated[float, Field(ge=2.0, le=1000.0)] = 3.0
    imu_tilt_rad: Annotated[float, Field(ge=0.05, le=3.2)] = 0.2
    cable_margin_m: Annotated[float, Field(ge=0.0, le=10.0)] = 0.2
    ground_step_m: Annotated[float, Field(ge=0.05, le=100.0)] = 0.5
    reach_m: Annotated[float, Field(ge=0.1, le=10000.0)] = 100.0
    reset_after_s: Annotated[float, Field(ge=0.05, le=60.0)] = 0.5
    doubt_after_s: Annotated[float, Field(ge=0.0, le=10.0)] = 0.2


@dataclass(frozen=True)
class Abilities:
    """Largest accelerations and turn rates of a body.

    Attributes:
        acceleration_m_s2: Largest acceleration in any direction.
        turn_rate_rad_s: Largest turn rate about any axis.
        turns_freely: Whether nothing levels it: after a gap it may have any attitude.
    """

    acceleration_m_s2: float = 60.0
    turn_rate_rad_s: float = 20.0
    turns_freely: bool = False


@dataclass(frozen=True)
class Sample:
    """A pose of one body, ENU.

    Attributes:
        stamp_s: Time on the vehicle's clock.
        position_enu_m: (3,).
        orientation_wxyz: FLU body to ENU world, (4,).
    """

    stamp_s: float
    position_enu_m: Array
    orientation_wxyz: Array


@dataclass(frozen=True)
class Refusal:
    """Why a sample is refused.

    Attributes:
        reason: Reason in a word or two, by which refusals are counted.
        detail: Details with numbers.
    """

    reason: str
    detail: str


class Track:
    """Samples that follow on each other, and where they lead."""

    def __init__(self, first: Sample, able: Abilities) -> None:
        self.able = able
        self._samples = deque([first])

    @property
    def last(self) -> Sample:
        """Newest sample of the body."""
        return self._samples[-1]

    def add(self, sample: Sample) -> None:
        """Continue it."""
        if sample.stamp_s <= self.last.stamp_s:  # the clock was set back
            self._samples.clear()
        self._samples.append(sample)
        while sample.stamp_s - self._samples[0].stamp_s > VELOCITY_S and len(self._samples) > 2:
            self._samples.popleft()

    @property
    def velocity_enu_m_s(self) -> Array | None:
        """Recent mean velocity, (3,); None from a single sample."""
        first = self._samples[0]
        interval_s = self.last.stamp_s - self._samples[0].stamp_s
        if interval_s <= 0.0:
            return None
        return (self.last.position_enu_m - first.position_enu_m) / interval_s

    def away_m(self, place: Array, passed_s: float) -> float:
        """Distance of a place from the way that the body was going, for a second at most."""
        way = self.velocity_enu_m_s
        off = place - self.last.position_enu_m
        if way is None:
            return float(np.linalg.norm(off))
        way = way * min(passed_s, 1.0)
        square = float(way @ way)
        share = min(max(float(off @ way) / square, 0.0), 1.0) if square > 0.0 else 0.0
        return float(np.linalg.norm(off - share * way))

    def turned_rad(self, sample: Sample) -> float:
        """Angle between a sample's attitude and the last one."""
        return _angle(sample.orientation_wxyz, self.last.orientation_wxyz)

    def strain(
        self, sample: Sample, passed_s: float, limits: MocapLimits, imu_rad_s: float = 0.0
    ) -> tuple[float, float]:
        """Motion that a sample needs over what the body can do: place and turn; impossible above 1.

        `imu_rad_s`: recent turn rate of its own IMU: a body out of control turns faster.
        """
        able = self.able
        interval_s = max(passed_s, 0.0)
        far_m = float(np.linalg.norm(sample.position_enu_m - self.last.position_enu_m))
        fastest_m = limits.jump_tolerance_m + limits.largest_speed_m_s * interval_s
        place = far_m / max(fastest_m, 1e-9)
        if self.velocity_enu_m_s is not None:
            gained_m = 0.5 * able.acceleration_m_s2 * interval_s * (interval_s + VELOCITY_S)
            allowed_m = limits.jump_tolerance_m + min(gained_m, limits.return_m)
            off_m = self.away_m(sample.position_enu_m, interval_s)
            place = max(place, off_m / max(allowed_m, 1e-9))
        largest = np.pi if able.turns_freely else limits.return_rad
        rate_rad_s = max(able.turn_rate_rad_s, IMU_MARGIN * imu_rad_s)
        tolerance_rad = limits.turn_tolerance_rad + min(rate_rad_s * interval_s, largest)
        return place, self.turned_rad(sample) / max(tolerance_rad, 1e-9)


class MocapFilter:
    """Judges the samples of one body.

    Attributes:
        limits: Limits of the samples; may be changed at any time.
        able: Abilities of the body.
        flies: Whether it is in the air; set by the caller.
        refused_since_s: Time since which all samples were refused; infinite while they are used.
        dropped: Samples that were refused, by reason.
        detail: The last refusal, with numbers.
        resets: Jumps on the ground that lasted and were believed; PX4's reset_counter.
    """

    def __init__(self, limits: MocapLimits, able: Abilities | None = None) -> None:
        self.limits = limits
        self.able = able or Abilities()
        self.flies = False
        self.used = 0
        self.resets = 0
        self.dropped: dict[str, int] = {}
        self.reason = ""
        self.detail = ""
        self.refused_since_s = np.inf
        self.track: Track | None = None
        self.other: Track | None = None
        self._rest_place = np.full(3, np.inf)
        self._rests_since_s = np.inf
        self._why: Refusal | None = None
        self._lied_s = -np.inf
        self._last_now_s = -np.inf
        self._raw: Sample | None = None
        self._same = 1
        self._attitudes: deque[tuple[float, tuple[float, ...], Array, float]] = deque()

    def silent_s(self, now_s: float) -> float:
        """Time since the last sample that was used; infinite before the first."""
        return now_s - self._last_now_s

    def latency_s(self, now_s: float, sample: Sample) -> float:
        """Time from the exposure of a sample to now."""
        return now_s - sample.stamp_s + self.limits.camera_latency_s

    def on_attitude(self, now_s: float, orientation_wxyz: Array) -> None:
        """Take the attitude of the body's own autopilot, FLU to ENU, (4,)."""
        if np.isfinite(orientation_wxyz).all():
            rate_rad_s = 0.0
            if self._attitudes:
                before_s, _, before, _ = self._attitudes[-1]
                angle_rad = _angle(orientation_wxyz, before)
                rate_rad_s = angle_rad / max(now_s - before_s, SHORTEST_S)
            up = body_z_in_world(orientation_wxyz)
            self._attitudes.append((now_s, up, orientation_wxyz, rate_rad_s))
        while self._attitudes and not 0.0 <= now_s - self._attitudes[0][0] <= ATTITUDES_S:
            self._attitudes.popleft()

    @property
    def has_attitude(self) -> bool:
        """Whether poses are compared with attitudes from the body's own IMU."""
        return bool(self._attitudes)

    def doubt(self, now_s: float) -> str:
        """Why the body's poses are taken to be wrong, for a while now; "" where they are not."""
        lasted_s = now_s - self.refused_since_s
        lies = self.reason in LIES and now_s - self._lied_s <= self.limits.reset_after_s
        if not lies or lasted_s < self.limits.doubt_after_s:
            return ""
        return f"{self.reason}: {self.detail}"

    def take(self, now_s: float, sample: Sample) -> bool:
        """Whether a sample is to be used."""
        refusal = self.judge(now_s, sample)
        if refusal is None:
            self.believe(now_s, sample)
        else:
            self.refuse(now_s, sample, refusal)
        return refusal is None

    def believe(self, now_s: float, sample: Sample) -> None:
        """Use a sample that was judged."""
        if self.track is None or self._moved_to(sample):
            self.track = Track(sample, self.able)
        else:
            self.track.add(sample)
        self._last_now_s = now_s
        self.other = None
        self._why = None
        self.refused_since_s = np.inf
        self.reason = ""
        self.used += 1

    def refuse(self, now_s: float, sample: Sample, refusal: Refusal) -> None:
        """Count a sample that is not used; one that cannot be where it is begins another track."""
        self.refused_since_s = min(self.refused_since_s, now_s)
        self.reason = refusal.reason
        self.detail = refusal.detail
        self.dropped[refusal.reason] = self.dropped.get(refusal.reason, 0) + 1
        if refusal.reason not in LIES:
            return
        self._lied_s = now_s
        if refusal.reason == "frozen":
            return
        if self.other is None or not self._goes_on(self.other, sample):
            self.other = Track(sample, self.able)
        else:
            self.other.add(sample)
        self._why = refusal

    def passed_s(self, now_s: float, sample: Sample) -> float:
        """Time since the sample before; by our own clock where the capture's was set back."""
        if self.track is None:
            return np.inf
        interval_s = sample.stamp_s - self.track.last.stamp_s
        if interval_s > 0.0:
            return interval_s
        since_s = self.silent_s(now_s)
        return since_s if since_s > 0.0 else np.inf

    def judge(self, now_s: float, sample: Sample) -> Refusal | None:
        """Why a sample must not be used, by this body alone; None where it may."""
        damaged = self._damage(now_s, sample)
        if damaged is not None:
            return damaged
        before = self._raw
        self._raw = sample
        same = before is not None and _same_bits(before, sample)
        self._same = self._same + 1 if same else 1
        if self.flies and self._same >= self.limits.repeats:
            if self._why is not None:  # a wrong place that repeats, such as the origin
                return self._why
            return Refusal("frozen", f"the same pose {self._same} times, bit for bit")
        return self._contradiction(now_s, sample) or self._impossible(now_s, sample)

    def _damage(self, now_s: float, sample: Sample) -> Refusal | None:
        limits = self.limits
        place = sample.position_enu_m
        if not (np.isfinite(place).all() and np.isfinite(sample.orientation_wxyz).all()):
            return Refusal("not finite", "not finite")
        norm = float(np.linalg.norm(sample.orientation_wxyz))
        if abs(norm - 1.0) > NORM_TOLERANCE:
            return Refusal(
                "no unit quaternion", f"orientation is no unit quaternion (norm {norm:.3g})"
            )
        far = float(np.linalg.norm(place))
        if far > limits.reach_m:
            return Refusal(
                "out of reach", f"{far:.0f} m from the origin (reach_m {limits.reach_m:g})"
            )
        latency = self.latency_s(now_s, sample)
        if latency > limits.longest_latency_s:
            limit = f"longest_latency_s {limits.longest_latency_s:g}"
            return Refusal("too old", f"{latency:.3f} s old ({limit})")
        ahead = sample.stamp_s - now_s
        if ahead > limits.future_tolerance_s:
            limit = f"future_tolerance_s {limits.future_tolerance_s:g}"
            return Refusal("in the future", f"stamped {ahead:.3f} s ahead ({limit})")
        if self.track is None or sample.stamp_s > self.track.last.stamp_s:
            return None
        back = now_s < self._last_now_s - limits.reset_after_s
        if back or self.silent_s(now_s) > limits.reset_after_s:
            return None  # the clock was set back; the new time is the time
        early = self.track.last.stamp_s - sample.stamp_s
        return Refusal("out of order", f"stamped {early:.3f} s before the sample before")

    def _contradiction(self, now_s: float, sample: Sample) -> Refusal | None:
        """Whether the body's own autopilot knows another attitude."""
        while self._attitudes and not 0.0 <= now_s - self._attitudes[0][0] <= ATTITUDES_S:
            self._attitudes.popleft()
        if not self._attitudes:
            return None
        up = body_z_in_world(sample.orientation_wxyz)
        nearest = max(dot(up, other) for _, other, _, _ in self._attitudes)
        tilt = math.acos(min(max(nearest, -1.0), 1.0))
        late_s = now_s - self._attitudes[-1][0]
        if tilt <= self.limits.imu_tilt_rad + self.able.turn_rate_rad_s * max(late_s - 0.1, 0.0):
            return None
        degrees = f"{np.degrees(tilt):.0f} degrees"
        if self.flies:
            return Refusal("tilt", f"tilted by {degrees} from its own PX4's attitude")
        return Refusal(
            "axes",
            f"its up is {degrees} from the up of its PX4's IMU: axes of the capture's world (z up) "
            "or of its rigid body (x forward, z up)",
        )

    def _impossible(self, now_s: float, sample: Sample) -> Refusal | None:
        """Whether the body cannot be where the sample says."""
        if self.track is None:
            return None
        interval_s = self.passed_s(now_s, sample)
        place, turn = self.track.strain(sample, interval_s, self.limits, self._imu_rad_s)
        if max(place, turn) <= 1.0 and (
            self.other is None or max(place, turn) <= self._strain_of_other(sample)
        ):
            return None
        if self._has_rested(now_s, sample):
            return None
        if self._why is not None and self.other is not None and self._goes_on(self.other, sample):
            return self._why
        if place >= turn:
            far = float(np.linalg.norm(sample.position_enu_m - self.track.last.position_enu_m))
            return Refusal("jump", f"a jump of {far:.2f} m in {interval_s * 1e3:.0f} ms")
        degrees = f"{np.degrees(self.track.turned_rad(sample)):.0f} degrees"
        return Refusal("turn", f"turned by {degrees} in {interval_s * 1e3:.0f} ms")

    @property
    def _imu_rad_s(self) -> float:
        """Largest recent turn rate, from the body's own autopilot."""
        return max((rate for *_, rate in self._attitudes), default=0.0)

    def _strain_of_other(self, sample: Sample) -> float:
        assert self.other is not None
        interval_s = max(sample.stamp_s - self.other.last.stamp_s, 0.0)
        return max(self.other.strain(sample, interval_s, self.limits, self._imu_rad_s))

    def _goes_on(self, other: Track, sample: Sample) -> bool:
        interval_s = sample.stamp_s - other.last.stamp_s
        strain = max(other.strain(sample, interval_s, self.limits, self._imu_rad_s))
        return interval_s > 0.0 and strain <= 1.0

    def _has_rested(self, now_s: float, sample: Sample) -> bool:
        """Whether a body on the ground has stayed at its new place."""
        moved_m = np.linalg.norm(sample.position_enu_m - self._rest_place)
        goes_on = self.other is not None and self._goes_on(self.other, sample)
        if not goes_on or not moved_m <= self.limits.jump_tolerance_m:
            self._rest_place = sample.position_enu_m
            self._rests_since_s = now_s
        return not self.flies and now_s - self._rests_since_s > self.limits.reset_after_s

    def _moved_to(self, sample: Sample) -> bool:
        """Whether a sample that is believed is at a new place, which is a reset for PX4."""
        assert self.track is not None
        interval_s = sample.stamp_s - self.track.last.stamp_s
        if self.other is None or max(self.track.strain(sample, interval_s, self.limits)) <= 1.0:
            return False
        self.resets += 1
        return True


def _angle(a: Array, b: Array) -> float:
    """Angle between two attitudes, unit quaternions (4,) [rad]."""
    return 2.0 * math.acos(min(abs(float(a @ b)), 1.0))


def _same_bits(a: Sample, b: Sample) -> bool:
    return (
        a.position_enu_m.tobytes() == b.position_enu_m.tobytes()
        and a.orientation_wxyz.tobytes() == b.orientation_wxyz.tobytes()
    )


# ---------- A motion-capture pose as PX4's VehicleOdometry wants it

POSE_FRAME_NED = 1
POSE_FRAME_FRD = 2


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
