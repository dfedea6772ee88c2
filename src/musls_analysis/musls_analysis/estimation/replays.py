"""Parameters of a system from replays of recordings: the load as it was recorded.

Residuals are predicted minus recorded load at the recorded samples: position, and attitude times a
length that makes both comparable. Replays go through worker processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, Slerp

from musls_analysis.estimation.estimate import ParameterEstimate, estimate
from musls_analysis.estimation.estimator import rms
from musls_analysis.estimation.system_parameters import (
    OF_ELASTIC,
    OF_LINKS,
    Setup,
    SystemParameter,
    parameters,
    put_all,
)
from musls_analysis.recordings.recording import LOAD
from musls_analysis.replay.replay import ELASTIC, RIGID_LINKS, Replay
from musls_control.child_processes import worker_count, worker_processes
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import SlungLoadSystem
from musls_sim.plants.interface import SimulationDiverged
from musls_sim.specs.physics import CONTROL_PERIOD_S

ATTITUDE_ARM_M = 0.1
"""Length by which attitude errors [rad] count as distances: about the load's half size."""

WORTH = 0.01
"""Share of the error of the recordings left out that a group must take away to be kept."""


def candidates(system: SlungLoadSystem, cable_model: str) -> tuple[str, ...]:
    """Groups of parameters among which is chosen if none are named."""
    each = range(1, system.n_drones + 1)
    return (
        "load_origin",
        "load_tilt",
        "load_delay",
        "load_inertia",
        "load_drag",
        *(("damping",) if cable_model.startswith(RIGID_LINKS) else ()),
        *(f"length_{i}" for i in each),
        *(f"load_attachment_{i}" for i in each),
        *(f"drone_origin_{i}" for i in each),
    )


class RecordedLoad:
    """Recorded load and its replays with given values; goes to the worker processes."""

    def __init__(self, replay: Replay, setup: Setup, names: Sequence[str], model: str) -> None:
        self.replay = replay
        self.setup = setup
        self.names = names
        self.model = model
        recorded_paths = replay.recorded
        spec = setup.spec
        margin = 0.35 if "load_delay" in names else 0.05
        paths = recorded_paths.paths.values()
        first = max(path.start_s for path in paths) + max(spec.lead_in_s - 0.5, 0.5) + margin
        last = min(path.end_s for path in paths) - margin
        times = recorded_paths.load_time_s
        self.samples = times[(times >= first) & (times <= last)]
        if self.samples.size * 6 <= 2 * len(names):
            raise ConfigError(
                f"{recorded_paths.source}: {self.samples.size} samples of the load after the "
                f"lead-in are too few for {len(names)} parameters"
            )
        poses = [recorded_paths.paths[LOAD].at(time) for time in self.samples]
        self.position = np.array([position for position, _ in poses])
        quaternions = np.array([quaternion for _, quaternion in poses])
        self.attitude = Rotation.from_quat(quaternions, scalar_first=True)
        self.has_attitude = recorded_paths.paths[LOAD].has_attitude
        if not self.has_attitude and (tilts := [n for n in names if n.startswith("load_tilt")]):
            raise ConfigError(
                f"{recorded_paths.source}: {tilts[0]} needs the load's attitude, which was "
                "not recorded"
            )

    def residual(self, values: Array) -> Array:
        """Position and weighted attitude errors, (k, 6) [m]; NaN where the physics fails.

        Positions alone, (k, 3), of a load whose attitude was not recorded.
        """
        setup = put_all(self.setup, dict(zip(self.names, map(float, values), strict=True)))
        try:
            track = self.replay.run(setup.system, spec=setup.spec, cable_model=self.model).load
        except SimulationDiverged:
            return np.full((self.samples.size, 6 if self.has_attitude else 3), np.nan)
        position = CubicSpline(track.time_s, track.position_enu_m)(self.samples)
        if not self.has_attitude:
            return np.asarray(position - self.position)
        turns = Rotation.from_quat(track.orientation_wxyz, scalar_first=True)
        inside = np.clip(self.samples, track.time_s[0], track.time_s[-1])
        turn = (self.attitude.inv() * Slerp(track.time_s, turns)(inside)).as_rotvec()
        return np.hstack([position - self.position, ATTITUDE_ARM_M * turn])


def _residual(task: tuple[RecordedLoad, Array]) -> Array:
    load, values = task
    return load.residual(values)


class ReplayModel:
    """Replays of recordings as the model of an estimate; they go through `each`, a map.

    Attributes:
        best: Values of the least error so far, by name.
    """

    def __init__(
        self,
        setup: Setup,
        parameters: Sequence[SystemParameter],
        recorded: Sequence[RecordedLoad],
        each: Callable[..., Iterable[Array]],
        progress: Callable[[str], None],
    ) -> None:
        self.setup = setup
        self.parameters = parameters
        self._recorded = recorded
        self.recordings = [Path(one.replay.recorded.source).name for one in recorded]
        self._each = each
        self._progress = progress
        self._replays = 0
        self._least_m = np.inf
        self.best = dict[str, float]()

    def residuals(self, values: Sequence[Array]) -> list[list[Array]]:
        """Position and weighted attitude errors of each recording, see `RecordedLoad`."""
        tasks = [(load, value) for value in values for load in self._recorded]
        results = list(self._each(_residual, tasks))
        self._replays += len(tasks)
        n = len(self._recorded)
        self._progress(f"{self._replays} replays, error {1e3 * rms(results[:n]):.1f} mm rms")
        of_each = [results[k : k + n] for k in range(0, len(results), n)]
        for value, errors in zip(values, of_each, strict=True):
            if (error_m := rms(errors)) < self._least_m:
                pairs = zip(self.parameters, value, strict=True)
                self._least_m = error_m
                self.best = {p.name: float(v) for p, v in pairs}
        return of_each

    def errors(self, residual: Array) -> dict[str, float]:
        """Mean distance, and angle if attitudes were recorded."""
        means = np.linalg.norm(residual.reshape(len(residual), -1, 3), axis=2).mean(axis=0)
        errors = {"translational_error_m": float(means[0])}
        if len(means) > 1:
            errors["geodesic_error_deg"] = float(np.degrees(means[1] / ATTITUDE_ARM_M))
        return errors


def fit_replays(
    replays: Sequence[Replay],
    system: SlungLoadSystem,
    names: Sequence[str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    *,
    cable_model: str = RIGID_LINKS,
    workers: int | None = 1,
    progress: Callable[[str], None] = lambda text: None,
) -> ParameterEstimate:
    """Fit parameters, or groups of them, to recordings, starting from those of a system.

    Of several recordings those groups that predict recordings better that they were not fitted to.
    All are replayed as the first is, with the control period as physics step.
    `names` are the `candidates` by default, `bounds` replace the parameters' own, `workers` are
    processes, None for one a core. The best values so far are the `fit` of what interrupts it.
    """
    spec = replays[0].spec
    setup = Setup(system, replace(spec, physics_step_s=CONTROL_PERIOD_S))
    free_names = list(names if names is not None else candidates(system, cable_model))
    check_model(free_names, cable_model)
    groups = _with_bounds(parameters(free_names, setup), bounds or {})
    members = [p for group in groups.values() for p in group]
    each = [RecordedLoad(r, setup, [p.name for p in members], cable_model) for r in replays]
    count = worker_count(workers, len(members) * len(replays))
    with worker_processes(count) if count > 1 else nullcontext() as pool:
        model = ReplayModel(setup, members, each, pool.map if pool else map, progress)
        try:
            result = estimate(model, groups, WORTH)
        except KeyboardInterrupt as error:
            error.fit = model.best  # type: ignore[attr-defined]
            raise
    return replace(result, setup=put_all(Setup(system, spec), result.values))


def check_model(names: Sequence[str], model: str) -> None:
    """Refuse parameters that have no effect with a cable model."""
    elastic = model.startswith(ELASTIC)
    right = f"cables of links: --cable-model {RIGID_LINKS}" if elastic else "--cable-model elastic"
    for name in names:
        if name in (OF_LINKS if elastic else OF_ELASTIC):
            raise ConfigError(f"'{name}' has no effect with {model}, only with {right}")


def _with_bounds(
    groups: Mapping[str, list[SystemParameter]], bounds: Mapping[str, tuple[float, float]]
) -> dict[str, list[SystemParameter]]:
    by_name = {p.name: p for group in groups.values() for p in group}
    for name, (lower, upper) in bounds.items():
        if name not in by_name:
            raise ConfigError(f"bounds of '{name}', which is not fitted: {', '.join(by_name)}")
        if not lower < upper:
            raise ConfigError(f"bounds of '{name}': {lower:g} must be below {upper:g}")
        if by_name[name].log and lower <= 0.0:
            raise ConfigError(f"bounds of '{name}': {lower:g} must be > 0 (logarithmic scale)")
        by_name[name] = replace(by_name[name], lower=lower, upper=upper)
    return {name: [by_name[p.name] for p in group] for name, group in groups.items()}
