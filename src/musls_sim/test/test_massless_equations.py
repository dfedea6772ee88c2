"""Massless cables: accelerations and impacts against NumPy with all bodies, and invariants."""

import numpy as np
import pytest
from massless_rigs import Dense, motion_now, random_plant
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from musls_sim.plants.massless.cables import (
    free_motion,
    impact,
    mark_at_length,
    rates,
    solve_complementarity,
)
from musls_sim.plants.massless.records import CABLE, LOAD
from musls_sim.plants.rigid_body import (
    CLOSE,
    CONTACT,
    CORNER,
    DEEP,
    FAR,
    RIGID_BODY,
    STANDING,
    look_for_surfaces,
    surfaces_of,
)

G = 9.80665


def wrenches(rng, n):
    return rng.normal(size=(1 + n, 6)) * [0.3, 0.3, 0.3, 5.0, 5.0, 5.0]


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 12])
@pytest.mark.parametrize("share", ["taut", "partly slack", "slack"])
def test_accelerations_are_those_of_all_bodies_with_constraints(n, share):
    rng = np.random.default_rng([n, len(share)])
    for _ in range(10):
        plant = random_plant(rng, n)
        t = plant.records
        taut = {"taut": np.ones(n, bool), "slack": np.zeros(n, bool)}.get(
            share, rng.random(n) < 0.5
        )
        t.cables["taut"] = taut
        enu = wrenches(rng, n)
        t.bodies["in_world"], t.system["wind"] = enu, 0.0
        rates(t.system[0], t.speed, 0.0)
        out = t.bodies["rate"]
        dense = Dense(plant.system, motion_now(plant))
        expected, tension = dense.accelerations(np.flatnonzero(taut), dense.force(G, enu))
        expected = expected.reshape(-1, 6)
        scale = np.abs(expected).max()
        assert np.abs(out["velocity"] - expected[:, :3]).max() < 1e-10 * scale
        turned = np.einsum("nij,nj->ni", dense.turn, out["omega"])
        assert np.abs(turned - expected[:, 3:]).max() < 1e-10 * scale
        # The force that pulls load and drone together is T: the row's sign is that of lengthening.
        np.testing.assert_allclose(t.cables["tension"], tension, atol=1e-9 * scale, rtol=1e-10)
        np.testing.assert_allclose(t.cables["rate"], dense.rate, atol=1e-12)


def test_quaternions_turn_with_the_body_rate():
    plant = random_plant(np.random.default_rng(1), 2)
    t, h = plant.records, 1e-6
    t.system["wind"] = 0.0
    rates(t.system[0], t.speed, 0.0)
    attitude, change = t.bodies["state"]["attitude"], t.bodies["rate"]["attitude"]
    now = Rotation.from_quat(attitude, scalar_first=True)
    then = Rotation.from_quat(attitude + h * change, scalar_first=True)
    rate = (now.inv() * then).as_rotvec() / h
    np.testing.assert_allclose(rate, t.bodies["state"]["omega"], atol=1e-5)


def test_the_complementarity_problem_is_solved_for_any_matrix_and_in_any_order():
    rng = np.random.default_rng(3)
    for trial in range(2000):
        m = int(rng.integers(1, 13))
        # Few columns: almost singular but for the diagonal, as many cables on one load.
        a = rng.normal(size=(m, min(m, 6)))
        load, cables = np.zeros(1, LOAD)[0], np.zeros(m, CABLE)
        cables["own"], cables["taut"] = rng.uniform(1e-3, 1.0, m), 1
        cables["lever"][:, : a.shape[1]] = a
        d = a @ a.T + np.diag(cables["own"])
        cables["right"] = b = rng.normal(size=m) + (1.0 if trial % 2 else 0.0)
        cables["active"] = 1
        solve_complementarity(load, cables, np.zeros((2, 0, 0)))
        z = cables["solution"].copy()
        w = d @ z - b
        size = np.abs(b).max() * np.linalg.cond(d)
        assert z.min() >= 0.0 and w.min() > -1e-13 * size
        assert np.abs(z * w).max() < 1e-12 * size * max(z.max(), 1.0)
        root = np.linalg.cholesky(d)  # |R^T z - R^-1 b| is least for the same z
        np.testing.assert_allclose(
            z, nnls(root.T, np.linalg.solve(root, b))[0], atol=1e-9 * max(z.max(), 1.0)
        )
        order = rng.permutation(m)
        cables = cables[order]
        cables["active"] = rng.random(m) < 0.5
        solve_complementarity(load, cables, np.zeros((2, 0, 0)))
        np.testing.assert_allclose(cables["solution"], z[order], atol=1e-9 * max(z.max(), 1.0))


def impulses_of(plant):
    """Impulses of an impact in the present state."""
    t = plant.records
    t.cables["taut"], t.cables["impulse"] = 0, 0.0
    t.system["impact_loss"] = t.system["wind"] = 0.0
    system = t.system[0]
    free_motion(system, t.speed, 0.0)
    mark_at_length(system)
    impact(t.system.ctypes.data, 0.0)
    return np.einsum("ni,ni->n", t.cables["impulse"], t.cables["along"])


def sums(dense, velocity):
    """Momentum, angular momentum about the origin, kinetic energy for velocities (6 (1 + n),)."""
    p = (dense.mass @ velocity).reshape(-1, 6)
    angular = np.cross(dense.x, p[:, :3]).sum(axis=0) + p[:, 3:].sum(axis=0)
    return np.concatenate([p[:, :3].sum(axis=0), angular]), 0.5 * velocity @ dense.mass @ velocity


def velocities(plant, dense):
    """Velocities of all bodies in the coordinates of `dense`, (6 (1 + n),)."""
    y = plant.records.bodies["state"]
    omega = np.einsum("nij,nj->ni", dense.turn, y["omega"])
    return np.hstack([y["velocity"], omega]).ravel()


def check_impact(plant, dense, restitution):
    """Let the cables take an impact, check what must hold; whether equality would have pushed."""
    before_u = velocities(plant, dense)
    before_rate = dense.jacobian @ before_u
    impulse = impulses_of(plant)
    after = velocities(plant, dense)
    rate = dense.jacobian @ after
    size = np.abs(before_rate).max() + 1.0
    assert impulse.min() >= 0.0
    assert rate.max() < 1e-12 * size
    if restitution == 0.0:
        assert np.abs(impulse * rate).max() < 1e-11 * size * max(impulse.max(), 1.0)
    before, energy = sums(dense, before_u)
    then, energy_then = sums(dense, after)
    np.testing.assert_allclose(then, before, rtol=0.0, atol=1e-12 * dense.scale(before_u))
    assert energy_then <= energy * (1.0 + 1e-14)
    assert plant.records.system[0]["impact_loss"] == pytest.approx(
        energy - energy_then, abs=1e-11 * energy
    )
    # All that changes velocities are pulls along the cables.
    change = dense.mass @ (after - before_u) + dense.jacobian.T @ impulse
    assert np.abs(change).max() < 1e-12 * dense.scale(before_u)
    assert impulses_of(plant).max() < 1e-11 * size
    np.testing.assert_allclose(velocities(plant, dense), after, rtol=0.0, atol=1e-11 * size)
    lengthen = dense.jacobian[before_rate > 0.0]
    if not len(lengthen):
        return False
    effect = lengthen @ np.linalg.solve(dense.mass, lengthen.T)
    return bool((np.linalg.solve(effect, lengthen @ before_u) < 0.0).any())


@pytest.mark.parametrize(
    ("restitution", "states"),
    [(0.0, 500), (0.5, 200), pytest.param(0.0, 10000, marks=pytest.mark.slow)],
)
def test_impacts_of_random_states_keep_what_they_must(restitution, states):
    rng = np.random.default_rng([states, 5])
    pushing = 0
    for _ in range(states // 50):
        n = int(rng.integers(1, 9))
        plant = random_plant(rng, n)
        dense = Dense(plant.system, motion_now(plant))
        plant.records.system["restitution"] = restitution
        state = plant.records.bodies["state"]
        begin = state.copy()
        for _ in range(50):
            state[:] = begin
            state["velocity"] = rng.normal(size=(1 + n, 3)) * 2.0
            state["omega"] = rng.normal(size=(1 + n, 3)) * 3.0
            pushing += check_impact(plant, dense, restitution)
    assert pushing > 0.05 * states  # where the rule of equality, which this replaces, would push


def test_impacts_do_not_depend_on_numbering_heading_or_speed_of_the_frame():
    rng = np.random.default_rng(6)
    for _ in range(40):
        n = int(rng.integers(2, 9))
        plant = random_plant(rng, n)
        t = plant.records
        state = t.bodies["state"]
        cables, bodies = t.cables.copy(), t.bodies.copy()
        impulse = impulses_of(plant)
        after = state.copy()

        order = rng.permutation(n)
        rows = np.concatenate([[0], 1 + order])
        t.cables[:], t.bodies[:] = cables[order], bodies[rows]
        np.testing.assert_allclose(impulses_of(plant), impulse[order], atol=1e-11)
        for field in state.dtype.names:
            np.testing.assert_allclose(state[field], after[field][rows], atol=1e-10)

        boost = rng.normal(size=3) * 5.0
        t.cables[:], t.bodies[:] = cables, bodies
        state["velocity"] += boost
        np.testing.assert_allclose(impulses_of(plant), impulse, atol=1e-11)
        np.testing.assert_allclose(state["velocity"] - boost, after["velocity"], atol=1e-10)

        turn = Rotation.from_rotvec([0.0, 0.0, 1.3])
        t.bodies[:] = bodies
        for field in ("position", "velocity"):
            state[field] = turn.apply(state[field])
        attitude = turn * Rotation.from_quat(state["attitude"], scalar_first=True)
        state["attitude"] = attitude.as_quat(scalar_first=True)
        np.testing.assert_allclose(impulses_of(plant), impulse, atol=1e-10)
        np.testing.assert_allclose(state["velocity"], turn.apply(after["velocity"]), atol=1e-10)


@pytest.mark.parametrize(
    ("height", "tilt_rad", "speed_m_s", "near"),
    [
        (2.0, 0.0, 0.0, FAR),
        (0.0496, 0.0, 0.0, STANDING),
        (0.0496, 0.0, 0.2, CLOSE),
        (0.04, 0.0, 0.0, DEEP),
        (1.9, 1.3, 0.0, DEEP),
    ],
)
def test_near_the_ground_is_whose_lowest_corner_is(height, tilt_rad, speed_m_s, near):
    """A plate of 4 m by 4 m, held level at 2 m, low down, or tilted so that an edge is low."""
    bodies = np.zeros(1, np.dtype([*RIGID_BODY.descr, *CONTACT]))
    corners = np.zeros(8, CORNER)
    corners["place"] = [[x, y, z] for x in (-2, 2) for y in (-2, 2) for z in (-0.05, 0.05)]
    body = bodies[0]
    body["corners"], body["radius"] = 8, np.linalg.norm(corners["place"], axis=1).max()
    body["impact_damping"] = 1.0
    body["position"][2] = height
    body["velocity"][0] = speed_m_s
    body["rotation"] = Rotation.from_euler("x", tilt_rad).as_matrix()
    assert look_for_surfaces(bodies, corners, surfaces_of(0.0, ()), 0.004) == near
    assert body["near"] == near
