"""Motion-capture poses on their way to PX4."""

import numpy as np
import pytest

from musls_control.real_flight.mocap import (
    POSE_FRAME_FRD,
    POSE_FRAME_NED,
    MocapFilter,
    MocapLimits,
    Sample,
    visual_odometry,
)

LEVEL = np.array([1.0, 0.0, 0.0, 0.0])


def sample(stamp_s, *place, turn=LEVEL):
    return Sample(stamp_s, np.array(place or (0.0, 0.0, 0.0)), turn)


def test_a_drone_facing_east_has_its_heading_to_the_east_in_ned():
    found = visual_odometry(10.0, sample(9.99, 1.0, 2.0, 3.0), 0.015, north_aligned=True)
    assert found["position"] == pytest.approx([2.0, 1.0, -3.0])
    w, _, _, z = found["q"]
    assert 2.0 * np.arctan2(z, w) == pytest.approx(np.pi / 2.0)
    assert found["pose_frame"] == POSE_FRAME_NED
    assert found["timestamp"] - found["timestamp_sample"] == 15_000
    other = visual_odometry(1.0, sample(1.0), 0.0, north_aligned=False)
    assert other["pose_frame"] == POSE_FRAME_FRD


def test_the_latency_counts_from_the_exposure():
    mocap_filter = MocapFilter(MocapLimits(camera_latency_s=0.005))
    assert mocap_filter.latency_s(10.0, sample(9.99)) == pytest.approx(0.015)


@pytest.mark.parametrize(
    ("now_s", "bad", "reason", "detail"),
    [
        (2.0, sample(1.0), "too old", "1.000 s old (longest_latency_s 0.2)"),
        (2.0, sample(2.05), "in the future", "stamped 0.050 s ahead (future_tolerance_s 0.02)"),
        (2.0, sample(1.88), "out of order", "stamped 0.020 s before the sample before"),
        (2.0, sample(2.0, np.nan, 0, 0), "not finite", "not finite"),
        (2.0, sample(2.0, turn=2 * LEVEL), "no unit quaternion", "norm 2"),
        (2.0, sample(2.0, 1000.0, 0, 0), "out of reach", "1000 m from the origin (reach_m 100)"),
        (2.0, sample(2.0, 5.0, 0, 0), "jump", "a jump of 5.00 m in 100 ms"),
    ],
)
def test_a_bad_sample_is_refused_with_its_reason(now_s, bad, reason, detail):
    mocap_filter = MocapFilter(MocapLimits())
    assert mocap_filter.take(1.9, sample(1.9))
    assert not mocap_filter.take(now_s, bad)
    assert mocap_filter.dropped == {reason: 1} and detail in mocap_filter.detail
    assert mocap_filter.take(2.0, sample(2.0, 0.5, 0.0, 0.0))  # and the next good one is used


def test_a_stamp_that_is_hardly_ahead_is_used():
    """Two computers' clocks are never quite equal."""
    assert MocapFilter(MocapLimits()).take(2.0, sample(2.001))


def feed(mocap_filter, times, place, stamps=None):
    """How many samples of a place are used."""
    stamps = times if stamps is None else stamps
    return sum(mocap_filter.take(t, sample(s, *place)) for t, s in zip(times, stamps, strict=True))


def test_a_jump_that_lasts_is_believed_and_told_as_a_reset_but_one_out_of_reach_never():
    mocap_filter = MocapFilter(MocapLimits(reset_after_s=0.5))
    feed(mocap_filter, np.arange(0.0, 1.0, 0.01), (0, 0, 0))
    assert (
        feed(mocap_filter, np.arange(1.0, 1.5, 0.01), (5, 0, 0)) == 0 and mocap_filter.resets == 0
    )
    assert (
        feed(mocap_filter, np.arange(1.5, 2.0, 0.01), (5, 0, 0)) > 45 and mocap_filter.resets == 1
    )
    assert feed(mocap_filter, np.arange(2.0, 60.0, 0.01), (1000, 0, 0)) == 0


def test_places_that_flicker_are_never_believed():
    mocap_filter = MocapFilter(MocapLimits(reset_after_s=0.2))
    assert mocap_filter.take(0.0, sample(0.0))
    for k in range(1, 200):
        assert not mocap_filter.take(0.01 * k, sample(0.01 * k, 30.0 + 5.0 * (k % 2), 0.0, 0.0))


def test_a_clock_that_is_set_back_is_followed_after_a_while():
    mocap_filter = MocapFilter(MocapLimits(reset_after_s=0.5))
    times = np.arange(100.0, 101.0, 0.01)
    feed(mocap_filter, times, (0, 0, 0))
    late = np.arange(101.0, 102.0, 0.01)
    mocap_filter.limits = MocapLimits(reset_after_s=0.5, longest_latency_s=2.0)
    used = feed(mocap_filter, late, (0, 0, 0), late - 1.5)  # the capture system's clock alone
    assert 40 <= used <= 60
    assert feed(mocap_filter, late - 50.0, (0, 0, 0)) == len(late)  # both computers' clocks
