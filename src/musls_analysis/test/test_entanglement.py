"""Cables that come close, cross and are wound round each other."""

import numpy as np
import pytest

from musls_analysis.comparison.entanglement import entanglement, gauss_integral, told
from musls_analysis.recordings.recording import CableTrack


def track(shapes):
    time_s = 0.1 * np.arange(len(shapes))
    return CableTrack(time_s, np.zeros((len(shapes), 2)), time_s, list(shapes))


def line(begin, end, points=12):
    return np.linspace(begin, end, points)


def test_line_that_moves_through_another_has_crossed_it_and_one_that_stops_has_not():
    still = line([-1.0, 0.0, 1.0], [1.0, 0.0, 1.0])
    asides = 2.55 - 0.1 * np.arange(31)  # of an upright line, which passes between 2.5 and 2.6 s
    passing = [line([0.0, y, 0.5], [0.3, y, 1.5]) for y in asides]
    crossed = entanglement({"cable_1": track([still] * 31), "cable_3": track(passing)})
    assert [crossing["time_s"] for crossing in crossed["crossings"]] == pytest.approx([2.6])
    assert list(told(crossed)) == ["cables 1 and 3 crossed at 2.6 s"]
    near = entanglement({"cable_1": track([still] * 25), "cable_3": track(passing[:25])})
    assert near["crossings"] == []
    assert near["least_distance_m"] == pytest.approx(0.15, abs=1e-9)
    assert near["time_s"] == pytest.approx(2.4)


def test_gauss_integral_of_linked_rings_is_their_linking_number():
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    one = np.column_stack([np.cos(turn), np.sin(turn), 0.0 * turn])
    other = np.column_stack([1.0 + np.cos(turn), 0.0 * turn, np.sin(turn)])
    assert abs(gauss_integral(one[None], other[None])[0]) == pytest.approx(1.0, abs=1e-9)
    assert gauss_integral(one[None], other[None] + [5.0, 0.0, 0.0])[0] == pytest.approx(0, abs=1e-9)


def test_legs_that_meet_in_a_ring_do_not_touch_there():
    legs = {
        f"cable_{k + 1}": track([line([side, 0.0, 0.0], [0.0, 0.0, 1.0], 21)] * 5)
        for k, side in enumerate((-0.5, 0.5))
    }
    found = entanglement(legs)
    assert found["crossings"] == []
    assert found["least_distance_m"] == pytest.approx(0.15, rel=0.01)


def test_one_cable_has_nothing_to_be_close_to():
    assert entanglement({"cable_1": track([line([0, 0, 0], [0, 0, 1])])}) == {}
