"""Motion capture that lies, in a flown circle: what the filter believes, and what it says."""

from dataclasses import replace

import numpy as np
import pytest
from capture_flights import LATENCY_S, RATE_HZ, flown, watch

from musls_control.real_flight.capture import CaptureFilter
from musls_control.real_flight.mocap import MocapLimits, Sample
from musls_description.numerics.rotations import from_rotation_vector, product

FAST = {"system.cables.links": 3, "recording.rate_hz": 125, "recording.shape_rate_hz": 5}


@pytest.fixture(scope="module")
def whole():
    return flown("circle", FAST)


@pytest.fixture(scope="module")
def circle(whole):
    """Eight seconds of the circle; the faults begin after one."""
    begin_s = whole.stages["circle"] + 2.0
    return part_of(whole, (whole.time_s >= begin_s) & (whole.time_s < begin_s + 8.0))


DRONE = 2


def part_of(flight, which):
    names = ("time_s", "position_enu_m", "orientation_wxyz", "armed")
    return replace(flight, **{name: getattr(flight, name)[which] for name in names})


def from_(flight, duration_s=np.inf):
    """Samples of a fault that begins after a second."""
    begin_s = flight.time_s[0] + 1.0
    during = (flight.time_s >= begin_s) & (flight.time_s < begin_s + duration_s)
    return begin_s, during


def turned_by(turn):
    return lambda k, position, q: (position, product(from_rotation_vector(np.array(turn)), q))


def frozen(flight, seen):
    def spoil(k, position, q):
        return seen.setdefault("last", (position, q))

    return spoil


FAULTS = {
    # what is sent of drone 2, for how long, by which word it is refused
    "repeats the last pose": (None, np.inf, "frozen"),
    "sends the origin": (lambda k, p, q: (np.zeros(3), np.array([1.0, 0, 0, 0])), 2.0, "jump"),
    "turned by 90 degrees": (turned_by([0.0, 0.0, np.pi / 2]), np.inf, "turn"),
    "turned over": (turned_by([np.pi, 0.0, 0.0]), 1.0, "tilt"),
    "turned over, no IMU": (turned_by([np.pi, 0.0, 0.0]), 1.0, "turn"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_body_whose_poses_are_wrong_in_flight_is_refused_for_as_long_as_they_are(circle, name):
    send, duration_s, word = FAULTS[name]
    begin_s, during = from_(circle, duration_s)
    send = send or frozen(circle, {})

    def spoil(k, body, position, q):
        return send(k, position, q) if body == DRONE and during[k] else (position, q)

    capture, told = watch(circle, spoil, drop_outs=False, imu="no IMU" not in name)
    wrong = [t for t in told if t[1] == DRONE and begin_s <= t[0] < begin_s + duration_s]
    used = [t for t in wrong if t[2]]
    assert len(used) <= (2 if word == "frozen" else 0), used[:5]
    assert max((t[3] for t in used), default=0.0) < 0.03  # EKF2 is not led astray
    assert {t[4] for t in wrong if not t[2]} == {word}
    after = [t for t in told if t[1] == DRONE and t[0] >= begin_s + duration_s + 0.05]
    assert all(t[2] for t in after)  # a flight goes on when the capture is right again
    others = [t for t in told if t[1] != DRONE]
    assert all(t[2] for t in others)
    assert capture.filters["drone_2"].resets == 0


@pytest.mark.parametrize("duration_s", [1.0, np.inf])
def test_two_bodies_that_are_exchanged_are_both_refused_and_named(circle, duration_s):
    begin_s, during = from_(circle, duration_s)

    def spoil(k, body, position, q):
        other = {1: 2, 2: 1}.get(body)
        if other is None or not during[k]:
            return position, q
        noise = position - circle.position_enu_m[k, body]
        return circle.position_enu_m[k, other] + noise, q

    capture, told = watch(circle, spoil, drop_outs=False)
    wrong = [t for t in told if t[1] in (1, 2) and begin_s <= t[0] < begin_s + duration_s]
    assert not any(t[2] for t in wrong)
    assert {t[4] for t in wrong} <= {"jump", "exchanged"}
    assert sum(t[4] == "exchanged" for t in wrong) > 0.9 * len(wrong)
    if np.isinf(duration_s):
        assert "drone_1" in capture.filters["drone_2"].detail
        assert "each other's places" in capture.filters["drone_1"].detail
        assert capture.filters["drone_1"].doubt(circle.time_s[-1] + LATENCY_S)
    else:
        after = [t for t in told if t[0] >= begin_s + duration_s + 0.05]
        assert all(t[2] for t in after)


def test_a_body_is_doubted_within_a_quarter_of_a_second_and_not_for_an_outlier(circle):
    begin_s, during = from_(circle)
    first = int(np.argmax(during))
    for many, doubted in ((3, False), (30, True)):

        def spoil(k, body, position, q, many=many):
            wrong = body == DRONE and first <= k < first + many
            return (position + [0.0, 0.5, 0.0], q) if wrong else (position, q)

        flight = part_of(circle, slice(first + many))
        capture, _ = watch(flight, spoil, drop_outs=False)
        doubt = capture.filters["drone_2"].doubt(begin_s + many / RATE_HZ + LATENCY_S)
        assert bool(doubt) == doubted and (not doubted or "a jump of 0.5" in doubt)


def test_a_flight_without_a_fault_is_believed_with_noise_and_drop_outs(whole):
    _, told = watch(whole)
    assert all(t[2] for t in told) and len(told) > 10000


# ---------- On the ground


def stand(capture, times, move=lambda p, q: (p, q), level=None):
    """Bodies on the ground, as the capture's world has them; the last refusals."""
    level = np.array([1.0, 0.0, 0.0, 0.0]) if level is None else level
    places = {"load": (0, 0, 0.05), "drone_1": (1.4, 0, 0.24), "drone_2": (-0.7, 1.2, 0.24),
              "drone_3": (-0.7, -1.2, 0.24)}  # fmt: skip
    random = np.random.default_rng(2)
    for time_s in times:
        for body, place in places.items():
            if body != "load":
                capture.on_attitude(time_s, body, np.array([1.0, 0.0, 0.0, 0.0]))
            seen = move(np.array(place) + 5e-4 * random.standard_normal(3), level)
            capture.take(time_s, body, Sample(time_s, *seen))
    return {body: its.reason for body, its in capture.filters.items()}


BODIES = ["load", "drone_1", "drone_2", "drone_3"]
Y_UP = from_rotation_vector(np.array([-np.pi / 2, 0.0, 0.0]))
Z_DOWN = from_rotation_vector(np.array([np.pi, 0.0, 0.0]))


def in_axes(turn):
    from musls_description.numerics.rotations import rotate

    return lambda p, q: (rotate(turn, p), product(turn, q))


def test_axes_that_are_mixed_up_are_named_before_arming():
    times = np.arange(0.0, 1.0, 0.01)
    assert set(stand(CaptureFilter(BODIES, MocapLimits()), times).values()) == {""}
    for turn in (Y_UP, Z_DOWN):
        capture = CaptureFilter(BODIES, MocapLimits())
        found = stand(capture, times, in_axes(turn))
        assert [found[drone] for drone in BODIES[1:]] == ["axes"] * 3
        assert "z up" in capture.filters["drone_1"].detail
        assert capture.filters["drone_1"].used == 0
    # Rigid bodies that were made in the turned world are level in it: their places tell.
    capture = CaptureFilter(BODIES, MocapLimits())
    found = stand(capture, times, lambda p, q: (in_axes(Y_UP)(p, q)[0], q))
    assert "axes" in found.values()


def test_a_body_that_was_carried_away_is_believed_when_it_has_rested_and_repeats_may_stand():
    capture = CaptureFilter(BODIES, MocapLimits())
    place, q = np.array([1.0, 0.0, 0.24]), np.array([1.0, 0.0, 0.0, 0.0])
    for time_s in np.arange(0.0, 1.0, 0.01):
        assert capture.take(time_s, "drone_1", Sample(time_s, place, q))  # equal bits: a simulator
    moved = place + [2.0, 0.0, 0.0]
    used = [capture.take(t, "drone_1", Sample(t, moved, q)) for t in np.arange(2.0, 3.0, 0.01)]
    assert not any(used[:50]) and all(used[52:])
    assert capture.filters["drone_1"].resets == 1


def test_a_drone_is_not_believed_farther_from_its_load_than_its_cable_reaches(circle):
    """A pose that creeps away is smooth; the cable says that it is wrong."""
    begin_s, during = from_(circle)
    first = int(np.argmax(during))

    def spoil(k, body, position, q):
        outwards = position - circle.position_enu_m[k, 0]
        creeps_m = 0.2 * max(k - first, 0) / RATE_HZ if body == DRONE else 0.0
        return position + creeps_m * outwards / np.linalg.norm(outwards), q

    capture, told = watch(circle, spoil, drop_outs=False)
    used = [t for t in told if t[1] == DRONE and t[0] >= begin_s and t[2]]
    assert max(t[3] for t in used) < 0.25
    assert capture.filters["drone_2"].dropped.keys() == {"beyond its cable"}
    assert not capture.filters["load"].dropped and not capture.filters["drone_1"].dropped
