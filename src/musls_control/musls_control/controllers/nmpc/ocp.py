"""The optimal control problem of a load on n taut massless cables, one Gauss-Newton step at a time.

S. Sun et al., "Agile and cooperative aerial manipulation of a cable-suspended load", Science
Robotics 10 (2025). With s the direction of a cable from drone to load, r its angular velocity
(world) and t its tension, m, J, rho those of the load, l the length,

    p' = v,   v' = (d_0 - sum t s) / m + g,   q' = q (0, w) / 2,
    J w' = -w x J w + sum t (R^T s) x rho,
    s' = r x s,    r' = a,    a' = u_r,    t' = b,    b' = u_t,

and of each drone, by derivatives of its place (no drone's own dynamics are needed),

    p_i = p + R rho - l s,      thrust_i = m_i (p_i'' - g) - t s - d_i.

States are x = (p, q, v, w; s, r; a, t, b), inputs u = (u_r, u_t): every drone's acceleration is
continuous. (The paper differentiates a once more.) Where the plan begins, p to r are measured; a, t
and b are free, near to those of the plan before: pinned to them, tensions that the drones did not
reach would be carried on. The forces d on load and drones are what the model leaves out, constant
over a plan (offset-free: G. Pannocchia, J. Rawlings, "Disturbance models for offset-free
model-predictive control", AIChE Journal 2003; `controller.DisturbanceObserver`).

The cost is a sum of squares of x - x_ref and u, so its Hessian is constant. Constraints on thrust,
tilt, distances and obstacles are softened by one variable for each of these groups and node. A step
is one quadratic programme, linearised at the last solution (real-time iteration, M. Diehl), solved
by HPIPM (G. Frison, M. Diehl, IFAC 2020), which CasADi brings along.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.rotations import matrix
from musls_description.numerics.vectors import add_scaled, column, dot, put, sub
from musls_description.system.obstacles import (
    PLANE,
    AnyObstacle,
    GateObstacle,
    depth_and_normal,
    solid,
)

P = slice(0, 3)
Q = slice(3, 7)
V = slice(7, 10)
W = slice(10, 13)
"""Places of the load's position, quaternion, velocity and body rate in a state."""

POSE = 13
HPIPM = {"iter_max": 40, "res_g_max": 1e-3, "res_b_max": 1e-5, "res_d_max": 1e-4, "res_m_max": 1e-3}
"""Tolerance of its iterations: a plan needs no more digits than the flight keeps."""

GROUPS = 3
"""Groups of constraints that share a slack: thrust and tilt, distances, obstacles."""


@dataclass(frozen=True)
class SlungModel:
    """The system as the problem models it.

    Attributes:
        mass_kg: Load with half of all cables.
        inertia_kg_m2: Inertia of load with half of all cables, (3, 3).
        attachments_m: Attachments about its centre of mass, load frame, (n, 3).
        lengths_m: Lengths of the cables, (n,).
        hooks_m: Level places of the cables' upper ends from the drones' centres, (n, 3).
        drone_mass_kg: Drones with half of their cable, (n,).
        box_m: Centre and half edges of the load's box about its centre of mass, (2, 3).
        gravity_m_s2: Gravity.
        disturbance_n: Forces d on load and drones, world, (1 + n, 3), symbols or numbers; None for
            none.
        yaw_held: Whether cables that do not twist let the drones' yaw hold the load's: then its yaw
            rate goes on, whatever the cables pull.
    """

    mass_kg: float
    inertia_kg_m2: Array
    attachments_m: Array
    lengths_m: Array
    hooks_m: Array
    drone_mass_kg: Array
    box_m: Array
    gravity_m_s2: float
    disturbance_n: Any = None
    yaw_held: bool = False


@dataclass(frozen=True)
class Bounds:
    """Limits that a plan keeps.

    Attributes:
        tension_n: Least and largest tension of a cable.
        thrust_n: Least and largest thrust of each drone, (2, n).
        tilt_rad: Largest tilt of a drone's thrust.
        load_tilt_rad: Largest tilt of the load.
        apart_m: Least distance of two drones' centres.
    """

    tension_n: tuple[float, float]
    thrust_n: Array
    tilt_rad: float
    load_tilt_rad: float
    apart_m: float


@dataclass(frozen=True)
class Weights:
    """Costs of one unit squared.

    Attributes:
        state: (13 + 11 n,); quaternions count as such, a quarter of the angle squared.
        control: (4 n,).
        start: Weights of a, t and b where a plan begins, against the plan before, (5 n,).
        slack: Linear and quadratic cost of breaking a group of constraints.
    """

    state: Array
    control: Array
    start: Array
    slack: tuple[float, float]


def _rotation(q: Any) -> Any:
    w, x, y, z = (q[i] for i in range(4))
    return ca.vertcat(
        ca.horzcat(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        ca.horzcat(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        ca.horzcat(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def _cable_states(x: Any, n: int) -> tuple[list[Any], list[Any], list[Any], Any, Any]:
    """Directions, rates, angular accelerations, tensions and their rates."""
    s, r, a = ([x[k + 3 * i : k + 3 * i + 3] for i in range(n)] for k in _vectors(n))
    t = POSE + 9 * n
    return s, r, a, x[t : t + n], x[t + n : t + 2 * n]


def _vectors(n: int) -> tuple[int, int, int]:
    return POSE, POSE + 3 * n, POSE + 6 * n


def _load_accelerations(body: SlungModel, x: Any) -> tuple[Any, Any]:
    """Linear, world, and angular, body."""
    s, _, _, t, _ = _cable_states(x, len(body.lengths_m))
    turn = _rotation(x[Q]).T
    w = x[W]
    inertia = ca.DM(body.inertia_kg_m2)
    linear = ca.vertcat(0, 0, -body.gravity_m_s2) + _disturbance(body, 0) / body.mass_kg
    moment = -ca.cross(w, inertia @ w)
    for k, arm in enumerate(body.attachments_m):
        linear = linear - t[k] / body.mass_kg * s[k]
        moment = moment + t[k] * ca.cross(turn @ s[k], ca.DM(arm))
    angular = ca.inv(inertia) @ moment
    if body.yaw_held:
        angular = ca.vertcat(angular[:2], 0.0)
    return linear, angular


def _disturbance(body: SlungModel, k: int) -> Any:
    return ca.DM.zeros(3) if body.disturbance_n is None else body.disturbance_n[k, :].T


def rate(body: SlungModel, x: Any, u: Any) -> Any:
    """Rate of a state; equations in the module's docstring."""
    n = len(body.lengths_m)
    s, r, a, _, b = _cable_states(x, n)
    linear, angular = _load_accelerations(body, x)
    q = x[Q]
    w = x[W]
    spin = 0.5 * ca.vertcat(-ca.dot(q[1:], w), q[0] * w + ca.cross(q[1:], w))
    swings = [ca.cross(ri, si) for ri, si in zip(r, s, strict=True)]
    return ca.vertcat(x[V], spin, linear, angular, *swings, *a, u[: 3 * n], b, u[3 * n :])


def drone_motion(body: SlungModel, x: Any, i: int) -> tuple[Any, Any, Any, Any, Any]:
    """Position, velocity, acceleration, force of the rotors and of the cable of a drone, world."""
    s, r, a, t, _ = (part[i] for part in _cable_states(x, len(body.lengths_m)))
    turn = _rotation(x[Q])
    w = x[W]
    arm = ca.DM(body.attachments_m[i])
    length = body.lengths_m[i]
    linear, angular = _load_accelerations(body, x)
    swing = ca.cross(r, s)
    position = x[P] + turn @ arm - length * s - ca.DM(body.hooks_m[i])
    velocity = x[V] + turn @ ca.cross(w, arm) - length * swing
    acceleration = (
        linear
        + turn @ (ca.cross(angular, arm) + ca.cross(w, ca.cross(w, arm)))
        - length * (ca.cross(a, s) + ca.cross(r, swing))
    )
    up = ca.vertcat(0, 0, body.gravity_m_s2)
    force = body.drone_mass_kg[i] * (acceleration + up) - t * s - _disturbance(body, 1 + i)
    return position, velocity, acceleration, force, t * s


class Problem:
    """The problem on a grid of times, and its Gauss-Newton step.

    Attributes:
        n: Number of cables.
        times_s: Times of the nodes from the plan's beginning, (N + 1,).
        nx: Length of a state.
        nu: Length of an input with the slacks.
        disturbance_n: Forces d in the plans to come, (1 + n, 3).
        shapes: Sparsity of the quadratic programme, for other solvers of CasADi.
    """

    def __init__(
        self, body: SlungModel, bounds: Bounds, weights: Weights, steps_s: Array, planes: Planes
    ) -> None:
        self.body = body
        self._weights = weights
        self._planes = planes
        self.n = n = len(body.lengths_m)
        self.nodes = len(steps_s)
        self.nx = POSE + 11 * n
        self.nu = 4 * n + GROUPS
        self._steps_s = steps_s
        self.disturbance_n = np.zeros((1 + n, 3))
        self._d = ca.SX.sym("d", 1 + n, 3)
        self._disturbed = disturbed = replace(body, disturbance_n=self._d)
        self.times_s = np.concatenate([[0.0], np.cumsum(steps_s)])
        motion = ca.SX.sym("x", self.nx)
        columns = [ca.horzcat(*drone_motion(disturbed, motion, i)) for i in range(n)]
        drones = ca.Function("drones", [motion, self._d], [ca.horzcat(*columns)])
        self._drones = drones.map(self.nodes + 1)
        self._programme = self._gauss_newton(bounds)

    def _integrated(self, x: Any, u: Any, dt: Any) -> Any:
        """One Runge-Kutta step of fourth order, with unit quaternion and directions."""
        inputs = u[: 4 * self.n]
        k1 = rate(self._disturbed, x, inputs)
        k2 = rate(self._disturbed, x + dt / 2 * k1, inputs)
        k3 = rate(self._disturbed, x + dt / 2 * k2, inputs)
        k4 = rate(self._disturbed, x + dt * k3, inputs)
        y = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        first, after = _vectors(self.n)[:2]
        units = [y[k : k + 3] for k in range(first, after, 3)]
        units = [one / ca.norm_2(one) for one in units]
        return ca.vertcat(y[P], y[Q] / ca.norm_2(y[Q]), y[V], y[W], *units, y[after:])

    def _constraints(self, bounds: Bounds, x: Any, planes: Any) -> list[list[Any]]:
        """Functions that shall not be negative, by their groups."""
        drones = [drone_motion(self._disturbed, x, i) for i in range(self.n)]
        thrust = []
        for i, (_, _, _, force, _) in enumerate(drones):
            size = ca.norm_2(force)
            low, high = bounds.thrust_n[:, i]
            thrust += [high - size, size - low, force[2] - np.cos(bounds.tilt_rad) * size]
        places = [drone[0] for drone in drones]
        apart = [
            ca.norm_2(places[i] - places[j]) - bounds.apart_m
            for i in range(self.n)
            for j in range(i)
        ]
        turn = _rotation(x[Q])
        level = [turn[2, 2] - np.cos(bounds.load_tilt_rad)]
        ends = [x[P] + turn @ ca.DM(arm) for arm in self.body.attachments_m]
        box = self.body.box_m
        clear = self._planes.clearances(planes, x[P] + turn @ ca.DM(box[0]), turn, places, ends)
        return [thrust, [*apart, *level], clear]

    def _linearised(self, bounds: Bounds) -> tuple[ca.Function, ca.Function, ca.Function]:
        """Dynamics from the free states of node 0 and from those of others, and constraints.

        With a matrix M row by row, x+ = M (x, u) - gap is the linearised dynamics, and
        M x >= low are the constraints without their slacks.
        """
        x = ca.SX.sym("x", self.nx)
        u = ca.SX.sym("u", self.nu)
        dt = ca.SX.sym("dt")
        after = self._integrated(x, u, dt)
        dynamics = []
        for variables in (ca.vertcat(x[POSE + 6 * self.n :], u), ca.vertcat(x, u)):
            by_both = ca.jacobian(after, ca.vertcat(x, u))[:, -variables.numel() :]
            gap = by_both @ variables - after
            outputs = [gap, ca.vec(ca.densify(by_both).T)]
            dynamics.append(ca.Function("dynamics", [x, u, dt, self._d], outputs))
        planes = ca.SX.sym("planes", self._planes.columns)
        groups = self._constraints(bounds, x, planes)
        rows = ca.vertcat(*(ca.vertcat(*group) for group in groups))
        self._group = np.repeat(np.arange(GROUPS), [len(group) for group in groups])
        slope = ca.densify(ca.jacobian(rows, x))
        outputs = [slope @ x - rows, ca.vec(slope.T)]
        path = ca.Function("path", [x, planes, self._d], outputs)
        return dynamics[0], dynamics[1], path

    def _gauss_newton(self, bounds: Bounds) -> ca.Function:
        """Quadratic programme of a step, from states, inputs, reference and planes; the solver."""
        first, later, path = self._linearised(bounds)
        n = self.n
        nx = self.nx
        nu = self.nu
        N = self.nodes
        rows = len(self._group)
        x = ca.MX.sym("x", nx, N + 1)
        u = ca.MX.sym("u", nu, N)
        reference = ca.MX.sym("reference", nx, N + 1)
        planes = ca.MX.sym("planes", self._planes.columns, N - 1)
        d = ca.MX.sym("d", 1 + n, 3)
        gap_0, matrix_0 = first(x[:, 0], u[:, 0], self._steps_s[0], d)
        each = ca.repmat(d, 1, N - 1)
        gaps, matrices = later.map(N - 1)(x[:, 1:N], u[:, 1:], self._steps_s[1:], each)
        lows, slopes = path.map(N - 1)(x[:, 1:N], planes, each)

        # Variables x0 (free part), u0, x1, u1, ...; rows dynamics 0, dynamics 1, constraints 1, ...
        sizes = [5 * n, *[nx] * N]
        begin = np.cumsum([0, *(size + nu for size in sizes)])
        pattern = []
        values = []
        low = []
        high = []
        row = 0
        for k in range(N):
            own = begin[k]
            end = begin[k + 1]
            pattern.append(_dense(row, nx, np.arange(own, end)))
            pattern.append((np.arange(row, row + nx), np.arange(end, end + nx)))
            values += [matrices[:, k - 1] if k else matrix_0, ca.MX(-np.ones(nx))]
            low.append(gaps[:, k - 1] if k else gap_0)
            high.append(low[-1])
            row += nx
            if k:
                slack = own + nx + 4 * n + self._group
                pattern.append(_dense(row, rows, np.arange(own, own + nx)))
                pattern.append((np.arange(row, row + rows), slack))
                values += [slopes[:, k - 1], ca.MX(np.ones(rows))]
                low.append(lows[:, k - 1])
                high.append(ca.MX(np.full(rows, np.inf)))
                row += rows
        at = np.concatenate([b[0] for b in pattern]), np.concatenate([b[1] for b in pattern])
        order = np.lexsort(at)
        total = int(begin[-1]) - nu
        starts = np.r_[0, np.cumsum(np.bincount(at[1], minlength=total))]
        sparsity = ca.Sparsity(row, total, starts.tolist(), at[0][order].tolist())
        matrix = ca.MX(sparsity, ca.vertcat(*values)[order.tolist()])

        diagonal, linear, least, most = self._costs_and_bounds(bounds)
        goal = [reference[-5 * n :, 0], *(reference[:, k] for k in range(1, N + 1))]
        goal = [part for one in goal for part in (one, ca.MX.zeros(nu))][:-1]
        options = {
            "N": N,
            "nx": sizes,
            "nu": [*[nu] * N, 0],
            "ng": [0, *[rows] * (N - 1), 0],
            "hpipm": HPIPM,
            "error_on_fail": False,
        }
        self.shapes = {"h": ca.Sparsity.diag(total), "a": sparsity}
        self._solver = ca.conic("programme", "hpipm", self.shapes, options)
        self._fixed = {"h": ca.diag(ca.DM(diagonal)), "lbx": least, "ubx": most}
        states = [slice(b, b + size) for b, size in zip(begin, sizes, strict=False)]
        self._places = states, [slice(one.stop, one.stop + nu) for one in states[:-1]]
        outputs = [
            linear - diagonal * ca.vertcat(*goal),
            matrix,
            ca.vertcat(*low),
            ca.vertcat(*high),
        ]
        names = ["g", "a", "lba", "uba"]
        arguments = ["x", "u", "reference", "planes", "d"]
        return ca.Function("programme", [x, u, reference, planes, d], outputs, arguments, names)

    def _costs_and_bounds(self, bounds: Bounds) -> tuple[Array, Array, Array, Array]:
        """Hessian's diagonal, linear costs, least and largest values of the variables."""
        n = self.n
        w = self._weights
        none = np.full(3 * self.n, np.inf)
        free = np.full(n, np.inf)
        end = {
            sign: np.r_[sign * none, np.full(n, t), sign * free]
            for sign, t in zip((-1, 1), bounds.tension_n, strict=True)
        }
        before = np.full(self.nx - 5 * n, np.inf)
        slack = np.ones(GROUPS)
        diagonal = []
        linear = []
        least = []
        most = []
        for k in range(self.nodes + 1):
            # A sum over nodes at different distances stands for an integral.
            share = self._steps_s[min(k, self.nodes - 1)] / self._steps_s.mean()
            diagonal += [share * w.state if k else w.start]
            linear += [np.zeros(len(diagonal[-1]))]
            least += [np.r_[-before, end[-1]] if k else end[-1]]
            most += [np.r_[before, end[1]] if k else end[1]]
            if k < self.nodes:
                diagonal += [share * np.r_[w.control, w.slack[1] * slack]]
                linear += [np.r_[np.zeros(4 * n), share * w.slack[0] * slack]]
                least += [np.r_[np.full(4 * n, -np.inf), 0.0 * slack]]
                most += [np.full(self.nu, np.inf)]
        costs = np.concatenate(diagonal), np.concatenate(linear)
        return *costs, np.concatenate(least), np.concatenate(most)

    def programme(self, x: Array, u: Array, reference: Array) -> dict[str, Any]:
        """Arguments of the quadratic programme's solver for a step, see `solve`."""
        drones = self.drones(x)[1:-1, :, 0]
        inner = x[1:-1]
        directions = inner[:, POSE : POSE + 3 * self.n].reshape(-1, self.n, 3)
        ends = drones + self.body.hooks_m + self.body.lengths_m[:, None] * directions
        planes = self._planes.around(inner[:, P], drones, ends)
        inputs = {"x": x.T, "u": u.T, "reference": reference.T, "planes": planes.T}
        outputs = self._programme(**inputs, d=self.disturbance_n)
        return {**outputs, **self._fixed}

    def solve(self, x: Array, u: Array, reference: Array) -> tuple[Array, Array, bool]:
        """Return states (N + 1, nx) and inputs (N, nu) after a step, and whether it was solved.

        `x` and `u` are the last solution, but for the measured beginning in x[0]; `reference` holds
        the wanted states, in its first row a, t and b of the plan before. Without numbers as an
        answer both are returned as given.
        """
        z = np.array(self._solver(**self.programme(x, u, reference))["x"]).ravel()
        if not np.isfinite(z).all():
            return x, u, False
        states, inputs = self._places
        x = np.stack([np.r_[x[0, : -5 * self.n], z[states[0]]], *(z[k] for k in states[1:])])
        u = np.stack([z[k] for k in inputs])
        x[:, Q] /= np.linalg.norm(x[:, Q], axis=1, keepdims=True)
        first, end = _vectors(self.n)[:2]
        units = x[:, first:end].reshape(len(x), self.n, 3)
        x[:, first:end] = (units / np.linalg.norm(units, axis=2, keepdims=True)).reshape(len(x), -1)
        solved = bool(self._solver.stats()["success"])
        return x, u, solved

    def drones(self, x: Array) -> Array:
        """Motion of the drones by `drone_motion`, (N + 1, n, 5, 3)."""
        each = np.tile(self.disturbance_n, len(x))
        rows = np.array(self._drones(x.T, each)).T
        return np.asarray(rows.reshape(len(x), self.n, 5, 3))


def _dense(
    row: int, rows: int, columns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of a dense block, row by row."""
    return np.repeat(np.arange(row, row + rows), len(columns)), np.tile(columns, rows)


# ---------- Obstacles of a plan: planes between each body and the solids next to it
#
# A plane through the point of a convex solid that is nearest to a body, across the shortest way,
# leaves all of the solid on its other side. The body is to stay on its own, with the part of its
# size that lies along the normal: a drone is a ball, the load a box, a cable the point of it that
# comes nearest. Planes are found anew round each solution, and are as a rule exact only for balls.
#
# A gate that the load is planned through is a window instead: what comes near to its plane stays
# between the four planes of the opening, so that no cable is led round a beam.


NEAREST = 2
"""Solids that each body looks at, the nearest ones: two posts of a gate."""

SWEPT_M = 0.2
"""A window counts so far before and behind its frame: plans look at their nodes only."""

FAR_M = 2.0
"""A load nearer than this to a gate, in line with its opening, is to fly through it."""

ALONG = np.linspace(0.0, 1.0, 9)
"""Places along a cable that are watched, from load to drone."""


class Planes:
    """Planes between bodies (load, drones, cables) and solids.

    Attributes:
        columns: Numbers for a node: for each body and each of its solids the normal, the plane's
            distance from the origin and the place along a cable.
    """

    def __init__(
        self,
        obstacles: Sequence[AnyObstacle],
        n: int,
        half_edges_m: Array,
        ball_m: float,
        clear_m: float,
    ) -> None:
        """`ball_m` is a drone's radius, `clear_m` what all keep free besides."""
        self._solids = [one.solids() for one in obstacles]
        self._n = n
        self._windows = {
            k: _Window(one, float(np.linalg.norm(half_edges_m[:2])))
            for k, one in enumerate(obstacles)
            if isinstance(one, GateObstacle)
        }
        self._half_edges_m = half_edges_m
        self._ball_m = ball_m
        self._clear_m = clear_m
        self._looks = min(NEAREST, sum(map(len, self._solids)))
        self.columns = (1 + 2 * n) * self._looks * 5

    def around(self, load: Array, drones: Array, ends: Array) -> Array:
        """Planes round places of the load, (k, 3), drones and cables' lower ends, (k, n, 3).

        Returns (k, columns).
        """
        bodies = np.concatenate([load[:, None], drones, ends], axis=1)
        planes = np.zeros((len(load), 1 + 2 * self._n, self._looks, 5))
        if self._looks:
            solids = [
                self._windows[k].planes
                if k in self._windows and self._windows[k].flown(load)
                else one
                for k, one in enumerate(self._solids)
            ]
            find_planes(np.concatenate(solids), bodies, ALONG, planes)
        return planes.reshape(len(load), -1)

    def clearances(
        self, planes: Any, load: Any, turn: Any, drones: list[Any], ends: list[Any]
    ) -> list[Any]:
        """Clearances, which shall not be negative, symbolically, for one node."""
        rows = []
        for body in range(1 + 2 * self._n):
            for look in range(self._looks):
                at = 5 * (body * self._looks + look)
                normal = planes[at : at + 3]
                offset = planes[at + 3]
                along = planes[at + 4]
                if body == 0:
                    leans = turn.T @ normal
                    size = ca.dot(ca.DM(self._half_edges_m), ca.sqrt(leans**2 + 1e-6))
                    place = load
                elif body <= self._n:
                    size = self._ball_m
                    place = drones[body - 1]
                else:
                    i = body - 1 - self._n
                    size = 0.0
                    place = ends[i] + along * (drones[i] - ends[i])
                rows.append(ca.dot(normal, place) - offset - size - self._clear_m)
        return rows


class _Window:
    """The opening of a gate.

    Attributes:
        planes: Records of `SOLID` below, above and beside it, whose normals look inwards; their
            size is how near to the gate's plane they count, for the load and for all else.
    """

    def __init__(self, gate: GateObstacle, load_m: float) -> None:
        self._center = np.array(gate.position_enu_m)
        self._turn = matrix(np.array(gate.orientation_wxyz))
        self._half = 0.5 * np.array([gate.width_m, gate.height_m])
        near = 0.5 * gate.frame_m + SWEPT_M
        planes = []
        for axis, half in zip((1, 2), self._half, strict=True):
            for sign in (-1.0, 1.0):
                place = self._center + sign * half * self._turn[:, axis]
                inwards = -sign * self._turn[:, axis]
                through = self._turn[:, 0]
                axes = np.stack([through, np.cross(inwards, through), inwards], axis=1)
                planes.append(solid(PLANE, place, axes, (near + load_m, near, 0.0)))
        self.planes = np.concatenate(planes)

    def flown(self, load: Array) -> bool:
        """Whether a path of the load, (k, 3), leads through the opening."""
        x, *beside = ((load - self._center) @ self._turn).T
        inside = np.all(np.abs(np.array(beside).T) < self._half, axis=1)
        return bool((inside & (np.abs(x) < FAR_M)).any())


@compiled()
def find_planes(solids, bodies, shares, found):
    """Write normal, offset and place along a cable for the nearest solids of each body.

    Bodies are load, drones and the cables' lower ends, (k, 1 + 2 n, 3).
    """
    n = (bodies.shape[1] - 1) // 2
    looks = found.shape[2]
    depths = np.empty(len(solids))
    planes = np.empty((len(solids), 5))
    for k in range(len(bodies)):
        for body in range(1 + 2 * n):
            place = bodies[k, body]
            cable = body > n
            reach = sub(bodies[k, body - n], place) if cable else (0.0, 0.0, 0.0)
            for j in range(len(solids)):
                depths[j] = -math.inf
                for share in shares if cable else shares[:1]:
                    point = add_scaled(place, share, reach)
                    depth, normal = depth_and_normal(solids[j], point)
                    near = solids[j].size[0 if body == 0 else 1]
                    if solids[j].kind == PLANE and near > 0.0:
                        away = dot(column(solids[j].rotation, 0), sub(point, solids[j].position))
                        if abs(away) > near:
                            depth = -1e6
                    if depth > depths[j]:
                        depths[j] = depth
                        put(planes[j], normal)
                        offset = dot(point, normal) + depth
                        planes[j, 3] = offset
                        planes[j, 4] = share
            for look in range(looks):
                j = depths.argmax()
                found[k, body, look] = planes[j]
                depths[j] = -math.inf
