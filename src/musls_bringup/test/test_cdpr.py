"""Case studies of Robotica 2024 (a platform below rods), as shipped scenarios."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import musls

G, MASS_KG = 9.81, 3.72
"""Of platform, rods and the four drivers."""


EXITS = [[0.4, 0.6], [1.0, 0.6], [0.4, 1.4], [1.0, 1.4]]


def moved(body):
    """Displacement since the start (T, 3)."""
    return body.position_enu_m - body.position_enu_m[0]


def test_case_1_the_platform_follows_the_exits_as_published():
    run = musls.fly(musls.load_scenario("cdpr_pick_and_place", {"mission.duration_s": 4.4}))
    load, exit_1 = run.body("load"), run.anchor(1)
    gap = np.abs(moved(load) - moved(exit_1)).max(axis=0)
    assert gap[:2] == pytest.approx([44.5e-3, 44.5e-3], rel=0.01)
    speed = np.abs(load.velocity_enu_m_s - exit_1.velocity_enu_m_s).max(axis=0)
    assert speed[:2] == pytest.approx([0.336, 0.336], rel=0.03)
    assert np.abs(load.orientation_wxyz[:, 1:]).max() < 0.5e-3  # half the angle
    # While it is lifted straight up, each exit holds a quarter: (m / 4) (g + 1.5 (1 - t)).
    lifted = (run.time_s > 0.3) & (run.time_s < 1.9)
    time_s = run.time_s[lifted]
    force = run.wrench(1).force_enu_n[lifted, 2] - 0.755 * (G + 1.5 * (1.0 - time_s))
    quarter = (0.7 / 4.0) * (G + 1.5 * (1.0 - time_s))
    assert force == pytest.approx(quarter, rel=0.01)


def beam_deviation_m(step_s=0.002):
    """Largest deflection of a clamped beam with a quarter of the platform at its moved end.

    Euler and Bernoulli with bending damping, by two cubic elements (0.05 % of ten), and the
    tension of the vertical motion; implicit midpoint rule.
    """
    length, ei, damping, density, load = 0.75, 1.74673, 0.0360655, 0.05 / 0.75, 0.5 / 4.0
    x = length / 2.0
    points, weights = np.polynomial.legendre.leggauss(4)
    s, w = 0.5 * (1.0 + points), 0.5 * x * weights  # along an element
    place = np.array([1 - 3 * s**2 + 2 * s**3, x * (s - 2 * s**2 + s**3),
                      3 * s**2 - 2 * s**3, x * (s**3 - s**2)])  # fmt: skip
    slope = np.array([6 * (s**2 - s), x * (1 - 4 * s + 3 * s**2),
                      6 * (s - s**2), x * (3 * s**2 - 2 * s)]) / x  # fmt: skip
    bend = np.array([12 * s - 6, x * (6 * s - 4), 6 - 12 * s, x * (6 * s - 2)]) / x**2
    k, m, per_g = np.zeros((3, 6, 6))
    for e in range(2):
        rows, carried = slice(2 * e, 2 * e + 4), load + density * (length - (e + s) * x)
        k[rows, rows] += (bend * w) @ bend.T
        m[rows, rows] += density * (place * w) @ place.T
        per_g[rows, rows] += (slope * w * carried) @ slope.T
    m[4, 4] += load
    pushed = (m @ [1, 0, 1, 0, 1, 0])[2:]
    k, m, per_g = k[2:, 2:], m[2:, 2:], per_g[2:, 2:]
    c, shape, rate, largest = damping * k, np.zeros(4), np.zeros(4), 0.0
    for time_s in np.arange(0.5, 4.4 / step_s) * step_s:
        across, up = 0.0, 1.5 * (1.0 - time_s if time_s < 2.0 else time_s - 5.0)
        if 2.0 <= time_s < 4.0:
            across = 3.0 * (1.0 - 2.0 * (time_s % 1.0))
            up = np.sqrt(3.0) * across * (1.0 if time_s < 3.0 else -1.0)
        stiff = ei * k + (G + up) * per_g
        force = -pushed * across - c @ rate - stiff @ (shape + 0.5 * step_s * rate)
        left = m + 0.5 * step_s * c + 0.25 * step_s**2 * stiff
        change = np.linalg.solve(left, step_s * force)
        shape, rate = shape + step_s * (rate + 0.5 * change), rate + change
        largest = max(largest, abs(shape[2]))
    return largest


@pytest.mark.parametrize(("clamp_factor", "links"), [(1, 5), (2, 10)])
def test_case_1_deviates_alike_along_every_heading_and_converges_to_a_beam(clamp_factor, links):
    """Four rods that move alike bend alike; with the second-order clamp as a linear beam does."""
    up_m, gaps = [0.0, 1.0, 1.8660254037844386, 1.0, 1.0], []
    for heading_rad in np.deg2rad([0.0, 30.0, 45.0, 90.0]):
        along = np.array([np.cos(heading_rad), np.sin(heading_rad)])
        path = np.column_stack([np.outer([0.0, 0.0, 0.5, 1.0, 1.0], along), up_m]).tolist()
        keys = {f"rig.anchors.anchor_{i}.position_enu_m": path for i in range(1, 5)}
        rods = {"system.cables.links": links, "system.cables.elastic.clamp_factor": clamp_factor}
        scenario = {"mission.duration_s": 4.4, **keys, **rods}
        run = musls.fly(musls.load_scenario("cdpr_pick_and_place", scenario))
        apart = moved(run.body("load")) - moved(run.anchor(1))
        gaps.append(np.abs(apart[:, :2] @ along).max())
    assert gaps == pytest.approx([gaps[0]] * 4, rel=2e-5)
    if clamp_factor == 2:  # 38.22 mm along each axis of the diagonal against 38.27 mm
        assert gaps[0] == pytest.approx(beam_deviation_m(), rel=3e-3)


def test_case_2a_the_whole_accelerates_by_thrust_over_mass():
    scenario = musls.load_scenario("cdpr_drone_fails", {"mission.duration_s": 3.4})
    with musls.Session(scenario) as session:
        state, t = session.state, session.plant.tables
        times, momentum, rods = [], [], []
        while not session.finished:
            session.advance(1)
            whole = 0.5 * state.velocity_enu_m_s[0] + 0.755 * state.anchor_motion[:, 3:6].sum(0)
            momentum.append(whole + t.nodes["mass"] @ t.nodes["velocity"])
            times.append(session.time_s)
            rods.append(state.tension_n[:, 0].copy())
    upward = np.diff([p[2] for p in momentum]) / 0.004 / MASS_KG
    times = np.array(times)[1:]
    before, after = (times > 0.6) & (times < 2.99), times > 3.02
    assert upward[before] == pytest.approx(40.0 / MASS_KG - G, abs=1e-6)
    assert upward[after] == pytest.approx(30.0 / MASS_KG - G, abs=1e-6)
    assert np.abs(np.array(momentum)[:, :2]).max() < 1e-4
    carried = np.array(rods)[1:][before]
    assert np.ptp(carried, axis=1).max() < 1e-6  # the four share alike until one fails


def test_case_2a_lifts_off_from_the_papers_ground_at_0_478_s():
    """Its ground is a spring and damper that also pulls; here as a force on the platform."""
    scenario = musls.load_scenario(
        "cdpr_drone_fails",
        {
            "mission.duration_s": 0.6,
            "start.load.position_enu_m": [0.7, 1.0, 10.1],
            **{
                f"system.anchors.{i}.position_enu_m": [x, y, 10.95]
                for i, (x, y) in enumerate(EXITS)
            },
        },
    )  # fmt: skip
    with musls.Session(scenario) as session:
        state, lowest = session.state, 0.0
        while session.time_s < 0.6:
            depth = 10.1 - state.position_enu_m[0, 2]
            if depth < 0.0 and session.time_s > 0.1:
                break
            lowest = max(lowest, depth)
            push = 1e3 * depth - 1e2 * state.velocity_enu_m_s[0, 2]
            session.inputs.wrench_enu[0, 5] = push if depth >= 0.0 else 0.0
            session.advance(1)
    assert session.time_s == pytest.approx(0.478, abs=0.005)
    assert lowest == pytest.approx(22.2e-3, rel=0.03)
    assert state.velocity_enu_m_s[0, 2] == pytest.approx(0.0485, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["cdpr_winches", "cdpr_strings"])
def test_case_3_reels_while_the_exits_move(system):
    scenario = musls.load_scenario("cdpr_reel", {"system": system, "mission.duration_s": 2.0})
    run = musls.fly(scenario)
    for k in range(1, 5):
        drive = scenario.rig.winches[f"winch_{k}"]
        cable = run.cable(k)
        fine = np.linspace(0.0, 2.0, 20001)
        rate = np.interp(fine, drive.time_s, drive.feed_m_s)
        out = np.concatenate([[0.0], np.cumsum(np.diff(fine) * (rate[1:] + rate[:-1]) / 2.0)])
        length = 0.75 + np.interp(cable.free_length_time_s, fine, out)
        assert cable.free_length_m == pytest.approx(length, abs=1e-6)
    # Nothing pulls sideways but the exits: the platform stays between the lengths of the cables.
    assert run.events == ()
    assert run.cable(1).tension_n.max() < 1e3


def test_case_1_with_strings_swings_as_a_pendulum():
    """Four parallel strings are a pendulum, th'' = -k ((g + az) sin th + a cos th), moved exits.

    k = (M + m / 2) / (M + m / 3) / L of a bar of the strings' mass; the reference has 0.18 m.
    """
    run = musls.fly(musls.load_scenario("cdpr_strings_pick_and_place", {"mission.duration_s": 4.4}))
    gap = moved(run.body("load")) - moved(run.anchor(1))
    k = (0.5 + 0.2 / 2.0) / (0.5 + 0.2 / 3.0) / 0.75

    def swing(time_s, state):
        if not 2.0 <= time_s < 4.0:
            across, up = 0.0, 1.5 * (1.0 - time_s if time_s < 2.0 else time_s - 5.0)
        else:
            across = 3.0 * (1.0 - 2.0 * (time_s % 1.0))
            up = np.sqrt(3.0) * across * (1.0 if time_s < 3.0 else -1.0)
        return [state[1], -k * ((G + up) * np.sin(state[0]) + across * np.cos(state[0]))]

    found = solve_ivp(
        swing, (0.0, 4.4), [0.0, 0.0], t_eval=run.time_s[run.time_s <= 4.4], max_step=2e-3
    )
    along = 0.75 * np.sin(found.y[0]) / np.sqrt(2.0)
    assert np.abs(along).max() == pytest.approx(0.185, abs=1e-3)
    for axis in range(2):
        assert gap[: len(along), axis] == pytest.approx(along, abs=0.015 * 0.185)


def test_case_2a_with_strings_the_failed_driver_falls_freely():
    """A string cannot push: -g until it is taut again; the whole as with rods."""
    scenario = musls.load_scenario("cdpr_strings_drone_fails", {"mission.duration_s": 3.4})
    with musls.Session(scenario) as session:
        state, t = session.state, session.plant.tables
        session.advance(775)  # 3.1 s
        rows = []
        for _ in range(51):
            drivers = state.anchor_motion[:, 3:6]
            whole = 0.5 * state.velocity_enu_m_s[0] + 0.755 * drivers.sum(0)
            whole = whole + t.nodes["mass"] @ t.nodes["velocity"]
            rows.append([drivers[0, 2], whole[2] / MASS_KG])
            session.advance(1)
    failed, upward = np.diff(rows, axis=0).T / 0.004
    assert failed == pytest.approx(-G, rel=1e-9)
    assert upward == pytest.approx(30.0 / MASS_KG - G, abs=1e-6)
