"""The payload controller on its ideal plant: exactness, convergence, allocation invariants."""

import numpy as np
import pytest
from ideal_cables import IdealCables

from musls_control.controllers.nmpc.controller import DisturbanceObserver
from musls_control.controllers.payload.allocation import givable_of, share_out, shares_of
from musls_control.controllers.payload.cable_law import CABLE, LAYOUT, payload_step
from musls_control.controllers.payload.load_law import LOAD, attitude_reference, demand, gyroscopic
from musls_control.controllers.payload.observer import observe
from musls_control.estimate import MOTION
from musls_description.numerics.arrays import grasp_matrix
from musls_description.numerics.rotations import from_roll_pitch_yaw, matrix_to_body

G = 9.81
NUMBERS = [1, 2, 3, 4, 6, 12]
FULL, REFERENCE = np.ones(3), np.array([1.0, 0.0, 0.0])


class Flight:
    """A load on n cables of unequal length below unequal drones, and its controller."""

    def __init__(self, n, ahead=FULL, integral=0.0):
        rng = np.random.default_rng(n)
        azimuth = 2.0 * np.pi * np.arange(n) / n
        height = 0.0 if n == 1 else 0.1
        radius = 0.0 if n == 1 else 0.4
        self.arms = np.column_stack(
            [radius * np.cos(azimuth), radius * np.sin(azimuth), np.full(n, height)]
        )
        self.mass, self.inertia = (
            1.5,
            np.array([[0.05, 0.003, 0], [0.003, 0.06, 0.002], [0, 0.002, 0.09]]),
        )
        drones, lengths = rng.uniform(1.0, 1.6, n), rng.uniform(0.7, 1.3, n)
        self.plant = IdealCables(self.mass, self.inertia, self.arms, drones, lengths, G)
        spread = self.arms * [1.0, 1.0, 0.0] + [0.0, 0.0, 1.0]
        self.up = spread / np.linalg.norm(spread, axis=1, keepdims=True)
        self.shares = shares_of(self.arms, self.up * self.mass * G / n / self.up[:, 2:])
        load, cables = np.zeros(1, LOAD), np.zeros(n, CABLE)
        load["mass"], load["gravity"], load["period"] = self.mass, G, 0.005
        load["inertia"], load["inverse_inertia"] = self.inertia, np.linalg.inv(self.inertia)
        load["givable"] = givable_of(self.arms, self.inertia)
        load["reach"], load["integral_reach"], load["integral_turn"] = 50, 2, 20
        load["position_gains"] = [2, 2, 4], [3, 3, 4], [integral] * 3
        load["attitude_gains"] = [16, 16, 6], [8, 8, 5], [integral] * 3
        load["feed_reference"], load["feed_position"], load["feed_attitude"] = ahead
        cables["attachment"], cables["drone_mass"] = self.arms, drones
        cables["direction_gain"], cables["rate_gain"] = 36.0, 12.0
        cables["most_across"] = np.inf
        arrays = {"load": load, "cables": cables, "shares": self.shares}
        self.memory, self.law = LAYOUT.build(arrays)
        self.load, self.cables = self.law.load, self.law.cables

    def force(self, state, reference):
        bodies = np.ascontiguousarray(state).view(MOTION).reshape(-1)
        present, tilt = parts(reference)
        payload_step(self.memory.ctypes.data, bodies, present, tilt, present)
        return self.law.commands["force"].copy()

    def start(self, shift=0.0):
        first = smooth(0.0)
        return self.plant.place(first[0, :3] + shift, [1.0, 0.0, 0.0, 0.0], -self.up)

    def fly(self, duration_s, state, reference, push=0.0):
        """Errors of the load's position over time; a push acts on the drones [N]."""
        errors = []

        def control(time_s, state):
            return self.force(state, reference(time_s)) + push

        for k in range(round(duration_s / 0.005)):
            time_s = 0.005 * k
            errors.append(np.linalg.norm(state[0, :3] - reference(time_s)[0, :3]))
            state = self.plant.step(state, time_s, 0.005, control)
        return np.array(errors), state


def parts(reference):
    """Derivatives of position and yaw, (5, 4), and of roll and pitch, (5, 2)."""
    tilt = reference[:, 4:] if reference.shape[1] == 6 else np.zeros((5, 2))
    return np.ascontiguousarray(reference[:, :4]), np.ascontiguousarray(tilt)


AMPLITUDE = np.array([1.0, 1.0, 0.5, 0.6, 0.2, 0.15])
RATE = np.array([1.0, 1.3, 0.7, 0.5, 0.9, 1.1])
PHASE = np.array([0.0, 0.5, 1.0, 0.3, 0.2, 0.7])


def smooth(time_s, columns=6):
    """A reference with all derivatives; roll and pitch of the load too."""
    order = np.arange(5)[:, None]
    values = AMPLITUDE * RATE**order * np.sin(RATE * time_s + PHASE + order * np.pi / 2.0)
    return np.ascontiguousarray(values[:, :columns])


def slowly(time_s):
    """A gentle motion for loads that not all directions of rotation are controlled of."""
    reference = smooth(0.5 * time_s, 4) * 0.5 ** np.arange(5)[:, None]
    reference[:, 3] = 0.0  # as of `level`
    return reference


def level(time_s):
    """The smooth motion of a load that does not turn."""
    return np.ascontiguousarray(np.hstack([smooth(time_s, 3), np.zeros((5, 3))]))


def rest(time_s):
    reference = np.zeros((5, 4))
    reference[0, 2] = 1.0
    return reference


# ---------- Allocation


@pytest.mark.parametrize("n", NUMBERS)
def test_cable_forces_add_up_to_the_wrench(n):
    """Force always; moment in all directions that the attachments can turn the load about."""
    rng = np.random.default_rng(5)
    arms, preferred = rng.normal(size=(n, 3)), rng.normal(size=(n, 3)) + [0, 0, 5.0]
    wrench, forces = rng.normal(size=6) * 3.0, np.empty((n, 3))
    share_out(shares_of(arms, preferred), wrench, 0, forces)
    found = grasp_matrix(arms) @ forces.ravel()
    assert found[:3] == pytest.approx(wrench[:3], abs=1e-12)
    missing = wrench[3:] - found[3:]
    if n >= 3:
        assert missing == pytest.approx(np.zeros(3), abs=1e-12)
    elif n == 2:  # nothing turns the load about the line through both attachments
        line = (arms[0] - arms[1]) / np.linalg.norm(arms[0] - arms[1])
        about_line = np.outer(line, line) @ (wrench[3:] - np.cross(arms[0], wrench[:3]))
        assert missing == pytest.approx(about_line, abs=1e-12)


@pytest.mark.parametrize("n", [3, 4, 6, 12])
def test_without_preference_the_forces_have_the_least_norm(n):
    rng = np.random.default_rng(6)
    arms, wrench, forces = rng.normal(size=(n, 3)), rng.normal(size=6), np.empty((n, 3))
    share_out(shares_of(arms), wrench, 0, forces)
    assert forces.ravel() == pytest.approx(np.linalg.pinv(grasp_matrix(arms)) @ wrench, abs=1e-12)


@pytest.mark.parametrize("n", NUMBERS)
def test_preferred_forces_are_kept_for_their_own_wrench(n):
    rng = np.random.default_rng(7)
    arms, preferred = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    forces = np.empty((n, 3))
    share_out(shares_of(arms, preferred), grasp_matrix(arms) @ preferred.ravel(), 0, forces)
    assert forces == pytest.approx(preferred, abs=1e-12)


# ---------- Reference


def test_body_rates_of_euler_angles_are_the_derivatives_of_the_attitude():
    """R' = R hat(W) and its derivatives, against differences of the rotation matrix."""

    def at(time_s):
        load = np.zeros(1, LOAD)[0]
        attitude_reference(load, *parts(smooth(time_s)))
        return load["wanted_rotation"], load["wanted_rates"]

    attitude, rate = at(0.7)
    yaw, roll, pitch = smooth(0.7)[0, 3:]
    expected = matrix_to_body(from_roll_pitch_yaw(np.array([roll, pitch, yaw]))).T
    assert attitude == pytest.approx(expected, abs=1e-14)
    h = 1e-5
    before, after = at(0.7 - h), at(0.7 + h)
    change = attitude.T @ (after[0] - before[0]) / (2.0 * h)
    assert rate[0] == pytest.approx([change[2, 1], change[0, 2], change[1, 0]], abs=1e-8)
    assert rate[1:] == pytest.approx((after[1][:3] - before[1][:3]) / (2.0 * h), abs=1e-7)


def test_yaw_alone_is_the_same_as_with_next_to_no_tilt():
    yaw, almost = np.zeros(1, LOAD)[0], np.zeros(1, LOAD)[0]
    derivatives = smooth(0.4, 4)
    attitude_reference(yaw, derivatives, np.zeros((5, 2)))
    attitude_reference(almost, derivatives, np.full((5, 2), 1e-300))
    assert yaw["wanted_rotation"] == pytest.approx(almost["wanted_rotation"], abs=1e-15)
    assert yaw["wanted_rates"] == pytest.approx(almost["wanted_rates"], abs=1e-14)


# ---------- Law


@pytest.mark.parametrize("n", NUMBERS)
def test_at_rest_the_drones_carry_the_load_and_nothing_moves(n):
    flight = Flight(n)
    level = [1.0, 0.0, 0.0, 0.0]
    flight.force(flight.plant.place([0.0, 0.0, 1.0], level, -flight.up), rest(0.0))
    pulls = flight.cables["force"][:, 0]
    directions = -pulls / np.linalg.norm(pulls, axis=1, keepdims=True)
    state = flight.plant.place([0.0, 0.0, 1.0], level, directions)
    force = flight.force(state, rest(0.0))
    rate, tension = flight.plant.rate(state, force)
    assert rate[:, 3:6] == pytest.approx(np.zeros((1 + n, 3)), abs=1e-12)
    assert rate[0, 10:13] == pytest.approx(np.zeros(3), abs=1e-11)
    assert tension == pytest.approx(np.linalg.norm(flight.cables["along"][:, 0], axis=1), rel=1e-12)


@pytest.mark.parametrize("n", NUMBERS)
def test_the_predicted_acceleration_is_that_of_the_plant(n):
    """In any state: the load moves as the parts of the wanted forces along the cables make it."""
    flight, rng = Flight(n), np.random.default_rng(11)
    tilted = flight.up + 0.1 * rng.normal(size=(n, 3))
    tilted /= np.linalg.norm(tilted, axis=1, keepdims=True)
    turned = from_roll_pitch_yaw(np.array([0.1, -0.2, 0.4]))
    state = flight.plant.place([0.1, 0.0, 1.0], turned, -tilted)
    state[0, 3:6], state[0, 10:13] = rng.normal(size=3) * 0.3, rng.normal(size=3) * 0.5
    gaps = state[0, :3] + flight.arms @ matrix_to_body(turned) - state[1:, :3]
    along = gaps / np.linalg.norm(gaps, axis=1, keepdims=True)
    speeds = state[0, 3:6] + np.cross(state[0, 10:13], flight.arms) @ matrix_to_body(turned)
    across = 0.3 * rng.normal(size=(n, 3))
    across -= np.sum(across * along, axis=1, keepdims=True) * along
    state[1:, 3:6] = speeds + across
    rate, _ = flight.plant.rate(state, flight.force(state, smooth(0.3)))
    pulls = flight.cables["along"][:, 0]
    expected = pulls.sum(axis=0) / flight.mass - [0.0, 0.0, G]
    assert rate[0, 3:6] == pytest.approx(expected, abs=1e-9)
    w = state[0, 10:13]
    moment = np.cross(flight.arms, pulls @ matrix_to_body(turned).T).sum(axis=0)
    moment -= np.cross(w, flight.inertia @ w)
    assert rate[0, 10:13] == pytest.approx(np.linalg.solve(flight.inertia, moment), abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 12])  # of more than three, one speaks for all
def test_errors_vanish_exponentially_and_tracking_is_then_exact(n):
    """With everything fed forward: to rounding of the integration, not to a lag."""
    flight = Flight(n)
    errors, _ = flight.fly(12.5, flight.start(0.3), level if n >= 3 else slowly)
    assert errors[:20].max() > 0.4
    assert errors[-200:].max() < 1e-3
    sixth, twelfth = errors[1100:1300].max(), errors[2300:2500].max()
    slowest = 0.4 if n == 2 else 0.9  # the poles are -1 and -2; a bar also swings about itself
    assert twelfth < sixth * np.exp(-slowest * 6.0)


@pytest.mark.slow
def test_tracking_of_a_smooth_motion_is_exact():
    """Position and attitude to the rounding of the integration, once the start has died away.

    Second derivatives of cables' directions leave out that the load turns, since they would tumble
    one on long cables: of a load that rolls, pitches and yaws in metres and radians some 3 mm stay.
    """
    flight = Flight(3)
    errors, _ = flight.fly(20.0, flight.start(0.1), level)
    assert errors[-400:].max() < 1e-7
    errors, _ = flight.fly(20.0, flight.start(0.1), smooth)
    assert errors[-400:].max() < 4e-3


@pytest.mark.slow
def test_without_feed_forward_there_is_a_lag():
    """What the code of RotorTM leaves out makes the difference to the exact flight above."""
    errors, _ = Flight(3, np.zeros(3)).fly(8.0, Flight(3).start(), smooth)
    assert errors[-600:].max() > 1e-2


@pytest.mark.slow
def test_integrals_remove_what_a_constant_push_leaves():
    """Newtons on the drones that nobody knows of: an offset without, none with integrals."""
    push = np.tile([0.5, 0.0, -0.4], (3, 1))
    start = Flight(3).plant.place([0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0], -Flight(3).up)
    without, _ = Flight(3).fly(6.0, start, rest, push)
    with_them, _ = Flight(3, REFERENCE, integral=0.8).fly(20.0, start, rest, push)
    assert without[-1] > 0.05
    assert with_them[-1] < 5e-3


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_the_observer_finds_what_is_missing_and_shares_it_as_that_of_nmpc(n):
    """Bodies at rest although forces are counted on; `nmpc` finds the same by least squares."""
    flight, rng = Flight(n), np.random.default_rng(n)
    load, cables = flight.load[0], flight.cables
    load["observer_rate"], load["observes_drones"], load["observes"] = 3.0, 1.0, 1.0
    cables["direction"] = -flight.up
    missing = rng.normal(size=(1 + n, 3)) * 0.5
    bodies = np.zeros(1 + n, MOTION)
    for _ in range(600):  # of 5 ms: nine time constants
        load["seen"]["force"] = load["seen"]["missing"] - missing[0]
        cables["seen"]["force"] = cables["seen"]["missing"] - missing[1:]
        observe(load, cables, bodies)
    found = np.vstack([load["seen"]["missing"], cables["seen"]["missing"]])
    np.testing.assert_allclose(found, missing, atol=1e-3)
    other = object.__new__(DisturbanceObserver)
    other._mass_kg = np.r_[flight.mass, cables["drone_mass"]][:, None]
    other._weight_n = other._mass_kg * [0.0, 0.0, -G]
    other.missing_n = found
    shared = np.vstack([load["seen"]["disturbance"], cables["seen"]["disturbance"]])
    np.testing.assert_allclose(shared, other.disturbances_n(-flight.up), atol=1e-9)
    load["observes_drones"] = 0.0  # an incremental tracker measures what is missing of them
    cables["unmodelled"], cables["seen"]["missing"] = missing[1:], 0.0
    for _ in range(600):
        observe(load, cables, bodies)
    assert not cables["seen"]["disturbance"].any()
    np.testing.assert_allclose(load["seen"]["disturbance"], shared[0], atol=1e-3)


def test_drones_are_spared_together():
    """One weak drone of three: all horizontal parts shrink alike, heights stay, no moment."""
    flight = Flight(3, REFERENCE)
    state = flight.start()
    asked = rest(0.0)
    asked[2, :2] = 3.0, 1.0
    wanted = flight.force(state, asked)
    weight = flight.mass * G * np.array([0.0, 0.0, 1.0])
    resting = (flight.shares @ np.r_[weight, np.zeros(3), 1.0]).reshape(3, 3)
    flight.cables["resting"] = resting
    sizes = np.linalg.norm(wanted, axis=1)
    flight.cables["most_thrust"] = sizes * [0.98, 1.2, 1.2]
    flight.cables["steepest"] = 5.0
    found = flight.force(state, asked)
    assert np.linalg.norm(found, axis=1)[0] == pytest.approx(0.98 * sizes[0])
    np.testing.assert_allclose(found[:, 2], wanted[:, 2])
    share = (found - resting)[:, :2] / (wanted - resting)[:, :2]
    np.testing.assert_allclose(share, share[0, 0])
    assert 0.0 < share[0, 0] < 1.0
    assert flight.load["saturated"][0] == 1.0


def test_integrals_stop_at_their_limit_and_while_the_feedback_is_limited():
    flight = Flight(3, integral=1.0)
    flight.load["reach"] = 0.5, 0.5
    far = flight.plant.place([5.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0], -flight.up)
    for _ in range(50):
        flight.force(far, rest(0.0))
    assert (
        flight.load["position_integral"][0, 0] == 0.0
    )  # the feedback is limited: nothing is added up
    flight.load["reach"] = 50.0, 50.0
    for _ in range(1000):
        flight.force(far, rest(0.0))
    assert flight.load["position_integral"][0, 0] == pytest.approx(
        -2.0
    )  # gain 1: the largest acceleration


def test_feedback_asks_for_no_more_than_its_limit():
    flight = Flight(3)
    flight.load["reach"] = 0.5, 0.25
    far = flight.plant.place([5.0, -3.0, 9.0], [1.0, 0.0, 0.0, 0.0], -flight.up)
    flight.force(far, rest(0.0))
    total = flight.cables["force"][:, 0].sum(axis=0) / flight.mass - [0.0, 0.0, G]
    assert np.hypot(total[0], total[1]) == pytest.approx(0.5)
    assert total[2] == pytest.approx(-0.25)


def test_derivatives_of_the_gyroscopic_moment():
    """(J W' + W x J W) and its derivatives, against differences along W(t) = W + A t + ..."""
    inertia = np.array([[0.05, 0.003, 0], [0.003, 0.06, 0.002], [0, 0.002, 0.09]])
    w, alpha, second, third = np.random.default_rng(3).normal(size=(4, 3))

    def moment_at(t):
        rate = w + alpha * t + second * t**2 / 2 + third * t**3 / 6
        return inertia @ (alpha + second * t + third * t**2 / 2) + np.cross(rate, inertia @ rate)

    h = 1e-3
    low, now, high = moment_at(-h), moment_at(0.0), moment_at(h)
    expected = now, (high - low) / (2 * h), (high - 2 * now + low) / h**2
    for order, wanted in enumerate((alpha, second, third)):
        found = inertia @ wanted + gyroscopic(inertia, w, alpha, second, order)
        np.testing.assert_allclose(found, expected[order], atol=1e-5)


def test_each_derivative_of_the_demand_is_fed_by_the_error_one_derivative_on():
    """The integral's part in the second derivatives is the speed and the spin that are left."""
    load, gained = np.zeros(1, LOAD)[0], np.array([0.3, 0.4, 0.5])
    load["mass"], load["free"], load["feed_position"], load["feed_attitude"] = 2.0, 1.0, 1.0, 1.0
    load["givable"] = np.eye(3)
    load["position_gains"]["integral"] = load["attitude_gains"]["integral"] = gained
    names = "gap", "speed", "turn", "spin"
    for name, row in zip(names, np.arange(1.0, 13.0).reshape(4, 3), strict=True):
        load[name] = row
    for order, gap, turn in ((1, "gap", "turn"), (2, "speed", "spin")):
        force, wanted = demand(load, np.zeros((5, 4)), order)
        np.testing.assert_allclose(force, 2.0 * gained * load[gap])
        np.testing.assert_allclose(wanted, gained * load[turn])
