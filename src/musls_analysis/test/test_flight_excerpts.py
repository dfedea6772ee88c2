"""The shared excerpts of a real flight (not part of the repository)."""

from pathlib import Path

import numpy as np
import pytest

from musls_analysis.comparison.cycles import cut
from musls_analysis.recordings.readers import read_recording
from musls_description.numerics.rotations import roll_pitch_yaw

FLIGHTS = Path(__file__).resolve().parents[4] / "shared" / "flights"
pytestmark = pytest.mark.skipif(not FLIGHTS.is_dir(), reason=f"needs {FLIGHTS}")


def read(kind):
    return read_recording(FLIGHTS / f"flight_2136_{kind}.csv")


def test_oscillation():
    """Set-point y = sin(2 (t - 304.838)); the load swings with 0.597 m, half a period later.

    Those notes took held set-points for the times of their rows, which is 0.05 s late here.

    The flights' notes give a lag of 3.11 rad; against that set-point the samples give 3.21 rad, by
    half a logging interval (0.05 s) more.
    """
    recording = read("shm")
    found = cut(recording, "shm")
    assert found.period_s == pytest.approx(np.pi, rel=2e-3)
    halves = (found.cycles[0].start_s - (304.838 - 0.05)) / np.pi
    assert halves == pytest.approx(round(halves), abs=0.01) and len(found.cycles) == 3
    track = recording.bodies["load"]
    angle = 2.0 * (track.time_s - 304.838)
    A = np.column_stack([np.sin(angle), np.cos(angle), np.ones_like(angle)])
    (sine, cosine, offset), *_ = np.linalg.lstsq(A, track.position_enu_m[:, 1], rcond=None)
    assert np.hypot(sine, cosine) == pytest.approx(0.597, abs=5e-3)
    assert np.mod(np.arctan2(-cosine, sine), 2 * np.pi) == pytest.approx(3.21, abs=0.02)
    assert offset == pytest.approx(-0.031, abs=3e-3)


def test_circle():
    recording = read("circle")
    (cycle,) = cut(recording, "circle").cycles
    assert 2 * np.pi / (cycle.end_s - cycle.start_s) == pytest.approx(0.2, rel=3e-3)
    # The notes' phase is late by 0.1 s: held set-points taken for the times of thinned rows.
    assert cycle.start_s == pytest.approx(31.4742 - 0.0368 / 0.2 - 0.1, abs=0.05)
    radius = np.hypot(*recording.bodies["load"].position_enu_m[:, :2].T)
    assert (radius.min(), radius.max()) == pytest.approx((1.405, 1.490), abs=1e-3)


def test_engagement_and_its_stale_row():
    recording = read("engage")
    assert recording.warnings == (
        "1 stale row (repeats the last in all bodies) at 153.958 s dropped",
    )
    assert 153.958 not in recording.bodies["load"].time_s
    (cycle,) = cut(recording, "engage").cycles
    assert (cycle.start_s, cycle.end_s) == (152.858, 175.355)
    assert recording.bodies["load"].position_enu_m[0, 2] == pytest.approx(0.00127, abs=1e-5)


def test_set_points_of_the_drones_follow_from_the_cone():
    """README: drone 2 at (-0.5, 0.866, 2.2962) in the load's frame, yaw -pi/3 relative to it."""
    recording = read("engage")  # the load's yaw is 1.7 at first
    held = recording.setpoints["drone_2"]
    cos, sin = np.cos(1.7), np.sin(1.7)
    x, y = -0.5, np.sqrt(0.75)
    expected = [cos * x - sin * y, sin * x + cos * y, 0.5 + 2.2962]
    np.testing.assert_allclose(held.position_enu_m[0], expected, atol=1e-9)
    assert roll_pitch_yaw(held.orientation_wxyz[0])[2] == pytest.approx(1.7 - np.pi / 3)
