"""`nmpc`: plans of the whole system over the next second or two, and a tracker that flies them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from time import thread_time
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from musls_control.controllers import Controller, ControlLevel, ControlSetup
from musls_control.controllers.payload.allocation import shares_of
from musls_control.controllers.payload.controller import Output
from musls_control.controllers.payload.model import PayloadModel, attitude_lag_s
from musls_control.estimate import Estimate
from musls_control.px4.allocation import rotor_lag_s
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError, MuslsError, install_command
from musls_description.config.schema import NonNegative, Positive, spec
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw, matrix, rotate
from musls_description.system.drone import tip_radius_m
from musls_description.system.obstacles import GateObstacle
from musls_description.system.slung_system import SlungLoadSystem, formation_of

if TYPE_CHECKING:
    from musls_control.controllers.nmpc.ocp import Problem, Weights


@spec
class NmpcSpec:
    """Optimal control of load and cables over a horizon, replanned in flight, with look-ahead.

    Attributes:
        kind: "nmpc".
        output: "autopilot" flies by acceleration set-points, "direct" without an autopilot.
        horizon_s: Time that a plan looks ahead.
        steps: Steps of a plan; they grow, the last is four times the first.
        rate_hz: Plans a second.
        compute_delay: Delay of a plan: "measured", after the processor time of its
            computation (flights are not repeatable); "fixed", after `delay_s`; "none", at once.
        delay_s: The fixed one.
        least_tension_n: Smallest tension that a plan keeps in every cable; by default a tenth of
            its share of the load's weight.
        largest_tension_n: Largest tension; by default none.
        thrust_share: Largest thrust of a plan over that of the rotors.
        largest_tilt_rad: Largest tilt of a drone.
        largest_load_tilt_rad: Largest tilt of the load.
        apart_m: Least distance of two drones' centres; by default 1.6 times the one at which their
            rotor tips can touch.
        clearance_m: Room that drones, load and cables leave to obstacles.
        position_1_s2: Acceleration of a drone per error of its position.
        velocity_1_s: Acceleration of a drone per error of its velocity.
        disturbance_1_s: Bandwidth of the observer of the forces that a plan leaves out (a heavier
            load, wind, weak rotors); 0 for none, as always with `autopilot.tracker: indi`, which
            makes up for them itself.
    """

    kind: Literal["nmpc"] = "nmpc"
    output: Output = "direct"
    horizon_s: Annotated[float, Field(ge=0.2, le=10.0)] = 1.6
    steps: Annotated[int, Field(ge=4, le=100)] = 16
    rate_hz: Annotated[float, Field(ge=1.0, le=125.0)] = 10.0
    compute_delay: Literal["measured", "fixed", "none"] = "fixed"
    delay_s: Annotated[float, Field(ge=0.0, le=1.0)] = 0.04
    least_tension_n: NonNegative | None = None
    largest_tension_n: Positive | None = None
    thrust_share: Annotated[float, Field(gt=0.0, le=1.0)] = 0.9
    largest_tilt_rad: Annotated[float, Field(gt=0.0, le=1.5)] = 1.2
    largest_load_tilt_rad: Annotated[float, Field(gt=0.0, le=math.pi)] = math.pi
    apart_m: NonNegative | None = None
    clearance_m: NonNegative = 0.05
    position_1_s2: NonNegative = 5.0
    velocity_1_s: NonNegative = 4.0
    disturbance_1_s: Annotated[float, Field(ge=0.0, le=10.0)] = 0.5

    def build(self, setup: ControlSetup) -> Controller:
        """Make the controller."""
        system = formation_of(setup.system, "controller.kind = nmpc")
        if setup.rods:
            raise ConfigError(
                "controller.kind = nmpc plans with cables: cable_model: rigid_rods has none"
            )
        _check_gates(setup, self.clearance_m)
        try:
            import musls_control.controllers.nmpc.ocp  # noqa: F401 (the extra is looked for before the flight)
        except ModuleNotFoundError as error:
            if error.name != "casadi":
                raise
            raise MuslsError(
                f"controller.kind = nmpc needs CasADi: {install_command('casadi')}"
            ) from None
        return NmpcController(self, replace(setup, system=system))


def _check_gates(setup: ControlSetup, clearance_m: float) -> None:
    """Refuse gates that the load does not fit through in any attitude."""
    need = np.sort(setup.slung.load.collision.size_m)[:2] + 2.0 * clearance_m
    for gate in setup.obstacles:
        if isinstance(gate, GateObstacle):
            opening = np.sort([gate.width_m, gate.height_m])
            if (opening < need).any():
                raise ConfigError(
                    f"world.obstacles: gate '{gate.name}' opens {gate.width_m:g} x "
                    f"{gate.height_m:g} m, the load with clearance_m needs "
                    f"{need[0]:g} x {need[1]:g} m"
                )


@dataclass(frozen=True)
class PlannedMotion:
    """States of a plan at its nodes, and what the drones do.

    Attributes:
        begin_s: Time of the first node.
        times_s: Times of the nodes from there, (N + 1,).
        x: States, (N + 1, nx).
        u: Inputs between the nodes, (N, nu).
        drones: Positions, velocities, accelerations, forces of rotors and cables, (N + 1, n, 5, 3).
    """

    begin_s: float
    times_s: Array
    x: Array
    u: Array
    drones: Array

    def at(self, time_s: float) -> Array:
        """Positions, velocities, accelerations, forces of rotors and cables, (n, 5, 3)."""
        k, share = self._place(time_s)
        between: Array = (1.0 - share) * self.drones[k] + share * self.drones[k + 1]
        # A straight line between two positions is too short by a h^2 / 8.
        h = self.times_s[k + 1] - self.times_s[k]
        bulge = 0.5 * share * (1.0 - share) * h * h
        between[:, 0] -= bulge * between[:, 2]
        return between

    def states(self, time_s: Array) -> tuple[Array, Array]:
        """States at times, (k, nx), and the inputs from there on, (k, nu)."""
        places = [self._place(time) for time in time_s]
        states = [(1.0 - f) * self.x[k] + f * self.x[k + 1] for k, f in places]
        return np.array(states), np.array([self.u[k] for k, _ in places])

    def _place(self, time_s: float) -> tuple[int, float]:
        since = min(max(time_s - self.begin_s, 0.0), self.times_s[-1])
        k = min(int(np.searchsorted(self.times_s, since, "right")) - 1, len(self.times_s) - 2)
        return k, (since - self.times_s[k]) / (self.times_s[k + 1] - self.times_s[k])


STALE_SHARE = 0.5
"""A plan older than this share of its horizon is not flown any more."""

FIRST_STEPS = 6
"""Steps of the solver for the first plan, which is there before the flight goes on."""


class NmpcController(Controller):
    """Plans at `rate_hz` and tracks the plan with position, velocity and feed-forward.

    Attributes:
        problem: The optimal control problem.
        solve_s: Processor time of each plan so far but those that had none before.
    """

    level = ControlLevel.FORCES

    def __init__(self, spec: NmpcSpec, setup: ControlSetup) -> None:
        if spec.output == "autopilot":
            self.level = ControlLevel.AUTOPILOT_FORCES  # type: ignore[misc]  # by the scenario
        self._spec = spec
        self._setup = setup
        self._model = model = PayloadModel(setup)
        system = setup.slung
        n = setup.slung.n_drones
        self._gravity = np.array([0.0, 0.0, -setup.gravity_m_s2])
        self._shares = shares_of(model.attachments_m, model.resting_n)
        direct = spec.output == "direct"
        self._ahead_s = attitude_lag_s(system, setup.gravity_m_s2, direct)
        self._every = max(1, round(1.0 / (spec.rate_hz * setup.period_s)))
        self.problem = _problem(spec, setup, model)
        bandwidth_1_s = 0.0 if setup.incremental else spec.disturbance_1_s
        self._observer = DisturbanceObserver(system, model, bandwidth_1_s)
        self.solve_s: list[float] = []
        self._plans = self._failures = 0
        self._commands = np.zeros((n, 10))
        self.happened: list[tuple[str, str]] = []

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Begin without a plan."""
        self._plan: PlannedMotion | None = None
        self._coming: tuple[float, PlannedMotion | None] | None = None
        self._next_s = time_s
        self._failed = self._fell_back = False
        self._observer.start(time_s, estimate)

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Forces of the rotors, yaws, no moments, forces counted on, (n, 10)."""
        if time_s >= self._next_s - 1e-9 and self._coming is None:
            self._next_s = time_s + self._every * self._setup.period_s
            took_s, new_plan = self._replan(time_s, reference, estimate)
            self._coming = time_s + took_s, new_plan
        if self._coming is not None and time_s >= self._coming[0] - 1e-9:
            self._take(time_s, self._coming[1])
            self._coming = None
        plan = self._plan
        if plan is not None and time_s - plan.begin_s > STALE_SHARE * plan.times_s[-1]:
            plan = None
        if (plan is None) != self._fell_back:
            self._fell_back = plan is None
            what = "no fresh plan: formation until there is one" if plan is None else "plans again"
            self.happened.append(("plan_stale" if plan is None else "plan_resumed", what))
        model = self._model
        if plan is None:
            target = target_ahead = self._formation(reference)
        else:
            target = plan.at(time_s)
            target_ahead = plan.at(time_s + self._ahead_s)
        mass = model.drone_mass_kg[:, None]
        drones = estimate.drones
        settings = self._spec
        out = self._commands
        back = settings.position_1_s2 * (target[:, 0] - drones.position_enu_m)
        back += settings.velocity_1_s * (target[:, 1] - drones.velocity_enu_m_s)
        out[:, 0:3] = target_ahead[:, 3] + mass * back
        out[:, 3] = model.yaws_rad + reference.yaw_rad
        out[:, 7:10] = mass * target_ahead[:, 2] - target_ahead[:, 3]
        tension_n = np.linalg.norm(target[:, 4], axis=1, keepdims=True)
        _, gap = self._cables(estimate)
        pull_n = tension_n * gap / np.linalg.norm(gap, axis=1, keepdims=True)
        self._observer.step(time_s, out[:, 0:3], pull_n, estimate)
        return out

    def numbers(self) -> dict[str, float]:
        """Plans, those that failed, and processor times without those of first plans."""
        if not self.solve_s:
            return {"plans": self._plans}
        times_ms = 1e3 * np.array(self.solve_s)
        return {
            "plans": self._plans,
            "plans_failed": self._failures,
            "solve_median_ms": float(np.median(times_ms)),
            "solve_p95_ms": float(np.percentile(times_ms, 95.0)),
            "solve_max_ms": float(times_ms.max()),
        }

    def _take(self, time_s: float, new_plan: PlannedMotion | None) -> None:
        """Fly a new plan, or the one before if there is none."""
        if new_plan is not None:
            self._plan = new_plan
            self._failed = False
            return
        self._failures += 1
        if not self._failed:
            self._failed = True
            self.happened.append(("plan_failed", "the solver found no plan: the last one goes on"))

    # ---------- Planning

    def _replan(
        self, time_s: float, reference: LoadReference, estimate: Estimate
    ) -> tuple[float, PlannedMotion | None]:
        """A plan from the estimate on, None if none was found, and the time until it is there."""
        begin_s = thread_time()
        problem = self.problem
        before = self._plan
        state = self._measured(estimate)
        directions = state[13:].reshape(2, -1, 3)[0]
        problem.disturbance_n[:] = self._observer.disturbances_n(directions)
        targets = self._wanted(reference)
        if before is None or self._failed:
            x = targets.copy()
            u = np.zeros((problem.nodes, problem.nu))
            steps = FIRST_STEPS
        else:
            times_s = time_s + problem.times_s
            steps = 1
            x, u = before.states(times_s)
            beyond = times_s > before.begin_s + before.times_s[-1]
            x[beyond] = targets[beyond]
            u[beyond] = 0.0
            u = u[:-1]
        x[0, : len(state)] = state
        targets[0] = x[0]
        _same_sign(x)
        _same_sign(targets)
        solved = False
        for _ in range(steps):
            x, u, solved = problem.solve(x, u, targets)
        took_s = thread_time() - begin_s
        self._plans += 1
        new_plan = (
            PlannedMotion(time_s, problem.times_s, x, u, problem.drones(x)) if solved else None
        )
        if before is None:
            return 0.0, new_plan
        self.solve_s.append(took_s)
        delays_s = {"measured": took_s, "fixed": self._spec.delay_s, "none": 0.0}
        return delays_s[self._spec.compute_delay], new_plan

    def _measured(self, estimate: Estimate) -> Array:
        """Load, directions and angular velocities of the cables, as a state begins, (13 + 6 n,)."""
        load = estimate.records[0]
        drones = estimate.drones
        turn = matrix(load["attitude"])
        arms, gap = self._cables(estimate)
        length = np.linalg.norm(gap, axis=1, keepdims=True)
        s = gap / length
        moving = load["velocity"] + np.cross(turn @ load["omega"], arms) - drones.velocity_enu_m_s
        r = np.cross(s, moving) / length
        body = [load[name] for name in ("position", "attitude", "velocity", "omega")]
        return np.concatenate([*body, s.ravel(), r.ravel()])

    def _cables(self, estimate: Estimate) -> tuple[Array, Array]:
        """Attachments from the load's centre and the cables from drone to load, world, (n, 3)."""
        model = self._model
        load = estimate.records[0]
        drones = estimate.drones
        arms = model.attachments_m @ matrix(load["attitude"]).T
        hooks = rotate(drones.orientation_wxyz, model.hooks_m)
        return arms, load["position"] + arms - drones.position_enu_m - hooks

    def _wanted(self, reference: LoadReference) -> Array:
        """States of the reference at the nodes, cables as near to the formation as it allows."""
        model = self._model
        n = len(self._model.lengths_m)
        problem = self.problem
        derivatives, tilts = reference.coming(problem.times_s)
        x = np.zeros((len(derivatives), problem.nx))
        for k, (row, tilt) in enumerate(zip(derivatives, tilts, strict=True)):
            then = replace(reference, derivatives=row, tilt=tilt)
            turn = then.rotation
            push = model.mass_kg * (row[2, :3] - self._gravity) - problem.disturbance_n[0]
            push = turn.T @ push
            w = then.omega_body_rad_s
            moment = model.inertia_kg_m2 @ then.alpha_body_rad_s2
            moment += np.cross(w, model.inertia_kg_m2 @ w)
            pull = self._shares @ np.concatenate([push, moment, [1.0]])
            pull = pull.reshape(n, 3) @ turn.T
            tension = np.maximum(np.linalg.norm(pull, axis=1), 1e-3)
            s = -pull / tension[:, None]
            x[k, :13] = np.r_[row[0, :3], then.orientation_wxyz, row[1, :3], w]
            x[k, 13 : 13 + 3 * n] = s.ravel()
            x[k, 13 + 9 * n : 13 + 10 * n] = tension
        s = x[:, 13 : 13 + 3 * n].reshape(-1, n, 3)
        r = np.cross(s, np.gradient(s, problem.times_s, axis=0))
        x[:, 13 + 3 * n : 13 + 6 * n] = r.reshape(-1, 3 * n)
        return x

    def _formation(self, reference: LoadReference) -> Array:
        """Places in formation round the load's reference, as `PlannedMotion.at` returns them."""
        model = self._model
        turn = from_yaw(np.array(reference.yaw_rad))
        motion = np.zeros((len(model.yaws_rad), 5, 3))
        motion[:, 0] = reference.position_enu_m + rotate(turn, model.formation_m)
        motion[:, 1] = reference.velocity_enu_m_s
        motion[:, 2] = reference.acceleration_enu_m_s2
        pull = rotate(turn, model.resting_n)
        specific_force_m_s2 = motion[:, 2] - self._gravity
        motion[:, 3] = model.drone_mass_kg[:, None] * specific_force_m_s2 + pull
        motion[:, 4] = -pull
        return motion


def _same_sign(x: Array) -> None:
    """Choose at each node the sign of the quaternion that is nearer to the last node's."""
    for k in range(1, len(x)):
        if x[k, 3:7] @ x[k - 1, 3:7] < 0.0:
            x[k, 3:7] *= -1.0


def _problem(settings: NmpcSpec, setup: ControlSetup, model: PayloadModel) -> Problem:
    """The optimal control problem of a system."""
    from musls_control.controllers.nmpc.ocp import Bounds, Planes, Problem, SlungModel

    system = setup.slung
    n = setup.slung.n_drones
    box = system.load.collision
    center_m = np.array(box.center_m) + model.attachments_m[0] - system.load.cable_attachments_m[0]
    half_m = 0.5 * np.array(box.size_m)
    body = SlungModel(
        model.mass_kg,
        model.inertia_kg_m2,
        model.attachments_m,
        model.lengths_m,
        model.level_hooks_m,
        model.drone_mass_kg,
        np.stack([center_m, half_m]),
        setup.gravity_m_s2,
        # An autopilot holds the drones' yaw, and the load's through cables that do not twist. A
        # plan that lets cables turn the load there moves the drones with it, ever further round.
        yaw_held=settings.output == "autopilot" and any(c.twist == "locked" for c in system.cables),
    )
    share_n = model.mass_kg * setup.gravity_m_s2 / n
    least_n = 0.1 * share_n if settings.least_tension_n is None else settings.least_tension_n
    largest_n = settings.largest_tension_n or 1e3 * share_n
    if largest_n <= max(least_n, share_n):
        raise ConfigError(
            f"controller.largest_tension_n = {largest_n:g} N must be above least_tension_n = "
            f"{least_n:.3g} N and a cable's share of the load, {share_n:.3g} N"
        )
    most_n = np.array([drone.max_thrust_n for drone in system.drones])
    radius_m = max(map(tip_radius_m, system.drones))
    bounds = Bounds(
        (least_n, largest_n),
        np.stack([0.05 * most_n, settings.thrust_share * most_n]),
        settings.largest_tilt_rad,
        settings.largest_load_tilt_rad,
        3.2 * radius_m if settings.apart_m is None else settings.apart_m,
    )
    growth = np.linspace(0.4, 1.6, settings.steps)
    steps_s = settings.horizon_s / settings.steps * growth
    planes = Planes(setup.obstacles, n, half_m, radius_m, settings.clearance_m)
    return Problem(body, bounds, _weights(n, share_n), steps_s, planes)


def _weights(n: int, share_n: float) -> Weights:
    """Costs per metre, radian, ... squared; tensions count by their share of the load's weight."""
    from musls_control.controllers.nmpc.ocp import Weights

    load = [60.0, 60.0, 80.0, *[120.0] * 4, 18.0, 18.0, 22.0, *[1.0] * 3]
    cables = [*[1.0] * 3 * n, *[1.0] * 3 * n, *[0.05] * 3 * n]
    tension = 1.0 / share_n**2
    rate = 0.1 / share_n**2
    state = np.r_[load, cables, [tension] * n, [rate] * n]
    control = np.r_[[1e-3] * 3 * n, [0.1 / share_n**2] * n]
    start = np.r_[[0.5] * 3 * n, [10.0 * tension] * n, [rate] * n]
    return Weights(state, control, start, (300.0, 3000.0))


# ---------- Forces that a plan does not know


MOST_SHARE = 0.5
"""Largest disturbance over a body's weight: beyond it, something else holds the body."""


class DisturbanceObserver:
    """Forces on load and drones that a plan does not know: a heavier load, wind, weak rotors.

    Momentum observers (A. De Luca, R. Mattone, "Sensorless robot collision detection and hybrid
    force/motion control", IEEE ICRA 2005; T. Tomic, C. Ott, S. Haddadin, "External wrench
    estimation, collision detection, and reflex reaction for flying robots", IEEE T-RO 2017), one
    for each body:

        e^ = K (m v - int (F + m g + c + e^) dt),

    so e^ is the force e that is missing, behind a low-pass of K. F is the thrust that was
    commanded, behind the lag of the rotors, along the measured z axis of the drone; c the planned
    pull of the cables. Neither accelerations nor tensions have to be measured. What the cables
    really pull is not known, therefore: with s the direction of a cable from drone to load, d the
    disturbances and h the error of the planned tension,

        e_i = d_i + h_i s_i,      e_load = d_load - sum h_i s_i,

    of which the smallest d are taken, by the masses of the bodies (least squares). Any of them
    makes the model move as the system does, so that no error remains in a steady flight; which body
    is to blame cannot be told along a cable.

    Velocities that are measured late by a time L look like a force K L m a: faster observers make
    accelerated flight worse.

    Attributes:
        missing_n: Missing forces e^ of load (row 0) and drones, world, (1 + n, 3).
    """

    def __init__(self, system: SlungLoadSystem, model: PayloadModel, bandwidth_1_s: float) -> None:
        self._mass_kg = np.r_[model.mass_kg, model.drone_mass_kg][:, None]
        self._weight_n = self._mass_kg * [0.0, 0.0, -model.gravity_m_s2]
        self._bandwidth_1_s = bandwidth_1_s
        self._lags_s = np.array([rotor_lag_s(drone) for drone in system.drones])

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Begin with nothing missing."""
        self._momentum = self._mass_kg * estimate.velocity_enu_m_s
        self.missing_n, self._force_n = np.zeros((2, *self._momentum.shape))
        self._thrust_n: Array | None = None
        self._time_s = time_s

    def step(self, time_s: float, asked_n: Array, pull_n: Array, estimate: Estimate) -> None:
        """Look at the motion, and count on what acts until the next call, whenever that is.

        `asked_n`: forces that the drones are to exert, `pull_n`: of the cables on the drones as
        planned, both (n, 3). On a busy ROS graph calls are missed, so their times count.
        """
        since_s = time_s - self._time_s
        self._time_s = time_s
        self._momentum += since_s * self._force_n
        momentum = self._mass_kg * estimate.velocity_enu_m_s
        self.missing_n = self._bandwidth_1_s * (momentum - self._momentum)
        up = rotate(estimate.drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))
        thrust_n = np.maximum(np.sum(asked_n * up, axis=1), 0.0)
        before_n = thrust_n if self._thrust_n is None else self._thrust_n
        self._thrust_n = before_n + since_s / (since_s + self._lags_s) * (thrust_n - before_n)
        self._force_n = self._weight_n + self.missing_n
        self._force_n[0] -= pull_n.sum(axis=0)
        self._force_n[1:] += pull_n + self._thrust_n[:, None] * up

    def disturbances_n(self, directions: Array) -> Array:
        """Disturbances of load and drones, (1 + n, 3), with cables along `directions`, (n, 3)."""
        n = len(directions)
        effect = np.zeros((1 + n, 3, n))
        effect[0] = -directions.T
        effect[1 + np.arange(n), :, np.arange(n)] = directions
        by_mass = 1.0 / self._mass_kg
        rows = (by_mass[..., None] * effect).reshape(-1, n)
        wrong_n = np.linalg.lstsq(rows, (by_mass * self.missing_n).ravel())[0]
        forces_n: Array = self.missing_n - effect @ wrong_n
        size = np.linalg.norm(forces_n, axis=1) / np.linalg.norm(self._weight_n, axis=1)
        return np.asarray(forces_n / np.maximum(size / MOST_SHARE, 1.0)[:, None])
