"""Motion-capture poses on their way to PX4."""

import numpy as np
import pytest

from musls_control.offboard.visual_odometry import POSE_FRAME_FRD, POSE_FRAME_NED, MocapRelay

LEVEL = np.array([1.0, 0.0, 0.0, 0.0])


def relay(**changed):
    given = {"north_aligned": True, "camera_latency_s": 0.005, "longest_latency_s": 0.1}
    return MocapRelay(**(given | changed))


def test_a_drone_facing_east_has_its_heading_to_the_east_in_ned():
    found = relay().convert(10.0, 9.99, np.array([1.0, 2.0, 3.0]), LEVEL)
    assert found.position_m == pytest.approx([2.0, 1.0, -3.0])
    w, _, _, z = found.orientation_wxyz
    assert 2.0 * np.arctan2(z, w) == pytest.approx(np.pi / 2.0)
    assert found.pose_frame == POSE_FRAME_NED


def test_the_sample_is_dated_back_by_the_whole_latency():
    found = relay().convert(10.0, 9.99, np.zeros(3), LEVEL)
    assert found.latency_s == pytest.approx(0.015)
    assert found.timestamp_us - found.timestamp_sample_us == 15_000


def test_a_volume_without_north_is_frd():
    assert relay(north_aligned=False).convert(1.0, 1.0, np.zeros(3), LEVEL).pose_frame == (
        POSE_FRAME_FRD
    )


def test_bad_samples_are_dropped_and_counted():
    here = np.zeros(3)
    relayed = relay()
    assert relayed.convert(1.0, 1.0, here, LEVEL) is not None
    assert relayed.convert(1.0, 1.0, here, LEVEL) is None
    assert relayed.convert(2.0, 1.5, here, LEVEL) is None
    assert relayed.convert(2.0, 2.5, here, LEVEL) is None
    assert relayed.convert(2.0, 2.0, here * np.nan, LEVEL) is None
    assert relayed.convert(2.0, 2.0, here, 2.0 * LEVEL) is None
    assert relayed.dropped == {
        "out of order": 1,
        "too old": 1,
        "stamped in the future": 1,
        "not finite": 1,
        "orientation is no unit quaternion": 1,
    }
    assert relayed.convert(2.1, 2.1, here, LEVEL) is not None
