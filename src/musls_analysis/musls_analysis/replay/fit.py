"""Estimate physical parameters from one recording by replaying it with many of them.

Bounded non-linear least squares (trust region reflective) on the difference between predicted and
recorded load at the recorded samples: position, and attitude times a length that makes both
comparable. Derivatives are forward differences, replays in worker processes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import OptimizeResult, least_squares
from scipy.spatial.transform import Rotation, Slerp

from musls_analysis.recordings.recording import LOAD
from musls_analysis.replay.motion import DRONES, ReplaySpec, Vector
from musls_analysis.replay.replay import ELASTIC, RIGID_LINKS, Replay, ReplayResult
from musls_control.child_processes import worker_processes
from musls_description.config.errors import ConfigError, near_names
from musls_description.config.schema import to_yaml
from musls_description.config.strict_yaml import read_json
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import Cable, SlungLoadSystem
from musls_description.tables import Shown, Table
from musls_sim.plants.elastic.cables.line import line_of
from musls_sim.plants.interface import SimulationDiverged
from musls_sim.scenario.physics import CONTROL_PERIOD_S

AXES = "xyz"

OF_ELASTIC = ("ea", "axial_damping")
"""Parameters of elastic cables alone."""

OF_LINKS = ("damping", "twist_damping", "stiffness", "friction")
"""Parameters of cables of links alone."""


@dataclass(frozen=True)
class Setup:
    """System and options of a replay."""

    system: SlungLoadSystem
    spec: ReplaySpec


@dataclass(frozen=True, repr=False)
class Parameter(Shown):
    """One number of a setup.

    Attributes:
        unit: "" for a factor.
        lower: Least value of a fit.
        upper: Largest value of a fit.
        scale: A change that matters: unit of the optimiser, a tenth of it is the step of finite
            differences. Of the logarithm if `log`.
        read: Value in a setup.
        put: The setup with another value.
        log: Fitted on a logarithmic scale.
    """

    name: str
    unit: str
    lower: float
    upper: float
    scale: float
    read: Callable[[Setup], float]
    put: Callable[[Setup, float], Setup]
    log: bool = False

    def shown(self) -> Iterator[str]:
        """Name, bounds and unit."""
        yield f"{self.name}: {self.lower:.4g} to {self.upper:.4g} {self.unit}".rstrip()

    def to_scale(self, value: float) -> float:
        """Value on the scale of the fit."""
        return float(np.log(value)) if self.log else value

    def from_scale(self, x: float) -> float:
        """The inverse."""
        return float(np.exp(x)) if self.log else float(x)


GROUPS = {
    "damping": "viscous damping of the cables' joints [N m s/rad]",
    "twist_damping": "viscous damping of cables that turn about themselves [N m s/rad]",
    "stiffness": "spring of the cables' joints [N m/rad]",
    "friction": "Coulomb friction of the cables' joints [N m]",
    "ea": "axial stiffness of elastic cables [N]",
    "axial_damping": "axial damping of elastic cables, force per rate of strain [N s]",
    "length": "length of the cables, length_1 of one [m]",
    "rope_mass": "mass of the cables [kg]",
    "attachment": "cable's end on the drone, in its frame, x y z; attachment_1 of one [m]",
    "load_attachment_1": "end of cable 1 on the load, in its frame, x y z [m]; others likewise",
    "load_com": "shift of the load's centre of mass against the rest of it, x y z [m]",
    "load_inertia": "factor of the load's inertia",
    "load_drag": "linear air drag of the load, alike in all directions [N s/m]",
    "load_origin": "recorded point of the load from its centre of mass, x y z [m]",
    "drone_origin": "recorded point of the drones from theirs, x y z; drone_origin_1 of one [m]",
    "load_tilt": "recorded frame of the load against the load's, rotation vector x y z [rad]",
    "load_delay": "how much later the load's poses are stamped than the drones' [s]",
}
"""Parameters of a fit. A group with x y z stands for its components (`load_com_z` for one)."""


def parameters(names: Iterable[str], setup: Setup) -> list[Parameter]:
    """Look up parameters by names of groups or single ones; a setup gives some their bounds."""
    known = _all(setup)
    found: dict[str, Parameter] = {}
    for name in names:
        members = [name] if name in known else [f"{name}_{axis}" for axis in AXES]
        if members[0] not in known:
            raise ConfigError(f"nothing to fit called '{name}': {near_names(name, GROUPS)}")
        for member in members:
            if member in found:
                raise ConfigError(f"parameter '{member}' is given twice")
            found[member] = known[member]
    return list(found.values())


def put_all(setup: Setup, values: Mapping[str, float]) -> Setup:
    """The setup with parameters set, in the order given."""
    for parameter, value in zip(parameters(values, setup), values.values(), strict=True):
        setup = parameter.put(setup, value)
    return setup


def _all(setup: Setup) -> dict[str, Parameter]:
    each = range(setup.system.n_drones)
    made = [
        _of_cables(
            "damping", "N m s/rad", (1e-5, 0.1), each, lambda c: c.joint_damping_n_m_s_rad,
            _with_damping,
        ),
        _of_cables(
            "twist_damping", "N m s/rad", (1e-5, 0.1), each,
            lambda c: c.free_twist_damping_n_m_s_rad,
            lambda c, value, _: replace(c, twist_damping_n_m_s_rad=value),
        ),
        _of_cables(
            "stiffness", "N m/rad", (1e-4, 1.0), each, lambda c: c.joint.stiffness_n_m_rad,
            lambda c, value, _: replace(c, joint=replace(c.joint, stiffness_n_m_rad=value)),
        ),
        _of_cables(
            "friction", "N m", (1e-6, 0.02), each, lambda c: c.joint.friction_n_m,
            lambda c, value, _: replace(c, joint=replace(c.joint, friction_n_m=value)),
        ),
        _of_cables("ea", "N", (1e2, 1e6), each, lambda c: line_of(c.elastic).ea_n, _with_ea),
        _of_cables(
            "axial_damping", "N s", (0.1, 1e5), each, lambda c: line_of(c.elastic).damping_n_s,
            lambda c, value, _: replace(c, elastic=replace(c.elastic, damping_n_s=value)),
        ),
        _length("length", each, setup),
        *(_length(f"length_{i + 1}", [i], setup) for i in each),
        _rope_mass(each, setup),
        *_attachments("attachment", each),
        *(p for i in each for p in _attachments(f"attachment_{i + 1}", [i])),
        *(p for i in each for p in _load_attachment(i)),
        *_origins("load_origin", "load"),
        *_origins("drone_origin", DRONES),
        *(p for i in each for p in _origins(f"drone_origin_{i + 1}", f"drone_{i + 1}")),
        *_vector("load_com", "m", 0.1, 0.005, lambda _: np.zeros(3), _com_shifted),
        *_vector("load_tilt", "rad", 0.5, 0.05, lambda s: s.spec.load_tilt_rad, _load_turned),
        Parameter("load_inertia", "", 0.2, 5.0, 0.2, lambda _: 1.0, _inertia_scaled, log=True),
        Parameter(
            "load_drag", "N s/m", 1e-3, 2.0, 0.3,
            lambda s: float(np.mean(s.system.load.drag_n_s_m)),
            lambda s, v: _with_load(s, drag_n_s_m=(v, v, v)), log=True,
        ),
        Parameter(
            "load_delay", "s", -0.3, 0.3, 0.02, lambda s: s.spec.load_delay_s,
            lambda s, v: replace(s, spec=replace(s.spec, load_delay_s=v)),
        ),
    ]  # fmt: skip
    return {parameter.name: parameter for parameter in made}


def _of_cables(
    name: str,
    unit: str,
    bounds: tuple[float, float],
    which: Sequence[int],
    read: Callable[[Cable], float],
    change: Callable[[Cable, float, float], Cable],
    scale: float = 0.5,
    *,
    log: bool = True,
) -> Parameter:
    """The mean of a number of some cables; `change` is given its new and its present value."""

    def mean(at: Setup) -> float:
        return float(np.mean([read(at.system.cables[i]) for i in which]))

    def put(at: Setup, value: float) -> Setup:
        now = mean(at)
        cables = tuple(
            change(cable, value, now) if i in which else cable
            for i, cable in enumerate(at.system.cables)
        )
        return replace(at, system=replace(at.system, cables=cables))

    return Parameter(name, unit, *bounds, scale, mean, put, log)


def _length(name: str, which: Sequence[int], setup: Setup) -> Parameter:
    now = np.mean([setup.system.cables[i].length_m for i in which])
    return _of_cables(
        name, "m", (0.9 * now, 1.1 * now), which, lambda c: c.length_m,
        lambda c, value, mean: replace(c, length_m=c.length_m * value / mean), 0.02, log=False,
    )  # fmt: skip


def _rope_mass(which: Sequence[int], setup: Setup) -> Parameter:
    now = np.mean([setup.system.cables[i].mass_kg for i in which])
    return _of_cables(
        "rope_mass", "kg", (0.1 * now, 10.0 * now), which, lambda c: c.mass_kg,
        lambda c, value, mean: replace(c, mass_kg=c.mass_kg * value / mean), 0.3,
    )  # fmt: skip


def _with_damping(cable: Cable, value: float, _: float) -> Cable:
    if cable.joint.bending_damping_n_m2_s is None:
        return replace(cable, joint=replace(cable.joint, damping_n_m_s_rad=value))
    of_bending = value * cable.link_length_m
    return replace(cable, joint=replace(cable.joint, bending_damping_n_m2_s=of_bending))


def _with_ea(cable: Cable, value: float, _: float) -> Cable:
    if cable.elastic.law is not None:
        raise ConfigError("ea cannot be fitted to cables with a table (elastic.law)")
    return replace(cable, elastic=replace(cable.elastic, ea_n=value))


def _with_load(setup: Setup, **changes: Any) -> Setup:
    load = replace(setup.system.load, **changes)
    return replace(setup, system=replace(setup.system, load=load))


def _vector(
    name: str,
    unit: str,
    limit: float,
    scale: float,
    read: Callable[[Setup], Sequence[float] | Array],
    moved: Callable[[Setup, Array], Setup],
) -> list[Parameter]:
    """Three components, x y z, of what `moved` shifts by a vector."""

    def component(axis: int) -> Parameter:
        return Parameter(
            f"{name}_{AXES[axis]}", unit, -limit, limit, scale,
            lambda at: float(read(at)[axis]),
            lambda at, value: moved(at, np.eye(3)[axis] * (value - read(at)[axis])),
        )  # fmt: skip

    return [component(axis) for axis in range(3)]


def _attachments(name: str, which: Sequence[int]) -> list[Parameter]:
    """Cable's end on some drones."""

    def moved(at: Setup, by: Array) -> Setup:
        drones = tuple(
            replace(d, cable_attachment_m=_sum(d.cable_attachment_m, by)) if i in which else d
            for i, d in enumerate(at.system.drones)
        )
        return replace(at, system=replace(at.system, drones=drones))

    return _vector(
        name, "m", 0.2, 0.01,
        lambda at: np.mean([at.system.drones[i].cable_attachment_m for i in which], axis=0), moved,
    )  # fmt: skip


def _load_attachment(index: int) -> list[Parameter]:
    """End of one cable on the load."""

    def read(at: Setup) -> Vector:
        return at.system.load.cable_attachments_m[index]

    def moved(at: Setup, by: Array) -> Setup:
        points = list(at.system.load.cable_attachments_m)
        points[index] = _sum(points[index], by)
        return _with_load(at, cable_attachments_m=tuple(points))

    return _vector(f"load_attachment_{index + 1}", "m", 5.0, 0.01, read, moved)


def _origins(name: str, body: str) -> list[Parameter]:
    """Recorded point of a body."""
    return _vector(
        name, "m", 0.2, 0.01, lambda at: at.spec.offset_m(body),
        lambda at, by: _with_offset(at, body, by),
    )  # fmt: skip


def _with_offset(setup: Setup, body: str, by: Array) -> Setup:
    offsets = {**setup.spec.offsets_m, body: _sum(setup.spec.offset_m(body), by)}
    return replace(setup, spec=replace(setup.spec, offsets_m=offsets))


def _com_shifted(setup: Setup, by: Array) -> Setup:
    """Everything of the load but its centre of mass moves the other way in the load's frame."""
    load = setup.system.load
    moved = _with_load(
        setup,
        cable_attachments_m=tuple(_sum(p, -by) for p in load.cable_attachments_m),
        collision=replace(load.collision, center_m=_sum(load.collision.center_m, -by)),
    )
    return _with_offset(moved, "load", -by)


def _load_turned(setup: Setup, by: Array) -> Setup:
    tilt = _sum(setup.spec.load_tilt_rad, by)
    return replace(setup, spec=replace(setup.spec, load_tilt_rad=tilt))


def _inertia_scaled(setup: Setup, factor: float) -> Setup:
    inertia = factor * np.array(setup.system.load.inertia_kg_m2)
    return _with_load(setup, shape=None, inertia_kg_m2=tuple(map(tuple, inertia.tolist())))


def _sum(vector: Sequence[float] | Array, by: Array) -> Vector:
    x, y, z = (np.asarray(vector) + by).tolist()
    return x, y, z


ATTITUDE_ARM_M = 0.1
"""Length by which attitude errors [rad] count as distances: about the load's half size."""

DIFFERENCE = 0.1
"""Step of the finite differences in units of a parameter's scale."""

MAX_ROUNDS = 20
TOLERANCE = 1e-3


@dataclass(frozen=True, repr=False)
class FitResult(Shown):
    """Result of a fit.

    Attributes:
        parameters: The fitted ones, with the bounds that held.
        start: Values at the beginning, (p,).
        value: Estimates, (p,).
        at_bound: "lower", "upper" or "" for each.
        uncertainty: Deviations in the parameters' units; a parameter at its bound counts as known.
        before: Replay with the starting values, at the step of the fit.
        after: With the estimates.
        setup: The fitted system, and how to replay with it.
        converged: False if the rounds were used up first.
        samples: Recorded poses of the load that were compared.
    """

    parameters: tuple[Parameter, ...]
    start: Array
    value: Array
    at_bound: tuple[str, ...]
    uncertainty: Uncertainty
    before: ReplayResult
    after: ReplayResult
    setup: Setup
    replays: int
    converged: bool
    samples: int

    def shown(self) -> Iterator[str | Table]:
        """The parameters with doubts, then how near the load is predicted before and after."""
        rows = [self._row(k) for k in range(len(self.parameters))]
        yield Table(("parameter", "value", "+-", "unit", "start", "bounds", ""), rows)
        for group in self.uncertainty.alike:
            yield f"hard to tell apart: {', '.join(self.parameters[k].name for k in group)}"
        if not self.converged:
            yield "the fit has not converged"
        before, after = self.before, self.after
        yield (
            f"fitted to {self.samples} poses in {self.replays} replays: "
            f"{1e3 * before.translational_error_m:.1f} mm, "
            f"{np.degrees(before.geodesic_error_rad):.1f} deg before, "
            f"{1e3 * after.translational_error_m:.1f} mm, "
            f"{np.degrees(after.geodesic_error_rad):.1f} deg after"
        )

    def _row(self, k: int) -> tuple[str, ...]:
        """Name, value, deviation, unit, start, bounds and remark of a parameter."""
        p, std, remark = self.parameters[k], float(self.uncertainty.std[k]), ""
        if self.at_bound[k]:
            remark = f"at its {self.at_bound[k]} bound"
        elif not math.isfinite(std):
            remark = "not determined by this recording"
        elif std > (p.upper - p.lower) / 2.0:
            remark = "hardly determined by this recording"
        return (
            p.name, f"{self.value[k]:.4g}", f"{std:.2g}" if math.isfinite(std) else "-", p.unit,
            f"{self.start[k]:.4g}", f"{p.lower:.4g} .. {p.upper:.4g}", remark,
        )  # fmt: skip

    @property
    def values(self) -> dict[str, float]:
        """Estimates by name."""
        names = [parameter.name for parameter in self.parameters]
        return dict(zip(names, map(float, self.value), strict=True))


def fit(
    replay: Replay,
    system: SlungLoadSystem,
    names: Sequence[str],
    bounds: Mapping[str, tuple[float, float]] | None = None,
    *,
    cable_model: str = RIGID_LINKS,
    workers: int = 1,
    progress: Callable[[str], None] | None = None,
) -> FitResult:
    """Fit parameters, or groups of them, to a recording, starting from those of a system.

    `bounds` replace the parameters' own; `workers` are processes. Fits take the control period as
    physics step.
    """
    setup = Setup(system, replace(replay.spec, physics_step_s=CONTROL_PERIOD_S))
    check_model(names, cable_model)
    chosen = _with_bounds(parameters(names, setup), bounds or {})
    start = np.array([inside(p, p.read(setup)) for p in chosen])
    problem = Problem(replay, setup, tuple(p.name for p in chosen), cable_model)
    if problem.samples.size * 6 <= 2 * len(chosen):
        raise ConfigError(
            f"{replay.recorded.source}: {problem.samples.size} samples of the load after the "
            f"lead-in are too few for {len(chosen)} parameters"
        )
    workers = min(workers, len(chosen))
    with worker_processes(workers) if workers > 1 else nullcontext() as pool:
        study = Study([problem], chosen, pool.map if pool else map, progress)
        before = problem.replayed(start)
        value, found = study.fitted(start, range(len(chosen)))
        after = problem.replayed(value)
    at_bound = tuple({-1: "lower", 0: "", 1: "upper"}[int(side)] for side in found.active_mask)
    fitted = put_all(Setup(system, replay.spec), problem.named(value))
    return FitResult(
        tuple(chosen), start, value, at_bound,
        _in_units(found.jac, found.fun, chosen, value, found.active_mask == 0),
        before, after, fitted, study.replays + 2, found.status > 0, problem.samples.size,
    )  # fmt: skip


def check_model(names: Sequence[str], model: str) -> None:
    """Refuse parameters that have no effect with a cable model."""
    elastic = model.startswith(ELASTIC)
    right = f"cables of links: --cable-model {RIGID_LINKS}" if elastic else "--cable-model elastic"
    for name in names:
        if name in (OF_LINKS if elastic else OF_ELASTIC):
            raise ConfigError(f"'{name}' has no effect with {model}, only with {right}")


def _with_bounds(
    chosen: Sequence[Parameter], bounds: Mapping[str, tuple[float, float]]
) -> list[Parameter]:
    by_name = {p.name: p for p in chosen}
    for name, (lower, upper) in bounds.items():
        if name not in by_name:
            raise ConfigError(f"bounds of '{name}', which is not fitted: {', '.join(by_name)}")
        if not lower < upper:
            raise ConfigError(f"bounds of '{name}': {lower:g} must be below {upper:g}")
        if by_name[name].log and lower <= 0.0:
            raise ConfigError(f"bounds of '{name}': {lower:g} must be > 0 (logarithmic scale)")
        by_name[name] = replace(by_name[name], lower=lower, upper=upper)
    return list(by_name.values())


def inside(parameter: Parameter, value: float) -> float:
    """A start strictly within the bounds; far from an end, where a logarithm would be flat."""
    if parameter.lower < value < parameter.upper:
        return value
    ends = parameter.to_scale(parameter.lower), parameter.to_scale(parameter.upper)
    return parameter.from_scale(sum(ends) / 2.0)


def slopes(chosen: Sequence[Parameter], value: Array) -> Array:
    """Change of each parameter [its unit] by one of its scale, at values (p,), (p,)."""
    return np.array([p.scale * (v if p.log else 1.0) for p, v in zip(chosen, value, strict=True)])


def _in_units(
    jacobian: Array, residual: Array, chosen: Sequence[Parameter], value: Array, free: Array
) -> Uncertainty:
    """Uncertainty of the free parameters, in their units, spread over all."""
    indices, p = np.flatnonzero(free), len(chosen)
    std, correlation = np.full(p, np.nan), np.full((p, p), np.nan)
    if indices.size == 0:
        return Uncertainty(std, correlation, float("nan"), ())
    of_free = uncertainty(
        jacobian[:, indices].reshape(-1, 6, indices.size), residual.reshape(-1, 6)
    )
    std[indices] = of_free.std * slopes(chosen, value)[indices]
    correlation[np.ix_(indices, indices)] = of_free.correlation
    alike = tuple(tuple(int(indices[i]) for i in group) for group in of_free.alike)
    return Uncertainty(std, correlation, of_free.effective_samples, alike)


class Problem:
    """Residuals for given values; goes to the worker processes."""

    def __init__(self, replay: Replay, setup: Setup, names: tuple[str, ...], model: str) -> None:
        self.replay, self.setup, self.names, self.model = replay, setup, names, model
        recorded, spec = replay.recorded, setup.spec
        margin = 0.35 if "load_delay" in names else 0.05
        paths = recorded.paths.values()
        first = max(path.start_s for path in paths) + max(spec.lead_in_s - 0.5, 0.5) + margin
        last = min(path.end_s for path in paths) - margin
        times = recorded.load_time_s
        self.samples = times[(times >= first) & (times <= last)]
        poses = [recorded.paths[LOAD].at(time) for time in self.samples]
        self.position = np.array([position for position, _ in poses]).reshape(-1, 3)
        quaternions = np.array([quaternion for _, quaternion in poses]).reshape(-1, 4)
        self.attitude = Rotation.from_quat(quaternions, scalar_first=True)

    def named(self, values: Array) -> dict[str, float]:
        """Values by the names of their parameters."""
        return dict(zip(self.names, map(float, values), strict=True))

    def replayed(self, values: Array) -> ReplayResult:
        """Replay with given values."""
        setup = put_all(self.setup, self.named(values))
        return self.replay.run(setup.system, spec=setup.spec, cable_model=self.model)

    def residual(self, values: Array) -> Array:
        """Position and weighted attitude errors, (6 k,) [m]."""
        track = self.replayed(values).load
        position = CubicSpline(track.time_s, track.position_enu_m)(self.samples)
        turns = Rotation.from_quat(track.orientation_wxyz, scalar_first=True)
        inside = np.clip(self.samples, track.time_s[0], track.time_s[-1])
        turn = (self.attitude.inv() * Slerp(track.time_s, turns)(inside)).as_rotvec()
        return np.hstack([position - self.position, ATTITUDE_ARM_M * turn]).ravel()


def _residual(task: tuple[Problem, Array]) -> Array:
    """Residual of a recording; not a number where values make the physics fail."""
    problem, values = task
    try:
        return problem.residual(values)
    except SimulationDiverged:
        return np.full(6 * problem.samples.size, np.nan)


def _finite_rows(residuals: Sequence[Array]) -> bool:
    return all(np.isfinite(r).all() for r in residuals)


def rms_m(residuals: Sequence[Array]) -> float:
    """Error of recordings, each with the same weight: position, and attitude times its arm."""
    return float(np.sqrt(np.mean([6.0 * np.mean(r**2) for r in residuals])))


@dataclass(frozen=True)
class Derivatives:
    """Residuals of one recording, (6 k,) [m], and their derivatives, (6 k, p), per scale."""

    residual: Array
    jacobian: Array

    def changed(self, columns: Sequence[int], by: Array) -> Array:
        """Residuals after a change of some parameters, to first order, (6 k,)."""
        return self.residual + self.jacobian[:, columns] @ by


class Study:
    """Recordings with the parameters that are fitted to them; replays go through `each`, a map."""

    def __init__(
        self,
        problems: Sequence[Problem],
        chosen: Sequence[Parameter],
        each: Callable[..., Iterable[Array]],
        progress: Callable[[str], None] | None,
    ) -> None:
        self.problems, self.chosen, self.replays = problems, chosen, 0
        self._each, self._progress = each, progress or (lambda text: None)

    def residuals(self, values: Sequence[Array]) -> list[list[Array]]:
        """Residuals of each recording with each set of values: [values][recording]."""
        tasks = [(problem, value) for value in values for problem in self.problems]
        found = list(self._each(_residual, tasks))
        self.replays += len(tasks)
        n = len(self.problems)
        return [found[k : k + n] for k in range(0, len(found), n)]

    def moved(self, value: Array, column: int, by: float) -> Array:
        """Values with one of them changed by a share of its scale."""
        p, changed = self.chosen[column], value.copy()
        changed[column] = p.from_scale(p.to_scale(value[column]) + by * p.scale)
        return changed

    def derivatives(
        self, value: Array, free: Sequence[int], here: list[Array] | None = None
    ) -> list[Derivatives]:
        """Residuals, if not given, and their derivatives by some parameters.

        Forward differences, away from a bound that is near and from where the physics fails.
        """
        steps = [
            DIFFERENCE
            if self.moved(value, c, DIFFERENCE)[c] < self.chosen[c].upper
            else -DIFFERENCE
            for c in free
        ]
        points = [self.moved(value, c, by) for c, by in zip(free, steps, strict=True)]
        if here is None:
            here, *there = self.residuals([value, *points])
        else:
            there = self.residuals(points)
        for k, c in enumerate(free):
            if not _finite_rows(there[k]):
                steps[k] = -steps[k]
                (there[k],) = self.residuals([self.moved(value, c, steps[k])])
        if not all(map(_finite_rows, [here, *there])):
            raise SimulationDiverged(
                "a recording cannot be replayed with values near to those looked for; choose fewer "
                "parameters or another --cable-model"
            )
        self._progress(f"{self.replays} replays, error {1e3 * rms_m(here):.1f} mm rms")
        return [
            Derivatives(
                at,
                np.column_stack([(row[r] - at) / by for row, by in zip(there, steps, strict=True)]),
            )
            for r, at in enumerate(here)
        ]

    def fitted(self, start: Array, free: Sequence[int]) -> tuple[Array, OptimizeResult]:
        """Values fitted to all recordings, each with the same weight, in units of the scales."""
        chosen = [self.chosen[c] for c in free]
        known: dict[bytes, list[Array]] = {}

        def values(x: Array) -> Array:
            found = start.copy()
            for c, p, at in zip(free, chosen, x, strict=True):
                found[c] = p.from_scale(at * p.scale)
            return found

        def residual(x: Array) -> Array:
            known.clear()
            (known[x.tobytes()],) = self.residuals([values(x)])
            return np.concatenate([r * len(r) ** -0.5 for r in known[x.tobytes()]])

        def jacobian(x: Array) -> Array:
            found = self.derivatives(values(x), free, known.get(x.tobytes()))
            return np.vstack([one.jacobian * len(one.residual) ** -0.5 for one in found])

        low, high, begin = (
            [p.to_scale(value) / p.scale for p, value in zip(chosen, ends, strict=True)]
            for ends in ([p.lower for p in chosen], [p.upper for p in chosen], start[list(free)])
        )
        found = least_squares(
            residual, begin, jacobian, bounds=(low, high), method="trf",
            ftol=TOLERANCE, xtol=TOLERANCE, gtol=1e-10, max_nfev=MAX_ROUNDS,
        )  # fmt: skip
        return values(found.x), found


# ---------- How well a least-squares fit determines its parameters

NEARLY_SINGULAR = 0.02
"""Ratio of the singular values of the Jacobian (columns of unit length) below which the parameters
of the smaller one are said to be hard to tell apart."""

SINGULAR = 1e-5
"""The same below which they cannot be told apart at all: their uncertainty is infinite."""

TAKES_PART = 0.3
"""Share in a singular vector (of unit length) from which a parameter is named."""


@dataclass(frozen=True)
class Uncertainty:
    """Uncertainty of estimates, from the Jacobian and the residuals.

    Attributes:
        std: Standard deviations, infinite where the data say nothing, (p,).
        correlation: Of the parameters, (p, p); NaN beside an infinite deviation.
        effective_samples: Independent residuals among all, see `uncertainty`.
        alike: Groups of parameters (by index) whose effects can hardly be told apart.
    """

    std: Array
    correlation: Array
    effective_samples: float
    alike: tuple[tuple[int, ...], ...]


def correlation_time(series: Array) -> float:
    """Integrated autocorrelation time in samples, at least 1: n / it is the effective number.

    1 + 2 (rho_1 + rho_2 + ...), summed over pairs of lags while a pair is positive (Geyer,
    Practical Markov Chain Monte Carlo, Statist. Sci. 7, 1992, section 3.3).
    """
    n = len(series)
    centred = series - series.mean()
    power = float(centred @ centred)
    if power <= 0.0:
        return 1.0
    rho = np.array([centred[: n - k] @ centred[k:] for k in range(n)]) / power
    time = -1.0
    for pair in range(n // 2):
        both = rho[2 * pair] + rho[2 * pair + 1]
        if both <= 0.0:
            break
        time += 2.0 * both
    return max(time, 1.0)


def uncertainty(jacobian: Array, residual: Array) -> Uncertainty:
    """Covariance of a least-squares fit whose residuals (k, channels) are correlated in time.

    With H = J^T J, J (k, channels, p) the derivatives of the residuals, the estimate's covariance
    is H^-1 (sum_c s_c^2 tau_c J_c^T J_c) H^-1: every channel c (three of position, three of
    attitude) has its own variance s_c^2, and neighbouring residuals are as good as one in tau_c
    (`correlation_time`). What the model cannot follow is counted as such noise; it is no random
    error, so that the true deviation may be larger.
    """
    k, channels, p = jacobian.shape
    length = np.sqrt(np.sum(jacobian**2, axis=(0, 1)))
    known = length > 0.0
    unit = jacobian.reshape(-1, p) / np.where(known, length, 1.0)
    _, singular, directions = np.linalg.svd(unit, full_matrices=False)
    share = singular / singular[0] if singular[0] > 0.0 else np.zeros(p)
    good = share > SINGULAR
    inverse = (directions[good].T / singular[good] ** 2) @ directions[good]
    times = np.array([correlation_time(residual[:, c]) for c in range(channels)])
    variance = np.sum(residual**2, axis=0) / k * (k * channels / max(k * channels - p, 1))
    rows = unit.reshape(k, channels, p)
    spread = np.einsum("c,kci,kcj->ij", variance * times, rows, rows)
    covariance = inverse @ spread @ inverse
    std = np.sqrt(np.diag(covariance))
    lost = ~known | np.any(np.abs(directions[~good]) > 1e-3, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = covariance / np.outer(std, std)
        std = np.where(lost, np.inf, std / np.where(known, length, 1.0))
    correlation[lost] = correlation[:, lost] = np.nan
    alike = tuple(
        tuple(int(i) for i in np.flatnonzero(np.abs(direction) > TAKES_PART))
        for direction, part in zip(directions, share, strict=True)
        if part < NEARLY_SINGULAR
    )
    return Uncertainty(std, correlation, float(np.sum(k / times)), alike)


# ---------- Files: fit.json and system.yaml, read again to replay another recording with them

FIT, SYSTEM = "fit.json", "system.yaml"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def numbers(result: FitResult, source: str) -> dict[str, Any]:
    """The numbers of a fit, JSON-ready; a deviation is null where it is infinite or unknown."""
    columns = zip(
        result.parameters, result.start, result.value, result.uncertainty.std, result.at_bound,
        strict=True,
    )  # fmt: skip
    names = [parameter.name for parameter in result.parameters]
    return {
        "recording": source,
        "parameters": {
            p.name: {
                "value": float(value), "std": _finite(std), "unit": p.unit, "start": float(start),
                "lower": p.lower, "upper": p.upper, "at_bound": bound or None,
            }
            for p, start, value, std, bound in columns
        },
        "correlation": [[_finite(c) for c in row] for row in result.uncertainty.correlation],
        "hard_to_tell_apart": [[names[i] for i in group] for group in result.uncertainty.alike],
        "samples": result.samples,
        "effective_samples": _finite(result.uncertainty.effective_samples / 6.0),
        "replays": result.replays,
        "converged": result.converged,
        "before": _errors(result.before),
        "after": _errors(result.after),
    }  # fmt: skip


def _errors(result: ReplayResult) -> dict[str, float]:
    return {
        "translational_error_m": result.translational_error_m,
        "geodesic_error_deg": float(np.degrees(result.geodesic_error_rad)),
    }


def write_fit(result: FitResult, source: str, folder: Path) -> None:
    """Write fit.json and system.yaml (to fly with)."""
    text = json.dumps(numbers(result, source), indent=2)
    (folder / FIT).write_text(text + "\n", encoding="utf-8")
    (folder / SYSTEM).write_text(to_yaml(result.setup.system), encoding="utf-8")


def with_fit(setup: Setup, path: Path) -> Setup:
    """The setup with the values of a fit, from its fit.json or the folder that holds it."""
    file = path / FIT if os.path.isdir(path) else path
    try:
        entries = read_json(file)["parameters"]
        values = {name: float(entry["value"]) for name, entry in entries.items()}
    except ConfigError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{file}: not the {FIT} of a fit") from None
    if not all(map(math.isfinite, values.values())):
        raise ConfigError(f"{file}: a value that is not finite")
    try:
        return put_all(setup, values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
