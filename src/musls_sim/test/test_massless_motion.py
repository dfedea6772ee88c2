"""Massless cables in motion, against closed forms: taut, slack, and the events between."""

import numpy as np
import pytest
from massless_rigs import (
    Dense,
    level,
    momenta,
    motion_now,
    pair,
    random_plant,
    run,
    system_of,
    triangle,
    triangle_hover,
)
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ellipk

from musls_sim.plants.interface import PlantInputs

M, ML, L, G = 0.25, 0.07, 0.5, 9.81
HOVER = (M + ML) * G
G_EFF = HOVER / M
"""Gravity that acts on the load seen from the drone, which holds its thrust."""


def relative(plant):
    """Load seen from the drone: position and velocity."""
    load, drone = plant.records.bodies["state"][:2]
    parts = [load[field] - drone[field] for field in ("position", "velocity")]
    return np.concatenate(parts)


def crossings(time_s, value, rate):
    """Times at which a signal passes zero: cubic through values and rates of two samples."""
    found = []
    for i in np.flatnonzero(value[:-1] * value[1:] < 0.0):
        h, (a, b), (p, q) = (
            time_s[1] - time_s[0],
            value[i : i + 2],
            rate[i : i + 2] * (time_s[1] - time_s[0]),
        )

        def cubic(s, a=a, b=b, p=p, q=q):
            return a + s * (p + s * (3 * (b - a) - 2 * p - q + s * (p + q - 2 * (b - a))))

        found.append(time_s[i] + h * brentq(cubic, 0.0, 1.0, xtol=1e-14))
    return np.array(found)


def swing(v0, duration_s, **options):
    """A hanging pair whose load gets a speed beside the drone's; centre of mass at rest."""
    share = np.array([M, -ML]) / (M + ML) * v0
    velocities = np.outer(share, [1.0, 0.0, 0.0])
    plant = level(pair(), [[0, 0, 0], [0, 0, L]], velocities, **options)
    return plant, run(plant, HOVER, duration_s, relative)


def times(plant, seen):
    return plant.period_s * np.arange(1, len(seen) + 1)


# ---------- Taut


def test_a_triangle_hovers_on_the_tensions_of_the_least_norm():
    positions, tension, thrust = triangle_hover()
    np.testing.assert_allclose(tension, [0.909355, 0.908470, 0.909355], atol=5e-7)
    plant = level(triangle(), positions)
    run(plant, thrust, 1.0)
    assert np.abs(plant.state.position_enu_m - positions).max() < 1e-12
    np.testing.assert_allclose(plant.state.tension_n[:, 0], tension, rtol=1e-12)
    assert plant.happened == []


def test_a_free_pivot_swings_with_the_period_of_the_ideal_pendulum():
    height = L * G_EFF * (1.0 - np.cos(np.radians(60.0)))
    plant, seen = swing(np.sqrt(2.0 * height), 6.0)
    period = 4.0 * np.sqrt(L / G_EFF) * ellipk(np.sin(np.radians(30.0)) ** 2)
    assert period == pytest.approx(1.345547, abs=1e-6)
    passes = crossings(times(plant, seen), seen[:, 0], seen[:, 3])
    np.testing.assert_allclose(np.diff(passes), period / 2.0, atol=2e-8)
    load, drone = plant.records.bodies["state"]["position"]
    centre = (ML * load + M * drone) / (M + ML)
    assert np.abs(centre - [0.0, 0.0, L * M / (M + ML)]).max() < 1e-12


@pytest.mark.parametrize("mode", ["translation", "yaw"])
def test_small_swings_of_a_triangle_have_the_frequencies_of_the_linear_theory(mode):
    positions, _, thrust = triangle_hover()
    plant = level(triangle(), positions)
    small = 1e-4
    if mode == "yaw":
        radius = 0.30825
        plant.records.bodies["state"]["omega"][0, 2] = small  # and the drones the other way round
        tangent = np.cross([0.0, 0.0, 1.0], positions[1:] / radius)
        plant.records.bodies["state"]["velocity"][1:] = (
            -small * 0.01245978846 / (0.75 * radius) * tangent
        )
        expected = np.sqrt(0.278 * 9.81 / 3.0 * (3.0 * radius**2 / 0.01245978846 + 4.0))
    else:
        plant.records.bodies["state"]["velocity"][0, 1] = small  # y: the axis of symmetry
        plant.records.bodies["state"]["velocity"][1:, 1] = -small * 0.278 / 0.75
        expected = np.sqrt(9.81 * (1.0 + 0.278 / 0.75))
    plant.forget_inputs()

    def look(p):
        y = p.records.bodies["state"]
        if mode == "yaw":
            return 2.0 * y["attitude"][0, 3], y["omega"][0, 2]
        return [y[at][0, 1] - y[at][1:, 1].mean() for at in ("position", "velocity")]

    seen = run(plant, thrust, 6.0, look)
    passes = crossings(times(plant, seen), seen[:, 0], seen[:, 1])
    assert np.pi / np.diff(passes).mean() == pytest.approx(expected, rel=6e-4)


def test_a_spinning_dumbbell_in_free_fall_keeps_its_tension_and_momenta():
    rate = 6.0
    velocities = np.array([[rate * L * M, 0, 2.0], [-rate * L * ML, 0, 2.0]]) / [[M + ML], [M + ML]]
    velocities[:, 2] = 2.0
    plant = level(pair(), [[0, 0, 0], [0, 0, L]], velocities)
    before = momenta(plant)
    run(plant, 0.0, 1.0)
    assert plant.state.tension_n[0, 0] == pytest.approx(M * ML * L * rate**2 / (M + ML), rel=1e-8)
    total = M + ML
    then = momenta(plant, about=[0.0, 0.0, L * M / total + 2.0 - 0.5 * 9.81])
    np.testing.assert_allclose(then[0], before[0] - [0, 0, total * 9.81], atol=1e-12)
    spin = M * ML / total * L**2 * rate
    np.testing.assert_allclose(then[1], [0.0, -spin, 0.0], atol=1e-10)


def test_a_dumbbell_that_falls_without_spin_keeps_its_length():
    plant = level(pair(), [[0, 0, 0], [0, 0, L]])
    run(plant, 0.0, 2.0)
    assert abs(plant.records.cables[0]["gap"]) < 1e-12
    assert abs(plant.state.tension_n[0, 0]) < 1e-11


@pytest.mark.parametrize("step_s", [0.004, 0.002])
def test_the_error_of_smooth_motion_falls_with_the_fourth_power_of_the_step(step_s):
    def end(step):
        return swing(np.sqrt(1.5 * G_EFF * L), 2.0, physics_step_s=step)[1][-1]

    exact = end(0.00025)
    coarse, fine = (np.abs(end(s) - exact).max() for s in (step_s, step_s / 2.0))
    assert 12.0 < coarse / fine < 20.0


# ---------- Slack and taut again


def string_case(v0):
    """Times of slackening and re-tightening, relative speed along the string there."""
    cosine = (2.0 * G_EFF * L - v0**2) / (3.0 * G_EFF * L)
    angle = np.arccos(cosine)

    def rate(a):
        return np.sqrt(v0**2 - 2.0 * G_EFF * L * (1.0 - np.cos(a))) / L

    slack_s = quad(lambda a: 1.0 / rate(a), 0.0, angle, epsabs=1e-13, epsrel=1e-13)[0]
    place = L * np.array([np.sin(angle), -np.cos(angle)])
    velocity = L * rate(angle) * np.array([np.cos(angle), np.sin(angle)])
    fall = np.array([0.0, -G_EFF])

    def gap(t):
        return np.linalg.norm(place + velocity * t + 0.5 * fall * t**2) - L

    flight = brentq(gap, 0.05, 3.0, xtol=1e-14)
    then = place + velocity * flight + 0.5 * fall * flight**2
    radial = (velocity + fall * flight) @ then / L
    return slack_s, slack_s + flight, radial


@pytest.mark.parametrize("share", [2.5, 3.5, 4.7])
def test_a_string_that_swings_too_high_goes_slack_and_snaps_taut_again(share):
    """Section 8, F of the reference: the guard on the length alone never sees the first event."""
    v0 = np.sqrt(share * G_EFF * L)
    slack_s, taut_s, radial = string_case(v0)
    plant, _ = swing(v0, taut_s + 0.02)
    told = plant.happened[:2]
    assert [e.kind for e in told] == ["cable_slack", "cable_taut"]
    assert told[0].time_s == pytest.approx(slack_s, abs=1e-7)
    assert told[1].time_s == pytest.approx(taut_s, abs=1e-7)
    loss = 0.5 * M * ML / (M + ML) * radial**2
    assert plant.records.system[0]["impact_loss"] == pytest.approx(loss, rel=1e-6)
    assert plant.taut[0] and abs(np.linalg.norm(relative(plant)[:3]) - L) < 1e-14


@pytest.mark.parametrize(("share", "slackens"), [(1.999, 0), (2.001, 1), (4.999, 1), (5.001, 0)])
def test_a_string_stays_taut_below_and_above_the_limits_of_the_theory(share, slackens):
    plant, _ = swing(np.sqrt(share * G_EFF * L), 1.0)
    assert ("cable_slack" in [e.kind for e in plant.happened]) == bool(slackens)


def test_event_times_are_the_same_for_other_steps():
    found = []
    for step in (0.004, 0.001, 0.0002):
        plant, _ = swing(np.sqrt(3.5 * G_EFF * L), 1.2, physics_step_s=step)
        found.append([e.time_s for e in plant.happened[:2]])
    np.testing.assert_allclose(found[0], found[2], atol=3e-8)
    np.testing.assert_allclose(found[1], found[2], atol=1e-9)


def test_a_drone_that_pushes_its_cable_slackens_it_at_once():
    plant = level(pair(), [[0, 0, 0], [0, 0, L]])
    plant.records.bodies["state"]["attitude"][1] = [0.0, 1.0, 0.0, 0.0]  # upside down
    run(plant, 4.0, plant.period_s)
    assert [(e.kind, e.time_s) for e in plant.happened] == [("cable_slack", 0.0)]
    assert plant.state.tension_n[0, 0] == 0.0
    acceleration = plant.state.acceleration_enu_m_s2[:, 2]
    np.testing.assert_allclose(acceleration, [-G, -G - 4.0 / M], rtol=1e-12)


@pytest.mark.parametrize("beyond_m", [1e-3, 1e-6, 1e-9, -1e-9, -1e-6])
def test_a_graze_jerks_only_where_the_length_is_reached(beyond_m):
    """The load is thrown up from below its drone; at the top of its way the cable is l + beyond."""
    top_s = 0.0503
    height = L + beyond_m - 0.5 * G_EFF * top_s**2
    speed = np.outer(np.array([M, -ML]) / (M + ML), [0.0, 0.0, G_EFF * top_s])
    plant = level(pair(), [[0, 0, height], [0, 0, 0]], speed)
    run(plant, HOVER, 0.2)
    if beyond_m < 0.0:
        assert plant.happened == []
        return
    hit_s = top_s - np.sqrt(2.0 * beyond_m / G_EFF)
    first = plant.happened[0]
    assert first.kind == "cable_taut" and first.time_s == pytest.approx(hit_s, abs=1e-9)
    loss = 0.5 * M * ML / (M + ML) * 2.0 * G_EFF * beyond_m
    assert plant.records.system[0]["impact_loss"] == pytest.approx(loss, rel=1e-4)
    assert plant.happened[1].kind == "cable_slack"


def test_no_time_is_lost_at_an_event():
    """Two bodies fly apart, jerk, and go on together: positions are the closed form's."""
    plant = level(pair(), [[0, 0, 0], [0, 0, 0.3]], [[0, 0, 0], [0, 0, 1.0]])
    run(plant, 0.0, 0.3)
    assert plant.happened[0].time_s == pytest.approx(0.2, abs=1e-9)
    common = M / (M + ML)
    fall = -0.5 * G * 0.3**2
    expected = [common * 0.1 + fall, 0.3 + 0.2 + common * 0.1 + fall]
    np.testing.assert_allclose(plant.state.position_enu_m[:, 2], expected, atol=1e-10)
    velocity = common - G * 0.3
    np.testing.assert_allclose(plant.state.velocity_enu_m_s[:, 2], velocity, atol=1e-9)


def test_cables_that_bounce_come_to_rest_taut():
    plant = level(pair(), [[0, 0, 0], [0, 0, 0.4]], [[0, 0, 0], [0, 0, 1.0]], restitution=0.5)
    run(plant, HOVER, 3.0)
    first, last = plant.happened[0], plant.happened[-1]
    assert first.kind == "cable_taut" and last.kind == "cable_taut" and plant.taut[0]
    assert 3 < len(plant.happened) < 60


# ---------- Several cables


BOX = np.array([[0.3, -0.3], [0.3, 0.3], [-0.3, 0.3], [-0.3, -0.3]])


def box(order=(0, 1, 2, 3), slack=(0,), speed=1.0):
    """A box on four vertical cables, those in `slack` 1 cm short of it with drones that rise."""
    anchors = np.column_stack([BOX, np.full(4, 0.2286)])[list(order)]
    system = system_of(
        [0.5] * 4, anchors, np.zeros((4, 3)), load_mass=0.3,
        inertia=np.diag([0.0145, 0.0145, 0.0186]), masses=[0.25] * 4,
        inertias=[np.diag([6.01e-4, 5.89e-4, 1.076e-3])] * 4,
    )  # fmt: skip
    low = np.array([0.01 if i in slack else 0.0 for i in order])
    positions = np.vstack([np.zeros(3), anchors + np.column_stack([0 * low, 0 * low, 0.5 - low])])
    velocities = np.zeros((5, 3))
    velocities[1:, 2] = [speed if i in slack else 0.0 for i in order]
    return level(system, positions, velocities)


def test_a_jerk_slackens_a_neighbour_whatever_the_numbering():
    seen = []
    for order in ((0, 1, 2, 3), (2, 0, 3, 1)):
        plant = box(order)
        run(plant, 0.25 * G + 0.3 * G / 4.0, 0.06)
        at = plant.happened[0].time_s
        told = {(e.kind, order[int(e.what[6]) - 1]) for e in plant.happened if e.time_s == at}
        seen.append((at, told, plant.state.position_enu_m[[0, *np.argsort(order) + 1]]))
    kinds = {kind: {k for name, k in seen[0][1] if name == kind} for kind, _ in seen[0][1]}
    assert kinds["cable_taut"] == {0}
    assert kinds["cable_slack"], "the corner that rises tilts the box: neighbours go slack"
    assert seen[0][1] == seen[1][1] and seen[0][0] == pytest.approx(seen[1][0], abs=1e-12)
    np.testing.assert_allclose(seen[0][2], seen[1][2], atol=1e-9)


def test_mirror_images_stay_mirror_images():
    plant = box(slack=(0, 1), speed=0.7)  # at y = -0.3 and 0.3
    run(plant, 0.25 * G + 0.3 * G / 4.0, 0.5)
    x = plant.state.position_enu_m
    assert {e.what[:7] for e in plant.happened} >= {"cable_1", "cable_2"}
    np.testing.assert_allclose(x[1] * [1, -1, 1], x[2], atol=1e-9)
    np.testing.assert_allclose(x[4] * [1, -1, 1], x[3], atol=1e-9)
    assert abs(x[0, 1]) < 1e-9


def test_jerks_have_their_closed_forms():
    # One cable off the centre of the load.
    inertia, arm, rate = np.diag([0.02, 0.03, 0.04]), np.array([0.2, 0.1, 0.05]), 0.8
    system = system_of(
        [0.5], [arm], [[0.0, 0.0, 0.0]], load_mass=0.7, inertia=inertia, masses=[0.25]
    )
    plant = level(system, [[0, 0, 0], arm + [0, 0, 0.5]], [[0, 0, 0], [0, 0, rate]])
    run(plant, 0.0, plant.period_s)
    lever = np.cross(arm, [0.0, 0.0, 1.0])
    impulse = rate / (1.0 / 0.25 + 1.0 / 0.7 + lever @ np.linalg.solve(inertia, lever))
    assert float(plant.happened[0].what.split()[2]) == pytest.approx(impulse, rel=1e-3)
    assert plant.records.system[0]["impact_loss"] == pytest.approx(0.5 * rate * impulse, rel=1e-12)

    # Vertical cables around the centre, the load falls: all go on together.
    plant = box(slack=())
    plant.records.bodies["state"]["velocity"][0, 2] = -1.0
    plant.forget_inputs()
    run(plant, 0.25 * G + 0.3 * G / 4.0, plant.period_s)
    expected = -0.3 / (0.3 + 4 * 0.25)
    np.testing.assert_allclose(plant.state.velocity_enu_m_s[:, 2], expected, rtol=1e-11)
    assert np.abs(plant.state.omega_body_rad_s[0]).max() < 1e-12


def test_drones_on_one_point_are_one_drone_of_their_mass_and_thrust():
    ends = []
    for n, mass in ((3, 0.25), (1, 0.75)):
        system = system_of(
            [0.6] * n, np.tile([0.1, 0.0, 0.05], (n, 1)), np.zeros((n, 3)), load_mass=0.4,
            inertia=np.diag([0.01, 0.02, 0.03]), masses=[mass] * n,
        )  # fmt: skip
        above = np.tile([0.1, 0.0, 0.65], (n, 1))
        velocities = np.vstack([[0.3, 0.2, 0.0], np.tile([-0.2, 0.0, 0.0], (n, 1))])
        plant = level(system, np.vstack([np.zeros(3), above]), velocities)
        run(plant, 1.15 * G * 3.0 / n, 1.0)
        load, drone = plant.records.bodies["state"][:2]
        ends.append([*(x for at in load.dtype.names for x in load[at]), *drone["position"]])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-10)


# ---------- Invariants


def test_lengths_do_not_drift_and_energy_is_the_work_within_a_minute():
    """Circling triangle, thrusts and moments held: work is thrust times velocity."""
    positions, _, thrust = triangle_hover()
    velocities = np.random.default_rng(2).normal(size=(4, 3)) * 0.3
    plant = level(triangle(), positions, velocities)
    gaps = plant.records.cables["gap"]
    worst = run(plant, thrust, 60.0, lambda p: np.abs(gaps)[p.taut].max(initial=0.0))
    assert worst.max() < 1e-10
    audit = plant.audit
    assert abs(audit.missing_j) < 1e-8 * max(audit.absolute_work_j, 1.0)


def test_a_slack_load_is_a_free_top():
    """Asymmetric body, slack cables: angular momentum and energy of the load keep, poles move."""
    plant = random_plant(np.random.default_rng(8), 3, slack=(0, 1, 2), still=True)
    plant.records.cables["length"] *= 3.0
    plant.records.bodies["state"]["omega"][0] = [0.4, 0.2, 5.0]
    plant.forget_inputs()

    def look(p):
        dense = Dense(p.system, motion_now(p))
        momentum = dense.inertia[0] @ dense.w[0]
        return [*momentum, dense.w[0] @ momentum, *p.records.bodies["state"]["omega"][0]]

    seen = run(plant, 0.0, 1.0, look)
    assert not plant.happened
    np.testing.assert_allclose(seen[:, :4], np.tile(seen[0, :4], (250, 1)), rtol=1e-6, atol=1e-7)
    assert np.ptp(seen[:, 4]) > 0.5


def test_momentum_changes_by_what_acts_from_outside():
    rng = np.random.default_rng(9)
    for n in (2, 5):
        plant = random_plant(rng, n)
        before = momenta(plant)
        mass = sum(p.mass_kg for p in (plant.system.load, *plant.system.drones))
        inputs = PlantInputs.zeros(plant.system)
        inputs.wrench_enu[:, 3:] = rng.normal(size=(1 + n, 3))
        for _ in range(50):
            plant.step(inputs)
        gain = momenta(plant)[0] - before[0]
        expected = 0.2 * (inputs.wrench_enu[:, 3:].sum(axis=0) - [0.0, 0.0, mass * 9.80665])
        np.testing.assert_allclose(gain, expected, atol=1e-10)
        assert plant.audit.missing_j == pytest.approx(0.0, abs=1e-5)
