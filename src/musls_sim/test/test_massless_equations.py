"""Massless cables: accelerations and jerks against NumPy with all bodies, and invariants."""

import numpy as np
import pytest
from massless_rigs import Dense, motion_now, random_plant
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from musls_sim.plants.massless import records as c
from musls_sim.plants.massless.cables import (
    free_motion,
    jerk,
    mark_at_length,
    rates,
    solve_complementarity,
)

G = 9.80665
STILL = np.zeros(3)


def wrenches(rng, n):
    return rng.normal(size=(1 + n, 6)) * [0.3, 0.3, 0.3, 5.0, 5.0, 5.0]


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 12])
@pytest.mark.parametrize("share", ["taut", "partly slack", "slack"])
def test_accelerations_are_those_of_all_bodies_with_constraints(n, share):
    rng = np.random.default_rng([n, len(share)])
    for _ in range(10):
        plant = random_plant(rng, n)
        t = plant.tables
        taut = {"taut": np.ones(n, bool), "slack": np.zeros(n, bool)}.get(
            share, rng.random(n) < 0.5
        )
        t.cables[:, c.TAUT] = taut
        enu, body = wrenches(rng, n), np.zeros((1 + n, 6))
        out = np.zeros_like(t.state)
        rates(t, t.state, t.speed, 0.0, STILL, body, enu, out)
        dense = Dense(plant.system, motion_now(plant))
        expected, tension = dense.accelerations(np.flatnonzero(taut), dense.force(G, enu))
        expected = expected.reshape(-1, 6)
        scale = np.abs(expected).max()
        assert np.abs(out[:, c.V : c.V + 3] - expected[:, :3]).max() < 1e-10 * scale
        turned = np.einsum("nij,nj->ni", dense.turn, out[:, c.W : c.W + 3])
        assert np.abs(turned - expected[:, 3:]).max() < 1e-10 * scale
        # The force that pulls load and drone together is T: the row's sign is that of lengthening.
        np.testing.assert_allclose(t.cables[:, c.TENSION], tension, atol=1e-9 * scale, rtol=1e-10)
        np.testing.assert_allclose(t.cables[:, c.RATE], dense.rate, atol=1e-12)


def test_quaternions_turn_with_the_body_rate():
    plant = random_plant(np.random.default_rng(1), 2)
    t, h = plant.tables, 1e-6
    out = np.zeros_like(t.state)
    none = np.zeros((3, 6))
    rates(t, t.state, t.speed, 0.0, STILL, none, none, out)
    now = Rotation.from_quat(t.state[:, 3:7], scalar_first=True)
    then = Rotation.from_quat(t.state[:, 3:7] + h * out[:, 3:7], scalar_first=True)
    rate = (now.inv() * then).as_rotvec() / h
    np.testing.assert_allclose(rate, t.state[:, c.W : c.W + 3], atol=1e-5)


def test_the_complementarity_problem_is_solved_for_any_matrix_and_in_any_order():
    rng = np.random.default_rng(3)
    for trial in range(2000):
        m = int(rng.integers(1, 13))
        # Few columns: almost singular but for the diagonal, as many cables on one load.
        a = rng.normal(size=(m, min(m, 6)))
        d = a @ a.T + np.diag(rng.uniform(1e-3, 1.0, m))
        b = rng.normal(size=m) + (1.0 if trial % 2 else 0.0)
        z, basis, factor = np.zeros(m), np.ones(m), np.zeros((m, m))
        solve_complementarity(d, b, m, basis, factor, z)
        w = d @ z - b
        size = np.abs(b).max() * np.linalg.cond(d)
        assert z.min() >= 0.0 and w.min() > -1e-13 * size
        assert np.abs(z * w).max() < 1e-12 * size * max(z.max(), 1.0)
        root = np.linalg.cholesky(d)  # |R^T z - R^-1 b| is least for the same z
        np.testing.assert_allclose(
            z, nnls(root.T, np.linalg.solve(root, b))[0], atol=1e-9 * max(z.max(), 1.0)
        )
        order = rng.permutation(m)
        other = np.zeros(m)
        basis[:] = rng.random(m) < 0.5
        solve_complementarity(d[np.ix_(order, order)], b[order], m, basis, factor, other)
        np.testing.assert_allclose(other, z[order], atol=1e-9 * max(z.max(), 1.0))


def jerked(plant):
    """Jerk of a plant in its present state: impulses, number of events."""
    t = plant.tables
    out, none = np.zeros_like(t.state), np.zeros((len(t.state), 6))
    t.cables[:, c.TAUT] = 0.0
    t.cables[:, c.FORCE_SUM : c.FORCE_SUM + 3] = 0.0
    t.sums[:] = 0.0
    free_motion(t, t.state, t.speed, 0.0, STILL, none, none, out)
    mark_at_length(t)
    jerk(t, t.state, 0.0, 0, out)
    impulse = np.einsum(
        "ni,ni->n", t.cables[:, c.FORCE_SUM : c.FORCE_SUM + 3], t.cables[:, c.ALONG : c.ALONG + 3]
    )
    return impulse


def sums(dense, velocity):
    """Momentum, angular momentum about the origin, kinetic energy for velocities (6 (1 + n),)."""
    p = (dense.mass @ velocity).reshape(-1, 6)
    angular = np.cross(dense.x, p[:, :3]).sum(axis=0) + p[:, 3:].sum(axis=0)
    return np.concatenate([p[:, :3].sum(axis=0), angular]), 0.5 * velocity @ dense.mass @ velocity


def velocities(plant, dense):
    """Velocities of all bodies in the coordinates of `dense`, (6 (1 + n),)."""
    y = plant.tables.state
    omega = np.einsum("nij,nj->ni", dense.turn, y[:, c.W : c.W + 3])
    return np.hstack([y[:, c.V : c.V + 3], omega]).ravel()


def check_jerk(plant, dense, restitution):
    """Let the cables jerk, check what must hold; whether equality would have pushed."""
    before_u = velocities(plant, dense)
    before_rate = dense.jacobian @ before_u
    impulse = jerked(plant)
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
    assert plant.tables.sums[c.JERK_LOSS] == pytest.approx(energy - energy_then, abs=1e-11 * energy)
    # All that changes velocities are pulls along the cables.
    change = dense.mass @ (after - before_u) + dense.jacobian.T @ impulse
    assert np.abs(change).max() < 1e-12 * dense.scale(before_u)
    assert jerked(plant).max() < 1e-11 * size
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
def test_jerks_of_random_states_keep_what_they_must(restitution, states):
    rng = np.random.default_rng([states, 5])
    pushing = 0
    for _ in range(states // 50):
        n = int(rng.integers(1, 9))
        plant = random_plant(rng, n)
        dense = Dense(plant.system, motion_now(plant))
        t = plant.tables
        t.parameters[c.RESTITUTION] = restitution
        begin = t.state.copy()
        for _ in range(50):
            t.state[:] = begin
            t.state[:, c.V : c.V + 3] = rng.normal(size=(1 + n, 3)) * 2.0
            t.state[:, c.W : c.W + 3] = rng.normal(size=(1 + n, 3)) * 3.0
            pushing += check_jerk(plant, dense, restitution)
    assert pushing > 0.05 * states  # where the rule of equality, which this replaces, would push


def test_jerks_do_not_depend_on_numbering_heading_or_speed_of_the_frame():
    rng = np.random.default_rng(6)
    for _ in range(40):
        n = int(rng.integers(2, 9))
        plant = random_plant(rng, n)
        t = plant.tables
        begin, cables = t.state.copy(), t.cables.copy()
        bodies = t.bodies.copy()
        impulse = jerked(plant)
        after = t.state.copy()

        order = rng.permutation(n)
        rows = np.concatenate([[0], 1 + order])
        t.state[:], t.cables[:], t.bodies[:] = begin[rows], cables[order], bodies[rows]
        np.testing.assert_allclose(jerked(plant), impulse[order], atol=1e-11)
        np.testing.assert_allclose(t.state, after[rows], atol=1e-10)
        t.cables[:], t.bodies[:] = cables, bodies

        boost = rng.normal(size=3) * 5.0
        t.state[:] = begin
        t.state[:, c.V : c.V + 3] += boost
        np.testing.assert_allclose(jerked(plant), impulse, atol=1e-11)
        np.testing.assert_allclose(
            t.state[:, c.V : c.V + 3] - boost, after[:, c.V : c.V + 3], atol=1e-10
        )

        turn = Rotation.from_rotvec([0.0, 0.0, 1.3])
        t.state[:] = begin
        for at in (c.X, c.V):
            t.state[:, at : at + 3] = turn.apply(t.state[:, at : at + 3])
        attitude = turn * Rotation.from_quat(begin[:, 3:7], scalar_first=True)
        t.state[:, c.Q : c.Q + 4] = attitude.as_quat(scalar_first=True)
        np.testing.assert_allclose(jerked(plant), impulse, atol=1e-10)
        np.testing.assert_allclose(
            t.state[:, c.V : c.V + 3], turn.apply(after[:, c.V : c.V + 3]), atol=1e-10
        )
