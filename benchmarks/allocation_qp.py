"""Times the QP of `allocation: qp` by its active set and by library solvers, and compares answers.

The problem is that of `payload/allocation.py`: the shortest x with G x >= h, dense, with as many
unknowns as n cables leave free and a row for each tension and each pair of drones.

    pip install osqp proxsuite; python benchmarks/allocation_qp.py
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import clarabel
import numpy as np
import osqp
import proxsuite
from scipy import sparse

from musls_control.controllers.payload.allocation import least_distance

PROBLEMS = 300


def active_set(g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Ours, from a cold start."""
    x = np.zeros(g.shape[1])
    least_distance(g, h, x, np.zeros(len(h)))
    return x


def by_clarabel(g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Interior points."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    d = g.shape[1]
    cones = [clarabel.NonnegativeConeT(len(h))]
    hessian, rows = sparse.eye(d, format="csc"), sparse.csc_matrix(-g)
    return np.array(
        clarabel.DefaultSolver(hessian, np.zeros(d), rows, -h, cones, settings).solve().x
    )


def by_osqp(g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Operator splitting."""
    solver, d = osqp.OSQP(), g.shape[1]
    solver.setup(
        sparse.eye(d, format="csc"), np.zeros(d), sparse.csc_matrix(g), h, np.full(len(h), np.inf),
        verbose=False, eps_abs=1e-6, eps_rel=1e-6,
    )  # fmt: skip
    return np.array(solver.solve().x)


def by_proxsuite(g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Proximal augmented Lagrangian, dense."""
    d = g.shape[1]
    solver = proxsuite.proxqp.dense.QP(d, 0, len(h))
    solver.settings.eps_abs = 1e-9
    solver.init(np.eye(d), np.zeros(d), None, None, g, h, np.full(len(h), 1e20))
    solver.solve()
    return np.array(solver.results.x)


SOLVERS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "active set (musls)": active_set,
    "ProxSuite": by_proxsuite,
    "Clarabel": by_clarabel,
    "OSQP": by_osqp,
}


def main() -> None:
    """Print a row for each number of drones and solver."""
    print(
        "| drones | solver | processor time, median [us] | farthest from the active set's answer |"
    )
    for n in (3, 6, 12):
        rng = np.random.default_rng(n)
        d, m = 3 * n - 6, n + n * (n - 1) // 2
        problems = []
        for _ in range(PROBLEMS):
            g = rng.normal(size=(m, d))
            g /= np.linalg.norm(g, axis=1, keepdims=True)
            problems.append((g, g @ rng.normal(0.0, 0.5, d) - rng.exponential(0.2, m)))
        exact = [active_set(g, h) for g, h in problems]
        for name, solve in SOLVERS.items():
            took, far = [], 0.0
            for (g, h), wanted in zip(problems, exact, strict=True):
                begin = process_time()
                found = solve(g, h)
                took.append(process_time() - begin)
                far = max(far, float(np.abs(found - wanted).max()))
            print(f"| {n} | {name} | {1e6 * np.median(took):.0f} | {far:.1e} |", flush=True)


if __name__ == "__main__":
    main()
