"""Least cable forces that keep tensions and distances: against a maintained solver, invariants."""

import clarabel
import numpy as np
import pytest
from scipy import sparse

from musls_control.controllers.payload.allocation import (
    Sharing,
    least_distance,
    null_space_of,
    places_of,
    share_out,
    shares_of,
    spread_out,
    spread_rate,
)
from musls_description.numerics.arrays import grasp_matrix

UP = np.array([0.0, 0.0, 1.0])
MIN_N, LENGTH_M = 1.5, 1.0


def by_clarabel(g, h):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    m, d = g.shape
    cones = [clarabel.NonnegativeConeT(m)]
    solver = clarabel.DefaultSolver(
        sparse.eye(d, format="csc"), np.zeros(d), sparse.csc_matrix(-g), -h, cones, settings
    )
    found = solver.solve()
    return str(found.status), np.array(found.x)


@pytest.mark.slow
def test_least_distance_is_that_of_clarabel():
    """Random problems with and without an answer; both agree which is which."""
    rng, seen = np.random.default_rng(0), {True: 0, False: 0}
    for _ in range(400):
        d, m = rng.integers(1, 7), rng.integers(1, 12)
        g, h = rng.normal(size=(m, d)), rng.normal(size=m)
        g /= np.linalg.norm(g, axis=1, keepdims=True)
        x, binding = np.zeros(d), np.zeros(m)
        found = least_distance(g, h, x, binding)
        status, expected = by_clarabel(g, h)
        assert found == ("Solved" in status)
        seen[found] += 1
        if found:
            assert x == pytest.approx(expected, abs=1e-4 * max(1.0, np.abs(x).max()))
            assert (g @ x >= h - 1e-9 * max(1.0, np.abs(x).max())).all()
            assert g[binding > 0.0] @ x == pytest.approx(h[binding > 0.0], abs=1e-8)
    assert min(seen.values()) > 30


class Ring:
    """n drones on cables of 1 m that would hang over attachments 0.2 m from the load's axis."""

    def __init__(self, n, apart_m=0.8, radius_m=0.2):
        azimuth = 2.0 * np.pi * np.arange(n) / n
        circle = np.column_stack([np.cos(azimuth), np.sin(azimuth), np.zeros(n)])
        self.arms, self.apart_m, self.n = radius_m * circle, apart_m, n
        self.places = places_of(self.arms, np.full(n, LENGTH_M), circle + UP, apart_m)
        self.shares, null = shares_of(self.arms), null_space_of(self.arms)
        rows = len(self.places)
        self.memory, self.binding = np.zeros((rows, 3 * n + len(null))), np.zeros(rows)
        self.sharing = Sharing(self.shares, null, self.places, self.memory, self.binding)

    def forces(self, wrench, least_n=MIN_N):
        out = np.zeros((self.n, 3))
        return spread_out(self.sharing, least_n, UP, wrench, out), out

    def least_norm(self, wrench):
        out = np.empty((self.n, 3))
        share_out(self.shares, wrench, 0, out)
        return out

    def closest_m(self, forces):
        places = self.arms + LENGTH_M * forces / np.linalg.norm(forces, axis=1, keepdims=True)
        gaps = np.linalg.norm(places[:, None] - places, axis=2)
        return gaps[~np.eye(self.n, dtype=bool)].min()


@pytest.mark.parametrize(("n", "free"), [(1, 0), (2, 1), (3, 3), (4, 6), (12, 30)])
def test_the_null_space_has_no_wrench(n, free):
    arms = np.random.default_rng(1).normal(size=(n, 3))
    null = null_space_of(arms)
    assert null.shape == (free, 3 * n)
    assert grasp_matrix(arms) @ null.T == pytest.approx(np.zeros((6, free)), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_drones_stay_apart_where_least_norm_brings_them_together(n):
    ring, wrench = Ring(n), np.array([0.5, -0.3, 4.0 * n, 0.0, 0.0, 0.1])
    assert ring.closest_m(ring.least_norm(wrench)) < 0.5
    kept, forces = ring.forces(wrench)
    assert kept
    assert ring.closest_m(forces) == pytest.approx(
        0.8, abs=0.01
    )  # along the formation's directions
    assert ring.closest_m(forces) > 0.8 - 1e-6
    change = grasp_matrix(ring.arms) @ (forces - ring.least_norm(wrench)).ravel()
    assert np.abs(change).max() < 1e-9


def test_no_cable_goes_slack_where_least_norm_lets_it():
    """A moment that least norm gives by 2 N -+ 1.4 N on two of four cables.

    Taking as much from one pair of opposite cables as is given to the other changes nothing for the
    load.
    """
    ring = Ring(4, apart_m=0.0)
    wrench = np.array([0.0, 0.0, 8.0, 0.0, 0.55, 0.0])
    least = ring.least_norm(wrench)
    assert least[:, 2].min() < 0.7
    kept, forces = ring.forces(wrench, 0.9)
    assert kept
    assert forces[:, 2] == pytest.approx([0.9, 1.725, 3.65, 1.725], abs=1e-9)
    assert np.linalg.norm(forces, axis=1).min() > 0.9 - 1e-9
    assert grasp_matrix(ring.arms) @ forces.ravel() == pytest.approx(wrench, abs=1e-9)


def test_what_binds_nothing_changes_nothing():
    ring, wrench = Ring(3, apart_m=0.1), np.array([0.2, 0.1, 9.0, 0.05, 0.0, 0.0])
    kept, forces = ring.forces(wrench)
    assert kept
    assert forces == pytest.approx(ring.least_norm(wrench), abs=1e-12)


@pytest.mark.parametrize(
    ("wrench_z", "apart_m"),
    [(4.0, 0.8), (12.0, 3.0)],
    ids=["weight below three least tensions", "cables too short"],
)
def test_what_cannot_be_kept_is_said_and_the_norm_is_least(wrench_z, apart_m):
    ring, wrench = Ring(3, apart_m), np.array([0.0, 0.0, wrench_z, 0.0, 0.0, 0.0])
    kept, forces = ring.forces(wrench)
    assert not kept
    assert forces == pytest.approx(ring.least_norm(wrench), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_rates_keep_the_wrench_and_what_binds(n):
    """Against differences of the forces of wrenches that change: the drones stay apart."""
    ring = Ring(n)
    wrench, rate = np.array([0.5, -0.3, 4.0 * n, 0, 0, 0.1]), np.array([1.0, 0.4, -2.0, 0, 0, 0.2])
    ring.forces(wrench)
    found = np.empty((n, 3))
    spread_rate(ring.sharing, rate, 1, found)
    gain = shares_of(ring.arms)[:, :6] @ rate
    change = grasp_matrix(ring.arms) @ (found.ravel() - gain)
    assert np.abs(change).max() < 1e-9
    h = 1e-4
    _, after = ring.forces(wrench + h * rate)
    _, before = ring.forces(wrench - h * rate)
    ring.forces(wrench)
    bound = ring.memory[ring.binding > 0.0][:, : 3 * n]
    assert len(bound) > 0
    assert bound @ found.ravel() == pytest.approx(np.zeros(len(bound)), abs=1e-9)
    assert bound @ (after - before).ravel() / 2.0 / h == pytest.approx(0.0, abs=1e-3)
