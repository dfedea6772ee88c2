"""Shipped scenarios with elastic cables, each against a closed form."""

import numpy as np
import pytest
from scipy.optimize import brentq

import musls

G, LOAD_KG, ROPE_KG, ROPE_M, EA_N = 9.80665, 1.66, 0.02, 2.42, 2.4e5


def flown(name, stage, periods):
    """Pull on the load, its position and velocity in the last periods of a stage, (T, 3) each."""
    with musls.Session(musls.load_scenario(name)) as session:
        state, rows = session.state, []
        while session.time_s < 90.0 and (session.stage == stage or not rows):
            session.advance(1)
            if session.stage != stage:
                continue
            pull = np.zeros(3)
            for i in range(3):
                nodes = session.plant.cable_nodes_enu_m(i)
                along = (nodes[1] - nodes[0]) / np.linalg.norm(nodes[1] - nodes[0])
                pull += state.tension_n[i, 0] * along
            rows.append([pull, state.position_enu_m[0].copy(), state.velocity_enu_m_s[0].copy()])
    return np.array(rows[-periods:]).transpose(1, 0, 2)


def times_of(run, name):
    """Times in a stage at which the cables' shapes were recorded."""
    stage = next(s for s in run.stages if s.name == name)
    times = run.cable(1).shape_time_s
    return times[(times >= stage.start_s) & (times < stage.end_s)]


def test_catenary_robot_hangs_in_a_catenary():
    """sinh(u) / u = sqrt(l^2 - v^2) / h, A = h / 2u: heights over the directrix, T = w height."""
    run = musls.fly(musls.load_scenario("catenary_robot", {"mission.duration_s": 2.0}))
    cable, weight_n_m = run.cable(1), 0.1 * 9.81
    shape = cable.shape_enu_m[-1]
    across, up = np.hypot(*(shape[-1] - shape[0])[:2]), shape[-1, 2] - shape[0, 2]
    u = brentq(lambda u: np.sinh(u) / u - np.sqrt(25.0 - up**2) / across, 0.1, 5.0)
    a = across / (2.0 * u)
    left = a * np.arctanh(up / 5.0) - across / 2.0
    heights = a * np.cosh(np.array([left, left + across]) / a)
    assert heights[0] - a == pytest.approx(1.327, abs=0.05)  # ends 4 m apart, about level
    assert shape[0, 2] - shape[:, 2].min() == pytest.approx(heights[0] - a, abs=2e-3)
    assert cable.tension_n[-1] == pytest.approx(weight_n_m * heights, rel=3e-3)


@pytest.mark.filterwarnings("ignore:a slow flight")
@pytest.mark.parametrize(("mass_kg", "until_s"), [(1e-3, 4.7), (1e-5, 0.6)])
def test_light_cables_leave_the_ground(mass_kg, until_s):
    """A damper that jumps in at the ground would leave their stages without a solution."""
    scenario = musls.load_scenario("circle_elastic", {"system.cables.mass_kg": mass_kg})
    with musls.Session(scenario) as session:
        while session.time_s < until_s:
            session.advance(10)
        lowest_m = min(session.plant.cable_nodes_enu_m(i)[:, 2].min() for i in range(3))
        assert session.state.position_enu_m[0, 2] == pytest.approx(0.0499, abs=1e-5)
    assert lowest_m > -5e-3


@pytest.mark.slow
def test_circle_elastic_pulls_the_load_inwards():
    """Over a round the pull is m v^2 / r inwards and m g up."""
    pull, place, velocity = flown("circle_elastic", "circle", round(2.0 * np.pi * 5.0 / 0.004))
    radius = np.hypot(place[:, 0], place[:, 1])
    inwards = -(pull[:, :2] * place[:, :2]).sum(axis=1) / radius
    assert radius.mean() == pytest.approx(1.5, abs=0.03)
    assert inwards.mean() == pytest.approx(LOAD_KG * 0.3**2 / radius.mean(), rel=0.05)
    change = LOAD_KG * (velocity[-1, 2] - velocity[0, 2]) / (0.004 * len(velocity))
    assert pull[:, 2].mean() == pytest.approx(LOAD_KG * G + change, rel=1e-3)


def test_shm_elastic_pulls_the_load_to_and_fro():
    """Pull and motion along y, both fitted at 2 rad/s over five rounds: force = -m w^2 y."""
    pull, place, _ = flown("shm_elastic", "shm", round(5.0 * np.pi / 0.004))
    wave = np.exp(2j * 0.004 * np.arange(len(pull)))
    y, force = (2.0 * np.mean(x[:, 1] * wave) for x in (place, pull))
    assert abs(y) > 0.6
    assert force / y == pytest.approx(-LOAD_KG * 4.0, rel=0.02)


@pytest.mark.slow
def test_engage_elastic_stretches_the_cables_by_their_tension():
    """Slack on the ground, then each cable is longer by mean tension times length / EA."""
    run = musls.fly(musls.load_scenario("engage_elastic"))
    times = times_of(run, "engage")
    for i in (1, 2, 3):
        cable = run.cable(i)
        tension = np.column_stack([np.interp(times, cable.time_s, t) for t in cable.tension_n.T])
        rows = np.searchsorted(cable.shape_time_s, times - 1e-6)
        shapes = (cable.shape_enu_m[k] for k in rows)
        length = np.array([np.linalg.norm(np.diff(s, axis=0), axis=1).sum() for s in shapes])
        hung = tension.min(axis=1) > 3.0
        assert hung.sum() > 50 and tension[:10].max() < 1.0
        longer = tension[hung].mean(axis=1) * ROPE_M / EA_N
        assert np.median((length[hung] - ROPE_M) / longer) == pytest.approx(1.0, rel=0.01)


def test_snap_and_break_parts_the_weak_line_at_its_force():
    """At 50 N to 1e-6; the segment held T^2 l / 2 EA less the damper's share; the rest hangs."""
    with musls.Session(musls.load_scenario("snap_and_break")) as session:
        state, engine, hanging = session.state, session.plant, []
        while session.time_s < 23.0:
            session.advance(1)
            if engine.breaks and session.time_s > 22.0:
                hanging.append(state.tension_n[0].copy())
        (broken,) = engine.breaks
    assert broken.tension_n == pytest.approx(50.0, rel=1e-6)
    held = 50.0**2 * ROPE_M / 15 / (2.0 * EA_N)
    assert 0.7 * held < broken.energy_j <= held
    # A line of a few grams, instead of a third of the load, at either end.
    assert np.abs(np.mean(hanging, axis=0)).max() < ROPE_KG * G
