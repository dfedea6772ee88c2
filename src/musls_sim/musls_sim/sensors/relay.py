"""The relay of motion capture in the loop: faults of the capture, and what is believed of them.

Between a sample and its fusion (`estimation`) stands what stands there on real drones: the filter
of the node `mocap_relay`. It is in flights whose events let the capture lie.
"""

from __future__ import annotations

from musls_control.estimate import Estimate
from musls_control.real_flight.capture import CaptureFilter
from musls_control.real_flight.capture_faults import Fault, Pose
from musls_control.real_flight.mocap import MocapLimits, Sample
from musls_description.numerics.arrays import Array, Records
from musls_description.system.slung_system import RigSystem


class CaptureRelay:
    """Spoils and judges the samples that arrive.

    Attributes:
        judge: Filter of the poses; `judge.doubts` are given to the guard.
        faults: Present faults of the capture, each with the event that causes it.
        used_s: Time when a pose of a body was used last, by name.
    """

    def __init__(
        self,
        system: RigSystem,
        estimate: Estimate,
        ring: Records,
        samples_per_period: float,
        period_s: float,
        *,
        tied: bool,
    ) -> None:
        """`ring`: see `MotionCapture`; `tied`: whether cables join load and drones all the time."""
        self.bodies = ["load", *(f"drone_{i}" for i in range(1, system.n_drones + 1))]
        self.judge = CaptureFilter.of(self.bodies, MocapLimits(), system, tied=tied)
        self.faults: list[tuple[object, Fault]] = []
        self.used_s = dict.fromkeys(self.bodies, 0.0)
        self._estimate = estimate
        self._ring = ring
        self._period_s = period_s
        self._rate = samples_per_period
        self._late = len(ring) - 1
        self._last_seen: dict[str, Pose] = {}

    def next_arrival(self, tick: int) -> float:
        """Number of the first period, from `tick` on, in which samples arrive."""
        first = max(tick - self._late, 0)
        count = int(first * self._rate)
        sample_tick = max(first, int((count + 1) / self._rate) - 2)
        while int((sample_tick + 1) * self._rate) == count:  # as `step_estimates` does
            sample_tick += 1
        return sample_tick + self._late

    def step(self, tick: int, armed: Array) -> list[str]:
        """Judge what arrives in a period, before it is fused; returns news of doubts.

        `armed`: whether the motors of the drones may turn, (n,).
        """
        arriving = self._ring[(tick + 1) % len(self._ring)]
        rows = arriving["sampled"].nonzero()[0].tolist()
        if not rows:
            return []
        now_s = (tick + 1) * self._period_s
        stamp_s = now_s - self._late * self._period_s
        for row, drone in enumerate(self.bodies[1:]):
            self.judge.on_armed(drone, armed=bool(armed[row]))
            attitude = self._estimate.orientation_wxyz[1 + row].copy()
            self.judge.on_attitude(now_s, drone, attitude)
        for row in rows:
            sample = arriving[row]
            sample_pose = sample["sampled_position"].copy(), sample["sampled_attitude"].copy()
            self._last_seen[self.bodies[row]] = sample_pose
        poses = self._sent()
        for row in rows:
            body = self.bodies[row]
            sample = arriving[row]
            pose = poses.get(body)
            if pose is None or not self.judge.take(now_s, body, Sample(stamp_s, *pose)):
                sample["sampled"] = False
                continue
            self.used_s[body] = now_s
            sample["sampled_position"], sample["sampled_attitude"] = pose
        return [text for _, _, text in self.judge.news(now_s)]

    def _sent(self) -> dict[str, Pose]:
        """Poses that the capture sends, of all bodies."""
        poses = dict(self._last_seen)
        for _, fault in self.faults:
            spoilt = {body: fault(body, poses) for body in poses}
            poses = {body: pose for body, pose in spoilt.items() if pose is not None}
        return poses
