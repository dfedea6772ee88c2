"""Planned control: its model against the massless system, plans that keep limits, flights."""

import sys

import numpy as np
import pytest
from scipy.spatial import Delaunay
from scipy.spatial.transform import Rotation

import musls
from musls_control.reference import LoadReference
from musls_description.system.obstacles import BoxObstacle, GateObstacle
from musls_description.system.system_files import load_system
from musls_sim.session.session import Session

ca = pytest.importorskip("casadi")

from musls_control.controllers.nmpc.controller import DisturbanceObserver  # noqa: E402
from musls_control.controllers.nmpc.ocp import (  # noqa: E402
    POSE,
    Planes,
    SlungModel,
    drone_motion,
    rate,
)

G = 9.80665
SYSTEM = load_system("agile_trio")
N = SYSTEM.n_drones
BODY = SlungModel(
    SYSTEM.load.mass_kg,
    np.array(SYSTEM.load.inertia_kg_m2),
    np.array(SYSTEM.load.cable_attachments_m),
    np.array([cable.length_m for cable in SYSTEM.cables]),
    np.zeros((N, 3)),
    np.array([drone.mass_kg for drone in SYSTEM.drones]),
    np.array([[0.0, 0.0, 0.0], [0.27, 0.225, 0.075]]),
    G,
)


def scenario(name="tilted_gate", **overrides):
    return musls.load_scenario(name, {"cable_model": "massless", **overrides})


def random_state(rng):
    """A state with unit quaternion and directions, and rates across the cables."""
    x = rng.normal(0.0, 0.5, POSE + 11 * N)
    x[3:7] = [1.0, *(0.3 * rng.normal(size=3))]
    x[3:7] /= np.linalg.norm(x[3:7])
    s = np.array([0.0, 0.0, -1.0]) + rng.normal(0.0, 0.4, (N, 3))
    s /= np.linalg.norm(s, axis=1, keepdims=True)
    r = np.cross(s, rng.normal(0.0, 1.0, (N, 3)))
    a = np.cross(s, rng.normal(0.0, 1.0, (N, 3)))
    x[POSE : POSE + 9 * N] = np.concatenate([s, r, a]).ravel()
    x[POSE + 9 * N : POSE + 10 * N] = rng.uniform(3.0, 8.0, N)
    return x


@pytest.fixture(scope="module")
def functions():
    x, u = ca.SX.sym("x", POSE + 11 * N), ca.SX.sym("u", 4 * N)
    change = rate(BODY, x, u)
    motion = [drone_motion(BODY, x, i) for i in range(N)]
    place, velocity, acceleration, force = (
        ca.horzcat(*(one[k] for one in motion)) for k in range(4)
    )
    along = [ca.jtimes(ca.vec(part), x, change) for part in (place, velocity)]
    out = [place, velocity, acceleration, force, *along, change]
    return ca.Function("all", [x, u], out)


def test_velocity_and_acceleration_of_drones_are_derivatives_along_the_model(functions):
    rng = np.random.default_rng(2)
    for _ in range(10):
        x, u = random_state(rng), rng.normal(size=4 * N)
        _, v, a, _, by_v, by_a, _ = (np.array(part) for part in functions(x, u))
        assert np.allclose(v.T.ravel(), by_v.ravel(), atol=1e-12)
        assert np.allclose(a.T.ravel(), by_a.ravel(), atol=1e-10)


def test_the_planned_thrusts_make_the_planned_motion_of_the_whole_system(functions):
    """The massless system with drones of its own, from `musls.symbolic`: tensions and load."""
    rng, whole = np.random.default_rng(3), musls.symbolic(SYSTEM, gravity_m_s2=G)
    for _ in range(5):
        x = random_state(rng)
        place, velocity, _, force, _, _, change = (
            np.array(p) for p in functions(x, np.zeros(4 * N))
        )
        state = [x[0:3], x[3:7], x[7:10], x[10:13]]
        thrust = np.zeros((N, 4))
        for i in range(N):
            z = force[:, i] / np.linalg.norm(force[:, i])
            q = np.array([1.0 + z[2], -z[1], z[0], 0.0])
            state += [place[:, i], q / np.linalg.norm(q), velocity[:, i], np.zeros(3)]
            thrust[i, 0] = np.linalg.norm(force[:, i])
        given = np.concatenate(state), thrust.ravel(), np.zeros(3)
        tension = np.array(whole.tensions(*given)).ravel()
        motion = np.array(whole.dynamics(*given)).ravel()
        assert np.allclose(tension, x[POSE + 9 * N : POSE + 10 * N], atol=1e-9)
        assert np.allclose(motion[:13], change[:13, 0], atol=1e-8)


def planned(move_m=(0.0, 0.0, 0.0), roll_rad=0.0, **limits):
    """Problem and solution of a plan from rest to a place and a roll, without obstacles."""
    given = {"kind": "nmpc", **limits}
    with Session(scenario(controller=given, **{"world.obstacles": []})) as session:
        controller, estimate = session.flying, session.estimate
        controller.start(0.0, estimate)
        derivatives, tilt = np.zeros((5, 4)), np.zeros((5, 2))
        derivatives[0, :3] = estimate.position_enu_m[0] + move_m
        tilt[0, 0] = roll_rad
        wanted = controller._wanted(LoadReference(derivatives, tilt))
        problem = controller.problem
        x, u = wanted.copy(), np.zeros((problem.nodes, problem.nu))
        measured = controller._measured(estimate)
        for _ in range(15):
            x[0, : len(measured)] = measured
            x, u, solved = problem.solve(x, u, wanted)
    assert solved
    return problem, x, u, wanted


def test_a_plan_keeps_the_dynamics_thrust_and_tilt():
    """A jump of 1 m in height asks for more than the drones have."""
    limits = {"thrust_share": 0.6, "largest_tilt_rad": 0.3}
    problem, x, u, wanted = planned((1.0, 0.0, 1.0), **limits)
    state = ca.SX.sym("x", problem.nx)
    inputs = ca.SX.sym("u", 4 * N)
    fine = ca.Function("f", [state, inputs], [rate(problem.body, state, inputs)])
    far = []
    for k in range(problem.nodes):  # forty Euler steps with their midpoint, another method
        y, h = x[k], (problem.times_s[k + 1] - problem.times_s[k]) / 40.0
        for _ in range(40):
            half = y + 0.5 * h * np.array(fine(y, u[k, : 4 * N])).ravel()
            y = y + h * np.array(fine(half, u[k, : 4 * N])).ravel()
        far.append(np.abs(y - x[k + 1]).max())
    assert max(far) < 0.01  # of steps of up to 0.16 s
    force = problem.drones(x)[1:-1, :, 3]
    size = np.linalg.norm(force, axis=2)
    most = 0.6 * SYSTEM.drones[0].max_thrust_n
    assert size.max() == pytest.approx(most, abs=0.02)
    assert np.arccos(force[..., 2] / size).max() < 0.3 + 1e-3
    assert np.linalg.norm(x[-1, :3] - wanted[-1, :3]) < 0.6
    mad = x.copy()
    mad[0, 7:13] = 1e6  # HPIPM answers with what is no number
    after, _, solved = problem.solve(mad, u, wanted)
    assert not solved and np.array_equal(after, mad)


def test_a_plan_keeps_tensions_and_the_tilt_of_the_load():
    """They bind where they are given, and are left where they are not."""
    for limited in (False, True):
        limits = {"least_tension_n": 3.0, "largest_tension_n": 6.0, "largest_load_tilt_rad": 0.3}
        _, x, *_ = planned((0.0, 0.0, -1.5), 0.8, **(limits if limited else {}))
        tension = x[1:, POSE + 9 * N : POSE + 10 * N]
        tilt = 2.0 * np.arccos(np.hypot(x[1:-1, 3], x[1:-1, 6])).max()
        if limited:
            assert tension.min() == pytest.approx(3.0, abs=0.02)
            assert tension.max() == pytest.approx(6.0, abs=0.02)
            assert tilt == pytest.approx(0.3, abs=0.03)  # softly
        else:
            assert tension.min() < 2.5 and tension.max() > 6.5 and tilt > 0.4


def test_planes_leave_a_solid_on_their_other_side():
    rng = np.random.default_rng(5)
    box = BoxObstacle(
        name="box", size_m=(0.4, 1.0, 0.7), position_enu_m=(0.2, 0.1, -0.3),
        orientation_wxyz=tuple(np.array([0.8, 0.2, -0.4, 0.4])),
    )  # fmt: skip
    corners = box.solids()[0]
    signs = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    corners = corners["position"] + (signs * corners["size"]) @ corners["rotation"].T
    planes = Planes([box], N, np.array([0.27, 0.225, 0.075]), 0.2, 0.05)
    load = rng.normal(0.0, 1.5, (50, 3)) + [3.0, 0.0, 0.0]
    drones, ends = (load[:, None] + rng.normal(0.0, 0.6, (50, N, 3)) for _ in range(2))
    found = planes.around(load, drones, ends).reshape(50, 1 + 2 * N, 5)
    bodies = np.concatenate([load[:, None], drones], axis=1)
    beyond = np.einsum("kbi,ci->kbc", found[..., :3], corners) - found[..., 3, None]
    assert beyond.max() < 1e-9
    away = np.einsum("kbi,kbi->kb", found[:, : 1 + N, :3], bodies) - found[:, : 1 + N, 3]
    outside = Delaunay(corners).find_simplex(bodies.reshape(-1, 3)).reshape(50, -1) < 0
    assert (away[outside] > 0.0).all() and (away[~outside] <= 1e-9).all()


def test_a_gate_is_a_window_for_a_load_that_is_led_through_it():
    gate = GateObstacle(name="gate", width_m=1.0, height_m=0.6, position_enu_m=(0.0, 0.0, 2.0))
    planes = Planes([gate], N, np.array([0.27, 0.225, 0.075]), 0.2, 0.05)
    high = np.array([[[0.05, 0.0, 3.0]] * N])  # drones above the upper beam, in the gate's plane
    for load, inwards in (((-1.0, 0.1, 2.0), True), ((-1.0, 1.5, 2.0), False)):
        found = planes.around(np.array([load]), high, high).reshape(1 + 2 * N, 2, 5)
        normals = found[1 : 1 + N, :, 2]
        assert (normals.min() < -0.99) if inwards else (normals.min() > -0.01)


def miss(chosen, until_s=2.0):
    """Largest distance of the load from its reference, and the flight's events by kind."""
    worst = 0.0
    with Session(chosen) as session:
        while session.time_s < until_s and not session.finished:
            session.advance(1)
            gap = session.reference.position_enu_m - session.state.position_enu_m[0]
            worst = max(worst, float(np.linalg.norm(gap)))
        kinds = [event.kind for event in session.events.happened]
        numbers = session.numbers()["controller"]
    return worst, kinds, numbers


HOLD = {
    "mission.stages": [{"kind": "hold", "position_m": [0, 0, 2], "duration_s": 1}],
    "mission.settle_s": 0.5,
    "world.obstacles": [],
}


def test_it_holds_a_load_and_says_how_long_plans_took():
    worst, kinds, numbers = miss(scenario(**HOLD), 1.5)
    assert worst < 0.02 and not kinds
    assert numbers["plans"] in range(29, 34) and numbers["plans_failed"] == 0
    assert 0.0 < numbers["solve_median_ms"] <= numbers["solve_max_ms"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["solo", "hexa"])
def test_one_and_six_drones_fly(name):
    chosen = scenario(name, controller="nmpc", start="air", events=[])
    worst, kinds, _ = miss(chosen, 3.0)
    assert worst < 0.08 and not kinds


@pytest.mark.parametrize("missed", [0, 10])
def test_missing_forces_are_found_behind_a_low_pass(missed):
    """Bodies that constant forces move besides those counted on; some calls are missed."""
    rng, period_s, bandwidth_1_s = np.random.default_rng(7), 0.004, 2.0
    time_s, share = 0.0, 0.0
    with Session(scenario(**HOLD)) as session:
        model, estimate = session.flying._model, session.estimate
    observer = DisturbanceObserver(SYSTEM, model, bandwidth_1_s)
    observer.start(time_s, estimate)
    mass_kg = np.r_[model.mass_kg, model.drone_mass_kg][:, None]
    directions = np.array([[0.5, 0.0, -1.0], [-0.3, 0.4, -1.0], [-0.2, -0.4, -1.0]])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    pull_n = 5.0 * directions
    thrust_n, missing_n = rng.uniform(5.0, 9.0, N), rng.normal(0.0, 0.3, (1 + N, 3))
    for _ in range(250):
        turn = Rotation.random(N, random_state=rng)
        up = turn.apply([0.0, 0.0, 1.0])
        estimate.drones.orientation_wxyz[:] = turn.as_quat(scalar_first=True)
        observer.step(time_s, thrust_n[:, None] * up, pull_n, estimate)
        until_s = period_s * (1 + rng.integers(0, missed + 1))
        force = missing_n + mass_kg * [0.0, 0.0, -G]
        force[0] -= pull_n.sum(axis=0)
        force[1:] += pull_n + thrust_n[:, None] * up
        assert np.allclose(observer.missing_n, share * missing_n, atol=1e-9)
        estimate.velocity_enu_m_s[:] += until_s * force / mass_kg
        time_s += until_s
        share += bandwidth_1_s * until_s * (1.0 - share)
    assert share == pytest.approx(1.0 - np.exp(-bandwidth_1_s * time_s), abs=0.01)

    found = observer.disturbances_n(directions)
    assert np.allclose(found.sum(axis=0), observer.missing_n.sum(axis=0))  # cables are inside
    beside = np.cross(found[1:] - observer.missing_n[1:], directions)
    assert np.allclose(beside, 0.0, atol=1e-12)
    cost = np.sum((found / mass_kg) ** 2)
    for i in range(N):  # the smallest of those that differ by a tension
        for tension_n in (-0.05, 0.05):
            other = found.copy()
            other[1 + i] += tension_n * directions[i]
            other[0] -= tension_n * directions[i]
            assert np.sum((other / mass_kg) ** 2) > cost


def test_a_steady_pull_at_the_load_leaves_no_error():
    """A fifth of its weight, as of a heavier load: stiffness alone leaves it 0.3 m low."""
    heavy = {"kind": "poke", "when": {"stage": "hold"}, "body": "load",
             "force_enu_n": [0.5, 0, -0.2 * 1.4 * G], "duration_s": 5}  # fmt: skip
    stage = {"kind": "hold", "position_m": [0, 0, 2], "duration_s": 5}
    settings = {**HOLD, "mission.stages": [stage], "events": [heavy]}
    settings["controller"] = {"kind": "nmpc", "horizon_s": 1.0, "steps": 8, "disturbance_1_s": 2.0}
    with Session(scenario(**settings)) as session:
        gaps = []
        while session.time_s < 5.0:
            session.advance(5)
            gaps.append(session.state.position_enu_m[0] - [0.0, 0.0, 2.0])
        assert np.min(gaps, axis=0)[2] < -0.08 and np.max(gaps, axis=0)[0] > 0.07
        assert abs(gaps[-1][2]) < 0.01 and np.linalg.norm(gaps[-1]) < 0.04
        disturbance = session.flying.problem.disturbance_n.sum(axis=0)
    assert disturbance == pytest.approx([0.5, 0.0, -0.2 * 1.4 * G], abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["x500_trio", "x500_trio_swivel"])
def test_by_an_autopilot_the_formation_stays_in_its_places(system):
    """Cables that do not twist let the drones hold the load's yaw: three lean alike, none drifts.

    With cables that turn the load in the plan the drones were 6 degrees further round by then.
    """
    stage = {"kind": "hold", "position_m": [0, 0, 2], "duration_s": 8}
    held = musls.load_scenario({
        "name": "held", "system": system, "start": "air", "mission": {"stages": [stage]},
        "controller": {"kind": "nmpc", "output": "autopilot"},
    })  # fmt: skip
    with Session(held) as session:
        session.advance(2000)
        motion = session.state
        places = motion.position_enu_m[1:, :2] - motion.position_enu_m[0, :2]
        up = Rotation.from_quat(motion.orientation_wxyz[1:], scalar_first=True).apply([0, 0, 1])
    around = np.angle(places @ [1.0, 1j]) - np.array([0.0, 2.0, -2.0]) * np.pi / 3.0
    assert np.abs(np.degrees(around)).max() < 1.5
    leans = np.degrees(np.arccos(up[:, 2]))
    assert leans == pytest.approx(np.full(3, 4.55), abs=0.4)


def test_an_incremental_tracker_makes_up_for_disturbances_alone():
    with Session(scenario(**HOLD, **{"autopilot.tracker": "indi"})) as session:
        session.advance(50)
        assert not session.flying._observer.missing_n.any()


def test_without_a_fresh_plan_the_formation_flies():
    """One plan a second, good for half of its horizon of 0.8 s."""
    slow = {"kind": "nmpc", "rate_hz": 1.0, "horizon_s": 0.8, "steps": 6}
    worst, kinds, _ = miss(scenario(controller=slow, **HOLD), 1.5)
    assert kinds == ["plan_stale", "plan_resumed", "plan_stale"] and worst < 0.05


def test_a_solver_that_fails_leaves_the_last_plan_and_then_the_formation():
    """It fails for 200 control periods of 4 ms."""
    with Session(scenario(controller={"kind": "nmpc", "horizon_s": 0.8}, **HOLD)) as session:
        session.advance(125)
        problem = session.flying.problem
        solve, problem.solve = problem.solve, lambda x, u, wanted: (x, u, False)
        session.advance(200)
        problem.solve = solve
        session.advance(50)
        happened = [(event.kind, event.time_s) for event in session.events.happened]
        gap = session.reference.position_enu_m - session.state.position_enu_m[0]
        failures = session.numbers()["controller"]["plans_failed"]
    kinds, times = zip(*happened, strict=True)
    assert kinds == ("plan_failed", "plan_stale", "plan_resumed")
    assert times[1] - times[0] == pytest.approx(0.4 - 0.1, abs=0.05)  # half of the horizon
    assert failures == 8 and np.linalg.norm(gap) < 0.05


@pytest.mark.slow
def test_late_plans_fly_worse():
    """The delay of each plan counts: it begins where the load was."""
    eight = {"mission.settle_s": 0.5, "system.cables.links": 2}
    worst = {}
    for delay_s in (0.0, 0.5):
        late = {"kind": "nmpc", "compute_delay": "fixed", "delay_s": delay_s}
        chosen = scenario("eight_agile", controller=late, **eight)
        worst[delay_s] = miss(chosen, 9.0)[0]
    assert worst[0.0] < 0.2 and worst[0.5] > 1.5 * worst[0.0]


@pytest.mark.slow
def test_the_load_tilts_through_a_gate_narrower_than_the_formation():
    with Session(musls.load_scenario("tilted_gate", {"system.cables.links": 2})) as session:
        tilt = 0.0
        while not session.finished:
            session.advance(1)
            if abs(session.state.position_enu_m[0, 0]) < 0.2:
                w, x, y, z = session.state.orientation_wxyz[0]
                tilt = max(tilt, np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)))
        assert session.state.position_enu_m[0, 0] > 2.8 and tilt > 0.4
        assert not {"collision", "rotors_overlap", "plan_stale"} & {
            event.kind for event in session.events.happened
        }


def refusal(chosen):
    with pytest.raises(musls.MuslsError) as caught:
        Session(chosen)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_cannot_be_planned_is_refused_in_one_line(monkeypatch):
    narrow = {"kind": "gate", "name": "slot", "width_m": 3.0, "height_m": 0.2,
              "position_enu_m": [0, 0, 2]}  # fmt: skip
    with pytest.warns(UserWarning, match="the plan brings load into slot"):
        text = refusal(scenario(**{"world.obstacles": [narrow]}))
    assert "gate 'slot' opens 3 x 0.2 m, the load with clearance_m needs 0.35 x 0.65 m" in text
    for horizon in (0.0, -1.0):
        with pytest.raises(musls.ConfigError, match=r"controller\.horizon_s"):
            scenario(**{"controller.horizon_s": horizon})
    text = refusal(scenario(**{"controller.largest_tension_n": 4.0, "world.obstacles": []}))
    assert "controller.largest_tension_n = 4 N must be above" in text
    rods = {"cable_model": "rigid_rods", "world.obstacles": []}
    assert "rigid_rods has none" in refusal(musls.load_scenario("tilted_gate", rods))
    point = {"mass_kg": 1.0, "point_mass": True, "cable_attachments_m": [[0, 0, 0]] * 3,
             "collision": {"size_m": [0.1, 0.1, 0.1]}}  # fmt: skip
    system = {
        "name": "point",
        "load": point,
        "drones": {"from": "agile"},
        "cables": {"from": "thread"},
    }
    for kind in ("nmpc", "payload"):
        text = refusal(scenario(system=system, controller=kind, **{"world.obstacles": []}))
        assert "needs load.inertia_kg_m2" in text and "the load of point is a point mass" in text
    for name in ("casadi", "musls_control.controllers.nmpc.ocp"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "casadi", None)
    assert "controller.kind = nmpc needs CasADi" in refusal(scenario(**HOLD))


def test_a_reference_knows_what_is_coming():
    with Session(scenario(**{"world.obstacles": []}, controller="formation")) as session:
        reference = session.components.plan.reference
        after = np.array([0.0, 0.7, 30.0])
        derivatives, tilts = reference.stepped(0.004).at(500).coming(after)
        assert np.array_equal(derivatives, reference.samples(2.0 + after))
        assert np.array_equal(tilts, reference.tilts(2.0 + after))
        assert tilts[1, 0, 0] > 0.0
    rows = np.zeros((5, 4))
    rows[1, :] = 1.0, 2.0, 3.0, 0.5
    derivatives, _ = LoadReference(rows).coming(np.array([2.0]))
    assert np.array_equal(derivatives[0, :2], [[2.0, 4.0, 6.0, 1.0], [1.0, 2.0, 3.0, 0.5]])


@pytest.mark.slow
def test_one_drone_flies_a_circle_whose_set_point_turns_a_load_that_it_cannot_turn():
    """The load's yaw is left out, and said; the plan once lost the drone for it."""
    stage = {"kind": "circle", "radius_m": 1.0, "speed_m_s": 1.0, "height_m": 2.0}
    chosen = musls.load_scenario({
        "name": "turning", "system": "x500_solo", "start": "air", "cable_model": "massless",
        "formation": {"radius_m": 0.0, "height_m": 2.05}, "controller": "nmpc",
        "mission": {"stages": [stage]},
    })  # fmt: skip
    missed = []
    with pytest.warns(UserWarning, match="in yaw, which 1 cable cannot give"):
        session = Session(chosen)
    with session:
        while session.time_s < 7.0 and not session.finished:
            session.advance(25)
            place = session.state.position_enu_m[0]
            missed.append(np.linalg.norm(place - session.reference.position_enu_m))
    assert max(missed) < 0.15
