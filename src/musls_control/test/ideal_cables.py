"""Load on taut massless cables below point drones that exert any force: equations of motion.

The equations of RotorTM (IEEE T-RO 2023, eq. 16 to 23) with the accelerations of the drones
eliminated, in plain NumPy and independent of the controller: unknowns are the accelerations of the
load, linear and angular; each cable adds m_k g_k g_k^T with g_k = [xi_k; rho_k x R^T xi_k].
"""

from __future__ import annotations

import numpy as np

from musls_description.numerics.rotations import matrix_to_body


class IdealCables:
    """State: load row and drone rows with the columns of `Estimate`, (1 + n, 16)."""

    def __init__(self, mass, inertia, arms, drone_masses, lengths, gravity=9.81):
        self.mass, self.inertia, self.arms = mass, np.array(inertia), np.array(arms)
        self.masses, self.lengths = np.array(drone_masses), np.array(lengths)
        self.gravity = gravity

    def place(self, position, quaternion, directions, velocity=None, omega=None):
        """State with cables along unit directions (from drone to load), at rest by default."""
        n = len(self.masses)
        state = np.zeros((1 + n, 16))
        state[:, 6] = 1.0
        state[0, 0:3], state[0, 6:10] = position, quaternion
        state[0, 3:6] = 0.0 if velocity is None else velocity
        state[0, 10:13] = 0.0 if omega is None else omega
        r = matrix_to_body(state[0, 6:10]).T
        state[1:, 0:3] = position + self.arms @ r.T - self.lengths[:, None] * directions
        state[1:, 3:6] = state[0, 3:6] + np.cross(state[0, 10:13], self.arms) @ r.T
        return state

    def rate(self, state, force):
        """Derivative of the first 13 columns, and the tensions."""
        r, w = matrix_to_body(state[0, 6:10]).T, state[0, 10:13]
        arms = self.arms @ r.T
        gaps = state[0, 0:3] + arms - state[1:, 0:3]
        xi = gaps / np.linalg.norm(gaps, axis=1, keepdims=True)
        speeds = state[0, 3:6] + np.cross(w, self.arms) @ r.T - state[1:, 3:6]
        xi_rate = speeds / self.lengths[:, None]
        xi_rate -= np.sum(xi_rate * xi, axis=1, keepdims=True) * xi
        g = np.hstack([xi, np.cross(self.arms, xi @ r)])
        turning = np.cross(w, np.cross(w, self.arms)) @ r.T
        c = np.sum(xi * force, axis=1) - self.masses * (
            self.lengths * np.sum(xi_rate**2, axis=1) + np.sum(xi * turning, axis=1)
        )
        matrix = np.zeros((6, 6))
        matrix[:3, :3], matrix[3:, 3:] = self.mass * np.eye(3), self.inertia
        matrix += (g * self.masses[:, None]).T @ g
        right = np.concatenate([np.zeros(3), -np.cross(w, self.inertia @ w)]) + c @ g
        found = np.linalg.solve(matrix, right)
        tension = self.masses * (g @ found) - c
        down = np.array([0.0, 0.0, self.gravity])
        rate = np.zeros((len(state), 13))
        rate[:, 0:3] = state[:, 3:6]
        rate[0, 3:6], rate[0, 10:13] = found[:3] - down, found[3:]
        rate[1:, 3:6] = (force + tension[:, None] * xi) / self.masses[:, None] - down
        q = state[0, 6:10]
        rate[0, 6:10] = 0.5 * np.array([-q[1:] @ w, *(q[0] * w + np.cross(q[1:], w))])
        return rate, tension

    def step(self, state, time_s, period_s, control):
        """Advance by Runge and Kutta's method; `control(time, state)` acts within the step too."""

        def at(time, shift, by):
            moved = state.copy()
            moved[:, :13] += by * shift
            return self.rate(moved, control(time, moved))[0]

        h = period_s
        k1 = at(time_s, 0.0, 0.0)
        k2 = at(time_s + 0.5 * h, k1, 0.5 * h)
        k3 = at(time_s + 0.5 * h, k2, 0.5 * h)
        k4 = at(time_s + h, k3, h)
        after = state.copy()
        after[:, :13] += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        after[0, 6:10] /= np.linalg.norm(after[0, 6:10])
        return after
